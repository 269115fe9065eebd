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
    uint32_t blocks, tasks;
    bool *differs; // per task, then per LID
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

// LIDs in which the rows of one task's switches differ.
static void compare_task(void *arg, unsigned i)
{
    const struct moving *m = arg;
    uint32_t n = m->f->num_switches, lids = (uint32_t)m->blocks * BLOCK;
    uint32_t both = m->old->lids < m->new_tables->lids ? m->old->lids : m->new_tables->lids;
    bool *differs = m->differs + (size_t)i * lids;
    both = both < lids ? both : lids;
    for (uint32_t s = (uint32_t)((uint64_t)n * i / m->tasks); s < (uint64_t)n * (i + 1) / m->tasks; s++) {
        const uint8_t *x = tables_row(m->old, s), *y = tables_row(m->new_tables, s);
        for (uint32_t lid0 = 0; lid0 < lids; lid0 += BLOCK) {
            if (lid0 < both && memcmp(x + lid0, y + lid0, BLOCK) == 0)
                continue;
            for (uint32_t l = lid0; l < lid0 + BLOCK; l++)
                differs[l] |=
                    tables_port(m->old, s, (uint16_t)l) != tables_port(m->new_tables, s, (uint16_t)l);
        }
    }
}

static void moved_task(void *arg, unsigned block)
{
    const struct moving *m = arg;
    const struct fabric *f = m->f;
    uint32_t lid0 = block * BLOCK, n = f->num_switches;
    struct arena *a = NULL;
    uint8_t *verdict = NULL;
    uint32_t *path = NULL;
    for (uint32_t lid = lid0; lid < lid0 + BLOCK; lid++) {
        if (lid == 0 || lid > f->top_lid || f->lid_port[lid] == ID_NONE || !m->differs[lid])
            continue;
        if (!a) {
            a = arena_new();
            verdict = ARENA_NEW_N(a, n, uint8_t);
            path = ARENA_NEW_N(a, n, uint32_t);
        }
        memset(verdict, UNKNOWN, n);
        for (uint32_t s = 0; s < n; s++)
            m->moved[block] += m->source[s] && follow(m, (uint16_t)lid, s, verdict, path) == MOVED;
    }
    arena_free(a);
}

static void run(struct par *par, unsigned n, void (*task)(void *arg, unsigned i), void *arg)
{
    if (par) {
        par->run(par, n, task, arg);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        task(arg, i);
}

uint64_t route_paths_moved(const struct fabric *f, const struct fabric_tables *old,
                           const struct fabric_tables *new_tables, struct par *par)
{
    uint32_t n = f->num_switches, blocks = f->top_lid / BLOCK + 1u, lids = blocks * BLOCK;
    if (n == 0 || old->num_switches != n || new_tables->num_switches != n || old == new_tables)
        return 0;
    struct arena *a = arena_new();
    bool *source = ARENA_NEW_N(a, n, bool);
    struct moving m = {.f = f, .old = old, .new_tables = new_tables, .source = source, .blocks = blocks};
    m.tasks = par && par->width > 1 ? par->width : 1;
    m.moved = ARENA_NEW_N(a, blocks, uint64_t);
    m.differs = ARENA_NEW_N(a, (size_t)m.tasks * lids, bool);
    for (uint32_t s = 0; s < n; s++)
        source[s] = fabric_has_ends(f, s);
    run(par, m.tasks, compare_task, &m);
    for (size_t i = lids; i < (size_t)m.tasks * lids; i++)
        m.differs[i % lids] |= m.differs[i];
    run(par, blocks, moved_task, &m);
    uint64_t moved = 0;
    for (uint32_t i = 0; i < blocks; i++)
        moved += m.moved[i];
    arena_free(a);
    return moved;
}
