// SPDX-License-Identifier: Apache-2.0
// What is known of each port over sweeps, and which trees go on.
//
//   congest.c        samples, hysteresis; identity and grace of trees
//   congest_ways.c   routes: where a switch sends what comes in over a port
//   congest_guess.c  what cables carry of which neither end was read
//   congest_mix.c    who sends how much by which port of a switch
//   congest_presume.c  ports that must wait, although nobody read it
//   congest_graph.c  who waits for whom: ports, edges, shares; circles
//   congest_tree.c   roots, kinds, members
//   congest_show.c   words and levels for people; rails and scalable units
//
// A waiting port says that a buffer at the far end of its cable is full; routes say for which ports of that
// switch the buffer's packets can be; of these, some wait too, or are full. So waits are followed downstream
// until they end: at a port that waits and behind which nothing does (a host), or at one that is simply full.
// This is how congestion spreads with credits (Pfister and Norton, "Hot spot contention and combining in
// multistage interconnection networks", 1985: tree saturation; Garcia et al., "RECN", 2005: trees told from
// their victims by where packets go).
//
// Departures from a plain walk are in congest_graph.c: it divides waits among what may explain them, and it
// does not need to have read every port.
#include "telemetry/congest_priv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/rate.h"

#define FRESH 1 // sweeps

struct congest *congest_new(const struct congest_opts *o)
{
    struct congest *c = xcalloc(1, sizeof(*c));
    if (o)
        c->o = *o;
    if (!(c->o.held_on > 0))
        c->o.held_on = 0.02;
    if (!(c->o.held_off > 0))
        c->o.held_off = c->o.held_on / 2;
    if (!(c->o.full > 0))
        c->o.full = 0.90;
    if (!c->o.grace)
        c->o.grace = 3;
    c->next_id = 1;
    return c;
}

void congest_tree_free(struct congest_tree *t)
{
    free((void *)t->member);
    free((void *)t->cycle);
    free((void *)t->beside);
    free(t);
}

static void drop_made(struct congest *c)
{
    for (uint32_t i = 0; i < c->num_made; i++)
        congest_tree_free(c->made[i]);
    free(c->made);
    c->made = NULL;
    c->num_made = 0;
}

void congest_free(struct congest *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->num_trees; i++)
        congest_tree_free(c->tree[i]);
    free(c->tree);
    free(c->in_tree);
    free(c->feed.seen);
    drop_made(c);
    free(c->own.port);
    free(c->vertex);
    free(c->guess);
    free(c->guess_most);
    free(c->track);
    congest_graph_free(&c->g);
    congest_mixes_done(&c->mixes);
    congest_routes_done(&c->routes);
    free(c);
}

static void push(float *window, uint8_t *n, double x)
{
    memmove(window + 1, window, (CONGEST_SAMPLES - 1) * sizeof(*window));
    window[0] = (float)(x < 0 ? 0 : x > 1 ? 1 : x);
    if (*n < CONGEST_SAMPLES)
        ++*n;
}

// The middle one: as with held and full, two of three decide. Of fewer the newest.
static float middle(const float *w, unsigned n)
{
    if (n < 3)
        return n ? w[0] : NAN;
    return fmaxf(fminf(w[0], w[1]), fminf(fmaxf(w[0], w[1]), w[2]));
}

// Two of the last three decide; a single one decides nothing.
static bool judge(const float *window, unsigned n, bool was, double on, double off)
{
    unsigned above = 0, below = 0;
    for (unsigned i = 0; i < n; i++) {
        above += window[i] >= on;
        below += window[i] < off;
    }
    return was ? below < 2 : above >= 2;
}

// One more sweep without a sample; what is older than a tree's grace is not known any more.
static void age(uint8_t *a, uint8_t *n, unsigned grace)
{
    if (*a == CONGEST_NEVER)
        return;
    if (++*a > grace) {
        *a = CONGEST_NEVER;
        *n = 0;
    }
}

static void track_room(struct congest *c, uint32_t num)
{
    if (num <= c->num)
        return;
    c->track = xreallocarray(c->track, num, sizeof(*c->track));
    c->vertex = xreallocarray(c->vertex, num, sizeof(*c->vertex));
    c->guess = xreallocarray(c->guess, num, sizeof(*c->guess));
    c->guess_most = xreallocarray(c->guess_most, num, sizeof(*c->guess_most));
    c->in_tree = xreallocarray(c->in_tree, num, sizeof(*c->in_tree));
    for (uint32_t i = c->num; i < num; i++) {
        c->track[i] =
            (struct congest_track){.held_age = CONGEST_NEVER, .used_age = CONGEST_NEVER, .h = NAN, .u = NAN};
        c->vertex[i] = ID_NONE;
        c->in_tree[i] = 0;
    }
    c->num = num;
}

struct congest_seen {
    float held, xmit, rcv;
};

