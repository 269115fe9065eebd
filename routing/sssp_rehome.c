// SPDX-License-Identifier: Apache-2.0
// Where entries go that can not stay (a loose switch, for one LID): such that those who send by them keep
// their lanes. See sssp_mend.c.
//
// Loose switches of a LID are settled one after the other, the nearest to it first. Each takes, of the ways
// by which packets arrive over what is settled (where the repair had put it, and those longer than the
// shortest by up to STRETCH hops), the one by which the fewest pairs have to change their lane, as it would
// get a cycle; of several the one that brings the fewest dependencies that no lane had; of several the
// shortest.
#include "routing/sssp_priv.h"

#include <string.h>

#define STRETCH 2

struct rehome {
    struct smend *m;
    uint32_t t; // the switch that the LID at hand hangs on
    uint16_t lid;
    uint32_t *dist, *order, num;  // from t; by distance
    uint32_t *next;               // per switch: channel, ID_NONE
    bool *loose;                  // and not settled
    uint32_t (*pairs)[LANES_MAX]; // per switch: sources that come to it first of all loose ones, by lane
    uint8_t *by;                  // per channel into a loose switch: lanes
};

static void spread(struct rehome *r)
{
    const struct sgraph *x = &r->m->x;
    memset(r->dist, 0xff, x->n * sizeof(*r->dist));
    r->num = 0;
    r->dist[r->t] = 0;
    r->order[r->num++] = r->t;
    for (uint32_t head = 0; head < r->num; head++) {
        uint32_t v = r->order[head];
        for (uint32_t c = x->off[v]; c < x->off[v + 1]; c++) {
            if (r->dist[x->peer[c]] == ID_NONE) {
                r->dist[x->peer[c]] = r->dist[v] + 1;
                r->order[r->num++] = x->peer[c];
            }
        }
    }
}

// Whether some switch is loose.
static bool read_entries(struct rehome *r)
{
    const struct sgraph *x = &r->m->x;
    bool any = false;
    for (uint32_t i = 1; i < r->num; i++) {
        uint32_t s = r->order[i];
        r->next[s] = r->m->k.chan[(size_t)s * 256 + tables_port(r->m->t, x->sw[s], r->lid)];
        r->loose[s] = !smend_kept(r->m, s, r->lid);
        any |= r->loose[s];
        memset(r->pairs[s], 0, sizeof(r->pairs[s]));
    }
    return any;
}

static void count_pairs(struct rehome *r)
{
    const struct sgraph *x = &r->m->x;
    for (uint32_t i = 1; i < r->num; i++) {
        uint32_t s = r->order[i], in = ID_NONE, hops = 0;
        unsigned lane = lanes_get(r->m->old, x->sw[s], x->sw[r->t]);
        if (lane >= r->m->k.num)
            continue;
        while (s != r->t && !r->loose[s] && hops++ < x->n) {
            in = r->next[s];
            s = x->peer[in];
        }
        if (s == r->t || !r->loose[s])
            continue;
        r->pairs[s][lane]++;
        if (in != ID_NONE)
            r->by[in] |= (uint8_t)(1u << lane);
    }
}

// Hops from a switch on, ID_NONE when it does not arrive over what is settled.
static uint32_t arrives(const struct rehome *r, uint32_t s)
{
    const struct sgraph *x = &r->m->x;
    uint32_t hops = 0;
    for (; s != r->t; hops++) {
        if (r->loose[s] || hops == x->n)
            return ID_NONE;
        s = x->peer[r->next[s]];
    }
    return hops;
}

// Puts the dependencies of those who come by s, leaving by c, into their lanes; pairs for which it cannot.
static uint32_t go_by(struct rehome *r, uint32_t s, uint32_t c)
{
    const struct sgraph *x = &r->m->x;
    struct slayers *k = &r->m->k;
    uint32_t fail = 0;
    for (uint32_t lane = 0; lane < k->num; lane++) {
        if (r->pairs[s][lane] == 0)
            continue;
        slayers_clear(k);
        for (uint32_t i = x->off[s]; i < x->off[s + 1]; i++) {
            if (r->by[x->rev[i]] >> lane & 1)
                slayers_add(k, x->rev[i], c);
        }
        for (uint32_t in = c; x->peer[in] != r->t; in = r->next[x->peer[in]])
            slayers_add(k, in, r->next[x->peer[in]]);
        if (!slayers_try(k, lane))
            fail += r->pairs[s][lane];
    }
    return fail;
}

