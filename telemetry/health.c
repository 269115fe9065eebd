// SPDX-License-Identifier: Apache-2.0
#include "telemetry/health.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/xalloc.h"
#include "telemetry/health_priv.h"
#include "telemetry/rate.h"

#define WATCHED (TELE_VL15_DROPPED - TELE_SYMBOL_ERRORS + 1)
_Static_assert(WATCHED == 12, "the counters that health_port.last holds");
#define BIT(c) (1ull << (c))
#define HOLE (2 * HEALTH_MIN)
#define KEEP (131 * HEALTH_MIN) // a link's record after its last error
#define TIDY HEALTH_MIN

const char *health_state_name(enum health_state s)
{
    static const char *const name[] = {"unknown",  "healthy", "unsure", "degraded",
                                       "flapping", "failing", "down"};
    return name[s];
}

const char *health_end_name(const struct health *h, uint32_t slot, char *buf, size_t size)
{
    const struct tele_table *t = h->t;
    if (slot == TELE_SLOT_NONE) {
        snprintf(buf, size, "the far end");
    } else if (t->fabric && t->port[slot].port < t->fabric->num_ports) {
        fabric_port_name(t->fabric, (port_id){t->port[slot].port}, buf, size);
    } else {
        snprintf(buf, size, GUID_FMT "[%u]", GUID_ARG(t->port[slot].node_guid), t->port[slot].num);
    }
    return buf;
}

// --- links ---

struct health_link *health_link_get(struct health *h, uint32_t slot)
{
    if (h->port[slot].link)
        return h->port[slot].link;
    uint32_t mate = h->port[slot].mate;
    struct health_link *l = xcalloc(1, sizeof(*l));
    l->slot[0] = health_lower(h, slot);
    l->slot[1] = mate == TELE_SLOT_NONE ? mate : l->slot[0] == slot ? mate : slot;
    for (unsigned r = 0; r < HEALTH_RULES; r++)
        l->verdict[r].level = -1;
    for (int e = 0; e < 2; e++)
        if (l->slot[e] != TELE_SLOT_NONE)
            h->port[l->slot[e]].link = l;
    l->prev = h->last;
    *(l->prev ? &l->prev->next : &h->first) = l;
    h->last = l;
    return l;
}

void health_link_free(struct health *h, struct health_link *l)
{
    h->changes++;
    for (int e = 0; e < 2; e++) {
        if (l->slot[e] != TELE_SLOT_NONE)
            h->port[l->slot[e]].link = NULL;
        for (unsigned s = 0; s < SIGNALS; s++)
            free(l->series[e][s]);
    }
    for (unsigned r = 0; r < HEALTH_RULES; r++) {
        free(l->verdict[r].reason);
        free(l->verdict[r].evidence);
    }
    free(l->downs);
    if (h->feed.link == l)
        h->feed.link = l->next;
    *(l->prev ? &l->prev->next : &h->first) = l->next;
    *(l->next ? &l->next->prev : &h->last) = l->prev;
    free(l);
}

static void forget(struct health *h, uint32_t slot)
{
    struct health_link *l = h->port[slot].link;
    if (l) {
        judge_forget(h, l);
        health_link_free(h, l);
    }
}

// The far end is another one than it was: another link.
static void take_peer(struct health *h, uint32_t slot, uint32_t peer)
{
    struct health_port *p = &h->port[slot], *q = &h->port[peer];
    forget(h, slot);
    forget(h, peer);
    if (p->mate != TELE_SLOT_NONE && h->port[p->mate].mate == slot)
        h->port[p->mate].mate = TELE_SLOT_NONE;
    if (q->mate != TELE_SLOT_NONE && h->port[q->mate].mate == peer)
        h->port[q->mate].mate = TELE_SLOT_NONE;
    p->mate = peer;
    q->mate = slot;
    p->rate_most = q->rate_most = 0;
    h->moved++;
    p->told = q->told = p->told || q->told;
    p->up = q->up = p->up || q->up;
}

void health_grow(struct health *h, uint32_t num)
{
    if (num <= h->num)
        return;
    h->port = xreallocarray(h->port, num, sizeof(*h->port));
    memset(&h->port[h->num], 0, (num - h->num) * sizeof(*h->port));
    for (; h->num < num; h->num++) {
        struct health_port *p = &h->port[h->num];
        p->mate = TELE_SLOT_NONE;
        p->host = ID_NONE;
        p->tick = 8;
        p->median = NAN;
        for (int i = 0; i < 7; i++)
            p->coldest[i] = INT16_MIN;
    }
}

