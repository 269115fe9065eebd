// SPDX-License-Identifier: Apache-2.0
// The proof of a change says what a full proof says.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "tests/unit/routing/rig.h"

static void same_proof(const struct route_proof *a, const struct route_proof *b)
{
    assert_int_equal(a->ok, b->ok);
    assert_int_equal(a->fault, b->fault);
    assert_int_equal(a->credit_loop, b->credit_loop);
    assert_int_equal(a->pairs, b->pairs);
    assert_int_equal(a->disconnected, b->disconnected);
    assert_int_equal(a->unreached, b->unreached);
    assert_int_equal(a->max_hops, b->max_hops);
    assert_string_equal(a->counter_example, b->counter_example);
    assert_true(a->channels >= b->channels);
    assert_true(a->dependencies >= b->dependencies);
}

// Sets a few entries to anything.
static struct fabric_tables *spoil(const struct fabric *f, const struct fabric_tables *t, struct rng *r)
{
    struct fabric_tables *x = tables_copy_for(t, f, f, f->top_lid);
    for (uint32_t i = 0; i < 1 + rng_below(r, 3); i++) {
        uint32_t s = rng_below(r, f->num_switches), lid = 1 + rng_below(r, f->top_lid);
        tables_row(x, s)[lid] =
            (uint8_t)rng_below(r, rng_below(r, 2) ? 256 : fabric_switch(f, s)->num_ports + 1u);
    }
    return x;
}

struct walk {
    struct route_proof_state *state;
    struct fabric_tables *tables; // that state is of
    unsigned ok, bad;
};

static void step(struct walk *w, const struct fabric *f, struct fabric_tables *t, bool all)
{
    struct verify_opts o = {.all_switches = all};
    struct route_proof a, b;
    struct route_proof_state *next;
    route_verify(f, t, &o, &b);
    route_verify_change(w->state, w->tables, f, t, &o, &a, &next);
    same_proof(&a, &b);
    w->ok += a.ok;
    w->bad += !a.ok;
    if (!next) { // keeps to the last proved
        tables_unref(t);
        return;
    }
    route_proof_state_free(w->state);
    tables_unref(w->tables);
    w->state = next;
    w->tables = t;
}

// Faults come and go; tables are repaired ones, now and then with a wrong entry.
static void sequence(const struct fabric *f, struct rng *r, bool all, unsigned steps, struct walk *w)
{
    struct route_opts o = {.engine = ROUTE_UPDN};
    struct verify_opts v = {.all_switches = all};
    struct route_result ideal, x;
    struct route_base *b;
    struct route_proof proof;
    struct err e;
    struct rig_fault fault[8];
    uint32_t num = 0;
    assert_int_equal(route_compute(f, &o, &ideal, &e), 0);
    assert_int_equal(route_base_new(f, &ideal, &o, &b, &e), 0);
    assert_true(route_verify_keep(f, ideal.tables, &v, &proof, &w->state));
    w->tables = tables_ref(ideal.tables);
    for (unsigned i = 0; i < steps; i++) {
        if (num < 8 && (num == 0 || rng_below(r, 3)))
            rig_fault_make(f, r, &fault[num++]);
        else
            fault[rng_below(r, num)] = fault[num - 1], num--;
        const struct fabric *live = rig_live(f, fault, num);
        if (live->num_switches > 0) {
            assert_int_equal(route_repair_from(b, live, NULL, &x, &e), 0);
            if (rng_below(r, 3) == 0) {
                struct fabric_tables *bad = spoil(live, x.tables, r);
                step(w, live, bad, all);
            }
            step(w, live, x.tables, all);
        }
        fabric_unref(live);
    }
    route_proof_state_free(w->state);
    tables_unref(w->tables);
    tables_unref(ideal.tables);
    route_base_free(b);
    fabric_unref(f);
}

static void trees(void **state)
{
    static const char *const names[] = {"rail-64", "ft3-8-4", "ft3-16-4", "superpod-2"};
    struct rng r;
    struct walk w = {0};
    rng_init(&r, 41);
    for (unsigned i = 0; i < 8; i++)
        sequence(rig_named(names[i % 4]), &r, i >= 4, 10, &w);
    assert_true(w.ok > 0);
    assert_true(w.bad > 0);
}

static void any_graph(void **state)
{
    struct rng r;
    struct walk w = {0};
    rng_init(&r, 42);
    for (unsigned i = 0; i < 80; i++)
        sequence(rig_random(&r, 3 + rng_below(&r, 20), 3 + rng_below(&r, 25)), &r, i % 2, 12, &w);
    assert_true(w.ok > 0);
    assert_true(w.bad > 0);
}

// A leaf whose last host goes is no source any more; when it comes back it is one again, and what was lost
// from its table meanwhile is found.
static void last_host(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id a = rig_switch(&r, 8, "a"), b = rig_switch(&r, 8, "b");
    rig_cable(&r, a, b);
    node_id ha = rig_host(&r, a), hb = rig_host(&r, b);
    const struct fabric *f = rig_done(&r);
    struct rig_fault gone = {.kind = RIG_NODE, .guid = f->node[ha.i].guid};
    const struct fabric *live = rig_live(f, &gone, 1);
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN), *u;
    struct verify_opts o = {.all_switches = false};
    struct route_proof p;
    struct route_proof_state *s, *s2, *s3;
    assert_true(route_verify_keep(f, t, &o, &p, &s));
    assert_int_equal(p.pairs, 8); // two leaves, two switches' and two hosts' LIDs
    assert_true(route_verify_change(s, t, live, t, &o, &p, &s2));
    assert_int_equal(p.pairs, 3);
    assert_non_null(s2);
    // Nobody sends from a: without an entry there all is well, until somebody does.
    u = tables_copy_for(t, live, live, t->top_lid);
    uint16_t lid = f->port[f->node[hb.i].first_port].a.lid;
    tables_row(u, f->node[a.i].sw)[lid] = LFT_DROP;
    assert_true(route_verify_change(s2, t, live, u, &o, &p, &s3));
    route_proof_state_free(s2);
    assert_false(route_verify_change(s3, u, f, u, &o, &p, &s2));
    assert_int_equal(p.unreached, 1);
    assert_null(s2);
    assert_true(route_verify_change(s3, u, f, t, &o, &p, &s2));
    assert_int_equal(p.pairs, 8);
    route_proof_state_free(s);
    route_proof_state_free(s2);
    route_proof_state_free(s3);
    tables_unref(t);
    tables_unref(u);
    fabric_unref(f);
    fabric_unref(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_host),
        cmocka_unit_test(trees),
        cmocka_unit_test(any_graph),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
