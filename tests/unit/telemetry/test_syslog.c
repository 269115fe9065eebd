// SPDX-License-Identifier: Apache-2.0
// Syslog: messages as RFC 5424 has them, targets as people write them, and delivery over real sockets.
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/err.h"
#include "telemetry/syslog.h"

#define WALL 1767225600123000000 // 2026-01-01T00:00:00.123Z

static void message(struct buf *b, const struct syslog_param *p, unsigned n, const char *text, size_t most)
{
    syslog_message(b,
                   &(struct syslog_entry){.facility = 16,
                                          .severity = 3,
                                          .wall_ns = WALL,
                                          .host = "node 1",
                                          .msgid = "alarm-raised",
                                          .param = p,
                                          .num_params = n,
                                          .text = text},
                   most);
}

static void a_message(void **state)
{
    struct buf b = {0};
    char expected[300];
    const struct syslog_param p[] = {{"id", "7"}, {"rule", ""}, {"subject", "a\"b]c\\d\ne"}};
    message(&b, p, 3, "link\nfails", SYSLOG_MAX);
    snprintf(expected, sizeof(expected),
             "<131>1 2026-01-01T00:00:00.123Z node1 weftd %d alarm-raised [weft@32473 id=\"7\" "
             "subject=\"a\\\"b\\]c\\\\d e\"] link fails",
             (int)getpid());
    assert_string_equal(b.data, expected);
    message(&b, NULL, 0, "\xc2\xb5", SYSLOG_MAX);
    assert_non_null(
        strstr(b.data, " [weft@32473] \xef\xbb\xbf\xc2\xb5")); // what is not ASCII begins with a BOM
    buf_done(&b);
}

static void long_ones_are_cut(void **state)
{
    struct buf b = {0};
    char text[9000], value[3000];
    memset(text, 0, sizeof(text));
    for (unsigned i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc2\xb5", 2);
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = 0;
    const struct syslog_param p[] = {{"id", "1"}, {"cable", value}, {"rule", "L06"}};
    for (size_t most = 1000; most < 1004; most++) {
        message(&b, p, 3, text, most);
        assert_true(b.len <= most && b.len > most - 2);
        assert_non_null(strstr(b.data, "[weft@32473 id=\"1\" rule=\"L06\"] "));
        assert_int_equal((unsigned char)b.data[b.len - 1], 0xb5); // a whole character
    }
    buf_done(&b);
}

static void targets(void **state)
{
    static const char *const good[] = {"udp://127.0.0.1:5514", "tcp://[::1]:601", "tcp://host",
                                       "udp://[fe80::1]",      "unix:/dev/log",   "unix:///dev/log",
                                       "udp://a.b:1"};
    static const char *const bad[] = {
        "",         "udp://",     "udp://:514",   "tcp://h:0x1", "tcp://h:70000", "unix:dev", "http://h/",
        "udp://h:", "tcp://[::1", "tcp://[::1]x", "udp://a/b:1", "unix:",         "host:514"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct courier_target t;
        struct err e = {0};
        if (syslog_target(good[i], 0, &t, &e) != 0)
            fail_msg("%s: %s", good[i], e.text);
        t.free(t.arg);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct courier_target t;
        struct err e = {0};
        assert_int_equal(syslog_target(bad[i], 0, &t, &e), -EINVAL);
        assert_non_null(strstr(e.text, "none of udp://"));
    }
}

static void no_descriptors(void **state)
{
    struct courier_target t;
    struct err e = {0};
    struct rlimit was, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
    none = (struct rlimit){0, was.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int rc = syslog_target("udp://127.0.0.1", 0, &t, &e);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
    assert_int_equal(rc, -EMFILE);
    assert_int_equal(e.code, -EMFILE);
    assert_non_null(strstr(e.text, "Too many open files"));
}

// --- delivery ---

static int bound(int type, unsigned *port)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    int fd = socket(AF_INET, type, 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 60}, sizeof(struct timeval));
    sa.sin_port = htons((uint16_t)*port);
    int one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    *port = ntohs(sa.sin_port);
    return fd;
}

static struct courier_target open_target(const char *fmt, ...)
{
    char text[200];
    struct courier_target t;
    struct err e = {0};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    assert_int_equal(syslog_target(text, 0, &t, &e), 0);
    return t;
}

static struct courier_result deliver(struct courier_target *t, const char *a, const char *b)
{
    struct buf body[2] = {0};
    struct courier_result r = {0};
    buf_puts(&body[0], a);
    buf_puts(&body[1], b);
    t->deliver(t->arg, &(struct courier_load){body, 2}, &r);
    buf_done(&body[0]);
    buf_done(&body[1]);
    return r;
}