static uint64_t weight(const struct rehome *r, uint32_t s, uint8_t port)
{
    return hash_mix64(hash_mix64(sgraph_guid(&r->m->x, s) ^ (uint64_t)r->lid << 48) + port);
}

// A channel's port of highest weight.
static uint8_t heaviest(const struct rehome *r, uint32_t s, uint32_t c)
{
    const struct sgraph *x = &r->m->x;
    const uint8_t *port = x->g->ports + x->first_port[c];
    uint8_t best = port[0];
    for (uint32_t i = 1; i < x->num_ports[c]; i++)
        best = weight(r, s, port[i]) > weight(r, s, best) ? port[i] : best;
    return best;
}

struct choice {
    uint32_t chan, hops;
    uint64_t weight;
};

// Its ways, in the order in which they are tried: the shortest first.
static uint32_t list_ways(const struct rehome *r, uint32_t s, struct choice *list)
{
    const struct sgraph *x = &r->m->x;
    uint32_t n = 0;
    for (uint32_t c = x->off[s]; c < x->off[s + 1]; c++) {
        uint32_t hops = arrives(r, x->peer[c]);
        if (hops == ID_NONE || rbarred(r->m->depth, x->sw[s], x->sw[x->peer[c]], x->sw[r->t]) ||
            (c != r->next[s] && hops + 1 > r->dist[s] + STRETCH))
            continue;
        struct choice w = {c, hops, weight(r, s, heaviest(r, s, c))};
        uint32_t i = n++;
        for (; i > 0 &&
               (list[i - 1].hops > w.hops || (list[i - 1].hops == w.hops && list[i - 1].weight < w.weight));
             i--)
            list[i] = list[i - 1];
        list[i] = w;
    }
    return n;
}

static void settle(struct rehome *r, uint32_t s)
{
    struct slayers *k = &r->m->k;
    struct choice list[256];
    uint32_t had = r->next[s], mark = k->num_log, best = ID_NONE, last = ID_NONE;
    uint64_t least = UINT64_MAX;
    uint32_t n = list_ways(r, s, list);
    for (uint32_t i = 0; i < n && least > 0; i++) {
        slayers_back(k, mark);
        last = list[i].chan;
        uint64_t cost = (uint64_t)go_by(r, s, last) << 32;
        cost += k->num_log - mark;
        if (cost < least) {
            least = cost;
            best = last;
        }
    }
    if (best == ID_NONE)
        return; // it leads nowhere: for others to say
    if (last != best) {
        slayers_back(k, mark);
        go_by(r, s, best);
    }
    r->loose[s] = false;
    r->next[s] = best;
    if (best != had)
        tables_row(r->m->t, r->m->x.sw[s])[r->lid] = heaviest(r, s, best);
}

void srehome(struct smend *m, struct arena *a)
{
    const struct sgraph *x = &m->x;
    struct rehome r = {.m = m};
    r.dist = ARENA_NEW_N(a, x->n + 1, uint32_t);
    r.order = ARENA_NEW_N(a, x->n + 1, uint32_t);
    r.next = ARENA_NEW_N(a, x->n + 1, uint32_t);
    r.loose = ARENA_NEW_N(a, x->n + 1, bool);
    r.pairs = arena_array(a, (size_t)x->n + 1, sizeof(*r.pairs));
    r.by = arena_alloc(a, x->num_chans + 1);
    m->k.trial = true;
    for (r.t = 0; r.t < x->n; r.t++) {
        uint32_t from = x->g->doff[x->sw[r.t]], to = x->g->doff[x->sw[r.t] + 1];
        if (from < to)
            spread(&r);
        for (uint32_t i = from; i < to; i++) {
            r.lid = x->g->d[i].lid;
            if (!read_entries(&r))
                continue;
            memset(r.by, 0, x->num_chans);
            count_pairs(&r);
            for (uint32_t j = 1; j < r.num; j++) {
                if (r.loose[r.order[j]])
                    settle(&r, r.order[j]);
            }
            m->k.num_log = 0; // they stay
        }
    }
    m->k.trial = false;
}
