// SPDX-License-Identifier: Apache-2.0
// The rules of modules: temperature (L16), what a module says against itself (L17). Readings come from
// elsewhere and seldom, with the time that they were taken at: nothing clears because one is late, and what
// stands says how old it is. After a day without one nothing is known any more, and nothing stands.
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/text.h"
#include "telemetry/health_priv.h"

#define OLD HEALTH_HOUR // from then on the age is said

// What stood before a restart, and neither end has been read since: not over at once, the file is read later
// than the first sweep, nor as long as it says nothing of them, for a day.
static void hold_unread(struct health *h, const struct health_link *l, enum health_rule_index r,
                        struct health_finding *f)
{
    bool unread = false;
    for (int e = 0; e < 2; e++) {
        struct health_port *p = l->slot[e] != TELE_SLOT_NONE ? &h->port[l->slot[e]] : NULL;
        if (p && (r == RULE_L16 ? p->hot_at : p->optics_at) != 0)
            return;
        if (p && p->module_unread && p->unread_from == 0)
            p->unread_from = h->now > 0 ? h->now : 1;
        unread |= p && p->module_unread && h->now - p->unread_from < HEALTH_MODULE_GONE;
    }
    if (l->verdict[r].level >= 0 && (unread || l->verdict[r].untold))
        health_bad(f, l->verdict[r].level, h->now);
}

#define AGES (1000000 * HEALTH_HOUR) // older than any

// Loop time of a reading, which may be from before the loop's beginning; not 0, which is none.
static int64_t time_of(int64_t at)
{
    return at < -AGES ? -AGES : at == 0 ? 1 : at;
}

// Behind a reason, with the age by powers of two, so that it is told a few times a day; of less than OLD: 0.
static int64_t age_of(const struct health *h, int64_t at)
{
    int64_t hours = 1;
    if (h->now - at < OLD)
        return 0;
    while (hours * 2 * HEALTH_HOUR <= h->now - at)
        hours *= 2;
    return hours;
}

#define NOT_READ "; not read for "
static void add_age(struct health_finding *f, int64_t hours)
{
    size_t n = strlen(f->reason), k = strlen(f->evidence);
    if (hours == 0 || k < 2)
        return;
    text_print(f->reason + n, sizeof(f->reason) - n, NOT_READ "%lld h", (long long)hours);
    snprintf(f->evidence + k - 1, sizeof(f->evidence) - k + 1, ",\"not_read_hours\":%lld}", (long long)hours);
}

// Read already, an older file in the place of a younger one, or from before another cable came.
static bool is_old(const struct health_port *p, int64_t last, int64_t at)
{
    return (last != 0 && at <= last) || (p->module_from != 0 && at <= p->module_from);
}

void health_module_unread(struct health *h, uint32_t slot)
{
    if (slot < h->num)
        h->port[slot].module_unread = true;
}

// --- temperature ---

void hot_judge(struct health *h, struct health_link *l, struct health_finding *f)
{
    const struct health_rule *rule = &health_rules[RULE_L16];
    hold_unread(h, l, RULE_L16, f);
    for (int e = 0; e < 2; e++) {
        uint32_t slot = l->slot[e];
        const struct health_port *p = slot != TELE_SLOT_NONE ? &h->port[slot] : NULL;
        if (!p || p->hot_at == 0 || h->now - p->hot_at >= HEALTH_MODULE_GONE)
            continue;
        double now = p->celsius10 / 10.0, coldest = now;
        for (int i = 0; i < 7; i++)
            if (p->coldest[i] != INT16_MIN && p->coldest[i] / 10.0 < coldest)
                coldest = p->coldest[i] / 10.0;
        int level = now - coldest > rule->level[1].limit ? 1 : now > rule->level[0].limit ? 0 : -1;
        f->seen_to = p->hot_at < f->seen_to ? p->hot_at : f->seen_to;
        if (now >= rule->level[0].limit - 3)
            health_bad(f, 0, p->hot_at);
        if (level == 1)
            health_bad(f, 1, p->hot_at);
        if (level < 0 || level < f->level)
            continue;
        char name[160];
        f->level = level;
        f->severity = rule->level[level].severity;
        health_end_name(h, slot, name, sizeof(name));
        if (level == 1)
            text_print(f->reason, sizeof(f->reason), "module %.1f C at %s, %.1f C an hour ago or less", now,
                       name, coldest);
        else
            text_print(f->reason, sizeof(f->reason), "module %.1f C at %s, limit %.0f", now, name,
                       rule->level[0].limit);
        snprintf(f->evidence, sizeof(f->evidence), "{\"celsius\":%.1f,\"coldest_hour\":%.1f}", now, coldest);
        add_age(f, age_of(h, p->hot_at));
    }
}

