// SPDX-License-Identifier: Apache-2.0
// One run from the fabric to the verdict; long, since nothing of it is of use elsewhere.
#include "tests/whole/congest_runs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric/builder.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/loop.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "routing/route.h"
#include "sim/sim.h"
#include "sim/sim_flow.h"
#include "telemetry/rate.h"
#include "tests/whole/rig.h"

#define SWEEP (10 * MONO_S)
#define STEPS 20 // of a sweep: ports are read one after the other

bool runs_verbose;

struct run {
    struct rng rng;
    struct loop *loop;
    const struct fabric *f;
    struct fabric_tables *tables;
    const struct fabric_groups *groups; // the manager's
    struct sim *sim;
    struct rig rig; // live
    bool live;
    uint32_t *host, hosts; // port indices of adapters
    uint32_t narrow;       // port whose cable runs below its speed; ID_NONE
    // counters
    struct tele_table t;
    uint64_t *raw; // [slot * 3]: last readings of the three counters
    bool *never;
    double *burst; // share of time that it waits in bursts far shorter than a sweep; of all traffic alike
    enum runs_missing missing;
    struct congest *c;
    struct runs_result *ret;
};

const char *runs_scenario_name(enum runs_scenario s)
{
    static const char *const name[] = {"slow receiver", "incast",    "oversubscribed trunk",
                                       "imbalance",     "slow link", "none"};
    return name[s];
}

const char *runs_missing_name(enum runs_missing m)
{
    static const char *const name[] = {"all read", "30 % never", "30 % time out", "15 % never 15 % late",
                                       "30 % of devices"};
    return name[m];
}

static unsigned between(struct run *r, unsigned a, unsigned z)
{
    return a + rng_below(&r->rng, z - a + 1);
}

static double share(struct run *r, double a, double z)
{
    return a + (z - a) * rng_double(&r->rng);
}

// --- fabrics ---

static struct port_attrs attrs(unsigned speed_ext)
{
    return (struct port_attrs){.state = PORT_INIT,
                               .phys_state = 5,
                               .width_active = 2,
                               .width_supported = 3,
                               .width_enabled = 3,
                               .speed_active = 4,
                               .speed_supported = 7,
                               .speed_enabled = 7,
                               .speed_ext_active = (uint8_t)speed_ext,
                               .speed_ext_supported = (uint8_t)(2 * speed_ext - 1),
                               .speed_ext_enabled = (uint8_t)(2 * speed_ext - 1),
                               .mtu_cap = 5,
                               .mtu_active = 5,
                               .vl_cap = 4,
                               .vl_oper = 4};
}

static uint64_t next_guid;

static node_id node(struct builder *b, enum node_type type, unsigned ports, const char *name, unsigned ext)
{
    uint64_t guid = next_guid += 0x100;
    struct node_attrs a = {.guid = 0x10000 + guid,
                           .sys_guid = 0x10000 + guid,
                           .type = type,
                           .num_ports = (uint8_t)ports,
                           .lft_cap = type == NODE_SWITCH ? LID_UCAST_MAX : 0};
    struct port_attrs p = attrs(ext);
    node_id id;
    builder_node(b, &a, name, strlen(name), &id, NULL);
    for (unsigned i = 1; i <= ports; i++)
        builder_port(b, id, i, &p);
    if (type == NODE_CA)
        builder_port_guid(b, id, 1, a.guid + 1);
    else
        builder_port_guid(b, id, 0, a.guid);
    return id;
}

// Two levels of any shape.
static const struct fabric *two_levels(struct run *r)
{
    unsigned leaves = between(r, 2, 10), spines = between(r, 2, 6), per = between(r, 1, 2),
             hosts = between(r, 4, 16);
    unsigned ext = rng_below(&r->rng, 2) ? 4 : 8;
    struct builder *b = builder_new();
    node_id spine[8];
    char name[40];
    for (unsigned s = 0; s < spines; s++) {
        snprintf(name, sizeof(name), "spine-%02u", s);
        spine[s] = node(b, NODE_SWITCH, leaves * per, name, ext);
    }
    for (unsigned l = 0; l < leaves; l++) {
        snprintf(name, sizeof(name), "leaf-%02u", l);
        node_id leaf = node(b, NODE_SWITCH, hosts + spines * per, name, ext);
        for (unsigned h = 0; h < hosts; h++) {
            snprintf(name, sizeof(name), "host-%02u-%02u mlx5_0", l, h);
            builder_link(b, leaf, 1 + h, node(b, NODE_CA, 1, name, ext), 1);
        }
        for (unsigned s = 0; s < spines; s++)
            for (unsigned k = 0; k < per; k++)
                builder_link(b, leaf, 1 + hosts + s * per + k, spine[s], 1 + l * per + k);
    }
    return builder_seal(b, 1, NULL);
}

