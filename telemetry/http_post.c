// SPDX-License-Identifier: Apache-2.0
#include "telemetry/http_post.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <curl/curl.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/mono.h"
#include "lib/text.h"
#include "lib/xalloc.h"

#define TOKEN_MAX 8192
#define ANSWER_MAX 4096         // bytes of an answer that are looked at
#define ANSWER_END (64u << 10)  // bytes of an answer, after which its connection is given up
#define HEADERS_END (64u << 10) // likewise of its headers, which then are no answer
#define CONNECT_MS 5000L

struct http_post {
    CURL *curl;
    CURLM *multi;
    struct curl_slist *headers; // without the token
    char *url, *token_file;
    struct buf body; // of the answer
    size_t got, got_headers;
    char error[CURL_ERROR_SIZE];
    _Atomic bool aborted;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_begin(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
}

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct http_post *h = arg;
    size_t room = h->body.len < ANSWER_MAX ? ANSWER_MAX - h->body.len : 0;
    buf_add(&h->body, p, size * n < room ? size * n : room);
    h->got += size * n;
    return h->got < ANSWER_END ? size * n : CURL_WRITEFUNC_ERROR;
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct http_post *h = arg;
    h->got_headers += size * n;
    return h->got_headers < HEADERS_END ? size * n : CURL_WRITEFUNC_ERROR;
}

int http_url_check(const char *url, struct err *e)
{
    CURLU *u = curl_url();
    char *scheme = NULL, *host = NULL;
    bool ok = curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK && host[0] != 0 &&
              (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(u);
    return ok ? 0 : err_set(e, -EINVAL, url, "is no URL of HTTP; write such as http://host:9090/path");
}

static void set_options(struct http_post *h, const struct http_post_opts *o)
{
    CURL *c = h->curl;
    curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c, CURLOPT_QUICK_EXIT, 1L); // who ends does not wait for the resolver
    curl_easy_setopt(c, CURLOPT_URL, h->url);
    curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(c, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(c, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
    curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)((o->timeout_ns ? o->timeout_ns : 30 * MONO_S) / MONO_MS));
    curl_easy_setopt(c, CURLOPT_USERAGENT, "weft/" WEFT_VERSION);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(c, CURLOPT_WRITEDATA, h);
    curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(c, CURLOPT_HEADERDATA, h);
    curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->error);
    curl_easy_setopt(c, CURLOPT_POST, 1L);
    if (o->ca_file != NULL && o->ca_file[0] != 0)
        curl_easy_setopt(c, CURLOPT_CAINFO, o->ca_file);
}

struct http_post *http_post_new(const struct http_post_opts *o, struct err *e)
{
    pthread_once(&curl_once, curl_begin);
    if (http_url_check(o->url, e) != 0)
        return NULL;
    struct http_post *h = xcalloc(1, sizeof(*h));
    h->url = xstrdup(o->url);
    h->token_file = xstrdup(o->bearer_token_file != NULL ? o->bearer_token_file : "");
    h->curl = curl_easy_init();
    h->multi = curl_multi_init();
    if (h->curl == NULL || h->multi == NULL) {
        http_post_free(h);
        err_set(e, -ENOMEM, o->url, "libcurl has no memory");
        return NULL;
    }
    // Without it libcurl waits a second for "100 Continue" from servers that never say it.
    h->headers = curl_slist_append(NULL, "Expect:");
    for (const char *const *k = o->header; k != NULL && *k != NULL; k++)
        h->headers = curl_slist_append(h->headers, *k);
    set_options(h, o);
    return h;
}

void http_post_free(struct http_post *h)
{
    if (h == NULL)
        return;
    curl_easy_cleanup(h->curl);
    curl_multi_cleanup(h->multi);
    curl_slist_free_all(h->headers);
    buf_done(&h->body);
    free(h->url);
    free(h->token_file);
    free(h);
}

void http_post_abort(struct http_post *h)
{
    atomic_store(&h->aborted, true);
    curl_multi_wakeup(h->multi);
}

// All headers of a request; NULL and a text when the token cannot be read.
static struct curl_slist *headers_now(struct http_post *h, struct http_answer *ret)
{
    struct curl_slist *l = NULL;
    struct buf token = {0};