void health_module(struct health *h, uint32_t slot, double celsius, int64_t at)
{
    if (slot >= h->num)
        return;
    struct health_port *p = &h->port[slot];
    at = time_of(at);
    int64_t unit = (at + AGES) / (10 * HEALTH_MIN);
    if (isnan(celsius) || celsius < -200 || celsius > 1000) {
        p->hot_at = p->unread_from = 0;
        p->module_unread = false;
        for (int i = 0; i < 7; i++)
            p->coldest[i] = INT16_MIN;
        return;
    }
    if (is_old(p, p->hot_at, at))
        return;
    p->celsius10 = (int16_t)lround(celsius * 10);
    bool follows = p->hot_at && unit - p->cold_unit < 7;
    for (int64_t u = follows ? p->cold_unit + 1 : unit; u <= (follows ? unit : unit + 6); u++)
        p->coldest[u % 7] = INT16_MIN;
    p->cold_unit = unit;
    int16_t *c = &p->coldest[unit % 7];
    if (*c == INT16_MIN || p->celsius10 < *c)
        *c = p->celsius10;
    p->hot_at = at;
    p->unread_from = 0;
    for (int i = 0; i < 7; i++)
        if (p->coldest[i] != INT16_MIN &&
            (p->celsius10 - p->coldest[i] > 100 || p->celsius10 > health_rules[RULE_L16].level[0].limit * 10))
            health_wake(health_link_get(h, slot), RULE_L16);
}

// --- what it says against itself ---

static void optics_text(const struct health *h, uint32_t slot, const struct tele_optics *o,
                        struct health_finding *f)
{
    const struct tele_port *t = &h->t->port[slot];
    char name[160];
    health_end_name(h, slot, name, sizeof(name));
    if (o->fault)
        text_print(f->reason, sizeof(f->reason), "the module at %s says that it has failed", name);
    else
        text_print(f->reason, sizeof(f->reason),
                   "too %s light: %.1f dBm %s on lane %u at %s, the module's own limit %.1f",
                   o->high ? "much" : "little", (double)o->dbm, o->rx ? "received" : "sent", o->lane, name,
                   (double)o->limit);
    int n = snprintf(f->evidence, sizeof(f->evidence), "{\"end\":\"" GUID_FMT "/%u\",\"fault\":%s",
                     GUID_ARG(t->node_guid), t->num, o->fault ? "true" : "false");
    if (o->lane > 0)
        n += snprintf(f->evidence + n, sizeof(f->evidence) - (size_t)n,
                      ",\"lane\":%u,\"received\":%s,\"dbm\":%.2f,\"limit_dbm\":%.2f", o->lane,
                      o->rx ? "true" : "false", (double)o->dbm, (double)o->limit);
    snprintf(f->evidence + n, sizeof(f->evidence) - (size_t)n, "}");
}

void optics_judge(struct health *h, struct health_link *l, struct health_finding *f)
{
    hold_unread(h, l, RULE_L17, f);
    for (int e = 0; e < 2; e++) {
        uint32_t slot = l->slot[e];
        const struct health_port *p = slot != TELE_SLOT_NONE ? &h->port[slot] : NULL;
        if (!p || p->optics_at == 0 || h->now - p->optics_at >= HEALTH_MODULE_GONE)
            continue;
        f->seen_to = p->optics_at < f->seen_to ? p->optics_at : f->seen_to;
        if (p->optics_bad_at)
            health_bad(f, 0, p->optics_bad_at);
        if (!health_optics_bad(p) || (f->level == 0 && !p->optics.fault))
            continue;
        f->level = 0;
        f->severity = health_rules[RULE_L17].level[0].severity;
        optics_text(h, slot, &p->optics, f);
        add_age(f, age_of(h, p->optics_at));
    }
}

void health_optics(struct health *h, uint32_t slot, const struct tele_optics *o, int64_t at)
{
    if (slot >= h->num)
        return;
    struct health_port *p = &h->port[slot];
    at = time_of(at);
    if (o == NULL) {
        p->module_unread = false;
        p->optics_at = p->optics_bad_at = p->unread_from = 0;
        return;
    }
    if (is_old(p, p->optics_at, at))
        return;
    // What was before the first good reading is not known: it takes another one, and time between the two.
    bool was_bad = health_optics_bad(p);
    p->optics = *o;
    p->optics_at = at;
    p->unread_from = 0;
    if (was_bad || health_optics_bad(p))
        p->optics_bad_at = at;
    if (health_optics_bad(p))
        health_wake(health_link_get(h, slot), RULE_L17);
}

void health_module_age(const struct health *h, const struct health_link *l, enum health_rule_index r,
                       char *why, size_t size)
{
    int64_t at = INT64_MIN;
    size_t n = strlen(why);
    for (int e = 0; e < 2; e++) {
        const struct health_port *p = l->slot[e] != TELE_SLOT_NONE ? &h->port[l->slot[e]] : NULL;
        int64_t one = !p ? 0 : r == RULE_L16 ? p->hot_at : r == RULE_L17 ? p->optics_at : 0;
        at = one != 0 && one > at ? one : at;
    }
    if (at != INT64_MIN && h->now - at >= OLD) {
        char *told = strstr(why, NOT_READ); // when it was told last
        n = told != NULL ? (size_t)(told - why) : n;
        text_print(why + n, size - n, "; as it was %lld h ago, not read since",
                   (long long)((h->now - at) / OLD));
    }
}
