// SPDX-License-Identifier: Apache-2.0
#include "mad/mad.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct name {
    unsigned code;
    const char *text;
};

static const char *lookup(const struct name *names, size_t n, unsigned code)
{
    for (size_t i = 0; i < n; i++)
        if (names[i].code == code)
            return names[i].text;
    return NULL;
}
#define LOOKUP(table, code) lookup(table, sizeof(table) / sizeof(table[0]), code)

const char *mad_class_name(uint8_t mgmt_class)
{
    static const struct name names[] = {{MAD_CLASS_SM_LID, "SubnLid"},
                                        {MAD_CLASS_SM_DR, "SubnDr"},
                                        {MAD_CLASS_SA, "SubnAdm"},
                                        {MAD_CLASS_PM, "Perf"}};
    return LOOKUP(names, mgmt_class);
}

const char *mad_method_name(uint8_t method)
{
    static const struct name names[] = {{MAD_METHOD_GET, "Get"},
                                        {MAD_METHOD_SET, "Set"},
                                        {MAD_METHOD_SEND, "Send"},
                                        {MAD_METHOD_TRAP, "Trap"},
                                        {MAD_METHOD_REPORT, "Report"},
                                        {MAD_METHOD_TRAP_REPRESS, "TrapRepress"},
                                        {MAD_METHOD_GET_TABLE, "GetTable"},
                                        {MAD_METHOD_GET_TRACE_TABLE, "GetTraceTable"},
                                        {MAD_METHOD_GET_MULTI, "GetMulti"},
                                        {MAD_METHOD_DELETE, "Delete"},
                                        {MAD_METHOD_GET_RESP, "GetResp"},
                                        {MAD_METHOD_REPORT_RESP, "ReportResp"},
                                        {MAD_METHOD_GET_TABLE_RESP, "GetTableResp"},
                                        {MAD_METHOD_GET_MULTI_RESP, "GetMultiResp"},
                                        {MAD_METHOD_DELETE_RESP, "DeleteResp"}};
    return LOOKUP(names, method);
}

const char *mad_attr_name(uint8_t mgmt_class, uint16_t attr_id)
{
    // what has a name but no table
    static const struct name sa[] = {
        {MAD_SA_ATTR_RANDOM_FORWARDING_TABLE_RECORD, "RandomForwardingTableRecord"},
        {MAD_SA_ATTR_TRACE_RECORD, "TraceRecord"},
        {MAD_SA_ATTR_MULTI_PATH_RECORD, "MultiPathRecord"},
        {MAD_SA_ATTR_SERVICE_ASSOCIATION_RECORD, "ServiceAssociationRecord"}};
    const struct mad_attr *attr = mad_attr_find(mgmt_class, attr_id);
    if (attr)
        return attr->name;
    return mgmt_class == MAD_CLASS_SA ? LOOKUP(sa, attr_id) : NULL;
}

const char *mad_trap_name(uint16_t trap_number)
{
    static const struct name names[] = {
        {MAD_TRAP_GID_IN_SERVICE, "GID in service"},
        {MAD_TRAP_GID_OUT_OF_SERVICE, "GID out of service"},
        {MAD_TRAP_MC_GROUP_CREATED, "multicast group created"},
        {MAD_TRAP_MC_GROUP_DELETED, "multicast group deleted"},
        {MAD_TRAP_LINK_STATE_CHANGE, "link state change"},
        {MAD_TRAP_LOCAL_LINK_INTEGRITY, "local link integrity threshold"},
        {MAD_TRAP_EXCESSIVE_BUFFER_OVERRUN, "excessive buffer overrun threshold"},
        {MAD_TRAP_FLOW_CONTROL_WATCHDOG, "flow control update watchdog"},
        {MAD_TRAP_LOCAL_CHANGES, "local changes"},
        {MAD_TRAP_SYSTEM_IMAGE_GUID, "SystemImageGUID change"},
        {MAD_TRAP_BAD_M_KEY, "bad M_Key"},
        {MAD_TRAP_BAD_P_KEY, "bad P_Key"},
        {MAD_TRAP_BAD_Q_KEY, "bad Q_Key"},
        {MAD_TRAP_SWITCH_BAD_P_KEY, "bad P_Key at switch port"}};
    return LOOKUP(names, trap_number);
}

static const char *nth(const char *const *names, unsigned n, unsigned i)
{
    return i < n ? names[i] : NULL;
}

