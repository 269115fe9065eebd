// SPDX-License-Identifier: Apache-2.0
// When ibdiagnet's file is read, and when it is told that it is old or of the future.
#include "tests/unit/lib/test.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/cables.h"
#include "lib/buf.h"
#include "lib/log.h"
#include "lib/loop.h"
#include "lib/pool.h"
#include "telemetry/module.h"

#define S MONO_S
#define DAY (86400 * S)
#define GUID 0xaa

struct fix {
    char dir[200], path[300];
    struct loop *loop;
    struct pool *pool;
    struct cables *c;
    unsigned reads;
    struct buf events;
    int64_t now; // wall clock
};

static void on_read(void *arg)
{
    struct fix *f = arg;
    f->reads++;
}

static void on_event(void *arg, const char *kind, const char *severity, const char *subject, const char *text)
{
    struct fix *f = arg;
    assert_string_equal(severity, "warning");
    assert_string_equal(subject, f->path);
    assert_int_not_equal(text[0], 0);
    buf_printf(&f->events, "%s ", kind);
}

static void nothing(void *arg, struct par *par)
{
    (void)arg;
    (void)par;
}

static void set(void *arg)
{
    *(bool *)arg = true;
}

static unsigned look_aging(struct fix *f, int64_t aging)
{
    bool done = false;
    struct pool_job after = {.work = nothing, .done = set, .arg = &done};
    unsigned before = f->reads;
    cables_look(f->c, f->now, aging);
    pool_submit(f->pool, &after); // one thread: when this is done, so is what was submitted before
    assert_true(loop_run_until(f->loop, &done, 60 * S));
    return f->reads - before;
}

static unsigned look(struct fix *f)
{
    return look_aging(f, f->now);
}

static void put(struct fix *f, const char *serial, int64_t written)
{
    FILE *file = fopen(f->path, "w");
    assert_non_null(file);
    if (serial != NULL)
        fprintf(file,
                "-----\nPort=1 Lid=0x0018 GUID=0x%016x Port Name=S/P1\n-----\nVendor: V\nPN: P\nSN: %s\n",
                GUID, serial);
    assert_int_equal(fclose(file), 0);
    struct timespec t[2] = {{written / S, written % S}, {written / S, written % S}};
    assert_int_equal(utimensat(AT_FDCWD, f->path, t, 0), 0);
}

static void expect(struct fix *f, const char *serial)
{
    struct tele_modules *m = cables_modules(f->c);
    assert_non_null(m);
    const struct tele_module *x = tele_modules_find(m, GUID, 1);
    assert_non_null(x);
    assert_string_equal(x->serial, serial);
    assert_true(x->taken_ns <= wall_now_ns());
    tele_modules_free(m);
}

