// SPDX-License-Identifier: Apache-2.0
// The proof must find what is planted, and say where.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "lib/pool.h"
#include "tests/unit/routing/rig.h"

static const struct fabric *fab;
static struct fabric_tables *tab;

static int setup(void **state)
{
    fab = rig_named("rail-64");
    struct fabric_tables *t = rig_route(fab, ROUTE_UPDN);
    tab = tables_copy_for(t, fab, fab, t->top_lid);
    tables_unref(t);
    return 0;
}

static int teardown(void **state)
{
    tables_unref(tab);
    fabric_unref(fab);
    return 0;
}

static struct route_proof prove(bool all)
{
    struct verify_opts o = {.all_switches = all};
    struct route_proof p;
    bool ok = route_verify(fab, tab, &o, &p);
    assert_int_equal(ok, p.ok);
    return p;
}

// A host, the leaf it hangs on and another leaf.
static const struct port *a_host(uint32_t *ret_leaf, uint32_t *ret_other)
{
    for (uint32_t i = 0; i < fab->num_ports; i++) {
        const struct port *p = &fab->port[i];
        if (fabric_node(fab, p->node)->role == ROLE_HOST && fabric_peer_node(fab, p)) {
            *ret_leaf = fabric_peer_node(fab, p)->sw;
            for (uint32_t s = 0; s < fab->num_switches; s++) {
                if (fabric_switch(fab, s)->tier == 0 && s != *ret_leaf)
                    *ret_other = s;
            }
            return p;
        }
    }
    fail();
    return NULL;
}

static void good_tables(void **state)
{
    struct route_proof p = prove(false), all = prove(true);
    assert_true(p.ok);
    assert_true(all.ok);
    assert_true(all.pairs > p.pairs);
    assert_int_equal(p.max_hops, 2);
    assert_true(p.channels > 0 && p.dependencies > 0);
    assert_string_equal(p.counter_example, "");
}

static void missing_entry(void **state)
{
    uint32_t leaf, other;
    const struct port *h = a_host(&leaf, &other);
    tables_row(tab, other)[h->a.lid] = LFT_DROP;
    struct route_proof p = prove(false);
    assert_false(p.ok);
    assert_int_equal(p.fault, ROUTE_NO_ENTRY);
    assert_int_equal(p.unreached, 1);
    assert_non_null(strstr(p.counter_example, "no entry"));
    assert_non_null(strstr(p.counter_example, fabric_desc(fab, fabric_switch(fab, other))));
}

static void wrong_port(void **state)
{
    uint32_t leaf, other;
    const struct port *h = a_host(&leaf, &other);
    uint8_t right = tables_row(tab, leaf)[h->a.lid];
    const struct node *n = fabric_switch(fab, leaf);
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *w = fabric_peer_node(fab, &fab->port[n->first_port + num]);
        if (num != right && w && w->type == NODE_CA)
            tables_row(tab, leaf)[h->a.lid] = (uint8_t)num;
    }
    struct route_proof p = prove(false);
    assert_int_equal(p.fault, ROUTE_WRONG_END);
    assert_true(p.unreached > 1);
    tables_row(tab, leaf)[h->a.lid] = 0; // its own management port
    assert_int_equal(prove(false).fault, ROUTE_WRONG_END);
}

static void dead_ports(void **state)
{
    uint32_t leaf, other;
    const struct port *h = a_host(&leaf, &other);
    tables_row(tab, other)[h->a.lid] = 254; // no such port
    assert_int_equal(prove(false).fault, ROUTE_DEAD_PORT);
    const struct node *n = fabric_switch(fab, other);
    for (unsigned num = 1; num <= n->num_ports; num++) {
        if (!port_valid(fab->port[n->first_port + num].peer)) {
            tables_row(tab, other)[h->a.lid] = (uint8_t)num;
            struct route_proof p = prove(false);
            assert_int_equal(p.fault, ROUTE_DEAD_PORT);
            assert_non_null(strstr(p.counter_example, "no usable cable"));
        }
    }
}

