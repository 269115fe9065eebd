// SPDX-License-Identifier: Apache-2.0
// Deterministic pseudo-random numbers (xoshiro256**) from a seed: the simulator's and the tests', never for
// secrets.
#ifndef WEFT_LIB_RNG_H
#define WEFT_LIB_RNG_H

#include <stdint.h>

struct rng {
    uint64_t s[4];
};

void rng_init(struct rng *r, uint64_t seed);
uint64_t rng_u64(struct rng *r);
uint32_t rng_below(struct rng *r, uint32_t n); // 0..n-1, unbiased; n > 0
double rng_double(struct rng *r);              // [0, 1)

#endif
