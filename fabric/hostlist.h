// SPDX-License-Identifier: Apache-2.0
// Lists of host names in the short form of job schedulers: "gpu-[0001-0064,0100],login1".
#ifndef WEFT_FABRIC_HOSTLIST_H
#define WEFT_FABRIC_HOSTLIST_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

// Sorts name[] and adds the list to b. Only trailing digits are folded, and only with others of the same
// number of places, so that "[8-9,10-12]" and "[08-12]" stay what they are. Equal names are written once.
void hostlist_put(struct buf *b, const char **name, size_t n);
// Whether schedulers take it as one name: letters, digits, `.`, `_`, `-`, not empty, at most 255.
bool hostlist_name_ok(const char *name);

#endif
