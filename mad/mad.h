// SPDX-License-Identifier: Apache-2.0
//
// MADs: constants in the standard's names, names for people, whole-MAD composition, link rates.
//
// Everything here is pure and may run on any thread. The layouts live in mad/codec.h; this header holds what
// does not come from a table. Values are host byte order. Section numbers are of the IBTA specification,
// volume 1.
#ifndef WEFT_MAD_MAD_H
#define WEFT_MAD_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mad/codec.h"

#define MAD_SIZE 256
#define MAD_BASE_VERSION 1
#define MAD_SMP_DATA_OFFSET 64
#define MAD_SMP_DATA_SIZE 64
#define MAD_SMP_MAX_HOPS 63 // entries 1..63 of the path; entry 0 is not used
#define MAD_SA_DATA_OFFSET 56
#define MAD_SA_DATA_SIZE 200
#define MAD_PM_DATA_OFFSET 64
#define MAD_PM_DATA_SIZE 192
#define MAD_LID_PERMISSIVE 0xffff
#define MAD_QP1_Q_KEY 0x80010000u
#define MAD_DEFAULT_GID_PREFIX 0xfe80000000000000ull
#define MAD_DEFAULT_P_KEY 0xffff

#define MAD_LID_UNICAST_MIN 0x0001
#define MAD_LID_UNICAST_MAX 0xbfff
#define MAD_LID_MULTICAST_MIN 0xc000
#define MAD_LID_MULTICAST_MAX 0xfffe

enum mad_class {
    MAD_CLASS_SM_LID = 0x01,
    MAD_CLASS_SA = 0x03,
    MAD_CLASS_PM = 0x04,
    MAD_CLASS_SM_DR = 0x81,
};

enum mad_method {
    MAD_METHOD_GET = 0x01,
    MAD_METHOD_SET = 0x02,
    MAD_METHOD_SEND = 0x03,
    MAD_METHOD_TRAP = 0x05,
    MAD_METHOD_REPORT = 0x06,
    MAD_METHOD_TRAP_REPRESS = 0x07,
    MAD_METHOD_GET_TABLE = 0x12,
    MAD_METHOD_GET_TRACE_TABLE = 0x13,
    MAD_METHOD_GET_MULTI = 0x14,
    MAD_METHOD_DELETE = 0x15,
    MAD_METHOD_RESPONSE = 0x80, // the bit
    MAD_METHOD_GET_RESP = 0x81,
    MAD_METHOD_REPORT_RESP = 0x86,
    MAD_METHOD_GET_TABLE_RESP = 0x92,
    MAD_METHOD_GET_MULTI_RESP = 0x94,
    MAD_METHOD_DELETE_RESP = 0x95,
};

// 13.4.7; the high byte is the class's
enum mad_status {
    MAD_STATUS_OK = 0x0000,
    MAD_STATUS_BUSY = 0x0001,
    MAD_STATUS_REDIRECT = 0x0002,
    MAD_STATUS_BAD_VERSION = 0x0004,
    MAD_STATUS_BAD_METHOD = 0x0008,
    MAD_STATUS_BAD_METHOD_ATTR = 0x000c,
    MAD_STATUS_BAD_VALUE = 0x001c,
    MAD_STATUS_CODE_MASK = 0x001c,
    // 15.2.3, class SA
    MAD_SA_NO_RESOURCES = 0x0100,
    MAD_SA_REQ_INVALID = 0x0200,
    MAD_SA_NO_RECORDS = 0x0300,
    MAD_SA_TOO_MANY_RECORDS = 0x0400,
    MAD_SA_INVALID_GID = 0x0500,
    MAD_SA_INSUFFICIENT_COMPONENTS = 0x0600,
    MAD_SA_DENIED = 0x0700,
    MAD_SA_PRIORITY_SUGGESTED = 0x0800,
};

enum mad_attr_id {
    MAD_ATTR_CLASS_PORT_INFO = 0x0001,
    MAD_ATTR_NOTICE = 0x0002,
    MAD_ATTR_INFORM_INFO = 0x0003,

