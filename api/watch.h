// SPDX-License-Identifier: Apache-2.0
// Rows of what goes on between sweeps: parts of a fabric's answer. Inside the API.
#ifndef WEFT_API_WATCH_H
#define WEFT_API_WATCH_H

#include "api/schema.h"
#include "sm/sa.h"
#include "sm/sm.h"

struct trap_number_row {
    int64_t number, count;
    const char *name;
};
struct traps_row {
    int64_t received, repressed, unanswered, not_master, duplicates, put_off, unknown, other_issuer, nonsense,
        vendor, floods, flooding, bad_ports;
    struct items by_number;
    struct trap_number_row number[SM_TRAP_NUMBERS];
};
struct audit_row {
    bool running;
    int64_t devices, devices_done, rounds, last_round, drifted, skipped;
    double last_seconds;
};
struct sa_row {
    bool ready;
    int64_t groups, members, subscriptions, requests, answered, refused, merged, dropped, waiting,
        last_second, most_a_second, mft_blocks_set;
};
struct manager_row {
    uint64_t guid, node_guid;
    int64_t priority, port, lid, missed, heard;
    const char *state, *node;
    bool above, other_key;
};
struct managers { // other subnet managers
    struct sm_peer peer[SM_PEERS_MAX];
    struct manager_row row[SM_PEERS_MAX];
    unsigned n;
};
extern const struct schema schema_traps, schema_audit, schema_sa, schema_manager;
void traps_fill(const struct sm *sm, struct traps_row *row);
void audit_fill(const struct sm *sm, struct audit_row *row);
void managers_fill(const struct sm *sm, struct managers *m);
void sa_fill(const struct sm *sm, struct sa_row *row);

#endif
