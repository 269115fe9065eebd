// SPDX-License-Identifier: Apache-2.0
// Planes, tiers, hosts, SUs and rails from topology, where names and stray cables mislead.
#include "test_model_help.h"

#include <stdlib.h>
#include <unistd.h>

#include "fabric/builder_priv.h"
#include "fabric/reader.h"
#include "fabric/topogen.h"
#include "lib/rng.h"

#define SW_GUID(i) (0x5000u + (i))
#define CA_GUID(i) (0x100000u + 2u * (uint64_t)(i))

// A generated fabric as a builder again, to be spoiled.
static struct builder *spoil(const char *name)
{
    const struct fabric *f = topogen_make(name, NULL);
    assert_non_null(f);
    struct builder *b = builder_from(f);
    fabric_unref(f);
    return b;
}

static node_id desc_id(const char *name, const char *desc)
{
    const struct fabric *f = topogen_make(name, NULL);
    node_id id = {(uint32_t)(by_desc(f, desc) - f->node)};
    fabric_unref(f);
    return id;
}

static unsigned count_role(const struct fabric *f, enum node_role r)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < f->num_nodes; i++)
        n += f->node[i].role == r;
    return n;
}

static void assert_tiers(const struct fabric *f, unsigned leaves, unsigned spines, unsigned cores)
{
    assert_int_equal(count_role(f, ROLE_LEAF), leaves);
    assert_int_equal(count_role(f, ROLE_SPINE), spines);
    assert_int_equal(count_role(f, ROLE_CORE), cores);
    assert_int_equal(f->num_tiers, cores ? 3 : spines ? 2 : 1);
}

// Puts a host's adapter on a free port of the switch.
static void stray(struct builder *b, node_id sw, unsigned port, unsigned k)
{
    char desc[32];
    snprintf(desc, sizeof(desc), "stray-%u mlx5_0", k);
    node_id ca = add_ca(b, 0x77770000 + 2 * k, desc);
    add_link(b, ca, 1, sw, port);
}

// ---------------------------------------------------------------- tiers

static void test_hosts_on_spines_and_cores(void **state)
{
    struct builder *b = spoil("ft3-8-4"); // 16 leaves, 16 aggs, 8 cores of 8 ports
    builder_unlink(b, desc_id("ft3-8-4", "core-003"), 5);
    stray(b, desc_id("ft3-8-4", "core-003"), 5, 1);
    builder_unlink(b, desc_id("ft3-8-4", "agg-p02-01"), 8);
    stray(b, desc_id("ft3-8-4", "agg-p02-01"), 8, 2);
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_tiers(f, 16, 16, 8);
    assert_int_equal(by_desc(f, "core-003")->tier, 2);
    assert_int_equal(by_desc(f, "agg-p02-01")->tier, 1);
    fabric_unref(f);

    b = spoil("rail-256"); // 8 leaves, 4 spines of 64 ports
    for (unsigned s = 1; s <= 4; s++) {
        char name[16];
        snprintf(name, sizeof(name), "spine-%02u", s);
        builder_unlink(b, desc_id("rail-256", name), 64);
        stray(b, desc_id("rail-256", name), 64, s); // the fabric managers, one on each spine
    }
    f = builder_seal(b, 1, NULL);
    assert_tiers(f, 8, 4, 0);
    assert_int_equal(f->num_rails, 8);
    fabric_unref(f);
}

static void test_leaf_without_hosts(void **state)
{
    struct builder *b = spoil("ft3-8-4");
    for (unsigned port = 1; port <= 4; port++)
        builder_unlink(b, desc_id("ft3-8-4", "leaf-p01-02"), port);
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_tiers(f, 16, 16, 8);
    assert_int_equal(by_desc(f, "leaf-p01-02")->su, SU_NONE);
    fabric_unref(f);
}

// A pod whose hosts are all off but one: its leaves and aggs keep their places.
static void test_pod_nearly_empty(void **state)
{
    struct builder *b = spoil("ft3-8-4");
    for (unsigned leaf = 1; leaf <= 4; leaf++) {
        char name[16];
        snprintf(name, sizeof(name), "leaf-p03-%02u", leaf);
        for (unsigned port = leaf == 1 ? 2 : 1; port <= 4; port++)
            builder_unlink(b, desc_id("ft3-8-4", name), port);
    }
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_tiers(f, 16, 16, 8);
    fabric_unref(f);
}

// A branch that was cabled before it got hosts: a leaf and its spine below the cores.
static void test_branch_without_hosts(void **state)
{
    struct builder *b = spoil("ft3-8-4");
    node_id spine = add_switch(b, 1, 8, "spine-new"), leaf = add_switch(b, 2, 8, "leaf-new");
    for (unsigned k = 1; k <= 4; k++) {
        char core[16];
        snprintf(core, sizeof(core), "core-%03u", k);
        builder_unlink(b, desc_id("ft3-8-4", core), 7);
        add_link(b, desc_id("ft3-8-4", core), 7, spine, k);
        add_link(b, leaf, k, spine, 4 + k);
    }
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_tiers(f, 17, 17, 8);
    assert_int_equal(by_desc(f, "leaf-new")->tier, 0);
    assert_int_equal(by_desc(f, "spine-new")->tier, 1);
    fabric_unref(f);
}

