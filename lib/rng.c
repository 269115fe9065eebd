// SPDX-License-Identifier: Apache-2.0
// xoshiro256** 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2018), seeded with
// splitmix64 as its authors advise.
#include "lib/rng.h"

#include <assert.h>

#include "lib/hash.h"

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void rng_init(struct rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        r->s[i] = hash_mix64(seed);
        seed += 0x9e3779b97f4a7c15ULL;
    }
}

uint64_t rng_u64(struct rng *r)
{
    uint64_t *s = r->s, ret = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return ret;
}

// Lemire, "Fast random integer generation in an interval", 2019: the few low products that would weigh some
// results more are drawn again.
uint32_t rng_below(struct rng *r, uint32_t n)
{
    assert(n > 0);
    uint64_t m = (rng_u64(r) >> 32) * n;
    if ((uint32_t)m < n) {
        uint32_t least = -n % n;
        while ((uint32_t)m < least)
            m = (rng_u64(r) >> 32) * n;
    }
    return (uint32_t)(m >> 32);
}

double rng_double(struct rng *r)
{
    return (double)(rng_u64(r) >> 11) * 0x1p-53;
}
