// SPDX-License-Identifier: Apache-2.0
// Answers of servers that never come to an end: what is read of them is bounded.
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/err.h"
#include "lib/mono.h"
#include "telemetry/http_post.h"

#define BLOCK (64u << 10)
#define FEW (32u << 20) // what sockets hold, generously

struct server {
    int fd;
    const char *begin, *line; // of the answer; and then again and again
    size_t sent;
    pthread_t thread;
};

static void *serve(void *arg)
{
    struct server *s = arg;
    char in[4096], *out = malloc(BLOCK);
    size_t n = strlen(s->line), k = 0;
    for (size_t i = 0; i < BLOCK; i++)
        out[i] = s->line[k++ % n];
    int c = accept(s->fd, NULL, NULL);
    ssize_t got = recv(c, in, sizeof(in), 0);
    ssize_t rc = got > 0 ? send(c, s->begin, strlen(s->begin), MSG_NOSIGNAL) : -1;
    while (rc > 0 && s->sent < 100 * (size_t)FEW && (rc = send(c, out, BLOCK / n * n, MSG_NOSIGNAL)) > 0)
        s->sent += (size_t)rc;
    close(c);
    free(out);
    return NULL;
}

static struct http_answer ask(struct server *s)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(sa);
    char url[60];
    struct http_answer a;
    struct err e = {0};
    s->fd = socket(AF_INET, SOCK_STREAM, 0);
    setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = 60}, sizeof(struct timeval));
    assert_int_equal(bind(s->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(listen(s->fd, 1), 0);
    assert_int_equal(getsockname(s->fd, (struct sockaddr *)&sa, &len), 0);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u/", ntohs(sa.sin_port));
    struct http_post *p = http_post_new(&(struct http_post_opts){.url = url, .timeout_ns = 20 * MONO_S}, &e);
    assert_non_null(p);
    http_post(p, "x", 1, &a);
    http_post_free(p);
    pthread_join(s->thread, NULL);
    close(s->fd);
    assert_true(s->sent < FEW);
    return a;
}

static void bodies(void **state)
{
    struct server good = {.begin = "HTTP/1.1 200 OK\r\n\r\n", .line = "and so on "};
    struct http_answer a = ask(&good);
    assert_int_equal(a.outcome, HTTP_TAKEN);
    assert_string_equal(a.text, "");
    struct server bad = {.begin = "HTTP/1.1 400 No\r\n\r\nlabels\n", .line = "and so on "};
    a = ask(&bad);
    assert_int_equal(a.outcome, HTTP_REFUSED);
    assert_string_equal(a.text, "HTTP status 400: labels");
}

static void headers(void **state)
{
    struct server s = {.begin = "HTTP/1.1 200 OK\r\n", .line = "X-And: so on\r\n"};
    struct http_answer a = ask(&s);
    assert_int_equal(a.outcome, HTTP_LATER);
    assert_true(a.unsure);
    struct server again = {.begin = "HTTP/1.1 100 Continue\r\n\r\n", .line = "HTTP/1.1 100 Continue\r\n\r\n"};
    assert_int_equal(ask(&again).outcome, HTTP_LATER);
}

// What a server says is shown to people, in logs and on terminals.
static void printable(void **state)
{
    char head[400], expected[400];
    struct server bad = {
        .begin = "HTTP/1.1 400 No\r\n\r\n\x1b[31m\x07 \x7f\xc2\x9b\xff\xe2\x82 \xc0\x80\xed\xa0\x80 "
                 "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5\n",
        .line = "x"};
    struct http_answer a = ask(&bad);
    assert_string_equal(a.text,
                        "HTTP status 400: ?[31m? ???  gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x94\xa5");
    // Cut between characters, wherever the end falls.
    for (unsigned i = 0; i < 3; i++) {
        snprintf(expected, sizeof(expected), "HTTP status 400: %.*s", (int)i, "abc");
        while (strlen(expected) + 3 < sizeof(a.text))
            strcat(expected, "\xe2\x82\xac");
        snprintf(head, sizeof(head), "HTTP/1.1 400 No\r\n\r\n%.*s\xe2\x82\xac", (int)i, "abc");
        struct server longer = {.begin = head, .line = "\xe2\x82\xac"};
        a = ask(&longer);
        assert_string_equal(a.text, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies),
        cmocka_unit_test(headers),
        cmocka_unit_test(printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
