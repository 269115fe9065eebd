// SPDX-License-Identifier: Apache-2.0
#include "fabric/reach.h"

#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

static bool is_switch(const struct fabric *f, uint32_t node)
{
    return f->node[node].type == NODE_SWITCH;
}

// The switch that an end port is cabled to; ID_NONE: it is no such port.
static uint32_t hangs_on(const struct fabric *f, uint32_t port)
{
    const struct port *p = &f->port[port];
    if (is_switch(f, p->node.i) || !port_valid(p->peer) || f->node[p->node.i].role == ROLE_AGGREGATION)
        return ID_NONE;
    uint32_t at = f->port[p->peer.i].node.i;
    return is_switch(f, at) ? at : ID_NONE;
}

// The switch behind a switch's port; ID_NONE.
static uint32_t switch_behind(const struct fabric *f, uint32_t port)
{
    port_id peer = f->port[port].peer;
    return port_valid(peer) && is_switch(f, f->port[peer.i].node.i) ? f->port[peer.i].node.i : ID_NONE;
}

// --- parts ---

// Per node: the connected part of a switch; ID_NONE for others.
static uint32_t *parts(const struct fabric *f, uint32_t *ret_n)
{
    uint32_t *part = xreallocarray(NULL, f->num_nodes + 1, sizeof(*part));
    uint32_t *queue = xreallocarray(NULL, f->num_switches + 1, sizeof(*queue));
    uint32_t n = 0;
    memset(part, 0xff, (f->num_nodes + 1) * sizeof(*part));
    for (uint32_t s = 0; s < f->num_switches; s++) {
        uint32_t head = 0, tail = 0;
        if (part[f->switch_node[s]] != ID_NONE)
            continue;
        queue[tail++] = f->switch_node[s];
        part[queue[0]] = n;
        while (head < tail) {
            const struct node *nd = &f->node[queue[head++]];
            for (uint32_t k = 1; k <= nd->num_ports; k++) {
                uint32_t z = switch_behind(f, nd->first_port + k);
                if (z != ID_NONE && part[z] == ID_NONE) {
                    part[z] = n;
                    queue[tail++] = z;
                }
            }
        }
        n++;
    }
    free(queue);
    *ret_n = n;
    return part;
}

static uint32_t part_of_end(const struct fabric *f, const uint32_t *part, uint32_t port)
{
    uint32_t at = hangs_on(f, port);
    return at == ID_NONE ? ID_NONE : part[at];
}

static uint64_t pairs(const struct fabric *f, const uint32_t *part, uint32_t n, uint32_t *ret_ends)
{
    uint64_t *ends = xcalloc(n + 1, sizeof(*ends)), sum = 0;
    *ret_ends = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        uint32_t p = part_of_end(f, part, i);
        if (p == ID_NONE)
            continue;
        ends[p]++;
        ++*ret_ends;
    }
    for (uint32_t i = 0; i < n; i++)
        sum += ends[i] > 0 ? ends[i] * (ends[i] - 1) : 0;
    free(ends);
    return sum;
}

// --- who is cut off ---

// Of a part before and one after: who is in both. Ends weigh more than any number of switches.
struct share {
    uint32_t before, after;
    uint64_t weight;
};
#define END_WEIGHT (1u << 20)

struct comparison {
    const struct fabric *before, *after;
    const bool *dead;
    uint32_t *old, *new; // parts
    struct share *share;
    uint32_t n, cap;
    struct u64map index; // old << 32 | new -> share
    uint32_t *stays;     // per part before: the part after that most of it is in
};

static void weigh(struct comparison *c, uint32_t old, uint32_t new, uint64_t weight)
{
    uint32_t at;
    if (old == ID_NONE || new == ID_NONE)
        return;
    if (!u64map_get(&c->index, (uint64_t)old << 32 | new, &at)) {
        if (c->n == c->cap) {
            c->cap = c->cap ? c->cap * 2 : 64;
            c->share = xreallocarray(c->share, c->cap, sizeof(*c->share));
        }
        at = c->n++;
        c->share[at] = (struct share){.before = old, .after = new};
        u64map_set(&c->index, (uint64_t)old << 32 | new, at);
    }
    c->share[at].weight += weight;
}

static bool is_dead(const struct comparison *c, uint32_t node)
{
    return c->dead != NULL && c->dead[node];
}

