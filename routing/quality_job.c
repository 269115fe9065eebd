// SPDX-License-Identifier: Apache-2.0
// What one job's collectives meet, and the cables that hold them back.
#include "routing/quality_priv.h"

#include <stdlib.h>
#include <string.h>

struct flow {
    uint32_t src, dst; // ends
    bool lost;
};

struct jobq {
    const struct qgraph *g;
    struct arena *a;
    uint32_t *end; // the job's, by rail, ranks in order
    uint32_t n;
    uint32_t *rail_first; // num_rails + 1, in end[]
    uint32_t num_rails;
    uint32_t *on; // per end of the graph: number of its rail here, ID_NONE when not of the job
    struct flow *flow;
    uint32_t num_flows;
    uint32_t *load; // per channel
    bool *blame;    // per channel
};

// --- who takes part ---

struct member {
    uint32_t rail, rank, end;
};

static int member_order(const void *a, const void *b)
{
    const struct member *x = a, *y = b;
    if (x->rail != y->rail)
        return x->rail < y->rail ? -1 : 1;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static void members_find(struct jobq *j, const uint32_t *ports, uint32_t num)
{
    const struct qgraph *g = j->g;
    uint32_t *end_of = ARENA_NEW_N(j->a, g->f->num_ports + 1, uint32_t); // + 1; 0: none, or taken
    struct member *m = ARENA_NEW_N(j->a, g->num_ends + 1, struct member);
    for (uint32_t i = 0; i < g->num_ends; i++)
        end_of[g->end[i].port_id] = i + 1;
    for (uint32_t i = 0; i < num; i++) {
        uint32_t e = ports[i] < g->f->num_ports ? end_of[ports[i]] : 0;
        if (e == 0)
            continue;
        end_of[ports[i]] = 0;
        m[j->n++] = (struct member){g->end[e - 1].rail, i, e - 1};
    }
    qsort(m, j->n, sizeof(*m), member_order);
    j->end = ARENA_NEW_N(j->a, j->n + 1, uint32_t);
    j->rail_first = ARENA_NEW_N(j->a, j->n + 2, uint32_t);
    j->on = ARENA_NEW_N(j->a, g->num_ends + 1, uint32_t);
    memset(j->on, 0xff, g->num_ends * sizeof(*j->on));
    for (uint32_t i = 0; i < j->n; i++) {
        if (i == 0 || m[i].rail != m[i - 1].rail)
            j->rail_first[j->num_rails++] = i;
        j->end[i] = m[i].end;
        j->on[m[i].end] = j->num_rails - 1;
    }
    j->rail_first[j->num_rails] = j->n;
}

// --- what they send ---

static void add_flow(struct jobq *j, uint32_t src, uint32_t dst)
{
    j->flow[j->num_flows++] = (struct flow){.src = src, .dst = dst};
}

static void ring(struct jobq *j, const uint32_t *end, uint32_t n)
{
    for (uint32_t i = 0; i < n && n > 1; i++)
        add_flow(j, end[i], end[i + 1 < n ? i + 1 : 0]);
}

// Parent of a rank in a binary tree in which odd ranks are leaves; rank 0 is the root.
static uint32_t parent(uint32_t rank, uint32_t n)
{
    uint32_t bit = rank & -rank, rest = rank ^ bit;
    uint32_t p = rest | bit << 1;
    return p < n ? p : rest;
}

// In the second tree each rank is its place in the mirrored or shifted order: who is a leaf in one is none in
// the other.
static uint32_t other(uint32_t rank, uint32_t n)
{
    return n % 2 == 0 ? n - 1 - rank : (rank + 1) % n;
}

static void trees(struct jobq *j, const uint32_t *end, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t p = parent(i, n);
        add_flow(j, end[i], end[p]);
        add_flow(j, end[p], end[i]);
        add_flow(j, end[other(i, n)], end[other(p, n)]);
        add_flow(j, end[other(p, n)], end[other(i, n)]);
    }
}

// --- what that loads ---

static void load_flow(struct jobq *j, struct flow *x)
{
    const struct qgraph *g = j->g;
    const struct qend *to = &g->end[x->dst];
    uint32_t s = g->end[x->src].sw, hops = 0;
    x->lost = true;
    if (to->lid >= g->t->lids)
        return;
    while (s != to->sw) {
        uint32_t c = qchannel_at(g, s, to->lid);
        if (c == ID_NONE || hops++ == QUALITY_HOPS)
            return;
        j->load[c]++;
        s = g->peer[c];
    }
    x->lost = g->row[s][to->lid] != to->port;
}

// own: flows on the fuller of its hosts' cables.
static double see_flow(struct jobq *j, const struct flow *x, uint32_t own)
{
    const struct qgraph *g = j->g;
    const struct qend *to = &g->end[x->dst];
    uint32_t most = own;
    for (uint32_t s = g->end[x->src].sw; s != to->sw;) {
        uint32_t c = qchannel_at(g, s, to->lid);
        most = j->load[c] > most ? j->load[c] : most;
        j->blame[c] |= j->load[c] > own;
        s = g->peer[c];
    }
    return (double)own / most;
}

