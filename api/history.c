// SPDX-License-Identifier: Apache-2.0
// Questions about history. What is asked is checked and bounded on the loop; a worker opens the files, reads,
// and writes the answer's text. Three forms: values of ports; aggregates over the ports of switches, by rail,
// scalable unit, tier or switch; the ports that stood out.
//
// A rate at a time is that since the sample before it. Samples that are missing leave a gap, over which the
// next rate goes.
#include "api/history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/tele.h"
#include "db/series.h"
#include "lib/guid.h"
#include "lib/xalloc.h"
#include "telemetry/rate.h"

#define PORTS_MAX 1024
#define SWEEP_MS 10000       // what is taken for the time between sweeps where it is to be guessed
#define READ_MAX 400000000LL // samples that a question may touch
#define TOP_STEPS 20

enum by {
    BY_RAIL,
    BY_SU,
    BY_TIER,
    BY_SWITCH,
    BY_PORT,
};
static const char *const by_names[] = {"rail", "su", "tier", "switch", NULL};

const struct param history_params[] = {
    {.name = "port",
     .type = PARAM_STR,
     .doc =
         "NODE/NUM or NODE[NUM], NODE (all its ports), several with commas; NODE is a GUID or unique name"},
    {.name = "by",
     .type = PARAM_ENUM,
     .name_of = by_names,
     .doc = "instead: rates of all ports of switches, or of those given, taken together by this"},
    {.name = "counter",
     .type = PARAM_STR,
     .doc = "names of counters with commas; xmit_data,rcv_data,xmit_wait when absent; all: all"},
    {.name = "from", .type = PARAM_STR, .doc = "a time, or an age such as 2h; an hour ago when absent"},
    {.name = "to", .type = PARAM_STR, .doc = "the same; now when absent"},
    {.name = "step",
     .type = PARAM_STR,
     .doc = "one sample a step, the last in it: 10s, 1m, 1h; 0: every sweep kept; when absent, as suits the "
            "time"},
    {.name = "peaks",
     .type = PARAM_BOOL,
     .doc = "also the greatest rise between two sweeps in each step, of the counters that keep it"},
    {0},
};

struct sample_row {
    int64_t at, port, value, peak, ports;
    uint64_t guid;
    const char *name, *group, *counter, *unit;
    double rate, sum, mean, max;
};
#define ROW(f) offsetof(struct sample_row, f)
static const struct field sample_fields[] = {
    {.name = "at", .type = FIELD_TIME, .at = ROW(at), "when it was read; of aggregates: end of the step"},
    {.name = "guid", .type = FIELD_GUID, .at = ROW(guid), "NodeGUID of a port", .null = true},
    {.name = "name", .type = FIELD_STR, .at = ROW(name), "its node's description", .null = true},
    {.name = "port", .type = FIELD_INT, .at = ROW(port), "its number", .null = true},
    {.name = "group",
     .type = FIELD_STR,
     .at = ROW(group),
     "of aggregates: what is taken together",
     .null = true},
    {.name = "counter", .type = FIELD_STR, .at = ROW(counter), "name of the counter"},
    {.name = "unit", .type = FIELD_STR, .at = ROW(unit), "what it counts"},
    {.name = "value", .type = FIELD_INT, .at = ROW(value), "what had been counted", .null = true},
    {.name = "rate", .type = FIELD_NUM, .at = ROW(rate), "a second, since the sample before", .null = true},
    {.name = "peak",
     .type = FIELD_INT,
     .at = ROW(peak),
     "greatest rise between two sweeps in the step",
     .null = true},
    {.name = "ports",
     .type = FIELD_INT,
     .at = ROW(ports),
     "of aggregates: ports that had a rate",
     .null = true},
    {.name = "sum", .type = FIELD_NUM, .at = ROW(sum), "their rates together", .null = true},
    {.name = "mean", .type = FIELD_NUM, .at = ROW(mean), "of their rates", .null = true},
    {.name = "max", .type = FIELD_NUM, .at = ROW(max), "the greatest of them", .null = true},
    {0},
};
const struct schema schema_sample = {
    .name = "sample", "What a counter said at a time", sizeof(struct sample_row), sample_fields};

// --- a question ---

