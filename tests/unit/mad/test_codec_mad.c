// SPDX-License-Identifier: Apache-2.0
//
// Names, whole-MAD composition, link texts and rates.
#include "mad/mad.h"
#include "codec_test.h"

#include <errno.h>

static void link_texts(void **state)
{
    char b[MAD_LINK_TEXT_SIZE];
    assert_string_equal(mad_link_text(2, 4, 8, false, b), "4xNDR");
    assert_string_equal(mad_link_text(2, 4, 4, false, b), "4xHDR");
    assert_string_equal(mad_link_text(16, 4, 4, false, b), "2xHDR");
    assert_string_equal(mad_link_text(2, 4, 0, true, b), "4xFDR10");
    assert_string_equal(mad_link_text(2, 4, 1, true, b), "4xFDR"); // the extended speed counts
    assert_string_equal(mad_link_text(2, 4, 0, false, b), "4xQDR");
    assert_string_equal(mad_link_text(1, 1, 0, false, b), "1xSDR");
    assert_string_equal(mad_link_text(8, 2, 0, false, b), "12xDDR");
    assert_string_equal(mad_link_text(2, 0, 16, false, b), "4xXDR");
    assert_string_equal(mad_link_text(32, 4, 8, false, b), "w32xNDR");
    assert_string_equal(mad_link_text(2, 3, 0, false, b), "4xspeed3/0");
    assert_string_equal(mad_link_text(255, 255, 255, false, b), "w255xspeed255/255");
}

static void link_rates(void **state)
{
    assert_true(mad_link_gbps(2, 4, 8, false) == 400);
    assert_true(mad_link_gbps(2, 4, 1, false) == 56);
    assert_true(mad_link_gbps(1, 1, 0, false) == 2.5);
    assert_true(mad_link_gbps(2, 4, 16, false) == 800);
    assert_true(mad_link_gbps(2, 4, 0, true) == 40);
    assert_true(mad_link_gbps(32, 4, 8, false) == 0);
    assert_true(mad_link_gbps(2, 3, 0, false) == 0);
    assert_int_equal(mad_link_data_bps(2, 4, 0, false), 32000000000);
    assert_int_equal(mad_link_data_bps(2, 4, 0, true), 40000000000);
    assert_int_equal(mad_link_data_bps(2, 4, 1, false), 54545454545);
    assert_int_equal(mad_link_data_bps(2, 4, 8, false), 400000000000);
    assert_int_equal(mad_link_data_bps(0, 4, 8, false), 0);
}

// The codes of PathRecord.Rate as rdma-core's enum ibv_rate numbers them
static void rate_codes(void **state)
{
    assert_int_equal(mad_link_rate(1, 1, 0, false), 2);
    assert_int_equal(mad_link_rate(2, 1, 0, false), 3);
    assert_int_equal(mad_link_rate(2, 4, 0, false), 7);
    assert_int_equal(mad_link_rate(2, 4, 1, false), 12);
    assert_int_equal(mad_link_rate(16, 4, 1, false), 19);
    assert_int_equal(mad_link_rate(2, 4, 2, false), 16);
    assert_int_equal(mad_link_rate(16, 4, 4, false), 16);
    assert_int_equal(mad_link_rate(2, 4, 4, false), 17);
    assert_int_equal(mad_link_rate(2, 4, 8, false), 21);
    assert_int_equal(mad_link_rate(8, 4, 8, false), 24);
    assert_int_equal(mad_link_rate(8, 4, 16, false), 0); // 2400 Gb/s has no code
    assert_int_equal(mad_link_rate(2, 3, 0, false), 0);
    assert_true(mad_rate_gbps(5) == 5 && mad_rate_gbps(1) == 0 && mad_rate_gbps(25) == 0);
}

static void small_codes(void **state)
{
    assert_int_equal(mad_mtu_bytes(1), 256);
    assert_int_equal(mad_mtu_bytes(5), 4096);
    assert_int_equal(mad_mtu_bytes(0), 0);
    assert_int_equal(mad_mtu_bytes(6), 0);
    assert_int_equal(mad_vl_count(5), 15);
    assert_int_equal(mad_vl_count(6), 0);
    assert_int_equal(mad_time_ns(18), 1073741824);
    assert_int_equal(mad_time_ns(31), 4096ull << 31);
}

