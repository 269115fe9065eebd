// SPDX-License-Identifier: Apache-2.0
// For sssp*.c only; see sssp.c.
#ifndef WEFT_ROUTING_SSSP_PRIV_H
#define WEFT_ROUTING_SSSP_PRIV_H

#include "routing/route_priv.h"

// The switch graph with its switches in GUID order, so that nothing depends on how they are numbered. A
// channel is all cables from one switch to a neighbour, in one direction.
struct sgraph {
    const struct rgraph *g;
    uint32_t n, num_chans;
    uint32_t *sw, *at;                // dense switch number of each, and back
    uint32_t *off;                    // n + 1: channels of a switch, by neighbour
    uint32_t *tail, *peer, *rev;      // per channel: from, to, the opposite one
    uint32_t *first_port, *num_ports; // per channel: in g->ports
    uint8_t *colour;                  // per channel; see sssp_colour.c
    uint8_t *up;                      // per channel: bit per lane, whether it goes up there
    uint8_t lanes;                    // a bit per designed lane
    uint8_t blind;                    // lanes whose order goes by up and down alone, not by colour
    bool coloured;
    uint32_t num_lanes;
    uint32_t attempt; // other ones take other roots
    uint32_t *comp;
    uint32_t *ends; // cables to end nodes
    uint32_t *lids; // LIDs on it
};
void sgraph_build(struct sgraph *x, const struct rgraph *g, struct arena *a);
uint32_t sgraph_chan(const struct sgraph *x, uint32_t from, uint32_t to); // ID_NONE
static inline uint64_t sgraph_guid(const struct sgraph *x, uint32_t s)
{
    return x->g->guid[x->sw[s]];
}
void scolours_find(struct sgraph *x, const struct rorder *o, struct arena *a);

// Shortest paths from everywhere to one switch, and which of them to keep to.
struct stree {
    const struct sgraph *x;
    uint32_t t;
    uint32_t *dist;       // ID_NONE: none
    uint32_t *order, num; // by distance
    uint8_t *first;       // colour of the channels that it may leave by
    uint8_t *run;         // of the channels of that colour
    uint8_t *any, *down;  // lanes in which some path is legal; and begins downwards
    uint8_t *need, *need_down;
    uint32_t *coff, *cnum, *cand; // channels that may be taken
    uint64_t *flow;
};
void stree_init(struct stree *r, const struct sgraph *x, struct arena *a);
void stree_paths(struct stree *r, uint32_t t); // all shortest paths of least colour, and their lanes
void stree_choose(struct stree *r);            // keeps those that agree on lanes
// Lanes for a channel followed by what w, its end, has.
static inline uint8_t stree_step(const struct stree *r, uint32_t c, const uint8_t *any, const uint8_t *down,
                                 uint8_t *ret_down)
{
    const struct sgraph *x = r->x;
    uint32_t w = x->peer[c];
    uint8_t up = x->up[c], own,
            fresh; // lanes in which w begins with what c belongs to; with what comes after
    if (w == r->t) {
        own = 0;
        fresh = 0xff;
    } else {
        own = r->first[w] == x->colour[c] ? 0xff : x->blind;
        fresh = r->first[w] > x->colour[c] ? (uint8_t)~x->blind : 0;
    }
    uint8_t after = any[w] & fresh, same_down = (uint8_t)(down[w] & own & ~up);
    *ret_down = (uint8_t)(same_down | (after & ~up));
    return (uint8_t)(after | same_down | (any[w] & own & up));
}

// The lanes' orders of channels; see sssp_design.c.
// roots_given: the first lane's order is o, as it is on trees.
void sdesign(struct sgraph *x, const struct rorder *o, bool roots_given, uint32_t max, struct arena *a);
// Channels towards root, by distance, then GUID, are up in that lane. scratch: of 2 n.
void sgraph_direct(struct sgraph *x, uint32_t root, uint32_t lane, uint32_t *scratch);
// At most so many of a part's switches, about, evenly by a hash of their GUIDs; how many.
uint32_t spick(const struct sgraph *x, uint32_t comp, uint32_t most, uint32_t *ret);

