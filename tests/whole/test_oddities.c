// SPDX-License-Identifier: Apache-2.0
// What happens to a live fabric, one row after the other: what was read and written for it, what was told,
// which LIDs and tables it left, and how long it took, in virtual time over 50 us round trips.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "mad/mad.h"
#include "tests/whole/rig.h"

static const struct sim_opts wire = {.seed = 5, .link_latency_ns = 6000, .service_ns = 30000};

struct odd {
    struct rig r;
    uint32_t lids; // entries of a table that are looked at
    uint8_t *before;
    // since the last mark
    unsigned sweeps, events;
    uint64_t lft_set, info_get, info_set, node_get, desc_get, sm_get, lft_get;
    mono_t at;
};

// --- what it cost ---

static void mark(struct odd *o)
{
    struct rig *r = &o->r;
    o->sweeps = r->sweeps;
    o->events = r->events;
    buf_clear(&r->log);
    o->lft_set = rig_count(r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE);
    o->lft_get = rig_count(r, MAD_METHOD_GET, MAD_ATTR_LINEAR_FORWARDING_TABLE);
    o->info_get = rig_count(r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO);
    o->info_set = rig_count(r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO);
    o->node_get = rig_count(r, MAD_METHOD_GET, MAD_ATTR_NODE_INFO);
    o->desc_get = rig_count(r, MAD_METHOD_GET, MAD_ATTR_NODE_DESCRIPTION);
    o->sm_get = rig_count(r, MAD_METHOD_GET, MAD_ATTR_SM_INFO);
    o->at = loop_now(r->loop);
}

static unsigned lft_sets(const struct odd *o)
{
    return (unsigned)(rig_count(&o->r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE) - o->lft_set);
}

static unsigned info_gets(const struct odd *o)
{
    return (unsigned)(rig_count(&o->r, MAD_METHOD_GET, MAD_ATTR_PORT_INFO) - o->info_get);
}

static unsigned info_sets(const struct odd *o)
{
    return (unsigned)(rig_count(&o->r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO) - o->info_set);
}

// MADs of the sweeps since the mark; light sweeps are not among them.
static unsigned mads(const struct odd *o)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < o->r.sweeps - o->sweeps; i++) {
        assert_non_null(sm_history(o->r.sm, i));
        n += sm_history(o->r.sm, i)->mads;
    }
    return (unsigned)n;
}

static bool any_full(const struct odd *o)
{
    bool full = false;
    for (unsigned i = 0; i < o->r.sweeps - o->sweeps; i++)
        full |= sm_history(o->r.sm, i)->full;
    return full;
}

static void show(const struct odd *o, const char *what, int64_t ns)
{
    printf("# %s: %u MADs, %u PortInfo read, %u written, %u blocks, %u sweeps, %u events", what, mads(o),
           info_gets(o), info_sets(o), lft_sets(o), o->r.sweeps - o->sweeps, o->r.events - o->events);
    if (ns > 0)
        printf(", %.1f ms", (double)ns / 1e6);
    printf("\n");
}

static unsigned findings_of(const struct odd *o, const char *code)
{
    const struct findings *f = sm_findings(o->r.sm);
    unsigned n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += strcmp(f->item[i].code, code) == 0;
    return n;
}

// --- tables, as the simulator has them ---

static uint8_t *tables(const struct odd *o)
{
    const struct fabric *f = o->r.plan;
    uint8_t *t = malloc((size_t)f->num_switches * o->lids);
    assert_non_null(t);
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        for (uint32_t lid = 0; lid < o->lids; lid++)
            if (sim_lft(o->r.sim, fabric_switch(f, sw)->guid, (uint16_t)lid, &t[sw * o->lids + lid]) != 0)
                t[sw * o->lids + lid] = LFT_DROP;
    return t;
}

// Blocks that differ from those at the last call; they are the new ones to compare with.
static unsigned changed_blocks(struct odd *o)
{
    uint8_t *now = tables(o);
    unsigned n = 0;
    for (size_t i = 0; i < (size_t)o->r.plan->num_switches * o->lids; i += LFT_BLOCK)
        n += memcmp(now + i, o->before + i, LFT_BLOCK) != 0;
    free(o->before);
    o->before = now;
    return n;
}

// --- who reaches whom ---

