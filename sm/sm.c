// SPDX-License-Identifier: Apache-2.0
// Life cycle of the manager, the order of a sweep's phases, and what callers ask.
//
//     sweep_begin ── discover ── lids ── record ──┬── configure ───────────┐
//                                                 └── route ── tables ─────┴── links ── hosts ── sweep_end
//
// Tables with virtual lanes wait for both, and phase "lanes" comes before them.
//
// A sweep always runs to its end or to a failure; what asks for another one meanwhile is remembered. Every
// outstanding request has a bounded life in the engine, so that no sweep hangs.
#include "sm/sm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/drain_priv.h"
#include "sm/sm_priv.h"

const char *sm_state_name(enum sm_state s)
{
    static const char *const name[] = {"not-active", "discovering", "standby", "master"};
    return (unsigned)s < 4 ? name[s] : "?";
}

void sm_opts_default(struct sm_opts *o)
{
    *o = (struct sm_opts){
        .fabric = "default",
        .engine = ROUTE_AUTO,
        .priority = 8,
        .sm_key = 1,
        .subnet_prefix = MAD_DEFAULT_GID_PREFIX,
        .subnet_timeout = 18,
        .packet_life = 18,
        .hoq_life_switch = 18,
        .hoq_life_host = 16,
        .vl_stall_count = 7,
        .max_vls = 5,
        .phy_errors = 8,
        .overrun_errors = 8,
        .sweep_interval_ns = MONO_S,
        .audit_interval_ns = 600 * MONO_S,
        .adopt = true,
    };
}

void sm_event(struct sm *sm, const char *kind, const char *severity, const char *subject, const char *fmt,
              ...)
{
    char text[500], where[300], what[1000];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    log_quote(subject, where, sizeof(where));
    log_quote(text, what, sizeof(what));
    if (strcmp(severity, "error") == 0)
        log_error(kind, "fabric=%s subject=\"%s\" text=\"%s\"", sm->o.fabric, where, what);
    else if (strcmp(severity, "warning") == 0)
        log_warning(kind, "fabric=%s subject=\"%s\" text=\"%s\"", sm->o.fabric, where, what);
    else
        log_notice(kind, "fabric=%s subject=\"%s\" text=\"%s\"", sm->o.fabric, where, what);
    if (sm->cb.event != NULL)
        sm->cb.event(sm->cb.arg, &(struct sm_event){
                                     .kind = kind, .severity = severity, .subject = subject, .text = text});
}

void sm_text(char *to, size_t size, const char *from)
{
    size_t n = 0;
    for (; from != NULL && *from != 0 && n + 1 < size; from++)
        to[n++] = (unsigned char)*from < 0x20 || *from == 0x7f ? ' ' : *from;
    while (n > 0 && ((unsigned char)to[n - 1] & 0xc0) == 0x80 && from != NULL && *from != 0)
        n--; // not half a character
    if (n > 0 && (unsigned char)to[n - 1] >= 0xc0)
        n--;
    to[n] = 0;
}

// --- phases ---

static void phase_end(struct sm *sm)
{
    struct mad_engine_stats st;
    struct sm_sweep *s = &sm->sweep;

    if (s->num_phases == 0)
        return;
    mad_engine_stats(sm->engine, &st);
    s->phase[s->num_phases - 1].ns = mono_sub(loop_now_precise(sm->loop), sm->phase_began);
    s->phase[s->num_phases - 1].mads = st.sent - sm->phase_mads;
}

void sm_phase(struct sm *sm, const char *name)
{
    struct mad_engine_stats st;
    struct sm_sweep *s = &sm->sweep;

    phase_end(sm);
    if (s->num_phases == SM_PHASES_MAX)
        return;
    mad_engine_stats(sm->engine, &st);
    sm->phase_began = loop_now_precise(sm->loop);
    sm->phase_mads = st.sent;
    s->phase[s->num_phases++] = (struct sm_phase_time){.name = name};
}

