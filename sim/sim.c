// SPDX-License-Identifier: Apache-2.0
// The simulated fabric: nodes made from a snapshot, and what operators and tests do to them.
//
// Structs: struct sim owns everything; nodes, ports and switches are dense arrays in the snapshot's order,
// copied from it once. A MAD under way is a `struct flight` from a slab, owned by the queue it stands in. A
// client (transport) is owned by whoever attached it. No allocation a MAD; tables of a device are allocated
// at the first Set. Loop thread only.
//
// Files: sim.c, sim_view.c (what tests look at), sim_queue.c (events, time), sim_route.c (movement),
// sim_client.c (transports), sim_smp.c (agent), sim_port.c (PortInfo, links), sim_tables.c, sim_keys.c
// (M_Key, P_Key, Q_Key), sim_adaptive.c (adaptive routing), sim_trap.c, sim_pma.c, sim_mcast.c (multicast
// packets); what is done to it: sim_links.c, sim_boot.c, sim_notice.c; who lives in it: sim_sm.c (a second
// manager), sim_hosts.c; what moves: sim_flow*.c over
// sim_cells*.c, sim_errors.c.
//
// A node has two names: the GUID it says (which may be another's: sim_guid_duplicate()) and its label, by
// which commands and tests name it.
//
// Departures from the standard: data is no packets but rates (sim_flow.h), or counted at once (sim_traffic(),
// sim_multicast()); MADs find no lane full; a lane drops what it may not carry (sim_tables.c: port_vl());
// P_Keys and Q_Keys of GMPs are checked only with opts.p_key_check, opts.q_key_check. Departures from style:
// header bytes of a MAD are read in place here too (sim_priv.h), since every hop reads them.
#include "sim/sim_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mono.h"
#include "lib/xalloc.h"

#define LFT_ROW ((LID_UCAST_MAX / LFT_BLOCK + 1) * LFT_BLOCK)
#define LFT_WORDS ((LID_UCAST_MAX / LFT_BLOCK + 1) / 64)
#define MFT_CAP_MAX 0x3fff
#define CAP_CA 0x2651e848u     // what a ConnectX says, without extended speeds added or taken
#define CAP_SWITCH 0x42500848u // and a Quantum

// --- from the snapshot ---

static uint8_t or_default(uint8_t v, uint8_t d)
{
    return v ? v : d;
}

static unsigned top_bit_mask(unsigned v)
{
    unsigned m = 0;
    while (m < v)
        m = 2 * m + 1;
    return m;
}

static bool has_ext(const struct port_attrs *a)
{
    bool known = a->speed_active || a->speed_supported || a->speed_ext_active || a->speed_ext_supported;
    return a->speed_ext_active || a->speed_ext_supported || !known;
}

static void port_speeds(struct mad_port_info *pi, const struct port_attrs *a, bool ext_node)
{
    pi->link_width_supported = or_default(a->width_supported, MAD_WIDTH_1X | MAD_WIDTH_4X | a->width_active);
    if (a->width_active && a->width_active < MAD_WIDTH_8X) // a port has no more lanes than its cable
        pi->link_width_supported &= (uint8_t) ~(MAD_WIDTH_8X | MAD_WIDTH_12X);
    pi->link_width_active = or_default(a->width_active, MAD_WIDTH_4X);
    pi->link_speed_supported =
        or_default(a->speed_supported, (uint8_t)top_bit_mask(or_default(a->speed_active, 4)));
    pi->link_speed_active = or_default(a->speed_active, MAD_SPEED_QDR);
    if (!ext_node || !has_ext(a))
        return;
    if ((a->speed_ext_active | a->speed_ext_supported) & MAD_SPEED_EXT_XDR) { // a bit of fields of its own
        pi->link_speed_ext_supported2 = 1;
        pi->link_speed_ext_active2 = a->speed_ext_active & MAD_SPEED_EXT_XDR ? 1 : 0;
    }
    bool known = a->speed_ext_active || a->speed_ext_supported;
    pi->link_speed_ext_active = known ? a->speed_ext_active : MAD_SPEED_EXT_HDR;
    uint8_t sup = known ? a->speed_ext_supported : SIM_SPEEDS_HDR;
    pi->link_speed_ext_supported = or_default(sup, (uint8_t)top_bit_mask(a->speed_ext_active)) & 0xf;
    pi->link_speed_ext_active &= 0xf;
}

