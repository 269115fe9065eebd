// SPDX-License-Identifier: Apache-2.0
// Deadlines. The loop's timer stands at the earliest tick that was known when it was set; answers take their
// entries off the wheel and leave the timer alone, so that a healthy fabric costs a few firings a second.
#include <assert.h>

#include "mad/engine_priv.h"

#define SLOT_MASK (WHEEL_SLOTS - 1)
#define BATCH 256
#define STALL_NS (10 * MONO_MS)

static void timer_fn(void *arg);

void wheel_init(struct mad_engine *e)
{
    struct wheel *w = &e->wheel;
    for (uint32_t i = 0; i < WHEEL_SLOTS; i++)
        w->head[i] = NONE;
    w->armed = UINT64_MAX;
    loop_timer_init(&w->timer, e->loop, "mad-timeout", timer_fn, e);
}

static void arm(struct wheel *w, uint64_t tick)
{
    w->armed = tick;
    loop_timer_at(&w->timer, (mono_t){(int64_t)(tick << WHEEL_SHIFT)});
}

static void insert(struct mad_engine *e, uint32_t i)
{
    struct wheel *w = &e->wheel;
    struct txn *x = txn_at(e, i);
    uint64_t tick = x->due_tick < w->cur ? w->cur : x->due_tick;

    // Beyond the horizon: as far as the wheel goes, from where it is put on again.
    if (tick - w->cur >= WHEEL_SLOTS)
        tick = w->cur + WHEEL_SLOTS - 1;
    uint32_t slot = tick & SLOT_MASK;
    x->slot = (uint16_t)slot;
    x->prev = NONE;
    x->next = w->head[slot];
    if (x->next != NONE)
        txn_at(e, x->next)->prev = i;
    w->head[slot] = i;
    w->bits[slot / 64] |= 1ull << (slot % 64);
    w->count++;
    if (tick < w->armed)
        arm(w, tick);
}

void wheel_add(struct mad_engine *e, uint32_t i, int64_t due_ns, int64_t now_ns)
{
    struct wheel *w = &e->wheel;
    if (!w->count && w->cur < (uint64_t)now_ns >> WHEEL_SHIFT)
        w->cur = (uint64_t)now_ns >> WHEEL_SHIFT;
    txn_at(e, i)->due_tick = ((uint64_t)due_ns >> WHEEL_SHIFT) + 1;
    insert(e, i);
}

static void unlink_entry(struct mad_engine *e, uint32_t i)
{
    struct wheel *w = &e->wheel;
    struct txn *x = txn_at(e, i);
    uint32_t slot = x->slot;
    if (x->prev != NONE)
        txn_at(e, x->prev)->next = x->next;
    else
        w->head[slot] = x->next;
    if (x->next != NONE)
        txn_at(e, x->next)->prev = x->prev;
    if (w->head[slot] == NONE)
        w->bits[slot / 64] &= ~(1ull << (slot % 64));
    w->count--;
}

void wheel_del(struct mad_engine *e, uint32_t i)
{
    struct wheel *w = &e->wheel;
    unlink_entry(e, i);
    if (!w->count && w->armed != UINT64_MAX) {
        loop_timer_cancel(&w->timer);
        w->armed = UINT64_MAX;
    }
}

// The earliest tick that has entries; there are some.
static uint64_t next_tick(const struct wheel *w)
{
    uint32_t at = w->cur & SLOT_MASK;
    uint64_t word = w->bits[at / 64] & ~0ull << (at % 64);
    for (uint32_t i = at / 64, n = 0;; n++) {
        if (word)
            return w->cur + ((i * 64 + (uint32_t)__builtin_ctzll(word) - at) & SLOT_MASK);
        assert(n <= WHEEL_SLOTS / 64);
        i = (i + 1) % (WHEEL_SLOTS / 64);
        word = w->bits[i];
    }
}

static void timer_fn(void *arg)
{
    struct mad_engine *e = arg;
    struct wheel *w = &e->wheel;
    mono_t now = loop_now(e->loop);
    uint64_t now_tick = (uint64_t)now.ns >> WHEEL_SHIFT;
    bool stalled = now.ns - (int64_t)(w->armed << WHEEL_SHIFT) > STALL_NS;

    w->armed = UINT64_MAX;
    if (stalled && !e->grace && w->count) {
        e->grace = true;
        w->armed = now_tick; // inserts meanwhile must not move it closer
        loop_timer_after(&w->timer, 2 * MONO_MS);
        return;
    }
    e->grace = false;
    for (unsigned n = 0; w->count; n++) {
        uint64_t tick = next_tick(w);
        if (tick > now_tick || n == BATCH) {
            arm(w, tick);
            return;
        }
        w->cur = tick;
        uint32_t i = w->head[tick & SLOT_MASK];
        unlink_entry(e, i);
        if (txn_at(e, i)->due_tick > now_tick)
            insert(e, i);
        else
            engine_due(e, i, now);
    }
}
