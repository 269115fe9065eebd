// SPDX-License-Identifier: Apache-2.0
// MCMemberRecord (IBA 15.2.5.17): join, leave, and who is in which group.
//
// A join of a group that exists must agree with it in what it names, and the port must be able to take the
// group's MTU and rate; one that may create it names all it takes. It is answered when the switches forward
// to the port, or after SA_JOIN_NS in any case. Another port than the asking one may be joined, but what a
// port has joined by itself nobody else changes (o15-0.2.1).
#include <string.h>

#include "sm/sa_priv.h"

enum { // components
    MC_MGID = 0,
    MC_PORT_GID = 1,
    MC_Q_KEY = 2,
    MC_MLID = 3,
    MC_MTU_SELECTOR = 4,
    MC_MTU = 5,
    MC_TCLASS = 6,
    MC_P_KEY = 7,
    MC_RATE_SELECTOR = 8,
    MC_RATE = 9,
    MC_LIFE_SELECTOR = 10,
    MC_LIFE = 11,
    MC_SL = 12,
    MC_FLOW = 13,
    MC_HOP_LIMIT = 14,
    MC_SCOPE = 15,
    MC_JOIN_STATE = 16,
    MC_PROXY_JOIN = 17,
};
#define BIT(c) (1ull << (c))
#define JOIN_NEEDS (BIT(MC_MGID) | BIT(MC_PORT_GID) | BIT(MC_JOIN_STATE))
#define CREATE_NEEDS (JOIN_NEEDS | BIT(MC_Q_KEY) | BIT(MC_TCLASS) | BIT(MC_P_KEY) | BIT(MC_SL) | BIT(MC_FLOW))
// Compared as they are; the rest has selectors or is not the group's.
#define GROUP_PLAIN                                                                                          \
    (BIT(MC_MGID) | BIT(MC_Q_KEY) | BIT(MC_MLID) | BIT(MC_TCLASS) | BIT(MC_P_KEY) | BIT(MC_SL) |             \
     BIT(MC_FLOW) | BIT(MC_HOP_LIMIT) | BIT(MC_SCOPE))
#define MAY_CREATE 0x9 // full member, send-only full member

enum { GREATER, LESS, EXACTLY, LARGEST };

// --- selectors ---

static bool selects(uint8_t selector, double asked, double has)
{
    switch (selector) {
    case GREATER:
        return has > asked;
    case LESS:
        return has < asked;
    case EXACTLY:
        return has == asked;
    default:
        return true;
    }
}

static bool asked_both(uint64_t mask, unsigned selector, unsigned value)
{
    return (mask >> selector & 1) && (mask >> value & 1);
}

static bool group_matches(const struct mad_mc_member_record *g, uint64_t mask,
                          const struct mad_mc_member_record *q)
{
    if (!mad_component_match(&mad_attr_mc_member_record, mask & GROUP_PLAIN, q, g))
        return false;
    if (asked_both(mask, MC_MTU_SELECTOR, MC_MTU) && !selects(q->mtu_selector, q->mtu, g->mtu))
        return false;
    if (asked_both(mask, MC_RATE_SELECTOR, MC_RATE) &&
        !selects(q->rate_selector, mad_rate_gbps(q->rate), mad_rate_gbps(g->rate)))
        return false;
    return !asked_both(mask, MC_LIFE_SELECTOR, MC_LIFE) ||
           selects(q->packet_life_time_selector, q->packet_life_time, g->packet_life_time);
}

// --- queries ---

static bool emit(struct sm_sa *sa, struct sa_req *r, const struct sa_group *g, const struct sa_member *m,
                 const uint8_t *port_gid)
{
    struct mad_mc_member_record rec = g->rec;
    uint8_t wire[56];

    if (m != NULL) {
        rec.join_state = m->join_state;
        rec.proxy_join = m->proxy;
        if (port_gid != NULL)
            memcpy(rec.port_gid, port_gid, 16);
        else
            sa_put_gid(sa->sm->o.subnet_prefix, m->port_guid, rec.port_gid);
    }
    mad_mc_member_record_encode(&rec, wire);
    return sa_emit(r, wire, sizeof(wire));
}

