// SPDX-License-Identifier: Apache-2.0
#include "sm/election.h"

#include <assert.h>
#include <string.h>

#define SHY (60 * MONO_S)       // one that did not take our handover
#define ASK_EVERY (5 * MONO_S)  // a lower master to hand over
#define REPEATED (5 * MONO_S)   // a HANDOVER whose answer was lost
#define HURRY (500 * MONO_MS)   // polls while the fabric waits for an answer
#define IDLE (120 * MONO_S)     // one above us that becomes no master: OpenSM may take 60 s
#define IDLE_SHY (600 * MONO_S) // … is offered the fabric again
#define STILL_MAX 80            // polls

void election_init(struct election *e, const struct election_opts *o)
{
    memset(e, 0, sizeof(*e));
    e->o = *o;
    if (e->o.poll_ns == 0)
        e->o.poll_ns = MONO_S;
    if (e->o.miss_limit == 0)
        e->o.miss_limit = 3;
    if (e->o.still_limit == 0)
        e->o.still_limit = 10;
    if (e->o.yield_ns == 0)
        e->o.yield_ns = 3 * MONO_S;
}

// --- what is to be done ---

bool election_act(struct election *e, struct election_act *ret)
{
    if (e->next_act == e->acts) {
        e->next_act = e->acts = 0;
        return false;
    }
    *ret = e->act[e->next_act++];
    return true;
}

static void push(struct election *e, enum election_act_kind kind, const struct election_peer *p,
                 const char *cause)
{
    assert(e->acts <
           ELECTION_ACTS); // at most three for a peer and three beside, and emptied after each input
    struct election_act *a = &e->act[e->acts++];
    *a = (struct election_act){.kind = kind, .cause = cause};
    if (p != NULL)
        a->peer = *p;
}

static void set_state(struct election *e, enum mad_sm_state s)
{
    if (e->state == s)
        return;
    e->state = s;
    push(e, ELECTION_STATE, NULL, NULL);
}

// --- peers ---

static bool ranks_above(uint8_t priority, uint64_t guid, uint8_t than_priority, uint64_t than_guid)
{
    return priority != than_priority ? priority > than_priority : guid < than_guid;
}

bool election_better(const struct election *e, uint8_t priority, uint64_t guid)
{
    return ranks_above(priority, guid, e->o.priority, e->o.guid);
}

static bool better(const struct election *e, const struct election_peer *p)
{
    return election_better(e, p->priority, p->guid);
}

// Key 0 is what a manager shows whom it does not know well enough.
static bool trusted(const struct election *e, const struct election_peer *p)
{
    return e->o.sm_key == 0 || p->sm_key == 0 || p->sm_key == e->o.sm_key;
}

static struct election_peer *find(struct election *e, uint64_t guid)
{
    for (unsigned i = 0; i < e->peers; i++)
        if (e->peer[i].guid == guid)
            return &e->peer[i];
    return NULL;
}

const struct election_peer *election_peer(const struct election *e, uint64_t guid)
{
    for (unsigned i = 0; i < e->peers; i++)
        if (e->peer[i].guid == guid)
            return &e->peer[i];
    return NULL;
}

// The table is full: the lowest that is no master makes room for a master, else nobody does.
static struct election_peer *make_room(struct election *e, const struct mad_sm_info *si)
{
    struct election_peer *low = NULL;
    for (unsigned i = 0; i < e->peers; i++) {
        struct election_peer *p = &e->peer[i];
        if (p->state != MAD_SM_MASTER && p->guid != e->master && p->guid != e->handing &&
            (low == NULL || ranks_above(low->priority, low->guid, p->priority, p->guid)))
            low = p;
    }
    return si->sm_state == MAD_SM_MASTER ? low : NULL;
}

static struct election_peer *add(struct election *e, const struct mad_sm_info *si)
{
    struct election_peer *p = e->peers < ELECTION_PEERS ? &e->peer[e->peers++] : make_room(e, si);
    if (p != NULL)
        *p = (struct election_peer){.guid = si->guid, .state = MAD_SM_NOT_ACTIVE};
    return p;
}

static void forget(struct election *e, struct election_peer *p)
{
    push(e, ELECTION_GONE, p, NULL);
    *p = e->peer[--e->peers];
}

static enum mad_sm_state state_of(const struct mad_sm_info *si)
{
    return si->sm_state <= MAD_SM_MASTER ? (enum mad_sm_state)si->sm_state : MAD_SM_NOT_ACTIVE;
}

