// SPDX-License-Identifier: Apache-2.0
// Threads wait on one lock for two kinds of work: a region (par->run() of a job that runs elsewhere: help it)
// and a job. Regions go first, so that what was begun ends. A region's tasks are handed out by an atomic
// counter; its caller takes part and waits for the helpers before it returns, so a region lives on the
// caller's stack.
//
// Owned by the loop thread: pool_submit(), pool_free(), done(). The lists are under the lock; results come
// back through a waker.
#include "lib/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/thread.h"
#include "lib/xalloc.h"

struct region {
    struct region *next;
    void (*task)(void *arg, unsigned i);
    void *arg;
    unsigned n;
    atomic_uint taken;
    unsigned helpers; // under the lock
};

struct job_list {
    struct pool_job *first, **end;
};

struct pool {
    struct par par; // first: par_run() finds the pool by it
    struct loop *loop;
    struct loop_waker *waker;
    pthread_mutex_t lock;
    pthread_cond_t work, helped, ended;
    bool stop;
    struct region *regions;
    struct job_list waiting, finished;
    struct job_list delivering; // the loop's
    bool in_order;
    struct job_list here; // in order: the loop's
    struct loop_task run_here;
    pthread_t *thread;
    unsigned threads;
};

static void serial_run(struct par *p, unsigned n, void (*task)(void *arg, unsigned i), void *arg)
{
    for (unsigned i = 0; i < n; i++)
        task(arg, i);
}

struct par par_serial = {.run = serial_run, .width = 1};

static void list_init(struct job_list *l)
{
    l->first = NULL;
    l->end = &l->first;
}

static void list_add(struct job_list *l, struct pool_job *job)
{
    job->next = NULL;
    *l->end = job;
    l->end = &job->next;
}

static struct pool_job *list_take(struct job_list *l)
{
    struct pool_job *job = l->first;
    if (job && !(l->first = job->next))
        l->end = &l->first;
    return job;
}

static bool list_drop(struct job_list *l, const struct pool_job *job)
{
    struct pool_job **at = &l->first;
    while (*at && *at != job)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = job->next;
    if (!*at)
        l->end = at;
    return true;
}

// --- regions ---

static void region_work(struct region *r)
{
    unsigned i;
    while ((i = atomic_fetch_add_explicit(&r->taken, 1, memory_order_relaxed)) < r->n)
        r->task(r->arg, i);
}

