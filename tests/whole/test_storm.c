// SPDX-License-Identifier: Apache-2.0
// Storms: random faults on small fabrics at random moments. When a storm is over and its liars are healed,
// the fabric must be what a manager that has seen none of it makes of the same cables with the same records:
// everybody reaches everybody, the tables are equal byte for byte, no LID has changed, and nothing goes on.
// While it lasts no packet may go round, as far as tables written in good order can see to that.
//
// The judge looks at the simulated devices only, along cables that it keeps account of itself.
//
// WEFT_STORM_SEED=n runs one storm and tells all that happens; WEFT_STORM_SEEDS=a-b those; WEFT_LONG_TESTS
// more of them.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fabric/builder.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "mad/mad.h"
#include "tests/whole/storm.h"

#ifdef __SANITIZE_ADDRESS__
#define SEEDS 50 // ten times as slow
#else
#define SEEDS 1000
#endif
#define SEEDS_LONG 20000
#define QUIET_S 62     // longer than the longest pause between two sweeps
#define DEADLINE_S 600 // by which it is quiet

enum kind {
    LINK_DOWN,
    LINK_UP,
    LINK_FLAP,
    SWITCH_BOOT,
    KILL,
    REVIVE,
    SLOW,
    DELAY,
    HOST_REBOOT,
    REPLACE,
    SWAP,
    MOVE,
    DUPLICATE,
    UNIQUE,
    LOSE_TRAPS,
    TRAP_LOSS,
    LOSS,
    DESC,
    ENABLED,
    RAISE,
    NOT_KEPT,
    RESTART,
    FOREIGN,
    OWN_LINK,
    KINDS,
};
static const char *const kind_name[KINDS] = {
    "link down", "link up", "flap",    "boot",  "kill",     "revive",  "slow",       "delay",
    "os reboot", "replace", "swap",    "move",  "twin",     "no twin", "lose traps", "trap loss",
    "loss",      "desc",    "enabled", "raise", "not kept", "restart", "foreign",    "own link"};

// --- telling ---

__attribute__((format(printf, 2, 3))) static void bad(struct storm *st, const char *fmt, ...)
{
    va_list ap;
    if (st->failed)
        return;
    st->failed = true;
    va_start(ap, fmt);
    vsnprintf(st->why, sizeof(st->why), fmt, ap);
    va_end(ap);
}

