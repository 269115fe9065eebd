// SPDX-License-Identifier: Apache-2.0
// Makes the next generation of a fabric: from nothing, or as a copy of the last one with changes; then
// derives roles, tiers, hosts, rails, SUs and components, and seals. Readers of files, the sweep and the
// topology generators all build through here, so what is refused is refused once.
//
// Limits: nodes 65,536, ports 1,048,576; descriptions and labels 127 bytes, as printable UTF-8. Not
// thread-safe: one owner at a time; a builder shares nothing with the snapshot it started from.
//
// File map: builder.c gathers, builder_seal.c copies, indexes and reports, roles.c planes, roles of end nodes
// and tiers, roles_hosts.c which adapters are one host's, roles_rails.c SUs and rails, roles_numbers.c
// which of their numbers stay, findings.c.
//
// Findings of sealing: duplicate-guid, duplicate-lid, lid-not-unicast, unconnected-node, separate-part,
// repeated-name, self-link, rail-miscabled, su-miscabled.
//
// Roles: a CA whose description says "Aggregation Node" (SHARP) is never a host, nor is one that shares its
// SystemImageGUID-derived identity with a switch; tiers by distance from the leaves (switches that carry
// hosts), so that an aggregation node on a spine makes no leaf of it. Rails: topology first (which leaf, in
// the SU), SystemImageGUID groups a host's adapters, then descriptions; disagreement becomes a finding.
#ifndef WEFT_FABRIC_BUILDER_H
#define WEFT_FABRIC_BUILDER_H

#include "fabric/fabric.h"

struct err;
struct builder;

enum finding_severity {
    FINDING_INFO,
    FINDING_WARNING,
    FINDING_ERROR,
};

// Something a person should know about a fabric or a file; never fatal by itself.
struct finding {
    enum finding_severity severity;
    const char *code;  // stable, lower-case-with-dashes: "duplicate-guid", "one-sided-link", "bad-line",
                       // "rail-miscabled", …
    const char *where; // "file:line", port name, GUID; may be ""
    const char *text;
    uint32_t count; // equal findings are merged: how many there were (text is the first one's)
};

struct findings {
    struct finding *item;
    size_t n, cap;
    size_t total;        // with those merged or beyond the cap
    struct u64map index; // of code and where; private
};
// Starts as {0}. Equal: same code and same where.
#define FINDINGS_MAX 1000 // kept apart; beyond it only counted
void findings_add(struct findings *f, enum finding_severity s, const char *code, const char *where,
                  const char *fmt, ...) __attribute__((format(printf, 5, 6)));
void findings_done(struct findings *f);
void findings_merge(struct findings *to, const struct findings *from);

struct node_attrs { // what NodeInfo, NodeDescription and SwitchInfo say
    uint64_t guid, sys_guid;
    enum node_type type;
    uint8_t num_ports;
    uint16_t partition_cap, device_id;
    uint32_t vendor_id, revision;
    uint16_t lft_cap, lft_top, mft_cap, partition_enforcement_cap;
    bool enhanced_port0;
};
struct node_attrs node_attrs_like(const struct node *n); // to build another one like it

struct builder *builder_new(void);
// Starts from prev: same nodes (same ids), ports, links; changes are then applied.
struct builder *builder_from(const struct fabric *prev);
void builder_free(struct builder *b); // when it is not sealed

// A node; its ports exist from then on, unconnected and Down. -EEXIST with *ret_node set when the GUID is
// there already (attributes untouched), -EINVAL when GUID 0, type unknown, a switch of more than 254 ports or
// a CA of more than 254; -E2BIG beyond 65,536 nodes or 1,048,576 ports. desc need not be NUL-terminated; 127
// bytes of it are kept, what is not printable UTF-8 becomes '?'.
int builder_node(struct builder *b, const struct node_attrs *a, const char *desc, size_t desc_len,
                 node_id *ret_node, struct err *e);
int builder_find(const struct builder *b, uint64_t guid, node_id *ret_node); // -ENOENT
void builder_node_attrs(struct builder *b, node_id n,
                        const struct node_attrs *a); // guid, type, num_ports must be the same
void builder_desc(struct builder *b, node_id n, const char *desc, size_t len);
// Ports by number; -EINVAL when there is no such port.
int builder_port(struct builder *b, node_id n, unsigned num, const struct port_attrs *a);
// PortGUID of an end port; -EINVAL for external switch ports, which have none.
int builder_port_guid(struct builder *b, node_id n, unsigned num, uint64_t guid);
int builder_port_label(struct builder *b, node_id n, unsigned num, const char *label, size_t len);
// Takes a port out of use; its link goes and the far end is excluded for the same reason. PORT_INCLUDED takes
// the exclusion back (the link must be made again).
int builder_exclude(struct builder *b, node_id n, unsigned num, enum port_excluded why);
// Connects both ends. -EEXIST when they are connected so already, -EBUSY when either end is connected
// elsewhere (the first link stays), -EINVAL for no such port, port 0, or a port to itself (a switch's two
// ports cabled together are recorded as excluded, not linked, and 0 is returned). Ends an exclusion, except
// by the operator or for want of support: -EPERM then.
int builder_link(struct builder *b, node_id a, unsigned a_num, node_id z, unsigned z_num);
void builder_unlink(struct builder *b, node_id n, unsigned num);
void builder_remove(struct builder *b,
                    node_id n); // the node and its links; ids of later nodes shift when sealed
void builder_sm_port(struct builder *b, node_id n, unsigned num);
// SUs and rails that `known` has too keep its numbers, by GUIDs of leaves and adapters, even where others
// that it has are missing: there are gaps then, and num_sus and num_rails are the highest number and one. An
// adapter without a cable keeps its rail. What is new is numbered behind. Borrowed until the builder is
// sealed or freed; NULL: numbers are those of the fabric by itself.
void builder_numbers_from(struct builder *b, const struct fabric *known);

// Ends the builder: derives, seals, returns the snapshot with one reference. findings may be NULL. Never
// fails: what is contradictory is a finding.
const struct fabric *builder_seal(struct builder *b, uint64_t generation, struct findings *ret_findings);

#endif
