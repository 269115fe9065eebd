// SPDX-License-Identifier: Apache-2.0
// The worker's part of questions about history: opens the files, reads, and writes the answer's text.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/history_priv.h"
#include "db/series.h"
#include "lib/xalloc.h"

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

// --- values of ports ---

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
    return q->from - (q->step > 0 ? q->step : 3 * HISTORY_SWEEP_MS);
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

static const struct sample_row no_sample = {.port = NO_INT,
                                            .value = NO_INT,
                                            .peak = NO_INT,
                                            .ports = NO_INT,
                                            .rate = NAN,
                                            .sum = NAN,
                                            .mean = NAN,
                                            .max = NAN};

static int64_t shown(int counter, uint64_t v)
{
    return (int64_t)(tele_shown((enum tele_counter)counter, v) & INT64_MAX);
}

// Counter k of point p; before: the port's last point that has it, NULL: none.
static void fill_sample(const struct query *q, const struct point *p, const struct point *before, unsigned k,
                        const struct point *peak, struct sample_row *row)
{
    int c = q->counter[k];
    uint64_t v = q->value[p->value + k], old = before != NULL ? q->value[before->value + k] : 0;
    row->at = p->at * MONO_MS;
    row->counter = tele_rows[c].name;
    row->unit = tele_unit_name(tele_rows[c].unit);
    row->value = shown(c, v);
    if (before != NULL && p->at > before->at && v >= old)
        row->rate = (double)shown(c, v - old) * 1000 / (double)(p->at - before->at);
    if (peak != NULL && (peak->have >> c & 1))
        row->peak = shown(c, q->value[peak->value + k]);
}

static void put_point(struct query *q, struct list *l, const struct point *p, const struct port_want *w,
                      const struct point **last, const struct point *peak)
{
    for (unsigned k = 0; k < q->num_counters; k++) {
        struct sample_row row = no_sample;
        if (!(p->have >> q->counter[k] & 1))
            continue;
        fill_sample(q, p, last[k], k, peak, &row);
        row.guid = w->guid;
        row.name = w->name;
        row.port = w->num;
        last[k] = p;
        if (p->at >= q->from && !list_full(l))
            list_item(l, &row);
        else if (p->at >= q->from)
            q->cut = true;
    }
}

