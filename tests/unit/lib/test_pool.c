// SPDX-License-Identifier: Apache-2.0
// Also run under ThreadSanitizer.
#include "tests/unit/lib/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "lib/loop.h"
#include "lib/pool.h"

enum { TASKS = 5000 };

struct job {
    struct pool_job job;
    struct pool *pool;
    struct loop *l;
    pthread_t main_thread;
    unsigned char hit[TASKS]; // each written by one task, without atomics
    unsigned long sum;
    unsigned width;
    unsigned again;
    bool done, on_worker;
    unsigned *all_done;
};

static void hit(void *arg, unsigned i)
{
    struct job *j = arg;
    j->hit[i]++;
}

static void spread(void *arg, struct par *par)
{
    struct job *j = arg;
    j->on_worker = !pthread_equal(pthread_self(), j->main_thread);
    j->width = par->width;
    for (int round = 0; round < 3; round++) {
        memset(j->hit, 0, sizeof(j->hit));
        par->run(par, TASKS, hit, j);
        par->run(par, 0, hit, j);
        par->run(par, 1, hit, j);
    }
    j->sum = 0;
    for (unsigned i = 0; i < TASKS; i++)
        j->sum += j->hit[i]; // all are done by now
}

static void spread_done(void *arg)
{
    struct job *j = arg;
    assert_true(pthread_equal(pthread_self(), j->main_thread));
    if (j->again) {
        j->again--;
        pool_submit(j->pool, &j->job); // from its own done()
        return;
    }
    j->done = true;
    if (j->all_done)
        ++*j->all_done;
}

static void job_init(struct job *j, struct loop *l, struct pool *p)
{
    memset(j, 0, sizeof(*j));
    j->job = (struct pool_job){.work = spread, .done = spread_done, .arg = j};
    j->pool = p;
    j->l = l;
    j->main_thread = pthread_self();
}

static void every_task_once_and_seen(void **state)
{
    static struct job j;

    for (unsigned threads = 1; threads <= 4; threads++) {
        struct loop *l = loop_new(LOOP_VIRTUAL);
        struct pool *p = pool_new(l, threads);

        job_init(&j, l, p);
        j.again = 3;
        pool_submit(p, &j.job);
        assert_true(loop_run_until(l, &j.done, MONO_S));
        assert_true(j.on_worker);
        assert_int_equal(j.width, threads);
        assert_int_equal(j.sum, TASKS + 1);
        assert_int_equal(j.hit[0], 2);
        for (unsigned i = 1; i < TASKS; i++)
            assert_int_equal(j.hit[i], 1);
        assert_int_equal(loop_now(l).ns, 0); // real work costs no virtual time
        pool_free(p);
        loop_free(l);
    }
}

static int policy;

static void look_at_policy(void *arg, struct par *par)
{
    struct sched_param sp;
    pthread_getschedparam(pthread_self(), &policy, &sp);
    spread(arg, par);
}

// Where the system does not let a thread be so modest, it works all the same.
static void idle(void **state)
{
    static struct job j;
    struct sched_param none = {0};
    int before, after;
    struct loop *l = loop_new(LOOP_VIRTUAL);
    struct pool *p = pool_new(l, 2);

    pthread_getschedparam(pthread_self(), &before, &none);
    pool_idle(p);
    job_init(&j, l, p);
    j.job.work = look_at_policy;
    pool_submit(p, &j.job);
    assert_true(loop_run_until(l, &j.done, MONO_S));
    assert_int_equal(j.sum, TASKS + 1);
    pthread_getschedparam(pthread_self(), &after, &none);
    assert_int_equal(after, before); // nobody else's
    if (policy != SCHED_IDLE)
        print_message("# threads may not be idle here\n");
    pool_free(p);
    loop_free(l);
}

