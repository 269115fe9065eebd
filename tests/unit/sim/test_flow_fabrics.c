// SPDX-License-Identifier: Apache-2.0
// Traffic on whole fabrics with an engine's tables: what a tree carries, where waits lead to.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lib/rng.h"
#include "tests/unit/sim/flow_rig.h"

static struct flow_rig rig;

static int teardown(void **state)
{
    flow_rig_down(&rig);
    return 0;
}

static void a_full_load_permutation_is_carried(void **state)
{
    struct sim_flow_info i;
    flow_rig_up(&rig, "rail-64", ROUTE_AUTO, NULL);
    assert_int_equal(
        sim_flow_start(rig.s, &(struct sim_flow_spec){.pattern = SIM_FLOW_SHIFT, .shift = 3}, NULL), 0);
    sim_flow_settle(rig.s);
    assert_int_equal(sim_flow_list(rig.s, 0, &i), 0);
    assert_true(i.delivered > 0.95 * i.offered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_full_load_permutation_is_carried, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
