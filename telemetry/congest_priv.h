// SPDX-License-Identifier: Apache-2.0
// For telemetry/congest*.c only; see congest.c.
#ifndef WEFT_TELEMETRY_CONGEST_PRIV_H
#define WEFT_TELEMETRY_CONGEST_PRIV_H

#include "telemetry/congest.h"
#include "telemetry/rate.h"

#define CONGEST_SAMPLES 3
#define CONGEST_NEVER 255

struct congest_track {                                  // of a slot, over sweeps
    int64_t held_at, used_at, far_at;                   // readings that the newest samples are of
    float held[CONGEST_SAMPLES], used[CONGEST_SAMPLES]; // newest first
    uint8_t num_held, num_used;
    uint8_t held_age, used_age; // sweeps since the newest sample; CONGEST_NEVER: none that counts
    bool is_held, is_full;      // two samples of three say so
    bool may_hold, may_fill;    // … or as many as there are
    float h, u;                 // the middle ones; NAN: not known
    float lost_bps;
    bool presumed; // not read, but must wait: guess_h of the time
    float guess_h;
};

// --- routes (congest_ways.c) ---
struct congest_way { // out of the switch that a port leads to, for what comes in over it
    uint8_t num;
    uint16_t dests; // LIDs; 0xffff: so many or more
};
struct congest_ways {
    uint32_t num;
    struct congest_way way[];
};
struct congest_routes {
    const struct fabric *fabric; // references are held: what is kept is of these
    const struct fabric_tables *tables;
    const struct fabric_groups *groups;
    uint32_t *slot_of;        // [port index]
    struct congest_ways **at; // [slot]
    uint32_t num_at;
    uint32_t *first_lid; // groups only: LIDs by the switch where they hang, [switch] .. [switch + 1]
    uint16_t *lid;
    uint16_t *room;  // for a list of LIDs, during a call
    uint32_t *looks; // hops followed by congest_leads() since it was set to 0
};
// Forgets what is of other routes. tables must be of the fabric, else they count as not known.
void congest_routes_set(struct congest_routes *r, const struct tele_table *t,
                        const struct fabric_tables *tables, const struct fabric_groups *groups);
void congest_routes_done(struct congest_routes *r);
// Dense number of the switch that the port leads to, or that it is of; ID_NONE.
uint32_t congest_switch_behind(const struct congest_routes *r, const struct tele_table *t, uint32_t slot);
uint32_t congest_switch_of(const struct congest_routes *r, const struct tele_table *t, uint32_t slot);
uint32_t congest_slot_at(const struct congest_routes *r, uint32_t sw, unsigned num);
// By which ports of the switch behind it what comes over this port goes on. NULL: no switch, or no routes.
const struct congest_ways *congest_ways(struct congest_routes *r, const struct tele_table *t, uint32_t slot);

#define CONGEST_DESTS 256
struct congest_behind { // destinations behind a port: some of them when they are many
    uint32_t slot, sw;  // the port; its switch, ID_NONE: an adapter's
    uint8_t num;
    uint32_t num_lids;
    uint16_t lid[CONGEST_DESTS];
};
void congest_behind(const struct congest_routes *r, const struct tele_table *t, uint32_t slot,
                    struct congest_behind *ret);
// Whether routes lead from the port through the other one. Beyond CONGEST_LOOKS hops: yes, as far as is
// known.
#define CONGEST_LOOKS 400000
bool congest_leads(const struct congest_routes *r, const struct tele_table *t, uint32_t slot,
                   const struct congest_behind *to);

// Ports by which a switch sends on what is for a LID: how many.
unsigned congest_outs(const struct congest_routes *r, uint32_t sw, uint16_t lid, struct port_set *ret);