struct port_want {
    uint64_t guid;
    uint8_t num;
    char *name;
    uint32_t series;
};

struct point {
    uint32_t series;
    int64_t at;
    uint64_t have;
    size_t value; // index of its first value
};

struct query {
    struct later later;
    char *dir;
    struct view *view; // top
    int64_t from, to, step;
    int counter[TELE_COUNTERS];
    unsigned num_counters;
    uint64_t columns;
    bool peaks, csv;
    enum by by;
    struct port_want *want; // ports; sorted by series once the worker knows them
    uint32_t num_want;
    uint32_t *group; // [series], of aggregates; ID_NONE: none
    uint32_t num_slots, num_groups;
    char **group_name;
    struct top_ask ask; // of top
    bool is_top;
    double *factor; // [series]: from ticks to share or bytes
    // what is read
    struct point *point;
    size_t num_points, room;
    uint64_t *value;
    size_t num_values, value_room;
    struct point *peak;
    size_t num_peaks;
    uint64_t damaged;
    bool cut;
    // the answer
    struct buf out;
    struct top_one *one;
    uint32_t num_one;
};

static void query_free(struct later *l)
{
    struct query *q = (struct query *)l;
    for (uint32_t i = 0; i < q->num_want; i++)
        free(q->want[i].name);
    for (uint32_t i = 0; i < q->num_groups; i++)
        free(q->group_name[i]);
    free(q->group_name);
    free(q->want);
    free(q->group);
    free(q->factor);
    free(q->point);
    free(q->peak);
    free(q->value);
    free(q->one);
    free(q->dir);
    buf_done(&q->out);
    free(q);
}

int64_t history_step(int64_t range_ms, int64_t most)
{
    static const int64_t steps[] = {60, 300, 900, 3600, 6 * 3600, 86400, 7 * 86400};
    if (range_ms / SWEEP_MS <= most)
        return 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (range_ms / (steps[i] * 1000) <= most)
            return steps[i] * 1000;
    return range_ms / most + 1;
}

static const char *span_text(int64_t ms, char buf[32])
{
    int64_t s = (ms + 999) / 1000;
    if (s % 86400 == 0)
        snprintf(buf, 32, "%lldd", (long long)(s / 86400));
    else if (s % 3600 == 0)
        snprintf(buf, 32, "%lldh", (long long)(s / 3600));
    else if (s % 60 == 0)
        snprintf(buf, 32, "%lldm", (long long)(s / 60));
    else
        snprintf(buf, 32, "%llds", (long long)s);
    return buf;
}

static int64_t steps_of(const struct query *q, int64_t step)
{
    int64_t each = step > 0 ? step : SWEEP_MS;
    return (q->to - q->from + each - 1) / each + 1;
}

// --- checks on the loop ---

static bool take_times(struct request *r, struct query *q)
{
    int64_t now = wall_now_ns() / MONO_MS;
    if (!query_when(r, "to", now, &q->to))
        return false;
    q->to = q->to > now ? now : q->to;
    if (!query_when(r, "from", q->to - 3600000, &q->from))
        return false;
    if (q->from >= q->to) {
        answer_problem(r, 400, "the time is empty: \"from\" is not before \"to\", or not in the past");
        return false;
    }
    if (!query_span(r, "step", -1, &q->step))
        return false;
    if (q->step < 0)
        q->step = history_step(q->to - q->from, 400);
    return true;
}

static void add_counter(struct query *q, int c)
{
    if (q->columns >> c & 1)
        return;
    q->columns |= 1ull << c;
    q->counter[q->num_counters++] = c;
}

static bool take_counters(struct request *r, struct query *q)
{
    const char *s = query_str(r, "counter");
    char name[64];
    if (s == NULL)
        s = "xmit_data,rcv_data,xmit_wait";
    if (strcmp(s, "all") == 0) {
        for (int c = 0; c < TELE_COUNTERS; c++)
            add_counter(q, c);
        return true;
    }
    for (; *s != 0; s += strcspn(s, ","), s += *s == ',') {
        size_t n = strcspn(s, ",");
        snprintf(name, sizeof(name), "%.*s", (int)(n < 63 ? n : 63), s);
        int c = n > 0 ? counter_of(r, name) : 0;
        if (c < 0)
            return false;
        if (n > 0)
            add_counter(q, c);
    }
    if (q->num_counters == 0)
        answer_problem(r, 400, "parameter \"counter\" names none");
    return q->num_counters > 0;
}

