// SPDX-License-Identifier: Apache-2.0
// For repair*.c only; see repair.c.
#ifndef WEFT_ROUTING_REPAIR_PRIV_H
#define WEFT_ROUTING_REPAIR_PRIV_H

#include "routing/route_priv.h"

// The blueprint and its tables, prepared. Read only once made.
struct route_base {
    struct arena *a;
    const struct fabric *f; // borrowed, as the tables are
    const struct fabric_tables *ideal;
    enum route_engine engine;
    char why[200];
    struct route_opts opts; // without par
    uint32_t n, ports;      // switches; port numbers 0 .. ports - 1
    uint32_t *link;         // [switch * ports + port]: switch at the far end, or ID_NONE
    uint64_t *guid;
    bool ordered;                 // up*/down*; otherwise pos says nothing
    uint32_t *pos, *rank, *hosts; // per switch
    bool *foot, *tiered;
    uint32_t num_comps;
    const char *source;
    uint16_t top_lid;
    uint32_t *at_sw; // per LID: where it hangs, ID_NONE when nowhere
    uint8_t *at_port;
    // repair_share.c: [switch * shares + column of the leaf], 0 = leads there by no tree; NULL: all even
    const uint8_t *share;
    uint32_t *share_of, shares; // a leaf's column, ID_NONE for others
};
#define SHARE_SWITCHES_MAX 8192 // beyond, all ports count alike: memory goes with the square

// A switch of the live fabric some of whose ports cannot be trusted to lead where the ideal means.
struct rsuspect {
    uint32_t sw;
    bool port[256];
};

// What is avoided of one live fabric; see repair_avoid.c.
enum { AVOID_NOTHING, AVOID_WANTED, AVOID_SPARED, AVOID_OWN, AVOID_CARRIES_ON };
struct route_avoid {
    const struct fabric *f; // borrowed
    uint8_t *how;           // per port: AVOID_*; WANTED only while it is made
    uint32_t *depth;        // per switch: 0, or how deep it is sunk
    uint32_t deepest;
    bool any, sunk;
};

// The live fabric beside the base. All switch numbers without a word are live ones.
struct rlive {
    const struct route_base *b;
    const struct fabric *f;
    struct arena *a;
    struct rgraph g; // groups by port number; no destinations
    struct rorder o;
    uint32_t ports, *link;
    uint32_t *to_base, *from_base; // switch numbers; ID_NONE without a counterpart
    bool same_numbers;
    bool extra;                      // has switches or cables that the base has not
    bool gaps;                       // pairs may be connected that are not in the base
    bool reordered;                  // the base's order could not be kept in some component
    bool *renewed;                   // per component: it could not, or switches of it are sunk
    const struct route_avoid *avoid; // NULL: nothing is
    const uint32_t *depth;           // its depths where there are sunk switches, else NULL
    struct rsuspect *suspect;
    uint32_t num_suspects;
    uint16_t top_lid; // of both
    bool ordered;
};

// repair_live.c; everything in a. x: of f, or NULL.
struct rlive *rlive_new(const struct route_base *b, const struct fabric *f, const struct route_avoid *x,
                        struct par *par, struct arena *a);
// The live switch that the ideal's entry leads to, if the cable is there and leads where it led; or ID_NONE.
uint32_t rideal_next(const struct rlive *v, uint32_t s, uint16_t lid);

// One task's scratch for columns.
struct rrepair {
    const struct rlive *v;
    struct fabric_tables *out;     // starts as the ideal
    uint64_t *down_todo, *up_todo; // bits by position
    uint32_t *seen;                // evaluated switches of this column
    uint32_t num_seen;
    struct rcolumn rc;
    uint32_t rc_for;          // the switch that rc holds, ID_NONE
    uint32_t *cost, *cost_of; // memory of this column's costs: valid where cost_of is `column`
    uint32_t column, *path;
    uint32_t up_for, up_num, *up_of; // what lies above the end up_for: marked with up_num
    uint32_t from_num, *from, *climb;
    const bool *label; // whether a switch goes down, given; NULL: as its entry does
    uint16_t lid;
    uint32_t t;
    uint64_t displaced;
    uint32_t anew; // columns that were
};
void rrepair_init(struct rrepair *r, const struct rlive *v, struct fabric_tables *out, struct arena *a);
// Whether there is no ideal to speak of: all entries are looked at.
void rrepair_column(struct rrepair *r, uint16_t lid, uint32_t t, const uint32_t *seed, uint32_t num,
                    bool all);
void rrepair_minhop(struct rrepair *r, uint16_t lid, uint32_t t);
void rrepair_found(struct rrepair *r, uint16_t lid, uint32_t t, uint8_t port);

// repair_lanes.c: gives lanes to what was repaired, or computes anew; on an error r->tables is gone.
// depth: as in rlive.
int rrepair_lanes(const struct route_base *b, const struct fabric *live, const uint32_t *depth,
                  struct par *par, struct route_result *r, struct err *e);

// What the ideal says; LFT_DROP for what it does not know.
static inline uint8_t rideal(const struct rlive *v, uint32_t s, uint16_t lid)
{
    uint32_t b = v->to_base[s];
    return b == ID_NONE ? LFT_DROP : tables_port(v->b->ideal, b, lid);
}

// The live switch that port leads to, or ID_NONE.
static inline uint32_t rfar(const struct rlive *v, uint32_t s, uint8_t port)
{
    return port < v->ports ? v->link[(size_t)s * v->ports + port] : ID_NONE;
}

// repair_share.c
void rshares_find(struct route_base *b, const struct rgraph *g, const struct rorder *o, struct arena *a);
struct rhash {
    uint64_t hash;  // rweight()
    uint32_t share; // > 0
};
bool rheavier(struct rhash a, struct rhash b); // a total order for different hashes

// Of a port to w for what hangs on t, in 1/255.
static inline uint32_t rshare(const struct rlive *v, uint32_t w, uint32_t t)
{
    const struct route_base *b = v->b;
    uint32_t bw = v->to_base[w], bt = v->to_base[t];
    if (!b->share || bw == ID_NONE || bt == ID_NONE || b->share_of[bt] == ID_NONE)
        return 255;
    uint32_t share = b->share[(size_t)bw * b->shares + b->share_of[bt]];
    return share > 0 ? share : 255; // the blueprint does not know this way: a cable is a cable
}

// Highest random weight: which of equal ports a destination takes does not depend on what the others are.
static inline uint64_t rweight(const struct rlive *v, uint32_t s, uint16_t lid, uint8_t port)
{
    return hash_mix64(hash_mix64(v->g.guid[s] ^ (uint64_t)lid << 48) + port);
}

static inline void rput(struct rrepair *r, uint32_t s, uint8_t port)
{
    tables_row(r->out, s)[r->lid] = port;
}

// repair_avoid.c
void ravoid_links(const struct route_avoid *x, uint32_t ports, uint32_t *link);    // takes out what is spared
void ravoid_sink(const struct route_avoid *x, uint32_t *by_pos, uint32_t n);       // to the front
void ravoid_prune(const struct route_avoid *x, struct rgraph *g, struct arena *a); // without avoided cables
const struct fabric *ravoid_fabric(const struct route_avoid *x); // without spared cables; one reference
void ravoid_hops(const struct rlive *v, uint32_t t, uint32_t *cost, uint32_t *work);

#endif
