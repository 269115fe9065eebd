// SPDX-License-Identifier: Apache-2.0
// What can be found in the state directory: older and newer schemas, another weftd, and every sort of damage.
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/buf.h"
#include "lib/rng.h"
#include "tests/unit/db/dbtest.h"

static void write_file(struct fix *f, const char *name, const void *p, size_t n)
{
    char *path = fix_path(f, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, p, n), n);
    close(fd);
    free(path);
}

static void read_file(struct fix *f, const char *name, struct buf *b)
{
    char *path = fix_path(f, name);
    assert_int_equal(buf_read_file(b, path, 64 << 20), 0);
    free(path);
}

static void sql(struct fix *f, const char *text)
{
    char *path = fix_path(f, "meta.db"), *msg = NULL;
    sqlite3 *c;
    assert_int_equal(sqlite3_open(path, &c), SQLITE_OK);
    if (sqlite3_exec(c, text, NULL, NULL, &msg) != SQLITE_OK)
        fail_msg("%s", msg);
    sqlite3_close(c);
    free(path);
}

// A file with content of some pages; closed.
static void make_good(struct fix *f)
{
    fix_open(f);
    for (unsigned i = 1; i <= 400; i++) {
        struct db_lid l = {G(i), (uint16_t)i, 0};
        struct db_event ev = {0, i, "a", "k", "notice", "s", "some text to fill pages", "{}"};
        db_lids_put(f->db, "a", &l, 1, NULL, NULL);
        db_event_add(f->db, &ev);
    }
    db_close(f->db);
    f->db = NULL;
}

// It opens, has set the file aside, and works; the old file is where the report says.
static void expect_set_aside(struct fix *f)
{
    struct stat st;
    fix_open(f);
    assert_true(f->rep.set_aside);
    assert_true(f->rep.created);
    assert_int_equal(lstat(f->rep.set_aside_as, &st), 0);
    struct db_lid l = {G(5), 5, 0};
    assert_int_equal(put_lids(f, "a", &l, 1), 0);
    expect_lids(f, "a", "5/0=5");
    fix_reopen(f);
    assert_false(f->rep.set_aside);
    expect_lids(f, "a", "5/0=5");
    db_close(f->db);
    f->db = NULL;
}

static void empty_file_is_a_new_one(void **state)
{
    struct fix *f = *state;
    write_file(f, "meta.db", "", 0);
    fix_open(f);
    assert_true(f->rep.created);
    assert_false(f->rep.set_aside);
}

static void not_a_database(void **state)
{
    struct fix *f = *state;
    char zeros[20000] = {0}, noise[20000];
    struct rng r;
    rng_init(&r, 7);
    for (size_t i = 0; i < sizeof(noise); i++)
        noise[i] = (char)rng_u64(&r);
    write_file(f, "meta.db", "hello", 5);
    expect_set_aside(f);
    write_file(f, "meta.db", zeros, sizeof(zeros));
    expect_set_aside(f);
    write_file(f, "meta.db", noise, sizeof(noise));
    expect_set_aside(f);
}

static void odd_things_in_its_place(void **state)
{
    struct fix *f = *state;
    char *path = fix_path(f, "meta.db"), *wal = fix_path(f, "meta.db-wal");
    assert_int_equal(mkdir(path, 0700), 0);
    expect_set_aside(f);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_set_aside(f);
    assert_int_equal(mkdir(wal, 0700), 0);
    expect_set_aside(f);
    free(path);
    free(wal);
}

static void truncated(void **state)
{
    struct fix *f = *state;
    struct buf good = {0};
    make_good(f);
    read_file(f, "meta.db", &good);
    assert_true(good.len > 8 * 4096);
    const size_t keep[] = {1, 50, 100, 4095, 4096, 4097, 8192, good.len / 2, good.len - 4096};
    for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++) {
        write_file(f, "meta.db", good.data, keep[i]);
        expect_set_aside(f);
    }
    buf_done(&good);
}

