// SPDX-License-Identifier: Apache-2.0
// Downs of a link: what the subnet manager has seen (episodes) and what the ports have counted (LinkDowned),
// joined. A down is one of the link when both ends have counted it; when one has, the other end was switched
// off or began anew: a reboot, which says nothing of the cable. How long it was is known only of an episode:
// one of less than 25 s is none for the rule of flaps. Readings of the two ends are not of one moment, and a
// host that reboots is read minutes later: what one end has counted waits for the other's next reading.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"
#include "lib/xalloc.h"
#include "telemetry/health_priv.h"

#define SLACK (15 * HEALTH_S)      // between what two observers of one down see
#define LONG (25 * HEALTH_S)       // downs from here on count
#define PATIENCE (15 * HEALTH_MIN) // for an end that cannot be read

// --- what comes in ---

static void drop(struct health_pending *p, uint8_t *n, unsigned i)
{
    memmove(&p[i], &p[i + 1], (*n - i - 1u) * sizeof(*p));
    --*n;
}

static struct health_downs *downs_of(struct health_link *l)
{
    if (!l->downs)
        l->downs = xcalloc(1, sizeof(*l->downs));
    health_wake(l, RULE_L02);
    return l->downs;
}

void down_counted(struct health *h, uint32_t slot, uint64_t n, int64_t t0, int64_t t1)
{
    struct health_link *l = health_link_get(h, slot);
    struct health_downs *x = downs_of(l);
    int e = health_end(l, slot);
    h->changes++;
    if (x->num_pending[e] == HEALTH_PENDING)
        drop(x->pending[e], &x->num_pending[e], 0);
    x->pending[e][x->num_pending[e]++] =
        (struct health_pending){n > UINT32_MAX ? UINT32_MAX : (uint32_t)n, t0, t1};
}

static void drop_episode(struct health_link *l, unsigned i)
{
    memmove(&l->downs->episode[i], &l->downs->episode[i + 1],
            (l->downs->num_episodes - i - 1u) * sizeof(l->downs->episode[0]));
    l->downs->num_episodes--;
}

void down_set(struct health *h, uint32_t slot, bool up, int64_t now)
{
    struct health_port *p = &h->port[slot];
    struct health_port *q = p->mate != TELE_SLOT_NONE ? &h->port[p->mate] : p;
    if (p->up == up)
        return;
    health_set_up(h, slot, up);
    health_set_up(h, p->mate != TELE_SLOT_NONE ? p->mate : slot, up);
    h->changes++;
    if (up) {
        p->up_at = q->up_at = now;
        p->seen_up = q->seen_up = true;
        if (p->link) {
            struct health_link *l = p->link;
            if (l->downs && l->downs->num_episodes && l->downs->episode[l->downs->num_episodes - 1].up == 0)
                l->downs->episode[l->downs->num_episodes - 1].up = now;
            l->down_since = 0;
        }
        return;
    }
    struct health_link *l = health_link_get(h, slot);
    p->down_at = q->down_at = now;
    l->down_since = now;
    health_wake(l, RULE_L01);
    health_wake(l, RULE_L03);
    downs_of(l);
    if (l->downs->num_episodes == HEALTH_PENDING)
        drop_episode(l, 0);
    l->downs->episode[l->downs->num_episodes++] = (struct health_episode){now, 0};
}

// The reading is of a time in which the link was not up, or trained: what it brings is no error of a link
// that works.
bool down_training(const struct health *h, uint32_t slot, int64_t t0, int64_t t1)
{
    const struct health_port *p = &h->port[slot];
    if (p->down_at != 0 && !p->up)
        return true;
    return (p->down_at != 0 && p->down_at > t0 - SLACK && p->down_at <= t1) ||
           (p->up_at != 0 && p->up_at + SLACK > t0 && p->up_at <= t1 + SLACK);
}

// --- joining ---

static void count_down(struct health_link *l, int64_t at, bool weak)
{
    if (l->downs->num == HEALTH_DOWNS) {
        memmove(&l->downs->down[0], &l->downs->down[1], (HEALTH_DOWNS - 1) * sizeof(l->downs->down[0]));
        l->downs->num--;
    }
    l->downs->down[l->downs->num++] = (struct health_down){at, weak};
}

