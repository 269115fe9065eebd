// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/builder.h"
#include "fabric/edit.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/xalloc.h"

static const struct fabric *make(const char *name)
{
    struct err e = {0};
    const struct fabric *f = topogen_make(name, &e);
    if (f == NULL)
        fail_msg("%s: %s", name, e.text);
    return f;
}

static const struct node *named(const struct fabric *f, const char *name)
{
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (strcmp(fabric_desc(f, &f->node[i]), name) == 0)
            return &f->node[i];
    fail_msg("no node %s", name);
    return NULL;
}

static uint32_t index_of(const struct fabric *f, const char *name)
{
    return (uint32_t)(named(f, name) - f->node);
}

static port_id port_of(const struct fabric *f, const char *name, unsigned num)
{
    return fabric_port_at(f, named(f, name), num);
}

static void check_symmetric(const struct fabric *f)
{
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (port_valid(f->port[i].peer))
            assert_int_equal(f->port[f->port[i].peer.i].peer.i, i);
}

static void test_cuts(void **state)
{
    const struct fabric *f = make("rail-64");
    struct fabric_edit x;
    (void)state;
    fabric_edit_init(&x, f);
    port_id p = port_of(f, "spine-01", 1);
    assert_int_equal(fabric_edit_cut(&x, p), 0);
    assert_int_equal(fabric_edit_cut(&x, fabric_port(f, p)->peer), 0); // the same cable
    assert_int_equal(x.num_cut, 1);
    assert_int_equal(fabric_edit_cut(&x, port_of(f, "spine-01", 0)), -ENOENT);
    const struct fabric *g = fabric_edit_apply(&x, NULL);
    assert_int_equal(g->num_links, f->num_links - 1);
    assert_int_equal(g->num_nodes, f->num_nodes);
    assert_false(port_valid(g->port[p.i].peer));
    check_symmetric(g);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        assert_int_equal(g->node[i].guid, f->node[i].guid);
    const struct fabric *h = fabric_without_links(f, (port_id[]){p, port_of(f, "spine-01", 0), p}, 3);
    assert_int_equal(h->num_links, g->num_links);
    fabric_unref(h);
    fabric_unref(g);
    fabric_edit_done(&x);
    fabric_unref(f);
}

static void test_kills(void **state)
{
    const struct fabric *bare = make("rail-64");
    struct fabric_edit x;
    (void)state;
    struct builder *b = builder_from(bare);
    struct port_attrs a = fabric_port(bare, port_of(bare, "spine-01", 0))->a;
    a.lid = 7;
    builder_port(b, (node_id){index_of(bare, "spine-01")}, 0, &a);
    const struct fabric *f = builder_seal(b, 1, NULL);
    const struct node *n = named(f, "spine-01");
    uint32_t cables = 0;
    for (unsigned num = 1; num <= n->num_ports; num++)
        cables += port_valid(fabric_port(f, fabric_port_at(f, n, num))->peer);
    fabric_edit_init(&x, f);
    fabric_edit_kill(&x, (node_id){index_of(f, "spine-01")});
    fabric_edit_kill(&x, (node_id){index_of(f, "spine-01")});
    assert_int_equal(x.num_dead, 1);
    assert_int_equal(x.num_cut, cables);
    const struct fabric *g = fabric_edit_apply(&x, NULL);
    assert_int_equal(g->num_links, f->num_links - cables);
    assert_int_equal(g->lid_port[7], ID_NONE);
    assert_int_not_equal(f->lid_port[7], ID_NONE);
    assert_int_equal(fabric_edit_add_link(&x, index_of(f, "spine-01"), 1, index_of(f, "spine-02"), 1),
                     -EBUSY);
    fabric_edit_done(&x);
    fabric_unref(g);
    fabric_unref(f);
    fabric_unref(bare);
}

