// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/loop.h"
#include "lib/rng.h"

static const bool never = false;
static struct buf trace;

static struct loop *start(enum loop_clock clock)
{
    struct loop *l = loop_new(clock);
    assert_non_null(l);
    buf_clear(&trace);
    buf_puts(&trace, "");
    return l;
}

static void note(void *arg)
{
    buf_printf(&trace, "%s ", (const char *)arg);
}

// --- timers ---

static void virtual_clock_jumps(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    struct loop_timer day, second;
    mono_t real = mono_now();

    assert_int_equal(loop_now(l).ns, 0);
    assert_int_equal(loop_clock(l), LOOP_VIRTUAL);
    loop_timer_init(&day, l, "t", note, "day");
    loop_timer_init(&second, l, "t", note, "second");
    loop_timer_after(&day, 86400 * MONO_S);
    loop_timer_after(&second, MONO_S);
    assert_false(loop_run_until(l, &never, 86400 * MONO_S - 1));
    assert_string_equal(trace.data, "second ");
    assert_true(loop_now(l).ns == 86400 * MONO_S - 1);
    assert_true(loop_timer_pending(&day));
    assert_false(loop_run_until(l, &never, 1)); // what is due at the deadline still runs
    assert_string_equal(trace.data, "second day ");
    assert_true(loop_now(l).ns == 86400 * MONO_S);
    assert_true(loop_now_precise(l).ns == loop_now(l).ns);
    assert_true(mono_sub(mono_now(), real) < 100 * MONO_S);
    loop_free(l);
}

static void timers_run_by_time_then_by_order(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    struct loop_timer t[5];
    static char *const name[] = {"a", "b", "c", "d", "e"};

    for (int i = 0; i < 5; i++)
        loop_timer_init(&t[i], l, "t", note, name[i]);
    loop_timer_at(&t[0], (mono_t){20});
    loop_timer_at(&t[1], (mono_t){10});
    loop_timer_at(&t[2], (mono_t){20});
    loop_timer_at(&t[3], (mono_t){20});
    loop_timer_at(&t[4], (mono_t){10});
    loop_timer_at(&t[0], (mono_t){20}); // armed again: now the last of its time
    loop_timer_cancel(&t[3]);
    loop_timer_cancel(&t[3]);
    loop_run_until(l, &never, 100);
    assert_string_equal(trace.data, "b e c a ");
    loop_free(l);
}

struct many {
    struct loop_timer t;
    int64_t due;
    bool armed;
};
static int64_t last_due;
static unsigned fired;

static void check_many(void *arg)
{
    struct many *m = arg;
    assert_true(m->armed);
    assert_true(loop_now(m->t.loop).ns == m->due);
    assert_true(m->due >= last_due);
    assert_false(loop_timer_pending(&m->t));
    last_due = m->due;
    m->armed = false;
    fired++;
}

// Set, moved and cancelled at random: exactly those armed run, each at its time.
static void heap_against_a_plain_list(void **state)
{
    enum { N = 3000 };
    static struct many m[N];
    struct loop *l = start(LOOP_VIRTUAL);
    struct rng r;
    unsigned armed = 0;

    rng_init(&r, 3);
    last_due = 0;
    fired = 0;
    for (int i = 0; i < N; i++) {
        m[i] = (struct many){0};
        loop_timer_init(&m[i].t, l, "t", check_many, &m[i]);
    }
    for (int i = 0; i < 40000; i++) {
        struct many *x = &m[rng_below(&r, N)];
        x->armed = rng_below(&r, 3) > 0;
        if (x->armed) {
            x->due = 1 + rng_below(&r, 1000);
            loop_timer_at(&x->t, (mono_t){x->due});
        } else {
            loop_timer_cancel(&x->t);
        }
    }
    for (int i = 0; i < N; i++) {
        assert_int_equal(loop_timer_pending(&m[i].t), m[i].armed);
        armed += m[i].armed;
    }
    loop_run_until(l, &never, 2000);
    assert_int_equal(fired, armed);
    loop_free(l);
}

