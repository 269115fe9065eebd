// SPDX-License-Identifier: Apache-2.0
// For plan*.c only; see plan.c.
#ifndef WEFT_ROUTING_PLAN_PRIV_H
#define WEFT_ROUTING_PLAN_PRIV_H

#include "lib/arena.h"
#include "routing/route.h"

#define NO_SWITCH 0xffffffffu
#define LEVELS_MAX (ROUTE_WAVES_MAX - 1)

struct planning {
    const struct fabric *f;
    const struct fabric_tables *old, *new_tables;
    const bool *known, *blank;
    const struct route_proof_state *state; // of new_tables; may be NULL
    struct par *par;
    struct arena *a;
    uint32_t n, ports, words, lids, blocks;
    uint32_t *link;   // [switch * ports + port]: switch at the far end, or NO_SWITCH
    uint8_t *level;   // [block * switches + switch]: LEVEL_SAME, or the wave (without that of drops)
    uint8_t *changed; // per LID: CHANGED, OLD_SENDS, NEW_SENDS
    uint32_t *first;  // lids + 1: changing switches of a LID are sw[first[lid]] ..; NULL when too many
    uint16_t *sw;
    uint64_t entries; // that change
    bool *loops;      // per LID: some mix of old and new has a loop
    bool *turns;      // per LID: some mix turns against the order of channels
    bool *dropped;    // per LID: gets LFT_DROP first
    // Lanes, where either tables have some; else there is one, 0, and packets of all pairs go by it.
    bool lanes;
    uint32_t num_lanes;
    const struct fabric_lanes *old_lanes, *new_lanes; // NULL: all is lane 0
    bool *ends;                                       // per switch: it has end nodes
    uint32_t *end;                                    // per LID: the switch that it hangs on, NO_SWITCH
    uint64_t *stale_pair;                             // a bit [a * switches + b]: see plan_lanes.c; NULL
    struct route_pair *stale_list;
    uint32_t num_stale;
    uint64_t lanes_changed;
    // Turns, by lane. A channel is a directed cable; bit port - 1 of its set: left by that port next.
    uint64_t *dep[LANES_MAX];   // [channel * words]: turns of both tables, or see stale
    uint64_t *mix[LANES_MAX];   // the same, of mixes
    bool stale[LANES_MAX];      // dep and order are those of the new tables alone
    uint32_t *order[LANES_MAX]; // per channel: topological position; NULL: turns need not be looked at
};
#define LEVEL_SAME 0xff
#define CHANGED 1
#define OLD_SENDS 2 // a changing entry forwards before
#define NEW_SENDS 4 // or after
#define MIXES (CHANGED | OLD_SENDS | NEW_SENDS)

static inline bool plan_known(const struct planning *p, uint32_t s)
{
    return !p->known || p->known[s];
}

static inline bool plan_blank(const struct planning *p, uint32_t s)
{
    return p->blank && p->blank[s];
}

// The entry a switch has when the waves begin, but for those of drops.
static inline uint8_t plan_old(const struct planning *p, uint32_t s, uint32_t lid)
{
    if (!plan_known(p, s) || plan_blank(p, s) || lid >= p->old->lids)
        return LFT_DROP;
    return tables_row(p->old, s)[lid];
}

static inline uint8_t plan_new(const struct planning *p, uint32_t s, uint32_t lid)
{
    return lid < p->new_tables->lids ? tables_row(p->new_tables, s)[lid] : LFT_DROP;
}

static inline uint32_t plan_far(const struct planning *p, uint32_t s, uint8_t port)
{
    return port > 0 && port < p->ports ? p->link[(size_t)s * p->ports + port] : NO_SWITCH;
}

// The i-th switch whose entry for a LID changes, from *i on, or NO_SWITCH.
static inline uint32_t plan_changing(const struct planning *p, uint32_t lid, uint32_t *i)
{
    if (p->first) {
        uint32_t k = p->first[lid] + (*i)++;
        return k < p->first[lid + 1] ? p->sw[k] : NO_SWITCH;
    }
    while (*i < p->n) {
        uint32_t s = (*i)++;
        if (plan_old(p, s, lid) != plan_new(p, s, lid))
            return s;
    }
    return NO_SWITCH;
}

static inline void plan_run(struct planning *p, unsigned n, void (*task)(void *arg, unsigned i))
{
    if (p->par) {
        p->par->run(p->par, n, task, p);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        task(p, i);
}

// plan_mix.c
struct plan_search {
    uint32_t *seen; // per switch: 2 * round when on the stack, 2 * round + 1 when done
    uint32_t round;
    uint8_t *stage;
    uint32_t *stack;
};
void plan_search_init(const struct planning *p, struct plan_search *w, struct arena *a);
// Whether entries for a LID lead in a circle: wave NO_SWITCH: old and new ones together; else those that may
// be there while that wave is written.
bool plan_has_loop(const struct planning *p, struct plan_search *w, uint32_t lid, uint32_t wave);
void plan_find_mixes(struct planning *p); // fills loops, turns, order
// Whether v's entry (old or new) and then w's (the other) make a turn that must not be, in some of the lanes.
bool plan_bad_turn(const struct planning *p, unsigned lanes, uint32_t v, uint8_t in, uint32_t w, uint8_t out);

// plan_lanes.c. Lanes of the packets to one LID that may come by, per switch, a bit each: by the old entries,
// by the new ones, by any of both.
struct plan_lanes {
    const uint8_t *old, *new, *mix;
    // work space
    uint8_t *by[3], *waiting;
    uint32_t *queue;
};
void plan_lanes_init(const struct planning *p, struct plan_lanes *l, struct arena *a);
void plan_lanes_at(const struct planning *p, struct plan_lanes *l, uint32_t lid);
void plan_lanes_find(struct planning *p); // fills what the planning says of lanes

// plan_order.c: fills level and dropped.
void plan_order(struct planning *p);

#endif
