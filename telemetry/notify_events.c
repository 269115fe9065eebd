// SPDX-License-Identifier: Apache-2.0
// Webhooks and syslog: events in their order, behind a cursor in meta.db.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db.h"
#include "lib/hash.h"
#include "lib/mono.h"
#include "lib/when.h"
#include "lib/xalloc.h"
#include "telemetry/notify_priv.h"
#include "telemetry/syslog.h"

#define LOOK_AT 500 // events in a turn; most are not of alarms

bool notify_event_kind(const char *kind)
{
    return strncmp(kind, "alarm-", 6) == 0 || strncmp(kind, "silence-", 8) == 0 ||
           strncmp(kind, "maintenance-", 12) == 0;
}

// --- the cursor ---

static void cursor_name(const struct notify_target *t, char buf[40])
{
    uint64_t h = 0;
    for (const char *s = t->text; *s != 0; s++)
        h = hash_mix64(h ^ (unsigned char)*s);
    snprintf(buf, 40, "notify-%016llx", (unsigned long long)h);
}

// A target that is new is told of what comes.
void events_load(struct notify_target *t)
{
    char name[40];
    void *p = NULL;
    size_t n;

    cursor_name(t, name);
    if (t->n->db != NULL && db_blob_get(t->n->db, "", name, &p, &n) == 0)
        t->cursor = t->saved = strtoull(p, NULL, 10);
    else if (t->n->db != NULL)
        t->cursor = db_event_last_id(t->n->db);
    free(p);
}

void events_save(struct notify_target *t)
{
    char name[40], text[24];
    if (t->cursor == t->saved || t->n->db == NULL)
        return;
    cursor_name(t, name);
    int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)t->cursor);
    db_blob_put(t->n->db, "", name, text, (size_t)n, NULL, NULL);
    t->saved = t->cursor;
}

// --- what an event becomes ---

struct compose {
    struct notify_target *t;
    struct buf *ret;
    unsigned n;
    uint64_t last; // event that was looked at
    int64_t oldest_ns;
    bool full;
};

static const char *text_at(json_t *o, const char *name)
{
    const char *s = json_string_value(json_object_get(o, name));
    return s != NULL ? s : "";
}

static enum alarm_severity severity_by_name(const char *s)
{
    for (enum alarm_severity v = ALARM_INFO; v <= ALARM_CRITICAL; v++)
        if (strcmp(alarm_severity_name(v), s) == 0)
            return v;
    return ALARM_INFO;
}

// As it was told then; the alarm itself may be another one by now, or gone.
static json_t *alert_of(const struct compose *c, const struct db_event *ev, json_t *data)
{
    const struct alarm_rule *rule = alarm_rule(text_at(data, "rule"));
    enum alarm_severity severity = severity_by_name(text_at(data, "severity"));
    bool over = strcmp(ev->kind, "alarm-cleared") == 0 || !json_is_true(json_object_get(data, "active"));
    if (rule == NULL || severity < c->t->n->severity || json_object_get(data, "silence") != NULL)
        return NULL;
    int64_t since;
    if (when_parse(text_at(data, "since"), &since) != 0)
        since = ev->wall_ns;
    struct alarm m = {.id = (uint64_t)json_integer_value(json_object_get(data, "alarm")),
                      .rule = rule,
                      .fabric = ev->fabric,
                      .subject = text_at(data, "subject"),
                      .place = text_at(data, "place"),
                      .peer = text_at(data, "peer"),
                      .cable = text_at(data, "cable"),
                      .reason = text_at(data, "reason"),
                      .evidence = "",
                      .advice = rule->advice,
                      .severity = severity,
                      .root = (uint64_t)json_integer_value(json_object_get(data, "root")),
                      .follows = alarm_rule(text_at(data, "follows")),
                      .since_wall_ns = since};
    return alert_json(c->t->n, &m, over ? ev->wall_ns : 0);
}

