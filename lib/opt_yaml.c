// SPDX-License-Identifier: Apache-2.0
// The file: libyaml's events walked strictly over the rows. Recursion goes as deep as the schema, never as
// deep as the input: what the schema does not expect is an error at its first event.
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "lib/arena.h"
#include "lib/err.h"
#include "lib/opt_priv.h"
#include "lib/xalloc.h"

struct walk {
    yaml_parser_t parser;
    yaml_event_t ev; // the present one
    const struct opt_row *root;
    const char *name; // of the file
    const char *text; // without a byte order mark
    size_t len;
    struct arena *arena;
    struct err *err;
    struct buf path, msg;
};

static __attribute__((format(printf, 3, 4))) int fail(struct walk *w, yaml_mark_t at, const char *fmt, ...)
{
    char where[200];
    struct buf text = {0};
    va_list ap;

    va_start(ap, fmt);
    char *s = NULL;
    if (vasprintf(&s, fmt, ap) < 0)
        abort();
    va_end(ap);
    if (w->path.len)
        buf_printf(&text, "%s: ", w->path.data);
    buf_puts(&text, s);
    snprintf(where, sizeof(where), "%.160s:%zu:%zu", w->name, at.line + 1, at.column + 1);
    err_set(w->err, -EINVAL, where, "%s", text.data);
    buf_done(&text);
    free(s);
    return -EINVAL;
}

// --- events ---

// Errors of the reader (bytes that are no UTF-8) have no mark, only a distance from the start.
static yaml_mark_t mark_of(const struct walk *w, size_t offset)
{
    yaml_mark_t at = {0};

    for (size_t i = 0; i < offset && i < w->len; i++) {
        at.column++;
        if (w->text[i] == '\n') {
            at.line++;
            at.column = 0;
        }
    }
    return at;
}

static int syntax_error(struct walk *w)
{
    const yaml_parser_t *p = &w->parser;
    yaml_mark_t at = p->error == YAML_READER_ERROR ? mark_of(w, p->problem_offset) : p->problem_mark;

    buf_clear(&w->path); // the parser reads ahead: the key is not the one at fault
    if (p->context && p->context_mark.line != at.line)
        return fail(w, at, "not valid YAML: %s (%s at line %zu)", p->problem, p->context,
                    p->context_mark.line + 1);
    return fail(w, at, "not valid YAML: %s", p->problem ? p->problem : "cannot be parsed");
}

static int refuse_extras(struct walk *w)
{
    const yaml_event_t *ev = &w->ev;
    const yaml_char_t *anchor = NULL, *tag = NULL;

    if (ev->type == YAML_SCALAR_EVENT) {
        anchor = ev->data.scalar.anchor;
        tag = ev->data.scalar.tag;
        if (strlen((const char *)ev->data.scalar.value) != ev->data.scalar.length)
            return fail(w, ev->start_mark, "a NUL character is not allowed");
    } else if (ev->type == YAML_MAPPING_START_EVENT) {
        anchor = ev->data.mapping_start.anchor;
        tag = ev->data.mapping_start.tag;
    } else if (ev->type == YAML_SEQUENCE_START_EVENT) {
        anchor = ev->data.sequence_start.anchor;
        tag = ev->data.sequence_start.tag;
    } else if (ev->type == YAML_ALIAS_EVENT) {
        return fail(w, ev->start_mark, "aliases (*name) are not supported: write the value out");
    }
    if (anchor)
        return fail(w, ev->start_mark, "anchors (&name) are not supported: write the value out");
    if (tag)
        return fail(w, ev->start_mark, "tags (!name) are not supported");
    return 0;
}

static int next(struct walk *w)
{
    yaml_event_delete(&w->ev);
    if (!yaml_parser_parse(&w->parser, &w->ev)) {
        memset(&w->ev, 0, sizeof(w->ev));
        return syntax_error(w);
    }
    return refuse_extras(w);
}

static const char *scalar(const struct walk *w)
{
    return (const char *)w->ev.data.scalar.value;
}

// `key:` with nothing behind it, or ~ or null.
static bool is_nothing(const struct walk *w)
{
    return w->ev.type == YAML_SCALAR_EVENT && w->ev.data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (!*scalar(w) || !strcmp(scalar(w), "~") || !strcmp(scalar(w), "null"));
}

