// SPDX-License-Identifier: Apache-2.0
#include "telemetry/write_batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/xalloc.h"

#define NO_SERIES UINT32_MAX

// --- labels ---

static unsigned port_labels(const struct tele_name *n, const char *fabric, struct rw_label *ret, char *guid,
                            char *port)
{
    unsigned k = 0;
    if (fabric != NULL)
        ret[k++] = (struct rw_label){"fabric", fabric};
    ret[k++] = (struct rw_label){"guid", guid_str(n->node_guid, guid)};
    if (n->kind == TELE_OF_HCA)
        ret[k++] = (struct rw_label){"hca", n->node};
    snprintf(port, 4, "%u", n->num);
    ret[k++] = (struct rw_label){"port", port};
    ret[k++] = (struct rw_label){"switch", n->kind == TELE_OF_HCA ? n->sw : n->node};
    return k;
}

void write_labels_make(struct write_labels *ret, const struct tele_names *n, const char *fabric,
                       const struct rw_label *own, unsigned num_own)
{
    static const char *const kind[] = {[TELE_OF_SWITCH] = "switch", [TELE_OF_HCA] = "hca"};
    struct rw_label label[RW_LABELS_MAX];
    char guid[GUID_STR_SIZE], port[4], name[120];

    *ret = (struct write_labels){.num = n->num, .at = xcalloc(n->num + 1ul, sizeof(*ret->at))};
    if (num_own > 0)
        memcpy(label, own, num_own * sizeof(*own));
    for (uint32_t i = 0; i < n->num; i++) {
        ret->at[i] = (uint32_t)ret->after.len;
        if (n->name[i].kind == TELE_OF_NOBODY)
            continue;
        rw_labels_set(&ret->common, label,
                      num_own + port_labels(&n->name[i], fabric, label + num_own, guid, port));
        buf_add(&ret->after, ret->common.after.data, ret->common.after.len);
    }
    ret->at[n->num] = (uint32_t)ret->after.len;
    for (unsigned k = TELE_OF_SWITCH; k <= TELE_OF_HCA; k++)
        for (unsigned c = 0; c < TELE_COUNTERS; c++) {
            snprintf(name, sizeof(name), "infiniband_%s_%s", kind[k], tele_rows[c].metric);
            rw_name_set(&ret->name[k][c], name);
        }
}

void write_labels_done(struct write_labels *l)
{
    rw_labels_done(&l->common);
    buf_done(&l->after);
    free(l->at);
    for (unsigned k = 0; k < 3; k++)
        for (unsigned c = 0; c < TELE_COUNTERS; c++)
            buf_done(&l->name[k][c]);
    *l = (struct write_labels){0};
}

// --- batches ---

void write_maker_init(struct write_maker *m)
{
    *m = (struct write_maker){.series = NO_SERIES};
    m->sample = xcalloc((size_t)TELE_COUNTERS * WRITE_BATCH_RUN, sizeof(*m->sample));
}

void write_maker_clear(struct write_maker *m)
{
    for (unsigned i = 0; i < m->num; i++)
        buf_done(&m->batch[i].block);
    m->num = 0;
    m->samples = m->raw_bytes = m->block_bytes = m->unnamed = 0;
    m->raw_samples = m->run = 0;
    m->seen = 0;
    m->series = NO_SERIES;
    buf_clear(&m->raw);
}

void write_maker_done(struct write_maker *m)
{
    write_maker_clear(m);
    free(m->batch);
    free(m->sample);
    buf_done(&m->raw);
}

static void close_batch(struct write_maker *m)
{
    if (m->raw_samples == 0)
        return;
    if (m->num == m->cap)
        m->batch = xreallocarray(m->batch, m->cap = m->cap ? m->cap * 2 : 16, sizeof(*m->batch));
    struct write_batch *b = &m->batch[m->num];
    *b = (struct write_batch){.samples = m->raw_samples, .first_ms = m->first_ms, .last_ms = m->last_ms};
    if (rw_compress(&m->raw, &b->block) == 0) {
        m->num++;
        m->raw_bytes += m->raw.len;
        m->block_bytes += b->block.len;
        m->samples += b->samples;
    } else {
        buf_done(&b->block);
    }
    m->raw_samples = 0;
    buf_clear(&m->raw);
}

static void note_times(struct write_maker *m, const struct rw_sample *s, unsigned n)
{
    if (m->raw_samples == 0 || s[0].at_ms < m->first_ms)
        m->first_ms = s[0].at_ms;
    if (m->raw_samples == 0 || s[n - 1].at_ms > m->last_ms)
        m->last_ms = s[n - 1].at_ms;
}

static void end_run(struct write_maker *m)
{
    const struct write_labels *l = m->labels;
    uint32_t i = m->series;
    uint64_t seen = m->seen;

    m->run = 0;
    m->seen = 0;
    if (i == NO_SERIES || seen == 0)
        return;
    struct rw_text label[3] = {{l->common.before.data, l->common.before.len},
                               {NULL, 0},
                               {l->after.data + l->at[i], l->at[i + 1] - l->at[i]}};
    for (; seen != 0; seen &= seen - 1) {
        unsigned c = (unsigned)__builtin_ctzll(seen);
        const struct rw_sample *s = &m->sample[c * WRITE_BATCH_RUN];
        const struct buf *name = &l->name[m->names->name[i].kind][c];
        label[1] = (struct rw_text){name->data, name->len};
        if (m->raw_samples + m->count[c] > WRITE_BATCH_SAMPLES ||
            m->raw.len + rw_series_bytes(label, m->count[c]) > WRITE_BATCH_BYTES)
            close_batch(m);
        note_times(m, s, m->count[c]);
        rw_series(&m->raw, label, s, m->count[c]);
        m->raw_samples += m->count[c];
        m->count[c] = 0;
    }
}

void write_maker_point(struct write_maker *m, const struct series_point *p)
{
    uint64_t have = p->have & ((1ull << TELE_COUNTERS) - 1);

    if (p->series >= m->names->num || m->names->name[p->series].kind == TELE_OF_NOBODY) {
        m->unnamed += (unsigned)__builtin_popcountll(have);
        return;
    }
    if (p->series != m->series || m->run == WRITE_BATCH_RUN) {
        end_run(m);
        m->series = p->series;
    }
    m->run++;
    uint64_t fresh = have & ~m->seen;
    m->seen |= have;
    for (; fresh != 0; fresh &= fresh - 1)
        m->count[__builtin_ctzll(fresh)] = 0;
    for (; have != 0; have &= have - 1) {
        unsigned c = (unsigned)__builtin_ctzll(have);
        m->sample[c * WRITE_BATCH_RUN + m->count[c]++] =
            (struct rw_sample){p->at_ms, (double)tele_shown(c, p->value[c])};
    }
}

void write_maker_end(struct write_maker *m)
{
    end_run(m);
    close_batch(m);
}
