// SPDX-License-Identifier: Apache-2.0
// A turn: tasks that were queued when it began, then timers due at its time that were set before it began,
// then one poll of the descriptors (blocking only when nothing is left to run). Tasks and timers made during
// a turn wait for the next one, so none can starve the others.
//
// Costs: the clock is read once between two callbacks (the end of one is the start of the next). While tasks
// or timers keep coming, descriptors are polled every POLL_EVERY_NS rather than each turn; before virtual
// time moves they are polled always (unless nothing is registered). The heap has four children a node and
// holds the keys, so that sifting touches one cache line a level.
//
// Owner: the loop owns descriptors', signals' and wakers' objects; timers and tasks lie in their users'
// structs. Single-threaded but for wakers.
#include "lib/loop.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/loop_priv.h"
#include "lib/xalloc.h"

#define POLL_EVERY_NS (200 * MONO_US)
#define LONG_NS MONO_MS
#define POLL_ONCE (EVLOOP_ONCE | EVLOOP_NONBLOCK) // NONBLOCK alone polls until no descriptor is ready
#define MINUTE_NS (60 * MONO_S)

// --- accounting ---

static void area_refs_grow(struct loop *l)
{
    struct area_ref *old = l->area_ref;
    uint32_t n = old ? l->area_ref_mask + 1 : 0, slots = n ? n * 2 : 64;

    l->area_ref = xcalloc(slots, sizeof(*l->area_ref));
    l->area_ref_mask = slots - 1;
    for (uint32_t i = 0; i < n; i++) {
        if (!old[i].key)
            continue;
        uint32_t at = (uint32_t)hash_mix64((uintptr_t)old[i].key) & l->area_ref_mask;
        while (l->area_ref[at].key)
            at = (at + 1) & l->area_ref_mask;
        l->area_ref[at] = old[i];
    }
    free(old);
}

// The same text may stand at several addresses (one literal in two files): then both lead to one area.
static uint32_t area_add(struct loop *l, const char *area)
{
    uint32_t i;
    for (i = 0; i < l->area_n; i++)
        if (!strcmp(l->area[i].area, area))
            return i;
    if (l->area_n == l->area_cap) {
        l->area_cap = l->area_cap ? l->area_cap * 2 : 16;
        l->area = xreallocarray(l->area, l->area_cap, sizeof(*l->area));
    }
    l->area[i] = (struct loop_area_stats){.area = area};
    l->area_n++;
    return i;
}

static uint32_t area_index(struct loop *l, const char *area)
{
    if (area == l->last_area)
        return l->last_index;
    if (l->area_ref_n * 2 >= l->area_ref_mask)
        area_refs_grow(l);
    uint32_t at = (uint32_t)hash_mix64((uintptr_t)area) & l->area_ref_mask;
    while (l->area_ref[at].key && l->area_ref[at].key != area)
        at = (at + 1) & l->area_ref_mask;
    if (!l->area_ref[at].key) {
        l->area_ref[at] = (struct area_ref){.key = area, .index = area_add(l, area)};
        l->area_ref_n++;
    }
    l->last_area = area;
    l->last_index = l->area_ref[at].index;
    return l->last_index;
}

// Rows that came first keep their names; one for each area is always left.
static struct long_row *long_row(struct loop *l, const char *area, const char *what)
{
    for (uint32_t i = 0; i < l->longest_n; i++) {
        struct loop_long *r = &l->longest[i].row;
        if (!strcmp(r->area, area) && !strcmp(r->what, what))
            return &l->longest[i];
    }
    if (l->longest_n >= LOOP_LONG_MAX && what[0])
        return long_row(l, area, "");
    l->longest = xreallocarray(l->longest, l->longest_n + 1ul, sizeof(*l->longest));
    l->longest[l->longest_n] = (struct long_row){.row = {.area = area, .what = what}};
    return &l->longest[l->longest_n++];
}

static void long_minute(struct long_row *x, int64_t minute)
{
    if (minute == x->minute)
        return;
    bool next = minute == x->minute + 1;
    x->before_ns = next ? x->row.recent_ns : 0;
    x->before_cpu_ns = next ? x->row.recent_cpu_ns : 0;
    x->row.recent_ns = x->row.recent_cpu_ns = 0;
    x->minute = minute;
}

static void at_least(int64_t *v, int64_t x)
{
    if (*v < x)
        *v = x;
}

static void account_long(struct loop *l, const struct loop_slow *s)
{
    struct long_row *x = long_row(l, s->area, s->what);

    long_minute(x, l->stamp.ns / MINUTE_NS);
    x->row.calls++;
    x->row.slow += s->ns > LOOP_SLOW_NS;
    at_least(&x->row.max_ns, s->ns);
    at_least(&x->row.max_cpu_ns, s->cpu_ns);
    at_least(&x->row.recent_ns, s->ns);
    at_least(&x->row.recent_cpu_ns, s->cpu_ns);
}

