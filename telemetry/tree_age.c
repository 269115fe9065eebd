// SPDX-License-Identifier: Apache-2.0
#include "telemetry/tree_age.h"

#include <stdlib.h>

#include "lib/xalloc.h"

static const struct tree_age *find(const struct tree_ages *a, uint64_t tree)
{
    for (uint32_t i = 0; i < a->num; i++)
        if (a->age[i].tree == tree)
            return &a->age[i];
    return NULL;
}

void tree_ages_note(struct tree_ages *a, const struct congest_tree *const *tree, uint32_t n, int64_t now)
{
    struct tree_age *age = xcalloc(n + 1ul, sizeof(*age));
    for (uint32_t i = 0; i < n; i++) {
        const struct congest_tree *c = tree[i];
        const struct tree_age *was = find(a, c->id);
        if (was && was->kind == c->kind)
            age[i] = (struct tree_age){c->id, was->since, was->sweeps + (c->missed == 0), c->kind};
        else
            age[i] = (struct tree_age){c->id, now, 1, c->kind};
    }
    free(a->age);
    a->age = age;
    a->num = n;
}

bool tree_ages_are(const struct tree_ages *a, const struct congest_tree *tree, unsigned sweeps, int64_t ns,
                   int64_t now)
{
    const struct tree_age *x = find(a, tree->id);
    return x && x->sweeps >= sweeps && now - x->since >= ns;
}

void tree_ages_done(struct tree_ages *a)
{
    free(a->age);
    *a = (struct tree_ages){0};
}