static bool quiet(const struct health *h, const struct health_link *l)
{
    const struct health_downs *d = l->downs;
    if (l->down_since || l->slow_since)
        return false;
    if (d && (d->num_episodes || d->num_pending[0] || d->num_pending[1] ||
              (d->num && h->now - d->down[d->num - 1].at < 12 * HEALTH_HOUR)))
        return false;
    for (unsigned r = 0; r < HEALTH_RULES; r++)
        if (l->verdict[r].level >= 0 || (l->verdict[r].since && h->now - l->verdict[r].bad_at[0] < KEEP))
            return false;
    for (int e = 0; e < 2; e++) {
        if (l->held[e] >= health_rules[RULE_C01].level[0].limit / 4)
            return false;
        for (unsigned s = 0; s < SIGNALS; s++)
            if (l->series[e][s] &&
                h->now - series_last(l->series[e][s]) < (s == SIGNAL_SYMBOL ? HEALTH_LONGER * KEEP : KEEP))
                return false;
        if (l->slot[e] != TELE_SLOT_NONE && h->port[l->slot[e]].raw_over)
            return false;
    }
    return true;
}

// --- readings ---

static void hole(struct health_port *p, int64_t t0, int64_t at)
{
    int64_t unit = at / HOLE, by = unit - p->hole_unit, more = (at - t0) / HOLE;
    p->holes = by >= 64 ? 0 : by > 0 ? p->holes << by : p->holes;
    p->hole_unit = by > 0 ? unit : p->hole_unit;
    p->holes |= more >= 63 ? ~0ull : BIT(more + 1) - 1;
}

static void add(struct health *h, uint32_t slot, enum health_signal s, int64_t t0, int64_t t1, uint64_t n)
{
    if (n == 0)
        return;
    struct health_link *l = health_link_get(h, slot);
    h->changes++;
    series_add(&l->series[health_end(l, slot)][s], t0, t1, n);
    for (unsigned r = 0; r < HEALTH_RULES; r++)
        if (health_rules[r].signal == s)
            health_wake(l, r);
}

static void errors_moved(struct health *h, uint32_t slot, int64_t t0, int64_t t1)
{
    struct health_port *p = &h->port[slot];
    const uint64_t *now = &h->t->value[(uint64_t)slot * TELE_COUNTERS + TELE_SYMBOL_ERRORS];
    uint64_t d[WATCHED];
    for (unsigned i = 0; i < WATCHED; i++) {
        bool known = p->seen & BIT(TELE_SYMBOL_ERRORS + i);
        d[i] = known && now[i] > p->last[i] ? now[i] - p->last[i] : 0;
        p->last[i] = now[i];
    }
#define D(c) d[TELE_##c - TELE_SYMBOL_ERRORS]
    if (D(LINK_DOWNED))
        down_counted(h, slot, D(LINK_DOWNED), p->downs_at && p->downs_at < t0 ? p->downs_at : t0, t1);
    if (!D(LINK_DOWNED) && !down_training(h, slot, t0, t1))
        add(h, slot, SIGNAL_SYMBOL, t0, t1, D(SYMBOL_ERRORS));
    add(h, slot, SIGNAL_RECOVERY, t0, t1, D(LINK_ERROR_RECOVERY));
    add(h, slot, SIGNAL_RCV, t0, t1, D(RCV_ERRORS));
    add(h, slot, SIGNAL_DISCARD, t0, t1, D(XMIT_DISCARDS));
    add(h, slot, SIGNAL_CONSTRAINT, t0, t1, D(XMIT_CONSTRAINT_ERRORS) + D(RCV_CONSTRAINT_ERRORS));
    add(h, slot, SIGNAL_INTEGRITY, t0, t1,
        D(LOCAL_LINK_INTEGRITY_ERRORS) + D(EXCESSIVE_BUFFER_OVERRUN_ERRORS));
    add(h, slot, SIGNAL_VL15, t0, t1, D(VL15_DROPPED));
#undef D
}

// A counter that says how the link is counts no further. Others may stand at their maximum for years, such as
// rcv_switch_relay_errors; and of corrected symbols a good link has plenty: they speak for the raw rules
// alone.
static bool is_blind(const struct tele_table *t, uint32_t slot)
{
    return t->port[slot].full &
           (BIT(TELE_SYMBOL_ERRORS) | BIT(TELE_LINK_ERROR_RECOVERY) | BIT(TELE_RCV_ERRORS) |
            BIT(TELE_LOCAL_LINK_INTEGRITY_ERRORS) | BIT(TELE_EXCESSIVE_BUFFER_OVERRUN_ERRORS) |
            BIT(TELE_FEC_UNCORRECTABLE_BLOCKS));
}

