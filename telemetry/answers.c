// SPDX-License-Identifier: Apache-2.0
// What is asked of a performance agent, and what it says (IBA 16.1.3, 16.1.4), in the columns of
// counters.def. Which attribute and which field of it: as ClassPortInfo tells. The bits are used as by
// infiniband-diags (ibqueryerrors.c, perfquery.c) and OpenSM (osm_perfmgr.c): extended counters with
// CapabilityMask bit 9, or 10 without unicast and multicast; PortXmitWait with bit 12; the extended errors
// with bit 1 of CapabilityMask2. One ClassPortInfo holds for all ports of a switch, as there.
#include "telemetry/telemetry_priv.h"

#include <string.h>

#define BIT(c) (1ull << (c))
#define FULL(bits) ((1ull << (bits)) - 1)

static const struct {
    uint16_t attr;
    uint8_t method;
} wire[ASKS] = {
    [ASK_INFO] = {MAD_ATTR_CLASS_PORT_INFO, MAD_METHOD_GET},
    [ASK_SUM] = {MAD_PM_ATTR_PORT_COUNTERS, MAD_METHOD_GET},
    [ASK_EXTENDED] = {MAD_PM_ATTR_PORT_COUNTERS_EXTENDED, MAD_METHOD_GET},
    [ASK_CLASSIC] = {MAD_PM_ATTR_PORT_COUNTERS, MAD_METHOD_GET},
    [ASK_CLEAR_CLASSIC] = {MAD_PM_ATTR_PORT_COUNTERS, MAD_METHOD_SET},
    [ASK_SPEED] = {MAD_PM_ATTR_PORT_EXTENDED_SPEEDS_COUNTERS, MAD_METHOD_GET},
    [ASK_RCV_DETAIL] = {MAD_PM_ATTR_PORT_RCV_ERROR_DETAILS, MAD_METHOD_GET},
    [ASK_CLEAR_RCV_DETAIL] = {MAD_PM_ATTR_PORT_RCV_ERROR_DETAILS, MAD_METHOD_SET},
    [ASK_XMIT_DETAIL] = {MAD_PM_ATTR_PORT_XMIT_DISCARD_DETAILS, MAD_METHOD_GET},
    [ASK_CLEAR_XMIT_DETAIL] = {MAD_PM_ATTR_PORT_XMIT_DISCARD_DETAILS, MAD_METHOD_SET},
    [ASK_VL_WAIT] = {MAD_PM_ATTR_PORT_VL_XMIT_WAIT_COUNTERS, MAD_METHOD_GET},
};

