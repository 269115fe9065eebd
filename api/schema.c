// SPDX-License-Identifier: Apache-2.0
#include "api/schema.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "lib/err.h"
#include "lib/guid.h"
#include "lib/mono.h"
#include "lib/text.h"

#define AT(p, f, type) ((const type *)(const void *)((const char *)(p) + (f)->at))

// --- JSON ---

// As buf_add(), inlined where there is room: a list of ten thousand ports is a million of these. The NUL
// behind the text is set where a public function ends.
static inline void put(struct buf *b, const char *p, size_t n)
{
    if (__builtin_expect(b->len + n >= b->cap, 0))
        buf_reserve(b, n + 4096);
    memcpy(b->data + b->len, p, n);
    b->len += n;
}

static inline void put_char(struct buf *b, char c)
{
    if (__builtin_expect(b->len + 1 >= b->cap, 0))
        buf_reserve(b, 4096);
    b->data[b->len++] = c;
}

static void put_escaped(struct buf *b, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char u[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    switch (c) {
    case '"':
        put(b, "\\\"", 2);
        break;
    case '\\':
        put(b, "\\\\", 2);
        break;
    case '\n':
        put(b, "\\n", 2);
        break;
    case '\t':
        put(b, "\\t", 2);
        break;
    case '\r':
        put(b, "\\r", 2);
        break;
    default:
        put(b, u, 6);
    }
}

// Characters that stand for themselves.
static const bool plain[256] = {[0x20 ... 0x21] = true, [0x23 ... 0x5b] = true, [0x5d ... 0x7e] = true};

static void put_string(struct buf *b, const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t start = 0, i = 0;

    put_char(b, '"');
    while (i < len) {
        unsigned char c = s[i];
        if (plain[c]) {
            i++;
            continue;
        }
        size_t n = c >= 0x80 ? text_char_len(s + i, len - i) : 0;
        if (n != 0) {
            i += n;
            continue;
        }
        put(b, text + start, i - start);
        if (c >= 0x80)
            put(b, "\xef\xbf\xbd", 3);
        else
            put_escaped(b, c);
        start = ++i;
    }
    put(b, text + start, len - start);
    put_char(b, '"');
}

static void put_int(struct buf *b, int64_t v)
{
    char t[24], *p = t + sizeof(t);
    uint64_t u = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do
        *--p = (char)('0' + u % 10);
    while ((u /= 10) != 0);
    if (v < 0)
        *--p = '-';
    put(b, p, (size_t)(t + sizeof(t) - p));
}

static void put_guid(struct buf *b, uint64_t guid)
{
    static const char hex[] = "0123456789abcdef";
    char t[20] = "\"0x";
    for (int i = 0; i < 16; i++)
        t[3 + i] = hex[(guid >> (60 - 4 * i)) & 15];
    t[19] = '"';
    put(b, t, 20);
}

static void put_num(struct buf *b, double v)
{
    char t[40];
    int n = snprintf(t, sizeof(t), "%.9g", v);
    put(b, t, (size_t)n);
}

static void put_time(struct buf *b, int64_t ns)
{
    char t[40];
    wall_format(ns, t, sizeof(t));
    put_string(b, t, strlen(t));
}

static void put_struct(struct buf *b, const struct schema *s, const void *p);

static void put_list(struct buf *b, const struct field *f, const struct items *l)
{
    const char *p = l->item;
    put_char(b, '[');
    for (size_t i = 0; i < l->n; i++) {
        if (i > 0)
            put_char(b, ',');
        if (f->type == FIELD_STRINGS) {
            const char *s = ((const char *const *)l->item)[i];
            put_string(b, s, strlen(s));
        } else {
            put_struct(b, f->sub, p + i * f->sub->size);
        }
    }
    put_char(b, ']');
}

static bool is_null(const struct field *f, const void *p)
{
    switch (f->type) {
    case FIELD_INT:
        return *AT(p, f, int64_t) == NO_INT;
    case FIELD_NUM:
        return !isfinite(*AT(p, f, double));
    case FIELD_GUID:
        return *AT(p, f, uint64_t) == 0;
    case FIELD_TIME:
        return *AT(p, f, int64_t) == 0;
    case FIELD_STR:
    case FIELD_RAW:
    case FIELD_OBJ:
        return *AT(p, f, void *) == NULL;
    case FIELD_BOOL:
    case FIELD_LIST:
    case FIELD_STRINGS:
        return false;
    }
    return true;
}

static void put_value(struct buf *b, const struct field *f, const void *p)
{
    const char *s;

    if (is_null(f, p)) {
        put(b, "null", 4);
        return;
    }
    switch (f->type) {
    case FIELD_BOOL:
        *AT(p, f, bool) ? put(b, "true", 4) : put(b, "false", 5);
        break;
    case FIELD_INT:
        put_int(b, *AT(p, f, int64_t));
        break;
    case FIELD_NUM:
        put_num(b, *AT(p, f, double));
        break;
    case FIELD_STR:
        s = *AT(p, f, char *);
        put_string(b, s, strlen(s));
        break;
    case FIELD_GUID:
        put_guid(b, *AT(p, f, uint64_t));
        break;
    case FIELD_TIME:
        put_time(b, *AT(p, f, int64_t));
        break;
    case FIELD_RAW:
        s = *AT(p, f, char *);
        put(b, s, strlen(s));
        break;
    case FIELD_OBJ:
        put_struct(b, f->sub, *AT(p, f, void *));
        break;
    case FIELD_LIST:
    case FIELD_STRINGS:
        put_list(b, f, AT(p, f, struct items));
        break;
    }
}

static void put_struct(struct buf *b, const struct schema *s, const void *p)
{
    put_char(b, '{');
    for (const struct field *f = s->field; f->name != NULL; f++) {
        if (f != s->field)
            put_char(b, ',');
        put_char(b, '"');
        put(b, f->name, strlen(f->name));
        put(b, "\":", 2);
        put_value(b, f, p);
    }
    put_char(b, '}');
}

void json_put_string(struct buf *b, const char *s, size_t len)
{
    put_string(b, s, len);
    b->data[b->len] = 0;
}

void json_put_struct(struct buf *b, const struct schema *s, const void *p)
{
    put_struct(b, s, p);
    b->data[b->len] = 0;
}

// --- CSV ---

static void csv_put_text(struct buf *b, const char *s)
{
    bool formula = *s != 0 && strchr("=+-@\t\r", *s) != NULL;
    if (!formula && strpbrk(s, ",\"\r\n") == NULL) {
        buf_puts(b, s);
        return;
    }
    buf_putc(b, '"');
    if (formula)
        buf_putc(b, '\'');
    for (; *s != 0; s++) {
        if (*s == '"')
            buf_putc(b, '"');
        buf_putc(b, *s);
    }
    buf_putc(b, '"');
}

static bool csv_skips(const struct field *f)
{
    return f->type == FIELD_LIST || f->type == FIELD_STRINGS || f->type == FIELD_RAW;
}

static void csv_head(struct buf *b, const struct schema *s, const char *prefix, bool *first)
{
    char name[120];
    for (const struct field *f = s->field; f->name != NULL; f++) {
        if (csv_skips(f))
            continue;
        snprintf(name, sizeof(name), "%s%s", prefix, f->name);
        if (f->type == FIELD_OBJ) {
            strncat(name, ".", sizeof(name) - strlen(name) - 1);
            csv_head(b, f->sub, name, first);
            continue;
        }
        if (!*first)
            buf_putc(b, ',');
        *first = false;
        buf_puts(b, name);
    }
}

void csv_put_head(struct buf *b, const struct schema *s)
{
    bool first = true;
    csv_head(b, s, "", &first);
    buf_add(b, "\r\n", 2);
}

static void csv_value(struct buf *b, const struct field *f, const void *p)
{
    struct buf t = {0};
    if (p == NULL || is_null(f, p))
        return;
    if (f->type == FIELD_STR) {
        csv_put_text(b, *AT(p, f, char *));
        return;
    }
    put_value(&t, f, p);
    if (t.len >= 2 && t.data[0] == '"') // GUIDs and times
        buf_add(b, t.data + 1, t.len - 2);
    else
        buf_add(b, t.data, t.len);
    buf_done(&t);
}

static void csv_row(struct buf *b, const struct schema *s, const void *p, bool *first)
{
    for (const struct field *f = s->field; f->name != NULL; f++) {
        if (csv_skips(f))
            continue;
        if (f->type == FIELD_OBJ) {
            csv_row(b, f->sub, p == NULL ? NULL : *AT(p, f, void *), first);
            continue;
        }
        if (!*first)
            buf_putc(b, ',');
        *first = false;
        csv_value(b, f, p);
    }
}

void csv_put_row(struct buf *b, const struct schema *s, const void *p)
{
    bool first = true;
    csv_row(b, s, p, &first);
    buf_add(b, "\r\n", 2);
}

// --- bodies ---

static const char *type_words(const struct field *f)
{
    switch (f->type) {
    case FIELD_BOOL:
        return "true or false";
    case FIELD_INT:
        return "a whole number";
    case FIELD_NUM:
        return "a number";
    case FIELD_STRINGS:
        return "a list of strings";
    case FIELD_GUID:
    case FIELD_TIME:
    case FIELD_STR:
        return "a string";
    case FIELD_RAW:
    case FIELD_OBJ:
    case FIELD_LIST:
        return "an object";
    }
    return "?";
}

static bool right_type(const struct field *f, const json_t *v)
{
    switch (f->type) {
    case FIELD_BOOL:
        return json_is_boolean(v);
    case FIELD_INT:
        return json_is_integer(v);
    case FIELD_NUM:
        return json_is_number(v);
    case FIELD_STRINGS:
        if (!json_is_array(v))
            return false;
        for (size_t i = 0; i < json_array_size(v); i++)
            if (!json_is_string(json_array_get(v, i)))
                return false;
        return true;
    case FIELD_GUID:
    case FIELD_TIME:
    case FIELD_STR:
        return json_is_string(v);
    case FIELD_RAW:
    case FIELD_OBJ:
    case FIELD_LIST:
        return json_is_object(v);
    }
    return false;
}

static void list_fields(const struct schema *s, struct buf *b)
{
    for (const struct field *f = s->field; f->name != NULL; f++)
        buf_printf(b, "%s%s", f == s->field ? "" : ", ", f->name);
}

static int unknown_key(const struct schema *s, const char *key, struct err *e)
{
    struct buf b = {0};
    list_fields(s, &b);
    err_set(e, -EINVAL, key, "unknown field \"%.80s\"; known: %s", key, b.data ? b.data : "none");
    buf_done(&b);
    return -EINVAL;
}

static int check_names(const struct field *f, const char *v, struct err *e)
{
    struct buf b = {0};
    for (const char *const *n = f->name_of; *n != NULL; n++) {
        if (strcmp(*n, v) == 0) {
            buf_done(&b);
            return 0;
        }
        buf_printf(&b, "%s%s", n == f->name_of ? "" : ", ", *n);
    }
    err_set(e, -EINVAL, f->name, "\"%s\" must be one of %s, not \"%.60s\"", f->name, b.data, v);
    buf_done(&b);
    return -EINVAL;
}

static int check_value(const struct field *f, const json_t *v, struct err *e)
{
    if (!right_type(f, v))
        return err_set(e, -EINVAL, f->name, "\"%s\" must be %s", f->name, type_words(f));
    double n = json_number_value(v);
    if ((f->type == FIELD_INT || f->type == FIELD_NUM) && f->max > f->min && !(n >= f->min && n <= f->max))
        return err_set(e, -EINVAL, f->name, "\"%s\" must be %g to %g", f->name, f->min, f->max);
    if (f->type == FIELD_STR && f->name_of != NULL)
        return check_names(f, json_string_value(v), e);
    return 0;
}

int schema_check_body(const struct schema *s, const json_t *body, struct err *e)
{
    const char *key;
    json_t *v;
    int rc = 0;

    if (!json_is_object(body))
        return err_set(e, -EINVAL, NULL, "the body must be a JSON object");
    json_object_foreach((json_t *)body, key, v)
    {
        const struct field *f = s->field;
        while (f->name != NULL && strcmp(f->name, key) != 0)
            f++;
        if (f->name == NULL)
            return unknown_key(s, key, e);
        if ((rc = check_value(f, v, e)) != 0)
            return rc;
    }
    for (const struct field *f = s->field; f->name != NULL; f++)
        if (f->need && json_object_get(body, f->name) == NULL)
            return err_set(e, -EINVAL, f->name, "the field \"%s\" is missing: %s", f->name, f->doc);
    return 0;
}

// --- OpenAPI ---

static json_t *ref_to(const struct schema *s)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/components/schemas/%s", s->name));
}

