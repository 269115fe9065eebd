// SPDX-License-Identifier: Apache-2.0
// Map from a 64-bit key (a GUID, most often) to a 32-bit value. Open addressing, no deletion one by one;
// memory from an arena, so that it can live in a snapshot, or from malloc when the arena is NULL.
#ifndef WEFT_LIB_HASH_H
#define WEFT_LIB_HASH_H

#include <stdbool.h>
#include <stdint.h>

struct arena;

struct u64map {
    struct u64map_slot {
        uint64_t key;
        uint32_t value;
        uint32_t used;
    } * slot;
    uint32_t mask, count;
    struct arena *arena;
};

void u64map_init(struct u64map *m, struct arena *arena, uint32_t expected);
void u64map_done(struct u64map *m); // nothing to do when in an arena
// Sets key -> value; returns true when the key was new, false when an older value was replaced.
bool u64map_set(struct u64map *m, uint64_t key, uint32_t value);
bool u64map_get(const struct u64map *m, uint64_t key, uint32_t *ret_value);

// A good 64-bit mix (splitmix64 finaliser); also the base of rendezvous hashing.
static inline uint64_t hash_mix64(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

#endif