static bool add_want(struct request *r, struct query *q, uint64_t guid, unsigned num, const char *name)
{
    if (q->num_want == PORTS_MAX) {
        answer_problem(r, 400,
                       "more than %d ports are asked for; ask for fewer, or take them together by \"by\"",
                       PORTS_MAX);
        return false;
    }
    q->want = xreallocarray(q->want, q->num_want + 1, sizeof(*q->want));
    q->want[q->num_want++] = (struct port_want){.guid = guid, .num = (uint8_t)num, .name = xstrdup(name)};
    return true;
}

// The port that the text names, or all of a node.
static bool add_port(struct request *r, const struct tele_view *w, struct query *q, const char *text)
{
    const struct fabric *f = view_fabric(w->v);
    struct err e = {0};
    uint64_t guid;
    int port;
    int rc = port_parse(f, text, &guid, &port, &e);
    if (rc != 0) {
        answer_unresolved(r, "port", rc, &e);
        return false;
    }
    const struct node *n = f != NULL ? fabric_by_guid(f, guid) : NULL;
    const char *name = n != NULL ? fabric_desc(f, n) : "";
    if (port >= 0) {
        if (tele_slot(w->t, guid, (uint8_t)port) != TELE_SLOT_NONE)
            return add_want(r, q, guid, (unsigned)port, name);
        answer_problem(r, 404, "port \"%.120s\": no counters of it were ever read", text);
        return false;
    }
    uint32_t before = q->num_want;
    for (unsigned k = 1; k < 255; k++)
        if (tele_slot(w->t, guid, (uint8_t)k) != TELE_SLOT_NONE && !add_want(r, q, guid, k, name))
            return false;
    if (q->num_want == before)
        answer_problem(r, 404, "port \"%.120s\": no counters of this node were ever read", text);
    return q->num_want > before;
}

static bool take_ports(struct request *r, const struct tele_view *w, struct query *q)
{
    const char *s = query_str(r, "port");
    char text[300];
    for (; s != NULL && *s != 0; s += strcspn(s, ","), s += *s == ',') {
        size_t n = strcspn(s, ",");
        snprintf(text, sizeof(text), "%.*s", (int)(n < 299 ? n : 299), s);
        if (n > 0 && !add_port(r, w, q, text))
            return false;
    }
    if (q->num_want > 0 || q->by != BY_PORT)
        return true;
    answer_problem(r, 400, "which ports? give \"port\", or \"by\" (rail, su, tier, switch) for all of them");
    return false;
}

static bool take_by(struct request *r, struct query *q)
{
    const char *by = query_str(r, "by");
    q->by = BY_PORT;
    for (int i = 0; by != NULL && by_names[i] != NULL; i++)
        if (strcmp(by_names[i], by) == 0)
            q->by = (enum by)i;
    if (q->by != BY_PORT && q->step <= 0)
        q->step = SWEEP_MS;
    return true;
}

// Of the group that a switch's port counts in; false: in none.
static bool group_key(const struct tele_view *w, enum by by, uint32_t slot, uint64_t *ret)
{
    const struct fabric *f = w->t->fabric;
    const struct tele_port *p = &w->t->port[slot];
    const struct node *n;
    if (!p->of_switch || f == NULL || (n = fabric_by_guid(f, p->node_guid)) == NULL)
        return false;
    switch (by) {
    case BY_RAIL:
        *ret = n->rail;
        return n->rail != RAIL_NONE;
    case BY_SU:
        *ret = n->su;
        return n->su != SU_NONE;
    case BY_TIER:
        *ret = n->tier;
        return n->tier != TIER_NONE;
    case BY_SWITCH:
        *ret = n->guid;
        return true;
    case BY_PORT:
        break;
    }
    return false;
}

static char *group_text(const struct tele_view *w, enum by by, uint64_t key)
{
    const struct node *n = by == BY_SWITCH ? fabric_by_guid(w->t->fabric, key) : NULL;
    if (by != BY_SWITCH)
        return xasprintf("%s %llu", by_names[by], (unsigned long long)key);
    if (n != NULL && fabric_desc(w->t->fabric, n)[0] != 0 && !n->name_repeats)
        return xstrdup(fabric_desc(w->t->fabric, n));
    return xasprintf(GUID_FMT, GUID_ARG(key));
}