static int64_t read_at(const struct tele_table *t, uint32_t slot, enum tele_counter k)
{
    return t->at[(uint64_t)slot * TELE_GROUPS + tele_rows[k].group];
}

static bool fresh(const struct tele_table *t, uint32_t slot, enum tele_counter k, float share, int64_t last)
{
    return !isnan(share) && read_at(t, slot, k) != last;
}

// Both ends tell the used share: what one sends the other receives. The one that tells it of the shorter time
// is taken; a reading that others were missed before says what was on average.
static void track_used(struct congest *c, const struct tele_table *t, const struct congest_seen *seen,
                       uint32_t slot)
{
    struct congest_track *k = &c->track[slot];
    uint32_t peer = t->port[slot].peer, num = c->feed.num;
    bool near = fresh(t, slot, TELE_XMIT_DATA, seen[slot].xmit, k->used_at);
    bool far = peer < num && fresh(t, peer, TELE_RCV_DATA, seen[peer].rcv, k->far_at);
    if (near && far)
        near = tele_interval(t, slot, TELE_XMIT_DATA) <= tele_interval(t, peer, TELE_RCV_DATA) * 3 / 2;
    if (near || far) {
        push(k->used, &k->num_used, near ? seen[slot].xmit : seen[peer].rcv);
        k->used_age = 0;
    } else {
        age(&k->used_age, &k->num_used, c->o.grace);
    }
    k->used_at = read_at(t, slot, TELE_XMIT_DATA);
    k->far_at = peer < num ? read_at(t, peer, TELE_RCV_DATA) : k->far_at;
}

static void track_port(struct congest *c, const struct tele_table *t, const struct congest_seen *seen,
                       uint32_t slot)
{
    struct congest_track *k = &c->track[slot];
    int64_t at = read_at(t, slot, TELE_XMIT_WAIT);
    if (!isnan(seen[slot].held) && at != k->held_at) {
        push(k->held, &k->num_held, seen[slot].held);
        k->held_at = at;
        k->held_age = 0;
    } else {
        age(&k->held_age, &k->num_held, c->o.grace);
    }
    track_used(c, t, seen, slot);
    k->is_held = judge(k->held, k->num_held, k->is_held, c->o.held_on, c->o.held_off) && k->num_held;
    k->is_full = judge(k->used, k->num_used, k->is_full, c->o.full, c->o.full - 0.05) && k->num_used;
    // One sample does not say that it is so, but may be the cause of what others show; one that is old does
    // not say that it is not.
    k->may_hold = k->is_held || (k->num_held && k->held[0] >= c->o.held_on);
    k->may_fill = k->is_full || (k->num_used && k->used[0] >= c->o.full);
    k->h = k->may_hold || k->held_age <= FRESH ? middle(k->held, k->num_held) : NAN;
    k->u = k->may_fill || k->used_age <= FRESH ? middle(k->used, k->num_used) : NAN;
    if (k->may_hold && !k->is_held)
        k->h = k->held[0];
    if (k->may_fill)
        k->u = fmaxf(k->u, k->used[0]);
    k->lost_bps = isnan(k->h) ? 0 : k->h * (float)tele_capacity(t, slot);
}

static void look(struct congest *c, const struct tele_table *t, uint32_t slot)
{
    struct tele_use u;
    tele_use(t, slot, &u);
    c->feed.seen[slot] = (struct congest_seen){(float)u.held, (float)u.xmit_used, (float)u.rcv_used};
}

static void track(struct congest *c, const struct tele_table *t, uint32_t slot)
{
    const struct tele_port *p = &t->port[slot];
    struct congest_track *k = &c->track[slot];
    if (!p->up || p->port == ID_NONE) { // what it was says nothing of what it will be
        *k = (struct congest_track){.held_age = CONGEST_NEVER, .used_age = CONGEST_NEVER, .h = NAN, .u = NAN};
        return;
    }
    track_port(c, t, c->feed.seen, slot);
    c->feed.totals.unread += p->unread != TELE_READ;
    c->feed.totals.held += k->is_held;
    if (k->is_held)
        c->feed.totals.lost_bps += k->lost_bps;
}

static int by_lost(const void *a, const void *b)
{
    const struct congest_tree *x = *(struct congest_tree *const *)a, *y = *(struct congest_tree *const *)b;
    if (!x->missed != !y->missed)
        return x->missed ? 1 : -1;
    if (x->lost_bps != y->lost_bps)
        return x->lost_bps < y->lost_bps ? 1 : -1;
    return x->root < y->root ? -1 : x->root > y->root;
}

static bool is_beside(const struct congest_tree *was, const struct congest_tree *is)
{
    bool yes = false;
    for (uint32_t i = 0; i < is->num_beside && !yes; i++)
        yes = is->beside[i] == was->root;
    return yes;
}

