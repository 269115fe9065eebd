// SPDX-License-Identifier: Apache-2.0
// The engine's face, sending, what arrives, and the ways a transaction ends. File map: engine_priv.h.
//
// A transaction is QUEUED at its device, goes on the WIRE, and from there is answered, or goes back to the
// front of the queue after a time-out, or into BACKOFF when it could not be delivered. One that is cancelled
// on the wire is told at once (from the loop) but holds its place in the windows until its try is answered or
// timed out: what is out is out.
#include "mad/engine.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "mad/engine_priv.h"

#define ENDED_BATCH 1024
#define PUMP_BATCH 32 // sent before others get a turn: a system call each
#define WANTED_MAX_NS (60 * MONO_S)

// --- how transactions end ---

static void txn_free(struct mad_engine *e, uint32_t i)
{
    struct txn *x = txn_at(e, i);
    if (x->tries)
        tid_release(e, i);
    x->state = TXN_FREE;
    dev_txn_gone(e, x->dev);
    slab_free(&e->txns, i);
}

// Off all lists. Frees it first: done() may send.
static void finish(struct mad_engine *e, uint32_t i, struct mad_result *r)
{
    struct txn *x = txn_at(e, i);
    mad_done_fn *done = x->done;
    void *arg = x->arg;
    uint64_t user = x->user;

    if (x->ending) { // cancelled meanwhile: that will be told
        x->state = TXN_ENDED;
        return;
    }
    bool told = x->told;
    r->tries = x->tries;
    txn_free(e, i);
    if (!told && done)
        done(arg, user, r);
}

static void fail(struct mad_engine *e, uint32_t i, int status)
{
    finish(e, i, &(struct mad_result){.status = status});
}

static void end_later(struct mad_engine *e, uint32_t i, int status)
{
    struct txn *x = txn_at(e, i);
    x->ending = true;
    x->end_status = status;
    x->end_next = NONE;
    if (e->ended_head == NONE)
        e->ended_head = i;
    else
        txn_at(e, e->ended_tail)->end_next = i;
    e->ended_tail = i;
    loop_post(e->loop, &e->ended_task);
}

static void ended_fn(void *arg)
{
    struct mad_engine *e = arg;
    for (unsigned n = 0; n < ENDED_BATCH && e->ended_head != NONE; n++) {
        uint32_t i = e->ended_head;
        struct txn *x = txn_at(e, i);
        e->ended_head = x->end_next;
        x->ending = false;
        if (x->state == TXN_ENDED) {
            fail(e, i, x->end_status);
        } else {
            x->told = true;
            if (x->done)
                x->done(x->arg, x->user, &(struct mad_result){.status = x->end_status, .tries = x->tries});
        }
    }
    if (e->ended_head != NONE)
        loop_post(e->loop, &e->ended_task);
}

// --- sending ---

static void want_pump(struct mad_engine *e)
{
    if (!e->paused && e->queued)
        loop_post(e->loop, &e->pump_task);
}

static void off_wire(struct mad_engine *e, struct txn *x)
{
    struct dev *d = dev_at(e, x->dev);
    e->outstanding--;
    if (x->timeouts)
        e->repeats--;
    d->outstanding--;
    dev_refresh(e, x->dev);
    want_pump(e);
}

// Doubled; the short tries end with one of the default.
static int64_t next_timeout(const struct mad_engine *e, const struct txn *x)
{
    int64_t next = x->timeout_ns < TIMEOUT_MAX_NS / 2 ? x->timeout_ns * 2 : TIMEOUT_MAX_NS;
    return !x->charged && next > e->o.timeout_ns ? e->o.timeout_ns : next;
}

static void give_up_or_repeat(struct mad_engine *e, uint32_t i, bool timed_out, mono_t now)
{
    struct txn *x = txn_at(e, i);
    unsigned budget = timed_out ? x->retries : x->retries * UNDELIVERABLE_FACTOR;
    unsigned failed = timed_out ? x->charged : x->undeliverable;

    if (x->told || x->ending || failed > budget || !budget || x->tries == TRIES_MAX) {
        fail(e, i, timed_out ? -ETIMEDOUT : -ENETUNREACH);
        return;
    }
    if (timed_out) {
        x->timeout_ns = next_timeout(e, x);
        dev_push(e, i, true);
        want_pump(e);
    } else {
        int64_t wait = x->undeliverable > 5 ? BACKOFF_MAX_NS : BACKOFF_NS << (x->undeliverable - 1);
        x->state = TXN_BACKOFF;
        wheel_add(e, i, now.ns + wait, now.ns);
    }
    if (x->tries == 1 && x->first_timeout)
        x->first_timeout(x->arg, x->user);
}