// Rails are called in the result what they are called in what is edited.
static void test_keeps_numbers(void **state)
{
    const struct fabric *f = make("rail-64");
    struct fabric_edit x;
    (void)state;
    fabric_edit_init(&x, f);
    fabric_edit_kill(&x, (node_id){index_of(f, "leaf-su01-rail3")});
    const struct fabric *g = fabric_edit_apply(&x, NULL);
    for (uint32_t i = 0; i < g->num_nodes; i++) {
        if (strcmp(fabric_desc(g, &g->node[i]), "leaf-su01-rail3") != 0)
            assert_int_equal(g->node[i].rail, fabric_by_guid(f, g->node[i].guid)->rail);
    }
    assert_int_equal(named(g, "gpu-0002 mlx5_3")->rail, 3);
    fabric_edit_done(&x);
    fabric_unref(g);
    fabric_unref(f);
}

// The same nodes and cables, the last node first.
static const struct fabric *backwards(const struct fabric *f)
{
    struct builder *b = builder_new();
    node_id *id = xcalloc(f->num_nodes, sizeof(*id));
    for (uint32_t i = f->num_nodes; i-- > 0;) {
        struct node_attrs a = node_attrs_like(&f->node[i]);
        assert_int_equal(builder_node(b, &a, "", 0, &id[i], NULL), 0);
    }
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (port_valid(p->peer) && p->peer.i > i)
            builder_link(b, id[p->node.i], p->num, id[f->port[p->peer.i].node.i], f->port[p->peer.i].num);
    }
    free(id);
    return builder_seal(b, f->generation, NULL);
}

static void test_share_is_of_cables(void **state)
{
    const struct fabric *f = make("rail-64"), *g = backwards(f);
    struct fabric_edit x, y;
    (void)state;
    fabric_edit_init(&x, f);
    fabric_edit_init(&y, g);
    fabric_edit_cut_share(&x, 30, 7);
    fabric_edit_cut_share(&y, 30, 7);
    assert_int_equal(x.num_cut, y.num_cut);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct node *n = fabric_by_guid(g, fabric_node(f, f->port[i].node)->guid);
        assert_int_equal(x.cut[i], y.cut[fabric_port_at(g, n, f->port[i].num).i]);
    }
    fabric_edit_done(&x);
    fabric_edit_done(&y);
    fabric_unref(f);
    fabric_unref(g);
}

static void test_shares(void **state)
{
    const struct fabric *f = make("rail-256");
    struct fabric_edit small, large, other, all;
    (void)state;
    fabric_edit_init(&small, f);
    fabric_edit_init(&large, f);
    fabric_edit_init(&other, f);
    fabric_edit_init(&all, f);
    fabric_edit_cut_share(&small, 5, 7);
    fabric_edit_cut_share(&large, 20, 7);
    fabric_edit_cut_share(&other, 20, 8);
    fabric_edit_cut_share(&all, 100, 1);
    bool differs = false;
    uint32_t trunks = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct node *peer = fabric_peer_node(f, &f->port[i]);
        bool trunk =
            peer != NULL && peer->type == NODE_SWITCH && f->node[f->port[i].node.i].type == NODE_SWITCH;
        assert_true(!small.cut[i] || large.cut[i]);
        assert_int_equal(all.cut[i], trunk);
        differs |= large.cut[i] != other.cut[i];
        trunks += trunk;
    }
    assert_true(differs);
    assert_int_equal(all.num_cut, trunks / 2);
    assert_int_equal(large.num_cut, (trunks / 2 * 20 + 50) / 100);
    fabric_edit_done(&small);
    fabric_edit_done(&large);
    fabric_edit_done(&other);
    fabric_edit_done(&all);
    fabric_unref(f);
}

