// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "tests/unit/sim/client.h"

static uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}

const struct fabric *rig_fabric(const char *name)
{
    struct err e = {0};
    const struct fabric *f = topogen_make(name, &e);
    if (!f)
        fail_msg("%s: %s", name, e.text);
    return f;
}

void rig_recv(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct rig *r = arg;
    struct mad_hdr h;
    mad_hdr_decode(mad, &h);
    assert_int_equal(status, 0);
    if (mad_is_response(h.method) && (uint32_t)h.tid == r->tid) {
        memcpy(r->answer, mad, MAD_SIZE);
        r->from = *from;
        r->got = true;
        return;
    }
    r->others++;
    r->classes[h.mgmt_class]++;
    memcpy(r->other, mad, MAD_SIZE);
    r->other_from = *from;
    if (h.method == MAD_METHOD_TRAP && be16(mad + 64 + 4) < 300)
        r->traps[be16(mad + 64 + 4)]++;
}

void rig_start(struct rig *r, const struct fabric *f, const struct sim_opts *o)
{
    *r = (struct rig){.l = loop_new(LOOP_VIRTUAL), .f = f, .tid = 1};
    r->s = sim_new(r->l, f, o);
    struct err e;
    r->t = sim_attach(r->s, 0, &e);
    assert_non_null(r->t);
    r->t->recv = rig_recv;
    r->t->recv_arg = r;
    assert_int_equal(r->t->ops->port(r->t, &r->port), 0);
}

void rig_stop(struct rig *r)
{
    r->t->ops->free(r->t);
    sim_free(r->s);
    loop_free(r->l);
    fabric_unref(r->f);
}

struct dest by_lid(uint16_t lid)
{
    return (struct dest){.lid = lid};
}

struct dest by_path(unsigned hops, ...)
{
    struct dest d = {.to = {.dr = true, .hops = (uint8_t)hops}, .lid = MAD_LID_PERMISSIVE};
    va_list ap;
    va_start(ap, hops);
    for (unsigned i = 1; i <= hops; i++)
        d.to.path[i] = (uint8_t)va_arg(ap, int);
    va_end(ap);
    return d;
}

struct dest dest_plus(struct dest d, unsigned port)
{
    d.to.path[++d.to.hops] = (uint8_t)port;
    return d;
}

void rig_run(struct rig *r, int64_t ns)
{
    bool never = false;
    loop_run_until(r->l, &never, ns);
}

bool rig_raw(struct rig *r, const uint8_t *mad, uint16_t lid, int64_t wait_ns)
{
    struct mad_addr to = {.lid = lid, .qkey = MAD_QP1_Q_KEY};
    r->got = false;
    assert_int_equal(r->t->ops->send(r->t, mad, &to, wait_ns), 0);
    return loop_run_until(r->l, &r->got, wait_ns);
}

int rig_smp(struct rig *r, const struct dest *d, uint8_t method, uint16_t attr, uint32_t am, uint8_t *data)
{
    uint8_t mad[MAD_SIZE];
    r->tid++;
    assert_int_equal(mad_smp_build(mad, &d->to, method, attr, am, r->tid, r->m_key, NULL, NULL), 0);
    memcpy(mad + 64, data, 64);
    if (!rig_raw(r, mad, d->lid, MONO_S))
        return -1;
    memcpy(data, r->answer + 64, 64);
    assert_int_equal(r->answer[3], MAD_METHOD_GET_RESP);
    assert_int_equal(be16(r->answer + 16), attr);
    return be16(r->answer + 4) & 0x7fff;
}

int rig_pma(struct rig *r, uint16_t lid, uint8_t method, uint16_t attr, uint8_t *data)
{
    uint8_t mad[MAD_SIZE];
    mad_pm_build(mad, method, attr, 0, ++r->tid, NULL, NULL);
    memcpy(mad + 64, data, 192);
    if (!rig_raw(r, mad, lid, MONO_S))
        return -1;
    memcpy(data, r->answer + 64, 192);
    return be16(r->answer + 4);
}

int rig_get_port(struct rig *r, const struct dest *d, unsigned num, struct mad_port_info *ret)
{
    uint8_t data[64] = {0};
    int st = rig_smp(r, d, MAD_METHOD_GET, MAD_ATTR_PORT_INFO, num | EXT, data);
    if (st == 0)
        mad_port_info_decode(data, ret);
    return st;
}