static void find_stays(struct comparison *c, uint32_t num_old)
{
    const struct fabric *f = c->before;
    uint64_t *best = xcalloc(num_old + 1, sizeof(*best));
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (!is_dead(c, f->port[i].node.i))
            weigh(c, part_of_end(f, c->old, i), part_of_end(c->after, c->new, i), END_WEIGHT);
    for (uint32_t s = 0; s < f->num_switches; s++)
        if (!is_dead(c, f->switch_node[s]))
            weigh(c, c->old[f->switch_node[s]], c->new[f->switch_node[s]], 1);
    c->stays = xreallocarray(NULL, num_old + 1, sizeof(*c->stays));
    memset(c->stays, 0xff, (num_old + 1) * sizeof(*c->stays));
    for (uint32_t i = 0; i < c->n; i++) {
        const struct share *x = &c->share[i];
        if (x->weight > best[x->before]) {
            best[x->before] = x->weight;
            c->stays[x->before] = x->after;
        }
    }
    free(best);
}

static void count_hosts(const struct comparison *c, const bool *lost, struct reach_change *ret)
{
    const struct fabric *f = c->before;
    uint8_t *seen = xcalloc(f->num_hosts + 1, 1); // 1: an end port is cut off, 2: one is not
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct node *n = &f->node[f->port[i].node.i];
        if (n->host == ID_NONE || hangs_on(f, i) == ID_NONE)
            continue;
        seen[n->host] |= lost[i] ? 1 : is_dead(c, f->port[i].node.i) ? 0 : 2;
    }
    for (uint32_t h = 0; h < f->num_hosts; h++) {
        ret->hosts_touched += seen[h] & 1;
        ret->hosts_lost += seen[h] == 1;
    }
    free(seen);
}

static void find_lost(struct comparison *c, struct reach_change *ret)
{
    const struct fabric *f = c->before;
    bool *lost = xcalloc(f->num_ports + 1, sizeof(*lost));
    ret->end = xreallocarray(NULL, ret->ends_before + 1, sizeof(*ret->end));
    ret->sw = xreallocarray(NULL, f->num_switches + 1, sizeof(*ret->sw));
    for (uint32_t i = 0; i < f->num_ports; i++) {
        uint32_t old = part_of_end(f, c->old, i);
        if (old == ID_NONE || is_dead(c, f->port[i].node.i))
            continue;
        uint32_t new = part_of_end(c->after, c->new, i);
        lost[i] = new == ID_NONE || new != c->stays[old];
        if (lost[i])
            ret->end[ret->num_end++] = i;
    }
    for (uint32_t s = 0; s < f->num_switches; s++) {
        uint32_t n = f->switch_node[s];
        if (!is_dead(c, n) && c->new[n] != c->stays[c->old[n]])
            ret->sw[ret->num_sw++] = n;
    }
    count_hosts(c, lost, ret);
    free(lost);
}

void reach_compare(const struct fabric *before, const struct fabric *after, const bool *dead,
                   struct reach_change *ret)
{
    struct comparison c = {.before = before, .after = after, .dead = dead};
    uint32_t num_old, num_new;
    *ret = (struct reach_change){0};
    c.old = parts(before, &num_old);
    c.new = parts(after, &num_new);
    u64map_init(&c.index, NULL, 64);
    ret->pairs_before = pairs(before, c.old, num_old, &ret->ends_before);
    ret->pairs_after = pairs(after, c.new, num_new, &ret->ends_after);
    find_stays(&c, num_old);
    find_lost(&c, ret);
    free(c.old);
    free(c.new);
    free(c.share);
    free(c.stays);
    u64map_done(&c.index);
}

void reach_change_done(struct reach_change *c)
{
    free(c->end);
    free(c->sw);
    *c = (struct reach_change){0};
}

// --- single points ---

// A depth-first walk with Tarjan's low points, kept on a stack of its own since a chain may be as long as
// there are switches. ends: of the subtree.
struct walk {
    const struct fabric *f;
    uint32_t *order, *low, *ends, *own; // per node; order 0: not seen
    uint32_t *cut_sum, *cut_max;        // per node: end ports in the parts that its loss leaves below it
    uint32_t *up;                       // per node: the port by which the walk came; ID_NONE
    uint32_t *next;                     // per node: next port to look at
    uint32_t *seen;                     // switches in order of the walk
    uint32_t n;
};

