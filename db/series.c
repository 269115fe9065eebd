// SPDX-License-Identifier: Apache-2.0
// Opening a store, numbers of series, and the copy of a sweep for the writer.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/series_priv.h"
#include "lib/log.h"
#include "lib/thread.h"
#include "lib/xalloc.h"

#define DAY_MS 86400000LL
#define CHECK_BYTES ((int64_t)256 << 20) // of a file that is checked at the start: a second at most
#define ERA_MS 60000LL                   // a step back by more than this begins a new era
#define EVERY_MS 3600000LL               // at most between two sweeps
#define USUAL_MS 10000                   // between two sweeps, where that is not known yet

// --- numbers of series ---

uint32_t series_id(struct series *s, uint64_t node_guid, uint8_t port)
{
    uint32_t *i = series_index_find(&s->index, s->key, node_guid, port);
    if (*i != UINT32_MAX || s->num == SERIES_NUM_MAX)
        return *i;
    if (s->num == s->key_cap) {
        pthread_mutex_lock(&s->mu);
        s->key_cap = s->key_cap ? s->key_cap * 2 : 1024;
        s->key = xreallocarray(s->key, s->key_cap, sizeof(*s->key));
        pthread_mutex_unlock(&s->mu);
    }
    s->key[s->num] = (struct series_key){node_guid, port};
    *i = s->num++;
    if (s->num * 2 > s->index.mask)
        series_index_make(&s->index, s->key, s->num);
    return s->num - 1;
}

uint32_t series_num(const struct series *s)
{
    return s->num;
}

void series_key(const struct series *s, uint32_t i, uint64_t *ret_guid, uint8_t *ret_port)
{
    *ret_guid = i < s->num ? s->key[i].guid : 0;
    *ret_port = i < s->num ? s->key[i].port : 0;
}

// --- a sweep ---

void series_frame_free(struct series_frame *f)
{
    if (f) {
        free(f->have);
        free(f->value);
        free(f->s.value);
        free(f);
    }
}

static void *reserve(void *p, size_t *cap, size_t n)
{
    if (n <= *cap)
        return p;
    free(p);
    *cap = n + n / 8;
    return xreallocarray(NULL, *cap, sizeof(uint64_t));
}

// A cache line of each column at a time: columns stand 4 KiB apart, and lines at such distances push each
// other out of the cache.
static void fill_block(struct series_frame *f, uint32_t block, const uint64_t *from, uint32_t n,
                       unsigned columns)
{
    enum { LINE = 8 };
    struct series_sample *m = &f->s;
    uint64_t *to = f->value + (size_t)block * m->columns * SERIES_BLOCK;
    for (uint32_t i = 0; i < n; i += LINE, from += (size_t)LINE * columns) {
        uint32_t line = n - i < LINE ? n - i : LINE;
        for (unsigned c = 0; c < m->columns; c++) {
            uint64_t *out = to + (size_t)c * SERIES_BLOCK + i;
            const uint64_t *in = from + m->id[c];
            for (uint32_t k = 0; k < line; k++)
                out[k] = in[(size_t)k * columns];
        }
    }
    for (unsigned c = 0; c < m->columns; c++)
        m->value[(size_t)block * m->columns + c] = to + (size_t)c * SERIES_BLOCK;
}

// Column by column within each block: what coding wants, and columns that nobody has cost nothing.
static void begin_frame(struct series_frame *f, const uint64_t *have, uint32_t num, unsigned columns)
{
    uint64_t any = 0, valid = columns >= 64 ? UINT64_MAX : ((uint64_t)1 << columns) - 1;
    struct series_sample *m = &f->s;
    f->have = reserve(f->have, &f->have_cap, num + 1);
    for (uint32_t i = 0; i < num; i++) {
        f->have[i] = have[i] & valid;
        any |= f->have[i];
    }
    m->num = num;
    m->blocks = (num + SERIES_BLOCK - 1) / SERIES_BLOCK;
    m->have[0] = f->have;
    m->have[1] = NULL;
    m->columns = 0;
    for (; any; any &= any - 1)
        m->id[m->columns++] = (uint8_t)__builtin_ctzll(any);
    size_t n = (size_t)m->blocks * m->columns;
    f->value = reserve(f->value, &f->value_cap, n * SERIES_BLOCK + 1);
    m->value = reserve(m->value, &f->place_cap, n + 1);
    f->filled = 0;
}

