// SPDX-License-Identifier: Apache-2.0
#include "mad/codec.h"

#include <string.h>

#include "mad/mad.h"

#define MAD_NAME notice
#define MAD_DEF "mad/attr/notice.def"
#include "mad/attr/define.h"
#define MAD_NAME node_description
#define MAD_DEF "mad/attr/node_description.def"
#include "mad/attr/define.h"
#define MAD_NAME node_info
#define MAD_DEF "mad/attr/node_info.def"
#include "mad/attr/define.h"
#define MAD_NAME switch_info
#define MAD_DEF "mad/attr/switch_info.def"
#include "mad/attr/define.h"
#define MAD_NAME guid_info
#define MAD_DEF "mad/attr/guid_info.def"
#include "mad/attr/define.h"
#define MAD_NAME port_info
#define MAD_DEF "mad/attr/port_info.def"
#include "mad/attr/define.h"
#define MAD_NAME p_key_table
#define MAD_DEF "mad/attr/p_key_table.def"
#include "mad/attr/define.h"
#define MAD_NAME sltovl_mapping_table
#define MAD_DEF "mad/attr/sltovl_mapping_table.def"
#include "mad/attr/define.h"
#define MAD_NAME vl_arbitration_table
#define MAD_DEF "mad/attr/vl_arbitration_table.def"
#include "mad/attr/define.h"
#define MAD_NAME linear_forwarding_table
#define MAD_DEF "mad/attr/linear_forwarding_table.def"
#include "mad/attr/define.h"
#define MAD_NAME multicast_forwarding_table
#define MAD_DEF "mad/attr/multicast_forwarding_table.def"
#include "mad/attr/define.h"
#define MAD_NAME sm_info
#define MAD_DEF "mad/attr/sm_info.def"
#include "mad/attr/define.h"
#define MAD_NAME port_info_extended
#define MAD_DEF "mad/attr/port_info_extended.def"
#include "mad/attr/define.h"
#define MAD_NAME switch_port_state_table
#define MAD_DEF "mad/attr/switch_port_state_table.def"
#include "mad/attr/define.h"
#define MAD_NAME general_info
#define MAD_DEF "mad/attr/general_info.def"
#include "mad/attr/define.h"
#define MAD_NAME adaptive_routing_info
#define MAD_DEF "mad/attr/adaptive_routing_info.def"
#include "mad/attr/define.h"
#define MAD_NAME adaptive_routing_group_table
#define MAD_DEF "mad/attr/adaptive_routing_group_table.def"
#include "mad/attr/define.h"
#define MAD_NAME adaptive_routing_lft
#define MAD_DEF "mad/attr/adaptive_routing_lft.def"
#include "mad/attr/define.h"
#define MAD_NAME mlnx_ext_port_info
#define MAD_DEF "mad/attr/mlnx_ext_port_info.def"
#include "mad/attr/define.h"
#define MAD_NAME class_port_info
#define MAD_DEF "mad/attr/class_port_info.def"
#include "mad/attr/define.h"
#define MAD_NAME port_counters
#define MAD_DEF "mad/attr/port_counters.def"
#include "mad/attr/define.h"
#define MAD_NAME port_rcv_error_details
#define MAD_DEF "mad/attr/port_rcv_error_details.def"
#include "mad/attr/define.h"
#define MAD_NAME port_xmit_discard_details
#define MAD_DEF "mad/attr/port_xmit_discard_details.def"
#include "mad/attr/define.h"
#define MAD_NAME port_counters_extended
#define MAD_DEF "mad/attr/port_counters_extended.def"
#include "mad/attr/define.h"
#define MAD_NAME port_extended_speeds_counters
#define MAD_DEF "mad/attr/port_extended_speeds_counters.def"
#include "mad/attr/define.h"
#define MAD_NAME port_vl_xmit_wait_counters
#define MAD_DEF "mad/attr/port_vl_xmit_wait_counters.def"
#include "mad/attr/define.h"
#define MAD_NAME sa_notice
#define MAD_DEF "mad/attr/sa_notice.def"
#include "mad/attr/define.h"
#define MAD_NAME inform_info
#define MAD_DEF "mad/attr/inform_info.def"
#include "mad/attr/define.h"
#define MAD_NAME node_record
#define MAD_DEF "mad/attr/node_record.def"
#include "mad/attr/define.h"
#define MAD_NAME port_info_record
#define MAD_DEF "mad/attr/port_info_record.def"
#include "mad/attr/define.h"
#define MAD_NAME sltovl_mapping_table_record
#define MAD_DEF "mad/attr/sltovl_mapping_table_record.def"
#include "mad/attr/define.h"
#define MAD_NAME switch_info_record
#define MAD_DEF "mad/attr/switch_info_record.def"
#include "mad/attr/define.h"
#define MAD_NAME linear_forwarding_table_record
#define MAD_DEF "mad/attr/linear_forwarding_table_record.def"
#include "mad/attr/define.h"
#define MAD_NAME multicast_forwarding_table_record
#define MAD_DEF "mad/attr/multicast_forwarding_table_record.def"
#include "mad/attr/define.h"
#define MAD_NAME sm_info_record
#define MAD_DEF "mad/attr/sm_info_record.def"
#include "mad/attr/define.h"
#define MAD_NAME link_record
#define MAD_DEF "mad/attr/link_record.def"
#include "mad/attr/define.h"
#define MAD_NAME guid_info_record
#define MAD_DEF "mad/attr/guid_info_record.def"
#include "mad/attr/define.h"
#define MAD_NAME service_record
#define MAD_DEF "mad/attr/service_record.def"
#include "mad/attr/define.h"
#define MAD_NAME p_key_table_record
#define MAD_DEF "mad/attr/p_key_table_record.def"
#include "mad/attr/define.h"
#define MAD_NAME path_record
#define MAD_DEF "mad/attr/path_record.def"
#include "mad/attr/define.h"
#define MAD_NAME vl_arbitration_table_record
#define MAD_DEF "mad/attr/vl_arbitration_table_record.def"
#include "mad/attr/define.h"
#define MAD_NAME mc_member_record
#define MAD_DEF "mad/attr/mc_member_record.def"
#include "mad/attr/define.h"
#define MAD_NAME inform_info_record
#define MAD_DEF "mad/attr/inform_info_record.def"
#include "mad/attr/define.h"
#define MAD_NAME hdr
#define MAD_DEF "mad/attr/hdr.def"
#include "mad/attr/define.h"
#define MAD_NAME smp
#define MAD_DEF "mad/attr/smp.def"
#include "mad/attr/define.h"
#define MAD_NAME sa_hdr
#define MAD_DEF "mad/attr/sa_hdr.def"
#include "mad/attr/define.h"
#define MAD_NAME trap_64
#define MAD_DEF "mad/attr/trap_64.def"
#include "mad/attr/define.h"
#define MAD_NAME trap_128
#define MAD_DEF "mad/attr/trap_128.def"
#include "mad/attr/define.h"
#define MAD_NAME trap_129
#define MAD_DEF "mad/attr/trap_129.def"
#include "mad/attr/define.h"
#define MAD_NAME trap_144
#define MAD_DEF "mad/attr/trap_144.def"
#include "mad/attr/define.h"
#define MAD_NAME trap_145
#define MAD_DEF "mad/attr/trap_145.def"
#include "mad/attr/define.h"
#define MAD_NAME trap_256
#define MAD_DEF "mad/attr/trap_256.def"
#include "mad/attr/define.h"
#define MAD_NAME trap_257
#define MAD_DEF "mad/attr/trap_257.def"
#include "mad/attr/define.h"
#define MAD_NAME trap_259
#define MAD_DEF "mad/attr/trap_259.def"
#include "mad/attr/define.h"

#define DEFINE(n, ...) const struct mad_attr mad_attr_##n = MAD_ATTR_INIT(n, __VA_ARGS__);
MAD_ATTRS(DEFINE)

#define LIST(n, ...) &mad_attr_##n,
static const struct mad_attr *const attrs[] = {MAD_ATTRS(LIST)};

void mad_attr_decode(const struct mad_attr *attr, const uint8_t *wire, void *ret_host)
{
    attr->decode(wire, ret_host);
}

void mad_attr_encode(const struct mad_attr *attr, const void *host, uint8_t *wire)
{
    memset(wire, 0, attr->wire_bytes);
    attr->encode(host, wire);
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
    return mad_host_get((const uint8_t *)host + f->offset + (size_t)i * f->size, f->size);
}

void mad_field_set(const struct mad_field *f, void *host, unsigned i, uint64_t value)
{
    mad_host_put((uint8_t *)host + f->offset + (size_t)i * f->size, f->size, value);
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