// The first reading after a restart. Where it does not say what came meanwhile, that time is none in which
// all was well, and what stands takes a clean time from now.
static void resumed(struct health *h, uint32_t slot, bool lost, int64_t t0, int64_t at)
{
    struct health_port *p = &h->port[slot];
    p->resumed = false;
    if (!lost)
        return;
    hole(p, t0, at);
    for (unsigned r = 0; p->link && r < HEALTH_RULES; r++)
        for (int i = 0; i <= p->link->verdict[r].level; i++)
            if (p->link->verdict[r].bad_at[i] < at)
                p->link->verdict[r].bad_at[i] = at;
}

static void read_errors(struct health *h, uint32_t slot, int64_t at)
{
    const struct tele_table *t = h->t;
    struct health_port *p = &h->port[slot];
    const uint64_t *v = &t->value[(uint64_t)slot * TELE_COUNTERS];
    int64_t t0 = p->at_errors;

    if (t0 == 0) {
        memcpy(p->last, &v[TELE_SYMBOL_ERRORS], sizeof(p->last));
        p->from = at;
    } else {
        if (!p->resumed)
            p->every = at - t0;
        if (memcmp(p->last, &v[TELE_SYMBOL_ERRORS], sizeof(p->last)) != 0)
            errors_moved(h, slot, t0, at);
        if (t->port[slot].resets != p->resets || is_blind(t, slot))
            hole(p, t0, at);
        if (v[TELE_XMIT_WAIT] != p->last_wait || (p->link && p->link->held[health_end(p->link, slot)] > 0))
            held_read(h, slot, v[TELE_XMIT_WAIT] - p->last_wait, t0, at);
    }
    if (t->port[slot].resets != p->resets)
        p->reset_seen = at;
    bool lost = t->port[slot].lost_at != 0 && t->port[slot].lost_at > t0;
    if (p->resumed)
        resumed(h, slot, lost, t0, at);
    if (t->have[slot] & BIT(TELE_LINK_DOWNED)) {
        if (p->downs_at == 0 || lost)
            p->downs_from = at;
        p->downs_at = at;
    }
    p->last_wait = v[TELE_XMIT_WAIT];
    p->resets = t->port[slot].resets;
    p->at_errors = at;
    p->seen |= t->have[slot];
}

static void read_speed(struct health *h, uint32_t slot, int64_t at)
{
    struct health_port *p = &h->port[slot];
    const uint64_t *v = &h->t->value[(uint64_t)slot * TELE_COUNTERS];
    int64_t t0 = p->at_speed;
    uint64_t have = h->t->have[slot];

    if (t0 != 0 && p->seen & have & BIT(TELE_FEC_UNCORRECTABLE_BLOCKS) &&
        v[TELE_FEC_UNCORRECTABLE_BLOCKS] > p->last_uncorrectable && !down_training(h, slot, t0, at))
        add(h, slot, SIGNAL_UNCORRECTABLE, t0, at, v[TELE_FEC_UNCORRECTABLE_BLOCKS] - p->last_uncorrectable);
    if (h->t->port[slot].full & ~h->t->had[slot] & BIT(TELE_FEC_CORRECTED_SYMBOLS))
        raw_blind(h, slot);
    else if (t0 != 0 && p->seen & have & BIT(TELE_FEC_CORRECTED_SYMBOLS) &&
             v[TELE_FEC_CORRECTED_SYMBOLS] >= p->last_corrected)
        raw_read(h, slot, v[TELE_FEC_CORRECTED_SYMBOLS] - p->last_corrected,
                 h->t->port[slot].full & BIT(TELE_FEC_CORRECTED_SYMBOLS), t0, at);
    p->last_corrected = v[TELE_FEC_CORRECTED_SYMBOLS];
    p->last_uncorrectable = v[TELE_FEC_UNCORRECTABLE_BLOCKS];
    p->at_speed = at;
    p->seen |= have;
}

void health_replay(struct health *h, const struct tele_table *t, uint32_t slot, int64_t at)
{
    struct health_port *p = slot < h->num ? &h->port[slot] : NULL;
    h->t = t;
    if (!p || !p->resumed)
        return;
    if (t->have[slot] & BIT(TELE_SYMBOL_ERRORS) && at > p->at_errors) {
        read_errors(h, slot, at);
        p->resumed = true;
    }
    if (t->have[slot] & BIT(TELE_FEC_CORRECTED_SYMBOLS) && p->at_speed != 0 && at > p->at_speed)
        read_speed(h, slot, at);
}

static bool is_away(const struct tele_table *t, uint32_t slot)
{
    const struct tele_port *p = &t->port[slot];
    return p->unread == TELE_GONE && t->fabric && !fabric_by_guid(t->fabric, p->node_guid);
}

