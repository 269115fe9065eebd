// SPDX-License-Identifier: Apache-2.0
#include "telemetry/notify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/db.h"
#include "lib/err.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "telemetry/http_post.h"
#include "telemetry/notify_priv.h"
#include "telemetry/syslog.h"

#define SOON (50 * MONO_MS)
#define BACKOFF_FIRST (500 * MONO_MS)
#define BACKOFF_MOST (30 * MONO_S)
#define RETRY_AFTER_MOST (60 * MONO_S) // alarms wait no longer for what an answer asks for
#define TELL_AFTER 3u                  // tries

static const char *const kind_name[] = {
    [NOTIFY_ALERTMANAGER] = "alertmanager", [NOTIFY_WEBHOOK] = "webhook", [NOTIFY_SYSLOG] = "syslog"};

// --- HTTP as a courier's target ---

// What an answer means for alarms: a body that cannot be understood is never taken; what may be a matter of
// settings (401, 404 …) is tried again.
static bool never_taken(const struct http_answer *a)
{
    return a->outcome == HTTP_REFUSED && (a->status == 400 || a->status == 413 || a->status == 422);
}

static void deliver_http(void *arg, const struct courier_load *l, struct courier_result *ret)
{
    struct http_answer a = {.outcome = HTTP_TAKEN};
    for (unsigned i = 0; i < l->num && a.outcome == HTTP_TAKEN; i++) {
        http_post(arg, l->body[i].data, l->body[i].len, &a);
        ret->delivered += a.outcome == HTTP_TAKEN;
    }
    ret->refused = never_taken(&a);
    ret->retry_after_ns = a.retry_after_ns;
    snprintf(ret->text, sizeof(ret->text), "%s", a.text);
}

static void abort_http(void *arg)
{
    http_post_abort(arg);
}

static void free_http(void *arg)
{
    http_post_free(arg);
}

static int http_target(const struct notify_target *t, const struct notifier_opts *o,
                       struct courier_target *ret, struct err *e)
{
    static const char *const header[] = {"Content-Type: application/json", NULL};
    size_t n = strlen(t->text);
    bool api = t->kind == NOTIFY_ALERTMANAGER;
    while (api && n > 0 && t->text[n - 1] == '/')
        n--;
    char *url = xasprintf("%.*s%s", (int)n, t->text, api ? "/api/v2/alerts" : "");
    struct http_post *p = http_post_new(
        &(struct http_post_opts){
            .url = url, .header = header, .bearer_token_file = o->bearer_token_file, .ca_file = o->ca_file},
        e);
    free(url);
    *ret = (struct courier_target){.arg = p, .deliver = deliver_http, .abort = abort_http, .free = free_http};
    return p != NULL ? 0 : e->code;
}

// --- the pace of one target ---

static void tell(struct notify_target *t, const char *kind, const char *severity, const char *text)
{
    if (t->n->cb.event != NULL)
        t->n->cb.event(t->n->cb.arg, kind, severity, t->text, text);
}

static void tell_dropped(struct notify_target *t)
{
    char text[120];
    if (t->dropped_untold == 0)
        return;
    snprintf(text, sizeof(text), "%llu events were too old to be sent when the target took them again",
             (unsigned long long)t->dropped_untold);
    t->dropped_untold = 0;
    tell(t, "notify-dropped", "warning", text);
}

static void hand_over(struct notify_target *t, struct buf *body, unsigned n)
{
    if (n > 0)
        courier_send(t->courier, body, n);
    for (unsigned i = 0; i < n; i++)
        buf_done(&body[i]);
}

// Some hundred events a turn of the loop.
static void pump_events(struct notify_target *t)
{
    struct buf body[NOTIFY_BODIES] = {0};
    uint64_t before = t->cursor;
    unsigned n = events_compose(t, body);
    tell_dropped(t);
    hand_over(t, body, n);
    if (n == 0 && t->cursor != before)
        loop_timer_after(&t->timer, 0);
}

static void pump_alerts(struct notify_target *t, bool all)
{
    struct buf body[NOTIFY_BODIES] = {0};
    hand_over(t, body, alerts_compose(t, all, body));
}

