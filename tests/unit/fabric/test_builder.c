// SPDX-License-Identifier: Apache-2.0
// What the builder takes, refuses and keeps, for input from wires and files.
#include "test_model_help.h"

#include <errno.h>
#include <stdlib.h>

#include "lib/err.h"
#include "lib/rng.h"

static int try_node(struct builder *b, enum node_type type, uint64_t guid, unsigned ports, node_id *ret)
{
    struct node_attrs a = {.guid = guid, .type = type, .num_ports = (uint8_t)ports};
    struct err e = {0};
    int r = builder_node(b, &a, "n", 1, ret, &e);
    assert_int_equal(e.code, r);
    assert_true(r == 0 || e.text[0]);
    return r;
}

static void test_nodes_refused(void **state)
{
    struct builder *b = builder_new();
    node_id id = NODE_NONE, again = NODE_NONE;
    assert_int_equal(try_node(b, NODE_CA, 0, 1, &id), -EINVAL);
    assert_int_equal(try_node(b, (enum node_type)0, 1, 1, &id), -EINVAL);
    assert_int_equal(try_node(b, (enum node_type)4, 1, 1, &id), -EINVAL);
    assert_int_equal(try_node(b, NODE_SWITCH, 1, 255, &id), -EINVAL);
    assert_int_equal(try_node(b, NODE_CA, 1, 255, &id), -EINVAL);
    assert_false(node_valid(id));
    assert_int_equal(try_node(b, NODE_SWITCH, 1, 254, &id), 0);
    assert_int_equal(try_node(b, NODE_CA, 1, 2, &again), -EEXIST);
    assert_int_equal(again.i, id.i);
    assert_int_equal(builder_find(b, 1, &again), 0);
    assert_int_equal(builder_find(b, 2, &again), -ENOENT);
    const struct fabric *f = builder_seal(b, 7, NULL);
    assert_int_equal(f->num_nodes, 1);
    assert_int_equal(f->node[0].type, NODE_SWITCH); // attributes of the first stay
    assert_int_equal(f->node[0].num_ports, 254);
    assert_int_equal(f->num_ports, 255);
    assert_int_equal(f->port[254].num, 254);
    assert_int_equal(f->generation, 7);
    fabric_unref(f);
}

static void test_nothing_seals(void **state)
{
    struct findings fi = {0};
    const struct fabric *f = builder_seal(builder_new(), 1, &fi);
    assert_int_equal(f->num_nodes, 0);
    assert_int_equal(f->num_planes, 0);
    assert_int_equal(f->lft_cap_min, 0xffff);
    assert_int_equal(fi.n, 0);
    assert_null(fabric_by_guid(f, 1));
    assert_false(port_valid(fabric_by_lid(f, 1)));
    builder_free(builder_from(f));
    fabric_unref(f);
    findings_done(&fi);
    builder_free(NULL);
}

static void test_no_ports(void **state)
{
    struct builder *b = builder_new();
    node_id ca = add_node(b, NODE_CA, 1, 0, "bare"), sw = add_node(b, NODE_SWITCH, 2, 0, "stub");
    struct port_attrs p = {.lid = 9};
    assert_int_equal(builder_port(b, ca, 0, &p), -EINVAL);
    assert_int_equal(builder_port(b, ca, 1, &p), -EINVAL);
    assert_int_equal(builder_port(b, sw, 0, &p), 0);
    assert_int_equal(builder_link(b, ca, 1, sw, 1), -EINVAL);
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_int_equal(f->num_ports, 1);
    assert_int_equal(fabric_by_lid(f, 9).i, 0);
    assert_int_equal(f->port[0].guid, 2);
    fabric_unref(f);
}