static void par_run(struct par *par, unsigned n, void (*task)(void *arg, unsigned i), void *arg)
{
    struct pool *p = (struct pool *)par;
    if (n <= 1 || p->threads == 1) {
        serial_run(par, n, task, arg);
        return;
    }

    struct region r = {.task = task, .arg = arg, .n = n};
    pthread_mutex_lock(&p->lock);
    r.next = p->regions;
    p->regions = &r;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);

    region_work(&r);

    pthread_mutex_lock(&p->lock);
    struct region **at = &p->regions;
    while (*at != &r)
        at = &(*at)->next;
    *at = r.next;
    while (r.helpers)
        pthread_cond_wait(&p->helped, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

// A region that still has tasks. A counter past the end stays far from wrapping: each thread adds at most
// once beyond it per visit.
static struct region *region_open(struct pool *p)
{
    for (struct region *r = p->regions; r; r = r->next)
        if (atomic_load_explicit(&r->taken, memory_order_relaxed) < r->n)
            return r;
    return NULL;
}

// --- threads ---

static void help_locked(struct pool *p, struct region *r)
{
    r->helpers++;
    pthread_mutex_unlock(&p->lock);
    region_work(r);
    pthread_mutex_lock(&p->lock);
    if (--r->helpers == 0)
        pthread_cond_broadcast(&p->helped);
}

static void job_locked(struct pool *p, struct pool_job *job)
{
    pthread_mutex_unlock(&p->lock);
    job->work(job->arg, &p->par);
    pthread_mutex_lock(&p->lock);
    list_add(&p->finished, job);
    job->ran = true;
    pthread_cond_broadcast(&p->ended);
    loop_waker_signal(p->waker);
}

static void *thread_main(void *arg)
{
    struct pool *p = arg;

    pthread_mutex_lock(&p->lock);
    for (;;) {
        struct region *r = region_open(p);
        struct pool_job *job;
        if (r)
            help_locked(p, r);
        else if (!p->stop && (job = list_take(&p->waiting)))
            job_locked(p, job);
        else if (p->stop)
            break;
        else
            pthread_cond_wait(&p->work, &p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

// --- the loop's side ---

static void deliver(void *arg)
{
    struct pool *p = arg;

    struct pool_job *job;

    pthread_mutex_lock(&p->lock);
    if (p->finished.first) {
        p->delivering = p->finished;
        list_init(&p->finished);
    }
    pthread_mutex_unlock(&p->lock);
    while ((job = list_take(&p->delivering))) { // done() may free or submit it again, or cancel others
        job->pool = NULL;
        loop_release(p->loop);
        if (job->name != NULL)
            loop_doing(p->loop, job->name);
        job->done(job->arg);
    }
    list_init(&p->delivering);
}

static void run_one_here(void *arg)
{
    struct pool *p = arg;
    struct pool_job *job = list_take(&p->here);

    if (p->here.first)
        loop_post(p->loop, &p->run_here);
    job->work(job->arg, &p->par);
    job->ran = true;
    job->pool = NULL;
    loop_release(p->loop);
    job->done(job->arg);
}

static unsigned processors(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? (unsigned)n : 1;
}

static void start_threads(struct pool *p, unsigned threads)
{
    char name[16];

    for (p->threads = 0; p->threads < threads; p->threads++) {
        snprintf(name, sizeof(name), "weft-pool-%u", p->threads);
        if (thread_start(&p->thread[p->threads], name, thread_main, p) != 0)
            break;
    }
    if (!p->threads) {
        fputs("weft: cannot make a thread\n", stderr);
        abort();
    }
}

struct pool *pool_new(struct loop *l, unsigned threads)
{
    struct pool *p = xcalloc(1, sizeof(*p));

    if (!threads)
        threads = processors();
    if (threads > 256)
        threads = 256;
    p->loop = l;
    p->waker = loop_waker_new(l, "pool", deliver, p);
    p->thread = xcalloc(threads, sizeof(*p->thread));
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->helped, NULL);
    list_init(&p->waiting);
    list_init(&p->finished);
    list_init(&p->delivering);
    list_init(&p->here);
    loop_task_init(&p->run_here, "pool", run_one_here, p);
    pthread_cond_init(&p->ended, NULL);
    start_threads(p, threads);
    p->par = (struct par){.run = par_run, .width = p->threads};
    return p;
}

void pool_in_order(struct pool *p)
{
    p->in_order = true;
}

void pool_idle(struct pool *p)
{
    for (unsigned i = 0; i < p->threads; i++)
        pthread_setschedparam(p->thread[i], SCHED_IDLE, &(struct sched_param){0});
}

void pool_submit(struct pool *p, struct pool_job *job)
{
    pthread_mutex_lock(&p->lock);
    bool stop = p->stop;
    if (!stop) {
        job->pool = p;
        job->ran = false;
        list_add(p->in_order ? &p->here : &p->waiting, job);
        pthread_cond_signal(&p->work);
    }
    pthread_mutex_unlock(&p->lock);
    if (stop)
        return;
    loop_hold(p->loop);
    if (p->in_order)
        loop_post(p->loop, &p->run_here);
}

void pool_cancel(struct pool_job *job)
{
    struct pool *p = job->pool;
    if (!p)
        return;
    if (p->in_order) {
        list_drop(&p->here, job);
        if (!p->here.first)
            loop_unpost(p->loop, &p->run_here);
    }
    pthread_mutex_lock(&p->lock);
    if (!p->in_order && !list_drop(&p->waiting, job)) {
        while (!job->ran)
            pthread_cond_wait(&p->ended, &p->lock);
        if (!list_drop(&p->finished, job))
            list_drop(&p->delivering, job);
    }
    pthread_mutex_unlock(&p->lock);
    job->pool = NULL;
    loop_release(p->loop);
}

void pool_free(struct pool *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->threads; i++)
        pthread_join(p->thread[i], NULL);

    struct pool_job *job;
    loop_unpost(p->loop, &p->run_here);
    while ((job = list_take(&p->waiting)) || (job = list_take(&p->here))) {
        job->pool = NULL;
        loop_release(p->loop);
    }
    deliver(p);
    loop_waker_free(p->waker);
    pthread_cond_destroy(&p->helped);
    pthread_cond_destroy(&p->ended);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    free(p->thread);
    free(p);
}
