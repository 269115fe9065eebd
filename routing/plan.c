// SPDX-License-Identifier: Apache-2.0
// Writing new tables over old ones. While a wave is under way any switch may hold its old or its new entry,
// so per destination all mixes must be harmless:
//   no loop      the graph of old and new next hops together has no cycle;
//   no deadlock  a mix can make packets turn from one cable into another where neither table does. All turns
//                of the old tables, of the new ones and of the mixes are put into one dependency graph; when
//                it has a cycle and the tables alone have none, the destinations whose mixes add a turn
//                against a topological order of the tables' graph are unsafe. When the tables alone have a
//                cycle (old ones of a foreign engine) there is no order to keep, and only loops count.
// Packets may start at any switch, so all switches' entries count, used by a path or not.
//
// An unsafe destination's changing entries are set to LFT_DROP in wave 0: then a mix is part of the old
// tables in wave 0, and of the new ones in wave 1.
//
// A switch whose old table is not known may send anything anywhere, and no mix with it can be proved: wave 0
// blanks it whole, wave 1 writes it whole. Its traffic stops for the time between; so read tables first where
// they can be read. A switch that forwards nothing (blank) is written whole in wave 1, as the content of its
// blocks after a reset is not defined.
//
// A destination whose changing entries are all LFT_DROP before, or all after, is safe without a look: a cold
// start costs one comparison. A loop that a mix makes passes a switch whose entry changes, so only those are
// looked at: the cost is that of the comparison and of the changes, plus O(switches x LIDs) when mixes add
// turns. The new tables themselves are taken as proved. Memory: one table, for wave 0, if there is one, and
// two bytes a change up to LISTED_MAX.
#include "routing/route.h"

#include <errno.h>
#include <string.h>

#include "lib/arena.h"
#include "lib/err.h"

#define NO_SWITCH 0xffffffffu

struct planning {
    const struct fabric *f;
    const struct fabric_tables *old, *new_tables;
    const bool *known, *blank;
    struct par *par;
    struct arena *a;
    uint32_t n, ports, words, lids, blocks;
    uint32_t *link;   // [switch * ports + port]: switch at the far end, or NO_SWITCH
    uint8_t *changed; // per LID: CHANGED, OLD_SENDS, NEW_SENDS
    uint32_t *first;  // lids + 1: changing switches of a LID are sw[first[lid]] ..; NULL when too many
    uint16_t *sw;
    bool *unsafe;    // per LID
    uint64_t *dep;   // [channel * words]: turns of both tables
    uint64_t *mix;   // the same, of mixes
    uint32_t *order; // per channel: topological position
};
#define CHANGED 1
#define OLD_SENDS 2 // a changing entry forwards before
#define NEW_SENDS 4 // or after
#define LISTED_MAX 8000000u
#define MIXES (CHANGED | OLD_SENDS | NEW_SENDS)

struct plan_box {
    struct route_plan plan; // first
    struct arena *a;
};

static bool is_known(const struct planning *p, uint32_t s)
{
    return !p->known || p->known[s];
}

static bool is_blank(const struct planning *p, uint32_t s)
{
    return p->blank && p->blank[s];
}

// The entry a switch has when wave 1 begins, but for unsafe destinations.
static uint8_t old_port(const struct planning *p, uint32_t s, uint32_t lid)
{
    if (!is_known(p, s) || is_blank(p, s) || lid >= p->old->lids)
        return LFT_DROP;
    return tables_row(p->old, s)[lid];
}

static uint8_t new_port(const struct planning *p, uint32_t s, uint32_t lid)
{
    return lid < p->new_tables->lids ? tables_row(p->new_tables, s)[lid] : LFT_DROP;
}

static uint32_t far_switch(const struct planning *p, uint32_t s, uint8_t port)
{
    return port > 0 && port < p->ports ? p->link[(size_t)s * p->ports + port] : NO_SWITCH;
}

