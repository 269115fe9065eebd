// SPDX-License-Identifier: Apache-2.0
// What is said of links: states, words with numbers, counts, who is named. Nothing changes here.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"
#include "lib/xalloc.h"
#include "telemetry/health_priv.h"

#define BIT(c) (1ull << (c))

// Time that windows can speak of: since the first reading, without holes.
static int64_t covered(const struct health_port *p, int64_t window)
{
    int64_t all = p->at_errors - p->from;
    all = all < window ? all : window;
    int64_t by = p->at_errors / HEALTH_HOLE - p->hole_unit, units = window / HEALTH_HOLE;
    uint64_t holes = by >= 64 ? 0 : by > 0 ? p->holes << by : p->holes;
    if (units < 64)
        holes &= BIT(units) - 1;
    all -= __builtin_popcountll(holes) * HEALTH_HOLE;
    return all > 0 ? all : 0;
}

static bool count_as_link(const struct health *h, const struct tele_table *t, uint32_t slot)
{
    if (slot >= h->num || slot >= t->num || health_lower(h, slot) != slot)
        return false;
    const struct health_link *l = h->port[slot].link;
    return (l && l->state != HEALTH_UNKNOWN) || t->port[slot].port != ID_NONE || h->port[slot].told;
}

struct judged {
    enum health_state state;
    uint32_t end; // slot that it is about
    enum { SURE, FEW_BITS, ERRORS_FEW_BITS, STALE, NOT_READ, ONE_END, STANDS, HOLES } why;
    int64_t since, sure_at;
};

// How many times as long it takes as at 400 Gb/s until enough bits have passed.
static double longer_of(const struct health_port *p)
{
    double scale = p->rate_mbps ? 400000.0 / p->rate_mbps : 1;
    return scale < HEALTH_LONGER ? scale : HEALTH_LONGER;
}

static int64_t stale_after(const struct health_port *p)
{
    return p->every > 20 * HEALTH_S ? 3 * p->every : HEALTH_MIN;
}

static void judge_end_view(const struct health *h, const struct tele_table *t, uint32_t slot,
                           struct judged *j)
{
    const struct health_port *p = &h->port[slot];
    double longer = longer_of(p);
    int64_t need = (int64_t)(12.0 * HEALTH_MIN * longer), long_need = (int64_t)(125.0 * HEALTH_MIN * longer);
    const struct health_link *l = p->link;
    const struct health_series *s = l ? l->series[health_end(l, slot)][SIGNAL_SYMBOL] : NULL;
    bool errors =
        s && s->n && p->at_errors - series_last(s) < long_need && p->at_errors - p->from < long_need;

    if (p->at_errors == 0) {
        j->state = HEALTH_UNSURE, j->why = ONE_END, j->end = slot;
    } else if (h->now - p->at_errors > stale_after(p)) {
        j->state = HEALTH_UNSURE, j->why = STALE, j->end = slot;
    } else if (health_is_blind(t, slot) ||
               covered(p, 12 * HEALTH_MIN) < (p->at_errors - p->from < 12 * HEALTH_MIN
                                                  ? (p->at_errors - p->from) * 3 / 4
                                                  : 9 * HEALTH_MIN)) {
        j->state = HEALTH_UNSURE, j->why = HOLES, j->end = slot;
    } else if (errors && j->why < ERRORS_FEW_BITS) {
        j->state = HEALTH_UNSURE, j->why = ERRORS_FEW_BITS, j->end = slot, j->sure_at = p->from + long_need;
    } else if (p->at_errors - p->from < need && j->why < ERRORS_FEW_BITS) {
        j->state = HEALTH_UNSURE, j->why = FEW_BITS, j->end = slot;
        j->sure_at = p->from + need > j->sure_at ? p->from + need : j->sure_at;
    }
    int64_t from = j->state == HEALTH_UNSURE ? p->from : p->from + need;
    j->since = from > j->since ? from : j->since;
}

