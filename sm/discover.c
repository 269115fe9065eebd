// SPDX-License-Identifier: Apache-2.0
// Phase "discover": breadth first over directed routes from our own port.
//
// One NodeInfo a link suffices: its answer names the far node and the far port. So that a link is not asked
// from both ends, the ports of switches `level` hops away are probed only when every answer from the levels
// before has come: a device's other requests (description, SwitchInfo, PortInfo, P_Keys) do not wait for
// that. A device that leaves a first try unanswered is no longer waited for; it costs its own time-out and is
// caught up with when it answers.
//
// SwitchInfo.PortStateChange is cleared before the switch's ports are read, so that a change in between
// raises it again. An adapter's PortInfo is asked with attribute modifier bit 31 (extended speeds) first and
// without it when that is refused; a switch's ports as its port 0 says (CapabilityMask bit 14).
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define SILENT_TIMEOUT (200 * MONO_MS)
#define DEV_FORGET_SWEEPS 64 // what a device did not keep is remembered as long

static void probe_ports(struct sm *sm, struct sm_dev *d);

struct sm_dev *sm_dev_find(const struct sm *sm, uint64_t guid)
{
    uint32_t i;
    return u64map_get(&sm->by_guid, guid, &i) ? sm->dev[i] : NULL;
}

static void ports_free(struct sm_dev *d)
{
    for (unsigned i = 0; i <= d->ni.num_ports; i++)
        free(d->port[i].pkey0);
    free(d->port);
}

void sm_dev_free(struct sm_dev *d)
{
    ports_free(d);
    free(d);
}

bool sm_port_up(const struct sm_port *p)
{
    return p->known && (p->info[32] & 0x0f) > MAD_PORT_DOWN; // PortState: bits 260-263
}

bool sm_path(const struct sm *sm, const struct sm_dev *d, unsigned num, struct dr_path *ret)
{
    bool own = d->index == sm->own_dev && (num == 0 || num == sm->own.num);
    if (dev_is_switch(d) || own) {
        *ret = d->path;
        return true;
    }
    if (num < 1 || num > d->ni.num_ports) { // any port will do
        for (num = 1; num <= d->ni.num_ports && d->port[num].peer == DEV_NONE; num++)
            ;
        if (num > d->ni.num_ports)
            return false;
    }
    const struct sm_port *p = &d->port[num];
    if (p->peer == DEV_NONE)
        return false;
    *ret = sm->dev[p->peer]->path;
    if (ret->hops >= MAD_MAX_HOPS)
        return false;
    ret->port[++ret->hops] = p->peer_num;
    return true;
}

uint64_t sm_probe_key(const struct sm_dev *d, unsigned num)
{
    return hash_mix64(hash_mix64(d->guid) ^ num);
}

uint64_t sm_m_key(const struct sm_dev *d, unsigned num)
{
    return d->port[dev_is_switch(d) || num > d->ni.num_ports ? 0 : num].m_key;
}

const char *sm_port_text(const struct sm_dev *d, unsigned num, char *buf, size_t size)
{
    if (d->desc[0] != 0)
        snprintf(buf, size, "%s[%u] (" GUID_FMT ")", d->desc, num, GUID_ARG(d->guid));
    else
        snprintf(buf, size, GUID_FMT "[%u]", GUID_ARG(d->guid), num);
    return buf;
}

void sm_request(struct sm *sm, const struct sm_dev *d, unsigned num, uint8_t method, uint16_t attr_id,
                uint32_t attr_mod, const void *data, mad_done_fn *done, void (*late)(void *, uint64_t),
                uint64_t user)
{
    struct dr_path path;
    if (!sm_path(sm, d, num, &path))
        path.hops = 0; // cannot be: it was reached in this sweep
    mad_engine_send(sm->engine, &(struct mad_request){
                                    .mgmt_class = MAD_CLASS_SM_DR,
                                    .m_key = sm_m_key(d, num),
                                    .method = method,
                                    .attr_id = attr_id,
                                    .attr_mod = attr_mod,
                                    .path = &path,
                                    .data = data,
                                    .data_len = data ? MAD_SMP_DATA_SIZE : 0,
                                    .prio = MAD_PRIO_SMP,
                                    .device = d->guid,
                                    .retries = -1,
                                    .done = done,
                                    .first_timeout = late,
                                    .arg = sm,
                                    .user = user,
                                    .gen = sm->sweeping ? 0 : SM_LIGHT_GEN,
                                });
}