static void jobs_at_once(void **state)
{
    enum { JOBS = 12 };
    static struct job j[JOBS];
    struct loop *l = loop_new(LOOP_REAL);
    struct pool *p = pool_new(l, 3);
    unsigned done = 0;

    for (int i = 0; i < JOBS; i++) {
        job_init(&j[i], l, p);
        j[i].all_done = &done;
        pool_submit(p, &j[i].job);
    }
    for (int i = 0; i < JOBS; i++) {
        assert_true(loop_run_until(l, &j[i].done, 1000 * MONO_S));
        assert_int_equal(j[i].sum, TASKS + 1);
    }
    assert_int_equal(done, JOBS);
    pool_free(p);
    loop_free(l);
}

// --- run() waits for those who help ---

struct late {
    pthread_barrier_t both;
    pthread_t caller;
    bool helper_done, seen, done;
};

static void late_task(void *arg, unsigned i)
{
    struct late *x = arg;
    pthread_barrier_wait(&x->both); // so each thread has one of the two
    if (pthread_equal(pthread_self(), x->caller))
        return;
    mono_t until = mono_add(mono_now(), 5 * MONO_MS);
    while (mono_sub(mono_now(), until) < 0)
        ;
    x->helper_done = true;
}

static void late_work(void *arg, struct par *par)
{
    struct late *x = arg;
    x->caller = pthread_self();
    par->run(par, 2, late_task, x);
    x->seen = x->helper_done;
}

static void late_done(void *arg)
{
    ((struct late *)arg)->done = true;
}

static void run_waits_for_its_helpers(void **state)
{
    struct loop *l = loop_new(LOOP_VIRTUAL);
    struct pool *p = pool_new(l, 2);
    struct late x = {0};
    struct pool_job job = {.work = late_work, .done = late_done, .arg = &x};

    pthread_barrier_init(&x.both, NULL, 2);
    pool_submit(p, &job);
    assert_true(loop_run_until(l, &x.done, MONO_S));
    assert_true(x.seen);
    pool_free(p);
    pthread_barrier_destroy(&x.both);
    loop_free(l);
}

// --- virtual time, and leaving early ---

struct gate {
    struct pool_job job;
    struct loop *l;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool open, begun;
    bool done;
    mono_t done_at;
};

