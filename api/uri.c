// SPDX-License-Identifier: Apache-2.0
#include "api/uri.h"

#include <errno.h>
#include <string.h>
#include <strings.h>
#include <arpa/inet.h>

#include "lib/err.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// Copies s[0..n) decoded to *to, NUL-terminated; *to moves behind it.
static const char *decode(char **to, const char *s, size_t n, bool query, struct err *e)
{
    char *start = *to, *p = start;
    for (size_t i = 0; i < n; i++) {
        int c = (unsigned char)s[i];
        if (c == '%') {
            int hi = i + 2 < n ? hex(s[i + 1]) : -1, lo = hi >= 0 ? hex(s[i + 2]) : -1;
            if (hi < 0 || lo < 0) {
                err_set(e, -EINVAL, "path", "a percent sign is not followed by two hexadecimal digits");
                return NULL;
            }
            c = hi * 16 + lo;
            i += 2;
        } else if (c == '+' && query) {
            c = ' ';
        }
        if (c < 0x20 || c == 0x7f) {
            err_set(e, -EINVAL, "path", "a control character in the path or query");
            return NULL;
        }
        *p++ = (char)c;
    }
    *p++ = 0;
    *to = p;
    return start;
}

static int parse_path(struct uri *u, const char *s, const char *end, char **to, struct err *e)
{
    while (s < end) {
        while (s < end && *s == '/')
            s++;
        const char *stop = memchr(s, '/', (size_t)(end - s));
        if (stop == NULL)
            stop = end;
        if (stop == s)
            break;
        if (u->num_segments == URI_SEGMENTS)
            return err_set(e, -E2BIG, "path", "more than %d parts", URI_SEGMENTS);
        const char *seg = decode(to, s, (size_t)(stop - s), false, e);
        if (seg == NULL)
            return -EINVAL;
        u->segment[u->num_segments++] = seg;
        s = stop;
    }
    return 0;
}

static int parse_query(struct uri *u, const char *s, const char *end, char **to, struct err *e)
{
    while (s < end) {
        const char *stop = memchr(s, '&', (size_t)(end - s));
        if (stop == NULL)
            stop = end;
        const char *eq = memchr(s, '=', (size_t)(stop - s));
        if (stop > s) {
            if (u->num_params == URI_PARAMS)
                return err_set(e, -E2BIG, "query", "more than %d parameters", URI_PARAMS);
            struct uri_param *p = &u->param[u->num_params];
            p->name = decode(to, s, (size_t)((eq ? eq : stop) - s), true, e);
            p->value = p->name == NULL ? NULL
                       : eq == NULL    ? ""
                                       : decode(to, eq + 1, (size_t)(stop - eq - 1), true, e);
            if (p->value == NULL)
                return -EINVAL;
            u->num_params++;
        }
        s = stop + 1;
    }
    return 0;
}

int uri_parse(struct uri *u, const char *raw, struct err *e)
{
    size_t len = strnlen(raw, URI_MAX + 1);
    char *to = u->text;

    u->num_segments = u->num_params = 0;
    if (len > URI_MAX)
        return err_set(e, -ENAMETOOLONG, "path", "path and query are longer than %d bytes", URI_MAX);
    if (raw[0] != '/')
        return err_set(e, -EINVAL, "path", "the path must begin with a slash");
    const char *end = raw + len, *query = memchr(raw, '?', len), *path_end = query ? query : end;
    int rc = parse_path(u, raw, path_end, &to, e);
    if (rc == 0 && query != NULL)
        rc = parse_query(u, query + 1, end, &to, e);
    return rc;
}

const char *uri_param(const struct uri *u, const char *name)
{
    for (unsigned i = 0; i < u->num_params; i++)
        if (strcmp(u->param[i].name, name) == 0)
            return u->param[i].value;
    return NULL;
}

bool uri_host_ok(const char *host, const char *bound, const char *local)
{
    char h[80];
    struct in_addr v4;
    const char *port = strrchr(host, ':');
    size_t n = strlen(host);

    if (host[0] == '[') { // IPv6 literal
        const char *close = strchr(host, ']');
        if (close == NULL || (close[1] != 0 && close[1] != ':'))
            return false;
        host++;
        n = (size_t)(close - host);
    } else if (port != NULL) {
        n = (size_t)(port - host);
    }
    if (n == 0 || n >= sizeof(h))
        return false;
    memcpy(h, host, n);
    h[n] = 0;
    if (strcasecmp(h, "localhost") == 0 || strcmp(h, "::1") == 0)
        return true;
    if (inet_pton(AF_INET, h, &v4) == 1 && (ntohl(v4.s_addr) >> 24) == 127)
        return true;
    return (bound != NULL && strcmp(h, bound) == 0) || (local != NULL && strcmp(h, local) == 0);
}
