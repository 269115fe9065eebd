// SPDX-License-Identifier: Apache-2.0
// Live hosts against an SA made here: what they ask and in which order, back-off, time-outs, what makes them
// begin anew, leaving, path queries, equal runs.
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
static unsigned num_hosts;

// --- an SA that takes every join ---
static struct sa {
    bool silent;
    uint16_t status;    // to joins
    uint16_t solicited; // status to solicited-node joins
    bool wrong_mgid;    // a useless answer
    unsigned joins[3], leaves, infos, paths, others;
    int64_t at[64]; // times of joins of the far host's broadcast group
    unsigned n_at;
    uint64_t mask[3];
    struct mad_mc_member_record last[3];
    struct mad_sa_hdr last_hdr;
    struct mad_path_record path;
    struct mad_addr from;
} sa;

static unsigned group_of(const uint8_t *mgid)
{
    if (mgid[3] == 0x1b && mgid[2] == 0x60)
        return 2;
    return mgid[15] == 0xff ? 0 : 1;
}

static uint16_t member(struct mad_sa_hdr *h, uint8_t *data, const struct mad_addr *from)
{
    struct mad_mc_member_record r;
    mad_mc_member_record_decode(data, &r);
    unsigned g = group_of(r.mgid);
    if (h->method == MAD_METHOD_DELETE) {
        sa.leaves++;
        return 0;
    }
    sa.joins[g]++;
    if (from->lid == rig_lid_of(&rig, e.host)) {
        sa.mask[g] = h->component_mask;
        sa.last[g] = r;
        if (g == 0 && sa.n_at < 64)
            sa.at[sa.n_at++] = loop_now(rig.l).ns;
    }
    if (sa.status != 0 || (g == 2 && sa.solicited != 0))
        return sa.status ? sa.status : sa.solicited;
    r.mlid = (uint16_t)(0xc000 + g);
    r.join_state = 3; // as a member has it that had joined otherwise before
    r.q_key = 0xb1b;
    r.mtu = 4;
    r.rate = 3;
    r.hop_limit = 5;
    r.flow_label = 0x12345;
    r.tclass = 0x17;
    r.sl = 2;
    if (sa.wrong_mgid)
        r.mgid[7] = 1;
    mad_mc_member_record_encode(&r, data);
    return 0;
}

static void serve(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct mad_sa_hdr h;
    rig_recv(arg, mad, from, status);
    mad_sa_hdr_decode(mad, &h);
    if (h.mgmt_class != MAD_CLASS_SA || mad_is_response(h.method))
        return;
    uint8_t answer[MAD_SIZE];
    memcpy(answer, mad, MAD_SIZE);
    assert_int_equal(h.class_version, 2);
    assert_int_equal(h.rmpp_version, 1);
    assert_int_equal(from->remote_qpn, 1);
    sa.from = *from;
    uint16_t st = 0;
    if (h.attr_id == MAD_SA_ATTR_MC_MEMBER_RECORD)
        st = member(&h, answer + 56, from);
    else if (h.attr_id == MAD_ATTR_CLASS_PORT_INFO)
        sa.infos++;
    else if (h.attr_id == MAD_SA_ATTR_PATH_RECORD) {
        sa.paths++;
        mad_path_record_decode(answer + 56, &sa.path);
    } else
        sa.others++;
    if (sa.silent)
        return;
    answer[3] = h.method == MAD_METHOD_DELETE ? MAD_METHOD_DELETE_RESP : MAD_METHOD_GET_RESP;
    answer[4] = (uint8_t)(st >> 8);
    answer[5] = (uint8_t)st;
    assert_int_equal(rig.t->ops->send(rig.t, answer, from, 0), 0);
}

static int setup_opts(const struct sim_opts *o)
{
    rig_up(&rig, o, &e);
    rig.t->recv = serve;
    memset(&sa, 0, sizeof(sa));
    num_hosts = 0;
    for (uint32_t i = 0; i < rig.f->num_nodes; i++)
        num_hosts += rig.f->node[i].type == NODE_CA;
    return 0;
}

static int setup(void **state)
{
    return setup_opts(&(struct sim_opts){.p_key_check = true, .q_key_check = true});
}

