// SPDX-License-Identifier: Apache-2.0
// Silences and maintenance windows, and acknowledging. A silence hides nothing: what it covers stays in the
// list with its number, and those who send alarms on keep quiet. A window is a silence that tells at its end
// what still stands.
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/guid.h"
#include "lib/xalloc.h"
#include "telemetry/alarm_priv.h"

#define YEAR (366 * 86400 * MONO_S)
#define TEXT_MAX 1000
#define LISTED 50 // alarms in the data of maintenance-ended

// --- what a silence covers ---

static bool guid_covers(const char *focus, uint64_t guid, uint8_t port)
{
    char text[64];
    uint64_t g;
    unsigned num = 0;
    const char *slash = strchr(focus, '/');
    size_t n = slash ? (size_t)(slash - focus) : strlen(focus);
    if (guid == 0 || n >= sizeof(text))
        return false;
    memcpy(text, focus, n);
    text[n] = 0;
    if (strncmp(text, "0x", 2) != 0 || guid_parse(text, &g) != 0 || g != guid)
        return false;
    return !slash || (sscanf(slash + 1, "%u", &num) == 1 && num == port);
}

// One end of a place, "leaf-3/44" or "leaf-3[44]", against "leaf-*", "leaf-3/44".
static bool name_covers(const char *focus, const char *end, size_t n)
{
    char text[256], *at;
    if (n >= sizeof(text))
        return false;
    memcpy(text, end, n);
    text[n] = 0;
    if (fnmatch(focus, text, 0) == 0)
        return true;
    at = strpbrk(text, "/[");
    if (at)
        *at = 0;
    return at && fnmatch(focus, text, 0) == 0;
}

static bool place_covers(const char *focus, const char *place)
{
    const char *mid = strstr(place, " <-> ");
    if (!mid)
        return name_covers(focus, place, strlen(place));
    return name_covers(focus, place, (size_t)(mid - place)) || name_covers(focus, mid + 5, strlen(mid + 5));
}

static bool covers(const struct alarms *a, const struct alarm_silence *s, const struct alarm_rec *r)
{
    if (s->rule[0] && strcmp(s->rule, r->v.rule->id) != 0)
        return false;
    if (!s->focus[0])
        return true;
    for (int i = 0; i < 2; i++) {
        if (a->cb.covers && r->node_guid[i] &&
            a->cb.covers(a->cb.arg, s->focus, r->v.fabric, r->node_guid[i], r->port[i]))
            return true;
        if (!a->cb.covers && guid_covers(s->focus, r->node_guid[i], r->port[i]))
            return true;
    }
    if (a->cb.covers && (r->node_guid[0] || r->node_guid[1]))
        return false;
    return place_covers(s->focus, r->v.place) || strcmp(s->focus, r->v.subject) == 0;
}

static uint64_t silence_of(const struct alarms *a, const struct alarm_rec *r)
{
    for (uint32_t i = 0; i < a->num_silences; i++)
        if (a->silence[i].begun && covers(a, &a->silence[i].v, r))
            return a->silence[i].v.id;
    return 0;
}

// A group is also silenced when all that it has taken in is.
void alarm_silence_find(struct alarms *a, struct alarm_rec *r)
{
    uint64_t id = silence_of(a, r);
    if (!id && r->v.group && r->member) {
        id = r->member->v.silence;
        for (const struct alarm_rec *m = r->member; m && id; m = m->member_next)
            id = m->v.silence ? id : 0;
    }
    r->v.silence = id;
}

static void look_at_all(struct alarms *a)
{
    a->looked = alarms_now(a);
    for (int pass = 0; pass < 2; pass++) { // members before their groups
        for (struct alarm_rec *r = a->first; r; r = r->next) {
            uint64_t before = r->v.silence;
            if (r->v.group != (pass == 1))
                continue;
            alarm_silence_find(a, r);
            if (r->v.silence != before && !r->leader && r->told)
                alarm_tell_now(a, r, ALARM_SILENCED, "");
        }
    }
    a->list_stale = true;
}

// --- beginning and ending ---

static void data_of(struct buf *b, const struct alarm_silence *s, const char *by)
{
    buf_printf(b, "{\"silence\":%llu,\"maintenance\":%s", (unsigned long long)s->id,
               s->maintenance ? "true" : "false");
    alarm_json(b, "focus", s->focus);
    alarm_json(b, "rule", s->rule);
    alarm_json(b, "owner", s->owner);
    alarm_json(b, "reason", s->reason);
    if (by[0])
        alarm_json(b, "by", by);
}