static void read_links(struct planning *p)
{
    const struct fabric *f = p->f;
    for (uint32_t s = 0; s < p->n; s++) {
        uint32_t ports = fabric_switch(f, s)->num_ports + 1u;
        p->ports = ports > p->ports ? ports : p->ports;
    }
    p->words = (p->ports + 63) / 64;
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

// Calls back for every entry that changes.
static uint64_t each_change(struct planning *p, void (*seen)(struct planning *p, uint32_t s, uint32_t lid))
{
    uint64_t entries = 0;
    for (uint32_t s = 0; s < p->n; s++) {
        const uint8_t *a = tables_row(p->old, s), *b = tables_row(p->new_tables, s);
        bool plain = is_known(p, s) && !is_blank(p, s);
        for (uint32_t lid = 0; lid < p->lids; lid += LFT_BLOCK) {
            if (plain && lid < p->old->lids && lid < p->new_tables->lids &&
                memcmp(a + lid, b + lid, LFT_BLOCK) == 0)
                continue;
            for (uint32_t l = lid; l < lid + LFT_BLOCK; l++) {
                if (old_port(p, s, l) == new_port(p, s, l))
                    continue;
                entries++;
                seen(p, s, l);
            }
        }
    }
    return entries;
}

static void mark_change(struct planning *p, uint32_t s, uint32_t lid)
{
    bool before = old_port(p, s, lid) != LFT_DROP, after = new_port(p, s, lid) != LFT_DROP;
    p->changed[lid] |= CHANGED | (before ? OLD_SENDS : 0) | (after ? NEW_SENDS : 0);
    p->first[lid + 1]++;
}

static void list_change(struct planning *p, uint32_t s, uint32_t lid)
{
    p->sw[p->first[lid]++] = (uint16_t)s;
}

static uint64_t find_changes(struct planning *p)
{
    p->first = ARENA_NEW_N(p->a, p->lids + 2, uint32_t);
    uint64_t entries = each_change(p, mark_change);
    if (entries > LISTED_MAX) {
        p->first = NULL;
        return entries;
    }
    p->sw = ARENA_NEW_N(p->a, entries + 1, uint16_t);
    for (uint32_t lid = 0; lid < p->lids; lid++)
        p->first[lid + 1] += p->first[lid];
    each_change(p, list_change);
    memmove(p->first + 1, p->first, p->lids * sizeof(*p->first)); // each had moved on to the next one's start
    p->first[0] = 0;
    return entries;
}

// The i-th switch whose entry for a LID changes, from *i on, or NO_SWITCH.
static uint32_t next_changing(const struct planning *p, uint32_t lid, uint32_t *i)
{
    if (p->first) {
        uint32_t k = p->first[lid] + (*i)++;
        return k < p->first[lid + 1] ? p->sw[k] : NO_SWITCH;
    }
    while (*i < p->n) {
        uint32_t s = (*i)++;
        if (old_port(p, s, lid) != new_port(p, s, lid))
            return s;
    }
    return NO_SWITCH;
}

// --- loops ---

struct search {
    uint32_t *seen; // per switch: 2 * round when on the stack, 2 * round + 1 when done
    uint32_t round;
    uint8_t *stage;
    uint32_t *stack;
};

// Whether old and new entries for a LID together lead from `from` in a circle.
static bool circle_from(const struct planning *p, struct search *w, uint32_t lid, uint32_t from)
{
    uint32_t top = 0, on = 2 * w->round, done = on + 1;
    if (w->seen[from] == done)
        return false;
    w->stack[0] = from;
    w->seen[from] = on;
    w->stage[from] = 0;
    for (;;) {
        uint32_t v = w->stack[top], stage = w->stage[v]++;
        if (stage == 2) {
            w->seen[v] = done;
            if (top-- == 0)
                return false;
            continue;
        }
        uint32_t x = far_switch(p, v, stage == 0 ? old_port(p, v, lid) : new_port(p, v, lid));
        if (x == NO_SWITCH || w->seen[x] == done)
            continue;
        if (w->seen[x] == on)
            return true;
        w->seen[x] = on;
        w->stage[x] = 0;
        w->stack[++top] = x;
    }
}

static bool has_loop(const struct planning *p, struct search *w, uint32_t lid)
{
    w->round++;
    for (uint32_t i = 0, s; (s = next_changing(p, lid, &i)) != NO_SWITCH;) {
        if (circle_from(p, w, lid, s))
            return true;
    }
    return false;
}

static void search_init(const struct planning *p, struct search *w, struct arena *a)
{
    w->round = 0;
    w->seen = ARENA_NEW_N(a, p->n + 1, uint32_t);
    w->stage = ARENA_NEW_N(a, p->n + 1, uint8_t);
    w->stack = ARENA_NEW_N(a, p->n + 1, uint32_t);
}

static void loop_task(void *arg, unsigned block)
{
    struct planning *p = arg;
    struct arena *a = NULL;
    struct search w;
    for (uint32_t lid = block * LFT_BLOCK; lid < (block + 1) * LFT_BLOCK; lid++) {
        if (p->changed[lid] != MIXES)
            continue;
        if (!a) {
            a = arena_new();
            search_init(p, &w, a);
        }
        p->unsafe[lid] = has_loop(p, &w, lid);
    }
    arena_free(a);
}

static void run(struct planning *p, unsigned n, void (*task)(void *arg, unsigned i))
{
    if (p->par) {
        p->par->run(p->par, n, task, p);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        task(p, i);
}

// --- turns ---

static void add_turn(const struct planning *p, uint64_t *dep, uint32_t v, uint8_t in, uint32_t w, uint8_t out)
{
    size_t chan = (size_t)v * p->ports + in;
    if (far_switch(p, w, out) != NO_SWITCH)
        dep[chan * p->words + out / 64] |= 1ULL << (out % 64);
}

// Turns that only a mix makes for one destination; returns whether there are any. With `dep` they are added
// to it, without it the answer is whether one goes against the order and is not the tables' own.
static bool mixed_turns(const struct planning *p, uint32_t lid, uint64_t *dep)
{
    bool any = false;
    for (uint32_t k = 0, v; (v = next_changing(p, lid, &k)) != NO_SWITCH;) {
        uint8_t ports[2] = {old_port(p, v, lid), new_port(p, v, lid)};
        for (unsigned i = 0; i < 2; i++) {
            uint32_t w = far_switch(p, v, ports[i]);
            if (w == NO_SWITCH)
                continue;
            uint8_t out[2] = {old_port(p, w, lid), new_port(p, w, lid)};
            // With an unchanged entry at either switch the turn is one table's own.
            if (out[0] == out[1] || far_switch(p, w, out[1 - i]) == NO_SWITCH)
                continue;
            size_t a = (size_t)v * p->ports + ports[i], b = (size_t)w * p->ports + out[1 - i];
            if (dep) {
                add_turn(p, dep, v, ports[i], w, out[1 - i]);
                any = true;
            } else if (!(p->dep[a * p->words + out[1 - i] / 64] >> (out[1 - i] % 64) & 1)) {
                any |= p->order[a] >= p->order[b];
            }
        }
    }
    return any;
}

static void turns_of(const struct planning *p, uint32_t v, uint32_t lid)
{
    uint8_t x = old_port(p, v, lid), y = new_port(p, v, lid);
    uint32_t w = far_switch(p, v, x);
    if (w != NO_SWITCH)
        add_turn(p, p->dep, v, x, w, old_port(p, w, lid));
    w = far_switch(p, v, y);
    if (w != NO_SWITCH)
        add_turn(p, p->dep, v, y, w, new_port(p, w, lid));
}

// By blocks, as the entries of a switch and its neighbours for a block lie in a few cache lines.
static void table_turns(const struct planning *p)
{
    for (uint32_t lid0 = 0; lid0 < p->lids; lid0 += LFT_BLOCK) {
        for (uint32_t v = 0; v < p->n; v++) {
            for (uint32_t lid = lid0; lid < lid0 + LFT_BLOCK; lid++)
                turns_of(p, v, lid);
        }
    }
}

// Kahn's order of channels over dep and, if given, more; false when there is a cycle.
static bool sort_channels(const struct planning *p, const uint64_t *dep, const uint64_t *more,
                          uint32_t *order)
{
    size_t chans = (size_t)p->n * p->ports, done = 0, head = 0;
    struct arena *a = arena_new();
    uint32_t *degree = ARENA_NEW_N(a, chans + 1, uint32_t), *queue = ARENA_NEW_N(a, chans + 1, uint32_t);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t c = 0; pass == 0 ? c < chans : head < done;) {
            size_t chan = pass == 0 ? c++ : queue[head++];
            if (pass == 1)
                order[chan] = (uint32_t)head;
            for (uint32_t i = 0; i < p->words; i++) {
                uint64_t bits = dep[chan * p->words + i] | (more ? more[chan * p->words + i] : 0);
                for (; bits; bits &= bits - 1) {
                    size_t to = (size_t)p->link[chan] * p->ports + i * 64 + (size_t)__builtin_ctzll(bits);
                    if (pass == 0)
                        degree[to]++;
                    else if (--degree[to] == 0)
                        queue[done++] = (uint32_t)to;
                }
            }
        }
        for (size_t c = 0; pass == 0 && c < chans; c++) {
            if (degree[c] == 0)
                queue[done++] = (uint32_t)c;
        }
    }
    arena_free(a);
    return done == chans;
}

