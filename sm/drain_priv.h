// SPDX-License-Identifier: Apache-2.0
// For sm/ only: what a sweep needs of the drains; at the end what is for drain*.c alone.
#ifndef WEFT_SM_DRAIN_PRIV_H
#define WEFT_SM_DRAIN_PRIV_H

#include "routing/route.h"
#include "sm/drain.h"

struct fabric;
struct fabric_tables;
struct findings;

// The drains of one moment, for a job: a value that nobody else sees.
struct sm_drain_set {
    uint64_t version;
    unsigned n;
    uint32_t hang; // ends that are cut off when all of these cables are pulled
    struct sm_drain_use {
        struct sm_drain_place at;
        uint32_t cables, ends, switches, own;
    } use[];
};

void sm_drains_load(struct sm *sm);
void sm_drains_free(struct sm *sm);
// NULL when there are none and the tables in force know of none.
struct sm_drain_set *sm_drains_take(const struct sm *sm);
// Those that the tables in force are of; NULL: none.
struct sm_drain_set *sm_drains_take_in_force(const struct sm *sm);
// Whether the tables in force are of other drains than there are now.
bool sm_drains_pending(const struct sm *sm);
// route_repair_from() with traffic kept off what is drained. set: NULL is fine. Any thread, as the next two.
int sm_drains_repair(const struct sm_drain_set *set, const struct route_base *b, const struct fabric *f,
                     struct par *par, struct route_result *ret, struct err *e);
// What traffic is kept off, in that fabric; NULL: nothing. The caller's. Any thread.
struct route_avoid *sm_drains_avoid(const struct sm_drain_set *set, const struct fabric *f);
void sm_drains_count(struct sm_drain_set *set, const struct fabric *f, const struct fabric_tables *t);
// route_avoid_open(): for what is not unicast. One reference; f itself when nothing is drained.
const struct fabric *sm_drains_fabric(const struct sm_drain_set *set, const struct fabric *f);
// The tables for this set are in force; set NULL: for no drains.
void sm_drains_adopt(struct sm *sm, const struct sm_drain_set *set);
void sm_drains_find(const struct sm *sm, struct findings *f);
// Whether the cable at this port is drained, as such or with one of its switches.
bool sm_drains_cover(const struct sm *sm, uint64_t guid, uint8_t port, uint64_t far_guid, uint8_t far_port);
bool sm_drains_cover_switch(const struct sm *sm, uint64_t guid);
// Changes with those in force; part of what a multicast tree depends on.
uint64_t sm_drains_hash(const struct sm *sm);

// --- drain*.c ---
struct sm_drains {
    struct sm_drain *item;
    unsigned n;
    uint64_t version, in_force; // of the list; of what the tables in force were made for
    uint32_t hang;
    uint32_t undone; // undrained since tables were adopted
    struct sm_drain undone_first;
    struct sm_drain_set *now; // which these were made for; NULL: none
};

static inline bool sm_drain_same(const struct sm_drain_place *a, const struct sm_drain_place *b)
{
    return a->guid == b->guid && a->port == b->port;
}
void sm_drains_keep(struct sm *sm); // in the database
// The switch's port at the far end of a cable between switches, or NULL. p may be NULL.
const struct port *sm_drain_far_of(const struct fabric *f, const struct port *p);
// Who may change the list, and by what; *e as of sm_drain_all(). The second fills the drain's names.
int sm_drain_check_master(const struct sm *sm, struct err *e);
int sm_drain_check_place(const struct sm *sm, struct sm_drain *d, struct err *e);
struct sm_drain_set *sm_drain_set_copy(const struct sm_drain_set *s); // NULL for none
// The cables of one drain that are up, by their ports there.
size_t sm_drain_cables(const struct fabric *f, const struct sm_drain_place *at, port_id ret[256]);
// Aggregation nodes of these switches themselves are reached as the switches are: they go out of the list of
// ends. How many.
uint32_t sm_drain_strike_own(const struct fabric *f, const struct sm_drain_place *at, size_t n, port_id *end,
                             uint32_t *ends);
void sm_drain_tell_asked(struct sm *sm, const struct sm_drain *d);

#endif
