// SPDX-License-Identifier: Apache-2.0
// Odd input: from every engine come proved tables, or an error that says what is wrong; never a crash.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/builder.h"
#include "fabric/reader.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "tests/unit/routing/rig.h"

static const enum route_engine engines[] = {ROUTE_AUTO, ROUTE_RAIL, ROUTE_UPDN, ROUTE_SSSP, ROUTE_MINHOP};
#define ENGINES (sizeof(engines) / sizeof(engines[0]))

// Repairs too, with nothing and with some of it dead.
static void routed(const struct fabric *f, const struct route_opts *o, uint64_t disconnected)
{
    struct route_result r, x;
    struct verify_opts v = {.all_switches = true, .allow_credit_loops = o->engine == ROUTE_MINHOP};
    struct route_proof p;
    struct err e = {0};
    struct rng rng;
    if (route_compute(f, o, &r, &e)) {
        assert_true(e.text[0] != 0 && e.code < 0);
        return;
    }
    if (!route_verify(f, r.tables, &v, &p) || p.unreached)
        fail_msg("%s: %lu unreached: %s", route_engine_name(o->engine), (unsigned long)p.unreached,
                 p.counter_example);
    assert_int_equal(p.disconnected, disconnected);
    rng_init(&rng, 3);
    for (unsigned i = 0; i < (f->num_switches > 2 ? 4 : 1); i++) {
        struct rig_fault fault[3];
        for (unsigned k = 0; k < i; k++)
            rig_fault_make(f, &rng, &fault[k]);
        const struct fabric *live = i ? rig_live(f, fault, i) : fabric_ref(f);
        if (route_repair(f, &r, live, o, &x, &e) == 0) {
            if (!route_verify(live, x.tables, &v, &p) || p.unreached)
                fail_msg("%s, %u faults: %s", route_engine_name(o->engine), i, p.counter_example);
            tables_unref(x.tables);
        } else {
            assert_true(e.text[0] != 0);
        }
        fabric_unref(live);
    }
    tables_unref(r.tables);
}

static void by_all(const struct fabric *f, uint64_t disconnected)
{
    for (unsigned i = 0; i < ENGINES; i++)
        routed(f, &(struct route_opts){.engine = engines[i]}, disconnected);
    fabric_unref(f);
}

static void nothing_at_all(void **state)
{
    struct rig r;
    rig_start(&r);
    by_all(rig_done(&r), 0);
    rig_start(&r);
    rig_switch(&r, 8, "alone");
    by_all(rig_done(&r), 0);
    rig_start(&r);
    rig_ca(&r, 2, "alone mlx5_0");
    by_all(rig_done(&r), 0);
}

static node_id star(struct rig *r, unsigned leaves, unsigned hosts)
{
    node_id spine = rig_switch(r, 60, "spine");
    for (unsigned i = 0; i < leaves; i++) {
        node_id leaf = rig_switch(r, 60, "leaf");
        rig_cable(r, leaf, spine);
        for (unsigned k = 0; k < hosts; k++)
            rig_host(r, leaf);
    }
    return spine;
}

// Each part is routed, and the proof says how many pairs no cable joins.
static void parts(void **state)
{
    struct rig r;
    rig_start(&r);
    star(&r, 2, 3); // 3 switches, 9 LIDs
    star(&r, 3, 1); // 4 switches, 7 LIDs
    rig_switch(&r, 8, "alone");
    by_all(rig_done(&r), 3 * 8 + 4 * 10 + 1 * 16);
}

static void no_hosts(void **state)
{
    struct rig r;
    rig_start(&r);
    star(&r, 4, 0);
    by_all(rig_done(&r), 0);
}

static void hosts_on_all(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id spine[2] = {star(&r, 3, 2), rig_switch(&r, 60, "spine")};
    rig_cable(&r, spine[0], spine[1]); // of one tier
    for (unsigned i = 0; i < 2; i++) {
        rig_host(&r, spine[i]);
        rig_host(&r, spine[i]);
        rig_an(&r, spine[i]);
    }
    by_all(rig_done(&r), 0);
}

