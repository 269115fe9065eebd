// SPDX-License-Identifier: Apache-2.0
#include "mad/codec.h"

#include <endian.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mad/mad.h"

#include "mad/attr/rows_table.h"
#define ATTR struct mad_notice
static const struct mad_field notice_fields[] = {
#include "mad/attr/notice.def"
};
#undef ATTR
#define ATTR struct mad_node_description
static const struct mad_field node_description_fields[] = {
#include "mad/attr/node_description.def"
};
#undef ATTR
#define ATTR struct mad_node_info
static const struct mad_field node_info_fields[] = {
#include "mad/attr/node_info.def"
};
#undef ATTR
#define ATTR struct mad_switch_info
static const struct mad_field switch_info_fields[] = {
#include "mad/attr/switch_info.def"
};
#undef ATTR
#define ATTR struct mad_guid_info
static const struct mad_field guid_info_fields[] = {
#include "mad/attr/guid_info.def"
};
#undef ATTR
#define ATTR struct mad_port_info
static const struct mad_field port_info_fields[] = {
#include "mad/attr/port_info.def"
};
#undef ATTR
#define ATTR struct mad_p_key_table
static const struct mad_field p_key_table_fields[] = {
#include "mad/attr/p_key_table.def"
};
#undef ATTR
#define ATTR struct mad_sltovl_mapping_table
static const struct mad_field sltovl_mapping_table_fields[] = {
#include "mad/attr/sltovl_mapping_table.def"
};
#undef ATTR
#define ATTR struct mad_vl_arbitration_table
static const struct mad_field vl_arbitration_table_fields[] = {
#include "mad/attr/vl_arbitration_table.def"
};
#undef ATTR
#define ATTR struct mad_linear_forwarding_table
static const struct mad_field linear_forwarding_table_fields[] = {
#include "mad/attr/linear_forwarding_table.def"
};
#undef ATTR
#define ATTR struct mad_multicast_forwarding_table
static const struct mad_field multicast_forwarding_table_fields[] = {
#include "mad/attr/multicast_forwarding_table.def"
};
#undef ATTR
#define ATTR struct mad_sm_info
static const struct mad_field sm_info_fields[] = {
#include "mad/attr/sm_info.def"
};
#undef ATTR
#define ATTR struct mad_port_info_extended
static const struct mad_field port_info_extended_fields[] = {
#include "mad/attr/port_info_extended.def"
};
#undef ATTR
#define ATTR struct mad_switch_port_state_table
static const struct mad_field switch_port_state_table_fields[] = {
#include "mad/attr/switch_port_state_table.def"
};
#undef ATTR
#define ATTR struct mad_mlnx_ext_port_info
static const struct mad_field mlnx_ext_port_info_fields[] = {
#include "mad/attr/mlnx_ext_port_info.def"
};
#undef ATTR
#define ATTR struct mad_class_port_info
static const struct mad_field class_port_info_fields[] = {
#include "mad/attr/class_port_info.def"
};
#undef ATTR
#define ATTR struct mad_port_counters
static const struct mad_field port_counters_fields[] = {
#include "mad/attr/port_counters.def"
};
#undef ATTR
#define ATTR struct mad_port_rcv_error_details
static const struct mad_field port_rcv_error_details_fields[] = {
#include "mad/attr/port_rcv_error_details.def"
};
#undef ATTR
#define ATTR struct mad_port_xmit_discard_details
static const struct mad_field port_xmit_discard_details_fields[] = {
#include "mad/attr/port_xmit_discard_details.def"
};
#undef ATTR
#define ATTR struct mad_port_counters_extended
static const struct mad_field port_counters_extended_fields[] = {
#include "mad/attr/port_counters_extended.def"
};
#undef ATTR
#define ATTR struct mad_port_extended_speeds_counters
static const struct mad_field port_extended_speeds_counters_fields[] = {
#include "mad/attr/port_extended_speeds_counters.def"
};
#undef ATTR
#define ATTR struct mad_sa_notice
static const struct mad_field sa_notice_fields[] = {
#include "mad/attr/sa_notice.def"
};
#undef ATTR
#define ATTR struct mad_hdr
static const struct mad_field hdr_fields[] = {
#include "mad/attr/hdr.def"
};
#undef ATTR
#define ATTR struct mad_smp
static const struct mad_field smp_fields[] = {
#include "mad/attr/smp.def"
};
#undef ATTR
#define ATTR struct mad_sa_hdr
static const struct mad_field sa_hdr_fields[] = {
#include "mad/attr/sa_hdr.def"
};
#undef ATTR
#define ATTR struct mad_trap_64
static const struct mad_field trap_64_fields[] = {
#include "mad/attr/trap_64.def"
};
#undef ATTR
#define ATTR struct mad_trap_128
static const struct mad_field trap_128_fields[] = {
#include "mad/attr/trap_128.def"
};
#undef ATTR
#define ATTR struct mad_trap_129
static const struct mad_field trap_129_fields[] = {
#include "mad/attr/trap_129.def"
};
#undef ATTR
#define ATTR struct mad_trap_144
static const struct mad_field trap_144_fields[] = {
#include "mad/attr/trap_144.def"
};
#undef ATTR
#define ATTR struct mad_trap_145
static const struct mad_field trap_145_fields[] = {
#include "mad/attr/trap_145.def"
};
#undef ATTR
#define ATTR struct mad_trap_256
static const struct mad_field trap_256_fields[] = {
#include "mad/attr/trap_256.def"
};
#undef ATTR
#define ATTR struct mad_trap_257
static const struct mad_field trap_257_fields[] = {
#include "mad/attr/trap_257.def"
};
#undef ATTR
#define ATTR struct mad_trap_259
static const struct mad_field trap_259_fields[] = {
#include "mad/attr/trap_259.def"
};
#undef ATTR
#include "mad/attr/rows_undef.h"

