// SPDX-License-Identifier: Apache-2.0
#include "telemetry/write_request.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <snappy-c.h>

#define NAME_LABEL "__name__"
#define SAMPLE_MAX (2 + 9 + 1 + 10) // tag and length, value, tag of the time, time

enum { // tag = field << 3 | wire type
    TAG_TIMESERIES = 1 << 3 | 2,
    TAG_LABEL = 1 << 3 | 2,
    TAG_SAMPLE = 2 << 3 | 2,
    TAG_NAME = 1 << 3 | 2,
    TAG_VALUE = 2 << 3 | 2,
    TAG_SAMPLE_VALUE = 1 << 3 | 1,
    TAG_SAMPLE_TIME = 2 << 3 | 0,
};

static unsigned varint_bytes(uint64_t v)
{
    unsigned n = 1;
    while (v >= 0x80) {
        v >>= 7;
        n++;
    }
    return n;
}

static char *put_varint(char *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (char)(v | 0x80);
        v >>= 7;
    }
    *p++ = (char)v;
    return p;
}

static void add_string(struct buf *b, char tag, const char *s, size_t n)
{
    char head[11], *p = head;
    *p++ = tag;
    p = put_varint(p, n);
    buf_add(b, head, (size_t)(p - head));
    buf_add(b, s, n);
}

static void add_label(struct buf *b, const char *name, const char *value)
{
    size_t n = strlen(name), v = strlen(value);
    char head[11], *p = head;
    *p++ = TAG_LABEL;
    p = put_varint(p, 1 + varint_bytes(n) + n + 1 + varint_bytes(v) + v);
    buf_add(b, head, (size_t)(p - head));
    add_string(b, TAG_NAME, name, n);
    add_string(b, TAG_VALUE, value, v);
}

static int by_name(const void *a, const void *b)
{
    const struct rw_label *x = a, *y = b;
    return strcmp(x->name, y->name);
}

void rw_labels_set(struct rw_labels *ret, const struct rw_label *l, unsigned n)
{
    struct rw_label sorted[RW_LABELS_MAX];

    assert(n <= RW_LABELS_MAX);
    memcpy(sorted, l, n * sizeof(*l));
    qsort(sorted, n, sizeof(*sorted), by_name);
    buf_clear(&ret->before);
    buf_clear(&ret->after);
    for (unsigned i = 0; i < n; i++)
        if (sorted[i].value[0] != 0)
            add_label(strcmp(sorted[i].name, NAME_LABEL) < 0 ? &ret->before : &ret->after, sorted[i].name,
                      sorted[i].value);
}

void rw_labels_done(struct rw_labels *l)
{
    buf_done(&l->before);
    buf_done(&l->after);
}

void rw_name_set(struct buf *ret, const char *metric)
{
    buf_clear(ret);
    add_label(ret, NAME_LABEL, metric);
}

static char *put(char *p, struct rw_text t)
{
    return t.n > 0 ? (char *)memcpy(p, t.p, t.n) + t.n : p;
}

// A value of 0 is what stands where there is none.
static unsigned sample_bytes(const struct rw_sample *s)
{
    return (s->value != 0 ? 9 : 0) + 1 + varint_bytes((uint64_t)s->at_ms);
}

static char *put_sample(char *p, const struct rw_sample *s)
{
    *p++ = TAG_SAMPLE;
    *p++ = (char)sample_bytes(s);
    if (s->value != 0) {
        uint64_t bits;
        memcpy(&bits, &s->value, sizeof(bits));
        *p++ = TAG_SAMPLE_VALUE;
        for (unsigned i = 0; i < 8; i++)
            *p++ = (char)(bits >> 8 * i);
    }
    *p++ = TAG_SAMPLE_TIME;
    return put_varint(p, (uint64_t)s->at_ms);
}

static size_t labels_bytes(const struct rw_text label[3])
{
    return label[0].n + label[1].n + label[2].n;
}

size_t rw_series_bytes(const struct rw_text label[3], unsigned n)
{
    return 11 + labels_bytes(label) + (size_t)n * SAMPLE_MAX;
}

void rw_series(struct buf *b, const struct rw_text label[3], const struct rw_sample *s, unsigned n)
{
    size_t len = labels_bytes(label);

    for (unsigned i = 0; i < n; i++)
        len += 2 + sample_bytes(&s[i]);
    buf_reserve(b, len + 11);
    char *p = b->data + b->len;
    *p++ = TAG_TIMESERIES;
    p = put_varint(p, len);
    for (unsigned i = 0; i < 3; i++)
        p = put(p, label[i]);
    for (unsigned i = 0; i < n; i++)
        p = put_sample(p, &s[i]);
    *p = 0;
    b->len = (size_t)(p - b->data);
}

int rw_compress(const struct buf *request, struct buf *ret)
{
    size_t n = snappy_max_compressed_length(request->len);

    buf_clear(ret);
    buf_reserve(ret, n);
    if (snappy_compress(request->data != NULL ? request->data : "", request->len, ret->data, &n) != SNAPPY_OK)
        return -ENOMEM;
    ret->len = n;
    ret->data[n] = 0;
    return 0;
}

bool rw_label_name_ok(const char *s)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    if (s[0] == 0 || strchr(first, s[0]) == NULL || strncmp(s, "__", 2) == 0)
        return false;
    size_t letters = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    return s[letters] == 0;
}
