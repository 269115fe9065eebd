// SPDX-License-Identifier: Apache-2.0
// Groups: many alarms of one cause become one. A leader is either a record of its own that stands for three
// or more alarms of one rule and group name, or an alarm that has taken in those of rules that are part of
// its own (struct alarm_rule.within). Members keep their records: who clears them knows nothing of groups.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/guid.h"
#include "lib/hash.h"
#include "lib/xalloc.h"
#include "telemetry/alarm_priv.h"

#define WINDOW (60 * MONO_S)

static uint64_t bunch_hash(const struct alarm_rec *r)
{
    uint64_t h = 3;
    for (const char *s = r->v.fabric; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3ULL;
    h = hash_mix64(h ^ (uintptr_t)r->v.rule);
    for (const char *s = r->group; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3ULL;
    return hash_mix64(h);
}

static bool same_bunch(const struct alarm_rec *x, const struct alarm_rec *y)
{
    return x->v.rule == y->v.rule && strcmp(x->v.fabric, y->v.fabric) == 0 && strcmp(x->group, y->group) == 0;
}

static struct alarm_bunch **bunch_of(struct alarms *a, const struct alarm_rec *r, uint64_t h)
{
    struct alarm_bunch **b = &a->bunch[h & (a->buckets - 1)];
    while (*b && ((*b)->hash != h || !same_bunch((*b)->rec ? (*b)->rec : (*b)->leader, r)))
        b = &(*b)->next;
    return b;
}

// A bunch without records and leader is taken out at once: its name is theirs.
void alarm_bunch_add(struct alarms *a, struct alarm_rec *r)
{
    if (!r->group[0])
        return;
    uint64_t h = bunch_hash(r);
    struct alarm_bunch **b = bunch_of(a, r, h);
    if (!*b) {
        *b = xcalloc(1, sizeof(**b));
        (*b)->hash = h;
    }
    r->bunch = *b;
    if (r->v.group) {
        r->bunch->leader = r;
        return;
    }
    r->bunch_next = r->bunch->rec;
    r->bunch->rec = r;
}

static void bunch_remove(struct alarms *a, struct alarm_rec *r)
{
    struct alarm_bunch *b = r->bunch;
    if (!b)
        return;
    struct alarm_bunch **at = &a->bunch[b->hash & (a->buckets - 1)];
    while (*at != b)
        at = &(*at)->next;
    if (b->leader == r) {
        b->leader = NULL;
    } else {
        struct alarm_rec **p = &b->rec;
        while (*p && *p != r)
            p = &(*p)->bunch_next;
        if (*p)
            *p = r->bunch_next;
    }
    r->bunch = NULL;
    if (!b->rec && !b->leader) {
        *at = b->next;
        free(b);
    }
}

void alarm_bunches_free(struct alarms *a)
{
    for (uint32_t i = 0; i < a->buckets; i++) {
        for (struct alarm_bunch *b = a->bunch[i], *next; b; b = next) {
            next = b->next;
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
    bool was = g->v.active, news;

    for (const struct alarm_rec *r = g->member; r; r = r->member_next) {
        bool own = r->v.rule == g->v.rule;
        n += own;
        active += own && r->v.active;
        if (r->v.active && r->v.severity > worst)
            worst = r->v.severity;
        if (own && (!first || (r->v.active && !first->v.active)))
            first = r;
    }
    if (!g->v.group || !first)
        return false;
    if (!active)
        worst = g->v.severity;
    news = n > g->v.members || worst != g->v.severity || (active > 0) != was;
    if (worst > g->v.severity)
        g->v.acked = false;
    g->v.members = n;
    g->peak = n > g->peak ? n : g->peak;
    g->v.severity = worst;
    g->v.active = active > 0;
    if (active > 0) {
        g->v.cleared_wall_ns = 0;
    } else if (was) {
        g->cleared = alarms_now(a);
        g->v.cleared_wall_ns = alarms_wall(a);
    }
    char reason[2048], evidence[100];
    snprintf(reason, sizeof(reason), "%u of %s: %s; %s%s%s", g->peak, g->group_place, g->v.rule->title,
             first->v.place, first->v.place[0] ? ": " : "", first->v.reason);
    snprintf(evidence, sizeof(evidence), "{\"members\":%u,\"active\":%u,\"most\":%u}", n, active, g->peak);
    alarm_put(&g->v.reason, reason, sizeof(reason));
    alarm_put(&g->v.evidence, evidence, sizeof(evidence));
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
    leader->joined = alarms_now(a);
    alarm_dirty(a, r, 2);
    alarm_group_look(a, r);
}

static struct alarm_rec *leader_new(struct alarms *a, const struct alarm_rec *r)
{
    struct alarm_rec *g = alarm_rec_find(a, r->v.fabric, r->v.rule->id, r->group, true);
    uint64_t guid = 0;
    if (g) // the last one has not ended
        return g;
    g = alarm_rec_new(a, 0, r->v.fabric, r->v.rule, r->group, true);
    alarm_put(&g->group, r->group, SIZE_MAX);
    alarm_put(&g->group_place, r->group_place, SIZE_MAX);
    alarm_put(&g->v.place, r->group_place, SIZE_MAX);
    alarm_put(&g->v.advice, r->v.advice, SIZE_MAX);
    if (guid_parse(r->group, &guid) == 0)
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

void alarm_group_new(struct alarms *a, struct alarm_rec *r)
{
    int64_t now = alarms_now(a);
    uint32_t n = 0;

    if (join_within(a, r) || !r->bunch)
        return;
    struct alarm_rec *g = r->bunch->leader;
    if (g && now - g->joined <= WINDOW) {
        alarm_group_join(a, g, r);
        return;
    }
    for (struct alarm_rec *m = r->bunch->rec; m && now - m->begun <= WINDOW; m = m->bunch_next)
        n += !m->leader && m->v.active;
    if (n < ALARM_GROUP_MIN)
        return;
    g = leader_new(a, r);
    struct alarm_rec **newest = xcalloc(n, sizeof(struct alarm_rec *));
    n = 0;
    for (struct alarm_rec *m = r->bunch->rec; m && now - m->begun <= WINDOW; m = m->bunch_next)
        if (!m->leader && m->v.active)
            newest[n++] = m;
    while (n > 0)
        alarm_group_join(a, g, newest[--n]);
    free(newest);
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
