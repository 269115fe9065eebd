// SPDX-License-Identifier: Apache-2.0
// What others do to the files and to the clock: flipped bytes, files cut short, newer schemas; clocks that
// step; questions about absurd ranges. Never a crash, the loss is bounded, the rest stays.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/unit/db/seriestest.h"

static char *path_of(struct sfix *f, const char *name)
{
    return xasprintf("%s/%s", f->dir, name);
}

static void fill_days(struct sfix *f, int days)
{
    s_open(f);
    s_series(f, 100);
    for (int64_t at = T0; at < T0 + days * DAY; at += 300000) {
        s_count(f);
        s_sweep(f, at);
    }
}

// --- damage ---

struct seen {
    const struct sfix *f;
    long points, wrong;
    uint8_t day[32]; // points of it
};

static bool look(void *arg, const struct series_point *p)
{
    struct seen *s = arg;
    size_t k = (size_t)((p->at_ms - T0) / 300000);
    bool good = p->at_ms >= T0 && k < s->f->n && s->f->sweep[k].at_ms == p->at_ms && p->series < s->f->num;
    if (good) {
        const struct msweep *m = &s->f->sweep[k];
        good = !(p->have & ~m->have[p->series]);
        for (uint64_t b = p->have; good && b; b &= b - 1)
            good = p->value[__builtin_ctzll(b)] ==
                   m->value[(size_t)p->series * COLS + (unsigned)__builtin_ctzll(b)];
    }
    s->wrong += !good;
    s->points++;
    return true;
}

static long read_all(struct sfix *f, long *ret_wrong)
{
    struct err e = {0};
    struct seen s = {.f = f};
    struct series_reader *r = series_reader_new(f->dir, &e);
    struct series_query q = {.columns = UINT64_MAX, .to_ms = INT64_MAX};
    uint64_t damaged;
    assert_non_null(r);
    (void)series_read(r, &q, look, &s, &damaged, &e);
    series_reader_free(r);
    *ret_wrong = s.wrong;
    return s.points;
}

static void ignore(void *arg, const char *file, const char *text)
{
}

static off_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? st.st_size : 0;
}

static void copy_folder(const char *from, const char *to)
{
    char *cmd = xasprintf("rm -rf '%s' && cp -a '%s' '%s'", to, from, to);
    assert_int_equal(system(cmd), 0);
    free(cmd);
}

static void flip_bytes(struct sfix *f, const char *path, unsigned n)
{
    int fd = open(path, O_RDWR);
    off_t size = size_of(path);
    assert_true(fd >= 0 && size > 0);
    while (n--) {
        off_t at = (off_t)(rng_u64(&f->rng) % (uint64_t)size);
        uint8_t b = 0;
        assert_int_equal(pread(fd, &b, 1, at), 1);
        b ^= (uint8_t)(1 + rng_below(&f->rng, 255));
        assert_int_equal(pwrite(fd, &b, 1, at), 1);
    }
    close(fd);
}

// Damages one file of a copy in one way, reads, checks, opens, goes on, reads again.
static void damage_once(struct sfix *f, const char *whole, const struct series_name *name, unsigned how,
                        long all)
{
    char *path = path_of(f, name->text);
    long wrong;
    copy_folder(whole, f->dir);
    if (how % 3 == 2)
        assert_int_equal(truncate(path, (off_t)(rng_u64(&f->rng) % (uint64_t)size_of(path))), 0);
    else
        flip_bytes(f, path, how % 3 ? 40 : 1);
    long n = read_all(f, &wrong);
    assert_int_equal(wrong, 0);
    assert_true(n <= all);
    if (name->tier != SERIES_RAW)
        assert_int_equal(n, all);
    (void)series_check(f->dir, ignore, NULL);
    s_open(f);
    uint32_t num = f->num;
    f->num = 0;
    s_series(f, num); // numbers are what they were
    s_count(f);
    size_t before = f->n;
    s_sweep(f, T0 + (int64_t)f->n * 300000);
    series_close(f->s);
    f->s = NULL;
    n = read_all(f, &wrong);
    assert_int_equal(wrong, 0);
    free(f->sweep[before].value);
    free(f->sweep[before].have);
    f->n = before;
    free(path);
}

