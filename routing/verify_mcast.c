// SPDX-License-Identifier: Apache-2.0
// The proof of a multicast tree. Like verify.c it shares nothing with what makes trees.
//
// Form first: a step that is none, or leads in a circle, ends the proof. Then who is in which tree. Then the
// channel dependencies: those of unicast packets on the lane of multicast, from switches with end ports, or,
// where tables have lanes, from all that have a pair in that lane; and every turn between two ports of a tree
// at one switch, since packets come from everywhere.
#include <stdio.h>
#include <string.h>

#include "routing/mcast.h"
#include "routing/verify_priv.h"

struct proving {
    struct vcables c;
    const struct mcast_tree *tree;
    struct arena *a;
    uint32_t *root; // per switch: of its tree, ID_NONE when in none
    uint64_t *dep;
    struct mcast_proof *r;
};

static const char *name_of(const struct proving *k, uint32_t sw, char *buf, size_t size)
{
    return fabric_node_name(k->c.f, fabric_switch(k->c.f, sw), buf, size);
}

static bool wrong(struct proving *k, uint32_t sw, const char *what)
{
    char name[160];
    snprintf(k->r->counter_example, sizeof(k->r->counter_example), "%s: %s",
             name_of(k, sw, name, sizeof(name)), what);
    return false;
}

// --- form ---

static bool check_step(struct proving *k, uint32_t sw)
{
    const struct mcast_step *s = &k->tree->step[sw];
    const struct fabric *f = k->c.f;
    if (!s->in || s->parent == ID_NONE)
        return true;
    if (s->parent >= k->c.n || !k->tree->step[s->parent].in)
        return wrong(k, sw, "its step leads out of the tree");
    if (s->out == 0 || vfar_end(&k->c, sw, s->out) != s->parent)
        return wrong(k, sw, "its step is no cable to where it leads");
    if (s->parent == sw || f->port[f->port[fabric_switch(f, sw)->first_port + s->out].peer.i].num != s->back)
        return wrong(k, sw, "its step comes back by another port");
    return true;
}

static bool find_roots(struct proving *k)
{
    uint32_t n = k->c.n;
    k->root = ARENA_NEW_N(k->a, n + 1, uint32_t);
    for (uint32_t s = 0; s < n; s++) {
        if (!check_step(k, s))
            return false;
    }
    for (uint32_t s = 0; s < n; s++) {
        uint32_t up = s, hops = 0;
        k->root[s] = ID_NONE;
        if (!k->tree->step[s].in)
            continue;
        for (; k->tree->step[up].parent != ID_NONE; up = k->tree->step[up].parent) {
            if (hops++ == n)
                return wrong(k, s, "its steps lead in a circle");
        }
        k->root[s] = up;
    }
    return true;
}

// --- who is in ---

static void check_members(struct proving *k, const bool *needed)
{
    uint32_t n = k->c.n, *root_of = ARENA_NEW_N(k->a, n + 1, uint32_t); // per part, by its number
    bool *met = ARENA_NEW_N(k->a, n + 1, bool);
    memset(root_of, 0xff, n * sizeof(*root_of));
    for (uint32_t s = 0; s < n; s++) {
        uint32_t part = k->c.part[s];
        if (!(needed ? needed[s] : k->c.source[s]))
            continue;
        k->r->parts += !met[part];
        met[part] = true;
        if (root_of[part] == ID_NONE)
            root_of[part] = k->root[s];
        if (k->root[s] != ID_NONE && k->root[s] == root_of[part])
            continue;
        if (k->r->missing++ == 0)
            wrong(k, s,
                  k->root[s] == ID_NONE ? "is in no tree" : "is in another tree than others of its part");
    }
}

// --- buffers ---

static void add(struct proving *k, uint32_t from_sw, uint32_t from_port, uint32_t out)
{
    size_t at = ((size_t)from_sw * k->c.ports + from_port) * k->c.words + (out - 1u) / 64;
    k->dep[at] |= 1ULL << ((out - 1u) % 64);
}

static void walk(struct proving *k, uint32_t from, uint16_t lid, uint32_t *stamp)
{
    const struct vcables *c = &k->c;
    uint32_t v = from, before = ID_NONE, in = 0;
    for (;;) {
        uint8_t out = tables_port(c->t, v, lid);
        uint32_t w = out == 0 ? LINK_END : vfar_end(c, v, out);
        if (w >= c->n)
            return;
        if (before != ID_NONE)
            add(k, before, in, out);
        if (stamp[v] == lid)
            return;
        stamp[v] = lid;
        before = v;
        in = out;
        v = w;
    }
}

