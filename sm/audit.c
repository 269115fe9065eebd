// SPDX-License-Identifier: Apache-2.0
// The slow audit: reads everything again, spread over audit_interval_ns, and compares it with what we hold.
// It finds what no trap and no change bit tells of: settings and table entries that somebody else wrote, bits
// that fell over. A difference is drift: one event a device, and a mark (sm_dirty_*()), so that the next
// sweep reads and repairs it. The audit itself writes nothing.
//
// sm_audit_step() is called at each light sweep; a step starts as many devices as the time since the last one
// is worth, AT_ONCE at a time, each with DEV_WINDOW requests outstanding. Requests belong to the light
// sweep's generation: what is urgent cancels them. A device during whose audit a sweep has begun, or that is
// marked already, is not judged: its turn comes again, or the mark explains the difference. Nor are fields
// that change by themselves (VOLATILE), fields that the device is known not to keep, and what the standard
// leaves undefined at a switch's external ports.
//
// A round goes through the snapshot's nodes in order of GUID, so that nodes that come and go shift nothing.
// A device that answers Set with what was asked and keeps something else is found out here: a setting that is
// wrong in STUBBORN_ROUNDS rounds in a row counts as not kept, but for the LIDs, without which nothing works.
// struct sm_audit is the manager's, made with the first step, freed by sm_audit_done().
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define AT_ONCE 16
#define DEV_WINDOW 2
#define STEP_MAX (5 * MONO_S) // a pause is not made up for
#define FIELDS_MAX 96
#define STUBBORN 64       // settings that are remembered
#define STUBBORN_ROUNDS 3 // in a row
#define PORTS 256

enum unit { UNIT_NODE, UNIT_DESC, UNIT_SWITCH, UNIT_PORT, UNIT_P_KEY, UNIT_LFT, UNIT_LANES };

struct one { // a device that is being audited; guid 0 = free
    uint64_t guid;
    uint32_t unit; // cursor
    uint32_t units;
    uint64_t sweeps; // when it began
    uint8_t out;
    bool again;   // judged from the start: something came in between
    bool changed; // a change that others tell of: no drift
    bool desc, node, sw, tables, lanes;
    bool port[PORTS]; // to be marked
    bool have_p_key;
    uint16_t p_key[32]; // block 0 of a switch's port 0, when it has drifted
    uint32_t differences;
    char text[240]; // the first of them
};

struct stubborn { // a setting that was found wrong again; guid 0 = free
    uint64_t guid, round;
    uint32_t field; // PORTCFG_*
    uint8_t num, times;
};

struct sm_audit {
    struct sm_audit_stats stats;
    struct stubborn stubborn[STUBBORN];
    struct one one[AT_ONCE];
    unsigned busy;
    bool running; // a round
    uint64_t at;  // the last node that was begun
    uint64_t units;
    int64_t credit; // units that may be begun, times the interval
    mono_t stepped, began;
    uint32_t skip[FIELDS_MAX]; // of PortInfo, by field: SKIP_*, and PORTCFG_* bits
};
#define SKIP_ALWAYS (1u << 31)
#define SKIP_EXTERNAL (1u << 30)
#define KEPT (SKIP_EXTERNAL - 1)

// --- what of a PortInfo is compared ---

static const char *const volatile_field[] = {
    "m_key_violations",        "p_key_violations",    "q_key_violations", "diag_code", "client_reregister",
    "link_round_trip_latency", "port_physical_state", "local_port_num"}; // that the request came in by

static const char *const end_field[] = {"m_key",
                                        "gid_prefix",
                                        "lid",
                                        "master_sm_lid",
                                        "capability_mask",
                                        "capability_mask2",
                                        "m_key_protect_bits",
                                        "m_key_lease_period",
                                        "lmc",
                                        "master_sm_sl",
                                        "subnet_timeout",
                                        "resp_time_value",
                                        "guid_cap",
                                        "init_type",
                                        "init_type_reply",
                                        "multicast_pkey_trap_suppression_enabled"};

