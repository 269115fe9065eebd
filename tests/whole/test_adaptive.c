// SPDX-License-Identifier: Apache-2.0
// Adaptive routing on simulated switches that have it: groups as computed, the load that they take off the
// cables, what failures, resets, loss and switches that do not keep their word make of it. All along no table
// is written while a switch adapts, and no group of one that does.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/rng.h"
#include "mad/adaptive.h"
#include "sm/drain.h"
#include "tests/whole/rig.h"

#define INFO MAD_ATTR_ADAPTIVE_ROUTING_INFO
#define GROUP MAD_ATTR_ADAPTIVE_ROUTING_GROUP_TABLE
#define LFT MAD_ATTR_ADAPTIVE_ROUTING_LFT

static const uint16_t attrs[] = {MAD_ATTR_GENERAL_INFO, INFO, GROUP, LFT};

static bool adapts(const struct rig *r, uint64_t guid)
{
    struct sim_adaptive_view v;
    return sim_adaptive_view(r->sim, guid, &v) == 0 && v.enabled;
}

static unsigned enabled(const struct rig *r)
{
    unsigned n = 0;
    for (uint32_t sw = 0; sw < r->plan->num_switches; sw++)
        n += adapts(r, fabric_switch(r->plan, sw)->guid);
    return n;
}

static uint64_t stubborn; // a switch that does not let itself be turned off

static void no_table_while_one_adapts(struct rig *r, const uint8_t *mad)
{
    unsigned attr = (unsigned)mad[16] << 8 | mad[17];
    if (mad[3] == MAD_METHOD_SET && attr == MAD_ATTR_LINEAR_FORWARDING_TABLE)
        assert_int_equal(enabled(r), stubborn != 0 && adapts(r, stubborn));
}

static void none_written_on(const struct rig *r)
{
    for (uint32_t sw = 0; sw < r->plan->num_switches; sw++) {
        struct sim_adaptive_view v;
        assert_int_equal(sim_adaptive_view(r->sim, fabric_switch(r->plan, sw)->guid, &v), 0);
        assert_int_equal(v.written_on, 0);
    }
}

static void start(struct rig *r, const char *name, struct sim_opts o)
{
    o.adaptive_routing = true;
    stubborn = 0;
    rig_init(r, name, &o);
    r->opts.adaptive = SM_ADAPTIVE_ON;
    r->on_send = no_table_while_one_adapts;
}

static uint64_t sent(const struct rig *r)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < 4; i++)
        n += rig_count(r, MAD_METHOD_GET, attrs[i]) + rig_count(r, MAD_METHOD_SET, attrs[i]);
    return n;
}

static uint64_t sets(const struct rig *r)
{
    return rig_count(r, MAD_METHOD_SET, INFO) + rig_count(r, MAD_METHOD_SET, GROUP) +
           rig_count(r, MAD_METHOD_SET, LFT);
}

static struct sm_adaptive_status status(const struct rig *r)
{
    struct sm_adaptive_status s;
    sm_adaptive_status(r->sm, &s);
    return s;
}

static bool finding(const struct rig *r, const char *code)
{
    const struct findings *f = sm_findings(r->sm);
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->item[i].code, code) == 0)
            return true;
    return false;
}

static bool settled(const struct rig *r)
{
    struct sm_adaptive_status s = status(r);
    return s.proved && s.enabled > 0;
}

