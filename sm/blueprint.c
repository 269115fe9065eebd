// SPDX-License-Identifier: Apache-2.0
// The blueprint: the fabric as it is meant to be, learnt from all that was ever seen (fabric_merge()), and
// the ideal tables for it. What is in force is a function of these and of the live fabric alone
// (route_repair_from()): a failure moves what crossed it, a repair brings it home, and a restart comes to the
// same tables. Kept in the database as ibnetdiscover text under a line that tells its size; made by a worker,
// since a large fabric's text is megabytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/merge.h"
#include "fabric/reader.h"
#include "fabric/writer.h"
#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define HEAD "# blueprint nodes %u links %u\n"

struct sm_blueprint_job {
    struct pool_job job;
    struct sm *sm;
    const struct fabric *fabric;
    char *text;
    size_t len;
};

// --- the ideal ---

struct sm_ideal *sm_ideal_new(const struct fabric *blueprint, const struct fabric *made_for,
                              const struct route_result *route, const struct route_opts *o, struct err *e)
{
    struct sm_ideal *x = xcalloc(1, sizeof(*x));
    atomic_init(&x->refs, 1);
    x->blueprint = fabric_ref(blueprint);
    x->made_for = fabric_ref(made_for);
    x->route = *route;
    x->route.tables = tables_ref(route->tables);
    if (route_base_new(x->made_for, &x->route, o, &x->base, e) != 0) {
        sm_ideal_unref(x);
        return NULL;
    }
    return x;
}

struct sm_ideal *sm_ideal_ref(struct sm_ideal *x)
{
    if (x != NULL)
        atomic_fetch_add(&x->refs, 1);
    return x;
}

void sm_ideal_unref(struct sm_ideal *x)
{
    if (x == NULL || atomic_fetch_sub(&x->refs, 1) > 1)
        return;
    route_base_free(x->base);
    tables_unref(x->route.tables);
    fabric_unref(x->made_for);
    fabric_unref(x->blueprint);
    free(x);
}

bool sm_ideal_tables(const struct sm *sm, const struct fabric **ret_fabric,
                     const struct fabric_tables **ret_tables)
{
    const struct sm_ideal *x = sm->blueprint.ideal;
    if (x == NULL)
        return false;
    *ret_fabric = x->made_for;
    *ret_tables = x->route.tables;
    return true;
}

bool sm_get_routing(const struct sm *sm, struct sm_routing *ret)
{
    const struct sm_ideal *x = sm->blueprint.ideal;
    if (x == NULL)
        return false;
    *ret = (struct sm_routing){
        .blueprint = x->blueprint, .made_for = x->made_for, .ideal = x->route, .opts = sm_route_opts(sm)};
    return true;
}

// --- kept ---

static void work(void *arg, struct par *par)
{
    struct sm_blueprint_job *j = arg;
    FILE *f = open_memstream(&j->text, &j->len);
    (void)par;
    if (f == NULL)
        return;
    fprintf(f, HEAD, j->fabric->num_nodes, j->fabric->num_links);
    int rc = write_ibnetdiscover(j->fabric, f);
    if (fclose(f) != 0 || rc != 0)
        j->len = 0;
}

static void job_free(struct sm *sm)
{
    struct sm_blueprint_job *j = sm->blueprint.job;
    if (j == NULL)
        return;
    pool_cancel(&j->job);
    fabric_unref(j->fabric);
    free(j->text);
    free(j);
    sm->blueprint.job = NULL;
}

void sm_blueprint_free(struct sm *sm)
{
    job_free(sm);
    fabric_unref(sm->blueprint.known);
    fabric_unref(sm->blueprint.kept);
    sm_ideal_unref(sm->blueprint.ideal);
}

static void keep(struct sm *sm);
static void done(void *arg)
{
    struct sm_blueprint_job *j = arg;
    struct sm *sm = j->sm;
    if (j->len > 0)
        db_blob_put(sm->db, sm->o.fabric, "blueprint", j->text, j->len, NULL, NULL);
    job_free(sm);
    keep(sm);
}

static void keep(struct sm *sm)
{
    if (sm->db == NULL || sm->blueprint.job != NULL || sm->blueprint.known == sm->blueprint.kept)
        return;
    struct sm_blueprint_job *j = xcalloc(1, sizeof(*j));
    j->sm = sm;
    j->fabric = fabric_ref(sm->blueprint.known);
    j->job = (struct pool_job){.work = work, .done = done, .arg = j};
    sm->blueprint.job = j;
    fabric_unref(sm->blueprint.kept);
    sm->blueprint.kept = fabric_ref(sm->blueprint.known);
    pool_submit(sm->pool, &j->job);
}

void sm_blueprint_load(struct sm *sm)
{
    void *p = NULL;
    size_t n = 0;
    struct findings fs = {0};
    struct err e = {0};

    if (sm->db == NULL || db_blob_get(sm->db, sm->o.fabric, "blueprint", &p, &n) != 0)
        return;
    const struct fabric *read = reader_parse(p, n, "blueprint", &fs, &e);
    free(p);
    findings_done(&fs);
    if (read == NULL) {
        log_warning("blueprint-not-read", "fabric=%s text=\"%s\"", sm->o.fabric, e.text);
        return;
    }
    sm->blueprint.known = fabric_merge(read, NULL);
    sm->blueprint.kept = fabric_ref(sm->blueprint.known);
    fabric_unref(read);
}

void sm_blueprint_take(struct sm *sm, struct sm_ideal *ideal)
{
    sm_ideal_ref(ideal);
    sm_ideal_unref(sm->blueprint.ideal);
    sm->blueprint.ideal = ideal;
    if (sm->blueprint.known != ideal->blueprint) {
        fabric_unref(sm->blueprint.known);
        sm->blueprint.known = fabric_ref(ideal->blueprint);
    }
    keep(sm);
}