// Each kind of file, cut short and with bytes flipped: what is read is right, other days are whole.
static void damaged_files(void **state)
{
    struct sfix *f = *state;
    struct series_name *list;
    long wrong;
    fill_days(f, 3);
    series_close(f->s);
    f->s = NULL;
    char *whole = xasprintf("%s.whole", f->dir);
    copy_folder(f->dir, whole);
    long all = read_all(f, &wrong), n = series_names(f->dir, &list);
    assert_int_equal(wrong, 0);
    assert_true(all > 50000 && n >= 6);
    for (unsigned how = 0; how < 12; how++) {
        for (long i = 0; i < n; i++)
            damage_once(f, whole, &list[i], how, all);
    }
    free(list);
    char *cmd = xasprintf("rm -rf '%s'", whole);
    assert_int_equal(system(cmd), 0);
    free(cmd);
    free(whole);
}

static void a_damaged_day_is_set_aside(void **state)
{
    struct sfix *f = *state;
    long wrong;
    fill_days(f, 2);
    series_close(f->s);
    f->s = NULL;
    char *path = path_of(f, "raw-20260922.db");
    int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, "this is no database", 19, 0), 19);
    close(fd);
    s_open(f);
    assert_int_equal(f->rep.set_aside, 1);
    assert_non_null(strstr(f->rep.set_aside_as, "raw-20260922.db.damaged-"));
    assert_int_equal(access(f->rep.set_aside_as, F_OK), 0);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(series_num(f->s), f->num);
    assert_true(read_all(f, &wrong) > 10000);
    assert_int_equal(wrong, 0);
    // The time is still known by the minute.
    struct err e;
    struct seen s = {.f = f};
    struct series_reader *r = series_reader_new(f->dir, &e);
    struct series_query q = {.columns = 1, .from_ms = T0 + DAY - 7200000, .to_ms = T0 + DAY - 3600000};
    assert_true(series_read(r, &q, look, &s, NULL, &e) > 500);
    assert_int_equal(s.wrong, 0);
    series_reader_free(r);
    free(path);
}

// A flipped byte in a chunk is found by its checksum: it costs that chunk's column.
static void a_damaged_chunk_costs_itself(void **state)
{
    struct sfix *f = *state;
    sqlite3 *c;
    long wrong;
    uint64_t damaged;
    struct err e;
    struct seen s = {.f = f};
    fill_days(f, 1);
    series_close(f->s);
    f->s = NULL;
    long all = read_all(f, &wrong);
    char *path = path_of(f, "raw-20260921.db");
    assert_int_equal(sqlite3_open(path, &c), SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(c,
                     "UPDATE part SET d = CAST(substr(d, 1, 300) || x'55' || substr(d, 302) AS BLOB) "
                     "WHERE id = (SELECT min(id) FROM part)",
                     NULL, NULL, NULL),
        SQLITE_OK);
    sqlite3_close(c);
    struct series_reader *r = series_reader_new(f->dir, &e);
    struct series_query q = {.columns = UINT64_MAX, .to_ms = INT64_MAX};
    long n = series_read(r, &q, look, &s, &damaged, &e);
    assert_true(n >= all - 60 * 100 && damaged >= 1 && s.wrong == 0);
    assert_int_equal(series_check(f->dir, ignore, NULL), 1);
    series_reader_free(r);
    free(path);
}

