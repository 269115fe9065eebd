// SPDX-License-Identifier: Apache-2.0
// From costs to entries: which of the legal ports a destination gets.
#include "routing/route_priv.h"

#include <string.h>

void rchoice_init(struct rchoice *c)
{
    c->num_groups = c->num_ports = 0;
    c->even = c->plain = false;
}

void rchoice_add(struct rchoice *c, const struct rgraph *g, uint32_t group)
{
    uint32_t n = g->g[group].num_ports;
    c->even = c->num_groups == 0 || (c->even && g->g[c->group[0]].num_ports == n);
    c->num_ports += n;
    c->group[c->num_groups++] = group;
}

// The q-th port, first over groups, then over the ports of each; groups with more ports come up more often.
uint8_t rchoice_port(const struct rchoice *c, const struct rgraph *g, uint32_t q)
{
    uint32_t k = q % c->num_groups, round = q / c->num_groups;
    if (!c->even) {
        uint32_t i = q % c->num_ports;
        for (round = 0;; round++) {
            uint32_t wide = 0;
            for (uint32_t j = 0; j < c->num_groups; j++)
                wide += g->g[c->group[j]].num_ports > round;
            if (i < wide)
                break;
            i -= wide;
        }
        for (k = 0;; k++) {
            if (g->g[c->group[k]].num_ports > round && i-- == 0)
                break;
        }
    }
    const struct rgroup *r = &g->g[c->group[k]];
    return g->ports[r->first_port + round % r->num_ports];
}

// All of them, in that order.
void rchoice_ports(const struct rchoice *c, const struct rgraph *g, uint8_t *ret)
{
    for (uint32_t round = 0, n = 0; n < c->num_ports; round++) {
        for (uint32_t k = 0; k < c->num_groups; k++) {
            const struct rgroup *r = &g->g[c->group[k]];
            if (round < r->num_ports)
                ret[n++] = g->ports[r->first_port + round];
        }
    }
}

// Where there are no levels, or they are not kept to, the modulo says nothing; then the port that has the
// fewest destinations.
static uint8_t choice_idle_port(const struct rchoice *c, const struct rgraph *g, uint32_t load[256])
{
    uint8_t best = 0;
    bool any = false;
    for (uint32_t i = 0; i < c->num_groups; i++) {
        const struct rgroup *r = &g->g[c->group[i]];
        for (uint32_t j = 0; j < r->num_ports; j++) {
            uint8_t p = g->ports[r->first_port + j];
            if (!any || load[p] < load[best])
                best = p;
            any = true;
        }
    }
    load[best]++;
    return best;
}

static void fill_own(const struct rgraph *g, uint32_t t, struct fabric_tables *tab)
{
    uint8_t *row = tables_row(tab, t);
    for (uint32_t i = g->doff[t]; i < g->doff[t + 1]; i++)
        row[g->d[i].lid] = g->d[i].port;
}

struct filling {
    const struct rgraph *g;
    const struct rorder *o;
    struct rcolumn c;
    uint32_t *divider; // per switch, for one column
    uint32_t *width;   // per cost: switches that go down at that distance; the last is for all beyond
    uint32_t widths;   // the greatest index into it
    uint32_t (*load)[256];
    const struct rrail *rail; // chooses; NULL: digits() does
    struct rrail_at at;
    const uint16_t *lid; // per destination
    struct fabric_tables *tab;
};

// What is taken modulo the number of ways at s. Going up: the sequence number divided by the ways chosen
// among below. Going down: divided by the ways into which the destinations below were split to get here. On a
// full tree the remainder is then the same for all that come by, a mere rotation; adding it tells those apart
// that the division does not, where a switch can go down by several neighbours (directors). Not so where the
// edge is turned round (order.c) and leads to a higher rank: other switches of this rank go up there, and
// must agree.
static uint32_t digits(const struct filling *w, uint32_t s, const struct rchoice *ch, uint32_t seq)
{
    if (!w->c.down[s])
        return seq / w->divider[s];
    uint32_t width = w->width[w->c.cost[s] < w->widths ? w->c.cost[s] : w->widths];
    return seq / width + (ch->plain ? 0 : seq % width);
}