struct pair {
    struct loop_timer own, other;
    int runs;
};

static void cancel_both(void *arg)
{
    struct pair *p = arg;
    p->runs++;
    loop_timer_cancel(&p->own);
    loop_timer_cancel(&p->other);
}

static void rearm_own(void *arg)
{
    struct pair *p = arg;
    if (++p->runs < 5)
        loop_timer_at(&p->own, mono_add(p->own.due, 10));
}

static void free_own(void *arg)
{
    struct pair *p = arg;
    note("freed");
    free(p);
}

static void cancel_rearm_and_free_within_callbacks(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    struct pair p = {0};

    loop_timer_init(&p.own, l, "t", cancel_both, &p);
    loop_timer_init(&p.other, l, "t", note, "never");
    loop_timer_after(&p.own, 5);
    loop_timer_after(&p.other, 5); // due in the same batch
    loop_run_until(l, &never, 100);
    assert_int_equal(p.runs, 1);
    assert_string_equal(trace.data, "");

    p.runs = 0;
    loop_timer_init(&p.own, l, "t", rearm_own, &p);
    loop_timer_after(&p.own, 10);
    loop_run_until(l, &never, 40);
    assert_int_equal(p.runs, 4);
    loop_run_until(l, &never, 1000);
    assert_int_equal(p.runs, 5);

    struct pair *heap = calloc(1, sizeof(*heap));
    loop_timer_init(&heap->own, l, "t", free_own, heap);
    loop_timer_after(&heap->own, 1);
    loop_run_until(l, &never, 10);
    assert_string_equal(trace.data, "freed ");
    loop_free(l);
}

// --- fairness ---

struct greedy {
    struct loop *l;
    struct loop_task task;
    struct loop_timer timer;
    unsigned long runs;
    bool done;
};

static void post_again(void *arg)
{
    struct greedy *g = arg;
    g->runs++;
    loop_post(g->l, &g->task);
}