static void add_unicast(struct proving *k)
{
    const struct vcables *c = &k->c;
    uint32_t *stamp = ARENA_NEW_N(k->a, c->n + 1, uint32_t), end = ID_NONE;
    uint8_t port;
    for (uint32_t lid = 1; lid <= c->f->top_lid; lid++) {
        if (!vpresent(c->f, lid) || !vend_of(c->f, lid, &end, &port))
            continue;
        for (uint32_t s = 0; s < c->n; s++) {
            if (c->t->lanes ? lanes_get(c->t->lanes, s, end) == MCAST_LANE : c->source[s])
                walk(k, s, (uint16_t)lid, stamp);
        }
    }
}

// What a proof has of these: at least as many, so that no cycle there is none.
static bool add_proved(struct proving *k, const struct route_proof_state *s)
{
    const struct vcables *c = &k->c;
    uint32_t words;
    if (!s || c->t->lanes || !vstate_covers(s, c->f) || s->ports != c->ports || s->words != c->words)
        return false;
    for (uint32_t v = 0; v < c->n; v++) {
        for (uint32_t p = 1; p < c->ports; p++) {
            uint32_t w = vfar_end(c, v, (uint8_t)p);
            const uint64_t *dep = w < c->n ? vstate_deps(s, v, p, &words) : NULL;
            for (uint32_t out = 1; dep && out < c->ports; out++) {
                if (dep[(out - 1) / 64] >> ((out - 1) % 64) & 1 && vfar_end(c, w, (uint8_t)out) < c->n)
                    add(k, v, p, out);
            }
        }
    }
    return true;
}

static void add_tree(struct proving *k)
{
    const struct vcables *c = &k->c;
    const struct mcast_step *step = k->tree->step;
    bool *port = ARENA_NEW_N(k->a, (size_t)c->n * c->ports + 1, bool);
    for (uint32_t s = 0; s < c->n; s++) {
        if (step[s].in && step[s].parent != ID_NONE)
            port[(size_t)s * c->ports + step[s].out] =
                port[(size_t)step[s].parent * c->ports + step[s].back] = true;
    }
    for (uint32_t s = 0; s < c->n; s++) {
        const struct node *n = fabric_switch(c->f, s);
        for (uint32_t p = 1; p <= n->num_ports; p++) {
            if (!port[(size_t)s * c->ports + p])
                continue;
            const struct port *far = fabric_port(c->f, c->f->port[n->first_port + p].peer);
            for (uint32_t out = 1; out <= n->num_ports; out++) {
                if (out != p && port[(size_t)s * c->ports + out])
                    add(k, c->f->node[far->node.i].sw, far->num, out);
            }
        }
    }
}

static void cycle_text(struct proving *k, const uint32_t *cycle, uint32_t n)
{
    char *buf = k->r->counter_example, name[160];
    size_t size = sizeof(k->r->counter_example);
    int at = snprintf(buf, size, "multicast and unicast wait for each other over %u cables: ", n);
    for (uint32_t i = 0; i < n && at + 200 < (int)size; i++)
        at += snprintf(buf + at, size - (size_t)at, "%s[%u] -> ",
                       name_of(k, cycle[i] / k->c.ports, name, sizeof(name)), cycle[i] % k->c.ports);
    snprintf(buf + at, size - (size_t)at, "back to the first");
}

static uint32_t *find_cycle(struct proving *k, const struct route_proof_state *proof, uint32_t *ret_n)
{
    size_t size = ((size_t)k->c.n * k->c.ports + 1) * k->c.words;
    k->dep = ARENA_NEW_N(k->a, size, uint64_t);
    bool more = add_proved(k, proof);
    if (!more)
        add_unicast(k);
    add_tree(k);
    uint32_t *cycle = vfind_cycle(&k->c, k->dep, k->a, ret_n);
    return cycle && more ? find_cycle(k, NULL, ret_n) : cycle;
}

bool mcast_verify(const struct fabric *f, const struct fabric_tables *t, const struct mcast_tree *tree,
                  const bool *needed, const struct route_proof_state *proof, struct mcast_proof *ret)
{
    *ret = (struct mcast_proof){0};
    if (tree->num_switches != f->num_switches || t->num_switches != f->num_switches ||
        (t->lanes && t->lanes->num_switches != f->num_switches)) {
        snprintf(ret->counter_example, sizeof(ret->counter_example), "the tree is of another fabric");
        return false;
    }
    struct verify_opts o = {0};
    struct proving k = {.c = {.f = f, .t = t}, .tree = tree, .a = arena_new(), .r = ret};
    vread_cables(&k.c, &o, k.a);
    vfind_parts(&k.c, k.a);
    if (find_roots(&k)) {
        uint32_t n, *cycle = find_cycle(&k, proof, &n);
        check_members(&k, needed);
        ret->cycle = cycle != NULL;
        if (cycle && ret->missing == 0)
            cycle_text(&k, cycle, n);
        ret->ok = ret->missing == 0 && !cycle;
    }
    arena_free(k.a);
    return ret->ok;
}
