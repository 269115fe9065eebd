// SPDX-License-Identifier: Apache-2.0
// The rules of counts, speed and waits, and what becomes of a look at any rule: a verdict that
// stays until the rule's time has passed without anything that speaks against it.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/guid.h"
#include "lib/text.h"
#include "lib/xalloc.h"
#include "telemetry/health_priv.h"
#include "telemetry/rate.h"

// Between two tellings of what stands on one link, so that what they say is of one moment.
#define AGAIN HEALTH_MIN
#define AGAIN_HELD (5 * HEALTH_MIN) // there are many of these, and they change always
#define PARTS 5
#define BIT(c) (1ull << (c))

// To when both ends are known. An end that has never been read, or is gone, is not waited for.
static int64_t seen_to(const struct health *h, const struct health_link *l)
{
    int64_t to = INT64_MAX;
    for (int e = 0; e < 2; e++) {
        uint32_t s = l->slot[e];
        if (s != TELE_SLOT_NONE && h->port[s].at_errors && h->port[s].at_errors < to)
            to = h->port[s].at_errors;
    }
    return to == INT64_MAX ? 0 : to;
}

const char *health_time_of_day(const struct health *h, int64_t at, char buf[24])
{
    struct tm tm;
    buf[0] = 0;
    if (h->o.wall) {
        time_t s = (time_t)(h->o.wall(h->o.wall_arg, at) / HEALTH_S);
        gmtime_r(&s, &tm);
        strftime(buf, 24, "%H:%M:%S UTC", &tm);
    }
    return buf;
}

void health_span(int64_t ns, char *buf, size_t size)
{
    int64_t s = ns / HEALTH_S;
    if (s < 120)
        snprintf(buf, size, "%lld s", (long long)s);
    else if (s < 7200)
        snprintf(buf, size, "%lld min", (long long)s / 60);
    else
        snprintf(buf, size, "%.1f h", (double)s / 3600);
}

static void window_text(int64_t ns, char *buf, size_t size)
{
    int64_t s = ns / HEALTH_S;
    if (s == 3600)
        snprintf(buf, size, "an hour");
    else if (s >= 120)
        snprintf(buf, size, "%lld min", (long long)s / 60);
    else
        snprintf(buf, size, "%lld s", (long long)s);
}

static double scale_of(const struct health *h, const struct health_rule *rule, const struct health_link *l)
{
    uint32_t mbps = h->port[l->slot[0]].rate_mbps;
    if (l->slot[1] != TELE_SLOT_NONE && mbps == 0)
        mbps = h->port[l->slot[1]].rate_mbps;
    return rule->scaled ? mbps / 400000.0 : 1;
}

// A bit error ratio takes bits: a slower link has its windows longer, up to four times, so that as many pass.
// In the same time it may have in proportion fewer errors; but a few that come together by chance are no
// ratio. Few errors come unevenly: where the rule says so the same number counts in a longer window too.
static int windows_of(const struct health *h, const struct health_rule *rule, int i, double scale,
                      int64_t window[3], double limit[3])
{
    const struct health_level *v = &rule->level[i];
    int n = 0;
    double longer = scale < 1 ? 1 / scale : 1, base = v->limit;
    if (rule->scaled && h->o.ber_limit > 0)
        base = h->o.ber_limit * 4e11 * mono_seconds(v->window);
    longer = longer < HEALTH_LONGER ? longer : HEALTH_LONGER;
    if (longer > 1) {
        window[n] = (int64_t)((double)v->window * longer);
        limit[n++] = base * scale * longer;
        if (i == 1 && rule->stretch > 0 && longer * rule->stretch <= HEALTH_LONGER) {
            window[n] = (int64_t)((double)v->window * longer * rule->stretch);
            limit[n] = limit[n - 1];
            n++;
        }
    }
    window[n] = v->window;
    limit[n++] = base * scale;
    return n;
}

struct excess { // the window that is exceeded most
    double part;
    int level;
};

