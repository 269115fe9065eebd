// SPDX-License-Identifier: Apache-2.0
#include "telemetry/isolate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/guid.h"
#include "lib/hash.h"
#include "lib/text.h"
#include "lib/xalloc.h"
#include "telemetry/alarm_priv.h"
#include "telemetry/isolate_priv.h"

#define WEEK (7 * 86400 * MONO_S)
#define YEAR (366 * 86400 * MONO_S)
#define AGAIN (1800 * MONO_S) // what was refused is tried again
#define SETTLED (60 * MONO_S) // a state must have lasted

void isolate_opts_default(struct isolate_opts *o)
{
    *o = (struct isolate_opts){.mode = ISOLATE_PROPOSE,
                               .hosts = ISOLATE_HOSTS_NEVER,
                               .cap_links = 10,
                               .cap_share = 0.005,
                               .keep_uplinks = 0.75,
                               .clean_ns = 126 * 60 * MONO_S,
                               .per_week = 2};
}

const char *isolate_verdict_name(enum isolate_verdict v)
{
    static const char *const name[] = {"yes",      "already",      "off",    "unknown", "down",
                                       "excluded", "twice-a-week", "host",   "last",    "splits",
                                       "uplinks",  "cap",          "refused"};
    return name[v];
}

// --- events ---

static void tell(struct isolate *i, const struct isolate_rec *r, const char *kind, const char *severity,
                 const char *by, const char *text)
{
    struct buf b = {0};
    if (!i->cb.event)
        return;
    buf_putc(&b, '{');
    alarm_json(&b, "rule", r->rule);
    alarm_json(&b, "reason", r->reason);
    alarm_json(&b, "verdict", isolate_verdict_name(r->verdict));
    if (r->why[0])
        alarm_json(&b, "why", r->why);
    if (by[0])
        alarm_json(&b, "by", by);
    buf_printf(&b, ",\"ends\":[\"" GUID_FMT "/%u\",\"" GUID_FMT "/%u\"]}", GUID_ARG(r->at.guid[0]),
               r->at.port[0], GUID_ARG(r->at.guid[1]), r->at.port[1]);
    i->cb.event(i->cb.arg, kind, severity, r->name, text, b.data);
    buf_done(&b);
}

static void tell_excluded(struct isolate *i, const char *kind, const struct isolate_excluded *x,
                          const char *by)
{
    struct buf b = {0};
    char subject[60], text[4 * ISOLATE_TEXT], until[40];
    snprintf(subject, sizeof(subject), GUID_FMT "/%u", GUID_ARG(x->guid), x->port);
    text_print(text, sizeof(text), "%s %s until %s by %s: %s", subject,
               strcmp(kind, "isolation-excluded") == 0 ? "is never isolated"
                                                       : "may be isolated again, was excluded",
               wall_format(x->until, until, sizeof(until)), x->by, x->reason);
    buf_putc(&b, '{');
    alarm_json(&b, "by", by);
    alarm_json(&b, "reason", x->reason);
    buf_putc(&b, '}');
    if (i->cb.event)
        i->cb.event(i->cb.arg, kind, "notice", subject, text, b.data);
    buf_done(&b);
}

// --- the graph of what there is ---

struct shape {
    struct isolate_graph g;
    struct u64map node;     // GUID -> node
    uint32_t *edge_of_slot; // lower slot -> edge; ID_NONE
};

static uint32_t node_of(struct shape *s, const struct tele_table *t, uint32_t slot)
{
    const struct tele_port *p = &t->port[slot];
    uint32_t n;
    if (u64map_get(&s->node, p->node_guid, &n))
        return n;
    n = s->g.num_nodes++;
    u64map_set(&s->node, p->node_guid, n);
    const struct node *x = t->fabric ? fabric_by_guid(t->fabric, p->node_guid) : NULL;
    s->g.node[n] = (struct isolate_node){.forwards = p->of_switch,
                                         .tier = x && p->of_switch ? x->tier : TIER_NONE,
                                         .host = x && !p->of_switch ? x->host : ID_NONE};
    return n;
}

