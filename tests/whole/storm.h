// SPDX-License-Identifier: Apache-2.0
// The fabrics of the storms, and the test's own account of their cables.
#ifndef WEFT_TESTS_WHOLE_STORM_H
#define WEFT_TESTS_WHOLE_STORM_H

#include "lib/rng.h"
#include "tests/whole/rig.h"

#define NONE UINT32_MAX

struct node_now { // beside the plan's
    uint64_t guid;
    char desc[40];
    bool dead, twin, replaced, live;
};
struct port_now { // by the plan's numbers
    uint32_t peer;
    bool cut;
    uint16_t lid; // before the storm
};

struct storm {
    struct rig r;
    const struct fabric *f; // the plan
    uint64_t seed;
    struct rng rng;
    uint32_t kinds; // that happen in this one
    struct node_now *node;
    struct port_now *port;
    uint32_t own, own_leaf_port; // our node, the port that it is cabled to
    unsigned deaths;             // switches that were silent or gone at some time
    bool in_order;               // nothing has happened that may lead to loops
    unsigned answers, replaced;
    bool loud;
    unsigned told_sweeps;
    size_t told_log;
    bool failed;
    char why[400];
    char at[120]; // where the last walk over tables ended
};
const struct fabric *plan_of(struct rng *rng, const char **ret_name);
const struct node *node_of_port(const struct storm *st, uint32_t p);
uint64_t guid_of_port(const struct storm *st, uint32_t p);
bool is_switch(const struct storm *st, uint32_t node);
uint32_t port_at(const struct storm *st, uint32_t node, unsigned num);
bool carries(const struct storm *st, uint32_t p);
void find_live(struct storm *st);
void storm_model(struct storm *st);
const struct fabric *live_graph(const struct storm *st);

#endif
