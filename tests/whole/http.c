// SPDX-License-Identifier: Apache-2.0
#include "tests/whole/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static void on_data(void *arg, int fd, int events)
{
    struct http *h = arg;
    char t[65536];
    ssize_t n = recv(fd, t, sizeof(t), MSG_DONTWAIT);
    (void)events;
    if (n > 0)
        buf_add(&h->in, t, (size_t)n);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        h->closed = true;
        loop_fd_events(h->poll, 0);
    }
    if (h->want != NULL && h->in.data != NULL && strstr(h->in.data, h->want) != NULL)
        h->found = true;
    if (h->closed)
        h->found = true;
}

void http_open(struct http *h, struct loop *l, const char *where)
{
    const char *colon = strrchr(where, ':');
    *h = (struct http){.loop = l};
    if (where[0] == '/') {
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", where);
        h->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(h->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    } else {
        struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(colon + 1))};
        sa.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        h->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(h->fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    }
    h->poll = loop_fd_new(l, h->fd, LOOP_READ, "test", on_data, h);
    assert_non_null(h->poll);
}

void http_send(struct http *h, const void *p, size_t n)
{
    const char *s = p;
    while (n > 0) {
        ssize_t k = send(h->fd, s, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k < 0 && errno == EAGAIN) {
            bool never = false;
            loop_run_until(h->loop, &never, MONO_MS);
            continue;
        }
        if (k < 0) // the server has closed: what it said is there to read
            return;
        s += k;
        n -= (size_t)k;
    }
}

bool http_wait_text(struct http *h, const char *text, int seconds)
{
    h->want = text;
    h->found = h->in.data != NULL && strstr(h->in.data, text) != NULL;
    if (!h->found)
        loop_run_until(h->loop, &h->found, seconds * MONO_S);
    return h->in.data != NULL && strstr(h->in.data, text) != NULL;
}

void http_wait_closed(struct http *h)
{
    if (!h->closed && !loop_run_until(h->loop, &h->closed, 3600 * MONO_S))
        fail_msg("the server does not close the connection: %s", h->in.data ? h->in.data : "(nothing came)");
}

void http_close(struct http *h)
{
    loop_fd_free(h->poll);
    close(h->fd);
    buf_done(&h->in);
    json_decref(h->json);
    *h = (struct http){0};
}