static void count_window(struct health *h, struct health_link *l, const struct health_rule *rule, int e,
                         int i, int64_t window, double limit, struct excess *x, struct health_finding *f)
{
    const struct health_series *s = l->series[e][rule->signal];
    const struct health_port *p = &h->port[l->slot[e]];
    int64_t at = rule->signal == SIGNAL_UNCORRECTABLE ? p->at_speed : p->at_errors;
    int level = rule->either ? 0 : i;
    double n = series_count(s, at, window);
    char name[160], text[32];
    // After a clean time it takes another one.
    if (n <= limit || n < rule->least - 1e-6 || level < f->level || at - series_last(s) >= rule->clear_ns)
        return;
    f->level = level;
    f->severity = rule->level[i].severity;
    if (level > 0) // the lower one counts from the last error
        f->bad_at[level] = at;
    double part = n / (limit + 1e-9);
    if (level == x->level && part <= x->part)
        return;
    *x = (struct excess){part, level};
    window_text(window, text, sizeof(text));
    health_end_name(h, l->slot[e], name, sizeof(name));
    text_print(f->reason, sizeof(f->reason), "%.0f %s within %s at %s, limit %.3g", n < 1 ? 1 : n, rule->what,
               text, name, limit);
    snprintf(f->evidence, sizeof(f->evidence),
             "{\"end\":\"" GUID_FMT "/%u\",\"counted\":%.2f,\"window_seconds\":%lld,\"limit\":%.4g}",
             GUID_ARG(h->t->port[l->slot[e]].node_guid), h->t->port[l->slot[e]].num, n,
             (long long)(window / HEALTH_S), limit);
}

// Below all limits, and watched for a while: what it was, and when it is over.
static void fade_text(const struct health *h, const struct health_rule *rule, const char *was,
                      struct health_finding *f)
{
    char last[24], over[24], clean[32];
    int n;
    health_time_of_day(h, f->bad_at[0], last);
    health_time_of_day(h, f->bad_at[0] + rule->clear_ns, over);
    window_text(rule->clear_ns, clean, sizeof(clean));
    was += strncmp(was, "was ", 4) == 0 ? 4 : 0;
    n = (int)strcspn(was, ";");
    n = n > 120 ? (int)text_cut(was, 120) : n;
    if (last[0])
        text_print(f->reason, sizeof(f->reason),
                   "was %.*s; the last one before %s, over at %s if no more come", n, was, last, over);
    else
        text_print(f->reason, sizeof(f->reason), "was %.*s; over when none has come for %s", n, was, clean);
}

static void count_judge(struct health *h, struct health_link *l, const struct health_rule *rule,
                        struct health_finding *f)
{
    double scale = scale_of(h, rule, l), limit[3];
    struct excess x = {0, -1};
    int64_t window[3];
    f->seen_to = seen_to(h, l);
    for (int e = 0; e < 2; e++) {
        const struct health_series *s = l->series[e][rule->signal];
        if (!s || s->n == 0)
            continue;
        health_bad(f, 0, series_last(s));
        for (int i = 0; i < HEALTH_LEVELS && rule->level[i].window && scale > 0; i++) {
            int n = windows_of(h, rule, i, scale, window, limit);
            for (int k = 0; k < n; k++)
                count_window(h, l, rule, e, i, window[k], limit[k], &x, f);
        }
    }
    const struct health_verdict *v = &l->verdict[rule - health_rules];
    if (f->level < 0 && v->level >= 0 && v->reason && f->bad_at[0] != INT64_MIN)
        fade_text(h, rule, v->reason, f);
}

static void sustained_judge(struct health *h, struct health_link *l, const struct health_rule *rule,
                            struct health_finding *f)
{
    int64_t part = rule->level[0].window / PARTS;
    double limit = rule->level[0].limit * mono_seconds(part);
    f->seen_to = seen_to(h, l);
    for (int e = 0; e < 2; e++) {
        const struct health_series *s = l->series[e][rule->signal];
        if (!s || s->n == 0)
            continue;
        const struct health_port *p = &h->port[l->slot[e]];
        int over = 0;
        double sum = 0, n;
        for (int i = 0; i < PARTS; i++, sum += n) {
            n = series_count(s, p->at_errors - i * part, part);
            over += n > limit;
            if (i == 0 && n > limit)
                health_bad(f, 0, p->at_errors);
        }
        if (over < PARTS)
            continue;
        char name[160];
        f->level = 0;
        f->severity = rule->level[0].severity;
        text_print(f->reason, sizeof(f->reason), "%.3g %s a second for 10 min at %s, limit %.3g",
                   sum / mono_seconds(rule->level[0].window), rule->what,
                   health_end_name(h, l->slot[e], name, sizeof(name)), rule->level[0].limit);
        snprintf(f->evidence, sizeof(f->evidence),
                 "{\"end\":\"" GUID_FMT "/%u\",\"counted\":%.0f,\"window_seconds\":600}",
                 GUID_ARG(h->t->port[l->slot[e]].node_guid), h->t->port[l->slot[e]].num, sum);
    }
}

// --- waits ---

#define HELD_MEAN (60.0 * HEALTH_S)

