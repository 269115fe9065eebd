// SPDX-License-Identifier: Apache-2.0
// What mixes of old and new entries can do: loops, and turns that neither table makes.
#include "routing/plan_priv.h"

#include <string.h>

#include "routing/verify_priv.h"

// --- loops ---

void plan_search_init(const struct planning *p, struct plan_search *w, struct arena *a)
{
    w->round = 0;
    w->seen = ARENA_NEW_N(a, p->n + 1, uint32_t);
    w->stage = ARENA_NEW_N(a, p->n + 1, uint8_t);
    w->stack = ARENA_NEW_N(a, p->n + 1, uint32_t);
}

// Whether v may have its old (stage 0) or new (stage 1) entry.
static bool may_have(const struct planning *p, uint32_t v, uint32_t lid, unsigned stage, uint32_t wave)
{
    if (wave == NO_SWITCH)
        return true;
    uint8_t level = p->level[(size_t)(lid / LFT_BLOCK) * p->n + v];
    if (level == LEVEL_SAME || level == wave)
        return true;
    return stage == 0 ? level > wave : level < wave;
}

static bool circle_from(const struct planning *p, struct plan_search *w, uint32_t lid, uint32_t from,
                        uint32_t wave)
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
        if (!may_have(p, v, lid, stage, wave))
            continue;
        uint32_t x = plan_far(p, v, stage == 0 ? plan_old(p, v, lid) : plan_new(p, v, lid));
        if (x == NO_SWITCH || w->seen[x] == done)
            continue;
        if (w->seen[x] == on)
            return true;
        w->seen[x] = on;
        w->stage[x] = 0;
        w->stack[++top] = x;
    }
}

bool plan_has_loop(const struct planning *p, struct plan_search *w, uint32_t lid, uint32_t wave)
{
    w->round++;
    for (uint32_t i = 0, s; (s = plan_changing(p, lid, &i)) != NO_SWITCH;) {
        if (circle_from(p, w, lid, s, wave))
            return true;
    }
    return false;
}

static void loop_task(void *arg, unsigned block)
{
    struct planning *p = arg;
    struct arena *a = NULL;
    struct plan_search w;
    for (uint32_t lid = block * LFT_BLOCK; lid < (block + 1) * LFT_BLOCK; lid++) {
        if (p->changed[lid] != MIXES)
            continue;
        if (!a) {
            a = arena_new();
            plan_search_init(p, &w, a);
        }
        p->loops[lid] = plan_has_loop(p, &w, lid, NO_SWITCH);
    }
    arena_free(a);
}

// --- turns ---

static void add_turn(const struct planning *p, uint64_t *dep, uint32_t v, uint8_t in, uint32_t w, uint8_t out)
{
    size_t chan = (size_t)v * p->ports + in;
    if (plan_far(p, w, out) != NO_SWITCH)
        dep[chan * p->words + (out - 1u) / 64] |= 1ULL << ((out - 1u) % 64);
}

bool plan_bad_turn(const struct planning *p, uint32_t v, uint8_t in, uint32_t w, uint8_t out)
{
    size_t a = (size_t)v * p->ports + in, b = (size_t)w * p->ports + out;
    if (!p->order || p->dep[a * p->words + (out - 1u) / 64] >> ((out - 1u) % 64) & 1)
        return false;
    return p->order[a] >= p->order[b];
}

// Turns that only a mix makes for one destination; returns whether there are any. With `dep` they are added
// to it, without it the answer is whether one of them must not be. Where switches are to be written from the
// destination outward, a new entry never leads to an old one that changes.
static bool mixed_turns(const struct planning *p, uint32_t lid, uint64_t *dep)
{
    bool any = false;
    for (uint32_t k = 0, v; (v = plan_changing(p, lid, &k)) != NO_SWITCH;) {
        uint8_t ports[2] = {plan_old(p, v, lid), plan_new(p, v, lid)};
        for (unsigned i = 0; i < (p->loops[lid] ? 1 : 2); i++) {
            uint32_t w = plan_far(p, v, ports[i]);
            if (w == NO_SWITCH)
                continue;
            uint8_t out[2] = {plan_old(p, w, lid), plan_new(p, w, lid)};
            // With an unchanged entry at either switch the turn is one table's own.
            if (out[0] == out[1] || plan_far(p, w, out[1 - i]) == NO_SWITCH)
                continue;
            if (dep) {
                add_turn(p, dep, v, ports[i], w, out[1 - i]);
                any = true;
            } else {
                any |= plan_bad_turn(p, v, ports[i], w, out[1 - i]);
            }
        }
    }
    return any;
}

// The turn that v's entry and the next one make, in old or new tables; false when there is none.
struct turn {
    uint32_t v, w;
    uint8_t in, out;
};

static bool turn_of(const struct planning *p, uint32_t v, uint32_t lid, bool old, struct turn *ret)
{
    ret->v = v;
    ret->in = old ? plan_old(p, v, lid) : plan_new(p, v, lid);
    ret->w = plan_far(p, v, ret->in);
    if (ret->w == NO_SWITCH)
        return false;
    ret->out = old ? plan_old(p, ret->w, lid) : plan_new(p, ret->w, lid);
    return plan_far(p, ret->w, ret->out) != NO_SWITCH;
}

