// SPDX-License-Identifier: Apache-2.0
// Bytes of head rows and chunks. Pure; what is read may be anything.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "db/series_priv.h"
#include "lib/xalloc.h"

// --- a checksum: four lanes of multiply and rotate, as fast as memory ---

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

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

// --- bytes ---

static void put_u32(struct buf *b, uint32_t v)
{
    uint8_t p[4] = {(uint8_t)v, (uint8_t)(v >> 8), (uint8_t)(v >> 16), (uint8_t)(v >> 24)};
    buf_add(b, p, 4);
}

static uint32_t get_u32(const uint8_t *p)
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

static void vwriter_end(struct vwriter *w)
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

static bool vreader_whole(const struct vreader *r)
{
    return r->p == r->end && !r->zeros;
}

// --- grids and chains ---

static uint64_t full_mask(unsigned n)
{
    return n >= 64 ? UINT64_MAX : ((uint64_t)1 << n) - 1;
}

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

static uint64_t *chain_column(struct series_chain *c, unsigned id)
{
    if (!c->last[id])
        c->last[id] = xcalloc(SERIES_BLOCK, sizeof(uint64_t));
    return c->last[id];
}

// Peaks are no sums: each stands for itself.
static bool is_plain(unsigned id)
{
    return id >= SERIES_COLUMNS;
}

// --- head rows ---
// u8 flags (1: key row), u8 masks, u8 columns, u16 series, masks (a bit a series), per column u8 id, u8 mask
// (0: all are there), u32 bytes; the columns; u32 checksum of all before it.

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
    uint64_t *last = chain_column(c, id), *known = c->known[id];
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
        if (none_there(there))
            continue;
        unsigned m = mask_number(masks, &nmasks, there, s->series);
        size_t n = head_column(data + len, c, s->id[k], s->value + (size_t)k * SERIES_BLOCK, there);
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
    uint64_t *last = chain_column(c, id), *known = c->known[id];
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

// --- chunks ---
// Directory: u8 version, u8 sweeps, u8 masks, u8 columns, u8 parts, u16 series; sections (masks, then
// columns) of u8 id, u8 mask, u8 codec, u8 part, u32 offset, u32 bytes, u32 checksum; u32 checksum of all
// before it.

enum { DIR_FIXED = 7, DIR_SECTION = 16, DIR_VERSION = 1 };
enum { CODEC_VARINT, CODEC_ZSTD };

void series_parts_done(struct series_parts *p)
{
    buf_done(&p->dir);
    for (unsigned i = 0; i <= SERIES_IDS; i++)
        buf_done(&p->part[i]);
    *p = (struct series_parts){0};
}

// Compresses raw when that is shorter.
static unsigned pack(struct buf *out, const uint8_t *raw, size_t n)
{
    buf_clear(out);
    buf_reserve(out, ZSTD_compressBound(n) + 4);
    size_t z = n < 64 ? n : ZSTD_compress(out->data + 4, out->cap - 4, raw, n, 1);
    if (ZSTD_isError(z) || z + 4 >= n) {
        buf_add(out, raw, n);
        return CODEC_VARINT;
    }
    for (unsigned i = 0; i < 4; i++)
        out->data[i] = (char)(n >> 8 * i);
    out->len = z + 4;
    return CODEC_ZSTD;
}

static void add_section(struct series_parts *out, unsigned id, unsigned mask, const uint8_t *raw, size_t n,
                        uint64_t seed)
{
    struct buf b = {0};
    unsigned codec = pack(&b, raw, n), part = 0;
    if (b.len >= SERIES_PART_OWN)
        part = out->num++;
    struct buf *to = &out->part[part];
    uint8_t d[4] = {(uint8_t)id, (uint8_t)mask, (uint8_t)codec, (uint8_t)part};
    buf_add(&out->dir, d, 4);
    put_u32(&out->dir, (uint32_t)to->len);
    put_u32(&out->dir, (uint32_t)b.len);
    put_u32(&out->dir, (uint32_t)series_sum(b.data, b.len, seed + id));
    buf_add(to, b.data, b.len);
    buf_done(&b);
}

