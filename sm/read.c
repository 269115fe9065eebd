// SPDX-License-Identifier: Apache-2.0
// Reading: what one device is asked, and what its answers mean. Two sweeps are made of this: discover.c asks
// everybody, partial.c those of whom something is known to have changed.
//
// One NodeInfo a link suffices: its answer names the far node and the far port. SwitchInfo.PortStateChange is
// cleared before the switch's ports are read, so that a change in between raises it again. An adapter's
// PortInfo is asked with attribute modifier bit 31 (extended speeds) first and without it when that is
// refused; a switch's ports as its port 0 says (CapabilityMask bit 14).
//
// A request that leaves its first try unanswered is late: a level of discover.c and partial.c do not wait for
// it, nor does partial.c for what else its device is asked. What comes after its sweep's reading is over is
// not looked at; what a partial sweep could not wait for is marked to be read again.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define SILENT_TIMEOUT (500 * MONO_MS) // the light sweep asks again

struct sm_read { // a request on its way; recycled, owned by the sm
    struct sm *sm;
    struct sm_read *next;
    uint64_t sweep;
    uint32_t dev; // index; valid within the sweep
    uint32_t num; // port, or port << 16 | P_Key block
    uint8_t kind;
    bool late, level; // level: the device's level waits for it
    void (*answer)(struct sm *sm, struct sm_dev *d, uint32_t num, const struct mad_result *r);
};
enum { READ_DESC, READ_SWITCH, READ_PORT, READ_P_KEYS, READ_PROBE, READ_OTHER };

static struct sm_read *read_new(struct sm *sm)
{
    struct sm_read *rd = sm->reads_free;
    if (rd == NULL) {
        struct sm_read *slab = xcalloc(256, sizeof(*slab));
        struct sm_slab *s = xcalloc(1, sizeof(*s));
        *s = (struct sm_slab){.next = sm->reads_slab, .mem = slab};
        sm->reads_slab = s;
        for (int i = 0; i < 256; i++) {
            slab[i].next = sm->reads_free;
            sm->reads_free = &slab[i];
        }
        rd = sm->reads_free;
    }
    sm->reads_free = rd->next;
    return rd;
}

void sm_reads_free(struct sm *sm)
{
    while (sm->reads_slab != NULL) {
        struct sm_slab *s = sm->reads_slab;
        sm->reads_slab = s->next;
        free(s->mem);
        free(s);
    }
    sm->reads_free = NULL;
}

// Whoever leaves something unanswered in sweep after sweep may not be what or where it is believed to be. A
// full sweep goes by no belief.
static void count_unread(struct sm *sm, struct sm_dev *d)
{
    if (d->unread_in == (uint32_t)sm->sweep.id)
        return;
    d->unread_in = (uint32_t)sm->sweep.id;
    if (++d->unread < UNREAD_MAX)
        return;
    d->unread = 0;
    sm_resweep(sm, "unread", false);
}

// What a partial sweep did not wait for is not lost.
static void leave(struct sm *sm, struct sm_dev *d, const struct sm_read *rd)
{
    if (rd->kind != READ_PROBE)
        count_unread(sm, d);
    else if (d->port[rd->num].peer != DEV_NONE)
        count_unread(sm, sm->dev[d->port[rd->num].peer]);
    switch (rd->kind) {
    case READ_SWITCH:
        sm_dirty_switch(sm, d, "unread");
        break;
    case READ_PORT:
    case READ_P_KEYS:
        sm_dirty_port(sm, d, rd->kind == READ_PORT ? rd->num : rd->num >> 16, "unread");
        break;
    case READ_DESC:
        sm_dirty_desc(sm, d, "unread");
        break;
    case READ_PROBE: // the light sweep asks it again
        if (!sm_port_up(&d->port[rd->num]))
            break; // it went down meanwhile
        if (d->port[rd->num].peer == DEV_NONE)
            d->port[rd->num].excluded = PORT_EXCLUDED_PEER_SILENT;
        else
            sm_dirty_probe(sm, d, rd->num, "unread");
        break;
    default:
        break;
    }
}

