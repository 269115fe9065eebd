// SPDX-License-Identifier: Apache-2.0
#include "cli/focus.h"

#include <string.h>

#include "lib/err.h"

static const char *name_of(const void *arg, unsigned i)
{
    const struct field *fields = arg;
    return fields[i].key;
}

// --- what a field may hold ---

static const char *const types[] = {"ca", "switch", "router", NULL};
static const char *const roles[] = {"unknown", "host",  "aggregation", "gateway", "router",
                                    "leaf",    "spine", "core",        "switch",  NULL};
static const char *const kinds[] = {"host", "trunk", NULL};
static const char *const tiers[] = {"leaf", "spine", "core", NULL};
static const char *const states[] = {"nop", "down", "init", "armed", "active", "unknown", NULL};
static const char *const healths[] = {"unknown",  "healthy", "unsure", "degraded",
                                      "flapping", "failing", "down",   NULL};
static const char *const pmas[] = {"read", "not-yet",      "no-answer", "refused", "no-pma",
                                   "gone", "wrong-answer", "slow",      NULL};
static const char *const severities[] = {"info",  "notice", "warning",  "error",
                                         "minor", "major",  "critical", NULL};

// A key means the same in each table. The words are weftd's, as its OpenAPI document has them.
static const struct {
    const char *key;
    struct focus_about about;
} known[] = {
    {"type", {.words = types}},       {"role", {.words = roles}},          {"kind", {.words = kinds}},
    {"tier", {FOCUS_NUMBER, tiers}},  {"state", {.words = states}},        {"health", {.words = healths}},
    {"pma", {.words = pmas}},         {"severity", {.words = severities}}, {"used", {.holds = FOCUS_SHARE}},
    {"held", {.holds = FOCUS_SHARE}}, {"gbps", {.holds = FOCUS_GBITS}},
};

static void about(const void *arg, unsigned i, struct focus_about *ret)
{
    const struct field *f = &((const struct field *)arg)[i];
    if (f->kind == FIELD_NUMBER || f->kind == FIELD_COUNT)
        ret->holds = FOCUS_NUMBER;
    for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++)
        if (strcmp(f->key, known[k].key) == 0)
            *ret = known[k].about;
}

struct focus *focus_of(const char *text, const struct field *fields, struct err *e)
{
    return focus_new(text, &(struct focus_fields){.name = name_of, .arg = fields, .about = about}, e);
}

struct row {
    const struct field *fields;
    json_t *item;
    bool (*named)(json_t *item, const char *word);
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

static bool named_in(void *arg, const char *word)
{
    const struct row *r = arg;
    return r->named(r->item, word);
}

bool focus_has(const struct focus *f, const struct field *fields, json_t *item,
               bool (*named)(json_t *item, const char *word))
{
    return focus_match(f, value_of, named_in, &(struct row){fields, item, named});
}
