// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/builder.h"
#include "fabric/edit.h"
#include "fabric/reach.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/rng.h"

static node_id add(struct builder *b, enum node_type type, uint64_t guid, unsigned ports)
{
    char name[32];
    node_id n;
    struct node_attrs a = {.guid = guid, .sys_guid = guid, .type = type, .num_ports = (uint8_t)ports};
    int len =
        snprintf(name, sizeof(name), "%s-%llu", type == NODE_SWITCH ? "sw" : "h", (unsigned long long)guid);
    assert_int_equal(builder_node(b, &a, name, (size_t)len, &n, NULL), 0);
    return n;
}

// Switches 0..n-1, each with `hosts` adapters on ports 1..hosts; cables between them as given: pairs of
// switches.
static const struct fabric *make(unsigned n, unsigned hosts, const unsigned (*cable)[2], unsigned cables)
{
    struct builder *b = builder_new();
    node_id sw[64];
    unsigned used[64];
    for (unsigned i = 0; i < n; i++) {
        sw[i] = add(b, NODE_SWITCH, i + 1, 64);
        used[i] = hosts;
    }
    for (unsigned i = 0; i < n; i++)
        for (unsigned k = 1; k <= hosts; k++)
            assert_int_equal(builder_link(b, sw[i], k, add(b, NODE_CA, 1000 + i * 100 + k, 1), 1), 0);
    for (unsigned i = 0; i < cables; i++) {
        unsigned a = cable[i][0], z = cable[i][1];
        assert_int_equal(builder_link(b, sw[a], ++used[a], sw[z], ++used[z]), 0);
    }
    return builder_seal(b, 1, NULL);
}

// 0 - 1 = 2 - 3: the cables at both ends are single, that in the middle is double.
static void test_chain(void **state)
{
    static const unsigned cable[][2] = {{0, 1}, {1, 2}, {1, 2}, {2, 3}};
    const struct fabric *f = make(4, 3, cable, 4);
    struct reach_single s[10];
    (void)state;
    assert_int_equal(reach_singles(f, s, 10), 4);
    // The loss of 1 leaves 3 | 6 of 9 that do not hang on it; so does that of 2.
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(s[i].ends, 3);
    unsigned switches = 0, cables = 0;
    for (unsigned i = 0; i < 4; i++) {
        uint64_t guid = f->node[s[i].node].guid;
        switches += s[i].port == 0 && (guid == 2 || guid == 3);
        cables += s[i].port != 0;
    }
    assert_int_equal(switches, 2);
    assert_int_equal(cables, 2);
    struct reach_single one;
    assert_int_equal(reach_singles(f, &one, 1), 4);
    assert_int_equal(one.node, s[0].node);
    assert_int_equal(reach_singles(f, NULL, 0), 4);
    fabric_unref(f);
}

// Every answer against its meaning: take the thing away and see who is cut off.
static void check_singles(const struct fabric *f)
{
    struct reach_single *s = calloc(f->num_ports + f->num_nodes, sizeof(*s));
    uint32_t n = reach_singles(f, s, f->num_ports + f->num_nodes);
    for (uint32_t i = 0; i + 1 < n; i++)
        assert_true(s[i].ends >= s[i + 1].ends);
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        uint32_t at = f->switch_node[sw];
        const struct node *nd = &f->node[at];
        for (unsigned num = 0; num <= nd->num_ports; num++) {
            struct fabric_edit x;
            struct reach_change c;
            const struct node *peer = num ? fabric_peer_node(f, &f->port[nd->first_port + num]) : NULL;
            if (num > 0 && (peer == NULL || peer->type != NODE_SWITCH))
                continue;
            fabric_edit_init(&x, f);
            if (num == 0) {
                fabric_edit_kill(&x, (node_id){at});
                for (unsigned k = 1; k <= nd->num_ports; k++) { // its own are no concern here
                    const struct node *own = fabric_peer_node(f, &f->port[nd->first_port + k]);
                    if (own != NULL && own->type != NODE_SWITCH)
                        fabric_edit_kill(&x, (node_id){(uint32_t)(own - f->node)});
                }
            } else {
                fabric_edit_cut(&x, (port_id){nd->first_port + num});
            }
            const struct fabric *g = fabric_edit_apply(&x, NULL);
            reach_compare(f, g, x.dead, &c);
            uint32_t told = 0;
            for (uint32_t i = 0; i < n; i++) {
                port_id p = num ? f->port[nd->first_port + num].peer : PORT_NONE;
                bool far = num > 0 && s[i].node == f->port[p.i].node.i && s[i].port == f->port[p.i].num;
                if ((s[i].node == at && s[i].port == num) || far)
                    told = s[i].ends;
            }
            assert_int_equal(told, c.num_end);
            reach_change_done(&c);
            fabric_unref(g);
            fabric_edit_done(&x);
        }
    }
    free(s);
}

