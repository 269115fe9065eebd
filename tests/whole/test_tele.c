// SPDX-License-Identifier: Apache-2.0
// Counters of a whole simulated fabric, collected under a real manager in virtual time: what the accumulators
// say against what the simulator's devices have counted. Long: every case is of the one world that the first
// page makes.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "lib/err.h"
#include "mad/mad.h"
#include "telemetry/module.h"
#include "telemetry/telemetry.h"
#include "tests/whole/tele_world.h"

// ours -> the simulator's
static const uint8_t same[TELE_COUNTERS] = {
    [TELE_XMIT_DATA] = SIM_XMIT_DATA,
    [TELE_RCV_DATA] = SIM_RCV_DATA,
    [TELE_XMIT_PKTS] = SIM_XMIT_PKTS,
    [TELE_RCV_PKTS] = SIM_RCV_PKTS,
    [TELE_UNICAST_XMIT_PKTS] = SIM_UNICAST_XMIT_PKTS,
    [TELE_UNICAST_RCV_PKTS] = SIM_UNICAST_RCV_PKTS,
    [TELE_MULTICAST_XMIT_PKTS] = SIM_MULTICAST_XMIT_PKTS,
    [TELE_MULTICAST_RCV_PKTS] = SIM_MULTICAST_RCV_PKTS,
    [TELE_SYMBOL_ERRORS] = SIM_SYMBOL_ERRORS,
    [TELE_LINK_ERROR_RECOVERY] = SIM_LINK_ERROR_RECOVERY,
    [TELE_LINK_DOWNED] = SIM_LINK_DOWNED,
    [TELE_RCV_ERRORS] = SIM_RCV_ERRORS,
    [TELE_RCV_REMOTE_PHYSICAL_ERRORS] = SIM_RCV_REMOTE_PHYSICAL_ERRORS,
    [TELE_RCV_SWITCH_RELAY_ERRORS] = SIM_RCV_SWITCH_RELAY_ERRORS,
    [TELE_XMIT_DISCARDS] = SIM_XMIT_DISCARDS,
    [TELE_XMIT_CONSTRAINT_ERRORS] = SIM_XMIT_CONSTRAINT_ERRORS,
    [TELE_RCV_CONSTRAINT_ERRORS] = SIM_RCV_CONSTRAINT_ERRORS,
    [TELE_LOCAL_LINK_INTEGRITY_ERRORS] = SIM_LOCAL_LINK_INTEGRITY_ERRORS,
    [TELE_EXCESSIVE_BUFFER_OVERRUN_ERRORS] = SIM_EXCESSIVE_BUFFER_OVERRUN_ERRORS,
    [TELE_VL15_DROPPED] = SIM_VL15_DROPPED,
    [TELE_XMIT_WAIT] = SIM_XMIT_WAIT,
    [TELE_QP1_DROPPED] = SIM_QP1_DROPPED,
    [TELE_SYNC_HEADER_ERRORS] = SIM_SYNC_HEADER_ERRORS,
    [TELE_UNKNOWN_BLOCKS] = SIM_UNKNOWN_BLOCKS,
    [TELE_FEC_CORRECTED_SYMBOLS] = SIM_FEC_CORRECTED_SYMBOLS,
    [TELE_FEC_CORRECTABLE_BLOCKS] = SIM_FEC_CORRECTABLE_BLOCKS,
    [TELE_FEC_UNCORRECTABLE_BLOCKS] = SIM_FEC_UNCORRECTABLE_BLOCKS,
    [TELE_LOCAL_PHYSICAL_ERRORS] = SIM_LOCAL_PHYSICAL_ERRORS,
    [TELE_MALFORMED_PACKET_ERRORS] = SIM_MALFORMED_PACKET_ERRORS,
    [TELE_BUFFER_OVERRUN_ERRORS] = SIM_BUFFER_OVERRUN_ERRORS,
    [TELE_DLID_MAPPING_ERRORS] = SIM_DLID_MAPPING_ERRORS,
    [TELE_VL_MAPPING_ERRORS] = SIM_VL_MAPPING_ERRORS,
    [TELE_LOOPING_ERRORS] = SIM_LOOPING_ERRORS,
    [TELE_INACTIVE_DISCARDS] = SIM_INACTIVE_DISCARDS,
    [TELE_NEIGHBOR_MTU_DISCARDS] = SIM_NEIGHBOR_MTU_DISCARDS,
    [TELE_SW_LIFETIME_LIMIT_DISCARDS] = SIM_SW_LIFETIME_LIMIT_DISCARDS,
    [TELE_SW_HOQ_LIFETIME_LIMIT_DISCARDS] = SIM_SW_HOQ_LIFETIME_LIMIT_DISCARDS,
};

static bool is_traffic(enum tele_counter c)
{
    return tele_rows[c].kind == TELE_TRAFFIC; // reading them moves them
}

// --- tests ---

