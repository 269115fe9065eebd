// SPDX-License-Identifier: Apache-2.0
// What the manager believes of a fabric without having asked just now, and how it is put right where that is
// wrong: one rule a test. Each of them was found by storms (test_storm.c) first.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "mad/mad.h"
#include "tests/whole/odd.h"
#include "tests/whole/storm.h"

// Takes the reference to f.
static void up_with(struct odd *o, const struct fabric *f, const struct sim_opts *sim)
{
    memset(o, 0, sizeof(*o));
    rig_init_fabric(&o->r, f, sim);
    o->r.in_order = true;
    rig_up(&o->r);
    rig_sweeps(&o->r, 1, 300);
    assert_true(rig_last(&o->r)->ok);
    rig_run(&o->r, 3 * MONO_S);
    rig_judge(&o->r, NULL, 0);
    o->lids = (sm_fabric(o->r.sm)->top_lid / LFT_BLOCK + 2u) * LFT_BLOCK;
    o->before = tables(o);
    mark(o);
}

static const struct fabric *made(const char *name)
{
    struct err e = {0};
    struct findings fs = {0};
    const struct fabric *f = topogen_or_file(name, &fs, &e);
    findings_done(&fs);
    assert_non_null(f);
    return f;
}

// What the sweeps since the mark have been about, for whoever looks at a failure.
static void tell_sweeps(const struct odd *o)
{
    for (unsigned i = o->r.sweeps - o->sweeps; i-- > 0;) {
        const struct sm_sweep *s = sm_history(o->r.sm, i);
        printf("# %s, %s, %u devices, %llu MADs, %llu times out, %.1f ms: %s\n", s->cause,
               s->full ? "full" : "partial", s->devices, (unsigned long long)s->mads,
               (unsigned long long)s->timeouts, (double)s->ns / 1e6, s->text);
    }
}

// --- the death of a switch is one event ---

// Hops from us to each node when `without` is not there (ID_NONE: all are); UINT32_MAX: no way. Returns how
// many nodes have none.
static unsigned hops_without(const struct fabric *f, uint32_t without, uint32_t *ret_hops)
{
    uint32_t *queue = xcalloc(f->num_nodes, sizeof(*queue)), n = 0;
    memset(ret_hops, 0xff, f->num_nodes * sizeof(*ret_hops));
    queue[n++] = f->port[f->sm_port.i].node.i;
    ret_hops[queue[0]] = 0;
    for (uint32_t head = 0; head < n; head++) {
        const struct node *x = &f->node[queue[head]];
        for (unsigned num = 1; num <= x->num_ports && (x->type == NODE_SWITCH || head == 0); num++) {
            const struct node *z = fabric_peer_node(f, fabric_port(f, fabric_port_at(f, x, num)));
            uint32_t i = z != NULL ? (uint32_t)(z - f->node) : without;
            if (i == without || ret_hops[i] != UINT32_MAX)
                continue;
            ret_hops[i] = ret_hops[x - f->node] + 1;
            queue[n++] = i;
        }
    }
    free(queue);
    return f->num_nodes - n;
}

// Whether the way to a switch next to this one is longer without it.
static bool hides_others(const struct fabric *f, uint32_t i, const uint32_t *hops)
{
    uint32_t *all = xcalloc(f->num_nodes, sizeof(*all));
    bool hides = false;
    hops_without(f, ID_NONE, all);
    for (unsigned num = 1; num <= f->node[i].num_ports; num++) {
        const struct node *z = fabric_peer_node(f, fabric_port(f, fabric_port_at(f, &f->node[i], num)));
        uint32_t k = z != NULL && z->type == NODE_SWITCH ? (uint32_t)(z - f->node) : i;
        hides |= k != i && hops[k] != UINT32_MAX && hops[k] > all[k];
    }
    free(all);
    return hides;
}

enum death { BY_LINKS, BY_BOOT, UNTOLD, DEATHS };

// Events since the mark are those of `n` nodes, each once, and nothing else.
static void told_once(const struct odd *o, const struct fabric *f, const uint32_t *hops, unsigned n,
                      bool gone, const char *what)
{
    const char *kind = gone ? "node-removed" : "node-added";
    if (rig_events_of(&o->r, kind) != n || o->r.events - o->events != n) {
        tell_sweeps(o);
        fail_msg("%s: not %u events %s but\n%s", what, n, kind, o->r.log.len ? o->r.log.data : "none");
    }
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const char *desc = fabric_desc(f, &f->node[i]);
        bool here = hops[i] != UINT32_MAX;
        if (!here && strstr(o->r.log.data, desc) == NULL)
            fail_msg("%s: no event of %s but\n%s", what, desc, o->r.log.data);
        assert_int_equal(fabric_by_guid(sm_fabric(o->r.sm), f->node[i].guid) != NULL, here || !gone);
    }
}

static void dies_once(struct odd *o, const char *name, uint32_t i, enum death how)
{
    const struct fabric *f = o->r.plan;
    const struct node *sw = &f->node[i];
    uint32_t *hops = xcalloc(f->num_nodes, sizeof(*hops));
    unsigned n = hops_without(f, i, hops);
    char what[200];
    snprintf(what, sizeof(what), "%s, %s, %u", name, fabric_desc(f, sw), how);

    if (n <= 20 && !hides_others(f, i, hops)) { // more are summed up
        if (how == UNTOLD)
            sim_trap_loss(o->r.sim, 1);
        mark(o);
        if (how == BY_BOOT)
            assert_int_equal(sim_node_boot(o->r.sim, sw->guid, 6 * MONO_S, 6500 * MONO_MS), 0);
        else
            all_links(o, sw, false);
        rig_run(&o->r, 5 * MONO_S);
        told_once(o, f, hops, n, true, what);
        mark(o);
        if (how != BY_BOOT)
            all_links(o, sw, true);
        rig_run(&o->r, 10 * MONO_S);
        sim_trap_loss(o->r.sim, 0);
        told_once(o, f, hops, n, false, what);
        rig_judge(&o->r, NULL, 0);
        assert_int_equal(changed_blocks(o), 0);
    }
    free(hops);
}

static void all_die_once(const struct fabric *f, const char *name)
{
    struct odd o;
    up_with(&o, f, &odd_wire);
    const struct node *own = own_leaf(&o);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (f->node[i].type == NODE_SWITCH && &f->node[i] != own)
            for (enum death how = BY_LINKS; how < DEATHS; how++)
                dies_once(&o, name, i, how);
    done(&o);
}

static void test_death_is_one_event(void **state)
{
    (void)state;
    all_die_once(made("rail-16"), "rail-16");
    all_die_once(made("ft3-4-4"), "ft3-4-4");
    all_die_once(made("ft3-8-2"), "ft3-8-2");
}

static void test_death_in_a_mesh_is_one_event(void **state)
{
    (void)state;
    for (uint64_t seed = 1, n = 0; n < 12; seed++) {
        struct rng rng;
        const char *name;
        char text[40];
        rng_init(&rng, seed);
        const struct fabric *f = plan_of(&rng, &name);
        snprintf(text, sizeof(text), "%s %llu", name, (unsigned long long)seed);
        if (strcmp(name, "mesh") != 0 && strcmp(name, "two aggs") != 0) {
            fabric_unref(f);
            continue;
        }
        n++;
        all_die_once(f, text);
    }
}

int main(void)
{
    if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK) == 0)
        setenv("TMPDIR", "/dev/shm", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_death_is_one_event),
        cmocka_unit_test(test_death_in_a_mesh_is_one_event),
    };
    if (getenv("ODD") != NULL)
        cmocka_set_test_filter(getenv("ODD"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
