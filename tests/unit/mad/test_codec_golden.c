// SPDX-License-Identifier: Apache-2.0
//
// Golden vectors: bytes and meaning from programs that do not share our tables. A field that is not named
// must be 0.
//
// ibsim: bytes by smpdump or perfquery's debug dump, meaning by smpquery, perfquery, sminfo, saquery, ibroute
// (infiniband-diags 44 on ibsim 0.10 and opensm 3.3.23, a net of two switches and three adapters). opensm:
// ib_types.h of opensm 3.3.24, member sizes added up by hand. There is none for SwitchPortStateTable (see its
// .def).
#include "mad/adaptive.h"
#include "mad/mad.h"
#include "codec_test.h"

#include <stdio.h>
#include <stdlib.h>

// want: "field=number field[index]=number field:text", blanks between. Numbers as strtoull base 0 takes them.
static void expect(const struct mad_attr *attr, const char *hex, const char *want)
{
    uint8_t wire[256], again[256], host[512] = {0};
    test_hex(hex, wire, sizeof(wire));
    mad_attr_decode(attr, wire, host);
    uint8_t named[64][256] = {{0}};
    char copy[2048], *save = NULL;
    assert_true(strlen(want) < sizeof(copy));
    strcpy(copy, want);
    for (char *p = strtok_r(copy, " \n", &save); p; p = strtok_r(NULL, " \n", &save)) {
        char *value = strpbrk(p, "=:"), mode = *value, *index;
        *value++ = 0;
        unsigned i = 0;
        if ((index = strchr(p, '['))) {
            *index++ = 0;
            i = (unsigned)strtoul(index, NULL, 10);
        }
        const struct mad_field *f = mad_field_find(attr, p);
        if (!f)
            fail_msg("%s has no field %s", attr->name, p);
        assert_true(i < f->count);
        if (mode == '=') {
            if (mad_field_get(f, host, i) != strtoull(value, NULL, 0))
                fail_msg("%s.%s[%u] is %#llx, expected %s", attr->name, p, i,
                         (unsigned long long)mad_field_get(f, host, i), value);
            named[f - attr->fields][i] = 1;
        } else {
            char text[256];
            mad_field_text(f, host, i, text, sizeof(text));
            assert_string_equal(text, value);
            memset(named[f - attr->fields], 1, sizeof(named[0]));
        }
    }
    for (unsigned k = 0; k < attr->nfields; k++)
        for (unsigned i = 0; attr->fields[k].name && i < attr->fields[k].count; i++)
            if (!named[k][i] && mad_field_get(&attr->fields[k], host, i) != 0)
                fail_msg("%s.%s[%u] is not 0", attr->name, attr->fields[k].name, i);
    mad_attr_encode(attr, host, again);
    assert_memory_equal(wire, again, attr->wire_bytes);
}

// ibsim: smpdump and smpquery nodedesc
static void node_description(void **state)
{
    uint8_t wire[64];
    test_hex("676f6c64656e206c656166", wire, sizeof(wire));
    struct mad_node_description nd;
    char text[65];
    mad_node_description_decode(wire, &nd);
    assert_string_equal(mad_node_string(&nd, text), "golden leaf");
}

// ibsim: smpdump and smpquery nodeinfo, an adapter and a switch
static void node_info(void **state)
{
    expect(
        &mad_attr_node_info,
        "0101 0101 0000 0000 0010 0000 0000 0000 0010 0000 0000 0000 0010 0001 0040 d2f0 0000 00a1 0100 0000",
        "base_version=1 class_version=1 node_type=1 num_ports=1 system_image_guid=0x100000 "
        "node_guid=0x100000 "
        "port_guid=0x100001 partition_cap=64 device_id=0xd2f0 revision=0xa1 local_port_num=1");
    expect(
        &mad_attr_node_info,
        "0101 0208 0000 0000 0020 0000 0000 0000 0020 0000 0000 0000 0020 0000 0008 d2f0 0000 00a1 0000 02c9",
        "base_version=1 class_version=1 node_type=2 num_ports=8 system_image_guid=0x200000 "
        "node_guid=0x200000 "
        "port_guid=0x200000 partition_cap=8 device_id=0xd2f0 revision=0xa1 vendor_id=0x2c9");
}

