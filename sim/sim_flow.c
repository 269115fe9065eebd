// SPDX-License-Identifier: Apache-2.0
// When traffic is worked out, and how counters move in between.
//
// Struct sim_flows hangs on struct sim from the first pattern or receiver on. A change marks it dirty and
// sets an event; the event makes a flow_net (sim_flow_net.c) and runs it in slices; its end gives every
// port's direction out its rates. Both ends of a cable are counted from the same rates in the same moment, so
// what one has sent the other has received.
#include "sim/sim_flow_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define DELAY (10 * MONO_MS) // from a change to its effect
#define SLICE 30000          // events worked off at once: a few milliseconds
#define PAUSE (2 * MONO_MS)  // between slices

static struct sim_flows *flows_of(struct sim *s)
{
    if (!s->flows)
        s->flows = xcalloc(1, sizeof(*s->flows));
    return s->flows;
}

// From now on something may move.
static void prepare(struct sim *s, struct sim_flows *x)
{
    if (x->dir)
        return;
    x->dir = xcalloc(s->num_ports + 1, sizeof(*x->dir));
    x->use = xcalloc(s->num_ports + 1, sizeof(*x->use));
    x->packet = 4096;
    for (uint32_t i = 0; i < s->num_ports; i++) {
        x->dir[i].since = s->now;
        x->use[i].root = CELLS_NONE;
    }
}

bool flows_moved(const struct sim *s)
{
    return s->flows && s->flows->dir;
}

// --- counters ---

// Whole ones of what has come together, the rest stays.
static uint64_t whole(double rate, double seconds, double *left)
{
    double v = rate * seconds + *left, n = floor(v);
    *left = v - n;
    return (uint64_t)n;
}

static bool moves(const struct flow_dir *d)
{
    return d->words > 0 || d->ticks > 0 || d->discards > 0 || d->unrouted > 0;
}

static void count_lanes(struct sim *s, struct sim_port *p, double t, uint64_t ticks)
{
    const struct sim_flows *x = s->flows;
    size_t i = (size_t)port_index(s, p) * x->lanes;
    if (!x->lane_ticks && ticks > 0)
        pma_vl_wait(p, 0, ticks);
    for (unsigned k = 0; x->lane_ticks && k < x->lanes; k++) {
        uint64_t n = whole(x->lane_ticks[i + k], t, &x->lane_left[i + k]);
        if (n > 0)
            pma_vl_wait(p, k, n);
    }
}

// The direction out of p, up to now.
static void count(struct sim *s, struct sim_port *p)
{
    struct flow_dir *d = &s->flows->dir[port_index(s, p)];
    struct sim_port *z = peer_of(s, p);
    double t = mono_seconds(s->now - d->since);
    d->since = s->now;
    if (t <= 0 || !moves(d))
        return;
    uint64_t words = whole(d->words, t, &d->left[0]), packets = whole(d->packets, t, &d->left[1]);
    p->counter[SIM_XMIT_DATA] += words;
    p->counter[SIM_XMIT_PKTS] += packets;
    p->counter[SIM_UNICAST_XMIT_PKTS] += packets;
    uint64_t ticks = whole(d->ticks, t, &d->left[2]), late = whole(d->hoq, t, &d->left[5]);
    p->counter[SIM_XMIT_WAIT] += ticks;
    count_lanes(s, p, t, ticks);
    uint64_t away = whole(d->discards - d->hoq, t, &d->left[3]); // nothing is there any more
    p->counter[SIM_XMIT_DISCARDS] += late + away;
    p->counter[SIM_SW_HOQ_LIFETIME_LIMIT_DISCARDS] += late;
    p->counter[SIM_INACTIVE_DISCARDS] += away;
    if (!z)
        return;
    z->counter[SIM_RCV_DATA] += words;
    z->counter[SIM_RCV_PKTS] += packets;
    z->counter[SIM_UNICAST_RCV_PKTS] += packets;
    z->counter[SIM_RCV_SWITCH_RELAY_ERRORS] += whole(d->unrouted, t, &d->left[4]);
}