    if (h->token_file[0] != 0) {
        int rc = buf_read_file(&token, h->token_file, TOKEN_MAX);
        size_t n = rc == 0 ? strcspn(token.data != NULL ? token.data : "", "\r\n") : 0;
        if (n == 0) {
            snprintf(ret->text, sizeof(ret->text), "%.120s: no token can be read (%s)", h->token_file,
                     rc != 0 ? strerror(-rc) : "the file is empty");
            buf_done(&token);
            return NULL;
        }
        char *line = xasprintf("Authorization: Bearer %.*s", (int)n, token.data);
        l = curl_slist_append(l, line);
        free(line);
        buf_done(&token);
    }
    for (const struct curl_slist *k = h->headers; k != NULL; k = k->next)
        l = curl_slist_append(l, k->data);
    return l;
}

static CURLcode run(struct http_post *h)
{
    int running = 1, left;
    curl_multi_add_handle(h->multi, h->curl);
    while (running > 0 && !atomic_load(&h->aborted))
        if (curl_multi_perform(h->multi, &running) != CURLM_OK ||
            (running > 0 && curl_multi_poll(h->multi, NULL, 0, 1000, NULL) != CURLM_OK))
            break;
    CURLMsg *m = curl_multi_info_read(h->multi, &left);
    CURLcode rc = m != NULL && m->msg == CURLMSG_DONE ? m->data.result : CURLE_ABORTED_BY_CALLBACK;
    curl_multi_remove_handle(h->multi, h->curl);
    return rc;
}

// n bytes of what a server says: whole characters, '?' for those that terminals obey.
static void add_foreign(char *ret, size_t size, const char *s, size_t n)
{
    char *p = ret + strlen(ret);
    text_print(p, size - (size_t)(p - ret), "%.*s", (int)(n < size ? n : size), s);
    for (text_clean(p); *p != 0; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            *p = '?';
        else if ((unsigned char)*p == 0xc2 && (unsigned char)p[1] < 0xa0)
            p[0] = p[1] = '?';
}

// The first line of an answer says why.
static void why(const struct http_post *h, struct http_answer *ret)
{
    const char *body = h->body.data != NULL ? h->body.data : "";
    size_t n = strcspn(body, "\r\n");
    snprintf(ret->text, sizeof(ret->text), n > 0 ? "HTTP status %d: " : "HTTP status %d", ret->status);
    add_foreign(ret->text, sizeof(ret->text), body, n);
}

static void judge(const struct http_post *h, CURLcode rc, struct http_answer *ret)
{
    long status = 0, size = 0;
    curl_off_t sent = 0, after = 0;

    curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_getinfo(h->curl, CURLINFO_REQUEST_SIZE, &size);
    curl_easy_getinfo(h->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
    curl_easy_getinfo(h->curl, CURLINFO_RETRY_AFTER, &after);
    // An answer of which we want no more is one: its status came before.
    if (rc != CURLE_OK && h->got < ANSWER_END) {
        ret->outcome = HTTP_LATER;
        ret->unsure = sent > 0 || size > 0;
        const char *text = h->error[0] ? h->error : curl_easy_strerror(rc);
        add_foreign(ret->text, sizeof(ret->text), text, strlen(text)); // it may quote the server
        return;
    }
    ret->status = (int)status;
    ret->retry_after_ns = after > 0 ? (after > 3600 ? 3600 : after) * MONO_S : 0;
    ret->outcome = status >= 200 && status < 300                                     ? HTTP_TAKEN
                   : status >= 400 && status < 500 && status != 408 && status != 429 ? HTTP_REFUSED
                                                                                     : HTTP_LATER;
    if (ret->outcome != HTTP_TAKEN)
        why(h, ret);
}

void http_post(struct http_post *h, const void *body, size_t n, struct http_answer *ret)
{
    *ret = (struct http_answer){.outcome = HTTP_LATER};
    struct curl_slist *headers = headers_now(h, ret);
    if (headers == NULL)
        return;
    buf_clear(&h->body);
    h->got = h->got_headers = 0;
    h->error[0] = 0;
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)n);
    CURLcode rc = run(h);
    if (atomic_load(&h->aborted))
        ret->outcome = HTTP_ABORTED;
    else
        judge(h, rc, ret);
    curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
}

int64_t http_backoff(unsigned n, int64_t first_ns, int64_t most_ns, uint64_t random)
{
    int64_t t = first_ns;
    for (unsigned i = 1; i < n && t < most_ns; i++)
        t *= 2;
    if (t > most_ns)
        t = most_ns;
    return t - (int64_t)(random % (uint64_t)(t / 3 + 1));
}