static void set_again(void *arg)
{
    struct greedy *g = arg;
    g->runs++;
    loop_timer_after(&g->timer, -5); // in the past, too
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

static void fd_true(void *arg, int fd, int events)
{
    char c;
    assert_int_equal(events, LOOP_READ);
    assert_int_equal(read(fd, &c, 1), 1);
    *(bool *)arg = true;
}

static void greedy_tasks_and_timers_starve_nothing(void **state)
{
    for (int clock = LOOP_REAL; clock <= LOOP_VIRTUAL; clock++) {
        struct loop *l = start(clock);
        struct greedy g = {.l = l};
        struct loop_timer t;
        struct loop_task k;
        bool flag = false;
        int p[2];

        loop_task_init(&g.task, "greedy", post_again, &g);
        loop_timer_init(&g.timer, l, "greedy", set_again, &g);
        loop_timer_init(&t, l, "t", set_true, &flag);
        loop_task_init(&k, "k", set_true, &flag);
        assert_int_equal(pipe(p), 0);
        struct loop_fd *f = loop_fd_new(l, p[0], LOOP_READ, "fd", fd_true, &flag);

        for (int kind = 0; kind < 2; kind++) {
            if (kind == 0)
                loop_post(l, &g.task);
            else
                loop_timer_after(&g.timer, 0);
            loop_timer_after(&t, 0);
            assert_true(loop_run_until(l, &flag, 100 * MONO_S));
            flag = false;
            loop_post(l, &k);
            assert_true(loop_run_until(l, &flag, 100 * MONO_S));
            flag = false;
            assert_int_equal(write(p[1], "x", 1), 1);
            assert_true(loop_run_until(l, &flag, 100 * MONO_S));
            flag = false;
            if (clock == LOOP_VIRTUAL) // something could run all the time
                assert_int_equal(loop_now(l).ns, 0);
            loop_unpost(l, &g.task);
            loop_timer_cancel(&g.timer);
        }
        loop_fd_free(f);
        close(p[0]);
        close(p[1]);
        loop_free(l);
    }
}

// --- tasks ---

struct chain {
    struct loop *l;
    struct loop_task a, b, c;
};

static void chain_a(void *arg)
{
    struct chain *x = arg;
    note("a");
    loop_unpost(x->l, &x->b); // in the same batch
    loop_post(x->l, &x->c);   // queued already: stays where it is
    loop_post(x->l, &x->a);
}

struct greedy_fd {
    struct loop *l;
    struct loop_task task;
    int fd;
    unsigned calls, at_task; // of the descriptor's callback; those before the task's third run
    unsigned runs;
    bool done;
};

static void greedy_readable(void *arg, int fd, int events)
{
    struct greedy_fd *g = arg;
    char c;
    if (++g->calls == 10000 && read(fd, &c, 1) == 1) // ends what would never end
        g->done = true;
}

static void greedy_task(void *arg)
{
    struct greedy_fd *g = arg;
    if (++g->runs == 100) {
        g->at_task = g->calls;
        g->done = true;
        return;
    }
    loop_post(g->l, &g->task);
}

// A descriptor that is ready all the time takes one turn after the other, not all.
static void a_greedy_descriptor_starves_nothing(void **state)
{
    struct loop *l = start(LOOP_REAL);
    struct greedy_fd g = {.l = l};
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    assert_int_equal(write(fds[1], "x", 1), 1);
    struct loop_fd *f = loop_fd_new(l, fds[0], LOOP_READ, "t", greedy_readable, &g);
    loop_task_init(&g.task, "t", greedy_task, &g);
    loop_post(l, &g.task);
    assert_true(loop_run_until(l, &g.done, 60 * MONO_S));
    assert_int_equal(g.runs, 100);
    assert_true(g.at_task <= 100);
    loop_fd_free(f);
    close(fds[0]);
    close(fds[1]);
    loop_free(l);
}

static void tasks_run_in_order_once(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    struct chain x = {.l = l};
    struct loop_timer stop;
    bool flag = false;

    loop_task_init(&x.a, "k", chain_a, &x);
    loop_task_init(&x.b, "k", note, "b");
    loop_task_init(&x.c, "k", note, "c");
    loop_timer_init(&stop, l, "t", set_true, &flag);
    loop_post(l, &x.a);
    loop_post(l, &x.b);
    loop_post(l, &x.c);
    loop_post(l, &x.c);
    loop_timer_after(&stop, 0);
    assert_true(loop_run_until(l, &flag, 10)); // one turn
    assert_string_equal(trace.data, "a c ");
    assert_true(x.a.queued);
    assert_false(x.b.queued || x.c.queued);
    loop_unpost(l, &x.a);
    loop_unpost(l, &x.a);
    loop_run_until(l, &never, 10);
    assert_string_equal(trace.data, "a c ");
    loop_free(l);
}

static void stop_it(void *arg)
{
    loop_stop(arg);
}

static void run_and_stop(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    struct loop_timer t, later;

    loop_timer_init(&t, l, "t", stop_it, l);
    loop_timer_init(&later, l, "t", note, "later");
    for (int i = 0; i < 3; i++) {
        loop_timer_after(&t, 10);
        loop_timer_after(&later, 11);
        loop_run(l);
        assert_int_equal(loop_now(l).ns, 10 * (i + 1));
        assert_string_equal(trace.data, "");
    }
    // Stopped: run_until gives up before its time.
    loop_timer_after(&t, 0);
    assert_false(loop_run_until(l, &never, 1000));
    assert_int_equal(loop_now(l).ns, 30);
    loop_timer_cancel(&later);
    loop_free(l);
}

static void flag_already_true(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    struct loop_task k;
    bool flag = true;

    loop_task_init(&k, "k", note, "k");
    loop_post(l, &k);
    assert_true(loop_run_until(l, &flag, 10));
    assert_string_equal(trace.data, "");
    loop_unpost(l, &k);
    loop_free(l);
}

// --- descriptors ---

struct duplex {
    struct loop *l;
    struct loop_fd *r, *w;
    int got, writes;
    bool done;
};

static void can_write(void *arg, int fd, int events)
{
    struct duplex *d = arg;
    assert_int_equal(events, LOOP_WRITE);
    assert_int_equal(write(fd, "ab", 2), 2);
    if (++d->writes == 3)
        loop_fd_events(d->w, 0);
}

static void can_read(void *arg, int fd, int events)
{
    struct duplex *d = arg;
    char c;
    assert_int_equal(read(fd, &c, 1), 1); // level-triggered: called again for the rest
    if (++d->got < 6)
        return;
    d->done = true;
    loop_fd_free(d->r); // within its own callback
    d->r = NULL;
}

static void descriptors(void **state)
{
    for (int clock = LOOP_REAL; clock <= LOOP_VIRTUAL; clock++) {
        struct loop *l = start(clock);
        struct duplex d = {.l = l};
        struct loop_timer t;
        int p[2];

        assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
        d.r = loop_fd_new(l, p[0], LOOP_READ, "r", can_read, &d);
        d.w = loop_fd_new(l, p[1], 0, "w", can_write, &d);
        loop_fd_events(d.w, LOOP_WRITE);
        // In virtual time what is ready goes before the next timer, however near.
        loop_timer_init(&t, l, "t", note, "timer");
        if (clock == LOOP_VIRTUAL)
            loop_timer_after(&t, 1);
        assert_true(loop_run_until(l, &d.done, 100 * MONO_S));
        assert_int_equal(d.writes, 3);
        assert_string_equal(trace.data, "");
        if (clock == LOOP_VIRTUAL)
            assert_int_equal(loop_now(l).ns, 0);
        loop_timer_cancel(&t);
        loop_fd_free(d.w);
        loop_fd_free(NULL);
        close(p[0]);
        close(p[1]);
        loop_free(l);
    }
}

static void a_plain_file_is_refused(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_null(loop_fd_new(l, fd, LOOP_READ, "f", can_read, NULL));
    assert_int_equal(errno, EPERM);
    close(fd);
    loop_free(l);
}

// --- real clock ---

struct stamp {
    struct loop *l;
    mono_t at;
    bool done;
};

static void stamp(void *arg)
{
    struct stamp *s = arg;
    s->at = loop_now(s->l);
    s->done = true;
}

static void real_timer_is_never_early(void **state)
{
    struct loop *l = start(LOOP_REAL);
    struct stamp s = {.l = l};
    struct loop_timer t;

    loop_timer_init(&t, l, "t", stamp, &s);
    for (int i = 0; i < 20; i++) {
        int64_t wait = i * 137 * MONO_US + i;
        s.done = false;
        mono_t before = mono_now();
        loop_timer_after(&t, wait);
        assert_true(loop_run_until(l, &s.done, 1000 * MONO_S));
        assert_true(mono_sub(s.at, before) >= wait);
        assert_true(mono_sub(loop_now(l), s.at) >= 0);
    }
    // A deadline of its own, with nothing else registered.
    mono_t before = mono_now();
    assert_false(loop_run_until(l, &never, 3 * MONO_MS));
    assert_true(mono_sub(mono_now(), before) >= 3 * MONO_MS);
    loop_timer_after(&t, INT64_MAX); // saturates
    assert_true(loop_timer_pending(&t));
    assert_false(loop_run_until(l, &never, MONO_MS));
    loop_timer_cancel(&t);
    loop_free(l);
}

// --- signals ---

static void raise_usr1(void *arg)
{
    raise(SIGUSR1);
}

static void signals(void **state)
{
    for (int clock = LOOP_REAL; clock <= LOOP_VIRTUAL; clock++) {
        struct loop *l = start(clock);
        struct loop_task k;
        bool got = false;

        struct loop_signal *s = loop_signal_new(l, SIGUSR1, set_true, &got);
        loop_task_init(&k, "k", raise_usr1, NULL);
        loop_post(l, &k);
        assert_true(loop_run_until(l, &got, 100 * MONO_S));
        loop_signal_free(s);
        loop_signal_free(NULL);
        loop_free(l);
    }
}

// --- wakers ---

struct wake {
    struct loop *l;
    struct loop_waker *w, *other;
    unsigned calls, want;
    _Atomic unsigned sent;
    bool done;
};

static void woken(void *arg)
{
    struct wake *w = arg;
    w->calls++;
    if (w->sent == w->want)
        w->done = true;
}

static void *signal_often(void *arg)
{
    struct wake *w = arg;
    for (unsigned i = 0; i < w->want; i++) {
        w->sent++;
        loop_waker_signal(w->w);
    }
    return NULL;
}

static void waker_from_a_thread(void **state)
{
    for (int clock = LOOP_REAL; clock <= LOOP_VIRTUAL; clock++) {
        struct loop *l = start(clock);
        struct wake w = {.l = l, .want = 100000};
        pthread_t t;

        w.w = loop_waker_new(l, "w", woken, &w);
        loop_hold(l); // else virtual time runs to the deadline at once
        assert_int_equal(pthread_create(&t, NULL, signal_often, &w), 0);
        // The last signal is never lost.
        assert_true(loop_run_until(l, &w.done, 1000 * MONO_S));
        assert_in_range(w.calls, 1, w.want);
        if (clock == LOOP_VIRTUAL)
            assert_int_equal(loop_now(l).ns, 0);
        pthread_join(t, NULL);
        loop_release(l);
        loop_waker_free(w.w);
        loop_free(l);
    }
}

struct block {
    struct loop *l;
    struct loop_timer far;
    struct loop_waker *w;
};

static void cancel_and_stop(void *arg)
{
    struct block *b = arg;
    loop_timer_cancel(&b->far);
    loop_stop(b->l);
}

static void *signal_once(void *arg)
{
    struct block *b = arg;
    loop_waker_signal(b->w);
    return NULL;
}

// The first run blocks until a far timer, the second, with none left, on descriptors alone.
static void blocked_loop_is_woken(void **state)
{
    struct block b = {.l = start(LOOP_REAL)};

    b.w = loop_waker_new(b.l, "w", cancel_and_stop, &b);
    loop_timer_init(&b.far, b.l, "t", note, "far");
    loop_timer_after(&b.far, 100000 * MONO_S);
    for (int i = 0; i < 3; i++) {
        pthread_t t;
        assert_int_equal(pthread_create(&t, NULL, signal_once, &b), 0);
        loop_run(b.l);
        pthread_join(t, NULL);
        assert_false(loop_timer_pending(&b.far));
    }
    assert_non_null(loop_event_base(b.l));
    assert_string_equal(trace.data, "");
    loop_waker_free(b.w);
    loop_free(b.l);
}

static void free_other(void *arg)
{
    struct wake *w = arg;
    w->calls++;
    loop_waker_free(w->other);
    w->other = NULL;
    w->done = true;
}

static void wakers_run_in_order_and_can_go(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    struct wake w = {.l = l};

    w.w = loop_waker_new(l, "w", free_other, &w);
    w.other = loop_waker_new(l, "w", note, "freed");
    struct loop_waker *third = loop_waker_new(l, "w", note, "third");
    loop_waker_signal(third);
    loop_waker_signal(w.other);
    loop_waker_signal(w.w);
    loop_waker_signal(w.w);
    assert_true(loop_run_until(l, &w.done, 10));
    assert_int_equal(loop_now(l).ns, 0); // a signal goes before time does
    assert_int_equal(w.calls, 1);
    assert_string_equal(trace.data, "third ");
    loop_waker_free(third);
    loop_waker_free(w.w);
    loop_free(l);
}

// --- accounting ---

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * MONO_S + t.tv_nsec;
}