const char *mad_port_state_name(uint8_t state)
{
    static const char *const names[] = {"NoChange", "Down", "Initialize", "Armed", "Active"};
    return nth(names, 5, state);
}

const char *mad_phys_state_name(uint8_t state)
{
    static const char *const names[] = {
        "NoChange",          "Sleep",  "Polling", "Disabled", "PortConfigurationTraining", "LinkUp",
        "LinkErrorRecovery", "PhyTest"};
    return nth(names, 8, state);
}

const char *mad_sm_state_name(uint8_t state)
{
    static const char *const names[] = {"NotActive", "Discovering", "Standby", "Master"};
    return nth(names, 4, state);
}

const char *mad_node_type_name(uint8_t type)
{
    static const char *const names[] = {NULL, "CA", "Switch", "Router"};
    return nth(names, 4, type);
}

const char *mad_status_text(uint8_t mgmt_class, uint16_t status, char buf[MAD_TEXT_SIZE])
{
    static const struct name common[] = {{MAD_STATUS_BAD_VERSION, "bad version or class"},
                                         {MAD_STATUS_BAD_METHOD, "method not supported"},
                                         {MAD_STATUS_BAD_METHOD_ATTR, "method/attribute not supported"},
                                         {MAD_STATUS_BAD_VALUE, "invalid value"}};
    static const struct name sa[] = {
        {MAD_SA_NO_RESOURCES, "no resources"}, {MAD_SA_REQ_INVALID, "request invalid"},
        {MAD_SA_NO_RECORDS, "no records"},     {MAD_SA_TOO_MANY_RECORDS, "too many records"},
        {MAD_SA_INVALID_GID, "invalid GID"},   {MAD_SA_INSUFFICIENT_COMPONENTS, "insufficient components"},
        {MAD_SA_DENIED, "request denied"},     {MAD_SA_PRIORITY_SUGGESTED, "priority suggested"}};
    if (mgmt_class == MAD_CLASS_SM_DR)
        status &= 0x7fff;
    const char *text = NULL;
    if (status == 0)
        return "ok";
    if (status & MAD_STATUS_BUSY)
        text = "busy";
    else if (status & MAD_STATUS_REDIRECT)
        text = "redirect";
    else if (status & MAD_STATUS_CODE_MASK)
        text = LOOKUP(common, status & MAD_STATUS_CODE_MASK);
    else if (mgmt_class == MAD_CLASS_SA)
        text = LOOKUP(sa, status & 0xff00u);
    if (text)
        snprintf(buf, MAD_TEXT_SIZE, "%s (0x%04x)", text, status);
    else
        snprintf(buf, MAD_TEXT_SIZE, "status 0x%04x", status);
    return buf;
}

const char *mad_what_text(uint8_t mgmt_class, uint8_t method, uint16_t attr_id, char buf[MAD_TEXT_SIZE])
{
    const char *class = mad_class_name(mgmt_class), *verb = mad_method_name(method);
    const char *attr = mad_attr_name(mgmt_class, attr_id);
    char c[16], v[16], a[16];
    snprintf(c, sizeof(c), "class 0x%02x ", mgmt_class);
    snprintf(v, sizeof(v), "method 0x%02x", method);
    snprintf(a, sizeof(a), "0x%04x", attr_id);
    bool smp = mgmt_class == MAD_CLASS_SM_LID || mgmt_class == MAD_CLASS_SM_DR;
    snprintf(buf, MAD_TEXT_SIZE, "%s%s(%s)", smp ? "" : class ? class : c, verb ? verb : v, attr ? attr : a);
    return buf;
}

unsigned mad_mtu_bytes(uint8_t code)
{
    return code >= MAD_MTU_256 && code <= MAD_MTU_4096 ? 128u << code : 0;
}

unsigned mad_vl_count(uint8_t code)
{
    static const uint8_t counts[] = {0, 1, 2, 4, 8, 15};
    return code < sizeof(counts) ? counts[code] : 0;
}

uint64_t mad_time_ns(uint8_t n)
{
    return (uint64_t)4096 << (n & 31);
}

static uint8_t join_ext2(uint8_t ext, uint8_t ext2)
{
    return ext2 & 1 ? ext | MAD_SPEED_EXT_XDR : ext;
}

