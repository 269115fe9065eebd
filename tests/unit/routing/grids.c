// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/xalloc.h"
#include "tests/unit/routing/grids.h"

// --- fabrics ---

void grids_start(struct grids *m, uint64_t salt)
{
    *m = (struct grids){.b = builder_new(), .salt = salt, .vl_cap = 4};
}

node_id grids_add(struct grids *m, enum node_type type, unsigned ports)
{
    char name[40];
    if (m->num == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 256;
        m->next_port = xreallocarray(m->next_port, m->cap, sizeof(*m->next_port));
    }
    uint64_t guid = hash_mix64(m->num + (m->salt << 32) + 1) & ~0xffULL;
    struct node_attrs a = {.guid = guid, .sys_guid = guid, .type = type, .num_ports = (uint8_t)ports};
    node_id id;
    a.lft_cap = type == NODE_SWITCH ? LID_UCAST_MAX : 0;
    snprintf(name, sizeof(name), "%s%u", type == NODE_SWITCH ? "sw" : "host", m->num);
    assert_int_equal(builder_node(m->b, &a, name, strlen(name), &id, NULL), 0);
    assert_int_equal(id.i, m->num);
    m->next_port[m->num++] = 1;
    builder_port_guid(m->b, id, type == NODE_SWITCH ? 0 : 1, guid + (type != NODE_SWITCH));
    return id;
}

void grids_join(struct grids *m, node_id a, node_id b)
{
    unsigned pa = m->next_port[a.i]++, pb = m->next_port[b.i]++;
    struct port_attrs at = {.vl_cap = m->vl_cap, .state = PORT_ACTIVE};
    assert_int_equal(builder_port(m->b, a, pa, &at), 0);
    assert_int_equal(builder_port(m->b, b, pb, &at), 0);
    assert_int_equal(builder_link(m->b, a, pa, b, pb), 0);
}

void grids_hosts(struct grids *m, node_id sw, unsigned num)
{
    for (unsigned i = 0; i < num; i++)
        grids_join(m, sw, grids_add(m, NODE_CA, 1));
}

const struct fabric *grids_done(struct grids *m)
{
    free(m->next_port);
    return rig_lids(builder_seal(m->b, 1, NULL), 0);
}

// Dimensions k[0 .. d - 1]; wrap: a torus.
void grids_add_grid(struct grids *m, unsigned d, const unsigned *k, bool wrap, unsigned num_hosts)
{
    unsigned n = 1, first = m->num;
    for (unsigned i = 0; i < d; i++)
        n *= k[i];
    for (unsigned i = 0; i < n; i++)
        grids_add(m, NODE_SWITCH, 2 * d + num_hosts);
    for (unsigned i = 0; i < n; i++) {
        for (unsigned j = 0, step = 1; j < d; step *= k[j++]) {
            unsigned c = i / step % k[j];
            if (c + 1 < k[j])
                grids_join(m, (node_id){first + i}, (node_id){first + i + step});
            else if (wrap && k[j] > 2)
                grids_join(m, (node_id){first + i}, (node_id){first + i - c * step});
        }
    }
    for (unsigned i = 0; i < n; i++)
        grids_hosts(m, (node_id){first + i}, num_hosts);
}

const struct fabric *grids_grid(unsigned d, const unsigned *k, bool wrap, unsigned num_hosts)
{
    struct grids m;
    grids_start(&m, d);
    grids_add_grid(&m, d, k, wrap, num_hosts);
    return grids_done(&m);
}

// Groups of `a` switches, all joined; each switch with h cables to other groups, one between any two groups.
const struct fabric *grids_dragonfly(unsigned a, unsigned h, unsigned num_hosts)
{
    struct grids m;
    unsigned groups = a * h + 1;
    grids_start(&m, a);
    for (unsigned i = 0; i < groups * a; i++)
        grids_add(&m, NODE_SWITCH, a - 1 + h + num_hosts);
    for (unsigned g = 0; g < groups; g++) {
        for (unsigned x = 0; x < a; x++) {
            for (unsigned y = x + 1; y < a; y++)
                grids_join(&m, (node_id){g * a + x}, (node_id){g * a + y});
        }
        for (unsigned o = g + 1; o < groups; o++) {
            unsigned out = o - g - 1, in = groups - (o - g) - 1;
            grids_join(&m, (node_id){g * a + out / h}, (node_id){o * a + in / h});
        }
    }
    for (unsigned i = 0; i < groups * a; i++)
        grids_hosts(&m, (node_id){i}, num_hosts);
    return grids_done(&m);
}

