// SPDX-License-Identifier: Apache-2.0
// Sequence numbers for the engine rail, of which rail.c takes the digits.
//
// Numbers run over the leaves in the order of pod, rail, SU and name, on a leaf by slot: a host that is
// missing leaves a hole, so that all others keep theirs. Compute hosts, storage and management are numbered
// each for themselves, and so are other end nodes (aggregation nodes, gateways) and the switches' own LIDs:
// what is few, or talks otherwise, does not skew the many. The further LIDs of an LMC range follow their
// base.
//
// So the manager's own port, to which all hosts send what they ask, is off the ways of jobs where it is on a
// host that its name tells apart: it leaves a hole among the compute hosts of its leaf, and rail.c deals
// cables out to compute hosts first, so that it gets the one that its hole left. On a compute host it cannot
// be: one LID has one way. Switches' own LIDs are dealt out one after the other, so that what the manager
// sends them takes all cables in turn. Nothing hangs on who is manager at the time: numbers would change with
// it.
//
// Where a leaf's hosts fill its cables up, each leaf begins at the same cable: any shift from leaf to leaf
// then takes each once. Where they leave some over, numbers run on, so that all cables get a turn; where they
// are more, so that it is not always the first cables that carry double. The same holds for pods and the
// cables above their spines. Where each pod has one rail, numbers run along the rail: the adapters of a host
// have the same number, and leaves that follow one another on a rail follow one another in numbers.
#include "routing/rail_priv.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "fabric/names.h"

enum kind { // of destination, each with a sequence of its own
    KIND_COMPUTE,
    KIND_STORAGE,
    KIND_MANAGEMENT,
    KIND_OTHER, // ends that are no host's, and hosts above the leaves
    KIND_OWN,   // port 0
    KINDS,
};

struct naming {
    const struct rgraph *g;
    const struct rorder *o;
    bool *leaf;
    uint32_t *order, leaves; // switches, leaves first
    uint32_t *pod;           // per leaf
    bool by_rail;            // numbers run along rails, not along pods
    uint32_t *size;          // per host number: its adapters
    uint32_t usual;          // size of the hosts that have most adapters
    uint32_t *slot;          // per slot: its place among those that any compute host is on
};

// --- order of switches ---

// Leaves first, then by level, name and GUID.
static int switch_cmp(const void *a, const void *b, void *arg)
{
    const struct naming *c = arg;
    const struct fabric *f = c->g->f;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (c->leaf[x] != c->leaf[y])
        return c->leaf[x] ? -1 : 1;
    if (c->o->tiered[c->g->comp[x]] && c->o->tiered[c->g->comp[y]] && c->o->rank[x] != c->o->rank[y])
        return c->o->rank[x] < c->o->rank[y] ? -1 : 1;
    int r = name_compare(fabric_desc(f, fabric_switch(f, x)), fabric_desc(f, fabric_switch(f, y)));
    if (r)
        return r;
    return c->g->guid[x] < c->g->guid[y] ? -1 : c->g->guid[x] > c->g->guid[y];
}

static uint32_t rail_of(const struct naming *c, uint32_t s)
{
    return fabric_switch(c->g->f, s)->rail;
}

// What numbers begin anew for.
static uint32_t block_of(const struct naming *c, uint32_t s)
{
    return c->by_rail ? rail_of(c, s) : c->pod[s];
}

static int leaf_cmp(const void *a, const void *b, void *arg)
{
    const struct naming *c = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct node *m = fabric_switch(c->g->f, x), *n = fabric_switch(c->g->f, y);
    if (block_of(c, x) != block_of(c, y))
        return block_of(c, x) < block_of(c, y) ? -1 : 1;
    if (m->rail != n->rail)
        return m->rail < n->rail ? -1 : 1;
    if (m->su != n->su)
        return m->su < n->su ? -1 : 1;
    return switch_cmp(a, b, arg);
}

