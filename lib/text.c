// SPDX-License-Identifier: Apache-2.0
#include "lib/text.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

size_t text_cut(const char *s, size_t max)
{
    size_t n = strnlen(s, max);
    if (n < max || s[max] == 0)
        return n;
    for (size_t back = 0; back < 4 && back <= max; back++)
        if (((unsigned char)s[max - back] & 0xc0) != 0x80)
            return max - back;
    return max;
}

size_t text_print(char *buf, size_t size, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(buf, size, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < size)
        return (size_t)n;
    // The byte behind the end is gone: whether the last character is whole is told by its first byte.
    size_t len = n < 0 ? 0 : size - 1, first = len;
    while (first > 0 && len - first < 3 && ((unsigned char)buf[first - 1] & 0xc0) == 0x80)
        first--;
    unsigned char lead = first > 0 ? (unsigned char)buf[first - 1] : 0;
    size_t needs = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
    if (needs > len - first + 1)
        len = first - 1;
    buf[len] = 0;
    return len;
}

size_t text_char_len(const unsigned char *s, size_t left)
{
    size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (n > left)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

size_t text_clean(char *s)
{
    size_t to = 0;
    for (size_t i = 0; s[i];) {
        size_t n = text_char_len((const unsigned char *)s + i, SIZE_MAX);
        if (to != i)
            memmove(s + to, s + i, n);
        to += n;
        i += n ? n : 1;
    }
    s[to] = 0;
    return to;
}
