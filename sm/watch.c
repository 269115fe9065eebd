// SPDX-License-Identifier: Apache-2.0
// Between sweeps: the light sweep and its standing list, and the timer for what comes next. What others send
// unasked comes in here and goes to trap.c and sminfo.c.
//
// A light sweep is one Get(SwitchInfo) per switch (PortStateChange says that a port of it changed; a top
// below what was written, that it was reset) and one request for each exception: a port that is up with
// silence behind it, a device without a description or with a port that does not tell its PortInfo. A change
// leads to a partial sweep. When ports have been brought up it comes at once, for their switches only: what
// happened to them meanwhile shows in no state of theirs. Sweeps that follow each other without finding or
// achieving anything are spaced out, up to a minute.
#include <errno.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/log.h"
#include "sm/sm_priv.h"

#define BACKOFF_MAX (60 * MONO_S)
#define PROBE_TIMEOUT (500 * MONO_MS) // of a device that was silent: it may be alive, and slow
#define BURST 20                      // sweeps that may follow each other at once
#define TRAP_SETTLE (2 * MONO_MS)     // the other end's trap is on its way

static void light_end(struct sm *sm)
{
    sm->light.running = false;
    sm->num_light += !sm->light.closing;
    if (!sm->light.closing && !sm->resweep && !sm->dirty_asked)
        sm_audit_step(sm);
    sm->light.closing = false;
    sm_watch_arm(sm);
}

static bool local_port_changed(struct sm *sm);
// Somebody leaves a first try unanswered: our own port may be why, and that need not wait for all the others.
static void light_late(void *arg, uint64_t user)
{
    struct sm *sm = arg;
    (void)user;
    if (sm->resweep || !local_port_changed(sm))
        return;
    sm_resweep(sm, "local-port", false);
    mad_engine_cancel_gen(sm->engine, SM_LIGHT_GEN);
}

static void light_one_done(struct sm *sm)
{
    if (--sm->light.pending == 0)
        light_end(sm);
}

static void light_switch_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct sm_dev *d = sm->dev[user];
    struct mad_switch_info si;

    if (r->status == -ECANCELED) {
        ; // a sweep goes first
    } else if (r->status != 0) {
        d->gave_up = true;
        sm_dirty_switch(sm, d, "switch-silent");
    } else if (r->mad_status == 0) {
        mad_switch_info_decode(r->data, &si);
        if (!si.port_state_change)
            d->seen_from = (uint32_t)sm->sweep.id + 1;
        if (!d->have_si)
            sm_dirty_switch(sm, d, "silent-switch-answers");
        else if (si.port_state_change && mono_sub(loop_now(sm->loop), d->believed_from) >= 0)
            sm_dirty_switch(sm, d, "switch-change");
        else if (si.linear_fdb_top < d->si.linear_fdb_top || si.life_time_value != d->si.life_time_value)
            sm_dirty_switch(sm, d, "switch-reset");
    }
    light_one_done(sm);
}

static void light_probe_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    if (r->status == 0 && r->mad_status == 0)
        sm_dirty_probe(sm, sm->dev[user >> 32], (uint8_t)user, "silent-device-answers");
    light_one_done(sm);
}

static void light_description_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    if (r->status == 0 && r->mad_status == 0)
        sm_dirty_desc(sm, sm->dev[user], "description");
    light_one_done(sm);
}

static void probe_exception(struct sm *sm, const struct sm_dev *d, unsigned num)
{
    struct dr_path path = d->path;
    if (path.hops >= MAD_MAX_HOPS)
        return;
    path.port[++path.hops] = (uint8_t)num;
    sm->light.pending++;
    sm->light.exceptions++;
    mad_engine_send(sm->engine, &(struct mad_request){
                                    .mgmt_class = MAD_CLASS_SM_DR,
                                    .method = MAD_METHOD_GET,
                                    .attr_id = MAD_ATTR_NODE_INFO,
                                    .path = &path,
                                    .device = sm_window_key(d->guid, num),
                                    .timeout_ns = PROBE_TIMEOUT,
                                    .retries = 0, // it is asked again in a second
                                    .done = light_probe_done,
                                    .arg = sm,
                                    .user = (uint64_t)d->index << 32 | num,
                                    .gen = SM_LIGHT_GEN,
                                });
}

// A port whose PortInfo is missing though its device was found; -1 when there is none.
static int unknown_port(const struct sm *sm, const struct sm_dev *d)
{
    if (dev_is_switch(d) && !d->have_si)
        return -1; // its SwitchInfo is asked anyway
    for (int num = dev_is_switch(d) ? 0 : 1; num <= d->ni.num_ports; num++)
        if (!d->port[num].known && (dev_is_switch(d) || d->port[num].peer != DEV_NONE))
            return num;
    return -1;
}

