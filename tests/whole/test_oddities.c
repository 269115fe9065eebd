// SPDX-License-Identifier: Apache-2.0
// What happens to the links, switches and hosts of a live fabric, one row after the other: what was read and
// written for it, what was told, which LIDs and tables it left, and how long it took, in virtual time.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "mad/mad.h"
#include "tests/whole/odd.h"

// --- a trunk ---

static void trunk(bool ours, bool lost_traps)
{
    struct odd o;
    unsigned far, blocks;
    up_on(&o, "rail-64");
    const struct node *leaf = ours ? own_leaf(&o) : nth(&o, ROLE_LEAF, 2);
    unsigned num = uplink(&o, leaf, 0);
    const struct node *spine = peer_of(&o, leaf, num, &far);
    unsigned bound = leaf->num_ports + spine->num_ports + 6 + 20;
    uint8_t *home = tables(&o);

    for (int down = 1; down >= 0; down--) {
        if (lost_traps) {
            assert_int_equal(sim_trap_lose(o.r.sim, leaf->guid, 10), 0);
            assert_int_equal(sim_trap_lose(o.r.sim, spine->guid, 10), 0);
        }
        mark(&o);
        assert_int_equal(sim_link_set(o.r.sim, leaf->guid, num, !down), 0);
        int64_t ns = repaired(&o, 2 * MONO_S);
        if (!down && state_of(&o, leaf->guid, num) != PORT_ACTIVE) {
            rig_sweeps(&o.r, 1, 2);
            ns = mono_sub(loop_now(o.r.loop), o.at);
        }
        rig_run(&o.r, 500 * MONO_MS);
        blocks = changed_blocks(&o);
        show(&o, down ? "trunk down" : "trunk up", ns);
        assert_false(any_full(&o));
        assert_int_equal(lft_sets(&o), blocks);
        assert_true(blocks > 0);
        assert_true(ns <= (lost_traps ? 3 * MONO_S / 2 : MONO_S / 5));
        assert_in_range(mads(&o), leaf->num_ports + spine->num_ports, bound + blocks);
        assert_int_equal(rig_events_of(&o.r, down ? "link-removed" : "link-added"), 1);
        assert_int_equal(o.r.events - o.events, 1);
        quiet(&o, 5, 2);
        rig_judge(&o.r, NULL, 0);
    }
    assert_memory_equal(home, o.before, (size_t)o.r.plan->num_switches * o.lids);
    assert_int_equal(state_of(&o, leaf->guid, num), PORT_ACTIVE);
    free(home);
    done(&o);
}

static void test_trunk(void **state)
{
    (void)state;
    trunk(false, false);
    trunk(true, false);
}

static void test_trunk_without_traps(void **state)
{
    (void)state;
    trunk(false, true);
    trunk(true, true);
}

// --- a host ---

static void test_host(void **state)
{
    struct odd o;
    unsigned num;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *host = nth(&o, ROLE_HOST, 20), *leaf = peer_of(&o, host, 1, &num);
    uint16_t lid = lid_of(&o, port_of(&o, host, 1)->guid);
    assert_true(lid != 0);
    for (int down = 1; down >= 0; down--) {
        mark(&o);
        assert_int_equal(sim_link_set(o.r.sim, host->guid, 1, !down), 0);
        int64_t ns = repaired(&o, 2 * MONO_S);
        rig_run(&o.r, 500 * MONO_MS);
        show(&o, down ? "host down" : "host up", ns);
        assert_in_range(mads(&o), leaf->num_ports, leaf->num_ports + 40);
        assert_int_equal(lft_sets(&o), 0);
        assert_int_equal(changed_blocks(&o), 0);
        assert_int_equal(rig_events_of(&o.r, down ? "node-removed" : "node-added"), 1);
        assert_int_equal(o.r.events - o.events, 1);
        assert_true(ns < MONO_S / 5);
        quiet(&o, 5, 0);
    }
    assert_int_equal(lid_of(&o, port_of(&o, host, 1)->guid), lid);
    assert_int_equal(state_of(&o, leaf->guid, num), PORT_ACTIVE);
    rig_judge(&o.r, NULL, 0);
    done(&o);
}

// --- a bundle of cables ---