static void test_port_numbers(void **state)
{
    struct builder *b = builder_new();
    node_id ca = add_ca(b, 1, "h"), none = NODE_NONE, beyond = {77};
    struct port_attrs p = {0};
    assert_int_equal(builder_port(b, ca, 2, &p), -EINVAL);
    assert_int_equal(builder_port(b, ca, 1000000, &p), -EINVAL);
    assert_int_equal(builder_port(b, none, 1, &p), -EINVAL);
    assert_int_equal(builder_port(b, beyond, 1, &p), -EINVAL);
    assert_int_equal(builder_port_guid(b, beyond, 1, 5), -EINVAL);
    assert_int_equal(builder_port_label(b, ca, 2, "x", 1), -EINVAL);
    assert_int_equal(builder_exclude(b, ca, 0, PORT_EXCLUDED_BY_OPERATOR), -EINVAL);
    builder_unlink(b, beyond, 1);
    builder_remove(b, beyond);
    builder_desc(b, beyond, "x", 1);
    builder_node_attrs(b, beyond, &(struct node_attrs){.guid = 3});
    builder_sm_port(b, ca, 9);
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_false(port_valid(f->sm_port));
    fabric_unref(f);
}

static void test_links(void **state)
{
    struct builder *b = builder_new();
    node_id s = add_switch(b, 10, 4, "s"), t = add_switch(b, 20, 4, "t"), ca = add_ca(b, 30, "h");
    assert_int_equal(builder_link(b, s, 1, t, 1), 0);
    assert_int_equal(builder_link(b, s, 1, t, 1), -EEXIST);
    assert_int_equal(builder_link(b, t, 1, s, 1), -EEXIST);
    assert_int_equal(builder_link(b, s, 1, t, 2), -EBUSY);
    assert_int_equal(builder_link(b, ca, 1, t, 1), -EBUSY);
    assert_int_equal(builder_link(b, ca, 1, t, 0), -EINVAL);
    assert_int_equal(builder_link(b, ca, 1, t, 5), -EINVAL);
    assert_int_equal(builder_link(b, s, 2, s, 2), -EINVAL);
    assert_int_equal(builder_link(b, s, 3, s, 4), 0); // noted, not linked
    assert_int_equal(builder_link(b, ca, 1, t, 2), 0);
    struct findings fi = {0};
    const struct fabric *f = builder_seal(b, 1, &fi);
    assert_int_equal(f->num_links, 2);
    const struct node *n = fabric_by_guid(f, 10);
    assert_int_equal(fabric_port(f, fabric_port_at(f, n, 1))->peer.i,
                     fabric_port_at(f, fabric_by_guid(f, 20), 1).i);
    for (unsigned num = 2; num <= 4; num++) {
        const struct port *p = fabric_port(f, fabric_port_at(f, n, num));
        assert_false(port_valid(p->peer));
        assert_int_equal(p->excluded, PORT_EXCLUDED_SELF_LINK);
    }
    assert_int_equal(count_code(&fi, "self-link"), 1);
    findings_done(&fi);
    fabric_unref(f);
}

static void test_exclude(void **state)
{
    struct builder *b = builder_new();
    node_id s = add_switch(b, 10, 4, "s"), t = add_switch(b, 20, 4, "t");
    add_link(b, s, 1, t, 1);
    add_link(b, s, 2, t, 2);
    assert_int_equal(builder_exclude(b, s, 1, PORT_EXCLUDED_BY_OPERATOR), 0);
    assert_int_equal(builder_exclude(b, t, 2, PORT_EXCLUDED_PEER_SILENT), 0);
    assert_int_equal(builder_link(b, s, 1, t, 1), -EPERM); // rediscovery does not undo the operator
    assert_int_equal(builder_link(b, s, 2, t, 2), 0);      // the silent one answers again
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_int_equal(f->num_links, 1);
    assert_int_equal(f->port[fabric_port_at(f, fabric_by_guid(f, 20), 1).i].excluded,
                     PORT_EXCLUDED_BY_OPERATOR);
    assert_int_equal(f->port[fabric_port_at(f, fabric_by_guid(f, 20), 2).i].excluded, PORT_INCLUDED);

    b = builder_from(f); // and the decision lives on
    builder_find(b, 10, &s);
    builder_find(b, 20, &t);
    assert_int_equal(builder_link(b, s, 1, t, 1), -EPERM);
    builder_exclude(b, s, 1, PORT_INCLUDED);
    builder_exclude(b, t, 1, PORT_INCLUDED);
    assert_int_equal(builder_link(b, s, 1, t, 1), 0);
    fabric_unref(f);
    f = builder_seal(b, 2, NULL);
    assert_int_equal(f->num_links, 2);
    fabric_unref(f);
}