static void late(void *arg, uint64_t user)
{
    struct sm_read *rd = arg;
    struct sm *sm = rd->sm;
    (void)user;
    if (rd->sweep != sm->sweep.id || sm->disc.over || rd->late)
        return;
    rd->late = true;
    struct sm_dev *d = sm->dev[rd->dev];
    if (rd->kind == READ_PROBE) {
        sm->disc.late++;
    } else if (!d->slow) { // what waits in its queue is late too
        d->slow = true;
        sm->disc.late += d->reads;
    }
    if (rd->level)
        sm_disc_waited(sm, d->level);
    sm_disc_check(sm);
}

static void read_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm_read *rd = arg, was = *rd;
    struct sm *sm = rd->sm;
    (void)user;

    rd->next = sm->reads_free;
    sm->reads_free = rd;
    if (was.sweep != sm->sweep.id)
        return;
    struct sm_dev *d = sm->dev[was.dev];
    if (sm->disc.over) {
        if (r->status == -ECANCELED && !sm->sweep.full)
            leave(sm, d, &was);
        return;
    }
    sm->disc.heard |= r->status == 0;
    if (was.kind != READ_PROBE) // that is about whoever is behind the port
        sm_heard(sm, d, r);
    was.answer(sm, d, was.num, r);
    if (r->status == -ECANCELED && (was.kind == READ_DESC || was.kind == READ_P_KEYS) && !sm->sweep.full)
        leave(sm, d, &was);
    if (was.kind == READ_PROBE) {
        sm->disc.late -= was.late;
    } else {
        d->reads--;
        sm->disc.late -= d->slow;
    }
    if (!was.late && was.level)
        sm_disc_waited(sm, d->level);
    sm->disc.pending--;
    sm_disc_check(sm);
}

// Fills in what all requests of reading have in common; the caller sends.
static struct mad_request
read_request(struct sm *sm, struct sm_dev *d, uint8_t kind, uint32_t num, bool level,
             void (*answer)(struct sm *, struct sm_dev *, uint32_t, const struct mad_result *))
{
    struct sm_read *rd = read_new(sm);
    *rd = (struct sm_read){.sm = sm,
                           .sweep = sm->sweep.id,
                           .dev = d->index,
                           .num = num,
                           .kind = kind,
                           .level = level,
                           .answer = answer};
    sm->disc.pending++;
    if (kind != READ_PROBE) {
        d->reads++;
        sm->disc.late += d->slow;
    }
    if (level)
        sm->disc.wait[d->level]++;
    return (struct mad_request){
        .mgmt_class = MAD_CLASS_SM_DR,
        .method = MAD_METHOD_GET,
        .prio = MAD_PRIO_SMP,
        .device = d->guid,
        .retries = -1,
        .done = read_done,
        .first_timeout = late,
        .arg = rd,
        .gen = sm->sweep.full ? 0 : SM_PARTIAL_GEN,
    };
}

// port: by which an end node is reached.
static void ask(struct sm *sm, struct sm_dev *d, unsigned port, uint16_t attr_id, uint32_t attr_mod,
                struct mad_request *q)
{
    struct dr_path path;
    if (!sm_path(sm, d, port, &path))
        path.hops = 0; // cannot be: it was reached in this sweep
    q->path = &path;
    q->m_key = sm_m_key(d, port);
    q->attr_id = attr_id;
    q->attr_mod = attr_mod;
    mad_engine_send(sm->engine, q);
}

static bool answered(const struct mad_result *r)
{
    return r->status == 0 && r->mad_status == 0;
}

// --- what one device is asked ---

static void description_answer(struct sm *sm, struct sm_dev *d, uint32_t num, const struct mad_result *r)
{
    struct mad_node_description nd;
    (void)sm;
    (void)num;
    if (!answered(r))
        return;
    mad_node_description_decode(r->data, &nd);
    mad_node_string(&nd, d->desc);
    d->have_desc = true;
}

void sm_read_desc(struct sm *sm, struct sm_dev *d, unsigned num)
{
    struct mad_request q = read_request(sm, d, READ_DESC, 0, false, description_answer);
    ask(sm, d, num, MAD_ATTR_NODE_DESCRIPTION, 0, &q);
}

static void sm_info_answer(struct sm *sm, struct sm_dev *d, uint32_t num, const struct mad_result *r)
{
    struct mad_sm_info si;
    if (!answered(r))
        return;
    mad_sm_info_decode(r->data, &si);
    sm_election_met(sm, d, num, &si);
}

