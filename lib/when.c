// SPDX-License-Identifier: Apache-2.0
#include "lib/when.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static bool digits(const char *s, int n)
{
    for (int i = 0; i < n; i++)
        if (s[i] < '0' || s[i] > '9')
            return false;
    return true;
}

static int two(const char *s)
{
    return (s[0] - '0') * 10 + s[1] - '0';
}

static int parse_offset(const char *s, int *ret_seconds)
{
    if ((s[0] == 'Z' || s[0] == 'z') && s[1] == 0) {
        *ret_seconds = 0;
        return 0;
    }
    if ((s[0] != '+' && s[0] != '-') || strlen(s) != 6 || s[3] != ':' || !digits(s + 1, 2) ||
        !digits(s + 4, 2) || two(s + 1) > 23 || two(s + 4) > 59)
        return -EINVAL;
    *ret_seconds = (s[0] == '-' ? -1 : 1) * (two(s + 1) * 3600 + two(s + 4) * 60);
    return 0;
}

// "2026-01-31"; what stands behind it, or NULL: also of a day that no month has.
static const char *read_day(const char *s, struct tm *tm)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (!digits(s, 4) || s[4] != '-' || !digits(s + 5, 2) || s[7] != '-' || !digits(s + 8, 2))
        return NULL;
    int year = two(s) * 100 + two(s + 2), month = two(s + 5), day = two(s + 8);
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (month < 1 || month > 12 || day < 1 || day > days[month - 1] + (month == 2 && leap))
        return NULL;
    tm->tm_year = year - 1900;
    tm->tm_mon = month - 1;
    tm->tm_mday = day;
    return s + 10;
}

static bool good(int64_t seconds) // years 1678 to 2262
{
    return seconds < INT64_MAX / 1000000000 - 1 && seconds > INT64_MIN / 1000000000 + 1;
}

int when_parse(const char *s, int64_t *ret_wall_ns)
{
    struct tm tm = {0};
    int64_t ns = 0;
    int offset;

    const char *p = read_day(s, &tm);
    if (p == NULL || (*p != 'T' && *p != 't' && *p != ' ') || strlen(p) < 10)
        return -EINVAL;
    p = strptime(p + 1, "%H:%M:%S", &tm);
    if (p == NULL || tm.tm_sec > 60)
        return -EINVAL;
    if (*p == '.') {
        int64_t unit = 100000000;
        if (!digits(++p, 1))
            return -EINVAL;
        for (; *p >= '0' && *p <= '9'; p++, unit /= 10)
            ns += (*p - '0') * unit;
    }
    if (parse_offset(p, &offset) != 0)
        return -EINVAL;
    int64_t seconds = (int64_t)timegm(&tm) - offset;
    if (!good(seconds))
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

struct zone {
    bool local;
    int dst;    // of local: as struct tm has it
    int offset; // of others: seconds east
};

// What stands behind a time.
static int read_zone(const char *s, struct zone *ret)
{
    s += strspn(s, " ");
    *ret = (struct zone){.local = *s == 0, .dst = -1};
    if (*s == 0 || strcmp(s, "UTC") == 0 || strcmp(s, "GMT") == 0 || parse_offset(s, &ret->offset) == 0)
        return 0;
    tzset();
    for (int i = 0; i < 2; i++)
        if (strcmp(s, tzname[i]) == 0) {
            *ret = (struct zone){.local = true, .dst = strcmp(tzname[0], tzname[1]) != 0 ? i : -1};
            return 0;
        }
    return -EINVAL;
}

static int64_t seconds_of(struct tm tm, const struct zone *z)
{
    if (!z->local)
        return (int64_t)timegm(&tm) - z->offset;
    tm.tm_isdst = z->dst;
    return (int64_t)mktime(&tm);
}

// "10:20", "10:20:30"; what stands behind it, or NULL.
static const char *clock_time(const char *s, struct tm *tm)
{
    const char *p = strptime(s, "%H:%M:%S", tm);
    if (p != NULL)
        return tm->tm_sec > 60 ? NULL : p;
    tm->tm_sec = 0;
    return strptime(s, "%H:%M", tm);
}

// Of the day that it is in that zone, the one before or the one after: days need not have 24 hours.
static int read_clock(const char *s, int64_t now_wall_ns, bool ahead, int64_t *ret_wall_ns)
{
    struct tm at = {0}, day;
    struct zone z;
    const char *p = strlen(s) >= 4 ? clock_time(s, &at) : NULL;
    if (p == NULL || read_zone(p, &z) != 0)
        return -EINVAL;
    time_t now = now_wall_ns / 1000000000 + z.offset;
    if (z.local)
        localtime_r(&now, &day);
    else
        gmtime_r(&now, &day);
    for (int i = -1; i <= 1; i++) {
        struct tm tm = {.tm_year = day.tm_year,
                        .tm_mon = day.tm_mon,
                        .tm_mday = day.tm_mday + (ahead ? i : -i),
                        .tm_hour = at.tm_hour,
                        .tm_min = at.tm_min,
                        .tm_sec = at.tm_sec};
        int64_t seconds = seconds_of(tm, &z), ns = good(seconds) ? seconds * 1000000000 : 0;
        if (good(seconds) && (ahead ? ns > now_wall_ns : ns <= now_wall_ns)) {
            *ret_wall_ns = ns;
            return 0;
        }
    }
    return -EINVAL;
}

int when_read(const char *s, int64_t now_wall_ns, bool ahead, int64_t *ret_wall_ns)
{
    struct tm tm = {0};
    struct zone z;

    if (when_parse(s, ret_wall_ns) == 0)
        return 0;
    const char *p = read_day(s, &tm), *behind = NULL;
    if (p == NULL)
        return read_clock(s, now_wall_ns, ahead, ret_wall_ns);
    if (*p == 'T' || *p == 't' || *p == ' ')
        behind = clock_time(p + 1, &tm);
    if (behind == NULL)
        tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
    if (read_zone(behind != NULL ? behind : p, &z) != 0)
        return -EINVAL;
    int64_t seconds = seconds_of(tm, &z);
    if (!good(seconds))
        return -EINVAL;
    *ret_wall_ns = seconds * 1000000000;
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
