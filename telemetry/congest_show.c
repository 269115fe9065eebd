// SPDX-License-Identifier: Apache-2.0
// Congestion as people see it: words for kinds, a tree by distance from its root, one port's score; how waits
// and use are spread over rails and scalable units.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/congest_priv.h"

static const struct {
    const char *name, *title, *advice;
} kinds[] = {
    [CONGEST_SLOW_LINK] = {"slow-link", "link slower than it should be",
                           "look at the cable: reseat or replace it; meanwhile keep traffic off it"},
    [CONGEST_RECEIVER] =
        {"receiver", "receiver does not drain",
         "look at the host: PCIe, memory, a hung process; its cable's counters say whether it "
         "is the cable; if others suffer keep jobs off it: drain it in the scheduler"},
    [CONGEST_INCAST] = {"incast", "several senders to one receiver",
                        "nothing is broken: spread what is sent to this host, or send it more slowly"},
    [CONGEST_OVERSUBSCRIBED] = {"oversubscribed", "oversubscribed trunk",
                                "more is sent than these cables carry: look for cables that are down or "
                                "drained beside it, and at where jobs are placed"},
    [CONGEST_IMBALANCE] = {"imbalance", "trunk carries alone what its siblings could",
                           "routes spread this traffic badly: compare weft route quality, or use adaptive "
                           "routing"},
    [CONGEST_DEADLOCK] = {"deadlock", "ports wait for each other in a circle",
                          "routes have a cycle: weft route verify; taking any cable of the circle down frees "
                          "the others"},
    [CONGEST_UNCLEAR] =
        {"unclear", "cause unclear",
         "look at both ports named, and at what is not read: bursts shorter than a sweep show "
         "only so"},
};

const char *congest_kind_name(enum congest_kind k)
{
    return kinds[k].name;
}

const char *congest_kind_title(enum congest_kind k)
{
    return kinds[k].title;
}

const char *congest_kind_advice(enum congest_kind k)
{
    return kinds[k].advice;
}

void congest_port(const struct congest *c, uint32_t slot, struct congest_port *ret)
{
    *ret = (struct congest_port){.held = NAN, .used = NAN, .score = NAN};
    if (slot >= c->num)
        return;
    const struct congest_track *k = &c->track[slot];
    ret->held = k->h;
    ret->used = k->u;
    ret->is_held = k->is_held;
    ret->is_full = k->is_full;
    ret->lost_bps = k->lost_bps;
    ret->tree = c->in_tree[slot];
    if (!isnan(k->h) || !isnan(k->u))
        ret->score = fmax(isnan(k->h) ? 0 : k->h, isnan(k->u) ? 0 : congest_pressure(k->u));
}

void congest_waits(const struct congest_tree *tree, struct congest_waits *ret)
{
    double most = 0, root = 0;
    *ret = (struct congest_waits){0};
    for (uint32_t i = 0; i < tree->num_members; i++) {
        const struct congest_member *m = &tree->member[i];
        if (m->slot == tree->root) {
            root = m->lost_bps;
            continue;
        }
        ret->ports++;
        most += m->lost_bps;
    }
    // A tree explains of each port's wait no more than there is.
    ret->lost_bps = ret->ports ? fmin(most, fmax(0, tree->lost_bps - root)) : tree->lost_bps;
}

// --- levels ---

struct many { // names of nodes, put together as short as they go
    const struct fabric *f;
    const struct node *first, *last; // by name
    uint32_t num;                    // different ones
    bool alike;                      // all of one role
    uint32_t *seen, num_seen;
};

static void many_add(struct many *m, const struct node *n)
{
    uint32_t i = (uint32_t)(n - m->f->node);
    for (uint32_t k = 0; k < m->num_seen; k++)
        if (m->seen[k] == i)
            return;
    m->seen = xreallocarray(m->seen, m->num_seen + 1, sizeof(*m->seen));
    m->seen[m->num_seen++] = i;
    m->alike = m->num == 0 || (m->alike && n->role == m->first->role);
    if (!m->num || strcmp(fabric_desc(m->f, n), fabric_desc(m->f, m->first)) < 0)
        m->first = n;
    if (!m->num || strcmp(fabric_desc(m->f, n), fabric_desc(m->f, m->last)) > 0)
        m->last = n;
    m->num++;
}