static struct isolate_place place_of(const struct health *h, const struct tele_table *t, uint32_t slot)
{
    uint32_t mate = health_peer(h, slot);
    struct isolate_place p = {{t->port[slot].node_guid, 0}, {t->port[slot].num, 0}};
    if (mate != TELE_SLOT_NONE && mate < t->num) {
        p.guid[1] = t->port[mate].node_guid;
        p.port[1] = t->port[mate].num;
    }
    return p;
}

static bool is_drained(const struct isolate *i, const struct isolate_place *p)
{
    for (uint32_t k = 0; k < i->num; k++)
        if (i->rec[k].isolated && isolate_same(&i->rec[k].at, p))
            return true;
    return i->cb.drained && i->cb.drained(i->cb.arg, p);
}

static void shape_make(struct isolate *i, struct shape *s, const struct health *h, const struct tele_table *t)
{
    memset(s, 0, sizeof(*s));
    u64map_init(&s->node, NULL, t->num / 4 + 16);
    s->g.node = xcalloc(t->num + 1, sizeof(*s->g.node));
    s->g.edge = xcalloc(t->num / 2 + 1, sizeof(*s->g.edge));
    s->edge_of_slot = xcalloc(t->num + 1, sizeof(uint32_t));
    for (uint32_t slot = 0; slot < t->num; slot++) {
        uint32_t mate = health_peer(h, slot);
        s->edge_of_slot[slot] = ID_NONE;
        if (mate == TELE_SLOT_NONE || mate < slot || mate >= t->num || health_peer(h, mate) != slot)
            continue;
        struct isolate_place p = place_of(h, t, slot);
        bool up = t->port[slot].up && t->port[mate].up && t->port[slot].peer == mate;
        s->edge_of_slot[slot] = s->g.num_edges;
        s->g.edge[s->g.num_edges++] = (struct isolate_edge){.a = node_of(s, t, slot),
                                                            .b = node_of(s, t, mate),
                                                            .usable = up && !is_drained(i, &p),
                                                            .counts = true};
    }
    for (uint32_t k = 0; k < i->num; k++)
        s->g.isolated += i->rec[k].isolated;
    isolate_graph_index(&s->g);
    i->links = s->g.num_edges;
}

static void shape_done(struct shape *s)
{
    isolate_graph_done(&s->g);
    u64map_done(&s->node);
    free(s->edge_of_slot);
}

// --- what stands against it ---

static const struct isolate_excluded *excluded_by(const struct isolate *i, const struct isolate_place *p,
                                                  int64_t wall)
{
    for (uint32_t k = 0; k < i->num_excluded; k++) {
        const struct isolate_excluded *x = &i->excluded[k];
        for (int e = 0; e < 2; e++)
            if (x->until > wall && x->guid == p->guid[e] && (x->port == 0 || x->port == p->port[e]))
                return x;
    }
    return NULL;
}

static unsigned within_a_week(const struct isolate *i, const struct isolate_place *p, int64_t wall)
{
    unsigned n = 0;
    for (uint32_t k = 0; k < i->num_past; k++)
        n += i->past[k].wall > wall - WEEK && isolate_same(&i->past[k].at, p);
    return n;
}

static void leave_to_people(const struct isolate *i, struct isolate_rec *r, const struct isolate_graph *g,
                            uint32_t e)
{
    bool trunk = g->node[g->edge[e].a].forwards && g->node[g->edge[e].b].forwards;
    if (r->verdict != ISOLATE_YES || trunk || i->cb.hosts_too)
        return;
    r->verdict = ISOLATE_HOST;
    text_print(
        r->why, sizeof(r->why),
        "no route goes round a host's link: take the adapter out of use at the host, then pull the cable");
}

