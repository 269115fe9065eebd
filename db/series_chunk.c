// SPDX-License-Identifier: Apache-2.0
// Bytes of a chunk: a block's sweeps, column by column, so that one column can be read alone. Pure; what is
// read may be anything.
//
// A column is a run a series: of what it rose between its sweeps, less the run's smallest, as many bits each
// as the greatest needs. Noise of some per cent in a busy counter is most of what there is to keep; bits hold
// it as tightly as an entropy coder does, are read in a nanosecond each, and runs that nobody wants are
// skipped. Where another column of the chunk rises almost the same (unicast packets beside all packets), what
// is kept is the difference from it: which one is found by trying on a few series.
//
// Directory: u8 version, u8 sweeps, u8 masks, u8 columns, u8 parts, u16 series; sections (masks, then
// columns) of u8 id, u8 mask, u8 other column + 1, u8 part, u32 offset, u32 bytes, u32 checksum; u32 checksum
// of all before it.
// Mask section: packed, differences of one series' mask from the one before it, as varints.
// Column section: u32 n, n bytes packed {a width a series; bases, shifted; first values}, then bits.
// Packed: u32 2 * bytes + (1 when compressed with zstd), data.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "db/series_bytes.h"
#include "lib/xalloc.h"

enum { DIR_FIXED = 7, DIR_SECTION = 16, DIR_VERSION = 1 };
enum { HEADER_MAX = SERIES_BLOCK * 21 + 16, MASK_MAX = SERIES_BLOCK * 11 + 16 };
enum { TRY_EVERY = 31, TRY_GAIN = 8 }; // of series; a gain of an eighth at least

static unsigned width_of(uint64_t v)
{
    return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

// Low bits of a base cost more than they save in a wide run.
static unsigned shift_of(unsigned width)
{
    return width > 8 ? width - 6 : 0;
}

// --- packing ---

void series_parts_done(struct series_parts *p)
{
    buf_done(&p->dir);
    for (unsigned i = 0; i <= SERIES_IDS; i++)
        buf_done(&p->part[i]);
    buf_done(&p->section);
    ZSTD_freeCCtx(p->z);
    *p = (struct series_parts){0};
}

static void pack(struct series_parts *out, struct buf *to, const uint8_t *raw, size_t n)
{
    size_t at = to->len, z = n;
    buf_reserve(to, ZSTD_compressBound(n) + 4);
    if (!out->z)
        out->z = ZSTD_createCCtx();
    if (n > 32 && out->z)
        z = ZSTD_compressCCtx(out->z, to->data + at + 4, to->cap - at - 4, raw, n, 1);
    bool packed = !ZSTD_isError(z) && z < n;
    if (!packed)
        memcpy(to->data + at + 4, raw, z = n);
    set_u32(to->data + at, (uint32_t)n << 1 | packed);
    to->len += z + 4;
}

static int unpack(struct series_unpacker *u, const uint8_t *p, size_t size, uint8_t *to, size_t max,
                  size_t *ret_n)
{
    if (size < 4)
        return -EBADMSG;
    uint32_t word = get_u32(p);
    size_t n = word >> 1;
    if (n > max)
        return -EBADMSG;
    *ret_n = n;
    if (!(word & 1)) {
        if (n != size - 4)
            return -EBADMSG;
        memcpy(to, p + 4, n);
        return 0;
    }
    if (!u->z)
        u->z = ZSTD_createDCtx();
    return u->z && ZSTD_decompressDCtx(u->z, to, n, p + 4, size - 4) == n ? 0 : -EBADMSG;
}

void series_unpacker_done(struct series_unpacker *u)
{
    ZSTD_freeDCtx(u->z);
    u->z = NULL;
}

static void add_section(struct series_parts *out, unsigned id, unsigned mask, unsigned other, uint64_t seed)
{
    struct buf *b = &out->section;
    unsigned part = b->len >= SERIES_PART_OWN ? out->num++ : 0;
    struct buf *to = &out->part[part];
    uint8_t d[4] = {(uint8_t)id, (uint8_t)mask, (uint8_t)other, (uint8_t)part};
    buf_add(&out->dir, d, 4);
    put_u32(&out->dir, (uint32_t)to->len);
    put_u32(&out->dir, (uint32_t)b->len);
    put_u32(&out->dir, (uint32_t)series_sum(b->data, b->len, seed + id));
    buf_add(to, b->data, b->len);
}

// --- masks ---

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
        number[c] = 0;
        if (!g->value[c] || is_full(g->mask[c], g->series, g->n))
            continue;
        unsigned m = 0;
        while (m < num && memcmp(g->mask[of[m]], g->mask[c], g->series * sizeof(uint64_t)) != 0)
            m++;
        if (m == num)
            of[num++] = (uint8_t)c;
        number[c] = (uint8_t)(m + 1);
    }
    return num;
}

