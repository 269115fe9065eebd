// SPDX-License-Identifier: Apache-2.0
#include "fabric/tables.h"

#include <stdatomic.h>
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/arena.h"
#include "lib/xalloc.h"

// The count stays writable beside the sealed rows.
struct tables_box {
    struct fabric_tables t; // first: a tables pointer is a box pointer
    _Atomic unsigned refs;  // workers take references too
    struct arena *arena;
};

static struct tables_box *box_of(const struct fabric_tables *t)
{
    return (struct tables_box *)(uintptr_t)t;
}

struct fabric_tables *tables_new_unset(const struct fabric *f, uint16_t top_lid, const char *engine)
{
    struct tables_box *box = xcalloc(1, sizeof(*box));
    struct fabric_tables *t = &box->t;
    box->refs = 1;
    box->arena = arena_new();
    t->num_switches = f->num_switches;
    t->lids = ((uint32_t)top_lid / LFT_BLOCK + 1) * LFT_BLOCK;
    t->top_lid = top_lid;
    t->generation = f->generation;
    snprintf(t->engine, sizeof(t->engine), "%s", engine);
    t->lft = arena_array(box->arena, (size_t)t->num_switches + 1, t->lids);
    return t;
}

struct fabric_tables *tables_new(const struct fabric *f, uint16_t top_lid, const char *engine)
{
    struct fabric_tables *t = tables_new_unset(f, top_lid, engine);
    memset(t->lft, LFT_DROP, (size_t)t->num_switches * t->lids);
    return t;
}

struct fabric_tables *tables_copy_for(const struct fabric_tables *from, const struct fabric *from_fabric,
                                      const struct fabric *f, uint16_t top_lid)
{
    struct fabric_tables *t = tables_new(f, top_lid, from->engine);
    uint32_t lids = from->lids < t->lids ? from->lids : t->lids;
    for (uint32_t sw = 0; sw < t->num_switches; sw++) {
        const struct node *old = fabric_by_guid(from_fabric, fabric_switch(f, sw)->guid);
        if (old && old->sw < from->num_switches)
            memcpy(tables_row(t, sw), tables_row(from, old->sw), lids);
    }
    if (from->lanes)
        tables_set_lanes(t, lanes_copy_for(from->lanes, from_fabric, f));
    return t;
}

void tables_set_lanes(struct fabric_tables *t, const struct fabric_lanes *l)
{
    lanes_unref(t->lanes);
    t->lanes = l;
}

void tables_seal(struct fabric_tables *t, bool protect)
{
    arena_seal(box_of(t)->arena, protect);
}

struct fabric_tables *tables_ref(const struct fabric_tables *t)
{
    struct tables_box *box = box_of(t);
    assert(box->refs > 0);
    atomic_fetch_add(&box->refs, 1);
    return &box->t;
}

void tables_unref(const struct fabric_tables *t)
{
    struct tables_box *box = box_of(t);
    if (!box)
        return;
    assert(box->refs > 0);
    if (atomic_fetch_sub(&box->refs, 1) > 1)
        return;
    lanes_unref(box->t.lanes);
    arena_free(box->arena);
    free(box);
}

size_t tables_bytes(const struct fabric_tables *t)
{
    return sizeof(struct tables_box) + arena_bytes(box_of(t)->arena) + (t->lanes ? lanes_bytes(t->lanes) : 0);
}

static const uint8_t drop_block[LFT_BLOCK] = {
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
};

static const uint8_t *block_get(const struct fabric_tables *t, uint32_t sw, uint32_t block)
{
    if (sw >= t->num_switches || block * LFT_BLOCK >= t->lids)
        return drop_block;
    return tables_row(t, sw) + (size_t)block * LFT_BLOCK;
}

struct tables_diff tables_compare(const struct fabric_tables *a, const struct fabric_tables *b)
{
    return tables_compare_rows(a, b, 0,
                               a->num_switches > b->num_switches ? a->num_switches : b->num_switches);
}

struct tables_diff tables_compare_rows(const struct fabric_tables *a, const struct fabric_tables *b,
                                       uint32_t from, uint32_t to)
{
    struct tables_diff d = {0};
    uint32_t blocks = (a->lids > b->lids ? a->lids : b->lids) / LFT_BLOCK;
    for (uint32_t sw = from; sw < to; sw++) {
        uint32_t blocks_before = d.blocks;
        if (a->lids == b->lids && sw < a->num_switches && sw < b->num_switches &&
            memcmp(tables_row(a, sw), tables_row(b, sw), a->lids) == 0)
            continue;
        for (uint32_t k = 0; k < blocks; k++) {
            const uint8_t *x = block_get(a, sw, k), *y = block_get(b, sw, k);
            if (memcmp(x, y, LFT_BLOCK) == 0)
                continue;
            d.blocks++;
            for (uint32_t i = 0; i < LFT_BLOCK; i++)
                d.entries += x[i] != y[i];
        }
        d.switches += d.blocks != blocks_before;
    }
    return d;
}