static const struct {
    const char *field;
    uint32_t bit;
} kept_field[] = {
    {"lid", PORTCFG_LID},
    {"master_sm_lid", PORTCFG_MASTER_SM_LID},
    {"master_sm_sl", PORTCFG_MASTER_SM_SL},
    {"gid_prefix", PORTCFG_GID_PREFIX},
    {"lmc", PORTCFG_LMC},
    {"subnet_timeout", PORTCFG_SUBNET_TIMEOUT},
    {"neighbor_mtu", PORTCFG_NEIGHBOR_MTU},
    {"operational_vls", PORTCFG_OPER_VLS},
    {"hoq_life", PORTCFG_HOQ_LIFE},
    {"vl_stall_count", PORTCFG_VL_STALL_COUNT},
    {"local_phy_errors", PORTCFG_ERROR_THRESHOLDS},
    {"overrun_errors", PORTCFG_ERROR_THRESHOLDS},
    {"link_down_default_state", PORTCFG_LINK_DOWN_DEFAULT},
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint32_t skip_of(const char *name)
{
    uint32_t skip = 0;
    for (size_t i = 0; i < COUNT(volatile_field); i++)
        skip |= strcmp(name, volatile_field[i]) == 0 ? SKIP_ALWAYS : 0;
    for (size_t i = 0; i < COUNT(end_field); i++)
        skip |= strcmp(name, end_field[i]) == 0 ? SKIP_EXTERNAL : 0;
    for (size_t i = 0; i < COUNT(kept_field); i++)
        skip |= strcmp(name, kept_field[i].field) == 0 ? kept_field[i].bit : 0;
    return skip;
}

static struct sm_audit *audit(struct sm *sm)
{
    const struct mad_attr *pi = &mad_attr_port_info;

    if (sm->audit != NULL)
        return sm->audit;
    sm->audit = xcalloc(1, sizeof(*sm->audit));
    sm->audit->stepped = loop_now(sm->loop);
    for (unsigned i = 0; i < pi->nfields && i < FIELDS_MAX; i++)
        sm->audit->skip[i] = pi->fields[i].name == NULL ? SKIP_ALWAYS : skip_of(pi->fields[i].name);
    return sm->audit;
}

void sm_audit_done(struct sm *sm)
{
    free(sm->audit);
    sm->audit = NULL;
}

// --- what is asked, one by one ---

// The i-th question to a device; false beyond the last. num: port or block; reached by *ret_port.
static bool unit_at(const struct sm *sm, const struct sm_dev *d, uint32_t *i, enum unit *ret,
                    uint32_t *ret_num)
{
    uint32_t ports = d->ni.num_ports + 1u;
    bool sw = dev_is_switch(d);
    bool lft = sw && d->have_si && d->lft == DEV_LFT_SHADOW && sm->tables != NULL && !d->too_small;
    uint32_t blocks = lft ? d->si.linear_fdb_top / 64u + 1 : 0;
    uint32_t lanes = 3 + 2 * ports + blocks,
             end = lanes + (sm_lanes_known(sm, d) > 0 ? sm_lanes_units(d) : 0);

    for (; *i < end; ++*i) {
        uint32_t k = *i < 3 ? 0 : *i - 3;
        *ret_num = *i < 3 ? 0 : k < ports ? k : k < 2 * ports ? k - ports : k - 2 * ports;
        *ret = *i < 3          ? (enum unit) * i
               : k < ports     ? UNIT_PORT
               : k < 2 * ports ? UNIT_P_KEY
               : *i < lanes    ? UNIT_LFT
                               : UNIT_LANES;
        if (*ret == UNIT_LANES)
            *ret_num = *i - lanes;
        const struct sm_port *p = &d->port[*ret == UNIT_PORT || *ret == UNIT_P_KEY ? *ret_num : 0];
        bool own = d->index == sm->own_dev && *ret_num == sm->own.num;
        switch (*ret) {
        case UNIT_NODE:
            return true;
        case UNIT_DESC:
            if (d->have_desc)
                return true;
            break;
        case UNIT_SWITCH:
            if (sw && d->have_si)
                return true;
            break;
        case UNIT_PORT:
            if (p->known && (sw || (*ret_num > 0 && (p->peer != DEV_NONE || own))))
                return true;
            break;
        case UNIT_P_KEY:
            if (p->known && p->pkey0 == NULL && (sw ? *ret_num == 0 : *ret_num > 0 && p->peer != DEV_NONE))
                return true;
            break;
        case UNIT_LFT:
            return true;
        case UNIT_LANES:
            if (sm_lanes_is_known(d, *ret_num))
                return true;
            break;
        }
    }
    return false;
}

static uint32_t units_of(const struct sm *sm, const struct sm_dev *d)
{
    uint32_t n = 0, num;
    enum unit u;
    for (uint32_t i = 0; unit_at(sm, d, &i, &u, &num) && u != UNIT_LANES; i++)
        n++;
    return n + sm_lanes_known(sm, d);
}

// --- what the answers say ---

static void differs(struct one *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void differs(struct one *o, const char *fmt, ...)
{
    va_list ap;
    if (o->differences++ > 0)
        return;
    va_start(ap, fmt);
    vsnprintf(o->text, sizeof(o->text), fmt, ap);
    va_end(ap);
}

static void node_answer(struct one *o, const struct sm_dev *d, const uint8_t *data)
{
    struct mad_node_info ni;

    mad_node_info_decode(data, &ni);
    if (ni.node_guid != d->guid || ni.node_type != d->ni.node_type || ni.num_ports != d->ni.num_ports)
        o->changed = o->node = true; // another device: the sweep tells
    if (o->changed || (ni.system_image_guid == d->ni.system_image_guid && ni.device_id == d->ni.device_id &&
                       ni.revision == d->ni.revision && ni.vendor_id == d->ni.vendor_id))
        return;
    o->node = true;
    differs(o, "NodeInfo is another one (system image 0x%llx, device 0x%x, revision 0x%x)",
            (unsigned long long)ni.system_image_guid, ni.device_id, ni.revision);
}

static void desc_answer(struct one *o, const struct sm_dev *d, const uint8_t *data)
{
    struct mad_node_description nd;
    char desc[65];

    mad_node_description_decode(data, &nd);
    mad_node_string(&nd, desc);
    if (strcmp(desc, d->desc) == 0)
        return;
    o->desc = true;
    differs(o, "NodeDescription is \"%s\" instead of \"%s\"", desc, d->desc);
}

static void switch_answer(struct one *o, const struct sm_dev *d, const uint8_t *data)
{
    struct mad_switch_info si;

    mad_switch_info_decode(data, &si);
    if (si.linear_fdb_top > MAD_LID_UNICAST_MAX)
        si.linear_fdb_top = 0;
    if (si.port_state_change)
        o->changed = true; // the light sweep reads it
    if (si.linear_fdb_top == d->si.linear_fdb_top && si.life_time_value == d->si.life_time_value)
        return;
    o->sw = true;
    if (si.linear_fdb_top != d->si.linear_fdb_top)
        differs(o, "LinearFDBTop is %u instead of %u", si.linear_fdb_top, d->si.linear_fdb_top);
    else
        differs(o, "LifeTimeValue is %u instead of %u", si.life_time_value, d->si.life_time_value);
}

// Whether this setting is given up. Rows of earlier rounds give way.
static bool is_stubborn(struct sm *sm, struct sm_dev *d, unsigned num, uint32_t field)
{
    struct sm_audit *a = sm->audit;
    struct stubborn *room = NULL;
    uint64_t round = a->stats.rounds + 1;

    if (field == 0 || (field & (PORTCFG_LID | PORTCFG_MASTER_SM_LID)))
        return false;
    for (unsigned i = 0; i < STUBBORN; i++) {
        struct stubborn *b = &a->stubborn[i];
        if (b->guid != 0 && b->round + 1 < round)
            b->guid = 0;
        if (b->guid == d->guid && b->num == num && b->field == field) {
            b->times += b->round < round;
            b->round = round;
            if (b->times < STUBBORN_ROUNDS)
                return false;
            b->guid = 0;
            return true;
        }
        room = b->guid == 0 ? b : room;
    }
    if (room != NULL)
        *room = (struct stubborn){
            .guid = d->guid, .round = round, .field = field, .num = (uint8_t)num, .times = 1};
    return false;
}

static void give_up(struct sm *sm, struct sm_dev *d, unsigned num, uint32_t field)
{
    char where[160], name[80];

    d->port[num].not_kept |= field;
    sm_event(
        sm, "settings-not-kept", "warning", sm_port_text(d, num, where, sizeof(where)),
        "was found with another %s %u audits in a row though it was set each time: it does not keep it, or "
        "somebody else changes it; not asked again until it resets",
        portcfg_names(field, name, sizeof(name)), STUBBORN_ROUNDS);
}

static void port_answer(struct sm *sm, struct one *o, struct sm_dev *d, unsigned num, const uint8_t *data)
{
    const struct sm_port *p = &d->port[num];
    const struct mad_attr *attr = &mad_attr_port_info;
    struct mad_port_info was, is;
    char found[80], held[80];

    if (memcmp(p->info, data, MAD_SMP_DATA_SIZE) == 0)
        return;
    mad_port_info_decode(p->info, &was);
    mad_port_info_decode(data, &is);
    if (is.port_state != was.port_state &&
        (is.port_state <= MAD_PORT_INIT || was.port_state <= MAD_PORT_INIT)) {
        o->changed = o->port[num] = true; // a link came, went or was reset: the sweep tells
        return;
    }
    bool external = dev_is_switch(d) && num > 0;
    bool down = external && is.port_state <= MAD_PORT_DOWN; // looks for a partner: settings only
    for (unsigned i = 0; i < attr->nfields && i < FIELDS_MAX; i++) {
        const struct mad_field *f = &attr->fields[i];
        uint32_t skip = sm->audit->skip[i];
        if ((skip & SKIP_ALWAYS) || (external && (skip & SKIP_EXTERNAL)) || (skip & p->not_kept) ||
            (down && !(skip & KEPT)) || mad_field_get(f, &is, 0) == mad_field_get(f, &was, 0))
            continue;
        if (is_stubborn(sm, d, num, skip & KEPT)) {
            give_up(sm, d, num, skip & KEPT);
            continue;
        }
        o->port[num] = true;
        mad_field_text(f, &is, 0, found, sizeof(found));
        mad_field_text(f, &was, 0, held, sizeof(held));
        if (strcmp(f->name, "m_key") == 0)
            differs(o, "port %u: m_key is another one", num);
        else
            differs(o, "port %u: %s is %s instead of %s", num, f->name, found, held);
    }
}

static void p_key_answer(struct one *o, const struct sm_dev *d, unsigned num, const uint8_t *data)
{
    const struct sm_port *p = &d->port[num];
    struct mad_p_key_table t;

    mad_p_key_table_decode(data, &t);
    if (t.p_key[0] == MAD_DEFAULT_P_KEY || p->pkey0 != NULL)
        return;
    if (dev_is_switch(d)) {
        memcpy(o->p_key, t.p_key, sizeof(o->p_key));
        o->have_p_key = true;
    }
    o->port[num] = true;
    differs(o, "port %u: P_Key 0 is 0x%04x instead of 0x%04x", num, t.p_key[0], MAD_DEFAULT_P_KEY);
}

static void lft_answer(struct sm *sm, struct one *o, const struct sm_dev *d, uint32_t block,
                       const uint8_t *data)
{
    const struct node *n = fabric_by_guid(sm->fabric, d->guid);

    if (n == NULL || n->sw == ID_NONE || d->lft != DEV_LFT_SHADOW || n->sw >= sm->tables->num_switches)
        return;
    for (uint32_t i = 0; i < LFT_BLOCK; i++) {
        uint32_t lid = block * LFT_BLOCK + i;
        if (lid == 0 || lid >= sm->tables->lids || lid > d->si.linear_fdb_top)
            continue;
        uint8_t want = tables_row(sm->tables, n->sw)[lid], is = data[i];
        if (is == want || (is > d->ni.num_ports && want > d->ni.num_ports)) // both drop
            continue;
        o->tables = true;
        differs(o, "the table sends LID %u to port %u instead of %u", lid, is, want);
    }
}

static void lanes_answer(struct sm *sm, struct one *o, struct sm_dev *d, uint32_t unit, const uint8_t *data)
{
    char what[120];
    if (!sm_lanes_drifted(sm, d, unit, data, what, sizeof(what)))
        return;
    o->lanes = true;
    differs(o, "%s", what);
}

static void answered(struct sm *sm, struct one *o, struct sm_dev *d, enum unit u, uint32_t num,
                     const uint8_t *data)
{
    switch (u) {
    case UNIT_NODE:
        node_answer(o, d, data);
        break;
    case UNIT_DESC:
        desc_answer(o, d, data);
        break;
    case UNIT_SWITCH:
        switch_answer(o, d, data);
        break;
    case UNIT_PORT:
        port_answer(sm, o, d, num, data);
        break;
    case UNIT_P_KEY:
        p_key_answer(o, d, num, data);
        break;
    case UNIT_LFT:
        lft_answer(sm, o, d, num, data);
        break;
    case UNIT_LANES:
        lanes_answer(sm, o, d, num, data);
        break;
    }
}

// --- one device ---

// Programming starts from the block as it was read; a partial sweep does not read a switch's.
static void take_p_keys(const struct one *o, struct sm_dev *d)
{
    if (!o->have_p_key || d->port[0].pkey0 != NULL)
        return;
    d->port[0].pkey0 = xcalloc(32, sizeof(uint16_t));
    memcpy(d->port[0].pkey0, o->p_key, sizeof(o->p_key));
}

static void mark(struct sm *sm, const struct one *o, struct sm_dev *d)
{
    bool sw = o->sw;
    take_p_keys(o, d);
    for (unsigned num = 0; num <= d->ni.num_ports; num++) {
        if (!o->port[num])
            continue;
        if (dev_is_switch(d) && o->changed)
            sw = true; // what else has changed there?
        else
            sm_dirty_port(sm, d, num, "drift");
    }
    if (sw || (o->lanes && dev_is_switch(d)))
        sm_dirty_switch(sm, d, "drift");
    else if (o->lanes)
        for (unsigned num = 1; num <= d->ni.num_ports; num++)
            sm_dirty_port(sm, d, num, "drift");
    if (o->tables)
        sm_dirty_tables(sm, d, "drift");
    if (o->desc)
        sm_dirty_desc(sm, d, "drift");
    if (o->node)
        sm_dirty_node(sm, d, "drift");
}

static void judge(struct sm *sm, struct one *o, struct sm_dev *d)
{
    struct sm_audit_stats *st = &sm->audit->stats;
    char name[160];

    st->devices_done++;
    if (d->dirty != 0) {
        st->skipped++; // read soon in any case
        return;
    }
    mark(sm, o, d);
    if (o->differences == 0 || o->changed)
        return;
    st->drifted++;
    snprintf(name, sizeof(name), "%s", d->desc);
    if (d->desc[0] == 0)
        sm_port_text(d, 0, name, sizeof(name));
    if (o->differences > 1)
        sm_event(sm, "drift", "warning", name, "%s; %u more differences; read again and repaired", o->text,
                 o->differences - 1);
    else
        sm_event(sm, "drift", "warning", name, "%s; read again and repaired", o->text);
}

static void start_more(struct sm *sm);
static void unit_done(void *arg, uint64_t user, const struct mad_result *r);

static void begin(const struct sm *sm, struct one *o, uint64_t guid, uint32_t units)
{
    *o = (struct one){.guid = guid, .units = units, .sweeps = sm->num_sweeps};
}

static void end(struct sm *sm, struct one *o)
{
    o->guid = 0;
    sm->audit->busy--;
}

static bool disturbed(const struct sm *sm, const struct one *o)
{
    return sm->sweeping || o->sweeps != sm->num_sweeps || sm->state != SM_MASTER;
}

static void ask(struct sm *sm, struct one *o, struct sm_dev *d, enum unit u, uint32_t num)
{
    static const uint16_t attr[] = {
        [UNIT_NODE] = MAD_ATTR_NODE_INFO,     [UNIT_DESC] = MAD_ATTR_NODE_DESCRIPTION,
        [UNIT_SWITCH] = MAD_ATTR_SWITCH_INFO, [UNIT_PORT] = MAD_ATTR_PORT_INFO,
        [UNIT_P_KEY] = MAD_ATTR_P_KEY_TABLE,  [UNIT_LFT] = MAD_ATTR_LINEAR_FORWARDING_TABLE,
    };
    struct sm_item it = {0};
    if (u == UNIT_LANES)
        sm_lanes_item(d, num, &it);
    uint32_t mod = u == UNIT_PORT ? sm_port_info_mod(d, num) : u == UNIT_LFT ? num : it.attr_mod;
    unsigned port = !dev_is_switch(d) && (u == UNIT_PORT || u == UNIT_P_KEY) ? num : it.port;
    uint64_t user = (uint64_t)(o - sm->audit->one) << 40 | (uint64_t)u << 32 | num;
    o->out++;
    sm_request(sm, d, port, MAD_METHOD_GET, u == UNIT_LANES ? it.attr_id : attr[u], mod, NULL, unit_done,
               NULL, user);
}

static void pump(struct sm *sm, struct one *o)
{
    struct sm_dev *d = sm_dev_find(sm, o->guid);
    enum unit u;
    uint32_t num;

    o->again |= disturbed(sm, o);
    if (d == NULL || !dev_here(sm, d) || o->again) {
        if (o->out == 0 && !o->again)
            end(sm, o);
        return; // a disturbed one waits for the next step
    }
    while (o->out < DEV_WINDOW && unit_at(sm, d, &o->unit, &u, &num)) {
        o->unit++;
        ask(sm, o, d, u, num);
    }
    if (o->out > 0)
        return;
    judge(sm, o, d);
    end(sm, o);
    start_more(sm);
}

static void unit_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct one *o = &sm->audit->one[user >> 40];
    struct sm_dev *d = sm_dev_find(sm, o->guid);

    o->out--;
    o->again |= r->status == -ECANCELED || disturbed(sm, o);
    if (d != NULL && !o->again && r->status != 0)
        o->unit = UINT32_MAX; // silent: the light sweep and its next sweep find out
    else if (d != NULL && !o->again && r->mad_status == 0)
        answered(sm, o, d, (enum unit)(user >> 32 & 0xff), (uint32_t)user, r->data);
    pump(sm, o);
}

// --- a round ---

static int64_t interval(const struct sm *sm)
{
    return sm->o.audit_interval_ns;
}

// The first node of the snapshot beyond that GUID; NULL.
static const struct node *node_after(const struct fabric *f, uint64_t guid)
{
    uint32_t low = 0, high = f->num_nodes;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (f->node[mid].guid <= guid)
            low = mid + 1;
        else
            high = mid;
    }
    return low < f->num_nodes ? &f->node[low] : NULL;
}

