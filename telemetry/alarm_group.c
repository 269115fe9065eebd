// SPDX-License-Identifier: Apache-2.0
// Groups: many alarms of one cause become one. A leader is either a record of its own that stands for three
// or more alarms of one rule and group name, or an alarm that has taken in those of rules that are part of
// its own (struct alarm_rule.within). Members keep their records: who clears them knows nothing of groups.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/guid.h"
#include "lib/text.h"
#include "lib/xalloc.h"
#include "telemetry/alarm_priv.h"

#define WINDOW (60 * MONO_S)

static uint64_t bunch_hash(const struct alarm_rec *r, const char *group)
{
    return alarm_text_hash(alarm_text_hash(3, r->v.fabric) ^ (uintptr_t)r->v.rule, group);
}

static bool is_bunch(const struct alarm_bunch *b, const struct alarm_rec *r, const char *group)
{
    const struct alarm_rec *x = b->rec ? b->rec : b->leader;
    return x->v.rule == r->v.rule && strcmp(x->v.fabric, r->v.fabric) == 0 && strcmp(b->group, group) == 0;
}

static struct alarm_bunch *bunch_get(struct alarms *a, const struct alarm_rec *r, const char *group)
{
    uint64_t h = bunch_hash(r, group);
    struct alarm_bunch **b = &a->bunch[h & (a->buckets - 1)];
    while (*b && ((*b)->hash != h || !is_bunch(*b, r, group)))
        b = &(*b)->next;
    if (!*b) {
        *b = xcalloc(1, sizeof(**b));
        (*b)->hash = h;
        (*b)->group = xstrdup(group);
    }
    return *b;
}

void alarm_bunch_add(struct alarms *a, struct alarm_rec *r)
{
    for (int i = 0; i < 2; i++) {
        if (!r->group[i][0] || (i == 1 && strcmp(r->group[0], r->group[1]) == 0))
            continue;
        struct alarm_bunch *b = r->bunch[i] = bunch_get(a, r, r->group[i]);
        if (r->v.group) {
            b->leader = r;
            return;
        }
        r->bunch_next[i] = b->rec;
        b->rec = r;
    }
}

static struct alarm_rec **next_of(const struct alarm_bunch *b, struct alarm_rec *r)
{
    return &r->bunch_next[r->bunch[0] == b ? 0 : 1];
}

static void bunch_remove(struct alarms *a, struct alarm_rec *r)
{
    for (int i = 0; i < 2; i++) {
        struct alarm_bunch *b = r->bunch[i], **at;
        if (!b)
            continue;
        if (b->leader == r) {
            b->leader = NULL;
        } else {
            struct alarm_rec **p = &b->rec;
            while (*p && *p != r)
                p = next_of(b, *p);
            if (*p)
                *p = *next_of(b, r);
        }
        r->bunch[i] = NULL;
        if (b->rec || b->leader)
            continue;
        for (at = &a->bunch[b->hash & (a->buckets - 1)]; *at != b;)
            at = &(*at)->next;
        *at = b->next;
        free((void *)b->group);
        free(b);
    }
}

void alarm_bunches_free(struct alarms *a)
{
    for (uint32_t i = 0; i < a->buckets; i++) {
        for (struct alarm_bunch *b = a->bunch[i], *next; b; b = next) {
            next = b->next;
            free((void *)b->group);
            free(b);
        }
    }
}

// --- members ---

static void link_member(struct alarm_rec *leader, struct alarm_rec *r)
{
    r->leader = leader;
    r->v.leader = leader->v.id;
    r->member_next = NULL;
    r->member_prev = leader->member_end;
    *(leader->member_end ? &leader->member_end->member_next : &leader->member) = r;
    leader->member_end = r;
}

static void unlink_member(struct alarm_rec *r)
{
    struct alarm_rec *l = r->leader;
    *(r->member_prev ? &r->member_prev->member_next : &l->member) = r->member_next;
    *(r->member_next ? &r->member_next->member_prev : &l->member_end) = r->member_prev;
    r->leader = NULL;
    r->v.leader = 0;
    r->member_prev = r->member_next = NULL;
}

// What a group says is what its members say. Returns whether that is worth telling.
static bool refresh(struct alarms *a, struct alarm_rec *g)
{
    uint32_t n = 0, active = 0;
    enum alarm_severity worst = ALARM_INFO;
    const struct alarm_rec *first = NULL;
    double lost = 0;
    uint32_t hosts = 0;
    bool of_host = strncmp(g->group[0], "host ", 5) == 0; // each of its links names the one host
    bool was = g->v.active, news;

    for (const struct alarm_rec *r = g->member; r; r = r->member_next) {
        bool own = r->v.rule == g->v.rule;
        n += own;
        active += own && r->v.active;
        lost += own && r->v.active ? r->v.lost_bps : 0;
        uint32_t cut = own && r->v.active ? r->v.hosts : 0;
        hosts = !of_host ? hosts + cut : cut > hosts ? cut : hosts;
        if (r->v.active && r->v.severity > worst)
            worst = r->v.severity;
        if (own && (!first || (r->v.active && !first->v.active) ||
                    (r->v.active && r->v.severity > first->v.severity)))
            first = r;
    }
    if (!g->v.group)
        return false;
    if (!active)
        worst = g->v.severity;
    news = n > g->v.members || worst != g->v.severity || (active > 0) != was;
    if (worst > g->v.severity)
        g->v.acked = false;
    g->v.members = n;
    g->peak = n > g->peak ? n : g->peak;
    g->v.severity = worst;
    g->v.lost_bps = lost;
    g->v.hosts = hosts;
    g->v.active = active > 0;
    if (active > 0) {
        g->v.cleared_wall_ns = 0;
    } else if (was) {
        g->cleared = alarms_now(a);
        g->v.cleared_wall_ns = alarms_wall(a);
    }
    if (!first) // parts of them are left at most
        return news;
    char reason[2048], evidence[100];
    text_print(reason, sizeof(reason), "%u of %s: %s; %s%s%s", g->peak, g->group_place[0], g->v.rule->title,
               first->v.place, first->v.place[0] ? ": " : "", first->v.reason);
    snprintf(evidence, sizeof(evidence), "{\"members\":%u,\"active\":%u,\"most\":%u}", n, active, g->peak);
    alarm_put(&g->v.reason, reason, sizeof(reason));
    alarm_put(&g->v.evidence, evidence, sizeof(evidence));
    alarm_put(&g->v.advice, first->v.advice, SIZE_MAX); // names the link that the reason names
    return news;
}

