// SPDX-License-Identifier: Apache-2.0
// The list as readers see it: views in one array, made anew when something has changed.
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/alarm_priv.h"

static int worst_first(const void *p, const void *q)
{
    const struct alarm *x = p, *y = q;
    if (x->active != y->active)
        return x->active ? -1 : 1;
    if (x->severity != y->severity)
        return x->severity > y->severity ? -1 : 1;
    if (x->rule->follows != y->rule->follows)
        return y->rule->follows ? -1 : 1;
    if (x->since_wall_ns != y->since_wall_ns)
        return x->since_wall_ns > y->since_wall_ns ? -1 : 1;
    return x->id > y->id ? -1 : x->id < y->id;
}

uint32_t alarms_list(const struct alarms *ca, const struct alarm **ret)
{
    struct alarms *a = (struct alarms *)ca; // the cache alone
    if (a->list_stale) {
        a->num_list = 0;
        if (a->cap_list < a->n) {
            a->cap_list = a->n + a->n / 2;
            a->list = xreallocarray(a->list, a->cap_list, sizeof(*a->list));
        }
        for (const struct alarm_rec *r = a->first; r; r = r->next)
            if (!r->leader)
                a->list[a->num_list++] = r->v;
        if (a->num_list)
            qsort(a->list, a->num_list, sizeof(*a->list), worst_first);
        a->list_stale = false;
    }
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
    for (const struct alarm_rec *r = a->first; r; r = r->next) {
        uint32_t *const of[] = {&ret->info, &ret->minor, &ret->major, &ret->critical};
        if (r->leader || (fabric && strcmp(r->v.fabric, fabric) != 0))
            continue;
        if (r->v.acked)
            ret->acked++;
        if (r->v.silence)
            ret->silenced++;
        else
            ++*of[r->v.severity];
    }
}
