// SPDX-License-Identifier: Apache-2.0
// What others do to the files while we have them open. Nobody else writes them, so before each sweep a file
// and its log must be as long, and begin with the same bytes, as we have left them; what is damaged farther
// behind is found by whoever reads it, or by a thread that reads the open files through now and then. The
// folder may go altogether.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "db/series_priv.h"
#include "lib/log.h"
#include "lib/thread.h"
#include "lib/xalloc.h"

#define LOOK_S 600             // at least, between two looks at the open files
#define ASKED_S 60             // between two that were asked for
#define LOOK_BYTES_S (1 << 20) // and so many bytes a second of them all in the long run
#define LOOK_BYTES (4ll << 30) // larger files are not read through
#define SHM_UNIT 32768         // of the index of a log, at least
#define SHM_HEADER 96

// --- as we have left it ---

static bool look(sqlite3 *c, int op, int64_t *ret_size, uint8_t *ret, int n)
{
    sqlite3_file *f = NULL;
    sqlite3_int64 size = 0;
    memset(ret, 0, (size_t)n);
    if (sqlite3_file_control(c, "main", op, &f) != SQLITE_OK || !f || !f->pMethods ||
        f->pMethods->xFileSize(f, &size) != SQLITE_OK)
        return false;
    *ret_size = size;
    int rc = size > 0 ? f->pMethods->xRead(f, ret, n, 0) : SQLITE_OK;
    return rc == SQLITE_OK || rc == SQLITE_IOERR_SHORT_READ;
}

static bool take(const struct series_file *f, struct series_marks *m)
{
    struct stat st;
    char *wal = xasprintf("%s-wal", f->path), *shm = xasprintf("%s-shm", f->path);
    *m = (struct series_marks){0};
    if (stat(wal, &st) == 0)
        m->wal_ino = st.st_ino;
    if (stat(shm, &st) == 0)
        m->shm_size = st.st_size;
    free(wal);
    free(shm);
    m->known = look(f->c, SQLITE_FCNTL_FILE_POINTER, &m->size, m->head, sizeof(m->head)) &&
               look(f->c, SQLITE_FCNTL_JOURNAL_POINTER, &m->wal_size, m->wal_head, sizeof(m->wal_head));
    return m->known;
}

void series_marks_take(struct series_out *o)
{
    if (o->file.c)
        (void)take(&o->file, &o->marks);
}

const char *series_marks_compare(const struct series_out *o)
{
    const struct series_marks *was = &o->marks;
    struct series_marks is;
    if (!o->file.c || !was->known || !take(&o->file, &is)) // what cannot be read now, writing finds out
        return NULL;
    if (is.size < was->size)
        return "somebody has cut the file short";
    if (memcmp(is.head, was->head, sizeof(is.head)) != 0)
        return "somebody has written over the file";
    if (was->wal_size > 0 && is.wal_ino != was->wal_ino)
        return "somebody has taken its log away";
    if (is.wal_size < was->wal_size)
        return "somebody has cut its log short";
    if (memcmp(is.wal_head, was->wal_head, sizeof(is.wal_head)) != 0)
        return "somebody has written over its log";
    return NULL;
}

// No valid header: SQLite makes the index anew from the log. Without a descriptor: closing one would let go
// of the locks that this process has on the file. One that has no header yet only grows: somebody may be
// making it.
static bool begin_anew(const char *path, int64_t was, int64_t size)
{
    return (was < SHM_HEADER || truncate(path, 0) == 0) && truncate(path, size) == 0;
}

// SQLite maps the index of the log, and dies of a part that is not there any more. While it is open nobody
// makes it smaller.
void series_mend_shm(const char *path, int64_t was)
{
    struct stat wal, shm;
    char *wal_path = xasprintf("%s-wal", path), *shm_path = xasprintf("%s-shm", path);
    if (stat(wal_path, &wal) == 0 && wal.st_size > 0 && lstat(shm_path, &shm) == 0 && S_ISREG(shm.st_mode)) {
        int64_t want = was > SHM_UNIT ? was : SHM_UNIT;
        if (shm.st_size < want && begin_anew(shm_path, shm.st_size, want))
            log_error("series-index-mended", "path=%s bytes=%lld text=\"somebody has cut it short\"",
                      shm_path, (long long)shm.st_size);
    }
    free(wal_path);
    free(shm_path);
}

// --- the folder ---