static node_id router(struct rig *r, node_id sw)
{
    node_id id;
    uint64_t guid = r->next_guid;
    r->next_guid += 0x10;
    struct node_attrs a = {.guid = guid, .sys_guid = guid, .type = NODE_ROUTER, .num_ports = 2};
    assert_int_equal(builder_node(r->b, &a, "router", 6, &id, NULL), 0);
    r->next_port[id.i] = 1;
    for (unsigned i = 1; i <= 2; i++)
        assert_int_equal(builder_port_guid(r->b, id, i, guid + i), 0);
    rig_cable(r, sw, id);
    return id;
}

static void routers_and_gateways(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id spine = star(&r, 3, 2), top = star(&r, 2, 2);
    rig_cable(&r, router(&r, spine), top); // one router into both parts
    rig_cable(&r, rig_ca(&r, 4, "gateway mlx5_0"), spine);
    const struct fabric *f = rig_done(&r);
    assert_int_equal(f->num_switches, 7);
    for (unsigned i = 0; i < ENGINES; i++) {
        struct route_opts o = {.engine = engines[i]};
        struct route_result x;
        struct verify_opts v = {.all_switches = true, .allow_credit_loops = true};
        struct route_proof p;
        struct err e = {0};
        if (route_compute(f, &o, &x, &e))
            continue;
        assert_true(route_verify(f, x.tables, &v, &p)); // nothing leads through a router
        assert_int_equal(p.unreached, 0);
        assert_true(p.disconnected > 0);
        tables_unref(x.tables);
    }
    fabric_unref(f);
}

static void widest(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id a = rig_switch(&r, SWITCH_MAX_PORTS, "a"), z = rig_switch(&r, SWITCH_MAX_PORTS, "z"),
            x = rig_switch(&r, SWITCH_MAX_PORTS, "x");
    for (unsigned i = 0; i < SWITCH_MAX_PORTS / 2; i++) {
        rig_cable(&r, a, z);
        rig_cable(&r, a, x);
    }
    for (unsigned i = 0; i < SWITCH_MAX_PORTS / 2; i++) {
        rig_host(&r, z);
        rig_host(&r, x);
    }
    const struct fabric *f = rig_done(&r);
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    for (unsigned i = 0; i < 3; i++) {
        uint32_t by[256] = {0};
        for (uint32_t lid = 1; lid <= f->top_lid; lid++)
            by[tables_port(t, i, (uint16_t)lid)]++;
        for (unsigned num = 1; num <= SWITCH_MAX_PORTS; num++)
            assert_in_range(by[num], 1, 3);
    }
    tables_unref(t);
    by_all(f, 0);
}

// Roots that are leaves, all switches, one of each part, or nobody.
static void odd_roots(void **state)
{
    const struct fabric *f = rig_named("ft3-8-4");
    uint64_t *roots = xcalloc(f->num_switches + 1, sizeof(*roots));
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned kind = 0; kind < 4; kind++) {
            struct route_opts o = {.engine = engines[i], .root_guids = roots};
            for (uint32_t s = 0; s < f->num_switches; s++) {
                const struct node *n = fabric_switch(f, s);
                if (kind == 0 ? n->tier == 0 : kind == 1 ? s == 0 : kind == 2 ? n->tier != 1 : true)
                    roots[o.num_roots++] = n->guid;
            }
            roots[o.num_roots++] = 0x77; // and one that is not there
            routed(f, &o, 0);
        }
        struct route_opts o = {.engine = engines[i], .root_guids = roots, .num_roots = 1};
        struct route_result r;
        struct err e = {0};
        roots[0] = 0x77;
        assert_int_equal(route_compute(f, &o, &r, &e), -ENOENT);
        assert_non_null(strstr(e.text, "0x0000000000000077"));
        assert_non_null(strstr(e.text, "correct"));
    }
    free(roots);
    fabric_unref(f);
}

