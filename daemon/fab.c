// SPDX-License-Identifier: Apache-2.0
#include "daemon/fab.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tele.h"
#include "daemon/watch.h"
#include "fabric/topogen.h"
#include "lib/arena.h"
#include "lib/buf.h"
#include "lib/guid.h"
#include "lib/log.h"
#include "lib/xalloc.h"
#include "mad/umad.h"
#include "sim/sim_flow.h"

#define RETRY_FIRST (1 * MONO_S)
#define RETRY_MAX (30 * MONO_S)

struct fab {
    struct fab_env env;
    const struct config_fabric *cfg;
    struct arena *arena;
    struct api_fabric api;
    struct sim *sim;
    struct transport *transport;
    struct mad_engine *engine;
    struct sm *sm;
    struct wire_tele *tele;   // NULL: counters are not collected
    struct wire_watch *watch; // NULL: no alarms are kept
    struct findings findings; // of the file
    struct buf lft_file;
    uint64_t *roots;
    struct loop_timer retry;
    int64_t retry_ns;
    struct err error;
    struct loop_task reopen;
};

// Events of a sweep carry its id.
static const char *event_data(const struct fab *f, char *buf, size_t size)
{
    struct sm_status st;
    buf[0] = 0;
    if (f->sm == NULL) // it is only being made
        return buf;
    sm_get_status(f->sm, &st);
    if (st.sweeping)
        snprintf(buf, size, "{\"sweep\": %llu}", (unsigned long long)st.sweeps + 1);
    return buf;
}

void fab_env_event(const struct fab_env *env, const struct db_event *ev)
{
    struct db_event now = *ev;
    if (env->db == NULL)
        return;
    now.wall_ns = wall_now_ns();
    uint64_t id = db_event_add(env->db, &now);
    if (*env->api != NULL)
        api_event(*env->api, id);
}

static void on_event(void *arg, const struct sm_event *ev)
{
    struct fab *f = arg;
    char data[60];
    if (f->env.db == NULL)
        return;
    fab_env_event(&f->env, &(struct db_event){.fabric = f->cfg->name,
                                              .kind = ev->kind,
                                              .severity = ev->severity,
                                              .subject = ev->subject,
                                              .text = ev->text,
                                              .data = event_data(f, data, sizeof(data))});
    wire_watch_event(f->watch, ev);
}

static void on_snapshot(void *arg)
{
    struct fab *f = arg;
    loop_doing(f->env.loop, "snapshot-counters");
    wire_tele_snapshot(f->tele, f->sm);
    loop_doing(f->env.loop, "snapshot-alarms");
    wire_watch_look(f->watch);
    loop_doing(f->env.loop, "snapshot-others");
    if (f->env.snapshot != NULL)
        f->env.snapshot(f->env.arg, f);
    if (*f->env.api != NULL)
        api_changed(*f->env.api, f->cfg->name);
}

static void on_sweep(void *arg, const struct sm_sweep *s)
{
    struct fab *f = arg;
    if (s->ok)
        log_notice("sweep", "fabric=%s cause=%s seconds=%.3f mads=%llu text=\"%s\"", f->cfg->name, s->cause,
                   mono_seconds(s->ns), (unsigned long long)s->mads, s->text);
    if (f->env.swept != NULL)
        f->env.swept(f->env.arg, f, s);
}

static int read_roots(struct fab *f, struct sm_opts *o, struct err *e)
{
    const struct opt_strings *r = &f->env.config->roots;
    f->roots = r->n ? xcalloc(r->n, sizeof(uint64_t)) : NULL;
    for (size_t i = 0; i < r->n; i++)
        if (guid_parse(r->item[i], &f->roots[i]) != 0)
            return err_set(e, -EINVAL, "routing.roots", "\"%s\" is not a GUID", r->item[i]);
    o->root_guids = f->roots;
    o->num_roots = (uint32_t)r->n;
    return 0;
}

static int sm_make(struct fab *f, struct err *e)
{
    const struct config *c = f->env.config;
    struct sm_opts o;
    struct mad_engine_opts m = {.window_total = (unsigned)c->window,
                                .window_max = (unsigned)c->device_window,
                                .timeout_ns = c->timeout,
                                .retries = (int)c->retries};
    struct sm_callbacks cb = {.arg = f, .event = on_event, .snapshot = on_snapshot, .sweep = on_sweep};

    config_sm_opts(c, f->cfg->name, &o);
    if (f->sim != NULL && o.adaptive == SM_ADAPTIVE_REFUSED)
        o.adaptive = SM_ADAPTIVE_ON;
    int rc = read_roots(f, &o, e);
    if (rc != 0)
        return rc;
    if (o.engine == ROUTE_FILE) {
        rc = buf_read_file(&f->lft_file, c->lft_file, 1u << 30);
        if (rc != 0)
            return err_set(e, rc, "routing.lft_file", "%s cannot be read (%s); engine file needs it",
                           c->lft_file, strerror(-rc));
        o.lft_file = f->lft_file.data;
    }
    f->engine = mad_engine_new(f->env.loop, f->transport, &m);
    f->sm = sm_new(f->env.loop, f->engine, f->transport, f->env.pool, f->env.db, &o, &cb);
    f->api.sm = f->sm;
    f->api.engine = f->engine;
    f->api.transport = f->transport->name;
    f->api.down = NULL;
    wire_tele_open(f->tele, f->engine);
    sm_start(f->sm);
    return 0;
}

