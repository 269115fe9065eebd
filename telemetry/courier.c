// SPDX-License-Identifier: Apache-2.0
#include "telemetry/courier.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "lib/thread.h"
#include "lib/xalloc.h"

struct courier {
    struct courier_target target;
    void (*done)(void *arg, const struct courier_result *r);
    void *arg;
    pthread_t thread;
    struct loop_waker *waker;
    bool busy; // the loop's: a load is under way or its end not told yet

    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool stop, full, over; // full: there is a load to carry; over: it was carried
    struct courier_load load;
    struct courier_result result;
};

static void empty(struct courier_load *l)
{
    for (unsigned i = 0; i < l->num; i++)
        buf_done(&l->body[i]);
    free(l->body);
    *l = (struct courier_load){0};
}

static bool next(struct courier *c)
{
    pthread_mutex_lock(&c->lock);
    while (!c->stop && !c->full)
        pthread_cond_wait(&c->cond, &c->lock);
    bool go = !c->stop;
    pthread_mutex_unlock(&c->lock);
    return go;
}

static void *thread_main(void *arg)
{
    struct courier *c = arg;
    while (next(c)) {
        struct courier_result r = {0};
        c->target.deliver(c->target.arg, &c->load, &r); // nobody else touches the load meanwhile
        pthread_mutex_lock(&c->lock);
        c->result = r;
        c->full = false;
        c->over = true;
        pthread_mutex_unlock(&c->lock);
        loop_waker_signal(c->waker);
    }
    return NULL;
}

static void on_wake(void *arg)
{
    struct courier *c = arg;
    struct courier_result r;
    pthread_mutex_lock(&c->lock);
    bool over = c->over;
    c->over = false;
    r = c->result;
    pthread_mutex_unlock(&c->lock);
    if (!over)
        return;
    empty(&c->load);
    c->busy = false;
    c->done(c->arg, &r);
}

struct courier *courier_new(struct loop *l, const struct courier_target *t,
                            void (*done)(void *arg, const struct courier_result *r), void *arg)
{
    struct courier *c = xcalloc(1, sizeof(*c));
    c->target = *t;
    c->done = done;
    c->arg = arg;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->cond, NULL);
    c->waker = loop_waker_new(l, "notify", on_wake, c);
    if (thread_start(&c->thread, "weft-notify", thread_main, c) == 0)
        return c;
    loop_waker_free(c->waker);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->cond);
    free(c);
    return NULL;
}

void courier_free(struct courier *c)
{
    if (c == NULL)
        return;
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->cond);
    pthread_mutex_unlock(&c->lock);
    c->target.abort(c->target.arg);
    pthread_join(c->thread, NULL);
    loop_waker_free(c->waker);
    empty(&c->load);
    c->target.free(c->target.arg);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->cond);
    free(c);
}

bool courier_busy(const struct courier *c)
{
    return c->busy;
}

void courier_send(struct courier *c, struct buf *body, unsigned num)
{
    assert(!c->busy);
    c->busy = true;
    pthread_mutex_lock(&c->lock);
    c->load = (struct courier_load){.body = xcalloc(num + 1ul, sizeof(*body)), .num = num};
    memcpy(c->load.body, body, num * sizeof(*body));
    memset(body, 0, num * sizeof(*body));
    c->full = true;
    pthread_cond_broadcast(&c->cond);
    pthread_mutex_unlock(&c->lock);
}
