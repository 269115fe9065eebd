// SPDX-License-Identifier: Apache-2.0
// Planes, roles of end nodes, tiers of switches.
//
// Tiers. Leaves are not simply "switches with hosts": a management host on a spine or a core must not turn
// the tree upside down, and a leaf whose hosts are all off is still a leaf.
//   1. Sure leaves: hosts are more than a fifth of what is connected.
//   2. Distances from them over switch links. The other switches with hosts, and those without, become
//      leaves too when the place fits. With hosts: three or more links from a leaf (a part of the fabric
//      that has few hosts yet), or two with all neighbours in one pod. Without: two links and all neighbours
//      those of one sure leaf, or four and a dead end or a rare case (a branch that has no hosts yet). What
//      is left with hosts is a spine or core that carries a stray host.
//   3. Tier = distance from the nearest leaf. When more than a tenth of the switch links join switches of
//      one tier the fabric is a mesh, not a tree: no tiers, every switch just ROLE_SWITCH.
// A pod is a set of sure leaves and the switches right above them that hang together.
#include "fabric/builder_priv.h"

#include <string.h>
#include <strings.h>

#include "lib/arena.h"

#define FAR 0xffffffffu

// ---------------------------------------------------------------- planes

static void plane_flood(struct draft *d, uint32_t start, uint32_t comp, uint32_t *comp_of, uint32_t *queue)
{
    const struct fabric *f = &d->f;
    uint32_t head = 0, tail = 0;
    comp_of[start] = comp;
    queue[tail++] = start;
    while (head < tail) {
        const struct node *n = &d->node[queue[head++]];
        uint32_t nports = n->num_ports + (n->type == NODE_SWITCH);
        // An adapter or router ends what a switch begins: it does not join the fabrics of its two ports.
        bool through = n->type == NODE_SWITCH || queue[head - 1] == start;
        for (uint32_t k = 0; through && k < nports; k++) {
            const struct node *z = fabric_peer_node(f, &d->port[n->first_port + k]);
            if (!z || comp_of[z - f->node] != ID_NONE)
                continue;
            comp_of[z - f->node] = comp;
            queue[tail++] = (uint32_t)(z - f->node);
        }
    }
}

struct plane_size {
    uint32_t comp, size;
};

static uint32_t plane_main(const struct draft *d, const uint32_t *comp_of, const uint32_t *size, uint32_t n)
{
    uint32_t best = 0;
    if (port_valid(d->f.sm_port))
        return comp_of[d->port[d->f.sm_port.i].node.i];
    for (uint32_t c = 1; c < n; c++) {
        if (size[c] > size[best])
            best = c;
    }
    return best;
}

static void planes_report(struct draft *d, const uint32_t *size)
{
    char name[200];
    for (uint32_t i = 0, last = 0; i < d->f.num_nodes; i++) {
        uint32_t pl = d->node[i].plane;
        if (pl <= last) // planes other than the main one are numbered in the order of their first nodes
            continue;
        last = pl;
        fabric_node_name(&d->f, &d->node[i], name, sizeof(name));
        if (size[pl] == 1)
            findings_add(d->findings, FINDING_WARNING, "unconnected-node", name,
                         "%s is not connected to anything", name);
        else
            findings_add(d->findings, FINDING_WARNING, "separate-part", name,
                         "%u nodes, %s among them, are not connected to the rest", size[pl], name);
    }
}

