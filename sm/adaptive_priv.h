// SPDX-License-Identifier: Apache-2.0
// For adaptive.c, which writes, and adaptive_plan.c, which computes.
#ifndef WEFT_SM_ADAPTIVE_PRIV_H
#define WEFT_SM_ADAPTIVE_PRIV_H

#include "mad/adaptive.h"
#include "routing/groups.h"
#include "sm/drain_priv.h"
#include "sm/sm_priv.h"

#define LATE_MAX 3 // requests in a row without an answer, after which a switch is let be

enum adaptive_can {
    ADAPTIVE_UNKNOWN, // not asked since it was seen, or reset
    ADAPTIVE_NOT,     // does not know the attributes
    ADAPTIVE_CAN,
    ADAPTIVE_LEFT, // says yes and does otherwise, or refuses: why[]
};
enum adaptive_stage { STAGE_BEGIN, STAGE_PREPARE, STAGE_WRITE, STAGE_ENABLE, STAGE_OVER };

struct sm_adaptive_dev { // of a switch; the loop's, but for what a job reads while it runs
    enum adaptive_can can;
    struct mad_adaptive_routing_info info; // as last answered
    uint8_t late;
    char why[160];
    // What it holds: a hash of each group by id, of each block of 16 LIDs; 0: not known
    uint64_t *group, *block;
    uint32_t num_groups, num_blocks;
    // What the running phase is to bring it to, from the job
    bool want;            // adapts; else it is turned off
    uint16_t top, groups; // highest id, how many there are
    uint16_t *todo_group; // ids
    uint32_t *todo_block;
    uint32_t num_todo_groups, num_todo_blocks, at;
    enum adaptive_stage stage;
    bool failed;
};

struct adaptive_job {
    struct pool_job job;
    struct sm *sm;
    const struct fabric *fabric;
    const struct fabric_tables *tables;
    struct sm_ideal *ideal;      // for the order that the tables keep to
    struct sm_drain_set *drains; // that the tables are for; NULL: none
    struct groups_opts opts;
    const struct fabric *last_fabric;
    const struct fabric_groups *last;
    bool anew;                    // else `last` is what is wanted
    uint16_t *cap;                // by switch
    struct sm_adaptive_dev **dev; // by switch; NULL: none that adapts
    // results
    int status;
    struct groups_result result;
    struct groups_proof proof;
    struct err err;
};

struct sm_adaptive {
    bool leaving;   // an earlier run has turned it on, this one is not to: it is turned off
    bool noted;     // the database says that some may be on
    bool unsettled; // switches are not as they should be: the next sweep goes on
    bool stop;      // somebody waits for the sweep's end
    char said[480]; // the last event
    // As of the last job; groups NULL: none, or none that hold
    const struct fabric *fabric;
    const struct fabric_tables *tables;
    const struct fabric_groups *groups;
    uint64_t caps; // hash of what switches can hold
    int status;
    struct err err;
    struct groups_result result; // without groups
    struct groups_proof proof;
    struct adaptive_job *job;
};

// adaptive_plan.c
void sm_adaptive_job_start(struct sm *sm, void (*done)(void *arg)); // arg: the job
void sm_adaptive_job_free(struct adaptive_job *j);                  // NULL is fine
// What a switch should hold: 64 bytes as on the wire, and its hash.
uint64_t sm_adaptive_group(const struct fabric_group *g, uint8_t ret[MAD_SMP_DATA_SIZE]);
uint64_t sm_adaptive_block(const struct fabric_groups *g, const struct fabric_tables *t, uint32_t sw,
                           uint32_t block, uint8_t ret[MAD_SMP_DATA_SIZE]);
// What a switch said that it holds: the same hashes; 0 when it is nothing that would be written.
uint64_t sm_adaptive_group_said(const uint8_t data[MAD_SMP_DATA_SIZE]);
uint64_t sm_adaptive_block_said(const uint8_t data[MAD_SMP_DATA_SIZE]);
const struct fabric_group *sm_adaptive_group_by_id(const struct fabric_groups *g, uint32_t sw, uint16_t id);

#endif