static json_t *type_openapi(const struct field *f)
{
    switch (f->type) {
    case FIELD_BOOL:
        return json_pack("{s:s}", "type", "boolean");
    case FIELD_INT:
        return json_pack("{s:s}", "type", "integer");
    case FIELD_NUM:
        return json_pack("{s:s}", "type", "number");
    case FIELD_STR:
        return json_pack("{s:s}", "type", "string");
    case FIELD_GUID:
        return json_pack("{s:s, s:s}", "type", "string", "pattern", "^0x[0-9a-f]{16}$");
    case FIELD_TIME:
        return json_pack("{s:s, s:s}", "type", "string", "format", "date-time");
    case FIELD_RAW:
        return f->sub != NULL ? ref_to(f->sub) : json_pack("{s:s}", "type", "object");
    case FIELD_OBJ:
        return ref_to(f->sub);
    case FIELD_LIST:
        return json_pack("{s:s, s:o}", "type", "array", "items", ref_to(f->sub));
    case FIELD_STRINGS:
        return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
    }
    return json_object();
}

json_t *schema_field_openapi(const struct field *f)
{
    json_t *o = type_openapi(f);
    if (f->name_of != NULL) {
        json_t *a = json_array();
        for (const char *const *n = f->name_of; *n != NULL; n++)
            json_array_append_new(a, json_string(*n));
        if (f->null)
            json_array_append_new(a, json_null());
        json_object_set_new(o, "enum", a);
    }
    if (f->max > f->min) {
        json_object_set_new(o, "minimum", json_real(f->min));
        json_object_set_new(o, "maximum", json_real(f->max));
    }
    if (f->null && f->sub != NULL)
        o = json_pack("{s:[o, {s:s}]}", "oneOf", o, "type", "null");
    else if (f->null)
        json_object_set_new(o, "type", json_pack("[O, s]", json_object_get(o, "type"), "null"));
    json_object_set_new(o, "description", json_string(f->doc));
    return o;
}

json_t *schema_openapi(const struct schema *s)
{
    json_t *props = json_object(), *need = json_array();
    for (const struct field *f = s->field; f->name != NULL; f++) {
        json_object_set_new(props, f->name, schema_field_openapi(f));
        if (f->need || !s->body)
            json_array_append_new(need, json_string(f->name));
    }
    json_t *o = json_pack("{s:s, s:s, s:o}", "type", "object", "description", s->doc, "properties", props);
    json_object_set_new(o, "required", need);
    json_object_set_new(o, "additionalProperties", json_false());
    return o;
}
