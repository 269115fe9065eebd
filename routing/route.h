// SPDX-License-Identifier: Apache-2.0
// Routing: a snapshot in, forwarding tables out; and the proof of tables, which shares no code with the
// engines. Pure: no descriptor, clock, thread, random number or log. Parallelism comes in as a `struct par`.
//
// Destinations are all LIDs of end ports (adapters, aggregation nodes, routers, switch port 0) as the
// snapshot's lid_port maps them (LMC ranges too). Every switch gets an entry for every destination that it
// can legally reach, so that in-band management between switches works as well.
#ifndef WEFT_ROUTING_ROUTE_H
#define WEFT_ROUTING_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/tables.h"
#include "lib/pool.h"

struct err;

enum route_engine {
    ROUTE_AUTO, // chooses (rail on trees, else updn), and says why
    ROUTE_UPDN, // up*/down* over a total order of switches (rank, GUID) with one top: no cycle on one VL; any
                // topology
    ROUTE_MINHOP, // shortest paths, balanced; may have credit loops: only on request, and the proof says so
    ROUTE_FILE,   // tables read from an LFT dump
    ROUTE_RAIL,   // trees, complete or not: updn's paths, spread so that what shares no end meets on no cable
    ROUTE_SSSP,   // shortest paths on any topology, spread; virtual lanes such that each has no cycle
};
const char *route_engine_name(enum route_engine e);
int route_engine_parse(const char *name, enum route_engine *ret); // -EINVAL

struct route_opts {
    enum route_engine engine;
    const uint64_t *root_guids; // given by the operator; NULL = from the tiers, or from the graph
    uint32_t num_roots;
    const char *file_text; // ROUTE_FILE: the dump
    size_t file_len;
    uint8_t lanes;   // ROUTE_SSSP: at most so many, 1..8; 0 = as many as every cable between switches has
    struct par *par; // NULL = serial
};

struct route_result {
    struct fabric_tables *tables; // sealed, one reference, the caller's
    enum route_engine engine;     // what ran
    char why[200];                // why it was chosen, in words
    uint64_t top_guid;            // rail, updn: the one top switch
    // By route_repair() only:
    uint64_t displaced;   // entries that differ from the ideal's
    uint32_t columns;     // LIDs that had to be looked at
    uint32_t anew;        // of these, LIDs whose directions had to be taken anew (no tree, keeping left gaps)
    bool reordered;       // the ideal's order of switches has no longer one top; made anew from its ranks
    uint64_t lanes_moved; // pairs of switches whose lane is not the ideal's: hosts must be told
    bool replaced;        // the ideal is given up for tables of another engine; `why` says so
};
// 0, or negative errno with *e: a disconnected fabric is no error (each part is routed), an engine that
// cannot do it is: never a silent fallback.
int route_compute(const struct fabric *f, const struct route_opts *o, struct route_result *ret,
                  struct err *e);

// --- keeping to tables while the fabric is damaged ---
// Tables for the live fabric that keep every entry of the ideal tables (those of route_compute() for the
// blueprint) that is still legal, and give each other one to the legal cheapest port of highest random weight
// of (LID, switch GUID, port number), weighted by what the blueprint can carry on beyond that port. They
// depend on nothing but blueprint, ideal and live fabric: not on the order in which things failed or came
// back. When all is there again they are the ideal, byte for byte.
//
// Switches are matched by GUID, ports by number. A LID hangs where the live fabric says, else where the
// blueprint says: what hangs on a leaf keeps its entries while it is down. LIDs that cannot be reached at all
// keep the ideal's entries. Rows reach to the highest LID of both.
//
// Ideals with lanes: pairs of switches whose paths are as they were keep their lanes, and so do others as far
// as some way allows it, at most a few hops longer; only those that cannot get another one (lanes_moved).
// When lanes do not suffice so, all is computed anew for the live fabric (replaced); when that fails too, the
// tables are updn's (replaced), which need one lane.
//
// Cost: a few looks at each suspect switch's row, then work on those LIDs only that had an entry over
// something dead; plus a copy of the tables, unless nothing is displaced and switches are numbered alike:
// then the ideal itself is returned, with another reference.
struct route_base; // blueprint and ideal prepared: worth keeping as long as they stay; any thread may read it
// Borrows both until it is freed, and o's roots. o: as given to route_compute().
int route_base_new(const struct fabric *blueprint, const struct route_result *ideal,
                   const struct route_opts *o, struct route_base **ret, struct err *e);
void route_base_free(struct route_base *b); // NULL is fine
int route_repair_from(const struct route_base *b, const struct fabric *live, struct par *par,
                      struct route_result *ret, struct err *e);
// Both in one.
int route_repair(const struct fabric *blueprint, const struct route_result *ideal, const struct fabric *live,
                 const struct route_opts *o, struct route_result *ret, struct err *e);