// Takes the leaves in order; with each, those that share most of their neighbours with it.
static void find_pods(struct naming *c, struct arena *a)
{
    const struct rgraph *g = c->g;
    uint32_t *mark = ARENA_NEW_N(a, g->n + 1, uint32_t);
    for (uint32_t i = 0, pods = 0; i < c->leaves; i++) {
        uint32_t v = c->order[i];
        if (c->pod[v])
            continue;
        pods++;
        for (uint32_t e = g->goff[v]; e < g->goff[v + 1]; e++)
            mark[g->g[e].peer] = pods;
        for (uint32_t k = i; k < c->leaves; k++) {
            uint32_t x = c->order[k], shared = 0;
            for (uint32_t e = g->goff[x]; e < g->goff[x + 1] && !c->pod[x]; e++)
                shared += mark[g->g[e].peer] == pods;
            if (!c->pod[x] && (x == v || shared * 2 > g->goff[x + 1] - g->goff[x]))
                c->pod[x] = pods;
        }
    }
}

static int pod_cmp(const void *a, const void *b, void *arg)
{
    const struct naming *c = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (c->pod[x] != c->pod[y])
        return c->pod[x] < c->pod[y] ? -1 : 1;
    return rail_of(c, x) < rail_of(c, y) ? -1 : rail_of(c, x) > rail_of(c, y);
}

// Whether nearly all leaves are in pods where nearly all have the same rail, and there are several rails.
static bool pods_have_rails(const struct naming *c, struct arena *a)
{
    uint32_t *by = arena_memdup(a, c->order, (c->leaves + 1) * sizeof(*by)), same = 0, paired = 0;
    if (c->g->f->num_rails < 2)
        return false;
    qsort_r(by, c->leaves, sizeof(*by), pod_cmp, (void *)c);
    for (uint32_t i = 1; i < c->leaves; i++) {
        if (c->pod[by[i]] != c->pod[by[i - 1]])
            continue;
        paired++;
        same += rail_of(c, by[i]) == rail_of(c, by[i - 1]) && rail_of(c, by[i]) != RAIL_NONE;
    }
    return paired > 0 && same * 20 >= paired * 19;
}

// --- kinds ---

static bool has_word(const char *name, const char *const *word)
{
    for (const char *p = name; *p; p++) {
        if (p > name && isalpha((unsigned char)p[-1]))
            continue;
        for (uint32_t i = 0; word[i]; i++) {
            if (strncasecmp(p, word[i], strlen(word[i])) == 0)
                return true;
        }
    }
    return false;
}

// Hosts with most of the usual number of adapters compute, whatever their name; else the name decides. Many
// adapters have none of their own: they are taken as they come.
static enum kind kind_of_host(const struct naming *c, const struct node *n)
{
    static const char *const storage[] = {"stor", "nfs",  "oss",    "mds",  "lustre", "weka",
                                          "vast", "ceph", "beegfs", "gpfs", NULL};
    static const char *const management[] = {"mgmt",  "manage", "ufm",   "admin",
                                             "login", "head",   "infra", NULL};
    const char *name = fabric_desc(c->g->f, n);
    uint32_t size = n->host < c->g->f->num_hosts ? c->size[n->host] : 1;
    if (c->usual > 1 && size * 2 > c->usual)
        return KIND_COMPUTE;
    if (has_word(name, storage))
        return KIND_STORAGE;
    return has_word(name, management) ? KIND_MANAGEMENT : KIND_COMPUTE;
}

static enum kind kind_of(const struct naming *c, uint32_t s, const struct rdest *d)
{
    if (d->port == 0)
        return KIND_OWN;
    if (!d->is_host || !c->leaf[s])
        return KIND_OTHER;
    const struct fabric *f = c->g->f;
    return kind_of_host(c, fabric_node(f, f->port[f->lid_port[d->lid]].node));
}

static void count_adapters(struct naming *c, struct arena *a)
{
    const struct fabric *f = c->g->f;
    uint32_t sum[256] = {0};
    c->size = ARENA_NEW_N(a, f->num_hosts + 1, uint32_t);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (f->node[i].host < f->num_hosts)
            c->size[f->node[i].host] += f->node[i].num_ports;
    }
    for (uint32_t h = 0; h < f->num_hosts; h++)
        sum[c->size[h] < 255 ? c->size[h] : 255] += c->size[h];
    for (uint32_t i = 1; i < 256; i++)
        c->usual = sum[i] > sum[c->usual] ? i : c->usual;
}