void alarm_group_look(struct alarms *a, struct alarm_rec *r)
{
    struct alarm_rec *g = r->leader;
    if (!g || !g->v.group)
        return;
    g->v.last_wall_ns = alarms_wall(a);
    if (refresh(a, g)) {
        g->v.count++;
        alarm_dirty(a, g, 2);
        alarm_tell_later(a, g, UNTOLD_CHANGED);
    }
    alarm_silence_find(a, g);
}

void alarm_group_join(struct alarms *a, struct alarm_rec *leader, struct alarm_rec *r)
{
    while (r->member) { // what it had taken in
        struct alarm_rec *m = r->member;
        unlink_member(m);
        link_member(leader, m);
        alarm_dirty(a, m, 2);
    }
    link_member(leader, r);
    if (r->told) // whoever was told of it alone hears that it is no more
        alarm_tell_now(a, r, ALARM_CLEARED, "");
    r->told = false;
    leader->joined = alarms_now(a);
    alarm_dirty(a, r, 2);
    alarm_group_look(a, r);
}

static struct alarm_rec *leader_new(struct alarms *a, const struct alarm_rec *r, int i)
{
    struct alarm_rec *g = alarm_rec_find(a, r->v.fabric, r->v.rule->id, r->group[i], true);
    uint64_t guid = 0;
    if (g) // the last one has not ended
        return g;
    g = alarm_rec_new(a, 0, r->v.fabric, r->v.rule, r->group[i], true);
    alarm_put(&g->group[0], r->group[i], SIZE_MAX);
    alarm_put(&g->group_place[0], r->group_place[i], SIZE_MAX);
    alarm_put(&g->v.place, r->group_place[i], SIZE_MAX);
    alarm_put(&g->v.advice, r->v.advice, SIZE_MAX);
    if (guid_parse(r->group[i], &guid) == 0)
        g->node_guid[0] = guid;
    g->v.members = 0;
    alarm_bunch_add(a, g);
    alarm_dirty(a, g, 2);
    alarm_tell_later(a, g, UNTOLD_RAISED);
    return g;
}

static bool join_within(struct alarms *a, struct alarm_rec *r)
{
    const char *within = r->v.rule->within;
    struct alarm_rec *z = within ? alarm_rec_find(a, r->v.fabric, within, r->v.subject, false) : NULL;
    if (z)
        alarm_group_join(a, alarm_top(z), r);
    return z != NULL;
}

// Those of a bunch that stand alone and are of the last minute, newest first; how many.
static uint32_t alone(const struct alarm_bunch *b, int64_t now, struct alarm_rec **ret)
{
    uint32_t n = 0;
    for (struct alarm_rec *m = b->rec; m && now - m->begun <= WINDOW; m = *next_of(b, m)) {
        if (m->leader || (!m->v.active && !m->v.rule->momentary))
            continue;
        if (ret)
            ret[n] = m;
        n++;
    }
    return n;
}

void alarm_group_new(struct alarms *a, struct alarm_rec *r)
{
    int64_t now = alarms_now(a);

    if (join_within(a, r))
        return;
    for (int i = 0; i < 2; i++) {
        struct alarm_rec *g = r->bunch[i] ? r->bunch[i]->leader : NULL;
        if (g && now - g->joined <= WINDOW) {
            alarm_group_join(a, g, r);
            return;
        }
    }
    for (int i = 0; i < 2; i++) {
        uint32_t n = r->bunch[i] ? alone(r->bunch[i], now, NULL) : 0;
        if (n < ALARM_GROUP_MIN)
            continue;
        struct alarm_rec *g = leader_new(a, r, i);
        struct alarm_rec **newest = xcalloc(n, sizeof(struct alarm_rec *));
        alone(r->bunch[i], now, newest);
        while (n > 0)
            alarm_group_join(a, g, newest[--n]);
        free(newest);
        return;
    }
}

void alarm_group_relink(struct alarm_rec *leader, struct alarm_rec *r)
{
    link_member(leader, r);
    r->told = false;
}

void alarm_group_reload(struct alarms *a, struct alarm_rec *leader)
{
    leader->v.members = 0;
    if (leader->member)
        refresh(a, leader);
    else if (leader->v.active) {
        leader->v.active = false;
        leader->cleared = alarms_now(a);
    }
}

void alarm_group_leave(struct alarms *a, struct alarm_rec *r)
{
    struct alarm_rec *g = r->leader;
    bunch_remove(a, r);
    if (!g)
        return;
    unlink_member(r);
    refresh(a, g);
    a->list_stale = true;
    if (!g->member)
        alarm_wake(a, alarms_now(a));
}
