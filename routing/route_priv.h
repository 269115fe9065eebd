// SPDX-License-Identifier: Apache-2.0
// For routing/ only, and not for verify.c, which must not share what it proves.
//
// Everything here lives in the caller's scratch arena and dies with one route_compute().
#ifndef WEFT_ROUTING_ROUTE_PRIV_H
#define WEFT_ROUTING_ROUTE_PRIV_H

#include "fabric/fabric.h"
#include "fabric/tables.h"
#include "lib/arena.h"
#include "routing/route.h"

// All usable cables from one switch to one neighbour.
struct rgroup {
    uint32_t peer;       // dense switch number
    uint32_t first_port; // in rgraph.ports
    uint32_t num_ports;
};

// A LID and where it leaves the switches.
struct rdest {
    uint16_t lid;
    uint8_t port;       // of the switch it hangs on; 0: that switch itself
    uint8_t lid_offset; // within an LMC range
    bool is_host;
    bool few;      // rail: not a compute host's, and gives way to these
    uint32_t slot; // position among the ports of its switch that lead to no switch, used or not
    uint32_t seq;  // what the modulo is taken of; see number.c
};

// The compact switch graph: cables that can carry traffic, grouped by neighbour, neighbours in GUID order.
struct rgraph {
    const struct fabric *f;
    uint32_t n;     // switches
    uint32_t *goff; // n + 1: groups of switch s are g[goff[s]] .. g[goff[s + 1] - 1]
    struct rgroup *g;
    uint32_t num_groups;
    uint8_t *ports;
    uint32_t *doff; // n + 1: destinations of switch s, by port, then LID
    struct rdest *d;
    uint32_t *comp; // connected component of each switch
    uint32_t num_comps;
    uint64_t *guid;
    uint32_t *hosts; // host adapters on it
};
void rgraph_build(const struct fabric *f, struct arena *a, struct rgraph *ret);
void rgraph_components(struct rgraph *g, struct arena *a); // from the groups
// Where a LID's end port hangs: false when on no switch. port: index in f->port.
bool rattachment(const struct fabric *f, uint32_t port, uint32_t *ret_sw, uint8_t *ret_port);
// The switch at the far end of a switch's port, when both can carry traffic between switches.
bool rswitch_peer(const struct fabric *f, const struct port *p, uint32_t *ret_sw);

// The total order of switches; see order.c. rank is what it came from (tier, or distance).
struct rorder {
    uint32_t *rank;     // higher is nearer the roots
    uint32_t *pos;      // position in the total order: up is towards the greater
    uint32_t *by_pos;   // the inverse
    uint32_t *top;      // per component, the one top
    bool *tiered;       // per component: ranks are levels of a tree, not distances
    bool *foot;         // no neighbour of lower rank, in a tiered component: crossing it is a down-up turn
    const char *source; // in words, of the largest component
};
// Whether its tables keep to one.
static inline bool rengine_is_ordered(enum route_engine e)
{
    return e == ROUTE_AUTO || e == ROUTE_RAIL || e == ROUTE_UPDN;
}
// 0, or -ENOENT when no given root is in the fabric.
int rorder_build(const struct rgraph *g, const struct route_opts *o, struct arena *a, struct rorder *ret,
                 struct err *e);

// The same with ranks that are known already, per switch; cannot fail.
struct rranks {
    const uint32_t *rank;
    const bool *tiered;
    const char *source;
};
void rorder_build_ranked(const struct rgraph *g, const struct rranks *given, struct arena *a,
                         struct rorder *ret);

// Paths from every switch to one, t.
struct rcolumn {
    uint32_t *cost; // RCOST_NONE: no path
    bool *down;     // goes down from here (always true under minhop)
    bool ordered;   // up*/down*; otherwise plain shortest paths
    // work space
    uint32_t *key, *bucket, *entry_next, *entry_node, num_entries;
};
#define RCOST_NONE 0xffffffffu
#define RCOST_FOOT 64u // added for crossing a foot: any path within the tree is preferred
void rcolumn_init(struct rcolumn *c, const struct rgraph *g, bool ordered, struct arena *a);
void rcolumn_run(struct rcolumn *c, const struct rgraph *g, const struct rorder *o, uint32_t t);
// Whether group i (index into g->g) of switch s leads towards t on a shortest legal path.
bool rcolumn_candidate(const struct rcolumn *c, const struct rgraph *g, const struct rorder *o, uint32_t t,
                       uint32_t s, uint32_t i);

// Numbers the destinations; returns the switches in the order in which theirs are counted. See number.c.
uint32_t *rnumbers_assign(struct rgraph *g, const struct rorder *o, struct arena *a);

// The engine rail's own: sequence numbers, and the choice of ports; see rail.c.
uint32_t *rrail_numbers(struct rgraph *g, const struct rorder *o, struct arena *a); // as rnumbers_assign()
struct rrail;
// order: switches as rrail_numbers() returned them.
struct rrail *rrail_new(const struct rgraph *g, const struct rorder *o, const uint32_t *order,
                        struct arena *a);