// Parallel trunks of the manager's own leaf, and of another one, die one after the other within some
// milliseconds: repair does not wait for what still goes over the first of them.
static void test_bundle(void **state)
{
    static const int64_t step_us[] = {0,    50,   200,  500,  1000,  1500,  2000,
                                      3000, 4000, 5000, 7000, 10000, 20000, 40000};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof(step_us) / sizeof(step_us[0]); i++) {
        struct odd o;
        int64_t step = step_us[i / 2] * MONO_US;
        up_on(&o, "rail-64");
        const struct node *leaf = i % 2 == 0 ? own_leaf(&o) : nth(&o, ROLE_LEAF, 3);
        unsigned first = uplink(&o, leaf, 0);
        mark(&o);
        for (unsigned k = 0; k < 4; k++) {
            assert_int_equal(sim_link_set(o.r.sim, leaf->guid, first + k, false), 0);
            if (k < 3)
                rig_run(&o.r, step);
        }
        int64_t ns = repaired(&o, 10 * MONO_S);
        char what[80];
        snprintf(what, sizeof(what), "%s trunks every %lld us", i % 2 == 0 ? "our leaf's" : "a leaf's",
                 (long long)step_us[i / 2]);
        show(&o, what, ns);
        if (ns > 3 * step + MONO_S / 2)
            fail_msg("%s: %.3f s", what, (double)ns / 1e9);
        rig_judge(&o.r, NULL, 0);
        done(&o);
    }
}

// --- a spine ---

static void test_spine_dead(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *spine = nth(&o, ROLE_SPINE, 1);
    uint8_t *home = tables(&o);
    unsigned ports = 8 * (64 + 3); // those of its leaves
    for (int down = 1; down >= 0; down--) {
        mark(&o);
        all_links(&o, spine, !down);
        int64_t ns = repaired(&o, 3 * MONO_S);
        rig_run(&o.r, MONO_S);
        show(&o, down ? "spine's links down" : "spine's links up", ns);
        unsigned blocks = changed_blocks(&o);
        assert_int_equal(lft_sets(&o), blocks);
        assert_int_equal(rig_events_of(&o.r, down ? "node-removed" : "node-added"), 1);
        assert_int_equal(rig_events_of(&o.r, "link-removed") + rig_events_of(&o.r, "link-added"), 0);
        assert_true(ns < MONO_S / 5);
        // Up: itself, its links' probes and their four Sets, its table read.
        assert_in_range(mads(&o), ports, ports + blocks + 20 + (down ? 0 : 67 + 64 * 5 + 20));
        quiet(&o, 5, 8);
    }
    assert_memory_equal(home, o.before, (size_t)o.r.plan->num_switches * o.lids);
    rig_judge(&o.r, NULL, 0);
    free(home);
    done(&o);
}

// Its agent dies, its links stay: packets still cross it, so there is no hurry to leave it out.
static void test_spine_mute(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *spine = nth(&o, ROLE_SPINE, 1);
    uint8_t *home = tables(&o);
    mark(&o);
    assert_int_equal(sim_node_kill(o.r.sim, spine->guid, true), 0);
    rig_run(&o.r, 3 * MONO_S);
    assert_int_equal(changed_blocks(&o), 0);
    assert_int_equal(lft_sets(&o), 0);
    while (fabric_by_guid(sm_fabric(o.r.sm), spine->guid) != NULL) {
        rig_run(&o.r, 10 * MONO_MS);
        assert_true(mono_sub(loop_now(o.r.loop), o.at) < 8 * MONO_S);
    }
    show(&o, "spine's agent dead", mono_sub(loop_now(o.r.loop), o.at));
    assert_true(whole(&o));
    assert_int_equal(findings_of(&o, "peer-silent"), 1);
    assert_int_equal(rig_events_of(&o.r, "node-removed"), 1);
    assert_int_equal(rig_events_of(&o.r, "link-removed"), 0);
    rig_run(&o.r, MONO_S);
    unsigned blocks = changed_blocks(&o);
    assert_int_equal(lft_sets(&o), blocks);
    unsigned sweeps = o.r.sweeps;
    rig_run(&o.r, 60 * MONO_S);
    assert_in_range(o.r.sweeps - sweeps, 0, 3);
    assert_int_equal(findings_of(&o, "peer-silent"), 1);
    assert_int_equal(o.r.events - o.events, 1);

    mark(&o);
    assert_int_equal(sim_node_kill(o.r.sim, spine->guid, false), 0);
    while (sm_fabric(o.r.sm)->num_links < o.r.plan->num_links || !whole(&o)) {
        rig_run(&o.r, 10 * MONO_MS);
        if (mono_sub(loop_now(o.r.loop), o.at) > 3 * MONO_S)
            fail_msg("%u of %u links after 3 s", sm_fabric(o.r.sm)->num_links, o.r.plan->num_links);
    }
    int64_t ns = mono_sub(loop_now(o.r.loop), o.at);
    rig_run(&o.r, 3 * MONO_S - ns);
    show(&o, "spine's agent alive", ns);
    rig_judge(&o.r, NULL, 0);
    changed_blocks(&o);
    assert_memory_equal(home, o.before, (size_t)o.r.plan->num_switches * o.lids);
    assert_int_equal(findings_of(&o, "peer-silent"), 0);
    assert_in_range(o.r.events - o.events, 1, 2);
    assert_int_equal(rig_events_of(&o.r, "node-added"), 1);
    quiet(&o, 5, 0);
    free(home);
    done(&o);
}

