// SPDX-License-Identifier: Apache-2.0
//
// SA records: golden vectors and the component match. Answers of opensm 3.3.23 on ibsim as saquery dumps
// them, bytes and meaning; the rest by ib_types.h of opensm, member sizes added up by hand, and
// IB_*_COMPMASK_* there for the components.
#include "mad/mad.h"
#include "codec_test.h"

#include <stdio.h>

static uint8_t wire[256];

static uint64_t number(const struct mad_attr *attr, const void *host, const char *field)
{
    const struct mad_field *f = mad_field_find(attr, field);
    assert_non_null(f);
    return mad_field_get(f, host, 0);
}

static void same_after_encode(const struct mad_attr *attr, const void *host)
{
    uint8_t again[256];
    mad_attr_encode(attr, host, again);
    assert_memory_equal(wire, again, attr->wire_bytes);
}

static void path_record(void **state)
{
    test_hex(
        "0000 0000 0000 0000 fe80 0000 0000 0000 0000 0000 0010 0005 fe80 0000 0000 0000 0000 0000 0010 0001"
        "0005 0001 0000 0000 0080 ffff 0000 8491 9200",
        wire, sizeof(wire));
    struct mad_path_record pr;
    mad_path_record_decode(wire, &pr);
    assert_int_equal(pr.dgid[15], 5);
    assert_int_equal(pr.sgid[15], 1);
    assert_int_equal(pr.dlid, 5);
    assert_int_equal(pr.slid, 1);
    assert_int_equal(pr.reversible, 1);
    assert_int_equal(pr.numb_path, 0);
    assert_int_equal(pr.p_key, 0xffff);
    assert_int_equal(pr.mtu_selector, 2);
    assert_int_equal(pr.mtu, 4);
    assert_int_equal(pr.rate_selector, 2);
    assert_int_equal(pr.rate, 0x11);
    assert_int_equal(pr.packet_life_time_selector, 2);
    assert_int_equal(pr.packet_life_time, 18);
    same_after_encode(&mad_attr_path_record, &pr);
    test_hex("0102030405060708 00000000000000000000000000000000 00000000000000000000000000000000 0000 0000 "
             "80012305 06 07 0000"
             "1237 00 00 00 09",
             wire, sizeof(wire));
    mad_path_record_decode(wire, &pr);
    assert_int_equal(pr.service_id, 0x0102030405060708);
    assert_int_equal(pr.raw_traffic, 1);
    assert_int_equal(pr.flow_label, 0x123);
    assert_int_equal(pr.hop_limit, 5);
    assert_int_equal(pr.tclass, 6);
    assert_int_equal(pr.numb_path, 7);
    assert_int_equal(pr.qos_class, 0x123);
    assert_int_equal(pr.sl, 7);
    assert_int_equal(pr.preference, 9);
}

static void mc_member_record(void **state)
{
    test_hex(
        "ff12 401b ffff 0000 0000 0000 ffff ffff 0000 0000 0000 0000 0000 0000 0000 0000 0000 0b1b c000 8400"
        "ffff 8392 0000 0000 2000",
        wire, sizeof(wire));
    struct mad_mc_member_record mc;
    mad_mc_member_record_decode(wire, &mc);
    char text[64];
    mad_field_text(mad_field_find(&mad_attr_mc_member_record, "mgid"), &mc, 0, text, sizeof(text));
    assert_string_equal(text, "ff12:401b:ffff:0:0:0:ffff:ffff");
    assert_int_equal(mc.q_key, 0xb1b);
    assert_int_equal(mc.mlid, 0xc000);
    assert_int_equal(mc.mtu_selector, 2);
    assert_int_equal(mc.mtu, 4);
    assert_int_equal(mc.p_key, 0xffff);
    assert_int_equal(mc.rate_selector, 2);
    assert_int_equal(mc.rate, 3);
    assert_int_equal(mc.packet_life_time_selector, 2);
    assert_int_equal(mc.packet_life_time, 18);
    assert_int_equal(mc.scope, 2);
    assert_int_equal(mc.join_state, 0);
    same_after_encode(&mad_attr_mc_member_record, &mc);
    // sl_flow_hop: 4, 20 and 8 bits; scope_state; proxy_join in bit 7
    test_hex("07 0000 00 00 31234509 2180", wire + 39, sizeof(wire) - 39);
    mad_mc_member_record_decode(wire, &mc);
    assert_int_equal(mc.tclass, 7);
    assert_int_equal(mc.sl, 3);
    assert_int_equal(mc.flow_label, 0x12345);
    assert_int_equal(mc.hop_limit, 9);
    assert_int_equal(mc.scope, 2);
    assert_int_equal(mc.join_state, 1);
    assert_int_equal(mc.proxy_join, 1);
}

