// SPDX-License-Identifier: Apache-2.0
// What a fabric would be: a sealed snapshot with cables taken out, nodes dead, and nodes and cables added.
// Changes are gathered first and applied at once; the snapshot that they are for stays as it is.
//
// Nodes keep their ids, ports their numbers, so that tables of the one fit the other; added nodes come behind
// them. A dead node stays, without cables and LIDs. Added nodes have no LIDs. Roles, rails and scalable units
// are derived anew, as after a sweep that found the fabric so.
//
// O(ports + changes). Pure; one owner at a time.
#ifndef WEFT_FABRIC_EDIT_H
#define WEFT_FABRIC_EDIT_H

#include "fabric/fabric.h"

struct err;
struct findings;

struct edit_node {
    uint32_t like; // index of the node whose kind it is of
    uint64_t guid, sys_guid;
    char *name;
};
struct edit_link { // ends: a node's index, those added are num_nodes and up
    uint32_t a, z;
    uint8_t a_num, z_num;
};

struct fabric_edit {
    const struct fabric *f; // borrowed
    bool *cut;              // per port, at both ends
    bool *dead;             // per node
    uint32_t num_cut;       // cables
    uint32_t num_dead;
    struct edit_node *node;
    struct edit_link *link;
    uint32_t num_node, num_link, cap_node, cap_link;
    struct u64map used, guids; // of what is added; private
    uint32_t num_port;         // the same
};

void fabric_edit_init(struct fabric_edit *x, const struct fabric *f);
void fabric_edit_done(struct fabric_edit *x);

// The cable at this port; once more is fine. -ENOENT when there is none.
int fabric_edit_cut(struct fabric_edit *x, port_id p);
void fabric_edit_kill(struct fabric_edit *x, node_id n); // with its cables
// Some of the cables between switches, drawn by the seed: the same ones whatever the order of nodes, and of
// two shares the smaller is part of the larger.
void fabric_edit_cut_share(struct fabric_edit *x, double percent, uint64_t seed);

// A node of the same kind and with as many ports; its index (f->num_nodes and up) in *ret. -EEXIST: the GUID
// is there already; -E2BIG.
int fabric_edit_add_node(struct fabric_edit *x, uint32_t like, uint64_t guid, uint64_t sys_guid,
                         const char *name, uint32_t *ret, struct err *e);
// Whether a cable can go into a port: it exists, is not port 0, and has no cable, nor one that was left out
// when the fabric was read (port.excluded); a cable that is cut frees its ports.
bool fabric_edit_is_free(const struct fabric_edit *x, uint32_t node, unsigned num);
// The lowest such number above `after`; 0: none.
unsigned fabric_edit_next_free(const struct fabric_edit *x, uint32_t node, unsigned after);
// -EBUSY unless both ends are free; -EINVAL for a node to itself.
int fabric_edit_add_link(struct fabric_edit *x, uint32_t a, unsigned a_num, uint32_t z, unsigned z_num);

// A snapshot of the same generation, one reference. findings may be NULL.
const struct fabric *fabric_edit_apply(const struct fabric_edit *x, struct findings *ret_findings);

// In one: without the cables at these ports (those without one are passed over).
const struct fabric *fabric_without_links(const struct fabric *f, const port_id *port, size_t n);

#endif
