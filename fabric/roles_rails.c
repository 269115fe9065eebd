// SPDX-License-Identifier: Apache-2.0
// Scalable units and rails.
//
// An SU is the leaves that share hosts: two leaves belong together when more than half of the hosts of the
// one with fewer hosts are on both. A few crossed cables therefore join nothing. SUs are numbered in the
// order of their leaves' names, then GUIDs, so that a number does not depend on the order of discovery.
//
// A rail is a leaf of an SU whose hosts put one port on each leaf. Which rail: the adapter index that most
// ports on the leaf have ("mlx5_4"), made dense. The set of indices of an SU or host is its profile; a
// smaller set takes the numbers of a larger one that contains it, so that rail 3 stays rail 3 where rail 2 is
// missing. A port whose index belongs on another leaf of the SU is a finding, and so is one in a foreign SU;
// the leaf decides the rail of the port ("topology first").
//
// Where hosts are not wired so (all adapters on one leaf), leaves have no rail, but adapters of hosts with
// several still do: that of their index.
//
// All these are the numbers of a fabric by itself. Where another one is given whose numbers are to be kept
// (builder_numbers_from()), each SU and each index of a profile has the number that most of its leaves have
// there, or else most of its adapters; what is not there is numbered behind all that is. So what is away
// leaves a gap, and nothing else moves into it.
#include "fabric/builder_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/arena.h"

#define HOST_MAX_LEAVES 64 // of one host looked at; keeps pairs bounded whatever an adapter claims
#define MAX_PROFILES 64
#define KEY_NONE 0xffffffffffULL

struct host_port {
    uint64_t key;  // adapter index and port number; KEY_NONE when the name tells none
    uint32_t port; // index
    uint32_t host;
    uint32_t leaf; // dense switch number, ID_NONE when not on a leaf
};

struct leaf {
    uint32_t hosts;       // hosts with a port on it
    uint32_t parent;      // union-find
    uint32_t su;          // ID_NONE
    uint64_t key;         // what most ports on it have, KEY_NONE
    uint32_t votes, best; // ports with an index, and those with `key`
    uint16_t rail;        // place in its SU's profile; behind it where adapters have no names
    uint16_t number;      // as which the rail is known
};

struct profile { // ascending
    uint64_t *key;
    uint32_t n;
    const uint32_t *number; // by place, NULL: the place itself
};

struct su {
    uint32_t first, n;                    // in order[]
    uint32_t spread_ports, spread_leaves; // of hosts with several ports here: ports, and leaves they are on
    struct profile own;                   // keys of its leaves
    const struct profile *profile;        // numbers them; NULL: not wired by rails
    uint32_t number;                      // as which it is known
};

struct rails {
    struct draft *d;
    struct host_port *hp; // by host
    uint32_t *host_first; // num_hosts + 1, into hp
    uint32_t n;
    struct leaf *leaf; // by dense switch number
    uint32_t *order;   // leaves with hosts, by name; after sus_number() by SU first
    uint32_t num_leaves;
    struct su *su;
    uint32_t num_sus;
    uint32_t *home;                  // by host: SU of most of its ports, ID_NONE
    const struct profile **host_has; // by host: that of its SU, else of its own ports; may be NULL
    struct profile profile[MAX_PROFILES];
    uint32_t num_profiles;
};

// ---------------------------------------------------------------- host ports

static uint32_t leaf_of(const struct fabric *f, const struct port *p)
{
    const struct node *z = fabric_peer_node(f, p);
    return z && z->type == NODE_SWITCH && z->tier == 0 ? z->sw : ID_NONE;
}

static void host_ports_collect(struct rails *r)
{
    const struct fabric *f = &r->d->f;
    r->host_first = ARENA_NEW_N(r->d->scratch, f->num_hosts + 2, uint32_t);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (f->node[i].host != ID_NONE)
            r->host_first[f->node[i].host + 2] += f->node[i].num_ports;
    }
    for (uint32_t h = 0; h < f->num_hosts; h++)
        r->host_first[h + 2] += r->host_first[h + 1];
    // host_first[h + 1] now walks over host h's places and ends as the start of host h + 1.
    r->n = r->host_first[f->num_hosts + 1];
    r->hp = ARENA_NEW_N(r->d->scratch, r->n + 1, struct host_port);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[i];
        if (n->host == ID_NONE)
            continue;
        uint32_t index = adapter_name_parse(fabric_desc(f, n)).index;
        for (uint32_t k = 0; k < n->num_ports; k++) {
            struct host_port *hp = &r->hp[r->host_first[n->host + 1]++];
            hp->port = n->first_port + k;
            hp->host = n->host;
            hp->leaf = leaf_of(f, &f->port[hp->port]);
            hp->key = index == ADAPTER_NO_INDEX ? KEY_NONE : (uint64_t)index << 8 | (k + 1);
        }
    }
}

