// SPDX-License-Identifier: Apache-2.0
// Phase "discover" of a partial sweep: reads what is marked (dirty.c) and what turns out to hang together
// with it, and nothing else.
//
// A switch that is marked is asked for its port 0's PortInfo by two ways at once, since the shortest one may
// cross the very link that died, or a cable that was moved and leads to another switch by now; the first
// right answer decides by which it is read. A link found down is down at both ends, so the switch behind it
// is read as well. A port in INIT was reset, however short the flap: its far end is asked again who it is,
// and read too. A switch that answers by neither way is a suspect: those around it are read, and say whether
// its links are gone; if none is left, it is. If its links stay up, only its agent is silent: it keeps its
// place until the engine has given up on it, in the light sweep before or by the question that goes on
// (sm_dirty_mute()).
//
// Reading ends when nothing is outstanding but what is late, and that has had GRACE, or more where nothing
// else is to be done: what it did not bring is marked again. Then what is not connected to us any more is no
// longer here.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define GRACE (40 * MONO_MS)
#define GRACES_MAX 50
#define READING_MIN (150 * MONO_MS) // reading is not cut short before
#define AGAIN_ROUNDS 2
#define RACED_MAX 4 // switches asked by two ways at once; where more are marked, the others when one fails

static uint8_t state_of(const struct sm_port *p)
{
    return p->info[32] & 0x0f;
}

bool sm_port_reset(const struct sm_port *p)
{
    return p->known && state_of(p) == MAD_PORT_INIT;
}

// --- a marked switch ---

// Lost the suspicion, or never was one: reading waits for it no more.
static void ask_over(struct sm *sm, struct sm_dev *d)
{
    if (!d->asking)
        return;
    d->asking = false;
    sm->disc.pending--;
    if (d->suspect)
        sm->disc.late--;
    d->suspect = false;
}

static bool ask_anew(struct sm *sm, struct sm_dev *d);
// It answers by no way that was tried: its neighbours may know more, and those that were asked by ways over
// it may answer by others.
static void suspect(struct sm *sm, struct sm_dev *d)
{
    if (d->suspect || !d->asking)
        return;
    d->suspect = true;
    sm->disc.late++;
    sm->disc.routes_stale = true; // what is behind it may be reached by another way
    for (unsigned i = 1; i <= d->ni.num_ports; i++) {
        const struct sm_port *p = &d->port[i];
        if (p->peer != DEV_NONE && dev_is_switch(sm->dev[p->peer]))
            sm_partial_switch(sm, sm->dev[p->peer]);
    }
    for (uint32_t i = 0; i < sm->touched.n; i++) {
        struct sm_dev *x = sm->dev[sm->touched.index[i]];
        if (x != d && x->asking && x->suspect)
            ask_anew(sm, x);
    }
    sm_disc_check(sm);
}

static void ask_late(void *arg, uint64_t user);
// Asked by a way that leads to somebody else: a cable on it has been moved. Its neighbours are read, and it
// is when they have told how it is reached.
static void led_astray(struct sm *sm, struct sm_dev *d)
{
    ask_late(sm, d->guid);
    if (d->asks > 0 || !d->asking)
        return;
    sm->disc.astray = true;
    suspect(sm, d);
    sm_dirty_switch(sm, d, "unread");
    if (d->parent < sm->num_dev &&
        sm->dev[d->parent]->here) // somebody else is behind its last link, without a trace
        sm_dirty_probe(sm, sm->dev[d->parent], d->parent_port, "unread");
    ask_over(sm, d);
    sm_disc_check(sm);
}

// By that way it is read. port0: its PortInfo; NULL: not known yet.
static void answers_by(struct sm *sm, struct sm_dev *d, const struct dr_path *path, const uint8_t *port0)
{
    d->ask_answered = true;
    d->gave_up = false;
    d->silent = 0;
    d->path = *path;
    if (d->asking) {
        sm_read_switch(sm, d, port0);
        ask_over(sm, d);
        sm_disc_check(sm);
    } else if (!sm->sweeping || !sm->sweep.full) { // after the sweep that asked
        sm_dirty_switch(sm, d, "late-answer");
    }
}

