// SPDX-License-Identifier: Apache-2.0
// The event loop: libevent underneath, with timers of our own (a heap, so that the clock can be virtual and
// what is due runs in one batch), and the time of every callback counted per area. One thread runs it and
// owns all mutable state; only loop_waker_signal() may be called from others.
//
// Virtual time (tests, simulator): the clock stands still while anything can run and jumps to the next timer
// when nothing can. It does not advance while a hold is taken (a worker is computing, the database is
// writing): real work costs no virtual time.
#ifndef WEFT_LIB_LOOP_H
#define WEFT_LIB_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <stddef.h>

#include "lib/mono.h"

struct loop;
struct loop_fd;
struct loop_signal;
struct loop_waker;
struct event_base;

enum loop_clock {
    LOOP_REAL,
    LOOP_VIRTUAL,
};

struct loop *loop_new(enum loop_clock clock); // NULL when the system gives no more descriptors
// Everything registered must have been freed, no timer be pending and no task queued (asserted).
void loop_free(struct loop *l);
void loop_run(struct loop *l); // until loop_stop()
void loop_stop(struct loop *l);
// Runs until *flag is true or until deadline_ns of loop time have passed; returns *flag. For tests and
// one-shot commands.
bool loop_run_until(struct loop *l, const bool *flag, int64_t deadline_ns);
// Time of this turn; loop_now_precise() reads the clock again (real) or is the same (virtual).
mono_t loop_now(const struct loop *l);
mono_t loop_now_precise(struct loop *l);
enum loop_clock loop_clock(const struct loop *l);
struct event_base *loop_event_base(struct loop *l);

// area: a string literal (kept by address): the account that a callback's time goes to.

// --- timers: intrusive, owned by the caller; may be re-armed or cancelled from their own callback ---
typedef void loop_fn(void *arg);
struct loop_timer {
    struct loop *loop;
    const char *area;
    loop_fn *fn;
    void *arg;
    mono_t due;
    uint64_t seq;  // equal times run in the order they were set
    uint32_t slot; // heap index + 1, 0 = not pending
};
void loop_timer_init(struct loop_timer *t, struct loop *l, const char *area, loop_fn *fn, void *arg);
// (Re)arms. A time in the past is as good as now: it runs after what is due already.
void loop_timer_at(struct loop_timer *t, mono_t due);
void loop_timer_after(struct loop_timer *t, int64_t ns);
void loop_timer_cancel(struct loop_timer *t);
static inline bool loop_timer_pending(const struct loop_timer *t)
{
    return t->slot != 0;
}

// --- tasks: run once, later in this or in the next turn, in order; intrusive ---
struct loop_task {
    struct loop_task *next, *prev;
    const char *area;
    loop_fn *fn;
    void *arg;
    bool queued;
};
void loop_task_init(struct loop_task *t, const char *area, loop_fn *fn, void *arg);
void loop_post(struct loop *l, struct loop_task *t); // no effect when already queued
void loop_unpost(struct loop *l, struct loop_task *t);

// --- descriptors ---
#define LOOP_READ 1
#define LOOP_WRITE 2
typedef void loop_fd_fn(void *arg, int fd, int events);
// NULL with errno when the descriptor cannot be polled (a plain file). Level-triggered.
struct loop_fd *loop_fd_new(struct loop *l, int fd, int events, const char *area, loop_fd_fn *fn, void *arg);
void loop_fd_events(struct loop_fd *f, int events); // 0 pauses
void loop_fd_free(struct loop_fd *f);               // does not close the descriptor

struct loop_signal *loop_signal_new(struct loop *l, int signo, loop_fn *fn, void *arg);
void loop_signal_free(struct loop_signal *s);

// --- from other threads: fn runs on the loop some time after each (run of) signal ---
struct loop_waker *loop_waker_new(struct loop *l, const char *area, loop_fn *fn, void *arg);
void loop_waker_signal(struct loop_waker *w); // thread-safe, cheap when already signalled
// No other thread may signal it any more.
void loop_waker_free(struct loop_waker *w);

// Virtual time does not advance between hold and release; no effect on real time. Loop thread only.
void loop_hold(struct loop *l);
void loop_release(struct loop *l);

// --- what the loop did ---
#define LOOP_SLOW_NS (10 * MONO_MS)  // no callback is to take longer
#define LOOP_HELD_NS (100 * MONO_MS) // people are told of those that do
// Of a simulated fabric: what it computes would be the devices' work.
static inline bool loop_area_is_simulated(const char *area)
{
    return area[0] == 's' && area[1] == 'i' && area[2] == 'm';
}
struct loop_area_stats {
    const char *area;
    uint64_t calls;
    int64_t total_ns, max_ns;
    uint64_t slow; // callbacks longer than LOOP_SLOW_NS
};
// Copies at most n rows; returns how many areas there are.
size_t loop_stats(const struct loop *l, struct loop_area_stats *ret, size_t n);

// Callbacks of 1 ms and more, by what they did. CPU: the thread's own time, up to 1 ms too much; a callback
// that took much longer than that has waited, for a disk or for the processor.
struct loop_long {
    const char *area, *what; // what: as loop_doing() said, or ""
    uint64_t calls, slow;
    int64_t max_ns, max_cpu_ns;       // the longest one's time; most CPU (perhaps another's)
    int64_t recent_ns, recent_cpu_ns; // the longest one of the last minute or two
};
#define LOOP_LONG_MAX 256 // rows; what comes then is not told apart from its area
size_t loop_longest(const struct loop *l, struct loop_long *ret, size_t n);

// Says what the running callback does from here on; it is named by what took it longest. what: a string
// literal, or NULL.
void loop_doing(struct loop *l, const char *what);
// What has run since the callback began, or since the last split, is counted as a callback of its own: where
// one callback does for several what could as well have come in turns (a transport that is no device hands
// over answers).
void loop_split(struct loop *l, const char *area);

struct loop_slow {
    const char *area, *what;
    int64_t ns, cpu_ns;
};
// Called after each callback longer than LOOP_SLOW_NS.
void loop_set_slow_hook(struct loop *l, void (*fn)(void *arg, const struct loop_slow *s), void *arg);

#endif
