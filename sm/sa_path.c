// SPDX-License-Identifier: Apache-2.0
// PathRecord (IBA 15.2.5.16): a way from one end port to another, as the tables have it.
//
// MTU and rate are the least of all links that a packet and its answer cross: a slower cable at one spine
// concerns some destinations only, and both directions use the figures of one record. Paths are walked, not
// kept: a walk is a few table entries. The service level is the lane of the pair of switches.
#include <string.h>

#include "sm/sa_priv.h"

enum { // components
    PR_SERVICE_ID = 0,
    PR_DGID = 2,
    PR_SGID = 3,
    PR_DLID = 4,
    PR_SLID = 5,
    PR_RAW = 6,
    PR_FLOW = 8,
    PR_HOP_LIMIT = 9,
    PR_TCLASS = 10,
    PR_REVERSIBLE = 11,
    PR_NUMB_PATH = 12,
    PR_P_KEY = 13,
    PR_QOS_CLASS = 14,
    PR_SL = 15,
    PR_MTU_SELECTOR = 16,
    PR_MTU = 17,
    PR_RATE_SELECTOR = 18,
    PR_RATE = 19,
    PR_LIFE_SELECTOR = 20,
    PR_LIFE = 21,
};
enum { GREATER, LESS, EXACTLY, LARGEST };

#define HOPS_MAX 64

struct way {
    uint8_t mtu, rate;
};

static void cross(const struct sm_sa *sa, uint32_t port, struct way *w)
{
    if (sa->mtu[port] < w->mtu)
        w->mtu = sa->mtu[port];
    if (w->rate == 0 || sa_rate_less(sa->rate[port], w->rate))
        w->rate = sa->rate[port];
}

// From an end port to a LID that belongs to end port `to`.
static bool walk(const struct sm_sa *sa, uint32_t from, uint16_t lid, uint32_t to, struct way *w)
{
    const struct fabric *f = sa->fabric;
    const struct port *p = &f->port[from];
    const struct node *n = &f->node[p->node.i];

    if (from == to)
        return true;
    for (int hops = 0; hops < HOPS_MAX; hops++) {
        port_id out = {ID_NONE};
        if (n->type != NODE_SWITCH) {
            if (hops > 0)
                return false;
            out.i = from;
        } else {
            uint8_t num = tables_port(sa->tables, n->sw, lid);
            if (num > n->num_ports || num == LFT_DROP)
                return false;
            out.i = n->first_port + num;
            if (num == 0)
                return out.i == to;
        }
        p = &f->port[out.i];
        if (!port_valid(p->peer) || p->excluded != PORT_INCLUDED)
            return false;
        cross(sa, out.i, w);
        cross(sa, p->peer.i, w);
        if (p->peer.i == to)
            return true;
        n = &f->node[f->port[p->peer.i].node.i];
    }
    return false;
}

// Whether the path can be used as asked; figures are lowered where that helps: a path carries less, too.
static bool fit_mtu(const struct sa_req *r, const struct mad_path_record *q, uint8_t *mtu)
{
    if (!sa_asked(r, PR_MTU_SELECTOR) || !sa_asked(r, PR_MTU) || q->mtu_selector == LARGEST)
        return true;
    if (q->mtu_selector == GREATER)
        return *mtu > q->mtu;
    if (q->mtu_selector == EXACTLY) {
        if (*mtu < q->mtu || mad_mtu_bytes(q->mtu) == 0)
            return false;
        *mtu = q->mtu;
        return true;
    }
    if (*mtu >= q->mtu)
        *mtu = (uint8_t)(q->mtu - 1);
    return q->mtu > 0 && *mtu > 0;
}

static bool fit_rate(const struct sa_req *r, const struct mad_path_record *q, uint8_t *rate)
{
    if (!sa_asked(r, PR_RATE_SELECTOR) || !sa_asked(r, PR_RATE) || q->rate_selector == LARGEST)
        return true;
    if (mad_rate_gbps(q->rate) <= 0)
        return false;
    if (q->rate_selector == GREATER)
        return sa_rate_less(q->rate, *rate);
    if (q->rate_selector == EXACTLY) {
        if (sa_rate_less(*rate, q->rate))
            return false;
        *rate = q->rate;
        return true;
    }
    if (!sa_rate_less(*rate, q->rate))
        *rate = sa_rate_below(q->rate);
    return *rate != 0;
}

static bool fit_life(const struct sa_req *r, const struct mad_path_record *q, uint8_t life)
{
    if (!sa_asked(r, PR_LIFE_SELECTOR) || !sa_asked(r, PR_LIFE) || q->packet_life_time_selector == LARGEST)
        return true;
    if (q->packet_life_time_selector == GREATER)
        return life > q->packet_life_time;
    return q->packet_life_time_selector == LESS ? life < q->packet_life_time : life == q->packet_life_time;
}