static void light_port_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    if (r->status == 0 && r->mad_status == 0)
        sm_dirty_port(sm, sm->dev[user >> 32], (uint8_t)user, "silent-port-answers");
    light_one_done(sm);
}

static void ask_unknown(struct sm *sm, const struct sm_dev *d, unsigned num)
{
    struct dr_path path;
    if (!sm_path(sm, d, num, &path))
        return;
    sm->light.pending++;
    sm->light.exceptions++;
    mad_engine_send(sm->engine, &(struct mad_request){
                                    .mgmt_class = MAD_CLASS_SM_DR,
                                    .method = MAD_METHOD_GET,
                                    .attr_id = MAD_ATTR_PORT_INFO,
                                    .attr_mod = sm_port_info_mod(d, num),
                                    .path = &path,
                                    .device = d->guid,
                                    .timeout_ns = PROBE_TIMEOUT,
                                    .retries = 0,
                                    .done = light_port_done,
                                    .arg = sm,
                                    .user = (uint64_t)d->index << 32 | num,
                                    .gen = SM_LIGHT_GEN,
                                });
}

static bool local_port_changed(struct sm *sm)
{
    struct transport_port now;
    if (sm->transport->ops->port(sm->transport, &now) != 0)
        return true;
    // In INIT again: it was reset. What was INIT when the sweep began may only be told late.
    return (now.state >= MAD_PORT_INIT) != (sm->own.state >= MAD_PORT_INIT) ||
           (now.state == MAD_PORT_INIT && sm->own.state > MAD_PORT_INIT) ||
           now.port_guid != sm->own.port_guid;
}

// The port is up, and who is behind it has not answered, or was not heard.
static bool nobody_known(const struct sm_port *p)
{
    return p->excluded == PORT_EXCLUDED_PEER_SILENT ||
           (p->excluded == PORT_INCLUDED && p->peer == DEV_NONE && sm_port_up(p));
}

// An idle link is looked at every 2, 4, ... 64 light sweeps.
static bool idle_again(const struct sm *sm, const struct sm_port *p)
{
    return p->idle > 0 && sm->num_light % (1u << (p->idle < 6 ? p->idle : 6)) == 0;
}

static void ask_switch(struct sm *sm, struct sm_dev *d)
{
    sm->light.pending++;
    sm_request(sm, d, 0, MAD_METHOD_GET, MAD_ATTR_SWITCH_INFO, 0, NULL, light_switch_done, light_late,
               d->index);
}

// Whether the last sweep has brought up a port of it.
static bool has_armed(const struct sm *sm, const struct sm_dev *d)
{
    if (!d->here || !dev_is_switch(d))
        return false;
    for (unsigned num = 1; num <= d->ni.num_ports; num++)
        if (d->port[num].armed == (uint32_t)sm->sweep.id)
            return true;
    return false;
}

static void light_begin(struct sm *sm)
{
    sm->light.running = true;
    sm->light.exceptions = 0;
    sm->light.pending = 1;
    if (sm->light.closing) {
        for (uint32_t i = 0; i < sm->num_dev; i++)
            if (has_armed(sm, sm->dev[i]))
                ask_switch(sm, sm->dev[i]);
        light_one_done(sm);
        return;
    }
    if (local_port_changed(sm))
        sm_resweep(sm, "local-port", false);
    bool any_switch = false;
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (!dev_here(sm, d))
            continue;
        if (dev_is_switch(d)) {
            any_switch = true;
            ask_switch(sm, d);
            for (unsigned num = 1; num <= d->ni.num_ports; num++)
                if (nobody_known(&d->port[num]))
                    probe_exception(sm, d, num);
                else if (idle_again(sm, &d->port[num]) && sm_link_idle(sm, d, num))
                    sm_look_at_link(sm, d, num);
        }
        int num = unknown_port(sm, d);
        if (num >= 0)
            ask_unknown(sm, d, (unsigned)num);
        if (!d->have_desc) {
            sm->light.pending++;
            sm->light.exceptions++;
            sm_request(sm, d, 0, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION, 0, NULL, light_description_done,
                       NULL, i);
        }
    }
    if (!any_switch) // two ports back to back: only a whole sweep tells
        sm_resweep(sm, "no-switch", false);
    light_one_done(sm);
}

static void count_burst(struct sm *sm)
{
    mono_t now = loop_now(sm->loop);
    int64_t seconds = mono_sub(now, sm->light.drained) / MONO_S;

    if (seconds > 0) {
        sm->light.burst -= seconds < sm->light.burst ? (uint32_t)seconds : sm->light.burst;
        sm->light.drained = mono_add(sm->light.drained, seconds * MONO_S);
    }
    if (sm->light.burst < BURST)
        sm->light.burst++;
}

