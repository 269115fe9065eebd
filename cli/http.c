// SPDX-License-Identifier: Apache-2.0
#include "cli/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#include "lib/err.h"
#include "lib/xalloc.h"

#define BODY_MAX (512u << 20)
#define LINE_MAX_BYTES (1u << 20)
#define CONNECT_SECONDS 5L

volatile sig_atomic_t cli_interrupted;

struct http {
    CURL *curl;
    char *socket;
};

struct http *http_new(const char *socket)
{
    struct http *h = xcalloc(1, sizeof(*h));
    curl_global_init(CURL_GLOBAL_DEFAULT);
    h->curl = curl_easy_init();
    if (h->curl == NULL)
        abort();
    h->socket = xstrdup(socket);
    return h;
}

void http_free(struct http *h)
{
    if (h == NULL)
        return;
    curl_easy_cleanup(h->curl);
    curl_global_cleanup();
    free(h->socket);
    free(h);
}

const char *http_socket(const struct http *h)
{
    return h->socket;
}

void http_reply_done(struct http_reply *r)
{
    json_decref(r->json);
    buf_done(&r->body);
    *r = (struct http_reply){0};
}

static void encode(struct buf *b, const char *s)
{
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("-_.~", c))
            buf_putc(b, *s);
        else
            buf_printf(b, "%%%02X", c);
    }
}

void http_query(struct buf *path, const char *key, const char *value)
{
    buf_putc(path, path->data && strchr(path->data, '?') ? '&' : '?');
    encode(path, key);
    buf_putc(path, '=');
    encode(path, value);
}

void http_segment(struct buf *path, const char *segment)
{
    buf_putc(path, '/');
    encode(path, segment);
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct http_reply *r = arg;
    if (r->body.len + size * n > BODY_MAX)
        return 0;
    buf_add(&r->body, data, size * n);
    return size * n;
}

static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
    struct http_reply *r = arg;
    size_t len = size * n;
    if (len > 9 && strncasecmp(data, "location:", 9) == 0) {
        const char *p = data + 9;
        const char *end = data + len;
        while (p < end && *p == ' ')
            p++;
        while (end > p && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' '))
            end--;
        if ((size_t)(end - p) < sizeof(r->location)) {
            memcpy(r->location, p, (size_t)(end - p));
            r->location[end - p] = 0;
        }
    }
    return len;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)arg;
    (void)a;
    (void)b;
    (void)c;
    (void)d;
    return cli_interrupted;
}

static enum cli_exit not_reached(struct http *h, struct err *e)
{
    long os = 0;
    curl_easy_getinfo(h->curl, CURLINFO_OS_ERRNO, &os);
    if (os == EACCES || os == EPERM) {
        err_set(e, -EACCES, NULL,
                "not allowed to use the socket %s; join its group (see: ls -l %s) or become root", h->socket,
                h->socket);
        return CLI_DENIED;
    }
    const char *why = os == ENOENT         ? "no such file"
                      : os == ECONNREFUSED ? "nobody listens there"
                      : os                 ? strerror((int)os)
                                           : "it cannot be connected";
    err_set(e, os ? -(int)os : -ENOTCONN, NULL,
            "cannot reach weftd at %s: %s; is weftd running? systemctl status weftd, or give --socket",
            h->socket, why);
    return CLI_UNREACHABLE;
}

static enum cli_exit curl_failed(struct http *h, CURLcode c, const char *path, struct err *e)
{
    if (cli_interrupted) {
        err_set(e, -EINTR, NULL, "interrupted");
        return CLI_INTERRUPTED;
    }
    if (c == CURLE_OPERATION_TIMEDOUT) {
        err_set(e, -ETIMEDOUT, path,
                "weftd at %s did not answer in time; it may be busy: try again, or give a "
                "longer --timeout",
                h->socket);
        return CLI_TIMEOUT;
    }
    if (c == CURLE_COULDNT_CONNECT)
        return not_reached(h, e);
    err_set(e, -EIO, path,
            "the answer of weftd at %s broke off (%s); is weftd still running? systemctl status "
            "weftd",
            h->socket, curl_easy_strerror(c));
    return CLI_UNREACHABLE;
}

