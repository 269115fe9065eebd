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

static uint32_t find_unknown(const struct congest *c, struct guess *ret, double *rest, uint32_t *num)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->t->num; i++) {
        const struct tele_port *p = &c->t->port[i];
        c->guess[i] = NAN;
        if (!p->up || p->port == ID_NONE)
            continue;
        uint32_t from = congest_switch_of(&c->routes, c->t, i),
                 to = congest_switch_behind(&c->routes, c->t, i);
        double rate = tele_capacity(c->t, i);
        if (isnan(c->track[i].u)) {
            ret[n++] = (struct guess){i, from, to, 0, rate};
            if (from != ID_NONE)
                num[from]++;
            if (to != ID_NONE)
                num[to]++;
            continue;
        }
        if (from != ID_NONE)
            rest[from] -= c->track[i].u * rate;
        if (to != ID_NONE)
            rest[to] += c->track[i].u * rate;
    }
    return n;
}

static void project(struct guess *g, uint32_t n, double *rest, const uint32_t *num)
{
    for (uint32_t i = 0; i < n; i++) {
        double step = 0;
        if (g[i].from != ID_NONE)
            step += rest[g[i].from] / num[g[i].from];
        if (g[i].to != ID_NONE)
            step -= rest[g[i].to] / num[g[i].to];
        if (g[i].from != ID_NONE && g[i].to != ID_NONE)
            step /= 2;
        double x = fmin(fmax(g[i].x + step, 0), g[i].most);
        if (g[i].from != ID_NONE)
            rest[g[i].from] -= x - g[i].x;
        if (g[i].to != ID_NONE)
            rest[g[i].to] += x - g[i].x;
        g[i].x = x;
    }
}

void congest_guess(struct congest *c)
{
    const struct fabric *f = c->routes.fabric;
    for (uint32_t i = 0; i < c->t->num; i++)
        c->guess[i] = NAN;
    if (!f)
        return;
    struct guess *g = xcalloc(c->t->num + 1, sizeof(*g));
    double *rest = xcalloc(f->num_switches + 1, sizeof(*rest)); // in less out, of what is known
    uint32_t *num = xcalloc(f->num_switches + 1, sizeof(*num));
    uint32_t n = find_unknown(c, g, rest, num);
    for (unsigned round = 0; round < ROUNDS && n; round++)
        project(g, n, rest, num);
    for (uint32_t i = 0; i < n; i++)
        if (g[i].most > 0)
            c->guess[g[i].slot] = (float)(g[i].x / g[i].most);
    free(g);
    free(rest);
    free(num);
}
