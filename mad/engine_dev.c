// SPDX-License-Identifier: Apache-2.0
// Devices: queues by priority, turns, windows, round trips.
//
// A device stands, for each priority, in one list of those whose turn may come when its queue is not empty
// and its window is open: among the fresh, or among the repeats if the first of its queue is a repeat after a
// time-out. Whoever changes a queue, a window or the number outstanding calls dev_refresh().
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/xalloc.h"
#include "mad/engine_priv.h"

// --- the hash ---

static uint32_t *bucket(const struct mad_engine *e, uint64_t key)
{
    return &e->dev_map[hash_mix64(key) & e->dev_mask];
}

static void map_grow(struct mad_engine *e)
{
    uint32_t *old = e->dev_map, n = old ? e->dev_mask + 1 : 0, slots = n ? n * 2 : 256;

    e->dev_map = xreallocarray(NULL, slots, sizeof(*e->dev_map));
    e->dev_mask = slots - 1;
    memset(e->dev_map, 0xff, slots * sizeof(*e->dev_map));
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t i = old[b], next; i != NONE; i = next) {
            struct dev *d = dev_at(e, i);
            uint32_t *to = bucket(e, d->key);
            next = d->hnext;
            d->hnext = *to;
            *to = i;
        }
    free(old);
}

uint32_t dev_find(const struct mad_engine *e, uint64_t key)
{
    uint32_t i = e->dev_map ? *bucket(e, key) : NONE;
    while (i != NONE && dev_at(e, i)->key != key)
        i = dev_at(e, i)->hnext;
    return i;
}

static void idle_remove(struct mad_engine *e, uint32_t i)
{
    struct dev *d = dev_at(e, i);
    if (d->idle_prev != NONE)
        dev_at(e, d->idle_prev)->idle_next = d->idle_next;
    else
        e->idle.head = d->idle_next;
    if (d->idle_next != NONE)
        dev_at(e, d->idle_next)->idle_prev = d->idle_prev;
    else
        e->idle.tail = d->idle_prev;
}

static uint32_t recycle(struct mad_engine *e)
{
    uint32_t i = e->idle.head, *at;
    idle_remove(e, i);
    for (at = bucket(e, dev_at(e, i)->key); *at != i; at = &dev_at(e, *at)->hnext)
        ;
    *at = dev_at(e, i)->hnext;
    e->dev_count--;
    return i;
}

void dev_forget(const struct mad_engine *e, struct dev *d)
{
    d->window = (uint16_t)e->o.window_start;
    d->streak = 0;
    d->srtt_us = d->rttvar_us = 0;
    d->shrunk_ns = INT64_MIN;
}

uint32_t dev_get(struct mad_engine *e, uint64_t key)
{
    uint32_t i = dev_find(e, key);
    if (i != NONE)
        return i;
    if (!e->dev_map || e->dev_count > e->dev_mask)
        map_grow(e);
    i = e->dev_count >= DEVICES_KEPT && e->idle.head != NONE ? recycle(e) : slab_alloc(&e->devs);
    struct dev *d = dev_at(e, i);
    *d = (struct dev){.key = key, .hnext = *bucket(e, key)};
    for (int p = 0; p < MAD_PRIOS; p++)
        d->q[p] = (struct dev_queue){.head = NONE, .tail = NONE, .list = -1};
    dev_forget(e, d);
    *bucket(e, key) = i;
    e->dev_count++;
    // As if idle before, so that dev_txn_added() finds it alike.
    d->idle_prev = e->idle.tail;
    d->idle_next = NONE;
    if (e->idle.tail != NONE)
        dev_at(e, e->idle.tail)->idle_next = i;
    else
        e->idle.head = i;
    e->idle.tail = i;
    return i;
}

void dev_txn_added(struct mad_engine *e, uint32_t i)
{
    if (!dev_at(e, i)->txns++)
        idle_remove(e, i);
}

void dev_txn_gone(struct mad_engine *e, uint32_t i)
{
    struct dev *d = dev_at(e, i);
    if (--d->txns)
        return;
    d->idle_prev = e->idle.tail;
    d->idle_next = NONE;
    if (e->idle.tail != NONE)
        dev_at(e, e->idle.tail)->idle_next = i;
    else
        e->idle.head = i;
    e->idle.tail = i;
}

// --- queues and turns ---

static void list_remove(struct mad_engine *e, struct dev_queue *q, unsigned prio)
{
    if (q->prev != NONE)
        dev_at(e, q->prev)->q[prio].next = q->next;
    else
        e->ready[q->list].head = q->next;
    if (q->next != NONE)
        dev_at(e, q->next)->q[prio].prev = q->prev;
    else
        e->ready[q->list].tail = q->prev;
    q->list = -1;
}

static void list_append(struct mad_engine *e, uint32_t i, unsigned prio, int list)
{
    struct dev_queue *q = &dev_at(e, i)->q[prio];
    q->prev = e->ready[list].tail;
    q->next = NONE;
    q->list = (int8_t)list;
    if (q->prev != NONE)
        dev_at(e, q->prev)->q[prio].next = i;
    else
        e->ready[list].head = i;
    e->ready[list].tail = i;
}

static void refresh(struct mad_engine *e, uint32_t i, struct dev *d, unsigned p)
{
    struct dev_queue *q = &d->q[p];
    int list = -1;
    if (q->head != NONE && d->outstanding < d->window)
        list = (int)p * 2 + (txn_at(e, q->head)->timeouts > 0);
    if (list == q->list)
        return;
    if (q->list >= 0)
        list_remove(e, q, p);
    if (list >= 0)
        list_append(e, i, p, list);
}

