// SPDX-License-Identifier: Apache-2.0
// Other subnet managers (IBA 14.4): what they ask and tell by SMInfo, the polls, and what the election
// (election.h) decides, carried out.
//
// A manager is found by a sweep that reads a PortInfo with the IsSM bit (sm_election_met()) or by its own
// Set(SMInfo). It is asked by the directed route on which it was found; after a miss by LID and by route in
// turn, since the route may cross a link that is gone while the manager lives. Its place is kept by PortGUID
// for as long as the election knows it.
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/hash.h"
#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/election.h"
#include "sm/sm_priv.h"

#define TOLD_BURST 10 // events of one manager that changes all the time; one more every ten seconds

struct place { // of a manager
    uint64_t guid;
    uint64_t node; // NodeGUID; 0 = only its LID is known
    unsigned num;
    uint16_t lid;
    struct dr_path path; // as it was when found
    char where[200];     // node[port] (NodeGUID), for people
    char desc[65];
    unsigned told;
    mono_t told_at;
};

struct sm_election {
    struct election e;
    struct loop_timer timer;
    struct loop_task again; // a discovery that waits asks once more
    bool waiting;
    struct place place[ELECTION_PEERS];
    unsigned places;
};

bool sm_others_known(const struct sm *sm)
{
    return sm->election != NULL && sm->election->e.peers > 0;
}

// --- places ---

static struct place *place_of(struct sm_election *se, uint64_t guid)
{
    for (unsigned i = 0; i < se->places; i++)
        if (se->place[i].guid == guid)
            return &se->place[i];
    return NULL;
}

static struct place *place_for(struct sm_election *se, uint64_t guid)
{
    struct place *p = place_of(se, guid);
    if (p == NULL && se->places < ELECTION_PEERS)
        p = &se->place[se->places++];
    for (unsigned i = 0; p == NULL && i < se->places; i++)
        if (election_peer(&se->e, se->place[i].guid) == NULL)
            p = &se->place[i];
    if (p != NULL && p->guid != guid)
        *p = (struct place){.guid = guid};
    return p;
}

static void place_forget(struct sm_election *se, uint64_t guid)
{
    struct place *p = place_of(se, guid);
    if (p != NULL)
        *p = se->place[--se->places];
}

static const char *where(struct sm_election *se, uint64_t guid)
{
    const struct place *p = place_of(se, guid);
    return p != NULL ? p->where : "";
}

// --- asking and telling others ---

static void answered(void *arg, uint64_t guid, const struct mad_result *r);
static void handed(void *arg, uint64_t guid, const struct mad_result *r);

static void acknowledged(void *arg, uint64_t guid, const struct mad_result *r)
{
    (void)arg, (void)guid, (void)r;
}

static void request(struct sm *sm, uint64_t guid, uint8_t method, uint32_t control, enum mad_sm_state state)
{
    struct sm_election *se = sm->election;
    struct place *p = place_of(se, guid);
    const struct election_peer *peer = election_peer(&se->e, guid);
    const struct sm_dev *d = p != NULL && p->node != 0 ? sm_dev_find(sm, p->node) : NULL;
    uint8_t data[MAD_SMP_DATA_SIZE] = {0};
    struct mad_request r = {
        .mgmt_class = MAD_CLASS_SM_DR,
        .method = method,
        .attr_id = MAD_ATTR_SM_INFO,
        .attr_mod = control,
        .prio = MAD_PRIO_SMP,
        .device = hash_mix64(guid + 1), // a silent manager holds up nothing else of its node
        .retries = -1,
        .done = control == MAD_SM_HANDOVER ? handed
                : control                  ? acknowledged
                                           : answered,
        .arg = sm,
        .user = guid,
    };
    if (p == NULL) { // cannot be: met or heard of, it has a place
        return;
    }
    if (method == MAD_METHOD_GET) {
        r.timeout_ns = se->e.o.poll_ns / 4;
        r.retries = 1;
    } else {
        struct mad_sm_info si = {.guid = sm->own.port_guid,
                                 .sm_key = sm->o.sm_key,
                                 .act_count = ++sm->act_count,
                                 .priority = sm->o.priority,
                                 .sm_state = (uint8_t)state};
        mad_sm_info_encode(&si, data);
        r.data = data;
        r.data_len = sizeof(data);
    }
    if (d != NULL && d->guid == p->node && p->num <= d->ni.num_ports) {
        (void)sm_path(sm, d, p->num, &p->path);
        r.m_key = sm_m_key(d, p->num);
    }
    r.path = &p->path;
    bool by_lid = p->node == 0 || (peer != NULL && (peer->missed & 1) != 0);
    if (by_lid && p->lid != 0 && p->lid <= LID_UCAST_MAX) {
        r.mgmt_class = MAD_CLASS_SM_LID;
        r.lid = p->lid;
    }
    mad_engine_send(sm->engine, &r);
}

