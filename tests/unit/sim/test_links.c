// SPDX-License-Identifier: Apache-2.0
// What happens to a fabric that is up: links down and up with their traps, repeats and TrapRepress, reboots,
// dead nodes, recabling, M_Key, IsSM and SMInfo, GMPs to a manager.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "fabric/builder.h"
#include "lib/err.h"
#include "lib/mono.h"
#include "tests/unit/sim/client.h"

static struct rig rig;
static uint64_t leaf_guid, agg_guid, host_guid; // the manager's leaf, a switch above it, a far host
static unsigned up_port, agg_port;              // of the leaf to the agg, and its end there
static struct transport *other;                 // at the far host

static int setup_opts(const struct sim_opts *o)
{
    rig_start(&rig, rig_fabric("ft3-4-4"), o);
    struct err e;
    assert_int_equal(rig.t->ops->issm(rig.t, true, &e), 0);
    const struct port *mine = fabric_port(rig.f, fabric_by_port_guid(rig.f, rig.port.port_guid));
    const struct node *leaf = fabric_peer_node(rig.f, mine);
    leaf_guid = leaf->guid;
    for (unsigned i = 1; i <= leaf->num_ports; i++) {
        const struct port *p = fabric_port(rig.f, fabric_port_at(rig.f, leaf, i));
        if (fabric_peer_node(rig.f, p)->type != NODE_SWITCH)
            continue;
        up_port = i;
        agg_guid = fabric_peer_node(rig.f, p)->guid;
        agg_port = fabric_port(rig.f, p->peer)->num;
    }
    for (uint32_t i = 0; i < rig.f->num_nodes; i++)
        if (rig.f->node[i].type == NODE_CA && rig.f->node[i].guid != rig.port.node_guid)
            host_guid = rig.f->node[i].guid;
    rig_bring_up(&rig);
    other = sim_attach(rig.s,
                       fabric_port(rig.f, (port_id){fabric_by_guid(rig.f, host_guid)->first_port})->guid, &e);
    assert_non_null(other);
    other->recv = rig_recv;
    other->recv_arg = &rig;
    return 0;
}

static int setup(void **state)
{
    return setup_opts(NULL);
}

static int teardown(void **state)
{
    if (other)
        other->ops->free(other);
    rig_stop(&rig);
    return 0;
}

static uint64_t field(uint64_t guid, unsigned port, const char *name)
{
    uint64_t v = 0;
    assert_int_equal(sim_port_field(rig.s, guid, port, name, &v), 0);
    return v;
}

static uint64_t switch_field(uint64_t guid, const char *name)
{
    uint64_t v = 0;
    assert_int_equal(sim_switch_field(rig.s, guid, name, &v), 0);
    return v;
}

static void repress(const uint8_t *trap, uint16_t lid)
{
    uint8_t mad[MAD_SIZE];
    struct mad_addr to = {.lid = lid};
    memcpy(mad, trap, MAD_SIZE);
    mad[3] = MAD_METHOD_TRAP_REPRESS;
    assert_int_equal(rig.t->ops->send(rig.t, mad, &to, 0), 0);
}

static void count(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    (*(unsigned *)arg)++;
}

static void link_down_and_up(void **state)
{
    assert_int_equal(sim_link_set(rig.s, leaf_guid, up_port, false), 0);
    assert_int_equal(field(leaf_guid, up_port, "port_state"), MAD_PORT_DOWN);
    assert_int_equal(field(agg_guid, agg_port, "port_state"), MAD_PORT_DOWN);
    assert_int_equal(field(agg_guid, agg_port, "port_physical_state"), MAD_PHYS_POLLING);
    assert_int_equal(switch_field(leaf_guid, "port_state_change"), 1);
    assert_int_equal(switch_field(agg_guid, "port_state_change"), 1);
    rig_run(&rig, MONO_MS);
    assert_true(rig.traps[128] >= 1); // the agg's may have had to cross that link
    struct mad_smp smp;
    struct mad_notice n;
    mad_smp_decode(rig.other, &smp);
    assert_int_equal(smp.mgmt_class, MAD_CLASS_SM_LID);
    mad_notice_decode(rig.other + 64, &n);
    assert_int_equal(n.is_generic, 1);
    assert_int_equal(n.producer_type, MAD_PRODUCER_SWITCH);
    assert_int_equal(n.issuer_lid, rig.other_from.lid);
    struct mad_trap_128 d;
    mad_trap_128_decode(n.data_details, &d);
    assert_int_equal(d.lid, n.issuer_lid);
    uint64_t downed;
    assert_int_equal(sim_counter_get(rig.s, leaf_guid, up_port, SIM_LINK_DOWNED, &downed), 0);
    assert_int_equal(downed, 1);
    // again: nothing new
    unsigned before = rig.traps[128];
    assert_int_equal(sim_link_set(rig.s, agg_guid, agg_port, false), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.traps[128], before);
    assert_int_equal(sim_link_set(rig.s, agg_guid, agg_port, true), 0);
    assert_int_equal(field(leaf_guid, up_port, "port_state"), MAD_PORT_INIT);
    assert_int_equal(field(leaf_guid, up_port, "link_width_active"), MAD_WIDTH_4X);
    assert_int_equal(field(leaf_guid, up_port, "link_speed_ext_active"), MAD_SPEED_EXT_HDR);
    rig_run(&rig, MONO_MS);
    assert_true(rig.traps[128] > before);
    assert_int_equal(sim_link_set(rig.s, 12345, 1, true), -2);
    assert_int_equal(sim_link_set(rig.s, leaf_guid, 9, true), -2);
}

