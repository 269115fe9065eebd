// SPDX-License-Identifier: Apache-2.0
#include "telemetry/alarm.h"

#include <stdlib.h>
#include <string.h>

#include "lib/text.h"
#include "lib/xalloc.h"
#include "telemetry/alarm_priv.h"

#define TEXT_MAX 2048
#define EVIDENCE_MAX 4096
#define GROUP_MAX 500
#define FULL_OVER (ALARMS_MAX / 10 * 9) // below it new ones are taken again

const char *alarm_severity_name(enum alarm_severity s)
{
    static const char *const name[] = {"info", "minor", "major", "critical"};
    return name[s];
}

int64_t alarms_now(const struct alarms *a)
{
    return loop_now(a->loop).ns;
}

// In virtual time the wall clock goes along: what lasts is not of another length for those who read it.
int64_t alarms_wall(const struct alarms *a)
{
    if (a->cb.wall)
        return a->cb.wall(a->cb.arg);
    if (loop_clock(a->loop) == LOOP_VIRTUAL)
        return a->wall_offset + alarms_now(a);
    return wall_now_ns();
}

bool alarm_put(const char **at, const char *s, size_t max)
{
    size_t n = s ? text_cut(s, max) : 0;
    if (*at && strlen(*at) == n && memcmp(*at, s ? s : "", n) == 0)
        return false;
    char *copy = xmalloc(n + 1);
    if (n)
        memcpy(copy, s, n);
    copy[n] = 0;
    text_clean(copy); // readers get it as JSON
    if (*at && strcmp(*at, copy) == 0) {
        free(copy);
        return false;
    }
    free((void *)*at);
    *at = copy;
    return true;
}

// --- indices ---

static uint64_t key_hash(const char *fabric, const char *rule, const char *subject, bool group)
{
    return alarm_text_hash(alarm_text_hash(alarm_text_hash(group ? 2 : 1, fabric), rule), subject);
}

struct alarm_rec *alarm_rec_find(const struct alarms *a, const char *fabric, const char *rule,
                                 const char *subject, bool group)
{
    uint64_t h = key_hash(fabric, rule, subject, group);
    struct alarm_rec *r = a->by_key[h & (a->buckets - 1)];
    while (r && (r->hash != h || r->v.group != group || strcmp(r->v.subject, subject) != 0 ||
                 strcmp(r->v.rule->id, rule) != 0 || strcmp(r->v.fabric, fabric) != 0))
        r = r->next_key;
    return r;
}

struct alarm_rec *alarm_rec_by_id(const struct alarms *a, uint64_t id)
{
    struct alarm_rec *r = a->by_id[id & (a->buckets - 1)];
    while (r && r->v.id != id)
        r = r->next_id;
    return r;
}

static void index_add(struct alarms *a, struct alarm_rec *r)
{
    struct alarm_rec **k = &a->by_key[r->hash & (a->buckets - 1)];
    struct alarm_rec **i = &a->by_id[r->v.id & (a->buckets - 1)];
    r->next_key = *k;
    *k = r;
    r->next_id = *i;
    *i = r;
}

static void index_remove(struct alarms *a, struct alarm_rec *r)
{
    struct alarm_rec **k = &a->by_key[r->hash & (a->buckets - 1)];
    struct alarm_rec **i = &a->by_id[r->v.id & (a->buckets - 1)];
    while (*k != r)
        k = &(*k)->next_key;
    *k = r->next_key;
    while (*i != r)
        i = &(*i)->next_id;
    *i = r->next_id;
}

static void index_grow(struct alarms *a)
{
    struct alarm_bunch **old = a->bunch;
    uint32_t old_buckets = a->buckets;
    a->buckets = old_buckets ? old_buckets * 2 : 256;
    free(a->by_key);
    free(a->by_id);
    a->by_key = xcalloc(a->buckets, sizeof(struct alarm_rec *));
    a->by_id = xcalloc(a->buckets, sizeof(struct alarm_rec *));
    a->bunch = xcalloc(a->buckets, sizeof(struct alarm_bunch *));
    for (struct alarm_rec *r = a->first; r; r = r->next)
        index_add(a, r);
    for (uint32_t i = 0; i < old_buckets; i++) {
        for (struct alarm_bunch *b = old[i], *next; b; b = next) {
            next = b->next;
            b->next = a->bunch[b->hash & (a->buckets - 1)];
            a->bunch[b->hash & (a->buckets - 1)] = b;
        }
    }
    free(old);
}