static void names(void **state)
{
    char b[MAD_TEXT_SIZE];
    assert_string_equal(mad_what_text(0x81, 1, 0x15, b), "Get(PortInfo)");
    assert_string_equal(mad_what_text(3, 0x92, 0x35, b), "SubnAdmGetTableResp(PathRecord)");
    assert_string_equal(mad_what_text(4, 1, 0x1d, b), "PerfGet(PortCountersExtended)");
    assert_string_equal(mad_what_text(0x33, 0x44, 0x5566, b), "class 0x33 method 0x44(0x5566)");
    assert_string_equal(mad_status_text(1, 0, b), "ok");
    assert_string_equal(mad_status_text(0x81, 0x8000, b), "ok"); // the D bit is no status
    assert_string_equal(mad_status_text(1, 0x1c, b), "invalid value (0x001c)");
    assert_string_equal(mad_status_text(3, 0x300, b), "no records (0x0300)");
    assert_string_equal(mad_status_text(1, 0x300, b), "status 0x0300");
    assert_string_equal(mad_trap_name(144), "local changes");
    assert_null(mad_trap_name(1));
    assert_null(mad_port_state_name(5));
    assert_true(mad_is_response(0x81) && mad_is_response(7) && !mad_is_response(5));
}

static void node_string_is_tame(void **state)
{
    struct mad_node_description nd;
    char b[65];
    memset(nd.node_string, 'a', 64);
    assert_int_equal(strlen(mad_node_string(&nd, b)), 64);
    memset(nd.node_string, 0, 64);
    memcpy(nd.node_string, "x\033[31m y  ", 10);
    assert_string_equal(mad_node_string(&nd, b), "x?[31m y");
}

static void compose_smp(void **state)
{
    uint8_t mad[MAD_SIZE];
    struct mad_smp_to to = {.hops = 3, .path = {0, 1, 3, 2}};
    assert_int_equal(
        mad_smp_build(mad, &to, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, 0x766dfc2c, 0, NULL, NULL), 0);
    // smpquery -D nodeinfo 0,1,3,2 sent these bytes
    uint8_t want[MAD_SIZE];
    test_hex("0181 0101 0000 0003 0000 0000 766d fc2c 0011 0000 0000 0000 0000 0000 0000 0000 ffff ffff",
             want, 256);
    want[129] = 1, want[130] = 3, want[131] = 2;
    assert_memory_equal(mad, want, MAD_SIZE);

    struct mad_smp_to self = {.dr = true};
    assert_int_equal(mad_smp_build(mad, &self, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, 1, 0, NULL, NULL), 0);
    assert_int_equal(mad[1], 0x81);
    assert_int_equal(mad[7], 0);

    struct mad_smp_to lid = {0};
    struct mad_port_info pi = {.lid = 0x1234};
    assert_int_equal(mad_smp_build(mad, &lid, MAD_METHOD_SET, MAD_ATTR_PORT_INFO, 0x80000005, 1, 0xabcdef,
                                   &mad_attr_port_info, &pi),
                     0);
    struct mad_smp smp;
    mad_smp_decode(mad, &smp);
    assert_int_equal(smp.mgmt_class, MAD_CLASS_SM_LID);
    assert_int_equal(smp.attr_mod, 0x80000005);
    assert_int_equal(smp.m_key, 0xabcdef);
    assert_int_equal(smp.dr_slid, 0);
    assert_int_equal(mad[64 + 16] << 8 | mad[64 + 17], 0x1234);

    to.hops = MAD_SMP_MAX_HOPS + 1;
    assert_int_equal(mad_smp_build(mad, &to, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, 1, 0, NULL, NULL),
                     -EINVAL);
}

static void compose_pm(void **state)
{
    uint8_t mad[MAD_SIZE], want[MAD_SIZE];
    memset(mad, 0xee, sizeof(mad));
    struct mad_port_counters_extended pc = {.port_select = 3};
    mad_pm_build(mad, MAD_METHOD_GET, 0x1d, 0, 0x62ec5ff7, &mad_attr_port_counters_extended, &pc);
    // perfquery -x 2 3 sent these bytes
    test_hex("0104 0101 0000 0000 0000 0000 62ec 5ff7 001d", want, sizeof(want));
    want[65] = 3;
    assert_memory_equal(mad, want, MAD_SIZE);
}

static void data_areas(void **state)
{
    const struct mad_attr *attr;
    unsigned offset, size;
    for (unsigned n = 0; (attr = mad_attr_at(n)); n++) {
        if (!attr->mgmt_class)
            continue;
        mad_data_area(attr->mgmt_class, &offset, &size);
        assert_true(attr->wire_bytes <= size && offset + size <= MAD_SIZE);
    }
    mad_data_area(0x99, &offset, &size);
    assert_int_equal(size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(link_texts),  cmocka_unit_test(link_rates), cmocka_unit_test(rate_codes),
        cmocka_unit_test(small_codes), cmocka_unit_test(names),      cmocka_unit_test(node_string_is_tame),
        cmocka_unit_test(compose_smp), cmocka_unit_test(compose_pm), cmocka_unit_test(data_areas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