static struct judged judge_view(const struct health *h, const struct tele_table *t, uint32_t slot)
{
    const struct health_port *p = &h->port[slot];
    const struct health_link *l = p->link;
    struct judged j = {.state = HEALTH_HEALTHY, .end = slot, .why = SURE, .since = INT64_MIN};
    if (l && l->state != HEALTH_UNKNOWN) {
        j.state = l->state;
        j.why = STANDS;
        j.since = l->state_since;
        return j;
    }
    bool far = p->mate != TELE_SLOT_NONE;
    if (p->at_errors == 0 && (!far || h->port[p->mate].at_errors == 0)) {
        j.state = HEALTH_UNKNOWN;
        j.why = NOT_READ;
        j.since = 0;
        return j;
    }
    judge_end_view(h, t, slot, &j);
    if (far)
        judge_end_view(h, t, p->mate, &j);
    if (l && l->healthy_since && l->healthy_since > j.since)
        j.since = l->healthy_since;
    return j;
}

// What is up again is no worse than what else there may be.
static enum health_state verdict_state(const struct health_link *l, int r)
{
    enum health_state s = health_rules[r].level[l->verdict[r].level].state;
    return s == HEALTH_DOWN && !l->down_since ? HEALTH_DEGRADED : s;
}

static int worst_verdict(const struct health_link *l)
{
    int worst = -1;
    for (int r = 0; r < HEALTH_RULES; r++) {
        const struct health_verdict *v = &l->verdict[r];
        if (v->level < 0)
            continue;
        if (worst < 0)
            worst = r;
        const struct health_verdict *w = &l->verdict[worst];
        enum health_state a = verdict_state(l, r), b = verdict_state(l, worst);
        if (a > b || (a == b && v->severity > w->severity))
            worst = r;
    }
    return worst;
}

static void say(const struct health *h, const struct tele_table *t, const struct judged *j,
                struct health_view *ret)
{
    const struct health_port *p = &h->port[j->end];
    long long seconds = (p->at_errors - p->from) / HEALTH_S;
    char name[160], seen[32];
    health_end_name(h, j->end, name, sizeof(name));
    snprintf(seen, sizeof(seen), "%lld %s", seconds < 120 ? seconds : seconds / 60,
             seconds < 120 ? "s" : "min");
    double n = 0, need = 12 * longer_of(p);
    switch (j->why) {
    case SURE:
    case STANDS:
        break;
    case FEW_BITS:
        text_print(ret->why, sizeof(ret->why), "no error in %s; to be sure of 1e-14 takes %.0f min", seen,
                   need);
        break;
    case ERRORS_FEW_BITS:
        n = series_count(p->link->series[health_end(p->link, j->end)][SIGNAL_SYMBOL], p->at_errors,
                         130 * HEALTH_MIN);
        text_print(ret->why, sizeof(ret->why),
                   "%.0f symbol error%s in %.20s at %.*s; to be sure of 1e-15 takes %.0f min", n,
                   n < 1.5 ? "" : "s", seen, (int)text_cut(name, 120), name, need / 12 * 125);
        break;
    case STALE:
        text_print(ret->why, sizeof(ret->why), "%s is not read for %lld min: %s", name,
                   (long long)((h->now - p->at_errors) / HEALTH_MIN),
                   tele_unread_name((enum tele_unread)t->port[j->end].unread));
        break;
    case NOT_READ:
        text_print(ret->why, sizeof(ret->why), "never read: %s",
                   tele_unread_name((enum tele_unread)t->port[j->end].unread));
        break;
    case ONE_END:
        text_print(ret->why, sizeof(ret->why), "only one end is read; %s: %s", name,
                   tele_unread_name((enum tele_unread)t->port[j->end].unread));
        break;
    case HOLES:
        text_print(ret->why, sizeof(ret->why), "%s at %s: what was counted is not all known",
                   health_is_blind(t, j->end) ? "a counter stands at its maximum" : "counters were cleared",
                   name);
        break;
    }
}