// Most ports wait a little now and then: that is told from the ticks alone (the capacity is a fifth less than
// the rate at most).
void held_read(struct health *h, uint32_t slot, uint64_t ticks, int64_t t0, int64_t t1)
{
    const struct health_rule *rule = &health_rules[RULE_C01];
    struct health_port *p = &h->port[slot];
    double about = (double)ticks * p->tick, most = p->rate_mbps * (1e6 / 8 * 0.75 / 1e9) * (double)(t1 - t0);
    struct tele_use use;
    if (!p->link && about < rule->level[0].limit * rule->clear_part * most)
        return;
    tele_use(h->t, slot, &use);
    if (isnan(use.held) || (!p->link && use.held < rule->level[0].limit * rule->clear_part))
        return;
    struct health_link *l = health_link_get(h, slot);
    int e = health_end(l, slot);
    double weight = 1 - exp(-(double)(t1 - t0) / HELD_MEAN);
    bool going_on = l->held[e] > 0;
    l->held[e] = (float)(going_on ? (double)l->held[e] * (1 - weight) + use.held * weight : use.held);
    for (int i = 0; i < HEALTH_LEVELS; i++) {
        double limit = rule->level[i].limit, held = (double)l->held[e];
        if (held < limit)
            l->held_since[e][i] = 0;
        else if (!l->held_since[e][i])
            l->held_since[e][i] = t0 > 0 ? t0 : 1, health_wake(l, RULE_C01);
        if (held >= limit * rule->clear_part)
            l->held_last[e][i] = t1;
    }
}

static void held_judge(struct health *h, struct health_link *l, struct health_finding *f)
{
    const struct health_rule *rule = &health_rules[RULE_C01];
    f->seen_to = seen_to(h, l);
    for (int e = 0; e < 2; e++) {
        if (l->slot[e] == TELE_SLOT_NONE)
            continue;
        int64_t at = h->port[l->slot[e]].at_errors;
        for (int i = 0; i < HEALTH_LEVELS; i++) {
            int64_t since = l->held_since[e][i];
            if (l->held_last[e][i])
                f->bad_at[i] = l->held_last[e][i] > f->bad_at[i] ? l->held_last[e][i] : f->bad_at[i];
            if (!since || at - since < rule->level[i].window || i < f->level)
                continue;
            char name[160];
            f->level = i;
            f->severity = rule->level[i].severity;
            health_end_name(h, l->slot[e], name, sizeof(name));
            text_print(f->reason, sizeof(f->reason),
                       "%.1f %% of the time %s could not send, for %lld min; limit %.0f %%",
                       (double)l->held[e] * 100, name, (long long)((at - since) / HEALTH_MIN),
                       rule->level[i].limit * 100);
            snprintf(f->evidence, sizeof(f->evidence), "{\"end\":\"" GUID_FMT "/%u\",\"held\":%.4f}",
                     GUID_ARG(h->t->port[l->slot[e]].node_guid), h->t->port[l->slot[e]].num,
                     (double)l->held[e]);
        }
    }
}

// --- verdicts ---

static void tell(struct health *h, struct health_link *l, enum health_rule_index r,
                 const struct health_finding *f)
{
    struct health_verdict *v = &l->verdict[r];
    v->told = h->now;
    v->untold = false;
    h->changes++;
    if (f && f->reason[0]) {
        free(v->reason);
        v->reason = xstrdup(f->reason);
    }
    if (f && f->evidence[0]) {
        free(v->evidence);
        v->evidence = xstrdup(f->evidence);
    }
    if (h->sink.raise)
        h->sink.raise(h->sink.arg, health_rules[r].id, l->slot[0], v->severity, v->reason ? v->reason : "",
                      v->evidence ? v->evidence : "{}");
}

static void clear(struct health *h, struct health_link *l, enum health_rule_index r)
{
    struct health_verdict *v = &l->verdict[r];
    v->level = -1;
    l->healthy_since = h->now;
    free(v->reason);
    free(v->evidence);
    v->reason = v->evidence = NULL;
    v->untold = false;
    h->changes++;
    if (h->sink.clear)
        h->sink.clear(h->sink.arg, health_rules[r].id, l->slot[0]);
}

