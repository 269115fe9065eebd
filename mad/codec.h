// SPDX-License-Identifier: Apache-2.0
//
// The MAD attribute codec.
//
// Each attribute is declared once, in mad/attr/<name>.def, as rows that give a field's name, host type, first
// bit and width (counted from the attribute's first bit, most significant first, as the IBTA tables do) and
// the format for people:
//
//     F(name, ctype, first_bit, width, format)                       a number
//     A(name, ctype, first_bit, width, count, format)                an array, packed
//     S(name, ctype, first_bit, width, count, stride, format)        an array, elements stride bits apart
//     R(first_bit, width)                                            reserved: skipped, 0 in encode
//     RS(first_bit, width, count, stride)                            the same, several
//     FC(name, ctype, first_bit, width, format, component)           a component of an SA record with its
//     AC(name, ctype, first_bit, width, count, format, component)    bit in the component mask
//
// From the rows come the host struct (struct mad_<name>, host byte order), mad_<name>_decode(),
// mad_<name>_encode(), the table mad_attr_<name> that printers, the JSON writer, the simulator and the tests
// walk, and the component match of the SA. Another folder declares an attribute of its own the same way:
// mad/attr/rows_struct.h, mad/attr/define.h.
//
// Struct owners: all tables are constant. Host structs belong to the caller and hold no pointers. Threads:
// everything here is pure and may run anywhere. Wire buffers are trusted only in length: a caller passes at
// least wire_bytes bytes; any content decodes. Departures from the standard: none meant; what no public text
// settles is said in the .def.
//
// Files: codec.c (tables, lookups), print.c (text), mad.h and mad.c (constants, names, whole MADs),
// attr/*.def (the rows), attr/bits.h (one element between wire and host).
#ifndef WEFT_MAD_CODEC_H
#define WEFT_MAD_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// How a value is shown to people. Names in the standard's spelling; codes without a name are shown as
// numbers.
enum mad_format {
    MAD_FMT_UINT,
    MAD_FMT_HEX,
    MAD_FMT_BOOL,
    MAD_FMT_GUID,       // 0x and 16 digits
    MAD_FMT_GID,        // an array of 16 bytes, shown as one IPv6-like text
    MAD_FMT_TEXT,       // an array of char, ended by NUL or by its length, shown as one text
    MAD_FMT_BYTES,      // an array of bytes, shown as one hexadecimal text
    MAD_FMT_NODE_TYPE,  // CA, Switch, Router
    MAD_FMT_PORT_STATE, // Down, Initialize, Armed, Active
    MAD_FMT_PHYS_STATE, // Sleep, Polling, ... and LinkDownDefaultState
    MAD_FMT_SM_STATE,   // NotActive, Discovering, Standby, Master
    MAD_FMT_MTU,        // code -> bytes
    MAD_FMT_VLS,        // code -> "VL0-7"
    MAD_FMT_WIDTH,      // one width bit
    MAD_FMT_WIDTH_MASK, // several
    MAD_FMT_SPEED,
    MAD_FMT_SPEED_MASK,
    MAD_FMT_SPEED_EXT,
    MAD_FMT_SPEED_EXT_MASK,
    MAD_FMT_SPEED_EXT2,
    MAD_FMT_SPEED_EXT2_MASK,
};

// One row. Elements are numbers of up to 64 bits.
struct mad_field {
    const char *name;   // NULL: reserved
    uint16_t first_bit; // of element 0
    uint16_t width;     // bits an element
    uint16_t count;     // elements; 1 for a number
    uint16_t stride;    // bits from one element to the next
    uint16_t offset;    // in the host struct
    uint8_t size;       // bytes of a host element: 1, 2, 4 or 8
    uint8_t format;     // enum mad_format
    bool is_array;
    int8_t component; // bit in the SA component mask, -1: none
};

// Which requests the standard allows for an attribute (a switch or adapter may take fewer).
enum {
    MAD_MAY_GET = 1,
    MAD_MAY_SET = 2,
    MAD_MAY_TRAP = 4,
    MAD_MAY_TABLE = 8, // GetTable
    MAD_MAY_DELETE = 16,
    MAD_MAY_REPORT = 32,
};

