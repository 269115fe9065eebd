// SPDX-License-Identifier: Apache-2.0
#include "tests/whole/liar.h"

#include <stdbool.h>
#include <string.h>

#include "mad/mad.h"

static bool honest(const struct liar *l)
{
    return l->byte != NULL && l->at >= l->num_bytes;
}

uint32_t liar_below(struct liar *l, uint32_t n)
{
    if (l->byte == NULL)
        return rng_below(&l->rng, n);
    uint32_t v = 0;
    for (uint32_t top = n - 1; top > 0; top >>= 8)
        v = v << 8 | (l->at < l->num_bytes ? l->byte[l->at++] : 0);
    return v % n;
}

static uint64_t any64(struct liar *l)
{
    return (uint64_t)liar_below(l, 0xffffffff) << 32 | liar_below(l, 0xffffffff);
}

static uint64_t bad_guid(struct liar *l)
{
    switch (liar_below(l, 4)) {
    case 0:
        return 0;
    case 1:
        return UINT64_MAX;
    case 2:
        return l->victim;
    }
    return any64(l);
}

static uint32_t one_of(struct liar *l, const uint32_t *v, uint32_t n)
{
    return v[liar_below(l, n)];
}
#define ONE_OF(l, ...)                                                                                       \
    one_of(l, (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void lie_identity(struct liar *l, uint8_t *data)
{
    struct mad_node_info ni;
    mad_node_info_decode(data, &ni);
    switch (liar_below(l, 6)) {
    case 0:
        ni.node_guid = bad_guid(l);
        break;
    case 1:
        ni.port_guid = bad_guid(l);
        break;
    case 2:
        ni.node_type = (uint8_t)ONE_OF(l, 0, 1, 2, 3, 4, 9, 255);
        break;
    case 3:
        ni.num_ports = (uint8_t)ONE_OF(l, 0, 1, 2, 36, 254, 255);
        break;
    case 4:
        ni.local_port_num = (uint8_t)ONE_OF(l, 0, 1, 2, ni.num_ports, ni.num_ports + 1u, 255);
        break;
    case 5:
        ni.partition_cap = (uint16_t)ONE_OF(l, 0, 1, 33, 65535);
        break;
    }
    mad_node_info_encode(&ni, data);
}

static void lie_port(struct liar *l, uint8_t *data)
{
    struct mad_port_info pi;
    mad_port_info_decode(data, &pi);
    switch (liar_below(l, 8)) {
    case 0:
        pi.port_state = (uint8_t)liar_below(l, 16);
        break;
    case 1:
        pi.lid = (uint16_t)ONE_OF(l, 0, 1, 2, 0xbfff, 0xc000, 0xffff);
        break;
    case 2:
        pi.neighbor_mtu = (uint8_t)liar_below(l, 16);
        pi.mtu_cap = (uint8_t)liar_below(l, 16);
        break;
    case 3:
        pi.operational_vls = (uint8_t)liar_below(l, 16);
        pi.vl_cap = (uint8_t)liar_below(l, 16);
        break;
    case 4:
        pi.capability_mask ^= 1u << liar_below(l, 32);
        pi.capability_mask2 ^= (uint16_t)(1u << liar_below(l, 16));
        break;
    case 5:
        pi.lmc = (uint8_t)liar_below(l, 8);
        break;
    case 6:
        pi.master_sm_lid = (uint16_t)ONE_OF(l, 0, 0xffff, 7);
        pi.gid_prefix = bad_guid(l);
        break;
    case 7:
        pi.capability_mask |= MAD_CAP_IS_SM;
        break;
    }
    mad_port_info_encode(&pi, data);
}

static void lie_switch(struct liar *l, uint8_t *data)
{
    struct mad_switch_info si;
    mad_switch_info_decode(data, &si);
    switch (liar_below(l, 6)) {
    case 0:
        si.linear_fdb_cap = (uint16_t)ONE_OF(l, 0, 1, 2, 3, 64, 0xffff);
        break;
    case 1:
        si.linear_fdb_top = (uint16_t)ONE_OF(l, 0, 1, 0xbfff, 0xc000, 0xffff);
        break;
    case 2:
        si.port_state_change = !si.port_state_change;
        break;
    case 3:
        si.life_time_value = (uint8_t)liar_below(l, 32);
        break;
    case 4:
        si.enhanced_port0 = !si.enhanced_port0;
        break;
    case 5:
        si.partition_enforcement_cap = 0xffff;
        si.optimized_sltovl_mapping_programming = (uint8_t)liar_below(l, 4);
        break;
    }
    mad_switch_info_encode(&si, data);
}

static void lie_sm(struct liar *l, uint8_t *data)
{
    struct mad_sm_info si;
    mad_sm_info_decode(data, &si);
    si.guid = bad_guid(l);
    si.priority = (uint8_t)liar_below(l, 16);
    si.sm_state = (uint8_t)liar_below(l, 16);
    mad_sm_info_encode(&si, data);
}

static void lie_fields(struct liar *l, uint16_t attr, uint8_t *data)
{
    if (attr == MAD_ATTR_NODE_INFO)
        lie_identity(l, data);
    else if (attr == MAD_ATTR_PORT_INFO)
        lie_port(l, data);
    else if (attr == MAD_ATTR_SWITCH_INFO)
        lie_switch(l, data);
    else if (attr == MAD_ATTR_SM_INFO)
        lie_sm(l, data);
    else
        data[liar_below(l, 64)] = (uint8_t)liar_below(l, 256);
}

static void lie_header(struct liar *l, uint8_t *mad)
{
    static const uint8_t at[] = {0, 1, 2, 3, 6, 7, 12, 13, 14, 15, 16, 17, 20, 23};
    mad[at[liar_below(l, sizeof(at))]] ^= (uint8_t)(1u << liar_below(l, 8));
}

enum liar_does liar_answer(struct liar *l, uint8_t *mad)
{
    uint8_t *data = mad + MAD_SMP_DATA_OFFSET, was[64];
    struct mad_smp smp;

    mad_smp_decode(mad, &smp);
    memcpy(was, data, sizeof(was));
    if (smp.attr_id == MAD_ATTR_NODE_INFO) {
        struct mad_node_info ni;
        mad_node_info_decode(data, &ni);
        if (liar_below(l, 4) == 0)
            l->victim = ni.node_guid;
    }
    if (honest(l) || liar_below(l, 1000) >= l->chance)
        return LIAR_PASSES;
    enum lie lie = (enum lie)liar_below(l, LIES);
    if (l->kinds != 0 && !(l->kinds >> lie & 1))
        return LIAR_PASSES;
    l->told++;
    switch (lie) {
    case LIE_FLIP:
        for (uint32_t n = 1 + liar_below(l, 8); n > 0; n--)
            data[liar_below(l, 64)] ^= (uint8_t)(1u << liar_below(l, 8));
        break;
    case LIE_ZERO: {
        uint32_t from = liar_below(l, 64);
        memset(data + from, liar_below(l, 2) ? 0 : 0xff, 64 - from);
        break;
    }
    case LIE_STATUS:
        mad[5] = (uint8_t)ONE_OF(l, MAD_STATUS_BUSY, MAD_STATUS_BAD_METHOD_ATTR, MAD_STATUS_BAD_VALUE, 0xff);
        break;
    case LIE_DROP:
        return LIAR_DROPS;
    case LIE_TWICE:
        return LIAR_REPEATS;
    case LIE_OLD:
        memcpy(data, l->last, sizeof(l->last));
        break;
    case LIE_FIELDS:
        lie_fields(l, smp.attr_id, data);
        break;
    case LIE_IDENTITY:
        if (smp.attr_id == MAD_ATTR_NODE_INFO)
            lie_identity(l, data);
        break;
    case LIE_HEADER:
        lie_header(l, mad);
        break;
    case LIES:
        break;
    }
    memcpy(l->last, was, sizeof(was));
    if (smp.attr_id == MAD_ATTR_PORT_INFO) // a M_Key that is echoed would lock the honest device for good
        memcpy(data, was, sizeof(uint64_t));
    return LIAR_PASSES;
}