static void forwarding_loop(void **state)
{
    uint32_t leaf, other;
    const struct port *h = a_host(&leaf, &other);
    // The spine on the way sends back to where it comes from.
    const struct node *n = fabric_switch(fab, other);
    const struct port *out = &fab->port[n->first_port + tables_row(tab, other)[h->a.lid]];
    const struct port *back = fabric_port(fab, out->peer);
    tables_row(tab, fabric_node(fab, back->node)->sw)[h->a.lid] = back->num;
    struct route_proof p = prove(false);
    assert_int_equal(p.fault, ROUTE_LOOP);
    assert_non_null(strstr(p.counter_example, "loop"));
}

// Loops in entries that no leaf's traffic meets are found from every switch only.
static void all_switches(void **state)
{
    uint32_t leaf, other;
    const struct port *h = a_host(&leaf, &other);
    bool used[256] = {false};
    for (uint32_t s = 0; s < fab->num_switches; s++) {
        const struct node *n = fabric_switch(fab, s);
        if (n->tier == 0 && s != leaf) {
            const struct port *out = &fab->port[n->first_port + tables_row(tab, s)[h->a.lid]];
            used[fabric_peer_node(fab, out)->sw] = true;
        }
    }
    for (uint32_t s = 0; s < fab->num_switches; s++) {
        if (fabric_switch(fab, s)->tier == 1 && !used[s])
            tables_row(tab, s)[h->a.lid] = LFT_DROP;
    }
    assert_true(prove(false).ok);
    assert_int_equal(prove(true).fault, ROUTE_NO_ENTRY);
}

static void other_fabric(void **state)
{
    const struct fabric *f = rig_named("ft3-4-2");
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    struct verify_opts o = {0};
    struct route_proof p;
    assert_false(route_verify(fab, t, &o, &p));
    assert_non_null(strstr(p.counter_example, "another fabric"));
    tables_unref(t);
    fabric_unref(f);
}

static void short_tables(void **state)
{
    struct fabric_tables *t = tables_new(fab, 5, "short");
    struct verify_opts o = {0};
    struct route_proof p;
    assert_false(route_verify(fab, t, &o, &p));
    assert_int_equal(p.fault, ROUTE_NO_ENTRY);
    tables_unref(t);
}

// Four switches in a ring, everything sent clockwise two hops: no forwarding loop, but the channels wait for
// each other.
static void credit_loop(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id sw[4], host[4];
    const char *name[4] = {"north", "east", "south", "west"};
    for (unsigned i = 0; i < 4; i++)
        sw[i] = rig_switch(&r, 8, name[i]);
    for (unsigned i = 0; i < 4; i++)
        host[i] = rig_host(&r, sw[i]); // port 1 of each
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(builder_link(r.b, sw[i], 2, sw[(i + 1) % 4], 3), 0);
    const struct fabric *f = rig_done(&r);
    struct fabric_tables *t = tables_new(f, f->top_lid, "ring");
    for (unsigned i = 0; i < 4; i++) {
        uint8_t *row = tables_row(t, f->node[sw[i].i].sw);
        for (unsigned d = 0; d < 4; d++) {
            uint16_t lid = f->port[f->node[host[d].i].first_port].a.lid;
            uint16_t own = f->port[f->node[sw[d].i].first_port].a.lid;
            unsigned ahead = (d + 4 - i) % 4;
            row[lid] = ahead == 0 ? 1 : ahead <= 2 ? 2 : 3;
            row[own] = ahead == 0 ? 0 : ahead <= 2 ? 2 : 3;
        }
    }
    struct verify_opts o = {0};
    struct route_proof p;
    assert_false(route_verify(f, t, &o, &p));
    assert_int_equal(p.fault, ROUTE_CREDIT_LOOP);
    assert_int_equal(p.unreached, 0);
    assert_non_null(strstr(p.counter_example, "credit loop over 4 cables"));
    for (unsigned i = 0; i < 4; i++)
        assert_non_null(strstr(p.counter_example, name[i]));
    o.allow_credit_loops = true;
    assert_true(route_verify(f, t, &o, &p));
    assert_non_null(strstr(p.counter_example, "credit loop"));
    tables_unref(t);
    // The engine has none on the same ring.
    t = rig_route(f, ROUTE_AUTO);
    rig_prove(f, t);
    tables_unref(t);
    fabric_unref(f);
}