void sm_heard(struct sm *sm, struct sm_dev *d, const struct mad_result *r)
{
    if (r->status == 0)
        d->silent = 0;
    else if (r->status == -ETIMEDOUT && d->silent < SM_SILENT && ++d->silent == SM_SILENT)
        mad_engine_cancel_device(sm->engine, d->guid);
}

// --- levels ---

static void discovery_over(void *arg)
{
    struct sm *sm = arg;
    sm->disc.finishing = false;
    sm_discovered(sm);
}

// Lets the next levels probe when the present one has nothing left that is waited for.
static void advance(struct sm *sm)
{
    while (sm->disc.wait[sm->disc.level] == 0 && sm->disc.level < MAD_MAX_HOPS) {
        uint32_t level = ++sm->disc.level;
        bool any = false;
        for (uint32_t i = 0; i < sm->num_dev; i++) {
            struct sm_dev *d = sm->dev[i];
            if (dev_here(sm, d) && d->level == level) {
                any = true;
                probe_ports(sm, d);
            }
        }
        if (!any)
            break;
    }
    if (sm->disc.pending == 0 && !sm->disc.finishing) {
        sm->disc.finishing = true;
        loop_task_init(&sm->disc.task, "sm", discovery_over, sm);
        loop_post(sm->loop, &sm->disc.task);
    }
}

static void waits(struct sm *sm, uint32_t level)
{
    sm->disc.wait[level]++;
}

static void waited(struct sm *sm, uint32_t level)
{
    if (--sm->disc.wait[level] == 0 && level <= sm->disc.level)
        advance(sm);
}

static void finish_one(struct sm *sm)
{
    if (--sm->disc.pending == 0)
        advance(sm);
}

// user = device index << 32 | number
#define USER(d, n) ((uint64_t)(d)->index << 32 | (n))
static struct sm_dev *user_dev(struct sm *sm, uint64_t user)
{
    return sm->dev[user >> 32];
}

// --- what one device is asked ---

static void description_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct sm_dev *d = user_dev(sm, user);

    sm_heard(sm, d, r);
    if (r->status == 0 && r->mad_status == 0) {
        struct mad_node_description nd;
        mad_node_description_decode(r->data, &nd);
        mad_node_string(&nd, d->desc);
        d->have_desc = true;
    }
    finish_one(sm);
}

// Another manager. A master steps back for a better master only: a better standby waits to be handed over to,
// which is not done, and both would stand by. Nor does one that was handed the fabric wait for who gave
// it. 14.4.1
static void met_manager(struct sm *sm, const struct sm_dev *d, const struct mad_sm_info *si)
{
    bool better =
        si->priority != sm->o.priority ? si->priority > sm->o.priority : si->guid < sm->own.port_guid;
    bool master = si->sm_state == MAD_SM_MASTER;
    bool ours = sm->state == SM_MASTER || sm->handed_over;
    bool rules = ours ? master && better : master || (better && si->sm_state != MAD_SM_NOT_ACTIVE);

    if (rules && sm->disc.foreign_sm == DEV_NONE) {
        sm->disc.foreign_sm = d->index;
        sm->disc.foreign_info = *si;
    } else if (master && sm->state == SM_MASTER) {
        findings_add(
            &sm->findings_new, FINDING_ERROR, "second-master", d->desc,
            "another subnet manager (" GUID_FMT
            ", priority %u) is master too and ranks below weft: stop it, they undo each other's work",
            GUID_ARG(si->guid), si->priority);
    }
}