static void judge(struct isolate *i, struct isolate_rec *r, struct shape *s, const struct tele_table *t,
                  int64_t wall)
{
    uint32_t e = r->slot < t->num ? s->edge_of_slot[r->slot] : ID_NONE;
    const struct isolate_excluded *x = excluded_by(i, &r->at, wall);
    char until[40];
    r->why[0] = 0;
    if (e == ID_NONE) {
        r->verdict = ISOLATE_UNKNOWN;
        text_print(r->why, sizeof(r->why), "its other end is not known");
    } else if (is_drained(i, &r->at)) {
        r->verdict = ISOLATE_ALREADY;
        text_print(r->why, sizeof(r->why), "it is drained");
    } else if (!s->g.edge[e].usable) {
        r->verdict = ISOLATE_DOWN;
        text_print(r->why, sizeof(r->why), "it is down");
    } else if (i->o.mode == ISOLATE_OFF) {
        r->verdict = ISOLATE_OFFED;
        text_print(r->why, sizeof(r->why), "isolation is off (health.isolation)");
    } else if (x) {
        r->verdict = ISOLATE_EXCLUDED;
        text_print(r->why, sizeof(r->why), "excluded by %.*s until %s: %.*s", (int)text_cut(x->by, 40), x->by,
                   wall_format(x->until, until, sizeof(until)), (int)text_cut(x->reason, 100), x->reason);
    } else if (within_a_week(i, &r->at, wall) >= i->o.per_week) {
        r->verdict = ISOLATE_WEEK;
        text_print(r->why, sizeof(r->why), "isolated %u times within a week: find out why it comes back",
                   within_a_week(i, &r->at, wall));
    } else if (r->refused && wall >= r->refused && wall - r->refused < AGAIN) { // the clock may be set back
        r->verdict = ISOLATE_REFUSED;
        text_print(r->why, sizeof(r->why), "%s", r->refusal);
    } else {
        r->verdict = isolate_decide(&s->g, e, &i->o, r->why, sizeof(r->why));
        leave_to_people(i, r, &s->g, e);
    }
}

// --- records ---

static struct isolate_rec *find(struct isolate *i, const struct isolate_place *p)
{
    for (uint32_t k = 0; k < i->num; k++)
        if (isolate_same(&i->rec[k].at, p))
            return &i->rec[k];
    return NULL;
}

static struct isolate_rec *find_port(struct isolate *i, uint64_t guid, uint8_t port)
{
    return find(i, &(struct isolate_place){{guid, 0}, {port, 0}});
}

static void name_link(const struct tele_table *t, const struct isolate_place *p, char *buf, size_t size)
{
    char end[2][170];
    for (int e = 0; e < 2; e++) {
        const struct node *n = t->fabric && p->guid[e] ? fabric_by_guid(t->fabric, p->guid[e]) : NULL;
        if (n) {
            char name[160];
            fabric_node_name(t->fabric, n, name, sizeof(name));
            text_print(end[e], sizeof(end[e]), "%s/%u", name, p->port[e]);
        } else {
            text_print(end[e], sizeof(end[e]), GUID_FMT "/%u", GUID_ARG(p->guid[e]), p->port[e]);
        }
    }
    text_print(buf, size, "%s%s%s", end[0], p->guid[1] ? " <-> " : "", p->guid[1] ? end[1] : "");
}

static void take_health(struct isolate_rec *r, const struct health *h, const struct tele_table *t)
{
    struct health_view v;
    health_view(h, t, r->slot, &v);
    if (!r->isolated || v.rule[0]) {
        isolate_text(r->rule, sizeof(r->rule), v.rule);
        isolate_text(r->reason, sizeof(r->reason), v.why);
    }
    name_link(t, &r->at, r->name, sizeof(r->name));
}

static struct isolate_rec *rec_add(struct isolate *i, const struct isolate_place *p, uint32_t slot,
                                   int64_t wall)
{
    i->rec = xreallocarray(i->rec, i->num + 1, sizeof(*i->rec));
    struct isolate_rec *r = &i->rec[i->num++];
    *r = (struct isolate_rec){.at = *p, .slot = slot, .since_wall = wall};
    return r;
}