static void on_timer(void *arg)
{
    struct notify_target *t = arg;
    if (courier_busy(t->courier))
        return;
    if (t->kind != NOTIFY_ALERTMANAGER) {
        pump_events(t);
        return;
    }
    bool all = mono_sub(loop_now(t->n->loop), t->last_all) >= t->n->resend_ns || !t->sent_all;
    if (all) {
        t->last_all = loop_now(t->n->loop);
        t->sent_all = true;
    }
    pump_alerts(t, all);
    if (!courier_busy(t->courier))
        loop_timer_at(&t->timer, mono_add(t->last_all, t->n->resend_ns));
}

static void soon(struct notify_target *t)
{
    if (!courier_busy(t->courier) && t->tries == 0)
        loop_timer_after(&t->timer, SOON);
}

static void note_good(struct notify_target *t)
{
    t->status.failing = false;
    t->status.text[0] = 0;
    t->tries = 0;
    if (t->told_failing)
        tell(t, "notify-recovered", "notice", "the target takes notifications again");
    t->told_failing = false;
}

static void note_bad(struct notify_target *t, const struct courier_result *r)
{
    t->status.failed++;
    if (!t->status.failing)
        t->failing_since = loop_now(t->n->loop);
    t->status.failing = true;
    snprintf(t->status.text, sizeof(t->status.text), "%s", r->text);
    if (++t->tries < TELL_AFTER || t->told_failing)
        return;
    t->told_failing = true;
    tell(t, "notify-failing", "warning", r->text);
}

static void note_refused(struct notify_target *t, const struct courier_result *r)
{
    t->status.refused++;
    if (!t->told_refused)
        tell(t, "notify-refused", "error", r->text);
    t->told_refused = true;
}

// What Alertmanager has ends there after four resends: no answer can ask for more than one.
int64_t notify_wait(const struct notify_target *t, int64_t retry_after_ns, uint64_t random)
{
    int64_t wait = http_backoff(t->tries, BACKOFF_FIRST, BACKOFF_MOST, random), most = RETRY_AFTER_MOST;
    if (t->kind == NOTIFY_ALERTMANAGER && most > t->n->resend_ns)
        most = t->n->resend_ns;
    retry_after_ns = retry_after_ns < most ? retry_after_ns : most;
    return retry_after_ns > wait ? retry_after_ns : wait;
}

// What a target refuses is not held against it: the next one may be good.
static void on_done(void *arg, const struct courier_result *r)
{
    struct notify_target *t = arg;
    bool good = r->text[0] == 0 || r->refused;

    if (r->refused)
        note_refused(t, r);
    if (t->kind == NOTIFY_ALERTMANAGER) {
        t->status.sent += alerts_done(t, r->delivered, r->refused);
    } else {
        events_done(t, r->delivered, r->refused);
        t->status.sent += r->delivered;
        if (!loop_timer_pending(&t->n->save))
            loop_timer_after(&t->n->save, MONO_S);
    }
    if (good) {
        note_good(t);
        loop_timer_after(&t->timer, 0);
        return;
    }
    note_bad(t, r);
    if (r->delivered == 0) // it may have forgotten all when it comes back
        t->sent_all = false;
    loop_timer_after(&t->timer, notify_wait(t, r->retry_after_ns, rng_u64(&t->n->rng)));
}

// --- what callers tell ---

void notifier_change(struct notifier *n, const struct alarm_change *c)
{
    for (unsigned i = 0; i < n->num; i++)
        if (n->target[i].kind == NOTIFY_ALERTMANAGER) {
            alerts_change(&n->target[i], c);
            soon(&n->target[i]);
        }
}

void notifier_event(struct notifier *n, const char *kind)
{
    if (!notify_event_kind(kind))
        return;
    for (unsigned i = 0; i < n->num; i++)
        if (n->target[i].kind != NOTIFY_ALERTMANAGER)
            soon(&n->target[i]);
}

unsigned notifier_targets(const struct notifier *n)
{
    return n->num;
}

void notifier_get_status(const struct notifier *n, unsigned i, struct notifier_status *ret)
{
    const struct notify_target *t = &n->target[i];
    *ret = t->status;
    if (t->status.failing) // at once is a moment ago
        ret->failing_ns = mono_sub(loop_now(n->loop), t->failing_since) + 1;
}

