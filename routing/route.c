// SPDX-License-Identifier: Apache-2.0
// Routing: dispatch. See route.h for the face; the engines' parts, in reading order:
//   graph.c   the compact switch graph of a snapshot
//   order.c   the total order of switches with one top per component (updn)
//   number.c  sequence numbers of destinations (updn)
//   column.c  paths from all switches to one: the general way
//   fill.c    which port each destination gets
//   rows.c    both at once for all columns: the fast way, on trees
//   rail_number.c, rail.c  the same two for rail: numbers by place, and ways up that mirror ways down
//   file.c    tables read from a dump
//   repair.c  tables that keep to those of the whole fabric while it is damaged
// and, sharing nothing with them: verify.c (the proof), verify_change.c (the proof of a change), plan*.c
// (waves), moved.c (how many routes a change moves), trace.c (one path).
// No thread: what runs in parallel is handed to the caller's struct par. Scratch memory is an arena that
// lives as long as the call.
#include "routing/route_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/err.h"

static const char *const engine_names[] = {
    [ROUTE_AUTO] = "auto", [ROUTE_UPDN] = "updn", [ROUTE_MINHOP] = "minhop",
    [ROUTE_FILE] = "file", [ROUTE_RAIL] = "rail", [ROUTE_SSSP] = "sssp"};

const char *route_engine_name(enum route_engine e)
{
    return (unsigned)e < sizeof(engine_names) / sizeof(engine_names[0]) ? engine_names[e] : "?";
}

int route_engine_parse(const char *name, enum route_engine *ret)
{
    for (unsigned i = 0; i < sizeof(engine_names) / sizeof(engine_names[0]); i++) {
        if (strcmp(name, engine_names[i]) == 0) {
            *ret = (enum route_engine)i;
            return 0;
        }
    }
    return -EINVAL;
}

// The component with most switches: its top is what a person is told.
static uint32_t main_component(const struct rgraph *g, struct arena *a)
{
    uint32_t *size = ARENA_NEW_N(a, g->num_comps + 1, uint32_t), best = 0;
    for (uint32_t s = 0; s < g->n; s++)
        size[g->comp[s]]++;
    for (uint32_t c = 1; c < g->num_comps; c++) {
        if (size[c] > size[best])
            best = c;
    }
    return best;
}

static void explain(const struct rgraph *g, const struct rorder *o, const struct route_opts *opts,
                    enum route_engine engine, uint32_t comp, struct route_result *r)
{
    const char *asked = opts->engine == ROUTE_AUTO ? "auto: " : "asked for: ";
    if (engine == ROUTE_MINHOP) {
        snprintf(r->why, sizeof(r->why), "%sshortest paths, which may have credit loops", asked);
        return;
    }
    if (g->n == 0) {
        snprintf(r->why, sizeof(r->why), "%sno switch, nothing to route", asked);
        return;
    }
    r->top_guid = g->guid[o->top[comp]];
    char parts[60] = "";
    if (g->num_comps > 1)
        snprintf(parts, sizeof(parts), ", %u parts routed each for itself", g->num_comps);
    const char *how = "up*/down*";
    if (engine == ROUTE_RAIL && o->tiered[comp])
        how = "up and down a tree, spread by place";
    else if (engine == ROUTE_RAIL || (opts->engine == ROUTE_AUTO && !o->tiered[comp]))
        how = opts->engine == ROUTE_AUTO ? "no tiers, so up*/down* (or sssp, where hosts ask for their SL)"
                                         : "no tiers, so up*/down*";
    snprintf(r->why, sizeof(r->why), "%s%s, no credit loop on one VL; ranks from %s, top %.40s%s", asked, how,
             o->source, fabric_desc(g->f, fabric_switch(g->f, o->top[comp])), parts);
}

// What auto takes: rail where the greater part has the levels of a tree, whole or damaged; else updn, which
// asks for nothing. Other engines for what is no tree are chosen here. *ret: the order for it.
static int choose_engine(const struct rgraph *g, const struct route_opts *o, struct arena *a,
                         struct rorder *ret, enum route_engine *ret_engine, struct err *e)
{
    struct route_opts opts = *o;
    opts.engine = *ret_engine = o->engine == ROUTE_AUTO ? ROUTE_RAIL : o->engine;
    int rc = rorder_build(g, &opts, a, ret, e);
    if (rc || o->engine != ROUTE_AUTO || ret->tiered[main_component(g, a)])
        return rc;
    opts.engine = *ret_engine = ROUTE_UPDN;
    return rorder_build(g, &opts, a, ret, e);
}

struct blank {
    struct fabric_tables *t;
    unsigned tasks;
};

static void blank_task(void *arg, unsigned i)
{
    const struct blank *b = arg;
    uint32_t n = b->t->num_switches, from = (uint32_t)((uint64_t)n * i / b->tasks),
             to = (uint32_t)((uint64_t)n * (i + 1) / b->tasks);
    memset(tables_row(b->t, from), LFT_DROP, (size_t)(to - from) * b->t->lids);
}

// tables_new() in parallel: to get the memory takes as long as to fill it.
static struct fabric_tables *blank_tables(const struct fabric *f, const char *engine, struct par *par)
{
    struct blank b = {tables_new_unset(f, f->top_lid, engine), par ? 4 * par->width : 1};
    rpar_run(par, b.tasks, blank_task, &b);
    return b.t;
}

static int compute(const struct fabric *f, const struct route_opts *o, struct arena *a,
                   struct route_result *ret, struct err *e)
{
    struct rgraph g;
    struct rorder order;
    enum route_engine engine;
    rgraph_build(f, a, &g);
    int rc = choose_engine(&g, o, a, &order, &engine, e);
    if (rc)
        return rc;
    struct route_result r = {.engine = engine};
    r.tables = blank_tables(f, route_engine_name(engine), o->par);
    if (engine == ROUTE_SSSP) {
        rc = rsssp_compute(&g, &order, o, a, r.tables, r.why, sizeof(r.why), e);
        if (rc) {
            tables_unref(r.tables);
            return rc;
        }
    } else {
        rfill(&g, &order, engine, o->par, a, r.tables);
        explain(&g, &order, o, engine, main_component(&g, a), &r);
    }
    tables_seal(r.tables, false);
    *ret = r;
    return 0;
}

static int read_file(const struct fabric *f, const struct route_opts *o, struct route_result *ret,
                     struct err *e)
{
    struct fabric_tables *t;
    int rc = rfile_read(f, o->file_text, o->file_len, &t, e);
    if (rc)
        return rc;
    tables_seal(t, false);
    *ret = (struct route_result){.tables = t, .engine = ROUTE_FILE};
    uint16_t first = 0;
    uint32_t missing = rfile_missing(f, t, &first);
    snprintf(ret->why, sizeof(ret->why), "asked for: tables from a file");
    if (missing > 0)
        snprintf(ret->why, sizeof(ret->why),
                 "asked for: tables from a file; %u LIDs are not in it, the first is %u: these are routed by "
                 "shortest ways",
                 missing, first);
    return 0;
}

int route_compute(const struct fabric *f, const struct route_opts *o, struct route_result *ret, struct err *e)
{
    if (o->engine == ROUTE_FILE)
        return read_file(f, o, ret, e);
    struct arena *a = arena_new();
    int rc = compute(f, o, a, ret, e);
    arena_free(a);
    return rc;
}
