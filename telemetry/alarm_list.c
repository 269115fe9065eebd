// SPDX-License-Identifier: Apache-2.0
// The list as readers see it: views in one array, made anew when something has changed.
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/alarm_priv.h"

// What comes first: by what is worse.
static int by_weight(const struct alarm_weight *a, const struct alarm *x, const struct alarm_weight *b,
                     const struct alarm *y)
{
    if (a->active != b->active)
        return a->active ? -1 : 1;
    if (a->severity != b->severity)
        return a->severity > b->severity ? -1 : 1;
    if (x->rule->follows != y->rule->follows)
        return y->rule->follows ? -1 : 1;
    if (a->hosts != b->hosts)
        return a->hosts > b->hosts ? -1 : 1;
    if (a->lost_bps > b->lost_bps || a->lost_bps < b->lost_bps)
        return a->lost_bps > b->lost_bps ? -1 : 1;
    if (x->since_wall_ns != y->since_wall_ns)
        return x->since_wall_ns > y->since_wall_ns ? -1 : 1;
    return x->id > y->id ? -1 : x->id < y->id;
}

static struct alarm_weight own_weight(const struct alarm *v)
{
    return (struct alarm_weight){v->active, (uint8_t)v->severity, v->hosts, v->lost_bps};
}

struct place {
    const struct alarm_rec *rec, *root;
};

// A root stands where the worst of its story would; it, then what follows from it.
static int worst_first(const void *p, const void *q)
{
    const struct place *x = p, *y = q;
    if (x->root != y->root)
        return by_weight(&x->root->story, &x->root->v, &y->root->story, &y->root->v);
    if ((x->rec == x->root) != (y->rec == y->root))
        return x->rec == x->root ? -1 : 1;
    struct alarm_weight a = own_weight(&x->rec->v), b = own_weight(&y->rec->v);
    return by_weight(&a, &x->rec->v, &b, &y->rec->v);
}

static void add_to_story(struct alarm_weight *w, const struct alarm *v)
{
    if (v->active < w->active) // what is over is not as bad as it was
        return;
    if (v->active > w->active)
        *w = own_weight(v);
    w->severity = v->severity > w->severity ? (uint8_t)v->severity : w->severity;
    w->hosts = v->hosts > w->hosts ? v->hosts : w->hosts;
    w->lost_bps = v->lost_bps > w->lost_bps ? v->lost_bps : w->lost_bps;
}

static uint32_t find_places(struct alarms *a, struct place *at)
{
    uint32_t n = 0;
    for (struct alarm_rec *r = a->first; r; r = r->next)
        r->story = own_weight(&r->v);
    for (struct alarm_rec *r = a->first; r; r = r->next) {
        if (r->leader)
            continue;
        struct alarm_rec *root = alarm_rec_by_id(a, r->v.root);
        root = root ? root : r;
        add_to_story(&root->story, &r->v);
        at[n++] = (struct place){r, root};
    }
    return n;
}

static void make_list(struct alarms *a)
{
    struct place *at = xcalloc(a->n + 1ul, sizeof(*at));
    alarm_causes(a);
    if (a->cap_list < a->n) {
        a->cap_list = a->n + a->n / 2;
        a->list = xreallocarray(a->list, a->cap_list, sizeof(*a->list));
    }
    a->num_list = find_places(a, at);
    qsort(at, a->num_list, sizeof(*at), worst_first);
    for (uint32_t i = 0; i < a->num_list; i++)
        a->list[i] = at[i].rec->v;
    free(at);
    a->list_stale = false;
}

uint32_t alarms_list(const struct alarms *ca, const struct alarm **ret)
{
    // What is kept for readers alone; and what is found to have another root waits to be told: the timer that
    // would have found it is armed already, so a reader changes nothing of what is told.
    struct alarms *a = (struct alarms *)ca;
    if (a->list_stale)
        make_list(a);
    *ret = a->list;
    return a->num_list;
}

const struct alarm *alarm_by_id(const struct alarms *a, uint64_t id)
{
    const struct alarm_rec *r = alarm_rec_by_id(a, id);
    return r ? &r->v : NULL;
}

uint32_t alarm_members(const struct alarms *a, uint64_t id, const struct alarm ***ret)
{
    const struct alarm_rec *g = alarm_rec_by_id(a, id);
    uint32_t n = 0, k = 0;
    for (const struct alarm_rec *r = g ? g->member : NULL; r; r = r->member_next)
        n++;
    *ret = xcalloc(n ? n : 1, sizeof(**ret));
    for (const struct alarm_rec *r = g ? g->member : NULL; r; r = r->member_next)
        (*ret)[k++] = &r->v;
    return n;
}

void alarms_count(const struct alarms *a, const char *fabric, struct alarms_count *ret)
{
    *ret = (struct alarms_count){0};
    alarm_causes((struct alarms *)a); // as in alarms_list()
    for (const struct alarm_rec *r = a->first; r; r = r->next) {
        uint32_t *const of[] = {&ret->info, &ret->minor, &ret->major, &ret->critical};
        if (r->leader || !r->v.active || (fabric && strcmp(r->v.fabric, fabric) != 0))
            continue;
        if (r->v.silence) {
            ret->silenced++;
            continue;
        }
        ret->acked += r->v.acked;
        ret->following += r->v.root && r->v.root != r->v.id;
        ++*of[r->v.severity];
    }
}
