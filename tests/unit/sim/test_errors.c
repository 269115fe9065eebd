// SPDX-License-Identifier: Apache-2.0
// Errors that come by chance: how many, at which end, and the same for whoever looks.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tests/unit/sim/flow_rig.h"

static struct flow_rig rig;
static uint64_t leaf;
static unsigned port;

static void begin(uint64_t seed)
{
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, &(struct sim_opts){.seed = seed});
    const struct node *n = fabric_by_guid(rig.f, rig.node[3]);
    const struct port *z = fabric_port(rig.f, fabric_port(rig.f, (port_id){n->first_port})->peer);
    leaf = fabric_node(rig.f, z->node)->guid;
    port = z->num;
}

static int setup(void **state)
{
    begin(1);
    return 0;
}

static int teardown(void **state)
{
    flow_rig_down(&rig);
    return 0;
}

static uint64_t counter(uint64_t node, unsigned num, enum sim_counter c)
{
    uint64_t v = 0;
    assert_int_equal(sim_counter_get(rig.s, node, num, c, &v), 0);
    return v;
}

static void so_many_an_hour(void **state)
{
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_SYMBOL_ERRORS, 100), 0);
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_RCV_ERRORS, 3600e3), 0);
    flow_rig_run(&rig, 36 * 3600 * MONO_S / 10);
    double n = (double)counter(leaf, port, SIM_SYMBOL_ERRORS),
           m = (double)counter(leaf, port, SIM_RCV_ERRORS);
    assert_true(fabs(n - 360) < 5 * sqrt(360));
    assert_true(fabs(m - 3.6 * 3600e3) < 5 * sqrt(3.6 * 3600e3));    // drawn at once
    assert_int_equal(counter(rig.node[3], 1, SIM_SYMBOL_ERRORS), 0); // the other end receives nothing bad
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_SYMBOL_ERRORS, 0), 0);
    flow_rig_run(&rig, 3600 * MONO_S);
    assert_int_equal(counter(leaf, port, SIM_SYMBOL_ERRORS), (uint64_t)n);
}

static void a_bit_error_ratio_at_the_links_speed(void **state)
{
    assert_int_equal(sim_ber(rig.s, leaf, port, 1e-12), 0); // 0.2 a second at 200 Gb/s
    flow_rig_run(&rig, 3600 * MONO_S);
    double n = (double)counter(leaf, port, SIM_SYMBOL_ERRORS);
    assert_true(fabs(n - 720) < 5 * sqrt(720));
    assert_int_equal(sim_raw_ber(rig.s, leaf, port, 1e-8), 0);
    flow_rig_run(&rig, 10 * MONO_S);
    n = (double)counter(leaf, port, SIM_FEC_CORRECTED_SYMBOLS);
    assert_true(fabs(n - 20000) < 5 * sqrt(20000));
    assert_int_equal(counter(leaf, port, SIM_FEC_CORRECTABLE_BLOCKS), (uint64_t)n);
}

static void both_ends_count_a_retraining(void **state)
{
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_LINK_ERROR_RECOVERY, 60), 0);
    flow_rig_run(&rig, 5 * 3600 * MONO_S);
    uint64_t n = counter(leaf, port, SIM_LINK_ERROR_RECOVERY);
    assert_true(n > 200 && n < 400);
    assert_int_equal(counter(rig.node[3], 1, SIM_LINK_ERROR_RECOVERY), n);
}

// However often it is read, the errors come at the same times.
static void looking_changes_nothing(void **state)
{
    uint64_t at_once;
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_SYMBOL_ERRORS, 500), 0);
    flow_rig_run(&rig, 3600 * MONO_S);
    at_once = counter(leaf, port, SIM_SYMBOL_ERRORS);
    flow_rig_down(&rig);
    begin(1);
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_SYMBOL_ERRORS, 500), 0);
    for (unsigned i = 0; i < 360; i++) {
        flow_rig_run(&rig, 10 * MONO_S);
        counter(leaf, port, SIM_SYMBOL_ERRORS);
    }
    assert_int_equal(counter(leaf, port, SIM_SYMBOL_ERRORS), at_once);
    flow_rig_down(&rig);
    begin(2);
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_SYMBOL_ERRORS, 500), 0);
    flow_rig_run(&rig, 3600 * MONO_S);
    assert_true(counter(leaf, port, SIM_SYMBOL_ERRORS) != at_once); // another seed
}

static void none_come_while_it_is_down(void **state)
{
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_SYMBOL_ERRORS, 3600), 0);
    flow_rig_run(&rig, 10 * MONO_S);
    assert_int_equal(sim_link_set(rig.s, leaf, port, false), 0);
    uint64_t n = counter(leaf, port, SIM_SYMBOL_ERRORS);
    assert_true(n > 0);
    flow_rig_run(&rig, 1000 * MONO_S);
    assert_int_equal(sim_link_set(rig.s, leaf, port, true), 0);
    assert_int_equal(counter(leaf, port, SIM_SYMBOL_ERRORS), n);
    flow_rig_run(&rig, 100 * MONO_S);
    assert_true(counter(leaf, port, SIM_SYMBOL_ERRORS) < n + 200);
    assert_true(counter(leaf, port, SIM_SYMBOL_ERRORS) > n + 30);
}

static void refused(void **state)
{
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_XMIT_DATA, 1), -EINVAL);
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_LINK_DOWNED, 1), -EINVAL);
    assert_int_equal(sim_errors(rig.s, leaf, port, SIM_SYMBOL_ERRORS, -1), -EINVAL);
    assert_int_equal(sim_errors(rig.s, leaf, 0, SIM_SYMBOL_ERRORS, 1), -EINVAL);
    assert_int_equal(sim_errors(rig.s, 0x77, 1, SIM_SYMBOL_ERRORS, 1), -ENOENT);
    assert_int_equal(sim_ber(rig.s, leaf, port, 0.5), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(so_many_an_hour, setup, teardown),
        cmocka_unit_test_setup_teardown(a_bit_error_ratio_at_the_links_speed, setup, teardown),
        cmocka_unit_test_setup_teardown(both_ends_count_a_retraining, setup, teardown),
        cmocka_unit_test_setup_teardown(looking_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(none_come_while_it_is_down, setup, teardown),
        cmocka_unit_test_setup_teardown(refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