int rig_set_port(struct rig *r, const struct dest *d, unsigned num, const struct mad_port_info *pi)
{
    uint8_t data[64];
    mad_port_info_encode(pi, data);
    return rig_smp(r, d, MAD_METHOD_SET, MAD_ATTR_PORT_INFO, num | EXT, data);
}

// --- the simplest bring-up ---

// Breadth first from node `from`: prev[n] is the port by which n was reached (on n's side).
static void bfs(const struct fabric *f, uint32_t from, port_id *via)
{
    uint32_t *q = xcalloc(f->num_nodes, sizeof(*q)), head = 0, tail = 0;
    for (uint32_t i = 0; i < f->num_nodes; i++)
        via[i] = PORT_NONE;
    q[tail++] = from;
    while (head < tail) {
        const struct node *n = &f->node[q[head++]];
        if (n->type != NODE_SWITCH && q[head - 1] != from)
            continue;
        for (unsigned p = 1; p <= n->num_ports; p++) {
            const struct port *port = fabric_port(f, fabric_port_at(f, n, p));
            if (!port_valid(port->peer))
                continue;
            uint32_t z = fabric_port(f, port->peer)->node.i;
            if (z == from || port_valid(via[z]))
                continue;
            via[z] = port->peer;
            q[tail++] = z;
        }
    }
    free(q);
}

struct dest rig_path(struct rig *r, uint64_t node_guid)
{
    const struct fabric *f = r->f;
    port_id *via = xcalloc(f->num_nodes, sizeof(*via));
    uint32_t me = (uint32_t)(fabric_by_guid(f, r->port.node_guid) - f->node);
    uint32_t at = (uint32_t)(fabric_by_guid(f, node_guid) - f->node);
    bfs(f, me, via);
    struct dest d = {.to = {.dr = true}, .lid = MAD_LID_PERMISSIVE};
    uint8_t back[64];
    while (at != me) {
        assert_true(port_valid(via[at]));
        const struct port *near = fabric_port(f, fabric_port(f, via[at])->peer);
        back[d.to.hops++] = near->num;
        at = near->node.i;
    }
    for (unsigned i = 0; i < d.to.hops; i++)
        d.to.path[i + 1] = back[d.to.hops - 1 - i];
    free(via);
    return d;
}

uint16_t rig_lid_of(struct rig *r, uint64_t node_guid)
{
    return (uint16_t)(fabric_by_guid(r->f, node_guid) - r->f->node + 1);
}

static void set_lid(struct rig *r, const struct node *n, const struct dest *d)
{
    struct mad_port_info pi;
    unsigned num = n->type == NODE_SWITCH ? 0 : d->to.hops ? 0 : r->port.num;
    assert_int_equal(rig_get_port(r, d, num, &pi), 0);
    pi.lid = rig_lid_of(r, n->guid);
    pi.master_sm_lid = rig_lid_of(r, r->port.node_guid);
    pi.subnet_timeout = 18;
    pi.port_state = pi.port_physical_state = pi.link_down_default_state = 0;
    assert_int_equal(rig_set_port(r, d, num, &pi), 0);
}

static void set_tables(struct rig *r)
{
    const struct fabric *f = r->f;
    port_id *via = xcalloc(f->num_nodes, sizeof(*via));
    uint8_t **lft = xcalloc(f->num_nodes, sizeof(*lft));
    unsigned blocks = f->num_nodes / 64 + 1;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        lft[i] = xcalloc(blocks, 64);
        memset(lft[i], 255, blocks * 64);
    }
    for (uint32_t to = 0; to < f->num_nodes; to++) {
        bfs(f, to, via);
        for (uint32_t i = 0; i < f->num_nodes; i++)
            lft[i][to + 1] = i == to ? 0 : port_valid(via[i]) ? fabric_port(f, via[i])->num : 255;
    }
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (f->node[i].type != NODE_SWITCH)
            continue;
        struct dest d = rig_path(r, f->node[i].guid);
        for (unsigned b = 0; b < blocks; b++)
            assert_int_equal(
                rig_smp(r, &d, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE, b, lft[i] + b * 64), 0);
        uint8_t data[64] = {0};
        struct mad_switch_info si;
        assert_int_equal(rig_smp(r, &d, MAD_METHOD_GET, MAD_ATTR_SWITCH_INFO, 0, data), 0);
        mad_switch_info_decode(data, &si);
        si.linear_fdb_top = (uint16_t)f->num_nodes;
        si.port_state_change = 1;
        mad_switch_info_encode(&si, data);
        assert_int_equal(rig_smp(r, &d, MAD_METHOD_SET, MAD_ATTR_SWITCH_INFO, 0, data), 0);
    }
    for (uint32_t i = 0; i < f->num_nodes; i++)
        free(lft[i]);
    free(lft);
    free(via);
}