// Switches and cables anywhere.
static const struct fabric *irregular(struct run *r)
{
    unsigned n = between(r, 4, 16), extra = between(r, n / 2, 2 * n), hosts = between(r, 3, 6),
             used[16] = {0};
    struct builder *b = builder_new();
    node_id sw[16];
    char name[40];
    for (unsigned i = 0; i < n + extra; i++) {
        unsigned a = i < n ? i : rng_below(&r->rng, n), z = rng_below(&r->rng, i < n ? i + 1 : n);
        if (i < n) {
            snprintf(name, sizeof(name), "sw-%02u", i);
            sw[i] = node(b, NODE_SWITCH, 40, name, 4);
        }
        if (a != z && used[a] < 30 && used[z] < 30)
            builder_link(b, sw[a], ++used[a], sw[z], ++used[z]);
    }
    for (unsigned i = 0; i < n; i++)
        for (unsigned h = 0; h < hosts; h++) {
            snprintf(name, sizeof(name), "host-%02u-%02u mlx5_0", i, h);
            builder_link(b, sw[i], ++used[i], node(b, NODE_CA, 1, name, 4), 1);
        }
    return builder_seal(b, 1, NULL);
}

static const struct fabric *named_fabric(struct run *r)
{
    static const char *const name[] = {"rail-64",  "rail-128",  "rail-256", "ft3-8-4",   "ft3-8-8",
                                       "ft3-12-6", "ft3-12-12", "ft3-16-4", "superpod-1"};
    unsigned kind = rng_below(&r->rng, 10);
    if (kind < 4)
        return two_levels(r);
    if (kind < 5)
        return irregular(r);
    struct err e = {0};
    return topogen_make(name[rng_below(&r->rng, sizeof(name) / sizeof(name[0]))], &e);
}

static bool between_switches(const struct fabric *f, uint32_t p)
{
    const struct node *z = fabric_peer_node(f, &f->port[p]);
    return fabric_node(f, f->port[p].node)->type == NODE_SWITCH && z && z->type == NODE_SWITCH;
}

// Cables that are dead, adapters that are off.
static void damage(struct run *r)
{
    unsigned percent = rng_below(&r->rng, 2) ? between(r, 1, 10) : 0;
    unsigned away = rng_below(&r->rng, 2) ? between(r, 0, 50) : 0;
    struct builder *b = builder_from(r->f);
    for (uint32_t i = 0; i < r->f->num_ports; i++) {
        const struct port *p = &r->f->port[i];
        if (!port_valid(p->peer))
            continue;
        bool trunk = between_switches(r->f, i);
        if ((trunk && i < p->peer.i && rng_below(&r->rng, 100) < percent) ||
            (!trunk && fabric_node(r->f, p->node)->type == NODE_CA && rng_below(&r->rng, 100) < away))
            builder_unlink(b, p->node, p->num);
    }
    r->ret->degraded = percent > 0;
    const struct fabric *f = builder_seal(b, r->f->generation + 1, NULL);
    fabric_unref(r->f);
    r->f = f;
}

// One switch with hosts keeps a part of its cables to others: fewer than hosts.
static void starve(struct run *r)
{
    uint32_t leaf[64], n = 0;
    for (uint32_t s = 0; s < r->f->num_switches && n < 64; s++)
        if (fabric_has_ends(r->f, s))
            leaf[n++] = s;
    const struct node *x = fabric_switch(r->f, leaf[rng_below(&r->rng, n)]);
    unsigned up = 0, hosts = 0, cut = 0;
    for (unsigned i = 1; i <= x->num_ports; i++) {
        up += between_switches(r->f, x->first_port + i);
        hosts += port_valid(r->f->port[x->first_port + i].peer) && !between_switches(r->f, x->first_port + i);
    }
    unsigned keep = between(r, 1, hosts / 2 > 1 ? hosts / 2 : 1);
    struct builder *b = builder_from(r->f);
    for (unsigned i = 1; i <= x->num_ports; i++)
        if (between_switches(r->f, x->first_port + i) && up - cut > keep) {
            builder_unlink(b, r->f->port[x->first_port + i].node, i);
            cut++;
        }
    const struct fabric *f = builder_seal(b, r->f->generation + 1, NULL);
    fabric_unref(r->f);
    r->f = f;
}

static void number(struct run *r)
{
    struct builder *b = builder_from(r->f);
    uint16_t lid = 1;
    for (uint32_t i = 0; i < r->f->num_ports; i++) {
        const struct port *p = &r->f->port[i];
        struct port_attrs a = p->a;
        if (port_is_end(r->f, p))
            a.lid = lid++;
        a.state = p->num == 0 || port_valid(p->peer) ? PORT_ACTIVE : PORT_DOWN;
        a.mtu_active = 5;
        if (r->narrow != ID_NONE && (i == r->narrow || p->peer.i == r->narrow))
            a.speed_ext_active /= 2;
        builder_port(b, p->node, p->num, &a);
    }
    const struct fabric *f = builder_seal(b, r->f->generation + 1, NULL);
    fabric_unref(r->f);
    r->f = f;
}

static void find_hosts(struct run *r)
{
    r->host = xcalloc(r->f->num_ports + 1, sizeof(*r->host));
    for (uint32_t i = 0; i < r->f->num_ports; i++)
        if (fabric_node(r->f, r->f->port[i].node)->role == ROLE_HOST && port_valid(r->f->port[i].peer))
            r->host[r->hosts++] = i;
}

