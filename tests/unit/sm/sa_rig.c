// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/drain_priv.h"
#include "tests/unit/routing/rig.h"
#include "tests/unit/sm/sa_rig.h"

unsigned sa_rig_dirty;

void __wrap_sm_dirty_port(struct sm *sm, struct sm_dev *d, unsigned num, const char *cause);
void __wrap_sm_dirty_port(struct sm *sm, struct sm_dev *d, unsigned num, const char *cause)
{
    (void)sm;
    (void)d;
    (void)num;
    (void)cause;
    sa_rig_dirty++;
}

struct reply {
    struct sa_rig *r;
    struct loop_task task;
    uint8_t mad[MAD_SIZE];
    struct mad_addr from;
};

static void deliver(void *arg)
{
    struct reply *x = arg;
    x->r->t.recv(x->r->t.recv_arg, x->mad, &x->from, 0);
    free(x);
}

// A switch: what is Set is what it has; a Get finds nothing.
static void play_switch(struct sa_rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    struct reply *x;
    r->smps++;
    if (r->mute)
        return;
    x = xcalloc(1, sizeof(*x));
    x->r = r;
    memcpy(x->mad, mad, MAD_SIZE);
    if (mad[3] == MAD_METHOD_GET)
        memset(x->mad + MAD_SMP_DATA_OFFSET, 0, MAD_SMP_DATA_SIZE);
    x->mad[3] = MAD_METHOD_GET_RESP;
    x->from = *to;
    loop_task_init(&x->task, "test", deliver, x);
    loop_post(r->loop, &x->task);
}

static void take(struct sa_rig *r, const uint8_t *msg, size_t len, const struct mad_addr *to, bool rmpp)
{
    r->answers++;
    free(r->msg);
    r->msg = xmalloc(len);
    memcpy(r->msg, msg, len);
    r->len = len;
    memset(r->mad, 0, MAD_SIZE);
    memcpy(r->mad, msg, len < MAD_SIZE ? len : MAD_SIZE);
    r->to = *to;
    r->rmpp = rmpp;
}

static int rig_send(struct transport *t, const uint8_t *mad, const struct mad_addr *to, int64_t timeout_ns)
{
    struct sa_rig *r = (struct sa_rig *)((char *)t - offsetof(struct sa_rig, t));
    (void)timeout_ns;
    if (mad[1] == MAD_CLASS_SA && mad[3] & MAD_METHOD_RESPONSE)
        take(r, mad, MAD_SIZE, to, false);
    else if (mad[1] == MAD_CLASS_SM_LID)
        play_switch(r, mad, to);
    return 0;
}

static int rig_send_rmpp(struct transport *t, const uint8_t *msg, size_t len, const struct mad_addr *to)
{
    struct sa_rig *r = (struct sa_rig *)((char *)t - offsetof(struct sa_rig, t));
    if (r->no_rmpp)
        return -EOPNOTSUPP;
    take(r, msg, len, to, true);
    return 0;
}

static const struct transport_ops ops = {.send = rig_send, .send_rmpp = rig_send_rmpp};

static void add_port(struct sm_dev *d, const struct port *p, unsigned num)
{
    const struct port_attrs *a = &p->a;
    struct mad_port_info pi = {.lid = a->lid,
                               .m_key = 0x1234,
                               .gid_prefix = MAD_DEFAULT_GID_PREFIX,
                               .master_sm_lid = 1,
                               .capability_mask = a->cap_mask | MAD_CAP_IS_CLIENT_REREGISTRATION_SUPPORTED,
                               .local_port_num = (uint8_t)num,
                               .port_state = MAD_PORT_ACTIVE,
                               .link_width_active = a->width_active,
                               .link_speed_active = a->speed_active,
                               .neighbor_mtu = a->mtu_active};
    mad_port_info_encode(&pi, d->port[num].info);
    d->port[num].known = true;
    d->port[num].guid = p->guid;
    d->port[num].lid = a->lid;
    d->port[num].m_key = 0x1234;
}

static struct sm_dev *add_dev(const struct fabric *f, const struct node *n)
{
    struct sm_dev *d = xcalloc(1, sizeof(*d));
    d->guid = n->guid;
    d->here = true;
    d->ni = (struct mad_node_info){.base_version = 1,
                                   .class_version = 1,
                                   .node_type = (uint8_t)n->type,
                                   .num_ports = n->num_ports,
                                   .node_guid = n->guid,
                                   .system_image_guid = n->sys_guid,
                                   .device_id = n->device_id,
                                   .vendor_id = n->vendor_id};
    snprintf(d->desc, sizeof(d->desc), "%s", fabric_desc(f, n));
    d->have_si = n->type == NODE_SWITCH;
    d->si = (struct mad_switch_info){.linear_fdb_cap = n->lft_cap, .multicast_fdb_cap = n->mft_cap};
    d->port = xcalloc(n->num_ports + 1u, sizeof(*d->port));
    for (unsigned num = node_first_num(n); num <= n->num_ports; num++)
        add_port(d, fabric_port(f, fabric_port_at(f, n, num)), num);
    return d;
}

static void drop_devs(struct sm *sm)
{
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        free(sm->dev[i]->port);
        free(sm->dev[i]);
    }
    free(sm->dev);
    u64map_done(&sm->by_guid);
}