static void set_states(struct rig *r, uint8_t state)
{
    for (uint32_t i = 0; i < r->f->num_nodes; i++) {
        const struct node *n = &r->f->node[i];
        struct dest d = rig_path(r, n->guid);
        for (unsigned p = 1; p <= n->num_ports; p++) {
            struct mad_port_info pi;
            if (!port_valid(fabric_port(r->f, fabric_port_at(r->f, n, p))->peer))
                continue;
            assert_int_equal(rig_get_port(r, &d, p, &pi), 0);
            if (pi.port_state == state)
                continue;
            pi.port_state = state;
            pi.port_physical_state = 0;
            assert_int_equal(rig_set_port(r, &d, p, &pi), 0);
        }
    }
}

void rig_bring_up(struct rig *r)
{
    for (uint32_t i = 0; i < r->f->num_nodes; i++) {
        struct dest d = rig_path(r, r->f->node[i].guid);
        set_lid(r, &r->f->node[i], &d);
    }
    set_tables(r);
    set_states(r, MAD_PORT_ARMED);
    set_states(r, MAD_PORT_ACTIVE);
    assert_int_equal(r->t->ops->port(r->t, &r->port), 0);
}

// --- a fabric that is up ---

static const struct port *only_port(struct rig *r, uint64_t guid)
{
    return fabric_port(r->f, (port_id){fabric_by_guid(r->f, guid)->first_port});
}

void rig_up(struct rig *r, const struct sim_opts *o, struct rig_ends *ret)
{
    struct err e;
    rig_start(r, rig_fabric("ft3-4-4"), o);
    assert_int_equal(r->t->ops->issm(r->t, true, &e), 0);
    *ret = (struct rig_ends){.sm_lid = rig_lid_of(r, r->port.node_guid)};
    const struct port *mine = only_port(r, r->port.node_guid);
    const struct node *leaf = fabric_peer_node(r->f, mine);
    ret->leaf = leaf->guid;
    ret->leaf_port = fabric_port(r->f, mine->peer)->num;
    for (unsigned i = 1; i <= leaf->num_ports; i++) {
        const struct port *p = fabric_port(r->f, fabric_port_at(r->f, leaf, i));
        if (fabric_peer_node(r->f, p)->type != NODE_SWITCH)
            continue;
        ret->up_port = i;
        ret->agg = fabric_peer_node(r->f, p)->guid;
        ret->agg_port = fabric_port(r->f, p->peer)->num;
    }
    for (uint32_t i = 0; i < r->f->num_nodes; i++)
        if (r->f->node[i].type == NODE_CA && r->f->node[i].guid != r->port.node_guid)
            ret->host = r->f->node[i].guid;
    const struct port *far = only_port(r, ret->host);
    ret->host_port_guid = far->guid;
    ret->far_leaf = fabric_peer_node(r->f, far)->guid;
    ret->far_port = fabric_port(r->f, far->peer)->num;
    rig_bring_up(r);
}

uint64_t rig_field(struct rig *r, uint64_t guid, unsigned port, const char *name)
{
    uint64_t v = 0;
    assert_int_equal(sim_port_field(r->s, guid, port, name, &v), 0);
    return v;
}

uint64_t rig_switch_field(struct rig *r, uint64_t guid, const char *name)
{
    uint64_t v = 0;
    assert_int_equal(sim_switch_field(r->s, guid, name, &v), 0);
    return v;
}

int rig_node_info(struct rig *r, const struct dest *d, struct mad_node_info *ret)
{
    uint8_t data[64] = {0};
    int st = rig_smp(r, d, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data);
    mad_node_info_decode(data, ret);
    return st;
}

void rig_repress(struct rig *r, const uint8_t *trap, uint16_t lid, uint64_t m_key)
{
    uint8_t mad[MAD_SIZE];
    memcpy(mad, trap, MAD_SIZE);
    mad[3] = MAD_METHOD_TRAP_REPRESS;
    for (unsigned i = 0; i < 8; i++)
        mad[24 + i] = (uint8_t)(m_key >> (56 - 8 * i));
    assert_int_equal(r->t->ops->send(r->t, mad, &(struct mad_addr){.lid = lid}, 0), 0);
}

void rig_notice(struct rig *r, struct mad_notice *ret)
{
    assert_int_equal(r->other[3], MAD_METHOD_TRAP);
    mad_notice_decode(r->other + 64, ret);
}