static bool overlap(int64_t a0, int64_t a1, int64_t b0, int64_t b1)
{
    return a0 - SLACK < b1 && b0 < a1 + SLACK;
}

static bool readable(const struct health *h, uint32_t slot)
{
    return slot != TELE_SLOT_NONE && h->port[slot].at_errors != 0 &&
           (h->t->have[slot] >> TELE_LINK_DOWNED & 1 ||
            h->t->value[(uint64_t)slot * TELE_COUNTERS + TELE_LINK_DOWNED]);
}

// Whether the end's downs have been read since, so that what it has not counted it will not count.
static bool counts_known_to(const struct health *h, uint32_t slot, int64_t at)
{
    return slot != TELE_SLOT_NONE && h->port[slot].downs_at != 0 && h->port[slot].downs_at >= at + SLACK;
}

// Episodes that lie in a time.
struct episodes {
    bool lasts; // one may yet become long: wait
    uint32_t longs, shorts;
    int64_t end; // of the last one
};

static struct episodes episodes_of(const struct health *h, const struct health_link *l, int64_t t0,
                                   int64_t t1)
{
    struct episodes x = {.end = INT64_MIN};
    for (unsigned i = 0; i < l->downs->num_episodes; i++) {
        const struct health_episode *e = &l->downs->episode[i];
        int64_t end = e->up ? e->up : h->now;
        if (!overlap(t0, t1, e->down, e->up ? e->up : INT64_MAX - SLACK))
            continue;
        bool is_long = end - e->down >= LONG;
        x.lasts = x.lasts || (e->up == 0 && !is_long);
        x.longs += is_long;
        x.shorts += !is_long;
        x.end = end > x.end ? end : x.end;
    }
    return x;
}

// Those that are over. One that lasts may be counted by the other end later: it stays.
static void drop_episodes(struct health_link *l, int64_t t0, int64_t t1)
{
    for (unsigned i = l->downs->num_episodes; i-- > 0;)
        if (l->downs->episode[i].up && overlap(t0, t1, l->downs->episode[i].down, l->downs->episode[i].up))
            drop_episode(l, i);
}

// What was counted, n times, in a time: what is known to have been short is none.
static bool count_all(const struct health *h, struct health_link *l, uint32_t n, int64_t t0, int64_t t1,
                      int64_t at, bool weak)
{
    struct episodes x = episodes_of(h, l, t0, t1);
    if (x.lasts)
        return false;
    uint32_t known = x.longs + x.shorts, downs = x.longs + (n > known ? n - known : 0);
    drop_episodes(l, t0, t1);
    for (uint32_t d = 0; d < downs && d < HEALTH_DOWNS; d++)
        count_down(l, x.end > at ? x.end : at, weak);
    return true;
}

// Counts of both ends that overlap, and what overlaps these: the ends are not read at the same times, so one
// count of the one may be two of the other.
struct cluster {
    int64_t t0, t1, first; // first: when the first end had counted all of its part
    uint32_t n[2];
    unsigned entries;
    uint32_t in[2]; // bit i: pending[end][i] belongs to it
};

static bool cluster_grow(const struct health_link *l, struct cluster *c)
{
    bool grown = false;
    for (int e = 0; e < 2; e++)
        for (unsigned i = 0; i < l->downs->num_pending[e]; i++) {
            const struct health_pending *p = &l->downs->pending[e][i];
            if (c->in[e] >> i & 1 || !overlap(c->t0, c->t1, p->t0, p->t1))
                continue;
            c->in[e] |= 1u << i;
            c->n[e] += p->n;
            c->entries++;
            c->t0 = p->t0 < c->t0 ? p->t0 : c->t0;
            c->t1 = p->t1 > c->t1 ? p->t1 : c->t1;
            grown = true;
        }
    return grown;
}

static struct cluster cluster_of(const struct health_link *l, int e, unsigned i)
{
    const struct health_pending *p = &l->downs->pending[e][i];
    struct cluster c = {.t0 = p->t0, .t1 = p->t1, .first = INT64_MAX};
    while (cluster_grow(l, &c))
        ;
    for (int end = 0; end < 2; end++) {
        int64_t last = INT64_MIN;
        for (unsigned k = 0; k < l->downs->num_pending[end]; k++)
            if (c.in[end] >> k & 1)
                last = l->downs->pending[end][k].t1;
        c.first = last < c.first ? last : c.first;
    }
    return c;
}