static void put_points(struct query *q)
{
    struct list l;
    const struct point *last[TELE_COUNTERS];
    size_t peak_at = 0;
    list_open(&l, &q->out, &schema_sample, q->csv, HISTORY_ROWS);
    for (size_t i = 0; i < q->num_points; i++) {
        const struct point *p = &q->point[i], *peak = q->num_peaks > 0 ? peak_of(q, p, &peak_at) : NULL;
        const struct port_want *w = want_of(q, p->series);
        if (i == 0 || q->point[i - 1].series != p->series)
            memset(last, 0, sizeof(last));
        if (w != NULL)
            put_point(q, &l, p, w, last, peak);
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
    long rc = n > 0 ? series_read(reader, &sq, take_point, q, &q->damaged, &q->s.later.err) : 0;
    if (rc >= 0 && q->peaks && n > 0 && q->step > 0) {
        struct point *points = q->point;
        size_t num = q->num_points;
        q->point = NULL;
        q->num_points = q->room = 0;
        sq.peaks = true;
        rc = series_read(reader, &sq, take_point, q, NULL, &q->s.later.err);
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

// Numbers of the series that are in a group, sorted, and their groups; malloc'd both.
static uint32_t *grouped_series(const struct query *q, uint16_t **ret_group, uint32_t *ret)
{
    uint32_t n = 0, *series = xcalloc(q->num_slots + 1, sizeof(*series));
    *ret_group = xcalloc(q->num_slots + 1, sizeof(**ret_group));
    for (uint32_t i = 0; i < q->num_slots; i++)
        if (q->group[i] != ID_NONE) {
            (*ret_group)[n] = (uint16_t)q->group[i];
            series[n++] = i;
        }
    *ret = n;
    return series;
}

struct together {
    int64_t first; // number of the step before the first one shown: only so that that one has a rate
    size_t steps;
    struct series_rate *rate; // [(counter * groups + group) * steps + step]
};

static void put_together(struct query *q, const struct together *t)
{
    struct list l;
    list_open(&l, &q->out, &schema_sample, q->csv, HISTORY_ROWS);
    for (uint32_t g = 0; g < q->num_groups; g++)
        for (size_t s = 1; s < t->steps; s++)
            for (unsigned k = 0; k < q->num_counters; k++) {
                enum tele_counter c = (enum tele_counter)q->counter[k];
                const struct series_rate *x = &t->rate[((size_t)k * q->num_groups + g) * t->steps + s];
                int64_t end = (t->first + (int64_t)s + 1) * q->step;
                double unit = (double)tele_shown(c, 1);
                struct sample_row row = no_sample;
                if (x->num == 0 || list_full(&l))
                    continue;
                row.at = (end < q->to ? end : q->to) * MONO_MS;
                row.group = q->group_name[g];
                row.counter = tele_rows[c].name;
                row.unit = tele_unit_name(tele_rows[c].unit);
                row.ports = x->num;
                row.sum = x->sum * unit;
                row.mean = row.sum / x->num;
                row.max = x->max * unit;
                list_item(&l, &row);
            }
    l.incomplete = q->damaged > 0;
    list_end(&l, NULL, (int64_t)l.n, NO_INT, q->to * MONO_MS);
}

static long read_together(struct query *q, struct series_reader *reader)
{
    struct together t = {.first = q->from / q->step - 1};
    uint16_t *group;
    uint32_t n;
    uint32_t *series = grouped_series(q, &group, &n);
    long rc = 0;

    t.steps = (size_t)(q->to / q->step - t.first + 1);
    size_t each = q->num_groups * t.steps;
    t.rate = xcalloc(each * q->num_counters + 1, sizeof(*t.rate));
    for (unsigned k = 0; k < q->num_counters && n > 0 && rc >= 0; k++) {
        struct series_query sq = {.series = series,
                                  .num = n,
                                  .columns = 1ull << q->counter[k],
                                  .from_ms = t.first * q->step,
                                  .to_ms = q->to,
                                  .step_ms = q->step};
        rc = series_rates(reader, &sq, group, q->num_groups, &t.rate[k * each], t.steps, &q->damaged,
                          &q->s.later.err);
    }
    if (rc >= 0)
        put_together(q, &t);
    free(series);
    free(group);
    free(t.rate);
    return rc;
}

// --- the ports that stood out ---

struct risen {
    struct query *q;
    double *value; // [series]: a second, in the unit that is shown
};

static bool take_rise(void *arg, const struct series_rise *x)
{
    struct risen *t = arg;
    const struct query *q = t->q;
    double sum = 0;
    if (x->series >= q->num_slots || x->last_ms <= x->first_ms)
        return true;
    for (unsigned k = 0; k < q->num_counters; k++)
        if (x->have >> q->counter[k] & 1)
            sum += (double)x->value[q->counter[k]];
    t->value[x->series] = sum * 1000 / (double)(x->last_ms - x->first_ms) * q->factor[x->series];
    return true;
}

static long read_top(struct query *q, struct series_reader *reader)
{
    struct risen t = {.q = q, .value = xcalloc(q->num_slots + 1, sizeof(double))};
    struct series_query sq = {.columns = q->columns, .from_ms = q->from, .to_ms = q->to, .step_ms = q->step};
    long rc = series_rises(reader, &sq, take_rise, &t, &q->damaged, &q->s.later.err);
    if (rc >= 0)
        q->num_one = top_select(t.value, q->num_slots, q->ask.n, q->one);
    free(t.value);
    return rc;
}

void history_read(struct later *l, struct par *par)
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
