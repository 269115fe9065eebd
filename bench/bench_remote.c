// SPDX-License-Identifier: Apache-2.0
// What goes out, for bench/telemetry.py: prints one JSON object.
//
//   bench_remote [PORTS [SWEEPS]]       65536 ports, 8 sweeps
//
// Remote write's requests of a fabric's ports with 20 counters each, sweeps of 10 s: one at a time, three at
// a time (remote_write.interval as it is unless told otherwise), 60 at a time as after an outage; a page of
// /metrics: one shard of 16, plain and gzip. The mix: 10 % of ports down, 55 % idle (a trickle), 28 % busy at
// 400 Gb/s, 6 % light, 1 % with errors. Times are processor time of this thread.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/metrics_render.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/mono.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "telemetry/health.h"
#include "telemetry/table.h"
#include "telemetry/write_batch.h"

#define COUNTERS 20u
#define START_MS 1760000000000
#define SWEEP_MS 10000

struct bench {
    const struct fabric *f;
    const struct tele_names *names;
    uint32_t ports;
    uint64_t *value; // [port * TELE_COUNTERS]
    uint8_t *mix;
    struct rng rng;
};

static uint8_t mix_of(struct rng *g)
{
    uint32_t p = rng_below(g, 100);
    return p < 10 ? 0 : p < 65 ? 1 : p < 93 ? 2 : p < 99 ? 3 : 4;
}

static void setup(struct bench *b, uint32_t ports)
{
    struct err e;
    b->f = topogen_make("ft3-64-16", &e);
    struct tele_key *key = xcalloc(ports + 1ul, sizeof(*key));
    for (uint32_t i = 0; i < b->f->num_ports && b->ports < ports; i++) {
        const struct port *p = &b->f->port[i];
        if (p->num != 0 && port_valid(p->peer))
            key[b->ports++] = (struct tele_key){b->f->node[p->node.i].guid, p->num};
    }
    b->names = tele_names_new(key, b->ports, b->f, NULL);
    free(key);
    b->value = xcalloc((size_t)b->ports * TELE_COUNTERS, sizeof(*b->value));
    b->mix = xcalloc(b->ports + 1ul, 1);
    rng_init(&b->rng, 1);
    for (uint32_t i = 0; i < b->ports; i++) {
        b->mix[i] = mix_of(&b->rng);
        uint64_t life = rng_below(&b->rng, 1u << 30) * 4096ull;
        for (unsigned c = TELE_XMIT_DATA; c <= TELE_MULTICAST_RCV_PKTS && b->mix[i] != 0; c++)
            b->value[i * TELE_COUNTERS + c] = c >= TELE_MULTICAST_XMIT_PKTS
                                                  ? rng_below(&b->rng, 1u << 20)
                                                  : life + rng_below(&b->rng, 1u << 30);
    }
}

static void advance(struct bench *b)
{
    static const uint32_t words[] = {0, 4000, 1u << 31, 100u << 20, 1u << 31};
    for (uint32_t i = 0; i < b->ports; i++) {
        uint64_t *v = &b->value[(size_t)i * TELE_COUNTERS];
        uint32_t w = words[b->mix[i]];
        if (w == 0)
            continue;
        for (unsigned k = 0; k < 2; k++) { // out, in
            uint64_t data = w + rng_below(&b->rng, w / 4 + 1) * 6ull, packets = data / 500 + 1,
                     multi = rng_below(&b->rng, 4);
            v[TELE_XMIT_DATA + k] += data;
            v[TELE_XMIT_PKTS + k] += packets;
            v[TELE_UNICAST_XMIT_PKTS + k] += packets - multi;
            v[TELE_MULTICAST_XMIT_PKTS + k] += multi;
        }
        if (b->mix[i] == 4)
            v[TELE_SYMBOL_ERRORS] += rng_below(&b->rng, 5);
    }
}

// Series after series, as the store gives them.
static void feed(struct bench *b, struct write_maker *m, const uint64_t *const *sweep, unsigned n,
                 int64_t first_ms)
{
    for (uint32_t i = 0; i < b->ports; i++)
        for (unsigned k = 0; k < n; k++)
            write_maker_point(m, &(struct series_point){.series = i,
                                                        .at_ms = first_ms + k * SWEEP_MS,
                                                        .have = (1ull << COUNTERS) - 1,
                                                        .value = sweep[k] + (size_t)i * TELE_COUNTERS});
    write_maker_end(m);
}

struct figure {
    uint64_t samples, bytes, raw;
    double seconds;
};

static void one_batch_a_time(struct bench *b, struct write_maker *m, const uint64_t *const *sweep, unsigned n,
                             int64_t first_ms, struct figure *f)
{
    write_maker_clear(m);
    int64_t began = thread_cpu_ns();
    feed(b, m, sweep, n, first_ms);
    f->seconds += (double)(thread_cpu_ns() - began) / 1e9;
    f->samples += m->samples;
    f->bytes += m->block_bytes;
    f->raw += m->raw_bytes;
}