static const char *what_of(const struct alarm_silence *s)
{
    return s->focus[0] ? s->focus : s->rule[0] ? s->rule : "everything";
}

static void tell_begun(struct alarms *a, const struct alarm_silence *s)
{
    struct buf data = {0}, text = {0};
    char until[40];
    data_of(&data, s, "");
    buf_putc(&data, '}');
    buf_printf(&text, "%s: %s%s%s until %s by %s: %s", s->maintenance ? "maintenance" : "silence", what_of(s),
               s->focus[0] && s->rule[0] ? ", " : "", s->focus[0] ? s->rule : "",
               wall_format(s->until_wall_ns, until, sizeof(until)), s->owner, s->reason);
    alarm_event(a, "", "silence-begun", "notice", s->focus, text.data, data.data);
    buf_done(&data);
    buf_done(&text);
}

// What it covered and has not come back.
static uint32_t left_of(const struct alarms *a, uint64_t id, struct buf *names, struct buf *ids)
{
    uint32_t n = 0;
    for (const struct alarm_rec *r = a->first; r; r = r->next) {
        if (r->leader || !r->v.active || r->v.silence != id || r->v.severity == ALARM_INFO)
            continue;
        if (n++ >= LISTED)
            continue;
        buf_printf(names, "%s%s %s", n > 1 ? "; " : "", r->v.rule->id,
                   r->v.place[0] ? r->v.place : r->v.subject);
        buf_printf(ids, "%s%llu", n > 1 ? "," : "", (unsigned long long)r->v.id);
    }
    return n;
}

static void tell_ended(struct alarms *a, const struct alarm_silence *s, const char *by)
{
    struct buf data = {0}, text = {0}, names = {0}, ids = {0};
    uint32_t n = left_of(a, s->id, &names, &ids);
    const char *kind = s->maintenance ? "maintenance-ended" : "silence-ended";
    data_of(&data, s, by);
    buf_printf(&data, ",\"standing\":%u,\"alarms\":[%s]}", n, ids.data ? ids.data : "");
    buf_printf(&text, "%s of %s by %s (%s) %s; ", s->maintenance ? "maintenance" : "silence", what_of(s),
               s->owner, s->reason, by[0] ? "was ended" : "is over");
    if (n == 0)
        buf_puts(&text, s->maintenance ? "all is back" : "nothing that it covered stands");
    else
        buf_printf(&text, "%u %s: %s%s", n, s->maintenance ? "have not come back" : "stand", names.data,
                   n > LISTED ? "; and more" : "");
    alarm_event(a, "", kind, n ? "warning" : "notice", s->focus, text.data, data.data);
    buf_done(&data);
    buf_done(&text);
    buf_done(&names);
    buf_done(&ids);
}

static void silence_done(struct silence_rec *s)
{
    free((void *)s->v.focus);
    free((void *)s->v.rule);
    free((void *)s->v.owner);
    free((void *)s->v.reason);
}

static void end(struct alarms *a, uint32_t i, const char *by)
{
    struct silence_rec s = a->silence[i];
    if (s.begun)
        tell_ended(a, &s.v, by);
    memmove(&a->silence[i], &a->silence[i + 1], (a->num_silences - i - 1) * sizeof(s));
    a->num_silences--;
    alarm_keep_forget_silence(a, s.v.id);
    silence_done(&s);
    look_at_all(a);
}

int64_t alarm_silences_tick(struct alarms *a)
{
    int64_t wall = alarms_wall(a), next = INT64_MAX;
    for (uint32_t i = 0; i < a->num_silences;) {
        struct silence_rec *s = &a->silence[i];
        if (wall >= s->v.until_wall_ns) {
            end(a, i, "");
            continue;
        }
        if (!s->begun && wall >= s->v.from_wall_ns) {
            s->begun = true;
            tell_begun(a, &s->v);
            look_at_all(a);
        }
        int64_t wait = (s->begun ? s->v.until_wall_ns : s->v.from_wall_ns) - wall;
        wait = wait > 60 * MONO_S ? 60 * MONO_S : wait; // the wall clock may be set
        next = alarms_now(a) + wait < next ? alarms_now(a) + wait : next;
        i++;
    }
    // Names come and go: what a focus covers is another thing then.
    if (a->num_silences && alarms_now(a) - a->looked >= 60 * MONO_S)
        look_at_all(a);
    return next;
}

