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
#include "telemetry/table_priv.h"

#define WATCHED (TELE_VL15_DROPPED - TELE_SYMBOL_ERRORS + 1)
_Static_assert(WATCHED == 12, "the counters that health_port.last holds");
#define BIT(c) (1ull << (c))
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

// Whether links of hosts are up, or whose they are, is another thing now: counted anew when somebody asks.
static void hosts_moved(struct health *h)
{
    free(h->host_up);
    h->host_up = NULL;
}

void health_set_up(struct health *h, uint32_t slot, bool up)
{
    if (h->port[slot].up == up)
        return;
    h->port[slot].up = up;
    hosts_moved(h);
}

// All that is known of a port goes but what is named here, which is the slot's own, whatever cable it has.
static void begin_port(struct health_port *p)
{
    int64_t read =
        p->hot_at == 0 || (p->optics_at != 0 && p->optics_at > p->hot_at) ? p->optics_at : p->hot_at;
    *p = (struct health_port){.host = p->host,
                              .tick = p->tick,
                              .module_from = read != 0 ? read : p->module_from,
                              .mate = TELE_SLOT_NONE,
                              .median = NAN};
    for (size_t i = 0; i < sizeof(p->coldest) / sizeof(p->coldest[0]); i++)
        p->coldest[i] = INT16_MIN;
}

void health_port_init(struct health_port *p)
{
    *p = (struct health_port){.host = ID_NONE, .tick = 8};
    begin_port(p);
}

// Another cable. What was told of the place stays: it is the blueprint's.
static void change_cable(struct health *h, uint32_t slot)
{
    struct health_port *p = &h->port[slot];
    const struct health_port was = *p;
    begin_port(p);
    p->told = was.told;
    p->was_known = was.was_known;
    p->up = was.up;
    p->seen_up = was.seen_up;
}

static void lose_mate(struct health *h, uint32_t slot)
{
    uint32_t mate = h->port[slot].mate;
    forget(h, slot);
    if (mate == TELE_SLOT_NONE)
        return;
    change_cable(h, slot);
    change_cable(h, mate);
}

// The far end is another one than it was: another link.
static void take_peer(struct health *h, uint32_t slot, uint32_t peer)
{
    struct health_port *p = &h->port[slot], *q = &h->port[peer];
    lose_mate(h, slot);
    lose_mate(h, peer);
    p->mate = peer;
    q->mate = slot;
    p->rate_most = q->rate_most = 0;
    h->moved++;
    p->told = q->told = p->told || q->told;
    health_set_up(h, slot, p->up || q->up);
    health_set_up(h, peer, p->up);
}

void health_grow(struct health *h, uint32_t num)
{
    if (num <= h->num)
        return;
    h->port = xreallocarray(h->port, num, sizeof(*h->port));
    while (h->num < num)
        health_port_init(&h->port[h->num++]);
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
    int64_t unit = at / HEALTH_HOLE, by = unit - p->hole_unit, more = (at - t0) / HEALTH_HOLE;
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
bool health_is_blind(const struct tele_table *t, uint32_t slot)
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
        if (t->port[slot].resets != p->resets || health_is_blind(t, slot))
            hole(p, t0, at);
        if (v[TELE_XMIT_WAIT] != p->last_wait || (p->link && p->link->held[health_end(p->link, slot)] > 0))
            held_read(h, slot, v[TELE_XMIT_WAIT] - p->last_wait, t0, at);
    }
    if (t0 != 0 && t->port[slot].resets != p->resets) // those before the first reading are long past
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

// Of an end whose node is away the other one tells; of two nobody.
static bool table_up(const struct health *h, uint32_t slot, uint32_t mate)
{
    const struct tele_table *t = h->t;
    if (mate == TELE_SLOT_NONE)
        return t->port[slot].up;
    bool a = tele_is_away(t, slot), z = tele_is_away(t, mate);
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
            uint32_t mate = p->mate != TELE_SLOT_NONE ? p->mate : slot;
            p->seen_up = h->port[mate].seen_up = true;
            health_set_up(h, slot, true);
            health_set_up(h, mate, true);
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
    hosts_moved(h);
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

static struct health_snapshot snapshot_of(const struct tele_table *t)
{
    return (struct health_snapshot){t->fabric, t->fabric ? t->fabric->generation : 0};
}

static bool snapshot_is_new(const struct health *h)
{
    struct health_snapshot s = snapshot_of(h->t);
    return s.of && (s.of != h->learned.of || s.generation != h->learned.generation);
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
    if (was == FEED_PORTS)
        h->feed.snapshot = snapshot_of(h->t);
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
            // One that came between two parts, of which hosts were not learned, is new to the next feed.
            h->learned = h->feed.snapshot;
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
            p->seen_up = q->seen_up = true;
        health_set_up(h, slot, true);
        health_set_up(h, p->mate != TELE_SLOT_NONE ? p->mate : slot, true);
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
    hosts_moved(h);
    begin_port(&h->port[slot]);
    if (mate != TELE_SLOT_NONE)
        begin_port(&h->port[mate]);
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
