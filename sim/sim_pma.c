// SPDX-License-Identifier: Apache-2.0
// The performance management agent (IBA 16.1): ClassPortInfo, PortCounters, PortCountersExtended, of one port
// or of all (PortSelect 255: sums). One set of 64-bit counters a port stands behind both; the narrow view
// saturates, and a Set clears, by CounterSelect, what it names in both.
#include "sim/sim_priv.h"

#include <string.h>

#define ALL_CLASSIC 16 // CounterSelect bits of PortCounters

// PortCounters: CounterSelect bit -> counter; PortXmitWait is bit 0 of CounterSelect2.
static const uint8_t classic[ALL_CLASSIC] = {
    SIM_SYMBOL_ERRORS,
    SIM_LINK_ERROR_RECOVERY,
    SIM_LINK_DOWNED,
    SIM_RCV_ERRORS,
    SIM_RCV_REMOTE_PHYSICAL_ERRORS,
    SIM_RCV_SWITCH_RELAY_ERRORS,
    SIM_XMIT_DISCARDS,
    SIM_XMIT_CONSTRAINT_ERRORS,
    SIM_RCV_CONSTRAINT_ERRORS,
    SIM_LOCAL_LINK_INTEGRITY_ERRORS,
    SIM_EXCESSIVE_BUFFER_OVERRUN_ERRORS,
    SIM_VL15_DROPPED,
    SIM_XMIT_DATA,
    SIM_RCV_DATA,
    SIM_XMIT_PKTS,
    SIM_RCV_PKTS,
};

struct selection { // ports first..last of a node
    struct sim_port *first;
    unsigned n;
};

static bool find_ports(struct sim *s, const struct flight *f, unsigned number, struct selection *ret)
{
    struct sim_port *in = &s->port[f->port];
    const struct sim_node *n = node_of(s, in);
    ret->n = 1;
    if (number == MAD_PORT_SELECT_ALL && is_switch(n)) {
        ret->first = port_at(s, n, 1);
        ret->n = n->num_ports;
        return ret->n > 0;
    }
    if (!is_switch(n) && (number == MAD_PORT_SELECT_ALL || number == in->num)) {
        ret->first = in;
        return true;
    }
    ret->first = port_at(s, n, number);
    return ret->first && is_switch(n);
}

static bool select_ports(struct sim *s, const struct flight *f, unsigned number, struct selection *ret)
{
    bool found = find_ports(s, f, number, ret);
    if (found)
        flow_count(s, ret->first, ret->n); // traffic moves counters when somebody looks
    return found;
}

static uint64_t total(const struct selection *sel, enum sim_counter c)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < sel->n; i++)
        sum += sel->first[i].counter[c];
    return sum;
}

static void clear(const struct selection *sel, unsigned c)
{
    for (unsigned i = 0; i < sel->n; i++)
        sel->first[i].counter[c] = 0;
}

static uint64_t saturated(uint64_t v, unsigned bits)
{
    uint64_t max = (1ull << bits) - 1;
    return v > max ? max : v;
}

static void counters_get(const struct selection *sel, struct mad_port_counters *c)
{
    c->symbol_error_counter = (uint16_t)saturated(total(sel, SIM_SYMBOL_ERRORS), 16);
    c->link_error_recovery_counter = (uint8_t)saturated(total(sel, SIM_LINK_ERROR_RECOVERY), 8);
    c->link_downed_counter = (uint8_t)saturated(total(sel, SIM_LINK_DOWNED), 8);
    c->port_rcv_errors = (uint16_t)saturated(total(sel, SIM_RCV_ERRORS), 16);
    c->port_rcv_remote_physical_errors = (uint16_t)saturated(total(sel, SIM_RCV_REMOTE_PHYSICAL_ERRORS), 16);
    c->port_rcv_switch_relay_errors = (uint16_t)saturated(total(sel, SIM_RCV_SWITCH_RELAY_ERRORS), 16);
    c->port_xmit_discards = (uint16_t)saturated(total(sel, SIM_XMIT_DISCARDS), 16);
    c->port_xmit_constraint_errors = (uint8_t)saturated(total(sel, SIM_XMIT_CONSTRAINT_ERRORS), 8);
    c->port_rcv_constraint_errors = (uint8_t)saturated(total(sel, SIM_RCV_CONSTRAINT_ERRORS), 8);
    c->local_link_integrity_errors = (uint8_t)saturated(total(sel, SIM_LOCAL_LINK_INTEGRITY_ERRORS), 4);
    c->excessive_buffer_overrun_errors =
        (uint8_t)saturated(total(sel, SIM_EXCESSIVE_BUFFER_OVERRUN_ERRORS), 4);
    c->qp1_dropped = (uint16_t)saturated(total(sel, SIM_QP1_DROPPED), 16);
    c->vl15_dropped = (uint16_t)saturated(total(sel, SIM_VL15_DROPPED), 16);
    c->port_xmit_data = (uint32_t)saturated(total(sel, SIM_XMIT_DATA), 32);
    c->port_rcv_data = (uint32_t)saturated(total(sel, SIM_RCV_DATA), 32);
    c->port_xmit_pkts = (uint32_t)saturated(total(sel, SIM_XMIT_PKTS), 32);
    c->port_rcv_pkts = (uint32_t)saturated(total(sel, SIM_RCV_PKTS), 32);
    c->port_xmit_wait = (uint32_t)saturated(total(sel, SIM_XMIT_WAIT), 32);
}

