// SPDX-License-Identifier: Apache-2.0
// The proof's walk: from every source to up to VLIDS LIDs at once.
//
// The entries of all switches for these LIDs are laid side by side (struct vrow), each bounded on the
// way. Then sources are taken one by one, and for each all LIDs: where the next switch's outcome is known,
// this one's is that and a hop; else the entries are followed until one is known. So every (switch, LID) is
// looked at once, and only those that some source meets. A source's row, its few neighbours' rows and its own
// set of turns stay in the nearest cache, and looks do not wait for each other, as steps along a path would.
//
// Turns are noted without asking what the next switch's port leads to: those onto anything but a cable
// between switches are taken out at the end of a task, as they are the same for all LIDs.
#include <string.h>

#include "routing/verify_priv.h"

#define UNSEEN 0
#define ON_WAY 1   // on the path that is being followed; 1 + enum route_fault: how it ends
#define ARRIVES 16 // plus hops
#define FAR 255    // more hops than are counted here
#define KNOWN(code) ((code) - (unsigned)ARRIVES < FAR - ARRIVES)

// The ports of each switch that lead to another one.
static void read_onward(struct vcables *c, struct arena *a)
{
    c->onward = ARENA_NEW_N(a, (size_t)c->n * c->words + 1, uint64_t);
    for (uint32_t v = 0; v < c->n; v++) {
        for (uint32_t p = 1; p < c->ports; p++) {
            if (c->link[(size_t)v * c->ports + p] < c->n)
                c->onward[(size_t)v * c->words + (p - 1) / 64] |= 1ULL << ((p - 1) % 64);
        }
    }
}

void vwalk_prepare(struct vcables *c, struct arena *a)
{
    c->cap = c->ports < LFT_DROP ? (uint8_t)c->ports : LFT_DROP;
    c->hop = ARENA_NEW_N(a, (size_t)c->n * (c->cap + 1u), uint32_t);
    for (uint32_t v = 0; v < c->n; v++) {
        for (uint32_t p = 0; p <= c->cap; p++) {
            uint32_t w = p < c->ports ? c->link[(size_t)v * c->ports + p] : LINK_DEAD;
            c->hop[(size_t)v * (c->cap + 1u) + p] = w < c->n ? w : c->n;
        }
    }
    for (uint32_t p = 1; p < c->ports && p < 256; p++) {
        c->bit[p] = 1ULL << ((p - 1) % 64);
        c->word[p] = (uint8_t)((p - 1) / 64);
    }
    read_onward(c, a);
}

void vtask_new(const struct vcables *c, struct vtask *k)
{
    size_t chans = (size_t)c->n * c->ports + 1;
    k->a = arena_new();
    k->dep = ARENA_NEW_N(k->a, (chans + 1) * c->words, uint64_t);
    k->used = ARENA_NEW_N(k->a, chans / 64 + 1, uint64_t);
    k->carries = ARENA_NEW_N(k->a, chans / 64 * 64 + 64, uint8_t);
    if (c->hist)
        k->turns = ARENA_NEW_N(k->a, (chans + 1) * c->words, uint64_t);
    k->row = ARENA_NEW_N(k->a, c->n + 1, struct vrow);
    k->path = ARENA_NEW_N(k->a, c->n + 1, uint32_t);
    k->hops = ARENA_NEW_N(k->a, c->n + 1, uint32_t);
    k->twin_at = ARENA_NEW_N(k->a, c->n + 1, uint8_t);
    for (uint32_t i = 0; i < VTWINS; i++) {
        k->twin[i].dep = ARENA_NEW_N(k->a, (c->cap + 1u) * c->words, uint64_t);
        k->twin[i].dep2 = ARENA_NEW_N(k->a, (c->cap + 1u) * c->words, uint64_t);
        k->twin[i].used = ARENA_NEW_N(k->a, c->cap + 1u, uint8_t);
    }
}

// --- the walk ---