static void turn_task(void *arg, unsigned block)
{
    struct planning *p = arg;
    for (uint32_t lid = block * LFT_BLOCK; lid < (block + 1) * LFT_BLOCK; lid++) {
        if (p->changed[lid] == MIXES && !p->unsafe[lid])
            p->unsafe[lid] = mixed_turns(p, lid, NULL);
    }
}

static void check_turns(struct planning *p)
{
    size_t chans = (size_t)p->n * p->ports;
    bool any = false;
    p->mix = ARENA_NEW_N(p->a, chans * p->words + 1, uint64_t);
    for (uint32_t lid = 1; lid < p->lids; lid++) {
        if (p->changed[lid] == MIXES && !p->unsafe[lid])
            any |= mixed_turns(p, lid, p->mix);
    }
    if (!any)
        return;
    p->dep = ARENA_NEW_N(p->a, chans * p->words + 1, uint64_t);
    p->order = ARENA_NEW_N(p->a, chans + 1, uint32_t);
    table_turns(p);
    if (sort_channels(p, p->dep, p->mix, p->order) || !sort_channels(p, p->dep, NULL, p->order))
        return;
    run(p, p->blocks, turn_task);
}

// --- waves ---

static bool differs(const struct fabric_tables *a, const struct fabric_tables *b, uint32_t s, uint32_t block)
{
    uint8_t drop[LFT_BLOCK];
    memset(drop, LFT_DROP, sizeof(drop));
    uint32_t lid = block * LFT_BLOCK;
    const uint8_t *x = lid < a->lids ? tables_row(a, s) + lid : drop;
    const uint8_t *y = lid < b->lids ? tables_row(b, s) + lid : drop;
    return memcmp(x, y, LFT_BLOCK) != 0;
}

