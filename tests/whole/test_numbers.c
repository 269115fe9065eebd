// SPDX-License-Identifier: Apache-2.0
// Numbers of rails and units, which people act on: none shifts while a leaf is away, over a restart neither.
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/whole/odd.h"

static const struct node *by_name(const struct odd *o, const char *name)
{
    for (uint32_t i = 0; i < o->r.plan->num_nodes; i++)
        if (strcmp(fabric_desc(o->r.plan, &o->r.plan->node[i]), name) == 0)
            return &o->r.plan->node[i];
    fail_msg("no node %s", name);
    return NULL;
}

// All that is seen has the plan's numbers; how many nodes of the plan are not seen.
static uint32_t away(const struct odd *o)
{
    const struct fabric *live = sm_fabric(o->r.sm), *plan = o->r.plan;
    for (uint32_t i = 0; i < live->num_nodes; i++) {
        const struct node *n = &live->node[i], *p = fabric_by_guid(plan, n->guid);
        assert_non_null(p);
        assert_int_equal(n->rail, p->rail);
        assert_int_equal(n->su, p->su);
        if (n->type == NODE_CA)
            assert_int_equal(live->port[n->first_port].rail, plan->port[p->first_port].rail);
    }
    return plan->num_nodes - live->num_nodes;
}

static void restart(struct odd *o)
{
    rig_down(&o->r);
    rig_up(&o->r);
    mark(o);
    rig_sweeps(&o->r, 1, 300);
    rig_run(&o->r, 12 * MONO_S);
    assert_int_equal(lft_sets(o), 0);
}

static void begin(struct odd *o, const char *fabric)
{
    memset(o, 0, sizeof(*o));
    rig_init(&o->r, fabric, &odd_wire);
    rig_up(&o->r);
    rig_sweeps(&o->r, 1, 300);
    rig_run(&o->r, 12 * MONO_S);
    o->lids = 2048;
    assert_int_equal(away(o), 0);
}

// The agent of a leaf is dead: its adapters are away with it.
static void test_silent_leaf(void **state)
{
    struct odd o;
    (void)state;
    begin(&o, "rail-256");
    const struct node *leaf = by_name(&o, "leaf-su01-rail3");
    assert_int_equal(sim_node_kill(o.r.sim, leaf->guid, true), 0);
    rig_run(&o.r, 12 * MONO_S);
    assert_int_equal(away(&o), 33);
    restart(&o);
    assert_int_equal(away(&o), 33);
    assert_int_equal(sim_node_kill(o.r.sim, leaf->guid, false), 0);
    rig_run(&o.r, 12 * MONO_S);
    assert_int_equal(away(&o), 0);
    done(&o);
}

// Of two units other rails without power, the first of a unit among them.
static void test_rails_without_power(void **state)
{
    static const char *const name[] = {"leaf-su01-rail3", "leaf-su02-rail0", "leaf-su02-rail5"};
    struct odd o;
    (void)state;
    begin(&o, "rail-512");
    for (unsigned i = 0; i < 3; i++) {
        all_links(&o, by_name(&o, name[i]), false);
        rig_run(&o.r, 12 * MONO_S);
        assert_int_equal(away(&o), 33 * (i + 1));
    }
    restart(&o);
    assert_int_equal(away(&o), 99);
    for (unsigned i = 0; i < 3; i++) {
        all_links(&o, by_name(&o, name[i]), true);
        rig_run(&o.r, 12 * MONO_S);
        assert_int_equal(away(&o), 33 * (2 - i));
    }
    done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_silent_leaf),
        cmocka_unit_test(test_rails_without_power),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
