// SPDX-License-Identifier: Apache-2.0
// Which adapters are one host's. A SystemImageGUID that 2 to 32 adapters share is one machine's. Single-chip
// cards mostly carry their own, so names join too: "gpu-0412 mlx5_3" and "gpu-0412 HCA-6" are both
// gpu-0412's. But names are labels: a description that occurs twice tells nothing, hosts that were never
// given a name
// ("localhost") are many, and more than 32 adapters are no host.
#include "fabric/builder_priv.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "lib/arena.h"

#define HOST_MAX_ADAPTERS 32

// ---------------------------------------------------------------- names

// Digits at *s as a number, capped; false when there are none.
static bool digits(const char **s, const char *end, uint32_t *ret)
{
    const char *p = *s;
    uint32_t v = 0;
    while (p < end && isdigit((unsigned char)*p)) {
        v = v < 100000000 ? 10 * v + (uint32_t)(*p - '0') : v;
        p++;
    }
    if (p == *s)
        return false;
    *s = p;
    *ret = v;
    return true;
}

// "ibp11s0f0", "ibP2p1s0", "ib3": the kernel's names by place; ordered by domain, bus, slot, function.
static bool place_index(const char *s, const char *end, uint32_t *ret)
{
    uint32_t domain = 0, bus = 0, slot = 0, function = 0, v;
    if (end - s < 3 || strncmp(s, "ib", 2) != 0)
        return false;
    s += 2;
    if (isdigit((unsigned char)*s)) {
        if (!digits(&s, end, ret))
            return false;
        return s == end;
    }
    if (*s != 'p' && *s != 'P' && *s != 's')
        return false;
    while (s < end) {
        char kind = *s++;
        if (!digits(&s, end, &v))
            return false;
        if (kind == 'P')
            domain = v & 0xff;
        else if (kind == 'p')
            bus = v & 0xff;
        else if (kind == 's')
            slot = v & 0xff;
        else if (kind == 'f' || kind == 'd')
            function = v & 0xff;
        else
            return false;
    }
    *ret = domain << 24 | bus << 16 | slot << 8 | function;
    return *ret != ADAPTER_NO_INDEX;
}

static bool driver_index(const char *s, const char *end, uint32_t *ret)
{
    static const char *const prefix[] = {"mlx5_", "mlx4_", "mlx6_", "hfi1_",
                                         "mthca", "qib",   "irdma", "bnxt_re"};
    for (size_t i = 0; i < sizeof(prefix) / sizeof(prefix[0]); i++) {
        size_t n = strlen(prefix[i]);
        const char *p = s + n;
        if ((size_t)(end - s) > n && strncasecmp(s, prefix[i], n) == 0 && digits(&p, end, ret) && p == end)
            return true;
    }
    // Linux counts HCA-1, HCA-2, … where the driver says mlx5_0, mlx5_1, …
    const char *p = s + 4;
    if (end - s > 4 && strncasecmp(s, "HCA-", 4) == 0 && digits(&p, end, ret) && p == end) {
        *ret = *ret ? *ret - 1 : 0;
        return true;
    }
    return false;
}

struct adapter_name adapter_name_parse(const char *desc)
{
    const struct adapter_name none = {0, ADAPTER_NO_INDEX};
    struct adapter_name r = none;
    const char *end = desc + strlen(desc);
    while (end > desc && end[-1] == ' ')
        end--;
    const char *token = end;
    while (token > desc && token[-1] != ' ')
        token--;
    const char *host_end = token;
    while (host_end > desc && host_end[-1] == ' ')
        host_end--;
    if (host_end == desc || (!driver_index(token, end, &r.index) && !place_index(token, end, &r.index)))
        return none;
    r.host_len = (size_t)(host_end - desc);
    return r;
}

int name_compare(const char *a, const char *b)
{
    while (*a && *b) {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            while (*a == '0' && isdigit((unsigned char)a[1]))
                a++;
            while (*b == '0' && isdigit((unsigned char)b[1]))
                b++;
            size_t na = strspn(a, "0123456789"), nb = strspn(b, "0123456789");
            if (na != nb)
                return na < nb ? -1 : 1;
            int c = memcmp(a, b, na);
            if (c)
                return c;
            a += na;
            b += nb;
            continue;
        }
        if (*a != *b)
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        a++, b++;
    }
    return (*a != 0) - (*b != 0);
}

