// SPDX-License-Identifier: Apache-2.0
// Bytes of a head row: one sweep of a block, against the sweep before it. Pure; what is read may be anything.
//
// u8 flags (1: key row), u8 masks, u8 columns, u16 series, masks (a bit a series), per column u8 id, u8 mask
// (0: all are there), u32 bytes; the columns (differences as varints); u32 checksum of all before it.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "db/series_bytes.h"
#include "lib/xalloc.h"

// --- a checksum: four lanes of multiply and rotate, as fast as memory ---

static inline uint64_t rotl(uint64_t x, unsigned n)
{
    return x << n | x >> (64 - n);
}

uint64_t series_sum(const void *data, size_t n, uint64_t seed)
{
    const uint64_t k1 = 0x9e3779b97f4a7c15ULL, k2 = 0xd6e8feb86659fd93ULL;
    const uint8_t *p = data;
    uint64_t h[4] = {seed, seed ^ k1, seed + k2, ~seed}, tail = n;
    for (; n >= 32; n -= 32, p += 32) {
        for (int i = 0; i < 4; i++)
            h[i] = rotl(h[i] ^ load64(p + 8 * i) * k1, 29) * k2;
    }
    for (; n >= 8; n -= 8, p += 8)
        tail = rotl(tail ^ load64(p) * k1, 29) * k2;
    for (; n; n--, p++)
        tail = rotl(tail ^ *p * k1, 11) * k2;
    for (int i = 0; i < 4; i++)
        tail = hash_mix64(tail ^ h[i]);
    return tail;
}

// --- grids and chains ---

void series_grid_init(struct series_grid *g, unsigned n, unsigned series)
{
    *g = (struct series_grid){.n = n, .series = series};
}

void series_grid_done(struct series_grid *g)
{
    for (unsigned c = 0; c < SERIES_IDS; c++) {
        free(g->value[c]);
        free(g->mask[c]);
    }
    *g = (struct series_grid){0};
}

void series_grid_column(struct series_grid *g, unsigned id)
{
    if (!g->value[id]) {
        g->value[id] = xcalloc((size_t)g->series * g->n, sizeof(uint64_t));
        g->mask[id] = xcalloc(g->series, sizeof(uint64_t));
    }
}

bool series_grid_empty(const struct series_grid *g)
{
    for (unsigned c = 0; c < SERIES_IDS; c++) {
        if (g->value[c])
            return false;
    }
    return true;
}

void series_grid_shorten(struct series_grid *g, unsigned n)
{
    for (unsigned c = 0; c < SERIES_IDS && n < g->n; c++) {
        for (unsigned i = 0; g->value[c] && i < g->series; i++) {
            memmove(g->value[c] + (size_t)i * n, g->value[c] + (size_t)i * g->n, n * sizeof(uint64_t));
            g->mask[c][i] &= full_mask(n);
        }
    }
    g->n = n;
}

void series_chain_done(struct series_chain *c)
{
    for (unsigned i = 0; i < SERIES_IDS; i++)
        free(c->last[i]);
    *c = (struct series_chain){0};
}

uint64_t *series_chain_column(struct series_chain *c, unsigned id)
{
    if (!c->last[id])
        c->last[id] = xcalloc(SERIES_BLOCK, sizeof(uint64_t));
    return c->last[id];
}

enum { HEAD_FIXED = 5, HEAD_COLUMN = 6, HEAD_KEY = 1 };

typedef uint64_t bitmap[SERIES_BLOCK / 64];

static void column_bits(const struct series_slice *s, unsigned id, bitmap ret)
{
    const uint64_t *have = s->have[id >= SERIES_COLUMNS];
    unsigned bit = id % SERIES_COLUMNS;
    memset(ret, 0, sizeof(bitmap));
    for (unsigned i = 0; have && i < s->series; i++)
        ret[i / 64] |= (have[i] >> bit & 1) << (i % 64);
}

static bool all_there(const bitmap b, unsigned series)
{
    for (unsigned i = 0; i < series; i += 64) {
        uint64_t want = series - i >= 64 ? UINT64_MAX : ((uint64_t)1 << (series - i)) - 1;
        if ((b[i / 64] & want) != want)
            return false;
    }
    return true;
}

static bool none_there(const bitmap b)
{
    static const bitmap none;
    return memcmp(b, none, sizeof(none)) == 0;
}

static size_t head_column(uint8_t *to, struct series_chain *c, unsigned id, const uint64_t *value,
                          const bitmap there)
{
    uint64_t *last = series_chain_column(c, id), *known = c->known[id];
    struct vwriter w = {to, 0};
    for (unsigned k = 0; k < SERIES_BLOCK / 64; k++) {
        for (uint64_t m = there[k]; m; m &= m - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(m), i = k * 64 + bit;
            bool base = known[k] >> bit & 1;
            vwriter_put(&w, is_plain(id) || !base ? value[i] : value[i] - last[i]);
            last[i] = value[i];
        }
        known[k] |= there[k];
    }
    vwriter_end(&w);
    return (size_t)(w.p - to);
}

// Number of a mask, added when new; 0 = all. One too many: the caller made more than SERIES_MASKS.
static unsigned mask_number(bitmap *masks, unsigned *num, const bitmap b, unsigned series)
{
    if (all_there(b, series))
        return 0;
    for (unsigned i = 0; i < *num; i++) {
        if (memcmp(masks[i], b, sizeof(bitmap)) == 0)
            return i + 1;
    }
    memcpy(masks[*num], b, sizeof(bitmap));
    return ++*num;
}