static void port_caps(struct sim *s, struct sim_port *p, const struct port_attrs *a, bool ext_node)
{
    struct mad_port_info *pi = &p->pi;
    const struct sim_node *n = node_of(s, p);
    bool sw = is_switch(n), end = !sw || p->num == 0;
    pi->mtu_cap = a->mtu_cap >= 1 && a->mtu_cap <= 5 ? a->mtu_cap : MAD_MTU_4096;
    pi->vl_cap = a->vl_cap >= 1 && a->vl_cap <= 5 ? a->vl_cap : 4;
    pi->vl_arbitration_high_cap = pi->vl_arbitration_low_cap = pi->vl_cap > 1 ? 8 : 0;
    pi->guid_cap = sw ? (p->num == 0 ? 1 : 0) : 8;
    pi->resp_time_value = 16;
    pi->max_credit_hint = 16;
    if (!end)
        return;
    pi->capability_mask = (a->cap_mask ? a->cap_mask : sw ? CAP_SWITCH : CAP_CA) & ~MAD_CAP_IS_SM;
    pi->capability_mask |= MAD_CAP_IS_CLIENT_REREGISTRATION_SUPPORTED | MAD_CAP_IS_TRAP_SUPPORTED;
    pi->capability_mask |= MAD_CAP_IS_CAPABILITY_MASK2_SUPPORTED;
    pi->capability_mask &= ~MAD_CAP_IS_EXTENDED_SPEEDS_SUPPORTED;
    if (ext_node)
        pi->capability_mask |= MAD_CAP_IS_EXTENDED_SPEEDS_SUPPORTED;
    pi->capability_mask2 = a->cap_mask2;
    if (!sw)
        return;
    pi->capability_mask &= ~MAD_CAP_IS_MULTICAST_FDB_TOP_SUPPORTED;
    if (!s->o.no_mcast_top)
        pi->capability_mask |= MAD_CAP_IS_MULTICAST_FDB_TOP_SUPPORTED;
    if (s->o.p_key_check)
        pi->capability_mask |= MAD_CAP_IS_P_KEY_SWITCH_EXTERNAL_PORT_TRAP_SUPPORTED;
    pi->capability_mask2 &= (uint16_t)~MAD_CAP2_IS_SWITCH_PORT_STATE_TABLE_SUPPORTED;
    if (s->o.port_state_table)
        pi->capability_mask2 |= MAD_CAP2_IS_SWITCH_PORT_STATE_TABLE_SUPPORTED;
}

static void keep_state(struct sim_port *p, const struct port_attrs *a, bool linked)
{
    if (a->lid >= MAD_LID_UNICAST_MIN && a->lid <= MAD_LID_UNICAST_MAX && p->guid != 0) {
        p->pi.lid = a->lid;
        p->pi.lmc = a->lmc <= 7 ? a->lmc : 0;
    }
    if (linked && a->state >= MAD_PORT_INIT && a->state <= MAD_PORT_ACTIVE)
        p->pi.port_state = a->state;
    if (a->mtu_active >= 1 && a->mtu_active <= p->pi.mtu_cap)
        p->pi.neighbor_mtu = a->mtu_active;
    if (a->vl_oper >= 1 && a->vl_oper <= p->pi.vl_cap)
        p->pi.operational_vls = a->vl_oper;
}

static uint8_t lanes_up_to(uint8_t width)
{
    uint8_t mask = 0;
    for (unsigned bit = 0; bit < 5; bit++)
        if (mad_width_lanes((uint8_t)(1u << bit)) <= mad_width_lanes(width))
            mask |= (uint8_t)(1u << bit);
    return mask;
}