static void add_mask(struct series_parts *out, unsigned number, const uint64_t *mask, unsigned series,
                     uint64_t seed)
{
    uint8_t raw[MASK_MAX];
    struct vwriter w = {raw, 0};
    uint64_t before = 0;
    for (unsigned i = 0; i < series; i++) {
        vwriter_put(&w, mask[i] ^ before);
        before = mask[i];
    }
    vwriter_end(&w);
    buf_clear(&out->section);
    pack(out, &out->section, raw, (size_t)(w.p - raw));
    add_section(out, SERIES_IDS + number, 0, 0, seed);
}

// --- columns: a row of the grid becomes first value, rises (or, of peaks, values) ---

static unsigned first_of(unsigned id) // values before the run
{
    return is_plain(id) ? 0 : 1;
}

static void to_runs(struct series_grid *g, unsigned id)
{
    for (unsigned i = 0; i < g->series; i++) {
        uint64_t *v = g->value[id] + (size_t)i * g->n, before = 0;
        unsigned k = 0;
        for (uint64_t m = g->mask[id][i]; m; m &= m - 1) {
            uint64_t x = v[__builtin_ctzll(m)];
            v[k++] = x - before;
            before = is_plain(id) ? 0 : x;
        }
    }
}

struct run {
    unsigned width;
    uint64_t base;
};

// a less b (NULL: nothing).
static struct run measure(const uint64_t *a, const uint64_t *b, unsigned n)
{
    int64_t least = INT64_MAX, most = INT64_MIN;
    for (unsigned k = 0; k < n; k++) {
        int64_t d = (int64_t)(a[k] - (b ? b[k] : 0));
        least = d < least ? d : least;
        most = d > most ? d : most;
    }
    if (!n)
        return (struct run){0, 0};
    struct run r = {width_of((uint64_t)most - (uint64_t)least), 0};
    // Shifted down, the base may be so much lower that a bit more is needed; with it there is room.
    for (;; r.width++) {
        unsigned s = shift_of(r.width);
        r.base = (uint64_t)(least >> s) << s;
        if (width_of((uint64_t)most - r.base) <= r.width)
            return r;
    }
}

static uint64_t cost(const struct series_grid *g, unsigned id, unsigned other, bool with)
{
    uint64_t bits = 0;
    for (unsigned i = TRY_EVERY / 2; i < g->series + TRY_EVERY / 2; i += TRY_EVERY) {
        size_t row = (size_t)(i % g->series) * g->n;
        unsigned n = (unsigned)__builtin_popcountll(g->mask[id][i % g->series]);
        if (n < 2)
            continue;
        struct run r = measure(g->value[id] + row + 1, with ? g->value[other] + row + 1 : NULL, n - 1);
        bits += r.width * (n - 1) + 8 + width_of(zigzag(r.base) >> shift_of(r.width));
    }
    return bits;
}

// The column to keep the difference from; SERIES_IDS = none.
static unsigned find_other(const struct series_grid *g, unsigned id, const uint8_t *number,
                           const uint8_t *other)
{
    unsigned best = SERIES_IDS;
    if (is_plain(id))
        return best;
    uint64_t alone = cost(g, id, 0, false), least = alone - alone / TRY_GAIN;
    for (unsigned c = 0; c < id && alone > g->series; c++) {
        if (!g->value[c] || number[c] != number[id] || other[c])
            continue;
        uint64_t bits = cost(g, id, c, true);
        if (bits < least) {
            least = bits;
            best = c;
        }
    }
    return best;
}

