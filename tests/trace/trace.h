// SPDX-License-Identifier: Apache-2.0
// Labelled traces: what the counters of a fabric look like, sweep by sweep, while links go bad in known ways.
// Made from descriptions of the faults, not from the rules that look for them: nothing of telemetry/ but the
// table's form is used here, and its detectors see nothing but the table.
//
// A fabric of a topology generator's name; each link has a life: traffic in phases of jobs, corrected symbols
// at a rate of its own, now and then an error. Cases are strewn over links and time, at most one on a link at
// once. What a case does to counters and states follows from what happens to the cable or the device:
//
//   flap       the link drops for 25-60 s, ceil(severity x 3) times within 12 h; both ends count LinkDowned
//   recover    the link trains again by itself, severity x 5 times a minute, for 10 min
//   drop       the link is down for severity x 4 min
//   ber        errors that FEC does not correct, at severity x 2.88 in 12 min at 400 Gb/s, for 3 h, on one
//   end slow       the same at severity x 3 in 125 min, for 12 h climb      corrected symbols rise within 12
//   h, after a day of quiet, to severity x the greater of ten times
//              what they were and a ratio of 1e-7, and stay for 3 h
//   reboot     a host goes away for 2-5 min: its switch counts LinkDowned, its own counters begin anew
//   incast     the switch's port to a host waits for severity x 5 % of the time, for 12 min
//   spine      a switch of the second tier dies for 30 min with all its links
//
// Readings are missing (`missing` of them) and late (up to 3 s). Deterministic from a seed.
#ifndef WEFT_TESTS_TRACE_TRACE_H
#define WEFT_TESTS_TRACE_TRACE_H

#include "fabric/fabric.h"
#include "telemetry/table.h"

enum trace_kind {
    TRACE_FLAP,
    TRACE_RECOVER,
    TRACE_DROP,
    TRACE_BER,
    TRACE_SLOW,
    TRACE_CLIMB,
    TRACE_REBOOT,
    TRACE_INCAST,
    TRACE_SPINE,
    TRACE_KINDS
};
extern const char *const trace_kind_names[TRACE_KINDS];
// What has to be said of it: "L02"; and what may be said of it beside that, blanks between.
extern const char *const trace_expected[TRACE_KINDS];
// Whether cutting the link off is right.
extern const bool trace_bad_cable[TRACE_KINDS];

struct trace_case {
    enum trace_kind kind;
    double severity;
    uint32_t slot;       // one end of the link; of a spine: any of its ports
    uint32_t node;       // TRACE_SPINE: the switch; else ID_NONE
    int64_t from, until; // loop time: what happens; TRACE_SLOW and others: it must be said by until + 10 min
};

struct trace_opts {
    uint64_t seed;
    double missing;     // of readings, 0..1
    double severity[4]; // 0 ends
    unsigned cases;     // a kind and severity
    int64_t duration_ns;
    int64_t interval_ns; // 10 s
};
struct trace;
// The fabric is borrowed. NULL when the cases do not fit into duration and fabric.
struct trace *trace_new(const struct fabric *f, const struct trace_opts *o);
void trace_free(struct trace *t);
const struct tele_table *trace_table(const struct trace *t);
const struct trace_case *trace_cases(const struct trace *t, uint32_t *ret_n); // by time
// The next sweep; false at the end. link() is told of every link that goes down or up in it, before.
bool trace_step(struct trace *t, void (*link)(void *arg, uint32_t slot, bool up, int64_t when), void *arg);
int64_t trace_now(const struct trace *t); // of the last sweep
// The case that goes on at the link of a slot, or ended less than `after` ago; NULL.
const struct trace_case *trace_case_at(const struct trace *t, uint32_t slot, int64_t after);

#endif
