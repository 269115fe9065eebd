// SPDX-License-Identifier: Apache-2.0
// Figures of the tables in force. After a sweep that has changed tables a thread of its own rates them, which
// runs when nobody else wants the processor; where somebody asks before that, or after hosts have come or
// gone, a job does. They are kept until the tables change; then they are those of the tables before.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "api/compute.h"
#include "api/quality.h"
#include "lib/xalloc.h"

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
     "of the tables before these; null when these were not in force for long enough to be rated",
     &schema_quality,
     .null = true},
    {0},
};
const struct schema schema_route_quality = {.name = "route_quality",
                                            "How well the tables in force spread traffic",
                                            sizeof(struct route_quality_row),
                                            route_quality_fields};

#define SWEEPS 64 // whose figures are kept

struct quality {
    const struct fabric *f;            // what figures are of, or will be; NULL: it is another one now
    const struct fabric_tables *t;     // references
    uint64_t t_sweep;                  // the last one when t was looked at
    const struct fabric_tables *was_t; // what t was when it was to be rated; only compared
    const struct fabric *ideal_f;
    const struct fabric_tables *ideal_t;
    bool ready;               // `now` is of f and t
    char *now, *ideal, *last; // JSON; NULL: not known
    struct quality_brief now_brief, ideal_brief, last_brief;
    int64_t at_ns;
    const struct fabric_tables *looked_at; // by ratings_look(); a reference
    uint64_t sweep;                        // that has put them in force
    struct {
        uint64_t sweep;
        struct quality_brief brief;
    } of[SWEEPS]; // a ring, by id
};

static struct quality *of(struct view *v)
{
    if (v->quality == NULL)
        v->quality = xcalloc(1, sizeof(*v->quality));
    return v->quality;
}

static void forget_ideal(struct quality *q)
{
    fabric_unref(q->ideal_f);
    tables_unref(q->ideal_t);
    q->ideal_f = NULL;
    q->ideal_t = NULL;
    free(q->ideal);
    q->ideal = NULL;
}

// Whether tables that stand elsewhere in memory are the same all the same: no sweep since that one has
// changed any.
static bool same_since(const struct view *v, uint64_t sweep)
{
    struct sm_status st;
    const struct sm_sweep *s;
    unsigned i = 0;
    if (v->src->sm == NULL || sweep == 0)
        return false;
    sm_get_status(v->src->sm, &st);
    for (; (s = sm_history(v->src->sm, i)) != NULL && s->id > sweep; i++)
        if (s->lft_entries > 0)
            return false;
    return s != NULL && !st.sweeping;
}

static uint64_t last_sweep(const struct view *v)
{
    const struct sm_sweep *s = v->src->sm != NULL ? sm_history(v->src->sm, 0) : NULL;
    return s != NULL ? s->id : 0;
}

// The last one that has changed entries.
static uint64_t changing_sweep(const struct view *v)
{
    const struct sm_sweep *s;
    for (unsigned i = 0; (s = sm_history(v->src->sm, i)) != NULL; i++)
        if (s->lft_entries > 0)
            return s->id;
    return last_sweep(v);
}

static void other_tables(const struct fabric_tables **at, const struct fabric_tables *t)
{
    tables_unref(*at);
    *at = tables_ref(t);
}

void quality_changed(struct view *v)
{
    const struct fabric_tables *t = view_tables(v), *ideal = NULL;
    const struct fabric *ideal_f = NULL;
    struct quality *q = v->quality;
    if (q == NULL)
        return;
    if (v->src->sm != NULL)
        sm_ideal_tables(v->src->sm, &ideal_f, &ideal);
    if (q->ideal_t != NULL && (q->ideal_t != ideal || q->ideal_f != ideal_f))
        forget_ideal(q);
    if (q->t != NULL && q->t != t && t != NULL && same_since(v, q->t_sweep)) {
        q->was_t = q->was_t != NULL ? q->was_t : q->t;
        other_tables(&q->t, t);
        q->t_sweep = last_sweep(v);
        q->ready = false;
    } else if (q->t != NULL && q->t != t) {
        if (q->now != NULL) {
            free(q->last);
            q->last = q->now;
            q->last_brief = q->now_brief;
            q->now = NULL;
        }
        tables_unref(q->t);
        q->t = q->was_t = NULL;
    }
    if (q->f != NULL && (q->t == NULL || q->f != v->f)) {
        fabric_unref(q->f);
        q->f = NULL;
        q->ready = false;
    }
}

void quality_done(struct view *v)
{
    struct quality *q = v->quality;
    if (q == NULL)
        return;
    fabric_unref(q->f);
    tables_unref(q->t);
    tables_unref(q->looked_at);
    forget_ideal(q);
    free(q->now);
    free(q->last);
    free(q);
    v->quality = NULL;
}

void quality_rated(struct view *v, struct computation *c)
{
    struct quality *q = of(v);
    quality_changed(v);
    if (c->tables == q->t ||
        c->tables == q->was_t) { // of another snapshot they are good enough for the last ones
        free(q->now);
        q->now = buf_take(&c->result);
        q->now_brief = c->brief;
        q->ready = c->f == q->f;
        q->at_ns = wall_now_ns();
        if (q->t == q->looked_at && q->sweep > 0) {
            q->of[q->sweep % SWEEPS].sweep = q->sweep;
            q->of[q->sweep % SWEEPS].brief = c->brief;
        }
    }
    if (c->ideal != NULL && c->ideal == q->ideal_t) {
        free(q->ideal);
        q->ideal = buf_take(&c->ideal_result);
        q->ideal_brief = c->ideal_brief;
    }
}