// Every switch chooses from what was computed, live ports only; all mixes of choices arrive. Returns switches
// that adapt.
static unsigned as_computed(const struct rig *r)
{
    const struct fabric *f;
    const struct fabric_tables *t;
    const struct fabric_groups *g = sm_adaptive_groups(r->sm, &f, &t);
    unsigned count = 0;

    assert_non_null(g);
    assert_ptr_equal(t, sm_tables(r->sm));
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        uint64_t guid = fabric_switch(f, sw)->guid;
        bool on = adapts(r, guid);
        struct sm_adaptive_switch a;
        count += on;
        assert_int_equal(on, groups_of(g, sw) > 0 && sm_adaptive_switch(r->sm, guid, &a) && a.why[0] == 0);
        for (uint32_t lid = 1; lid <= t->top_lid; lid++) {
            uint8_t port[256], lft;
            int n = sim_choices(r->sim, guid, (uint16_t)lid, port);
            assert_int_equal(sim_lft(r->sim, guid, (uint16_t)lid, &lft), 0);
            assert_int_equal(lft, tables_port(t, sw, (uint16_t)lid));
            const struct fabric_group *x = on ? groups_at(g, sw, (uint16_t)lid, lft) : NULL;
            if (x == NULL) {
                assert_int_equal(n, lft != LFT_DROP);
                assert_true(n == 0 || port[0] == lft);
                continue;
            }
            int want = 0;
            for (unsigned p = 1; p < 255; p++)
                want += port_set_has(&x->ports, (uint8_t)p);
            assert_int_equal(n, want);
            for (int i = 0; i < n; i++)
                assert_true(port_set_has(&x->ports, port[i]));
        }
    }
    return count;
}

static void all_arrive(const struct rig *r)
{
    const struct fabric *f = r->plan;
    char where[200];
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (fabric_node(f, p->node)->type == NODE_SWITCH || !port_valid(p->peer))
            continue;
        const struct fabric *now = sm_fabric(r->sm);
        for (uint16_t lid = 1; lid <= now->top_lid; lid += 7) {
            if (!port_valid(fabric_by_lid(now, lid)))
                continue;
            if (sim_trace_all(r->sim, p->guid, lid, where, sizeof(where)) < 0)
                fail_msg("from 0x%016llx: %s", (unsigned long long)p->guid, where);
        }
    }
    rig_judge(r, NULL, 0);
}

// Each source of one leaf sends to a host on another leaf, all of which leave by the same uplink.
static unsigned incast(const struct rig *r, struct sim_flow flow[64])
{
    const struct fabric *f = sm_fabric(r->sm);
    const struct fabric_tables *t = sm_tables(r->sm);
    const struct node *leaf = fabric_peer_node(f, fabric_port(f, f->sm_port));
    bool *used = calloc(f->num_switches, sizeof(bool));
    unsigned best[256] = {0}, up = 0, n = 0;

    for (uint32_t pass = 0; pass < 2; pass++) {
        unsigned from = 0;
        for (uint32_t i = 0; i < f->num_ports; i++) {
            const struct port *p = &f->port[i];
            const struct node *z = fabric_peer_node(f, p);
            if (fabric_node(f, p->node)->role != ROLE_HOST || z == NULL || z == leaf || p->a.lid == 0)
                continue;
            uint8_t out = tables_port(t, leaf->sw, p->a.lid);
            if (pass == 0) {
                up = ++best[out] > best[up] ? out : up;
                continue;
            }
            if (out != up || used[z->sw])
                continue;
            while (++from <= leaf->num_ports) {
                const struct port *h = fabric_port(f, fabric_port_at(f, leaf, from));
                const struct node *host = fabric_peer_node(f, h);
                if (host != NULL && host->type == NODE_CA)
                    break;
            }
            if (from > leaf->num_ports)
                break;
            used[z->sw] = true;
            const struct port *h = fabric_port(f, fabric_port_at(f, leaf, from));
            flow[n++] = (struct sim_flow){fabric_port(f, h->peer)->guid, p->a.lid};
        }
    }
    free(used);
    return n;
}

static void load_of(const struct rig *r, bool adaptive, unsigned *ret_n, unsigned *ret_max)
{
    struct sim_flow flow[64];
    struct sim_load l;
    *ret_n = incast(r, flow);
    sim_flows(r->sim, flow, *ret_n, adaptive, &l);
    assert_int_equal(l.arrived, *ret_n);
    *ret_max = l.max_between;
}

// --- tests ---