void dev_refresh(struct mad_engine *e, uint32_t i)
{
    struct dev *d = dev_at(e, i);
    for (unsigned p = 0; p < MAD_PRIOS; p++)
        refresh(e, i, d, p);
}

void dev_turn_over(struct mad_engine *e, uint32_t i, unsigned prio)
{
    struct dev *d = dev_at(e, i);
    if (d->q[prio].list >= 0)
        list_remove(e, &d->q[prio], prio);
    dev_refresh(e, i);
}

void dev_push(struct mad_engine *e, uint32_t i, bool front)
{
    struct txn *x = txn_at(e, i);
    struct dev *d = dev_at(e, x->dev);
    struct dev_queue *q = &d->q[x->prio];

    x->state = TXN_QUEUED;
    x->prev = front ? NONE : q->tail;
    x->next = front ? q->head : NONE;
    if (x->prev != NONE)
        txn_at(e, x->prev)->next = i;
    else
        q->head = i;
    if (x->next != NONE)
        txn_at(e, x->next)->prev = i;
    else
        q->tail = i;
    e->queued++;
    refresh(e, x->dev, d, x->prio);
}

void dev_unqueue(struct mad_engine *e, uint32_t i)
{
    struct txn *x = txn_at(e, i);
    struct dev_queue *q = &dev_at(e, x->dev)->q[x->prio];

    if (x->prev != NONE)
        txn_at(e, x->prev)->next = x->next;
    else
        q->head = x->next;
    if (x->next != NONE)
        txn_at(e, x->next)->prev = x->prev;
    else
        q->tail = x->prev;
    e->queued--;
}

uint32_t dev_next(struct mad_engine *e, unsigned *ret_prio)
{
    bool repeats = e->repeats < e->o.window_total - e->o.window_total / 4;

    for (unsigned p = 0; p < MAD_PRIOS; p++) {
        uint32_t fresh = e->ready[p * 2].head, again = repeats ? e->ready[p * 2 + 1].head : NONE;
        if (fresh == NONE && again == NONE)
            continue;
        *ret_prio = p;
        if (fresh != NONE && again != NONE)
            e->repeat_turn[p] = !e->repeat_turn[p];
        return again != NONE && (fresh == NONE || e->repeat_turn[p]) ? again : fresh;
    }
    return NONE;
}

// --- windows and round trips (Jacobson: gains 1/8 and 1/4) ---

static void estimate(int32_t *srtt, int32_t *rttvar, int32_t us)
{
    if (!*srtt) {
        *srtt = us;
        *rttvar = us / 2;
        return;
    }
    int32_t off = us - *srtt;
    *srtt += off / 8;
    *rttvar += ((off < 0 ? -off : off) - *rttvar) / 4;
    if (*srtt < 1)
        *srtt = 1;
}

// The answer came after its time-out. Where it was only a little late, the wire or a busy machine stood still
// for a moment; that concerns every device and comes again.
static void raise_floor(struct mad_engine *e, int64_t rtt_ns)
{
    int64_t max = e->o.timeout_ns / 2, want = rtt_ns + rtt_ns / 2;

    if (rtt_ns > max)
        return;
    want = want < max ? want : max;
    if (want > e->floor_ns)
        e->floor_ns = want;
    e->floor_until = loop_now(e->loop).ns + FLOOR_HOLD_NS;
}

void dev_like(struct mad_engine *e, uint32_t i, uint64_t key)
{
    struct dev *d = dev_at(e, i);
    uint32_t k = dev_find(e, key);
    if (d->srtt_us != 0 || k == NONE)
        return;
    d->srtt_us = dev_at(e, k)->srtt_us;
    d->rttvar_us = dev_at(e, k)->rttvar_us;
}

void dev_answered(struct mad_engine *e, struct dev *d, int64_t rtt_ns, bool late)
{
    int64_t us = rtt_ns / 1000;
    int32_t v = us < 1 ? 1 : us > 60000000 ? 60000000 : (int32_t)us;

    estimate(&d->srtt_us, &d->rttvar_us, v);
    estimate(&e->srtt_us, &e->rttvar_us, v);
    if (late) {
        // Not lost: the window did not need to shrink.
        raise_floor(e, rtt_ns);
        d->window = (uint16_t)(d->window * 2u < e->o.window_max ? d->window * 2u : e->o.window_max);
    } else if (d->window < e->o.window_max && ++d->streak >= d->window) {
        d->window++;
        d->streak = 0;
    }
}

void dev_timed_out(struct mad_engine *e, struct dev *d, int64_t sent_ns)
{
    d->streak = 0;
    // One loss event a window: the others that were out with it say nothing new.
    if (sent_ns < d->shrunk_ns)
        return;
    d->window = d->window > 1 ? d->window / 2 : 1;
    d->shrunk_ns = loop_now(e->loop).ns;
}

int64_t dev_timeout(struct mad_engine *e, const struct dev *d)
{
    int64_t us = (int64_t)d->srtt_us + 4ll * d->rttvar_us, all = (int64_t)e->srtt_us + 4ll * e->rttvar_us;
    if (!d->srtt_us) // a quarter where the others are far quicker than that
        return e->srtt_us && all * 1000 < e->o.timeout_ns / 16 ? e->o.timeout_ns / 4 : e->o.timeout_ns;
    int64_t ns = (us > all ? us : all) * 1000;
    if (e->floor_ns > e->o.timeout_floor_ns && loop_now(e->loop).ns > e->floor_until)
        e->floor_ns = e->o.timeout_floor_ns;
    if (ns < e->floor_ns)
        ns = e->floor_ns;
    return ns < SLOW_FACTOR * e->o.timeout_ns ? ns : SLOW_FACTOR * e->o.timeout_ns;
}