// --- numbers ---

struct shape {      // of most leaves and of the switches above them
    uint32_t width; // slots
    uint32_t cables, neighbours, above;
};

static uint32_t most_common(const uint32_t hist[256])
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < 256; i++) {
        if (hist[i] > 0 && hist[i] >= hist[best])
            best = i;
    }
    return best;
}

static uint32_t width_of(const struct naming *c, uint32_t s, const uint8_t *kind)
{
    const struct rgraph *g = c->g;
    uint32_t w = 0;
    for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
        if (kind[i] == KIND_COMPUTE && c->slot[g->d[i].slot] + 1 > w)
            w = c->slot[g->d[i].slot] + 1;
    }
    return w;
}

static void count_ups(const struct naming *c, uint32_t s, uint32_t *ret_cables, uint32_t *ret_neighbours)
{
    const struct rgraph *g = c->g;
    *ret_cables = *ret_neighbours = 0;
    for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
        if (c->o->rank[g->g[i].peer] <= c->o->rank[s])
            continue;
        *ret_cables += g->g[i].num_ports;
        ++*ret_neighbours;
    }
}

static struct shape shape_of(const struct naming *c, const uint8_t *kind)
{
    const struct rgraph *g = c->g;
    uint32_t widths[256] = {0}, cables[256] = {0}, neighbours[256] = {0}, above[256] = {0}, x, y;
    for (uint32_t l = 0; l < c->leaves; l++) {
        uint32_t s = c->order[l];
        count_ups(c, s, &x, &y);
        widths[width_of(c, s, kind) & 255]++;
        cables[x & 255]++;
        neighbours[y & 255]++;
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
            count_ups(c, g->g[i].peer, &x, &y);
            above[x & 255]++;
        }
    }
    struct shape r = {most_common(widths), most_common(cables), most_common(neighbours), most_common(above)};
    r.cables = r.cables ? r.cables : 1;
    return r;
}

// Slots that no compute host is on anywhere do not count: ports that are never used, or another kind's.
static void find_slots(struct naming *c, const uint8_t *kind, struct arena *a)
{
    const struct rgraph *g = c->g;
    bool used[256] = {false};
    uint32_t n = 0;
    for (uint32_t i = 0; i < g->doff[g->n]; i++) {
        if (kind[i] == KIND_COMPUTE)
            used[g->d[i].slot] = true;
    }
    c->slot = ARENA_NEW_N(a, 256, uint32_t);
    for (uint32_t i = 0; i < 256; i++) {
        c->slot[i] = n;
        n += used[i];
    }
}

// Numbers that one block takes, most often: with them, where the next begins is decided.
static uint32_t usual_span(const struct naming *c, const uint32_t *width, struct arena *a)
{
    uint32_t *span = ARENA_NEW_N(a, c->leaves + 1, uint32_t), blocks = 0, best = 0, best_count = 0;
    for (uint32_t l = 0; l < c->leaves; l++) {
        blocks += l == 0 || block_of(c, c->order[l]) != block_of(c, c->order[l - 1]);
        span[blocks - 1] += width[l];
    }
    for (uint32_t i = 0; i < blocks && i < 256; i++) {
        uint32_t count = 0;
        for (uint32_t k = 0; k < blocks; k++)
            count += span[k] == span[i];
        if (count > best_count || (count == best_count && span[i] > best)) {
            best = span[i];
            best_count = count;
        }
    }
    return best;
}

static bool fills(uint64_t what, uint64_t room)
{
    return what * 8 >= room * 7;
}

// --- cables of their own for rails that share leaves ---