// Of an end whose node is away the other one tells; of two nobody.
static bool table_up(const struct health *h, uint32_t slot, uint32_t mate)
{
    const struct tele_table *t = h->t;
    if (mate == TELE_SLOT_NONE)
        return t->port[slot].up;
    bool a = is_away(t, slot), z = is_away(t, mate);
    if (a && z)
        return h->port[slot].up;
    return (a || t->port[slot].up) && (z || t->port[mate].up);
}

static void look_at_port(struct health *h, uint32_t slot)
{
    const struct tele_port *tp = &h->t->port[slot];
    struct health_port *p = &h->port[slot];

    if (tp->peer != TELE_SLOT_NONE && tp->peer != p->mate && tp->peer < h->num)
        take_peer(h, slot, tp->peer);
    if (tp->rate_mbps)
        p->rate_mbps = tp->rate_mbps;
    if (!p->told && (p->mate == TELE_SLOT_NONE || p->mate > slot)) {
        bool up = table_up(h, slot, p->mate);
        if (up && !p->seen_up) {
            p->up = p->seen_up = true;
            if (p->mate != TELE_SLOT_NONE)
                h->port[p->mate].up = h->port[p->mate].seen_up = true;
        } else if (p->seen_up && up != p->up) {
            down_set(h, slot, up, h->now);
        }
    }
    const int64_t *at = &h->t->at[(uint64_t)slot * TELE_GROUPS];
    if (at[TELE_ERRORS] != 0 && at[TELE_ERRORS] > p->at_errors)
        read_errors(h, slot, at[TELE_ERRORS]);
    if (at[TELE_SPEED] != 0 && at[TELE_SPEED] > p->at_speed)
        read_speed(h, slot, at[TELE_SPEED]);
}

// A snapshot numbers its hosts anew; here a host is the first slot that was ever seen of it, also of what is
// away.
static void learn_hosts(struct health *h)
{
    const struct fabric *f = h->t->fabric;
    uint32_t *first = xmalloc((f->num_hosts + 1) * sizeof(*first));
    memset(first, 0xff, (f->num_hosts + 1) * sizeof(*first));
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t s = 0; s < h->num; s++) {
            uint32_t i = h->t->port[s].port;
            uint32_t host = i < f->num_ports ? f->node[f->port[i].node.i].host : ID_NONE;
            uint32_t known = h->port[s].host != ID_NONE ? h->port[s].host : s;
            if (host >= f->num_hosts)
                continue;
            if (pass == 1)
                h->port[s].host = first[host];
            else if (known < first[host])
                first[host] = known;
        }
    }
    free(first);
}

static void learn_ticks(struct health *h)
{
    const struct fabric *f = h->t->fabric;
    for (uint32_t s = 0; s < h->num; s++) {
        uint32_t i = h->t->port[s].port;
        if (i >= f->num_ports)
            continue;
        const struct node *n = &f->node[f->port[i].node.i];
        h->port[s].tick = (uint16_t)tele_wait_tick_bytes(n->vendor_id, n->device_id, h->t->port[s].lanes);
    }
}

static void feed_link(struct health *h, struct health_link *l)
{
    down_resolve(h, l);
    judge_link(h, l);
    if (h->feed.tidy && quiet(h, l))
        health_link_free(h, l);
}

static bool snapshot_is_new(const struct health *h)
{
    const struct fabric *f = h->t->fabric;
    return f && (f != h->slow_of || f->generation != h->slow_generation);
}

void health_feed_begin(struct health *h, const struct tele_table *t, int64_t now)
{
    h->t = t;
    h->now = now;
    health_grow(h, t->num);
    h->feed.phase = FEED_PORTS;
    h->feed.next = 0;
    h->feed.num = t->num;
    h->feed.tidy = h->now - h->swept >= TIDY;
}

static void feed_after(struct health *h, enum health_feeding was)
{
    h->feed.phase = was + 1;
    if (was == FEED_PORTS && !snapshot_is_new(h))
        h->feed.phase = FEED_LINKS;
    if (h->feed.phase == FEED_LINKS)
        h->feed.link = h->first;
}

bool health_feed_some(struct health *h, uint32_t most)
{
    switch (h->feed.phase) {
    case FEED_OVER:
        return true;
    case FEED_PORTS:
        for (; most > 0 && h->feed.next < h->feed.num; most--)
            look_at_port(h, h->feed.next++);
        if (h->feed.next == h->feed.num)
            feed_after(h, FEED_PORTS);
        return false;
    case FEED_HOSTS:
        if (h->t->fabric)
            learn_hosts(h);
        feed_after(h, FEED_HOSTS);
        return false;
    case FEED_TICKS:
        if (h->t->fabric)
            learn_ticks(h);
        feed_after(h, FEED_TICKS);
        return false;
    case FEED_SLOW:
        if (h->t->fabric) {
            judge_slow(h);
            h->slow_of = h->t->fabric;
            h->slow_generation = h->t->fabric->generation;
        }
        feed_after(h, FEED_SLOW);
        return false;
    case FEED_LINKS:
        for (; most > 0 && h->feed.link; most--) {
            struct health_link *l = h->feed.link;
            h->feed.link = l->next;
            feed_link(h, l);
        }
        if (h->feed.link)
            return false;
        if (h->feed.tidy)
            h->swept = h->now;
        h->feed.phase = FEED_OVER;
        return true;
    }
    return true;
}

