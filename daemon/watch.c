// SPDX-License-Identifier: Apache-2.0
#include "daemon/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/drain.h"
#include "telemetry/alarm_sources.h"
#include "telemetry/isolate.h"

#define LOOK (10 * MONO_S)
#define KNOWN_SMS_MAX 64

struct wire_watch {
    struct fab_env env;
    const struct config_fabric *cfg;
    struct api_fabric *api;
    struct alarm_watch *watch;
    struct isolate *isolate;
    struct loop_timer timer;
    int64_t wall_zero; // virtual time: wall clock minus loop time
};

static int64_t wall_of(const struct wire_watch *w)
{
    if (loop_clock(w->env.loop) == LOOP_VIRTUAL)
        return w->wall_zero + loop_now(w->env.loop).ns;
    return wall_now_ns();
}

// --- looking ---

static unsigned fill_sms(const struct sm *sm, struct alarm_sm *ret, struct sm_peer *peer)
{
    unsigned n = sm_peers(sm, peer);
    for (unsigned i = 0; i < n; i++) {
        ret[i] = (struct alarm_sm){.guid = peer[i].guid,
                                   .node_guid = peer[i].node_guid,
                                   .port = peer[i].port,
                                   .priority = peer[i].priority,
                                   .node = peer[i].node};
        switch (peer[i].state) {
        case SM_NOT_ACTIVE:
            ret[i].state = ALARM_SM_NOT_ACTIVE;
            break;
        case SM_DISCOVERING:
            ret[i].state = ALARM_SM_DISCOVERING;
            break;
        case SM_STANDBY:
            ret[i].state = ALARM_SM_STANDBY;
            break;
        case SM_MASTER:
            ret[i].state = ALARM_SM_MASTER;
            break;
        }
    }
    return n;
}

static void fill_manager(const struct sm *sm, struct alarm_look *l)
{
    struct sm_status st;
    struct sm_blueprint bp;
    const struct sm_sweep *last = sm_history(sm, 0);
    sm_get_status(sm, &st);
    sm_get_blueprint(sm, &bp);
    l->running = true;
    l->state = sm_state_name(st.state);
    l->master = st.state == SM_MASTER;
    l->sweep_ok = last != NULL && last->ok;
    l->live = sm_fabric(sm);
    l->known = bp.known;
    l->findings = sm_findings(sm);
}

void wire_watch_look(struct wire_watch *w)
{
    struct sm_peer peer[SM_PEERS_MAX];
    struct alarm_sm sm[SM_PEERS_MAX];
    uint64_t known[KNOWN_SMS_MAX];
    char db_text[300] = "", db_anew[700];
    struct alarm_look l = {.sm = sm, .known_sms = known};
    if (w == NULL)
        return;
    const struct opt_strings *list = &w->env.config->known_sms;
    for (size_t i = 0; i < list->n && l.num_known_sms < KNOWN_SMS_MAX; i++)
        l.num_known_sms += guid_parse(list->item[i], &known[l.num_known_sms]) == 0;
    if (w->api->sm != NULL) {
        fill_manager(w->api->sm, &l);
        l.num_sms = fill_sms(w->api->sm, sm, peer);
    }
    l.down = w->api->down;
    if (w->env.db != NULL)
        l.db_status = db_health(w->env.db, db_text, sizeof(db_text));
    l.db_text = db_text;
    int64_t anew = w->env.db != NULL ? db_written_anew(w->env.db, db_anew, sizeof(db_anew)) : 0;
    if (anew != 0 && mono_now().ns - anew < 3600 * MONO_S)
        l.db_anew = db_anew;
    alarm_watch_look(w->watch, &l, loop_now(w->env.loop).ns, wall_of(w));
}

void wire_watch_event(struct wire_watch *w, const struct sm_event *ev)
{
    if (w != NULL)
        alarm_watch_event(w->watch, ev->kind, ev->severity, ev->subject, ev->text);
}

static void look_again(void *arg)
{
    struct wire_watch *w = arg;
    wire_watch_look(w);
    loop_timer_after(&w->timer, LOOK);
}

// --- isolation ---

// The end that is a switch's; both of a cable between switches will do.
static bool drain_place(const struct wire_watch *w, const struct isolate_place *p, struct sm_drain_place *ret)
{
    const struct fabric *f = w->api->sm != NULL ? sm_fabric(w->api->sm) : NULL;
    for (int e = 0; f != NULL && e < 2; e++) {
        const struct node *n = p->guid[e] ? fabric_by_guid(f, p->guid[e]) : NULL;
        if (n != NULL && n->type == NODE_SWITCH) {
            *ret = (struct sm_drain_place){p->guid[e], p->port[e]};
            return true;
        }
    }
    return false;
}

