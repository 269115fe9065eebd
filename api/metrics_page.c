// SPDX-License-Identifier: Apache-2.0
#include "api/metrics_page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lib/text.h"

#define CHUNK (64u << 10)
#define LINE_REST 64 // braces, blank, a number, a new line

void metrics_page_init(struct metrics_page *p, bool openmetrics, bool gzip, size_t max)
{
    *p = (struct metrics_page){.openmetrics = openmetrics, .gzip = gzip, .max = max};
    buf_reserve(&p->chunk, CHUNK + 4096);
    if (gzip && deflateInit2(&p->z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        p->gzip = false;
}

void metrics_page_done(struct metrics_page *p)
{
    if (p->gzip)
        deflateEnd(&p->z);
    buf_done(&p->out);
    buf_done(&p->chunk);
}

static void compress_chunk(struct metrics_page *p, int flush)
{
    p->z.next_in = (Bytef *)p->chunk.data;
    p->z.avail_in = (uInt)p->chunk.len;
    do {
        buf_reserve(&p->out, 32u << 10);
        uInt room = (uInt)(p->out.cap - p->out.len - 1);
        p->z.next_out = (Bytef *)p->out.data + p->out.len;
        p->z.avail_out = room;
        deflate(&p->z, flush);
        p->out.len += room - p->z.avail_out;
    } while (p->z.avail_out == 0);
}

static void put_out(struct metrics_page *p, int flush)
{
    p->text += p->chunk.len;
    if (p->over)
        ;
    else if (p->gzip)
        compress_chunk(p, flush);
    else
        buf_add(&p->out, p->chunk.data, p->chunk.len);
    if (p->out.len > p->max) {
        p->over = true;
        buf_done(&p->out);
    }
    buf_clear(&p->chunk);
}

static void room(struct metrics_page *p, size_t n)
{
    if (p->chunk.len >= CHUNK)
        put_out(p, Z_NO_FLUSH);
    buf_reserve(&p->chunk, n);
}

void metrics_family(struct metrics_page *p, const char *name, enum metric_type type, const char *help)
{
    p->name = name;
    p->type = type;
    p->help = help;
    p->begun = false;
}

// OpenMetrics names a family without what its samples' names end in.
static int family_name_len(const struct metrics_page *p)
{
    size_t n = strlen(p->name);
    size_t cut = p->type == METRIC_COUNTER ? strlen("_total") : p->type == METRIC_INFO ? strlen("_info") : 0;
    return (int)(p->openmetrics && n > cut ? n - cut : n);
}

static void begin_family(struct metrics_page *p)
{
    const char *type = p->type == METRIC_COUNTER                  ? "counter"
                       : p->type == METRIC_INFO && p->openmetrics ? "info"
                                                                  : "gauge";
    int n = family_name_len(p);
    p->begun = true;
    buf_printf(&p->chunk, "# HELP %.*s %s\n# TYPE %.*s %s\n", n, p->name, p->help, n, p->name, type);
}

static char *head(struct metrics_page *p, const char *labels, size_t n)
{
    size_t name = strlen(p->name);
    room(p, name + n + LINE_REST);
    if (!p->begun) {
        begin_family(p);
        room(p, name + n + LINE_REST);
    }
    p->samples++;
    char *at = p->chunk.data + p->chunk.len;
    at = (char *)memcpy(at, p->name, name) + name;
    if (n > 0) {
        *at++ = '{';
        at = (char *)memcpy(at, labels, n) + n;
        *at++ = '}';
    }
    *at++ = ' ';
    return at;
}

static void tail(struct metrics_page *p, char *at)
{
    *at++ = '\n';
    *at = 0;
    p->chunk.len = (size_t)(at - p->chunk.data);
}

void metrics_sample(struct metrics_page *p, const char *labels, size_t n, uint64_t value)
{
    char digits[20];
    unsigned k = sizeof(digits);
    char *at = head(p, labels, n);

    do
        digits[--k] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    at = (char *)memcpy(at, digits + k, sizeof(digits) - k) + (sizeof(digits) - k);
    tail(p, at);
}

void metrics_sample_double(struct metrics_page *p, const char *labels, size_t n, double value)
{
    if (value >= 0 && value < 1e15 && value == (double)(uint64_t)value) {
        metrics_sample(p, labels, n, (uint64_t)value);
        return;
    }
    char *at = head(p, labels, n);
    if (isnan(value))
        at += sprintf(at, "NaN");
    else if (isinf(value))
        at += sprintf(at, "%cInf", value < 0 ? '-' : '+');
    else
        at += sprintf(at, "%.15g", value);
    tail(p, at);
}

void metrics_page_add(struct metrics_page *p, struct metrics_page *from)
{
    put_out(from, Z_NO_FLUSH);
    room(p, 0);
    buf_add(&p->chunk, from->out.data, from->out.len);
    buf_clear(&from->out);
    p->samples += from->samples;
}

void metrics_page_end(struct metrics_page *p)
{
    if (p->openmetrics)
        buf_puts(&p->chunk, "# EOF\n");
    put_out(p, Z_FINISH);
}

static bool plain(unsigned char c)
{
    return c < 0x80 && c != '\n' && c != '"' && c != '\\';
}

void metrics_label(struct buf *b, const char *name, const char *value)
{
    size_t n = strlen(value), k;
    if (b->len > 0)
        buf_putc(b, ',');
    buf_puts(b, name);
    buf_add(b, "=\"", 2);
    for (size_t i = 0; i < n; i += k) {
        unsigned char c = (unsigned char)value[i];
        for (k = 0; i + k < n && plain((unsigned char)value[i + k]); k++)
            ;
        if (k == 0 && c >= 0x80)
            k = text_char_len((const unsigned char *)value + i, n - i);
        if (k > 0) {
            buf_add(b, value + i, k);
            continue;
        }
        k = 1;
        buf_puts(b, c == '\n' ? "\\n" : c == '"' ? "\\\"" : c == '\\' ? "\\\\" : "\xef\xbf\xbd");
    }
    buf_putc(b, '"');
}