// More hops than a byte counts, and two sources on the way.
static void long_chain(void **state)
{
    enum { LONG = 390 };
    struct rig r;
    struct route_proof p;
    struct verify_opts o = {0};
    rig_start(&r);
    node_id sw[LONG];
    for (unsigned i = 0; i < LONG; i++) {
        sw[i] = rig_switch(&r, 4, "link");
        if (i > 0)
            rig_cable(&r, sw[i - 1], sw[i]);
    }
    rig_host(&r, sw[0]);
    rig_host(&r, sw[50]);
    rig_host(&r, sw[LONG - 1]);
    const struct fabric *f = rig_done(&r);
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    assert_true(route_verify(f, t, &o, &p));
    assert_int_equal(p.max_hops, LONG - 1);
    o.all_switches = true;
    assert_true(route_verify(f, t, &o, &p));
    assert_int_equal(p.max_hops, LONG - 1);
    assert_int_equal(p.unreached, 0);
    tables_unref(t);
    fabric_unref(f);
}

static void backwards(struct par *p, unsigned n, void (*task)(void *arg, unsigned i), void *arg)
{
    while (n-- > 0)
        task(arg, n);
}

// However the work is spread, the result is the same.
static void spread(void **state)
{
    uint32_t leaf, other;
    const struct port *h = a_host(&leaf, &other);
    for (int fault = 0; fault < 2; fault++) {
        struct route_proof one = prove(true), many;
        for (unsigned width = 2; width < 5; width++) {
            struct par par = {.run = backwards, .width = width};
            struct verify_opts o = {.all_switches = true, .par = &par};
            route_verify(fab, tab, &o, &many);
            assert_int_equal(one.pairs, many.pairs);
            assert_int_equal(one.channels, many.channels);
            assert_int_equal(one.dependencies, many.dependencies);
            assert_int_equal(one.unreached, many.unreached);
            assert_string_equal(one.counter_example, many.counter_example);
        }
        tables_row(tab, other)[h->a.lid] = LFT_DROP;
        tables_row(tab, other)[fab->top_lid] = LFT_DROP;
    }
}

static struct fabric_tables *salvage(struct route_proof *ret)
{
    struct verify_opts o = {.all_switches = false};
    return route_salvage(fab, tab, &o, ret);
}

// Entries that lead nowhere are taken out, with those that lead to them; all others stay.
static void salvaged_hole(void **state)
{
    uint32_t leaf, other;
    struct route_proof p;
    const struct port *h = a_host(&leaf, &other);
    const struct node *from = fabric_switch(fab, other);
    uint8_t up = tables_port(tab, other, h->a.lid);
    uint32_t spine = fabric_peer_node(fab, &fab->port[from->first_port + up])->sw;
    assert_int_equal(fabric_switch(fab, spine)->tier, 1);
    tables_row(tab, spine)[h->a.lid] = LFT_DROP;
    uint64_t broken = 0;
    for (uint32_t s = 0; s < fab->num_switches; s++) {
        const struct node *n = fabric_switch(fab, s);
        const struct node *w =
            fabric_peer_node(fab, &fab->port[n->first_port + tables_port(tab, s, h->a.lid)]);
        broken += s != spine && w && w->type == NODE_SWITCH && w->sw == spine;
    }
    assert_true(broken > 0);
    struct fabric_tables *t = salvage(&p);
    assert_non_null(t);
    assert_false(p.ok);
    assert_int_equal(p.fault, ROUTE_NO_ENTRY);
    assert_true(p.unreached > 0 && p.unreached <= broken);
    assert_non_null(strstr(p.counter_example, "no entry"));
    assert_int_equal(tables_compare(t, tab).entries, broken);
    assert_int_equal(tables_port(t, other, h->a.lid), LFT_DROP);
    assert_int_equal(tables_port(t, leaf, h->a.lid), tables_port(tab, leaf, h->a.lid));
    assert_string_equal(t->engine, tab->engine);
    tables_unref(t);
}