static void test_descriptions(void **state)
{
    struct builder *b = builder_new();
    struct node_attrs a = {.guid = 1, .type = NODE_CA, .num_ports = 1};
    node_id id;
    char longest[300];
    memset(longest, 'x', sizeof(longest));
    builder_node(b, &a, "a\x01z\x7f\xff\xc3\xa9\xc2\x85 ", 11, &id, NULL);
    a.guid = 2;
    builder_node(b, &a, "ends\0here", 9, &id, NULL);
    a.guid = 3;
    builder_node(b, &a, longest, sizeof(longest), &id, NULL);
    a.guid = 4;
    builder_node(b, &a, NULL, 0, &id, NULL);
    builder_port_label(b, id, 1, "1/1/2", 5);
    a.guid = 5;
    builder_node(b, &a, "\xe2\x82", 2, &id, NULL); // cut in the middle of a character
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_string_equal(fabric_desc(f, &f->node[0]), "a?z??\xc3\xa9? ");
    assert_string_equal(fabric_desc(f, &f->node[1]), "ends");
    assert_int_equal(strlen(fabric_desc(f, &f->node[2])), 127);
    assert_string_equal(fabric_desc(f, &f->node[3]), "");
    assert_string_equal(fabric_label(f, &f->port[f->node[3].first_port]), "1/1/2");
    assert_string_equal(fabric_label(f, &f->port[f->node[1].first_port]), "");
    assert_string_equal(fabric_desc(f, &f->node[4]), "??");
    fabric_unref(f);
}

// A long life of renaming does not grow the snapshot without end, and loses no name.
static void test_string_pool_stays_small(void **state)
{
    struct builder *b = builder_new();
    for (uint64_t i = 0; i < 100; i++)
        add_ca(b, 1 + 2 * i, "first name of a node");
    const struct fabric *f = builder_seal(b, 1, NULL);
    for (unsigned gen = 2; gen < 60; gen++) {
        b = builder_from(f);
        for (uint64_t i = 0; i < 100; i++) {
            char desc[64];
            node_id id;
            assert_int_equal(builder_find(b, 1 + 2 * i, &id), 0);
            int n =
                snprintf(desc, sizeof(desc), "host-%u of generation %u, with a long tail", (unsigned)i, gen);
            builder_desc(b, id, desc, (size_t)n);
            if (i == 50)
                builder_port_label(b, id, 1, "kept", 4);
        }
        fabric_unref(f);
        f = builder_seal(b, gen, NULL);
        assert_string_equal(fabric_label(f, &f->port[f->node[50].first_port]), "kept");
        assert_true(f->strings_size < 40000);
    }
    assert_string_equal(fabric_desc(f, &f->node[99]), "host-99 of generation 59, with a long tail");
    fabric_unref(f);
}

static void test_from_keeps_everything(void **state)
{
    struct builder *b = builder_new();
    node_id s = add_switch(b, 10, 4, "s"), h = add_ca(b, 30, "h mlx5_0");
    add_link(b, s, 3, h, 1);
    set_lid(b, h, 1, 5, 0, PORT_ACTIVE);
    builder_sm_port(b, h, 1);
    const struct fabric *f = builder_seal(b, 1, NULL), *g = builder_seal(builder_from(f), 2, NULL);
    assert_int_equal(g->generation, 2);
    assert_int_equal(g->num_nodes, f->num_nodes);
    assert_memory_equal(g->node, f->node, f->num_nodes * sizeof(struct node));
    assert_memory_equal(g->port, f->port, f->num_ports * sizeof(struct port));
    assert_int_equal(g->sm_port.i, f->sm_port.i);
    assert_int_equal(fabric_by_lid(g, 5).i, fabric_by_lid(f, 5).i);
    fabric_unref(f);
    assert_string_equal(fabric_desc(g, fabric_by_guid(g, 30)), "h mlx5_0"); // nothing of f is needed
    fabric_unref(g);
}

