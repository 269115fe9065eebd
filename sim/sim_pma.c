// SPDX-License-Identifier: Apache-2.0
// The performance management agent (IBA 16.1): ClassPortInfo, PortCounters, PortCountersExtended, of one port
// or of all (PortSelect 255: sums). One set of 64-bit counters a port stands behind both; the narrow view
// saturates, and a Set clears, by CounterSelect, what it names in both. Details, speed counters and waits by
// lane are 16 and 32 bits wide of the same. A node may have less (struct sim_pma), or answer wrongly for a
// while (enum sim_pma_fault).
#include "sim/sim_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

struct sim_pma_node {
    struct sim_pma is;
    enum sim_pma_fault fault;
    unsigned fault_port, fault_times;
};
struct sim_pma_port {
    uint64_t vl_wait[16];
    uint64_t shown[SIM_COUNTERS]; // the last time
};

static const struct sim_pma all = {.extended = true,
                                   .ietf = true,
                                   .additional = true,
                                   .xmit_wait = true,
                                   .qp1_dropped = true,
                                   .all_ports = true,
                                   .details = true,
                                   .speeds = true,
                                   .rsfec = true,
                                   .vl_waits = true};

static const struct sim_pma *pma_of(const struct sim_node *n)
{
    return n->pma != NULL ? &n->pma->is : &all;
}

static struct sim_pma_node *pma_make(struct sim_node *n)
{
    if (n->pma == NULL) {
        n->pma = xcalloc(1, sizeof(*n->pma));
        n->pma->is = all;
    }
    return n->pma;
}

static struct sim_pma_port *pma_port(struct sim_port *p)
{
    if (p->pma == NULL)
        p->pma = xcalloc(1, sizeof(*p->pma));
    return p->pma;
}

void pma_free(struct sim *s)
{
    for (uint32_t i = 0; i < s->num_nodes; i++)
        free(s->node[i].pma);
    for (uint32_t i = 0; i < s->num_ports; i++)
        free(s->port[i].pma);
}

int sim_pma_get(const struct sim *s, uint64_t node_guid, struct sim_pma *ret)
{
    const struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (n == NULL)
        return -ENOENT;
    *ret = *pma_of(n);
    return 0;
}

int sim_pma_set(struct sim *s, uint64_t node_guid, const struct sim_pma *p)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (n == NULL)
        return -ENOENT;
    pma_make(n)->is = *p;
    return 0;
}

int sim_pma_fault(struct sim *s, uint64_t node_guid, unsigned port, enum sim_pma_fault f, unsigned times)
{
    struct sim_node *n = sim_node_by_guid(s, node_guid);
    if (n == NULL)
        return -ENOENT;
    struct sim_pma_node *p = pma_make(n);
    p->fault = f;
    p->fault_port = port;
    p->fault_times = times;
    // From now on it is known what was said the last time.
    for (unsigned i = 1; f == SIM_PMA_OLD && i <= n->num_ports; i++) {
        struct sim_port *q = port_at(s, n, i);
        flow_count(s, q, 1);
        memcpy(pma_port(q)->shown, q->counter, sizeof(q->counter));
    }
    return 0;
}

int sim_vl_wait_add(struct sim *s, uint64_t node_guid, unsigned port, unsigned vl, uint64_t ticks)
{
    struct sim_port *p = sim_port_by(s, node_guid, port);
    if (p == NULL)
        return -ENOENT;
    if (vl > 15)
        return -EINVAL;
    pma_vl_wait(p, vl, ticks);
    return 0;
}

void pma_vl_wait(struct sim_port *p, unsigned vl, uint64_t ticks)
{
    pma_port(p)->vl_wait[vl] += ticks;
}

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
    const struct sim_pma *is;
    enum sim_pma_fault fault; // that this answer shows
};