void sa_rig_fabric(struct sa_rig *r, const struct fabric *f)
{
    struct sm *sm = r->sm;

    drop_devs(sm);
    u64map_init(&sm->by_guid, NULL, 64);
    sm->dev = xcalloc(f->num_nodes, sizeof(struct sm_dev *));
    sm->num_dev = f->num_nodes;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        sm->dev[i] = add_dev(f, &f->node[i]);
        sm->dev[i]->index = i;
        u64map_set(&sm->by_guid, f->node[i].guid, i);
    }
    fabric_unref(sm->fabric);
    tables_unref(sm->tables);
    sm->fabric = r->fabric = f;
    sm->tables = rig_route(f, ROUTE_UPDN);
    sm_mcast_fabric_changed(sm);
    sa_run(r, 500 * MONO_MS);
}

void sa_rig_init(struct sa_rig *r, const struct fabric *f)
{
    struct sm *sm = xcalloc(1, sizeof(*sm));

    memset(r, 0, sizeof(*r));
    log_set_level(LOG_LEVEL_ERROR);
    r->loop = loop_new(LOOP_VIRTUAL);
    r->pool = pool_new(r->loop, 1);
    r->t = (struct transport){.ops = &ops, .name = "test"};
    r->sm = sm;
    sm->loop = r->loop;
    sm->pool = r->pool;
    sm->transport = &r->t;
    sm->engine = mad_engine_new(r->loop, &r->t, NULL);
    sm_opts_default(&sm->o);
    sm->state = SM_MASTER;
    u64map_init(&sm->by_guid, NULL, 64);
    sm_drains_load(sm);
    sm_sa_init(sm);
    sm->own_lid = 1;
    sm->own.port_guid = 0x77;
    sa_rig_fabric(r, f);
    r->lid = sa_lid_of(r, sa_adapter(r, 0));
}

void sa_rig_done(struct sa_rig *r)
{
    struct sm *sm = r->sm;
    pool_free(r->pool);
    mad_engine_free(sm->engine);
    sm_sa_done(sm);
    sm_drains_free(sm);
    drop_devs(sm);
    fabric_unref(sm->fabric);
    tables_unref(sm->tables);
    free(sm);
    free(r->msg);
    loop_free(r->loop);
}

void sa_run(struct sa_rig *r, int64_t ns)
{
    bool never = false;
    loop_run_until(r->loop, &never, ns);
}

void sa_send(struct sa_rig *r, uint8_t method, uint16_t attr, uint64_t mask, const void *data, size_t len)
{
    static uint32_t tid;
    struct mad_sa_hdr h = {.base_version = 1,
                           .mgmt_class = MAD_CLASS_SA,
                           .class_version = 2,
                           .method = method,
                           .tid = 0xabcdef0100000000ull | (r->tid ? r->tid : ++tid),
                           .attr_id = attr,
                           .attr_mod = r->attr_mod,
                           .sm_key = r->sm_key,
                           .component_mask = mask};
    struct mad_addr from = {
        .lid = r->lid, .qp = 1, .remote_qpn = 1, .qkey = MAD_QP1_Q_KEY, .pkey_index = 3, .sl = 2};
    uint8_t mad[MAD_SIZE] = {0};

    r->last_tid = (uint32_t)h.tid;
    mad_sa_hdr_encode(&h, mad);
    if (len > 0)
        memcpy(mad + MAD_SA_DATA_OFFSET, data, len);
    r->t.recv(r->t.recv_arg, mad, &from, 0);
}

int sa_ask(struct sa_rig *r, uint8_t method, uint16_t attr, uint64_t mask, const void *data, size_t len)
{
    unsigned before = r->answers;
    sa_send(r, method, attr, mask, data, len);
    for (int i = 0; i < 50 && r->answers == before; i++)
        sa_run(r, 20 * MONO_MS);
    if (r->answers == before)
        return -1;
    assert_int_equal(r->answers, before + 1);
    assert_int_equal(r->to.lid, r->lid);
    assert_int_equal(r->to.pkey_index, 3);
    assert_int_equal(r->to.sl, 2);
    return r->mad[4] << 8 | r->mad[5];
}

uint32_t sa_records(const struct sa_rig *r, size_t *ret_bytes)
{
    size_t each = (size_t)(r->msg[44] << 8 | r->msg[45]) * 8;
    assert_true(each > 0);
    assert_int_equal((r->len - MAD_SA_DATA_OFFSET) % each, 0);
    if (ret_bytes != NULL)
        *ret_bytes = each;
    return (uint32_t)((r->len - MAD_SA_DATA_OFFSET) / each);
}

const uint8_t *sa_record(const struct sa_rig *r, uint32_t i)
{
    return r->msg + MAD_SA_DATA_OFFSET + (size_t)i * (size_t)(r->msg[44] << 8 | r->msg[45]) * 8;
}

uint32_t sa_num_adapters(const struct sa_rig *r)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->fabric->num_ports; i++)
        n +=
            r->fabric->node[r->fabric->port[i].node.i].type == NODE_CA && port_valid(r->fabric->port[i].peer);
    return n;
}

uint32_t sa_adapter(const struct sa_rig *r, uint32_t nth)
{
    for (uint32_t i = 0; i < r->fabric->num_ports; i++)
        if (r->fabric->node[r->fabric->port[i].node.i].type == NODE_CA &&
            port_valid(r->fabric->port[i].peer) && nth-- == 0)
            return i;
    fail_msg("no such adapter");
    return 0;
}

uint16_t sa_lid_of(const struct sa_rig *r, uint32_t port)
{
    return r->fabric->port[port].a.lid;
}

void sa_gid_of(const struct sa_rig *r, uint32_t port, uint8_t ret[16])
{
    sa_put_gid(MAD_DEFAULT_GID_PREFIX, r->fabric->port[port].guid, ret);
}