static void load_rows(const struct vcables *c, struct vtask *k)
{
    const struct fabric_tables *t = c->t;
    uint32_t m = k->num_lids, lid0 = k->lid[0];
    bool side_by_side = k->lid[m - 1] - lid0 == m - 1 && lid0 + m <= t->lids;
    for (uint32_t v = 0; v < c->n; v++) {
        struct vrow *r = &k->row[v];
        if (side_by_side)
            memcpy(r->next, tables_row(t, v) + lid0, m);
        for (uint32_t l = 0; !side_by_side && l < m; l++)
            r->next[l] = tables_port(t, v, k->lid[l]);
        for (uint32_t l = 0; l < VLIDS; l++)
            r->next[l] = r->next[l] < c->cap ? r->next[l] : c->cap;
        memset(r->found, UNSEEN, m);
    }
}

// Where the LIDs hang: a walk that comes there by the right port ends.
static void find_ends(const struct vcables *c, struct vtask *k)
{
    for (uint32_t l = 0; l < k->num_lids; l++) {
        uint8_t port = 0;
        if (!vend_of(c->f, k->lid[l], &k->end[l], &port))
            k->end[l] = ID_NONE;
        else if (tables_port(c->t, k->end[l], k->lid[l]) == port)
            k->row[k->end[l]].found[l] = ARRIVES;
    }
}

// The word of a channel's set that has the bit of a port. words: c->words, a constant where it is 1.
static inline size_t word_of(const struct vcables *c, uint32_t words, uint8_t port)
{
    return words == 1 ? 0 : c->word[port];
}

// Follows the entries from a switch to where the outcome is known.
static unsigned follow(const struct vcables *c, struct vtask *k, uint32_t from, uint32_t l)
{
    struct vrow *row = k->row;
    uint32_t n = 0, v = from;
    unsigned code;
    while ((code = row[v].found[l]) == UNSEEN) {
        uint8_t out = row[v].next[l];
        uint32_t w = c->hop[(size_t)v * (c->cap + 1u) + out];
        row[v].found[l] = ON_WAY;
        k->path[n++] = v;
        if (w == c->n) {
            code = vfar_end(c, v, tables_port(c->t, v, k->lid[l])) - LINK_STOP + 1;
            break;
        }
        k->carries[(size_t)v * c->ports + out] = 1;
        uint8_t then = row[w].next[l];
        k->dep[((size_t)v * c->ports + out) * c->words + c->word[then]] |= c->bit[then];
        v = w;
    }
    if (code == ON_WAY)
        code = ROUTE_LOOP + 1;
    while (n > 0) {
        code += KNOWN(code);
        row[k->path[--n]].found[l] = (uint8_t)code;
    }
    return code;
}

static void note_fault(const struct vcables *c, struct vtask *k, uint32_t s, uint32_t l, unsigned code)
{
    uint32_t end = k->end[l];
    enum route_fault fault = (enum route_fault)(code - 1);
    bool wired = end != ID_NONE && c->part[s] == c->part[end];
    if (wired)
        k->unreached++;
    else
        k->disconnected++;
    // Without a path of cables nothing can arrive; but nothing may circle either.
    if ((wired || fault == ROUTE_LOOP) && (k->first.fault == ROUTE_OK || k->lid[l] < k->first.lid))
        k->first = (struct vfault){fault, s, k->lid[l]};
}

static void or_words(uint64_t *restrict to, const uint64_t *restrict from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] |= from[i];
}

static void or_bytes(uint8_t *restrict to, const uint8_t *restrict from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        to[i] |= from[i];
}