static void undeliverable(struct mad_engine *e, uint32_t i, mono_t now)
{
    struct txn *x = txn_at(e, i);
    x->undeliverable++;
    e->stats.undeliverable++;
    e->count[x->row].undeliverable++;
    give_up_or_repeat(e, i, false, now);
}

void engine_due(struct mad_engine *e, uint32_t i, mono_t now)
{
    struct txn *x = txn_at(e, i);
    if (x->state == TXN_BACKOFF) {
        dev_push(e, i, true);
        want_pump(e);
        return;
    }
    e->stats.timeouts++;
    e->count[x->row].timeouts++;
    dev_timed_out(e, dev_at(e, x->dev), x->sent_ns);
    off_wire(e, x);
    x->timeouts++;
    x->charged += !x->estimated || x->timeout_ns >= e->o.timeout_ns;
    give_up_or_repeat(e, i, true, now);
}

static void address(const struct txn *x, struct mad_addr *to)
{
    bool smp = x->mad[1] == MAD_CLASS_SM_DR || x->mad[1] == MAD_CLASS_SM_LID;
    *to = (struct mad_addr){.lid = x->lid, .sl = x->sl};
    if (!smp) {
        to->qp = 1;
        to->remote_qpn = 1;
        to->qkey = MAD_QP1_Q_KEY;
    }
}

// How long an answer may still be of use: to the end of all the repeats.
static int64_t wanted_ns(const struct mad_engine *e, const struct txn *x)
{
    bool is_short = x->estimated && x->timeout_ns < e->o.timeout_ns;
    int64_t sum = is_short ? 2 * e->o.timeout_ns : 0, timeout = is_short ? e->o.timeout_ns : x->timeout_ns;
    for (unsigned n = x->charged; n <= x->retries && sum < WANTED_MAX_NS; n++, timeout *= 2)
        sum += timeout;
    return sum < WANTED_MAX_NS ? sum : WANTED_MAX_NS;
}

static void sent(struct mad_engine *e, uint32_t i, mono_t now)
{
    struct txn *x = txn_at(e, i);
    struct mad_count *c = &e->count[x->row];

    x->state = TXN_WIRE;
    x->prev_ns = x->sent_ns;
    x->sent_ns = now.ns;
    if (!x->tries++) {
        x->first_ns = now.ns;
    } else {
        c->retries++;
        e->stats.retries++;
    }
    c->sent++;
    e->stats.sent++;
    if (++e->outstanding > e->stats.outstanding_max)
        e->stats.outstanding_max = e->outstanding;
    if (x->timeouts)
        e->repeats++;
    dev_at(e, x->dev)->outstanding++;
    wheel_add(e, i, now.ns + x->timeout_ns, now.ns);
}

// The first of a queue, already taken off it. False: the way out is full, nothing happened.
static bool transmit(struct mad_engine *e, uint32_t i, mono_t now)
{
    struct txn *x = txn_at(e, i);
    struct mad_addr to;

    if (!x->tries)
        tid_assign(e, i);
    if (!x->timeout_ns) {
        x->timeout_ns = dev_timeout(e, dev_at(e, x->dev));
        x->estimated = true;
    }
    put32(x->mad + 12, x->tid + x->tries);
    address(x, &to);
    int r = e->t->ops->send(e->t, x->mad, &to, wanted_ns(e, x));
    if (r == -EAGAIN) {
        if (!x->tries)
            tid_release(e, i);
        dev_push(e, i, true);
        return false;
    }
    if (!r) {
        sent(e, i, now);
        return true;
    }
    if (!x->tries)
        x->first_ns = now.ns;
    x->prev_ns = x->sent_ns = now.ns;
    x->tries++;
    undeliverable(e, i, now);
    return true;
}

