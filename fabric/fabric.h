// SPDX-License-Identifier: Apache-2.0
// The model: a sealed, immutable picture of one fabric at one generation. Dense arrays of nodes, ports and
// switches; a link is a port's peer. Made by fabric/builder.h, read by everybody. No pointer from a snapshot
// to anything mutable. Host byte order.
//
// Ids are indices, valid within one snapshot only; identity over time is the GUID. Node ids are ordered as
// the builder received the nodes. A switch's ports are 0..num_ports (0 is the management port), an adapter's
// or router's 1..num_ports; they lie consecutively in the port array.
//
// Names repeat, may be empty and hold any printable UTF-8. SU and rail numbers are derived from topology and
// names and do not depend on the order in which nodes were found; host numbers do. Those of a live fabric are
// its blueprint's (builder_numbers_from()): a number that nothing has is that of something that is away.
//
// A LID above 0xbfff (0xffff: an adapter nobody configured yet) stays in port.a.lid as read and is in no map.
//
// Lifetime: reference-counted (the count lives outside the sealed arena, and is atomic); any thread reads
// while it holds a reference.
#ifndef WEFT_FABRIC_FABRIC_H
#define WEFT_FABRIC_FABRIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/hash.h"

typedef struct {
    uint32_t i;
} node_id;
typedef struct {
    uint32_t i;
} port_id;
#define ID_NONE 0xffffffffu
#define NODE_NONE ((node_id){ID_NONE})
#define PORT_NONE ((port_id){ID_NONE})
static inline bool node_valid(node_id n)
{
    return n.i != ID_NONE;
}
static inline bool port_valid(port_id p)
{
    return p.i != ID_NONE;
}

#define LID_UCAST_MAX 0xbfff // IBA 4.1.3
#define LFT_BLOCK 64         // entries in one LinearForwardingTable MAD
#define LFT_DROP 255         // no route
#define SWITCH_MAX_PORTS 254

enum node_type { // as in NodeInfo
    NODE_CA = 1,
    NODE_SWITCH = 2,
    NODE_ROUTER = 3,
};

enum node_role {
    ROLE_UNKNOWN,
    ROLE_HOST,        // an adapter of a host
    ROLE_AGGREGATION, // SHARP aggregation node: an end node on a switch of any tier, never a host
    ROLE_GATEWAY,
    ROLE_ROUTER,
    ROLE_LEAF, // switch with hosts
    ROLE_SPINE,
    ROLE_CORE,
    ROLE_SWITCH, // switch of a fabric without tiers
};

enum port_state { // PortInfo.PortState
    PORT_STATE_NOP,
    PORT_DOWN,
    PORT_INIT,
    PORT_ARMED,
    PORT_ACTIVE,
};

enum port_excluded { // why a port with a cable takes no part
    PORT_INCLUDED,
    PORT_EXCLUDED_PEER_SILENT, // the far end never answered
    PORT_EXCLUDED_SELF_LINK,   // a switch cabled to itself, or a port to itself
    PORT_EXCLUDED_DUPLICATE,   // far end's GUID was seen elsewhere
    PORT_EXCLUDED_ONE_SIDED,   // only one end names the link (files)
    PORT_EXCLUDED_UNSUPPORTED, // planarised (XDR) or otherwise not implemented
    PORT_EXCLUDED_BY_OPERATOR,
};

struct port_attrs { // what PortInfo or a file says; codes as PortInfo has them, 0 = not known
    uint16_t lid;   // base LID as read; 0 = none
    uint8_t lmc;
    uint8_t state;      // enum port_state
    uint8_t phys_state; // PortInfo.PortPhysicalState
    uint8_t width_active, width_supported, width_enabled;
    uint8_t speed_active, speed_supported, speed_enabled;             // SDR 1, DDR 2, QDR 4
    uint8_t speed_ext_active, speed_ext_supported, speed_ext_enabled; // FDR 1, EDR 2, HDR 4, NDR 8, XDR 16
    uint8_t fdr10;               // active speed is FDR10 (vendor ExtPortInfo, or a file says so)
    uint8_t mtu_cap, mtu_active; // MTU codes 1..5
    uint8_t vl_cap, vl_oper;     // VL codes 1..5
    uint32_t cap_mask;           // port 0's for switches; meaningless on external ports
    uint16_t cap_mask2;
};

struct port {
    uint64_t guid; // end ports (CA, router, switch port 0): PortGUID; external switch ports: 0
    node_id node;
    port_id peer; // PORT_NONE when nothing is connected or the link is not usable; always symmetric
    uint8_t num;
    uint8_t excluded; // enum port_excluded
    uint16_t rail; // end ports of hosts: that of the leaf; where leaves have none, or without a cable, that
                   // of the adapter's index; RAIL_NONE otherwise
    struct port_attrs a;
    uint32_t label; // offset of the connector label ("1/1/1", "ext 3") in the string pool, 0 = none
};
#define RAIL_NONE 0xffff
#define SU_NONE 0xffff

