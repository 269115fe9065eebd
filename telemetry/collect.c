// SPDX-License-Identifier: Apache-2.0
// A round: one agent is asked for its ports. First, where it is new, for its ClassPortInfo, which tells what
// it can; then up to per_device lanes take one port after the other.
//
// MADs of a sweep, of an agent that is well: one a port with extended error counters, two with others; at the
// detail interval up to three more a port; one ClassPortInfo when it is new. Between sweeps, for error
// counters: one a switch that can sum all its ports, and one a port where the sum has changed; else one a
// port. An agent that does not answer: up to per_device requests until it is known for that
// (MISSES_SILENT time-outs in a row), one MAD a sweep afterwards. What refuses an attribute, or drops the
// question where it need not have it, is not asked for it for an hour, or until it begins anew.
//
// Answers: for another port than asked, or nonsense (accum.c): dropped, the port is unread for that sweep.
// Late ones, after the last time-out, reach nobody: the engine knows each try by a number of its own.
#include "telemetry/telemetry_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/xalloc.h"

#define NO_SLOT TELE_SLOT_NONE
#define TIMED 16 // one of so many answers is timed: the clock costs as much as an answer

static void on_answer(void *arg, uint64_t user, const struct mad_result *r);

void agent_new(struct agent *a)
{
    a->state = AGENT_NEW;
    a->to = a->lid;
    a->misses = 0;
    a->refused = a->proved = 0;
    a->sum_known = false;
}

static bool has_speed_counters(const struct tele *t, uint32_t slot)
{
    const struct tele_port *p = &t->table.port[slot];
    if (p->port == ID_NONE)
        return false;
    const struct port_attrs *pa = &t->table.fabric->port[p->port].a;
    return pa->speed_ext_active || pa->fdr10;
}

static bool is_full(const struct tele *t, uint32_t slot, enum ask k)
{
    return t->o.clear_saturated && accum_full(&t->accum, slot) & ask_counters(k) & t->reading.counters;
}

// Whether a lane asks for k now that it is at this port.
static bool wants(const struct tele *t, const struct agent *a, uint32_t slot, enum ask k, enum ask after)
{
    bool sweep = a->round == ROUND_SWEEP, starts = after == ASK_INFO;
    bool data = starts ? !a->second : after < ASK_SPEED, detail = !data && sweep && a->detail;
    if (!agent_can(a, k))
        return false;
    switch (k) {
    case ASK_EXTENDED:
        return data && agent_is_extended(a) && (sweep || a->additional);
    case ASK_CLASSIC:
        return data && !agent_has_all(a);
    case ASK_CLEAR_CLASSIC:
        return after == ASK_CLASSIC && is_full(t, slot, k);
    case ASK_SPEED:
        return detail && has_speed_counters(t, slot);
    case ASK_RCV_DETAIL:
    case ASK_XMIT_DETAIL:
        return detail;
    case ASK_CLEAR_RCV_DETAIL:
        return after == ASK_RCV_DETAIL && is_full(t, slot, k);
    case ASK_CLEAR_XMIT_DETAIL:
        return after == ASK_XMIT_DETAIL && is_full(t, slot, k);
    case ASK_INFO:
    case ASK_SUM:
    case ASK_VL_WAIT:
    case ASKS:
        break;
    }
    return false;
}

// Whether the device is bound to have it, by ClassPortInfo: silence is not a way to refuse it.
static bool is_due(enum ask k)
{
    return k == ASK_INFO || k == ASK_EXTENDED || k == ASK_CLASSIC;
}

static void send(struct tele *t, struct agent *a, uint32_t slot, enum ask k)
{
    bool first = !is_due(k) && !(a->proved >> k & 1);
    ask_send(t, a, slot, k,
             first                                       ? ASK_PROBE
             : k == ASK_INFO && a->state == AGENT_SILENT ? ASK_ONCE
                                                         : ASK_USUAL,
             on_answer);
}

static void lane_ends(struct tele *t, struct agent *a)
{
    if (--a->lanes > 0)
        return;
    enum agent_round r = a->round;
    a->round = ROUND_NONE;
    tele_round_ended(t, a, r);
}

