// SPDX-License-Identifier: Apache-2.0
// The phases that write: ports' settings, forwarding tables, link states.
//
//     configure  our own port first (everybody else is told its LID), then P_Keys and PortInfo of every
//                touched port that is connected; a port in INIT goes to ARMED with the same Set
//     tables     the plan's waves, from the destinations outward, then LinearFDBTop and LifeTimeValue: the
//                top rises after the blocks below it are there
//     links      switch-to-switch links ACTIVE, once both ends are ARMED
//     hosts      links of end nodes ACTIVE, last: routes both ways are there when a host wakes
//
// Read before write: nothing is Set that already has the wanted value, and a field that a device does not
// keep is remembered until the port resets.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define TAG_REREAD 0x80000000u
#define TAG_P_KEY 0x40000000u
#define TAG_LAST 0x20000000u // refused once already
#define TAG_NUM 0xffu

static bool included(const struct sm_port *p)
{
    return sm_port_up(p) && p->peer != DEV_NONE && p->excluded == PORT_INCLUDED;
}

static uint8_t port_state(const struct sm_port *p)
{
    return p->info[32] & 0x0f;
}

// What a port should have; false when it is none of our business (not connected, not known).
static bool want(const struct sm *sm, const struct sm_dev *d, unsigned num, struct mad_port_info *now,
                 uint32_t *ret_fields, struct mad_port_info *ret)
{
    const struct sm_port *p = &d->port[num];
    bool sw0 = dev_is_switch(d) && num == 0;
    struct mad_port_info peer;
    struct portcfg_in in = {
        .now = now, .lid = p->lid, .lmc = p->lmc, .sm_lid = sm->own_lid, .not_kept = p->not_kept};

    if (!p->known || (!sw0 && !included(p)))
        return false;
    if ((!dev_is_switch(d) || sw0) && p->lid == 0)
        return false;
    mad_port_info_decode(p->info, now);
    if (!dev_is_switch(d) || sw0)
        in.sm_sl = sm_lanes_master_sl(sm, d, num, now->master_sm_sl);
    if (sw0) {
        in.kind = d->si.enhanced_port0 ? PORTCFG_SWITCH0_ENHANCED : PORTCFG_SWITCH0;
    } else {
        const struct sm_dev *z = sm->dev[p->peer];
        const struct sm_port *zp = &z->port[p->peer_num];
        in.kind = dev_is_switch(d) ? PORTCFG_SWITCH_EXTERNAL : PORTCFG_END;
        in.router = d->ni.node_type == MAD_NODE_ROUTER;
        in.peer_is_switch = dev_is_switch(z);
        if (zp->known) {
            mad_port_info_decode(zp->info, &peer);
            in.peer = &peer;
        }
    }
    *ret_fields = portcfg_want(&in, &sm->o, ret);
    return true;
}

static void port_item(const struct sm_dev *d, unsigned num, uint8_t method, const struct mad_port_info *pi,
                      struct sm_item *it)
{
    it->tag = num;
    it->method = method;
    it->attr_id = MAD_ATTR_PORT_INFO;
    it->attr_mod = sm_port_info_mod(d, num);
    it->port = dev_is_switch(d) ? 0 : (uint8_t)num;
    it->has_data = pi != NULL;
    if (pi != NULL)
        mad_port_info_encode(pi, it->data);
}

static void read_again(struct sm *sm, struct sm_dev *d, unsigned num)
{
    if (dev_is_switch(d))
        sm_dirty_switch(sm, d, "set-failed");
    else
        sm_dirty_port(sm, d, num, "set-failed");
}

// Read again before it is asked again, and so is the far end: what it was believed to be may be why.
static void retry(struct sm *sm, struct sm_dev *d, unsigned num)
{
    const struct sm_port *p = &d->port[num];
    read_again(sm, d, num);
    if (num > 0 && p->peer != DEV_NONE)
        read_again(sm, sm->dev[p->peer], p->peer_num);
    if (num > 0 && dev_is_switch(d)) // perhaps somebody else is behind it now
        sm_dirty_probe(sm, d, num, "set-failed");
    else if (num > 0 && p->peer != DEV_NONE &&
             dev_is_switch(sm->dev[p->peer])) // or has answered in its place
        sm_dirty_probe(sm, sm->dev[p->peer], p->peer_num, "set-failed");
}

