// SPDX-License-Identifier: Apache-2.0
// meta.db taken away while it is open: deleted, replaced, its log or lock gone. Nothing that was said to be
// durable is lost, what stood there is kept, and it is told.
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "tests/unit/db/dbtest.h"

// Renaming to this name fails; NULL: to none. In place of libc's.
static const char *_Atomic no_rename_to;

int rename(const char *from, const char *to)
{
    const char *no = no_rename_to;
    if (no && strcmp(to, no) == 0) {
        errno = EIO;
        return -1;
    }
    return renameat(AT_FDCWD, from, AT_FDCWD, to);
}

static void put_lid(struct fix *f, unsigned n, int want)
{
    struct wait w = {0};
    db_lids_put(f->db, "a", &(struct db_lid){G(n), (uint16_t)n, 0}, 1, on_done, &w);
    assert_int_equal(wait_for(f, &w), want);
}

static void begin(struct fix *f)
{
    fix_open(f);
    for (unsigned i = 1; i <= 20; i++)
        put_lid(f, i, 0);
    db_silence_put(f->db, &(struct db_silence){7, "su=4", "", "ann", "rack move", 1, 2, true}, NULL, NULL);
    db_blob_put(f->db, "a", "blueprint", "text", 4, NULL, NULL);
    assert_int_equal(db_flush(f->db), 0);
}