static void traps_repeat_until_repressed(void **state)
{
    assert_int_equal(sim_raise_trap(rig.s, leaf_guid, 2, 129), 0);
    assert_int_equal(sim_raise_trap(rig.s, leaf_guid, 2, 127), -22);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.traps[129], 1);
    struct mad_notice n;
    struct mad_trap_129 d;
    mad_notice_decode(rig.other + 64, &n);
    mad_trap_129_decode(n.data_details, &d);
    assert_int_equal(d.port_num, 2);
    assert_int_equal(d.lid, rig_lid_of(&rig, leaf_guid));
    rig_run(&rig, 2500 * MONO_MS); // 4.096 us x 2^18 = 1.07 s
    assert_int_equal(rig.traps[129], 3);
    repress(rig.other, rig_lid_of(&rig, leaf_guid));
    rig_run(&rig, 10 * MONO_S);
    assert_int_equal(rig.traps[129], 3);
    // TrapRepress is for its own trap
    assert_int_equal(sim_raise_trap(rig.s, leaf_guid, 2, 130), 0);
    rig_run(&rig, MONO_MS);
    rig.other[64 + 5] = 131;
    repress(rig.other, rig_lid_of(&rig, leaf_guid));
    rig_run(&rig, 1500 * MONO_MS);
    assert_int_equal(rig.traps[130], 2);
    repress(rig.other, rig_lid_of(&rig, leaf_guid));
    // a new one begins anew
    assert_int_equal(sim_raise_trap(rig.s, leaf_guid, 2, 129), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.traps[129], 4);
}

static void port_state_change_is_not_set_by_own_set(void **state)
{
    struct dest leaf = by_lid(rig_lid_of(&rig, leaf_guid));
    assert_int_equal(switch_field(leaf_guid, "port_state_change"),
                     0); // after the ARMED and ACTIVE of bring-up
    assert_int_equal(switch_field(agg_guid, "port_state_change"), 0);
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, &leaf, up_port, &pi), 0);
    pi.port_state = MAD_PORT_DOWN;
    pi.port_physical_state = MAD_PHYS_DISABLED;
    assert_int_equal(rig_set_port(&rig, &leaf, up_port, &pi), 0);
    assert_int_equal(switch_field(leaf_guid, "port_state_change"), 0);
    assert_int_equal(switch_field(agg_guid, "port_state_change"), 1);
}