struct mad_attr {
    const char *name;    // the standard's spelling: "PortInfo"
    const char *ident;   // ours: "port_info"
    uint8_t mgmt_class;  // MAD_CLASS_*; 0: not an attribute by itself (headers, trap details)
    uint16_t id;         // attribute id; the trap number for trap details
    uint8_t methods;     // MAD_MAY_*
    uint16_t wire_bytes; // bytes described; the rest of a MAD's data area is reserved
    uint16_t struct_size;
    uint16_t nfields; // rows, reserved ones included
    const struct mad_field *fields;
    void (*decode)(const uint8_t *restrict wire, void *restrict ret_host); // by mad_attr_decode()
    void (*encode)(const void *restrict host,
                   uint8_t *restrict wire); // by mad_attr_encode(), which clears the wire
};

// name, the standard's name, class, id, bytes on the wire, methods
#define MAD_SM_ATTRS(X)                                                                                      \
    X(notice, "Notice", 0x01, 0x0002, 64, MAD_MAY_GET | MAD_MAY_SET | MAD_MAY_TRAP)                          \
    X(node_description, "NodeDescription", 0x01, 0x0010, 64, MAD_MAY_GET | MAD_MAY_SET)                      \
    X(node_info, "NodeInfo", 0x01, 0x0011, 40, MAD_MAY_GET)                                                  \
    X(switch_info, "SwitchInfo", 0x01, 0x0012, 20, MAD_MAY_GET | MAD_MAY_SET)                                \
    X(guid_info, "GUIDInfo", 0x01, 0x0014, 64, MAD_MAY_GET | MAD_MAY_SET)                                    \
    X(port_info, "PortInfo", 0x01, 0x0015, 64, MAD_MAY_GET | MAD_MAY_SET)                                    \
    X(p_key_table, "P_KeyTable", 0x01, 0x0016, 64, MAD_MAY_GET | MAD_MAY_SET)                                \
    X(sltovl_mapping_table, "SLtoVLMappingTable", 0x01, 0x0017, 8, MAD_MAY_GET | MAD_MAY_SET)                \
    X(vl_arbitration_table, "VLArbitrationTable", 0x01, 0x0018, 64, MAD_MAY_GET | MAD_MAY_SET)               \
    X(linear_forwarding_table, "LinearForwardingTable", 0x01, 0x0019, 64, MAD_MAY_GET | MAD_MAY_SET)         \
    X(multicast_forwarding_table, "MulticastForwardingTable", 0x01, 0x001b, 64, MAD_MAY_GET | MAD_MAY_SET)   \
    X(sm_info, "SMInfo", 0x01, 0x0020, 21, MAD_MAY_GET | MAD_MAY_SET)                                        \
    X(port_info_extended, "PortInfoExtended", 0x01, 0x0033, 64, MAD_MAY_GET | MAD_MAY_SET)                   \
    X(switch_port_state_table, "SwitchPortStateTable", 0x01, 0x0034, 64, MAD_MAY_GET)                        \
    X(general_info, "GeneralInfo", 0x01, 0xff17, 64, MAD_MAY_GET)                                            \
    X(adaptive_routing_info, "AdaptiveRoutingInfo", 0x01, 0xff20, 64, MAD_MAY_GET | MAD_MAY_SET)             \
    X(adaptive_routing_group_table, "AdaptiveRoutingGroupTable", 0x01, 0xff21, 64,                           \
      MAD_MAY_GET | MAD_MAY_SET)                                                                             \
    X(adaptive_routing_lft, "AdaptiveRoutingLinearForwardingTable", 0x01, 0xff23, 64,                        \
      MAD_MAY_GET | MAD_MAY_SET)                                                                             \
    X(mlnx_ext_port_info, "MlnxExtPortInfo", 0x01, 0xff90, 64, MAD_MAY_GET | MAD_MAY_SET)

#define MAD_PM_ATTRS(X)                                                                                      \
    X(class_port_info, "ClassPortInfo", 0x04, 0x0001, 72, MAD_MAY_GET | MAD_MAY_SET)                         \
    X(port_counters, "PortCounters", 0x04, 0x0012, 44, MAD_MAY_GET | MAD_MAY_SET)                            \
    X(port_rcv_error_details, "PortRcvErrorDetails", 0x04, 0x0015, 16, MAD_MAY_GET | MAD_MAY_SET)            \
    X(port_xmit_discard_details, "PortXmitDiscardDetails", 0x04, 0x0016, 12, MAD_MAY_GET | MAD_MAY_SET)      \
    X(port_counters_extended, "PortCountersExtended", 0x04, 0x001d, 184, MAD_MAY_GET | MAD_MAY_SET)          \
    X(port_extended_speeds_counters, "PortExtendedSpeedsCounters", 0x04, 0x001f, 152,                        \
      MAD_MAY_GET | MAD_MAY_SET)                                                                             \
    X(port_vl_xmit_wait_counters, "PortVLXmitWaitCounters", 0x04, 0x001c, 36, MAD_MAY_GET | MAD_MAY_SET)