// The same port's next attribute.
static bool lane_stays(struct tele *t, struct agent *a, uint32_t slot, enum ask after)
{
    if (slot == NO_SLOT || t->slot_agent[slot] != (uint32_t)(a - t->agent) ||
        t->table.port[slot].port == ID_NONE)
        return false;
    for (unsigned k = after + 1; k < ASKS; k++)
        if (wants(t, a, slot, k, after)) {
            send(t, a, slot, k);
            return true;
        }
    return false;
}

static bool is_done(const struct tele *t, const struct agent *a, uint32_t slot)
{
    uint64_t of = a->second ? t->detail_counters : t->data_counters;
    return a->round == ROUND_SWEEP && t->fresh[slot] & of;
}

// The first port's details, the last of which is not asked for or not answered yet: one lane is enough.
static bool feels_its_way(const struct agent *a)
{
    return a->second && !((a->proved | a->refused) >> ASK_XMIT_DETAIL & 1);
}

// The next port to be asked, in the second pass too; false when there is none.
static bool next_slot(struct agent *a, uint32_t *ret_slot)
{
    if (a->cursor >= a->num && a->round == ROUND_SWEEP && a->detail && !a->second) {
        a->second = true;
        a->cursor = 0;
    }
    if (a->cursor >= a->num)
        return false;
    *ret_slot = a->slot[a->cursor++];
    return true;
}

static void lane_goes_on(struct tele *t, struct agent *a, uint32_t slot, enum ask after)
{
    bool well = t->active && a->state == AGENT_READY && a->lid;
    if (well && lane_stays(t, a, slot, after))
        return;
    while (well && !(a->lanes > 1 && feels_its_way(a)) && next_slot(a, &slot)) {
        if (is_done(t, a, slot) || !lane_stays(t, a, slot, ASK_INFO))
            continue;
        if (a->second && !feels_its_way(a) && a->lanes < t->o.per_device && a->cursor < a->num) {
            a->lanes++;
            lane_goes_on(t, a, NO_SLOT, ASKS);
        }
        return;
    }
    lane_ends(t, a);
}

// More lanes beside the one that is here, until one has nothing to do: all is asked for, or, where all had
// come late and was counted in this sweep already, the first port's details are felt for.
static void lanes_begin(struct tele *t, struct agent *a)
{
    bool went = true;
    while (went && a->lanes < t->o.per_device && a->cursor < a->num) {
        unsigned before = a->lanes++;
        lane_goes_on(t, a, NO_SLOT, ASKS);
        went = a->lanes > before;
    }
    lane_goes_on(t, a, NO_SLOT, ASKS);
}

static bool can_sum(const struct agent *a)
{
    return a->key_port == 0 && a->num > 1 && a->caps & MAD_PM_CAP_ALL_PORT_SELECT && agent_can(a, ASK_SUM);
}

void round_begin(struct tele *t, struct agent *a, enum agent_round r)
{
    int64_t now = loop_now(t->loop).ns;
    a->round = r;
    a->cursor = 0;
    a->second = false;
    a->began_anew = a->stood = a->resets = 0;
    a->lanes = 1;
    if (a->refused && now - a->refused_at >= REFUSED_NS)
        a->refused = 0;
    if (a->state == AGENT_NO_PMA && !a->refused)
        a->state = AGENT_NEW;
    if (!a->lid || a->num == 0 || a->state == AGENT_NO_PMA || (r == ROUND_ERRORS && a->state != AGENT_READY))
        lane_ends(t, a);
    else if (a->state != AGENT_READY)
        send(t, a, NO_SLOT, ASK_INFO);
    else if (r == ROUND_ERRORS && can_sum(a))
        send(t, a, NO_SLOT, ASK_SUM);
    else
        lanes_begin(t, a);
}

// --- what comes back ---

static void mark(struct tele *t, uint32_t slot, enum tele_unread why)
{
    struct tele_port *p = &t->table.port[slot];
    if (p->unread == TELE_GONE || t->fresh[slot] & t->data_counters)
        return;
    p->unread = (uint8_t)why;
}

