// SPDX-License-Identifier: Apache-2.0
// What the links of one path did over a time: "this job failed at 03:12 between these two; was it a link, and
// which?". The path is that of the tables in force; both ends of each of its cables are read from history by
// a worker. Damage is counted where it arrives, waits and discards where a packet would have left: each link
// is told in the direction in which the path crosses it.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/counters.h"
#include "api/history.h"
#include "api/tele.h"
#include "db/series.h"
#include "lib/xalloc.h"

#define STEPS_MOST 2000 // of a port that are read
#define HELD_MUCH 0.2   // share of a step's time from which a wait is worth a word

const struct param route_past_params[] = {
    {.name = "from",
     .type = PARAM_STR,
     .need = true,
     .doc = "where the path begins: GUID, GID, LID or unique name of an end port or node"},
    {.name = "to", .type = PARAM_STR, .need = true, .doc = "where it ends: the same"},
    {.name = "since", .type = PARAM_STR, .doc = "a time, or an age such as 2h; an hour ago when absent"},
    {.name = "until", .type = PARAM_STR, .doc = "the same; now when absent"},
    {0},
};

// --- a question ---

struct side { // a port of the path
    uint64_t guid;
    char name[80];
    uint8_t num;
    double wait, data; // a count in bytes over what the link carries in a second
    // what is read
    bool known;
    uint32_t series;
    int64_t first, last, last_data, held_at; // ms
    uint32_t samples;
    uint64_t have, before[TELE_COUNTERS], rise[TELE_COUNTERS];
    double held_most;
};

struct past {
    struct later later;
    char *dir;
    int64_t from, to, step, changed_at;
    struct side a, z; // ends of the path
    uint16_t lid;
    bool reached;
    char error[300];
    struct side *side; // [2 * links]: out, in
    uint32_t links;
    uint64_t damaged;
};

static void past_free(struct later *l)
{
    struct past *p = (struct past *)l;
    free(p->side);
    free(p->dir);
    free(p);
}

// --- a worker reads ---

static bool take_sample(void *arg, const struct series_point *x)
{
    struct past *p = arg;
    for (uint32_t i = 0; i < 2 * p->links; i++) {
        struct side *s = &p->side[i];
        if (!s->known || s->series != x->series)
            continue;
        for (uint64_t left = x->have; left != 0; left &= left - 1) {
            unsigned c = (unsigned)__builtin_ctzll(left);
            uint64_t v = x->value[c], d = (s->have >> c & 1) && v >= s->before[c] ? v - s->before[c] : 0;
            if (c == TELE_XMIT_WAIT && (s->have >> c & 1) && x->at_ms > s->last_data) {
                double held = fmin(1, (double)d * s->wait * 1000 / (double)(x->at_ms - s->last_data));
                s->held_at = held > s->held_most ? x->at_ms : s->held_at;
                s->held_most = fmax(held, s->held_most);
            }
            s->last_data = c == TELE_XMIT_WAIT ? x->at_ms : s->last_data;
            s->rise[c] += d;
            s->before[c] = v;
        }
        s->have |= x->have;
        s->samples++;
        s->first = s->first ? s->first : x->at_ms;
        s->last = x->at_ms;
    }
    return true;
}

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void read_past(struct later *l, struct par *par)
{
    struct past *p = (struct past *)l;
    uint32_t n = 0, *series = xcalloc(2 * p->links + 1, sizeof(*series));
    struct series_reader *reader = series_reader_new(p->dir, &l->err);
    (void)par;
    for (uint32_t i = 0; reader != NULL && i < 2 * p->links; i++) {
        struct side *s = &p->side[i];
        s->series = series_reader_find(reader, s->guid, s->num);
        s->known = s->series != UINT32_MAX;
        if (s->known)
            series[n++] = s->series;
    }
    qsort(series, n, sizeof(*series), by_number);
    uint32_t once = 0; // a path that goes in a circle has a port several times
    for (uint32_t i = 0; i < n; i++)
        if (once == 0 || series[once - 1] != series[i])
            series[once++] = series[i];
    n = once;
    struct series_query q = {.series = series,
                             .num = n,
                             .columns =
                                 counters_of_errors() | 1ull << TELE_XMIT_DATA | 1ull << TELE_XMIT_WAIT,
                             .from_ms = p->from,
                             .to_ms = p->to,
                             .step_ms = p->step};
    if (reader != NULL && n > 0)
        series_read(reader, &q, take_sample, p, &p->damaged, &l->err);
    else if (reader == NULL && l->err.code == 0)
        err_set(&l->err, -EIO, p->dir, "history cannot be read");
    series_reader_free(reader);
    free(series);
}