static void test_aggregation_nodes(void **state)
{
    struct builder *b = spoil("rail-256");
    node_id spine = desc_id("rail-256", "spine-01"), spine2 = desc_id("rail-256", "spine-02");
    builder_unlink(b, spine, 64);
    builder_unlink(b, spine2, 64);
    add_link(b, add_ca(b, 0x31, "Mellanox Technologies AGGREGATION Node"), 1, spine, 64);
    struct node_attrs a = {.guid = 0x41, .sys_guid = 0x0008f10400400009, .type = NODE_CA, .num_ports = 1};
    node_id inside; // shares the switch's SystemImageGUID, whatever it is called
    builder_node(b, &a, "renamed", 7, &inside, NULL);
    add_link(b, inside, 1, spine2, 64);
    a = (struct node_attrs){
        .guid = 0x51, .type = NODE_CA, .num_ports = 1, .vendor_id = 0x2c9, .device_id = 0xcf09};
    builder_node(b, &a, "", 0, &inside, NULL);
    add_node(b, NODE_ROUTER, 0x61, 2, "rt");
    add_ca(b, 0x71, "MF0;SkyWay-1:MGA100/U1");
    add_ca(b, 0x81, "gateway-7 mlx5_0");
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_tiers(f, 8, 4, 0);
    assert_int_equal(fabric_by_guid(f, 0x31)->role, ROLE_AGGREGATION);
    assert_int_equal(fabric_by_guid(f, 0x31)->host, ID_NONE);
    assert_int_equal(fabric_by_guid(f, 0x41)->role, ROLE_AGGREGATION);
    assert_int_equal(fabric_by_guid(f, 0x51)->role, ROLE_AGGREGATION);
    assert_int_equal(fabric_by_guid(f, 0x61)->role, ROLE_ROUTER);
    assert_int_equal(fabric_by_guid(f, 0x71)->role, ROLE_GATEWAY);
    assert_int_equal(fabric_by_guid(f, 0x81)->role, ROLE_HOST);
    fabric_unref(f);
}

static void test_mesh_has_no_tiers(void **state)
{
    struct builder *b = builder_new();
    node_id sw[6];
    for (unsigned i = 0; i < 6; i++) {
        char desc[16];
        snprintf(desc, sizeof(desc), "sw-%u", i);
        sw[i] = add_switch(b, SW_GUID(i), 36, desc);
        for (unsigned k = 0; k < 10; k++)
            add_link(b, add_ca(b, CA_GUID(10 * i + k), ""), 1, sw[i], 1 + k);
    }
    for (unsigned i = 0; i < 6; i++) { // a ring
        for (unsigned k = 0; k < 4; k++)
            add_link(b, sw[i], 20 + k, sw[(i + 1) % 6], 30 + k);
    }
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_int_equal(f->num_tiers, 0);
    assert_int_equal(count_role(f, ROLE_SWITCH), 6);
    assert_int_equal(fabric_switch(f, 0)->tier, TIER_NONE);
    fabric_unref(f);
}

static void test_one_switch(void **state)
{
    struct builder *b = builder_new();
    node_id sw = add_switch(b, SW_GUID(0), 36, "sw");
    add_link(b, add_ca(b, CA_GUID(0), "a mlx5_0"), 1, sw, 1);
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_tiers(f, 1, 0, 0);
    fabric_unref(f);

    b = builder_new();
    add_switch(b, SW_GUID(0), 36, "sw"); // and one that carries nobody
    f = builder_seal(b, 1, NULL);
    assert_int_equal(f->num_tiers, 0);
    assert_int_equal(f->node[0].role, ROLE_SWITCH);
    fabric_unref(f);
}

// ---------------------------------------------------------------- planes

static void test_planes(void **state)
{
    struct builder *b = builder_new();
    node_id small = add_switch(b, 1, 4, "small"), big = add_switch(b, 2, 4, "big"),
            lone = add_ca(b, 9, "lone");
    node_id dual = add_node(b, NODE_CA, 11, 2, "dual"); // a foot in either: joins them not
    add_link(b, dual, 1, big, 1);
    add_link(b, dual, 2, small, 1);
    add_link(b, add_ca(b, 21, "x"), 1, big, 2);
    add_link(b, add_ca(b, 31, "y"), 1, small, 2);
    add_link(b, add_ca(b, 41, "back"), 1, add_ca(b, 51, "to back"), 1);
    struct findings fi = {0};
    const struct fabric *f = builder_seal(b, 1, &fi);
    assert_int_equal(f->num_planes, 4);
    assert_int_equal(fabric_by_guid(f, 9)->plane != 0, 1);
    assert_int_not_equal(fabric_by_guid(f, 1)->plane, fabric_by_guid(f, 2)->plane);
    assert_int_equal(fabric_by_guid(f, 31)->plane, fabric_by_guid(f, 1)->plane);
    assert_int_equal(fabric_by_guid(f, 41)->plane, fabric_by_guid(f, 51)->plane);
    assert_int_equal(count_code(&fi, "separate-part"), 2);
    assert_int_equal(count_code(&fi, "unconnected-node"), 1);
    assert_string_equal(find_code(&fi, "unconnected-node")->where, "lone");
    findings_done(&fi);

    b = builder_from(f); // where the manager sits is the fabric
    builder_sm_port(b, (node_id){(uint32_t)(fabric_by_guid(f, 31) - f->node)}, 1);
    fabric_unref(f);
    f = builder_seal(b, 2, NULL);
    assert_int_equal(fabric_by_guid(f, 1)->plane, 0);
    assert_int_not_equal(fabric_by_guid(f, 2)->plane, 0);
    (void)lone;
    fabric_unref(f);
}

