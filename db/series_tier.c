// SPDX-License-Identifier: Apache-2.0
// Minute and hour. What the tier below has written is folded into the step it belongs to: the last value of
// each counter, and the greatest rise between two sweeps of those with peaks. The step is written when a
// sample of another one comes, with the time and seq of its last sample. A rise counts where both sweeps have
// the counter and nothing was left out between them (their seqs follow each other), in the step of the later.
//
// Nothing of a step in the making is kept apart: at the start, and after a failure, it is folded again from
// the files, from the last step written on. So it is always what the files below say.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "db/series_bytes.h"
#include "lib/log.h"
#include "lib/xalloc.h"

static const int64_t step_ms[SERIES_TIERS] = {
    [SERIES_RAW] = 60000, [SERIES_MINUTE] = 3600000}; // of what they become

// --- memory ---

static unsigned peaks_of(const struct series *s)
{
    return (unsigned)__builtin_popcountll(s->o.peak_columns);
}

// Of a column among those with peaks.
static unsigned place_of(const struct series *s, unsigned column)
{
    return (unsigned)__builtin_popcountll(s->o.peak_columns & (((uint64_t)1 << column) - 1));
}

static uint64_t *grown(uint64_t *p, uint32_t old, uint32_t cap, unsigned columns)
{
    uint64_t *n = xcalloc((size_t)cap * columns + 1, sizeof(*n));
    for (unsigned c = 0; p && c < columns; c++)
        memcpy(n + (size_t)c * cap, p + (size_t)c * old, old * sizeof(*n));
    free(p);
    return n;
}

static void grow(struct series *s, struct series_fold *f, uint32_t num)
{
    if (num > f->num)
        f->num = num;
    if (num <= f->cap)
        return;
    uint32_t cap = (num + num / 4 + SERIES_BLOCK - 1) / SERIES_BLOCK * SERIES_BLOCK;
    f->have[0] = grown(f->have[0], f->cap, cap, 1);
    f->have[1] = grown(f->have[1], f->cap, cap, 1);
    f->before = grown(f->before, f->cap, cap, 1);
    f->peak = grown(f->peak, f->cap, cap, peaks_of(s));
    f->cap = cap;
}

void series_fold_done(struct series_fold *f)
{
    free(f->have[0]);
    free(f->have[1]);
    free(f->before);
    free(f->peak);
    *f = (struct series_fold){0};
}

static void clear(struct series_fold *f)
{
    f->any = false;
    f->num = 0;
    if (f->cap) {
        memset(f->have[0], 0, f->cap * sizeof(uint64_t));
        memset(f->have[1], 0, f->cap * sizeof(uint64_t));
    }
}

void series_fold_init(struct series *s)
{
    for (int t = 0; t < SERIES_TIERS; t++)
        s->out[t].fold = (struct series_fold){.step_ms = step_ms[t], .stale = true};
}

// --- folding ---

static void set_peak(struct series_fold *f, unsigned place, unsigned column, uint32_t i, uint64_t rise)
{
    uint64_t *to = &f->peak[(size_t)place * f->cap + i], bit = (uint64_t)1 << column;
    if (!(f->have[1][i] & bit) || rise > *to)
        *to = rise;
    f->have[1][i] |= bit;
}

// Of sweep m of raw, before its values replace those of the sweep before it (last: of the same column).
static void fold_rises(struct series *s, struct series_out *o, const struct series_sample *m)
{
    struct series_fold *f = &o->fold;
    for (unsigned c = 0; c < m->columns; c++) {
        unsigned id = m->id[c];
        if (id >= SERIES_COLUMNS || !(s->o.peak_columns >> id & 1))
            continue;
        unsigned place = place_of(s, id);
        for (uint32_t i = 0; i < m->num; i++) {
            uint32_t b = i / SERIES_BLOCK;
            const uint64_t *last = b < o->blocks ? o->block[b].chain.last[id] : NULL;
            if (!last || !(m->have[0][i] & f->before[i] & (uint64_t)1 << id))
                continue;
            uint64_t v = m->value[(size_t)b * m->columns + c][i % SERIES_BLOCK], l = last[i % SERIES_BLOCK];
            set_peak(f, place, id, i, v > l ? v - l : 0);
        }
    }
}

