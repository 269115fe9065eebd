// SPDX-License-Identifier: Apache-2.0
// One value of an option: from text, to text, and what was expected.
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/arena.h"
#include "lib/guid.h"
#include "lib/mono.h"
#include "lib/opt_priv.h"

struct unit {
    const char *name;
    int64_t factor;
};

// Largest first: the first that divides a value writes it.
static const struct unit duration_units[] = {
    {"d", 86400 * MONO_S}, {"h", 3600 * MONO_S}, {"m", 60 * MONO_S}, {"s", MONO_S},
    {"ms", MONO_MS},       {"us", MONO_US},      {"ns", 1},          {NULL, 0},
};
static const struct unit size_units[] = {
    {"T", 1LL << 40}, {"G", 1LL << 30}, {"M", 1LL << 20}, {"k", 1LL << 10}, {"", 1}, {NULL, 0},
};

static bool in_range(const struct opt_row *row, double v)
{
    return (row->min == 0 && row->max == 0) || (v >= row->min && v <= row->max);
}

bool opt_count_ok(const struct opt_row *row, size_t n)
{
    return n <= OPT_LIST_MAX && in_range(row, (double)n);
}

// --- from text ---

static int parse_bool(const char *s, bool *ret)
{
    static const char *const yes[] = {"true", "yes", "on"}, *const no[] = {"false", "no", "off"};

    for (int i = 0; i < 3; i++) {
        if (!strcasecmp(s, yes[i]))
            return *ret = true, 0;
        if (!strcasecmp(s, no[i]))
            return *ret = false, 0;
    }
    return -EINVAL;
}

static int parse_int(const char *s, int64_t *ret)
{
    const char *digits = s + (*s == '-' || *s == '+');
    bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    if (hex ? !isxdigit((unsigned char)digits[2]) : !isdigit((unsigned char)digits[0]))
        return -EINVAL;

    char *end;
    errno = 0;
    long long v = strtoll(s, &end, hex ? 16 : 10);
    if (errno || *end)
        return -EINVAL;
    *ret = v;
    return 0;
}

static int parse_double(const char *s, double *ret)
{
    // strtod() also takes "inf", "nan" and hexadecimal.
    if (!*s || s[strspn(s, "0123456789+-.eE")])
        return -EINVAL;
    char *end;
    double v = strtod(s, &end);
    if (end == s || *end || !isfinite(v))
        return -EINVAL;
    *ret = v;
    return 0;
}

// digits[.digits]unit, exact: the fraction must come out whole in the smallest unit.
static int parse_units(const char *s, const struct unit *units, int64_t *ret)
{
    int64_t whole = 0, v, frac = 0, scale = 1;
    const char *p = s;

    for (; isdigit((unsigned char)*p); p++)
        if (__builtin_mul_overflow(whole, 10, &whole) || __builtin_add_overflow(whole, *p - '0', &whole))
            return -EINVAL;
    if (p == s)
        return -EINVAL;
    if (*p == '.') {
        const char *first = ++p;
        for (; isdigit((unsigned char)*p) && p - first < 9; p++) {
            frac = frac * 10 + (*p - '0');
            scale *= 10;
        }
        if (p == first)
            return -EINVAL;
    }
    while (units->name && strcmp(units->name, p) && !(!strcmp(p, "K") && !strcmp(units->name, "k")))
        units++;
    if (!units->name) {
        if (*p || whole || frac) // a bare 0 needs no unit
            return -EINVAL;
        return *ret = 0, 0;
    }
    if (__builtin_mul_overflow(frac, units->factor, &frac) || frac % scale ||
        __builtin_mul_overflow(whole, units->factor, &v) || __builtin_add_overflow(v, frac / scale, &v))
        return -EINVAL;
    *ret = v;
    return 0;
}

static int parse_number(const struct opt_row *row, const char *s, int64_t *field)
{
    int64_t v = 0;
    int r = row->type == OPT_INT ? parse_int(s, &v)
                                 : parse_units(s, row->type == OPT_SIZE ? size_units : duration_units, &v);
    if (r < 0 || !in_range(row, (double)v))
        return -EINVAL;
    *field = v;
    return 0;
}