// FDR10 shows as QDR in PortInfo; only the vendor's ExtPortInfo of these devices tells (SwitchX, Switch-IB,
// ConnectX-3 to -5, Connect-IB).
static bool may_be_fdr10(const struct sm_dev *d, const struct mad_port_info *pi)
{
    static const uint16_t id[] = {0xc738, 0xcb20, 0x1003, 0x1007, 0x1011, 0x1013, 0x1015, 0x1017, 0x1019};
    bool listed = false;
    for (size_t i = 0; i < sizeof(id) / sizeof(id[0]); i++)
        listed |= d->ni.device_id == id[i];
    return listed && d->ni.vendor_id == 0x0002c9 && pi->port_state > MAD_PORT_DOWN &&
           pi->link_speed_active == MAD_SPEED_QDR && mad_speed_ext_active(pi) == MAD_SPEED_EXT_NONE;
}

static void ext_port_answer(struct sm *sm, struct sm_dev *d, uint32_t num, const struct mad_result *r)
{
    struct mad_mlnx_ext_port_info x;
    (void)sm;
    if (!answered(r))
        return;
    mad_mlnx_ext_port_info_decode(r->data, &x);
    d->port[num].fdr10 = x.link_speed_active & MAD_MLNX_SPEED_FDR10;
}

static void port_known(struct sm *sm, struct sm_dev *d, unsigned num, const uint8_t *wire)
{
    struct sm_port *p = &d->port[num];
    struct mad_port_info pi, before;
    bool was_known = p->known, end = !dev_is_switch(d) || num == 0;

    mad_port_info_decode(wire, &pi);
    mad_port_info_decode(p->info, &before);
    if (pi.port_state == MAD_PORT_INIT || pi.port_state == MAD_PORT_DOWN)
        p->not_kept = 0; // the port was reset since: ask again
    if (pi.port_state == MAD_PORT_ACTIVE)
        p->fails = p->idle = 0;
    if (dev_is_switch(d) && num == 0 && d->lft == DEV_LFT_SHADOW &&
        (pi.lid != before.lid || pi.master_sm_lid != before.master_sm_lid))
        d->lft = DEV_LFT_UNKNOWN; // it was reset, or somebody else was there
    memcpy(p->info, wire, sizeof(p->info));
    p->known = true;
    p->read = (uint32_t)sm->sweep.id;
    if (end)
        p->m_key = pi.m_key;
    if (may_be_fdr10(d, &pi)) {
        struct mad_request q = read_request(sm, d, READ_OTHER, num, false, ext_port_answer);
        ask(sm, d, num, MAD_ATTR_MLNX_EXT_PORT_INFO, num, &q);
    }
    if (end && (pi.capability_mask & MAD_CAP_IS_SM) && d->index != sm->own_dev) {
        struct mad_request q = read_request(sm, d, READ_OTHER, num, false, sm_info_answer);
        ask(sm, d, num, MAD_ATTR_SM_INFO, 0, &q);
    }
    d->changed |= !was_known || pi.port_state != before.port_state || pi.lid != before.lid;
    if (!sm->sweep.full)
        sm_partial_port(sm, d, num, was_known ? before.port_state : MAD_PORT_NO_CHANGE);
}

uint32_t sm_port_info_mod(const struct sm_dev *d, unsigned num)
{
    uint32_t bit31 = MAD_PORT_INFO_EXTENDED_SPEEDS;
    const struct sm_port *from = &d->port[dev_is_switch(d) ? 0 : num];
    struct mad_port_info pi;
    if (dev_is_switch(d) && num == 0) {
        bit31 = 0; // read before it has told whether it knows the bit; equal answers need equal questions
    } else if (from->known) {
        mad_port_info_decode(from->info, &pi);
        if (!(pi.capability_mask & MAD_CAP_IS_EXTENDED_SPEEDS_SUPPORTED))
            bit31 = 0;
    } else if (dev_is_switch(d)) {
        bit31 = 0;
    }
    return num | bit31;
}

static void port_info_answer(struct sm *sm, struct sm_dev *d, uint32_t num, const struct mad_result *r);
static void ask_port_info(struct sm *sm, struct sm_dev *d, unsigned num, uint32_t mod)
{
    struct mad_request q = read_request(sm, d, READ_PORT, num, true, port_info_answer);
    ask(sm, d, num, MAD_ATTR_PORT_INFO, mod, &q);
}

void sm_read_port(struct sm *sm, struct sm_dev *d, unsigned num)
{
    ask_port_info(sm, d, num, sm_port_info_mod(d, num));
}

