// SPDX-License-Identifier: Apache-2.0
// weft status: one screen of everything, worst first, the last line says what to do next.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "lib/when.h"

#define WAIT_DEFAULT 600
#define POLL_SECONDS 0.2
#define LABEL 11 // columns before what a line says

static const struct field fabric_fields[] = {
    {.key = "name"},
    {.key = "state"},
    {.key = "transport"},
    {.key = "generation"},
    {.key = "nodes"},
    {.key = "switches"},
    {.key = "cas"},
    {.key = "routers"},
    {.key = "hosts"},
    {.key = "links"},
    {.key = "sm_state", .path = "sm.state"},
    {.key = "sm_lid", .path = "sm.lid"},
    {.key = "engine", .path = "routing.engine"},
    {.key = "verified", .path = "routing.verified"},
    {.key = "pairs", .path = "routing.pairs"},
    {.key = "disconnected", .path = "routing.disconnected"},
    {.key = "max_hops", .path = "routing.max_hops"},
    {.key = "sweeps"},
    {.key = "last_sweep"},
    {.key = "errors", .path = "findings.error"},
    {.key = "warnings", .path = "findings.warning"},
    {.key = "infos", .path = "findings.info"},
    {.key = "error", .path = "error.text"},
    {.key = "ports_read", .path = "telemetry.read"},
    {.key = "ports_unread", .path = "telemetry.unread"},
    {.key = "alarms_critical", .path = "telemetry.alarms.critical"},
    {.key = "alarms_major", .path = "telemetry.alarms.major"},
    {.key = "alarms_minor", .path = "telemetry.alarms.minor"},
    {0},
};

static bool is_well(const char *state)
{
    return strcmp(state, "up") == 0 || strcmp(state, "standby") == 0 || strcmp(state, "offline") == 0;
}

// Up as far as is known: the sweeps since then fail.
static bool is_stale(json_t *f)
{
    return strcmp(js_str(f, "state"), "up") == 0 && json_is_object(json_object_get(f, "error"));
}

static bool fabric_ok(json_t *f)
{
    return is_well(js_str(f, "state")) && !is_stale(f) && js_int(f, "findings.error") == 0 &&
           js_int(f, "telemetry.alarms.critical") + js_int(f, "telemetry.alarms.major") == 0;
}

static void count_of(struct out *o, long long n, const char *one, const char *many)
{
    struct buf b = {0};
    text_count(&b, n);
    out_printf(o, "%s %s", b.data, n == 1 ? one : many);
    buf_done(&b);
}

// "838 of 1,024 links": of those that the blueprint has, where some are away.
static void count_meant(struct out *o, json_t *f, const char *key, const char *one, const char *many)
{
    long long n = js_int(f, key), meant = js_int(json_object_get(f, "meant"), key);
    struct buf b = {0};
    if (meant <= n) {
        count_of(o, n, one, many);
        return;
    }
    text_count(&b, n);
    out_paint(o, COLOUR_YELLOW, "%s of ", b.data);
    buf_done(&b);
    count_of(o, meant, one, many);
}

static void head_line(struct out *o, json_t *f)
{
    const char *state = js_str(f, "state");
    char upper[32] = "";
    enum colour c = !is_well(state) || is_stale(f)      ? COLOUR_RED
                    : js_int(f, "findings.error") > 0   ? COLOUR_RED
                    : js_int(f, "findings.warning") > 0 ? COLOUR_YELLOW
                                                        : COLOUR_GREEN;
    if (strcmp(state, "bringing-up") == 0)
        c = COLOUR_YELLOW;
    for (size_t i = 0; state[i] && i + 1 < sizeof(upper); i++) {
        upper[i] = state[i] >= 'a' && state[i] <= 'z' ? (char)(state[i] - 'a' + 'A') : state[i];
        upper[i + 1] = 0;
    }
    out_paint(o, COLOUR_BOLD, "%s", js_str(f, "name"));
    out_printf(o, "  InfiniBand  ");
    out_paint(o, c, "%s%s", upper, is_stale(f) ? " (as of its last good sweep)" : "");
    if (js_int(f, "nodes") > 0) {
        out_printf(o, "  ");
        count_meant(o, f, "switches", "switch", "switches");
        out_printf(o, "  ");
        count_meant(o, f, "cas", "adapter (", "adapters (");
        count_of(o, js_int(f, "hosts"), "host)", "hosts)");
        out_printf(o, "  ");
        count_meant(o, f, "links", "link", "links");
    }
    out_wrap(o, LABEL);
}