// Of the processor's time: a busy machine makes it longer, and nothing else of another proportion.
static void burn(void *arg)
{
    mono_t until = mono_add(mono_now(), *(int64_t *)arg);
    int64_t until_cpu = cpu_ns() + *(int64_t *)arg;
    while (mono_sub(mono_now(), until) < 0 || cpu_ns() < until_cpu)
        ;
}

static void block(void *arg)
{
    int64_t ns = *(int64_t *)arg;
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static void on_slow(void *arg, const struct loop_slow *s)
{
    assert_true(s->ns >= LOOP_SLOW_NS && s->cpu_ns <= s->ns);
    if (s->cpu_ns < LOOP_SLOW_NS) // the processor was others'
        return;
    assert_string_equal(s->area, "burn");
    assert_true(s->ns >= 12 * MONO_MS);
    ++*(int *)arg;
}

static void time_is_counted_per_area(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    char same_text[] = "quick"; // another address, one area
    struct loop_task k[4];
    struct loop_timer t;
    int64_t slow_ns = 12 * MONO_MS, quick_ns = 100 * MONO_US;
    int hooks = 0;
    struct loop_area_stats st[8];

    loop_set_slow_hook(l, on_slow, &hooks);
    loop_task_init(&k[0], "burn", burn, &slow_ns);
    loop_task_init(&k[1], "quick", burn, &quick_ns);
    loop_task_init(&k[2], same_text, burn, &quick_ns);
    loop_task_init(&k[3], "burn", burn, &quick_ns);
    loop_timer_init(&t, l, "quick", burn, &quick_ns);
    for (int i = 0; i < 4; i++)
        loop_post(l, &k[i]);
    loop_timer_after(&t, 0);
    loop_run_until(l, &never, 1);
    assert_int_equal(hooks, 1);
    assert_int_equal(loop_stats(l, st, 1), loop_stats(l, st, 8));
    assert_string_equal(st[0].area, "burn");
    assert_int_equal(st[0].calls, 2);
    assert_in_range(st[0].slow, 1, 2); // the short one may have waited
    assert_true(st[0].max_ns >= slow_ns && st[0].total_ns >= slow_ns + quick_ns);
    assert_string_equal(st[1].area, "quick");
    assert_int_equal(st[1].calls, 3);
    assert_true(st[1].total_ns >= 3 * quick_ns && st[1].max_ns < st[1].total_ns);
    loop_free(l);
}

struct parts {
    struct loop *l;
    int64_t one, two;
};

static void burn_parts(void *arg)
{
    struct parts *p = arg;
    loop_doing(p->l, "one");
    burn(&p->one);
    loop_split(p->l, "part");
    loop_doing(p->l, "two");
    burn(&p->two);
    loop_doing(p->l, "three");
    burn(&p->one);
}

static const struct loop_long *long_of(const struct loop_long *r, size_t n, const char *area,
                                       const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(r[i].area, area) && !strcmp(r[i].what, what))
            return &r[i];
    return NULL;
}

