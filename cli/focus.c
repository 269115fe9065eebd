// SPDX-License-Identifier: Apache-2.0
#include "cli/focus.h"

#include "lib/err.h"

static const char *name_of(const void *arg, unsigned i)
{
    const struct field *fields = arg;
    return fields[i].key;
}

struct focus *focus_of(const char *text, const struct field *fields, const char *names, struct err *e)
{
    return focus_new(text, &(struct focus_fields){.name = name_of, .arg = fields, .names = names}, e);
}

struct row {
    const struct field *fields;
    json_t *item;
};

static void value_of(void *arg, unsigned i, struct focus_value *ret)
{
    const struct row *r = arg;
    const struct field *f = &r->fields[i];
    json_t *v = js_at(r->item, f->path ? f->path : f->key);

    *ret = (struct focus_value){.text = json_string_value(v)};
    if (json_is_boolean(v))
        ret->text = json_is_true(v) ? "yes" : "no";
    if (json_is_number(v))
        *ret = (struct focus_value){.is_number = true, .number = json_number_value(v)};
}

bool focus_has(const struct focus *f, const struct field *fields, json_t *item)
{
    return focus_match(f, value_of, &(struct row){fields, item});
}