static int teardown(void **state)
{
    rig_stop(&rig);
    return 0;
}

static struct sim_hosts_stats stats(void)
{
    struct sim_hosts_stats st;
    sim_hosts_stats(rig.s, &st);
    return st;
}

static struct sim_host_view far_host(void)
{
    struct sim_host_view v;
    assert_int_equal(sim_host_view(rig.s, e.host, 1, &v), 0);
    return v;
}

static void everybody_joins(void **state)
{
    sim_hosts_start(rig.s, NULL);
    rig_run(&rig, MONO_S / 2);
    struct sim_hosts_stats st = stats();
    assert_int_equal(st.hosts, num_hosts);
    assert_int_equal(st.active, num_hosts);
    assert_int_equal(st.joined, num_hosts);
    assert_int_equal(st.ipoib_up, num_hosts);
    assert_int_equal(st.attempts, 3 * num_hosts);
    assert_int_equal(st.failures + st.timeouts, 0);
    assert_int_equal(st.infos, 0);
    for (unsigned g = 0; g < 3; g++)
        assert_int_equal(sa.joins[g], num_hosts);
    rig_run(&rig, MONO_S);
    assert_int_equal(stats().infos_ok, num_hosts);
    assert_int_equal(sa.infos, num_hosts);
    struct sim_host_view v = far_host();
    assert_true(v.active && v.ipoib_up && v.joined);
    assert_int_equal(v.mlid[0], 0xc000);
    assert_int_equal(v.mlid[2], 0xc002);
    assert_int_equal(v.attempts, 3);
    assert_int_equal(v.join_ns, 0); // no latency here
    rig_run(&rig, 100 * MONO_S);
    assert_int_equal(stats().attempts, 3 * num_hosts); // and then all is quiet
    assert_int_equal(stats().infos, num_hosts);
    assert_int_equal(sa.others, 0);
    assert_int_equal(sim_host_view(rig.s, e.leaf, 1, &v), -ENOENT);
    sim_hosts_stop(rig.s);
    assert_int_equal(sim_host_view(rig.s, e.host, 1, &v), -ENOENT);
    assert_int_equal(stats().hosts, 0);
}

static void what_linux_asks(void **state)
{
    static const uint8_t broadcast[] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,    0,
                                        0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};
    static const uint8_t all_hosts[] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    uint8_t solicited[] = {0xff, 0x12, 0x60, 0x1b, 0xff, 0xff, 0, 0, 0, 0, 0, 1, 0xff, 0, 0, 0};
    sim_hosts_start(rig.s, NULL);
    rig_run(&rig, MONO_S / 2);
    for (unsigned i = 0; i < 3; i++)
        solicited[13 + i] = (uint8_t)(e.host_port_guid >> (16 - 8 * i));
    assert_memory_equal(sa.last[0].mgid, broadcast, 16);
    assert_memory_equal(sa.last[1].mgid, all_hosts, 16);
    assert_memory_equal(sa.last[2].mgid, solicited, 16);
    // MGID, PortGID, P_Key, JoinState only: it must not make the group
    assert_true(sa.mask[0] == (1 << 0 | 1 << 1 | 1 << 7 | 1 << 16));
    // and all that it takes to make one, as the broadcast group has it
    uint64_t full =
        1 << 0 | 1 << 1 | 1 << 2 | 3 << 4 | 1 << 6 | 1 << 7 | 3 << 8 | 1 << 12 | 1 << 13 | 1 << 14 | 1 << 16;
    for (unsigned g = 1; g < 3; g++) {
        assert_true(sa.mask[g] == full);
        assert_true(sa.last[g].q_key == 0xb1b && sa.last[g].mtu == 4 && sa.last[g].mtu_selector == 2);
        assert_true(sa.last[g].rate == 3 && sa.last[g].rate_selector == 2 && sa.last[g].hop_limit == 5);
        assert_true(sa.last[g].flow_label == 0x12345 && sa.last[g].tclass == 0x17 && sa.last[g].sl == 2);
    }
    for (unsigned g = 0; g < 3; g++) {
        assert_int_equal(sa.last[g].join_state, 1);
        assert_int_equal(sa.last[g].p_key, 0xffff);
        assert_int_equal(sa.last[g].port_gid[0], 0xfe);
        assert_int_equal(sa.last[g].port_gid[15], e.host_port_guid & 0xff);
    }
    sim_hosts_start(rig.s, &(struct sim_hosts_opts){.no_ipv6 = true});
    rig_run(&rig, MONO_S / 2);
    assert_int_equal(stats().joined, num_hosts);
    assert_int_equal(stats().attempts, 2 * num_hosts);
}

