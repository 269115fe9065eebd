// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/compute.h"
#include "fabric/builder.h"
#include "fabric/topogen.h"

static const struct fabric *make(const char *name)
{
    struct err e = {0};
    const struct fabric *f = topogen_make(name, &e);
    if (f == NULL)
        fail_msg("%s: %s", name, e.text);
    return f;
}

// Every connected end port has a LID of its own.
static void check_numbered(const struct fabric *f)
{
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        bool end = port_is_end(f, p) && (p->num == 0 || port_valid(p->peer));
        if (!end)
            continue;
        assert_int_not_equal(p->a.lid, 0);
        assert_int_equal(f->lid_port[p->a.lid], i);
    }
}

static void test_numbers(void **state)
{
    struct err e = {0};
    const struct fabric *f = make("rail-64");
    (void)state;
    const struct fabric *g = compute_number(f, NULL, &e);
    assert_non_null(g);
    check_numbered(g);
    assert_int_equal(g->top_lid, f->num_nodes);
    // Leaf by leaf: the adapters of one leaf are consecutive.
    const struct node *leaf = fabric_switch(g, 0);
    uint16_t last = 0;
    for (unsigned i = 1; i <= leaf->num_ports; i++) {
        const struct port *p = &g->port[leaf->first_port + i];
        if (!port_valid(p->peer) || fabric_peer_node(g, p)->type == NODE_SWITCH)
            continue;
        uint16_t lid = fabric_port(g, p->peer)->a.lid;
        assert_true(last == 0 || lid == last + 1);
        last = lid;
    }
    // What is numbered needs nothing.
    assert_null(compute_number(g, NULL, &e));
    assert_int_equal(e.code, 0);
    fabric_unref(g);
    fabric_unref(f);
}

// Of two claimants one keeps the LID; a range that overlaps goes; what was good stays.
static void test_duplicates(void **state)
{
    struct err e = {0};
    const struct fabric *f = make("rail-64"), *g = compute_number(f, NULL, &e);
    (void)state;
    struct builder *b = builder_from(g);
    uint32_t changed[3], n = 0;
    for (uint32_t i = 0; i < g->num_ports && n < 3; i++)
        if (port_is_end(g, &g->port[i]) && port_valid(g->port[i].peer) && g->port[i].a.lid > 20) {
            struct port_attrs a = g->port[i].a;
            a.lid = n == 0 ? 5 : n == 1 ? LID_UCAST_MAX : 10;
            a.lmc = n == 0 ? 0 : 3;
            builder_port(b, g->port[i].node, g->port[i].num, &a);
            changed[n++] = i;
        }
    const struct fabric *bad = builder_seal(b, 2, NULL), *good = compute_number(bad, NULL, &e);
    assert_non_null(good);
    check_numbered(good);
    for (uint32_t i = 0; i < g->num_ports; i++) {
        uint16_t lid = g->port[i].a.lid;
        bool claimed = lid == 5 || (lid >= 8 && lid <= 17);
        if (!claimed && i != changed[0] && i != changed[1] && i != changed[2])
            assert_int_equal(good->port[i].a.lid, lid);
    }
    fabric_unref(good);
    fabric_unref(bad);
    fabric_unref(g);
    fabric_unref(f);
}

// The same fabric without these elements; the edit is the caller's.
static const struct fabric *without(const struct fabric *f, const char *a, const char *b,
                                    struct fabric_edit *x)
{
    struct err e = {0};
    char *words[] = {(char *)a, (char *)b};
    const struct fabric *g = compute_fail(f, words, b != NULL ? 2 : 1, x, &e);
    if (g == NULL)
        fail_msg("%s: %s", a, e.text);
    return g;
}

static uint32_t trunks_of(const struct fabric *f, const struct node *n)
{
    uint32_t k = 0;
    for (unsigned i = 1; i <= n->num_ports; i++)
        k += port_valid(f->port[n->first_port + i].peer);
    return k;
}

static void test_fails(void **state)
{
    const struct fabric *f = make("rail-64");
    struct fabric_edit x, y;
    (void)state;
    const struct fabric *g = without(f, "leaf-su01-rail0[1]", NULL, &x);
    assert_int_equal(g->num_links, f->num_links - 1);
    assert_int_equal(g->num_nodes, f->num_nodes);
    fabric_edit_done(&x);
    fabric_unref(g);
    g = without(f, "spine-01", "spine-01", &x);
    assert_int_equal(x.num_dead, 1);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (!x.dead[i])
            continue;
        assert_string_equal(fabric_desc(f, &f->node[i]), "spine-01");
        assert_true(trunks_of(f, &f->node[i]) > 0);
        assert_int_equal(g->num_links, f->num_links - trunks_of(f, &f->node[i]));
    }
    fabric_edit_done(&x);
    fabric_unref(g);
    g = without(f, "random:50:1", NULL, &x);
    const struct fabric *h =
        without(f, "random:50:1", "random:50:1", &y); // the same links twice are failed once
    assert_true(g->num_links < f->num_links);
    assert_int_equal(g->num_links, h->num_links);
    for (uint32_t i = 0; i < g->num_ports; i++)
        assert_int_equal(g->port[i].peer.i, h->port[i].peer.i);
    fabric_edit_done(&x);
    fabric_edit_done(&y);
    fabric_unref(g);
    fabric_unref(h);
    fabric_unref(f);
}

static void test_bad_elements(void **state)
{
    static const char *const bad[] = {
        "",           "nobody",       "leaf-su01-rail0[200]", "random:",
        "random:1",   "random:1:",    "random:101:1",         "random:-1:1",
        "random:x:1", "random:1:1:1", "random:nan:1",         "leaf-su01-rail0[0]",
        "random::1"};
    const struct fabric *f = make("rail-64");
    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct err e = {0};
        char *one[] = {(char *)bad[i]};
        struct fabric_edit x;
        if (compute_fail(f, one, 1, &x, &e) != NULL)
            fail_msg("\"%s\" is taken", bad[i]);
        fabric_edit_done(&x);
        assert_int_not_equal(e.code, 0);
        assert_int_not_equal(e.text[0], 0);
    }
    fabric_unref(f);
}

static void test_result(void **state)
{
    struct computation c = {.f = make("rail-64"), .engine = ROUTE_AUTO, .lft = true};
    (void)state;
    compute_run(&c, &par_serial);
    assert_int_equal(c.err.code, 0);
    json_t *j = json_loads(c.result.data, 0, NULL);
    assert_non_null(j);
    assert_true(json_is_true(json_object_get(json_object_get(j, "verify"), "ok")));
    assert_true(json_is_null(json_object_get(j, "changed")));
    json_decref(j);
    compute_done(&c);
    fabric_unref(c.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_duplicates),
                                       cmocka_unit_test(test_fails), cmocka_unit_test(test_bad_elements),
                                       cmocka_unit_test(test_result)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