static void put_group(const struct tele_view *w, struct query *q, struct u64map *known, uint32_t slot)
{
    uint64_t key;
    uint32_t g;
    if (!group_key(w, q->by, slot, &key))
        return;
    if (!u64map_get(known, key, &g)) {
        g = q->num_groups;
        u64map_set(known, key, g);
        q->group_name = xreallocarray(q->group_name, g + 1, sizeof(char *));
        q->group_name[q->num_groups++] = group_text(w, q->by, key);
    }
    q->group[slot] = g;
}

static void take_groups(const struct tele_view *w, struct query *q)
{
    struct u64map known;
    q->num_slots = w->t->num;
    q->group = xcalloc(q->num_slots + 1, sizeof(*q->group));
    memset(q->group, 0xff, q->num_slots * sizeof(*q->group));
    u64map_init(&known, NULL, 64);
    for (uint32_t i = 0; q->num_want == 0 && i < q->num_slots; i++)
        put_group(w, q, &known, i);
    for (uint32_t i = 0; i < q->num_want; i++)
        put_group(w, q, &known, tele_slot(w->t, q->want[i].guid, q->want[i].num));
    u64map_done(&known);
}

// An answer of bounded size from a bounded read, or a refusal that says what would be.
static bool check_size(struct request *r, const struct query *q)
{
    uint64_t of = (uint64_t)(q->by == BY_PORT ? q->num_want : q->num_groups) * q->num_counters;
    uint64_t rows = of * (uint64_t)steps_of(q, q->step);
    uint64_t ports = q->num_want > 0 ? q->num_want : q->num_slots;
    int64_t kept = q->step >= 3600000 ? 3600000 : q->step >= 60000 ? 60000 : SWEEP_MS;
    uint64_t touched = ports * (uint64_t)((q->to - q->from) / kept + 1);
    char text[32], least[32];
    int64_t most = of > 0 ? HISTORY_ROWS / (int64_t)of : HISTORY_ROWS;

    if (rows > HISTORY_ROWS) {
        int64_t step = most > 1 ? history_step(q->to - q->from, most - 1) : 0;
        snprintf(least, sizeof(least), step > 0 ? " (%s would do)" : "%s",
                 step > 0 ? span_text(step, text) : "");
        answer_problem(
            r, 400,
            "that would be about %llu samples (%llu ports or groups, %u counters, %lld steps), more than "
            "%d: take a longer step%s, fewer ports or counters, or a shorter time",
            (unsigned long long)rows, (unsigned long long)(of / q->num_counters), q->num_counters,
            (long long)steps_of(q, q->step), HISTORY_ROWS, least);
        return false;
    }
    if (touched > READ_MAX) {
        answer_problem(
            r, 400,
            "that would read about %llu million samples, more than %lld million: take a step of %s or "
            "longer, which has a coarser tier, or a shorter time",
            (unsigned long long)touched / 1000000, READ_MAX / 1000000, kept < 60000 ? "1m" : "1h");
        return false;
    }
    return true;
}

// --- the worker's part ---

static bool take_point(void *arg, const struct series_point *p)
{
    struct query *q = arg;
    if (q->num_points == q->room) {
        q->room = q->room ? 2 * q->room : 1024;
        q->point = xreallocarray(q->point, q->room, sizeof(*q->point));
    }
    if (q->num_values + q->num_counters > q->value_room) {
        q->value_room = q->value_room ? 2 * q->value_room : 8192;
        q->value = xreallocarray(q->value, q->value_room, sizeof(*q->value));
    }
    q->point[q->num_points++] =
        (struct point){.series = p->series, .at = p->at_ms, .have = p->have, .value = q->num_values};
    for (unsigned i = 0; i < q->num_counters; i++)
        q->value[q->num_values++] = p->have >> q->counter[i] & 1 ? p->value[q->counter[i]] : 0;
    if (q->num_values <= 4 * HISTORY_ROWS)
        return true;
    q->cut = true;
    return false;
}