static void add_ratios(const struct health *h, uint32_t slot, struct health_view *ret)
{
    const struct health_port *p = &h->port[slot];
    const struct health_link *l = p->link;
    double raw = raw_ratio(p);
    if (!isnan(raw) && (isnan(ret->raw_ber) || raw > ret->raw_ber))
        ret->raw_ber = raw;
    int64_t ns = covered(p, 125 * HEALTH_MIN);
    double bits = p->rate_mbps * 1e6 * mono_seconds(ns);
    if (bits <= 0)
        return;
    double n = l ? series_count(l->series[health_end(l, slot)][SIGNAL_SYMBOL], p->at_errors, ns) : 0;
    if (isnan(ret->symbol_ber) || n / bits > ret->symbol_ber)
        ret->symbol_ber = n / bits;
}

void health_view(const struct health *h, const struct tele_table *t, uint32_t slot, struct health_view *ret)
{
    *ret = (struct health_view){.rule = "", .advice = "", .symbol_ber = NAN, .raw_ber = NAN};
    if (slot >= h->num || slot >= t->num)
        return;
    slot = health_lower(h, slot);
    uint32_t mate = h->port[slot].mate;
    const struct health_link *l = h->port[slot].link;
    struct judged j = judge_view(h, t, slot);
    ret->state = j.state;
    ret->since = j.since;
    ret->sure_at = j.state == HEALTH_UNSURE ? j.sure_at : 0;
    if (h->t)
        say(h, t, &j, ret);
    int r = l ? worst_verdict(l) : -1;
    if (r >= 0) {
        ret->rule = health_rules[r].id;
        ret->advice = health_advice(h, t, slot, ret->rule);
        if (j.why == STANDS || !ret->why[0])
            text_print(ret->why, sizeof(ret->why), "%s", l->verdict[r].reason ? l->verdict[r].reason : "");
        health_module_age(h, l, r, ret->why, sizeof(ret->why));
    }
    add_ratios(h, slot, ret);
    if (mate != TELE_SLOT_NONE)
        add_ratios(h, mate, ret);
}

uint32_t health_standing(const struct health *h, uint32_t slot, struct health_standing *ret, uint32_t max)
{
    const struct health_link *l = slot < h->num ? h->port[slot].link : NULL;
    uint32_t n = 0;
    for (int s = ALARM_CRITICAL; l && s >= 0; s--)
        for (unsigned r = 0; r < HEALTH_RULES && n < max; r++)
            if (l->verdict[r].level >= 0 && l->verdict[r].severity == s)
                ret[n++] =
                    (struct health_standing){health_rules[r].id, (enum alarm_severity)s, l->verdict[r].since,
                                             l->verdict[r].reason ? l->verdict[r].reason : ""};
    return n;
}

bool health_noted(const struct health *h, uint32_t slot)
{
    return slot < h->num && h->port[health_lower(h, slot)].link != NULL;
}

void health_ratios(const struct health *h, uint32_t slot, double *ret_symbol_ber, double *ret_raw_ber)
{
    struct health_view v = {.symbol_ber = NAN, .raw_ber = NAN};
    if (slot < h->num) {
        slot = health_lower(h, slot);
        add_ratios(h, slot, &v);
        if (h->port[slot].mate != TELE_SLOT_NONE)
            add_ratios(h, h->port[slot].mate, &v);
    }
    *ret_symbol_ber = v.symbol_ber;
    *ret_raw_ber = v.raw_ber;
}

enum health_state health_state_at(const struct health *h, const struct tele_table *t, uint32_t slot)
{
    return slot < h->num && slot < t->num ? judge_view(h, t, health_lower(h, slot)).state : HEALTH_UNKNOWN;
}

