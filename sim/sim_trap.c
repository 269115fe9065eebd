// SPDX-License-Identifier: Apache-2.0
// Traps (IBA 14.3): LID-routed on VL15 to the port's MasterSMLID, over the tables as they are, so they may be
// lost; repeated until repressed, every 4.096 us x 2^SubnetTimeOut but not more often than MIN_REPEAT. A port
// without LID or MasterSMLID sends none, and what it would have said is never said.
#include "sim/sim_priv.h"

#include <string.h>

#include "lib/mono.h"
#include "lib/xalloc.h"

#define MIN_REPEAT (10 * MONO_MS)
#define MAX_REPEATS 64

static uint8_t producer(const struct sim_node *n)
{
    return n->type; // NodeType and producer type have the same codes
}

static void emit(struct sim *s, struct sim_port *end, const uint8_t *notice)
{
    if (end->pi.lid == 0 || end->pi.master_sm_lid == 0 || node_of(s, end)->dead)
        return;
    struct flight *f = flight_new(s);
    memset(f->mad, 0, sizeof(f->mad));
    (void)mad_smp_build(f->mad, &(struct mad_smp_to){.dr = false}, MAD_METHOD_TRAP, MAD_ATTR_NOTICE, 0,
                        (uint64_t)end->pi.lid << 32 | (++s->trap_tid & 0xffffffff), end->pi.m_key, NULL,
                        NULL);
    memcpy(f->mad + MAD_AT_DATA, notice, MAD_SMP_DATA_SIZE);
    f->port = port_index(s, end);
    f->op = FLIGHT_ORIGINATE;
    f->dlid = end->pi.master_sm_lid;
    f->sl = end->pi.master_sm_sl;
    f->vl15 = true;
    s->stats.traps++;
    s->stats.mads++;
    flight_ready(s, f);
}

static int64_t repeat_ns(const struct sim_port *end)
{
    int64_t t = (int64_t)mad_time_ns(end->pi.subnet_timeout);
    return t < MIN_REPEAT ? MIN_REPEAT : t;
}

static struct sim_trap *slot_for(struct sim *s, uint32_t port, const uint8_t *notice)
{
    struct sim_trap *unused = NULL;
    for (uint32_t i = 0; i < s->num_traps; i++) {
        struct sim_trap *t = &s->trap[i];
        if (t->used && t->port == port && memcmp(t->notice, notice, sizeof(t->notice)) == 0)
            return t;
        if (!t->used && !unused)
            unused = t;
    }
    if (unused)
        return unused;
    s->trap = xreallocarray(s->trap, s->num_traps + 1, sizeof(*s->trap));
    s->trap[s->num_traps] = (struct sim_trap){0};
    return &s->trap[s->num_traps++];
}

// EV_TRAP carries slot and generation, so that a slot given to another trap is not repeated for the old one.
static void schedule(struct sim *s, struct sim_trap *t)
{
    uint32_t i = (uint32_t)(t - s->trap);
    event_at(s, EV_TRAP, i | t->gen << 24, s->now + repeat_ns(&s->port[t->port]));
}

static void raise_trap(struct sim *s, struct sim_port *end, struct mad_notice *n,
                       const struct mad_attr *details, const void *host)
{
    uint8_t notice[MAD_SMP_DATA_SIZE];
    n->is_generic = 1;
    n->producer_type = producer(node_of(s, end));
    n->issuer_lid = end->pi.lid;
    mad_attr_encode(details, host, n->data_details);
    mad_notice_encode(n, notice);
    if (end->pi.lid == 0 || end->pi.master_sm_lid == 0)
        return;
    struct sim_trap *t = slot_for(s, port_index(s, end), notice);
    if (!t->used && t - s->trap < 1 << 24) {
        t->used = true;
        t->gen = (t->gen + 1) & 0xff;
        t->port = port_index(s, end);
        t->number = n->trap_number;
        memcpy(t->notice, notice, sizeof(notice));
        schedule(s, t);
    }
    t->repeats = 0;
    emit(s, end, notice);
}

