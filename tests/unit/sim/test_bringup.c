// SPDX-License-Identifier: Apache-2.0
// A whole bring-up by hand on a generated fabric: discovery, LIDs, tables, states; then every pair is routed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "lib/mono.h"
#include "tests/unit/sim/client.h"

static void discovery_names_both_ends(void **state)
{
    struct rig r;
    rig_start(&r, rig_fabric("ft3-4-4"), NULL);
    for (uint32_t i = 0; i < r.f->num_nodes; i++) {
        const struct node *n = &r.f->node[i];
        struct dest d = rig_path(&r, n->guid);
        uint8_t data[64] = {0};
        struct mad_node_info ni;
        assert_int_equal(rig_smp(&r, &d, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), 0);
        mad_node_info_decode(data, &ni);
        assert_true(ni.node_guid == n->guid);
        assert_int_equal(ni.node_type, n->type);
        assert_int_equal(ni.num_ports, n->num_ports);
        memset(data, 0, sizeof(data));
        assert_int_equal(rig_smp(&r, &d, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION, 0, data), 0);
        assert_memory_equal(data, fabric_desc(r.f, n), strlen(fabric_desc(r.f, n)));
        // the port it was reached by
        if (d.to.hops == 0)
            continue;
        struct dest before = d;
        const struct port *p = NULL;
        const struct node *at = fabric_by_guid(r.f, r.port.node_guid);
        for (unsigned h = 1; h <= d.to.hops; h++) {
            p = fabric_port(r.f, fabric_port(r.f, fabric_port_at(r.f, at, before.to.path[h]))->peer);
            at = fabric_node(r.f, p->node);
        }
        assert_int_equal(ni.local_port_num, p->num);
    }
    rig_stop(&r);
}

static void all_pairs_are_routed(void **state)
{
    struct rig r;
    rig_start(&r, rig_fabric("ft3-4-4"), NULL);
    rig_bring_up(&r);
    for (uint32_t a = 0; a < r.f->num_nodes; a++)
        for (uint32_t z = 0; z < r.f->num_nodes; z++) {
            const struct node *n = &r.f->node[a];
            const struct port *from = fabric_port(r.f, (port_id){n->first_port});
            char where[200] = "";
            int hops = sim_trace(r.s, from->guid, rig_lid_of(&r, r.f->node[z].guid), where, sizeof(where));
            if (hops < 0 || (a == z) != (hops == 0))
                fail_msg("%s to %s: %d %s", fabric_desc(r.f, n), fabric_desc(r.f, &r.f->node[z]), hops,
                         where);
        }
    // and MADs follow
    for (uint32_t z = 0; z < r.f->num_nodes; z++) {
        struct dest d = by_lid(rig_lid_of(&r, r.f->node[z].guid));
        uint8_t data[192] = {0};
        struct mad_node_info ni;
        assert_int_equal(rig_smp(&r, &d, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), 0);
        mad_node_info_decode(data, &ni);
        assert_true(ni.node_guid == r.f->node[z].guid);
        memset(data, 0, sizeof(data));
        assert_int_equal(rig_pma(&r, d.lid, MAD_METHOD_GET, MAD_ATTR_CLASS_PORT_INFO, data), 0);
    }
    rig_stop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(discovery_names_both_ends),
        cmocka_unit_test(all_pairs_are_routed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