static enum cli_exit status_exit(long status)
{
    if (status >= 200 && status < 300)
        return CLI_OK;
    if (status == 401 || status == 403)
        return CLI_DENIED;
    if (status == 408 || status == 504)
        return CLI_TIMEOUT;
    return status >= 400 && status < 500 ? CLI_USAGE : CLI_UNREACHABLE;
}

// weftd speaks to those who ask its API; here a command says the same.
static void as_commands(const char *text, struct buf *b)
{
    static const char *const same[][2] = {{"/api/v1/counters lists all", "weft counters list has all"},
                                          {"/api/v1/counters", "weft counters list"},
                                          {"/api/v1/silences lists them", "weft silence lists them"},
                                          {"/api/v1/alarms lists them", "weft alarm lists them"},
                                          {"/api/v1/events?kind=", "weft event --kind "}};
    buf_puts(b, "");
    while (*text != 0) {
        size_t i = 0, n = sizeof(same) / sizeof(same[0]);
        while (i < n && strncmp(text, same[i][0], strlen(same[i][0])) != 0)
            i++;
        if (i < n) {
            buf_puts(b, same[i][1]);
            text += strlen(same[i][0]);
        } else {
            buf_putc(b, *text++);
        }
    }
}

static enum cli_exit refused(const struct http_reply *r, const char *path, struct err *e)
{
    enum cli_exit x = status_exit(r->status);
    const char *title = json_string_value(json_object_get(r->json, "title"));
    const char *detail = json_string_value(json_object_get(r->json, "detail"));
    const char *text = detail && detail[0] ? detail : title;
    struct buf b = {0};

    if (text != NULL) {
        as_commands(text, &b);
        text = b.data;
    }
    if (x == CLI_DENIED)
        err_set(e, -EACCES, NULL, "%s: sudo weft ...", text ? text : "not allowed");
    else if (text != NULL)
        err_set(e, -EREMOTEIO, NULL, "%s", text);
    else
        err_set(e, -EREMOTEIO, path,
                "weftd answered %ld without saying why; are weft and weftd of one version?", r->status);
    buf_done(&b);
    return x;
}

static bool socket_fits(struct http *h, struct err *e)
{
    if (strlen(h->socket) < sizeof(((struct sockaddr_un *)0)->sun_path))
        return true;
    err_set(e, -ENAMETOOLONG, NULL, "the socket's path is longer than %zu bytes; give a shorter --socket",
            sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
    return false;
}

static void prepare(struct http *h, const char *path)
{
    char *url = xasprintf("http://weftd%s", path);
    curl_easy_reset(h->curl);
    curl_easy_setopt(h->curl, CURLOPT_UNIX_SOCKET_PATH, h->socket);
    curl_easy_setopt(h->curl, CURLOPT_URL, url);
    curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(h->curl, CURLOPT_PROXY, "");
    curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(h->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(h->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(h->curl, CURLOPT_USERAGENT, "weft/" WEFT_VERSION);
    free(url);
}

static enum cli_exit parse_reply(struct http_reply *r, const char *path, struct err *e)
{
    json_error_t je;

    if (r->body.len > 0)
        r->json = json_loadb(r->body.data, r->body.len, JSON_DECODE_ANY, &je);
    return status_exit(r->status) == CLI_OK ? CLI_OK : refused(r, path, e);
}

enum cli_exit http_call(struct http *h, const char *method, const char *path, json_t *body, double timeout,
                        struct http_reply *ret, struct err *e)
{
    struct curl_slist *headers = NULL;
    char *text = NULL;

    *ret = (struct http_reply){0};
    if (!socket_fits(h, e))
        return CLI_USAGE;
    prepare(h, path);
    headers = curl_slist_append(headers, "Accept: application/json, application/problem+json");
    curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, method);
    if (body != NULL) {
        text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
        headers = curl_slist_append(headers, "Content-Type: application/json");
        curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, text ? text : "");
    } else if (strcmp(method, "GET") != 0) {
        curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, "");
    }
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, ret);
    curl_easy_setopt(h->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(h->curl, CURLOPT_HEADERDATA, ret);
    curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, (long)(timeout * 1000));
    CURLcode c = curl_easy_perform(h->curl);
    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &ret->status);
    curl_slist_free_all(headers);
    free(text);
    return c != CURLE_OK ? curl_failed(h, c, path, e) : parse_reply(ret, path, e);
}

