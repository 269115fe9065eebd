// SPDX-License-Identifier: Apache-2.0
#include "daemon/tele.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/cables.h"
#include "db/series.h"
#include "lib/buf.h"
#include "lib/err.h"
#include "lib/log.h"
#include "lib/pool.h"
#include "lib/xalloc.h"
#include "sim/sim.h"
#include "telemetry/module.h"
#include "telemetry/telemetry.h"

struct wire_tele {
    struct fab_env env;
    const struct config_fabric *cfg;
    struct api_fabric *api;
    struct series *series;
    struct series_report report;
    char dir[400];
    char no_history[800];
    struct tele *tele;
    struct mad_engine *engine;
    void (*swept)(void *arg); // NULL: nobody asks
    void *swept_arg;
    void (*history)(void *arg);
    void *history_arg;
    struct begin_again { // of history that could not be begun; a worker looks, since it may check files
        struct loop_timer timer;
        struct pool_job job;
        struct series *series;
        struct series_report report;
        struct err e;
        struct tele *old; // has collected without; freed when its last answer has come
    } again;
    uint64_t sensed; // of the simulator, at…
    mono_t sensed_at;
    struct cables *cables; // NULL: no file
};

#define AGAIN (30 * MONO_S)

static void on_event(void *arg, const char *kind, const char *severity, const char *subject, const char *text)
{
    const struct wire_tele *w = arg;
    fab_env_event(&w->env, &(struct db_event){.fabric = w->cfg->name,
                                              .kind = kind,
                                              .severity = severity,
                                              .subject = subject,
                                              .text = text,
                                              .data = ""});
}

// The wall clock by which readings age: the loop's in virtual time.
static int64_t aging_now(const struct wire_tele *w)
{
    return tele_modules_age(w->tele, 0);
}

static void use_cables(void *arg)
{
    struct wire_tele *w = arg;
    struct tele_modules *m = w->tele != NULL ? cables_modules(w->cables) : NULL;
    if (m != NULL)
        tele_set_modules(w->tele, m);
}

static void look_at_cables(struct wire_tele *w)
{
    cables_look(w->cables, wall_now_ns(), aging_now(w));
}

// What is played of modules and devices, where no file is given: again each minute, lest it grows old.
static void look_at_sensors(struct wire_tele *w)
{
    const struct sim *s = w->api->sim;
    if (s == NULL || w->cables != NULL)
        return;
    mono_t now = loop_now(w->env.loop);
    uint64_t sensed = sim_sensed(s);
    if (sensed == 0 || (sensed == w->sensed && mono_sub(now, w->sensed_at) < 60 * MONO_S))
        return;
    struct buf text = {0};
    sim_sensors_text(s, &text);
    w->sensed = sensed;
    w->sensed_at = now;
    tele_set_modules(w->tele, tele_modules_parse(text.data, aging_now(w), NULL, NULL));
    buf_done(&text);
}

static void on_swept(void *arg)
{
    struct wire_tele *w = arg;
    look_at_cables(w);
    look_at_sensors(w);
    if (w->swept != NULL)
        w->swept(w->swept_arg);
}

static struct series *try_history(const struct wire_tele *w, struct series_report *ret, struct err *e)
{
    const struct config *c = w->env.config;
    struct series_opts o = {
        .columns = TELE_COUNTERS,
        .peak_columns = 1ull << TELE_XMIT_DATA | 1ull << TELE_RCV_DATA | 1ull << TELE_XMIT_WAIT,
        .keep_ms = {c->keep_raw / MONO_MS, c->keep_minute / MONO_MS, c->keep_hour / MONO_MS},
        .max_bytes = (uint64_t)c->telemetry_max_size};
    char parent[300];
    snprintf(parent, sizeof(parent), "%s/telemetry", c->state_dir);
    mkdir(parent, 0750); // what else there is to say, series_open() says
    return series_open(w->env.loop, w->dir, &o, ret, e);
}

static void no_history(struct wire_tele *w, const struct err *e)
{
    char text[700], all[sizeof(w->no_history)];
    snprintf(all, sizeof(all), "no history is kept, which is tried again every %d s: %s",
             (int)(AGAIN / MONO_S), err_str(e, text, sizeof(text)));
    if (strcmp(all, w->no_history) != 0)
        log_error("history-off", "fabric=%s dir=\"%s\" text=\"%s\"", w->cfg->name, w->dir, text);
    memcpy(w->no_history, all, sizeof(all));
    w->api->no_history = w->no_history;
    loop_timer_after(&w->again.timer, AGAIN);
}

static void take_history(struct wire_tele *w)
{
    w->api->no_history = NULL;
    if (w->report.set_aside > 0)
        log_error("history-set-aside", "fabric=%s files=%u last=\"%s\"", w->cfg->name, w->report.set_aside,
                  w->report.set_aside_as);
    w->api->series = w->series;
    w->api->series_dir = w->dir;
}

static void make_collector(struct wire_tele *w)
{
    const struct config *c = w->env.config;
    struct tele_opts o = {
        .fabric = w->cfg->name,
        .interval_ns = c->telemetry_interval,
        .errors_interval_ns = c->telemetry_errors_interval,
        .detail_interval_ns = c->telemetry_detail_interval,
        .per_device = (unsigned)c->telemetry_per_device,
        .clear_saturated = c->telemetry_clear_saturated,
        .dir = w->series ? w->dir : NULL,
        .no_history = w->api->no_history,
        .history_ms = w->report.last_ms,
        .pool = w->env.pool,
    };
    struct tele_callbacks cb = {.arg = w, .event = on_event, .swept = on_swept};
    w->tele = tele_new(w->env.loop, w->engine, w->series, w->env.alarms, &o, &cb);
    w->api->tele = w->tele;
    w->sensed = 0;
    use_cables(w);
    look_at_cables(w);
}