// The different leaves of one host, at most HOST_MAX_LEAVES.
static uint32_t host_leaves(const struct rails *r, uint32_t host, uint32_t leaf[HOST_MAX_LEAVES])
{
    uint32_t n = 0;
    for (uint32_t i = r->host_first[host]; i < r->host_first[host + 1] && n < HOST_MAX_LEAVES; i++) {
        uint32_t k = 0;
        if (r->hp[i].leaf == ID_NONE)
            continue;
        while (k < n && leaf[k] != r->hp[i].leaf)
            k++;
        if (k == n)
            leaf[n++] = r->hp[i].leaf;
    }
    return n;
}

// ---------------------------------------------------------------- SUs

static uint32_t leaf_root(struct rails *r, uint32_t i)
{
    while (r->leaf[i].parent != i) {
        r->leaf[i].parent = r->leaf[r->leaf[i].parent].parent;
        i = r->leaf[i].parent;
    }
    return i;
}

static void pairs_count(struct rails *r, struct u64map *pairs)
{
    uint32_t leaf[HOST_MAX_LEAVES];
    for (uint32_t h = 0; h < r->d->f.num_hosts; h++) {
        uint32_t n = host_leaves(r, h, leaf);
        for (uint32_t i = 0; i < n; i++) {
            r->leaf[leaf[i]].hosts++;
            for (uint32_t j = 0; j < i; j++) {
                uint32_t lo = leaf[i] < leaf[j] ? leaf[i] : leaf[j], hi = leaf[i] ^ leaf[j] ^ lo, count = 0;
                uint64_t key = (uint64_t)lo << 32 | hi;
                u64map_get(pairs, key, &count);
                u64map_set(pairs, key, count + 1);
            }
        }
    }
}

static void leaves_join(struct rails *r)
{
    struct u64map pairs;
    u64map_init(&pairs, r->d->scratch, 4 * r->d->f.num_switches + 16);
    for (uint32_t s = 0; s < r->d->f.num_switches; s++)
        r->leaf[s] = (struct leaf){
            .parent = s, .su = ID_NONE, .key = KEY_NONE, .rail = RAIL_NONE, .number = RAIL_NONE};
    pairs_count(r, &pairs);
    for (uint32_t i = 0; i <= pairs.mask; i++) {
        if (!pairs.slot[i].used)
            continue;
        uint32_t a = (uint32_t)(pairs.slot[i].key >> 32), b = (uint32_t)pairs.slot[i].key;
        uint32_t fewer = r->leaf[a].hosts < r->leaf[b].hosts ? r->leaf[a].hosts : r->leaf[b].hosts;
        if (2 * pairs.slot[i].value <= fewer)
            continue;
        a = leaf_root(r, a);
        b = leaf_root(r, b);
        r->leaf[a > b ? a : b].parent = a > b ? b : a;
    }
}

static int leaf_name_order(const void *pa, const void *pb, void *arg)
{
    const struct rails *r = arg;
    const struct node *a = fabric_switch(&r->d->f, *(const uint32_t *)pa);
    const struct node *b = fabric_switch(&r->d->f, *(const uint32_t *)pb);
    int c = name_compare(fabric_desc(&r->d->f, a), fabric_desc(&r->d->f, b));
    return c ? c : (a->guid > b->guid) - (a->guid < b->guid);
}

