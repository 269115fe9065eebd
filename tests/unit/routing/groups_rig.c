// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "lib/xalloc.h"
#include "routing/mcast.h"
#include "routing/route_priv.h"
#include "tests/unit/routing/grids.h"
#include "tests/unit/routing/groups_rig.h"

bool gr_ordered(enum route_engine e)
{
    return e == ROUTE_RAIL || e == ROUTE_UPDN;
}

struct groups_result gr_make(const struct fabric *f, const struct fabric_tables *t,
                             const struct groups_opts *o)
{
    struct groups_result r;
    struct err e = {0};
    if (route_groups(f, t, o, &r, &e))
        fail_msg("%s", e.text);
    return r;
}

struct groups_result gr_make_plain(const struct fabric *f, const struct fabric_tables *t, enum route_engine e)
{
    struct groups_opts o = {.engine = e};
    return gr_make(f, t, &o);
}

struct groups_proof gr_prove(const struct fabric *f, const struct fabric_tables *t,
                             const struct fabric_groups *g, const uint16_t *cap)
{
    struct groups_verify v = {.cap = cap}, par = {.cap = cap, .par = &rig_par};
    struct groups_proof p, q;
    route_verify_groups(f, t, g, &v, &p);
    route_verify_groups(f, t, g, &par, &q);
    assert_int_equal(p.ok, q.ok);
    assert_int_equal(p.fault, q.fault);
    assert_int_equal(p.ok, p.fault == GROUPS_OK);
    assert_int_equal(p.pairs, q.pairs);
    assert_int_equal(p.max_hops, q.max_hops);
    assert_int_equal(p.dependencies, q.dependencies);
    assert_string_equal(p.counter_example, q.counter_example);
    assert_int_equal(p.counter_example[0] == 0, p.ok);
    return p;
}

const struct fabric_group *gr_group_at(const struct fabric_groups *g, const struct fabric_tables *t,
                                       uint32_t s, uint16_t lid)
{
    return groups_at(g, s, lid, tables_port(t, s, lid));
}

// --- the judge ---

struct judge {
    const struct fabric *f;
    const struct fabric_tables *t;
    const struct fabric_groups *g;
    uint32_t n, ports, lanes;
    uint32_t *part;
    uint8_t *state;
    uint64_t (*dep[LANES_MAX])[4]; // [switch * ports + port]: ports of the next
    uint16_t lid;
    uint32_t end;
    uint8_t end_port;
    bool fault;
};

uint32_t gr_far_switch(const struct fabric *f, uint32_t s, unsigned port)
{
    const struct node *n = fabric_switch(f, s);
    if (port == 0 || port > n->num_ports)
        return ID_NONE;
    const struct node *far = fabric_peer_node(f, &f->port[n->first_port + port]);
    return far && far->type == NODE_SWITCH ? far->sw : ID_NONE;
}

bool gr_has_ends(const struct fabric *f, uint32_t s)
{
    const struct node *n = fabric_switch(f, s);
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *far = fabric_peer_node(f, &f->port[n->first_port + num]);
        if (far && far->type != NODE_SWITCH)
            return true;
    }
    return false;
}

static void spread_part(struct judge *j, uint32_t s, uint32_t part)
{
    if (j->part[s] != ID_NONE)
        return;
    j->part[s] = part;
    for (unsigned p = 1; p < j->ports; p++) {
        if (gr_far_switch(j->f, s, p) != ID_NONE)
            spread_part(j, gr_far_switch(j->f, s, p), part);
    }
}

static struct port_set outs(const struct judge *j, uint32_t s)
{
    struct port_set o = {{0}};
    uint8_t port = tables_port(j->t, s, j->lid);
    const struct fabric_group *x = groups_at(j->g, s, j->lid, port);
    if (x)
        o = x->ports;
    if (port != LFT_DROP)
        o.w[port / 64] |= 1ULL << (port % 64);
    return o;
}

static void judge_from(struct judge *j, uint32_t s, uint32_t lane)
{
    struct port_set o = outs(j, s);
    bool any = false;
    j->state[s] = 1;
    for (unsigned p = 0; p < 256 && !j->fault; p++) {
        if (!port_set_has(&o, (uint8_t)p))
            continue;
        any = true;
        if (s == j->end && p == j->end_port)
            continue;
        uint32_t w = gr_far_switch(j->f, s, p);
        if (w == ID_NONE || j->state[w] == 1) {
            j->fault = true;
            break;
        }
        struct port_set next = outs(j, w);
        for (unsigned i = 0; i < 4; i++)
            j->dep[lane][s * j->ports + p][i] |= next.w[i];
        if (j->state[w] == 0)
            judge_from(j, w, lane);
    }
    j->fault |= !any;
    j->state[s] = 2;
}

