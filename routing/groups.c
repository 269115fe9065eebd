// SPDX-License-Identifier: Apache-2.0
// Adaptive-routing groups: see groups.h for the face. The parts:
//   groups.c        columns, dispatch, the result
//   groups_order.c  ports on ways along the engine's order of switches
//   groups_level.c  ports that fit between the dependencies of any tables
//   groups_ids.c    which sets become groups, and by what ids
// and, sharing nothing with them: verify_groups.c.
//
// A column is a switch with end nodes: LIDs that hang there have the same legal ports everywhere. Scratch
// memory is an arena for the call and one for each task: 6 bytes for each pair of a switch and a column,
// mostly.
#include "routing/groups_priv.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/err.h"

// --- columns ---

// Where a LID hangs; what is down hangs where the base has it, so that its entries stay what they are.
static bool place_of(const struct gmake *m, uint32_t lid, uint32_t *ret_sw, uint8_t *ret_port)
{
    const struct rlive *v = m->v;
    if (lid <= m->f->top_lid && m->f->lid_port[lid] != ID_NONE)
        return rattachment(m->f, m->f->lid_port[lid], ret_sw, ret_port) && *ret_port != 0;
    if (!v || lid > v->b->top_lid || v->b->at_sw[lid] == ID_NONE || v->b->at_port[lid] == 0)
        return false;
    *ret_sw = v->from_base[v->b->at_sw[lid]];
    *ret_port = v->b->at_port[lid];
    return *ret_sw != ID_NONE && rfar(v, *ret_sw, *ret_port) == ID_NONE;
}

static void find_columns(struct gmake *m)
{
    uint32_t lids = m->t->lids, sw, num = 0;
    uint8_t port;
    uint32_t *at = ARENA_NEW_N(m->a, (size_t)lids + 1, uint32_t), *fill;
    uint8_t *at_port = ARENA_NEW_N(m->a, (size_t)lids + 1, uint8_t);
    uint32_t *count = ARENA_NEW_N(m->a, m->n + 1, uint32_t);
    for (uint32_t lid = 0; lid < lids; lid++) {
        at[lid] = ID_NONE;
        if (lid == 0 || lid > LID_UCAST_MAX || !place_of(m, lid, &sw, &port) ||
            tables_row(m->t, sw)[lid] != port)
            continue;
        at[lid] = sw;
        at_port[lid] = port;
        count[sw]++;
        num++;
    }
    m->column = ARENA_NEW_N(m->a, m->n + 1, uint32_t);
    m->col_switch = ARENA_NEW_N(m->a, m->n + 1, uint32_t);
    m->coff = ARENA_NEW_N(m->a, m->n + 2, uint32_t);
    for (uint32_t s = 0; s < m->n; s++) {
        m->column[s] = count[s] > 0 ? m->cols : ID_NONE;
        if (count[s] == 0)
            continue;
        m->col_switch[m->cols] = s;
        m->coff[m->cols + 1] = m->coff[m->cols] + count[s];
        m->cols++;
    }
    m->lid = ARENA_NEW_N(m->a, (size_t)num + 1, struct glid);
    m->odd = (_Atomic uint8_t *)ARENA_NEW_N(m->a, (size_t)num + 1, uint8_t);
    fill = arena_memdup(m->a, m->coff, (m->cols + 1) * sizeof(*fill));
    for (uint32_t lid = 0; lid < lids; lid++) {
        if (at[lid] != ID_NONE)
            m->lid[fill[m->column[at[lid]]]++] = (struct glid){(uint16_t)lid, at_port[lid]};
    }
    m->stride = (m->cols + GCHUNK - 1) / GCHUNK * GCHUNK;
}

static void match_last(struct gmake *m)
{
    const struct fabric *was = m->o->last_fabric;
    m->was = ARENA_NEW_N(m->a, m->n + 1, uint32_t);
    for (uint32_t s = 0; s < m->n; s++) {
        const struct node *nd = fabric_by_guid(was, fabric_switch(m->f, s)->guid);
        m->was[s] = nd && nd->type == NODE_SWITCH && nd->sw < m->o->last->num_switches ? nd->sw : ID_NONE;
    }
}

// --- the result ---

struct finishing {
    struct gmake *m;
    struct gchosen *chosen; // per switch
    struct gtask *task;
    uint32_t tasks;
    struct fabric_groups *out;
};

static void choose_task(void *arg, unsigned i)
{
    const struct finishing *x = arg;
    uint32_t n = x->m->n;
    for (uint32_t s = (uint32_t)((uint64_t)n * i / x->tasks); s < (uint64_t)n * (i + 1) / x->tasks; s++)
        gids_choose(x->m, s, x->task[i].a, &x->chosen[s]);
}

static void copy_task(void *arg, unsigned i)
{
    const struct finishing *x = arg;
    const struct gmake *m = x->m;
    struct fabric_groups *g = x->out;
    for (uint32_t s = (uint32_t)((uint64_t)m->n * i / x->tasks); s < (uint64_t)m->n * (i + 1) / x->tasks;
         s++) {
        const struct gchosen *c = &x->chosen[s];
        memcpy(g->group + g->first[s], c->group, c->num * sizeof(*c->group));
        memcpy(g->beside + (size_t)s * g->ports, c->beside, m->ports * sizeof(*c->beside));
        uint16_t *to = g->to + (size_t)s * m->n;
        for (uint32_t k = 0; k < m->cols; k++)
            to[m->col_switch[k]] = m->to[(size_t)s * m->stride + k];
    }
}