void sm_set_refused(struct sm *sm, struct sm_dev *d, unsigned num, uint8_t method, uint16_t attr,
                    const struct mad_result *r)
{
    char where[128], what[MAD_TEXT_SIZE], why[MAD_TEXT_SIZE];

    sm->set_failures++;
    if (attr == MAD_ATTR_PORT_INFO && d->port[num].fails < UINT8_MAX)
        d->port[num].fails++;
    retry(sm, d, num);
    sm_port_text(d, num, where, sizeof(where));
    mad_what_text(MAD_CLASS_SM_LID, method, attr, what);
    if (r->status != 0)
        snprintf(why, sizeof(why), "no answer");
    else if (r->mad_status == 0)
        snprintf(why, sizeof(why), "success, but it stays as it was");
    else
        mad_status_text(MAD_CLASS_SM_LID, r->mad_status, why);
    sm_note(sm, d->guid, FINDING_ERROR, "set-failed", where, "%s: %s; tried again with the next sweep", what,
            why);
}

// --- configure ---

static bool p_key_item(struct sm_dev *d, unsigned num, struct sm_item *it)
{
    const struct sm_port *p = &d->port[num];
    struct mad_p_key_table t;
    bool sw0 = dev_is_switch(d) && num == 0;

    if (p->pkey0 == NULL || (!sw0 && p->peer == DEV_NONE))
        return false;
    memcpy(t.p_key, p->pkey0, sizeof(t.p_key));
    t.p_key[0] = MAD_DEFAULT_P_KEY;
    *it = (struct sm_item){.tag = TAG_P_KEY | num,
                           .method = MAD_METHOD_SET,
                           .attr_id = MAD_ATTR_P_KEY_TABLE,
                           .attr_mod = 0,
                           .has_data = true};
    it->port = dev_is_switch(d) ? 0 : (uint8_t)num;
    mad_p_key_table_encode(&t, it->data);
    return true;
}

static bool config_item(struct sm *sm, struct sm_dev *d, unsigned num, struct sm_item *it)
{
    struct mad_port_info now, w;
    uint32_t fields;

    if (!want(sm, d, num, &now, &fields, &w))
        return false;
    bool sw0 = dev_is_switch(d) && num == 0;
    bool arm = now.port_state == MAD_PORT_INIT && (!sw0 || d->si.enhanced_port0);
    bool reregister = sm_sa_wants_reregister(sm, d, num);
    if (fields == 0 && !arm && !reregister)
        return false;
    w.client_reregister = d->port[num].reregister = reregister;
    if (arm) {
        w.port_state = MAD_PORT_ARMED;
        d->port[num].armed = (uint32_t)sm->sweep.id;
    }
    port_item(d, num, MAD_METHOD_SET, &w, it);
    return true;
}

// Positions: the ports' P_Keys first, then their PortInfo.
static bool config_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    uint32_t ports = d->ni.num_ports + 1u;

    while (*cursor < 2 * ports) {
        uint32_t c = (*cursor)++;
        unsigned num = c % ports;
        if (num == 0 && !dev_is_switch(d))
            continue;
        if (c < ports ? p_key_item(d, num, it) : config_item(p->sm, d, num, it))
            return true;
    }
    return false;
}

// A success that is none: without its LID or its state a port is of no use, so it is asked again next time.
static void ignored(struct sm *sm, struct sm_dev *d, unsigned num, const char *what)
{
    char where[128];
    sm->set_failures++;
    if (d->port[num].fails < UINT8_MAX)
        d->port[num].fails++;
    retry(sm, d, num);
    sm_note(sm, d->guid, FINDING_ERROR, "set-ignored", sm_port_text(d, num, where, sizeof(where)),
            "answers Set(PortInfo) with success but does not take %s; tried again with the next sweep", what);
}

