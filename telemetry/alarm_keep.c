// SPDX-License-Identifier: Apache-2.0
// Alarms and silences in meta.db: rows by id. What has changed is written a second later, what only says the
// same again within a minute. Ids are reserved ahead, so that none is given twice, whatever was not written.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/xalloc.h"
#include "telemetry/alarm_priv.h"

#define RESERVE 1024
#define EVENTS_OF_NEW (1u << 20)
#define CLOCK_EPOCH_S 1735689600LL // 2025-01-01

// --- ids ---

void alarm_keep_reserve(struct alarms *a)
{
    a->reserved = a->next_id + RESERVE - 1;
    if (a->db)
        db_alarm_reserve(a->db, a->reserved, NULL, NULL);
}

void alarm_keep_done(struct alarms *a)
{
    alarm_keep_save(a, true);
    if (a->db)
        db_alarm_reserve(a->db, a->next_id - 1, NULL, NULL);
}

static void load_ids(struct alarms *a)
{
    uint64_t last = 0;
    int rc = a->db ? db_alarm_last_id(a->db, &last) : 0;
    // Of a file that took the place of a damaged one (events then go on from the clock too), or one that
    // cannot be read: from the clock, which is far above what counting reaches.
    if (a->db && (rc != 0 || (last == 0 && db_event_last_id(a->db) > EVENTS_OF_NEW)))
        last = (uint64_t)(wall_now_ns() / MONO_S - CLOCK_EPOCH_S);
    if (rc != 0)
        log_warning("alarms-not-read", "text=\"ids go on from the clock\" error=%d", rc);
    a->next_id = last + 1;
    alarm_keep_reserve(a);
}

// --- writing ---

void alarm_keep_forget(struct alarms *a, const struct alarm_rec *r)
{
    if (a->db)
        db_alarm_forget(a->db, r->v.id, NULL, NULL);
}

static void save_one(struct alarms *a, const struct alarm_rec *r)
{
    const struct alarm *v = &r->v;
    char grouping[2100];
    snprintf(grouping, sizeof(grouping), "%s\n%s\n%s\n%s", r->group[0], r->group_place[0], r->group[1],
             r->group_place[1]);
    db_alarm_put(a->db,
                 &(struct db_alarm){
                     .id = v->id,
                     .fabric = v->fabric,
                     .rule = v->rule->id,
                     .subject = v->subject,
                     .place = v->place,
                     .peer = v->peer,
                     .cable = v->cable,
                     .reason = v->reason,
                     .evidence = v->evidence,
                     .acked_by = v->acked_by,
                     .ack_note = v->ack_note,
                     .advice = r->own_advice ? v->advice : "",
                     .grouping = grouping,
                     .leader = v->leader,
                     .group = v->group,
                     .acked = v->acked,
                     .severity = v->severity,
                     .since_wall_ns = v->since_wall_ns,
                     .last_wall_ns = v->last_wall_ns,
                     .cleared_wall_ns = v->active ? 0 : v->cleared_wall_ns,
                     .count = v->count,
                     .node_guid = {r->node_guid[0], r->node_guid[1]},
                     .port = {r->port[0], r->port[1]},
                 },
                 NULL, NULL);
}

void alarm_keep_save(struct alarms *a, bool all)
{
    for (struct alarm_rec *r = a->first; r; r = r->next) {
        if (r->dirty <= (all ? 0 : 1))
            continue;
        r->dirty = 0;
        if (a->db)
            save_one(a, r);
    }
}

void alarm_keep_silence(struct alarms *a, const struct alarm_silence *s)
{
    if (a->db)
        db_silence_put(a->db,
                       &(struct db_silence){s->id, s->focus, s->rule, s->owner, s->reason, s->from_wall_ns,
                                            s->until_wall_ns, s->maintenance},
                       NULL, NULL);
}

void alarm_keep_forget_silence(struct alarms *a, uint64_t id)
{
    if (a->db)
        db_silence_forget(a->db, id, NULL, NULL);
}

// --- loading ---

struct load {
    struct alarms *a;
    uint64_t *unknown; // rows of rules that this version does not have
    size_t num_unknown;
};

static void load_grouping(struct alarm_rec *r, const char *text)
{
    char *copy = xstrdup(text), *at = copy;
    const char **to[] = {&r->group[0], &r->group_place[0], &r->group[1], &r->group_place[1]};
    for (int i = 0; i < 4 && at; i++)
        alarm_put(to[i], strsep(&at, "\n"), 500);
    free(copy);
}