static void both_ends_announce_a_new_link(void **state)
{
    assert_int_equal(sim_link_set(rig.s, leaf_guid, up_port, false), 0);
    for (unsigned k = 0; k < 2; k++) { // cleared, as a manager does before it reads the ports
        uint64_t guid = k ? agg_guid : leaf_guid;
        struct dest d = by_lid(rig_lid_of(&rig, guid));
        if (k) { // the shortest way is the one that is cut
            d = rig_path(&rig, leaf_guid);
            const struct node *n = fabric_by_guid(rig.f, leaf_guid);
            for (unsigned p = 1; p <= n->num_ports; p++) {
                const struct port *lp = fabric_port(rig.f, fabric_port_at(rig.f, n, p));
                if (p != up_port && fabric_peer_node(rig.f, lp)->type == NODE_SWITCH)
                    d = dest_plus(rig_path(&rig, leaf_guid), p);
            }
            const struct node *agg2 = NULL, *an = fabric_by_guid(rig.f, agg_guid);
            agg2 = fabric_peer_node(rig.f, fabric_port(rig.f, fabric_port_at(rig.f, n, d.to.path[2])));
            // down to the pod's other leaf and up to the agg
            for (unsigned p = 1; p <= agg2->num_ports; p++) {
                const struct node *z =
                    fabric_peer_node(rig.f, fabric_port(rig.f, fabric_port_at(rig.f, agg2, p)));
                if (z == n)
                    continue;
                for (unsigned q = 1; q <= z->num_ports; q++)
                    if (fabric_peer_node(rig.f, fabric_port(rig.f, fabric_port_at(rig.f, z, q))) == an &&
                        d.to.hops == 2)
                        d = dest_plus(dest_plus(d, p), q);
            }
        }
        uint8_t data[64] = {0};
        struct mad_switch_info si;
        assert_int_equal(rig_smp(&rig, &d, MAD_METHOD_GET, MAD_ATTR_SWITCH_INFO, 0, data), 0);
        mad_switch_info_decode(data, &si);
        assert_int_equal(si.port_state_change, 1);
        assert_int_equal(rig_smp(&rig, &d, MAD_METHOD_SET, MAD_ATTR_SWITCH_INFO, 0, data), 0);
        assert_int_equal(switch_field(guid, "port_state_change"), 0);
    }
    assert_int_equal(sim_link_set(rig.s, leaf_guid, up_port, true), 0);
    assert_int_equal(switch_field(leaf_guid, "port_state_change"), 1);
    assert_int_equal(switch_field(agg_guid, "port_state_change"), 1);
}

static void local_changes(void **state)
{
    struct mad_notice n;
    struct mad_trap_144 d;
    assert_int_equal(sim_node_desc(rig.s, host_guid, "renamed"), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.traps[144], 1);
    mad_notice_decode(rig.other + 64, &n);
    mad_trap_144_decode(n.data_details, &d);
    assert_int_equal(n.producer_type, MAD_PRODUCER_CA);
    assert_int_equal(d.node_description_change, 1);
    assert_int_equal(d.other_local_changes, 1);
    struct err e;
    assert_int_equal(other->ops->issm(other, true, &e), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.traps[144], 2);
    mad_notice_decode(rig.other + 64, &n);
    mad_trap_144_decode(n.data_details, &d);
    assert_int_equal(d.node_description_change, 0);
    assert_true(d.capability_mask & MAD_CAP_IS_SM);
}

static void sm_info_goes_to_the_manager(void **state)
{
    struct err e;
    struct dest host = by_lid(rig_lid_of(&rig, host_guid)), path = rig_path(&rig, host_guid);
    uint8_t data[64] = {0};
    assert_int_equal(rig_smp(&rig, &host, MAD_METHOD_GET, MAD_ATTR_SM_INFO, 0, data),
                     MAD_STATUS_BAD_METHOD_ATTR);
    assert_int_equal(other->ops->issm(other, true, &e), 0);
    assert_true(field(host_guid, 1, "capability_mask") & MAD_CAP_IS_SM);
    rig_run(&rig, MONO_MS);
    repress(rig.other, host.lid);
    for (unsigned dr = 0; dr < 2; dr++) {
        unsigned before = rig.others;
        assert_int_equal(rig_smp(&rig, dr ? &path : &host, MAD_METHOD_GET, MAD_ATTR_SM_INFO, 0, data), -1);
        assert_int_equal(rig.others, before + 1);
        assert_int_equal(rig.other_from.lid, dr ? MAD_LID_PERMISSIVE : rig_lid_of(&rig, rig.port.node_guid));
        uint8_t answer[MAD_SIZE];
        memcpy(answer, rig.other, MAD_SIZE);
        answer[3] = MAD_METHOD_GET_RESP;
        answer[4] = dr ? 0x80 : 0;
        answer[64] = 0x77;
        rig.got = false;
        assert_int_equal(other->ops->send(other, answer, &rig.other_from, 0), 0);
        assert_true(loop_run_until(rig.l, &rig.got, MONO_S));
        assert_int_equal(rig.answer[64], 0x77);
        assert_int_equal(rig.answer[6], 0); // hop pointer is back
    }
    // a second manager on the port, and one that went
    struct transport *third = sim_attach(
        rig.s, fabric_port(rig.f, (port_id){fabric_by_guid(rig.f, host_guid)->first_port})->guid, &e);
    assert_int_equal(third->ops->issm(third, true, &e), -16);
    third->ops->free(third);
    assert_int_equal(other->ops->issm(other, false, &e), 0);
    assert_false(field(host_guid, 1, "capability_mask") & MAD_CAP_IS_SM);
    assert_int_equal(rig_smp(&rig, &host, MAD_METHOD_GET, MAD_ATTR_SM_INFO, 0, data),
                     MAD_STATUS_BAD_METHOD_ATTR);
}

