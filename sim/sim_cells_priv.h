// SPDX-License-Identifier: Apache-2.0
// What sim_cells.c (movement), sim_cells_make.c (the net) and sim_cells_look.c (what was measured, who is to
// blame) share.
#ifndef WEFT_SIM_SIM_CELLS_PRIV_H
#define WEFT_SIM_SIM_CELLS_PRIV_H

#include "lib/hash.h"
#include "lib/rng.h"
#include "sim/sim_cells.h"

#define TICKS 32    // a cell time of the fastest link
#define SLOTS 4096u // of the wheel; what is due later stays in its slot for another round
#define SAMPLES 64  // in the shortest time that is measured
#define LONGER 16u  // so many times the times asked for are spent at most, when flows are slow

struct queue {              // cells that came by one lane and leave by another; a flow's at its source
    uint32_t head, tail, n; // head: at a source, the flow
    uint32_t in, out;       // lanes; in: CELLS_NONE at a source
    uint32_t next_in_ring;  // of those that have cells and leave by the same lane; CELLS_NONE: it has none
    uint32_t next_of_input; // of those that came by the same lane
};
struct cell {
    uint32_t next, flow;
    uint32_t lane; // by which it came
    uint16_t hop;  // in the flow's path
};
struct lane {
    uint32_t credits;
    uint32_t ring;  // last of the queues that have cells for it, circular
    uint32_t fed;   // first of the queues at its far end
    uint32_t moved; // cells of flows that choose
    // Where there are several: time without credits while it has something, -1: it is not so now.
    int64_t waited, since;
};
struct wire {                   // a link at work; what every cell touches in its first 64 bytes
    uint32_t ticks_fp, left_fp; // of a cell, 16 bits below the point; what the last one left over
    uint32_t queue, cell, lane; // on their way; cell CELLS_NONE: it is idle
    uint32_t rings;             // lanes that have something to send
    uint32_t cells;             // waiting to leave by it
    uint32_t taken;             // first cell that a slow host at its end has not taken yet
    int64_t since;              // waits since
    int64_t waited;             // ticks
    uint8_t turn;               // lane that was served last
    bool waiting, draining, listed;
    uint32_t taken_last;
    uint32_t drain_fp, drain_left;
    uint32_t discarded, unrouted;
    // seen by samples
    uint64_t fill, queued;
    uint32_t seen, circles, first_blame, stamp;
} __attribute__((aligned(64)));
enum flow_end { END_HERE, END_UNROUTED, END_DEAD };
struct stream {         // a flow at work
    uint32_t queue;     // its source's; CELLS_NONE: cannot leave
    uint32_t path, len; // queues; len 0: it chooses on its way
    enum flow_end end;
    uint32_t end_link;
    uint32_t backlog, under_way;
    uint64_t gap_fp;     // ticks between cells that come up; 0: any number is there
    uint32_t done, born; // since measuring
    uint32_t backlog_before;
};
struct blame {
    uint32_t root, count, next;
};

struct cells {
    struct cells_net net;
    double tick_s;
    struct rng rng;
    struct wire *wire;
    struct lane *lane;
    struct stream *stream;
    struct queue *queue;
    uint32_t num_queues, cap_queues;
    struct u64map by_lanes; // (in, out) -> queue
    uint32_t *path;
    uint32_t num_path, cap_path;
    struct cell *cell;
    uint32_t num_cells, cap_cells, free_cell;
    struct u64map by_choice; // (vertex, dest) -> index into choice: count, then links
    uint32_t *choice;
    uint32_t num_choice, cap_choice, spin;
    // time
    int64_t now, begin, end, last, next_sample, sample_every; // last: when measuring ends at the latest
    bool measuring, done;
    uint64_t ended; // cells
    uint32_t alive; // flows that can leave
    uint32_t *used; // links that flows leave by
    uint32_t num_used, cap_used;
    uint64_t events;
    int64_t *due;
    uint32_t *after;
    uint32_t slot_head[SLOTS], slot_tail[SLOTS];
    uint64_t slot_used[SLOTS / 64];
    // samples
    unsigned samples;
    struct blame *blame;
    uint32_t num_blames, cap_blames, stamp;
};

// --- sim_cells.c ---
void cells_at(struct cells *c, uint32_t ev,
              int64_t due);                         // an event: link, link + num_links, flow + 2 num_links
void cells_flow_moves(struct cells *c, uint32_t f); // it may have something to send now

// --- sim_cells_make.c ---
uint32_t cells_queue_of(struct cells *c, uint32_t in, uint32_t out); // lanes
// Index into choice: how many (0: none, CELLS_HERE), then the links.
uint32_t cells_choices(struct cells *c, uint32_t vertex, uint32_t f);

// --- sim_cells_look.c ---
void look_sample(struct cells *c);
static inline struct wire *wire_of_lane(const struct cells *c, uint32_t lane)
{
    return &c->wire[lane / c->net.lanes];
}

#endif