// --- a switch boots ---

static unsigned mft_ports(const struct odd *o, uint64_t guid)
{
    unsigned n = 0;
    for (uint16_t mlid = 0xc000; mlid < 0xc080; mlid++)
        for (unsigned num = 0; num <= 64; num++) {
            bool set = false;
            if (sim_mft(o->r.sim, guid, mlid, num, &set) == 0)
                n += set;
        }
    return n;
}

static void check_booted(struct odd *o, const struct node *sw, unsigned mft)
{
    const struct fabric *f = o->r.plan;
    uint8_t *was = o->before;
    o->before = tables(o);
    uint8_t *now = tables(o);
    for (uint32_t i = 0; i < f->num_switches; i++)
        if (memcmp(was + i * o->lids, now + i * o->lids, o->lids) != 0)
            fail_msg("switch %u has other tables", i);
    free(was);
    free(now);
    assert_int_equal(mft_ports(o, sw->guid), mft);
    assert_int_equal(state_of(o, sw->guid, uplink(o, sw, 0)), PORT_ACTIVE);
    rig_judge(&o->r, NULL, 0);
}

static unsigned hosts_of(const struct odd *o, const struct node *leaf)
{
    unsigned n = 0;
    for (unsigned num = 1; num <= leaf->num_ports; num++) {
        const struct node *z = peer_of(o, leaf, num, NULL);
        n += z != NULL && z->type == NODE_CA;
    }
    return n;
}

static void boot(enum node_role role, bool quick)
{
    struct odd o;
    up_on(&o, "rail-64");
    sim_hosts_start(o.r.sim, NULL);
    rig_run(&o.r, 20 * MONO_S);
    const struct node *sw = nth(&o, role, 2);
    unsigned mft = mft_ports(&o, sw->guid), blocks = sm_fabric(o.r.sm)->top_lid / LFT_BLOCK + 1u;
    assert_true(role != ROLE_LEAF || mft > 0);
    changed_blocks(&o);
    mark(&o);
    if (quick) {
        sim_trap_loss(o.r.sim, 1.0);
        assert_int_equal(sim_switch_reboot(o.r.sim, sw->guid), 0);
        rig_run(&o.r, 1500 * MONO_MS);
        show(&o, "quick reboot", 0);
        assert_in_range(lft_sets(&o), 1, blocks);
        assert_true(whole(&o));
    } else {
        assert_int_equal(sim_node_boot(o.r.sim, sw->guid, 2 * MONO_S, 5 * MONO_S), 0);
        rig_run(&o.r, 10 * MONO_S);
        show(&o, "boot of 5 s", 0);
    }
    rig_run(&o.r, 20 * MONO_S); // joins too
    check_booted(&o, sw, mft);
    if (quick) {
        assert_int_equal(rig_events_of(&o.r, "node-reset"), 1);
        assert_int_equal(o.r.events - o.events, 1);
    } else {
        unsigned n = role == ROLE_LEAF ? 1 + hosts_of(&o, sw) : 1;
        assert_int_equal(rig_events_of(&o.r, "node-removed"), n);
        assert_int_equal(rig_events_of(&o.r, "node-added"), n);
        assert_int_equal(o.r.events - o.events, 2 * n);
    }
    rig_run(&o.r, 5 * MONO_S);
    quiet(&o, 10, 0);
    done(&o);
}

