// SPDX-License-Identifier: Apache-2.0
// The proof of a change: what is known of the last proved tables, carried over to the next.
//
// A LID is walked again from every source when an entry of it differs, when it hangs elsewhere, or when some
// switch's entry for it leads over a cable that is not what it was. Any other LID has, on every switch that
// was there, the same entry over the same cable: each of its walks is what it was. It is walked from switches
// that are sources now and were not, and forgets those that are none any more.
//
// Dependencies: those of the old proof over cables that are the same (a superset of what unchanged LIDs
// make), and those of the new walks. If the union has no cycle, what is there has none.
#include "routing/verify_priv.h"

#include <stdatomic.h>
#include <string.h>

struct change {
    const struct route_proof_state *old;
    const struct fabric_tables *old_t;
    struct vcables c;
    uint32_t *to_old, *from_old; // switches; ID_NONE without a counterpart
    bool *same_cable;            // per channel: leads where it led
    bool *suspect;               // per switch: it has a cable that is not what it was
    uint8_t **changed;           // per task, then per LID
    uint32_t num_tasks;
    uint16_t *lid; // to be walked again
    uint32_t num_lids;
    struct vtask *task;
    struct route_proof_state *s; // of the new
};

static bool match_switches(struct change *x, struct arena *a)
{
    const struct fabric *f = x->c.f;
    const struct route_proof_state *old = x->old;
    x->to_old = ARENA_NEW_N(a, x->c.n + 1, uint32_t);
    x->from_old = ARENA_NEW_N(a, old->n + 1, uint32_t);
    memset(x->to_old, 0xff, x->c.n * sizeof(*x->to_old));
    for (uint32_t s = 0; s < old->n; s++) {
        const struct node *n = s < x->c.n && fabric_switch(f, s)->guid == old->guid[s]
                                   ? fabric_switch(f, s)
                                   : fabric_by_guid(f, old->guid[s]);
        x->from_old[s] = n && n->type == NODE_SWITCH ? n->sw : ID_NONE;
        if (x->from_old[s] != ID_NONE)
            x->to_old[x->from_old[s]] = s;
    }
    // A pair without a path that has one now was never walked to its end.
    uint32_t *part = ARENA_NEW_N(a, x->c.n + 1, uint32_t);
    memset(part, 0xff, x->c.n * sizeof(*part));
    for (uint32_t s = 0; s < x->c.n; s++) {
        uint32_t *was = &part[x->c.part[s]];
        if (x->to_old[s] == ID_NONE)
            continue;
        if (*was != ID_NONE && *was != old->part[x->to_old[s]])
            return false;
        *was = old->part[x->to_old[s]];
    }
    return true;
}

static void compare_cables(struct change *x, struct arena *a)
{
    const struct vcables *c = &x->c;
    const struct route_proof_state *old = x->old;
    x->same_cable = ARENA_NEW_N(a, (size_t)c->n * c->ports + 1, bool);
    x->suspect = ARENA_NEW_N(a, c->n + 1, bool);
    for (uint32_t s = 0; s < c->n; s++) {
        uint32_t was = x->to_old[s];
        for (uint32_t p = 0; p < c->ports && was != ID_NONE; p++) {
            uint32_t now = c->link[(size_t)s * c->ports + p];
            uint32_t before = p < old->ports ? old->link[(size_t)was * old->ports + p] : LINK_DEAD;
            bool same = now < c->n ? before < old->n && x->from_old[before] == now : before == now;
            x->same_cable[(size_t)s * c->ports + p] = same;
            x->suspect[s] |= !same;
        }
    }
}

// LIDs of one switch's row that differ, or that lead over a cable which is not what it was.
static void compare_row(const struct change *x, uint32_t s, uint8_t *changed)
{
    const struct vcables *c = &x->c;
    const uint8_t *row = tables_row(c->t, s), *was = tables_row(x->old_t, x->to_old[s]);
    const bool *same = x->same_cable + (size_t)s * c->ports;
    uint32_t lids = c->t->lids, both = lids < x->old_t->lids ? lids : x->old_t->lids;
    for (uint32_t lid = 0; lid < lids; lid += BLOCK) {
        if (!x->suspect[s] && lid < both && (row == was || memcmp(row + lid, was + lid, BLOCK) == 0))
            continue;
        for (uint32_t l = lid; l < lid + BLOCK; l++)
            changed[l] |= row[l] != (l < both ? was[l] : LFT_DROP) ||
                          !(row[l] < c->ports ? same[row[l]] : row[l] >= x->old->ports);
    }
    for (uint32_t l = lids; l < x->old_t->lids; l++)
        changed[l] |= was[l] != LFT_DROP;
}