void flow_count(struct sim *s, struct sim_port *first, unsigned n)
{
    if (!flows_moved(s) && s->num_errors == 0)
        return;
    sim_touch(s);
    for (struct sim_port *p = first; p < first + n; p++) {
        errors_count(s, p);
        if (!flows_moved(s))
            continue;
        count(s, p);
        if (p->peer != NONE)
            count(s, peer_of(s, p));
    }
}

void flow_link_down(struct sim *s, struct sim_port *p)
{
    flow_count(s, p, 1);
    if (p->peer != NONE)
        flow_count(s, peer_of(s, p), 1);
    if (!flows_moved(s))
        return;
    struct sim_port *end[] = {p, peer_of(s, p)};
    for (unsigned i = 0; i < 2; i++)
        if (end[i])
            s->flows->dir[port_index(s, end[i])] = (struct flow_dir){.since = s->now};
    flow_dirty(s);
}

// Bytes of link time that one tick of PortXmitWait stands for: 8, but 32 a lane with Switch-IB and
// Switch-IB 2.
static double tick_bytes(const struct sim *s, const struct sim_port *p)
{
    const struct sim_node *n = node_of(s, p);
    bool old =
        n->vendor_id == 0x2c9 && (n->device_id == 0xc738 || n->device_id == 0xcb20 || n->device_id == 0xcf08);
    unsigned lanes = mad_width_lanes(p->pi.link_width_active);
    return old ? 32.0 * (lanes ? lanes : 4) : 8;
}

// --- a steady state ---

static void set_rates(struct sim *s, uint32_t i, const struct flow_net *n, const struct cells_use *u)
{
    struct sim_port *p = &s->port[i];
    struct flow_dir *d = &s->flows->dir[i];
    double packets = (double)CELL_BYTES / n->packet;
    bool up = link_passes(s, p, false);
    count(s, p);
    d->packets = up ? u->sent * packets : 0;
    d->words = d->packets * (n->packet + PACKET_COUNTED) / 4;
    d->ticks = up ? u->held * port_bytes_s(p) / tick_bytes(s, p) : 0;
    d->unrouted = up && p->peer != NONE && is_switch(node_of(s, peer_of(s, p))) ? u->unrouted * packets : 0;
    d->discards = u->discarded * packets;
    d->hoq = up ? d->discards : 0;
}

// How long each lane waits, where there are several.
static void set_lanes(struct sim *s, const struct flow_net *n)
{
    struct sim_flows *x = s->flows;
    free(x->lane_ticks);
    free(x->lane_left);
    x->lane_ticks = x->lane_left = NULL;
    x->lanes = n->lanes;
    if (n->lanes == 1 || (n->before && n->before->lanes != n->lanes))
        return;
    x->lane_ticks = xcalloc((size_t)s->num_ports * n->lanes + 1, sizeof(*x->lane_ticks));
    x->lane_left = xcalloc((size_t)s->num_ports * n->lanes + 1, sizeof(*x->lane_left));
    for (uint32_t i = 0; i < s->num_ports; i++)
        for (unsigned k = 0; k < n->lanes; k++) {
            double held = cells_lane_held(n->cells, i, k);
            if (n->before)
                held = n->share * cells_lane_held(n->before->cells, i, k) + (1 - n->share) * held;
            x->lane_ticks[(size_t)i * n->lanes + k] =
                held * port_bytes_s(&s->port[i]) / tick_bytes(s, &s->port[i]);
        }
}

static void sum_patterns(struct sim *s, const struct flow_net *n, const double *delivered)
{
    for (uint32_t k = 0; k < s->flows->num_patterns; k++) {
        struct pattern *p = &s->flows->pattern[k];
        p->offered = p->delivered = 0;
        p->dead = p->on ? p->num_pairs : 0;
    }
    for (uint32_t f = 0; f < n->num_flows; f++) {
        if (n->who[f].pattern >= s->flows->num_patterns)
            continue;
        struct pattern *p = &s->flows->pattern[n->who[f].pattern];
        double full = n->link[n->flow[f].link].rate * p->senders / (p->num_pairs ? p->num_pairs : 1);
        p->offered += CELL_BYTES * (isinf(n->flow[f].rate) ? full : n->flow[f].rate);
        p->delivered += CELL_BYTES * delivered[f];
        p->dead -= delivered[f] > 0 && p->dead > 0;
    }
}