// Fields of narrow attributes: counter, width, and the bit that clears it: of CounterSelect, 16 and up of
// CounterSelect2 (perfquery.c, do_reset). PortExtendedSpeedsCounters are left alone: what a clear of them
// does is not defined alike by all (ibis of ibutils2 calls it undefined behaviour), so a full one stays full.
struct narrow {
    uint8_t counter, bits, select;
};
static const struct narrow classic[] = {
    {TELE_SYMBOL_ERRORS, 16, 0},
    {TELE_LINK_ERROR_RECOVERY, 8, 1},
    {TELE_LINK_DOWNED, 8, 2},
    {TELE_RCV_ERRORS, 16, 3},
    {TELE_RCV_REMOTE_PHYSICAL_ERRORS, 16, 4},
    {TELE_RCV_SWITCH_RELAY_ERRORS, 16, 5},
    {TELE_XMIT_DISCARDS, 16, 6},
    {TELE_XMIT_CONSTRAINT_ERRORS, 8, 7},
    {TELE_RCV_CONSTRAINT_ERRORS, 8, 8},
    {TELE_LOCAL_LINK_INTEGRITY_ERRORS, 4, 9},
    {TELE_EXCESSIVE_BUFFER_OVERRUN_ERRORS, 4, 10},
    {TELE_VL15_DROPPED, 16, 11},
    {TELE_XMIT_DATA, 32, 12},
    {TELE_RCV_DATA, 32, 13},
    {TELE_XMIT_PKTS, 32, 14},
    {TELE_RCV_PKTS, 32, 15},
    {TELE_XMIT_WAIT, 32, 16},
    {TELE_QP1_DROPPED, 16, 17},
};
static const struct narrow rcv_detail[] = {
    {TELE_LOCAL_PHYSICAL_ERRORS, 16, 0}, {TELE_MALFORMED_PACKET_ERRORS, 16, 1},
    {TELE_BUFFER_OVERRUN_ERRORS, 16, 2}, {TELE_DLID_MAPPING_ERRORS, 16, 3},
    {TELE_VL_MAPPING_ERRORS, 16, 4},     {TELE_LOOPING_ERRORS, 16, 5},
};
static const struct narrow xmit_detail[] = {
    {TELE_INACTIVE_DISCARDS, 16, 0},
    {TELE_NEIGHBOR_MTU_DISCARDS, 16, 1},
    {TELE_SW_LIFETIME_LIMIT_DISCARDS, 16, 2},
    {TELE_SW_HOQ_LIFETIME_LIMIT_DISCARDS, 16, 3},
};
#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const struct narrow *narrow_of(enum ask k, size_t *ret_n)
{
    if (k == ASK_CLASSIC || k == ASK_CLEAR_CLASSIC) {
        *ret_n = COUNT(classic);
        return classic;
    }
    if (k == ASK_RCV_DETAIL || k == ASK_CLEAR_RCV_DETAIL) {
        *ret_n = COUNT(rcv_detail);
        return rcv_detail;
    }
    *ret_n = k == ASK_XMIT_DETAIL || k == ASK_CLEAR_XMIT_DETAIL ? COUNT(xmit_detail) : 0;
    return xmit_detail;
}

uint64_t ask_counters(enum ask k)
{
    size_t n;
    const struct narrow *w = narrow_of(k, &n);
    uint64_t bits = 0;
    for (size_t i = 0; i < n; i++)
        bits |= BIT(w[i].counter);
    return bits;
}

// --- requests ---

static void put_select(const struct tele *t, uint32_t slot, enum ask k, uint8_t *data)
{
    size_t n;
    const struct narrow *w = narrow_of(k, &n);
    uint64_t full = accum_full(&t->accum, slot);
    uint32_t select = 0;
    for (size_t i = 0; i < n; i++)
        if (full >> w[i].counter & 1)
            select |= 1u << w[i].select;
    data[2] = (uint8_t)(select >> 8);
    data[3] = (uint8_t)select;
    if (k == ASK_CLEAR_CLASSIC) {
        struct mad_port_counters c;
        mad_port_counters_decode(data, &c);
        c.counter_select2 = (uint8_t)(select >> 16);
        mad_port_counters_encode(&c, data);
    }
}

void ask_send(struct tele *t, struct agent *a, uint32_t slot, enum ask k, enum ask_way w, mad_done_fn *done)
{
    uint8_t data[MAD_PM_DATA_SIZE] = {0};
    if (k == ASK_SUM)
        data[1] = MAD_PORT_SELECT_ALL;
    else if (k != ASK_INFO)
        data[1] = t->table.port[slot].num;
    if (wire[k].method == MAD_METHOD_SET)
        put_select(t, slot, k, data);
    struct mad_request q = {
        .mgmt_class = MAD_CLASS_PM,
        .method = wire[k].method,
        .attr_id = k == ASK_SUM && agent_has_all(a) ? MAD_PM_ATTR_PORT_COUNTERS_EXTENDED : wire[k].attr,
        .lid = a->to,
        .data = data,
        .data_len = sizeof(data),
        .prio = MAD_PRIO_PMA,
        .device = a->guid,
        .timeout_ns = w == ASK_ONCE ? PROBE_NS : 0,
        .retries = w == ASK_ONCE    ? 0
                   : w == ASK_PROBE ? 1
                                    : -1,
        .done = done,
        .arg = t,
        .user = (uint64_t)slot << 32 | (uint64_t)(a - t->agent) << 4 | k,
    };
    _Static_assert(ASKS <= 16, "four bits of user");
    t->asked++;
    mad_engine_send(t->engine, &q);
}