struct end {
    uint64_t guid;
    uint16_t lid;
    bool host;
};

static struct end *ends_of(const struct fabric *f, uint32_t *ret_n)
{
    struct end *e = calloc(f->num_ports, sizeof(*e));
    *ret_n = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        bool sw = fabric_node(f, p->node)->type == NODE_SWITCH;
        if (port_is_end(f, p) && p->a.lid != 0 && (sw || port_valid(p->peer)))
            e[(*ret_n)++] = (struct end){p->guid, p->a.lid, !sw};
    }
    return e;
}

// From every host that the manager knows to everything that it knows.
static bool whole(const struct odd *o)
{
    uint32_t n;
    struct end *e = ends_of(sm_fabric(o->r.sm), &n);
    uint32_t step = n > 300 ? 37 : 1;
    bool ok = true;
    for (uint32_t i = 0; i < n && ok; i++)
        for (uint32_t k = step > 1 ? i % step : 0; e[i].host && k < n && ok; k += step)
            ok = sim_trace(o->r.sim, e[i].guid, e[k].lid, NULL, 0) >= 0;
    free(e);
    return ok;
}

// Time from the mark until everybody reaches everybody, in steps of a millisecond.
static int64_t repaired(struct odd *o, int64_t limit)
{
    for (;;) {
        struct sm_status st;
        sm_get_status(o->r.sm, &st);
        if (!st.sweeping && o->r.sweeps > o->sweeps && rig_last(&o->r)->ok && whole(o))
            return mono_sub(loop_now(o->r.loop), o->at);
        if (mono_sub(loop_now(o->r.loop), o->at) > limit)
            fail_msg("not repaired after %.1f s: %s", (double)limit / 1e9,
                     o->r.log.data ? o->r.log.data : "");
        rig_run(&o->r, MONO_MS);
    }
}

// --- the fabric ---

static const struct node *nth(const struct odd *o, enum node_role role, unsigned n)
{
    const struct fabric *f = o->r.plan;
    for (uint32_t i = 0; i < f->num_nodes; i++) // not the manager's own
        if (f->node[i].role == role && f->port[f->sm_port.i].node.i != i && n-- == 0)
            return &f->node[i];
    fail();
    return NULL;
}

static const struct port *port_of(const struct odd *o, const struct node *n, unsigned num)
{
    return fabric_port(o->r.plan, fabric_port_at(o->r.plan, n, num));
}

static const struct node *peer_of(const struct odd *o, const struct node *n, unsigned num, unsigned *ret_num)
{
    const struct port *p = port_of(o, n, num);
    if (!port_valid(p->peer))
        return NULL;
    if (ret_num != NULL)
        *ret_num = fabric_port(o->r.plan, p->peer)->num;
    return fabric_peer_node(o->r.plan, p);
}

static unsigned uplink(const struct odd *o, const struct node *leaf, unsigned nth_one)
{
    for (unsigned num = 1; num <= leaf->num_ports; num++) {
        const struct node *z = peer_of(o, leaf, num, NULL);
        if (z != NULL && z->type == NODE_SWITCH && nth_one-- == 0)
            return num;
    }
    fail();
    return 0;
}

static const struct node *own_leaf(const struct odd *o)
{
    return fabric_peer_node(o->r.plan, fabric_port(o->r.plan, o->r.plan->sm_port));
}

static uint16_t lid_of(const struct odd *o, uint64_t port_guid)
{
    const struct fabric *f = sm_fabric(o->r.sm);
    port_id p = fabric_by_port_guid(f, port_guid);
    return port_valid(p) ? fabric_port(f, p)->a.lid : 0;
}

static const struct node *peer_now(const struct odd *o, uint64_t guid, unsigned num)
{
    const struct fabric *f = sm_fabric(o->r.sm);
    const struct node *n = fabric_by_guid(f, guid);
    return n != NULL ? fabric_peer_node(f, fabric_port(f, fabric_port_at(f, n, num))) : NULL;
}

static void all_links(struct odd *o, const struct node *n, bool up)
{
    for (unsigned num = 1; num <= n->num_ports; num++)
        if (peer_of(o, n, num, NULL) != NULL)
            assert_int_equal(sim_link_set(o->r.sim, n->guid, num, up), 0);
}