// --- keeping traffic off cables that are alive ---
// The tables of route_repair_from() but for what would cross an avoided cable: that takes another way, as if
// the cable were dead, where there is one. The avoided cables that cannot be spared are of two kinds: those
// of a switch that has no others (it is reached over them and reaches all over them, and nothing passes
// through it), and those that alone join parts of several switches, which carry on for everybody. See
// repair_avoid.c. A function of blueprint, ideal, live fabric and what is avoided; with nothing avoided the
// same bytes as route_repair_from(), and with spared cables only the same as when these are pulled.
struct route_avoid;
enum route_avoided {
    ROUTE_AVOID_NOT,        // not asked for, or no cable between switches
    ROUTE_AVOID_SPARED,     // nothing goes over it
    ROUTE_AVOID_OWN,        // only what begins or ends on the switch at one end, or on what hangs on it alone
    ROUTE_AVOID_CARRIES_ON, // it joins what nothing else does: as if it had not been asked for
};
// Cables named by either end; others than between switches are passed over. Borrows f until it is freed.
struct route_avoid *route_avoid_new(const struct fabric *f, const port_id *port, size_t n);
// The first `first` of them above all: they are spared also where only the others could carry on instead.
struct route_avoid *route_avoid_graded(const struct fabric *f, const port_id *port, size_t n, size_t first);
void route_avoid_free(struct route_avoid *x); // NULL is fine
enum route_avoided route_avoid_how(const struct route_avoid *x, port_id p);
// The fabric as multicast should see it: without what is spared, and without the cables of sunk switches that
// have no end nodes. Same ids. One reference.
const struct fabric *route_avoid_open(const struct route_avoid *x);
// x: of this live fabric; NULL = nothing.
int route_repair_avoiding(const struct route_base *b, const struct fabric *live, const struct route_avoid *x,
                          struct par *par, struct route_result *ret, struct err *e);

// Ends to which packets of any end node cross one of these cables, each counted once: of the two directions,
// out of the ports that name the cables and into them, the one with fewer, which is what hangs on them rather
// than all that this talks to.
struct route_users {
    uint32_t ends;     // ports of adapters, routers and aggregation nodes
    uint32_t switches; // LIDs of switches themselves
};
void route_users(const struct fabric *f, const struct fabric_tables *t, const port_id *port, size_t n,
                 struct route_users *ret);
// Which these ends are, ret->ends of them by LID; to be freed.
port_id *route_users_list(const struct fabric *f, const struct fabric_tables *t, const port_id *port,
                          size_t n, struct route_users *ret);

// --- the proof ---
enum route_fault {
    ROUTE_OK,
    ROUTE_NO_ENTRY,    // a switch on the way has no entry though a path of cables exists
    ROUTE_DEAD_PORT,   // entry leads to a port without a usable link, or that does not exist
    ROUTE_WRONG_END,   // arrives at another node
    ROUTE_LOOP,        // forwarding loop
    ROUTE_CREDIT_LOOP, // cycle in the channel dependency graph, of one lane where tables have lanes
    ROUTE_NO_LANE,     // tables with lanes: a pair of switches between which packets go has none that exists
};
struct route_proof {
    bool ok;
    enum route_fault fault; // first found
    bool credit_loop;       // there is a cycle, whether or not it is the first fault
    uint64_t pairs;         // (leaf switch, destination) pairs walked; leaf = any switch with an end port
    uint64_t disconnected;  // pairs with no cable path between them: not faults
    uint64_t unreached;     // pairs that should arrive and do not
    uint32_t channels, dependencies; // of the channel dependency graph
    uint32_t max_hops;
    char counter_example[600]; // the path that fails, or the cycle, with port names, readable by a person
};
struct verify_opts {
    bool allow_credit_loops; // minhop on request: found ones are reported in counter_example with ok true
    bool all_switches;       // prove from every switch, not only from those with end ports
    struct par *par;
};
// Never trusts the tables: every entry is bounded. Returns proof->ok.
bool route_verify(const struct fabric *f, const struct fabric_tables *t, const struct verify_opts *o,
                  struct route_proof *ret);

// The same for a change: what a proof leaves behind (of the order of 40 bytes a LID and 8 a switch port) lets
// the next one walk again only those LIDs whose entries, end or cables on their way changed, from all
// sources, and the others from new sources only. Dependencies of the unchanged are kept as they were, which
// is more than there need be: `channels` and `dependencies` then count those too. All other figures are what
// a full proof has. Whatever is not plainly sound (a fault, a cycle, parts that grow together, another
// all_switches) is proved in full, which decides; so is everything when state is NULL.
// Cost: a comparison of the tables, and O(switches) for each LID walked again.
struct route_proof_state; // any thread may read it and give references back; NULL is fine below
struct route_proof_state *route_proof_state_ref(const struct route_proof_state *s);
void route_proof_state_free(struct route_proof_state *s); // one reference; the last one ends it
// Whether nothing depends on anything in s that did not in `of`, over cables that are there in both: what was
// proved together with `of` holds together with s. O(switch ports).
bool route_proof_state_within(const struct route_proof_state *s, const struct route_proof_state *of);
// route_verify() that leaves a state; *ret_state NULL when not ok or when it does not fit (paths beyond 15
// hops).
bool route_verify_keep(const struct fabric *f, const struct fabric_tables *t, const struct verify_opts *o,
                       struct route_proof *ret, struct route_proof_state **ret_state);
