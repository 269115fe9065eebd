// SPDX-License-Identifier: Apache-2.0
// What somebody does to files of history while they are being written: it is noticed and said, the damaged
// file is set aside at once, and what comes after it is kept; no signal of a mapping that is gone.
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

#include "tests/unit/db/seriestest.h"

#define STEP 10000
#define SWEEPS 12 // before somebody comes

static void sweeps(struct sfix *f, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        s_count(f);
        s_sweep(f, T0 + (int64_t)f->n * STEP);
    }
}

static struct series_health health(struct sfix *f)
{
    struct series_health h;
    series_health(f->s, &h);
    return h;
}

static char *raw(struct sfix *f, const char *suffix)
{
    struct series_name n;
    series_name_of(SERIES_RAW, T0, &n);
    return xasprintf("%s/%s%s", f->dir, n.text, suffix);
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

// The log is folded into the file, as it is after some minutes, or when weftd begins.
static void begin(struct sfix *f)
{
    s_open(f);
    s_series(f, 600);
    sweeps(f, SWEEPS - 3);
    s_reopen(f);
    sweeps(f, 3);
    assert_int_equal(health(f).lost, 0);
}

static long points_since(struct sfix *f, int64_t from)
{
    return s_verify(f, UINT64_MAX, from, INT64_MAX);
}

// What the sweeps from `first` on have is read back, and somebody was told.
static void went_on(struct sfix *f, size_t first, const char *why)
{
    char text[500], text2[500];
    struct series_health h = health(f);
    assert_int_equal(h.status, 0);
    assert_in_range(h.lost, 1, 2); // minutes too, where all is gone
    assert_true(h.lost_ns > 0);
    if (strstr(h.lost_text, why) == NULL)
        fail_msg("%s", h.lost_text);
    assert_true(series_news(f->s, text, sizeof(text)));
    assert_string_equal(text, h.lost_text);
    assert_false(series_news(f->s, text2, sizeof(text2)));
    assert_true(points_since(f, f->sweep[first].at_ms) > 0);
}

static void cut_file(const char *path, off_t size)
{
    assert_int_equal(truncate(path, size), 0);
}

static void write_over(const char *path, off_t at, size_t n)
{
    int fd = open(path, O_WRONLY);
    assert_true(fd >= 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(pwrite(fd, &(uint8_t){(uint8_t)(i * 37 + 11)}, 1, at + (off_t)i), 1);
    close(fd);
}

static void each(void **state, const char *suffix, off_t cut, const char *why)
{
    struct sfix *f = *state;
    begin(f);
    char *path = raw(f, suffix);
    if (cut >= 0)
        cut_file(path, cut);
    else
        write_over(path, 0, 200);
    size_t first = f->n;
    sweeps(f, 3);
    went_on(f, first, why);
    struct series_health h = health(f);
    assert_non_null(strstr(h.lost_text, "set aside as raw-2026"));
    assert_int_equal(h.aside, 1);
    assert_true(h.aside_bytes > 0);
    assert_non_null(strstr(h.aside_last, ".db.damaged-"));
    // A restart does not lose what came since, and still knows what is set aside.
    s_reopen(f);
    assert_int_equal(f->rep.set_aside, 0);
    sweeps(f, 1);
    assert_true(points_since(f, f->sweep[first].at_ms) > 0);
    assert_int_equal(health(f).aside, 1);
    assert_int_equal(health(f).lost, 0);
    free(path);
}

static void cut_to_nothing(void **state)
{
    each(state, "", 0, "cut the file short");
}

static void cut_short(void **state)
{
    each(state, "", 1000, "cut the file short");
}

static void written_over(void **state)
{
    each(state, "", -1, "written over the file");
}

static void log_cut(void **state)
{
    each(state, "-wal", 0, "cut its log short");
}

static void log_written_over(void **state)
{
    each(state, "-wal", -1, "written over its log");
}

static void log_gone(void **state)
{
    struct sfix *f = *state;
    begin(f);
    char *path = raw(f, "-wal");
    assert_int_equal(unlink(path), 0);
    size_t first = f->n;
    sweeps(f, 2);
    went_on(f, first, "taken its log away");
    free(path);
}

// Another tier's file, which is written once an hour only.
static void hour_cut(void **state)
{
    struct sfix *f = *state;
    struct series_name n;
    s_open(f);
    s_series(f, 10);
    for (unsigned i = 0; i < 130; i++) {
        s_count(f);
        s_sweep(f, T0 + (int64_t)f->n * 60000);
    }
    series_name_of(SERIES_HOUR, T0, &n);
    char *path = xasprintf("%s/%s", f->dir, n.text);
    cut_file(path, 0);
    s_count(f);
    s_sweep(f, T0 + (int64_t)f->n * 60000);
    assert_int_equal(health(f).status, 0);
    assert_int_equal(health(f).lost, 1);
    assert_non_null(strstr(health(f).lost_text, n.text));
    free(path);
}

static void copied_over(void **state)
{
    struct sfix *f = *state;
    begin(f);
    char *path = raw(f, ""), *cmd = xasprintf("cat '%s' > '%s/other' && truncate -s -8192 '%s/other' && cat "
                                              "'%s/other' > '%s'",
                                              path, f->dir, f->dir, f->dir, path);
    assert_int_equal(system(cmd), 0);
    size_t first = f->n;
    sweeps(f, 2);
    went_on(f, first, "cut the file short");
    free(path);
    free(cmd);
}

static void folder_gone(void **state)
{
    struct sfix *f = *state;
    begin(f);
    char *cmd = xasprintf("rm -rf '%s'", f->dir), *lock = xasprintf("%s/lock", f->dir);
    assert_int_equal(system(cmd), 0);
    size_t first = f->n;
    sweeps(f, 3);
    went_on(f, first, "taken it away");
    // Nobody else may write there.
    struct err e = {0};
    struct series_report rep;
    assert_true(is_there(lock));
    assert_null(series_open(f->loop, f->dir, &f->o, &rep, &e));
    assert_int_equal(e.code, -EBUSY);
    s_reopen(f);
    assert_int_equal(f->rep.series, f->num);
    assert_true(points_since(f, f->sweep[first].at_ms) > 0);
    free(cmd);
    free(lock);
}

static void folder_gone_twice(void **state)
{
    struct sfix *f = *state;
    char *was = xstrdup(f->dir), *cmd;
    strncat(f->dir, "/telemetry", sizeof(f->dir) - strlen(f->dir) - 1);
    begin(f);
    cmd = xasprintf("rm -rf '%s'", was);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(system(cmd), 0);
        size_t first = f->n;
        sweeps(f, 2);
        assert_int_equal(health(f).status, 0);
        assert_true(points_since(f, f->sweep[first].at_ms) > 0);
    }
    series_close(f->s);
    f->s = NULL;
    snprintf(f->dir, sizeof(f->dir), "%s", was);
    free(was);
    free(cmd);
}

// One question in a minute is taken; here each is.
static void suspect(struct sfix *f)
{
    pthread_mutex_lock(&f->s->mu);
    f->s->look.asked_s = 0;
    pthread_mutex_unlock(&f->s->mu);
    series_suspect(f->s);
}

// Whether the last question waits for the look before it to end.
static bool still_asked(struct sfix *f)
{
    pthread_mutex_lock(&f->s->mu);
    bool asked = f->s->look.asked;
    pthread_mutex_unlock(&f->s->mu);
    return asked;
}

static bool has_found(struct sfix *f, enum series_tier t)
{
    pthread_mutex_lock(&f->s->mu);
    bool found = f->s->look.found[t][0] != 0;
    pthread_mutex_unlock(&f->s->mu);
    return found;
}

// In the middle of the file: nothing shows it but reading it.
static void found_by_reading(void **state)
{
    struct sfix *f = *state;
    struct stat st;
    begin(f);
    char *path = raw(f, "");
    assert_int_equal(stat(path, &st), 0);
    for (off_t at = 8192; at + 4096 < st.st_size; at += 8192)
        write_over(path, at, 64);
    suspect(f);
    for (int64_t until = mono_now().ns + 60 * MONO_S; !has_found(f, SERIES_RAW); sched_yield())
        if (mono_now().ns > until)
            fail_msg("nothing is found");
    assert_int_equal(health(f).lost, 0);
    sweeps(f, 1);
    size_t first = f->n;
    sweeps(f, 2);
    struct series_health h = health(f);
    assert_int_equal(h.lost, 1);
    assert_int_equal(h.status, 0);
    assert_true(points_since(f, f->sweep[first].at_ms) > 0);
    free(path);
}

static void found_sound(void **state)
{
    struct sfix *f = *state;
    begin(f);
    for (int i = 0; i < 20; i++) { // each begins when the one before it has ended
        suspect(f);
        int64_t until = mono_now().ns + 60 * MONO_S;
        do {
            if (mono_now().ns > until)
                fail_msg("nobody looks");
            sweeps(f, 1);
        } while (still_asked(f));
    }
    sweeps(f, 1);
    assert_int_equal(health(f).lost, 0);
    assert_true(points_since(f, T0) > 0);
}

// SQLite has it mapped.
static void index_cut(void **state)
{
    struct sfix *f = *state;
    begin(f);
    char *path = raw(f, "-shm");
    for (int i = 0; i < 4; i++) {
        cut_file(path, i % 2 ? 5000 : 0);
        if (i < 2)
            sweeps(f, 1);
        assert_true(points_since(f, T0) > 0);
        sweeps(f, 1);
    }
    assert_int_equal(health(f).lost, 0);
    assert_int_equal(health(f).status, 0);
    assert_true(points_since(f, T0) > 0);
    free(path);
}

struct told {
    char text[1000];
};

static void tell(void *arg, const char *file, const char *text)
{
    struct told *t = arg;
    size_t n = strlen(t->text);
    snprintf(t->text + n, sizeof(t->text) - n, "%s: %s\n", file, text);
}

static void check_says_what_is(void **state)
{
    struct sfix *f = *state;
    struct told t = {""};
    begin(f);
    char *path = raw(f, "");
    cut_file(path, 0);
    assert_int_equal(series_check(f->dir, tell, &t), 1);
    assert_null(strstr(t.text, "set aside"));
    sweeps(f, 2);
    t.text[0] = 0;
    assert_int_equal(series_check(f->dir, tell, &t), 0);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ST(cut_to_nothing),   ST(cut_short),          ST(written_over),     ST(log_cut),
        ST(log_written_over), ST(log_gone),           ST(hour_cut),         ST(copied_over),
        ST(folder_gone),      ST(folder_gone_twice),  ST(found_by_reading), ST(found_sound),
        ST(index_cut),        ST(check_says_what_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