static void test_singles_of_random_graphs(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 5);
    for (unsigned round = 0; round < 60; round++) {
        unsigned cable[24][2], n = 2 + rng_below(&r, 9), cables = rng_below(&r, 20);
        for (unsigned i = 0; i < cables; i++) {
            cable[i][0] = rng_below(&r, n);
            do
                cable[i][1] = rng_below(&r, n);
            while (cable[i][1] == cable[i][0]);
        }
        const struct fabric *f = make(n, rng_below(&r, 4), (const unsigned(*)[2])cable, cables);
        check_singles(f);
        fabric_unref(f);
    }
}

static void test_trees_have_none(void **state)
{
    struct err e = {0};
    const struct fabric *f = topogen_make("ft3-8-4", &e);
    (void)state;
    assert_non_null(f);
    assert_int_equal(reach_singles(f, NULL, 0), 0);
    fabric_unref(f);
}

// What sits inside a switch dies with it, and nobody misses it.
static void test_aggregation_nodes_do_not_count(void **state)
{
    static const char name[] = "Mellanox Technologies Aggregation Node";
    static const unsigned cable[][2] = {{0, 2}, {1, 2}, {0, 3}, {1, 3}};
    const struct fabric *bare = make(4, 2, cable, 4);
    struct fabric_edit x;
    struct reach_change c;
    node_id sharp;
    (void)state;
    struct builder *b = builder_from(bare);
    struct node_attrs a = {.guid = 9999, .sys_guid = 9999, .type = NODE_CA, .num_ports = 1};
    assert_int_equal(builder_node(b, &a, name, sizeof(name) - 1, &sharp, NULL), 0);
    for (unsigned i = 2; i < 4; i++) // no hosts on the two in the middle
        for (unsigned k = 1; k <= 2; k++)
            builder_unlink(b, (node_id){i}, k);
    assert_int_equal(builder_link(b, (node_id){2}, 40, sharp, 1), 0);
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_int_equal(f->node[sharp.i].role, ROLE_AGGREGATION);
    fabric_edit_init(&x, f);
    fabric_edit_kill(&x, (node_id){2});
    const struct fabric *g = fabric_edit_apply(&x, NULL);
    reach_compare(f, g, x.dead, &c);
    assert_int_equal(c.ends_before, 4);
    assert_int_equal(c.num_end + c.num_sw, 0);
    reach_change_done(&c);
    fabric_edit_done(&x);
    fabric_unref(g);
    fabric_unref(f);
    fabric_unref(bare);
}

static void test_change(void **state)
{
    struct err e = {0};
    const struct fabric *f = topogen_make("rail-64", &e);
    struct fabric_edit x;
    struct reach_change c;
    uint32_t leaf = ID_NONE;
    (void)state;
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (strcmp(fabric_desc(f, &f->node[i]), "leaf-su01-rail0") == 0)
            leaf = i;
    assert_int_not_equal(leaf, ID_NONE);
    fabric_edit_init(&x, f);
    fabric_edit_kill(&x, (node_id){leaf});
    const struct fabric *g = fabric_edit_apply(&x, NULL);
    reach_compare(f, g, x.dead, &c);
    assert_int_equal(c.ends_before, 64);
    assert_int_equal(c.pairs_before, 64 * 63);
    assert_true(c.num_end > 0);
    assert_int_equal(c.ends_after, 64 - c.num_end);
    assert_int_equal(c.pairs_after, (uint64_t)c.ends_after * (c.ends_after - 1));
    assert_int_equal(c.num_sw, 0); // the dead one is no concern
    assert_int_equal(c.hosts_touched, c.num_end);
    assert_int_equal(c.hosts_lost, 0); // seven other adapters
    for (uint32_t i = 0; i < c.num_end; i++)
        assert_ptr_equal(fabric_peer_node(f, &f->port[c.end[i]]), &f->node[leaf]);
    reach_change_done(&c);
    // Its trunks alone: it is cut off with those on it.
    struct fabric_edit y;
    fabric_edit_init(&y, f);
    for (unsigned k = 1; k <= f->node[leaf].num_ports; k++) {
        port_id p = fabric_port_at(f, &f->node[leaf], k);
        const struct node *peer = fabric_peer_node(f, fabric_port(f, p));
        if (peer != NULL && peer->type == NODE_SWITCH)
            fabric_edit_cut(&y, p);
    }
    const struct fabric *h = fabric_edit_apply(&y, NULL);
    reach_compare(f, h, NULL, &c);
    assert_int_equal(c.num_sw, 1);
    assert_int_equal(c.sw[0], leaf);
    assert_int_equal(c.hosts_touched, c.num_end);
    assert_int_equal(c.ends_after, 64);
    reach_change_done(&c);
    reach_compare(f, f, NULL, &c);
    assert_int_equal(c.num_end + c.num_sw + c.hosts_touched + c.hosts_lost, 0);
    assert_int_equal(c.pairs_after, c.pairs_before);
    reach_change_done(&c);
    fabric_unref(h);
    fabric_unref(g);
    fabric_edit_done(&x);
    fabric_edit_done(&y);
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),           cmocka_unit_test(test_singles_of_random_graphs),
        cmocka_unit_test(test_trees_have_none), cmocka_unit_test(test_aggregation_nodes_do_not_count),
        cmocka_unit_test(test_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