static void make_port(struct sim *s, uint32_t i, const struct port *fp, bool ext_node)
{
    struct sim_port *p = &s->port[i];
    *p = (struct sim_port){.node = fp->node.i,
                           .peer = NONE,
                           .clients = NONE,
                           .traps = NONE,
                           .errors = NONE,
                           .host = NONE,
                           .rail = fp->rail,
                           .num = fp->num};
    const struct sim_node *n = node_of(s, p);
    bool end = !is_switch(n) || fp->num == 0;
    if (end) {
        p->guid = fp->guid ? fp->guid : n->guid + (is_switch(n) ? 0 : fp->num);
        p->label = p->guid;
        u64map_set(&s->by_port_guid, p->guid, i);
    }
    if (port_valid(fp->peer) && fp->peer.i != i && fp->num != 0)
        p->peer = fp->peer.i;
    p->fdr10 = fp->a.fdr10;
    p->lanes = lanes_up_to(or_default(fp->a.width_active, MAD_WIDTH_4X));
    port_caps(s, p, &fp->a, ext_node);
    port_speeds(&p->pi, &fp->a, ext_node);
    port_power_up(s, p);
    bool linked = p->peer != NONE, port0 = is_switch(n) && fp->num == 0;
    p->pi.port_state = port0 ? MAD_PORT_ACTIVE : linked ? MAD_PORT_INIT : MAD_PORT_DOWN;
    p->pi.port_physical_state = port0 || linked ? MAD_PHYS_LINK_UP : MAD_PHYS_POLLING;
    if (s->o.keep_state)
        keep_state(p, &fp->a, linked);
}

static void make_switch(struct sim *s, struct sim_node *n, const struct node *fn)
{
    uint32_t i = s->num_switches++;
    struct sim_switch *w = &s->sw[i];
    n->sw = i;
    w->node = (uint32_t)(n - s->node);
    w->lft = s->lft_pool + (size_t)i * LFT_ROW;
    w->written = s->written_pool + (size_t)i * LFT_WORDS;
    w->lft_entries = fn->lft_cap && fn->lft_cap <= LFT_ROW ? fn->lft_cap : LFT_ROW;
    w->si = (struct mad_switch_info){
        .linear_fdb_cap = (uint16_t)w->lft_entries,
        .multicast_fdb_cap = fn->mft_cap && fn->mft_cap <= MFT_CAP_MAX ? fn->mft_cap : 4096,
        .partition_enforcement_cap = fn->lft_cap ? fn->partition_enforcement_cap : 32,
        .optimized_sltovl_mapping_programming = s->o.optimized_sltovl ? 1 : 0,
        .inbound_enforcement_cap = 1,
        .outbound_enforcement_cap = 1,
        .enhanced_port0 = fn->enhanced_port0,
    };
    w->si.port_state_change = !s->o.keep_state; // its ports came up after its power did
    lft_forget(s, w);
    adaptive_new(s, w);
}

void node_set_desc(struct sim_node *n, const char *text)
{
    memset(n->desc, 0, sizeof(n->desc));
    memcpy(n->desc, text, strnlen(text, sizeof(n->desc))); // 64 bytes need no NUL
}

static void make_node(struct sim *s, const struct fabric *f, uint32_t i)
{
    const struct node *fn = &f->node[i];
    struct sim_node *n = &s->node[i];
    *n = (struct sim_node){
        .guid = fn->guid,
        .sys_guid = fn->sys_guid ? fn->sys_guid : fn->guid,
        .first_port = fn->first_port,
        .sw = NONE,
        .vendor_id = fn->vendor_id ? fn->vendor_id : 0x2c9,
        .revision = fn->revision,
        .device_id = fn->device_id,
        .partition_cap = fn->partition_cap         ? fn->partition_cap
                         : fn->type == NODE_SWITCH ? 32
                                                   : 128,
        .type = fn->type,
        .tier = fn->tier,
        .num_ports = fn->num_ports,
        .slow = 1,
    };
    node_set_desc(n, fabric_desc(f, fn));
    n->label = n->guid;
    n->own_sys = n->sys_guid;
    u64map_set(&s->by_guid, n->guid, i);
    if (is_switch(n))
        make_switch(s, n, fn);
    unsigned count = fn->num_ports + (is_switch(n) ? 1u : 0u);
    bool ext = false;
    for (unsigned k = is_switch(n) ? 1 : 0; k < count; k++)
        ext |= has_ext(&f->port[fn->first_port + k].a);
    for (unsigned k = 0; k < count; k++) {
        make_port(s, fn->first_port + k, &f->port[fn->first_port + k], ext);
        s->port[fn->first_port + k].host = fn->host;
    }
}