// What the device says it has now; whether that is news tells useful sweeps from vain ones.
static void take_info(struct sm *sm, struct sm_port *p, const uint8_t *wire)
{
    sm->progress |= memcmp(p->info, wire, sizeof(p->info)) != 0;
    memcpy(p->info, wire, sizeof(p->info));
}

#define MUST_KEEP (PORTCFG_LID | PORTCFG_MASTER_SM_LID)

// Takes what the device says it has now; what was asked for and is not there is remembered as not kept.
static bool config_answer(struct sm *sm, struct sm_dev *d, unsigned num, const struct mad_result *r)
{
    struct sm_port *p = &d->port[num];
    struct mad_port_info now, w, answer;
    uint32_t asked;

    if (r->status != 0 || r->mad_status != 0 || !want(sm, d, num, &now, &asked, &w))
        return false;
    sm->sweep.port_sets++;
    if (p->reregister)
        sm_sa_reregistered(sm, d, num);
    p->reregister = false;
    mad_port_info_decode(r->data, &answer);
    uint32_t lost = portcfg_not_kept(asked, &w, &answer);
    bool armed = now.port_state == MAD_PORT_INIT && (num > 0 || d->si.enhanced_port0);
    if (lost & MUST_KEEP)
        ignored(sm, d, num, "its LID or the manager's");
    else if (armed && answer.port_state == MAD_PORT_INIT)
        ignored(sm, d, num, "the state ARMED");
    lost &= ~(uint32_t)MUST_KEEP;
    if (lost != 0) {
        p->not_kept |= lost;
        sm->not_kept_ports++;
        sm->not_kept_fields |= lost;
    }
    take_info(sm, p, r->data);
    return true;
}

static void ask_again(struct sm_pass *p, struct sm_dev *d, unsigned num)
{
    struct sm_item it = {0};
    port_item(d, num, MAD_METHOD_GET, NULL, &it);
    it.tag |= TAG_REREAD;
    sm_pass_send(p, d, &it);
}

// A refused Set is not always a failure: when the answer to its first try was lost, the second finds the port
// ARMED already. The port is read again and asked once more for what is still missing.
static void config_done(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    unsigned num = tag & TAG_NUM;
    bool ok = r->status == 0 && r->mad_status == 0;
    struct sm_item it = {0};

    if (tag & TAG_P_KEY) {
        if (ok) {
            p->sm->progress = true;
            free(d->port[num].pkey0);
            d->port[num].pkey0 = NULL;
        } else {
            sm_set_refused(p->sm, d, num, MAD_METHOD_SET, MAD_ATTR_P_KEY_TABLE, r);
        }
    } else if ((tag & TAG_REREAD) && ok) {
        memcpy(d->port[num].info, r->data, MAD_SMP_DATA_SIZE);
        if (config_item(p->sm, d, num, &it)) {
            it.tag |= TAG_LAST;
            sm_pass_send(p, d, &it);
        }
    } else if (ok) {
        config_answer(p->sm, d, num, r);
    } else if (r->status == 0 && !(tag & (TAG_REREAD | TAG_LAST))) {
        ask_again(p, d, num);
    } else {
        sm_set_refused(p->sm, d, num, MAD_METHOD_SET, MAD_ATTR_PORT_INFO, r);
    }
}

static void config_finished(struct sm_pass *p)
{
    p->sm->config_running = false;
    p->sm->config_done = true;
    sm_configured(p->sm);
}

static void own_set(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    config_answer(sm, sm->dev[user >> 32], (unsigned)(user & TAG_NUM),
                  r); // if it failed, the pass asks again
    sm_pass_start(&sm->pass_config, sm);
}

void sm_configure_start(struct sm *sm)
{
    struct sm_dev *own = sm->dev[sm->own_dev];
    unsigned num = dev_is_switch(own) ? 0 : sm->own.num;
    struct sm_item it = {0};

    sm_lanes_begin(sm);
    sm->config_running = true;
    sm->pass_config.touched_only = true;
    sm->pass_config.name = "configure";
    sm->pass_config.next = config_next;
    sm->pass_config.done = config_done;
    sm->pass_config.finished = config_finished;
    if (config_item(sm, own, num, &it))
        sm_request(sm, own, num, it.method, it.attr_id, it.attr_mod, it.data, own_set, NULL,
                   (uint64_t)own->index << 32 | num);
    else
        sm_pass_start(&sm->pass_config, sm);
}