static void unanswered(struct sm *sm, struct sm_dev *d, const struct mad_result *r)
{
    if (d->asks > 0 || d->ask_answered)
        return;
    if (r->status != -ECANCELED && d->here)
        sm_dirty_mute(sm, d, "switch-silent");
    if (d->asking) {
        ask_over(sm, d);
        sm_disc_check(sm);
    }
}

static void ask_by(struct sm *sm, struct sm_dev *d, bool other, uint16_t attr_id, mad_done_fn *done);
// The device that a question has come back from, if its answer is the first.
static struct sm_dev *asked(struct sm *sm, uint64_t guid, const struct mad_result *r)
{
    struct sm_dev *d = sm_dev_find(sm, guid);

    sm->disc.heard |= r->status == 0;
    if (d == NULL || d->asks == 0)
        return NULL;
    d->asks--;
    if (r->status == 0 && r->mad_status == 0)
        return d->ask_answered ? NULL : d;
    unanswered(sm, d, r);
    return NULL;
}

static void named_done(struct sm *sm, uint64_t guid, const struct mad_result *r, bool other)
{
    struct sm_dev *d = asked(sm, guid, r);
    struct mad_node_info ni;

    if (d == NULL)
        return;
    mad_node_info_decode(r->data, &ni);
    if (ni.node_guid == d->guid)
        answers_by(sm, d, other ? &d->other_path : &d->ask_path, NULL);
    else
        led_astray(sm, d);
}

static void named_first(void *arg, uint64_t user, const struct mad_result *r)
{
    named_done(arg, user, r, false);
}

static void named_other(void *arg, uint64_t user, const struct mad_result *r)
{
    named_done(arg, user, r, true);
}

// The LID tells that it is the switch that was meant. One that was reset has none and is asked for its name.
static void ask_done(struct sm *sm, uint64_t guid, const struct mad_result *r, bool other)
{
    struct sm_dev *d = asked(sm, guid, r);
    struct mad_port_info pi;

    if (d == NULL)
        return;
    mad_port_info_decode(r->data, &pi);
    if (pi.lid != 0 && pi.lid == d->port[0].lid) {
        answers_by(sm, d, other ? &d->other_path : &d->ask_path, r->data);
    } else {
        d->ask_ways--; // the same one again
        ask_by(sm, d, other, MAD_ATTR_NODE_INFO, other ? named_other : named_first);
    }
}

// A probe was answered: that way leads to it, whatever becomes of those by which it is asked.
void sm_partial_met(struct sm *sm, struct sm_dev *d, const struct sm_dev *from, unsigned num)
{
    if (!d->asking || d->ask_answered)
        return;
    struct dr_path path = from->path;
    path.port[++path.hops] = (uint8_t)num;
    answers_by(sm, d, &path, NULL);
}

static void asked_first(void *arg, uint64_t user, const struct mad_result *r)
{
    ask_done(arg, user, r, false);
}

static void asked_other(void *arg, uint64_t user, const struct mad_result *r)
{
    ask_done(arg, user, r, true);
}

// Each way has a window of its own: what is not answered by one may not hold up the other.
static uint64_t ask_key(const struct sm_dev *d, bool other)
{
    return sm_window_key(d->guid, other ? SM_WINDOW_OTHER_WAY : SM_WINDOW_FIRST_WAY);
}

void sm_partial_forget(struct sm *sm, struct sm_dev *d)
{
    mad_engine_cancel_device(sm->engine, d->guid);
    mad_engine_cancel_device(sm->engine, ask_key(d, false));
    mad_engine_cancel_device(sm->engine, ask_key(d, true));
}

static void ask_by(struct sm *sm, struct sm_dev *d, bool other, uint16_t attr_id, mad_done_fn *done)
{
    d->asks++;
    d->ask_ways++;
    mad_engine_send(sm->engine, &(struct mad_request){
                                    .mgmt_class = MAD_CLASS_SM_DR,
                                    .m_key = sm_m_key(d, 0),
                                    .method = MAD_METHOD_GET,
                                    .attr_id = attr_id,
                                    .path = other ? &d->other_path : &d->ask_path,
                                    .prio = MAD_PRIO_SMP,
                                    .device = ask_key(d, other),
                                    .like = d->guid,
                                    .retries = -1,
                                    .done = done,
                                    .first_timeout = ask_late,
                                    .arg = sm,
                                    .user = d->guid,
                                    .gen = SM_ASK_GEN,
                                });
}