// ---------------------------------------------------------------- names

static void test_adapter_names(void **state)
{
    static const struct {
        const char *desc;
        size_t host_len;
        uint32_t index;
    } t[] = {
        {"gpu-0412 mlx5_3", 8, 3},
        {"gpu-0412 HCA-4", 8, 3},
        {"mgmt-01 mlx5_1 ", 7, 1},
        {"  spaced out mlx4_12", 12, 12},
        {"n1 hfi1_0", 2, 0},
        {"n1 ib2", 2, 2},
        {"host ibp11s0f0", 4, 11 << 16},
        {"host ibp203s0f1", 4, 203 << 16 | 1},
        {"host ibP2p1s0", 4, 2 << 24 | 1 << 16},
        {"MT25408 ConnectX Mellanox Technologies", 0, ADAPTER_NO_INDEX},
        {"mlx5_3", 0, ADAPTER_NO_INDEX},
        {" mlx5_3", 0, ADAPTER_NO_INDEX},
        {"", 0, ADAPTER_NO_INDEX},
        {"   ", 0, ADAPTER_NO_INDEX},
        {"host mlx5_", 0, ADAPTER_NO_INDEX},
        {"host mlx5_3x", 0, ADAPTER_NO_INDEX},
        {"host ibp", 0, ADAPTER_NO_INDEX},
        {"host ibpx", 0, ADAPTER_NO_INDEX},
        {"host ib", 0, ADAPTER_NO_INDEX},
        {"host HCA-", 0, ADAPTER_NO_INDEX},
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct adapter_name a = adapter_name_parse(t[i].desc);
        assert_int_equal(a.host_len, t[i].host_len);
        assert_int_equal(a.index, t[i].index);
    }
    assert_int_equal(adapter_name_parse("h mlx5_99999999999999999999").host_len, 1);
    // In the order of the bus, as the machine numbers them.
    assert_true(adapter_name_parse("h ibp11s0f0").index < adapter_name_parse("h ibp11s0f1").index);
    assert_true(adapter_name_parse("h ibp21s0f0").index < adapter_name_parse("h ibp203s0f0").index);
}

static void test_name_order(void **state)
{
    assert_true(name_compare("leaf-9", "leaf-10") < 0);
    assert_true(name_compare("leaf-10", "leaf-9") > 0);
    assert_true(name_compare("leaf-su01-rail2", "leaf-su1-rail3") < 0);
    assert_int_equal(name_compare("a7", "a007"), 0);
    assert_true(name_compare("", "a") < 0);
    assert_true(name_compare("a", "b") < 0);
    assert_true(name_compare("a1", "a1b") < 0);
    assert_true(name_compare("a99999999999999999999999", "a100000000000000000000000") < 0);
}

static uint32_t host_of(const struct fabric *f, uint64_t guid)
{
    return fabric_by_guid(f, guid)->host;
}

static void test_hosts(void **state)
{
    struct builder *b = builder_new();
    add_ca(b, 10, "gpu-1 mlx5_0");
    add_ca(b, 20, "gpu-1 HCA-8 ");
    add_ca(b, 30, "gpu-10 mlx5_0");
    add_ca(b, 40, "localhost HCA-1");
    add_ca(b, 50, "localhost HCA-2");
    add_ca(b, 60, "MT25408 ConnectX Mellanox Technologies");
    add_ca(b, 70, "MT25408 ConnectX Mellanox Technologies");
    add_ca(b, 80, "twin mlx5_0"); // two machines of one name
    add_ca(b, 90, "twin mlx5_1");
    add_ca(b, 100, "twin mlx5_0");
    add_ca(b, 110, "twin mlx5_1");
    add_ca(b, 120, "twin mlx5_2"); // once each, but whose?
    add_ca(b, 130, "twin mlx5_3");
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_int_equal(host_of(f, 10), host_of(f, 20));
    assert_int_not_equal(host_of(f, 10), host_of(f, 30));
    assert_int_not_equal(host_of(f, 40), host_of(f, 50));
    assert_int_not_equal(host_of(f, 60), host_of(f, 70));
    assert_int_not_equal(host_of(f, 80), host_of(f, 90));
    assert_int_not_equal(host_of(f, 120), host_of(f, 130));
    assert_int_equal(f->num_hosts, 12);
    fabric_unref(f);
}

