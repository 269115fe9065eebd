// SPDX-License-Identifier: Apache-2.0
// For mcast.c, which writes multicast forwarding tables, and mcast_tree.c, which sees to the tree. All of it
// is the loop thread's but for what a job holds while it runs.
#ifndef WEFT_SM_MCAST_PRIV_H
#define WEFT_SM_MCAST_PRIV_H

#include "sm/sa_priv.h"

#define MLIDS_BLOCK 32
#define BLOCKS_MAX 512
#define MLID_MIN MAD_LID_MULTICAST_MIN
#define MLID_COUNT (MAD_LID_MULTICAST_MAX - MAD_LID_MULTICAST_MIN + 1)

struct mcast_block {
    bool known; // held is what the switch has
    uint16_t held[MLIDS_BLOCK], want[MLIDS_BLOCK];
};
struct mcast_mft { // of one switch
    uint64_t guid;
    uint8_t positions;
    uint16_t blocks;            // that it has
    bool here;                  // in the fabric of the tree
    struct mcast_block **block; // blocks * positions; NULL: never touched
};

struct mcast_basis { // what a tree was made from
    const struct fabric_tables *tables;
    struct route_proof_state *proof; // of the tables, or of such with more dependencies; NULL: not known
    uint64_t topology;               // a hash of cables between switches, and of which members can be on
};

struct mcast_job {
    struct pool_job job;
    struct sm *sm;
    const struct fabric *fabric, *last_fabric;
    struct sm_drain_set *drains; // that the tables are of; NULL: none
    struct mcast_basis basis;
    bool *needed;
    uint64_t roots[MCAST_ROOTS_MAX];
    struct mcast_opts opts;
    struct mcast_tree *tree; // the result
    struct mcast_proof verdict;
};

struct mcast_place { // of a member of an MLID
    uint16_t mlid;
    struct mcast_member m;
};

struct mcast_op {
    uint32_t mft;
    uint16_t block;
    uint8_t position;
};

enum mcast_phase { MCAST_IDLE, MCAST_COLLECT, MCAST_READ, MCAST_REMOVE, MCAST_ADD };

struct sm_mcast {
    struct sm *sm;
    struct mcast_tree *tree;     // NULL: nobody is a member, or the first one waits for it
    const struct fabric *fabric; // that tables are written on; the tree fits it
    struct mcast_basis basis;    // of the tree
    struct mcast_job *job;
    bool again;                 // there was another fabric while the job or a round ran
    struct mcast_job *ready;    // done while a round ran
    bool wanted;                // a job, as soon as it is in nobody's way
    struct mcast_basis refused; // of a tree that does not hold: not tried again for this; no tables: none
    mono_t wanted_since;
    struct loop_timer start;
    uint32_t jobs;
    uint64_t roots[MCAST_ROOTS_MAX];
    uint32_t num_roots;

    struct mcast_mft *mft;
    uint32_t num_mft, cap_mft;
    struct u64map by_guid; // NodeGUID -> mft
    uint32_t *of_switch;   // by switch of fabric
    uint16_t mlid_max;

    uint64_t dirty[MLID_COUNT / 64 + 1]; // MLIDs
    bool any_dirty;
    uint64_t busy[BLOCKS_MAX / 64];  // blocks of the running round
    uint64_t later[BLOCKS_MAX / 64]; // blocks that were not written

    enum mcast_phase phase;
    uint64_t round; // number of the last one that has begun
    struct mcast_place *place;
    size_t num_place, at_place;
    struct mcast_op *op;
    uint32_t num_op, cap_op, next_op, pending;
    bool lacking; // a member's switch is not in the tree
    struct loop_task task;
    struct loop_timer retry;

    bool looked, looking, held; // at what the switches had before
    mono_t held_since, last_join;
    uint64_t sets, gets, failures, rounds;
};

// mcast.c
void sm_mcast_take_fabric(struct sm_mcast *m, const struct fabric *f); // not while a round runs
void sm_mcast_all_dirty(struct sm_mcast *m);
// mcast_tree.c
void sm_mcast_tree_init(struct sm_mcast *m);
void sm_mcast_tree_done(struct sm_mcast *m);
void sm_mcast_tree_step(struct sm_mcast *m);       // begins what waits to begin
void sm_mcast_tree_round_over(struct sm_mcast *m); // a round has ended

#endif
