// SPDX-License-Identifier: Apache-2.0
// Packets that wait too long (IBA 18.2.5.4): where credits never come, a switch drops the packet at the head
// of its lane after HOQLife. After VLStallCount of these in a row the lane is stalled: for eight HOQLives all
// that is to go there is dropped, and whatever has stood behind it moves.
//
// So a lane without credits has two states that take turns, for VLStallCount and for 8 HOQLives. These are
// milliseconds to seconds, beside which it takes no time until traffic has settled in either: both are worked
// out, and counters move as is right on average. Of several lanes that wait for the same root the ones with
// the shortest time are stalled; the others get credits before it is their turn. HOQLife above 19 is for
// ever.
#include "sim/sim_flow_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define HOQ_MAX 19
#define STALLED_LIVES 8

// Seconds; INFINITY: for ever, and at an adapter, which has none.
static double hoq_life(const struct sim *s, const struct sim_port *p)
{
    return is_switch(node_of(s, p)) && p->pi.hoq_life <= HOQ_MAX ? 4.096e-6 * (double)(1u << p->pi.hoq_life)
                                                                 : INFINITY;
}

uint64_t hoq_signature(const struct sim *s)
{
    uint64_t h = 0;
    for (uint32_t i = 0; i < s->num_ports; i++)
        h = hash_mix64(h ^ (uint64_t)s->port[i].pi.hoq_life << 8 ^ s->port[i].pi.vl_stall_count);
    return h;
}

static double stall_time(const struct sim *s, uint32_t i)
{
    const struct sim_port *p = &s->port[i];
    return p->pi.vl_stall_count > 0 ? p->pi.vl_stall_count * hoq_life(s, p) : INFINITY;
}

// Marks the lanes that are stalled; how many.
static uint32_t find_stalled(const struct sim *s, const struct cells_use *use, bool *ret)
{
    double *first = xcalloc(s->num_ports + 1, sizeof(*first)); // by root: the shortest time
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->num_ports; i++)
        first[i] = INFINITY;
    for (uint32_t i = 0; i < s->num_ports; i++)
        if (use[i].stuck && use[i].root < s->num_ports)
            first[use[i].root] = fmin(first[use[i].root], stall_time(s, i));
    for (uint32_t i = 0; i < s->num_ports; i++) {
        ret[i] = use[i].stuck && use[i].root < s->num_ports && !isinf(stall_time(s, i)) &&
                 stall_time(s, i) <= first[use[i].root];
        n += ret[i];
    }
    free(first);
    return n;
}

bool hoq_next(struct sim *s, struct flow_net *n)
{
    uint32_t count = 0, longest = 0;
    for (uint32_t i = 0; i < s->num_ports; i++)
        if (n->use[i].stuck && !isinf(hoq_life(s, &s->port[i])))
            n->use[i].discarded += (double)n->packet / CELL_BYTES / hoq_life(s, &s->port[i]);
    bool *stalled = xcalloc(s->num_ports + 1, sizeof(*stalled));
    count = find_stalled(s, n->use, stalled);
    for (uint32_t i = 0; i < s->num_ports; i++)
        if (stalled[i] && s->port[i].pi.vl_stall_count > longest)
            longest = s->port[i].pi.vl_stall_count;
    struct flow_net *next = count > 0 ? net_new(s, stalled) : NULL;
    free(stalled);
    if (!next || next->num_flows != n->num_flows) {
        net_free(next);
        return false;
    }
    next->before = n;
    next->share = (double)longest / (longest + STALLED_LIVES);
    s->flows->net = next;
    return true;
}

static double mix(double a, double b, double share)
{
    return share * a + (1 - share) * b;
}

void hoq_mix(const struct sim *s, struct flow_net *n)
{
    const struct flow_net *a = n->before;
    double w = n->share;
    for (uint32_t i = 0; a && i < s->num_ports; i++) {
        const struct cells_use *x = &a->use[i];
        struct cells_use *u = &n->use[i];
        u->sent = mix(x->sent, u->sent, w);
        u->used = mix(x->used, u->used, w);
        u->held = mix(x->held, u->held, w);
        u->discarded = mix(x->discarded, u->discarded, w);
        u->unrouted = mix(x->unrouted, u->unrouted, w);
        u->fill = mix(x->fill, u->fill, w);
        u->queued = mix(x->queued, u->queued, w);
        u->lost = mix(x->lost, u->lost, w);
        if (x->root != CELLS_NONE) {
            u->root = x->root;
            u->root_share = x->root_share;
        }
        u->stuck = x->stuck;
        u->circle = x->circle;
    }
    for (uint32_t f = 0; a && f < n->num_flows; f++)
        n->delivered[f] = mix(a->delivered[f], n->delivered[f], w);
}
