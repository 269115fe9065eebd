// SPDX-License-Identifier: Apache-2.0
// How a MAD moves: directed routes (IBA 14.2.2) over cables, LID routes over the programmed tables, both in
// one MAD (combined routes: dr_slid, dr_dlid), and what is done with it where it arrives.
//
// A flight is run step by step until it has to wait (a cable's latency, an agent's queue) or ends. Nothing
// tells the sender of a MAD that ends on the way: that is how the wire is.
#include "sim/sim_priv.h"

#include <string.h>

enum step {
    STEP_ON,   // run the next operation
    STEP_DONE, // parked, answered or freed
};

static enum step drop(struct sim *s, struct flight *f, uint64_t *counted)
{
    (*counted)++;
    flight_free(s, f);
    return STEP_DONE;
}

static bool port_linked(const struct sim_port *p)
{
    return p->pi.port_state >= MAD_PORT_INIT && p->pi.port_state <= MAD_PORT_ACTIVE;
}

// VL15 needs a trained link, all else an ACTIVE sender and a receiver that has left INIT (IBA 7.2.7).
bool link_passes(const struct sim *s, const struct sim_port *p, bool vl15)
{
    const struct sim_port *peer = peer_of(s, p);
    if (!peer || p->unplugged || !port_linked(p) || !port_linked(peer))
        return false;
    return vl15 || (p->pi.port_state == MAD_PORT_ACTIVE && peer->pi.port_state >= MAD_PORT_ARMED);
}

#define MAD_WORDS ((MAD_SIZE + 32) / 4) // with LRH, BTH, DETH and CRCs

static void count_packet(struct sim_port *p, bool out)
{
    p->counter[out ? SIM_XMIT_DATA : SIM_RCV_DATA] += MAD_WORDS;
    p->counter[out ? SIM_XMIT_PKTS : SIM_RCV_PKTS]++;
    p->counter[out ? SIM_UNICAST_XMIT_PKTS : SIM_UNICAST_RCV_PKTS]++;
}

// The number by which SLtoVL knows where it came in: 0 for what the node itself sends.
static unsigned in_port_of(const struct sim *s, const struct flight *f)
{
    const struct sim_port *p = &s->port[f->port];
    return is_switch(node_of(s, p)) ? p->num : 0;
}

// Out of port `num` of the node.
static enum step cross(struct sim *s, struct flight *f, const struct sim_node *n, unsigned num)
{
    struct sim_port *out = num == 0 ? NULL : port_at(s, n, num);
    if (!out || !link_passes(s, out, f->vl15)) {
        if (out && !f->vl15)
            out->counter[SIM_XMIT_DISCARDS]++;
        return drop(s, f, &s->stats.no_route);
    }
    if (!f->vl15 && port_vl(s, out, in_port_of(s, f), f->sl) == VL_DROP) {
        out->counter[SIM_XMIT_DISCARDS]++;
        return drop(s, f, &s->stats.bad_vl);
    }
    if (!f->vl15 && s->o.p_key_check && !enforcement_allows(s, out, f, true))
        return drop(s, f, &s->stats.bad_p_key);
    count_packet(out, true);
    f->port = out->peer;
    f->op = FLIGHT_ARRIVE;
    if (s->o.link_latency_ns == 0)
        return STEP_ON;
    flight_at(s, f, s->now + s->o.link_latency_ns);
    return STEP_DONE;
}

// --- arrival at the agents of a node ---

static struct sim_port *in_port(struct sim *s, struct flight *f)
{
    return &s->port[f->port];
}

// The node's one agent works MADs off in order; its buffer is bounded.
static enum step agent_queue(struct sim *s, struct flight *f, int64_t cost, enum flight_op then)
{
    struct sim_port *p = in_port(s, f);
    struct sim_node *n = node_of(s, p);
    f->op = then;
    cost = cost * n->slow + (then == FLIGHT_SERVED ? n->delay : 0);
    if (cost == 0 && (then != FLIGHT_SERVED || n->busy_until <= s->now))
        return STEP_ON;
    if (n->queued >= s->o.vl15_buffer) {
        p->counter[f->vl15 ? SIM_VL15_DROPPED : SIM_QP1_DROPPED]++;
        return drop(s, f, &s->stats.dropped_vl15);
    }
    n->queued++;
    f->in_queue = true;
    n->busy_until = (n->busy_until > s->now ? n->busy_until : s->now) + cost;
    flight_at(s, f, n->busy_until);
    return STEP_DONE;
}

static void agent_leave(struct sim *s, struct flight *f)
{
    struct sim_node *n = node_of(s, in_port(s, f));
    n->queued--;
    f->in_queue = false;
}