static void values_are_the_devices(void **state)
{
    struct world w = {0};
    (void)state;
    world_up(&w, "rail-16", NULL);
    const struct fabric *f = sm_fabric(w.r.sm);
    // Every counter of every port gets a number of its own.
    uint32_t ports = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (p->num == 0 || !port_valid(p->peer))
            continue;
        ports++;
        for (unsigned c = 0; c < TELE_COUNTERS; c++)
            world_add(&w, f->node[p->node.i].guid, p->num, same[c], 40 * i + c);
    }
    world_sweeps(&w, 2);
    const struct tele_table *t = world_table(&w);
    assert_int_equal(t->num, ports);
    assert_int_equal(world_status(&w).read, ports);
    assert_int_equal(world_status(&w).unread, 0);
    for (uint32_t s = 0; s < t->num; s++)
        for (unsigned c = 0; c < TELE_COUNTERS; c++) {
            uint64_t is, has = world_value(&w, t->port[s].node_guid, t->port[s].num, c);
            sim_counter_get(w.r.sim, t->port[s].node_guid, t->port[s].num, same[c], &is);
            // Data moves with the MADs that ask for it.
            if (is_traffic(c) ? has > is || is - has > 4000 * 72 : has != is)
                fail_msg("%s of slot %u: %llu, the device has %llu", tele_rows[c].name, s,
                         (unsigned long long)has, (unsigned long long)is);
        }
    world_down(&w);
}

// Some agents do not answer what they do not know (ibsim's): that does not make them silent.
static void drops_what_it_does_not_know(void **state)
{
    struct world w = {0};
    struct sim_pma p;
    (void)state;
    world_up(&w, "rail-16", NULL);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    sim_pma_get(w.r.sim, leaf, &p);
    p.speeds = p.details = false;
    p.drops = true;
    sim_pma_set(w.r.sim, leaf, &p);
    world_sweeps(&w, 2);
    assert_int_equal(world_status(&w).unread, 0);
    uint64_t lost = world_status(&w).timeouts;
    assert_int_equal(lost, 3); // each attribute once
    world_sweeps(&w, 3);
    assert_int_equal(world_status(&w).timeouts, lost);
    rig_run(&w.r, 3600 * MONO_S);
    world_sweeps(&w, 1);
    assert_true(world_status(&w).timeouts > lost); // it may have learnt
    assert_int_equal(world_status(&w).unread, 0);
    world_down(&w);
}

// MADs of the sweep that ran last.
static uint64_t mads_of(struct world *w, unsigned n)
{
    uint64_t before = world_status(w).mads;
    world_sweeps(w, n);
    return world_status(w).mads - before;
}

static void as_many_mads_as_said(void **state)
{
    struct world w = {.o = {.detail_interval_ns = 60 * MONO_S}};
    (void)state;
    world_up(&w, "rail-64", NULL);
    world_sweeps(&w, 1);
    uint64_t ports = world_table(&w)->num;
    uint64_t six = mads_of(&w, 6);
    // One a port and sweep; the three detail attributes of each once in six sweeps.
    assert_int_equal(six, 6 * ports + 3 * ports);
    assert_int_equal(world_status(&w).timeouts + world_status(&w).refused, 0);
    world_down(&w);
}

static void old_devices(void **state)
{
    struct world w = {0};
    struct sim_pma p;
    (void)state;
    world_up(&w, "rail-16", NULL);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid, spine = world_nth(&w, ROLE_LEAF, 1)->guid,
             host = world_nth(&w, ROLE_HOST, 1)->guid, none = world_nth(&w, ROLE_HOST, 2)->guid,
             lanes = world_nth(&w, ROLE_LEAF, 2)->guid;
    sim_pma_get(w.r.sim, leaf, &p);
    p.extended = p.xmit_wait = p.qp1_dropped = p.details = p.speeds = false;
    sim_pma_set(w.r.sim, leaf, &p);
    sim_pma_get(w.r.sim, spine, &p);
    p.additional = false;
    sim_pma_set(w.r.sim, spine, &p);
    p.ietf = p.xmit_wait = false;
    sim_pma_set(w.r.sim, host, &p);
    p.none = true;
    sim_pma_set(w.r.sim, none, &p);
    sim_pma_get(w.r.sim, lanes, &p);
    p.rsfec = false;
    sim_pma_set(w.r.sim, lanes, &p);
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 70000);
    world_add(&w, leaf, 1, SIM_LINK_DOWNED, 3);
    world_add(&w, spine, 1, SIM_SYMBOL_ERRORS, 77);
    world_add(&w, spine, 1, SIM_XMIT_WAIT, 1234);
    world_add(&w, lanes, 1, SIM_FEC_CORRECTABLE_BLOCKS, 4321);
    world_sweeps(&w, 2);

    uint32_t s = world_slot(&w, leaf, 1);
    uint64_t downed;
    assert_false(tele_have(world_table(&w), s, TELE_UNICAST_XMIT_PKTS)); // absent, not zero
    assert_false(tele_have(world_table(&w), s, TELE_XMIT_WAIT));
    assert_false(tele_have(world_table(&w), s, TELE_QP1_DROPPED));
    assert_false(tele_have(world_table(&w), s, TELE_LOCAL_PHYSICAL_ERRORS));
    assert_false(tele_have(world_table(&w), s, TELE_FEC_CORRECTED_SYMBOLS));
    assert_true(tele_have(world_table(&w), s, TELE_XMIT_DATA));
    assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 65535);
    sim_counter_get(w.r.sim, leaf, 1, SIM_LINK_DOWNED, &downed);
    assert_int_equal(world_value(&w, leaf, 1, TELE_LINK_DOWNED), downed);
    assert_true(world_table(&w)->port[s].saturated);
    assert_int_equal(world_table(&w)->port[s].full, 1ull << TELE_SYMBOL_ERRORS);
    assert_non_null(strstr(w.log.data, "port 1: SymbolErrorCounter stands at its maximum"));

    assert_int_equal(world_value(&w, spine, 1, TELE_SYMBOL_ERRORS), 77);
    assert_int_equal(world_value(&w, spine, 1, TELE_XMIT_WAIT), 1234);
    assert_true(tele_have(world_table(&w), world_slot(&w, spine, 1), TELE_MULTICAST_XMIT_PKTS));
    assert_false(world_table(&w)->port[world_slot(&w, spine, 1)].saturated);

    s = world_slot(&w, host, 1);
    assert_false(tele_have(world_table(&w), s, TELE_MULTICAST_XMIT_PKTS));
    assert_false(tele_have(world_table(&w), s, TELE_XMIT_WAIT));
    assert_true(tele_have(world_table(&w), s, TELE_SYMBOL_ERRORS));

    s = world_slot(&w, none, 1);
    assert_int_equal(world_table(&w)->have[s], 0);
    assert_int_equal(world_table(&w)->port[s].unread, TELE_NO_PMA);
    assert_non_null(strstr(w.log.data, "no performance agent"));

    assert_int_equal(world_value(&w, lanes, 1, TELE_FEC_CORRECTABLE_BLOCKS), 4321);
    assert_false(tele_have(world_table(&w), world_slot(&w, lanes, 1), TELE_FEC_CORRECTED_SYMBOLS));

    // What refuses is not asked again: two MADs a port for the leaf's neighbour, one for the leaf's, none
    // else.
    uint64_t refused = world_status(&w).refused;
    world_sweeps(&w, 2);
    assert_int_equal(world_status(&w).refused, refused);
    struct tele_unread_node *u;
    assert_int_equal(tele_unread_nodes(w.tele, &u), 1);
    assert_true(u[0].guid == none && u[0].why == TELE_NO_PMA && u[0].ports == 1);
    free(u);
    world_down(&w);
}