static void back_off_after_errors(void **state)
{
    static const int64_t gap[] = {1, 2, 4, 8, 16, 16, 16};
    sa.status = MAD_SA_REQ_INVALID;
    sim_hosts_start(rig.s, NULL);
    rig_run(&rig, 64 * MONO_S);
    assert_int_equal(sa.n_at, 8); // at 0, 1, 3, 7, 15, 31, 47, 63 s
    for (unsigned i = 0; i < 7; i++)
        assert_int_equal(sa.at[i + 1] - sa.at[i], gap[i] * MONO_S);
    assert_int_equal(sa.joins[1], 0); // not before the broadcast group
    assert_int_equal(stats().failures, 8 * num_hosts);
    assert_int_equal(stats().joined + stats().ipoib_up, 0);
    sa.status = 0;
    sa.solicited = MAD_SA_NO_RESOURCES; // up, but not in all groups
    rig_run(&rig, 16 * MONO_S);
    assert_int_equal(stats().ipoib_up, num_hosts);
    assert_int_equal(stats().joined, 0);
    sa.solicited = 0;
    rig_run(&rig, 16 * MONO_S);
    assert_int_equal(stats().joined, num_hosts);
    assert_true(far_host().join_ns >= 79 * MONO_S);
    assert_true(stats().max_join_ns >= stats().sum_join_ns / num_hosts);
    assert_int_equal(stats().joins, num_hosts);
}

static void time_outs(void **state)
{
    sa.silent = true;
    sim_hosts_start(rig.s, NULL);
    rig_run(&rig, 29 * MONO_S);
    // 3 s and the back-off: 0, 4, 9, 16, 27
    static const int64_t at[] = {0, 4, 9, 16, 27};
    assert_int_equal(sa.n_at, 5);
    for (unsigned i = 1; i < 5; i++)
        assert_int_equal(sa.at[i] - sa.at[0], at[i] * MONO_S);
    assert_int_equal(far_host().timeouts, 4);
    assert_int_equal(sa.infos, 3 * num_hosts); // gives up
    assert_int_equal(stats().infos_ok, 0);
    // a late answer to an earlier try is none
    sa.silent = false;
    sa.wrong_mgid = true;
    rig_run(&rig, 20 * MONO_S);
    assert_int_equal(stats().ipoib_up, 0);
    assert_true(stats().failures >= num_hosts);
    sa.wrong_mgid = false;
    rig_run(&rig, 20 * MONO_S);
    assert_int_equal(stats().joined, num_hosts);
    // another time-out
    sa.silent = true;
    sa.n_at = 0;
    sim_hosts_start(rig.s, &(struct sim_hosts_opts){.timeout_ns = MONO_S});
    rig_run(&rig, 3 * MONO_S);
    assert_int_equal(sa.n_at, 2); // 0, 2
}

static void set_port(uint64_t guid, void (*change)(struct mad_port_info *))
{
    struct dest d = rig_path(&rig, guid);
    struct mad_port_info pi;
    assert_int_equal(rig_get_port(&rig, &d, 0, &pi), 0);
    pi.port_state = pi.port_physical_state = 0;
    change(&pi);
    assert_int_equal(rig_set_port(&rig, &d, 0, &pi), 0);
}

static void nothing(struct mad_port_info *pi)
{
}
static void reregister(struct mad_port_info *pi)
{
    pi->client_reregister = 1;
}
static void armed(struct mad_port_info *pi)
{
    pi->port_state = MAD_PORT_ARMED;
}
static void active(struct mad_port_info *pi)
{
    pi->port_state = MAD_PORT_ACTIVE;
}
static void other_sm(struct mad_port_info *pi)
{
    pi->master_sm_lid = 77;
}