// "a, b" or "[a, b]" or "[\"a\", b]": for defaults and the command line; the file goes through YAML.
static int parse_strings(const struct opt_row *row, const char *s, struct arena *a, struct opt_strings *ret)
{
    size_t len = strlen(s), n = 0;
    if (len >= 2 && s[0] == '[' && s[len - 1] == ']') {
        s++;
        len -= 2;
    }
    char *copy = arena_strndup(a, s, len), *p = copy, *part;
    for (const char *c = copy; *c; c++)
        n += *c == ',';
    if (n > OPT_LIST_MAX)
        return -EINVAL;
    const char **item = ARENA_NEW_N(a, n + 1, const char *);
    n = 0;
    while ((part = strsep(&p, ","))) {
        part += strspn(part, " ");
        size_t end = strlen(part);
        while (end && part[end - 1] == ' ')
            end--;
        if (end >= 2 && (part[0] == '"' || part[0] == '\'') && part[end - 1] == part[0]) {
            part++;
            end -= 2;
        } else if (!end) {
            continue;
        }
        part[end] = '\0';
        item[n++] = part;
    }
    if (!opt_count_ok(row, n))
        return -EINVAL;
    *ret = (struct opt_strings){.item = item, .n = n};
    return 0;
}

int opt_value_parse(const struct opt_row *row, const char *text, struct arena *a, void *field)
{
    double d;

    switch (row->type) {
    case OPT_BOOL:
        return parse_bool(text, field);
    case OPT_INT:
    case OPT_DURATION:
    case OPT_SIZE:
        return parse_number(row, text, field);
    case OPT_DOUBLE:
        if (parse_double(text, &d) < 0 || !in_range(row, d))
            return -EINVAL;
        *(double *)field = d;
        return 0;
    case OPT_STRING:
        if (!in_range(row, (double)strlen(text)))
            return -EINVAL;
        *(const char **)field = arena_strdup(a, text);
        return 0;
    case OPT_ENUM:
        for (int i = 0; row->names[i]; i++)
            if (!strcmp(row->names[i], text))
                return *(int *)field = i, 0;
        return -EINVAL;
    case OPT_GUID:
        return guid_parse(text, field);
    case OPT_STRINGS:
        return parse_strings(row, text, a, field);
    case OPT_SECTION:
    case OPT_LIST:
        break;
    }
    return -EINVAL;
}

void opt_value_zero(const struct opt_row *row, void *field)
{
    switch (row->type) {
    case OPT_BOOL:
        *(bool *)field = false;
        break;
    case OPT_INT:
    case OPT_DURATION:
    case OPT_SIZE:
        *(int64_t *)field = 0;
        break;
    case OPT_DOUBLE:
        *(double *)field = 0;
        break;
    case OPT_STRING:
        *(const char **)field = "";
        break;
    case OPT_ENUM:
        *(int *)field = 0;
        break;
    case OPT_GUID:
        *(uint64_t *)field = 0;
        break;
    case OPT_STRINGS:
        *(struct opt_strings *)field = (struct opt_strings){0};
        break;
    case OPT_LIST:
        *(struct opt_list *)field = (struct opt_list){0};
        break;
    case OPT_SECTION:
        break;
    }
}

// --- to text ---

static void format_units(int64_t v, const struct unit *units, struct buf *out)
{
    while (units[1].name && (v == 0 ? strcmp(units->name, "s") != 0 : v % units->factor != 0))
        units++;
    buf_printf(out, "%lld%s", (long long)(v / units->factor), units->name);
}

static void format_double(double v, struct buf *out)
{
    char text[40];

    // The shortest that reads back the same.
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    buf_puts(out, text);
}

// Plain only what no YAML reader could take for something else than a string, or for structure.
static bool plain_is_safe(const char *s)
{
    static const char *const words[] = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};

    if (!isalpha((unsigned char)s[0]) && s[0] != '/')
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (!strcasecmp(s, words[i]))
            return false;
    for (const char *p = s; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("/._-+@", *p))
            return false;
    return true;
}

void opt_quote(const char *s, struct buf *out)
{
    if (plain_is_safe(s)) {
        buf_puts(out, s);
        return;
    }
    buf_putc(out, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            buf_printf(out, "\\%c", *s);
        else if ((unsigned char)*s < 0x20 || *s == 0x7f)
            buf_printf(out, "\\x%02x", (unsigned char)*s);
        else
            buf_putc(out, *s);
    }
    buf_putc(out, '"');
}

static void format_strings(const struct opt_strings *s, struct buf *out)
{
    buf_putc(out, '[');
    for (size_t i = 0; i < s->n; i++) {
        if (i)
            buf_puts(out, ", ");
        opt_quote(s->item[i], out);
    }
    buf_putc(out, ']');
}