static void dead_and_slow_cost_only_themselves(void **state)
{
    struct world w = {.o = {.detail_interval_ns = 3600 * MONO_S}};
    struct sim_opts so = {.link_latency_ns = 1000, .service_ns = 2000};
    (void)state;
    world_up(&w, "rail-64", &so);
    world_sweeps(&w, 1);
    uint32_t ports = world_table(&w)->num;
    uint64_t dead = world_nth(&w, ROLE_HOST, 3)->guid, leaf = world_nth(&w, ROLE_LEAF, 0)->guid,
             slow = world_nth(&w, ROLE_HOST, 9)->guid;
    unsigned of_leaf = 0;
    for (uint32_t s = 0; s < ports; s++)
        of_leaf += world_table(&w)->port[s].node_guid == leaf;
    sim_node_kill(w.r.sim, dead, true);
    sim_node_kill(w.r.sim, leaf, true);
    sim_node_delay(w.r.sim, slow, 2 * MONO_S);
    world_sweeps(&w, 3);
    // All others are read, each sweep.
    assert_int_equal(world_status(&w).ports, ports);
    assert_int_equal(world_status(&w).unread, 1 + of_leaf);
    assert_int_equal(world_status(&w).late, 0);
    struct tele_unread_node *u;
    assert_int_equal(tele_unread_nodes(w.tele, &u), 2);
    assert_true(u[0].why == TELE_NO_ANSWER && u[1].why == TELE_NO_ANSWER && u[0].since > 0);
    free(u);
    // Known to be silent: one MAD each and sweep.
    uint64_t mads = mads_of(&w, 1), left = ports - 1 - of_leaf;
    assert_in_range(mads, left + 2, left + 2 + 4); // the slow one's try anew
    assert_true(world_status(&w).last_ns < w.o.interval_ns * 6 / 10);
    sim_node_kill(w.r.sim, dead, false);
    sim_node_kill(w.r.sim, leaf, false);
    world_sweeps(&w, 2);
    assert_int_equal(world_status(&w).unread, 0);
    assert_int_equal(tele_unread_nodes(w.tele, &u), 0);
    assert_non_null(strstr(w.log.data, "counters-read: "));
    world_down(&w);
}

// A switch whose agent takes longer than a sweep for all its ports: its ports come as they can, nobody waits.
static void slower_than_a_sweep(void **state)
{
    struct world w = {.o = {.detail_interval_ns = 3600 * MONO_S}};
    struct sim_opts so = {.link_latency_ns = 1000, .service_ns = 2000};
    (void)state;
    world_up(&w, "rail-64", &so);
    world_sweeps(&w, 1);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    sim_node_delay(w.r.sim, leaf, MONO_S);
    world_sweeps(&w, 8);
    assert_true(world_status(&w).late <= 1);
    assert_true(world_status(&w).last_ns < w.o.interval_ns * 6 / 10);
    unsigned read = 0;
    for (uint32_t s = 0; s < world_table(&w)->num; s++)
        if (world_table(&w)->port[s].node_guid != leaf)
            assert_int_equal(world_table(&w)->port[s].unread, TELE_READ);
        else
            read += world_table(&w)->port[s].unread == TELE_READ;
    struct tele_unread_node *u;
    assert_int_equal(tele_unread_nodes(w.tele, &u), 1);
    assert_true(u[0].guid == leaf && u[0].why == TELE_SLOW && u[0].since > 0);
    free(u);
    assert_true(read > 0);
    world_down(&w);
}