static void port_info_answer(struct sm *sm, struct sm_dev *d, uint32_t num, const struct mad_result *r)
{
    struct sm_port *p = &d->port[num];

    if (answered(r)) {
        port_known(sm, d, num, r->data);
        if (dev_is_switch(d) && num == 0 && d->all_ports)
            for (unsigned i = 1; i <= d->ni.num_ports; i++)
                sm_read_port(sm, d, i);
        else if (d->level <= sm->disc.level)
            sm_probe_ports(sm, d);
    } else if (r->status == 0 && !dev_is_switch(d) && !p->known && !p->asked_plain) {
        p->asked_plain = true; // refused, perhaps for bit 31: once more without it
        ask_port_info(sm, d, num, num);
    }
}

static void p_key_answer(struct sm *sm, struct sm_dev *d, uint32_t port_block, const struct mad_result *r);
static void ask_p_keys(struct sm *sm, struct sm_dev *d, unsigned num, unsigned block)
{
    struct mad_request q = read_request(sm, d, READ_P_KEYS, num << 16 | block, false, p_key_answer);
    ask(sm, d, num, MAD_ATTR_P_KEY_TABLE, block, &q);
}

static void p_key_answer(struct sm *sm, struct sm_dev *d, uint32_t port_block, const struct mad_result *r)
{
    unsigned num = port_block >> 16, block = port_block & 0xffff;
    struct sm_port *p = &d->port[num];
    struct mad_p_key_table t;

    if (!answered(r))
        return;
    mad_p_key_table_decode(r->data, &t);
    if (block == 0 && t.p_key[0] != MAD_DEFAULT_P_KEY && p->pkey0 == NULL) {
        p->pkey0 = xcalloc(32, sizeof(uint16_t));
        memcpy(p->pkey0, t.p_key, 32 * sizeof(uint16_t));
    }
    for (int i = 0; i < 32; i++)
        if (t.p_key[i] != 0 && (t.p_key[i] & 0x7fff) != 0x7fff)
            d->foreign_pkeys = true;
    if ((block + 1) * 32 < d->ni.partition_cap) // one by one: a device may claim 65,535 and fall silent
        ask_p_keys(sm, d, num, block + 1);
}

// Port 0 first: it says how the others are asked.
void sm_read_ports(struct sm *sm, struct sm_dev *d)
{
    if (!d->port0_read)
        ask_port_info(sm, d, 0, 0);
    for (unsigned i = 1; i <= d->ni.num_ports && d->port0_read; i++)
        sm_read_port(sm, d, i);
}

static void change_cleared(struct sm *sm, struct sm_dev *d, uint32_t num, const struct mad_result *r)
{
    (void)num;
    (void)r; // cleared or not, the ports are read
    sm_read_ports(sm, d);
}

static void switch_known(struct sm *sm, struct sm_dev *d, const uint8_t *data)
{
    uint8_t life = d->si.life_time_value;

    mad_switch_info_decode(data, &d->si);
    if (d->lft == DEV_LFT_SHADOW && d->si.life_time_value != life)
        d->lft = DEV_LFT_UNKNOWN; // it was reset
    if (d->si.linear_fdb_top > MAD_LID_UNICAST_MAX)
        d->si.linear_fdb_top = 0;
    d->have_si = d->all_ports = true;
    d->seen_from_before = d->seen_from;
    d->ports_read = d->seen_from = (uint32_t)sm->sweep.id;
    d->shows_change |= d->si.port_state_change;
    d->told_nothing =
        d->told && d->shows_change && !d->si.port_state_change && d->port0_read && d->lft == DEV_LFT_SHADOW;
    if (d->told_nothing)
        return;
    if (!d->si.port_state_change) {
        sm_read_ports(sm, d);
        return;
    }
    uint8_t wire[MAD_SMP_DATA_SIZE] = {0};
    mad_switch_info_encode(&d->si, wire); // the bit is written as 1: clears it
    struct mad_request q = read_request(sm, d, READ_SWITCH, 0, true, change_cleared);
    q.method = MAD_METHOD_SET;
    q.data = wire;
    q.data_len = sizeof(wire);
    ask(sm, d, 0, MAD_ATTR_SWITCH_INFO, 0, &q);
}

static void switch_info_answer(struct sm *sm, struct sm_dev *d, uint32_t num, const struct mad_result *r)
{
    (void)num;
    if (answered(r))
        switch_known(sm, d, r->data);
}

