// SPDX-License-Identifier: Apache-2.0
// What a fabric shows. Lists go by NodeGUID, so that a cursor (the last GUID given) means the same in the
// next generation, where node numbers may have moved: what exists throughout a walk is shown once.
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "lib/xalloc.h"

static const struct fabric *present(const struct view *v)
{
    return v->src->sm != NULL ? sm_fabric(v->src->sm) : v->src->offline;
}

static void forget(struct view *v)
{
    fabric_unref(v->f);
    free(v->order);
    v->f = NULL;
    v->order = NULL;
}

void view_changed(struct view *v)
{
    v->changes++;
    forget(v);
    view_fabric(v);
    quality_changed(v);
}

void view_done(struct view *v)
{
    forget(v);
    fabric_unref(v->names);
    quality_done(v);
    metrics_view_done(v);
}

const struct fabric *view_fabric(struct view *v)
{
    const struct fabric *f = present(v);
    if (f == v->f)
        return f;
    forget(v);
    if (f == NULL)
        return NULL;
    v->changes++;
    v->f = fabric_ref(f);
    if (v->src->sim != NULL && (v->names == NULL || f->num_nodes >= v->names->num_nodes)) {
        fabric_unref(v->names);
        v->names = fabric_ref(f);
    }
    return f;
}

const struct fabric *view_known(const struct view *v)
{
    struct sm_blueprint b = {0};
    if (v->src->sm != NULL)
        sm_get_blueprint(v->src->sm, &b);
    return b.known;
}

const struct fabric_tables *view_tables(const struct view *v)
{
    return v->src->sm != NULL ? sm_tables(v->src->sm) : NULL;
}

struct view *view_named(struct api *a, const char *fabric)
{
    struct view *v = NULL;
    for (unsigned i = 0; i < a->c.num_fabrics && v == NULL; i++)
        v = strcmp(a->c.fabric[i]->name, fabric) == 0 ? &a->view[i] : NULL;
    return v;
}

struct view *view_of(struct request *r)
{
    struct view *v = r->view;
    if (view_fabric(v) != NULL)
        return v;
    if (v->src->down != NULL)
        answer_problem(r, 503, "fabric %s is not managed: %s", v->src->name, v->src->down);
    else
        answer_problem(r, 503, "fabric %s has not been discovered yet; ask %s/fabrics/%s how far it is",
                       v->src->name, API_BASE, v->src->name);
    return NULL;
}

struct keyed {
    uint64_t guid;
    uint32_t i;
};

static int by_guid(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

const uint32_t *view_order(struct view *v)
{
    const struct fabric *f = v->f;
    if (v->order != NULL)
        return v->order;
    struct keyed *k = xcalloc(f->num_nodes + 1, sizeof(*k));
    for (uint32_t i = 0; i < f->num_nodes; i++)
        k[i] = (struct keyed){f->node[i].guid, i};
    qsort(k, f->num_nodes, sizeof(*k), by_guid);
    v->order = xcalloc(f->num_nodes + 1, sizeof(*v->order));
    for (uint32_t i = 0; i < f->num_nodes; i++)
        v->order[i] = k[i].i;
    free(k);
    return v->order;
}

uint32_t view_order_find(struct view *v, uint64_t guid)
{
    const uint32_t *order = view_order(v);
    uint32_t lo = 0, hi = v->f->num_nodes;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (v->f->node[order[mid]].guid < guid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

int64_t view_sampled(struct api *a, const struct view *v)
{
    const struct sm_sweep *s;
    if (v->src->sm == NULL)
        return a->c.started_wall_ns;
    for (unsigned i = 0; (s = sm_history(v->src->sm, i)) != NULL; i++)
        if (s->ok)
            return s->wall_ns + s->ns;
    return a->c.started_wall_ns;
}
