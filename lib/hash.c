// SPDX-License-Identifier: Apache-2.0
// Linear probing, at most two thirds full. In an arena an outgrown table stays behind until the arena goes:
// give a good `expected`.
#include "lib/hash.h"

#include <assert.h>
#include <stdlib.h>

#include "lib/arena.h"
#include "lib/xalloc.h"

static void table_new(struct u64map *m, uint32_t slots)
{
    m->slot = m->arena ? ARENA_NEW_N(m->arena, slots, struct u64map_slot)
                       : xcalloc(slots, sizeof(struct u64map_slot));
    m->mask = slots - 1;
}

void u64map_init(struct u64map *m, struct arena *arena, uint32_t expected)
{
    uint32_t slots = 8;

    assert(expected <= 1u << 30);
    while ((uint64_t)slots * 2 < (uint64_t)expected * 3)
        slots *= 2;
    m->arena = arena;
    m->count = 0;
    table_new(m, slots);
}

void u64map_done(struct u64map *m)
{
    if (!m->arena)
        free(m->slot);
    m->slot = NULL;
    m->mask = m->count = 0;
}

static struct u64map_slot *find(const struct u64map *m, uint64_t key)
{
    uint32_t i = (uint32_t)hash_mix64(key) & m->mask;
    while (m->slot[i].used && m->slot[i].key != key)
        i = (i + 1) & m->mask;
    return &m->slot[i];
}

static void grow(struct u64map *m)
{
    struct u64map_slot *old = m->slot;
    uint32_t n = m->mask + 1;

    assert(n < 1u << 31);
    table_new(m, n * 2);
    for (uint32_t i = 0; i < n; i++)
        if (old[i].used)
            *find(m, old[i].key) = old[i];
    if (!m->arena)
        free(old);
}

bool u64map_set(struct u64map *m, uint64_t key, uint32_t value)
{
    struct u64map_slot *s = find(m, key);
    if (s->used) {
        s->value = value;
        return false;
    }
    if ((uint64_t)(m->count + 1) * 3 > ((uint64_t)m->mask + 1) * 2) {
        grow(m);
        s = find(m, key);
    }
    *s = (struct u64map_slot){.key = key, .value = value, .used = 1};
    m->count++;
    return true;
}

bool u64map_get(const struct u64map *m, uint64_t key, uint32_t *ret_value)
{
    if (!m->slot)
        return false;
    const struct u64map_slot *s = find(m, key);
    if (!s->used)
        return false;
    *ret_value = s->value;
    return true;
}
