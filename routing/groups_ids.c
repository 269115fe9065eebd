// SPDX-License-Identifier: Apache-2.0
// Which of a switch's sets of ports become groups, and by what ids. To write an entry anew costs a switch as
// much as to write a group, and there are many entries to a group: so an id goes where most of its entries
// are, whatever became of the ports, and only then to the same ports.
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "routing/groups_priv.h"

static uint64_t set_hash(const struct port_set *s)
{
    uint64_t h = 0;
    for (unsigned i = 0; i < 4; i++)
        h = hash_mix64(h ^ s->w[i]);
    return h;
}

static bool set_equal(const struct port_set *a, const struct port_set *b)
{
    return memcmp(a, b, sizeof(*a)) == 0;
}

static uint32_t set_size(const struct port_set *s)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < 4; i++) {
        for (uint64_t m = s->w[i]; m; m &= m - 1)
            n++;
    }
    return n;
}

static void grow(struct gsets *x, struct arena *a)
{
    uint32_t room = x->room ? 2 * x->room : 8;
    struct port_set *set = ARENA_NEW_N(a, room, struct port_set);
    if (x->num > 0)
        memcpy(set, x->set, x->num * sizeof(*set));
    x->set = set;
    x->room = room;
    x->slots = 2 * room;
    x->slot = ARENA_NEW_N(a, x->slots, uint16_t);
    memset(x->slot, 0xff, x->slots * sizeof(*x->slot));
    for (uint32_t i = 0; i < x->num; i++) {
        uint32_t h = (uint32_t)set_hash(&set[i]) & (x->slots - 1);
        while (x->slot[h] != GROUP_NONE)
            h = (h + 1) & (x->slots - 1);
        x->slot[h] = (uint16_t)i;
    }
}

uint16_t gsets_intern(struct gsets *x, const struct port_set *s, struct arena *a)
{
    uint32_t ports = 0;
    for (unsigned i = 0; i < 4 && ports < 2; i++)
        ports += s->w[i] == 0 ? 0 : (s->w[i] & (s->w[i] - 1)) == 0 ? 1 : 2;
    if (ports < 2)
        return GROUP_NONE;
    if (x->num == x->room)
        grow(x, a);
    uint32_t h = (uint32_t)set_hash(s) & (x->slots - 1);
    for (; x->slot[h] != GROUP_NONE; h = (h + 1) & (x->slots - 1)) {
        if (set_equal(&x->set[x->slot[h]], s))
            return x->slot[h];
    }
    if (x->num == GROUP_NONE) // not with ports below 255 and columns below 49152; but never beyond
        return GROUP_NONE;
    x->slot[h] = (uint16_t)x->num;
    x->set[x->num] = *s;
    return (uint16_t)x->num++;
}

// --- one switch ---

struct pair { // of a set, and a group that there was
    uint32_t lids;
    uint16_t set, old;
    bool same; // ports
};

struct choosing {
    struct gmake *m;
    uint32_t s;
    const struct gsets *x;
    uint16_t beside[256]; // per port: set
    uint32_t *lids;       // per set
    bool *kept;           // per set
    uint32_t num_kept, cap;
    uint16_t *id; // per set, of those kept
    // What there was.
    const struct fabric_groups *last;
    uint32_t was; // the switch then
    const struct fabric_group *old;
    uint32_t num_old;
    struct pair *pair;
    uint32_t num_pairs, room;
    uint64_t taken[GROUPS_CAP_MAX / 64], in_use[GROUPS_CAP_MAX / 64];
};

static void find_beside(struct choosing *c, struct arena *a)
{
    struct gmake *m = c->m;
    const struct rgraph *g = m->g;
    memset(c->beside, 0xff, sizeof(c->beside));
    for (uint32_t i = g->goff[c->s]; m->beside && i < g->goff[c->s + 1]; i++) {
        const uint8_t *port = g->ports + g->g[i].first_port;
        struct port_set s = {{0}};
        for (uint32_t k = 0; k < g->g[i].num_ports; k++)
            port_set_add(&s, port[k]);
        uint16_t set = gsets_intern(&m->sets[c->s], &s, a);
        for (uint32_t k = 0; k < g->g[i].num_ports; k++)
            c->beside[port[k]] = set;
    }
}

// How many entries each set has.
static void count_lids(struct choosing *c)
{
    const struct gmake *m = c->m;
    const uint8_t *row = tables_row(m->t, c->s);
    for (uint32_t k = 0; k < m->cols; k++) {
        uint16_t to = m->to[(size_t)c->s * m->stride + k];
        const struct port_set none = {{0}}, *set = to == GROUP_NONE ? &none : &c->x->set[to];
        uint32_t with = 0;
        for (uint32_t i = m->coff[k]; i < m->coff[k + 1]; i++) {
            uint8_t port = row[m->lid[i].lid];
            bool whole = port_set_has(set, port) && m->odd[i] == 0;
            with += whole;
            if (!whole && c->beside[port] != GROUP_NONE)
                c->lids[c->beside[port]]++;
        }
        if (to != GROUP_NONE)
            c->lids[to] += with;
    }
}

