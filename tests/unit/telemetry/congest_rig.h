// SPDX-License-Identifier: Apache-2.0
// A table of counters made of shares: each port's direction out is used and held by so much, and each feed is
// one more sweep of 10 s.
#ifndef WEFT_TESTS_TELEMETRY_CONGEST_RIG_H
#define WEFT_TESTS_TELEMETRY_CONGEST_RIG_H

#include "telemetry/congest.h"
#include "tests/unit/routing/rig.h"

struct congest_rig {
    const struct fabric *f;
    struct fabric_tables *tables;
    const struct fabric_groups *groups;
    struct tele_table t;
    double *used, *held; // [slot]
    bool *unread;        // in the coming sweeps
    struct congest *c;
    int64_t now;
};

// Takes both references; tables may be NULL. A slot for each end of each cable.
void congest_rig_new(struct congest_rig *r, const struct fabric *f, struct fabric_tables *tables);
void congest_rig_free(struct congest_rig *r);
void congest_rig_clear(struct congest_rig *r); // nothing is used nor held
uint32_t congest_rig_slot(const struct congest_rig *r, const char *node, unsigned num);
// The port of one node that leads to the other.
uint32_t congest_rig_to(const struct congest_rig *r, const char *from, const char *to);
void congest_rig_set(struct congest_rig *r, uint32_t slot, double used, double held);
void congest_rig_read(struct congest_rig *r); // one more sweep, not fed
void congest_rig_feed(struct congest_rig *r); // one more sweep
void congest_rig_feeds(struct congest_rig *r, unsigned n);

#endif
