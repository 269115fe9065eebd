// SPDX-License-Identifier: Apache-2.0
// What is known of links, as records that outlive a restart: a record a link, with the state of both ends,
// and of one with something to say what was counted when, its downs and what stands. Times are told as ages,
// so that they fit into another run's clock; what a record does not have is learned anew (waits, hosts,
// modules: minutes). Counters go on while nobody reads them: the first reading after the restart says what
// came meanwhile, and how long that took, as after any reading that was missed. Where it cannot say that
// (cleared meanwhile) the time is a hole: neither free of errors nor full of them.
//
// A record: its length; number of ends; each end; whether there is more; that. Numbers are of seven bits a
// byte, least first. Whoever changes it changes MAGIC in keep_health.c.
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/text.h"
#include "lib/xalloc.h"
#include "telemetry/health_priv.h"

#define TEXT_MAX 400
#define AGE_MAX (1LL << 61)
#define ENTRIES_MAX 256
_Static_assert(SIGNALS == 8 && TELE_COUNTERS <= 64, "records say which signal is which by its number");

// --- bytes out ---

struct out {
    struct buf *b;
    int64_t now;
};

static void put(struct out *o, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        buf_putc(o->b, (char)(v | 0x80));
    buf_putc(o->b, (char)v);
}

static uint64_t zigzag(int64_t v)
{
    return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

// 0 and INT64_MIN mean never.
static void put_time(struct out *o, int64_t t)
{
    put(o, t == 0 ? 0 : t == INT64_MIN ? 1 : 2 + zigzag(o->now - t));
}

static void put_float(struct out *o, float f)
{
    buf_add(o->b, &f, sizeof(f));
}

static void put_text(struct out *o, const char *s)
{
    size_t n = s ? text_cut(s, TEXT_MAX) : 0;
    put(o, n);
    if (n)
        buf_add(o->b, s, n);
}

// --- bytes in ---

struct in {
    const uint8_t *p, *end;
    int64_t then; // what `now` was, as a time of this run
    bool bad;
};

static uint64_t get(struct in *i)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (i->p == i->end)
            break;
        uint8_t byte = *i->p++;
        v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80))
            return v;
    }
    i->bad = true;
    return 0;
}

static uint64_t get_below(struct in *i, uint64_t limit)
{
    uint64_t v = get(i);
    if (v < limit)
        return v;
    i->bad = true;
    return 0;
}

static int64_t unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static int64_t get_age(struct in *i)
{
    int64_t age = unzigzag(get(i));
    if (age > -AGE_MAX && age < AGE_MAX)
        return age;
    i->bad = true;
    return 0;
}

static int64_t get_time_or_never(struct in *i)
{
    uint64_t v = get(i);
    if (v < 2)
        return v ? INT64_MIN : 0;
    int64_t age = unzigzag(v - 2);
    if (age <= -AGE_MAX || age >= AGE_MAX) {
        i->bad = true;
        return 0;
    }
    int64_t t = i->then - age;
    return t ? t : -1;
}

static int64_t get_time(struct in *i)
{
    int64_t t = get_time_or_never(i);
    i->bad |= t == INT64_MIN;
    return t;
}

static const uint8_t *get_bytes(struct in *i, size_t n)
{
    const uint8_t *p = i->p;
    if ((size_t)(i->end - i->p) < n) {
        i->bad = true;
        return NULL;
    }
    i->p += n;
    return p;
}

static float get_float(struct in *i)
{
    const uint8_t *p = get_bytes(i, sizeof(float));
    float f = 0;
    if (p)
        memcpy(&f, p, sizeof(f));
    if (!isfinite(f) || f < 0) {
        i->bad = true;
        return 0;
    }
    return f;
}

static char *get_text(struct in *i)
{
    size_t n = get_below(i, TEXT_MAX + 1);
    const uint8_t *p = get_bytes(i, n);
    if (!p)
        return NULL;
    char *s = xmalloc(n + 1);
    if (n)
        memcpy(s, p, n);
    s[n] = 0;
    text_clean(s); // else nothing that is told with it could be read
    return s;
}

