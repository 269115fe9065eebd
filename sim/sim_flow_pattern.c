// SPDX-License-Identifier: Apache-2.0
// Who sends to whom: patterns of training jobs, storage and idling, over the hosts' ports in the order of
// rail, host number, port.
#include "sim/sim_flow_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define FAN 16
#define STORAGE_SHARE 32 // one host in so many

static const struct {
    const char *name;
    double load;
    int64_t on_ns, off_ns;
} rows[SIM_PATTERNS] = {
    [SIM_FLOW_RING] = {"ring", 1, 0, 0},
    [SIM_FLOW_ALL_TO_ALL] = {"all-to-all", 1, 0, 0},
    [SIM_FLOW_INCAST] = {"incast", 1, 0, 0},
    [SIM_FLOW_STORAGE] = {"storage", 1, 5 * MONO_S, 15 * MONO_S},
    [SIM_FLOW_SHIFT] = {"shift", 1, 0, 0},
    [SIM_FLOW_RANDOM] = {"random", 1, 0, 0},
    [SIM_FLOW_BALANCED] = {"balanced", 0.8, 0, 0},
    [SIM_FLOW_IDLE] = {"idle", 0.001, 0, 0},
    [SIM_FLOW_PAIRS] = {"pairs", 1, 0, 0},
};

const char *sim_pattern_name(enum sim_pattern p)
{
    return p < SIM_PATTERNS ? rows[p].name : "?";
}

struct group { // hosts that take part
    const struct sim *s;
    uint32_t *host, num;
    uint32_t *receiver, num_receivers;
    struct pattern *p;
    uint32_t cap;
};

static bool too_many(const struct group *g)
{
    return g->p->num_pairs > FLOWS_MAX;
}

static void add(struct group *g, uint32_t from, uint32_t to)
{
    struct pattern *p = g->p;
    if (from == to || too_many(g))
        return;
    if (p->num_pairs == g->cap) {
        g->cap = g->cap ? g->cap * 2 : 64;
        p->pair = xreallocarray(p->pair, g->cap, sizeof(*p->pair));
    }
    p->pair[p->num_pairs++] = (struct pair){from, to};
}

// --- hosts ---

static uint64_t place(const struct sim_port *p)
{
    return (uint64_t)p->rail << 48 | (uint64_t)(p->host & 0xffffffff) << 8 | p->num;
}

static int by_place(const void *a, const void *b, void *arg)
{
    const struct sim *s = arg;
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    uint64_t x = place(&s->port[i]), y = place(&s->port[k]);
    return x != y ? (x < y ? -1 : 1) : (i < k ? -1 : i > k);
}

static bool takes_part(const struct sim *s, const struct sim_port *p)
{
    return !is_switch(node_of(s, p)) && p->peer != NONE && p->host != NONE;
}

static void all_hosts(const struct sim *s, struct group *g)
{
    for (uint32_t i = 0; i < s->num_ports; i++)
        g->num += takes_part(s, &s->port[i]);
    g->host = xcalloc(g->num + 1, sizeof(*g->host));
    for (uint32_t i = 0, k = 0; i < s->num_ports; i++)
        if (takes_part(s, &s->port[i]))
            g->host[k++] = i;
}

static void in_order(const struct sim *s, struct group *g)
{
    qsort_r(g->host, g->num, sizeof(*g->host), by_place, (void *)s);
}

static int named(const struct sim *s, const uint64_t *guid, uint32_t n, uint32_t **ret)
{
    uint32_t *port = xcalloc(n + 1, sizeof(*port));
    for (uint32_t i = 0; i < n; i++) {
        const struct sim_port *p = sim_port_by_guid(s, guid[i]);
        if (!p || is_switch(node_of(s, p))) {
            free(port);
            return -ENOENT;
        }
        port[i] = port_index(s, p);
    }
    *ret = port;
    return 0;
}

// --- patterns ---

// Each rail's hosts among themselves: the i-th to the (i + step)-th, step 0 meaning half of them.
static void by_rail(struct group *g, unsigned step)
{
    for (uint32_t first = 0, end; first < g->num; first = end) {
        end = first + 1;
        while (end < g->num && g->s->port[g->host[end]].rail == g->s->port[g->host[first]].rail)
            end++;
        uint32_t n = end - first, k = step ? step % n : n / 2;
        for (uint32_t i = 0; i < n; i++)
            add(g, g->host[first + i], g->host[first + (i + k) % n]);
    }
}

static void all_to_all(struct group *g, unsigned fan)
{
    uint32_t others = g->num - 1, n = fan && fan < others ? fan : others;
    for (uint32_t i = 0; i < g->num && !too_many(g); i++)
        for (uint32_t k = 1; k <= n; k++) // at distances spread over all
            add(g, g->host[i], g->host[(i + 1 + (uint64_t)(k - 1) * others / n) % g->num]);
}

static void permutation(struct group *g, struct rng *r)
{
    uint32_t *to = xcalloc(g->num + 1, sizeof(*to));
    for (uint32_t i = 0; i < g->num; i++) { // one circle through all: nobody sends to itself
        uint32_t k = rng_below(r, i + 1);
        to[i] = to[k];
        to[k] = g->host[i];
    }
    for (uint32_t i = 0; i < g->num; i++)
        add(g, to[i], to[(i + 1) % g->num]);
    free(to);
}

