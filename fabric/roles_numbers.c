// SPDX-License-Identifier: Apache-2.0
// Which numbers stay: each thing has that which most of its parts vote for.
#include "fabric/builder_priv.h"

#include <stdlib.h>

#include "lib/arena.h"

static int by_what(const void *pa, const void *pb)
{
    const struct number_vote *a = pa, *b = pb;
    if (a->what != b->what)
        return a->what < b->what ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static int by_count(const void *pa, const void *pb)
{
    const struct number_vote *a = pa, *b = pb;
    return a->count != b->count ? (a->count > b->count ? -1 : 1) : by_what(pa, pb);
}

static uint32_t add_up(struct number_vote *v, uint32_t n)
{
    uint32_t out = 0;
    qsort(v, n, sizeof(*v), by_what);
    for (uint32_t i = 0; i < n; i++) {
        if (out == 0 || by_what(&v[out - 1], &v[i]) != 0) {
            v[out] = v[i];
            v[out++].count = 0;
        }
        v[out - 1].count++;
    }
    return out;
}

const uint32_t *numbers_keep(struct number_votes *v, uint32_t things, uint32_t known, struct arena *a)
{
    uint32_t *number = ARENA_NEW_N(a, things + 1, uint32_t);
    bool *taken = ARENA_NEW_N(a, known + 1, bool);
    uint32_t n = add_up(v->vote, v->n);
    qsort(v->vote, n, sizeof(*v->vote), by_count);
    for (uint32_t i = 0; i < things; i++)
        number[i] = ID_NONE;
    for (uint32_t i = 0; i < n; i++) {
        const struct number_vote *x = &v->vote[i];
        if (x->number >= known || taken[x->number] || number[x->what] != ID_NONE)
            continue;
        number[x->what] = x->number;
        taken[x->number] = true;
    }
    // Of a kind that is not known at all, nobody speaks by numbers yet.
    uint32_t next = n ? known : 0;
    for (uint32_t i = 0; i < things; i++)
        number[i] = number[i] != ID_NONE ? number[i] : next++;
    return number;
}