// --- an end ---

static int64_t unit_of(int64_t t)
{
    return t / HEALTH_HOLE - (t % HEALTH_HOLE < 0);
}

static void put_port(struct out *o, const struct tele_port *tp, const struct health_port *p)
{
    uint8_t day[HEALTH_QUARTERS];
    buf_add(o->b, &tp->node_guid, sizeof(tp->node_guid));
    put(o, tp->num);
    put(o, (uint64_t)p->seen_up | (uint64_t)p->up << 1 | (uint64_t)(p->block != 0) << 2);
    put(o, p->seen);
    for (unsigned c = 0; c < sizeof(p->last) / sizeof(p->last[0]); c++)
        put(o, p->last[c]);
    put(o, p->last_corrected);
    put(o, p->last_uncorrectable);
    const int64_t time[] = {p->at_errors, p->at_speed,   p->from,  p->downs_from,
                            p->downs_at,  p->reset_seen, p->up_at, p->down_at};
    for (unsigned t = 0; t < sizeof(time) / sizeof(time[0]); t++)
        put_time(o, time[t]);
    put(o, (uint64_t)p->every);
    put(o, p->rate_mbps);
    put(o, p->holes);
    put(o, zigzag(unit_of(o->now) - p->hole_unit));
    if (p->block == 0)
        return;
    const float f[] = {p->raw_now[0],  p->raw_now[1],  p->raw_bits[0],
                       p->raw_bits[1], p->slot_errors, p->slot_bits};
    for (unsigned k = 0; k < sizeof(f) / sizeof(f[0]); k++)
        put_float(o, f[k]);
    put(o, p->raw_over);
    put(o, zigzag(raw_age(p, o->now, day)));
    buf_add(o->b, day, sizeof(day));
}

static void get_port(struct in *i, struct health_port *p, uint64_t *ret_guid, uint8_t *ret_num)
{
    const uint8_t *guid = get_bytes(i, 8);
    if (guid)
        memcpy(ret_guid, guid, 8);
    *ret_num = (uint8_t)get_below(i, 256);
    uint64_t flags = get_below(i, 8);
    p->seen_up = flags & 1;
    p->up = flags >> 1 & 1;
    p->seen = get(i);
    for (unsigned c = 0; c < sizeof(p->last) / sizeof(p->last[0]); c++)
        p->last[c] = get(i);
    p->last_corrected = get(i);
    p->last_uncorrectable = get(i);
    int64_t *const time[] = {&p->at_errors, &p->at_speed,   &p->from,  &p->downs_from,
                             &p->downs_at,  &p->reset_seen, &p->up_at, &p->down_at};
    for (unsigned t = 0; t < sizeof(time) / sizeof(time[0]); t++)
        *time[t] = get_time(i);
    p->every = (int64_t)get_below(i, AGE_MAX);
    p->rate_mbps = (uint32_t)get_below(i, UINT32_MAX);
    p->holes = get(i);
    p->hole_unit = unit_of(i->then) - get_age(i);
    if (!(flags & 4))
        return;
    float *const f[] = {&p->raw_now[0],  &p->raw_now[1],  &p->raw_bits[0],
                        &p->raw_bits[1], &p->slot_errors, &p->slot_bits};
    for (unsigned k = 0; k < sizeof(f) / sizeof(f[0]); k++)
        *f[k] = get_float(i);
    p->raw_over = (uint8_t)get_below(i, 256);
    int64_t age = get_age(i);
    const uint8_t *day = get_bytes(i, HEALTH_QUARTERS);
    if (day)
        raw_resume(p, i->then, age, day);
}

// --- a link of which there is something to say ---

static void put_series(struct out *o, const struct health_series *s)
{
    put(o, s ? s->n : 0);
    for (uint32_t k = 0; s && k < s->n; k++) {
        put_time(o, s->entry[k].t1);
        put(o, (uint64_t)(s->entry[k].t1 - s->entry[k].t0));
        put(o, s->entry[k].count);
    }
}