// --- the judgement ---

struct judge {
    const struct fabric *f;
    uint32_t n;
    uint32_t *far;  // [switch * 256 + port]
    uint32_t *dist; // [switch * n + switch]
    bool *ends;
    uint64_t (*dep)[4]; // per channel: ports by which the next switch is left
};

static void judge_init(struct judge *j, const struct fabric *f)
{
    *j = (struct judge){.f = f, .n = f->num_switches};
    size_t n = j->n;
    j->far = xmalloc((n * 256 + 1) * sizeof(*j->far));
    j->dist = xmalloc((n * n + 1) * sizeof(*j->dist));
    j->ends = xcalloc(n + 1, sizeof(*j->ends));
    j->dep = xcalloc(n * 256 + 1, sizeof(*j->dep));
    memset(j->far, 0xff, n * 256 * sizeof(*j->far));
    memset(j->dist, 0xff, n * n * sizeof(*j->dist));
    uint32_t *queue = xcalloc(n + 1, sizeof(*queue));
    for (uint32_t s = 0; s < n; s++) {
        const struct node *sw = fabric_switch(f, s);
        for (unsigned p = 1; p <= sw->num_ports; p++) {
            const struct node *peer = fabric_peer_node(f, &f->port[sw->first_port + p]);
            if (peer && peer->type == NODE_SWITCH && peer->sw != s)
                j->far[s * 256 + p] = peer->sw;
            j->ends[s] |= peer && peer->type != NODE_SWITCH;
        }
    }
    for (uint32_t s = 0; s < n; s++) {
        uint32_t head = 0, tail = 0, *dist = j->dist + s * n;
        dist[s] = 0;
        queue[tail++] = s;
        while (head < tail) {
            uint32_t v = queue[head++];
            for (unsigned p = 1; p < 256; p++) {
                uint32_t w = j->far[v * 256 + p];
                if (w != ID_NONE && dist[w] == ID_NONE) {
                    dist[w] = dist[v] + 1;
                    queue[tail++] = w;
                }
            }
        }
    }
    free(queue);
}

static void judge_done(struct judge *j)
{
    free(j->far);
    free(j->dist);
    free(j->ends);
    free(j->dep);
}

// From each switch to a LID; what one lane carries there and back is noted.
static void judge_lid(struct judge *j, const struct fabric_tables *t, uint16_t lid, int lane, uint32_t longer)
{
    const struct port *p = &j->f->port[j->f->lid_port[lid]];
    const struct node *at = fabric_node(j->f, p->node);
    uint8_t last = 0;
    if (at->type != NODE_SWITCH) {
        if (!port_valid(p->peer))
            return;
        last = j->f->port[p->peer.i].num;
        at = fabric_node(j->f, j->f->port[p->peer.i].node);
    }
    if (at->type != NODE_SWITCH)
        return;
    for (uint32_t s = 0; s < j->n; s++) {
        uint32_t hops = 0, before = ID_NONE, want = j->dist[(size_t)s * j->n + at->sw];
        bool noted = lane >= 0 && lanes_get(t->lanes, s, at->sw) == (unsigned)lane;
        if (want == ID_NONE)
            continue;
        for (uint32_t v = s; v != at->sw; hops++) {
            uint8_t out = tables_port(t, v, lid);
            if (j->far[v * 256 + out] == ID_NONE || hops > want + longer)
                fail_msg("from switch %u to LID %u: ends at switch %u", s, lid, v);
            if (noted && before != ID_NONE)
                j->dep[before][out / 64] |= 1ULL << (out % 64);
            before = v * 256 + out;
            v = j->far[before];
        }
        if (hops > want + longer)
            fail_msg("from switch %u to LID %u: %u hops, %u would do", s, lid, hops, want);
        assert_int_equal(tables_port(t, at->sw, lid), last);
    }
}