// ibsim: smpdump and smpquery switchinfo; the second has no enhanced port 0
static void switch_info(void **state)
{
    expect(&mad_attr_switch_info, "7800 0000 0400 0005 0000 0090 0000 0040 3800",
           "linear_fdb_cap=30720 multicast_fdb_cap=1024 linear_fdb_top=5 life_time_value=18 "
           "partition_enforcement_cap=64 "
           "filter_raw_inbound_cap=1 filter_raw_outbound_cap=1 enhanced_port0=1");
    expect(&mad_attr_switch_info, "7800 0000 0400 0005 0000 0090 0000 0040 3000",
           "linear_fdb_cap=30720 multicast_fdb_cap=1024 linear_fdb_top=5 life_time_value=18 "
           "partition_enforcement_cap=64 "
           "filter_raw_inbound_cap=1 filter_raw_outbound_cap=1");
    // opensm: ib_switch_info_t and its accessors (def_port, def_mcast_pri_port, def_mcast_not_port,
    // life_state: 5 bits life, bit 2 change, bits 1:0 optimized SL2VL; lids_per_port, enforce_cap, flags from
    // bit 7 down, resvd, mcast_top)
    expect(&mad_attr_switch_info, "0001 0002 0003 0004 05 06 07 97 0009 000a c0 00 c0ff",
           "linear_fdb_cap=1 random_fdb_cap=2 multicast_fdb_cap=3 linear_fdb_top=4 default_port=5 "
           "default_multicast_primary_port=6 default_multicast_not_primary_port=7 life_time_value=18 "
           "port_state_change=1 "
           "optimized_sltovl_mapping_programming=3 lids_per_port=9 partition_enforcement_cap=10 "
           "inbound_enforcement_cap=1 "
           "outbound_enforcement_cap=1 multicast_fdb_top=0xc0ff");
}

// ibsim: smpdump and smpquery portinfo of an adapter and of a switch port
static void port_info(void **state)
{
    expect(&mad_attr_port_info,
           "0000 0000 0000 0000 fe80 0000 0000 0000 0001 0001 0050 c048 0000 0ff9 0102 1f02"
           "7452 0047 4040 0008 0804 e040 0000 0000 0000 201f 0000 0000 0000 0000 0030 4707",
           "gid_prefix=0xfe80000000000000 lid=1 master_sm_lid=1 capability_mask=0x50c048 "
           "m_key_lease_period=4089 "
           "local_port_num=1 link_width_enabled=2 link_width_supported=0x1f link_width_active=2 "
           "link_speed_supported=7 "
           "port_state=4 port_physical_state=5 link_down_default_state=2 link_speed_active=4 "
           "link_speed_enabled=7 "
           "neighbor_mtu=4 vl_cap=4 vl_arbitration_high_cap=8 vl_arbitration_low_cap=8 mtu_cap=4 "
           "vl_stall_count=7 "
           "operational_vls=4 guid_cap=32 subnet_timeout=31 capability_mask2=0x30 link_speed_ext_active=4 "
           "link_speed_ext_supported=7 link_speed_ext_enabled=7");
    expect(
        &mad_attr_port_info,
        "0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0002 1f02"
        "7452 0047 4040 0008 0804 f240 0000 0000 0000 0000 0000 0000 0000 0000 0000 4707",
        "link_width_enabled=2 link_width_supported=0x1f link_width_active=2 link_speed_supported=7 "
        "port_state=4 "
        "port_physical_state=5 link_down_default_state=2 link_speed_active=4 link_speed_enabled=7 "
        "neighbor_mtu=4 "
        "vl_cap=4 vl_arbitration_high_cap=8 vl_arbitration_low_cap=8 mtu_cap=4 vl_stall_count=7 hoq_life=18 "
        "operational_vls=4 link_speed_ext_active=4 link_speed_ext_supported=7 link_speed_ext_enabled=7");
}

