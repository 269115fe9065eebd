// SPDX-License-Identifier: Apache-2.0
// Quality figures as JSON. No state of the API is seen here; any thread.
#ifndef WEFT_API_QUALITY_H
#define WEFT_API_QUALITY_H

#include "api/schema.h"
#include "fabric/tables.h"
#include "lib/pool.h"

extern const struct schema schema_quality;

struct quality_link_row {
    uint64_t guid, to_guid;
    const char *name, *to;
    int64_t port, to_port, load;
};
extern const struct schema schema_quality_link;
struct quality_link;
struct route_quality;
// NULL when no cable is named; else row.
const struct quality_link_row *quality_link_fill(const struct fabric *f, const struct quality_link *l,
                                                 struct quality_link_row *row);

// Rates tables of f and appends the figures, an object of schema_quality.
void quality_rate(const struct fabric *f, const struct fabric_tables *t, struct par *par, struct buf *b);
// The same that leaves the figures too.
void quality_rate_keep(const struct fabric *f, const struct fabric_tables *t, struct par *par,
                       struct route_quality *ret, struct buf *b);

// The figures that say most. NAN, NO_INT: the fabric has no such pattern.
struct quality_brief {
    double same_rail_shift, ring, shift, alltoall; // mean bandwidth of a flow
    int64_t alltoall_max;                          // flows on the fullest cable
};
extern const struct schema schema_quality_brief;
void quality_brief_of(const struct route_quality *q, struct quality_brief *ret);

// What a job on hosts[0..n-1], in the order of its ranks, meets: an object of schema_job_quality. A host is
// named as its adapters are ("gpu-0412" of "gpu-0412 mlx5_3"), or by what resolve_element() takes. 0, or
// -ENOENT, -EEXIST, -EINVAL and *e with the host in e->where.
extern const struct schema schema_job_quality;
struct err;
int quality_rate_job(const struct fabric *f, const struct fabric_tables *t, char *const *hosts, size_t n,
                     struct par *par, struct buf *b, struct err *e);

// 18,930; and a mean or so many flows: 0.9983, 18,930.
void quality_say_count(struct buf *b, uint64_t n);
void quality_say_figure(struct buf *b, double x);

#endif