void roles_planes(struct draft *d)
{
    uint32_t n = d->f.num_nodes, comps = 0;
    uint32_t *comp_of = ARENA_NEW_N(d->scratch, n + 1, uint32_t);
    uint32_t *queue = ARENA_NEW_N(d->scratch, n + 1, uint32_t);
    memset(comp_of, 0xff, n * sizeof(*comp_of));
    for (uint32_t i = 0; i < n; i++) { // switches first: an end node belongs to the fabric of its switch
        if (d->node[i].type == NODE_SWITCH && comp_of[i] == ID_NONE)
            plane_flood(d, i, comps++, comp_of, queue);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (comp_of[i] == ID_NONE)
            plane_flood(d, i, comps++, comp_of, queue);
    }
    d->f.num_planes = comps;
    if (comps == 0)
        return;
    uint32_t *size = ARENA_NEW_N(d->scratch, comps, uint32_t);
    uint32_t *number = ARENA_NEW_N(d->scratch, comps, uint32_t);
    uint32_t *size_of_plane = ARENA_NEW_N(d->scratch, comps, uint32_t);
    for (uint32_t i = 0; i < n; i++)
        size[comp_of[i]]++;
    memset(number, 0xff, comps * sizeof(*number));
    uint32_t next = 1;
    number[plane_main(d, comp_of, size, comps)] = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (number[comp_of[i]] == ID_NONE)
            number[comp_of[i]] = next++;
        d->node[i].plane = (uint16_t)number[comp_of[i]];
        size_of_plane[number[comp_of[i]]] = size[comp_of[i]];
    }
    planes_report(d, size_of_plane);
}

// ---------------------------------------------------------------- end nodes

// Mellanox device that SHARP aggregation nodes of Quantum switches report.
#define VENDOR_MELLANOX 0x02c9
#define DEVICE_AGGREGATION 0xcf09

static bool lives_in_switch(const struct draft *d, const struct node *n)
{
    for (uint32_t k = 0; n->sys_guid && k < n->num_ports; k++) {
        const struct node *z = fabric_peer_node(&d->f, &d->port[n->first_port + k]);
        if (z && z->type == NODE_SWITCH && z->sys_guid == n->sys_guid)
            return true;
    }
    return false;
}

static enum node_role end_role(const struct draft *d, const struct node *n)
{
    const char *desc = fabric_desc(&d->f, n);
    if (n->type == NODE_ROUTER)
        return ROLE_ROUTER;
    if (strcasestr(desc, "aggregation node") ||
        (n->vendor_id == VENDOR_MELLANOX && n->device_id == DEVICE_AGGREGATION) || lives_in_switch(d, n))
        return ROLE_AGGREGATION;
    // A host may be called gateway-01: what names a host and an adapter is a host.
    if (adapter_name_parse(desc).host_len == 0 &&
        (strcasestr(desc, "skyway") || strcasestr(desc, "bridgex") || strcasestr(desc, "gateway")))
        return ROLE_GATEWAY;
    return ROLE_HOST;
}

void roles_end_nodes(struct draft *d)
{
    for (uint32_t i = 0; i < d->f.num_nodes; i++) {
        struct node *n = &d->node[i];
        n->role = n->type == NODE_SWITCH ? ROLE_SWITCH : (uint8_t)end_role(d, n);
    }
}

// ---------------------------------------------------------------- tiers

struct tiers {
    struct draft *d;
    uint32_t n;      // switches
    uint32_t *first; // n + 1: where a switch's neighbours start in adj
    uint32_t *adj;   // neighbour per link, parallel links repeat
    uint32_t *hosts; // host and gateway links of a switch
    uint32_t *dist;  // from the leaves so far
    uint32_t *pod, *queue, *mark;
    uint32_t stamp;
    bool *leaf;
    bool far_is_rare; // switches without hosts four links from a leaf are few beside the leaves
};

static bool counts_as_host(const struct node *n)
{
    return n->role == ROLE_HOST || n->role == ROLE_GATEWAY;
}

static void adjacency_make(struct tiers *t)
{
    const struct fabric *f = &t->d->f;
    uint32_t at = 0;
    t->first = ARENA_NEW_N(t->d->scratch, t->n + 1, uint32_t);
    t->adj = ARENA_NEW_N(t->d->scratch, 2 * f->num_links + 1, uint32_t);
    t->hosts = ARENA_NEW_N(t->d->scratch, t->n + 1, uint32_t);
    for (uint32_t s = 0; s < t->n; s++) {
        const struct node *n = fabric_switch(f, s);
        t->first[s] = at;
        for (uint32_t k = 1; k <= n->num_ports; k++) {
            const struct node *z = fabric_peer_node(f, &f->port[n->first_port + k]);
            if (z && z->type == NODE_SWITCH)
                t->adj[at++] = z->sw;
            else if (z && counts_as_host(z))
                t->hosts[s]++;
        }
    }
    t->first[t->n] = at;
}