static uint16_t port_counters(struct sim *s, const struct flight *f, uint8_t *data, bool set)
{
    struct mad_port_counters c;
    struct selection sel;
    mad_port_counters_decode(data, &c);
    if (!select_ports(s, f, c.port_select, &sel))
        return MAD_STATUS_BAD_VALUE;
    if (set) {
        for (unsigned i = 0; i < ALL_CLASSIC; i++)
            if (c.counter_select >> i & 1)
                clear(&sel, classic[i]);
        if (c.counter_select2 & 1)
            clear(&sel, SIM_XMIT_WAIT);
    }
    counters_get(&sel, &c);
    mad_port_counters_encode(&c, data);
    return 0;
}

// The rows of PortCountersExtended from port_xmit_data on are the counters in our order.
static uint16_t port_counters_extended(struct sim *s, const struct flight *f, uint8_t *data, bool set)
{
    struct mad_port_counters_extended c;
    struct selection sel;
    mad_port_counters_extended_decode(data, &c);
    if (!select_ports(s, f, c.port_select, &sel))
        return MAD_STATUS_BAD_VALUE;
    if (set) {
        for (unsigned i = 0; i < 8; i++)
            if (c.counter_select >> i & 1)
                clear(&sel, SIM_XMIT_DATA + i);
        for (unsigned i = 0; i < SIM_COUNTERS - SIM_SYMBOL_ERRORS; i++)
            if (c.counter_select2 >> i & 1)
                clear(&sel, SIM_SYMBOL_ERRORS + i);
    }
    const struct mad_attr *a = &mad_attr_port_counters_extended;
    unsigned counter = 0;
    for (unsigned i = 0; i < a->nfields && counter < SIM_COUNTERS; i++)
        if (a->fields[i].name && a->fields[i].width == 64)
            mad_field_set(&a->fields[i], &c, 0, total(&sel, counter++));
    mad_port_counters_extended_encode(&c, data);
    return 0;
}

static uint16_t class_port_info(uint8_t *data)
{
    struct mad_class_port_info c = {
        .base_version = 1,
        .class_version = 1,
        .capability_mask = MAD_PM_CAP_ALL_PORT_SELECT | MAD_PM_CAP_EXTENDED_WIDTH | MAD_PM_CAP_XMIT_WAIT |
                           MAD_PM_CAP_QP1_DROPPED,
        .capability_mask2 = MAD_PM_CAP2_ADDITIONAL_EXTENDED_COUNTERS,
        .resp_time_value = 18,
    };
    mad_class_port_info_encode(&c, data);
    return 0;
}

bool pma_process(struct sim *s, struct flight *f, uint16_t *ret_status)
{
    uint8_t *mad = f->mad, *data = mad + MAD_PM_DATA_OFFSET, method = mad[MAD_AT_METHOD];
    uint16_t attr = wire_u16(mad + MAD_AT_ATTR);
    bool set = method == MAD_METHOD_SET;
    if (mad[0] != MAD_BASE_VERSION || mad[2] != 1)
        *ret_status = MAD_STATUS_BAD_VERSION;
    else if (method != MAD_METHOD_GET && !set)
        *ret_status = MAD_STATUS_BAD_METHOD;
    else if (attr == MAD_ATTR_CLASS_PORT_INFO && !set)
        *ret_status = class_port_info(data);
    else if (attr == MAD_PM_ATTR_PORT_COUNTERS)
        *ret_status = port_counters(s, f, data, set);
    else if (attr == MAD_PM_ATTR_PORT_COUNTERS_EXTENDED)
        *ret_status = port_counters_extended(s, f, data, set);
    else
        *ret_status = MAD_STATUS_BAD_METHOD_ATTR;
    return method != MAD_METHOD_TRAP_REPRESS;
}
