// SPDX-License-Identifier: Apache-2.0
// How many routes a change of tables moves: for people and for history.
//
// Per LID that differs anywhere, a switch's route is unchanged when its own entry is, and that of the switch
// the entry leads to: found with memory, each switch once.
#include "routing/route.h"

#include <string.h>

#include "lib/arena.h"

#define BLOCK LFT_BLOCK
enum verdict {
    UNKNOWN,
    PENDING,
    SAME,
    MOVED,
};

struct moving {
    const struct fabric *f;
    const struct fabric_tables *old, *new_tables;
    const bool *source; // per switch: it has end ports
    uint64_t *moved;    // per block
};

static uint32_t next_switch(const struct fabric *f, uint32_t s, uint8_t out)
{
    const struct node *n = fabric_switch(f, s);
    if (out == 0 || out > n->num_ports)
        return ID_NONE;
    const struct node *far = fabric_peer_node(f, &f->port[n->first_port + out]);
    return far && far->type == NODE_SWITCH ? far->sw : ID_NONE;
}

static enum verdict follow(const struct moving *m, uint16_t lid, uint32_t from, uint8_t *verdict,
                           uint32_t *path)
{
    uint32_t n = 0, v = from;
    enum verdict r;
    for (;;) {
        if (verdict[v] != UNKNOWN) {
            r = verdict[v] == PENDING ? SAME : (enum verdict)verdict[v]; // a circle, but the same one
            break;
        }
        verdict[v] = PENDING;
        path[n++] = v;
        uint8_t out = tables_port(m->new_tables, v, lid);
        if (out != tables_port(m->old, v, lid)) {
            r = MOVED;
            break;
        }
        v = next_switch(m->f, v, out);
        if (v == ID_NONE) {
            r = SAME;
            break;
        }
    }
    while (n > 0)
        verdict[path[--n]] = (uint8_t)r;
    return r;
}

// Marks the LIDs of a block that differ; false when none does.
static bool differing(const struct moving *m, uint32_t lid0, bool ret[BLOCK])
{
    bool any = false;
    memset(ret, 0, BLOCK * sizeof(*ret));
    for (uint32_t s = 0; s < m->f->num_switches; s++) {
        if (lid0 < m->old->lids && lid0 < m->new_tables->lids &&
            memcmp(tables_row(m->old, s) + lid0, tables_row(m->new_tables, s) + lid0, BLOCK) == 0)
            continue;
        for (uint32_t l = 0; l < BLOCK; l++) {
            uint16_t lid = (uint16_t)(lid0 + l);
            ret[l] |= tables_port(m->old, s, lid) != tables_port(m->new_tables, s, lid);
            any |= ret[l];
        }
    }
    return any;
}

static void moved_task(void *arg, unsigned block)
{
    const struct moving *m = arg;
    const struct fabric *f = m->f;
    uint32_t lid0 = block * BLOCK, n = f->num_switches;
    bool differs[BLOCK];
    if (!differing(m, lid0, differs))
        return;
    struct arena *a = arena_new();
    uint8_t *verdict = ARENA_NEW_N(a, n, uint8_t);
    uint32_t *path = ARENA_NEW_N(a, n, uint32_t);
    for (uint32_t lid = lid0; lid < lid0 + BLOCK; lid++) {
        if (lid == 0 || lid > f->top_lid || f->lid_port[lid] == ID_NONE || !differs[lid - lid0])
            continue;
        memset(verdict, UNKNOWN, n);
        for (uint32_t s = 0; s < n; s++)
            m->moved[block] += m->source[s] && follow(m, (uint16_t)lid, s, verdict, path) == MOVED;
    }
    arena_free(a);
}

uint64_t route_paths_moved(const struct fabric *f, const struct fabric_tables *old,
                           const struct fabric_tables *new_tables, struct par *par)
{
    uint32_t n = f->num_switches, blocks = f->top_lid / BLOCK + 1u;
    if (n == 0 || old->num_switches != n || new_tables->num_switches != n || old == new_tables)
        return 0;
    struct arena *a = arena_new();
    bool *source = ARENA_NEW_N(a, n, bool);
    struct moving m = {.f = f, .old = old, .new_tables = new_tables, .source = source};
    m.moved = ARENA_NEW_N(a, blocks, uint64_t);
    for (uint32_t s = 0; s < n; s++) {
        const struct node *nd = fabric_switch(f, s);
        for (unsigned num = 1; num <= nd->num_ports && !source[s]; num++) {
            const struct node *far = fabric_peer_node(f, &f->port[nd->first_port + num]);
            source[s] = far && far->type != NODE_SWITCH;
        }
    }
    if (par) {
        par->run(par, blocks, moved_task, &m);
    } else {
        for (uint32_t i = 0; i < blocks; i++)
            moved_task(&m, i);
    }
    uint64_t moved = 0;
    for (uint32_t i = 0; i < blocks; i++)
        moved += m.moved[i];
    arena_free(a);
    return moved;
}