static void test_boot(void **state)
{
    (void)state;
    boot(ROLE_SPINE, false);
    boot(ROLE_LEAF, false);
}

static void test_quick_reboot(void **state)
{
    (void)state;
    boot(ROLE_SPINE, true);
    boot(ROLE_LEAF, true);
}

// --- flaps ---

static void test_flaps(void **state)
{
    static const struct {
        const char *name;
        int64_t down_ns, up_ns;
        unsigned times;
    } t[] = {{"flap of no time", 0, MONO_MS, 1},
             {"flap of 1 ms", MONO_MS, MONO_MS, 1},
             {"flap of 20 ms", 20 * MONO_MS, MONO_MS, 1},
             {"50 flaps in 1 s", 10 * MONO_MS, 10 * MONO_MS, 50},
             {"50 flaps of no time", 0, 20 * MONO_MS, 50}};
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *leaf = nth(&o, ROLE_LEAF, 1), *host = nth(&o, ROLE_HOST, 9);
    for (unsigned i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        for (int trunk = 0; trunk < 2; trunk++) {
            const struct node *n = trunk ? leaf : host;
            unsigned num = trunk ? uplink(&o, leaf, 3) : 1;
            mark(&o);
            assert_int_equal(sim_link_flap(o.r.sim, n->guid, num, t[i].down_ns, t[i].up_ns, t[i].times), 0);
            rig_run(&o.r, 1200 * MONO_MS);
            // In the first second no more than the burst, then one a second.
            assert_in_range(o.r.sweeps - o.sweeps, 1, 24);
            rig_run(&o.r, 4800 * MONO_MS);
            show(&o, t[i].name, 0);
            assert_false(any_full(&o));
            assert_in_range(o.r.sweeps - o.sweeps, 1, t[i].times == 1 ? 4 : 29);
            rig_judge(&o.r, NULL, 0);
            assert_int_equal(changed_blocks(&o), 0);
            assert_int_equal(state_of(&o, n->guid, num), PORT_ACTIVE);
            assert_int_equal(rig_events_of(&o.r, "link-removed"), rig_events_of(&o.r, "link-added"));
            assert_int_equal(rig_events_of(&o.r, "node-removed"), rig_events_of(&o.r, "node-added"));
            if (t[i].down_ns == 0)
                assert_int_equal(o.r.events, o.events);
            quiet(&o, 70, 0);
        }
    done(&o);
}

// --- adapters and cables ---

static void test_replaced(void **state)
{
    struct odd o;
    unsigned num;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *host = nth(&o, ROLE_HOST, 20), *leaf = peer_of(&o, host, 1, &num);
    uint64_t fresh = 0x00abcdef00000010;
    uint16_t old = lid_of(&o, port_of(&o, host, 1)->guid);
    assert_int_equal(sim_node_replace(o.r.sim, host->guid, fresh, MONO_S), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "adapter replaced", 0);
    assert_false(any_full(&o));
    const struct node *now = fabric_by_guid(sm_fabric(o.r.sm), fresh);
    assert_non_null(now);
    assert_null(fabric_by_guid(sm_fabric(o.r.sm), host->guid));
    uint16_t lid = fabric_port(sm_fabric(o.r.sm), fabric_port_at(sm_fabric(o.r.sm), now, 1))->a.lid;
    assert_int_not_equal(lid, old);
    assert_true(lid != 0);
    assert_int_equal(state_of(&o, fresh, 1), PORT_ACTIVE);
    assert_true(whole(&o));
    assert_int_equal(findings_of(&o, "duplicate-guid"), 0);
    assert_int_equal(rig_events_of(&o.r, "node-removed"), 1);
    assert_int_equal(rig_events_of(&o.r, "node-added"), 1);
    assert_in_range(mads(&o), 1, 2 * (leaf->num_ports + 40) + o.r.plan->num_switches * 2);

    // The old one comes back: it has its LID again.
    assert_int_equal(sim_node_replace(o.r.sim, fresh, host->guid, MONO_S), 0);
    rig_run(&o.r, 3 * MONO_S);
    assert_int_equal(lid_of(&o, port_of(&o, host, 1)->guid), old);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 5, 0);
    done(&o);
}