static int64_t count(const char *path, const char *table)
{
    char text[100];
    sqlite3 *c;
    sqlite3_stmt *st;
    snprintf(text, sizeof(text), "SELECT count(*) FROM %s", table);
    assert_int_equal(sqlite3_open_v2(path, &c, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    if (sqlite3_prepare_v2(c, text, -1, &st, NULL) != SQLITE_OK)
        fail_msg("%s: %s", path, sqlite3_errmsg(c));
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    int64_t n = sqlite3_column_int64(st, 0);
    sqlite3_finalize(st);
    sqlite3_close(c);
    return n;
}

static void has_event(void *arg, const struct db_event *ev)
{
    *(bool *)arg = *(bool *)arg || strcmp(ev->kind, "database-written-anew") == 0;
}

// Everything is where it belongs, is told, and outlives a restart.
static void expect_whole(struct fix *f, unsigned lids)
{
    char *path = fix_path(f, "meta.db"), text[600];
    struct db_lid *lid;
    void *blob;
    size_t n;
    bool event = false;
    assert_int_equal(count(path, "lid"), lids);
    assert_int_equal(count(path, "silence"), 1);
    assert_int_not_equal(db_written_anew(f->db, text, sizeof(text)), 0);
    assert_non_null(strstr(text, "nothing is lost"));
    assert_int_equal(db_health(f->db, text, sizeof(text)), 0);
    // Reads see what was written since.
    struct wait w = {0};
    db_blob_put(f->db, "a", "since", "more", 4, on_done, &w);
    assert_int_equal(wait_for(f, &w), 0);
    assert_int_equal(db_blob_get(f->db, "a", "since", &blob, &n), 0);
    free(blob);
    assert_true(db_event_query(f->db, &(struct db_event_query){.limit = 1000}, has_event, &event) >= 0);
    assert_true(event);
    fix_reopen(f);
    assert_false(f->rep.set_aside || f->rep.created);
    assert_int_equal(db_lids_load(f->db, "a", &lid), lids);
    free(lid);
    assert_int_equal(db_blob_get(f->db, "a", "blueprint", &blob, &n), 0);
    assert_int_equal(n, 4);
    free(blob);
    free(path);
}

static void remove_file(struct fix *f, const char *name)
{
    char *path = fix_path(f, name);
    assert_int_equal(unlink(path), 0);
    free(path);
}

static void deleted(void **state)
{
    struct fix *f = *state;
    begin(f);
    remove_file(f, "meta.db");
    put_lid(f, 21, 0);
    expect_whole(f, 21);
}

static void deleted_with_its_log(void **state)
{
    struct fix *f = *state;
    begin(f);
    remove_file(f, "meta.db");
    remove_file(f, "meta.db-wal");
    remove_file(f, "meta.db-shm");
    put_lid(f, 21, 0);
    put_lid(f, 22, 0);
    expect_whole(f, 22);
}

static void log_deleted(void **state)
{
    struct fix *f = *state;
    begin(f);
    remove_file(f, "meta.db-wal");
    put_lid(f, 21, 0);
    expect_whole(f, 21);
}

// Nobody writes anything: it is noticed all the same.
static void tick(void *arg)
{
    struct fix *f = ((void **)arg)[0];
    bool *seen = ((void **)arg)[1];
    *seen = db_written_anew(f->db, NULL, 0) != 0;
    loop_timer_after(((void **)arg)[2], 50 * MONO_MS);
}

static void noticed_while_idle(void **state)
{
    struct fix *f = *state;
    struct loop_timer t;
    bool seen = false;
    void *all[] = {f, &seen, &t};
    begin(f);
    loop_timer_init(&t, f->loop, "test", tick, all);
    loop_timer_after(&t, MONO_MS);
    remove_file(f, "meta.db");
    assert_true(loop_run_until(f->loop, &seen, 60 * MONO_S));
    loop_timer_cancel(&t);
    expect_whole(f, 20);
}

static char *kept_as(struct fix *f)
{
    glob_t g;
    char *pattern = fix_path(f, "meta.db.replaced-*");
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    assert_int_equal(g.gl_pathc, 1);
    char *name = xstrdup(g.gl_pathv[0]);
    globfree(&g);
    free(pattern);
    return name;
}

// Somebody has put an older copy there.
static void replaced(void **state)
{
    struct fix *f = *state;
    char *path = fix_path(f, "meta.db"), *other = fix_path(f, "other"), text[600];
    sqlite3 *c;
    begin(f);
    assert_int_equal(sqlite3_open(other, &c), SQLITE_OK);
    assert_int_equal(sqlite3_exec(c, "CREATE TABLE lid (a); INSERT INTO lid VALUES (1)", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(c);
    assert_int_equal(rename(other, path), 0);
    put_lid(f, 21, 0);
    char *kept = kept_as(f);
    assert_int_equal(count(kept, "lid"), 1);
    db_written_anew(f->db, text, sizeof(text));
    assert_non_null(strstr(text, kept));
    expect_whole(f, 21);
    free(kept);
    free(other);
    free(path);
}

static void replaced_by_a_folder(void **state)
{
    struct fix *f = *state;
    struct stat st;
    char *path = fix_path(f, "meta.db");
    begin(f);
    remove_file(f, "meta.db");
    assert_int_equal(mkdir(path, 0700), 0);
    put_lid(f, 21, 0);
    char *kept = kept_as(f);
    assert_true(stat(kept, &st) == 0 && S_ISDIR(st.st_mode));
    expect_whole(f, 21);
    assert_int_equal(rmdir(kept), 0);
    free(kept);
    free(path);
}

// It cannot be cured at once: nothing is said to be durable, and nothing is lost when it can.
static void cured_later(void **state)
{
    struct fix *f = *state;
    char *block = fix_path(f, "meta.db.new"), *in = fix_path(f, "meta.db.new/x"), text[300];
    begin(f);
    assert_int_equal(mkdir(block, 0700), 0);
    assert_int_equal(mkdir(in, 0700), 0);
    remove_file(f, "meta.db");
    struct wait w = {0};
    db_lids_put(f->db, "a", &(struct db_lid){G(21), 21, 0}, 1, on_done, &w);
    assert_true(wait_for(f, &w) < 0);
    assert_true(db_health(f->db, text, sizeof(text)) < 0);
    assert_non_null(strstr(text, "meta.db has been deleted"));
    assert_non_null(strstr(text, "do not stop weftd"));
    assert_int_equal(db_written_anew(f->db, NULL, 0), 0);
    assert_int_equal(rmdir(in), 0);
    assert_int_equal(rmdir(block), 0);
    assert_int_equal(db_flush(f->db), 0);
    expect_whole(f, 21);
    free(in);
    free(block);
}

// The file that stood there is kept once, however many tries it takes, and is told of.
static void kept_once(void **state)
{
    struct fix *f = *state;
    char *path = fix_path(f, "meta.db"), *other = fix_path(f, "other"), text[600];
    begin(f);
    FILE *file = fopen(other, "w");
    assert_non_null(file);
    fclose(file);
    no_rename_to = path;
    assert_int_equal(renameat(AT_FDCWD, other, AT_FDCWD, path), 0);
    for (int i = 0; i < 3; i++) {
        struct wait w = {0};
        db_lids_put(f->db, "a", &(struct db_lid){G(21), 21, 0}, 1, on_done, &w);
        assert_true(wait_for(f, &w) < 0);
    }
    no_rename_to = NULL;
    assert_int_equal(db_flush(f->db), 0);
    char *kept = kept_as(f);
    db_written_anew(f->db, text, sizeof(text));
    assert_non_null(strstr(text, kept));
    // Another time nothing stood there.
    remove_file(f, "meta.db");
    put_lid(f, 22, 0);
    db_written_anew(f->db, text, sizeof(text));
    assert_null(strstr(text, "is kept as"));
    expect_whole(f, 22);
    free(kept);
    free(other);
    free(path);
}

// --- another time ---

static void put_text(struct fix *f, const char *name, const char *text)
{
    char *path = fix_path(f, name), *other = fix_path(f, "other");
    FILE *file = fopen(other, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(renameat(AT_FDCWD, other, AT_FDCWD, path), 0);
    free(other);
    free(path);
}

// How many of them hold that text.
static unsigned kept_with(struct fix *f, const char *pattern, const char *text)
{
    glob_t g;
    char *all = fix_path(f, pattern);
    unsigned n = 0;
    assert_true(glob(all, 0, NULL, &g) != GLOB_ABORTED);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        char line[100] = "";
        FILE *file = fopen(g.gl_pathv[i], "r");
        assert_non_null(file);
        n += fgets(line, sizeof(line), file) != NULL && strcmp(line, text) == 0;
        fclose(file);
    }
    globfree(&g);
    free(all);
    return n;
}

// Within one second.
static void replaced_again(void **state)
{
    struct fix *f = *state;
    char name[20];
    begin(f);
    for (unsigned i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "file %u", i);
        put_text(f, "meta.db", name);
        put_lid(f, 21 + i, 0);
    }
    for (unsigned i = 0; i < 5; i++) {
        snprintf(name, sizeof(name), "file %u", i);
        assert_int_equal(kept_with(f, "meta.db.replaced-*", name), 1);
    }
    expect_whole(f, 25);
}

// Another one is put there while the first cannot be cured: both are kept, and told of.
static void replaced_meanwhile(void **state)
{
    struct fix *f = *state;
    char *path = fix_path(f, "meta.db"), text[600];
    begin(f);
    no_rename_to = path;
    for (int i = 0; i < 2; i++) {
        struct wait w = {0};
        put_text(f, "meta.db", i ? "two" : "one");
        db_lids_put(f->db, "a", &(struct db_lid){G(21), 21, 0}, 1, on_done, &w);
        assert_true(wait_for(f, &w) < 0);
    }
    no_rename_to = NULL;
    assert_int_equal(db_flush(f->db), 0);
    assert_int_equal(kept_with(f, "meta.db.replaced-*", "one"), 1);
    assert_int_equal(kept_with(f, "meta.db.replaced-*", "two"), 1);
    db_written_anew(f->db, text, sizeof(text));
    assert_non_null(strstr(text, "and what stood there before"));
    expect_whole(f, 21);
    free(path);
}

// SQLite would play them into the copy.
static void with_a_log_and_a_journal(void **state)
{
    struct fix *f = *state;
    char *journal = fix_path(f, "meta.db-journal");
    begin(f);
    put_text(f, "meta.db", "file");
    put_text(f, "meta.db-wal", "log");
    put_text(f, "meta.db-journal", "journal");
    put_lid(f, 21, 0);
    assert_int_equal(kept_with(f, "meta.db.replaced-*Z", "file"), 1);
    assert_int_equal(kept_with(f, "meta.db.replaced-*Z-wal", "log"), 1);
    assert_int_equal(kept_with(f, "meta.db.replaced-*Z-journal", "journal"), 1);
    assert_int_equal(access(journal, F_OK), -1);
    expect_whole(f, 21);
    free(journal);
}

static void another_log(void **state)
{
    struct fix *f = *state;
    char text[600];
    begin(f);
    put_text(f, "meta.db-wal", "log");
    put_lid(f, 21, 0);
    assert_int_equal(kept_with(f, "meta.db.replaced-*-wal", "log"), 1);
    db_written_anew(f->db, text, sizeof(text));
    assert_non_null(strstr(text, "-wal"));
    assert_null(strstr(text, "to use it"));
    expect_whole(f, 21);
}

// What another weftd is writing there is not touched.
static void another_has_the_lock(void **state)
{
    struct fix *f = *state;
    char *path = fix_path(f, "weftd.lock");
    begin(f);
    assert_int_equal(unlink(path), 0);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    put_text(f, "meta.db", "theirs");
    put_text(f, "meta.db.new", "copy");
    struct wait w = {0};
    db_lids_put(f->db, "a", &(struct db_lid){G(21), 21, 0}, 1, on_done, &w);
    assert_int_equal(wait_for(f, &w), -EBUSY);
    assert_int_equal(kept_with(f, "meta.db", "theirs"), 1);
    assert_int_equal(kept_with(f, "meta.db.new", "copy"), 1);
    assert_int_equal(kept_with(f, "meta.db.replaced-*", "theirs"), 0);
    close(fd);
    assert_int_equal(db_flush(f->db), 0);
    expect_whole(f, 21);
    free(path);
}

// The loop reads for the first time after a cure, when there is something else again.
static void replaced_before_it_is_read(void **state)
{
    struct fix *f = *state;
    char *path = fix_path(f, "meta.db"), *other = fix_path(f, "other");
    struct db_lid *lid;
    sqlite3 *c;
    begin(f);
    assert_int_equal(sqlite3_open(path, &c), SQLITE_OK);
    char *sql = sqlite3_mprintf("VACUUM INTO %Q", other);
    assert_int_equal(sqlite3_exec(c, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_free(sql);
    sqlite3_close(c);
    assert_int_equal(sqlite3_open(other, &c), SQLITE_OK);
    assert_int_equal(sqlite3_exec(c, "DELETE FROM lid", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(c);
    remove_file(f, "meta.db");
    put_lid(f, 21, 0);
    assert_int_equal(rename(other, path), 0);
    assert_true(db_lids_load(f->db, "a", &lid) >= 20); // what was there when it was read last, or more
    free(lid);
    put_lid(f, 22, 0);
    assert_int_equal(db_lids_load(f->db, "a", &lid), 22);
    free(lid);
    expect_whole(f, 22);
    free(other);
    free(path);
}

static void on_own_event(void *arg, uint64_t id)
{
    *(uint64_t *)arg = id;
}

static void is_written_anew(void *arg, const struct db_event *ev)
{
    assert_string_equal(ev->kind, "database-written-anew");
    *(bool *)arg = true;
}

// Those who pass events on are told of it.
static void its_event_is_passed_on(void **state)
{
    struct fix *f = *state;
    uint64_t id = 0;
    bool seen = false;
    begin(f);
    db_on_own_event(f->db, on_own_event, &id);
    remove_file(f, "meta.db");
    put_lid(f, 21, 0);
    put_lid(f, 22, 0); // what was told by the writer is delivered by then
    assert_int_not_equal(id, 0);
    struct db_event_query q = {.after_id = id - 1, .before_id = id + 1, .limit = 1};
    assert_int_equal(db_event_query(f->db, &q, is_written_anew, &seen), 1);
    assert_true(seen);
    expect_whole(f, 22);
}

static void link_each(struct fix *f, const char *from, const char *to)
{
    static const char *const suffix[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof(suffix) / sizeof(suffix[0]); i++) {
        char *a = xasprintf("%s/%s%s", f->dir, from, suffix[i]),
             *b = xasprintf("%s/%s%s", f->dir, to, suffix[i]);
        (void)unlink(b);
        assert_int_equal(link(a, b), 0);
        free(a);
        free(b);
    }
}

// The copy lacks a table: it cannot be used, and what is open goes on when it is put back.
static void copy_of_no_use(void **state)
{
    struct fix *f = *state;
    char *path = fix_path(f, "meta.db"), text[300];
    sqlite3 *c;
    begin(f);
    assert_int_equal(sqlite3_open(path, &c), SQLITE_OK);
    assert_int_equal(sqlite3_exec(c, "DROP TABLE silence", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(c);
    link_each(f, "meta.db", "held");
    remove_file(f, "meta.db");
    for (int i = 0; i < 3; i++) {
        struct wait w = {0};
        db_lids_put(f->db, "a", &(struct db_lid){G(21), 21, 0}, 1, on_done, &w);
        assert_true(wait_for(f, &w) < 0);
    }
    assert_true(db_health(f->db, text, sizeof(text)) < 0);
    assert_non_null(strstr(text, "cannot be opened"));
    // Its file's number may be another's now.
    remove_file(f, "meta.db");
    put_text(f, "meta.db", "theirs");
    struct wait w = {0};
    db_lids_put(f->db, "a", &(struct db_lid){G(21), 21, 0}, 1, on_done, &w);
    assert_true(wait_for(f, &w) < 0);
    assert_int_equal(kept_with(f, "meta.db.replaced-*", "theirs"), 1);
    link_each(f, "held", "meta.db");
    db_event_add(f->db, &(struct db_event){.kind = "since", .severity = "info", .text = "x"});
    assert_int_equal(db_flush(f->db), 0);
    assert_int_equal(count(path, "lid"), 21);
    assert_true(count(path, "event") > 0);
    free(path);
}

// At the end too: what is queued is not written into a file that nobody finds.
static void deleted_before_the_end(void **state)
{
    struct fix *f = *state;
    struct db_lid *lid;
    begin(f);
    remove_file(f, "meta.db");
    db_lids_put(f->db, "a", &(struct db_lid){G(21), 21, 0}, 1, NULL, NULL);
    fix_reopen(f);
    assert_int_equal(db_lids_load(f->db, "a", &lid), 21);
    free(lid);
}

static void again_and_again(void **state)
{
    struct fix *f = *state;
    begin(f);
    for (unsigned i = 21; i <= 30; i++) {
        remove_file(f, i % 2 ? "meta.db" : "meta.db-wal");
        put_lid(f, i, 0);
    }
    expect_whole(f, 30);
}

// The lock: a second weftd would not see the first.
static void lock_deleted(void **state)
{
    struct fix *f = *state;
    char *path = fix_path(f, "weftd.lock"), text[300];
    begin(f);
    remove_file(f, "weftd.lock");
    put_lid(f, 21, 0);
    fix_refused(f, -EBUSY, "another weftd");
    assert_int_equal(unlink(path), 0);
    int fd = open(path, O_RDWR | O_CREAT, 0600); // somebody else's now
    assert_true(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    struct wait w = {0};
    db_lids_put(f->db, "a", &(struct db_lid){G(22), 22, 0}, 1, on_done, &w);
    assert_int_equal(wait_for(f, &w), -EBUSY);
    assert_int_equal(db_health(f->db, text, sizeof(text)), -EBUSY);
    assert_non_null(strstr(text, "another weftd"));
    close(fd);
    assert_int_equal(db_flush(f->db), 0);
    struct db_lid *lid;
    fix_reopen(f);
    assert_int_equal(db_lids_load(f->db, "a", &lid), 22);
    free(lid);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(deleted),
        T(deleted_with_its_log),
        T(log_deleted),
        T(noticed_while_idle),
        T(replaced),
        T(replaced_by_a_folder),
        T(cured_later),
        T(deleted_before_the_end),
        T(again_and_again),
        T(lock_deleted),
        T(kept_once),
        T(copy_of_no_use),
        T(replaced_again),
        T(replaced_meanwhile),
        T(with_a_log_and_a_journal),
        T(another_log),
        T(another_has_the_lock),
        T(replaced_before_it_is_read),
        T(its_event_is_passed_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
