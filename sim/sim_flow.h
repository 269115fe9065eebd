// SPDX-License-Identifier: Apache-2.0
// Data traffic of a simulated fabric: who sends to whom, along the tables as they are programmed, over links
// with credits (sim_cells.h says how). Its steady state is simulated whenever traffic, tables, links or
// receivers have changed; in between PMA counters move at the rates that came out, in the loop's time, and
// are brought up to date when somebody reads them.
//
// A change counts 10 ms later; a large fabric is worked out in slices of some milliseconds, during which the
// old rates go on (no link that is down counts anything). sim_flow_settle() and the views do not wait for
// that. Loop thread only.
//
// What a port shows: XmitData, XmitPkts (and unicast) of what it sends, its peer the same as received;
// XmitWait for each 8 bytes' time (as its device counts) in which it had something to send and no credits;
// XmitDiscards where the way out is down, or credits never come for HOQLife; RcvSwitchRelayErrors where a
// table has no way.
#ifndef WEFT_SIM_SIM_FLOW_H
#define WEFT_SIM_SIM_FLOW_H

#include <stdbool.h>
#include <stdint.h>

struct sim;

enum sim_pattern {
    SIM_FLOW_RING,       // each to the next host of its rail, and that one on: all-reduce
    SIM_FLOW_ALL_TO_ALL, // each to all others
    SIM_FLOW_INCAST,     // all to the receivers, each to one of them
    SIM_FLOW_STORAGE,    // all to all receivers; bursts: 5 s on, 15 s off unless told otherwise
    SIM_FLOW_SHIFT,      // the i-th of a rail to the (i + shift)-th
    SIM_FLOW_RANDOM,     // a permutation of chance over all
    SIM_FLOW_BALANCED,   // shift by half a rail at 80 %: high load that need not wait
    SIM_FLOW_IDLE,       // a trickle, 0.1 %, to the next host of the rail
    SIM_FLOW_PAIRS,      // as listed
    SIM_PATTERNS,
};
const char *sim_pattern_name(enum sim_pattern p); // "ring", "all-to-all" …

struct sim_flow_spec { // 0: the pattern's own value
    enum sim_pattern pattern;
    const char *name;         // to be listed by; NULL: the pattern's
    const uint64_t *host;     // PortGUIDs of who sends (and receives); none: of all hosts
    uint32_t num_hosts;       // PAIRS: as many as receivers, host[i] sends to receiver[i]
    const uint64_t *receiver; // PortGUIDs; none: chosen by the seed (STORAGE: one in 32)
    uint32_t num_receivers;
    double load;    // share of its link that each sender has to send, over all its flows; from 1 on: as fast
                    // as it can
    unsigned shift; // SHIFT
    unsigned fan;   // ALL_TO_ALL, STORAGE: how many others each sends to at once (all, at most 16)
    bool sl_given;  // else packets go by the level of their path: sim_flow_levels(), 0 without
    uint8_t sl;
    uint32_t window;       // cells of 16 KiB that a flow has under way at most; 0: any number
    int64_t on_ns, off_ns; // comes and goes; 0: goes on
    uint64_t seed;
};
// Begins now. -EINVAL for numbers out of range, -ENOENT for a port that is no end port of an adapter, -E2BIG
// for more than a million flows.
int sim_flow_start(struct sim *s, const struct sim_flow_spec *spec, uint32_t *ret_id);
int sim_flow_stop(struct sim *s, uint32_t id); // 0: all. -ENOENT
// What a path record would say: the service level from one end port to another. Hosts use it from the next
// steady state on; fn NULL: level 0.
typedef unsigned sim_level_fn(void *arg, uint64_t from_port_guid, uint64_t to_port_guid);
void sim_flow_levels(struct sim *s, sim_level_fn *fn, void *arg);
struct sim_flow_info {
    uint32_t id;
    char name[32];
    enum sim_pattern pattern;
    uint32_t senders, receivers, flows;
    uint32_t dead;             // flows that reach nobody
    bool on;                   // in a burst, or always
    double offered, delivered; // bytes/s; offered: what the senders' links could carry where load is 1
};
int sim_flow_list(struct sim *s, unsigned i, struct sim_flow_info *ret); // -ENOENT beyond the last

// The host at an end port takes what arrives at a share of its link only: 0 (nothing, no credits come back)
// to
// 1. -ENOENT for no adapter's port, -EINVAL.
int sim_receiver(struct sim *s, uint64_t node_guid, unsigned port, double drain);

// --- truth, for tests: what the simulation of credits saw, not what counters tell ---

void sim_flow_settle(struct sim *s);        // works out what has changed, now
bool sim_flow_settled(const struct sim *s); // there is nothing to be worked out
struct sim_flow_view {                      // of a port's direction out
    double used, held;                      // shares of time: sending; something to send and no credits
    double bytes_s;                         // data
    double discards_s;                      // packets
    double fill, queued;                    // buffers at the far end, mean share; cells that wait here, mean
    bool stuck, circle;                     // nothing moves; because it waits for itself
    uint64_t root_guid; // what its waiting leads to: a node and its port out; 0: it does not wait
    unsigned root_port;
    double root_share; // of its waiting
};
int sim_flow_view(struct sim *s, uint64_t node_guid, unsigned port, struct sim_flow_view *ret);

enum sim_root_kind {
    SIM_ROOT_RECEIVER,  // a host does not take what arrives
    SIM_ROOT_INCAST,    // the cable to a host is full
    SIM_ROOT_TRUNK,     // a cable between switches is full, as are its siblings
    SIM_ROOT_IMBALANCE, // the same while its siblings have less than half as much to do
    SIM_ROOT_SLOW_LINK, // a full cable that runs below what both its ends can
    SIM_ROOT_CIRCLE,    // ports wait for each other and nothing moves
};
const char *sim_root_kind_name(enum sim_root_kind k);
struct sim_flow_root {
    uint64_t node_guid;
    unsigned port;
    enum sim_root_kind kind;
    unsigned waiting; // ports that mostly wait for it, itself not counted
    double used, held;
    double lost_bps; // bytes/s that these could have carried
};
// Most lost first; how many there are, the first `room` into ret.
unsigned sim_flow_roots(struct sim *s, struct sim_flow_root *ret, unsigned room);
struct sim_flow_stats {
    uint64_t runs, skipped; // steady states worked out; found to be the same before
    uint64_t events;
    int64_t cpu_ns;
    uint32_t flows;
};
void sim_flow_get_stats(const struct sim *s, struct sim_flow_stats *ret);

#endif
