// SPDX-License-Identifier: Apache-2.0
// What the patterns are made of: switches and cables in an order of their own, hosts in theirs, rails and
// slots.
//
// A slot is a place on a leaf. Leaves of a rail need not be wired alike, so the places are those that any SU
// of the rail uses: (number of the leaf within the SU's share of the rail, port), in order. Where a host is
// missing in one SU the others still name its place.
#include "routing/quality_priv.h"

#include <stdlib.h>
#include <string.h>

#include "fabric/names.h"

struct by_guid {
    uint64_t guid;
    uint32_t sw;
};

static int guid_order(const void *a, const void *b)
{
    const struct by_guid *x = a, *y = b;
    return (x->guid > y->guid) - (x->guid < y->guid);
}

// `mine`: dense switch number -> number here.
static void switches_order(struct qgraph *g, struct arena *a, uint32_t *mine)
{
    const struct fabric *f = g->f;
    struct by_guid *o = ARENA_NEW_N(a, g->n + 1, struct by_guid);
    g->node = ARENA_NEW_N(a, g->n + 1, uint32_t);
    g->row = ARENA_NEW_N(a, g->n + 1, const uint8_t *);
    for (uint32_t s = 0; s < g->n; s++)
        o[s] = (struct by_guid){fabric_switch(f, s)->guid, s};
    qsort(o, g->n, sizeof(*o), guid_order);
    for (uint32_t i = 0; i < g->n; i++) {
        mine[o[i].sw] = i;
        g->node[i] = f->switch_node[o[i].sw];
        g->row[i] = tables_row(g->t, o[i].sw);
        uint32_t ports = f->node[g->node[i]].num_ports + 1u;
        g->stride = ports > g->stride ? ports : g->stride;
    }
}

static bool is_host(const struct fabric *f, const struct port *p)
{
    const struct node *n = fabric_node(f, p->node);
    return n->type == NODE_CA && n->role != ROLE_AGGREGATION && p->a.lid != 0 && p->a.lid <= LID_UCAST_MAX;
}

static void cables_read(struct qgraph *g, struct arena *a, const uint32_t *mine)
{
    const struct fabric *f = g->f;
    uint32_t most = 0;
    g->peer = ARENA_NEW_N(a, (size_t)g->n * g->stride + 1, uint32_t);
    g->hosts = ARENA_NEW_N(a, g->n + 1, uint32_t);
    memset(g->peer, 0xff, (size_t)g->n * g->stride * sizeof(*g->peer));
    for (uint32_t i = 0; i < f->num_ports; i++)
        most += is_host(f, &f->port[i]);
    g->end = ARENA_NEW_N(a, most + 1, struct qend);
    for (uint32_t s = 0; s < g->n; s++) {
        const struct node *n = &f->node[g->node[s]];
        for (unsigned num = 1; num <= n->num_ports; num++) {
            port_id far = f->port[n->first_port + num].peer;
            if (!port_valid(far))
                continue;
            const struct port *p = fabric_port(f, far);
            const struct node *z = fabric_node(f, p->node);
            if (z->type == NODE_SWITCH)
                g->peer[(size_t)s * g->stride + num] = mine[z->sw];
            if (!is_host(f, p))
                continue;
            g->hosts[s]++;
            g->end[g->num_ends++] = (struct qend){.sw = s,
                                                  .port_id = far.i,
                                                  .lid = p->a.lid,
                                                  .rail = p->rail,
                                                  .su = n->su,
                                                  .port = (uint8_t)num,
                                                  .cell = ID_NONE};
        }
    }
}

// --- the order of hosts ---

struct named {
    const char *name;
    uint32_t sw, pos;
};

static int name_order(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    int c = name_compare(x->name, y->name);
    return c != 0 ? c : (x->sw > y->sw) - (x->sw < y->sw);
}

static void ends_order(struct qgraph *g, struct arena *a)
{
    struct named *o = ARENA_NEW_N(a, g->n + 1, struct named);
    uint32_t *at = ARENA_NEW_N(a, g->n + 1, uint32_t), sum = 0;
    struct qend *end = ARENA_NEW_N(a, g->num_ends + 1, struct qend);
    for (uint32_t s = 0; s < g->n; s++)
        o[s] = (struct named){.name = fabric_desc(g->f, &g->f->node[g->node[s]]), .sw = s};
    qsort(o, g->n, sizeof(*o), name_order);
    for (uint32_t i = 0; i < g->n; i++) {
        at[o[i].sw] = sum;
        sum += g->hosts[o[i].sw];
    }
    for (uint32_t i = 0; i < g->num_ends; i++) // by port within a switch already
        end[at[g->end[i].sw]++] = g->end[i];
    g->end = end;
}

// --- rails ---