uint64_t alarms_new_id(struct alarms *a)
{
    if (a->next_id > a->reserved)
        alarm_keep_reserve(a);
    return a->next_id++;
}

struct alarm_rec *alarm_rec_new(struct alarms *a, uint64_t id, const char *fabric,
                                const struct alarm_rule *rule, const char *subject, bool group)
{
    struct alarm_rec *r = xcalloc(1, sizeof(*r));
    if (a->n >= a->buckets)
        index_grow(a);
    const char **text[] = {&r->v.place,    &r->v.peer,         &r->v.cable,       &r->v.reason,
                           &r->v.evidence, &r->v.acked_by,     &r->v.ack_note,    &r->group[0],
                           &r->group[1],   &r->group_place[0], &r->group_place[1]};
    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
        alarm_put(text[i], "", 0);
    r->v.fabric = xstrdup(fabric); // as they are asked for
    r->v.subject = xstrdup(subject);
    alarm_put(&r->v.advice, rule->advice, TEXT_MAX);
    r->v.rule = rule;
    r->v.group = group;
    r->v.members = 1;
    r->v.node_guid = r->node_guid;
    r->v.port = r->port;
    r->v.id = id ? id : alarms_new_id(a);
    r->v.active = true;
    r->v.since_wall_ns = r->v.last_wall_ns = alarms_wall(a);
    r->begun = alarms_now(a);
    r->restored = -1;
    r->hash = key_hash(r->v.fabric, rule->id, r->v.subject, group);
    r->prev = a->last;
    *(a->last ? &a->last->next : &a->first) = r;
    a->last = r;
    a->n++;
    index_add(a, r);
    a->list_stale = a->causes_stale = true;
    return r;
}

static void rec_free(struct alarm_rec *r)
{
    const char *text[] = {r->v.place,  r->v.peer,     r->v.cable,        r->v.reason,      r->v.evidence,
                          r->v.advice, r->v.acked_by, r->v.ack_note,     r->v.fabric,      r->v.subject,
                          r->group[0], r->group[1],   r->group_place[0], r->group_place[1]};
    for (size_t i = 0; i < sizeof(text) / sizeof(text[0]); i++)
        free((void *)text[i]);
    free(r);
}

void alarm_dirty(struct alarms *a, struct alarm_rec *r, uint8_t how)
{
    int64_t at = alarms_now(a) + (how > 1 ? MONO_S : 60 * MONO_S);
    if (r->dirty < how)
        r->dirty = how;
    if (!loop_timer_pending(&a->tell) || a->tell.due.ns > at)
        loop_timer_at(&a->tell, (mono_t){at});
    a->list_stale = true;
    a->causes_stale = a->causes_stale || how > 1;
}

// --- ending ---

void alarm_wake(struct alarms *a, int64_t at)
{
    if (!loop_timer_pending(&a->tick) || a->tick.due.ns > at)
        loop_timer_at(&a->tick, (mono_t){at});
}

void alarm_end(struct alarms *a, struct alarm_rec *r)
{
    if (r->told)
        alarm_tell_now(a, r, ALARM_CLEARED, "");
    alarm_keep_forget(a, r);
    alarm_group_leave(a, r);
    index_remove(a, r);
    *(r->prev ? &r->prev->next : &a->first) = r->next;
    *(r->next ? &r->next->prev : &a->last) = r->prev;
    a->n--;
    alarm_causes_moved(a); // of what followed from it
    rec_free(r);
}

static int64_t end_due(const struct alarm_rec *r)
{
    int64_t wait = r->v.rule->own_clear ? 0 : r->v.rule->clear_after_ns;
    int64_t at = r->cleared + wait, sticky = r->begun + ALARM_STICKY_NS;
    return at > sticky ? at : sticky;
}