// old_tables: those that state is of. ret_state as above; the old state stays the caller's.
bool route_verify_change(const struct route_proof_state *state, const struct fabric_tables *old_tables,
                         const struct fabric *f, const struct fabric_tables *t, const struct verify_opts *o,
                         struct route_proof *ret, struct route_proof_state **ret_state);

// What holds of tables that the proof refuses, so that a flaw in one place does not cost all the others their
// routes: a copy with only those entries from which the walk arrives, LFT_DROP in place of the rest. One
// reference, sealed, and its proof in *ret: ok, or ROUTE_NO_ENTRY and `unreached` pairs that have no way; all
// else of it is proved. NULL when nothing would be left, or a credit loop remains that is not allowed.
struct fabric_tables *route_salvage(const struct fabric *f, const struct fabric_tables *t,
                                    const struct verify_opts *o, struct route_proof *ret);

// --- writing new tables over old ones safely ---
// Waves are written one after the other with a barrier between: a wave may begin only when every block of the
// one before it was taken. Whatever mix of the running wave's blocks has been written, no destination has a
// loop, nor (where the tables alone have none) do mixes close a cycle of dependencies.
//
// Where any mix of old and new is harmless, one wave writes everything. Else, for the destinations concerned,
// switches are written from the destination outward along the new tree, in as many waves as that is deep; a
// destination for which that cannot be (the orders of a block's destinations contradict each other, or there
// would be too many waves) gets LFT_DROP in its changing entries first, in a wave before all others.
struct route_wave {
    uint32_t num_blocks;
    struct route_block {
        uint32_t sw;              // dense switch number
        uint16_t block;           // LIDs block*64 .. +63
    } * block;                    // ordered so that switches take turns
    uint32_t *first, *of_switch;  // the same by switch: block[of_switch[first[sw]]] .. [first[sw + 1] - 1]
    struct fabric_tables *tables; // contents of those blocks after this wave; sealed
};
#define ROUTE_WAVES_MAX 9 // one of drops, eight in order
struct route_plan {
    uint32_t num_waves; // 0 when nothing changes
    struct route_wave wave[ROUTE_WAVES_MAX];
    uint64_t entries;       // that change
    bool drops;             // wave 0 only takes entries away: drops, or switches of which nothing is known
    uint32_t unsafe_dests;  // destinations that may not be written in any order
    uint32_t dropped_dests; // of these, destinations that get LFT_DROP first
    // Tables with lanes. Hosts go on by the lane that they were told until they ask anew (ClientReregister),
    // so both count from the first wave on; for pairs of switches where that cannot be, the old one does not:
    // what they send by it over the new way may wait in a circle, together with what others send.
    uint64_t lanes_changed; // pairs with another lane: to be told, and answered so, after the last wave
    uint32_t num_stale;     // of these, pairs where that cannot be
    struct route_pair {
        uint32_t a, b; // dense switch numbers
    } * stale;
};
// old: what the switches hold now (same fabric); known: per switch, whether old is known (NULL = all known);
// an unknown switch is written whole. blank: per switch, whether it forwards nothing now (LinearFDBTop 0):
// its old entries count as LFT_DROP; NULL = none.
int route_plan_make(const struct fabric *f, const struct fabric_tables *old, const bool *known,
                    const bool *blank, const struct fabric_tables *new_tables, struct par *par,
                    struct route_plan **ret, struct err *e);
// The same with what the proof of new_tables on f left behind, which spares most of the work where mixes
// make turns of their own; NULL is fine.
int route_plan_proved(const struct fabric *f, const struct fabric_tables *old, const bool *known,
                      const bool *blank, const struct fabric_tables *new_tables,
                      const struct route_proof_state *state, struct par *par, struct route_plan **ret,
                      struct err *e);
void route_plan_free(struct route_plan *p);

// Pairs of a switch with end ports and a LID in use whose route differs: over another switch or port, or as
// far as there is none. All of the same fabric (switch numbers); 0 when the tables are not. LIDs without a
// difference cost a comparison, others O(switches) each.
uint64_t route_paths_moved(const struct fabric *f, const struct fabric_tables *old,
                           const struct fabric_tables *new_tables, struct par *par);

// --- one path, for people ---
struct route_hop {
    uint32_t node;   // node index
    uint8_t in, out; // ports; 0 where the path starts or ends
};
#define ROUTE_MAX_HOPS 64
// From an end port to a LID along tables; number of hops filled, or -EHOSTUNREACH with the hops so far
// (*ret_n) and *e saying where it ends.
int route_trace(const struct fabric *f, const struct fabric_tables *t, port_id from, uint16_t to_lid,
                struct route_hop ret[ROUTE_MAX_HOPS], uint32_t *ret_n, struct err *e);

#endif