static void rails_list(struct qgraph *g, struct arena *a)
{
    uint32_t *count = ARENA_NEW_N(a, RAIL_NONE + 1, uint32_t), *at = ARENA_NEW_N(a, RAIL_NONE + 1, uint32_t);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < g->num_ends; i++)
        count[g->end[i].rail] += g->end[i].rail != RAIL_NONE;
    for (uint32_t r = 0; r < RAIL_NONE; r++)
        g->num_rails += count[r] > 0;
    g->rail_first = ARENA_NEW_N(a, g->num_rails + 1, uint32_t);
    g->rail = ARENA_NEW_N(a, g->num_ends + 1, uint32_t);
    g->rail_pos = ARENA_NEW_N(a, g->num_ends + 1, uint32_t);
    for (uint32_t r = 0, k = 0; r < RAIL_NONE; r++) {
        if (count[r] == 0)
            continue;
        g->rail_first[k++] = at[r] = sum;
        sum += count[r];
        g->rail_most = count[r] > g->rail_most ? count[r] : g->rail_most;
    }
    g->rail_first[g->num_rails] = sum;
    for (uint32_t i = 0; i < g->num_ends; i++) {
        uint16_t r = g->end[i].rail;
        g->rail_pos[i] = r == RAIL_NONE ? ID_NONE : at[r];
        if (r != RAIL_NONE)
            g->rail[at[r]++] = i;
    }
}

// --- slots ---

struct place { // of an end in its rail
    uint32_t end, su;
    uint32_t key; // leaf within the cell, port
};

static int su_order(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->su != y->su)
        return x->su < y->su ? -1 : 1;
    return (x->end > y->end) - (x->end < y->end); // by leaf, then port
}

static int key_order(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

// Gives the ends of place[0..n-1], by SU and order, their cells. Returns how many.
static uint32_t cells_make(struct qgraph *g, struct place *place, uint32_t n)
{
    uint32_t first = g->num_cells, leaf = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct qend *e = &g->end[place[i].end];
        if (i == 0 || place[i].su != place[i - 1].su) {
            g->cell[g->num_cells++] = (struct qcell){.first = i};
            leaf = 0;
        } else if (e->sw != g->end[place[i - 1].end].sw) {
            leaf++;
        }
        e->cell = g->num_cells - 1;
        g->cell[e->cell].n++;
        place[i].key = leaf << 8 | e->port;
    }
    for (uint32_t c = first; c < g->num_cells; c++)
        g->cell[c].next = c + 1 < g->num_cells ? c + 1 : first;
    return g->num_cells - first;
}

static void slots_of_rail(struct qgraph *g, const uint32_t *rail, uint32_t n, struct place *place,
                          uint32_t *key, uint32_t *by_cell)
{
    uint32_t m = 0, slots = 0, first = g->num_cells;
    for (uint32_t i = 0; i < n; i++) {
        if (g->end[rail[i]].su != SU_NONE)
            place[m++] = (struct place){.end = rail[i], .su = g->end[rail[i]].su};
    }
    qsort(place, m, sizeof(*place), su_order);
    uint32_t sus = cells_make(g, place, m);
    for (uint32_t i = 0; i < m; i++)
        key[i] = place[i].key;
    qsort(key, m, sizeof(*key), key_order);
    for (uint32_t i = 0; i < m; i++) {
        if (i == 0 || key[i] != key[i - 1])
            key[slots++] = key[i];
    }
    for (uint32_t i = 0; i < m; i++) {
        uint32_t *at = bsearch(&place[i].key, key, slots, sizeof(*key), key_order);
        g->end[place[i].end].slot = (uint32_t)(at - key);
        by_cell[i] = place[i].end;
    }
    for (uint32_t c = first; c < g->num_cells; c++) {
        g->cell[c].first += (uint32_t)(by_cell - g->by_cell);
        g->cell[c].slots = slots;
    }
    g->num_sus = sus > g->num_sus ? sus : g->num_sus;
    g->slots = slots > g->slots ? slots : g->slots;
}

static void slots_make(struct qgraph *g, struct arena *a)
{
    struct place *place = ARENA_NEW_N(a, g->rail_most + 1, struct place);
    uint32_t *key = ARENA_NEW_N(a, g->rail_most + 1, uint32_t);
    g->cell = ARENA_NEW_N(a, g->num_ends + 1, struct qcell);
    g->by_cell = ARENA_NEW_N(a, g->num_ends + 1, uint32_t);
    for (uint32_t r = 0; r < g->num_rails; r++)
        slots_of_rail(g, g->rail + g->rail_first[r], g->rail_first[r + 1] - g->rail_first[r], place, key,
                      g->by_cell + g->rail_first[r]);
}

void qgraph_build(const struct fabric *f, const struct fabric_tables *t, struct arena *a, struct qgraph *ret)
{
    *ret = (struct qgraph){.f = f, .t = t, .n = f->num_switches};
    uint32_t *mine = ARENA_NEW_N(a, ret->n + 1, uint32_t);
    switches_order(ret, a, mine);
    cables_read(ret, a, mine);
    ends_order(ret, a);
    rails_list(ret, a);
    slots_make(ret, a);
}