static void mark_all(struct tele *t, const struct agent *a, enum tele_unread why)
{
    for (unsigned i = 0; i < a->num; i++)
        mark(t, a->slot[i], why);
}

static void not_read(struct tele *t, struct agent *a, enum tele_unread why, const char *text)
{
    mark_all(t, a, why);
    if (a->told)
        return;
    a->told = true;
    tele_event(t, "counters-unread", "warning", a, text);
}

static void read_again(struct tele *t, struct agent *a)
{
    if (a->told)
        tele_event(t, "counters-read", "info", a, "its counters are read again");
    a->told = false;
}

static void refuse(struct tele *t, struct agent *a, enum ask k)
{
    if (a->refused == 0)
        a->refused_at = loop_now(t->loop).ns;
    a->refused |= (uint16_t)(1u << k);
}

static void missed(struct tele *t, struct agent *a, uint32_t slot, enum ask k)
{
    t->st.timeouts++;
    if (!is_due(k)) { // some agents drop what they do not know
        refuse(t, a, k);
        return;
    }
    if (slot != NO_SLOT)
        mark(t, slot, TELE_NO_ANSWER);
    // Every try of a first question is as good as several of later ones.
    a->misses = k == ASK_INFO ? MISSES_SILENT : (uint8_t)(a->misses + (a->misses < 255));
    if (a->misses < MISSES_SILENT || a->state == AGENT_SILENT)
        return;
    a->state = AGENT_SILENT;
    a->refused = 0; // what was dropped for being dead is asked again
    not_read(t, a, TELE_NO_ANSWER, "its performance agent does not answer");
}

static void refused(struct tele *t, struct agent *a, uint32_t slot, enum ask k, uint16_t status)
{
    char text[120];
    t->st.refused++;
    if ((status & MAD_STATUS_CODE_MASK) == 0 && status & MAD_STATUS_BUSY) {
        if (slot != NO_SLOT)
            mark(t, slot, TELE_REFUSED);
        return;
    }
    if (k == ASK_INFO) {
        refuse(t, a, k);
        a->state = AGENT_NO_PMA;
        snprintf(text, sizeof(text),
                 "it has no performance agent: ClassPortInfo is answered with status 0x%04x", status);
        not_read(t, a, TELE_NO_PMA, text);
        return;
    }
    // Extended counters that one port does not give are not worth to be left out with all.
    uint16_t code = status & MAD_STATUS_CODE_MASK;
    if (k == ASK_EXTENDED ? code == MAD_STATUS_BAD_METHOD_ATTR || code == MAD_STATUS_BAD_METHOD
                          : k != ASK_CLASSIC)
        refuse(t, a, k);
    if (k == ASK_EXTENDED || k == ASK_CLASSIC)
        mark(t, slot, TELE_REFUSED);
}

static void tell_full(struct tele *t, const struct agent *a, uint32_t slot, uint64_t full)
{
    char text[200];
    unsigned c = (unsigned)__builtin_ctzll(full), more = (unsigned)__builtin_popcountll(full) - 1;
    snprintf(text, sizeof(text),
             "port %u: %s stands at its maximum%s: it counts no further until it is cleared",
             t->table.port[slot].num, tele_rows[c].ibta, more ? ", and others" : "");
    tele_event(t, "counter-saturated", "info", a, text);
}

static void found(struct tele *t, struct agent *a, uint32_t slot, const struct accum_found *f)
{
    struct tele_port *p = &t->table.port[slot];
    t->st.wraps += f->wrapped != 0;
    t->st.saturated += (unsigned)__builtin_popcountll(f->full);
    if (f->full && !t->o.clear_saturated)
        tell_full(t, a, slot, f->full);
    if (f->cleared || f->accepted) {
        if (p->reset_at < t->began || p->reset_at == 0) {
            p->resets++;
            a->resets++;
            t->st.resets++;
        }
        p->reset_at = loop_now(t->loop).ns;
    }
    if (f->whole)
        a->began_anew++;
    else if (f->stood)
        a->stood++;
}