static void cluster_drop(struct health_link *l, const struct cluster *c)
{
    for (int e = 0; e < 2; e++)
        for (unsigned i = l->downs->num_pending[e]; i-- > 0;)
            if (c->in[e] >> i & 1)
                drop(l->downs->pending[e], &l->downs->num_pending[e], i);
}

// Where they have not counted the same, one of them may yet: until it was read, for a time.
static bool may_grow(const struct health *h, const struct health_link *l, const struct cluster *c)
{
    return c->n[0] != c->n[1] && c->entries < HEALTH_PENDING && h->now - c->t1 < PATIENCE &&
           !(counts_known_to(h, l->slot[0], c->t1) && counts_known_to(h, l->slot[1], c->t1));
}

// What one has counted beyond the other is not said of anybody: which of the downs it was is not known.
static bool join_both(struct health *h, struct health_link *l)
{
    for (unsigned i = 0; i < l->downs->num_pending[0]; i++) {
        struct cluster c = cluster_of(l, 0, i);
        if (!c.in[1] || may_grow(h, l, &c))
            continue;
        if (count_all(h, l, c.n[0] < c.n[1] ? c.n[0] : c.n[1], c.t0, c.t1, c.first, false)) {
            cluster_drop(l, &c);
            return true;
        }
    }
    return false;
}

static void rebooted(struct health *h, struct health_link *l, int e, const struct health_pending *p)
{
    char name[160], reason[300];
    uint32_t far = l->slot[!e];
    bool anew = h->port[far].reset_seen > p->t0;
    text_print(reason, sizeof(reason), "%s alone has counted the link down (%u): the far end %s",
               health_end_name(h, l->slot[e], name, sizeof(name)), p->n,
               anew ? "began anew, or its counters were cleared" : "was switched off");
    h->sink.raise(h->sink.arg, "L04", l->slot[0], ALARM_INFO, reason, "{}");
    h->sink.clear(h->sink.arg, "L04", l->slot[0]);
}

// Both have counted it, and it is not decided yet.
static bool both_wait(const struct health_link *l, int e, unsigned i)
{
    struct cluster c = cluster_of(l, e, i);
    return c.in[!e] != 0;
}

// One end has counted what the other has not: true when it is decided. That the other has not is known only
// when it was read before and after.
static bool one_counted(struct health *h, struct health_link *l, int e, unsigned i)
{
    struct health_pending *p = &l->downs->pending[e][i];
    uint32_t far = l->slot[!e];
    if (both_wait(l, e, i))
        return false;
    bool known = counts_known_to(h, far, p->t1);
    if (known && h->port[far].downs_from <= p->t0) {
        rebooted(h, l, e, p);
        drop_episodes(l, p->t0, p->t1);
    } else {
        int64_t up = h->port[l->slot[e]].up_at, from = up && up > p->t1 ? up : p->t1;
        bool wait = !known && readable(h, far) && h->now - from < PATIENCE;
        if (l->down_since || wait || !count_all(h, l, p->n, p->t0, p->t1, p->t1, true))
            return false;
    }
    drop(l->downs->pending[e], &l->downs->num_pending[e], i);
    return true;
}

// An episode that no end has counted: a port that was disabled by somebody. Where counters cannot be read at
// all what the subnet manager saw is all there is.
static void episode_alone(struct health *h, struct health_link *l, unsigned i)
{
    const struct health_episode e = l->downs->episode[i];
    bool a = readable(h, l->slot[0]), b = readable(h, l->slot[1]);
    if (e.up == 0 || h->now < e.up + SLACK)
        return;
    if (!a && !b) {
        if (e.up - e.down >= LONG)
            count_down(l, e.up, false);
        drop_episode(l, i);
        return;
    }
    bool read = (!a || counts_known_to(h, l->slot[0], e.up)) && (!b || counts_known_to(h, l->slot[1], e.up));
    bool waits = false;
    for (int end = 0; end < 2; end++)
        for (unsigned k = 0; k < l->downs->num_pending[end]; k++)
            waits =
                waits || overlap(l->downs->pending[end][k].t0, l->downs->pending[end][k].t1, e.down, e.up);
    if (!waits && (read || h->now - e.up > PATIENCE))
        drop_episode(l, i);
}