void ask_vl_wait(const struct agent *a, struct mad_engine *e, uint8_t port, mad_done_fn *done, void *arg)
{
    const uint8_t data[2] = {0, port};
    struct mad_request q = {.mgmt_class = MAD_CLASS_PM,
                            .method = MAD_METHOD_GET,
                            .attr_id = wire[ASK_VL_WAIT].attr,
                            .lid = a->to,
                            .data = data,
                            .data_len = sizeof(data),
                            .prio = MAD_PRIO_PMA,
                            .device = a->guid,
                            .retries = -1,
                            .done = done,
                            .arg = arg};
    mad_engine_send(e, &q);
}

// --- answers ---

static void put(struct accum_reading *r, enum tele_counter c, uint64_t v, unsigned bits)
{
    r->counters |= BIT(c);
    r->raw[c] = v;
    if (bits < 64 && v >= FULL(bits))
        r->full |= BIT(c);
    if (bits == 32)
        r->narrow |= BIT(c);
}

// Rows of PortCountersExtended from port_symbol_error_counter on, in our order but for the last two.
static void read_extended(struct accum_reading *r, const struct agent *a, const uint8_t *data)
{
    struct mad_port_counters_extended e;
    mad_port_counters_extended_decode(data, &e);
    put(r, TELE_XMIT_DATA, e.port_xmit_data, 64);
    put(r, TELE_RCV_DATA, e.port_rcv_data, 64);
    put(r, TELE_XMIT_PKTS, e.port_xmit_pkts, 64);
    put(r, TELE_RCV_PKTS, e.port_rcv_pkts, 64);
    if (a->caps & MAD_PM_CAP_EXTENDED_WIDTH) {
        put(r, TELE_UNICAST_XMIT_PKTS, e.port_unicast_xmit_pkts, 64);
        put(r, TELE_UNICAST_RCV_PKTS, e.port_unicast_rcv_pkts, 64);
        put(r, TELE_MULTICAST_XMIT_PKTS, e.port_multicast_xmit_pkts, 64);
        put(r, TELE_MULTICAST_RCV_PKTS, e.port_multicast_rcv_pkts, 64);
    }
    r->groups = 1u << TELE_DATA;
    if (!a->additional)
        return;
    r->groups |= 1u << TELE_ERRORS;
    put(r, TELE_SYMBOL_ERRORS, e.symbol_error_counter, 64);
    put(r, TELE_LINK_ERROR_RECOVERY, e.link_error_recovery_counter, 64);
    put(r, TELE_LINK_DOWNED, e.link_downed_counter, 64);
    put(r, TELE_RCV_ERRORS, e.port_rcv_errors, 64);
    put(r, TELE_RCV_REMOTE_PHYSICAL_ERRORS, e.port_rcv_remote_physical_errors, 64);
    put(r, TELE_RCV_SWITCH_RELAY_ERRORS, e.port_rcv_switch_relay_errors, 64);
    put(r, TELE_XMIT_DISCARDS, e.port_xmit_discards, 64);
    put(r, TELE_XMIT_CONSTRAINT_ERRORS, e.port_xmit_constraint_errors, 64);
    put(r, TELE_RCV_CONSTRAINT_ERRORS, e.port_rcv_constraint_errors, 64);
    put(r, TELE_LOCAL_LINK_INTEGRITY_ERRORS, e.local_link_integrity_errors, 64);
    put(r, TELE_EXCESSIVE_BUFFER_OVERRUN_ERRORS, e.excessive_buffer_overrun_errors, 64);
    put(r, TELE_VL15_DROPPED, e.vl15_dropped, 64);
    put(r, TELE_QP1_DROPPED, e.qp1_dropped, 64);
    if (a->caps & MAD_PM_CAP_XMIT_WAIT)
        put(r, TELE_XMIT_WAIT, e.port_xmit_wait, 64);
}