// Trap 144 as a device sends whose manager's priority has changed: a master that gets it looks at us.
static void ask_to_look(struct sm *sm, uint64_t guid)
{
    const struct place *p = place_of(sm->election, guid);
    uint8_t mad[MAD_SIZE] = {1, MAD_CLASS_SM_LID, 1, MAD_METHOD_TRAP};
    struct transport_port own;
    struct mad_trap_144 t = {.other_local_changes = true, .sm_priority_change = true};
    struct mad_notice n = {.is_generic = true, .type = 4, .trap_number = MAD_TRAP_LOCAL_CHANGES}; // 4: info

    if (p == NULL || p->lid == 0 || sm->transport->ops->port(sm->transport, &own) != 0 || own.lid == 0)
        return;
    const struct sm_dev *d = sm->own_dev != DEV_NONE ? sm->dev[sm->own_dev] : NULL;
    if (d != NULL && own.num <= d->ni.num_ports && d->port[own.num].known) {
        struct mad_port_info pi;
        mad_port_info_decode(d->port[own.num].info, &pi);
        t.capability_mask = pi.capability_mask | MAD_CAP_IS_SM;
    }
    n.producer_type = d != NULL ? d->ni.node_type : MAD_NODE_CA;
    n.issuer_lid = t.lid = own.lid;
    mad_trap_144_encode(&t, n.data_details);
    mad_notice_encode(&n, mad + MAD_SMP_DATA_OFFSET);
    uint32_t tid = ++sm->act_count;
    for (unsigned i = 0; i < 4; i++)
        mad[12 + i] = (uint8_t)(tid >> (24 - 8 * i));
    mad[17] = MAD_ATTR_NOTICE;
    (void)mad_engine_reply(sm->engine, mad, &(struct mad_addr){.lid = p->lid});
}

// --- events ---

static bool may_tell(struct sm *sm, uint64_t guid)
{
    struct place *p = place_of(sm->election, guid);
    mono_t now = loop_now(sm->loop);
    if (p == NULL)
        return true;
    int64_t tens = mono_sub(now, p->told_at) / (10 * MONO_S);
    if (tens > 0) {
        p->told -= tens < p->told ? (unsigned)tens : p->told;
        p->told_at = now;
    }
    if (p->told == TOLD_BURST)
        return false;
    p->told++;
    return true;
}

static void tell_met(struct sm *sm, const struct election_peer *p)
{
    const struct election *e = &sm->election->e;
    bool above = election_better(e, p->priority, p->guid);
    if (!may_tell(sm, p->guid))
        return;
    sm_event(sm, "foreign-sm", p->state == MAD_SM_MASTER ? "warning" : "notice", where(sm->election, p->guid),
             "subnet manager " GUID_FMT ", priority %u, is %s; it ranks %s weft%s", GUID_ARG(p->guid),
             p->priority, sm_state_name((enum sm_state)p->state), above ? "above" : "below",
             e->o.sm_key != 0 && p->sm_key != 0 && p->sm_key != e->o.sm_key ? " and has another SM_Key" : "");
}

static void tell_handover(struct sm *sm, const struct election_act *a)
{
    const struct election_peer *p = &a->peer;
    const char *at = where(sm->election, p->guid);

    if (a->kind == ELECTION_GIVEN)
        sm_event(sm, "handed-over", "notice", at,
                 "the other subnet manager (" GUID_FMT ") hands the fabric over", GUID_ARG(p->guid));
    else if (a->kind == ELECTION_TAKEN)
        sm_event(sm, "gives-way", "notice", at,
                 "subnet manager " GUID_FMT ", priority %u, ranks above weft and has taken the fabric over; "
                 "standing by",
                 GUID_ARG(p->guid), p->priority);
    else
        sm_event(sm, "handover-refused", "warning", at,
                 "subnet manager " GUID_FMT ", priority %u, ranks above weft but does not take the fabric "
                 "over; %s",
                 GUID_ARG(p->guid), p->priority,
                 sm->election->e.state == MAD_SM_MASTER ? "weft keeps it"
                                                        : "it is master already: standing by");
}