// With R adapters of each host on a leaf, a rail has every R-th number. As these run on over more cables than
// a leaf has hosts, a rail comes to use cables that others use too, though never at once: until a host is
// missing, or has adapters of another name, so that one rail is some places behind another. So numbers are
// dealt out to cables anew: of the cables, each rail has as many for itself as go round; those left over are
// shared, each by as few rails side by side as can be and at times far apart. In the end each cable has as
// many numbers as any other. For 20 cables and hosts of 8 adapters, number by number:
//      0  1  2  3  4  5  6  7
//      8  9 10 11 12 13 14 15
//     16  1 17  3 18  5 19  7
//      0  9  2 11  4 13  6 15
//      8 16 10 17 12 18 14 19
struct deal {
    uint32_t cables, rails, len; // len: numbers until it begins anew; 0: cables in turn
    uint32_t *cable;             // per number: its cable
    uint32_t *before;            // numbers before it with the same cable
};

static uint32_t gcd(uint32_t a, uint32_t b)
{
    return b ? gcd(b, a % b) : a;
}

// Of the shared cables' numbers, taken rail by rail: whether rail r has some of cable k's.
static bool shares(const struct deal *d, uint32_t r, uint32_t k)
{
    uint32_t g = gcd(d->cables, d->rails), each = d->cables % d->rails / g, turns = d->rails / g;
    return k * turns < (r + 1) * each && r * each < (k + 1) * turns;
}

// The cable that was used least of those that rail r may use; its own before shared ones, `left` of which it
// may use still.
static uint32_t next_cable(const struct deal *d, const uint32_t *used, uint32_t r, uint32_t left)
{
    uint32_t own = d->cables - d->cables % d->rails, best = ID_NONE;
    for (uint32_t c = r; c < own; c += d->rails)
        best = best == ID_NONE || used[c] < used[best] ? c : best;
    for (uint32_t c = own; c < d->cables && left > 0; c++) {
        if (shares(d, r, c - own) && (best == ID_NONE || used[c] < used[best]))
            best = c;
    }
    return best;
}

// Whether leaves of so many slots have each of their numbers on another cable, and cables as many numbers.
static bool is_fair(const struct deal *d, const uint32_t *used, uint32_t width)
{
    for (uint32_t c = 0; c < d->cables; c++) {
        if (used[c] != d->len / d->cables)
            return false;
    }
    for (uint32_t first = 0; first < d->len; first += d->rails) {
        bool taken[256] = {false};
        for (uint32_t i = first; i < first + width; i++) {
            if (taken[d->cable[i % d->len]])
                return false;
            taken[d->cable[i % d->len]] = true;
        }
    }
    return true;
}

static struct deal deal_new(uint32_t cables, uint32_t rails, uint32_t width, struct arena *a)
{
    struct deal d = {.cables = cables, .rails = rails};
    uint32_t used[256] = {0}, left[256], len = cables / gcd(cables, rails) * rails;
    if (cables > 255 || rails < 2 || rails > width || width > cables)
        return d;
    d.cable = ARENA_NEW_N(a, len, uint32_t);
    d.before = ARENA_NEW_N(a, len, uint32_t);
    for (uint32_t r = 0; r < rails; r++)
        left[r] = cables % rails / gcd(cables, rails);
    for (uint32_t i = 0; i < len; i++) {
        uint32_t c = next_cable(&d, used, i % rails, left[i % rails]);
        left[i % rails] -= c >= cables - cables % rails;
        d.cable[i] = c;
        d.before[i] = used[c]++;
    }
    d.len = len;
    d.len = is_fair(&d, used, width) ? len : 0;
    return d;
}

// The number whose first digit is the cable; what is left of it goes on counting the numbers on this cable.
static uint32_t deal_out(const struct deal *d, uint32_t n)
{
    if (d->len == 0)
        return n;
    return (n / d->len * (d->len / d->cables) + d->before[n % d->len]) * d->cables + d->cable[n % d->len];
}

static uint32_t host_of(const struct naming *c, uint32_t i)
{
    const struct fabric *f = c->g->f;
    return fabric_node(f, f->port[f->lid_port[c->g->d[i].lid]].node)->host;
}