static void node_record(void **state)
{
    test_hex(
        "0002 0000 0101 0208 0000 0000 0020 0000 0000 0000 0020 0000 0000 0000 0020 0000 0008 d2f0 0000 00a1"
        "0000 02c9 676f 6c64 656e 206c 6561 66",
        wire, sizeof(wire));
    struct mad_node_record nr;
    mad_node_record_decode(wire, &nr);
    assert_int_equal(nr.lid, 2);
    assert_int_equal(nr.node_type, MAD_NODE_SWITCH);
    assert_int_equal(nr.num_ports, 8);
    assert_int_equal(nr.port_guid, 0x200000);
    assert_int_equal(nr.vendor_id, 0x2c9);
    assert_memory_equal(nr.node_string, "golden leaf", 12);
    same_after_encode(&mad_attr_node_record, &nr);
}

// A record with an attribute inside is that attribute's encoding at byte 4.
static void embedded_attributes(void **state)
{
    static const struct {
        const struct mad_attr *record, *part;
        unsigned at;
    } list[] = {{&mad_attr_port_info_record, &mad_attr_port_info, 4},
                {&mad_attr_node_record, &mad_attr_node_info, 4},
                {&mad_attr_node_record, &mad_attr_node_description, 44},
                {&mad_attr_switch_info_record, &mad_attr_switch_info, 4},
                {&mad_attr_sm_info_record, &mad_attr_sm_info, 4},
                {&mad_attr_guid_info_record, &mad_attr_guid_info, 8},
                {&mad_attr_p_key_table_record, &mad_attr_p_key_table, 8},
                {&mad_attr_sltovl_mapping_table_record, &mad_attr_sltovl_mapping_table, 8},
                {&mad_attr_vl_arbitration_table_record, &mad_attr_vl_arbitration_table, 8},
                {&mad_attr_linear_forwarding_table_record, &mad_attr_linear_forwarding_table, 8},
                {&mad_attr_multicast_forwarding_table_record, &mad_attr_multicast_forwarding_table, 8},
                {&mad_attr_inform_info_record, &mad_attr_inform_info, 24}};
    uint64_t seed = 4;
    for (unsigned n = 0; n < sizeof(list) / sizeof(list[0]); n++) {
        uint64_t record[64], part[64];
        test_fill(&seed, wire, sizeof(wire));
        mad_attr_decode(list[n].record, wire, record);
        mad_attr_decode(list[n].part, wire + list[n].at, part);
        for (unsigned i = 0; i < list[n].part->nfields; i++) {
            const struct mad_field *f = &list[n].part->fields[i], *r;
            if (!f->name)
                continue;
            r = mad_field_find(list[n].record, f->name);
            assert_non_null(r);
            for (unsigned e = 0; e < f->count; e++)
                assert_int_equal(mad_field_get(f, part, e), mad_field_get(r, record, e));
        }
    }
}

static void port_info_record(void **state)
{
    test_hex(
        "0001 0100 0000 0000 0000 0000 fe80 0000 0000 0000 0001 0001 0050 c04a 0000 0ff9 0102 1f02 7452 0047"
        "4040 0008 0804 e040 0000 0000 0000 201f 0000 0000 0000 0000 0030 4707",
        wire, sizeof(wire));
    struct mad_port_info_record pir;
    mad_port_info_record_decode(wire, &pir);
    assert_int_equal(pir.endport_lid, 1);
    assert_int_equal(pir.port_num, 1);
    assert_int_equal(pir.lid, 1);
    assert_int_equal(pir.capability_mask, 0x50c04a);
    assert_int_equal(pir.link_speed_ext_enabled, 7);
    same_after_encode(&mad_attr_port_info_record, &pir);
}

static void small_records(void **state)
{
    test_hex("0002 0301 0003 0000", wire, sizeof(wire));
    struct mad_link_record lr;
    mad_link_record_decode(wire, &lr);
    assert_int_equal(lr.from_lid, 2);
    assert_int_equal(lr.from_port, 3);
    assert_int_equal(lr.to_port, 1);
    assert_int_equal(lr.to_lid, 3);

    uint64_t host[64];
    test_hex("0102 0304 05", wire, sizeof(wire));
    mad_attr_decode(&mad_attr_p_key_table_record, wire, host);
    assert_int_equal(number(&mad_attr_p_key_table_record, host, "block_num"), 0x304);
    assert_int_equal(number(&mad_attr_p_key_table_record, host, "port_num"), 5);
    mad_attr_decode(&mad_attr_sltovl_mapping_table_record, wire, host);
    assert_int_equal(number(&mad_attr_sltovl_mapping_table_record, host, "input_port_num"), 3);
    assert_int_equal(number(&mad_attr_sltovl_mapping_table_record, host, "output_port_num"), 4);
    mad_attr_decode(&mad_attr_vl_arbitration_table_record, wire, host);
    assert_int_equal(number(&mad_attr_vl_arbitration_table_record, host, "output_port_num"), 3);
    assert_int_equal(number(&mad_attr_vl_arbitration_table_record, host, "block_num"), 4);
    mad_attr_decode(&mad_attr_linear_forwarding_table_record, wire, host);
    assert_int_equal(number(&mad_attr_linear_forwarding_table_record, host, "block_num"), 0x304);
    mad_attr_decode(&mad_attr_guid_info_record, wire, host);
    assert_int_equal(number(&mad_attr_guid_info_record, host, "block_num"), 3);
    test_hex("0102 3105", wire,
             sizeof(wire)); // IB_MCAST_POSITION_MASK_HO 0xf000, IB_MCAST_BLOCK_ID_MASK_HO 0x1ff
    mad_attr_decode(&mad_attr_multicast_forwarding_table_record, wire, host);
    assert_int_equal(number(&mad_attr_multicast_forwarding_table_record, host, "position"), 3);
    assert_int_equal(number(&mad_attr_multicast_forwarding_table_record, host, "block_num"), 0x105);
}

