// SPDX-License-Identifier: Apache-2.0
#include "api/metrics_own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/api_priv.h"
#include "api/render_loop.h"
#include "db/series.h"
#include "lib/guid.h"
#include "lib/xalloc.h"
#include "mad/mad.h"
#include "telemetry/notify.h"
#include "telemetry/remote_write.h"
#include "telemetry/telemetry.h"

#define SHOWN_MAX 10000 // on the page, the worst first

struct own {
    struct metrics_page *p;
    struct api *a;
    struct buf labels;
};

static void gauge(struct own *o, const char *name, const char *help)
{
    metrics_family(o->p, name, METRIC_GAUGE, help);
}

static void counter(struct own *o, const char *name, const char *help)
{
    metrics_family(o->p, name, METRIC_COUNTER, help);
}

static void put(struct own *o, double v)
{
    metrics_sample_double(o->p, o->labels.data, o->labels.len, v);
}

static void put_count(struct own *o, uint64_t v)
{
    metrics_sample(o->p, o->labels.data, o->labels.len, v);
}

static void no_label(struct own *o)
{
    buf_clear(&o->labels);
}

static void label(struct own *o, const char *name, const char *value)
{
    metrics_label(&o->labels, name, value);
}

static void of_fabric(struct own *o, const struct api_fabric *f)
{
    no_label(o);
    label(o, "fabric", f->name);
}

#define EACH_FABRIC(o, f)                                                                                    \
    for (unsigned i_ = 0; i_ < (o)->a->c.num_fabrics; i_++)                                                  \
        for (const struct api_fabric *f = (o)->a->c.fabric[i_]; f != NULL; f = NULL)

// --- the process ---

static double resident_bytes(void)
{
    unsigned long total, resident;
    FILE *f = fopen("/proc/self/statm", "r");
    int n = f != NULL ? fscanf(f, "%lu %lu", &total, &resident) : 0;
    if (f != NULL)
        fclose(f);
    return n == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) : 0;
}

static void process(struct own *o)
{
    metrics_family(o->p, "weft_build_info", METRIC_INFO, "The version that runs");
    no_label(o);
    label(o, "version", WEFT_VERSION);
    put(o, 1);
    no_label(o);
    gauge(o, "process_start_time_seconds", "When weftd was started, since 1970");
    put(o, (double)o->a->c.started_wall_ns / 1e9);
    counter(o, "process_cpu_seconds_total", "Processor time of weftd");
    put(o, (double)cpu_now_ns() / 1e9);
    gauge(o, "process_resident_memory_bytes", "Memory of weftd");
    put(o, resident_bytes());
}

static void loop_areas(struct own *o)
{
    struct loop_area_stats s[64];
    size_t n = loop_stats(o->a->c.loop, s, 64);
    if (n > 64)
        n = 64;
    for (unsigned what = 0; what < 2; what++) {
        if (what == 0)
            counter(o, "weft_loop_seconds_total", "Time of the loop's thread, by area");
        else
            counter(o, "weft_loop_slow_callbacks_total", "Callbacks of more than 10 ms, by area");
        for (size_t i = 0; i < n; i++) {
            no_label(o);
            label(o, "area", s[i].area);
            if (what == 0)
                put(o, (double)s[i].total_ns / 1e9);
            else
                put_count(o, s[i].slow);
        }
    }
}

static void loop_longest_ones(struct own *o)
{
    static struct loop_long c[LOOP_ROWS_MAX]; // the loop's alone
    struct loop_area_stats s[LOOP_AREAS_MAX];
    size_t areas = loop_stats(o->a->c.loop, s, LOOP_AREAS_MAX);
    size_t n = loop_longest(o->a->c.loop, c, LOOP_ROWS_MAX);

    gauge(o, "weft_loop_longest_callback_seconds",
          "The longest callback of the last minute or two, by area; 0: less than 1 ms");
    for (size_t i = 0; i < areas && i < LOOP_AREAS_MAX; i++) {
        int64_t ns = 0;
        for (size_t k = 0; k < n && k < LOOP_ROWS_MAX; k++)
            if (strcmp(c[k].area, s[i].area) == 0 && c[k].recent_ns > ns)
                ns = c[k].recent_ns;
        no_label(o);
        label(o, "area", s[i].area);
        put(o, mono_seconds(ns));
    }
}

// --- the subnet manager ---