static void sa_requests_reach_the_manager(void **state)
{
    uint8_t mad[MAD_SIZE] = {0};
    mad[0] = 1;
    mad[1] = MAD_CLASS_SA;
    mad[2] = 2;
    mad[3] = MAD_METHOD_GET;
    mad[15] = 99;
    mad[17] = 1;
    struct mad_addr to = {
        .lid = rig_lid_of(&rig, rig.port.node_guid), .qp = 1, .qkey = MAD_QP1_Q_KEY, .grh_present = true};
    assert_int_equal(other->ops->send(other, mad, &to, 0), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.others, 1);
    assert_int_equal(rig.other[1], MAD_CLASS_SA);
    assert_int_equal(rig.other_from.lid, rig_lid_of(&rig, host_guid));
    assert_int_equal(rig.other_from.qp, 1);
    assert_true(rig.other_from.grh_present);
    assert_int_equal(rig.other_from.gid[0], 0xfe);
    // the link towards it not ACTIVE: SMPs pass, GMPs do not
    assert_int_equal(sim_link_set(rig.s, host_guid, 1, false), 0);
    assert_int_equal(sim_link_set(rig.s, host_guid, 1, true), 0);
    assert_int_equal(other->ops->send(other, mad, &to, 0), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.classes[MAD_CLASS_SA], 1);
    uint8_t data[192] = {0};
    struct dest host = by_lid(rig_lid_of(&rig, host_guid));
    assert_int_equal(rig_smp(&rig, &host, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), 0);
    assert_int_equal(rig_pma(&rig, host.lid, MAD_METHOD_GET, MAD_ATTR_CLASS_PORT_INFO, data), -1);
}

static void reports_go_to_who_is_no_manager(void **state)
{
    struct err e;
    unsigned sm = 0, tool = 0;
    struct transport *third = sim_attach(
        rig.s, fabric_port(rig.f, (port_id){fabric_by_guid(rig.f, host_guid)->first_port})->guid, &e);
    other->recv = third->recv = count;
    other->recv_arg = &sm;
    third->recv_arg = &tool;
    uint8_t mad[MAD_SIZE] = {1, MAD_CLASS_SA, 2, MAD_METHOD_REPORT};
    struct mad_addr to = {.lid = rig_lid_of(&rig, host_guid), .qp = 1};
    for (unsigned which = 0; which < 2; which++) {
        struct transport *m = which ? third : other;
        assert_int_equal(m->ops->issm(m, true, &e), 0);
        sm = tool = 0;
        other->recv_arg = which ? &tool : &sm;
        third->recv_arg = which ? &sm : &tool;
        mad[3] = MAD_METHOD_REPORT;
        assert_int_equal(rig.t->ops->send(rig.t, mad, &to, 0), 0);
        mad[3] = MAD_METHOD_GET;
        assert_int_equal(rig.t->ops->send(rig.t, mad, &to, 0), 0);
        assert_int_equal(rig.t->ops->send(rig.t, mad, &to, 0), 0);
        rig_run(&rig, MONO_MS);
        assert_int_equal(tool, 1);
        assert_int_equal(sm, 2);
        assert_int_equal(m->ops->issm(m, false, &e), 0);
    }
    third->ops->free(third);
}

