// SPDX-License-Identifier: Apache-2.0
// Devices that answer late, that reboot and learn anew what they can, whose answers are lost, at random:
// sweeps of counters end in time whatever comes when, and all is read again once all is well.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lib/rng.h"
#include "telemetry/telemetry.h"
#include "tests/whole/tele_world.h"

#define STEPS 400

static uint64_t any_switch(const struct world *w, struct rng *r)
{
    const struct fabric *f = w->r.plan;
    return fabric_switch(f, rng_below(r, f->num_switches))->guid;
}

static void happens(struct world *w, struct rng *r)
{
    static const int64_t late[] = {0, 100, 300, 500, 1000, 2000};
    switch (rng_below(r, 3)) {
    case 0:
        sim_node_delay(w->r.sim, any_switch(w, r), late[rng_below(r, 6)] * MONO_MS);
        break;
    case 1:
        sim_node_reboot(w->r.sim, any_switch(w, r));
        break;
    case 2:
        sim_set_loss(w->r.sim, rng_below(r, 3) ? 0 : 0.1);
        break;
    }
}

// One sweep of the manager, so that LIDs and tables are back after reboots.
static void all_is_well(struct world *w)
{
    const struct fabric *f = w->r.plan;
    sim_set_loss(w->r.sim, 0);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        sim_node_delay(w->r.sim, f->node[i].guid, 0);
    rig_run(&w->r, 120 * MONO_S); // what runs is over
    rig_heals(&w->r, 6);
    world_fabric(w);
}

static void at_random(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct world w = {.o = {.interval_ns = MONO_S, .detail_interval_ns = 2 * MONO_S, .per_device = 4}};
        struct rng r;
        rng_init(&r, seed);
        world_up(&w, "ft3-8-4", NULL);
        for (unsigned i = 0; i < STEPS; i++) {
            happens(&w, &r);
            rig_run(&w.r, (1 + rng_below(&r, 10)) * 100 * MONO_MS);
            if (i % 5 == 0 && sm_fabric(w.r.sm) != NULL)
                world_fabric(&w);
        }
        uint64_t sweeps = world_status(&w).sweeps;
        all_is_well(&w);
        world_sweeps(&w, 40);
        assert_true(world_status(&w).sweeps >= sweeps + 40);
        assert_int_equal(world_status(&w).unread, 0);
        assert_int_equal(world_status(&w).read, world_table(&w)->num);
        world_down(&w);
    }
}

// Nothing comes back any more: one alarm, of weft's own way into the fabric, and none of each device.
static void cut_off(void **state)
{
    struct world w = {.alarmed = true};
    const struct alarm *a;
    struct alarms_count c;
    (void)state;
    world_up(&w, "rail-16", NULL);
    world_sweeps(&w, 2);
    sim_set_loss(w.r.sim, 1);
    world_sweeps(&w, 6);
    assert_int_equal(alarms_list(w.alarms, &a), 1);
    assert_string_equal(a[0].rule->id, "W01");
    assert_int_equal(a[0].severity, ALARM_MAJOR);
    alarms_count(w.alarms, NULL, &c);
    assert_int_equal(c.major, 1);
    sim_set_loss(w.r.sim, 0);
    world_sweeps(&w, 6);
    assert_int_equal(alarms_list(w.alarms, &a), 1); // shown for a while, and not counted
    assert_false(a[0].active);
    alarms_count(w.alarms, NULL, &c);
    assert_int_equal(c.critical + c.major + c.minor + c.info, 0);
    world_down(&w);
}

// A host that is silent behind a cable that is up: the leaf's port goes on counting, and has nobody behind
// it.
static void silent_behind_what_sends(void **state)
{
    struct world w = {0};
    (void)state;
    world_up(&w, "rail-16", NULL);
    const struct node *host = world_nth(&w, ROLE_HOST, 3);
    const struct port *leaf = fabric_port(sm_fabric(w.r.sm), sm_fabric(w.r.sm)->port[host->first_port].peer);
    uint64_t of = fabric_node(sm_fabric(w.r.sm), leaf->node)->guid;
    unsigned num = leaf->num;
    world_sweeps(&w, 2);
    sim_node_kill(w.r.sim, host->guid, true);
    sm_resweep(w.r.sm, "operator", false);
    rig_sweeps(&w.r, 1, 60);
    world_fabric(&w);
    for (unsigned i = 0; i < 4; i++) {
        world_add(&w, of, num, SIM_XMIT_DATA, 40000000000);
        world_add(&w, of, num, SIM_XMIT_WAIT, 4000000000);
        world_sweeps(&w, 1);
    }
    uint32_t slot = world_slot(&w, of, num);
    assert_true(world_table(&w)->port[slot].up && world_table(&w)->port[slot].peer == TELE_SLOT_NONE);
    assert_int_equal(world_table(&w)->port[slot].unread, TELE_READ);
    world_down(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(at_random), cmocka_unit_test(cut_off),
                                       cmocka_unit_test(silent_behind_what_sends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