static bool member_matches(const struct sa_req *r, const struct mad_mc_member_record *q,
                           const struct sa_member *m)
{
    if (sa_asked(r, MC_JOIN_STATE) && (m->join_state & q->join_state) == 0)
        return false;
    return !sa_asked(r, MC_PROXY_JOIN) || m->proxy == q->proxy_join;
}

// Who is trusted sees the members, others see the group; a port asked for by name is shown to everybody.
static bool show(struct sm_sa *sa, struct sa_req *r, const struct mad_mc_member_record *q,
                 const struct sa_group *g)
{
    if (!group_matches(&g->rec, r->hdr.component_mask, q))
        return true;
    if (sa_asked(r, MC_PORT_GID)) {
        const struct sa_member *m = sa_member_find(g, sa_gid_guid(q->port_gid));
        return m == NULL || !member_matches(r, q, m) || emit(sa, r, g, m, q->port_gid);
    }
    if (!r->trusted || (g->num == 0 && !sa_asked(r, MC_JOIN_STATE)))
        return emit(sa, r, g, NULL, NULL);
    for (uint32_t i = 0; i < g->num; i++)
        if (member_matches(r, q, &g->member[i]) && !emit(sa, r, g, &g->member[i], NULL))
            return false;
    return true;
}

enum sa_step sa_mc_table(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_mc_member_record q;

    mad_mc_member_record_decode(sa_data(r), &q);
    if (sa_asked(r, MC_MGID)) {
        const struct sa_group *g = sa_group_find(sa, q.mgid);
        if (g != NULL)
            show(sa, r, &q, g);
        return SA_DONE;
    }
    for (uint32_t i = 0; i < sa->num_groups; i++)
        if (!show(sa, r, &q, sa->group[i]))
            break;
    return SA_DONE;
}

// --- joining ---

// The port's own limits; the link's MTU is what both of its ends take.
static uint8_t port_mtu(const struct sm_sa *sa, port_id p)
{
    return sa->mtu[p.i];
}

static bool port_takes(const struct sm_sa *sa, port_id p, const struct mad_mc_member_record *g)
{
    return g->mtu <= port_mtu(sa, p) && !sa_rate_less(sa->rate[p.i], g->rate);
}

// The group's MTU: as asked, and what the port takes where that leaves a choice. 0: impossible.
static uint8_t choose_mtu(uint64_t mask, const struct mad_mc_member_record *q, uint8_t most)
{
    if (!asked_both(mask, MC_MTU_SELECTOR, MC_MTU) || q->mtu_selector == LARGEST)
        return most;
    if (mad_mtu_bytes(q->mtu) == 0)
        return 0;
    if (q->mtu_selector == EXACTLY)
        return q->mtu <= most ? q->mtu : 0;
    if (q->mtu_selector == GREATER)
        return q->mtu < most ? (uint8_t)(q->mtu + 1) : 0;
    return q->mtu > most ? most : (uint8_t)(q->mtu - 1);
}

static uint8_t rate_above(uint8_t rate)
{
    uint8_t best = 0;
    for (uint8_t c = 1; c < 64; c++)
        if (mad_rate_gbps(c) > 0 && sa_rate_less(rate, c) && (best == 0 || sa_rate_less(c, best)))
            best = c;
    return best;
}

static uint8_t choose_rate(uint64_t mask, const struct mad_mc_member_record *q, uint8_t most)
{
    if (!asked_both(mask, MC_RATE_SELECTOR, MC_RATE) || q->rate_selector == LARGEST)
        return most;
    if (mad_rate_gbps(q->rate) <= 0)
        return 0;
    uint8_t c = q->rate_selector == EXACTLY   ? q->rate
                : q->rate_selector == GREATER ? rate_above(q->rate)
                                              : sa_rate_below(q->rate);
    if (c != 0 && sa_rate_less(most, c))
        c = q->rate_selector == LESS ? most : 0;
    return c;
}

