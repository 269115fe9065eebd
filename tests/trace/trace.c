// SPDX-License-Identifier: Apache-2.0
#include "tests/trace/trace.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mono.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "telemetry/table_priv.h"

#define HOUR (3600 * MONO_S)
#define GUARD (5 * HOUR / 2) // between cases of one link: what the slowest rule remembers
#define QUIET (26 * HOUR)    // before a climb, so that there is something to compare with
#define BIT_PER_WORD 32
#define TICK_BYTES 8

const char *const trace_kind_names[TRACE_KINDS] = {"flap",  "recover", "drop",   "ber",  "slow",
                                                   "climb", "reboot",  "incast", "spine"};
const char *const trace_expected[TRACE_KINDS] = {"L02", "L02", "L03", "L06", "L06",
                                                 "L08", "L04", "C01", "L01"};
const bool trace_bad_cable[TRACE_KINDS] = {
    [TRACE_FLAP] = true, [TRACE_RECOVER] = true, [TRACE_DROP] = true,
    [TRACE_BER] = true,  [TRACE_SLOW] = true,    [TRACE_CLIMB] = true,
};

struct life {          // of a port, in its direction in (errors) and out (waits)
    double raw_ber;    // corrected symbols a bit
    double post_per_s; // symbol errors a second
    double bits_per_s; // of the link
    double load;       // share of what it carries
    double held;       // share of time that it waits
    double carry[3];   // fractions of counters that move by less than one a sweep
    int64_t until;     // it has lived until then
};

struct down { // a time that a link is down
    int64_t from, until;
    uint32_t slot;
    bool counted[2]; // which end counts it: the slot's, the peer's
    bool silent;     // the slot's end does not answer meanwhile
};

struct trace {
    const struct fabric *f;
    struct trace_opts o;
    struct rng rng;
    struct tele_table table; // what was read last
    uint64_t *real;          // what the devices have counted, [slot * TELE_COUNTERS + counter]
    struct life *life;
    uint32_t *running; // [slot]: its case + 1, 0 none
    int64_t *ended;    // [slot]: when its last one did
    uint32_t *last;    // [slot]: which, + 1
    struct trace_case *cases;
    uint32_t num_cases, next_case, first_open;
    struct down *down;
    uint32_t num_down, max_down, next_down;
    uint32_t *is_down; // [slot]: of how many downs
    uint32_t *silent;  // [slot]: the same, its device does not answer
    uint32_t *open;    // downs that have begun and not ended
    uint32_t num_open;
    int64_t now;
};

// --- numbers ---

static double uniform(struct rng *r, double low, double high)
{
    return low + (high - low) * rng_double(r);
}

static double gauss(struct rng *r)
{
    double s = 0;
    for (int i = 0; i < 12; i++)
        s += rng_double(r);
    return s - 6;
}

static uint64_t poisson(struct rng *r, double mean)
{
    if (mean <= 0)
        return 0;
    if (mean > 50) {
        double v = mean + sqrt(mean) * gauss(r);
        return v > 0 ? (uint64_t)(v + 0.5) : 0;
    }
    double limit = exp(-mean), p = rng_double(r);
    uint64_t n = 0;
    for (; p > limit; n++)
        p *= rng_double(r);
    return n;
}

// --- the table, as a fabric has it ---

static void make_table(struct trace *t)
{
    struct tele_table *b = &t->table;
    const struct fabric *f = t->f;
    uint32_t *slot_of = xcalloc(f->num_ports, sizeof(*slot_of));
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        slot_of[i] = port_valid(p->peer) && p->num > 0 ? b->num++ : TELE_SLOT_NONE;
    }
    uint32_t slots = b->num;
    tele_table_init(b);
    b->fabric = f;
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (slot_of[i] != TELE_SLOT_NONE)
            tele_slot_set(b, slot_of[i], f->node[f->port[i].node.i].guid, f->port[i].num);
    assert(b->num == slots);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        if (slot_of[i] == TELE_SLOT_NONE)
            continue;
        const struct port *p = &f->port[i];
        struct tele_port *q = &b->port[slot_of[i]];
        q->port = i;
        q->peer = slot_of[p->peer.i];
        q->rate_mbps = port_rate_mbps(&p->a);
        if (q->rate_mbps == 0)
            q->rate_mbps = 200000;
        q->lanes = 4;
        q->of_switch = f->node[p->node.i].type == NODE_SWITCH;
        q->up = true;
    }
    free(slot_of);
}

