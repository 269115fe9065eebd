// SPDX-License-Identifier: Apache-2.0
// Waits that nobody read. A port that is full all the time by what several cables bring (or a faster one),
// none of which is full itself, has more to carry than it can, but for a rare chance: who sends to it must
// wait. Where all who could be seen to were not read, or only once so far, they are taken to, unless such
// ports elsewhere are seen to make nobody wait.
#include <math.h>

#include "telemetry/congest_priv.h"

#define MERGED 0.97 // used share
#define MATTERS 0.1 // of what the port carries: who brings less is not looked at
#define ALONE 0.85  // … and who brings so much brings it alone
#define MUCH 0.6    // of what anybody gets: it would wait, if anybody did
#define UNREAD 0.7  // of what the port carries, by those whose waits are not known
#define MAX_LOOKS 64

struct merge {
    double unread, most; // bytes/s: by those whose waits are not known; the most of one
    unsigned inputs;     // that matter; a faster one counts for two
    bool waits, free;    // some wait; one that gets as much as anybody does not
    bool single;         // one brings nearly all, or is full
};

struct feeder {
    uint32_t in; // slot
    double rate; // bytes/s to the port
};

static unsigned feeders(struct congest *c, uint32_t slot, struct feeder *ret)
{
    uint32_t sw = congest_switch_of(&c->routes, c->t, slot);
    unsigned ports = fabric_switch(c->routes.fabric, sw)->num_ports, n = 0;
    for (unsigned i = 1; i <= ports; i++) {
        double x = congest_rate(c, sw, i, c->t->port[slot].num);
        uint32_t own = congest_slot_at(&c->routes, sw, i), in = own < c->t->num ? c->t->port[own].peer : own;
        if (in < c->t->num && x >= MATTERS * tele_capacity(c->t, slot))
            ret[n++] = (struct feeder){in, x};
    }
    return n;
}

static bool not_known(const struct congest_track *k)
{
    return isnan(k->h) || (k->may_hold && !k->is_held);
}

static void look_at(struct congest *c, uint32_t slot, struct merge *ret)
{
    struct feeder f[SWITCH_MAX_PORTS];
    unsigned n = feeders(c, slot, f);
    double all = tele_capacity(c->t, slot);
    *ret = (struct merge){0};
    for (unsigned i = 0; i < n; i++)
        ret->most = fmax(ret->most, f[i].rate);
    for (unsigned i = 0; i < n; i++) {
        const struct congest_track *k = &c->track[f[i].in];
        bool faster = tele_capacity(c->t, f[i].in) > 1.05 * all;
        ret->inputs += faster ? 2 : 1;
        ret->single |= (f[i].rate >= ALONE * all && !faster) || k->u >= c->o.full;
        ret->waits |= k->is_held;
        ret->free |= !not_known(k) && !k->is_held && f[i].rate >= MUCH * ret->most;
        ret->unread += not_known(k) ? f[i].rate : 0;
    }
}

static void presume(struct congest *c, uint32_t slot)
{
    struct feeder f[SWITCH_MAX_PORTS];
    unsigned n = feeders(c, slot, f);
    for (unsigned i = 0; i < n; i++) {
        struct congest_track *k = &c->track[f[i].in];
        if (!not_known(k))
            continue;
        double used = isnan(k->u) ? fmin(1, f[i].rate / tele_capacity(c->t, f[i].in)) : k->u;
        k->presumed = true;
        k->guess_h = isnan(k->h) ? (float)(1 - used) : k->h;
    }
}

void congest_presume(struct congest *c)
{
    uint32_t found[MAX_LOOKS], n = 0, looks = 0, yes = 0, no = 0;
    for (uint32_t i = 0; i < c->t->num; i++)
        c->track[i].presumed = false;
    for (uint32_t i = 0; i < c->t->num && looks < MAX_LOOKS && c->routes.tables; i++) {
        struct merge x;
        if (!c->track[i].is_full || c->track[i].u < MERGED ||
            congest_switch_of(&c->routes, c->t, i) == ID_NONE)
            continue;
        looks++;
        look_at(c, i, &x);
        if (x.inputs < 2 || x.single)
            continue;
        yes += x.waits;
        no += x.free && !x.waits;
        if (!x.waits && !x.free && x.unread >= UNREAD * tele_capacity(c->t, i))
            found[n++] = i;
    }
    for (uint32_t i = 0; i < n && yes >= no; i++)
        presume(c, found[i]);
}