static void off_costs_nothing(void **state)
{
    struct rig r;
    start(&r, "rail-64", (struct sim_opts){0});
    r.opts.adaptive = SM_ADAPTIVE_OFF;
    rig_up(&r);
    rig_sweeps(&r, 1, 30);
    assert_int_equal(sent(&r), 0);
    rig_down(&r);
    r.opts.adaptive = SM_ADAPTIVE_REFUSED;
    rig_up(&r);
    rig_sweeps(&r, 1, 30);
    assert_int_equal(sent(&r), 0);
    assert_true(finding(&r, "adaptive-refused"));
    assert_int_equal(enabled(&r), 0);
    rig_done(&r);
}

// What static tables put on one cable is spread over all that lead there.
static void spreads(void **state)
{
    struct rig r;
    unsigned n, max;
    start(&r, "rail-1024", (struct sim_opts){0});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_true(settled(&r));
    assert_true(as_computed(&r) >= 32);
    none_written_on(&r);
    all_arrive(&r);
    load_of(&r, false, &n, &max);
    assert_true(n >= 24);
    assert_int_equal(max, n);
    load_of(&r, true, &n, &max);
    assert_true(max <= 2);
    assert_int_equal(rig_events_of(&r, "adaptive-routing"), 1);

    // nothing has changed: nothing is written, and nobody is asked again
    uint64_t before = sent(&r);
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(sent(&r), before);
    rig_done(&r);
}

static void without_it_nobody_is_asked_twice(void **state)
{
    struct rig r;
    start(&r, "rail-64", (struct sim_opts){0});
    for (uint32_t sw = 0; sw < r.plan->num_switches; sw++)
        sim_adaptive_cap(r.sim, fabric_switch(r.plan, sw)->guid, 0);
    rig_up(&r);
    rig_sweeps(&r, 1, 30);
    assert_int_equal(sent(&r), r.plan->num_switches);
    assert_int_equal(rig_count(&r, MAD_METHOD_GET, MAD_ATTR_GENERAL_INFO), r.plan->num_switches);
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, 30);
    assert_int_equal(sent(&r), r.plan->num_switches);
    assert_int_equal(status(&r).supported, 0);
    rig_done(&r);
}

// A cable between a leaf and another switch, not the manager's leaf's.
static void pick_cable(const struct rig *r, uint64_t *ret_guid, unsigned *ret_port)
{
    const struct fabric *f = r->plan;
    for (uint32_t sw = f->num_switches; sw-- > 0;) {
        const struct node *n = fabric_switch(f, sw);
        for (unsigned p = 1; n->role == ROLE_LEAF && p <= n->num_ports; p++) {
            const struct node *z = fabric_peer_node(f, fabric_port(f, fabric_port_at(f, n, p)));
            if (z != NULL && z->type == NODE_SWITCH) {
                *ret_guid = n->guid;
                *ret_port = p;
                return;
            }
        }
    }
    fail();
}

static void calm_down(struct rig *r)
{
    for (unsigned i = 0; i < 40; i++) {
        uint64_t sweeps = r->sweeps;
        rig_run(r, 5 * MONO_S);
        if (r->sweeps == sweeps)
            return;
    }
    fail_msg("sweeps go on and on");
}

static void a_cable_dies_and_comes_back(struct rig *r)
{
    uint64_t guid;
    unsigned port, n, max;
    pick_cable(r, &guid, &port);
    unsigned all = as_computed(r);
    sim_link_set(r->sim, guid, port, false);
    rig_sweeps(r, 1, 30);
    calm_down(r);
    assert_int_equal(as_computed(r), all);
    all_arrive(r);
    load_of(r, true, &n, &max);
    assert_true(max <= 3);
    sim_link_set(r->sim, guid, port, true);
    rig_sweeps(r, 1, 30);
    calm_down(r);
    assert_int_equal(as_computed(r), all);
    all_arrive(r);
    none_written_on(r);
}

static void cables(void **state)
{
    struct rig r;
    start(&r, "rail-256", (struct sim_opts){0});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    uint64_t before = sets(&r);
    a_cable_dies_and_comes_back(&r);
    // of the order of what changes, not of what there is
    assert_true(sets(&r) - before < before);
    rig_done(&r);
}

