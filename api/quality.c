// SPDX-License-Identifier: Apache-2.0
#include "api/quality.h"

#include <math.h>
#include <stdlib.h>

#include "lib/mono.h"
#include "lib/xalloc.h"
#include "routing/quality.h"

#define LINK(f) offsetof(struct quality_link_row, f)
static const struct field link_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = LINK(guid), "NodeGUID of the switch that sends over it"},
    {.name = "name", .type = FIELD_STR, .at = LINK(name), "its description"},
    {.name = "port", .type = FIELD_INT, .at = LINK(port), "its port"},
    {.name = "to_guid", .type = FIELD_GUID, .at = LINK(to_guid), "NodeGUID of the far end"},
    {.name = "to", .type = FIELD_STR, .at = LINK(to), "its description"},
    {.name = "to_port", .type = FIELD_INT, .at = LINK(to_port), "its port"},
    {.name = "load", .type = FIELD_INT, .at = LINK(load), "flows on it"},
    {0},
};
const struct schema schema_quality_link = {
    .name = "quality_link", "A cable with its load", sizeof(struct quality_link_row), link_fields};

struct flows_row {
    const char *absent;
    int64_t patterns, flows, failed, max_load;
    double mean, worst, worst_flow;
    const struct quality_link_row *link;
};
#define FLOWS(f) offsetof(struct flows_row, f)
static const struct field flows_fields[] = {
    {.name = "mean",
     .type = FIELD_NUM,
     .at = FLOWS(mean),
     "bandwidth of a flow, 1 where it meets no other; mean over flows and patterns",
     .null = true},
    {.name = "worst", .type = FIELD_NUM, .at = FLOWS(worst), "mean of the worst pattern", .null = true},
    {.name = "worst_flow", .type = FIELD_NUM, .at = FLOWS(worst_flow), "of the worst flow", .null = true},
    {.name = "max_load",
     .type = FIELD_INT,
     .at = FLOWS(max_load),
     "most flows on one cable between switches, in one direction",
     .null = true},
    {.name = "patterns", .type = FIELD_INT, .at = FLOWS(patterns), "patterns looked at"},
    {.name = "flows", .type = FIELD_INT, .at = FLOWS(flows), "flows of all of them that arrive"},
    {.name = "failed", .type = FIELD_INT, .at = FLOWS(failed), "flows that do not"},
    {.name = "absent",
     .type = FIELD_STR,
     .at = FLOWS(absent),
     "why the fabric has no such pattern; null when it has",
     .null = true},
    {.name = "link",
     .type = FIELD_OBJ,
     .at = FLOWS(link),
     "the fullest cable; null when no flows meet",
     &schema_quality_link,
     .null = true},
    {0},
};
static const struct schema schema_quality_flows = {
    .name = "quality_flows", "What flows of a pattern get", sizeof(struct flows_row), flows_fields};

struct level_row {
    const char *direction;
    int64_t tier, channels, unused, max;
    double mean, max_over_mean;
};
#define LEVEL(f) offsetof(struct level_row, f)
static const char *const directions[] = {"up", "down", "side", NULL};
static const struct field level_fields[] = {
    {.name = "tier",
     .type = FIELD_INT,
     .at = LEVEL(tier),
     "tier of the lower end, leaves 0; null when not known",
     .null = true},
    {.name = "direction",
     .type = FIELD_STR,
     .at = LEVEL(direction),
     "side: within a tier, or not known",
     .name_of = directions},
    {.name = "channels", .type = FIELD_INT, .at = LEVEL(channels), "cables of this direction"},
    {.name = "unused", .type = FIELD_INT, .at = LEVEL(unused), "of these, without any flow"},
    {.name = "max", .type = FIELD_INT, .at = LEVEL(max), "flows on the fullest"},
    {.name = "mean", .type = FIELD_NUM, .at = LEVEL(mean), "flows on one, mean"},
    {.name = "max_over_mean", .type = FIELD_NUM, .at = LEVEL(max_over_mean), "1 is an even spread"},
    {0},
};
static const struct schema schema_quality_level = {
    .name = "quality_level", "All-to-all between two tiers", sizeof(struct level_row), level_fields};