static void own_port_down(struct sm *sm)
{
    struct err e;
    err_set(&e, -ENETDOWN, sm->transport->name,
            "the local port is down: no cable, or the far end is off; watching it");
    sm_sweep_failed(sm, &e);
}

static void sweep_begin(struct sm *sm, const char *cause, bool full)
{
    struct err e;
    int rc;

    sm_route_job_free(sm);
    tables_unref(sm->next_tables); // of a sweep that failed
    sm->next_tables = NULL;
    findings_done(&sm->findings_new);
    memset(&sm->findings_new, 0, sizeof(sm->findings_new));
    sm->sweep =
        (struct sm_sweep){.id = sm->num_sweeps + 1, .cause = cause, .wall_ns = wall_now_ns(), .full = full};
    sm->sweep_began = loop_now_precise(sm->loop);
    mad_engine_stats(sm->engine, &sm->mads_before);
    sm->sweeping = true;
    sm->cause_at = full || !sm->dirty_asked ? sm->sweep_began : sm->dirty_since;
    sm->reroute_now = full && sm->reroute;
    if (full) {
        sm->resweep = sm->reroute = false;
        sm->resweep_due.ns = 0;
        sm->duplicates_before = sm->duplicates;
        sm->duplicates = 0;
    }
    sm->failures_before = sm->set_failures;
    sm->set_failures = sm->not_kept_ports = sm->not_kept_fields = 0;
    sm->config_done = sm->tables_done = sm->lanes_wait = sm->progress = sm->model_whole = false;
    sm->failed.code = 0;
    sm_phase(sm, "discover");
    rc = sm->transport->ops->port(sm->transport, &sm->own);
    sm_election_begin(sm, full);
    if (rc == 0 && sm->own.state < MAD_PORT_INIT) {
        own_port_down(sm);
    } else if (rc != 0) {
        err_set(&e, rc, sm->transport->name, "the local port cannot be read (%s)", strerror(-rc));
        sm_sweep_failed(sm, &e);
    } else if (full) {
        sm_discover_start(sm);
    } else {
        sm_partial_start(sm);
    }
}

static bool only_we(const struct sm *sm)
{
    for (uint32_t i = 0; i < sm->num_dev; i++)
        if (sm->dev[i]->here && i != sm->own_dev)
            return false;
    return true;
}

void sm_discovered(struct sm *sm)
{
    struct err e;
    const struct sm_dev *own = sm->dev[sm->own_dev];
    const struct sm_port *p = &own->port[dev_is_switch(own) ? 0 : sm->own.num];
    if (!dev_is_switch(own) && p->known && !sm_port_up(p)) { // the kernel's view may be older than the port's
        own_port_down(sm);
        return;
    }
    if (sm->fabric != NULL && sm->fabric->num_nodes > 1 && sm->sweep.full && only_we(sm)) {
        err_set(&e, -EHOSTUNREACH, sm->transport->name,
                "the local port is up and nobody answers behind it: is the switch's agent dead, or its M_Key "
                "set? The fabric is left as it was");
        sm_sweep_failed(sm, &e);
        return;
    }
    switch (sm_election_settle(sm)) {
    case ELECTION_WAIT: // for another manager; called again
        break;
    case ELECTION_STAND_BY:
        sm_election_error(sm, &e);
        sm_sweep_failed(sm, &e);
        break;
    case ELECTION_PROCEED:
        sm_lids_assign(sm);
        break;
    }
}

void sm_lids_recorded(struct sm *sm)
{
    const struct sm_dev *own = sm->dev[sm->own_dev];
    const struct sm_port *p = &own->port[dev_is_switch(own) ? 0 : sm->own.num];
    if (sm->own_lid == 0 || !p->known) {
        struct err e;
        err_set(&e, -EPROTO, sm->transport->name,
                p->known ? "no LID is left for our own port"
                         : "the local port does not answer PortInfo; another M_Key may protect it");
        sm_sweep_failed(sm, &e);
        return;
    }
    sm_touch_far_ends(sm);
    fabric_unref(sm->next_fabric);
    sm->next_fabric = sm_model_build(sm, sm->fabric, &sm->findings_new);
    sm_route_start(sm);
    sm_configure_start(sm);
}