static void zeroed_page(void **state)
{
    struct fix *f = *state;
    struct buf good = {0};
    make_good(f);
    read_file(f, "meta.db", &good);
    char *bad = xmalloc(good.len);
    for (size_t page = 0; page < good.len / 4096; page += page < 4 ? 1 : 9) {
        memcpy(bad, good.data, good.len);
        memset(bad + page * 4096, 0, 4096);
        write_file(f, "meta.db", bad, good.len);
        expect_set_aside(f);
    }
    free(bad);
    buf_done(&good);
}

// Damage anywhere: it may go unseen by the check, but nothing crashes and it works afterwards.
static void random_damage(void **state)
{
    struct fix *f = *state;
    struct buf good = {0};
    struct rng r;
    make_good(f);
    read_file(f, "meta.db", &good);
    rng_init(&r, 42);
    char *bad = xmalloc(good.len);
    for (int i = 0; i < 40; i++) {
        memcpy(bad, good.data, good.len);
        size_t at = rng_below(&r, (uint32_t)good.len), n = 1 + rng_below(&r, 300);
        for (size_t k = at; k < at + n && k < good.len; k++)
            bad[k] = (char)rng_u64(&r);
        write_file(f, "meta.db", bad, good.len);
        struct err e = {0};
        f->db = db_open(f->loop, f->dir, &f->rep, &e);
        if (!f->db) { // the version's own bytes
            assert_int_equal(e.code, -EPROTONOSUPPORT);
            continue;
        }
        struct db_lid *l, one = {G(7), 7, 0};
        if (db_lids_load(f->db, "a", &l) >= 0)
            free(l);
        put_lids(f, "a", &one, 1);
        db_close(f->db);
        f->db = NULL;
    }
    free(bad);
    buf_done(&good);
}

static void somebody_elses_database(void **state)
{
    struct fix *f = *state;
    sql(f, "CREATE TABLE recipes (name)");
    expect_set_aside(f);
}

static void missing_table(void **state)
{
    struct fix *f = *state;
    make_good(f);
    sql(f, "DROP TABLE blob");
    expect_set_aside(f);
}

static void rows_that_are_no_lids(void **state)
{
    struct fix *f = *state;
    make_good(f);
    sql(f,
        "PRAGMA ignore_check_constraints = 1; DELETE FROM lid WHERE lid > 2;"
        "INSERT INTO lid VALUES ('a', 900, 70000, 0), ('a', 901, 5, 99), ('a', 0, 7, 0), ('a', 902, 'x', 0)");
    struct err e = {0};
    f->db = db_open(f->loop, f->dir, &f->rep, &e);
    assert_non_null(f->db);
    if (!f->rep.set_aside) // the check may look at constraints or not
        expect_lids(f, "a", "1/0=1 2/0=2");
}

static void event_ids_go_on_above_a_damaged_file(void **state)
{
    struct fix *f = *state;
    struct db_event ev = {.kind = "k"};
    make_good(f);
    write_file(f, "meta.db", "damaged", 7);
    fix_open(f);
    uint64_t first = db_event_add(f->db, &ev);
    assert_true(first > 400 + (1 << 20)); // more than any reservation of the lost file
    assert_true(first < 1ULL << 53);
    fix_reopen(f);
    assert_true(db_event_add(f->db, &ev) == first + 1);
}

static void newer_schema_is_refused(void **state)
{
    struct fix *f = *state;
    struct buf before = {0}, after = {0};
    make_good(f);
    sql(f, "CREATE TABLE tomorrow (x); PRAGMA user_version = 77; PRAGMA journal_mode = DELETE");
    read_file(f, "meta.db", &before);
    fix_refused(f, -EPROTONOSUPPORT, "77");
    fix_refused(f, -EPROTONOSUPPORT, "newer weftd");
    read_file(f, "meta.db", &after);
    assert_int_equal(before.len, after.len);
    assert_memory_equal(before.data, after.data, before.len);
    buf_done(&before);
    buf_done(&after);
}

