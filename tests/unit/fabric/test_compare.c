// SPDX-License-Identifier: Apache-2.0
// blueprint_compare(): what is missing, more, moved, replaced, each told once.
#include "test_model_help.h"

#include "fabric/compare.h"
#include "fabric/merge.h"
#include "fabric/topogen.h"
#include "lib/err.h"

static const struct fabric *whole(void)
{
    struct err e = {0};
    const struct fabric *f = topogen_make("rail-64", &e);
    assert_non_null(f);
    return f;
}

static node_id id_of(const struct fabric *f, const struct node *n)
{
    return (node_id){(uint32_t)(n - f->node)};
}

static const struct node *nth_of(const struct fabric *f, enum node_role role, unsigned nth)
{
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (f->node[i].role == role && nth-- == 0)
            return &f->node[i];
    fail();
    return NULL;
}

static struct blueprint_compare *both(const struct fabric *b, struct builder *live,
                                      const struct fabric **ret_live)
{
    *ret_live = builder_seal(live, 2, NULL);
    return blueprint_compare(b, *ret_live, 10);
}

static void assert_counts(const struct blueprint_compare *c, const uint32_t want[BLUEPRINT_DIFFS])
{
    for (int i = 0; i < BLUEPRINT_DIFFS; i++)
        if (c->count[i] != want[i])
            fail_msg("%s: %u, not %u", blueprint_diff_name((enum blueprint_diff)i), c->count[i], want[i]);
}

static const struct blueprint_item *first(const struct blueprint_compare *c, enum blueprint_diff kind)
{
    for (uint32_t i = 0; i < c->n; i++)
        if (c->item[i].kind == kind)
            return &c->item[i];
    fail();
    return NULL;
}

