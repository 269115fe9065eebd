// SPDX-License-Identifier: Apache-2.0
// Remote write's requests, taken apart by a snappy decoder and a protocol-buffers parser written here from
// their specifications: neither libsnappy nor the encoder's own code.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/rng.h"
#include "telemetry/write_request.h"

// --- snappy: https://github.com/google/snappy/blob/main/format_description.txt ---

struct in {
    const uint8_t *p, *end;
};

static uint64_t varint(struct in *in)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(in->p < in->end && shift < 64);
        v |= (uint64_t)(*in->p & 0x7f) << shift;
        if ((*in->p++ & 0x80) == 0)
            return v;
    }
}

static uint32_t little(struct in *in, unsigned bytes)
{
    uint32_t v = 0;
    assert_true((size_t)(in->end - in->p) >= bytes);
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint32_t)*in->p++ << 8 * i;
    return v;
}

static void copy_back(uint8_t *out, size_t *n, size_t size, uint32_t offset, uint32_t len)
{
    assert_true(offset > 0 && offset <= *n && len <= size - *n);
    for (uint32_t i = 0; i < len; i++, (*n)++)
        out[*n] = out[*n - offset];
}

static uint8_t *unsnappy(const struct buf *b, size_t *ret_n)
{
    struct in in = {(const uint8_t *)b->data, (const uint8_t *)b->data + b->len};
    size_t size = varint(&in), n = 0;
    uint8_t *out = malloc(size + 1);
    while (in.p < in.end) {
        uint8_t tag = *in.p++;
        uint32_t len = tag >> 2, offset;
        switch (tag & 3) {
        case 0:
            if (len >= 60)
                len = little(&in, len - 59);
            len++;
            assert_true(len <= (size_t)(in.end - in.p) && len <= size - n);
            memcpy(out + n, in.p, len);
            in.p += len;
            n += len;
            break;
        case 1:
            offset = (uint32_t)(tag >> 5) << 8 | little(&in, 1);
            copy_back(out, &n, size, offset, (len & 7) + 4);
            break;
        case 2:
            copy_back(out, &n, size, little(&in, 2), len + 1);
            break;
        case 3:
            copy_back(out, &n, size, little(&in, 4), len + 1);
            break;
        }
    }
    assert_int_equal(n, size);
    *ret_n = n;
    return out;
}

// --- protocol buffers: https://protobuf.dev/programming-guides/encoding/ ---

struct text {
    const char *p;
    size_t n;
};
struct series {
    struct text name[50], value[50];
    unsigned labels;
    double v[600];
    int64_t at[600];
    unsigned samples;
};
struct request {
    struct series *series;
    unsigned n;
    uint8_t *raw;
};

static struct in part(struct in *in)
{
    uint64_t n = varint(in);
    assert_true(n <= (size_t)(in->end - in->p));
    struct in r = {in->p, in->p + n};
    in->p += n;
    return r;
}

static void parse_label(struct series *s, struct in in)
{
    unsigned i = s->labels++;
    assert_true(i < 50);
    while (in.p < in.end) {
        uint64_t tag = varint(&in);
        struct in t = part(&in);
        assert_true(tag == 10 || tag == 18);
        *(tag == 10 ? &s->name[i] : &s->value[i]) = (struct text){(const char *)t.p, (size_t)(t.end - t.p)};
    }
}

static void parse_sample(struct series *s, struct in in)
{
    unsigned i = s->samples++;
    assert_true(i < 600);
    s->v[i] = 0;
    s->at[i] = 0;
    while (in.p < in.end) {
        uint64_t tag = varint(&in);
        if (tag == 9) {
            uint64_t lo = little(&in, 4), bits = lo | (uint64_t)little(&in, 4) << 32;
            memcpy(&s->v[i], &bits, 8);
        } else {
            assert_int_equal(tag, 16);
            s->at[i] = (int64_t)varint(&in);
        }
    }
}

static void parse(struct request *r, const struct buf *compressed)
{
    size_t n;
    r->raw = unsnappy(compressed, &n);
    r->series = NULL;
    r->n = 0;
    for (struct in in = {r->raw, r->raw + n}; in.p < in.end;) {
        assert_int_equal(varint(&in), 10);
        struct in t = part(&in);
        r->series = realloc(r->series, (r->n + 1) * sizeof(*r->series));
        struct series *s = &r->series[r->n++];
        s->labels = s->samples = 0;
        while (t.p < t.end) {
            uint64_t tag = varint(&t);
            assert_true(tag == 10 || tag == 18);
            if (tag == 10)
                parse_label(s, part(&t));
            else
                parse_sample(s, part(&t));
        }
    }
}

static void request_done(struct request *r)
{
    free(r->series);
    free(r->raw);
}

static void is_label(const struct series *s, unsigned i, const char *name, const char *value)
{
    assert_int_equal(s->name[i].n, strlen(name));
    assert_memory_equal(s->name[i].p, name, strlen(name));
    assert_int_equal(s->value[i].n, strlen(value));
    assert_memory_equal(s->value[i].p, value, strlen(value));
}

