// SPDX-License-Identifier: Apache-2.0
// What would become of a fabric: reachability, proof, quality, and what would be written, for failures,
// drained cables and additions. A function of snapshots and tables; nothing touches the fabric. Any thread.
//
// Before: the tables in force, or for a fabric without any (a saved one) those computed for it. After: what
// the manager would come to when it finds the fabric so (route_repair()), from the same blueprint and ideal.
// With additions also what comes of taking them into the blueprint and computing the ideal anew.
//
// A drained cable is alive: it carries only what has no other way.
#ifndef WEFT_API_WHATIF_H
#define WEFT_API_WHATIF_H

#include "api/compute.h"
#include "routing/quality.h"

extern const struct schema schema_whatif;

// Where questions begin. What it points to is the computation's or its own.
struct whatif_base {
    const struct fabric *f;             // as it is, every end port with a LID
    const struct fabric_tables *tables; // in force, or computed
    const struct fabric *blueprint;     // all that is meant to be there
    const struct fabric *made_for;      // of which the ideal is
    struct route_result ideal;          // its tables are those of made_for
    struct route_opts opts;
    struct route_base *base;
    bool *drained;                 // in force, per port of f; NULL: none
    const struct fabric *numbered; // f where it was made here
    bool computed;                 // ideal was made here
    double seconds;                // of that
};
int whatif_base_init(struct whatif_base *b, const struct computation *c, struct par *par, struct err *e);
// Both ends of each cable that is drained already, per port of f; NULL: none. The caller's to free.
bool *whatif_in_force(const struct fabric *f, const struct compute_routing *r);
void whatif_base_done(struct whatif_base *b); // also one whose init failed, or {0}
// The tables that the manager would come to on `live`; drained: per port of it, NULL: none.
int whatif_repair(const struct whatif_base *b, const struct fabric *live, const bool *drained,
                  struct par *par, struct route_result *ret, struct err *e);

// Mean bandwidth of a pattern's flows, over those that there were before: what fails counts as 0. NAN: the
// fabric has no such pattern.
#define WHATIF_MEANS 6
struct whatif_mean {
    const char *pattern;
    double before, after, accepted;
    int64_t failed; // flows of `after` that do not arrive
};
// accepted: NULL where there is none. ends_lost: flows that are missing beside `before` are so because their
// ends are cut off; else these failed themselves and nobody misses them.
void whatif_means(const struct route_quality *before, const struct route_quality *after,
                  const struct route_quality *accepted, bool ends_lost, struct whatif_mean ret[WHATIF_MEANS]);

// Fills c->result, or c->err.
void whatif_run(struct computation *c, struct par *par);

#endif
