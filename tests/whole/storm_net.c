// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/builder.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "mad/mad.h"
#include "tests/whole/storm.h"

// --- fabrics ---

static node_id add(struct builder *b, uint64_t guid, enum node_type type, unsigned ports)
{
    struct node_attrs a = {.guid = guid,
                           .sys_guid = guid,
                           .type = type,
                           .num_ports = (uint8_t)ports,
                           .partition_cap = 32,
                           .lft_cap = type == NODE_SWITCH ? 49152 : 0,
                           .vendor_id = 0x2c9};
    struct port_attrs p = {.state = PORT_INIT, .phys_state = 5, .mtu_cap = 5, .vl_cap = 4};
    char name[32];
    node_id n;
    snprintf(name, sizeof(name), "%s-%llx", type == NODE_SWITCH ? "sw" : "host", (unsigned long long)guid);
    assert_int_equal(builder_node(b, &a, name, strlen(name), &n, NULL), 0);
    for (unsigned i = type == NODE_SWITCH ? 0 : 1; i <= ports; i++)
        builder_port(b, n, i, &p);
    for (unsigned i = 1; i <= ports && type != NODE_SWITCH; i++)
        builder_port_guid(b, n, i, guid + i);
    if (type == NODE_SWITCH)
        builder_port_guid(b, n, 0, guid);
    return n;
}

static unsigned add_hosts(struct builder *b, node_id leaf, unsigned first_port, unsigned n, unsigned have)
{
    for (unsigned i = 0; i < n; i++) {
        node_id h = add(b, 0x100000 + 16ull * (have + i), NODE_CA, 1);
        assert_int_equal(builder_link(b, leaf, first_port + i, h, 1), 0);
        if (have + i == 0)
            builder_sm_port(b, h, 1);
    }
    return have + n;
}

// Three levels, where each core joins both aggs of every pod: a walk may come down where it went up.
static const struct fabric *two_aggs(unsigned pods, unsigned cores)
{
    struct builder *b = builder_new();
    node_id core[8];
    unsigned hosts = 0;
    for (unsigned c = 0; c < cores; c++)
        core[c] = add(b, 0x3000 + c, NODE_SWITCH, 16);
    for (unsigned p = 0; p < pods; p++) {
        node_id agg[2];
        for (unsigned a = 0; a < 2; a++) {
            agg[a] = add(b, 0x2000 + p * 2 + a, NODE_SWITCH, 16);
            for (unsigned c = 0; c < cores; c++)
                assert_int_equal(builder_link(b, agg[a], 9 + c, core[c], 1 + p * 2 + a), 0);
        }
        for (unsigned l = 0; l < 2; l++) {
            node_id leaf = add(b, 0x1000 + p * 2 + l, NODE_SWITCH, 16);
            for (unsigned a = 0; a < 2; a++)
                assert_int_equal(builder_link(b, leaf, 15 + a, agg[a], 1 + l), 0);
            hosts = add_hosts(b, leaf, 1, 2, hosts);
        }
    }
    return builder_seal(b, 1, NULL);
}

// Switches in a random tree with some more cables, parallel ones too, and an adapter with both ports cabled.
static const struct fabric *mesh(struct rng *rng)
{
    struct builder *b = builder_new();
    unsigned n = 5 + rng_below(rng, 8), hosts = 0, used[16] = {0};
    node_id sw[16];
    for (unsigned i = 0; i < n; i++) {
        sw[i] = add(b, 0x1000 + i, NODE_SWITCH, 24);
        if (i > 0) {
            unsigned k = rng_below(rng, i);
            assert_int_equal(builder_link(b, sw[i], ++used[i], sw[k], ++used[k]), 0);
        }
    }
    for (unsigned i = 0; i < n + 2; i++) {
        unsigned a = rng_below(rng, n), k = rng_below(rng, n);
        if (a == k || used[a] > 14 || used[k] > 14)
            continue;
        assert_int_equal(builder_link(b, sw[a], ++used[a], sw[k], ++used[k]), 0);
    }
    for (unsigned i = 0; i < n; i++)
        hosts = add_hosts(b, sw[i], 20, i == 0 ? 2 : rng_below(rng, 3), hosts);
    node_id two = add(b, 0x200000, NODE_CA, 2);
    assert_int_equal(builder_link(b, sw[0], ++used[0], two, 1), 0);
    assert_int_equal(builder_link(b, sw[n - 1], ++used[n - 1], two, 2), 0);
    return builder_seal(b, 1, NULL);
}