static int by_series(const void *a, const void *b)
{
    const struct port_want *x = a, *y = b;
    return x->series < y->series ? -1 : x->series > y->series;
}

// Sorted numbers of the series asked for, without those that the files do not know. malloc'd.
static uint32_t *find_series(struct query *q, struct series_reader *reader, uint32_t *ret)
{
    uint32_t n = 0, *series = xcalloc(q->num_want + 1, sizeof(*series));
    for (uint32_t i = 0; i < q->num_want; i++)
        q->want[i].series = series_reader_find(reader, q->want[i].guid, q->want[i].num);
    qsort(q->want, q->num_want, sizeof(*q->want), by_series);
    for (uint32_t i = 0; i < q->num_want; i++)
        if (q->want[i].series != UINT32_MAX && (n == 0 || series[n - 1] != q->want[i].series))
            series[n++] = q->want[i].series;
    *ret = n;
    return series;
}

// So that there is a rate at `from` too.
static int64_t from_before(const struct query *q)
{
    return q->from - (q->step > 0 ? q->step : 3 * SWEEP_MS);
}

static const struct port_want *want_of(const struct query *q, uint32_t series)
{
    struct port_want key = {.series = series};
    return bsearch(&key, q->want, q->num_want, sizeof(key), by_series);
}

static const struct point *peak_of(const struct query *q, const struct point *p, size_t *at)
{
    while (*at < q->num_peaks &&
           (q->peak[*at].series < p->series || (q->peak[*at].series == p->series && q->peak[*at].at < p->at)))
        ++*at;
    const struct point *x = &q->peak[*at];
    return *at < q->num_peaks && x->series == p->series && x->at == p->at ? x : NULL;
}

static void put_points(struct query *q)
{
    struct list l;
    size_t last[TELE_COUNTERS], peak_at = 0;
    list_open(&l, &q->out, &schema_sample, q->csv, HISTORY_ROWS);
    for (size_t i = 0; i < q->num_points; i++) {
        const struct point *p = &q->point[i];
        const struct port_want *w = want_of(q, p->series);
        if (i == 0 || q->point[i - 1].series != p->series)
            memset(last, 0xff, sizeof(last));
        const struct point *peak = q->peaks ? peak_of(q, p, &peak_at) : NULL;
        for (unsigned k = 0; k < q->num_counters && w != NULL; k++) {
            int c = q->counter[k];
            struct sample_row row = {.at = p->at * MONO_MS,
                                     .guid = w->guid,
                                     .name = w->name,
                                     .port = w->num,
                                     .counter = tele_rows[c].name,
                                     .unit = tele_unit_name(tele_rows[c].unit),
                                     .peak = NO_INT,
                                     .ports = NO_INT,
                                     .rate = NAN,
                                     .sum = NAN,
                                     .mean = NAN,
                                     .max = NAN};
            if (!(p->have >> c & 1))
                continue;
            uint64_t v = q->value[p->value + k];
            row.value = (int64_t)(tele_shown((enum tele_counter)c, v) & INT64_MAX);
            if (last[k] != SIZE_MAX) {
                const struct point *b = &q->point[last[k]];
                uint64_t old = q->value[b->value + k];
                if (p->at > b->at && v >= old)
                    row.rate =
                        (double)tele_shown((enum tele_counter)c, v - old) * 1000 / (double)(p->at - b->at);
            }
            if (peak != NULL && (peak->have >> c & 1))
                row.peak = (int64_t)(tele_shown((enum tele_counter)c, q->value[peak->value + k]) & INT64_MAX);
            last[k] = i;
            if (p->at < q->from)
                continue;
            if (list_full(&l))
                q->cut = true;
            else
                list_item(&l, &row);
        }
    }
    l.incomplete = q->damaged > 0 || q->cut;
    list_end(&l, NULL, (int64_t)l.n, NO_INT, q->to * MONO_MS);
}

