// SPDX-License-Identifier: Apache-2.0
#include "routing/quality.h"

#include "routing/quality_priv.h"

const char *quality_dir_name(enum quality_dir d)
{
    switch (d) {
    case QUALITY_UP:
        return "up";
    case QUALITY_DOWN:
        return "down";
    case QUALITY_SIDE:
        return "side";
    }
    return "?";
}

void quality_spread(struct par *par, uint32_t n, void (*task)(void *arg, unsigned i), void *arg)
{
    if (par) {
        par->run(par, n, task, arg);
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        task(arg, i);
}

struct quality_link quality_link_of(const struct qgraph *g, uint32_t channel, uint64_t load)
{
    if (channel == ID_NONE)
        return (struct quality_link){.node = ID_NONE};
    return (struct quality_link){
        .node = g->node[channel / g->stride], .port = (uint8_t)(channel % g->stride), .load = load};
}

static void absent(struct route_quality *r, const char *why)
{
    r->same_rail_shift.absent = r->slot_shift.absent = r->ring.absent = why;
    r->shift.absent = r->permutation.absent = r->alltoall.absent = why;
}

void route_quality(const struct fabric *f, const struct fabric_tables *t, const struct quality_opts *o,
                   struct route_quality *ret)
{
    *ret = (struct route_quality){.hosts = 0};
    if (t->num_switches != f->num_switches) {
        absent(ret, "the tables are of another fabric");
        return;
    }
    struct arena *a = arena_new();
    struct qgraph g;
    qgraph_build(f, t, a, &g);
    ret->hosts = g.num_ends;
    ret->rails = g.num_rails;
    ret->sus = g.num_sus;
    quality_patterns(&g, o, a, ret);
    quality_alltoall(&g, o->par, a, &ret->alltoall);
    if (g.num_rails == 0)
        ret->same_rail_shift.absent = "no rails are known";
    if (g.num_sus < 2) {
        ret->ring.absent = ret->slot_shift.absent =
            g.num_sus == 0 ? "no rails are known" : "the hosts are one scalable unit";
    }
    arena_free(a);
}