static void tell(struct sm *sm, const struct election_act *a)
{
    const struct election_peer *p = &a->peer;
    const char *at = where(sm->election, p->guid);

    if (a->kind == ELECTION_MET)
        tell_met(sm, p);
    else if (a->kind == ELECTION_GONE)
        sm_event(sm, "foreign-sm-gone", "notice", at,
                 "subnet manager " GUID_FMT ", priority %u, is gone (was %s)", GUID_ARG(p->guid), p->priority,
                 sm_state_name((enum sm_state)p->state));
    else if (a->kind == ELECTION_SECOND_MASTER)
        sm_event(sm, "second-master", "warning", at,
                 "subnet manager " GUID_FMT
                 ", priority %u, is master too, ranks below weft and does not hand "
                 "over: stop it, they undo each other's work",
                 GUID_ARG(p->guid), p->priority);
    else if (a->kind == ELECTION_DISABLED)
        sm_event(sm, "sm-disabled", "warning", at,
                 "the master (" GUID_FMT ") has disabled this subnet manager; it or a restart enables it",
                 GUID_ARG(p->guid));
    else if (a->kind == ELECTION_WRONG_KEY)
        sm_event(sm, "sm-key-wrong", "warning", at,
                 "subnet manager " GUID_FMT " sends orders with another SM_Key than ours; refused",
                 GUID_ARG(p->guid));
    else
        tell_handover(sm, a);
}

// --- what the election decides ---

static void take_state(struct sm *sm)
{
    enum sm_state s = (enum sm_state)sm->election->e.state;

    if (sm->state != s)
        log_notice("sm-state", "fabric=%s from=%s to=%s", sm->o.fabric, sm_state_name(sm->state),
                   sm_state_name(s));
    sm->state = s;
    if (s == SM_STANDBY || s == SM_NOT_ACTIVE) {
        sm->up = false;
        sm_election_error(sm, &sm->error);
    }
    if (sm->cb.snapshot != NULL && !sm->sweeping)
        sm->cb.snapshot(sm->cb.arg);
}

// What a second master has done is looked for, and undone.
static void gone(struct sm *sm, const struct election_peer *p)
{
    place_forget(sm->election, p->guid);
    if (p->fought && sm->state == SM_MASTER)
        sm_resweep(sm, "second-master-gone", false);
}

static void carry_out(struct sm *sm, const struct election_act *a)
{
    switch (a->kind) {
    case ELECTION_STATE:
        take_state(sm);
        break;
    case ELECTION_POLL:
        request(sm, a->peer.guid, MAD_METHOD_GET, 0, MAD_SM_NOT_ACTIVE);
        break;
    case ELECTION_HANDOVER:
        request(sm, a->peer.guid, MAD_METHOD_SET, MAD_SM_HANDOVER, MAD_SM_MASTER);
        break;
    case ELECTION_ACKNOWLEDGE: // OpenSM takes it from a standby only
        request(sm, a->peer.guid, MAD_METHOD_SET, MAD_SM_ACKNOWLEDGE, MAD_SM_STANDBY);
        break;
    case ELECTION_ASK:
        ask_to_look(sm, a->peer.guid);
        break;
    case ELECTION_SWEEP:
        sm_resweep(sm, a->cause, false);
        break;
    case ELECTION_MET:
    case ELECTION_GONE:
    case ELECTION_SECOND_MASTER:
    case ELECTION_TAKEN:
    case ELECTION_NOT_TAKEN:
    case ELECTION_GIVEN:
    case ELECTION_DISABLED:
    case ELECTION_WRONG_KEY:
        tell(sm, a);
        if (a->kind == ELECTION_GONE)
            gone(sm, &a->peer);
        break;
    }
}

static void take_master(struct sm *sm)
{
    const struct election_peer *p = election_peer(&sm->election->e, sm->election->e.master);
    const struct place *at = p != NULL ? place_of(sm->election, p->guid) : NULL;

    if (p == NULL)
        return;
    sm->master =
        (struct mad_sm_info){.guid = p->guid, .priority = p->priority, .sm_state = (uint8_t)p->state};
    sm->master_lid = at != NULL ? at->lid : 0;
}

static void follow(struct sm *sm)
{
    struct sm_election *se = sm->election;
    struct election_act a;
    mono_t due;

    take_master(sm);
    while (election_act(&se->e, &a))
        carry_out(sm, &a);
    if (election_due(&se->e, &due))
        loop_timer_at(&se->timer, due);
    else
        loop_timer_cancel(&se->timer);
}