// A lower master is given time to hand over, once.
static void watch_second(struct election *e, struct election_peer *p, mono_t now)
{
    if (p->state != MAD_SM_MASTER || better(e, p)) {
        p->yields = p->fought = false;
    } else if (e->state == MAD_SM_MASTER && !p->fought && !p->yields) {
        p->yields = true;
        p->yield_until = mono_add(now, e->o.yield_ns);
        e->next_poll = now;
    }
}

static void learn(struct election *e, struct election_peer *p, const struct mad_sm_info *si, bool fresh,
                  mono_t now)
{
    bool changed = fresh || p->state != state_of(si) || p->priority != si->priority;

    if (fresh || p->act_count != si->act_count) {
        p->still = 0;
        p->still_limit = e->o.still_limit;
        p->frozen = false;
    } else {
        p->still++;
    }
    p->sm_key = si->sm_key;
    p->act_count = si->act_count;
    p->priority = si->priority;
    p->state = state_of(si);
    if (p->state == MAD_SM_MASTER)
        p->idle = false;
    p->heard = now;
    p->polled = false;
    if (changed) {
        p->shy_until = (mono_t){0};
        push(e, ELECTION_MET, p, NULL);
    }
    watch_second(e, p, now);
}

static void poll(struct election *e, struct election_peer *p)
{
    if (p->polled)
        return;
    p->polled = true;
    push(e, ELECTION_POLL, p, NULL);
}

// --- transitions ---

static void stand_by(struct election *e, struct election_peer *p, mono_t now)
{
    e->master = p->guid;
    e->handing = e->given_by = 0;
    e->handing_lost = e->settling = false;
    p->missed = p->still = 0;
    p->waited_since = now;
    for (unsigned i = 0; i < e->peers; i++) {
        e->peer[i].yields = e->peer[i].fought = false;
        e->peer[i].idle &= p->state != MAD_SM_MASTER; // it waits for the same master as we do
    }
    e->next_poll = mono_add(now, e->o.poll_ns);
    set_state(e, MAD_SM_STANDBY);
}

static void become_master(struct election *e, mono_t now)
{
    e->master = e->given_by = 0;
    e->settling = false;
    e->next_poll = mono_add(now, e->o.poll_ns);
    set_state(e, MAD_SM_MASTER);
    for (unsigned i = 0; i < e->peers; i++) {
        e->peer[i].missed = 0;
        watch_second(e, &e->peer[i], now);
    }
}

static void discover(struct election *e, const char *cause)
{
    e->master = e->handing = 0;
    e->handing_lost = e->settling = false;
    set_state(e, MAD_SM_DISCOVERING);
    push(e, ELECTION_SWEEP, NULL, cause);
}

static void master_lost(struct election *e, struct election_peer *p)
{
    forget(e, p);
    discover(e, "master-gone");
}

// --- handing over ---

static struct election_peer *best_heir(struct election *e, mono_t now)
{
    struct election_peer *best = NULL;
    for (unsigned i = 0; i < e->peers; i++) {
        struct election_peer *p = &e->peer[i];
        if ((p->state == MAD_SM_STANDBY || p->state == MAD_SM_MASTER) && better(e, p) && trusted(e, p) &&
            p->missed == 0 && mono_sub(now, p->shy_until) >= 0 &&
            (best == NULL || ranks_above(p->priority, p->guid, best->priority, best->guid)))
            best = p;
    }
    return best;
}

static bool hand_over(struct election *e, mono_t now)
{
    struct election_peer *p = e->handing == 0 ? best_heir(e, now) : NULL;
    if (p != NULL) {
        e->handing = p->guid;
        e->handing_lost = false;
        push(e, ELECTION_HANDOVER, p, NULL);
    }
    return e->handing != 0;
}

static void not_taken(struct election *e, struct election_peer *p, mono_t now)
{
    e->handing = 0;
    e->handing_lost = false;
    if (p == NULL)
        return;
    p->shy_until = mono_add(now, SHY);
    push(e, ELECTION_NOT_TAKEN, p, NULL);
}

static void taken(struct election *e, struct election_peer *p, mono_t now)
{
    push(e, ELECTION_TAKEN, p, NULL);
    stand_by(e, p, now);
}

