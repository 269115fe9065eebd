// SPDX-License-Identifier: Apache-2.0
// libmicrohttpd without threads: its epoll descriptor is polled by the loop, its next time-out is a loop
// timer. The raw request line is kept as it came (uri.c takes it apart), since what libmicrohttpd hands on
// has lost the difference between a slash and an escaped one.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "api/api_priv.h"
#include "lib/log.h"
#include "lib/xalloc.h"

#define CONNECTION_MEMORY (16u << 10) // request line, headers and read buffer
#define CONNECTION_TIMEOUT_S 60
#define DROP_EVERY (1u << 20)  // of what was sent is given back
#define DRIVE_NS (4 * MONO_MS) // requests that come later in a turn wait for the next one
#define DRIVE_LEAST 2          // … but so many are always heard
#define RESUME_MOST 64
#define BODY_DISCARD_MAX (4u << 20) // a client that sends more than this is cut off instead of heard out

// --- requests that wait for a turn: libmicrohttpd would hear all that have come in one ---

static void put_off(struct request *r)
{
    struct listener *l = r->listener;
    struct request **at = &l->put_off;
    if (r->turn == 0)
        r->turn = ++l->turns;
    while (*at != NULL && (*at)->turn < r->turn)
        at = &(*at)->next_put_off;
    r->next_put_off = *at;
    *at = r;
    MHD_suspend_connection(r->conn);
}

static void resume_some(struct listener *l)
{
    for (unsigned i = 0; l->put_off != NULL && (i < RESUME_MOST || l->stopping); i++) {
        struct request *r = l->put_off;
        l->put_off = r->next_put_off;
        MHD_resume_connection(r->conn);
    }
}

// Those that have waited go first.
static bool has_its_turn(const struct request *r)
{
    struct listener *l = r->listener;
    if (l->queued && r->turn == 0)
        return false;
    return l->heard < DRIVE_LEAST || mono_sub(mono_now(), l->until) < 0;
}

static void drive(struct listener *l)
{
    MHD_UNSIGNED_LONG_LONG ms;
    int64_t slice = l->api->c.slice_ns;
    if (l->mhd == NULL)
        return;
    loop_doing(l->api->c.loop, "http");
    l->until = mono_add(mono_now(), slice > 0 ? slice : DRIVE_NS);
    l->heard = 0;
    l->queued = l->put_off != NULL;
    resume_some(l);
    MHD_run(l->mhd);
    if (l->put_off != NULL)
        http_kick(l);
    if (MHD_get_timeout(l->mhd, &ms) == MHD_YES)
        loop_timer_after(&l->timer, (int64_t)ms * MONO_MS);
    else
        loop_timer_cancel(&l->timer);
}

static void on_readable(void *arg, int fd, int events)
{
    (void)fd;
    (void)events;
    drive(arg);
}

static void on_timer(void *arg)
{
    drive(arg);
}

void http_kick(struct listener *l)
{
    loop_post(l->api->c.loop, &l->kick);
}

static void on_log(void *arg, const char *fmt, va_list ap)
{
    char text[300];
    (void)arg;
    vsnprintf(text, sizeof(text), fmt, ap);
    text[strcspn(text, "\n")] = 0;
    log_debug("http", "text=\"%s\"", text);
}

static void *on_request_line(void *arg, const char *uri, struct MHD_Connection *conn)
{
    struct listener *l = arg;
    struct request *r = xcalloc(1, sizeof(*r));
    r->api = l->api;
    r->listener = l;
    r->conn = conn;
    r->raw = strndup(uri, URI_MAX + 1);
    if (r->raw == NULL)
        r->raw = xstrdup("/");
    return r;
}

static void on_completed(void *arg, struct MHD_Connection *conn, void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    struct request *r = *con_cls;
    (void)arg;
    (void)conn;
    (void)why;
    if (r == NULL)
        return;
    if (r->suspended != NULL) // it is there, and is not to be sent any more
        later_drop(r);
    buf_done(&r->body);
    buf_done(&r->out);
    json_decref(r->json);
    free(r->raw);
    free(r);
    *con_cls = NULL;
}