uint8_t mad_speed_ext_active(const struct mad_port_info *pi)
{
    return pi->link_speed_ext_active2 & 1 ? MAD_SPEED_EXT_XDR : pi->link_speed_ext_active;
}

uint8_t mad_speed_ext_supported(const struct mad_port_info *pi)
{
    return join_ext2(pi->link_speed_ext_supported, pi->link_speed_ext_supported2);
}

// One lane at each speed. nominal is how people name it, data what is left after line coding.
struct lane {
    const char *name;
    unsigned nominal_kbps;
    uint64_t data_bps;
};
static const struct lane lane_sdr = {"SDR", 2500000, 2000000000}, lane_ddr = {"DDR", 5000000, 4000000000},
                         lane_qdr = {"QDR", 10000000, 8000000000},
                         lane_fdr10 = {"FDR10", 10000000, 10000000000},
                         lane_fdr = {"FDR", 14000000, 13636363636}, lane_edr = {"EDR", 25000000, 25000000000},
                         lane_hdr = {"HDR", 50000000, 50000000000},
                         lane_ndr = {"NDR", 100000000, 100000000000},
                         lane_xdr = {"XDR", 200000000, 200000000000};

static const struct lane *find_lane(uint8_t speed, uint8_t speed_ext, bool is_fdr10)
{
    switch (speed_ext) {
    case MAD_SPEED_EXT_NONE:
        break;
    case MAD_SPEED_EXT_FDR:
        return &lane_fdr;
    case MAD_SPEED_EXT_EDR:
        return &lane_edr;
    case MAD_SPEED_EXT_HDR:
        return &lane_hdr;
    case MAD_SPEED_EXT_NDR:
        return &lane_ndr;
    case MAD_SPEED_EXT_XDR:
        return &lane_xdr;
    default:
        return NULL;
    }
    if (is_fdr10)
        return &lane_fdr10;
    return speed == MAD_SPEED_SDR   ? &lane_sdr
           : speed == MAD_SPEED_DDR ? &lane_ddr
           : speed == MAD_SPEED_QDR ? &lane_qdr
                                    : NULL;
}

unsigned mad_width_lanes(uint8_t width)
{
    switch (width) {
    case MAD_WIDTH_1X:
        return 1;
    case MAD_WIDTH_2X:
        return 2;
    case MAD_WIDTH_4X:
        return 4;
    case MAD_WIDTH_8X:
        return 8;
    case MAD_WIDTH_12X:
        return 12;
    default:
        return 0;
    }
}

const char *mad_speed_name(uint8_t speed, uint8_t speed_ext, bool is_fdr10)
{
    const struct lane *lane = find_lane(speed, speed_ext, is_fdr10);
    return lane ? lane->name : NULL;
}

const char *mad_link_text(uint8_t width, uint8_t speed, uint8_t speed_ext, bool is_fdr10,
                          char buf[MAD_LINK_TEXT_SIZE])
{
    const struct lane *lane = find_lane(speed, speed_ext, is_fdr10);
    unsigned lanes = mad_width_lanes(width);
    char w[12], s[16];
    snprintf(w, sizeof(w), lanes ? "%u" : "w%u", lanes ? lanes : width);
    if (!lane)
        snprintf(s, sizeof(s), "speed%u/%u", speed, speed_ext);
    snprintf(buf, MAD_LINK_TEXT_SIZE, "%sx%s", w, lane ? lane->name : s);
    return buf;
}

double mad_link_gbps(uint8_t width, uint8_t speed, uint8_t speed_ext, bool is_fdr10)
{
    const struct lane *lane = find_lane(speed, speed_ext, is_fdr10);
    return lane ? mad_width_lanes(width) * (lane->nominal_kbps / 1e6) : 0;
}

uint64_t mad_link_data_bps(uint8_t width, uint8_t speed, uint8_t speed_ext, bool is_fdr10)
{
    const struct lane *lane = find_lane(speed, speed_ext, is_fdr10);
    return !lane               ? 0
           : lane == &lane_fdr ? mad_width_lanes(width) * 150000000000ull / 11
                               : mad_width_lanes(width) * lane->data_bps;
}

