// SPDX-License-Identifier: Apache-2.0
// A pass: every device of the sweep, or every touched one, gets its own stream of requests, made one by one
// when there is room, so that a full table costs a cursor and not a queue. At most PASS_WINDOW requests of a
// device wait or fly at once; how many of them are on the wire is the engine's business. A device that lets
// SM_SILENT requests in a row time out is asked nothing more in this sweep; what was on the wire has failed,
// so there is another one.
//
// A directed route may cross a cable that dies during the sweep, of which only the next one reads. Where a
// pass can make its requests once more, what is not answered in time is made again by another way, at most
// DETOURS_MAX of them: the engine's repeats by a dead way would hold up the sweep for seconds, and fail it.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define PASS_WINDOW 16
#define HURRY (100 * MONO_MS)
#define DETOURS_MAX 2

static void pump(struct sm_pass *p, struct sm_dev *d);

// Answers have stopped coming in: all that waits is taken back, and made again by answered().
static void late(void *arg, uint64_t user)
{
    struct sm_pass *p = arg;
    struct sm_dev *d = p->sm->dev[user >> 32];
    struct dr_path path;

    if (p->turning[d->index] > 0 || p->detours[d->index] >= DETOURS_MAX || d->silent >= SM_SILENT ||
        !sm_other_path(p->sm, d, &path))
        return;
    d->path = path;
    p->detours[d->index]++;
    p->turning[d->index] = p->out[d->index];
    p->sm->pass_heard = loop_now(p->sm->loop); // the new way gets its time, too, before the pass is cut short
    mad_engine_cancel_device(p->sm->engine, d->guid);
}

// Whether the request was taken back because of the way it was made by, and is made once more.
static bool turned(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    struct sm_item it;

    if (p->turning[d->index] == 0)
        return false;
    p->turning[d->index]--;
    if (r->status != -ECANCELED || d->silent >= SM_SILENT)
        return false;
    memset(&it, 0, offsetof(struct sm_item, data));
    p->again(p, d, tag, &it);
    sm_pass_send(p, d, &it);
    return true;
}

static void answered(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm_pass *p = arg;
    struct sm_dev *d = p->sm->dev[user >> 32];

    p->out[d->index]--;
    if (r->status == 0)
        p->sm->pass_heard = loop_now(p->sm->loop);
    sm_heard(p->sm, d, r);
    if (!turned(p, d, (uint32_t)user, r)) {
        p->done(p, d, (uint32_t)user, r);
        pump(p, d);
    }
    if (--p->pending == 0)
        loop_post(p->sm->loop, &p->task);
}

void sm_pass_send(struct sm_pass *p, struct sm_dev *d, const struct sm_item *it)
{
    struct dr_path path;

    p->out[d->index]++;
    p->pending++;
    if (!sm_path(p->sm, d, it->port, &path))
        path.hops = 0; // cannot be: a device of this sweep was reached
    mad_engine_send(p->sm->engine, &(struct mad_request){
                                       .mgmt_class = MAD_CLASS_SM_DR,
                                       .m_key = sm_m_key(d, it->port),
                                       .method = it->method,
                                       .attr_id = it->attr_id,
                                       .attr_mod = it->attr_mod,
                                       .path = &path,
                                       .data = it->has_data ? it->data : NULL,
                                       .data_len = it->has_data ? MAD_SMP_DATA_SIZE : 0,
                                       .prio = MAD_PRIO_SMP,
                                       .device = d->guid,
                                       .retries = -1,
                                       .done = answered,
                                       .first_timeout = p->again != NULL && dev_is_switch(d) ? late : NULL,
                                       .arg = p,
                                       .user = (uint64_t)d->index << 32 | it->tag,
                                   });
}

static void pump(struct sm_pass *p, struct sm_dev *d)
{
    struct sm_item it;

    while (p->out[d->index] < PASS_WINDOW && d->silent < SM_SILENT) {
        memset(&it, 0, offsetof(struct sm_item, data));
        if (!p->next(p, d, &p->cursor[d->index], &it))
            return;
        sm_pass_send(p, d, &it);
    }
}

// Nothing is sent to a device that has fallen silent in this sweep, but the phase must know.
static void fail_first(struct sm_pass *p, struct sm_dev *d)
{
    struct sm_item it;

    memset(&it, 0, offsetof(struct sm_item, data));
    if (p->next(p, d, &p->cursor[d->index], &it))
        p->done(p, d, it.tag, &(struct mad_result){.status = -ETIMEDOUT});
}

static void all_done(void *arg)
{
    struct sm_pass *p = arg;
    p->running = false;
    p->finished(p);
}

void sm_pass_start(struct sm_pass *p, struct sm *sm)
{
    p->sm = sm;
    p->cursor = xreallocarray(p->cursor, sm->num_dev, sizeof(*p->cursor));
    p->out = xreallocarray(p->out, sm->num_dev, sizeof(*p->out));
    memset(p->cursor, 0, sm->num_dev * sizeof(*p->cursor));
    memset(p->out, 0, sm->num_dev * sizeof(*p->out));
    if (p->again != NULL) {
        p->detours = xreallocarray(p->detours, sm->num_dev, sizeof(*p->detours));
        memset(p->detours, 0, sm->num_dev * sizeof(*p->detours));
    }
    p->turning = xreallocarray(p->turning, sm->num_dev, sizeof(*p->turning));
    memset(p->turning, 0, sm->num_dev * sizeof(*p->turning));
    p->num = sm->num_dev;
    p->running = true;
    sm->pass_heard = loop_now(sm->loop);
    p->pending = 1; // this function itself
    loop_task_init(&p->task, "sm", all_done, p);
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        if (!dev_here(sm, d) || (p->touched_only && !d->touched))
            continue;
        if (d->silent < SM_SILENT)
            pump(p, d);
        else
            fail_first(p, d);
    }
    if (--p->pending == 0)
        loop_post(sm->loop, &p->task);
}

#define PASSES 8

static struct sm_pass *nth(struct sm *sm, unsigned i)
{
    struct sm_pass *const pass[PASSES] = {&sm->pass_config, &sm->pass_read,    &sm->pass_lanes,
                                          &sm->pass_tables, &sm->pass_top,     &sm->pass_links,
                                          &sm->pass_hosts,  &sm->pass_adaptive};
    return pass[i];
}

void sm_pass_hurry(struct sm *sm, bool again)
{
    bool quiet = again && mono_sub(loop_now(sm->loop), sm->pass_heard) >= HURRY;

    sm_adaptive_hurry(sm);
    for (unsigned k = 0; k < PASSES && quiet; k++) {
        const struct sm_pass *p = nth(sm, k);
        for (uint32_t i = 0; p->running && i < p->num; i++)
            if (p->out[i] > 0) {
                sm->dev[i]->silent = SM_SILENT;
                mad_engine_cancel_device(sm->engine, sm->dev[i]->guid);
            }
    }
    mono_t due = mono_add(quiet ? loop_now(sm->loop) : sm->pass_heard, HURRY);
    if (again || !loop_timer_pending(&sm->light.timer))
        loop_timer_at(&sm->light.timer,
                      mono_sub(due, loop_now(sm->loop)) > 0 ? due : mono_add(loop_now(sm->loop), HURRY));
}

void sm_passes_done(struct sm *sm)
{
    for (unsigned k = 0; k < PASSES; k++) {
        struct sm_pass *p = nth(sm, k);
        if (p->sm != NULL && p->task.queued)
            loop_unpost(sm->loop, &p->task);
        free(p->cursor);
        free(p->out);
        free(p->detours);
        free(p->turning);
    }
}
