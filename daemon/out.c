// SPDX-License-Identifier: Apache-2.0
#include "daemon/out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/xalloc.h"
#include "telemetry/http_post.h"
#include "telemetry/notify.h"
#include "telemetry/remote_write.h"

#define FAILING_RULE "W08"
#define FAILING_AFTER (120 * MONO_S)
#define LOOK (10 * MONO_S)
#define BEHIND_RULE "W03"
#define BEHIND_SUBJECT "remote-write"

struct out_fabric {
    struct out *o;
    struct fab *fab;
    struct remote_write *rw;
};
struct out {
    struct fab_env env;
    struct out_fabric *fabric;
    unsigned num;
    struct notifier *notifier;
    struct loop_timer look; // at those who are notified
};

static void put_event(struct out *o, const char *fabric, const char *kind, const char *severity,
                      const char *subject, const char *text)
{
    char quoted[500]; // what a receiver says is in the text
    log_notice(kind, "fabric=\"%s\" subject=\"%s\" text=\"%s\"", fabric, subject,
               log_quote(text, quoted, sizeof(quoted)));
    fab_env_event(&o->env, &(struct db_event){.fabric = fabric,
                                              .kind = kind,
                                              .severity = severity,
                                              .subject = subject,
                                              .text = text,
                                              .data = ""});
}

// --- remote write ---

static void on_remote_event(void *arg, const char *kind, const char *severity, const char *text)
{
    struct out_fabric *x = arg;
    put_event(x->o, fab_api(x->fab)->name, kind, severity, BEHIND_SUBJECT, text);
}

static void on_behind(void *arg, bool on, const char *text)
{
    struct out_fabric *x = arg;
    const char *name = fab_api(x->fab)->name;
    if (x->o->env.alarms == NULL)
        return;
    if (on)
        alarm_raise(x->o->env.alarms, &(struct alarm_report){.fabric = name,
                                                             .rule = BEHIND_RULE,
                                                             .subject = BEHIND_SUBJECT,
                                                             .severity = ALARM_MINOR,
                                                             .place = "remote write",
                                                             .reason = text});
    else
        alarm_clear(x->o->env.alarms, name, BEHIND_RULE, BEHIND_SUBJECT);
}

struct labels {
    size_t n;
    struct rw_label *label;
    char **text; // that they are parts of
};

static void labels_done(struct labels *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->text[i]);
    free(l->text);
    free(l->label);
}

// Of "name=value"; to be freed in any case.
static int labels_split(struct labels *l, const struct opt_strings *list, struct err *e)
{
    *l = (struct labels){.label = xcalloc(list->n + 1, sizeof(*l->label)),
                         .text = xcalloc(list->n + 1, sizeof(*l->text))};
    for (; l->n < list->n; l->n++) {
        char *text = xstrdup(list->item[l->n]), *eq = strchr(text, '=');
        if (eq == NULL) {
            free(text);
            return err_set(e, -EINVAL, "remote_write.labels", "\"%.100s\" is not name=value",
                           list->item[l->n]);
        }
        *eq = 0;
        l->text[l->n] = text;
        l->label[l->n] = (struct rw_label){text, eq + 1};
    }
    return 0;
}

static struct remote_write_opts remote_opts(const struct config *c, const struct labels *l)
{
    return (struct remote_write_opts){.url = c->remote_write_url,
                                      .bearer_token_file = c->remote_write_token_file,
                                      .ca_file = c->remote_write_ca_file,
                                      .label = l->label,
                                      .num_labels = (unsigned)l->n,
                                      .interval_ns = c->remote_write_interval,
                                      .backfill_ns = c->remote_write_backfill};
}

static int check_remote(const struct config *c, struct err *e)
{
    struct labels l;
    int rc = labels_split(&l, &c->remote_write_labels, e);
    struct remote_write_opts o = remote_opts(c, &l);
    if (rc == 0)
        rc = remote_write_check(&o, e);
    labels_done(&l);
    return rc;
}