static void sm_info_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct sm_dev *d = user_dev(sm, user);

    sm_heard(sm, d, r);
    if (r->status == 0 && r->mad_status == 0) {
        struct mad_sm_info si;
        mad_sm_info_decode(r->data, &si);
        if (si.guid != sm->own.port_guid)
            met_manager(sm, d, &si);
    }
    finish_one(sm);
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

static void ext_port_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct mad_mlnx_ext_port_info x;
    if (r->status == 0 && r->mad_status == 0) {
        mad_mlnx_ext_port_info_decode(r->data, &x);
        user_dev(sm, user)->port[(uint32_t)user].fdr10 = x.link_speed_active & MAD_MLNX_SPEED_FDR10;
    }
    finish_one(sm);
}

static void port_known(struct sm *sm, struct sm_dev *d, unsigned num, const uint8_t *wire)
{
    struct sm_port *p = &d->port[num];
    struct mad_port_info pi;

    mad_port_info_decode(wire, &pi);
    if (pi.port_state == MAD_PORT_INIT || pi.port_state == MAD_PORT_DOWN)
        p->not_kept = 0; // the port was reset since: ask again
    if (pi.port_state == MAD_PORT_ACTIVE)
        p->fails = 0;
    if (dev_is_switch(d) && num == 0 && d->lft == DEV_LFT_SHADOW) {
        struct mad_port_info before;
        mad_port_info_decode(p->info, &before);
        if (pi.lid != before.lid || pi.master_sm_lid != before.master_sm_lid)
            d->lft = DEV_LFT_UNKNOWN; // it was reset, or somebody else was there
    }
    memcpy(p->info, wire, sizeof(p->info));
    p->known = true;
    bool end = !dev_is_switch(d) || num == 0;
    if (end)
        p->m_key = pi.m_key;
    if (may_be_fdr10(d, &pi)) {
        sm->disc.pending++;
        sm_request(sm, d, num, MAD_METHOD_GET, MAD_ATTR_MLNX_EXT_PORT_INFO, num, NULL, ext_port_done, NULL,
                   USER(d, num));
    }
    if (end && (pi.capability_mask & MAD_CAP_IS_SM) && d->index != sm->own_dev) {
        sm->disc.pending++;
        sm_request(sm, d, num, MAD_METHOD_GET, MAD_ATTR_SM_INFO, 0, NULL, sm_info_done, NULL, USER(d, num));
    }
}

static void port_info_done(void *arg, uint64_t user, const struct mad_result *r);
static void late_port(void *arg, uint64_t user)
{
    struct sm *sm = arg;
    struct sm_dev *d = user_dev(sm, user);
    d->port[(uint32_t)user].info_late = true;
    waited(sm, d->level);
}

uint32_t sm_port_info_mod(const struct sm_dev *d, unsigned num)
{
    uint32_t bit31 = MAD_PORT_INFO_EXTENDED_SPEEDS;
    const struct sm_port *from = &d->port[dev_is_switch(d) ? 0 : num];
    struct mad_port_info pi;
    if (from->known) {
        mad_port_info_decode(from->info, &pi);
        if (!(pi.capability_mask & MAD_CAP_IS_EXTENDED_SPEEDS_SUPPORTED))
            bit31 = 0;
    } else if (dev_is_switch(d)) {
        bit31 = 0; // port 0 is asked first and without
    }
    return num | bit31;
}

static void ask_port_info(struct sm *sm, struct sm_dev *d, unsigned num, uint32_t mod)
{
    sm->disc.pending++;
    waits(sm, d->level);
    d->port[num].info_late = false;
    sm_request(sm, d, num, MAD_METHOD_GET, MAD_ATTR_PORT_INFO, mod, NULL, port_info_done, late_port,
               USER(d, num));
}

