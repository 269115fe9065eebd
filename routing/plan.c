// SPDX-License-Identifier: Apache-2.0
// Writing new tables over old ones. While a wave is under way any switch may hold its old or its new entry,
// so per destination all mixes that can be must be harmless:
//   no loop      the graph of old and new next hops together has no cycle;
//   no deadlock  a mix can make packets turn from one cable into another where neither table does. All turns
//                of the old tables, of the new ones and of the mixes are put into one dependency graph; when
//                it has a cycle and the tables alone have none, the mixes that add a turn against a
//                topological order of the tables' graph must not be. When old and new turns alone make a
//                cycle (another root), the order is that of the new ones, and destinations whose old entries
//                turn against it are dropped first. When either tables have a cycle of their own (those of a
//                foreign engine) there is no order to keep, and only loops count.
// Packets may start at any switch, so all switches' entries count, used by a path or not.
//
// A destination of which any mix is harmless is written in any order; of the others the order is found by
// plan_order.c. Where there is none, the changing entries are set to LFT_DROP in a wave before all others:
// then a mix is part of the old tables in that wave, and of the new ones after it.
//
// A switch whose old table is not known may send anything anywhere, and no mix with it can be proved: the
// wave of drops blanks it whole, and it is written whole. Its traffic stops for the time between; so read
// tables first where they can be read. A switch that forwards nothing (blank) is written whole, as the
// content of its blocks after a reset is not defined.
//
// A destination whose changing entries are all LFT_DROP before, or all after, is safe without a look: a cold
// start costs one comparison. A loop that a mix makes passes a switch whose entry changes, so only those are
// looked at: the cost is that of the comparison and of the changes, plus O(switches x LIDs) where the proof
// left nothing to go by. The new tables themselves are taken as proved. Memory: one
// table, for the wave of drops, if there is one, and two bytes a change up to LISTED_MAX.
//
// With virtual lanes all this is said of each lane by itself, with the packets that may be in it:
// plan_lanes.c.
//
//   plan.c        what changes; the blocks of each wave
//   plan_mix.c    loops and turns of mixes
//   plan_order.c  which block goes in which wave
//   plan_lanes.c  by which lanes packets may come
#include "routing/plan_priv.h"

#include <errno.h>
#include <string.h>

#include "lib/err.h"

#define LISTED_MAX 8000000u

static void read_links(struct planning *p)
{
    const struct fabric *f = p->f;
    p->ports = fabric_port_room(f);
    p->words = (p->ports + 62) / 64;
    p->link = ARENA_NEW_N(p->a, (size_t)p->n * p->ports + 1, uint32_t);
    memset(p->link, 0xff, (size_t)p->n * p->ports * sizeof(*p->link));
    for (uint32_t s = 0; s < p->n; s++) {
        const struct node *n = fabric_switch(f, s);
        for (unsigned num = 1; num <= n->num_ports; num++) {
            const struct port *port = &f->port[n->first_port + num];
            const struct node *far = fabric_peer_node(f, port);
            if (far && far->type == NODE_SWITCH)
                p->link[(size_t)s * p->ports + num] = far->sw;
        }
    }
}

// --- what changes ---

static const uint8_t drops[LFT_BLOCK] = {
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
};

static const uint8_t *old_block(const struct planning *p, uint32_t s, uint32_t b)
{
    bool none = !plan_known(p, s) || plan_blank(p, s) || b * LFT_BLOCK >= p->old->lids;
    return none ? drops : tables_row(p->old, s) + (size_t)b * LFT_BLOCK;
}

static const uint8_t *new_block(const struct planning *p, uint32_t s, uint32_t b)
{
    return b * LFT_BLOCK >= p->new_tables->lids ? drops
                                                : tables_row(p->new_tables, s) + (size_t)b * LFT_BLOCK;
}

struct comparing {
    struct planning *p;
    uint32_t tasks;
};

static void compare_task(void *arg, unsigned i)
{
    const struct comparing *c = arg;
    struct planning *p = c->p;
    uint32_t from = (uint32_t)((uint64_t)p->n * i / c->tasks);
    uint32_t to = (uint32_t)((uint64_t)p->n * (i + 1) / c->tasks);
    for (uint32_t s = from; s < to; s++) {
        bool whole = !plan_known(p, s) || plan_blank(p, s);
        if (!whole && p->old->lids == p->new_tables->lids &&
            memcmp(tables_row(p->old, s), tables_row(p->new_tables, s), p->lids) == 0)
            continue;
        for (uint32_t b = 0; b < p->blocks; b++) {
            if (whole || memcmp(old_block(p, s, b), new_block(p, s, b), LFT_BLOCK) != 0)
                p->level[(size_t)b * p->n + s] = 0;
        }
    }
}

static void mark_block(struct planning *p, uint32_t s, uint32_t b)
{
    const uint8_t *old = old_block(p, s, b), *new = new_block(p, s, b);
    for (uint32_t l = 0; l < LFT_BLOCK; l++) {
        if (old[l] == new[l])
            continue;
        uint32_t lid = b * LFT_BLOCK + l;
        p->changed[lid] |=
            CHANGED | (old[l] != LFT_DROP ? OLD_SENDS : 0) | (new[l] != LFT_DROP ? NEW_SENDS : 0);
        p->first[lid + 1]++;
        p->entries++;
    }
}