static int open_remote(struct out_fabric *x, struct err *e)
{
    const struct config *c = x->o->env.config;
    struct api_fabric *a = fab_api(x->fab);
    struct remote_write_callbacks cb = {.arg = x, .event = on_remote_event, .behind = on_behind};
    struct labels l;
    int rc = labels_split(&l, &c->remote_write_labels, e);
    struct remote_write_opts o = remote_opts(c, &l);

    o.fabric = a->name;
    o.fabric_label = x->o->num > 1 ? a->name : NULL;
    o.dir = a->series_dir;
    if (rc == 0) {
        x->rw = remote_write_new(x->o->env.loop, x->o->env.db, &o, &cb, e);
        rc = x->rw != NULL ? 0 : e->code;
    }
    labels_done(&l);
    a->remote_write = x->rw;
    return rc;
}

static int open_remotes(struct out *o, struct err *e)
{
    int rc = 0;
    if (o->env.config->remote_write_url[0] == 0)
        return 0;
    for (unsigned i = 0; rc == 0 && i < o->num; i++) {
        if (fab_api(o->fabric[i].fab)->series_dir == NULL) {
            log_warning("remote-write-off", "fabric=%s text=\"no history is kept, from which it is sent\"",
                        fab_api(o->fabric[i].fab)->name);
            continue;
        }
        rc = open_remote(&o->fabric[i], e);
    }
    return rc;
}

static struct out_fabric *find(struct out *o, const struct fab *f)
{
    for (unsigned i = 0; o != NULL && i < o->num; i++)
        if (o->fabric[i].fab == f)
            return &o->fabric[i];
    return NULL;
}

void out_history(struct out *o, struct fab *f)
{
    struct out_fabric *x = find(o, f);
    struct err e = {0};
    if (x == NULL || x->rw != NULL || o->env.config->remote_write_url[0] == 0)
        return;
    if (open_remote(x, &e) != 0)
        log_warning("remote-write-off", "fabric=%s text=\"%s\"", fab_api(f)->name, e.text);
    else
        log_notice("remote-write-on", "fabric=%s", fab_api(f)->name);
}

void out_snapshot(struct out *o, struct fab *f)
{
    const struct out_fabric *x = find(o, f);
    const struct sm *sm = fab_sm(f);
    struct sm_blueprint b = {0};
    if (x == NULL || x->rw == NULL || sm == NULL)
        return;
    sm_get_blueprint(sm, &b);
    remote_write_names(x->rw, sm_fabric(sm), b.known);
}

// --- notifications ---

static void on_notify_event(void *arg, const char *kind, const char *severity, const char *subject,
                            const char *text)
{
    put_event(arg, "", kind, severity, subject, text);
}

static const char *const *list_of(const struct opt_strings *s)
{
    const char **list = xcalloc(s->n + 1, sizeof(char *));
    for (size_t i = 0; i < s->n; i++)
        list[i] = s->item[i];
    return list;
}

static struct notifier_opts notify_opts(const struct config *c)
{
    return (struct notifier_opts){.alertmanager = list_of(&c->notify_alertmanager),
                                  .webhook = list_of(&c->notify_webhook),
                                  .syslog = list_of(&c->notify_syslog),
                                  .bearer_token_file = c->notify_token_file,
                                  .ca_file = c->notify_ca_file,
                                  .external_url = c->notify_external_url,
                                  .facility = (unsigned)c->notify_facility,
                                  .severity = (enum alarm_severity)c->notify_severity,
                                  .resend_ns = c->notify_resend,
                                  .replay_ns = c->notify_replay};
}

static void notify_opts_done(struct notifier_opts *n)
{
    free((void *)n->alertmanager);
    free((void *)n->webhook);
    free((void *)n->syslog);
}

static int check_notifier(const struct config *c, struct err *e)
{
    struct notifier_opts n = notify_opts(c);
    int rc = notifier_check(&n, e);
    if (rc == 0 && n.external_url[0] != 0)
        rc = http_url_check(n.external_url, e);
    notify_opts_done(&n);
    return rc;
}