// What a machine is called before anybody names it.
static bool generic_host_name(const char *s, size_t len)
{
    static const char *const name[] = {
        "localhost", "localhost.localdomain", "ubuntu", "debian", "linux", "(none)", "host", "node",
        "unknown"};
    for (size_t i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        if (strlen(name[i]) == len && strncasecmp(name[i], s, len) == 0)
            return true;
    }
    return false;
}

// ---------------------------------------------------------------- groups

struct group { // adapters that share a SystemImageGUID or a host name
    uint32_t first, n, repeated;
};

struct grouping {
    struct draft *d;
    uint32_t *parent; // by node
    struct u64map by_key;
    struct group *group;
    uint32_t num_groups;
    uint32_t *group_of; // by node, ID_NONE
};

static uint32_t root_of(uint32_t *parent, uint32_t i)
{
    while (parent[i] != i) {
        parent[i] = parent[parent[i]];
        i = parent[i];
    }
    return i;
}

static void join(struct grouping *g, uint32_t a, uint32_t b)
{
    a = root_of(g->parent, a);
    b = root_of(g->parent, b);
    if (a < b)
        g->parent[b] = a;
    else
        g->parent[a] = b;
}

static void groups_start(struct grouping *g)
{
    uint32_t n = g->d->f.num_nodes;
    u64map_init(&g->by_key, g->d->scratch, n + 1);
    g->num_groups = 0;
    memset(g->group_of, 0xff, n * sizeof(*g->group_of));
}

static void group_enter(struct grouping *g, uint32_t node, uint64_t key)
{
    uint32_t at;
    if (!u64map_get(&g->by_key, key, &at)) {
        at = g->num_groups++;
        g->group[at] = (struct group){.first = ID_NONE};
        u64map_set(&g->by_key, key, at);
    }
    g->group[at].n++;
    g->group[at].repeated += g->d->node[node].name_repeats;
    g->group_of[node] = at;
}

static void group_join(struct grouping *g, uint32_t node)
{
    struct group *gr = &g->group[g->group_of[node]];
    if (gr->first == ID_NONE)
        gr->first = node;
    else
        join(g, gr->first, node);
}

static void join_by_system(struct grouping *g)
{
    const struct fabric *f = &g->d->f;
    groups_start(g);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (f->node[i].role == ROLE_HOST && f->node[i].sys_guid)
            group_enter(g, i, f->node[i].sys_guid);
    }
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (g->group_of[i] != ID_NONE && g->group[g->group_of[i]].n <= HOST_MAX_ADAPTERS)
            group_join(g, i);
    }
}

static uint64_t name_hash(const char *s, size_t len)
{
    uint64_t h = 0xcbf29ce484222325ULL;
    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)s[i]) * 0x100000001b3ULL;
    return hash_mix64(h);
}

static void join_by_name(struct grouping *g)
{
    const struct fabric *f = &g->d->f;
    groups_start(g);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const char *desc = fabric_desc(f, &f->node[i]);
        struct adapter_name a = adapter_name_parse(desc);
        if (f->node[i].role == ROLE_HOST && a.host_len && !generic_host_name(desc, a.host_len))
            group_enter(g, i, name_hash(desc, a.host_len));
    }
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct group *gr = g->group_of[i] != ID_NONE ? &g->group[g->group_of[i]] : NULL;
        // One card that was replaced and still answers under its old name does not undo its host's name.
        if (gr && gr->n <= HOST_MAX_ADAPTERS && 4 * gr->repeated <= gr->n && !f->node[i].name_repeats)
            group_join(g, i);
    }
}

void roles_hosts(struct draft *d)
{
    uint32_t n = d->f.num_nodes;
    struct grouping g = {.d = d};
    g.parent = ARENA_NEW_N(d->scratch, n + 1, uint32_t);
    g.group = ARENA_NEW_N(d->scratch, n + 1, struct group);
    g.group_of = ARENA_NEW_N(d->scratch, n + 1, uint32_t);
    for (uint32_t i = 0; i < n; i++)
        g.parent[i] = i;
    join_by_system(&g);
    join_by_name(&g);
    d->f.num_hosts = 0;
    for (uint32_t i = 0; i < n; i++) { // the root of a set is its first node, so it has its number already
        struct node *nd = &d->node[i];
        nd->host = ID_NONE;
        if (nd->role != ROLE_HOST)
            continue;
        uint32_t root = root_of(g.parent, i);
        nd->host = root == i ? d->f.num_hosts++ : d->node[root].host;
    }
}