static void clears_are_recognised(void **state)
{
    struct world w = {0};
    (void)state;
    world_up(&w, "rail-16", NULL);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 100);
    world_add(&w, leaf, 1, SIM_RCV_ERRORS, 50);
    world_add(&w, leaf, 2, SIM_SYMBOL_ERRORS, 7);
    world_sweeps(&w, 1);
    for (uint32_t i = 0; i < world_table(&w)->num; i++) // some traffic, as after hours
        for (unsigned c = 0; c <= SIM_MULTICAST_RCV_PKTS; c++)
            if (world_table(&w)->port[i].node_guid == leaf)
                world_add(&w, leaf, world_table(&w)->port[i].num, c, 1000000);
    world_sweeps(&w, 1);
    uint64_t data = world_value(&w, leaf, 1, TELE_XMIT_DATA);
    // Somebody clears one port's errors (the others are the same), which then goes on counting.
    uint64_t v;
    sim_counter_get(w.r.sim, leaf, 1, SIM_SYMBOL_ERRORS, &v);
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, -v + 9);
    world_sweeps(&w, 1);
    uint32_t s = world_slot(&w, leaf, 1);
    assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 109);
    assert_int_equal(world_value(&w, leaf, 1, TELE_RCV_ERRORS), 50);
    assert_int_equal(world_table(&w)->port[s].resets, 1);
    assert_int_equal(world_table(&w)->port[world_slot(&w, leaf, 2)].resets, 0);
    assert_int_equal(world_status(&w).resets, 1);
    assert_int_equal(world_status(&w).reboots, 0);
    assert_non_null(strstr(w.log.data, "counters of 1 of its ports began anew: somebody has cleared them"));
    // A reboot: everything of it.
    assert_int_equal(sim_node_reboot(w.r.sim, leaf), 0);
    rig_run(&w.r, MONO_S);
    sm_resweep(w.r.sm, "operator", false);
    rig_sweeps(&w.r, 1, 60);
    world_fabric(&w);
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 3);
    world_sweeps(&w, 2);
    assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 112);
    assert_int_equal(world_value(&w, leaf, 2, TELE_SYMBOL_ERRORS), 7);
    assert_true(world_value(&w, leaf, 1, TELE_XMIT_DATA) >= data);
    assert_int_equal(world_table(&w)->port[s].resets, 2);
    assert_int_equal(world_status(&w).reboots, 1);
    assert_non_null(strstr(w.log.data, "began anew: it was started again"));
    world_down(&w);
}

static void wrong_answers(void **state)
{
    struct world w = {0};
    (void)state;
    world_up(&w, "rail-16", NULL);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    w.o.detail_interval_ns = INTERVAL;
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 1000);
    world_add(&w, leaf, 2, SIM_SYMBOL_ERRORS, 2000);
    world_sweeps(&w, 2);
    uint32_t s = world_slot(&w, leaf, 1);
    uint64_t data = world_value(&w, leaf, 1, TELE_XMIT_DATA);
    static const enum sim_pma_fault fault[] = {SIM_PMA_OTHER_PORT, SIM_PMA_JUMPS, SIM_PMA_STATUS,
                                               SIM_PMA_BUSY};
    static const enum tele_unread why[] = {TELE_WRONG, TELE_WRONG, TELE_REFUSED, TELE_REFUSED};
    for (unsigned i = 0; i < 4; i++) {
        sim_pma_fault(w.r.sim, leaf, 1, fault[i], 1);
        world_sweeps(&w, 1);
        sim_pma_fault(w.r.sim, leaf, 1, SIM_PMA_RIGHT, 0);
        assert_int_equal(world_table(&w)->port[s].unread, why[i]);
        assert_false(tele_have(world_table(&w), s, TELE_SYMBOL_ERRORS));
        assert_int_equal(world_table(&w)->port[world_slot(&w, leaf, 2)].unread, TELE_READ);
        world_sweeps(&w, 1);
        assert_int_equal(world_table(&w)->port[s].unread, TELE_READ);
        assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 1000);
        assert_true(world_value(&w, leaf, 1, TELE_XMIT_DATA) - data < 1u << 30);
    }
    assert_int_equal(world_status(&w).nonsense, 2);
    assert_int_equal(world_status(&w).resets, 0);
    world_down(&w);
}

// Old and smaller answers, of error counters: nothing is counted twice, nothing is lost.
static void back_and_again(void **state)
{
    struct world w = {0};
    (void)state;
    world_up(&w, "rail-16", NULL);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 1000);
    world_sweeps(&w, 2);
    sim_pma_fault(w.r.sim, leaf, 1, SIM_PMA_BACK, 1);
    world_sweeps(&w, 2);
    assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 1000);
    sim_pma_fault(w.r.sim, leaf, 1, SIM_PMA_OLD, 1);
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 10);
    world_sweeps(&w, 2);
    assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 1010);
    // What goes on jumping is meant: counting goes on from there.
    sim_pma_fault(w.r.sim, leaf, 1, SIM_PMA_JUMPS, 1000);
    world_sweeps(&w, 3);
    assert_true(world_value(&w, leaf, 1, TELE_XMIT_DATA) < 1ull << 40);
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 1);
    world_sweeps(&w, 1);
    assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 1011);
    world_down(&w);
}

