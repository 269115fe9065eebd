// SPDX-License-Identifier: Apache-2.0
// The ports that stand out: now, from memory, by one pass over all ports and a heap of as many as are wanted;
// over a time, from history (history.c).
#include "api/top.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/counters.h"
#include "api/history.h"
#include "api/tele.h"
#include "lib/xalloc.h"

const struct param top_params[] = {
    {.name = "by",
     .type = PARAM_STR,
     .doc = "held, lost, used, xmit, rcv, errors, score, or the rate of a counter by its name; held when "
            "absent"},
    {.name = "n", .type = PARAM_INT, .min = 1, .max = TOP_MAX, .doc = "so many; 20 when absent"},
    {.name = "from",
     .type = PARAM_STR,
     .doc = "over the time since then, from history: a time, or an age such as 2h; now when absent"},
    {.name = "to", .type = PARAM_STR, .doc = "end of that time; now when absent"},
    {.name = "focus",
     .type = PARAM_STR,
     .doc = "only ports with these fields, in the focus language: rail=3"},
    {0},
};

struct top_row {
    struct spot spot;
    int64_t rank, alarm;
    double value, used, rcv_used, held, lost_bps, errors_per_hour;
    const char *by, *unit, *health, *most;
    int64_t sampled_at;
};
#define TOP(f) offsetof(struct top_row, f)
static const struct field top_fields[] = {
    {.name = "rank", .type = FIELD_INT, .at = TOP(rank), "1: the greatest"},
    SPOT_FIELDS,
    {.name = "by", .type = FIELD_STR, .at = TOP(by), "what they are sorted by"},
    {.name = "value", .type = FIELD_NUM, .at = TOP(value), "how much of it"},
    {.name = "unit", .type = FIELD_STR, .at = TOP(unit), "of the value"},
    {.name = "most",
     .type = FIELD_STR,
     .at = TOP(most),
     "errors: the counter that makes most of them",
     .null = true},
    {.name = "used", .type = FIELD_NUM, .at = TOP(used), "share of what the link carries out", .null = true},
    {.name = "rcv_used", .type = FIELD_NUM, .at = TOP(rcv_used), "the same of what comes in", .null = true},
    {.name = "held", .type = FIELD_NUM, .at = TOP(held), "share of time it had to wait", .null = true},
    {.name = "lost_bps",
     .type = FIELD_NUM,
     .at = TOP(lost_bps),
     "bytes a second that this could have carried",
     .null = true},
    {.name = "errors_per_hour",
     .type = FIELD_NUM,
     .at = TOP(errors_per_hour),
     "all error counters",
     .null = true},
    {.name = "health",
     .type = FIELD_STR,
     .at = TOP(health),
     "state of the link",
     .null = true,
     .name_of = health_names},
    {.name = "alarm", .type = FIELD_INT, .at = TOP(alarm), "id of the worst alarm about it", .null = true},
    {.name = "sampled_at",
     .type = FIELD_TIME,
     .at = TOP(sampled_at),
     "when it was read; over a time: its end",
     .null = true},
    {0},
};
const struct schema schema_top = {
    .name = "top", "A port that stands out", sizeof(struct top_row), top_fields};

// --- what can be asked for ---

static const char *const by_words[] = {
    [TOP_HELD] = "held", [TOP_LOST] = "lost",     [TOP_USED] = "used",   [TOP_XMIT] = "xmit",
    [TOP_RCV] = "rcv",   [TOP_ERRORS] = "errors", [TOP_SCORE] = "score", [TOP_COUNTER] = NULL};