static bool same_path(const struct dr_path *a, const struct dr_path *b)
{
    return a->hops == b->hops && memcmp(a->port + 1, b->port + 1, a->hops) == 0;
}

// By the shortest way and perhaps a second one.
static void ask_first(struct sm *sm, struct sm_dev *d, bool race)
{
    d->ask_answered = d->suspect = false;
    d->ask_lates = d->ask_ways = 0;
    d->silent = 0;
    d->ask_path = d->path;
    ask_by(sm, d, false, MAD_ATTR_PORT_INFO, asked_first);
    if (race && sm->disc.raced < RACED_MAX && sm_other_path(sm, d, &d->other_path)) {
        ask_by(sm, d, true, MAD_ATTR_PORT_INFO, asked_other);
        sm->disc.raced++;
    }
}

#define ANEW_MAX 3

// The ways by which it was asked lead over somebody who seems to be dead; there is another one by now. What
// is still asked by those would hold up the new question.
static bool ask_anew(struct sm *sm, struct sm_dev *d)
{
    if (sm->disc.routes_stale)
        sm_reach(sm, false);
    if (d->anew >= ANEW_MAX || same_path(&d->path, &d->ask_path) ||
        (d->ask_ways > 1 && same_path(&d->path, &d->other_path)))
        return false;
    d->anew++;
    d->ask_answered = true;
    sm->disc.late -= d->suspect;
    sm_partial_forget(sm, d);
    ask_first(sm, d, false);
    return true;
}

static void ask_late(void *arg, uint64_t user)
{
    struct sm *sm = arg;
    struct sm_dev *d = sm_dev_find(sm, user);
    if (d == NULL || d->ask_answered || ++d->ask_lates < d->ask_ways)
        return;
    if (d->ask_ways == 1 && sm_other_path(sm, d, &d->other_path))
        ask_by(sm, d, true, MAD_ATTR_PORT_INFO, asked_other);
    else if (!d->asking || !ask_anew(sm, d))
        suspect(sm, d);
}

void sm_partial_switch(struct sm *sm, struct sm_dev *d)
{
    if (d->reading && d->told_nothing)
        sm_read_ports(sm, d);
    d->told = d->told_nothing = false;
    if (d->reading || !d->here)
        return;
    sm_touch(sm, d);
    sm_notes_drop(sm, d->guid);
    d->reading = true;
    d->lft_before = d->lft;
    d->all_ports = false;
    d->asking = true;
    sm->disc.pending++;
    d->anew = 0;
    if (d->reads > 0) // by a way that may be dead by now; all of it is read again, and must not wait for that
        mad_engine_cancel_device(sm->engine, d->guid);
    if (d->asks > 0 && !d->ask_answered) { // still asked by the last sweep
        if (!ask_anew(sm, d))
            suspect(sm, d);
        return;
    }
    if (sm->disc.routes_stale)
        sm_reach(sm, false);
    ask_first(sm, d, true);
}

// --- links ---

static void link_down(struct sm *sm, struct sm_dev *d, unsigned num)
{
    struct sm_port *p = &d->port[num];
    if (p->peer == DEV_NONE)
        return;
    struct sm_dev *z = sm->dev[p->peer];
    struct sm_port *zp = &z->port[p->peer_num];
    sm_unlink(sm, d, num);
    sm->disc.routes_stale = true;
    if (zp->read != (uint32_t)sm->sweep.id) // until it is read; what has been read already may be a new cable
        zp->info[32] = (uint8_t)((zp->info[32] & 0xf0) | MAD_PORT_DOWN);
    if (dev_is_switch(z))
        sm_partial_switch(sm, z);
}

// The switch tells of a change since it last told of none, and we have brought this port out of INIT since:
// it may be the one, and the far end another by now, which the state does not show any more.
static bool armed_unseen(const struct sm_dev *d, const struct sm_port *p)
{
    return d->reading && d->si.port_state_change && p->armed != 0 &&
           (int32_t)(p->armed - d->seen_from_before) >= 0;
}

