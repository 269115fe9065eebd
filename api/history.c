// SPDX-License-Identifier: Apache-2.0
// Questions about history. What is asked is checked and bounded on the loop, and ports are chosen there, a
// slice a turn; a worker opens the files, reads, and writes the answer's text (history_read.c). Three forms:
// values of ports; aggregates over the ports of switches, by rail, scalable unit, tier or switch; the ports
// that stood out.
//
// A rate at a time is that since the sample before it. Samples that are missing leave a gap, over which the
// next rate goes.
#include "api/history_priv.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/counters.h"
#include "lib/guid.h"
#include "lib/xalloc.h"
#include "telemetry/rate.h"

#define PORTS_MAX 1024
#define READ_MAX 400000000LL // samples that a question may touch
#define TOP_STEPS 20
#define STEPS_MOST 400 // where nobody has said which step

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
    {.name = "focus",
     .type = PARAM_STR,
     .doc = "with by: only ports with these fields, in the focus language"},
    {.name = "peaks",
     .type = PARAM_BOOL,
     .doc = "also the greatest rise between two sweeps in each step, of the counters that keep it"},
    {0},
};

// --- a question ---

static void query_free(struct slices *s)
{
    struct query *q = (struct query *)s;
    tele_view_done(&q->w);
    sieve_free(q->focus);
    u64map_done(&q->known);
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
    if (range_ms / HISTORY_SWEEP_MS <= most)
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
    q->any_step = q->step < 0;
    if (q->any_step)
        q->step = history_step(q->to - q->from, STEPS_MOST);
    return true;
}

// Where nobody has said, the step with which the answer is not too large.
static void suit_step(struct query *q)
{
    int64_t of = (int64_t)(q->by == BY_PORT ? q->num_want : q->num_groups) * q->num_counters;
    int64_t most = of > 0 ? HISTORY_ROWS / of - 2 : STEPS_MOST;
    if (!q->any_step || most < 1)
        return;
    q->step = history_step(q->to - q->from, most < STEPS_MOST ? most : STEPS_MOST);
    if (q->by != BY_PORT && q->step <= 0)
        q->step = HISTORY_SWEEP_MS;
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
        size_t kept = n < sizeof(name) ? n : sizeof(name) - 1;
        memcpy(name, s, kept);
        name[kept] = 0;
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
    struct err e = {0};
    uint64_t guid;
    int port;
    int rc = view_port_parse(w->v, text, &guid, &port, &e);
    if (rc != 0) {
        answer_unresolved(r, "port", rc, &e);
        return false;
    }
    const char *name = view_node_name(w->v, guid);
    const struct node *away = view_away(w->v, guid);
    if (port >= 0) {
        // Without a collector (the port is lost), and of nodes that are away, the files say whether there is
        // anything.
        if (w->t == NULL || away != NULL || tele_slot(w->t, guid, (uint8_t)port) != TELE_SLOT_NONE)
            return add_want(r, q, guid, (unsigned)port, name);
        answer_problem(r, 404, "port \"%.120s\": no counters of it were ever read", text);
        return false;
    }
    uint32_t before = q->num_want;
    for (unsigned k = 1; w->t != NULL && k < 255; k++)
        if ((tele_slot(w->t, guid, (uint8_t)k) != TELE_SLOT_NONE || (away != NULL && k <= away->num_ports)) &&
            !add_want(r, q, guid, k, name))
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
        q->step = HISTORY_SWEEP_MS;
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

static void put_group(struct query *q, uint32_t slot)
{
    uint64_t key;
    uint32_t g;
    if (slot >= q->num_slots ||
        !group_key(&q->w, q->by, slot, &key)) // a port of a node that is away may have none
        return;
    if (!u64map_get(&q->known, key, &g)) {
        g = q->num_groups;
        u64map_set(&q->known, key, g);
        q->group_name = xreallocarray(q->group_name, g + 1, sizeof(char *));
        q->group_name[q->num_groups++] = group_text(&q->w, q->by, key);
    }
    q->group[slot] = g;
}

static void no_groups(struct query *q)
{
    q->num_slots = q->w.slots;
    q->group = xcalloc(q->num_slots + 1ul, sizeof(*q->group));
    memset(q->group, 0xff, q->num_slots * sizeof(*q->group));
}

// An answer of bounded size from a bounded read, or a refusal that says what would be.
static void check_size(struct request *r, const struct query *q)
{
    uint64_t of = (uint64_t)(q->by == BY_PORT ? q->num_want : q->num_groups) * q->num_counters;
    uint64_t rows = of * (uint64_t)query_steps(q, q->step);
    uint64_t ports = q->num_want > 0 ? q->num_want : q->num_slots;
    int64_t kept = q->step >= 3600000 ? 3600000 : q->step >= 60000 ? 60000 : HISTORY_SWEEP_MS;
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
            (long long)query_steps(q, q->step), HISTORY_ROWS, least);
    } else if (touched > READ_MAX) {
        answer_problem(
            r, 400,
            "that would read about %llu million samples, more than %lld million: take a step of %s or "
            "longer, which has a coarser tier, or a shorter time",
            (unsigned long long)touched / 1000000, READ_MAX / 1000000, kept < 60000 ? "1m" : "1h");
    }
}

// --- requests ---

// Damage that a reader meets may be of a file that is being written.
static void suspect(const struct query *q, const struct request *r)
{
    if (q->damaged > 0 && r->view->src->series != NULL)
        series_suspect(r->view->src->series);
}