static uint8_t state_of(const struct odd *o, uint64_t guid, unsigned num)
{
    struct sim_port_view v;
    assert_int_equal(sim_port_view(o->r.sim, guid, num, &v), 0);
    return v.linked ? v.state : PORT_DOWN;
}

static void up_with(struct odd *o, const char *name, const struct sim_opts *sim,
                    void (*opts)(struct sm_opts *))
{
    memset(o, 0, sizeof(*o));
    rig_init(&o->r, name, sim);
    if (opts != NULL)
        opts(&o->r.opts);
    rig_up(&o->r);
    rig_sweeps(&o->r, 1, 300);
    assert_true(rig_last(&o->r)->ok);
    rig_run(&o->r, 3 * MONO_S);
    rig_judge(&o->r, NULL, 0);
    o->lids = (sm_fabric(o->r.sm)->top_lid / LFT_BLOCK + 2u) * LFT_BLOCK;
    o->before = tables(o);
    mark(o);
}

static void up_on(struct odd *o, const char *name)
{
    up_with(o, name, &wire, NULL);
}

static void done(struct odd *o)
{
    free(o->before);
    rig_done(&o->r);
}

// Nothing more comes of it. repeats: switches whose trap may have been lost on the way that failed; each is
// sent again, and read.
static void quiet(struct odd *o, int seconds, unsigned repeats)
{
    unsigned sweeps = o->r.sweeps, events = o->r.events;
    uint64_t n = 0;
    rig_run(&o->r, seconds * MONO_S);
    for (unsigned i = 0; i < o->r.sweeps - sweeps; i++) {
        n += sm_history(o->r.sm, i)->mads;
        if (repeats == 0 || strcmp(sm_history(o->r.sm, i)->cause, "trap") != 0)
            fail_msg("one more sweep: %s", sm_history(o->r.sm, i)->cause);
    }
    assert_in_range(n, 0, repeats * 68);
    assert_int_equal(o->r.events, events);
}

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

static void test_duplicate(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *first = nth(&o, ROLE_HOST, 20), *second = nth(&o, ROLE_HOST, 41);
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
    assert_int_equal(sim_guid_duplicate(o.r.sim, second->guid, 0), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "duplicate GUID undone", 0);
    assert_int_equal(findings_of(&o, "duplicate-guid"), 0);
    assert_int_equal(lid_of(&o, port_of(&o, second, 1)->guid), other);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 10, 0);
    done(&o);
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

// --- agents ---

// Slow and dead agents cost themselves: a trunk elsewhere is repaired as ever.
static void test_slow_and_dead(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *slow = nth(&o, ROLE_HOST, 20), *dead = nth(&o, ROLE_HOST, 41), *leaf;
    leaf = nth(&o, ROLE_LEAF, 6);
    assert_int_equal(sim_node_delay(o.r.sim, slow->guid, 300 * MONO_MS), 0);
    assert_int_equal(sim_node_kill(o.r.sim, dead->guid, true), 0);
    rig_run(&o.r, 30 * MONO_S);
    show(&o, "a slow and a dead adapter, links kept", 0);
    assert_int_equal(o.r.events, o.events); // their links are up, nobody asked them
    mark(&o);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, uplink(&o, leaf, 5), false), 0);
    int64_t ns = repaired(&o, 2 * MONO_S);
    show(&o, "a trunk beside them", ns);
    assert_true(ns < MONO_S / 5);

    // Their links flap: the dead one is left out, the slow one is configured.
    mark(&o);
    assert_int_equal(sim_link_flap(o.r.sim, slow->guid, 1, 10 * MONO_MS, MONO_MS, 1), 0);
    assert_int_equal(sim_link_flap(o.r.sim, dead->guid, 1, 10 * MONO_MS, MONO_MS, 1), 0);
    rig_run(&o.r, MONO_S);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, uplink(&o, leaf, 6), false), 0);
    mono_t t0 = loop_now(o.r.loop);
    uint8_t port = 0;
    for (unsigned gone = uplink(&o, leaf, 6);;) {
        bool used = false;
        for (uint16_t lid = 1; lid < sm_fabric(o.r.sm)->top_lid; lid++)
            used |= sim_lft(o.r.sim, leaf->guid, lid, &port) == 0 && port == gone;
        if (!used)
            break;
        rig_run(&o.r, MONO_MS);
        assert_true(mono_sub(loop_now(o.r.loop), t0) < 3 * MONO_S);
    }
    show(&o, "a trunk while they come up", mono_sub(loop_now(o.r.loop), t0));
    rig_run(&o.r, 40 * MONO_S);
    show(&o, "slow and dead after 40 s", 0);
    assert_int_equal(state_of(&o, slow->guid, 1), PORT_ACTIVE);
    assert_int_equal(findings_of(&o, "peer-silent"), 1);
    assert_true(whole(&o));
    unsigned sweeps = o.r.sweeps;
    rig_run(&o.r, 60 * MONO_S);
    assert_in_range(o.r.sweeps - sweeps, 0, 3);

    mark(&o);
    assert_int_equal(sim_node_kill(o.r.sim, dead->guid, false), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "dead one alive", 0);
    assert_int_equal(state_of(&o, dead->guid, 1), PORT_ACTIVE);
    assert_int_equal(findings_of(&o, "peer-silent"), 0);
    rig_judge(&o.r, NULL, 0);
    done(&o);
}