void sm_read_switch(struct sm *sm, struct sm_dev *d, const uint8_t *port0)
{
    d->port0_read = port0 != NULL;
    if (port0 != NULL)
        port_known(sm, d, 0, port0);
    struct mad_request q = read_request(sm, d, READ_SWITCH, 0, true, switch_info_answer);
    ask(sm, d, 0, MAD_ATTR_SWITCH_INFO, 0, &q);
}

// --- nodes and links ---

static struct sm_dev *dev_new(struct sm *sm, const struct mad_node_info *ni)
{
    struct sm_dev *d = xcalloc(1, sizeof(*d));
    d->guid = ni->node_guid;
    d->ni = *ni;
    d->port = xcalloc(ni->num_ports + 1u, sizeof(*d->port));
    if (sm->num_dev == sm->cap_dev) {
        sm->cap_dev = sm->cap_dev ? sm->cap_dev * 2 : 256;
        sm->dev = xreallocarray(sm->dev, sm->cap_dev, sizeof(struct sm_dev *));
    }
    d->index = sm->num_dev;
    sm->dev[sm->num_dev++] = d;
    u64map_set(&sm->by_guid, d->guid, d->index);
    return d;
}

// Where the far end still believes in the link, it must not find itself taken when it is seen anew.
static void forget_far_end(struct sm *sm, const struct sm_dev *d, unsigned num)
{
    const struct sm_port *p = &d->port[num];
    struct sm_dev *z = p->peer < sm->num_dev ? sm->dev[p->peer] : NULL;
    if (z != NULL && p->peer_num <= z->ni.num_ports && z->port[p->peer_num].peer == d->index &&
        z->port[p->peer_num].peer_num == num)
        z->port[p->peer_num].peer = DEV_NONE;
}

// A device is seen for the first time in this sweep: what was read of its ports before is void, what it
// did not keep is remembered.
static void dev_begin(struct sm *sm, struct sm_dev *d, const struct mad_node_info *ni,
                      const struct dr_path *path)
{
    for (unsigned i = 1; i <= d->ni.num_ports; i++)
        forget_far_end(sm, d, i);
    if (ni->num_ports != d->ni.num_ports ||
        ni->node_type != d->ni.node_type) { // replaced under the same GUID
        sm_dev_ports_free(d);
        d->port = xcalloc(ni->num_ports + 1u, sizeof(*d->port));
        d->have_desc = false;
        d->lft = DEV_LFT_UNKNOWN;
    }
    // It was away, and nobody knows what happened to its tables meanwhile, or the last sweep failed in
    // the middle of writing them.
    if (!d->was_here || d->lft_mixed)
        d->lft = DEV_LFT_UNKNOWN;
    d->lft_mixed = false;
    d->ni = *ni;
    d->seen = sm->sweep.id;
    d->here = true;
    sm_touch(sm, d);
    d->silent = d->unread = 0;
    d->ask_answered = true; // what the last sweeps still ask it says nothing any more
    d->reading = true;
    d->told = d->told_nothing = false;
    d->too_small = false;
    d->node = ID_NONE;
    d->path = *path;
    d->lft_before = d->lft;
    d->level = path->hops;
    d->have_si = d->foreign_pkeys = false;
    for (unsigned i = 0; i <= ni->num_ports; i++) {
        struct sm_port *p = &d->port[i];
        p->peer = DEV_NONE;
        p->was_silent = p->excluded == PORT_EXCLUDED_PEER_SILENT;
        p->excluded = PORT_INCLUDED;
        p->m_key = 0;
        p->known = p->asked_plain = p->fdr10 = false;
        p->probed = p->met = 0;
        free(p->pkey0);
        p->pkey0 = NULL;
    }
}

// num: the port it was reached by.
static void ask_node(struct sm *sm, struct sm_dev *d, unsigned num)
{
    sm_read_desc(sm, d, num);
    if (dev_is_switch(d)) {
        sm_read_switch(sm, d, NULL);
        ask_p_keys(sm, d, 0, 0);
    }
}

void sm_read_end_port(struct sm *sm, struct sm_dev *d, unsigned num)
{
    sm_touch(sm, d);
    sm_read_port(sm, d, num);
    ask_p_keys(sm, d, num, 0);
}

