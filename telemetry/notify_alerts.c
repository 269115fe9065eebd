// SPDX-License-Identifier: Apache-2.0
// Alertmanager: a copy of the list of alarms, by what it identifies an alert by (its labels), and which of
// them it has taken. What changes while a load is under way stays due.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mono.h"
#include "lib/xalloc.h"
#include "telemetry/notify_priv.h"

#define ENDED_KEEP (15 * 60 * MONO_S)
#define ENDED_MAX 20000u // of those not taken yet, the oldest go

struct alert {
    struct alert *next;
    uint64_t id;   // of the alarm
    uint64_t root; // the label "story"
    const void *follows;
    enum alarm_severity severity;
    int64_t ended_ns; // 0: holds
    uint64_t change, sending,
        taken;      // numbers of states: the latest, the one under way, the last that was taken
    uint64_t round; // of resending: the last in which it was taken
    unsigned body;  // of the load under way
    bool seen;
    char *json; // without endsAt and the closing brace
};

struct alerts {
    struct alert *first, **last;
    uint32_t num, num_ended;
    uint64_t changes, round;
};

struct alerts *alerts_new(void)
{
    struct alerts *a = xcalloc(1, sizeof(*a));
    a->last = &a->first;
    return a;
}

static void drop(struct alerts *a, struct alert **at)
{
    struct alert *x = *at;
    *at = x->next;
    if (a->last == &x->next)
        a->last = at;
    a->num--;
    if (x->ended_ns != 0)
        a->num_ended--;
    free(x->json);
    free(x);
}

void alerts_free(struct alerts *a)
{
    if (a == NULL)
        return;
    while (a->first != NULL)
        drop(a, &a->first);
    free(a);
}

// --- JSON ---

static void set(json_t *o, const char *name, const char *value)
{
    json_t *s = json_string(value);
    if (s == NULL) // no UTF-8
        s = json_string("?");
    if (value[0] != 0)
        json_object_set_new(o, name, s);
    else
        json_decref(s);
}

static uint64_t story_of(const struct alarm *m)
{
    return m->root != 0 ? m->root : m->id;
}

json_t *alert_json(const struct notifier *n, const struct alarm *m, int64_t ends_ns)
{
    json_t *o = json_object(), *labels = json_object(), *notes = json_object();
    char text[400], time[32];

    set(labels, "alertname", m->rule->name);
    set(labels, "rule", m->rule->id);
    set(labels, "severity", alarm_severity_name(m->severity));
    set(labels, "fabric", m->fabric);
    set(labels, "subject", m->subject);
    set(labels, "source", "weft");
    snprintf(text, sizeof(text), "%llu", (unsigned long long)story_of(m));
    set(labels, "story", text);
    set(labels, "follows", m->follows ? m->follows->id : "");
    snprintf(text, sizeof(text), "%s: %.300s", m->rule->title, m->place[0] ? m->place : m->subject);
    set(notes, "summary", text);
    set(notes, "description", m->reason);
    set(notes, "advice", m->advice);
    set(notes, "place", m->place);
    set(notes, "peer", m->peer);
    set(notes, "cable", m->cable);
    snprintf(text, sizeof(text), "%llu", (unsigned long long)m->id);
    set(notes, "alarm", text);
    json_object_set_new(o, "labels", labels);
    json_object_set_new(o, "annotations", notes);
    set(o, "startsAt", wall_format(m->since_wall_ns, time, sizeof(time)));
    snprintf(text, sizeof(text), "%.300s/api/v1/alarms/%llu", n->external_url, (unsigned long long)m->id);
    if (n->external_url[0] != 0)
        set(o, "generatorURL", text);
    if (ends_ns != 0)
        set(o, "endsAt", wall_format(ends_ns, time, sizeof(time)));
    return o;
}

// --- the copy ---

static char *json_of(const struct notifier *n, const struct alarm *m)
{
    json_t *o = alert_json(n, m, 0);
    char *text = json_dumps(o, JSON_COMPACT);
    json_decref(o);
    text[strlen(text) - 1] = 0; // endsAt and the brace come when it is sent
    return text;
}

static struct alert *find(struct alerts *a, uint64_t id)
{
    for (struct alert *x = a->first; x != NULL; x = x->next)
        if (x->id == id && x->ended_ns == 0)
            return x;
    return NULL;
}

static void add(struct alerts *a, const struct alarm *m, char *json)
{
    struct alert *x = xcalloc(1, sizeof(*x));
    *x = (struct alert){.id = m->id,
                        .root = story_of(m),
                        .follows = m->follows,
                        .severity = m->severity,
                        .change = ++a->changes,
                        .seen = true,
                        .json = json};
    *a->last = x;
    a->last = &x->next;
    a->num++;
}

static void end(struct alerts *a, struct alert *x, int64_t wall_ns)
{
    x->ended_ns = wall_ns;
    x->change = ++a->changes;
    a->num_ended++;
}