// Lanes are there before anything is routed by them; ports are ARMED before they are told of their level.
static void lanes_begin(struct sm *sm)
{
    sm->lanes_wait = false;
    sm_phase(sm, "lanes");
    sm_lanes_start(sm);
}

void sm_routed(struct sm *sm)
{
    if (!sm_lanes_needed(sm))
        sm_laned(sm);
    else if (sm->config_done)
        lanes_begin(sm);
    else
        sm->lanes_wait = true;
}

void sm_laned(struct sm *sm)
{
    sm_phase(sm, "tables");
    sm_tables_start(sm);
}

static void join_phases(struct sm *sm)
{
    if (!sm->config_done || !sm->tables_done || !sm->sweeping)
        return;
    sm_phase(sm, "links");
    sm_links_start(sm);
}

void sm_configured(struct sm *sm)
{
    if (sm->failed.code != 0)
        sm_sweep_failed(sm, &sm->failed);
    else if (sm->lanes_wait)
        lanes_begin(sm);
    else
        join_phases(sm);
}

void sm_tabled(struct sm *sm)
{
    if (!sm->config_done)
        sm_phase(sm, "configure");
    join_phases(sm);
}

// --- the end of a sweep ---

static void sweep_end(struct sm *sm, bool ok)
{
    struct sm_sweep *s = &sm->sweep;
    struct mad_engine_stats st;

    phase_end(sm);
    mad_engine_stats(sm->engine, &st);
    s->ok = ok;
    s->ns = mono_sub(loop_now_precise(sm->loop), sm->sweep_began);
    s->mads = st.sent - sm->mads_before.sent;
    s->retries = st.retries - sm->mads_before.retries;
    s->timeouts = st.timeouts - sm->mads_before.timeouts;
    s->devices = sm->touched.n;
    for (uint32_t i = 0; i < sm->num_dev; i++)
        if (sm->dev[i]->here)
            sm->dev[i]->seen = s->id;
    sm->history[sm->num_sweeps % SM_HISTORY] = *s;
    sm->num_sweeps++;
    sm->sweeping = false;
    sm_model_findings(sm);
    sm_notes_find(sm);
    sm_adaptive_find(sm);
    sm_drains_find(sm, &sm->findings_new);
    sm_watch_swept(sm);
    findings_done(&sm->findings);
    sm->findings = sm->findings_new;
    memset(&sm->findings_new, 0, sizeof(sm->findings_new));
    loop_doing(sm->loop, "snapshot");
    if (sm->cb.snapshot != NULL)
        sm->cb.snapshot(sm->cb.arg);
    if (sm->cb.sweep != NULL)
        sm->cb.sweep(sm->cb.arg, &sm->history[(sm->num_sweeps - 1) % SM_HISTORY]);
    sm_watch_arm(sm);
}

static void tell_failed(struct sm *sm, const struct err *e)
{
    sm_event(sm, "sweep-failed", "error", e->where, "%s", e->text);
    sm->failed_told = true;
}

void sm_sweep_failed(struct sm *sm, const struct err *e)
{
    if (!sm->sweeping)
        return;
    if (sm->config_running) { // ends when what is on the wire has been answered
        sm->failed = *e;
        return;
    }
    bool repeated = sm->error.code == e->code && strcmp(sm->error.text, e->text) == 0;
    sm->error = *e;
    sm->unfinished = e->code == -EAGAIN ? sm->unfinished + 1 : 0;
    sm->explained = sm->progress && sm->dirty_asked && sm_cause(sm->dirty_cause)->news;
    if (e->code == -ENETDOWN || (sm->state == SM_DISCOVERING && e->code != -EBUSY))
        sm->up = false;
    snprintf(sm->sweep.text, sizeof(sm->sweep.text), "%s", e->text);
    if (e->code != -EBUSY && (sm->unfinished == 0 ? !repeated : sm->unfinished == UNFINISHED_MAX))
        tell_failed(sm, e);
    sweep_end(sm, false);
}