static void three_levels(void **state)
{
    struct rig r;
    start(&r, "ft3-8-4", (struct sim_opts){0});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_true(settled(&r));
    a_cable_dies_and_comes_back(&r);
    rig_done(&r);
}

// The same where the linear and the adaptive table of a switch are one.
static void one_table(void **state)
{
    struct rig r;
    start(&r, "rail-64", (struct sim_opts){.adaptive_one_table = true});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_true(settled(&r));
    a_cable_dies_and_comes_back(&r);
    rig_done(&r);
}

static void a_reset_switch_is_programmed_anew(void **state)
{
    struct rig r;
    start(&r, "rail-64", (struct sim_opts){0});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    unsigned all = as_computed(&r);
    uint64_t guid;
    unsigned port;
    pick_cable(&r, &guid, &port);
    assert_true(adapts(&r, guid));
    sim_switch_reboot(r.sim, guid);
    assert_false(adapts(&r, guid));
    rig_sweeps(&r, 1, 30);
    calm_down(&r);
    assert_true(adapts(&r, guid));
    assert_int_equal(as_computed(&r), all);
    all_arrive(&r);

    // with other firmware it cannot do it any more
    sim_adaptive_cap(r.sim, guid, 0);
    sim_switch_reboot(r.sim, guid);
    rig_sweeps(&r, 1, 30);
    calm_down(&r);
    assert_int_equal(as_computed(&r), all - 1);
    all_arrive(&r);
    rig_done(&r);
}

static void some_have_it_some_have_not(void **state)
{
    struct rig r;
    struct sm_adaptive_switch s;
    start(&r, "rail-256", (struct sim_opts){0});
    unsigned with = 0;
    for (uint32_t sw = 0; sw < r.plan->num_switches; sw++)
        if (sw % 2)
            sim_adaptive_cap(r.sim, fabric_switch(r.plan, sw)->guid, 0);
        else
            with++;
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(status(&r).supported, with);
    unsigned all = as_computed(&r);
    assert_true(all > 0 && all <= with);
    all_arrive(&r);
    assert_true(sm_adaptive_switch(r.sm, fabric_switch(r.plan, 1)->guid, &s));
    assert_false(s.supported);
    a_cable_dies_and_comes_back(&r);
    rig_done(&r);
}

static void few_groups(void **state)
{
    struct rig r;
    start(&r, "ft3-8-4", (struct sim_opts){.adaptive_groups = 4});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_true(settled(&r));
    assert_true(status(&r).most_groups <= 4);
    a_cable_dies_and_comes_back(&r);
    for (uint32_t sw = 0; sw < r.plan->num_switches; sw++) {
        struct sim_adaptive_view v;
        sim_adaptive_view(r.sim, fabric_switch(r.plan, sw)->guid, &v);
        assert_true(v.group_top < 4);
    }
    rig_done(&r);
}

static void under_loss(void **state)
{
    struct rig r;
    start(&r, "rail-64", (struct sim_opts){.seed = 3, .loss = 0.05});
    rig_up(&r);
    rig_sweeps(&r, 1, 120);
    calm_down(&r);
    assert_true(settled(&r));
    sim_set_loss(r.sim, 0.05);
    uint64_t guid;
    unsigned port;
    pick_cable(&r, &guid, &port);
    unsigned all = as_computed(&r);
    sim_link_set(r.sim, guid, port, false);
    rig_sweeps(&r, 1, 60);
    calm_down(&r);
    assert_int_equal(as_computed(&r), all);
    all_arrive(&r);
    none_written_on(&r);
    rig_done(&r);
}