void health_feed(struct health *h, const struct tele_table *t, int64_t now)
{
    health_feed_begin(h, t, now);
    while (!health_feed_some(h, UINT32_MAX))
        ;
}

void health_pair(struct health *h, uint32_t a, uint32_t b)
{
    if (a == b)
        return;
    health_grow(h, (a > b ? a : b) + 1);
    if (h->port[a].mate == TELE_SLOT_NONE && h->port[b].mate == TELE_SLOT_NONE)
        take_peer(h, a, b);
}

void health_link(struct health *h, uint32_t slot, bool up, int64_t now)
{
    health_grow(h, slot + 1);
    struct health_port *p = &h->port[slot];
    struct health_port *q = p->mate != TELE_SLOT_NONE ? &h->port[p->mate] : p;
    h->now = now > h->now ? now : h->now;
    if (!p->told && !q->told && !p->was_known && !q->was_known) {
        // What it was before is not known: up is no coming up.
        p->told = q->told = true;
        if (up && !p->up)
            p->up = q->up = p->seen_up = q->seen_up = true;
        else if (!up)
            p->up = q->up = true;
    }
    p->told = q->told = true;
    p->was_known = q->was_known = false;
    down_set(h, slot, up, now);
}

void health_forget(struct health *h, uint32_t slot)
{
    if (slot >= h->num)
        return;
    uint32_t mate = h->port[slot].mate;
    forget(h, slot);
    h->moved++;
    for (int e = 0; e < 2; e++, slot = mate) {
        if (slot == TELE_SLOT_NONE)
            break;
        struct health_port *p = &h->port[slot];
        memset(p->history, 0, sizeof(p->history));
        p->median = NAN;
        p->raw_now[0] = p->raw_now[1] = p->raw_bits[0] = p->raw_bits[1] = p->slot_errors = p->slot_bits = 0;
        p->at_errors = p->at_speed = 0;
        p->seen = 0;
        p->resumed = p->was_known = false;
        p->told = p->seen_up = p->up = false;
        p->up_at = p->down_at = 0;
        p->rate_most = 0;
        p->celsius10 = 0; // what was read was of the old cable: only what is read later counts
        for (int i = 0; i < 7; i++)
            p->coldest[i] = INT16_MIN;
        p->optics = (struct tele_optics){0};
        p->optics_bad_at = 0;
    }
}

// --- views ---

// Time that windows can speak of: since the first reading, without holes.
static int64_t covered(const struct health_port *p, int64_t window)
{
    int64_t all = p->at_errors - p->from;
    all = all < window ? all : window;
    int64_t by = p->at_errors / HOLE - p->hole_unit, units = window / HOLE;
    uint64_t holes = by >= 64 ? 0 : by > 0 ? p->holes << by : p->holes;
    if (units < 64)
        holes &= BIT(units) - 1;
    all -= __builtin_popcountll(holes) * HOLE;
    return all > 0 ? all : 0;
}

static bool count_as_link(const struct health *h, const struct tele_table *t, uint32_t slot)
{
    if (slot >= h->num || slot >= t->num || health_lower(h, slot) != slot)
        return false;
    const struct health_link *l = h->port[slot].link;
    return (l && l->state != HEALTH_UNKNOWN) || t->port[slot].port != ID_NONE || h->port[slot].told;
}

struct judged {
    enum health_state state;
    uint32_t end; // slot that it is about
    enum { SURE, FEW_BITS, ERRORS_FEW_BITS, STALE, NOT_READ, ONE_END, STANDS, HOLES } why;
    int64_t since, sure_at;
};

// How many times as long it takes as at 400 Gb/s until enough bits have passed.
static double longer_of(const struct health_port *p)
{
    double scale = p->rate_mbps ? 400000.0 / p->rate_mbps : 1;
    return scale < HEALTH_LONGER ? scale : HEALTH_LONGER;
}

static int64_t stale_after(const struct health_port *p)
{
    return p->every > 20 * HEALTH_S ? 3 * p->every : HEALTH_MIN;
}

