// SPDX-License-Identifier: Apache-2.0
// What comes to a switch by each of its ports, and by which it goes on: how many bytes/s of each to each.
// Counters tell the sums only, of all that comes in by a port and of all that goes out by one.
//
// The estimate is that of traffic matrices from link loads (Zhang, Roughan, Duffield, Greenberg, "Fast
// accurate computation of large-scale IP traffic matrices from link loads", 2003), at one switch: first by
// gravity, to each destination as much as it receives, over the ways that tables take; then rows and columns
// are made to fit their sums in turn (Deming and Stephan, 1940). What an adapter sends is seldom spread over
// all who receive: more likely it sends to one at a time, who then receives as much as it sends. So for an
// adapter those count more that receive as much.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/congest_priv.h"

#define ROUNDS 12
#define MAX_DESTS 1024 // LIDs
#define MAX_MIXES 1024 // switches: of more nothing is known
#define UNLIKE 6.0     // so many times what is alike apart: not looked at
#define ALIKE 0.02     // of a link, and of the rate itself: two rates are the same
#define ALIKE_OF 0.03
#define SPREAD 0.25    // so much likeness is as good as none: an adapter sends to all
#define LITTLE 0.003   // of its link: a destination that receives no more is none
#define NOTHING 0.0005 // … a port by which no more comes brings nothing

struct congest_dest {
    uint16_t lid;
    float rate;    // bytes/s that it receives
    float weight;  // it has so many LIDs: 1 / that
    uint32_t slot; // of the switch's port
};

static double rate_of(const struct congest *c, uint32_t slot, bool *ret_told)
{
    float u = c->track[slot].u;
    *ret_told = !isnan(u);
    if (isnan(u))
        u = c->guess[slot];
    return isnan(u) ? NAN : u * tele_capacity(c->t, slot);
}

// When there are many, each n-th stands for all.
static void thin_out(struct congest_mixes *m)
{
    uint32_t step = (m->num_dests + MAX_DESTS - 1) / MAX_DESTS, n = 0;
    for (uint32_t i = 0; i < m->num_dests && step > 1; i += step)
        m->dest[n++] = m->dest[i];
    m->num_dests = step > 1 ? n : m->num_dests;
}

static void find_dests(struct congest *c)
{
    struct congest_mixes *m = &c->mixes;
    const struct fabric *f = c->routes.fabric;
    uint32_t cap = 0;
    m->num_dests = 0;
    for (uint32_t i = 0; i < c->t->num; i++) {
        bool told;
        if (!c->t->port[i].up || c->t->port[i].port == ID_NONE ||
            congest_switch_of(&c->routes, c->t, i) == ID_NONE ||
            congest_switch_behind(&c->routes, c->t, i) != ID_NONE)
            continue;
        double rate = rate_of(c, i, &told);
        if (isnan(rate) || rate < LITTLE * tele_capacity(c->t, i))
            continue;
        port_id far = f->port[c->t->port[i].port].peer;
        if (!port_valid(far)) // up, and what is behind it does not say who it is
            continue;
        const struct port *p = fabric_port(f, far);
        unsigned lids = p->a.lid ? 1U << (p->a.lmc & 7) : 0;
        for (unsigned k = 0; k < lids && p->a.lid + k < c->routes.tables->lids; k++) {
            if (m->num_dests == cap)
                m->dest = xreallocarray(m->dest, cap = cap ? cap * 2 : 256, sizeof(*m->dest));
            m->dest[m->num_dests++] =
                (struct congest_dest){(uint16_t)(p->a.lid + k), (float)rate, 1.0F / (float)lids, i};
        }
    }
    thin_out(m);
}

void congest_mixes_reset(struct congest *c)
{
    struct congest_mixes *m = &c->mixes;
    uint32_t n = c->routes.fabric ? c->routes.fabric->num_switches : 0;
    for (uint32_t i = 0; i < m->num_at; i++)
        free(m->at[i]);
    free(m->at);
    free(m->dest);
    *m = (struct congest_mixes){.num_at = n, .at = xcalloc(n + 1, sizeof(struct congest_mix *))};
    if (c->routes.fabric && c->routes.tables)
        find_dests(c);
}

void congest_mixes_done(struct congest_mixes *m)
{
    for (uint32_t i = 0; i < m->num_at; i++)
        free(m->at[i]);
    free(m->at);
    free(m->dest);
    *m = (struct congest_mixes){0};
}

// Likeness of two rates on a link that carries so much, 0..1.
static double alike(double x, double y, double most)
{
    double d = fabs(x - y), one = ALIKE * most + ALIKE_OF * (x > y ? x : y);
    if (d > UNLIKE * one)
        return 0;
    double q = 1 / (1 + d * d / (one * one));
    return q * q;
}