static void kill_some(struct sim *s)
{
    struct rng r;
    rng_init(&r, s->o.dead_nodes_seed);
    uint32_t spared = s->default_port == NONE ? NONE : s->port[s->default_port].node;
    for (unsigned left = s->o.dead_nodes, tries = 0; left > 0 && tries < 20 * s->num_nodes; tries++) {
        uint32_t i = rng_below(&r, s->num_nodes);
        if (i == spared || s->node[i].dead)
            continue;
        s->node[i].dead = true;
        left--;
    }
}

// Dumps do not say who the SM was: the port they were taken from, if it had a LID.
static void keep_sm_lid(struct sim *s)
{
    uint16_t lid = s->default_port == NONE ? 0 : s->port[s->default_port].pi.lid;
    for (uint32_t i = 0; i < s->num_ports; i++)
        if (s->port[i].pi.lid != 0)
            s->port[i].pi.master_sm_lid = lid;
}

static uint32_t pick_default(const struct sim *s, const struct fabric *f)
{
    if (port_valid(f->sm_port) && s->port[f->sm_port.i].guid != 0)
        return f->sm_port.i;
    for (uint32_t i = 0; i < s->num_ports; i++)
        if (!is_switch(node_of(s, &s->port[i])) && s->port[i].peer != NONE)
            return i;
    for (uint32_t i = 0; i < s->num_ports; i++)
        if (!is_switch(node_of(s, &s->port[i])))
            return i;
    return NONE;
}

struct sim *sim_new(struct loop *l, const struct fabric *f, const struct sim_opts *o)
{
    struct sim *s = xcalloc(1, sizeof(*s));
    s->loop = l;
    if (o)
        s->o = *o;
    if (s->o.vl15_buffer == 0)
        s->o.vl15_buffer = 64;
    rng_init(&s->rng, s->o.seed);
    s->free_trap = NONE;
    s->num_nodes = f->num_nodes;
    s->num_ports = f->num_ports;
    s->node = xcalloc(f->num_nodes + 1, sizeof(*s->node));
    s->port = xcalloc(f->num_ports + 1, sizeof(*s->port));
    s->sw = xcalloc(f->num_switches + 1, sizeof(*s->sw));
    s->lft_pool = xcalloc(f->num_switches + 1, LFT_ROW); // untouched pages cost nothing
    s->written_pool = xcalloc((size_t)(f->num_switches + 1) * LFT_WORDS, sizeof(uint64_t));
    u64map_init(&s->by_guid, NULL, f->num_nodes);
    u64map_init(&s->by_port_guid, NULL, f->num_nodes);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        make_node(s, f, i);
    s->default_port = pick_default(s, f);
    if (s->o.keep_state)
        keep_sm_lid(s);
    kill_some(s);
    queue_init(s);
    return s;
}

void sim_free(struct sim *s)
{
    if (!s)
        return;
    queue_done(s);
    for (uint32_t i = 0; i < s->num_ports; i++)
        tables_forget(s, &s->port[i]);
    for (uint32_t i = 0; i < s->num_switches; i++) {
        free(s->sw[i].mft);
        adaptive_free(&s->sw[i]);
    }
    for (uint32_t i = 0; i < s->num_nodes; i++)
        free(s->node[i].not_kept);
    u64map_done(&s->by_guid);
    u64map_done(&s->by_port_guid);
    free(s->client);
    free(s->trap);
    free(s->flap);
    free(s->sm);
    free(s->error);
    free(s->sensors);
    pma_free(s);
    sim_hosts_stop(s);
    flows_free(s);
    free(s->node);
    free(s->port);
    free(s->sw);
    free(s->lft_pool);
    free(s->written_pool);
    free(s);
}

// --- names ---

// The maps forget nothing: what is gone is mapped to NONE.
struct sim_node *sim_node_by_guid(const struct sim *s, uint64_t guid)
{
    uint32_t i;
    return u64map_get(&s->by_guid, guid, &i) && i != NONE ? &s->node[i] : NULL;
}

struct sim_port *sim_port_by_guid(const struct sim *s, uint64_t port_guid)
{
    uint32_t i;
    return u64map_get(&s->by_port_guid, port_guid, &i) && i != NONE ? &s->port[i] : NULL;
}

struct sim_port *sim_port_by(const struct sim *s, uint64_t node_guid, unsigned num)
{
    const struct sim_node *n = sim_node_by_guid(s, node_guid);
    return n ? port_at(s, n, num) : NULL;
}
