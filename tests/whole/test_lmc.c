// SPDX-License-Identifier: Apache-2.0
// Several LIDs a port, whole: what adapters are given, that every LID of theirs is reached, by different
// ways, and what happens when the number changes on a fabric that lives.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mad/mad.h"
#include "tests/whole/rig.h"

static void up(struct rig *r)
{
    rig_up(r);
    rig_sweeps(r, 1, 300);
    if (!rig_last(r)->ok)
        fail_msg("%s", rig_last(r)->text);
}

struct end {
    uint64_t guid;
    uint16_t lid;
    uint32_t leaf; // switch that it hangs on
    uint8_t lmc;
    bool adapter;
};

static uint32_t ends(const struct rig *r, struct end *ret)
{
    const struct fabric *f = r->plan;
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *nd = fabric_node(f, p->node);
        struct sim_port_view v;
        if (!port_is_end(f, p) || (nd->type != NODE_SWITCH && !port_valid(p->peer)))
            continue;
        assert_int_equal(sim_port_view(r->sim, nd->guid, p->num, &v), 0);
        ret[n++] = (struct end){.guid = p->guid,
                                .lid = v.lid,
                                .lmc = v.lmc,
                                .leaf = nd->type == NODE_SWITCH ? nd->sw : fabric_peer_node(f, p)->sw,
                                .adapter = nd->type != NODE_SWITCH};
    }
    return n;
}

// Every adapter has 2^lmc LIDs of its own, and all are reached from everywhere.
static void judge(const struct rig *r, unsigned lmc)
{
    struct end *e = calloc(r->plan->num_ports, sizeof(*e));
    uint8_t *taken = calloc(65536, 1);
    uint32_t n = ends(r, e);
    char where[200];

    rig_judge(r, NULL, 0);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(e[i].lmc, e[i].adapter ? lmc : 0);
        assert_int_equal(e[i].lid % (1u << e[i].lmc), 0);
        for (uint32_t k = 0; k < 1u << e[i].lmc; k++)
            assert_int_equal(taken[e[i].lid + k]++, 0);
    }
    uint32_t step = n > 300 ? n / 97 : 1;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i % step; k < n; k += step)
            for (uint32_t x = 0; x < 1u << e[k].lmc; x++)
                if (sim_trace(r->sim, e[i].guid, (uint16_t)(e[k].lid + x), where, sizeof(where)) < 0)
                    fail_msg("from 0x%llx to LID %u: %s", (unsigned long long)e[i].guid, e[k].lid + x, where);
    free(taken);
    free(e);
}

// The least number of ways by which a leaf sends to the LIDs of an adapter on another one.
static unsigned least_ways(const struct rig *r)
{
    struct end *e = calloc(r->plan->num_ports, sizeof(*e));
    uint32_t n = ends(r, e);
    unsigned least = 255;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i % 7; k < n; k += 7) {
            bool used[256] = {false};
            unsigned ways = 0;
            if (!e[i].adapter || !e[k].adapter || e[i].leaf == e[k].leaf)
                continue;
            for (uint32_t x = 0; x < 1u << e[k].lmc; x++) {
                uint8_t out;
                assert_int_equal(
                    sim_lft(r->sim, fabric_switch(r->plan, e[i].leaf)->guid, (uint16_t)(e[k].lid + x), &out),
                    0);
                ways += !used[out];
                used[out] = true;
            }
            least = ways < least ? ways : least;
        }
    free(e);
    return least;
}

static uint64_t sets(const struct rig *r)
{
    return rig_count(r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO) +
           rig_count(r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE);
}

static void test_bring_up(void **state)
{
    static const char *const name[] = {"rail-256", "ft3-8-4"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig r;
        rig_init(&r, name[i], NULL);
        r.opts.lmc = 2;
        up(&r);
        const struct fabric *f = r.plan;
        assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO),
                         4 * f->num_links + f->num_switches);
        judge(&r, 2);
        print_message("%s: %u ways at least\n", name[i], least_ways(&r));
        assert_in_range(least_ways(&r), 2, 4);
        rig_down(&r);
        up(&r);
        assert_int_equal(sets(&r), 0);
        judge(&r, 2);
        rig_done(&r);
    }
}

// More LIDs: who can stay stays, nobody gets what was another's. Fewer, and as many again: everybody stays.
static void test_changes(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-64", NULL);
    up(&r);
    judge(&r, 0);
    struct end *before = calloc(r.plan->num_ports, sizeof(*before)),
               *after = calloc(r.plan->num_ports, sizeof(*after));
    uint32_t n = ends(&r, before);
    uint32_t *holder = calloc(65536, sizeof(*holder));
    for (uint32_t i = 0; i < n; i++)
        holder[before[i].lid] = i + 1;
    rig_down(&r);
    r.opts.lmc = 2;
    up(&r);
    judge(&r, 2);
    assert_int_equal(rig_events_of(&r, "lids-moved"), 1);
    ends(&r, after);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < 1u << after[i].lmc; k++)
            assert_true(holder[after[i].lid + k] == 0 || holder[after[i].lid + k] == i + 1);
    rig_down(&r);
    up(&r);
    assert_int_equal(sets(&r), 0);
    rig_down(&r);
    r.opts.lmc = 1;
    up(&r);
    judge(&r, 1);
    ends(&r, before);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(before[i].lid, after[i].lid);
    assert_int_equal(rig_events_of(&r, "lids-moved"), 1);
    rig_down(&r);
    r.opts.lmc = 0;
    up(&r);
    judge(&r, 0);
    ends(&r, before);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(before[i].lid, after[i].lid);
    rig_down(&r);
    r.opts.lmc = 2; // what lies between was given to nobody
    up(&r);
    judge(&r, 2);
    ends(&r, before);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(before[i].lid, after[i].lid);
    assert_int_equal(rig_events_of(&r, "lids-moved"), 1);
    free(holder);
    free(before);
    free(after);
    rig_done(&r);
}

// A device that does not keep its LMC has one LID, and nothing is asked of it again and again.
static void test_not_kept(void **state)
{
    struct rig r;
    uint64_t guid = 0, sets_before;
    (void)state;
    rig_init(&r, "rail-64", NULL);
    r.opts.lmc = 1;
    for (uint32_t i = 0; i < r.plan->num_nodes && guid == 0; i++)
        if (r.plan->node[i].type == NODE_CA && r.plan->sm_port.i != r.plan->node[i].first_port)
            guid = r.plan->node[i].guid;
    assert_int_equal(sim_set_field_not_kept(r.sim, guid, MAD_ATTR_PORT_INFO, "lmc", true), 0);
    up(&r);
    rig_run(&r, 30 * MONO_S);
    assert_int_equal(rig_events_of(&r, "settings-not-kept"), 1);
    for (int i = 0; i < 2; i++) { // the first may take its second LID out of the tables
        sets_before = sets(&r);
        sm_resweep(r.sm, "operator", false);
        rig_sweeps(&r, 1, 60);
        assert_true(rig_last(&r)->ok);
    }
    assert_int_equal(sets(&r), sets_before);
    const struct node *n = fabric_by_guid(sm_fabric(r.sm), guid);
    assert_int_equal(fabric_port(sm_fabric(r.sm), (port_id){n->first_port})->a.lmc, 0);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bring_up),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