// Of a minute: its peaks.
static void fold_peaks(struct series *s, struct series_fold *f, const struct series_sample *m)
{
    for (unsigned c = 0; c < m->columns; c++) {
        unsigned column = m->id[c] - SERIES_COLUMNS;
        if (m->id[c] < SERIES_COLUMNS || !(s->o.peak_columns >> column & 1) || !m->have[1])
            continue;
        unsigned place = place_of(s, column);
        for (uint32_t i = 0; i < m->num; i++) {
            const uint64_t *v = m->value[(size_t)(i / SERIES_BLOCK) * m->columns + c];
            if (v && m->have[1][i] >> column & 1)
                set_peak(f, place, column, i, v[i % SERIES_BLOCK]);
        }
    }
}

static void fold_begin(struct series_fold *f, int64_t at_ms)
{
    f->step = at_ms / f->step_ms;
    f->any = true;
}

static void fold_end(struct series_fold *f, const struct series_sample *m)
{
    for (uint32_t i = 0; i < m->num; i++)
        f->have[0][i] |= m->have[0][i];
    memcpy(f->before, m->have[0], m->num * sizeof(uint64_t));
    f->seq = m->seq;
    f->at_ms = m->at_ms;
}

// The step as a sample of the next tier; free value.
static void make_sample(struct series *s, struct series_out *o, struct series_sample *m)
{
    struct series_fold *f = &o->fold;
    uint64_t any[2] = {0, 0};
    *m = (struct series_sample){
        .seq = f->seq, .at_ms = f->at_ms, .num = f->num, .have = {f->have[0], f->have[1]}};
    m->blocks = (f->num + SERIES_BLOCK - 1) / SERIES_BLOCK;
    for (uint32_t i = 0; i < f->num; i++) {
        any[0] |= f->have[0][i];
        any[1] |= f->have[1][i];
    }
    for (unsigned id = 0; id < SERIES_IDS; id++) {
        if (any[id / SERIES_COLUMNS] >> id % SERIES_COLUMNS & 1)
            m->id[m->columns++] = (uint8_t)id;
    }
    m->value = xcalloc((size_t)m->blocks * m->columns + 1, sizeof(*m->value));
    for (uint32_t b = 0; b < m->blocks; b++) {
        for (unsigned c = 0; c < m->columns; c++) {
            unsigned id = m->id[c];
            const uint64_t *v = b < o->blocks ? o->block[b].chain.last[id] : NULL;
            if (id >= SERIES_COLUMNS)
                v = f->peak + (size_t)place_of(s, id - SERIES_COLUMNS) * f->cap + (size_t)b * SERIES_BLOCK;
            m->value[(size_t)b * m->columns + c] = v;
        }
    }
}

static int write_step(struct series *s, enum series_tier t)
{
    struct series_sample m;
    make_sample(s, &s->out[t], &m);
    int rc = series_tier_write(s, t + 1, &m);
    free(m.value);
    if (!rc)
        clear(&s->out[t].fold);
    return rc;
}

// --- folding again from the files ---

struct again {
    struct series *s;
    struct series_out *o;
    struct series_job j;
    struct series_source src;
    int64_t carried_seq; // of the sweep before the file's first, whose values are in `last` and `before`
};

static void take_value(struct again *a, uint32_t i, unsigned id, uint64_t v, bool rises)
{
    struct series_fold *f = &a->o->fold;
    uint64_t *last = &series_chain_column(&a->o->block[i / SERIES_BLOCK].chain, id)[i % SERIES_BLOCK];
    unsigned column = id % SERIES_COLUMNS;
    uint64_t bit = (uint64_t)1 << column;
    unsigned place = place_of(a->s, column);
    bool peak = a->s->o.peak_columns & bit;
    if (id >= SERIES_COLUMNS) {
        if (peak)
            set_peak(f, place, column, i, v);
        return;
    }
    if (rises && peak && f->before[i] & bit)
        set_peak(f, place, column, i, v > *last ? v - *last : 0);
    *last = v;
    f->have[0][i] |= bit;
}