static void compare_task(void *arg, unsigned i)
{
    struct change *x = arg;
    uint32_t from = (uint32_t)((uint64_t)x->c.n * i / x->num_tasks);
    uint32_t to = (uint32_t)((uint64_t)x->c.n * (i + 1) / x->num_tasks);
    for (uint32_t s = from; s < to; s++) {
        if (x->to_old[s] != ID_NONE)
            compare_row(x, s, x->changed[i]);
    }
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

static bool same_end(const struct change *x, uint32_t lid)
{
    const struct route_proof_state *s = x->s, *old = x->old;
    if (lid >= old->lids || old->end_sw[lid] == VABSENT)
        return false;
    uint32_t was = old->end_sw[lid], now = s->end_sw[lid];
    if (was == ID_NONE || now == ID_NONE)
        return was == now;
    return x->from_old[was] == now && old->end_port[lid] == s->end_port[lid];
}

// Lists the LIDs to be walked again; the others inherit their hops.
static void sort_lids(struct change *x, struct par *par, struct arena *a)
{
    struct route_proof_state *s = x->s;
    uint32_t lids = x->c.t->lids > x->old_t->lids ? x->c.t->lids : x->old_t->lids;
    if (lids < s->lids)
        lids = s->lids;
    x->changed = ARENA_NEW_N(a, x->num_tasks, uint8_t *);
    for (uint32_t i = 0; i < x->num_tasks; i++)
        x->changed[i] = ARENA_NEW_N(a, lids, uint8_t);
    run(par, x->num_tasks, compare_task, x);
    x->lid = ARENA_NEW_N(a, s->lids, uint16_t);
    for (uint32_t lid = 1; lid < s->lids; lid++) {
        for (uint32_t i = 1; i < x->num_tasks; i++)
            x->changed[0][lid] |= x->changed[i][lid];
        if (s->end_sw[lid] == VABSENT)
            continue;
        if (!same_end(x, lid))
            x->changed[0][lid] = 1;
        if (x->changed[0][lid])
            x->lid[x->num_lids++] = (uint16_t)lid;
        else
            memcpy(s->hist + (size_t)lid * VHOPS, x->old->hist + (size_t)lid * VHOPS,
                   VHOPS * sizeof(*s->hist));
    }
}

static void walk_task(void *arg, unsigned i)
{
    struct change *x = arg;
    struct vtask *k = &x->task[i];
    uint32_t from = (uint32_t)((uint64_t)x->num_lids * i / x->num_tasks);
    uint32_t to = (uint32_t)((uint64_t)x->num_lids * (i + 1) / x->num_tasks);
    while (from < to) {
        k->num_lids = to - from < VLIDS ? to - from : VLIDS;
        memcpy(k->lid, x->lid + from, k->num_lids * sizeof(*k->lid));
        vwalk_to(&x->c, k);
        from += k->num_lids;
    }
    vwalk_end(&x->c, k);
}

// The ports of w that a set names, without those whose cable is not what it was.
static uint64_t still_there(const struct change *x, uint32_t w, uint32_t word, uint64_t bits)
{
    for (uint64_t b = x->suspect[w] ? bits : 0; b; b &= b - 1) {
        uint32_t q = word * 64 + (uint32_t)__builtin_ctzll(b) + 1;
        if (q >= x->c.ports || !x->same_cable[(size_t)w * x->c.ports + q])
            bits &= ~(1ULL << ((q - 1) % 64));
    }
    return bits;
}

// Dependencies over cables that are what they were, under their new numbers.
static void inherit_turns(struct change *x)
{
    const struct vcables *c = &x->c;
    const struct route_proof_state *old = x->old;
    struct route_proof_state *s = x->s;
    for (uint32_t v = 0; v < c->n; v++) {
        for (uint32_t p = 1; p < c->ports && p < old->ports; p++) {
            size_t chan = (size_t)v * c->ports + p;
            uint32_t w = c->link[chan];
            if (w >= c->n || !x->same_cable[chan])
                continue;
            size_t was = (size_t)x->to_old[v] * old->ports + p;
            if (old->used[was / 64] >> (was % 64) & 1)
                s->used[chan / 64] |= 1ULL << (chan % 64);
            for (uint32_t i = 0; i < c->words && i < old->words; i++) {
                s->dep[chan * c->words + i] = still_there(x, w, i, old->dep[was * old->words + i]);
                s->turns[chan * c->words + i] = still_there(x, w, i, old->turns[was * old->words + i]);
            }
        }
    }
}

// What unchanged LIDs do on switches that were not there.
static void new_turns(struct change *x)
{
    const struct vcables *c = &x->c;
    for (uint32_t v = 0; v < c->n; v++) {
        for (uint32_t lid = 1; x->to_old[v] == ID_NONE && lid < x->s->lids; lid++) {
            uint8_t out = tables_port(c->t, v, (uint16_t)lid);
            uint32_t w = vfar_end(c, v, out);
            uint8_t then = w < c->n ? tables_port(c->t, w, (uint16_t)lid) : LFT_DROP;
            if (w < c->n && vfar_end(c, w, then) < c->n)
                x->s->turns[((size_t)v * c->ports + out) * c->words + (then - 1u) / 64] |=
                    1ULL << ((then - 1u) % 64);
        }
    }
}

// An unchanged LID from a switch that is a source now: hops, or -1 for what a full proof must look at.
static int walk_from(struct change *x, uint32_t s, uint32_t lid)
{
    const struct vcables *c = &x->c;
    uint32_t end = x->s->end_sw[lid], hops = 0;
    uint8_t port = x->s->end_port[lid];
    for (uint32_t v = s; hops <= c->n; hops++) {
        uint8_t out = tables_port(c->t, v, (uint16_t)lid);
        if (v == end && out == port)
            return hops < VHOPS ? (int)hops : -1;
        uint32_t w = vfar_end(c, v, out);
        if (w >= c->n)
            return end == ID_NONE || c->part[s] != c->part[end] ? VHOPS : -1;
        size_t chan = (size_t)v * c->ports + out;
        uint8_t then = tables_port(c->t, w, (uint16_t)lid);
        x->s->used[chan / 64] |= 1ULL << (chan % 64);
        if (!(w == end && then == port) && vfar_end(c, w, then) < c->n)
            x->s->dep[chan * c->words + (then - 1u) / 64] |= 1ULL << ((then - 1u) % 64);
        v = w;
    }
    return -1;
}

// The same for one that is no source any more, in the old tables, which are proved.
static uint32_t walk_before(const struct change *x, uint32_t s, uint32_t lid)
{
    const struct route_proof_state *old = x->old;
    uint32_t end = old->end_sw[lid];
    if (end == ID_NONE || old->part[s] != old->part[end])
        return VHOPS;
    for (uint32_t hops = 0; hops < VHOPS; hops++) {
        uint8_t out = tables_port(x->old_t, s, (uint16_t)lid);
        if (s == end && out == old->end_port[lid])
            return hops;
        s = out < old->ports ? old->link[(size_t)s * old->ports + out] : LINK_DEAD;
        if (s >= old->n)
            break;
    }
    return VHOPS;
}

static bool change_sources(struct change *x)
{
    struct route_proof_state *s = x->s;
    for (uint32_t v = 0; v < x->old->n; v++) {
        uint32_t now = x->from_old[v];
        if (!x->old->source[v] || (now != ID_NONE && x->c.source[now]))
            continue;
        for (uint32_t lid = 1; lid < s->lids; lid++) {
            if (s->end_sw[lid] == VABSENT || x->changed[0][lid])
                continue;
            uint32_t hops = walk_before(x, v, lid);
            if (hops < VHOPS)
                s->hist[(size_t)lid * VHOPS + hops]--;
        }
    }
    for (uint32_t v = 0; v < x->c.n; v++) {
        uint32_t was = x->to_old[v];
        if (!x->c.source[v] || (was != ID_NONE && x->old->source[was]))
            continue;
        for (uint32_t lid = 1; lid < s->lids; lid++) {
            if (s->end_sw[lid] == VABSENT || x->changed[0][lid])
                continue;
            int hops = walk_from(x, v, lid);
            if (hops < 0)
                return false;
            if (hops < VHOPS)
                s->hist[(size_t)lid * VHOPS + hops]++;
        }
    }
    return true;
}

static bool walk_again(struct change *x, struct par *par, struct arena *a)
{
    const struct vcables *c = &x->c;
    size_t chans = (size_t)c->n * c->ports;
    bool sound = true;
    if (x->num_lids == 0)
        return true;
    uint32_t tasks = x->num_tasks < x->num_lids ? x->num_tasks : x->num_lids;
    x->num_tasks = tasks;
    x->task = ARENA_NEW_N(a, tasks, struct vtask);
    for (uint32_t i = 0; i < tasks; i++)
        vtask_new(c, &x->task[i]);
    run(par, tasks, walk_task, x);
    for (uint32_t i = 0; i < tasks; i++) {
        struct vtask *k = &x->task[i];
        sound &= k->first.fault == ROUTE_OK && k->unreached == 0 && k->max_hops < VHOPS;
        vmerge_bits(x->s->dep, k->dep, chans * c->words);
        vmerge_bits(x->s->turns, k->turns, chans * c->words);
        vmerge_bits(x->s->used, k->used, chans / 64 + 1);
        arena_free(k->a);
    }
    return sound;
}

static void count(const struct change *x, struct route_proof *r)
{
    const struct vcables *c = &x->c;
    const struct route_proof_state *s = x->s;
    size_t chans = (size_t)c->n * c->ports;
    *r = (struct route_proof){.ok = true};
    for (uint32_t lid = 1; lid < s->lids; lid++) {
        if (s->end_sw[lid] == VABSENT)
            continue;
        uint32_t arrive = 0;
        for (uint32_t h = 0; h < VHOPS; h++) {
            arrive += s->hist[(size_t)lid * VHOPS + h];
            if (s->hist[(size_t)lid * VHOPS + h] > 0 && h > r->max_hops)
                r->max_hops = h;
        }
        r->pairs += c->num_sources;
        r->disconnected += c->num_sources - arrive; // nothing that has a way is unreached
    }
    r->dependencies = vmerge_bits(s->dep, s->dep, chans * c->words);
    r->channels = vmerge_bits(s->used, s->used, chans / 64 + 1);
}

// --- the state ---

static struct route_proof_state *state_for(const struct vcables *c, bool all_switches, struct arena *a)
{
    struct route_proof_state *s = ARENA_NEW(a, struct route_proof_state);
    size_t chans = (size_t)c->n * c->ports + 1;
    *s = (struct route_proof_state){.a = a, .all_switches = all_switches, .n = c->n, .ports = c->ports};
    s->refs = 1;
    s->words = c->words;
    s->lids = c->f->top_lid + 1u;
    s->guid = ARENA_NEW_N(a, c->n + 1, uint64_t);
    for (uint32_t v = 0; v < c->n; v++)
        s->guid[v] = fabric_switch(c->f, v)->guid;
    s->end_sw = ARENA_NEW_N(a, s->lids, uint32_t);
    s->end_port = ARENA_NEW_N(a, s->lids, uint8_t);
    for (uint32_t lid = 0; lid < s->lids; lid++) {
        s->end_sw[lid] = vpresent(c->f, lid) ? ID_NONE : VABSENT;
        if (vpresent(c->f, lid) && !vend_of(c->f, lid, &s->end_sw[lid], &s->end_port[lid]))
            s->end_sw[lid] = ID_NONE;
    }
    s->hist = ARENA_NEW_N(a, (size_t)s->lids * VHOPS, uint16_t);
    s->dep = ARENA_NEW_N(a, chans * c->words, uint64_t);
    s->turns = ARENA_NEW_N(a, chans * c->words, uint64_t);
    s->used = ARENA_NEW_N(a, chans / 64 + 1, uint64_t);
    s->link = c->link;
    s->part = c->part;
    s->source = c->source;
    return s;
}

struct route_proof_state *vstate_new(const struct vcables *c, const struct vtask *k, bool all_switches)
{
    struct arena *a = arena_new();
    struct route_proof_state *s = state_for(c, all_switches, a);
    size_t chans = (size_t)c->n * c->ports + 1;
    s->link = arena_memdup(a, c->link, chans * sizeof(*s->link));
    s->part = arena_memdup(a, c->part, (c->n + 1) * sizeof(*s->part));
    s->source = arena_memdup(a, c->source, (c->n + 1) * sizeof(*s->source));
    memcpy(s->hist, c->hist, (size_t)s->lids * VHOPS * sizeof(*s->hist));
    memcpy(s->dep, k->dep, chans * c->words * sizeof(*s->dep));
    memcpy(s->turns, k->turns, chans * c->words * sizeof(*s->turns));
    memcpy(s->used, k->used, (chans / 64 + 1) * sizeof(*s->used));
    return s;
}

const uint64_t *vstate_turns(const struct route_proof_state *s, uint32_t n, uint32_t ports, uint32_t words)
{
    return s->n == n && s->ports == ports && s->words == words ? s->turns : NULL;
}

bool vstate_covers(const struct route_proof_state *s, const struct fabric *f)
{
    if (s->n != f->num_switches || s->lids < f->top_lid + 1u)
        return false;
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        if (vpresent(f, lid) && s->end_sw[lid] == VABSENT)
            return false;
    }
    for (uint32_t v = 0; v < s->n; v++) {
        const struct node *n = fabric_switch(f, v);
        if (n->guid != s->guid[v])
            return false;
        for (uint32_t num = 1; num <= n->num_ports; num++) {
            const struct port *p = &f->port[n->first_port + num];
            if (!port_valid(p->peer))
                continue;
            const struct node *far = &f->node[f->port[p->peer.i].node.i];
            if (far->type != NODE_SWITCH ? !s->source[v]
                                         : num >= s->ports || s->link[(size_t)v * s->ports + num] != far->sw)
                return false;
        }
    }
    return true;
}