static void fabrics(struct own *o)
{
    struct sm_status st;
    gauge(o, "weft_fabric_up", "1 when the fabric is up: the last bring-up was good");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (f->sm != NULL)
            sm_get_status(f->sm, &st);
        put(o, f->sm != NULL && st.up);
    }
    gauge(o, "weft_sm_master", "1 when weft is the fabric's master subnet manager");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (f->sm != NULL)
            sm_get_status(f->sm, &st);
        put(o, f->sm != NULL && st.state == SM_MASTER);
    }
}

static void sizes(struct own *o)
{
    static const char *const what[] = {"weft_switches", "weft_adapters", "weft_links"};
    static const char *const help[] = {"Switches that are there", "Adapters and routers that are there",
                                       "Links between them that are up"};
    for (unsigned k = 0; k < 3; k++) {
        gauge(o, what[k], help[k]);
        EACH_FABRIC(o, f)
        {
            const struct fabric *s = f->sm != NULL ? sm_fabric(f->sm) : f->offline;
            of_fabric(o, f);
            if (s != NULL)
                put_count(o, k == 0 ? s->num_switches : k == 1 ? s->num_end_nodes : s->num_links);
        }
    }
}

static void sm_sweeps(struct own *o)
{
    struct sm_status st;
    const struct sm_sweep *s;
    counter(o, "weft_sweeps_total", "Sweeps of the subnet manager");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (f->sm == NULL)
            continue;
        sm_get_status(f->sm, &st);
        put_count(o, st.sweeps);
    }
    gauge(o, "weft_sweep_duration_seconds", "How long the last sweep of the subnet manager took");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (f->sm != NULL && (s = sm_history(f->sm, 0)) != NULL)
            put(o, mono_seconds(s->ns));
    }
    gauge(o, "weft_reroute_duration_seconds",
          "From the trap, or the light sweep, to the last table block, the last time");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        for (unsigned i = 0; f->sm != NULL && (s = sm_history(f->sm, i)) != NULL; i++)
            if (s->reaction_ns > 0) {
                put(o, mono_seconds(s->reaction_ns));
                break;
            }
    }
}

static void mad_labels(struct own *o, const struct api_fabric *f, const struct mad_count *c)
{
    const char *m = mad_method_name(c->method), *a = mad_attr_name(c->mgmt_class, c->attr_id);
    char text[16];
    of_fabric(o, f);
    snprintf(text, sizeof(text), "0x%04x", c->attr_id);
    label(o, "attribute", a != NULL ? a : text);
    snprintf(text, sizeof(text), "0x%02x", c->method);
    label(o, "method", m != NULL ? m : text);
    snprintf(text, sizeof(text), "%u", c->mgmt_class);
    label(o, "class", text);
}

static void mads(struct own *o)
{
    static const struct {
        const char *name, *help;
        size_t at;
    } row[] = {
        {"weft_mads_sent_total", "MADs sent, repeats included", offsetof(struct mad_count, sent)},
        {"weft_mad_timeouts_total", "Requests that stayed without an answer",
         offsetof(struct mad_count, timeouts)},
        {"weft_mad_retries_total", "Repeats", offsetof(struct mad_count, retries)},
        {"weft_mads_refused_total", "Answers with an error status", offsetof(struct mad_count, refused)},
    };
    static struct mad_count c[300]; // the loop's alone
    for (size_t k = 0; k < sizeof(row) / sizeof(row[0]); k++) {
        counter(o, row[k].name, row[k].help);
        EACH_FABRIC(o, f)
        {
            size_t n = f->engine != NULL ? mad_engine_counts(f->engine, c, 300) : 0;
            for (size_t i = 0; i < n && i < 300; i++) {
                if (c[i].requests == 0 && c[i].sent == 0)
                    continue;
                mad_labels(o, f, &c[i]);
                put_count(o, *(const uint64_t *)((const char *)&c[i] + row[k].at));
            }
        }
    }
}

// --- counters ---

struct count { // a counter of a status
    const char *name, *help;
    size_t at;
};

// get: false when the fabric has no such status.
static void counts(struct own *o, const struct count *row, size_t num, void *status,
                   bool (*get)(const struct api_fabric *f, void *status))
{
    for (size_t k = 0; k < num; k++) {
        counter(o, row[k].name, row[k].help);
        EACH_FABRIC(o, f)
        {
            of_fabric(o, f);
            if (get(f, status))
                put_count(o, *(const uint64_t *)((const char *)status + row[k].at));
        }
    }
}

static bool get_tele(const struct api_fabric *f, void *status)
{
    if (f->tele != NULL)
        tele_get_status(f->tele, status);
    return f->tele != NULL;
}

