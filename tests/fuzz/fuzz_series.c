// SPDX-License-Identifier: Apache-2.0
// Telemetry as it lies in files: head rows and chunks of any bytes. The first byte says which; checksums are
// made right first, so that what they protect is reached. What was decoded is coded again and must come back.
//
//   0: head rows, each u16 bytes and the row      1: a directory (u16 bytes), then the part of all its
//   sections 2: a grid to code: u8 sweeps, u8 series, then values
#include <stdlib.h>
#include <string.h>

#include "db/series_bytes.h"
#include "lib/xalloc.h"
#include "tests/fuzz/fuzz.h"

enum { SEED = 7, ROWS_MAX = 200 };

static void set_sum(uint8_t *end, uint64_t sum)
{
    for (unsigned i = 0; i < 4; i++)
        end[i] = (uint8_t)(sum >> 8 * i);
}

static void head_rows(const uint8_t *p, size_t size)
{
    struct series_chain chain = {0};
    struct series_grid g;
    bool have_key = false;
    series_grid_init(&g, 64, SERIES_BLOCK);
    for (unsigned row = 0; size >= 2 && row < ROWS_MAX; row++) {
        size_t n = p[0] | (size_t)p[1] << 8;
        p += 2;
        size -= 2;
        n = n < size ? n : size;
        uint8_t *copy = xmalloc(n + 1);
        memcpy(copy, p, n);
        if (n >= 4)
            set_sum(copy + n - 4, series_sum(copy, n - 4, SEED));
        if (series_head_decode(copy, n, SEED, &chain, &have_key, NULL, row < 64 ? &g : NULL, row % 64))
            have_key = false;
        free(copy);
        p += n;
        size -= n;
    }
    series_grid_done(&g);
    series_chain_done(&chain);
}

static void column(struct series_unpacker *u, const struct series_dir *d, const struct series_section *s,
                   const uint8_t *part, size_t size)
{
    static uint64_t value[SERIES_BLOCK * 64], other[SERIES_BLOCK * 64];
    uint64_t mask[SERIES_BLOCK];
    struct series_pick all = {.rows = 0};
    const struct series_section *o = s->other ? series_dir_find(d, s->other - 1u) : NULL;
    for (unsigned i = 0; i < SERIES_BLOCK; i += 1 + i % 3)
        all.row[all.rows++] = (uint16_t)i;
    if (s->mask && series_mask_decode(u, d, s->mask, part, size, SEED, mask))
        return;
    const uint64_t *m = s->mask ? mask : NULL;
    if (series_runs_decode(u, d, s, part, size, SEED, m, &all, value))
        return;
    if (o && series_runs_decode(u, d, o, part, size, SEED, m, &all, other))
        return;
    series_runs_expand(d, s, m, &all, o ? other : NULL, value);
}

// Sums of sections are set in the directory, then the directory's own.
static void chunk(uint8_t *p, size_t size)
{
    struct series_dir d;
    struct series_unpacker u = {0};
    if (size < 2)
        return;
    size_t n = p[0] | (size_t)p[1] << 8;
    uint8_t *dir = p + 2;
    size -= 2;
    n = n < size ? n : size;
    const uint8_t *part = dir + n;
    size_t part_size = size - n;
    for (size_t at = 7; n >= 11 && at + 16 <= n - 4; at += 16) {
        uint8_t *s = dir + at;
        uint32_t off = get_u32(s + 4), len = get_u32(s + 8);
        unsigned id = at < 7u + 16u * dir[2] ? SERIES_IDS + (unsigned)(at - 7) / 16 : s[0];
        if (off <= part_size && len <= part_size - off)
            set_sum(s + 12, series_sum(part + off, len, SEED + id));
    }
    if (n >= 4)
        set_sum(dir + n - 4, series_sum(dir, n - 4, SEED));
    if (series_dir_decode(dir, n, SEED, &d))
        return;
    for (unsigned i = 0; i < d.columns; i++)
        column(&u, &d, &d.column[i], part, part_size);
    series_unpacker_done(&u);
}