static bool to_host(const struct trace *t, uint32_t slot)
{
    const struct tele_port *p = &t->table.port[slot];
    return p->of_switch && !t->table.port[p->peer].of_switch;
}

// --- cases ---

static int64_t length(enum trace_kind k, double severity, struct rng *r)
{
    switch (k) {
    case TRACE_FLAP:
        return (int64_t)uniform(r, 6, 11.5) * HOUR;
    case TRACE_RECOVER:
        return 10 * 60 * MONO_S;
    case TRACE_DROP:
        return (int64_t)(severity * 240) * MONO_S;
    case TRACE_BER:
        return 3 * HOUR;
    case TRACE_SLOW:
        return 12 * HOUR;
    case TRACE_CLIMB:
        return 15 * HOUR;
    case TRACE_REBOOT:
        return (int64_t)uniform(r, 120, 300) * MONO_S;
    case TRACE_INCAST:
        return 12 * 60 * MONO_S;
    case TRACE_SPINE:
        return 30 * 60 * MONO_S;
    case TRACE_KINDS:
        break;
    }
    return 0;
}

// Where a kind can happen. The slot is the end whose counters tell: errors are counted where they arrive.
static bool fits(const struct trace *t, enum trace_kind k, uint32_t slot)
{
    if (k == TRACE_REBOOT)
        return !t->table.port[slot].of_switch;
    if (k == TRACE_INCAST)
        return to_host(t, slot);
    return true;
}

struct busy { // of a link: when something happens there, in order of being strewn
    int64_t from, until;
    uint32_t slot, next;
};

struct strewn {
    struct busy *b;
    uint32_t n, max;
    uint32_t *head; // [slot of the lower end]
};

static uint32_t link_of(const struct trace *t, uint32_t slot)
{
    uint32_t peer = t->table.port[slot].peer;
    return slot < peer ? slot : peer;
}

static bool is_free(const struct trace *t, const struct strewn *s, uint32_t slot, int64_t from, int64_t until)
{
    for (uint32_t i = s->head[link_of(t, slot)]; i != ID_NONE; i = s->b[i].next)
        if (from < s->b[i].until && s->b[i].from < until)
            return false;
    return true;
}

static void take(const struct trace *t, struct strewn *s, uint32_t slot, int64_t from, int64_t until)
{
    if (s->n == s->max)
        s->b = xreallocarray(s->b, s->max = s->max * 2 + 1024, sizeof(*s->b));
    uint32_t link = link_of(t, slot);
    s->b[s->n] = (struct busy){from, until, slot, s->head[link]};
    s->head[link] = s->n++;
}

static void down_add(struct trace *t, uint32_t slot, int64_t from, int64_t until, bool here, bool there,
                     bool silent)
{
    if (t->num_down == t->max_down)
        t->down = xreallocarray(t->down, t->max_down = t->max_down * 2 + 1024, sizeof(*t->down));
    t->down[t->num_down++] = (struct down){from, until, slot, {here, there}, silent};
}

static void flaps(struct trace *t, const struct trace_case *c)
{
    unsigned n = (unsigned)ceil(c->severity * 3);
    int64_t part = (c->until - c->from) / n;
    for (unsigned i = 0; i < n; i++) {
        int64_t from = c->from + i * part + (int64_t)(uniform(&t->rng, 0, 0.8) * (double)part);
        down_add(t, c->slot, from, from + (int64_t)uniform(&t->rng, 25, 60) * MONO_S, true, true, false);
    }
}