void health_count(const struct health *h, const struct tele_table *t, struct health_count *ret)
{
    uint32_t slot = 0;
    *ret = (struct health_count){0};
    health_count_some(h, t, &slot, UINT32_MAX, ret);
}

bool health_count_some(const struct health *h, const struct tele_table *t, uint32_t *slot, uint32_t most,
                       struct health_count *ret)
{
    for (; most > 0 && *slot < h->num; most--, ++*slot)
        if (count_as_link(h, t, *slot))
            ret->links[judge_view(h, t, *slot).state]++;
    return *slot >= h->num;
}

struct named {
    enum health_state state;
    uint32_t slot;
};

static int worst_first(const void *p, const void *q)
{
    const struct named *a = p, *b = q;
    if (a->state != b->state)
        return a->state > b->state ? -1 : 1;
    return a->slot < b->slot ? -1 : a->slot > b->slot;
}

uint32_t health_named(const struct health *h, uint32_t **ret_slots)
{
    uint32_t n = 0, k = 0;
    for (const struct health_link *l = h->first; l; l = l->next)
        n += l->state >= HEALTH_DEGRADED;
    struct named *list = xcalloc(n + 1, sizeof(*list));
    for (const struct health_link *l = h->first; l; l = l->next)
        if (l->state >= HEALTH_DEGRADED)
            list[k++] = (struct named){l->state, l->slot[0]};
    qsort(list, n, sizeof(*list), worst_first);
    *ret_slots = xcalloc(n + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++)
        (*ret_slots)[i] = list[i].slot;
    free(list);
    return n;
}

static bool end_clean(const struct health *h, const struct tele_table *t, uint32_t slot, int64_t window)
{
    const struct health_port *p = &h->port[slot];
    return p->at_errors && h->now - p->at_errors <= stale_after(p) && p->at_errors - p->from >= window &&
           covered(p, window) >= window / 4 * 3 && !health_is_blind(t, slot);
}

bool health_clean(const struct health *h, const struct tele_table *t, uint32_t slot, int64_t window)
{
    if (slot >= h->num || slot >= t->num || h->port[slot].mate == TELE_SLOT_NONE)
        return false;
    const struct health_link *l = h->port[slot].link;
    if (!end_clean(h, t, slot, window) || !end_clean(h, t, h->port[slot].mate, window))
        return false;
    if (!h->port[slot].up || (h->port[slot].up_at && h->now - h->port[slot].up_at < window))
        return false;
    for (unsigned r = 0; l && r < HEALTH_RULES; r++) {
        const struct health_verdict *v = &l->verdict[r];
        if (health_rules[r].level[0].state == HEALTH_UNKNOWN)
            continue;
        if (v->level >= 0 || (v->since && h->now - v->bad_at[0] < window))
            return false;
    }
    return true;
}

uint32_t health_host(const struct health *h, uint32_t slot)
{
    return slot < h->num ? h->port[slot].host : TELE_SLOT_NONE;
}

const char *health_advice(const struct health *h, const struct tele_table *t, uint32_t slot, const char *rule)
{
    const struct alarm_rule *r = alarm_rule(rule);
    uint32_t mate = health_peer(h, slot);
    bool down = strcmp(rule, "L01") == 0 || strcmp(rule, "L03") == 0;
    bool host = !t->port[slot].of_switch || (mate != TELE_SLOT_NONE && !t->port[mate].of_switch);
    if (down && health_is_back(h, slot))
        return HEALTH_BACK_ADVICE;
    return host && r->host_advice ? r->host_advice : r->advice;
}

bool health_is_back(const struct health *h, uint32_t slot)
{
    const struct health_link *l = slot < h->num ? h->port[slot].link : NULL;
    return l && !l->down_since && (l->verdict[RULE_L01].level >= 0 || l->verdict[RULE_L03].level >= 0);
}

uint32_t health_peer(const struct health *h, uint32_t slot)
{
    return slot < h->num ? h->port[slot].mate : TELE_SLOT_NONE;
}