static int open_notifier(struct out *o, struct err *e)
{
    const struct config *c = o->env.config;
    char url[300];
    struct notifier_opts n = notify_opts(c);
    struct notifier_callbacks cb = {.arg = o, .event = on_notify_event};

    if (n.external_url[0] == 0 && c->http_port != 0) {
        snprintf(url, sizeof(url),
                 strchr(c->http_address, ':') ? "http://[%.200s]:%lld" : "http://%.200s:%lld",
                 c->http_address, (long long)c->http_port);
        n.external_url = url;
    }
    if (n.alertmanager[0] != NULL || n.webhook[0] != NULL || n.syslog[0] != NULL) {
        o->notifier = notifier_new(o->env.loop, o->env.db, o->env.alarms, &n, &cb, e);
        if (o->notifier == NULL && e->code == 0)
            e->code = -EINVAL;
        if (o->notifier != NULL)
            loop_timer_after(&o->look, LOOK);
    }
    notify_opts_done(&n);
    return o->notifier != NULL || e->code == 0 ? 0 : e->code;
}

// Nobody hears of alarms there: those who are told otherwise, and who look, shall.
static void look_at_targets(void *arg)
{
    struct out *o = arg;
    struct notifier_status st;
    for (unsigned i = 0; i < notifier_targets(o->notifier); i++) {
        char reason[500];
        notifier_get_status(o->notifier, i, &st);
        if (st.failing_ns == 0)
            alarm_clear(o->env.alarms, "", FAILING_RULE, st.target);
        if (st.failing_ns < FAILING_AFTER)
            continue;
        snprintf(reason, sizeof(reason), "%s %.200s has taken nothing for more than %d min: %s", st.kind,
                 st.target, (int)(FAILING_AFTER / (60 * MONO_S)), st.text);
        alarm_raise(o->env.alarms, &(struct alarm_report){.fabric = "",
                                                          .rule = FAILING_RULE,
                                                          .subject = st.target,
                                                          .severity = ALARM_MAJOR,
                                                          .place = st.target,
                                                          .reason = reason});
    }
    loop_timer_after(&o->look, LOOK);
}

struct notifier *out_notifier(struct out *o)
{
    return o != NULL ? o->notifier : NULL;
}

void out_alarm_event(struct out *o, const char *kind)
{
    if (o != NULL && o->notifier != NULL)
        notifier_event(o->notifier, kind);
}

void out_alarm_change(struct out *o, const struct alarm_change *c)
{
    if (o != NULL && o->notifier != NULL)
        notifier_change(o->notifier, c);
}

// --- life cycle ---

int out_check(const struct config *c, struct err *e)
{
    int rc = check_remote(c, e);
    return rc != 0 ? rc : check_notifier(c, e);
}

struct out *out_new(const struct fab_env *env, struct fab *const *fab, unsigned num, struct err *e)
{
    struct out *o = xcalloc(1, sizeof(*o));
    o->env = *env;
    o->num = num;
    o->fabric = xcalloc(num + 1ul, sizeof(*o->fabric));
    loop_timer_init(&o->look, env->loop, "notify", look_at_targets, o);
    for (unsigned i = 0; i < num; i++)
        o->fabric[i] = (struct out_fabric){.o = o, .fab = fab[i]};
    if (open_remotes(o, e) != 0 || (env->alarms != NULL && open_notifier(o, e) != 0)) {
        out_free(o);
        return NULL;
    }
    for (unsigned i = 0; i < num; i++)
        out_snapshot(o, fab[i]);
    return o;
}

void out_free(struct out *o)
{
    if (o == NULL)
        return;
    for (unsigned i = 0; i < o->num; i++) {
        fab_api(o->fabric[i].fab)->remote_write = NULL;
        remote_write_free(o->fabric[i].rw);
    }
    loop_timer_cancel(&o->look);
    notifier_free(o->notifier);
    free(o->fabric);
    free(o);
}