// Rate codes of PathRecord and MCMemberRecord, in Gb/s
static const double rates[] = {
    [2] = 2.5,  [3] = 10,  [4] = 30,  [5] = 5,    [6] = 20,   [7] = 40,   [8] = 60,   [9] = 80,
    [10] = 120, [11] = 14, [12] = 56, [13] = 112, [14] = 168, [15] = 25,  [16] = 100, [17] = 200,
    [18] = 300, [19] = 28, [20] = 50, [21] = 400, [22] = 600, [23] = 800, [24] = 1200};

double mad_rate_gbps(uint8_t rate)
{
    return rate < sizeof(rates) / sizeof(rates[0]) ? rates[rate] : 0;
}

uint8_t mad_link_rate(uint8_t width, uint8_t speed, uint8_t speed_ext, bool is_fdr10)
{
    double gbps = mad_link_gbps(width, speed, speed_ext, is_fdr10);
    for (uint8_t i = 2; gbps > 0 && i < sizeof(rates) / sizeof(rates[0]); i++)
        if (rates[i] == gbps)
            return i;
    return 0;
}

const char *mad_node_string(const struct mad_node_description *nd, char buf[65])
{
    size_t n = 0;
    for (; n < sizeof(nd->node_string) && nd->node_string[n]; n++)
        buf[n] = nd->node_string[n] >= ' ' && nd->node_string[n] <= '~' ? nd->node_string[n] : '?';
    while (n > 0 && buf[n - 1] == ' ')
        n--;
    buf[n] = 0;
    return buf;
}

int mad_smp_build(uint8_t mad[MAD_SIZE], const struct mad_smp_to *to, uint8_t method, uint16_t attr_id,
                  uint32_t attr_mod, uint64_t tid, uint64_t m_key, const struct mad_attr *attr,
                  const void *host)
{
    if (to->hops > MAD_SMP_MAX_HOPS)
        return -EINVAL;
    bool dr = to->dr || to->hops > 0;
    struct mad_smp smp = {.base_version = MAD_BASE_VERSION,
                          .mgmt_class = dr ? MAD_CLASS_SM_DR : MAD_CLASS_SM_LID,
                          .class_version = 1,
                          .method = method,
                          .tid = tid,
                          .attr_id = attr_id,
                          .attr_mod = attr_mod,
                          .m_key = m_key};
    if (dr) {
        smp.hop_count = to->hops;
        smp.dr_slid = smp.dr_dlid = MAD_LID_PERMISSIVE;
        memcpy(smp.initial_path + 1, to->path + 1, to->hops);
    }
    mad_smp_encode(&smp, mad);
    if (attr && host)
        mad_attr_encode(attr, host, mad + MAD_SMP_DATA_OFFSET);
    return 0;
}

void mad_pm_build(uint8_t mad[MAD_SIZE], uint8_t method, uint16_t attr_id, uint32_t attr_mod, uint64_t tid,
                  const struct mad_attr *attr, const void *host)
{
    struct mad_hdr hdr = {.base_version = MAD_BASE_VERSION,
                          .mgmt_class = MAD_CLASS_PM,
                          .class_version = 1,
                          .method = method,
                          .tid = tid,
                          .attr_id = attr_id,
                          .attr_mod = attr_mod};
    memset(mad, 0, MAD_SIZE);
    mad_hdr_encode(&hdr, mad);
    if (attr && host)
        mad_attr_encode(attr, host, mad + MAD_PM_DATA_OFFSET);
}

uint16_t mad_status(const struct mad_hdr *hdr)
{
    return hdr->mgmt_class == MAD_CLASS_SM_DR ? hdr->status & 0x7fff : hdr->status;
}

bool mad_is_response(uint8_t method)
{
    return method & MAD_METHOD_RESPONSE || method == MAD_METHOD_TRAP_REPRESS;
}

void mad_data_area(uint8_t mgmt_class, unsigned *ret_offset, unsigned *ret_size)
{
    switch (mgmt_class) {
    case MAD_CLASS_SM_LID:
    case MAD_CLASS_SM_DR:
        *ret_offset = MAD_SMP_DATA_OFFSET;
        *ret_size = MAD_SMP_DATA_SIZE;
        return;
    case MAD_CLASS_SA:
        *ret_offset = MAD_SA_DATA_OFFSET;
        *ret_size = MAD_SA_DATA_SIZE;
        return;
    case MAD_CLASS_PM:
        *ret_offset = MAD_PM_DATA_OFFSET;
        *ret_size = MAD_PM_DATA_SIZE;
        return;
    default:
        *ret_offset = *ret_size = 0;
    }
}