// A state has been worked out: of traffic, or of traffic while lanes are stalled.
static void ended(struct sim *s)
{
    struct flow_net *n = s->flows->net;
    n->use = xcalloc(s->num_ports + 1, sizeof(*n->use));
    n->delivered = xcalloc(n->num_flows + 1, sizeof(*n->delivered));
    cells_result(n->cells, n->use, n->delivered);
    s->flows->stats.runs++;
    s->flows->stats.events += cells_events(n->cells);
    if (!n->before && hoq_next(s, n))
        return;
    hoq_mix(s, n);
    for (uint32_t i = 0; i < s->num_ports; i++)
        set_rates(s, i, n, &n->use[i]);
    set_lanes(s, n);
    sum_patterns(s, n, n->delivered);
    memcpy(s->flows->use, n->use, s->num_ports * sizeof(*n->use));
    s->flows->packet = n->packet;
    s->flows->stats.flows = n->num_flows;
    net_free(n);
    s->flows->net = NULL;
}

// Nobody sends any more.
static void all_still(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_ports; i++) {
        count(s, &s->port[i]);
        s->flows->dir[i] = (struct flow_dir){.since = s->now};
        s->flows->use[i] = (struct cells_use){.root = CELLS_NONE};
    }
    for (uint32_t k = 0; k < s->flows->num_patterns; k++)
        s->flows->pattern[k].offered = s->flows->pattern[k].delivered = s->flows->pattern[k].dead = 0;
    s->flows->signature = 0;
}

static void begin(struct sim *s)
{
    struct sim_flows *x = s->flows;
    x->dirty = false;
    x->net = net_new(s, NULL);
    if (!x->net) {
        all_still(s);
        return;
    }
    uint64_t sig = cells_signature(x->net->cells);
    sig = hash_mix64(sig ^ hoq_signature(s));
    if (cells_choose(x->net->cells)) // no ways to compare: whatever was written counts as a change
        sig = hash_mix64(sig ^ x->written);
    if (sig == x->signature) { // as it was: rates of links that were down and are up again
        x->stats.skipped++;
        for (uint32_t i = 0; i < s->num_ports; i++)
            set_rates(s, i, x->net, &x->use[i]);
        net_free(x->net);
        x->net = NULL;
    }
    x->signature = sig;
}

// Goes on with what is under way, or begins; false when there is nothing left to do.
static bool work(struct sim *s, uint64_t events)
{
    struct sim_flows *x = s->flows;
    int64_t start = thread_cpu_ns();
    if (!x->net && x->dirty)
        begin(s);
    if (x->net && cells_run(x->net->cells, events))
        ended(s);
    x->stats.cpu_ns += thread_cpu_ns() - start;
    return x->net || x->dirty;
}

static void schedule(struct sim *s, int64_t after)
{
    s->flows->scheduled = true;
    event_at(s, EV_FLOW, 0, s->now + after);
}

void flow_event(struct sim *s)
{
    s->flows->scheduled = false;
    if (work(s, SLICE))
        schedule(s, s->flows->net ? PAUSE : DELAY);
}

void flow_dirty(struct sim *s)
{
    if (!s->flows || s->flows->num_patterns == 0)
        return;
    s->flows->dirty = true;
    if (!s->flows->scheduled)
        schedule(s, DELAY);
}

void flow_tables_written(struct sim *s)
{
    if (s->flows)
        s->flows->written++;
    flow_dirty(s);
}

void sim_flow_settle(struct sim *s)
{
    if (!flows_moved(s))
        return;
    sim_touch(s);
    while (work(s, UINT64_MAX / 2))
        ;
}

bool sim_flow_settled(const struct sim *s)
{
    return !s->flows || (!s->flows->dirty && !s->flows->net);
}

// --- what is told ---

static void turn(struct sim *s, struct pattern *p)
{
    if (p->on_ns == 0 || p->off_ns == 0)
        return;
    p->turn_due = s->now + (p->on ? p->on_ns : p->off_ns);
    event_at(s, EV_FLOW_TURN, p->id, p->turn_due);
}