static bool node_info_sane(struct sm *sm, const struct sm_dev *from, const struct mad_node_info *ni,
                           const char *where)
{
    const char *why = NULL;
    if (ni->node_type < MAD_NODE_CA || ni->node_type > MAD_NODE_ROUTER)
        why = "a node type that does not exist";
    else if (ni->node_guid == 0)
        why = "NodeGUID 0";
    else if (ni->num_ports == 0 || ni->num_ports > SWITCH_MAX_PORTS)
        why = "an impossible number of ports";
    else if (ni->node_type != MAD_NODE_SWITCH &&
             (ni->local_port_num == 0 || ni->local_port_num > ni->num_ports))
        why = "a LocalPortNum that it does not have";
    else if (ni->node_type == MAD_NODE_SWITCH && ni->local_port_num > ni->num_ports)
        why = "a LocalPortNum that it does not have";
    if (why != NULL)
        sm_note(sm, from->guid, FINDING_ERROR, "bad-node-info", where,
                "the device behind this port answers NodeInfo with %s (type %u, %u ports, port %u); it "
                "is left out",
                why, ni->node_type, ni->num_ports, ni->local_port_num);
    return why == NULL;
}

static void exclude(struct sm_dev *d, unsigned num, enum port_excluded why)
{
    d->port[num].excluded = (uint8_t)why;
}

void sm_unlink(struct sm *sm, struct sm_dev *d, unsigned num)
{
    struct sm_port *p = &d->port[num];
    if (p->peer == DEV_NONE)
        return;
    struct sm_dev *z = sm->dev[p->peer];
    z->port[p->peer_num].peer = DEV_NONE;
    z->port[p->peer_num].probed = 0;
    p->peer = DEV_NONE;
    p->probed = 0;
    d->changed = z->changed = true;
    sm->disc.unlinked = true;
    sm_touch(sm, d);
    sm_touch(sm, z);
}

// Somebody else answers behind the port than did before: it may be the same switch, that showed another GUID
// for a while and was written to under that.
static void distrust(const struct sm_port *p, struct sm_dev *now)
{
    if (p->last_peer != 0 && p->last_peer != now->guid && dev_is_switch(now) && now->lft == DEV_LFT_SHADOW)
        now->lft = DEV_LFT_UNKNOWN;
}

// Joins from[num] and to[far]; false when either end is taken or it is no proper link.
static bool join(struct sm *sm, struct sm_dev *from, unsigned num, struct sm_dev *to, unsigned far)
{
    struct sm_port *a = &from->port[num], *z = &to->port[far];
    char where[128], other[128];

    if (a->peer == to->index && a->peer_num == far) {
        a->met = z->met = (uint32_t)sm->sweep.id;
        return true;
    }
    if (from == to) {
        exclude(from, num, PORT_EXCLUDED_SELF_LINK); // the builder reports it
        exclude(to, far, PORT_EXCLUDED_SELF_LINK);
        return false;
    }
    if (a->peer != DEV_NONE || z->peer != DEV_NONE) {
        exclude(from, num, PORT_EXCLUDED_DUPLICATE);
        sm->duplicates++;
        sm_note(sm, from->guid, FINDING_ERROR, "duplicate-guid", sm_port_text(to, far, other, sizeof(other)),
                "also answers behind %s: two devices with one GUID, or a cable moved during the sweep; "
                "the second is left out",
                sm_port_text(from, num, where, sizeof(where)));
        return false;
    }
    a->excluded = z->excluded = PORT_INCLUDED;
    distrust(a, to);
    distrust(z, from);
    a->last_peer = to->guid;
    z->last_peer = from->guid;
    a->peer = to->index;
    a->peer_num = (uint8_t)far;
    z->peer = from->index;
    z->peer_num = (uint8_t)num;
    z->probed = a->met = z->met = (uint32_t)sm->sweep.id;
    from->changed = to->changed = true;
    sm_touch(sm, from);
    sm_touch(sm, to);
    return true;
}

// Whoever answers can invent fabric without end.
static bool room_for(struct sm *sm, const struct mad_node_info *ni)
{
    uint32_t max = sm->o.max_switches != 0 ? sm->o.max_switches : SM_SWITCHES_MAX;
    uint32_t sw = ni->node_type == MAD_NODE_SWITCH, ports = ni->num_ports + 1u;
    if (sm->disc.nodes + 1 > SM_NODES_MAX || sm->disc.switches + sw > max ||
        sm->disc.ports + ports > SM_PORTS_MAX)
        return false;
    sm->disc.nodes++;
    sm->disc.switches += sw;
    sm->disc.ports += ports;
    return true;
}

