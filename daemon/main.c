// SPDX-License-Identifier: Apache-2.0
// weftd: reads the configuration, wires the parts together and runs the loop. The only place that knows all
// folders.
//
//     args.c     the command line
//     config.c   option rows, defaults, what they mean to the parts
//     fab.c      one managed fabric: transport, engine, manager; opened again when its port fails
//     tele.c     a fabric's counters: history, collector
//     cables.c   its cables, modules and devices: ibdiagnet's file
//     watch.c    what goes wrong with it beside: the manager's findings and events as alarms, isolation
//     dump.c     fabrics and tables in other programs' forms
//     out.c      what goes to others: remote write, notifications
//     once.c     --once: bring up, print JSON, exit
//     notify.c   readiness and watchdog messages to systemd
//     held.c     who holds the loop up is logged
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "daemon/args.h"
#include "daemon/dump.h"
#include "daemon/fab.h"
#include "daemon/held.h"
#include "daemon/notify.h"
#include "daemon/once.h"
#include "daemon/out.h"
#include "lib/arena.h"
#include "lib/buf.h"
#include "lib/log.h"
#include "lib/xalloc.h"

#define DAY (86400 * MONO_S)
#define HOUR (3600 * MONO_S)

struct weftd {
    struct args args;
    struct arena *arena;
    struct config config;
    struct loop *loop;
    struct pool *pool;
    struct db *db;
    struct alarms *alarms; // NULL for --once and --offline
    struct out *out;       // NULL for --once and --offline
    struct api *api;
    struct fab **fab;
    struct api_fabric **api_fabric;
    unsigned num_fab;
    struct once once;
    char temp_state[300];
    struct loop_signal *sig[3];
    struct loop_timer prune;
    int64_t prune_due, clock_ahead; // loop time; of the wall clock against it, when it was looked at last
    struct notify notify;
    struct held held;
};

static int complain(const struct err *e, int status)
{
    char text[700];
    fprintf(stderr, "weftd: %s\n", err_str(e, text, sizeof(text)));
    return status;
}