static long read_ports(struct query *q, struct series_reader *reader)
{
    uint32_t n;
    uint32_t *series = find_series(q, reader, &n);
    struct series_query sq = {.series = series,
                              .num = n,
                              .columns = q->columns,
                              .from_ms = from_before(q),
                              .to_ms = q->to,
                              .step_ms = q->step};
    long rc = n > 0 ? series_read(reader, &sq, take_point, q, &q->damaged, &q->later.err) : 0;
    if (rc >= 0 && q->peaks && n > 0 && q->step > 0) {
        struct point *points = q->point;
        size_t num = q->num_points;
        q->point = NULL;
        q->num_points = q->room = 0;
        sq.peaks = true;
        rc = series_read(reader, &sq, take_point, q, NULL, &q->later.err);
        q->peak = q->point;
        q->num_peaks = q->num_points;
        q->point = points;
        q->num_points = num;
    }
    free(series);
    if (rc >= 0)
        put_points(q);
    return rc;
}

// --- aggregates ---

struct cell {
    double sum, max;
    uint32_t ports;
};
struct together {
    struct query *q;
    struct cell *cell; // [(group * steps + step) * counters + counter]
    int64_t steps;
    uint32_t series; // of the points that come now
    int64_t at[TELE_COUNTERS];
    uint64_t value[TELE_COUNTERS];
};

static bool add_point(void *arg, const struct series_point *p)
{
    struct together *t = arg;
    struct query *q = t->q;
    if (p->series >= q->num_slots || q->group[p->series] == ID_NONE)
        return true;
    if (p->series != t->series)
        memset(t->at, 0, sizeof(t->at));
    t->series = p->series;
    int64_t step = (p->at_ms - q->from) / q->step;
    for (unsigned k = 0; k < q->num_counters; k++) {
        int c = q->counter[k];
        if (!(p->have >> c & 1))
            continue;
        uint64_t v = p->value[c], old = t->value[k];
        int64_t before = t->at[k];
        t->value[k] = v;
        t->at[k] = p->at_ms;
        if (p->at_ms < q->from || before == 0 || p->at_ms <= before || v < old || step >= t->steps)
            continue;
        struct cell *x =
            &t->cell[((uint64_t)q->group[p->series] * (uint64_t)t->steps + (uint64_t)step) * q->num_counters +
                     k];
        double rate = (double)tele_shown((enum tele_counter)c, v - old) * 1000 / (double)(p->at_ms - before);
        x->sum += rate;
        x->max = rate > x->max ? rate : x->max;
        x->ports++;
    }
    return true;
}

static void put_together(struct query *q, const struct together *t)
{
    struct list l;
    const struct cell *x = t->cell;
    list_open(&l, &q->out, &schema_sample, q->csv, HISTORY_ROWS);
    for (uint32_t g = 0; g < q->num_groups; g++)
        for (int64_t s = 0; s < t->steps; s++)
            for (unsigned k = 0; k < q->num_counters; k++, x++) {
                int64_t end = q->from + (s + 1) * q->step;
                if (x->ports == 0 || list_full(&l))
                    continue;
                list_item(&l, &(struct sample_row){.at = (end < q->to ? end : q->to) * MONO_MS,
                                                   .group = q->group_name[g],
                                                   .counter = tele_rows[q->counter[k]].name,
                                                   .unit = tele_unit_name(tele_rows[q->counter[k]].unit),
                                                   .port = NO_INT,
                                                   .value = NO_INT,
                                                   .peak = NO_INT,
                                                   .rate = NAN,
                                                   .ports = x->ports,
                                                   .sum = x->sum,
                                                   .mean = x->sum / x->ports,
                                                   .max = x->max});
            }
    l.incomplete = q->damaged > 0;
    list_end(&l, NULL, (int64_t)l.n, NO_INT, q->to * MONO_MS);
}

// Numbers of the series that are in a group, sorted; malloc'd.
static uint32_t *grouped_series(const struct query *q, uint32_t *ret)
{
    uint32_t n = 0, *series = xcalloc(q->num_slots + 1, sizeof(*series));
    for (uint32_t i = 0; i < q->num_slots; i++)
        if (q->group[i] != ID_NONE)
            series[n++] = i;
    *ret = n;
    return series;
}