static void audits(struct sm_opts *o)
{
    o->audit_interval_ns = 60 * MONO_S;
}

static void test_not_kept(void **state)
{
    struct odd o;
    struct sm_audit_stats a;
    unsigned num;
    (void)state;
    memset(&o, 0, sizeof(o));
    rig_init(&o.r, "rail-16", &wire);
    audits(&o.r.opts);
    const struct node *host = nth(&o, ROLE_HOST, 9), *leaf = peer_of(&o, host, 1, &num);
    assert_int_equal(sim_set_field_not_kept(o.r.sim, leaf->guid, MAD_ATTR_PORT_INFO, "hoq_life", true), 0);
    rig_up(&o.r);
    rig_sweeps(&o.r, 1, 300);
    assert_true(rig_last(&o.r)->ok);
    assert_int_equal(rig_events_of(&o.r, "settings-not-kept"), 1);
    assert_non_null(strstr(o.r.log.data, "ports answer Set(PortInfo) with success but do not keep"));
    rig_run(&o.r, 3 * MONO_S);
    mark(&o);
    rig_run(&o.r, 130 * MONO_S); // light sweeps and an audit round
    show(&o, "a Set that is not kept, 130 s", 0);
    sm_audit_stats(o.r.sm, &a);
    assert_true(a.rounds >= 1);
    assert_int_equal(info_sets(&o), 0);
    assert_int_equal(o.r.events, o.events);

    mark(&o); // its port is reset: it may keep it now
    assert_int_equal(sim_set_field_not_kept(o.r.sim, leaf->guid, MAD_ATTR_PORT_INFO, "hoq_life", false), 0);
    assert_int_equal(sim_link_flap(o.r.sim, leaf->guid, num, 10 * MONO_MS, MONO_MS, 1), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "after the port's reset", 0);
    uint64_t hoq = 0;
    assert_int_equal(sim_port_field(o.r.sim, leaf->guid, num, "hoq_life", &hoq), 0);
    assert_int_equal(hoq, o.r.opts.hoq_life_host);
    rig_judge(&o.r, NULL, 0);
    done(&o);
}

// Somebody has set an M_Key with protection on an adapter: it gives no answer, and the finding says why that
// may be.
static void test_m_key(void **state)
{
    struct odd o;
    unsigned num;
    (void)state;
    up_on(&o, "rail-16");
    const struct node *host = nth(&o, ROLE_HOST, 9), *leaf = peer_of(&o, host, 1, &num);
    assert_int_equal(sim_m_key_set(o.r.sim, host->guid, 1, 0x1234567, 3, 0), 0);
    assert_int_equal(sim_link_flap(o.r.sim, leaf->guid, num, 10 * MONO_MS, MONO_MS, 1), 0);
    rig_run(&o.r, 15 * MONO_S);
    show(&o, "M_Key set by somebody", 0);
    const struct findings *f = sm_findings(o.r.sm);
    bool named = false;
    for (size_t i = 0; i < f->n; i++) {
        printf("# finding %s at %s: %s\n", f->item[i].code, f->item[i].where, f->item[i].text);
        named |= strstr(f->item[i].text, "M_Key") != NULL && f->item[i].severity > FINDING_INFO;
    }
    assert_true(named);
    assert_true(whole(&o));
    unsigned sweeps = o.r.sweeps;
    rig_run(&o.r, 60 * MONO_S);
    assert_in_range(o.r.sweeps - sweeps, 0, 3);
    mark(&o);
    assert_int_equal(sim_m_key_set(o.r.sim, host->guid, 1, 0, 0, 0), 0);
    rig_run(&o.r, 3 * MONO_S);
    show(&o, "M_Key taken away", 0);
    assert_int_equal(state_of(&o, host->guid, 1), PORT_ACTIVE);
    rig_judge(&o.r, NULL, 0);
    done(&o);
}