static void left_alone(uint16_t attr)
{
    struct rig r;
    struct sm_adaptive_switch s;
    uint64_t guid;
    unsigned port;
    start(&r, "rail-64", (struct sim_opts){0});
    pick_cable(&r, &guid, &port);
    sim_set_not_kept(r.sim, guid, attr, true);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    calm_down(&r);
    assert_true(finding(&r, "adaptive-not-kept"));
    assert_false(adapts(&r, guid));
    assert_int_equal(rig_events_of(&r, "adaptive-not-kept"), 1);
    assert_true(sm_adaptive_switch(r.sm, guid, &s));
    assert_true(s.supported && !s.enabled && s.why[0] != 0);
    assert_true(settled(&r)); // the others do
    as_computed(&r);
    all_arrive(&r);
    a_cable_dies_and_comes_back(&r);

    // It has come to its senses: a full sweep finds that out.
    sim_set_not_kept(r.sim, guid, attr, false);
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, 60);
    assert_true(adapts(&r, guid));
    assert_false(finding(&r, "adaptive-not-kept"));
    as_computed(&r);
    rig_done(&r);
}

static void what_is_not_kept_is_left_alone(void **state)
{
    left_alone(INFO);
    left_alone(GROUP);
    left_alone(LFT);
}

// It adapts and does not let itself be turned off: that is said, and does not stop anything else.
static void one_that_stays_on(void **state)
{
    struct rig r;
    uint64_t guid;
    unsigned port;
    start(&r, "rail-64", (struct sim_opts){0});
    pick_cable(&r, &guid, &port);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_true(adapts(&r, guid));
    sim_set_not_kept(r.sim, guid, INFO, true);
    stubborn = guid;
    sim_link_set(r.sim, guid, port, false);
    rig_sweeps(&r, 1, 60);
    calm_down(&r);
    assert_true(adapts(&r, guid));
    assert_true(finding(&r, "adaptive-not-kept"));
    sim_set_not_kept(r.sim, guid, INFO, false);
    sm_resweep(r.sm, "operator", false);
    rig_sweeps(&r, 1, 60);
    calm_down(&r);
    as_computed(&r);
    all_arrive(&r);
    none_written_on(&r);
    rig_done(&r);
}

// A new run reads what switches hold, and writes nothing.
static void restart(void **state)
{
    struct rig r;
    start(&r, "rail-256", (struct sim_opts){0});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    unsigned all = as_computed(&r);
    rig_down(&r);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(sets(&r), 0);
    assert_true(rig_count(&r, MAD_METHOD_GET, LFT) > 0);
    assert_int_equal(as_computed(&r), all);
    rig_down(&r);

    // a cable has died meanwhile
    uint64_t guid;
    unsigned port;
    pick_cable(&r, &guid, &port);
    sim_link_set(r.sim, guid, port, false);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    calm_down(&r);
    assert_int_equal(as_computed(&r), all);
    all_arrive(&r);
    none_written_on(&r);
    rig_done(&r);
}

// The option was taken away: what an earlier run has turned on is turned off, once.
static void given_up(void **state)
{
    struct rig r;
    start(&r, "rail-64", (struct sim_opts){0});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_true(enabled(&r) > 0);
    rig_down(&r);
    r.opts.adaptive = SM_ADAPTIVE_OFF;
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(enabled(&r), 0);
    assert_int_equal(rig_events_of(&r, "adaptive-off"), 1);
    rig_judge(&r, NULL, 0);
    rig_run(&r, MONO_S);
    rig_down(&r);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(sent(&r), 0);
    rig_done(&r);
}

// Somebody cuts a cable while groups are being written: the sweep ends, the next one goes on from there.
static uint64_t cut_guid;
static unsigned cut_port, cut_after;

static void cut_while_writing(struct rig *r, const uint8_t *mad)
{
    unsigned attr = (unsigned)mad[16] << 8 | mad[17];
    no_table_while_one_adapts(r, mad);
    if (mad[3] == MAD_METHOD_SET && attr == LFT && cut_after > 0 && --cut_after == 0)
        sim_link_set(r->sim, cut_guid, cut_port, false);
}

static void interrupted(void **state)
{
    struct rig r;
    start(&r, "rail-256", (struct sim_opts){.service_ns = 100000, .link_latency_ns = 1000});
    pick_cable(&r, &cut_guid, &cut_port);
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    // another one first, so that there is something to write
    sim_link_set(r.sim, cut_guid, cut_port + 1, false);
    cut_after = 3;
    r.on_send = cut_while_writing;
    rig_sweeps(&r, 2, 60);
    calm_down(&r);
    assert_int_equal(cut_after, 0);
    assert_true(as_computed(&r) > 0);
    all_arrive(&r);
    none_written_on(&r);
    rig_done(&r);
}