// Headers count from the first byte of the MAD. sa_notice is the SA's Notice (with the issuer's GID).
#define MAD_HDR_ATTRS(X)                                                                                     \
    X(hdr, "MAD", 0, 0, 24, 0)                                                                               \
    X(smp, "SMP", 0, 0, 256, 0)                                                                              \
    X(sa_hdr, "SA", 0, 0, 56, 0)

// Records are as long as a table of them repeats, a multiple of eight bytes (AttributeOffset x 8).
#define MAD_SA_ATTRS(X)                                                                                      \
    X(sa_notice, "Notice", 0x03, 0x0002, 80, MAD_MAY_GET | MAD_MAY_SET | MAD_MAY_REPORT)                     \
    X(inform_info, "InformInfo", 0x03, 0x0003, 36, MAD_MAY_SET)                                              \
    X(node_record, "NodeRecord", 0x03, 0x0011, 112, MAD_MAY_GET | MAD_MAY_TABLE)                             \
    X(port_info_record, "PortInfoRecord", 0x03, 0x0012, 72, MAD_MAY_GET | MAD_MAY_TABLE)                     \
    X(sltovl_mapping_table_record, "SLtoVLMappingTableRecord", 0x03, 0x0013, 16,                             \
      MAD_MAY_GET | MAD_MAY_TABLE)                                                                           \
    X(switch_info_record, "SwitchInfoRecord", 0x03, 0x0014, 24, MAD_MAY_GET | MAD_MAY_TABLE)                 \
    X(linear_forwarding_table_record, "LinearForwardingTableRecord", 0x03, 0x0015, 72,                       \
      MAD_MAY_GET | MAD_MAY_TABLE)                                                                           \
    X(multicast_forwarding_table_record, "MulticastForwardingTableRecord", 0x03, 0x0017, 72,                 \
      MAD_MAY_GET | MAD_MAY_TABLE)                                                                           \
    X(sm_info_record, "SMInfoRecord", 0x03, 0x0018, 32, MAD_MAY_GET | MAD_MAY_TABLE)                         \
    X(link_record, "LinkRecord", 0x03, 0x0020, 8, MAD_MAY_GET | MAD_MAY_TABLE)                               \
    X(guid_info_record, "GUIDInfoRecord", 0x03, 0x0030, 72,                                                  \
      MAD_MAY_GET | MAD_MAY_TABLE | MAD_MAY_SET | MAD_MAY_DELETE)                                            \
    X(service_record, "ServiceRecord", 0x03, 0x0031, 176,                                                    \
      MAD_MAY_GET | MAD_MAY_TABLE | MAD_MAY_SET | MAD_MAY_DELETE)                                            \
    X(p_key_table_record, "P_KeyTableRecord", 0x03, 0x0033, 72, MAD_MAY_GET | MAD_MAY_TABLE)                 \
    X(path_record, "PathRecord", 0x03, 0x0035, 64, MAD_MAY_GET | MAD_MAY_TABLE)                              \
    X(vl_arbitration_table_record, "VLArbitrationTableRecord", 0x03, 0x0036, 72,                             \
      MAD_MAY_GET | MAD_MAY_TABLE)                                                                           \
    X(mc_member_record, "MCMemberRecord", 0x03, 0x0038, 56,                                                  \
      MAD_MAY_GET | MAD_MAY_TABLE | MAD_MAY_SET | MAD_MAY_DELETE)                                            \
    X(inform_info_record, "InformInfoRecord", 0x03, 0x00f3, 64, MAD_MAY_GET | MAD_MAY_TABLE)

// Layouts of notice.data_details; id is the lowest trap number, see mad_trap_find().
#define MAD_TRAP_ATTRS(X)                                                                                    \
    X(trap_64, "Trap64", 0, 64, 54, 0)                                                                       \
    X(trap_128, "Trap128", 0, 128, 54, 0)                                                                    \
    X(trap_129, "Trap129", 0, 129, 54, 0)                                                                    \
    X(trap_144, "Trap144", 0, 144, 54, 0)                                                                    \
    X(trap_145, "Trap145", 0, 145, 54, 0)                                                                    \
    X(trap_256, "Trap256", 0, 256, 54, 0)                                                                    \
    X(trap_257, "Trap257", 0, 257, 54, 0)                                                                    \
    X(trap_259, "Trap259", 0, 259, 54, 0)