const char *http_header(const struct request *r, const char *name)
{
    return MHD_lookup_connection_value(r->conn, MHD_HEADER_KIND, name);
}

static void add_headers(struct request *r, struct MHD_Response *m)
{
    const struct {
        const char *name, *value;
    } h[] = {{"Content-Type", r->type},  {"ETag", r->etag},
             {"Location", r->location},  {"Allow", r->allow},
             {"X-Next-Cursor", r->next}, {"Retry-After", r->status == 503 ? "1" : ""}};
    for (size_t i = 0; i < sizeof(h) / sizeof(h[0]); i++)
        if (h[i].value != NULL && h[i].value[0] != 0)
            MHD_add_response_header(m, h[i].name, h[i].value);
    MHD_add_response_header(m, "Cache-Control", "no-cache");
    MHD_add_response_header(m, "X-Content-Type-Options", "nosniff");
}

// --- answers ---

struct long_answer {
    char *text;
    size_t n, dropped; // bytes at its beginning that were given back
};

static ssize_t read_long(void *arg, uint64_t at, char *ret, size_t max)
{
    struct long_answer *a = arg;
    if (at >= a->n)
        return MHD_CONTENT_READER_END_OF_STREAM;
    size_t n = a->n - at < max ? a->n - at : max;
    memcpy(ret, a->text + at, n);
    // Whole pages within the text: what is around them is the allocator's. Given back bit by bit, since much
    // at once takes long too.
    size_t page = (size_t)sysconf(_SC_PAGESIZE), end = (at + n) & ~(page - 1);
    if (end >= a->dropped + DROP_EVERY) {
        uintptr_t from = ((uintptr_t)a->text + a->dropped + page - 1) & ~(page - 1);
        uintptr_t to = ((uintptr_t)a->text + end) & ~(page - 1);
        if (to > from)
            madvise((void *)from, to - from, MADV_DONTNEED);
        a->dropped = end;
    }
    return (ssize_t)n;
}

static void free_long(void *arg)
{
    struct long_answer *a = arg;
    free(a->text);
    free(a);
}

struct MHD_Response *http_response(char *text, size_t n)
{
    if (n <= ANSWER_BLOCK)
        return MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
    struct long_answer *a = xcalloc(1, sizeof(*a));
    *a = (struct long_answer){.text = text, .n = n};
    struct MHD_Response *m = MHD_create_response_from_callback(n, ANSWER_BLOCK, read_long, a, free_long);
    if (m == NULL)
        free(a);
    return m;
}

static enum MHD_Result send_answer(struct request *r)
{
    struct MHD_Response *m = r->response;
    r->answered = true;
    r->response = NULL;
    if (m == NULL) {
        size_t n = r->out.len;
        char *text = n > 0 ? buf_take(&r->out) : NULL;
        m = text != NULL ? http_response(text, n)
                         : MHD_create_response_from_buffer(0, (char *)"", MHD_RESPMEM_PERSISTENT);
        if (m == NULL) {
            free(text);
            return MHD_NO;
        }
    }
    add_headers(r, m);
    enum MHD_Result rc = MHD_queue_response(r->conn, r->status, m);
    MHD_destroy_response(m);
    return rc;
}

static enum MHD_Result too_large(struct request *r)
{
    answer_problem(r, 413, "the body is larger than %zu bytes", r->body_max);
    return send_answer(r);
}

// Whole topologies are for those who may do something with them.
static bool may_send_much(struct request *r)
{
    bool ok = auth_request(r) && r->role >= API_OPERATE;
    buf_clear(&r->out); // a refusal comes when the request is looked at
    r->status = 0;
    return ok;
}

