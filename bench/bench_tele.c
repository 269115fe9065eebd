// SPDX-License-Identifier: Apache-2.0
// What collecting costs without the wire: a fabric's ports, read sweep after sweep in virtual time through
// the engine from a transport that answers at once, with congestion, health and, with -d, history fed. Prints
// CPU as a share of one core at the interval, by part. Of the ports 10 % send at full rate, 60 % trickle, 1 %
// have errors.
//
//   bench_tele [-f FABRIC] [-s SWEEPS] [-i INTERVAL_S] [-e ERRORS_INTERVAL_S] [-2 (two MADs a port)] [-d DIR]
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/builder.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/hash.h"
#include "lib/xalloc.h"
#include "mad/mad.h"
#include "telemetry/telemetry.h"

#define HELD 4096

struct bench {
    struct transport t;
    struct loop *l;
    struct loop_task task;
    bool two, swept;
    int64_t answering; // CPU of the transport itself
    unsigned n;
    struct {
        uint16_t lid;
        uint8_t mad[MAD_SIZE];
    } held[HELD];
};

static void put64(uint8_t *p, uint64_t v)
{
    for (int i = 7; i >= 0; i--, v >>= 8)
        p[i] = (uint8_t)v;
}

static void info(const struct bench *b, uint8_t *data)
{
    struct mad_class_port_info c = {
        .base_version = 1,
        .class_version = 1,
        .capability_mask = MAD_PM_CAP_ALL_PORT_SELECT | MAD_PM_CAP_EXTENDED_WIDTH | MAD_PM_CAP_XMIT_WAIT |
                           MAD_PM_CAP_RSFEC_COUNTERS,
        .capability_mask2 = b->two ? 0 : MAD_PM_CAP2_ADDITIONAL_EXTENDED_COUNTERS};
    mad_class_port_info_encode(&c, data);
}

static void extended(const struct bench *b, uint16_t lid, uint8_t *data)
{
    uint64_t port = hash_mix64((uint64_t)lid << 8 | data[1]), ms = (uint64_t)loop_now(b->l).ns / MONO_MS;
    unsigned kind = port % 100;
    uint64_t rate = kind < 10 ? 6000000 + port % 100000 : kind < 70 ? 3 : 0; // words a ms
    for (unsigned i = 0; i < 8; i++)
        put64(data + 8 + 8 * i, ms * rate / (i < 2 ? 1 : 500 + i));
    if (kind == 99)
        put64(data + 8 + 64, ms / 5000);
    if (kind < 10)
        put64(data + 8 + 8 * 20, ms * (port % 1000));
}

static void answer_all(void *arg)
{
    struct bench *b = arg;
    unsigned n = b->n;
    int64_t began = thread_cpu_ns();
    for (unsigned i = 0; i < n; i++) {
        uint8_t *mad = b->held[i].mad, *data = mad + MAD_PM_DATA_OFFSET;
        unsigned attr = (unsigned)mad[16] << 8 | mad[17];
        mad[3] = MAD_METHOD_GET_RESP;
        if (attr == MAD_ATTR_CLASS_PORT_INFO)
            info(b, data);
        else if (attr == MAD_PM_ATTR_PORT_COUNTERS_EXTENDED)
            extended(b, b->held[i].lid, data);
    }
    b->answering += thread_cpu_ns() - began;
    b->n = 0;
    static uint8_t copy[HELD][MAD_SIZE];
    struct mad_addr from[HELD];
    for (unsigned i = 0; i < n; i++) {
        memcpy(copy[i], b->held[i].mad, MAD_SIZE);
        from[i] = (struct mad_addr){.lid = b->held[i].lid, .qp = 1};
    }
    for (unsigned i = 0; i < n; i++)
        b->t.recv(b->t.recv_arg, copy[i], &from[i], 0);
}

static int take(struct transport *t, const uint8_t *mad, const struct mad_addr *to, int64_t timeout_ns)
{
    struct bench *b = (struct bench *)t;
    (void)timeout_ns;
    if (b->n == HELD)
        return -EAGAIN;
    b->held[b->n].lid = to->lid;
    memcpy(b->held[b->n++].mad, mad, MAD_SIZE);
    loop_post(b->l, &b->task);
    return 0;
}

static void on_swept(void *arg)
{
    ((struct bench *)arg)->swept = true;
}

// With LIDs, and all links ACTIVE.
static const struct fabric *live(const char *name, struct err *e)
{
    const struct fabric *f = topogen_make(name, e);
    if (f == NULL)
        return NULL;
    struct builder *b = builder_from(f);
    uint16_t lid = 1;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        struct port_attrs a = f->port[i].a;
        a.state = PORT_ACTIVE;
        if (port_is_end(f, &f->port[i]))
            a.lid = lid++;
        builder_port(b, f->port[i].node, f->port[i].num, &a);
    }
    fabric_unref(f);
    return builder_seal(b, 2, NULL);
}

struct figures {
    int64_t cpu;
    struct tele_status st;
    int64_t answering, history;
};