// opensm: ib_port_info_t and its accessors, for what ibsim leaves 0. The three XDR fields: rdma-core's
// libibmad (bits 449-455).
static void port_info_rest(void **state)
{
    expect(
        &mad_attr_port_info,
        "0102030405060708 0000000000000000 0000 0000 00000000 1122 0000 00 00 00 00 00 00 c5 00"
        "0a 0b 15 16 17 c0 00 0f 3344 5566 7788 00 e0 13 89 99aa 00bbccdd 0000 00 1e",
        "m_key=0x0102030405060708 diag_code=0x1122 m_key_protect_bits=3 lmc=5 master_sm_sl=10 init_type=11 "
        "vl_high_limit=0x15 vl_arbitration_high_cap=0x16 vl_arbitration_low_cap=0x17 init_type_reply=12 "
        "partition_enforcement_inbound=1 "
        "partition_enforcement_outbound=1 "
        "filter_raw_inbound=1 filter_raw_outbound=1 m_key_violations=0x3344 p_key_violations=0x5566 "
        "q_key_violations=0x7788 client_reregister=1 multicast_pkey_trap_suppression_enabled=3 "
        "resp_time_value=19 "
        "local_phy_errors=8 overrun_errors=9 max_credit_hint=0x99aa link_round_trip_latency=0xbbccdd "
        "link_speed_ext_enabled=30");
    uint8_t wire[64] = {[56] = 0x29}; // 01 01 001 behind the reserved bit
    struct mad_port_info pi;
    mad_port_info_decode(wire, &pi);
    assert_int_equal(pi.link_speed_ext_active2, 1);
    assert_int_equal(pi.link_speed_ext_supported2, 1);
    assert_int_equal(pi.link_speed_ext_enabled2, 1);
    assert_int_equal(mad_speed_ext_active(&pi), MAD_SPEED_EXT_XDR);
    assert_int_equal(mad_speed_ext_supported(&pi), MAD_SPEED_EXT_XDR);
}

// ibsim: smpdump with smpquery guidinfo, pkeys, sl2vl, vlarb; MFT block written as bytes and read by ibroute
// -M, LFT by ibroute
static void tables(void **state)
{
    expect(&mad_attr_guid_info, "0000 0000 0010 0001", "guid[0]=0x100001");
    expect(&mad_attr_p_key_table, "ffff", "p_key[0]=0xffff");
    expect(&mad_attr_sltovl_mapping_table, "0123 4567 89ab cde7",
           "vl[1]=1 vl[2]=2 vl[3]=3 vl[4]=4 vl[5]=5 vl[6]=6 vl[7]=7 vl[8]=8 vl[9]=9 vl[10]=10 vl[11]=11 "
           "vl[12]=12 vl[13]=13 "
           "vl[14]=14 vl[15]=7");
    expect(&mad_attr_vl_arbitration_table, "0000 0104 0204 0304 0404 0504 0604 0704",
           "vl[1]=1 vl[2]=2 vl[3]=3 vl[4]=4 vl[5]=5 vl[6]=6 vl[7]=7 weight[1]=4 weight[2]=4 weight[3]=4 "
           "weight[4]=4 "
           "weight[5]=4 weight[6]=4 weight[7]=4");
    char lft[129] = "ff0100030203"; // LIDs 1-5 -> ports 1, 0, 3, 2, 3; the rest drop
    for (unsigned i = 12; i < 128; i++)
        lft[i] = 'f';
    uint8_t wire[64];
    struct mad_linear_forwarding_table t;
    test_hex(lft, wire, sizeof(wire));
    mad_linear_forwarding_table_decode(wire, &t);
    static const uint8_t ports[] = {255, 1, 0, 3, 2, 3, 255};
    assert_memory_equal(t.port, ports, sizeof(ports));
    // 0xc000: ports 0, 1, 3; 0xc003: 1, 2, 8; 0xc01f: 4
    expect(&mad_attr_multicast_forwarding_table,
           "000b 0000 0000 0106 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000"
           "0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0010",
           "port_mask[0]=0x00b port_mask[3]=0x106 port_mask[31]=0x010");
}

// ibsim: smpdump of a running opensm -p 9 with sminfo's "activity count 79 (one read before) priority 9 state
// 3"; the key by --smkey
static void sm_info(void **state)
{
    expect(&mad_attr_sm_info, "0000 0000 0010 0001 0000 0000 0000 1234 0000 0050 93",
           "guid=0x100001 sm_key=0x1234 act_count=80 priority=9 sm_state=3");
}