// The last sweep found the local port down and it still is: asked once a second, which costs no MAD.
static bool still_down(struct sm *sm)
{
    struct transport_port now;
    return sm->error.code == -ENETDOWN && sm->transport->ops->port(sm->transport, &now) == 0 &&
           now.state < MAD_PORT_INIT;
}

// The fabric is ours and known: reading what has changed is enough.
static bool calm(const struct sm *sm)
{
    const struct sm_sweep *last = sm_history(sm, 0);
    return sm->up && sm->state == SM_MASTER && sm->fabric != NULL && last != NULL &&
           (last->ok ||
            (sm->unfinished > 0 && sm->unfinished < (sm->explained ? UNFINISHED_NEWS : UNFINISHED_MAX)));
}

static void timer_fired(void *arg)
{
    struct sm *sm = arg;
    if (sm->sweeping)
        sm_pass_hurry(sm, true);
    if (sm->sweeping || sm->light.running)
        return;
    if (!sm->resweep && still_down(sm)) {
        loop_timer_after(&sm->light.timer, MONO_S);
        return;
    }
    bool full_due = sm->resweep && mono_sub(sm->resweep_due, loop_now(sm->loop)) <= 0;
    if (!full_due && calm(sm) && (sm->dirty_asked || !sm->resweep)) {
        if (!sm->dirty_asked) {
            light_begin(sm);
            return;
        }
        count_burst(sm);
        sm_sweep_begin_partial(sm);
        return;
    }
    if (!sm->resweep) {
        sm->resweep = true;
        sm->resweep_cause = "retry";
    }
    count_burst(sm);
    sm_sweep_begin_asked(sm);
}

// What leads to a sweep. Causes that are not here can wait.
const struct sm_cause *sm_cause(const char *name)
{
    static const struct sm_cause row[] = {
        {"start", SM_AT_ONCE, false, false},      {"operator", SM_AT_ONCE, false, false},
        {"drain", SM_AT_ONCE, false, false},      {"undrain", SM_AT_ONCE, false, false},
        {"handover", SM_AT_ONCE, false, false},   {"trap", SM_SOON, false, true},
        {"switch-change", SM_SOON, false, false}, {"switch-reset", SM_SOON, false, false},
        {"switch-silent", SM_SOON, false, false}, {"unfinished", SM_SOON, false, false},
        {"moved-cables", SM_SOON, false, false},  {"unread", SM_SOON, true, false},
        {"late-answer", SM_SOON, true, false},    {"silent-device-answers", SM_TOGETHER, true, false},
    };
    static const struct sm_cause other = {"", SM_LATER, false, false},
                                 master = {"", SM_AT_ONCE, false, false};

    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (strcmp(name, row[i].name) == 0)
            return &row[i];
    return strncmp(name, "master-", 7) == 0 ? &master : &other;
}

// A switch that says again and again that a port of it has changed, when none has, is asked less and less
// often.
#define VAIN 3

static void count_vain(const struct sm *sm, struct sm_dev *d)
{
    if (!d->reading)
        return;
    d->vain = d->changed ? 0 : d->vain < 16 ? (uint8_t)(d->vain + 1) : 16;
    int64_t ns = d->vain < VAIN ? 0 : d->vain < 9 ? MONO_S << (d->vain - VAIN) : BACKOFF_MAX;
    d->believed_from = mono_add(loop_now(sm->loop), ns);
}

void sm_watch_swept(struct sm *sm)
{
    const struct sm_sweep *s = sm_history(sm, 0);
    int64_t *b = &sm->light.backoff_ns;

    bool changed = s->nodes_added + s->nodes_removed + s->links_added + s->links_removed > 0;
    bool stuck = sm->set_failures > 0 && sm->set_failures >= sm->failures_before; // goes round in a circle
    if (s->ok && (changed || (sm->progress && !stuck)))
        *b = 0;
    else if (!s->ok && (sm->error.code == -ENETDOWN || (sm->unfinished > 0 && sm->progress)))
        *b = 0; // costs two requests to ourselves; the cable may be in any moment
    else
        *b = *b == 0 ? 100 * MONO_MS : *b * 2 > BACKOFF_MAX ? BACKOFF_MAX : *b * 2;
    sm->light.ended = loop_now(sm->loop);
    bool read = s->full; // a switch; what only adapters have caused in vain is held up by the pause enough
    sm->light.closing = false;
    for (uint32_t i = 0; i < sm->touched.n; i++) {
        read |= sm->dev[sm->touched.index[i]]->reading;
        sm->light.closing |= s->ok && has_armed(sm, sm->dev[sm->touched.index[i]]);
        count_vain(sm, sm->dev[sm->touched.index[i]]);
    }
    sm->light.burst -= !read && *b > 0 && sm->light.burst > 0;
}