struct stream {
    struct http *h;
    http_event_fn *fn;
    void *arg;
    struct buf line, data, error;
    char id[32];
    bool over;
};

static void stream_line(struct stream *s, char *line)
{
    if (line[0] == 0) {
        if (s->data.len > 0 && !s->fn(s->arg, s->id, s->data.data))
            s->over = true;
        buf_clear(&s->data);
        return;
    }
    char *colon = strchr(line, ':');
    if (colon == line || colon == NULL)
        return; // a comment: the server's heartbeat
    *colon = 0;
    const char *value = colon + 1 + (colon[1] == ' ');
    if (strcmp(line, "id") == 0) {
        if (strlen(value) < sizeof(s->id))
            strcpy(s->id, value);
    } else if (strcmp(line, "data") == 0) {
        if (s->data.len > 0)
            buf_putc(&s->data, '\n');
        buf_puts(&s->data, value);
    }
}

static size_t on_stream(char *data, size_t size, size_t n, void *arg)
{
    struct stream *s = arg;
    size_t len = size * n;
    long status = 0;

    curl_easy_getinfo(s->h->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status_exit(status) != CLI_OK) {
        if (s->error.len + len < LINE_MAX_BYTES)
            buf_add(&s->error, data, len);
        return len;
    }
    for (size_t i = 0; i < len && !s->over; i++) {
        if (data[i] == '\n') {
            buf_puts(&s->line, "");
            stream_line(s, s->line.data);
            buf_clear(&s->line);
        } else if (data[i] != '\r' && data[i] != 0) {
            buf_putc(&s->line, data[i]);
        }
    }
    if (s->line.len + s->data.len > LINE_MAX_BYTES)
        return 0;
    return s->over ? 0 : len;
}

static enum cli_exit stream_end(struct stream *s, CURLcode c, const char *path, struct err *e)
{
    struct http_reply r = {0};
    json_error_t je;

    if (s->over && !cli_interrupted)
        return CLI_OK;
    curl_easy_getinfo(s->h->curl, CURLINFO_RESPONSE_CODE, &r.status);
    if (r.status != 0 && status_exit(r.status) != CLI_OK) {
        r.json = s->error.len ? json_loadb(s->error.data, s->error.len, 0, &je) : NULL;
        enum cli_exit x = refused(&r, path, e);
        json_decref(r.json);
        return x;
    }
    return c == CURLE_OK ? CLI_OK : curl_failed(s->h, c, path, e);
}

enum cli_exit http_stream(struct http *h, const char *path, unsigned long long last_id, http_event_fn *fn,
                          void *arg, struct err *e)
{
    struct stream s = {.h = h, .fn = fn, .arg = arg};
    struct curl_slist *headers = curl_slist_append(NULL, "Accept: text/event-stream");

    if (!socket_fits(h, e)) {
        curl_slist_free_all(headers);
        return CLI_USAGE;
    }
    prepare(h, path);
    char *last = xasprintf("Last-Event-ID: %llu", last_id);
    headers = curl_slist_append(headers, last);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, on_stream);
    curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, &s);
    CURLcode c = curl_easy_perform(h->curl);
    enum cli_exit x = stream_end(&s, c, path, e);
    curl_slist_free_all(headers);
    free(last);
    buf_done(&s.line);
    buf_done(&s.data);
    buf_done(&s.error);
    return x;
}