// Sweep by sweep of one series, those from index `from` on count; the one before them may stand for a rise.
static void take_row(struct again *a, uint32_t i, unsigned row, size_t from)
{
    struct series_fold *f = &a->o->fold;
    bool raw = a->o->tier == SERIES_RAW;
    int64_t before_seq = a->src.lo ? 0 : a->carried_seq;
    if (!before_seq)
        f->before[i] = 0;
    for (size_t n = 0; n < a->j.spans; n++) {
        const struct series_span *s = &a->j.span[n];
        for (unsigned k = 0; k < s->n; k++) {
            size_t at = s->first + k;
            uint64_t have = 0;
            if (at < a->src.lo || at >= a->src.hi)
                continue;
            for (unsigned c = 0; c < a->j.columns; c++) {
                unsigned id = a->j.column[c];
                if (!s->value[c] || !(s->mask[c][row] >> k & 1))
                    continue;
                uint64_t v = s->value[c][(size_t)row * s->n + k];
                if (id < SERIES_COLUMNS)
                    have |= (uint64_t)1 << id;
                if (at >= from)
                    take_value(a, i, id, v, raw && s->src->t.seq[at] == before_seq + 1);
                else if (id < SERIES_COLUMNS)
                    series_chain_column(&a->o->block[i / SERIES_BLOCK].chain, id)[i % SERIES_BLOCK] = v;
            }
            f->before[i] = have;
            before_seq = s->src->t.seq[at];
        }
    }
}

// The last sweep of the file before this one, when this one's first follows it: for its rise.
static void carry_in(struct again *a, const struct series_name *list, long n)
{
    struct series_source src = a->src;
    int64_t want = src.t.n ? src.t.seq[0] - 1 : 0;
    struct series_query all = {.columns = UINT64_MAX};
    uint32_t at = 0;
    a->carried_seq = 0;
    for (long i = 0; i < n && want > 0 && !a->carried_seq; i++) {
        struct err e;
        if (list[i].tier != a->o->tier || strcmp(list[i].text, src.file.name.text) == 0 ||
            series_source_open(&a->src, a->s->dir, &list[i], &e))
            continue;
        size_t end = a->src.t.n;
        if (end && a->src.t.seq[end - 1] == want) {
            a->src.lo = end - 1;
            a->src.hi = end;
            grow(a->s, &a->o->fold, a->j.r->num);
            while (series_job_next(&a->j, &all, &at) && !series_gather(&a->j)) {
                for (unsigned r = 0; r < a->j.pick.rows; r++)
                    take_row(a, a->j.block * SERIES_BLOCK + a->j.pick.row[r], r, end);
            }
            a->carried_seq = want;
        }
        series_source_close(&a->src);
    }
    a->src = src;
}

// One step out of a file: sweeps [lo, hi) of it.
static int fold_step(struct again *a, size_t lo, size_t hi)
{
    struct series_query all = {.columns = UINT64_MAX};
    struct series_fold *f = &a->o->fold;
    const struct series_times *t = &a->src.t;
    uint32_t at = 0;
    int rc = 0;
    a->src.lo = lo ? lo - 1 : 0;
    a->src.hi = hi;
    grow(a->s, f, a->j.r->num);
    fold_begin(f, t->at[lo]);
    while (!rc && series_job_next(&a->j, &all, &at)) {
        rc = series_gather(&a->j);
        for (unsigned r = 0; !rc && r < a->j.pick.rows; r++)
            take_row(a, a->j.block * SERIES_BLOCK + a->j.pick.row[r], r, lo);
    }
    f->seq = t->seq[hi - 1];
    f->at_ms = t->at[hi - 1];
    return rc;
}

static int fold_file(struct again *a, int64_t after_seq)
{
    const struct series_times *t = &a->src.t;
    enum series_tier tier = a->o->tier;
    struct series_fold *f = &a->o->fold;
    int rc = 0;
    for (size_t lo = series_find_seq(t, after_seq + 1), hi; lo < t->n && !rc; lo = hi) {
        int64_t step = t->at[lo] / f->step_ms;
        for (hi = lo + 1; hi < t->n && t->at[hi] / f->step_ms == step;)
            hi++;
        if (f->any && f->step != step)
            rc = write_step(a->s, tier);
        if (!rc)
            rc = fold_step(a, lo, hi);
    }
    return rc;
}

static void init_again(struct again *a, struct series *s, struct series_out *o, struct series_reader *r)
{
    *a = (struct again){.s = s, .o = o, .j = {.r = r}};
    for (unsigned c = 0; c < SERIES_COLUMNS; c++)
        a->j.column[a->j.columns++] = (uint8_t)c;
    for (unsigned c = 0; c < SERIES_COLUMNS && o->tier != SERIES_RAW; c++) {
        if (s->o.peak_columns >> c & 1)
            a->j.column[a->j.columns++] = (uint8_t)(SERIES_COLUMNS + c);
    }
}