void sm_partial_port(struct sm *sm, struct sm_dev *d, unsigned num, uint8_t before)
{
    struct sm_port *p = &d->port[num];
    uint8_t now = state_of(p);

    if (!dev_is_switch(d) || num == 0)
        return;
    if (now == MAD_PORT_DOWN) {
        link_down(sm, d, num);
        p->excluded = PORT_INCLUDED;
        p->was_silent = false;
    } else if (p->peer != DEV_NONE) {
        if ((now == MAD_PORT_INIT || armed_unseen(d, p)) && !sm_is_probed(sm, p))
            sm_probe(sm, d, num);
    } else if (!sm_is_probed(sm, p) &&
               (now != before || (now == MAD_PORT_INIT && p->excluded != PORT_INCLUDED))) {
        // What was left out stays in INIT: nothing tells whether somebody else is there by now.
        p->was_silent |= p->excluded == PORT_EXCLUDED_PEER_SILENT;
        p->excluded = PORT_INCLUDED;
    }
}

// from[num] has met to[far] (to: NULL when never seen). What was believed of either end before gives way to
// what is seen now; but where the far end hangs elsewhere, that is asked first: a moved cable is gone from
// there, a second device with the same GUID is not. False: not yet.
bool sm_partial_found(struct sm *sm, struct sm_dev *from, unsigned num, struct sm_dev *to, unsigned far)
{
    struct sm_port *a = &from->port[num];

    if (a->peer != DEV_NONE && (to == NULL || a->peer != to->index) && state_of(a) > MAD_PORT_INIT)
        sm->disc.astray |= dev_is_switch(sm->dev[a->peer]) || (to != NULL && dev_is_switch(to));
    if (a->peer != DEV_NONE && (to == NULL || a->peer != to->index || a->peer_num != far)) {
        struct sm_dev *left = sm->dev[a->peer];
        sm_unlink(sm, from, num);
        if (left->reading) // its port may have been read, and not asked as this end was
            sm_probe_ports(sm, left);
        else if (dev_is_switch(left))
            sm_partial_switch(sm, left);
    }
    if (to == NULL || !to->here || far == 0 || far > to->ni.num_ports)
        return true;
    struct sm_port *z = &to->port[far];
    if (z->peer == DEV_NONE || (z->peer == from->index && z->peer_num == num))
        return true;
    struct sm_dev *y = sm->dev[z->peer];
    struct sm_port *yp = &y->port[z->peer_num];
    if (yp->met == (uint32_t)sm->sweep.id)
        return true;                                               // seen at both places
    if (sm->disc.rounds >= AGAIN_ROUNDS && sm_is_probed(sm, yp)) { // asked, and no word of it: it is here
        sm_unlink(sm, y, z->peer_num);
        yp->excluded = PORT_EXCLUDED_PEER_SILENT;
        return true;
    }
    if (sm->disc.rounds >= AGAIN_ROUNDS) {
        sm_dirty_probe(sm, from, num, "unread");
        return false;
    }
    if (!sm_is_probed(sm, yp)) { // nothing passes an end node
        if (dev_is_switch(y))
            sm_probe(sm, y, z->peer_num);
        else
            sm_probe(sm, to, far);
    }
    sm_probe_again(sm, from, num);
    return false;
}

// --- begin and end ---

// An agent that the engine has given up on while its links are up.
static void mute(struct sm *sm, struct sm_dev *d)
{
    for (unsigned i = 1; i <= d->ni.num_ports; i++) {
        struct sm_port *p = &d->port[i];
        if (p->peer == DEV_NONE)
            continue;
        sm->dev[p->peer]->port[p->peer_num].excluded = PORT_EXCLUDED_PEER_SILENT;
        sm_unlink(sm, d, i);
    }
}