// What does not depend on the pair.
static bool possible(const struct sa_req *r, const struct mad_path_record *q)
{
    if (sa_asked(r, PR_P_KEY) && (q->p_key & 0x7fff) != (MAD_DEFAULT_P_KEY & 0x7fff))
        return false;
    return !sa_asked(r, PR_RAW) || !q->raw_traffic;
}

static uint64_t prefix_asked(const struct sm_sa *sa, const struct sa_req *r, unsigned component,
                             const uint8_t gid[16])
{
    return sa_asked(r, component) ? sa_gid_prefix(gid) : sa->sm->o.subnet_prefix;
}

// The i-th path of the pair: from the i-th LID of the one to the i-th of the other, as far as they are not
// given.
static void fill(const struct sm_sa *sa, const struct sa_req *r, const struct mad_path_record *q,
                 uint32_t from, uint32_t to, unsigned i, struct mad_path_record *ret)
{
    const struct fabric *f = sa->fabric;
    const struct port_attrs *a = &f->port[from].a, *z = &f->port[to].a;
    *ret = (struct mad_path_record){
        .service_id = sa_asked(r, PR_SERVICE_ID) ? q->service_id : 0,
        .dlid = sa_asked(r, PR_DLID) ? q->dlid : (uint16_t)(z->lid + i % (1u << z->lmc)),
        .slid = sa_asked(r, PR_SLID) ? q->slid : (uint16_t)(a->lid + i % (1u << a->lmc)),
        .flow_label = sa_asked(r, PR_FLOW) ? q->flow_label : 0,
        .hop_limit = sa_asked(r, PR_HOP_LIMIT) ? q->hop_limit : 0,
        .tclass = sa_asked(r, PR_TCLASS) ? q->tclass : 0,
        .qos_class = sa_asked(r, PR_QOS_CLASS) ? q->qos_class : 0,
        .reversible = 1,
        .p_key = sa_asked(r, PR_P_KEY) ? q->p_key : MAD_DEFAULT_P_KEY,
        .mtu_selector = EXACTLY,
        .rate_selector = EXACTLY,
        .packet_life_time_selector = EXACTLY,
    };
    sa_put_gid(prefix_asked(sa, r, PR_SGID, q->sgid), f->port[from].guid, ret->sgid);
    sa_put_gid(prefix_asked(sa, r, PR_DGID, q->dgid), f->port[to].guid, ret->dgid);
}

static const struct node *switch_of(const struct sm_sa *sa, uint32_t end)
{
    const struct fabric *f = sa->fabric;
    const struct port *p = &f->port[end];
    const struct node *n = fabric_node(f, p->node);
    if (n->type != NODE_SWITCH)
        n = fabric_peer_node(f, p);
    return n != NULL && n->type == NODE_SWITCH ? n : NULL;
}

// The lane between the switches that the ports hang on: for packets, and for their answers. LANE_NONE: they
// may not talk.
static unsigned level(const struct sm_sa *sa, uint32_t from, uint32_t to)
{
    const struct fabric_lanes *l = sa->tables->lanes;
    const struct node *a = switch_of(sa, from), *b = switch_of(sa, to);
    if (l == NULL || from == to || a == NULL || b == NULL)
        return 0;
    return lanes_get(l, a->sw, b->sw);
}

// How many paths a pair has that share no LID which is not given.
static unsigned paths_of(const struct sm_sa *sa, const struct sa_req *r, uint32_t from, uint32_t to)
{
    unsigned a = sa_asked(r, PR_SLID) ? 1 : 1u << sa->fabric->port[from].a.lmc;
    unsigned z = sa_asked(r, PR_DLID) ? 1 : 1u << sa->fabric->port[to].a.lmc;
    return a > z ? a : z;
}

// *ret: whether there is a path as asked. False when no more records are wanted.
static bool one_path(const struct sm_sa *sa, struct sa_req *r, const struct mad_path_record *q, uint32_t from,
                     uint32_t to, unsigned i, bool *ret)
{
    struct way w = {.mtu = sa->mtu[from], .rate = sa->rate[from]};
    struct mad_path_record p;
    uint8_t wire[64];

    *ret = false;
    fill(sa, r, q, from, to, i, &p);
    if (!walk(sa, from, p.dlid, to, &w) || !walk(sa, to, p.slid, from, &w))
        return true;
    p.sl = (uint8_t)level(sa, from, to);
    if (p.sl == LANE_NONE || (sa_asked(r, PR_SL) && q->sl != p.sl))
        return true;
    p.packet_life_time = from == to ? 0 : sa->sm->o.subnet_timeout;
    if (!fit_mtu(r, q, &w.mtu) || !fit_rate(r, q, &w.rate) || !fit_life(r, q, p.packet_life_time))
        return true;
    p.mtu = w.mtu;
    p.rate = w.rate;
    mad_path_record_encode(&p, wire);
    *ret = true;
    return sa_emit(r, wire, sizeof(wire));
}

