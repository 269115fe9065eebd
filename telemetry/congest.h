// SPDX-License-Identifier: Apache-2.0
// Congestion trees: which ports wait, for whom, and since when. From each waiting port downstream along the
// routes in force to the root: a host that does not take what it is sent, several senders to one receiver, a
// link that carries more than it can (or carries it alone while its siblings idle), a link slower than it
// should be.
//
// Fed once a sweep; knows ports by slot, so it goes on over snapshots. Pure but for its own state: no clock,
// no descriptor. Loop thread; O(held ports x ports of a switch) a sweep.
#ifndef WEFT_TELEMETRY_CONGEST_H
#define WEFT_TELEMETRY_CONGEST_H

#include "fabric/groups.h"
#include "fabric/tables.h"
#include "telemetry/table.h"

struct congest;

enum congest_kind {
    CONGEST_SLOW_LINK,      // runs below its width or speed
    CONGEST_RECEIVER,       // a host that does not drain
    CONGEST_INCAST,         // several senders to one host
    CONGEST_OVERSUBSCRIBED, // a cable between switches that is full, and its siblings too
    CONGEST_IMBALANCE,      // the same while its siblings idle
    CONGEST_DEADLOCK,       // ports that wait for each other in a circle, and nothing moves
    CONGEST_UNCLEAR,        // waits that nothing known explains
};
const char *congest_kind_name(enum congest_kind k);  // stable word for machines: "receiver", "slow-link", …
const char *congest_kind_title(enum congest_kind k); // for people: "receiver does not drain"
const char *congest_kind_advice(enum congest_kind k); // one line: what to do

struct congest_opts {         // 0 = the default
    double held_on, held_off; // 0.02, 0.01 (2 of 3 samples)
    double full;              // used share from which a port is full: 0.90
    unsigned grace;           // sweeps that a tree outlives its root: 3
};
struct congest_member {
    uint32_t slot;  // a port that waits (its direction out)
    uint32_t depth; // hops from the root; 0: the root itself
    double held, used;
    double lost_bps;
    bool victim; // may have nothing to do with the root: none of its traffic need go there
};
struct congest_tree {
    uint64_t id;   // stays while the tree lives
    uint32_t root; // slot: the port, out of which traffic does not get
    enum congest_kind kind;
    int64_t since;        // loop time
    unsigned sweeps;      // seen in
    unsigned missed;      // sweeps since it was seen last: 0, or it is in its grace and shows what it was
    bool root_read;       // false: the root's own counters are not read; its neighbours tell of it
    double held, used;    // of the root; NAN: not known
    double siblings_used; // roots between switches: mean of the ports that could carry the same; NAN: none
    double lost_bps;      // of all members
    double share;         // of all bandwidth lost in the fabric now, what is taken to be lost included
    // Of its members' waits that the tree explains. Below 0.5 the kind is UNCLEAR, unless the root itself is
    // seen to wait for a host, or to stand in a circle.
    double explained;
    uint32_t second_root;                // the next best one when unclear; else TELE_SLOT_NONE
    const struct congest_member *member; // by depth, then lost_bps; ends only with the next feed
    uint32_t num_members, num_victims, num_switches;
    uint32_t num_adapters; // host ports among members: senders that may be held up
    const uint32_t *cycle; // DEADLOCK: slots of the circle
    uint32_t num_cycle;
    // Slots of its siblings that are full too, as far as is known, and of full cables in line with these: the
    // same cause.
    const uint32_t *beside;
    uint32_t num_beside;
};

struct congest *congest_new(const struct congest_opts *o); // NULL: defaults
void congest_free(struct congest *c);
// The sweep that has just ended. t->fabric and tables must belong together; tables and groups may be NULL (no
// routes known: trees are single ports). now: loop time. table may have holes: ports not read say nothing.
void congest_feed(struct congest *c, const struct tele_table *t, const struct fabric_tables *tables,
                  const struct fabric_groups *groups, int64_t now);
// The same in parts: congest_feed_ports() takes `most` ports' samples and is true when those were all, then
// congest_feed_end() makes trees of them. Ports may be read and the snapshot change in between.
void congest_feed_begin(struct congest *c, const struct tele_table *t);
bool congest_feed_ports(struct congest *c, const struct tele_table *t, uint32_t most);
void congest_feed_end(struct congest *c, const struct tele_table *t, const struct fabric_tables *tables,
                      const struct fabric_groups *groups, int64_t now);
// congest_feed_end() in three: what takes long (0.3 s where thousands of ports of 100,000 wait) may be done
// by another thread, while the loop goes on, reads what was shown last, and nothing else of it is called. The
// trees of work are shown from _end() on; a _begin() drops those that are not.
void congest_trees_begin(struct congest *c, const struct tele_table *t, const struct fabric_tables *tables,
                         const struct fabric_groups *groups);
void congest_trees_work(struct congest *c);
void congest_trees_end(struct congest *c, int64_t now);
// Trees of the last feed, most lost bandwidth first; borrowed until the next.
uint32_t congest_trees(const struct congest *c, const struct congest_tree *const **ret);
struct congest_totals {
    uint32_t held, unread; // ports
    double lost_bps;
};
void congest_totals(const struct congest *c, struct congest_totals *ret);

// One port's direction out, over its last three readings: what `weft top` sorts by.
struct congest_port {
    double held,
        used; // means; used is told by the far end where the port itself was not read; NAN: not known
    double lost_bps;
    double score; // 0..1: how much it may hold others up, from held and used; NAN: neither is known
    bool is_held, is_full;
    uint64_t tree; // the tree that it is in, most lost bandwidth first; 0: none
};
void congest_port(const struct congest *c, uint32_t slot, struct congest_port *ret);

// Who waits for the root: it itself is none of them, and what they lose is not lost at the root once more.
struct congest_waits {
    uint32_t ports;
    double lost_bps; // bytes/s, of these; the root's own where it alone waits
};
void congest_waits(const struct congest_tree *tree, struct congest_waits *ret);

// A tree as it is shown: one row per distance from the root.
struct congest_level {
    uint32_t depth; // 0: the root itself, also where it does not wait
    uint32_t ports, victims;
    double held_min, held_max, used_min, used_max; // NAN: not known of any
    char from[64], to[64]; // "leaf-r3-04/29", "spines", "leaf-r3-01..03", "12 adapters"
};
// malloc'd, the caller's; returns rows. t: the table of the last feed.
uint32_t congest_levels(const struct congest_tree *tree, const struct tele_table *t,
                        struct congest_level **ret);

// How waits and use are spread: by rail or by scalable unit.
struct congest_part {
    uint16_t number; // of the rail or SU
    uint32_t ports, held;
    double mean_used, max_used, mean_held, max_held, lost_bps; // of ports between switches' and towards hosts
    double imbalance; // greatest use of a port between switches over their mean; 1: even; NAN: no traffic
};
// In parts of `most` ports each; congest_sums_some() is true when those were all. Another snapshot in
// between begins it anew.
struct congest_sums;
struct congest_sums *congest_sums_new(void);
void congest_sums_free(struct congest_sums *s); // NULL is fine
bool congest_sums_some(struct congest_sums *s, const struct tele_table *t, uint32_t most);
// malloc'd, the caller's. Returns rows.
uint32_t congest_sums_by_rail(const struct congest_sums *s, struct congest_part **ret);
uint32_t congest_sums_by_su(const struct congest_sums *s, struct congest_part **ret);

#endif