static void older_schema_is_migrated(void **state)
{
    struct fix *f = *state;
    sql(f, "CREATE TABLE lid (fabric TEXT NOT NULL, guid INTEGER NOT NULL,"
           " lid INTEGER NOT NULL CHECK (lid BETWEEN 1 AND 49151), lmc INTEGER NOT NULL CHECK (lmc BETWEEN 0 "
           "AND 7),"
           " PRIMARY KEY (fabric, guid)) WITHOUT ROWID;"
           "CREATE UNIQUE INDEX lid_by_lid ON lid (fabric, lid);"
           "CREATE TABLE blob (fabric TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY "
           "(fabric, name));"
           "PRAGMA application_id = 0x77656674; PRAGMA user_version = 1;"
           "INSERT INTO lid VALUES ('a', 0x0002c90300000003, 3, 0); INSERT INTO blob VALUES ('a', 'n', "
           "x'4142');");
    fix_open(f);
    assert_int_equal(f->rep.migrated_from, 1);
    assert_false(f->rep.created);
    assert_false(f->rep.set_aside);
    expect_lids(f, "a", "3/0=3");
    void *p;
    size_t n;
    assert_int_equal(db_blob_get(f->db, "a", "n", &p, &n), 0);
    assert_string_equal(p, "AB");
    free(p);
    struct db_event ev = {.kind = "k"};
    assert_int_equal(db_event_add(f->db, &ev), 1);
    fix_reopen(f);
    assert_int_equal(f->rep.migrated_from, 0);
    assert_int_equal(db_event_last_id(f->db), 1);
}

static void second_one_is_told_the_pid(void **state)
{
    struct fix *f = *state;
    char pid[40];
    snprintf(pid, sizeof(pid), "(pid %ld)", (long)getpid());
    fix_open(f);
    fix_refused(f, -EBUSY, pid);
    write_file(f, "weftd.lock", "nonsense", 8); // somebody edited it: refused all the same
    fix_refused(f, -EBUSY, "pid unknown");
    db_close(f->db);
    fix_open(f);
}

static void modes(void **state)
{
    struct fix *f = *state;
    struct stat st;
    char *dir = fix_path(f, "new"), *file = fix_path(f, "new/meta.db");
    struct err e = {0};
    f->db = db_open(f->loop, dir, &f->rep, &e);
    assert_non_null(f->db);
    assert_int_equal(stat(dir, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0700);
    assert_int_equal(stat(file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    free(dir);
    free(file);
}

static void no_directory(void **state)
{
    struct fix *f = *state;
    struct err e = {0};
    char *below = fix_path(f, "no/such"), *file = fix_path(f, "file");
    assert_null(db_open(f->loop, below, NULL, &e));
    assert_int_equal(e.code, -ENOENT);
    assert_non_null(strstr(e.text, "--state"));
    write_file(f, "file", "", 0);
    assert_null(db_open(f->loop, file, NULL, &e));
    assert_int_equal(e.code, -ENOTDIR);
    free(below);
    free(file);
}

// As nobody, since root may write anywhere.
static void read_only_directory(void **state)
{
    struct fix *f = *state;
    assert_int_equal(chmod(f->dir, 0555), 0);
    pid_t pid = fork();
    if (pid == 0) {
        struct err e = {0};
        if (getuid() == 0 && setuid(65534) < 0)
            _exit(9);
        struct db *db = db_open(f->loop, f->dir, NULL, &e);
        _exit(db ? 1 : e.code == -EACCES && strstr(e.text, "cannot write in the state directory") ? 0 : 2);
    }
    int st;
    assert_int_equal(waitpid(pid, &st, 0), pid);
    assert_int_equal(chmod(f->dir, 0700), 0);
    assert_true(WIFEXITED(st));
    assert_int_equal(WEXITSTATUS(st), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(empty_file_is_a_new_one),
        T(not_a_database),
        T(odd_things_in_its_place),
        T(truncated),
        T(zeroed_page),
        T(random_damage),
        T(somebody_elses_database),
        T(missing_table),
        T(rows_that_are_no_lids),
        T(event_ids_go_on_above_a_damaged_file),
        T(newer_schema_is_refused),
        T(older_schema_is_migrated),
        T(second_one_is_told_the_pid),
        T(modes),
        T(no_directory),
        T(read_only_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