static void test_hosts_by_system_guid(void **state)
{
    struct builder *b = builder_new();
    for (unsigned i = 0; i < 100; i++) { // 4 without names share one, 96 share what a vendor forgot to set
        struct node_attrs a = {
            .guid = 1 + i, .sys_guid = i < 4 ? 0xaaaa : 0xbbbb, .type = NODE_CA, .num_ports = 1};
        node_id id;
        builder_node(b, &a, "", 0, &id, NULL);
    }
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_int_equal(f->num_hosts, 1 + 96);
    assert_int_equal(host_of(f, 1), host_of(f, 4));
    fabric_unref(f);
}

// A card that was replaced answers beside the new one for a while; the host stays one.
static void test_host_with_one_name_twice(void **state)
{
    struct builder *b = builder_new();
    for (unsigned i = 0; i < 9; i++) {
        char desc[32];
        snprintf(desc, sizeof(desc), "gpu-1 mlx5_%u", i % 8);
        add_ca(b, CA_GUID(i), desc);
    }
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_int_equal(host_of(f, CA_GUID(1)), host_of(f, CA_GUID(7)));
    assert_int_not_equal(host_of(f, CA_GUID(0)), host_of(f, CA_GUID(8)));
    fabric_unref(f);
}

// ---------------------------------------------------------------- rails

static void test_rails(void **state)
{
    const struct fabric *f = topogen_make("rail-1024", NULL);
    assert_int_equal(f->num_rails, 8);
    assert_int_equal(f->num_sus, 4);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[i];
        unsigned su, rail, host;
        if (sscanf(fabric_desc(f, n), "leaf-su%u-rail%u", &su, &rail) == 2) {
            assert_int_equal(n->su, su - 1);
            assert_int_equal(n->rail, rail);
        } else if (sscanf(fabric_desc(f, n), "gpu-%u mlx5_%u", &host, &rail) == 2) {
            assert_int_equal(n->su, (host - 1) / 32);
            assert_int_equal(n->rail, rail);
            assert_int_equal(f->port[n->first_port].rail, rail);
            assert_int_equal(n->host, host - 1);
        } else {
            assert_int_equal(n->su, SU_NONE);
            assert_int_equal(n->rail, RAIL_NONE);
        }
    }
    fabric_unref(f);
}

static void swap_cables(struct builder *b, node_id a, node_id z, const struct fabric *f)
{
    port_id pa = f->port[f->node[a.i].first_port].peer, pz = f->port[f->node[z.i].first_port].peer;
    builder_unlink(b, a, 1);
    builder_unlink(b, z, 1);
    assert_int_equal(builder_link(b, a, 1, f->port[pz.i].node, f->port[pz.i].num), 0);
    assert_int_equal(builder_link(b, z, 1, f->port[pa.i].node, f->port[pa.i].num), 0);
}

static node_id id_of(const struct fabric *f, const char *desc)
{
    return (node_id){(uint32_t)(by_desc(f, desc) - f->node)};
}

static void test_miscabled_rail(void **state)
{
    const struct fabric *f = topogen_make("rail-1024", NULL);
    struct builder *b = builder_from(f);
    swap_cables(b, id_of(f, "gpu-0041 mlx5_3"), id_of(f, "gpu-0041 mlx5_5"), f);
    fabric_unref(f);
    struct findings fi = {0};
    f = builder_seal(b, 2, &fi);
    assert_int_equal(f->num_sus, 4);
    assert_int_equal(f->num_rails, 8);
    assert_int_equal(count_code(&fi, "rail-miscabled"), 2);
    const struct finding *it = find_code(&fi, "rail-miscabled");
    assert_string_equal(it->where, "leaf-su02-rail5[9]");
    assert_string_equal(it->text,
                        "adapter mlx5_3 of gpu-0041 is cabled to rail 5 (leaf-su02-rail5[9]), its place "
                        "is rail 3");
    assert_int_equal(by_desc(f, "gpu-0041 mlx5_3")->rail, 5); // topology first
    assert_int_equal(by_desc(f, "leaf-su02-rail5")->rail, 5);
    findings_done(&fi);
    fabric_unref(f);
}

static void test_miscabled_su(void **state)
{
    const struct fabric *f = topogen_make("rail-1024", NULL);
    struct builder *b = builder_from(f);
    for (unsigned r = 0; r < 8; r++) { // eight hosts, each with one cable in the next SU
        char x[32], y[32];
        snprintf(x, sizeof(x), "gpu-%04u mlx5_%u", 1 + r, r);
        snprintf(y, sizeof(y), "gpu-%04u mlx5_%u", 33 + r, r);
        swap_cables(b, id_of(f, x), id_of(f, y), f);
    }
    fabric_unref(f);
    struct findings fi = {0};
    f = builder_seal(b, 2, &fi);
    assert_int_equal(f->num_sus, 4);
    assert_int_equal(count_code(&fi, "su-miscabled"), 16);
    assert_int_equal(count_code(&fi, "rail-miscabled"), 0);
    assert_int_equal(by_desc(f, "gpu-0001 mlx5_0")->su, 0);
    findings_done(&fi);
    fabric_unref(f);
}

