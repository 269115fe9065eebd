// SPDX-License-Identifier: Apache-2.0
//
// What must hold for every attribute table, whatever it says.
#include "mad/mad.h"
#include "codec_test.h"

#define MAX_WIRE 256
#define MAX_HOST 512

// The headers and the wire sizes of the standard bound what a table may describe.
static void every_bit_is_described_once(void **state)
{
    const struct mad_attr *attr;
    for (unsigned n = 0; (attr = mad_attr_at(n)); n++) {
        uint8_t seen[MAX_WIRE * 8] = {0};
        assert_true(attr->wire_bytes <= MAX_WIRE);
        for (unsigned i = 0; i < attr->nfields; i++) {
            const struct mad_field *f = &attr->fields[i];
            for (unsigned e = 0; e < f->count; e++)
                for (unsigned b = 0; b < f->width; b++) {
                    unsigned bit = f->first_bit + e * f->stride + b;
                    if (bit >= attr->wire_bytes * 8u)
                        fail_msg("%s: row %u reaches bit %u of %u bytes", attr->name, i, bit,
                                 attr->wire_bytes);
                    seen[bit]++;
                }
        }
        for (unsigned bit = 0; bit < attr->wire_bytes * 8u; bit++)
            if (seen[bit] != 1)
                fail_msg("%s: bit %u is described %u times", attr->name, bit, seen[bit]);
    }
    assert_non_null(mad_attr_at(30)); // the list is not empty
}

static void rows_fit_engine_and_host(void **state)
{
    const struct mad_attr *attr;
    for (unsigned n = 0; (attr = mad_attr_at(n)); n++) {
        uint8_t used[MAX_HOST] = {0};
        assert_true(attr->struct_size <= MAX_HOST);
        for (unsigned i = 0; i < attr->nfields; i++) {
            const struct mad_field *f = &attr->fields[i];
            if (!f->name)
                continue;
            assert_true(f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8);
            assert_true(f->size * 8u >= f->width);
            assert_true(f->is_array || f->count == 1);
            for (unsigned e = 0; e < f->count; e++)
                assert_true((f->first_bit + e * f->stride) % 8 + f->width <= 64);
            for (unsigned b = 0; b < (unsigned)f->size * f->count; b++)
                assert_int_equal(used[f->offset + b]++, 0);
            assert_ptr_equal(mad_field_find(attr, f->name), f);
        }
    }
}

// A wire image with the reserved bits cut out must come back as it was.
static void random_round_trip(void **state)
{
    uint64_t seed = 1;
    const struct mad_attr *attr;
    for (unsigned n = 0; (attr = mad_attr_at(n)); n++) {
        uint8_t mask[MAX_WIRE] = {0};
        for (unsigned i = 0; i < attr->nfields; i++) {
            const struct mad_field *f = &attr->fields[i];
            for (unsigned e = 0; f->name && e < f->count; e++)
                for (unsigned b = 0; b < f->width; b++) {
                    unsigned bit = f->first_bit + e * f->stride + b;
                    mask[bit / 8] |= (uint8_t)(0x80 >> bit % 8);
                }
        }
        for (unsigned round = 0; round < 2000; round++) {
            uint8_t wire[MAX_WIRE + 1], out[MAX_WIRE + 1], host[MAX_HOST], again[MAX_HOST];
            test_fill(&seed, wire, sizeof(wire));
            memset(out, 0xee, sizeof(out));
            memset(host, 0x55, sizeof(host));
            memset(again, 0x55, sizeof(again));
            mad_attr_decode(attr, wire, host);
            mad_attr_encode(attr, host, out);
            for (unsigned i = 0; i < attr->wire_bytes; i++)
                if (out[i] != (wire[i] & mask[i]))
                    fail_msg("%s: byte %u: %02x became %02x", attr->name, i, wire[i] & mask[i], out[i]);
            assert_int_equal(out[attr->wire_bytes], 0xee);
            mad_attr_decode(attr, out, again);
            assert_memory_equal(host, again, sizeof(host));
            for (unsigned i = attr->struct_size; i < sizeof(host); i++)
                assert_int_equal(host[i], 0x55);
        }
    }
}

// Host values wider than the field are cut and do not spill into neighbours.
static void encode_cuts_to_width(void **state)
{
    uint8_t wire[64];
    struct mad_port_info pi = {.lmc = 0xff};
    mad_port_info_encode(&pi, wire);
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(wire[i], i == 34 ? 7 : 0);
    struct mad_node_info ni = {.vendor_id = 0xffabcdefu};
    uint8_t node[40];
    mad_node_info_encode(&ni, node);
    assert_int_equal(node[36], 0);
    assert_int_equal(node[37], 0xab);
}

static void attributes_are_found(void **state)
{
    assert_ptr_equal(mad_attr_find(MAD_CLASS_SM_LID, 0x15), &mad_attr_port_info);
    assert_ptr_equal(mad_attr_find(MAD_CLASS_SM_DR, 0x15), &mad_attr_port_info);
    assert_ptr_equal(mad_attr_find(MAD_CLASS_PM, 0x15), &mad_attr_port_rcv_error_details);
    assert_ptr_equal(mad_attr_find(MAD_CLASS_PM, 1), &mad_attr_class_port_info);
    assert_ptr_equal(mad_attr_find(MAD_CLASS_SA, 1), &mad_attr_class_port_info);
    assert_null(mad_attr_find(MAD_CLASS_SM_LID, 1));
    assert_null(mad_attr_find(MAD_CLASS_SM_LID, 0x7777));
    assert_null(mad_attr_find(0, 0)); // headers are not attributes
    const struct mad_attr *attr;
    for (unsigned n = 0; (attr = mad_attr_at(n)); n++)
        if (attr->mgmt_class)
            assert_ptr_equal(mad_attr_find(attr->mgmt_class, attr->id), attr);
    assert_ptr_equal(mad_trap_find(67), &mad_attr_trap_64);
    assert_ptr_equal(mad_trap_find(131), &mad_attr_trap_129);
    assert_ptr_equal(mad_trap_find(258), &mad_attr_trap_257);
    assert_null(mad_trap_find(146));
}