static void rec_drop(struct isolate *i, struct isolate_rec *r)
{
    uint32_t k = (uint32_t)(r - i->rec);
    memmove(r, r + 1, (i->num - k - 1) * sizeof(*r));
    i->num--;
}

// --- steps ---

static void remember(struct isolate *i, const struct isolate_place *p, int64_t wall)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < i->num_past; k++) {
        if (i->past[k].wall <= wall - WEEK)
            continue;
        i->past[n] = i->past[k];
        if (i->past[n].wall > wall) // the clock was set back: it counts from now
            i->past[n].wall = wall;
        n++;
    }
    i->num_past = n;
    if (n >= ISOLATE_PAST_MAX)
        return;
    i->past = xreallocarray(i->past, n + 1, sizeof(*i->past));
    i->past[i->num_past++] = (struct isolate_past){*p, wall};
}

static int act(struct isolate *i, struct isolate_rec *r, const char *by, int64_t wall, struct err *e)
{
    char text[4 * ISOLATE_TEXT + 100];
    int rc = -ENOTSUP;
    text_print(text, sizeof(text), "isolated: %s (%s)", r->reason, r->rule);
    if (i->cb.drain)
        rc = i->cb.drain(i->cb.arg, &r->at, text, e);
    else
        err_set(e, rc, r->name, "nothing here can drain a link");
    if (rc < 0) {
        bool news = strcmp(r->refusal, e->text) != 0;
        r->refused = wall;
        r->verdict = ISOLATE_REFUSED;
        isolate_text(r->refusal, sizeof(r->refusal), e->text);
        isolate_text(r->why, sizeof(r->why), e->text);
        if (!news)
            return rc;
        text_print(text, sizeof(text), "%s should carry no traffic, but cannot be drained: %s", r->name,
                   r->why);
        tell(i, r, "isolation-refused", "warning", by, text);
        return rc;
    }
    r->isolated = true;
    r->clean = r->clean_told = false;
    r->since_wall = wall;
    isolate_text(r->by, sizeof(r->by), by);
    remember(i, &r->at, wall);
    isolate_save(i);
    text_print(text, sizeof(text), "%s carries no traffic any more: %s (%s)", r->name, r->reason, r->rule);
    tell(i, r, "link-isolated", "warning", by, text);
    return 0;
}

static int give_back(struct isolate *i, struct isolate_rec *r, const char *by, const char *why, bool undrain,
                     struct err *e)
{
    char text[4 * ISOLATE_TEXT + 100];
    if (undrain && i->cb.undrain) {
        int rc = i->cb.undrain(i->cb.arg, &r->at, by, e);
        if (rc < 0)
            return rc;
    }
    text_print(text, sizeof(text), "%s may carry traffic again: %s", r->name, why);
    r->isolated = false;
    tell(i, r, "isolation-ended", "notice", by, text);
    rec_drop(i, r);
    isolate_save(i);
    return 0;
}

static void look_at_isolated(struct isolate *i, const struct health *h, const struct tele_table *t)
{
    struct err e = {0};
    char text[4 * ISOLATE_TEXT + 100];
    for (uint32_t k = i->num; k-- > 0;) {
        struct isolate_rec *r = &i->rec[k];
        if (!r->isolated)
            continue;
        if (i->cb.drained && !i->cb.drained(i->cb.arg, &r->at)) {
            give_back(i, r, "somebody", "it was undrained by hand", false, &e);
            continue;
        }
        r->slot = tele_slot(t, r->at.guid[0], r->at.port[0]);
        if (r->slot == TELE_SLOT_NONE)
            continue;
        uint32_t mate = health_peer(h, r->slot);
        r->slot = mate != TELE_SLOT_NONE && mate < r->slot ? mate : r->slot;
        take_health(r, h, t);
        r->clean = health_clean(h, t, r->slot, i->o.clean_ns);
        if (!r->clean) {
            r->clean_told = false;
        } else if (i->o.mode == ISOLATE_AUTO && strcmp(r->by, "weft") == 0) {
            give_back(i, r, "weft", "both ends were clean for long enough", true, &e);
        } else if (!r->clean_told) {
            r->clean_told = true;
            text_print(text, sizeof(text), "%s could carry traffic again: both ends were clean for %lld min",
                       r->name, (long long)(i->o.clean_ns / (60 * MONO_S)));
            tell(i, r, "isolation-proposed", "notice", "", text);
        }
    }
}

