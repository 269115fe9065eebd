// SPDX-License-Identifier: Apache-2.0
// From costs to entries: which of the legal ports a destination gets.
#include "routing/route_priv.h"

#include <string.h>

// Legal ways from one switch to one other, as ports.
struct choice {
    uint32_t num_groups, num_ports;
    uint32_t group[256]; // indices into rgraph.g
    bool even;           // all groups have as many ports
};

static void choice_add(struct choice *c, const struct rgraph *g, uint32_t group)
{
    uint32_t n = g->g[group].num_ports;
    c->even = c->num_groups == 0 || (c->even && g->g[c->group[0]].num_ports == n);
    c->num_ports += n;
    c->group[c->num_groups++] = group;
}

// The q-th port, first over groups, then over the ports of each; groups with more ports come up more often.
static uint8_t choice_port(const struct choice *c, const struct rgraph *g, uint32_t q)
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

// Where there are no levels the modulo says nothing; then the port that has the fewest destinations.
static uint8_t choice_idle_port(const struct choice *c, const struct rgraph *g, uint32_t load[256])
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

// All entries for the destinations of switch t.
static void fill_column(const struct rgraph *g, const struct rorder *o, const struct rcolumn *c, uint32_t t,
                        const uint32_t *divider, uint32_t (*load)[256], struct fabric_tables *tab)
{
    struct choice ch;
    for (uint32_t s = 0; s < g->n; s++) {
        if (s == t || c->cost[s] == RCOST_NONE)
            continue;
        ch = (struct choice){.num_groups = 0};
        for (uint32_t i = g->goff[s]; i < g->goff[s + 1]; i++) {
            if (rcolumn_candidate(c, g, o, t, s, i))
                choice_add(&ch, g, i);
        }
        uint8_t *row = tables_row(tab, s);
        bool tiered = o->tiered[g->comp[s]];
        for (uint32_t i = g->doff[t]; i < g->doff[t + 1]; i++) {
            const struct rdest *d = &g->d[i];
            row[d->lid] =
                tiered ? choice_port(&ch, g, d->seq / divider[s]) : choice_idle_port(&ch, g, load[s]);
        }
    }
}

void rfill(struct rgraph *g, const struct rorder *o, bool ordered, struct par *par, struct arena *a,
           struct fabric_tables *tab)
{
    struct rcolumn c;
    struct rnumbers num;
    rcolumn_init(&c, g, ordered, a);
    rnumbers_assign(g, o, &c, a, &num);
    uint32_t(*load)[256] = arena_array(a, g->n + 1, sizeof(*load));
    for (uint32_t k = 0; k < g->n; k++) {
        uint32_t t = num.dest_switch[k];
        if (g->doff[t] == g->doff[t + 1])
            continue;
        fill_own(g, t, tab);
        rcolumn_run(&c, g, o, t);
        fill_column(g, o, &c, t, num.divider, load, tab);
    }
}