// Out of a switch to each destination: the port, or SEVERAL, of which `set` has the list.
#define SEVERAL 255
struct outs {
    uint32_t sw;
    uint8_t *port;
};

static void outs_make(const struct congest *c, uint32_t sw, struct outs *ret)
{
    const struct congest_mixes *m = &c->mixes;
    ret->sw = sw;
    ret->port = xcalloc(m->num_dests + 1, 1);
    for (uint32_t i = 0; i < m->num_dests; i++) {
        uint8_t port = tables_port(c->routes.tables, sw, m->dest[i].lid);
        bool group = c->routes.groups && groups_at(c->routes.groups, sw, m->dest[i].lid, port);
        ret->port[i] = group ? SEVERAL : port == LFT_DROP ? 0 : port;
    }
}

static void spread(const struct congest *c, const struct outs *o, uint32_t dest, double what, double *row)
{
    struct port_set set;
    if (o->port[dest] != SEVERAL) {
        row[o->port[dest]] += what;
        return;
    }
    unsigned n = congest_outs(&c->routes, o->sw, c->mixes.dest[dest].lid, &set);
    for (unsigned w = 0; w < 4 && n; w++)
        for (uint64_t bits = set.w[w]; bits; bits &= bits - 1)
            row[w * 64 + (unsigned)__builtin_ctzll(bits)] += what / n;
}

// What comes over a cable from another switch: to those that it sends by this port.
static void row_of_cable(const struct congest *c, const struct outs *o, uint32_t from, unsigned num,
                         double *row)
{
    const struct congest_mixes *m = &c->mixes;
    const uint8_t *table = tables_row(c->routes.tables, from);
    for (uint32_t i = 0; i < m->num_dests; i++) {
        const struct congest_dest *d = &m->dest[i];
        double part = table[d->lid] == num;
        if (c->routes.groups) {
            struct port_set set;
            unsigned n = congest_outs(&c->routes, from, d->lid, &set);
            part = n && port_set_has(&set, (uint8_t)num) ? 1.0 / n : 0;
        }
        if (part > 0)
            spread(c, o, i, part * d->weight * d->rate, row);
    }
}

// What an adapter sends. gravity: to all, in all.
static void row_of_adapter(const struct congest *c, const struct outs *o, uint32_t in, double rate,
                           const double *gravity, double *row)
{
    const struct congest_mixes *m = &c->mixes;
    double near[256] = {0}, likeness = 0, all = 0, most = tele_capacity(c->t, in);
    for (uint32_t i = 0; i < m->num_dests && !isnan(rate); i++) {
        const struct congest_dest *d = &m->dest[i];
        double l = c->t->port[d->slot].peer == in ? 0 : d->weight * alike(rate, d->rate, most);
        if (l > 0) {
            spread(c, o, i, l, near);
            likeness += l;
        }
    }
    double like = likeness / (likeness + SPREAD);
    for (unsigned i = 1; i < 256; i++)
        all += gravity[i];
    for (unsigned i = 1; i < 256; i++)
        row[i] =
            (all > 0 ? (1 - like) * gravity[i] / all : 0) + (likeness > 0 ? like * near[i] / likeness : 0);
}

// What nobody is seen to receive goes by any of the ways.
static double row_of_ways(struct congest *c, uint32_t in, double *row)
{
    const struct congest_ways *w = congest_ways(&c->routes, c->t, in);
    memset(row, 0, 256 * sizeof(*row));
    for (uint32_t i = 0; w && i < w->num; i++)
        row[w->way[i].num] = 1;
    return w ? w->num : 0;
}

static void row_of(struct congest *c, const struct outs *o, unsigned num, uint32_t in, double rate,
                   const double *gravity, double *row)
{
    uint32_t from = congest_switch_of(&c->routes, c->t, in);
    double all = 0, x = isnan(rate) ? tele_capacity(c->t, in) / 2 : rate;
    if (from == ID_NONE)
        row_of_adapter(c, o, in, rate, gravity, row);
    else
        row_of_cable(c, o, from, c->t->port[in].num, row);
    row[num] = row[0] = 0;
    for (unsigned i = 1; i < 256; i++)
        all += row[i];
    if (!(all > 0))
        all = row_of_ways(c, in, row);
    for (unsigned i = 1; i < 256 && all > 0; i++)
        row[i] *= x / all;
}

static void scale(double *row, unsigned n, double by)
{
    for (unsigned k = 1; k <= n; k++)
        row[k] *= by;
}

