// SPDX-License-Identifier: Apache-2.0
// A whole manager over a simulated fabric in virtual time: loop, workers, database in a temporary folder,
// simulator, engine, manager. Everything of it can be taken down and brought up again over the same simulated
// fabric, as a restart does.
#ifndef WEFT_TESTS_WHOLE_RIG_H
#define WEFT_TESTS_WHOLE_RIG_H

#include "db/db.h"
#include "lib/buf.h"
#include "sim/sim.h"
#include "sm/drain.h"
#include "sm/sm.h"

struct rig {
    struct loop *loop;
    struct pool *pool;
    struct db *db;
    struct sim *sim;
    const struct fabric *plan; // what the simulator was made from
    struct transport *transport;
    struct transport tap; // sits between engine and simulator
    struct mad_engine *engine;
    struct sm *sm;
    struct sm_opts opts;
    char dir[256];
    bool in_order; // set before rig_up(): workers and database keep to the order in which they were asked
    bool swept;    // set by each finished sweep
    unsigned sweeps, events;
    struct buf log; // "kind: text\n" of every event
    void (*on_send)(struct rig *r, const uint8_t *mad);
    // A liar in between. True: taken, the MAD goes no further (towards the simulator, towards the engine).
    bool (*take_send)(struct rig *r, const uint8_t *mad, const struct mad_addr *to);
    bool (*take_recv)(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status);
    void *user;
};

// name: topogen name, or a path. Fails the test when it cannot be made.
void rig_init(struct rig *r, const char *name, const struct sim_opts *o);
void rig_init_fabric(struct rig *r, const struct fabric *f, const struct sim_opts *o); // takes the reference
void rig_done(struct rig *r);
// Manager, engine and database only; the simulated fabric lives on. start: the first sweep is asked for.
void rig_up(struct rig *r);
void rig_down(struct rig *r);
// Runs until n more sweeps have ended, or fails the test after `seconds` of virtual time.
void rig_sweeps(struct rig *r, unsigned n, int seconds);
// Runs for that long.
void rig_run(struct rig *r, int64_t ns);
// One place is drained, undrained: as sm_drain_all(), sm_undrain_all().
int rig_drain(struct rig *r, const struct sm_drain_place *at, const char *by, const char *reason,
              struct err *e);
int rig_undrain(struct rig *r, const struct sm_drain_place *at, const char *by, struct err *e);
// Hands the engine a MAD as if it had come from the wire.
void rig_deliver(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status);
const struct sm_sweep *rig_last(const struct rig *r);
uint64_t rig_count(const struct rig *r, uint8_t method, uint16_t attr_id); // MADs sent since the engine began
uint64_t rig_events_of(const struct rig *r, const char *kind);

// The judge: walks the simulator's own tables from every adapter of the fabric to every LID, and looks at
// every connected port: fails the test when an end is not reached, a port is not ACTIVE, or LIDs are not
// unique. Dead nodes (may be NULL) are left out. Returns pairs walked.
uint64_t rig_judge(const struct rig *r, const uint64_t *dead, unsigned num_dead);
// Nothing is taken or dropped any more: whether all is up after so many sweeps.
void rig_heals(struct rig *r, unsigned max_sweeps);

#endif