void election_handed(struct election *e, uint64_t guid, enum election_handed how, mono_t now)
{
    struct election_peer *p = find(e, guid);

    if (e->state != MAD_SM_MASTER || e->handing != guid)
        return; // acknowledged meanwhile, or other things have happened
    if (p == NULL) {
        not_taken(e, NULL, now);
        return;
    }
    switch (how) {
    case ELECTION_HANDED:
        taken(e, p, now);
        break;
    case ELECTION_REFUSED:
        not_taken(e, p, now);
        if (p->state == MAD_SM_MASTER) // it runs its part, and ours from now on: the lower gives way
            stand_by(e, p, now);
        break;
    case ELECTION_LOST:
        e->handing_lost = true;
        p->polled = false;
        poll(e, p);
        break;
    }
}

// What became of the handover whose answer was lost.
static void handing_seen(struct election *e, struct election_peer *p, mono_t now)
{
    if (p->state == MAD_SM_MASTER && better(e, p))
        taken(e, p, now);
    else
        not_taken(e, p, now);
}

// --- discovery ---

void election_begin(struct election *e, bool full, mono_t now)
{
    (void)now;
    if (e->state == MAD_SM_NOT_ACTIVE && !e->disabled)
        set_state(e, MAD_SM_DISCOVERING);
    e->full = full;
    e->settling = false;
    for (unsigned i = 0; full && i < e->peers; i++)
        e->peer[i].met = false;
}

void election_met(struct election *e, const struct mad_sm_info *si, mono_t now)
{
    struct election_peer *p = find(e, si->guid);
    bool fresh = p == NULL;

    if (fresh)
        p = add(e, si);
    if (p == NULL)
        return;
    p->met = true;
    p->missed = 0;
    learn(e, p, si, fresh, now);
}

// Those of whom only the discovery can tell: nobody polls them.
static void drop_unmet(struct election *e)
{
    if (!e->full || e->state == MAD_SM_MASTER)
        return;
    for (unsigned i = 0; i < e->peers;)
        if (!e->peer[i].met && e->peer[i].guid != e->master)
            forget(e, &e->peer[i]);
        else
            i++;
}

// Whom a discovering manager gives way to. A master before all others; one that stands still only by rank.
static struct election_peer *ruler(struct election *e)
{
    struct election_peer *best = NULL;
    bool best_rules = false;
    for (unsigned i = 0; i < e->peers; i++) {
        struct election_peer *p = &e->peer[i];
        if (p->missed > 0 || p->idle || p->state == MAD_SM_NOT_ACTIVE)
            continue;
        bool rules = p->state == MAD_SM_MASTER && p->guid != e->given_by && !(p->frozen && !better(e, p));
        if (!rules && !(better(e, p) && trusted(e, p)))
            continue;
        if (best == NULL || (rules && !best_rules) ||
            (rules == best_rules && ranks_above(p->priority, p->guid, best->priority, best->guid))) {
            best = p;
            best_rules = rules;
        }
    }
    return best;
}

// Somebody below may have become master since we met: two discoveries at the same time. True: answers are
// awaited.
static bool ask_again(struct election *e, mono_t now)
{
    bool wait = false;
    if (!e->settling) {
        e->settling = true;
        e->settle_began = now;
        for (unsigned i = 0; i < e->peers; i++)
            if (e->peer[i].state != MAD_SM_NOT_ACTIVE)
                poll(e, &e->peer[i]);
    }
    for (unsigned i = 0; i < e->peers; i++)
        wait |= e->peer[i].polled;
    return wait;
}

static enum election_verdict settle_master(struct election *e, mono_t now)
{
    if (hand_over(e, now))
        return ELECTION_WAIT;
    for (unsigned i = 0; i < e->peers; i++)
        if (e->peer[i].yields)
            return ELECTION_WAIT;
    return ELECTION_PROCEED;
}

static enum election_verdict settle_discovering(struct election *e, mono_t now)
{
    struct election_peer *p = ruler(e);

    if (p == NULL && ask_again(e, now))
        return ELECTION_WAIT;
    if (p == NULL)
        p = ruler(e);
    if (p != NULL) {
        stand_by(e, p, now);
        return ELECTION_STAND_BY;
    }
    become_master(e, now);
    return settle_master(e, now);
}

enum election_verdict election_settle(struct election *e, mono_t now)
{
    drop_unmet(e);
    switch (e->state) {
    case MAD_SM_DISCOVERING:
        return settle_discovering(e, now);
    case MAD_SM_MASTER:
        return settle_master(e, now);
    case MAD_SM_NOT_ACTIVE:
    case MAD_SM_STANDBY: // what the polls say decides
        break;
    }
    return ELECTION_STAND_BY;
}

// --- polls ---