static void read_ports(struct sm *sm, struct sm_dev *d)
{
    for (unsigned num = 0; num <= d->ni.num_ports; num++) {
        struct sm_port *p = &d->port[num];
        bool info = p->dirty, probe = p->dirty_probe;
        p->dirty = p->dirty_probe = false;
        if (info && dev_is_switch(d) && !d->reading) {
            sm_read_port(sm, d, num);
        } else if (info && !dev_is_switch(d) && num > 0 && (p->peer != DEV_NONE || d->index == sm->own_dev)) {
            sm_notes_drop(sm, d->guid);
            sm_read_end_port(sm, d, num);
        }
        if (!probe || num == 0 || !dev_is_switch(d) || !sm_port_up(p) || sm_is_probed(sm, p))
            continue;
        p->was_silent |= p->excluded == PORT_EXCLUDED_PEER_SILENT;
        p->excluded = PORT_INCLUDED;
        sm_probe(sm, d, num);
    }
}

static void read_marked(struct sm *sm, struct sm_dev *d, uint8_t what)
{
    if (!d->here) // whoever sees it again reads it
        return;
    if (what & DIRTY_MUTE)
        d->gave_up = true; // asked once more, with those around it
    sm_touch(sm, d);
    bool told = what == DIRTY_TOLD && !d->reading && !sm_others_known(sm);
    if ((what & (DIRTY_SWITCH | DIRTY_TOLD | DIRTY_MUTE)) && dev_is_switch(d)) {
        sm_partial_switch(sm, d);
        d->told = told;
    }
    if (what & DIRTY_PORTS)
        read_ports(sm, d);
    if (what & DIRTY_DESC)
        sm_read_desc(sm, d, 0);
}

// A sweep that has nothing to write waits for those that are merely slow, until something else happens.
static bool may_wait(const struct sm *sm)
{
    if (!sm_cause(sm->sweep.cause)->slow || sm->disc.graces >= GRACES_MAX || sm->dirty_asked || sm->resweep)
        return false;
    for (uint32_t i = 0; i < sm->touched.n; i++)
        if (sm->dev[sm->touched.index[i]]->changed)
            return false;
    return true;
}

static void grace_over(void *arg)
{
    struct sm *sm = arg;
    if (may_wait(sm)) {
        sm->disc.graces++;
        loop_timer_after(&sm->disc.grace, GRACE);
        return;
    }
    sm->disc.grace_over = true;
    sm_disc_check(sm);
}

// Something else has happened that cannot wait for a slow device: reading ends soon, and what it still lacks
// is marked again.
void sm_partial_hurry(struct sm *sm)
{
    if (!sm->sweeping || sm->sweep.full || sm->disc.over || sm->disc.hurried)
        return;
    sm->disc.hurried = true;
    mono_t due = mono_add(sm->sweep_began, READING_MIN);
    if (!loop_timer_pending(&sm->disc.grace) || mono_sub(sm->disc.grace.due, due) > 0)
        loop_timer_at(&sm->disc.grace, due);
}

void sm_partial_check(struct sm *sm)
{
    if (sm->disc.over || sm->disc.finishing)
        return;
    if (sm->disc.hurried && sm->disc.grace_over) {
        sm_disc_finish(sm);
        return;
    }
    if (sm->disc.pending > sm->disc.late)
        return;
    if (sm->disc.num_again > 0) {
        sm_probe_round(sm);
        if (sm->disc.pending > sm->disc.late)
            return;
    }
    if (sm->disc.late > 0 && !sm->disc.grace_over) {
        mono_t due = mono_add(loop_now(sm->loop), GRACE);
        if (!loop_timer_pending(&sm->disc.grace) || mono_sub(sm->disc.grace.due, due) > 0)
            loop_timer_at(&sm->disc.grace, due);
        return;
    }
    sm_disc_finish(sm);
}

void sm_partial_start(struct sm *sm)
{
    struct sm_dev_list marked = sm->dirty;
    uint8_t *what = xcalloc(marked.n ? marked.n : 1, 1);

    if (sm->unfinished)
        sm_touch_again(sm); // what it had touched is not in force yet
    else
        sm_touch_none(sm);
    sm_disc_reset(sm);
    sm->disc.level = MAD_MAX_HOPS; // no level waits for another
    sm->disc.pending = 1;
    sm_reach(sm, false);
    for (uint32_t i = 0; i < sm->num_dev; i++)
        if (sm->dev[i]->here) {
            sm->disc.nodes++;
            sm->disc.switches += dev_is_switch(sm->dev[i]);
            sm->disc.ports += sm->dev[i]->ni.num_ports + 1u;
        }
    sm->dirty = (struct sm_dev_list){0};
    sm->dirty_asked = false;
    for (uint32_t i = 0; i < marked.n; i++) {
        what[i] = sm->dev[marked.index[i]]->dirty;
        sm->dev[marked.index[i]]->dirty = 0;
    }
    for (uint32_t i = 0; i < marked.n; i++)
        read_marked(sm, sm->dev[marked.index[i]], what[i]);
    free(marked.index);
    free(what);
    sm->disc.pending--;
    sm_disc_check(sm);
}