const uint64_t *vstate_deps(const struct route_proof_state *s, uint32_t sw, uint32_t port,
                            uint32_t *ret_words)
{
    *ret_words = s->words;
    return s->dep + ((size_t)sw * s->ports + port) * s->words;
}

bool route_proof_state_within(const struct route_proof_state *s, const struct route_proof_state *of)
{
    size_t chans = (size_t)s->n * s->ports;
    if (s == of)
        return true;
    if (s->n != of->n || s->ports != of->ports || memcmp(s->guid, of->guid, s->n * sizeof(*s->guid)) != 0)
        return false;
    for (size_t i = 0; i < chans; i++) {
        if (s->link[i] != of->link[i] && s->link[i] < s->n)
            return false;
    }
    for (size_t i = 0; i < chans * s->words; i++) {
        if (s->dep[i] & ~of->dep[i])
            return false;
    }
    return true;
}

struct route_proof_state *route_proof_state_ref(const struct route_proof_state *s)
{
    struct route_proof_state *x = (struct route_proof_state *)s;
    if (x)
        atomic_fetch_add(&x->refs, 1);
    return x;
}

void route_proof_state_free(struct route_proof_state *s)
{
    if (s && atomic_fetch_sub(&s->refs, 1) == 1)
        arena_free(s->a);
}

