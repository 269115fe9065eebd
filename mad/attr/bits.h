// SPDX-License-Identifier: Apache-2.0
//
// Moves one element, or an array of them, between wire and host. Included where rows become code (define.h),
// so that with a row's constants each move folds to a load, a swap or shift, and a store: an interpreter over
// the table costs ten times that.
#ifndef WEFT_MAD_ATTR_BITS_H
#define WEFT_MAD_ATTR_BITS_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "mad/codec.h"

// Bits from first on; they touch at most 8 bytes.
static inline uint64_t mad_bits_get(const uint8_t *wire, unsigned first, unsigned width)
{
    const uint8_t *p = wire + first / 8;
    unsigned end = first % 8 + width, nbytes = (end + 7) / 8;
    uint64_t v = 0;
    for (unsigned i = 0; i < nbytes; i++)
        v = v << 8 | p[i];
    v >>= nbytes * 8 - end;
    return width == 64 ? v : v & (((uint64_t)1 << width) - 1);
}

// The bits must be 0 before.
static inline void mad_bits_put(uint8_t *wire, unsigned first, unsigned width, uint64_t v)
{
    uint8_t *p = wire + first / 8;
    unsigned end = first % 8 + width, nbytes = (end + 7) / 8;
    if (width < 64)
        v &= ((uint64_t)1 << width) - 1;
    v <<= nbytes * 8 - end;
    for (unsigned i = nbytes; i-- > 0; v >>= 8)
        p[i] |= (uint8_t)v;
}

static inline uint64_t mad_host_get(const uint8_t *p, unsigned size)
{
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (size) {
    case 1:
        return *p;
    case 2:
        memcpy(&v16, p, 2);
        return v16;
    case 4:
        memcpy(&v32, p, 4);
        return v32;
    default:
        memcpy(&v64, p, 8);
        return v64;
    }
}

static inline void mad_host_put(uint8_t *p, unsigned size, uint64_t v)
{
    uint16_t v16 = (uint16_t)v;
    uint32_t v32 = (uint32_t)v;
    switch (size) {
    case 1:
        *p = (uint8_t)v;
        break;
    case 2:
        memcpy(p, &v16, 2);
        break;
    case 4:
        memcpy(p, &v32, 4);
        break;
    default:
        memcpy(p, &v, 8);
    }
}

static inline uint64_t mad_be_get(const uint8_t *p, unsigned size)
{
    uint64_t v = mad_host_get(p, size);
    return size == 1 ? v : size == 2 ? be16toh((uint16_t)v) : size == 4 ? be32toh((uint32_t)v) : be64toh(v);
}

static inline void mad_be_put(uint8_t *p, unsigned size, uint64_t v)
{
    mad_host_put(p, size,
                 size == 1   ? v
                 : size == 2 ? htobe16((uint16_t)v)
                 : size == 4 ? htobe32((uint32_t)v)
                             : htobe64(v));
}

// Aligned and as wide as the host type.
static inline bool mad_is_plain(unsigned first, unsigned width, unsigned size)
{
    return width == 8 * size && first % 8 == 0;
}

static inline __attribute__((always_inline)) void mad_decode_one(const uint8_t *restrict wire, unsigned first,
                                                                 unsigned width, uint8_t *restrict host,
                                                                 unsigned size)
{
    if (mad_is_plain(first, width, size))
        mad_host_put(host, size, mad_be_get(wire + first / 8, size));
    else
        mad_host_put(host, size, mad_bits_get(wire, first, width));
}

static inline __attribute__((always_inline)) void mad_encode_one(const uint8_t *restrict host, unsigned size,
                                                                 uint8_t *restrict wire, unsigned first,
                                                                 unsigned width)
{
    if (mad_is_plain(first, width, size))
        mad_be_put(wire + first / 8, size, mad_host_get(host, size));
    else
        mad_bits_put(wire, first, width, mad_host_get(host, size));
}

static inline __attribute__((always_inline)) void mad_decode_many(const uint8_t *restrict wire,
                                                                  unsigned first, unsigned width,
                                                                  unsigned count, unsigned stride,
                                                                  uint8_t *restrict host, unsigned size)
{
    if (mad_is_plain(first, width, 1) && stride == 8 && size == 1)
        memcpy(host, wire + first / 8, count);
    else
        for (unsigned i = 0; i < count; i++)
            mad_decode_one(wire, first + i * stride, width, host + i * size, size);
}

static inline __attribute__((always_inline)) void mad_encode_many(const uint8_t *restrict host, unsigned size,
                                                                  uint8_t *restrict wire, unsigned first,
                                                                  unsigned width, unsigned count,
                                                                  unsigned stride)
{
    if (mad_is_plain(first, width, 1) && stride == 8 && size == 1)
        memcpy(wire + first / 8, host, count);
    else
        for (unsigned i = 0; i < count; i++)
            mad_encode_one(host + i * size, size, wire, first + i * stride, width);
}

#endif
