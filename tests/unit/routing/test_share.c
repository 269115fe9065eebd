// SPDX-License-Identifier: Apache-2.0
// What lost its port goes to the others by what they find beyond, as the blueprint has it.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "fabric/builder.h"
#include "lib/err.h"
#include "routing/repair_priv.h"
#include "tests/unit/routing/rig.h"

// --- the choice by shares ---

static uint64_t draw(struct rng *r)
{
    return hash_mix64(rng_u64(r));
}

static void shares_are_kept(void **state)
{
    static const uint32_t share[4] = {255, 128, 64, 1};
    unsigned won[4] = {0}, rounds = 100000;
    struct rng r;
    rng_init(&r, 5);
    for (unsigned i = 0; i < rounds; i++) {
        struct rhash best = {0};
        unsigned at = 0;
        for (unsigned k = 0; k < 4; k++) {
            struct rhash x = {draw(&r), share[k]};
            if (k == 0 || rheavier(x, best)) {
                best = x;
                at = k;
            }
        }
        won[at]++;
    }
    for (unsigned k = 0; k < 4; k++) {
        double want = (double)rounds * share[k] / (255 + 128 + 64 + 1);
        if (won[k] < want * 0.97 - 30 || won[k] > want * 1.03 + 30)
            fail_msg("share %u of 448: %u of %u, not %.0f", share[k], won[k], rounds, want);
    }
}

// Which of two is heavier does not hang on a third, and never both are.
static void a_total_order(void **state)
{
    struct rng r;
    rng_init(&r, 6);
    for (unsigned i = 0; i < 100000; i++) {
        struct rhash x[3];
        for (unsigned k = 0; k < 3; k++) // near the ends too
            x[k] =
                (struct rhash){i % 3 == 0 ? draw(&r) >> rng_below(&r, 64) : ~(draw(&r) >> rng_below(&r, 64)),
                               1 + rng_below(&r, 255)};
        if (x[0].hash == x[1].hash || x[1].hash == x[2].hash || x[0].hash == x[2].hash)
            continue;
        assert_true(rheavier(x[0], x[1]) != rheavier(x[1], x[0]));
        assert_false(rheavier(x[0], x[1]) && rheavier(x[1], x[2]) && rheavier(x[2], x[0]));
        x[1].share = x[0].share;
        assert_int_equal(rheavier(x[0], x[1]), x[0].hash > x[1].hash);
    }
}

// --- shares of a blueprint ---

struct shown {
    const struct fabric *f;
    struct route_result ideal;
    struct route_base *b;
};

static void show(struct shown *x, const struct fabric *f)
{
    struct route_opts o = {.engine = ROUTE_RAIL};
    struct err e = {0};
    x->f = f;
    assert_int_equal(route_compute(f, &o, &x->ideal, &e), 0);
    assert_int_equal(route_base_new(f, &x->ideal, &o, &x->b, &e), 0);
}

static void hide(struct shown *x)
{
    route_base_free(x->b);
    tables_unref(x->ideal.tables);
    fabric_unref(x->f);
}

static uint32_t share(const struct shown *x, node_id from, node_id leaf)
{
    const struct route_base *b = x->b;
    assert_non_null(b->share);
    uint32_t col = b->share_of[x->f->node[leaf.i].sw];
    assert_int_not_equal(col, ID_NONE);
    return b->share[(size_t)x->f->node[from.i].sw * b->shares + col];
}

// Where all switches of a level are alike there is nothing to weigh.
static void even_trees(void **state)
{
    static const char *const names[] = {"rail-256", "ft3-16-4", "ft3-8-4", "superpod-4"};
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct shown x;
        show(&x, rig_named(names[i]));
        assert_null(x.b->share);
        hide(&x);
    }
}

static void cables(struct rig *r, node_id a, node_id z, unsigned n)
{
    while (n-- > 0)
        rig_cable(r, a, z);
}

#define LEAVES 6
#define HOSTS 30

struct two {
    node_id leaf[LEAVES], spine[3];
};