static void what_makes_them_begin_anew(void **state)
{
    sim_hosts_start(rig.s, NULL);
    rig_run(&rig, 2 * MONO_S);
    uint64_t before = stats().restarts;
    set_port(e.host, nothing);
    rig_run(&rig, 2 * MONO_S);
    assert_int_equal(stats().restarts, before);
    set_port(e.host, reregister);
    rig_run(&rig, 2 * MONO_S);
    assert_int_equal(stats().restarts, before + 1);
    assert_int_equal(far_host().attempts, 6);
    assert_int_equal(sa.joins[0], num_hosts + 1);
    assert_int_equal(sa.infos, num_hosts + 1);
    assert_int_equal(sa.leaves, 0);
    set_port(e.host, other_sm); // nobody is there
    rig_run(&rig, 2 * MONO_S);
    assert_int_equal(stats().restarts, before + 2);
    assert_false(far_host().ipoib_up);
    rig_run(&rig, 10 * MONO_S);
    assert_true(far_host().timeouts > 0);
    // the link goes and comes back
    assert_int_equal(sim_link_flap(rig.s, e.host, 1, 0, 0, 1), 0);
    assert_false(far_host().active);
    assert_int_equal(stats().active, num_hosts - 1);
    rig_run(&rig, 30 * MONO_S);
    assert_false(far_host().ipoib_up);
    struct dest leaf = rig_path(&rig, e.far_leaf);
    struct mad_port_info pi;
    for (unsigned st = MAD_PORT_ARMED; st <= MAD_PORT_ACTIVE; st++) {
        if (st == MAD_PORT_ARMED)
            set_port(e.host, armed);
        assert_int_equal(rig_get_port(&rig, &leaf, e.far_port, &pi), 0);
        pi.port_physical_state = 0;
        pi.port_state = (uint8_t)st;
        assert_int_equal(rig_set_port(&rig, &leaf, e.far_port, &pi), 0);
    }
    set_port(e.host, active);
    assert_true(far_host().active);
    before = stats().restarts;
    struct dest d = rig_path(&rig, e.host);
    assert_int_equal(rig_get_port(&rig, &d, 0, &pi), 0);
    pi.master_sm_lid = e.sm_lid;
    pi.port_state = pi.port_physical_state = 0;
    assert_int_equal(rig_set_port(&rig, &d, 0, &pi), 0);
    rig_run(&rig, MONO_S);
    assert_int_equal(stats().restarts, before + 1);
    assert_true(far_host().joined);
}

static void boots(void **state)
{
    sim_hosts_start(rig.s, NULL);
    rig_run(&rig, 2 * MONO_S);
    memset(sa.joins, 0, sizeof(sa.joins));
    assert_int_equal(sim_host_reboot(rig.s, e.host, 10 * MONO_S, NULL, false), 0);
    assert_true(far_host().booting);
    rig_run(&rig, 9 * MONO_S);
    assert_int_equal(sa.leaves, 0);
    assert_int_equal(sa.joins[0], 0);
    assert_false(far_host().ipoib_up);
    set_port(e.host, reregister); // nobody hears
    rig_run(&rig, MONO_S / 2);
    assert_int_equal(sa.joins[0], 0);
    rig_run(&rig, 2 * MONO_S);
    assert_int_equal(sa.joins[0], 1);
    assert_true(far_host().joined);
    assert_int_equal(sim_host_reboot(rig.s, e.host, 10 * MONO_S, NULL, true), 0);
    rig_run(&rig, MONO_S);
    assert_int_equal(sa.leaves, 3);
    assert_int_equal(stats().leaves, 3);
    assert_false(far_host().ipoib_up);
    rig_run(&rig, 10 * MONO_S);
    assert_true(far_host().joined);
    assert_int_equal(sa.leaves, 3);
}

static void without_the_p_key_no_attempt(void **state)
{
    sim_hosts_start(rig.s, &(struct sim_hosts_opts){.p_key = 0x8123});
    rig_run(&rig, 5 * MONO_S);
    assert_int_equal(stats().attempts, 0);
    struct dest d = rig_path(&rig, e.host);
    uint8_t keys[64] = {0xff, 0xff, 0x81, 0x23};
    assert_int_equal(rig_smp(&rig, &d, MAD_METHOD_SET, MAD_ATTR_P_KEY_TABLE, 0, keys), 0);
    rig_run(&rig, 16 * MONO_S);
    assert_int_equal(stats().joined, 1);
    assert_true(far_host().joined);
    assert_int_equal(sa.last[0].p_key, 0x8123);
    assert_int_equal(sa.last[0].mgid[4], 0x81);
}

