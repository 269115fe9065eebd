// SPDX-License-Identifier: Apache-2.0
// A disk that is full or fails: requests are told, said once, all is written when it heals. Three ways: a
// limit on the file's pages, a limit on file sizes (an I/O error to SQLite), a small tmpfs (needs root).
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "db/db_priv.h"
#include "lib/log.h"
#include "tests/unit/db/dbtest.h"

static struct {
    unsigned failed, recovered, lost;
} logged;

static void on_log(void *arg, enum log_level level, const char *event, const char *text)
{
    logged.failed += strcmp(event, "db-write-failed") == 0;
    logged.recovered += strcmp(event, "db-write-recovered") == 0;
    logged.lost += strcmp(event, "db-write-lost") == 0;
}

static void watch_log(void)
{
    memset(&logged, 0, sizeof(logged));
    log_set_hook(on_log, NULL);
}

// The writer is idle after a flush, and sees what was set before the next request.
static void set_max_pages(struct fix *f, const char *pages)
{
    char text[100];
    (void)db_flush(f->db);
    snprintf(text, sizeof(text), "PRAGMA max_page_count = %s", pages);
    assert_int_equal(db_exec(f->db->w, text), 0);
}

static int put_blob(struct fix *f, const char *name, size_t n)
{
    struct wait w = {0};
    char *p = xmalloc(n);
    memset(p, 'b', n);
    db_blob_put(f->db, "a", name, p, n, on_done, &w);
    free(p);
    return wait_for(f, &w);
}

static bool has_blob(struct fix *f, const char *name, size_t want)
{
    void *p;
    size_t n;
    if (db_blob_get(f->db, "a", name, &p, &n))
        return false;
    free(p);
    return n == want;
}

static void count_row(void *arg, const struct db_event *ev)
{
    ++*(unsigned *)arg;
}

static unsigned count_events(struct fix *f)
{
    unsigned n = 0;
    struct db_event_query q = {.limit = 10000};
    assert_true(db_event_query(f->db, &q, count_row, &n) >= 0);
    return n;
}

static void full_and_healed(void **state)
{
    struct fix *f = *state;
    char text[300];
    watch_log();
    fix_open(f);
    set_max_pages(f, "1"); // the present size is the least SQLite goes to
    assert_int_equal(put_blob(f, "big", 300000), -ENOSPC);
    assert_int_equal(db_health(f->db, text, sizeof(text)), -ENOSPC);
    assert_non_null(strstr(text, "disk is full"));
    assert_int_equal(put_blob(f, "big", 300001), -ENOSPC);
    struct db_event ev = {.kind = "k", .text = "while it is full"};
    db_event_add(f->db, &ev);
    assert_int_equal(db_flush(f->db), -ENOSPC);
    assert_int_equal(count_events(f), 1);
    // A small LID finds room in pages that are there, whatever blobs wait.
    struct db_lid l = {G(1), 1, 0};
    assert_int_equal(put_lids(f, "a", &l, 1), 0);
    assert_int_equal(db_health(f->db, NULL, 0), -ENOSPC);
    assert_int_equal(logged.failed, 1);
    assert_int_equal(logged.recovered, 0);
    assert_false(has_blob(f, "big", 300001));
    set_max_pages(f, "1000000");
    assert_int_equal(db_flush(f->db), 0);
    assert_true(has_blob(f, "big", 300001)); // what had failed was written, the later one last
    assert_int_equal(put_blob(f, "next", 1), 0);
    assert_int_equal(logged.recovered, 1);
    assert_int_equal(logged.lost, 0);
    fix_reopen(f);
    assert_int_equal(count_events(f), 1);
    expect_lids(f, "a", "1/0=1");
    log_set_hook(NULL, NULL);
}

static void closing_while_full_loses_and_says_so(void **state)
{
    struct fix *f = *state;
    watch_log();
    fix_open(f);
    set_max_pages(f, "1");
    assert_int_equal(put_blob(f, "big", 300000), -ENOSPC);
    fix_reopen(f);
    assert_int_equal(logged.lost, 1);
    assert_false(has_blob(f, "big", 300000));
    log_set_hook(NULL, NULL);
}

