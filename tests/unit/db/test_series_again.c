// SPDX-License-Identifier: Apache-2.0
// History that is damaged a second time at once, the locks on its files, and times where sweeps are far
// apart.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "tests/unit/db/seriestest.h"

#define STEP 10000

static int sweep(struct sfix *f)
{
    s_count(f);
    uint64_t *have = xcalloc(f->num, sizeof(*have));
    for (uint32_t i = 0; i < f->num; i++)
        have[i] = (1 << COLS) - 1;
    series_sweep(f->s, T0 + (int64_t)f->n++ * STEP, f->now, have, f->num);
    free(have);
    return series_flush(f->s);
}

static char *raw(struct sfix *f, const char *suffix)
{
    struct series_name n;
    series_name_of(SERIES_RAW, T0, &n);
    return xasprintf("%s/%s%s", f->dir, n.text, suffix);
}

// Damaged, set aside, and a new one begun.
static void damaged_once(struct sfix *f)
{
    struct series_health h;
    s_open(f);
    s_series(f, 100);
    char *path = raw(f, "");
    for (int i = 0; i < 3; i++)
        assert_int_equal(sweep(f), 0);
    assert_int_equal(truncate(path, 0), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sweep(f), 0);
    series_health(f->s, &h);
    assert_int_equal(h.lost, 1);
    free(path);
}

static int teardown(void **state)
{
    ((struct sfix *)*state)->n = 0; // there is no model
    return s_teardown(state);
}

// It stays, as long as it is no accident, and the same is said of it all the time.
static void damaged_again(void **state)
{
    struct sfix *f = *state;
    struct series_health h, first;
    damaged_once(f);
    char *path = raw(f, "");
    assert_int_equal(truncate(path, 0), 0);
    assert_int_equal(sweep(f), -EBADMSG);
    series_health(f->s, &first);
    const char *again = strstr(first.text, ", again");
    assert_non_null(again);
    assert_null(strstr(again + 1, ", again"));
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sweep(f), -EBADMSG);
        series_health(f->s, &h);
        assert_string_equal(h.text, first.text);
    }
    assert_int_equal(h.lost, 1);
    free(path);
}

// What somebody has put there can be no file of history; when it is taken away, all is well.
static void bad_one_taken_away(void **state)
{
    struct sfix *f = *state;
    struct series_health h;
    damaged_once(f);
    char *path = raw(f, ""), *other = xasprintf("%s/other", f->dir);
    FILE *file = fopen(other, "w");
    assert_non_null(file);
    for (int i = 0; i < 1000; i++)
        fputs("no file of history\n", file);
    fclose(file);
    assert_int_equal(rename(other, path), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sweep(f), -EBADMSG);
    assert_int_equal(unlink(path), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(sweep(f), 0);
    series_health(f->s, &h);
    assert_int_equal(h.status, 0);
    free(other);
    free(path);
}

// As another process sees it.
static bool is_locked(const char *path)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path, O_RDWR);
        _exit(fd < 0 || fcntl(fd, F_GETLK, &l) < 0 ? 2 : l.l_type != F_UNLCK);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 1;
}

static void index_stays_locked(void **state)
{
    struct sfix *f = *state;
    s_open(f);
    s_series(f, 100);
    char *path = raw(f, "-shm");
    assert_int_equal(sweep(f), 0);
    assert_true(is_locked(path));
    assert_int_equal(truncate(path, 5000), 0);
    assert_int_equal(sweep(f), 0);
    assert_true(is_locked(path));
    free(path);
}

// After a step back times go on at half their pace, however far apart sweeps are.
static void step_back_of_rare_sweeps(void **state)
{
    struct sfix *f = *state;
    uint64_t have[100] = {0};
    s_open(f);
    s_series(f, 100);
    series_sweep(f->s, T0, f->now, have, 100);
    series_sweep(f->s, T0 + 120000, f->now, have, 100);
    assert_int_equal(f->s->last_ms, T0 + 120000);
    series_sweep(f->s, T0 + 110000, f->now, have, 100);
    assert_int_equal(f->s->last_ms, T0 + 120000 + 60000);
    assert_int_equal(series_flush(f->s), 0);
}

// After a gap too: not farther than the next sweep makes up for.
static void step_back_after_a_gap(void **state)
{
    struct sfix *f = *state;
    uint64_t have[100] = {0};
    s_open(f);
    s_series(f, 100);
    series_sweep(f->s, T0, f->now, have, 100);
    series_sweep(f->s, T0 + 3000000, f->now, have, 100);
    series_sweep(f->s, T0 + 2990000, f->now, have, 100);
    assert_int_equal(f->s->last_ms, T0 + 3000000 + 60000);
    series_sweep(f->s, T0 + 3000000, f->now, have, 100);
    assert_true(f->s->last_ms > T0 + 3060000 && f->s->last_ms <= T0 + 3070000);
    assert_int_equal(series_flush(f->s), 0);
}

#define AT(fn) cmocka_unit_test_setup_teardown(fn, s_setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        AT(damaged_again),
        AT(bad_one_taken_away),
        AT(index_stays_locked),
        AT(step_back_of_rare_sweeps),
        AT(step_back_after_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