static void saturated_and_cleared(void **state)
{
    struct world w = {.o = {.clear_saturated = true}};
    struct sim_pma p;
    (void)state;
    world_up(&w, "rail-16", NULL);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    sim_pma_get(w.r.sim, leaf, &p);
    p.additional = false;
    sim_pma_set(w.r.sim, leaf, &p);
    world_sweeps(&w, 1);
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 65535);
    world_add(&w, leaf, 1, SIM_RCV_ERRORS, 5);
    world_add(&w, leaf, 1, SIM_LOCAL_PHYSICAL_ERRORS, 65535);
    world_sweeps(&w, 1);
    uint64_t v;
    sim_counter_get(w.r.sim, leaf, 1, SIM_SYMBOL_ERRORS, &v);
    assert_int_equal(v, 0); // this one alone
    sim_counter_get(w.r.sim, leaf, 1, SIM_RCV_ERRORS, &v);
    assert_int_equal(v, 5);
    sim_counter_get(w.r.sim, leaf, 1, SIM_LOCAL_PHYSICAL_ERRORS, &v);
    assert_int_equal(v, 0);
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 4);
    world_sweeps(&w, 1);
    assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 65539);
    assert_int_equal(world_value(&w, leaf, 1, TELE_LOCAL_PHYSICAL_ERRORS), 65535);
    assert_int_equal(world_table(&w)->port[world_slot(&w, leaf, 1)].resets, 0); // that was us
    assert_int_equal(world_status(&w).cleared, 2);
    world_down(&w);
}

static void errors_each_second(void **state)
{
    struct world w = {.o = {.errors_interval_ns = MONO_S, .detail_interval_ns = 3600 * MONO_S}};
    (void)state;
    world_up(&w, "rail-64", NULL);
    for (unsigned i = 0; i < 8; i++) // counters that are in no sum say nothing against it
        world_add(&w, world_nth(&w, ROLE_LEAF, i)->guid, 1, SIM_LOCAL_PHYSICAL_ERRORS, 50);
    world_sweeps(&w, 2);
    const struct fabric *f = sm_fabric(w.r.sm);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid, ports = world_table(&w)->num,
             adapters = f->num_end_nodes, switches = f->num_switches;
    rig_run(&w.r, MONO_S); // behind the sweep's turns, before the next one's
    uint64_t before = world_status(&w).mads;
    rig_run(&w.r, MONO_S);
    assert_int_equal(world_status(&w).mads - before, adapters + switches);
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 12);
    uint64_t data = world_value(&w, leaf, 1, TELE_XMIT_DATA);
    rig_run(&w.r, 3 * MONO_S / 2);
    assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 12); // not at the sweep's end
    assert_int_equal(world_value(&w, leaf, 1, TELE_XMIT_DATA), data);   // keeps the sweep's interval
    uint32_t s = world_slot(&w, leaf, 1);
    assert_true(tele_interval(world_table(&w), s, TELE_SYMBOL_ERRORS) <= 10 * MONO_S);
    assert_in_range(tele_interval(world_table(&w), s, TELE_XMIT_DATA), 9 * MONO_S, 11 * MONO_S);
    // A switch that means something else by all its ports: they are read.
    sim_pma_fault(w.r.sim, leaf, 0, SIM_PMA_SHORT_SUMS, 1000000);
    world_add(&w, leaf, 2, SIM_SYMBOL_ERRORS, 5);
    world_sweeps(&w, 2);
    rig_run(&w.r, MONO_S);
    world_add(&w, leaf, 3, SIM_SYMBOL_ERRORS, 6);
    rig_run(&w.r, 3 * MONO_S / 2);
    assert_int_equal(world_value(&w, leaf, 3, TELE_SYMBOL_ERRORS), 6);
    (void)ports;
    world_down(&w);
}

static void slots_outlive_snapshots(void **state)
{
    struct world w = {0};
    (void)state;
    world_up(&w, "rail-16", NULL);
    world_sweeps(&w, 1);
    uint64_t host = world_nth(&w, ROLE_HOST, 2)->guid, leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    uint32_t hs = world_slot(&w, host, 1), ls = world_slot(&w, leaf, 2), n = world_table(&w)->num;
    uint32_t peer = world_table(&w)->port[hs].peer;
    world_add(&w, host, 1, SIM_SYMBOL_ERRORS, 11);
    world_sweeps(&w, 1);
    sim_link_set(w.r.sim, host, 1, false);
    rig_sweeps(&w.r, 1, 60);
    world_fabric(&w);
    world_sweeps(&w, 1);
    assert_int_equal(world_table(&w)->port[hs].unread, TELE_GONE);
    assert_int_equal(world_table(&w)->have[hs], 0);
    assert_int_equal(world_table(&w)->port[hs].peer, TELE_SLOT_NONE);
    assert_int_equal(world_table(&w)->num, n);
    assert_int_equal(world_slot(&w, leaf, 2), ls);
    sim_link_set(w.r.sim, host, 1, true);
    rig_sweeps(&w.r, 1, 60);
    world_fabric(&w);
    world_sweeps(&w, 2);
    assert_int_equal(world_slot(&w, host, 1), hs);
    assert_int_equal(world_table(&w)->port[hs].peer, peer);
    assert_int_equal(world_value(&w, host, 1, TELE_SYMBOL_ERRORS), 11);
    // Not the master any more: nothing is asked.
    tele_fabric(w.tele, NULL, NULL, NULL);
    uint64_t mads = world_status(&w).mads;
    rig_run(&w.r, 3 * INTERVAL);
    assert_int_equal(world_status(&w).mads, mads);
    assert_int_equal(world_table(&w)->port[hs].unread, TELE_GONE);
    world_fabric(&w);
    world_sweeps(&w, 1);
    assert_int_equal(world_value(&w, host, 1, TELE_SYMBOL_ERRORS), 11);
    world_down(&w);
}

