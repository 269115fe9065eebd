// SPDX-License-Identifier: Apache-2.0
#include "telemetry/write_request.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <snappy-c.h>

#include "lib/xalloc.h"

#define NAME_LABEL "__name__"
#define UNCOMPRESSED_MAX (64u << 20)
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

// --- taken apart again ---

struct in {
    const uint8_t *p, *end;
};

static bool get_varint(struct in *in, uint64_t *ret)
{
    uint64_t v = 0;
    for (unsigned shift = 0; in->p < in->end && shift < 64; shift += 7) {
        v |= (uint64_t)(*in->p & 0x7f) << shift;
        if ((*in->p++ & 0x80) == 0) {
            *ret = v;
            return true;
        }
    }
    return false;
}

// The next field, which has a length; its tag is what went before.
static bool get_part(struct in *in, uint8_t *ret_tag, struct in *ret)
{
    uint64_t n;
    if (in->p >= in->end)
        return false;
    *ret_tag = *in->p++;
    if (!get_varint(in, &n) || n > (size_t)(in->end - in->p))
        return false;
    *ret = (struct in){in->p, in->p + n};
    in->p += n;
    return true;
}

static bool get_sample(struct in in, struct rw_sample *ret)
{
    uint64_t at = 0;
    *ret = (struct rw_sample){0};
    if (in.p < in.end && *in.p == TAG_SAMPLE_VALUE && in.end - in.p > 9) {
        uint64_t bits = 0;
        for (unsigned i = 0; i < 8; i++)
            bits |= (uint64_t)in.p[1 + i] << 8 * i;
        memcpy(&ret->value, &bits, sizeof(bits));
        in.p += 9;
    }
    if (in.p >= in.end || *in.p++ != TAG_SAMPLE_TIME || !get_varint(&in, &at))
        return false;
    ret->at_ms = (int64_t)at;
    return true;
}

static struct in whole(const struct buf *request)
{
    const uint8_t *p = (const uint8_t *)request->data;
    return (struct in){p, p + request->len};
}

static int by_time(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

size_t rw_times(const struct buf *request, int64_t **ret)
{
    struct in in = whole(request), series, field;
    struct rw_sample s;
    size_t n = 0, cap = 0, k = 0;
    int64_t *t = NULL;
    uint8_t tag;

    while (get_part(&in, &tag, &series))
        while (get_part(&series, &tag, &field)) {
            if (tag != TAG_SAMPLE || !get_sample(field, &s) || (n > 0 && t[n - 1] == s.at_ms))
                continue;
            if (n == cap)
                t = xreallocarray(t, cap = cap ? cap * 2 : 1024, sizeof(*t));
            t[n++] = s.at_ms;
        }
    if (n > 0)
        qsort(t, n, sizeof(*t), by_time);
    for (size_t i = 0; i < n; i++)
        if (k == 0 || t[k - 1] != t[i])
            t[k++] = t[i];
    *ret = t;
    return k;
}

// Labels come first, so that they are one piece.
static unsigned series_at(struct in series, int64_t at_ms, struct buf *ret)
{
    struct rw_text label[3] = {{(const char *)series.p, 0}};
    struct rw_sample s;
    struct in field;
    unsigned found = 0;
    uint8_t tag;
    while (get_part(&series, &tag, &field)) {
        if (tag == TAG_LABEL) {
            label[0].n = (size_t)((const char *)field.end - label[0].p);
        } else if (get_sample(field, &s) && s.at_ms == at_ms) {
            rw_series(ret, label, &s, 1);
            found++;
        }
    }
    return found;
}

unsigned rw_at(const struct buf *request, int64_t at_ms, struct buf *ret)
{
    struct in in = whole(request), series;
    unsigned found = 0;
    uint8_t tag;

    buf_clear(ret);
    while (get_part(&in, &tag, &series))
        found += series_at(series, at_ms, ret);
    return found;
}

// --- snappy ---

int rw_uncompress(const struct buf *block, struct buf *ret)
{
    size_t n;
    buf_clear(ret);
    if (snappy_uncompressed_length(block->data, block->len, &n) != SNAPPY_OK || n > UNCOMPRESSED_MAX)
        return -EBADMSG;
    buf_reserve(ret, n);
    if (snappy_uncompress(block->data, block->len, ret->data, &n) != SNAPPY_OK)
        return -EBADMSG;
    ret->len = n;
    ret->data[n] = 0;
    return 0;
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
