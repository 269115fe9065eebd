// SPDX-License-Identifier: Apache-2.0
// A played manager: what it says, which controls it takes in which state, handing over both ways, silence,
// polling.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <cmocka.h>

#include "lib/err.h"
#include "lib/mono.h"
#include "tests/unit/sim/client.h"

static struct rig rig;
static struct rig_ends e;
static struct dest host;
static bool we_answer;      // the manager answers SMInfo
static uint16_t our_status; // to a Set
static unsigned asked, controls[6];
static uint64_t control_tid;

// Our side of the election: answers Get and Set of SMInfo as it came.
static void manager(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct mad_hdr h;
    rig_recv(arg, mad, from, status);
    mad_hdr_decode(mad, &h);
    if (h.attr_id != MAD_ATTR_SM_INFO || mad_is_response(h.method))
        return;
    asked += h.method == MAD_METHOD_GET;
    if (h.method == MAD_METHOD_SET) {
        assert_in_range(h.attr_mod, 1, 5);
        controls[h.attr_mod]++;
        control_tid = h.tid;
    }
    if (!we_answer)
        return;
    uint8_t answer[MAD_SIZE];
    memcpy(answer, mad, MAD_SIZE);
    answer[3] = MAD_METHOD_GET_RESP;
    if (h.method == MAD_METHOD_SET) {
        answer[4] = (uint8_t)(our_status >> 8);
        answer[5] = (uint8_t)our_status;
    }
    assert_int_equal(rig.t->ops->send(rig.t, answer, from, 0), 0);
}

