// SPDX-License-Identifier: Apache-2.0
// Which rows of a list are wanted: the focus language (lib/focus.h) on rows of a schema. Fields are called as
// in the JSON; of an object within "object.field". Times are compared with how long ago they are.
#include "api/sieve.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "telemetry/alarm.h"

#define AT(p, f, type) (*(const type *)(const void *)((const char *)(p) + (f)->at))

#define DEPTH 3 // of objects within objects

struct column { // "field", or "object.field", or "object.object.field"
    char *name;
    const struct field *way[DEPTH + 1]; // ended by NULL: objects, then the field
    bool of_end;
};
struct sieve {
    struct focus *focus;
    struct sieve_rows rows;
    struct column *col;
    unsigned num, parts;
    int64_t now_ns; // since 1970
    char text[40];  // of the value asked last
};

static bool has_column(const struct sieve *s, const char *name)
{
    for (unsigned i = 0; i < s->num; i++)
        if (strcmp(s->col[i].name, name) == 0)
            return true;
    return false;
}

static void add(struct sieve *s, const char *name, const struct column *c)
{
    if (has_column(s, name))
        return;
    s->col = xreallocarray(s->col, s->num + 1, sizeof(*s->col));
    s->col[s->num] = *c;
    s->col[s->num++].name = xstrdup(name);
}

static bool has_value(const struct field *f)
{
    return f->type != FIELD_OBJ && f->type != FIELD_LIST && f->type != FIELD_STRINGS && f->type != FIELD_RAW;
}

// Fields first to last (not included) of what is at the end of a way of that depth.
static void add_some(struct sieve *s, const struct schema *schema, unsigned first, unsigned last,
                     struct column *c, unsigned depth, const char *prefix)
{
    unsigned i = 0;
    for (const struct field *f = schema != NULL ? schema->field : NULL; f && f->name && i < last; f++, i++) {
        if (i < first)
            continue;
        char *name = xasprintf("%s%s", prefix, f->name), *below = xasprintf("%s.", name);
        c->way[depth] = f;
        c->way[depth + 1] = NULL;
        if (has_value(f))
            add(s, name, c);
        if (has_value(f) && !c->of_end && s->rows.since != NULL && strcmp(name, s->rows.since) == 0)
            add(s, "age", c);
        if (f->type == FIELD_OBJ && depth + 1 < DEPTH)
            add_some(s, f->sub, 0, UINT_MAX, c, depth + 1, below);
        free(name);
        free(below);
    }
}

static void add_fields(struct sieve *s, bool of_end, unsigned first, unsigned last)
{
    struct column c = {.of_end = of_end};
    add_some(s, of_end ? s->rows.end : s->rows.row, first, last, &c, 0, "");
}

static const char *name_of(const void *arg, unsigned i)
{
    const struct sieve *s = arg;
    return i < s->num ? s->col[i].name : NULL;
}

// --- what a field may hold ---

static const char *const tiers[] = {"leaf", "spine", "core", NULL}, *const yes_no[] = {"yes", "no", NULL};
static const char *rules[128];

static const char *const *rule_ids(void)
{
    for (unsigned i = 0; i < alarm_num_rules && i + 1 < sizeof(rules) / sizeof(rules[0]); i++)
        rules[i] = alarm_rules[i].id;
    return rules;
}

static const char *const shares[] = {"used", "rcv_used", "held", "score", NULL}, *const gbits[] = {
                                                                                     "speed", "gbps",
                                                                                     "lost_gbps", NULL};

static bool is_one_of(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(*names, name) != 0)
        names++;
    return *names != NULL;
}

static const struct field *field_of(const struct column *c)
{
    unsigned i = 0;
    while (c->way[i + 1] != NULL)
        i++;
    return c->way[i];
}

static void about(const void *arg, unsigned i, struct focus_about *ret)
{
    const struct field *f = field_of(&((const struct sieve *)arg)->col[i]);
    if (f->type == FIELD_BOOL)
        ret->words = yes_no;
    else if (f->type == FIELD_INT || f->type == FIELD_NUM)
        ret->holds = is_one_of(f->name, shares)  ? FOCUS_SHARE
                     : is_one_of(f->name, gbits) ? FOCUS_GBITS
                                                 : FOCUS_NUMBER;
    else if (f->type == FIELD_STR)
        ret->words = f->name_of;
    else if (f->type == FIELD_TIME)
        ret->holds = FOCUS_SPAN;
    if (strcmp(f->name, "tier") == 0 && f->type == FIELD_INT)
        ret->words = tiers;
    if (strcmp(f->name, "rule") == 0 || strcmp(f->name, "alarm_rule") == 0)
        ret->words = rule_ids();
}

struct sieve *sieve_new_of(const char *text, const struct sieve_rows *rows, struct err *e)
{
    struct sieve *s = xcalloc(1, sizeof(*s));
    struct focus_fields fields = {.name = name_of, .arg = s, .about = about};
    s->rows = *rows;
    s->now_ns = wall_now_ns();
    add_fields(s, true, 0, rows->end_first);
    add_fields(s, false, 0, UINT_MAX);
    add_fields(s, true, rows->end_first, UINT_MAX);
    s->focus = focus_new(text, &fields, e);
    if (s->focus == NULL) {
        sieve_free(s);
        return NULL;
    }
    for (unsigned i = 0; i < s->num && rows->part != NULL; i++)
        if (s->col[i].of_end && focus_asks(s->focus, i))
            s->parts |= rows->part(s->col[i].way);
    return s;
}

unsigned sieve_parts(const struct sieve *s)
{
    return s->parts;
}

const char *sieve_bare(const struct sieve *s, unsigned i)
{
    return focus_bare(s->focus, i);
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
    const void *p, *end;
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
        if (AT(p, f, int64_t) == 0)
            return;
        ret->text = wall_format(AT(p, f, int64_t), s->text, sizeof(s->text));
        ret->is_number = true;
        ret->number = (double)(s->now_ns - AT(p, f, int64_t)) / 1e9;
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
    const void *p = c->of_end ? r->end : r->p;
    const struct field *const *way = c->way;
    *ret = (struct focus_value){0};
    for (; p != NULL && way[1] != NULL; way++)
        p = AT(p, *way, void *);
    if (p != NULL)
        value_in(r->s, *way, p, ret);
}

static bool named(void *arg, const char *word)
{
    const struct row *r = arg;
    return r->s->rows.named(r->p, r->end, word);
}

bool sieve_has_end(struct sieve *s, const void *row, const void *end)
{
    struct row r = {s, row, end};
    return s == NULL || focus_match(s->focus, value_of, s->rows.named != NULL ? named : NULL, &r);
}

bool sieve_has(struct sieve *s, const void *row)
{
    return sieve_has_end(s, row, NULL);
}