void series_head_encode(struct buf *out, struct series_chain *c, const struct series_slice *s, bool key,
                        uint64_t seed)
{
    enum { COLUMN_MAX = SERIES_BLOCK * 11 + 16 };
    bitmap masks[SERIES_IDS], there;
    uint8_t dir[SERIES_IDS * HEAD_COLUMN];
    unsigned nmasks = 0, ncols = 0;
    size_t len = 0;
    uint8_t *data = xmalloc((size_t)(s->columns ? s->columns : 1) * COLUMN_MAX);
    if (key)
        memset(c->known, 0, sizeof(c->known));
    for (unsigned k = 0; k < s->columns; k++) {
        column_bits(s, s->id[k], there);
        if (!s->value[k] || none_there(there))
            continue;
        unsigned m = mask_number(masks, &nmasks, there, s->series);
        size_t n = head_column(data + len, c, s->id[k], s->value[k], there);
        uint8_t *d = dir + ncols++ * HEAD_COLUMN;
        memcpy(d, (uint8_t[]){s->id[k], (uint8_t)m, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)(n >> 16), 0}, 6);
        len += n;
    }
    size_t start = out->len;
    uint8_t fixed[HEAD_FIXED] = {key ? HEAD_KEY : 0, (uint8_t)nmasks, (uint8_t)ncols, (uint8_t)s->series,
                                 (uint8_t)(s->series >> 8)};
    buf_add(out, fixed, sizeof(fixed));
    for (unsigned i = 0; i < nmasks; i++)
        buf_add(out, masks[i], (s->series + 63) / 64 * 8);
    buf_add(out, dir, ncols * HEAD_COLUMN);
    buf_add(out, data, len);
    put_u32(out, (uint32_t)series_sum(out->data + start, out->len - start, seed));
    free(data);
}

bool series_head_is_key(const void *p, size_t size)
{
    return p && size && ((const uint8_t *)p)[0] & HEAD_KEY;
}

struct head_view {
    bool key;
    unsigned masks, columns, series;
    const uint8_t *mask, *dir, *data, *end;
};

static int head_view(const uint8_t *p, size_t size, uint64_t seed, struct head_view *v)
{
    if (!p || size < HEAD_FIXED + 4 || get_u32(p + size - 4) != (uint32_t)series_sum(p, size - 4, seed))
        return -EBADMSG;
    *v = (struct head_view){.key = p[0] & HEAD_KEY,
                            .masks = p[1],
                            .columns = p[2],
                            .series = p[3] | (unsigned)p[4] << 8,
                            .mask = p + HEAD_FIXED,
                            .end = p + size - 4};
    size_t left = size - 4 - HEAD_FIXED, mask_bytes = (size_t)v->masks * ((v->series + 63) / 64 * 8);
    if (v->series > SERIES_BLOCK || v->columns > SERIES_IDS || mask_bytes > left)
        return -EBADMSG;
    v->dir = v->mask + mask_bytes;
    if ((size_t)v->columns * HEAD_COLUMN > left - mask_bytes)
        return -EBADMSG;
    v->data = v->dir + v->columns * HEAD_COLUMN;
    return 0;
}

static int view_mask(const struct head_view *v, unsigned m, bitmap ret)
{
    if (m > v->masks)
        return -EBADMSG;
    memset(ret, 0, sizeof(bitmap));
    if (m)
        memcpy(ret, v->mask + (size_t)(m - 1) * ((v->series + 63) / 64 * 8), (v->series + 63) / 64 * 8);
    else
        memset(ret, 0xff, (v->series + 63) / 64 * 8);
    if (v->series % 64)
        ret[v->series / 64] &= ((uint64_t)1 << v->series % 64) - 1;
    return 0;
}

static int head_column_decode(struct vreader *r, struct series_chain *c, unsigned id, const bitmap there,
                              struct series_grid *g, unsigned k)
{
    uint64_t *last = series_chain_column(c, id), *known = c->known[id];
    if (g)
        series_grid_column(g, id);
    for (unsigned w = 0; w < SERIES_BLOCK / 64; w++) {
        for (uint64_t m = there[w]; m; m &= m - 1) {
            unsigned bit = (unsigned)__builtin_ctzll(m), i = w * 64 + bit;
            uint64_t d = vreader_get(r);
            last[i] = (is_plain(id) || !(known[w] >> bit & 1) ? 0 : last[i]) + d;
            if (g && i < g->series) {
                g->value[id][(size_t)i * g->n + k] = last[i];
                g->mask[id][i] |= (uint64_t)1 << k;
            }
        }
        known[w] |= there[w];
    }
    return vreader_whole(r) ? 0 : -EBADMSG;
}

int series_head_decode(const void *p, size_t size, uint64_t seed, struct series_chain *c, bool *have_key,
                       const uint64_t want[2], struct series_grid *g, unsigned k)
{
    struct head_view v;
    bitmap there;
    int rc = head_view(p, size, seed, &v);
    if (rc)
        return rc;
    if (v.key)
        memset(c->known, 0, sizeof(c->known));
    else if (!*have_key)
        return -EBADMSG;
    *have_key = true;
    for (unsigned i = 0; i < v.columns && !rc; i++) {
        const uint8_t *d = v.dir + i * HEAD_COLUMN;
        uint32_t n = get_u32(d + 2);
        if (d[0] >= SERIES_IDS || n > (size_t)(v.end - v.data))
            return -EBADMSG;
        struct vreader r = {v.data, v.data + n, 0};
        v.data += n;
        if (want && !(want[d[0] >= SERIES_COLUMNS] >> d[0] % SERIES_COLUMNS & 1))
            continue;
        rc = view_mask(&v, d[1], there);
        if (!rc)
            rc = head_column_decode(&r, c, d[0], there, g, k);
    }
    return rc;
}