// Where it goes up: the choices made below, most of them where they differ; handed on to the candidates.
static void hand_on(struct filling *w, uint32_t s, const struct rchoice *ch)
{
    uint64_t d = (uint64_t)w->divider[s] * ch->num_groups;
    if (d > RDIVIDER_MAX)
        return;
    for (uint32_t i = 0; i < ch->num_groups; i++) {
        uint32_t up = w->g->g[ch->group[i]].peer;
        if (d > w->divider[up])
            w->divider[up] = (uint32_t)d;
    }
}

static void count_widths(struct filling *w)
{
    uint32_t n = w->g->n;
    memset(w->width, 0, (w->widths + 1) * sizeof(*w->width));
    for (uint32_t s = 0; s < n; s++) {
        w->divider[s] = 1;
        if (w->c.cost[s] != RCOST_NONE && w->c.down[s])
            w->width[w->c.cost[s] < w->widths ? w->c.cost[s] : w->widths]++;
    }
}

static void put_by_rail(struct filling *w, uint32_t s, uint32_t t, const struct rchoice *ch)
{
    uint8_t port[256];
    struct rways ways = {.num = ch->num_ports, .inverse = rways_inverse(ch->num_ports), .port = port};
    for (uint32_t k = 0; k < ch->num_groups; k++) {
        uint32_t i = ch->group[k] - w->g->goff[s];
        ways.mask[i / 64] |= 1ULL << (i % 64);
    }
    rchoice_ports(ch, w->g, port);
    rrail_put(&w->at, s, t, w->c.cost[s], &ways, w->lid, tables_row(w->tab, s));
}

static void put(struct filling *w, uint32_t s, uint32_t t, struct rchoice *ch)
{
    const struct rgraph *g = w->g;
    bool modulo = w->o->tiered[g->comp[s]] && w->c.ordered;
    uint8_t *row = tables_row(w->tab, s);
    if (modulo && w->rail) {
        put_by_rail(w, s, t, ch);
        return;
    }
    for (uint32_t i = g->doff[t]; i < g->doff[t + 1]; i++) {
        const struct rdest *d = &g->d[i];
        row[d->lid] =
            modulo ? rchoice_port(ch, g, digits(w, s, ch, d->seq)) : choice_idle_port(ch, g, w->load[s]);
    }
}

// All entries for the destinations of switch t, from below in the order, so that dividers are known.
static void fill_column(struct filling *w, uint32_t t)
{
    const struct rgraph *g = w->g;
    struct rchoice ch;
    fill_own(g, t, w->tab);
    rcolumn_run(&w->c, g, w->o, t);
    count_widths(w);
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t s = w->o->by_pos[k];
        if (s == t || w->c.cost[s] == RCOST_NONE)
            continue;
        rchoice_init(&ch);
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
            if (rcolumn_candidate(&w->c, g, w->o, t, s, i))
                rchoice_add(&ch, g, i);
        }
        if (!w->c.down[s])
            hand_on(w, s, &ch);
        ch.plain = ch.num_groups == 1 || w->o->rank[g->g[ch.group[0]].peer] > w->o->rank[s];
        put(w, s, t, &ch);
    }
}

static void prepare(struct filling *w, const struct rgraph *g, const struct rorder *o, bool ordered,
                    const struct rrail *rail, const uint16_t *lid, struct fabric_tables *tab, struct arena *a)
{
    *w = (struct filling){.g = g, .o = o, .rail = rail, .lid = lid, .tab = tab};
    if (rail)
        rrail_at_init(&w->at, rail, a);
    rcolumn_init(&w->c, g, ordered, a);
    w->divider = ARENA_NEW_N(a, g->n + 1, uint32_t);
    // Costs that rows.c can hold are told apart here too.
    w->widths = g->n > UINT8_MAX ? g->n : UINT8_MAX;
    w->width = ARENA_NEW_N(a, w->widths + 1, uint32_t);
}

// Columns that rows.c left, a share for each task.
struct leftovers {
    const struct rrows *r;
    unsigned tasks;
};