// ibsim: traps as they came from the wire; 144 after issm was opened (CapabilityMask 0x50c048 gained IsSM),
// 128 after Unlink of the switch with LID 3
static void notices(void **state)
{
    uint8_t wire[64];
    struct mad_notice n;
    test_hex("8400 0001 0090 0001 0000 0000 0001 0000 0050 c04a", wire, sizeof(wire));
    mad_notice_decode(wire, &n);
    assert_int_equal(n.is_generic, 1);
    assert_int_equal(n.type, MAD_NOTICE_INFORMATIONAL);
    assert_int_equal(n.producer_type, MAD_PRODUCER_CA);
    assert_int_equal(n.trap_number, 144);
    assert_int_equal(n.issuer_lid, 1);
    struct mad_trap_144 changes;
    mad_trap_144_decode(n.data_details, &changes);
    assert_int_equal(changes.lid, 1);
    assert_int_equal(changes.capability_mask, 0x50c04a);
    test_hex("8100 0002 0080 0003 0000 0003", wire, sizeof(wire));
    mad_notice_decode(wire, &n);
    assert_int_equal(n.type, MAD_NOTICE_URGENT);
    assert_int_equal(n.producer_type, MAD_PRODUCER_SWITCH);
    assert_int_equal(n.trap_number, 128);
    assert_int_equal(n.issuer_lid, 3);
    struct mad_trap_128 link;
    mad_trap_128_decode(n.data_details, &link);
    assert_int_equal(link.lid, 3);
    // opensm: toggle is bit 15 of toggle_count
    test_hex("7f000004 0042 0007 8005", wire, sizeof(wire));
    mad_notice_decode(wire, &n);
    assert_int_equal(n.is_generic, 0);
    assert_int_equal(n.type, MAD_NOTICE_EMPTY);
    assert_int_equal(n.notice_toggle, 1);
    assert_int_equal(n.notice_count, 5);
}

#define GID1 "fe80000000000000 0000000000000001"
#define GID2 "fe80000000000000 0000000000000002"

// opensm: ib_mad_notice_attr_t, data_details
static void trap_details(void **state)
{
    expect(&mad_attr_trap_64, "000000000000" GID1, "gid:fe80:0:0:0:0:0:0:1");
    expect(&mad_attr_trap_129, "0000 0102 03", "lid=0x102 port_num=3");
    expect(&mad_attr_trap_144, "0000 0102 00 01 03040506 0020 0030",
           "lid=0x102 other_local_changes=1 capability_mask=0x3040506 capability_mask2_change=1 "
           "capability_mask2=0x30");
    expect(&mad_attr_trap_144, "0000 0000 00 00 00000000 0010 0000", "hierarchy_info_change=1");
    expect(&mad_attr_trap_144, "0000 0000 00 00 00000000 0008 0000", "sm_priority_change=1");
    expect(&mad_attr_trap_144, "0000 0000 00 00 00000000 0004 0000", "link_speed_enabled_change=1");
    expect(&mad_attr_trap_144, "0000 0000 00 00 00000000 0002 0000", "link_width_enabled_change=1");
    expect(&mad_attr_trap_144, "0000 0000 00 00 00000000 0001 0000", "node_description_change=1");
    expect(&mad_attr_trap_145, "0000 0102 0000 0102030405060708",
           "lid=0x102 system_image_guid=0x102030405060708");
    expect(&mad_attr_trap_256, "0000 0102 0304 05 00 0607 08090a0b 0102030405060708 00 c3 000102",
           "lid=0x102 dr_slid=0x304 method=5 attr_id=0x607 attr_mod=0x8090a0b m_key=0x102030405060708 "
           "dr_notice=1 "
           "dr_path_truncated=1 dr_hop_count=3 dr_notice_return_path[1]=1 dr_notice_return_path[2]=2");
    expect(&mad_attr_trap_257, "0000 0102 0304 05060708 90 000009 00 00000a" GID1 GID2,
           "lid1=0x102 lid2=0x304 key=0x5060708 sl=9 qp1=9 qp2=10 gid1:fe80:0:0:0:0:0:0:1 "
           "gid2:fe80:0:0:0:0:0:0:2");
    expect(&mad_attr_trap_259, "0001 0102 0304 ffff 90 000009 00 00000a" GID1 GID2 "0b0c 0d",
           "data_valid=1 lid1=0x102 lid2=0x304 p_key=0xffff sl=9 qp1=9 qp2=10 gid1:fe80:0:0:0:0:0:0:1 "
           "gid2:fe80:0:0:0:0:0:0:2 sw_lid=0xb0c port_num=13");
}