static bool is_candidate(const struct health *h, const struct tele_table *t, uint32_t slot, int64_t now)
{
    struct health_view v;
    health_view(h, t, slot, &v);
    return (v.state == HEALTH_FAILING || v.state == HEALTH_FLAPPING) && now - v.since >= SETTLED;
}

static void propose(struct isolate *i, struct isolate_rec *r)
{
    char text[4 * ISOLATE_TEXT + 100];
    if (r->was_told && r->told == r->verdict)
        return;
    r->was_told = true;
    r->told = r->verdict;
    if (r->verdict == ISOLATE_YES)
        text_print(text, sizeof(text), "%s should carry no traffic: %s (%s)", r->name, r->reason, r->rule);
    else
        text_print(text, sizeof(text), "%s should carry no traffic: %s (%s); it stays in use: %s", r->name,
                   r->reason, r->rule, r->why);
    tell(i, r, "isolation-proposed", r->verdict == ISOLATE_YES ? "notice" : "info", "", text);
}

static void drop_unseen(struct isolate *i)
{
    for (uint32_t k = i->num; k-- > 0;)
        if (!i->rec[k].isolated && !i->rec[k].seen)
            rec_drop(i, &i->rec[k]);
}

static void look_at_candidates(struct isolate *i, struct shape *s, const struct health *h,
                               const struct tele_table *t, const uint32_t *slot, uint32_t n, int64_t wall,
                               bool *ret_cap)
{
    struct err e = {0};
    for (uint32_t k = 0; k < n; k++) {
        struct isolate_place p = place_of(h, t, slot[k]);
        struct isolate_rec *r = find(i, &p);
        if (r && r->isolated)
            continue;
        if (!r)
            r = rec_add(i, &p, slot[k], wall);
        r->seen = true;
        r->slot = slot[k];
        take_health(r, h, t);
        judge(i, r, s, t, wall);
        *ret_cap = *ret_cap || r->verdict == ISOLATE_CAP;
        if (r->verdict == ISOLATE_YES && i->o.mode == ISOLATE_AUTO) {
            if (act(i, r, "weft", wall, &e) == 0) {
                s->g.edge[s->edge_of_slot[slot[k]]].usable = false;
                s->g.isolated++;
            }
        } else {
            propose(i, r);
        }
    }
}

static void forget_old(struct isolate *i, int64_t wall)
{
    for (uint32_t k = i->num_excluded; k-- > 0;) {
        if (i->excluded[k].until > wall)
            continue;
        tell_excluded(i, "isolation-included", &i->excluded[k], "");
        memmove(&i->excluded[k], &i->excluded[k + 1], (i->num_excluded - k - 1) * sizeof(*i->excluded));
        i->num_excluded--;
        isolate_save(i);
    }
}

void isolate_feed(struct isolate *i, const struct health *h, const struct tele_table *t, int64_t now,
                  int64_t wall)
{
    uint32_t *slot, n, k = 0;
    bool cap = false;
    forget_old(i, wall);
    look_at_isolated(i, h, t);
    for (uint32_t r = 0; r < i->num; r++)
        i->rec[r].seen = false;
    n = health_named(h, &slot);
    for (uint32_t x = 0; x < n; x++)
        if (is_candidate(h, t, slot[x], now))
            slot[k++] = slot[x];
    if (k > 0 && i->o.mode != ISOLATE_OFF) {
        struct shape s;
        shape_make(i, &s, h, t);
        look_at_candidates(i, &s, h, t, slot, k, wall, &cap);
        shape_done(&s);
    }
    free(slot);
    drop_unseen(i);
    if (i->cb.cap)
        i->cb.cap(i->cb.arg, cap,
                  cap ? "a link should carry no traffic, and as many as are allowed do not already" : "");
}