// --- who sends how much to whom at a switch (congest_mix.c) ---
struct congest_dest;
struct congest_mix {
    unsigned ports;
    float rate[]; // bytes/s, [in * (ports + 1) + out]; in: number of the port by which it comes
};
struct congest_mixes { // of one feed
    struct congest_dest *dest;
    uint32_t num_dests;
    struct congest_mix **at; // [switch]; NULL: not asked for yet
    uint32_t num_at, made;
};
struct congest;
void congest_mixes_reset(struct congest *c);
void congest_mixes_done(struct congest_mixes *m);
const struct congest_mix *congest_mix(struct congest *c, uint32_t sw); // NULL: no routes
struct congest_turn {
    double of_in; // of what comes by `in`: share that goes on by `out`
    // Of what `out` takes of anybody, the most: so much is of `in`. All who wait for it get the same, since
    // they are served in turn; who gets less has no more to send there.
    double of_most;
};
// Used share of a port that is not told, by what goes through its switch.
float congest_estimate(struct congest *c, uint32_t slot);
void congest_presume(struct congest *c);                                        // sets track[].presumed
double congest_rate(struct congest *c, uint32_t sw, unsigned in, unsigned out); // bytes/s
// false: nothing comes in, or nothing is known of it
bool congest_turn(struct congest *c, uint32_t sw, unsigned in, unsigned out, struct congest_turn *ret);

// --- graph (congest_graph.c) ---
enum congest_vertex_type {
    VERTEX_HELD,
    VERTEX_FULL,   // carries what it can; does not wait itself
    VERTEX_UNREAD, // whether it waits is not known
};
struct congest_edge {
    uint32_t to;
    float share;   // of the waiting port's wait
    float weight;  // how likely the waiting port waits for it, by what it sends there
    float of_most; // what it gets there, of the most that anybody gets
};
struct congest_vertex {
    uint32_t slot;
    enum congest_vertex_type type;
    bool end;          // leads to an end node
    bool stuck;        // of a circle in which nothing moves
    float h, u;        // NAN: not known
    float press;       // how much it holds others up, 0..1
    float open;        // the same of ports behind it that neither wait nor are full, summed
    float fit;         // UNREAD: how well it fits those that wait, 0..1
    float balance;     // FULL: share of its traffic that comes from ports that wait, or may
    float self;        // share of what leads here that ends here
    double lost;       // bytes/s
    double counts;     // of these: beyond what is usual
    double mass, ends; // lost bytes/s of all ports that lead here; that end here
    float fed;         // UNREAD: used share by what waits for it, at least
    float behind;      // UNREAD: how likely something behind it, or itself, holds others up, at first
    double all;        // UNREAD: lost bytes/s of all that wait upstream
    float routes;      // UNREAD: share of what waits upstream that leads here
    uint32_t edge, num_edges;
    uint32_t order; // those behind it have smaller ones
};
struct congest_graph {
    struct congest_vertex *v;
    uint32_t num_v, cap_v;
    struct congest_edge *e;
    uint32_t num_e, cap_e;
    uint32_t *by_order;          // [order] -> vertex
    uint32_t *into, *first_into; // reverse edges: vertices
    uint32_t *cycle, num_cycle;  // vertices of the shortest circle of the largest stuck set
    double lost;                 // of all that wait, beyond what is usual
};

struct congest {
    struct congest_opts o;
    struct congest_routes routes;
    struct congest_track *track;
    uint32_t num;
    const struct tele_table *t; // while trees are made
    struct tele_table own;      // … which it is: ports as they were when it began, no counters
    struct congest_tree **made; // not shown yet
    uint32_t num_made;
    struct congest_feed {
        struct congest_seen *seen; // [num]
        uint32_t num, looked, tracked;
        struct congest_totals totals;
    } feed;
    uint32_t *vertex;  // [slot], ID_NONE; of the last feed's graph
    float *guess;      // [slot]: used share where neither end tells it; NAN: it is told
    float *guess_most; // … and the most that it can be
    struct congest_mixes mixes;
    struct congest_graph g;
    struct congest_tree **tree; // shown: those of this feed and those in their grace
    uint32_t num_trees;
    uint64_t *in_tree; // [slot]: the tree that it is in
    uint64_t next_id;
    struct congest_totals totals;
};

// Mean queue of a server that is busy so much (M/D/1), of that at 99 %: 0..1.
double congest_pressure(double used);
void congest_guess(struct congest *c);
void congest_graph_make(struct congest *c);
void congest_graph_free(struct congest_graph *g);
// Trees of the graph, most lost bandwidth first; malloc'd, as are their members; without identity.
uint32_t congest_trees_make(struct congest *c, struct congest_tree ***ret);
void congest_tree_free(struct congest_tree *t);

#endif