static void fill_next(struct series_frame *f, const uint64_t *value, unsigned columns)
{
    uint32_t b = f->filled++, left = f->s.num - b * SERIES_BLOCK;
    fill_block(f, b, value + (size_t)b * SERIES_BLOCK * columns, left < SERIES_BLOCK ? left : SERIES_BLOCK,
               columns);
}

// After a small step back times go on at half their pace until the clock has caught up: rates of history are
// at most twice too high then.
static int64_t era_time(struct series *s, int64_t at_ms)
{
    int64_t passed = at_ms - s->given_ms;
    if (s->given_ms == 0 || passed <= 0)
        passed = s->every_ms ? s->every_ms : USUAL_MS;
    else if (passed <= EVERY_MS)
        s->every_ms = passed;
    s->given_ms = at_ms;
    if (s->last_ms > 0 && at_ms <= s->last_ms && s->last_ms - at_ms <= ERA_MS) {
        int64_t ahead =
            passed > 2 ? passed / 2 : 1; // a gap is no interval: the next one must not be an era's
        at_ms = s->last_ms + (ahead < ERA_MS ? ahead : ERA_MS);
    }
    return s->last_ms = at_ms < 1 ? 1 : at_ms;
}

struct series_frame *series_begin(struct series *s, int64_t at_ms, const uint64_t *have, uint32_t num)
{
    if (num > s->num)
        num = s->num;
    pthread_mutex_lock(&s->mu);
    bool full = s->queued >= SERIES_QUEUE;
    struct series_frame *f = full ? NULL : s->spare;
    if (f)
        s->spare = f->next;
    s->health.left_out += full;
    pthread_mutex_unlock(&s->mu);
    if (full) {
        s->next_seq++; // so that nobody takes what comes next for the sweep after the last
        return NULL;
    }
    if (!f)
        f = xcalloc(1, sizeof(*f));
    f->s.at_ms = era_time(s, at_ms);
    f->s.seq = s->next_seq++;
    f->known = s->num;
    f->next = NULL;
    begin_frame(f, have, num, s->o.columns);
    return f;
}

static void queue_frame(struct series *s, struct series_frame *f)
{
    pthread_mutex_lock(&s->mu);
    *s->queue_tail = f;
    s->queue_tail = &f->next;
    s->queued++;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mu);
}

bool series_some(struct series *s, struct series_frame *f, const uint64_t *value, uint32_t blocks)
{
    for (; blocks > 0 && f->filled < f->s.blocks; blocks--)
        fill_next(f, value, s->o.columns);
    if (f->filled < f->s.blocks)
        return false;
    queue_frame(s, f);
    return true;
}

void series_drop(struct series *s, struct series_frame *f)
{
    if (f == NULL)
        return;
    pthread_mutex_lock(&s->mu);
    s->health.left_out++;
    f->next = s->spare;
    s->spare = f;
    pthread_mutex_unlock(&s->mu);
}

void series_sweep(struct series *s, int64_t at_ms, const uint64_t *value, const uint64_t *have, uint32_t num)
{
    struct series_frame *f = series_begin(s, at_ms, have, num);
    if (f)
        series_some(s, f, value, UINT32_MAX);
}

int series_flush(struct series *s)
{
    pthread_mutex_lock(&s->mu);
    while (s->queued)
        pthread_cond_wait(&s->done, &s->mu);
    int rc = s->health.status;
    pthread_mutex_unlock(&s->mu);
    return rc;
}

void series_health(const struct series *cs, struct series_health *ret)
{
    struct series *s = (struct series *)cs; // the lock is no part of the value
    pthread_mutex_lock(&s->mu);
    *ret = s->health;
    pthread_mutex_unlock(&s->mu);
}

// --- opening ---