// --- the answer ---

struct past_row {
    const struct end_row *out, *in;
    int64_t hop, errors, discards, downs, alarm, held_at;
    double used, held, held_most;
    const char *most, *health;
    bool complete;
    // what out, in and most point to
    struct end_row out_space, in_space;
    char most_space[160];
};
#define ROW(f) offsetof(struct past_row, f)
static const struct field past_fields[] = {
    {.name = "hop", .type = FIELD_INT, .at = ROW(hop), "1: the first cable of the path"},
    {.name = "out", .type = FIELD_OBJ, .at = ROW(out), "where packets leave by it", &schema_end},
    {.name = "in", .type = FIELD_OBJ, .at = ROW(in), "where they arrive", &schema_end},
    {.name = "used",
     .type = FIELD_NUM,
     .at = ROW(used),
     "share of what it carries that was sent",
     .null = true},
    {.name = "held",
     .type = FIELD_NUM,
     .at = ROW(held),
     "share of the time in which the sending port had to wait",
     .null = true},
    {.name = "held_most",
     .type = FIELD_NUM,
     .at = ROW(held_most),
     "the same of the worst moment: a step of the history",
     .null = true},
    {.name = "held_most_at", .type = FIELD_TIME, .at = ROW(held_at), "when that was", .null = true},
    {.name = "errors",
     .type = FIELD_INT,
     .at = ROW(errors),
     "counted at both ends, all but discards and downs",
     .null = true},
    {.name = "most",
     .type = FIELD_STR,
     .at = ROW(most),
     "the counter that makes most of them, and where",
     .null = true},
    {.name = "discards",
     .type = FIELD_INT,
     .at = ROW(discards),
     "packets that the sending port threw away",
     .null = true},
    {.name = "downs",
     .type = FIELD_INT,
     .at = ROW(downs),
     "times it went down, as the end says that counted more",
     .null = true},
    {.name = "complete", .type = FIELD_BOOL, .at = ROW(complete), "history has both ends over all that time"},
    {.name = "health",
     .type = FIELD_STR,
     .at = ROW(health),
     "state of the link now",
     .null = true,
     .name_of = health_names},
    {.name = "alarm",
     .type = FIELD_INT,
     .at = ROW(alarm),
     "id of the worst alarm that stands about it now",
     .null = true},
    {0},
};
static const struct schema schema_past = {
    .name = "route_past_link", "A link of a path, over a time", sizeof(struct past_row), past_fields};

struct past_answer {
    const struct end_row *from, *to;
    int64_t lid, since, until, step, changed_at;
    bool reached, complete;
    struct items links;
    const char *error, *text;
};
#define PAST(f) offsetof(struct past_answer, f)
static const struct field answer_fields[] = {
    {.name = "from", .type = FIELD_OBJ, .at = PAST(from), "where the path begins", &schema_end},
    {.name = "to", .type = FIELD_OBJ, .at = PAST(to), "where it shall end", &schema_end},
    {.name = "lid", .type = FIELD_INT, .at = PAST(lid), "destination LID"},
    {.name = "reached", .type = FIELD_BOOL, .at = PAST(reached), "the tables in force lead there"},
    {.name = "error",
     .type = FIELD_STR,
     .at = PAST(error),
     "where and why the path ends early",
     .null = true},
    {.name = "since", .type = FIELD_TIME, .at = PAST(since), "beginning of the time"},
    {.name = "until", .type = FIELD_TIME, .at = PAST(until), "its end"},
    {.name = "step",
     .type = FIELD_INT,
     .at = PAST(step),
     "milliseconds between samples; 0: every sweep kept"},
    {.name = "changed_at",
     .type = FIELD_TIME,
     .at = PAST(changed_at),
     "when tables were last changed since the beginning of that time, as far as weftd remembers: before "
     "that the path may have been another",
     .null = true},
    {.name = "complete", .type = FIELD_BOOL, .at = PAST(complete), "all links are, and no file is damaged"},
    {.name = "links",
     .type = FIELD_LIST,
     .at = PAST(links),
     "its cables in the order in which it takes them",
     &schema_past},
    {.name = "text", .type = FIELD_STR, .at = PAST(text), "what stands out, in a sentence"},
    {0},
};
const struct schema schema_route_past = {.name = "route_past",
                                         "The path that the tables in force take, and what its links did",
                                         sizeof(struct past_answer),
                                         answer_fields};