static void close_all(struct fab *f)
{
    mad_engine_free(f->engine); // first: it drops what the manager waits for
    wire_tele_close(f->tele);
    sm_free(f->sm);
    if (f->transport != NULL)
        f->transport->ops->free(f->transport);
    f->engine = NULL;
    f->sm = NULL;
    f->transport = NULL;
    f->api.sm = NULL;
    f->api.engine = NULL;
    f->api.transport = f->cfg->port[0] ? f->cfg->port : "umad"; // the transport's own name went with it
    free(f->roots);
    f->roots = NULL;
    buf_done(&f->lft_file);
}

static void retry_later(struct fab *f, const struct err *e)
{
    if (strcmp(f->error.text, e->text) != 0)
        log_error("port-not-open", "fabric=%s where=\"%s\" text=\"%s\" retry=yes", f->cfg->name, e->where,
                  e->text);
    f->error = *e;
    f->api.down = f->error.text;
    f->retry_ns = f->retry_ns ? f->retry_ns * 2 : RETRY_FIRST;
    if (f->retry_ns > RETRY_MAX)
        f->retry_ns = RETRY_MAX;
    loop_timer_after(&f->retry, f->retry_ns);
}

static void broken(void *arg, int status)
{
    struct fab *f = arg;
    log_error("port-lost", "fabric=%s port=\"%s\" cause=\"%s\" retry=yes", f->cfg->name, f->transport->name,
              strerror(-status));
    loop_post(f->env.loop, &f->reopen); // not from inside the transport's own call
}

static int open_port(struct fab *f, struct err *e)
{
    struct umad_opts o = {.need_sm = true};
    int rc = config_parse_port(f->cfg->port, f->arena, &o.device, &o.port, e);
    if (rc != 0)
        return rc;
    f->transport = umad_open(f->env.loop, &o, e);
    if (f->transport == NULL)
        return e->code ? e->code : -EIO;
    rc = f->transport->ops->issm(f->transport, true, e);
    if (rc == 0) {
        f->transport->broken = broken;
        f->transport->broken_arg = f;
        rc = sm_make(f, e);
    }
    if (rc != 0)
        close_all(f);
    else
        log_notice("port-open", "fabric=%s port=\"%s\"", f->cfg->name, f->transport->name);
    return rc;
}

static void try_again(void *arg)
{
    struct fab *f = arg;
    struct err e = {0};
    if (open_port(f, &e) != 0)
        retry_later(f, &e);
    else
        f->retry_ns = 0;
}

static void reopen(void *arg)
{
    struct fab *f = arg;
    close_all(f);
    f->api.down = "the port was lost; opening it again";
    on_snapshot(f);
    f->retry_ns = 0;
    loop_timer_after(&f->retry, RETRY_FIRST);
}

// What was said about the file itself; what is odd about the fabric the manager finds for itself.
static void keep_file_findings(struct findings *f, const char *file)
{
    struct findings kept = {0};
    for (size_t i = 0; i < f->n; i++)
        if (strncmp(f->item[i].where, file, strlen(file)) == 0)
            findings_add(&kept, f->item[i].severity, f->item[i].code, f->item[i].where, "%s",
                         f->item[i].text);
    findings_done(f);
    *f = kept;
}

// What a simulated host would get for a path: the lane of both ends' switches as service level.
static unsigned path_level(void *arg, uint64_t from, uint64_t to)
{
    const struct fab *f = arg;
    const struct fabric *x = f->api.sm != NULL ? sm_fabric(f->api.sm) : NULL;
    const struct fabric_tables *t = x != NULL ? sm_tables(f->api.sm) : NULL;
    const uint64_t guid[] = {from, to};
    uint32_t sw[2];

    for (unsigned i = 0; i < 2; i++) {
        port_id p = x != NULL ? fabric_by_port_guid(x, guid[i]) : PORT_NONE;
        const struct node *n = port_valid(p) ? fabric_peer_node(x, fabric_port(x, p)) : NULL;
        if (n == NULL || n->type != NODE_SWITCH)
            return 0;
        sw[i] = n->sw;
    }
    if (t == NULL || t->lanes == NULL || sw[0] >= t->lanes->num_switches || sw[1] >= t->lanes->num_switches)
        return 0;
    unsigned lane = lanes_get(t->lanes, sw[0], sw[1]);
    return lane == LANE_NONE ? 0 : lane;
}