static void port_info_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct sm_dev *d = user_dev(sm, user);
    unsigned num = (uint32_t)user;
    struct sm_port *p = &d->port[num];
    bool was_late = p->info_late;

    sm_heard(sm, d, r);
    if (r->status == 0 && r->mad_status == 0) {
        port_known(sm, d, num, r->data);
        if (dev_is_switch(d) && num == 0)
            for (unsigned i = 1; i <= d->ni.num_ports; i++)
                ask_port_info(sm, d, i, sm_port_info_mod(d, i));
        else if (d->level <= sm->disc.level)
            probe_ports(sm, d);
    } else if (r->status == 0 && !dev_is_switch(d) && !p->known && !p->asked_plain) {
        p->asked_plain = true; // refused, perhaps for bit 31: once more without it
        ask_port_info(sm, d, num, num);
    }
    if (!was_late)
        waited(sm, d->level);
    finish_one(sm);
}

static void p_key_done(void *arg, uint64_t user, const struct mad_result *r);
static void ask_p_keys(struct sm *sm, struct sm_dev *d, unsigned num, unsigned block)
{
    sm->disc.pending++;
    sm_request(sm, d, num, MAD_METHOD_GET, MAD_ATTR_P_KEY_TABLE, block, NULL, p_key_done, NULL,
               USER(d, num << 16 | block));
}

static void p_key_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct sm_dev *d = user_dev(sm, user);
    unsigned num = (uint32_t)user >> 16, block = (uint32_t)user & 0xffff;

    sm_heard(sm, d, r);
    if (r->status == 0 && r->mad_status == 0) {
        struct mad_p_key_table t;
        struct sm_port *p = &d->port[num];
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
    finish_one(sm);
}

static void change_cleared(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct sm_dev *d = user_dev(sm, user);
    sm_heard(sm, d, r); // cleared or not, the ports are read
    ask_port_info(sm, d, 0, 0);
    if (!d->si_late)
        waited(sm, d->level);
    finish_one(sm);
}

static void late_switch(void *arg, uint64_t user)
{
    struct sm *sm = arg;
    struct sm_dev *d = user_dev(sm, user);
    if (!d->si_late) {
        d->si_late = true;
        waited(sm, d->level);
    }
}

static void switch_info_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct sm_dev *d = user_dev(sm, user);

    sm_heard(sm, d, r);
    if (r->status == 0 && r->mad_status == 0) {
        uint8_t life = d->si.life_time_value;
        mad_switch_info_decode(r->data, &d->si);
        if (d->lft == DEV_LFT_SHADOW && d->si.life_time_value != life)
            d->lft = DEV_LFT_UNKNOWN; // it was reset
        if (d->si.linear_fdb_top > MAD_LID_UNICAST_MAX)
            d->si.linear_fdb_top = 0;
        d->have_si = true;
        if (d->si.port_state_change) {
            uint8_t wire[MAD_SMP_DATA_SIZE] = {0};
            mad_switch_info_encode(&d->si, wire); // the bit is written as 1: clears it
            sm->disc.pending++;
            if (!d->si_late)
                waits(sm, d->level);
            sm_request(sm, d, 0, MAD_METHOD_SET, MAD_ATTR_SWITCH_INFO, 0, wire, change_cleared, late_switch,
                       USER(d, 0));
        } else {
            ask_port_info(sm, d, 0, 0);
        }
    }
    if (!d->si_late)
        waited(sm, d->level);
    finish_one(sm);
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