// What is drained is in no group, though its cable lives.
static void drained(void **state)
{
    struct rig r;
    struct err e;
    uint64_t guid;
    unsigned port;
    uint8_t choice[256];
    start(&r, "rail-256", (struct sim_opts){0});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    pick_cable(&r, &guid, &port);
    struct sm_drain_place at = {.guid = guid, .port = (uint8_t)port};
    assert_int_equal(rig_drain(&r, &at, "test", "a look", &e), 0);
    rig_sweeps(&r, 1, 60);
    calm_down(&r);
    assert_true(as_computed(&r) > 0);
    all_arrive(&r);
    for (uint16_t lid = 1; lid <= sm_tables(r.sm)->top_lid; lid++) {
        int n = sim_choices(r.sim, guid, lid, choice);
        const struct port *end = port_valid(fabric_by_lid(sm_fabric(r.sm), lid))
                                     ? fabric_port(sm_fabric(r.sm), fabric_by_lid(sm_fabric(r.sm), lid))
                                     : NULL;
        for (int i = 0; i < n && end != NULL && fabric_node(sm_fabric(r.sm), end->node)->type == NODE_CA; i++)
            assert_int_not_equal(choice[i], port);
    }
    assert_int_equal(rig_undrain(&r, &at, "test", &e), 0);
    rig_sweeps(&r, 1, 60);
    calm_down(&r);
    as_computed(&r);
    none_written_on(&r);
    rig_done(&r);
}

// Packets of some transports must stay in order.
static void all_or_nothing(void **state)
{
    struct rig r;
    start(&r, "rail-64", (struct sim_opts){.adaptive_all_transports = true});
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    assert_int_equal(enabled(&r), 0);
    assert_int_equal(status(&r).left, r.plan->num_switches);
    assert_true(finding(&r, "adaptive-not-kept"));
    assert_int_equal(sets(&r), 0);
    rig_judge(&r, NULL, 0);
    rig_done(&r);
}

static bool is_ours(const uint8_t *mad)
{
    unsigned attr = (unsigned)mad[16] << 8 | mad[17];
    return attr == attrs[0] || attr == attrs[1] || attr == attrs[2] || attr == attrs[3];
}

// A switch takes what it is told in silence: it is let be after a while.
static bool is_swallowed(struct rig *r, const uint8_t *mad, const struct mad_addr *to)
{
    (void)r;
    (void)to;
    return is_ours(mad) && mad[7] == 2; // of two hops
}

static void silent_about_it(void **state)
{
    struct rig r;
    start(&r, "rail-64", (struct sim_opts){0});
    r.take_send = is_swallowed;
    rig_up(&r);
    rig_sweeps(&r, 1, 120);
    calm_down(&r);
    rig_judge(&r, NULL, 0);
    unsigned on = enabled(&r);
    struct sm_adaptive_status s = status(&r);
    assert_int_equal(on, s.enabled);
    assert_true(s.left > 0 && s.enabled > 0);
    assert_true(finding(&r, "adaptive-not-kept"));
    rig_done(&r);
}

// Answers of which bytes are others than were sent: whatever becomes of it, sweeps end and nothing breaks.
static bool garble(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct rng *rng = r->user;
    uint8_t copy[MAD_SIZE];
    if (status != 0 || !is_ours(mad) || rng_below(rng, 4) != 0)
        return false;
    memcpy(copy, mad, sizeof(copy));
    for (unsigned i = 0; i < 4; i++)
        copy[64 + rng_below(rng, 64)] = (uint8_t)rng_below(rng, 256);
    rig_deliver(r, copy, from, status);
    return true;
}