struct bits {
    uint8_t *p;
    uint64_t word;
    unsigned fill;
};

static inline void put_bits(struct bits *b, uint64_t v, unsigned width)
{
    b->word |= v << b->fill;
    b->fill += width;
    if (b->fill >= 64) {
        memcpy(b->p, &b->word, 8);
        b->p += 8;
        b->fill -= 64;
        b->word = b->fill ? v >> (width - b->fill) : 0;
    }
}

static void put_run(struct bits *b, const uint64_t *a, const uint64_t *other, unsigned n, const struct run *r)
{
    for (unsigned k = 0; r->width && k < n; k++)
        put_bits(b, a[k] - (other ? other[k] : 0) - r->base, r->width);
}

static void add_column(struct series_parts *out, const struct series_grid *g, unsigned id, unsigned mask,
                       unsigned other, uint64_t seed)
{
    uint8_t *header = xmalloc(HEADER_MAX), *bases = header + g->series;
    uint8_t *data = xmalloc((size_t)g->series * g->n * 8 + 16), *firsts = xmalloc(SERIES_BLOCK * 10),
            *f = firsts;
    struct bits b = {data, 0, 0};
    for (unsigned i = 0; i < g->series; i++) {
        const uint64_t *v = g->value[id] + (size_t)i * g->n;
        const uint64_t *o = other < SERIES_IDS ? g->value[other] + (size_t)i * g->n : NULL;
        unsigned n = (unsigned)__builtin_popcountll(g->mask[id][i]), skip = n ? first_of(id) : 0;
        if (skip)
            f = put_varint(f, zigzag(*v - (o ? *o : 0)));
        struct run r = measure(v + skip, o ? o + skip : NULL, n - skip);
        header[i] = (uint8_t)r.width;
        bases = put_varint(bases, zigzag((uint64_t)((int64_t)r.base >> shift_of(r.width))));
        put_run(&b, v + skip, o ? o + skip : NULL, n - skip, &r);
    }
    memcpy(b.p, &b.word, 8);
    b.p += (b.fill + 7) / 8;
    memcpy(bases, firsts, (size_t)(f - firsts));
    bases += f - firsts;
    struct buf *to = &out->section;
    buf_clear(to);
    put_u32(to, 0);
    pack(out, to, header, (size_t)(bases - header));
    set_u32(to->data, (uint32_t)to->len - 4);
    buf_add(to, data, (size_t)(b.p - data));
    add_section(out, id, mask, other < SERIES_IDS ? other + 1 : 0, seed);
    free(header);
    free(firsts);
    free(data);
}

void series_chunk_encode(struct series_parts *out, struct series_grid *g, uint64_t seed)
{
    uint8_t number[SERIES_IDS], of[SERIES_IDS], other[SERIES_IDS] = {0}, columns = 0;
    unsigned masks = number_masks(g, number, of);
    buf_clear(&out->dir);
    for (unsigned i = 0; i < out->num; i++)
        buf_clear(&out->part[i]);
    out->num = 1;
    for (unsigned c = 0; c < SERIES_IDS; c++)
        columns += g->value[c] != NULL;
    uint8_t fixed[DIR_FIXED] = {DIR_VERSION, (uint8_t)g->n,      (uint8_t)masks,           columns,
                                0,           (uint8_t)g->series, (uint8_t)(g->series >> 8)};
    buf_add(&out->dir, fixed, sizeof(fixed));
    for (unsigned m = 0; m < masks; m++)
        add_mask(out, m, g->mask[of[m]], g->series, seed);
    for (unsigned c = 0; c < SERIES_IDS; c++) {
        if (!g->value[c])
            continue;
        to_runs(g, c);
        unsigned o = find_other(g, c, number, other);
        other[c] = o < SERIES_IDS;
        add_column(out, g, c, number[c], o, seed);
    }
    out->dir.data[4] = (char)out->num;
    put_u32(&out->dir, (uint32_t)series_sum(out->dir.data, out->dir.len, seed));
}