// All entries; pair[source * n + destination]: lanes in which all that way's paths are legal.
void sfill(const struct sgraph *x, struct fabric_tables *t, uint8_t *pair, struct arena *a);

// --- lanes by what is in them ---

struct sdep {             // of a channel on the next
    uint32_t from, index; // which of the channels of its end follows
};
#define SSSP_COUNTED_MAX 32 // lanes, to say how many would do
struct slayers {
    const struct sgraph *x;
    const struct fabric_tables *t;
    uint32_t *chan;                    // [switch * 256 + port], ID_NONE
    size_t *base;                      // per channel: first of its dependencies
    uint32_t *has, *never;             // per dependency: a bit per lane; never: would close a cycle
    uint32_t *order[SSSP_COUNTED_MAX]; // per channel
    uint32_t num;                      // lanes begun
    struct sdep *dep;                  // the pair at hand's
    uint32_t num_deps;
    uint32_t *stamp_of, stamp; // per dependency
    bool trial;                // what is put in may be taken out again
    struct slog {
        size_t id;
        uint32_t bit;
    } * log; // what was put in while so
    uint32_t num_log, cap_log;
    // search
    uint32_t *stack, *fore, *back, *slots;
    uint8_t *seen;
    struct arena *a;
};
void slayers_init(struct slayers *k, const struct sgraph *x, const struct fabric_tables *t, struct arena *a);
void slayers_begin(struct slayers *k); // one more lane, empty
// The dependencies of a pair, both ways and of all LIDs. False when some entries do not lead there.
bool slayers_pair(struct slayers *k, uint32_t a, uint32_t b);
bool slayers_try(struct slayers *k, uint32_t lane); // puts them into a lane, if that gets no cycle by it
// The same by hand: none; one more, of a channel on one of those that its end is left by.
void slayers_clear(struct slayers *k);
void slayers_add(struct slayers *k, uint32_t from, uint32_t to);
void slayers_back(struct slayers *k, uint32_t to); // takes out what was logged after so many

void sreserve(struct slayers *k, struct arena *a); // see sssp_reserve.c

// --- repair; see sssp_mend.c ---

struct smend {
    const struct fabric *was, *f;
    const uint32_t *depth; // per switch: 0, or how deep it is sunk (repair_avoid.c); NULL: none is
    const struct fabric_tables *ideal;
    struct fabric_tables *t; // the repaired ones
    struct sgraph x;
    struct slayers k;
    struct fabric_lanes *old, *now; // by live switch numbers
    uint32_t *base;                 // per switch, by GUID order: its number in `was`, ID_NONE
    bool *same;                     // [switch * 256 + port]: leads where it led
};
// Whether the entry is the ideal's, and leads where it led.
static inline bool smend_kept(const struct smend *m, uint32_t s, uint16_t lid)
{
    uint8_t out = tables_port(m->t, m->x.sw[s], lid);
    return m->same[(size_t)s * 256 + out] && tables_port(m->ideal, m->base[s], lid) == out;
}
// Other ways for entries that are not the ideal's, such that pairs keep their lanes; see sssp_rehome.c.
void srehome(struct smend *m, struct arena *a);

// Whether packets may go between two switches, but those of VL15.
bool spair_talks(const struct sgraph *x, uint32_t a, uint32_t b);
// Numbers the lanes that are used without gaps; how many.
uint32_t slanes_close(struct fabric_lanes *l);
// A lane for each pair, each lane's dependencies without a cycle. *ret_needed: lanes it took; more than max:
// there are not enough, and NULL is returned.
struct fabric_lanes *sassign(const struct sgraph *x, const struct fabric_tables *t, const uint8_t *pair,
                             uint32_t max, struct arena *a, uint32_t *ret_needed);

#endif