void opt_value_format(const struct opt_row *row, const void *field, struct buf *out)
{
    char guid[GUID_STR_SIZE];

    switch (row->type) {
    case OPT_BOOL:
        buf_puts(out, *(const bool *)field ? "true" : "false");
        break;
    case OPT_INT:
        buf_printf(out, "%lld", (long long)*(const int64_t *)field);
        break;
    case OPT_DOUBLE:
        format_double(*(const double *)field, out);
        break;
    case OPT_DURATION:
        format_units(*(const int64_t *)field, duration_units, out);
        break;
    case OPT_SIZE:
        format_units(*(const int64_t *)field, size_units, out);
        break;
    case OPT_STRING:
        opt_quote(*(const char *const *)field ? *(const char *const *)field : "", out);
        break;
    case OPT_ENUM:
        buf_puts(out, row->names[*(const int *)field]);
        break;
    case OPT_GUID:
        buf_puts(out, guid_str(*(const uint64_t *)field, guid));
        break;
    case OPT_STRINGS:
        format_strings(field, out);
        break;
    case OPT_SECTION:
    case OPT_LIST:
        break;
    }
}

// --- what was expected ---

static void format_bound(const struct opt_row *row, double v, struct buf *out)
{
    if (row->type == OPT_DURATION)
        format_units((int64_t)v, duration_units, out);
    else if (row->type == OPT_SIZE)
        format_units((int64_t)v, size_units, out);
    else
        format_double(v, out);
}

static void format_range(const struct opt_row *row, struct buf *out)
{
    const double int_end = 0x1p63;
    bool ints = row->type != OPT_DOUBLE;
    bool has_min = !(isinf(row->min) || (ints && row->min <= -int_end));
    bool has_max = !(isinf(row->max) || (ints && row->max >= int_end));

    if ((row->min == 0 && row->max == 0) || (!has_min && !has_max))
        return;
    buf_puts(out, !has_max ? " of at least " : !has_min ? " of at most " : " ");
    if (has_min)
        format_bound(row, row->min, out);
    if (has_min && has_max)
        buf_puts(out, "..");
    if (has_max)
        format_bound(row, row->max, out);
}

void opt_value_expected(const struct opt_row *row, struct buf *out)
{
    static const char *const what[] = {
        [OPT_BOOL] = "true or false",
        [OPT_INT] = "an integer",
        [OPT_DOUBLE] = "a number",
        [OPT_DURATION] = "a duration",
        [OPT_SIZE] = "a size",
        [OPT_STRING] = "a string",
        [OPT_ENUM] = "one of ",
        [OPT_GUID] = "a GUID",
        [OPT_STRINGS] = "a list of strings",
        [OPT_SECTION] = "a mapping",
        [OPT_LIST] = "a list of mappings",
    };

    buf_puts(out, what[row->type]);
    bool counted = row->type == OPT_STRING || row->type == OPT_STRINGS || row->type == OPT_LIST;
    if (counted && (row->min != 0 || row->max != 0))
        buf_puts(out, row->type == OPT_STRING ? ", bytes:" : ", elements:");
    if (row->type == OPT_ENUM)
        for (int i = 0; row->names[i]; i++)
            buf_printf(out, "%s%s", i ? ", " : "", row->names[i]);
    else if (row->type != OPT_SECTION && row->type != OPT_BOOL && row->type != OPT_GUID)
        format_range(row, out);
}

void opt_show(const char *s, struct buf *out)
{
    for (size_t n = 0; *s && n < 60; s++, n++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            buf_printf(out, "\\x%02x", (unsigned char)*s);
        else
            buf_putc(out, *s);
    }
    while (((unsigned char)*s & 0xc0) == 0x80) // do not cut within a character
        buf_putc(out, *s++);
    if (*s)
        buf_puts(out, "...");
}

void opt_value_complaint(const struct opt_row *row, const char *found, struct buf *out)
{
    int64_t v;

    buf_puts(out, "expected ");
    opt_value_expected(row, out);
    buf_puts(out, ", found ");
    if (*found || row->type == OPT_STRING) {
        buf_putc(out, '"');
        opt_show(found, out);
        buf_putc(out, '"');
    } else {
        buf_puts(out, "nothing");
    }
    if (row->type == OPT_DURATION && parse_int(found, &v) == 0)
        buf_puts(out, " (a duration needs a unit: ms, s, m, h, d)");
}