static void gone(struct alarms *a, struct alarm_rec *r)
{
    r->v.active = false;
    r->cleared = alarms_now(a);
    r->v.cleared_wall_ns = alarms_wall(a);
    r->restored = -1;
    alarm_wake(a, end_due(r));
    alarm_dirty(a, r, 2);
    alarm_tell_later(a, r, UNTOLD_CHANGED);
    alarm_group_look(a, r);
}

// What nobody has raised again since the start.
static int64_t restored_due(const struct alarm_rec *r)
{
    int64_t wait = r->v.rule->clear_after_ns;
    return r->restored + (wait > ALARM_STICKY_NS ? wait : ALARM_STICKY_NS);
}

static void raise_full(struct alarms *a, bool on)
{
    a->full = on;
    if (!on) {
        alarm_clear(a, "", "W07", "alarms");
        return;
    }
    alarm_raise(a, &(struct alarm_report){.fabric = "",
                                          .rule = "W07",
                                          .subject = "alarms",
                                          .severity = ALARM_CRITICAL,
                                          .place = "weft",
                                          .reason = "100,000 alarms stand; others are not taken"});
}

static void tick(void *arg)
{
    struct alarms *a = arg;
    int64_t now = alarms_now(a), next = alarm_silences_tick(a);
    bool again = true;

    while (again) { // members' ends let their groups end
        again = false;
        for (struct alarm_rec *r = a->first, *after; r; r = after) {
            after = r->next;
            if (r->restored >= 0 && r->v.active && !r->v.group && now >= restored_due(r))
                gone(a, r);
            if (r->v.active || r->member || now < end_due(r))
                continue;
            again = again || r->leader;
            alarm_end(a, r);
        }
    }
    for (struct alarm_rec *r = a->first; r; r = r->next) {
        int64_t due = r->restored >= 0 && r->v.active && !r->v.group ? restored_due(r) : INT64_MAX;
        if (!r->v.active && !r->member)
            due = end_due(r);
        next = due < next ? due : next;
    }
    if (a->full && a->n < FULL_OVER)
        raise_full(a, false);
    if (next < INT64_MAX)
        alarm_wake(a, next > now ? next : now + MONO_S);
}

// --- raising and clearing ---

static bool take_report(struct alarm_rec *r, const struct alarm_report *p)
{
    struct alarm *v = &r->v;
    const char *evidence = p->evidence && strlen(p->evidence) <= EVIDENCE_MAX ? p->evidence : "";
    bool news = alarm_put(&v->reason, p->reason, TEXT_MAX);
    alarm_put(&v->place, p->place, TEXT_MAX);
    alarm_put(&v->peer, p->peer, TEXT_MAX);
    alarm_put(&v->cable, p->cable, TEXT_MAX);
    alarm_put(&v->evidence, evidence, EVIDENCE_MAX);
    alarm_put(&v->advice, p->advice ? p->advice : v->rule->advice, TEXT_MAX);
    r->own_advice = p->advice != NULL;
    memcpy(r->node_guid, p->node_guid, sizeof(r->node_guid));
    memcpy(r->port, p->port, sizeof(r->port));
    r->source = p->source;
    v->lost_bps = p->lost_bps;
    v->hosts = p->hosts;
    return news;
}

static void raise_again(struct alarms *a, struct alarm_rec *r, const struct alarm_report *p)
{
    bool news = take_report(r, p);
    bool back = !r->v.active, other = r->v.severity != p->severity;

    if (p->severity > r->v.severity)
        r->v.acked = false; // it was another alarm that somebody knows of
    r->v.severity = p->severity;
    r->v.active = true;
    r->v.cleared_wall_ns = 0;
    r->v.last_wall_ns = alarms_wall(a);
    a->list_stale = true;
    if (news || back || other)
        r->v.count++;
    if (back || other) {
        alarm_dirty(a, r, 2);
        alarm_tell_later(a, r, UNTOLD_CHANGED);
    } else if (news) {
        alarm_dirty(a, r, 1);
    }
    alarm_silence_find(a, r);
    alarm_group_look(a, r);
}