static void service_record(void **state)
{
    memset(wire, 0, sizeof(wire));
    wire[7] = 1, wire[23] = 2, wire[25] = 3, wire[31] = 4, wire[47] = 5, wire[48] = 'x', wire[127] = 6;
    wire[129] = 7, wire[159] = 8, wire[167] = 9;
    struct mad_service_record sr;
    mad_service_record_decode(wire, &sr);
    assert_int_equal(sr.service_id, 1);
    assert_int_equal(sr.service_gid[15], 2);
    assert_int_equal(sr.service_p_key, 3);
    assert_int_equal(sr.service_lease, 4);
    assert_int_equal(sr.service_key[15], 5);
    assert_int_equal(sr.service_name[0], 'x');
    assert_int_equal(sr.service_data8[15], 6);
    assert_int_equal(sr.service_data16[0], 7);
    assert_int_equal(sr.service_data32[3], 8);
    assert_int_equal(sr.service_data64[0], 9);
}

static void inform_info(void **state)
{
    test_hex("fe800000000000000000000000000001 ffff 0000 0000 01 01 0003 0080 000001 12 00 000002", wire,
             sizeof(wire));
    struct mad_inform_info ii;
    mad_inform_info_decode(wire, &ii);
    assert_int_equal(ii.gid[15], 1);
    assert_int_equal(ii.lid_range_begin, 0xffff);
    assert_int_equal(ii.is_generic, 1);
    assert_int_equal(ii.subscribe, 1);
    assert_int_equal(ii.type, 3);
    assert_int_equal(ii.trap_number, 128);
    assert_int_equal(ii.qpn, 1);
    assert_int_equal(ii.resp_time_value, 18);
    assert_int_equal(ii.producer_type, 2);
    same_after_encode(&mad_attr_inform_info, &ii);
}

static void component(const struct mad_attr *attr, const char *field, int bit)
{
    const struct mad_field *f = mad_field_find(attr, field);
    assert_non_null(f);
    if (f->component != bit)
        fail_msg("%s.%s is component %d, expected %d", attr->name, field, f->component, bit);
}

// IB_*_COMPMASK_* of ib_types.h
static void components(void **state)
{
    component(&mad_attr_path_record, "dgid", 2);
    component(&mad_attr_path_record, "dlid", 4);
    component(&mad_attr_path_record, "numb_path", 12);
    component(&mad_attr_path_record, "packet_life_time", 21);
    component(&mad_attr_mc_member_record, "port_gid", 1);
    component(&mad_attr_mc_member_record, "rate", 9);
    component(&mad_attr_mc_member_record, "join_state", 16);
    component(&mad_attr_mc_member_record, "proxy_join", 17);
    component(&mad_attr_node_record, "node_guid", 7);
    component(&mad_attr_node_record, "vendor_id", 13);
    component(&mad_attr_node_record, "node_string", 14);
    component(&mad_attr_port_info_record, "capability_mask", 7);
    component(&mad_attr_port_info_record, "lmc", 20);
    component(&mad_attr_port_info_record, "subnet_timeout", 45);
    component(&mad_attr_port_info_record, "link_speed_ext_enabled", 57);
    component(&mad_attr_sm_info_record, "sm_state", 6);
    component(&mad_attr_inform_info_record, "producer_type", 15);
    component(&mad_attr_service_record, "service_name", 6);
    component(&mad_attr_multicast_forwarding_table_record, "block_num", 3);
}

static void match(void **state)
{
    struct mad_node_record want = {.lid = 7, .node_type = 2, .node_string = "a"}, have = want;
    have.num_ports = 8;
    uint64_t lid = 1, type = 1 << 4, ports = 1 << 5, text = 1 << 14;
    assert_true(mad_component_match(&mad_attr_node_record, 0, &want, &have));
    assert_true(mad_component_match(&mad_attr_node_record, lid | type | text, &want, &have));
    assert_false(mad_component_match(&mad_attr_node_record, lid | ports, &want, &have));
    have.node_string[63] = 1;
    assert_false(mad_component_match(&mad_attr_node_record, text, &want, &have));
    assert_true(mad_component_match(&mad_attr_node_record, (uint64_t)1 << 63, &want, &have)); // no such row
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(path_record),      cmocka_unit_test(mc_member_record),
        cmocka_unit_test(node_record),      cmocka_unit_test(embedded_attributes),
        cmocka_unit_test(port_info_record), cmocka_unit_test(small_records),
        cmocka_unit_test(service_record),   cmocka_unit_test(inform_info),
        cmocka_unit_test(components),       cmocka_unit_test(match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