static bool is_full(const uint64_t *mask, unsigned series, unsigned n)
{
    for (unsigned i = 0; i < series; i++) {
        if (mask[i] != full_mask(n))
            return false;
    }
    return true;
}

// Which of the different masks each column has: 0 all, else index + 1 into of[] (a column that has it).
static unsigned number_masks(const struct series_grid *g, uint8_t number[SERIES_IDS], uint8_t of[SERIES_IDS])
{
    unsigned num = 0;
    for (unsigned c = 0; c < SERIES_IDS; c++) {
        if (!g->value[c] || is_full(g->mask[c], g->series, g->n)) {
            number[c] = 0;
            continue;
        }
        unsigned m = 0;
        while (m < num && memcmp(g->mask[of[m]], g->mask[c], g->series * sizeof(uint64_t)) != 0)
            m++;
        if (m == num)
            of[num++] = (uint8_t)c;
        number[c] = (uint8_t)(m + 1);
    }
    return num;
}

static size_t encode_mask(uint8_t *to, const uint64_t *mask, unsigned series)
{
    struct vwriter w = {to, 0};
    uint64_t before = 0;
    for (unsigned i = 0; i < series; i++) {
        vwriter_put(&w, mask[i] ^ before);
        before = mask[i];
    }
    vwriter_end(&w);
    return (size_t)(w.p - to);
}

static size_t encode_column(uint8_t *to, const struct series_grid *g, unsigned id)
{
    struct vwriter w = {to, 0};
    for (unsigned i = 0; i < g->series; i++) {
        const uint64_t *v = g->value[id] + (size_t)i * g->n;
        uint64_t before = 0;
        for (uint64_t m = g->mask[id][i]; m; m &= m - 1) {
            uint64_t x = v[__builtin_ctzll(m)];
            vwriter_put(&w, x - before);
            before = is_plain(id) ? 0 : x;
        }
    }
    vwriter_end(&w);
    return (size_t)(w.p - to);
}

void series_chunk_encode(struct series_parts *out, const struct series_grid *g, uint64_t seed)
{
    uint8_t number[SERIES_IDS], of[SERIES_IDS], ncols = 0;
    unsigned masks = number_masks(g, number, of);
    for (unsigned c = 0; c < SERIES_IDS; c++)
        ncols += g->value[c] != NULL;
    *out = (struct series_parts){.num = 1};
    uint8_t fixed[DIR_FIXED] = {DIR_VERSION, (uint8_t)g->n,      (uint8_t)masks,           ncols,
                                0,           (uint8_t)g->series, (uint8_t)(g->series >> 8)};
    buf_add(&out->dir, fixed, sizeof(fixed));
    uint8_t *raw = xmalloc((size_t)g->series * (g->n + 1) * 11 + 64);
    for (unsigned m = 0; m < masks; m++)
        add_section(out, SERIES_IDS + m, 0, raw, encode_mask(raw, g->mask[of[m]], g->series), seed);
    for (unsigned c = 0; c < SERIES_IDS; c++) {
        if (g->value[c])
            add_section(out, c, number[c], raw, encode_column(raw, g, c), seed);
    }
    free(raw);
    out->dir.data[4] = (char)out->num;
    put_u32(&out->dir, (uint32_t)series_sum(out->dir.data, out->dir.len, seed));
}

static int section_decode(const uint8_t *p, struct series_section *s, const struct series_dir *d)
{
    *s = (struct series_section){p[0], p[1], p[2], p[3], get_u32(p + 4), get_u32(p + 8), get_u32(p + 12)};
    return s->part < d->parts && s->mask <= d->masks && s->codec <= CODEC_ZSTD ? 0 : -EBADMSG;
}