static void make_fabric(struct run *r, enum runs_scenario s)
{
    r->f = named_fabric(r);
    damage(r);
    if (s == RUNS_TRUNK)
        starve(r);
    r->narrow = ID_NONE;
    if (s == RUNS_SLOW_LINK) {
        uint32_t n = 0;
        for (uint32_t i = 0; i < r->f->num_ports; i++)
            if (between_switches(r->f, i) && rng_below(&r->rng, ++n) == 0)
                r->narrow = i;
    }
}

static bool bring_up(struct run *r)
{
    number(r);
    struct route_result res = {0};
    struct err e = {0};
    if (route_compute(r->f, &(struct route_opts){.engine = rng_below(&r->rng, 3) ? ROUTE_AUTO : ROUTE_UPDN},
                      &res, &e))
        return false;
    r->tables = res.tables;
    struct sim_opts o = {.keep_state = true, .seed = rng_u64(&r->rng)};
    r->loop = loop_new(LOOP_VIRTUAL);
    r->sim = sim_new(r->loop, r->f, &o);
    for (uint32_t sw = 0; sw < r->f->num_switches; sw++)
        sim_set_lft(r->sim, fabric_switch(r->f, sw)->guid, tables_row(r->tables, sw), r->tables->lids,
                    r->tables->top_lid);
    return true;
}

static void place_manager(struct run *r)
{
    struct builder *b = builder_from(r->f);
    for (uint32_t i = 0; i < r->f->num_ports; i++)
        if (fabric_node(r->f, r->f->port[i].node)->type == NODE_CA && port_valid(r->f->port[i].peer)) {
            builder_sm_port(b, r->f->port[i].node, r->f->port[i].num);
            break;
        }
    const struct fabric *f = builder_seal(b, r->f->generation + 1, NULL);
    fabric_unref(r->f);
    r->f = f;
}

// By a manager, which makes groups for adaptive routing.
static bool bring_up_live(struct run *r)
{
    place_manager(r);
    struct sim_opts o = {.adaptive_routing = true, .seed = rng_u64(&r->rng)};
    const struct fabric *of;
    const struct fabric_tables *to;
    rig_init_fabric(&r->rig, r->f, &o);
    r->live = true;
    r->rig.opts.adaptive = SM_ADAPTIVE_ON;
    rig_up(&r->rig);
    rig_sweeps(&r->rig, 1, 100);
    rig_run(&r->rig, 30 * MONO_S);
    r->sim = r->rig.sim;
    r->loop = r->rig.loop;
    r->f = fabric_ref(sm_fabric(r->rig.sm)); // the rig has the other reference
    r->tables = tables_ref(sm_tables(r->rig.sm));
    const struct fabric_groups *g = sm_adaptive_groups(r->rig.sm, &of, &to);
    r->groups = g && fabric_same_switches(of, r->f) && to == r->tables ? groups_ref(g) : NULL;
    return r->groups != NULL;
}

// --- traffic ---

struct pairs {
    uint32_t n;
    uint64_t from[512], to[512];
    uint32_t from_port[512], to_port[512];
};

static bool has(const uint32_t *list, uint32_t n, uint32_t x)
{
    for (uint32_t i = 0; i < n; i++)
        if (list[i] == x)
            return true;
    return false;
}

static void pair(struct run *r, struct pairs *p, uint32_t from, uint32_t to)
{
    if (p->n == 512 || from == to)
        return;
    p->from_port[p->n] = from;
    p->to_port[p->n] = to;
    p->from[p->n] = r->f->port[from].guid;
    p->to[p->n++] = r->f->port[to].guid;
}

static void start(struct run *r, const struct pairs *p, double load)
{
    struct sim_flow_spec d = {.pattern = SIM_FLOW_PAIRS,
                              .host = p->from,
                              .num_hosts = p->n,
                              .receiver = p->to,
                              .num_receivers = p->n,
                              .load = load,
                              .seed = rng_u64(&r->rng)};
    if (p->n)
        sim_flow_start(r->sim, &d, NULL);
}

static void background(struct run *r)
{
    static const enum sim_pattern kind[] = {SIM_FLOW_BALANCED, SIM_FLOW_RING, SIM_FLOW_ALL_TO_ALL,
                                            SIM_FLOW_RANDOM};
    unsigned k = rng_below(&r->rng, 8);
    if (k >= 4)
        return;
    sim_flow_start(r->sim,
                   &(struct sim_flow_spec){
                       .pattern = kind[k], .load = share(r, 0.05, 0.35), .fan = 8, .seed = rng_u64(&r->rng)},
                   NULL);
}

// Out ports that a packet takes; how many.
static unsigned way(const struct run *r, uint32_t from, uint32_t to, uint32_t *ret)
{
    unsigned n = 0;
    uint32_t p = from;
    while (n < 30) {
        ret[n++] = p;
        const struct port *z = &r->f->port[r->f->port[p].peer.i];
        const struct node *sw = fabric_node(r->f, z->node);
        if (sw->type != NODE_SWITCH)
            return n;
        uint8_t num = tables_port(r->tables, sw->sw, r->f->port[to].a.lid);
        if (num == 0 || num > sw->num_ports || !port_valid(r->f->port[sw->first_port + num].peer))
            return 0;
        p = sw->first_port + num;
    }
    return 0;
}

