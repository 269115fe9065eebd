// SPDX-License-Identifier: Apache-2.0
//
// Each row against libibmad's getter and setter for the same field: two tables written by different people.
//
// Not compared: port_counters.qp1_dropped and the HDR and NDR modes of PortInfoExtended, whose libibmad rows
// are written without its byte-order correction and therefore address the other half of their 32-bit word
// (its QP1Dropped reads VL15Dropped); test_codec_golden has them. Fields libibmad 44 does not have: the XDR
// speeds, trap details other than LIDs.
#include "mad/mad.h"
#include "codec_test.h"

#include <infiniband/mad.h>

// at: byte where the attribute begins in what libibmad counts from (trap details lie in a Notice)
struct map {
    const struct mad_attr *attr;
    const char *field;
    unsigned index;
    enum MAD_FIELDS ibmad;
    unsigned at;
};
#define M(attr, field, index, ibmad)                                                                         \
    {                                                                                                        \
        &mad_attr_##attr, field, index, ibmad, 0                                                             \
    }
#define M_AT(attr, field, index, ibmad, at)                                                                  \
    {                                                                                                        \
        &mad_attr_##attr, field, index, ibmad, at                                                            \
    }

static const struct map maps[] = {
    M(port_info, "m_key", 0, IB_PORT_MKEY_F),
    M(port_info, "gid_prefix", 0, IB_PORT_GID_PREFIX_F),
    M(port_info, "lid", 0, IB_PORT_LID_F),
    M(port_info, "master_sm_lid", 0, IB_PORT_SMLID_F),
    M(port_info, "capability_mask", 0, IB_PORT_CAPMASK_F),
    M(port_info, "diag_code", 0, IB_PORT_DIAG_F),
    M(port_info, "m_key_lease_period", 0, IB_PORT_MKEY_LEASE_F),
    M(port_info, "local_port_num", 0, IB_PORT_LOCAL_PORT_F),
    M(port_info, "link_width_enabled", 0, IB_PORT_LINK_WIDTH_ENABLED_F),
    M(port_info, "link_width_supported", 0, IB_PORT_LINK_WIDTH_SUPPORTED_F),
    M(port_info, "link_width_active", 0, IB_PORT_LINK_WIDTH_ACTIVE_F),
    M(port_info, "link_speed_supported", 0, IB_PORT_LINK_SPEED_SUPPORTED_F),
    M(port_info, "port_state", 0, IB_PORT_STATE_F),
    M(port_info, "port_physical_state", 0, IB_PORT_PHYS_STATE_F),
    M(port_info, "link_down_default_state", 0, IB_PORT_LINK_DOWN_DEF_F),
    M(port_info, "m_key_protect_bits", 0, IB_PORT_MKEY_PROT_BITS_F),
    M(port_info, "lmc", 0, IB_PORT_LMC_F),
    M(port_info, "link_speed_active", 0, IB_PORT_LINK_SPEED_ACTIVE_F),
    M(port_info, "link_speed_enabled", 0, IB_PORT_LINK_SPEED_ENABLED_F),
    M(port_info, "neighbor_mtu", 0, IB_PORT_NEIGHBOR_MTU_F),
    M(port_info, "master_sm_sl", 0, IB_PORT_SMSL_F),
    M(port_info, "vl_cap", 0, IB_PORT_VL_CAP_F),
    M(port_info, "init_type", 0, IB_PORT_INIT_TYPE_F),
    M(port_info, "vl_high_limit", 0, IB_PORT_VL_HIGH_LIMIT_F),
    M(port_info, "vl_arbitration_high_cap", 0, IB_PORT_VL_ARBITRATION_HIGH_CAP_F),
    M(port_info, "vl_arbitration_low_cap", 0, IB_PORT_VL_ARBITRATION_LOW_CAP_F),
    M(port_info, "init_type_reply", 0, IB_PORT_INIT_TYPE_REPLY_F),
    M(port_info, "mtu_cap", 0, IB_PORT_MTU_CAP_F),
    M(port_info, "vl_stall_count", 0, IB_PORT_VL_STALL_COUNT_F),
    M(port_info, "hoq_life", 0, IB_PORT_HOQ_LIFE_F),
    M(port_info, "operational_vls", 0, IB_PORT_OPER_VLS_F),
    M(port_info, "partition_enforcement_inbound", 0, IB_PORT_PART_EN_INB_F),
    M(port_info, "partition_enforcement_outbound", 0, IB_PORT_PART_EN_OUTB_F),
    M(port_info, "filter_raw_inbound", 0, IB_PORT_FILTER_RAW_INB_F),
    M(port_info, "filter_raw_outbound", 0, IB_PORT_FILTER_RAW_OUTB_F),
    M(port_info, "m_key_violations", 0, IB_PORT_MKEY_VIOL_F),
    M(port_info, "p_key_violations", 0, IB_PORT_PKEY_VIOL_F),
    M(port_info, "q_key_violations", 0, IB_PORT_QKEY_VIOL_F),
    M(port_info, "guid_cap", 0, IB_PORT_GUID_CAP_F),
    M(port_info, "client_reregister", 0, IB_PORT_CLIENT_REREG_F),
    M(port_info, "multicast_pkey_trap_suppression_enabled", 0, IB_PORT_MCAST_PKEY_SUPR_ENAB_F),
    M(port_info, "subnet_timeout", 0, IB_PORT_SUBN_TIMEOUT_F),
    M(port_info, "resp_time_value", 0, IB_PORT_RESP_TIME_VAL_F),
    M(port_info, "local_phy_errors", 0, IB_PORT_LOCAL_PHYS_ERR_F),
    M(port_info, "overrun_errors", 0, IB_PORT_OVERRUN_ERR_F),
    M(port_info, "max_credit_hint", 0, IB_PORT_MAX_CREDIT_HINT_F),
    M(port_info, "link_round_trip_latency", 0, IB_PORT_LINK_ROUND_TRIP_F),
    M(port_info, "capability_mask2", 0, IB_PORT_CAPMASK2_F),
    M(port_info, "link_speed_ext_active", 0, IB_PORT_LINK_SPEED_EXT_ACTIVE_F),
    M(port_info, "link_speed_ext_supported", 0, IB_PORT_LINK_SPEED_EXT_SUPPORTED_F),
    M(port_info, "link_speed_ext_enabled", 0, IB_PORT_LINK_SPEED_EXT_ENABLED_F),
    M(node_info, "base_version", 0, IB_NODE_BASE_VERS_F),
    M(node_info, "class_version", 0, IB_NODE_CLASS_VERS_F),
    M(node_info, "node_type", 0, IB_NODE_TYPE_F),
    M(node_info, "num_ports", 0, IB_NODE_NPORTS_F),
    M(node_info, "system_image_guid", 0, IB_NODE_SYSTEM_GUID_F),
    M(node_info, "node_guid", 0, IB_NODE_GUID_F),
    M(node_info, "port_guid", 0, IB_NODE_PORT_GUID_F),
    M(node_info, "partition_cap", 0, IB_NODE_PARTITION_CAP_F),
    M(node_info, "device_id", 0, IB_NODE_DEVID_F),
    M(node_info, "revision", 0, IB_NODE_REVISION_F),
    M(node_info, "local_port_num", 0, IB_NODE_LOCAL_PORT_F),
    M(node_info, "vendor_id", 0, IB_NODE_VENDORID_F),
    M(switch_info, "linear_fdb_cap", 0, IB_SW_LINEAR_FDB_CAP_F),
    M(switch_info, "random_fdb_cap", 0, IB_SW_RANDOM_FDB_CAP_F),
    M(switch_info, "multicast_fdb_cap", 0, IB_SW_MCAST_FDB_CAP_F),
    M(switch_info, "linear_fdb_top", 0, IB_SW_LINEAR_FDB_TOP_F),
    M(switch_info, "default_port", 0, IB_SW_DEF_PORT_F),
    M(switch_info, "default_multicast_primary_port", 0, IB_SW_DEF_MCAST_PRIM_F),
    M(switch_info, "default_multicast_not_primary_port", 0, IB_SW_DEF_MCAST_NOT_PRIM_F),
    M(switch_info, "life_time_value", 0, IB_SW_LIFE_TIME_F),
    M(switch_info, "port_state_change", 0, IB_SW_STATE_CHANGE_F),
    M(switch_info, "optimized_sltovl_mapping_programming", 0, IB_SW_OPT_SLTOVL_MAPPING_F),
    M(switch_info, "lids_per_port", 0, IB_SW_LIDS_PER_PORT_F),
    M(switch_info, "partition_enforcement_cap", 0, IB_SW_PARTITION_ENFORCE_CAP_F),
    M(switch_info, "inbound_enforcement_cap", 0, IB_SW_PARTITION_ENF_INB_F),
    M(switch_info, "outbound_enforcement_cap", 0, IB_SW_PARTITION_ENF_OUTB_F),
    M(switch_info, "filter_raw_inbound_cap", 0, IB_SW_FILTER_RAW_INB_F),
    M(switch_info, "filter_raw_outbound_cap", 0, IB_SW_FILTER_RAW_OUTB_F),
    M(switch_info, "enhanced_port0", 0, IB_SW_ENHANCED_PORT0_F),
    M(switch_info, "multicast_fdb_top", 0, IB_SW_MCAST_FDB_TOP_F),
    M(guid_info, "guid", 0, IB_GI_GUID0_F),
    M(guid_info, "guid", 1, IB_GI_GUID1_F),
    M(guid_info, "guid", 2, IB_GI_GUID2_F),
    M(guid_info, "guid", 3, IB_GI_GUID3_F),
    M(guid_info, "guid", 4, IB_GI_GUID4_F),
    M(guid_info, "guid", 5, IB_GI_GUID5_F),
    M(guid_info, "guid", 6, IB_GI_GUID6_F),
    M(guid_info, "guid", 7, IB_GI_GUID7_F),
    M(sm_info, "guid", 0, IB_SMINFO_GUID_F),
    M(sm_info, "sm_key", 0, IB_SMINFO_KEY_F),
    M(sm_info, "act_count", 0, IB_SMINFO_ACT_F),
    M(sm_info, "priority", 0, IB_SMINFO_PRIO_F),
    M(sm_info, "sm_state", 0, IB_SMINFO_STATE_F),
    M(notice, "is_generic", 0, IB_NOTICE_IS_GENERIC_F),
    M(notice, "type", 0, IB_NOTICE_TYPE_F),
    M(notice, "producer_type", 0, IB_NOTICE_PRODUCER_F),
    M(notice, "trap_number", 0, IB_NOTICE_TRAP_NUMBER_F),
    M(notice, "issuer_lid", 0, IB_NOTICE_ISSUER_LID_F),
    M(notice, "notice_toggle", 0, IB_NOTICE_TOGGLE_F),
    M(notice, "notice_count", 0, IB_NOTICE_COUNT_F),
    M(port_info_extended, "capability_mask", 0, IB_PORT_EXT_CAPMASK_F),
    M(port_info_extended, "fec_mode_active", 0, IB_PORT_EXT_FEC_MODE_ACTIVE_F),
    M(port_info_extended, "fdr_fec_mode_supported", 0, IB_PORT_EXT_FDR_FEC_MODE_SUPPORTED_F),
    M(port_info_extended, "fdr_fec_mode_enabled", 0, IB_PORT_EXT_FDR_FEC_MODE_ENABLED_F),
    M(port_info_extended, "edr_fec_mode_supported", 0, IB_PORT_EXT_EDR_FEC_MODE_SUPPORTED_F),
    M(port_info_extended, "edr_fec_mode_enabled", 0, IB_PORT_EXT_EDR_FEC_MODE_ENABLED_F),
    M(mlnx_ext_port_info, "state_change_enable", 0, IB_MLNX_EXT_PORT_STATE_CHG_ENABLE_F),
    M(mlnx_ext_port_info, "link_speed_supported", 0, IB_MLNX_EXT_PORT_LINK_SPEED_SUPPORTED_F),
    M(mlnx_ext_port_info, "link_speed_enabled", 0, IB_MLNX_EXT_PORT_LINK_SPEED_ENABLED_F),
    M(mlnx_ext_port_info, "link_speed_active", 0, IB_MLNX_EXT_PORT_LINK_SPEED_ACTIVE_F),
    M(class_port_info, "base_version", 0, IB_CPI_BASEVER_F),
    M(class_port_info, "class_version", 0, IB_CPI_CLASSVER_F),
    M(class_port_info, "capability_mask", 0, IB_CPI_CAPMASK_F),
    M(class_port_info, "capability_mask2", 0, IB_CPI_CAPMASK2_F),
    M(class_port_info, "resp_time_value", 0, IB_CPI_RESP_TIME_VALUE_F),
    M(class_port_info, "redirect_tc", 0, IB_CPI_REDIRECT_TC_F),
    M(class_port_info, "redirect_sl", 0, IB_CPI_REDIRECT_SL_F),
    M(class_port_info, "redirect_fl", 0, IB_CPI_REDIRECT_FL_F),
    M(class_port_info, "redirect_lid", 0, IB_CPI_REDIRECT_LID_F),
    M(class_port_info, "redirect_p_key", 0, IB_CPI_REDIRECT_PKEY_F),
    M(class_port_info, "redirect_qp", 0, IB_CPI_REDIRECT_QP_F),
    M(class_port_info, "redirect_q_key", 0, IB_CPI_REDIRECT_QKEY_F),
    M(class_port_info, "trap_tc", 0, IB_CPI_TRAP_TC_F),
    M(class_port_info, "trap_sl", 0, IB_CPI_TRAP_SL_F),
    M(class_port_info, "trap_fl", 0, IB_CPI_TRAP_FL_F),
    M(class_port_info, "trap_lid", 0, IB_CPI_TRAP_LID_F),
    M(class_port_info, "trap_p_key", 0, IB_CPI_TRAP_PKEY_F),
    M(class_port_info, "trap_hl", 0, IB_CPI_TRAP_HL_F),
    M(class_port_info, "trap_qp", 0, IB_CPI_TRAP_QP_F),
    M(class_port_info, "trap_q_key", 0, IB_CPI_TRAP_QKEY_F),
    M(port_counters, "port_select", 0, IB_PC_PORT_SELECT_F),
    M(port_counters, "counter_select", 0, IB_PC_COUNTER_SELECT_F),
    M(port_counters, "symbol_error_counter", 0, IB_PC_ERR_SYM_F),
    M(port_counters, "link_error_recovery_counter", 0, IB_PC_LINK_RECOVERS_F),
    M(port_counters, "link_downed_counter", 0, IB_PC_LINK_DOWNED_F),
    M(port_counters, "port_rcv_errors", 0, IB_PC_ERR_RCV_F),
    M(port_counters, "port_rcv_remote_physical_errors", 0, IB_PC_ERR_PHYSRCV_F),
    M(port_counters, "port_rcv_switch_relay_errors", 0, IB_PC_ERR_SWITCH_REL_F),
    M(port_counters, "port_xmit_discards", 0, IB_PC_XMT_DISCARDS_F),
    M(port_counters, "port_xmit_constraint_errors", 0, IB_PC_ERR_XMTCONSTR_F),
    M(port_counters, "port_rcv_constraint_errors", 0, IB_PC_ERR_RCVCONSTR_F),
    M(port_counters, "counter_select2", 0, IB_PC_COUNTER_SELECT2_F),
    M(port_counters, "local_link_integrity_errors", 0, IB_PC_ERR_LOCALINTEG_F),
    M(port_counters, "excessive_buffer_overrun_errors", 0, IB_PC_ERR_EXCESS_OVR_F),
    M(port_counters, "vl15_dropped", 0, IB_PC_VL15_DROPPED_F),
    M(port_counters, "port_xmit_data", 0, IB_PC_XMT_BYTES_F),
    M(port_counters, "port_rcv_data", 0, IB_PC_RCV_BYTES_F),
    M(port_counters, "port_xmit_pkts", 0, IB_PC_XMT_PKTS_F),
    M(port_counters, "port_rcv_pkts", 0, IB_PC_RCV_PKTS_F),
    M(port_counters, "port_xmit_wait", 0, IB_PC_XMT_WAIT_F),
    M(port_counters_extended, "port_select", 0, IB_PC_EXT_PORT_SELECT_F),
    M(port_counters_extended, "counter_select", 0, IB_PC_EXT_COUNTER_SELECT_F),
    M(port_counters_extended, "counter_select2", 0, IB_PC_EXT_COUNTER_SELECT2_F),
    M(port_counters_extended, "port_xmit_data", 0, IB_PC_EXT_XMT_BYTES_F),
    M(port_counters_extended, "port_rcv_data", 0, IB_PC_EXT_RCV_BYTES_F),
    M(port_counters_extended, "port_xmit_pkts", 0, IB_PC_EXT_XMT_PKTS_F),
    M(port_counters_extended, "port_rcv_pkts", 0, IB_PC_EXT_RCV_PKTS_F),
    M(port_counters_extended, "port_unicast_xmit_pkts", 0, IB_PC_EXT_XMT_UPKTS_F),
    M(port_counters_extended, "port_unicast_rcv_pkts", 0, IB_PC_EXT_RCV_UPKTS_F),
    M(port_counters_extended, "port_multicast_xmit_pkts", 0, IB_PC_EXT_XMT_MPKTS_F),
    M(port_counters_extended, "port_multicast_rcv_pkts", 0, IB_PC_EXT_RCV_MPKTS_F),
    M(port_counters_extended, "symbol_error_counter", 0, IB_PC_EXT_ERR_SYM_F),
    M(port_counters_extended, "link_error_recovery_counter", 0, IB_PC_EXT_LINK_RECOVERS_F),
    M(port_counters_extended, "link_downed_counter", 0, IB_PC_EXT_LINK_DOWNED_F),
    M(port_counters_extended, "port_rcv_errors", 0, IB_PC_EXT_ERR_RCV_F),
    M(port_counters_extended, "port_rcv_remote_physical_errors", 0, IB_PC_EXT_ERR_PHYSRCV_F),
    M(port_counters_extended, "port_rcv_switch_relay_errors", 0, IB_PC_EXT_ERR_SWITCH_REL_F),
    M(port_counters_extended, "port_xmit_discards", 0, IB_PC_EXT_XMT_DISCARDS_F),
    M(port_counters_extended, "port_xmit_constraint_errors", 0, IB_PC_EXT_ERR_XMTCONSTR_F),
    M(port_counters_extended, "port_rcv_constraint_errors", 0, IB_PC_EXT_ERR_RCVCONSTR_F),
    M(port_counters_extended, "local_link_integrity_errors", 0, IB_PC_EXT_ERR_LOCALINTEG_F),
    M(port_counters_extended, "excessive_buffer_overrun_errors", 0, IB_PC_EXT_ERR_EXCESS_OVR_F),
    M(port_counters_extended, "vl15_dropped", 0, IB_PC_EXT_VL15_DROPPED_F),
    M(port_counters_extended, "port_xmit_wait", 0, IB_PC_EXT_XMT_WAIT_F),
    M(port_counters_extended, "qp1_dropped", 0, IB_PC_EXT_QP1_DROP_F),
    M(port_rcv_error_details, "port_select", 0, IB_PC_PORT_SELECT_F),
    M(port_rcv_error_details, "counter_select", 0, IB_PC_COUNTER_SELECT_F),
    M(port_rcv_error_details, "port_local_physical_errors", 0, IB_PC_RCV_LOCAL_PHY_ERR_F),
    M(port_rcv_error_details, "port_malformed_packet_errors", 0, IB_PC_RCV_MALFORMED_PKT_ERR_F),
    M(port_rcv_error_details, "port_buffer_overrun_errors", 0, IB_PC_RCV_BUF_OVR_ERR_F),
    M(port_rcv_error_details, "port_dlid_mapping_errors", 0, IB_PC_RCV_DLID_MAP_ERR_F),
    M(port_rcv_error_details, "port_vl_mapping_errors", 0, IB_PC_RCV_VL_MAP_ERR_F),
    M(port_rcv_error_details, "port_looping_errors", 0, IB_PC_RCV_LOOPING_ERR_F),
    M(port_xmit_discard_details, "port_select", 0, IB_PC_PORT_SELECT_F),
    M(port_xmit_discard_details, "counter_select", 0, IB_PC_COUNTER_SELECT_F),
    M(port_xmit_discard_details, "port_inactive_discards", 0, IB_PC_XMT_INACT_DISC_F),
    M(port_xmit_discard_details, "port_neighbor_mtu_discards", 0, IB_PC_XMT_NEIGH_MTU_DISC_F),
    M(port_xmit_discard_details, "port_sw_lifetime_limit_discards", 0, IB_PC_XMT_SW_LIFE_DISC_F),
    M(port_xmit_discard_details, "port_sw_hoq_lifetime_limit_discards", 0, IB_PC_XMT_SW_HOL_DISC_F),
    M(port_vl_xmit_wait_counters, "port_select", 0, IB_PC_PORT_SELECT_F),
    M(port_vl_xmit_wait_counters, "counter_select", 0, IB_PC_COUNTER_SELECT_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 0, IB_PC_PORT_VL_XMIT_WAIT0_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 1, IB_PC_PORT_VL_XMIT_WAIT1_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 2, IB_PC_PORT_VL_XMIT_WAIT2_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 3, IB_PC_PORT_VL_XMIT_WAIT3_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 4, IB_PC_PORT_VL_XMIT_WAIT4_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 5, IB_PC_PORT_VL_XMIT_WAIT5_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 6, IB_PC_PORT_VL_XMIT_WAIT6_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 7, IB_PC_PORT_VL_XMIT_WAIT7_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 8, IB_PC_PORT_VL_XMIT_WAIT8_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 9, IB_PC_PORT_VL_XMIT_WAIT9_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 10, IB_PC_PORT_VL_XMIT_WAIT10_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 11, IB_PC_PORT_VL_XMIT_WAIT11_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 12, IB_PC_PORT_VL_XMIT_WAIT12_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 13, IB_PC_PORT_VL_XMIT_WAIT13_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 14, IB_PC_PORT_VL_XMIT_WAIT14_F),
    M(port_vl_xmit_wait_counters, "port_vl_xmit_wait", 15, IB_PC_PORT_VL_XMIT_WAIT15_F),
    M(port_extended_speeds_counters, "port_select", 0, IB_PESC_PORT_SELECT_F),
    M(port_extended_speeds_counters, "counter_select", 0, IB_PESC_COUNTER_SELECT_F),
    M(port_extended_speeds_counters, "sync_header_error_counter", 0, IB_PESC_SYNC_HDR_ERR_CTR_F),
    M(port_extended_speeds_counters, "unknown_block_counter", 0, IB_PESC_UNK_BLOCK_CTR_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 0, IB_PESC_ERR_DET_CTR_LANE0_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 1, IB_PESC_ERR_DET_CTR_LANE1_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 2, IB_PESC_ERR_DET_CTR_LANE2_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 3, IB_PESC_ERR_DET_CTR_LANE3_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 4, IB_PESC_ERR_DET_CTR_LANE4_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 5, IB_PESC_ERR_DET_CTR_LANE5_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 6, IB_PESC_ERR_DET_CTR_LANE6_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 7, IB_PESC_ERR_DET_CTR_LANE7_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 8, IB_PESC_ERR_DET_CTR_LANE8_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 9, IB_PESC_ERR_DET_CTR_LANE9_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 10, IB_PESC_ERR_DET_CTR_LANE10_F),
    M(port_extended_speeds_counters, "error_detection_counter_lane", 11, IB_PESC_ERR_DET_CTR_LANE11_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 0,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE0_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 1,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE1_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 2,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE2_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 3,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE3_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 4,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE4_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 5,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE5_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 6,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE6_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 7,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE7_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 8,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE8_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 9,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE9_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 10,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE10_F),
    M(port_extended_speeds_counters, "fec_correctable_block_counter_lane", 11,
      IB_PESC_FEC_CORR_BLOCK_CTR_LANE11_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 0,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE0_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 1,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE1_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 2,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE2_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 3,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE3_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 4,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE4_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 5,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE5_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 6,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE6_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 7,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE7_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 8,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE8_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 9,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE9_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 10,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE10_F),
    M(port_extended_speeds_counters, "fec_uncorrectable_block_counter_lane", 11,
      IB_PESC_FEC_UNCORR_BLOCK_CTR_LANE11_F),
    M(port_extended_speeds_counters, "port_fec_correctable_block_counter", 0,
      IB_PESC_PORT_FEC_CORR_BLOCK_CTR_F),
    M(port_extended_speeds_counters, "port_fec_uncorrectable_block_counter", 0,
      IB_PESC_PORT_FEC_UNCORR_BLOCK_CTR_F),
    M(port_extended_speeds_counters, "port_fec_corrected_symbol_counter", 0,
      IB_PESC_PORT_FEC_CORR_SYMBOL_CTR_F),
    M(hdr, "base_version", 0, IB_MAD_BASEVER_F),
    M(hdr, "mgmt_class", 0, IB_MAD_MGMTCLASS_F),
    M(hdr, "class_version", 0, IB_MAD_CLASSVER_F),
    M(hdr, "tid", 0, IB_MAD_TRID_F),
    M(hdr, "attr_id", 0, IB_MAD_ATTRID_F),
    M(hdr, "attr_mod", 0, IB_MAD_ATTRMOD_F),
    M(smp, "base_version", 0, IB_MAD_BASEVER_F),
    M(smp, "mgmt_class", 0, IB_MAD_MGMTCLASS_F),
    M(smp, "class_version", 0, IB_MAD_CLASSVER_F),
    M(smp, "tid", 0, IB_MAD_TRID_F),
    M(smp, "attr_id", 0, IB_MAD_ATTRID_F),
    M(smp, "attr_mod", 0, IB_MAD_ATTRMOD_F),
    M(sa_hdr, "base_version", 0, IB_MAD_BASEVER_F),
    M(sa_hdr, "mgmt_class", 0, IB_MAD_MGMTCLASS_F),
    M(sa_hdr, "class_version", 0, IB_MAD_CLASSVER_F),
    M(sa_hdr, "tid", 0, IB_MAD_TRID_F),
    M(sa_hdr, "attr_id", 0, IB_MAD_ATTRID_F),
    M(sa_hdr, "attr_mod", 0, IB_MAD_ATTRMOD_F),
    M(hdr, "status", 0, IB_MAD_STATUS_F),
    M(sa_hdr, "status", 0, IB_MAD_STATUS_F),
    M(smp, "status", 0, IB_DRSMP_STATUS_F),
    M(smp, "direction", 0, IB_DRSMP_DIRECTION_F),
    M(smp, "hop_count", 0, IB_DRSMP_HOPCNT_F),
    M(smp, "hop_pointer", 0, IB_DRSMP_HOPPTR_F),
    M(smp, "m_key", 0, IB_MAD_MKEY_F),
    M(smp, "dr_slid", 0, IB_DRSMP_DRSLID_F),
    M(smp, "dr_dlid", 0, IB_DRSMP_DRDLID_F),
    M(sa_hdr, "rmpp_version", 0, IB_SA_RMPP_VERS_F),
    M(sa_hdr, "rmpp_type", 0, IB_SA_RMPP_TYPE_F),
    M(sa_hdr, "rmpp_resp_time", 0, IB_SA_RMPP_RESP_F),
    M(sa_hdr, "rmpp_flags", 0, IB_SA_RMPP_FLAGS_F),
    M(sa_hdr, "rmpp_status", 0, IB_SA_RMPP_STATUS_F),
    M(sa_hdr, "segment_number", 0, IB_SA_RMPP_SEGNUM_F),
    M(sa_hdr, "payload_length", 0, IB_SA_RMPP_LEN_F),
    M(sa_hdr, "sm_key", 0, IB_SA_MKEY_F),
    M(sa_hdr, "attribute_offset", 0, IB_SA_ATTROFFS_F),
    M(sa_hdr, "component_mask", 0, IB_SA_COMPMASK_F),
    M_AT(trap_128, "lid", 0, IB_NOTICE_DATA_LID_F, 10),
    M_AT(trap_144, "lid", 0, IB_NOTICE_DATA_144_LID_F, 10),
    M_AT(trap_144, "capability_mask", 0, IB_NOTICE_DATA_144_CAPMASK_F, 10),
    M(path_record, "dlid", 0, IB_SA_PR_DLID_F),
    M(path_record, "slid", 0, IB_SA_PR_SLID_F),
    M(path_record, "numb_path", 0, IB_SA_PR_NPATH_F),
    M(path_record, "sl", 0, IB_SA_PR_SL_F),
    M(mc_member_record, "q_key", 0, IB_SA_MCM_QKEY_F),
    M(mc_member_record, "mlid", 0, IB_SA_MCM_MLID_F),
    M(mc_member_record, "mtu", 0, IB_SA_MCM_MTU_F),
    M(mc_member_record, "tclass", 0, IB_SA_MCM_TCLASS_F),
    M(mc_member_record, "p_key", 0, IB_SA_MCM_PKEY_F),
    M(mc_member_record, "rate", 0, IB_SA_MCM_RATE_F),
    M(mc_member_record, "sl", 0, IB_SA_MCM_SL_F),
    M(mc_member_record, "flow_label", 0, IB_SA_MCM_FLOW_LABEL_F),
    M(mc_member_record, "join_state", 0, IB_SA_MCM_JOIN_STATE_F),
    M(mc_member_record, "proxy_join", 0, IB_SA_MCM_PROXY_JOIN_F),
    M(service_record, "service_id", 0, IB_SA_SR_ID_F),
    M(service_record, "service_p_key", 0, IB_SA_SR_PKEY_F),
    M(service_record, "service_lease", 0, IB_SA_SR_LEASE_F),
    M(guid_info_record, "lid", 0, IB_SA_GIR_LID_F),
    M(guid_info_record, "block_num", 0, IB_SA_GIR_BLOCKNUM_F),
    M(guid_info_record, "guid", 0, IB_SA_GIR_GUID0_F),
    M(guid_info_record, "guid", 7, IB_SA_GIR_GUID7_F),
};