static int setup(void **state)
{
    rig_up(&rig, NULL, &e);
    rig.t->recv = manager;
    host = by_lid(rig_lid_of(&rig, e.host));
    we_answer = true;
    our_status = 0;
    asked = 0;
    memset(controls, 0, sizeof(controls));
    return 0;
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static void add(struct sim_sm sm)
{
    assert_int_equal(sim_sm_add(rig.s, e.host_port_guid, &sm), 0);
    rig_run(&rig, MONO_MS);
}

static struct sim_sm_view view(void)
{
    struct sim_sm_view v;
    assert_int_equal(sim_sm_view(rig.s, e.host_port_guid, &v), 0);
    return v;
}

static int get(struct mad_sm_info *ret)
{
    uint8_t data[64] = {0};
    int st = rig_smp(&rig, &host, MAD_METHOD_GET, MAD_ATTR_SM_INFO, 0, data);
    mad_sm_info_decode(data, ret);
    return st;
}

static int control(unsigned what, uint64_t sm_key)
{
    struct mad_sm_info info = {.guid = 1, .sm_key = sm_key, .priority = 15, .sm_state = MAD_SM_MASTER};
    uint8_t data[64] = {0};
    mad_sm_info_encode(&info, data);
    return rig_smp(&rig, &host, MAD_METHOD_SET, MAD_ATTR_SM_INFO, what, data);
}

static void says_who_it_is(void **state)
{
    struct mad_sm_info info;
    struct mad_notice n;
    struct mad_trap_144 d;
    struct err err;
    assert_int_equal(get(&info), MAD_STATUS_BAD_METHOD_ATTR);
    add((struct sim_sm){.state = MAD_SM_STANDBY, .priority = 9, .act_count = 100, .sm_key = 0});
    rig_notice(&rig, &n);
    mad_trap_144_decode(n.data_details, &d);
    assert_true(d.capability_mask & MAD_CAP_IS_SM);
    assert_true(rig_field(&rig, e.host, 1, "capability_mask") & MAD_CAP_IS_SM);
    assert_int_equal(get(&info), 0);
    assert_true(info.guid == e.host_port_guid);
    assert_int_equal(info.priority, 9);
    assert_int_equal(info.sm_state, MAD_SM_STANDBY);
    uint32_t count = info.act_count;
    assert_int_equal(get(&info), 0);
    assert_int_equal(info.act_count, count + 1);
    // M_Key is the agent's affair, SMInfo the manager's
    assert_int_equal(sim_m_key_set(rig.s, e.host, 1, 7, 3, 0), 0);
    assert_int_equal(get(&info), 0);
    assert_int_equal(sim_m_key_set(rig.s, e.host, 1, 0, 0, 0), 0);
    // frozen
    struct sim_sm sm = view().sm;
    sm.frozen = true;
    assert_int_equal(sim_sm_set(rig.s, e.host_port_guid, &sm), 0);
    count = sm.act_count;
    assert_int_equal(get(&info), 0);
    assert_int_equal(get(&info), 0);
    assert_int_equal(info.act_count, count);
    assert_int_equal(view().gets, 5);
    // one a port, and none where a client is one
    assert_int_equal(sim_sm_add(rig.s, e.host_port_guid, &sm), -EEXIST);
    assert_int_equal(sim_sm_add(rig.s, rig.port.port_guid, &sm), -EEXIST);
    assert_int_equal(sim_sm_add(rig.s, 1234, &sm), -ENOENT);
    struct transport *t = sim_attach(rig.s, e.host_port_guid, &err);
    assert_int_equal(t->ops->issm(t, true, &err), -EBUSY);
    sm.priority = 16;
    assert_int_equal(sim_sm_set(rig.s, e.host_port_guid, &sm), -EINVAL);
    sm.priority = 1;
    sm.poll_ns = 1; // would leave no time for anything else
    assert_int_equal(sim_sm_set(rig.s, e.host_port_guid, &sm), -EINVAL);
    struct sim_sm_view v;
    assert_int_equal(sim_sm_at(rig.s, 0, &v), 0);
    assert_true(v.port_guid == e.host_port_guid);
    assert_int_equal(v.lid, host.lid);
    assert_int_equal(sim_sm_at(rig.s, 1, &v), -ENOENT);
    assert_int_equal(sim_sm_remove(rig.s, e.host_port_guid), 0);
    assert_int_equal(sim_sm_at(rig.s, 0, &v), -ENOENT);
    assert_false(rig_field(&rig, e.host, 1, "capability_mask") & MAD_CAP_IS_SM);
    assert_int_equal(get(&info), MAD_STATUS_BAD_METHOD_ATTR);
    assert_int_equal(t->ops->issm(t, true, &err), 0);
    t->ops->free(t);
}

// Every control in every state: legal or status 7, and where it leads.
static void transitions(void **state)
{
    static const uint8_t to[4][6] = {
        // by state: HANDOVER, ACKNOWLEDGE, DISABLE, STANDBY, DISCOVER; 9 = refused
        [MAD_SM_NOT_ACTIVE] = {0, 9, 9, 9, MAD_SM_STANDBY, 9},
        [MAD_SM_DISCOVERING] = {0, 9, 9, 9, 9, 9},
        [MAD_SM_STANDBY] = {0, MAD_SM_MASTER, 9, MAD_SM_NOT_ACTIVE, 9, MAD_SM_DISCOVERING},
        [MAD_SM_MASTER] = {0, MAD_SM_MASTER, 9, 9, 9, 9}, // ACKNOWLEDGE only of what it sent
    };
    unsigned refused = 0;
    add((struct sim_sm){0});
    for (uint8_t st = 0; st < 4; st++)
        for (unsigned c = 1; c <= 5; c++) {
            struct sim_sm sm = view().sm;
            sm.state = st;
            assert_int_equal(sim_sm_set(rig.s, e.host_port_guid, &sm), 0);
            bool ok = to[st][c] != 9;
            assert_int_equal(control(c, 0), ok ? 0 : MAD_STATUS_BAD_VALUE);
            assert_int_equal(view().sm.state, ok ? to[st][c] : st);
            refused += !ok;
        }
    assert_int_equal(control(0, 0), MAD_STATUS_BAD_VALUE);
    assert_int_equal(control(6, 0), MAD_STATUS_BAD_VALUE);
    assert_int_equal(view().refused, refused + 2);
    assert_int_equal(view().handovers_got, 2);
    rig_run(&rig, MONO_MS);
    assert_int_equal(controls[MAD_SM_ACKNOWLEDGE], 2); // each handover is acknowledged
    assert_int_equal(view().acks_sent, 2);
    assert_int_equal(view().last_status, 0);
}

static void sm_key_is_asked_for(void **state)
{
    add((struct sim_sm){.state = MAD_SM_STANDBY, .sm_key = 0x77});
    assert_int_equal(control(MAD_SM_HANDOVER, 0x78), MAD_STATUS_BAD_VALUE);
    assert_int_equal(view().sm.state, MAD_SM_STANDBY);
    assert_int_equal(control(MAD_SM_HANDOVER, 0x77), 0);
    assert_int_equal(view().sm.state, MAD_SM_MASTER);
}

static void hands_over_to_us(void **state)
{
    add((struct sim_sm){.state = MAD_SM_MASTER, .priority = 3});
    assert_int_equal(control(MAD_SM_ACKNOWLEDGE, 0), MAD_STATUS_BAD_VALUE); // nothing to acknowledge
    assert_int_equal(sim_sm_control(rig.s, e.host_port_guid, e.sm_lid, MAD_SM_HANDOVER), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(controls[MAD_SM_HANDOVER], 1);
    assert_true(view().handover_open);
    assert_int_equal(view().last_status, 0);
    assert_int_equal(view().sm.state, MAD_SM_MASTER);
    assert_int_equal(control(MAD_SM_ACKNOWLEDGE, 0), 0);
    assert_int_equal(view().sm.state, MAD_SM_STANDBY);
    assert_false(view().handover_open);
    assert_int_equal(view().acks_got, 1);
    // refused: it stays master, and an acknowledgement is none
    struct sim_sm sm = view().sm;
    sm.state = MAD_SM_MASTER;
    assert_int_equal(sim_sm_set(rig.s, e.host_port_guid, &sm), 0);
    our_status = MAD_STATUS_BAD_VALUE;
    assert_int_equal(sim_sm_control(rig.s, e.host_port_guid, e.sm_lid, MAD_SM_HANDOVER), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(view().last_status, MAD_STATUS_BAD_VALUE);
    assert_false(view().handover_open);
    assert_int_equal(control(MAD_SM_ACKNOWLEDGE, 0), MAD_STATUS_BAD_VALUE);
    // no answer
    we_answer = false;
    assert_int_equal(sim_sm_control(rig.s, e.host_port_guid, e.sm_lid, MAD_SM_DISABLE), 0);
    rig_run(&rig, MONO_S);
    assert_int_equal(controls[MAD_SM_DISABLE], 1);
    assert_int_equal(view().last_status, 0xffff);
    assert_int_equal(sim_sm_control(rig.s, e.host_port_guid, e.sm_lid, 6), -EINVAL);
    assert_int_equal(sim_sm_control(rig.s, 1234, e.sm_lid, 1), -ENOENT);
}

static void silence_and_priority(void **state)
{
    struct mad_sm_info info;
    struct mad_notice n;
    struct mad_trap_144 d;
    add((struct sim_sm){.state = MAD_SM_STANDBY, .priority = 3});
    rig_repress(&rig, rig.other, host.lid, 0);
    struct sim_sm sm = view().sm;
    sm.priority = 14;
    unsigned before = rig.traps[144];
    assert_int_equal(sim_sm_set(rig.s, e.host_port_guid, &sm), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.traps[144], before + 1);
    rig_notice(&rig, &n);
    mad_trap_144_decode(n.data_details, &d);
    assert_int_equal(d.sm_priority_change, 1);
    assert_int_equal(get(&info), 0);
    assert_int_equal(info.priority, 14);
    sm.priority = 2;
    sm.quiet = true; // an agent that cannot say so
    assert_int_equal(sim_sm_set(rig.s, e.host_port_guid, &sm), 0);
    rig_run(&rig, MONO_MS);
    assert_int_equal(rig.traps[144], before + 1);
    sm.silent = true;
    assert_int_equal(sim_sm_set(rig.s, e.host_port_guid, &sm), 0);
    assert_int_equal(get(&info), -1);
    assert_int_equal(control(MAD_SM_HANDOVER, 0), -1);
    assert_true(rig_field(&rig, e.host, 1, "capability_mask") & MAD_CAP_IS_SM);
    struct mad_node_info ni;
    assert_int_equal(rig_node_info(&rig, &host, &ni), 0); // the node lives
}

static void polls_its_master(void **state)
{
    add((struct sim_sm){.state = MAD_SM_STANDBY, .poll_ns = MONO_S, .poll_misses = 3});
    rig_run(&rig, 10 * MONO_S);
    assert_in_range(asked, 9, 10);
    assert_int_equal(view().polls_missed, 0);
    we_answer = false;
    rig_run(&rig, 5 * MONO_S / 2);
    assert_int_equal(view().sm.state, MAD_SM_STANDBY);
    we_answer = true; // two missed: forgiven
    rig_run(&rig, 5 * MONO_S);
    assert_int_equal(view().sm.state, MAD_SM_STANDBY);
    we_answer = false;
    rig_run(&rig, 2 * MONO_S); // two more: not in a row with those
    we_answer = true;
    rig_run(&rig, 3 * MONO_S);
    assert_int_equal(view().sm.state, MAD_SM_STANDBY);
    assert_true(view().polls_missed >= 4);
    we_answer = false;
    rig_run(&rig, 5 * MONO_S);
    assert_int_equal(view().sm.state, MAD_SM_MASTER);
    unsigned before = asked;
    rig_run(&rig, 5 * MONO_S);
    assert_int_equal(asked, before); // a master asks nobody
}

static void a_master_represses_traps(void **state)
{
    struct dest leaf = by_lid(rig_lid_of(&rig, e.far_leaf));
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, &leaf, 0, &pi), 0);
    pi.master_sm_lid = host.lid;
    pi.port_state = pi.port_physical_state = 0;
    assert_int_equal(rig_set_port(&rig, &leaf, 0, &pi), 0);
    add((struct sim_sm){.state = MAD_SM_STANDBY});
    assert_int_equal(sim_raise_trap(rig.s, e.far_leaf, 1, 129), 0);
    rig_run(&rig, 2 * MONO_S);
    assert_int_equal(view().traps, 2);
    struct sim_sm sm = view().sm;
    sm.state = MAD_SM_MASTER;
    assert_int_equal(sim_sm_set(rig.s, e.host_port_guid, &sm), 0);
    rig_run(&rig, 10 * MONO_S);
    assert_int_equal(view().traps, 3);
}

int main(void)
{
#define UP(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        UP(says_who_it_is),       UP(transitions),      UP(sm_key_is_asked_for),      UP(hands_over_to_us),
        UP(silence_and_priority), UP(polls_its_master), UP(a_master_represses_traps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