static const char *plural(const struct node *n)
{
    switch ((enum node_role)n->role) {
    case ROLE_HOST:
    case ROLE_AGGREGATION:
    case ROLE_GATEWAY:
    case ROLE_ROUTER:
        return "adapters";
    case ROLE_LEAF:
        return "leaves";
    case ROLE_SPINE:
        return "spines";
    case ROLE_CORE:
        return "cores";
    case ROLE_UNKNOWN:
    case ROLE_SWITCH:
        break;
    }
    return "switches";
}

static void many_text(const struct many *m, char *buf, size_t size)
{
    if (!m->num)
        snprintf(buf, size, "?");
    else if (m->num == 1)
        fabric_node_name(m->f, m->first, buf, size);
    else
        snprintf(buf, size, "%u %s", m->num, m->alike ? plural(m->first) : "nodes");
}

static void widen(double x, double *min, double *max)
{
    if (isnan(x))
        return;
    *min = isnan(*min) || x < *min ? x : *min;
    *max = isnan(*max) || x > *max ? x : *max;
}

static void level_names(const struct congest_tree *tree, const struct tele_table *t, struct congest_level *l,
                        uint32_t from, uint32_t to)
{
    const struct fabric *f = t->fabric;
    struct many out = {.f = f}, in = {.f = f};
    for (uint32_t i = from; i <= to && f; i++) {
        uint32_t slot = i == to ? (from == to ? tree->root : TELE_SLOT_NONE) : tree->member[i].slot;
        uint32_t p = slot < t->num ? t->port[slot].port : ID_NONE;
        if (p >= f->num_ports)
            continue;
        many_add(&out, fabric_node(f, f->port[p].node));
        const struct node *peer = fabric_peer_node(f, &f->port[p]);
        if (peer)
            many_add(&in, peer);
    }
    many_text(&out, l->from, sizeof(l->from));
    many_text(&in, l->to, sizeof(l->to));
    if (l->ports == 1 && out.num == 1) { // one port: its number too
        uint32_t slot = from == to ? tree->root : tree->member[from].slot;
        size_t n = strlen(l->from);
        if (out.first->type == NODE_SWITCH && slot < t->num)
            snprintf(l->from + n, sizeof(l->from) - n, "/%u", t->port[slot].num);
    }
    free(out.seen);
    free(in.seen);
}

static void level_make(const struct congest_tree *tree, const struct tele_table *t, uint32_t from,
                       uint32_t to, struct congest_level *l)
{
    *l = (struct congest_level){.held_min = NAN, .held_max = NAN, .used_min = NAN, .used_max = NAN};
    l->depth = from < to ? tree->member[from].depth : 0;
    l->ports = from < to ? to - from : 1;
    if (from == to) { // the root does not wait
        widen(tree->held, &l->held_min, &l->held_max);
        widen(tree->used, &l->used_min, &l->used_max);
    }
    for (uint32_t i = from; i < to; i++) {
        const struct congest_member *m = &tree->member[i];
        l->victims += m->victim;
        widen(m->held, &l->held_min, &l->held_max);
        widen(m->used, &l->used_min, &l->used_max);
    }
    level_names(tree, t, l, from, to);
}

uint32_t congest_levels(const struct congest_tree *tree, const struct tele_table *t,
                        struct congest_level **ret)
{
    struct congest_level *l = xcalloc(tree->num_members + 1, sizeof(*l));
    uint32_t n = 0, i = 0;
    if (!tree->num_members || tree->member[0].depth > 0)
        level_make(tree, t, 0, 0, &l[n++]);
    while (i < tree->num_members) {
        uint32_t to = i;
        while (to < tree->num_members && tree->member[to].depth == tree->member[i].depth)
            to++;
        level_make(tree, t, i, to, &l[n++]);
        i = to;
    }
    *ret = l;
    return n;
}

// --- rails and scalable units ---

struct sums {
    uint32_t ports, used_n, held_n, held, trunks;
    double used, held_sum, max_used, max_held, lost, trunk_used, trunk_max;
};