static uint32_t degree(const struct tiers *t, uint32_t s)
{
    return t->first[s + 1] - t->first[s];
}

static void distances(struct tiers *t)
{
    uint32_t head = 0, tail = 0;
    for (uint32_t s = 0; s < t->n; s++) {
        t->dist[s] = t->leaf[s] ? 0 : FAR;
        if (t->leaf[s])
            t->queue[tail++] = s;
    }
    while (head < tail) {
        uint32_t s = t->queue[head++];
        for (uint32_t k = t->first[s]; k < t->first[s + 1]; k++) {
            uint32_t z = t->adj[k];
            if (t->dist[z] != FAR)
                continue;
            t->dist[z] = t->dist[s] + 1;
            t->queue[tail++] = z;
        }
    }
}

// Components of the leaves and what is one link above them.
static void pods_make(struct tiers *t)
{
    uint32_t pods = 0;
    memset(t->pod, 0xff, t->n * sizeof(*t->pod));
    for (uint32_t s0 = 0; s0 < t->n; s0++) {
        uint32_t head = 0, tail = 0;
        if (t->dist[s0] != 0 || t->pod[s0] != FAR)
            continue;
        t->pod[s0] = pods;
        t->queue[tail++] = s0;
        while (head < tail) {
            uint32_t s = t->queue[head++];
            for (uint32_t k = t->first[s]; k < t->first[s + 1]; k++) {
                uint32_t z = t->adj[k];
                // Only between a leaf and a spine: links between spines join no pods.
                if (t->dist[z] + t->dist[s] != 1 || t->pod[z] != FAR)
                    continue;
                t->pod[z] = pods;
                t->queue[tail++] = z;
            }
        }
        pods++;
    }
}

static bool neighbours_in_one_pod(const struct tiers *t, uint32_t s)
{
    uint32_t pod = FAR;
    for (uint32_t k = t->first[s]; k < t->first[s + 1]; k++) {
        uint32_t z = t->adj[k];
        if (t->dist[z] > 1)
            continue;
        if (pod != FAR && t->pod[z] != pod)
            return false;
        pod = t->pod[z];
    }
    return pod != FAR;
}

static bool has_neighbour_marked(const struct tiers *t, uint32_t s, bool all)
{
    bool any = false;
    for (uint32_t k = t->first[s]; k < t->first[s + 1]; k++) {
        bool is = t->mark[t->adj[k]] == t->stamp;
        if (all && !is)
            return false;
        any |= is;
    }
    return any;
}

// A leaf among s's neighbours' neighbours has all of s's neighbours: s hangs where that leaf hangs.
static bool twin_of_leaf(struct tiers *t, uint32_t s)
{
    uint32_t a = t->adj[t->first[s]];
    for (uint32_t k = t->first[a], tried = 0; k < t->first[a + 1] && tried < 8; k++) {
        uint32_t leaf = t->adj[k];
        if (t->dist[leaf] != 0)
            continue;
        tried++;
        t->stamp++;
        for (uint32_t j = t->first[leaf]; j < t->first[leaf + 1]; j++)
            t->mark[t->adj[j]] = t->stamp;
        if (has_neighbour_marked(t, s, true))
            return true;
    }
    return false;
}

static bool is_dead_end(const struct tiers *t, uint32_t s)
{
    for (uint32_t k = t->first[s]; k < t->first[s + 1]; k++) {
        if (t->adj[k] != t->adj[t->first[s]])
            return false;
    }
    return true;
}

static void far_count(struct tiers *t)
{
    uint32_t leaves = 0, far = 0;
    for (uint32_t s = 0; s < t->n; s++) {
        leaves += t->dist[s] == 0;
        far += t->dist[s] >= 4 && t->dist[s] != FAR && !t->hosts[s];
    }
    t->far_is_rare = far * 16 <= leaves;
}