static int check(const struct alarms *a, const struct alarm_silence *s, struct err *e)
{
    int64_t now = alarms_wall(a);
    if (!s->owner || !s->owner[0])
        return err_set(e, -EINVAL, "owner", "a silence needs an owner: whom to ask");
    if (!s->reason || !s->reason[0])
        return err_set(e, -EINVAL, "reason", "a silence needs a reason");
    if (s->until_wall_ns <= now || s->until_wall_ns <= s->from_wall_ns)
        return err_set(e, -EINVAL, "until", "a silence must end later than now and than it begins");
    if (s->until_wall_ns - now > YEAR)
        return err_set(e, -EINVAL, "until", "a silence lasts a year at most");
    if (s->rule && s->rule[0] && !alarm_rule(s->rule))
        return err_set(e, -EINVAL, "rule", "there is no rule %.20s", s->rule);
    const char *text[] = {s->owner, s->reason, s->focus ? s->focus : ""};
    for (int i = 0; i < 3; i++)
        if (strlen(text[i]) > TEXT_MAX)
            return err_set(e, -E2BIG, "silence", "owner, reason and focus are %d bytes at most", TEXT_MAX);
    if (a->num_silences >= ALARM_SILENCES_MAX)
        return err_set(e, -ENOSPC, "silence", "there are %u silences already", ALARM_SILENCES_MAX);
    return 0;
}

static void add(struct alarms *a, const struct alarm_silence *s, bool begun)
{
    a->silence = xreallocarray(a->silence, a->num_silences + 1, sizeof(*a->silence));
    struct silence_rec *r = &a->silence[a->num_silences++];
    *r = (struct silence_rec){.v = *s, .begun = begun};
    r->v.focus = xstrdup(s->focus ? s->focus : "");
    r->v.rule = xstrdup(s->rule ? s->rule : "");
    r->v.owner = xstrdup(s->owner);
    r->v.reason = xstrdup(s->reason);
}

// One that has ended meanwhile ends with the first look, so that it is told.
void alarm_silence_load(struct alarms *a, const struct alarm_silence *s)
{
    if (a->num_silences < ALARM_SILENCES_MAX)
        add(a, s, s->from_wall_ns <= alarms_wall(a));
}

uint64_t alarm_silence_add(struct alarms *a, const struct alarm_silence *s, struct err *e)
{
    if (check(a, s, e) != 0)
        return 0;
    struct alarm_silence v = *s;
    v.id = alarms_new_id(a);
    if (v.from_wall_ns <= 0)
        v.from_wall_ns = alarms_wall(a);
    add(a, &v, false);
    alarm_keep_silence(a, &a->silence[a->num_silences - 1].v);
    alarm_wake(a, alarm_silences_tick(a));
    return v.id;
}

int alarm_silence_end(struct alarms *a, uint64_t id, const char *by)
{
    for (uint32_t i = 0; i < a->num_silences; i++) {
        if (a->silence[i].v.id == id) {
            end(a, i, by && by[0] ? by : "somebody");
            return 0;
        }
    }
    return -ENOENT;
}

uint32_t alarm_silences(const struct alarms *ca, const struct alarm_silence **ret)
{
    struct alarms *a = (struct alarms *)ca; // the cache alone
    free(a->silence_list);
    a->silence_list = xcalloc(a->num_silences ? a->num_silences : 1, sizeof(*a->silence_list));
    for (uint32_t i = 0; i < a->num_silences; i++)
        a->silence_list[i] = a->silence[i].v;
    *ret = a->silence_list;
    return a->num_silences;
}

void alarm_silences_free(struct alarms *a)
{
    for (uint32_t i = 0; i < a->num_silences; i++)
        silence_done(&a->silence[i]);
    free(a->silence);
    free(a->silence_list);
}

// --- acknowledging ---

int alarm_ack(struct alarms *a, uint64_t id, const char *by, const char *note)
{
    struct alarm_rec *r = alarm_rec_by_id(a, id);
    if (!r)
        return -ENOENT;
    r->v.acked = true;
    alarm_put(&r->v.acked_by, by, TEXT_MAX);
    alarm_put(&r->v.ack_note, note, TEXT_MAX);
    alarm_dirty(a, r, 2);
    alarm_tell_now(a, r, ALARM_ACKED, r->v.acked_by);
    return 0;
}