// Whose lock we have is still the one that another weftd would find.
static bool holds(const struct series *s, const char *path)
{
    struct stat a, b;
    return stat(path, &a) == 0 && fstat(s->lock_fd, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void make_parent(const char *dir)
{
    char *parent = xstrdup(dir), *end = strrchr(parent, '/');
    if (end && end > parent) {
        *end = 0;
        (void)!mkdir(parent, 0750); // what else there is to say, the folder itself says
    }
    free(parent);
}

int series_hold_folder(struct series *s, struct err *e)
{
    char *path = xasprintf("%s/lock", s->dir);
    bool held = holds(s, path);
    free(path);
    if (held)
        return 0;
    int had = s->lock_fd;
    make_parent(s->dir);
    int rc = series_take_folder(s, e);
    if (rc) {
        if (s->lock_fd >= 0 && s->lock_fd != had)
            close(s->lock_fd);
        s->lock_fd = had;
        return rc;
    }
    close(had);
    return 0;
}

// --- what has happened, for people ---

void series_note(struct series *s, const char *file, const char *why, const char *as)
{
    const char *name = as ? strrchr(as, '/') : NULL;
    pthread_mutex_lock(&s->mu);
    struct series_health *h = &s->health;
    h->lost++;
    h->lost_ns = wall_now_ns();
    if (as)
        snprintf(h->lost_text, sizeof(h->lost_text),
                 "%s: %.200s; it is set aside as %s and a new one begun: what it held is not shown any more",
                 file, why, name ? name + 1 : as);
    else
        snprintf(h->lost_text, sizeof(h->lost_text),
                 "%s: %.200s; a new one is begun: what it held is not shown any more", file, why);
    s->news = true;
    pthread_mutex_unlock(&s->mu);
}

bool series_news(struct series *s, char *text, size_t size)
{
    pthread_mutex_lock(&s->mu);
    bool news = s->news;
    s->news = false;
    if (news)
        snprintf(text, size, "%s", s->health.lost_text);
    pthread_mutex_unlock(&s->mu);
    return news;
}

// --- reading through what is open ---

void series_look_open(struct series *s, enum series_tier t, const char *name)
{
    pthread_mutex_lock(&s->mu);
    snprintf(s->look.open[t], sizeof(s->look.open[t]), "%s", name);
    s->look.opened[t]++;
    s->look.found[t][0] = 0;
    pthread_mutex_unlock(&s->mu);
}

bool series_look_found(struct series *s, enum series_tier t, char *text, size_t size)
{
    pthread_mutex_lock(&s->mu);
    bool found = s->look.found[t][0] != 0;
    if (found)
        snprintf(text, size, "%s", s->look.found[t]);
    s->look.found[t][0] = 0;
    pthread_mutex_unlock(&s->mu);
    return found;
}

static int64_t now_s(void)
{
    return mono_now().ns / MONO_S;
}

void series_suspect(struct series *s)
{
    pthread_mutex_lock(&s->mu);
    if (s->look.asked_s == 0 || now_s() - s->look.asked_s >= ASKED_S) {
        s->look.asked = true;
        s->look.asked_s = now_s();
        pthread_cond_signal(&s->look.wake);
    }
    pthread_mutex_unlock(&s->mu);
}

// Returns bytes.
static int64_t look_at(struct series *s, enum series_tier t, const char *text, unsigned opened)
{
    struct series_name name;
    struct series_file f;
    struct err e = {0};
    struct stat st;
    int64_t size = 0;
    if (!series_name_parse(text, &name))
        return 0;
    int rc = series_file_open(&f, s->dir, &name, SERIES_READ, s->o.vfs, &e);
    if (!rc) {
        size = stat(f.path, &st) == 0 ? st.st_size : 0;
        pthread_mutex_lock(&s->mu);
        s->look.c = s->look.stop ? NULL : f.c;
        bool go = s->look.c && size <= LOOK_BYTES;
        pthread_mutex_unlock(&s->mu);
        rc = go ? series_quick_check(&f) : 0;
        if (rc)
            err_set(&e, rc, f.path, "%s", f.fail_text);
        pthread_mutex_lock(&s->mu);
        s->look.c = NULL;
        pthread_mutex_unlock(&s->mu);
        series_file_close(&f);
    }
    pthread_mutex_lock(&s->mu);
    if (rc == -EBADMSG && !s->look.stop && s->look.opened[t] == opened)
        snprintf(s->look.found[t], sizeof(s->look.found[t]), "%.190s", e.text[0] ? e.text : "is damaged");
    pthread_mutex_unlock(&s->mu);
    return size;
}

static void wait_until(struct series *s, int64_t due_s) // with mu held
{
    struct timespec until = {.tv_sec = due_s};
    while (!s->look.stop && !s->look.asked &&
           pthread_cond_timedwait(&s->look.wake, &s->mu, &until) != ETIMEDOUT)
        ;
    s->look.asked = false;
}

static void *look_main(void *arg)
{
    struct series *s = arg;
    int64_t wait = LOOK_S;
    pthread_mutex_lock(&s->mu);
    for (;;) {
        wait_until(s, now_s() + wait);
        if (s->look.stop)
            break;
        int64_t bytes = 0;
        for (int t = 0; t < SERIES_TIERS; t++) {
            char name[SERIES_NAME_MAX];
            unsigned opened = s->look.opened[t];
            memcpy(name, s->look.open[t], sizeof(name));
            pthread_mutex_unlock(&s->mu);
            bytes += look_at(s, (enum series_tier)t, name, opened);
            pthread_mutex_lock(&s->mu);
        }
        wait = bytes / LOOK_BYTES_S > LOOK_S ? bytes / LOOK_BYTES_S : LOOK_S;
    }
    pthread_mutex_unlock(&s->mu);
    return NULL;
}

int series_look_start(struct series *s)
{
    pthread_condattr_t a;
    pthread_condattr_init(&a);
    pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
    pthread_cond_init(&s->look.wake, &a);
    pthread_condattr_destroy(&a);
    int rc = thread_start(&s->look.thread, "weft-look", look_main, s);
    s->look.runs = rc == 0;
    return rc;
}

void series_look_stop(struct series *s)
{
    if (!s->look.runs)
        return;
    pthread_mutex_lock(&s->mu);
    s->look.stop = true;
    if (s->look.c)
        sqlite3_interrupt(s->look.c);
    pthread_cond_signal(&s->look.wake);
    pthread_mutex_unlock(&s->mu);
    pthread_join(s->look.thread, NULL);
    pthread_cond_destroy(&s->look.wake);
    s->look.runs = false;
}