static void get_series(struct in *i, struct health_series **s)
{
    uint32_t n = (uint32_t)get_below(i, ENTRIES_MAX + 1);
    for (uint32_t k = 0; k < n && !i->bad; k++) {
        int64_t t1 = get_time(i), span = (int64_t)get_below(i, AGE_MAX);
        uint64_t count = get(i);
        if (t1 == INT64_MIN || t1 < series_last(*s))
            i->bad = true;
        else
            series_add(s, t1 - span, t1, count);
    }
}

static void put_downs(struct out *o, const struct health_downs *d)
{
    for (int e = 0; e < 2; e++) {
        put(o, d->num_pending[e]);
        for (unsigned k = 0; k < d->num_pending[e]; k++) {
            put(o, d->pending[e][k].n);
            put_time(o, d->pending[e][k].t0);
            put_time(o, d->pending[e][k].t1);
        }
    }
    put(o, d->num_episodes);
    for (unsigned k = 0; k < d->num_episodes; k++) {
        put_time(o, d->episode[k].down);
        put_time(o, d->episode[k].up);
    }
    put(o, d->num);
    for (unsigned k = 0; k < d->num; k++) {
        put_time(o, d->down[k].at);
        put(o, d->down[k].weak);
    }
}

static void get_downs(struct in *i, struct health_downs *d)
{
    for (int e = 0; e < 2; e++) {
        d->num_pending[e] = (uint8_t)get_below(i, HEALTH_PENDING + 1);
        for (unsigned k = 0; k < d->num_pending[e]; k++) {
            d->pending[e][k].n = (uint32_t)get_below(i, 1ull << 32);
            d->pending[e][k].t0 = get_time(i);
            d->pending[e][k].t1 = get_time(i);
        }
    }
    d->num_episodes = (uint8_t)get_below(i, HEALTH_PENDING + 1);
    for (unsigned k = 0; k < d->num_episodes; k++) {
        d->episode[k].down = get_time(i);
        d->episode[k].up = get_time(i);
    }
    d->num = (uint8_t)get_below(i, HEALTH_DOWNS + 1);
    for (unsigned k = 0; k < d->num; k++) {
        d->down[k].at = get_time(i);
        d->down[k].weak = get_below(i, 2);
    }
}

static void put_verdicts(struct out *o, const struct health_link *l)
{
    for (unsigned r = 0; r < HEALTH_RULES; r++) {
        const struct health_verdict *v = &l->verdict[r];
        if (v->since == 0)
            continue;
        put_text(o, health_rules[r].id);
        put(o, (uint64_t)(v->level + 1));
        put(o, v->severity);
        put_time(o, v->since);
        for (int k = 0; k < HEALTH_LEVELS; k++)
            put_time(o, v->bad_at[k]);
        put_text(o, v->reason);
        put_text(o, v->evidence);
    }
    put_text(o, "");
}

// What cannot be told of a time in which nobody looked is not over before it was looked at again.
static bool needs_looking(const struct health_rule *r)
{
    return r->kind == KIND_HELD || r->kind == KIND_HOT || r->kind == KIND_OPTICS || r->kind == KIND_SLOW;
}