    MAD_ATTR_NODE_DESCRIPTION = 0x0010,
    MAD_ATTR_NODE_INFO = 0x0011,
    MAD_ATTR_SWITCH_INFO = 0x0012,
    MAD_ATTR_GUID_INFO = 0x0014,
    MAD_ATTR_PORT_INFO = 0x0015,
    MAD_ATTR_P_KEY_TABLE = 0x0016,
    MAD_ATTR_SLTOVL_MAPPING_TABLE = 0x0017,
    MAD_ATTR_VL_ARBITRATION_TABLE = 0x0018,
    MAD_ATTR_LINEAR_FORWARDING_TABLE = 0x0019,
    MAD_ATTR_RANDOM_FORWARDING_TABLE = 0x001a,
    MAD_ATTR_MULTICAST_FORWARDING_TABLE = 0x001b,
    MAD_ATTR_LINK_SPEED_WIDTH_PAIRS_TABLE = 0x001c,
    MAD_ATTR_VENDOR_SPECIFIC_MADS_TABLE = 0x001d,
    MAD_ATTR_HIERARCHY_INFO = 0x001e,
    MAD_ATTR_SM_INFO = 0x0020,
    MAD_ATTR_VENDOR_DIAG = 0x0030,
    MAD_ATTR_LED_INFO = 0x0031,
    MAD_ATTR_CABLE_INFO = 0x0032,
    MAD_ATTR_PORT_INFO_EXTENDED = 0x0033,
    MAD_ATTR_SWITCH_PORT_STATE_TABLE = 0x0034,
    MAD_ATTR_GENERAL_INFO = 0xff17,
    MAD_ATTR_ADAPTIVE_ROUTING_INFO = 0xff20,
    MAD_ATTR_ADAPTIVE_ROUTING_GROUP_TABLE = 0xff21,
    MAD_ATTR_ADAPTIVE_ROUTING_LFT = 0xff23,
    MAD_ATTR_MLNX_EXT_PORT_INFO = 0xff90,

    MAD_PM_ATTR_PORT_SAMPLES_CONTROL = 0x0010,
    MAD_PM_ATTR_PORT_SAMPLES_RESULT = 0x0011,
    MAD_PM_ATTR_PORT_COUNTERS = 0x0012,
    MAD_PM_ATTR_PORT_RCV_ERROR_DETAILS = 0x0015,
    MAD_PM_ATTR_PORT_XMIT_DISCARD_DETAILS = 0x0016,
    MAD_PM_ATTR_PORT_VL_XMIT_WAIT_COUNTERS = 0x001c,
    MAD_PM_ATTR_PORT_COUNTERS_EXTENDED = 0x001d,
    MAD_PM_ATTR_PORT_EXTENDED_SPEEDS_COUNTERS = 0x001f,

    MAD_SA_ATTR_NODE_RECORD = 0x0011,
    MAD_SA_ATTR_PORT_INFO_RECORD = 0x0012,
    MAD_SA_ATTR_SLTOVL_MAPPING_TABLE_RECORD = 0x0013,
    MAD_SA_ATTR_SWITCH_INFO_RECORD = 0x0014,
    MAD_SA_ATTR_LINEAR_FORWARDING_TABLE_RECORD = 0x0015,
    MAD_SA_ATTR_RANDOM_FORWARDING_TABLE_RECORD = 0x0016,
    MAD_SA_ATTR_MULTICAST_FORWARDING_TABLE_RECORD = 0x0017,
    MAD_SA_ATTR_SM_INFO_RECORD = 0x0018,
    MAD_SA_ATTR_LINK_RECORD = 0x0020,
    MAD_SA_ATTR_GUID_INFO_RECORD = 0x0030,
    MAD_SA_ATTR_SERVICE_RECORD = 0x0031,
    MAD_SA_ATTR_P_KEY_TABLE_RECORD = 0x0033,
    MAD_SA_ATTR_PATH_RECORD = 0x0035,
    MAD_SA_ATTR_VL_ARBITRATION_TABLE_RECORD = 0x0036,
    MAD_SA_ATTR_MC_MEMBER_RECORD = 0x0038,
    MAD_SA_ATTR_TRACE_RECORD = 0x0039,
    MAD_SA_ATTR_MULTI_PATH_RECORD = 0x003a,
    MAD_SA_ATTR_SERVICE_ASSOCIATION_RECORD = 0x003b,
    MAD_SA_ATTR_INFORM_INFO_RECORD = 0x00f3,
};

