// SPDX-License-Identifier: Apache-2.0
// What is told of alarms: events and changes. Raising and changing wait a second, so that what becomes a
// group is told as one; members are not told while they are some group's.
#include <stdio.h>
#include <string.h>

#include "lib/buf.h"
#include "telemetry/alarm_priv.h"

#define HOLD MONO_S

void alarm_json(struct buf *b, const char *key, const char *s)
{
    if (b->len > 0 && b->data[b->len - 1] != '{' && b->data[b->len - 1] != '[')
        buf_putc(b, ',');
    if (key)
        buf_printf(b, "\"%s\":", key);
    buf_putc(b, '"');
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            buf_printf(b, "\\u%04x", c);
        else
            buf_putc(b, *s);
    }
    buf_putc(b, '"');
}

void alarm_event(struct alarms *a, const char *fabric, const char *kind, const char *severity,
                 const char *subject, const char *text, const char *data)
{
    if (a->cb.event)
        a->cb.event(a->cb.arg, fabric, kind, severity, subject, text, data);
}

static const char *event_severity(const struct alarm *v, int what)
{
    static const char *const name[] = {"info", "notice", "warning", "error"};
    return what == ALARM_CLEARED || what == ALARM_ACKED || what == ALARM_SILENCED || !v->active
               ? "notice"
               : name[v->severity];
}

// What is sent on of an alarm that may be gone by then: notify_events.c reads it.
static void data_of(struct buf *b, const struct alarm *v, const char *by)
{
    buf_printf(b, "{\"alarm\":%llu", (unsigned long long)v->id);
    alarm_json(b, "rule", v->rule->id);
    alarm_json(b, "subject", v->subject);
    alarm_json(b, "severity", alarm_severity_name(v->severity));
    buf_printf(b, ",\"active\":%s,\"count\":%llu,\"members\":%u", v->active ? "true" : "false",
               (unsigned long long)v->count, v->members);
    char since[32];
    alarm_json(b, "since", wall_format(v->since_wall_ns, since, sizeof(since)));
    alarm_json(b, "place", v->place);
    alarm_json(b, "reason", v->reason);
    if (v->peer[0])
        alarm_json(b, "peer", v->peer);
    if (v->cable[0])
        alarm_json(b, "cable", v->cable);
    if (v->silence)
        buf_printf(b, ",\"silence\":%llu", (unsigned long long)v->silence);
    if (v->cause)
        buf_printf(b, ",\"cause\":%llu", (unsigned long long)v->cause);
    buf_printf(b, ",\"root\":%llu", (unsigned long long)(v->root ? v->root : v->id));
    if (v->follows)
        alarm_json(b, "follows", v->follows->id);
    if (by[0])
        alarm_json(b, "by", by);
    if (v->evidence[0] == '{')
        buf_printf(b, ",\"evidence\":%s", v->evidence);
    buf_putc(b, '}');
}

static void text_of(struct buf *b, const struct alarm *v, int what, const char *by)
{
    const char *dash = v->place[0] ? ": " : "", *at = v->group ? "" : v->place;
    if (v->group)
        dash = "";
    buf_printf(b, "%s %s", v->rule->id, v->rule->title);
    if (what == ALARM_CLEARED && v->leader)
        buf_printf(b, " is part of alarm %llu now: %s%s%s", (unsigned long long)v->leader, at, dash,
                   v->reason);
    else if (what == ALARM_CLEARED)
        buf_printf(b, " is over: %s%s%s", at, dash, v->reason);
    else if (what == ALARM_ACKED)
        buf_printf(b, " is known to %s%s%s: %s", by, v->ack_note[0] ? ", " : "", v->ack_note, v->place);
    else if (what == ALARM_SILENCED)
        buf_printf(b, v->silence ? " is silenced: %s" : " is silenced no more: %s", v->place);
    else if (what == ALARM_CHANGED && !v->active)
        buf_printf(b, " stands no more, kept for some minutes: %s%s%s", at, dash, v->reason);
    else
        buf_printf(b, ": %s%s%s", at, dash, v->reason);
}

void alarm_tell_now(struct alarms *a, struct alarm_rec *r, int what, const char *by)
{
    static const char *const kind[] = {
        [ALARM_RAISED] = "alarm-raised", [ALARM_CHANGED] = "alarm-changed", [ALARM_CLEARED] = "alarm-cleared",
        [ALARM_ACKED] = "alarm-acked",   [ALARM_SILENCED] = NULL,
    };
    struct buf text = {0}, data = {0};
    if (kind[what]) { // a silence has events of its own
        text_of(&text, &r->v, what, by);
        data_of(&data, &r->v, by);
        const char *name = what == ALARM_CLEARED && r->leader ? "alarm-grouped" : kind[what];
        alarm_event(a, r->v.fabric, name, event_severity(&r->v, what),
                    r->v.place[0] ? r->v.place : r->v.subject, text.data, data.data);
    }
    if (a->cb.change) {
        struct alarm_change c = {.alarm = &r->v};
        c.what = what;
        a->cb.change(a->cb.arg, &c);
    }
    buf_done(&text);
    buf_done(&data);
}

static void come_in_a_second(struct alarms *a)
{
    int64_t at = alarms_now(a) + HOLD;
    if (!loop_timer_pending(&a->tell) || a->tell.due.ns > at)
        loop_timer_at(&a->tell, (mono_t){at});
}

void alarm_tell_later(struct alarms *a, struct alarm_rec *r, uint8_t what)
{
    r->untold |= what;
    come_in_a_second(a);
}

void alarm_causes_moved(struct alarms *a)
{
    a->causes_stale = a->list_stale = true;
    come_in_a_second(a);
}

static void tell_one(struct alarms *a, struct alarm_rec *r)
{
    uint8_t what = r->untold;
    r->untold = 0;
    if (r->leader) // its leader speaks for it
        return;
    if (!r->told) {
        r->told = true;
        alarm_tell_now(a, r, ALARM_RAISED, "");
    } else if (what) {
        alarm_tell_now(a, r, ALARM_CHANGED, "");
    }
}

void alarm_tell(void *arg)
{
    struct alarms *a = arg;
    bool later = false;

    alarm_causes(a);
    for (struct alarm_rec *r = a->first; r; r = r->next)
        if (r->untold)
            tell_one(a, r);
    alarm_keep_save(a, false);
    for (struct alarm_rec *r = a->first; r && !later; r = r->next)
        later = r->dirty;
    if (later)
        loop_timer_after(&a->tell, 60 * MONO_S);
}