#define DEFINE(n, text, class, attr_id, bytes, may)                                                          \
    const struct mad_attr mad_attr_##n = {.name = text,                                                      \
                                          .ident = #n,                                                       \
                                          .mgmt_class = class,                                               \
                                          .id = attr_id,                                                     \
                                          .methods = may,                                                    \
                                          .wire_bytes = bytes,                                               \
                                          .struct_size = sizeof(struct mad_##n),                             \
                                          .nfields = sizeof(n##_fields) / sizeof(n##_fields[0]),             \
                                          .fields = n##_fields};
MAD_ATTRS(DEFINE)

#define LIST(n, ...) &mad_attr_##n,
static const struct mad_attr *const attrs[] = {MAD_ATTRS(LIST)};

// width bits from bit first on; they touch at most 8 bytes.
static uint64_t bits_get(const uint8_t *wire, unsigned first, unsigned width)
{
    const uint8_t *p = wire + first / 8;
    unsigned end = first % 8 + width, nbytes = (end + 7) / 8;
    uint64_t v = 0;
    for (unsigned i = 0; i < nbytes; i++)
        v = v << 8 | p[i];
    v >>= nbytes * 8 - end;
    return width == 64 ? v : v & (((uint64_t)1 << width) - 1);
}

// The bits must be 0 before.
static void bits_put(uint8_t *wire, unsigned first, unsigned width, uint64_t v)
{
    uint8_t *p = wire + first / 8;
    unsigned end = first % 8 + width, nbytes = (end + 7) / 8;
    if (width < 64)
        v &= ((uint64_t)1 << width) - 1;
    v <<= nbytes * 8 - end;
    for (unsigned i = nbytes; i-- > 0; v >>= 8)
        p[i] |= (uint8_t)v;
}

static uint64_t host_get(const uint8_t *p, unsigned size)
{
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    switch (size) {
    case 1:
        return *p;
    case 2:
        memcpy(&v16, p, 2);
        return v16;
    case 4:
        memcpy(&v32, p, 4);
        return v32;
    default:
        memcpy(&v64, p, 8);
        return v64;
    }
}

static void host_put(uint8_t *p, unsigned size, uint64_t v)
{
    uint16_t v16 = (uint16_t)v;
    uint32_t v32 = (uint32_t)v;
    switch (size) {
    case 1:
        *p = (uint8_t)v;
        break;
    case 2:
        memcpy(p, &v16, 2);
        break;
    case 4:
        memcpy(p, &v32, 4);
        break;
    default:
        memcpy(p, &v, 8);
    }
}

static inline void decode_one(enum mad_kind kind, const uint8_t *wire, unsigned first, unsigned width,
                              uint8_t *host, unsigned size)
{
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    const uint8_t *p = wire + first / 8;
    switch (kind) {
    case MAD_KIND_RESERVED:
        break;
    case MAD_KIND_U8:
        *host = *p;
        break;
    case MAD_KIND_U16:
        memcpy(&v16, p, 2);
        v16 = be16toh(v16);
        memcpy(host, &v16, 2);
        break;
    case MAD_KIND_U32:
        memcpy(&v32, p, 4);
        v32 = be32toh(v32);
        memcpy(host, &v32, 4);
        break;
    case MAD_KIND_U64:
        memcpy(&v64, p, 8);
        v64 = be64toh(v64);
        memcpy(host, &v64, 8);
        break;
    case MAD_KIND_BITS8:
        *host = (uint8_t)(*p >> (8 - first % 8 - width) & ((1u << width) - 1));
        break;
    case MAD_KIND_ANY:
        host_put(host, size, bits_get(wire, first, width));
        break;
    }
}

static inline void encode_one(enum mad_kind kind, const uint8_t *host, unsigned size, uint8_t *wire,
                              unsigned first, unsigned width)
{
    uint16_t v16;
    uint32_t v32;
    uint64_t v64;
    uint8_t *p = wire + first / 8;
    switch (kind) {
    case MAD_KIND_RESERVED:
        break;
    case MAD_KIND_U8:
        *p = *host;
        break;
    case MAD_KIND_U16:
        memcpy(&v16, host, 2);
        v16 = htobe16(v16);
        memcpy(p, &v16, 2);
        break;
    case MAD_KIND_U32:
        memcpy(&v32, host, 4);
        v32 = htobe32(v32);
        memcpy(p, &v32, 4);
        break;
    case MAD_KIND_U64:
        memcpy(&v64, host, 8);
        v64 = htobe64(v64);
        memcpy(p, &v64, 8);
        break;
    case MAD_KIND_BITS8:
        *p |= (uint8_t)((*host & ((1u << width) - 1)) << (8 - first % 8 - width));
        break;
    case MAD_KIND_ANY:
        bits_put(wire, first, width, host_get(host, size));
        break;
    }
}

// Forwarding blocks and texts are most of what goes over the wire at scale.
static inline bool is_bytes(const struct mad_field *f)
{
    return f->kind == MAD_KIND_U8 && f->stride == 8;
}

void mad_attr_decode(const struct mad_attr *attr, const uint8_t *wire, void *ret_host)
{
    for (const struct mad_field *f = attr->fields, *end = f + attr->nfields; f < end; f++) {
        uint8_t *host = (uint8_t *)ret_host + f->offset;
        if (!f->is_array) {
            decode_one(f->kind, wire, f->first_bit, f->width, host, f->size);
            continue;
        }
        if (is_bytes(f)) {
            memcpy(host, wire + f->first_bit / 8, f->count);
            continue;
        }
        for (unsigned i = 0, bit = f->first_bit; i < f->count; i++, bit += f->stride, host += f->size)
            decode_one(f->kind, wire, bit, f->width, host, f->size);
    }
}

void mad_attr_encode(const struct mad_attr *attr, const void *from, uint8_t *wire)
{
    memset(wire, 0, attr->wire_bytes);
    for (const struct mad_field *f = attr->fields, *end = f + attr->nfields; f < end; f++) {
        const uint8_t *host = (const uint8_t *)from + f->offset;
        if (!f->is_array) {
            encode_one(f->kind, host, f->size, wire, f->first_bit, f->width);
            continue;
        }
        if (is_bytes(f)) {
            memcpy(wire + f->first_bit / 8, host, f->count);
            continue;
        }
        for (unsigned i = 0, bit = f->first_bit; i < f->count; i++, bit += f->stride, host += f->size)
            encode_one(f->kind, host, f->size, wire, bit, f->width);
    }
}

const struct mad_attr *mad_attr_find(uint8_t mgmt_class, uint16_t attr_id)
{
    if (mgmt_class == MAD_CLASS_SM_DR)
        mgmt_class = MAD_CLASS_SM_LID;
    if (mgmt_class != 0 && mgmt_class != MAD_CLASS_SM_LID && attr_id == mad_attr_class_port_info.id)
        return &mad_attr_class_port_info;
    for (unsigned i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
        if (mgmt_class != 0 && attrs[i]->mgmt_class == mgmt_class && attrs[i]->id == attr_id)
            return attrs[i];
    return NULL;
}

const struct mad_attr *mad_trap_find(uint16_t trap_number)
{
    switch (trap_number) {
    case MAD_TRAP_GID_IN_SERVICE:
    case MAD_TRAP_GID_OUT_OF_SERVICE:
    case MAD_TRAP_MC_GROUP_CREATED:
    case MAD_TRAP_MC_GROUP_DELETED:
        return &mad_attr_trap_64;
    case MAD_TRAP_LINK_STATE_CHANGE:
        return &mad_attr_trap_128;
    case MAD_TRAP_LOCAL_LINK_INTEGRITY:
    case MAD_TRAP_EXCESSIVE_BUFFER_OVERRUN:
    case MAD_TRAP_FLOW_CONTROL_WATCHDOG:
        return &mad_attr_trap_129;
    case MAD_TRAP_LOCAL_CHANGES:
        return &mad_attr_trap_144;
    case MAD_TRAP_SYSTEM_IMAGE_GUID:
        return &mad_attr_trap_145;
    case MAD_TRAP_BAD_M_KEY:
        return &mad_attr_trap_256;
    case MAD_TRAP_BAD_P_KEY:
    case MAD_TRAP_BAD_Q_KEY:
        return &mad_attr_trap_257;
    case MAD_TRAP_SWITCH_BAD_P_KEY:
        return &mad_attr_trap_259;
    default:
        return NULL;
    }
}

const struct mad_attr *mad_attr_at(unsigned i)
{
    return i < sizeof(attrs) / sizeof(attrs[0]) ? attrs[i] : NULL;
}

const struct mad_field *mad_field_find(const struct mad_attr *attr, const char *name)
{
    for (unsigned i = 0; i < attr->nfields; i++)
        if (attr->fields[i].name && strcmp(attr->fields[i].name, name) == 0)
            return &attr->fields[i];
    return NULL;
}

uint64_t mad_field_get(const struct mad_field *f, const void *host, unsigned i)
{
    return host_get((const uint8_t *)host + f->offset + (size_t)i * f->size, f->size);
}

void mad_field_set(const struct mad_field *f, void *host, unsigned i, uint64_t value)
{
    host_put((uint8_t *)host + f->offset + (size_t)i * f->size, f->size, value);
}

int mad_attr_walk(const struct mad_attr *attr, const void *host, mad_visit_fn *fn, void *ctx)
{
    for (unsigned i = 0; i < attr->nfields; i++) {
        if (!attr->fields[i].name)
            continue;
        int rc = fn(ctx, &attr->fields[i], host);
        if (rc)
            return rc;
    }
    return 0;
}

bool mad_component_match(const struct mad_attr *attr, uint64_t mask, const void *pattern,
                         const void *candidate)
{
    for (unsigned i = 0; i < attr->nfields; i++) {
        const struct mad_field *f = &attr->fields[i];
        if (!f->name || f->component < 0 || !(mask >> f->component & 1))
            continue;
        if (memcmp((const uint8_t *)pattern + f->offset, (const uint8_t *)candidate + f->offset,
                   (size_t)f->size * f->count) != 0)
            return false;
    }
    return true;
}