// A file that is gone or damaged does not count; one that cannot be read now must: what is in it is not
// known.
static int peek(struct series *s, const struct series_name *name, const char *sql, int64_t *ret)
{
    struct series_file f;
    *ret = 0;
    int rc = series_file_open(&f, s->dir, name, SERIES_READ, s->o.vfs, NULL);
    if (!rc) {
        rc = series_file_fail(&f, db_get_int(f.c, sql, ret));
        series_file_close(&f);
    }
    return rc == -ENOENT || rc == -EBADMSG ? 0 : rc;
}

static int newest_of(struct series *s, const struct series_name *list, long n, enum series_tier t,
                     int64_t *ret_seq)
{
    int rc = 0;
    *ret_seq = 0;
    for (long i = 0; i < n && !rc; i++) {
        int64_t seq = 0;
        if (list[i].tier == t)
            rc = peek(s, &list[i], "SELECT max(seq) FROM sweep", &seq);
        *ret_seq = seq > *ret_seq ? seq : *ret_seq;
    }
    return rc;
}

// In the order of writing: by the first sweep that is newer than seq. 1: there is one, 0: none.
static int next_file(struct series *s, const struct series_name *list, long n, enum series_tier t,
                     int64_t seq, struct series_name *ret)
{
    int64_t least = INT64_MAX;
    int rc = 0;
    for (long i = 0; i < n && !rc; i++) {
        char text[100];
        int64_t next = 0;
        snprintf(text, sizeof(text), "SELECT min(seq) FROM sweep WHERE seq > %lld", (long long)seq);
        if (list[i].tier == t)
            rc = peek(s, &list[i], text, &next);
        if (next > 0 && next < least) {
            least = next;
            *ret = list[i];
        }
    }
    return rc ? rc : least != INT64_MAX;
}

static int fold_again(struct series *s, enum series_tier t)
{
    struct series_out *o = &s->out[t];
    struct series_name *list, name;
    struct series_reader r = {.dir = s->dir, .key = s->wkey, .num = s->wnum};
    struct again a;
    struct err e = {0};
    int64_t seq;
    long n = series_names(s->dir, &list);
    if (n < 0)
        return (int)n;
    clear(&o->fold);
    init_again(&a, s, o, &r);
    a.j.e = &e;
    series_out_blocks(o, (s->wnum + SERIES_BLOCK - 1) / SERIES_BLOCK);
    int rc = newest_of(s, list, n, t + 1, &seq);
    while (!rc && (rc = next_file(s, list, n, t, seq, &name)) > 0) {
        rc = series_source_open(&a.src, s->dir, &name, &e);
        if (rc)
            break;
        a.j.source = &a.src;
        a.j.sources = 1;
        if (t == SERIES_RAW && series_find_seq(&a.src.t, seq + 1) == 0)
            carry_in(&a, list, n);
        rc = fold_file(&a, seq);
        seq = a.src.t.n && a.src.t.seq[a.src.t.n - 1] > seq ? a.src.t.seq[a.src.t.n - 1] : INT64_MAX - 1;
        series_source_close(&a.src);
    }
    a.j.source = NULL;
    a.j.sources = 0;
    series_job_done(&a.j);
    free(list);
    series_out_forget(o);
    o->fold.stale = rc != 0;
    return rc;
}

// --- a sample ---

int series_tier_write(struct series *s, enum series_tier t, const struct series_sample *m)
{
    struct series_out *o = &s->out[t];
    struct series_fold *f = &o->fold;
    bool folds = t + 1 < SERIES_TIERS;
    if (folds && !f->stale && f->any && f->step != m->at_ms / f->step_ms && write_step(s, t))
        f->stale = true;
    if (folds && !f->stale) {
        grow(s, f, m->num);
        fold_begin(f, m->at_ms);
        if (t == SERIES_RAW && m->seq == f->seq + 1)
            fold_rises(s, o, m);
        else if (t != SERIES_RAW)
            fold_peaks(s, f, m);
    }
    int rc = series_out_write(s, o, m);
    if (!folds)
        return rc;
    if (rc)
        f->stale = true;
    else if (f->stale)
        (void)fold_again(s, t); // with this sample
    else
        fold_end(f, m);
    return rc;
}

void series_tier_begin(struct series *s)
{
    // From the coarser one: a minute that is written folds into its hour.
    for (int t = SERIES_TIERS - 2; t >= 0; t--)
        (void)fold_again(s, (enum series_tier)t);
}