static void judge_end_view(const struct health *h, const struct tele_table *t, uint32_t slot,
                           struct judged *j)
{
    const struct health_port *p = &h->port[slot];
    double longer = longer_of(p);
    int64_t need = (int64_t)(12.0 * HEALTH_MIN * longer), long_need = (int64_t)(125.0 * HEALTH_MIN * longer);
    const struct health_link *l = p->link;
    const struct health_series *s = l ? l->series[health_end(l, slot)][SIGNAL_SYMBOL] : NULL;
    bool errors =
        s && s->n && p->at_errors - series_last(s) < long_need && p->at_errors - p->from < long_need;

    if (p->at_errors == 0) {
        j->state = HEALTH_UNSURE, j->why = ONE_END, j->end = slot;
    } else if (h->now - p->at_errors > stale_after(p)) {
        j->state = HEALTH_UNSURE, j->why = STALE, j->end = slot;
    } else if (is_blind(t, slot) || covered(p, 12 * HEALTH_MIN) < (p->at_errors - p->from < 12 * HEALTH_MIN
                                                                       ? (p->at_errors - p->from) * 3 / 4
                                                                       : 9 * HEALTH_MIN)) {
        j->state = HEALTH_UNSURE, j->why = HOLES, j->end = slot;
    } else if (errors && j->why < ERRORS_FEW_BITS) {
        j->state = HEALTH_UNSURE, j->why = ERRORS_FEW_BITS, j->end = slot, j->sure_at = p->from + long_need;
    } else if (p->at_errors - p->from < need && j->why < ERRORS_FEW_BITS) {
        j->state = HEALTH_UNSURE, j->why = FEW_BITS, j->end = slot;
        j->sure_at = p->from + need > j->sure_at ? p->from + need : j->sure_at;
    }
    int64_t from = j->state == HEALTH_UNSURE ? p->from : p->from + need;
    j->since = from > j->since ? from : j->since;
}

static struct judged judge_view(const struct health *h, const struct tele_table *t, uint32_t slot)
{
    const struct health_port *p = &h->port[slot];
    const struct health_link *l = p->link;
    struct judged j = {.state = HEALTH_HEALTHY, .end = slot, .why = SURE, .since = INT64_MIN};
    if (l && l->state != HEALTH_UNKNOWN) {
        j.state = l->state;
        j.why = STANDS;
        j.since = l->state_since;
        return j;
    }
    bool far = p->mate != TELE_SLOT_NONE;
    if (p->at_errors == 0 && (!far || h->port[p->mate].at_errors == 0)) {
        j.state = HEALTH_UNKNOWN;
        j.why = NOT_READ;
        j.since = 0;
        return j;
    }
    judge_end_view(h, t, slot, &j);
    if (far)
        judge_end_view(h, t, p->mate, &j);
    if (l && l->healthy_since && l->healthy_since > j.since)
        j.since = l->healthy_since;
    return j;
}

// What is up again is no worse than what else there may be.
static enum health_state verdict_state(const struct health_link *l, int r)
{
    enum health_state s = health_rules[r].level[l->verdict[r].level].state;
    return s == HEALTH_DOWN && !l->down_since ? HEALTH_DEGRADED : s;
}

static int worst_verdict(const struct health_link *l)
{
    int worst = -1;
    for (int r = 0; r < HEALTH_RULES; r++) {
        const struct health_verdict *v = &l->verdict[r];
        if (v->level < 0)
            continue;
        if (worst < 0)
            worst = r;
        const struct health_verdict *w = &l->verdict[worst];
        enum health_state a = verdict_state(l, r), b = verdict_state(l, worst);
        if (a > b || (a == b && v->severity > w->severity))
            worst = r;
    }
    return worst;
}

static void say(const struct health *h, const struct tele_table *t, const struct judged *j,
                struct health_view *ret)
{
    const struct health_port *p = &h->port[j->end];
    long long seconds = (p->at_errors - p->from) / HEALTH_S;
    char name[160], seen[32];
    health_end_name(h, j->end, name, sizeof(name));
    snprintf(seen, sizeof(seen), "%lld %s", seconds < 120 ? seconds : seconds / 60,
             seconds < 120 ? "s" : "min");
    double n = 0, need = 12 * longer_of(p);
    switch (j->why) {
    case SURE:
    case STANDS:
        break;
    case FEW_BITS:
        snprintf(ret->why, sizeof(ret->why), "no error in %s; to be sure of 1e-14 takes %.0f min", seen,
                 need);
        break;
    case ERRORS_FEW_BITS:
        n = series_count(p->link->series[health_end(p->link, j->end)][SIGNAL_SYMBOL], p->at_errors,
                         130 * HEALTH_MIN);
        snprintf(ret->why, sizeof(ret->why),
                 "%.0f symbol error%s in %.20s at %.120s; to be sure of 1e-15 takes %.0f min", n,
                 n < 1.5 ? "" : "s", seen, name, need / 12 * 125);
        break;
    case STALE:
        snprintf(ret->why, sizeof(ret->why), "%s is not read for %lld min: %s", name,
                 (long long)((h->now - p->at_errors) / HEALTH_MIN),
                 tele_unread_name((enum tele_unread)t->port[j->end].unread));
        break;
    case NOT_READ:
        snprintf(ret->why, sizeof(ret->why), "never read: %s",
                 tele_unread_name((enum tele_unread)t->port[j->end].unread));
        break;
    case ONE_END:
        snprintf(ret->why, sizeof(ret->why), "only one end is read; %s: %s", name,
                 tele_unread_name((enum tele_unread)t->port[j->end].unread));
        break;
    case HOLES:
        snprintf(ret->why, sizeof(ret->why), "%s at %s: what was counted is not all known",
                 is_blind(t, j->end) ? "a counter stands at its maximum" : "counters were cleared", name);
        break;
    }
}