static int count_field(void *ctx, const struct mad_field *f, const void *host)
{
    unsigned *n = ctx;
    assert_non_null(f->name);
    return ++*n == 5 ? 42 : 0;
}

static void walk_visits_and_stops(void **state)
{
    unsigned n = 0;
    struct mad_sm_info sm = {0};
    assert_int_equal(mad_attr_walk(&mad_attr_sm_info, &sm, count_field, &n), 42);
    assert_int_equal(n, 5);
    struct mad_linear_forwarding_table lft = {0};
    n = 0;
    assert_int_equal(mad_attr_walk(&mad_attr_linear_forwarding_table, &lft, count_field, &n), 0);
    assert_int_equal(n, 1);
}

static void fields_by_number(void **state)
{
    struct mad_p_key_table t = {.p_key = {[3] = 0x8001}};
    const struct mad_field *f = mad_field_find(&mad_attr_p_key_table, "p_key");
    assert_int_equal(mad_field_get(f, &t, 3), 0x8001);
    mad_field_set(f, &t, 31, 0x17fff);
    assert_int_equal(t.p_key[31], 0x7fff);
    assert_int_equal(t.p_key[30], 0);
    assert_null(mad_field_find(&mad_attr_p_key_table, "no_such"));
}

static void show(const char *want, const struct mad_attr *attr, const void *host, const char *field)
{
    char buf[256];
    const struct mad_field *f = mad_field_find(attr, field);
    assert_non_null(f);
    assert_int_equal(mad_field_text(f, host, 0, buf, sizeof(buf)), strlen(want));
    assert_string_equal(buf, want);
}

static void values_as_text(void **state)
{
    struct mad_port_info pi = {.port_state = 4,
                               .port_physical_state = 9,
                               .link_width_supported = 0x13,
                               .link_width_active = 0x20,
                               .neighbor_mtu = 5,
                               .operational_vls = 4,
                               .vl_cap = 1,
                               .gid_prefix = 0xfe80000000000000,
                               .capability_mask2 = 0x30,
                               .link_speed_ext_supported = 7,
                               .link_speed_ext_active2 = 1,
                               .client_reregister = 1};
    show("Active", &mad_attr_port_info, &pi, "port_state");
    show("9", &mad_attr_port_info, &pi, "port_physical_state");
    show("1x or 4x or 2x", &mad_attr_port_info, &pi, "link_width_supported");
    show("0x20", &mad_attr_port_info, &pi, "link_width_active");
    show("4096", &mad_attr_port_info, &pi, "neighbor_mtu");
    show("VL0-7", &mad_attr_port_info, &pi, "operational_vls");
    show("VL0", &mad_attr_port_info, &pi, "vl_cap");
    show("0xfe80000000000000", &mad_attr_port_info, &pi, "gid_prefix");
    show("0x0030", &mad_attr_port_info, &pi, "capability_mask2");
    show("FDR or EDR or HDR", &mad_attr_port_info, &pi, "link_speed_ext_supported");
    show("XDR", &mad_attr_port_info, &pi, "link_speed_ext_active2");
    show("true", &mad_attr_port_info, &pi, "client_reregister");
    show("0", &mad_attr_port_info, &pi, "lid");
    struct mad_node_description nd = {.node_string = "gpu\n\x80"};
    show("gpu??", &mad_attr_node_description, &nd, "node_string");
    memset(nd.node_string, 'x', 64); // no NUL
    const struct mad_field *f = mad_field_find(&mad_attr_node_description, "node_string");
    char buf[10];
    assert_int_equal(mad_field_text(f, &nd, 0, buf, sizeof(buf)), 64);
    assert_string_equal(buf, "xxxxxxxxx");
    assert_int_equal(mad_field_text(f, &nd, 0, NULL, 0), 64);
    struct mad_trap_64 trap = {.gid = {0xfe, 0x80, [15] = 1}};
    show("fe80:0:0:0:0:0:0:1", &mad_attr_trap_64, &trap, "gid");
}

static void print_lists_arrays(void **state)
{
    struct mad_sltovl_mapping_table t = {.vl = {[1] = 1, [15] = 7}};
    char buf[128];
    size_t n = mad_attr_print(&mad_attr_sltovl_mapping_table, &t, buf, sizeof(buf));
    assert_string_equal(buf, "vl: 0 1 0 0 0 0 0 0 0 0 0 0 0 0 0 7\n");
    assert_int_equal(n, strlen(buf));
    assert_int_equal(mad_attr_print(&mad_attr_sltovl_mapping_table, &t, buf, 8), n);
    assert_string_equal(buf, "vl: 0 1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_bit_is_described_once),
        cmocka_unit_test(rows_fit_engine_and_host),
        cmocka_unit_test(random_round_trip),
        cmocka_unit_test(encode_cuts_to_width),
        cmocka_unit_test(attributes_are_found),
        cmocka_unit_test(walk_visits_and_stops),
        cmocka_unit_test(fields_by_number),
        cmocka_unit_test(values_as_text),
        cmocka_unit_test(print_lists_arrays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