// m: rows of n + 1.
static void fit_sums(const double *in, const double *out, unsigned n, double *m)
{
    double sum[256];
    for (unsigned round = 0; round < ROUNDS; round++) {
        memset(sum, 0, sizeof(sum));
        for (unsigned i = 1; i <= n; i++)
            for (unsigned k = 1; k <= n; k++)
                sum[k] += m[i * (n + 1) + k];
        for (unsigned k = 1; k <= n; k++)
            sum[k] = isnan(out[k]) || !(sum[k] > 0) ? 1 : out[k] / sum[k];
        for (unsigned i = 1; i <= n; i++) {
            double *row = m + i * (n + 1), all = 0;
            for (unsigned k = 1; k <= n; k++) {
                row[k] *= sum[k];
                all += row[k];
            }
            if (!isnan(in[i]) && all > 0)
                scale(row, n, in[i] / all);
        }
    }
}

static struct congest_mix *make(struct congest *c, uint32_t sw)
{
    const struct node *x = fabric_switch(c->routes.fabric, sw);
    unsigned n = x->num_ports;
    struct congest_mix *ret = xcalloc(1, sizeof(*ret) + (n + 1) * (n + 1) * sizeof(float));
    double *m = xcalloc((n + 1) * (n + 1), sizeof(*m)), in[256], out[256], gravity[256] = {0};
    struct outs o;
    ret->ports = n;
    outs_make(c, sw, &o);
    for (uint32_t i = 0; i < c->mixes.num_dests; i++)
        spread(c, &o, i, c->mixes.dest[i].weight * c->mixes.dest[i].rate, gravity);
    for (unsigned i = 0; i <= n; i++) {
        in[i] = out[i] = NAN;
        uint32_t own = i ? congest_slot_at(&c->routes, sw, i) : TELE_SLOT_NONE;
        if (own >= c->t->num || c->t->port[own].peer >= c->t->num)
            continue;
        bool told;
        double rate = rate_of(c, own, &told), row[256] = {0};
        out[i] = told ? rate : NAN;
        rate = rate_of(c, c->t->port[own].peer, &told);
        in[i] = told ? rate : NAN;
        if (rate < NOTHING * tele_capacity(c->t, own))
            continue;
        row_of(c, &o, i, c->t->port[own].peer, rate, gravity, row);
        memcpy(m + i * (n + 1), row, (n + 1) * sizeof(*m));
    }
    fit_sums(in, out, n, m);
    for (unsigned i = 0; i < (n + 1) * (n + 1); i++)
        ret->rate[i] = (float)m[i];
    free(o.port);
    free(m);
    return ret;
}

const struct congest_mix *congest_mix(struct congest *c, uint32_t sw)
{
    if (!c->routes.tables || sw >= c->mixes.num_at)
        return NULL;
    if (!c->mixes.at[sw] && c->mixes.made < MAX_MIXES) {
        c->mixes.made++;
        c->mixes.at[sw] = make(c, sw);
    }
    return c->mixes.at[sw];
}

bool congest_turn(struct congest *c, uint32_t sw, unsigned in, unsigned out, struct congest_turn *ret)
{
    const struct congest_mix *m = congest_mix(c, sw);
    double sum = 0, most = 0;
    if (!m || in > m->ports || out > m->ports)
        return false;
    const float *row = &m->rate[in * (m->ports + 1)];
    for (unsigned i = 1; i <= m->ports; i++) {
        sum += row[i];
        most = fmax(most, m->rate[i * (m->ports + 1) + out]);
    }
    if (!(sum > 0))
        return false;
    *ret = (struct congest_turn){row[out] / sum, most > 0 ? row[out] / most : 0};
    return true;
}

double congest_rate(struct congest *c, uint32_t sw, unsigned in, unsigned out)
{
    const struct congest_mix *m = congest_mix(c, sw);
    return m && in <= m->ports && out <= m->ports ? m->rate[in * (m->ports + 1) + out] : 0;
}

static double sum_of(const struct congest_mix *m, unsigned num, bool in)
{
    double sum = 0;
    for (unsigned i = 1; i <= m->ports; i++)
        sum += in ? m->rate[num * (m->ports + 1) + i] : m->rate[i * (m->ports + 1) + num];
    return sum;
}

float congest_estimate(struct congest *c, uint32_t slot)
{
    uint32_t sw = congest_switch_of(&c->routes, c->t, slot), peer = c->t->port[slot].peer;
    bool in = sw == ID_NONE; // an adapter's: as it comes in at the other end
    const struct congest_mix *m = congest_mix(c, in ? congest_switch_behind(&c->routes, c->t, slot) : sw);
    if (!m || (in && peer >= c->t->num))
        return c->guess[slot];
    double x = sum_of(m, in ? c->t->port[peer].num : c->t->port[slot].num, in);
    return (float)fmin(1, x / tele_capacity(c->t, slot));
}