#define MAD_ATTRS(X) MAD_SM_ATTRS(X) MAD_PM_ATTRS(X) MAD_SA_ATTRS(X) MAD_HDR_ATTRS(X) MAD_TRAP_ATTRS(X)

#include "mad/attr/rows_struct.h"
struct mad_notice {
#include "mad/attr/notice.def"
};
struct mad_node_description {
#include "mad/attr/node_description.def"
};
struct mad_node_info {
#include "mad/attr/node_info.def"
};
struct mad_switch_info {
#include "mad/attr/switch_info.def"
};
struct mad_guid_info {
#include "mad/attr/guid_info.def"
};
struct mad_port_info {
#include "mad/attr/port_info.def"
};
struct mad_p_key_table {
#include "mad/attr/p_key_table.def"
};
struct mad_sltovl_mapping_table {
#include "mad/attr/sltovl_mapping_table.def"
};
struct mad_vl_arbitration_table {
#include "mad/attr/vl_arbitration_table.def"
};
struct mad_linear_forwarding_table {
#include "mad/attr/linear_forwarding_table.def"
};
struct mad_multicast_forwarding_table {
#include "mad/attr/multicast_forwarding_table.def"
};
struct mad_sm_info {
#include "mad/attr/sm_info.def"
};
struct mad_port_info_extended {
#include "mad/attr/port_info_extended.def"
};
struct mad_switch_port_state_table {
#include "mad/attr/switch_port_state_table.def"
};
struct mad_general_info {
#include "mad/attr/general_info.def"
};
struct mad_adaptive_routing_info {
#include "mad/attr/adaptive_routing_info.def"
};
struct mad_adaptive_routing_group_table {
#include "mad/attr/adaptive_routing_group_table.def"
};
struct mad_adaptive_routing_lft {
#include "mad/attr/adaptive_routing_lft.def"
};
struct mad_mlnx_ext_port_info {
#include "mad/attr/mlnx_ext_port_info.def"
};
struct mad_class_port_info {
#include "mad/attr/class_port_info.def"
};
struct mad_port_counters {
#include "mad/attr/port_counters.def"
};
struct mad_port_rcv_error_details {
#include "mad/attr/port_rcv_error_details.def"
};
struct mad_port_xmit_discard_details {
#include "mad/attr/port_xmit_discard_details.def"
};
struct mad_port_counters_extended {
#include "mad/attr/port_counters_extended.def"
};
struct mad_port_extended_speeds_counters {
#include "mad/attr/port_extended_speeds_counters.def"
};
struct mad_port_vl_xmit_wait_counters {
#include "mad/attr/port_vl_xmit_wait_counters.def"
};
struct mad_sa_notice {
#include "mad/attr/sa_notice.def"
};
struct mad_inform_info {
#include "mad/attr/inform_info.def"
};
struct mad_node_record {
#include "mad/attr/node_record.def"
};
struct mad_port_info_record {
#include "mad/attr/port_info_record.def"
};
struct mad_sltovl_mapping_table_record {
#include "mad/attr/sltovl_mapping_table_record.def"
};
struct mad_switch_info_record {
#include "mad/attr/switch_info_record.def"
};
struct mad_linear_forwarding_table_record {
#include "mad/attr/linear_forwarding_table_record.def"
};
struct mad_multicast_forwarding_table_record {
#include "mad/attr/multicast_forwarding_table_record.def"
};
struct mad_sm_info_record {
#include "mad/attr/sm_info_record.def"
};
struct mad_link_record {
#include "mad/attr/link_record.def"
};
struct mad_guid_info_record {
#include "mad/attr/guid_info_record.def"
};
struct mad_service_record {
#include "mad/attr/service_record.def"
};
struct mad_p_key_table_record {
#include "mad/attr/p_key_table_record.def"
};
struct mad_path_record {
#include "mad/attr/path_record.def"
};
struct mad_vl_arbitration_table_record {
#include "mad/attr/vl_arbitration_table_record.def"
};
struct mad_mc_member_record {
#include "mad/attr/mc_member_record.def"
};
struct mad_inform_info_record {
#include "mad/attr/inform_info_record.def"
};
struct mad_hdr {
#include "mad/attr/hdr.def"
};
struct mad_smp {
#include "mad/attr/smp.def"
};
struct mad_sa_hdr {
#include "mad/attr/sa_hdr.def"
};
struct mad_trap_64 {
#include "mad/attr/trap_64.def"
};
struct mad_trap_128 {
#include "mad/attr/trap_128.def"
};
struct mad_trap_129 {
#include "mad/attr/trap_129.def"
};
struct mad_trap_144 {
#include "mad/attr/trap_144.def"
};
struct mad_trap_145 {
#include "mad/attr/trap_145.def"
};
struct mad_trap_256 {
#include "mad/attr/trap_256.def"
};
struct mad_trap_257 {
#include "mad/attr/trap_257.def"
};
struct mad_trap_259 {
#include "mad/attr/trap_259.def"
};
#include "mad/attr/rows_undef.h"