// --- which ---

struct ranked {
    uint32_t lids;
    bool had; // these very ports are a group already
    uint16_t set;
    const struct port_set *ports;
};

static int ports_cmp(const struct port_set *a, const struct port_set *b)
{
    for (unsigned i = 0; i < 4; i++) {
        if (a->w[i] != b->w[i])
            return a->w[i] < b->w[i] ? -1 : 1;
    }
    return 0;
}

static int ranked_cmp(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->lids != y->lids)
        return x->lids > y->lids ? -1 : 1;
    if (x->had != y->had)
        return x->had ? -1 : 1;
    return ports_cmp(x->ports, y->ports);
}

static bool had(const struct choosing *c, const struct port_set *s)
{
    for (uint32_t i = 0; i < c->num_old; i++) {
        if (set_equal(&c->old[i].ports, s))
            return true;
    }
    return false;
}

// Those with most entries, as many as the switch holds.
static bool choose_sets(struct choosing *c)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < c->x->num; i++)
        used += c->lids[i] > 0;
    c->num_kept = used < c->cap ? used : c->cap;
    if (used <= c->cap) {
        for (uint32_t i = 0; i < c->x->num; i++)
            c->kept[i] = c->lids[i] > 0;
        return false;
    }
    struct ranked *r = xreallocarray(NULL, used, sizeof(*r));
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->x->num; i++) {
        if (c->lids[i] > 0)
            r[n++] = (struct ranked){c->lids[i], had(c, &c->x->set[i]), (uint16_t)i, &c->x->set[i]};
    }
    qsort(r, n, sizeof(*r), ranked_cmp);
    for (uint32_t i = 0; i < c->num_kept; i++)
        c->kept[r[i].set] = true;
    free(r);
    return true;
}

// --- ids ---

static void add_pair(struct choosing *c, uint16_t set, uint16_t old, uint32_t lids)
{
    if (c->num_pairs > 0 && c->pair[c->num_pairs - 1].set == set && c->pair[c->num_pairs - 1].old == old) {
        c->pair[c->num_pairs - 1].lids += lids;
        return;
    }
    if (c->num_pairs == c->room) {
        c->room = c->room ? 2 * c->room : 64;
        c->pair = xreallocarray(c->pair, c->room, sizeof(*c->pair));
    }
    c->pair[c->num_pairs++] = (struct pair){lids, set, old, set_equal(&c->x->set[set], &c->old[old].ports)};
}

// Sets and groups that were there, with the entries that have one now and had the other.
static void find_pairs(struct choosing *c)
{
    const struct gmake *m = c->m;
    const struct fabric_groups *l = c->last;
    for (uint32_t k = 0; k < m->cols; k++) {
        uint16_t set = m->to[(size_t)c->s * m->stride + k];
        uint32_t then = m->was[m->col_switch[k]];
        if (set == GROUP_NONE || !c->kept[set] || then == ID_NONE)
            continue;
        uint16_t old = l->to[(size_t)c->was * l->num_switches + then];
        if (old != GROUP_NONE)
            add_pair(c, set, old, m->coff[k + 1] - m->coff[k]);
    }
    for (uint32_t p = 0; p < m->ports && p < l->ports && p < 256; p++) {
        uint16_t set = c->beside[p], old = l->beside[(size_t)c->was * l->ports + p];
        if (set != GROUP_NONE && c->kept[set] && old != GROUP_NONE)
            add_pair(c, set, old, 1);
    }
}

static int pair_place_cmp(const void *a, const void *b)
{
    const struct pair *x = a, *y = b;
    if (x->set != y->set)
        return x->set < y->set ? -1 : 1;
    return (int)x->old - (int)y->old;
}

static int pair_cmp(const void *a, const void *b, void *arg)
{
    const struct pair *x = a, *y = b;
    const struct choosing *c = arg;
    if (x->lids != y->lids)
        return x->lids > y->lids ? -1 : 1;
    if (x->same != y->same)
        return x->same ? -1 : 1;
    if (x->old != y->old)
        return (int)x->old - (int)y->old;
    return ports_cmp(&c->x->set[x->set], &c->x->set[y->set]);
}

static bool give(struct choosing *c, uint16_t set, uint16_t id)
{
    if (c->id[set] != GROUP_NONE || id >= c->cap || (c->taken[id / 64] >> (id % 64) & 1))
        return false;
    c->id[set] = id;
    c->taken[id / 64] |= 1ULL << (id % 64);
    return true;
}

static void merge_pairs(struct choosing *c)
{
    uint32_t n = 0;
    for (uint32_t i = 1; i < c->num_pairs; i++) {
        if (pair_place_cmp(&c->pair[n], &c->pair[i]) == 0)
            c->pair[n].lids += c->pair[i].lids;
        else
            c->pair[++n] = c->pair[i];
    }
    c->num_pairs = c->num_pairs > 0 ? n + 1 : 0;
}