static void note_delivery(struct sim *s, const struct flight *f)
{
    uint64_t x = wire_u64(f->mad + MAD_AT_TID) ^ (uint64_t)wire_u32(f->mad + MAD_AT_ATTR_MOD) << 17 ^
                 (uint64_t)wire_u32(f->mad + MAD_AT_CLASS - 1) << 32 ^ wire_u16(f->mad + MAD_AT_ATTR);
    s->digest = hash_mix64(s->digest ^ x) + hash_mix64((uint64_t)s->now ^ (uint64_t)f->port << 40);
}

static bool for_sm(const uint8_t *mad)
{
    return wire_u16(mad + MAD_AT_ATTR) == MAD_ATTR_SM_INFO || mad[MAD_AT_METHOD] == MAD_METHOD_TRAP;
}

static bool is_smp(const uint8_t *mad)
{
    return mad[MAD_AT_CLASS] == MAD_CLASS_SM_LID || mad[MAD_AT_CLASS] == MAD_CLASS_SM_DR;
}

// An answer to what a played manager or a live host asked.
static bool agents_answer(struct sim *s, struct sim_port *end, const uint8_t *mad)
{
    uint32_t cookie = wire_u32(mad + MAD_AT_TID);
    return cookie == COOKIE_HOST ? host_answer(s, end, mad) : cookie == COOKIE_SM && sm_answer(s, end, mad);
}

// The MAD is at its destination.
static enum step deliver(struct sim *s, struct flight *f)
{
    struct sim_port *p = in_port(s, f), *end = end_port(s, p);
    const uint8_t *mad = f->mad;
    if (node_silent(s, node_of(s, p)))
        return drop(s, f, &s->stats.silent);
    note_delivery(s, f);
    bool response = mad[MAD_AT_METHOD] & MAD_METHOD_RESPONSE;
    bool sma = is_smp(mad) && !response && (!for_sm(mad) || !client_has_sm(s, end));
    bool pma = mad[MAD_AT_CLASS] == MAD_CLASS_PM && !response;
    if (sma && mad[MAD_AT_CLASS] == MAD_CLASS_SM_DR && mad[MAD_AT_STATUS] & 0x80)
        return drop(s, f, &s->stats.silent); // a request that says it is a response
    if (sma || pma)
        return agent_queue(s, f, s->o.service_ns, FLIGHT_SERVED);
    bool taken = response && agents_answer(s, end, mad);
    if (!taken && !client_deliver(s, end, f))
        return drop(s, f, &s->stats.silent);
    flight_free(s, f);
    return STEP_DONE;
}

// --- LID routes ---

// At a switch: to its own port 0, or out of the port that the table names.
static enum step forward(struct sim *s, struct flight *f, const struct sim_node *n)
{
    uint8_t out = adaptive_port(s, &s->sw[n->sw], f->dlid, f->slid);
    if (out == 0 || out > n->num_ports)
        return drop(s, f, &s->stats.no_route);
    if (++f->hops > SIM_HOP_LIMIT)
        return drop(s, f, &s->stats.loops);
    return cross(s, f, n, out);
}

static enum step dr_leave(struct sim *s, struct flight *f);

// At the LID it was sent to: a LID-routed MAD is there, a combined route may only change its leg.
static enum step lid_arrived(struct sim *s, struct flight *f)
{
    uint8_t *mad = f->mad;
    if (mad[MAD_AT_CLASS] != MAD_CLASS_SM_DR)
        return deliver(s, f);
    unsigned hp = mad[MAD_AT_HOP_POINTER], hc = mad[MAD_AT_HOP_COUNT];
    bool back = mad[MAD_AT_STATUS] & 0x80;
    if ((!back && hp == hc + 1) || (back && hp == 0))
        return deliver(s, f);
    if ((!back && hp == 0) || (back && hp == hc + 1)) {
        if (!is_switch(node_of(s, in_port(s, f))))
            return drop(s, f, &s->stats.no_route); // an adapter is no way point
        f->lid_leg = false;
        return dr_leave(s, f);
    }
    return drop(s, f, &s->stats.silent);
}

static enum step lid_leg_start(struct sim *s, struct flight *f, uint16_t dlid)
{
    f->lid_leg = true;
    f->slid = end_port(s, in_port(s, f))->pi.lid;
    f->dlid = dlid;
    struct sim_node *n = node_of(s, in_port(s, f));
    if (!is_switch(n))
        return drop(s, f, &s->stats.no_route); // only a switch routes on
    return has_lid(&s->port[n->first_port], dlid) ? lid_arrived(s, f) : forward(s, f, n);
}