static void tele_counts(struct own *o)
{
    static const struct count row[] = {
        {"weft_telemetry_sweeps_total", "Sweeps of counters", offsetof(struct tele_status, sweeps)},
        {"weft_telemetry_late_sweeps_total", "Sweeps of counters that began later than they should",
         offsetof(struct tele_status, late)},
        {"weft_telemetry_resets_total", "Times that somebody else, or a reboot, had cleared counters",
         offsetof(struct tele_status, resets)},
        {"weft_telemetry_saturated_total", "Times that a counter stood at its greatest value",
         offsetof(struct tele_status, saturated)},
        {"weft_telemetry_nonsense_total", "Answers that cannot be", offsetof(struct tele_status, nonsense)},
    };
    struct tele_status st;
    counts(o, row, sizeof(row) / sizeof(row[0]), &st, get_tele);
}

static void tele_sweep(struct own *o)
{
    struct tele_status st;
    gauge(o, "weft_telemetry_sweep_duration_seconds", "How long the last sweep of counters took");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (get_tele(f, &st) && st.sweeps > 0)
            put(o, mono_seconds(st.last_ns));
    }
    gauge(o, "weft_telemetry_last_sweep_timestamp_seconds",
          "When the last sweep of counters ended, since 1970");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (get_tele(f, &st) && st.sweeps > 0)
            put(o, (double)st.last_wall_ns / 1e9);
    }
    gauge(o, "weft_telemetry_ports", "Ports of the last sweep of counters, by whether they were read");
    EACH_FABRIC(o, f)
    {
        if (!get_tele(f, &st))
            continue;
        for (unsigned k = 0; k < 2; k++) {
            of_fabric(o, f);
            label(o, "read", k == 0 ? "yes" : "no");
            put_count(o, k == 0 ? st.read : st.unread);
        }
    }
    counter(o, "weft_telemetry_cpu_seconds_total",
            "Processor time of collecting, rates, health and congestion");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (get_tele(f, &st))
            put(o, (double)st.since_ns / 1e9);
    }
}

static void unread_devices(struct own *o)
{
    gauge(o, "weft_unread_device", "1 for each device that does not give its counters");
    EACH_FABRIC(o, f)
    {
        struct tele_unread_node *node = NULL;
        uint32_t n = f->tele != NULL ? tele_unread_nodes(f->tele, &node) : 0;
        for (uint32_t i = 0; i < n && i < SHOWN_MAX; i++) {
            char guid[GUID_STR_SIZE];
            of_fabric(o, f);
            label(o, "guid", guid_str(node[i].guid, guid));
            label(o, "reason", tele_unread_name(node[i].why));
            put(o, 1);
        }
        free(node);
    }
}

static void links(struct own *o)
{
    gauge(o, "weft_link_states", "Links by state of health");
    EACH_FABRIC(o, f)
    {
        struct health_count c;
        if (f->tele == NULL)
            continue;
        tele_links(f->tele, &c);
        for (unsigned s = 0; s <= HEALTH_DOWN; s++) {
            of_fabric(o, f);
            label(o, "state", health_state_name((enum health_state)s));
            put_count(o, c.links[s]);
        }
    }
}

static bool get_totals(const struct api_fabric *f, struct congest_totals *ret)
{
    const struct congest *c = f->tele != NULL ? tele_congest(f->tele) : NULL;
    if (c != NULL)
        congest_totals(c, ret);
    return c != NULL;
}

static void congestion(struct own *o)
{
    struct congest_totals t;
    gauge(o, "weft_congestion_held_ports", "Ports that wait for somebody");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (get_totals(f, &t))
            put_count(o, t.held);
    }
    gauge(o, "weft_congestion_lost_bytes_per_second", "Data that all waiting ports could have carried");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (get_totals(f, &t))
            put(o, t.lost_bps);
    }
    gauge(o, "weft_congestion_root_lost_bytes_per_second",
          "Congestion trees: the port that others wait for, and what they lose by it");
    EACH_FABRIC(o, f)
    {
        const struct congest_tree *const *tree;
        const struct tele_table *table = f->tele != NULL ? tele_table(f->tele) : NULL;
        uint32_t n =
            table != NULL && tele_congest(f->tele) != NULL ? congest_trees(tele_congest(f->tele), &tree) : 0;
        for (uint32_t i = 0; i < n && i < 1000; i++) {
            char text[GUID_STR_SIZE];
            const struct tele_port *root = &table->port[tree[i]->root];
            of_fabric(o, f);
            label(o, "guid", guid_str(root->node_guid, text));
            snprintf(text, sizeof(text), "%u", root->num);
            label(o, "port", text);
            label(o, "kind", congest_kind_name(tree[i]->kind));
            snprintf(text, sizeof(text), "%llu", (unsigned long long)tree[i]->id);
            label(o, "tree", text);
            put(o, tree[i]->lost_bps);
        }
    }
}

