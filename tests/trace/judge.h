// SPDX-License-Identifier: Apache-2.0
// The health rules on a labelled trace, and what came of it: which faults were named by the right rule, what
// was named that is no fault, what it cost.
#ifndef WEFT_TESTS_TRACE_JUDGE_H
#define WEFT_TESTS_TRACE_JUDGE_H

#include "tests/trace/trace.h"

#define JUDGE_RULES 40

struct judge_false { // alarms on links that have nothing
    char rule[8];
    unsigned n, major;
};

struct judge {
    struct trace *trace; // borrowed
    const struct trace_case *cases;
    uint32_t num_cases;
    bool *found;    // [case] by a rule that is expected of it, from its begin until 10 minutes after its end
    int64_t *after; // [case] from its begin to that
    struct judge_false wrong[JUDGE_RULES];
    unsigned num_wrong;
    unsigned beside;                      // other rules than expected, on links with a fault
    unsigned isolated, isolated_good;     // links; of these with a good cable
    char first[400], first_isolated[400]; // the first false alarm and good cable, in words
    uint64_t sweeps;
    int64_t cost_ns; // of the detector alone
    bool *drained;   // [slot]
    bool *seen;      // [slot * alarm_num_rules + rule]: is raised now, so that it counts once
};
// Runs the trace to its end.
void judge_run(struct judge *j, struct trace *t);
void judge_done(struct judge *j);

#endif