static void wait_gate(void *arg, struct par *par)
{
    struct gate *g = arg;
    pthread_mutex_lock(&g->lock);
    g->begun = true;
    pthread_cond_broadcast(&g->cond);
    while (!g->open)
        pthread_cond_wait(&g->cond, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void gate_done(void *arg)
{
    struct gate *g = arg;
    g->done = true;
    g->done_at = loop_now(g->l);
}

static void open_gate(void *arg)
{
    struct gate *g = arg;
    pthread_mutex_lock(&g->lock);
    g->open = true;
    pthread_cond_broadcast(&g->cond);
    pthread_mutex_unlock(&g->lock);
}

static void gate_init(struct gate *g, struct loop *l)
{
    *g = (struct gate){.l = l, .lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};
    g->job = (struct pool_job){.work = wait_gate, .done = gate_done, .arg = g};
}

static void wait_begun(struct gate *g)
{
    pthread_mutex_lock(&g->lock);
    while (!g->begun)
        pthread_cond_wait(&g->cond, &g->lock);
    pthread_mutex_unlock(&g->lock);
}

static void set_true(void *arg)
{
    *(bool *)arg = true;
}

// With a job on its way a timer one nanosecond ahead does not run before done() did; one due now does.
static void a_job_holds_virtual_time(void **state)
{
    struct loop *l = loop_new(LOOP_VIRTUAL);
    struct pool *p = pool_new(l, 1);
    struct gate g;
    struct loop_timer now, soon;
    bool flag = false;

    gate_init(&g, l);
    loop_timer_init(&now, l, "t", open_gate, &g);
    loop_timer_init(&soon, l, "t", set_true, &flag);
    pool_submit(p, &g.job);
    loop_timer_after(&now, 0); // only this opens the gate
    loop_timer_after(&soon, 1);
    assert_true(loop_run_until(l, &flag, MONO_S));
    assert_true(g.done);
    assert_int_equal(g.done_at.ns, 0);
    assert_int_equal(loop_now(l).ns, 1);
    pool_free(p);
    loop_free(l);
}

static void *open_gate_thread(void *arg)
{
    open_gate(arg);
    return NULL;
}

static void free_waits_for_running_and_drops_waiting(void **state)
{
    struct loop *l = loop_new(LOOP_VIRTUAL);
    struct pool *p = pool_new(l, 1);
    struct gate running, waiting;
    struct loop_timer t;
    bool flag = false;
    pthread_t opener;

    gate_init(&running, l);
    gate_init(&waiting, l);
    pool_submit(p, &running.job);
    wait_begun(&running);
    pool_submit(p, &waiting.job);
    assert_int_equal(pthread_create(&opener, NULL, open_gate_thread, &running), 0);
    // The second job may begin if the gate opens before pool_free() is in: then it must be let through as
    // well.
    open_gate(&waiting);
    pool_free(p);
    pthread_join(opener, NULL);
    assert_true(running.done); // what ran is told
    assert_int_equal(waiting.done, waiting.begun);

    // No hold is left over: time moves.
    loop_timer_init(&t, l, "t", set_true, &flag);
    loop_timer_after(&t, MONO_S);
    assert_true(loop_run_until(l, &flag, 2 * MONO_S));
    loop_free(l);
    pool_free(NULL);
}

// --- cancelling ---

static void time_moves(struct loop *l) // no hold is left over
{
    struct loop_timer t;
    bool flag = false;
    loop_timer_init(&t, l, "t", set_true, &flag);
    loop_timer_after(&t, MONO_S);
    assert_true(loop_run_until(l, &flag, 2 * MONO_S));
}

static void cancel_a_waiting_job(void **state)
{
    struct loop *l = loop_new(LOOP_VIRTUAL);
    struct pool *p = pool_new(l, 1);
    struct gate running, waiting[3];

    gate_init(&running, l);
    pool_submit(p, &running.job);
    wait_begun(&running);
    for (int i = 0; i < 3; i++) {
        gate_init(&waiting[i], l);
        open_gate(&waiting[i]);
        pool_submit(p, &waiting[i].job);
        assert_ptr_equal(waiting[i].job.pool, p);
    }
    pool_cancel(&waiting[2].job); // the last: what is submitted now goes in its place
    pool_cancel(&waiting[0].job);
    assert_null(waiting[0].job.pool);
    pool_cancel(&waiting[0].job); // no effect
    pool_submit(p, &waiting[2].job);
    open_gate(&running);
    assert_true(loop_run_until(l, &waiting[2].done, MONO_S));
    assert_true(running.done);
    assert_false(waiting[0].begun);
    assert_false(waiting[0].done);
    assert_true(waiting[1].done);
    assert_null(waiting[1].job.pool);

    pool_submit(p, &waiting[0].job); // as good as new
    assert_true(loop_run_until(l, &waiting[0].done, MONO_S));
    time_moves(l);
    pool_free(p);
    loop_free(l);
}

struct slow {
    struct gate gate;
    unsigned char hit[TASKS];
};

static void slow_work(void *arg, struct par *par)
{
    struct slow *x = arg;
    wait_gate(&x->gate, par);
    for (unsigned i = 0; i < TASKS; i++)
        x->hit[i] = 1; // without atomics: cancelling is what orders it before the loop's look
}

static void slow_done(void *arg)
{
    gate_done(&((struct slow *)arg)->gate);
}

static void cancel_waits_for_a_running_job(void **state)
{
    struct loop *l = loop_new(LOOP_VIRTUAL);

    for (unsigned threads = 1; threads <= 2; threads++) {
        struct pool *p = pool_new(l, threads);
        struct slow *x = calloc(1, sizeof(*x));
        pthread_t opener;

        gate_init(&x->gate, l);
        x->gate.job = (struct pool_job){.work = slow_work, .done = slow_done, .arg = x};
        pool_submit(p, &x->gate.job);
        wait_begun(&x->gate);
        assert_int_equal(pthread_create(&opener, NULL, open_gate_thread, &x->gate), 0);
        pool_cancel(&x->gate.job);
        for (unsigned i = 0; i < TASKS; i++)
            assert_int_equal(x->hit[i], 1);
        assert_null(x->gate.job.pool);
        pthread_join(opener, NULL);
        time_moves(l); // also runs what the worker's signal woke
        assert_false(x->gate.done);
        free(x);
        time_moves(l);
        pool_free(p);
    }
    loop_free(l);
}

// With one thread jobs end in the order of submitting: when the last has begun, those before have finished.
static void cancel_a_finished_job(void **state)
{
    struct loop *l = loop_new(LOOP_VIRTUAL);

    for (int which = 0; which < 3; which++) {
        struct pool *p = pool_new(l, 1);
        struct gate g[3], last;
        for (int i = 0; i < 3; i++) {
            gate_init(&g[i], l);
            open_gate(&g[i]);
            pool_submit(p, &g[i].job);
        }
        gate_init(&last, l);
        pool_submit(p, &last.job);
        wait_begun(&last);
        pool_cancel(&g[which].job);
        assert_null(g[which].job.pool);
        open_gate(&last);
        assert_true(loop_run_until(l, &last.done, MONO_S));
        for (int i = 0; i < 3; i++) {
            assert_true(g[i].begun);
            assert_int_equal(g[i].done, i != which);
        }
        time_moves(l);
        pool_free(p);
    }
    loop_free(l);
}

// done() of the first cancels others: one that is to be delivered next, one that has not begun, itself.
struct canceller {
    struct gate gate;
    struct pool_job *victim[3];
    struct gate *then; // submitted afterwards
    struct pool *pool;
};

static void cancel_others(void *arg)
{
    struct canceller *c = arg;
    for (int i = 0; i < 3; i++)
        pool_cancel(c->victim[i]);
    gate_done(&c->gate);
    pool_submit(c->pool, &c->then->job);
}

static void canceller_work(void *arg, struct par *par)
{
}

static void cancel_within_done(void **state)
{
    struct loop *l = loop_new(LOOP_VIRTUAL);

    for (int which = 0; which < 3; which++) { // of three that are delivered together with it
        struct pool *p = pool_new(l, 1);
        struct gate next[3], running, waiting, then;
        struct canceller c = {.then = &then, .pool = p};

        gate_init(&c.gate, l);
        c.gate.job = (struct pool_job){.work = canceller_work, .done = cancel_others, .arg = &c};
        pool_submit(p, &c.gate.job);
        for (int i = 0; i < 3; i++) {
            gate_init(&next[i], l);
            open_gate(&next[i]);
            pool_submit(p, &next[i].job);
        }
        gate_init(&running, l);
        gate_init(&waiting, l);
        gate_init(&then, l);
        open_gate(&then);
        pool_submit(p, &running.job);
        pool_submit(p, &waiting.job);
        wait_begun(&running); // the worker is busy with it until after the first delivery
        c.victim[0] = &next[which].job;
        c.victim[1] = &waiting.job;
        c.victim[2] = &c.gate.job;
        assert_true(loop_run_until(l, &c.gate.done, MONO_S));
        open_gate(&running);
        assert_true(loop_run_until(l, &then.done, MONO_S));
        for (int i = 0; i < 3; i++)
            assert_int_equal(next[i].done, i != which);
        assert_true(running.done);
        assert_false(waiting.begun);
        assert_false(waiting.done);
        time_moves(l);
        pool_free(p);
    }
    loop_free(l);
}

static void cancel_what_no_pool_has(void **state)
{
    struct loop *l = loop_new(LOOP_VIRTUAL);
    struct pool *p = pool_new(l, 1);
    struct gate running, dropped;

    gate_init(&running, l);
    gate_init(&dropped, l);
    pool_cancel(&running.job); // never submitted
    open_gate(&running);
    pool_submit(p, &running.job);
    assert_true(loop_run_until(l, &running.done, MONO_S));
    pool_cancel(&running.job); // delivered

    gate_init(&running, l);
    pool_submit(p, &running.job);
    wait_begun(&running);
    pool_submit(p, &dropped.job);
    pool_cancel(&dropped.job);
    pool_submit(p, &dropped.job);
    open_gate(&dropped);
    pthread_t opener;
    assert_int_equal(pthread_create(&opener, NULL, open_gate_thread, &running), 0);
    pool_free(p);
    pthread_join(opener, NULL);
    assert_true(running.done);
    pool_cancel(&running.job); // told or dropped by pool_free()
    pool_cancel(&dropped.job);
    time_moves(l);
    loop_free(l);
}

// --- in order ---

struct ordered {
    struct pool_job job;
    pthread_t by;
    unsigned order, *counter;
    bool done, worked;
};

static void ordered_work(void *arg, struct par *par)
{
    struct ordered *o = arg;
    static struct job hits;
    o->worked = true;
    o->by = pthread_self();
    job_init(&hits, NULL, NULL);
    par->run(par, TASKS, hit, &hits);
    for (unsigned i = 0; i < TASKS; i++)
        assert_int_equal(hits.hit[i], 1);
}

static void ordered_done(void *arg)
{
    struct ordered *o = arg;
    o->done = true;
    o->order = ++*o->counter;
}

// Jobs run on the loop one after the other, what is cancelled or left at the end does not.
static void in_order_on_the_loop(void **state)
{
    struct loop *l = loop_new(LOOP_VIRTUAL);
    struct pool *p = pool_new(l, 2);
    struct ordered o[6] = {0};
    unsigned counter = 0;

    pool_in_order(p);
    for (unsigned i = 0; i < 6; i++) {
        o[i].counter = &counter;
        o[i].job = (struct pool_job){.work = ordered_work, .done = ordered_done, .arg = &o[i]};
    }
    for (unsigned i = 0; i < 4; i++)
        pool_submit(p, &o[i].job);
    assert_false(o[0].worked);
    pool_cancel(&o[1].job);
    assert_true(loop_run_until(l, &o[3].done, MONO_S));
    assert_int_equal(o[0].order, 1);
    assert_false(o[1].worked);
    assert_int_equal(o[2].order, 2);
    assert_int_equal(o[3].order, 3);
    assert_true(pthread_equal(o[0].by, pthread_self()));
    pool_submit(p, &o[4].job);
    pool_cancel(&o[4].job);
    pool_submit(p, &o[5].job);
    pool_free(p);
    assert_false(o[4].worked || o[5].worked || o[5].done);
    loop_free(l);
}

static void serial(void **state)
{
    static struct job j;

    job_init(&j, NULL, NULL);
    assert_int_equal(par_serial.width, 1);
    par_serial.run(&par_serial, TASKS, hit, &j);
    for (unsigned i = 0; i < TASKS; i++)
        assert_int_equal(j.hit[i], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_task_once_and_seen),
        cmocka_unit_test(jobs_at_once),
        cmocka_unit_test(run_waits_for_its_helpers),
        cmocka_unit_test(a_job_holds_virtual_time),
        cmocka_unit_test(free_waits_for_running_and_drops_waiting),
        cmocka_unit_test(cancel_a_waiting_job),
        cmocka_unit_test(cancel_waits_for_a_running_job),
        cmocka_unit_test(cancel_a_finished_job),
        cmocka_unit_test(cancel_within_done),
        cmocka_unit_test(cancel_what_no_pool_has),
        cmocka_unit_test(in_order_on_the_loop),
        cmocka_unit_test(serial),
        cmocka_unit_test(idle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