static void test_remove(void **state)
{
    struct builder *b = builder_new();
    node_id s = add_switch(b, 10, 4, "s"), a = add_ca(b, 20, "a"), z = add_ca(b, 30, "z"), again;
    add_link(b, s, 1, a, 1);
    add_link(b, s, 2, z, 1);
    builder_sm_port(b, z, 1);
    builder_remove(b, a);
    builder_remove(b, a);
    assert_int_equal(builder_find(b, 20, &again), -ENOENT);
    assert_int_equal(builder_link(b, s, 1, a, 1), -EINVAL);
    again = add_ca(b, 20, "a came back");
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_int_equal(f->num_nodes, 3);
    assert_int_equal(f->num_links, 1);
    assert_string_equal(fabric_desc(f, fabric_by_guid(f, 20)), "a came back");
    assert_int_equal(fabric_by_guid(f, 30) - f->node, 1); // moved up
    assert_int_equal(fabric_port(f, f->sm_port)->node.i, 1);
    assert_ptr_equal(fabric_peer_node(f, fabric_port(f, f->sm_port)), fabric_by_guid(f, 10));

    b = builder_from(f);
    builder_find(b, 30, &z);
    builder_remove(b, z);
    fabric_unref(f);
    f = builder_seal(b, 2, NULL);
    assert_false(port_valid(f->sm_port));
    assert_int_equal(f->num_links, 0);
    fabric_unref(f);
}

static void test_lids(void **state)
{
    struct builder *b = builder_new();
    node_id s = add_switch(b, 10, 4, "s"), a = add_ca(b, 20, "a"), z = add_ca(b, 30, "z"),
            w = add_ca(b, 40, "w");
    set_lid(b, s, 0, 8, 0, PORT_ACTIVE);
    set_lid(b, s, 2, 77, 0, PORT_ACTIVE); // an external port has no LID
    set_lid(b, a, 1, 4, 2, PORT_ACTIVE);
    set_lid(b, z, 1, 6, 0, PORT_ACTIVE); // inside a's range
    set_lid(b, w, 1, 0xbfff, 3, PORT_ACTIVE);
    node_id v = add_ca(b, 50, "v");
    set_lid(b, v, 1, 0xffff, 0, PORT_INIT);
    struct findings fi = {0};
    const struct fabric *f = builder_seal(b, 1, &fi);
    assert_int_equal(fabric_port(f, fabric_by_lid(f, 8))->num, 0);
    for (uint16_t lid = 4; lid < 8; lid++)
        assert_int_equal(fabric_port(f, fabric_by_lid(f, lid))->guid, 21);
    assert_false(port_valid(fabric_by_lid(f, 77)));
    assert_false(port_valid(fabric_by_lid(f, 0)));
    assert_false(port_valid(fabric_by_lid(f, 0xffff)));
    assert_int_equal(f->top_lid, 0xbfff);
    assert_int_equal(count_code(&fi, "duplicate-lid"), 1);
    assert_non_null(find_code(&fi, "lid-not-unicast"));
    findings_done(&fi);
    fabric_unref(f);
}

static void test_port_guid_twice(void **state)
{
    struct builder *b = builder_new();
    add_ca(b, 20, "a");
    node_id z = add_ca(b, 30, "z");
    builder_port_guid(b, z, 1, 21);
    struct findings fi = {0};
    const struct fabric *f = builder_seal(b, 1, &fi);
    assert_int_equal(fabric_by_port_guid(f, 21).i, 0);
    assert_non_null(find_code(&fi, "duplicate-guid"));
    assert_false(port_valid(fabric_by_port_guid(f, 31)));
    findings_done(&fi);
    fabric_unref(f);
}