static void answer_rows(struct later *l, struct request *r)
{
    struct query *q = (struct query *)l;
    suspect(q, r);
    list_answer(r);
    buf_done(&r->out);
    r->out = q->out;
    q->out = (struct buf){0};
}

bool history_may_ask(struct request *r)
{
    if (r->view->src->series_dir == NULL) {
        const char *why = r->view->src->no_history;
        answer_problem(r, 409, "fabric %s: %s", r->view->src->name,
                       why ? why : "no history is kept, since no counters are collected");
        return false;
    }
    return later_room(r, LATER_QUERY);
}

static struct query *query_new(struct request *r, const struct tele_view *w, bool (*step)(struct slices *s),
                               void (*answer)(struct later *l, struct request *r))
{
    struct query *q = xcalloc(1, sizeof(*q));
    q->s = (struct slices){.later = {.lane = LATER_QUERY, .work = history_read, .answer = answer},
                           .step = step,
                           .free = query_free};
    q->w = *w;
    u64map_init(&q->known, NULL, 64);
    q->dir = xstrdup(r->view->src->series_dir);
    q->csv = list_is_csv(r);
    q->peaks = query_bool(r, "peaks");
    return q;
}

// What was kept can be asked for while the port is lost too, by port.
static bool history_view(struct request *r, struct tele_view *w)
{
    if (tele_view_at(r->api, r->view, w))
        return true;
    if (r->view->src->series_dir != NULL && query_str(r, "by") == NULL)
        return true;
    return tele_view_of(r, w);
}

// Groups of all ports take a look at every port: a slice a turn. False: that one is over.
static bool some_groups(struct query *q)
{
    for (; q->chosen < q->num_slots; q->chosen++) {
        if (slice_over(&q->s))
            return false;
        if (q->focus == NULL || tele_focus_has(&q->w, q->focus, q->chosen))
            put_group(q, q->chosen);
    }
    return true;
}

static bool history_choose(struct slices *s)
{
    struct query *q = (struct query *)s;
    if (q->by != BY_PORT) {
        if (!tele_view_again(s->r, &q->w))
            return true;
        for (uint32_t i = 0; i < q->num_want; i++)
            put_group(q, tele_slot(q->w.t, q->want[i].guid, q->want[i].num));
        if (q->num_want == 0 && !some_groups(q))
            return false;
    }
    suit_step(q);
    check_size(s->r, q);
    return true;
}

static bool take_question(struct request *r, struct query *q)
{
    if (!take_times(r, q) || !take_by(r, q) || !take_counters(r, q) || !take_ports(r, &q->w, q) ||
        !query_port_focus(r, &q->focus))
        return false;
    if (q->focus == NULL || (q->by != BY_PORT && q->num_want == 0))
        return true;
    answer_problem(r, 400, "a focus chooses among all ports: with \"by\", and without \"port\"");
    return false;
}

void get_history(struct request *r)
{
    struct tele_view w;
    if (!history_view(r, &w) || !history_may_ask(r))
        return;
    struct query *q = query_new(r, &w, history_choose, answer_rows);
    if (!take_question(r, q)) {
        query_free(&q->s);
        return;
    }
    if (q->by != BY_PORT)
        no_groups(q);
    slices_then(r, &q->s);
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
            if (counter_is_error((unsigned)c))
                add_counter(q, c);
        return;
    case TOP_COUNTER:
        add_counter(q, q->ask.counter);
        return;
    }
}

// What a count a second of a port is in the unit that is shown.
static double factor_of(const struct query *q, uint32_t slot)
{
    const struct tele_port *p = &q->w.t->port[slot];
    const struct fabric *f = q->w.t->fabric;
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
    if (!tele_view_again(r, &q->w))
        return;
    suspect(q, r);
    top_list(r, &q->w, &q->ask, q->one, q->num_one, q->to * MONO_MS, q->damaged == 0);
}

static bool top_choose(struct slices *s)
{
    struct query *q = (struct query *)s;
    if (!tele_view_again(s->r, &q->w))
        return true;
    for (; q->chosen < q->num_slots; q->chosen++) {
        if (slice_over(s))
            return false;
        if (q->focus == NULL || tele_focus_has(&q->w, q->focus, q->chosen))
            q->factor[q->chosen] = factor_of(q, q->chosen);
    }
    return true;
}

void history_top(struct request *r, const struct tele_view *w, const struct top_ask *ask, struct sieve *focus)
{
    if (ask->by == TOP_SCORE)
        answer_problem(r, 400,
                       "the score is of now; over a time ports are sorted by held, lost, used, xmit, rcv, "
                       "errors or a counter");
    if (ask->by == TOP_SCORE || !history_may_ask(r)) {
        sieve_free(focus);
        return;
    }
    struct query *q = query_new(r, w, top_choose, answer_top);
    q->ask = *ask;
    q->focus = focus;
    q->is_top = true;
    q->by = BY_PORT;
    if (!take_times(r, q)) {
        query_free(&q->s);
        return;
    }
    top_columns(q);
    q->num_slots = w->slots;
    q->step = (q->to - q->from) / TOP_STEPS;
    q->step = q->step < HISTORY_SWEEP_MS ? HISTORY_SWEEP_MS : q->step;
    q->factor = xcalloc(q->num_slots + 1ul, sizeof(double));
    q->one = xcalloc(ask->n, sizeof(*q->one));
    slices_then(r, &q->s);
}