static bool crosses(const struct run *r, uint32_t from, uint32_t to, uint32_t port)
{
    uint32_t w[32];
    unsigned n = from == to ? 0 : way(r, from, to, w);
    return has(w, n, port);
}

static uint32_t any_host(struct run *r)
{
    return r->host[rng_below(&r->rng, r->hosts)];
}

// Pairs over one port, no host twice at either end.
static void pairs_over(struct run *r, uint32_t port, unsigned want, struct pairs *p)
{
    unsigned had = p->n;
    for (unsigned i = 0; i < 20000 && p->n < had + want; i++) {
        uint32_t a = any_host(r), z = any_host(r);
        if (!has(p->from_port, p->n, a) && !has(p->to_port, p->n, z) && crosses(r, a, z, port))
            pair(r, p, a, z);
    }
}

static void make_receiver(struct run *r)
{
    struct pairs *p = xcalloc(1, sizeof(*p));
    uint32_t to = any_host(r);
    unsigned n = between(r, 1, 6);
    double load = share(r, 0.3, 1.2), drain = share(r, 0, 0.6);
    drain = fmin(drain, 0.6 * fmin(1, n * load));
    for (unsigned i = 0; i < 200 && p->n < n; i++) {
        uint32_t from = any_host(r);
        if (from != to && !has(p->from_port, p->n, from))
            pair(r, p, from, to);
    }
    start(r, p, load);
    sim_receiver(r->sim, fabric_node(r->f, r->f->port[to].node)->guid, r->f->port[to].num, drain);
    snprintf(r->ret->text, sizeof(r->ret->text), "%u senders at %.2f, drain %.2f", p->n, load, drain);
    free(p);
    background(r);
}

static void make_incast(struct run *r)
{
    struct pairs *p = xcalloc(1, sizeof(*p));
    uint32_t to = any_host(r);
    unsigned n = between(r, 3, r->hosts - 1 < 40 ? r->hosts - 1 : 40);
    double load = share(r, 1.3 / n < 1 ? 1.3 / n : 0.9, 1.1);
    for (unsigned i = 0; i < 2000 && p->n < n; i++) {
        uint32_t from = any_host(r);
        if (from != to && !has(p->from_port, p->n, from))
            pair(r, p, from, to);
    }
    start(r, p, load);
    snprintf(r->ret->text, sizeof(r->ret->text), "%u senders at %.2f", p->n, load);
    free(p);
    background(r);
}

// Everybody on the switch that was starved sends to others.
static void make_trunk(struct run *r)
{
    struct pairs *p = xcalloc(1, sizeof(*p));
    uint32_t best = ID_NONE;
    double most = 0;
    for (uint32_t s = 0; s < r->f->num_switches; s++) {
        const struct node *x = fabric_switch(r->f, s);
        unsigned up = 0, hosts = 0;
        for (unsigned i = 1; i <= x->num_ports; i++) {
            bool trunk = between_switches(r->f, x->first_port + i);
            up += trunk;
            hosts += !trunk && port_valid(r->f->port[x->first_port + i].peer);
        }
        if (up && (double)hosts / up > most) {
            most = (double)hosts / up;
            best = s;
        }
    }
    for (uint32_t i = 0; i < r->hosts && best != ID_NONE; i++) {
        const struct node *sw = fabric_peer_node(r->f, &r->f->port[r->host[i]]);
        for (unsigned k = 0; k < 100 && sw && sw->sw == best; k++) {
            uint32_t to = any_host(r);
            const struct node *far = fabric_peer_node(r->f, &r->f->port[to]);
            if (far != sw && !has(p->to_port, p->n, to)) {
                pair(r, p, r->host[i], to);
                break;
            }
        }
    }
    double load = share(r, most > 0 ? fmin(1, 1.3 / most) : 1, 1.1);
    start(r, p, load);
    snprintf(r->ret->text, sizeof(r->ret->text), "%.1f hosts a cable, %u at %.2f", most, p->n, load);
    free(p);
    background(r);
}

static uint32_t some_trunk(struct run *r)
{
    uint32_t found = ID_NONE, n = 0;
    for (unsigned i = 0; i < 200; i++) {
        uint32_t w[32], a = any_host(r), z = any_host(r);
        unsigned len = a == z ? 0 : way(r, a, z, w);
        for (unsigned k = 1; k + 1 < len; k++)
            if (rng_below(&r->rng, ++n) == 0)
                found = w[k];
    }
    return found;
}

