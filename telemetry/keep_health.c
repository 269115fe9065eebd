// SPDX-License-Identifier: Apache-2.0
// What the rules' windows hold, over a restart: `health` in the fabric's folder has the links of which there
// is something to say, written when they have changed, a minute apart at least; `health-rest` all others
// (coverage, a day's raw bit error ratios), every 15 min, as long ago as nothing that they say is lost but
// the last quarter of an hour. What came between the file and the end is in history's last sweeps, or is what
// the first reading finds: counters go on by themselves. History alone could not do: it knows no cables, no
// clears and not how long a down was.
//
// A file: MAGIC, wall clock (ns), records (health_keep.c), zeros up to eight bytes, how many bytes records
// have, a hash over all. A file that does not fit is left alone and not used. Made on the loop some ports a
// turn, written by a worker: about 40 bytes a port, 150 more with FEC, some hundred a link that is noted.
// 100,000 ports with FEC are 19 MB every 15 min and 3 ms a turn; at the start they take a quarter of a
// second.
#include "telemetry/telemetry_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/log.h"

#define MAGIC "weftlth1"
#define MAX_FILE (1u << 28)
#define MAX_PUT (MAX_FILE / 2)
#define SLOTS_A_TURN 4096
#define BYTES_A_TURN (1u << 20)
#define EVERY (60 * MONO_S)
#define REST_EVERY (15 * 60 * MONO_S)

static const char *const name[2] = {[HEALTH_NOTED] = "health", [HEALTH_REST] = "health-rest"};

static void path_of(const struct tele *t, enum health_part part, char *buf, size_t size)
{
    snprintf(buf, size, "%s/%s", t->dir, name[part]);
}

// --- writing ---

static void begin_file(struct tele *t, enum health_part part)
{
    struct buf *b = &t->keep_health.file[part];
    buf_clear(b);
    buf_puts(b, MAGIC);
    keep_put64(b, (uint64_t)tele_wall_now(t));
}

static void end_file(struct tele *t, enum health_part part)
{
    struct buf *b = &t->keep_health.file[part];
    uint64_t records = b->len - 16;
    while (b->len % 8)
        buf_putc(b, 0);
    keep_put64(b, records);
    keep_put64(b, keep_hash((const uint8_t *)b->data, b->len));
}

static void put_slot(struct tele *t, uint32_t slot)
{
    struct keep_health *k = &t->keep_health;
    for (int part = HEALTH_NOTED; part <= HEALTH_REST; part++) {
        if (!(k->parts >> part & 1))
            continue;
        if (k->file[part].len < MAX_PUT)
            health_put(t->health, &t->table, slot, (enum health_part)part, k->at, &k->file[part]);
        else
            k->too_much = true;
    }
}

static void write_files(void *arg, struct par *par)
{
    struct tele *t = arg;
    struct keep_health *k = &t->keep_health;
    char path[400];
    (void)par;
    k->status = 0;
    for (int part = HEALTH_NOTED; part <= HEALTH_REST; part++) {
        if (!(k->parts >> part & 1))
            continue;
        path_of(t, (enum health_part)part, path, sizeof(path));
        int rc = buf_write_file(&k->file[part], path, 0640);
        k->status = k->status ? k->status : rc;
    }
}

static void written(void *arg)
{
    struct tele *t = arg;
    struct keep_health *k = &t->keep_health;
    int status = k->status ? k->status : k->too_much ? -EFBIG : 0;
    k->running = false;
    buf_done(&k->file[HEALTH_NOTED]);
    buf_done(&k->file[HEALTH_REST]);
    for (int part = HEALTH_NOTED; part <= HEALTH_REST && k->status != 0; part++)
        if (k->parts >> part & 1)
            k->changes[part] = UINT64_MAX; // nothing of it is on disk: tried again
    if (status != k->told && status != 0)
        log_warning("health-not-kept",
                    "fabric=%s folder=\"%s\" cause=\"%s\" text=\"after a restart links are known anew\"",
                    t->fabric, t->dir, strerror(-status));
    k->told = status;
}

static void begin(struct tele *t, unsigned parts, int64_t now)
{
    struct keep_health *k = &t->keep_health;
    k->running = true;
    k->too_much = false;
    k->parts = parts;
    k->at = now;
    k->slot = 0;
    for (int part = HEALTH_NOTED; part <= HEALTH_REST; part++)
        if (parts >> part & 1) {
            k->changes[part] = health_changes(t->health, (enum health_part)part);
            begin_file(t, (enum health_part)part);
        }
}