static void take_verdict(struct in *i, struct health_link *l, const char *id)
{
    struct health_verdict v = {.level = (int8_t)((int)get_below(i, HEALTH_LEVELS + 1) - 1),
                               .severity = (uint8_t)get_below(i, ALARM_CRITICAL + 1)};
    v.since = get_time(i);
    for (int k = 0; k < HEALTH_LEVELS; k++)
        v.bad_at[k] = get_time_or_never(i);
    v.reason = get_text(i);
    v.evidence = get_text(i);
    json_t *evidence = json_loads(v.evidence ? v.evidence : "", 0, NULL);
    if (!json_is_object(evidence)) { // told without it
        free(v.evidence);
        v.evidence = NULL;
    }
    json_decref(evidence);
    unsigned r = 0;
    while (r < HEALTH_RULES && strcmp(health_rules[r].id, id) != 0)
        r++;
    if (i->bad || r == HEALTH_RULES || l->verdict[r].since ||
        (v.level >= 0 && health_rules[r].level[v.level].window == 0)) {
        free(v.reason);
        free(v.evidence);
        return;
    }
    for (int k = 0; k <= v.level && needs_looking(&health_rules[r]); k++)
        v.bad_at[k] = i->then > v.bad_at[k] ? i->then : v.bad_at[k];
    v.untold = v.level >= 0;
    l->verdict[r] = v;
}

static void get_verdicts(struct in *i, struct health_link *l)
{
    for (unsigned n = 0; n < 100 && !i->bad; n++) {
        char *id = get_text(i);
        bool end = !id || !id[0];
        if (!end)
            take_verdict(i, l, id);
        free(id);
        if (end)
            return;
    }
    i->bad = true;
}

static void put_link(struct out *o, const struct health_link *l)
{
    for (int e = 0; e < 2; e++)
        for (unsigned s = 0; s < SIGNALS; s++)
            put_series(o, l->series[e][s]);
    put(o, l->downs != NULL);
    if (l->downs)
        put_downs(o, l->downs);
    put_time(o, l->down_since);
    put_time(o, l->slow_since);
    put_time(o, l->state_since);
    put_time(o, l->healthy_since);
    put(o, l->state);
    put_float(o, l->raw_base);
    put_verdicts(o, l);
}

static void get_link(struct in *i, struct health_link *l)
{
    for (int e = 0; e < 2; e++)
        for (unsigned s = 0; s < SIGNALS; s++)
            get_series(i, &l->series[e][s]);
    if (get_below(i, 2)) {
        l->downs = xcalloc(1, sizeof(*l->downs));
        get_downs(i, l->downs);
    }
    l->down_since = get_time(i);
    l->slow_since = get_time(i);
    l->state_since = get_time(i);
    l->healthy_since = get_time(i);
    l->state = (enum health_state)get_below(i, HEALTH_DOWN + 1);
    l->raw_base = get_float(i);
    get_verdicts(i, l);
    l->awake = ~0u >> (32 - HEALTH_RULES);
}

// --- records ---

void health_put(const struct health *h, const struct tele_table *t, uint32_t slot, enum health_part part,
                int64_t now, struct buf *b)
{
    if (slot >= h->num || slot >= t->num || health_lower(h, slot) != slot)
        return;
    uint32_t mate = h->port[slot].mate;
    const struct health_link *l = h->port[slot].link;
    bool far = mate != TELE_SLOT_NONE && mate < t->num;
    if ((l != NULL) != (part == HEALTH_NOTED) ||
        (!l && h->port[slot].at_errors == 0 && (!far || h->port[mate].at_errors == 0)))
        return;
    struct buf body = {0};
    struct out o = {&body, now}, head = {b, now};
    put(&o, far ? 2 : 1);
    put_port(&o, &t->port[slot], &h->port[slot]);
    if (far)
        put_port(&o, &t->port[mate], &h->port[mate]);
    put(&o, l != NULL);
    if (l)
        put_link(&o, l);
    put(&head, body.len);
    buf_add(b, body.data, body.len);
    buf_done(&body);
}

// What it had of an earlier record has gone.
static void resume_port(struct health *h, uint32_t slot, const struct health_port *from)
{
    struct health_port *p = &h->port[slot];
    *p = *from;
    p->resumed = p->at_errors != 0;
    p->was_known = true;
}

static void drop_port(struct health *h, uint32_t slot)
{
    uint32_t mate = h->port[slot].mate;
    if (h->port[slot].link)
        health_link_free(h, h->port[slot].link);
    health_port_init(&h->port[slot]);
    if (mate != TELE_SLOT_NONE) // the later record has another cable there
        health_port_init(&h->port[mate]);
}