// --- lanes ---

static bool lanes_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    return sm_lanes_next(p->sm, d, cursor, it);
}

static void lanes_finished(struct sm_pass *p)
{
    sm_laned(p->sm);
}

void sm_lanes_start(struct sm *sm)
{
    sm->pass_lanes.name = "lanes";
    sm->pass_lanes.next = lanes_next;
    sm->pass_lanes.touched_only = false;
    sm->pass_lanes.done = sm_lanes_answer;
    sm->pass_lanes.finished = lanes_finished;
    sm_pass_start(&sm->pass_lanes, sm);
}

// --- tables ---

static void table_again(struct sm_pass *p, struct sm_dev *d, uint32_t tag, struct sm_item *it)
{
    struct sm *sm = p->sm;
    const struct route_wave *w = &sm_route_plan(sm)->wave[sm->wave];
    uint16_t block = (uint16_t)tag;

    it->tag = block;
    it->method = MAD_METHOD_SET;
    it->attr_id = MAD_ATTR_LINEAR_FORWARDING_TABLE;
    it->attr_mod = block;
    it->has_data = true;
    memcpy(it->data, tables_row(w->tables, sm->next_fabric->node[d->node].sw) + (size_t)block * LFT_BLOCK,
           LFT_BLOCK);
}

static bool table_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    struct sm *sm = p->sm;
    if (!dev_is_switch(d) || d->node == ID_NONE || d->too_small)
        return false;
    const struct route_wave *w = &sm_route_plan(sm)->wave[sm->wave];
    uint32_t sw = sm->next_fabric->node[d->node].sw;
    uint32_t i = w->first[sw] + *cursor;
    if (i >= w->first[sw + 1])
        return false;
    (*cursor)++;
    table_again(p, d, w->block[w->of_switch[i]].block, it);
    return true;
}

static void table_done(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    (void)tag;
    p->sm->sweep.lft_blocks_set++;
    p->sm->sweep.reaction_ns = mono_sub(loop_now_precise(p->sm->loop), p->sm->cause_at);
    p->sm->tables_begun = true;
    d->lft_mixed = true; // also where only the answer was lost
    if (r->status == 0 && r->mad_status == 0) {
        p->sm->progress = true;
        return;
    }
    d->lft_failed = true;
    sm_set_refused(p->sm, d, 0, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE, r);
}

static bool top_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    struct sm *sm = p->sm;
    if (!dev_is_switch(d) || !d->have_si || d->node == ID_NONE || d->too_small || (*cursor)++ > 0)
        return false;
    struct mad_switch_info si = d->si;
    bool rise =
        si.linear_fdb_top < sm->next_tables->top_lid; // never lowered: what stands above is nobody's LID
    uint16_t mcast_top = sm_mcast_top(sm, d);
    bool mcast = mcast_top != 0 && si.multicast_fdb_top != mcast_top;
    if (!rise && !mcast && si.life_time_value == sm->o.packet_life)
        return false;
    if (mcast)
        si.multicast_fdb_top = mcast_top;
    if (rise)
        si.linear_fdb_top = sm->next_tables->top_lid;
    si.life_time_value = sm->o.packet_life;
    si.port_state_change = false; // 1 would clear what nobody has read
    it->method = MAD_METHOD_SET;
    it->attr_id = MAD_ATTR_SWITCH_INFO;
    it->has_data = true;
    memset(it->data, 0, sizeof(it->data));
    mad_switch_info_encode(&si, it->data);
    return true;
}