// A device is seen for the first time in this sweep: what was read of its ports before is void, what it did
// not keep is remembered.
static void dev_begin(struct sm *sm, struct sm_dev *d, const struct mad_node_info *ni,
                      const struct dr_path *path)
{
    if (ni->num_ports != d->ni.num_ports ||
        ni->node_type != d->ni.node_type) { // replaced under the same GUID
        ports_free(d);
        d->port = xcalloc(ni->num_ports + 1u, sizeof(*d->port));
        d->have_desc = false;
        d->lft = DEV_LFT_UNKNOWN;
    }
    // It was away, and nobody knows what happened to its tables meanwhile, or the last sweep failed in the
    // middle of writing them.
    if (d->seen + 1 != sm->sweep.id || d->lft_mixed)
        d->lft = DEV_LFT_UNKNOWN;
    d->lft_mixed = false;
    d->ni = *ni;
    d->seen = sm->sweep.id;
    d->silent = 0;
    d->too_small = false;
    d->node = ID_NONE;
    d->path = *path;
    d->lft_before = d->lft;
    d->level = path->hops;
    d->have_si = d->si_late = d->foreign_pkeys = false;
    for (unsigned i = 0; i <= ni->num_ports; i++) {
        struct sm_port *p = &d->port[i];
        p->peer = DEV_NONE;
        p->was_silent = p->excluded == PORT_EXCLUDED_PEER_SILENT;
        p->excluded = PORT_INCLUDED;
        p->m_key = 0;
        p->known = p->probing = p->info_late = p->probe_late = p->asked_plain = p->fdr10 = false;
        free(p->pkey0);
        p->pkey0 = NULL;
    }
}

static void ask_node(struct sm *sm, struct sm_dev *d, unsigned num)
{
    sm->disc.pending++;
    sm_request(sm, d, num, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION, 0, NULL, description_done, NULL,
               USER(d, 0));
    if (dev_is_switch(d)) {
        sm->disc.pending++;
        waits(sm, d->level);
        sm_request(sm, d, 0, MAD_METHOD_GET, MAD_ATTR_SWITCH_INFO, 0, NULL, switch_info_done, late_switch,
                   USER(d, 0));
        ask_p_keys(sm, d, 0, 0);
    }
}

// An end port was reached: an adapter's second port has a PortInfo and P_Keys of its own.
static void ask_end_port(struct sm *sm, struct sm_dev *d, unsigned num)
{
    ask_port_info(sm, d, num, sm_port_info_mod(d, num));
    ask_p_keys(sm, d, num, 0);
}

static bool node_info_sane(struct sm *sm, const struct mad_node_info *ni, const char *where)
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
        findings_add(&sm->findings_new, FINDING_ERROR, "bad-node-info", where,
                     "the device behind this port answers NodeInfo with %s (type %u, %u ports, port %u); it "
                     "is left out",
                     why, ni->node_type, ni->num_ports, ni->local_port_num);
    return why == NULL;
}

static void exclude(struct sm_dev *d, unsigned num, enum port_excluded why)
{
    d->port[num].excluded = (uint8_t)why;
}