static bool find_ports(struct sim *s, const struct flight *f, unsigned number, struct selection *ret)
{
    struct sim_port *in = &s->port[f->port];
    const struct sim_node *n = node_of(s, in);
    *ret = (struct selection){.n = 1, .is = pma_of(n), .fault = f->pma_fault};
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

static uint64_t one(const struct selection *sel, const struct sim_port *p, enum sim_counter c)
{
    bool jumps = c <= SIM_MULTICAST_RCV_PKTS || c == SIM_XMIT_WAIT;
    switch (sel->fault) {
    case SIM_PMA_JUMPS:
        return p->counter[c] + (jumps ? 1ull << 50 : 0);
    case SIM_PMA_BACK:
        return p->counter[c] - p->counter[c] / 4;
    case SIM_PMA_OLD:
        return p->pma ? p->pma->shown[c] : p->counter[c]; // a switch's port 0 is not remembered
    case SIM_PMA_RIGHT:
    case SIM_PMA_OTHER_PORT:
    case SIM_PMA_STATUS:
    case SIM_PMA_BUSY:
    case SIM_PMA_SILENT:
    case SIM_PMA_SHORT_SUMS:
        break;
    }
    return p->counter[c];
}

static uint64_t total(const struct selection *sel, enum sim_counter c)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < (sel->fault == SIM_PMA_SHORT_SUMS ? 1 : sel->n); i++)
        sum += one(sel, &sel->first[i], c);
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

static uint32_t wide(const struct selection *sel, enum sim_counter c) // of 32 bits
{
    uint64_t v = total(sel, c);
    return sel->is->wraps ? (uint32_t)v : (uint32_t)saturated(v, 32);
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
    c->qp1_dropped = sel->is->qp1_dropped ? (uint16_t)saturated(total(sel, SIM_QP1_DROPPED), 16) : 0;
    c->vl15_dropped = (uint16_t)saturated(total(sel, SIM_VL15_DROPPED), 16);
    c->port_xmit_data = wide(sel, SIM_XMIT_DATA);
    c->port_rcv_data = wide(sel, SIM_RCV_DATA);
    c->port_xmit_pkts = wide(sel, SIM_XMIT_PKTS);
    c->port_rcv_pkts = wide(sel, SIM_RCV_PKTS);
    c->port_xmit_wait = sel->is->xmit_wait ? wide(sel, SIM_XMIT_WAIT) : 0;
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
        if (c.counter_select2 & 2)
            clear(&sel, SIM_QP1_DROPPED);
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
        for (unsigned i = 0; i < SIM_EXTENDED_COUNTERS - SIM_SYMBOL_ERRORS; i++)
            if (c.counter_select2 >> i & 1)
                clear(&sel, SIM_SYMBOL_ERRORS + i);
    }
    const struct mad_attr *a = &mad_attr_port_counters_extended;
    unsigned counter = 0;
    for (unsigned i = 0; i < a->nfields && counter < SIM_EXTENDED_COUNTERS; i++) {
        if (!a->fields[i].name || a->fields[i].width != 64)
            continue;
        bool has = counter <= SIM_RCV_PKTS || (counter <= SIM_MULTICAST_RCV_PKTS && sel.is->ietf) ||
                   (counter > SIM_MULTICAST_RCV_PKTS && sel.is->additional);
        mad_field_set(&a->fields[i], &c, 0, has ? total(&sel, counter) : 0);
        counter++;
    }
    mad_port_counters_extended_encode(&c, data);
    return 0;
}

// 16-bit counters one after the other from the fifth byte on.
static uint16_t details(struct sim *s, const struct flight *f, uint8_t *data, bool set,
                        enum sim_counter first, unsigned n)
{
    struct selection sel;
    if (!select_ports(s, f, data[1], &sel))
        return MAD_STATUS_BAD_VALUE;
    for (unsigned i = 0; i < n; i++) {
        if (set && wire_u16(data + 2) >> i & 1)
            clear(&sel, first + i);
        wire_put_u16(data + 4 + 2 * i, (uint16_t)saturated(total(&sel, first + i), 16));
    }
    return 0;
}