// Whether it was believed.
static bool take(struct tele *t, struct agent *a, uint32_t slot, const struct mad_result *r)
{
    struct accum_reading *rd = &t->reading;
    struct accum_found f;
    const int64_t *at = &t->table.at[(uint64_t)slot * TELE_GROUPS];
    rd->at = loop_now(t->loop).ns - r->rtt_ns / 2;
    rd->slack = r->rtt_ns + 20 * MONO_MS;
    for (unsigned g = 0; g < TELE_GROUPS; g++)
        if (rd->groups >> g & 1 && rd->at <= at[g])
            rd->at = at[g] + 1;
    if (a->round == ROUND_ERRORS) { // the rest keeps the sweep's interval
        rd->groups = 1u << TELE_ERRORS;
        t->errors_read = true;
        rd->counters &= t->error_counters;
    }
    accum_read(&t->accum, &t->table, slot, rd, &f);
    if (f.nonsense) {
        t->st.nonsense++;
        mark(t, slot, TELE_WRONG);
        return false;
    }
    t->fresh[slot] |= rd->counters & t->table.have[slot];
    found(t, a, slot, &f);
    if (t->fresh[slot] & t->data_counters) {
        t->table.port[slot].unread = TELE_READ;
        t->table.port[slot].unread_since = 0;
    }
    return true;
}

static void info_came(struct tele *t, struct agent *a, const struct mad_result *r)
{
    bool usable;
    answer_info(a, r->data, &usable);
    if (!usable) {
        refuse(t, a, ASK_INFO);
        a->state = AGENT_NO_PMA;
        not_read(t, a, TELE_REFUSED,
                 "its performance agent sends us to another queue pair or GID, which is not followed");
        lane_ends(t, a);
        return;
    }
    a->state = AGENT_READY;
    a->refused &= (uint16_t) ~(1u << ASK_INFO);
    read_again(t, a);
    lanes_begin(t, a);
}

static void sum_came(struct tele *t, struct agent *a, const struct mad_result *r)
{
    uint64_t hash;
    bool says = answer_sum(t, a, r->data, &hash), same = a->sum_known && a->sum == hash;
    a->sum = hash;
    a->sum_known = says;
    if (says && same)
        lane_ends(t, a);
    else
        lanes_begin(t, a);
}

static void came(struct tele *t, struct agent *a, uint32_t slot, enum ask k, const struct mad_result *r)
{
    switch (k) {
    case ASK_INFO:
        info_came(t, a, r);
        return;
    case ASK_SUM:
        sum_came(t, a, r);
        return;
    case ASK_CLEAR_CLASSIC:
    case ASK_CLEAR_RCV_DETAIL:
    case ASK_CLEAR_XMIT_DETAIL:
        t->st.cleared++;
        accum_clear(&t->accum, &t->table, slot, ask_counters(k) & accum_full(&t->accum, slot), true);
        break;
    case ASK_EXTENDED:
    case ASK_CLASSIC:
    case ASK_SPEED:
    case ASK_RCV_DETAIL:
    case ASK_XMIT_DETAIL:
        if (!answer_read(t, a, slot, k, r->data)) {
            t->st.nonsense++;
            mark(t, slot, TELE_WRONG);
        } else if (take(t, a, slot, r)) {
            break;
        }
        lane_goes_on(t, a, NO_SLOT, ASKS); // not even its other attributes
        return;
    case ASK_VL_WAIT:
    case ASKS:
        return;
    }
    lane_goes_on(t, a, slot, k);
}

static void failed(struct tele *t, struct agent *a, uint32_t slot, enum ask k, const struct mad_result *r)
{
    bool clear = k == ASK_CLEAR_CLASSIC || k == ASK_CLEAR_RCV_DETAIL || k == ASK_CLEAR_XMIT_DETAIL;
    if (clear && r->status != 0)
        accum_clear(&t->accum, &t->table, slot, ask_counters(k) & accum_full(&t->accum, slot), false);
    if (r->status == 0)
        refused(t, a, slot, k, r->mad_status);
    else if (r->status != -ECANCELED)
        missed(t, a, slot, k);
    // An attribute that it does not have leaves the port's others; so does the sum.
    if (k == ASK_SUM)
        lanes_begin(t, a);
    else
        lane_goes_on(t, a, k != ASK_INFO && (r->status == 0 || !is_due(k)) ? slot : NO_SLOT, k);
}