void alarm_raise(struct alarms *a, const struct alarm_report *p)
{
    const struct alarm_rule *rule = alarm_rule(p->rule);
    const char *fabric = p->fabric ? p->fabric : "", *subject = p->subject ? p->subject : "";
    if (!rule)
        return;
    struct alarm_rec *r = alarm_rec_find(a, fabric, rule->id, subject, false);
    if (r) {
        r->seen = true;
        r->restored = -1;
        raise_again(a, r, p);
        return;
    }
    if (a->n >= ALARMS_MAX && strcmp(rule->id, "W07") != 0) {
        if (!a->full)
            raise_full(a, true);
        return;
    }
    r = alarm_rec_new(a, 0, fabric, rule, subject, false);
    r->seen = true;
    r->v.severity = p->severity;
    r->v.count = 1;
    take_report(r, p);
    alarm_put(&r->group[0], p->group, GROUP_MAX);
    alarm_put(&r->group_place[0], p->group_place ? p->group_place : p->group, GROUP_MAX);
    alarm_put(&r->group[1], p->group2, GROUP_MAX);
    alarm_put(&r->group_place[1], p->group2_place ? p->group2_place : p->group2, GROUP_MAX);
    alarm_bunch_add(a, r);
    alarm_silence_find(a, r);
    alarm_dirty(a, r, 2);
    alarm_tell_later(a, r, UNTOLD_RAISED);
    alarm_group_new(a, r);
}

void alarm_clear(struct alarms *a, const char *fabric, const char *rule, const char *subject)
{
    struct alarm_rec *r = alarm_rec_find(a, fabric, rule, subject, false);
    if (r && r->v.active)
        gone(a, r);
}

void alarm_round_of(struct alarms *a, const char *fabric, const char *rule, uint8_t source)
{
    for (struct alarm_rec *r = a->first; r; r = r->next) {
        if (r->v.group || r->source != source || strcmp(r->v.rule->id, rule) != 0 ||
            strcmp(r->v.fabric, fabric) != 0)
            continue;
        if (!r->seen && r->v.active)
            gone(a, r);
        r->seen = false;
    }
}

void alarm_doubt(struct alarms *a, const char *fabric, const char *rules)
{
    for (struct alarm_rec *r = a->first; r; r = r->next) {
        if (r->v.group || !r->v.active || strncmp(r->v.rule->id, rules, strlen(rules)) != 0 ||
            strcmp(r->v.fabric, fabric) != 0)
            continue;
        r->restored = alarms_now(a);
        alarm_wake(a, restored_due(r));
    }
}

void alarm_round(struct alarms *a, const char *fabric, const char *rule)
{
    alarm_round_of(a, fabric, rule, 0);
}

// --- life ---

struct alarms *alarms_new(struct loop *l, struct db *db, const struct alarms_callbacks *cb)
{
    struct alarms *a = xcalloc(1, sizeof(*a));
    a->loop = l;
    a->db = db;
    a->cb = *cb;
    a->wall_offset = wall_now_ns() - loop_now(l).ns;
    a->list_stale = true;
    a->next_id = 1;
    loop_timer_init(&a->tell, l, "alarms", alarm_tell, a);
    loop_timer_init(&a->tick, l, "alarms", tick, a);
    index_grow(a);
    alarm_keep_load(a);
    alarm_silences_load(a);
    alarm_wake(a, alarms_now(a) + MONO_S);
    return a;
}

void alarms_free(struct alarms *a)
{
    if (!a)
        return;
    alarm_keep_done(a);
    loop_timer_cancel(&a->tell);
    loop_timer_cancel(&a->tick);
    alarm_bunches_free(a);
    alarm_silences_free(a);
    for (struct alarm_rec *r = a->first, *next; r; r = next) {
        next = r->next;
        rec_free(r);
    }
    free(a->by_key);
    free(a->by_id);
    free(a->bunch);
    free(a->list);
    free(a);
}
