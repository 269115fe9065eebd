// SPDX-License-Identifier: Apache-2.0
// Which rows of a list are wanted: the focus language on rows of a schema. Pure; any thread, one sieve a
// thread.
#ifndef WEFT_API_SIEVE_H
#define WEFT_API_SIEVE_H

#include "api/schema.h"
#include "lib/err.h"
#include "lib/focus.h"

struct sieve;

// names: fields that a bare name is compared with. NULL and *e: not understood.
struct sieve *sieve_new(const char *text, const struct schema *schema, const char *names, struct err *e);
void sieve_free(struct sieve *s);                 // NULL is fine
bool sieve_has(struct sieve *s, const void *row); // NULL: all are wanted

#endif