static enum step lid_arrive(struct sim *s, struct flight *f)
{
    struct sim_port *p = in_port(s, f), *end = end_port(s, p);
    struct sim_node *n = node_of(s, p);
    if (has_lid(end, f->dlid)) {
        if (!f->vl15 && !keys_allow(s, end, f))
            return drop(s, f, &s->stats.silent);
        return lid_arrived(s, f);
    }
    if (is_switch(n) && !f->vl15 && s->o.p_key_check && !enforcement_allows(s, p, f, false))
        return drop(s, f, &s->stats.bad_p_key);
    if (is_switch(n))
        return forward(s, f, n);
    return drop(s, f, &s->stats.no_route);
}

// --- directed routes ---

// Out of a node that the hop pointer has reached: IBA 14.2.2.1 (outbound) and 14.2.2.2 (returning).
static enum step dr_leave(struct sim *s, struct flight *f)
{
    uint8_t *mad = f->mad;
    struct sim_node *n = node_of(s, in_port(s, f));
    unsigned hp = mad[MAD_AT_HOP_POINTER], hc = mad[MAD_AT_HOP_COUNT];
    if (!(mad[MAD_AT_STATUS] & 0x80)) { // outbound, hp < hc, or a route of no hops
        mad[MAD_AT_HOP_POINTER] = (uint8_t)(hp + 1);
        if (hc == 0)
            return deliver(s, f);
        unsigned out = mad[MAD_AT_INITIAL_PATH + hp + 1];
        if (!is_switch(n) && out != in_port(s, f)->num)
            return drop(s, f, &s->stats.no_route);
        return cross(s, f, n, out);
    }
    mad[MAD_AT_HOP_POINTER] = (uint8_t)(hp - 1);
    if (hc == 0)
        return deliver(s, f);
    unsigned out = mad[MAD_AT_RETURN_PATH + hp - 1];
    if (!is_switch(n) && out != in_port(s, f)->num)
        return drop(s, f, &s->stats.no_route);
    return cross(s, f, n, out);
}

static enum step dr_end(struct sim *s, struct flight *f)
{
    uint8_t *mad = f->mad;
    unsigned hc = mad[MAD_AT_HOP_COUNT];
    bool back = mad[MAD_AT_STATUS] & 0x80;
    if (!back)
        mad[MAD_AT_RETURN_PATH + hc] = in_port(s, f)->num;
    mad[MAD_AT_HOP_POINTER] = back ? 0 : (uint8_t)(hc + 1);
    uint16_t lid = wire_u16(mad + (back ? MAD_AT_DR_SLID : MAD_AT_DR_DLID));
    return lid == MAD_LID_PERMISSIVE ? deliver(s, f) : lid_leg_start(s, f, lid);
}

static enum step dr_transit(struct sim *s, struct flight *f)
{
    uint8_t *mad = f->mad;
    if (!(mad[MAD_AT_STATUS] & 0x80))
        mad[MAD_AT_RETURN_PATH + mad[MAD_AT_HOP_POINTER]] = in_port(s, f)->num;
    return dr_leave(s, f);
}

static enum step dr_arrive(struct sim *s, struct flight *f)
{
    const uint8_t *mad = f->mad;
    struct sim_node *n = node_of(s, in_port(s, f));
    unsigned hp = mad[MAD_AT_HOP_POINTER], hc = mad[MAD_AT_HOP_COUNT];
    bool back = mad[MAD_AT_STATUS] & 0x80;
    if (node_silent(s, n) || hp == 0 || hp > hc) // hc <= 63 was seen at the start
        return drop(s, f, &s->stats.silent);
    if (hp == (back ? 1 : hc))
        return dr_end(s, f);
    if (!is_switch(n))
        return drop(s, f, &s->stats.no_route);
    return agent_queue(s, f, s->o.transit_ns, FLIGHT_TRANSIT);
}

// --- the steps ---

static enum step dr_originate(struct sim *s, struct flight *f)
{
    const uint8_t *mad = f->mad;
    unsigned hp = mad[MAD_AT_HOP_POINTER], hc = mad[MAD_AT_HOP_COUNT];
    bool back = mad[MAD_AT_STATUS] & 0x80;
    if (hc > MAD_SMP_MAX_HOPS || hp != (back ? hc + 1 : 0))
        return drop(s, f, &s->stats.silent);
    return dr_leave(s, f);
}