void down_resolve(struct health *h, struct health_link *l)
{
    if (!l->downs)
        return;
    while (join_both(h, l))
        ;
    for (int e = 0; e < 2; e++)
        for (unsigned i = 0; i < l->downs->num_pending[e];)
            i += !one_counted(h, l, e, i);
    for (unsigned i = l->downs->num_episodes; i-- > 0;)
        episode_alone(h, l, i);
}

// --- the rules ---

// Links of each host that are up.
static void count_hosts(struct health *h)
{
    uint32_t most = 0;
    for (uint32_t s = 0; s < h->num; s++)
        if (h->port[s].host != ID_NONE && h->port[s].host >= most)
            most = h->port[s].host + 1;
    h->host_up = xcalloc(most + 1, sizeof(uint32_t));
    for (uint32_t s = 0; s < h->num; s++)
        if (h->port[s].host != ID_NONE && h->port[s].up)
            h->host_up[h->port[s].host]++;
}

uint32_t health_host_cut(struct health *h, uint32_t slot)
{
    if (slot >= h->num)
        return 0;
    uint32_t mate = h->port[slot].mate, host = h->port[slot].host;
    if (host == ID_NONE && mate != TELE_SLOT_NONE)
        host = h->port[mate].host;
    if (host == ID_NONE)
        return 0;
    if (!h->host_up)
        count_hosts(h);
    return h->host_up[host] == 0;
}

// Cables between the two switches: how many there are, and are up.
static uint32_t trunk_of(const struct health *h, const struct health_link *l, uint32_t *ret_up)
{
    uint32_t all = 0, up = 0;
    if (l->slot[1] == TELE_SLOT_NONE || !h->t->port[l->slot[0]].of_switch ||
        !h->t->port[l->slot[1]].of_switch)
        return 0;
    uint64_t a = h->t->port[l->slot[0]].node_guid, b = h->t->port[l->slot[1]].node_guid;
    for (unsigned num = 1; num <= SWITCH_MAX_PORTS; num++) {
        uint32_t s = tele_slot(h->t, a, (uint8_t)num);
        uint32_t m = s != TELE_SLOT_NONE && s < h->num ? h->port[s].mate : TELE_SLOT_NONE;
        if (m == TELE_SLOT_NONE || h->t->port[m].node_guid != b)
            continue;
        all++;
        up += h->port[s].up;
    }
    *ret_up = up;
    return all;
}

// As it is now: other cables of the two, and of the host, come and go.
static void down_text(struct health *h, struct health_link *l, struct health_finding *f)
{
    uint32_t up = 0, all = trunk_of(h, l, &up);
    if (health_host_cut(h, l->slot[0])) {
        f->severity = ALARM_CRITICAL;
        text_print(f->reason, sizeof(f->reason), "down, and no other link of the host is up");
    } else if (all > 1) {
        f->severity = up * 2 < all ? ALARM_CRITICAL : f->severity;
        text_print(f->reason, sizeof(f->reason), "down; %u of %u cables between the two are left", up, all);
    } else {
        text_print(f->reason, sizeof(f->reason), "down");
    }
}

// It is up, and watched for a while.
static void back_text(const struct health *h, const struct health_link *l, const struct health_rule *rule,
                      struct health_finding *f)
{
    const struct health_port *p = &h->port[l->slot[0]];
    char up[24], over[24], after[40] = "", span[24];
    health_time_of_day(h, p->up_at, up);
    health_time_of_day(h, p->up_at + rule->clear_ns, over);
    if (p->down_at && p->down_at < p->up_at) {
        health_span(p->up_at - p->down_at, span, sizeof(span));
        snprintf(after, sizeof(after), ", after %s", span);
    }
    health_span(rule->clear_ns, span, sizeof(span));
    if (up[0])
        text_print(f->reason, sizeof(f->reason), "up again since %s%s; over at %s if it stays up", up, after,
                   over);
    else
        text_print(f->reason, sizeof(f->reason), "up again%s; over when it has been up for %s", after, span);
    snprintf(f->evidence, sizeof(f->evidence), "{\"down_seconds\":%lld,\"up\":true}",
             after[0] ? (long long)((p->up_at - p->down_at) / HEALTH_S) : 0LL);
}