struct alltoall_row {
    const char *absent;
    int64_t flows, failed, max;
    double mean_load, max_over_mean, mean, worst;
    const struct quality_link_row *link;
    struct items levels;
};
#define A2A(f) offsetof(struct alltoall_row, f)
static const struct field alltoall_fields[] = {
    {.name = "max_over_mean",
     .type = FIELD_NUM,
     .at = A2A(max_over_mean),
     "flows on the fullest cable over the mean of its level; the greatest of the levels",
     .null = true},
    {.name = "max",
     .type = FIELD_INT,
     .at = A2A(max),
     "flows on the fullest cable (edge-forwarding index)",
     .null = true},
    {.name = "mean_load",
     .type = FIELD_NUM,
     .at = A2A(mean_load),
     "flows on a cable, mean of all",
     .null = true},
    {.name = "mean",
     .type = FIELD_NUM,
     .at = A2A(mean),
     "bandwidth of a flow, 1 where only its host's own cable limits it; mean over flows",
     .null = true},
    {.name = "worst",
     .type = FIELD_NUM,
     .at = A2A(worst),
     "of the worst flow: what each host can send when all send evenly",
     .null = true},
    {.name = "flows", .type = FIELD_INT, .at = A2A(flows), "pairs of hosts that are reached"},
    {.name = "failed", .type = FIELD_INT, .at = A2A(failed), "pairs that are not"},
    {.name = "absent", .type = FIELD_STR, .at = A2A(absent), "why there are no figures", .null = true},
    {.name = "link",
     .type = FIELD_OBJ,
     .at = A2A(link),
     "the fullest cable",
     &schema_quality_link,
     .null = true},
    {.name = "levels", .type = FIELD_LIST, .at = A2A(levels), "by tier and direction", &schema_quality_level},
    {0},
};
static const struct schema schema_quality_alltoall = {
    .name = "quality_alltoall", "Every host to every other", sizeof(struct alltoall_row), alltoall_fields};

struct quality_row {
    const struct flows_row *same_rail_shift, *slot_shift, *ring, *shift, *permutation;
    const struct alltoall_row *alltoall;
    int64_t hosts, rails, units;
    double seconds;
};
#define QUALITY(f) offsetof(struct quality_row, f)
static const struct field quality_fields[] = {
    {.name = "same_rail_shift",
     .type = FIELD_OBJ,
     .at = QUALITY(same_rail_shift),
     "each host to one further on its rail, by 24 distances",
     &schema_quality_flows},
    {.name = "slot_shift",
     .type = FIELD_OBJ,
     .at = QUALITY(slot_shift),
     "each host to the next scalable unit on its rail, by all numbers of slots",
     &schema_quality_flows},
    {.name = "ring",
     .type = FIELD_OBJ,
     .at = QUALITY(ring),
     "each host to its slot in the next scalable unit on its rail",
     &schema_quality_flows},
    {.name = "alltoall",
     .type = FIELD_OBJ,
     .at = QUALITY(alltoall),
     "every host to every other",
     &schema_quality_alltoall},
    {.name = "shift",
     .type = FIELD_OBJ,
     .at = QUALITY(shift),
     "each host to one further, by 24 random distances",
     &schema_quality_flows},
    {.name = "permutation",
     .type = FIELD_OBJ,
     .at = QUALITY(permutation),
     "8 random permutations of all hosts",
     &schema_quality_flows},
    {.name = "hosts", .type = FIELD_INT, .at = QUALITY(hosts), "adapter ports that send"},
    {.name = "rails", .type = FIELD_INT, .at = QUALITY(rails), "rails of theirs"},
    {.name = "units", .type = FIELD_INT, .at = QUALITY(units), "scalable units of a rail, at most"},
    {.name = "seconds", .type = FIELD_NUM, .at = QUALITY(seconds), "time of these figures"},
    {0},
};
const struct schema schema_quality = {
    .name = "quality", "How well tables spread traffic", sizeof(struct quality_row), quality_fields};

// --- filling them ---

const struct quality_link_row *quality_link_fill(const struct fabric *f, const struct quality_link *l,
                                                 struct quality_link_row *row)
{
    if (l->node == ID_NONE)
        return NULL;
    const struct node *n = &f->node[l->node];
    const struct port *far = fabric_port(f, f->port[n->first_port + l->port].peer);
    const struct node *z = fabric_node(f, far->node);
    *row = (struct quality_link_row){.guid = n->guid,
                                     .name = fabric_desc(f, n),
                                     .port = l->port,
                                     .to_guid = z->guid,
                                     .to = fabric_desc(f, z),
                                     .to_port = far->num,
                                     .load = (int64_t)l->load};
    return row;
}

struct flows_space {
    struct flows_row row;
    struct quality_link_row link;
};

static const struct flows_row *fill_flows(const struct fabric *f, const struct quality_flows *q,
                                          struct flows_space *s)
{
    if (q->absent) {
        s->row = (struct flows_row){
            .absent = q->absent, .max_load = NO_INT, .mean = NAN, .worst = NAN, .worst_flow = NAN};
        return &s->row;
    }
    s->row = (struct flows_row){.patterns = q->patterns,
                                .flows = (int64_t)q->flows,
                                .failed = (int64_t)q->failed,
                                .max_load = q->max_load,
                                .mean = q->mean,
                                .worst = q->worst,
                                .worst_flow = q->worst_flow,
                                .link = quality_link_fill(f, &q->link, &s->link)};
    return &s->row;
}

struct alltoall_space {
    struct alltoall_row row;
    struct quality_link_row link;
    struct level_row level[QUALITY_LEVELS_MAX];
};