// Joins from[num] and to[far]; false when either end is taken or it is no proper link.
static bool join(struct sm *sm, struct sm_dev *from, unsigned num, struct sm_dev *to, unsigned far)
{
    struct sm_port *a = &from->port[num], *z = &to->port[far];
    char where[128], other[128];

    if (a->peer == to->index && a->peer_num == far)
        return true;
    if (from == to) {
        exclude(from, num, PORT_EXCLUDED_SELF_LINK); // the builder reports it
        exclude(to, far, PORT_EXCLUDED_SELF_LINK);
        return false;
    }
    if (a->peer != DEV_NONE || z->peer != DEV_NONE) {
        exclude(from, num, PORT_EXCLUDED_DUPLICATE);
        sm->duplicates++;
        findings_add(&sm->findings_new, FINDING_ERROR, "duplicate-guid",
                     sm_port_text(to, far, other, sizeof(other)),
                     "also answers behind %s: two devices with one GUID, or a cable moved during the sweep; "
                     "the second is left out",
                     sm_port_text(from, num, where, sizeof(where)));
        return false;
    }
    a->last_peer = to->guid;
    z->last_peer = from->guid;
    a->peer = to->index;
    a->peer_num = (uint8_t)far;
    z->peer = from->index;
    z->peer_num = (uint8_t)num;
    z->probing = true;
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

static void found(struct sm *sm, struct sm_dev *from, unsigned num, const struct mad_node_info *ni)
{
    char where[128];
    unsigned far = ni->local_port_num;

    sm_port_text(from, num, where, sizeof(where));
    if (!node_info_sane(sm, ni, where)) {
        exclude(from, num, PORT_EXCLUDED_PEER_SILENT);
        return;
    }
    struct sm_dev *d = sm_dev_find(sm, ni->node_guid);
    bool first = d == NULL || !dev_here(sm, d);
    if (!first && (ni->node_type != d->ni.node_type || ni->num_ports != d->ni.num_ports)) {
        exclude(from, num, PORT_EXCLUDED_DUPLICATE);
        sm->duplicates++;
        findings_add(&sm->findings_new, FINDING_ERROR, "duplicate-guid", where,
                     "the device behind this port carries the GUID of %s but is another kind", d->desc);
        return;
    }
    if (first) {
        struct dr_path path = from->path;
        if (path.hops >= MAD_MAX_HOPS) {
            findings_add(&sm->findings_new, FINDING_WARNING, "too-far", where,
                         "more than %d hops away; not managed", MAD_MAX_HOPS);
            exclude(from, num, PORT_EXCLUDED_UNSUPPORTED);
            return;
        }
        if (!room_for(sm, ni)) {
            findings_add(
                &sm->findings_new, FINDING_ERROR, "too-many-nodes", "",
                "the fabric has more than %u nodes, %u switches or %u ports; what was found later is "
                "left out",
                SM_NODES_MAX, SM_SWITCHES_MAX, SM_PORTS_MAX);
            exclude(from, num, PORT_EXCLUDED_UNSUPPORTED);
            return;
        }
        path.port[++path.hops] = (uint8_t)num;
        if (d == NULL)
            d = dev_new(sm, ni);
        dev_begin(sm, d, ni, &path);
    }
    if (far == 0 || !join(sm, from, num, d, far)) {
        if (first)
            d->seen = 0; // first met on a bad link: as if not seen
        return;
    }
    if (first)
        ask_node(sm, d, far);
    if (!dev_is_switch(d)) {
        d->port[far].guid = ni->port_guid;
        ask_end_port(sm, d, far);
    } else {
        d->port[0].guid = ni->port_guid;
    }
}

static void late_probe(void *arg, uint64_t user)
{
    struct sm *sm = arg;
    struct sm_dev *d = user_dev(sm, user);
    d->port[(uint32_t)user].probe_late = true;
    waited(sm, d->level);
}

static void probe_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct sm_dev *d = user_dev(sm, user);
    unsigned num = (uint32_t)user;

    if (r->status == 0 && r->mad_status == 0) {
        struct mad_node_info ni;
        mad_node_info_decode(r->data, &ni);
        found(sm, d, num, &ni);
    } else if (d->port[num].peer == DEV_NONE) {
        exclude(d, num, PORT_EXCLUDED_PEER_SILENT);
    }
    if (!d->port[num].probe_late)
        waited(sm, d->level);
    finish_one(sm);
}

static void probe(struct sm *sm, struct sm_dev *d, unsigned num)
{
    struct dr_path path = d->path;
    if (path.hops >= MAD_MAX_HOPS)
        return;
    path.port[++path.hops] = (uint8_t)num;
    bool silent = d->port[num].was_silent; // a dead agent may not hold up every sweep for seconds
    d->port[num].probing = true;
    sm->disc.pending++;
    waits(sm, d->level);
    mad_engine_send(sm->engine, &(struct mad_request){
                                    .mgmt_class = MAD_CLASS_SM_DR,
                                    .method = MAD_METHOD_GET,
                                    .attr_id = MAD_ATTR_NODE_INFO,
                                    .path = &path,
                                    .prio = MAD_PRIO_SMP,
                                    .device = sm_probe_key(d, num), // who answers is not known yet
                                    .timeout_ns = silent ? SILENT_TIMEOUT : 0,
                                    .retries = silent ? 1 : -1,
                                    .done = probe_done,
                                    .first_timeout = late_probe,
                                    .arg = sm,
                                    .user = USER(d, num),
                                });
}