// One entry of a row: what it makes goes to dep. Of a source's row it is followed, too; false where no other
// row may rely on that: it ends here or is at fault.
static inline __attribute__((always_inline)) bool look_at(const struct vcables *c, struct vtask *k,
                                                          uint32_t s, uint32_t l, uint64_t *dep,
                                                          uint8_t *used, bool source, uint32_t words)
{
    struct vrow *me = k->row + s;
    uint32_t out = me->next[l];
    const struct vrow *far = k->row + c->hop[(size_t)s * (c->cap + 1u) + out];
    uint8_t then = far->next[l]; // 0 beside a switch
    unsigned code = far->found[l];
    dep[out * words + word_of(c, words, then)] |= c->bit[then];
    used[out] = 1;
    if (!source)
        return false;
    if (__builtin_expect(KNOWN(code), 1)) {
        me->found[l] = (uint8_t)(code + 1);
        return true;
    }
    code = follow(c, k, s, l);
    if (code < ARRIVES)
        note_fault(c, k, s, l, code);
    return code > ARRIVES;
}

// Into two sets in turns: entries side by side often leave by the same port, and would wait for each other.
static inline __attribute__((always_inline)) bool look(const struct vcables *c, struct vtask *k, uint32_t s,
                                                       struct vtwin *x, bool source, uint32_t words)
{
    uint64_t *dep = x->dep, *dep2 = x->dep2;
    uint32_t l = 0, m = k->num_lids, size = (c->cap + 1u) * words;
    bool sound = true;
    memset(dep, 0, size * sizeof(*dep));
    memset(dep2, 0, size * sizeof(*dep));
    memset(x->used, 0, c->cap + 1u);
    for (; l + 1 < m; l += 2) {
        sound &= look_at(c, k, s, l, dep, x->used, source, words);
        sound &= look_at(c, k, s, l + 1, dep2, x->used, source, words);
    }
    if (l < m)
        sound &= look_at(c, k, s, l, dep, x->used, source, words);
    or_words(dep, dep2, size);
    return sound;
}

// Whether x has the same entries over the same cables.
static bool is_twin(const struct vcables *c, const struct vtask *k, uint32_t s, const struct vtwin *x)
{
    if (x->sw == ID_NONE || memcmp(k->row[s].next, k->row[x->sw].next, k->num_lids) != 0)
        return false;
    const uint32_t *a = c->hop + (size_t)s * (c->cap + 1u), *b = c->hop + (size_t)x->sw * (c->cap + 1u);
    uint32_t differ = 0;
    for (uint32_t p = 0; p <= c->cap; p++)
        differ |= (a[p] ^ b[p]) & -(uint32_t)x->used[p];
    return differ == 0;
}

// How far the farthest source is whose hops are more than a byte counts.
static uint32_t measure(const struct vcables *c, struct vtask *k, uint32_t l)
{
    uint32_t most = 0;
    memset(k->hops, 0, c->n * sizeof(*k->hops));
    for (uint32_t s = 0; s < c->n; s++) {
        uint32_t n = 0, v = s, hops;
        if (!c->source[s] || k->row[s].found[l] != FAR)
            continue;
        for (; k->hops[v] == 0 && k->row[v].found[l] != ARRIVES; n++) {
            k->path[n] = v;
            v = c->hop[(size_t)v * (c->cap + 1u) + k->row[v].next[l]];
        }
        for (hops = k->hops[v]; n > 0;)
            k->hops[k->path[--n]] = ++hops;
        most = hops > most ? hops : most;
    }
    return most;
}

static void count_max(const struct vcables *c, struct vtask *k, uint8_t most)
{
    if (most >= ARRIVES && most - ARRIVES + 0u > k->max_hops)
        k->max_hops = most - ARRIVES + 0u;
    for (uint32_t l = 0; most == FAR && l < k->num_lids; l++) {
        uint32_t hops = measure(c, k, l);
        k->max_hops = hops > k->max_hops ? hops : k->max_hops;
    }
}

// Every outcome of one source is known. Returns the highest.
static uint8_t count_hops(struct vtask *k, const struct vrow *r, bool hist)
{
    uint8_t least = 0xff, most = 0;
    for (uint32_t l = 0; l < k->num_lids; l++) {
        least = r->found[l] < least ? r->found[l] : least;
        most = r->found[l] > most ? r->found[l] : most;
    }
    least = least < ARRIVES ? ARRIVES : least;
    for (unsigned code = least; hist && code <= most && code < ARRIVES + VHOPS; code++) {
        uint16_t *count = k->count[code - ARRIVES];
        for (uint32_t l = 0; l < VLIDS; l++)
            count[l] = (uint16_t)(count[l] + (r->found[l] == code));
    }
    return most;
}