static void armed_port_goes_active_with_traffic(void **state)
{
    // both ends down to INIT, then ARMED, then the switch's end ACTIVE: a GMP makes the host's ACTIVE
    const struct port *hp = fabric_port(rig.f, (port_id){fabric_by_guid(rig.f, host_guid)->first_port});
    uint64_t sw = fabric_peer_node(rig.f, hp)->guid;
    unsigned num = fabric_port(rig.f, hp->peer)->num;
    assert_int_equal(sim_link_set(rig.s, host_guid, 1, false), 0);
    assert_int_equal(sim_link_set(rig.s, host_guid, 1, true), 0);
    struct dest host = rig_path(&rig, host_guid), near = rig_path(&rig, sw);
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
    assert_int_equal(pi.lid, rig_lid_of(&rig, host_guid)); // kept over a flap
    pi.port_physical_state = 0;
    pi.port_state = MAD_PORT_ARMED;
    assert_int_equal(rig_set_port(&rig, &host, 0, &pi), 0);
    for (unsigned st = MAD_PORT_ARMED; st <= MAD_PORT_ACTIVE; st++) {
        assert_int_equal(rig_get_port(&rig, &near, num, &pi), 0);
        pi.port_physical_state = 0;
        pi.port_state = (uint8_t)st;
        assert_int_equal(rig_set_port(&rig, &near, num, &pi), 0);
    }
    assert_int_equal(field(host_guid, 1, "port_state"), MAD_PORT_ARMED);
    uint8_t data[192] = {0};
    // but the host's own data does not pass while it is ARMED
    struct mad_addr to = {.lid = rig_lid_of(&rig, rig.port.node_guid), .qp = 1};
    uint8_t sa[MAD_SIZE] = {1, MAD_CLASS_SA, 2, MAD_METHOD_GET};
    assert_int_equal(other->ops->send(other, sa, &to, 0), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.classes[MAD_CLASS_SA], 0);
    memset(data, 0, sizeof(data));
    assert_int_equal(
        rig_pma(&rig, rig_lid_of(&rig, host_guid), MAD_METHOD_GET, MAD_ATTR_CLASS_PORT_INFO, data), 0);
    assert_int_equal(field(host_guid, 1, "port_state"), MAD_PORT_ACTIVE);
    assert_int_equal(sim_counter_add(rig.s, host_guid, 1, SIM_SYMBOL_ERRORS, 1), 0);
}

static void reboot_loses_everything(void **state)
{
    uint8_t port;
    uint16_t lid = rig_lid_of(&rig, host_guid);
    struct dest agg = rig_path(&rig, agg_guid);
    uint8_t keys[64] = {0x12, 0x34}, block[64] = {0};
    assert_int_equal(rig_smp(&rig, &agg, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, block), 0);
    assert_int_equal(rig_smp(&rig, &agg, MAD_METHOD_SET, MAD_ATTR_P_KEY_TABLE, 0, keys), 0);
    assert_int_equal(sim_lft(rig.s, agg_guid, lid, &port), 0);
    assert_int_not_equal(port, 255);
    assert_int_equal(sim_switch_reboot(rig.s, agg_guid), 0);
    assert_int_equal(sim_lft(rig.s, agg_guid, lid, &port), 0);
    assert_int_equal(port, 255);
    assert_int_equal(switch_field(agg_guid, "linear_fdb_top"), 0);
    assert_int_equal(field(agg_guid, 0, "lid"), 0);
    assert_int_equal(field(agg_guid, 0, "master_sm_lid"), 0);
    assert_int_equal(field(agg_guid, agg_port, "port_state"), MAD_PORT_INIT);
    assert_int_equal(field(leaf_guid, up_port, "port_state"), MAD_PORT_INIT);
    uint16_t key;
    assert_int_equal(sim_p_key(rig.s, agg_guid, 0, 0, &key), 0);
    assert_int_equal(key, 0xffff);
    uint8_t after[64] = {0};
    assert_int_equal(rig_smp(&rig, &agg, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, after), 0);
    assert_memory_not_equal(after, block, 64);
    rig_run(&rig, MONO_MS);
    assert_true(rig.traps[128] >= 1); // a neighbour's
    assert_int_not_equal(rig.other_from.lid, rig_lid_of(&rig, agg_guid));
    assert_int_equal(sim_switch_reboot(rig.s, host_guid), -22);
    assert_int_equal(sim_switch_reboot(rig.s, 1234), -2);
    assert_int_equal(sim_node_reboot(rig.s, host_guid), 0);
    assert_int_equal(field(host_guid, 1, "lid"), 0);
}

static int setup_training(void **state)
{
    return setup_opts(&(struct sim_opts){.train_ns = 5 * MONO_MS});
}