static struct end_row end_of(const struct side *s)
{
    return (struct end_row){.guid = s->guid, .name = s->name, .port = s->num};
}

static const uint64_t not_damage = 1ull << TELE_XMIT_DISCARDS | 1ull << TELE_LINK_DOWNED;

// Errors of a side; *most, *c: the greatest so far.
static uint64_t errors_of(const struct side *s, uint64_t *most, int *c)
{
    uint64_t sum = 0;
    for (uint64_t left = s->have & counters_of_errors() & ~not_damage; left != 0; left &= left - 1) {
        int k = __builtin_ctzll(left);
        sum += s->rise[k];
        if (s->rise[k] > *most) {
            *most = s->rise[k];
            *c = k;
        }
    }
    return sum;
}

static void fill_errors(const struct side *out, const struct side *in, struct past_row *row)
{
    uint64_t most = 0, all;
    int a = -1, z = -1;
    row->errors = row->discards = row->downs = NO_INT;
    if ((out->have | in->have) & counters_of_errors()) {
        all = errors_of(out, &most, &a);
        all += errors_of(in, &most, &z);
        row->errors = (int64_t)(all & INT64_MAX);
    }
    if (a >= 0 || z >= 0) {
        const struct side *s = z >= 0 ? in : out;
        snprintf(row->most_space, sizeof(row->most_space), "%s at %s/%u", tele_rows[z >= 0 ? z : a].name,
                 s->name, s->num);
        row->most = row->most_space;
    }
    if (out->have >> TELE_XMIT_DISCARDS & 1)
        row->discards = (int64_t)(out->rise[TELE_XMIT_DISCARDS] & INT64_MAX);
    if ((out->have | in->have) >> TELE_LINK_DOWNED & 1) {
        uint64_t x = out->rise[TELE_LINK_DOWNED], y = in->rise[TELE_LINK_DOWNED];
        row->downs = (int64_t)((x > y ? x : y) & INT64_MAX);
    }
}

// Up to three sweeps, or steps, are no gap.
static bool covers(const struct past *p, const struct side *s)
{
    int64_t every = s->samples > 1 ? (s->last - s->first) / (s->samples - 1) : 0;
    int64_t gap = 3 * (every > p->step ? every : p->step);
    if (gap < 3 * HISTORY_SWEEP_MS)
        gap = 3 * HISTORY_SWEEP_MS;
    return s->known && s->first > 0 && s->first <= p->from + gap && s->last >= p->to - gap;
}