// A snapshot in the middle of a sweep: no port is left out.
static void snapshot_amid_a_sweep(void **state)
{
    struct world w = {0};
    (void)state;
    world_up(&w, "rail-64", NULL);
    world_sweeps(&w, 1);
    rig_run(&w.r, INTERVAL / 2 + INTERVAL / 4);
    sm_resweep(w.r.sm, "operator", false);
    rig_sweeps(&w.r, 1, 60);
    world_fabric(&w);
    world_sweeps(&w, 1);
    assert_int_equal(world_status(&w).unread, 0);
    world_down(&w);
}

static void redirected(void **state)
{
    struct world w = {0};
    struct sim_pma p;
    (void)state;
    world_up(&w, "rail-16", NULL);
    uint64_t from = world_nth(&w, ROLE_HOST, 1)->guid, to = world_nth(&w, ROLE_HOST, 2)->guid;
    sim_pma_get(w.r.sim, from, &p);
    p.redirect_guid = to;
    sim_pma_set(w.r.sim, from, &p);
    world_add(&w, to, 1, SIM_SYMBOL_ERRORS, 21);
    world_sweeps(&w, 2);
    assert_int_equal(world_value(&w, from, 1, TELE_SYMBOL_ERRORS), 21); // it is answered for by the other
    p.redirect_qp = 77;
    sim_pma_set(w.r.sim, to, &p);
    tele_fabric(w.tele, NULL, NULL, NULL);
    world_fabric(&w);
    world_sweeps(&w, 1);
    assert_int_equal(world_table(&w)->port[world_slot(&w, to, 1)].unread, TELE_REFUSED);
    assert_non_null(strstr(w.log.data, "another queue pair"));
    world_down(&w);
}

static void on_waits(void *arg, const struct tele_vl_waits *v)
{
    *(struct tele_vl_waits *)arg = *v;
}

static void waits_by_lane(void **state)
{
    struct world w = {0};
    struct tele_vl_waits v = {.status = 1};
    struct sim_pma p;
    (void)state;
    world_up(&w, "rail-16", NULL);
    world_sweeps(&w, 1);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    sim_vl_wait_add(w.r.sim, leaf, 2, 1, 500);
    sim_vl_wait_add(w.r.sim, leaf, 2, 15, 70000);
    tele_vl_wait(w.tele, leaf, 2, on_waits, &v);
    assert_int_equal(v.status, 1); // never from inside
    rig_run(&w.r, MONO_S);
    assert_int_equal(v.status, 0);
    assert_true(v.ticks[0] == 0 && v.ticks[1] == 500 && v.ticks[15] == 65535);
    tele_vl_wait(w.tele, leaf, 200, on_waits, &v);
    rig_run(&w.r, MONO_S);
    assert_int_equal(v.status, -ENOENT);
    sim_pma_get(w.r.sim, leaf, &p);
    p.vl_waits = false;
    sim_pma_set(w.r.sim, leaf, &p);
    tele_vl_wait(w.tele, leaf, 2, on_waits, &v);
    rig_run(&w.r, MONO_S);
    assert_int_equal(v.status, -EOPNOTSUPP);
    tele_vl_wait(w.tele, leaf, 2, on_waits, &v);
    world_down(&w);
    assert_int_equal(v.status, -ECANCELED);
}

static void over_a_restart(void **state)
{
    struct world w = {0};
    struct series_opts so = {.columns = TELE_COUNTERS};
    struct series_report rep;
    struct err e = {0};
    (void)state;
    world_up(&w, "rail-16", NULL);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    snprintf(w.dir, sizeof(w.dir), "%s/telemetry", w.r.dir);
    for (unsigned kill = 0; kill < 2; kill++) {
        mad_engine_free(w.r.engine);
        tele_free(w.tele);
        series_close(w.series);
        w.series = series_open(w.r.loop, w.dir, &so, &rep, &e);
        if (w.series == NULL)
            fail_msg("%s", e.text);
        w.o.dir = w.dir;
        w.o.history_ms = rep.last_ms;
        pool_free(w.r.pool);
        sm_free(w.r.sm);
        w.r.transport->ops->free(w.r.transport);
        db_close(w.r.db);
        rig_up(&w.r);
        rig_sweeps(&w.r, 1, 60);
        if (kill == 1) // grows while nobody looks
            world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 1000);
        world_collect(&w);
        if (kill == 0) {
            world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 100);
            world_sweeps(&w, 2);
            world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, -100 + 5); // cleared by others
            world_sweeps(&w, 1);
            assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 105);
        }
    }
    uint32_t s = world_slot(&w, leaf, 1);
    assert_int_equal(tele_value(world_table(&w), s, TELE_SYMBOL_ERRORS),
                     105); // as history has it, before any reading
    assert_false(tele_have(world_table(&w), s, TELE_SYMBOL_ERRORS));
    world_sweeps(&w, 1);
    assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 1105);
    uint64_t d;
    assert_false(tele_delta(world_table(&w), s, TELE_SYMBOL_ERRORS, &d)); // no rate over the gap
    assert_int_equal(world_status(&w).resets, 0);
    world_down(&w);
}