// A switch has forgotten its tables, no port has changed: only its LinearFDBTop tells.
static void test_lft_lost(void **state)
{
    struct odd o;
    static uint8_t nothing[128];
    (void)state;
    up_on(&o, "rail-64");
    memset(nothing, LFT_DROP, sizeof(nothing));
    const struct node *spine = nth(&o, ROLE_SPINE, 1);
    mark(&o);
    assert_int_equal(sim_set_lft(o.r.sim, spine->guid, nothing, sizeof(nothing), 0), 0);
    assert_false(whole(&o));
    int64_t ns = repaired(&o, 3 * MONO_S);
    rig_run(&o.r, MONO_S);
    show(&o, "table lost", ns);
    assert_true(ns < 1500 * MONO_MS);
    assert_false(any_full(&o));
    assert_int_equal(changed_blocks(&o), 0);
    assert_int_equal(lft_sets(&o), sm_fabric(o.r.sm)->top_lid / LFT_BLOCK + 1u);
    assert_in_range(mads(&o), 65, 64 + 30);
    assert_int_equal(rig_events_of(&o.r, "node-reset"), 1);
    assert_int_equal(info_sets(&o), 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 5, 0);
    done(&o);
}

// A thousand hosts at once: power comes back.
static void test_thousand(void **state)
{
    struct odd o;
    struct sim_stats before, after;
    uint64_t timeouts = 0;
    (void)state;
    up_on(&o, "rail-1024");
    for (int up = 0; up < 2; up++) {
        mark(&o);
        sim_get_stats(o.r.sim, &before);
        for (uint32_t i = 0; i < o.r.plan->num_nodes; i++) {
            const struct node *n = &o.r.plan->node[i];
            if (n->type == NODE_CA && o.r.plan->port[o.r.plan->sm_port.i].node.i != i)
                assert_int_equal(sim_link_set(o.r.sim, n->guid, 1, up), 0);
        }
        uint32_t nodes = up ? o.r.plan->num_nodes : o.r.plan->num_switches + 1;
        while (sm_fabric(o.r.sm)->num_nodes != nodes || sm_fabric(o.r.sm)->num_links == 0) {
            rig_run(&o.r, MONO_MS);
            assert_true(mono_sub(loop_now(o.r.loop), o.at) < 10 * MONO_S);
        }
        int64_t ns = repaired(&o, 10 * MONO_S);
        sim_get_stats(o.r.sim, &after);
        for (unsigned i = 0; i < o.r.sweeps - o.sweeps; i++)
            timeouts += sm_history(o.r.sm, i)->timeouts;
        show(&o, up ? "1023 hosts up" : "1023 hosts down", ns);
        assert_int_equal(after.dropped_vl15, before.dropped_vl15);
        assert_int_equal(timeouts, 0);
        assert_false(any_full(&o));
        assert_int_equal(lft_sets(&o), 0);
        rig_run(&o.r, 3 * MONO_S);
        assert_in_range(o.r.events - o.events, 21, 44);
    }
    assert_int_equal(changed_blocks(&o), 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 10, 0);
    done(&o);
}

