// SPDX-License-Identifier: Apache-2.0
// A multicast tree that its proof refuses: it is told, nothing of it is written, and what the switches have
// stays. There is another try when the fabric has changed, and not before. Trees that are made do hold, so
// mcast_verify() is wrapped (--wrap of the linker) and denies it.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mad/mad.h"
#include "routing/mcast.h"
#include "sm/sa.h"
#include "tests/whole/rig.h"

static bool denied;

bool __real_mcast_verify(const struct fabric *f, const struct fabric_tables *t, const struct mcast_tree *tree,
                         const bool *needed, const struct route_proof_state *proof, struct mcast_proof *ret);
bool __wrap_mcast_verify(const struct fabric *f, const struct fabric_tables *t, const struct mcast_tree *tree,
                         const bool *needed, const struct route_proof_state *proof, struct mcast_proof *ret);

// Runs on a worker.
bool __wrap_mcast_verify(const struct fabric *f, const struct fabric_tables *t, const struct mcast_tree *tree,
                         const bool *needed, const struct route_proof_state *proof, struct mcast_proof *ret)
{
    bool ok = __real_mcast_verify(f, t, tree, needed, proof, ret);
    if (!denied)
        return ok;
    ret->ok = ret->cycle = false;
    snprintf(ret->counter_example, sizeof(ret->counter_example), "a leaf hangs in the air");
    return false;
}

#define MLIDS 8

static void up(struct rig *r)
{
    rig_init(r, "rail-64", NULL);
    rig_up(r);
    rig_sweeps(r, 1, 300);
    assert_true(rig_last(r)->ok);
}

static struct sm_sa_stats stats(const struct rig *r)
{
    struct sm_sa_stats s;
    sm_sa_stats(r->sm, &s);
    return s;
}

static uint64_t mft_sets(const struct rig *r)
{
    return rig_count(r, MAD_METHOD_SET, MAD_ATTR_MULTICAST_FORWARDING_TABLE);
}

// A bit a port and group, of all switches; *ret_set: how many are set.
static bool *masks(const struct rig *r, unsigned *ret_set)
{
    const struct fabric *f = r->plan;
    bool *m = calloc((size_t)f->num_switches * 256 * MLIDS, sizeof(*m));
    *ret_set = 0;
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        for (unsigned num = 0; num <= fabric_switch(f, sw)->num_ports; num++)
            for (unsigned k = 0; k < MLIDS; k++) {
                bool *bit = &m[((size_t)sw * 256 + num) * MLIDS + k];
                assert_int_equal(
                    sim_mft(r->sim, fabric_switch(f, sw)->guid, (uint16_t)(0xc000 + k), num, bit), 0);
                *ret_set += *bit;
            }
    return m;
}

static void all_hear(const struct rig *r)
{
    const struct fabric *f = r->plan;
    struct sim_hosts_stats s;
    uint64_t from = 0;
    for (uint32_t i = 0; i < f->num_ports && from == 0; i++)
        if (fabric_node(f, f->port[i].node)->role == ROLE_HOST && port_valid(f->port[i].peer))
            from = f->port[i].guid;
    sim_hosts_stats(r->sim, &s);
    assert_true(s.ipoib_up > 1);
    assert_int_equal(sim_multicast(r->sim, from, 0xc000, NULL, NULL), (int)s.ipoib_up - 1);
}

// The nth port of the switch by which it reaches another.
static unsigned trunk(const struct rig *r, const struct node *n, unsigned nth)
{
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *z = fabric_peer_node(r->plan, &r->plan->port[n->first_port + num]);
        if (z != NULL && z->type == NODE_SWITCH && nth-- == 0)
            return num;
    }
    fail_msg("no such port");
    return 0;
}

static void test_old_tree_stays(void **state)
{
    struct rig r;
    unsigned before, after;
    (void)state;
    denied = false;
    up(&r);
    sim_hosts_start(r.sim, NULL);
    rig_run(&r, 20 * MONO_S);
    all_hear(&r);
    const struct node *root = fabric_by_guid(r.plan, stats(&r).root_guid);
    assert_non_null(root);
    bool *was = masks(&r, &before);
    uint64_t sets = mft_sets(&r);
    uint32_t jobs = stats(&r).tree_jobs;
    assert_true(before > 0);

    denied = true;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(sim_link_set(r.sim, root->guid, trunk(&r, root, i), false), 0);
        rig_run(&r, 20 * MONO_S);
        assert_true(rig_last(&r)->ok);
        assert_int_equal(rig_events_of(&r, "multicast-refused"), i + 1); // once for each change
        assert_int_equal(stats(&r).tree_jobs, jobs + i + 1);
        assert_int_equal(mft_sets(&r), sets);
    }
    assert_non_null(strstr((const char *)r.log.data, "a leaf hangs in the air"));
    bool *now = masks(&r, &after);
    assert_int_equal(after, before);
    assert_memory_equal(was, now, (size_t)r.plan->num_switches * 256 * MLIDS * sizeof(*was));
    rig_judge(&r, NULL, 0); // unicast does not wait for it

    denied = false;
    assert_int_equal(sim_link_set(r.sim, root->guid, trunk(&r, root, 2), false), 0);
    rig_run(&r, 20 * MONO_S);
    assert_int_equal(rig_events_of(&r, "multicast-refused"), 2);
    assert_true(mft_sets(&r) > sets);
    all_hear(&r);
    sim_hosts_stop(r.sim);
    free(was);
    free(now);
    rig_done(&r);
}

// The first one: who joins is answered although no switch forwards anything.
static void test_first_tree(void **state)
{
    struct rig r;
    struct sim_hosts_stats s;
    unsigned set;
    (void)state;
    denied = true;
    up(&r);
    sim_hosts_start(r.sim, NULL);
    rig_run(&r, 60 * MONO_S);
    sim_hosts_stats(r.sim, &s);
    assert_int_equal(s.joined, s.active);
    assert_int_equal(rig_events_of(&r, "multicast-refused"), 1);
    assert_int_equal(stats(&r).tree_jobs, 1);
    assert_int_equal(mft_sets(&r), 0);
    free(masks(&r, &set));
    assert_int_equal(set, 0);

    denied = false;
    const struct node *leaf = fabric_switch(r.plan, 0);
    assert_int_equal(sim_link_set(r.sim, leaf->guid, trunk(&r, leaf, 0), false), 0);
    rig_run(&r, 20 * MONO_S);
    assert_int_equal(rig_events_of(&r, "multicast-refused"), 1);
    all_hear(&r);
    sim_hosts_stop(r.sim);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_old_tree_stays),
        cmocka_unit_test(test_first_tree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
