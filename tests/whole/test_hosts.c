// SPDX-License-Identifier: Apache-2.0
// Live hosts: adapters that behave like Linux with IPoIB, while the fabric comes up, is damaged, and while
// the manager is restarted.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mad/mad.h"
#include "tests/whole/rig.h"

static const struct sim_opts timed = {
    .seed = 7, .link_latency_ns = 1000, .service_ns = 5000, .train_ns = 10 * MONO_MS};

static struct sim_hosts_stats stats(const struct rig *r)
{
    struct sim_hosts_stats st;
    sim_hosts_stats(r->sim, &st);
    return st;
}

static void all_joined(const struct rig *r, uint32_t hosts)
{
    struct sim_hosts_stats st = stats(r);
    if (st.joined != hosts || st.active != hosts)
        fail_msg(
            "%u of %u hosts are active, %u have IPoIB, %u are in all groups; %llu attempts, %llu failures, "
            "%llu time-outs",
            st.active, hosts, st.ipoib_up, st.joined, (unsigned long long)st.attempts,
            (unsigned long long)st.failures, (unsigned long long)st.timeouts);
}

// A host asks the moment its port is ACTIVE: the first join of each is answered.
static void test_first_join_succeeds(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-256", &timed);
    sim_hosts_start(r.sim, NULL);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 3 * MONO_S);
    all_joined(&r, 256);
    struct sim_hosts_stats st = stats(&r);
    assert_int_equal(st.timeouts, 0);
    assert_int_equal(st.failures, 0);
    assert_int_equal(st.infos, st.infos_ok);
    assert_in_range(st.max_join_ns, 1, MONO_S);
    rig_done(&r);
}

// A restart that finds all as it was makes nobody join again, and groups outlive it.
static void test_restart_disturbs_nobody(void **state)
{
    struct rig r;
    (void)state;
    rig_init(&r, "rail-64", &timed);
    sim_hosts_start(r.sim, NULL);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 5 * MONO_S);
    all_joined(&r, 64);
    struct sim_hosts_stats before = stats(&r);
    rig_down(&r);
    rig_run(&r, MONO_S);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(rig_count(&r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO), 0);
    rig_run(&r, 20 * MONO_S);
    all_joined(&r, 64);
    struct sim_hosts_stats after = stats(&r);
    assert_int_equal(after.restarts, before.restarts);
    assert_int_equal(after.attempts, before.attempts);
    rig_done(&r);
}

// With the groups lost, every port is told to join again, once.
static void test_lost_groups_are_joined_again(void **state)
{
    struct rig r;
    char file[400];
    (void)state;
    rig_init(&r, "rail-64", &timed);
    sim_hosts_start(r.sim, NULL);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 5 * MONO_S);
    all_joined(&r, 64);
    struct sim_hosts_stats before = stats(&r);
    rig_down(&r);
    snprintf(file, sizeof(file), "%s/meta.db", r.dir);
    assert_int_equal(remove(file), 0);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 30 * MONO_S);
    all_joined(&r, 64);
    struct sim_hosts_stats after = stats(&r);
    assert_int_equal(after.restarts - before.restarts, 64);
    rig_run(&r, 60 * MONO_S);
    assert_int_equal(stats(&r).restarts, after.restarts);
    rig_done(&r);
}

// A host that reboots joins again; nobody else notices.
static void test_host_reboots(void **state)
{
    struct rig r;
    uint64_t guid = 0;
    (void)state;
    rig_init(&r, "rail-64", &timed);
    sim_hosts_start(r.sim, NULL);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 5 * MONO_S);
    for (uint32_t i = 0; i < r.plan->num_nodes; i++)
        if (r.plan->node[i].role == ROLE_HOST)
            guid = r.plan->node[i].guid;
    struct sim_hosts_stats before = stats(&r);
    assert_int_equal(sim_node_reboot(r.sim, guid), 0);
    rig_run(&r, 10 * MONO_S);
    all_joined(&r, 64);
    struct sim_hosts_stats after = stats(&r);
    assert_int_equal(after.restarts - before.restarts, 1);
    assert_int_equal(after.timeouts, before.timeouts);
    rig_done(&r);
}

// Power comes back everywhere at once.
static void test_power_restored(void **state)
{
    struct rig r;
    struct sim_stats st;
    (void)state;
    rig_init(&r, "rail-1024", &timed);
    sim_hosts_start(r.sim, &(struct sim_hosts_opts){.spread_ns = 200 * MONO_MS});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    rig_run(&r, 5 * MONO_S);
    all_joined(&r, 1024);
    uint64_t ours = fabric_port(r.plan, r.plan->sm_port)->guid;
    for (uint32_t i = 0; i < r.plan->num_nodes; i++)
        if (r.plan->node[i].role == ROLE_HOST && r.plan->port[r.plan->node[i].first_port].guid != ours)
            assert_int_equal(sim_node_reboot(r.sim, r.plan->node[i].guid), 0);
    rig_run(&r, 20 * MONO_S);
    all_joined(&r, 1024);
    sim_get_stats(r.sim, &st);
    assert_int_equal(st.dropped_vl15, 0);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_join_succeeds),
        cmocka_unit_test(test_restart_disturbs_nobody),
        cmocka_unit_test(test_lost_groups_are_joined_again),
        cmocka_unit_test(test_host_reboots),
        cmocka_unit_test(test_power_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