static void pump_fn(void *arg)
{
    struct mad_engine *e = arg;
    mono_t now = loop_now_precise(e->loop);

    // A send that fails at once takes no place, hence the count.
    for (unsigned n = 0; n < PUMP_BATCH && e->outstanding < e->o.window_total; n++) {
        unsigned prio;
        uint32_t d = dev_next(e, &prio);
        if (d == NONE)
            return;
        uint32_t i = dev_at(e, d)->q[prio].head;
        dev_unqueue(e, i);
        if (!transmit(e, i, now)) {
            e->paused = true;
            return;
        }
        dev_turn_over(e, d, prio);
    }
    if (e->outstanding < e->o.window_total)
        want_pump(e);
}

static void writable_fn(void *arg)
{
    struct mad_engine *e = arg;
    e->paused = false;
    want_pump(e);
}

void mad_engine_send(struct mad_engine *e, const struct mad_request *r)
{
    int status = txn_check(r);
    uint32_t i = slab_alloc(&e->txns), d = dev_get(e, r->device);
    if (r->like != 0)
        dev_like(e, d, r->like);
    struct txn *x = txn_at(e, i);
    int retries = r->retries < 0 ? e->o.retries : r->retries;

    // The MAD is written by txn_compose(), the rest here.
    memset((uint8_t *)x + sizeof(x->mad), 0, sizeof(*x) - sizeof(x->mad));
    x->done = r->done;
    x->first_timeout = r->first_timeout;
    x->arg = r->arg;
    x->user = r->user;
    x->gen = r->gen;
    x->timeout_ns = r->timeout_ns < 0 ? 0 : r->timeout_ns > TIMEOUT_MAX_NS ? TIMEOUT_MAX_NS : r->timeout_ns;
    x->dev = d;
    x->lid = r->mgmt_class == MAD_CLASS_SM_DR ? MAD_LID_PERMISSIVE : r->lid;
    x->row = count_row(e, r->mgmt_class, r->method, r->attr_id);
    x->sl = r->sl;
    x->retries = (uint8_t)(retries < TRIES_MAX ? retries : TRIES_MAX - 1);
    e->count[x->row].requests++;
    dev_txn_added(e, d);
    if (status) {
        x->state = TXN_ENDED;
        end_later(e, i, status);
        return;
    }
    x->prio = (uint8_t)r->prio;
    txn_compose(x->mad, r);
    dev_push(e, i, false);
    want_pump(e);
}

// --- cancelling ---

static void cancel(struct mad_engine *e, uint32_t i)
{
    struct txn *x = txn_at(e, i);

    if (x->ending || x->told)
        return;
    switch ((enum txn_state)x->state) {
    case TXN_FREE:
    case TXN_ENDED:
        return;
    case TXN_QUEUED:
        dev_unqueue(e, i);
        dev_refresh(e, x->dev);
        x->state = TXN_ENDED;
        break;
    case TXN_BACKOFF:
        wheel_del(e, i);
        x->state = TXN_ENDED;
        break;
    case TXN_WIRE:
        break;
    }
    e->stats.cancelled++;
    end_later(e, i, -ECANCELED);
}

void mad_engine_cancel_gen(struct mad_engine *e, uint64_t gen)
{
    for (uint32_t i = 0; gen && i < e->txns.used; i++)
        if (txn_at(e, i)->state != TXN_FREE && txn_at(e, i)->gen == gen)
            cancel(e, i);
}

void mad_engine_cancel_device(struct mad_engine *e, uint64_t device)
{
    uint32_t d = dev_find(e, device);
    if (d == NONE || !dev_at(e, d)->txns)
        return;
    for (uint32_t i = 0; i < e->txns.used; i++)
        if (txn_at(e, i)->state != TXN_FREE && txn_at(e, i)->dev == d)
            cancel(e, i);
}

// --- what arrives ---

static uint8_t expected_method(uint8_t method)
{
    switch (method) {
    case MAD_METHOD_SET:
        return MAD_METHOD_GET_RESP;
    case MAD_METHOD_GET_TRACE_TABLE:
        return MAD_METHOD_GET_TABLE_RESP;
    case MAD_METHOD_TRAP:
        return MAD_METHOD_TRAP_REPRESS;
    default:
        return method | MAD_METHOD_RESPONSE;
    }
}