static void each_number(void **state)
{
    uint64_t seed = 2;
    for (unsigned n = 0; n < sizeof(maps) / sizeof(maps[0]); n++) {
        const struct map *m = &maps[n];
        const struct mad_field *f = mad_field_find(m->attr, m->field);
        assert_non_null(f);
        assert_true(m->index < f->count);
        for (unsigned round = 0; round < 50; round++) {
            uint8_t wire[512], back[512], host[512];
            test_fill(&seed, wire, sizeof(wire));
            mad_attr_decode(m->attr, wire + m->at, host);
            uint64_t ours = mad_field_get(f, host, m->index);
            uint64_t theirs =
                f->width == 64 ? mad_get_field64(wire, 0, m->ibmad) : mad_get_field(wire, 0, m->ibmad);
            if (ours != theirs)
                fail_msg("%s.%s[%u]: %#llx, libibmad %#llx", m->attr->name, m->field, m->index,
                         (unsigned long long)ours, (unsigned long long)theirs);
            // the setter into our own encoding: nothing else may move
            mad_attr_encode(m->attr, host, wire + m->at);
            memcpy(back, wire, sizeof(back));
            uint64_t v = test_random(&seed);
            if (f->width < 64)
                v &= ((uint64_t)1 << f->width) - 1;
            mad_field_set(f, host, m->index, v);
            mad_attr_encode(m->attr, host, wire + m->at);
            if (f->width == 64)
                mad_set_field64(back, 0, m->ibmad, v);
            else
                mad_set_field(back, 0, m->ibmad, (uint32_t)v);
            assert_memory_equal(wire, back, sizeof(wire));
        }
    }
}