static void fill_row(const struct past *p, struct tele_view *w, uint32_t link, struct past_row *row)
{
    const struct side *out = &p->side[2 * link], *in = out + 1;
    double seconds = (double)(out->last - out->first) / 1000;
    *row = (struct past_row){.hop = link + 1, .used = NAN, .held = NAN, .held_most = NAN, .alarm = NO_INT};
    row->out_space = end_of(out);
    row->in_space = end_of(in);
    row->out = &row->out_space;
    row->in = &row->in_space;
    row->complete = covers(p, out) && covers(p, in);
    if (seconds > 0 && (out->have >> TELE_XMIT_DATA & 1))
        row->used = fmin(1, (double)out->rise[TELE_XMIT_DATA] * out->data / seconds);
    if (seconds > 0 && (out->have >> TELE_XMIT_WAIT & 1)) {
        row->held = fmin(1, (double)out->rise[TELE_XMIT_WAIT] * out->wait / seconds);
        row->held_most = out->held_most;
        row->held_at = out->held_at * MONO_MS;
    }
    fill_errors(out, in, row);
    uint32_t slot = w->t != NULL ? tele_slot(w->t, out->guid, out->num) : TELE_SLOT_NONE;
    if (slot != TELE_SLOT_NONE && tele_health(w->tele) != NULL)
        row->health = health_state_name(health_state_at(tele_health(w->tele), w->t, slot));
    const struct alarm *a = w->t != NULL ? tele_alarm_of(w, out->guid, out->num) : NULL;
    if (a == NULL && w->t != NULL)
        a = tele_alarm_of(w, in->guid, in->num);
    if (a != NULL)
        row->alarm = (int64_t)a->id;
}

static bool stands_out(const struct past_row *x)
{
    return x->downs > 0 || x->errors > 0 || x->discards > 0 || x->held_most > HELD_MUCH;
}

static void say_of_link(struct buf *b, const struct past_row *x)
{
    const char *gap = " ";
    char at[40];
    buf_printf(b, "%slink %lld (%s/%lld to %s/%lld)", b->len > 0 ? "; " : "", (long long)x->hop, x->out->name,
               (long long)x->out->port, x->in->name, (long long)x->in->port);
    if (x->downs > 0) {
        buf_printf(b, "%swent down %lld time%s", gap, (long long)x->downs, x->downs == 1 ? "" : "s");
        gap = ", ";
    }
    if (x->errors > 0) {
        buf_printf(b, "%shad %lld error%s, most of them %s", gap, (long long)x->errors,
                   x->errors == 1 ? "" : "s", x->most);
        gap = ", ";
    }
    if (x->discards > 0) {
        buf_printf(b, "%sthrew %lld packet%s away", gap, (long long)x->discards, x->discards == 1 ? "" : "s");
        gap = ", ";
    }
    if (x->held_most > HELD_MUCH)
        buf_printf(b, "%shad to wait %.0f %% of the time around %s", gap, 100 * x->held_most,
                   wall_format(x->held_at, at, sizeof(at)));
}

static void say_what_stands_out(struct buf *b, const struct past *p, const struct past_row *row)
{
    unsigned gaps = 0;
    char at[40];
    for (uint32_t i = 0; i < p->links; i++) {
        gaps += !row[i].complete;
        if (stands_out(&row[i]))
            say_of_link(b, &row[i]);
    }
    if (p->links == 0)
        buf_puts(b, "the path has no cable");
    else if (b->len == 0)
        buf_puts(b, gaps < p->links ? "no link of this path went down, had errors, threw packets away or had "
                                      "to wait for long"
                                    : "nothing is known against a link of this path");
    if (gaps > 0)
        buf_printf(b, "; history does not cover all of that time for %u of %u links", gaps, p->links);
    if (p->changed_at != 0)
        buf_printf(b, "; tables were changed at %s: before that the path may have been another",
                   wall_format(p->changed_at, at, sizeof(at)));
}

static void answer_past(struct later *l, struct request *r)
{
    struct past *p = (struct past *)l;
    struct past_row *row = xcalloc(p->links + 1, sizeof(*row));
    struct end_row a = end_of(&p->a), z = end_of(&p->z);
    struct tele_view w = {0};
    struct buf text = {0};
    bool have = tele_view_at(r->api, r->view, &w), complete = p->damaged == 0;
    if (!complete && r->view->src->series != NULL)
        series_suspect(r->view->src->series);
    for (uint32_t i = 0; i < p->links; i++) {
        fill_row(p, &w, i, &row[i]);
        complete = complete && row[i].complete;
    }
    say_what_stands_out(&text, p, row);
    answer_struct(r, 200, &schema_route_past,
                  &(struct past_answer){.from = &a,
                                        .to = &z,
                                        .lid = p->lid,
                                        .reached = p->reached,
                                        .error = p->error[0] ? p->error : NULL,
                                        .since = p->from * MONO_MS,
                                        .until = p->to * MONO_MS,
                                        .step = p->step,
                                        .changed_at = p->changed_at,
                                        .complete = complete && p->reached,
                                        .links = {row, p->links},
                                        .text = text.len ? text.data : ""});
    buf_done(&text);
    if (have)
        tele_view_done(&w);
    free(row);
}