static uint8_t choose_life(uint64_t mask, const struct mad_mc_member_record *q, uint8_t own)
{
    uint8_t v = q->packet_life_time;
    if (!asked_both(mask, MC_LIFE_SELECTOR, MC_LIFE) || q->packet_life_time_selector == LARGEST)
        return own;
    if (q->packet_life_time_selector == EXACTLY)
        return v;
    if (q->packet_life_time_selector == GREATER)
        return own > v ? own : (uint8_t)(v + 1);
    return own < v ? own : v > 0 ? (uint8_t)(v - 1) : 0;
}

static bool is_zero(const uint8_t gid[16])
{
    static const uint8_t zero[16];
    return memcmp(gid, zero, 16) == 0;
}

// A multicast GID that a client may choose: not one of those that are given out here. 4.1.1
static bool mgid_allowed(const uint8_t gid[16])
{
    uint8_t scope = gid[1] & 0xf, flags = gid[1] >> 4;
    if (gid[0] != 0xff || flags > 1 || scope == 0 || scope == 0xf)
        return false;
    return gid[2] != 0xa0 || gid[3] != 0x1b;
}

static struct sa_group *create(struct sm_sa *sa, const struct sa_req *r, const struct mad_mc_member_record *q,
                               port_id p, uint16_t *ret_status)
{
    uint64_t mask = r->hdr.component_mask;
    struct mad_mc_member_record g = *q;

    *ret_status = MAD_SA_REQ_INVALID;
    if (!(q->join_state & MAY_CREATE))
        return NULL;
    if ((mask & CREATE_NEEDS) != CREATE_NEEDS) {
        *ret_status = MAD_SA_INSUFFICIENT_COMPONENTS;
        return NULL;
    }
    if ((q->p_key & 0x7fff) != (MAD_DEFAULT_P_KEY & 0x7fff))
        return NULL;
    if (is_zero(q->mgid))
        sa_free_mgid(sa, sa_asked(r, MC_SCOPE) && q->scope != 0 ? q->scope : 2, g.mgid);
    else if (!mgid_allowed(q->mgid))
        return NULL;
    g.p_key = q->p_key | 0x8000;
    g.mtu = choose_mtu(mask, q, port_mtu(sa, p));
    g.rate = choose_rate(mask, q, sa->rate[p.i]);
    g.packet_life_time = choose_life(mask, q, sa->sm->o.packet_life);
    g.hop_limit = sa_asked(r, MC_HOP_LIMIT) ? q->hop_limit : 0;
    if (g.mtu == 0 || g.rate == 0 || sa->num_members >= SA_MEMBERS_MAX)
        return NULL;
    return sa_group_add(sa, &g, ret_status);
}

static bool by_another(const struct sm_sa *sa, const struct sa_req *r, port_id p)
{
    return fabric_by_lid(sa->fabric, r->from.lid).i != p.i;
}

// The answer, with the prefix that was asked for; Q_Keys are told to who is in.
static void show_member(struct sm_sa *sa, struct sa_req *r, const struct mad_mc_member_record *q,
                        const struct sa_group *g, uint8_t join_state, bool proxy)
{
    struct sa_member m = {.join_state = join_state, .proxy = proxy};
    emit(sa, r, g, &m, q->port_gid);
}

static enum sa_step joined(struct sm_sa *sa, struct sa_req *r, const struct mad_mc_member_record *q,
                           struct sa_group *g, port_id p, bool new_group)
{
    uint64_t guid = sa->fabric->port[p.i].guid;
    struct sa_member *m = sa_member_find(g, guid);
    bool proxy = by_another(sa, r, p);

