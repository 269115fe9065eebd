// SPDX-License-Identifier: Apache-2.0
// Also run under ThreadSanitizer.
#include "tests/unit/lib/test.h"

#include <pthread.h>
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
        cmocka_unit_test(serial),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