static void read_classic(struct accum_reading *r, const struct agent *a, const uint8_t *data)
{
    struct mad_port_counters c;
    mad_port_counters_decode(data, &c);
    const uint32_t v[COUNT(classic)] = {
        c.symbol_error_counter,
        c.link_error_recovery_counter,
        c.link_downed_counter,
        c.port_rcv_errors,
        c.port_rcv_remote_physical_errors,
        c.port_rcv_switch_relay_errors,
        c.port_xmit_discards,
        c.port_xmit_constraint_errors,
        c.port_rcv_constraint_errors,
        c.local_link_integrity_errors,
        c.excessive_buffer_overrun_errors,
        c.vl15_dropped,
        c.port_xmit_data,
        c.port_rcv_data,
        c.port_xmit_pkts,
        c.port_rcv_pkts,
        c.port_xmit_wait,
        c.qp1_dropped,
    };
    uint64_t leave = 0;
    if (agent_is_extended(a))
        leave |= BIT(TELE_XMIT_DATA) | BIT(TELE_RCV_DATA) | BIT(TELE_XMIT_PKTS) | BIT(TELE_RCV_PKTS);
    if (!(a->caps & MAD_PM_CAP_XMIT_WAIT))
        leave |= BIT(TELE_XMIT_WAIT);
    if (!(a->caps & MAD_PM_CAP_QP1_DROPPED))
        leave |= BIT(TELE_QP1_DROPPED);
    for (size_t i = 0; i < COUNT(classic); i++)
        if (!(leave >> classic[i].counter & 1))
            put(r, classic[i].counter, v[i], classic[i].bits);
    r->groups = 1u << TELE_ERRORS | (agent_is_extended(a) ? 0 : 1u << TELE_DATA);
}

// Devices with RS-FEC counters count the port's blocks and symbols; older ones their lanes' blocks.
static void read_speed(struct accum_reading *r, const struct agent *a, const uint8_t *data)
{
    struct mad_port_extended_speeds_counters s;
    mad_port_extended_speeds_counters_decode(data, &s);
    put(r, TELE_SYNC_HEADER_ERRORS, s.sync_header_error_counter, 16);
    put(r, TELE_UNKNOWN_BLOCKS, s.unknown_block_counter, 16);
    r->groups = 1u << TELE_SPEED;
    if (a->caps & MAD_PM_CAP_RSFEC_COUNTERS) {
        put(r, TELE_FEC_CORRECTED_SYMBOLS, s.port_fec_corrected_symbol_counter, 32);
        put(r, TELE_FEC_CORRECTABLE_BLOCKS, s.port_fec_correctable_block_counter, 32);
        put(r, TELE_FEC_UNCORRECTABLE_BLOCKS, s.port_fec_uncorrectable_block_counter, 32);
        return;
    }
    uint64_t good = 0, bad = 0;
    bool good_full = false, bad_full = false;
    for (unsigned i = 0; i < 12; i++) {
        good += s.fec_correctable_block_counter_lane[i];
        bad += s.fec_uncorrectable_block_counter_lane[i];
        good_full |= s.fec_correctable_block_counter_lane[i] == FULL(32);
        bad_full |= s.fec_uncorrectable_block_counter_lane[i] == FULL(32);
    }
    put(r, TELE_FEC_CORRECTABLE_BLOCKS, good, 64);
    put(r, TELE_FEC_UNCORRECTABLE_BLOCKS, bad, 64);
    r->full |= (uint64_t)good_full << TELE_FEC_CORRECTABLE_BLOCKS;
    r->full |= (uint64_t)bad_full << TELE_FEC_UNCORRECTABLE_BLOCKS;
}