static int take_lock(struct series *s, struct err *e)
{
    char *path = xasprintf("%s/lock", s->dir);
    int rc = 0;
    s->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (s->lock_fd < 0)
        rc = err_set(e, -errno, path, "cannot write in the folder of telemetry: %s", strerror(errno));
    else if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0)
        rc = err_set(e, errno == EWOULDBLOCK ? -EBUSY : -errno, path,
                     "another weftd keeps its telemetry here; stop it or give another folder with --state");
    free(path);
    return rc;
}

static int make_dir(const char *dir, struct err *e)
{
    struct stat st;
    if (mkdir(dir, 0700) == 0 || (errno == EEXIST && stat(dir, &st) == 0 && S_ISDIR(st.st_mode)))
        return 0;
    int rc = errno == EEXIST ? ENOTDIR : errno;
    return err_set(e, -rc, dir, "cannot make the folder of telemetry: %s", strerror(rc));
}

int series_take_folder(struct series *s, struct err *e)
{
    int rc = make_dir(s->dir, e);
    return rc ? rc : take_lock(s, e);
}

static bool is_recent(const struct series_name *n, int64_t now_ms)
{
    return n->to_ms > now_ms - 2 * DAY_MS && n->from_ms <= now_ms + 2 * DAY_MS;
}

static bool is_small(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_size <= CHECK_BYTES;
}

// A file as it is found: what it knows is taken, what is wrong with it is *e. Nobody else has it open, so it
// is opened without shared memory: that works on a full disk too.
static int look_at(struct series *s, const struct series_name *name, bool recent, int64_t *ret_seq,
                   int64_t *ret_ms, struct err *e)
{
    struct series_file f;
    int rc = series_file_open(&f, s->dir, name, SERIES_ALONE, s->o.vfs, e);
    if (rc)
        return rc;
    if (recent && is_small(f.path))
        rc = series_quick_check(&f);
    if (!rc)
        rc = series_newest(&f, ret_seq, ret_ms);
    if (!rc)
        rc = series_load_keys(&f, &s->key, &s->num);
    if (rc)
        err_set(e, rc, f.path, "%s", f.fail_text[0] ? f.fail_text : "holds what cannot be");
    series_file_close(&f);
    return rc;
}

// Numbers of series are for good: with no file that knows them all, nothing may be written.
static bool is_needed(const struct series_name *list, long n, long i, const bool *read)
{
    for (long k = i + 1; k < n; k++) {
        if (list[k].tier == list[i].tier && read[k])
            return false;
    }
    return true;
}

static int set_aside(struct series *s, const struct series_name *name, const char *why,
                     struct series_report *rep)
{
    char *path = xasprintf("%s/%s", s->dir, name->text);
    int rc = series_set_aside(path, rep->set_aside_as, sizeof(rep->set_aside_as));
    log_error("series-set-aside", "path=%s as=%s reason=\"%s\"", path, rc ? "" : rep->set_aside_as, why);
    if (!rc)
        series_note(s, name->text, why, rep->set_aside_as);
    free(path);
    rep->set_aside++;
    return rc;
}

// From the newest of each tier to the oldest.
static int look_at_each(struct series *s, const struct series_name *list, long n, int64_t *ret_newest,
                        struct series_report *rep, struct err *e)
{
    int64_t now = wall_now_ns() / MONO_MS;
    bool *read = xcalloc((size_t)n + 1, sizeof(*read));
    int rc = 0;
    for (long i = n - 1; i >= 0 && !rc; i--) {
        int64_t seq = 0, ms = 0;
        struct err why = {0};
        rc = look_at(s, &list[i], is_recent(&list[i], now), &seq, &ms, &why);
        read[i] = !rc;
        if (rc == -ENOENT) { // begun, and nothing in it
            rc = 0;
        } else if (rc == -EBADMSG) {
            rc = set_aside(s, &list[i], why.text, rep);
        } else if (rc && rc != -EPROTONOSUPPORT && !is_needed(list, n, i, read)) {
            log_warning("series-unreadable", "path=%s error=\"%s\"", why.where, why.text);
            rc = 0;
        } else if (rc) {
            err_set(e, rc, why.where, "%s", why.text);
        }
        if (seq > *ret_newest) {
            *ret_newest = seq;
            rep->last_ms = ms;
        }
    }
    free(read);
    return rc;
}

