// SPDX-License-Identifier: Apache-2.0
// Cables and switches that are drained: traffic is kept off them, so that they can be swapped without anybody
// noticing. A drained cable stays up, watched and counted; a drained switch stays managed and its own LIDs
// are reached, but nothing passes through it. What has no other way carries on over it, and that is said
// (routing/repair_avoid.c has the rules).
//
// A drain is of a port, by its node's GUID and number, or of a whole switch; whatever cable is plugged in
// there is drained. It holds over restarts, reboots of the switch and swaps of the cable, until it is
// undrained, or its switch is struck from the blueprint while it is away. Kept in the database. Only the
// master drains; a manager that takes over knows nothing of another's drains.
#ifndef WEFT_SM_DRAIN_H
#define WEFT_SM_DRAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/err.h"
#include "lib/pool.h"

struct sm;

#define SM_DRAINS_MAX 1024
#define SM_DRAIN_TEXT 200

struct sm_drain_place {
    uint64_t guid; // of a switch
    uint8_t port;  // 0: all its cables to other switches
};

enum sm_drain_state {
    SM_DRAIN_MOVING,  // asked for; the tables that follow from it are not in force yet
    SM_DRAIN_DRAINED, // nothing uses it but the switch's own LIDs, where a whole switch is drained
    SM_DRAIN_IN_USE,  // something has no other way
};
const char *sm_drain_state_name(enum sm_drain_state s);
// "32 ends and 1 switch have no other way"; returns buf.
const char *sm_drain_no_other_way(uint32_t ends, uint32_t switches, char *buf, size_t size);

struct sm_drain {
    struct sm_drain_place at;
    struct sm_drain_place
        far;          // the cable's other end when it was last seen; guid 0: none, or a switch's drain
    int64_t since_ns; // wall clock
    char by[64], reason[SM_DRAIN_TEXT + 1];
    char name[200], far_name[200]; // "leaf-7[33]", as when they were last seen
    bool in_blueprint;             // was its switch, when routes were last adopted
    // of the generation in force
    enum sm_drain_state state;
    uint32_t cables; // that are up there
    uint32_t own;    // of a drained switch: aggregation nodes of its own, which stay reachable; not in ends
    uint32_t ends, switches; // that have no other way: end ports, and LIDs of (other) switches; those of the
                             // two sides that are fewer
};

// All of these or, with an error, none; did[i]: that one was not drained yet (as this port, or by the other
// end of its cable). Also a switch of the blueprint that is not there. 0; 1: nothing has changed. Else
// negative and *e: -ENOENT no such node or port, -EINVAL nothing that can be drained, -EPERM we are not the
// master, -EAGAIN nothing is known of the fabric yet, -ENOSPC too many. by, reason: bytes that are no
// printable text become blanks.
int sm_drain_all(struct sm *sm, const struct sm_drain_place *at, size_t n, const char *by, const char *reason,
                 bool *did, struct err *e);
// The same, by either end; did[i]: that one was drained. -EPERM, -EAGAIN as above.
int sm_undrain_all(struct sm *sm, const struct sm_drain_place *at, size_t n, const char *by, bool *did,
                   struct err *e);

// In order of their beginning; NULL beyond the last. Borrowed until the next call that changes anything.
const struct sm_drain *sm_drain_nth(const struct sm *sm, unsigned i);
// Its switch is not there, and is drained when it comes (back).
bool sm_drain_away(const struct sm *sm, const struct sm_drain *d);
// Ends that hang on drained cables alone: cut off when all of these are pulled.
uint32_t sm_drains_hang(const struct sm *sm);
// Which ends have no other way, of the first `max` and all that there are: indices of ports in sm_fabric().
size_t sm_drain_ends(const struct sm *sm, const struct sm_drain *d, uint32_t *end, size_t max);
// The drain that a place has (by either end of a cable; a port's own only), or NULL.
const struct sm_drain *sm_drain_find(const struct sm *sm, const struct sm_drain_place *at);

// What draining, or undraining, would move: computed from references, by any thread; the manager is not
// touched.
struct sm_drain_check;
struct sm_drain_effect {
    uint64_t entries;                // of forwarding tables that would change
    uint32_t blocks, table_switches; // MADs to write them, switches that get some
    uint64_t paths;                  // (leaf switch, destination) pairs whose route would change
    uint32_t waves;                  // in which they would be written; 0: nothing to write
    uint32_t cables;                 // that it is about, and are up
    uint32_t ends, switches;         // that would have no other way
    bool proved;
    char counter_example[600];
};
// Errors as of sm_drain_all() and sm_undrain_all(); also 1: nothing would change, *ret NULL.
int sm_drain_check_new(const struct sm *sm, const struct sm_drain_place *at, size_t n, bool undrain,
                       struct sm_drain_check **ret, struct err *e);
int sm_drain_check_run(struct sm_drain_check *c, struct par *par, struct sm_drain_effect *ret, struct err *e);
bool sm_drain_check_undrains(const struct sm_drain_check *c);
void sm_drain_check_free(struct sm_drain_check *c); // NULL is fine

#endif
