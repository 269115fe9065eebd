// SPDX-License-Identifier: Apache-2.0
#include "cli/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/text.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "lib/when.h"

#define FIELDS_MAX 160
#define SHRUNK_MIN 8
#define GAP 2
#define BELOW 4 // indent of sentences below a row

json_t *js_at(json_t *o, const char *path)
{
    char key[64];
    while (o != NULL) {
        const char *dot = strchr(path, '.');
        if (dot == NULL)
            return json_object_get(o, path);
        snprintf(key, sizeof(key), "%.*s", (int)(dot - path), path);
        o = json_object_get(o, key);
        path = dot + 1;
    }
    return NULL;
}

const char *js_str(json_t *o, const char *path)
{
    const char *s = json_string_value(js_at(o, path));
    return s ? s : "";
}

long long js_int(json_t *o, const char *path)
{
    return json_integer_value(js_at(o, path));
}

double js_num(json_t *o, const char *path)
{
    return json_number_value(js_at(o, path));
}

bool js_true(json_t *o, const char *path)
{
    return json_is_true(js_at(o, path));
}

static json_t *field_value(const struct field *f, json_t *item)
{
    return js_at(item, f->path ? f->path : f->key);
}

static void put_phases(struct buf *b, json_t *v)
{
    size_t i;
    json_t *p;
    json_array_foreach(v, i, p)
        buf_printf(b, "%s%s %.3f", i ? ", " : "", js_str(p, "name"), js_num(p, "seconds"));
}