static void enter(struct walk *w, uint32_t node, uint32_t by)
{
    w->seen[w->n++] = node;
    w->order[node] = w->low[node] = w->n;
    w->ends[node] = w->own[node];
    w->up[node] = by;
    w->next[node] = 1;
}

// Back from node to the one above it.
static uint32_t leave(struct walk *w, uint32_t node)
{
    const struct fabric *f = w->f;
    if (w->up[node] == ID_NONE)
        return ID_NONE;
    uint32_t above = f->port[f->port[w->up[node]].peer.i].node.i;
    w->ends[above] += w->ends[node];
    if (w->low[node] < w->low[above])
        w->low[above] = w->low[node];
    if (w->low[node] >= w->order[above]) { // nothing below reaches past it
        w->cut_sum[above] += w->ends[node];
        if (w->ends[node] > w->cut_max[above])
            w->cut_max[above] = w->ends[node];
    }
    return above;
}

static void walk_from(struct walk *w, uint32_t root)
{
    const struct fabric *f = w->f;
    enter(w, root, ID_NONE);
    for (uint32_t at = root; at != ID_NONE;) {
        const struct node *n = &f->node[at];
        if (w->next[at] > n->num_ports) {
            at = leave(w, at);
            continue;
        }
        uint32_t port = n->first_port + w->next[at]++, z = switch_behind(f, port);
        if (z == ID_NONE || port == w->up[at])
            continue;
        if (w->order[z] == 0) {
            enter(w, z, f->port[port].peer.i);
            at = z;
        } else if (w->order[z] < w->low[at]) {
            w->low[at] = w->order[z];
        }
    }
}

struct worst {
    struct reach_single *item;
    uint32_t n, max, total;
};

static bool is_worse(const struct fabric *f, const struct reach_single *a, const struct reach_single *b)
{
    if (a->ends != b->ends)
        return a->ends > b->ends;
    if (a->node != b->node)
        return f->node[a->node].guid < f->node[b->node].guid;
    return a->port < b->port;
}

static void add(struct worst *x, const struct fabric *f, struct reach_single s)
{
    if (s.ends == 0)
        return;
    x->total++;
    if (x->n < x->max)
        x->item[x->n++] = s;
    else if (x->n > 0 && is_worse(f, &s, &x->item[x->n - 1]))
        x->item[x->n - 1] = s;
    else
        return;
    for (uint32_t i = x->n - 1; i > 0 && is_worse(f, &x->item[i], &x->item[i - 1]); i--) {
        struct reach_single t = x->item[i];
        x->item[i] = x->item[i - 1];
        x->item[i - 1] = t;
    }
}

static void judge(const struct walk *w, uint32_t from, struct worst *x)
{
    uint32_t total = w->ends[w->seen[from]]; // of the root: of the whole part
    for (uint32_t i = from; i < w->n; i++) {
        uint32_t v = w->seen[i], rest = total - w->cut_sum[v] - w->own[v];
        uint32_t most = rest > w->cut_max[v] ? rest : w->cut_max[v];
        add(x, w->f, (struct reach_single){.node = v, .ends = w->cut_sum[v] + rest - most});
        if (w->up[v] == ID_NONE || w->low[v] < w->order[v])
            continue; // there is another way past its cable
        uint32_t below = w->ends[v];
        add(x, w->f,
            (struct reach_single){.node = v,
                                  .port = w->f->port[w->up[v]].num,
                                  .ends = below < total - below ? below : total - below});
    }
}

uint32_t reach_singles(const struct fabric *f, struct reach_single *ret, uint32_t max)
{
    struct walk w = {.f = f};
    struct worst x = {.item = ret, .max = max};
    uint32_t **of[] = {&w.order, &w.low, &w.ends, &w.own, &w.cut_sum, &w.cut_max, &w.up, &w.next, &w.seen};
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
        *of[i] = xcalloc(f->num_nodes + 1, sizeof(uint32_t));
    for (uint32_t i = 0; i < f->num_ports; i++) {
        uint32_t at = hangs_on(f, i);
        if (at != ID_NONE)
            w.own[at]++;
    }
    for (uint32_t s = 0; s < f->num_switches; s++) {
        uint32_t from = w.n;
        if (w.order[f->switch_node[s]] != 0)
            continue;
        walk_from(&w, f->switch_node[s]);
        judge(&w, from, &x);
    }
    for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++)
        free(*of[i]);
    return x.total;
}