// Attribute modifiers
#define MAD_PORT_INFO_EXTENDED_SPEEDS 0x80000000u // SMSupportExtendedSpeeds
#define MAD_SLTOVL_ALL_OUT                                                                                   \
    0x10000u // with OptimizedSLtoVLMappingProgramming: all outputs (port number ignored)
#define MAD_SLTOVL_ALL_IN 0x20000u // all inputs of one output; both: every pair
#define MAD_PORT_SELECT_ALL 0xff   // PMA PortSelect: all ports at once

// RMPP (13.6)
enum mad_rmpp_type {
    MAD_RMPP_NONE = 0,
    MAD_RMPP_DATA = 1,
    MAD_RMPP_ACK = 2,
    MAD_RMPP_STOP = 3,
    MAD_RMPP_ABORT = 4,
};
enum mad_rmpp_flag {
    MAD_RMPP_ACTIVE = 1,
    MAD_RMPP_FIRST = 2,
    MAD_RMPP_LAST = 4,
};

enum mad_notice_type {
    MAD_NOTICE_FATAL = 0,
    MAD_NOTICE_URGENT = 1,
    MAD_NOTICE_SECURITY = 2,
    MAD_NOTICE_SUBNET_MANAGEMENT = 3,
    MAD_NOTICE_INFORMATIONAL = 4,
    MAD_NOTICE_EMPTY = 0x7f,
};
enum mad_producer {
    MAD_PRODUCER_CA = 1,
    MAD_PRODUCER_SWITCH = 2,
    MAD_PRODUCER_ROUTER = 3,
    MAD_PRODUCER_CLASS_MANAGER = 4,
};

enum mad_trap {
    MAD_TRAP_GID_IN_SERVICE = 64,
    MAD_TRAP_GID_OUT_OF_SERVICE = 65,
    MAD_TRAP_MC_GROUP_CREATED = 66,
    MAD_TRAP_MC_GROUP_DELETED = 67,
    MAD_TRAP_LINK_STATE_CHANGE = 128,
    MAD_TRAP_LOCAL_LINK_INTEGRITY = 129,
    MAD_TRAP_EXCESSIVE_BUFFER_OVERRUN = 130,
    MAD_TRAP_FLOW_CONTROL_WATCHDOG = 131,
    MAD_TRAP_LOCAL_CHANGES = 144,
    MAD_TRAP_SYSTEM_IMAGE_GUID = 145,
    MAD_TRAP_BAD_M_KEY = 256,
    MAD_TRAP_BAD_P_KEY = 257,
    MAD_TRAP_BAD_Q_KEY = 258,
    MAD_TRAP_SWITCH_BAD_P_KEY = 259,
};

enum mad_node_type {
    MAD_NODE_CA = 1,
    MAD_NODE_SWITCH = 2,
    MAD_NODE_ROUTER = 3,
};

enum mad_port_state {
    MAD_PORT_NO_CHANGE = 0, // in a Set
    MAD_PORT_DOWN = 1,
    MAD_PORT_INIT = 2,
    MAD_PORT_ARMED = 3,
    MAD_PORT_ACTIVE = 4,
};

enum mad_phys_state {
    MAD_PHYS_NO_CHANGE = 0, // in a Set
    MAD_PHYS_SLEEP = 1,
    MAD_PHYS_POLLING = 2,
    MAD_PHYS_DISABLED = 3,
    MAD_PHYS_TRAINING = 4,
    MAD_PHYS_LINK_UP = 5,
    MAD_PHYS_LINK_ERROR_RECOVERY = 6,
    MAD_PHYS_TEST = 7,
};

enum mad_sm_state {
    MAD_SM_NOT_ACTIVE = 0,
    MAD_SM_DISCOVERING = 1,
    MAD_SM_STANDBY = 2,
    MAD_SM_MASTER = 3,
};

