// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/lib/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/buf.h"
#include "lib/log.h"

static struct buf seen; // "level event text\n" of each line
static unsigned lines;
static mono_t fake;

static mono_t fake_now(void)
{
    return fake;
}

static void hook(void *arg, enum log_level level, const char *event, const char *text)
{
    assert_ptr_equal(arg, &seen);
    buf_printf(&seen, "%d %s %s\n", (int)level, event, text);
    lines++;
}

// stderr goes to a pipe so that the sink itself can be looked at.
static int sink, real_stderr;

static int setup(void **state)
{
    int p[2];
    if (pipe2(p, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    fcntl(p[1], F_SETPIPE_SZ, 1 << 20);
    real_stderr = dup(STDERR_FILENO);
    dup2(p[1], STDERR_FILENO);
    close(p[1]);
    sink = p[0];
    log_set_hook(hook, &seen);
    log_set_clock(fake_now);
    unsetenv("JOURNAL_STREAM");
    return 0;
}

static int teardown(void **state)
{
    log_set_hook(NULL, NULL);
    log_set_clock(NULL);
    buf_done(&seen);
    dup2(real_stderr, STDERR_FILENO);
    close(sink);
    return 0;
}

static const char *sink_take(void)
{
    static char text[200000];
    ssize_t n = read(sink, text, sizeof(text) - 1);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void fresh(void)
{
    fake.ns += 1000 * MONO_S;
    sink_take();
    buf_clear(&seen);
    buf_puts(&seen, "");
    lines = 0;
}

static void levels(void **state)
{
    fresh();
    log_error("we-failed", "n=%d", 1);
    log_warning("going-on", "n=%d", 2);
    log_notice("it-changed", "%s", "");
    log_debug("detail", "n=%d", 4); // not by default
    assert_string_equal(seen.data, "0 we-failed n=1\n1 going-on n=2\n2 it-changed \n");

    fresh();
    log_set_level(LOG_LEVEL_DEBUG);
    log_debug("detail", "n=%d", 4);
    log_set_level(LOG_LEVEL_WARNING);
    log_notice("it-changed", "n=%d", 5);
    log_remote(1, "peer", "n=%d", 6);
    log_warning("going-on", "n=%d", 7);
    log_set_level(LOG_LEVEL_REMOTE);
    assert_string_equal(seen.data, "4 detail n=4\n1 going-on n=7\n");
}

static void line_format(void **state)
{
    fresh();
    log_notice("it-changed", "n=%d", 5);
    const char *s = sink_take();
    unsigned y, mo, d, h, mi, sec, ms;
    char level[20], event[20], text[20];
    assert_int_equal(sscanf(s, "%4u-%2u-%2uT%2u:%2u:%2u.%3uZ %19s %19s %19s\n", &y, &mo, &d, &h, &mi, &sec,
                            &ms, level, event, text),
                     10);
    assert_string_equal(level, "notice");
    assert_string_equal(event, "it-changed");
    assert_string_equal(text, "n=5");
    assert_int_equal(s[strlen(s) - 1], '\n');
}

static void escapes(void **state)
{
    fresh();
    log_notice("e", "desc=%s", "a\nb\x1b[2J\x7f\t\xc3\xa9\xff\xc2\x85z");
    assert_string_equal(seen.data, "2 e desc=a\\nb\\x1b[2J\\x7f\\t\xc3\xa9\\xff\\xc2\\x85z\n");

    // Cut, but never in the middle of an escape, and still one line.
    char big[5000];
    memset(big, '\n', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    fresh();
    log_notice("e", "%s", big);
    assert_int_equal(lines, 1);
    assert_true(seen.len < 2200);
    const char *s = sink_take();
    assert_ptr_equal(strchr(s, '\n'), s + strlen(s) - 1);
}

static unsigned count(const char *what)
{
    unsigned n = 0;
    for (const char *p = seen.data; p && (p = strstr(p, what)); p++)
        n++;
    return n;
}

static void remote_is_limited_per_peer(void **state)
{
    fresh();
    for (int i = 0; i < 100; i++) {
        log_remote(0x1122334455667788, "bad-trap", "n=%d", i);
        log_remote(7, "bad-trap", "n=%d", i);
        log_remote(7, "other", "n=%d", i);
    }
    assert_int_equal(lines, 15);
    assert_int_equal(count("3 bad-trap peer=0x1122334455667788 n="), 5);
    assert_int_equal(count("3 bad-trap peer=7 n="), 5);
    assert_int_equal(count("3 other peer=7 n="), 5);

    // The next minute begins with what was held back.
    fake.ns += 61 * MONO_S;
    buf_clear(&seen);
    log_remote(7, "other", "n=%d", 1000);
    assert_int_equal(count("3 other peer=7 suppressed=95 n=1000\n"), 1);

    // Nothing more comes from the rest: it is told on request, once.
    buf_clear(&seen);
    log_flush();
    log_flush();
    assert_int_equal(count("peer=0x1122334455667788 suppressed=95\n"), 1);
    assert_int_equal(count("3 bad-trap peer=7 suppressed=95\n"), 1);
    assert_int_equal(count("suppressed"), 2);
}

static void told_when_the_minute_is_over(void **state)
{
    fresh();
    for (int i = 0; i < 9; i++)
        log_remote(99, "quiet-later", "n=%d", i);
    fake.ns += 61 * MONO_S;
    buf_clear(&seen);
    // Other peers' calls go round the table.
    for (uint64_t i = 0; i < 256; i++)
        log_remote(5000, "busy", "n=%d", 0);
    assert_int_equal(count("3 quiet-later peer=99 suppressed=4\n"), 1);
}

static void flood_of_peers_is_bounded(void **state)
{
    fresh();
    for (uint64_t i = 0; i < 100000; i++)
        log_remote(i + (1ULL << 40), "forged", "n=%d", 0);
    assert_true(lines <= 300);
    assert_true(lines >= 200);
    fake.ns += 61 * MONO_S;
    buf_clear(&seen);
    log_remote(3, "forged", "n=%d", 0);
    assert_int_equal(count("3 remote-flood suppressed="), 1);
}

static void *chatter(void *arg)
{
    for (int i = 0; i < 500; i++)
        log_notice("thread", "who=%d text=abcdefghijklmnopqrstuvwxyz", *(int *)arg);
    return NULL;
}

static void lines_of_threads_do_not_mix(void **state)
{
    pthread_t t[2];
    int who[2] = {0, 1};

    fresh();
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&t[i], NULL, chatter, &who[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    assert_int_equal(lines, 1000);
    unsigned n = 0;
    for (const char *p = sink_take(); *p; p = strchr(p, '\n') + 1, n++)
        assert_int_equal(
            strcspn(p, "\n"),
            strlen("2026-01-31T10:20:30.123Z notice thread who=0 text=abcdefghijklmnopqrstuvwxyz"));
    assert_int_equal(n, 1000);
}

// A name cannot forge fields.
static void quote(void **state)
{
    char buf[16];
    (void)state;
    assert_string_equal(log_quote("a\" b=\"c", buf, sizeof(buf)), "a\\\" b=\\\"c");
    assert_string_equal(log_quote("\\", buf, sizeof(buf)), "\\\\");
    assert_string_equal(log_quote("0123456789abcdef", buf, sizeof(buf)), "0123456789abc");
    assert_string_equal(log_quote("", buf, sizeof(buf)), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quote),
        cmocka_unit_test(levels),
        cmocka_unit_test(line_format),
        cmocka_unit_test(escapes),
        cmocka_unit_test(remote_is_limited_per_peer),
        cmocka_unit_test(told_when_the_minute_is_over),
        cmocka_unit_test(flood_of_peers_is_bounded),
        cmocka_unit_test(lines_of_threads_do_not_mix),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