static void label(struct out *o, const char *text)
{
    out_printf(o, "  %-9s", text);
}

static void age_of(struct out *o, const char *when)
{
    struct buf age = {0};
    int64_t at;
    if (when_parse(when, &at) != 0)
        return;
    text_age(&age, (wall_now_ns() - at) / MONO_S);
    out_printf(o, "%s ago", age.data);
    buf_done(&age);
}

static void sm_line(struct out *o, json_t *f)
{
    bool managed = json_is_object(json_object_get(f, "sm"));
    label(o, managed ? "manager" : "source");
    if (managed) {
        out_printf(o, "%s", js_str(f, "sm.state"));
        if (js_int(f, "sm.lid") > 0)
            out_printf(o, ", LID %lld", js_int(f, "sm.lid"));
        if (js_true(f, "sm.sweeping"))
            out_printf(o, ", sweeping: %s", js_str(f, "sm.phase"));
        out_printf(o, ", ");
    }
    out_printf(o, "%s", js_str(f, "transport"));
    if (js_int(f, "exceptions") > 0)
        out_paint(o, COLOUR_YELLOW, ", %lld not answering", js_int(f, "exceptions"));
    out_wrap(o, LABEL);
}

// The others that could run the fabric, or do.
static void manager_lines(struct out *o, json_t *f)
{
    json_t *m;
    size_t i;

    json_array_foreach(json_object_get(f, "managers"), i, m)
    {
        bool master = strcmp(js_str(m, "state"), "master") == 0;
        label(o, "other SM");
        out_paint(o, master && strcmp(js_str(f, "sm.state"), "master") == 0 ? COLOUR_RED : COLOUR_NONE, "%s",
                  js_str(m, "state"));
        out_printf(o, ", priority %lld: ranks %s weft (%lld)%s, ", js_int(m, "priority"),
                   js_true(m, "above") ? "above" : "below", js_int(f, "sm.priority"),
                   js_true(m, "other_key") ? ", another SM_Key" : "");
        if (js_str(m, "node")[0] != 0)
            out_printf(o, "%s[%lld], ", js_str(m, "node"), js_int(m, "port"));
        if (js_int(m, "lid") > 0)
            out_printf(o, "LID %lld, ", js_int(m, "lid"));
        out_printf(o, "%s, ", js_str(m, "guid"));
        if (js_int(m, "missed") > 0)
            out_paint(o, COLOUR_YELLOW, "%lld questions unanswered, ", js_int(m, "missed"));
        out_printf(o, "heard ");
        age_of(o, js_str(m, "last_heard"));
        out_wrap(o, LABEL);
    }
}

