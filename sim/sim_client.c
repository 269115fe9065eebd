// SPDX-License-Identifier: Apache-2.0
// Transports: what a manager or a tool sees of the fabric. The high half of a request's TID is the client's
// cookie, put there as a kernel does, so that an answer finds its client among those on the port.
#include "sim/sim_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

static int client_send(struct transport *t, const uint8_t *mad, const struct mad_addr *to, int64_t timeout_ns)
{
    struct client *c = (struct client *)t;
    struct sim *s = c->sim;
    sim_touch(s);
    struct flight *f = flight_new(s);
    memcpy(f->mad, mad, MAD_SIZE);
    if (!mad_is_response(mad[MAD_AT_METHOD]))
        wire_put_u32(f->mad + MAD_AT_TID, c->cookie);
    f->port = c->port;
    f->op = FLIGHT_ORIGINATE;
    f->dlid = to->lid;
    f->sl = to->sl;
    f->vl15 = mad[MAD_AT_CLASS] == MAD_CLASS_SM_LID || mad[MAD_AT_CLASS] == MAD_CLASS_SM_DR;
    f->p_key = p_key_at(s, &s->port[c->port], to->pkey_index);
    f->grh = to->grh_present;
    if (f->grh) {
        wire_put_u64(f->sgid, s->port[c->port].pi.gid_prefix);
        wire_put_u64(f->sgid + 8, s->port[c->port].guid);
    }
    f->src_qp = f->vl15 ? 0 : 1;
    f->q_key = to->qkey;
    s->stats.mads++;
    flight_ready(s, f);
    return 0;
}

static int client_port(struct transport *t, struct transport_port *ret)
{
    const struct client *c = (const struct client *)t;
    const struct sim_port *p = &c->sim->port[c->port];
    *ret = (struct transport_port){
        .num = p->num,
        .node_guid = node_of(c->sim, p)->guid,
        .port_guid = p->guid,
        .lid = p->pi.lid,
        .sm_lid = p->pi.master_sm_lid,
        .state = p->pi.port_state,
        .phys_state = p->pi.port_physical_state,
    };
    snprintf(ret->device, sizeof(ret->device), "%s", c->device);
    return 0;
}

static const struct client *next_on_port(const struct sim *s, uint32_t i)
{
    return i == NONE ? NULL : s->client[i];
}

bool client_has_sm(const struct sim *s, const struct sim_port *end)
{
    for (const struct client *c = next_on_port(s, end->clients); c; c = next_on_port(s, c->next))
        if (c->issm)
            return true;
    return false;
}

static int client_issm(struct transport *t, bool on, struct err *e)
{
    struct client *c = (struct client *)t;
    struct sim *s = c->sim;
    struct sim_port *p = &s->port[c->port];
    sim_touch(s);
    if (c->issm == on)
        return 0;
    if (on && (client_has_sm(s, p) || sm_is_at(s, p)))
        return err_set(e, -EBUSY, c->device, "another subnet manager holds the issm device of this port");
    c->issm = on;
    p->pi.capability_mask =
        on ? p->pi.capability_mask | MAD_CAP_IS_SM : p->pi.capability_mask & ~MAD_CAP_IS_SM;
    trap_local_change(s, p, 0);
    return 0;
}

void client_drop_sm(struct sim *s, struct sim_port *end)
{
    for (uint32_t i = end->clients; i != NONE; i = s->client[i]->next)
        if (s->client[i]->issm)
            (void)client_issm(&s->client[i]->t, false, NULL);
}

static void unlink_client(struct sim *s, struct client *c)
{
    uint32_t me = c->cookie - 1, *at = &s->port[c->port].clients;
    while (*at != me)
        at = &s->client[*at]->next;
    *at = c->next;
    s->client[me] = NULL;
}

static void client_free(struct transport *t)
{
    struct client *c = (struct client *)t;
    if (c->issm)
        (void)client_issm(t, false, NULL);
    unlink_client(c->sim, c);
    free(c);
}

static const struct transport_ops client_ops = {
    .send = client_send,
    .port = client_port,
    .issm = client_issm,
    .free = client_free,
};

static struct client *taker(const struct sim *s, const struct sim_port *end, const uint8_t *mad)
{
    bool answer = mad_is_response(mad[MAD_AT_METHOD]);
    uint32_t cookie = wire_u32(mad + MAD_AT_TID);
    bool sm = mad[MAD_AT_CLASS] == MAD_CLASS_SM_LID || mad[MAD_AT_CLASS] == MAD_CLASS_SM_DR ||
              mad[MAD_AT_CLASS] == MAD_CLASS_SA;
    bool report = mad[MAD_AT_CLASS] == MAD_CLASS_SA && mad[MAD_AT_METHOD] == MAD_METHOD_REPORT;
    struct client *first = NULL;
    for (uint32_t i = end->clients; i != NONE; i = s->client[i]->next) {
        struct client *c = s->client[i];
        if (answer ? c->cookie == cookie : sm && !report ? c->issm : true)
            first = first && !first->issm ? first : c; // a report is for a subscriber rather than for the SM
    }
    return first;
}

bool client_deliver(struct sim *s, struct sim_port *end, struct flight *f)
{
    struct client *c = taker(s, end, f->mad);
    if (!c || !c->t.recv)
        return false;
    struct mad_addr from = {
        .lid = f->lid_leg ? f->slid : MAD_LID_PERMISSIVE,
        .sl = f->sl,
        .qp = f->vl15 ? 0 : 1,
        .remote_qpn = f->src_qp,
        .qkey = f->vl15 ? 0 : MAD_QP1_Q_KEY,
        .grh_present = f->grh,
    };
    if (f->grh)
        memcpy(from.gid, f->sgid, sizeof(from.gid));
    loop_split(s->loop, "sim"); // a device's answer would have come in a turn of its own
    c->t.recv(c->t.recv_arg, f->mad, &from, 0);
    loop_split(s->loop, "mad-received");
    return true;
}

static uint32_t free_slot(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_clients; i++)
        if (!s->client[i])
            return i;
    s->client = xreallocarray(s->client, s->num_clients + 1, sizeof(*s->client));
    return s->num_clients++;
}

struct transport *sim_attach(struct sim *s, uint64_t port_guid, struct err *e)
{
    uint32_t port = s->default_port;
    const struct sim_port *named = sim_port_by_guid(s, port_guid);
    if (port_guid == 0 && port == NONE) {
        err_set(e, -ENODEV, "simulator", "the fabric has no adapter that a subnet manager could sit on");
        return NULL;
    }
    if (port_guid != 0 && !named) {
        err_set(e, -ENOENT, "simulator", "no end port with PortGUID " GUID_FMT, GUID_ARG(port_guid));
        return NULL;
    }
    if (named)
        port = port_index(s, named);
    struct client *c = xcalloc(1, sizeof(*c));
    uint32_t slot = free_slot(s);
    s->client[slot] = c;
    *c = (struct client){.t = {.ops = &client_ops, .name = "simulator"},
                         .sim = s,
                         .port = port,
                         .next = s->port[port].clients,
                         .cookie = slot + 1};
    s->port[port].clients = slot;
    snprintf(c->device, sizeof(c->device), "sim-%016llx", GUID_ARG(s->port[port].guid));
    return &c->t;
}
