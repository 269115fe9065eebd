// SPDX-License-Identifier: Apache-2.0
// The subnet management agent: the table of attributes, and the small ones.
// A Set is checked whole before anything of it is stored; its answer shows what the device has afterwards.
#include "sim/sim_priv.h"

#include <string.h>

// --- NodeInfo, NodeDescription, SwitchInfo ---

static uint16_t node_info_get(struct sim *s, struct sma_req *r)
{
    const struct sim_node *n = r->node;
    struct mad_node_info ni = {
        .base_version = 1,
        .class_version = 1,
        .node_type = n->type,
        .num_ports = n->num_ports,
        .system_image_guid = n->sys_guid,
        .node_guid = n->guid,
        .port_guid = r->end->guid,
        .partition_cap = n->partition_cap,
        .device_id = n->device_id,
        .revision = n->revision,
        .local_port_num = r->in->num,
        .vendor_id = n->vendor_id,
    };
    mad_node_info_encode(&ni, r->data);
    return 0;
}

static uint16_t node_desc_get(struct sim *s, struct sma_req *r)
{
    memcpy(r->data, r->node->desc, sizeof(r->node->desc));
    return 0;
}

static uint16_t node_desc_set(struct sim *s, struct sma_req *r)
{
    if (!(r->end->pi.capability_mask & MAD_CAP_IS_CAPABILITY_MASK2_SUPPORTED) ||
        !(r->end->pi.capability_mask2 & MAD_CAP2_IS_SET_NODE_DESCRIPTION_SUPPORTED))
        return MAD_STATUS_BAD_METHOD_ATTR;
    memcpy(r->node->desc, r->data, sizeof(r->node->desc));
    trap_local_change(s, r->end, SIM_CHANGE_NODE_DESCRIPTION);
    return 0;
}

static uint16_t switch_info_get(struct sim *s, struct sma_req *r)
{
    mad_switch_info_encode(&s->sw[r->node->sw].si, r->data);
    return 0;
}

static bool mcast_top_ok(const struct mad_switch_info *cur, uint16_t top)
{
    return top == 0 || (top >= 0xbfff && top < 0xc000 + cur->multicast_fdb_cap);
}

static uint16_t switch_info_set(struct sim *s, struct sma_req *r)
{
    struct sim_switch *w = &s->sw[r->node->sw];
    struct mad_switch_info *cur = &w->si, want;
    mad_switch_info_decode(r->data, &want);
    bool has_mcast_top = r->end->pi.capability_mask & MAD_CAP_IS_MULTICAST_FDB_TOP_SUPPORTED;
    if (want.linear_fdb_top >= w->lft_entries)
        return MAD_STATUS_BAD_VALUE;
    if (has_mcast_top && !mcast_top_ok(cur, want.multicast_fdb_top))
        return MAD_STATUS_BAD_VALUE;
    cur->linear_fdb_top = want.linear_fdb_top;
    cur->life_time_value = want.life_time_value;
    cur->default_port = want.default_port;
    cur->default_multicast_primary_port = want.default_multicast_primary_port;
    cur->default_multicast_not_primary_port = want.default_multicast_not_primary_port;
    if (has_mcast_top)
        cur->multicast_fdb_top = want.multicast_fdb_top;
    if (want.port_state_change)
        cur->port_state_change = 0;
    return 0;
}

// --- the table ---

static const struct sma_attr attrs[] = {
    {MAD_ATTR_NODE_DESCRIPTION, false, node_desc_get, node_desc_set},
    {MAD_ATTR_NODE_INFO, false, node_info_get, NULL},
    {MAD_ATTR_SWITCH_INFO, true, switch_info_get, switch_info_set},
    {MAD_ATTR_GUID_INFO, false, guid_info_get, guid_info_set},
    {MAD_ATTR_PORT_INFO, false, port_info_get, port_info_set},
    {MAD_ATTR_P_KEY_TABLE, false, p_key_get, p_key_set},
    {MAD_ATTR_SLTOVL_MAPPING_TABLE, false, sltovl_get, sltovl_set},
    {MAD_ATTR_VL_ARBITRATION_TABLE, false, vlarb_get, vlarb_set},
    {MAD_ATTR_LINEAR_FORWARDING_TABLE, true, lft_block_get, lft_block_set},
    {MAD_ATTR_MULTICAST_FORWARDING_TABLE, true, mft_get, mft_set},
    {MAD_ATTR_SWITCH_PORT_STATE_TABLE, true, port_states_get, NULL},
    {MAD_ATTR_GENERAL_INFO, true, general_info_get, NULL},
    {MAD_ATTR_ADAPTIVE_ROUTING_INFO, true, adaptive_info_get, adaptive_info_set},
    {MAD_ATTR_ADAPTIVE_ROUTING_GROUP_TABLE, true, adaptive_group_get, adaptive_group_set},
    {MAD_ATTR_ADAPTIVE_ROUTING_LFT, true, adaptive_lft_get, adaptive_lft_set},
    {MAD_ATTR_MLNX_EXT_PORT_INFO, false, mlnx_port_get, mlnx_port_set},
};