static void test_moved(void **state)
{
    struct odd o;
    unsigned from_num;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *host = nth(&o, ROLE_HOST, 20), *from = peer_of(&o, host, 1, &from_num);
    const struct node *to = nth(&o, ROLE_LEAF, from == nth(&o, ROLE_LEAF, 5) ? 4 : 5);
    uint16_t lid = lid_of(&o, port_of(&o, host, 1)->guid);
    assert_null(peer_of(&o, to, 20, NULL));
    assert_int_equal(sim_recable(o.r.sim, host->guid, 1, to->guid, 20), 0);
    int64_t ns = repaired(&o, 3 * MONO_S);
    rig_run(&o.r, 2 * MONO_S);
    show(&o, "cable moved", ns);
    assert_false(any_full(&o));
    assert_int_equal(lid_of(&o, port_of(&o, host, 1)->guid), lid);
    assert_true(peer_now(&o, host->guid, 1) != NULL && peer_now(&o, host->guid, 1)->guid == to->guid);
    assert_int_equal(findings_of(&o, "duplicate-guid"), 0);
    assert_int_equal(state_of(&o, host->guid, 1), PORT_ACTIVE);
    assert_true(changed_blocks(&o) > 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 5, 0);
    done(&o);
}

static void test_swapped(void **state)
{
    struct odd o;
    unsigned a_num, b_num;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *h[2] = {nth(&o, ROLE_HOST, 20), nth(&o, ROLE_HOST, 33)};
    const struct node *a = peer_of(&o, h[0], 1, &a_num), *b = peer_of(&o, h[1], 1, &b_num);
    uint16_t lid[2] = {lid_of(&o, port_of(&o, h[0], 1)->guid), lid_of(&o, port_of(&o, h[1], 1)->guid)};
    assert_ptr_not_equal(a, b);
    assert_int_equal(sim_swap_cables(o.r.sim, a->guid, a_num, b->guid, b_num), 0);
    int64_t ns = repaired(&o, 3 * MONO_S);
    rig_run(&o.r, 2 * MONO_S);
    show(&o, "cables of two hosts swapped", ns);
    assert_false(any_full(&o));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lid_of(&o, port_of(&o, h[i], 1)->guid), lid[i]);
        assert_true(peer_now(&o, h[i]->guid, 1) != NULL);
        assert_true(peer_now(&o, h[i]->guid, 1)->guid == (i ? a : b)->guid);
    }
    assert_int_equal(findings_of(&o, "duplicate-guid"), 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 5, 0);

    // Two trunks of one leaf to two spines.
    const struct node *leaf = nth(&o, ROLE_LEAF, 3);
    unsigned one = uplink(&o, leaf, 0), two = uplink(&o, leaf, 31);
    const struct node *s[2] = {peer_of(&o, leaf, one, NULL), peer_of(&o, leaf, two, NULL)};
    assert_ptr_not_equal(s[0], s[1]);
    mark(&o);
    assert_int_equal(sim_swap_cables(o.r.sim, leaf->guid, one, leaf->guid, two), 0);
    ns = repaired(&o, 3 * MONO_S);
    rig_run(&o.r, 2 * MONO_S);
    show(&o, "two trunks swapped", ns);
    assert_true(peer_now(&o, leaf->guid, one) != NULL && peer_now(&o, leaf->guid, one)->guid == s[1]->guid);
    assert_true(peer_now(&o, leaf->guid, two) != NULL && peer_now(&o, leaf->guid, two)->guid == s[0]->guid);
    assert_int_equal(state_of(&o, leaf->guid, one), PORT_ACTIVE);
    assert_int_equal(state_of(&o, leaf->guid, two), PORT_ACTIVE);
    assert_int_equal(findings_of(&o, "duplicate-guid"), 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 5, 2);
    done(&o);
}