static void make_imbalance(struct run *r, bool slow)
{
    struct pairs *p = xcalloc(1, sizeof(*p));
    uint32_t port = slow ? r->narrow : some_trunk(r);
    if (port != ID_NONE)
        pairs_over(r, port, between(r, 2, 6), p);
    double load = p->n ? share(r, fmin(1, (slow ? 0.7 : 1.3) / p->n), slow ? 0.9 : 1.1) : 1;
    start(r, p, load);
    snprintf(r->ret->text, sizeof(r->ret->text), "%u pairs at %.2f", p->n, load);
    free(p);
    background(r);
}

static void make_none(struct run *r)
{
    static const struct {
        enum sim_pattern pattern;
        double least, most;
    } kind[] = {{SIM_FLOW_IDLE, 0.001, 0.01},    {SIM_FLOW_BALANCED, 0.3, 0.9}, {SIM_FLOW_RING, 0.3, 1},
                {SIM_FLOW_ALL_TO_ALL, 0.3, 0.9}, {SIM_FLOW_SHIFT, 0.3, 1},      {SIM_FLOW_RANDOM, 0.3, 0.9}};
    unsigned k = rng_below(&r->rng, 6);
    double load = share(r, kind[k].least, kind[k].most);
    sim_flow_start(r->sim,
                   &(struct sim_flow_spec){.pattern = kind[k].pattern,
                                           .load = load,
                                           .shift = between(r, 1, 9),
                                           .fan = 16,
                                           .seed = rng_u64(&r->rng)},
                   NULL);
    snprintf(r->ret->text, sizeof(r->ret->text), "%s at %.2f", sim_pattern_name(kind[k].pattern), load);
}

// --- counters ---

static const enum tele_counter counters[] = {TELE_XMIT_DATA, TELE_RCV_DATA, TELE_XMIT_WAIT};
static const enum sim_counter sim_counters[] = {SIM_XMIT_DATA, SIM_RCV_DATA, SIM_XMIT_WAIT};

static void table_make(struct run *r)
{
    const struct fabric *f = r->f;
    size_t n = f->num_ports + 1;
    r->t = (struct tele_table){
        .fabric = f,
        .port = xcalloc(n, sizeof(*r->t.port)),
        .value = xcalloc(n * TELE_COUNTERS, 8),
        .before = xcalloc(n * TELE_COUNTERS, 8),
        .have = xcalloc(n, 8),
        .had = xcalloc(n, 8),
        .at = xcalloc(n * TELE_GROUPS, 8),
        .at_before = xcalloc(n * TELE_GROUPS, 8),
    };
    r->raw = xcalloc(n * 3, 8);
    r->never = xcalloc(n, 1);
    r->burst = xcalloc(n, sizeof(*r->burst));
    uint32_t *slot = xcalloc(n, sizeof(*slot));
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *x = fabric_node(f, p->node);
        if (p->num == 0 || !port_valid(p->peer))
            continue;
        slot[i] = r->t.num;
        r->t.port[r->t.num++] = (struct tele_port){.node_guid = x->guid,
                                                   .num = p->num,
                                                   .port = i,
                                                   .rate_mbps = port_rate_mbps(&p->a),
                                                   .of_switch = x->type == NODE_SWITCH,
                                                   .up = true,
                                                   .lanes = 4,
                                                   .unread = TELE_NOT_YET};
    }
    for (uint32_t s = 0; s < r->t.num; s++)
        r->t.port[s].peer = slot[f->port[r->t.port[s].port].peer.i];
    free(slot);
}

static void choose_missing(struct run *r, enum runs_missing m)
{
    r->missing = m;
    bool *node = xcalloc(r->f->num_nodes + 1, 1);
    for (uint32_t i = 0; i < r->f->num_nodes; i++)
        node[i] = rng_double(&r->rng) < 0.3;
    for (uint32_t s = 0; s < r->t.num; s++) {
        double x = rng_double(&r->rng);
        switch (m) {
        case RUNS_NEVER:
            r->never[s] = x < 0.3;
            break;
        case RUNS_LATE:
            r->never[s] = x < 0.15;
            break;
        case RUNS_DEVICES:
            r->never[s] = node[r->f->port[r->t.port[s].port].node.i];
            break;
        case RUNS_ALL_READ:
        case RUNS_TIMEOUT:
        case RUNS_MISSING:
            break;
        }
    }
    free(node);
}

// Short waits that have no root: queues that come and go, other lanes that were served. Not towards hosts,
// which take what arrives.
static void choose_bursts(struct run *r, double most)
{
    for (uint32_t s = 0; s < r->t.num; s++)
        if (r->t.port[r->t.port[s].peer].of_switch && rng_below(&r->rng, 2))
            r->burst[s] = share(r, 0, most);
}

