// SPDX-License-Identifier: Apache-2.0
// The focus language (lib/focus.h) on what the API answers: the fields are those of a table.
#ifndef WEFT_CLI_FOCUS_H
#define WEFT_CLI_FOCUS_H

#include "cli/out.h"
#include "lib/focus.h"

// NULL and *e.
struct focus *focus_of(const char *text, const struct field *fields, struct err *e);
// named: whether the item is what a bare name means.
bool focus_has(const struct focus *f, const struct field *fields, json_t *item,
               bool (*named)(json_t *item, const char *word));

#endif