static const struct sma_attr *attr_find(const struct sim_node *n, uint16_t id)
{
    for (size_t i = 0; i < sizeof(attrs) / sizeof(attrs[0]); i++)
        if (attrs[i].id == id)
            return attrs[i].switch_only && !is_switch(n) ? NULL : &attrs[i];
    return NULL;
}

// --- not kept ---

static bool whole_not_kept(const struct sim_node *n, uint16_t attr_id)
{
    for (uint32_t i = 0; i < n->num_not_kept; i++)
        if (n->not_kept[i].attr_id == attr_id && !n->not_kept[i].field)
            return true;
    return false;
}

static void restore_fields(const struct sim_node *n, uint16_t attr_id, void *host, const void *before)
{
    for (uint32_t i = 0; i < n->num_not_kept; i++) {
        const struct mad_field *f = n->not_kept[i].field;
        if (n->not_kept[i].attr_id == attr_id && f)
            mad_field_set(f, host, 0, mad_field_get(f, before, 0));
    }
}

// All of a PortInfo but what the state machine and the link's hardware decide.
static void restore_port(struct sim_port *p, const struct mad_port_info *before)
{
    struct mad_port_info now = p->pi;
    p->pi = *before;
    p->pi.port_state = now.port_state;
    p->pi.port_physical_state = now.port_physical_state;
    p->pi.capability_mask = now.capability_mask;
}

static struct sim_port *target_port(struct sim *s, const struct sma_req *r)
{
    unsigned num = r->am & 0xff;
    if (!is_switch(r->node))
        return r->in;
    return port_at(s, r->node, num);
}

static uint16_t set_keeping(struct sim *s, struct sma_req *r, const struct sma_attr *a)
{
    bool whole = whole_not_kept(r->node, a->id);
    if (a->id == MAD_ATTR_PORT_INFO && target_port(s, r)) {
        struct sim_port *p = target_port(s, r);
        struct mad_port_info before = p->pi;
        uint16_t status = a->set(s, r);
        if (whole && status == 0)
            restore_port(p, &before);
        restore_fields(r->node, a->id, &p->pi, &before);
        return status;
    }
    if (whole)
        return 0;
    if (a->id == MAD_ATTR_SWITCH_INFO) {
        struct sim_switch *w = &s->sw[r->node->sw];
        struct mad_switch_info before = w->si;
        uint16_t status = a->set(s, r);
        restore_fields(r->node, a->id, &w->si, &before);
        return status;
    }
    return a->set(s, r);
}

// --- requests ---

static uint16_t handle(struct sim *s, struct sma_req *r, uint16_t attr_id, uint8_t method)
{
    const struct sma_attr *a = attr_find(r->node, attr_id);
    if (!a || !(method == MAD_METHOD_GET ? a->get : a->set))
        return MAD_STATUS_BAD_METHOD_ATTR;
    if (method == MAD_METHOD_GET)
        return a->get(s, r);
    uint16_t status = set_keeping(s, r, a);
    if (attr_id == MAD_ATTR_PORT_INFO)
        flow_dirty(s);
    else
        flow_tables_written(s);
    return status != 0 ? status : a->get(s, r);
}

bool sma_process(struct sim *s, struct flight *f, uint16_t *ret_status)
{
    uint8_t *mad = f->mad;
    struct sim_port *in = &s->port[f->port];
    struct sma_req r = {.node = node_of(s, in), .in = in, .end = end_port(s, in), .data = mad + MAD_AT_DATA};
    uint8_t method = mad[MAD_AT_METHOD];
    if (mad[0] != MAD_BASE_VERSION || mad[2] != 1) {
        *ret_status = MAD_STATUS_BAD_VERSION;
        return method == MAD_METHOD_GET || method == MAD_METHOD_SET;
    }
    if ((wire_u16(mad + MAD_AT_ATTR) == MAD_ATTR_SM_INFO || method == MAD_METHOD_TRAP) && sm_is_at(s, r.end))
        return sm_process(s, f, ret_status);
    if (method == MAD_METHOD_TRAP_REPRESS) {
        if (m_key_allows(s, r.end, f, &r.m_key_matches) && wire_u16(mad + MAD_AT_ATTR) == MAD_ATTR_NOTICE)
            trap_repress(s, r.end, r.data);
        return false;
    }
    if (method == MAD_METHOD_TRAP)
        return false; // for a manager, and there is none
    if (method != MAD_METHOD_GET && method != MAD_METHOD_SET) {
        *ret_status = MAD_STATUS_BAD_METHOD;
        return true;
    }
    if (!m_key_allows(s, r.end, f, &r.m_key_matches))
        return false;
    r.am = wire_u32(mad + MAD_AT_ATTR_MOD);
    *ret_status = handle(s, &r, wire_u16(mad + MAD_AT_ATTR), method);
    return true;
}