static void more_events_than_memory_holds(void **state)
{
    struct fix *f = *state;
    enum { N = DB_RING_MAX + 5000 };
    watch_log();
    fix_open(f);
    struct db_event ev = {.kind = "k", .text = "t"};
    set_max_pages(f, "1");
    assert_int_equal(put_blob(f, "big", 300000), -ENOSPC);
    for (int i = 0; i < N; i++)
        assert_int_equal(db_event_add(f->db, &ev), i + 1);
    struct db_event_query q = {.limit = 1};
    unsigned n = 0;
    assert_int_equal(db_event_query(f->db, &q, count_row, &n), 1);
    set_max_pages(f, "1000000");
    assert_int_equal(db_flush(f->db), 0);
    assert_int_equal(put_blob(f, "x", 1), 0);
    assert_int_equal(logged.lost, 1);
    fix_reopen(f);
    int64_t rows = 0;
    assert_int_equal(db_get_int(f->db->r, "SELECT count(*) FROM event", &rows), 0);
    assert_true(rows >= DB_RING_MAX && rows < N);
    assert_int_equal(db_event_last_id(f->db), N);
    log_set_hook(NULL, NULL);
}

static void many_failures_stay_bounded(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    set_max_pages(f, "1");
    assert_int_equal(put_blob(f, "big", 2 << 20), -ENOSPC);
    for (unsigned i = 0; i < 40; i++)
        assert_int_equal(put_blob(f, "big", (2 << 20) + i), -ENOSPC);
    assert_true(f->db->kept.bytes <= DB_KEPT_BYTES + (4 << 20));
    set_max_pages(f, "1000000");
    assert_int_equal(db_flush(f->db), 0);
    assert_true(has_blob(f, "big", (2 << 20) + 39));
}

static void set_file_limit(rlim_t n)
{
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &r), 0);
    r.rlim_cur = n;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &r), 0);
}

static void io_error_and_healed(void **state)
{
    struct fix *f = *state;
    signal(SIGXFSZ, SIG_IGN);
    watch_log();
    fix_open(f);
    set_file_limit(65536);
    int rc = put_blob(f, "big", 300000);
    set_file_limit(RLIM_INFINITY);
    assert_int_equal(rc, -EIO);
    assert_int_equal(db_flush(f->db), 0);
    assert_true(has_blob(f, "big", 300000));
    assert_int_equal(put_blob(f, "x", 1), 0);
    assert_int_equal(logged.failed, 1);
    assert_int_equal(logged.recovered, 1);
    log_set_hook(NULL, NULL);
}

static void fill(struct fix *f)
{
    static char block[4096];
    char *path = fix_path(f, "filler");
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    assert_true(fd >= 0);
    while (write(fd, block, sizeof(block)) > 0) {
    }
    close(fd);
    free(path);
}

static void unfill(struct fix *f)
{
    char *path = fix_path(f, "filler");
    assert_int_equal(unlink(path), 0);
    free(path);
}

static void full_file_system(void **state)
{
    struct fix *f = *state;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", f->dir, "tmpfs", 0, "size=1m,mode=0700") < 0) {
        print_message("skipped: cannot mount a tmpfs here (%s)\n", strerror(errno));
        skip();
    }
    struct db_event ev = {.kind = "k", .text = "t"};
    fix_open(f);
    struct db_lid l[] = {{G(1), 1, 0}, {G(2), 2, 0}, {G(3), 3, 0}};
    assert_int_equal(put_lids(f, "a", &l[0], 1), 0);
    uint64_t id = db_event_add(f->db, &ev);
    assert_int_equal(db_flush(f->db), 0);
    fill(f);
    assert_int_equal(put_blob(f, "big", 300000), -ENOSPC);
    unfill(f);
    assert_int_equal(db_flush(f->db), 0);
    assert_true(has_blob(f, "big", 300000));
    db_close(f->db);
    // It starts on a full disk, knows its LIDs, gives new ids, and heals.
    fill(f);
    fix_open(f);
    assert_false(f->rep.set_aside);
    expect_lids(f, "a", "1/0=1");
    uint64_t later = db_event_add(f->db, &ev);
    assert_true(later > id);
    assert_int_equal(put_blob(f, "more", 200000), -ENOSPC);
    assert_int_equal(count_events(f), 2);
    unfill(f);
    assert_int_equal(put_lids(f, "a", &l[1], 1), 0);
    assert_int_equal(db_flush(f->db), 0);
    fix_reopen(f);
    expect_lids(f, "a", "1/0=1 2/0=2");
    assert_int_equal(count_events(f), 2);
    assert_true(db_event_add(f->db, &ev) == later + 1);
    db_close(f->db);
    f->db = NULL;
    assert_int_equal(umount2(f->dir, MNT_DETACH), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(full_and_healed),
        T(closing_while_full_loses_and_says_so),
        T(more_events_than_memory_holds),
        T(many_failures_stay_bounded),
        T(io_error_and_healed),
        T(full_file_system),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