// Answers with any bytes in them: nothing crashes, no accumulator goes back, and afterwards all is read
// again.
static bool garble(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    static uint64_t seed = 1;
    uint8_t copy[MAD_SIZE];
    if (mad[1] != MAD_CLASS_PM || mad[3] != MAD_METHOD_GET_RESP)
        return false;
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    if (seed >> 62 == 0)
        return false;
    if (seed >> 60 == 15)
        return true; // none at all
    memcpy(copy, mad, MAD_SIZE);
    for (unsigned i = 0, n = seed >> 40 & 31; i < n; i++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        unsigned at = (seed >> 33) % 196;
        copy[at < 2 ? 4 + at : 62 + at - 2] = (uint8_t)(seed >> 20); // the status, and all data
    }
    r->tap.recv(r->tap.recv_arg, copy, from, status);
    return true;
}

static void hostile_answers(void **state)
{
    struct world w = {.o = {.clear_saturated = true, .errors_interval_ns = MONO_S}};
    (void)state;
    world_up(&w, "rail-16", NULL);
    world_sweeps(&w, 1);
    uint32_t n = world_table(&w)->num;
    uint64_t *last = calloc((size_t)n * TELE_COUNTERS, sizeof(uint64_t));
    w.r.take_recv = garble;
    for (unsigned k = 0; k < 60; k++) {
        world_sweeps(&w, 1);
        for (uint32_t i = 0; i < n * TELE_COUNTERS; i++) {
            uint64_t v = world_table(&w)->value[i];
            if (v < last[i] && last[i] < 1ull << 63) // errors are not bounded: it may go round
                fail_msg("%s went back", tele_rows[i % TELE_COUNTERS].name);
            last[i] = v;
        }
    }
    w.r.take_recv = NULL;
    for (unsigned k = 0; k < 370; k++) // what was refused is asked again after an hour
        world_sweeps(&w, 1);
    assert_int_equal(world_status(&w).unread, 0);
    free(last);
    world_down(&w);
}

// Another manager takes over: it goes on with the same folder's history and differences.
static void taken_over(void **state)
{
    struct world w = {0};
    (void)state;
    world_up(&w, "rail-16", NULL);
    uint64_t leaf = world_nth(&w, ROLE_LEAF, 0)->guid;
    world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 44);
    world_sweeps(&w, 2);
    uint32_t s = world_slot(&w, leaf, 1);
    for (unsigned i = 0; i < 3; i++) { // to and fro, also in the middle of a sweep
        rig_run(&w.r, INTERVAL / 2 + INTERVAL / 4 + (int64_t)i * 300 * MONO_MS);
        tele_fabric(w.tele, NULL, NULL, NULL);
        assert_int_equal(world_table(&w)->have[s], 0);
        rig_run(&w.r, 7 * MONO_S);
        world_add(&w, leaf, 1, SIM_SYMBOL_ERRORS, 1);
        world_fabric(&w);
        world_sweeps(&w, 1);
        assert_int_equal(world_status(&w).unread, 0);
        assert_int_equal(world_slot(&w, leaf, 1), s);
        assert_int_equal(world_value(&w, leaf, 1, TELE_SYMBOL_ERRORS), 45 + i);
    }
    assert_int_equal(world_status(&w).resets + world_status(&w).nonsense + world_status(&w).timeouts, 0);
    world_down(&w);
}

static const struct alarm *only_alarm(const struct world *w, const char *rule)
{
    const struct alarm *a, *found = NULL;
    uint32_t n = alarms_list(w->alarms, &a);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].rule->id, rule) == 0) {
            if (found != NULL)
                fail_msg("%s: %s; and %s", rule, found->place, a[i].place);
            found = &a[i];
        }
    if (found == NULL)
        fail_msg("no %s", rule);
    return found;
}

// A dead spine is one alarm, not one of each of its links; an agent that is silent is one of its own.
static void what_is_wrong_becomes_alarms(void **state)
{
    struct world w = {.alarmed = true};
    (void)state;
    world_up(&w, "rail-64", NULL);
    world_sweeps(&w, 2);
    const struct alarm *a;
    assert_int_equal(alarms_list(w.alarms, &a), 0); // all is well

    const struct fabric *f = sm_fabric(w.r.sm);
    const struct node *spine = world_nth(&w, ROLE_SPINE, 0);
    uint64_t guid = spine->guid, silent = world_nth(&w, ROLE_HOST, 5)->guid;
    unsigned links = 0, ports = spine->num_ports;
    for (unsigned i = 1; i <= ports; i++)
        links += port_valid(f->port[spine->first_port + i].peer);
    for (unsigned i = 1; i <= ports; i++)
        sim_link_set(w.r.sim, guid, i, false);
    sim_pma_fault(w.r.sim, silent, 0, SIM_PMA_SILENT, 1000000);
    rig_run(&w.r, 5 * MONO_S);
    world_fabric(&w);
    world_sweeps(&w, 8);
    a = only_alarm(&w, "L01");
    assert_int_equal(a->members, links);
    assert_int_equal(a->node_guid[0], guid);
    a = only_alarm(&w, "S05");
    assert_non_null(strstr(a->place, "gpu-"));

    // A hot module, from a file; its cable's number goes with the alarm.
    char path[300];
    struct err e = {0};
    uint64_t hot = world_nth(&w, ROLE_HOST, 7)->guid;
    snprintf(path, sizeof(path), "%s/cables", w.r.dir);
    FILE *file = fopen(path, "w");
    fprintf(file, "Port=1 Lid=1 GUID=0x%016llx\nSN: X-77\nTemperature: 81C\n", (unsigned long long)hot);
    fclose(file);
    tele_set_modules(w.tele, tele_modules_read(path, NULL, NULL, &e));
    unlink(path);
    world_sweeps(&w, 2);
    a = only_alarm(&w, "L16");
    assert_string_equal(a->cable, "X-77");
    assert_true(tele_module(w.tele, world_slot(&w, hot, 1))->celsius == 81);
    world_down(&w);
}