static void list_block(struct planning *p, uint32_t s, uint32_t b)
{
    const uint8_t *old = old_block(p, s, b), *new = new_block(p, s, b);
    for (uint32_t l = 0; l < LFT_BLOCK; l++) {
        if (old[l] != new[l])
            p->sw[p->first[b * LFT_BLOCK + l]++] = (uint16_t)s;
    }
}

static void each_block(struct planning *p, void (*seen)(struct planning *p, uint32_t s, uint32_t b))
{
    for (uint32_t b = 0; b < p->blocks; b++) {
        for (uint32_t s = 0; s < p->n; s++) {
            if (p->level[(size_t)b * p->n + s] != LEVEL_SAME)
                seen(p, s, b);
        }
    }
}

static void find_changes(struct planning *p)
{
    struct comparing c = {p, p->par && p->par->width > 1 ? p->par->width : 1};
    p->level = ARENA_NEW_N(p->a, (size_t)p->blocks * p->n + 1, uint8_t);
    memset(p->level, LEVEL_SAME, (size_t)p->blocks * p->n);
    if (p->par) {
        p->par->run(p->par, c.tasks, compare_task, &c);
    } else {
        compare_task(&c, 0);
    }
    p->first = ARENA_NEW_N(p->a, p->lids + 2, uint32_t);
    each_block(p, mark_block);
    if (p->entries > LISTED_MAX) {
        p->first = NULL;
        return;
    }
    p->sw = ARENA_NEW_N(p->a, p->entries + 1, uint16_t);
    for (uint32_t lid = 0; lid < p->lids; lid++)
        p->first[lid + 1] += p->first[lid];
    each_block(p, list_block);
    memmove(p->first + 1, p->first, p->lids * sizeof(*p->first)); // each had moved on to the next one's start
    p->first[0] = 0;
}

// What a plan lies in; route_plan_free() frees the arena.
struct plan_box {
    struct route_plan plan; // first
    struct arena *a;
};

// --- waves ---

// The same blocks by switch.
static void index_wave(const struct planning *p, struct arena *a, struct route_wave *w)
{
    w->first = ARENA_NEW_N(a, p->n + 2, uint32_t);
    w->of_switch = ARENA_NEW_N(a, w->num_blocks + 1, uint32_t);
    for (uint32_t i = 0; i < w->num_blocks; i++)
        w->first[w->block[i].sw + 2]++;
    for (uint32_t i = 2; i < p->n + 2; i++)
        w->first[i] += w->first[i - 1];
    for (uint32_t i = 0; i < w->num_blocks; i++)
        w->of_switch[w->first[w->block[i].sw + 1]++] = i;
}

static void count_blocks(const struct planning *p, uint32_t num[LEVELS_MAX])
{
    for (size_t i = 0; i < (size_t)p->blocks * p->n; i++) {
        if (p->level[i] != LEVEL_SAME)
            num[p->level[i]]++;
    }
}

// Block by block over all switches, so that switches take turns.
static void fill_waves(const struct planning *p, struct arena *a, struct route_plan *plan, uint32_t first,
                       struct fabric_tables *tables)
{
    uint32_t num[LEVELS_MAX] = {0}, fill[LEVELS_MAX] = {0};
    count_blocks(p, num);
    for (uint32_t i = 0; i < LEVELS_MAX && num[i] > 0; i++) {
        struct route_wave *w = &plan->wave[first + i];
        w->block = ARENA_NEW_N(a, num[i], struct route_block);
        w->num_blocks = num[i];
        w->tables = tables_ref(tables);
        plan->num_waves = first + i + 1;
    }
    for (uint32_t b = 0; b < p->blocks; b++) {
        for (uint32_t s = 0; s < p->n; s++) {
            uint8_t level = p->level[(size_t)b * p->n + s];
            if (level != LEVEL_SAME)
                plan->wave[first + level].block[fill[level]++] =
                    (struct route_block){.sw = s, .block = (uint16_t)b};
        }
    }
    for (uint32_t i = first; i < plan->num_waves; i++)
        index_wave(p, a, &plan->wave[i]);
}

static bool drops_in(const struct planning *p, uint32_t s, uint32_t b)
{
    const uint8_t *old = old_block(p, s, b), *new = new_block(p, s, b);
    for (uint32_t l = 0; l < LFT_BLOCK; l++) {
        if (p->dropped[b * LFT_BLOCK + l] && old[l] != new[l] && old[l] != LFT_DROP)
            return true;
    }
    return false;
}