static void salvaged_loop(void **state)
{
    uint32_t leaf, other;
    struct route_proof p;
    const struct port *h = a_host(&leaf, &other);
    const struct node *from = fabric_switch(fab, other);
    const struct port *out = &fab->port[from->first_port + tables_port(tab, other, h->a.lid)];
    const struct port *in = fabric_port(fab, out->peer);
    tables_row(tab, fabric_node(fab, in->node)->sw)[h->a.lid] = in->num;
    struct fabric_tables *t = salvage(&p);
    assert_non_null(t);
    assert_int_equal(p.fault, ROUTE_NO_ENTRY);
    assert_true(p.unreached > 0);
    assert_int_equal(tables_port(t, other, h->a.lid), LFT_DROP);
    assert_int_equal(tables_port(t, fabric_node(fab, in->node)->sw, h->a.lid), LFT_DROP);
    struct verify_opts all = {.all_switches = true};
    assert_false(route_verify(fab, t, &all, &p)); // nothing but holes is left
    assert_int_equal(p.fault, ROUTE_NO_ENTRY);
    tables_unref(t);
}

static void salvaged_whole(void **state)
{
    struct route_proof p;
    struct fabric_tables *t = salvage(&p);
    assert_non_null(t);
    assert_true(p.ok);
    assert_int_equal(tables_compare(t, tab).entries, 0);
    tables_unref(t);
}

static void nothing_to_salvage(void **state)
{
    struct route_proof p;
    memset(tab->lft, LFT_DROP, (size_t)tab->num_switches * tab->lids);
    assert_null(salvage(&p));
}

// Tables of a ring that go round it, one destination each way: holes besides do not hide the cycle.
static void salvage_refuses_credit_loops(void **state)
{
    struct rig r;
    node_id sw[4], host[4];
    rig_start(&r);
    for (unsigned i = 0; i < 4; i++)
        sw[i] = rig_switch(&r, 8, "sw");
    for (unsigned i = 0; i < 4; i++)
        rig_cable(&r, sw[i], sw[(i + 1) % 4]);
    for (unsigned i = 0; i < 4; i++)
        host[i] = rig_host(&r, sw[i]);
    const struct fabric *f = rig_done(&r);
    struct fabric_tables *t = tables_new(f, f->top_lid, "updn");
    for (unsigned i = 0; i < 4; i++) { // to each host the same way round
        uint16_t lid = f->port[f->node[host[i].i].first_port].a.lid;
        for (unsigned k = 0; k < 4; k++) {
            const struct node *n = &f->node[sw[k].i];
            for (unsigned num = 1; num <= n->num_ports; num++) {
                const struct node *w = fabric_peer_node(f, &f->port[n->first_port + num]);
                if (w && w == &f->node[(k == i ? host[i] : sw[(k + 1) % 4]).i])
                    tables_row(t, n->sw)[lid] = (uint8_t)num;
            }
        }
    }
    struct verify_opts o = {.allow_credit_loops = false};
    struct route_proof p;
    assert_false(route_verify(f, t, &o, &p));
    assert_int_equal(p.fault, ROUTE_NO_ENTRY); // the switches' own LIDs
    assert_true(p.credit_loop);
    assert_null(route_salvage(f, t, &o, &p));
    o.allow_credit_loops = true;
    struct fabric_tables *s = route_salvage(f, t, &o, &p);
    assert_non_null(s);
    assert_int_equal(tables_compare(s, t).entries, 0);
    tables_unref(s);
    tables_unref(t);
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(good_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(missing_entry, setup, teardown),
        cmocka_unit_test_setup_teardown(wrong_port, setup, teardown),
        cmocka_unit_test_setup_teardown(dead_ports, setup, teardown),
        cmocka_unit_test_setup_teardown(forwarding_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(all_switches, setup, teardown),
        cmocka_unit_test_setup_teardown(other_fabric, setup, teardown),
        cmocka_unit_test_setup_teardown(short_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(spread, setup, teardown),
        cmocka_unit_test(credit_loop),
        cmocka_unit_test(long_chain),
        cmocka_unit_test_setup_teardown(salvaged_hole, setup, teardown),
        cmocka_unit_test_setup_teardown(salvaged_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(salvaged_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(nothing_to_salvage, setup, teardown),
        cmocka_unit_test(salvage_refuses_credit_loops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
