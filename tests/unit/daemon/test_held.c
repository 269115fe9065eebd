// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lib/test.h"

#include <stdio.h>

#include "daemon/held.h"
#include "lib/buf.h"
#include "lib/log.h"

static struct buf told; // warnings

static void on_log(void *arg, enum log_level level, const char *event, const char *text)
{
    (void)arg;
    if (level == LOG_LEVEL_WARNING)
        buf_printf(&told, "%s %s\n", event, text);
}

static void slow(struct held *h, int64_t at_s, const char *area, const char *what, int64_t ms, int64_t cpu_ms)
{
    struct loop_slow s = {.area = area, .what = what, .ns = ms * MONO_MS, .cpu_ns = cpu_ms * MONO_MS};
    held_slow(h, &s, (mono_t){at_s * MONO_S});
}

static unsigned lines(void)
{
    unsigned n = 0;
    for (size_t i = 0; i < told.len; i++)
        n += told.data[i] == '\n';
    return n;
}

// What is short, or a simulated fabric's, is nobody's business.
static void only_what_is_long(void **state)
{
    struct held h = {0};
    (void)state;
    buf_clear(&told);
    slow(&h, 1, "api", "counters", 99, 99);
    slow(&h, 1, "sim", "traffic", 5000, 5000);
    assert_int_equal(told.len, 0);
    slow(&h, 1, "api", "counters", 100, 90);
    assert_string_equal(told.data, "loop-held-up area=api callback=counters ms=100 cpu_ms=90 more=0 "
                                   "text=\"nothing else ran meanwhile\"\n");
}

// One line a minute, with the longest of those between and how many they were.
static void once_a_minute(void **state)
{
    struct held h = {0};
    (void)state;
    buf_clear(&told);
    slow(&h, 0, "sm", "", 150, 10); // also right at the start
    assert_non_null(strstr(told.data, "area=sm callback=- ms=150 cpu_ms=10 more=0"));
    assert_non_null(strstr(told.data, "waiting"));
    buf_clear(&told);
    slow(&h, 1, "api", "a", 200, 200);
    slow(&h, 30, "api", "b", 400, 400);
    slow(&h, 59, "api", "c", 300, 300);
    assert_int_equal(lines(), 0);
    slow(&h, 60, "api", "d", 120, 120);
    assert_int_equal(lines(), 1);
    assert_non_null(strstr(told.data, "callback=b ms=400 cpu_ms=400 more=3"));
    buf_clear(&told);
    slow(&h, 130, "api", "e", 130, 130);
    assert_non_null(strstr(told.data, "callback=e ms=130 cpu_ms=130 more=0"));
}

// Nobody is held up again: what waits is told all the same, when its minute is over or at the end.
static void told_in_time(void **state)
{
    struct loop *l = loop_new(LOOP_VIRTUAL);
    struct held h;
    (void)state;
    buf_clear(&told);
    held_watch(&h, l);
    assert_false(loop_timer_pending(&h.timer));
    slow(&h, 10, "sm", "", 150, 150);
    assert_int_equal(lines(), 1);
    assert_false(loop_timer_pending(&h.timer));
    buf_clear(&told);
    slow(&h, 20, "api", "a", 200, 200);
    slow(&h, 30, "api", "b", 300, 300);
    assert_true(loop_timer_pending(&h.timer));
    assert_int_equal(mono_sub(h.timer.due, loop_now(l)), 40 * MONO_S);
    held_due(&h, (mono_t){69 * MONO_S});
    assert_int_equal(told.len, 0);
    held_due(&h, (mono_t){70 * MONO_S});
    assert_int_equal(lines(), 1);
    assert_non_null(strstr(told.data, "callback=b ms=300 cpu_ms=300 more=1"));
    held_due(&h, (mono_t){200 * MONO_S});
    assert_int_equal(lines(), 1);
    slow(&h, 80, "api", "c", 400, 400);
    assert_int_equal(lines(), 1);
    held_done(&h);
    assert_int_equal(lines(), 2);
    assert_non_null(strstr(told.data, "callback=c ms=400 cpu_ms=400 more=0"));
    held_done(&h);
    assert_int_equal(lines(), 2);
    loop_free(l); // nothing is pending
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_long),
        cmocka_unit_test(once_a_minute),
        cmocka_unit_test(told_in_time),
    };
    log_set_hook(on_log, NULL);
    int rc = cmocka_run_group_tests_name("daemon/held", tests, NULL, NULL);
    buf_done(&told);
    return rc;
}