static void fill_link(struct health *h, struct health_link *l, struct health_link *from, bool swap)
{
    for (int e = 0; e < 2; e++)
        for (unsigned s = 0; s < SIGNALS; s++) {
            l->series[swap ? !e : e][s] = from->series[e][s];
            from->series[e][s] = NULL;
        }
    memcpy(l->verdict, from->verdict, sizeof(l->verdict));
    memset(from->verdict, 0, sizeof(from->verdict));
    l->downs = from->downs;
    from->downs = NULL;
    if (swap && l->downs) {
        struct health_downs was = *l->downs;
        for (int e = 0; e < 2; e++) {
            memcpy(l->downs->pending[!e], was.pending[e], sizeof(was.pending[e]));
            l->downs->num_pending[!e] = was.num_pending[e];
        }
    }
    l->down_since = from->down_since;
    l->slow_since = from->slow_since;
    l->state = from->state;
    l->state_since = from->state_since;
    l->healthy_since = from->healthy_since;
    l->raw_base = from->raw_base;
    l->awake = from->awake;
}

struct record {
    uint64_t ends;
    uint64_t guid[2];
    uint8_t num[2];
    struct health_port port[2];
    struct health_link link;
    bool noted;
};

static void record_done(struct record *r)
{
    for (int e = 0; e < 2; e++)
        for (unsigned s = 0; s < SIGNALS; s++)
            free(r->link.series[e][s]);
    for (unsigned k = 0; k < HEALTH_RULES; k++) {
        free(r->link.verdict[k].reason);
        free(r->link.verdict[k].evidence);
    }
    free(r->link.downs);
}

static void take_record(struct health *h, struct record *r, health_slot_fn *find, void *arg)
{
    uint32_t slot[2] = {TELE_SLOT_NONE, TELE_SLOT_NONE};
    for (unsigned e = 0; e < r->ends; e++) {
        slot[e] = find(arg, r->guid[e], r->num[e]);
        if (slot[e] == TELE_SLOT_NONE)
            return; // a link needs both its ends
        health_grow(h, slot[e] + 1);
    }
    if (slot[0] == slot[1])
        return;
    for (unsigned e = 0; e < r->ends; e++)
        drop_port(h, slot[e]);
    for (unsigned e = 0; e < r->ends; e++)
        resume_port(h, slot[e], &r->port[e]);
    if (r->ends == 2) {
        h->port[slot[0]].mate = slot[1];
        h->port[slot[1]].mate = slot[0];
    }
    if (r->noted) {
        struct health_link *l = health_link_get(h, slot[0]);
        fill_link(h, l, &r->link, l->slot[0] != slot[0]);
    }
}

bool health_take(struct health *h, const uint8_t *p, size_t n, int64_t then, health_slot_fn *find, void *arg)
{
    struct in all = {.p = p, .end = p + n, .then = then};
    while (all.p < all.end) {
        size_t len = get_below(&all, n + 1);
        const uint8_t *body = get_bytes(&all, len);
        if (!body)
            return false;
        struct in i = {.p = body, .end = body + len, .then = then};
        struct record r = {.ends = get_below(&i, 3)};
        for (unsigned k = 0; k < HEALTH_RULES; k++)
            r.link.verdict[k].level = -1;
        for (unsigned e = 0; e < r.ends; e++) {
            health_port_init(&r.port[e]);
            get_port(&i, &r.port[e], &r.guid[e], &r.num[e]);
        }
        r.noted = get_below(&i, 2);
        if (r.noted && !i.bad)
            get_link(&i, &r.link);
        if (!i.bad && r.ends > 0 && i.p == i.end)
            take_record(h, &r, find, arg);
        record_done(&r);
        if (i.bad)
            return false;
    }
    return !all.bad;
}

uint64_t health_changes(const struct health *h, enum health_part part)
{
    return part == HEALTH_NOTED ? h->changes : h->moved;
}