// Loop time of a moment of an earlier run; never later than now, whatever the clock has done.
static int64_t loop_time(const struct alarms *a, int64_t wall_ns)
{
    int64_t ago = alarms_wall(a) - wall_ns;
    return alarms_now(a) - (ago > 0 ? ago : 0);
}

static void load_one(void *arg, const struct db_alarm *d)
{
    struct load *x = arg;
    struct alarms *a = x->a;
    const struct alarm_rule *rule = alarm_rule(d->rule);
    if (!rule || a->n >= ALARMS_MAX || alarm_rec_find(a, d->fabric, rule->id, d->subject, d->group)) {
        x->unknown = xreallocarray(x->unknown, x->num_unknown + 1, sizeof(uint64_t));
        x->unknown[x->num_unknown++] = d->id;
        return;
    }
    struct alarm_rec *r = alarm_rec_new(a, d->id, d->fabric, rule, d->subject, d->group);
    struct alarm *v = &r->v;
    alarm_put(&v->place, d->place, SIZE_MAX);
    alarm_put(&v->peer, d->peer, SIZE_MAX);
    alarm_put(&v->cable, d->cable, SIZE_MAX);
    alarm_put(&v->reason, d->reason, SIZE_MAX);
    alarm_put(&v->evidence, d->evidence, SIZE_MAX);
    alarm_put(&v->acked_by, d->acked_by, SIZE_MAX);
    alarm_put(&v->ack_note, d->ack_note, SIZE_MAX);
    r->own_advice = d->advice[0] != 0;
    if (r->own_advice)
        alarm_put(&v->advice, d->advice, SIZE_MAX);
    load_grouping(r, d->grouping);
    memcpy(r->node_guid, d->node_guid, sizeof(r->node_guid));
    memcpy(r->port, d->port, sizeof(r->port));
    v->severity = (enum alarm_severity)d->severity;
    v->since_wall_ns = d->since_wall_ns;
    v->last_wall_ns = d->last_wall_ns;
    v->cleared_wall_ns = d->cleared_wall_ns;
    v->active = d->cleared_wall_ns == 0;
    v->count = d->count;
    v->acked = d->acked;
    v->leader = d->leader;
    r->begun = loop_time(a, d->since_wall_ns);
    r->cleared = v->active ? 0 : loop_time(a, d->cleared_wall_ns);
    r->restored = v->active ? alarms_now(a) : -1;
    r->joined = r->begun;
    r->told = true;
    alarm_bunch_add(a, r);
}

static void join_again(struct alarms *a)
{
    for (struct alarm_rec *r = a->first, *next; r; r = next) {
        next = r->next;
        struct alarm_rec *g = r->v.leader ? alarm_rec_by_id(a, r->v.leader) : NULL;
        r->v.leader = 0;
        if (g && g != r && !r->v.group && !g->v.leader &&
            g->v.rule == (r->v.rule->within && !g->v.group ? alarm_rule(r->v.rule->within) : g->v.rule))
            alarm_group_relink(g, r);
    }
    for (struct alarm_rec *r = a->first; r; r = r->next)
        if (r->v.group)
            alarm_group_reload(a, r);
}

void alarm_keep_load(struct alarms *a)
{
    struct load x = {.a = a};
    load_ids(a);
    if (!a->db)
        return;
    long rc = db_alarms_load(a->db, load_one, &x);
    if (rc < 0)
        log_warning("alarms-not-read", "text=\"the list begins empty\" error=%ld", rc);
    for (size_t i = 0; i < x.num_unknown; i++)
        db_alarm_forget(a->db, x.unknown[i], NULL, NULL);
    free(x.unknown);
    join_again(a);
}

static void load_silence(void *arg, const struct db_silence *s)
{
    alarm_silence_load(arg, &(struct alarm_silence){s->id, s->focus, s->rule, s->owner, s->reason,
                                                    s->from_wall_ns, s->until_wall_ns, s->maintenance});
}

void alarm_silences_load(struct alarms *a)
{
    if (a->db && db_silences_load(a->db, load_silence, a) < 0)
        log_warning("silences-not-read", "text=\"the list begins empty\"");
    for (struct alarm_rec *r = a->first; r; r = r->next)
        alarm_silence_find(a, r);
}