static bool cyclic_from(struct judge *j, uint32_t start, uint8_t *seen, uint32_t *stack, uint16_t *at)
{
    uint32_t top = 0;
    stack[0] = start;
    at[0] = 0;
    seen[start] = 1;
    for (;;) {
        uint32_t c = stack[top], i = at[top];
        if (i == 256) {
            seen[c] = 2;
            if (top-- == 0)
                return false;
            continue;
        }
        if (!(j->dep[c][i / 64] >> (i % 64))) {
            at[top] = (uint16_t)((i / 64 + 1) * 64);
            continue;
        }
        at[top]++;
        if (!(j->dep[c][i / 64] >> (i % 64) & 1))
            continue;
        uint32_t y = j->far[c] * 256 + i;
        if (seen[y] == 1)
            return true;
        if (seen[y] == 0) {
            seen[y] = 1;
            stack[++top] = y;
            at[top] = 0;
        }
    }
}

static bool cyclic(struct judge *j)
{
    size_t chans = (size_t)j->n * 256;
    uint8_t *seen = xcalloc(chans + 1, 1);
    uint32_t *stack = xcalloc(chans + 1, sizeof(*stack));
    uint16_t *at = xcalloc(chans + 1, sizeof(*at));
    bool found = false;
    for (uint32_t c = 0; c < chans && !found; c++)
        found = seen[c] == 0 && cyclic_from(j, c, seen, stack, at);
    free(seen);
    free(stack);
    free(at);
    return found;
}

static void judge_lanes(struct judge *j, const struct fabric_tables *t)
{
    const struct fabric_lanes *l = t->lanes;
    assert_non_null(l);
    assert_int_equal(l->num_switches, j->n);
    assert_in_range(l->num_lanes, 1, LANES_MAX);
    for (uint32_t a = 0; a < j->n; a++) {
        for (uint32_t b = 0; b < j->n; b++) {
            unsigned lane = lanes_get(l, a, b);
            assert_int_equal(lane, lanes_get(l, b, a));
            if (j->dist[(size_t)a * j->n + b] != ID_NONE && (j->ends[a] || j->ends[b]))
                assert_true(lane < l->num_lanes);
            else
                assert_true(lane < l->num_lanes || lane == LANE_NONE);
        }
    }
}

void grids_judge(const struct fabric *f, const struct fabric_tables *t, uint32_t longer)
{
    struct judge j;
    judge_init(&j, f);
    judge_lanes(&j, t);
    for (int lane = 0; lane < (int)t->lanes->num_lanes; lane++) {
        memset(j.dep, 0, (size_t)j.n * 256 * sizeof(*j.dep));
        for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
            if (f->lid_port[lid] != ID_NONE)
                judge_lid(&j, t, (uint16_t)lid, lane, longer);
        }
        if (cyclic(&j))
            fail_msg("lane %d has a cycle", lane);
    }
    judge_done(&j);
    struct verify_opts o = {.par = &rig_par};
    for (int all = 0; all < 2; all++) {
        struct route_proof p;
        o.all_switches = all;
        if (!route_verify(f, t, &o, &p))
            fail_msg("fault %d: %s", p.fault, p.counter_example);
        assert_false(p.credit_loop);
        assert_int_equal(p.unreached, 0);
    }
}

bool grids_lanes_hold(const struct fabric *f, const struct fabric_tables *t, const uint8_t *may)
{
    struct judge j;
    bool hold = true;
    judge_init(&j, f);
    uint8_t used = 0;
    for (size_t i = 0; i < (size_t)j.n * j.n; i++)
        used |= may[i];
    for (int lane = 0; lane < LANES_MAX && hold; lane++) {
        if (!(used >> lane & 1))
            continue;
        memset(j.dep, 0, (size_t)j.n * 256 * sizeof(*j.dep));
        for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
            const struct port *p = f->lid_port[lid] == ID_NONE ? NULL : &f->port[f->lid_port[lid]];
            const struct node *at = p ? fabric_node(f, p->node) : NULL;
            if (at && at->type != NODE_SWITCH)
                at = fabric_peer_node(f, p);
            for (uint32_t s = 0; at && at->type == NODE_SWITCH && s < j.n; s++) {
                uint32_t before = ID_NONE, hops = 0;
                if (!(may[(size_t)s * j.n + at->sw] >> lane & 1))
                    continue;
                for (uint32_t v = s; v != at->sw && hops <= j.n; hops++) {
                    uint8_t out = tables_port(t, v, (uint16_t)lid);
                    if (j.far[v * 256 + out] == ID_NONE)
                        break;
                    if (before != ID_NONE)
                        j.dep[before][out / 64] |= 1ULL << (out % 64);
                    before = v * 256 + out;
                    v = j.far[before];
                }
            }
        }
        hold = !cyclic(&j);
    }
    judge_done(&j);
    return hold;
}