static void sus_number(struct rails *r)
{
    uint32_t n = 0;
    uint32_t *by_name = ARENA_NEW_N(r->d->scratch, r->d->f.num_switches + 1, uint32_t);
    for (uint32_t s = 0; s < r->d->f.num_switches; s++) {
        if (r->leaf[s].hosts)
            by_name[n++] = s;
    }
    qsort_r(by_name, n, sizeof(*by_name), leaf_name_order, r);
    r->num_leaves = n;
    r->order = ARENA_NEW_N(r->d->scratch, n + 1, uint32_t);
    r->su = ARENA_NEW_N(r->d->scratch, n + 1, struct su);
    for (uint32_t i = 0; i < n; i++) {
        struct leaf *root = &r->leaf[leaf_root(r, by_name[i])];
        if (root->su == ID_NONE)
            root->su = r->num_sus++;
        r->leaf[by_name[i]].su = root->su;
        r->su[root->su].n++;
    }
    for (uint32_t u = 1; u < r->num_sus; u++)
        r->su[u].first = r->su[u - 1].first + r->su[u - 1].n;
    for (uint32_t u = 0; u < r->num_sus; u++)
        r->su[u].n = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct su *su = &r->su[r->leaf[by_name[i]].su];
        r->order[su->first + su->n++] = by_name[i];
    }
}

// The SU of most of a host's ports, the lowest of several; how its ports spread there is the SU's to know.
static void host_home(struct rails *r, uint32_t host)
{
    uint32_t leaf[HOST_MAX_LEAVES], best = 0, n = host_leaves(r, host, leaf);
    r->home[host] = ID_NONE;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t su = r->leaf[leaf[i]].su, ports = 0;
        for (uint32_t k = r->host_first[host]; k < r->host_first[host + 1]; k++)
            ports += r->hp[k].leaf != ID_NONE && r->leaf[r->hp[k].leaf].su == su;
        if (ports < best || (ports == best && su >= r->home[host]))
            continue;
        best = ports;
        r->home[host] = su;
    }
    if (best < 2)
        return;
    r->su[r->home[host]].spread_ports += best;
    for (uint32_t k = 0; k < n; k++)
        r->su[r->home[host]].spread_leaves += r->leaf[leaf[k]].su == r->home[host];
}

// ---------------------------------------------------------------- rails

static int vote_order(const void *pa, const void *pb)
{
    const struct host_port *a = *(const struct host_port *const *)pa,
                           *b = *(const struct host_port *const *)pb;
    if (a->leaf != b->leaf)
        return a->leaf < b->leaf ? -1 : 1;
    return (a->key > b->key) - (a->key < b->key);
}

static void leaves_vote(struct rails *r)
{
    const struct host_port **v = ARENA_NEW_N(r->d->scratch, r->n + 1, const struct host_port *);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->hp[i].leaf != ID_NONE && r->hp[i].key != KEY_NONE)
            v[n++] = &r->hp[i];
    }
    qsort(v, n, sizeof(*v), vote_order);
    for (uint32_t i = 0, run; i < n; i += run) {
        struct leaf *l = &r->leaf[v[i]->leaf];
        for (run = 1; i + run < n && vote_order(&v[i], &v[i + run]) == 0; run++)
            ;
        l->votes += run;
        if (run > l->best) {
            l->best = run;
            l->key = v[i]->key;
        }
    }
}

static int key_order(const void *pa, const void *pb)
{
    uint64_t a = *(const uint64_t *)pa, b = *(const uint64_t *)pb;
    return (a > b) - (a < b);
}

static uint32_t keys_unique(uint64_t *key, uint32_t n)
{
    uint32_t out = 0;
    qsort(key, n, sizeof(*key), key_order);
    for (uint32_t i = 0; i < n; i++) {
        if (out == 0 || key[out - 1] != key[i])
            key[out++] = key[i];
    }
    return out;
}

static uint16_t profile_rail(const struct profile *p, uint64_t key)
{
    const uint64_t *at = p && p->n ? bsearch(&key, p->key, p->n, sizeof(key), key_order) : NULL;
    return at && at - p->key < RAIL_NONE ? (uint16_t)(at - p->key) : RAIL_NONE;
}

static uint16_t profile_number(const struct profile *p, uint16_t rail)
{
    if (p == NULL || p->number == NULL || rail >= p->n)
        return rail;
    return p->number[rail] < RAIL_NONE ? (uint16_t)p->number[rail] : RAIL_NONE;
}

