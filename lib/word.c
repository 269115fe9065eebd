// SPDX-License-Identifier: Apache-2.0
#include "lib/word.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

unsigned word_distance(const char *a, const char *b)
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

bool word_near(const char *word, const char *known)
{
    size_t n = strlen(word);
    if (n >= 2 && strncmp(word, known, n) == 0)
        return true;
    return word_distance(word, known) <= (n <= 4 ? 1 : n <= 8 ? 2 : 3);
}

const char *word_nearest(const char *word, const char *(*name)(const void *arg, unsigned i), const void *arg)
{
    const char *near = NULL, *known;
    unsigned best = UINT_MAX;
    for (unsigned i = 0; (known = name(arg, i)) != NULL; i++) {
        unsigned d = word_distance(word, known);
        if (word_near(word, known) && d < best) {
            best = d;
            near = known;
        }
    }
    return near;
}

bool word_glob(const char *pattern, const char *s)
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
