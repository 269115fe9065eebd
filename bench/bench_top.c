// SPDX-License-Identifier: Apache-2.0
// The ports that stand out now, of a fabric all of whose ports have counted something: milliseconds of each
// question, the best of some tries, as JSON.
//
//   bench_top [FABRIC] [N]
#include <stdio.h>
#include <stdlib.h>

#include "api/counters.h"
#include "api/tele.h"
#include "api/top.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/rng.h"
#include "lib/xalloc.h"

#define TRIES 9

static void fill(struct tele_table *t, uint32_t slot, uint32_t port, struct rng *r)
{
    const struct fabric *f = t->fabric;
    const struct node *n = fabric_node(f, f->port[port].node);
    uint64_t *v = &t->value[(uint64_t)slot * TELE_COUNTERS], *b = &t->before[(uint64_t)slot * TELE_COUNTERS];
    t->port[slot] = (struct tele_port){.node_guid = n->guid,
                                       .num = f->port[port].num,
                                       .port = port,
                                       .peer = TELE_SLOT_NONE,
                                       .rate_mbps = 400000,
                                       .of_switch = n->type == NODE_SWITCH,
                                       .up = true,
                                       .lanes = 4};
    t->have[slot] = t->had[slot] = (1ull << TELE_COUNTERS) - 1;
    for (unsigned g = 0; g < TELE_GROUPS; g++) {
        t->at_before[(uint64_t)slot * TELE_GROUPS + g] = 10 * MONO_S;
        t->at[(uint64_t)slot * TELE_GROUPS + g] = 20 * MONO_S;
    }
    for (unsigned c = 0; c < TELE_COUNTERS; c++) {
        b[c] = rng_below(r, 1u << 30);
        v[c] = b[c] + rng_below(r, 1u << 20);
        t->errors[slot] += counter_is_error(c) ? (double)(v[c] - b[c]) / 10 : 0;
    }
}

static void make(struct tele_table *t, const struct fabric *f)
{
    struct rng r;
    uint64_t n = f->num_ports;
    rng_init(&r, 1);
    *t = (struct tele_table){.fabric = f,
                             .port = xcalloc(n, sizeof(*t->port)),
                             .value = xcalloc(n * TELE_COUNTERS, sizeof(uint64_t)),
                             .before = xcalloc(n * TELE_COUNTERS, sizeof(uint64_t)),
                             .have = xcalloc(n, sizeof(uint64_t)),
                             .had = xcalloc(n, sizeof(uint64_t)),
                             .at = xcalloc(n * TELE_GROUPS, sizeof(int64_t)),
                             .at_before = xcalloc(n * TELE_GROUPS, sizeof(int64_t)),
                             .errors = xcalloc(n, sizeof(double))};
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (f->port[i].num != 0 && port_valid(f->port[i].peer))
            fill(t, t->num++, i, &r);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        struct top_ask ask;
    } ask[] = {{"held", {.by = TOP_HELD}},
               {"lost", {.by = TOP_LOST}},
               {"used", {.by = TOP_USED}},
               {"xmit", {.by = TOP_XMIT}},
               {"rcv", {.by = TOP_RCV}},
               {"errors", {.by = TOP_ERRORS}},
               {"symbol_errors", {.by = TOP_COUNTER, .counter = TELE_SYMBOL_ERRORS}}};
    struct err e = {0};
    const struct fabric *f = topogen_make(argc > 1 ? argv[1] : "ft3-64-16", &e);
    uint32_t n = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 20;
    struct tele_table t;

    if (f == NULL || n == 0 || n > TOP_MAX) {
        fprintf(stderr, "%s\n", f == NULL ? e.text : "N: 1 to 1000");
        return 2;
    }
    make(&t, f);
    struct tele_view w = {.t = &t};
    struct top_one *one = xcalloc(n, sizeof(*one));
    printf("{\"ports\": %u, \"n\": %u", t.num, n);
    for (size_t i = 0; i < sizeof(ask) / sizeof(ask[0]); i++) {
        struct top_ask a = ask[i].ask;
        int64_t best = INT64_MAX;
        a.n = n;
        for (int k = 0; k < TRIES; k++) {
            int64_t began = thread_cpu_ns();
            top_now(&w, &a, one);
            int64_t ns = thread_cpu_ns() - began;
            best = ns < best ? ns : best;
        }
        printf(", \"%s_ms\": %.2f", ask[i].name, (double)best / 1e6);
    }
    printf("}\n");
    return 0;
}