// The profile that has all these keys; made when there is none. NULL when there are too many kinds already.
static const struct profile *profile_get(struct rails *r, const uint64_t *key, uint32_t n)
{
    for (uint32_t i = 0; i < r->num_profiles; i++) {
        uint32_t k = 0;
        while (k < n && profile_rail(&r->profile[i], key[k]) != RAIL_NONE)
            k++;
        if (k == n)
            return &r->profile[i];
    }
    if (r->num_profiles == MAX_PROFILES)
        return NULL;
    struct profile *p = &r->profile[r->num_profiles++];
    p->key = arena_memdup(r->d->scratch, key, n * sizeof(*key));
    p->n = n;
    return p;
}

// Each port of a host on a leaf of its own, and one index a leaf.
static bool su_is_railed(const struct rails *r, const struct su *su)
{
    uint32_t votes = 0, best = 0;
    for (uint32_t i = 0; i < su->n; i++) {
        votes += r->leaf[r->order[su->first + i]].votes;
        best += r->leaf[r->order[su->first + i]].best;
    }
    return su->n >= 2 && 5 * su->spread_leaves >= 4 * su->spread_ports && su->spread_ports > 0 &&
           5 * best >= 3 * votes;
}

static void su_rails(struct rails *r, struct su *su)
{
    uint64_t *key = ARENA_NEW_N(r->d->scratch, su->n, uint64_t);
    uint32_t n = 0;
    for (uint32_t i = 0; i < su->n; i++) {
        const struct leaf *l = &r->leaf[r->order[su->first + i]];
        if (l->key != KEY_NONE)
            key[n++] = l->key;
    }
    n = keys_unique(key, n);
    su->own = (struct profile){.key = key, .n = n};
    su->profile = profile_get(r, key, n);
    uint32_t nameless = su->profile ? su->profile->n : 0;
    for (uint32_t i = 0; i < su->n; i++) {
        struct leaf *l = &r->leaf[r->order[su->first + i]];
        l->rail = profile_rail(su->profile, l->key);
        if (l->key == KEY_NONE && nameless < RAIL_NONE) // adapters without names: rails in the leaves' order
            l->rail = (uint16_t)nameless++;
    }
}

static int su_size_order(const void *pa, const void *pb, void *arg)
{
    const struct rails *r = arg;
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    if (r->su[a].n != r->su[b].n)
        return r->su[a].n > r->su[b].n ? -1 : 1;
    return (a > b) - (a < b);
}

static void sus_rails(struct rails *r)
{
    uint32_t *by_size = ARENA_NEW_N(r->d->scratch, r->num_sus + 1, uint32_t);
    for (uint32_t u = 0; u < r->num_sus; u++)
        by_size[u] = u;
    qsort_r(by_size, r->num_sus, sizeof(*by_size), su_size_order, r);
    for (uint32_t i = 0; i < r->num_sus; i++) {
        if (su_is_railed(r, &r->su[by_size[i]]))
            su_rails(r, &r->su[by_size[i]]);
    }
}

// ---------------------------------------------------------------- results

static void adapter_words(const struct fabric *f, const struct node *n, char *adapter, char *host,
                          size_t size)
{
    const char *desc = fabric_desc(f, n);
    struct adapter_name a = adapter_name_parse(desc);
    if (a.host_len == 0) {
        fabric_node_name(f, n, adapter, size);
        snprintf(host, size, "its host");
        return;
    }
    const char *token = desc + a.host_len + strspn(desc + a.host_len, " ");
    snprintf(adapter, size, "%.*s", (int)strcspn(token, " "), token);
    snprintf(host, size, "%.*s", (int)a.host_len, desc);
}

// The rail of the home SU where this index belongs; RAIL_NONE for an adapter of another purpose.
static uint16_t place_of(const struct su *home, uint64_t key)
{
    return profile_rail(&home->own, key) != RAIL_NONE ? profile_rail(home->profile, key) : RAIL_NONE;
}

// A management host on two leaves of a compute SU numbers its adapters for itself: only a host that has most
// of its ports, or most of the SU's indices, where the others have them is held to the rails.
static bool host_is_railed(const struct rails *r, uint32_t host, const struct su *home)
{
    uint32_t ports = 0, right = 0, known = 0;
    for (uint32_t i = r->host_first[host]; i < r->host_first[host + 1]; i++) {
        const struct host_port *hp = &r->hp[i];
        uint16_t place = place_of(home, hp->key);
        if (hp->leaf == ID_NONE || hp->key == KEY_NONE)
            continue;
        ports++;
        known += place != RAIL_NONE;
        right +=
            place != RAIL_NONE && r->leaf[hp->leaf].su == r->home[host] && r->leaf[hp->leaf].rail == place;
    }
    return ports && (2 * right >= ports || 2 * known > home->n);
}