__attribute__((format(printf, 2, 3))) static void say(struct storm *st, const char *fmt, ...)
{
    va_list ap;
    if (!st->loud)
        return;
    printf("# %13.6f ", (double)loop_now(st->r.loop).ns / 1e9);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

// Where the manager believes in other cables than there are.
static void tell_errors(struct storm *st)
{
    const struct fabric *f = sm_fabric(st->r.sm);
    for (uint32_t p = 0; f != NULL && st->f != NULL && p < st->f->num_ports; p++) {
        const struct node *n = fabric_by_guid(f, guid_of_port(st, p));
        if (n == NULL || st->f->port[p].num == 0)
            continue;
        const struct port *is = fabric_port(f, fabric_port_at(f, n, st->f->port[p].num));
        uint64_t truth = carries(st, p) ? guid_of_port(st, st->port[p].peer) : 0;
        uint64_t belief = port_valid(is->peer) ? fabric_node(f, fabric_port(f, is->peer)->node)->guid : 0;
        if (truth != belief)
            say(st, "      %s[%u] leads to 0x%llx, is believed to lead to 0x%llx",
                st->node[st->f->port[p].node.i].desc, st->f->port[p].num, (unsigned long long)truth,
                (unsigned long long)belief);
    }
}

static void tell_new(struct storm *st)
{
    if (!st->loud)
        return;
    for (; st->r.log.data != NULL && st->told_log < st->r.log.len;) {
        const char *line = st->r.log.data + st->told_log;
        size_t n = strcspn(line, "\n");
        say(st, "    event %.*s", (int)n, line);
        st->told_log += n + 1;
    }
    if (st->told_sweeps == st->r.sweeps)
        return;
    st->told_sweeps = st->r.sweeps;
    const struct sm_sweep *s = rig_last(&st->r);
    if (s != NULL)
        say(st, "  sweep %llu %s %s devices %u mads %llu to %llu lft %llu ports %llu: %s",
            (unsigned long long)s->id, s->cause, s->full ? "full" : "partial", s->devices,
            (unsigned long long)s->mads, (unsigned long long)s->timeouts,
            (unsigned long long)s->lft_blocks_set, (unsigned long long)s->port_sets,
            s->ok        ? s->text
            : s->text[0] ? s->text
                         : "failed");
    tell_errors(st);
}

// --- walking the tables ---

// From a switch on towards a LID: the end port it arrives at, or NONE. `data`: only over links that carry it.
static uint32_t walk(struct storm *st, uint32_t node, uint16_t lid, bool data, bool *ret_loop)
{
    *ret_loop = false;
    for (uint32_t hops = 0; hops <= st->f->num_switches; hops++) {
        struct sim_port_view v, z;
        uint8_t out = LFT_DROP;
        uint32_t p0 = port_at(st, node, 0);
        if (sim_port_view(st->r.sim, st->node[node].guid, 0, &v) == 0 && v.lid == lid)
            return p0;
        int status = sim_lft(st->r.sim, st->node[node].guid, lid, &out);
        snprintf(st->at, sizeof(st->at), "%s[%u]", st->node[node].desc, out);
        if (status != 0 || out == 0 || out > st->f->node[node].num_ports)
            return NONE;
        uint32_t p = port_at(st, node, out), peer = st->port[p].peer;
        if (!carries(st, p))
            return NONE;
        if (data && (sim_port_view(st->r.sim, st->node[node].guid, out, &v) != 0 ||
                     sim_port_view(st->r.sim, guid_of_port(st, peer), st->f->port[peer].num, &z) != 0 ||
                     !v.linked || v.state != PORT_ACTIVE || z.state < PORT_ARMED))
            return NONE;
        node = st->f->port[peer].node.i;
        if (!is_switch(st, node))
            return peer;
    }
    *ret_loop = true;
    return NONE;
}

static void look_for_loops(struct storm *st, uint16_t from, uint16_t to)
{
    bool loop;
    for (uint32_t lid = from == 0 ? 1 : from; lid <= to && !st->failed; lid++)
        for (uint32_t i = 0; i < st->f->num_nodes; i++)
            if (is_switch(st, i) && (walk(st, i, (uint16_t)lid, true, &loop), loop)) {
                bad(st, "at %.6f s a packet from %s to LID %u goes round",
                    (double)loop_now(st->r.loop).ns / 1e9, st->node[i].desc, lid);
                break;
            }
}

static void on_send(struct rig *r, const uint8_t *mad)
{
    struct storm *st = r->user;
    struct mad_hdr h;
    char path[120] = "", *p = path;
    if (!st->loud || getenv("WEFT_STORM_MADS") == NULL)
        return;
    mad_hdr_decode(mad, &h);
    uint32_t at = st->own;
    for (unsigned i = 1; i <= mad[7] && h.mgmt_class == MAD_CLASS_SM_DR && i < 16; i++) {
        p += sprintf(p, ".%u", mad[128 + i]);
        uint32_t q = at == NONE ? NONE : port_at(st, at, mad[128 + i]);
        at = q != NONE && carries(st, q) ? st->f->port[st->port[q].peer].node.i : NONE;
    }
    sprintf(p, " %s", at == NONE ? "?" : st->node[at].desc);
    say(st, "      method %02x attr %04x mod %x path %s", h.method, h.attr_id, h.attr_mod, path);
}

static bool on_recv(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct storm *st = r->user;
    struct mad_hdr h;
    (void)from;
    tell_new(st);
    if (status != 0)
        return false;
    mad_hdr_decode(mad, &h);
    if (h.attr_id != MAD_ATTR_LINEAR_FORWARDING_TABLE || h.method != MAD_METHOD_GET_RESP || !st->in_order ||
        st->deaths > 1 || st->answers++ % 4 != 0)
        return false;
    uint32_t first = h.attr_mod * LFT_BLOCK;
    uint16_t top = sm_fabric(r->sm) != NULL ? sm_fabric(r->sm)->top_lid : 0;
    if (top >= first)
        look_for_loops(st, (uint16_t)first,
                       top < first + LFT_BLOCK ? top : (uint16_t)(first + LFT_BLOCK - 1));
    return false;
}

// --- what happens ---

static uint32_t any_node(struct storm *st, bool want_switch)
{
    for (;;) {
        uint32_t i = rng_below(&st->rng, st->f->num_nodes);
        if (i != st->own && is_switch(st, i) == want_switch)
            return i;
    }
}

static bool ours(const struct storm *st, uint32_t p)
{
    return p == st->own_leaf_port || st->f->port[p].node.i == st->own;
}

// A cabled port that is not ours; NONE when chance finds none.
static uint32_t any_cable(struct storm *st)
{
    for (int i = 0; i < 200; i++) {
        uint32_t p = rng_below(&st->rng, st->f->num_ports);
        if (st->port[p].peer != NONE && !ours(st, p))
            return p;
    }
    return NONE;
}

static int64_t some_time(struct storm *st)
{
    switch (rng_below(&st->rng, 5)) {
    case 0:
        return 0;
    case 1:
        return rng_below(&st->rng, 50 * MONO_US);
    case 2:
        return rng_below(&st->rng, 20 * MONO_MS);
    case 3:
        return rng_below(&st->rng, 500 * MONO_MS);
    default:
        return (int64_t)(rng_double(&st->rng) * 3e9);
    }
}

static void set_cut(struct storm *st, uint32_t p, bool cut)
{
    st->port[p].cut = st->port[st->port[p].peer].cut = cut;
}

static void plug(struct storm *st, uint32_t a, uint32_t z)
{
    st->port[a] = (struct port_now){.peer = z, .lid = st->port[a].lid};
    st->port[z] = (struct port_now){.peer = a, .lid = st->port[z].lid};
}

static void unplug(struct storm *st, uint32_t a)
{
    uint32_t z = st->port[a].peer;
    st->port[a].peer = NONE;
    st->port[a].cut = false;
    if (z == NONE)
        return;
    st->port[z].peer = NONE;
    st->port[z].cut = false;
}

static void link_action(struct storm *st, enum kind k)
{
    uint32_t p = any_cable(st);
    if (k == OWN_LINK)
        p = st->own_leaf_port;
    if (p == NONE)
        return;
    uint64_t g = guid_of_port(st, p);
    unsigned num = st->f->port[p].num;
    if (k == LINK_DOWN || k == LINK_UP) {
        for (uint32_t i = 0; k == LINK_UP && i < st->f->num_ports && !st->port[p].cut; i++)
            if (st->port[i].cut)
                p = i;
        g = guid_of_port(st, p);
        num = st->f->port[p].num;
        say(st, "link %s[%u] %s", st->node[st->f->port[p].node.i].desc, num, k == LINK_UP ? "up" : "down");
        assert_int_equal(sim_link_set(st->r.sim, g, num, k == LINK_UP), 0);
        set_cut(st, p, k == LINK_DOWN);
        return;
    }
    int64_t down = some_time(st), up = 10 * MONO_MS + some_time(st);
    unsigned times = 1 + rng_below(&st->rng, 3);
    say(st, "flap %s[%u] down %lld up %lld times %u", st->node[st->f->port[p].node.i].desc, num,
        (long long)down, (long long)up, times);
    assert_int_equal(sim_link_flap(st->r.sim, g, num, down, up, times), 0);
    set_cut(st, p, false);
}

static void cable_action(struct storm *st, enum kind k)
{
    uint32_t a = any_cable(st), b = any_cable(st);
    if (a == NONE || b == NONE || a == b || st->port[a].peer == b)
        return;
    st->in_order = false; // the same entries lead elsewhere
    if (k == SWAP) {
        uint32_t a_far = st->port[a].peer, b_far = st->port[b].peer;
        say(st, "swap %s[%u] %s[%u]", st->node[st->f->port[a].node.i].desc, st->f->port[a].num,
            st->node[st->f->port[b].node.i].desc, st->f->port[b].num);
        assert_int_equal(sim_swap_cables(st->r.sim, guid_of_port(st, a), st->f->port[a].num,
                                         guid_of_port(st, b), st->f->port[b].num),
                         0);
        plug(st, a, b_far);
        plug(st, b, a_far);
        return;
    }
    do {
        uint32_t to = any_node(st, true);
        b = port_at(st, to, 1 + rng_below(&st->rng, 4));
    } while (b == NONE || ours(st, b) || (st->port[b].peer != NONE && ours(st, st->port[b].peer)) || a == b);
    say(st, "move cable of %s[%u] to %s[%u]", st->node[st->f->port[a].node.i].desc, st->f->port[a].num,
        st->node[st->f->port[b].node.i].desc, st->f->port[b].num);
    assert_int_equal(sim_recable(st->r.sim, guid_of_port(st, a), st->f->port[a].num, guid_of_port(st, b),
                                 st->f->port[b].num),
                     0);
    unplug(st, a);
    unplug(st, b);
    plug(st, a, b);
}

static void foreign(struct storm *st)
{
    uint32_t i = any_node(st, true);
    uint16_t top = sm_fabric(st->r.sm) != NULL ? sm_fabric(st->r.sm)->top_lid : 0;
    uint64_t had = 0;
    uint8_t row[2048];
    if (top == 0 || top >= sizeof(row) ||
        sim_switch_field(st->r.sim, st->node[i].guid, "linear_fdb_top", &had))
        return;
    row[0] = LFT_DROP;
    for (uint16_t lid = 1; lid <= top; lid++) {
        sim_lft(st->r.sim, st->node[i].guid, lid, &row[lid]);
        if (rng_below(&st->rng, 10) == 0)
            row[lid] = (uint8_t)rng_below(&st->rng, st->f->node[i].num_ports + 1u);
    }
    say(st, "foreign entries in %s", st->node[i].desc);
    st->in_order = false;
    sim_set_lft(st->r.sim, st->node[i].guid, row, top + 1u, (uint16_t)had);
}

static void node_action(struct storm *st, enum kind k)
{
    uint32_t i = any_node(st, rng_below(&st->rng, 3) > 0);
    struct node_now *n = &st->node[i];
    struct sim *s = st->r.sim;
    int64_t t = some_time(st), t2 = some_time(st);
    char desc[40];

    if (k == HOST_REBOOT || k == REPLACE || k == DUPLICATE)
        n = &st->node[i = any_node(st, false)];
    if (k == UNIQUE || k == REVIVE) {
        for (i = 0; i < st->f->num_nodes && !(k == REVIVE ? st->node[i].dead : st->node[i].twin); i++)
            ;
        if (i == st->f->num_nodes)
            return;
        n = &st->node[i];
    }
    say(st, "%s %s (0x%llx) %lld %lld", kind_name[k], n->desc, (unsigned long long)n->guid, (long long)t,
        (long long)t2);
    if (is_switch(st, i) && (k == KILL || k == SWITCH_BOOT || k == DELAY || k == SLOW))
        st->deaths++;
    switch (k) {
    case SWITCH_BOOT:
        assert_int_equal(sim_node_boot(s, n->guid, t, t2), 0);
        break;
    case KILL:
    case REVIVE:
        n->dead = k == KILL;
        assert_int_equal(sim_node_kill(s, n->guid, n->dead), 0);
        break;
    case SLOW:
        assert_int_equal(sim_node_slow(s, n->guid, 1 + rng_below(&st->rng, 4000)), 0);
        break;
    case DELAY:
        assert_int_equal(sim_node_delay(s, n->guid, t / 4), 0);
        break;
    case HOST_REBOOT:
        assert_int_equal(sim_host_reboot(s, n->guid, t, rng_below(&st->rng, 2) ? "booting" : NULL, true), 0);
        break;
    case REPLACE:
        if (n->twin)
            break;
        assert_int_equal(sim_node_replace(s, n->guid, 0x900000 + 16ull * st->replaced, t), 0);
        n->guid = 0x900000 + 16ull * st->replaced++;
        n->replaced = true;
        break;
    case DUPLICATE:
        assert_int_equal(sim_guid_duplicate(s, n->guid, st->node[any_node(st, false)].guid), 0);
        n->twin = true;
        break;
    case UNIQUE:
        assert_int_equal(sim_guid_duplicate(s, n->guid, 0), 0);
        n->twin = false;
        break;
    case LOSE_TRAPS:
        assert_int_equal(sim_trap_lose(s, n->guid, rng_below(&st->rng, 2) ? UINT32_MAX : 3), 0);
        break;
    case DESC:
        snprintf(desc, sizeof(desc), "named-%u", rng_below(&st->rng, 1000));
        snprintf(n->desc, sizeof(n->desc), "%s", desc);
        assert_int_equal(sim_node_desc(s, n->guid, desc), 0);
        break;
    case NOT_KEPT:
        assert_int_equal(sim_set_not_kept(s, n->guid,
                                          rng_below(&st->rng, 2) && is_switch(st, i)
                                              ? MAD_ATTR_LINEAR_FORWARDING_TABLE
                                              : MAD_ATTR_PORT_INFO,
                                          true),
                         0);
        st->in_order &= !is_switch(st, i);
        break;
    case LINK_DOWN:
    case LINK_UP:
    case LINK_FLAP:
    case OWN_LINK:
    case SWAP:
    case MOVE:
    case TRAP_LOSS:
    case LOSS:
    case ENABLED:
    case RAISE:
    case RESTART:
    case FOREIGN:
    case KINDS: // not a node's
        break;
    }
}

static void raise_one(struct storm *st)
{
    static const uint16_t number[] = {128, 129, 130, 131, 144, 145, 256, 257, 258, 259};
    uint32_t i = any_node(st, rng_below(&st->rng, 2) > 0);
    unsigned num = is_switch(st, i) ? rng_below(&st->rng, st->f->node[i].num_ports + 1u) : 1;
    uint16_t t = number[rng_below(&st->rng, 10)];
    say(st, "trap %u from %s[%u]", t, st->node[i].desc, num);
    sim_raise_trap(st->r.sim, st->node[i].guid, num, t); // refused where no such device sends it
}

static void enabled(struct storm *st)
{
    static const uint8_t width[] = {0, 1, 2, 3};
    uint32_t p = any_cable(st);
    if (p == NONE)
        return;
    say(st, "enabled %s[%u]", st->node[st->f->port[p].node.i].desc, st->f->port[p].num);
    sim_link_enabled(st->r.sim, guid_of_port(st, p), st->f->port[p].num, width[rng_below(&st->rng, 4)], 0, 0);
}

static void happen(struct storm *st, enum kind k)
{
    double d;
    switch (k) {
    case LINK_DOWN:
    case LINK_UP:
    case LINK_FLAP:
    case OWN_LINK:
        link_action(st, k);
        break;
    case SWAP:
    case MOVE:
        cable_action(st, k);
        break;
    case TRAP_LOSS:
        d = rng_below(&st->rng, 3) == 0 ? 0 : rng_double(&st->rng);
        say(st, "trap loss %.2f", d);
        sim_trap_loss(st->r.sim, d);
        break;
    case LOSS:
        d = rng_below(&st->rng, 3) == 0 ? 0 : 0.01 + 0.19 * rng_double(&st->rng);
        say(st, "loss %.2f", d);
        sim_set_loss(st->r.sim, d);
        break;
    case ENABLED:
        enabled(st);
        break;
    case RAISE:
        raise_one(st);
        break;
    case RESTART:
        say(st, "restart");
        rig_down(&st->r);
        rig_up(&st->r);
        break;
    case FOREIGN:
        foreign(st);
        break;
    case SWITCH_BOOT:
    case KILL:
    case REVIVE:
    case SLOW:
    case DELAY:
    case HOST_REBOOT:
    case REPLACE:
    case DUPLICATE:
    case UNIQUE:
    case LOSE_TRAPS:
    case DESC:
    case NOT_KEPT:
        node_action(st, k);
        break;
    case KINDS:
        break;
    }
}

static void heal(struct storm *st)
{
    struct sim *s = st->r.sim;
    say(st, "healed");
    sim_set_loss(s, 0);
    sim_trap_loss(s, 0);
    for (uint32_t i = 0; i < st->f->num_nodes; i++) {
        uint64_t g = st->node[i].guid;
        sim_node_kill(s, g, false);
        sim_node_slow(s, g, 1);
        sim_node_delay(s, g, 0);
        sim_trap_lose(s, g, 0);
        sim_set_not_kept(s, g, MAD_ATTR_PORT_INFO, false);
        sim_set_not_kept(s, g, MAD_ATTR_LINEAR_FORWARDING_TABLE, false);
        if (st->node[i].twin)
            sim_guid_duplicate(s, g, 0);
    }
}

// --- judging ---

static bool run_until_swept(struct storm *st, int seconds)
{
    for (unsigned before = st->r.sweeps; st->r.sweeps == before && seconds > 0; seconds--)
        rig_run(&st->r, MONO_S);
    tell_new(st);
    return seconds > 0;
}

static uint64_t sets(const struct rig *r)
{
    return rig_count(r, MAD_METHOD_SET, MAD_ATTR_PORT_INFO) +
           rig_count(r, MAD_METHOD_SET, MAD_ATTR_SWITCH_INFO) +
           rig_count(r, MAD_METHOD_SET, MAD_ATTR_LINEAR_FORWARDING_TABLE);
}

static void wait_for_quiet(struct storm *st)
{
    int quiet = 0;
    unsigned sweeps = st->r.sweeps, events = st->r.events;
    uint64_t set = sets(&st->r);
    struct sm_status status;

    for (int s = 0; s < DEADLINE_S; s++) {
        rig_run(&st->r, MONO_S);
        tell_new(st);
        sm_get_status(st->r.sm, &status);
        if (sweeps == st->r.sweeps && events == st->r.events && !status.sweeping) {
            if (++quiet < QUIET_S)
                continue;
            if (sets(&st->r) != set)
                bad(st, "%llu Sets while all is quiet", (unsigned long long)(sets(&st->r) - set));
            if (!status.up || !rig_last(&st->r)->ok)
                bad(st, "not up: %s", rig_last(&st->r)->text);
            return;
        }
        quiet = 0;
        sweeps = st->r.sweeps;
        events = st->r.events;
        set = sets(&st->r);
    }
    bad(st, "it is not quiet %d s after the storm: sweep for %s, %s", DEADLINE_S, rig_last(&st->r)->cause,
        rig_last(&st->r)->text);
}

static bool is_end(const struct storm *st, uint32_t p)
{
    const struct port *x = &st->f->port[p];
    if (!port_is_end(st->f, x) || !st->node[x->node.i].live)
        return false;
    return x->num == 0 || (carries(st, p) && st->node[st->f->port[st->port[p].peer].node.i].live);
}

static void judge_ports(struct storm *st)
{
    for (uint32_t p = 0; p < st->f->num_ports && !st->failed; p++) {
        const struct port *x = &st->f->port[p];
        struct sim_port_view v;
        assert_int_equal(sim_port_view(st->r.sim, guid_of_port(st, p), x->num, &v), 0);
        if (x->num > 0 &&
            carries(st, p) != (v.linked && node_of_port(st, p) != node_of_port(st, st->port[p].peer)))
            bad(st, "the test's own account of %s[%u] is wrong", st->node[x->node.i].desc, x->num);
        if (x->num > 0 && st->node[x->node.i].live && carries(st, p) && v.state != PORT_ACTIVE &&
            st->node[st->f->port[st->port[p].peer].node.i].live)
            bad(st, "port %s[%u] is %s", st->node[x->node.i].desc, x->num,
                port_state_name((enum port_state)v.state));
        if (is_end(st, p) && st->port[p].lid != 0 && v.lid != st->port[p].lid &&
            !st->node[x->node.i].replaced)
            bad(st, "LID of %s[%u] was %u and is %u", st->node[x->node.i].desc, x->num, st->port[p].lid,
                v.lid);
    }
}

static void judge_routes(struct storm *st)
{
    uint8_t *used = xcalloc(65536, 1);
    for (uint32_t p = 0; p < st->f->num_ports && !st->failed; p++) {
        struct sim_port_view v;
        bool loop;
        if (!is_end(st, p))
            continue;
        const struct port *x = &st->f->port[p];
        assert_int_equal(sim_port_view(st->r.sim, guid_of_port(st, p), x->num, &v), 0);
        if (v.lid == 0 || v.lid > LID_UCAST_MAX || used[v.lid]++)
            bad(st, "LID %u of %s[%u] is none or another's too", v.lid, st->node[x->node.i].desc, x->num);
        for (uint32_t i = 0; i < st->f->num_nodes && !st->failed; i++)
            if (is_switch(st, i) && st->node[i].live && walk(st, i, v.lid, true, &loop) != p)
                bad(st, "%s to %s[%u], LID %u: %s, %s", st->node[i].desc, st->node[x->node.i].desc, x->num,
                    v.lid, loop ? "goes round" : "does not arrive", st->at);
    }
    free(used);
}

static void copy_file(const char *from_dir, const char *to_dir, const char *name)
{
    char path[400], buf[65536];
    size_t n;
    snprintf(path, sizeof(path), "%s/%s", from_dir, name);
    FILE *in = fopen(path, "rb");
    if (in == NULL)
        return;
    snprintf(path, sizeof(path), "%s/%s", to_dir, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    while ((n = fread(buf, 1, sizeof(buf), in)) > 0)
        assert_int_equal(fwrite(buf, 1, n, out), n);
    fclose(in);
    fclose(out);
}

// Whose LID it is, in words.
static const char *owner(const struct fabric *f, uint32_t lid, char *buf, size_t size)
{
    port_id p = fabric_by_lid(f, (uint16_t)lid);
    return port_valid(p) ? fabric_port_name(f, p, buf, size) : "nobody";
}

static void compare_tables(struct storm *st, const struct fabric *was, struct storm *fresh, uint16_t top)
{
    char ours[200], theirs[200];
    for (uint32_t i = 0; i < st->f->num_nodes && !st->failed; i++)
        for (uint32_t lid = 1; lid <= top && is_switch(st, i) && st->node[i].live && !st->failed; lid++) {
            uint8_t a, z;
            assert_int_equal(sim_lft(st->r.sim, st->node[i].guid, (uint16_t)lid, &a), 0);
            assert_int_equal(sim_lft(fresh->r.sim, st->node[i].guid, (uint16_t)lid, &z), 0);
            if (a != z)
                bad(st, "%s leads LID %u, %s, to port %u, a fresh manager's, %s, to %u", st->node[i].desc,
                    lid, owner(was, lid, ours, sizeof(ours)), a,
                    owner(sm_fabric(fresh->r.sm), lid, theirs, sizeof(theirs)), z);
        }
}

static void compare_with_fresh(struct storm *st)
{
    struct storm fresh = {.seed = st->seed, .loud = st->loud};
    uint16_t top = sm_tables(st->r.sm)->top_lid;
    const struct fabric *was = fabric_ref(sm_fabric(st->r.sm));
    rig_down(&st->r);
    rig_init_fabric(&fresh.r, live_graph(st), NULL);
    fresh.r.in_order = true;
    copy_file(st->r.dir, fresh.r.dir, "meta.db");
    copy_file(st->r.dir, fresh.r.dir, "meta.db-wal");
    say(st, "the fresh one:");
    rig_up(&fresh.r);
    if (!run_until_swept(&fresh, 100) || !rig_last(&fresh.r)->ok) {
        bad(st, "the fresh one: %s", rig_last(&fresh.r) ? rig_last(&fresh.r)->text : "no sweep");
    } else {
        if (sm_tables(fresh.r.sm)->top_lid > top)
            top = sm_tables(fresh.r.sm)->top_lid;
        compare_tables(st, was, &fresh, top);
    }
    fabric_unref(was);
    rig_done(&fresh.r);
}

// --- one storm ---

static void begin(struct storm *st)
{
    const char *name;
    rng_init(&st->rng, st->seed);
    st->f = plan_of(&st->rng, &name);
    storm_model(st);
    struct sim_opts o = {.seed = st->seed}; // one chance a statement: their order is part of the seed
    o.link_latency_ns = rng_below(&st->rng, 2) ? 1000 : 0;
    o.service_ns = rng_below(&st->rng, 4) ? 5000 : 0;
    o.train_ns = rng_below(&st->rng, 2) ? rng_below(&st->rng, 50 * MONO_MS) : 0;
    o.auto_active = rng_below(&st->rng, 2) ? 0.5 : 0;
    o.lft_drop = rng_below(&st->rng, 2);
    rig_init_fabric(&st->r, fabric_ref(st->f), &o);
    st->r.in_order = true;
    st->r.user = st;
    st->r.take_recv = on_recv;
    st->r.on_send = on_send;
    st->in_order = true;
    st->kinds = (uint32_t)rng_u64(&st->rng);
    st->kinds |= 1u << rng_below(&st->rng, KINDS);
    if (st->kinds & (1u << FOREIGN | 1u << NOT_KEPT))
        st->r.opts.audit_interval_ns = 30 * MONO_S;
    say(st, "seed %llu, %s", (unsigned long long)st->seed, name);
}

static void weather(struct storm *st)
{
    unsigned n = 5 + rng_below(&st->rng, 36);
    while (n > 0 && !st->failed) {
        enum kind k = (enum kind)rng_below(&st->rng, KINDS);
        if (!(st->kinds & 1u << k))
            continue;
        happen(st, k);
        n--;
        rig_run(&st->r, some_time(st));
        tell_new(st);
    }
}

static void remember_lids(struct storm *st)
{
    for (uint32_t p = 0; p < st->f->num_ports; p++) {
        struct sim_port_view v;
        if (port_is_end(st->f, &st->f->port[p]) &&
            sim_port_view(st->r.sim, guid_of_port(st, p), st->f->port[p].num, &v) == 0)
            st->port[p].lid = v.lid;
    }
}

static bool storm(uint64_t seed, bool loud)
{
    struct storm st = {.seed = seed, .loud = loud};
    begin(&st);
    rig_up(&st.r);
    if (!run_until_swept(&st, 100) || !rig_last(&st.r)->ok)
        bad(&st, "no bring-up");
    remember_lids(&st);
    weather(&st);
    heal(&st);
    if (!st.failed)
        wait_for_quiet(&st);
    find_live(&st);
    judge_ports(&st);
    judge_routes(&st);
    if (!st.failed)
        compare_with_fresh(&st);
    if (st.failed)
        print_error("seed %llu: %s\n", (unsigned long long)seed, st.why);
    rig_done(&st.r);
    fabric_unref(st.f);
    free(st.node);
    free(st.port);
    return !st.failed;
}

static void test_storms(void **state)
{
    unsigned long from = 1, to = getenv("WEFT_LONG_TESTS") != NULL ? SEEDS_LONG : SEEDS, failed = 0;
    const char *one = getenv("WEFT_STORM_SEED"), *some = getenv("WEFT_STORM_SEEDS");
    (void)state;
    if (one != NULL)
        from = to = strtoul(one, NULL, 10);
    else if (some != NULL)
        assert_int_equal(sscanf(some, "%lu-%lu", &from, &to), 2);
    for (unsigned long seed = from; seed <= to; seed++)
        failed += !storm(seed, one != NULL);
    if (failed > 0)
        fail_msg("%lu of %lu storms", failed, to - from + 1);
}

// Tables that were found and kept at a restart are audited as those that were written.
static void test_found_tables_are_audited(void **state)
{
    struct rig r;
    uint8_t was, now;
    (void)state;
    rig_init(&r, "rail-16", NULL);
    r.opts.audit_interval_ns = 10 * MONO_S;
    rig_up(&r);
    rig_sweeps(&r, 1, 100);
    rig_down(&r);
    rig_up(&r);
    rig_sweeps(&r, 1, 100);
    uint64_t sw = fabric_switch(r.plan, 0)->guid;
    uint16_t top = sm_fabric(r.sm)->top_lid;
    uint8_t row[512];
    row[0] = LFT_DROP;
    for (uint16_t lid = 1; lid <= top; lid++)
        assert_int_equal(sim_lft(r.sim, sw, lid, &row[lid]), 0);
    was = row[top];
    row[top] = (uint8_t)(was == 1 ? 2 : 1);
    assert_int_equal(sim_set_lft(r.sim, sw, row, top + 1u, top), 0);
    rig_run(&r, 30 * MONO_S);
    assert_int_equal(rig_events_of(&r, "drift"), 1);
    assert_int_equal(sim_lft(r.sim, sw, top, &now), 0);
    assert_int_equal(now, was);
    rig_done(&r);
}

int main(void)
{
    if (getenv("TMPDIR") == NULL && access("/dev/shm", W_OK) == 0) // thousands of databases
        setenv("TMPDIR", "/dev/shm", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_found_tables_are_audited),
        cmocka_unit_test(test_storms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