// --- history ---

static bool get_series(const struct api_fabric *f, void *status)
{
    if (f->series != NULL)
        series_health(f->series, status);
    return f->series != NULL;
}

static void history_state(struct own *o)
{
    static const struct count row[] = {
        {"weft_history_sweeps_total", "Sweeps written to disk", offsetof(struct series_health, sweeps)},
        {"weft_history_left_out_total", "Sweeps that were not written",
         offsetof(struct series_health, left_out)},
    };
    struct series_health h;
    gauge(o, "weft_history_writing", "1 while counters are written to disk; 0: history pauses");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (get_series(f, &h))
            put(o, h.status == 0);
    }
    counts(o, row, sizeof(row) / sizeof(row[0]), &h, get_series);
    gauge(o, "weft_db_commit_seconds", "How long the last commit of counters took");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (get_series(f, &h))
            put(o, mono_seconds(h.last_commit_ns));
    }
}

static void history_size(struct own *o)
{
    static const char *const tier[SERIES_TIERS] = {"raw", "minute", "hour"};
    struct series_health h;
    gauge(o, "weft_history_bytes", "Size of the files of history, by tier");
    EACH_FABRIC(o, f)
    {
        if (!get_series(f, &h))
            continue;
        for (unsigned k = 0; k < SERIES_TIERS; k++) {
            of_fabric(o, f);
            label(o, "tier", tier[k]);
            put_count(o, h.bytes[k]);
        }
    }
    gauge(o, "weft_db_writing", "1 while meta.db takes what is written");
    no_label(o);
    if (o->a->c.db != NULL) {
        char text[200];
        put(o, db_health(o->a->c.db, text, sizeof(text)) == 0);
    }
}

// --- what goes out ---

static bool get_remote(const struct api_fabric *f, void *status)
{
    if (f->remote_write != NULL)
        remote_write_get_status(f->remote_write, status);
    return f->remote_write != NULL;
}

static void remote_counts(struct own *o)
{
    static const struct count row[] = {
        {"weft_remote_write_samples_total", "Samples that the receiver has taken",
         offsetof(struct remote_write_status, samples)},
        {"weft_remote_write_bytes_total", "Bytes of the requests taken",
         offsetof(struct remote_write_status, bytes)},
        {"weft_remote_write_requests_total", "Requests that the receiver has taken",
         offsetof(struct remote_write_status, requests)},
        {"weft_remote_write_retries_total", "Requests that failed and were or will be sent again",
         offsetof(struct remote_write_status, retries)},
        {"weft_remote_write_dropped_samples_total", "Samples that the receiver has refused",
         offsetof(struct remote_write_status, dropped)},
        {"weft_remote_write_repeated_samples_total", "Samples sent again that the receiver had already",
         offsetof(struct remote_write_status, had)},
        {"weft_remote_write_unnamed_samples_total", "Samples of ports that nobody knows, which are not sent",
         offsetof(struct remote_write_status, unnamed)},
    };
    struct remote_write_status st;
    counts(o, row, sizeof(row) / sizeof(row[0]), &st, get_remote);
}

static void remote_state(struct own *o)
{
    struct remote_write_status st;
    gauge(o, "weft_remote_write_lag_seconds", "Age of the oldest sample that waits to be sent; 0: none does");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (get_remote(f, &st))
            put(o, mono_seconds(st.lag_ns));
    }
    gauge(o, "weft_remote_write_failing", "1 while the receiver does not take what is sent");
    EACH_FABRIC(o, f)
    {
        of_fabric(o, f);
        if (get_remote(f, &st))
            put(o, st.failing);
    }
}

static void notifications(struct own *o)
{
    static const struct {
        const char *name, *help;
        size_t at;
    } row[] = {
        {"weft_notifications_sent_total", "Alerts and events that a target has taken",
         offsetof(struct notifier_status, sent)},
        {"weft_notifications_failed_total", "Loads that a target did not take; they are sent again",
         offsetof(struct notifier_status, failed)},
        {"weft_notifications_refused_total", "What a target will never take",
         offsetof(struct notifier_status, refused)},
        {"weft_notifications_dropped_total", "Events that were too old when a target took them again",
         offsetof(struct notifier_status, dropped)},
    };
    const struct notifier *n = o->a->c.notifier;
    struct notifier_status st;
    for (size_t k = 0; k <= sizeof(row) / sizeof(row[0]); k++) {
        bool last = k == sizeof(row) / sizeof(row[0]);
        if (last)
            gauge(o, "weft_notifications_failing", "1 while a target does not take what is sent");
        else
            counter(o, row[k].name, row[k].help);
        for (unsigned i = 0; i < notifier_targets(n); i++) {
            notifier_get_status(n, i, &st);
            no_label(o);
            label(o, "target", st.target);
            label(o, "kind", st.kind);
            put_count(o, last ? st.failing : *(const uint64_t *)((const char *)&st + row[k].at));
        }
    }
}

