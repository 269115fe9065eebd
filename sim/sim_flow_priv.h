// SPDX-License-Identifier: Apache-2.0
// What the files of traffic share: sim_flow.c (when it is worked out, counters), sim_flow_pattern.c (who
// sends to whom), sim_flow_net.c (the fabric as links and vertices), sim_flow_view.c (truth).
#ifndef WEFT_SIM_SIM_FLOW_PRIV_H
#define WEFT_SIM_SIM_FLOW_PRIV_H

#include "sim/sim_cells.h"
#include "sim/sim_flow.h"
#include "sim/sim_priv.h"

#define FLOWS_MAX 1000000u

struct pair { // ports, by index
    uint32_t from, to;
};
struct pattern {
    uint32_t id;
    char name[32];
    enum sim_pattern kind;
    double load;
    bool sl_given;
    uint8_t sl;
    uint32_t window;
    int64_t on_ns, off_ns, turn_due; // bursts
    bool on;
    struct pair *pair;
    uint32_t num_pairs, senders, receivers;
    double offered, delivered; // bytes/s, of the last steady state
    uint32_t dead;
};

struct flow_dir { // what leaves a port, a second
    double words, packets, ticks, discards;
    double hoq;      // of the discards: those that waited too long
    double unrouted; // packets that arrive at its peer and go nowhere
    double left[6];  // below one of each
    int64_t since;   // counters are right as of then
};

struct flow_net { // a steady state that is worked out
    struct cells *cells;
    struct cells_link *link; // by port index: its direction out
    struct cells_flow *flow;
    struct flow_who {
        uint32_t pattern, pair; // index into sim_flows.pattern; its pair
        uint16_t dlid;
    } * who;
    uint32_t num_flows;
    uint32_t packet; // bytes of data in one
    unsigned lanes;
    unsigned top_vl; // seen
    struct sim *sim;
    // Its end:
    struct cells_use *use; // by port index
    double *delivered;     // cells/s
    // While lanes are stalled (sim_flow_hoq.c): what was before, and its share of the time
    struct flow_net *before;
    double share;
};

struct sim_flows {
    struct pattern *pattern;
    uint32_t num_patterns, next_id;
    float *drain;          // by port index; NULL: all take everything
    struct flow_dir *dir;  // by port index
    struct cells_use *use; // of the last steady state, by port index
    double *lane_ticks;    // [port * lanes + lane] a second; NULL: as the port's, on lane 0
    double *lane_left;     // below one of each
    unsigned lanes;
    struct flow_net *net; // being worked out, NULL
    bool dirty, scheduled;
    sim_level_fn *level; // may be NULL
    void *level_arg;
    uint64_t written;   // tables, so often
    uint64_t signature; // of the last one, 0: not known
    uint32_t packet;
    struct sim_flow_stats stats;
};

bool flows_moved(const struct sim *s); // there was traffic: dir and use exist

// --- sim_flow_pattern.c ---
// Fills in pair and counts; 0, -EINVAL, -ENOENT, -E2BIG.
int pattern_make(struct sim *s, const struct sim_flow_spec *spec, struct pattern *ret);

// --- sim_flow_net.c ---
// NULL: nobody sends. stalled: by port index, what is to go out there is dropped; NULL: nowhere.
struct flow_net *net_new(struct sim *s, const bool *stalled);
void net_free(struct flow_net *n);
double port_best_bytes_s(const struct sim *s, const struct sim_port *p); // as both ends could have it

// --- sim_flow_hoq.c ---
uint64_t hoq_signature(const struct sim *s);
// After the end of n: whether lanes without credits will be stalled; then s->flows->net is the state in which
// they are, and n belongs to it.
bool hoq_next(struct sim *s, struct flow_net *n);
void hoq_mix(const struct sim *s, struct flow_net *n); // puts both states together into n

// Bytes that a packet has besides its data: as counted (LRH to ICRC), and as they take the link's time.
#define PACKET_COUNTED 30
#define PACKET_ON_LINK 38
// A cell's bytes on the link, in packets of so many bytes.
static inline double cell_on_link(unsigned packet)
{
    return CELL_BYTES + (double)CELL_BYTES / packet * PACKET_ON_LINK;
}

#endif