// AttributeModifier of Set(SMInfo) (14.4.1)
enum mad_sm_control {
    MAD_SM_HANDOVER = 1,
    MAD_SM_ACKNOWLEDGE = 2,
    MAD_SM_DISABLE = 3,
    MAD_SM_STANDBY_REQUEST = 4,
    MAD_SM_DISCOVER = 5,
};

enum mad_mtu {
    MAD_MTU_256 = 1,
    MAD_MTU_512 = 2,
    MAD_MTU_1024 = 3,
    MAD_MTU_2048 = 4,
    MAD_MTU_4096 = 5,
};

// PortInfo.CapabilityMask
#define MAD_CAP_IS_SM (1u << 1)
#define MAD_CAP_IS_NOTICE_SUPPORTED (1u << 2)
#define MAD_CAP_IS_TRAP_SUPPORTED (1u << 3)
#define MAD_CAP_IS_OPTIONAL_IPD_SUPPORTED (1u << 4)
#define MAD_CAP_IS_AUTOMATIC_MIGRATION_SUPPORTED (1u << 5)
#define MAD_CAP_IS_SL_MAPPING_SUPPORTED (1u << 6)
#define MAD_CAP_IS_M_KEY_NVRAM (1u << 7)
#define MAD_CAP_IS_P_KEY_NVRAM (1u << 8)
#define MAD_CAP_IS_LED_INFO_SUPPORTED (1u << 9)
#define MAD_CAP_IS_SM_DISABLED (1u << 10)
#define MAD_CAP_IS_SYSTEM_IMAGE_GUID_SUPPORTED (1u << 11)
#define MAD_CAP_IS_P_KEY_SWITCH_EXTERNAL_PORT_TRAP_SUPPORTED (1u << 12)
#define MAD_CAP_IS_CABLE_INFO_SUPPORTED (1u << 13)
#define MAD_CAP_IS_EXTENDED_SPEEDS_SUPPORTED (1u << 14)
#define MAD_CAP_IS_CAPABILITY_MASK2_SUPPORTED (1u << 15)
#define MAD_CAP_IS_COMMUNICATION_MANAGEMENT_SUPPORTED (1u << 16)
#define MAD_CAP_IS_SNMP_TUNNELING_SUPPORTED (1u << 17)
#define MAD_CAP_IS_REINIT_SUPPORTED (1u << 18)
#define MAD_CAP_IS_DEVICE_MANAGEMENT_SUPPORTED (1u << 19)
#define MAD_CAP_IS_VENDOR_CLASS_SUPPORTED (1u << 20)
#define MAD_CAP_IS_DR_NOTICE_SUPPORTED (1u << 21)
#define MAD_CAP_IS_CAPABILITY_MASK_NOTICE_SUPPORTED (1u << 22)
#define MAD_CAP_IS_BOOT_MANAGEMENT_SUPPORTED (1u << 23)
#define MAD_CAP_IS_LINK_ROUND_TRIP_LATENCY_SUPPORTED (1u << 24)
#define MAD_CAP_IS_CLIENT_REREGISTRATION_SUPPORTED (1u << 25)
#define MAD_CAP_IS_OTHER_LOCAL_CHANGES_NOTICE_SUPPORTED (1u << 26)
#define MAD_CAP_IS_LINK_SPEED_WIDTH_PAIRS_TABLE_SUPPORTED (1u << 27)
#define MAD_CAP_IS_VENDOR_SPECIFIC_MADS_TABLE_SUPPORTED (1u << 28)
#define MAD_CAP_IS_MULTICAST_PKEY_TRAP_SUPPRESSION_SUPPORTED (1u << 29)
#define MAD_CAP_IS_MULTICAST_FDB_TOP_SUPPORTED (1u << 30)
#define MAD_CAP_IS_HIERARCHY_INFO_SUPPORTED (1u << 31)