// Large bodies come over the unix socket only, as all that is POSTed does.
static enum MHD_Result on_first(struct request *r, const char *method)
{
    const char *length = http_header(r, "Content-Length");
    r->begun = true;
    r->body_max = r->listener->is_unix ? resource_body_max(method, r->raw) : BODY_MAX;
    if (r->body_max > BODY_DISCARD_MAX && !may_send_much(r))
        r->body_max = BODY_MAX;
    if (length != NULL && strtoull(length, NULL, 10) > r->body_max)
        return too_large(r);
    return MHD_YES;
}

static enum MHD_Result on_access(void *arg, struct MHD_Connection *conn, const char *url, const char *method,
                                 const char *version, const char *data, size_t *size, void **con_cls)
{
    struct request *r = *con_cls;
    (void)arg;
    (void)conn;
    (void)url;
    (void)version;
    if (r == NULL)
        return MHD_NO;
    if (!r->begun)
        return on_first(r, method);
    if (*size > 0) {
        r->body_seen += *size;
        if (r->body_seen <= r->body_max)
            buf_add(&r->body, data, *size);
        *size = 0;
        return r->body_seen > BODY_DISCARD_MAX && r->body_seen > r->body_max ? MHD_NO : MHD_YES;
    }
    if (r->answered)
        return MHD_YES;
    if (r->body_seen > r->body_max)
        return too_large(r);
    if (r->suspended != NULL) {
        loop_doing(r->api->c.loop, request_name(r));
        later_answer(r);
        return send_answer(r);
    }
    if (r->listener->stopping) {
        answer_problem(r, 503, "weftd is ending");
        return send_answer(r);
    }
    if (!has_its_turn(r)) {
        put_off(r);
        return MHD_YES;
    }
    r->listener->heard++;
    r->method = method;
    resource_dispatch(r);
    loop_doing(r->api->c.loop, "http");
    return r->suspended != NULL ? MHD_YES : send_answer(r);
}

// Half of the descriptors for each of two listeners, with some left for the rest of the program.
static unsigned connection_limit(void)
{
    struct rlimit lim;
    if (getrlimit(RLIMIT_NOFILE, &lim) != 0 || lim.rlim_cur == RLIM_INFINITY)
        return 2048;
    rlim_t n = lim.rlim_cur > 160 ? (lim.rlim_cur - 128) / 2 : 16;
    return n > 2048 ? 2048 : (unsigned)n;
}

int http_start(struct listener *l, struct api *a, int fd, bool is_unix, struct err *e)
{
    l->api = a;
    l->is_unix = is_unix;
    l->fd = fd;
    loop_timer_init(&l->timer, a->c.loop, "api", on_timer, l);
    loop_task_init(&l->kick, "api", on_timer, l);
    l->mhd = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_access, l,
        MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_URI_LOG_CALLBACK,
        on_request_line, l, MHD_OPTION_NOTIFY_COMPLETED, on_completed, l, MHD_OPTION_CONNECTION_LIMIT,
        connection_limit(), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)CONNECTION_TIMEOUT_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
    if (l->mhd == NULL) {
        close(fd);
        l->fd = -1;
        return err_set(e, -EMFILE, "api", "the HTTP server cannot be started; are there descriptors left?");
    }
    const union MHD_DaemonInfo *i = MHD_get_daemon_info(l->mhd, MHD_DAEMON_INFO_EPOLL_FD);
    l->poll = i == NULL ? NULL : loop_fd_new(a->c.loop, i->epoll_fd, LOOP_READ, "api", on_readable, l);
    if (l->poll == NULL) {
        http_stop(l);
        return err_set(e, -EMFILE, "api", "the HTTP server cannot be polled; are there descriptors left?");
    }
    drive(l);
    return 0;
}

void http_stop(struct listener *l)
{
    if (l->mhd == NULL)
        return;
    if (l->poll != NULL)
        loop_fd_free(l->poll);
    l->stopping = true;
    resume_some(l);
    MHD_run(l->mhd);         // connections that were resumed leave their list
    MHD_stop_daemon(l->mhd); // closes the listening socket
    loop_timer_cancel(&l->timer);
    loop_unpost(l->api->c.loop, &l->kick);
    *l = (struct listener){.fd = -1};
}