// --- history that begins later ---

static void try_again(void *arg, struct par *par)
{
    struct wire_tele *w = arg;
    (void)par;
    w->again.e = (struct err){0};
    w->again.series = try_history(w, &w->again.report, &w->again.e);
}

// Ports are numbered as history has them: it takes another collector. What the old one has asked for may
// still come.
static void tried(void *arg)
{
    struct wire_tele *w = arg;
    struct begin_again *b = &w->again;
    if (b->series == NULL) {
        no_history(w, &b->e);
        return;
    }
    w->series = b->series;
    w->report = b->report;
    b->series = NULL;
    w->no_history[0] = 0;
    log_notice("history-on", "fabric=%s dir=\"%s\" series=%u", w->cfg->name, w->dir, w->report.series);
    take_history(w);
    if (w->tele != NULL) {
        b->old = w->tele;
        tele_fabric(b->old, NULL, NULL, NULL);
        make_collector(w);
        loop_timer_after(&b->timer, MONO_S);
    }
    if (w->history != NULL)
        w->history(w->history_arg);
}

static void again_due(void *arg)
{
    struct wire_tele *w = arg;
    struct begin_again *b = &w->again;
    if (b->old != NULL && !tele_is_idle(b->old)) {
        loop_timer_after(&b->timer, MONO_S);
    } else if (b->old != NULL) {
        tele_free(b->old);
        b->old = NULL;
    } else if (w->series == NULL) {
        b->job = (struct pool_job){.work = try_again, .done = tried, .arg = w};
        pool_submit(w->env.pool, &b->job);
    }
}

struct wire_tele *wire_tele_new(const struct fab_env *env, const struct config_fabric *c,
                                struct api_fabric *api)
{
    if (env->config->telemetry_interval == 0)
        return NULL;
    struct wire_tele *w = xcalloc(1, sizeof(*w));
    w->env = *env;
    w->cfg = c;
    w->api = api;
    snprintf(w->dir, sizeof(w->dir), "%s/telemetry/%.64s", env->config->state_dir, c->name);
    w->cables = cables_new(env->pool, c->name, env->config->cable_file,
                           &(struct cables_callbacks){.arg = w, .read = use_cables, .event = on_event});
    loop_timer_init(&w->again.timer, env->loop, "telemetry", again_due, w);
    struct err e = {0};
    w->series = try_history(w, &w->report, &e);
    if (w->series == NULL)
        no_history(w, &e);
    else
        take_history(w);
    return w;
}

void wire_tele_on_history(struct wire_tele *w, void (*fn)(void *arg), void *arg)
{
    if (w == NULL)
        return;
    w->history = fn;
    w->history_arg = arg;
}

void wire_tele_on_swept(struct wire_tele *w, void (*fn)(void *arg), void *arg)
{
    if (w == NULL)
        return;
    w->swept = fn;
    w->swept_arg = arg;
}

void wire_tele_open(struct wire_tele *w, struct mad_engine *e)
{
    if (w == NULL)
        return;
    w->engine = e;
    if (w->series != NULL)
        series_flush(w->series); // it reads where the one before ended; mostly that was written long ago
    make_collector(w);
}

void wire_tele_close(struct wire_tele *w)
{
    if (w == NULL)
        return;
    w->api->tele = NULL;
    tele_free(w->tele);
    tele_free(w->again.old);
    w->tele = w->again.old = NULL;
    w->engine = NULL;
    if (w->series != NULL)
        w->report.last_ms = wall_now_ns() / MONO_MS; // a collector that begins anew goes on from there
}

void wire_tele_free(struct wire_tele *w)
{
    if (w == NULL)
        return;
    wire_tele_close(w);
    loop_timer_cancel(&w->again.timer);
    pool_cancel(&w->again.job);
    series_close(w->again.series);
    w->api->series = NULL;
    w->api->no_history = NULL;
    w->api->series_dir = NULL;
    series_close(w->series);
    cables_free(w->cables);
    free(w);
}

// Groups only with the tables that they are of.
static const struct fabric_groups *groups_in_force(const struct sm *sm, const struct fabric *f,
                                                   const struct fabric_tables *t)
{
    const struct fabric *gf = NULL;
    const struct fabric_tables *gt = NULL;
    const struct fabric_groups *g = sm_adaptive_groups(sm, &gf, &gt);
    return gf == f && gt == t ? g : NULL;
}

void wire_tele_snapshot(struct wire_tele *w, const struct sm *sm)
{
    struct sm_status st;
    struct sm_blueprint bp;
    if (w == NULL || w->tele == NULL || sm == NULL)
        return;
    sm_get_status(sm, &st);
    const struct fabric *f = st.state == SM_MASTER && st.up ? sm_fabric(sm) : NULL;
    const struct fabric_tables *t = f != NULL ? sm_tables(sm) : NULL;
    sm_get_blueprint(sm, &bp);
    tele_blueprint(w->tele, bp.known);
    tele_fabric(w->tele, f, t, f != NULL ? groups_in_force(sm, f, t) : NULL);
}