struct node {
    uint64_t guid, sys_guid;
    uint32_t desc; // offset in the string pool; see fabric_desc(); may be empty, repeated or contain any
                   // printable bytes
    uint32_t first_port; // port_id of port 0 (switch) or port 1
    uint32_t sw;         // dense switch number, ID_NONE for end nodes
    uint32_t host;       // dense host number shared by the adapters of one host, ID_NONE when not a host's
    uint8_t type;        // enum node_type
    uint8_t role;        // enum node_role
    uint8_t num_ports;   // external ports
    uint8_t tier; // leaf 0, spine 1, core 2 …; TIER_NONE when the fabric has no tiers; end nodes: TIER_NONE
    uint16_t su;  // scalable unit of leaves and hosts; SU_NONE
    uint16_t rail;  // rail of a leaf or a single-port adapter; RAIL_NONE
    uint16_t plane; // connected component number: 0 = the one with the subnet manager or the largest
    uint16_t partition_cap;
    uint16_t device_id;
    uint32_t vendor_id, revision;
    // switches only
    uint16_t lft_cap, lft_top, mft_cap, partition_enforcement_cap;
    bool enhanced_port0;
    bool name_repeats; // another node has the same description
};
#define TIER_NONE 0xff

struct fabric {
    uint64_t generation;
    uint32_t num_nodes, num_ports, num_switches, num_end_nodes; // end nodes: CAs and routers
    uint32_t num_links;                                         // usable ones, each counted once
    uint32_t num_hosts;                                         // dense host numbers
    uint32_t num_tiers, num_sus, num_rails, num_planes;         // 0 tiers: not a tree
    const struct node *node;
    const struct port *port;
    const uint32_t *switch_node; // dense switch number -> node index
    const char *strings;         // string pool; offset 0 is ""
    size_t strings_size;
    struct u64map by_guid;      // NodeGUID -> node index
    struct u64map by_port_guid; // PortGUID -> port index
    const uint32_t
        *lid_port;    // LID (0..LID_UCAST_MAX) -> port index of the end port whose range covers it, ID_NONE
    uint16_t top_lid; // highest LID in use
    uint16_t lft_cap_min; // smallest LinearFDBCap of the switches, 0xffff without switches
    port_id sm_port;      // where the manager sits, or the dump was taken; PORT_NONE when unknown
};

struct fabric *fabric_ref(const struct fabric *f);
void fabric_unref(const struct fabric *f); // the last one frees; NULL is fine

static inline const struct node *fabric_node(const struct fabric *f, node_id n)
{
    return &f->node[n.i];
}
static inline const struct port *fabric_port(const struct fabric *f, port_id p)
{
    return &f->port[p.i];
}
static inline const struct node *fabric_switch(const struct fabric *f, uint32_t sw)
{
    return &f->node[f->switch_node[sw]];
}
static inline const char *fabric_desc(const struct fabric *f, const struct node *n)
{
    return f->strings + n->desc;
}
static inline const char *fabric_label(const struct fabric *f, const struct port *p)
{
    return f->strings + p->label;
}
// The same switches by the same dense numbers: what is indexed by these fits both.
bool fabric_same_switches(const struct fabric *a, const struct fabric *b);
// External ports of the switch with most, and one: room for port numbers. 1 without switches.
uint32_t fabric_port_room(const struct fabric *f);
// Whether an adapter or router is cabled to the switch.
bool fabric_has_ends(const struct fabric *f, uint32_t sw);
static inline uint8_t node_first_num(const struct node *n)
{
    return n->type == NODE_SWITCH ? 0 : 1;
}
// PORT_NONE when the node has no such port.
port_id fabric_port_at(const struct fabric *f, const struct node *n, unsigned num);
const struct node *fabric_by_guid(const struct fabric *f, uint64_t guid);          // NULL when unknown
port_id fabric_by_port_guid(const struct fabric *f, uint64_t guid);                // PORT_NONE
port_id fabric_by_lid(const struct fabric *f, uint16_t lid);                       // PORT_NONE
const struct node *fabric_peer_node(const struct fabric *f, const struct port *p); // NULL without peer
// An end port is one that has a LID: CA and router ports, switch port 0.
static inline bool port_is_end(const struct fabric *f, const struct port *p)
{
    return f->node[p->node.i].type != NODE_SWITCH || p->num == 0;
}
// "name[port]" with the GUID when the name is empty or not unique; for people. Returns buf.
const char *fabric_port_name(const struct fabric *f, port_id p, char *buf, size_t size);
// The node's name by the same rule.
const char *fabric_node_name(const struct fabric *f, const struct node *n, char *buf, size_t size);
// Nominal rate of a link in Mb/s (4xHDR is 200,000), 0 when width or speed are not known.
uint32_t port_rate_mbps(const struct port_attrs *a);
size_t fabric_bytes(const struct fabric *f); // memory it holds
const char *node_role_name(enum node_role r);
const char *port_state_name(enum port_state s);
const char *port_excluded_name(enum port_excluded e);

#endif
