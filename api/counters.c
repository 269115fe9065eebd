// SPDX-License-Identifier: Apache-2.0
// Counters of ports as they are now: which there are, and what they say.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/counters.h"
#include "api/facts.h"
#include "lib/xalloc.h"
#include "telemetry/module.h"

// --- which there are ---

struct known_row {
    const char *name, *ibta, *metric, *unit, *group, *kind, *doc;
};
#define KNOWN(f) offsetof(struct known_row, f)
static const char *const kinds[] = {"traffic", "error", "wait", "fec", NULL};
static const struct field known_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = KNOWN(name), "its name here, on the command line and in CSV"},
    {.name = "ibta", .type = FIELD_STR, .at = KNOWN(ibta), "its name in the InfiniBand specification"},
    {.name = "metric",
     .type = FIELD_STR,
     .at = KNOWN(metric),
     "its name in /metrics and remote write, behind infiniband_switch_ or infiniband_hca_"},
    {.name = "unit", .type = FIELD_STR, .at = KNOWN(unit), "what it counts, as it is shown"},
    {.name = "group",
     .type = FIELD_STR,
     .at = KNOWN(group),
     "what it is read with: counters of one group are of one moment"},
    {.name = "kind", .type = FIELD_STR, .at = KNOWN(kind), "what it is about", .name_of = kinds},
    {.name = "doc", .type = FIELD_STR, .at = KNOWN(doc), "what it means"},
    {0},
};
const struct schema schema_counter = {
    .name = "counter", "A counter that ports have", sizeof(struct known_row), known_fields};

void get_counter_rows(struct request *r)
{
    uint64_t i;
    struct list l;
    char next[24];

    if (!cursor_number(r, &i))
        return;
    list_begin(&l, r, &schema_counter);
    for (; i < TELE_COUNTERS && !list_full(&l); i++)
        list_item(&l, &(struct known_row){.name = tele_rows[i].name,
                                          .ibta = tele_rows[i].ibta,
                                          .metric = tele_rows[i].metric,
                                          .unit = tele_unit_name(tele_rows[i].unit),
                                          .group = tele_group_name(tele_rows[i].group),
                                          .kind = kinds[tele_rows[i].kind],
                                          .doc = tele_rows[i].doc});
    list_end(&l, i < TELE_COUNTERS ? number_text(i, next) : NULL, TELE_COUNTERS, NO_INT, wall_now_ns());
}

// --- what they say ---

