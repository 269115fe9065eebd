// SPDX-License-Identifier: Apache-2.0
// For series_*.c: bytes, varints, masks. What is read is bounded first.
#ifndef WEFT_DB_SERIES_BYTES_H
#define WEFT_DB_SERIES_BYTES_H

#include <string.h>

#include "db/series_priv.h"

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

static inline void set_u32(void *p, uint32_t v)
{
    memcpy(p, (uint8_t[]){(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)}, 4);
}

static inline void put_u32(struct buf *b, uint32_t v)
{
    uint8_t p[4];
    set_u32(p, v);
    buf_add(b, p, 4);
}

static inline uint32_t get_u32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t zigzag(uint64_t d)
{
    return d << 1 ^ (uint64_t)((int64_t)d >> 63);
}

static inline uint64_t unzigzag(uint64_t z)
{
    return z >> 1 ^ (0 - (z & 1));
}

static inline uint8_t *put_varint(uint8_t *p, uint64_t v)
{
    for (; v >= 128; v >>= 7)
        *p++ = (uint8_t)v | 128;
    *p++ = (uint8_t)v;
    return p;
}

// NULL: runs beyond the end, or is longer than 64 bits.
static inline const uint8_t *get_varint(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
        uint8_t b = *p++;
        v |= (uint64_t)(b & 127) << shift;
        if (b < 128) {
            *ret = v;
            return p;
        }
    }
    return NULL;
}

// Differences as varints; a 0 is followed by how many more zeros there are.
struct vwriter {
    uint8_t *p;
    uint64_t zeros;
};

static inline void vwriter_end(struct vwriter *w)
{
    if (w->zeros) {
        *w->p++ = 0;
        w->p = put_varint(w->p, w->zeros - 1);
        w->zeros = 0;
    }
}

static inline void vwriter_put(struct vwriter *w, uint64_t d)
{
    if (!d) {
        w->zeros++;
        return;
    }
    vwriter_end(w);
    w->p = put_varint(w->p, zigzag(d));
}

struct vreader {
    const uint8_t *p, *end; // p NULL: it went wrong
    uint64_t zeros;
};

static inline uint64_t vreader_get(struct vreader *r)
{
    uint64_t v = 0;
    if (r->zeros) {
        r->zeros--;
        return 0;
    }
    if (!r->p)
        return 0;
    r->p = get_varint(r->p, r->end, &v);
    if (r->p && !v)
        r->p = get_varint(r->p, r->end, &r->zeros);
    return unzigzag(v);
}

static inline bool vreader_whole(const struct vreader *r)
{
    return r->p == r->end && !r->zeros;
}

static inline uint64_t full_mask(unsigned n)
{
    return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

// Peaks are no sums: each stands for itself.
static inline bool is_plain(unsigned id)
{
    return id >= SERIES_COLUMNS;
}

#endif
