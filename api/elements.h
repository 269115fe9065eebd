// SPDX-License-Identifier: Apache-2.0
// What people write for the things a question is about: nodes and cables that fail, are drained or are added.
// Pure; any thread.
//
//     NODE                 a node by name or GUID
//     NODE[PORT]           a cable; ports may be lists of ranges: leaf-1[33-40,47]
//     GLOB, GLOB[PORTS]    all nodes of such names (* and ?), or cables of theirs
//     FIELD=VALUE,…        all switches of that rail, su, tier, role, plane or name (a glob); with type=ca or
//                          role=host adapters. VALUE: one|another, 1..4. [PORTS] may follow
//     random:PERCENT:SEED  so many of the cables between switches
//
// and what is added:
//
//     link:A[PORT]-B[PORT]      a cable between two free ports
//     node-like:NODE=NEWNAME    a node cabled like another one to free ports of its neighbours: a switch
//                               to the same switches, an adapter to the same leaf; a host with all of them
//     node-like-hosts:SWITCH=NEWNAME   a switch, with adapters like those on it
//     su, su:NUMBER             a scalable unit like the largest, or this one, on free ports of the
//                               switches above
//
// Exact names come first: a node whose name has a * in it is still that node.
#ifndef WEFT_API_ELEMENTS_H
#define WEFT_API_ELEMENTS_H

#include "fabric/edit.h"
#include "lib/err.h"

#define ELEMENTS_MAX 10000
#define ELEMENTS_WIDE_MAX 1000 // globs and fields: each looks at all nodes

struct elements {
    const struct fabric *f; // borrowed
    uint32_t *by_name;      // node indices
    unsigned wide;
    uint32_t added_sus;
    uint64_t next_guid; // of what is added
};
void elements_init(struct elements *el, const struct fabric *f);
void elements_done(struct elements *el);

int elements_node(const struct elements *el, const char *text, const struct node **ret, struct err *e);

// Each: 0, or -ENOENT, -EEXIST (ambiguous), -EINVAL, -E2BIG and *e; *e's where is the text. What was gathered
// before an error stays in x.
int elements_fail(struct elements *el, struct fabric_edit *x, const char *text, struct err *e);
// drained: per port, set at both ends of each cable; a node means all its cables.
int elements_drain(struct elements *el, bool *drained, const char *text, struct err *e);
// Of one text, what it names: nodes (port 0) and ports, whatever hangs there. Of globs and fields switches
// and cables between them only. Also -E2BIG: more than max. No random:…
struct element_place {
    const struct node *node;
    uint8_t port;
};
int elements_pick(struct elements *el, const char *text, struct element_place *at, size_t max, size_t *ret,
                  struct err *e);
// In additions.c. Beside these -EBUSY, -ENOSPC: ports are missing, and *e says where.
int elements_add(struct elements *el, struct fabric_edit *x, const char *text, struct err *e);

#endif