static void assert_text(const struct blueprint_compare *c, enum blueprint_diff kind, const struct fabric *b,
                        const struct fabric *live, const char *want)
{
    char text[700];
    blueprint_item_text(first(c, kind), b, live, text, sizeof(text));
    if (strstr(text, want) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", want, text);
}

static void test_same(void **state)
{
    const struct fabric *b = whole();
    (void)state;
    struct blueprint_compare *c = blueprint_compare(b, b, 10);
    assert_counts(c, (uint32_t[BLUEPRINT_DIFFS]){0});
    assert_int_equal(c->n, 0);
    blueprint_compare_free(c);
    fabric_unref(b);
}

static void test_missing(void **state)
{
    const struct fabric *b = whole(), *live;
    const struct node *spine = nth_of(b, ROLE_SPINE, 0), *leaf = nth_of(b, ROLE_LEAF, 0);
    struct builder *x = builder_from(b);
    unsigned up = 1;
    (void)state;
    while (fabric_peer_node(b, &b->port[fabric_port_at(b, leaf, up).i]) == NULL ||
           fabric_peer_node(b, &b->port[fabric_port_at(b, leaf, up).i])->type != NODE_SWITCH ||
           fabric_peer_node(b, &b->port[fabric_port_at(b, leaf, up).i]) == spine)
        up++;
    builder_unlink(x, id_of(b, leaf), up);
    builder_remove(x, id_of(b, nth_of(b, ROLE_HOST, 3)));
    builder_remove(x, id_of(b, spine));
    struct blueprint_compare *c = both(b, x, &live);
    assert_counts(c, (uint32_t[BLUEPRINT_DIFFS]){[BLUEPRINT_MISSING_NODE] = 2, [BLUEPRINT_MISSING_LINK] = 1});
    assert_int_equal(c->missing_switches, 1);
    assert_text(c, BLUEPRINT_MISSING_LINK, b, live, fabric_desc(b, leaf));
    blueprint_compare_free(c);
    c = blueprint_compare(live, b, 1); // the other way round it has grown; of each kind one is listed
    assert_int_equal(c->count[BLUEPRINT_EXTRA_NODE], 2);
    assert_int_equal(c->extra_switches, 1);
    assert_int_equal(c->count[BLUEPRINT_EXTRA_LINK], b->num_links - live->num_links - 1);
    assert_int_equal(c->n, 2);
    blueprint_compare_free(c);
    fabric_unref(live);
    fabric_unref(b);
}

// A host on another leaf; two trunks that were exchanged: one cable each that leads elsewhere at either end.
static void test_moved(void **state)
{
    const struct fabric *b = whole(), *live;
    const struct node *h = nth_of(b, ROLE_HOST, 2), *to = nth_of(b, ROLE_LEAF, 1);
    struct builder *x = builder_from(b);
    unsigned free_port = 1;
    (void)state;
    if (fabric_peer_node(b, &b->port[h->first_port]) == to)
        to = nth_of(b, ROLE_LEAF, 2);
    while (port_valid(b->port[fabric_port_at(b, to, free_port).i].peer))
        free_port++;
    builder_unlink(x, id_of(b, h), 1);
    add_link(x, id_of(b, h), 1, id_of(b, to), free_port);
    struct blueprint_compare *c = both(b, x, &live);
    assert_counts(c, (uint32_t[BLUEPRINT_DIFFS]){[BLUEPRINT_MOVED] = 1});
    assert_true(first(c, BLUEPRINT_MOVED)->guid == h->guid);
    assert_text(c, BLUEPRINT_MOVED, b, live, "in the blueprint to ");
    blueprint_compare_free(c);
    fabric_unref(live);

    const struct node *h2 = NULL; // two hosts, each at the other's place: said of the hosts
    for (unsigned i = 3; h2 == NULL; i++)
        if (fabric_peer_node(b, &b->port[nth_of(b, ROLE_HOST, i)->first_port]) !=
            fabric_peer_node(b, &b->port[h->first_port]))
            h2 = nth_of(b, ROLE_HOST, i);
    const struct port *at1 = fabric_port(b, b->port[h->first_port].peer),
                      *at2 = fabric_port(b, b->port[h2->first_port].peer);
    x = builder_from(b);
    builder_unlink(x, id_of(b, h), 1);
    builder_unlink(x, id_of(b, h2), 1);
    add_link(x, id_of(b, h), 1, at2->node, at2->num);
    add_link(x, id_of(b, h2), 1, at1->node, at1->num);
    c = both(b, x, &live);
    assert_counts(c, (uint32_t[BLUEPRINT_DIFFS]){[BLUEPRINT_MOVED] = 2});
    for (unsigned i = 0; i < 2; i++) {
        assert_true(c->item[i].guid == h->guid || c->item[i].guid == h2->guid);
        assert_true(c->item[i].was_guid ==
                    fabric_node(b, (c->item[i].guid == h->guid ? at1 : at2)->node)->guid);
    }
    blueprint_compare_free(c);
    fabric_unref(live);

    const struct node *spine = nth_of(b, ROLE_SPINE, 0); // its first two cables, the other way round
    port_id p1 = fabric_port_at(b, spine, 1), p2 = fabric_port_at(b, spine, 2);
    const struct port *z1 = fabric_port(b, b->port[p1.i].peer), *z2 = fabric_port(b, b->port[p2.i].peer);
    x = builder_from(b);
    builder_unlink(x, id_of(b, spine), 1);
    builder_unlink(x, id_of(b, spine), 2);
    add_link(x, id_of(b, spine), 1, z2->node, z2->num);
    add_link(x, id_of(b, spine), 2, z1->node, z1->num);
    c = both(b, x, &live);
    assert_counts(c, (uint32_t[BLUEPRINT_DIFFS]){[BLUEPRINT_MOVED] = 2});
    const struct node *lower = spine < fabric_node(b, z1->node) ? spine : fabric_node(b, z1->node);
    assert_true(first(c, BLUEPRINT_MOVED)->guid == lower->guid); // said of the lower end
    blueprint_compare_free(c);
    fabric_unref(live);
    fabric_unref(b);
}

static void replace(struct builder *x, const struct fabric *b, const struct node *n, uint64_t guid)
{
    node_id id = n->type == NODE_SWITCH ? add_switch(x, guid, n->num_ports, fabric_desc(b, n))
                                        : add_ca(x, guid, "other");
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct port *p = &b->port[fabric_port_at(b, n, num).i];
        if (!port_valid(p->peer))
            continue;
        const struct port *z = fabric_port(b, p->peer);
        builder_unlink(x, id_of(b, n), num);
        add_link(x, id, num, z->node, z->num);
    }
    builder_remove(x, id_of(b, n));
}