static void choose_receivers(struct group *g, uint32_t n, struct rng *r)
{
    uint32_t *host = xcalloc(g->num + 1, sizeof(*host));
    memcpy(host, g->host, g->num * sizeof(*host));
    g->receiver = xcalloc(n + 1, sizeof(*g->receiver));
    for (uint32_t i = 0; i < n && i < g->num; i++) {
        uint32_t k = i + rng_below(r, g->num - i), x = host[k];
        host[k] = host[i];
        host[i] = x;
        g->receiver[g->num_receivers++] = x;
    }
    free(host);
}

static bool receives(const struct group *g, uint32_t port)
{
    for (uint32_t i = 0; i < g->num_receivers; i++)
        if (g->receiver[i] == port)
            return true;
    return false;
}

// Every host that is no receiver to `fan` of the receivers.
static void to_receivers(struct group *g, unsigned fan)
{
    uint32_t n = fan < g->num_receivers ? fan : g->num_receivers, turn = 0;
    for (uint32_t i = 0; i < g->num && !too_many(g); i++) {
        if (receives(g, g->host[i]))
            continue;
        for (uint32_t k = 0; k < n; k++)
            add(g, g->host[i], g->receiver[(turn + k) % g->num_receivers]);
        turn++;
    }
}

static void make_pairs(struct group *g, const struct sim_flow_spec *d)
{
    struct rng r;
    rng_init(&r, d->seed ^ 0x7061747465726e);
    if (g->num == 0)
        return;
    switch (d->pattern) {
    case SIM_FLOW_RING:
    case SIM_FLOW_IDLE:
        by_rail(g, 1);
        break;
    case SIM_FLOW_SHIFT:
        by_rail(g, d->shift ? d->shift : 1);
        break;
    case SIM_FLOW_BALANCED:
        by_rail(g, d->shift);
        break;
    case SIM_FLOW_ALL_TO_ALL:
        all_to_all(g, d->fan ? d->fan : FAN);
        break;
    case SIM_FLOW_RANDOM:
        permutation(g, &r);
        break;
    case SIM_FLOW_INCAST:
        if (g->num_receivers == 0)
            choose_receivers(g, 1, &r);
        to_receivers(g, 1);
        break;
    case SIM_FLOW_STORAGE:
        if (g->num_receivers == 0)
            choose_receivers(g, g->num / STORAGE_SHARE + 1, &r);
        to_receivers(g, d->fan ? d->fan : FAN);
        break;
    case SIM_FLOW_PAIRS:
        for (uint32_t i = 0; i < g->num && i < g->num_receivers; i++)
            add(g, g->host[i], g->receiver[i]);
        break;
    case SIM_PATTERNS:
        break;
    }
}

static void count_ends(const struct sim *s, struct pattern *p)
{
    uint8_t *seen = xcalloc(s->num_ports + 1, 1);
    for (uint32_t i = 0; i < p->num_pairs; i++) {
        p->senders += !(seen[p->pair[i].from] & 1);
        seen[p->pair[i].from] |= 1;
        p->receivers += !(seen[p->pair[i].to] & 2);
        seen[p->pair[i].to] |= 2;
    }
    free(seen);
}

static bool in_range(const struct sim_flow_spec *d)
{
    return (unsigned)d->pattern < SIM_PATTERNS && d->load >= 0 && d->sl <= 15 && time_ok(d->on_ns) &&
           time_ok(d->off_ns) && (d->on_ns == 0 || d->on_ns >= MONO_MS) &&
           (d->off_ns == 0 || d->off_ns >= MONO_MS) &&
           (d->pattern != SIM_FLOW_PAIRS || (d->num_hosts == d->num_receivers && d->num_hosts > 0));
}

int pattern_make(struct sim *s, const struct sim_flow_spec *d, struct pattern *ret)
{
    int rc = 0;
    if (!in_range(d))
        return -EINVAL;
    if (d->num_hosts > FLOWS_MAX || d->num_receivers > FLOWS_MAX)
        return -E2BIG;
    *ret = (struct pattern){
        .kind = d->pattern, .sl_given = d->sl_given, .sl = d->sl, .window = d->window, .on = true};
    struct group g = {.s = s, .p = ret, .num_receivers = d->num_receivers};
    snprintf(ret->name, sizeof(ret->name), "%s", d->name ? d->name : rows[d->pattern].name);
    ret->load = d->load > 0 ? d->load : rows[d->pattern].load;
    ret->on_ns = d->on_ns || d->off_ns ? d->on_ns : rows[d->pattern].on_ns;
    ret->off_ns = d->on_ns || d->off_ns ? d->off_ns : rows[d->pattern].off_ns;
    if (d->num_hosts > 0) {
        g.num = d->num_hosts;
        rc = named(s, d->host, d->num_hosts, &g.host);
    } else {
        all_hosts(s, &g);
    }
    if (rc == 0 && d->pattern != SIM_FLOW_PAIRS)
        in_order(s, &g);
    if (rc == 0 && d->num_receivers > 0)
        rc = named(s, d->receiver, d->num_receivers, &g.receiver);
    if (rc == 0)
        make_pairs(&g, d);
    if (rc == 0 && too_many(&g))
        rc = -E2BIG;
    if (rc == 0)
        count_ends(s, ret);
    else
        free(ret->pair);
    free(g.host);
    free(g.receiver);
    return rc;
}