// A device that is not in this sweep yet: takes it in, unless there is no room for it.
static struct sm_dev *take_in(struct sm *sm, struct sm_dev *from, unsigned num,
                              const struct mad_node_info *ni, struct sm_dev *d, const char *where)
{
    struct dr_path path = from->path;

    if (path.hops >= MAD_MAX_HOPS) {
        sm_note(sm, from->guid, FINDING_WARNING, "too-far", where, "more than %d hops away; not managed",
                MAD_MAX_HOPS);
        exclude(from, num, PORT_EXCLUDED_UNSUPPORTED);
        return NULL;
    }
    if (!room_for(sm, ni)) {
        sm_note(sm, 0, FINDING_ERROR, "too-many-nodes", "",
                "the fabric has more than %u nodes, %u switches or %u ports; what was found later is "
                "left out",
                SM_NODES_MAX, SM_SWITCHES_MAX, SM_PORTS_MAX);
        exclude(from, num, PORT_EXCLUDED_UNSUPPORTED);
        return NULL;
    }
    path.port[++path.hops] = (uint8_t)num;
    if (d == NULL)
        d = dev_new(sm, ni);
    dev_begin(sm, d, ni, &path);
    return d;
}

// An adapter that was last seen at another switch, which may not have been asked yet: if it is still there,
// this one is a second with its GUID, and not the one to be left out is found first by chance.
static bool hangs_elsewhere(const struct sm *sm, const struct sm_dev *d, const struct sm_dev *from,
                            unsigned far)
{
    if (sm->disc.rounds > 0 || dev_is_switch(d) || !d->was_here || far == 0 || far > d->ni.num_ports)
        return false;
    uint64_t was = d->port[far].last_peer;
    const struct sm_dev *z = was != 0 && was != from->guid ? sm_dev_find(sm, was) : NULL;
    return z != NULL && z->was_here;
}

static void found(struct sm *sm, struct sm_dev *from, unsigned num, const struct mad_node_info *ni)
{
    char where[128];
    unsigned far = ni->local_port_num;

    sm_port_text(from, num, where, sizeof(where));
    if (!node_info_sane(sm, from, ni, where)) {
        sm_unlink(sm, from, num); // whoever was there before is not
        exclude(from, num, PORT_EXCLUDED_PEER_SILENT);
        return;
    }
    struct sm_dev *d = sm_dev_find(sm, ni->node_guid);
    bool first = d == NULL || !dev_here(sm, d);
    if (!first && (ni->node_type != d->ni.node_type || ni->num_ports != d->ni.num_ports)) {
        sm_unlink(sm, from, num);
        exclude(from, num, PORT_EXCLUDED_DUPLICATE);
        sm->duplicates++;
        sm_note(sm, from->guid, FINDING_ERROR, "duplicate-guid", where,
                "the device behind this port carries the GUID of %s but is another kind", d->desc);
        return;
    }
    if (!sm->sweep.full && !sm_partial_found(sm, from, num, d, far))
        return;
    if (first && sm->sweep.full && d != NULL && hangs_elsewhere(sm, d, from, far)) {
        sm_probe_again(sm, from, num);
        return;
    }
    if (first && (d = take_in(sm, from, num, ni, d, where)) == NULL)
        return;
    bool was = from->port[num].peer == d->index && from->port[num].peer_num == far;
    if (far == 0 || !join(sm, from, num, d, far)) {
        if (first) {
            d->seen = 0; // first met on a bad link: as if not seen
            d->here = false;
        }
        return;
    }
    d->ni.system_image_guid = ni->system_image_guid;
    if (first)
        ask_node(sm, d, far);
    if (!dev_is_switch(d)) {
        d->port[far].guid = ni->port_guid;
        sm_read_end_port(sm, d, far);
    } else {
        d->port[0].guid = ni->port_guid;
        if (!sm->sweep.full && !first && d->asking)
            sm_partial_met(sm, d, from, num);
        else if (!sm->sweep.full && !first && d->port[far].read == (uint32_t)sm->sweep.id &&
                 !sm_port_up(&d->port[far]))
            sm_read_port(sm, d, far); // read too early: it has just answered by that port
        else if (!sm->sweep.full && !first &&
                 (was || sm_port_reset(&from->port[num]) || !sm_port_up(&d->port[far])))
            sm_partial_switch(sm, d); // this end was reset, so the other was
    }
}