// Three spines, two cables to each leaf but one from spine 1 to leaf 0.
static const struct fabric *two_levels(struct two *x)
{
    struct rig r;
    rig_start(&r);
    for (unsigned i = 0; i < 3; i++)
        x->spine[i] = rig_switch(&r, 20, "spine");
    for (unsigned i = 0; i < LEAVES; i++) {
        x->leaf[i] = rig_switch(&r, 220, "leaf");
        for (unsigned k = 0; k < 3; k++)
            cables(&r, x->leaf[i], x->spine[k], i == 0 && k == 1 ? 1 : 2);
        for (unsigned k = 0; k < (i == 0 ? 5 * HOSTS : HOSTS); k++)
            rig_host(&r, x->leaf[i]);
    }
    return rig_done(&r);
}

static void fewer_cables_down(void **state)
{
    struct two t;
    struct shown x;
    show(&x, two_levels(&t));
    assert_int_equal(share(&x, t.spine[0], t.leaf[0]), 255);
    assert_int_equal(share(&x, t.spine[0], t.leaf[3]), 255);
    assert_in_range(share(&x, t.spine[1], t.leaf[0]), 135, 142); // 1 of 11 / 6
    assert_int_equal(share(&x, t.spine[1], t.leaf[3]), 255);
    hide(&x);
}

// Two pods of two spines; spine 1 of pod 0 has one cable to each core, all others have two.
static void fewer_cables_up(void **state)
{
    node_id core[2], spine[2][2], leaf[2][2];
    struct shown x;
    struct rig r;
    rig_start(&r);
    for (unsigned i = 0; i < 2; i++)
        core[i] = rig_switch(&r, 20, "core");
    for (unsigned p = 0; p < 2; p++) {
        for (unsigned i = 0; i < 2; i++) {
            spine[p][i] = rig_switch(&r, 20, "spine");
            cables(&r, spine[p][i], core[0], p == 0 && i == 1 ? 1 : 2);
            cables(&r, spine[p][i], core[1], p == 0 && i == 1 ? 1 : 2);
        }
        for (unsigned i = 0; i < 2; i++) {
            leaf[p][i] = rig_switch(&r, 20, "leaf");
            cables(&r, leaf[p][i], spine[p][0], 2);
            cables(&r, leaf[p][i], spine[p][1], 2);
            for (unsigned k = 0; k < 4; k++)
                rig_host(&r, leaf[p][i]);
        }
    }
    show(&x, rig_done(&r));
    assert_int_equal(share(&x, spine[0][0], leaf[1][0]), 255);
    assert_in_range(share(&x, spine[0][1], leaf[1][0]), 127, 128);
    assert_int_equal(share(&x, spine[0][1], leaf[0][1]), 255);     // within the pod it is as good
    assert_in_range(share(&x, spine[1][1], leaf[0][0]), 215, 225); // what the cores have
    assert_int_equal(share(&x, core[0], leaf[1][0]), 255);
    assert_in_range(share(&x, core[0], leaf[0][0]), 215, 225); // 3 cables into pod 0, 4 into pod 1
    hide(&x);
}

// --- what repair makes of them ---

static const struct fabric *without(const struct fabric *f, node_id a, node_id z, unsigned num)
{
    struct builder *b = builder_from(f);
    const struct node *n = &f->node[a.i];
    for (unsigned p = 1; p <= n->num_ports && num > 0; p++) {
        const struct port *q = &f->port[n->first_port + p];
        const struct node *peer = fabric_peer_node(f, q);
        if (peer == &f->node[z.i]) {
            builder_unlink(b, q->node, q->num);
            num--;
        }
    }
    assert_int_equal(num, 0);
    return builder_seal(b, f->generation + 1, NULL);
}

static const struct node *next_of(const struct fabric *f, const struct fabric_tables *t, node_id sw,
                                  uint16_t lid)
{
    const struct node *n = &f->node[sw.i];
    uint8_t out = tables_port(t, n->sw, lid);
    return out != 0 && out <= n->num_ports ? fabric_peer_node(f, &f->port[n->first_port + out]) : NULL;
}