// opensm: ib_port_info_ext_t and ib_mlnx_ext_port_info_t
static void extended_port_info(void **state)
{
    expect(&mad_attr_port_info_extended, "00000001 0002 0003 0004 0005 0006 0007 0008 0009 000a",
           "capability_mask=1 fec_mode_active=2 fdr_fec_mode_supported=3 fdr_fec_mode_enabled=4 "
           "edr_fec_mode_supported=5 "
           "edr_fec_mode_enabled=6 hdr_fec_mode_supported=7 hdr_fec_mode_enabled=8 ndr_fec_mode_supported=9 "
           "ndr_fec_mode_enabled=10");
    expect(&mad_attr_mlnx_ext_port_info, "00000001 00000002 00000003 00000004",
           "state_change_enable=1 link_speed_supported=2 link_speed_enabled=3 link_speed_active=4");
}

// NVIDIA's ib_types.h (dual GPL and BSD): ib_general_info_is_cap_enabled(), ib_ar_info_t,
// ib_ar_group_table_t, ib_ar_lft_entry_t and their accessors, member sizes added up by hand
static void adaptive_routing(void **state)
{
    expect(&mad_attr_general_info, "00010006 00120000 00000008 00000001",
           "cap_mask[0]=0x10006 cap_mask[1]=0x120000 cap_mask[2]=8 cap_mask[3]=1");
    struct mad_general_info g = {.cap_mask = {[0] = 0x10006, [1] = 0x120000, [2] = 8}};
    for (unsigned i = 0; i < 128; i++)
        assert_int_equal(mad_general_cap(&g, i),
                         i == 1 || i == 2 || i == 16 || i == 49 || i == 52 || i == 67);

    expect(&mad_attr_adaptive_routing_info,
           "29 02 12 3b 17123456 789a 03 21 000000 05 01020304 86 00 10 00 60 00 bcde",
           "by_transport_cap=1 by_sl_cap=1 no_fallback=1 directions_sup=2 group_table_copy_sup=1 "
           "sub_groups_active=2 rn_xmit_en=1 fr_en=1 fr_sup=1 arn_sup=1 ar_en=1 string_width_cap=1 "
           "group_table_cap=7 group_top=0x123 group_cap=0x456 sl_mask=0x789a sub_groups_sup=3 rn_version=2 "
           "ar_version=1 transport_disable=5 ageing_us=0x1020304 hbf_sup=1 by_vl_cap=1 pfrn_sup=1 pfrn_en=1 "
           "whbf_granularity=3 hbf_sl_mask=0xbcde");
    expect(&mad_attr_adaptive_routing_info, "56 00 00 04 00000000 0000 00 00 000000 00 00000000 78 00 e0",
           "dyn_cap_calc_sup=1 by_sl_en=1 global_groups=1 is4_mode=1 frn_sup=1 whbf_sup=1 "
           "symmetric_hash_sup=1 dceth_hash_sup=1 bth_dqp_hash_sup=1 hbf_en=1 whbf_en=1 by_vl_en=1");

    expect(&mad_attr_adaptive_routing_group_table,
           "01 00000000000000 0000000000000000 0000000000000000 00000000000000 02"
           "03 00000000000000 0000000000000000 0000000000000000 00000000000000 04",
           "sub_group0:0100000000000000000000000000000000000000000000000000000000000002 "
           "sub_group1:0300000000000000000000000000000000000000000000000000000000000004");

    // free by group 0x123, static by port 5, bounded by group 2 of table 7
    expect(&mad_attr_adaptive_routing_lft, "40110123 80050000 07060002",
           "state[0]=1 port[0]=17 group[0]=0x123 state[1]=2 port[1]=5 table[2]=7 port[2]=6 group[2]=2");
}

// What a mask's bits mean is this program's own (mad/adaptive.h): that it is one to one is all there is to
// see.
static void adaptive_masks(void **state)
{
    uint8_t mask[MAD_AR_MASK_BYTES] = {0};
    for (unsigned p = 0; p < 256; p += 3)
        mad_ar_mask_add(mask, (uint8_t)p);
    for (unsigned p = 0; p < 256; p++)
        assert_int_equal(mad_ar_mask_has(mask, (uint8_t)p), p % 3 == 0);
}