static long read_together(struct query *q, struct series_reader *reader)
{
    struct together t = {.q = q, .series = ID_NONE, .steps = steps_of(q, q->step)};
    uint32_t n;
    uint32_t *series = grouped_series(q, &n);
    t.cell = xcalloc((uint64_t)q->num_groups * (uint64_t)t.steps * q->num_counters + 1, sizeof(*t.cell));
    struct series_query sq = {.series = series,
                              .num = n,
                              .columns = q->columns,
                              .from_ms = from_before(q),
                              .to_ms = q->to,
                              .step_ms = q->step};
    long rc = n > 0 ? series_read(reader, &sq, add_point, &t, &q->damaged, &q->later.err) : 0;
    if (rc >= 0)
        put_together(q, &t);
    free(series);
    free(t.cell);
    return rc;
}

// --- the ports that stood out ---

struct rise {
    struct query *q;
    double *value; // [series]: a second
    uint32_t series;
    int64_t first[TELE_COUNTERS], last[TELE_COUNTERS];
    uint64_t from[TELE_COUNTERS], to[TELE_COUNTERS];
};

static void rise_ends(struct rise *t)
{
    struct query *q = t->q;
    double sum = 0;
    if (t->series >= q->num_slots)
        return;
    for (unsigned k = 0; k < q->num_counters; k++)
        if (t->last[k] > t->first[k] && t->to[k] > t->from[k])
            sum += (double)(t->to[k] - t->from[k]) * 1000 / (double)(t->last[k] - t->first[k]);
    t->value[t->series] = sum * q->factor[t->series];
}

static bool rise_point(void *arg, const struct series_point *p)
{
    struct rise *t = arg;
    struct query *q = t->q;
    if (p->series != t->series) {
        rise_ends(t);
        memset(t->first, 0, sizeof(t->first));
        memset(t->last, 0, sizeof(t->last));
        t->series = p->series;
    }
    for (unsigned k = 0; k < q->num_counters; k++) {
        int c = q->counter[k];
        if (!(p->have >> c & 1))
            continue;
        if (t->first[k] == 0) {
            t->first[k] = p->at_ms;
            t->from[k] = p->value[c];
        }
        t->last[k] = p->at_ms;
        t->to[k] = p->value[c];
    }
    return true;
}

static long read_top(struct query *q, struct series_reader *reader)
{
    struct rise t = {.q = q, .series = ID_NONE, .value = xcalloc(q->num_slots + 1, sizeof(double))};
    struct series_query sq = {
        .columns = q->columns, .from_ms = q->from - q->step, .to_ms = q->to, .step_ms = q->step};
    long rc = series_read(reader, &sq, rise_point, &t, &q->damaged, &q->later.err);
    if (rc >= 0) {
        rise_ends(&t);
        q->num_one = top_select(t.value, q->num_slots, q->ask.n, q->one);
    }
    free(t.value);
    return rc;
}

static void work(struct later *l, struct par *par)
{
    struct query *q = (struct query *)l;
    (void)par;
    struct series_reader *reader = series_reader_new(q->dir, &l->err);
    if (reader == NULL) {
        if (l->err.code == 0)
            err_set(&l->err, -EIO, q->dir, "history cannot be read");
        return;
    }
    long rc = q->is_top          ? read_top(q, reader)
              : q->by == BY_PORT ? read_ports(q, reader)
                                 : read_together(q, reader);
    if (rc < 0 && l->err.code == 0)
        err_set(&l->err, (int)rc, NULL, "history cannot be read (%s)", strerror((int)-rc));
    series_reader_free(reader);
}

// --- requests ---

static void answer_rows(struct later *l, struct request *r)
{
    struct query *q = (struct query *)l;
    list_answer(r);
    buf_done(&r->out);
    r->out = q->out;
    q->out = (struct buf){0};
}

static bool may_ask(struct request *r)
{
    if (r->view->src->series_dir == NULL) {
        answer_problem(r, 409,
                       "no history of fabric %s is kept: its folder cannot be used; weftd's log says why "
                       "(history-off)",
                       r->view->src->name);
        return false;
    }
    return later_room(r, LATER_QUERY);
}

static struct query *query_new(struct request *r, void (*answer)(struct later *l, struct request *r))
{
    struct query *q = xcalloc(1, sizeof(*q));
    q->later = (struct later){.lane = LATER_QUERY, .work = work, .answer = answer, .free = query_free};
    q->dir = xstrdup(r->view->src->series_dir);
    q->view = r->view;
    q->csv = list_is_csv(r);
    q->peaks = query_bool(r, "peaks");
    return q;
}