static void go_on(struct congest *c, struct congest_tree *is, bool beside)
{
    for (uint32_t k = 0; k < c->num_trees && !is->id; k++) {
        struct congest_tree *was = c->tree[k];
        if (!was || !(beside ? is_beside(was, is) : was->root == is->root))
            continue;
        is->id = was->id;
        is->since = was->since;
        is->sweeps = was->sweeps + 1;
        congest_tree_free(was);
        c->tree[k] = NULL;
    }
}

// A tree is the one that had the same root; where none had, that of another of the cables that are full
// together: which of them loses most may change. One that is not seen stays for its grace as it was.
static void keep_identity(struct congest *c, struct congest_tree **now, uint32_t n, int64_t time)
{
    struct congest_tree **all = xcalloc(n + c->num_trees + 1, sizeof(*all));
    uint32_t num = 0;
    for (uint32_t i = 0; i < n; i++) {
        now[i]->id = 0;
        now[i]->since = time;
        now[i]->sweeps = 1;
        go_on(c, now[i], false);
    }
    for (uint32_t i = 0; i < n; i++) {
        go_on(c, now[i], true);
        if (!now[i]->id)
            now[i]->id = c->next_id++;
        all[num++] = now[i];
    }
    for (uint32_t k = 0; k < c->num_trees; k++) {
        if (c->tree[k] && ++c->tree[k]->missed <= c->o.grace)
            all[num++] = c->tree[k];
        else if (c->tree[k])
            congest_tree_free(c->tree[k]);
    }
    free(c->tree);
    free(now);
    qsort(all, num, sizeof(*all), by_lost);
    c->tree = all;
    c->num_trees = num;
}

void congest_feed_begin(struct congest *c, const struct tele_table *t)
{
    track_room(c, t->num);
    free(c->feed.seen);
    c->feed = (struct congest_feed){.seen = xcalloc(t->num + 1ul, sizeof(*c->feed.seen)), .num = t->num};
}

bool congest_feed_ports(struct congest *c, const struct tele_table *t, uint32_t most)
{
    struct congest_feed *f = &c->feed;
    for (; most > 0 && f->looked < f->num; most--)
        look(c, t, f->looked++);
    for (; most > 0 && f->tracked < f->num; most--) // both ends were looked at
        track(c, t, f->tracked++);
    return f->tracked == f->num;
}

static void mark_members(struct congest *c)
{
    memset(c->in_tree, 0, c->num * sizeof(*c->in_tree));
    for (uint32_t i = c->num_trees; i-- > 0;) {
        const struct congest_tree *x = c->tree[i];
        for (uint32_t k = 0; k < x->num_members && !x->missed; k++)
            c->in_tree[x->member[k].slot] = x->id;
        if (!x->missed)
            c->in_tree[x->root] = x->id;
    }
}

// What work looks at is its own: the table goes on.
static void copy_ports(struct congest *c, const struct tele_table *t)
{
    c->own.fabric = t->fabric;
    c->own.num = t->num;
    c->own.port = xreallocarray(c->own.port, t->num + 1ul, sizeof(*c->own.port));
    if (t->num)
        memcpy(c->own.port, t->port, t->num * sizeof(*c->own.port));
    c->t = &c->own;
}

void congest_trees_begin(struct congest *c, const struct tele_table *t, const struct fabric_tables *tables,
                         const struct fabric_groups *groups)
{
    c->totals = c->feed.totals;
    free(c->feed.seen);
    c->feed = (struct congest_feed){0};
    drop_made(c);
    track_room(c, t->num); // slots that came meanwhile
    congest_routes_set(&c->routes, t, tables, groups);
    copy_ports(c, t);
}

void congest_trees_work(struct congest *c)
{
    congest_guess(c);
    congest_mixes_reset(c);
    congest_presume(c);
    congest_graph_make(c);
    c->num_made = congest_trees_make(c, &c->made);
}

void congest_trees_end(struct congest *c, int64_t now)
{
    keep_identity(c, c->made, c->num_made, now);
    c->made = NULL;
    c->num_made = 0;
    mark_members(c);
    c->t = NULL;
}

void congest_feed_end(struct congest *c, const struct tele_table *t, const struct fabric_tables *tables,
                      const struct fabric_groups *groups, int64_t now)
{
    congest_trees_begin(c, t, tables, groups);
    congest_trees_work(c);
    congest_trees_end(c, now);
}

void congest_feed(struct congest *c, const struct tele_table *t, const struct fabric_tables *tables,
                  const struct fabric_groups *groups, int64_t now)
{
    congest_feed_begin(c, t);
    congest_feed_ports(c, t, UINT32_MAX);
    congest_feed_end(c, t, tables, groups, now);
}

uint32_t congest_trees(const struct congest *c, const struct congest_tree *const **ret)
{
    *ret = (const struct congest_tree *const *)c->tree;
    return c->num_trees;
}

void congest_totals(const struct congest *c, struct congest_totals *ret)
{
    *ret = c->totals;
}