static void put(const char *name, const struct figure *f)
{
    printf(" \"%s_per_s\": %.0f, \"%s_bytes\": %.3f, \"%s_raw_bytes\": %.1f,\n", name,
           (double)f->samples / f->seconds, name, (double)f->bytes / (double)f->samples, name,
           (double)f->raw / (double)f->samples);
}

// So many sweeps in one go, of 4096 ports.
static void together(struct bench *b, struct write_maker *m, const char *name, unsigned sweeps)
{
    struct figure f = {0};
    uint64_t *sweep[60];
    size_t n = (size_t)b->ports * TELE_COUNTERS;
    uint32_t all = b->ports;

    b->ports = all < 4096 ? all : 4096;
    for (unsigned k = 0; k < sweeps; k++) {
        advance(b);
        sweep[k] = xmalloc(n * sizeof(*b->value));
        memcpy(sweep[k], b->value, n * sizeof(*b->value));
    }
    one_batch_a_time(b, m, (const uint64_t *const *)sweep, sweeps, START_MS, &f);
    put(name, &f);
    for (unsigned k = 0; k < sweeps; k++)
        free(sweep[k]);
    b->ports = all;
}

static void remote(struct bench *b, unsigned sweeps)
{
    struct write_labels labels;
    struct write_maker m;
    struct figure live = {0};

    write_labels_make(&labels, b->names, NULL, NULL, 0);
    write_maker_init(&m);
    m.names = b->names;
    m.labels = &labels;
    for (unsigned i = 0; i < sweeps; i++) {
        advance(b);
        one_batch_a_time(b, &m, (const uint64_t *const[]){b->value}, 1, START_MS + i * SWEEP_MS, &live);
    }
    put("live", &live);

    together(b, &m, "usual", 3);
    together(b, &m, "late", 60);
    write_maker_done(&m);
    write_labels_done(&labels);
}

static void page(struct bench *b, bool gzip)
{
    struct metrics_labels labels;
    struct metrics_copy c = {.f = b->f, .names = b->names, .labels = &labels, .part = {.shard = 3, .of = 16}};
    struct metrics_page p;
    int64_t best = INT64_MAX;

    metrics_labels_make(&labels, b->names, NULL);
    c.port = xcalloc(b->ports, sizeof(*c.port));
    c.have = xcalloc(b->ports, sizeof(*c.have));
    c.value = xcalloc((size_t)b->ports * TELE_COUNTERS, sizeof(*c.value));
    for (uint32_t i = 0; i < b->ports; i++) {
        if (!metrics_part_has(&c.part, b->names->name[i].node_guid))
            continue;
        c.port[c.num] = (struct metrics_port){.slot = i,
                                              .xmit_used = NAN,
                                              .rcv_used = NAN,
                                              .held = NAN,
                                              .lost_bps = NAN,
                                              .symbol_ber = NAN,
                                              .raw_ber = NAN};
        c.have[c.num] = (1ull << COUNTERS) - 1;
        memcpy(&c.value[(size_t)c.num++ * TELE_COUNTERS], &b->value[(size_t)i * TELE_COUNTERS],
               TELE_COUNTERS * sizeof(*c.value));
    }
    for (unsigned i = 0; i < 5; i++) {
        int64_t began = thread_cpu_ns();
        metrics_page_init(&p, false, gzip, 1u << 30);
        metrics_render(&p, &c, 1, METRICS_ALL);
        metrics_page_end(&p);
        int64_t took = thread_cpu_ns() - began;
        best = took < best ? took : best;
        if (i < 4)
            metrics_page_done(&p);
    }
    printf(" \"page_%s_ms\": %.2f, \"page_%s_bytes\": %zu, \"page_%s_samples\": %llu,\n",
           gzip ? "gzip" : "plain", (double)best / 1e6, gzip ? "gzip" : "plain", p.out.len,
           gzip ? "gzip" : "plain", (unsigned long long)p.samples);
    metrics_page_done(&p);
    metrics_labels_done(&labels);
    free(c.port);
    free(c.have);
    free(c.value);
}

int main(int argc, char **argv)
{
    struct bench b = {0};
    unsigned ports = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 65536;
    unsigned sweeps = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 8;

    setup(&b, ports);
    printf("{\n");
    remote(&b, sweeps);
    page(&b, false);
    page(&b, true);
    printf(" \"ports\": %u, \"counters\": %u\n}\n", b.ports, COUNTERS);
    tele_names_free(b.names);
    fabric_unref(b.f);
    free(b.value);
    free(b.mix);
    return 0;
}
