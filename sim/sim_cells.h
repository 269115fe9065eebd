// SPDX-License-Identifier: Apache-2.0
// Traffic as cells of 16 KiB over links with credits: an event-driven simulation of a few hundred cell times,
// from which come the rates at which counters of a fabric in steady state move.
//
// Every link has, for each lane, a buffer of `buffer` cells at its far end; a cell leaves only when there is
// room for it there. A switch keeps what has arrived in one queue for each way out; a way out serves the
// queues that have cells in turn (one of each input and lane), lanes with credits in turn. Whoever has a cell
// and credits sends: no output idles then. A host sends its flows in turn and takes what arrives at once, or
// at a share of its link. What is full is not dropped but waited for.
//
// Stands alone: knows nothing of MADs or of the fabric's model. Deterministic from the seed. All state
// belongs to the caller of cells_new(); any thread, one at a time.
#ifndef WEFT_SIM_SIM_CELLS_H
#define WEFT_SIM_SIM_CELLS_H

#include <stdbool.h>
#include <stdint.h>

#define CELL_BYTES 16384
#define CELLS_NONE 0xffffffffu
#define CELLS_HERE 0xffffffffu // of cells_next_fn: it has arrived
#define CELLS_DROP 0xffffffffu // of cells_lane_fn: the lane is none

struct cells;

struct cells_link { // one direction of a cable
    double rate;    // cells/s; 0: carries nothing, what goes there is discarded
    uint32_t to;    // vertex at its far end
    float drain;    // share of the rate at which a host there takes what arrives; 1: as it comes
};
struct cells_flow {
    uint32_t link;   // the first one: out of a host
    uint32_t dest;   // flows of one dest go the same ways from the same vertex
    double rate;     // cells/s that come up; INFINITY: as fast as they can go
    uint32_t window; // cells under way at once; 0: any number
    uint8_t sl;
};
// Links by which a flow may leave a vertex, at most 256: how many. 0: no way, it is dropped. CELLS_HERE: it
// is there.
typedef unsigned cells_next_fn(void *arg, uint32_t vertex, uint32_t flow, uint32_t *ret_link);
// The lane (below `lanes`) by which it leaves. in: link by which it came; CELLS_NONE at its source.
typedef unsigned cells_lane_fn(void *arg, uint32_t in, uint32_t out, uint32_t flow);

struct cells_net { // arrays stay the caller's and must outlive the run
    uint32_t num_links, num_flows;
    const struct cells_link *link;
    const struct cells_flow *flow;
    cells_next_fn *next;
    cells_lane_fn *lane;
    void *arg;
    unsigned lanes;         // of every link, at least 1
    unsigned buffer;        // cells of a lane; 0 = 8
    unsigned warm, measure; // cell times of the fastest link; 0 = 400, 800
    uint64_t seed;
};

struct cells_use {     // of a link, while it was measured
    double sent;       // cells/s
    double used, held; // shares of time: sending; idle with something to send and no credits
    double discarded;  // cells/s that were to leave by it and never did: it is dead
    double unrouted;   // cells/s that came by it and had no way on
    double fill;       // of the buffers at its far end, mean share
    double queued;     // cells waiting to leave by it, mean
    // What it waits for: the link that most of its waiting leads to, and how much of it. Itself: the host at
    // its end does not take what arrives, or it stands in a circle.
    uint32_t root;
    double root_share;
    // Cells/s that other links (and it itself) could have carried in the time in which they wait and it leads
    // here. Links that wait less than a hundredth of the time do not count.
    double lost;
    bool stuck;  // nothing left it although it had something to send all the time
    bool circle; // it waits for itself by way of others
};

struct cells *cells_new(const struct cells_net *net);
void cells_free(struct cells *c);
// Goes on for about `events` events; true when it is done.
bool cells_run(struct cells *c, uint64_t events);
uint64_t cells_events(const struct cells *c);
// Of what has been measured so far; arrays of num_links and num_flows, the caller's. delivered in cells/s.
void cells_result(struct cells *c, struct cells_use *ret_use, double *ret_delivered);
// Share of the time in which a lane of a link had something and no credits; with one lane the link's held.
double cells_lane_held(const struct cells *c, uint32_t link, unsigned lane);
bool cells_choose(const struct cells *c); // flows choose on their way
// A hash of links, flows and ways, but for those of flows that choose: equal ones end alike. Never 0.
uint64_t cells_signature(const struct cells *c);
bool cells_sane(const struct cells *c); // for tests: no buffer above its size, no cell lost or made up

#endif