static void look(const struct bench *b, const struct tele *t, const struct series *s, struct figures *ret)
{
    struct series_health h = {0};
    ret->cpu = cpu_now_ns();
    tele_get_status(t, &ret->st);
    ret->answering = b->answering;
    if (s != NULL)
        series_health(s, &h);
    ret->history = h.cpu_ns;
}

static void row(const char *name, double ns, double interval_ns, unsigned sweeps)
{
    printf("%-28s %8.2f ms a sweep  %7.4f core\n", name, ns / 1e6 / sweeps, ns / interval_ns / sweeps);
}

static void print(const struct figures *a, const struct figures *z, double interval, unsigned sweeps)
{
#define PART(m) ((double)(z->st.m - a->st.m))
    double all = (double)(z->cpu - a->cpu), answering = (double)(z->answering - a->answering),
           history = (double)(z->history - a->history);
    double collect = PART(since_ns) - PART(congestion_ns) - PART(health_ns) - PART(history_ns);
    printf("%u ports, %.0f MADs a sweep, %u sweeps of %.0f s\n", z->st.ports, PART(mads) / sweeps, sweeps,
           interval / 1e9);
    row("all", all, interval, sweeps);
    row("  the transport's own", answering, interval, sweeps);
    row("  without it", all - answering, interval, sweeps);
    row("  collecting", collect, interval, sweeps);
    row("  congestion", PART(congestion_ns), interval, sweeps);
    row("  health", PART(health_ns), interval, sweeps);
    row("  history, on the loop", PART(history_ns), interval, sweeps);
    row("  history, its thread", history, interval, sweeps);
    row("  engine and the rest", all - answering - PART(since_ns) - history, interval, sweeps);
    printf("peak RSS %.0f MB; late %llu, time-outs %llu, nonsense %llu, resets %llu\n",
           (double)peak_rss_bytes() / 1e6, (unsigned long long)z->st.late, (unsigned long long)z->st.timeouts,
           (unsigned long long)z->st.nonsense, (unsigned long long)z->st.resets);
}

int main(int argc, char **argv)
{
    static const struct transport_ops ops = {.send = take};
    static struct bench b;
    struct tele_opts o = {.interval_ns = 10 * MONO_S, .detail_interval_ns = 60 * MONO_S, .fabric = "bench"};
    const char *name = "ft3-64-16", *dir = NULL;
    unsigned sweeps = 12;
    struct err e = {0};
    struct series *s = NULL;
    struct figures from, to;
    for (int c; (c = getopt(argc, argv, "f:s:i:e:2d:")) != -1;) {
        if (c == 'f')
            name = optarg;
        else if (c == 's')
            sweeps = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 'i')
            o.interval_ns = (int64_t)(strtod(optarg, NULL) * 1e9);
        else if (c == 'e')
            o.errors_interval_ns = (int64_t)(strtod(optarg, NULL) * 1e9);
        else if (c == '2')
            b.two = true;
        else if (c == 'd')
            dir = optarg;
        else
            return 2;
    }
    b.l = loop_new(LOOP_VIRTUAL);
    b.t = (struct transport){.ops = &ops, .name = "at once"};
    loop_task_init(&b.task, "transport", answer_all, &b);
    const struct fabric *f = live(name, &e);
    if (f != NULL && dir != NULL) {
        struct series_opts so = {.columns = TELE_COUNTERS, .peak_columns = 3 | 1ull << TELE_XMIT_WAIT};
        struct series_report rep;
        s = series_open(b.l, dir, &so, &rep, &e);
        o.dir = dir;
        o.history_ms = rep.last_ms;
    }
    if (f == NULL || (dir != NULL && s == NULL)) {
        fprintf(stderr, "bench_tele: %s\n", e.text);
        return 1;
    }
    struct mad_engine *eng = mad_engine_new(b.l, &b.t, NULL);
    struct tele_callbacks cb = {.arg = &b, .swept = on_swept};
    int64_t began = thread_cpu_ns();
    struct tele *t = tele_new(b.l, eng, s, NULL, &o, &cb);
    int64_t loaded = thread_cpu_ns();
    tele_fabric(t, f, NULL, NULL);
    printf("begins in %.0f ms with what is kept, takes a snapshot in %.1f ms\n",
           (double)(loaded - began) / 1e6, (double)(thread_cpu_ns() - loaded) / 1e6);
    for (unsigned i = 0; i < sweeps + 7; i++) { // the first ones make what stays
        if (i == 7)
            look(&b, t, s, &from);
        b.swept = false;
        loop_run_until(b.l, &b.swept, 100 * o.interval_ns);
        if (s != NULL)
            series_flush(s); // virtual time does not wait for it
    }
    look(&b, t, s, &to);
    const struct fabric *again = builder_seal(builder_from(f), 3, NULL);
    tele_blueprint(t, f);
    tele_fabric(t, f, NULL, NULL);
    began = thread_cpu_ns();
    tele_fabric(t, again, NULL, NULL);
    printf("takes another snapshot in %.1f ms\n", (double)(thread_cpu_ns() - began) / 1e6);
    print(&from, &to, (double)o.interval_ns, sweeps);
    mad_engine_free(eng);
    tele_free(t);
    series_close(s);
    fabric_unref(f);
    fabric_unref(again);
    loop_free(b.l);
    return 0;
}