static void carry_over(struct choosing *c)
{
    bool sorted = true;
    find_pairs(c);
    for (uint32_t i = 1; i < c->num_pairs && sorted; i++)
        sorted = pair_place_cmp(&c->pair[i - 1], &c->pair[i]) <= 0;
    if (!sorted)
        qsort(c->pair, c->num_pairs, sizeof(*c->pair), pair_place_cmp);
    merge_pairs(c);
    if (c->num_pairs > 0)
        qsort_r(c->pair, c->num_pairs, sizeof(*c->pair), pair_cmp, c);
    for (uint32_t i = 0; i < c->num_pairs; i++)
        give(c, c->pair[i].set, c->old[c->pair[i].old].id);
    for (uint32_t i = 0; i < c->num_old; i++) {
        for (uint32_t k = 0; k < c->x->num; k++) {
            if (c->kept[k] && set_equal(&c->old[i].ports, &c->x->set[k]))
                give(c, (uint16_t)k, c->old[i].id);
        }
        if (c->old[i].id < GROUPS_CAP_MAX)
            c->in_use[c->old[i].id / 64] |= 1ULL << (c->old[i].id % 64);
    }
    free(c->pair);
}

static uint16_t lowest_free(const struct choosing *c, const uint64_t *other)
{
    for (uint32_t w = 0; w < GROUPS_CAP_MAX / 64; w++) {
        uint64_t left = ~(c->taken[w] | (other ? other[w] : 0));
        if (left != 0 && w * 64 + (uint32_t)__builtin_ctzll(left) < c->cap)
            return (uint16_t)(w * 64 + (uint32_t)__builtin_ctzll(left));
    }
    return GROUP_NONE;
}

static void new_ids(struct choosing *c)
{
    for (uint32_t i = 0; i < c->x->num; i++) {
        if (!c->kept[i] || c->id[i] != GROUP_NONE)
            continue;
        uint16_t id = lowest_free(c, c->in_use);
        give(c, (uint16_t)i, id != GROUP_NONE ? id : lowest_free(c, NULL));
    }
}

// --- together ---

static int group_cmp(const void *a, const void *b)
{
    const struct fabric_group *x = a, *y = b;
    return (int)x->id - (int)y->id;
}

static void hand_over(struct choosing *c, struct arena *a, struct gchosen *ret)
{
    struct gmake *m = c->m;
    uint16_t *at = xreallocarray(NULL, c->x->num + 1u, sizeof(*at)), of_id[GROUPS_CAP_MAX];
    ret->group = ARENA_NEW_N(a, c->num_kept + 1, struct fabric_group);
    for (uint32_t i = 0; i < c->x->num; i++) {
        if (!c->kept[i])
            continue;
        ret->group[ret->num++] = (struct fabric_group){c->x->set[i], c->lids[i], c->id[i]};
        ret->adaptive += c->lids[i];
        ret->choices += (uint64_t)c->lids[i] * set_size(&c->x->set[i]);
    }
    qsort(ret->group, ret->num, sizeof(*ret->group), group_cmp);
    for (uint32_t i = 0; i < ret->num; i++)
        of_id[ret->group[i].id] = (uint16_t)i;
    for (uint32_t i = 0; i < c->x->num; i++)
        at[i] = c->kept[i] ? of_id[c->id[i]] : GROUP_NONE;
    for (uint32_t k = 0; k < m->cols; k++) {
        uint16_t *to = &m->to[(size_t)c->s * m->stride + k];
        *to = *to == GROUP_NONE ? GROUP_NONE : at[*to];
    }
    ret->beside = ARENA_NEW_N(a, m->ports, uint16_t);
    for (uint32_t p = 0; p < m->ports; p++)
        ret->beside[p] = p < 256 && c->beside[p] != GROUP_NONE ? at[c->beside[p]] : GROUP_NONE;
    free(at);
}

void gids_choose(struct gmake *m, uint32_t s, struct arena *a, struct gchosen *ret)
{
    struct choosing c = {.m = m, .s = s, .x = &m->sets[s], .cap = GROUPS_CAP_MAX, .last = m->o->last};
    if (m->o->cap && m->o->cap[s] < c.cap)
        c.cap = m->o->cap[s];
    c.was = c.last ? m->was[s] : ID_NONE;
    if (c.was != ID_NONE) {
        c.old = c.last->group + c.last->first[c.was];
        c.num_old = groups_of(c.last, c.was);
    }
    find_beside(&c, a);
    size_t n = c.x->num + 1u;
    c.lids = xcalloc(n, sizeof(*c.lids));
    c.kept = xcalloc(n, sizeof(*c.kept));
    c.id = xcalloc(n, sizeof(*c.id));
    memset(c.id, 0xff, n * sizeof(*c.id));
    count_lids(&c);
    *ret = (struct gchosen){.over_cap = choose_sets(&c)};
    if (c.num_old > 0)
        carry_over(&c);
    new_ids(&c);
    hand_over(&c, a, ret);
    free(c.lids);
    free(c.kept);
    free(c.id);
}
