// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/reader.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "tests/unit/routing/rig.h"

static uint32_t give_lid(struct builder *b, const struct fabric *f, const struct node *n, unsigned num,
                         uint32_t lid, unsigned lmc)
{
    port_id id = fabric_port_at(f, n, num);
    struct port_attrs a = fabric_port(f, id)->a;
    uint32_t step = 1u << lmc;
    lid = (lid + step - 1) / step * step;
    assert_true(lid + step - 1 <= LID_UCAST_MAX);
    a.lid = (uint16_t)lid;
    a.lmc = (uint8_t)lmc;
    assert_int_equal(builder_port(b, (node_id){(uint32_t)(n - f->node)}, num, &a), 0);
    return lid + step;
}

const struct fabric *rig_lids(const struct fabric *f, unsigned lmc)
{
    struct builder *b = builder_from(f);
    uint32_t lid = 1;
    for (uint32_t s = 0; s < f->num_switches; s++)
        lid = give_lid(b, f, fabric_switch(f, s), 0, lid, 0);
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *sw = fabric_switch(f, s);
        for (unsigned num = 1; num <= sw->num_ports; num++) {
            const struct port *p = fabric_port(f, fabric_port_at(f, sw, num));
            const struct node *peer = fabric_peer_node(f, p);
            if (peer && peer->type != NODE_SWITCH)
                lid = give_lid(b, f, peer, fabric_port(f, p->peer)->num, lid, lmc);
        }
    }
    for (uint32_t i = 0; i < f->num_nodes; i++) { // adapters on no switch
        const struct node *n = &f->node[i];
        for (unsigned num = 1; num <= n->num_ports && n->type != NODE_SWITCH; num++) {
            const struct port *p = fabric_port(f, fabric_port_at(f, n, num));
            const struct node *peer = fabric_peer_node(f, p);
            if (peer && peer->type != NODE_SWITCH)
                lid = give_lid(b, f, n, num, lid, lmc);
        }
    }
    const struct fabric *r = builder_seal(b, f->generation + 1, NULL);
    fabric_unref(f);
    return r;
}

const struct fabric *rig_named(const char *name)
{
    struct err e = {0};
    const struct fabric *f = topogen_make(name, &e);
    if (!f)
        fail_msg("%s: %s", name, e.text);
    return rig_lids(f, 0);
}

const struct fabric *rig_sample(const char *file)
{
    const char *shared = getenv("WEFT_SHARED");
    char path[600];
    snprintf(path, sizeof(path), "%s/fabrics/ibnetdiscover/%s",
             shared ? shared : WEFT_SOURCE_ROOT "/../shared", file);
    if (access(path, R_OK) != 0)
        return NULL;
    struct err e = {0};
    const struct fabric *f = reader_load(path, NULL, &e);
    if (!f)
        fail_msg("%s: %s", path, e.text);
    return rig_lids(f, 0);
}

const struct fabric *rig_degrade(const struct fabric *f, unsigned percent, struct rng *r)
{
    struct builder *b = builder_from(f);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *n = fabric_node(f, p->node), *peer = fabric_peer_node(f, p);
        if (n->type == NODE_SWITCH && peer && peer->type == NODE_SWITCH && i < p->peer.i &&
            rng_below(r, 100) < percent)
            builder_unlink(b, p->node, p->num);
    }
    const struct fabric *d = builder_seal(b, f->generation + 1, NULL);
    fabric_unref(f);
    return d;
}

const struct fabric *rig_renumber(const struct fabric *f, struct rng *r)
{
    struct builder *b = builder_new();
    uint32_t *order = xcalloc(f->num_nodes, sizeof(*order));
    node_id *id = xcalloc(f->num_nodes, sizeof(*id));
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        uint32_t k = rng_below(r, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[order[i]];
        const char *desc = fabric_desc(f, n);
        struct node_attrs a = node_attrs_like(n);
        assert_int_equal(builder_node(b, &a, desc, strlen(desc), &id[order[i]], NULL), 0);
    }
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        builder_port(b, id[p->node.i], p->num, &p->a);
        if (p->guid)
            builder_port_guid(b, id[p->node.i], p->num, p->guid);
        if (port_valid(p->peer) && i < p->peer.i)
            builder_link(b, id[p->node.i], p->num, id[f->port[p->peer.i].node.i], f->port[p->peer.i].num);
    }
    free(order);
    free(id);
    return builder_seal(b, f->generation, NULL);
}

void rig_start(struct rig *r)
{
    memset(r, 0, sizeof(*r));
    r->b = builder_new();
    r->next_guid = 0x1000;
}

static node_id add_node(struct rig *r, enum node_type type, unsigned ports, const char *name)
{
    node_id id;
    uint64_t guid = r->next_guid;
    r->next_guid += 0x10;
    struct node_attrs a = {.guid = guid, .sys_guid = guid, .type = type, .num_ports = (uint8_t)ports};
    a.lft_cap = type == NODE_SWITCH ? LID_UCAST_MAX : 0;
    assert_int_equal(builder_node(r->b, &a, name, strlen(name), &id, NULL), 0);
    assert_true(id.i < sizeof(r->next_port) / sizeof(r->next_port[0]));
    r->next_port[id.i] = 1;
    if (type == NODE_SWITCH)
        assert_int_equal(builder_port_guid(r->b, id, 0, guid), 0);
    for (unsigned i = 1; type != NODE_SWITCH && i <= ports; i++)
        assert_int_equal(builder_port_guid(r->b, id, i, guid + i), 0);
    return id;
}

node_id rig_switch(struct rig *r, unsigned ports, const char *name)
{
    return add_node(r, NODE_SWITCH, ports, name);
}