// Where it happened: the first end of a link, or the node; from whichever generation has it.
static const char *change_subject(const struct change *c, const struct fabric *old, const struct fabric *now,
                                  char *buf, size_t size)
{
    const struct fabric *f = fabric_by_guid(now, c->guid_a) != NULL ? now : old;
    const struct node *n = fabric_by_guid(f, c->guid_a);
    buf[0] = 0;
    if (n == NULL)
        return buf;
    if (c->kind == CHANGE_LINK_ADDED || c->kind == CHANGE_LINK_REMOVED || c->kind == CHANGE_LINK_RATE)
        return fabric_port_name(f, fabric_port_at(f, n, c->port_a), buf, size);
    snprintf(buf, size, "%s", fabric_desc(f, n));
    return buf;
}

// A node that comes or goes takes its links along: that is one event, not one a link.
static bool worth_telling(const struct change *c, const struct fabric *old, const struct fabric *now)
{
    const struct fabric *other = c->kind == CHANGE_LINK_ADDED ? old : now;
    if (c->kind == CHANGE_LINK_ADDED || c->kind == CHANGE_LINK_REMOVED)
        return fabric_by_guid(other, c->guid_a) != NULL && fabric_by_guid(other, c->guid_z) != NULL;
    return c->kind < CHANGE_LINK_ADDED || c->kind == CHANGE_LINK_RATE;
}

// What is drained goes down because somebody swaps it: no surprise, and no cause for an alarm.
static const char *drained_kind(const struct sm *sm, const struct change *c)
{
    switch (c->kind) {
    case CHANGE_LINK_ADDED:
    case CHANGE_LINK_REMOVED:
        if (!sm_drains_cover(sm, c->guid_a, c->port_a, c->guid_z, c->port_z))
            return NULL;
        return c->kind == CHANGE_LINK_ADDED ? "drained-link-up" : "drained-link-down";
    case CHANGE_NODE_ADDED:
    case CHANGE_NODE_REMOVED:
        if (!sm_drains_cover_switch(sm, c->guid_a))
            return NULL;
        return c->kind == CHANGE_NODE_ADDED ? "drained-node-up" : "drained-node-down";
    case CHANGE_NODE_DESC:
    case CHANGE_NODE_RESET:
    case CHANGE_LINK_RATE:
    case CHANGE_PORT_STATE:
    case CHANGE_LID:
        break;
    }
    return NULL;
}

// Switches that come and go are told first: hosts do with them.
static bool is_of_switch(const struct change *c, const struct fabric *old, const struct fabric *now)
{
    const struct node *n = fabric_by_guid(c->kind == CHANGE_NODE_REMOVED ? old : now, c->guid_a);
    return c->kind < CHANGE_LINK_ADDED && n != NULL && n->type == NODE_SWITCH;
}

static void tell_changes(struct sm *sm, const struct fabric *old, const struct fabric *now)
{
    struct fabric_diff *d = diff_make(old, now);
    char text[300], subject[200];

    sm->sweep.nodes_added = d->count[CHANGE_NODE_ADDED];
    sm->sweep.nodes_removed = d->count[CHANGE_NODE_REMOVED];
    sm->sweep.links_added = d->count[CHANGE_LINK_ADDED];
    sm->sweep.links_removed = d->count[CHANGE_LINK_REMOVED];
    size_t told = 0;
    for (size_t i = 0; i < 2 * d->n && old != NULL; i++) {
        const struct change *c = &d->item[i % d->n];
        if (is_of_switch(c, old, now) != (i < d->n) || !worth_telling(c, old, now) || told++ >= 20)
            continue;
        change_text(c, old, now, text, sizeof(text));
        const char *drained = drained_kind(sm, c);
        bool bad = c->kind == CHANGE_LINK_REMOVED || c->kind == CHANGE_NODE_REMOVED;
        sm_event(sm, drained != NULL ? drained : change_kind_name(c->kind),
                 bad && drained == NULL ? "warning" : "notice",
                 change_subject(c, old, now, subject, sizeof(subject)), "%s%s", drained ? "drained: " : "",
                 text);
    }
    if (told > 20)
        sm_event(sm, "changes", "notice", "", "%zu more changes of nodes and links", told - 20);
    diff_free(d);
}