// GMPs need the way there and the way back.
static void needs_both_ways(void **state)
{
    uint8_t block[64];
    struct dest leaf = rig_path(&rig, e.far_leaf);
    uint16_t lid = rig_lid_of(&rig, e.host);
    assert_true(lid < 64);
    assert_int_equal(rig_smp(&rig, &leaf, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, block), 0);
    uint8_t kept = block[lid];
    block[lid] = 255; // the way back
    assert_int_equal(rig_smp(&rig, &leaf, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, block), 0);
    sim_hosts_start(rig.s, NULL);
    rig_run(&rig, 10 * MONO_S);
    assert_int_equal(stats().joined, num_hosts - 1);
    assert_int_equal(far_host().timeouts, 2);
    assert_int_equal(sa.n_at, 3); // the SA heard it
    block[lid] = kept;
    assert_int_equal(rig_smp(&rig, &leaf, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE, 0, block), 0);
    rig_run(&rig, 10 * MONO_S);
    assert_true(far_host().joined);
}

static void path_queries(void **state)
{
    sim_hosts_start(rig.s, &(struct sim_hosts_opts){.path_hz = 10});
    rig_run(&rig, 10 * MONO_S);
    struct sim_hosts_stats st = stats();
    assert_in_range(st.paths, 99 * num_hosts, 101 * num_hosts);
    assert_int_equal(st.paths_ok, st.paths);
    assert_int_equal(sa.paths, st.paths);
    assert_int_equal(sa.path.numb_path, 1);
    assert_int_equal(sa.path.sgid[0], 0xfe);
    assert_int_equal(sa.path.dgid[0], 0xfe);
    sa.silent = true;
    rig_run(&rig, 10 * MONO_S);
    assert_true(stats().paths_timeouts >= num_hosts);
    assert_int_equal(stats().paths_ok, st.paths);
}

static void spread(void **state)
{
    sim_hosts_start(rig.s, &(struct sim_hosts_opts){.spread_ns = 10 * MONO_S});
    rig_run(&rig, 5 * MONO_S);
    assert_in_range(stats().joined, num_hosts / 5, num_hosts - num_hosts / 5);
    rig_run(&rig, 5 * MONO_S + 1);
    assert_int_equal(stats().joined, num_hosts);
}

static void equal_runs_are_equal(void **state)
{
    uint64_t digest[3];
    struct sim_hosts_stats st[3];
    for (unsigned i = 0; i < 3; i++) {
        setup_opts(&(struct sim_opts){.link_latency_ns = 100, .service_ns = 3000});
        sim_set_loss(rig.s, i == 2 ? 0.06 : 0.05);
        sim_hosts_start(rig.s, &(struct sim_hosts_opts){.path_hz = 1, .spread_ns = MONO_S});
        rig_run(&rig, 5 * MONO_S);
        (void)sim_link_flap(rig.s, e.leaf, e.up_port, MONO_MS, MONO_MS, 5);
        (void)sim_host_reboot(rig.s, e.host, MONO_S, NULL, true);
        rig_run(&rig, 20 * MONO_S);
        digest[i] = sim_digest(rig.s);
        st[i] = stats();
        rig_stop(&rig);
    }
    assert_true(digest[0] == digest[1]);
    assert_memory_equal(&st[0], &st[1], sizeof(st[0]));
    assert_true(digest[0] != digest[2]);
}

int main(void)
{
#define UP(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        UP(everybody_joins),
        UP(what_linux_asks),
        UP(back_off_after_errors),
        UP(time_outs),
        UP(what_makes_them_begin_anew),
        UP(boots),
        UP(without_the_p_key_no_attempt),
        UP(needs_both_ways),
        UP(path_queries),
        UP(spread),
        cmocka_unit_test(equal_runs_are_equal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
