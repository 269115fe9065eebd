// SPDX-License-Identifier: Apache-2.0
// Congestion on random fabrics: a fabric, an engine's tables, traffic whose root is known from the simulation
// of credits, counters of which some are missing or late, and what is found in them.
#ifndef WEFT_TESTS_WHOLE_CONGEST_RUNS_H
#define WEFT_TESTS_WHOLE_CONGEST_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "telemetry/congest.h"

enum runs_scenario {
    RUNS_RECEIVER,
    RUNS_INCAST,
    RUNS_TRUNK,     // a switch whose hosts have more to send than its cables carry
    RUNS_IMBALANCE, // one cable of several
    RUNS_SLOW_LINK,
    RUNS_NONE,
    RUNS_SCENARIOS,
};
const char *runs_scenario_name(enum runs_scenario s);

enum runs_missing {
    RUNS_ALL_READ,
    RUNS_NEVER,   // 30 % of the ports are never read
    RUNS_TIMEOUT, // each reading fails with 30 %
    RUNS_LATE,    // 15 % never, another 15 % of the readings come when the sweep has ended
    RUNS_DEVICES, // 30 % of the devices do not answer
    RUNS_MISSING,
};
const char *runs_missing_name(enum runs_missing m);

// Where several ports hold others up, each by itself, any of them is right that loses so much of what the one
// that loses most does. What the tree names beside its root does not count.
#define RUNS_ALSO 0.3

struct runs_result {
    bool came_off; // the simulation has the root that the scenario is about (or none); else there is no run
    bool named;    // some tree of a kind that is known
    bool right;    // its root is the true one; without a root: nothing is named
    enum congest_kind want, got;
    bool degraded;
    unsigned ports, held, trees;
    int64_t feed_ns; // of the slowest feed
    char text[400];  // what it was
};
// live: brought up by a manager, over switches that adapt; else tables are put into them.
void runs_one(enum runs_scenario s, enum runs_missing m, bool live, uint64_t seed, struct runs_result *ret);
extern bool runs_verbose;

// One large fabric with so many ports that wait: how long a feed takes. ns[0..1]: nobody waits yet; [2]:
// routes are looked up; then they are known.
struct runs_speed {
    uint32_t ports, held, trees;
    int64_t ns[6];
    int64_t loop_ns; // the longest of what the loop does itself, in one go; the rest is a thread's
};
void runs_speed(const char *name, unsigned held, struct runs_speed *ret);

#endif