static void tell_not_kept(struct sm *sm)
{
    char names[200];
    if (sm->not_kept_ports > 0)
        sm_event(
            sm, "settings-not-kept", "notice", "",
            "%u ports answer Set(PortInfo) with success but do not keep %s; not asked again until they reset",
            sm->not_kept_ports, portcfg_names(sm->not_kept_fields, names, sizeof(names)));
}

// Before hosts wake: they ask at once, so the tables are in force and the SA answers from here on.
void sm_publish(struct sm *sm)
{
    sm_lanes_publish(sm);
    sm_route_adopt_result(sm);
    tables_unref(sm->tables);
    sm->tables = sm->next_tables;
    sm->next_tables = NULL;
    tables_seal(sm->tables, false);
    fabric_unref(sm->last_fabric);
    sm->last_fabric = sm->fabric;
    sm->fabric = fabric_ref(sm->next_fabric);
    sm->generation++;
    sm_mcast_fabric_changed(sm);
}

bool sm_link_idle(const struct sm *sm, const struct sm_dev *d, unsigned num)
{
    const struct sm_port *p = &d->port[num];
    const struct sm_port *z = p->peer != DEV_NONE ? &sm->dev[p->peer]->port[p->peer_num] : NULL;
    if (z == NULL || !sm_port_up(p) || !z->known || p->excluded != PORT_INCLUDED ||
        (p->info[32] & 0x0f) == MAD_PORT_ACTIVE)
        return false;
    return (dev_is_switch(d) || p->lid != 0) && (dev_is_switch(sm->dev[p->peer]) || z->lid != 0);
}

void sm_look_at_link(struct sm *sm, struct sm_dev *d, unsigned num)
{
    struct sm_port *p = &d->port[num];
    if (p->idle < UINT8_MAX)
        p->idle++;
    sm_dirty_port(sm, d, num, "not-active");
    sm_dirty_port(sm, sm->dev[p->peer], p->peer_num, "not-active");
}

// A link that the sweep has worked on and that is not ACTIVE in the end is looked at again at once; the light
// sweep does so later.
static void look_at_idle_links(struct sm *sm)
{
    for (uint32_t i = 0; i < sm->touched.n; i++) {
        struct sm_dev *d = sm->dev[sm->touched.index[i]];
        for (unsigned num = 1; d->here && num <= d->ni.num_ports; num++)
            if (d->port[num].idle == 0 && sm_link_idle(sm, d, num))
                sm_look_at_link(sm, d, num);
    }
}

#define DUPLICATES_VAIN 8

// A cable that moved during the sweep looks like a second device: look again, and once at everything when
// looking at the two places again and again brings nothing.
static void look_at_duplicates(struct sm *sm)
{
    const struct sm_sweep *s = &sm->sweep;
    bool vain = !s->full && strcmp(s->cause, "duplicate-guid") == 0;
    if (s->nodes_added + s->nodes_removed + s->links_added + s->links_removed > 0)
        sm->duplicates_vain = 0;
    else if (vain && sm->duplicates_vain <= DUPLICATES_VAIN)
        sm->duplicates_vain++;
    if (s->full ? sm->duplicates > sm->duplicates_before : vain && sm->duplicates_vain == DUPLICATES_VAIN)
        sm_resweep(sm, "duplicate-guid", false);
}