static void trim(struct alerts *a)
{
    for (struct alert **at = &a->first; a->num_ended > ENDED_MAX && *at != NULL;) {
        if ((*at)->ended_ns != 0)
            drop(a, at);
        else
            at = &(*at)->next;
    }
}

static bool wanted(const struct notifier *n, const struct alarm *m)
{
    return m->active && m->silence == 0 && m->leader == 0 && m->severity >= n->severity;
}

// An alarm as it is now. Other labels make another alert of it: the one before ends.
static void take(struct notify_target *t, struct alert *x, const struct alarm *m)
{
    struct alerts *a = t->alerts;
    bool want = wanted(t->n, m);

    if (!want && x != NULL)
        end(a, x, m->cleared_wall_ns != 0 ? m->cleared_wall_ns : wall_now_ns());
    if (!want)
        return;
    char *json = json_of(t->n, m);
    if (x != NULL && (x->severity != m->severity || x->root != story_of(m) || x->follows != m->follows)) {
        end(a, x, wall_now_ns());
        x = NULL;
    }
    if (x == NULL) {
        add(a, m, json);
        return;
    }
    x->seen = true;
    if (strcmp(x->json, json) == 0) {
        free(json);
        return;
    }
    free(x->json);
    x->json = json;
    x->change = ++a->changes;
}

void alerts_change(struct notify_target *t, const struct alarm_change *c)
{
    struct alert *x = find(t->alerts, c->alarm->id);
    if (c->what == ALARM_CLEARED && x != NULL)
        end(t->alerts, x, c->alarm->cleared_wall_ns != 0 ? c->alarm->cleared_wall_ns : wall_now_ns());
    else if (c->what != ALARM_CLEARED)
        take(t, x, c->alarm);
    trim(t->alerts);
}

static int by_id(const void *a, const void *b)
{
    const struct alert *x = *(struct alert *const *)a, *y = *(struct alert *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

// The copy's alerts that hold, by id.
static struct alert **index_of(struct alerts *a, uint32_t *ret_n)
{
    struct alert **x = xcalloc(a->num + 1ul, sizeof(struct alert *));
    uint32_t n = 0;
    for (struct alert *k = a->first; k != NULL; k = k->next) {
        k->seen = false;
        if (k->ended_ns == 0)
            x[n++] = k;
    }
    qsort(x, n, sizeof(struct alert *), by_id);
    *ret_n = n;
    return x;
}

static struct alert *look_up(struct alert *const *x, uint32_t n, uint64_t id)
{
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (x[mid]->id < id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && x[lo]->id == id ? x[lo] : NULL;
}

static void compare(struct notify_target *t)
{
    const struct alarm *m;
    uint32_t n = alarms_list(t->n->alarms, &m), num;
    struct alert **index = index_of(t->alerts, &num);
    for (uint32_t i = 0; i < n; i++)
        take(t, look_up(index, num, m[i].id), &m[i]);
    for (uint32_t i = 0; i < num; i++)
        if (!index[i]->seen && index[i]->ended_ns == 0)
            end(t->alerts, index[i], wall_now_ns());
    free(index);
    trim(t->alerts);
}

// --- sending ---

static void put(struct buf *b, const struct alert *x, int64_t ends_ns)
{
    char time[32];
    buf_puts(b, b->len == 0 ? "[" : ",\n");
    buf_puts(b, x->json);
    buf_printf(b, ",\"endsAt\":\"%s\"}", wall_format(ends_ns, time, sizeof(time)));
}

unsigned alerts_compose(struct notify_target *t, bool all, struct buf ret[NOTIFY_BODIES])
{
    int64_t now = wall_now_ns();
    unsigned n = 0;

    if (all) {
        compare(t);
        t->alerts->round++;
    }
    for (struct alert **at = &t->alerts->first; *at != NULL;) {
        struct alert *x = *at;
        if (x->ended_ns != 0 && x->taken == x->change && now - x->ended_ns > ENDED_KEEP) {
            drop(t->alerts, at);
            continue;
        }
        at = &x->next;
        if (x->taken == x->change && x->round == t->alerts->round)
            continue;
        if (n == 0 || ret[n - 1].len > NOTIFY_BODY_BYTES) {
            if (n == NOTIFY_BODIES) // the rest is due still
                break;
            n++;
        }
        put(&ret[n - 1], x, x->ended_ns != 0 ? x->ended_ns : now + 4 * t->n->resend_ns);
        x->sending = x->change;
        x->body = n - 1;
    }
    for (unsigned i = 0; i < n; i++)
        buf_puts(&ret[i], "]\n");
    return n;
}

// A body that is refused would be so again: its alerts wait for the next round. Alertmanager takes what is
// good of it all the same.
unsigned alerts_done(struct notify_target *t, unsigned delivered, bool refused)
{
    unsigned n = 0;
    for (struct alert *x = t->alerts->first; x != NULL; x = x->next) {
        if (x->sending != 0 && x->body < delivered + refused) {
            x->taken = x->sending;
            x->round = t->alerts->round;
            n += x->body < delivered;
        }
        x->sending = 0;
    }
    return n;
}
