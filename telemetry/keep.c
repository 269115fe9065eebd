// SPDX-License-Identifier: Apache-2.0
// What accumulators need to go on over a restart. An accumulator is the device's counter plus a difference
// that changes only when somebody clears; differences that are not 0 are kept in the file `accumulators` of
// the fabric's folder, written a while after they change and at the end. So what a device counts while nobody
// collects is not lost. History's last values bound them from below: no accumulator is ever seen to go back,
// even when the file is older than the last clear.
//
// The file: "weftacc1", then a record a slot: GUID, port number, mask of counters, one difference each; at
// the end a hash over all. Eight bytes a number, least first. One that does not fit is left alone and not
// used.
#include "telemetry/telemetry_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/log.h"
#include "lib/xalloc.h"

#define MAGIC "weftacc1"
#define MAX_FILE (1u << 28)
#define MAX_SLOTS (1u << 20) // where history numbers none
#define EVERY (60 * MONO_S)

static void path_of(const struct tele *t, char *buf, size_t size)
{
    snprintf(buf, size, "%s/accumulators", t->dir);
}

void keep_put64(struct buf *b, uint64_t v)
{
    uint8_t byte[8];
    for (int i = 0; i < 8; i++)
        byte[i] = (uint8_t)(v >> 8 * i);
    buf_add(b, byte, sizeof(byte));
}

uint64_t keep_get64(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--)
        v = v << 8 | p[i];
    return v;
}

uint64_t keep_hash(const uint8_t *p, size_t n)
{
    uint64_t h = n;
    for (; n >= 8; p += 8, n -= 8)
        h = hash_mix64(h ^ keep_get64(p));
    return h;
}

// --- writing ---

static void put_slot(const struct tele *t, struct buf *b, uint32_t slot)
{
    uint64_t mask = 0;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        mask |= (uint64_t)(accum_base(&t->accum, slot, c) != 0) << c;
    if (mask == 0)
        return;
    keep_put64(b, t->table.port[slot].node_guid);
    keep_put64(b, t->table.port[slot].num);
    keep_put64(b, mask);
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (mask >> c & 1)
            keep_put64(b, accum_base(&t->accum, slot, c));
}

static void put_all(const struct tele *t, struct buf *b)
{
    buf_puts(b, MAGIC);
    for (uint32_t i = 0; i < t->table.num; i++)
        if (accum_has_base(&t->accum, i))
            put_slot(t, b, i);
    keep_put64(b, keep_hash((const uint8_t *)b->data, b->len));
}

static void told(struct tele *t, const char *path)
{
    struct keep *k = &t->keep;
    if (k->status != k->told && k->status != 0)
        log_warning("accumulators-not-kept", "fabric=%s file=\"%s\" cause=\"%s\"", t->fabric, path,
                    strerror(-k->status));
    k->told = k->status;
}

static void job_run(void *arg, struct par *par)
{
    struct tele *t = arg;
    char path[400];
    (void)par;
    path_of(t, path, sizeof(path));
    t->keep.status = buf_write_file(&t->keep.file, path, 0640);
}

static void job_done(void *arg)
{
    struct tele *t = arg;
    char path[400];
    path_of(t, path, sizeof(path));
    t->keep.running = false;
    if (t->keep.status != 0)
        t->keep.changes = UINT64_MAX; // tried again
    buf_done(&t->keep.file);
    told(t, path);
}

void keep_save(struct tele *t, bool now)
{
    struct keep *k = &t->keep;
    int64_t at = loop_now(t->loop).ns;
    if (t->dir == NULL)
        return;
    keep_health_save(t, now);
    if (now && k->running) { // written again below
        pool_cancel(&k->job);
        buf_done(&k->file);
        k->changes = UINT64_MAX;
        k->running = false;
    }
    if (t->accum.changes == k->changes || (!now && (at < k->next || k->running)))
        return;
    put_all(t, &k->file);
    k->changes = t->accum.changes;
    k->next = at + EVERY + (int64_t)(k->file.len >> 22) * EVERY; // a big file less often
    if (!now && t->o.pool != NULL) {
        k->running = true;
        k->job = (struct pool_job){.work = job_run, .done = job_done, .arg = t, .name = "keep"};
        pool_submit(t->o.pool, &k->job);
        return;
    }
    job_run(t, NULL);
    job_done(t);
}

