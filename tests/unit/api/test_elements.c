// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/elements.h"
#include "fabric/builder.h"
#include "fabric/topogen.h"
#include "lib/rng.h"

static const struct fabric *make(const char *name)
{
    struct err e = {0};
    const struct fabric *f = topogen_make(name, &e);
    if (f == NULL)
        fail_msg("%s: %s", name, e.text);
    return f;
}

// Nodes and cables that one element takes out.
static void count(const struct fabric *f, const char *text, uint32_t *ret_nodes, uint32_t *ret_cables)
{
    struct elements el;
    struct fabric_edit x;
    struct err e = {0};
    elements_init(&el, f);
    fabric_edit_init(&x, f);
    if (elements_fail(&el, &x, text, &e) != 0)
        fail_msg("%s: %s", text, e.text);
    *ret_nodes = x.num_dead;
    *ret_cables = x.num_cut;
    fabric_edit_done(&x);
    elements_done(&el);
}

static void test_counts(void **state)
{
    static const struct {
        const char *text;
        uint32_t nodes, cables;
    } row[] = {
        {"leaf-su01-rail0", 1, 64},
        {"leaf-su01-rail0[1]", 0, 1},
        {"leaf-su01-rail0[1-4,7]", 0, 5},
        {"leaf-su01-rail0[*]", 0, 64},
        {"leaf-su0?-rail0", 2, 128},
        {"leaf-su01-*[33-40]", 0, 64},
        {"rail=0", 2, 128},
        {"rail=0|3", 4, 256},
        {"rail=0..3,su=1", 4, 256},
        {"role=leaf,rail=7[1]", 0, 2},
        {"role=host,rail=0", 64, 64},
        {"type=ca,name=gpu-0001 *", 8, 8},
        {"name=leaf-su02-*", 8, 512},
        {"type=switch,tier=0", 16, 1024},
        {"gpu-0001 mlx5_0", 1, 1},
        {"gpu-0001 mlx5_0[1]", 0, 1},
        {"random:0:1", 0, 0},
        {"random:100:1", 0, 512},
    };
    const struct fabric *f = make("rail-512");
    (void)state;
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        uint32_t nodes, cables;
        count(f, row[i].text, &nodes, &cables);
        if (nodes != row[i].nodes || cables != row[i].cables)
            fail_msg("%s: %u nodes, %u cables", row[i].text, nodes, cables);
    }
    char guid[40];
    uint32_t nodes, cables;
    snprintf(guid, sizeof(guid), "0x%llx[1]", (unsigned long long)fabric_switch(f, 0)->guid);
    count(f, guid, &nodes, &cables);
    assert_int_equal(cables, 1);
    fabric_unref(f);
}

// A node whose name looks like something else is still that node; names that repeat are refused.
static void test_exact_names_come_first(void **state)
{
    static const char *const names[] = {"*", "rail=0", "odd[3]", "twin", "twin", "random:1:1"};
    struct builder *b = builder_new();
    node_id sw, n;
    struct node_attrs a = {.guid = 1, .type = NODE_SWITCH, .num_ports = 32};
    (void)state;
    assert_int_equal(builder_node(b, &a, "sw", 2, &sw, NULL), 0);
    for (unsigned i = 0; i < 6; i++) {
        a = (struct node_attrs){.guid = 10 + i, .type = NODE_CA, .num_ports = 1};
        assert_int_equal(builder_node(b, &a, names[i], strlen(names[i]), &n, NULL), 0);
        assert_int_equal(builder_link(b, sw, i + 1, n, 1), 0);
    }
    const struct fabric *f = builder_seal(b, 1, NULL);
    uint32_t nodes, cables;
    for (unsigned i = 0; i < 3; i++) {
        count(f, names[i], &nodes, &cables);
        assert_int_equal(nodes, 1);
        assert_int_equal(cables, 1);
    }
    count(f, "odd[3][1]", &nodes, &cables);
    assert_true(nodes == 0 && cables == 1);
    struct elements el;
    struct fabric_edit x;
    struct err e = {0};
    elements_init(&el, f);
    fabric_edit_init(&x, f);
    assert_int_equal(elements_fail(&el, &x, "twin", &e), -EEXIST);
    assert_string_equal(e.where, "twin");
    fabric_edit_done(&x);
    elements_done(&el);
    fabric_unref(f);
}

static void test_drains(void **state)
{
    const struct fabric *f = make("rail-512");
    struct elements el;
    struct err e = {0};
    bool *drained = calloc(f->num_ports, sizeof(bool));
    (void)state;
    elements_init(&el, f);
    assert_int_equal(elements_drain(&el, drained, "leaf-su01-rail0[33-34]", &e), 0);
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        n += drained[i];
        assert_true(!drained[i] || drained[f->port[i].peer.i]);
    }
    assert_int_equal(n, 4);
    assert_int_equal(elements_drain(&el, drained, "nobody", &e), -ENOENT);
    assert_int_equal(elements_drain(&el, drained, "random:100:1", &e), 0);
    n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++)
        n += drained[i];
    assert_int_equal(n, 1024);
    free(drained);
    elements_done(&el);
    fabric_unref(f);
}

// --- additions ---

struct adding {
    const struct fabric *f;
    struct elements el;
    struct fabric_edit x;
    struct err e;
};

static void begin(struct adding *a, const char *name)
{
    *a = (struct adding){.f = make(name)};
    elements_init(&a->el, a->f);
    fabric_edit_init(&a->x, a->f);
}

static void end(struct adding *a)
{
    elements_done(&a->el);
    fabric_edit_done(&a->x);
    fabric_unref(a->f);
}