// What is to be rated, with references; from now on the view waits for it.
static void take(struct view *v, struct computation *c)
{
    struct quality *q = of(v);
    const struct fabric_tables *ideal;
    const struct fabric *ideal_f;
    c->tables = tables_ref(view_tables(v));
    if (q->ideal_t == NULL && sm_ideal_tables(v->src->sm, &ideal_f, &ideal)) {
        q->ideal_t = tables_ref(ideal);
        q->ideal_f = fabric_ref(ideal_f);
    }
    if (q->ideal_t != NULL && q->ideal == NULL) {
        c->ideal = tables_ref(q->ideal_t);
        c->ideal_f = fabric_ref(q->ideal_f);
    }
    fabric_unref(q->f);
    tables_unref(q->t);
    q->f = fabric_ref(v->f);
    q->t = tables_ref(c->tables);
    q->was_t = NULL;
    q->t_sweep = last_sweep(v);
    q->ready = false;
}

// False with an answer when it cannot be.
static bool start(struct request *r, struct view *v)
{
    struct computation c = {0};
    take(v, &c);
    if (jobs_rate(r, v, &c))
        return true;
    fabric_unref(v->quality->f);
    v->quality->f = NULL;
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
    struct quality *q = of(v);
    quality_changed(v);
    if (q->f == NULL && !start(r, v))
        return;
    answer_struct(r, 200, &schema_route_quality,
                  &(struct route_quality_row){.state = states[q->ready],
                                              .engine = q->t->engine,
                                              .at = q->ready ? q->at_ns : 0,
                                              .now = q->ready ? q->now : NULL,
                                              .ideal = q->ready ? q->ideal : NULL,
                                              .last = q->ready ? q->last : NULL});
}

const struct quality_brief *quality_now(const struct view *v)
{
    return v->quality != NULL && v->quality->now != NULL ? &v->quality->now_brief : NULL;
}

const struct quality_brief *quality_ideal(const struct view *v)
{
    return v->quality != NULL && v->quality->ideal != NULL ? &v->quality->ideal_brief : NULL;
}

const struct quality_brief *quality_last(const struct view *v)
{
    return v->quality != NULL && v->quality->last != NULL ? &v->quality->last_brief : NULL;
}

const struct quality_brief *quality_of_sweep(const struct view *v, uint64_t sweep)
{
    const struct quality *q = v->quality;
    return q != NULL && q->of[sweep % SWEEPS].sweep == sweep ? &q->of[sweep % SWEEPS].brief : NULL;
}

// --- unasked ---

// Tasks that are told to stop are not begun; what comes out then is nobody's.
struct par_stop {
    struct par par; // first
    atomic_bool stop;
};

struct rating {
    struct api *api;
    struct pool *pool; // NULL until the first one
    struct pool_job job;
    struct view *view; // NULL: nothing is rated
    struct computation c;
    struct par_stop par;
};
#define RATING_TASKS 4 // how finely it can be stopped; each takes megabytes

static void stop_run(struct par *p, unsigned n, void (*task)(void *arg, unsigned i), void *arg)
{
    struct par_stop *s = (struct par_stop *)p;
    for (unsigned i = 0; i < n && !atomic_load(&s->stop); i++)
        task(arg, i);
}

static void rating_work(void *arg, struct par *par)
{
    struct rating *g = arg;
    (void)par;
    compute_run(&g->c, &g->par.par);
}

static void rating_free(struct rating *g)
{
    fabric_unref(g->c.f);
    compute_done(&g->c);
    g->c = (struct computation){0};
    g->view = NULL;
}

static void rating_done(void *arg)
{
    struct rating *g = arg;
    bool stopped = atomic_load(&g->par.stop);
    if (!stopped)
        quality_rated(g->view, &g->c);
    rating_free(g);
    if (!stopped)
        ratings_look(g->api);
}

static void rate_unasked(struct rating *g, struct view *v)
{
    if (g->pool == NULL) {
        g->pool = pool_new(g->api->c.loop, 1);
        pool_idle(g->pool);
    }
    take(v, &g->c);
    g->c.f = fabric_ref(v->f);
    g->view = v;
    g->job = (struct pool_job){.work = rating_work, .done = rating_done, .arg = g, .name = "rating"};
    pool_submit(g->pool, &g->job);
}

// Whether tables are in force that nobody has rated or is about to. A sweep may be on its way to others.
static bool is_due(struct view *v)
{
    const struct fabric_tables *t = view_tables(v);
    struct sm_status st;
    if (t == NULL || v->f == NULL)
        return false;
    sm_get_status(v->src->sm, &st);
    if (st.sweeping)
        return false;
    struct quality *q = of(v);
    if (q->looked_at != t) {
        other_tables(&q->looked_at, t);
        q->sweep = changing_sweep(v);
    }
    quality_changed(v);
    return q->t == NULL; // else their figures are there, or on their way
}

void ratings_look(struct api *a)
{
    struct rating *g = a->rating;
    for (unsigned i = 0; i < a->c.num_fabrics && g->view == NULL; i++)
        if (a->view[i].src->sm != NULL && is_due(&a->view[i]))
            rate_unasked(g, &a->view[i]);
}

void ratings_init(struct api *a)
{
    struct rating *g = a->rating = xcalloc(1, sizeof(*g));
    g->api = a;
    g->par.par = (struct par){.run = stop_run, .width = RATING_TASKS};
    atomic_init(&g->par.stop, false);
}

void ratings_done(struct api *a)
{
    struct rating *g = a->rating;
    atomic_store(&g->par.stop, true);
    if (g->pool != NULL)
        pool_free(g->pool);
    rating_free(g);
    free(g);
    a->rating = NULL;
}