static void add_ratios(const struct health *h, uint32_t slot, struct health_view *ret)
{
    const struct health_port *p = &h->port[slot];
    const struct health_link *l = p->link;
    double raw = raw_ratio(p);
    if (!isnan(raw) && (isnan(ret->raw_ber) || raw > ret->raw_ber))
        ret->raw_ber = raw;
    int64_t ns = covered(p, 125 * HEALTH_MIN);
    double bits = p->rate_mbps * 1e6 * mono_seconds(ns);
    if (bits <= 0)
        return;
    double n = l ? series_count(l->series[health_end(l, slot)][SIGNAL_SYMBOL], p->at_errors, ns) : 0;
    if (isnan(ret->symbol_ber) || n / bits > ret->symbol_ber)
        ret->symbol_ber = n / bits;
}

void health_view(const struct health *h, const struct tele_table *t, uint32_t slot, struct health_view *ret)
{
    *ret = (struct health_view){.rule = "", .advice = "", .symbol_ber = NAN, .raw_ber = NAN};
    if (slot >= h->num || slot >= t->num)
        return;
    slot = health_lower(h, slot);
    uint32_t mate = h->port[slot].mate;
    const struct health_link *l = h->port[slot].link;
    struct judged j = judge_view(h, t, slot);
    ret->state = j.state;
    ret->since = j.since;
    ret->sure_at = j.state == HEALTH_UNSURE ? j.sure_at : 0;
    if (h->t)
        say(h, t, &j, ret);
    int r = l ? worst_verdict(l) : -1;
    if (r >= 0) {
        ret->rule = health_rules[r].id;
        ret->advice = health_advice(h, t, slot, ret->rule);
        if (j.why == STANDS || !ret->why[0])
            snprintf(ret->why, sizeof(ret->why), "%s", l->verdict[r].reason ? l->verdict[r].reason : "");
        health_module_age(h, l, r, ret->why, sizeof(ret->why));
    }
    add_ratios(h, slot, ret);
    if (mate != TELE_SLOT_NONE)
        add_ratios(h, mate, ret);
}

uint32_t health_standing(const struct health *h, uint32_t slot, struct health_standing *ret, uint32_t max)
{
    const struct health_link *l = slot < h->num ? h->port[slot].link : NULL;
    uint32_t n = 0;
    for (int s = ALARM_CRITICAL; l && s >= 0; s--)
        for (unsigned r = 0; r < HEALTH_RULES && n < max; r++)
            if (l->verdict[r].level >= 0 && l->verdict[r].severity == s)
                ret[n++] =
                    (struct health_standing){health_rules[r].id, (enum alarm_severity)s, l->verdict[r].since,
                                             l->verdict[r].reason ? l->verdict[r].reason : ""};
    return n;
}

bool health_noted(const struct health *h, uint32_t slot)
{
    return slot < h->num && h->port[health_lower(h, slot)].link != NULL;
}

void health_ratios(const struct health *h, uint32_t slot, double *ret_symbol_ber, double *ret_raw_ber)
{
    struct health_view v = {.symbol_ber = NAN, .raw_ber = NAN};
    if (slot < h->num) {
        slot = health_lower(h, slot);
        add_ratios(h, slot, &v);
        if (h->port[slot].mate != TELE_SLOT_NONE)
            add_ratios(h, h->port[slot].mate, &v);
    }
    *ret_symbol_ber = v.symbol_ber;
    *ret_raw_ber = v.raw_ber;
}

enum health_state health_state_at(const struct health *h, const struct tele_table *t, uint32_t slot)
{
    return slot < h->num && slot < t->num ? judge_view(h, t, health_lower(h, slot)).state : HEALTH_UNKNOWN;
}

void health_count(const struct health *h, const struct tele_table *t, struct health_count *ret)
{
    uint32_t slot = 0;
    *ret = (struct health_count){0};
    health_count_some(h, t, &slot, UINT32_MAX, ret);
}