// A leaf's agent dies, and what it forwards goes on: hosts behind it keep their traffic.
static void test_leaf_mute(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *leaf = nth(&o, ROLE_LEAF, 5), *there = NULL, *here = nth(&o, ROLE_HOST, 0);
    for (unsigned num = 1; num <= leaf->num_ports && there == NULL; num++)
        there = peer_of(&o, leaf, num, NULL);
    assert_ptr_not_equal(peer_of(&o, here, 1, NULL), leaf);
    uint64_t a = port_of(&o, here, 1)->guid, z = port_of(&o, there, 1)->guid;
    uint16_t a_lid = lid_of(&o, a), z_lid = lid_of(&o, z);
    mark(&o);
    assert_int_equal(sim_node_kill(o.r.sim, leaf->guid, true), 0);
    for (int i = 0; i < 300; i++) {
        rig_run(&o.r, 100 * MONO_MS);
        assert_true(sim_trace(o.r.sim, a, z_lid, NULL, 0) >= 0);
        assert_true(sim_trace(o.r.sim, z, a_lid, NULL, 0) >= 0);
    }
    show(&o, "leaf's agent dead", 0);
    assert_int_equal(findings_of(&o, "peer-silent"), 1);
    assert_int_equal(sim_node_kill(o.r.sim, leaf->guid, false), 0);
    rig_run(&o.r, 5 * MONO_S);
    show(&o, "leaf's agent alive", 0);
    assert_int_equal(findings_of(&o, "peer-silent"), 0);
    assert_int_equal(changed_blocks(&o), 0);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 5, 0);
    done(&o);
}

// --- our own place ---

static void test_own_link(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct port *own = fabric_port(o.r.plan, o.r.plan->sm_port);
    const struct node *node = fabric_node(o.r.plan, own->node), *leaf = own_leaf(&o);
    static const int64_t down[] = {0, 20 * MONO_MS, 3 * MONO_S};
    for (unsigned i = 0; i < 3; i++) {
        mark(&o);
        assert_int_equal(sim_link_flap(o.r.sim, node->guid, own->num, down[i], MONO_MS, 1), 0);
        rig_run(&o.r, down[i]);
        int64_t ns = repaired(&o, 5 * MONO_S);
        rig_run(&o.r, 3 * MONO_S);
        show(&o, "our own link was down", ns);
        assert_int_equal(changed_blocks(&o), 0);
        assert_int_equal(lft_sets(&o), 0);
        assert_true(ns < down[i] + 2 * MONO_S);
        rig_judge(&o.r, NULL, 0);
        quiet(&o, 20, 0);
    }
    mark(&o);
    assert_int_equal(sim_switch_reboot(o.r.sim, leaf->guid), 0);
    rig_run(&o.r, 5 * MONO_S);
    show(&o, "our own leaf has rebooted", 0);
    assert_int_equal(changed_blocks(&o), 0);
    assert_int_equal(rig_events_of(&o.r, "node-reset"), 1);
    rig_judge(&o.r, NULL, 0);
    quiet(&o, 20, 0);
    done(&o);
}

// --- a slow switch ---

static void test_slow_switch(void **state)
{
    struct odd o;
    unsigned num;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *spine = nth(&o, ROLE_SPINE, 1), *leaf = nth(&o, ROLE_LEAF, 4);
    assert_int_equal(sim_node_delay(o.r.sim, spine->guid, 300 * MONO_MS), 0);
    rig_run(&o.r, 60 * MONO_S);
    show(&o, "a slow spine, 60 s", 0);
    assert_int_equal(o.r.events, o.events);
    assert_int_equal(lft_sets(&o), 0);
    assert_in_range(o.r.sweeps - o.sweeps, 0, 3);
    for (unsigned i = 0; i < 2; i++) { // elsewhere; its own
        for (num = 1; num <= leaf->num_ports; num++) {
            const struct node *z = peer_of(&o, leaf, num, NULL);
            if (z != NULL && z->type == NODE_SWITCH && (z == spine) == (i == 1))
                break;
        }
        for (int up = 0; up < 2; up++) {
            mark(&o);
            assert_int_equal(sim_link_set(o.r.sim, leaf->guid, num, up), 0);
            int64_t ns = -1;
            for (int k = 0; k < 6000 && ns < 0; k++) {
                rig_run(&o.r, 10 * MONO_MS);
                struct sm_status st;
                sm_get_status(o.r.sm, &st);
                if (whole(&o) && o.r.sweeps > o.sweeps &&
                    (!up || state_of(&o, leaf->guid, num) == PORT_ACTIVE))
                    ns = mono_sub(loop_now(o.r.loop), o.at);
            }
            show(&o, i ? "a trunk of the slow spine" : "a trunk beside the slow spine", ns);
            assert_true(ns >= 0);
            assert_true(ns < (i ? 40 * MONO_S : up ? 2 * MONO_S : MONO_S / 2));
            rig_run(&o.r, 60 * MONO_S);
            show(&o, "a minute later", 0);
            assert_true(whole(&o));
        }
    }
    rig_judge(&o.r, NULL, 0);
    assert_int_equal(sim_node_delay(o.r.sim, spine->guid, 0), 0);
    rig_run(&o.r, 70 * MONO_S);
    assert_int_equal(changed_blocks(&o), 0);
    quiet(&o, 10, 0);
    done(&o);
}