static void test_replaced(void **state)
{
    const struct fabric *b = whole(), *live;
    const struct node *spine = nth_of(b, ROLE_SPINE, 1), *h = nth_of(b, ROLE_HOST, 5);
    struct builder *x = builder_from(b);
    (void)state;
    replace(x, b, spine, 0xabc000);
    replace(x, b, h, 0xdef000);
    struct blueprint_compare *c = both(b, x, &live);
    assert_counts(c, (uint32_t[BLUEPRINT_DIFFS]){[BLUEPRINT_REPLACED] = 2});
    assert_true(first(c, BLUEPRINT_REPLACED)->guid == 0xabc000);
    assert_true(first(c, BLUEPRINT_REPLACED)->was_guid == spine->guid);
    assert_text(c, BLUEPRINT_REPLACED, b, live, "is where ");
    blueprint_compare_free(c);
    fabric_unref(live);

    x = builder_from(b); // the same GUID, another device
    builder_remove(x, id_of(b, spine));
    node_id id = add_switch(x, spine->guid, spine->num_ports + 2u, "bigger");
    const struct port *p = &b->port[fabric_port_at(b, spine, 1).i];
    const struct port *z = fabric_port(b, p->peer);
    live = builder_seal(x, 2, NULL);
    x = builder_from(live);
    fabric_unref(live);
    assert_int_equal(builder_find(x, spine->guid, &id), 0);
    node_id far;
    assert_int_equal(builder_find(x, fabric_node(b, z->node)->guid, &far), 0);
    add_link(x, id, 1, far, z->num);
    c = both(b, x, &live);
    assert_int_equal(c->count[BLUEPRINT_REPLACED], 1);
    assert_int_equal(c->count[BLUEPRINT_MOVED] + c->count[BLUEPRINT_MISSING_NODE], 0);
    blueprint_compare_free(c);
    fabric_unref(live);
    fabric_unref(b);
}

// A cable that is left out when a switch is replaced is away, by the name of the one that had it.
static void test_replaced_but_one(void **state)
{
    const struct fabric *b = whole(), *live;
    const struct node *spine = nth_of(b, ROLE_SPINE, 1);
    struct builder *x = builder_from(b);
    node_id id;
    unsigned num = 1;
    char text[300];
    (void)state;
    while (!port_valid(fabric_port(b, fabric_port_at(b, spine, num))->peer))
        num++;
    replace(x, b, spine, 0xabc000);
    assert_int_equal(builder_find(x, 0xabc000, &id), 0);
    builder_unlink(x, id, num);
    struct blueprint_compare *c = both(b, x, &live);
    assert_counts(c, (uint32_t[BLUEPRINT_DIFFS]){[BLUEPRINT_REPLACED] = 1, [BLUEPRINT_MISSING_LINK] = 1});
    snprintf(text, sizeof(text), "%s[%u]", fabric_desc(b, spine), num);
    assert_text(c, BLUEPRINT_MISSING_LINK, b, live, text);
    blueprint_compare_free(c);

    const struct fabric *next = fabric_merge(b, live); // accepted: both are in it, by one name
    c = blueprint_compare(next, live, 10);
    assert_counts(c, (uint32_t[BLUEPRINT_DIFFS]){[BLUEPRINT_MISSING_NODE] = 1});
    blueprint_item_text(first(c, BLUEPRINT_MISSING_NODE), next, live, text, sizeof(text));
    const char *guid = strstr(text, "(0x");
    assert_non_null(guid);
    assert_null(strstr(guid + 1, "(0x"));
    blueprint_compare_free(c);
    fabric_unref(next);
    fabric_unref(live);
    fabric_unref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_replaced_but_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