static const struct alltoall_row *fill_alltoall(const struct fabric *f, const struct quality_alltoall *q,
                                                struct alltoall_space *s)
{
    if (q->absent) {
        s->row = (struct alltoall_row){.absent = q->absent,
                                       .max = NO_INT,
                                       .mean_load = NAN,
                                       .max_over_mean = NAN,
                                       .mean = NAN,
                                       .worst = NAN};
        return &s->row;
    }
    for (uint32_t i = 0; i < q->num_levels; i++) {
        const struct quality_level *v = &q->level[i];
        s->level[i] = (struct level_row){.direction = quality_dir_name(v->dir),
                                         .tier = v->tier == TIER_NONE ? NO_INT : v->tier,
                                         .channels = v->channels,
                                         .unused = v->unused,
                                         .max = (int64_t)v->max,
                                         .mean = v->mean,
                                         .max_over_mean = v->max_over_mean};
    }
    s->row = (struct alltoall_row){.flows = (int64_t)q->flows,
                                   .failed = (int64_t)q->failed,
                                   .max = (int64_t)q->max,
                                   .mean_load = q->mean_load,
                                   .max_over_mean = q->max_over_mean,
                                   .mean = q->mean,
                                   .worst = q->worst,
                                   .link = quality_link_fill(f, &q->link, &s->link),
                                   .levels = {s->level, q->num_levels}};
    return &s->row;
}

struct space {
    struct route_quality q;
    struct flows_space same_rail_shift, slot_shift, ring, shift, permutation;
    struct alltoall_space alltoall;
};

#define BRIEF(f) offsetof(struct quality_brief, f)
static const struct field brief_fields[] = {
    {.name = "same_rail_shift",
     .type = FIELD_NUM,
     .at = BRIEF(same_rail_shift),
     "mean bandwidth of a flow in shifts along rails, 1 where it meets no other",
     .null = true},
    {.name = "ring", .type = FIELD_NUM, .at = BRIEF(ring), "the same in the ring over units", .null = true},
    {.name = "shift", .type = FIELD_NUM, .at = BRIEF(shift), "the same in shifts of all hosts", .null = true},
    {.name = "alltoall",
     .type = FIELD_NUM,
     .at = BRIEF(alltoall),
     "the same when every host sends to every other, beside what its own cable leaves it",
     .null = true},
    {.name = "alltoall_max",
     .type = FIELD_INT,
     .at = BRIEF(alltoall_max),
     "flows on the fullest cable then",
     .null = true},
    {0},
};
const struct schema schema_quality_brief = {.name = "quality_brief",
                                            "How well tables spread traffic, in short",
                                            sizeof(struct quality_brief),
                                            brief_fields};

void quality_brief_of(const struct route_quality *q, struct quality_brief *ret)
{
    *ret = (struct quality_brief){
        .same_rail_shift = q->same_rail_shift.absent ? NAN : q->same_rail_shift.mean,
        .ring = q->ring.absent ? NAN : q->ring.mean,
        .shift = q->shift.absent ? NAN : q->shift.mean,
        .alltoall = q->alltoall.absent ? NAN : q->alltoall.mean,
        .alltoall_max = q->alltoall.absent ? NO_INT : (int64_t)q->alltoall.max,
    };
}

void quality_rate(const struct fabric *f, const struct fabric_tables *t, struct par *par, struct buf *b)
{
    struct route_quality *q = xcalloc(1, sizeof(*q));
    quality_rate_keep(f, t, par, q, b);
    free(q);
}

void quality_rate_keep(const struct fabric *f, const struct fabric_tables *t, struct par *par,
                       struct route_quality *ret, struct buf *b)
{
    struct space *s = xcalloc(1, sizeof(*s));
    struct quality_opts o = {.par = par};
    mono_t began = mono_now();

    route_quality(f, t, &o, &s->q);
    json_put_struct(b, &schema_quality,
                    &(struct quality_row){
                        .same_rail_shift = fill_flows(f, &s->q.same_rail_shift, &s->same_rail_shift),
                        .slot_shift = fill_flows(f, &s->q.slot_shift, &s->slot_shift),
                        .ring = fill_flows(f, &s->q.ring, &s->ring),
                        .alltoall = fill_alltoall(f, &s->q.alltoall, &s->alltoall),
                        .shift = fill_flows(f, &s->q.shift, &s->shift),
                        .permutation = fill_flows(f, &s->q.permutation, &s->permutation),
                        .hosts = s->q.hosts,
                        .rails = s->q.rails,
                        .units = s->q.sus,
                        .seconds = mono_seconds(mono_sub(mono_now(), began)),
                    });
    *ret = s->q;
    free(s);
}

// --- in words ---

void quality_say_count(struct buf *b, uint64_t n)
{
    if (n >= 1000)
        quality_say_count(b, n / 1000);
    buf_printf(b, n >= 1000 ? ",%03u" : "%u", (unsigned)(n % 1000));
}

void quality_say_figure(struct buf *b, double x)
{
    if (x >= 1000 && x < 1e15)
        quality_say_count(b, (uint64_t)(x + 0.5));
    else
        buf_printf(b, "%.4g", x);
}
