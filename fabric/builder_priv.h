// SPDX-License-Identifier: Apache-2.0
// Between builder.c, which gathers, and builder_seal.c and roles*.c, which derive. For fabric/ only.
#ifndef WEFT_FABRIC_BUILDER_PRIV_H
#define WEFT_FABRIC_BUILDER_PRIV_H

#include "fabric/builder.h"
#include "fabric/names.h"

struct arena;

#define BUILDER_MAX_NODES 65536u
#define BUILDER_MAX_PORTS (1u << 20) // four full subnets of 64-port switches
#define BUILDER_MAX_STRING 127       // bytes of a description or label that are kept (NodeDescription has 64)

struct builder {
    struct node *node; // derived fields are those of the last generation until sealed
    struct port *port;
    bool *removed; // by node
    char *strings;
    uint32_t num_nodes, cap_nodes, num_ports, cap_ports;
    size_t strings_len, strings_cap;
    uint32_t num_removed;
    struct u64map by_guid;  // ID_NONE: removed
    struct u64map interned; // hash -> offset, of the strings added to this builder
    port_id sm_port;
    const struct fabric *known; // whose numbers are kept, or NULL; borrowed
};

// A fabric in the making: the arrays are final in shape and place, the derived fields are being filled.
struct draft {
    struct fabric f;
    struct node *node; // f.node, f.port, writable
    struct port *port;
    struct arena *arena;        // the snapshot's
    struct arena *scratch;      // gone after sealing
    struct findings *findings;  // may be NULL
    const struct fabric *known; // whose numbers are kept, or NULL
};

// Each fills the derived fields it names, from those before it.
void roles_planes(struct draft *d);    // node.plane, num_planes
void roles_end_nodes(struct draft *d); // node.role of CAs and routers
void roles_tiers(struct draft *d);     // node.tier and role of switches, num_tiers
void roles_hosts(struct draft *d);     // node.host, num_hosts
void roles_rails(struct draft *d);     // node.su, node.rail, port.rail, num_sus, num_rails

struct number_vote {
    uint32_t what;   // which thing
    uint32_t number; // that one of its parts had
    uint32_t count;  // used by numbers_keep()
};
struct number_votes {
    struct number_vote *vote;
    uint32_t n;
};
// Numbers of so many things, `known` of which are given out: that which most votes for a thing name, the
// thing with more votes first; to the others, in order, those from `known` up. Without any vote 0, 1, …
const uint32_t *numbers_keep(struct number_votes *v, uint32_t things, uint32_t known, struct arena *a);

// An adapter's place in its host as its description says it: "gpu-0412 mlx5_3" is host "gpu-0412", index 3.
struct adapter_name {
    size_t host_len; // 0: the description does not name a host and an adapter
    uint32_t index;  // orders the adapters of one host; comparable between hosts of one kind
};
#define ADAPTER_NO_INDEX 0xffffffffu
struct adapter_name adapter_name_parse(const char *desc);

#endif