static void parse(struct http *h)
{
    char *gap = h->in.data != NULL ? strstr(h->in.data, "\r\n\r\n") : NULL;
    if (gap == NULL || sscanf(h->in.data, "HTTP/1.%*d %d", &h->status) != 1)
        fail_msg("no HTTP answer: %s", h->in.data ? h->in.data : "(nothing came)");
    h->body = gap + 4;
    h->json = json_loads(h->body, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
}

void http_do(struct http *h, struct loop *l, const char *where, const char *method, const char *path,
             const char *headers, const char *body)
{
    struct buf b = {0};
    http_open(h, l, where);
    buf_printf(&b, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s", method, path,
               headers ? headers : "");
    if (body != NULL)
        buf_printf(&b, "Content-Type: application/json\r\nContent-Length: %zu\r\n", strlen(body));
    buf_printf(&b, "\r\n%s", body ? body : "");
    http_send(h, b.data, b.len);
    buf_done(&b);
    http_wait_closed(h);
    parse(h);
}

const char *http_head(const struct http *h, const char *name, char *buf, size_t size)
{
    size_t n = strlen(name);
    for (const char *s = strstr(h->in.data, "\r\n"); s != NULL && s + 2 < h->body;
         s = strstr(s + 2, "\r\n")) {
        if (strncasecmp(s + 2, name, n) != 0 || s[2 + n] != ':')
            continue;
        const char *v = s + 2 + n + 1 + strspn(s + 2 + n + 1, " ");
        snprintf(buf, size, "%.*s", (int)strcspn(v, "\r"), v);
        return buf;
    }
    return NULL;
}

// --- the document ---

static bool has_type(const json_t *v, const char *t)
{
    return strcmp(t, "object") == 0    ? json_is_object(v)
           : strcmp(t, "array") == 0   ? json_is_array(v)
           : strcmp(t, "string") == 0  ? json_is_string(v)
           : strcmp(t, "integer") == 0 ? json_is_integer(v)
           : strcmp(t, "number") == 0  ? json_is_number(v)
           : strcmp(t, "boolean") == 0 ? json_is_boolean(v)
           : strcmp(t, "null") == 0    ? json_is_null(v)
                                       : false;
}

static bool type_fits(const json_t *type, const json_t *v)
{
    if (json_is_string(type))
        return has_type(v, json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++)
        if (has_type(v, json_string_value(json_array_get(type, i))))
            return true;
    return false;
}

static bool fits(const json_t *doc, const json_t *schema, const json_t *v, const char *place, char *why);

static bool no(char *why, const char *place, const char *what)
{
    if (why[0] == 0)
        snprintf(why, 400, "%.300s: %.80s", place, what);
    return false;
}

// "#/components/<kind>/<name>"
static const json_t *deref(const json_t *doc, const char *ref)
{
    char kind[40], name[80];
    if (ref == NULL || sscanf(ref, "#/components/%39[^/]/%79s", kind, name) != 2)
        return NULL;
    return json_object_get(json_object_get(json_object_get(doc, "components"), kind), name);
}

static bool object_fits(const json_t *doc, const json_t *schema, const json_t *v, const char *place,
                        char *why)
{
    const json_t *props = json_object_get(schema, "properties"), *need = json_object_get(schema, "required");
    bool closed = json_is_false(json_object_get(schema, "additionalProperties"));
    char at[500];
    const char *key;
    json_t *sub;

    for (size_t i = 0; i < json_array_size(need); i++) {
        const char *name = json_string_value(json_array_get(need, i));
        if (json_object_get(v, name) == NULL)
            return no(why, place, name);
    }
    json_object_foreach((json_t *)v, key, sub)
    {
        const json_t *p = json_object_get(props, key);
        snprintf(at, sizeof(at), "%.380s.%.80s", place, key);
        if (p == NULL && closed)
            return no(why, at, "is not in the document");
        if (p != NULL && !fits(doc, p, sub, at, why))
            return false;
    }
    return true;
}

static bool one_of(const json_t *doc, const json_t *list, const json_t *v, const char *place, char *why)
{
    size_t i;
    json_t *s;
    char first[400] = "";
    json_array_foreach(list, i, s)
    {
        char mine[400] = "";
        if (fits(doc, s, v, place, mine))
            return true;
        if (i == 0)
            memcpy(first, mine, sizeof(first));
    }
    return no(why, place, first);
}

static bool in_enum(const json_t *list, const json_t *v)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), v))
            return true;
    return false;
}

static bool is_guid(const char *s)
{
    return strncmp(s, "0x", 2) == 0 && strlen(s) == 18 && strspn(s + 2, "0123456789abcdef") == 16;
}

static bool fits(const json_t *doc, const json_t *schema, const json_t *v, const char *place, char *why)
{
    const json_t *x;
    json_t *s;
    size_t i;
    char at[500];

    if ((x = json_object_get(schema, "$ref")) != NULL) {
        x = deref(doc, json_string_value(x));
        return x != NULL ? fits(doc, x, v, place, why) : no(why, place, "reference to nothing");
    }
    x = json_object_get(schema, "allOf");
    for (i = 0; i < json_array_size(x); i++)
        if (!fits(doc, json_array_get(x, i), v, place, why))
            return false;
    if ((x = json_object_get(schema, "oneOf")) != NULL && !one_of(doc, x, v, place, why))
        return false;
    if ((x = json_object_get(schema, "type")) != NULL && !type_fits(x, v))
        return no(why, place, "wrong type");
    if ((x = json_object_get(schema, "enum")) != NULL && !in_enum(x, v))
        return no(why, place, json_is_string(v) ? json_string_value(v) : "not in the enumeration");
    if (json_object_get(schema, "pattern") != NULL && json_is_string(v) && !is_guid(json_string_value(v)))
        return no(why, place, "no GUID");
    if (json_is_object(v))
        return object_fits(doc, schema, v, place, why);
    if ((x = json_object_get(schema, "items")) != NULL && json_is_array(v))
        json_array_foreach((json_t *)v, i, s)
        {
            snprintf(at, sizeof(at), "%.400s[%zu]", place, i);
            if (!fits(doc, x, s, at, why))
                return false;
        }
    return true;
}

void openapi_check(const json_t *doc, const json_t *schema, const json_t *v, const char *place)
{
    char why[400] = "";
    if (v == NULL)
        fail_msg("%s: no JSON", place);
    if (!fits(doc, schema, v, place, why))
        fail_msg("%s", why);
}