// --- reading ---

uint32_t keep_slot(struct tele *t, uint64_t guid, uint8_t num)
{
    if (num < 1 || num > SWITCH_MAX_PORTS)
        return TELE_SLOT_NONE;
    uint32_t slot = tele_slot(&t->table, guid, num);
    if (slot == TELE_SLOT_NONE && t->series == NULL && t->table.num < MAX_SLOTS) {
        slot = t->table.num;
        tele_slot_set(&t->table, slot, guid, num);
        agents_slots(t);
    }
    return slot;
}

static void take_record(struct tele *t, const uint8_t *p, uint64_t mask)
{
    uint64_t num = keep_get64(p + 8);
    uint32_t slot = num <= UINT8_MAX ? keep_slot(t, keep_get64(p), (uint8_t)num) : TELE_SLOT_NONE;
    p += 24;
    for (unsigned c = 0; slot != TELE_SLOT_NONE && c < TELE_COUNTERS; c++)
        if (mask >> c & 1) {
            accum_set_base(&t->accum, slot, c, keep_get64(p));
            p += 8;
        }
}

static bool take_file(struct tele *t, const struct buf *b)
{
    const uint8_t *p = (const uint8_t *)b->data, *end = p + b->len - 8;
    if (b->len < 16 || b->len % 8 || memcmp(p, MAGIC, 8) != 0 || keep_get64(end) != keep_hash(p, b->len - 8))
        return false;
    for (p += 8; end - p >= 24;) {
        uint64_t mask = keep_get64(p + 16);
        unsigned n = (unsigned)__builtin_popcountll(mask);
        if (mask >> (TELE_COUNTERS - 1) >> 1 || (size_t)(end - p) < 24 + 8u * n)
            return false;
        take_record(t, p, mask);
        p += 24 + 8u * n;
    }
    return p == end;
}

static void load_file(struct tele *t)
{
    struct buf b = {0};
    char path[400];
    path_of(t, path, sizeof(path));
    int rc = buf_read_file(&b, path, MAX_FILE);
    if (rc != 0 && rc != -ENOENT)
        log_warning("accumulators-not-read", "fabric=%s file=\"%s\" cause=\"%s\"", t->fabric, path,
                    strerror(-rc));
    else if (rc == 0 && !take_file(t, &b))
        log_warning("accumulators-not-read",
                    "fabric=%s file=\"%s\" text=\"the file is damaged; counters go on from history\"",
                    t->fabric, path);
    buf_done(&b);
}

static bool on_point(void *arg, const struct series_point *p)
{
    struct tele *t = arg;
    if (p->series >= t->table.num)
        return true;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (p->have >> c & 1 && p->value[c] >= t->table.value[(uint64_t)p->series * TELE_COUNTERS + c])
            accum_set_last(&t->accum, &t->table, p->series, c, p->value[c]);
    t->table.have[p->series] = p->have;
    health_replay(t->health, &t->table, p->series, tele_loop_time(t, p->at_ms * MONO_MS));
    t->table.have[p->series] = 0;
    return true;
}

// The newest values of history: of as long before its end as details are apart.
static void load_last(struct tele *t)
{
    struct err e = {0};
    struct series_reader *r = series_reader_new(t->dir, &e);
    if (r == NULL)
        return;
    int64_t back = t->o.detail_interval_ns / MONO_MS + 2 * t->o.interval_ns / MONO_MS;
    struct series_query q = {.columns = ~0ull >> (64 - TELE_COUNTERS),
                             .from_ms = t->o.history_ms - back,
                             .to_ms = t->o.history_ms};
    if (series_read(r, &q, on_point, t, NULL, &e) < 0)
        log_warning("history-not-read", "fabric=%s text=\"%s\"", t->fabric, e.text);
    series_reader_free(r);
}

void keep_load(struct tele *t)
{
    for (uint32_t i = 0, n = t->series ? series_num(t->series) : 0; i < n; i++) {
        uint64_t guid;
        uint8_t num;
        series_key(t->series, i, &guid, &num);
        tele_slot_set(&t->table, i, guid, num);
    }
    agents_slots(t);
    if (t->dir == NULL)
        return;
    load_file(t);
    keep_health_load(t);
    t->keep.changes = t->accum.changes;
    if (t->series != NULL && t->o.history_ms > 0)
        load_last(t);
}