// --- together ---

// Whether the change is proved without a full proof; ret is written then only.
static bool prove_change(struct change *x, const struct verify_opts *o, struct arena *a, struct arena *keep,
                         struct route_proof *ret)
{
    uint32_t n;
    vread_cables(&x->c, o, keep);
    vfind_parts(&x->c, keep);
    if (!match_switches(x, a))
        return false;
    vwalk_prepare(&x->c, a);
    x->s = state_for(&x->c, o->all_switches, keep);
    x->c.hist = x->s->hist;
    x->num_tasks = o->par && o->par->width > 1 ? o->par->width : 1;
    compare_cables(x, a);
    sort_lids(x, o->par, a);
    inherit_turns(x);
    new_turns(x);
    if (!change_sources(x) || !walk_again(x, o->par, a) || vfind_cycle(&x->c, x->s->dep, a, &n) != NULL)
        return false;
    count(x, ret);
    return true;
}

bool route_verify_change(const struct route_proof_state *state, const struct fabric_tables *old_tables,
                         const struct fabric *f, const struct fabric_tables *t, const struct verify_opts *o,
                         struct route_proof *ret, struct route_proof_state **ret_state)
{
    *ret_state = NULL;
    if (!state || state->all_switches != o->all_switches || state->n != old_tables->num_switches ||
        t->num_switches != f->num_switches || f->num_switches == 0)
        return route_verify_keep(f, t, o, ret, ret_state);
    struct arena *a = arena_new(), *keep = arena_new();
    struct change x = {.old = state, .old_t = old_tables, .c = {.f = f, .t = t}};
    bool sound = prove_change(&x, o, a, keep, ret);
    arena_free(a);
    if (sound) {
        *ret_state = x.s;
        return true;
    }
    arena_free(keep);
    return route_verify_keep(f, t, o, ret, ret_state);
}
