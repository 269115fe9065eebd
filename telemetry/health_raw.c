// SPDX-License-Identifier: Apache-2.0
// Bit errors before FEC, from the symbols that FEC has corrected: one bit error each at least, so the ratio
// is the least it can be. For a rise (L08) "now" is the mean of the running and the last five minutes: one
// bad minute is none, and three readings in a row must say so too. The median is that of quarters of an hour
// of a day. For what is high (L09) the newest reading decides, where the two before it are above half of the
// limit: no time before the fault is in it. Of a counter that fills up between two readings there are no
// three: what it had counted by then is the least that there was, and says enough.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/text.h"
#include "telemetry/health_priv.h"

#define BLOCK (5 * HEALTH_MIN)
#define QUARTER (15 * HEALTH_MIN)
#define QUARTERS HEALTH_QUARTERS
#define ENOUGH 4 // quarters that a median needs
#define IN_A_ROW 3

// Sixteen decades in 255 steps: 15.5 % each.
static uint8_t code(double ratio)
{
    double x = ratio > 1e-16 ? (log10(ratio) + 16) * 254 / 16 : 0;
    return (uint8_t)(1 + (x > 254 ? 254 : x + 0.5));
}

static double ratio_of(double c)
{
    return c <= 1 ? 0 : pow(10, (c - 1) * 16 / 254 - 16);
}

static double median_of(const struct health_port *p)
{
    uint16_t of[256] = {0};
    unsigned n = 0, seen = 0;
    for (unsigned i = 0; i < QUARTERS; i++) {
        if (p->history[i]) {
            of[p->history[i]]++;
            n++;
        }
    }
    if (n < ENOUGH)
        return NAN;
    for (unsigned c = 1; c < 256; c++) {
        seen += of[c];
        if (seen * 2 >= n)
            return ratio_of(c);
    }
    return NAN;
}

// Times from before a restart may be below 0.
static int64_t part_of(int64_t t, int64_t unit)
{
    return t / unit - (t % unit < 0);
}

static uint8_t *quarter(struct health_port *p, int64_t q)
{
    int64_t i = q % QUARTERS;
    return &p->history[i < 0 ? i + QUARTERS : i];
}

static void next_block(struct health_port *p, int64_t block)
{
    bool follows = block == p->block + 1;
    p->raw_now[0] = follows ? p->raw_now[1] : 0;
    p->raw_bits[0] = follows ? p->raw_bits[1] : 0;
    p->raw_now[1] = p->raw_bits[1] = 0;
    int64_t q0 = part_of(p->block, 3), q1 = part_of(block, 3);
    if (q0 != q1 && p->block) {
        *quarter(p, q0) = p->slot_bits > 0 ? code((double)p->slot_errors / (double)p->slot_bits) : 0;
        p->slot_errors = p->slot_bits = 0;
        for (int64_t q = q0 + 1; q < q1 && q < q0 + 1 + QUARTERS; q++)
            *quarter(p, q) = 0;
        *quarter(p, q1) = 0;
        p->median = (float)median_of(p);
    }
    p->block = block;
}

int64_t raw_age(const struct health_port *p, int64_t now, uint8_t ret_day[HEALTH_QUARTERS])
{
    int64_t newest = part_of(p->block, 3);
    for (int i = 0; i < QUARTERS; i++)
        ret_day[i] = *quarter((struct health_port *)p, newest - i);
    return part_of(now, BLOCK) - p->block;
}

void raw_resume(struct health_port *p, int64_t now, int64_t age, const uint8_t day[HEALTH_QUARTERS])
{
    p->block = part_of(now, BLOCK) - age;
    p->block += p->block == 0; // none
    for (int i = 0; i < QUARTERS; i++)
        *quarter(p, part_of(p->block, 3) - i) = day[i];
    p->median = (float)median_of(p);
}

double raw_ratio(const struct health_port *p)
{
    return p->raw_known ? (double)p->raw_last[0] : NAN;
}

static double raw_mean(const struct health_port *p)
{
    double bits = (double)p->raw_bits[0] + (double)p->raw_bits[1];
    return bits > 0 ? ((double)p->raw_now[0] + (double)p->raw_now[1]) / bits : NAN;
}

static double rise_limit(const struct health_port *p)
{
    const struct health_rule *r = &health_rules[RULE_L08];
    double m = (double)p->median, limit = r->level[0].limit * m;
    if (isnan(m))
        return NAN;
    return limit > r->least ? limit : r->least;
}

static void note_last(struct health_port *p, double now, bool full)
{
    bool more = full && (double)p->raw_last[0] > now; // it was no less before
    p->raw_last[2] = p->raw_last[1];
    p->raw_last[1] = p->raw_last[0];
    p->raw_last[0] = more ? p->raw_last[1] : (float)now;
    p->raw_filled = full;
    p->raw_known = true;
}