void get_history(struct request *r)
{
    struct tele_view w;
    if (!tele_view_of(r, &w) || !may_ask(r))
        return;
    struct query *q = query_new(r, answer_rows);
    bool ok = take_times(r, q) && take_by(r, q) && take_counters(r, q) && take_ports(r, &w, q);
    if (ok && q->by != BY_PORT)
        take_groups(&w, q);
    if (ok && check_size(r, q))
        later_start(r, &q->later);
    else
        query_free(&q->later);
    tele_view_done(&w);
}

static void top_columns(struct query *q)
{
    switch (q->ask.by) {
    case TOP_HELD:
    case TOP_LOST:
        add_counter(q, TELE_XMIT_WAIT);
        return;
    case TOP_USED:
    case TOP_XMIT:
    case TOP_SCORE:
        add_counter(q, TELE_XMIT_DATA);
        return;
    case TOP_RCV:
        add_counter(q, TELE_RCV_DATA);
        return;
    case TOP_ERRORS:
        for (int c = 0; c < TELE_COUNTERS; c++)
            if (tele_rows[c].kind == TELE_ERROR && tele_rows[c].group == TELE_ERRORS)
                add_counter(q, c);
        return;
    case TOP_COUNTER:
        add_counter(q, q->ask.counter);
        return;
    }
}

// What a count a second of a port is in the unit that is shown.
static double factor_of(const struct tele_view *w, const struct query *q, uint32_t slot)
{
    const struct tele_port *p = &w->t->port[slot];
    const struct fabric *f = w->t->fabric;
    double link = p->rate_mbps * 125000.0; // bytes a second
    const struct node *n = f != NULL && p->port < f->num_ports ? fabric_node(f, f->port[p->port].node) : NULL;
    switch (q->ask.by) {
    case TOP_HELD:
    case TOP_LOST: {
        double tick =
            n != NULL ? tele_wait_tick_bytes(n->vendor_id, n->device_id, p->lanes ? p->lanes : 4) : 0;
        return q->ask.by == TOP_LOST ? tick : link > 0 ? tick / link : 0;
    }
    case TOP_USED:
        return link > 0 ? 4 / link : 0;
    case TOP_XMIT:
    case TOP_RCV:
        return 4;
    case TOP_ERRORS:
        return 3600;
    case TOP_SCORE:
        return 0;
    case TOP_COUNTER:
        return tele_rows[q->ask.counter].unit == TELE_WORDS ? 4 : 1;
    }
    return 0;
}

static void answer_top(struct later *l, struct request *r)
{
    struct query *q = (struct query *)l;
    struct tele_view w;
    if (!tele_view_of(r, &w))
        return;
    top_list(r, &w, &q->ask, q->one, q->num_one, q->to * MONO_MS, q->damaged == 0);
    tele_view_done(&w);
}

void history_top(struct request *r, struct tele_view *w, const struct top_ask *ask)
{
    if (ask->by == TOP_SCORE) {
        answer_problem(r, 400,
                       "the score is of now; over a time ports are sorted by held, lost, used, xmit, rcv, "
                       "errors or a counter");
        return;
    }
    if (!may_ask(r))
        return;
    struct query *q = query_new(r, answer_top);
    q->ask = *ask;
    q->is_top = true;
    q->by = BY_PORT;
    bool ok = take_times(r, q);
    top_columns(q);
    q->num_slots = w->t->num;
    q->step = (q->to - q->from) / TOP_STEPS;
    q->step = q->step < SWEEP_MS ? SWEEP_MS : q->step;
    q->factor = xcalloc(q->num_slots + 1, sizeof(double));
    q->one = xcalloc(ask->n, sizeof(*q->one));
    for (uint32_t i = 0; ok && i < q->num_slots; i++)
        q->factor[i] = factor_of(w, q, i);
    int64_t kept = q->step >= 3600000 ? 3600000 : q->step >= 60000 ? 60000 : SWEEP_MS;
    if (ok && (q->to - q->from) / kept * (int64_t)q->num_slots > READ_MAX) {
        answer_problem(r, 400, "the time is too long for %u ports; take a shorter one", q->num_slots);
        ok = false;
    }
    if (ok)
        later_start(r, &q->later);
    else
        query_free(&q->later);
}