// Keeps the fullest first; of equals the first channel.
static void blame(struct quality_job_flows *r, const struct qgraph *g, uint32_t channel, uint64_t load)
{
    uint32_t at = r->num_links;
    while (at > 0 && r->link[at - 1].load < load)
        at--;
    r->blamed++;
    if (at == QUALITY_BLAME)
        return;
    uint32_t keep = r->num_links < QUALITY_BLAME ? r->num_links : QUALITY_BLAME - 1;
    memmove(&r->link[at + 1], &r->link[at], (keep - at) * sizeof(r->link[0]));
    r->link[at] = quality_link_of(g, channel, load);
    r->num_links = keep + 1;
}

static void rate(struct jobq *j, struct quality_job_flows *r)
{
    const struct qgraph *g = j->g;
    uint32_t *out = ARENA_NEW_N(j->a, g->num_ends + 1, uint32_t);
    uint32_t *in = ARENA_NEW_N(j->a, g->num_ends + 1, uint32_t);
    uint32_t channels = g->n * g->stride;
    r->worst = 1;
    for (uint32_t i = 0; i < j->num_flows; i++) {
        load_flow(j, &j->flow[i]);
        out[j->flow[i].src]++;
        in[j->flow[i].dst]++;
    }
    for (uint32_t i = 0; i < j->num_flows; i++) {
        const struct flow *x = &j->flow[i];
        if (x->lost) {
            r->failed++;
            continue;
        }
        double bw = see_flow(j, x, out[x->src] > in[x->dst] ? out[x->src] : in[x->dst]);
        r->flows++;
        r->mean += bw;
        r->worst = bw < r->worst ? bw : r->worst;
    }
    for (uint32_t c = 0; c < channels; c++) {
        r->max_load = j->load[c] > r->max_load ? j->load[c] : r->max_load;
        if (j->blame[c])
            blame(r, g, c, j->load[c]);
    }
    memset(j->load, 0, channels * sizeof(*j->load));
    memset(j->blame, 0, channels * sizeof(*j->blame));
    j->num_flows = 0;
    if (r->flows + r->failed == 0)
        r->absent = "no rail has two adapters of the job";
    if (r->flows > 0)
        r->mean /= (double)r->flows;
    else
        r->worst = 0;
}

static void rate_alltoall(struct jobq *j, const uint32_t *on, uint32_t classes, uint32_t own, struct par *par,
                          struct quality_job_flows *r)
{
    const struct qgraph *g = j->g;
    struct quality_alltoall q = {.absent = NULL};
    const uint32_t *load;
    quality_alltoall_of(g, on, classes, par, j->a, &q, &load);
    *r = (struct quality_job_flows){.absent = q.absent,
                                    .flows = q.flows,
                                    .failed = q.failed,
                                    .mean = q.mean,
                                    .worst = q.worst,
                                    .max_load = q.max};
    for (uint32_t c = 0; c < g->n * g->stride; c++) {
        if (load[c] > own && q.worst < 1) // of the smallest rail; larger ones have more of their own
            blame(r, g, c, load[c]);
    }
}

static void alltoalls(struct jobq *j, struct par *par, struct route_job_quality *ret)
{
    uint32_t least = j->n;
    for (uint32_t r = 0; r < j->num_rails; r++) {
        uint32_t n = j->rail_first[r + 1] - j->rail_first[r];
        least = n > 1 && n < least ? n : least;
    }
    if (j->num_rails > QUALITY_CLASSES_MAX)
        ret->rail_alltoall.absent = "the job has more than 256 rails";
    else
        rate_alltoall(j, j->on, j->num_rails, least - 1, par, &ret->rail_alltoall);
    for (uint32_t i = 0; i < j->g->num_ends; i++)
        j->on[i] = j->on[i] == ID_NONE ? ID_NONE : 0;
    rate_alltoall(j, j->on, 1, j->n - 1, par, &ret->alltoall);
}

void route_quality_job(const struct fabric *f, const struct fabric_tables *t, const uint32_t *ports,
                       uint32_t num_ports, struct par *par, struct route_job_quality *ret)
{
    *ret = (struct route_job_quality){.adapters = 0};
    struct arena *a = arena_new();
    struct qgraph g = {.n = 0};
    struct jobq j = {.g = &g, .a = a};
    bool same = t->num_switches == f->num_switches;
    if (same) {
        qgraph_build(f, t, a, &g);
        members_find(&j, ports, num_ports);
    }
    ret->adapters = j.n;
    ret->rails = j.num_rails;
    if (j.n < 2) {
        const char *why =
            same ? "the job has less than two adapters on this fabric" : "the tables are of another fabric";
        ret->ring.absent = ret->tree.absent = ret->rail_alltoall.absent = ret->alltoall.absent = why;
        arena_free(a);
        return;
    }
    j.load = ARENA_NEW_N(a, (size_t)g.n * g.stride + 1, uint32_t);
    j.blame = ARENA_NEW_N(a, (size_t)g.n * g.stride + 1, bool);
    j.flow = ARENA_NEW_N(a, (size_t)j.n * 4 + 1, struct flow);
    for (uint32_t r = 0; r < j.num_rails; r++)
        ring(&j, j.end + j.rail_first[r], j.rail_first[r + 1] - j.rail_first[r]);
    rate(&j, &ret->ring);
    for (uint32_t r = 0; r < j.num_rails; r++)
        trees(&j, j.end + j.rail_first[r], j.rail_first[r + 1] - j.rail_first[r]);
    rate(&j, &ret->tree);
    alltoalls(&j, par, ret);
    arena_free(a);
}