// A file in which one end only tells of a cable.
static void told_by_one_end(void **state)
{
    static const char text[] = "Switch\t8 \"S-0000000000000001\"\t# \"one\" base port 0 lid 1 lmc 0\n"
                               "[1]\t\"S-0000000000000002\"[1]\t\t# \"two\" lid 2 4xHDR\n"
                               "[3]\t\"H-0000000000000010\"[1](11) \t\t# \"a mlx5_0\" lid 4 4xHDR\n"
                               "\n"
                               "Switch\t8 \"S-0000000000000002\"\t# \"two\" base port 0 lid 2 lmc 0\n"
                               "[2]\t\"H-0000000000000020\"[1](21) \t\t# \"b mlx5_0\" lid 5 4xHDR\n"
                               "\n"
                               "Ca\t1 \"H-0000000000000020\"\t\t# \"b mlx5_0\"\n"
                               "[1](21) \t\"S-0000000000000002\"[2]\t\t# lid 5 lmc 0 \"two\" lid 2 4xHDR\n"
                               "\n"
                               "Ca\t1 \"H-0000000000000010\"\t\t# \"a mlx5_0\"\n"
                               "[1](11) \t\"S-0000000000000001\"[4]\t\t# lid 4 lmc 0 \"one\" lid 1 4xHDR\n";
    struct err e = {0};
    const struct fabric *f = reader_parse(text, sizeof(text) - 1, "one-way", NULL, &e);
    assert_non_null(f);
    assert_int_equal(f->num_switches, 2);
    assert_int_equal(f->num_links, 3); // taken all the same
    for (unsigned i = 0; i < ENGINES; i++) {
        struct route_opts o = {.engine = engines[i]};
        struct route_result r;
        struct verify_opts v = {.all_switches = true, .allow_credit_loops = true};
        struct route_proof p;
        if (route_compute(f, &o, &r, &e))
            continue;
        assert_true(route_verify(f, r.tables, &v, &p));
        assert_int_equal(p.unreached, 0);
        tables_unref(r.tables);
    }
    fabric_unref(f);
}

// A blueprint of quite another fabric: nothing of it can be kept, and everything is reached all the same.
static void foreign_blueprint(void **state)
{
    static const char *const names[][2] = {
        {"rail-64", "ft3-8-4"}, {"ft3-8-4", "rail-64"}, {"rail-256", "rail-64"}, {"ft3-4-2", "rail-256"}};
    for (unsigned i = 0; i < 8 * ENGINES; i++) {
        const struct fabric *f = rig_named(names[i % 4][0]), *g = rig_named(names[i % 4][1]);
        struct route_opts o = {.engine = engines[i / 8]};
        struct route_result ideal, r;
        struct err e = {0};
        struct verify_opts v = {.all_switches = true, .allow_credit_loops = o.engine == ROUTE_MINHOP};
        struct route_proof p;
        if (i / 4 % 2) { // with GUIDs of its own
            struct rig rig;
            fabric_unref(g);
            rig_start(&rig);
            for (unsigned k = 0; k < 1000; k++)
                rig.next_guid += 0x10;
            node_id spine = star(&rig, 4, 2), other = rig_switch(&rig, 60, "spine");
            rig_cable(&rig, spine, other);
            g = rig_done(&rig);
        }
        assert_int_equal(route_compute(f, &o, &ideal, &e), 0);
        if (route_repair(f, &ideal, g, &o, &r, &e) == 0) {
            if (!route_verify(g, r.tables, &v, &p) || p.unreached)
                fail_msg("%s for %s by %s: %s", names[i % 4][0], names[i % 4][1], route_engine_name(o.engine),
                         p.counter_example);
            tables_unref(r.tables);
        } else {
            assert_true(e.text[0] != 0);
        }
        // Tables of another number of switches are no ideal.
        struct route_base *b;
        if (f->num_switches != g->num_switches)
            assert_int_equal(route_base_new(g, &ideal, &o, &b, &e), -EINVAL);
        tables_unref(ideal.tables);
        fabric_unref(f);
        fabric_unref(g);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_at_all),
        cmocka_unit_test(parts),
        cmocka_unit_test(no_hosts),
        cmocka_unit_test(hosts_on_all),
        cmocka_unit_test(routers_and_gateways),
        cmocka_unit_test(widest),
        cmocka_unit_test(odd_roots),
        cmocka_unit_test(told_by_one_end),
        cmocka_unit_test(foreign_blueprint),
    };
    return cmocka_run_group_tests_name("routing/bad", tests, NULL, NULL);
}