static void route_line(struct out *o, json_t *f)
{
    json_t *r = json_object_get(f, "routing");
    if (!json_is_object(r) || js_str(r, "engine")[0] == 0)
        return;
    label(o, "routes");
    out_printf(o, "%s engine", js_str(r, "engine"));
    if (js_str(r, "why")[0] != 0)
        out_printf(o, " (%s)", js_str(r, "why"));
    out_printf(o, ", ");
    if (js_true(r, "verified"))
        out_paint(o, COLOUR_GREEN, "proved");
    else
        out_paint(o, COLOUR_RED, "NOT PROVED");
    out_printf(o, ": ");
    count_of(o, js_int(r, "pairs"), "pair", "pairs");
    out_printf(o, ", %lld hops at most", js_int(r, "max_hops"));
    if (js_int(r, "lanes") > 1)
        out_printf(o, ", %lld virtual lanes", js_int(r, "lanes"));
    if (js_int(r, "lmc") > 0)
        out_printf(o, ", %lld LIDs for each adapter port (LMC %lld)", 1ll << js_int(r, "lmc"),
                   js_int(r, "lmc"));
    if (js_int(r, "disconnected") > 0) {
        out_printf(o, ", ");
        count_of(o, js_int(r, "disconnected"), "disconnected", "disconnected");
    }
    out_wrap(o, LABEL);
    if (js_str(r, "counter_example")[0] != 0) {
        label(o, "");
        out_paint(o, COLOUR_RED, "%s", js_str(r, "counter_example"));
        out_wrap(o, LABEL);
    }
}

// 0.9983, or 18,930 flows.
static void figure(struct out *o, const char *before, json_t *v)
{
    struct buf b = {0};
    text_figure(&b, json_number_value(v));
    out_printf(o, "%s%s", before, b.data);
    buf_done(&b);
}

static bool quality_figure(struct out *o, const char *name, const char *key, json_t *r, bool first)
{
    json_t *now = json_object_get(json_object_get(r, "quality"), key);
    json_t *ideal = json_object_get(json_object_get(r, "quality_ideal"), key);
    json_t *last = json_object_get(json_object_get(r, "quality_last"), key);
    if (!json_is_number(now))
        return false;
    out_printf(o, "%s%s", first ? "" : ", ", name);
    figure(o, " ", now);
    bool other = json_is_number(ideal) && json_number_value(ideal) != json_number_value(now);
    if (other)
        figure(o, " (ideal ", ideal);
    if (json_is_number(last) && json_number_value(last) != json_number_value(now)) {
        figure(o, other ? ", before " : " (before ", last);
        other = true;
    }
    out_printf(o, other ? ")" : "");
    return true;
}

// Mean bandwidth of a flow, and the fullest cable; where that is not the ideal, or was another before, so
// too.
static void quality_line_of(struct out *o, json_t *f)
{
    static const char *const figures[][2] = {{"same_rail_shift", "along rails"},
                                             {"ring", "ring"},
                                             {"shift", "shifts"},
                                             {"alltoall", "all-to-all"},
                                             {"alltoall_max", "flows on its fullest cable"}};
    json_t *r = json_object_get(f, "routing");
    bool any = false;
    if (!json_is_object(json_object_get(r, "quality")))
        return;
    label(o, "quality");
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++)
        any |= quality_figure(o, figures[i][1], figures[i][0], r, !any);
    if (!any)
        out_printf(o, "no hosts to send");
    out_wrap(o, LABEL);
}

// Nothing while it is off.
static void adaptive_line(struct out *o, json_t *f)
{
    json_t *a = json_object_get(f, "adaptive");
    if (!json_is_object(a))
        return;
    label(o, "adaptive");
    if (strcmp(js_str(a, "mode"), "refused") == 0) {
        out_paint(o, COLOUR_YELLOW, "refused on hardware (weft finding)");
        out_wrap(o, LABEL);
        return;
    }
    count_of(o, js_int(a, "enabled"), "", "");
    out_printf(o, "of ");
    count_of(o, js_int(a, "switches"), "switch", "switches");
    out_printf(o, ", ");
    count_of(o, js_int(a, "supported"), "has it", "have it");
    if (js_true(a, "proved")) {
        out_printf(o, ", ");
        out_paint(o, COLOUR_GREEN, "proved");
        out_printf(o, ": %.1f ports to choose from for %.0f %% of entries, %lld groups at most",
                   js_num(a, "choices"), 100.0 * js_num(a, "adaptive") / (js_num(a, "entries") + 1e-9),
                   js_int(a, "most_groups"));
    } else if (js_str(a, "why")[0] != 0) {
        out_printf(o, ", ");
        out_paint(o, COLOUR_RED, "none: %s", js_str(a, "why"));
    }
    if (js_int(a, "left") > 0)
        out_paint(o, COLOUR_YELLOW, ", %lld left alone (weft route adaptive)", js_int(a, "left"));
    out_wrap(o, LABEL);
}