// --- requests ---

static bool take_times(struct request *r, struct past *p)
{
    int64_t now = wall_now_ns() / MONO_MS;
    if (!query_when(r, "until", now, &p->to))
        return false;
    p->to = p->to > now ? now : p->to;
    if (!query_when(r, "since", p->to - 3600000, &p->from))
        return false;
    if (p->from < p->to) {
        p->step = history_step(p->to - p->from, STEPS_MOST);
        return true;
    }
    answer_problem(r, 400, "the time is empty: \"since\" is not before \"until\", or not in the past");
    return false;
}

static void fill_side(const struct fabric *f, port_id id, struct side *s)
{
    const struct port *p = fabric_port(f, id);
    const struct node *n = fabric_node(f, p->node);
    double link = port_rate_mbps(&p->a) * 125000.0; // bytes a second
    *s = (struct side){.guid = n->guid, .num = p->num};
    snprintf(s->name, sizeof(s->name), "%s", fabric_desc(f, n));
    if (link > 0) {
        unsigned lanes = tele_lanes(p->a.width_active);
        s->data = 4 / link;
        s->wait = tele_wait_tick_bytes(n->vendor_id, n->device_id, lanes) / link;
    }
}

static void take_path(const struct view *v, port_id from, struct past *p)
{
    const struct fabric *f = v->f;
    struct route_hop hop[ROUTE_MAX_HOPS];
    uint32_t n = 0;
    struct err e = {0};
    p->reached = route_trace(f, view_tables(v), from, p->lid, hop, &n, &e) == 0;
    if (!p->reached)
        err_str(&e, p->error, sizeof(p->error));
    p->side = xcalloc(2 * (size_t)n + 1, sizeof(*p->side));
    for (uint32_t i = 0; i < n && !(p->reached && n == 1); i++) { // to itself it takes no cable
        port_id out = hop[i].out != 0 ? fabric_port_at(f, &f->node[hop[i].node], hop[i].out) : PORT_NONE;
        if (!port_valid(out) || !port_valid(fabric_port(f, out)->peer))
            continue;
        fill_side(f, out, &p->side[2 * p->links]);
        fill_side(f, fabric_port(f, out)->peer, &p->side[2 * p->links + 1]);
        p->links++;
    }
}

// Of the last sweep in that time that changed forwarding tables, ns; 0: none that is known.
static int64_t tables_changed(const struct sm *sm, int64_t since_ms)
{
    const struct sm_sweep *s;
    for (unsigned i = 0; sm != NULL && (s = sm_history(sm, i)) != NULL && s->wall_ns / MONO_MS >= since_ms;
         i++)
        if (s->lft_entries > 0)
            return s->wall_ns;
    return 0;
}

void get_route_past(struct request *r)
{
    struct view *v = view_of(r);
    port_id from, to;
    struct past *p = xcalloc(1, sizeof(*p));
    p->later =
        (struct later){.lane = LATER_QUERY, .work = read_past, .answer = answer_past, .free = past_free};
    if (v == NULL || !route_ends(r, v, &from, &to, &p->lid) || !take_times(r, p) || !history_may_ask(r)) {
        past_free(&p->later);
        return;
    }
    p->dir = xstrdup(v->src->series_dir);
    fill_side(v->f, from, &p->a);
    fill_side(v->f, to, &p->z);
    take_path(v, from, p);
    p->changed_at = tables_changed(v->src->sm, p->from);
    later_start(r, &p->later);
}
