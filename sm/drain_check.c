// SPDX-License-Identifier: Apache-2.0
// Drains: what a change of the list would do, computed from references by any thread.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/xalloc.h"
#include "sm/drain_priv.h"
#include "sm/sm_priv.h"

struct sm_drain_check {
    struct sm_ideal *ideal;
    const struct fabric *f;
    const struct fabric_tables *tables;
    struct sm_drain_set *set;
    struct sm_drain_place *at; // those that would change
    size_t n;
    bool undrain, allow_credit_loops;
};

// The list as it would be then; c->at: what changes.
static void change_set(const struct sm *sm, struct sm_drain_check *c, const struct sm_drain_place *at,
                       size_t n)
{
    struct sm_drain_set *s = xcalloc(1, sizeof(*s) + (sm->drains->n + n + 1) * sizeof(s->use[0]));
    bool *gone = xcalloc(sm->drains->n + 1u, sizeof(*gone));
    s->version = sm->drains->version;
    c->at = xcalloc(n + 1, sizeof(*c->at));
    for (size_t i = 0; i < n; i++) {
        const struct sm_drain *d = sm_drain_find(sm, &at[i]);
        if ((d != NULL) != c->undrain)
            continue;
        if (d != NULL && gone[d - sm->drains->item])
            continue;
        if (d != NULL)
            gone[d - sm->drains->item] = true;
        c->at[c->n++] = d != NULL ? d->at : at[i];
    }
    for (unsigned i = 0; i < sm->drains->n; i++)
        if (!gone[i])
            s->use[s->n++].at = sm->drains->item[i].at;
    for (size_t i = 0; i < c->n && !c->undrain; i++)
        s->use[s->n++].at = c->at[i];
    free(gone);
    c->set = s;
}

int sm_drain_check_new(const struct sm *sm, const struct sm_drain_place *at, size_t n, bool undrain,
                       struct sm_drain_check **ret, struct err *e)
{
    *ret = NULL;
    int rc = sm_drain_check_master(sm, e);
    for (size_t i = 0; i < n && rc == 0 && !undrain; i++) {
        struct sm_drain d = {.at = at[i]};
        rc = sm_drain_check_place(sm, &d, e);
    }
    if (rc != 0)
        return rc;
    if (sm->blueprint.ideal == NULL || sm->tables == NULL)
        return err_set(e, -EAGAIN, sm->o.fabric, "there are no tables yet");
    struct sm_drain_check *c = xcalloc(1, sizeof(*c));
    c->undrain = undrain;
    change_set(sm, c, at, n);
    if (c->n == 0) {
        sm_drain_check_free(c);
        return 1;
    }
    c->ideal = sm_ideal_ref(sm->blueprint.ideal);
    c->f = fabric_ref(sm->fabric);
    c->tables = tables_ref(sm->tables);
    c->allow_credit_loops = sm->o.allow_credit_loops;
    *ret = c;
    return 0;
}

// What still uses what would be drained.
static void count_effect(const struct sm_drain_check *c, const struct fabric_tables *t,
                         struct sm_drain_effect *ret)
{
    port_id *port = xcalloc(c->n * 256 + 1, sizeof(*port));
    uint32_t whole = 0;
    struct route_users u;
    for (size_t i = 0; i < c->n; i++) {
        size_t n = sm_drain_cables(c->f, &c->at[i], port + ret->cables);
        ret->cables += (uint32_t)n;
        whole += c->at[i].port == 0 && n > 0;
    }
    port_id *end = route_users_list(c->f, t, port, ret->cables, &u);
    sm_drain_strike_own(c->f, c->at, c->n, end, &u.ends);
    free(end);
    free(port);
    if (c->undrain)
        return;
    ret->ends = u.ends;
    ret->switches = u.switches > whole ? u.switches - whole : 0;
}

int sm_drain_check_run(struct sm_drain_check *c, struct par *par, struct sm_drain_effect *ret, struct err *e)
{
    struct route_result r;
    struct route_proof *proof = xcalloc(1, sizeof(*proof));
    struct verify_opts v = {.par = par, .allow_credit_loops = c->allow_credit_loops};
    struct route_plan *plan = NULL;

    *ret = (struct sm_drain_effect){0};
    int rc = sm_drains_repair(c->set, c->ideal->base, c->f, par, &r, e);
    if (rc == 0) {
        struct tables_diff d = tables_compare(c->tables, r.tables);
        ret->entries = d.entries;
        ret->blocks = d.blocks;
        ret->table_switches = d.switches;
        ret->paths = route_paths_moved(c->f, c->tables, r.tables, par);
        count_effect(c, r.tables, ret);
        ret->proved = route_verify(c->f, r.tables, &v, proof);
        snprintf(ret->counter_example, sizeof(ret->counter_example), "%s",
                 ret->proved ? "" : proof->counter_example);
        rc = route_plan_make(c->f, c->tables, NULL, NULL, r.tables, par, &plan, e);
        ret->waves = rc == 0 ? plan->num_waves : 0;
        route_plan_free(plan);
        tables_unref(r.tables);
    }
    free(proof);
    return rc;
}

bool sm_drain_check_undrains(const struct sm_drain_check *c)
{
    return c->undrain;
}

void sm_drain_check_free(struct sm_drain_check *c)
{
    if (c == NULL)
        return;
    sm_ideal_unref(c->ideal);
    fabric_unref(c->f);
    tables_unref((struct fabric_tables *)c->tables);
    free(c->set);
    free(c->at);
    free(c);
}