static int on_drain(void *arg, const struct isolate_place *p, const char *reason, struct err *e)
{
    struct wire_watch *w = arg;
    struct sm_drain_place at;
    bool did;
    if (!drain_place(w, p, &at))
        return err_set(e, -ENOENT, "", "neither end is a switch that is there");
    return sm_drain_all(w->api->sm, &at, 1, "weft", reason, &did, e);
}

static int on_undrain(void *arg, const struct isolate_place *p, const char *by, struct err *e)
{
    struct wire_watch *w = arg;
    struct sm_drain_place at;
    bool did;
    if (w->api->sm == NULL)
        return err_set(e, -EAGAIN, "", "there is no subnet manager now");
    for (int i = 0; i < 2; i++) {
        at = (struct sm_drain_place){p->guid[i], p->port[i]};
        if (at.guid && at.port && sm_drain_find(w->api->sm, &at) != NULL)
            return sm_undrain_all(w->api->sm, &at, 1, by, &did, e);
    }
    return 0; // somebody was faster
}

static bool on_drained(void *arg, const struct isolate_place *p)
{
    const struct wire_watch *w = arg;
    for (int i = 0; i < 2 && w->api->sm != NULL; i++) {
        struct sm_drain_place at = {p->guid[i], p->port[i]};
        if (at.guid && at.port && sm_drain_find(w->api->sm, &at) != NULL)
            return true;
        at.port = 0; // the whole switch
        if (at.guid && sm_drain_find(w->api->sm, &at) != NULL)
            return true;
    }
    return false;
}

static void on_isolation_event(void *arg, const char *kind, const char *severity, const char *subject,
                               const char *text, const char *data)
{
    const struct wire_watch *w = arg;
    char quoted[1200];
    log_notice(kind, "fabric=%s text=\"%s\"", w->cfg->name, log_quote(text, quoted, sizeof(quoted)));
    fab_env_event(&w->env, &(struct db_event){.fabric = w->cfg->name,
                                              .kind = kind,
                                              .severity = severity,
                                              .subject = subject,
                                              .text = text,
                                              .data = data});
}

static void on_cap(void *arg, bool reached, const char *text)
{
    const struct wire_watch *w = arg;
    alarm_watch_cap(w->watch, reached, text);
}

static void isolation_opts(const struct config *c, struct isolate_opts *o)
{
    isolate_opts_default(o);
    o->mode = (enum isolate_mode)c->isolation;
    o->hosts = (enum isolate_hosts)c->isolation_hosts;
    o->cap_links = (unsigned)c->isolation_max_links;
    o->cap_share = c->isolation_max_share / 100;
    o->keep_uplinks = c->isolation_keep_uplinks / 100;
    o->clean_ns = c->isolation_clean;
    o->per_week = (unsigned)c->isolation_per_week;
}

void wire_watch_swept(struct wire_watch *w)
{
    if (w == NULL || w->api->tele == NULL)
        return;
    const struct tele_table *t = tele_table(w->api->tele);
    // Without a snapshot nothing is known of what joins what.
    if (t->fabric != NULL && w->api->sm != NULL)
        isolate_feed(w->isolate, tele_health(w->api->tele), t, loop_now(w->env.loop).ns, wall_of(w));
}

// --- life ---

struct wire_watch *wire_watch_new(const struct fab_env *env, const struct config_fabric *c,
                                  struct api_fabric *api)
{
    if (env->alarms == NULL)
        return NULL;
    struct wire_watch *w = xcalloc(1, sizeof(*w));
    struct isolate_opts o;
    struct isolate_callbacks cb = {.arg = w,
                                   .drain = on_drain,
                                   .undrain = on_undrain,
                                   .drained = on_drained,
                                   .event = on_isolation_event,
                                   .cap = on_cap};
    w->env = *env;
    w->cfg = c;
    w->api = api;
    w->wall_zero = wall_now_ns() - loop_now(env->loop).ns;
    w->watch = alarm_watch_new(env->alarms, c->name);
    isolation_opts(env->config, &o);
    w->isolate = isolate_new(env->db, c->name, &o, &cb);
    api->isolate = w->isolate;
    loop_timer_init(&w->timer, env->loop, "alarms", look_again, w);
    loop_timer_after(&w->timer, LOOK);
    return w;
}

void wire_watch_reconfigure(struct wire_watch *w)
{
    struct isolate_opts o;
    if (w == NULL)
        return;
    isolation_opts(w->env.config, &o);
    isolate_set(w->isolate, &o);
}

void wire_watch_free(struct wire_watch *w)
{
    if (w == NULL)
        return;
    loop_timer_cancel(&w->timer);
    w->api->isolate = NULL;
    isolate_free(w->isolate);
    alarm_watch_free(w->watch);
    free(w);
}