static void garbled(void **state)
{
    for (unsigned seed = 1; seed <= 6; seed++) {
        struct rig r;
        struct rng rng;
        rng_init(&rng, seed);
        start(&r, "rail-64", (struct sim_opts){0});
        r.on_send = NULL;
        r.in_order = true;
        r.take_recv = garble;
        r.user = &rng;
        rig_up(&r);
        rig_sweeps(&r, 1, 120);
        uint64_t guid;
        unsigned port;
        pick_cable(&r, &guid, &port);
        sim_link_set(r.sim, guid, port, false);
        rig_sweeps(&r, 1, 120);
        sim_link_set(r.sim, guid, port, true);
        rig_sweeps(&r, 1, 120);
        calm_down(&r);
        rig_done(&r);
    }
}

// Anything at any time: when it is quiet again all is as computed, and at no moment was a rule broken.
static void storm(unsigned seed, const char *name, bool one_table)
{
    struct rig r;
    struct rng rng;
    rng_init(&rng, seed);
    start(&r, name,
          (struct sim_opts){.seed = seed,
                            .loss = seed % 3 == 0 ? 0.02 : 0,
                            .link_latency_ns = 500,
                            .service_ns = 20000,
                            .train_ns = 20000000,
                            .adaptive_groups = seed % 2 ? 0 : 6,
                            .adaptive_one_table = one_table});
    r.in_order = true;
    rig_up(&r);
    rig_sweeps(&r, 1, 60);
    const struct fabric *f = r.plan;
    for (unsigned i = 0; i < 25; i++) {
        const struct node *n = fabric_switch(f, rng_below(&rng, f->num_switches));
        unsigned port = 1 + rng_below(&rng, n->num_ports);
        const struct node *z = fabric_peer_node(f, fabric_port(f, fabric_port_at(f, n, port)));
        unsigned what = rng_below(&rng, 8);
        if (what < 5 && z != NULL && z->type == NODE_SWITCH)
            sim_link_set(r.sim, n->guid, port, what < 3 ? false : true);
        else if (what == 5)
            sim_switch_reboot(r.sim, n->guid);
        else if (what == 6 && z != NULL && z->type == NODE_SWITCH)
            sim_link_flap(r.sim, n->guid, port, 1000000, 30000000, 3);
        else if (what == 7)
            sm_resweep(r.sm, "operator", false);
        rig_run(&r, (int64_t)rng_below(&rng, 60) * MONO_MS);
    }
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        for (unsigned p = 1; p <= fabric_switch(f, sw)->num_ports; p++)
            sim_link_set(r.sim, fabric_switch(f, sw)->guid, p, true);
    calm_down(&r);
    assert_true(as_computed(&r) > 0);
    all_arrive(&r);
    none_written_on(&r);
    rig_done(&r);
}

static void storms(void **state)
{
    const char *seeds = getenv("ADAPTIVE_SEEDS");
    unsigned n = seeds != NULL ? (unsigned)atoi(seeds) : 6;
    for (unsigned seed = 1; seed <= n; seed++)
        storm(seed, seed % 2 ? "ft3-8-4" : "rail-64", seed % 4 < 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(off_costs_nothing),
        cmocka_unit_test(spreads),
        cmocka_unit_test(without_it_nobody_is_asked_twice),
        cmocka_unit_test(cables),
        cmocka_unit_test(three_levels),
        cmocka_unit_test(one_table),
        cmocka_unit_test(a_reset_switch_is_programmed_anew),
        cmocka_unit_test(some_have_it_some_have_not),
        cmocka_unit_test(few_groups),
        cmocka_unit_test(under_loss),
        cmocka_unit_test(what_is_not_kept_is_left_alone),
        cmocka_unit_test(one_that_stays_on),
        cmocka_unit_test(restart),
        cmocka_unit_test(given_up),
        cmocka_unit_test(interrupted),
        cmocka_unit_test(drained),
        cmocka_unit_test(all_or_nothing),
        cmocka_unit_test(silent_about_it),
        cmocka_unit_test(garbled),
        cmocka_unit_test(storms),
    };
    return cmocka_run_group_tests_name("whole/adaptive", tests, NULL, NULL);
}