// Details: 16 bits each, from the fifth byte on, in the order of their rows.
static void read_detail(struct accum_reading *r, enum ask k, const uint8_t *data)
{
    struct mad_port_rcv_error_details e;
    struct mad_port_xmit_discard_details d;
    mad_port_rcv_error_details_decode(data, &e);
    mad_port_xmit_discard_details_decode(data, &d);
    const uint16_t rcv[] = {e.port_local_physical_errors, e.port_malformed_packet_errors,
                            e.port_buffer_overrun_errors, e.port_dlid_mapping_errors,
                            e.port_vl_mapping_errors,     e.port_looping_errors};
    const uint16_t xmit[] = {d.port_inactive_discards, d.port_neighbor_mtu_discards,
                             d.port_sw_lifetime_limit_discards, d.port_sw_hoq_lifetime_limit_discards};
    const uint16_t *v = k == ASK_RCV_DETAIL ? rcv : xmit;
    size_t n;
    const struct narrow *w = narrow_of(k, &n);
    for (size_t i = 0; i < n; i++)
        put(r, w[i].counter, v[i], 16);
    r->groups = 1u << (k == ASK_RCV_DETAIL ? TELE_RCV_DETAIL : TELE_XMIT_DETAIL);
}

bool answer_read(struct tele *t, const struct agent *a, uint32_t slot, enum ask k, const uint8_t *data)
{
    const struct tele_port *p = &t->table.port[slot];
    struct accum_reading *r = &t->reading;
    if (data[1] != p->num)
        return false;
    r->counters = r->full = r->narrow = 0;
    r->kind = k;
    if (k == ASK_EXTENDED)
        read_extended(r, a, data);
    else if (k == ASK_CLASSIC)
        read_classic(r, a, data);
    else if (k == ASK_SPEED)
        read_speed(r, a, data);
    else
        read_detail(r, k, data);
    return true;
}

// Redirected: to another LID, if it is QP1 there with the usual keys (as OpenSM demands a LID; redirection by
// GID alone is not followed).
void answer_info(struct agent *a, const uint8_t *data, bool *ret_usable)
{
    struct mad_class_port_info c;
    mad_class_port_info_decode(data, &c);
    a->caps = c.capability_mask;
    a->additional = c.capability_mask2 & MAD_PM_CAP2_ADDITIONAL_EXTENDED_COUNTERS &&
                    c.capability_mask & (MAD_PM_CAP_EXTENDED_WIDTH | MAD_PM_CAP_EXTENDED_WIDTH_NO_IETF);
    *ret_usable = true;
    bool elsewhere = false;
    for (unsigned i = 0; i < 16; i++)
        elsewhere |= c.redirect_gid[i] != 0;
    if ((c.redirect_lid == 0 && !elsewhere) || (c.redirect_lid == a->to && c.redirect_qp <= 1))
        return;
    *ret_usable = c.redirect_lid != 0 && c.redirect_lid <= LID_UCAST_MAX && c.redirect_qp == 1 &&
                  c.redirect_q_key == MAD_QP1_Q_KEY;
    if (*ret_usable)
        a->to = c.redirect_lid;
}

// The sums of the fabric's ports are at most those of all ports; an agent that says less means something else
// by them.
static bool sums_fit(const struct tele *t, const struct agent *a, const struct accum_reading *r)
{
    for (unsigned c = 0; c < TELE_COUNTERS; c++) {
        uint64_t sum = 0;
        if (!((r->counters & t->error_counters & ~r->full) >> c & 1))
            continue;
        for (unsigned i = 0; i < a->num; i++)
            if (t->table.have[a->slot[i]] >> c & 1)
                sum += tele_value(&t->table, a->slot[i], c) - accum_base(&t->accum, a->slot[i], c);
        if (sum > r->raw[c])
            return false;
    }
    return true;
}

bool answer_sum(struct tele *t, struct agent *a, const uint8_t *data, uint64_t *ret_hash)
{
    struct accum_reading *r = &t->reading;
    uint64_t h = 0;
    r->counters = r->full = r->narrow = 0;
    if (agent_has_all(a))
        read_extended(r, a, data);
    else
        read_classic(r, a, data);
    a->sum_unfit = !sums_fit(t, a, r);
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if ((r->counters & t->error_counters) >> c & 1)
            h = hash_mix64(h ^ r->raw[c]);
    *ret_hash = h;
    return !(r->full & t->error_counters) && !a->sum_unfit;
}