// The kernel is asked at most once a ms: callbacks that are shorter have taken no more than their time.
static int64_t callback_cpu(struct loop *l, mono_t end, int64_t ns)
{
    if (mono_sub(end, l->cpu_stamp) < LONG_NS)
        return ns;
    int64_t now = thread_cpu_ns(), cpu = now - l->cpu;
    l->cpu = now;
    l->cpu_stamp = end;
    return cpu < ns ? cpu : ns;
}

static void end_doing(struct loop *l, mono_t at)
{
    int64_t ns = mono_sub(at, l->doing.since);
    if (ns > l->doing.longest_ns) {
        l->doing.longest_ns = ns;
        l->doing.longest = l->doing.now;
    }
}

void loop_doing(struct loop *l, const char *what)
{
    mono_t now = mono_now();
    if (!l->doing.said) {
        l->doing.said = true;
        l->doing.now = l->doing.longest = NULL;
        l->doing.since = l->stamp;
        l->doing.longest_ns = 0;
    }
    end_doing(l, now);
    l->doing.now = what;
    l->doing.since = now;
}

static const char *did_longest(struct loop *l)
{
    if (!l->doing.said)
        return "";
    end_doing(l, l->stamp);
    return l->doing.longest ? l->doing.longest : "";
}

void loop_account(struct loop *l, const char *area)
{
    mono_t end = mono_now();
    int64_t ns = mono_sub(end, l->stamp), cpu = callback_cpu(l, end, ns);
    uint32_t i = area_index(l, area); // may move the rows
    struct loop_area_stats *s = &l->area[i];

    s->calls++;
    s->total_ns += ns;
    if (ns > s->max_ns)
        s->max_ns = ns;
    l->stamp = end;
    if (ns >= LONG_NS) {
        struct loop_slow slow = {.area = area, .what = did_longest(l), .ns = ns, .cpu_ns = cpu};
        account_long(l, &slow);
        if (ns > LOOP_SLOW_NS) {
            s->slow++;
            if (l->slow_fn)
                l->slow_fn(l->slow_arg, &slow);
            l->stamp = mono_now();
        }
    }
    l->doing.said = false;
}

void loop_split(struct loop *l, const char *area)
{
    loop_account(l, area);
}

size_t loop_longest(const struct loop *l, struct loop_long *ret, size_t n)
{
    int64_t minute = mono_now().ns / MINUTE_NS;

    for (uint32_t i = 0; i < l->longest_n && i < n; i++) {
        struct long_row x = l->longest[i];
        long_minute(&x, minute);
        at_least(&x.row.recent_ns, x.before_ns);
        at_least(&x.row.recent_cpu_ns, x.before_cpu_ns);
        ret[i] = x.row;
    }
    return l->longest_n;
}

size_t loop_stats(const struct loop *l, struct loop_area_stats *ret, size_t n)
{
    size_t copy = n < l->area_n ? n : l->area_n;
    if (copy)
        memcpy(ret, l->area, copy * sizeof(*ret));
    return l->area_n;
}

void loop_set_slow_hook(struct loop *l, void (*fn)(void *arg, const struct loop_slow *s), void *arg)
{
    l->slow_fn = fn;
    l->slow_arg = arg;
}

// --- timers ---