static void top_done(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    (void)tag;
    if (r->status != 0 || r->mad_status != 0) {
        sm_set_refused(p->sm, d, 0, MAD_METHOD_SET, MAD_ATTR_SWITCH_INFO, r);
        return;
    }
    bool change = d->si.port_state_change;
    uint16_t top = d->si.linear_fdb_top;
    mad_switch_info_decode(r->data, &d->si);
    p->sm->progress |= d->si.linear_fdb_top != top;
    if (d->si.linear_fdb_top < p->sm->next_tables->top_lid) {
        char where[128];
        p->sm->set_failures++;
        retry(p->sm, d, 0);
        sm_note(p->sm, d->guid, FINDING_ERROR, "set-ignored", sm_port_text(d, 0, where, sizeof(where)),
                "answers Set(SwitchInfo) with success but LinearFDBTop stays %u; it drops what goes to "
                "higher LIDs",
                d->si.linear_fdb_top);
    }
    d->si.port_state_change = change;
}

static void top_finished(struct sm_pass *p)
{
    struct sm *sm = p->sm;
    for (uint32_t i = 0; i < sm->num_dev; i++)
        if (dev_here(sm, sm->dev[i]) && dev_is_switch(sm->dev[i])) {
            struct sm_dev *d = sm->dev[i];
            bool shadow = !d->lft_failed && d->have_si && !d->too_small && d->node != ID_NONE;
            d->lft_mixed = false;
            d->lft = shadow ? DEV_LFT_SHADOW : DEV_LFT_UNKNOWN;
        }
    sm->tables_done = true;
    sm_tabled(sm);
}

bool sm_tables_failed(struct sm *sm, const char *what)
{
    struct err e;
    char where[128] = "?", more[40] = "";
    unsigned n = 0;

    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (!d->lft_failed)
            continue;
        if (n++ == 0)
            sm_port_text(d, 0, where, sizeof(where));
        sm_dirty_switch(sm, d, "unfinished");
    }
    if (n == 0)
        return false;
    if (n > 1)
        snprintf(more, sizeof(more), " (and %u more)", n - 1);
    err_set(&e, sm->sweep.full ? -EIO : -EAGAIN, "tables", "%s%s %s; sweeping again", where, more, what);
    sm_sweep_failed(sm, &e);
    return true;
}

static void wave_start(struct sm *sm);
static void wave_finished(struct sm_pass *p)
{
    struct sm *sm = p->sm;
    // Each wave is proved safe over the ones before: if a switch did not take its part, the sweep ends here.
    if (sm->wave + 1 < sm_route_plan(sm)->num_waves &&
        sm_tables_failed(sm, "did not take the entries that had to go first; the rest was not written"))
        return;
    sm->wave++;
    wave_start(sm);
}

static void wave_start(struct sm *sm)
{
    const struct route_plan *plan = sm_route_plan(sm);
    if (plan != NULL && sm->wave < plan->num_waves) {
        sm->pass_tables.name = "tables";
        sm->pass_tables.next = table_next;
        sm->pass_tables.again = table_again;
        sm->pass_tables.done = table_done;
        sm->pass_tables.finished = wave_finished;
        sm_pass_start(&sm->pass_tables, sm);
        return;
    }
    sm->pass_top.name = "top";
    sm->pass_top.next = top_next;
    sm->pass_top.done = top_done;
    sm->pass_top.finished = top_finished;
    sm_pass_start(&sm->pass_top, sm);
}

void sm_tables_start(struct sm *sm)
{
    sm->wave = 0;
    for (uint32_t i = 0; i < sm->num_dev; i++)
        sm->dev[i]->lft_failed = false;
    sm->tables_done = false;
    if (!sm_adaptive_quiet(sm))
        wave_start(sm);
}

void sm_tables_go(struct sm *sm)
{
    wave_start(sm);
}

// --- link states ---

static bool is_host_link(const struct sm *sm, const struct sm_dev *d, const struct sm_port *p)
{
    return !dev_is_switch(d) || !dev_is_switch(sm->dev[p->peer]);
}