int series_dir_decode(const void *data, size_t size, uint64_t seed, struct series_dir *ret)
{
    const uint8_t *p = data;
    if (!p || size < DIR_FIXED + 4 || get_u32(p + size - 4) != (uint32_t)series_sum(p, size - 4, seed))
        return -EBADMSG;
    ret->n = p[1];
    ret->masks = p[2];
    ret->columns = p[3];
    ret->parts = p[4];
    ret->series = p[5] | (unsigned)p[6] << 8;
    if (p[0] != DIR_VERSION || !ret->n || ret->n > 64 || ret->masks > SERIES_MASKS ||
        ret->columns > SERIES_IDS || ret->series > SERIES_BLOCK ||
        size != DIR_FIXED + 4 + (ret->masks + ret->columns) * (size_t)DIR_SECTION)
        return -EBADMSG;
    int rc = 0;
    p += DIR_FIXED;
    for (unsigned i = 0; i < ret->masks && !rc; i++, p += DIR_SECTION)
        rc = section_decode(p, &ret->presence[i], ret);
    for (unsigned i = 0; i < ret->columns && !rc; i++, p += DIR_SECTION) {
        rc = section_decode(p, &ret->column[i], ret);
        if (ret->column[i].id >= SERIES_IDS)
            rc = -EBADMSG;
    }
    return rc;
}

const struct series_section *series_dir_find(const struct series_dir *d, unsigned id)
{
    for (unsigned i = 0; i < d->columns; i++) {
        if (d->column[i].id == id)
            return &d->column[i];
    }
    return NULL;
}

// The section's bytes as they were before packing; *ret_free is to be freed.
static int unpack(const struct series_dir *d, const struct series_section *s, unsigned id,
                  const uint8_t *part, size_t size, uint64_t seed, struct vreader *ret, void **ret_free)
{
    size_t max = (size_t)d->series * (d->n + 1) * 11 + 64;
    if (!part || s->off > size || s->len > size - s->off ||
        (uint32_t)series_sum(part + s->off, s->len, seed + id) != s->sum)
        return -EBADMSG;
    const uint8_t *p = part + s->off;
    *ret_free = NULL;
    if (s->codec == CODEC_VARINT) {
        *ret = (struct vreader){p, p + s->len, 0};
        return 0;
    }
    size_t n = s->len < 4 ? max + 1 : get_u32(p);
    if (n > max)
        return -EBADMSG;
    uint8_t *raw = *ret_free = xmalloc(n + 1);
    size_t got = ZSTD_decompress(raw, n, p + 4, s->len - 4);
    *ret = (struct vreader){raw, raw + n, 0};
    return ZSTD_isError(got) || got != n ? -EBADMSG : 0;
}

int series_mask_decode(const struct series_dir *d, unsigned mask, const void *part, size_t size,
                       uint64_t seed, uint64_t *ret)
{
    struct vreader r;
    void *tmp = NULL;
    int rc = unpack(d, &d->presence[mask - 1], SERIES_IDS + mask - 1, part, size, seed, &r, &tmp);
    uint64_t m = 0;
    for (unsigned i = 0; i < d->series && !rc; i++) {
        m ^= vreader_get(&r);
        ret[i] = m & full_mask(d->n);
    }
    if (!rc && !vreader_whole(&r))
        rc = -EBADMSG;
    free(tmp);
    return rc;
}

int series_column_decode(const struct series_dir *d, const struct series_section *s, const void *part,
                         size_t size, uint64_t seed, const uint64_t *mask, uint64_t *ret_value)
{
    struct vreader r;
    void *tmp = NULL;
    int rc = unpack(d, s, s->id, part, size, seed, &r, &tmp);
    for (unsigned i = 0; i < d->series && !rc; i++) {
        uint64_t *v = ret_value + (size_t)i * d->n, x = 0;
        for (uint64_t m = mask ? mask[i] : full_mask(d->n); m; m &= m - 1) {
            x = (is_plain(s->id) ? 0 : x) + vreader_get(&r);
            v[__builtin_ctzll(m)] = x;
        }
    }
    if (!rc && !vreader_whole(&r))
        rc = -EBADMSG;
    free(tmp);
    return rc;
}