static void round_begins(struct sm *sm)
{
    struct sm_audit *a = sm->audit;

    a->running = true;
    a->began = loop_now(sm->loop);
    a->at = 0;
    a->units = 0;
    a->stats.devices = a->stats.devices_done = 0;
    for (uint32_t i = 0; i < sm->num_dev; i++)
        if (dev_here(sm, sm->dev[i])) {
            a->stats.devices++;
            a->units += units_of(sm, sm->dev[i]);
        }
}

static void round_ends(struct sm *sm)
{
    struct sm_audit *a = sm->audit;
    a->running = false;
    a->stats.rounds++;
    a->stats.last_round_wall_ns = wall_now_ns();
    a->stats.last_round_ns = mono_sub(loop_now(sm->loop), a->began);
}

static void start_more(struct sm *sm)
{
    struct sm_audit *a = sm->audit;

    if (sm->sweeping || !a->running)
        return;
    for (unsigned i = 0; i < AT_ONCE && a->credit > 0; i++) {
        struct one *o = &a->one[i];
        if (o->guid != 0)
            continue;
        const struct node *n = node_after(sm->fabric, a->at);
        if (n == NULL)
            break;
        a->at = n->guid;
        const struct sm_dev *d = sm_dev_find(sm, n->guid);
        if (d == NULL || !dev_here(sm, d))
            continue;
        uint32_t units = units_of(sm, d);
        a->credit -= (int64_t)units * interval(sm) / MONO_MS;
        a->busy++;
        begin(sm, o, n->guid, units);
        pump(sm, o);
    }
    if (a->busy == 0 && node_after(sm->fabric, a->at) == NULL)
        round_ends(sm);
}

void sm_audit_step(struct sm *sm)
{
    if (interval(sm) <= 0 || sm->sweeping || !sm->up || sm->state != SM_MASTER || sm->fabric == NULL)
        return;
    struct sm_audit *a = audit(sm);
    mono_t now = loop_now(sm->loop);
    int64_t ns = mono_sub(now, a->stepped);

    a->stepped = now;
    if (!a->running && (a->stats.rounds == 0 || mono_sub(now, a->began) >= interval(sm))) {
        round_begins(sm);
        a->credit = 1;
    } else if (a->running) {
        a->credit += (int64_t)a->units * ((ns < STEP_MAX ? ns : STEP_MAX) / MONO_MS);
    }
    for (unsigned i = 0; i < AT_ONCE; i++) {
        struct one *o = &a->one[i];
        if (o->guid == 0 || !o->again || o->out > 0)
            continue;
        begin(sm, o, o->guid, o->units);
        pump(sm, o);
    }
    start_more(sm);
}

void sm_audit_stats(const struct sm *sm, struct sm_audit_stats *ret)
{
    *ret = sm->audit != NULL ? sm->audit->stats : (struct sm_audit_stats){0};
    ret->running = sm->audit != NULL && sm->audit->running;
}
