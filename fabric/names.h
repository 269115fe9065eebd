// SPDX-License-Identifier: Apache-2.0
// How names are put in order.
#ifndef WEFT_FABRIC_NAMES_H
#define WEFT_FABRIC_NAMES_H

// Order of names as people read them: digits by value ("leaf-9" before "leaf-10").
int name_compare(const char *a, const char *b);

#endif