static int open_sim(struct fab *f, struct err *e)
{
    struct sim_opts o;
    const struct fabric *fabric = topogen_or_file(f->cfg->simulate, &f->findings, e);
    if (fabric == NULL)
        return e->code ? e->code : -EINVAL;
    keep_file_findings(&f->findings, f->cfg->simulate);
    config_sim_opts(f->env.config, &o);
    f->sim = sim_new(f->env.loop, fabric, &o);
    fabric_unref(fabric);
    f->api.sim = f->sim;
    f->api.offline_findings = &f->findings;
    f->transport = sim_attach(f->sim, 0, e);
    if (f->transport == NULL)
        return e->code ? e->code : -EINVAL;
    f->transport->ops->issm(f->transport, true, NULL);
    sim_flow_levels(f->sim, path_level, f);
    return sm_make(f, e);
}

static struct fab *fab_base(const struct fab_env *env, const struct config_fabric *c)
{
    struct fab *f = xcalloc(1, sizeof(*f));
    f->env = *env;
    f->arena = arena_new();
    f->cfg = c;
    f->api.name = c->name;
    loop_timer_init(&f->retry, env->loop, "daemon", try_again, f);
    loop_task_init(&f->reopen, "daemon", reopen, f);
    return f;
}

static bool may_heal(int code)
{
    return code != -EPROTONOSUPPORT && code != -EACCES && code != -EPERM && code != -EINVAL;
}

static void on_history(void *arg)
{
    struct fab *f = arg;
    if (f->env.history != NULL)
        f->env.history(f->env.arg, f);
    on_snapshot(f); // what is new has seen none
}

static void on_counters(void *arg)
{
    const struct fab *f = arg;
    wire_watch_swept(f->watch);
}

struct fab *fab_new(const struct fab_env *env, const struct config_fabric *c, bool once, struct err *e)
{
    struct fab *f = fab_base(env, c);
    bool sim = c->simulate[0] != 0;
    f->tele = once ? NULL : wire_tele_new(&f->env, c, &f->api);
    f->watch = once ? NULL : wire_watch_new(&f->env, c, &f->api);
    wire_tele_on_swept(f->tele, on_counters, f);
    wire_tele_on_history(f->tele, on_history, f);
    int rc = sim ? open_sim(f, e) : open_port(f, e);

    if (rc == 0)
        return f;
    if (once || sim || !may_heal(rc)) {
        fab_free(f);
        return NULL;
    }
    f->api.transport = c->port[0] ? c->port : "umad";
    retry_later(f, e);
    return f;
}

void fab_free(struct fab *f)
{
    if (f == NULL)
        return;
    loop_timer_cancel(&f->retry);
    loop_unpost(f->env.loop, &f->reopen);
    wire_watch_free(f->watch);
    f->watch = NULL;
    close_all(f);
    wire_tele_free(f->tele);
    sim_free(f->sim);
    fabric_unref(f->api.offline);
    findings_done(&f->findings);
    arena_free(f->arena);
    free(f);
}

static void take_priority(struct fab *f)
{
    struct sm_status st;
    uint8_t priority = (uint8_t)f->env.config->priority;

    sm_get_status(f->sm, &st);
    if (st.priority == priority)
        return;
    log_notice("sm-priority", "fabric=%s from=%u to=%u", f->cfg->name, st.priority, priority);
    sm_election_priority(f->sm, priority);
}

void fab_reconfigure(struct fab *f, bool resweep)
{
    struct sm_opts o;
    if (f->sim != NULL)
        sim_set_loss(f->sim, f->env.config->sim_loss);
    wire_watch_reconfigure(f->watch);
    if (f->sm == NULL)
        return;
    take_priority(f);
    if (!resweep)
        return;
    config_sm_opts(f->env.config, f->cfg->name, &o);
    sm_reconfigure(f->sm, &o);
}

struct api_fabric *fab_api(struct fab *f)
{
    return &f->api;
}

struct sm *fab_sm(const struct fab *f)
{
    return f->sm;
}

struct fab *fab_offline(const struct fab_env *env, const char *name_or_path, struct err *e)
{
    static const struct config_fabric offline = {.name = "offline", .port = "", .simulate = ""};
    struct fab *f = fab_base(env, &offline);
    f->api.offline = topogen_or_file(name_or_path, &f->findings, e);
    f->api.offline_findings = &f->findings;
    f->api.transport = arena_strdup(f->arena, name_or_path);
    if (f->api.offline != NULL)
        return f;
    fab_free(f);
    return NULL;
}