void flow_turn_event(struct sim *s, uint32_t id)
{
    for (uint32_t k = 0; s->flows && k < s->flows->num_patterns; k++) {
        struct pattern *p = &s->flows->pattern[k];
        if (p->id != id || p->turn_due != s->now)
            continue;
        p->on = !p->on;
        turn(s, p);
        flow_dirty(s);
    }
}

int sim_flow_start(struct sim *s, const struct sim_flow_spec *spec, uint32_t *ret_id)
{
    struct pattern p;
    int rc = pattern_make(s, spec, &p);
    if (rc != 0)
        return rc;
    struct sim_flows *x = flows_of(s);
    sim_touch(s);
    prepare(s, x);
    p.id = ++x->next_id;
    x->pattern = xreallocarray(x->pattern, x->num_patterns + 1, sizeof(*x->pattern));
    x->pattern[x->num_patterns++] = p;
    turn(s, &x->pattern[x->num_patterns - 1]);
    x->signature = 0; // rates of patterns are to be summed anew
    flow_dirty(s);
    if (ret_id)
        *ret_id = p.id;
    return 0;
}

int sim_flow_stop(struct sim *s, uint32_t id)
{
    struct sim_flows *x = s->flows;
    uint32_t kept = 0, had = x ? x->num_patterns : 0;
    sim_touch(s);
    flow_dirty(s); // while there is something to stop
    for (uint32_t k = 0; k < had; k++) {
        if (id != 0 && x->pattern[k].id != id)
            x->pattern[kept++] = x->pattern[k];
        else
            free(x->pattern[k].pair);
    }
    if (had != kept && x->net) { // it knows patterns by their place
        net_free(x->net);
        x->net = NULL;
    }
    if (had != kept) {
        x->num_patterns = kept;
        x->signature = 0;
    }
    return id == 0 || had != kept ? 0 : -ENOENT;
}

int sim_flow_list(struct sim *s, unsigned i, struct sim_flow_info *ret)
{
    if (!s->flows || i >= s->flows->num_patterns)
        return -ENOENT;
    const struct pattern *p = &s->flows->pattern[i];
    *ret = (struct sim_flow_info){.id = p->id,
                                  .pattern = p->kind,
                                  .senders = p->senders,
                                  .receivers = p->receivers,
                                  .flows = p->num_pairs,
                                  .dead = p->dead,
                                  .on = p->on,
                                  .offered = p->offered,
                                  .delivered = p->delivered};
    memcpy(ret->name, p->name, sizeof(ret->name));
    return 0;
}

void sim_flow_levels(struct sim *s, sim_level_fn *fn, void *arg)
{
    struct sim_flows *x = flows_of(s);
    x->level = fn;
    x->level_arg = arg;
    x->signature = 0;
    sim_touch(s);
    flow_dirty(s);
}

int sim_receiver(struct sim *s, uint64_t node_guid, unsigned port, double drain)
{
    const struct sim_port *p = sim_port_by(s, node_guid, port);
    if (!p || is_switch(node_of(s, p)))
        return -ENOENT;
    if (!(drain >= 0 && drain <= 1))
        return -EINVAL;
    struct sim_flows *x = flows_of(s);
    if (!x->drain) {
        x->drain = xcalloc(s->num_ports + 1, sizeof(*x->drain));
        for (uint32_t i = 0; i < s->num_ports; i++)
            x->drain[i] = 1;
    }
    sim_touch(s);
    x->drain[port_index(s, p)] = (float)drain;
    flow_dirty(s);
    return 0;
}

void sim_flow_get_stats(const struct sim *s, struct sim_flow_stats *ret)
{
    *ret = s->flows ? s->flows->stats : (struct sim_flow_stats){0};
}

void flows_free(struct sim *s)
{
    struct sim_flows *x = s->flows;
    if (!x)
        return;
    for (uint32_t k = 0; k < x->num_patterns; k++)
        free(x->pattern[k].pair);
    net_free(x->net);
    free(x->pattern);
    free(x->drain);
    free(x->dir);
    free(x->use);
    free(x->lane_ticks);
    free(x->lane_left);
    free(x);
    s->flows = NULL;
}