// A callback is named by what took it longest, until it ends or is split.
static void long_callbacks_have_names(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    struct parts p = {.l = l, .one = 2 * MONO_MS, .two = 60 * MONO_MS};
    int64_t quick_ns = 10 * MONO_US, long_ns = 3 * MONO_MS;
    struct loop_task k[4];
    struct loop_long r[8];

    loop_task_init(&k[0], "whole", burn_parts, &p);
    loop_task_init(&k[1], "whole", burn, &long_ns); // has said nothing
    loop_task_init(&k[2], "quick", burn, &quick_ns);
    loop_task_init(&k[3], "whole", burn_parts, &p);
    for (int i = 0; i < 4; i++)
        loop_post(l, &k[i]);
    loop_run_until(l, &never, 1);
    size_t n = loop_longest(l, r, 8);
    assert_int_equal(n, loop_longest(l, NULL, 0));
    const struct loop_long *one = long_of(r, n, "part", "one"), *two = long_of(r, n, "whole", "two"),
                           *none = long_of(r, n, "whole", "");
    assert_non_null(one);
    assert_non_null(two);
    assert_non_null(none);
    assert_int_equal(one->calls, 2);
    assert_int_equal(two->calls, 2);
    assert_int_equal(two->slow, 2);
    assert_int_equal(none->calls, 1);
    assert_true(one->max_ns >= p.one && two->max_ns >= p.two && none->max_ns >= long_ns);
    assert_true(two->max_cpu_ns > 0 && two->max_cpu_ns <= two->max_ns);
    assert_true(two->recent_ns == two->max_ns && two->recent_cpu_ns == two->max_cpu_ns);
    const struct loop_long *quick = long_of(r, n, "quick", "");
    assert_true(!quick || quick->max_ns >= MONO_MS); // not but on a busy machine
    loop_free(l);
}