static uint16_t speeds(struct sim *s, const struct flight *f, uint8_t *data, bool set)
{
    struct mad_port_extended_speeds_counters c;
    struct selection sel;
    mad_port_extended_speeds_counters_decode(data, &c);
    if (!select_ports(s, f, c.port_select, &sel))
        return MAD_STATUS_BAD_VALUE;
    for (unsigned i = SIM_SYNC_HEADER_ERRORS; set && i <= SIM_FEC_UNCORRECTABLE_BLOCKS; i++)
        if (c.counter_select == UINT64_MAX)
            clear(&sel, i);
    uint64_t good = total(&sel, SIM_FEC_CORRECTABLE_BLOCKS), bad = total(&sel, SIM_FEC_UNCORRECTABLE_BLOCKS);
    c = (struct mad_port_extended_speeds_counters){.port_select = c.port_select};
    c.sync_header_error_counter = (uint16_t)saturated(total(&sel, SIM_SYNC_HEADER_ERRORS), 16);
    c.unknown_block_counter = (uint16_t)saturated(total(&sel, SIM_UNKNOWN_BLOCKS), 16);
    if (sel.is->rsfec) {
        c.port_fec_corrected_symbol_counter = (uint32_t)saturated(total(&sel, SIM_FEC_CORRECTED_SYMBOLS), 32);
        c.port_fec_correctable_block_counter = (uint32_t)saturated(good, 32);
        c.port_fec_uncorrectable_block_counter = (uint32_t)saturated(bad, 32);
    }
    for (unsigned i = 0; !sel.is->rsfec && i < 4; i++) { // spread over four lanes
        c.fec_correctable_block_counter_lane[i] = (uint32_t)saturated(good / 4 + (i < good % 4), 32);
        c.fec_uncorrectable_block_counter_lane[i] = (uint32_t)saturated(bad / 4 + (i < bad % 4), 32);
    }
    mad_port_extended_speeds_counters_encode(&c, data);
    return 0;
}

static uint16_t vl_waits(struct sim *s, const struct flight *f, uint8_t *data, bool set)
{
    struct selection sel;
    if (!select_ports(s, f, data[1], &sel) || sel.n != 1)
        return MAD_STATUS_BAD_VALUE;
    for (unsigned vl = 0; vl < 16; vl++) {
        struct sim_pma_port *p = sel.first->pma;
        if (set && p != NULL && wire_u16(data + 2) >> vl & 1)
            p->vl_wait[vl] = 0;
        wire_put_u16(data + 4 + 2 * vl, (uint16_t)saturated(p ? p->vl_wait[vl] : 0, 16));
    }
    return 0;
}

static uint16_t class_port_info(struct sim *s, const struct sim_pma *is, uint8_t *data)
{
    unsigned mask = is->rsfec ? MAD_PM_CAP_RSFEC_COUNTERS : 0;
    mask |= is->all_ports ? MAD_PM_CAP_ALL_PORT_SELECT : 0;
    mask |= is->extended ? is->ietf ? MAD_PM_CAP_EXTENDED_WIDTH : MAD_PM_CAP_EXTENDED_WIDTH_NO_IETF : 0;
    mask |= is->xmit_wait ? MAD_PM_CAP_XMIT_WAIT : 0;
    mask |= is->qp1_dropped ? MAD_PM_CAP_QP1_DROPPED : 0;
    struct mad_class_port_info c = {
        .base_version = 1,
        .class_version = 1,
        .capability_mask = (uint16_t)mask,
        .capability_mask2 = is->extended && is->additional ? MAD_PM_CAP2_ADDITIONAL_EXTENDED_COUNTERS : 0,
        .resp_time_value = 18,
    };
    struct sim_node *to = is->redirect_guid ? sim_node_by_guid(s, is->redirect_guid) : NULL;
    if (to != NULL) {
        c.redirect_lid = s->port[to->first_port].pi.lid;
        c.redirect_qp = is->redirect_qp ? is->redirect_qp : 1;
        c.redirect_q_key = MAD_QP1_Q_KEY;
        c.redirect_p_key = MAD_DEFAULT_P_KEY;
    }
    mad_class_port_info_encode(&c, data);
    return 0;
}