static void take(struct health *h, struct health_link *l, enum health_rule_index r, bool again,
                 const struct health_finding *f)
{
    struct health_verdict *v = &l->verdict[r];
    int64_t after = health_rules[r].clear_ns;
    if (v->level < 0 && f->level < 0)
        return;
    if (v->level < 0) {
        v->since = h->now;
        v->bad_at[0] = v->bad_at[1] = INT64_MIN;
    }
    for (int i = 0; i < HEALTH_LEVELS; i++)
        v->bad_at[i] = f->bad_at[i] > v->bad_at[i] ? f->bad_at[i] : v->bad_at[i];
    if (f->level > v->level || (f->level >= 0 && f->level == v->level && f->severity != v->severity)) {
        v->level = (int8_t)f->level;
        v->severity = (uint8_t)f->severity;
        tell(h, l, r, f);
        return;
    }
    int level = v->level;
    while (level >= 0 && level > f->level &&
           (v->bad_at[level] == INT64_MIN || f->seen_to - v->bad_at[level] >= after))
        level--;
    if (level < 0) {
        clear(h, l, r);
    } else if (level < v->level) {
        v->level = (int8_t)level;
        v->severity = (uint8_t)health_rules[r].level[level].severity;
        tell(h, l, r, f);
    } else if (f->reason[0] && (again || f->at_once) && (!v->reason || strcmp(v->reason, f->reason) != 0)) {
        tell(h, l, r, f);
    }
}

// Whether what stands on the link is to be told again, all of it: since the last time that one was told.
static bool is_due(const struct health *h, const struct health_link *l)
{
    int64_t last = INT64_MIN, every = AGAIN_HELD;
    for (unsigned r = 0; r < HEALTH_RULES; r++) {
        const struct health_verdict *v = &l->verdict[r];
        if (v->level < 0)
            continue;
        last = v->told > last ? v->told : last;
        every = health_rules[r].kind != KIND_HELD ? AGAIN : every;
    }
    return last != INT64_MIN && h->now - last >= every;
}

// Nothing stands, and nothing has happened that the rule looks at.
static bool idle(const struct health *h, const struct health_link *l, const struct health_rule *rule)
{
    const struct health_port *a = &h->port[l->slot[0]],
                             *b = l->slot[1] == TELE_SLOT_NONE ? a : &h->port[l->slot[1]];
    switch (rule->kind) {
    case KIND_COUNT:
    case KIND_SUSTAINED:
        return !l->series[0][rule->signal] && !l->series[1][rule->signal];
    case KIND_DOWN:
        return !l->down_since;
    case KIND_FLAP:
        return !l->downs && !l->series[0][rule->signal] && !l->series[1][rule->signal];
    case KIND_REBOOT:
        return true;
    case KIND_SLOW:
        return !l->slow_since;
    case KIND_RAW_RISE:
    case KIND_RAW_HIGH:
        return !a->raw_over && !b->raw_over;
    case KIND_HOT:
        return !a->hot_at && !b->hot_at;
    case KIND_OPTICS:
        return !health_optics_bad(a) && !health_optics_bad(b);
    case KIND_HELD:
        return !l->held_since[0][0] && !l->held_since[1][0];
    }
    return false;
}

static void judge(struct health *h, struct health_link *l, enum health_rule_index r, struct health_finding *f)
{
    const struct health_rule *rule = &health_rules[r];
    switch (rule->kind) {
    case KIND_COUNT:
        count_judge(h, l, rule, f);
        break;
    case KIND_SUSTAINED:
        sustained_judge(h, l, rule, f);
        break;
    case KIND_DOWN:
        down_judge(h, l, r, f);
        break;
    case KIND_FLAP:
        flap_judge(h, l, f);
        break;
    case KIND_REBOOT:
        break;
    case KIND_SLOW:
        slow_judge(h, l, f);
        break;
    case KIND_RAW_RISE:
    case KIND_RAW_HIGH:
        raw_judge(h, l, r, f);
        break;
    case KIND_HOT:
        hot_judge(h, l, f);
        break;
    case KIND_OPTICS:
        optics_judge(h, l, f);
        break;
    case KIND_HELD:
        held_judge(h, l, f);
        break;
    }
}

static enum health_state state_of(const struct health_link *l)
{
    enum health_state worst = HEALTH_UNKNOWN;
    for (unsigned r = 0; r < HEALTH_RULES; r++) {
        if (l->verdict[r].level < 0)
            continue;
        enum health_state s = health_rules[r].level[l->verdict[r].level].state;
        if (s == HEALTH_DOWN && !l->down_since)
            s = HEALTH_DEGRADED; // it is back, and watched for a while
        worst = s > worst ? s : worst;
    }
    return worst;
}

static void set_state(struct health *h, struct health_link *l)
{
    enum health_state s = state_of(l);
    if (s != l->state) {
        l->state = s;
        l->state_since = h->now;
    }
}