// --- reading ---

static int section_decode(const uint8_t *p, struct series_section *s, const struct series_dir *d)
{
    *s = (struct series_section){p[0], p[1], p[2], p[3], get_u32(p + 4), get_u32(p + 8), get_u32(p + 12)};
    return s->part < d->parts && s->mask <= d->masks && s->other <= SERIES_IDS ? 0 : -EBADMSG;
}

// Of a column whose section says that it is kept as the difference from another: that one stands alone.
static int check_others(const struct series_dir *d)
{
    for (unsigned i = 0; i < d->columns; i++) {
        const struct series_section *s = &d->column[i];
        const struct series_section *o = s->other ? series_dir_find(d, s->other - 1u) : NULL;
        if (s->id >= SERIES_IDS || (s->other && (!o || o->other || o->mask != s->mask || is_plain(o->id))))
            return -EBADMSG;
    }
    return 0;
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
        size != DIR_FIXED + 4 + (size_t)(ret->masks + ret->columns) * DIR_SECTION)
        return -EBADMSG;
    int rc = 0;
    p += DIR_FIXED;
    for (unsigned i = 0; i < ret->masks && !rc; i++, p += DIR_SECTION)
        rc = section_decode(p, &ret->presence[i], ret);
    for (unsigned i = 0; i < ret->columns && !rc; i++, p += DIR_SECTION)
        rc = section_decode(p, &ret->column[i], ret);
    return rc ? rc : check_others(ret);
}

const struct series_section *series_dir_find(const struct series_dir *d, unsigned id)
{
    for (unsigned i = 0; i < d->columns; i++) {
        if (d->column[i].id == id)
            return &d->column[i];
    }
    return NULL;
}

static const uint8_t *section_bytes(const struct series_section *s, unsigned id, const void *part,
                                    size_t size, uint64_t seed)
{
    const uint8_t *p = part;
    if (!p || s->off > size || s->len > size - s->off ||
        (uint32_t)series_sum(p + s->off, s->len, seed + id) != s->sum)
        return NULL;
    return p + s->off;
}

int series_mask_decode(struct series_unpacker *u, const struct series_dir *d, unsigned mask, const void *part,
                       size_t size, uint64_t seed, uint64_t *ret)
{
    uint8_t raw[MASK_MAX];
    size_t n;
    const struct series_section *s = &d->presence[mask - 1];
    const uint8_t *p = section_bytes(s, SERIES_IDS + mask - 1, part, size, seed);
    if (!p || unpack(u, p, s->len, raw, sizeof(raw), &n))
        return -EBADMSG;
    struct vreader r = {raw, raw + n, 0};
    uint64_t m = 0;
    for (unsigned i = 0; i < d->series; i++) {
        m ^= vreader_get(&r);
        ret[i] = m & full_mask(d->n);
    }
    return vreader_whole(&r) ? 0 : -EBADMSG;
}

struct head { // of a column
    uint8_t raw[HEADER_MAX];
    const uint8_t *width;
    uint64_t base[SERIES_BLOCK], first[SERIES_BLOCK];
    const uint8_t *bits;
    size_t bytes;
};

static unsigned count_of(const uint64_t *mask, unsigned i, unsigned n)
{
    return mask ? (unsigned)__builtin_popcountll(mask[i]) : n;
}