node_id rig_ca(struct rig *r, unsigned ports, const char *name)
{
    return add_node(r, NODE_CA, ports, name);
}

void rig_cable(struct rig *r, node_id a, node_id z)
{
    unsigned pa = r->next_port[a.i]++, pz = r->next_port[z.i]++;
    assert_int_equal(builder_link(r->b, a, pa, z, pz), 0);
}

node_id rig_host(struct rig *r, node_id sw)
{
    char name[40];
    snprintf(name, sizeof(name), "host%llx mlx5_0", (unsigned long long)r->next_guid);
    node_id h = rig_ca(r, 1, name);
    rig_cable(r, sw, h);
    return h;
}

node_id rig_an(struct rig *r, node_id sw)
{
    node_id h = rig_ca(r, 1, "Mellanox Technologies Aggregation Node");
    rig_cable(r, sw, h);
    return h;
}

const struct fabric *rig_done(struct rig *r)
{
    return rig_lids(builder_seal(r->b, 1, NULL), 0);
}

const struct fabric *rig_random(struct rng *rng, unsigned n, unsigned extra)
{
    struct rig r;
    node_id sw[100];
    rig_start(&r);
    assert_true(n <= 100);
    for (unsigned i = 0; i < n; i++) {
        char name[20];
        snprintf(name, sizeof(name), "sw%u", i);
        sw[i] = rig_switch(&r, 60, name);
        if (i > 0)
            rig_cable(&r, sw[i], sw[rng_below(rng, i)]);
    }
    for (unsigned i = 0; i < extra; i++) {
        unsigned a = rng_below(rng, n), z = rng_below(rng, n);
        if (a != z && r.next_port[sw[a].i] < 55 && r.next_port[sw[z].i] < 55)
            rig_cable(&r, sw[a], sw[z]);
    }
    for (unsigned i = 0; i < n; i++) {
        if (r.next_port[sw[i].i] < 57 && rng_below(rng, 2))
            rig_host(&r, sw[i]);
        if (r.next_port[sw[i].i] < 57 && rng_below(rng, 3) == 0)
            rig_an(&r, sw[i]);
    }
    return rig_done(&r);
}

struct share {
    unsigned n, first;
    void (*task)(void *arg, unsigned i);
    void *arg;
};

static void *run_share(void *arg)
{
    const struct share *x = arg;
    for (unsigned i = x->n; i-- > 0;) {
        if (i % 3 == x->first)
            x->task(x->arg, i);
    }
    return NULL;
}

static void run_threads(struct par *p, unsigned n, void (*task)(void *arg, unsigned i), void *arg)
{
    struct share x[3];
    pthread_t t[3];
    for (unsigned i = 0; i < 3; i++) {
        x[i] = (struct share){n, i, task, arg};
        assert_int_equal(pthread_create(&t[i], NULL, run_share, &x[i]), 0);
    }
    for (unsigned i = 0; i < 3; i++)
        pthread_join(t[i], NULL);
}

struct par rig_par = {run_threads, 3};

struct fabric_tables *rig_route(const struct fabric *f, enum route_engine engine)
{
    struct route_opts o = {.engine = engine};
    struct route_result r;
    struct err e = {0};
    int rc = route_compute(f, &o, &r, &e);
    if (rc)
        fail_msg("route_compute: %d %s", rc, e.text);
    return r.tables;
}

void rig_prove(const struct fabric *f, const struct fabric_tables *t)
{
    struct verify_opts o = {.all_switches = true};
    struct route_proof p;
    if (!route_verify(f, t, &o, &p))
        fail_msg("fault %d: %s", p.fault, p.counter_example);
    assert_int_equal(p.unreached, 0);
    assert_int_equal(p.fault, ROUTE_OK);
    assert_string_equal(p.counter_example, "");
}

const struct fabric *rig_live(const struct fabric *f, const struct rig_fault *x, uint32_t n)
{
    struct builder *b = builder_from(f);
    node_id id;
    for (uint32_t i = 0; i < n; i++) {
        if (x[i].kind == RIG_CABLE && builder_find(b, x[i].guid, &id) == 0)
            builder_unlink(b, id, x[i].num);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (x[i].kind == RIG_NODE && builder_find(b, x[i].guid, &id) == 0)
            builder_remove(b, id);
    }
    // What no cable joins to anything any more is not found by a sweep.
    const struct fabric *g = builder_seal(b, f->generation + 1, NULL);
    b = builder_from(g);
    for (uint32_t i = 0; i < g->num_nodes; i++) {
        bool any = false;
        for (unsigned p = node_first_num(&g->node[i]); p <= g->node[i].num_ports; p++)
            any |= port_valid(g->port[fabric_port_at(g, &g->node[i], p).i].peer);
        if (!any && builder_find(b, g->node[i].guid, &id) == 0)
            builder_remove(b, id);
    }
    fabric_unref(g);
    return builder_seal(b, f->generation + 2, NULL);
}

// Cables between switches mostly, now and then a switch or a host.
void rig_fault_make(const struct fabric *f, struct rng *r, struct rig_fault *ret)
{
    for (;;) {
        const struct node *n = &f->node[rng_below(r, f->num_nodes)];
        unsigned kind = rng_below(r, 10);
        *ret = (struct rig_fault){.kind = kind < 7 ? RIG_CABLE : RIG_NODE, .guid = n->guid};
        if (kind == 9 ? n->type == NODE_SWITCH : kind > 6)
            continue;
        if (kind >= 7)
            return;
        if (n->type != NODE_SWITCH)
            continue;
        ret->num = 1 + rng_below(r, n->num_ports);
        const struct node *far = fabric_peer_node(f, &f->port[n->first_port + ret->num]);
        if (far && far->type == NODE_SWITCH)
            return;
    }
}