static void training_takes_its_time(void **state)
{
    assert_int_equal(sim_switch_reboot(rig.s, agg_guid), 0);
    assert_int_equal(field(leaf_guid, up_port, "port_state"), MAD_PORT_DOWN);
    rig_run(&rig, 4 * MONO_MS);
    assert_int_equal(field(leaf_guid, up_port, "port_state"), MAD_PORT_DOWN);
    rig_run(&rig, 2 * MONO_MS);
    assert_int_equal(field(leaf_guid, up_port, "port_state"), MAD_PORT_INIT);
    // pulled while it trains
    assert_int_equal(sim_link_set(rig.s, leaf_guid, up_port, false), 0);
    assert_int_equal(sim_link_set(rig.s, leaf_guid, up_port, true), 0);
    assert_int_equal(sim_link_set(rig.s, leaf_guid, up_port, false), 0);
    rig_run(&rig, 50 * MONO_MS);
    assert_int_equal(field(leaf_guid, up_port, "port_state"), MAD_PORT_DOWN);
}

static void dead_node(void **state)
{
    struct dest agg = rig_path(&rig, agg_guid), lid = by_lid(rig_lid_of(&rig, agg_guid));
    uint8_t data[64] = {0};
    assert_int_equal(sim_node_kill(rig.s, agg_guid, true), 0);
    assert_int_equal(rig_smp(&rig, &agg, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), -1);
    assert_int_equal(rig_smp(&rig, &lid, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), -1);
    struct dest beyond = dest_plus(agg, agg_port); // back to the leaf, but through its agent
    assert_int_equal(rig_smp(&rig, &beyond, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), -1);
    // the hardware forwards on
    assert_int_equal(field(agg_guid, agg_port, "port_state"), MAD_PORT_ACTIVE);
    for (uint32_t i = 0; i < rig.f->num_nodes; i++)
        assert_true(i + 1u == rig_lid_of(&rig, agg_guid) ||
                    sim_trace(rig.s, rig.port.port_guid, (uint16_t)(i + 1), NULL, 0) >= 0);
    assert_int_equal(sim_node_kill(rig.s, agg_guid, false), 0);
    assert_int_equal(rig_smp(&rig, &agg, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), 0);
}

static void recable(void **state)
{
    struct dest leaf = rig_path(&rig, leaf_guid);
    const struct node *ln = fabric_by_guid(rig.f, leaf_guid);
    unsigned other_up = 0;
    for (unsigned i = 1; i <= ln->num_ports; i++)
        if (i != up_port &&
            fabric_peer_node(rig.f, fabric_port(rig.f, fabric_port_at(rig.f, ln, i)))->type == NODE_SWITCH)
            other_up = i;
    assert_int_equal(sim_recable(rig.s, leaf_guid, other_up, agg_guid, agg_port), 0);
    struct sim_port_view v;
    assert_int_equal(sim_port_view(rig.s, leaf_guid, up_port, &v), 0);
    assert_false(v.linked);
    assert_int_equal(v.state, MAD_PORT_DOWN);
    assert_int_equal(sim_port_view(rig.s, leaf_guid, other_up, &v), 0);
    assert_true(v.linked);
    assert_int_equal(v.state, MAD_PORT_INIT);
    struct dest d = dest_plus(leaf, other_up);
    uint8_t data[64] = {0};
    struct mad_node_info ni;
    assert_int_equal(rig_smp(&rig, &d, MAD_METHOD_GET, MAD_ATTR_NODE_INFO, 0, data), 0);
    mad_node_info_decode(data, &ni);
    assert_true(ni.node_guid == agg_guid);
    assert_int_equal(ni.local_port_num, agg_port);
    assert_int_equal(sim_recable(rig.s, leaf_guid, 1, leaf_guid, 1), -22);
    assert_int_equal(sim_recable(rig.s, leaf_guid, 77, leaf_guid, 1), -2);
}

static void lock(const struct dest *d, uint64_t key, unsigned protect, uint16_t lease)
{
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, d, 0, &pi), 0);
    pi.m_key = key;
    pi.m_key_protect_bits = (uint8_t)protect;
    pi.m_key_lease_period = lease;
    pi.port_state = pi.port_physical_state = 0;
    assert_int_equal(rig_set_port(&rig, d, 0, &pi), 0);
}