static int setup(void **state)
{
    struct fix *f = calloc(1, sizeof(*f));
    const char *tmp = getenv("TMPDIR");
    snprintf(f->dir, sizeof(f->dir), "%s/weft-cables-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->dir));
    snprintf(f->path, sizeof(f->path), "%s/ibdiagnet2.cables", f->dir);
    f->loop = loop_new(LOOP_REAL);
    f->pool = pool_new(f->loop, 1);
    f->now = wall_now_ns();
    f->c = cables_new(f->pool, "a", f->path,
                      &(struct cables_callbacks){.arg = f, .read = on_read, .event = on_event});
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fix *f = *state;
    cables_free(f->c);
    pool_free(f->pool);
    loop_free(f->loop);
    buf_done(&f->events);
    unlink(f->path);
    rmdir(f->dir);
    free(f);
    return 0;
}

static void when_it_is_another_one(void **state)
{
    struct fix *f = *state;
    put(f, "one", f->now - S / 10); // the first at once
    assert_int_equal(look(f), 1);
    expect(f, "one");
    assert_int_equal(look(f), 0);
    f->now += 10 * S;
    put(f, "two", f->now - S / 2); // somebody may be writing it
    assert_int_equal(look(f), 0);
    f->now += S;
    assert_int_equal(look(f), 1);
    expect(f, "two");
    assert_int_equal(look(f), 0);
    put(f, "old", 0); // at the beginning of time
    assert_int_equal(look(f), 1);
    expect(f, "old");
    assert_int_equal(look(f), 0);
    assert_null(cables_new(f->pool, "a", "", NULL));
    cables_look(NULL, 0, 0);
}

// It is neither young for ever, nor read each time, and that is said once.
static void of_the_future(void **state)
{
    struct fix *f = *state;
    int64_t ahead = f->now + 3600 * S;
    put(f, "one", ahead);
    assert_int_equal(look(f), 1);
    assert_string_equal(f->events.data, "cable-file-ahead ");
    for (int i = 0; i < 3; i++, f->now += 10 * S)
        assert_int_equal(look(f), 0);
    put(f, "two", ahead + 60 * S); // another one: taken when it stays as it is
    assert_int_equal(look(f), 0);
    f->now += S;
    put(f, "three", ahead + 61 * S);
    assert_int_equal(look(f), 0);
    f->now += S;
    assert_int_equal(look(f), 1);
    expect(f, "three");
    assert_int_equal(look(f), 0);
    assert_string_equal(f->events.data, "cable-file-ahead ");
    put(f, "four", f->now - 2 * S); // the clock was mended; and is wrong again
    assert_int_equal(look(f), 1);
    put(f, "five", ahead);
    assert_int_equal(look(f) + look(f), 1);
    assert_string_equal(f->events.data, "cable-file-ahead cable-file-ahead ");
    put(f, "six", f->now + 5 * S); // a little is nothing
    assert_int_equal(look(f) + look(f), 1);
    expect(f, "six");
    put(f, "seven", f->now - 5 * S);
    assert_int_equal(look(f), 1);
    assert_string_equal(f->events.data, "cable-file-ahead cable-file-ahead ");
}

// It grows old from when it was read, not from the time that it says.
static void old_ones(void **state)
{
    struct fix *f = *state;
    put(f, "one", f->now + 30 * DAY);
    assert_int_equal(look(f), 1);
    buf_clear(&f->events);
    f->now += DAY;
    assert_int_equal(look(f), 0);
    assert_int_equal(f->events.len, 0);
    f->now += S;
    for (int i = 0; i < 3; i++)
        assert_int_equal(look(f), 0);
    assert_string_equal(f->events.data, "cable-file-old "); // once
    put(f, "two", f->now - 2 * S);
    assert_int_equal(look(f), 1);
    assert_int_equal(look_aging(f, f->now + DAY - 3 * S), 0); // by the clock of readings
    assert_string_equal(f->events.data, "cable-file-old ");
    look_aging(f, f->now + DAY);
    assert_string_equal(f->events.data, "cable-file-old cable-file-old ");
}

// What was known stays, and grows old.
static void gone_or_unreadable(void **state)
{
    struct fix *f = *state;
    assert_int_equal(look(f), 0); // there is none
    assert_null(cables_modules(f->c));
    put(f, "one", f->now - 10 * S);
    assert_int_equal(look(f), 1);
    assert_int_equal(unlink(f->path), 0);
    assert_int_equal(look(f), 0);
    expect(f, "one");
    put(f, NULL, f->now - 5 * S);
    assert_int_equal(look(f), 0);
    expect(f, "one");
    assert_int_equal(f->events.len, 0);
    f->now += DAY;
    look(f);
    assert_string_equal(f->events.data, "cable-file-old ");
    put(f, "one", f->now - 10 * S); // the same again
    assert_int_equal(look(f), 1);
    assert_int_equal(unlink(f->path), 0);
    look(f);
    put(f, "one", f->now - 10 * S); // it has been away
    assert_int_equal(look(f), 1);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
    const struct CMUnitTest tests[] = {T(when_it_is_another_one), T(of_the_future), T(old_ones),
                                       T(gone_or_unreadable)};
    return cmocka_run_group_tests_name("daemon/cables", tests, NULL, NULL);
}