static bool put_alert(struct compose *c, const struct db_event *ev, json_t *data)
{
    if (strcmp(ev->kind, "alarm-raised") != 0 && strcmp(ev->kind, "alarm-changed") != 0 &&
        strcmp(ev->kind, "alarm-cleared") != 0)
        return false;
    json_t *alert = alert_of(c, ev, data);
    char *text = alert != NULL ? json_dumps(alert, JSON_COMPACT) : NULL;
    if (text != NULL)
        buf_printf(&c->ret[c->n], "[%s]\n", text);
    free(text);
    json_decref(alert);
    return text != NULL;
}

static unsigned syslog_severity(const struct db_event *ev, json_t *data)
{
    static const unsigned of[] = {
        [ALARM_INFO] = 6, [ALARM_MINOR] = 4, [ALARM_MAJOR] = 3, [ALARM_CRITICAL] = 2};
    bool begins = strcmp(ev->kind, "alarm-raised") == 0 || strcmp(ev->kind, "alarm-changed") == 0;
    if (!begins || !json_is_true(json_object_get(data, "active")))
        return 5;
    return of[severity_by_name(text_at(data, "severity"))];
}

static bool put_line(struct compose *c, const struct db_event *ev, json_t *data)
{
    char id[24], event[24], silence[24] = "";
    json_t *alarm = json_object_get(data, "alarm"), *by = json_object_get(data, "silence");
    snprintf(event, sizeof(event), "%llu", (unsigned long long)ev->id);
    snprintf(id, sizeof(id), "%lld", (long long)json_integer_value(alarm));
    if (by != NULL)
        snprintf(silence, sizeof(silence), "%lld", (long long)json_integer_value(by));
    const struct syslog_param param[] = {
        {"event", event},
        {"id", alarm != NULL ? id : ""},
        {"rule", text_at(data, "rule")},
        {"severity", text_at(data, "severity")},
        {"fabric", ev->fabric},
        {"subject", text_at(data, "subject")},
        {"silence", silence},
        {"cable", text_at(data, "cable")},
    };
    struct syslog_entry m = {.facility = c->t->n->facility,
                             .severity = syslog_severity(ev, data),
                             .wall_ns = ev->wall_ns,
                             .host = c->t->n->host,
                             .msgid = ev->kind,
                             .param = param,
                             .num_params = sizeof(param) / sizeof(param[0]),
                             .text = ev->text};
    syslog_message(&c->ret[c->n], &m, strncmp(c->t->text, "udp:", 4) == 0 ? SYSLOG_MAX_UDP : SYSLOG_MAX);
    return true;
}

// What is composed again is not counted again.
static void drop(struct notify_target *t, uint64_t id)
{
    if (id <= t->dropped_to)
        return;
    t->dropped_to = id;
    t->dropped_untold++;
    t->status.dropped++;
}

static void on_event(void *arg, const struct db_event *ev)
{
    struct compose *c = arg;
    if (c->full)
        return;
    if (notify_event_kind(ev->kind)) {
        if (c->n == NOTIFY_BODIES) {
            c->full = true;
            return;
        }
        json_t *data = json_loads(ev->data, 0, NULL);
        if (ev->wall_ns < c->oldest_ns)
            drop(c->t, ev->id);
        else if (c->t->kind == NOTIFY_SYSLOG ? put_line(c, ev, data) : put_alert(c, ev, data))
            c->t->load[c->n++] = ev->id;
        json_decref(data);
    }
    c->last = ev->id;
}

unsigned events_compose(struct notify_target *t, struct buf ret[NOTIFY_BODIES])
{
    struct compose c = {.t = t, .ret = ret, .last = t->cursor, .oldest_ns = wall_now_ns() - t->n->replay_ns};
    struct db_event_query q = {.after_id = t->cursor, .limit = LOOK_AT};

    if (t->n->db == NULL || db_event_last_id(t->n->db) <= t->cursor)
        return 0;
    if (db_event_query(t->n->db, &q, on_event, &c) < 0)
        return 0;
    t->looked_at = c.last;
    t->num_loading = c.n;
    if (c.n == 0)
        t->cursor = c.last;
    return c.n;
}

void events_done(struct notify_target *t, unsigned delivered, bool refused)
{
    if (refused && delivered < t->num_loading)
        delivered++;
    if (delivered == t->num_loading)
        t->cursor = t->looked_at;
    else if (delivered > 0)
        t->cursor = t->load[delivered - 1];
}