// One switch: a source, or one whose entries are noted only: what packets can do that start there or change
// over midway.
static inline __attribute__((always_inline)) void one_switch(const struct vcables *c, struct vtask *k,
                                                             uint32_t s, uint32_t words)
{
    bool source = c->source[s];
    struct vrow *row = k->row;
    const uint32_t *hop = c->hop + (size_t)s * (c->cap + 1u);
    uint32_t far = hop[row[s].next[0]];
    struct vtwin *x = &k->twin[k->twin_at[far]];
    if (x->far != far || (source && !x->walked) || !is_twin(c, k, s, x)) {
        k->twin_at[far] = (uint8_t)(k->num_twins++ % VTWINS);
        x = &k->twin[k->twin_at[far]];
        x->walked = source ? look(c, k, s, x, true, words) : look(c, k, s, x, false, words);
        x->far = far;
        x->sw = s;
    } else if (source) {
        memcpy(row[s].found, row[x->sw].found, k->num_lids);
    }
    or_words((source ? k->dep : k->turns) + (size_t)s * c->ports * words, x->dep, c->ports * words);
    if (source)
        or_bytes(k->carries + (size_t)s * c->ports, x->used, c->ports);
}

static inline __attribute__((always_inline)) void walk(const struct vcables *c, struct vtask *k,
                                                       uint32_t words)
{
    uint8_t most = 0;
    for (uint32_t i = 0; i < VTWINS; i++)
        k->twin[i].sw = ID_NONE;
    for (uint32_t s = 0; s < c->n; s++) {
        if (!c->source[s] && !k->turns)
            continue;
        one_switch(c, k, s, words);
        if (c->source[s]) {
            uint8_t hops = count_hops(k, &k->row[s], c->hist != NULL);
            most = hops > most ? hops : most;
        }
    }
    count_max(c, k, most);
}

static void keep_results(const struct vcables *c, struct vtask *k)
{
    for (uint32_t l = 0; c->hist && l < k->num_lids; l++) {
        for (uint32_t h = 0; h < VHOPS; h++)
            c->hist[(size_t)k->lid[l] * VHOPS + h] = k->count[h][l];
    }
    for (uint32_t v = 0; c->keep && v < c->n; v++) {
        for (uint32_t l = 0; l < k->num_lids; l++) {
            if (k->row[v].found[l] >= ARRIVES)
                tables_row(c->keep, v)[k->lid[l]] = k->row[v].next[l];
        }
    }
}

void vwalk_to(const struct vcables *c, struct vtask *k)
{
    if (k->num_lids == 0)
        return;
    load_rows(c, k);
    find_ends(c, k);
    if (c->hist)
        memset(k->count, 0, sizeof(k->count));
    k->pairs += (uint64_t)c->num_sources * k->num_lids;
    if (c->words == 1)
        walk(c, k, 1);
    else
        walk(c, k, c->words);
    keep_results(c, k);
}

void vwalk_end(const struct vcables *c, struct vtask *k)
{
    size_t chans = (size_t)c->n * c->ports;
    for (size_t x = 0; x < chans; x++) {
        uint32_t w = c->link[x];
        k->used[x / 64] |= (uint64_t)(k->carries[x] && w < c->n) << (x % 64);
        for (uint32_t i = 0; i < c->words && w < c->n; i++) {
            uint64_t onward = c->onward[(size_t)w * c->words + i];
            k->dep[x * c->words + i] &= onward;
            if (k->turns)
                k->turns[x * c->words + i] = (k->turns[x * c->words + i] | k->dep[x * c->words + i]) & onward;
        }
    }
}
