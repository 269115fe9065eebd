// SPDX-License-Identifier: Apache-2.0
#include "lib/when.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

int when_parse(const char *s, int64_t *ret_wall_ns)
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

int when_after(int64_t wall_ns, int64_t seconds, int64_t *ret_wall_ns)
{
    int64_t ns;
    if (__builtin_mul_overflow(seconds, 1000000000, &ns) || __builtin_add_overflow(wall_ns, ns, &ns))
        return -ERANGE;
    *ret_wall_ns = ns;
    return 0;
}

#define DAY_NS (86400 * 1000000000ll)

// What stands behind the time: seconds since 1970.
static int with_zone(struct tm *tm, const char *s, int64_t *ret)
{
    int offset = 0;
    s += strspn(s, " ");
    tzset();
    tm->tm_isdst = -1;
    if (strcmp(s, "UTC") == 0 || strcmp(s, "GMT") == 0 || parse_offset(s, &offset) == 0) {
        *ret = (int64_t)timegm(tm) - offset;
        return 0;
    }
    for (int i = 0; *s != 0 && i < 2; i++)
        if (strcmp(s, tzname[i]) == 0) {
            tm->tm_isdst = i;
            s += strlen(s);
        }
    if (*s != 0)
        return -EINVAL;
    *ret = (int64_t)mktime(tm);
    return 0;
}

// "10:20", "10:20:30"; what stands behind it, or NULL.
static const char *clock_time(const char *s, struct tm *tm)
{
    const char *p = strptime(s, "%H:%M:%S", tm);
    tm->tm_sec = p != NULL ? tm->tm_sec : 0;
    return p != NULL ? p : strptime(s, "%H:%M", tm);
}

static bool good(int64_t seconds)
{
    return seconds < INT64_MAX / 1000000000 - 1 && seconds > INT64_MIN / 1000000000 + 1;
}

int when_read(const char *s, int64_t now_wall_ns, bool ahead, int64_t *ret_wall_ns)
{
    struct tm tm = {0};
    int64_t seconds;
    const char *p;

    if (when_parse(s, ret_wall_ns) == 0)
        return 0;
    if (strlen(s) >= 10 && s[4] == '-') {
        p = strptime(s, "%Y-%m-%d", &tm);
        if (p != NULL && *p != 0 && (p = *p == 'T' || *p == ' ' ? p + 1 : NULL) != NULL)
            p = clock_time(p, &tm);
        if (p == NULL || with_zone(&tm, p, &seconds) != 0 || !good(seconds))
            return -EINVAL;
        *ret_wall_ns = seconds * 1000000000;
        return 0;
    }
    time_t now = now_wall_ns / 1000000000;
    localtime_r(&now, &tm);
    if (strlen(s) < 4 || (p = clock_time(s, &tm)) == NULL)
        return -EINVAL;
    bool utc = strcmp(p, "Z") == 0 || strcmp(p, " UTC") == 0;
    if (utc) { // the day of the other zone
        gmtime_r(&now, &tm);
        clock_time(s, &tm);
    }
    if (with_zone(&tm, p, &seconds) != 0)
        return -EINVAL;
    int64_t ns = seconds * 1000000000;
    *ret_wall_ns = ahead && ns <= now_wall_ns ? ns + DAY_NS : !ahead && ns > now_wall_ns ? ns - DAY_NS : ns;
    return 0;
}

int when_parse_age(const char *s, int64_t *ret_seconds)
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
        if (errno == 0 && v <= WHEN_AGE_MOST / unit[i].seconds && end[0] == unit[i].letter && end[1] == 0) {
            *ret_seconds = v * unit[i].seconds;
            return 0;
        }
    return -EINVAL;
}