static void test_limits(void **state)
{
    struct builder *b = builder_new();
    node_id id;
    uint64_t guid = 1;
    while (guid <= 65536)
        assert_int_equal(try_node(b, NODE_CA, guid++, 1, &id), 0);
    assert_int_equal(try_node(b, NODE_CA, guid, 1, &id), -E2BIG);
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_int_equal(f->num_nodes, 65536);
    assert_int_equal(f->num_planes, 65536);
    assert_int_equal(f->node[65535].plane, 65535);
    fabric_unref(f);

    b = builder_new();
    int r = 0;
    for (guid = 1; guid < 65536 && r == 0; guid++)
        r = try_node(b, NODE_SWITCH, guid, 254, &id);
    assert_int_equal(r, -E2BIG); // a file cannot ask for all the ports it likes
    builder_free(b);
}

static void test_findings(void **state)
{
    struct findings f = {0}, g = {0};
    findings_add(&f, FINDING_INFO, "x", "here", "first %d", 1);
    findings_add(&f, FINDING_WARNING, "x", "here", "second");
    findings_add(&f, FINDING_INFO, "x", "there", "third");
    findings_add(NULL, FINDING_INFO, "x", "there", "nobody listens");
    assert_int_equal(f.n, 2);
    assert_int_equal(f.total, 3);
    assert_int_equal(f.item[0].count, 2);
    assert_int_equal(f.item[0].severity, FINDING_WARNING);
    assert_string_equal(f.item[0].text, "first 1");
    for (int i = 0; i < 2 * FINDINGS_MAX; i++) {
        char where[20];
        snprintf(where, sizeof(where), "%d", i);
        findings_add(&g, FINDING_ERROR, "y", where, "text");
    }
    assert_int_equal(g.n, FINDINGS_MAX);
    assert_int_equal(g.total, 2 * FINDINGS_MAX);
    findings_merge(&f, &g);
    findings_merge(&f, &f); // counts double, nothing else
    assert_int_equal(f.n, FINDINGS_MAX);
    assert_int_equal(f.total, 2 * (3 + 2 * FINDINGS_MAX)); // what was only counted is counted on
    assert_int_equal(f.item[0].count, 4);
    findings_done(&f);
    findings_done(&g);
    assert_int_equal(f.n, 0);
}

// ---------------------------------------------------------------- random graphs

static void check_invariants(const struct fabric *f)
{
    uint32_t sw = 0, links = 0, port = 0;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[i];
        assert_ptr_equal(fabric_by_guid(f, n->guid), n);
        assert_int_equal(n->first_port, port);
        if (n->type == NODE_SWITCH) {
            assert_int_equal(f->switch_node[n->sw], i);
            assert_int_equal(n->sw, sw++);
            assert_int_equal(n->host, ID_NONE);
        } else {
            assert_int_equal(n->sw, ID_NONE);
            assert_true(n->host == ID_NONE ? n->role != ROLE_HOST : n->host < f->num_hosts);
        }
        assert_true(n->plane < f->num_planes);
        assert_true(n->su == SU_NONE || n->su < f->num_sus);
        assert_true(n->rail == RAIL_NONE || n->rail < f->num_rails);
        assert_true(n->tier == TIER_NONE || n->tier < f->num_tiers);
        for (unsigned num = node_first_num(n); num <= n->num_ports; num++, port++) {
            const struct port *p = &f->port[port];
            assert_int_equal(fabric_port_at(f, n, num).i, port);
            assert_int_equal(p->node.i, i);
            assert_int_equal(p->num, num);
            if (!port_valid(p->peer))
                continue;
            assert_true(p->peer.i < f->num_ports && num > 0);
            assert_int_equal(f->port[p->peer.i].peer.i, port);
            assert_true(f->port[p->peer.i].node.i != i);
            assert_int_equal(p->excluded, PORT_INCLUDED);
            links++;
        }
        assert_false(port_valid(fabric_port_at(f, n, n->num_ports + 1u)));
    }
    assert_int_equal(port, f->num_ports);
    assert_int_equal(sw, f->num_switches);
    assert_int_equal(links, 2 * f->num_links);
    assert_int_equal(f->num_end_nodes, f->num_nodes - sw);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        port_id by = f->port[i].guid ? fabric_by_port_guid(f, f->port[i].guid) : PORT_NONE;
        assert_true(!f->port[i].guid || f->port[by.i].guid == f->port[i].guid);
        if (port_is_end(f, &f->port[i]) && f->port[i].a.lid && f->port[i].a.lid <= LID_UCAST_MAX)
            assert_true(port_valid(fabric_by_lid(f, f->port[i].a.lid)));
    }
}