static enum step originate(struct sim *s, struct flight *f)
{
    struct sim_port *end = in_port(s, f);
    struct sim_node *n = node_of(s, end);
    bool dr = f->mad[MAD_AT_CLASS] == MAD_CLASS_SM_DR;
    if (dr && f->dlid == MAD_LID_PERMISSIVE)
        return dr_originate(s, f);
    if (dr && f->mad[MAD_AT_HOP_COUNT] > MAD_SMP_MAX_HOPS)
        return drop(s, f, &s->stats.silent);
    f->lid_leg = true;
    f->slid = end->pi.lid;
    if (f->vl15 && f->dlid == MAD_LID_PERMISSIVE)
        f->slid = MAD_LID_PERMISSIVE; // to itself, perhaps before it has a LID; the answer too
    if (has_lid(end, f->dlid) || f->slid == MAD_LID_PERMISSIVE)
        return lid_arrived(s, f);
    return is_switch(n) ? forward(s, f, n) : cross(s, f, n, end->num);
}

static enum step arrive(struct sim *s, struct flight *f)
{
    struct sim_port *p = in_port(s, f);
    count_packet(p, false);
    if (s->o.loss > 0 && rng_double(&s->rng) < s->o.loss)
        return drop(s, f, &s->stats.lost);
    if (!link_passes(s, p, true))
        return drop(s, f, &s->stats.no_route); // went down while it was on the cable
    if (!f->vl15 && p->pi.port_state == MAD_PORT_ARMED)
        port_saw_traffic(s, p);
    return f->lid_leg ? lid_arrive(s, f) : dr_arrive(s, f);
}

// Turns a request into its response (status without the D bit) that goes back the way it came.
static void turn_round(struct sim *s, struct flight *f, uint16_t status)
{
    uint8_t *mad = f->mad;
    bool dr = mad[MAD_AT_CLASS] == MAD_CLASS_SM_DR;
    mad[MAD_AT_METHOD] = MAD_METHOD_GET_RESP;
    wire_put_u16(mad + MAD_AT_STATUS, (uint16_t)(status | (dr ? 0x8000 : 0)));
    s->stats.mads++;
    f->hops = 0;
    if (dr && !f->lid_leg && mad[MAD_AT_HOP_COUNT] > 0) {
        f->op = FLIGHT_RETURN;
        return;
    }
    f->dlid = f->lid_leg ? f->slid : MAD_LID_PERMISSIVE;
    f->port = port_index(s, end_port(s, in_port(s, f)));
    f->op = FLIGHT_ORIGINATE;
}

static enum step served(struct sim *s, struct flight *f)
{
    if (node_silent(s, node_of(s, in_port(s, f))))
        return drop(s, f, &s->stats.silent);
    uint16_t status = 0;
    if (!(is_smp(f->mad) ? sma_process(s, f, &status) : pma_process(s, f, &status)))
        return drop(s, f, &s->stats.silent);
    turn_round(s, f, status);
    return STEP_ON;
}

void route_run(struct sim *s, struct flight *f)
{
    enum step st = STEP_ON;
    if (f->in_queue)
        agent_leave(s, f);
    while (st == STEP_ON) {
        switch (f->op) {
        case FLIGHT_ORIGINATE:
            st = originate(s, f);
            break;
        case FLIGHT_ARRIVE:
            st = arrive(s, f);
            break;
        case FLIGHT_TRANSIT:
            st = dr_transit(s, f);
            break;
        case FLIGHT_SERVED:
            st = served(s, f);
            break;
        case FLIGHT_RETURN:
            st = dr_leave(s, f);
            break;
        }
    }
}

// --- what agents say unasked ---

static struct flight *flight_from(struct sim *s, const struct sim_port *end, uint16_t dlid)
{
    struct flight *f = flight_new(s);
    f->port = port_index(s, end);
    f->op = FLIGHT_ORIGINATE;
    f->dlid = dlid;
    f->sl = end->pi.master_sm_sl;
    s->stats.mads++;
    return f;
}

void smp_send(struct sim *s, struct sim_port *end, const struct smp_out *o)
{
    struct flight *f = flight_from(s, end, o->dlid);
    memset(f->mad, 0, sizeof(f->mad));
    (void)mad_smp_build(f->mad, &(struct mad_smp_to){.dr = false}, o->method, o->attr_id, o->attr_mod, o->tid,
                        o->m_key, NULL, NULL);
    memcpy(f->mad + MAD_AT_DATA, o->data, MAD_SMP_DATA_SIZE);
    f->vl15 = true;
    flight_ready(s, f);
}

void gmp_send(struct sim *s, struct sim_port *end, uint16_t dlid, uint16_t p_key, const uint8_t *mad)
{
    struct flight *f = flight_from(s, end, dlid);
    memcpy(f->mad, mad, MAD_SIZE);
    f->p_key = p_key;
    f->src_qp = 1;
    f->q_key = MAD_QP1_Q_KEY;
    flight_ready(s, f);
}