static void read_port(struct run *r, uint32_t s, bool noisy)
{
    const struct tele_port *p = &r->t.port[s];
    size_t g = (size_t)s * TELE_GROUPS + TELE_DATA;
    bool again = r->t.have[s] != 0;
    r->t.at_before[g] = r->t.at[g];
    r->t.at[g] = loop_now(r->loop).ns;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t raw = 0;
        size_t v = (size_t)s * TELE_COUNTERS + counters[i];
        sim_counter_get(r->sim, p->node_guid, p->num, sim_counters[i], &raw);
        double more = (double)(raw - r->raw[(size_t)s * 3 + i]);
        if (noisy) // traffic is not as even as a steady state
            more *= 1 + 0.04 * (rng_double(&r->rng) - 0.5);
        if (counters[i] == TELE_XMIT_WAIT) {
            double all = tele_capacity(&r->t, s) / 8 * mono_seconds(r->t.at[g] - r->t.at_before[g]);
            double used =
                (double)(r->t.value[v - TELE_XMIT_WAIT] - r->t.before[v - TELE_XMIT_WAIT]) / 2 / all;
            more += again ? r->burst[s] * fmin(1, 2 * used) * fmax(0, all - more) : 0;
        }
        r->raw[(size_t)s * 3 + i] = raw;
        r->t.before[v] = r->t.value[v];
        r->t.value[v] += (uint64_t)more;
        r->t.have[s] |= 1ULL << counters[i];
        if (again)
            r->t.had[s] |= 1ULL << counters[i];
    }
    r->t.port[s].unread = TELE_READ;
}

// One sweep; each port is read at its moment of it, or is not, or only after it.
static void sweep(struct run *r)
{
    bool never = false;
    for (uint32_t s = 0; s < r->t.num; s++)
        r->t.port[s].unread = TELE_NO_ANSWER;
    for (unsigned step = 0; step < STEPS; step++) {
        loop_run_until(r->loop, &never, SWEEP / STEPS);
        for (uint32_t s = 0; s < r->t.num; s++) {
            if (hash_mix64(r->t.port[s].node_guid) % STEPS != step || r->never[s])
                continue;
            double miss = r->missing == RUNS_TIMEOUT ? 0.3 : r->missing == RUNS_LATE ? 0.18 : 0;
            if (rng_double(&r->rng) >= miss)
                read_port(r, s, true);
        }
    }
    struct timespec a, z;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    congest_feed(r->c, &r->t, r->tables, r->groups, loop_now(r->loop).ns);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &z);
    int64_t ns = (z.tv_sec - a.tv_sec) * MONO_S + z.tv_nsec - a.tv_nsec;
    r->ret->feed_ns = ns > r->ret->feed_ns ? ns : r->ret->feed_ns;
}

// --- judging ---

static bool kind_fits(enum runs_scenario s, const struct sim_flow_root *root)
{
    switch (s) {
    case RUNS_RECEIVER:
        return root->kind == SIM_ROOT_RECEIVER;
    case RUNS_INCAST:
        return root->kind == SIM_ROOT_INCAST;
    case RUNS_TRUNK:
        return root->kind == SIM_ROOT_TRUNK;
    case RUNS_IMBALANCE:
        return root->kind == SIM_ROOT_IMBALANCE || root->kind == SIM_ROOT_TRUNK;
    case RUNS_SLOW_LINK:
        return root->kind == SIM_ROOT_SLOW_LINK;
    case RUNS_NONE:
    case RUNS_SCENARIOS:
        break;
    }
    return false;
}

static enum congest_kind kind_wanted(const struct sim_flow_root *root)
{
    switch (root->kind) {
    case SIM_ROOT_RECEIVER:
        return CONGEST_RECEIVER;
    case SIM_ROOT_INCAST:
        return CONGEST_INCAST;
    case SIM_ROOT_TRUNK:
        return CONGEST_OVERSUBSCRIBED;
    case SIM_ROOT_IMBALANCE:
        return CONGEST_IMBALANCE;
    case SIM_ROOT_SLOW_LINK:
        return CONGEST_SLOW_LINK;
    case SIM_ROOT_CIRCLE:
        return CONGEST_DEADLOCK;
    }
    return CONGEST_UNCLEAR;
}

static const char *port_text(const struct run *r, uint32_t slot, char *buf, size_t size)
{
    if (slot >= r->t.num)
        return "-";
    return fabric_port_name(r->f, (port_id){r->t.port[slot].port}, buf, size);
}

static uint32_t slot_of_root(const struct run *r, const struct sim_flow_root *root)
{
    for (uint32_t i = 0; i < r->t.num; i++)
        if (r->t.port[i].node_guid == root->node_guid && r->t.port[i].num == root->port)
            return i;
    return TELE_SLOT_NONE;
}

// A port as the simulation knows it, and as it is known from counters.
static void show_port(const struct run *r, uint32_t slot)
{
    char a[80], z[80];
    struct congest_port k;
    struct sim_flow_view v;
    const struct tele_port *p = &r->t.port[slot];
    congest_port(r->c, slot, &k);
    if (sim_flow_view(r->sim, p->node_guid, p->num, &v))
        return;
    printf("%s > %s: used %.2f held %.2f, counters %.2f %.2f%s%s%s%s", port_text(r, slot, a, sizeof(a)),
           port_text(r, p->peer, z, sizeof(z)), v.used, v.held, k.used, k.held, k.is_held ? " waits" : "",
           k.is_full ? " full" : "", r->never[slot] ? ", never read" : "",
           r->never[p->peer] ? ", nor far end" : "");
    if (v.root_guid)
        printf(", for %s/%u by %.2f", fabric_desc(r->f, fabric_by_guid(r->f, v.root_guid)), v.root_port,
               v.root_share);
    printf("\n");
}

