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

static void add_turn(const struct planning *p, uint64_t *const *dep, unsigned lanes, uint32_t v, uint8_t in,
                     uint32_t w, uint8_t out)
{
    size_t chan = (size_t)v * p->ports + in;
    if (plan_far(p, w, out) == NO_SWITCH)
        return;
    for (; lanes; lanes &= lanes - 1)
        dep[__builtin_ctz(lanes)][chan * p->words + (out - 1u) / 64] |= 1ULL << ((out - 1u) % 64);
}

bool plan_bad_turn(const struct planning *p, unsigned lanes, uint32_t v, uint8_t in, uint32_t w, uint8_t out)
{
    size_t a = (size_t)v * p->ports + in, b = (size_t)w * p->ports + out;
    for (; lanes; lanes &= lanes - 1) {
        unsigned i = (unsigned)__builtin_ctz(lanes);
        if (p->order[i] && !(p->dep[i][a * p->words + (out - 1u) / 64] >> ((out - 1u) % 64) & 1) &&
            p->order[i][a] >= p->order[i][b])
            return true;
    }
    return false;
}

// Turns that only a mix makes for one destination; returns whether there are any. With `dep` they are added
// to it, without it the answer is whether one of them must not be. Where switches are to be written from the
// destination outward, a new entry never leads to an old one that changes.
static bool mixed_turns(const struct planning *p, uint32_t lid, uint64_t *const *dep)
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
                add_turn(p, dep, 1, v, ports[i], w, out[1 - i]);
                any = true;
            } else {
                any |= plan_bad_turn(p, 1, v, ports[i], w, out[1 - i]);
            }
        }
    }
    return any;
}