// After every input but the discovery's own: what it waits for may have come.
static void input(struct sm *sm)
{
    follow(sm);
    if (sm->election->waiting)
        loop_post(sm->loop, &sm->election->again);
}

static void settle_again(void *arg)
{
    struct sm *sm = arg;
    if (sm->election->waiting && sm->sweeping)
        sm_discovered(sm);
}

static void timer_fired(void *arg)
{
    struct sm *sm = arg;
    election_timer(&sm->election->e, !sm->sweeping, loop_now(sm->loop));
    input(sm);
}

static void answered(void *arg, uint64_t guid, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct mad_sm_info si;

    if (r->status == 0 && r->mad_status == 0) {
        mad_sm_info_decode(r->data, &si);
        election_heard(&sm->election->e, guid, &si, loop_now(sm->loop));
    } else {
        election_silent(&sm->election->e, guid, loop_now(sm->loop));
    }
    input(sm);
}

static void handed(void *arg, uint64_t guid, const struct mad_result *r)
{
    struct sm *sm = arg;
    election_handed(&sm->election->e, guid,
                    r->status != 0       ? ELECTION_LOST
                    : r->mad_status != 0 ? ELECTION_REFUSED
                                         : ELECTION_HANDED,
                    loop_now(sm->loop));
    input(sm);
}

// --- the sweep's side ---

void sm_election_init(struct sm *sm)
{
    struct sm_election *se = sm->election = xcalloc(1, sizeof(*se));
    election_init(&se->e, &(struct election_opts){.sm_key = sm->o.sm_key,
                                                  .priority = sm->o.priority,
                                                  .poll_ns = sm->o.poll_interval_ns});
    loop_timer_init(&se->timer, sm->loop, "sm", timer_fired, sm);
    loop_task_init(&se->again, "sm", settle_again, sm);
}

void sm_election_done(struct sm *sm)
{
    loop_timer_cancel(&sm->election->timer);
    loop_unpost(sm->loop, &sm->election->again);
    free(sm->election);
}

void sm_election_begin(struct sm *sm, bool full)
{
    sm->election->e.o.guid = sm->own.port_guid;
    sm->election->waiting = false;
    election_begin(&sm->election->e, full, loop_now(sm->loop));
    follow(sm);
}

void sm_election_met(struct sm *sm, const struct sm_dev *d, unsigned num, const struct mad_sm_info *si)
{
    struct sm_election *se = sm->election;
    struct place *p;
    struct mad_port_info pi;

    if (si->guid == sm->own.port_guid)
        return;
    election_met(&se->e, si, loop_now(sm->loop));
    p = election_peer(&se->e, si->guid) != NULL ? place_for(se, si->guid) : NULL;
    if (p != NULL) {
        p->node = d->guid;
        p->num = num;
        if (d->port[num].known) {
            mad_port_info_decode(d->port[num].info, &pi);
            p->lid = pi.lid;
        }
        (void)sm_path(sm, d, num, &p->path);
        snprintf(p->desc, sizeof(p->desc), "%s", d->desc);
        sm_port_text(d, num, p->where, sizeof(p->where));
    }
    follow(sm);
}

static void note_second_masters(struct sm *sm)
{
    const struct election *e = &sm->election->e;

    sm_notes_drop(sm, NOTE_MASTERS);
    for (unsigned i = 0; i < e->peers; i++)
        if (e->peer[i].fought)
            sm_note(sm, NOTE_MASTERS, FINDING_ERROR, "second-master", where(sm->election, e->peer[i].guid),
                    "another subnet manager (" GUID_FMT
                    ", priority %u) is master too and ranks below weft: stop it, they undo each other's work",
                    GUID_ARG(e->peer[i].guid), e->peer[i].priority);
}

enum election_verdict sm_election_settle(struct sm *sm)
{
    struct sm_election *se = sm->election;
    enum election_verdict v = election_settle(&se->e, loop_now(sm->loop));

    se->waiting = v == ELECTION_WAIT;
    follow(sm);
    if (v != ELECTION_WAIT)
        note_second_masters(sm);
    return v;
}

void sm_election_error(struct sm *sm, struct err *ret)
{
    const struct mad_sm_info *o = &sm->master;
    struct place *p = place_of(sm->election, o->guid);

    if (sm->election->e.disabled)
        err_set(ret, -EBUSY, sm->transport->name,
                "the master (" GUID_FMT ") has disabled this subnet manager; it or a restart enables it",
                GUID_ARG(o->guid));
    else
        err_set(ret, -EBUSY, p != NULL ? p->desc : "",
                "another subnet manager (" GUID_FMT
                ", priority %u, %s) runs this fabric; standing by: stop it to let weft take over",
                GUID_ARG(o->guid), o->priority, sm_state_name((enum sm_state)o->sm_state));
}