static bool judge_cycle(const struct judge *j, uint32_t lane, uint8_t *state, uint32_t chan)
{
    uint32_t w = gr_far_switch(j->f, chan / j->ports, chan % j->ports);
    state[chan] = 1;
    for (unsigned p = 1; p < j->ports && w != ID_NONE; p++) {
        uint32_t next = w * j->ports + p;
        if (!(j->dep[lane][chan][p / 64] >> (p % 64) & 1) || gr_far_switch(j->f, w, p) == ID_NONE)
            continue;
        if (state[next] == 1 || (state[next] == 0 && judge_cycle(j, lane, state, next)))
            return true;
    }
    state[chan] = 2;
    return false;
}

static enum groups_fault judge_walks(struct judge *j)
{
    for (uint32_t lid = 1; lid <= j->f->top_lid; lid++) {
        if (j->f->lid_port[lid] == ID_NONE || !rattachment(j->f, j->f->lid_port[lid], &j->end, &j->end_port))
            continue;
        j->lid = (uint16_t)lid;
        for (uint32_t lane = 0; lane < j->lanes; lane++) {
            memset(j->state, 0, j->n);
            for (uint32_t s = 0; s < j->n; s++) {
                const struct fabric_lanes *l = j->t->lanes;
                bool from = l ? lanes_get(l, s, j->end) == lane || lanes_get(l, j->end, s) == lane
                              : gr_has_ends(j->f, s);
                if (from && j->part[s] == j->part[j->end] && j->state[s] == 0 &&
                    tables_port(j->t, s, j->lid) != LFT_DROP)
                    judge_from(j, s, lane);
                if (j->fault)
                    return GROUPS_LOOP; // or another of its kind
            }
        }
    }
    uint8_t *state = xmalloc(j->n * j->ports + 1u);
    bool cycle = false;
    for (uint32_t lane = 0; lane < j->lanes; lane++) {
        memset(state, 0, j->n * j->ports);
        for (uint32_t c = 0; c < j->n * j->ports && !cycle; c++)
            cycle |= state[c] == 0 && judge_cycle(j, lane, state, c);
    }
    free(state);
    return cycle ? GROUPS_CREDIT_LOOP : GROUPS_OK;
}

// GROUPS_OK, GROUPS_LOOP for whatever does not arrive, or GROUPS_CREDIT_LOOP.
enum groups_fault gr_judge(const struct fabric *f, const struct fabric_tables *t,
                           const struct fabric_groups *g)
{
    struct judge j = {.f = f, .t = t, .g = g, .n = f->num_switches, .ports = g->ports};
    j.lanes = t->lanes ? t->lanes->num_lanes : 1;
    j.part = xcalloc(j.n + 1u, sizeof(*j.part));
    j.state = xcalloc(j.n + 1u, 1);
    memset(j.part, 0xff, j.n * sizeof(*j.part));
    for (uint32_t s = 0; s < j.n; s++)
        spread_part(&j, s, s);
    for (uint32_t l = 0; l < j.lanes; l++)
        j.dep[l] = xcalloc(j.n * j.ports + 1u, sizeof(*j.dep[l]));
    enum groups_fault r = judge_walks(&j);
    for (uint32_t l = 0; l < j.lanes; l++)
        free(j.dep[l]);
    free(j.part);
    free(j.state);
    return r;
}

enum groups_fault gr_kind_of(enum groups_fault x)
{
    return x == GROUPS_OK || x == GROUPS_CREDIT_LOOP ? x : GROUPS_LOOP;
}