// Blocks that differ between what is there and what the wave's tables say, and those of switches that are to
// be written whole; block by block over all switches, so that switches take turns.
static void list_blocks(const struct planning *p, struct arena *a, const struct fabric_tables *from,
                        bool first, struct route_wave *w)
{
    for (int pass = 0; pass < 2; pass++) {
        w->num_blocks = 0;
        for (uint32_t b = 0; b < p->blocks; b++) {
            for (uint32_t s = 0; s < p->n; s++) {
                bool whole = !is_known(p, s) || (is_blank(p, s) && !first);
                bool skip = is_blank(p, s) && is_known(p, s) && first;
                if (!whole && (skip || !differs(from, w->tables, s, b)))
                    continue;
                if (pass == 1)
                    w->block[w->num_blocks] = (struct route_block){.sw = s, .block = (uint16_t)b};
                w->num_blocks++;
            }
        }
        if (pass == 0)
            w->block = ARENA_NEW_N(a, w->num_blocks + 1, struct route_block);
    }
}

static struct fabric_tables *blanked(const struct planning *p, uint16_t top)
{
    struct fabric_tables *t = tables_new(p->f, top, p->old->engine);
    for (uint32_t s = 0; s < p->n; s++) {
        uint8_t *row = tables_row(t, s);
        for (uint32_t lid = 0; lid < p->lids && lid < t->lids; lid++) {
            uint8_t x = old_port(p, s, lid);
            row[lid] = p->unsafe[lid] && x != new_port(p, s, lid) ? LFT_DROP : x;
        }
    }
    tables_seal(t, false);
    return t;
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

static struct route_plan *make_waves(const struct planning *p, uint64_t entries)
{
    struct arena *a = arena_new();
    struct plan_box *box = ARENA_NEW(a, struct plan_box);
    struct route_plan *plan = &box->plan;
    uint16_t top = p->old->lids > p->new_tables->lids ? (uint16_t)(p->old->lids - 1) : p->new_tables->top_lid;
    bool blank_first = false;
    box->a = a;
    plan->entries = entries;
    for (uint32_t lid = 0; lid < p->lids; lid++)
        plan->unsafe_dests += p->unsafe[lid];
    for (uint32_t s = 0; s < p->n; s++)
        blank_first |= !is_known(p, s);
    const struct fabric_tables *from = p->old;
    if (blank_first || plan->unsafe_dests > 0) {
        struct route_wave *w = &plan->wave[plan->num_waves++];
        w->tables = blanked(p, top);
        list_blocks(p, a, p->old, true, w);
        from = w->tables;
    }
    struct route_wave *w = &plan->wave[plan->num_waves];
    w->tables = last_tables(p, top);
    list_blocks(p, a, from, false, w);
    if (w->num_blocks > 0 || plan->num_waves > 0) {
        plan->num_waves++;
    } else {
        tables_unref(w->tables);
        w->tables = NULL;
    }
    return plan;
}

int route_plan_make(const struct fabric *f, const struct fabric_tables *old, const bool *known,
                    const bool *blank, const struct fabric_tables *new_tables, struct par *par,
                    struct route_plan **ret, struct err *e)
{
    if (old->num_switches != f->num_switches || new_tables->num_switches != f->num_switches)
        return err_set(e, -EINVAL, NULL, "tables of %u and %u switches for a fabric of %u", old->num_switches,
                       new_tables->num_switches, f->num_switches);
    struct planning p = {.f = f, .old = old, .new_tables = new_tables, .known = known, .blank = blank};
    p.par = par;
    p.a = arena_new();
    p.n = f->num_switches;
    p.lids = old->lids > new_tables->lids ? old->lids : new_tables->lids;
    p.blocks = p.lids / LFT_BLOCK;
    p.changed = ARENA_NEW_N(p.a, p.lids + 1, uint8_t);
    p.unsafe = ARENA_NEW_N(p.a, p.lids + 1, bool);
    read_links(&p);
    uint64_t entries = find_changes(&p);
    if (entries > 0) {
        run(&p, p.blocks, loop_task);
        check_turns(&p);
    }
    *ret = make_waves(&p, entries);
    arena_free(p.a);
    return 0;
}

void route_plan_free(struct route_plan *p)
{
    if (!p)
        return;
    struct arena *a = ((struct plan_box *)p)->a;
    for (uint32_t i = 0; i < 2; i++)
        tables_unref(p->wave[i].tables);
    arena_free(a);
}