static void missed(struct election *e, struct election_peer *p)
{
    p->missed++;
    if (e->state == MAD_SM_STANDBY && p->guid == e->master) {
        if (p->missed >= e->o.miss_limit)
            master_lost(e, p);
    } else if (e->state == MAD_SM_MASTER && p->missed >= e->o.miss_limit) {
        forget(e, p);
    }
}

// It is master and ranks below: as far as it knows, too?
static void ask(struct election *e, struct election_peer *p, mono_t now)
{
    if (p->state != MAD_SM_MASTER || better(e, p) || !trusted(e, p) ||
        (p->was_asked && mono_sub(now, p->asked) < ASK_EVERY))
        return;
    p->was_asked = true;
    p->asked = now;
    push(e, ELECTION_ASK, p, NULL);
}

static void master_heard(struct election *e, struct election_peer *p, mono_t now)
{
    bool above = better(e, p) && p->state != MAD_SM_NOT_ACTIVE;

    if (p->state != MAD_SM_MASTER && !above) { // not master any more, and not going to be it before us
        missed(e, p);
        return;
    }
    p->missed = 0;
    if (p->still >= p->still_limit) {
        p->frozen = true;
        p->still = 0;
        p->still_limit = p->still_limit * 2 < STILL_MAX ? p->still_limit * 2 : STILL_MAX;
        discover(e, "master-still");
    } else if (p->state != MAD_SM_MASTER && mono_sub(now, p->waited_since) >= IDLE) {
        p->idle = true;
        p->shy_until = mono_add(now, IDLE_SHY);
        discover(e, "master-idle");
    } else {
        ask(e, p, now);
    }
}

static bool is_master(const struct election *e, uint64_t guid)
{
    const struct election_peer *p = election_peer(e, guid);
    return p != NULL && p->state == MAD_SM_MASTER;
}

void election_heard(struct election *e, uint64_t guid, const struct mad_sm_info *si, mono_t now)
{
    struct election_peer *p = find(e, guid);

    if (p == NULL)
        return;
    if (si->guid != guid) { // another one sits there now; the next discovery will meet it
        election_silent(e, guid, now);
        return;
    }
    learn(e, p, si, false, now);
    switch (e->state) {
    case MAD_SM_STANDBY:
        if (guid == e->master)
            master_heard(e, p, now);
        else if (p->state == MAD_SM_MASTER && !is_master(e, e->master))
            stand_by(e, p, now); // whom we waited for has given the fabric on, or never had it
        break;
    case MAD_SM_MASTER:
        p->missed = 0;
        if (guid == e->handing && e->handing_lost)
            handing_seen(e, p, now);
        else
            ask(e, p, now);
        break;
    case MAD_SM_DISCOVERING:
        p->missed = 0;
        break;
    case MAD_SM_NOT_ACTIVE:
        break;
    }
}

void election_silent(struct election *e, uint64_t guid, mono_t now)
{
    struct election_peer *p = find(e, guid);

    if (p == NULL)
        return;
    p->polled = false;
    if (e->state == MAD_SM_MASTER && guid == e->handing && e->handing_lost)
        not_taken(e, p, now);
    missed(e, p);
}

// --- controls ---

static uint16_t handover(struct election *e, struct election_peer *p, mono_t now)
{
    push(e, ELECTION_ACKNOWLEDGE, p, NULL);
    switch (e->state) {
    case MAD_SM_DISCOVERING: // it has met us before we have met everybody
        e->given_by = p->guid;
        break;
    case MAD_SM_STANDBY:
        become_master(e, now);
        break;
    case MAD_SM_MASTER:
        e->handing = e->handing == p->guid ? 0 : e->handing; // each to the other: priorities were changed
        break;
    case MAD_SM_NOT_ACTIVE:
        break;
    }
    p->yields = p->fought = false;
    if (!p->gave || mono_sub(now, p->given) >= REPEATED) {
        push(e, ELECTION_GIVEN, p, NULL);
        push(e, ELECTION_SWEEP, NULL, "handover");
    }
    p->gave = true;
    p->given = now;
    return 0;
}

// Which control is legal in which state, from whom (14.4.1).
static bool legal(const struct election *e, uint32_t attr_mod, enum mad_sm_state from, uint64_t guid)
{
    switch (attr_mod) {
    case MAD_SM_HANDOVER:
        return from == MAD_SM_MASTER && e->state != MAD_SM_NOT_ACTIVE;
    case MAD_SM_ACKNOWLEDGE:
        return (from == MAD_SM_STANDBY || from == MAD_SM_MASTER) &&
               (e->state == MAD_SM_STANDBY || (e->state == MAD_SM_MASTER && e->handing == guid));
    case MAD_SM_DISABLE:
    case MAD_SM_DISCOVER:
        return from == MAD_SM_MASTER && e->state == MAD_SM_STANDBY;
    case MAD_SM_STANDBY_REQUEST:
        return from == MAD_SM_MASTER && e->state == MAD_SM_NOT_ACTIVE;
    default:
        return false;
    }
}

