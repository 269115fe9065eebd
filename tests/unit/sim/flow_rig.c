// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/builder.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "mad/mad.h"
#include "tests/unit/sim/flow_rig.h"

// LIDs for all end ports; everything that has a cable is ACTIVE. Takes f.
static const struct fabric *brought_up(const struct fabric *f)
{
    struct builder *b = builder_from(f);
    uint16_t lid = 1;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[i];
        for (unsigned num = node_first_num(n); num <= n->num_ports; num++) {
            const struct port *p = fabric_port(f, fabric_port_at(f, n, num));
            struct port_attrs a = p->a;
            if (port_is_end(f, p))
                a.lid = lid++;
            a.state = num == 0 || port_valid(p->peer) ? PORT_ACTIVE : a.state;
            a.mtu_active = 5;
            assert_int_equal(builder_port(b, (node_id){i}, num, &a), 0);
        }
    }
    const struct fabric *r = builder_seal(b, f->generation + 1, NULL);
    fabric_unref(f);
    return r;
}

static void find_hosts(struct flow_rig *r)
{
    r->port = xcalloc(r->f->num_ports + 1, sizeof(*r->port));
    r->node = xcalloc(r->f->num_ports + 1, sizeof(*r->node));
    for (uint32_t i = 0; i < r->f->num_ports; i++) {
        const struct port *p = &r->f->port[i];
        const struct node *n = fabric_node(r->f, p->node);
        if (n->type != NODE_CA || !port_valid(p->peer) || n->role != ROLE_HOST)
            continue;
        r->port[r->hosts] = p->guid;
        r->node[r->hosts++] = n->guid;
    }
}

void flow_rig_up_fabric(struct flow_rig *r, const struct fabric *f, enum route_engine e,
                        const struct sim_opts *o)
{
    struct sim_opts opts = o ? *o : (struct sim_opts){0};
    struct route_result res = {0};
    struct err err = {0};

    *r = (struct flow_rig){.l = loop_new(LOOP_VIRTUAL), .f = brought_up(f)};
    if (route_compute(r->f, &(struct route_opts){.engine = e}, &res, &err) != 0)
        fail_msg("routes: %s", err.text);
    r->t = res.tables;
    opts.keep_state = true;
    r->s = sim_new(r->l, r->f, &opts);
    for (uint32_t sw = 0; sw < r->f->num_switches; sw++)
        assert_int_equal(
            sim_set_lft(r->s, fabric_switch(r->f, sw)->guid, tables_row(r->t, sw), r->t->lids, r->t->top_lid),
            0);
    find_hosts(r);
}

void flow_rig_up(struct flow_rig *r, const char *name, enum route_engine e, const struct sim_opts *o)
{
    struct err err = {0};
    const struct fabric *f = topogen_make(name, &err);
    if (!f)
        fail_msg("%s: %s", name, err.text);
    flow_rig_up_fabric(r, f, e, o);
}

void flow_rig_down(struct flow_rig *r)
{
    sim_free(r->s);
    tables_unref(r->t);
    fabric_unref(r->f);
    free(r->port);
    free(r->node);
    loop_free(r->l);
}

void flow_rig_run(struct flow_rig *r, int64_t ns)
{
    bool never = false;
    loop_run_until(r->l, &never, ns);
}

const struct fabric *flow_rig_circle(unsigned n, unsigned per)
{
    struct builder *b = builder_new();
    node_id sw[64], ca;
    char name[32];
    struct port_attrs a = {.width_active = MAD_WIDTH_4X,
                           .width_supported = MAD_WIDTH_4X,
                           .speed_active = MAD_SPEED_QDR,
                           .speed_supported = 7,
                           .speed_ext_active = MAD_SPEED_EXT_HDR,
                           .speed_ext_supported = 7,
                           .mtu_cap = 5,
                           .vl_cap = 4};
    assert_true(n <= 64);
    for (unsigned i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "sw-%u", i);
        struct node_attrs d = {.guid = 0x1000 + i, .type = NODE_SWITCH, .num_ports = (uint8_t)(per + 2)};
        assert_int_equal(builder_node(b, &d, name, strlen(name), &sw[i], NULL), 0);
        for (unsigned p = 1; p <= per + 2; p++)
            assert_int_equal(builder_port(b, sw[i], p, &a), 0);
    }
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(builder_link(b, sw[i], 1, sw[(i + 1) % n], 2), 0);
        for (unsigned k = 0; k < per; k++) {
            snprintf(name, sizeof(name), "host-%u-%u", i, k);
            struct node_attrs d = {.guid = 0x2000 + i * 64 + k, .type = NODE_CA, .num_ports = 1};
            assert_int_equal(builder_node(b, &d, name, strlen(name), &ca, NULL), 0);
            assert_int_equal(builder_port(b, ca, 1, &a), 0);
            assert_int_equal(builder_port_guid(b, ca, 1, 0x20000 + i * 64 + k), 0);
            assert_int_equal(builder_link(b, ca, 1, sw[i], 3 + k), 0);
        }
    }
    return builder_seal(b, 1, NULL);
}

const struct fabric *flow_rig_degrade(const struct fabric *f, unsigned percent, uint64_t seed)
{
    struct builder *b = builder_from(f);
    struct rng r;
    rng_init(&r, seed);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *n = fabric_node(f, p->node), *z = fabric_peer_node(f, p);
        if (n->type == NODE_SWITCH && z && z->type == NODE_SWITCH && i < p->peer.i &&
            rng_below(&r, 100) < percent)
            builder_unlink(b, p->node, p->num);
    }
    const struct fabric *d = builder_seal(b, f->generation + 1, NULL);
    fabric_unref(f);
    return d;
}