static void end(struct tele *t)
{
    struct keep_health *k = &t->keep_health;
    for (int part = HEALTH_NOTED; part <= HEALTH_REST; part++)
        if (k->parts >> part & 1) {
            end_file(t, (enum health_part)part);
            k->next[part] = k->at + (part == HEALTH_REST ? REST_EVERY : EVERY) +
                            (int64_t)(k->file[part].len >> 22) * EVERY;
        }
}

void keep_health_step(void *arg)
{
    struct tele *t = arg;
    struct keep_health *k = &t->keep_health;
    size_t was = k->file[HEALTH_NOTED].len + k->file[HEALTH_REST].len;
    loop_doing(t->loop, "keep");
    for (unsigned n = 0; n < SLOTS_A_TURN && k->slot < t->table.num &&
                         k->file[HEALTH_NOTED].len + k->file[HEALTH_REST].len < was + BYTES_A_TURN;
         n++)
        put_slot(t, k->slot++);
    if (k->slot < t->table.num) {
        loop_post(t->loop, &k->task);
        return;
    }
    end(t);
    if (t->o.pool != NULL) {
        k->job = (struct pool_job){.work = write_files, .done = written, .arg = t, .name = "keep"};
        pool_submit(t->o.pool, &k->job);
        return;
    }
    write_files(t, NULL);
    written(t);
}

static unsigned due(const struct tele *t, int64_t now)
{
    const struct keep_health *k = &t->keep_health;
    uint64_t moved = health_changes(t->health, HEALTH_REST);
    bool noted = k->changes[HEALTH_NOTED] != health_changes(t->health, HEALTH_NOTED);
    bool rest = now >= k->next[HEALTH_REST] ||
                (moved != k->changes[HEALTH_REST] && now >= k->next[HEALTH_REST] - REST_EVERY + EVERY);
    return (unsigned)((noted && now >= k->next[HEALTH_NOTED]) || rest) << HEALTH_NOTED | (unsigned)rest
                                                                                             << HEALTH_REST;
}

void keep_health_save(struct tele *t, bool at_end)
{
    struct keep_health *k = &t->keep_health;
    int64_t now = loop_now(t->loop).ns;
    if (t->dir == NULL)
        return;
    if (at_end) {
        pool_cancel(&k->job);
        loop_unpost(t->loop, &k->task);
        begin(t, 1u << HEALTH_NOTED | 1u << HEALTH_REST, now);
        while (k->slot < t->table.num)
            put_slot(t, k->slot++);
        end(t);
        write_files(t, NULL);
        written(t);
        return;
    }
    unsigned parts = k->running ? 0 : due(t, now);
    if (parts == 0)
        return;
    begin(t, parts, now);
    loop_post(t->loop, &k->task);
}

// --- reading ---

static uint32_t find_slot(void *arg, uint64_t guid, uint8_t num)
{
    return keep_slot(arg, guid, num);
}

static bool take_file(struct tele *t, const struct buf *b)
{
    const uint8_t *p = (const uint8_t *)b->data;
    if (b->len < 32 || b->len % 8 || memcmp(p, MAGIC, 8) != 0 ||
        keep_get64(p + b->len - 8) != keep_hash(p, b->len - 8))
        return false;
    uint64_t records = keep_get64(p + b->len - 16);
    if (records > b->len - 32)
        return false;
    return health_take(t->health, p + 16, records, tele_loop_time(t, (int64_t)keep_get64(p + 8)), find_slot,
                       t);
}

void keep_health_load(struct tele *t)
{
    if (t->dir == NULL)
        return;
    for (int part = HEALTH_REST; part >= HEALTH_NOTED;
         part--) { // of a link that is in both the latter counts
        struct buf b = {0};
        char path[400];
        path_of(t, (enum health_part)part, path, sizeof(path));
        int rc = buf_read_file(&b, path, MAX_FILE);
        if (rc != 0 && rc != -ENOENT)
            log_warning("health-not-read", "fabric=%s file=\"%s\" cause=\"%s\"", t->fabric, path,
                        strerror(-rc));
        else if (rc == 0 && !take_file(t, &b))
            log_warning("health-not-read",
                        "fabric=%s file=\"%s\" text=\"the file is damaged, or of another version; links are "
                        "known anew\"",
                        t->fabric, path);
        buf_done(&b);
    }
    t->keep_health.next[HEALTH_REST] = loop_now(t->loop).ns + REST_EVERY;
}