static bool take_by(struct request *r, struct top_ask *ask)
{
    const char *by = query_str(r, "by");
    if (by == NULL)
        by = "held";
    for (int k = 0; by_words[k] != NULL; k++)
        if (strcmp(by, by_words[k]) == 0) {
            ask->by = (enum top_by)k;
            return true;
        }
    ask->by = TOP_COUNTER;
    ask->counter = tele_counter_by_name(by);
    if (ask->counter >= 0)
        return true;
    const char *near = counter_nearest(by);
    answer_problem(
        r, 400,
        "nothing is sorted by \"%.60s\"%s%s%s; known: held, lost, used, xmit, rcv, errors, score and "
        "the counters of " API_BASE "/counters",
        by, near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
    return false;
}

static const char *by_name(const struct top_ask *ask)
{
    return ask->by == TOP_COUNTER ? tele_rows[ask->counter].name : by_words[ask->by];
}

static const char *unit_of(const struct top_ask *ask, char buf[24])
{
    switch (ask->by) {
    case TOP_HELD:
    case TOP_USED:
    case TOP_SCORE:
        return "share";
    case TOP_LOST:
    case TOP_XMIT:
    case TOP_RCV:
        return "bytes/s";
    case TOP_ERRORS:
        return "errors/h";
    case TOP_COUNTER:
        snprintf(buf, 24, "%s/s", tele_unit_name(tele_rows[ask->counter].unit));
        return buf;
    }
    return "";
}

// --- a heap of the greatest so far, the least of them on top ---

struct heap {
    struct top_one *one;
    uint32_t n, max;
};

static bool less(const struct top_one *a, const struct top_one *b)
{
    return a->value != b->value ? a->value < b->value : a->slot > b->slot;
}

static void sift_down(struct heap *h, uint32_t i)
{
    for (;;) {
        uint32_t k = 2 * i + 1;
        if (k >= h->n)
            return;
        if (k + 1 < h->n && less(&h->one[k + 1], &h->one[k]))
            k++;
        if (!less(&h->one[k], &h->one[i]))
            return;
        struct top_one t = h->one[i];
        h->one[i] = h->one[k];
        h->one[k] = t;
        i = k;
    }
}

static void offer(struct heap *h, uint32_t slot, double value)
{
    struct top_one x = {slot, value};
    if (!(value > 0))
        return;
    if (h->n < h->max) {
        uint32_t i = h->n++;
        h->one[i] = x;
        while (i > 0 && less(&h->one[i], &h->one[(i - 1) / 2])) {
            struct top_one t = h->one[i];
            h->one[i] = h->one[(i - 1) / 2];
            h->one[(i - 1) / 2] = t;
            i = (i - 1) / 2;
        }
    } else if (less(&h->one[0], &x)) {
        h->one[0] = x;
        sift_down(h, 0);
    }
}

static int greater_first(const void *a, const void *b)
{
    return less(a, b) ? 1 : less(b, a) ? -1 : 0;
}

uint32_t top_select(const double *value, uint32_t n, uint32_t most, struct top_one *ret)
{
    struct heap h = {.one = ret, .max = most};
    for (uint32_t i = 0; i < n; i++)
        offer(&h, i, value[i]);
    qsort(ret, h.n, sizeof(*ret), greater_first);
    return h.n;
}

// --- now ---

// A second, of what was counted between the last two readings; 0 where there are not two.
static inline double rate_of(const struct tele_table *t, uint32_t slot, enum tele_counter c)
{
    uint64_t d;
    int64_t ns = tele_interval(t, slot, c);
    return ns > 0 && tele_delta(t, slot, c, &d) ? (double)d * 1e9 / (double)ns : 0;
}

struct walk {
    const struct tele_table *t;
    uint64_t node;   // of the slot before: slots of a node stand together
    double tick;     // its tick of waiting in bytes
    uint64_t errors; // bit c: counter c is one of errors
};

static double tick_of(struct walk *k, uint32_t slot)
{
    const struct tele_port *p = &k->t->port[slot];
    const struct fabric *f = k->t->fabric;
    if (p->node_guid == k->node && k->tick > 0)
        return k->tick;
    k->node = p->node_guid;
    k->tick = 8;
    if (f != NULL && p->port < f->num_ports) {
        const struct node *n = fabric_node(f, f->port[p->port].node);
        k->tick = tele_wait_tick_bytes(n->vendor_id, n->device_id, p->lanes);
    }
    return k->tick;
}

// What a port can have of it at most, without a look at what else it did.
static double at_most(struct walk *k, const struct top_ask *ask, uint32_t slot)
{
    bool wait = ask->by == TOP_HELD || ask->by == TOP_LOST;
    double rate = rate_of(k->t, slot, wait ? TELE_XMIT_WAIT : TELE_XMIT_DATA);
    if (rate == 0)
        return 0;
    double bytes = rate * (wait ? tick_of(k, slot) : 4);
    return ask->by == TOP_LOST ? bytes : bytes / tele_capacity(k->t, slot);
}

// All error counters that are read together.
static double errors_of(const struct walk *k, uint32_t slot)
{
    return k->errors & k->t->have[slot] & k->t->had[slot] ? k->t->errors[slot] : 0;
}

static double exactly(const struct tele_view *w, const struct top_ask *ask, uint32_t slot)
{
    struct tele_use use;
    tele_use(w->t, slot, &use);
    return ask->by == TOP_HELD ? use.held : ask->by == TOP_LOST ? use.lost_bps : use.xmit_used;
}

static double value_now(const struct tele_view *w, struct walk *k, const struct top_ask *ask, uint32_t slot,
                        double least)
{
    const struct tele_table *t = w->t;
    struct congest_port cp;

    switch (ask->by) {
    case TOP_HELD:
    case TOP_LOST:
    case TOP_USED:
        return at_most(k, ask, slot) > least ? exactly(w, ask, slot) : 0;
    case TOP_XMIT:
        return 4 * rate_of(t, slot, TELE_XMIT_DATA);
    case TOP_RCV:
        return 4 * rate_of(t, slot, TELE_RCV_DATA);
    case TOP_ERRORS:
        return 3600 * errors_of(k, slot);
    case TOP_SCORE:
        if (tele_congest(w->tele) == NULL)
            return 0;
        congest_port(tele_congest(w->tele), slot, &cp);
        return cp.score;
    case TOP_COUNTER:
        return (tele_rows[ask->counter].unit == TELE_WORDS ? 4 : 1) *
               rate_of(t, slot, (enum tele_counter)ask->counter);
    }
    return 0;
}

uint32_t top_now(const struct tele_view *w, const struct top_ask *ask, struct top_one *ret)
{
    struct heap h = {.one = ret, .max = ask->n};
    struct walk k = {.t = w->t, .errors = counters_of_errors()};
    for (uint32_t i = 0; i < (ask->wanted != NULL ? w->slots : w->t->num); i++)
        if (ask->wanted == NULL || ask->wanted[i])
            offer(&h, i, value_now(w, &k, ask, i, h.n == h.max ? h.one[0].value : 0));
    qsort(ret, h.n, sizeof(*ret), greater_first);
    return h.n;
}

// The error counter that grows most.
static const char *most_of(const struct tele_table *t, uint32_t slot)
{
    const char *name = NULL;
    uint64_t best = 0, d;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (counter_is_error(c) && tele_delta(t, slot, c, &d) && d > best) {
            best = d;
            name = tele_rows[c].name;
        }
    return name;
}

static void put(struct list *l, struct tele_view *w, const struct top_ask *ask, const struct top_one *one,
                int64_t rank, int64_t at)
{
    struct top_row row = {.rank = rank,
                          .value = one->value,
                          .by = by_name(ask),
                          .alarm = NO_INT,
                          .used = NAN,
                          .rcv_used = NAN,
                          .held = NAN,
                          .lost_bps = NAN,
                          .errors_per_hour = NAN};
    struct health_view hv;
    struct tele_use use;
    char unit[24];

    spot_fill(w, one->slot, &row.spot);
    row.unit = unit_of(ask, unit);
    if (at == 0) { // of now, as the value is
        tele_use(w->t, one->slot, &use);
        row.used = use.xmit_used;
        row.rcv_used = use.rcv_used;
        row.held = use.held;
        row.lost_bps = use.lost_bps;
        row.errors_per_hour = 3600 * counters_error_rate(w->t, one->slot);
        row.most = ask->by == TOP_ERRORS ? most_of(w->t, one->slot) : NULL;
    }
    if (tele_health(w->tele) != NULL) {
        health_view(tele_health(w->tele), w->t, one->slot, &hv);
        row.health = health_state_name(hv.state);
    }
    const struct alarm *a = tele_alarm_of(w, row.spot.guid, (unsigned)row.spot.port);
    if (a != NULL)
        row.alarm = (int64_t)a->id;
    enum tele_group g = ask->by == TOP_ERRORS    ? TELE_ERRORS
                        : ask->by == TOP_COUNTER ? tele_rows[ask->counter].group
                                                 : TELE_DATA;
    row.sampled_at = at != 0 ? at : tele_wall(w, w->t->at[(uint64_t)one->slot * TELE_GROUPS + g]);
    list_item(l, &row);
}

void top_list(struct request *r, struct tele_view *w, const struct top_ask *ask, const struct top_one *one,
              uint32_t n, int64_t at_ns, bool complete)
{
    struct list l;
    list_begin(&l, r, &schema_top);
    l.incomplete = !complete;
    for (uint32_t i = 0; i < n && !list_full(&l); i++)
        if (one[i].slot < w->t->num)
            put(&l, w, ask, &one[i], i + 1, at_ns);
    list_end(&l, NULL, (int64_t)l.n, w->t->fabric != NULL ? (int64_t)w->t->fabric->generation : NO_INT,
             at_ns != 0 ? at_ns : w->st.last_wall_ns);
}

// --- of which ports ---

static void answer_now(struct request *r, struct tele_view *w, const struct top_ask *ask)
{
    struct top_one *one = xcalloc(ask->n, sizeof(*one));
    uint32_t n = top_now(w, ask, one);
    top_list(r, w, ask, one, n, 0, w->st.unread == 0);
    free(one);
}

struct chosen { // ports by a focus, a slice a turn
    struct slices s;
    struct tele_view w;
    struct top_ask ask;
    struct sieve *focus;
    bool *wanted;
    uint32_t i;
};

static bool choose(struct slices *s)
{
    struct chosen *k = (struct chosen *)s;
    if (!tele_view_again(s->r, &k->w))
        return true;
    for (; k->i < k->w.slots; k->i++) {
        if (slice_over(s))
            return false;
        k->wanted[k->i] = tele_focus_has(&k->w, k->focus, k->i);
    }
    answer_now(s->r, &k->w, &k->ask);
    return true;
}

static void chosen_free(struct slices *s)
{
    struct chosen *k = (struct chosen *)s;
    tele_view_done(&k->w);
    sieve_free(k->focus);
    free(k->wanted);
    free(k);
}

static void top_of(struct request *r, const struct tele_view *w, const struct top_ask *ask,
                   struct sieve *focus)
{
    struct chosen *k = xcalloc(1, sizeof(*k));
    k->s.step = choose;
    k->s.free = chosen_free;
    k->w = *w;
    k->ask = *ask;
    k->focus = focus;
    k->wanted = xcalloc(w->slots + 1ul, sizeof(bool));
    k->ask.wanted = k->wanted;
    slices_run(r, &k->s);
}

void get_top(struct request *r)
{
    bool over = query_str(r, "from") != NULL || query_str(r, "to") != NULL;
    struct tele_view w;
    struct top_ask ask = {.n = (uint32_t)query_int(r, "n", 20), .counter = -1};
    struct sieve *focus;

    if (!tele_view_of(r, &w) || !take_by(r, &ask) || !query_port_focus(r, &focus))
        return;
    if (over) {
        history_top(r, &w, &ask, focus);
    } else if (focus != NULL) {
        top_of(r, &w, &ask, focus);
    } else {
        answer_now(r, &w, &ask);
        tele_view_done(&w);
    }
}