static void a_newer_schema_is_refused(void **state)
{
    struct sfix *f = *state;
    sqlite3 *c;
    struct err e = {0};
    fill_days(f, 1);
    series_close(f->s);
    f->s = NULL;
    char *path = path_of(f, "min-20260921.db");
    assert_int_equal(sqlite3_open(path, &c), SQLITE_OK);
    assert_int_equal(sqlite3_exec(c, "PRAGMA user_version = 7", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(c);
    assert_null(series_open(f->loop, f->dir, &f->o, NULL, &e));
    assert_int_equal(e.code, -EPROTONOSUPPORT);
    assert_non_null(strstr(e.text, "newer weftd"));
    assert_string_equal(e.where, path);
    assert_int_equal(access(path, F_OK), 0);
    free(path);
}

static void something_else_in_the_folder(void **state)
{
    struct sfix *f = *state;
    fill_days(f, 1);
    series_close(f->s);
    f->s = NULL;
    static const char *const name[] = {"raw-2026.db", "raw-20261399.db", "notes.txt", "raw-20260921.db.old",
                                       "min-.db"};
    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        char *path = path_of(f, name[i]);
        close(open(path, O_WRONLY | O_CREAT, 0600));
        free(path);
    }
    char *path = path_of(f, "raw-20260801.db"); // a folder in a file's place
    assert_int_equal(mkdir(path, 0700), 0);
    free(path);
    s_open(f);
    assert_int_equal(f->rep.set_aside, 1);
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
}

// --- the clock ---

// Up to a minute: times go on, half as far apart, so that no rate is more than twice too high.
static void small_steps_back(void **state)
{
    struct sfix *f = *state;
    static const int64_t given[] = {0, 10000, 20000, 5000, 15000, 25000, 35000, 45000};
    static const int64_t kept[] = {0, 10000, 20000, 25000, 30000, 35000, 40000, 45000};
    s_open(f);
    s_series(f, 3);
    for (int i = 0; i < 8; i++) {
        s_count(f);
        s_sweep(f, T0 + given[i]);
        f->sweep[i].at_ms = T0 + kept[i];
    }
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
    s_reopen(f);
    s_count(f);
    s_sweep(f, T0 + 30000);
    f->sweep[8].at_ms = T0 + 50000;
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
}

static void a_step_back_of_minutes(void **state)
{
    struct sfix *f = *state;
    s_open(f);
    s_series(f, 5);
    for (int i = 0; i < 30; i++) {
        s_count(f);
        s_sweep(f, T0 + (i < 20 ? i : i - 10) * 10000);
    }
    s_verify(f, UINT64_MAX, 0, INT64_MAX); // at the times that were given
}

// More than a minute: a new era, over midnight too; read in the order of writing within a day.
static void great_steps_back(void **state)
{
    struct sfix *f = *state;
    s_open(f);
    s_series(f, 600);
    for (int i = 0; i < 300; i++) {
        s_count(f);
        s_sweep(f, T0 + 8 * 3600000 + i * 10000);
    }
    for (int i = 0; i < 300; i++) {
        s_count(f);
        s_sweep(f, T0 + 2 * 3600000 + i * 10000);
    }
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
    s_verify(f, UINT64_MAX, T0 + 2 * 3600000, T0 + 3 * 3600000);
    assert_int_equal(series_check(f->dir, ignore, NULL), 0);
}

static void a_step_back_over_midnight(void **state)
{
    struct sfix *f = *state;
    int64_t midnight = T0 / DAY * DAY + DAY;
    s_open(f);
    s_series(f, 5);
    for (int i = 0; i < 100; i++) {
        s_count(f);
        s_sweep(f, midnight + i * 10000);
    }
    for (int i = 0; i < 100; i++) {
        s_count(f);
        s_sweep(f, midnight - 7200000 + i * 10000);
    }
    // Days are read in order: first what was written later.
    struct msweep *m = xcalloc(200, sizeof(*m));
    memcpy(m, f->sweep + 100, 100 * sizeof(*m));
    memcpy(m + 100, f->sweep, 100 * sizeof(*m));
    memcpy(f->sweep, m, 200 * sizeof(*m));
    free(m);
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
}

static void a_clock_before_all_time(void **state)
{
    struct sfix *f = *state;
    s_open(f);
    s_series(f, 5);
    for (int i = 0; i < 3; i++) {
        s_count(f);
        s_sweep(f, -5000 + i);
        f->sweep[i].at_ms = 1 + i;
    }
    s_verify(f, UINT64_MAX, 0, INT64_MAX);
}

// --- absurd questions ---

static bool count(void *arg, const struct series_point *p)
{
    ++*(long *)arg;
    return true;
}

static void absurd_questions(void **state)
{
    struct sfix *f = *state;
    struct err e = {0};
    long n = 0;
    s_open(f);
    s_series(f, 600);
    for (int i = 0; i < 100; i++) {
        s_count(f);
        s_sweep(f, T0 + i * 10000);
    }
    struct series_reader *r = series_reader_new(f->dir, &e);
    static const uint32_t far[] = {3, 4000000000u, 4294967295u}, twice[] = {7, 7, 5, 5};
    struct series_query q[] = {
        {.columns = 1, .from_ms = 1, .to_ms = 0},
        {.columns = 0, .from_ms = 0, .to_ms = INT64_MAX},
        {.columns = UINT64_MAX, .from_ms = INT64_MIN, .to_ms = INT64_MIN},
        {.columns = UINT64_MAX, .from_ms = INT64_MIN, .to_ms = 0, .step_ms = INT64_MAX},
        {.columns = 1,
         .from_ms = INT64_MIN,
         .to_ms = INT64_MAX,
         .step_ms = INT64_MAX,
         .series = far,
         .num = 3},
        {.columns = 1, .from_ms = INT64_MIN, .to_ms = INT64_MAX, .step_ms = -1, .series = far, .num = 3},
        {.columns = 1ULL << 63, .from_ms = INT64_MIN, .to_ms = INT64_MAX, .peaks = true},
        {.columns = 1, .from_ms = INT64_MIN, .to_ms = INT64_MAX, .series = twice, .num = 4},
        {.columns = 1, .from_ms = INT64_MIN, .to_ms = INT64_MAX, .series = twice, .num = 0},
    };
    for (size_t i = 0; i < sizeof(q) / sizeof(q[0]); i++) {
        long got = series_read(r, &q[i], count, &n, NULL, &e);
        if (got < 0)
            fail_msg("%zu: %s", i, e.text);
    }
    q[0] = (struct series_query){.columns = 1, .to_ms = INT64_MAX, .max_points = 5000};
    assert_int_equal(series_read(r, &q[0], count, &n, NULL, &e), -E2BIG);
    assert_non_null(strstr(e.text, "less time"));
    series_reader_free(r);
    assert_null(series_reader_new("/nowhere/at/all", &e));
}

// Somebody deletes a file, or puts another one in its place, while it is written: sweeps from then on are
// kept.
static void a_file_is_taken_away(void **state)
{
    struct sfix *f = *state;
    struct series_name *list;
    struct stat is;
    char *ours = NULL, *other = path_of(f, "other");
    s_open(f);
    s_series(f, 100);
    for (int i = 0; i < 60; i++) {
        s_count(f);
        s_sweep(f, T0 + i * 300000);
        if (i != 20 && i != 40)
            continue;
        series_flush(f->s);
        if (!ours) {
            assert_true(series_names(f->dir, &list) > 0);
            for (int k = 0; !ours; k++) // raw stands first
                ours = list[k].tier == SERIES_RAW ? path_of(f, list[k].text) : NULL;
            free(list);
        }
        if (i == 20) {
            assert_int_equal(unlink(ours), 0);
        } else {
            assert_int_equal(stat(ours, &is), 0); // begun anew
            int fd = open(other, O_CREAT | O_WRONLY, 0600);
            assert_true(fd >= 0);
            close(fd);
            assert_int_equal(rename(other, ours), 0);
        }
    }
    series_flush(f->s);
    struct series_health h;
    series_health(f->s, &h);
    assert_int_equal(h.status, 0);
    assert_int_equal(stat(ours, &is), 0);
    assert_true(is.st_size > 0); // what was put there was empty
    long wrong, points = read_all(f, &wrong);
    assert_int_equal(wrong, 0);
    assert_true(points >= 19 * 90);
    free(ours);
    free(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ST(a_file_is_taken_away),       ST(damaged_files),
        ST(a_damaged_day_is_set_aside), ST(a_damaged_chunk_costs_itself),
        ST(a_newer_schema_is_refused),  ST(something_else_in_the_folder),
        ST(small_steps_back),           ST(great_steps_back),
        ST(a_step_back_of_minutes),     ST(a_step_back_over_midnight),
        ST(a_clock_before_all_time),    ST(absurd_questions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