static void random_change(struct rng *r, struct builder *b)
{
    static const char *const desc[] = {"h1 mlx5_0",
                                       "h1 mlx5_1",
                                       "",
                                       "localhost HCA-1",
                                       "leaf-1",
                                       "leaf-10",
                                       "Mellanox Technologies Aggregation Node",
                                       "ib ibp1s0f0",
                                       "\xff\xfe"};
    uint64_t guid = 1 + rng_below(r, 120), other = 1 + rng_below(r, 120);
    node_id a = NODE_NONE, z = NODE_NONE;
    bool known = builder_find(b, guid, &a) == 0;
    switch (rng_below(r, known ? 8 : 1)) {
    case 0: {
        const char *s = desc[rng_below(r, 9)];
        struct node_attrs at = {.guid = guid,
                                .sys_guid = rng_below(r, 4) ? 0 : 1 + rng_below(r, 40),
                                .type = (enum node_type)(1 + (rng_below(r, 10) ? rng_below(r, 2) : 2)),
                                .num_ports = (uint8_t)rng_below(r, rng_below(r, 10) ? 9 : 255)};
        builder_node(b, &at, s, strlen(s), &a, NULL);
        break;
    }
    case 1:
        if (rng_below(r, 10) == 0)
            builder_remove(b, a);
        break;
    case 2:
        builder_exclude(b, a, rng_below(r, 9), (enum port_excluded)rng_below(r, 7));
        break;
    case 3:
        builder_port_guid(b, a, 1, rng_below(r, 300));
        break;
    case 4: {
        struct port_attrs p = {.lid = (uint16_t)rng_u64(r), .lmc = (uint8_t)rng_u64(r), .state = PORT_ACTIVE};
        builder_port(b, a, rng_below(r, 9), &p);
        break;
    }
    case 5:
        builder_unlink(b, a, rng_below(r, 9));
        break;
    default:
        if (builder_find(b, other, &z) == 0)
            builder_link(b, a, rng_below(r, 9), z, rng_below(r, 9));
    }
}

static void test_random_graphs(void **state)
{
    struct rng r;
    rng_init(&r, 42);
    const struct fabric *f = builder_seal(builder_new(), 0, NULL);
    for (uint64_t gen = 1; gen < 400; gen++) {
        struct builder *b = gen % 20 ? builder_from(f) : builder_new();
        struct findings fi = {0};
        for (uint32_t k = rng_below(&r, 500); k > 0; k--)
            random_change(&r, b);
        fabric_unref(f);
        f = builder_seal(b, gen, &fi);
        check_invariants(f);
        findings_done(&fi);
    }
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_refused),
        cmocka_unit_test(test_nothing_seals),
        cmocka_unit_test(test_no_ports),
        cmocka_unit_test(test_port_numbers),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_exclude),
        cmocka_unit_test(test_descriptions),
        cmocka_unit_test(test_string_pool_stays_small),
        cmocka_unit_test(test_from_keeps_everything),
        cmocka_unit_test(test_remove),
        cmocka_unit_test(test_lids),
        cmocka_unit_test(test_port_guid_twice),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