static bool answers(const struct txn *x, const uint8_t *mad)
{
    return mad[1] == x->mad[1] && mad[3] == expected_method(x->mad[3]) && be16(mad + 16) == be16(x->mad + 16);
}

static void answered(struct mad_engine *e, uint32_t i, const uint8_t *mad, mono_t now)
{
    struct txn *x = txn_at(e, i);
    struct mad_count *c = &e->count[x->row];
    unsigned back = x->tries - 1u - be32(mad + 12) % TRIES_MAX; // 0: the last try
    int64_t since = back == 0 ? x->sent_ns : back == 1 ? x->prev_ns : x->first_ns;
    struct mad_result r = {.mad = mad, .rtt_ns = now.ns - since};

    r.data = mad + (mad[1] == MAD_CLASS_SA ? MAD_SA_DATA_OFFSET : MAD_SMP_DATA_OFFSET);
    r.mad_status = be16(mad + 4);
    if (mad[1] == MAD_CLASS_SM_DR)
        r.mad_status &= 0x7fff;
    if (r.mad_status)
        c->refused++;
    if (back || x->state != TXN_WIRE) {
        c->late++;
        e->stats.late++;
    }
    dev_answered(e, dev_at(e, x->dev), r.rtt_ns, back > 0);
    switch ((enum txn_state)x->state) {
    case TXN_WIRE:
        wheel_del(e, i);
        off_wire(e, x);
        break;
    case TXN_QUEUED:
        dev_unqueue(e, i);
        dev_refresh(e, x->dev);
        break;
    case TXN_BACKOFF:
        wheel_del(e, i);
        break;
    case TXN_FREE:
    case TXN_ENDED: // cancelled and done with the wire
        return;
    }
    finish(e, i, &r);
}

// Our own request or answer, handed back.
static void returned(struct mad_engine *e, const uint8_t *mad, mono_t now)
{
    uint32_t tid = be32(mad + 12), i = tid_find(e, tid);
    struct txn *x = i == NONE ? NULL : txn_at(e, i);

    // Earlier tries were given up when their time was over. The kernel returns each in the end.
    if (!x || x->state != TXN_WIRE || tid % TRIES_MAX != x->tries - 1u || mad[1] != x->mad[1] ||
        mad[3] != x->mad[3])
        return;
    wheel_del(e, i);
    off_wire(e, x);
    undeliverable(e, i, now);
}

static bool well_formed(const uint8_t *mad)
{
    if (mad[0] != MAD_BASE_VERSION)
        return false;
    switch (mad[1]) {
    case MAD_CLASS_SM_DR:
        return mad[2] == 1 && mad[7] <= MAD_MAX_HOPS && mad[6] <= MAD_MAX_HOPS + 1;
    case MAD_CLASS_SM_LID:
    case MAD_CLASS_PM:
        return mad[2] == 1;
    case MAD_CLASS_SA:
        return mad[2] == 2;
    default:
        return true;
    }
}

static void unsolicited(struct mad_engine *e, const uint8_t *mad, const struct mad_addr *from)
{
    uint8_t c = mad[1] == MAD_CLASS_SM_DR ? MAD_CLASS_SM_LID : mad[1];
    if (e->handler[c].fn)
        e->handler[c].fn(e->handler[c].arg, mad, from);
    else
        e->stats.unhandled++;
}

static void recv_fn(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct mad_engine *e = arg;
    mono_t now = loop_now_precise(e->loop);

    if (status < 0) {
        returned(e, mad, now);
        return;
    }
    e->stats.received++;
    if (!well_formed(mad)) {
        e->stats.malformed++;
        return;
    }
    bool repress = mad[3] == MAD_METHOD_TRAP_REPRESS;
    if (!(mad[3] & MAD_METHOD_RESPONSE) && !repress) {
        unsolicited(e, mad, from);
        return;
    }
    uint32_t i = tid_find(e, be32(mad + 12));
    if (i != NONE && answers(txn_at(e, i), mad))
        answered(e, i, mad, now);
    else if (repress)
        unsolicited(e, mad, from);
    else
        e->stats.unmatched++;
}