static const struct node *named(const struct fabric *f, const char *name)
{
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (strcmp(fabric_desc(f, &f->node[i]), name) == 0)
            return &f->node[i];
    return NULL;
}

static void test_a_host_more(void **state)
{
    struct adding a;
    (void)state;
    begin(&a, "rail-128");
    assert_int_equal(elements_add(&a.el, &a.x, "node-like:gpu-0003=gpu-new", &a.e), 0);
    assert_int_equal(elements_add(&a.el, &a.x, "node-like:gpu-0003=gpu-new", &a.e), -EEXIST);
    assert_int_equal(elements_add(&a.el, &a.x, "node-like:gpu-0003=gpu-0004", &a.e), -EEXIST);
    const struct fabric *g = fabric_edit_apply(&a.x, NULL);
    assert_int_equal(g->num_hosts, a.f->num_hosts + 1); // one host, by its SystemImageGUID
    assert_int_equal(g->num_rails, 8);
    for (unsigned i = 0; i < 8; i++) {
        char name[40], leaf[40];
        snprintf(name, sizeof(name), "gpu-new mlx5_%u", i);
        snprintf(leaf, sizeof(leaf), "leaf-su01-rail%u", i);
        const struct node *n = named(g, name);
        assert_non_null(n);
        assert_int_equal(n->rail, i);
        assert_string_equal(fabric_desc(g, fabric_peer_node(g, &g->port[n->first_port])), leaf);
        assert_int_equal(g->port[n->first_port].a.lid, 0);
        assert_int_equal(g->port[n->first_port].guid, n->guid);
    }
    fabric_unref(g);
    end(&a);
}

static void test_a_unit_more(void **state)
{
    struct adding a;
    (void)state;
    begin(&a, "rail-768");
    assert_int_equal(elements_add(&a.el, &a.x, "su:0", &a.e), 0);
    const struct fabric *g = fabric_edit_apply(&a.x, NULL);
    assert_int_equal(g->num_sus, a.f->num_sus + 1);
    assert_int_equal(g->num_nodes, a.f->num_nodes + 8 + 256);
    assert_int_equal(g->num_hosts, a.f->num_hosts + 32);
    assert_non_null(named(g, "new1-leaf-su01-rail0"));
    fabric_unref(g);
    uint32_t nodes = a.x.num_node, links = a.x.num_link;
    assert_int_equal(elements_add(&a.el, &a.x, "su", &a.e), -ENOSPC); // all or nothing
    assert_non_null(strstr(a.e.text, "free ports of"));
    assert_int_equal(a.x.num_node, nodes);
    assert_int_equal(a.x.num_link, links);
    end(&a);
}

static void test_bad_additions(void **state)
{
    static const char *const bad[] = {
        "",
        "link:",
        "link:a",
        "link:a[1]",
        "link:a[1]-",
        "link:-b[1]",
        "link:a[1]-b[1]",
        "link:[1]-[1]",
        "link:spine-01[1]-spine-02[1]",
        "link:spine-01[]-spine-02[]",
        "link:spine-01[-1]-spine-02[1]",
        "link:spine-01[1]-spine-01[1]",
        "link:spine-01[99999999999999999999]-spine-02[1]",
        "node-like:",
        "node-like:=",
        "node-like:a=",
        "node-like:=b",
        "node-like:nobody=b",
        "su:",
        "su:-1",
        "su:99999999999",
        "sux",
    };
    struct adding a;
    (void)state;
    begin(&a, "rail-64");
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        a.e = (struct err){0};
        if (elements_add(&a.el, &a.x, bad[i], &a.e) >= 0)
            fail_msg("\"%s\" is taken", bad[i]);
        assert_int_not_equal(a.e.text[0], 0);
        assert_string_equal(a.e.where, bad[i]);
    }
    assert_int_equal(a.x.num_node + a.x.num_link, 0);
    end(&a);
}

// Whatever is written: an answer, and nothing else happens.
static void test_any_bytes(void **state)
{
    static const char *const bits[] = {
        "[",      "]",     "-",          ",",    "=",    "*",  "?",   "leaf-su01-rail0",
        "random", ":",     "1",          "99",   "rail", "su", "..",  "|",
        "role",   "link:", "node-like:", "name", "\xff", " ",  "0x1", "spine-01"};
    struct adding a;
    struct rng r;
    bool *drained;
    (void)state;
    begin(&a, "rail-64");
    drained = calloc(a.f->num_ports, sizeof(bool));
    rng_init(&r, 11);
    for (unsigned round = 0; round < 20000; round++) {
        char text[200] = "";
        unsigned n = rng_below(&r, 8);
        for (unsigned i = 0; i < n; i++)
            strcat(text, bits[rng_below(&r, sizeof(bits) / sizeof(bits[0]))]);
        a.el.wide = 0;
        struct err e = {0};
        int rc = round % 3 == 0   ? elements_add(&a.el, &a.x, text, &e)
                 : round % 3 == 1 ? elements_drain(&a.el, drained, text, &e)
                                  : elements_fail(&a.el, &a.x, text, &e);
        assert_true(rc <= 0);
        if (rc != 0 && (e.text[0] == 0 || e.code != rc))
            fail_msg("\"%s\" is refused without a word", text);
    }
    fabric_unref(fabric_edit_apply(&a.x, NULL));
    free(drained);
    end(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),      cmocka_unit_test(test_exact_names_come_first),
        cmocka_unit_test(test_drains),      cmocka_unit_test(test_a_host_more),
        cmocka_unit_test(test_a_unit_more), cmocka_unit_test(test_bad_additions),
        cmocka_unit_test(test_any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