const struct fabric *plan_of(struct rng *rng, const char **ret_name)
{
    static const char *const made[] = {"rail-16", "ft3-4-2", "ft3-4-4", "rail-64", "ft3-8-2"};
    uint32_t pick = rng_below(rng, 100);
    if (pick < 35) {
        *ret_name = "mesh";
        return mesh(rng);
    }
    if (pick < 60) {
        *ret_name = "two aggs";
        unsigned pods = 2 + rng_below(rng, 2);
        return two_aggs(pods, 1 + rng_below(rng, 3));
    }
    const char *name = made[pick < 70 ? 0 : pick < 80 ? 1 : pick < 92 ? 2 : pick < 96 ? 3 : 4];
    *ret_name = name;
    return topogen_make(name, NULL);
}

// --- the cables as they are ---

const struct node *node_of_port(const struct storm *st, uint32_t p)
{
    return &st->f->node[st->f->port[p].node.i];
}

static uint32_t index_of(const struct storm *st, const struct node *n)
{
    return (uint32_t)(n - st->f->node);
}

uint64_t guid_of_port(const struct storm *st, uint32_t p)
{
    return st->node[st->f->port[p].node.i].guid;
}

bool is_switch(const struct storm *st, uint32_t node)
{
    return st->f->node[node].type == NODE_SWITCH;
}

uint32_t port_at(const struct storm *st, uint32_t node, unsigned num)
{
    return fabric_port_at(st->f, &st->f->node[node], num).i;
}

bool carries(const struct storm *st, uint32_t p)
{
    const struct port_now *x = &st->port[p];
    return x->peer != NONE && !x->cut && node_of_port(st, p) != node_of_port(st, x->peer);
}

// What hangs together with us.
void find_live(struct storm *st)
{
    uint32_t *queue = xcalloc(st->f->num_nodes, sizeof(*queue)), n = 0;
    for (uint32_t i = 0; i < st->f->num_nodes; i++)
        st->node[i].live = false;
    queue[n++] = st->own;
    st->node[st->own].live = true;
    for (uint32_t head = 0; head < n; head++) {
        uint32_t i = queue[head];
        if (!is_switch(st, i) && head > 0)
            continue;
        for (unsigned num = 1; num <= st->f->node[i].num_ports; num++) {
            uint32_t p = port_at(st, i, num);
            if (!carries(st, p))
                continue;
            uint32_t z = index_of(st, node_of_port(st, st->port[p].peer));
            if (!st->node[z].live) {
                st->node[z].live = true;
                queue[n++] = z;
            }
        }
    }
    free(queue);
}

void storm_model(struct storm *st)
{
    const struct fabric *f = st->f;
    st->node = xcalloc(f->num_nodes, sizeof(*st->node));
    st->port = xcalloc(f->num_ports, sizeof(*st->port));
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        st->node[i].guid = f->node[i].guid;
        snprintf(st->node[i].desc, sizeof(st->node[i].desc), "%s", fabric_desc(f, &f->node[i]));
    }
    for (uint32_t i = 0; i < f->num_ports; i++)
        st->port[i].peer = f->port[i].peer.i;
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (port_valid(f->sm_port) ? i == f->sm_port.i : node_of_port(st, i)->type == NODE_CA) {
            st->own = f->port[i].node.i;
            st->own_leaf_port = st->port[i].peer;
            break;
        }
}

// The same live cables and devices, in factory state.
const struct fabric *live_graph(const struct storm *st)
{
    const struct fabric *f = st->f;
    struct builder *b = builder_new();
    node_id *id = xcalloc(f->num_nodes, sizeof(*id));

    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[i];
        uint64_t guid = st->node[i].guid;
        struct node_attrs a = node_attrs_like(n);
        a.guid = guid;
        a.sys_guid = st->node[i].replaced ? guid : n->sys_guid;
        a.lft_top = 0;
        assert_int_equal(builder_node(b, &a, st->node[i].desc, strlen(st->node[i].desc), &id[i], NULL), 0);
        for (unsigned num = node_first_num(n); num <= n->num_ports; num++) {
            const struct port *p = &f->port[port_at(st, i, num)];
            struct port_attrs pa = p->a;
            pa.lid = 0;
            builder_port(b, id[i], num, &pa);
            if (port_is_end(f, p))
                builder_port_guid(b, id[i], num, guid + (p->guid - n->guid));
        }
    }
    for (uint32_t p = 0; p < f->num_ports; p++)
        if (carries(st, p) && p < st->port[p].peer)
            assert_int_equal(builder_link(b, id[f->port[p].node.i], f->port[p].num,
                                          id[f->port[st->port[p].peer].node.i],
                                          f->port[st->port[p].peer].num),
                             0);
    builder_sm_port(b, id[st->own], f->port[st->port[st->own_leaf_port].peer].num);
    free(id);
    return builder_seal(b, 1, NULL);
}