// Adapters that most compute hosts have on one leaf.
static uint32_t rails_of_leaves(const struct naming *c, const uint8_t *kind)
{
    const struct rgraph *g = c->g;
    uint32_t hist[256] = {0};
    for (uint32_t l = 0; l < c->leaves; l++) {
        uint32_t s = c->order[l];
        for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
            uint32_t host = host_of(c, i), same = 0;
            for (uint32_t k = g->doff[s]; k < g->doff[s + 1] && host < g->f->num_hosts; k++)
                same += kind[k] == KIND_COMPUTE && g->d[k].lid_offset == 0 && host_of(c, k) == host;
            if (kind[i] == KIND_COMPUTE && g->d[i].lid_offset == 0)
                hist[same < 255 ? same : 255]++;
        }
    }
    return most_common(hist);
}

static void number_compute(struct rgraph *g, const struct naming *c, const uint8_t *kind, struct arena *a)
{
    struct shape sh = shape_of(c, kind);
    uint32_t *width = ARENA_NEW_N(a, c->leaves + 1, uint32_t), base = 0;
    struct deal deal = {0};
    if (!fills(sh.width, sh.cables))
        deal = deal_new(sh.cables, rails_of_leaves(c, kind), sh.width, a);
    for (uint32_t l = 0; l < c->leaves; l++) {
        width[l] = width_of(c, c->order[l], kind);
        if (fills(sh.width, sh.cables) && width[l] <= sh.cables)
            width[l] = (width[l] + sh.cables - 1) / sh.cables * sh.cables;
        else if (deal.len > 0)
            width[l] = (width[l] + deal.rails - 1) / deal.rails * deal.rails;
    }
    bool anew = c->by_rail || fills(usual_span(c, width, a), (uint64_t)sh.neighbours * sh.above);
    for (uint32_t l = 0; l < c->leaves; l++) {
        uint32_t s = c->order[l];
        if (anew && l > 0 && block_of(c, s) != block_of(c, c->order[l - 1]))
            base = 0;
        for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
            if (kind[i] == KIND_COMPUTE)
                g->d[i].seq = deal_out(&deal, base + c->slot[g->d[i].slot]) + g->d[i].lid_offset;
        }
        base += width[l];
    }
}

static void number_others(struct rgraph *g, const struct naming *c, const uint8_t *kind)
{
    uint32_t next[KINDS] = {0};
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t s = c->order[k];
        for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
            struct rdest *d = &g->d[i];
            if (kind[i] == KIND_COMPUTE)
                continue;
            next[kind[i]] += d->lid_offset == 0;
            d->seq = next[kind[i]] - 1 + d->lid_offset;
        }
    }
}

uint32_t *rrail_numbers(struct rgraph *g, const struct rorder *o, struct arena *a)
{
    struct naming c = {.g = g, .o = o};
    c.leaf = ARENA_NEW_N(a, g->n + 1, bool);
    c.order = ARENA_NEW_N(a, g->n + 1, uint32_t);
    c.pod = ARENA_NEW_N(a, g->n + 1, uint32_t);
    for (uint32_t s = 0; s < g->n; s++) {
        c.leaf[s] = g->hosts[s] > 0 && (o->foot[s] || !o->tiered[g->comp[s]]);
        c.leaves += c.leaf[s];
        c.order[s] = s;
    }
    qsort_r(c.order, g->n, sizeof(*c.order), switch_cmp, &c);
    find_pods(&c, a);
    c.by_rail = pods_have_rails(&c, a);
    qsort_r(c.order, c.leaves, sizeof(*c.order), leaf_cmp, &c);
    count_adapters(&c, a);
    uint8_t *kind = ARENA_NEW_N(a, g->doff[g->n] + 1, uint8_t);
    for (uint32_t s = 0; s < g->n; s++) {
        for (uint32_t i = g->doff[s]; i < g->doff[s + 1]; i++) {
            kind[i] = (uint8_t)kind_of(&c, s, &g->d[i]);
            g->d[i].few = kind[i] != KIND_COMPUTE;
        }
    }
    find_slots(&c, kind, a);
    number_compute(g, &c, kind, a);
    number_others(g, &c, kind);
    return c.order;
}