// A callback that waits has taken time and no CPU.
static void waiting_is_told_from_computing(void **state)
{
    struct loop *l = start(LOOP_REAL);
    struct loop_task k;
    struct loop_long r[4];
    int64_t ns = 30 * MONO_MS;

    loop_task_init(&k, "wait", block, &ns);
    loop_post(l, &k);
    loop_run_until(l, &never, MONO_MS);
    size_t n = loop_longest(l, r, 4);
    const struct loop_long *w = long_of(r, n < 4 ? n : 4, "wait", "");
    assert_non_null(w);
    assert_true(w->max_ns >= ns && w->max_cpu_ns < ns / 2);
    loop_free(l);
}

static void many_areas(void **state)
{
    struct loop *l = start(LOOP_VIRTUAL);
    static char name[300][8];
    static struct loop_task k[300];
    static struct loop_area_stats st[400];

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 300; i++) {
            snprintf(name[i], sizeof(name[i]), "a%d", i);
            loop_task_init(&k[i], name[i], note, "x");
            loop_post(l, &k[i]);
        }
        loop_run_until(l, &never, 1);
    }
    assert_int_equal(loop_stats(l, st, 400), 301); // and the loop's own
    unsigned found = 0;
    for (int i = 0; i < 301; i++)
        found += st[i].area[0] == 'a' && st[i].calls == 3;
    assert_int_equal(found, 300);
    loop_free(l);
}