static int wrong_value(struct walk *w, const struct opt_row *row)
{
    const yaml_event_t *ev = &w->ev;

    buf_clear(&w->msg);
    if (ev->type == YAML_SCALAR_EVENT && !is_nothing(w)) {
        opt_value_complaint(row, scalar(w), &w->msg);
        return fail(w, ev->start_mark, "%s", w->msg.data);
    }
    opt_value_expected(row, &w->msg);
    return fail(w, ev->start_mark, "expected %s, found %s", w->msg.data,
                ev->type == YAML_MAPPING_START_EVENT    ? "a mapping"
                : ev->type == YAML_SEQUENCE_START_EVENT ? "a list"
                                                        : "nothing");
}

// --- values ---

static int load_mapping(struct walk *w, const struct opt_row *rows, void *base);

static int load_section(struct walk *w, const struct opt_row *row, void *field)
{
    if (is_nothing(w)) // all options of the section are commented out
        return 0;
    if (w->ev.type != YAML_MAPPING_START_EVENT)
        return wrong_value(w, row);
    return load_mapping(w, row->sub, field);
}

static int wrong_count(struct walk *w, const struct opt_row *row, yaml_mark_t at, size_t n)
{
    buf_clear(&w->msg);
    opt_value_expected(row, &w->msg);
    return fail(w, at, "expected %s, found %s%zu", w->msg.data, n > OPT_LIST_MAX ? "more than " : "",
                n > OPT_LIST_MAX ? OPT_LIST_MAX : n);
}

static int load_strings(struct walk *w, const struct opt_row *row, struct opt_strings *field)
{
    struct opt_strings s = {0};
    size_t cap = 0;
    int r = 0;
    yaml_mark_t at = w->ev.start_mark;

    if (is_nothing(w)) {
        *field = s;
        return 0;
    }
    if (w->ev.type != YAML_SEQUENCE_START_EVENT)
        return wrong_value(w, row);
    while (!(r = next(w)) && w->ev.type != YAML_SEQUENCE_END_EVENT && s.n <= OPT_LIST_MAX) {
        if (w->ev.type != YAML_SCALAR_EVENT || is_nothing(w)) {
            static const struct opt_row element = {.type = OPT_STRING};
            buf_printf(&w->path, "[%zu]", s.n);
            r = wrong_value(w, &element);
            break;
        }
        if (s.n == cap) {
            cap = cap ? cap * 2 : 16;
            s.item = xreallocarray(s.item, cap, sizeof(*s.item));
        }
        s.item[s.n++] = arena_strdup(w->arena, scalar(w));
    }
    if (!r && !opt_count_ok(row, s.n))
        r = wrong_count(w, row, at, s.n);
    if (!r)
        *field =
            (struct opt_strings){.item = arena_memdup(w->arena, s.item, s.n * sizeof(*s.item)), .n = s.n};
    free(s.item);
    return r;
}

static int load_element(struct walk *w, const struct opt_row *row, size_t i, void *elem)
{
    size_t len = w->path.len;

    buf_printf(&w->path, "[%zu]", i);
    memset(elem, 0, row->elem_size);
    opt_defaults(row->sub, elem, w->arena);
    if (w->ev.type != YAML_MAPPING_START_EVENT)
        return fail(w, w->ev.start_mark, "expected a mapping, found %s",
                    w->ev.type == YAML_SCALAR_EVENT ? is_nothing(w) ? "nothing" : "a single value"
                                                    : "a list");
    int r = load_mapping(w, row->sub, elem);
    if (!r) {
        w->path.len = len;
        w->path.data[len] = '\0';
    }
    return r;
}

static int load_list(struct walk *w, const struct opt_row *row, struct opt_list *field)
{
    size_t n = 0, cap = 0;
    char *item = NULL;
    int r = 0;
    yaml_mark_t at = w->ev.start_mark;

    if (is_nothing(w)) {
        *field = (struct opt_list){0};
        return 0;
    }
    if (w->ev.type != YAML_SEQUENCE_START_EVENT)
        return wrong_value(w, row);
    while (!(r = next(w)) && w->ev.type != YAML_SEQUENCE_END_EVENT && n <= OPT_LIST_MAX) {
        if (n == cap) {
            cap = cap ? cap * 2 : 16;
            item = xreallocarray(item, cap, row->elem_size);
        }
        r = load_element(w, row, n, item + n * row->elem_size);
        if (r)
            break;
        n++;
    }
    if (!r && !opt_count_ok(row, n))
        r = wrong_count(w, row, at, n);
    if (!r)
        *field = (struct opt_list){.item = arena_memdup(w->arena, item, n * row->elem_size), .n = n};
    free(item);
    return r;
}