// What the rule counts. Downs are seen by the subnet manager too.
static uint64_t counters_of(const struct health_rule *rule)
{
    static const uint64_t of[SIGNALS + 1] = {
        [SIGNAL_SYMBOL] = BIT(TELE_SYMBOL_ERRORS),
        [SIGNAL_RECOVERY] = BIT(TELE_LINK_ERROR_RECOVERY),
        [SIGNAL_RCV] = BIT(TELE_RCV_ERRORS),
        [SIGNAL_DISCARD] = BIT(TELE_XMIT_DISCARDS),
        [SIGNAL_CONSTRAINT] = BIT(TELE_XMIT_CONSTRAINT_ERRORS) | BIT(TELE_RCV_CONSTRAINT_ERRORS),
        [SIGNAL_VL15] = BIT(TELE_VL15_DROPPED),
        [SIGNAL_INTEGRITY] =
            BIT(TELE_LOCAL_LINK_INTEGRITY_ERRORS) | BIT(TELE_EXCESSIVE_BUFFER_OVERRUN_ERRORS),
        [SIGNAL_UNCORRECTABLE] = BIT(TELE_FEC_UNCORRECTABLE_BLOCKS),
    };
    bool raw = rule->kind == KIND_RAW_RISE || rule->kind == KIND_RAW_HIGH;
    return raw ? BIT(TELE_FEC_CORRECTED_SYMBOLS) : of[rule->signal];
}

#define FULL                                                                                                 \
    "; the counter stands at its maximum now: whether there are more is not known until it is cleared"

// A counter that counts no further does not say that all is well: what stands stays, and takes a clean time
// from when it counts again.
static void hold_blind(struct health *h, struct health_link *l, enum health_rule_index r,
                       struct health_finding *f)
{
    struct health_verdict *v = &l->verdict[r];
    uint64_t full = 0;
    for (int e = 0; e < 2; e++)
        if (l->slot[e] != TELE_SLOT_NONE)
            full |= h->t->port[l->slot[e]].full;
    if (v->level < 0 || !(full & counters_of(&health_rules[r])))
        return;
    health_bad(f, v->level, h->now);
    if (f->level < 0)
        f->reason[0] = 0;
    if (f->level < 0 && !strstr(v->reason ? v->reason : "", FULL))
        text_print(f->reason, sizeof(f->reason), "%.*s%s", v->reason ? (int)text_cut(v->reason, 110) : 0,
                   v->reason ? v->reason : "", FULL);
    if (f->level < 0 && f->reason[0]) {
        v->severity = (uint8_t)health_rules[r].level[v->level].severity;
        tell(h, l, r, f);
    }
}

static void judge_rule(struct health *h, struct health_link *l, unsigned r, bool again)
{
    struct health_finding f;
    f.level = -1;
    f.bad_at[0] = f.bad_at[1] = INT64_MIN;
    f.seen_to = h->now;
    f.severity = ALARM_INFO;
    f.reason[0] = f.evidence[0] = 0;
    f.at_once = false;
    judge(h, l, r, &f);
    hold_blind(h, l, r, &f);
    take(h, l, r, again, &f);
    if (l->verdict[r].level >= 0 && l->verdict[r].untold)
        tell(h, l, r, NULL);
}

// Something of the link was told now: what else stands there is to say nothing older.
static void tell_with_it(struct health *h, struct health_link *l)
{
    bool any = false;
    for (unsigned r = 0; r < HEALTH_RULES; r++)
        any = any || (l->verdict[r].level >= 0 && l->verdict[r].told == h->now);
    for (unsigned r = 0; any && r < HEALTH_RULES; r++)
        if (l->verdict[r].level >= 0 && l->verdict[r].told != h->now)
            judge_rule(h, l, r, true);
}

void judge_link(struct health *h, struct health_link *l)
{
    uint32_t todo = l->awake;
    if (!todo)
        return;
    bool again = is_due(h, l);
    for (; todo; todo &= todo - 1) {
        unsigned r = (unsigned)__builtin_ctz(todo);
        if (l->verdict[r].level < 0 && idle(h, l, &health_rules[r]))
            l->awake &= ~(1u << r);
        else
            judge_rule(h, l, r, again);
    }
    tell_with_it(h, l);
    set_state(h, l);
}

void judge_forget(struct health *h, struct health_link *l)
{
    for (unsigned r = 0; r < HEALTH_RULES; r++)
        if (l->verdict[r].level >= 0)
            clear(h, l, r);
    set_state(h, l);
}