// --- tests ---

static void add(struct buf *raw, const struct rw_labels *l, const struct buf *name, const struct rw_sample *s,
                unsigned n)
{
    struct rw_text label[3] = {
        {l->before.data, l->before.len}, {name->data, name->len}, {l->after.data, l->after.len}};
    size_t before = raw->len;
    rw_series(raw, label, s, n);
    assert_true(raw->len - before <= rw_series_bytes(label, n));
}

static void one_series(void **state)
{
    struct rw_label l[] = {
        {"switch", "leaf \"1\" µ"}, {"port", "7"}, {"guid", "0x1"}, {"Rack", "r3"}, {"none", ""}};
    struct rw_sample s[] = {
        {1700000000000, 3.5}, {1700000010000, 0}, {1700000020000, 18446744073709551615.0}};
    struct rw_labels labels = {0};
    struct buf name = {0}, raw = {0}, out = {0};
    struct request r;

    rw_labels_set(&labels, l, 5);
    rw_name_set(&name, "infiniband_switch_port_symbol_error_total");
    add(&raw, &labels, &name, s, 3);
    assert_int_equal(rw_compress(&raw, &out), 0);
    parse(&r, &out);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.series->labels, 5);
    is_label(r.series, 0, "Rack", "r3");
    is_label(r.series, 1, "__name__", "infiniband_switch_port_symbol_error_total");
    is_label(r.series, 2, "guid", "0x1");
    is_label(r.series, 3, "port", "7");
    is_label(r.series, 4, "switch", "leaf \"1\" µ");
    assert_int_equal(r.series->samples, 3);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(r.series->v[i] == s[i].value);
        assert_int_equal(r.series->at[i], s[i].at_ms);
    }
    request_done(&r);
    rw_labels_done(&labels);
    buf_done(&name);
    buf_done(&raw);
    buf_done(&out);
}

// Labels again in the same struct, and many series of all sizes, up to some hundred kilobytes: lengths take
// one, two and three bytes.
static void many_series(void **state)
{
    enum { N = 3000, MOST = 500 };
    struct rng g;
    struct rw_labels labels = {0};
    struct buf name = {0}, raw = {0}, out = {0};
    struct request r;
    static struct rw_sample s[MOST];
    char value[400], metric[40];

    rng_init(&g, 1);
    for (unsigned i = 0; i < N; i++) {
        unsigned n = i % 100 == 0 ? MOST : rng_below(&g, 4), len = rng_below(&g, 300);
        memset(value, 'a' + (int)(i % 26), len);
        value[len] = 0;
        snprintf(metric, sizeof(metric), "m%u", i);
        rw_labels_set(&labels, (struct rw_label[]){{"guid", value}}, 1);
        rw_name_set(&name, metric);
        for (unsigned k = 0; k < n; k++)
            s[k] = (struct rw_sample){(int64_t)i * 1000 + k, (double)(i * k)};
        add(&raw, &labels, &name, s, n);
    }
    assert_int_equal(rw_compress(&raw, &out), 0);
    parse(&r, &out);
    rng_init(&g, 1);
    assert_int_equal(r.n, N);
    for (unsigned i = 0; i < N; i++) {
        const struct series *x = &r.series[i];
        unsigned n = i % 100 == 0 ? MOST : rng_below(&g, 4), len = rng_below(&g, 300);
        snprintf(metric, sizeof(metric), "m%u", i);
        is_label(x, 0, "__name__", metric);
        assert_int_equal(x->labels, len > 0 ? 2 : 1);
        if (len > 0)
            assert_int_equal(x->value[1].n, len);
        assert_int_equal(x->samples, n);
        for (unsigned k = 0; k < n; k++)
            assert_true(x->at[k] == (int64_t)i * 1000 + k && x->v[k] == (double)(i * k));
    }
    request_done(&r);
    rw_labels_done(&labels);
    buf_done(&name);
    buf_done(&raw);
    buf_done(&out);
}

static void nothing(void **state)
{
    struct buf raw = {0}, out = {0};
    struct request r;
    assert_int_equal(rw_compress(&raw, &out), 0);
    parse(&r, &out);
    assert_int_equal(r.n, 0);
    request_done(&r);
    buf_done(&out);
}

static void label_names(void **state)
{
    assert_true(rw_label_name_ok("cluster"));
    assert_true(rw_label_name_ok("_c9"));
    assert_true(rw_label_name_ok("Z"));
    assert_false(rw_label_name_ok(""));
    assert_false(rw_label_name_ok("9a"));
    assert_false(rw_label_name_ok("__name__"));
    assert_false(rw_label_name_ok("a-b"));
    assert_false(rw_label_name_ok("a\xc3\xa4"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_series),
        cmocka_unit_test(many_series),
        cmocka_unit_test(nothing),
        cmocka_unit_test(label_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