// A port at which a second device with a known GUID was left out: the first one may have gone, or never was
// where it was believed to be.
static void look_at_duplicates(struct sm *sm)
{
    for (uint32_t i = 0; i < sm->num_dev; i++)
        for (unsigned num = 1; sm->dev[i]->here && num <= sm->dev[i]->ni.num_ports; num++)
            if (sm->dev[i]->port[num].excluded == PORT_EXCLUDED_DUPLICATE)
                sm_dirty_probe(sm, sm->dev[i], num, "duplicate-guid");
}

// Nobody has answered, and a switch would have to be given up for it: that is about our own link, and no news
// of the fabric.
static bool alone(const struct sm *sm)
{
    for (uint32_t i = 0; i < sm->touched.n && !sm->disc.heard; i++)
        if (sm->dev[sm->touched.index[i]]->suspect && sm->dev[sm->touched.index[i]]->gave_up)
            return true;
    return false;
}

// What else is believed may be as wrong, and what is written would go to others than are meant.
static void look_at_everything(struct sm *sm)
{
    struct err e;
    err_set(&e, -EAGAIN, sm->transport->name, "cables lead elsewhere than they did; reading everything");
    sm_resweep(sm, "moved-cables", false);
    sm_sweep_failed(sm, &e);
}

static void look_at_own_link(struct sm *sm)
{
    struct err e;
    err_set(&e, -EHOSTUNREACH, sm->transport->name, "nobody answers any more; looking at the local port");
    sm_resweep(sm, "local-port", false);
    sm_sweep_failed(sm, &e);
}

void sm_partial_over(void *arg)
{
    struct sm *sm = arg;

    sm->disc.finishing = false;
    sm->disc.over = true;
    loop_timer_cancel(&sm->disc.grace);
    mad_engine_cancel_gen(sm->engine, SM_PARTIAL_GEN);
    bool own_link = alone(sm);
    for (uint32_t i = 0; i < sm->touched.n; i++) {
        struct sm_dev *d = sm->dev[sm->touched.index[i]];
        if (d->suspect && d->gave_up && !own_link)
            mute(sm, d);
        d->asking = d->suspect = false;
        if (d->heard_in == (uint32_t)sm->sweep.id && d->unread_in != (uint32_t)sm->sweep.id)
            d->unread = 0;
        if (d->asks > 0 && d->ask_answered) // by the other way, which need not be tried again
            sm_partial_forget(sm, d);
    }
    for (uint32_t i = 0; i < sm->disc.num_again; i++) // reading was cut short
        sm_dirty_probe(sm, sm->dev[sm->disc.again[i].dev], sm->disc.again[i].num, "unread");
    sm->disc.num_again = 0;
    if (own_link) {
        look_at_own_link(sm);
        return;
    }
    if (sm->disc.astray) {
        look_at_everything(sm);
        return;
    }
    bool gone = sm_reach(sm, true);
    if (gone || sm->disc.unlinked)
        look_at_duplicates(sm);
    sm_discovered(sm);
}

void sm_partial_done(struct sm *sm)
{
    loop_timer_cancel(&sm->disc.grace);
    free(sm->disc.again);
    sm->disc.again = NULL;
}

void sm_disc_reset(struct sm *sm)
{
    sm_partial_done(sm);
    memset(&sm->disc, 0, sizeof(sm->disc));
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        sm->dev[i]->slow = false;
        sm->dev[i]->reads = 0;
    }
    loop_timer_init(&sm->disc.grace, sm->loop, "sm", grace_over, sm);
}