// Rails keep their numbers where a leaf is gone, and an adapter without cable keeps its rail.
static void test_rail_with_holes(void **state)
{
    const struct fabric *f = topogen_make("rail-1024", NULL);
    struct builder *b = builder_from(f);
    builder_remove(b, id_of(f, "leaf-su03-rail2"));
    builder_unlink(b, id_of(f, "gpu-0001 mlx5_6"), 1);
    fabric_unref(f);
    struct findings fi = {0};
    f = builder_seal(b, 2, &fi);
    assert_int_equal(by_desc(f, "leaf-su03-rail3")->rail, 3);
    assert_int_equal(by_desc(f, "leaf-su03-rail7")->rail, 7);
    assert_int_equal(by_desc(f, "gpu-0065 mlx5_2")->rail, 2);
    assert_int_equal(by_desc(f, "gpu-0001 mlx5_6")->rail, 6);
    assert_int_equal(f->num_rails, 8);
    assert_null(find_code(&fi, "rail-miscabled"));
    findings_done(&fi);
    fabric_unref(f);
}

// The numbers come from names and topology, not from the order in which nodes were found.
static void test_numbers_do_not_depend_on_order(void **state)
{
    const struct fabric *f = topogen_make("rail-512", NULL);
    struct rng r;
    rng_init(&r, 3);
    uint32_t *order = malloc(f->num_nodes * sizeof(*order));
    node_id *id = malloc(f->num_nodes * sizeof(*id));
    struct builder *b = builder_new();
    for (uint32_t i = 0; i < f->num_nodes; i++)
        order[i] = i;
    for (uint32_t i = f->num_nodes; i > 1; i--) {
        uint32_t k = rng_below(&r, i), t = order[k];
        order[k] = order[i - 1];
        order[i - 1] = t;
    }
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[order[i]];
        id[order[i]] = add_node(b, (enum node_type)n->type, n->guid, n->num_ports, fabric_desc(f, n));
    }
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (port_valid(p->peer) && p->peer.i > i)
            add_link(b, id[p->node.i], p->num, id[f->port[p->peer.i].node.i], f->port[p->peer.i].num);
    }
    const struct fabric *g = builder_seal(b, 1, NULL);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[i], *m = fabric_by_guid(g, n->guid);
        assert_int_equal(m->su, n->su);
        assert_int_equal(m->rail, n->rail);
        assert_int_equal(m->tier, n->tier);
    }
    free(order);
    free(id);
    fabric_unref(f);
    fabric_unref(g);
}

// All adapters of a host on one leaf: leaves have no rail and nothing is miscabled.
static void test_not_wired_by_rails(void **state)
{
    struct findings fi = {0};
    struct builder *b = spoil("ft3-16-2");
    const struct fabric *f = builder_seal(b, 1, &fi);
    assert_int_equal(fi.n, 0);
    assert_int_equal(by_desc(f, "leaf-p01-01")->rail, RAIL_NONE);
    assert_int_equal(by_desc(f, "gpu-0002 mlx5_5")->rail, 5); // same-index adapters are a rail nevertheless
    findings_done(&fi);
    fabric_unref(f);
}

// Adapters that tell no index: the leaves' order gives the rails.
static void test_rails_without_names(void **state)
{
    struct builder *b = builder_new();
    node_id leaf[4], spine = add_switch(b, SW_GUID(99), 36, "spine");
    for (unsigned r = 0; r < 4; r++) {
        leaf[r] = add_switch(b, SW_GUID(10 - r), 36, "Quantum Mellanox Technologies");
        for (unsigned k = 0; k < 2; k++)
            add_link(b, leaf[r], 30 + k, spine, 1 + 2 * r + k);
    }
    for (unsigned h = 0; h < 10; h++) {
        for (unsigned r = 0; r < 4; r++) {
            struct node_attrs a = {
                .guid = CA_GUID(4 * h + r), .sys_guid = CA_GUID(4 * h), .type = NODE_CA, .num_ports = 1};
            node_id id;
            builder_node(b, &a, "ConnectX", 8, &id, NULL);
            add_link(b, id, 1, leaf[r], 1 + h);
        }
    }
    const struct fabric *f = builder_seal(b, 1, NULL);
    assert_int_equal(f->num_sus, 1);
    assert_int_equal(f->num_rails, 4);
    for (unsigned r = 0; r < 4; r++)
        assert_int_equal(fabric_by_guid(f, SW_GUID(10 - r))->rail, 3 - r);
    assert_int_equal(fabric_by_guid(f, CA_GUID(0))->rail, 3);

    for (unsigned away = 0; away < 4; away++) {
        b = builder_from(f);
        builder_remove(b, (node_id){(uint32_t)(fabric_by_guid(f, SW_GUID(10 - away)) - f->node)});
        builder_numbers_from(b, f);
        const struct fabric *g = builder_seal(b, 2, NULL);
        for (uint32_t i = 0; i < g->num_nodes; i++)
            assert_int_equal(g->node[i].rail, fabric_by_guid(f, g->node[i].guid)->rail);
        fabric_unref(g);
    }
    fabric_unref(f);
}