struct values { // of the counters, in their order
    int64_t v[TELE_COUNTERS];
};
struct rates {
    double v[TELE_COUNTERS];
};
static const struct field value_fields[] = {
#define C(id, ibta, name_, metric, unit, group, kind, doc)                                                   \
    {.name = name_, .type = FIELD_INT, .at = TELE_##id * sizeof(int64_t), doc, .null = true},
#include "telemetry/counters.def"
    {0},
};
static const struct schema schema_values = {
    .name = "counter_values",
    "What has been counted since the port was first seen, over clears and reboots; null: not read",
    sizeof(struct values),
    value_fields};
static const struct field rate_fields[] = {
#define C(id, ibta, name_, metric, unit, group, kind, doc)                                                   \
    {.name = name_, .type = FIELD_NUM, .at = TELE_##id * sizeof(double), doc, .null = true},
#include "telemetry/counters.def"
    {0},
};
const struct schema schema_rates = {.name = "counter_rates",
                                    "Of the last two readings, a second; null where there are not two",
                                    sizeof(struct rates),
                                    rate_fields};

struct lane_row {
    int64_t lane;
    double rx_dbm, tx_dbm;
};
static const struct field lane_fields[] = {
    {.name = "lane", .type = FIELD_INT, .at = offsetof(struct lane_row, lane), "from 1"},
    {.name = "rx_dbm",
     .type = FIELD_NUM,
     .at = offsetof(struct lane_row, rx_dbm),
     "optical power received",
     .null = true},
    {.name = "tx_dbm",
     .type = FIELD_NUM,
     .at = offsetof(struct lane_row, tx_dbm),
     "optical power sent",
     .null = true},
    {0},
};
static const struct schema schema_lane = {
    .name = "module_lane", "A lane of a module", sizeof(struct lane_row), lane_fields};
struct module_row {
    const char *vendor, *part, *serial, *revision, *kind;
    const char *status, *fault;
    double celsius, metres, rx_low, rx_high, tx_low, tx_high;
    int64_t taken;
    bool old;
    struct items lanes;
};
#define MODULE(f) offsetof(struct module_row, f)
static const struct field module_fields[] = {
    {.name = "vendor", .type = FIELD_STR, .at = MODULE(vendor), "who made it"},
    {.name = "part", .type = FIELD_STR, .at = MODULE(part), "part number"},
    {.name = "serial", .type = FIELD_STR, .at = MODULE(serial), "serial number"},
    {.name = "revision", .type = FIELD_STR, .at = MODULE(revision), "revision"},
    {.name = "kind", .type = FIELD_STR, .at = MODULE(kind), "copper, optical, …"},
    {.name = "celsius", .type = FIELD_NUM, .at = MODULE(celsius), "temperature", .null = true},
    {.name = "metres", .type = FIELD_NUM, .at = MODULE(metres), "length of the cable", .null = true},
    {.name = "status", .type = FIELD_STR, .at = MODULE(status), "its state, in its own words", .null = true},
    {.name = "fault",
     .type = FIELD_STR,
     .at = MODULE(fault),
     "what it says against itself: that it has failed, or a power outside its own limits",
     .null = true},
    {.name = "lanes", .type = FIELD_LIST, .at = MODULE(lanes), "optical power by lane", &schema_lane},
    {.name = "rx_low_dbm", .type = FIELD_NUM, .at = MODULE(rx_low), "its limit of alarm", .null = true},
    {.name = "rx_high_dbm", .type = FIELD_NUM, .at = MODULE(rx_high), "its limit of alarm", .null = true},
    {.name = "tx_low_dbm", .type = FIELD_NUM, .at = MODULE(tx_low), "its limit of alarm", .null = true},
    {.name = "tx_high_dbm", .type = FIELD_NUM, .at = MODULE(tx_high), "its limit of alarm", .null = true},
    {.name = "sampled_at",
     .type = FIELD_TIME,
     .at = MODULE(taken),
     "when ibdiagnet has looked",
     .null = true},
    {.name = "old", .type = FIELD_BOOL, .at = MODULE(old), "more than a day ago: it says nothing of now"},
    {0},
};
static const struct schema schema_module = {
    .name = "module",
    "Cable or module, as ibdiagnet has seen it; no performance agent tells of these",
    sizeof(struct module_row),
    module_fields};

struct counters_row {
    struct spot spot;
    const char *pma, *health, *why, *alarm_rule;
    int64_t sampled_at, errors_sampled_at, unread_since, alarm, errors, resets, reset_at;
    double used, rcv_used, held, xmit_bps, rcv_bps, lost_bps, xmit_pps, rcv_pps, errors_per_hour, ber,
        raw_ber, score;
    bool complete, saturated;
    const struct values *value;
    const struct rates *rate;
    const struct module_row *module;
};
#define ROW(f) offsetof(struct counters_row, f)
const char *const unread_names[] = {"read", "not-yet",      "no-answer", "refused", "no-pma",
                                    "gone", "wrong-answer", "slow",      NULL};
const char *const health_names[] = {"unknown",  "healthy", "unsure", "degraded",
                                    "flapping", "failing", "down",   NULL};
static const struct field counters_fields[] = {
    SPOT_FIELDS,
    {.name = "pma",
     .type = FIELD_STR,
     .at = ROW(pma),
     "read: its counters were read in the last sweep; else why not",
     .name_of = unread_names},
    {.name = "unread_since", .type = FIELD_TIME, .at = ROW(unread_since), "since when not", .null = true},
    {.name = "sampled_at", .type = FIELD_TIME, .at = ROW(sampled_at), "when data was read", .null = true},
    {.name = "errors_sampled_at",
     .type = FIELD_TIME,
     .at = ROW(errors_sampled_at),
     "when errors were read",
     .null = true},
    {.name = "complete", .type = FIELD_BOOL, .at = ROW(complete), "all that was due was read"},
    {.name = "used", .type = FIELD_NUM, .at = ROW(used), "share of what the link carries out", .null = true},
    {.name = "rcv_used", .type = FIELD_NUM, .at = ROW(rcv_used), "the same of what comes in", .null = true},
    {.name = "held",
     .type = FIELD_NUM,
     .at = ROW(held),
     "share of time in which there was data to send and no way to send it",
     .null = true},
    {.name = "score",
     .type = FIELD_NUM,
     .at = ROW(score),
     "0 to 1: how much it may hold others up",
     .null = true},
    {.name = "xmit_bps", .type = FIELD_NUM, .at = ROW(xmit_bps), "bytes sent a second", .null = true},
    {.name = "rcv_bps", .type = FIELD_NUM, .at = ROW(rcv_bps), "bytes received a second", .null = true},
    {.name = "lost_bps",
     .type = FIELD_NUM,
     .at = ROW(lost_bps),
     "bytes a second that the time held could have carried",
     .null = true},
    {.name = "xmit_pps", .type = FIELD_NUM, .at = ROW(xmit_pps), "packets sent a second", .null = true},
    {.name = "rcv_pps", .type = FIELD_NUM, .at = ROW(rcv_pps), "packets received a second", .null = true},
    {.name = "errors",
     .type = FIELD_INT,
     .at = ROW(errors),
     "all error counters together, since the port was first seen",
     .null = true},
    {.name = "errors_per_hour",
     .type = FIELD_NUM,
     .at = ROW(errors_per_hour),
     "at the pace of the last two readings",
     .null = true},
    {.name = "ber",
     .type = FIELD_NUM,
     .at = ROW(ber),
     "symbol error ratio of the link, estimated",
     .null = true},
    {.name = "raw_ber", .type = FIELD_NUM, .at = ROW(raw_ber), "before correction", .null = true},
    {.name = "health",
     .type = FIELD_STR,
     .at = ROW(health),
     "state of the link, of both its ends",
     .null = true,
     .name_of = health_names},
    {.name = "why", .type = FIELD_STR, .at = ROW(why), "why it is in this state", .null = true},
    {.name = "alarm", .type = FIELD_INT, .at = ROW(alarm), "id of the worst alarm about it", .null = true},
    {.name = "alarm_rule", .type = FIELD_STR, .at = ROW(alarm_rule), "and its rule", .null = true},
    {.name = "saturated",
     .type = FIELD_BOOL,
     .at = ROW(saturated),
     "a counter of the device stands at its maximum: more was counted than is known"},
    {.name = "resets", .type = FIELD_INT, .at = ROW(resets), "times that counters were found cleared"},
    {.name = "reset_at", .type = FIELD_TIME, .at = ROW(reset_at), "the last time", .null = true},
    {.name = "module",
     .type = FIELD_OBJ,
     .at = ROW(module),
     "its cable or module, from ibdiagnet's file; null: no source",
     &schema_module,
     .null = true},
    {.name = "value", .type = FIELD_OBJ, .at = ROW(value), "the counters", &schema_values},
    {.name = "rate", .type = FIELD_OBJ, .at = ROW(rate), "the counters a second", &schema_rates},
    {0},
};
const struct schema schema_counters = {
    .name = "counters", "Counters of a port, now", sizeof(struct counters_row), counters_fields};

const struct param counters_params[] = {
    {.name = "node",
     .type = PARAM_STR,
     .doc = "only of this node: its GUID or unique name; NODE/PORT: one port"},
    {.name = "focus",
     .type = PARAM_STR,
     .doc = "only ports with these fields, in the focus language: held>5% and rail=3, rate.rcv_errors>0"},
    {0},
};

struct row_space {
    struct module_row module;
    struct lane_row lane[MODULE_LANES];
    char fault[100];
    struct health_view health;
    struct values value;
    struct rates rate;
};

uint64_t counters_of_errors(void)
{
    uint64_t bits = 0;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (counter_is_error(c))
            bits |= 1ull << c;
    return bits;
}

int64_t counters_errors(const struct tele_table *t, uint32_t slot)
{
    uint64_t sum = 0;
    bool any = false;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (counter_is_error(c) && (t->have[slot] >> c & 1 || tele_value(t, slot, c) != 0)) {
            sum += tele_value(t, slot, c);
            any = true;
        }
    return any ? (int64_t)(sum & INT64_MAX) : NO_INT;
}

double counters_error_rate(const struct tele_table *t, uint32_t slot)
{
    double sum = 0;
    bool any = false;
    for (unsigned c = 0; c < TELE_COUNTERS; c++) {
        uint64_t d;
        int64_t ns = tele_interval(t, slot, c);
        if (!counter_is_error(c) || ns <= 0 || !tele_delta(t, slot, c, &d))
            continue;
        sum += (double)d * 1e9 / (double)ns;
        any = true;
    }
    return any ? sum : (double)NAN;
}

void counters_rates(const struct tele_table *t, uint32_t slot, double ret[TELE_COUNTERS])
{
    for (unsigned c = 0; c < TELE_COUNTERS; c++) {
        double rate = tele_rate(t, slot, c);
        ret[c] = tele_rows[c].unit == TELE_WORDS ? 4 * rate : rate;
    }
}

static void fill_values(const struct tele_table *t, uint32_t slot, struct row_space *s)
{
    for (unsigned c = 0; c < TELE_COUNTERS; c++) {
        uint64_t v = tele_shown(c, tele_value(t, slot, c));
        s->value.v[c] = t->have[slot] >> c & 1 ? (int64_t)(v & INT64_MAX) : NO_INT;
    }
    counters_rates(t, slot, s->rate.v);
}

static void fill_health(struct tele_view *w, uint32_t slot, struct counters_row *row, struct row_space *s)
{
    const struct health *h = tele_health(w->tele);
    if (h == NULL)
        return;
    health_view(h, w->t, slot, &s->health);
    row->health = health_state_name(s->health.state);
    row->why = s->health.why[0] ? s->health.why : NULL;
    row->ber = s->health.symbol_ber;
    row->raw_ber = s->health.raw_ber;
}

static const char *fault_text(const struct tele_module *m, struct row_space *s)
{
    struct tele_optics o;
    if (!tele_module_optics(m, &o) || (!o.fault && o.lane == 0))
        return NULL;
    if (o.fault)
        return "says that it has failed";
    snprintf(s->fault, sizeof(s->fault), "%.1f dBm %s on lane %u, its own limit %.1f", (double)o.dbm,
             o.rx ? "received" : "sent", o.lane, (double)o.limit);
    return s->fault;
}

static const struct module_row *fill_module(const struct tele *t, const struct tele_module *m,
                                            struct row_space *s)
{
    if (m == NULL)
        return NULL;
    unsigned n = m->lanes < MODULE_LANES ? m->lanes : MODULE_LANES;
    for (unsigned i = 0; i < n; i++)
        s->lane[i] = (struct lane_row){.lane = i + 1, .rx_dbm = m->rx_dbm[i], .tx_dbm = m->tx_dbm[i]};
    s->module = (struct module_row){.vendor = m->vendor,
                                    .part = m->part,
                                    .serial = m->serial,
                                    .revision = m->revision,
                                    .kind = m->kind,
                                    .celsius = m->celsius,
                                    .metres = m->metres,
                                    .status = m->status[0] ? m->status : NULL,
                                    .fault = fault_text(m, s),
                                    .rx_low = m->rx_low,
                                    .rx_high = m->rx_high,
                                    .tx_low = m->tx_low,
                                    .tx_high = m->tx_high,
                                    .taken = m->taken_ns,
                                    .old = tele_modules_age(t, m->taken_ns) > TELE_MODULES_OLD_NS,
                                    .lanes = {s->lane, n}};
    return &s->module;
}

static void fill(struct tele_view *w, uint32_t slot, struct counters_row *row, struct row_space *s)
{
    const struct tele_table *t = w->t;
    const struct tele_port *p = &t->port[slot];
    const int64_t *at = &t->at[(uint64_t)slot * TELE_GROUPS];
    struct tele_use use;
    struct congest_port cp = {.score = NAN};

    *row = (struct counters_row){.ber = NAN, .raw_ber = NAN};
    spot_fill(w, slot, &row->spot);
    tele_use(t, slot, &use);
    if (tele_congest(w->tele) != NULL)
        congest_port(tele_congest(w->tele), slot, &cp);
    const struct alarm *a = tele_alarm_of(w, p->node_guid, p->num);
    row->pma = tele_unread_name((enum tele_unread)p->unread);
    row->complete = p->unread == TELE_READ;
    row->unread_since = p->unread != TELE_READ ? tele_wall(w, p->unread_since) : 0;
    row->sampled_at = tele_wall(w, at[TELE_DATA]);
    row->errors_sampled_at = tele_wall(w, at[TELE_ERRORS]);
    row->used = use.xmit_used;
    row->rcv_used = use.rcv_used;
    row->held = use.held;
    row->score = cp.score;
    row->xmit_bps = use.xmit_bps;
    row->rcv_bps = use.rcv_bps;
    row->lost_bps = use.lost_bps;
    row->xmit_pps = use.xmit_pps;
    row->rcv_pps = use.rcv_pps;
    row->errors = counters_errors(t, slot);
    row->errors_per_hour = 3600 * counters_error_rate(t, slot);
    row->alarm = a != NULL ? (int64_t)a->id : NO_INT;
    row->alarm_rule = a != NULL ? a->rule->id : NULL;
    row->saturated = p->saturated;
    row->resets = p->resets;
    row->reset_at = tele_wall(w, p->reset_at);
    fill_health(w, slot, row, s);
    fill_values(t, slot, s);
    row->value = &s->value;
    row->rate = &s->rate;
    row->module = fill_module(w->tele, tele_module(w->tele, slot), s);
}

// --- the list: by slot, so that a cursor means the same in the next generation ---

struct filter {
    uint64_t guid; // 0: any
    int port;      // -1: any
    struct sieve *focus;
};

// A port that its node has not is no port without counters.
static int check_port(const struct tele_view *w, const char *text, const struct filter *f, struct err *e)
{
    const struct fabric *now = view_fabric(w->v);
    const struct node *n = now != NULL ? fabric_by_guid(now, f->guid) : NULL;
    if (n == NULL || f->port <= n->num_ports)
        return 0;
    return err_set(e, -ENOENT, text, "the node has no port %d; it has 1 to %u", f->port, n->num_ports);
}

static bool take_filter(struct request *r, struct tele_view *w, struct filter *f)
{
    static const struct sieve_rows rows = {
        .row = &schema_counters, .end = &schema_facts, .named = place_is_named, .part = facts_part};
    const char *node = query_str(r, "node");
    struct err e = {0};
    *f = (struct filter){.port = -1};
    int rc = node != NULL ? view_port_parse(w->v, node, &f->guid, &f->port, &e) : 0;
    if (rc == 0 && node != NULL)
        rc = check_port(w, node, f, &e);
    if (rc != 0) {
        answer_unresolved(r, "node", rc, &e);
        return false;
    }
    return query_focus_of(r, &rows, NULL, &f->focus);
}

static bool wanted(const struct filter *f, const struct tele_port *p)
{
    if (f->guid != 0)
        return p->node_guid == f->guid && (f->port < 0 || f->port == p->num);
    return true;
}

#define LOOKED_MAX 50000 // with a focus

// Done a slice a turn.
struct ports {
    struct slices s;
    struct tele_view w;
    struct filter f;
    struct list l;
    uint64_t i, looked;
    bool begun;
};

static bool is_wanted(struct ports *k, const struct counters_row *row)
{
    return tele_end_wanted(&k->w, k->f.focus, row, row->spot.guid, (unsigned)row->spot.port);
}

static bool ports_rows(struct ports *k)
{
    struct counters_row row;
    struct row_space space;
    for (; k->i < k->w.slots && !list_full(&k->l) && (k->f.focus == NULL || k->looked < LOOKED_MAX); k->i++) {
        if (slice_over(&k->s))
            return false;
        if (!wanted(&k->f, &k->w.t->port[k->i]))
            continue;
        k->looked++;
        fill(&k->w, (uint32_t)k->i, &row, &space);
        if (is_wanted(k, &row))
            list_item(&k->l, &row);
    }
    return true;
}

static bool ports_step(struct slices *s)
{
    struct ports *k = (struct ports *)s;
    char next[24];
    if (!tele_view_again(s->r, &k->w))
        return true;
    if (!k->begun) {
        k->begun = true;
        list_begin(&k->l, s->r, &schema_counters);
        k->l.incomplete = k->w.st.unread > 0;
    }
    if (!ports_rows(k))
        return false;
    bool all = k->f.guid == 0 && k->f.focus == NULL;
    list_end(&k->l, k->i < k->w.slots ? number_text(k->i, next) : NULL, all ? (int64_t)k->w.slots : NO_INT,
             k->w.t->fabric != NULL ? (int64_t)k->w.t->fabric->generation : NO_INT, k->w.st.last_wall_ns);
    return true;
}

static void ports_free(struct slices *s)
{
    struct ports *k = (struct ports *)s;
    tele_view_done(&k->w);
    sieve_free(k->f.focus);
    free(k);
}

void get_counters(struct request *r)
{
    struct tele_view w;
    struct filter f;
    uint64_t i;

    if (!tele_view_of(r, &w) || !cursor_number(r, &i) || !take_filter(r, &w, &f))
        return;
    struct ports *k = xcalloc(1, sizeof(*k));
    k->s.step = ports_step;
    k->s.free = ports_free;
    k->w = w;
    k->f = f;
    k->i = i;
    slices_run(r, &k->s);
}