static void probe_answer(struct sm *sm, struct sm_dev *d, uint32_t num, const struct mad_result *r)
{
    struct mad_node_info ni;
    if (answered(r)) {
        mad_node_info_decode(r->data, &ni);
        found(sm, d, num, &ni);
        return;
    }
    if (!sm->sweep.full)
        sm_unlink(sm, d, num);
    if (d->port[num].peer == DEV_NONE && sm_port_up(&d->port[num]))
        exclude(d, num, PORT_EXCLUDED_PEER_SILENT);
}

// Either end's probe answers for the link.
static void mark_probed(struct sm *sm, struct sm_port *p)
{
    p->probed = (uint32_t)sm->sweep.id;
    if (p->peer != DEV_NONE)
        sm->dev[p->peer]->port[p->peer_num].probed = p->probed;
}

void sm_probe(struct sm *sm, struct sm_dev *d, unsigned num)
{
    struct dr_path path = d->path;
    if (path.hops >= MAD_MAX_HOPS)
        return;
    path.port[++path.hops] = (uint8_t)num;
    bool silent = d->port[num].was_silent; // a dead agent may not hold up every sweep for seconds
    mark_probed(sm, &d->port[num]);
    struct mad_request q = read_request(sm, d, READ_PROBE, num, true, probe_answer);
    if (silent && !sm->sweep.full) { // nobody was there a second ago: no more than for who is late
        ((struct sm_read *)q.arg)->late = true;
        sm->disc.late++;
    }
    q.attr_id = MAD_ATTR_NODE_INFO;
    q.path = &path;
    q.device = sm_window_key(d->guid, num); // who answers is not known yet
    q.timeout_ns = silent ? SILENT_TIMEOUT : 0;
    q.retries = !silent ? -1 : sm->sweep.full ? 0 : 1;
    mad_engine_send(sm->engine, &q);
}

void sm_probe_ports(struct sm *sm, struct sm_dev *d)
{
    bool own = d->index == sm->own_dev;
    if (!dev_is_switch(d) && !own)
        return;
    for (unsigned i = 1; i <= d->ni.num_ports; i++) {
        struct sm_port *p = &d->port[i];
        if (sm_port_up(p) && !sm_is_probed(sm, p) && p->peer == DEV_NONE && p->excluded == PORT_INCLUDED &&
            (dev_is_switch(d) || i == sm->own.num))
            sm_probe(sm, d, i);
    }
}

void sm_probe_again(struct sm *sm, struct sm_dev *d, unsigned num)
{
    if (sm->disc.num_again == sm->disc.cap_again) {
        sm->disc.cap_again = sm->disc.cap_again ? sm->disc.cap_again * 2 : 16;
        sm->disc.again = xreallocarray(sm->disc.again, sm->disc.cap_again, sizeof(*sm->disc.again));
    }
    sm->disc.again[sm->disc.num_again++] = (struct sm_port_ref){d->index, (uint8_t)num};
}

void sm_probe_round(struct sm *sm)
{
    struct sm_port_ref *list = sm->disc.again;
    uint32_t n = sm->disc.num_again;

    sm->disc.again = NULL;
    sm->disc.num_again = sm->disc.cap_again = 0;
    sm->disc.rounds++;
    for (uint32_t i = 0; i < n; i++) {
        struct sm_dev *d = sm->dev[list[i].dev];
        d->port[list[i].num].probed = 0;
        if (d->here && d->port[list[i].num].peer == DEV_NONE)
            sm_probe(sm, d, list[i].num);
    }
    free(list);
}

// Our own node: nobody's link leads here.
struct sm_dev *sm_read_own(struct sm *sm, const struct mad_node_info *ni)
{
    const struct dr_path here = {0};
    struct sm_dev *d = sm_dev_find(sm, ni->node_guid);

    if (d == NULL)
        d = dev_new(sm, ni);
    sm->own_dev = d->index;
    dev_begin(sm, d, ni, &here);
    ask_node(sm, d, sm->own.num);
    d->port[dev_is_switch(d) ? 0 : sm->own.num].guid = ni->port_guid;
    if (!dev_is_switch(d))
        sm_read_end_port(sm, d, sm->own.num);
    return d;
}