static void downs_of(struct trace *t, const struct trace_case *c)
{
    const struct node *n = c->node != ID_NONE ? &t->f->node[c->node] : NULL;
    switch (c->kind) {
    case TRACE_FLAP:
        flaps(t, c);
        break;
    case TRACE_DROP:
        down_add(t, c->slot, c->from, c->until, true, true, false);
        break;
    case TRACE_REBOOT:
        down_add(t, c->slot, c->from, c->until, false, true, true);
        break;
    case TRACE_SPINE:
        for (uint32_t i = 0; i < t->table.num; i++)
            if (t->table.port[i].node_guid == n->guid)
                down_add(t, i, c->from, c->until, false, true, true);
        break;
    case TRACE_RECOVER:
    case TRACE_BER:
    case TRACE_SLOW:
    case TRACE_CLIMB:
    case TRACE_INCAST:
    case TRACE_KINDS:
        break;
    }
}

static bool strew_one(struct trace *t, struct strewn *s, enum trace_kind k, double severity,
                      struct trace_case *ret)
{
    int64_t len = length(k, severity, &t->rng), quiet = k == TRACE_CLIMB ? QUIET : GUARD;
    int64_t room = t->o.duration_ns - len - quiet - GUARD;
    for (int attempt = 0; room > 0 && attempt < 10000; attempt++) {
        uint32_t slot = rng_below(&t->rng, t->table.num), node = ID_NONE;
        int64_t from = quiet + (int64_t)(rng_double(&t->rng) * (double)room);
        bool ok = fits(t, k, slot);
        if (k == TRACE_SPINE) {
            node = t->f->port[t->table.port[slot].port].node.i;
            ok = t->f->node[node].tier == 1;
            for (uint32_t i = 0; ok && i < t->table.num; i++)
                if (t->table.port[i].node_guid == t->f->node[node].guid)
                    ok = is_free(t, s, i, from - quiet, from + len + GUARD);
        }
        if (!ok || !is_free(t, s, slot, from - quiet, from + len + GUARD))
            continue;
        *ret = (struct trace_case){k, severity, slot, node, from, from + len};
        for (uint32_t i = 0; k == TRACE_SPINE && i < t->table.num; i++)
            if (t->table.port[i].node_guid == t->f->node[node].guid)
                take(t, s, i, from - quiet, from + len + GUARD);
        if (k != TRACE_SPINE)
            take(t, s, slot, from - quiet, from + len + GUARD);
        downs_of(t, ret);
        return true;
    }
    return false;
}

