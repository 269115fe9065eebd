// SPDX-License-Identifier: Apache-2.0
// Traps (IBA 14.3): LID-routed on VL15 to the port's MasterSMLID, over the tables as they are, so they may be
// lost; repeated until repressed, every 4.096 us x 2^SubnetTimeOut but not more often than MIN_REPEAT. A port
// without LID or MasterSMLID sends none, and what it would have said is never said. After MAX_REPEATS a
// device gives up (the standard knows no end).
#include "sim/sim_priv.h"

#include <string.h>

#include "lib/mono.h"
#include "lib/xalloc.h"

#define MIN_REPEAT (10 * MONO_MS)
#define MAX_REPEATS 64
#define SLOTS_MAX (1u << 24) // what an event can name
#define NOTICE_COUNT_AT 8    // toggle and count, two bytes
#define NOTICE_DATA_AT 10
#define DATA_VALID_ALL 0xff // of trap 259

static uint8_t producer(const struct sim_node *n)
{
    return n->type; // NodeType and producer type have the same codes
}

static bool lost(struct sim *s, struct sim_node *n)
{
    if (n->lose_traps > 0) {
        n->lose_traps -= n->lose_traps != UINT32_MAX;
        return true;
    }
    return s->trap_loss > 0 && rng_double(&s->rng) < s->trap_loss;
}

static void emit(struct sim *s, struct sim_port *end, const uint8_t *notice)
{
    struct sim_node *n = node_of(s, end);
    if (end->pi.lid == 0 || end->pi.master_sm_lid == 0 || node_silent(s, n))
        return;
    s->stats.traps++;
    if (lost(s, n)) {
        s->stats.traps_lost++;
        return;
    }
    smp_send(s, end,
             &(struct smp_out){.dlid = end->pi.master_sm_lid,
                               .method = MAD_METHOD_TRAP,
                               .attr_id = MAD_ATTR_NOTICE,
                               .tid = (uint64_t)end->pi.lid << 32 | (++s->trap_tid & 0xffffffff),
                               .m_key = end->pi.m_key,
                               .data = notice});
}

static int64_t repeat_ns(const struct sim_port *end)
{
    int64_t t = (int64_t)mad_time_ns(end->pi.subnet_timeout);
    return t < MIN_REPEAT ? MIN_REPEAT : t;
}

// --- slots: a list for each port ---

static bool same_notice(const uint8_t *a, const uint8_t *b) // but for toggle and count
{
    return memcmp(a, b, NOTICE_COUNT_AT) == 0 &&
           memcmp(a + NOTICE_DATA_AT, b + NOTICE_DATA_AT, MAD_SMP_DATA_SIZE - NOTICE_DATA_AT) == 0;
}

static struct sim_trap *slot_find(struct sim *s, const struct sim_port *end, const uint8_t *notice)
{
    for (uint32_t i = end->traps; i != NONE; i = s->trap[i].next)
        if (same_notice(s->trap[i].notice, notice))
            return &s->trap[i];
    return NULL;
}

static struct sim_trap *slot_new(struct sim *s, struct sim_port *end, const uint8_t *notice)
{
    uint32_t i = s->free_trap;
    if (i == NONE) {
        if (s->num_traps == SLOTS_MAX)
            return NULL;
        i = s->num_traps++;
        s->trap = xreallocarray(s->trap, s->num_traps, sizeof(*s->trap));
        s->trap[i] = (struct sim_trap){.next = NONE};
    }
    struct sim_trap *t = &s->trap[i];
    s->free_trap = t->next;
    t->used = true;
    t->gen = (t->gen + 1) & 0xff;
    t->port = port_index(s, end);
    t->next = end->traps;
    memcpy(t->notice, notice, sizeof(t->notice));
    end->traps = i;
    s->traps_pending++;
    return t;
}

static void slot_free(struct sim *s, struct sim_trap *t)
{
    uint32_t i = (uint32_t)(t - s->trap), *at = &s->port[t->port].traps;
    while (*at != i)
        at = &s->trap[*at].next;
    *at = t->next;
    t->used = false;
    t->next = s->free_trap;
    s->free_trap = i;
    s->traps_pending--;
}

// EV_TRAP carries slot and generation, so that a slot given to another trap is not repeated for the old one.
static void schedule(struct sim *s, struct sim_trap *t)
{
    uint32_t i = (uint32_t)(t - s->trap);
    event_at(s, EV_TRAP, i | t->gen << 24, s->now + repeat_ns(&s->port[t->port]));
}

void trap_raise(struct sim *s, struct sim_port *end, const struct mad_notice *n)
{
    uint8_t notice[MAD_SMP_DATA_SIZE];
    mad_notice_encode(n, notice);
    if (end->pi.lid == 0 || end->pi.master_sm_lid == 0)
        return;
    struct sim_trap *t = slot_find(s, end, notice);
    if (!t) {
        t = slot_new(s, end, notice);
        if (t)
            schedule(s, t);
    }
    if (t)
        t->repeats = 0;
    emit(s, end, notice);
}

static void raise_generic(struct sim *s, struct sim_port *end, uint8_t type, uint16_t number,
                          const struct mad_attr *details, const void *host)
{
    struct mad_notice n = {.is_generic = 1,
                           .type = type,
                           .producer_type = producer(node_of(s, end)),
                           .trap_number = number,
                           .issuer_lid = end->pi.lid};
    mad_attr_encode(details, host, n.data_details);
    trap_raise(s, end, &n);
}

