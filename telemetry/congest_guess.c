// SPDX-License-Identifier: Apache-2.0
// How much a cable carries of which neither end was read: what goes into a switch comes out of it.
//
// Each such direction is a number between nothing and what its link can carry; each switch with all others of
// its ports known says what sum of them must be. Where that leaves room, the smallest numbers are taken
// (projections on the switches' equations in turn, after Kaczmarz, 1937, within bounds). Multicast and
// readings that are not of one moment make it inexact: a guess ranks what was not read, it names nothing by
// itself.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/congest_priv.h"

#define ROUNDS 40

struct guess {
    uint32_t slot, from, to; // switches; ID_NONE: an adapter
    double x, most;          // bytes/s
};
struct known {                         // of a switch
    double rest;                       // in less out
    double in, out, in_room, out_room; // of those not known: as guessed, and up to what they can carry
    uint32_t unknown;
    double used[3]; // sums: to adapters, from them, to switches
    uint32_t num[3];
};

static unsigned sort_of(const struct guess *g)
{
    return g->to == ID_NONE ? 0 : g->from == ID_NONE ? 1 : 2;
}

static bool look_at(const struct congest *c, uint32_t slot, struct guess *ret)
{
    const struct tele_port *p = &c->t->port[slot];
    *ret = (struct guess){.slot = slot,
                          .from = congest_switch_of(&c->routes, c->t, slot),
                          .to = congest_switch_behind(&c->routes, c->t, slot),
                          .most = tele_capacity(c->t, slot)};
    return p->up && p->port != ID_NONE && (ret->from != ID_NONE || ret->to != ID_NONE);
}

static uint32_t find_unknown(const struct congest *c, struct guess *ret, struct known *s)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->t->num; i++) {
        struct guess *g = &ret[n];
        if (!look_at(c, i, g))
            continue;
        double u = c->track[i].u;
        bool told = !isnan(u);
        n += !told;
        if (g->from != ID_NONE) {
            s[g->from].rest -= told ? u * g->most : 0;
            s[g->from].unknown += !told;
        }
        if (g->to != ID_NONE) {
            s[g->to].rest += told ? u * g->most : 0;
            s[g->to].unknown += !told;
        }
        struct known *k = &s[g->from != ID_NONE ? g->from : g->to];
        k->used[sort_of(g)] += told ? u : 0;
        k->num[sort_of(g)] += told;
    }
    return n;
}

static void begin(struct guess *g, uint32_t n, struct known *s)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct known *k = &s[g[i].from != ID_NONE ? g[i].from : g[i].to];
        unsigned sort = sort_of(&g[i]);
        g[i].x = k->num[sort] ? g[i].most * k->used[sort] / k->num[sort] : 0;
        if (g[i].from != ID_NONE)
            s[g[i].from].rest -= g[i].x;
        if (g[i].to != ID_NONE)
            s[g[i].to].rest += g[i].x;
    }
}

static void project(struct guess *g, uint32_t n, struct known *s)
{
    for (uint32_t i = 0; i < n; i++) {
        double step = 0;
        if (g[i].from != ID_NONE)
            step += s[g[i].from].rest / s[g[i].from].unknown;
        if (g[i].to != ID_NONE)
            step -= s[g[i].to].rest / s[g[i].to].unknown;
        if (g[i].from != ID_NONE && g[i].to != ID_NONE)
            step /= 2;
        double x = fmin(fmax(g[i].x + step, 0), g[i].most);
        if (g[i].from != ID_NONE)
            s[g[i].from].rest -= x - g[i].x;
        if (g[i].to != ID_NONE)
            s[g[i].to].rest += x - g[i].x;
        g[i].x = x;
    }
}

// What one could be when all others of a switch are as far away as they can.
static double most(const struct guess *g, const struct known *s)
{
    double x = g->most;
    if (g->from != ID_NONE)
        x = fmin(x, s[g->from].rest + s[g->from].out + s[g->from].in_room);
    if (g->to != ID_NONE)
        x = fmin(x, s[g->to].in + s[g->to].out_room - s[g->to].rest);
    return fmax(x, g->x);
}

static void set_guesses(struct congest *c, const struct guess *g, uint32_t n, struct known *s)
{
    for (uint32_t i = 0; i < n; i++) {
        if (g[i].from != ID_NONE) {
            s[g[i].from].out += g[i].x;
            s[g[i].from].out_room += g[i].most - g[i].x;
        }
        if (g[i].to != ID_NONE) {
            s[g[i].to].in += g[i].x;
            s[g[i].to].in_room += g[i].most - g[i].x;
        }
    }
    for (uint32_t i = 0; i < n; i++)
        if (g[i].most > 0) {
            c->guess[g[i].slot] = (float)(g[i].x / g[i].most);
            c->guess_most[g[i].slot] = (float)(most(&g[i], s) / g[i].most);
        }
}

void congest_guess(struct congest *c)
{
    const struct fabric *f = c->routes.fabric;
    for (uint32_t i = 0; i < c->t->num; i++)
        c->guess[i] = c->guess_most[i] = NAN;
    if (!f)
        return;
    struct guess *g = xcalloc(c->t->num + 1, sizeof(*g));
    struct known *s = xcalloc(f->num_switches + 1, sizeof(*s));
    uint32_t n = find_unknown(c, g, s);
    begin(g, n, s);
    for (unsigned round = 0; round < ROUNDS && n; round++)
        project(g, n, s);
    set_guesses(c, g, n, s);
    free(g);
    free(s);
}