// What happened last and what was done about it.
static void change_line(struct out *o, json_t *f)
{
    json_t *c = json_object_get(f, "last_change");
    double after = js_num(c, "reaction_seconds");

    if (!json_is_object(c))
        return;
    label(o, "change");
    age_of(o, js_str(c, "at"));
    out_printf(o, ": %s; ", js_str(c, "text"));
    if (js_true(c, "full"))
        out_printf(o, "the whole fabric read, ");
    else if (js_int(c, "devices") > 0) {
        count_of(o, js_int(c, "devices"), "device", "devices");
        out_printf(o, " read, ");
    }
    if (js_int(c, "lft_blocks_set") > 0)
        count_of(o, js_int(c, "lft_blocks_set"), "block written, ", "blocks written, ");
    else
        out_printf(o, "no table written, ");
    if (js_int(c, "paths_moved") > 0)
        count_of(o, js_int(c, "paths_moved"), "path moved, ", "paths moved, ");
    if (after > 0)
        out_printf(o, "tables right after %.*f %s, ", after < 0.01, after < 1 ? after * 1e3 : after,
                   after < 1 ? "ms" : "s");
    count_of(o, js_int(c, "mads"), "MAD", "MADs");
    out_printf(o, " (weft sweep %lld)", js_int(c, "sweep"));
    out_wrap(o, LABEL);
}

static void sweep_line(struct out *o, json_t *s)
{
    struct buf age = {0};
    int64_t began;
    size_t i;
    json_t *p;

    if (s == NULL)
        return;
    label(o, "sweep");
    out_printf(o, "#%lld (%s)", js_int(s, "id"), js_str(s, "cause"));
    if (when_parse(js_str(s, "began_at"), &began) == 0) {
        text_age(&age, (wall_now_ns() - began) / MONO_S - (int64_t)js_num(s, "seconds"));
        out_printf(o, " %s ago", age.data);
        buf_done(&age);
    }
    out_printf(o, ", ");
    if (!js_true(s, "ok"))
        out_paint(o, COLOUR_RED, "failed, ");
    out_printf(o, "%.3f s, ", js_num(s, "seconds"));
    count_of(o, js_int(s, "mads"), "MAD", "MADs");
    if (js_int(s, "retries") > 0)
        out_printf(o, ", %lld retries", js_int(s, "retries"));
    json_array_foreach(json_object_get(s, "phases"), i, p)
        out_printf(o, "%s%s %.3f", i ? ", " : ": ", js_str(p, "name"), js_num(p, "seconds"));
    out_wrap(o, LABEL);
}

// What is heard and looked at between sweeps.
static void watch_line(struct out *o, json_t *f)
{
    json_t *traps = json_object_get(f, "traps"), *audit = json_object_get(f, "audit"), *t;
    size_t i;

    if (!json_is_object(traps))
        return;
    label(o, "watch");
    count_of(o, js_int(f, "light_sweeps"), "light sweep, ", "light sweeps, ");
    count_of(o, js_int(traps, "received"), "trap", "traps");
    json_array_foreach(json_object_get(traps, "by_number"), i, t)
        out_printf(o, "%s%lld: %lld", i ? ", " : " (", js_int(t, "number"), js_int(t, "count"));
    out_printf(o, "%s", i > 0 ? ")" : "");
    if (js_int(traps, "flooding") > 0) {
        out_printf(o, ", ");
        out_paint(o, COLOUR_YELLOW, "%lld flooding", js_int(traps, "flooding"));
    }
    if (js_true(audit, "running"))
        out_printf(o, ", audit %lld of %lld devices", js_int(audit, "devices_done"),
                   js_int(audit, "devices"));
    if (js_int(audit, "rounds") > 0) {
        out_printf(o, js_true(audit, "running") ? " (last one " : ", audit ");
        age_of(o, js_str(audit, "last_round"));
        out_printf(o, js_true(audit, "running") ? ")" : "");
    }
    if (js_int(audit, "drifted") > 0) {
        out_printf(o, ", ");
        out_paint(o, COLOUR_YELLOW, "%lld had drifted", js_int(audit, "drifted"));
    }
    out_wrap(o, LABEL);
}

