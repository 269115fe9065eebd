// SPDX-License-Identifier: Apache-2.0
//
// Input: the path and query of a request line. It is refused with a clear line, or taken apart into pieces
// that are bounded, hold no control character and, encoded again, come apart into the same pieces.
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/uri.h"
#include "lib/buf.h"
#include "lib/err.h"

static void check_text(const char *s)
{
    for (; *s != 0; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            abort();
}

static void encode(struct buf *b, const char *s)
{
    for (; *s != 0; s++)
        buf_printf(b, "%%%02X", (unsigned char)*s);
}

static void round_trip(const struct uri *u)
{
    struct buf b = {0};
    struct uri *v = malloc(sizeof(*v));
    struct err e = {0};

    buf_putc(&b, '/');
    for (unsigned i = 0; i < u->num_segments; i++) {
        encode(&b, u->segment[i]);
        buf_putc(&b, '/');
    }
    for (unsigned i = 0; i < u->num_params; i++) {
        buf_putc(&b, i == 0 ? '?' : '&');
        encode(&b, u->param[i].name);
        buf_putc(&b, '=');
        encode(&b, u->param[i].value);
    }
    if (b.len <= URI_MAX) {
        if (uri_parse(v, b.data, &e) != 0 || v->num_segments != u->num_segments ||
            v->num_params != u->num_params)
            abort();
        for (unsigned i = 0; i < u->num_segments; i++)
            if (strcmp(u->segment[i], v->segment[i]) != 0)
                abort();
        for (unsigned i = 0; i < u->num_params; i++)
            if (strcmp(u->param[i].name, v->param[i].name) != 0 ||
                strcmp(u->param[i].value, v->param[i].value) != 0)
                abort();
    }
    free(v);
    buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct uri *u = malloc(sizeof(*u));
    char *raw = malloc(size + 1);
    struct err e = {0};

    memcpy(raw, data, size);
    raw[size] = 0;
    uri_host_ok(raw, "10.1.2.3", NULL);
    int rc = uri_parse(u, raw, &e);
    if (rc != 0) {
        if (e.code != rc || e.text[0] == 0)
            abort();
    } else {
        if (u->num_segments > URI_SEGMENTS || u->num_params > URI_PARAMS)
            abort();
        for (unsigned i = 0; i < u->num_segments; i++) {
            if (u->segment[i][0] == 0)
                abort();
            check_text(u->segment[i]);
        }
        for (unsigned i = 0; i < u->num_params; i++) {
            check_text(u->param[i].name);
            check_text(u->param[i].value);
        }
        round_trip(u);
    }
    free(raw);
    free(u);
    return 0;
}