// --- by hand ---

static void item_of(const struct isolate_rec *r, struct isolate_item *ret)
{
    *ret = (struct isolate_item){.at = r->at,
                                 .slot = r->slot,
                                 .name = r->name,
                                 .rule = r->rule,
                                 .reason = r->reason,
                                 .isolated = r->isolated,
                                 .verdict = r->isolated ? ISOLATE_ALREADY : r->verdict,
                                 .why = r->why,
                                 .since_wall_ns = r->since_wall,
                                 .by = r->by,
                                 .clean = r->clean};
}

bool isolate_check(struct isolate *i, const struct health *h, const struct tele_table *t, uint64_t guid,
                   uint8_t port, int64_t wall, struct isolate_item *ret)
{
    struct isolate_rec *r = &i->check;
    uint32_t slot = tele_slot(t, guid, port);
    struct shape s;
    if (slot == TELE_SLOT_NONE)
        return false;
    uint32_t mate = health_peer(h, slot);
    slot = mate != TELE_SLOT_NONE && mate < slot ? mate : slot;
    *r = (struct isolate_rec){.at = place_of(h, t, slot), .slot = slot};
    const struct isolate_rec *known = find(i, &r->at);
    if (known && known->isolated)
        *r = *known;
    take_health(r, h, t);
    shape_make(i, &s, h, t);
    judge(i, r, &s, t, wall);
    shape_done(&s);
    item_of(r, ret);
    return true;
}

int isolate_now(struct isolate *i, const struct health *h, const struct tele_table *t, uint64_t guid,
                uint8_t port, const char *by, const char *reason, bool anyway, int64_t wall, struct err *e)
{
    struct isolate_item x;
    if (!isolate_check(i, h, t, guid, port, wall, &x))
        return err_set(e, -ENOENT, "link", "no port is known there");
    bool harmless = x.verdict == ISOLATE_YES || x.verdict == ISOLATE_DOWN || x.verdict == ISOLATE_OFFED;
    if (x.verdict == ISOLATE_ALREADY)
        return err_set(e, -EALREADY, x.name, "it carries no traffic already");
    if (x.verdict == ISOLATE_UNKNOWN || (!harmless && !anyway))
        return err_set(e, -EPERM, x.name, "%s", x.why);
    struct isolate_rec *r = find(i, &x.at);
    if (!r)
        r = rec_add(i, &x.at, x.slot, wall);
    isolate_text(r->name, sizeof(r->name), x.name);
    isolate_text(r->rule, sizeof(r->rule), x.rule);
    isolate_text(r->reason, sizeof(r->reason), reason && reason[0] ? reason : x.reason);
    r->seen = true;
    int rc = act(i, r, by && by[0] && strcmp(by, "weft") != 0 ? by : "somebody", wall, e);
    if (rc < 0)
        rec_drop(i, find(i, &x.at));
    return rc;
}

int isolate_release(struct isolate *i, uint64_t guid, uint8_t port, const char *by, struct err *e)
{
    struct isolate_rec *r = find_port(i, guid, port);
    if (!r || !r->isolated)
        return err_set(e, -ENOENT, "link", "it is not isolated");
    return give_back(i, r, by && by[0] ? by : "somebody", "given back by hand", true, e);
}

// --- what is excluded ---

static struct isolate_excluded *find_excluded(struct isolate *i, uint64_t guid, uint8_t port)
{
    for (uint32_t k = 0; k < i->num_excluded; k++)
        if (i->excluded[k].guid == guid && i->excluded[k].port == port)
            return &i->excluded[k];
    return NULL;
}