// Decodes attr->wire_bytes bytes of wire into the attribute's host struct, which may not overlap it. All
// fields are written.
void mad_attr_decode(const struct mad_attr *attr, const uint8_t *wire, void *ret_host);

// Writes attr->wire_bytes bytes: fields cut to their width, reserved bits 0.
void mad_attr_encode(const struct mad_attr *attr, const void *host, uint8_t *wire);

// mad_<name>_decode(wire, &struct), mad_<name>_encode(&struct, wire) and the table mad_attr_<name>.
#define MAD_DECLARE(n, ...)                                                                                  \
    extern const struct mad_attr mad_attr_##n;                                                               \
    static inline void mad_##n##_decode(const uint8_t *wire, struct mad_##n *ret)                            \
    {                                                                                                        \
        mad_attr_decode(&mad_attr_##n, wire, ret);                                                           \
    }                                                                                                        \
    static inline void mad_##n##_encode(const struct mad_##n *host, uint8_t *wire)                           \
    {                                                                                                        \
        mad_attr_encode(&mad_attr_##n, host, wire);                                                          \
    }
MAD_ATTRS(MAD_DECLARE)

// The attribute of a class (0x81 counts as 0x01) or NULL. ClassPortInfo is found under every class.
const struct mad_attr *mad_attr_find(uint8_t mgmt_class, uint16_t attr_id);

// The layout of notice.data_details for a generic trap number, or NULL.
const struct mad_attr *mad_trap_find(uint16_t trap_number);

// All tables, headers and trap details too; NULL beyond the last.
const struct mad_attr *mad_attr_at(unsigned i);

// The row with this name (lower snake case) or NULL.
const struct mad_field *mad_field_find(const struct mad_attr *attr, const char *name);

// Element i (0 for a number) of a host struct. Set cuts to the host type, not to the width.
uint64_t mad_field_get(const struct mad_field *field, const void *host, unsigned i);
void mad_field_set(const struct mad_field *field, void *host, unsigned i, uint64_t value);

// Calls fn for each named field in the order of the rows. fn reads the value with mad_field_get(), or shows
// it whole with mad_field_text(). A non-zero return ends the walk and is returned.
typedef int mad_visit_fn(void *ctx, const struct mad_field *field, const void *host);
int mad_attr_walk(const struct mad_attr *attr, const void *host, mad_visit_fn *fn, void *ctx);

// Element i as text ("Active", "0x0002c9...", "17"); GID, TEXT and BYTES arrays whole, i ignored. Control
// characters and bytes above 126 in TEXT become '?'. Returns the length as snprintf does; the text is always
// terminated if size > 0.
size_t mad_field_text(const struct mad_field *field, const void *host, unsigned i, char *buf, size_t size);

// Whether mad_field_text() shows the field in one piece (numbers, GIDs, texts, byte strings) and not an
// element at a time.
bool mad_field_is_whole(const struct mad_field *field);

// All fields, "name: value" a line, arrays of numbers as a list. Returns the length as snprintf does.
size_t mad_attr_print(const struct mad_attr *attr, const void *host, char *buf, size_t size);

// Whether candidate equals pattern in every component that mask selects (IBTA vol 1, 15.4.4). Bits of mask
// without a row are ignored: selectors and other special components are the caller's.
bool mad_component_match(const struct mad_attr *attr, uint64_t mask, const void *pattern,
                         const void *candidate);

#endif