static uint16_t answer(struct sim *s, struct flight *f, const struct sim_pma *is, uint16_t attr, bool set)
{
    uint8_t *data = f->mad + MAD_PM_DATA_OFFSET;
    if (attr == MAD_ATTR_CLASS_PORT_INFO && !set)
        return class_port_info(s, is, data);
    if (attr == MAD_PM_ATTR_PORT_COUNTERS)
        return port_counters(s, f, data, set);
    if (attr == MAD_PM_ATTR_PORT_COUNTERS_EXTENDED && is->extended)
        return port_counters_extended(s, f, data, set);
    if (attr == MAD_PM_ATTR_PORT_RCV_ERROR_DETAILS && is->details)
        return details(s, f, data, set, SIM_LOCAL_PHYSICAL_ERRORS, 6);
    if (attr == MAD_PM_ATTR_PORT_XMIT_DISCARD_DETAILS && is->details)
        return details(s, f, data, set, SIM_INACTIVE_DISCARDS, 4);
    if (attr == MAD_PM_ATTR_PORT_EXTENDED_SPEEDS_COUNTERS && is->speeds)
        return speeds(s, f, data, set);
    if (attr == MAD_PM_ATTR_PORT_VL_XMIT_WAIT_COUNTERS && is->vl_waits)
        return vl_waits(s, f, data, set);
    return MAD_STATUS_BAD_METHOD_ATTR;
}

// The fault that a Get of counters is to show, if any.
static enum sim_pma_fault fault_of(struct sim_node *n, const struct flight *f, bool set)
{
    struct sim_pma_node *p = n->pma;
    const uint8_t *data = f->mad + MAD_PM_DATA_OFFSET;
    if (p == NULL || set || p->fault_times == 0 || wire_u16(f->mad + MAD_AT_ATTR) == MAD_ATTR_CLASS_PORT_INFO)
        return SIM_PMA_RIGHT;
    if ((p->fault_port && p->fault_port != data[1]) ||
        (data[1] == MAD_PORT_SELECT_ALL) != (p->fault == SIM_PMA_SHORT_SUMS))
        return SIM_PMA_RIGHT;
    p->fault_times--;
    return p->fault;
}

bool pma_process(struct sim *s, struct flight *f, uint16_t *ret_status)
{
    uint8_t *mad = f->mad, *data = mad + MAD_PM_DATA_OFFSET, method = mad[MAD_AT_METHOD];
    struct sim_node *n = node_of(s, &s->port[f->port]);
    bool set = method == MAD_METHOD_SET;
    const struct sim_pma *is = pma_of(n);
    if (mad[0] != MAD_BASE_VERSION || mad[2] != 1)
        *ret_status = MAD_STATUS_BAD_VERSION;
    else if ((method != MAD_METHOD_GET && !set) || is->none)
        *ret_status = is->none ? MAD_STATUS_BAD_METHOD_ATTR : MAD_STATUS_BAD_METHOD;
    else {
        enum sim_pma_fault fault = fault_of(n, f, set);
        unsigned asked = data[1];
        if (fault == SIM_PMA_SILENT)
            return false;
        if (fault == SIM_PMA_OTHER_PORT)
            data[1] = (uint8_t)(asked % n->num_ports + 1);
        if (fault == SIM_PMA_OTHER_PORT && !is_switch(n))
            data[1] = (uint8_t)asked;
        f->pma_fault = (uint8_t)fault;
        *ret_status = fault == SIM_PMA_STATUS ? MAD_STATUS_BAD_VALUE
                      : fault == SIM_PMA_BUSY ? MAD_STATUS_BUSY
                                              : answer(s, f, is, wire_u16(mad + MAD_AT_ATTR), set);
        if (fault == SIM_PMA_OTHER_PORT && !is_switch(n))
            data[1] = (uint8_t)(asked % 2 + 1);
        if (is->drops && *ret_status == MAD_STATUS_BAD_METHOD_ATTR)
            return false;
    }
    return method != MAD_METHOD_TRAP_REPRESS;
}
