// SPDX-License-Identifier: Apache-2.0
// Which rows of a list are wanted: the focus language on rows of a schema. One thread a sieve; the loop's
// makes them.
#ifndef WEFT_API_SIEVE_H
#define WEFT_API_SIEVE_H

#include "api/schema.h"
#include "lib/err.h"
#include "lib/focus.h"

struct sieve;

struct sieve_rows {           // what the rows are
    const struct schema *row; // NULL: there are ends alone
    // What is known of an end beside that; NULL: rows have none. A row with several is wanted if it is by
    // one.
    const struct schema *end;
    unsigned end_first; // of these first fields of an end those are meant that a row has too
    const char *since;  // a row's time that "age" counts from; NULL: it is no word of rows
    bool (*named)(const void *row, const void *end, const char *word); // whether it is what a bare name means
    // Which parts of an end a field is in; way: the objects that it is within, then itself, then NULL.
    unsigned (*part)(const struct field *const *way);
};

// rows is copied. NULL and *e: not understood.
struct sieve *sieve_new_of(const char *text, const struct sieve_rows *rows, struct err *e);
void sieve_free(struct sieve *s);                 // NULL is fine
bool sieve_has(struct sieve *s, const void *row); // NULL: all are wanted
bool sieve_has_end(struct sieve *s, const void *row, const void *end);
const char *sieve_bare(const struct sieve *s, unsigned i); // the bare names in it; NULL behind the last
unsigned sieve_parts(const struct sieve *s);               // of an end, that are asked for

#endif