static void sa_line(struct out *o, json_t *f)
{
    json_t *sa = json_object_get(f, "sa");
    if (!json_is_object(sa) || js_int(sa, "requests") == 0)
        return;
    label(o, "SA");
    count_of(o, js_int(sa, "groups"), "group, ", "groups, ");
    count_of(o, js_int(sa, "members"), "member; ", "members; ");
    count_of(o, js_int(sa, "requests"), "request", "requests");
    if (js_int(sa, "refused") > 0)
        out_printf(o, ", %lld refused", js_int(sa, "refused"));
    if (js_int(sa, "waiting") > 0)
        out_printf(o, ", %lld waiting", js_int(sa, "waiting"));
    if (js_int(sa, "answers_most_a_second") > 0) {
        out_printf(o, ", at most ");
        count_of(o, js_int(sa, "answers_most_a_second"), "answer a second", "answers a second");
    }
    out_wrap(o, LABEL);
}

static void finding_line(struct out *o, json_t *f)
{
    static const struct {
        const char *path, *one, *many;
        enum colour colour;
    } row[] = {{"findings.error", "error", "errors", COLOUR_RED},
               {"findings.warning", "warning", "warnings", COLOUR_YELLOW},
               {"findings.info", "info", "infos", COLOUR_NONE}};

    label(o, "findings");
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        long long n = js_int(f, row[i].path);
        out_paint(o, n ? row[i].colour : COLOUR_NONE, "%s%lld %s", i ? "  " : "", n,
                  n == 1 ? row[i].one : row[i].many);
    }
    if (js_int(f, "findings.error") + js_int(f, "findings.warning") > 0)
        out_printf(o, "   (weft finding)");
    out_wrap(o, LABEL);
}

static void counters_line(struct out *o, json_t *f)
{
    json_t *t = json_object_get(f, "telemetry");
    if (!json_is_object(t))
        return;
    label(o, "counters");
    if (js_str(t, "last_sweep")[0] == 0) {
        out_printf(o, "not read yet");
        out_wrap(o, LABEL);
        return;
    }
    out_printf(o, "last sweep ");
    age_of(o, js_str(t, "last_sweep"));
    out_printf(o, ", ");
    count_of(o, js_int(t, "read"), "of ", "of ");
    count_of(o, js_int(t, "ports"), "port read", "ports read");
    if (js_int(t, "unread") > 0)
        out_paint(o, COLOUR_YELLOW, ", %lld not answering (weft counters 'pma!=read')", js_int(t, "unread"));
    if (js_int(t, "held") > 0)
        out_printf(o, ", %lld held up (weft congestion)", js_int(t, "held"));
    if (js_str(t, "history")[0] != 0)
        out_paint(o, COLOUR_RED, ", history pauses: %s", js_str(t, "history"));
    out_wrap(o, LABEL);
}

// Alarms that nobody hears of.
static void notify_line(struct out *o, json_t *f)
{
    const char *why = js_str(f, "telemetry.notify");
    if (why[0] == 0)
        return;
    label(o, "notify");
    out_paint(o, COLOUR_RED, "%s", why);
    out_wrap(o, LABEL);
}

#define LINES 4 // of alarms

// Whether another line tells of it: the root is listed here, or somebody who follows from it has a line.
static bool is_told(json_t *alarms, json_t *a, const long long *told, size_t n)
{
    long long root = js_int(a, "root");
    json_t *x;
    size_t i;
    if (root == 0 || root == js_int(a, "id"))
        return false;
    json_array_foreach(alarms, i, x) if (js_int(x, "id") == root && !js_true(x, "acked")) return true;
    for (i = 0; i < n; i++)
        if (told[i] == root)
            return true;
    return false;
}