// ---------------------------------------------------------------- numbers that are kept

// All that is in both has the numbers of f, adapters without a cable too.
static void assert_same_numbers(const struct fabric *f, const struct fabric *g)
{
    for (uint32_t i = 0; i < g->num_nodes; i++) {
        const struct node *n = fabric_by_guid(f, g->node[i].guid);
        if (n == NULL)
            continue;
        assert_int_equal(g->node[i].rail, n->rail);
        if (n->type == NODE_SWITCH || port_valid(g->port[g->node[i].first_port].peer))
            assert_int_equal(g->node[i].su, n->su);
        for (unsigned k = 0; k < n->num_ports; k++)
            assert_int_equal(g->port[g->node[i].first_port + k].rail, f->port[n->first_port + k].rail);
    }
}

// Of f without these leaves.
static const struct fabric *without(const struct fabric *f, const char *const *leaf, struct findings *fi)
{
    struct builder *b = builder_from(f);
    for (unsigned i = 0; leaf[i]; i++)
        builder_remove(b, id_of(f, leaf[i]));
    builder_numbers_from(b, f);
    return builder_seal(b, 2, fi);
}

static void test_numbers_stay(void **state)
{
    static const char *const away[][9] = {
        {NULL},
        {"leaf-su01-rail3", NULL},
        {"leaf-su01-rail0", "leaf-su01-rail7", NULL},
        {"leaf-su01-rail0", "leaf-su01-rail1", "leaf-su01-rail2", "leaf-su01-rail3", "leaf-su01-rail5",
         "leaf-su01-rail6", "leaf-su01-rail7", NULL},
    };
    const struct fabric *f = topogen_make("rail-256", NULL);
    for (unsigned i = 0; i < 4; i++) {
        struct findings fi = {0};
        const struct fabric *g = without(f, away[i], &fi);
        assert_same_numbers(f, g);
        assert_int_equal(by_desc(g, "leaf-su01-rail4")->rail, 4);
        assert_null(find_code(&fi, "rail-miscabled"));
        findings_done(&fi);
        fabric_unref(g);
    }
    fabric_unref(f);
}

// In each SU another rail, and of one SU all.
static void test_numbers_stay_in_units(void **state)
{
    static const char *const away[] = {"leaf-su01-rail3",
                                       "leaf-su02-rail0",
                                       "leaf-su02-rail5",
                                       "leaf-su03-rail0",
                                       "leaf-su03-rail1",
                                       "leaf-su03-rail2",
                                       "leaf-su03-rail3",
                                       "leaf-su03-rail4",
                                       "leaf-su03-rail5",
                                       "leaf-su03-rail6",
                                       "leaf-su03-rail7",
                                       "leaf-su04-rail4",
                                       NULL};
    const struct fabric *f = topogen_make("rail-1024", NULL);
    struct findings fi = {0};
    const struct fabric *g = without(f, away, &fi);
    assert_same_numbers(f, g);
    assert_int_equal(by_desc(g, "leaf-su04-rail5")->su, 3);
    assert_int_equal(by_desc(g, "leaf-su04-rail5")->rail, 5);
    assert_int_equal(by_desc(g, "leaf-su02-rail6")->rail, 6);
    assert_int_equal(g->num_sus, 4);
    assert_int_equal(g->num_rails, 8);
    assert_null(find_code(&fi, "rail-miscabled"));
    findings_done(&fi);
    fabric_unref(g);
    fabric_unref(f);
}

// A finding speaks of rails as everybody else does.
static void test_numbers_in_findings(void **state)
{
    const struct fabric *f = topogen_make("rail-256", NULL);
    struct builder *b = builder_from(f);
    swap_cables(b, id_of(f, "gpu-0009 mlx5_3"), id_of(f, "gpu-0009 mlx5_5"), f);
    builder_remove(b, id_of(f, "leaf-su01-rail0"));
    builder_numbers_from(b, f);
    struct findings fi = {0};
    const struct fabric *g = builder_seal(b, 2, &fi);
    assert_string_equal(find_code(&fi, "rail-miscabled")->text,
                        "adapter mlx5_3 of gpu-0009 is cabled to rail 5 (leaf-su01-rail5[9]), its place "
                        "is rail 3");
    findings_done(&fi);
    fabric_unref(g);
    fabric_unref(f);
}