// The wave of drops: also blanks switches of which nothing is known.
static void fill_drops(const struct planning *p, struct arena *a, uint16_t top, struct route_wave *w)
{
    struct fabric_tables *t = tables_new(p->f, top, p->old->engine);
    for (uint32_t s = 0; s < p->n; s++) {
        for (uint32_t b = 0; b < p->blocks && b * LFT_BLOCK < t->lids; b++)
            memcpy(tables_row(t, s) + (size_t)b * LFT_BLOCK, old_block(p, s, b), LFT_BLOCK);
    }
    w->tables = t;
    for (int pass = 0; pass < 2; pass++) {
        w->num_blocks = 0;
        for (uint32_t b = 0; b < p->blocks; b++) {
            for (uint32_t s = 0; s < p->n; s++) {
                if (p->level[(size_t)b * p->n + s] == LEVEL_SAME || (plan_known(p, s) && !drops_in(p, s, b)))
                    continue;
                if (pass == 1) {
                    w->block[w->num_blocks] = (struct route_block){.sw = s, .block = (uint16_t)b};
                    uint8_t *row = tables_row(t, s) + (size_t)b * LFT_BLOCK;
                    for (uint32_t l = 0; l < LFT_BLOCK; l++) {
                        if (p->dropped[b * LFT_BLOCK + l] && row[l] != new_block(p, s, b)[l])
                            row[l] = LFT_DROP;
                    }
                }
                w->num_blocks++;
            }
        }
        if (pass == 0)
            w->block = ARENA_NEW_N(a, w->num_blocks + 1, struct route_block);
    }
    index_wave(p, a, w);
    tables_seal(t, false);
}

static struct fabric_tables *last_tables(const struct planning *p, uint16_t top)
{
    if (p->new_tables->lids >= p->lids)
        return tables_ref(p->new_tables);
    struct fabric_tables *t = tables_new(p->f, top, p->new_tables->engine);
    for (uint32_t s = 0; s < p->n; s++)
        memcpy(tables_row(t, s), tables_row(p->new_tables, s), p->new_tables->lids);
    t->top_lid = p->new_tables->top_lid;
    tables_seal(t, false);
    return t;
}

static struct route_plan *make_waves(const struct planning *p)
{
    struct arena *a = arena_new();
    struct plan_box *box = ARENA_NEW(a, struct plan_box);
    struct route_plan *plan = &box->plan;
    uint16_t top = p->old->lids > p->new_tables->lids ? (uint16_t)(p->old->lids - 1) : p->new_tables->top_lid;
    box->a = a;
    plan->entries = p->entries;
    plan->lanes_changed = p->lanes_changed;
    plan->num_stale = p->num_stale;
    plan->stale = arena_memdup(a, p->stale_list, p->num_stale * sizeof(*p->stale_list));
    for (uint32_t lid = 0; lid < p->lids; lid++) {
        plan->unsafe_dests += p->loops[lid] || p->turns[lid] || p->dropped[lid];
        plan->dropped_dests += p->dropped[lid];
    }
    plan->drops = plan->dropped_dests > 0;
    for (uint32_t s = 0; s < p->n; s++)
        plan->drops |= !plan_known(p, s);
    if (plan->drops)
        fill_drops(p, a, top, &plan->wave[plan->num_waves++]);
    struct fabric_tables *last = last_tables(p, top);
    fill_waves(p, a, plan, plan->num_waves, last);
    tables_unref(last);
    return plan;
}

int route_plan_proved(const struct fabric *f, const struct fabric_tables *old, const bool *known,
                      const bool *blank, const struct fabric_tables *new_tables,
                      const struct route_proof_state *state, struct par *par, struct route_plan **ret,
                      struct err *e)
{
    if (old->num_switches != f->num_switches || new_tables->num_switches != f->num_switches)
        return err_set(e, -EINVAL, NULL, "tables of %u and %u switches for a fabric of %u", old->num_switches,
                       new_tables->num_switches, f->num_switches);
    struct planning p = {.f = f, .old = old, .new_tables = new_tables, .known = known, .blank = blank};
    p.state = state;
    p.par = par;
    p.a = arena_new();
    p.n = f->num_switches;
    p.lids = old->lids > new_tables->lids ? old->lids : new_tables->lids;
    p.blocks = p.lids / LFT_BLOCK;
    p.changed = ARENA_NEW_N(p.a, p.lids + 1, uint8_t);
    p.loops = ARENA_NEW_N(p.a, p.lids + 1, bool);
    p.turns = ARENA_NEW_N(p.a, p.lids + 1, bool);
    p.dropped = ARENA_NEW_N(p.a, p.lids + 1, bool);
    read_links(&p);
    plan_lanes_find(&p);
    find_changes(&p);
    if (p.entries > 0) {
        plan_find_mixes(&p);
        plan_order(&p);
    }
    *ret = make_waves(&p);
    arena_free(p.a);
    return 0;
}

int route_plan_make(const struct fabric *f, const struct fabric_tables *old, const bool *known,
                    const bool *blank, const struct fabric_tables *new_tables, struct par *par,
                    struct route_plan **ret, struct err *e)
{
    return route_plan_proved(f, old, known, blank, new_tables, NULL, par, ret, e);
}

void route_plan_free(struct route_plan *p)
{
    if (!p)
        return;
    struct arena *a = ((struct plan_box *)p)->a;
    for (uint32_t i = 0; i < ROUTE_WAVES_MAX; i++)
        tables_unref(p->wave[i].tables);
    arena_free(a);
}