static int apply_sets(const struct weftd *w, struct config *c, struct arena *a, struct err *e)
{
    for (unsigned i = 0; i < w->args.num_set; i++) {
        const char *s = w->args.set[i], *eq = strchr(s, '=');
        if (eq == NULL)
            return err_set(e, -EINVAL, "--set", "\"%s\" is not SECTION.KEY=VALUE", s);
        int rc = opt_set(config_rows, c, a, arena_strndup(a, s, (size_t)(eq - s)), eq + 1, e);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int apply_http(const struct weftd *w, struct config *c, struct arena *a, struct err *e)
{
    const char *s = w->args.http, *colon = s ? strrchr(s, ':') : NULL;
    char *end;
    if (s == NULL)
        return 0;
    long port = strtol(colon ? colon + 1 : s, &end, 10);
    if (*end != 0 || end == s || port < 0 || port > 65535)
        return err_set(e, -EINVAL, "--http", "\"%s\" is not ADDRESS:PORT", s);
    if (colon != NULL)
        c->http_address = arena_strndup(a, s, (size_t)(colon - s));
    c->http_port = port;
    return 0;
}

// The command line over the file. What it allocates is in `arena`.
static int apply_args(const struct weftd *w, struct config *c, struct arena *arena, struct err *e)
{
    const struct args *a = &w->args;
    int rc = apply_http(w, c, arena, e);

    if (rc != 0)
        return rc;
    if (a->simulate != NULL || a->port != NULL || c->fabrics.n == 0) {
        struct config_fabric *f = arena_alloc(arena, sizeof(*f));
        *f = (struct config_fabric){
            .name = "default", .port = a->port ? a->port : "", .simulate = a->simulate ? a->simulate : ""};
        c->fabrics.item = f;
        c->fabrics.n = 1;
    }
    if (a->socket != NULL)
        c->socket = a->socket;
    if (a->state != NULL)
        c->state_dir = a->state;
    else if (w->temp_state[0] != 0)
        c->state_dir = w->temp_state;
    rc = config_check(c, e);
    return rc != 0 ? rc : out_check(c, e);
}

// A one-shot or simulated run keeps its state in a temporary folder unless told where, and needs no root.
static int make_temp_state(struct weftd *w, struct err *e)
{
    const struct args *a = &w->args;
    const char *tmp = getenv("TMPDIR");

    if (a->state != NULL || (!a->once && a->simulate == NULL && a->offline == NULL))
        return 0;
    snprintf(w->temp_state, sizeof(w->temp_state), "%s/weft-XXXXXX",
             tmp != NULL && tmp[0] != 0 ? tmp : "/tmp");
    if (mkdtemp(w->temp_state) == NULL)
        return err_set(e, -errno, w->temp_state, "no temporary folder can be made there (%s)",
                       strerror(errno));
    w->config.state_dir = w->temp_state;
    return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    remove(path);
    return 0;
}

static void remove_temp_state(struct weftd *w)
{
    if (w->temp_state[0] != 0)
        nftw(w->temp_state, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static void on_terminate(void *arg)
{
    struct weftd *w = arg;
    log_notice("stopping", "signal=yes");
    loop_stop(w->loop);
}

struct reload {
    bool live, resweep;
    struct buf restart; // options that need a restart
};

static void option_changed(void *arg, const struct opt_row *row, const char *path)
{
    struct reload *r = arg;
    switch (row->reload) {
    case OPT_RELOAD_LIVE:
        r->live = true;
        break;
    case OPT_RELOAD_RESWEEP:
        r->resweep = true;
        break;
    case OPT_RELOAD_RESTART:
        buf_printf(&r->restart, "%s%s", r->restart.len ? ", " : "", path);
        break;
    }
}

// What may change while running is taken from the new file; the rest is named.
static void reload(struct weftd *w, const struct config *c)
{
    struct reload r = {0};
    opt_diff(config_rows, &w->config, c, option_changed, &r);
    config_take_live(&w->config, c);
    config_take_resweep(&w->config, c);
    log_set_level((enum log_level)c->log_level);
    for (unsigned i = 0; i < w->num_fab; i++)
        fab_reconfigure(w->fab[i], r.resweep);
    log_notice("config-reloaded", "changed=%s needs_restart=\"%s\"", r.live || r.resweep ? "yes" : "no",
               r.restart.len ? r.restart.data : "");
    buf_done(&r.restart);
}

static void on_hangup(void *arg)
{
    struct weftd *w = arg;
    struct arena *a = arena_new();
    struct config c;
    struct err e = {0};
    char text[700];

    if (config_load(&c, a, w->args.config, &e) != 0 || apply_sets(w, &c, a, &e) != 0 ||
        apply_args(w, &c, a, &e) != 0)
        log_error("config-not-reloaded", "text=\"%s\"", err_str(&e, text, sizeof(text)));
    else
        reload(w, &c);
    arena_free(a);
}

static void on_swept(void *arg, struct fab *f, const struct sm_sweep *s)
{
    struct weftd *w = arg;
    if (w->args.once)
        once_swept(&w->once, f, s);
}

static void on_db_event(void *arg, uint64_t id)
{
    struct weftd *w = arg;
    if (w->api != NULL)
        api_event(w->api, id);
}

static int open_db(struct weftd *w, struct err *e)
{
    struct db_open_report rep = {0};
    w->db = db_open(w->loop, w->config.state_dir, &rep, e);
    if (w->db == NULL)
        return e->code ? e->code : -EIO;
    db_on_own_event(w->db, on_db_event, w);
    if (rep.set_aside) {
        log_error("database-set-aside",
                  "text=\"meta.db was damaged; it is kept as %s and a new one is begun: LIDs are read back "
                  "from the fabric\"",
                  rep.set_aside_as);
        db_event_add(
            w->db,
            &(struct db_event){
                .wall_ns = wall_now_ns(),
                .fabric = "",
                .kind = "database-set-aside",
                .severity = "error",
                .subject = "meta.db",
                .text = "meta.db was damaged and has been set aside; LIDs are read back from the fabric",
                .data = ""});
    }
    return 0;
}

// Once a day; but a clock that was set, or that is wrong at the start, must not take the events with it: it
// has an hour to come right.
static void prune_events(void *arg)
{
    struct weftd *w = arg;
    int64_t now = loop_now(w->loop).ns, ahead = wall_now_ns() - now;
    bool trusted = ahead - w->clock_ahead < DAY && w->clock_ahead - ahead < DAY;
    w->clock_ahead = ahead;
    if (trusted && now >= w->prune_due) {
        db_event_prune(w->db, wall_now_ns() - w->config.events_keep_days * DAY);
        w->prune_due = now + DAY;
    }
    loop_timer_after(&w->prune, HOUR);
}

static void on_snapshot(void *arg, struct fab *f)
{
    struct weftd *w = arg;
    out_snapshot(w->out, f);
}

static void on_history(void *arg, struct fab *f)
{
    struct weftd *w = arg;
    out_history(w->out, f);
}

static struct fab_env fab_env(struct weftd *w)
{
    return (struct fab_env){.loop = w->loop,
                            .pool = w->pool,
                            .db = w->db,
                            .alarms = w->alarms,
                            .config = &w->config,
                            .api = &w->api,
                            .swept = on_swept,
                            .snapshot = on_snapshot,
                            .history = on_history,
                            .arg = w};
}

static int open_fabrics(struct weftd *w, struct err *e)
{
    struct fab_env env = fab_env(w);
    const struct config_fabric *list = w->config.fabrics.item;
    unsigned n = w->args.offline ? 1 : (unsigned)w->config.fabrics.n;

    w->fab = xcalloc(n, sizeof(struct fab *));
    w->api_fabric = xcalloc(n, sizeof(struct api_fabric *));
    for (unsigned i = 0; i < n; i++) {
        struct fab *f = w->args.offline ? fab_offline(&env, w->args.offline, e)
                                        : fab_new(&env, &list[i], w->args.once, e);
        if (f == NULL)
            return e->code ? e->code : -EIO;
        w->api_fabric[i] = fab_api(f);
        w->fab[w->num_fab++] = f;
    }
    return 0;
}

static int open_api(struct weftd *w, struct err *e)
{
    struct api_context c = {.loop = w->loop,
                            .pool = w->pool,
                            .db = w->db,
                            .fabric = w->api_fabric,
                            .num_fabrics = w->num_fab,
                            .alarms = w->alarms,
                            .notifier = out_notifier(w->out),
                            .metrics_guilbaults = w->config.metrics_compat == CONFIG_METRICS_GUILBAULTS,
                            .started_wall_ns = wall_now_ns()};
    struct api_opts o = {.address = w->config.http_address,
                         .port = w->args.offline ? 0 : (int)w->config.http_port,
                         .socket = w->config.socket[0] ? w->config.socket : NULL};
    w->api = api_new(&c, &o, e);
    return w->api != NULL ? 0 : e->code ? e->code : -EIO;
}

static void close_all(struct weftd *w)
{
    notify_stopping();
    for (int i = 0; i < 3; i++)
        if (w->sig[i] != NULL)
            loop_signal_free(w->sig[i]);
    notify_done(&w->notify);
    api_free(w->api);
    w->api = NULL;
    pool_free(w->pool); // before the managers: no job may come back to them
    out_free(w->out);
    w->out = NULL;
    for (unsigned i = 0; i < w->num_fab; i++)
        fab_free(w->fab[i]);
    free(w->fab);
    free(w->api_fabric);
    alarms_free(w->alarms);
    if (w->db != NULL)
        db_close(w->db);
    held_done(&w->held);
    loop_free(w->loop);
    log_flush();
    remove_temp_state(w);
    arena_free(w->arena);
}

static int dump_once(const struct weftd *w, struct err *e)
{
    const struct sm *sm = fab_sm(w->fab[0]);
    return dump_all(sm_fabric(sm), sm_tables(sm), w->args.dump_lft, w->args.dump_subnet, e);
}

static int run_once(struct weftd *w)
{
    struct err e = {0};
    int rc;

    w->once = (struct once){.loop = w->loop, .began = loop_now_precise(w->loop)};
    if (open_fabrics(w, &e) != 0) {
        w->once.err = e;
    } else {
        loop_run(w->loop);
        if (!w->once.over)
            err_set(&w->once.err, -ECANCELED, "", "stopped by a signal before the fabric was up");
    }
    if (w->once.ok && (rc = dump_once(w, &e)) != 0) {
        w->once.ok = false;
        w->once.err = e;
    }
    const struct config_fabric *cf = w->config.fabrics.item;
    rc = once_print(&w->once, w->num_fab ? w->fab[0] : NULL, cf->simulate[0] ? cf->simulate : cf->name,
                    stdout);
    if (rc != 0) {
        err_set(&e, rc, "stdout", "the result cannot be written (%s)", strerror(-rc));
        return complain(&e, 1);
    }
    return w->once.ok ? 0 : 1;
}

static void on_alarm_event(void *arg, const char *fabric, const char *kind, const char *severity,
                           const char *subject, const char *text, const char *data)
{
    struct weftd *w = arg;
    uint64_t id = db_event_add(w->db, &(struct db_event){.wall_ns = wall_now_ns(),
                                                         .fabric = fabric,
                                                         .kind = kind,
                                                         .severity = severity,
                                                         .subject = subject,
                                                         .text = text,
                                                         .data = data});
    if (w->api != NULL)
        api_event(w->api, id);
    out_alarm_event(w->out, kind);
}

static void on_alarm_change(void *arg, const struct alarm_change *c)
{
    struct weftd *w = arg;
    out_alarm_change(w->out, c);
}

// A silence's focus is the language that the API and the command line have.
static bool on_alarm_covers(void *arg, const char *focus, const char *fabric, uint64_t node_guid,
                            uint8_t port)
{
    const struct weftd *w = arg;
    return w->api != NULL && api_focus_covers(w->api, focus, fabric, node_guid, port);
}

static void open_alarms(struct weftd *w)
{
    struct alarms_callbacks cb = {
        .arg = w, .event = on_alarm_event, .change = on_alarm_change, .covers = on_alarm_covers};
    if (w->args.offline == NULL)
        w->alarms = alarms_new(w->loop, w->db, &cb);
}

static int open_out(struct weftd *w, struct err *e)
{
    struct fab_env env = fab_env(w);
    if (w->args.offline != NULL)
        return 0;
    *e = (struct err){0}; // a port that is not there yet is tried again
    w->out = out_new(&env, w->fab, w->num_fab, e);
    return w->out != NULL ? 0 : e->code ? e->code : -EINVAL;
}

static int run_daemon(struct weftd *w)
{
    struct err e = {0};
    char http[100] = "off";
    open_alarms(w);
    if (open_fabrics(w, &e) != 0 || open_out(w, &e) != 0 || open_api(w, &e) != 0)
        return complain(&e, 1);
    if (api_port(w->api) > 0)
        snprintf(http, sizeof(http), "%.80s:%d", w->config.http_address, api_port(w->api));
    log_notice("ready", "version=" WEFT_VERSION " socket=\"%s\" http=%s", w->config.socket, http);
    loop_timer_init(&w->prune, w->loop, "daemon", prune_events, w);
    prune_events(w);
    notify_start(&w->notify, w->loop);
    loop_run(w->loop);
    loop_timer_cancel(&w->prune);
    return 0;
}

// Where a caller closed the standard streams, a database or socket must not get their numbers.
static void keep_standard_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd > STDERR_FILENO)
        close(fd);
}

// Event streams and their sockets: as many descriptors as we may have.
static void raise_nofile(void)
{
    struct rlimit r;
    if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
        r.rlim_cur = r.rlim_max < 65536 ? r.rlim_max : 65536;
        setrlimit(RLIMIT_NOFILE, &r);
    }
}

static int run(struct weftd *w)
{
    struct err e = {0};
    const struct config_fabric *first = w->config.fabrics.item;
    bool virtual_time =
        w->config.sim_time == CONFIG_SIM_VIRTUAL && w->config.fabrics.n == 1 && first->simulate[0] != 0;

    raise_nofile();
    w->loop = loop_new(virtual_time ? LOOP_VIRTUAL : LOOP_REAL);
    held_watch(&w->held, w->loop);
    w->pool = pool_new(w->loop, 0);
    w->sig[0] = loop_signal_new(w->loop, SIGTERM, on_terminate, w);
    w->sig[1] = loop_signal_new(w->loop, SIGINT, on_terminate, w);
    w->sig[2] = loop_signal_new(w->loop, SIGHUP, on_hangup, w);
    if (open_db(w, &e) != 0)
        return complain(&e, 1);
    return w->args.once ? run_once(w) : run_daemon(w);
}

int main(int argc, char **argv)
{
    static struct weftd w;
    struct err e = {0};
    int status;

    keep_standard_streams();
    signal(SIGPIPE, SIG_IGN);
    if (args_parse(argc, argv, &w.args, &status))
        return fflush(stdout) == 0 ? status : 1;
    if (w.args.print_fabric != NULL) {
        status = dump_print(w.args.print_fabric, w.args.offline, &e);
        return status == 0 ? 0 : complain(&e, status == -EINVAL ? 2 : 1);
    }
    w.arena = arena_new();
    if (config_load(&w.config, w.arena, w.args.config, &e) != 0 ||
        apply_sets(&w, &w.config, w.arena, &e) != 0)
        return complain(&e, 2); // wrong words: systemd does not try again
    if (apply_args(&w, &w.config, w.arena, &e) != 0)
        return complain(&e, 2);
    if (w.args.check) {
        if (w.args.print)
            opt_dump(config_rows, &w.config, stdout);
        return 0;
    }
    if (make_temp_state(&w, &e) != 0)
        return complain(&e, 1);
    log_set_level((enum log_level)w.config.log_level);
    status = run(&w);
    close_all(&w);
    return status;
}