static int teardown(void **state)
{
    buf_done(&trace);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(virtual_clock_jumps),
        cmocka_unit_test(timers_run_by_time_then_by_order),
        cmocka_unit_test(heap_against_a_plain_list),
        cmocka_unit_test(cancel_rearm_and_free_within_callbacks),
        cmocka_unit_test(greedy_tasks_and_timers_starve_nothing),
        cmocka_unit_test(a_greedy_descriptor_starves_nothing),
        cmocka_unit_test(tasks_run_in_order_once),
        cmocka_unit_test(run_and_stop),
        cmocka_unit_test(flag_already_true),
        cmocka_unit_test(descriptors),
        cmocka_unit_test(a_plain_file_is_refused),
        cmocka_unit_test(real_timer_is_never_early),
        cmocka_unit_test(signals),
        cmocka_unit_test(waker_from_a_thread),
        cmocka_unit_test(blocked_loop_is_woken),
        cmocka_unit_test(wakers_run_in_order_and_can_go),
        cmocka_unit_test(time_is_counted_per_area),
        cmocka_unit_test(long_callbacks_have_names),
        cmocka_unit_test(waiting_is_told_from_computing),
        cmocka_unit_test(many_areas),
    };
    return cmocka_run_group_tests(tests, NULL, teardown);
}