static void m_key(void **state)
{
    struct dest host = by_lid(rig_lid_of(&rig, host_guid));
    struct mad_port_info pi;
    for (unsigned protect = 0; protect <= 3; protect++) {
        lock(&host, 0x1234, protect, 0);
        rig.m_key = 0;
        unsigned traps = rig.traps[256];
        int st = rig_get_port(&rig, &host, 0, &pi);
        assert_int_equal(st, protect < 2 ? 0 : -1);
        if (st == 0)
            assert_true(pi.m_key == (protect == 0 ? 0x1234 : 0)); // hidden from 1 on
        pi = (struct mad_port_info){.lid = host.lid, .master_sm_lid = 1, .neighbor_mtu = 4};
        assert_int_equal(rig_set_port(&rig, &host, 0, &pi), -1);
        assert_true(rig.traps[256] > traps);
        struct mad_notice n;
        struct mad_trap_256 d;
        mad_notice_decode(rig.other + 64, &n);
        mad_trap_256_decode(n.data_details, &d);
        assert_int_equal(d.attr_id, MAD_ATTR_PORT_INFO);
        assert_int_equal(d.lid, rig_lid_of(&rig, rig.port.node_guid));
        rig.m_key = 0x1234;
        assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
        assert_true(pi.m_key == 0x1234);
        assert_true(pi.m_key_violations > 0);
    }
    // a lease: after a wrong key it runs out unless the owner is heard
    lock(&host, 0x1234, 3, 10);
    rig.m_key = 1;
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), -1);
    rig_run(&rig, 5 * MONO_S);
    rig.m_key = 0x1234; // heard: the lease begins anew with the next wrong key
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
    rig.m_key = 1;
    rig_run(&rig, 6 * MONO_S);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), -1);
    rig_run(&rig, 11 * MONO_S);
    assert_int_equal(rig_get_port(&rig, &host, 0, &pi), 0);
    assert_true(pi.m_key == 0x1234);
    // a switch's key is port 0's and guards its external ports and tables
    struct dest leaf = by_lid(rig_lid_of(&rig, leaf_guid));
    rig.m_key = 0;
    lock(&leaf, 0x99, 2, 0);
    uint8_t data[64] = {0};
    assert_int_equal(rig_smp(&rig, &leaf, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, data), -1);
    assert_int_equal(rig_get_port(&rig, &leaf, up_port, &pi), -1);
    rig.m_key = 0x99;
    assert_int_equal(rig_get_port(&rig, &leaf, up_port, &pi), 0);
    lock(&leaf, 0, 0, 0);
    rig.m_key = 0;
    assert_int_equal(rig_get_port(&rig, &leaf, up_port, &pi), 0);
}

static void keep_state(void **state)
{
    // the state of a fabric that is up, as a dump has it, in a simulator of its own
    struct builder *b = builder_from(rig.f);
    for (uint32_t i = 0; i < rig.f->num_nodes; i++) {
        const struct node *n = &rig.f->node[i];
        for (unsigned p = node_first_num(n); p <= n->num_ports; p++) {
            struct port_attrs a = fabric_port(rig.f, fabric_port_at(rig.f, n, p))->a;
            a.state = MAD_PORT_ACTIVE;
            a.lid = p == 0 || n->type != NODE_SWITCH ? (uint16_t)(i + 1) : 0;
            assert_int_equal(builder_port(b, (node_id){i}, p, &a), 0);
        }
    }
    struct rig r;
    struct mad_port_info pi;
    rig_start(&r, builder_seal(b, 2, NULL), &(struct sim_opts){.keep_state = true});
    assert_int_equal(r.port.lid, rig_lid_of(&r, r.port.node_guid));
    struct dest d = rig_path(&r, host_guid);
    assert_int_equal(rig_get_port(&r, &d, 0, &pi), 0);
    assert_int_equal(pi.port_state, MAD_PORT_ACTIVE);
    assert_int_equal(pi.lid, rig_lid_of(&r, host_guid));
    assert_int_equal(pi.master_sm_lid, r.port.lid);
    rig_stop(&r);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(link_down_and_up),
        T(traps_repeat_until_repressed),
        T(port_state_change_is_not_set_by_own_set),
        T(both_ends_announce_a_new_link),
        T(local_changes),
        T(sm_info_goes_to_the_manager),
        T(sa_requests_reach_the_manager),
        T(reports_go_to_who_is_no_manager),
        T(armed_port_goes_active_with_traffic),
        T(reboot_loses_everything),
        cmocka_unit_test_setup_teardown(training_takes_its_time, setup_training, teardown),
        T(dead_node),
        T(recable),
        T(m_key),
        T(keep_state),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