int isolate_exclude(struct isolate *i, const struct isolate_exclusion *x, int64_t wall, struct err *e)
{
    struct isolate_excluded *z = find_excluded(i, x->guid, x->port);
    if (x->guid == 0)
        return err_set(e, -EINVAL, "link", "a GUID is needed");
    if (x->until_wall_ns <= wall || x->until_wall_ns - wall > YEAR)
        return err_set(e, -EINVAL, "until", "it must end later than now, and within a year");
    if (!x->reason || !x->reason[0])
        return err_set(e, -EINVAL, "reason", "a reason is needed");
    if (!z && i->num_excluded >= ISOLATE_EXCLUDED_MAX)
        return err_set(e, -ENOSPC, "link", "%d are excluded already", ISOLATE_EXCLUDED_MAX);
    if (!z) {
        i->excluded = xreallocarray(i->excluded, i->num_excluded + 1, sizeof(*i->excluded));
        z = &i->excluded[i->num_excluded++];
    }
    *z = (struct isolate_excluded){.guid = x->guid, .port = x->port, .until = x->until_wall_ns};
    isolate_text(z->by, sizeof(z->by), x->by && x->by[0] ? x->by : "somebody");
    isolate_text(z->reason, sizeof(z->reason), x->reason);
    isolate_save(i);
    tell_excluded(i, "isolation-excluded", z, z->by);
    return 0;
}

int isolate_include(struct isolate *i, uint64_t guid, uint8_t port, const char *by)
{
    struct isolate_excluded *z = find_excluded(i, guid, port);
    if (!z)
        return -ENOENT;
    tell_excluded(i, "isolation-included", z, by ? by : "");
    uint32_t k = (uint32_t)(z - i->excluded);
    memmove(z, z + 1, (i->num_excluded - k - 1) * sizeof(*z));
    i->num_excluded--;
    isolate_save(i);
    return 0;
}

// --- lists ---

uint32_t isolate_list(const struct isolate *ci, const struct isolate_item **ret)
{
    struct isolate *i = (struct isolate *)ci; // the cache alone
    uint32_t n = 0;
    free(i->list);
    i->list = xcalloc(i->num + 1, sizeof(*i->list));
    for (int pass = 0; pass < 2; pass++)
        for (uint32_t k = 0; k < i->num; k++)
            if (i->rec[k].isolated == (pass == 0))
                item_of(&i->rec[k], &i->list[n++]);
    *ret = i->list;
    return n;
}

void isolate_numbers(const struct isolate *i, struct isolate_numbers *ret)
{
    *ret = (struct isolate_numbers){.links = i->links, .cap = isolate_cap(&i->o, i->links)};
    for (uint32_t k = 0; k < i->num; k++) {
        ret->isolated += i->rec[k].isolated;
        ret->proposed += !i->rec[k].isolated && i->rec[k].verdict == ISOLATE_YES;
    }
}

uint32_t isolate_exclusions(const struct isolate *ci, const struct isolate_exclusion **ret)
{
    struct isolate *i = (struct isolate *)ci; // the cache alone
    free(i->exclusion_list);
    i->exclusion_list = xcalloc(i->num_excluded + 1, sizeof(*i->exclusion_list));
    for (uint32_t k = 0; k < i->num_excluded; k++) {
        const struct isolate_excluded *x = &i->excluded[k];
        i->exclusion_list[k] = (struct isolate_exclusion){x->guid, x->port, x->until, x->by, x->reason};
    }
    *ret = i->exclusion_list;
    return i->num_excluded;
}

// --- life ---

struct isolate *isolate_new(struct db *db, const char *fabric, const struct isolate_opts *o,
                            const struct isolate_callbacks *cb)
{
    struct isolate *i = xcalloc(1, sizeof(*i));
    i->db = db;
    i->fabric = xstrdup(fabric);
    i->o = *o;
    i->cb = *cb;
    isolate_load(i);
    return i;
}

void isolate_set(struct isolate *i, const struct isolate_opts *o)
{
    i->o = *o;
}

void isolate_free(struct isolate *i)
{
    if (!i)
        return;
    free(i->fabric);
    free(i->rec);
    free(i->past);
    free(i->excluded);
    free(i->list);
    free(i->exclusion_list);
    free(i);
}