void raw_read(struct health *h, uint32_t slot, uint64_t corrected, bool full, int64_t t0, int64_t t1)
{
    struct health_port *p = &h->port[slot];
    double bits = p->rate_mbps * 1e6 * (double)(t1 - t0) / 1e9;
    if (bits <= 0 || down_training(h, slot, t0, t1))
        return;
    if (part_of(t1, BLOCK) != p->block)
        next_block(p, part_of(t1, BLOCK));
    p->raw_now[1] += (float)corrected;
    p->raw_bits[1] += (float)bits;
    p->slot_errors += (float)corrected;
    p->slot_bits += (float)bits;
    double now = (double)corrected / bits;
    note_last(p, now, full);
    now = (double)p->raw_last[0];
    if (now < health_rules[RULE_L08].least / 2) {
        p->raw_over = 0;
        return;
    }
    double rise = rise_limit(p), high = health_rules[RULE_L09].level[0].limit;
    bool over = now > high / 2 || (!isnan(rise) && now > rise / 2);
    p->raw_over = !over ? 0 : p->raw_over < 255 ? p->raw_over + 1 : 255;
    if (!over)
        return;
    struct health_link *l = health_link_get(h, slot);
    health_wake(l, RULE_L08);
    health_wake(l, RULE_L09);
}

void raw_blind(struct health *h, uint32_t slot)
{
    struct health_port *p = &h->port[slot];
    p->raw_now[0] = p->raw_now[1] = p->raw_bits[0] = p->raw_bits[1] = 0;
    p->raw_over = 0;
    p->raw_known = p->raw_filled = false;
    p->raw_last[0] = p->raw_last[1] = p->raw_last[2] = 0;
}

static int rise_level(struct health_link *l, const struct health_port *p, double now, double *limit,
                      struct health_finding *f)
{
    const struct health_rule *rule = &health_rules[RULE_L08];
    bool stands = l->verdict[RULE_L08].level >= 0;
    double base = stands ? (double)l->raw_base : (double)p->median;
    double clear = rule->clear_part * fmax(rule->level[0].limit * base, rule->least);
    *limit = rise_limit(p);
    if (stands && now > clear)
        health_bad(f, 0, p->at_speed);
    if (stands || isnan(*limit) || now <= *limit || p->raw_over < IN_A_ROW)
        return -1;
    l->raw_base = (float)base;
    return 0;
}

static int high_level(const struct health_port *p, double now, double *limit, struct health_finding *f)
{
    const struct health_rule *rule = &health_rules[RULE_L09];
    int level = -1;
    for (int i = 0; i < HEALTH_LEVELS; i++) {
        double half = rule->level[i].limit / 2;
        if (now > 2 * half &&
            (p->raw_filled || ((double)p->raw_last[1] > half && (double)p->raw_last[2] > half)))
            level = i;
        if (now > rule->clear_part * rule->level[i].limit)
            health_bad(f, i, p->at_speed);
    }
    *limit = rule->level[level > 0 ? level : 0].limit;
    return level;
}

static void judge_end(struct health *h, struct health_link *l, enum health_rule_index r, uint32_t slot,
                      struct health_finding *f)
{
    const struct health_port *p = &h->port[slot];
    double now = r == RULE_L08 ? raw_mean(p) : raw_ratio(p), limit;
    char name[160];
    if (isnan(now))
        return;
    f->seen_to = p->at_speed < f->seen_to ? p->at_speed : f->seen_to;
    int level = r == RULE_L08 ? rise_level(l, p, now, &limit, f) : high_level(p, now, &limit, f);
    if (level < 0 || level < f->level)
        return;
    f->level = level;
    f->severity = health_rules[r].level[level].severity;
    health_bad(f, level, p->at_speed);
    bool least = r == RULE_L09 && p->raw_filled;
    text_print(f->reason, sizeof(f->reason), "raw bit error ratio %.1e%s at %s, limit %.1e%s", now,
               least ? " or more" : "", health_end_name(h, slot, name, sizeof(name)), limit,
               r == RULE_L08 ? " (ten times the median of 24 h)"
               : least       ? ": the counter has filled up since the last reading"
                             : "");
    snprintf(f->evidence, sizeof(f->evidence), "{\"raw_ber\":%.3e,\"limit\":%.3e}", now, limit);
}

// It stands: what it is now, and when that is over.
static void now_text(struct health *h, const struct health_link *l, enum health_rule_index r,
                     struct health_finding *f)
{
    const struct health_rule *rule = &health_rules[r];
    double worst = NAN;
    uint32_t at = TELE_SLOT_NONE;
    char name[160], clean[24];
    for (int e = 0; e < 2; e++) {
        double now = l->slot[e] != TELE_SLOT_NONE ? raw_ratio(&h->port[l->slot[e]]) : NAN;
        if (!isnan(now) && (isnan(worst) || now > worst)) {
            worst = now;
            at = l->slot[e];
        }
    }
    if (at == TELE_SLOT_NONE)
        return;
    double limit = r == RULE_L08 ? fmax(rule->level[0].limit * (double)l->raw_base, rule->least)
                                 : rule->level[l->verdict[r].level].limit;
    health_span(rule->clear_ns, clean, sizeof(clean));
    text_print(f->reason, sizeof(f->reason),
               "raw bit error ratio %.1e at %s; over when it has been below %.1e for %s", worst,
               health_end_name(h, at, name, sizeof(name)), rule->clear_part * limit, clean);
    snprintf(f->evidence, sizeof(f->evidence), "{\"raw_ber\":%.3e}", worst);
}

void raw_judge(struct health *h, struct health_link *l, enum health_rule_index r, struct health_finding *f)
{
    for (int e = 0; e < 2; e++)
        if (l->slot[e] != TELE_SLOT_NONE)
            judge_end(h, l, r, l->slot[e], f);
    if (f->level < 0 && l->verdict[r].level >= 0)
        now_text(h, l, r, f);
}