static void put_json(struct buf *b, json_t *v)
{
    char *s = json_dumps(v, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    buf_puts(b, s ? s : "null");
    free(s);
}

// A value as text, not yet escaped; nothing for null.
static void put_raw(struct buf *b, const struct field *f, json_t *v)
{
    if (v == NULL || json_is_null(v))
        return;
    if (json_is_string(v))
        buf_puts(b, json_string_value(v));
    else if (f->kind == FIELD_PHASES)
        put_phases(b, v);
    else
        put_json(b, v);
}

static void put_age(struct buf *b, const char *s)
{
    int64_t t;
    if (when_parse(s, &t) == 0)
        text_age(b, (wall_now_ns() - t) / MONO_S);
    else
        buf_puts(b, s);
}

static void put_human(struct buf *b, const struct field *f, json_t *v)
{
    bool time = f->kind == FIELD_TIME || f->kind == FIELD_TIME_MS;
    if (time && json_is_string(v))
        text_time(b, json_string_value(v), f->kind == FIELD_TIME_MS);
    else if (f->kind == FIELD_AGE && json_is_string(v))
        put_age(b, json_string_value(v));
    else if (f->kind == FIELD_COUNT && json_is_integer(v))
        text_count(b, json_integer_value(v));
    else if (f->kind == FIELD_HEX && json_is_integer(v))
        buf_printf(b, "0x%llx", (unsigned long long)json_integer_value(v));
    else if (f->kind == FIELD_SECONDS && json_is_number(v))
        buf_printf(b, "%.3f", json_number_value(v));
    else if (f->kind == FIELD_SHARE && json_is_number(v))
        text_share(b, json_number_value(v));
    else if (f->kind == FIELD_RATE && json_is_number(v))
        text_rate(b, json_number_value(v));
    else if (f->kind == FIELD_BYTES && json_is_number(v))
        text_bytes(b, json_number_value(v), "");
    else if (f->kind == FIELD_FIGURE && json_is_number(v))
        text_figure(b, json_number_value(v));
    else if (json_is_boolean(v))
        buf_puts(b, json_is_true(v) ? "yes" : "no");
    else
        put_raw(b, f, v);
}

// A cell of a table, escaped, in b (cleared first).
static void cell(struct out *o, struct buf *b, const struct field *f, json_t *item)
{
    struct buf raw = {0};
    put_human(&raw, f, field_value(f, item));
    buf_clear(b);
    if (raw.len == 0)
        buf_putc(b, '-');
    else
        text_escape(b, raw.data, o->utf8);
    buf_done(&raw);
}

static bool is_right(const struct field *f)
{
    return f->kind == FIELD_NUMBER || f->kind == FIELD_COUNT || f->kind == FIELD_SECONDS ||
           f->kind == FIELD_AGE || f->kind == FIELD_HEX || f->kind == FIELD_SHARE || f->kind == FIELD_RATE ||
           f->kind == FIELD_FIGURE || f->kind == FIELD_BYTES;
}

static enum colour state_colour(const char *s)
{
    static const struct {
        const char *word;
        enum colour colour;
    } known[] = {
        {"active", COLOUR_GREEN},    {"up", COLOUR_GREEN},           {"yes", COLOUR_GREEN},
        {"down", COLOUR_RED},        {"failed", COLOUR_RED},         {"error", COLOUR_RED},
        {"no", COLOUR_RED},          {"init", COLOUR_YELLOW},        {"armed", COLOUR_YELLOW},
        {"warning", COLOUR_YELLOW},  {"bringing-up", COLOUR_YELLOW}, {"standby", COLOUR_YELLOW},
        {"healthy", COLOUR_GREEN},   {"failing", COLOUR_RED},        {"flapping", COLOUR_RED},
        {"degraded", COLOUR_YELLOW}, {"critical", COLOUR_RED},       {"major", COLOUR_RED},
        {"minor", COLOUR_YELLOW},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcasecmp(s, known[i].word) == 0)
            return known[i].colour;
    return COLOUR_NONE;
}

static void colour_on(struct out *o, enum colour c)
{
    static const char *const code[] = {"", "\033[1m", "\033[2m", "\033[31m", "\033[33m", "\033[32m"};
    if (o->colour)
        buf_puts(&o->text, code[c]);
}

static void colour_off(struct out *o, enum colour c)
{
    if (o->colour && c != COLOUR_NONE)
        buf_puts(&o->text, "\033[0m");
}

static bool is_column(const struct field *f)
{
    return !(f->flags & FIELD_WIDE);
}

// How wide each column is; below: sentences have no column.
struct widths {
    unsigned at[FIELDS_MAX];
    bool below;
};

static bool has_column(const struct widths *w, const struct field *f)
{
    return is_column(f) && !(w->below && (f->flags & FIELD_BELOW));
}

static unsigned total_of(const struct widths *w, const struct field *fields)
{
    unsigned total = 0;
    for (unsigned i = 0; fields[i].key && i < FIELDS_MAX; i++)
        if (has_column(w, &fields[i]))
            total += w->at[i] + GAP;
    return total - (total ? GAP : 0);
}

static void shrink(const struct out *o, const struct field *fields, struct widths *w)
{
    unsigned *width = w->at;
    w->below = o->width > 0 && total_of(w, fields) > o->width;
    for (unsigned total = total_of(w, fields); o->width > 0 && total > o->width; total--) {
        unsigned widest = FIELDS_MAX;
        for (unsigned i = 0; fields[i].key; i++)
            if (has_column(w, &fields[i]) && (fields[i].flags & FIELD_SHRINK) && width[i] > SHRUNK_MIN &&
                (widest == FIELDS_MAX || width[i] > width[widest]))
                widest = i;
        if (widest == FIELDS_MAX)
            return;
        width[widest]--;
    }
}

static void measure(struct out *o, const struct field *fields, json_t *items, struct widths *ret)
{
    unsigned *width = ret->at;
    struct buf b = {0};
    size_t k;
    json_t *item;

    for (unsigned i = 0; fields[i].key && i < FIELDS_MAX; i++) {
        width[i] = 0;
        if (!is_column(&fields[i]))
            continue;
        width[i] = o->header ? text_width(fields[i].title) : 0;
        json_array_foreach(items, k, item)
        {
            cell(o, &b, &fields[i], item);
            unsigned w = text_width(b.data);
            width[i] = w > width[i] ? w : width[i];
        }
    }
    buf_done(&b);
    shrink(o, fields, ret);
}

static void trim(struct buf *b)
{
    while (b->len > 0 && b->data[b->len - 1] == ' ')
        b->data[--b->len] = 0;
}

static void sentences(struct out *o, const struct field *fields, json_t *item)
{
    struct buf b = {0};
    for (unsigned i = 0; fields[i].key && i < FIELDS_MAX; i++) {
        if (!is_column(&fields[i]) || !(fields[i].flags & FIELD_BELOW))
            continue;
        cell(o, &b, &fields[i], item);
        if (b.len == 0 || strcmp(b.data, "-") == 0)
            continue;
        buf_printf(&o->text, "%*s%s", BELOW, "", b.data);
        out_wrap(o, BELOW);
    }
    buf_done(&b);
}

// item NULL: the titles.
static void table_row(struct out *o, const struct field *fields, json_t *item, const struct widths *w)
{
    struct buf b = {0};
    bool first = true;

    for (unsigned i = 0; fields[i].key && i < FIELDS_MAX; i++) {
        const struct field *f = &fields[i];
        enum colour c = item == NULL ? COLOUR_BOLD : COLOUR_NONE;
        if (!has_column(w, f))
            continue;
        buf_clear(&b);
        if (item == NULL)
            buf_puts(&b, f->title);
        else
            cell(o, &b, f, item);
        if (item != NULL && (f->flags & FIELD_STATE))
            c = state_colour(b.data);
        buf_puts(&o->text, first ? "" : "  ");
        colour_on(o, c);
        text_fit(&o->text, b.data, w->at[i], is_right(f), o->utf8);
        colour_off(o, c);
        first = false;
    }
    trim(&o->text);
    buf_putc(&o->text, '\n');
    buf_done(&b);
    if (w->below && item != NULL)
        sentences(o, fields, item);
}

// Quoted where it has to be. A text that a spreadsheet would compute gets an apostrophe, as in the API's CSV.
static void csv_cell(struct out *o, const char *s, bool text)
{
    struct buf b = {0};
    text_escape(&b, s, true);
    bool formula = text && b.data != NULL && b.data[0] != 0 && strchr("=+-@", b.data[0]) != NULL;
    if (b.data != NULL && (formula || strpbrk(b.data, ",\"") != NULL)) {
        buf_puts(&o->text, formula ? "\"'" : "\"");
        for (const char *p = b.data; *p; p++) {
            if (*p == '"')
                buf_putc(&o->text, '"');
            buf_putc(&o->text, *p);
        }
        buf_putc(&o->text, '"');
    } else if (b.data != NULL) {
        buf_puts(&o->text, b.data);
    }
    buf_done(&b);
}

static void csv_row(struct out *o, const struct field *fields, json_t *item)
{
    struct buf b = {0};
    for (unsigned i = 0; fields[i].key; i++) {
        buf_clear(&b);
        buf_puts(&b, "");
        if (item == NULL)
            buf_puts(&b, fields[i].key);
        else
            put_raw(&b, &fields[i], field_value(&fields[i], item));
        buf_puts(&o->text, i ? "," : "");
        if (b.len > 0)
            csv_cell(o, b.data, item != NULL && json_is_string(field_value(&fields[i], item)));
    }
    buf_putc(&o->text, '\n');
    buf_done(&b);
}

json_t *out_pack(const struct field *fields, json_t *item)
{
    json_t *r = json_object();
    for (unsigned i = 0; fields[i].key; i++) {
        json_t *v = field_value(&fields[i], item);
        json_object_set_new(r, fields[i].key, v ? json_incref(v) : json_null());
    }
    return r;
}

json_t *out_pack_list(const struct field *fields, json_t *items)
{
    json_t *a = json_array(), *item;
    size_t i;
    json_array_foreach(items, i, item) json_array_append_new(a, out_pack(fields, item));
    return a;
}

static void json_row(struct out *o, const struct field *fields, json_t *item)
{
    json_t *r = out_pack(fields, item);
    put_json(&o->text, r);
    json_decref(r);
}

static void json_list(struct out *o, const struct field *fields, json_t *items)
{
    size_t i;
    json_t *item;
    buf_puts(&o->text, "[");
    json_array_foreach(items, i, item)
    {
        buf_puts(&o->text, i ? ",\n" : "\n");
        json_row(o, fields, item);
    }
    buf_puts(&o->text, json_array_size(items) ? "\n]\n" : "]\n");
}

void out_list(struct out *o, const struct field *fields, json_t *items)
{
    struct widths width = {0};
    size_t i;
    json_t *item;

    switch (o->format) {
    case OUT_JSON:
        json_list(o, fields, items);
        return;
    case OUT_CSV:
        if (o->header)
            csv_row(o, fields, NULL);
        json_array_foreach(items, i, item) csv_row(o, fields, item);
        return;
    case OUT_TABLE:
        measure(o, fields, items, &width);
        if (o->header)
            table_row(o, fields, NULL, &width);
        json_array_foreach(items, i, item) table_row(o, fields, item, &width);
        return;
    }
}

static void object_lines(struct out *o, const struct field *fields, json_t *object)
{
    struct buf b = {0};
    unsigned width = 0;

    for (unsigned i = 0; fields[i].key; i++) {
        unsigned w = text_width(fields[i].key);
        width = w > width ? w : width;
    }
    for (unsigned i = 0; fields[i].key; i++) {
        struct field f = fields[i];
        f.kind = f.kind == FIELD_AGE ? FIELD_TIME : f.kind;
        cell(o, &b, &f, object);
        enum colour c = fields[i].flags & FIELD_STATE ? state_colour(b.data) : COLOUR_NONE;
        text_fit(&o->text, fields[i].key, width + GAP, false, o->utf8);
        colour_on(o, c);
        buf_puts(&o->text, b.data);
        colour_off(o, c);
        buf_putc(&o->text, '\n');
    }
    buf_done(&b);
}

void out_object(struct out *o, const struct field *fields, json_t *object)
{
    switch (o->format) {
    case OUT_JSON:
        json_row(o, fields, object);
        buf_putc(&o->text, '\n');
        return;
    case OUT_CSV:
        if (o->header)
            csv_row(o, fields, NULL);
        csv_row(o, fields, object);
        return;
    case OUT_TABLE:
        object_lines(o, fields, object);
        return;
    }
}

static void record_line(struct out *o, const struct field *fields, json_t *item, bool first)
{
    struct widths width = {0};
    struct buf b = {0};

    for (unsigned i = 0; fields[i].key && i < FIELDS_MAX; i++) {
        if (!is_column(&fields[i]))
            continue;
        cell(o, &b, &fields[i], item);
        unsigned w = text_width(b.data), t = text_width(fields[i].title);
        width.at[i] = w > t ? w : t;
    }
    buf_done(&b);
    if (first && o->header)
        table_row(o, fields, NULL, &width);
    table_row(o, fields, item, &width);
}

void out_record(struct out *o, const struct field *fields, json_t *item, bool first)
{
    switch (o->format) {
    case OUT_JSON:
        json_row(o, fields, item);
        buf_putc(&o->text, '\n');
        return;
    case OUT_CSV:
        if (first && o->header)
            csv_row(o, fields, NULL);
        csv_row(o, fields, item);
        return;
    case OUT_TABLE:
        record_line(o, fields, item, first);
        return;
    }
}

void out_json(struct out *o, json_t *v)
{
    char *s = json_dumps(v, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
    buf_puts(&o->text, s ? s : "null");
    buf_putc(&o->text, '\n');
    free(s);
}

static void add_escaped(struct out *o, const char *fmt, va_list ap)
{
    char *s = NULL;
    if (vasprintf(&s, fmt, ap) < 0)
        abort();
    text_escape(&o->text, s, o->utf8);
    free(s);
}

void out_printf(struct out *o, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add_escaped(o, fmt, ap);
    va_end(ap);
}

void out_paint(struct out *o, enum colour c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    colour_on(o, c);
    add_escaped(o, fmt, ap);
    colour_off(o, c);
    va_end(ap);
}

void out_newline(struct out *o)
{
    trim(&o->text);
    buf_putc(&o->text, '\n');
}

// Bytes at p that take no column: an escape sequence of ours.
static size_t sequence(const char *p)
{
    return p[0] == '\033' && p[1] == '[' ? strcspn(p, "m") + (strchr(p, 'm') != NULL) : 0;
}

// Bytes of the word at p, with the blanks before it; and its columns.
static size_t next_word(const char *p, unsigned *ret_columns)
{
    struct buf plain = {0};
    const char *start = p;
    bool word = false;

    buf_puts(&plain, "");
    while (*p && !(word && *p == ' ')) {
        size_t skip = sequence(p);
        word |= skip == 0 && *p != ' ';
        if (skip == 0)
            buf_putc(&plain, *p);
        p += skip ? skip : 1;
    }
    *ret_columns = text_width(plain.data);
    buf_done(&plain);
    return (size_t)(p - start);
}

void out_wrap(struct out *o, unsigned indent)
{
    struct buf line = {0};
    size_t start = o->text.len;
    unsigned at = 0, columns;

    while (start > 0 && o->text.data[start - 1] != '\n')
        start--;
    if (o->width == 0 || o->text.len == start) {
        out_newline(o);
        return;
    }
    buf_add(&line, o->text.data + start, o->text.len - start);
    o->text.data[o->text.len = start] = 0;
    for (const char *p = line.data; *p;) {
        size_t n = next_word(p, &columns);
        if (at > indent && at + columns > o->width) {
            out_newline(o);
            for (at = 0; at < indent; at++)
                buf_putc(&o->text, ' ');
            size_t blanks = strspn(p, " ");
            p += blanks;
            n -= blanks;
            columns -= (unsigned)blanks;
        }
        buf_add(&o->text, p, n);
        at += columns;
        p += n;
    }
    out_newline(o);
    buf_done(&line);
}

int out_flush(struct out *o)
{
    size_t at = 0;
    while (at < o->text.len) {
        ssize_t n = write(STDOUT_FILENO, o->text.data + at, o->text.len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        at += (size_t)n;
    }
    buf_clear(&o->text);
    return 0;
}

void out_done(struct out *o)
{
    buf_done(&o->text);
}

void out_with(struct out *o, const struct field *fields, json_t *one, const char *key,
              const struct field *sub_fields)
{
    json_t *list = json_object_get(one, key);
    if (o->format == OUT_JSON) {
        json_t *whole = out_pack(fields, one);
        json_object_set_new(whole, key, out_pack_list(sub_fields, list));
        out_json(o, whole);
        json_decref(whole);
        return;
    }
    out_object(o, fields, one);
    if (o->format == OUT_TABLE && json_array_size(list) > 0) {
        out_newline(o);
        out_list(o, sub_fields, list);
    }
}