static void miscabled_report(struct rails *r, const struct host_port *hp, uint16_t place)
{
    const struct fabric *f = &r->d->f;
    const struct leaf *l = &r->leaf[hp->leaf];
    char where[200], adapter[BUILDER_MAX_STRING + 24], host[BUILDER_MAX_STRING + 24];
    fabric_port_name(f, f->port[hp->port].peer, where, sizeof(where));
    adapter_words(f, &f->node[f->port[hp->port].node.i], adapter, host, sizeof(host));
    if (l->su != r->home[hp->host])
        findings_add(r->d->findings, FINDING_WARNING, "su-miscabled", where,
                     "adapter %s of %s is cabled to %s, in another SU than the host's other adapters",
                     adapter, host, where);
    else
        findings_add(r->d->findings, FINDING_WARNING, "rail-miscabled", where,
                     "adapter %s of %s is cabled to rail %u (%s), its place is rail %u", adapter, host,
                     l->number, where, profile_number(r->su[r->home[hp->host]].profile, place));
}

static void cabling_check(struct rails *r, uint32_t host)
{
    const struct su *home = r->home[host] != ID_NONE ? &r->su[r->home[host]] : NULL;
    if (!r->d->findings || !home || !home->profile || !host_is_railed(r, host, home))
        return;
    for (uint32_t i = r->host_first[host]; i < r->host_first[host + 1]; i++) {
        const struct host_port *hp = &r->hp[i];
        uint16_t place = place_of(home, hp->key);
        if (hp->leaf == ID_NONE || place == RAIL_NONE)
            continue;
        if (r->leaf[hp->leaf].su != r->home[host] || r->leaf[hp->leaf].rail != place)
            miscabled_report(r, hp, place);
    }
}

static void rail_set(struct rails *r, const struct host_port *hp, uint16_t rail)
{
    struct node *n = &r->d->node[r->d->port[hp->port].node.i];
    r->d->port[hp->port].rail = rail;
    if (n->num_ports == 1)
        n->rail = rail;
    if (rail != RAIL_NONE && rail + 1u > r->d->f.num_rails)
        r->d->f.num_rails = rail + 1u;
}

// What a host's ports would be called by their indices alone.
static const struct profile *host_profile(struct rails *r, uint32_t host)
{
    uint64_t key[HOST_MAX_LEAVES];
    uint32_t n = 0;
    for (uint32_t i = r->host_first[host]; i < r->host_first[host + 1] && n < HOST_MAX_LEAVES; i++) {
        if (r->hp[i].key != KEY_NONE)
            key[n++] = r->hp[i].key;
    }
    n = keys_unique(key, n);
    return n >= 2 ? profile_get(r, key, n) : NULL;
}

// Hosts with most ports first: their profiles contain those of hosts that lack an adapter.
static void hosts_profiles(struct rails *r)
{
    uint32_t hosts = r->d->f.num_hosts, start[HOST_MAX_LEAVES + 2] = {0};
    uint32_t *order = ARENA_NEW_N(r->d->scratch, hosts + 1, uint32_t);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t h = 0; h < hosts; h++) {
            uint32_t n = r->host_first[h + 1] - r->host_first[h];
            uint32_t less = HOST_MAX_LEAVES - (n < HOST_MAX_LEAVES ? n : HOST_MAX_LEAVES);
            if (pass == 0)
                start[less + 1]++;
            else
                order[start[less]++] = h;
        }
        for (uint32_t k = 1; pass == 0 && k < HOST_MAX_LEAVES + 2; k++)
            start[k] += start[k - 1];
    }
    r->host_has = ARENA_NEW_N(r->d->scratch, hosts + 1, const struct profile *);
    for (uint32_t i = 0; i < hosts; i++) {
        uint32_t h = order[i];
        const struct profile *of_su = r->home[h] != ID_NONE ? r->su[r->home[h]].profile : NULL;
        r->host_has[h] = of_su ? of_su : host_profile(r, h);
    }
}

// ---------------------------------------------------------------- numbers that are kept

static const struct node *known_node(const struct draft *d, const struct node *n)
{
    const struct node *k = d->known ? fabric_by_guid(d->known, n->guid) : NULL;
    return k && k->type == n->type && k->num_ports == n->num_ports ? k : NULL;
}