// False when no more records are wanted. The paths of the base LIDs come first.
static bool pair(const struct sm_sa *sa, struct sa_req *r, const struct mad_path_record *q, uint32_t from,
                 uint32_t to)
{
    unsigned n = paths_of(sa, r, from, to), found = 0;
    unsigned most = sa_asked(r, PR_NUMB_PATH) && q->numb_path > 0 ? q->numb_path : n;
    for (unsigned i = 0; i < n && found < most; i++) {
        bool is;
        if (!one_path(sa, r, q, from, to, i, &is))
            return false;
        found += is;
    }
    return true;
}

// The one port that GID and LID name; PORT_NONE with *ret_any when neither is given. False: they name none.
static bool end_of(const struct sm_sa *sa, const struct sa_req *r, bool has_gid, const uint8_t gid[16],
                   bool has_lid, uint16_t lid, port_id *ret, uint16_t *ret_status)
{
    *ret = PORT_NONE;
    (void)r;
    if (has_gid) {
        *ret = sa_port_by_gid(sa, gid);
        *ret_status = MAD_SA_INVALID_GID;
        if (!port_valid(*ret))
            return false;
    }
    if (has_lid) {
        port_id by_lid = fabric_by_lid(sa->fabric, lid);
        *ret_status = MAD_SA_NO_RECORDS;
        if (!port_valid(by_lid) || (has_gid && by_lid.i != ret->i))
            return false;
        *ret = by_lid;
    }
    *ret_status = MAD_SA_NO_RECORDS;
    return !port_valid(*ret) || sa->fabric->port[ret->i].a.lid != 0;
}

// The way to a group: its MLID and what its members can take.
static enum sa_step to_group(struct sm_sa *sa, struct sa_req *r, const struct mad_path_record *q,
                             port_id from)
{
    const struct sa_group *g = sa_group_find(sa, q->dgid);
    struct mad_path_record p;
    uint8_t wire[64];

    if (g == NULL || !port_valid(from))
        return SA_DONE;
    fill(sa, r, q, from.i, from.i, 0, &p);
    memcpy(p.dgid, q->dgid, 16);
    p.dlid = g->rec.mlid;
    if (sa_asked(r, PR_DLID) && q->dlid != g->rec.mlid)
        return SA_DONE;
    p.mtu = g->rec.mtu;
    p.rate = g->rec.rate;
    p.packet_life_time = g->rec.packet_life_time;
    p.sl = g->rec.sl;
    if (sa_asked(r, PR_SL) && q->sl != p.sl)
        return SA_DONE;
    p.flow_label = g->rec.flow_label;
    p.tclass = g->rec.tclass;
    p.hop_limit = g->rec.hop_limit;
    p.reversible = 0;
    mad_path_record_encode(&p, wire);
    sa_emit(r, wire, sizeof(wire));
    return SA_DONE;
}

static enum sa_step paths(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_path_record q;
    port_id from, to;
    uint16_t status;

    mad_path_record_decode(sa_data(r), &q);
    if (!possible(r, &q))
        return SA_DONE;
    if (!end_of(sa, r, sa_asked(r, PR_SGID), q.sgid, sa_asked(r, PR_SLID), q.slid, &from, &status))
        return sa_refuse(r, status);
    if (sa_asked(r, PR_DGID) && q.dgid[0] == 0xff)
        return to_group(sa, r, &q, from);
    if (!end_of(sa, r, sa_asked(r, PR_DGID), q.dgid, sa_asked(r, PR_DLID), q.dlid, &to, &status))
        return sa_refuse(r, status);
    uint64_t froms = port_valid(from) ? 1 : sa->num_ends, tos = port_valid(to) ? 1 : sa->num_ends;
    while (r->cursor < froms * tos) {
        uint64_t c = r->cursor++;
        uint32_t a = port_valid(from) ? from.i : sa->end[c / tos];
        uint32_t z = port_valid(to) ? to.i : sa->end[c % tos];
        if (!pair(sa, r, &q, a, z))
            return SA_DONE;
        if (r->cursor % 256 == 0 && sa_slice_over(sa))
            return SA_MORE;
    }
    return SA_DONE;
}

// C15-0.1.21: a Get names its source and its destination.
enum sa_step sa_path_get(struct sm_sa *sa, struct sa_req *r)
{
    if (!sa_asked(r, PR_DGID) && !sa_asked(r, PR_DLID))
        return sa_refuse(r, MAD_SA_INSUFFICIENT_COMPONENTS);
    if (!sa_asked(r, PR_SGID) && !sa_asked(r, PR_SLID))
        return sa_refuse(r, MAD_SA_INSUFFICIENT_COMPONENTS);
    return paths(sa, r);
}

enum sa_step sa_path_table(struct sm_sa *sa, struct sa_req *r)
{
    return paths(sa, r);
}