// Bad keys come as often as somebody likes to send them: a port tells of one in SubnetTimeOut only, or a
// TrapRepress with a wrong M_Key would lead to the next trap at once.
static void raise_security(struct sim *s, struct sim_port *end, uint16_t number,
                           const struct mad_attr *details, const void *host)
{
    if (s->now < end->security_next)
        return;
    end->security_next = s->now + repeat_ns(end);
    raise_generic(s, end, MAD_NOTICE_SECURITY, number, details, host);
}

void trap_event(struct sim *s, uint32_t i)
{
    struct sim_trap *t = &s->trap[i & (SLOTS_MAX - 1)];
    if (!t->used || t->gen != i >> 24)
        return;
    if (++t->repeats > MAX_REPEATS) {
        slot_free(s, t);
        return;
    }
    emit(s, &s->port[t->port], t->notice);
    schedule(s, t);
}

// A TrapRepress carries the notice it is for.
void trap_repress(struct sim *s, struct sim_port *end, const uint8_t *notice)
{
    struct sim_trap *t = slot_find(s, end, notice);
    if (!t)
        return;
    s->stats.traps_repressed++;
    slot_free(s, t);
}

void trap_forget(struct sim *s, struct sim_port *end)
{
    while (end->traps != NONE)
        slot_free(s, &s->trap[end->traps]);
    end->security_next = 0;
}

// --- the notices ---

void trap_link_state(struct sim *s, struct sim_node *n)
{
    s->sw[n->sw].si.port_state_change = 1;
    trap_128(s, n);
}

void trap_128(struct sim *s, struct sim_node *n)
{
    struct sim_port *end = &s->port[n->first_port];
    struct mad_trap_128 d = {.lid = end->pi.lid};
    raise_generic(s, end, MAD_NOTICE_URGENT, MAD_TRAP_LINK_STATE_CHANGE, &mad_attr_trap_128, &d);
}

void trap_local_change(struct sim *s, struct sim_port *end, unsigned flags)
{
    struct mad_trap_144 d = {
        .lid = end->pi.lid,
        .other_local_changes = flags != 0,
        .capability_mask = end->pi.capability_mask,
        .capability_mask2_change = (flags & SIM_CHANGE_CAPABILITY_MASK2) != 0,
        .hierarchy_info_change = (flags & SIM_CHANGE_HIERARCHY_INFO) != 0,
        .sm_priority_change = (flags & SIM_CHANGE_SM_PRIORITY) != 0,
        .link_speed_enabled_change = (flags & SIM_CHANGE_LINK_SPEED_ENABLED) != 0,
        .link_width_enabled_change = (flags & SIM_CHANGE_LINK_WIDTH_ENABLED) != 0,
        .node_description_change = (flags & SIM_CHANGE_NODE_DESCRIPTION) != 0,
        .capability_mask2 = end->pi.capability_mask2,
    };
    raise_generic(s, end, MAD_NOTICE_INFORMATIONAL, MAD_TRAP_LOCAL_CHANGES, &mad_attr_trap_144, &d);
}

void trap_sys_guid(struct sim *s, struct sim_port *end)
{
    struct mad_trap_145 d = {.lid = end->pi.lid, .system_image_guid = node_of(s, end)->sys_guid};
    raise_generic(s, end, MAD_NOTICE_INFORMATIONAL, MAD_TRAP_SYSTEM_IMAGE_GUID, &mad_attr_trap_145, &d);
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
    raise_security(s, end, MAD_TRAP_BAD_M_KEY, &mad_attr_trap_256, &d);
}

void trap_port_errors(struct sim *s, struct sim_port *end, unsigned num, uint16_t number)
{
    struct mad_trap_129 d = {.lid = end->pi.lid, .port_num = (uint8_t)num};
    raise_generic(s, end, MAD_NOTICE_URGENT, number, &mad_attr_trap_129, &d);
}

static void bad_switch_p_key(struct sim *s, struct sim_port *end, const struct sim_bad_key *k, unsigned num)
{
    struct mad_trap_259 d = {
        .data_valid = DATA_VALID_ALL,
        .lid1 = k->lid1,
        .lid2 = k->lid2,
        .p_key = (uint16_t)k->key,
        .sl = k->sl,
        .qp1 = k->qp1,
        .qp2 = k->qp2,
        .sw_lid = end->pi.lid,
        .port_num = (uint8_t)num,
    };
    memcpy(d.gid1, k->gid1, sizeof(d.gid1));
    memcpy(d.gid2, k->gid2, sizeof(d.gid2));
    raise_security(s, end, MAD_TRAP_SWITCH_BAD_P_KEY, &mad_attr_trap_259, &d);
}

void trap_bad_key(struct sim *s, struct sim_port *end, uint16_t number, const struct sim_bad_key *k,
                  unsigned num)
{
    if (number == MAD_TRAP_SWITCH_BAD_P_KEY) {
        bad_switch_p_key(s, end, k, num);
        return;
    }
    struct mad_trap_257 d = {
        .lid1 = k->lid1, .lid2 = k->lid2, .key = k->key, .sl = k->sl, .qp1 = k->qp1, .qp2 = k->qp2};
    memcpy(d.gid1, k->gid1, sizeof(d.gid1));
    memcpy(d.gid2, k->gid2, sizeof(d.gid2));
    raise_security(s, end, number, &mad_attr_trap_257, &d);
}