static const struct port *known_port(const struct draft *d, const struct port *p)
{
    const struct node *k = known_node(d, &d->node[p->node.i]);
    return k ? &d->known->port[k->first_port + p->num - node_first_num(k)] : NULL;
}

static const struct node *known_leaf(const struct rails *r, uint32_t leaf)
{
    return known_node(r->d, fabric_switch(&r->d->f, leaf));
}

static void sus_keep(struct rails *r)
{
    struct number_votes v = {.vote =
                                 ARENA_NEW_N(r->d->scratch, r->num_leaves + r->n + 1, struct number_vote)};
    bool *any = ARENA_NEW_N(r->d->scratch, r->num_sus + 1, bool);
    for (uint32_t i = 0; i < r->num_leaves; i++) {
        const struct node *k = known_leaf(r, r->order[i]);
        uint32_t su = r->leaf[r->order[i]].su;
        if (k && k->su != SU_NONE) {
            v.vote[v.n++] = (struct number_vote){.what = su, .number = k->su};
            any[su] = true;
        }
    }
    for (uint32_t i = 0; i < r->n; i++) {
        uint32_t su = r->home[r->hp[i].host];
        if (su == ID_NONE || any[su])
            continue;
        const struct node *k = known_node(r->d, &r->d->node[r->d->port[r->hp[i].port].node.i]);
        if (k && k->su != SU_NONE)
            v.vote[v.n++] = (struct number_vote){.what = su, .number = k->su};
    }
    const uint32_t *number = numbers_keep(&v, r->num_sus, r->d->known->num_sus, r->d->scratch);
    for (uint32_t u = 0; u < r->num_sus; u++)
        r->su[u].number = number[u];
}

static void profile_keep(struct rails *r, struct profile *p, struct number_votes *v)
{
    bool *any = ARENA_NEW_N(r->d->scratch, p->n + 1, bool);
    v->n = 0;
    for (uint32_t i = 0; i < r->num_leaves; i++) {
        const struct leaf *l = &r->leaf[r->order[i]];
        if (r->su[l->su].profile != p || l->rail >= p->n)
            continue;
        const struct node *k = known_leaf(r, r->order[i]);
        if (k && k->rail != RAIL_NONE) {
            v->vote[v->n++] = (struct number_vote){.what = l->rail, .number = k->rail};
            any[l->rail] = true;
        }
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < p->n; i++)
        left += !any[i];
    for (uint32_t i = 0; i < r->n && left; i++) {
        const struct host_port *hp = &r->hp[i];
        uint16_t place = r->host_has[hp->host] == p ? profile_rail(p, hp->key) : RAIL_NONE;
        if (place == RAIL_NONE || any[place])
            continue;
        const struct port *k = known_port(r->d, &r->d->port[hp->port]);
        if (k && k->rail != RAIL_NONE)
            v->vote[v->n++] = (struct number_vote){.what = place, .number = k->rail};
    }
    p->number = numbers_keep(v, p->n, r->d->known->num_rails, r->d->scratch);
}

static bool su_has_number(const struct rails *r, const struct su *su, uint16_t number)
{
    for (uint32_t i = 0; i < su->n; i++)
        if (r->leaf[r->order[su->first + i]].number == number)
            return true;
    return false;
}

// Leaves that no index numbers: those of adapters without names, and what is left of an SU when all its
// leaves but one are away.
static bool is_keyless(const struct su *su, const struct leaf *l)
{
    return l->rail != RAIL_NONE ? !su->profile || l->rail >= su->profile->n : su->n == 1;
}

static void su_keep(struct rails *r, struct su *su)
{
    uint32_t behind = r->d->known->num_rails;
    const uint32_t *order = r->order + su->first;
    for (uint32_t i = 0; i < su->n; i++)
        if (is_keyless(su, &r->leaf[order[i]]))
            r->leaf[order[i]].number = RAIL_NONE;
    for (uint32_t i = 0; i < su->n; i++) {
        struct leaf *l = &r->leaf[order[i]];
        const struct node *k = is_keyless(su, l) ? known_leaf(r, order[i]) : NULL;
        if (k && k->rail != RAIL_NONE && !su_has_number(r, su, k->rail))
            l->number = k->rail;
    }
    for (uint32_t i = 0; i < su->n; i++) {
        struct leaf *l = &r->leaf[order[i]];
        if (!is_keyless(su, l) || l->rail == RAIL_NONE || l->number != RAIL_NONE)
            continue;
        while (behind < RAIL_NONE && su_has_number(r, su, (uint16_t)behind))
            behind++;
        l->number = behind < RAIL_NONE ? (uint16_t)behind : RAIL_NONE;
    }
}