struct rrail_at { // one task's scratch
    const struct rrail *r;
    uint32_t s, stamp, used, *list, *list_of;
    uint8_t *pool;
};
void rrail_at_init(struct rrail_at *w, const struct rrail *r, struct arena *a);
struct rways {             // legal ways from one switch to another
    uint64_t mask[4];      // its groups
    uint32_t num, inverse; // ways; 2^32 / num, rounded up, where there are several
    const uint8_t *port;   // of these groups, dealt out in this order
};
static inline uint32_t rways_inverse(uint32_t num)
{
    return num > 1 ? (uint32_t)(((1ULL << 32) + num - 1) / num) : 0;
}
// Entries of switch s for the destinations of t, which is cost away. lid: as in rgraph.d, side by side.
void rrail_put(struct rrail_at *w, uint32_t s, uint32_t t, uint32_t cost, const struct rways *ways,
               const uint16_t *lid, uint8_t *row);

// Legal ways from one switch to another; see fill.c.
struct rchoice {
    uint32_t num_groups, num_ports;
    uint32_t group[256]; // indices into rgraph.g
    bool even;           // all groups have as many ports
    bool plain;          // going down: no rotation, see fill.c
};
#define RDIVIDER_MAX 32767
void rchoice_init(struct rchoice *c);
void rchoice_add(struct rchoice *c, const struct rgraph *g, uint32_t group);
uint8_t rchoice_port(const struct rchoice *c, const struct rgraph *g, uint32_t q);
void rchoice_ports(const struct rchoice *c, const struct rgraph *g, uint8_t *ret);

// Work of rows.c: columns are the switches that have destinations.
struct rrows {
    const struct rgraph *g;
    const struct rorder *o;
    struct fabric_tables *tables;
    uint32_t num;
    uint32_t *column; // per switch, ID_NONE without destinations
    uint32_t *sw;     // per column
    uint16_t *lid;    // per destination, as in rgraph.d
    uint32_t *seq;
    uint8_t *odd;             // per column: not filled, left to column.c
    bool *side_by_side;       // per switch: LIDs of its destinations but the first
    const struct rrail *rail; // chooses; NULL: the modulo of fill.c
};
void rrows_fill(struct rrows *r, struct par *par);

// Fills all tables. engine: ROUTE_RAIL, ROUTE_UPDN, or ROUTE_MINHOP: shortest paths without an order.
void rfill(struct rgraph *g, const struct rorder *o, enum route_engine engine, struct par *par,
           struct arena *a, struct fabric_tables *t);

// The same tables by column.c alone, which rows.c must give byte for byte: for tests. Not for minhop.
void rfill_general(struct rgraph *g, const struct rorder *o, enum route_engine engine, struct arena *a,
                   struct fabric_tables *t);

// sssp.c: fills blank tables and gives them lanes; why: in words. -ENOSPC when there are not lanes enough,
// -E2BIG for too many switches.
int rsssp_compute(const struct rgraph *g, const struct rorder *o, const struct route_opts *opts,
                  struct arena *a, struct fabric_tables *t, char *why, size_t size, struct err *e);

// Lanes for tables t of the live fabric that keep to the ideal ones of `was`, which have lanes: a new
// reference. Pairs whose paths are as they were keep their lanes, others where that can be, for which entries
// of t that are not the ideal's may change; *ret_moved: pairs that do not. -ENOSPC when lanes 0 .. max - 1 do
// not suffice so (all anew may need fewer), -EINVAL when entries lead astray; *e says it. See sssp_mend.c.
// depth: per live switch, 0 or how deep it is sunk (rbarred()); NULL: none is.
int rsssp_mend(const struct fabric *was, const struct fabric_tables *ideal, const struct fabric *live,
               const uint32_t *depth, struct fabric_tables *t, uint32_t max, struct fabric_lanes **ret,
               uint64_t *ret_moved, struct err *e);
// Without an order of switches: whether w is no next hop from s towards t, as it is sunk (repair_avoid.c) and
// would be passed.
static inline bool rbarred(const uint32_t *depth, uint32_t s, uint32_t w, uint32_t t)
{
    return depth && depth[w] > 0 && w != t && depth[s] <= depth[w] && depth[t] <= depth[w];
}
// Which pairs of switches may not go by their lane of `old` over tables t any more, while t's own lanes are
// in use by all, since some of them would close a cycle: a bit [a * switches + b] for each, both ways round
// (room for all, zero before); their number. NULL for either lanes: all is lane 0.
uint64_t rsssp_stale(const struct fabric *f, const struct fabric_tables *t, const struct fabric_lanes *old,
                     uint64_t *ret);
// What sssp may use of the lanes that opts and the cables between switches allow.
uint32_t rsssp_lanes(const struct fabric *f, const struct route_opts *opts);

// file.c
// LIDs in use that no switch has an entry for; *ret_first: the lowest, when there are any.
uint32_t rfile_missing(const struct fabric *f, const struct fabric_tables *t, uint16_t *ret_first);
int rfile_read(const struct fabric *f, const char *text, size_t len, struct fabric_tables **ret,
               struct err *e);

static inline void rpar_run(struct par *p, unsigned n, void (*task)(void *arg, unsigned i), void *arg)
{
    if (p) {
        p->run(p, n, task, arg);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        task(arg, i);
}

#endif