// A leaf like another one, with one cable to a spine whose cable elsewhere is taken out.
static void test_adds(void **state)
{
    const struct fabric *f = make("rail-64");
    struct fabric_edit x;
    struct err e = {0};
    uint32_t leaf = index_of(f, "leaf-su01-rail0"), spine = index_of(f, "spine-01"), new, none;
    (void)state;
    fabric_edit_init(&x, f);
    assert_int_equal(fabric_edit_add_node(&x, leaf, f->node[leaf].guid, 1, "twin", &none, &e), -EEXIST);
    assert_int_not_equal(e.text[0], 0);
    assert_int_equal(fabric_edit_add_node(&x, leaf, 0x1234, 0x1234, "leaf-new", &new, &e), 0);
    assert_int_equal(fabric_edit_add_node(&x, leaf, 0x1234, 0x1234, "twin", &none, &e), -EEXIST);
    assert_int_equal(new, f->num_nodes);
    assert_int_equal(fabric_edit_add_link(&x, new, 1, spine, 1), -EBUSY);
    fabric_edit_cut(&x, port_of(f, "spine-01", 1));
    assert_int_equal(fabric_edit_add_link(&x, new, 1, new, 2), -EINVAL);
    assert_int_equal(fabric_edit_add_link(&x, new, 0, spine, 1), -EBUSY);
    assert_int_equal(fabric_edit_add_link(&x, new, 200, spine, 1), -EBUSY);
    assert_int_equal(fabric_edit_add_link(&x, new, 1, spine, 1), 0);
    assert_int_equal(fabric_edit_add_link(&x, new, 2, spine, 1), -EBUSY);
    assert_false(fabric_edit_is_free(&x, new, 1));
    assert_int_equal(fabric_edit_next_free(&x, new, 0), 2);
    assert_int_equal(fabric_edit_next_free(&x, new, f->node[leaf].num_ports), 0);
    const struct fabric *g = fabric_edit_apply(&x, NULL);
    check_symmetric(g);
    assert_int_equal(g->num_nodes, f->num_nodes + 1);
    assert_int_equal(g->num_switches, f->num_switches + 1);
    const struct node *n = named(g, "leaf-new");
    assert_int_equal(n->guid, 0x1234);
    const struct port *p = fabric_port(g, fabric_port_at(g, n, 1));
    assert_string_equal(fabric_desc(g, fabric_peer_node(g, p)), "spine-01");
    assert_int_equal(p->a.state, PORT_ACTIVE);
    assert_int_equal(p->a.lid, 0);
    assert_int_not_equal(p->a.width_active, 0);
    assert_int_equal(fabric_port(g, fabric_port_at(g, n, 0))->guid, 0x1234);
    fabric_edit_done(&x);
    fabric_unref(g);
    fabric_unref(f);
}

// As many as a builder takes, by ports as well as by nodes: then it says so, and what was added stays good.
static void test_bound(void **state)
{
    struct builder *b = builder_new();
    struct node_attrs a = {.guid = 1, .type = NODE_SWITCH, .num_ports = SWITCH_MAX_PORTS};
    struct fabric_edit x;
    struct err e = {0};
    uint32_t index, most = (1u << 20) / (SWITCH_MAX_PORTS + 1) - 1;
    node_id id;
    (void)state;
    assert_int_equal(builder_node(b, &a, "wide", 4, &id, &e), 0);
    const struct fabric *f = builder_seal(b, 1, NULL);
    fabric_edit_init(&x, f);
    for (uint32_t i = 0; i < most; i++) {
        assert_int_equal(fabric_edit_add_node(&x, 0, 2 + i, 2 + i, "more", &index, &e), 0);
        assert_int_equal(index, 1 + i);
    }
    assert_int_equal(fabric_edit_add_node(&x, 0, 2 + most, 2 + most, "more", &index, &e), -E2BIG);
    const struct fabric *g = fabric_edit_apply(&x, NULL);
    assert_int_equal(g->num_nodes, 1 + most);
    fabric_edit_done(&x);
    fabric_unref(g);
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_kills),
        cmocka_unit_test(test_keeps_numbers),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_adds),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_share_is_of_cables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