void sm_program_done(struct sm *sm)
{
    // States as they are after programming; same nodes, same order.
    findings_done(&sm->findings_new);
    memset(&sm->findings_new, 0, sizeof(sm->findings_new));
    loop_doing(sm->loop, "model");
    const struct fabric *now = sm_model_build(sm, sm->next_fabric, &sm->findings_new);
    loop_doing(sm->loop, "changes");
    const struct fabric *old = sm->last_fabric;
    bool first = old == NULL;

    sm->last_fabric = NULL;
    sm->unrouted = !sm_same_routes(sm->next_fabric, now);
    fabric_unref(sm->fabric);
    sm->fabric = now;
    sm->generation++;
    fabric_unref(sm->next_fabric);
    sm->next_fabric = NULL;
    sm->up = true;
    sm->unfinished = 0;
    sm->error.code = 0;
    tell_changes(sm, old, now);
    tell_not_kept(sm);
    look_at_idle_links(sm);
    snprintf(sm->sweep.text, sizeof(sm->sweep.text),
             "%u nodes, %u switches, %u links; %s; %llu table blocks and %llu port settings written%s",
             now->num_nodes, now->num_switches, now->num_links, sm->tables->engine,
             (unsigned long long)sm->sweep.lft_blocks_set, (unsigned long long)sm->sweep.port_sets,
             sm->set_failures ? "; some Sets failed" : "");
    if (first)
        sm_event(sm, "fabric-up", "notice", "", "%s", sm->sweep.text);
    else if (sm->failed_told)
        sm_event(sm, "sweep-recovered", "notice", "", "all is read and written again: %s", sm->sweep.text);
    sm->failed_told = false;
    look_at_duplicates(sm);
    sm_mcast_fabric_changed(sm);
    sm_route_job_free(sm);
    fabric_unref(old);
    sweep_end(sm, true);
}

// --- callers ---

struct sm *sm_new(struct loop *l, struct mad_engine *e, struct transport *t, struct pool *pool, struct db *db,
                  const struct sm_opts *o, const struct sm_callbacks *cb)
{
    struct sm *sm = xcalloc(1, sizeof(*sm));
    sm->loop = l;
    sm->engine = e;
    sm->transport = t;
    sm->pool = pool;
    sm->db = db;
    sm->o = *o;
    if (cb != NULL)
        sm->cb = *cb;
    sm->state = SM_NOT_ACTIVE;
    sm->own_dev = DEV_NONE;
    sm_disc_reset(sm);
    u64map_init(&sm->by_guid, NULL, 64);
    sm_lids_load(sm);
    sm_lanes_load(sm);
    sm_blueprint_load(sm);
    sm_drains_load(sm);
    sm_adaptive_init(sm);
    sm_watch_init(sm);
    sm_election_init(sm);
    sm_sa_init(sm);
    return sm;
}

void sm_free(struct sm *sm)
{
    if (sm == NULL)
        return;
    sm_watch_done(sm);
    sm_election_done(sm);
    sm_sa_done(sm);
    sm_trap_done(sm);
    sm_audit_done(sm);
    if (sm->db != NULL)
        db_cancel(sm->db, sm);
    if (sm->disc.finishing)
        loop_unpost(sm->loop, &sm->disc.task);
    sm_partial_done(sm);
    sm_passes_done(sm);
    sm_route_job_free(sm);
    sm_blueprint_free(sm);
    sm_drains_free(sm);
    sm_adaptive_done(sm);
    for (uint32_t i = 0; i < sm->num_dev; i++)
        sm_dev_free(sm->dev[i]);
    free(sm->dev);
    free(sm->dirty.index);
    free(sm->touched.index);
    sm_notes_drop_all(sm);
    sm_reads_free(sm);
    fabric_unref(sm->fabric);
    fabric_unref(sm->next_fabric);
    fabric_unref(sm->last_fabric);
    tables_unref(sm->tables);
    tables_unref(sm->next_tables);
    route_proof_state_free(sm->proof_state);
    findings_done(&sm->findings);
    findings_done(&sm->findings_new);
    free(sm->lanes_db.text);
    u64map_done(&sm->by_guid);
    u64map_done(&sm->lid_of);
    free(sm);
}

