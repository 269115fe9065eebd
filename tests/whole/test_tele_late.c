// SPDX-License-Identifier: Apache-2.0
// Devices that answer late, that reboot and learn anew what they can, whose answers are lost, at random:
// sweeps of counters end in time whatever comes when, and all is read again once all is well. Files that
// cannot be written are written late.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static const struct alarm *alarm_of(const struct world *w, const char *rule)
{
    const struct alarm *a;
    uint32_t n = alarms_list(w->alarms, &a);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].rule->id, rule) == 0)
            return &a[i];
    fail_msg("no alarm %s", rule);
    return NULL;
}

// Nothing comes back any more: one alarm, of weft's own way into the fabric, and none of each device. A
// device that was silent before is as silent as it was.
static void cut_off(void **state)
{
    struct world w = {.alarmed = true};
    const struct alarm *a;
    struct alarms_count c;
    (void)state;
    world_up(&w, "rail-16", NULL);
    uint64_t silent = world_nth(&w, ROLE_HOST, 5)->guid;
    sim_pma_fault(w.r.sim, silent, 0, SIM_PMA_SILENT, 1000000);
    world_sweeps(&w, 6);
    assert_true(alarm_of(&w, "S05")->active);
    assert_int_equal(alarm_of(&w, "S05")->node_guid[0], silent);
    int64_t since = alarm_of(&w, "S05")->since_wall_ns;
    sim_set_loss(w.r.sim, 1);
    for (unsigned i = 0; i < 6; i++) {
        world_sweeps(&w, 1);
        assert_true(alarm_of(&w, "S05")->active);
    }
    assert_int_equal(alarms_list(w.alarms, &a), 2);
    assert_int_equal(alarm_of(&w, "W01")->severity, ALARM_MAJOR);
    alarms_count(w.alarms, NULL, &c);
    assert_int_equal(c.major, 1 + (alarm_of(&w, "S05")->severity == ALARM_MAJOR));
    sim_set_loss(w.r.sim, 0);
    world_sweeps(&w, 6);
    assert_int_equal(alarms_list(w.alarms, &a), 2); // shown for a while, and not counted
    assert_false(alarm_of(&w, "W01")->active);
    assert_true(alarm_of(&w, "S05")->active);
    assert_int_equal(alarm_of(&w, "S05")->since_wall_ns, since);
    alarms_count(w.alarms, NULL, &c);
    assert_int_equal(c.critical + c.major + c.minor + c.info, 1);
    sim_pma_fault(w.r.sim, silent, 0, SIM_PMA_RIGHT, 0);
    world_sweeps(&w, 6);
    assert_false(alarm_of(&w, "S05")->active);
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

// Names come from the fabric, and advice is pasted into a shell.
static void names_in_advice(void **state)
{
    struct world w = {.alarmed = true};
    (void)state;
    world_up(&w, "rail-16", NULL);
    const struct fabric *f = sm_fabric(w.r.sm);
    const struct node *leaf = world_nth(&w, ROLE_LEAF, 1);
    uint64_t guid = leaf->guid;
    unsigned num = 1;
    for (const struct node *n; num < leaf->num_ports; num++)
        if ((n = fabric_peer_node(f, &f->port[leaf->first_port + num])) != NULL && n->type == NODE_SWITCH)
            break;
    uint64_t peer = fabric_peer_node(f, &f->port[leaf->first_port + num])->guid;
    world_sweeps(&w, 2);
    for (unsigned i = 0; i < 2; i++) {
        sim_node_desc(w.r.sim, guid, i ? "leaf-1" : "leaf~{a,b}#!");
        sim_node_desc(w.r.sim, peer, i ? "spine-1" : "spine~{a,b}#!");
        sm_resweep(w.r.sm, "operator", false);
        rig_sweeps(&w.r, 1, 60);
        world_fabric(&w);
        world_add(&w, guid, num + i, SIM_SYMBOL_ERRORS, 900);
        world_sweeps(&w, 12);
        const struct alarm *a = alarm_of(&w, "L06");
        const char *at = strstr(a->advice, "weft isolate ");
        assert_non_null(at);
        at += strlen("weft isolate ");
        if (i == 0) {
            assert_int_equal(at[0], '\'');
            assert_non_null(strstr(at, "~{a,b}#!/"));
            assert_non_null(strstr(at, "' --dry-run"));
        } else {
            assert_true(strncmp(at, "leaf-1/", 7) == 0 || strncmp(at, "spine-1/", 8) == 0);
        }
    }
    world_down(&w);
}

// What could not be written for a while is written when it can be, though nothing has changed since.
static void written_later(void **state)
{
    static const char *const name[] = {"health", "health-rest", "accumulators"};
    struct world w = {0};
    char dir[300], path[400];
    struct stat st;
    (void)state;
    snprintf(dir, sizeof(dir), "%s/weft-late-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    assert_non_null(mkdtemp(dir));
    w.o.dir = dir;
    world_up(&w, "rail-16", NULL);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    for (unsigned i = 0; i < 3; i++) { // a folder stands in the file's place
        snprintf(path, sizeof(path), "%s/%s", dir, name[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    world_sweeps(&w, 2);
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 900);
    world_sweeps(&w, 2);
    sim_node_reboot(w.r.sim, leaf); // counters begin anew: accumulators have something to keep
    rig_run(&w.r, 20 * MONO_S);
    rig_heals(&w.r, 6);
    world_fabric(&w);
    world_sweeps(&w, 6 * 16); // tried, also of all links
    for (unsigned i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, name[i]);
        assert_int_equal(rmdir(path), 0);
    }
    world_sweeps(&w, 6 * 5);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, name[i]);
        if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
            fail_msg("no file %s", name[i]);
    }
    world_down(&w);
    for (unsigned i = 0; i < 3; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, name[i]);
        unlink(path);
    }
    rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(at_random), cmocka_unit_test(cut_off),
                                       cmocka_unit_test(silent_behind_what_sends),
                                       cmocka_unit_test(names_in_advice), cmocka_unit_test(written_later)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