// The switch of rail 3 is another one now: its adapters tell. Rail 5 is away, and a ninth one is new: it does
// not take the place.
static void test_numbers_of_what_is_new(void **state)
{
    const struct fabric *f = topogen_make("rail-256", NULL);
    struct builder *b = builder_from(f);
    node_id other = add_switch(b, 0x99, 64, "leaf-new"), ninth = add_switch(b, 0x9b, 64, "leaf-a");
    builder_remove(b, id_of(f, "leaf-su01-rail3"));
    builder_remove(b, id_of(f, "leaf-su01-rail5"));
    for (unsigned h = 1; h <= 32; h++) {
        char desc[32];
        snprintf(desc, sizeof(desc), "gpu-%04u mlx5_3", h);
        add_link(b, id_of(f, desc), 1, other, h);
        snprintf(desc, sizeof(desc), "gpu-%04u mlx5_8", h);
        add_link(b, add_ca(b, 0x88880000 + 2 * h, desc), 1, ninth, h);
    }
    builder_numbers_from(b, f);
    const struct fabric *g = builder_seal(b, 2, NULL);
    assert_same_numbers(f, g);
    assert_int_equal(by_desc(g, "leaf-new")->rail, 3);
    assert_int_equal(by_desc(g, "leaf-a")->rail, 8);
    assert_int_equal(by_desc(g, "gpu-0007 mlx5_8")->rail, 8);
    assert_int_equal(g->num_rails, 9);
    fabric_unref(g);
    fabric_unref(f);
}

// Nothing known changes nothing; nor do units whose leaves have no rails.
static void test_numbers_of_others(void **state)
{
    const char *const none[] = {NULL};
    const struct fabric *f = topogen_make("rail-512", NULL), *other = topogen_make("ft3-8-4", NULL);
    const struct fabric *empty = builder_seal(builder_new(), 1, NULL), *known[] = {empty, NULL};
    for (unsigned i = 0; i < 2; i++) {
        struct builder *b = builder_from(f);
        builder_numbers_from(b, known[i]);
        const struct fabric *g = builder_seal(b, 2, NULL);
        assert_same_numbers(f, g);
        fabric_unref(g);
    }
    const struct fabric *g = without(other, none, NULL);
    assert_same_numbers(other, g);
    fabric_unref(g);
    fabric_unref(empty);
    fabric_unref(other);
    fabric_unref(f);
}

// Four leaves under a spine; adapter a of host h is on leaf place(h, a).
static const struct fabric *four_leaves(bool named, unsigned (*place)(unsigned h, unsigned a),
                                        struct findings *fi)
{
    struct builder *b = builder_new();
    node_id leaf[4], spine = add_switch(b, SW_GUID(99), 36, "spine");
    unsigned used[4] = {0};
    for (unsigned r = 0; r < 4; r++) {
        char desc[16];
        snprintf(desc, sizeof(desc), "leaf-%u", r);
        leaf[r] = add_switch(b, SW_GUID(r), 200, desc);
        add_link(b, leaf[r], 200, spine, 1 + r);
    }
    for (unsigned q = 0; q < 40 * 4; q++) {
        char desc[32] = "ConnectX";
        unsigned h = q / 4, l = place(h, q % 4);
        if (named)
            snprintf(desc, sizeof(desc), "gpu-%u mlx5_%u", h, q % 4);
        struct node_attrs a = {
            .guid = CA_GUID(q), .sys_guid = CA_GUID(4 * h), .type = NODE_CA, .num_ports = 1};
        node_id id;
        builder_node(b, &a, desc, strlen(desc), &id, NULL);
        add_link(b, id, 1, leaf[l], ++used[l]);
    }
    return builder_seal(b, 1, fi);
}

static unsigned place_anyhow(unsigned h, unsigned a)
{
    return (a + h) % 4;
}

static unsigned place_paired(unsigned h, unsigned a)
{
    return a / 2;
}

static void assert_no_leaf_rails(const struct fabric *f)
{
    assert_int_equal(f->num_tiers, 2);
    for (unsigned r = 0; r < 4; r++)
        assert_int_equal(fabric_by_guid(f, SW_GUID(r))->rail, RAIL_NONE);
}

// Every host on all leaves, but each in its own order: no rails, and no flood of findings.
static void test_spread_without_order(void **state)
{
    struct findings fi = {0};
    const struct fabric *f = four_leaves(true, place_anyhow, &fi);
    assert_no_leaf_rails(f);
    assert_int_equal(f->num_sus, 1);
    assert_null(find_code(&fi, "rail-miscabled"));
    findings_done(&fi);
    fabric_unref(f);
}

static void test_two_adapters_a_leaf(void **state)
{
    struct findings fi = {0};
    const struct fabric *f = four_leaves(false, place_paired, &fi);
    assert_no_leaf_rails(f);
    assert_int_equal(f->num_sus, 1);
    findings_done(&fi);
    fabric_unref(f);
}

// A management host numbers its two adapters for itself; that is no crossed cable.
static void test_management_host_on_rails(void **state)
{
    struct builder *b = spoil("rail-256");
    builder_unlink(b, desc_id("rail-256", "leaf-su01-rail5"), 32);
    builder_unlink(b, desc_id("rail-256", "leaf-su01-rail6"), 32);
    add_link(b, add_ca(b, 1, "mgmt mlx5_0"), 1, desc_id("rail-256", "leaf-su01-rail5"), 32);
    add_link(b, add_ca(b, 3, "mgmt mlx5_1"), 1, desc_id("rail-256", "leaf-su01-rail6"), 32);
    struct findings fi = {0};
    const struct fabric *f = builder_seal(b, 1, &fi);
    assert_null(find_code(&fi, "rail-miscabled"));
    findings_done(&fi);
    fabric_unref(f);
}

