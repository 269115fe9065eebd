// SPDX-License-Identifier: Apache-2.0
// A route computation on an edited copy of a snapshot: what a worker runs. No state of the API is seen here.
#ifndef WEFT_API_COMPUTE_H
#define WEFT_API_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "api/elements.h"
#include "api/quality.h"
#include "api/schema.h"
#include "fabric/fabric.h"
#include "lib/err.h"
#include "routing/route.h"
#include "sm/drain.h"

#define COMPUTE_HOSTS_MAX 20000
#define COMPUTE_BODY_MAX (2u << 20) // bytes of such a request: as many names
#define COMPUTE_LFT_MAX (64u << 20)

// What tables in force are made of (sm_get_routing()), with references and copies of what is borrowed there.
struct compute_routing {
    const struct fabric *blueprint, *made_for; // NULL: there is none, all is computed
    struct route_result ideal;
    struct route_opts opts;
    uint64_t *roots; // of opts
    char *file;
    struct sm_drain_place *drain; // in force
    size_t num_drains;
};

struct computation {
    const struct fabric *f; // reference held by whoever owns the computation
    enum route_engine engine;
    char **fail; // elements.h
    size_t num_fail;
    bool lft;       // tables as text in the result
    char *lft_path; // or into this file; NULL
    // Instead: rates these tables of f, and the ideal ones of their fabric where there are; references.
    const struct fabric_tables *tables, *ideal;
    const struct fabric *ideal_f;
    // Instead: rates what a job on these hosts meets; on `tables`, or where there are none, on computed ones.
    // With `fail` on what these become.
    char **host;
    size_t num_hosts;
    // Instead: what would become of `tables`, or where there are none, of computed ones (whatif.h).
    bool whatif;
    char **drain, **add;
    size_t num_drain, num_add;
    struct compute_routing routing; // with `tables`
    // out
    struct err err;    // code 0: there is a result
    struct buf result; // JSON of schema_computation_result; of schema_quality when tables were rated, of
                       // schema_job_quality for a job, of schema_whatif
    struct buf ideal_result;                 // JSON of schema_quality
    struct quality_brief brief, ideal_brief; // when tables were rated
};
extern const struct schema schema_computation_result, schema_verify;

struct compute_verify { // a proof as a row of schema_verify; counterexample is the proof's
    bool ok, credit_loop;
    double seconds;
    int64_t pairs, disconnected, unreached, max_hops;
    const char *counterexample;
};
void compute_verify(const struct fabric *f, const struct fabric_tables *t, const struct verify_opts *o,
                    struct route_proof *proof, struct compute_verify *ret);
struct compute_changed {
    int64_t entries, blocks, switches, paths;
};
// Per node of f, which is what x makes of its fabric: nothing is written to it, as it fails or cannot be
// reached. The caller's to free.
struct reach_change;
bool *compute_unwritten(const struct fabric *f, const struct fabric_edit *x, const struct reach_change *r);
// Adds what differs, but for paths. Of the same switches; tables that nothing is written to count for
// nothing.
void compute_compare(const struct fabric *f, const struct fabric_tables *a, const struct fabric_tables *b,
                     const bool *unwritten, struct compute_changed *ret);

void compute_run(struct computation *c, struct par *par); // any thread
void compute_done(struct computation *c);                 // frees all but f

// The pieces. A snapshot in which every connected end port has a LID of its own: the same one with a
// reference more is never returned, so the caller frees what it gets; NULL when there was nothing to do, or
// with *e set when LIDs run out. LIDs of `reserved` are left alone (NULL: none).
const struct fabric *compute_number(const struct fabric *f, const struct fabric *reserved, struct err *e);
// The snapshot without these elements; NULL and *e. What was taken out is in x, which is made here and ended
// by the caller, also after an error.
const struct fabric *compute_fail(const struct fabric *f, char *const *fail, size_t n, struct fabric_edit *x,
                                  struct err *e);

#endif