static inline bool before(const struct heap_entry *a, const struct heap_entry *b)
{
    return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static inline void put(struct loop *l, uint32_t i, struct heap_entry e)
{
    l->heap[i] = e;
    e.t->slot = i + 1;
}

static void sift_up(struct loop *l, uint32_t i, struct heap_entry e)
{
    while (i) {
        uint32_t parent = (i - 1) / 4;
        if (!before(&e, &l->heap[parent]))
            break;
        put(l, i, l->heap[parent]);
        i = parent;
    }
    put(l, i, e);
}

static void sift_down(struct loop *l, uint32_t i, struct heap_entry e)
{
    for (;;) {
        uint32_t first = i * 4 + 1;
        if (first >= l->heap_n)
            break;
        uint32_t last = first + 4 < l->heap_n ? first + 4 : l->heap_n, least = first;
        for (uint32_t c = first + 1; c < last; c++)
            if (before(&l->heap[c], &l->heap[least]))
                least = c;
        if (!before(&l->heap[least], &e))
            break;
        put(l, i, l->heap[least]);
        i = least;
    }
    put(l, i, e);
}

// Puts e where slot i is free: it may have to go either way.
static void settle(struct loop *l, uint32_t i, struct heap_entry e)
{
    if (i && before(&e, &l->heap[(i - 1) / 4]))
        sift_up(l, i, e);
    else
        sift_down(l, i, e);
}

void loop_timer_init(struct loop_timer *t, struct loop *l, const char *area, loop_fn *fn, void *arg)
{
    *t = (struct loop_timer){.loop = l, .area = area, .fn = fn, .arg = arg};
}

void loop_timer_at(struct loop_timer *t, mono_t due)
{
    struct loop *l = t->loop;
    struct heap_entry e = {.due = due.ns > l->now.ns ? due.ns : l->now.ns, .seq = ++l->seq, .t = t};

    t->due = due;
    t->seq = e.seq;
    if (t->slot) {
        settle(l, t->slot - 1, e);
        return;
    }
    if (l->heap_n == l->heap_cap) {
        assert(l->heap_cap < 1u << 29);
        l->heap_cap = l->heap_cap ? l->heap_cap * 2 : 64;
        l->heap = xreallocarray(l->heap, l->heap_cap, sizeof(*l->heap));
    }
    sift_up(l, l->heap_n++, e);
}

void loop_timer_after(struct loop_timer *t, int64_t ns)
{
    int64_t now = loop_now(t->loop).ns, due;
    loop_timer_at(t, (mono_t){__builtin_add_overflow(now, ns, &due) ? INT64_MAX : due});
}

void loop_timer_cancel(struct loop_timer *t)
{
    struct loop *l = t->loop;
    if (!t->slot)
        return;
    uint32_t i = t->slot - 1;
    t->slot = 0;
    struct heap_entry last = l->heap[--l->heap_n];
    if (i < l->heap_n)
        settle(l, i, last);
}

static bool timer_due(const struct loop *l)
{
    return l->heap_n && l->heap[0].due <= l->now.ns;
}

static void run_timers(struct loop *l)
{
    uint64_t last = l->seq;

    while (timer_due(l) && l->heap[0].seq <= last) {
        struct loop_timer *t = l->heap[0].t;
        const char *area = t->area;
        loop_timer_cancel(t);
        t->fn(t->arg); // t may be gone afterwards
        loop_account(l, area);
    }
}

// --- tasks ---

static void ring_init(struct loop_task *head)
{
    head->next = head->prev = head;
}

static bool ring_empty(const struct loop_task *head)
{
    return head->next == head;
}

void loop_task_init(struct loop_task *t, const char *area, loop_fn *fn, void *arg)
{
    *t = (struct loop_task){.area = area, .fn = fn, .arg = arg};
}

void loop_post(struct loop *l, struct loop_task *t)
{
    if (t->queued)
        return;
    t->queued = true;
    t->next = &l->queue;
    t->prev = l->queue.prev;
    t->prev->next = t;
    l->queue.prev = t;
}

void loop_unpost(struct loop *l, struct loop_task *t)
{
    (void)l;
    if (!t->queued)
        return;
    t->queued = false;
    t->prev->next = t->next;
    t->next->prev = t->prev;
}

static void run_tasks(struct loop *l)
{
    if (ring_empty(&l->queue))
        return;
    l->batch.next = l->queue.next;
    l->batch.prev = l->queue.prev;
    l->batch.next->prev = l->batch.prev->next = &l->batch;
    ring_init(&l->queue);
    while (!ring_empty(&l->batch)) {
        struct loop_task *t = l->batch.next;
        const char *area = t->area;
        loop_unpost(l, t);
        t->fn(t->arg); // t may be gone afterwards
        loop_account(l, area);
    }
}

// --- turns ---

static void wake_timer_fn(evutil_socket_t fd, short what, void *arg)
{
    struct loop *l = arg;
    l->wake_due = INT64_MAX;
}

static bool poll_now(struct loop *l, int flags)
{
    l->polled = l->stamp;
    l->io_events = 0;
    l->polling = true;
    event_base_loop(l->base, flags);
    l->polling = false;
    return l->io_events > 0;
}

static void poll_until(struct loop *l, int64_t due)
{
    if (due != l->wake_due) {
        int64_t ns = due - l->stamp.ns;
        // Rounded up: woken a little late is right, early would turn idly.
        int64_t us = ns > 0 ? (ns + 999) / 1000 : 0;
        struct timeval tv = {.tv_sec = us / 1000000, .tv_usec = us % 1000000};
        event_add(l->wake_timer, &tv);
        l->wake_due = due;
    }
    poll_now(l, EVLOOP_ONCE);
}

static void poll_block(struct loop *l)
{
    if (l->wake_due != INT64_MAX) {
        event_del(l->wake_timer);
        l->wake_due = INT64_MAX;
    }
    poll_now(l, EVLOOP_ONCE);
}

// Is anything registered beside the loop's own wake descriptor that a poll could find?
static bool anything_to_poll(struct loop *l)
{
    return atomic_load(&l->woken) || event_base_get_num_events(l->base, EVENT_BASE_COUNT_ADDED) > 1;
}

static void virtual_wait(struct loop *l)
{
    if (l->holds || !l->heap_n) {
        poll_block(l);
        return;
    }
    if (anything_to_poll(l) && poll_now(l, POLL_ONCE))
        return;
    // A callback of the poll that counted nothing cannot have set timers, but the heap is what decides.
    if (l->heap[0].due > l->now.ns)
        l->now.ns = l->heap[0].due;
}

// A turn in two halves: whoever waits for something looks between them, before the loop blocks or virtual
// time moves on.
static void turn_run(struct loop *l)
{
    l->stamp = mono_now();
    if (l->clock == LOOP_REAL)
        l->now = l->stamp;
    run_tasks(l);
    if (timer_due(l))
        run_timers(l);
}

static void turn_poll(struct loop *l)
{
    if (!ring_empty(&l->queue) || timer_due(l)) {
        if (mono_sub(l->stamp, l->polled) >= POLL_EVERY_NS)
            poll_now(l, POLL_ONCE);
    } else if (l->clock == LOOP_VIRTUAL) {
        virtual_wait(l);
    } else if (l->heap_n) {
        poll_until(l, l->heap[0].due);
    } else {
        poll_block(l);
    }
}

static void run_begin(struct loop *l)
{
    assert(!l->running); // nothing nests a loop
    l->running = true;
    l->stop = false;
    l->cpu = thread_cpu_ns();
    l->cpu_stamp = mono_now();
}

void loop_run(struct loop *l)
{
    run_begin(l);
    while (!l->stop) {
        turn_run(l);
        if (!l->stop)
            turn_poll(l);
    }
    l->running = false;
}

void loop_stop(struct loop *l)
{
    l->stop = true;
}

static void deadline_fn(void *arg)
{
    *(bool *)arg = true;
}

bool loop_run_until(struct loop *l, const bool *flag, int64_t deadline_ns)
{
    bool expired = false;
    struct loop_timer deadline;

    loop_timer_init(&deadline, l, "loop", deadline_fn, &expired);
    loop_timer_after(&deadline, deadline_ns);
    run_begin(l);
    while (!*flag && !expired && !l->stop) {
        turn_run(l);
        if (!*flag && !expired && !l->stop)
            turn_poll(l);
    }
    l->running = false;
    loop_timer_cancel(&deadline);
    return *flag;
}

// --- the clock ---

mono_t loop_now(const struct loop *l)
{
    return l->running || l->clock == LOOP_VIRTUAL ? l->now : mono_now();
}

mono_t loop_now_precise(struct loop *l)
{
    return l->clock == LOOP_VIRTUAL ? l->now : mono_now();
}

enum loop_clock loop_clock(const struct loop *l)
{
    return l->clock;
}

struct event_base *loop_event_base(struct loop *l)
{
    return l->base;
}

void loop_hold(struct loop *l)
{
    l->holds++;
}

void loop_release(struct loop *l)
{
    assert(l->holds);
    l->holds--;
}

// --- life ---

struct loop *loop_new(enum loop_clock clock)
{
    struct loop *l = xcalloc(1, sizeof(*l));

    l->clock = clock;
    l->wake_due = INT64_MAX;
    l->wake_fd = -1;
    ring_init(&l->queue);
    ring_init(&l->batch);
    l->stamp = mono_now();
    if (clock == LOOP_REAL)
        l->now = l->stamp;

    struct event_config *cfg = event_config_new();
    if (cfg) {
        event_config_set_flag(cfg, EVENT_BASE_FLAG_PRECISE_TIMER);
        l->base = event_base_new_with_config(cfg);
        event_config_free(cfg);
    }
    if (l->base)
        l->wake_timer = evtimer_new(l->base, wake_timer_fn, l);
    if (!l->wake_timer || loop_io_init(l) < 0) {
        loop_free(l);
        return NULL;
    }
    return l;
}

void loop_free(struct loop *l)
{
    if (!l)
        return;
    assert(!l->running && !l->heap_n && ring_empty(&l->queue) && !l->fds && !l->signals && !l->wakers);
    loop_io_done(l);
    if (l->wake_timer)
        event_free(l->wake_timer);
    if (l->base)
        event_base_free(l->base);
    free(l->heap);
    free(l->area);
    free(l->longest);
    free(l->area_ref);
    free(l);
}