void trap_event(struct sim *s, uint32_t i)
{
    struct sim_trap *t = &s->trap[i & 0xffffff];
    if (!t->used || t->gen != i >> 24)
        return;
    struct sim_port *end = &s->port[t->port];
    if (++t->repeats > MAX_REPEATS) {
        t->used = false;
        return;
    }
    emit(s, end, t->notice);
    schedule(s, t);
}

// A TrapRepress carries the notice it is for.
void trap_repress(struct sim *s, struct sim_port *end, const uint8_t *notice)
{
    struct mad_notice n;
    mad_notice_decode(notice, &n);
    for (uint32_t i = 0; i < s->num_traps; i++)
        if (s->trap[i].used && s->trap[i].port == port_index(s, end) && s->trap[i].number == n.trap_number)
            s->trap[i].used = false;
}

void trap_forget(struct sim *s, const struct sim_port *end)
{
    for (uint32_t i = 0; i < s->num_traps; i++)
        if (s->trap[i].port == port_index(s, end))
            s->trap[i].used = false;
}

void trap_link_state(struct sim *s, struct sim_node *n)
{
    struct sim_port *end = &s->port[n->first_port];
    s->sw[n->sw].si.port_state_change = 1;
    struct mad_trap_128 d = {.lid = end->pi.lid};
    struct mad_notice notice = {.type = MAD_NOTICE_URGENT, .trap_number = MAD_TRAP_LINK_STATE_CHANGE};
    raise_trap(s, end, &notice, &mad_attr_trap_128, &d);
}

void trap_local_change(struct sim *s, struct sim_port *end, bool desc)
{
    struct mad_trap_144 d = {
        .lid = end->pi.lid,
        .other_local_changes = desc,
        .capability_mask = end->pi.capability_mask,
        .node_description_change = desc,
        .capability_mask2 = end->pi.capability_mask2,
    };
    struct mad_notice notice = {.type = MAD_NOTICE_INFORMATIONAL, .trap_number = MAD_TRAP_LOCAL_CHANGES};
    raise_trap(s, end, &notice, &mad_attr_trap_144, &d);
}

void trap_bad_m_key(struct sim *s, struct sim_port *end, const struct flight *f)
{
    bool dr = f->mad[MAD_AT_CLASS] == MAD_CLASS_SM_DR;
    unsigned hops = f->mad[MAD_AT_HOP_COUNT];
    struct mad_trap_256 d = {
        .lid = f->lid_leg ? f->slid : MAD_LID_PERMISSIVE,
        .dr_slid = dr ? wire_u16(f->mad + MAD_AT_DR_SLID) : 0,
        .method = f->mad[MAD_AT_METHOD],
        .attr_id = wire_u16(f->mad + MAD_AT_ATTR),
        .attr_mod = wire_u32(f->mad + MAD_AT_ATTR_MOD),
        .m_key = wire_u64(f->mad + MAD_AT_M_KEY),
        .dr_notice = dr,
    };
    if (dr) {
        d.dr_path_truncated = hops > sizeof(d.dr_notice_return_path);
        d.dr_hop_count = hops > sizeof(d.dr_notice_return_path) ? sizeof(d.dr_notice_return_path) : hops;
        memcpy(d.dr_notice_return_path, f->mad + MAD_AT_RETURN_PATH + 1, d.dr_hop_count);
    }
    struct mad_notice notice = {.type = MAD_NOTICE_SECURITY, .trap_number = MAD_TRAP_BAD_M_KEY};
    raise_trap(s, end, &notice, &mad_attr_trap_256, &d);
}

void trap_port_errors(struct sim *s, struct sim_port *end, unsigned num, uint16_t number)
{
    struct mad_trap_129 d = {.lid = end->pi.lid, .port_num = (uint8_t)num};
    struct mad_notice notice = {.type = MAD_NOTICE_URGENT, .trap_number = number};
    raise_trap(s, end, &notice, &mad_attr_trap_129, &d);
}