void mad_engine_handler(struct mad_engine *e, uint8_t mgmt_class, mad_unsolicited_fn *fn, void *arg)
{
    uint8_t c = mgmt_class == MAD_CLASS_SM_DR ? MAD_CLASS_SM_LID : mgmt_class;
    e->handler[c].fn = fn;
    e->handler[c].arg = arg;
}

int mad_engine_reply(struct mad_engine *e, const uint8_t *mad, const struct mad_addr *to)
{
    return e->t->ops->send(e->t, mad, to, 0);
}

int mad_engine_reply_rmpp(struct mad_engine *e, const uint8_t *msg, size_t len, const struct mad_addr *to)
{
    return e->t->ops->send_rmpp ? e->t->ops->send_rmpp(e->t, msg, len, to) : -EOPNOTSUPP;
}

// --- life and figures ---

static void set_defaults(struct mad_engine_opts *o)
{
    if (!o->window_total)
        o->window_total = 256;
    if (!o->window_start)
        o->window_start = 4;
    if (!o->window_max)
        o->window_max = 16;
    if (o->window_max > UINT16_MAX)
        o->window_max = UINT16_MAX;
    if (o->window_start > o->window_max)
        o->window_start = o->window_max;
    if (!o->timeout_ns)
        o->timeout_ns = 200 * MONO_MS;
    if (!o->timeout_floor_ns)
        o->timeout_floor_ns = 20 * MONO_MS;
    if (o->retries < 0)
        o->retries = 3;
}

struct mad_engine *mad_engine_new(struct loop *l, struct transport *t, const struct mad_engine_opts *o)
{
    struct mad_engine *e = xcalloc(1, sizeof(*e));

    e->loop = l;
    e->t = t;
    e->o = o ? *o : (struct mad_engine_opts){.retries = -1};
    set_defaults(&e->o);
    e->floor_ns = e->o.timeout_floor_ns;
    slab_init(&e->txns, sizeof(struct txn));
    slab_init(&e->devs, sizeof(struct dev));
    e->next_tid = e->o.first_tid                  ? e->o.first_tid
                  : loop_clock(l) == LOOP_VIRTUAL ? 1
                                                  : (uint32_t)(wall_now_ns() >> 20);
    e->next_tid = (e->next_tid + TRIES_MAX - 1) / TRIES_MAX * TRIES_MAX;
    for (int i = 0; i < READY_LISTS; i++)
        e->ready[i].head = e->ready[i].tail = NONE;
    e->idle.head = e->idle.tail = e->ended_head = e->ended_tail = NONE;
    e->count_n = 1;
    wheel_init(e);
    loop_task_init(&e->pump_task, "mad-send", pump_fn, e);
    loop_task_init(&e->ended_task, "mad-ended", ended_fn, e);
    t->recv = recv_fn;
    t->recv_arg = e;
    t->writable = writable_fn;
    return e;
}

static void recv_none(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
}

static void writable_none(void *arg)
{
}

void mad_engine_free(struct mad_engine *e)
{
    if (!e)
        return;
    e->t->recv = recv_none;
    e->t->writable = writable_none;
    loop_timer_cancel(&e->wheel.timer);
    loop_unpost(e->loop, &e->pump_task);
    loop_unpost(e->loop, &e->ended_task);
    slab_done(&e->txns);
    slab_done(&e->devs);
    free(e->tid_map);
    free(e->dev_map);
    free(e);
}

unsigned mad_engine_outstanding(const struct mad_engine *e)
{
    return e->outstanding;
}

unsigned mad_engine_queued(const struct mad_engine *e)
{
    return e->queued;
}

void mad_engine_forget_device(struct mad_engine *e, uint64_t device)
{
    uint32_t d = dev_find(e, device);
    if (d == NONE)
        return;
    dev_forget(e, dev_at(e, d));
    dev_refresh(e, d);
    want_pump(e);
}

size_t mad_engine_counts(const struct mad_engine *e, struct mad_count *ret, size_t n)
{
    size_t copy = n < e->count_n ? n : e->count_n;
    if (copy)
        memcpy(ret, e->count, copy * sizeof(*ret));
    return e->count_n;
}

void mad_engine_stats(const struct mad_engine *e, struct mad_engine_stats *ret)
{
    *ret = e->stats;
    ret->devices = e->dev_count;
}