// The same with lanes. Packets of a lane may come by entries that do not change in a mix only, as switches
// before have sent them there: a turn is a mix's for the lanes that it has in neither table. With `dep` all
// are added to it. Without it *ret_stuck says whether one of them must not be that no order of these two
// switches prevents.
static bool mixed_lane_turns(const struct planning *p, const struct plan_lanes *l, uint32_t lid,
                             uint64_t *const *dep, bool *ret_stuck)
{
    bool any = false;
    *ret_stuck = false;
    for (uint32_t v = 0; v < p->n; v++) {
        uint8_t in[2] = {plan_old(p, v, lid), plan_new(p, v, lid)};
        for (unsigned i = 0; i < (in[0] == in[1] ? 1 : 2); i++) {
            uint32_t w = plan_far(p, v, in[i]);
            if (w == NO_SWITCH)
                continue;
            uint8_t out[2] = {plan_old(p, w, lid), plan_new(p, w, lid)};
            for (unsigned k = 0; k < (out[0] == out[1] ? 1 : 2); k++) {
                bool old = in[i] == in[0] && out[k] == out[0], new = in[i] == in[1] && out[k] == out[1];
                unsigned lanes = l->mix[v] & ~((old ? l->old[v] : 0u) | (new ? l->new[v] : 0u));
                if (lanes == 0 || plan_far(p, w, out[k]) == NO_SWITCH ||
                    (p->loops[lid] && !old && !new &&i == 1))
                    continue;
                if (dep) {
                    add_turn(p, dep, lanes, v, in[i], w, out[k]);
                } else if (plan_bad_turn(p, lanes, v, in[i], w, out[k])) {
                    any = true;
                    *ret_stuck |= old || new;
                }
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

static void table_lane_turns(const struct planning *p, uint64_t *const *old_dep, uint64_t *const *new_dep)
{
    struct arena *a = arena_new();
    struct plan_lanes l;
    struct turn t;
    plan_lanes_init(p, &l, a);
    for (uint32_t lid = 0; lid < p->lids; lid++) {
        plan_lanes_at(p, &l, lid);
        for (uint32_t v = 0; v < p->n; v++) {
            if (turn_of(p, v, lid, true, &t))
                add_turn(p, old_dep, l.old[v], v, t.in, t.w, t.out);
            if (turn_of(p, v, lid, false, &t))
                add_turn(p, new_dep, l.new[v], v, t.in, t.w, t.out);
        }
    }
    arena_free(a);
}

// By blocks, as the entries of a switch and its neighbours for a block lie in a few cache lines.
static void table_turns(const struct planning *p, uint64_t *const *old_dep, uint64_t *const *new_dep)
{
    struct turn t;
    if (p->lanes) {
        table_lane_turns(p, old_dep, new_dep);
        return;
    }
    for (uint32_t lid0 = 0; lid0 < p->lids; lid0 += LFT_BLOCK) {
        for (uint32_t v = 0; v < p->n; v++) {
            for (uint32_t lid = lid0; lid < lid0 + LFT_BLOCK; lid++) {
                if (turn_of(p, v, lid, true, &t))
                    add_turn(p, old_dep, 1, v, t.in, t.w, t.out);
                if (turn_of(p, v, lid, false, &t))
                    add_turn(p, new_dep, 1, v, t.in, t.w, t.out);
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
static bool old_turns(const struct planning *p, const struct plan_lanes *l, uint32_t lid,
                      uint64_t *const *dep)
{
    bool bad = false, all = p->lanes || num_changing(p, lid) * p->ports > p->n;
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
                add_turn(p, dep, l->old[x], x, t.in, t.w, t.out);
            else
                bad |= plan_bad_turn(p, l->old[x], x, t.in, t.w, t.out);
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
// there is none of either kind, or when the mixes do not matter. dep: of the old tables.
static bool order_with(struct planning *p, uint32_t lane, uint64_t *dep, uint64_t *new_dep, bool old_sound,
                       uint32_t *order)
{
    for (size_t i = 0; i < (size_t)p->n * p->ports * p->words; i++)
        dep[i] |= new_dep[i];
    p->dep[lane] = dep;
    if (sort_channels(p, dep, p->mix[lane], order))
        return false;
    if (sort_channels(p, dep, NULL, order))
        return true;
    p->dep[lane] = new_dep;
    p->stale[lane] = old_sound && sort_channels(p, new_dep, NULL, order);
    return p->stale[lane];
}

static void sets_new(const struct planning *p, uint64_t **ret)
{
    for (uint32_t i = 0; i < p->num_lanes; i++)
        ret[i] = ARENA_NEW_N(p->a, (size_t)p->n * p->ports * p->words + 1, uint64_t);
}

// Whether some lane has an order to keep.
static bool find_orders(struct planning *p, const struct plan_lanes *l)
{
    size_t size = (size_t)p->n * p->ports * p->words;
    const uint64_t *proved = p->state && !p->lanes ? vstate_turns(p->state, p->n, p->ports, p->words) : NULL;
    uint64_t *new_dep[LANES_MAX], *dep[LANES_MAX];
    uint32_t *order = ARENA_NEW_N(p->a, (size_t)p->n * p->ports + 1, uint32_t);
    bool any = false;
    sets_new(p, new_dep);
    sets_new(p, dep);
    if (proved && sort_channels(p, proved, NULL, order)) {
        memcpy(new_dep[0], proved, size * sizeof(*proved));
        for (uint32_t lid = 1; lid < p->lids; lid++) {
            if (p->changed[lid] & OLD_SENDS)
                old_turns(p, l, lid, dep);
        }
        any = order_with(p, 0, dep[0], new_dep[0], true, order);
        p->order[0] = any ? order : NULL;
        return any;
    }
    // What a proof leaves may be more than there need be: the tables themselves decide.
    table_turns(p, dep, new_dep);
    for (uint32_t i = 0; i < p->num_lanes; i++) {
        bool old_sound = sort_channels(p, dep[i], NULL, order);
        if (!order_with(p, i, dep[i], new_dep[i], old_sound, order))
            continue;
        any = true;
        p->order[i] = order;
        order = ARENA_NEW_N(p->a, (size_t)p->n * p->ports + 1, uint32_t);
    }
    return any;
}

static void turn_task(void *arg, unsigned block)
{
    struct planning *p = arg;
    struct arena *a = NULL;
    struct plan_lanes l;
    bool stale = false;
    for (uint32_t i = 0; i < p->num_lanes; i++)
        stale |= p->stale[i];
    for (uint32_t lid = block * LFT_BLOCK; lid < (block + 1) * LFT_BLOCK; lid++) {
        if (!(p->changed[lid] == MIXES || (stale && p->changed[lid] & OLD_SENDS)))
            continue;
        if (!a) {
            a = arena_new();
            plan_lanes_init(p, &l, a);
        }
        plan_lanes_at(p, &l, lid);
        if (stale && p->changed[lid] & OLD_SENDS)
            p->dropped[lid] = old_turns(p, &l, lid, NULL);
        if (p->changed[lid] == MIXES && !p->dropped[lid])
            p->turns[lid] =
                p->lanes ? mixed_lane_turns(p, &l, lid, NULL, &p->dropped[lid]) : mixed_turns(p, lid, NULL);
    }
    arena_free(a);
}

static void check_turns(struct planning *p)
{
    struct arena *a = arena_new();
    struct plan_lanes l;
    bool stuck;
    uint64_t swap = 0; // what old and new turns make together, mixes or not
    plan_lanes_init(p, &l, a);
    sets_new(p, p->mix);
    for (uint32_t lid = 1; lid < p->lids; lid++) {
        if (p->changed[lid] == MIXES) {
            plan_lanes_at(p, &l, lid);
            if (p->lanes)
                mixed_lane_turns(p, &l, lid, p->mix, &stuck);
            else
                mixed_turns(p, lid, p->mix);
        }
        swap |= p->changed[lid] & OLD_SENDS;
    }
    if (swap && find_orders(p, &l))
        plan_run(p, p->blocks, turn_task);
    arena_free(a);
}

void plan_find_mixes(struct planning *p)
{
    plan_run(p, p->blocks, loop_task);
    check_turns(p);
}
