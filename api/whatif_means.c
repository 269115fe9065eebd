// SPDX-License-Identifier: Apache-2.0
// Mean bandwidth of one question's moments so that they compare: over the same flows. What fails, or has lost
// its end, gets nothing and counts as that.
#include <math.h>

#include "api/whatif.h"

struct figures {
    const char *absent;
    uint64_t flows, failed;
    double mean, sum;
};

static struct figures of_flows(const struct quality_flows *q)
{
    return (struct figures){q->absent, q->flows, q->failed, q->mean, q->sum};
}

static struct figures of(const struct route_quality *q, unsigned pattern)
{
    switch (pattern) {
    case 0:
        return of_flows(&q->same_rail_shift);
    case 1:
        return of_flows(&q->slot_shift);
    case 2:
        return of_flows(&q->ring);
    case 3:
        return of_flows(&q->shift);
    case 4:
        return of_flows(&q->permutation);
    default:
        return (struct figures){q->alltoall.absent, q->alltoall.flows, q->alltoall.failed, q->alltoall.mean,
                                q->alltoall.mean * (double)q->alltoall.flows};
    }
}

static double mean(const struct figures *x, uint64_t lost)
{
    if (x->absent)
        return lost > 0 ? 0 : NAN;
    return lost > 0 ? x->sum / (double)(x->flows + lost) : x->mean;
}

// Flows of `before` that do not arrive any more.
static uint64_t lost(const struct figures *before, const struct figures *x, bool ends_lost)
{
    uint64_t had = before->absent ? 0 : before->flows + before->failed;
    uint64_t has = x->absent ? 0 : x->flows + x->failed, failed = x->absent ? 0 : x->failed;
    return failed + (ends_lost && had > has ? had - has : 0);
}

void whatif_means(const struct route_quality *before, const struct route_quality *after,
                  const struct route_quality *accepted, bool ends_lost, struct whatif_mean ret[WHATIF_MEANS])
{
    static const char *const names[WHATIF_MEANS] = {"same_rail_shift", "slot_shift",  "ring",
                                                    "shift",           "permutation", "alltoall"};
    for (unsigned i = 0; i < WHATIF_MEANS; i++) {
        struct figures b = of(before, i), a = of(after, i), c = {0};
        uint64_t a_lost = lost(&b, &a, ends_lost);
        ret[i] = (struct whatif_mean){.pattern = names[i],
                                      .before = mean(&b, b.absent ? 0 : b.failed),
                                      .after = mean(&a, a_lost),
                                      .accepted = NAN,
                                      .failed = (int64_t)a_lost};
        if (accepted != NULL) {
            c = of(accepted, i);
            ret[i].accepted = mean(&c, lost(&b, &c, ends_lost));
        }
    }
}