static int case_cmp(const void *a, const void *b)
{
    const struct trace_case *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

static int down_cmp(const void *a, const void *b)
{
    const struct down *x = a, *y = b;
    return x->from < y->from ? -1 : x->from > y->from;
}

// The longest first: they find room least easily.
static bool strew(struct trace *t)
{
    static const enum trace_kind order[TRACE_KINDS] = {TRACE_SPINE,   TRACE_CLIMB,  TRACE_SLOW,
                                                       TRACE_FLAP,    TRACE_BER,    TRACE_DROP,
                                                       TRACE_RECOVER, TRACE_REBOOT, TRACE_INCAST};
    struct strewn s = {.head = xcalloc(t->table.num, sizeof(uint32_t))};
    memset(s.head, 0xff, t->table.num * sizeof(uint32_t));
    t->cases = xcalloc((size_t)TRACE_KINDS * 4 * t->o.cases + 1, sizeof(*t->cases));
    bool ok = true;
    for (unsigned i = 0; i < TRACE_KINDS; i++)
        for (unsigned v = 0; v < 4 && t->o.severity[v] > 0; v++) {
            bool once = order[i] == TRACE_SPINE || order[i] == TRACE_REBOOT; // there is no more or less of it
            for (unsigned n = 0; ok && n < t->o.cases && !(once && v > 0); n++)
                ok = strew_one(t, &s, order[i], once ? 1 : t->o.severity[v], &t->cases[t->num_cases++]);
        }
    free(s.b);
    free(s.head);
    qsort(t->cases, t->num_cases, sizeof(*t->cases), case_cmp);
    qsort(t->down, t->num_down, sizeof(*t->down), down_cmp);
    return ok;
}

// --- life of a port ---

static void lives(struct trace *t)
{
    for (uint32_t i = 0; i < t->table.num; i++) {
        struct life *l = &t->life[i];
        l->bits_per_s = t->table.port[i].rate_mbps * 1e6;
        l->raw_ber = pow(10, uniform(&t->rng, -11, -8));
        l->post_per_s = l->bits_per_s * pow(10, uniform(&t->rng, -20, -17));
        for (unsigned c = 0; c < TELE_COUNTERS; c++) // it has lived before
            t->real[(size_t)i * TELE_COUNTERS + c] = rng_below(&t->rng, 1000);
    }
}

static double climb(const struct trace *t, const struct trace_case *c, double usual)
{
    double at = (double)(t->now - c->from) / (12.0 * (double)HOUR);
    double top = c->severity * (usual * 10 > 1e-7 ? usual * 10 : 1e-7);
    return at >= 1 ? top : usual * pow(top / usual, at);
}

struct now { // rates of a port as they are in this sweep
    double raw_ber, post_per_s, recover_per_s, held;
};

static struct now now_of(struct trace *t, uint32_t slot)
{
    const struct life *l = &t->life[slot];
    struct now n = {l->raw_ber, l->post_per_s, 0, l->held};
    const struct trace_case *c = t->running[slot] ? &t->cases[t->running[slot] - 1] : NULL;
    if (c == NULL || c->slot != slot)
        return n;
    switch (c->kind) {
    case TRACE_BER:
        n.post_per_s += c->severity * 2.88 / 720 * l->bits_per_s / 400e9;
        break;
    case TRACE_SLOW:
        n.post_per_s += c->severity * 3 / 7500 * l->bits_per_s / 400e9;
        break;
    case TRACE_CLIMB:
        n.raw_ber = climb(t, c, l->raw_ber);
        break;
    case TRACE_RECOVER:
        n.recover_per_s = c->severity * 5 / 60;
        break;
    case TRACE_INCAST:
        n.held = c->severity * 0.05;
        break;
    case TRACE_FLAP:
    case TRACE_DROP:
    case TRACE_REBOOT:
    case TRACE_SPINE:
    case TRACE_KINDS:
        break;
    }
    return n;
}

static void more(uint64_t *value, enum tele_counter c, double mean, double *carry)
{
    double v = mean + *carry;
    uint64_t whole = (uint64_t)v;
    *carry = v - (double)whole;
    value[c] += whole;
}

// What a port counts in `s` seconds.
static void live(struct trace *t, uint32_t slot, uint64_t *value, double s)
{
    struct life *l = &t->life[slot];
    if (t->is_down[slot])
        return;
    struct now n = now_of(t, slot);
    double words = l->load * l->bits_per_s * s / BIT_PER_WORD;
    double ticks = n.held * l->bits_per_s / 8 * s / TICK_BYTES * (1 + 0.02 * gauss(&t->rng));
    more(value, TELE_XMIT_DATA, words, &l->carry[0]);
    more(value, TELE_RCV_DATA, words, &l->carry[0]);
    more(value, TELE_XMIT_PKTS, words / 1040, &l->carry[1]);
    more(value, TELE_RCV_PKTS, words / 1040, &l->carry[1]);
    more(value, TELE_UNICAST_XMIT_PKTS, words / 1040, &l->carry[1]);
    more(value, TELE_UNICAST_RCV_PKTS, words / 1040, &l->carry[1]);
    more(value, TELE_XMIT_WAIT, ticks > 0 ? ticks : 0, &l->carry[2]);
    double corrected = n.raw_ber * l->bits_per_s * s;
    if (corrected > 0)
        value[TELE_FEC_CORRECTED_SYMBOLS] += poisson(&t->rng, corrected);
    if (n.post_per_s > 0)
        value[TELE_SYMBOL_ERRORS] += poisson(&t->rng, n.post_per_s * s);
    if (n.recover_per_s > 0)
        value[TELE_LINK_ERROR_RECOVERY] += poisson(&t->rng, n.recover_per_s * s);
}

// --- a sweep ---

static void jobs(struct trace *t, int64_t was)
{
    if (t->now / (HOUR / 2) == was / (HOUR / 2) && was != 0)
        return; // phases last half an hour
    for (uint32_t i = 0; i < t->table.num; i++) {
        double kind = rng_double(&t->rng);
        t->life[i].load = kind < 0.4 ? 1e-6 : kind < 0.9 ? uniform(&t->rng, 0.1, 0.7) : 0.01;
        t->life[i].held = kind < 0.4 ? 0 : uniform(&t->rng, 0, 0.008);
    }
}

static void set_running(struct trace *t, uint32_t i, bool on)
{
    const struct trace_case *c = &t->cases[i];
    for (uint32_t s = 0; s < t->table.num; s++) {
        const struct tele_port *p = &t->table.port[s];
        bool its = c->node != ID_NONE ? p->node_guid == t->f->node[c->node].guid ||
                                            t->table.port[p->peer].node_guid == t->f->node[c->node].guid
                                      : s == c->slot || p->peer == c->slot;
        if (!its)
            continue;
        t->running[s] = on ? i + 1 : 0;
        t->last[s] = i + 1;
        t->ended[s] = c->until;
    }
}

static void cases_now(struct trace *t)
{
    for (; t->next_case < t->num_cases && t->cases[t->next_case].from <= t->now; t->next_case++)
        set_running(t, t->next_case, true);
    for (uint32_t i = t->first_open; i < t->next_case; i++) {
        bool over = t->cases[i].until <= t->now;
        if (over && t->running[t->cases[i].slot] == i + 1)
            set_running(t, i, false);
        if (over && i == t->first_open)
            t->first_open++;
    }
}

static void turn(struct trace *t, const struct down *d, int by)
{
    uint32_t peer = t->table.port[d->slot].peer;
    t->is_down[d->slot] += (uint32_t)by;
    t->is_down[peer] += (uint32_t)by;
    if (d->silent || !t->table.port[d->slot].of_switch)
        t->silent[d->slot] += (uint32_t)by;
    if (!t->table.port[peer].of_switch) // nothing reaches an adapter whose only cable is down
        t->silent[peer] += (uint32_t)by;
    t->table.port[d->slot].up = t->table.port[peer].up = t->is_down[d->slot] == 0;
}

static void downs_now(struct trace *t, void (*link)(void *, uint32_t, bool, int64_t), void *arg)
{
    for (uint32_t i = 0; i < t->num_open;) {
        struct down *d = &t->down[t->open[i]];
        if (d->until > t->now) {
            i++;
            continue;
        }
        turn(t, d, -1);
        if (link != NULL)
            link(arg, d->slot, true, d->until);
        t->open[i] = t->open[--t->num_open];
    }
    for (; t->next_down < t->num_down && t->down[t->next_down].from <= t->now; t->next_down++) {
        struct down *d = &t->down[t->next_down];
        uint32_t peer = t->table.port[d->slot].peer;
        turn(t, d, 1);
        t->real[(size_t)d->slot * TELE_COUNTERS + TELE_LINK_DOWNED] += d->counted[0];
        t->real[(size_t)peer * TELE_COUNTERS + TELE_LINK_DOWNED] += d->counted[1];
        if (link != NULL)
            link(arg, d->slot, false, d->from);
        t->open = xreallocarray(t->open, t->num_open + 1, sizeof(*t->open));
        t->open[t->num_open++] = t->next_down;
    }
}

// Devices count all the time; a sweep reads what stands there at its moment, up to 3 s before it ends.
static void read_ports(struct trace *t)
{
    struct tele_table *b = &t->table;
    uint64_t all = ~0ull >> (64 - TELE_COUNTERS);
    for (uint32_t i = 0; i < b->num; i++) {
        size_t at = (size_t)i * TELE_COUNTERS, g = (size_t)i * TELE_GROUPS;
        int64_t when = t->now - (int64_t)(rng_double(&t->rng) * 3e9);
        live(t, i, t->real + at, mono_seconds(when - t->life[i].until));
        t->life[i].until = when;
        if (t->silent[i] || (t->o.missing > 0 && rng_double(&t->rng) < t->o.missing)) {
            b->have[i] = 0;
            b->port[i].unread = TELE_NO_ANSWER;
            continue;
        }
        memcpy(b->before + at, b->value + at, TELE_COUNTERS * sizeof(uint64_t));
        memcpy(b->value + at, t->real + at, TELE_COUNTERS * sizeof(uint64_t));
        b->had[i] = b->at[g] ? all : 0;
        b->have[i] = all;
        b->port[i].unread = TELE_READ;
        for (unsigned k = 0; k < TELE_GROUPS; k++) {
            b->at_before[g + k] = b->at[g + k];
            b->at[g + k] = when;
        }
    }
}

bool trace_step(struct trace *t, void (*link)(void *arg, uint32_t slot, bool up, int64_t when), void *arg)
{
    int64_t was = t->now;
    if (t->now + t->o.interval_ns > t->o.duration_ns)
        return false;
    t->now += t->o.interval_ns;
    jobs(t, was);
    cases_now(t);
    downs_now(t, link, arg);
    read_ports(t);
    return true;
}

// --- made and asked ---

struct trace *trace_new(const struct fabric *f, const struct trace_opts *o)
{
    struct trace *t = xcalloc(1, sizeof(*t));
    t->f = f;
    t->o = *o;
    rng_init(&t->rng, o->seed);
    make_table(t);
    uint32_t n = t->table.num;
    t->real = xcalloc((size_t)n * TELE_COUNTERS, sizeof(uint64_t));
    t->life = xcalloc(n, sizeof(*t->life));
    t->running = xcalloc(n, sizeof(uint32_t));
    t->last = xcalloc(n, sizeof(uint32_t));
    t->ended = xcalloc(n, sizeof(int64_t));
    t->is_down = xcalloc(n, sizeof(uint32_t));
    t->silent = xcalloc(n, sizeof(uint32_t));
    lives(t);
    if (!strew(t)) {
        trace_free(t);
        return NULL;
    }
    return t;
}

void trace_free(struct trace *t)
{
    if (t == NULL)
        return;
    tele_table_done(&t->table);
    free(t->real);
    free(t->life);
    free(t->running);
    free(t->last);
    free(t->ended);
    free(t->is_down);
    free(t->silent);
    free(t->cases);
    free(t->down);
    free(t->open);
    free(t);
}

const struct tele_table *trace_table(const struct trace *t)
{
    return &t->table;
}

const struct trace_case *trace_cases(const struct trace *t, uint32_t *ret_n)
{
    *ret_n = t->num_cases;
    return t->cases;
}

int64_t trace_now(const struct trace *t)
{
    return t->now;
}

const struct trace_case *trace_case_at(const struct trace *t, uint32_t slot, int64_t after)
{
    if (t->running[slot])
        return &t->cases[t->running[slot] - 1];
    return t->last[slot] && t->now - t->ended[slot] <= after ? &t->cases[t->last[slot] - 1] : NULL;
}