static int load_value(struct walk *w, const struct opt_row *row, void *field)
{
    int r = next(w);
    if (r)
        return r;
    switch (row->type) {
    case OPT_SECTION:
        return load_section(w, row, field);
    case OPT_LIST:
        return load_list(w, row, field);
    case OPT_STRINGS:
        return load_strings(w, row, field);
    case OPT_BOOL:
    case OPT_INT:
    case OPT_DOUBLE:
    case OPT_DURATION:
    case OPT_SIZE:
    case OPT_STRING:
    case OPT_ENUM:
    case OPT_GUID:
        break;
    }
    if (w->ev.type != YAML_SCALAR_EVENT || is_nothing(w) ||
        opt_value_parse(row, scalar(w), w->arena, field) < 0)
        return wrong_value(w, row);
    return 0;
}

// The present event is a key. line: of the first time each row's key was met, 0 = not yet.
static int load_pair(struct walk *w, const struct opt_row *rows, void *base, size_t *line)
{
    size_t len = w->path.len;
    yaml_mark_t at = w->ev.start_mark;

    if (w->ev.type != YAML_SCALAR_EVENT)
        return fail(w, at, "a key must be a plain name");
    const struct opt_row *row = opt_find(rows, scalar(w));
    buf_puts(&w->path, len ? "." : "");
    opt_show(scalar(w), &w->path);
    if (!row) {
        buf_clear(&w->msg);
        opt_unknown(w->root, rows, scalar(w), &w->msg);
        return fail(w, at, "%s", w->msg.data);
    }
    if (line[row - rows])
        return fail(w, at, "given twice; the first is at line %zu", line[row - rows]);
    line[row - rows] = at.line + 1;
    int r = load_value(w, row, opt_field(row, base));
    if (!r) {
        w->path.len = len;
        w->path.data[len] = '\0';
    }
    return r;
}

static int load_mapping(struct walk *w, const struct opt_row *rows, void *base)
{
    size_t n = 0;
    int r;

    while (rows[n].name)
        n++;
    size_t *line = xcalloc(n, sizeof(*line));
    while (!(r = next(w)) && w->ev.type != YAML_MAPPING_END_EVENT)
        if ((r = load_pair(w, rows, base, line)))
            break;
    free(line);
    return r;
}

// --- the document ---

static int load_document(struct walk *w, void *base)
{
    static const struct opt_row root = {.type = OPT_SECTION};
    int r = next(w);

    if (r)
        return r;
    if (w->ev.type == YAML_MAPPING_START_EVENT)
        r = load_mapping(w, w->root, base);
    else if (!is_nothing(w))
        r = wrong_value(w, &root);
    return r ? r : next(w); // the document's end
}

static int load_stream(struct walk *w, void *base)
{
    int r = next(w); // the stream's start
    if (!r)
        r = next(w);
    if (r || w->ev.type == YAML_STREAM_END_EVENT)
        return r;
    r = load_document(w, base);
    if (!r)
        r = next(w);
    if (!r && w->ev.type != YAML_STREAM_END_EVENT)
        r = fail(w, w->ev.start_mark, "a second document (---) is not allowed");
    return r;
}

int opt_load_text(const struct opt_row *rows, void *base, struct arena *a, const char *text, size_t len,
                  const char *name, struct err *e)
{
    struct walk w = {.root = rows, .name = name, .arena = a, .err = e};

    if (len > OPT_FILE_MAX)
        return err_set(e, -EFBIG, name, "larger than %u bytes", OPT_FILE_MAX);
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { // byte order mark
        text += 3;
        len -= 3;
    }
    if (!yaml_parser_initialize(&w.parser))
        abort();
    w.text = text;
    w.len = len;
    // Else libyaml would guess UTF-16 from the first bytes.
    yaml_parser_set_encoding(&w.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&w.parser, (const unsigned char *)(len ? text : ""), len);
    int r = load_stream(&w, base);
    yaml_event_delete(&w.ev);
    yaml_parser_delete(&w.parser);
    buf_done(&w.path);
    buf_done(&w.msg);
    return r;
}

int opt_load_file(const struct opt_row *rows, void *base, struct arena *a, const char *path, struct err *e)
{
    struct buf text = {0};
    int r = buf_read_file(&text, path, OPT_FILE_MAX);

    if (r == -ENOENT)
        err_set(e, r, path, "no such configuration file");
    else if (r == -EFBIG)
        err_set(e, r, path, "larger than %u bytes", OPT_FILE_MAX);
    else if (r < 0)
        err_set(e, r, path, "cannot read the configuration: %s", strerror(-r));
    else
        r = opt_load_text(rows, base, a, text.data, text.len, path, e);
    buf_done(&text);
    return r;
}