static int read_header(struct series_unpacker *u, const struct series_dir *d, const struct series_section *s,
                       const uint8_t *p, const uint64_t *mask, struct head *h)
{
    size_t n;
    uint64_t total = 0, z;
    if (s->len < 4 || get_u32(p) > s->len - 4 || unpack(u, p + 4, get_u32(p), h->raw, sizeof(h->raw), &n))
        return -EBADMSG;
    h->bits = p + 4 + get_u32(p);
    h->bytes = s->len - 4 - get_u32(p);
    h->width = h->raw;
    const uint8_t *q = h->raw + d->series, *end = h->raw + n;
    if (n < d->series)
        return -EBADMSG;
    for (unsigned i = 0; i < d->series && q; i++) {
        if (h->width[i] > 64)
            return -EBADMSG;
        q = get_varint(q, end, &z);
        h->base[i] = q ? unzigzag(z) << shift_of(h->width[i]) : 0;
    }
    for (unsigned i = 0; i < d->series && q; i++) {
        unsigned c = count_of(mask, i, d->n), skip = c ? first_of(s->id) : 0;
        if (skip)
            q = get_varint(q, end, &z);
        h->first[i] = skip && q ? unzigzag(z) : 0;
        total += (uint64_t)h->width[i] * (c - skip);
    }
    return q == end && (total + 7) / 8 == h->bytes ? 0 : -EBADMSG;
}

static uint64_t slow_bits(const uint8_t *p, size_t bytes, uint64_t at, unsigned width)
{
    uint64_t v = 0;
    for (unsigned k = 0; k < width; k++, at++) {
        if (at / 8 < bytes)
            v |= (uint64_t)(p[at / 8] >> at % 8 & 1) << k;
    }
    return v;
}

static void get_run(const struct head *h, uint64_t at, unsigned width, uint64_t base, unsigned n,
                    uint64_t *to)
{
    uint64_t mask = full_mask(width);
    const uint8_t *bits = h->bits; // what is written below could be anything, to the compiler
    if (!width) {
        for (unsigned k = 0; k < n; k++)
            to[k] = base;
    } else if (width <= 57 && (at + (uint64_t)width * n) / 8 + 8 <= h->bytes) {
        for (unsigned k = 0; k < n; k++, at += width)
            to[k] = base + (load64(bits + at / 8) >> at % 8 & mask);
    } else {
        for (unsigned k = 0; k < n; k++, at += width)
            to[k] = base + slow_bits(h->bits, h->bytes, at, width);
    }
}

int series_runs_decode(struct series_unpacker *u, const struct series_dir *d, const struct series_section *s,
                       const void *part, size_t size, uint64_t seed, const uint64_t *mask,
                       const struct series_pick *pick, uint64_t *ret)
{
    struct head h;
    const uint8_t *p = section_bytes(s, s->id, part, size, seed);
    if (!p || read_header(u, d, s, p, mask, &h))
        return -EBADMSG;
    uint64_t at = 0;
    for (unsigned i = 0, r = 0; i < d->series && r < pick->rows; i++) {
        unsigned n = count_of(mask, i, d->n), skip = n ? first_of(s->id) : 0;
        if (pick->row[r] == i) {
            uint64_t *to = ret + (size_t)r++ * d->n;
            if (skip)
                *to = h.first[i];
            get_run(&h, at, h.width[i], h.base[i], n - skip, to + skip);
        }
        at += (uint64_t)h.width[i] * (n - skip);
    }
    return 0;
}

static void spread(uint64_t *v, uint64_t mask, unsigned n)
{
    // From the end: a value never moves down.
    for (unsigned k = (unsigned)__builtin_popcountll(mask); mask && k-- > 0;) {
        unsigned to = 63 - (unsigned)__builtin_clzll(mask);
        v[to] = v[k];
        mask &= ~((uint64_t)1 << to);
    }
}

void series_runs_expand(const struct series_dir *d, const struct series_section *s, const uint64_t *mask,
                        const struct series_pick *pick, const uint64_t *other, uint64_t *v)
{
    bool plain = is_plain(s->id);
    for (unsigned r = 0; r < pick->rows && pick->row[r] < d->series;
         r++, v += d->n, other += other ? d->n : 0) {
        unsigned n = count_of(mask, pick->row[r], d->n);
        if (other) {
            for (unsigned k = 0; k < n; k++)
                v[k] += other[k];
        }
        uint64_t sum = v[0];
        for (unsigned k = 1; k < n && !plain; k++)
            v[k] = sum += v[k];
        if (n < d->n)
            spread(v, mask[pick->row[r]], d->n);
    }
}
