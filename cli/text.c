// SPDX-License-Identifier: Apache-2.0
#include "cli/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <wchar.h>

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

static int parse_offset(const char *s, int *ret_seconds)
{
    int h, m, n = 0;
    if ((s[0] == 'Z' || s[0] == 'z') && s[1] == 0) {
        *ret_seconds = 0;
        return 0;
    }
    if ((s[0] != '+' && s[0] != '-') || strlen(s) != 6 || s[3] != ':' ||
        sscanf(s + 1, "%2d:%2d%n", &h, &m, &n) != 2 || s[1 + n] != 0 || h > 23 || m > 59)
        return -EINVAL;
    *ret_seconds = (s[0] == '-' ? -1 : 1) * (h * 3600 + m * 60);
    return 0;
}

int text_parse_time(const char *s, int64_t *ret_wall_ns)
{
    struct tm tm = {0};
    int64_t ns = 0;
    int offset;

    if (strlen(s) < 20 || s[4] != '-')
        return -EINVAL;
    const char *p = strptime(s, "%Y-%m-%d", &tm);
    if (p == NULL || (*p != 'T' && *p != 't' && *p != ' '))
        return -EINVAL;
    p = strptime(p + 1, "%H:%M:%S", &tm);
    if (p == NULL)
        return -EINVAL;
    if (*p == '.') {
        int64_t unit = 100000000;
        for (p++; *p >= '0' && *p <= '9'; p++, unit /= 10)
            ns += (*p - '0') * unit;
    }
    if (parse_offset(p, &offset) != 0)
        return -EINVAL;
    int64_t seconds = (int64_t)timegm(&tm) - offset;
    if (seconds > INT64_MAX / 1000000000 - 1 || seconds < INT64_MIN / 1000000000 + 1) // years 1678 to 2262
        return -EINVAL;
    *ret_wall_ns = seconds * 1000000000 + ns;
    return 0;
}

void text_time(struct buf *b, const char *s, bool millis)
{
    char text[64], zone[16];
    int64_t ns;
    struct tm tm;

    if (text_parse_time(s, &ns) != 0) {
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

int text_parse_age(const char *s, int64_t *ret_seconds)
{
    static const struct {
        char letter;
        int64_t seconds;
    } unit[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end;

    if (*s < '0' || *s > '9')
        return -EINVAL;
    errno = 0;
    long v = strtol(s, &end, 10);
    for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++)
        if (errno == 0 && v <= 100000000 && end[0] == unit[i].letter && end[1] == 0) {
            *ret_seconds = v * unit[i].seconds;
            return 0;
        }
    return -EINVAL;
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

unsigned text_distance(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned d[65][65];

    if (n > 64 || m > 64)
        return UINT_MAX;
    for (size_t i = 0; i <= n; i++)
        d[i][0] = (unsigned)i;
    for (size_t j = 0; j <= m; j++)
        d[0][j] = (unsigned)j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            unsigned best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    return d[n][m];
}

bool text_near(const char *word, const char *known)
{
    size_t n = strlen(word);
    if (n >= 2 && strncmp(word, known, n) == 0)
        return true;
    return text_distance(word, known) <= (n <= 4 ? 1 : n <= 8 ? 2 : 3);
}

bool text_glob(const char *pattern, const char *s)
{
    const char *star = NULL, *back = NULL;

    while (*s) {
        if (*pattern == '*') {
            star = pattern++;
            back = s;
        } else if (*pattern == '?' || *pattern == *s) {
            pattern++;
            s++;
        } else if (star) {
            pattern = star + 1;
            s = ++back;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return *pattern == 0;
}
