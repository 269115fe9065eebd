// SPDX-License-Identifier: Apache-2.0
// A route computation on an edited copy of a snapshot: what a worker runs. No state of the API is seen here.
#ifndef WEFT_API_COMPUTE_H
#define WEFT_API_COMPUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "api/schema.h"
#include "fabric/fabric.h"
#include "lib/err.h"
#include "routing/route.h"

#define COMPUTE_FAIL_MAX 1000
#define COMPUTE_HOSTS_MAX 20000
#define COMPUTE_LFT_MAX (64u << 20)

struct computation {
    const struct fabric *f; // reference held by whoever owns the computation
    enum route_engine engine;
    char **fail; // elements: "node", "node[port]", "random:<percent>:<seed>"
    size_t num_fail;
    bool lft;       // tables as text in the result
    char *lft_path; // or into this file; NULL
    // Instead: rates these tables of f, and the ideal ones of their fabric where there are; references.
    const struct fabric_tables *tables, *ideal;
    const struct fabric *ideal_f;
    // Instead: rates what a job on these hosts meets; on `tables`, or where there are none, on computed ones.
    char **host;
    size_t num_hosts;
    // out
    struct err err;    // code 0: there is a result
    struct buf result; // JSON of schema_computation_result; of schema_quality when tables were rated, of
                       // schema_job_quality for a job
    struct buf ideal_result; // JSON of schema_quality
};
extern const struct schema schema_computation_result;

void compute_run(struct computation *c, struct par *par); // any thread
void compute_done(struct computation *c);                 // frees all but f

// The pieces, for tests. A snapshot in which every connected end port has a LID of its own: the same one with
// a reference more is never returned, so the caller frees what it gets; NULL when there was nothing to do, or
// with *e set when LIDs run out.
const struct fabric *compute_number(const struct fabric *f, struct err *e);
// The snapshot without these elements; NULL and *e. failed: per node, set where the whole node fails.
const struct fabric *compute_fail(const struct fabric *f, char *const *fail, size_t n, bool *failed,
                                  struct err *e);

#endif