void down_judge(struct health *h, struct health_link *l, enum health_rule_index r, struct health_finding *f)
{
    const struct health_rule *rule = &health_rules[r];
    struct health_verdict *v = &l->verdict[r];
    int64_t since = l->down_since;
    f->seen_to = h->now;
    f->bad_at[0] = since ? h->now : h->port[l->slot[0]].up_at;
    f->at_once = true;
    if (!since && v->level >= 0) {
        v->severity = (uint8_t)rule->level[0].severity; // nothing is cut off any more
        back_text(h, l, rule, f);
    }
    if (!since || (v->level < 0 && h->now - since < rule->level[0].window))
        return;
    f->level = 0;
    f->severity = rule->level[0].severity;
    if (r == RULE_L01)
        down_text(h, l, f);
    else if (h->now - since < rule->level[0].window)
        text_print(f->reason, sizeof(f->reason), "down again");
    else
        text_print(f->reason, sizeof(f->reason), "down for more than %lld min",
                   (long long)(rule->level[0].window / HEALTH_MIN));
    snprintf(f->evidence, sizeof(f->evidence), "{\"down_seconds\":%lld}",
             (long long)((h->now - since) / HEALTH_S));
}

// From the first to the last of them: that they stand in the text for long makes them no slower.
static void drops_text(const struct health *h, int64_t first, int64_t last, char *buf, size_t size)
{
    char span[24], when[24];
    health_span(last - first, span, sizeof(span));
    health_time_of_day(h, last, when);
    int n = first == last ? snprintf(buf, size, "between two readings") : snprintf(buf, size, "in %s", span);
    if (when[0] && n > 0 && (size_t)n < size)
        snprintf(buf + n, size - (size_t)n, first == last ? " before %s" : " to %s", when);
}

void flap_judge(struct health *h, struct health_link *l, struct health_finding *f)
{
    const struct health_rule *rule = &health_rules[RULE_L02];
    int64_t begin = h->now - rule->level[0].window, first = INT64_MAX, last = INT64_MIN;
    uint32_t strong = 0, weak = 0;
    double most = 0;
    for (unsigned i = 0; l->downs && i < l->downs->num; i++) {
        const struct health_down *d = &l->downs->down[i];
        if (d->at <= begin)
            continue;
        first = d->at < first ? d->at : first;
        last = d->at > last ? d->at : last;
        ++*(d->weak ? &weak : &strong);
    }
    int64_t last_down = last;
    f->seen_to = h->now;
    for (int e = 0; e < 2; e++) {
        const struct health_port *p = l->slot[e] != TELE_SLOT_NONE ? &h->port[l->slot[e]] : NULL;
        if (p && p->resumed && p->at_errors < f->seen_to)
            f->seen_to = p->at_errors;
        const struct health_series *s = l->series[e][SIGNAL_RECOVERY];
        if (!s)
            continue;
        double n = series_count(s, h->port[l->slot[e]].at_errors, rule->level[1].window);
        most = n > most ? n : most;
        if (n > rule->level[1].limit && series_last(s) > last)
            last = series_last(s);
    }
    f->bad_at[0] = l->down_since ? h->now : last; // down is not clean
    // After a clean time it takes another one.
    bool flaps = strong + weak >= (uint32_t)rule->level[0].limit && h->now - last < rule->clear_ns;
    bool trains = most > rule->level[1].limit;
    if (!flaps && !trains)
        return;
    f->level = 0;
    f->severity = trains || strong >= (uint32_t)rule->level[0].limit ? ALARM_MAJOR : ALARM_MINOR;
    char ends[80] = "counted by both ends", in[60] = "";
    if (flaps)
        drops_text(h, first, last_down, in, sizeof(in));
    if (weak)
        snprintf(ends, sizeof(ends), "%u of them counted by one end alone, cause unknown", weak);
    if (flaps)
        text_print(f->reason, sizeof(f->reason), "%u drops %s, %s; limit %.0f in 12 h", strong + weak, in,
                   ends, rule->level[0].limit);
    else
        text_print(f->reason, sizeof(f->reason), "%.0f recoveries in a minute, limit %.0f", most,
                   rule->level[1].limit);
    snprintf(f->evidence, sizeof(f->evidence),
             "{\"downs_12h\":%u,\"of_one_end\":%u,\"recoveries_minute\":%.1f}", strong + weak, weak, most);
}
