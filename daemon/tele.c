// SPDX-License-Identifier: Apache-2.0
#include "daemon/tele.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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
    int64_t sensed_ns;
    int64_t cable_mtime; // of the file that was read last, ns; 0: none
    int64_t cable_good;  // of the last one that could be read; 0: none, or it is told to be old
    struct cable_read {  // by a worker: a large file takes a third of a second
        struct pool_job job;
        bool running;
        char *path;     // a copy: the configuration may change meanwhile
        unsigned lines; // told of
        struct tele_modules *modules;
        struct err e;
    } cables;
};

#define CABLE_LINES_TOLD 20
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

static void on_cable_line(void *arg, unsigned line, const char *text)
{
    struct wire_tele *w = arg;
    if (++w->cables.lines <= CABLE_LINES_TOLD)
        log_warning("cable-file-line", "fabric=%s file=\"%s\" line=%u text=\"%s\"", w->cfg->name,
                    w->cables.path, line, text);
}

static void read_cables(void *arg, struct par *par)
{
    struct wire_tele *w = arg;
    (void)par;
    w->cables.modules = tele_modules_read(w->cables.path, on_cable_line, w, &w->cables.e);
}

static void forget_cables(struct cable_read *c)
{
    tele_modules_free(c->modules);
    free(c->path);
    *c = (struct cable_read){0};
}

static void tell_if_old(const struct wire_tele *w)
{
    int64_t age = tele_modules_age(w->tele, w->cable_mtime);
    if (age > TELE_MODULES_OLD_NS)
        log_warning(
            "cable-file-old",
            "fabric=%s file=\"%s\" hours=%lld text=\"it is shown, but raises no alarm: nothing is known "
            "of how modules and devices are now\"",
            w->cfg->name, w->cables.path, (long long)(age / (3600 * MONO_S)));
}

// A file that cannot be read leaves what was known.
static void cables_read(void *arg)
{
    struct wire_tele *w = arg;
    struct cable_read *c = &w->cables;
    char text[700];
    if (c->modules == NULL) {
        log_warning("cable-file-not-read", "fabric=%s text=\"%s\"", w->cfg->name,
                    err_str(&c->e, text, sizeof(text)));
    } else {
        log_notice("cable-file", "fabric=%s file=\"%s\" modules=%u devices=%u lines_left_out=%u",
                   w->cfg->name, c->path, tele_modules_num(c->modules), tele_devices_num(c->modules),
                   c->lines);
        w->cable_good = w->cable_mtime;
        tell_if_old(w);
        tele_set_modules(w->tele, c->modules);
        c->modules = NULL;
    }
    forget_cables(c);
}

// Gone, or written by nobody any more: said once, since alarms end with it that nobody has mended.
static void watch_age(struct wire_tele *w)
{
    if (w->cable_good == 0 || w->tele == NULL ||
        tele_modules_age(w->tele, w->cable_good) <= TELE_MODULES_OLD_NS)
        return;
    w->cable_good = 0;
    on_event(w, "cable-file-old", "warning", w->env.config->cable_file,
             "not written for a day: nothing is known of modules and devices any more, and alarms of them "
             "(L16, L17, L18) end");
}

// Reads the file again when it is another one, and nobody writes it just now.
static void look_at_cables(struct wire_tele *w)
{
    const char *path = w->env.config->cable_file;
    if (path[0] == 0 || w->cables.running)
        return;
    int64_t mtime = tele_modules_written(path);
    if (mtime == w->cable_mtime || (w->cable_mtime != 0 && mtime >= 0 && wall_now_ns() - mtime < MONO_S))
        return;
    w->cable_mtime = mtime;
    w->cables = (struct cable_read){
        .job = {.work = read_cables, .done = cables_read, .arg = w}, .running = true, .path = xstrdup(path)};
    pool_submit(w->env.pool, &w->cables.job);
}

// What is played of modules and devices, where no file is given.
static void look_at_sensors(struct wire_tele *w)
{
    const struct sim *s = w->api->sim;
    if (s == NULL || w->env.config->cable_file[0] != 0)
        return;
    int64_t now = mono_now().ns;
    uint64_t sensed = sim_sensed(s);
    if (sensed == 0 || (sensed == w->sensed && now - w->sensed_ns < 60 * MONO_S))
        return;
    struct buf text = {0};
    sim_sensors_text(s, &text);
    w->sensed = sensed;
    w->sensed_ns = now;
    tele_set_modules(w->tele, tele_modules_parse(text.data, wall_now_ns(), NULL, NULL));
    buf_done(&text);
}

static void on_swept(void *arg)
{
    struct wire_tele *w = arg;
    look_at_cables(w);
    watch_age(w);
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
    w->cable_mtime = 0;
    w->sensed = 0;
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
    if (w->tele == NULL)
        return;
    pool_cancel(&w->cables.job);
    forget_cables(&w->cables);
    b->old = w->tele;
    tele_fabric(b->old, NULL, NULL, NULL);
    make_collector(w);
    loop_timer_after(&b->timer, MONO_S);
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
    pool_cancel(&w->cables.job);
    forget_cables(&w->cables);
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