static void finish(struct gmake *m, struct gtask *task, uint32_t tasks, struct groups_result *r)
{
    struct finishing x = {.m = m, .task = task, .tasks = tasks};
    uint32_t total = 0;
    x.chosen = ARENA_NEW_N(m->a, m->n + 1, struct gchosen);
    rpar_run(m->o->par, tasks, choose_task, &x);
    for (uint32_t s = 0; s < m->n; s++)
        total += x.chosen[s].num;
    x.out = groups_new(m->f, m->t->lids, total);
    for (uint32_t s = 0; s < m->n; s++) {
        const struct gchosen *c = &x.chosen[s];
        x.out->first[s + 1] = x.out->first[s] + c->num;
        r->adaptive += c->adaptive;
        r->choices += c->choices;
        r->most_groups = c->num > r->most_groups ? c->num : r->most_groups;
        r->over_cap += c->over_cap;
    }
    rpar_run(m->o->par, tasks, copy_task, &x);
    for (uint32_t k = 0; k < m->cols; k++) {
        for (uint32_t i = m->coff[k]; i < m->coff[k + 1]; i++) {
            uint16_t lid = m->lid[i].lid;
            x.out->lid_switch[lid] = m->odd[i] == GODD_STATIC ? ID_NONE : m->col_switch[k];
            x.out->lid_whole[lid] = m->odd[i] == 0;
            r->static_lids += m->odd[i] != 0;
        }
    }
    r->entries = (uint64_t)m->coff[m->cols] * (m->n > 0 ? m->n - 1 : 0);
    r->groups = x.out;
    groups_seal(x.out, false);
}

// --- together ---

// The order of switches that fresh tables keep to.
static int fresh_order(const struct gmake *m, struct rorder *ret, struct err *e)
{
    struct route_opts o = {.engine = m->o->engine};
    if (m->o->route) {
        o = *m->o->route;
        o.engine = m->o->engine;
    }
    return rorder_build(m->g, &o, m->a, ret, e);
}

static bool try_order(struct gmake *m, struct gtask *task, uint32_t tasks)
{
    struct route_opts o = {.engine = ROUTE_UPDN};
    struct rorder order;
    struct rgraph g;
    rgraph_build(m->f, m->a, &g);
    return rorder_build(&g, &o, m->a, &order, NULL) == 0 && gorder_holds(m, &order, tasks) &&
           gorder_fill(m, &order, task, tasks);
}

static int fill(struct gmake *m, struct gtask *task, uint32_t tasks, struct err *e)
{
    struct rorder order;
    bool known = m->o->base ? m->o->base->ordered : rengine_is_ordered(m->o->engine), done = false;
    if (known) {
        int rc = m->v ? 0 : fresh_order(m, &order, e);
        if (rc)
            return rc;
        done = gorder_fill(m, m->v ? &m->v->o : &order, task, tasks);
    }
    if (!done && !try_order(m, task, tasks))
        glevel_fill(m, task, tasks);
    return 0;
}

static int make(struct gmake *m, struct groups_result *ret, struct err *e)
{
    uint32_t tasks = m->o->par && m->o->par->width > 1 ? 8 * m->o->par->width : 1;
    struct rgraph g;
    if (m->o->base) {
        m->v = rlive_new(m->o->base, m->f, m->o->avoid, NULL, m->a);
        m->g = &m->v->g;
    } else {
        rgraph_build(m->f, m->a, &g);
        m->g = &g;
    }
    m->ports = fabric_port_room(m->f);
    find_columns(m);
    if (m->o->last)
        match_last(m);
    m->sets = ARENA_NEW_N(m->a, m->n + 1, struct gsets);
    m->to = ARENA_NEW_N(m->a, (size_t)m->n * m->stride + 1, uint16_t);
    memset(m->to, 0xff, (size_t)m->n * m->stride * sizeof(*m->to));
    struct gtask *task = ARENA_NEW_N(m->a, tasks, struct gtask);
    for (uint32_t i = 0; i < tasks; i++)
        task[i].a = arena_new();
    int rc = fill(m, task, tasks, e);
    if (rc == 0) {
        struct groups_result r = {0};
        finish(m, task, tasks, &r);
        memcpy(r.why, m->why, sizeof(r.why));
        *ret = r;
    }
    for (uint32_t i = 0; i < tasks; i++)
        arena_free(task[i].a);
    return rc;
}

int route_groups(const struct fabric *f, const struct fabric_tables *t, const struct groups_opts *o,
                 struct groups_result *ret, struct err *e)
{
    if (t->num_switches != f->num_switches)
        return err_set(e, -EINVAL, NULL, "tables of %u switches for a fabric of %u", t->num_switches,
                       f->num_switches);
    if (o->last && (!o->last_fabric || o->last->num_switches != o->last_fabric->num_switches))
        return err_set(e, -EINVAL, NULL, "the last groups are not of the fabric that is given with them");
    struct gmake m = {.f = f, .t = t, .o = o, .a = arena_new(), .n = f->num_switches};
    int rc = make(&m, ret, e);
    arena_free(m.a);
    return rc;
}