static int check_versions(struct series *s, const struct series_name *list, long n, struct err *e)
{
    int rc = 0;
    for (long i = 0; i < n && !rc; i++) {
        char *path = xasprintf("%s/%s", s->dir, list[i].text);
        struct err why;
        if (series_check_header(path, &why) == -EPROTONOSUPPORT)
            rc = err_set(e, why.code, why.where, "%s", why.text);
        free(path);
    }
    return rc;
}

static int look_at_all(struct series *s, struct series_report *rep, struct err *e)
{
    struct series_name *list;
    int64_t newest = 0;
    long n = series_names(s->dir, &list);
    if (n < 0)
        return err_set(e, (int)n, s->dir, "cannot list: %s", strerror((int)-n));
    int rc = check_versions(s, list, n, e); // before anything is touched
    if (!rc)
        rc = look_at_each(s, list, n, &newest, rep, e);
    free(list);
    rep->created = n == 0;
    rep->series = s->num;
    s->key_cap = s->num;
    s->last_ms = s->newest_ms = rep->last_ms;
    // A gap: a crash of the machine may have taken sweeps that a reader has seen already.
    s->next_seq = (newest / SERIES_SEQ_GAP + 2) * SERIES_SEQ_GAP;
    return rc;
}

static int start_writer(struct series *s, struct err *e)
{
    int rc = series_look_start(s);
    if (!rc)
        rc = thread_start(&s->thread, "weft-series", series_writer_main, s);
    return rc ? err_set(e, rc, s->dir, "cannot start the writer thread: %s", strerror(-rc)) : 0;
}

static void series_free(struct series *s)
{
    series_look_stop(s);
    for (int t = 0; t < SERIES_TIERS; t++) {
        series_out_done(&s->out[t]);
        series_fold_done(&s->out[t].fold);
    }
    for (struct series_frame *f; (f = s->spare);) {
        s->spare = f->next;
        series_frame_free(f);
    }
    if (s->lock_fd >= 0)
        close(s->lock_fd);
    pthread_mutex_destroy(&s->mu);
    pthread_cond_destroy(&s->wake);
    pthread_cond_destroy(&s->done);
    free(s->key);
    free(s->wkey);
    free(s->index.at);
    free(s->dir);
    free(s);
}

struct series *series_open(struct loop *l, const char *dir, const struct series_opts *o,
                           struct series_report *ret, struct err *e)
{
    struct series_report rep = {0};
    struct series *s = xcalloc(1, sizeof(*s));
    s->dir = xstrdup(dir);
    s->o = *o;
    s->lock_fd = -1;
    s->queue_tail = &s->queue;
    pthread_mutex_init(&s->mu, NULL);
    pthread_cond_init(&s->wake, NULL);
    pthread_cond_init(&s->done, NULL);
    for (int t = 0; t < SERIES_TIERS; t++)
        s->out[t].tier = (enum series_tier)t;
    series_fold_init(s);
    int rc =
        o->columns > SERIES_COLUMNS ? err_set(e, -EINVAL, dir, "more than %d columns", SERIES_COLUMNS) : 0;
    if (!rc)
        rc = series_take_folder(s, e);
    if (!rc)
        rc = look_at_all(s, &rep, e);
    if (!rc) {
        series_index_make(&s->index, s->key, s->num);
        s->wnum = s->num;
        s->wkey = xreallocarray(NULL, s->num + 1, sizeof(*s->wkey));
        if (s->num)
            memcpy(s->wkey, s->key, s->num * sizeof(*s->wkey));
        rc = start_writer(s, e);
    }
    if (rc) {
        series_free(s);
        return NULL;
    }
    if (ret)
        *ret = rep;
    return s;
}

void series_close(struct series *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->mu);
    s->stop = true;
    pthread_cond_signal(&s->wake);
    pthread_mutex_unlock(&s->mu);
    pthread_join(s->thread, NULL);
    series_free(s);
}