static void duplicate(unsigned a, unsigned z)
{
    struct odd o;
    up_on(&o, "rail-64");
    const struct node *first = nth(&o, ROLE_HOST, a), *second = nth(&o, ROLE_HOST, z);
    uint16_t lid = lid_of(&o, port_of(&o, first, 1)->guid), other = lid_of(&o, port_of(&o, second, 1)->guid);
    assert_int_equal(sim_guid_duplicate(o.r.sim, second->guid, first->guid), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "duplicate GUID", 0);
    assert_int_equal(findings_of(&o, "duplicate-guid"), 1);
    assert_int_equal(lid_of(&o, port_of(&o, first, 1)->guid), lid);
    assert_int_equal(state_of(&o, first->guid, 1), PORT_ACTIVE);
    assert_true(whole(&o));
    assert_int_equal(rig_events_of(&o.r, "node-removed"), 1); // the second's
    unsigned sweeps = o.r.sweeps;
    rig_run(&o.r, 60 * MONO_S);
    assert_in_range(o.r.sweeps - sweeps, 0, 3);
    assert_int_equal(findings_of(&o, "duplicate-guid"), 1);
    mark(&o);
    sm_resweep(o.r.sm, "operator", false);
    rig_run(&o.r, 3 * MONO_S);
    assert_true(any_full(&o)); // nor does it become the other when everything is read
    assert_int_equal(lft_sets(&o), 0);
    assert_int_equal(o.r.events, o.events);
    assert_int_equal(peer_now(&o, first->guid, 1)->guid, peer_of(&o, first, 1, NULL)->guid);

    mark(&o);
    assert_int_equal(sim_guid_duplicate(o.r.sim, second->guid, 0), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "duplicate GUID undone", 0);
    assert_int_equal(findings_of(&o, "duplicate-guid"), 0);
    assert_int_equal(lid_of(&o, port_of(&o, second, 1)->guid), other);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 10, 0);
    done(&o);
}

static void test_duplicate(void **state)
{
    (void)state;
    duplicate(20, 41); // either may be met first
    duplicate(41, 20);
}

// --- what hosts say of themselves ---

static void test_host_reboot(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *host = nth(&o, ROLE_HOST, 20);
    assert_int_equal(sim_host_reboot(o.r.sim, host->guid, 30 * MONO_S, "MT4123 ConnectX6", false), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "host reboot, link kept", 0);
    assert_string_equal(fabric_desc(sm_fabric(o.r.sm), fabric_by_guid(sm_fabric(o.r.sm), host->guid)),
                        "MT4123 ConnectX6");
    assert_in_range(mads(&o), 1, 12);
    rig_run(&o.r, 40 * MONO_S);
    show(&o, "host is back", 0);
    assert_string_equal(fabric_desc(sm_fabric(o.r.sm), fabric_by_guid(sm_fabric(o.r.sm), host->guid)),
                        fabric_desc(o.r.plan, host));
    assert_in_range(mads(&o), 2, 24);
    assert_int_equal(lft_sets(&o) + info_sets(&o), 0);
    assert_in_range(info_gets(&o), 0, 4);
    assert_int_equal(changed_blocks(&o), 0);
    assert_int_equal(rig_events_of(&o.r, "node-removed") + rig_events_of(&o.r, "link-removed"), 0);
    done(&o);
}

static void test_manager_appears(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *host = nth(&o, ROLE_HOST, 20);
    struct sim_sm other = {.state = MAD_SM_STANDBY, .priority = 1};
    assert_int_equal(sim_sm_add(o.r.sim, port_of(&o, host, 1)->guid, &other), 0);
    rig_run(&o.r, MONO_S / 2);
    show(&o, "IsSM appears", 0);
    assert_true(rig_count(&o.r, MAD_METHOD_GET, MAD_ATTR_SM_INFO) > o.sm_get);
    assert_in_range(mads(&o), 1, 12);
    assert_int_equal(rig_events_of(&o.r, "foreign-sm"), 1);
    assert_int_equal(lft_sets(&o), 0);
    done(&o);
}
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trunk),
        cmocka_unit_test(test_trunk_without_traps),
        cmocka_unit_test(test_host),
        cmocka_unit_test(test_bundle),
        cmocka_unit_test(test_spine_dead),
        cmocka_unit_test(test_spine_mute),
        cmocka_unit_test(test_boot),
        cmocka_unit_test(test_quick_reboot),
        cmocka_unit_test(test_flaps),
        cmocka_unit_test(test_replaced),
        cmocka_unit_test(test_moved),
        cmocka_unit_test(test_swapped),
        cmocka_unit_test(test_duplicate),
        cmocka_unit_test(test_host_reboot),
        cmocka_unit_test(test_manager_appears),
    };
    if (getenv("ODD") != NULL)
        cmocka_set_test_filter(getenv("ODD"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