static void show(struct run *r, const struct sim_flow_root *root, unsigned n)
{
    char a[80];
    const struct congest_tree *const *t;
    uint32_t k = congest_trees(r->c, &t);
    for (unsigned i = 0; i < n && i < 6; i++) {
        uint32_t slot = slot_of_root(r, &root[i]);
        printf("    truth %s waiting %u lost %.3g: ", sim_root_kind_name(root[i].kind), root[i].waiting,
               root[i].lost_bps);
        if (slot != TELE_SLOT_NONE)
            show_port(r, slot);
    }
    for (uint32_t i = 0; i < k && i < 5; i++)
        printf("    tree  %s %s used %.2f held %.2f members %u lost %.3g share %.2f explained %.2f sib "
               "%.2f%s%s\n",
               port_text(r, t[i]->root, a, sizeof(a)), congest_kind_name(t[i]->kind), t[i]->used, t[i]->held,
               t[i]->num_members, t[i]->lost_bps, t[i]->share, t[i]->explained, t[i]->siblings_used,
               t[i]->root_read ? "" : " unread", t[i]->missed ? " missed" : "");
    for (uint32_t i = 0, shown = 0; i < r->t.num && shown < 60; i++) {
        struct sim_flow_view v;
        const struct tele_port *p = &r->t.port[i];
        if (!sim_flow_view(r->sim, p->node_guid, p->num, &v) && v.held >= 0.01) {
            printf("      ");
            show_port(r, i);
            shown++;
        }
    }
}

static bool is_port(const struct run *r, uint32_t slot, const struct sim_flow_root *root)
{
    return r->t.port[slot].node_guid == root->node_guid && r->t.port[slot].num == root->port;
}

static void judge(struct run *r, enum runs_scenario s)
{
    struct sim_flow_root root[64];
    unsigned n = sim_flow_roots(r->sim, root, 64);
    n = n > 64 ? 64 : n;
    const struct congest_tree *const *t, *best = NULL;
    uint32_t k = congest_trees(r->c, &t);
    for (uint32_t i = 0; i < k && !best; i++)
        if (!t[i]->missed && t[i]->kind != CONGEST_UNCLEAR)
            best = t[i];
    struct congest_totals totals;
    congest_totals(r->c, &totals);
    r->ret->held = totals.held;
    r->ret->trees = k;
    r->ret->named = best != NULL;
    r->ret->got = best ? best->kind : CONGEST_UNCLEAR;
    double rate = n ? tele_capacity(&r->t, 0) : 1;
    if (s == RUNS_NONE) {
        r->ret->came_off = n == 0 || root[0].lost_bps < 0.1 * rate;
        r->ret->right = !best;
    } else {
        r->ret->came_off = n > 0 && kind_fits(s, &root[0]) && root[0].lost_bps >= 0.2 * rate;
        r->ret->want = n ? kind_wanted(&root[0]) : CONGEST_UNCLEAR;
        for (unsigned i = 0; i < n && best; i++)
            r->ret->right |=
                root[i].lost_bps >= RUNS_ALSO * root[0].lost_bps && is_port(r, best->root, &root[i]);
    }
    if (runs_verbose && r->ret->came_off && !r->ret->right)
        show(r, root, n);
}

static void done(struct run *r)
{
    if (r->c)
        congest_free(r->c);
    if (r->live) {
        rig_down(&r->rig);
        rig_done(&r->rig);
    } else if (r->loop) {
        sim_free(r->sim);
        loop_free(r->loop);
    }
    groups_unref(r->groups);
    tables_unref(r->tables);
    fabric_unref(r->f);
    free(r->host);
    free(r->t.port);
    free(r->t.value);
    free(r->t.before);
    free(r->t.have);
    free(r->t.had);
    free(r->t.at);
    free(r->t.at_before);
    free(r->raw);
    free(r->never);
    free(r->burst);
}

void runs_one(enum runs_scenario s, enum runs_missing m, bool live, uint64_t seed, struct runs_result *ret)
{
    struct run r = {.ret = ret};
    *ret = (struct runs_result){.want = CONGEST_UNCLEAR, .got = CONGEST_UNCLEAR};
    rng_init(&r.rng, hash_mix64(seed) ^ (uint64_t)s << 60 ^ (uint64_t)m << 56);
    next_guid = 0;
    make_fabric(&r, s);
    bool up = live ? bring_up_live(&r) : bring_up(&r);
    find_hosts(&r);
    if (up && r.hosts >= 6) {
        table_make(&r);
        choose_missing(&r, m);
        ret->ports = r.t.num;
        r.c = congest_new(NULL);
        if (rng_below(&r.rng, s == RUNS_NONE ? 2 : 3) == 0)
            choose_bursts(&r, s == RUNS_NONE ? 0.10 : 0.04);
        sweep(&r); // before it begins
        switch (s) {
        case RUNS_RECEIVER:
            make_receiver(&r);
            break;
        case RUNS_INCAST:
            make_incast(&r);
            break;
        case RUNS_TRUNK:
            make_trunk(&r);
            break;
        case RUNS_IMBALANCE:
        case RUNS_SLOW_LINK:
            make_imbalance(&r, s == RUNS_SLOW_LINK);
            break;
        case RUNS_NONE:
        case RUNS_SCENARIOS:
            make_none(&r);
            break;
        }
        sim_flow_settle(r.sim);
        for (unsigned i = between(&r, 3, 6); i > 0; i--)
            sweep(&r);
        judge(&r, s);
    }
    done(&r);
}