// Of these libibmad knows nothing; test_codec_golden has them.
static bool is_adaptive(uint16_t id)
{
    return id == MAD_ATTR_GENERAL_INFO || id == MAD_ATTR_ADAPTIVE_ROUTING_INFO ||
           id == MAD_ATTR_ADAPTIVE_ROUTING_GROUP_TABLE || id == MAD_ATTR_ADAPTIVE_ROUTING_LFT;
}

// Every number of the standard's attributes is in the list above unless named here, so that a new row cannot
// be forgotten.
static void no_row_forgotten(void **state)
{
    static const char *const without[] = {
        "PortInfo.link_speed_ext_active2",
        "PortInfo.link_speed_ext_supported2",
        "PortInfo.link_speed_ext_enabled2",
        "PortCounters.qp1_dropped",
        "PortInfoExtended.hdr_fec_mode_supported",
        "PortInfoExtended.hdr_fec_mode_enabled",
        "PortInfoExtended.ndr_fec_mode_supported",
        "PortInfoExtended.ndr_fec_mode_enabled",
        "MAD.method",
        "MAD.class_specific",
        "SMP.method",
        "SA.method",
        "SA.class_specific",
    };
    const struct mad_attr *attr;
    for (unsigned n = 0; (attr = mad_attr_at(n)); n++) {
        if (strncmp(attr->name, "Trap", 4) == 0 || attr->mgmt_class == MAD_CLASS_SA || is_adaptive(attr->id))
            continue;
        for (unsigned i = 0; i < attr->nfields; i++) {
            const struct mad_field *f = &attr->fields[i];
            char name[128];
            bool found = !f->name || f->is_array; // arrays: below, and in test_codec_golden
            for (unsigned k = 0; !found && k < sizeof(maps) / sizeof(maps[0]); k++)
                found = maps[k].attr == attr && strcmp(maps[k].field, f->name) == 0;
            snprintf(name, sizeof(name), "%s.%s", attr->name, f->name ? f->name : "");
            for (unsigned k = 0; !found && k < sizeof(without) / sizeof(without[0]); k++)
                found = strcmp(without[k], name) == 0;
            if (!found)
                fail_msg("%s is not compared", name);
        }
    }
}