// All leaves but leaf 0 lose their cables to spine 2: what they sent to leaf 0 over it goes to spine 0 and 1
// as these have cables there, what they sent elsewhere to both alike.
static void displaced_by_share(void **state)
{
    struct two t;
    struct shown x;
    unsigned to[2][2] = {{0}};
    show(&x, two_levels(&t));
    const struct fabric *live = fabric_ref(x.f);
    for (unsigned i = 1; i < LEAVES; i++) {
        const struct fabric *next = without(live, t.leaf[i], t.spine[2], 2);
        fabric_unref(live);
        live = next;
    }
    struct route_result r;
    struct err e = {0};
    assert_int_equal(route_repair_from(x.b, live, NULL, &r, &e), 0);
    rig_prove(live, r.tables);
    for (unsigned i = 1; i < LEAVES; i++) {
        for (uint16_t lid = 1; lid <= live->top_lid; lid++) {
            uint32_t sw;
            uint8_t port;
            const struct node *was = next_of(x.f, x.ideal.tables, t.leaf[i], lid);
            if (!rattachment(live, live->lid_port[lid], &sw, &port) || port == 0 ||
                was != &x.f->node[t.spine[2].i])
                continue;
            const struct node *now = next_of(live, r.tables, t.leaf[i], lid);
            assert_true(now == &live->node[t.spine[0].i] || now == &live->node[t.spine[1].i]);
            to[sw != live->node[t.leaf[0].i].sw][now == &live->node[t.spine[1].i]]++;
        }
    }
    unsigned some = to[0][0] + to[0][1], many = to[1][0] + to[1][1];
    assert_true(some >= 200 && many >= 150);
    double part = (double)to[0][1] / some, even = (double)to[1][1] / many;
    if (part < 0.29 || part > 0.41) // 0.35 by shares
        fail_msg("%u of %u go to leaf 0 over the spine with half the cables", to[0][1], some);
    if (even < 0.42 || even > 0.58)
        fail_msg("%u of %u go elsewhere over it", to[1][1], many);
    tables_unref(r.tables);
    fabric_unref(live);
    hide(&x);
}

// On uneven trees too what a further fault changes had lost its port, or what its port led to.
static void further_faults(void **state)
{
    struct rng rng;
    rng_init(&rng, 9);
    uint64_t changed = 0;
    for (unsigned round = 0; round < 10; round++) {
        struct two t;
        struct shown x;
        struct route_result was, r;
        struct err e = {0};
        show(&x, two_levels(&t));
        const struct fabric *live = fabric_ref(x.f);
        assert_int_equal(route_repair_from(x.b, live, NULL, &was, &e), 0);
        for (unsigned i = 0; i < 6; i++) {
            node_id leaf = t.leaf[rng_below(&rng, LEAVES)], spine = t.spine[rng_below(&rng, 3)];
            bool there = false;
            for (unsigned p = 1; p <= live->node[leaf.i].num_ports; p++)
                there |= fabric_peer_node(live, &live->port[live->node[leaf.i].first_port + p]) ==
                         &live->node[spine.i];
            if (!there)
                continue;
            const struct fabric *next = without(live, leaf, spine, 1);
            assert_int_equal(route_repair_from(x.b, next, NULL, &r, &e), 0);
            rig_prove(next, r.tables);
            for (uint32_t s = 0; s < next->num_switches; s++) {
                const struct node *n = fabric_switch(next, s);
                for (uint16_t lid = 1; lid <= next->top_lid; lid++) {
                    uint8_t old = tables_port(was.tables, s, lid);
                    if (old == tables_port(r.tables, s, lid))
                        continue;
                    const struct node *w = fabric_peer_node(next, &next->port[n->first_port + old]);
                    uint32_t end;
                    uint8_t port;
                    assert_true(rattachment(next, next->lid_port[lid], &end, &port));
                    if (n->tier != 0 || fabric_switch(next, end)->tier != 0)
                        continue;
                    changed++;
                    if (!w) // dead
                        continue;
                    // It led to a spine that has lost its last cable to where the LID hangs.
                    for (unsigned p = 1; p <= w->num_ports; p++)
                        assert_true(fabric_peer_node(next, &next->port[w->first_port + p]) !=
                                    fabric_switch(next, end));
                }
            }
            tables_unref(was.tables);
            was = r;
            fabric_unref(live);
            live = next;
        }
        tables_unref(was.tables);
        fabric_unref(live);
        hide(&x);
    }
    assert_true(changed > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_kept), cmocka_unit_test(a_total_order),
        cmocka_unit_test(even_trees),      cmocka_unit_test(fewer_cables_down),
        cmocka_unit_test(fewer_cables_up), cmocka_unit_test(displaced_by_share),
        cmocka_unit_test(further_faults),
    };
    return cmocka_run_group_tests_name("routing/share", tests, NULL, NULL);
}
