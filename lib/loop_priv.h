// SPDX-License-Identifier: Apache-2.0
// Shared by loop.c (turns, timers, tasks, the clock) and loop_io.c (descriptors, signals, wakers).
#ifndef WEFT_LIB_LOOP_PRIV_H
#define WEFT_LIB_LOOP_PRIV_H

#include <stdatomic.h>

#include <event2/event.h>

#include "lib/loop.h"

struct heap_entry {
    int64_t due; // never before the time it was set at: a timer in the past cannot overtake those already due
    uint64_t seq;
    struct loop_timer *t;
};

struct area_ref {
    const char *key; // the pointer, NULL = free
    uint32_t index;
};

struct loop {
    enum loop_clock clock;
    struct event_base *base;
    mono_t now;
    mono_t stamp; // end of the last callback, real clock: the start of the next one
    bool running, stop, polling;
    unsigned holds;

    struct heap_entry *heap;
    uint32_t heap_n, heap_cap;
    uint64_t seq;
    struct event *wake_timer; // libevent's only timer: the heap's head
    int64_t wake_due;         // what it is set to, INT64_MAX = not pending

    struct loop_task queue, batch; // ring heads: posted, and being run in this turn

    mono_t polled; // real clock
    int io_events; // callbacks of the present poll
    unsigned fds, signals;

    int wake_fd;
    struct event *wake_event;
    atomic_bool woken;
    struct loop_waker *wakers, *waker_next;

    struct loop_area_stats *area;
    uint32_t area_n, area_cap;
    struct area_ref *area_ref; // pointer -> index, open addressing
    uint32_t area_ref_mask, area_ref_n;
    const char *last_area;
    uint32_t last_index;

    struct {
        const char *now, *longest; // NULL: nothing was said
        mono_t since;
        int64_t longest_ns;
        bool said; // in this callback
    } doing;
    mono_t cpu_stamp; // when the thread's CPU time was read; not more than 1 ms before a callback's end
    int64_t cpu;
    struct long_row {
        struct loop_long row;
        int64_t minute, before_ns, before_cpu_ns; // row.recent_* are of `minute`, these of the one before
    } * longest;
    uint32_t longest_n;

    void (*slow_fn)(void *arg, const struct loop_slow *s);
    void *slow_arg;
};

// Runs nothing itself: accounts what ran since l->stamp to the area.
void loop_account(struct loop *l, const char *area);
// First thing in every callback that libevent calls: reads the clock once a poll.
void loop_io_begin(struct loop *l);
int loop_io_init(struct loop *l);
void loop_io_done(struct loop *l);

#endif