static uint16_t obey(struct election *e, uint32_t attr_mod, struct election_peer *p, mono_t now)
{
    switch (attr_mod) {
    case MAD_SM_HANDOVER:
        return handover(e, p, now);
    case MAD_SM_ACKNOWLEDGE:
        if (e->state == MAD_SM_MASTER)
            taken(e, p, now);
        return 0;
    case MAD_SM_DISABLE:
        e->disabled = true;
        e->master = 0;
        set_state(e, MAD_SM_NOT_ACTIVE);
        push(e, ELECTION_DISABLED, p, NULL);
        return 0;
    case MAD_SM_STANDBY_REQUEST:
        e->disabled = false;
        stand_by(e, p, now);
        return 0;
    case MAD_SM_DISCOVER:
        discover(e, "discover");
        return 0;
    default:
        return MAD_STATUS_BAD_VALUE;
    }
}

uint16_t election_control(struct election *e, uint32_t attr_mod, const struct mad_sm_info *from, mono_t now)
{
    struct election_peer *p = find(e, from->guid),
                         stranger = {.guid = from->guid, .priority = from->priority};

    if (from->guid == e->o.guid)
        return MAD_STATUS_BAD_VALUE;
    if (e->o.sm_key != 0 && from->sm_key != e->o.sm_key) {
        if (p != NULL && !p->told_key)
            push(e, ELECTION_WRONG_KEY, p, NULL);
        else if (p == NULL && !e->told_stranger)
            push(e, ELECTION_WRONG_KEY, &stranger, NULL);
        if (p != NULL)
            p->told_key = true;
        else
            e->told_stranger = true;
        return MAD_STATUS_BAD_VALUE;
    }
    if (!legal(e, attr_mod, state_of(from), from->guid))
        return MAD_STATUS_BAD_VALUE;
    if (p == NULL) { // not met yet: it has been faster
        p = add(e, from);
        if (p == NULL)
            return MAD_STATUS_BAD_VALUE;
        learn(e, p, from, true, now);
        p->met = true;
    }
    p->missed = 0;
    return obey(e, attr_mod, p, now);
}

void election_priority(struct election *e, uint8_t priority, mono_t now)
{
    e->o.priority = priority;
    e->next_poll = now;
    for (unsigned i = 0; i < e->peers; i++) {
        e->peer[i].shy_until = (mono_t){0};
        watch_second(e, &e->peer[i], now);
    }
}

// --- time ---

enum mad_sm_state election_shown(const struct election *e)
{
    return e->handing != 0 ? MAD_SM_STANDBY : e->state;
}

static bool hurried(const struct election *e)
{
    for (unsigned i = 0; i < e->peers; i++)
        if (e->peer[i].yields)
            return true;
    return false;
}

static void poll_all(struct election *e, mono_t now)
{
    int64_t ns = hurried(e) && e->o.poll_ns > HURRY ? HURRY : e->o.poll_ns;

    if (mono_sub(now, e->next_poll) < 0)
        return;
    e->next_poll = mono_add(now, ns);
    bool all = e->state == MAD_SM_MASTER || !is_master(e, e->master);
    for (unsigned i = 0; i < e->peers; i++)
        if (all || e->peer[i].guid == e->master)
            poll(e, &e->peer[i]);
}

static void end_patience(struct election *e, mono_t now)
{
    for (unsigned i = 0; i < e->peers; i++) {
        struct election_peer *p = &e->peer[i];
        if (!p->yields || mono_sub(now, p->yield_until) < 0)
            continue;
        p->yields = false;
        p->fought = true;
        push(e, ELECTION_SECOND_MASTER, p, NULL);
    }
}

bool election_due(const struct election *e, mono_t *ret)
{
    if (e->state != MAD_SM_STANDBY && (e->state != MAD_SM_MASTER || e->peers == 0))
        return false;
    *ret = e->next_poll;
    return true;
}

void election_timer(struct election *e, bool quiet, mono_t now)
{
    if (e->state == MAD_SM_MASTER) {
        end_patience(e, now);
        if (quiet)
            (void)hand_over(e, now);
    }
    if (e->state == MAD_SM_MASTER || e->state == MAD_SM_STANDBY)
        poll_all(e, now);
}