static void leftover_task(void *arg, unsigned i)
{
    const struct leftovers *l = arg;
    struct arena *a = arena_new();
    struct filling w;
    prepare(&w, l->r->g, l->r->o, true, l->r->rail, l->r->lid, l->r->tables, a);
    for (uint32_t k = i; k < l->r->num; k += l->tasks) {
        if (l->r->odd[k])
            fill_column(&w, l->r->sw[k]);
    }
    arena_free(a);
}

// What is filled: numbers given out, and what they are taken with.
struct job {
    const struct rgraph *g;
    const struct rorder *o;
    bool ordered;
    const struct rrail *rail;
    const uint32_t *dest_switch; // in the order in which their numbers were counted
    uint16_t *lid;               // per destination
    struct fabric_tables *tab;
};

static void fill_by_rows(const struct job *j, struct par *par, struct arena *a)
{
    const struct rgraph *g = j->g;
    struct rrows r = {.g = g, .o = j->o, .tables = j->tab, .rail = j->rail, .lid = j->lid};
    uint32_t dests = g->doff[g->n], odd = 0;
    r.column = ARENA_NEW_N(a, g->n + 1, uint32_t);
    r.sw = ARENA_NEW_N(a, g->n + 1, uint32_t);
    r.odd = ARENA_NEW_N(a, g->n + 1, uint8_t);
    r.seq = ARENA_NEW_N(a, dests + 1, uint32_t);
    memset(r.column, 0xff, (g->n + 1) * sizeof(*r.column));
    for (uint32_t i = 0; i < dests; i++)
        r.seq[i] = g->d[i].seq;
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t t = j->dest_switch[k];
        if (g->doff[t] == g->doff[t + 1])
            continue;
        r.column[t] = r.num;
        r.sw[r.num++] = t;
    }
    r.side_by_side = ARENA_NEW_N(a, g->n + 1, bool);
    for (uint32_t t = 0; t < g->n; t++) {
        r.side_by_side[t] = true;
        for (uint32_t i = g->doff[t] + 2; i < g->doff[t + 1]; i++)
            r.side_by_side[t] &= g->d[i].lid == g->d[i - 1].lid + 1;
    }
    rrows_fill(&r, par);
    for (uint32_t k = 0; k < r.num; k++)
        odd += r.odd[k];
    struct leftovers l = {&r, par ? par->width : 1};
    if (odd > 0)
        rpar_run(par, l.tasks, leftover_task, &l);
}

// Without tiers entries depend on what was given out before: one after the other.
static void fill_by_columns(const struct job *j, struct arena *a)
{
    const struct rgraph *g = j->g;
    struct filling w;
    prepare(&w, g, j->o, j->ordered, j->rail, j->lid, j->tab, a);
    w.load = arena_array(a, g->n + 1, sizeof(*w.load));
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t t = j->dest_switch[k];
        if (g->doff[t] != g->doff[t + 1])
            fill_column(&w, t);
    }
}

static void job_init(struct job *j, struct rgraph *g, const struct rorder *o, enum route_engine engine,
                     struct arena *a, struct fabric_tables *tab)
{
    bool rail = engine == ROUTE_RAIL;
    *j = (struct job){.g = g, .o = o, .ordered = engine != ROUTE_MINHOP, .tab = tab};
    j->dest_switch = rail ? rrail_numbers(g, o, a) : rnumbers_assign(g, o, a);
    j->rail = rail ? rrail_new(g, o, j->dest_switch, a) : NULL;
    j->lid = ARENA_NEW_N(a, g->doff[g->n] + 1, uint16_t);
    for (uint32_t i = 0; i < g->doff[g->n]; i++)
        j->lid[i] = g->d[i].lid;
}

void rfill(struct rgraph *g, const struct rorder *o, enum route_engine engine, struct par *par,
           struct arena *a, struct fabric_tables *tab)
{
    struct job j;
    job_init(&j, g, o, engine, a, tab);
    bool rows = j.ordered;
    for (uint32_t c = 0; c < g->num_comps; c++)
        rows &= o->tiered[c];
    if (rows)
        fill_by_rows(&j, par, a);
    else
        fill_by_columns(&j, a);
}

void rfill_general(struct rgraph *g, const struct rorder *o, enum route_engine engine, struct arena *a,
                   struct fabric_tables *tab)
{
    struct job j;
    job_init(&j, g, o, engine, a, tab);
    fill_by_columns(&j, a);
}