    if (m == NULL) {
        m = sa_member_add(sa, g, guid);
        m->proxy = proxy;
    }
    if ((m->join_state | q->join_state) != m->join_state || new_group) {
        m->join_state |= q->join_state;
        m->dirty = true;
        sa_groups_changed(sa);
        sm_mcast_dirty(sa->sm, g->rec.mlid);
    }
    show_member(sa, r, q, g, m->join_state, m->proxy);
    r->ticket = sm_mcast_ticket(sa->sm);
    return r->ticket != 0 ? SA_WAIT : SA_DONE;
}

enum sa_step sa_mc_join(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_mc_member_record q;
    uint16_t status = MAD_SA_REQ_INVALID;

    mad_mc_member_record_decode(sa_data(r), &q);
    if ((r->hdr.component_mask & JOIN_NEEDS) != JOIN_NEEDS)
        return sa_refuse(r, MAD_SA_INSUFFICIENT_COMPONENTS);
    if (q.join_state == 0)
        return sa_refuse(r, MAD_SA_REQ_INVALID);
    port_id p = sa_port_by_gid(sa, q.port_gid);
    if (!port_valid(p))
        return sa->sm->sweeping ? SA_PARK : sa_refuse(r, MAD_SA_INVALID_GID);
    struct sa_group *g = sa_group_find(sa, q.mgid);
    bool new_group = g == NULL;
    if (new_group) {
        g = create(sa, r, &q, p, &status);
        if (g == NULL)
            return sa_refuse(r, status);
    } else {
        uint64_t mask = r->hdr.component_mask & ~(BIT(MC_MLID) | BIT(MC_P_KEY)); // full or limited: alike
        const struct sa_member *m = sa_member_find(g, sa->fabric->port[p.i].guid);
        bool p_key = !sa_asked(r, MC_P_KEY) || (q.p_key & 0x7fff) == (g->rec.p_key & 0x7fff);
        if (!p_key || !group_matches(&g->rec, mask, &q) || !port_takes(sa, p, &g->rec))
            return sa_refuse(r, MAD_SA_REQ_INVALID);
        if (m != NULL && !m->proxy && by_another(sa, r, p) && (m->join_state | q.join_state) != m->join_state)
            return sa_refuse(r, MAD_SA_REQ_INVALID);
        if (m == NULL && sa->num_members >= SA_MEMBERS_MAX)
            return sa_refuse(r, MAD_SA_NO_RESOURCES);
    }
    return joined(sa, r, &q, g, p, new_group);
}

enum sa_step sa_mc_leave(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_mc_member_record q;

    mad_mc_member_record_decode(sa_data(r), &q);
    if ((r->hdr.component_mask & JOIN_NEEDS) != JOIN_NEEDS)
        return sa_refuse(r, MAD_SA_INSUFFICIENT_COMPONENTS);
    struct sa_group *g = sa_group_find(sa, q.mgid);
    uint64_t prefix = sa_gid_prefix(q.port_gid);
    bool ours = prefix == sa->sm->o.subnet_prefix || prefix == MAD_DEFAULT_GID_PREFIX;
    struct sa_member *m = g != NULL && ours ? sa_member_find(g, sa_gid_guid(q.port_gid)) : NULL;
    if (m == NULL || (m->join_state & q.join_state) == 0)
        return sa_refuse(r, MAD_SA_REQ_INVALID);
    if (!m->proxy && by_another(sa, r, fabric_by_port_guid(sa->fabric, m->port_guid)))
        return sa_refuse(r, MAD_SA_REQ_INVALID);
    show_member(sa, r, &q, g, q.join_state & m->join_state, m->proxy);
    m->join_state &= (uint8_t)~q.join_state;
    m->dirty = true;
    sa_groups_changed(sa);
    sm_mcast_dirty(sa->sm, g->rec.mlid);
    if (m->join_state == 0)
        sa_member_remove(sa, g, m);
    sa_group_settle(sa, g);
    return SA_DONE;
}