// --- alarms ---

static void alarm_totals(struct own *o)
{
    struct alarms_count c;
    gauge(o, "weft_alarms", "Alarms that are active, by severity, without silenced ones");
    EACH_FABRIC(o, f)
    {
        alarms_count(o->a->c.alarms, f->name, &c);
        const uint32_t n[] = {[ALARM_INFO] = c.info,
                              [ALARM_MINOR] = c.minor,
                              [ALARM_MAJOR] = c.major,
                              [ALARM_CRITICAL] = c.critical};
        for (unsigned s = ALARM_INFO; s <= ALARM_CRITICAL; s++) {
            of_fabric(o, f);
            label(o, "severity", alarm_severity_name((enum alarm_severity)s));
            put_count(o, n[s]);
        }
    }
}

static void alarm_sample(struct own *o, const struct alarm *m)
{
    char id[24];
    no_label(o);
    snprintf(id, sizeof(id), "%llu", (unsigned long long)m->id);
    label(o, "id", id);
    label(o, "fabric", m->fabric);
    label(o, "rule", m->rule->id);
    label(o, "name", m->rule->name);
    label(o, "severity", alarm_severity_name(m->severity));
    label(o, "subject", m->subject);
    label(o, "place", m->place);
    label(o, "acked", m->acked ? "yes" : "no");
    label(o, "silenced", m->silence != 0 ? "yes" : "no");
    snprintf(id, sizeof(id), "%llu", (unsigned long long)(m->root != 0 ? m->root : m->id));
    label(o, "story", id);
    label(o, "follows", m->follows != NULL ? m->follows->id : "");
    put(o, 1);
}

// A page may have thousands: a slice a turn, those that were the worst when it began.
struct metrics_alarms {
    struct own own;
    uint64_t *id;
    uint32_t n, at;
};

static struct metrics_alarms *alarms(struct own *o)
{
    const struct alarm *m;
    uint32_t n = alarms_list(o->a->c.alarms, &m);
    struct metrics_alarms *x = xcalloc(1, sizeof(*x));
    x->own = (struct own){.p = o->p, .a = o->a};
    x->id = xcalloc((n < SHOWN_MAX ? n : SHOWN_MAX) + 1ul, sizeof(*x->id));
    for (uint32_t i = 0; i < n && x->n < SHOWN_MAX; i++)
        if (m[i].active)
            x->id[x->n++] = m[i].id;
    alarm_totals(o);
    gauge(o, "weft_alarm_active", "1 for each alarm whose condition holds, the worst 10000");
    return x;
}

bool metrics_alarms_some(struct metrics_alarms *x, struct metrics_page *p, uint32_t look_every, mono_t until)
{
    x->own.p = p;
    for (; x->at < x->n; x->at++) {
        const struct alarm *m = alarm_by_id(x->own.a->c.alarms, x->id[x->at]);
        if (m != NULL && m->active)
            alarm_sample(&x->own, m);
        if (x->at % look_every == 0 && mono_sub(mono_now(), until) >= 0) {
            x->at++;
            return false;
        }
    }
    return true;
}

void metrics_alarms_free(struct metrics_alarms *x)
{
    if (x == NULL)
        return;
    buf_done(&x->own.labels);
    free(x->id);
    free(x);
}

struct metrics_alarms *metrics_own(struct metrics_page *p, struct api *a)
{
    struct own o = {.p = p, .a = a};
    process(&o);
    loop_areas(&o);
    loop_longest_ones(&o);
    fabrics(&o);
    sizes(&o);
    sm_sweeps(&o);
    mads(&o);
    tele_counts(&o);
    tele_sweep(&o);
    unread_devices(&o);
    links(&o);
    congestion(&o);
    history_state(&o);
    history_size(&o);
    remote_counts(&o);
    remote_state(&o);
    if (a->c.notifier != NULL)
        notifications(&o);
    struct metrics_alarms *x = a->c.alarms != NULL ? alarms(&o) : NULL; // the last family
    buf_done(&o.labels);
    return x;
}