// How many there are, and the worst of them. A root that is minor, or silenced, is not listed: then one of
// those that follow from it stands for it.
static void alarm_lines(struct out *o, json_t *f, json_t *alarms)
{
    static const struct {
        const char *word;
        enum colour colour;
    } row[] = {{"critical", COLOUR_RED}, {"major", COLOUR_RED}, {"minor", COLOUR_YELLOW}};
    json_t *n = json_object_get(json_object_get(f, "telemetry"), "alarms"), *a;
    size_t i, shown = 0;
    long long told[LINES];

    if (!json_is_object(n))
        return;
    label(o, "alarms");
    for (i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        out_paint(o, js_int(n, row[i].word) ? row[i].colour : COLOUR_NONE, "%s%lld %s", i ? "  " : "",
                  js_int(n, row[i].word), row[i].word);
    if (js_int(n, "acked") > 0)
        out_printf(o, ", %lld of them acknowledged", js_int(n, "acked"));
    if (js_int(n, "following") > 0)
        out_printf(o, ", %lld follow%s from others", js_int(n, "following"),
                   js_int(n, "following") == 1 ? "s" : "");
    if (js_int(n, "silenced") > 0)
        out_printf(o, "   (%lld silenced: weft silence)", js_int(n, "silenced"));
    out_wrap(o, LABEL);
    json_array_foreach(alarms, i, a)
    {
        // What nobody has taken on yet.
        if (js_true(a, "acked") || shown == LINES || is_told(alarms, a, told, shown))
            continue;
        told[shown++] = js_int(a, "root");
        struct buf age = {0};
        int64_t at;
        char word[16] = "";
        snprintf(word, sizeof(word), "%s", js_str(a, "severity"));
        for (char *p = word; *p; p++)
            *p = (char)(*p - 'a' + 'A');
        out_paint(o, COLOUR_RED, "  %-8s ", word);
        if (when_parse(js_str(a, "since"), &at) == 0)
            text_age(&age, (wall_now_ns() - at) / MONO_S);
        out_printf(o, "%s  %s %s: %s   weft alarm show %lld", age.data ? age.data : "", js_str(a, "rule"),
                   js_str(a, "place"), js_str(a, "reason"), js_int(a, "id"));
        out_wrap(o, LABEL);
        buf_done(&age);
    }
}

// The worst alarms of a fabric that act now; NULL: none, or not to be had.
static json_t *worst_alarms(struct cli *c, json_t *f)
{
    struct buf path = {0};
    struct http_reply r;
    struct err e = {0};
    json_t *items = NULL;

    if (js_int(f, "telemetry.alarms.critical") + js_int(f, "telemetry.alarms.major") == 0)
        return NULL;
    buf_puts(&path, "/api/v1/alarms?severity=major&active=1&silenced=0&limit=1000");
    http_query(&path, "fabric", js_str(f, "name"));
    if (http_call(c->http, "GET", path.data, NULL, c->timeout, &r, &e) == CLI_OK)
        items = json_incref(json_object_get(r.json, "items"));
    http_reply_done(&r);
    buf_done(&path);
    return items;
}

// What to look at first; nothing when the advice says it already.
static void next_line(struct out *o, json_t *f, json_t *alarms)
{
    json_t *first = json_array_get(alarms, 0), *a;
    size_t i;
    if (json_array_size(json_object_get(f, "advice")) > 0 || first == NULL)
        return;
    static const char *const command[] = {"weft health", "weft congestion"};
    bool jam = js_str(first, "rule")[0] == 'C', both = false;
    json_array_foreach(alarms, i, a) both |= (js_str(a, "rule")[0] == 'C') != jam;
    out_printf(o, "next: %s", command[jam]);
    if (both)
        out_printf(o, ", then %s", command[!jam]);
    out_newline(o);
}

// Nothing while nothing is drained.
static void drain_line(struct out *o, json_t *f)
{
    long long n = js_int(f, "drains"), used = js_int(f, "drains_in_use");
    if (n == 0)
        return;
    label(o, "drained");
    if (n == 1 && js_str(f, "drained")[0] != 0)
        out_printf(o, "%s", js_str(f, "drained"));
    else
        count_of(o, n, "cable or switch", "cables and switches");
    if (used > 0) {
        out_printf(o, ", ");
        out_paint(o, COLOUR_YELLOW, "%lld still in use", used);
    }
    out_printf(o, "   (weft drain)");
    out_wrap(o, LABEL);
}

static void problem_lines(struct out *o, json_t *f)
{
    json_t *a;
    size_t i;

    if (js_str(f, "error.text")[0] != 0 && json_array_size(json_object_get(f, "advice")) == 0) {
        const char *where = js_str(f, "error.where");
        out_paint(o, COLOUR_RED, "  error    %s%s%s", where, where[0] ? ": " : "", js_str(f, "error.text"));
        out_wrap(o, LABEL);
    }
    json_array_foreach(json_object_get(f, "advice"), i, a)
    {
        out_paint(o, is_well(js_str(f, "state")) ? COLOUR_YELLOW : COLOUR_RED, "  next     ");
        out_printf(o, "%s", json_string_value(a) ? json_string_value(a) : "");
        out_wrap(o, LABEL);
    }
}

// The last sweep of a fabric with its phases, NULL when there is none: nothing is lost without it.
static json_t *last_sweep(struct cli *c, json_t *f)
{
    struct buf path = {0};
    struct http_reply r;
    struct err e = {0};
    json_t *s = NULL;

    buf_puts(&path, "/api/v1/fabrics");
    http_segment(&path, js_str(f, "name"));
    buf_puts(&path, "/sweeps?limit=1");
    if (http_call(c->http, "GET", path.data, NULL, c->timeout, &r, &e) == CLI_OK)
        s = json_incref(json_array_get(json_object_get(r.json, "items"), 0));
    http_reply_done(&r);
    buf_done(&path);
    return s;
}

static void draw(struct cli *c, json_t *status, json_t *fabrics)
{
    struct out *o = &c->out;
    json_t *f;
    size_t i;

    json_array_foreach(fabrics, i, f)
    {
        json_t *s = last_sweep(c, f), *alarms = worst_alarms(c, f);
        if (i > 0)
            out_newline(o);
        head_line(o, f);
        sm_line(o, f);
        manager_lines(o, f);
        route_line(o, f);
        quality_line_of(o, f);
        adaptive_line(o, f);
        sweep_line(o, s);
        change_line(o, f);
        watch_line(o, f);
        sa_line(o, f);
        drain_line(o, f);
        finding_line(o, f);
        counters_line(o, f);
        alarm_lines(o, f, alarms);
        notify_line(o, f);
        problem_lines(o, f);
        next_line(o, f, alarms);
        json_decref(s);
        json_decref(alarms);
    }
    if (js_str(status, "database")[0] != 0) {
        out_paint(o, COLOUR_RED, "database cannot be written: %s", js_str(status, "database"));
        out_wrap(o, LABEL);
    }
    if (json_array_size(fabrics) == 0) {
        out_printf(o, "no fabric is managed; see /etc/weft/weft.yaml");
        out_wrap(o, LABEL);
    }
}

// Those of --fabric, or all; NULL when there is none of that name.
static json_t *chosen(struct cli *c, json_t *status)
{
    const char *name = args_value(&c->args, "fabric");
    json_t *all = json_object_get(status, "fabrics"), *kept = json_array(), *f;
    size_t i;

    json_array_foreach(all, i, f)
    {
        if (name == NULL || strcmp(js_str(f, "name"), name) == 0)
            json_array_append(kept, f);
    }
    if (name != NULL && json_array_size(kept) == 0) {
        json_decref(kept);
        return NULL;
    }
    return kept;
}

static int show(struct cli *c, json_t *status)
{
    json_t *fabrics = chosen(c, status), *f;
    size_t i;
    int rc = CLI_OK;

    if (fabrics == NULL) {
        rc = cli_fabric(c); // says which there are
        return rc != CLI_OK ? rc : CLI_USAGE;
    }
    switch (c->out.format) {
    case OUT_JSON:
        json_object_set(status, "fabrics", fabrics);
        out_json(&c->out, status);
        break;
    case OUT_CSV:
        out_list(&c->out, fabric_fields, fabrics);
        break;
    case OUT_TABLE:
        draw(c, status, fabrics);
        break;
    }
    json_array_foreach(fabrics, i, f) rc = fabric_ok(f) ? rc : CLI_FINDINGS;
    if (js_str(status, "database")[0] != 0)
        rc = CLI_FINDINGS;
    json_decref(fabrics);
    return rc;
}

// Every fabric has come to an end, good or bad.
static bool settled(struct cli *c, json_t *status)
{
    json_t *fabrics = chosen(c, status), *f;
    size_t i;
    bool all = true;

    json_array_foreach(fabrics, i, f) all &=
        is_well(js_str(f, "state")) || strcmp(js_str(f, "state"), "failed") == 0;
    json_decref(fabrics);
    return all;
}

static enum cli_exit ask(struct cli *c, json_t **ret, struct err *e)
{
    struct http_reply r;
    enum cli_exit x = http_call(c->http, "GET", "/api/v1/status", NULL, c->timeout, &r, e);
    if (x == CLI_OK)
        *ret = json_incref(r.json);
    http_reply_done(&r);
    return x;
}

// Also for a weftd that does not listen yet.
static int wait_settled(struct cli *c, double seconds, json_t **ret)
{
    int64_t deadline = mono_now().ns + (int64_t)(seconds * 1e9);
    struct err e = {0};
    enum cli_exit x;

    for (;;) {
        json_t *status = NULL;
        x = ask(c, &status, &e);
        if (x == CLI_OK && settled(c, status)) {
            cli_progress_end(c);
            *ret = status;
            return CLI_OK;
        }
        bool hopeless = x != CLI_OK && x != CLI_UNREACHABLE && x != CLI_TIMEOUT;
        if (hopeless || mono_now().ns >= deadline || !cli_sleep(POLL_SECONDS)) {
            cli_progress_end(c);
            *ret = status;
            break;
        }
        json_t *f = json_array_get(json_object_get(status, "fabrics"), 0);
        cli_progress(c, "%s", status == NULL ? "waiting for weftd" : js_str(f, "sm.phase"));
        json_decref(status);
    }
    if (cli_interrupted)
        return cli_fail(CLI_INTERRUPTED, NULL, "interrupted");
    if (x != CLI_OK) {
        cli_complain(&e);
        return x;
    }
    return CLI_TIMEOUT;
}

int cmd_status(struct cli *c)
{
    long long seconds = args_has(&c->args, "timeout") ? (long long)c->timeout : WAIT_DEFAULT;
    json_t *status = NULL;
    int rc = cli_number(c, "wait", 0, 1000000, &seconds), shown = CLI_OK;

    if (rc != CLI_OK)
        return rc;
    if (args_has(&c->args, "wait"))
        rc = wait_settled(c, (double)seconds, &status);
    else
        rc = cli_get(c, "/api/v1/status", &status);
    if (status != NULL && (rc == CLI_OK || rc == CLI_TIMEOUT))
        shown = show(c, status);
    if (rc == CLI_TIMEOUT && status != NULL)
        cli_fail(rc, NULL, "not every fabric is up after %lld s; wait longer, or see: weft event", seconds);
    json_decref(status);
    return rc != CLI_OK ? rc : shown;
}
