// SPDX-License-Identifier: Apache-2.0
// What goes when: each file at the age of its tier, by the time of the newest sweep; and, while all are above
// the limit, the oldest raw file, then minutes, then hours: the same time is still known, only less closely,
// and raw is where the bytes are. The file that is being written stays.
//
// A clock that jumps ahead by more than a day must not take the history with it: for an hour then nothing
// goes because of its age.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/db_priv.h"
#include "db/series_priv.h"
#include "lib/log.h"
#include "lib/xalloc.h"

#define DAY_MS 86400000LL
#define EVERY_NS (20 * MONO_S)
#define PATIENCE_NS (3600 * MONO_S)

static const int64_t usual[SERIES_TIERS] = {DAY_MS, 31 * DAY_MS, 366 * DAY_MS};

static uint64_t size_of(const char *dir, const char *name)
{
    uint64_t n = 0;
    for (int i = 0; i < SERIES_SUFFIXES; i++) {
        struct stat st;
        char *path = xasprintf("%s/%s%s", dir, name, series_suffix[i]);
        if (stat(path, &st) == 0)
            n += (uint64_t)st.st_size;
        free(path);
    }
    return n;
}

static bool in_use(const struct series *s, const struct series_name *n)
{
    const struct series_file *f = &s->out[n->tier].file;
    return f->c && strcmp(f->name.text, n->text) == 0;
}

static int remove_file(struct series *s, const struct series_name *n, const char *why)
{
    int rc = 0;
    for (int i = 0; i < SERIES_SUFFIXES && !rc; i++) {
        char *path = xasprintf("%s/%s%s", s->dir, n->text, series_suffix[i]);
        if (unlink(path) < 0 && errno != ENOENT)
            rc = -errno;
        free(path);
    }
    if (rc)
        log_warning("series-remove", "path=%s/%s error=\"%s\"", s->dir, n->text, strerror(-rc));
    else
        log_notice("series-removed", "path=%s/%s reason=\"%s\"", s->dir, n->text, why);
    return rc;
}

static void forget(struct series_name *list, long *n, long i)
{
    memmove(list + i, list + i + 1, (size_t)(*n - i - 1) * sizeof(*list));
    --*n;
}

static void by_age(struct series *s, struct series_name *list, long *n, int64_t now_ms)
{
    for (long i = 0; i < *n;) {
        int64_t keep = s->o.keep_ms[list[i].tier] > 0 ? s->o.keep_ms[list[i].tier] : usual[list[i].tier];
        bool old = now_ms - list[i].to_ms >= keep && !in_use(s, &list[i]);
        if (old && !remove_file(s, &list[i], "age"))
            forget(list, n, i);
        else
            i++;
    }
}

static long oldest(const struct series *s, const struct series_name *list, long n)
{
    for (long i = 0; i < n; i++) { // by tier, raw first, then by time
        if (!in_use(s, &list[i]))
            return i;
    }
    return -1;
}

static void by_size(struct series *s, struct series_name *list, long *n)
{
    uint64_t sum = 0;
    long i = 0;
    for (long k = 0; k < *n; k++)
        sum += size_of(s->dir, list[k].text);
    while (s->o.max_bytes && sum > s->o.max_bytes && (i = oldest(s, list, *n)) >= 0) {
        uint64_t size = size_of(s->dir, list[i].text);
        if (remove_file(s, &list[i], "all files together are above the limit"))
            break;
        sum -= size;
        forget(list, n, i);
    }
    bool over = s->o.max_bytes && sum > s->o.max_bytes;
    if (over && !s->kept.over)
        log_warning("series-over-limit",
                    "folder=%s bytes=%llu limit=%llu reason=\"the files of today alone are larger\"", s->dir,
                    (unsigned long long)sum, (unsigned long long)s->o.max_bytes);
    s->kept.over = over;
}

static int64_t first_of(struct series *s, const struct series_name *n)
{
    struct series_file f;
    int64_t at = 0;
    if (series_file_open(&f, s->dir, n, SERIES_READ, s->o.vfs, NULL))
        return 0;
    (void)db_get_int(f.c, "SELECT min(at_ms) FROM sweep", &at);
    series_file_close(&f);
    return at;
}

// What was set aside: nobody reads it, and it does not go by itself.
static void count_aside(const struct series *s, struct series_kept *k)
{
    static const char word[] = ".db.damaged-";
    const char *last = "";
    DIR *d = opendir(s->dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        const char *at = strstr(e->d_name, word);
        struct stat st;
        if (!at || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
            continue;
        k->aside_bytes += (uint64_t)st.st_size;
        at += sizeof(word) - 1;
        if (strchr(at, '-')) // its log
            continue;
        k->aside++;
        if (strcmp(at, last) > 0) {
            snprintf(k->aside_last, sizeof(k->aside_last), "%.99s", e->d_name);
            last = strstr(k->aside_last, word) ? strstr(k->aside_last, word) + sizeof(word) - 1 : "";
        }
    }
    if (d)
        closedir(d);
}

static void take_stock(struct series *s, const struct series_name *list, long n)
{
    struct series_kept k = {.over = s->kept.over};
    for (long i = 0; i < n; i++) {
        enum series_tier t = list[i].tier;
        k.bytes[t] += size_of(s->dir, list[i].text);
        if (k.files[t]++)
            continue;
        memcpy(k.first[t], list[i].text, sizeof(k.first[t]));
        bool known = s->kept.first_ms[t] && strcmp(s->kept.first[t], list[i].text) == 0;
        k.first_ms[t] = known ? s->kept.first_ms[t] : first_of(s, &list[i]);
    }
    count_aside(s, &k);
    s->kept = k;
}

void series_keep(struct series *s, int64_t now_ms, int64_t mono_ns)
{
    struct series_name *list;
    if (now_ms && s->newest_ms && now_ms - s->newest_ms > DAY_MS)
        s->patient_ns = mono_ns + PATIENCE_NS;
    s->newest_ms = now_ms ? now_ms : s->newest_ms;
    if (s->kept_ns && mono_ns - s->kept_ns < EVERY_NS && !s->keep_now)
        return;
    s->kept_ns = mono_ns;
    s->keep_now = false;
    long n = series_names(s->dir, &list);
    if (n < 0)
        return;
    if (now_ms && mono_ns >= s->patient_ns)
        by_age(s, list, &n, now_ms);
    if (now_ms)
        by_size(s, list, &n);
    take_stock(s, list, n);
    free(list);
}