// libibmad splits the method byte
static void method_byte(void **state)
{
    uint8_t mad[256] = {0};
    struct mad_hdr h = {.method = MAD_METHOD_GET_RESP};
    mad_hdr_encode(&h, mad);
    assert_int_equal(mad_get_field(mad, 0, IB_MAD_METHOD_F), 1);
    assert_int_equal(mad_get_field(mad, 0, IB_MAD_RESPONSE_F), 1);
}

static void byte_arrays(void **state)
{
    static const struct {
        const struct mad_attr *attr;
        const char *field;
        enum MAD_FIELDS ibmad;
    } arrays[] = {{&mad_attr_node_description, "node_string", IB_NODE_DESC_F},
                  {&mad_attr_linear_forwarding_table, "port", IB_LINEAR_FORW_TBL_F},
                  {&mad_attr_notice, "data_details", IB_NOTICE_DATA_DETAILS_F},
                  {&mad_attr_class_port_info, "redirect_gid", IB_CPI_REDIRECT_GID_F},
                  {&mad_attr_class_port_info, "trap_gid", IB_CPI_TRAP_GID_F},
                  {&mad_attr_smp, "initial_path", IB_DRSMP_PATH_F},
                  {&mad_attr_smp, "return_path", IB_DRSMP_RPATH_F}};
    uint64_t seed = 3;
    for (unsigned n = 0; n < sizeof(arrays) / sizeof(arrays[0]); n++) {
        uint8_t wire[256], host[512], theirs[256];
        const struct mad_field *f = mad_field_find(arrays[n].attr, arrays[n].field);
        test_fill(&seed, wire, sizeof(wire));
        mad_attr_decode(arrays[n].attr, wire, host);
        mad_get_array(wire, 0, arrays[n].ibmad, theirs);
        assert_memory_equal(host + f->offset, theirs, f->count);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_number),
        cmocka_unit_test(no_row_forgotten),
        cmocka_unit_test(method_byte),
        cmocka_unit_test(byte_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