static void numbers_set(struct rails *r)
{
    for (uint32_t u = 0; u < r->num_sus; u++)
        r->su[u].number = u;
    if (r->d->known) {
        struct number_votes v = {
            .vote = ARENA_NEW_N(r->d->scratch, r->num_leaves + r->n + 1, struct number_vote)};
        sus_keep(r);
        for (uint32_t i = 0; i < r->num_profiles; i++)
            profile_keep(r, &r->profile[i], &v);
    }
    for (uint32_t i = 0; i < r->num_leaves; i++) {
        struct leaf *l = &r->leaf[r->order[i]];
        l->number = profile_number(r->su[l->su].profile, l->rail);
    }
    for (uint32_t u = 0; r->d->known && u < r->num_sus; u++)
        su_keep(r, &r->su[u]);
}

// ---------------------------------------------------------------- results, stored

static void su_set(struct rails *r, struct node *n, const struct su *su)
{
    n->su = su->number < SU_NONE ? (uint16_t)su->number : SU_NONE;
    if (n->su != SU_NONE && n->su + 1u > r->d->f.num_sus)
        r->d->f.num_sus = n->su + 1u;
}

// What an adapter without a leaf was known to be on.
static uint16_t rail_kept(const struct rails *r, const struct host_port *hp)
{
    const struct port *p = &r->d->port[hp->port], *k = known_port(r->d, p);
    return k != NULL && hp->leaf == ID_NONE ? k->rail : RAIL_NONE;
}

static void host_rails(struct rails *r, uint32_t host)
{
    const struct su *home = r->home[host] != ID_NONE ? &r->su[r->home[host]] : NULL;
    const struct profile *p = r->host_has[host];
    cabling_check(r, host);
    for (uint32_t i = r->host_first[host]; i < r->host_first[host + 1]; i++) {
        const struct host_port *hp = &r->hp[i];
        uint16_t rail = hp->leaf != ID_NONE ? r->leaf[hp->leaf].number : RAIL_NONE;
        if (rail == RAIL_NONE)
            rail = profile_number(p, profile_rail(p, hp->key));
        rail_set(r, hp, rail != RAIL_NONE ? rail : rail_kept(r, hp));
        if (home)
            su_set(r, &r->d->node[r->d->port[hp->port].node.i], home);
    }
}

static void leaves_store(struct rails *r)
{
    for (uint32_t i = 0; i < r->num_leaves; i++) {
        const struct leaf *l = &r->leaf[r->order[i]];
        struct node *n = &r->d->node[r->d->f.switch_node[r->order[i]]];
        su_set(r, n, &r->su[l->su]);
        n->rail = l->number;
        if (n->rail != RAIL_NONE && n->rail + 1u > r->d->f.num_rails)
            r->d->f.num_rails = n->rail + 1u;
    }
}

void roles_rails(struct draft *d)
{
    struct rails r = {.d = d};
    for (uint32_t i = 0; i < d->f.num_nodes; i++) {
        d->node[i].su = SU_NONE;
        d->node[i].rail = RAIL_NONE;
    }
    for (uint32_t i = 0; i < d->f.num_ports; i++)
        d->port[i].rail = RAIL_NONE;
    d->f.num_rails = d->f.num_sus = 0;
    host_ports_collect(&r);
    r.leaf = ARENA_NEW_N(d->scratch, d->f.num_switches + 1, struct leaf);
    leaves_join(&r);
    sus_number(&r);
    r.home = ARENA_NEW_N(d->scratch, d->f.num_hosts + 1, uint32_t);
    for (uint32_t h = 0; h < d->f.num_hosts; h++)
        host_home(&r, h);
    leaves_vote(&r);
    sus_rails(&r);
    hosts_profiles(&r);
    numbers_set(&r);
    leaves_store(&r);
    for (uint32_t h = 0; h < d->f.num_hosts; h++)
        host_rails(&r, h);
}
