// SPDX-License-Identifier: Apache-2.0
// A resolver that does not answer: whoever ends does not wait for it, and when it answers after all, what
// waited goes on. The program's own getaddrinfo() takes the place of the system's, for libcurl too.
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/err.h"
#include "telemetry/courier.h"
#include "telemetry/http_post.h"
#include "telemetry/syslog.h"

static sem_t asked, may_answer;
static atomic_uint lookups, answered;
static atomic_int listening_port;

// False: nobody has posted it for so long.
static bool sem_within(sem_t *s, int64_t seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += seconds;
    int rc;
    while ((rc = sem_clockwait(s, CLOCK_MONOTONIC, &until)) != 0 && errno == EINTR)
        ;
    return rc == 0;
}

int getaddrinfo(const char *restrict node, const char *restrict service,
                const struct addrinfo *restrict hints, struct addrinfo **restrict ret)
{
    (void)node;
    (void)service;
    (void)hints;
    atomic_fetch_add(&lookups, 1);
    sem_post(&asked);
    bool may = sem_within(&may_answer, 20);
    int port = atomic_load(&listening_port);
    atomic_fetch_add(&answered, 1);
    if (!may || port == 0)
        return EAI_AGAIN;
    struct {
        struct addrinfo a;
        struct sockaddr_in sa;
    } *x = calloc(1, sizeof(*x));
    if (x == NULL)
        return EAI_MEMORY;
    x->sa = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    x->sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    x->a = (struct addrinfo){.ai_family = AF_INET,
                             .ai_socktype = SOCK_DGRAM,
                             .ai_addrlen = sizeof(x->sa),
                             .ai_addr = (struct sockaddr *)&x->sa};
    *ret = &x->a;
    return 0;
}

struct end {
    bool done;
    struct courier_result r;
};

static void on_done(void *arg, const struct courier_result *r)
{
    struct end *e = arg;
    e->r = *r;
    e->done = true;
}

static struct courier *courier_to(struct loop *l, const char *text, struct end *end)
{
    struct courier_target t;
    struct err e = {0};
    assert_int_equal(syslog_target(text, 0, &t, &e), 0);
    struct courier *c = courier_new(l, &t, on_done, end);
    assert_non_null(c);
    struct buf b = {0};
    buf_puts(&b, "<131>1 - - - - - - hello");
    courier_send(c, &b, 1);
    return c;
}

static void let_answer(void)
{
    unsigned before = atomic_load(&answered);
    sem_post(&may_answer);
    for (int64_t until = mono_now().ns + 60 * MONO_S; atomic_load(&answered) == before; sched_yield())
        if (mono_now().ns > until)
            fail_msg("nobody waits for an answer");
}

static void wait_asked(void)
{
    if (!sem_within(&asked, 60))
        fail_msg("nobody asks for a name");
}

static void the_end_does_not_wait(void **state)
{
    static const char *const of[] = {"udp://slow.example:514", "tcp://slow.example"};
    struct loop *l = loop_new(LOOP_REAL);
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct end end = {0};
        unsigned before = atomic_load(&answered);
        struct courier *c = courier_to(l, of[i], &end);
        wait_asked();
        courier_free(c); // returns while the resolver is still at it
        assert_int_equal(atomic_load(&answered), before);
        assert_false(end.done);
        let_answer();
    }
    loop_free(l);
}

static void what_waited_goes_on(void **state)
{
    struct loop *l = loop_new(LOOP_REAL);
    struct sockaddr_in sa = {.sin_family = AF_INET};
    socklen_t len = sizeof(sa);
    struct end end = {0};
    char text[200];
    (void)state;
    sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
    unsigned before = atomic_load(&lookups);
    struct courier *c = courier_to(l, "udp://slow.example:514", &end);
    wait_asked();
    atomic_store(&listening_port, ntohs(sa.sin_port));
    sem_post(&may_answer);
    assert_true(loop_run_until(l, &end.done, 60 * MONO_S));
    assert_int_equal(end.r.delivered, 1);
    ssize_t n = recv(fd, text, sizeof(text), MSG_DONTWAIT);
    assert_true(n > 5 && memcmp(text + n - 5, "hello", 5) == 0);
    assert_int_equal(atomic_load(&lookups), before + 1);
    courier_free(c);
    close(fd);
    loop_free(l);
    atomic_store(&listening_port, 0);
}

static void a_name_that_is_none(void **state)
{
    struct loop *l = loop_new(LOOP_REAL);
    struct end end = {0};
    (void)state;
    sem_post(&may_answer);
    struct courier *c = courier_to(l, "udp://none.example:514", &end);
    assert_true(loop_run_until(l, &end.done, 60 * MONO_S));
    wait_asked();
    assert_int_equal(end.r.delivered, 0);
    assert_non_null(strstr(end.r.text, "none.example"));
    courier_free(c);
    loop_free(l);
}

static void *post(void *arg)
{
    struct http_answer a;
    http_post(arg, "{}", 2, &a);
    return a.outcome == HTTP_ABORTED ? arg : NULL;
}

static void posting_does_not_wait_either(void **state)
{
    struct err e = {0};
    struct http_post *h = http_post_new(&(struct http_post_opts){.url = "http://slow.example/x"}, &e);
    pthread_t thread;
    void *ret;
    (void)state;
    assert_non_null(h);
    unsigned before = atomic_load(&answered);
    assert_int_equal(pthread_create(&thread, NULL, post, h), 0);
    wait_asked();
    http_post_abort(h);
    assert_int_equal(pthread_join(thread, &ret), 0);
    assert_ptr_equal(ret, h);
    http_post_free(h);
    assert_int_equal(atomic_load(&answered), before);
    let_answer();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_end_does_not_wait),
        cmocka_unit_test(what_waited_goes_on),
        cmocka_unit_test(a_name_that_is_none),
        cmocka_unit_test(posting_does_not_wait_either),
    };
    sem_init(&asked, 0, 0);
    sem_init(&may_answer, 0, 0);
    int rc = cmocka_run_group_tests_name("telemetry/lookup", tests, NULL, NULL);
    return rc;
}