// PortInfo.CapabilityMask2; valid only with MAD_CAP_IS_CAPABILITY_MASK2_SUPPORTED
#define MAD_CAP2_IS_SET_NODE_DESCRIPTION_SUPPORTED (1u << 0)
#define MAD_CAP2_IS_PORT_INFO_EXTENDED_SUPPORTED (1u << 1)
#define MAD_CAP2_IS_VIRTUALIZATION_SUPPORTED (1u << 2)
#define MAD_CAP2_IS_SWITCH_PORT_STATE_TABLE_SUPPORTED (1u << 3)
#define MAD_CAP2_IS_LINK_WIDTH_2X_SUPPORTED (1u << 4)
#define MAD_CAP2_IS_LINK_SPEED_HDR_SUPPORTED (1u << 5)
#define MAD_CAP2_IS_M_KEY_PROTECT_BITS_EXT_SUPPORTED (1u << 6)
#define MAD_CAP2_IS_ENHANCED_TRAP_128_SUPPORTED (1u << 7)
#define MAD_CAP2_IS_PARTITION_TOP_SUPPORTED (1u << 8)
#define MAD_CAP2_IS_ENHANCED_QOS_ARBITER_SUPPORTED (1u << 9)
#define MAD_CAP2_IS_LINK_SPEED_NDR_SUPPORTED (1u << 10)

// ClassPortInfo of the PMA: CapabilityMask, CapabilityMask2
#define MAD_PM_CAP_ALL_PORT_SELECT (1u << 8)
#define MAD_PM_CAP_EXTENDED_WIDTH (1u << 9)
#define MAD_PM_CAP_EXTENDED_WIDTH_NO_IETF (1u << 10) // no unicast and multicast counters
#define MAD_PM_CAP_XMIT_WAIT (1u << 12)
#define MAD_PM_CAP_RSFEC_COUNTERS (1u << 14)
#define MAD_PM_CAP_QP1_DROPPED (1u << 15)
#define MAD_PM_CAP2_ADDITIONAL_EXTENDED_COUNTERS (1u << 1) // PortCountersExtended has the error counters too

// Link widths and speeds, one bit each. *_ENABLED: 0 in a Set changes nothing; all ones mean "as supported".
enum mad_width {
    MAD_WIDTH_1X = 1,
    MAD_WIDTH_4X = 2,
    MAD_WIDTH_8X = 4,
    MAD_WIDTH_12X = 8,
    MAD_WIDTH_2X = 16,
    MAD_WIDTH_AS_SUPPORTED = 255,
};
enum mad_speed {
    MAD_SPEED_SDR = 1,
    MAD_SPEED_DDR = 2,
    MAD_SPEED_QDR = 4,
    MAD_SPEED_AS_SUPPORTED = 15,
};
// LinkSpeedExt*; XDR is bit 0 of the LinkSpeedExt*2 fields on the wire, the value 16 here: see
// mad_speed_ext_active().
enum mad_speed_ext {
    MAD_SPEED_EXT_NONE = 0,
    MAD_SPEED_EXT_FDR = 1,
    MAD_SPEED_EXT_EDR = 2,
    MAD_SPEED_EXT_HDR = 4,
    MAD_SPEED_EXT_NDR = 8,
    MAD_SPEED_EXT_XDR = 16,
    MAD_SPEED_EXT_ENABLED_NONE = 30, // LinkSpeedExtEnabled: extended speeds off
    MAD_SPEED_EXT_AS_SUPPORTED = 31,
};
// MlnxExtPortInfo link_speed_*
#define MAD_MLNX_SPEED_FDR10 1u

// Names for people. NULL where the code has none; mad_*_text() write the number then and return buf.
const char *mad_class_name(uint8_t mgmt_class);
const char *mad_method_name(uint8_t method);
const char *mad_attr_name(uint8_t mgmt_class, uint16_t attr_id);
const char *mad_trap_name(uint16_t trap_number);
const char *mad_port_state_name(uint8_t state);
const char *mad_phys_state_name(uint8_t state);
const char *mad_sm_state_name(uint8_t state);
const char *mad_node_type_name(uint8_t type);
#define MAD_TEXT_SIZE 64
const char *mad_status_text(uint8_t mgmt_class, uint16_t status, char buf[MAD_TEXT_SIZE]);
// "Get(PortInfo)", "SubnSet 0x99 attribute 0x1234" and the like
const char *mad_what_text(uint8_t mgmt_class, uint8_t method, uint16_t attr_id, char buf[MAD_TEXT_SIZE]);

// MTU code (1-5) to bytes; 0 for other codes. VL code (1-5) to the number of data VLs; 0 for other codes.
unsigned mad_mtu_bytes(uint8_t code);
unsigned mad_vl_count(uint8_t code);