// A switch whose agent is dead is one alarm; its links are up, and so is what they carry.
static void dead_agents_take_no_link_down(void **state)
{
    struct world w = {0};
    const struct alarm *a;
    (void)state;
    w.alarmed = true;
    world_up(&w, "rail-64", NULL);
    world_sweeps(&w, 2);
    const struct node *spine = world_nth(&w, ROLE_SPINE, 0);
    uint64_t guid = spine->guid;
    uint32_t end = world_slot(&w, guid, 1), far = tele_table(w.tele)->port[end].peer;
    assert_true(far != TELE_SLOT_NONE);
    assert_int_equal(sim_node_kill(w.r.sim, guid, true), 0);
    rig_run(&w.r, 20 * MONO_S);
    sm_resweep(w.r.sm, "test", false);
    rig_run(&w.r, 20 * MONO_S);
    world_fabric(&w);
    world_sweeps(&w, 8);
    assert_null(fabric_by_guid(sm_fabric(w.r.sm), guid)); // it is away
    uint32_t n = alarms_list(w.alarms, &a);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(a[i].rule->id, "L01") == 0)
            fail_msg("%s: %s", a[i].place, a[i].reason);
    assert_true(health_state_at(tele_health(w.tele), world_table(&w), end) != HEALTH_DOWN);
    // Its cable is pulled besides: that is a link down.
    sim_link_set(w.r.sim, world_table(&w)->port[far].node_guid, world_table(&w)->port[far].num, false);
    rig_run(&w.r, 10 * MONO_S);
    world_fabric(&w);
    world_sweeps(&w, 3);
    only_alarm(&w, "L01");
    world_down(&w);
}

// Whom a leaf alone joins to the rest nobody reaches: whether its links are down is known when the leaf is
// off.
static void behind_a_dead_leaf(void **state)
{
    struct world w = {0};
    (void)state;
    w.alarmed = true;
    world_up(&w, "rail-64", NULL);
    world_sweeps(&w, 2);
    const struct node *leaf = world_nth(&w, ROLE_LEAF, 1);
    uint64_t guid = leaf->guid;
    unsigned ports = leaf->num_ports;
    uint32_t host = TELE_SLOT_NONE;
    for (unsigned i = 1; i <= ports && host == TELE_SLOT_NONE; i++) {
        uint32_t s = world_slot(&w, guid, i), far = s != TELE_SLOT_NONE ? world_table(&w)->port[s].peer : s;
        if (far != TELE_SLOT_NONE && !world_table(&w)->port[far].of_switch)
            host = s;
    }
    assert_true(host != TELE_SLOT_NONE);
    assert_int_equal(sim_node_kill(w.r.sim, guid, true), 0);
    for (int off = 0; off < 2; off++) {
        for (unsigned i = 1; i <= ports && off; i++)
            sim_link_set(w.r.sim, guid, i, false);
        rig_run(&w.r, 20 * MONO_S);
        sm_resweep(w.r.sm, "test", false);
        rig_run(&w.r, 20 * MONO_S);
        world_fabric(&w);
        world_sweeps(&w, 6);
        assert_null(fabric_by_guid(sm_fabric(w.r.sm), guid));
        assert_int_equal(health_state_at(tele_health(w.tele), world_table(&w), host) == HEALTH_DOWN, off);
    }
    world_down(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_the_devices),
        cmocka_unit_test(as_many_mads_as_said),
        cmocka_unit_test(old_devices),
        cmocka_unit_test(drops_what_it_does_not_know),
        cmocka_unit_test(dead_and_slow_cost_only_themselves),
        cmocka_unit_test(slower_than_a_sweep),
        cmocka_unit_test(clears_are_recognised),
        cmocka_unit_test(wrong_answers),
        cmocka_unit_test(back_and_again),
        cmocka_unit_test(saturated_and_cleared),
        cmocka_unit_test(errors_each_second),
        cmocka_unit_test(slots_outlive_snapshots),
        cmocka_unit_test(snapshot_amid_a_sweep),
        cmocka_unit_test(redirected),
        cmocka_unit_test(waits_by_lane),
        cmocka_unit_test(over_a_restart),
        cmocka_unit_test(hostile_answers),
        cmocka_unit_test(taken_over),
        cmocka_unit_test(what_is_wrong_becomes_alarms),
        cmocka_unit_test(dead_agents_take_no_link_down),
        cmocka_unit_test(behind_a_dead_leaf),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