// --- an agent dies between question and order ---

struct killer {
    struct odd *o;
    uint64_t guid;
    bool done;
};

static void kill_at_set(struct rig *r, const uint8_t *mad)
{
    struct killer *k = r->user;
    if (!k->done && mad[3] == MAD_METHOD_SET && mad[17] == MAD_ATTR_PORT_INFO) {
        k->done = true;
        assert_int_equal(sim_node_kill(r->sim, k->guid, true), 0);
    }
}

static void test_dies_midway(void **state)
{
    struct odd o;
    (void)state;
    up_on(&o, "rail-64");
    const struct node *host = nth(&o, ROLE_HOST, 20), *leaf = nth(&o, ROLE_LEAF, 6);
    struct killer k = {&o, host->guid, false};
    o.r.user = &k;
    assert_int_equal(sim_link_set(o.r.sim, host->guid, 1, false), 0);
    rig_run(&o.r, 3 * MONO_S);
    o.r.on_send = kill_at_set;
    mark(&o);
    assert_int_equal(sim_link_set(o.r.sim, host->guid, 1, true), 0);
    rig_run(&o.r, 300 * MONO_MS);
    assert_true(k.done);
    unsigned gone = uplink(&o, leaf, 3);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, gone, false), 0);
    mono_t t0 = loop_now(o.r.loop);
    for (bool used = true; used;) {
        uint8_t port;
        rig_run(&o.r, MONO_MS);
        used = false;
        for (uint16_t lid = 1; lid <= sm_fabric(o.r.sm)->top_lid; lid++)
            used |= sim_lft(o.r.sim, leaf->guid, lid, &port) == 0 && port == gone;
        assert_true(mono_sub(loop_now(o.r.loop), t0) < 30 * MONO_S);
    }
    int64_t ns = mono_sub(loop_now(o.r.loop), t0);
    show(&o, "a trunk while a host dies in configuring", ns);
    assert_true(ns < MONO_S / 2);
    rig_run(&o.r, 20 * MONO_S);
    show(&o, "20 s later", 0);
    mark(&o);
    assert_int_equal(sim_node_kill(o.r.sim, host->guid, false), 0);
    assert_int_equal(sim_link_set(o.r.sim, leaf->guid, gone, true), 0);
    rig_run(&o.r, 5 * MONO_S);
    show(&o, "host answers again", 0);
    assert_int_equal(state_of(&o, host->guid, 1), PORT_ACTIVE);
    rig_judge(&o.r, NULL, 0);
    assert_int_equal(changed_blocks(&o), 0);
    done(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_trunk),         cmocka_unit_test(test_trunk_without_traps),
        cmocka_unit_test(test_host),          cmocka_unit_test(test_spine_dead),
        cmocka_unit_test(test_spine_mute),    cmocka_unit_test(test_boot),
        cmocka_unit_test(test_quick_reboot),  cmocka_unit_test(test_flaps),
        cmocka_unit_test(test_replaced),      cmocka_unit_test(test_moved),
        cmocka_unit_test(test_swapped),       cmocka_unit_test(test_duplicate),
        cmocka_unit_test(test_host_reboot),   cmocka_unit_test(test_manager_appears),
        cmocka_unit_test(test_slow_and_dead), cmocka_unit_test(test_not_kept),
        cmocka_unit_test(test_m_key),         cmocka_unit_test(test_lft_lost),
        cmocka_unit_test(test_leaf_mute),     cmocka_unit_test(test_own_link),
        cmocka_unit_test(test_slow_switch),   cmocka_unit_test(test_dies_midway),
        cmocka_unit_test(test_thousand),
    };
    if (getenv("ODD") != NULL)
        cmocka_set_test_filter(getenv("ODD"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