void sm_election_priority(struct sm *sm, uint8_t priority)
{
    sm->o.priority = priority;
    election_priority(&sm->election->e, priority, loop_now(sm->loop));
    input(sm);
}

static bool ranks_above(const struct election_peer *a, const struct election_peer *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->guid < b->guid;
}

static void fill_peer(const struct sm *sm, const struct election_peer *p, struct sm_peer *ret)
{
    const struct election *e = &sm->election->e;
    const struct place *at = place_of(sm->election, p->guid);

    *ret = (struct sm_peer){
        .guid = p->guid,
        .priority = p->priority,
        .state = (enum sm_state)p->state,
        .above = election_better(e, p->priority, p->guid),
        .other_key = e->o.sm_key != 0 && p->sm_key != 0 && p->sm_key != e->o.sm_key,
        .missed = p->missed,
        .heard_ns = mono_sub(loop_now(sm->loop), p->heard),
    };
    if (at == NULL)
        return;
    ret->node_guid = at->node;
    ret->port = (uint8_t)at->num;
    ret->lid = at->lid;
    snprintf(ret->node, sizeof(ret->node), "%s", at->desc);
}

unsigned sm_peers(const struct sm *sm, struct sm_peer ret[SM_PEERS_MAX])
{
    static_assert(SM_PEERS_MAX == ELECTION_PEERS, "as many as the election knows");
    const struct election *e = &sm->election->e;
    const struct election_peer *order[ELECTION_PEERS];

    for (unsigned i = 0; i < e->peers; i++) {
        unsigned at = i;
        for (; at > 0 && ranks_above(&e->peer[i], order[at - 1]); at--)
            order[at] = order[at - 1];
        order[at] = &e->peer[i];
    }
    for (unsigned i = 0; i < e->peers; i++)
        fill_peer(sm, order[i], &ret[i]);
    return e->peers;
}

// --- what others ask ---

// Known from now on by its LID, until a sweep meets it.
static void know_sender(struct sm *sm, uint64_t guid, const struct mad_addr *from)
{
    struct sm_election *se = sm->election;
    struct place *p = place_of(se, guid);
    if (p == NULL && election_peer(&se->e, guid) != NULL && (p = place_for(se, guid)) != NULL)
        snprintf(p->where, sizeof(p->where), "LID %u", from->lid);
    if (p != NULL && p->lid == 0 && from->lid <= LID_UCAST_MAX)
        p->lid = from->lid;
}

static uint16_t control(struct sm *sm, const uint8_t *mad, const struct mad_addr *from)
{
    struct mad_smp smp;
    struct mad_sm_info si;

    mad_smp_decode(mad, &smp);
    mad_sm_info_decode(mad + MAD_SMP_DATA_OFFSET, &si);
    uint16_t status = election_control(&sm->election->e, smp.attr_mod, &si, loop_now(sm->loop));
    know_sender(sm, si.guid, from);
    return status;
}

// The answer goes out before what it leads to.
void sm_info_asked(struct sm *sm, const uint8_t *mad, const struct mad_addr *from)
{
    uint8_t answer[MAD_SIZE];
    bool set = mad[3] == MAD_METHOD_SET;
    struct mad_sm_info si = {
        .guid = sm->own.port_guid,
        .sm_key = sm->o.sm_key,
        .act_count = ++sm->act_count,
        .priority = sm->o.priority,
        .sm_state = (uint8_t)election_shown(&sm->election->e),
    };
    uint16_t status = set ? control(sm, mad, from) : 0;

    if (status != 0)
        si.sm_key = 0;
    memcpy(answer, mad, MAD_SIZE);
    answer[3] = MAD_METHOD_GET_RESP;
    answer[4] = mad[1] == MAD_CLASS_SM_DR ? 0x80 : 0; // the direction bit
    answer[5] = (uint8_t)status;
    memset(answer + MAD_SMP_DATA_OFFSET, 0, MAD_SMP_DATA_SIZE);
    mad_sm_info_encode(&si, answer + MAD_SMP_DATA_OFFSET);
    mad_engine_reply(sm->engine, answer, from);
    if (set)
        input(sm);
}