static void save_all(void *arg)
{
    struct notifier *n = arg;
    for (unsigned i = 0; i < n->num; i++)
        if (n->target[i].kind != NOTIFY_ALERTMANAGER)
            events_save(&n->target[i]);
}

// --- life cycle ---

static int open_target(struct notifier *n, enum notify_kind kind, const char *text,
                       const struct notifier_opts *o, struct err *e)
{
    struct notify_target *t = &n->target[n->num];
    struct courier_target target;

    *t = (struct notify_target){.n = n, .kind = kind, .text = xstrdup(text)};
    t->status.target = t->text;
    t->status.kind = kind_name[kind];
    n->num++;
    int rc = kind == NOTIFY_SYSLOG ? syslog_target(text, 0, &target, e) : http_target(t, o, &target, e);
    if (rc != 0)
        return rc;
    t->courier = courier_new(n->loop, &target, on_done, t);
    if (t->courier == NULL) {
        target.free(target.arg);
        return err_set(e, -EAGAIN, text, "no thread can be made");
    }
    if (kind == NOTIFY_ALERTMANAGER)
        t->alerts = alerts_new();
    else
        events_load(t);
    loop_timer_init(&t->timer, n->loop, "notify", on_timer, t);
    loop_timer_after(&t->timer, SOON);
    return 0;
}

static unsigned count(const char *const *list)
{
    unsigned n = 0;
    while (list != NULL && list[n] != NULL)
        n++;
    return n;
}

static int open_list(struct notifier *n, enum notify_kind kind, const char *const *list,
                     const struct notifier_opts *o, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < count(list); i++)
        rc = open_target(n, kind, list[i], o, e);
    return rc;
}

int notifier_check(const struct notifier_opts *o, struct err *e)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < count(o->alertmanager); i++)
        rc = http_url_check(o->alertmanager[i], e);
    for (unsigned i = 0; rc == 0 && i < count(o->webhook); i++)
        rc = http_url_check(o->webhook[i], e);
    for (unsigned i = 0; rc == 0 && i < count(o->syslog); i++)
        rc = syslog_check(o->syslog[i], e);
    return rc;
}

struct notifier *notifier_new(struct loop *l, struct db *db, const struct alarms *a,
                              const struct notifier_opts *o, const struct notifier_callbacks *cb,
                              struct err *e)
{
    if (notifier_check(o, e) != 0)
        return NULL;
    struct notifier *n = xcalloc(1, sizeof(*n));
    *n = (struct notifier){.loop = l,
                           .db = db,
                           .alarms = a,
                           .cb = *cb,
                           .external_url = xstrdup(o->external_url != NULL ? o->external_url : ""),
                           .facility = o->facility,
                           .severity = o->severity,
                           .resend_ns = o->resend_ns ? o->resend_ns : 60 * MONO_S,
                           .replay_ns = o->replay_ns ? o->replay_ns : 86400 * MONO_S};
    n->target =
        xcalloc(count(o->alertmanager) + count(o->webhook) + count(o->syslog) + 1ul, sizeof(*n->target));
    if (o->host != NULL)
        snprintf(n->host, sizeof(n->host), "%s", o->host);
    else if (gethostname(n->host, sizeof(n->host) - 1) != 0)
        n->host[0] = 0;
    rng_init(&n->rng, (uint64_t)mono_now().ns);
    loop_timer_init(&n->save, l, "notify", save_all, n);
    if (open_list(n, NOTIFY_ALERTMANAGER, o->alertmanager, o, e) != 0 ||
        open_list(n, NOTIFY_WEBHOOK, o->webhook, o, e) != 0 ||
        open_list(n, NOTIFY_SYSLOG, o->syslog, o, e) != 0) {
        notifier_free(n);
        return NULL;
    }
    return n;
}

void notifier_free(struct notifier *n)
{
    if (n == NULL)
        return;
    for (unsigned i = 0; i < n->num; i++) {
        struct notify_target *t = &n->target[i];
        courier_free(t->courier);
        if (t->timer.loop != NULL)
            loop_timer_cancel(&t->timer);
        alerts_free(t->alerts);
    }
    save_all(n);
    loop_timer_cancel(&n->save);
    for (unsigned i = 0; i < n->num; i++)
        free(n->target[i].text);
    free(n->target);
    free(n->external_url);
    free(n);
}
