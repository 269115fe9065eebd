// SPDX-License-Identifier: Apache-2.0
// Shared by the parts of opt: opt.c (walks over a schema), opt_value.c (one value as text), opt_yaml.c (the
// file), opt_doc.c (sample, man page).
#ifndef WEFT_LIB_OPT_PRIV_H
#define WEFT_LIB_OPT_PRIV_H

#include "lib/buf.h"
#include "lib/opt.h"

// text -> the field (scalars and OPT_STRINGS). 0 or -EINVAL; the field is written only on success.
int opt_value_parse(const struct opt_row *row, const char *text, struct arena *a, void *field);
// The field as it would be written in the file (scalars and OPT_STRINGS).
void opt_value_format(const struct opt_row *row, const void *field, struct buf *out);
// s as a YAML scalar, in double quotes when it needs them.
void opt_quote(const char *s, struct buf *out);
// "an integer 0..15", "one of a, b": for "expected ...".
void opt_value_expected(const struct opt_row *row, struct buf *out);
// `expected an integer 0..15, found "high"`
void opt_value_complaint(const struct opt_row *row, const char *found, struct buf *out);
// Zero, or the empty value, of the row's type.
void opt_value_zero(const struct opt_row *row, void *field);
bool opt_count_ok(const struct opt_row *row, size_t n);

const struct opt_row *opt_find(const struct opt_row *rows, const char *name);
// "unknown key; did you mean ..." for a key that is not among rows; root is the whole schema.
void opt_unknown(const struct opt_row *root, const struct opt_row *rows, const char *key, struct buf *out);
// Text from outside in a message: cut to a readable length, control characters escaped.
void opt_show(const char *s, struct buf *out);

static inline void *opt_field(const struct opt_row *row, void *base)
{
    return (char *)base + row->offset;
}

#endif