// 4.096 us x 2^n in nanoseconds; n is cut to 5 bits (SubnetTimeOut, RespTimeValue, HOQLife, LifeTimeValue,
// packet life).
uint64_t mad_time_ns(uint8_t n);

// LinkSpeedExt with XDR as bit 4: one number for all extended speeds.
uint8_t mad_speed_ext_active(const struct mad_port_info *pi);
uint8_t mad_speed_ext_supported(const struct mad_port_info *pi);

// "4xNDR", "2xHDR", "4xFDR10", "4xQDR"; unknown codes as numbers: "w32xNDR", "4xspeed3/0". width and the
// speeds are the active codes, speed_ext with XDR as 16; the extended speed counts unless it is 0.
#define MAD_LINK_TEXT_SIZE 32
const char *mad_link_text(uint8_t width, uint8_t speed, uint8_t speed_ext, bool fdr10,
                          char buf[MAD_LINK_TEXT_SIZE]);

// "NDR", "FDR10"; NULL for codes that are not known.
const char *mad_speed_name(uint8_t speed, uint8_t speed_ext, bool fdr10);

// Lanes of an active width; 0 unknown.
unsigned mad_width_lanes(uint8_t width);

// The rate people name the link by, in Gb/s: 4xQDR 40, 4xFDR 56, 4xEDR 100, 4xHDR 200, 4xNDR 400; 1xSDR 2.5.
// 0 if a code is unknown.
double mad_link_gbps(uint8_t width, uint8_t speed, uint8_t speed_ext, bool fdr10);

// Data bits a second after line coding, what PortXmitData x 32 can reach: 4xQDR 32e9, 4xFDR 54545454545,
// 4xNDR 400e9. 0 if unknown.
uint64_t mad_link_data_bps(uint8_t width, uint8_t speed, uint8_t speed_ext, bool fdr10);

// The rate code of PathRecord and MCMemberRecord (2 = 2.5 Gb/s ... 24 = 1200 Gb/s) for a link; 0 where none
// is defined. Codes are not in the order of the rates: compare with mad_rate_gbps(), which is 0 for a code
// that is not defined.
uint8_t mad_link_rate(uint8_t width, uint8_t speed, uint8_t speed_ext, bool fdr10);
double mad_rate_gbps(uint8_t rate);

// NodeDescription as a C string: ends at the first NUL, other control characters and bytes above 126 become
// '?', trailing blanks go.
const char *mad_node_string(const struct mad_node_description *nd, char buf[65]);

// Who an SMP is for. hops > 0 or dr: a pure directed route, path[1..hops] are the output ports; otherwise
// LID-routed.
struct mad_smp_to {
    bool dr;
    uint8_t hops;                       // at most MAD_SMP_MAX_HOPS
    uint8_t path[MAD_SMP_MAX_HOPS + 1]; // path[0] is 0
};

// Writes a whole request into mad[256]: header, M_Key, path, and the attribute encoded from host (NULL: data
// 0, as a Get has it). Returns 0; -EINVAL if there are too many hops. 14.2.1
int mad_smp_build(uint8_t mad[MAD_SIZE], const struct mad_smp_to *to, uint8_t method, uint16_t attr_id,
                  uint32_t attr_mod, uint64_t tid, uint64_t m_key, const struct mad_attr *attr,
                  const void *host);

// The same for a PMA request (class 4); data at MAD_PM_DATA_OFFSET.
void mad_pm_build(uint8_t mad[MAD_SIZE], uint8_t method, uint16_t attr_id, uint32_t attr_mod, uint64_t tid,
                  const struct mad_attr *attr, const void *host);

// Status of an SMP or GMP without the D bit, whatever its class.
uint16_t mad_status(const struct mad_hdr *hdr);

// Whether a method is a response (TrapRepress counts as one: it answers a Trap).
bool mad_is_response(uint8_t method);

// Where a class's attribute data begins in a MAD and how long it may be; 0, 0 for classes that are not known
// here.
void mad_data_area(uint8_t mgmt_class, unsigned *ret_offset, unsigned *ret_size);

#endif
