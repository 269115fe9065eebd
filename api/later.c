// SPDX-License-Identifier: Apache-2.0
// Answers that take longer than the loop may: the connection is suspended while the loop in turns, a worker,
// or one after the other makes the answer, and goes on when it is there. Each lane runs a few at once, so
// that sweeps find a worker; others wait in order.
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "api/api_priv.h"

static const struct {
    unsigned at_once, most; // at a time; with those that wait
    const char *what;
} lanes[] = {
    [LATER_EXPORT] = {2, 2, "exports are being made"},
    [LATER_QUERY] = {1, 32, "questions about history wait"},
    [LATER_WAIT] = {64, 64, "ports are being asked"},
    [LATER_METRICS] = {1, 64, "pages of metrics wait"},
    [LATER_SLICES] = {2, 512, "long answers wait"},
};

static void resume(struct later *l)
{
    l->over = true;
    MHD_resume_connection(l->r->conn);
    http_kick(l->r->listener);
}

static void work(void *arg, struct par *par)
{
    struct later *l = arg;
    l->work(l, par);
}

// The list is in order of arrival.
static void start_next(struct api *a, enum later_lane lane)
{
    unsigned running = 0;
    for (struct later *l = a->laters; l != NULL; l = l->next)
        running += l->lane == lane && l->begun && !l->over;
    for (struct later *l = a->laters; l != NULL && running < lanes[lane].at_once; l = l->next)
        if (l->lane == lane && !l->begun) {
            l->begun = true;
            running++;
            if (l->prepare != NULL)
                loop_post(a->c.loop, &l->turn);
            else
                pool_submit(a->c.pool, &l->job);
        }
}

static void done(void *arg)
{
    struct later *l = arg;
    resume(l);
    start_next(l->api, l->lane);
}

// A slice of what is the loop's a turn.
static void prepare(void *arg)
{
    struct later *l = arg;
    loop_doing(l->api->c.loop, request_name(l->r));
    if (!l->prepare(l))
        loop_post(l->api->c.loop, &l->turn);
    else if (l->work != NULL)
        pool_submit(l->api->c.pool, &l->job);
    else
        done(l);
}

void later_over(struct later *l)
{
    if (!l->over)
        resume(l);
}

bool later_room(struct request *r, enum later_lane lane)
{
    unsigned n = 0;
    for (struct later *l = r->api->laters; l != NULL; l = l->next)
        n += l->lane == lane;
    if (n < lanes[lane].most)
        return true;
    answer_problem(r, 503, "%u %s; try again", n, lanes[lane].what);
    return false;
}

// False when there is nothing to wait for: l is gone.
static bool suspend(struct request *r, struct later *l)
{
    struct later **at = &r->api->laters;
    if (strcmp(r->method, "HEAD") == 0 && l->lane != LATER_SLICES) { // what is worked at for nothing
        r->status = 200;
        r->type = "text/plain";
        l->free(l);
        return false;
    }
    l->api = r->api;
    l->r = r;
    loop_task_init(&l->turn, "api", prepare, l);
    l->job = (struct pool_job){.work = work, .done = done, .arg = l};
    while (*at != NULL)
        at = &(*at)->next;
    *at = l;
    r->suspended = l;
    MHD_suspend_connection(r->conn);
    return true;
}

void later_start(struct request *r, struct later *l)
{
    if (suspend(r, l))
        start_next(r->api, l->lane);
}

void later_wait(struct request *r, struct later *l)
{
    if (suspend(r, l))
        l->begun = true;
}

static struct later *taken_off(struct request *r)
{
    struct later *l = r->suspended, **at = &r->api->laters;
    r->suspended = NULL;
    while (*at != l)
        at = &(*at)->next;
    *at = l->next;
    return l;
}

void later_drop(struct request *r)
{
    struct later *l = taken_off(r);
    assert(l->over); // else its connection would be suspended
    l->free(l);
}

void later_answer(struct request *r)
{
    struct later *l = taken_off(r);
    if (l->err.code != 0)
        answer_problem(r,
                       l->err.code == -ENOENT   ? 404
                       : l->err.code == -EINVAL ? 400
                                                : 503,
                       "%s%s%s", l->err.where, l->err.where[0] ? ": " : "", l->err.text);
    else
        l->answer(l, r);
    l->free(l);
}

void laters_close(struct api *a)
{
    for (struct later *l = a->laters; l != NULL; l = l->next) {
        if (l->over)
            continue;
        loop_unpost(a->c.loop, &l->turn);
        pool_cancel(&l->job);
        err_set(&l->err, -ECANCELED, NULL, "weftd is ending");
        resume(l);
    }
}