void sm_start(struct sm *sm)
{
    sm_resweep(sm, "start", false);
}

void sm_resweep(struct sm *sm, const char *cause, bool reroute)
{
    sm->reroute |= reroute;
    if (reroute && sm->blueprint.ask.op == SM_BLUEPRINT_NONE)
        sm->blueprint.ask.op = SM_BLUEPRINT_REROUTE;
    if (sm->resweep && sm_cause(cause)->urgency <= sm_cause(sm->resweep_cause)->urgency)
        return; // under way already: asking again may not put it off
    sm->resweep_cause = cause;
    sm->resweep = true;
    sm->resweep_due.ns = 0;
    if (!sm->sweeping)
        sm_watch_arm(sm);
}

// From the next sweep on: answers of a running one are judged by what was asked.
void sm_reconfigure(struct sm *sm, const struct sm_opts *o)
{
    sm->next_o = *o;
    sm->reconfigured = true;
    sm_resweep(sm, "operator", false);
}

static void take_settings(struct sm *sm)
{
    const struct sm_opts *o = &sm->next_o;
    if (!sm->reconfigured)
        return;
    sm->reconfigured = false;
    sm->o.subnet_prefix = o->subnet_prefix;
    sm->o.subnet_timeout = o->subnet_timeout;
    sm->o.packet_life = o->packet_life;
    sm->o.hoq_life_switch = o->hoq_life_switch;
    sm->o.hoq_life_host = o->hoq_life_host;
    sm->o.vl_stall_count = o->vl_stall_count;
    sm->o.max_vls = o->max_vls;
    sm->o.phy_errors = o->phy_errors;
    sm->o.overrun_errors = o->overrun_errors;
}

void sm_sweep_begin_asked(struct sm *sm)
{
    take_settings(sm);
    sweep_begin(sm, sm->resweep_cause, true);
}

void sm_sweep_begin_partial(struct sm *sm)
{
    sweep_begin(sm, sm->dirty_cause, false);
}

void sm_get_status(const struct sm *sm, struct sm_status *ret)
{
    *ret = (struct sm_status){
        .state = sm->state,
        .up = sm->up,
        .sweeping = sm->sweeping,
        .phase =
            sm->sweeping && sm->sweep.num_phases > 0 ? sm->sweep.phase[sm->sweep.num_phases - 1].name : "",
        .sweeps = sm->num_sweeps,
        .light_sweeps = sm->num_light,
        .lid = sm->own_lid,
        .port_guid = sm->own.port_guid,
        .priority = sm->o.priority,
        .route = sm->route,
        .proof = sm->proof,
        .exceptions = sm->light.exceptions,
        .db_status = sm->db_status,
        .error = sm->error,
    };
    if (sm->state == SM_STANDBY) {
        ret->other.guid = sm->master.guid;
        ret->other.lid = sm->master_lid;
        ret->other.priority = sm->master.priority;
        ret->other.state = sm->master.sm_state;
    }
}

const struct fabric *sm_fabric(const struct sm *sm)
{
    return sm->fabric;
}

const struct fabric_tables *sm_tables(const struct sm *sm)
{
    return sm->tables;
}

const struct findings *sm_findings(const struct sm *sm)
{
    return &sm->findings;
}

const struct sm_sweep *sm_history(const struct sm *sm, unsigned i)
{
    if (i >= SM_HISTORY || i >= sm->num_sweeps)
        return NULL;
    return &sm->history[(sm->num_sweeps - 1 - i) % SM_HISTORY];
}