static void sum_port(struct sums *s, const struct tele_use *u, bool trunk)
{
    s->ports++;
    if (!isnan(u->xmit_used)) {
        s->used_n++;
        s->used += u->xmit_used;
        s->max_used = fmax(s->max_used, u->xmit_used);
        if (trunk) {
            s->trunks++;
            s->trunk_used += u->xmit_used;
            s->trunk_max = fmax(s->trunk_max, u->xmit_used);
        }
    }
    if (!isnan(u->held)) {
        s->held_n++;
        s->held_sum += u->held;
        s->max_held = fmax(s->max_held, u->held);
        s->held += u->held >= 0.02;
    }
    s->lost += isnan(u->lost_bps) ? 0 : u->lost_bps;
}

// The rail (or unit) of a cable: its leaf's, whichever end that is.
static uint16_t number_of(const struct fabric *f, const struct node *n, const struct node *peer, bool rails)
{
    uint16_t a = rails ? n->rail : n->su, z = peer ? (rails ? peer->rail : peer->su) : RAIL_NONE;
    return a != RAIL_NONE ? a : z;
}

struct congest_sums {
    const struct fabric *fabric; // of the ports that were taken; compared, never looked into
    uint64_t generation;
    uint32_t next, rails, sus;
    struct sums *rail, *su;
};

struct congest_sums *congest_sums_new(void)
{
    return xcalloc(1, sizeof(struct congest_sums));
}

void congest_sums_free(struct congest_sums *s)
{
    if (!s)
        return;
    free(s->rail);
    free(s->su);
    free(s);
}

static void sums_begin(struct congest_sums *s, const struct fabric *f)
{
    free(s->rail);
    free(s->su);
    *s = (struct congest_sums){
        .fabric = f, .generation = f->generation, .rails = f->num_rails, .sus = f->num_sus};
    s->rail = xcalloc(s->rails + 1ul, sizeof(*s->rail));
    s->su = xcalloc(s->sus + 1ul, sizeof(*s->su));
}

static void sums_add(struct congest_sums *s, const struct tele_table *t, uint32_t slot)
{
    const struct fabric *f = t->fabric;
    uint32_t p = t->port[slot].port;
    if (!t->port[slot].up || p >= f->num_ports || !t->port[slot].of_switch)
        return;
    const struct node *node = fabric_node(f, f->port[p].node), *peer = fabric_peer_node(f, &f->port[p]);
    bool trunk = peer && peer->type == NODE_SWITCH;
    uint16_t rail = number_of(f, node, peer, true), su = number_of(f, node, peer, false);
    struct tele_use u;
    tele_use(t, slot, &u);
    if (rail < s->rails)
        sum_port(&s->rail[rail], &u, trunk);
    if (su < s->sus)
        sum_port(&s->su[su], &u, trunk);
}

bool congest_sums_some(struct congest_sums *s, const struct tele_table *t, uint32_t most)
{
    if (!t->fabric)
        return true;
    if (s->fabric != t->fabric || s->generation != t->fabric->generation)
        sums_begin(s, t->fabric);
    for (; most > 0 && s->next < t->num; most--)
        sums_add(s, t, s->next++);
    return s->next >= t->num;
}

static uint32_t parts(const struct sums *s, uint32_t n, struct congest_part **ret)
{
    uint32_t rows = 0;
    struct congest_part *r = xcalloc(n + 1ul, sizeof(*r));
    for (uint32_t k = 0; k < n; k++) {
        if (!s[k].ports)
            continue;
        double mean = s[k].trunks ? s[k].trunk_used / s[k].trunks : 0;
        r[rows++] = (struct congest_part){
            .number = (uint16_t)k,
            .ports = s[k].ports,
            .held = s[k].held,
            .mean_used = s[k].used_n ? s[k].used / s[k].used_n : NAN,
            .max_used = s[k].used_n ? s[k].max_used : NAN,
            .mean_held = s[k].held_n ? s[k].held_sum / s[k].held_n : NAN,
            .max_held = s[k].held_n ? s[k].max_held : NAN,
            .lost_bps = s[k].lost,
            .imbalance = mean > 0.001 ? s[k].trunk_max / mean : NAN,
        };
    }
    *ret = r;
    return rows;
}

uint32_t congest_sums_by_rail(const struct congest_sums *s, struct congest_part **ret)
{
    return parts(s->rail, s->rails, ret);
}

uint32_t congest_sums_by_su(const struct congest_sums *s, struct congest_part **ret)
{
    return parts(s->su, s->sus, ret);
}