// ---------------------------------------------------------------- saved fabrics of real sites

static const struct fabric *saved(const char *file, struct findings *fi)
{
    const char *shared = getenv("WEFT_SHARED");
    char path[500];
    snprintf(path, sizeof(path), "%s/fabrics/ibnetdiscover/%s", shared ? shared : SOURCE_ROOT "/../shared",
             file);
    if (access(path, R_OK) != 0) {
        print_message("skipped: no %s\n", path);
        skip();
    }
    const struct fabric *f = reader_load(path, fi, NULL);
    assert_non_null(f);
    return f;
}

static void test_saved_superpod(void **state)
{
    struct findings fi = {0};
    const struct fabric *f = saved("hdr-superpod-compute-4341ca.txt", &fi);
    assert_tiers(f, 204, 322, 140);
    assert_int_equal(count_role(f, ROLE_AGGREGATION), 666);
    assert_int_equal(f->num_rails, 8);
    for (uint32_t s = 0; s < f->num_switches; s++) { // the site's names: LG<su>-<rail>, SPINE, CORE
        const struct node *n = fabric_switch(f, s);
        const char *desc = fabric_desc(f, n);
        unsigned su, rail;
        if (sscanf(desc, "MF0;LG%u-%u:", &su, &rail) == 2) {
            assert_int_equal(n->rail, rail - 1);
            assert_int_equal(n->tier, 0);
        } else if (strstr(desc, "SPINE")) {
            assert_int_equal(n->role, ROLE_SPINE);
        } else if (strstr(desc, "CORE")) {
            assert_int_equal(n->role, ROLE_CORE);
        } else {
            assert_int_equal(n->role, ROLE_LEAF);
        }
    }
    assert_null(find_code(&fi, "rail-miscabled"));
    findings_done(&fi);
    fabric_unref(f);
}

static void test_saved_director(void **state)
{
    struct findings fi = {0};
    const struct fabric *f = saved("hdr-director-cs8500-2328ca-puttylog-crlf.txt", &fi);
    assert_tiers(f, 160, 160, 80);
    for (uint32_t s = 0; s < f->num_switches; s++) { // line and spine boards of the chassis
        const struct node *n = fabric_switch(f, s);
        const char *board = strstr(fabric_desc(f, n), "MCS8500/");
        assert_int_equal(n->tier, !board ? 0 : board[8] == 'L' ? 1 : 2);
    }
    findings_done(&fi);
    fabric_unref(f);
}

static void test_saved_rails(void **state)
{
    struct findings fi = {0};
    const struct fabric *f = saved("ndr-rail8-256ca-ibdiagnet-port-labels.txt", &fi);
    assert_tiers(f, 8, 1, 0);
    assert_int_equal(f->num_hosts, 32);
    assert_int_equal(f->num_rails, 8);
    assert_int_equal(f->num_sus, 1);
    assert_int_equal(count_role(f, ROLE_AGGREGATION), 7);
    fabric_unref(f);

    f = saved("ndr-dgx-rail-582ca.txt", &fi);
    assert_tiers(f, 31, 9, 0);
    assert_int_equal(f->num_rails, 4);
    // Two adapters of one host are crossed there, and nothing else is.
    assert_int_equal(count_code(&fi, "rail-miscabled"), 2);
    assert_int_equal(count_code(&fi, "su-miscabled"), 0);
    fabric_unref(f);
    findings_done(&fi);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hosts_on_spines_and_cores),
        cmocka_unit_test(test_leaf_without_hosts),
        cmocka_unit_test(test_pod_nearly_empty),
        cmocka_unit_test(test_branch_without_hosts),
        cmocka_unit_test(test_aggregation_nodes),
        cmocka_unit_test(test_mesh_has_no_tiers),
        cmocka_unit_test(test_one_switch),
        cmocka_unit_test(test_planes),
        cmocka_unit_test(test_adapter_names),
        cmocka_unit_test(test_name_order),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_hosts_by_system_guid),
        cmocka_unit_test(test_host_with_one_name_twice),
        cmocka_unit_test(test_rails),
        cmocka_unit_test(test_miscabled_rail),
        cmocka_unit_test(test_miscabled_su),
        cmocka_unit_test(test_rail_with_holes),
        cmocka_unit_test(test_numbers_do_not_depend_on_order),
        cmocka_unit_test(test_not_wired_by_rails),
        cmocka_unit_test(test_rails_without_names),
        cmocka_unit_test(test_numbers_stay),
        cmocka_unit_test(test_numbers_stay_in_units),
        cmocka_unit_test(test_numbers_in_findings),
        cmocka_unit_test(test_numbers_of_what_is_new),
        cmocka_unit_test(test_numbers_of_others),
        cmocka_unit_test(test_spread_without_order),
        cmocka_unit_test(test_two_adapters_a_leaf),
        cmocka_unit_test(test_management_host_on_rails),
        cmocka_unit_test(test_saved_superpod),
        cmocka_unit_test(test_saved_director),
        cmocka_unit_test(test_saved_rails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
