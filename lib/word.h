// SPDX-License-Identifier: Apache-2.0
// Words that people type: what they may have meant, and patterns.
#ifndef WEFT_LIB_WORD_H
#define WEFT_LIB_WORD_H

#include <stdbool.h>

// How many characters to add, remove, change or swap to make b from a; beyond 64 characters: many.
unsigned word_distance(const char *a, const char *b);
bool word_near(const char *word, const char *known); // near enough to suggest
// The nearest of those that name() gives for 0, 1, … until NULL; NULL when none is near.
const char *word_nearest(const char *word, const char *(*name)(const void *arg, unsigned i), const void *arg);
bool word_glob(const char *pattern, const char *s); // * and ?

#endif
