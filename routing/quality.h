// SPDX-License-Identifier: Apache-2.0
// How well tables spread traffic: what flows of usual patterns get, when all send at once at full rate.
//
// A flow goes from one host adapter to another along the tables. Its bandwidth is 1 / (the most flows that
// share one cable on its way, in its direction), cables between switches only and all alike whatever their
// speed: 1 is what an empty fabric gives. Hosts' own cables are left out, as patterns load them alike. A flow
// that does not arrive counts as failed and has no bandwidth; it loads what it crosses.
//
// Hosts are adapters' base LIDs, without aggregation nodes. Their order in all patterns is that of their leaf
// switches by name (digits by value), then GUID, then port: figures do not depend on how nodes are numbered
// or in which order they were found. Random patterns are the same ones each time.
//
// Patterns:
//   same_rail_shift  every rail at once, each host to the one s places further in its rail; s = 1 and others
//                    drawn once per size, 24 in all, or all where there are no more (opts.all_shifts: all)
//   slot_shift       each host to the next SU on its rail, k slots further, for all k. A slot is a place on a
//                    leaf: that of a host which is missing stays, so that the others keep theirs
//   ring             the first of these, k = 0: the ring over SUs
//   shift            each host to the one s places further, 24 random s
//   permutation      8 random permutations of all hosts
//   alltoall         every host to every other: exact loads (the edge-forwarding index)
//
// Cost: O(flows x hops) for the patterns; for all-to-all two walks over the part of each destination's tree
// that carries traffic. Pure; parallel over patterns and destinations, the result does not depend on how many
// at once.
#ifndef WEFT_ROUTING_QUALITY_H
#define WEFT_ROUTING_QUALITY_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/tables.h"
#include "lib/pool.h"

struct quality_link { // a cable between switches, seen from where its load leaves
    uint32_t node;    // index of the switch; ID_NONE: no cable is shared
    uint8_t port;
    uint64_t load; // flows
};

struct quality_flows {
    const char *absent; // why this fabric has no such pattern, static; NULL: the figures hold
    uint32_t patterns;
    uint64_t flows, failed; // of all patterns
    double mean;            // over patterns, of the mean over flows
    double sum;             // bandwidth of all flows of all patterns together
    double worst;           // the least of the patterns' means
    double worst_flow;      // the least of any flow
    uint32_t max_load;      // flows on the fullest cable of any pattern
    struct quality_link link;
};

enum quality_dir {
    QUALITY_UP,
    QUALITY_DOWN,
    QUALITY_SIDE, // within a tier, or tiers are not known
};
const char *quality_dir_name(enum quality_dir d);

struct quality_level { // cables of one direction between two tiers
    uint8_t tier;      // of the lower end; TIER_NONE when not known
    enum quality_dir dir;
    uint32_t channels, unused;
    uint64_t max;
    double mean, max_over_mean;
};
#define QUALITY_LEVELS_MAX 24

struct quality_alltoall {
    const char *absent;
    uint64_t flows, failed;
    uint64_t max;         // flows on the fullest cable
    double mean_load;     // over all cables between switches
    double max_over_mean; // the greatest of the levels': 1 is an even spread
    double mean;          // bandwidth of a flow beside what its host's own cable leaves it
    double worst;         // the least: what each host can send when all send evenly
    struct quality_link link;
    uint32_t num_levels;
    struct quality_level level[QUALITY_LEVELS_MAX];
};

struct route_quality {
    uint32_t hosts, rails, sus; // seen in the patterns
    struct quality_flows same_rail_shift, slot_shift, ring, shift, permutation;
    struct quality_alltoall alltoall;
};

struct quality_opts {
    bool all_shifts; // of same_rail_shift: hosts of a rail - 1 patterns instead of 24
    uint64_t seed;   // of the random patterns; 0 gives the usual ones
    struct par *par; // NULL = serial
};

// The tables are not trusted: every entry is bounded. Tables of another fabric: all absent.
void route_quality(const struct fabric *f, const struct fabric_tables *t, const struct quality_opts *o,
                   struct route_quality *ret);

// --- one job ---
// What the communication of a job would meet on these tables with the fabric to itself. Its adapters are
// given in the order of ranks; collectives run on every rail at once (adapters without a rail are a rail of
// their own).
//   ring           each adapter to the next of its rail, the last to the first
//   tree           the two complementary binary trees of a rail (Sanders, Speck, Traeff, "Two-tree algorithms
//                  for full bandwidth broadcast, reduction and scan", 2009), both ways
//   rail_alltoall  every adapter to every other of its rail
//   alltoall       every adapter to every other, those of its own host too
// Bandwidth of a flow here is beside what its two hosts' own cables leave it: 1 means that no cable between
// switches holds it back.
#define QUALITY_BLAME 8
struct quality_job_flows {
    const char *absent; // as above
    uint64_t flows, failed;
    double mean, worst; // over flows
    uint64_t max_load;
    uint32_t blamed;                         // cables that hold flows back
    uint32_t num_links;                      // listed, at most QUALITY_BLAME
    struct quality_link link[QUALITY_BLAME]; // of these the fullest, fullest first
};
struct route_job_quality {
    uint32_t adapters; // that take part: those given that are hosts' and hang on a switch, each once
    uint32_t rails;
    struct quality_job_flows ring, tree, rail_alltoall, alltoall;
};
// ports: indices of ports. Cost: O(adapters x hops), and the all-to-alls as above.
void route_quality_job(const struct fabric *f, const struct fabric_tables *t, const uint32_t *ports,
                       uint32_t num_ports, struct par *par, struct route_job_quality *ret);

#endif
