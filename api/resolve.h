// SPDX-License-Identifier: Apache-2.0
// What people write for a node or port. Pure.
#ifndef WEFT_API_RESOLVE_H
#define WEFT_API_RESOLVE_H

#include "fabric/fabric.h"
#include "lib/err.h"

struct place {
    const struct node *node;
    port_id port; // when the text named one; else PORT_NONE
};
#define RESOLVE_LID 1 // a number is a LID
// GUID, GID (an IPv6 address whose lower half is a PortGUID), name, "name[port]". -ENOENT (with likely
// names), -EEXIST (ambiguous, with candidates), -EINVAL, and *e.
int resolve(const struct fabric *f, const char *text, int flags, struct place *ret, struct err *e);
// The same where a node's GUID means the node, not its only port: elements that fail.
int resolve_element(const struct fabric *f, const char *text, struct place *ret, struct err *e);

#endif