// --- speed ---

static void say(struct run *r, uint32_t port, const uint32_t *slot, double used, double held)
{
    uint32_t s = slot[port];
    double bytes = tele_capacity(&r->t, s) * mono_seconds(SWEEP);
    r->t.value[(size_t)s * TELE_COUNTERS + TELE_XMIT_DATA] += (uint64_t)(used * bytes / 4);
    r->t.value[(size_t)s * TELE_COUNTERS + TELE_XMIT_WAIT] += (uint64_t)(held * bytes / 8);
}

static int64_t cpu_ns(void)
{
    struct timespec a;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    return a.tv_sec * MONO_S + a.tv_nsec;
}

// As the daemon does it; ports are taken in as many parts as need be, so that they never are the longest.
static int64_t feed_in_parts(struct run *r, int64_t now, int64_t *longest)
{
    int64_t at[5];
    congest_feed_begin(r->c, &r->t);
    at[0] = cpu_ns();
    congest_feed_ports(r->c, &r->t, UINT32_MAX);
    at[1] = cpu_ns();
    congest_trees_begin(r->c, &r->t, r->tables, NULL);
    at[2] = cpu_ns();
    congest_trees_work(r->c);
    at[3] = cpu_ns();
    congest_trees_end(r->c, now);
    at[4] = cpu_ns();
    *longest = at[2] - at[1] > *longest ? at[2] - at[1] : *longest;
    *longest = at[4] - at[3] > *longest ? at[4] - at[3] : *longest;
    return at[4] - at[0];
}

void runs_speed(const char *name, unsigned want, struct runs_speed *ret)
{
    struct runs_result res;
    struct run r = {.ret = &res, .narrow = ID_NONE};
    struct err e = {0};
    *ret = (struct runs_speed){0};
    rng_init(&r.rng, 1);
    r.f = topogen_make(name, &e);
    if (!r.f)
        return;
    number(&r);
    struct route_result routes = {0};
    if (route_compute(r.f, &(struct route_opts){.engine = ROUTE_UPDN}, &routes, &e)) {
        fabric_unref(r.f);
        return;
    }
    r.tables = routes.tables;
    find_hosts(&r);
    table_make(&r);
    r.c = congest_new(NULL);
    uint32_t *slot = xcalloc(r.f->num_ports, sizeof(*slot)), marked = 0, to = 0;
    double *held = xcalloc(r.f->num_ports, sizeof(*held));
    for (uint32_t s = 0; s < r.t.num; s++)
        slot[r.t.port[s].port] = s;
    for (unsigned i = 0; marked < want && i < 100000; i++) { // 50 senders to each receiver
        uint32_t w[32], from = any_host(&r);
        to = i % 50 ? to : any_host(&r);
        unsigned n = from == to ? 0 : way(&r, from, to, w);
        for (unsigned k = 0; k + 1 < n; k++) {
            marked += held[w[k]] <= 0;
            held[w[k]] = 0.3 + 0.1 * k;
        }
        if (n)
            held[w[n - 1]] = 0.9;
    }
    for (unsigned sweep_no = 0; sweep_no < 6; sweep_no++) {
        for (uint32_t p = 0; p < r.f->num_ports; p++) {
            if (!port_valid(r.f->port[p].peer) || !r.f->port[p].num)
                continue;
            uint32_t s = slot[p];
            memcpy(&r.t.before[(size_t)s * TELE_COUNTERS], &r.t.value[(size_t)s * TELE_COUNTERS],
                   TELE_COUNTERS * 8);
            say(&r, p, slot, held[p] > 0 ? 0.1 : 0.01, held[p]);
            r.t.have[s] = r.t.had[s] =
                1ULL << TELE_XMIT_DATA | 1ULL << TELE_RCV_DATA | 1ULL << TELE_XMIT_WAIT;
            if (s % 10 == 7) // a tenth is not read
                continue;
            r.t.at_before[(size_t)s * TELE_GROUPS + TELE_DATA] = SWEEP * (sweep_no + 1);
            r.t.at[(size_t)s * TELE_GROUPS + TELE_DATA] = SWEEP * (sweep_no + 2);
        }
        ret->ns[sweep_no] = feed_in_parts(&r, SWEEP * (sweep_no + 2), &ret->loop_ns);
    }
    struct congest_totals totals;
    const struct congest_tree *const *t;
    congest_totals(r.c, &totals);
    ret->trees = congest_trees(r.c, &t);
    ret->held = totals.held;
    ret->ports = r.t.num;
    free(slot);
    free(held);
    done(&r);
}