// Without what asking the clock takes.
static uint64_t spent_since(int64_t began)
{
    static int64_t clock = INT64_MAX;
    int64_t now = thread_cpu_ns(), again = thread_cpu_ns();
    if (again - now < clock)
        clock = again - now;
    return now - began > clock ? (uint64_t)(now - began - clock) : 0;
}

static void on_answer(void *arg, uint64_t user, const struct mad_result *r)
{
    struct tele *t = arg;
    struct agent *a = &t->agent[user >> 4 & 0xfffffff];
    uint32_t slot = (uint32_t)(user >> 32);
    enum ask k = user & 15;
    bool timed = t->answers++ % TIMED == 0;
    int64_t began = timed ? thread_cpu_ns() : 0;

    t->asked--;
    t->st.mads += r->tries;
    if (r->status == 0) {
        a->misses = 0;
        a->proved |= (uint16_t)(1u << k);
    }
    if (!t->active || (slot != NO_SLOT && t->table.port[slot].port == ID_NONE))
        lane_goes_on(t, a, NO_SLOT, ASKS);
    else if (r->status == 0 &&
             (r->mad_status == 0 || (k == ASK_INFO && r->mad_status == MAD_STATUS_REDIRECT)))
        came(t, a, slot, k, r);
    else
        failed(t, a, slot, k, r);
    if (timed)
        t->st.since_ns += spent_since(began) * TIMED;
}

// --- waits by virtual lane, on demand ---

static void vl_end(struct vl_ask *v, int status, const char *text, const uint8_t *data)
{
    struct tele_vl_waits w = {.status = status, .text = text};
    struct mad_port_vl_xmit_wait_counters c;
    if (data != NULL) {
        mad_port_vl_xmit_wait_counters_decode(data, &c);
        for (unsigned i = 0; i < 16; i++)
            w.ticks[i] = c.port_vl_xmit_wait[i];
    }
    if (v->prev != NULL)
        v->prev->next = v->next;
    else
        v->t->vl = v->next;
    if (v->next != NULL)
        v->next->prev = v->prev;
    v->done(v->arg, &w);
    free(v);
}

static void vl_answer(void *arg, uint64_t user, const struct mad_result *r)
{
    struct vl_ask *v = arg;
    (void)user;
    v->t->st.mads += r->tries;
    if (r->status != 0)
        vl_end(v, r->status == -ECANCELED ? -ECANCELED : -ETIMEDOUT, "the device does not answer", NULL);
    else if (r->mad_status != 0)
        vl_end(v, -EOPNOTSUPP, "the device does not count waits by virtual lane", NULL);
    else if (r->data[1] != v->port)
        vl_end(v, -EPROTO, "the device answered for another port", NULL);
    else
        vl_end(v, 0, "", r->data);
}

static void vl_none(void *arg)
{
    struct vl_ask *v = arg;
    vl_end(v, -ENOENT, v->text, NULL);
}

void tele_vl_wait(struct tele *t, uint64_t node_guid, uint8_t port, tele_vl_wait_fn *done, void *arg)
{
    struct vl_ask *v = xcalloc(1, sizeof(*v));
    uint32_t slot = tele_slot(&t->table, node_guid, port);
    const struct agent *a = NULL;
    *v = (struct vl_ask){.t = t, .port = port, .done = done, .arg = arg, .next = t->vl};
    if (t->vl != NULL)
        t->vl->prev = v;
    t->vl = v;
    if (slot != TELE_SLOT_NONE && t->table.port[slot].port != ID_NONE)
        a = &t->agent[t->slot_agent[slot]];
    if (a != NULL && t->active && a->lid) {
        ask_vl_wait(a, t->engine, port, vl_answer, v);
        return;
    }
    v->text = slot == TELE_SLOT_NONE ? "there is no such port with a cable" : "the port cannot be reached";
    loop_task_init(&v->none, "telemetry", vl_none, v);
    loop_post(t->loop, &v->none);
}