static void probe_ports(struct sm *sm, struct sm_dev *d)
{
    bool own = d->index == sm->own_dev;
    if (!dev_is_switch(d) && !own)
        return;
    for (unsigned i = 1; i <= d->ni.num_ports; i++) {
        struct sm_port *p = &d->port[i];
        if (sm_port_up(p) && !p->probing && p->peer == DEV_NONE && p->excluded == PORT_INCLUDED &&
            (dev_is_switch(d) || i == sm->own.num))
            probe(sm, d, i);
    }
}

static void own_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct mad_node_info ni;
    struct dr_path here = {0};
    (void)user;

    if (r->status != 0 || r->mad_status != 0) {
        struct err e;
        err_set(&e, r->status ? r->status : -EIO, sm->transport->name,
                "the local port does not answer NodeInfo; is its driver loaded and the device healthy?");
        sm->disc.pending--;
        sm_sweep_failed(sm, &e);
        return;
    }
    mad_node_info_decode(r->data, &ni);
    if (ni.num_ports == 0 || ni.node_guid == 0 ||
        (ni.node_type != MAD_NODE_SWITCH && (sm->own.num == 0 || sm->own.num > ni.num_ports))) {
        struct err e;
        err_set(&e, -EPROTO, sm->transport->name,
                "the local node's NodeInfo makes no sense (%u ports, we sit on port %u)", ni.num_ports,
                sm->own.num);
        sm->disc.pending--;
        sm_sweep_failed(sm, &e);
        return;
    }
    struct sm_dev *d = sm_dev_find(sm, ni.node_guid);
    if (d == NULL)
        d = dev_new(sm, &ni);
    sm->own_dev = d->index;
    dev_begin(sm, d, &ni, &here);
    ask_node(sm, d, sm->own.num);
    if (!dev_is_switch(d)) {
        d->port[sm->own.num].guid = ni.port_guid;
        ask_end_port(sm, d, sm->own.num);
    } else {
        d->port[0].guid = ni.port_guid;
    }
    sm->disc.level = 0;
    finish_one(sm);
}

// Nothing is under way between sweeps: the moment to forget devices that have been away for long, or at once
// when there are too many.
static void forget_devices(struct sm *sm)
{
    uint64_t age = sm->num_dev > SM_NODES_MAX ? 1 : DEV_FORGET_SWEEPS;
    uint32_t n = 0;

    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (d->seen + age < sm->sweep.id) {
            sm_dev_free(d);
            continue;
        }
        d->index = n;
        sm->dev[n++] = d;
    }
    if (n == sm->num_dev)
        return;
    sm->num_dev = n;
    u64map_done(&sm->by_guid);
    u64map_init(&sm->by_guid, NULL, n > 64 ? n : 64);
    for (uint32_t i = 0; i < n; i++)
        u64map_set(&sm->by_guid, sm->dev[i]->guid, i);
}

void sm_discover_start(struct sm *sm)
{
    struct dr_path here = {0};

    forget_devices(sm);
    memset(&sm->disc, 0, sizeof(sm->disc));
    sm->disc.foreign_sm = DEV_NONE;
    sm->disc.pending = 1;
    sm->disc.level = 0;
    sm->own_dev = DEV_NONE;
    mad_engine_send(sm->engine, &(struct mad_request){
                                    .mgmt_class = MAD_CLASS_SM_DR,
                                    .method = MAD_METHOD_GET,
                                    .attr_id = MAD_ATTR_NODE_INFO,
                                    .path = &here,
                                    .prio = MAD_PRIO_SMP,
                                    .device = sm->own.node_guid,
                                    .retries = -1,
                                    .done = own_done,
                                    .arg = sm,
                                });
}