static bool activate_item(struct sm *sm, struct sm_dev *d, unsigned num, bool hosts, struct sm_item *it)
{
    const struct sm_port *p = &d->port[num];
    struct mad_port_info now, w;
    uint32_t fields;

    if (num == 0) { // an enhanced port 0 has a state of its own
        if (!hosts || !d->si.enhanced_port0 || !p->known || port_state(p) != MAD_PORT_ARMED)
            return false;
    } else if (!included(p) || is_host_link(sm, d, p) != hosts || port_state(p) != MAD_PORT_ARMED ||
               port_state(&sm->dev[p->peer]->port[p->peer_num]) < MAD_PORT_ARMED) {
        return false;
    }
    if (!want(sm, d, num, &now, &fields, &w))
        return false;
    w.port_state = MAD_PORT_ACTIVE;
    port_item(d, num, MAD_METHOD_SET, &w, it);
    return true;
}

static bool activate_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, bool hosts,
                          struct sm_item *it)
{
    while (*cursor <= d->ni.num_ports) {
        unsigned num = (*cursor)++;
        if ((num > 0 || dev_is_switch(d)) && activate_item(p->sm, d, num, hosts, it))
            return true;
    }
    return false;
}

static bool links_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    return activate_next(p, d, cursor, false, it);
}

static bool hosts_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    return activate_next(p, d, cursor, true, it);
}

// A refusal may mean that the first packet from the far end has made the port ACTIVE already: look.
static void activate_done(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    unsigned num = tag & TAG_NUM;
    bool ok = r->status == 0 && r->mad_status == 0;

    if (ok)
        take_info(p->sm, &d->port[num], r->data);
    if (!(tag & TAG_REREAD)) {
        p->sm->sweep.port_sets++;
        if (r->status == 0 && r->mad_status != 0) {
            ask_again(p, d, num);
            return;
        }
    }
    if (!ok || port_state(&d->port[num]) != MAD_PORT_ACTIVE) {
        sm_set_refused(p->sm, d, num, MAD_METHOD_SET, MAD_ATTR_PORT_INFO, r);
        return;
    }
    if (d->port[num].fails >= PORT_STUCK) // routes may use it now
        sm_dirty_port(p->sm, d, num, "port-recovered");
    d->port[num].fails = 0;
}

static bool other_level(const struct sm *sm, const struct sm_dev *d, unsigned num)
{
    const struct sm_port *p = &d->port[num];
    uint8_t now = p->info[36] & 0x0f; // MasterSMSL: bits 292-295
    return (num > 0 || dev_is_switch(d)) && p->known && !(p->not_kept & PORTCFG_MASTER_SM_SL) &&
           sm_lanes_master_sl(sm, d, num, now) != now;
}

static bool level_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    unsigned last = dev_is_switch(d) ? 0 : d->ni.num_ports;
    while (*cursor <= last) {
        unsigned num = (*cursor)++;
        if (other_level(p->sm, d, num) && config_item(p->sm, d, num, it))
            return true;
    }
    return false;
}

static void level_finished(struct sm_pass *p)
{
    sm_adaptive_start(p->sm);
}

// Who wakes now was told his level to the manager with that. The others are, once the tables are in force.
static void hosts_finished(struct sm_pass *p)
{
    struct sm *sm = p->sm;
    if (sm->tables->lanes == NULL && !sm->levels_moved) {
        sm_adaptive_start(sm);
        return;
    }
    sm->pass_lanes.name = "levels";
    sm->pass_lanes.touched_only = !sm->levels_moved;
    sm->pass_lanes.next = level_next;
    sm->pass_lanes.done = config_done;
    sm->pass_lanes.finished = level_finished;
    sm_pass_start(&sm->pass_lanes, sm);
}

static void links_finished(struct sm_pass *p)
{
    struct sm *sm = p->sm;
    sm_publish(sm);
    sm_phase(sm, "hosts");
    sm->pass_hosts.touched_only = true;
    sm->pass_hosts.name = "hosts";
    sm->pass_hosts.next = hosts_next;
    sm->pass_hosts.done = activate_done;
    sm->pass_hosts.finished = hosts_finished;
    sm_pass_start(&sm->pass_hosts, sm);
}

void sm_links_start(struct sm *sm)
{
    sm->pass_links.touched_only = true;
    sm->pass_links.name = "links";
    sm->pass_links.next = links_next;
    sm->pass_links.done = activate_done;
    sm->pass_links.finished = links_finished;
    sm_pass_start(&sm->pass_links, sm);
}