static void over_udp(void **state)
{
    unsigned port = 0;
    char got[100];
    int fd = bound(SOCK_DGRAM, &port);
    struct courier_target t = open_target("udp://127.0.0.1:%u", port);
    assert_int_equal(deliver(&t, "one", "two").delivered, 2);
    assert_int_equal(recv(fd, got, sizeof(got), 0), 3);
    assert_int_equal(recv(fd, got, sizeof(got), 0), 3);
    assert_memory_equal(got, "two", 3);
    close(fd);
    struct courier_result r = deliver(&t, "three", "four"); // nobody listens
    assert_int_equal(r.delivered, 0);
    assert_non_null(strstr(r.text, "refused"));
    fd = bound(SOCK_DGRAM, &port);
    assert_int_equal(deliver(&t, "five", "six").delivered, 2);
    assert_int_equal(recv(fd, got, sizeof(got), 0), 4);
    assert_memory_equal(got, "five", 4);
    t.free(t.arg);
    close(fd);
}

static void over_tcp(void **state)
{
    unsigned port = 0;
    char got[100] = "";
    int fd = bound(SOCK_STREAM, &port);
    struct courier_target t = open_target("tcp://127.0.0.1:%u", port);
    assert_int_equal(deliver(&t, "one", "two").delivered, 0);
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(deliver(&t, "one", "two and more").delivered, 2);
    int c = accept(fd, NULL, NULL);
    assert_int_equal(recv(c, got, sizeof(got), 0), 20);
    assert_string_equal(got, "3 one12 two and more"); // octet counting
    close(c);
    assert_int_equal(deliver(&t, "a", "b").delivered, 2); // it was closed: over a new connection
    c = accept(fd, NULL, NULL);
    memset(got, 0, sizeof(got));
    assert_int_equal(recv(c, got, sizeof(got), 0), 6);
    assert_string_equal(got, "1 a1 b");
    t.abort(t.arg);
    close(fd);
    close(c);
    t.free(t.arg);
}

static void *read_slowly(void *arg)
{
    int listens = *(int *)arg, c = accept(listens, NULL, NULL);
    char few[512];
    while (recv(c, few, sizeof(few), 0) > 0)
        usleep(200);
    close(c);
    return NULL;
}

// Whoever takes a few bytes each time would hold its target for ever.
static void who_reads_slowly_has_failed(void **state)
{
    unsigned port = 0;
    int fd = bound(SOCK_STREAM, &port), few = 4096;
    char text[60];
    struct courier_target t;
    struct courier_result r = {0};
    struct buf body = {0};
    struct err e = {0};
    pthread_t thread;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few));
    assert_int_equal(listen(fd, 5), 0);
    assert_int_equal(pthread_create(&thread, NULL, read_slowly, &fd), 0);
    snprintf(text, sizeof(text), "tcp://127.0.0.1:%u", port);
    assert_int_equal(syslog_target(text, 50000000, &t, &e), 0);
    for (unsigned i = 0; i < 1u << 20; i++)
        buf_puts(&body, "and so on, ");
    t.deliver(t.arg, &(struct courier_load){&body, 1}, &r);
    assert_int_equal(r.delivered, 0);
    assert_non_null(strstr(r.text, "timed out"));
    t.free(t.arg);
    pthread_join(thread, NULL);
    close(fd);
    buf_done(&body);
}

static void over_unix(void **state)
{
    const char *tmp = getenv("TMPDIR");
    char dir[60], path[100], got[100];
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(dir, sizeof(dir), "%.30s/weft-syslog-XXXXXX", tmp != NULL && tmp[0] ? tmp : "/tmp");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/log", dir);
    struct courier_target t = open_target("unix:%s", path);
    assert_int_equal(deliver(&t, "one", "two").delivered, 0);
    strcpy(sa.sun_path, path);
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(deliver(&t, "one", "two").delivered, 2);
    assert_int_equal(recv(fd, got, sizeof(got), 0), 3);
    assert_memory_equal(got, "one", 3);
    close(fd);
    unlink(path);
    fd = socket(AF_UNIX, SOCK_DGRAM, 0); // started anew: another socket of the same name
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(deliver(&t, "three", "four").delivered, 2);
    assert_int_equal(recv(fd, got, sizeof(got), 0), 5);
    close(fd);
    unlink(path);
    rmdir(dir);
    t.free(t.arg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message), cmocka_unit_test(long_ones_are_cut),
        cmocka_unit_test(targets),   cmocka_unit_test(no_descriptors),
        cmocka_unit_test(over_udp),  cmocka_unit_test(over_tcp),
        cmocka_unit_test(over_unix), cmocka_unit_test(who_reads_slowly_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
