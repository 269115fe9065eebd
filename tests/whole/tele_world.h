// SPDX-License-Identifier: Apache-2.0
// A collector over a whole manager on a simulated fabric, in virtual time.
#ifndef WEFT_TESTS_WHOLE_TELE_WORLD_H
#define WEFT_TESTS_WHOLE_TELE_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "telemetry/telemetry.h"
#include "tests/whole/rig.h"

#define INTERVAL (10 * MONO_S)

struct world {
    struct rig r;
    struct tele *tele;
    struct tele_opts o; // set before up(); 0 in intervals: INTERVAL
    unsigned sweeps;
    bool swept;
    struct buf log; // events
    struct series *series;
    bool alarmed; // set before up(): there is a list of alarms
    struct alarms *alarms;
    char dir[300];
};

void world_fabric(struct world *w);  // tells the collector what the manager has
void world_collect(struct world *w); // makes the collector
void world_up(struct world *w, const char *name, const struct sim_opts *so);
void world_down(struct world *w);
void world_sweeps(struct world *w, unsigned n); // of counters
const struct tele_table *world_table(const struct world *w);
uint32_t world_slot(const struct world *w, uint64_t guid, unsigned port);
uint64_t world_value(const struct world *w, uint64_t guid, unsigned port, enum tele_counter c);
void world_add(struct world *w, uint64_t guid, unsigned port, enum sim_counter c, uint64_t n);
struct tele_status world_status(const struct world *w);
const struct node *world_nth(const struct world *w, enum node_role role, unsigned i); // the i-th of them

#endif