bool health_count_some(const struct health *h, const struct tele_table *t, uint32_t *slot, uint32_t most,
                       struct health_count *ret)
{
    for (; most > 0 && *slot < h->num; most--, ++*slot)
        if (count_as_link(h, t, *slot))
            ret->links[judge_view(h, t, *slot).state]++;
    return *slot >= h->num;
}

struct named {
    enum health_state state;
    uint32_t slot;
};

static int worst_first(const void *p, const void *q)
{
    const struct named *a = p, *b = q;
    if (a->state != b->state)
        return a->state > b->state ? -1 : 1;
    return a->slot < b->slot ? -1 : a->slot > b->slot;
}

uint32_t health_named(const struct health *h, uint32_t **ret_slots)
{
    uint32_t n = 0, k = 0;
    for (const struct health_link *l = h->first; l; l = l->next)
        n += l->state >= HEALTH_DEGRADED;
    struct named *list = xcalloc(n + 1, sizeof(*list));
    for (const struct health_link *l = h->first; l; l = l->next)
        if (l->state >= HEALTH_DEGRADED)
            list[k++] = (struct named){l->state, l->slot[0]};
    qsort(list, n, sizeof(*list), worst_first);
    *ret_slots = xcalloc(n + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < n; i++)
        (*ret_slots)[i] = list[i].slot;
    free(list);
    return n;
}

static bool end_clean(const struct health *h, const struct tele_table *t, uint32_t slot, int64_t window)
{
    const struct health_port *p = &h->port[slot];
    return p->at_errors && h->now - p->at_errors <= stale_after(p) && p->at_errors - p->from >= window &&
           covered(p, window) >= window / 4 * 3 && !is_blind(t, slot);
}

bool health_clean(const struct health *h, const struct tele_table *t, uint32_t slot, int64_t window)
{
    if (slot >= h->num || slot >= t->num || h->port[slot].mate == TELE_SLOT_NONE)
        return false;
    const struct health_link *l = h->port[slot].link;
    if (!end_clean(h, t, slot, window) || !end_clean(h, t, h->port[slot].mate, window))
        return false;
    if (!h->port[slot].up || (h->port[slot].up_at && h->now - h->port[slot].up_at < window))
        return false;
    for (unsigned r = 0; l && r < HEALTH_RULES; r++) {
        const struct health_verdict *v = &l->verdict[r];
        if (health_rules[r].level[0].state == HEALTH_UNKNOWN)
            continue;
        if (v->level >= 0 || (v->since && h->now - v->bad_at[0] < window))
            return false;
    }
    return true;
}

uint32_t health_host(const struct health *h, uint32_t slot)
{
    return slot < h->num ? h->port[slot].host : TELE_SLOT_NONE;
}

uint32_t health_host_cut(const struct health *h, uint32_t slot)
{
    if (slot >= h->num)
        return 0;
    uint32_t mate = h->port[slot].mate, host = h->port[slot].host;
    if (host == ID_NONE && mate != TELE_SLOT_NONE)
        host = h->port[mate].host;
    for (uint32_t s = 0; s < h->num && host != ID_NONE; s++)
        if (h->port[s].host == host && h->port[s].up)
            return 0;
    return host != ID_NONE;
}

const char *health_advice(const struct health *h, const struct tele_table *t, uint32_t slot, const char *rule)
{
    const struct alarm_rule *r = alarm_rule(rule);
    uint32_t mate = health_peer(h, slot);
    bool down = strcmp(rule, "L01") == 0 || strcmp(rule, "L03") == 0;
    bool host = !t->port[slot].of_switch || (mate != TELE_SLOT_NONE && !t->port[mate].of_switch);
    if (down && health_is_back(h, slot))
        return HEALTH_BACK_ADVICE;
    return host && r->host_advice ? r->host_advice : r->advice;
}

bool health_is_back(const struct health *h, uint32_t slot)
{
    const struct health_link *l = slot < h->num ? h->port[slot].link : NULL;
    return l && !l->down_since && (l->verdict[RULE_L01].level >= 0 || l->verdict[RULE_L03].level >= 0);
}

uint32_t health_peer(const struct health *h, uint32_t slot)
{
    return slot < h->num ? h->port[slot].mate : TELE_SLOT_NONE;
}

// --- life ---

struct health *health_new(const struct health_opts *o, const struct health_sink *sink)
{
    struct health *h = xcalloc(1, sizeof(*h));
    if (o)
        h->o = *o;
    h->sink = *sink;
    return h;
}

void health_free(struct health *h)
{
    if (!h)
        return;
    while (h->first)
        health_link_free(h, h->first);
    free(h->host_up);
    free(h->port);
    free(h);
}