// By blocks, as the entries of a switch and its neighbours for a block lie in a few cache lines.
static void table_turns(const struct planning *p, uint64_t *old_dep, uint64_t *new_dep)
{
    struct turn t;
    for (uint32_t lid0 = 0; lid0 < p->lids; lid0 += LFT_BLOCK) {
        for (uint32_t v = 0; v < p->n; v++) {
            for (uint32_t lid = lid0; lid < lid0 + LFT_BLOCK; lid++) {
                if (turn_of(p, v, lid, true, &t))
                    add_turn(p, old_dep, v, t.in, t.w, t.out);
                if (turn_of(p, v, lid, false, &t))
                    add_turn(p, new_dep, v, t.in, t.w, t.out);
            }
        }
    }
}

static uint32_t num_changing(const struct planning *p, uint32_t lid)
{
    return p->first ? p->first[lid + 1] - p->first[lid] : p->n;
}

// Old turns that differ from the new ones', at switches that change and into them, or, where those are many,
// all: added to dep, or, without it, whether one of them must not be.
static bool old_turns(const struct planning *p, uint32_t lid, uint64_t *dep)
{
    bool bad = false, all = num_changing(p, lid) * p->ports > p->n;
    uint32_t ways = all ? 1 : p->ports;
    struct turn t;
    for (uint32_t k = 0, v;
         (v = all ? (k < p->n ? k++ : NO_SWITCH) : plan_changing(p, lid, &k)) != NO_SWITCH;) {
        for (uint32_t i = 0; i < ways; i++) {
            uint32_t x = i == 0 ? v : plan_far(p, v, (uint8_t)i);
            if (x == NO_SWITCH || (i > 0 && plan_far(p, x, plan_old(p, x, lid)) != v) ||
                !turn_of(p, x, lid, true, &t))
                continue;
            if (dep)
                add_turn(p, dep, x, t.in, t.w, t.out);
            else
                bad |= plan_bad_turn(p, x, t.in, t.w, t.out);
        }
    }
    return bad;
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
                    size_t to = (size_t)p->link[chan] * p->ports + i * 64 + (size_t)__builtin_ctzll(bits) + 1;
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

// An order of channels that the turns of both tables keep to; else one that the new tables' turns keep to, if
// the old ones were free of cycles too: then what turns against it in the old tables goes first. False when
// there is none of either kind, or when the mixes do not matter.
static bool order_with(struct planning *p, uint64_t *dep, uint64_t *new_dep, bool old_sound, uint32_t *order)
{
    for (size_t i = 0; i < (size_t)p->n * p->ports * p->words; i++)
        dep[i] |= new_dep[i];
    p->dep = dep;
    if (sort_channels(p, dep, p->mix, order))
        return false;
    if (sort_channels(p, dep, NULL, order))
        return true;
    p->dep = new_dep;
    p->stale = old_sound && sort_channels(p, new_dep, NULL, order);
    return p->stale;
}

static bool find_order(struct planning *p, uint32_t *order)
{
    size_t size = (size_t)p->n * p->ports * p->words;
    const uint64_t *proved = p->state ? vstate_turns(p->state, p->n, p->ports, p->words) : NULL;
    uint64_t *new_dep = ARENA_NEW_N(p->a, size + 1, uint64_t), *dep = ARENA_NEW_N(p->a, size + 1, uint64_t);
    if (proved && sort_channels(p, proved, NULL, order)) {
        memcpy(new_dep, proved, size * sizeof(*proved));
        for (uint32_t lid = 1; lid < p->lids; lid++) {
            if (p->changed[lid] & OLD_SENDS)
                old_turns(p, lid, dep);
        }
        return order_with(p, dep, new_dep, true, order);
    }
    // What a proof leaves may be more than there need be: the tables themselves decide.
    table_turns(p, dep, new_dep);
    bool old_sound = sort_channels(p, dep, NULL, order);
    return order_with(p, dep, new_dep, old_sound, order);
}

static void turn_task(void *arg, unsigned block)
{
    struct planning *p = arg;
    for (uint32_t lid = block * LFT_BLOCK; lid < (block + 1) * LFT_BLOCK; lid++) {
        if (p->stale && (p->changed[lid] & OLD_SENDS))
            p->dropped[lid] = old_turns(p, lid, NULL);
        if (p->changed[lid] == MIXES && !p->dropped[lid])
            p->turns[lid] = mixed_turns(p, lid, NULL);
    }
}

static void check_turns(struct planning *p)
{
    size_t chans = (size_t)p->n * p->ports;
    uint64_t swap = 0; // what old and new turns make together, mixes or not
    p->mix = ARENA_NEW_N(p->a, chans * p->words + 1, uint64_t);
    for (uint32_t lid = 1; lid < p->lids; lid++) {
        if (p->changed[lid] == MIXES)
            mixed_turns(p, lid, p->mix);
        swap |= p->changed[lid] & OLD_SENDS;
    }
    if (!swap)
        return;
    uint32_t *order = ARENA_NEW_N(p->a, chans + 1, uint32_t);
    if (!find_order(p, order))
        return;
    p->order = order;
    plan_run(p, p->blocks, turn_task);
}

void plan_find_mixes(struct planning *p)
{
    plan_run(p, p->blocks, loop_task);
    check_turns(p);
}
