// SPDX-License-Identifier: Apache-2.0
// Multicast packets along the programmed tables: who gets copies, how many, loops, MulticastFDBTop.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <cmocka.h>

#include "lib/mono.h"
#include "tests/unit/sim/client.h"

static struct rig rig;
static struct rig_ends e;

static int setup(void **state)
{
    rig_up(&rig, NULL, &e);
    return 0;
}

static int setup_no_top(void **state)
{
    rig_up(&rig, &(struct sim_opts){.no_mcast_top = true}, &e);
    return 0;
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static struct got {
    unsigned n;
    uint64_t guid[64];
    unsigned port[64], copies[64];
} got;

static void took(void *arg, uint64_t guid, unsigned port, unsigned copies)
{
    assert_ptr_equal(arg, &got);
    got.guid[got.n] = guid;
    got.port[got.n] = port;
    got.copies[got.n++] = copies;
}

static int cast(uint64_t from_port_guid, uint16_t mlid)
{
    got.n = 0;
    return sim_multicast(rig.s, from_port_guid, mlid, took, &got);
}

static unsigned copies_at(uint64_t guid)
{
    for (unsigned i = 0; i < got.n; i++)
        if (got.guid[i] == guid)
            return got.copies[i];
    return 0;
}

static void set_mask(uint64_t guid, uint16_t mlid, uint16_t mask)
{
    struct dest d = by_lid(rig_lid_of(&rig, guid));
    uint8_t data[64] = {0};
    uint32_t block = (mlid - 0xc000u) / 32, at = (mlid - 0xc000u) % 32 * 2;
    assert_int_equal(rig_smp(&rig, &d, MAD_METHOD_GET, MAD_ATTR_MULTICAST_FORWARDING_TABLE, block, data), 0);
    data[at] = (uint8_t)(mask >> 8);
    data[at + 1] = (uint8_t)mask;
    assert_int_equal(rig_smp(&rig, &d, MAD_METHOD_SET, MAD_ATTR_MULTICAST_FORWARDING_TABLE, block, data), 0);
}

static void set_top(uint64_t guid, uint16_t top)
{
    struct dest d = by_lid(rig_lid_of(&rig, guid));
    struct mad_switch_info si;
    uint8_t data[64] = {0};
    assert_int_equal(rig_smp(&rig, &d, MAD_METHOD_GET, MAD_ATTR_SWITCH_INFO, 0, data), 0);
    mad_switch_info_decode(data, &si);
    si.multicast_fdb_top = top;
    mad_switch_info_encode(&si, data);
    assert_int_equal(rig_smp(&rig, &d, MAD_METHOD_SET, MAD_ATTR_SWITCH_INFO, 0, data), 0);
}

static uint64_t peer_guid(uint64_t guid, unsigned port)
{
    const struct port *p = fabric_port(rig.f, fabric_port_at(rig.f, fabric_by_guid(rig.f, guid), port));
    return fabric_peer_node(rig.f, p)->guid;
}

// All ports of a leaf that lead to hosts, as a mask.
static uint16_t host_ports(uint64_t leaf)
{
    uint16_t mask = 0;
    const struct node *n = fabric_by_guid(rig.f, leaf);
    for (unsigned p = 1; p <= n->num_ports; p++) {
        const struct port *port = fabric_port(rig.f, fabric_port_at(rig.f, n, p));
        if (port_valid(port->peer) && fabric_peer_node(rig.f, port)->type == NODE_CA)
            mask |= (uint16_t)(1u << p);
    }
    return mask;
}

static void one_leaf(void **state)
{
    uint16_t hosts = host_ports(e.leaf);
    assert_int_equal(cast(rig.port.port_guid, 0xc001), 0); // no entry: dropped
    set_mask(e.leaf, 0xc001, (uint16_t)(hosts | 1));
    int n = cast(rig.port.port_guid, 0xc001);
    assert_int_equal(n, __builtin_popcount(hosts));     // the others and the switch itself
    assert_int_equal(copies_at(rig.port.node_guid), 0); // not back to where it came from
    assert_int_equal(copies_at(e.leaf), 1);
    for (unsigned i = 0; i < got.n; i++)
        assert_int_equal(got.copies[i], 1);
    // from the switch's own port
    n = cast(e.leaf, 0xc001);
    assert_int_equal(n, __builtin_popcount(hosts));
    assert_int_equal(copies_at(rig.port.node_guid), 1);
    assert_int_equal(copies_at(e.leaf), 0);
    assert_int_equal(cast(rig.port.port_guid, 0xc002), 0); // another group
    // counters of the copies
    uint64_t v;
    assert_int_equal(sim_counter_get(rig.s, rig.port.node_guid, 1, SIM_MULTICAST_RCV_PKTS, &v), 0);
    assert_int_equal(v, 1);
    assert_int_equal(sim_counter_get(rig.s, rig.port.node_guid, 1, SIM_MULTICAST_XMIT_PKTS, &v), 0);
    assert_int_equal(v, 3);
    // a link that is down carries none
    unsigned other = e.leaf_port == 1 ? 2 : 1;
    assert_int_equal(sim_link_set(rig.s, e.leaf, other, false), 0);
    assert_int_equal(cast(rig.port.port_guid, 0xc001), __builtin_popcount(hosts) - 1);
    assert_int_equal(copies_at(peer_guid(e.leaf, other)), 0);
    assert_int_equal(cast(1234, 0xc001), -ENOENT);
    assert_int_equal(cast(rig.port.port_guid, 0xbfff), -EINVAL);
    assert_int_equal(cast(rig.port.port_guid, 0xffff), -EINVAL);
    assert_int_equal(sim_multicast(rig.s, rig.port.port_guid, 0xc001, NULL, NULL),
                     __builtin_popcount(hosts) - 1);
}

static void across_a_tree(void **state)
{
    // leaf - agg - the pod's other leaf
    uint64_t sister = 0;
    unsigned down = 0, up = 0;
    const struct node *agg = fabric_by_guid(rig.f, e.agg);
    for (unsigned p = 1; p <= agg->num_ports; p++) {
        const struct port *port = fabric_port(rig.f, fabric_port_at(rig.f, agg, p));
        uint64_t z = peer_guid(e.agg, p);
        if (z == e.leaf || host_ports(z) == 0)
            continue;
        sister = z;
        down = p;
        up = fabric_port(rig.f, port->peer)->num;
    }
    assert_true(sister != 0);
    set_mask(e.leaf, 0xc003, (uint16_t)(host_ports(e.leaf) | 1u << e.up_port));
    set_mask(e.agg, 0xc003, (uint16_t)(1u << e.agg_port | 1u << down));
    set_mask(sister, 0xc003, (uint16_t)(host_ports(sister) | 1u << up));
    int all = __builtin_popcount(host_ports(e.leaf)) + __builtin_popcount(host_ports(sister));
    assert_int_equal(cast(rig.port.port_guid, 0xc003), all - 1);
    for (unsigned i = 0; i < got.n; i++)
        assert_int_equal(got.copies[i], 1);
    // a second way to the sister over another agg: everything comes twice there, and round it goes
    uint64_t agg2 = 0;
    unsigned leaf_up2 = 0, sister_up2 = 0, a = 0, b = 0;
    const struct node *leaf = fabric_by_guid(rig.f, e.leaf), *sis = fabric_by_guid(rig.f, sister);
    for (unsigned p = 1; p <= leaf->num_ports; p++)
        if (p != e.up_port && host_ports(peer_guid(e.leaf, p)) == 0 && !(host_ports(e.leaf) >> p & 1)) {
            agg2 = peer_guid(e.leaf, p);
            leaf_up2 = p;
            a = fabric_port(rig.f, fabric_port(rig.f, fabric_port_at(rig.f, leaf, p))->peer)->num;
        }
    for (unsigned p = 1; p <= sis->num_ports; p++)
        if (peer_guid(sister, p) == agg2) {
            sister_up2 = p;
            b = fabric_port(rig.f, fabric_port(rig.f, fabric_port_at(rig.f, sis, p))->peer)->num;
        }
    assert_true(agg2 != 0 && sister_up2 != 0);
    set_mask(e.leaf, 0xc003, (uint16_t)(host_ports(e.leaf) | 1u << e.up_port | 1u << leaf_up2));
    set_mask(agg2, 0xc003, (uint16_t)(1u << a | 1u << b));
    set_mask(sister, 0xc003, (uint16_t)(host_ports(sister) | 1u << up | 1u << sister_up2));
    assert_int_equal(cast(rig.port.port_guid, 0xc003), -ELOOP);
    assert_true(copies_at(peer_guid(sister, (unsigned)__builtin_ctz(host_ports(sister)))) >= 2);
    // two ways, no loop: the sister sends nothing back up
    set_mask(sister, 0xc003, host_ports(sister));
    assert_int_equal(cast(rig.port.port_guid, 0xc003), all - 1);
    assert_int_equal(copies_at(peer_guid(sister, (unsigned)__builtin_ctz(host_ports(sister)))), 2);
}

static void top_cuts(void **state)
{
    uint16_t hosts = host_ports(e.leaf);
    int others = __builtin_popcount(hosts) - 1;
    set_mask(e.leaf, 0xc005, hosts);
    assert_int_equal(cast(rig.port.port_guid, 0xc005), others); // 0: no limit
    set_top(e.leaf, 0xc005);
    assert_int_equal(cast(rig.port.port_guid, 0xc005), others);
    set_top(e.leaf, 0xc004);
    assert_int_equal(cast(rig.port.port_guid, 0xc005), 0);
    set_top(e.leaf, 0xbfff);
    assert_int_equal(cast(rig.port.port_guid, 0xc005), 0);
    assert_int_equal(rig_switch_field(&rig, e.leaf, "multicast_fdb_top"), 0xbfff);
}

static void no_top_no_cut(void **state)
{
    uint16_t hosts = host_ports(e.leaf);
    set_mask(e.leaf, 0xc005, hosts);
    assert_false(rig_field(&rig, e.leaf, 0, "capability_mask") & MAD_CAP_IS_MULTICAST_FDB_TOP_SUPPORTED);
    set_top(e.leaf, 0xbfff);
    assert_int_equal(rig_switch_field(&rig, e.leaf, "multicast_fdb_top"), 0);
    assert_int_equal(cast(rig.port.port_guid, 0xc005), __builtin_popcount(hosts) - 1);
}

int main(void)
{
#define UP(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        UP(one_leaf),
        UP(across_a_tree),
        UP(top_cuts),
        cmocka_unit_test_setup_teardown(no_top_no_cut, setup_no_top, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
