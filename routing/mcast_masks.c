// SPDX-License-Identifier: Apache-2.0
// One group's part of the multicast tree: from each member's switch towards the root until it meets another's
// way, then off with what is above where all have met. Who only sends climbs, and nothing comes down to it.
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "routing/mcast.h"

enum climbed { NOT, TO_SEND, TO_RECEIVE };

struct cell { // of a switch that is touched
    struct mcast_mask mask;
    uint32_t children; // that climb through it
    uint8_t climbed;
    bool local; // has a member
};
struct group {
    const struct mcast_tree *tree;
    uint32_t *index; // by switch: cell + 1, 0 = none
    struct cell *cell;
    uint32_t n, cap;
};

static struct cell *cell_of(struct group *g, uint32_t sw)
{
    if (g->index[sw] == 0) {
        if (g->n == g->cap) {
            g->cap = g->cap ? g->cap * 2 : 32;
            g->cell = xreallocarray(g->cell, g->cap, sizeof(*g->cell));
        }
        g->cell[g->n] = (struct cell){.mask.sw = sw};
        g->index[sw] = ++g->n;
    }
    return &g->cell[g->index[sw] - 1];
}

static void set(struct mcast_mask *m, unsigned port)
{
    m->port[port / 64] |= 1ull << (port % 64);
}

static void clear(struct mcast_mask *m, unsigned port)
{
    m->port[port / 64] &= ~(1ull << (port % 64));
}

static void climb(struct group *g, uint32_t sw, enum climbed how)
{
    const struct mcast_step *s = &g->tree->step[sw];

    for (uint32_t hops = 0; s->in && s->parent < g->tree->num_switches && hops < g->tree->num_switches;
         hops++) {
        struct cell *up = cell_of(g, s->parent), *c = cell_of(g, sw);
        if (c->climbed >= how)
            return;
        up->children += c->climbed == NOT;
        c->climbed = (uint8_t)how;
        set(&c->mask, s->out);
        if (how == TO_RECEIVE)
            set(&up->mask, s->back);
        sw = s->parent;
        s = &g->tree->step[sw];
    }
}

// The only child that climbs through it; ID_NONE when there is none.
static uint32_t only_child(const struct group *g, uint32_t sw)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->cell[i].climbed != NOT && g->tree->step[g->cell[i].mask.sw].parent == sw)
            return g->cell[i].mask.sw;
    return ID_NONE;
}

static void trim(struct group *g, uint32_t root)
{
    for (uint32_t sw = root; sw != ID_NONE && g->index[sw] != 0;) {
        struct cell *c = &g->cell[g->index[sw] - 1];
        if (c->local || c->children != 1)
            return;
        uint32_t child = only_child(g, sw);
        if (child == ID_NONE)
            return;
        struct cell *z = &g->cell[g->index[child] - 1];
        memset(c->mask.port, 0, sizeof(c->mask.port));
        c->children = 0;
        clear(&z->mask, g->tree->step[child].out);
        z->climbed = NOT;
        sw = child;
    }
}

static int by_switch(const void *a, const void *b)
{
    const struct mcast_mask *x = a, *y = b;
    return x->sw < y->sw ? -1 : x->sw > y->sw;
}

uint32_t mcast_masks(const struct mcast_tree *tree, const struct mcast_member *member, uint32_t n,
                     struct mcast_mask **ret)
{
    struct group g = {.tree = tree, .index = xcalloc(tree->num_switches + 1, sizeof(uint32_t))};
    uint32_t num = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (member[i].sw >= tree->num_switches)
            continue;
        struct cell *c = cell_of(&g, member[i].sw);
        c->local = true;
        if (member[i].receives)
            set(&c->mask, member[i].port);
        climb(&g, member[i].sw, member[i].receives ? TO_RECEIVE : TO_SEND);
    }
    for (uint32_t i = 0; i < tree->num_roots; i++)
        trim(&g, tree->root[i]);
    struct mcast_mask *m = xcalloc(g.n ? g.n : 1, sizeof(*m));
    for (uint32_t i = 0; i < g.n; i++) {
        const uint64_t *p = g.cell[i].mask.port;
        if (p[0] | p[1] | p[2] | p[3])
            m[num++] = g.cell[i].mask;
    }
    qsort(m, num, sizeof(*m), by_switch);
    free(g.index);
    free(g.cell);
    *ret = m;
    return num;
}

bool mcast_place(const struct fabric *f, port_id end, uint32_t *ret_sw, uint8_t *ret_port)
{
    const struct port *p = fabric_port(f, end);
    const struct node *n = fabric_node(f, p->node);

    if (n->type == NODE_SWITCH) {
        *ret_sw = n->sw;
        *ret_port = 0;
        return true;
    }
    if (!port_valid(p->peer))
        return false;
    const struct port *z = fabric_port(f, p->peer);
    const struct node *zn = fabric_node(f, z->node);
    if (zn->type != NODE_SWITCH)
        return false;
    *ret_sw = zn->sw;
    *ret_port = z->num;
    return true;
}