static void must(bool b)
{
    if (!b)
        abort();
}

static void same(const struct series_parts *parts, const struct series_grid *g, unsigned id)
{
    static uint64_t value[SERIES_BLOCK * 64], other[SERIES_BLOCK * 64];
    struct series_dir d;
    struct series_unpacker u = {0};
    struct series_pick all = {.rows = g->series};
    uint64_t mask[SERIES_BLOCK];
    for (unsigned i = 0; i < g->series; i++)
        all.row[i] = (uint16_t)i;
    must(!series_dir_decode(parts->dir.data, parts->dir.len, SEED, &d));
    const struct series_section *s = series_dir_find(&d, id);
    const struct series_section *o = s && s->other ? series_dir_find(&d, s->other - 1u) : NULL;
    must(s);
    const struct buf *b = &parts->part[s->part];
    if (s->mask) {
        const struct buf *mb = &parts->part[d.presence[s->mask - 1].part];
        must(!series_mask_decode(&u, &d, s->mask, mb->data, mb->len, SEED, mask));
    }
    const uint64_t *m = s->mask ? mask : NULL;
    must(!series_runs_decode(&u, &d, s, b->data, b->len, SEED, m, &all, value));
    if (o)
        must(!series_runs_decode(&u, &d, o, parts->part[o->part].data, parts->part[o->part].len, SEED, m,
                                 &all, other));
    series_runs_expand(&d, s, m, &all, o ? other : NULL, value);
    for (unsigned i = 0; i < g->series; i++) {
        must((m ? m[i] : full_mask(g->n)) == g->mask[id][i]);
        for (uint64_t x = g->mask[id][i]; x; x &= x - 1)
            must(value[i * g->n + (unsigned)__builtin_ctzll(x)] ==
                 g->value[id][i * g->n + (unsigned)__builtin_ctzll(x)]);
    }
    series_unpacker_done(&u);
}

// Widths of all sizes come of the shifts; columns 0 and 1 are nearly the same, 65 is one of peaks.
static void round_trip(const uint8_t *p, size_t size)
{
    struct series_grid g, copy;
    struct series_parts parts = {0};
    static const unsigned id[] = {0, 1, 2, 65};
    if (size < 2 || !p[0] || !p[1])
        return;
    series_grid_init(&g, 1 + p[0] % 64, 1 + p[1] % 40);
    series_grid_init(&copy, g.n, g.series);
    p += 2;
    size -= 2;
    for (unsigned c = 0; c < 4; c++) {
        series_grid_column(&g, id[c]);
        series_grid_column(&copy, id[c]);
        uint64_t x = 0;
        for (unsigned i = 0; i < g.series; i++) {
            for (unsigned k = 0; k < g.n && size; k++) {
                size_t at = (i * g.n + k) * (c == 1 ? 1 : c + 1) % size;
                uint8_t b = p[at];
                x += (uint64_t)b << (b % 57);
                g.value[id[c]][i * g.n + k] = x;
                if (b != 3)
                    g.mask[id[c]][i] |= (uint64_t)1 << k;
            }
        }
        memcpy(copy.value[id[c]], g.value[id[c]], (size_t)g.series * g.n * 8);
        memcpy(copy.mask[id[c]], g.mask[id[c]], g.series * 8);
    }
    series_chunk_encode(&parts, &g, SEED);
    for (unsigned c = 0; c < 4; c++)
        same(&parts, &copy, id[c]);
    series_grid_done(&g);
    series_grid_done(&copy);
    series_parts_done(&parts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    uint8_t *copy = xmalloc(size);
    memcpy(copy, data, size);
    if (copy[0] % 3 == 0)
        head_rows(copy + 1, size - 1);
    else if (copy[0] % 3 == 1)
        chunk(copy + 1, size - 1);
    else
        round_trip(copy + 1, size - 1);
    free(copy);
    return 0;
}