// ibsim: the PMA's answer, and opensm's to saquery -c
static void class_port_info(void **state)
{
    expect(&mad_attr_class_port_info, "0101 1300 0000 0012",
           "base_version=1 class_version=1 capability_mask=0x1300 resp_time_value=18");
    expect(
        &mad_attr_class_port_info,
        "0102 2602 0016 bd10 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000"
        "0000 0001 8001 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 8001 0000",
        "base_version=1 class_version=2 capability_mask=0x2602 capability_mask2=0xb5e8 resp_time_value=16 "
        "redirect_qp=1 "
        "redirect_q_key=0x80010000 trap_q_key=0x80010000");
    // opensm: ib_class_port_info_t
    expect(&mad_attr_class_port_info,
           "00000000 00000000" GID1 "01 2 00003 0004 0005 00 000006 00000007" GID2
           "08 9 0000a 000b 000c 0d 00000e 0000000f",
           "redirect_gid:fe80:0:0:0:0:0:0:1 redirect_tc=1 redirect_sl=2 redirect_fl=3 redirect_lid=4 "
           "redirect_p_key=5 "
           "redirect_qp=6 redirect_q_key=7 trap_gid:fe80:0:0:0:0:0:0:2 trap_tc=8 trap_sl=9 trap_fl=10 "
           "trap_lid=11 "
           "trap_p_key=12 trap_hl=13 trap_qp=14 trap_q_key=15");
}

// ibsim: counters set by its PerformanceSet command, then perfquery, -x, --rcverr, --xmtdisc
static void port_counters(void **state)
{
    expect(&mad_attr_port_counters,
           "0003 0000 004d 0506 03e9 03ea 03eb 03ec 0708 009a 0000 03ed 0001 88e1 0001 88e2 0001 86ab 0001 "
           "86ac 0000 1092",
           "port_select=3 symbol_error_counter=77 link_error_recovery_counter=5 link_downed_counter=6 "
           "port_rcv_errors=1001 "
           "port_rcv_remote_physical_errors=1002 port_rcv_switch_relay_errors=1003 port_xmit_discards=1004 "
           "port_xmit_constraint_errors=7 port_rcv_constraint_errors=8 local_link_integrity_errors=9 "
           "excessive_buffer_overrun_errors=10 vl15_dropped=1005 port_xmit_data=100577 port_rcv_data=100578 "
           "port_xmit_pkts=100011 port_rcv_pkts=100012 port_xmit_wait=4242");
    // opensm: ib_port_counters_t has qp1_dropped before vl15_dropped
    expect(&mad_attr_port_counters, "0000 1234 0000 0000 0000 0000 0000 0000 0000 5600 789a",
           "counter_select=0x1234 counter_select2=0x56 qp1_dropped=0x789a");
    expect(&mad_attr_port_rcv_error_details, "0003 0000 000b 000c 000d 000e 000f 0010",
           "port_select=3 port_local_physical_errors=11 port_malformed_packet_errors=12 "
           "port_buffer_overrun_errors=13 "
           "port_dlid_mapping_errors=14 port_vl_mapping_errors=15 port_looping_errors=16");
    expect(&mad_attr_port_xmit_discard_details, "0003 0000 0015 0016 0017 0018",
           "port_select=3 port_inactive_discards=21 port_neighbor_mtu_discards=22 "
           "port_sw_lifetime_limit_discards=23 "
           "port_sw_hoq_lifetime_limit_discards=24");
}

static void port_counters_extended(void **state)
{
    expect(
        &mad_attr_port_counters_extended,
        "0003 0000 0000 0000 0000 001c be99 1c54 0000 001c be99 1c55 0000 0000 4996 02db 0000 0000 4996 02dc",
        "port_select=3 port_xmit_data=123456789588 port_rcv_data=123456789589 port_xmit_pkts=1234567899 "
        "port_rcv_pkts=1234567900");
    // opensm: ib_port_counters_ext_t, the members behind the packets
    expect(&mad_attr_port_counters_extended,
           "0000 0102 03040506 0000000000000000 0000000000000000 0000000000000000 0000000000000000"
           "0000000000000001 0000000000000002 0000000000000003 0000000000000004"
           "0000000000000005 0000000000000006 0000000000000007 0000000000000008 0000000000000009 "
           "000000000000000a"
           "000000000000000b 000000000000000c 000000000000000d 000000000000000e 000000000000000f "
           "0000000000000010"
           "0000000000000011 0000000000000012",
           "counter_select=0x102 counter_select2=0x3040506 port_unicast_xmit_pkts=1 port_unicast_rcv_pkts=2 "
           "port_multicast_xmit_pkts=3 port_multicast_rcv_pkts=4 symbol_error_counter=5 "
           "link_error_recovery_counter=6 "
           "link_downed_counter=7 port_rcv_errors=8 port_rcv_remote_physical_errors=9 "
           "port_rcv_switch_relay_errors=10 "
           "port_xmit_discards=11 port_xmit_constraint_errors=12 port_rcv_constraint_errors=13 "
           "local_link_integrity_errors=14 "
           "excessive_buffer_overrun_errors=15 vl15_dropped=16 port_xmit_wait=17 qp1_dropped=18");
}