// Whether a switch tells of a change that has not often told of one in vain: then nobody waits for what has
// come of others' traps.
static bool fresh_switch(const struct sm *sm)
{
    for (uint32_t i = sm->dirty.n; i-- > 0;) {
        const struct sm_dev *d = sm->dev[sm->dirty.index[i]];
        if (dev_is_switch(d) && (d->dirty & (DIRTY_SWITCH | DIRTY_TOLD)) && d->vain < VAIN)
            return true;
    }
    return false;
}

// How long the sweep that was asked for has to wait. What a person asks for does not; what devices ask for
// waits the longer, the more sweeps have brought nothing, but after a trap no more than a second. However
// useful they look, there is no more than one a second for long.
static int64_t sweep_delay(const struct sm *sm, const char *cause)
{
    enum sm_urgency urgency = sm->reroute ? SM_AT_ONCE : sm_cause(cause)->urgency;
    int64_t since = mono_sub(loop_now(sm->loop), sm->light.ended), ns = sm->light.backoff_ns;

    if (urgency == SM_AT_ONCE)
        return 0;
    if (since > 10 * MONO_S && since > 4 * ns)
        ns = 0;
    if (urgency != SM_LATER)
        ns = fresh_switch(sm)
                 ? 0
                 : (ns > MONO_S ? MONO_S : ns) - since; // the pause counts from the last sweep's end
    if (urgency != SM_LATER && ns < TRAP_SETTLE)
        ns = TRAP_SETTLE;
    if (sm->light.burst >= BURST && ns < MONO_S)
        ns = MONO_S;
    return ns;
}

// From the last sweep's end: what is told meanwhile does not put it off.
static mono_t retry_due(const struct sm *sm)
{
    int64_t ns = sm->light.backoff_ns > MONO_S ? sm->light.backoff_ns : MONO_S;
    mono_t due = mono_add(sm->num_sweeps > 0 ? sm->light.ended : loop_now(sm->loop), ns);
    return mono_sub(due, loop_now(sm->loop)) > 0 ? due : loop_now(sm->loop);
}

void sm_watch_arm(struct sm *sm)
{
    const struct sm_sweep *last = sm_history(sm, 0);
    bool partial = sm->dirty_asked && calm(sm);

    if (sm->sweeping)
        return;
    if (sm->light.running) { // it may wait for seconds on the far side of the link that the trap is about
        if ((sm->resweep && sm_cause(sm->resweep_cause)->urgency >= SM_SOON) ||
            (partial && sm_cause(sm->dirty_cause)->urgency >= SM_SOON))
            mad_engine_cancel_gen(sm->engine, SM_LIGHT_GEN);
        return;
    }
    if (sm->resweep && sm->resweep_due.ns == 0) // set once: asking again may not put it off
        sm->resweep_due = mono_add(loop_now(sm->loop), sweep_delay(sm, sm->resweep_cause));
    if (partial) {
        mono_t due = mono_add(loop_now(sm->loop), sweep_delay(sm, sm->dirty_cause));
        if (sm->dirty_due.ns == 0 || mono_sub(due, sm->dirty_due) < 0)
            sm->dirty_due = due;
    }
    if (sm->resweep && (!partial || mono_sub(sm->resweep_due, sm->dirty_due) <= 0))
        loop_timer_at(&sm->light.timer, sm->resweep_due);
    else if (partial)
        loop_timer_at(&sm->light.timer, sm->dirty_due);
    else if (sm->state == SM_STANDBY || sm->state == SM_NOT_ACTIVE)
        ; // the master is polled: sminfo.c
    else if (sm->error.code == -ENETDOWN)
        loop_timer_after(&sm->light.timer, MONO_S);
    else if (!sm->up || (last != NULL && !last->ok))
        loop_timer_at(&sm->light.timer, retry_due(sm));
    else if (sm->light.closing)
        loop_timer_after(&sm->light.timer, 0);
    else if (sm->o.sweep_interval_ns > 0)
        loop_timer_after(&sm->light.timer, sm->o.sweep_interval_ns);
}

// --- unsolicited ---

static void unsolicited(void *arg, const uint8_t *mad, const struct mad_addr *from)
{
    struct sm *sm = arg;
    struct mad_hdr h;

    mad_hdr_decode(mad, &h);
    if (h.method == MAD_METHOD_TRAP && h.attr_id == MAD_ATTR_NOTICE)
        sm_trap(sm, mad, from);
    else if ((h.method == MAD_METHOD_GET || h.method == MAD_METHOD_SET) && h.attr_id == MAD_ATTR_SM_INFO)
        sm_info_asked(sm, mad, from);
}

void sm_watch_init(struct sm *sm)
{
    loop_timer_init(&sm->light.timer, sm->loop, "sm", timer_fired, sm);
    mad_engine_handler(sm->engine, MAD_CLASS_SM_LID, unsolicited, sm);
}

void sm_watch_done(struct sm *sm)
{
    loop_timer_cancel(&sm->light.timer);
}
