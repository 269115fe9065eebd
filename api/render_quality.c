// SPDX-License-Identifier: Apache-2.0
// Figures of the tables in force. They are computed by a job when somebody asks, and kept until the fabric or
// its tables change; then they are those of the tables before.
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "api/compute.h"
#include "api/quality.h"

struct route_quality_row {
    const char *state, *engine, *now, *ideal, *last;
    int64_t at;
};
#define RQ(f) offsetof(struct route_quality_row, f)
static const char *const states[] = {"computing", "ready", NULL};
static const struct field route_quality_fields[] = {
    {.name = "state",
     .type = FIELD_STR,
     .at = RQ(state),
     "computing: ask again, figures are null so far",
     .name_of = states},
    {.name = "engine", .type = FIELD_STR, .at = RQ(engine), "what made the tables"},
    {.name = "computed_at", .type = FIELD_TIME, .at = RQ(at), "when the figures were made", .null = true},
    {.name = "quality",
     .type = FIELD_RAW,
     .at = RQ(now),
     "of the tables in force",
     &schema_quality,
     .null = true},
    {.name = "ideal",
     .type = FIELD_RAW,
     .at = RQ(ideal),
     "of the ideal tables, with all of the blueprint there",
     &schema_quality,
     .null = true},
    {.name = "last",
     .type = FIELD_RAW,
     .at = RQ(last),
     "of the tables before these; null when nobody asked for their figures while they were in force",
     &schema_quality,
     .null = true},
    {0},
};
const struct schema schema_route_quality = {.name = "route_quality",
                                            "How well the tables in force spread traffic",
                                            sizeof(struct route_quality_row),
                                            route_quality_fields};

static void forget(struct view *v)
{
    fabric_unref(v->quality.f);
    tables_unref(v->quality.t);
    v->quality.f = NULL;
    v->quality.t = NULL;
    free(v->quality.now);
    v->quality.now = NULL;
}

static void forget_ideal(struct view *v)
{
    fabric_unref(v->quality.ideal_f);
    tables_unref(v->quality.ideal_t);
    v->quality.ideal_f = NULL;
    v->quality.ideal_t = NULL;
    free(v->quality.ideal);
    v->quality.ideal = NULL;
}

void quality_changed(struct view *v)
{
    const struct fabric_tables *t = view_tables(v), *ideal = NULL;
    const struct fabric *ideal_f = NULL;
    if (v->src->sm != NULL)
        sm_ideal_tables(v->src->sm, &ideal_f, &ideal);
    if (v->quality.ideal_t != NULL && (v->quality.ideal_t != ideal || v->quality.ideal_f != ideal_f))
        forget_ideal(v);
    if (v->quality.f == NULL || (v->quality.f == v->f && v->quality.t == t))
        return;
    if (v->quality.t != t) {
        free(v->quality.last);
        v->quality.last = v->quality.now;
        v->quality.now = NULL;
    }
    forget(v);
}

void quality_done(struct view *v)
{
    forget(v);
    forget_ideal(v);
    free(v->quality.last);
}

void quality_rated(struct view *v, struct computation *c)
{
    quality_changed(v);
    if (c->tables == v->quality.t && c->f == v->quality.f) {
        free(v->quality.now);
        v->quality.now = buf_take(&c->result);
        v->quality.at_ns = wall_now_ns();
    }
    if (c->ideal != NULL && c->ideal == v->quality.ideal_t) {
        free(v->quality.ideal);
        v->quality.ideal = buf_take(&c->ideal_result);
    }
}

// False with an answer when it cannot be.
static bool start(struct request *r, struct view *v)
{
    struct computation c = {.tables = tables_ref(view_tables(v))};
    const struct fabric_tables *ideal;
    const struct fabric *ideal_f;
    if (v->quality.ideal_t == NULL && sm_ideal_tables(v->src->sm, &ideal_f, &ideal)) {
        v->quality.ideal_t = tables_ref(ideal);
        v->quality.ideal_f = fabric_ref(ideal_f);
    }
    if (v->quality.ideal_t != NULL && v->quality.ideal == NULL) {
        c.ideal = tables_ref(v->quality.ideal_t);
        c.ideal_f = fabric_ref(v->quality.ideal_f);
    }
    v->quality.f = fabric_ref(v->f);
    v->quality.t = tables_ref(c.tables);
    if (jobs_rate(r, v, &c))
        return true;
    forget(v);
    return false;
}

void get_route_quality(struct request *r)
{
    struct view *v = view_of(r);
    if (v == NULL)
        return;
    if (view_tables(v) == NULL) {
        answer_problem(
            r, 409,
            "fabric %s has no routes in force; POST to route-computations computes and rates routes "
            "for it",
            v->src->name);
        return;
    }
    quality_changed(v);
    if (v->quality.f == NULL && !start(r, v))
        return;
    bool ready = v->quality.now != NULL;
    answer_struct(r, 200, &schema_route_quality,
                  &(struct route_quality_row){.state = states[ready],
                                              .engine = v->quality.t->engine,
                                              .at = ready ? v->quality.at_ns : 0,
                                              .now = v->quality.now,
                                              .ideal = ready ? v->quality.ideal : NULL,
                                              .last = ready ? v->quality.last : NULL});
}
