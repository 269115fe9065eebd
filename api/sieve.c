// SPDX-License-Identifier: Apache-2.0
// Which rows of a list are wanted: the focus language (lib/focus.h) on rows of a schema. Fields are called as
// in the JSON; of an object within "object.field".
#include "api/sieve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/mono.h"
#include "lib/xalloc.h"

#define AT(p, f, type) (*(const type *)(const void *)((const char *)(p) + (f)->at))

struct column {
    char *name;
    const struct field *outer; // NULL: in the row itself
    const struct field *field;
};
struct sieve {
    struct focus *focus;
    struct column *col;
    unsigned num;
    char text[40]; // of the value asked last
};

static void add(struct sieve *s, const struct field *outer, const struct field *f)
{
    s->col = xreallocarray(s->col, s->num + 1, sizeof(*s->col));
    s->col[s->num++] =
        (struct column){.name = outer ? xasprintf("%s.%s", outer->name, f->name) : xstrdup(f->name),
                        .outer = outer,
                        .field = f};
}

static bool has_value(const struct field *f)
{
    return f->type != FIELD_OBJ && f->type != FIELD_LIST && f->type != FIELD_STRINGS && f->type != FIELD_RAW;
}

static void add_all(struct sieve *s, const struct schema *schema)
{
    for (const struct field *f = schema->field; f->name != NULL; f++) {
        if (has_value(f))
            add(s, NULL, f);
        for (const struct field *g = f->type == FIELD_OBJ ? f->sub->field : NULL; g && g->name; g++)
            if (has_value(g))
                add(s, f, g);
    }
}

static const char *name_of(const void *arg, unsigned i)
{
    const struct sieve *s = arg;
    return i < s->num ? s->col[i].name : NULL;
}

struct sieve *sieve_new(const char *text, const struct schema *schema, const char *names, struct err *e)
{
    struct sieve *s = xcalloc(1, sizeof(*s));
    add_all(s, schema);
    s->focus = focus_new(text, &(struct focus_fields){.name = name_of, .arg = s, .names = names}, e);
    if (s->focus != NULL)
        return s;
    sieve_free(s);
    return NULL;
}

void sieve_free(struct sieve *s)
{
    if (s == NULL)
        return;
    focus_free(s->focus);
    for (unsigned i = 0; i < s->num; i++)
        free(s->col[i].name);
    free(s->col);
    free(s);
}

struct row {
    struct sieve *s;
    const void *p;
};

static void value_in(struct sieve *s, const struct field *f, const void *p, struct focus_value *ret)
{
    switch (f->type) {
    case FIELD_BOOL:
        ret->text = AT(p, f, bool) ? "yes" : "no";
        return;
    case FIELD_INT:
        ret->is_number = AT(p, f, int64_t) != NO_INT;
        ret->number = (double)AT(p, f, int64_t);
        return;
    case FIELD_NUM:
        ret->is_number = true; // not a number: no value
        ret->number = AT(p, f, double);
        return;
    case FIELD_STR:
        ret->text = AT(p, f, char *);
        return;
    case FIELD_GUID:
        ret->text = AT(p, f, uint64_t) != 0 ? guid_str(AT(p, f, uint64_t), s->text) : NULL;
        return;
    case FIELD_TIME:
        ret->text = AT(p, f, int64_t) != 0 ? wall_format(AT(p, f, int64_t), s->text, sizeof(s->text)) : NULL;
        return;
    case FIELD_RAW:
    case FIELD_OBJ:
    case FIELD_LIST:
    case FIELD_STRINGS:
        return;
    }
}

static void value_of(void *arg, unsigned i, struct focus_value *ret)
{
    const struct row *r = arg;
    const struct column *c = &r->s->col[i];
    const void *p = c->outer == NULL ? r->p : AT(r->p, c->outer, void *);
    *ret = (struct focus_value){0};
    if (p != NULL)
        value_in(r->s, c->field, p, ret);
}

bool sieve_has(struct sieve *s, const void *row)
{
    return s == NULL || focus_match(s->focus, value_of, &(struct row){s, row});
}