// What holds of all groups that are made: proved, judged alike, and in shape.
void gr_check(const struct fabric *f, const struct fabric_tables *t, const struct groups_result *r,
              const uint16_t *cap)
{
    const struct fabric_groups *g = r->groups;
    struct groups_proof p = gr_prove(f, t, g, cap);
    if (!p.ok)
        fail_msg("%s (%s)", p.counter_example, r->why);
    uint64_t adaptive = 0, choices = 0;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        uint32_t *lids = xcalloc(groups_of(g, s) + 1u, sizeof(*lids));
        for (uint32_t lid = 1; lid < g->lids; lid++) {
            const struct fabric_group *x = gr_group_at(g, t, s, (uint16_t)lid);
            if (!x)
                continue;
            assert_true(port_set_has(&x->ports, tables_port(t, s, (uint16_t)lid)));
            assert_false(port_set_has(&x->ports, 0));
            lids[x - (g->group + g->first[s])]++;
            adaptive++;
            for (unsigned port = 1; port < 256; port++)
                choices += port_set_has(&x->ports, (uint8_t)port);
            if (lid <= f->top_lid && f->lid_port[lid] != ID_NONE) { // no switch's own, not where it hangs
                const struct port *end = &f->port[f->lid_port[lid]];
                assert_int_not_equal(end->num, 0);
                assert_true(fabric_peer_node(f, end)->sw != s);
            }
        }
        for (uint32_t i = 0; i < groups_of(g, s); i++) {
            const struct fabric_group *x = &g->group[g->first[s] + i];
            uint32_t ports = 0;
            for (unsigned port = 1; port < 256; port++)
                ports += port_set_has(&x->ports, (uint8_t)port);
            assert_true(ports >= 2);
            assert_true(x->lids > 0);
            assert_int_equal(x->lids, lids[i]);
            for (uint32_t k = 0; k < i; k++)
                assert_memory_not_equal(&x->ports, &g->group[g->first[s] + k].ports, sizeof(x->ports));
        }
        free(lids);
    }
    assert_int_equal(adaptive, r->adaptive);
    assert_int_equal(choices, r->choices);
    if (f->num_switches < 200)
        assert_int_equal(gr_judge(f, t, g), GROUPS_OK);
}

bool gr_equal(const struct fabric_groups *a, const struct fabric_groups *b)
{
    uint32_t n = a->num_switches;
    bool same = n == b->num_switches && a->lids == b->lids && a->first[n] == b->first[n] &&
                memcmp(a->first, b->first, (n + 1) * sizeof(*a->first)) == 0 &&
                memcmp(a->lid_switch, b->lid_switch, a->lids * sizeof(*a->lid_switch)) == 0 &&
                memcmp(a->lid_whole, b->lid_whole, a->lids) == 0 &&
                memcmp(a->to, b->to, (size_t)n * n * sizeof(*a->to)) == 0 &&
                memcmp(a->beside, b->beside, (size_t)n * a->ports * sizeof(*a->beside)) == 0;
    for (uint32_t i = 0; same && i < a->first[n]; i++)
        same = a->group[i].id == b->group[i].id && a->group[i].lids == b->group[i].lids &&
               memcmp(&a->group[i].ports, &b->group[i].ports, sizeof(a->group[i].ports)) == 0;
    return same;
}

struct fabric_tables *gr_route(const struct fabric *f, enum route_engine e)
{
    struct route_opts o = {.engine = e};
    struct route_result r;
    struct err err = {0};
    if (route_compute(f, &o, &r, &err)) {
        assert_int_equal(err.code, -ENOSPC); // not lanes enough
        return NULL;
    }
    return r.tables;
}

// Hops from every switch to one, over any cables.
void gr_hops_to(const struct fabric *f, uint32_t t, uint32_t *dist)
{
    memset(dist, 0xff, f->num_switches * sizeof(*dist));
    dist[t] = 0;
    for (uint32_t d = 0; d < f->num_switches; d++) {
        for (uint32_t s = 0; s < f->num_switches; s++) {
            for (unsigned p = 1; p <= fabric_switch(f, s)->num_ports && dist[s] == d; p++) {
                uint32_t w = gr_far_switch(f, s, p);
                if (w != ID_NONE && dist[w] == ID_NONE)
                    dist[w] = d + 1;
            }
        }
    }
}

bool gr_base_start(struct gr_base *x, const struct fabric *f, enum route_engine engine)
{
    struct route_opts o = {.engine = engine};
    struct err e = {0};
    *x = (struct gr_base){.f = f};
    if (route_compute(f, &o, &x->ideal, &e))
        return false;
    if (route_base_new(f, &x->ideal, &o, &x->b, &e))
        fail_msg("%s", e.text);
    return true;
}

void gr_base_done(struct gr_base *x)
{
    route_base_free(x->b);
    tables_unref(x->ideal.tables);
}

struct groups_result gr_step(const struct gr_base *x, const struct rig_fault *fault, uint32_t n,
                             const struct groups_result *last, const struct fabric *last_f,
                             const struct fabric **ret_live, const struct fabric_tables **ret_t)
{
    struct err e = {0};
    struct route_result rr;
    const struct fabric *live = rig_live(x->f, fault, n);
    if (route_repair_from(x->b, live, NULL, &rr, &e))
        fail_msg("%s", e.text);
    struct groups_opts o = {
        .base = x->b, .engine = rr.engine, .last = last ? last->groups : NULL, .last_fabric = last_f};
    struct groups_result g = gr_make(live, rr.tables, &o);
    gr_check(live, rr.tables, &g, NULL);
    *ret_live = live;
    *ret_t = rr.tables;
    return g;
}
