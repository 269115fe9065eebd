// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

#include "lib/when.h"

// Bytes of the UTF-8 character at s, 0 when it is broken (overlong forms and surrogates too).
static unsigned utf8_next(const char *s, uint32_t *ret)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *p = (const unsigned char *)s;
    unsigned n = p[0] < 0x80 ? 1 : p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf8 ? 4 : 0;
    uint32_t c;

    if (n <= 1) {
        *ret = p[0];
        return n;
    }
    c = p[0] & (0x7fu >> n);
    for (unsigned i = 1; i < n; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (p[i] & 0x3f);
    }
    if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
        return 0;
    *ret = c;
    return n;
}

// Characters that are not seen, or that reorder what stands around them.
static bool is_hidden(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xe0000 && c <= 0xe0fff) || (c >= 0xfff0 && c <= 0xfffb);
}

static int columns(uint32_t c)
{
    return c < 0x80 ? 1 : wcwidth((wchar_t)c);
}

void text_escape(struct buf *b, const char *s, bool utf8)
{
    uint32_t c;

    for (unsigned n; *s; s += n ? n : 1) {
        n = utf8_next(s, &c);
        if (n == 0)
            buf_printf(b, "\\x%02x", (unsigned char)*s);
        else if (c == '\n')
            buf_puts(b, "\\n");
        else if (c == '\t')
            buf_puts(b, "\\t");
        else if (c < 0x80 && is_hidden(c))
            buf_printf(b, "\\x%02x", c);
        else if (is_hidden(c) || (c >= 0x80 && (!utf8 || columns(c) < 0)))
            buf_printf(b, "\\u{%x}", c);
        else
            buf_add(b, s, n);
    }
}

unsigned text_width(const char *s)
{
    unsigned width = 0;
    uint32_t c;

    for (unsigned n; *s; s += n ? n : 1) {
        n = utf8_next(s, &c);
        int w = n ? columns(c) : 1;
        width += w > 0 ? (unsigned)w : 0;
    }
    return width;
}

static void pad(struct buf *b, unsigned n)
{
    while (n-- > 0)
        buf_putc(b, ' ');
}

// Bytes of s that fit width columns, and the columns they take.
static size_t cut(const char *s, unsigned width, unsigned *ret_used)
{
    const char *p = s;
    unsigned used = 0;
    uint32_t c;

    for (unsigned n; *p; p += n ? n : 1) {
        n = utf8_next(p, &c);
        int w = n ? columns(c) : 1;
        if (used + (unsigned)(w > 0 ? w : 0) > width)
            break;
        used += (unsigned)(w > 0 ? w : 0);
    }
    *ret_used = used;
    return (size_t)(p - s);
}

void text_fit(struct buf *b, const char *s, unsigned width, bool right, bool utf8)
{
    unsigned used = text_width(s);

    if (used > width) {
        size_t n = cut(s, width > 0 ? width - 1 : 0, &used);
        buf_add(b, s, n);
        if (width > 0) {
            buf_puts(b, utf8 ? "…" : "~");
            pad(b, width - 1 - used);
        }
        return;
    }
    if (right)
        pad(b, width - used);
    buf_puts(b, s);
    if (!right)
        pad(b, width - used);
}

void text_count(struct buf *b, long long n)
{
    char digits[32];
    int len = snprintf(digits, sizeof(digits), "%llu",
                       n < 0 ? 0ULL - (unsigned long long)n : (unsigned long long)n);

    if (n < 0)
        buf_putc(b, '-');
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf_putc(b, ',');
        buf_putc(b, digits[i]);
    }
}

void text_figure(struct buf *b, double x)
{
    if (x >= 1000 && x < 1e15)
        text_count(b, (long long)(x + 0.5));
    else
        buf_printf(b, "%.4g", x);
}

void text_share(struct buf *b, double x)
{
    double p = 100 * x;
    buf_printf(b, p == 0 ? "%.0f %%" : p < 1 ? "%.2f %%" : p < 99.95 ? "%.1f %%" : "%.0f %%", p);
}

static void with_unit(struct buf *b, double x, const char *const unit[7], const char *per)
{
    unsigned i = 0;
    while (x >= 999.5 && i < 6) {
        x /= 1000;
        i++;
    }
    buf_printf(b,
               i == 0      ? "%.0f %s%s"
               : x < 9.995 ? "%.2f %s%s"
               : x < 99.95 ? "%.1f %s%s"
                           : "%.0f %s%s",
               x, unit[i], per);
}

void text_bytes(struct buf *b, double x, const char *per)
{
    static const char *const unit[7] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
    with_unit(b, x, unit, per);
}

void text_rate(struct buf *b, double bytes)
{
    static const char *const unit[7] = {"b", "kb", "Mb", "Gb", "Tb", "Pb", "Eb"};
    with_unit(b, bytes * 8, unit, "/s");
}

void text_age(struct buf *b, int64_t s)
{
    if (s < 0)
        s = 0;
    if (s < 120)
        buf_printf(b, "%d s", (int)s);
    else if (s < 7200)
        buf_printf(b, "%d min", (int)(s / 60));
    else if (s < 172800)
        buf_printf(b, "%d h %d min", (int)(s / 3600), (int)(s / 60 % 60));
    else
        buf_printf(b, "%lld d", (long long)(s / 86400));
}

void text_time(struct buf *b, const char *s, bool millis)
{
    char text[64], zone[16];
    int64_t ns;
    struct tm tm;

    if (when_parse(s, &ns) != 0) {
        text_escape(b, s, false);
        return;
    }
    time_t t = (time_t)(ns / 1000000000);
    localtime_r(&t, &tm);
    strftime(text, sizeof(text), "%F %T", &tm);
    strftime(zone, sizeof(zone), "%Z", &tm);
    buf_puts(b, text);
    if (millis)
        buf_printf(b, ".%03d", (int)(ns / 1000000 % 1000));
    buf_printf(b, " %s", zone);
}

int text_parse_count(const char *s, long long min, long long max, long long *ret)
{
    char *end;
    if (*s < '0' || *s > '9')
        return -EINVAL;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno != 0 || *end != 0 || v < min || v > max)
        return -EINVAL;
    *ret = v;
    return 0;
}
