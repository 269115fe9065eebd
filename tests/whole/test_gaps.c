// SPDX-License-Identifier: Apache-2.0
// Computed tables that the proof refuses: what holds of them is programmed and the gap is told; where nothing
// does, the switches keep what they have. The engines leave no gaps, so route_repair_from() is wrapped
// (--wrap of the linker) and damages what they give.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mad/mad.h"
#include "routing/route.h"
#include "tests/whole/rig.h"

static enum { AS_THEY_ARE, ONE_ENTRY, OUR_LID, ALL } damage;
static uint64_t gap_switch;
static uint16_t gap_lid;

int __real_route_repair_from(const struct route_base *b, const struct fabric *f, struct par *par,
                             struct route_result *ret, struct err *e);
int __wrap_route_repair_from(const struct route_base *b, const struct fabric *f, struct par *par,
                             struct route_result *ret, struct err *e);

// Runs on a worker, while the test waits for the sweep to end.
int __wrap_route_repair_from(const struct route_base *b, const struct fabric *f, struct par *par,
                             struct route_result *ret, struct err *e)
{
    int rc = __real_route_repair_from(b, f, par, ret, e);
    if (rc != 0 || damage == AS_THEY_ARE)
        return rc;
    struct fabric_tables *t = tables_copy_for(ret->tables, f, f, ret->tables->top_lid);
    uint32_t leaf = 0;
    while (fabric_switch(f, leaf)->tier != 0 || fabric_peer_node(f, fabric_port(f, f->sm_port))->sw == leaf)
        leaf++;
    gap_switch = fabric_switch(f, leaf)->guid;
    for (uint32_t i = 0; i < f->num_ports; i++) { // the last host on another leaf
        const struct node *n = fabric_node(f, f->port[i].node), *sw = fabric_peer_node(f, &f->port[i]);
        if (n->role == ROLE_HOST && sw && sw->type == NODE_SWITCH && sw->sw != leaf && f->port[i].a.lid != 0)
            gap_lid = f->port[i].a.lid;
    }
    if (damage == ONE_ENTRY)
        tables_row(t, leaf)[gap_lid] = LFT_DROP;
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        if (damage == OUR_LID)
            tables_row(t, sw)[fabric_port(f, f->sm_port)->a.lid] = LFT_DROP;
        if (damage == ALL)
            memset(tables_row(t, sw), LFT_DROP, t->lids);
    }
    tables_seal(t, false);
    tables_unref(ret->tables);
    ret->tables = t;
    return 0;
}

static bool finding(const struct rig *r, const char *code)
{
    const struct findings *f = sm_findings(r->sm);
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->item[i].code, code) == 0)
            return true;
    return false;
}

static void sweep(struct rig *r)
{
    sm_resweep(r->sm, "operator", false);
    rig_sweeps(r, 1, 300);
}

static void test_gap_is_told(void **state)
{
    struct rig r;
    struct sm_status st;
    uint8_t out;
    (void)state;
    damage = ONE_ENTRY;
    rig_init(&r, "rail-64", NULL);
    rig_up(&r);
    rig_sweeps(&r, 1, 300);
    assert_true(rig_last(&r)->ok);
    sm_get_status(r.sm, &st);
    assert_true(st.up);
    assert_false(st.proof.ok);
    assert_int_equal(st.proof.unreached, 1);
    assert_non_null(strstr(st.proof.counter_example, "no entry"));
    assert_true(finding(&r, "routes-incomplete"));
    unsigned missing = 0;
    for (uint32_t sw = 0; sw < r.plan->num_switches; sw++)
        for (uint16_t lid = 1; lid <= sm_fabric(r.sm)->top_lid; lid++) {
            assert_int_equal(sim_lft(r.sim, fabric_switch(r.plan, sw)->guid, lid, &out), 0);
            bool gap = fabric_switch(r.plan, sw)->guid == gap_switch && lid == gap_lid;
            assert_int_equal(out == LFT_DROP, gap || sm_fabric(r.sm)->lid_port[lid] == ID_NONE);
            missing += gap;
        }
    assert_int_equal(missing, 1);

    sweep(&r); // still there, but no news
    assert_true(finding(&r, "routes-incomplete"));
    assert_int_equal(rig_events_of(&r, "routes-incomplete"), 1);

    damage = AS_THEY_ARE;
    sweep(&r);
    sm_get_status(r.sm, &st);
    assert_true(st.proof.ok);
    assert_false(finding(&r, "routes-incomplete"));
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

// A part by which nobody reaches the manager, or nothing at all, is refused: the old tables stay.
static void test_refused(void **state)
{
    struct rig r;
    (void)state;
    damage = AS_THEY_ARE;
    rig_init(&r, "rail-64", NULL);
    rig_up(&r);
    rig_sweeps(&r, 1, 300);
    assert_true(rig_last(&r)->ok);
    uint64_t sets = rig_count(&r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE);
    for (unsigned i = 0; i < 2; i++) {
        damage = i == 0 ? OUR_LID : ALL;
        sweep(&r);
        assert_false(rig_last(&r)->ok);
        assert_true(rig_events_of(&r, "routes-refused") >= 1); // told once while the reason stays the same
        assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE), sets);
        rig_judge(&r, NULL, 0);
    }
    damage = AS_THEY_ARE;
    sweep(&r);
    assert_true(rig_last(&r)->ok);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gap_is_told),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
