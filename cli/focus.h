// SPDX-License-Identifier: Apache-2.0
// The focus language: selects items of a list by their fields.
//
//     focus = or ;  or = and { ("or"|"||") and } ;  and = not { [ "and"|"," ] not } ;  not = [ "not"|"!" ]
//     atom atom  = "(" or ")" | field op value { "|" value } | name ;  op = "=" | "!=" | "~" | "<" | "<=" |
//     ">" | ">=" value = bare | "'" any "'" | number ".." number
//
// "=" takes globs, "~" an extended regular expression of at most 256 bytes; a field without a value matches
// only field=none. A name matches any of the name fields, as a glob. Limits: 4 KiB, depth 32, 256 atoms.
#ifndef WEFT_CLI_FOCUS_H
#define WEFT_CLI_FOCUS_H

#include "cli/out.h"

struct err;
struct focus;

// fields: what may be named; names: keys of the fields that a bare name is compared with, blanks between.
// NULL and *e with the column; an unknown field is refused with the nearest.
struct focus *focus_new(const char *text, const struct field *fields, const char *names, struct err *e);
void focus_free(struct focus *f);
bool focus_match(const struct focus *f, json_t *item);
bool focus_is_word(const char *s); // a single name, no expression

#endif
