// SPDX-License-Identifier: Apache-2.0
#include "fabric/groups.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/arena.h"
#include "lib/xalloc.h"

// The count stays writable beside what is sealed.
struct groups_box {
    struct fabric_groups g; // first: a groups pointer is a box pointer
    _Atomic unsigned refs;
    struct arena *arena;
};

static struct groups_box *box_of(const struct fabric_groups *g)
{
    return (struct groups_box *)(uintptr_t)g;
}

struct fabric_groups *groups_new(const struct fabric *f, uint32_t lids, uint32_t num_groups)
{
    struct groups_box *box = xcalloc(1, sizeof(*box));
    struct fabric_groups *g = &box->g;
    size_t n = f->num_switches;
    struct arena *a = box->arena = arena_new();
    box->refs = 1;
    g->num_switches = f->num_switches;
    g->lids = lids;
    g->ports = fabric_port_room(f);
    g->generation = f->generation;
    g->first = ARENA_NEW_N(a, n + 1, uint32_t);
    g->group = ARENA_NEW_N(a, (size_t)num_groups + 1, struct fabric_group);
    g->lid_switch = ARENA_NEW_N(a, (size_t)lids + 1, uint32_t);
    g->lid_whole = ARENA_NEW_N(a, (size_t)lids + 1, bool);
    g->to = ARENA_NEW_N(a, n * n + 1, uint16_t);
    g->beside = ARENA_NEW_N(a, n * g->ports + 1, uint16_t);
    memset(g->lid_switch, 0xff, lids * sizeof(*g->lid_switch));
    memset(g->to, 0xff, n * n * sizeof(*g->to));
    memset(g->beside, 0xff, n * g->ports * sizeof(*g->beside));
    return g;
}

void groups_seal(struct fabric_groups *g, bool protect)
{
    arena_seal(box_of(g)->arena, protect);
}

struct fabric_groups *groups_ref(const struct fabric_groups *g)
{
    struct groups_box *box = box_of(g);
    assert(box->refs > 0);
    atomic_fetch_add(&box->refs, 1);
    return &box->g;
}

void groups_unref(const struct fabric_groups *g)
{
    struct groups_box *box = box_of(g);
    if (!box)
        return;
    assert(box->refs > 0);
    if (atomic_fetch_sub(&box->refs, 1) > 1)
        return;
    arena_free(box->arena);
    free(box);
}