// ibsim: smpquery -D nodeinfo 0,1,3,2 as sent and as answered
static void directed_smp(void **state)
{
    expect(&mad_attr_smp,
           "0181 0101 0000 0003 0000 0000 766d fc2c 0011 0000 0000 0000 0000 0000 0000 0000"
           "ffff ffff 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000"
           "0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000"
           "0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000"
           "0001 0302",
           "base_version=1 mgmt_class=0x81 class_version=1 method=1 hop_count=3 tid=0x766dfc2c attr_id=0x11 "
           "dr_slid=0xffff "
           "dr_dlid=0xffff initial_path[1]=1 initial_path[2]=3 initial_path[3]=2");
    uint8_t mad[256];
    struct mad_smp smp;
    test_hex("0181 0181 8000 0003 0000 0001 766d fc2c 0011 0000", mad, sizeof(mad));
    mad_smp_decode(mad, &smp);
    assert_int_equal(smp.direction, 1);
    assert_int_equal(smp.status, 0);
    assert_int_equal(smp.hop_pointer, 0);
    assert_int_equal(smp.hop_count, 3);
    assert_int_equal(smp.method, MAD_METHOD_GET_RESP);
    assert_int_equal(smp.tid, 0x1766dfc2cull);
}

// ibsim: saquery's request for a path record by LIDs, and the first bytes of the answer
static void sa_header(void **state)
{
    expect(&mad_attr_sa_hdr,
           "0103 0212 0000 0000 0000 0000 5830 b10b 0035 0000 0000 0000 0000 0000 0000 0000"
           "0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 0000 1030",
           "base_version=1 mgmt_class=3 class_version=2 method=0x12 tid=0x5830b10b attr_id=0x35 "
           "component_mask=0x1030");
    expect(&mad_attr_sa_hdr,
           "0103 0292 0000 0000 0001 0000 5830 b10b 0035 0000 0000 0000 0000 0100 0000 0000"
           "0000 0000 0000 0000 0000 0000 0008 0000 0000 0000 0000 1030",
           "base_version=1 mgmt_class=3 class_version=2 method=0x92 tid=0x100005830b10b attr_id=0x35 "
           "rmpp_flags=1 attribute_offset=8 "
           "component_mask=0x1030");
    // opensm: ib_rmpp_mad_t; IB_RMPP_FLAG bits are the low three of rmpp_flags, the response time above them
    expect(&mad_attr_sa_hdr,
           "0000 0000 0000 0000 0000000000000000 0000 0000 00000000 01 01 fb 02 00000003 00000004 "
           "0102030405060708",
           "rmpp_version=1 rmpp_type=1 rmpp_resp_time=31 rmpp_flags=3 rmpp_status=2 segment_number=3 "
           "payload_length=4 "
           "sm_key=0x102030405060708");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(node_description),
        cmocka_unit_test(node_info),
        cmocka_unit_test(switch_info),
        cmocka_unit_test(port_info),
        cmocka_unit_test(port_info_rest),
        cmocka_unit_test(tables),
        cmocka_unit_test(sm_info),
        cmocka_unit_test(notices),
        cmocka_unit_test(trap_details),
        cmocka_unit_test(extended_port_info),
        cmocka_unit_test(adaptive_routing),
        cmocka_unit_test(adaptive_masks),
        cmocka_unit_test(class_port_info),
        cmocka_unit_test(port_counters),
        cmocka_unit_test(port_counters_extended),
        cmocka_unit_test(directed_smp),
        cmocka_unit_test(sa_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
