// SPDX-License-Identifier: Apache-2.0
// A simulated fabric that is up, with tables of an engine's, for tests of traffic: no manager, no MADs.
#ifndef WEFT_TESTS_SIM_FLOW_RIG_H
#define WEFT_TESTS_SIM_FLOW_RIG_H

#include "lib/loop.h"
#include "routing/route.h"
#include "sim/sim.h"
#include "sim/sim_flow.h"

struct flow_rig {
    struct loop *l;
    const struct fabric *f; // as it is: LIDs, ACTIVE
    struct fabric_tables *t;
    struct sim *s;
    uint64_t *port, *node; // hosts' PortGUIDs and NodeGUIDs, in the fabric's order
    uint32_t hosts;
};
void flow_rig_up(struct flow_rig *r, const char *name, enum route_engine e, const struct sim_opts *o);
void flow_rig_up_fabric(struct flow_rig *r, const struct fabric *f, enum route_engine e,
                        const struct sim_opts *o); // takes the reference
void flow_rig_down(struct flow_rig *r);
void flow_rig_run(struct flow_rig *r, int64_t ns);
// n switches in a circle, `per` hosts on each, with cables of 4xHDR.
const struct fabric *flow_rig_circle(unsigned n, unsigned per);
// f without cables between switches, each with this chance; takes the reference.
const struct fabric *flow_rig_degrade(const struct fabric *f, unsigned percent, uint64_t seed);

#endif