static bool fits_as_leaf(struct tiers *t, uint32_t s)
{
    if (t->dist[s] < 2 || t->dist[s] == FAR || degree(t, s) == 0)
        return false;
    if (t->hosts[s])
        return t->dist[s] >= 3 || neighbours_in_one_pod(t, s);
    if (t->dist[s] >= 4)
        return t->far_is_rare || is_dead_end(t, s);
    return t->dist[s] == 2 && twin_of_leaf(t, s);
}

// One round: of all that fit, those farthest from a leaf, for what is above them gets its place from them.
static bool leaves_promote(struct tiers *t)
{
    uint32_t far = 0, n = 0;
    distances(t);
    pods_make(t);
    far_count(t);
    for (uint32_t s = 0; s < t->n; s++) {
        if (t->dist[s] < far || !fits_as_leaf(t, s))
            continue;
        if (t->dist[s] > far)
            n = 0;
        far = t->dist[s];
        t->queue[n++] = s;
    }
    for (uint32_t i = 0; i < n; i++)
        t->leaf[t->queue[i]] = true;
    return n > 0;
}

static void leaves_sure(struct tiers *t)
{
    uint32_t planes = t->d->f.num_planes;
    bool *has = ARENA_NEW_N(t->d->scratch, planes + 1, bool);
    for (uint32_t s = 0; s < t->n; s++) {
        t->leaf[s] = t->hosts[s] > 0 && 4 * t->hosts[s] > degree(t, s);
        has[fabric_switch(&t->d->f, s)->plane] |= t->leaf[s];
    }
    for (uint32_t s = 0; s < t->n; s++) {
        if (!has[fabric_switch(&t->d->f, s)->plane])
            t->leaf[s] = t->hosts[s] > 0;
    }
}

static void leaves_find(struct tiers *t)
{
    leaves_sure(t);
    // A round settles one more ring of the fabric; real ones need two or three.
    for (int round = 0; round < 16 && leaves_promote(t); round++)
        ;
    distances(t);
}

static bool is_tree(const struct tiers *t)
{
    uint32_t flat = 0, all = 0;
    for (uint32_t s = 0; s < t->n; s++) {
        for (uint32_t k = t->first[s]; k < t->first[s + 1]; k++) {
            all += t->dist[s] != FAR;
            flat += t->dist[s] != FAR && t->dist[s] == t->dist[t->adj[k]];
        }
    }
    return 10 * flat <= all;
}

static enum node_role tier_role(uint32_t tier)
{
    return tier == 0 ? ROLE_LEAF : tier == 1 ? ROLE_SPINE : ROLE_CORE;
}

static void tiers_store(struct tiers *t)
{
    struct draft *d = t->d;
    bool tree = is_tree(t);
    for (uint32_t s = 0; s < t->n; s++) {
        struct node *n = &d->node[d->f.switch_node[s]];
        n->tier = TIER_NONE;
        n->role = ROLE_SWITCH;
        if (!tree || t->dist[s] >= TIER_NONE)
            continue;
        n->tier = (uint8_t)t->dist[s];
        n->role = (uint8_t)tier_role(t->dist[s]);
        if (n->tier + 1u > d->f.num_tiers)
            d->f.num_tiers = n->tier + 1u;
    }
}

void roles_tiers(struct draft *d)
{
    struct tiers t = {.d = d, .n = d->f.num_switches};
    d->f.num_tiers = 0;
    for (uint32_t i = 0; i < d->f.num_nodes; i++)
        d->node[i].tier = TIER_NONE;
    adjacency_make(&t);
    t.dist = ARENA_NEW_N(d->scratch, t.n + 1, uint32_t);
    t.pod = ARENA_NEW_N(d->scratch, t.n + 1, uint32_t);
    t.queue = ARENA_NEW_N(d->scratch, t.n + 1, uint32_t);
    t.mark = ARENA_NEW_N(d->scratch, t.n + 1, uint32_t);
    t.leaf = ARENA_NEW_N(d->scratch, t.n + 1, bool);
    leaves_find(&t);
    tiers_store(&t);
}
