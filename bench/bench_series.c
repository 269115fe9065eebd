// SPDX-License-Identifier: Apache-2.0
// The store of telemetry: CPU and bytes of writing, time of reading. Prints one JSON object.
//
//   bench_series -d FOLDER [-p PORTS] [-c COLUMNS] [-m real|busy] [-n SWEEPS] [-s SECONDS] [-r ROUNDS] [-R
//   RAILS]
//
// Counters: 20 of COLUMNS alive (the standard's data, packet, error and wait counters). real: 10 % of the
// ports down, 55 % idle (a trickle), 28 % busy at 400G in the phases of their jobs, 6 % light, 1 % with
// errors. busy: 95 % busy, 5 % busy with errors. Reads are not latched: unicast packets are not exactly all
// less multicast. -s: seconds between sweeps. Sweeps are given one after the other and waited for, so that
// CPU is that of the store alone. -S: a rail's ports are each
// eighth one. -o one|points|rail|rises|scan: only that reading. -n 0 reads what an
// earlier run has left.
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "db/series.h"
#include "lib/err.h"
#include "lib/loop.h"
#include "lib/rng.h"
#include "lib/xalloc.h"

#define T0 1790035200000LL // midnight UTC
enum { ALIVE = 21, JOBS = 64, WAIT = 20, DEAD = 19 };

enum kind { DOWN, IDLE, LIGHT, BUSY, ERRORS };
struct port {
    enum kind kind;
    uint32_t job;
    double rate; // bytes/s at full use
    uint64_t v[ALIVE];
};
struct job {
    double period, duty, phase, noise;
};
struct gen {
    struct port *port;
    uint32_t num;
    unsigned columns;
    struct job job[JOBS];
    struct rng rng;
    double step, now;
};

static double gauss(struct rng *r)
{
    double s = 0;
    for (int i = 0; i < 4; i++)
        s += rng_double(r);
    return (s - 2) * sqrt(3);
}

static uint32_t poisson(struct rng *r, double mean)
{
    if (mean > 30) {
        double x = mean + sqrt(mean) * gauss(r) + 0.5;
        return x < 0 ? 0 : (uint32_t)x;
    }
    double limit = exp(-mean), p = 1;
    uint32_t k = 0;
    do {
        k++;
        p *= rng_double(r);
    } while (p > limit);
    return k - 1;
}

static enum kind kind_of(struct rng *r, bool busy)
{
    uint32_t d = rng_below(r, 100);
    if (busy)
        return d < 95 ? BUSY : ERRORS;
    return d < 10 ? DOWN : d < 65 ? IDLE : d < 93 ? BUSY : d < 99 ? LIGHT : ERRORS;
}

static void gen_init(struct gen *g, uint32_t num, unsigned columns, bool busy, double step)
{
    *g = (struct gen){.port = xcalloc(num, sizeof(*g->port)), .num = num, .columns = columns, .step = step};
    rng_init(&g->rng, 7);
    for (int i = 0; i < JOBS; i++)
        g->job[i] = (struct job){15 + rng_double(&g->rng) * 100, 0.3 + 0.6 * rng_double(&g->rng),
                                 rng_double(&g->rng) * 100, 0.02 + 0.05 * rng_double(&g->rng)};
    for (uint32_t i = 0; i < num; i++) {
        struct port *p = &g->port[i];
        p->kind = kind_of(&g->rng, busy);
        p->job = (i / 500 + rng_below(&g->rng, 4)) % JOBS;
        p->rate = 50e9 * (0.3 + 0.65 * rng_double(&g->rng));
        for (int c = 0; c < 8; c++)
            p->v[c] = rng_u64(&g->rng) >> (p->kind == DOWN ? 40 : p->kind == IDLE ? 34 : c < 2 ? 14 : 24);
        p->v[WAIT] = rng_u64(&g->rng) >> 20;
    }
}

static void traffic(struct gen *g, struct port *p, int dir, double bytes, double size, double multicast)
{
    double n = bytes / size * (1 + 0.01 * gauss(&g->rng));
    uint64_t packets = n < 0 ? 0 : (uint64_t)(n + 0.5), m = poisson(&g->rng, multicast);
    p->v[dir] += bytes < 0 ? 0 : (uint64_t)(bytes / 4);
    p->v[2 + dir] += packets + m;
    p->v[4 + dir] += packets;
    p->v[6 + dir] += m;
}

static void busy_step(struct gen *g, struct port *p)
{
    const struct job *j = &g->job[p->job];
    double on = 0;
    for (int k = 0; k < 20; k++)
        on += fmod(g->now + k * g->step / 20 + j->phase, j->period) < j->duty * j->period;
    on = 0.02 + 0.98 * on / 20;
    for (int d = 0; d < 2; d++)
        traffic(g, p, d, p->rate * on * g->step * (1 + j->noise * gauss(&g->rng)), 4096 + 48, 0.1 * g->step);
    p->v[WAIT] += (uint64_t)(p->rate * g->step / 8 * on * 0.15 * fabs(1 + 0.5 * gauss(&g->rng)));
    if (p->kind == ERRORS) {
        p->v[8] += poisson(&g->rng, 2);
        p->v[11] += poisson(&g->rng, 0.5);
        p->v[14] += poisson(&g->rng, 0.1);
    }
}

static void gen_step(struct gen *g)
{
    for (uint32_t i = 0; i < g->num; i++) {
        struct port *p = &g->port[i];
        for (int d = 0; d < 2 && p->kind == IDLE; d++)
            traffic(g, p, d, poisson(&g->rng, 0.3 * g->step) * 256.0, 256, 0.05 * g->step);
        for (int d = 0; d < 2 && p->kind == LIGHT; d++)
            traffic(g, p, d, 1e4 * g->step * (1 + 0.3 * gauss(&g->rng)) * 1100, 1100, 0.1 * g->step);
        if (p->kind >= BUSY)
            busy_step(g, p);
    }
    g->now += g->step;
}

// As an agent gives it: a counter later in the packet has counted for some microseconds more.
static void gen_read(struct gen *g, uint64_t *value, uint64_t *have)
{
    for (uint32_t i = 0; i < g->num; i++, value += g->columns) {
        const struct port *p = &g->port[i];
        memcpy(value, p->v, ALIVE * sizeof(*value));
        for (int d = 0; d < 2 && p->kind >= BUSY; d++)
            value[4 + d] += (uint64_t)(p->rate / 4144 * 3e-6 * rng_double(&g->rng));
        have[i] = (((uint64_t)1 << ALIVE) - 1) & ~((uint64_t)1 << DEAD);
    }
}

// --- writing ---

static uint64_t rss_bytes(void)
{
    long pages = 0, all;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f) {
        if (fscanf(f, "%ld %ld", &all, &pages) != 2)
            pages = 0;
        fclose(f);
    }
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void die(const struct err *e)
{
    fprintf(stderr, "bench_series: %s: %s\n", e->where, e->text);
    exit(1);
}

static double file_bytes(const char *dir, const char *name)
{
    char path[1000];
    struct stat st;
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

// The next day's sweep ends the files of the first.
static void write_all(const char *dir, struct gen *g, unsigned sweeps)
{
    struct err e = {0};
    struct series_opts o = {
        .columns = g->columns, .peak_columns = 3 | 1 << WAIT, .keep_ms = {1LL << 40, 1LL << 40, 1LL << 40}};
    struct series_health h;
    struct loop *l = loop_new(LOOP_REAL);
    struct series *s = series_open(l, dir, &o, NULL, &e);
    uint64_t *value = xcalloc((size_t)g->num * g->columns, sizeof(*value)),
             *have = xcalloc(g->num, sizeof(*have));
    if (!s)
        die(&e);
    for (uint32_t i = 0; i < g->num; i++)
        series_id(s, 0x2c90300000000ULL + i / 64, (uint8_t)(i % 64 + 1));
    uint64_t before = rss_bytes(), most = 0;
    int64_t caller = 0, sweep_cpu = 0, wall = 0;
    for (unsigned k = 0; k < sweeps; k++) {
        gen_step(g);
        gen_read(g, value, have);
        int64_t t = mono_now().ns, c = thread_cpu_ns();
        series_sweep(s, T0 + (int64_t)((k + 1) * g->step * 1000), value, have, g->num);
        caller += thread_cpu_ns() - c;
        if (series_flush(s))
            exit(2);
        wall += mono_now().ns - t;
        uint64_t rss = rss_bytes();
        most = rss > most ? rss : most;
    }
    series_health(s, &h);
    sweep_cpu = h.cpu_ns;
    int64_t t = mono_now().ns;
    series_sweep(s, T0 + 86400000LL, value, have, 1); // ends the day
    series_flush(s);
    double close_s = (double)(mono_now().ns - t) / 1e9;
    series_close(s);
    loop_free(l);
    double n = (double)g->num * sweeps;
    printf("\"ports\": %u, \"sweeps\": %u, \"writer_cpu_per_sweep\": %.6f, \"caller_cpu_per_sweep\": %.6f, "
           "\"wall_per_sweep\": %.6f, \"worst_commit\": %.6f, \"day_end\": %.3f, \"rss\": %llu, ",
           g->num, sweeps, (double)sweep_cpu / 1e9 / sweeps, (double)caller / 1e9 / sweeps,
           (double)wall / 1e9 / sweeps, (double)h.max_commit_ns / 1e9, close_s,
           (unsigned long long)(most - before));
    printf("\"raw_bytes\": %.3f, \"minute_bytes\": %.0f, ", file_bytes(dir, "raw-20260922.db") / n,
           file_bytes(dir, "min-20260922.db"));
    free(value);
    free(have);
}

// --- reading ---

static bool count_point(void *arg, const struct series_point *p)
{
    ++*(uint64_t *)arg;
    return true;
}

static double read_once(const char *dir, const struct series_query *q, uint64_t *ret_points)
{
    struct err e = {0};
    int64_t t = thread_cpu_ns();
    struct series_reader *r = series_reader_new(dir, &e);
    if (!r)
        die(&e);
    *ret_points = 0;
    if (series_read(r, q, count_point, ret_points, NULL, &e) < 0)
        die(&e);
    series_reader_free(r);
    return (double)(thread_cpu_ns() - t) / 1e9;
}

static void read_best(const char *dir, const char *name, const struct series_query *q, int rounds)
{
    double best = 1e9;
    uint64_t points = 0;
    for (int i = 0; i < rounds; i++) {
        double t = read_once(dir, q, &points);
        best = t < best ? t : best;
    }
    printf("\"%s\": %.6f, \"%s_points\": %llu, ", name, best, name, (unsigned long long)points);
}

static void rail_average(const char *dir, const struct series_query *q, int rounds)
{
    enum { STEPS = 1440 };
    uint16_t *group = xcalloc(q->num, sizeof(*group));
    double best = 1e9, sum = 0;
    long n = 0;
    for (int i = 0; i < rounds; i++) {
        struct err e = {0};
        struct series_rate *ret = xcalloc(STEPS, sizeof(*ret));
        int64_t t = thread_cpu_ns();
        struct series_reader *r = series_reader_new(dir, &e);
        if (!r || (n = series_rates(r, q, group, 1, ret, STEPS, NULL, &e)) < 0)
            die(&e);
        series_reader_free(r);
        double took = (double)(thread_cpu_ns() - t) / 1e9;
        best = took < best ? took : best;
        sum = ret[700].num ? ret[700].sum / ret[700].num : 0;
        free(ret);
    }
    printf("\"rail_average\": %.6f, \"rail_average_rates\": %ld, \"rail_average_value\": %.0f, ", best, n,
           sum);
    free(group);
}

static bool count_rise(void *arg, const struct series_rise *x)
{
    ++*(long *)arg;
    return true;
}

static void all_rises(const char *dir, int rounds)
{
    double best = 1e9;
    long n = 0;
    for (int i = 0; i < rounds; i++) {
        struct err e = {0};
        struct series_query q = {.columns = 1, .from_ms = T0, .to_ms = T0 + 86399999, .step_ms = 60000};
        int64_t t = thread_cpu_ns();
        struct series_reader *r = series_reader_new(dir, &e);
        n = 0;
        if (!r || series_rises(r, &q, count_rise, &n, NULL, &e) < 0)
            die(&e);
        series_reader_free(r);
        double took = (double)(thread_cpu_ns() - t) / 1e9;
        best = took < best ? took : best;
    }
    printf("\"all_rises\": %.6f, \"all_rises_series\": %ld, ", best, n);
}

static void scan_all(const char *dir)
{
    struct err e = {0};
    char cursor[64] = "";
    uint64_t points = 0;
    int64_t t = thread_cpu_ns();
    struct series_reader *r = series_reader_new(dir, &e);
    for (int i = 0; r && i < 200; i++) {
        long n = series_scan(r, cursor, 20000, count_point, &points, cursor, sizeof(cursor), &e);
        if (n < 0)
            die(&e);
        if (!n)
            break;
    }
    series_reader_free(r);
    double took = (double)(thread_cpu_ns() - t) / 1e9;
    printf("\"scan_values_per_s\": %.0f, ", (double)points * (ALIVE - 1) / took);
}

int main(int argc, char **argv)
{
    const char *dir = NULL;
    uint32_t ports = 100000;
    unsigned columns = 37, sweeps = 180;
    bool busy = false;
    double step = 10;
    int rounds = 3;
    uint32_t rails = 8;
    const char *only = NULL;
    bool scattered = false;
    for (int c; (c = getopt(argc, argv, "d:p:c:m:n:s:r:R:o:S")) >= 0;) {
        switch (c) {
        case 'd':
            dir = optarg;
            break;
        case 'p':
            ports = (uint32_t)atoi(optarg);
            break;
        case 'c':
            columns = (unsigned)atoi(optarg);
            break;
        case 'm':
            busy = strcmp(optarg, "busy") == 0;
            break;
        case 'n':
            sweeps = (unsigned)atoi(optarg);
            break;
        case 's':
            step = atof(optarg);
            break;
        case 'S':
            scattered = true;
            break;
        case 'o':
            only = optarg;
            break;
        case 'R':
            rails = (uint32_t)atoi(optarg);
            break;
        case 'r':
            rounds = atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    if (!dir || columns < ALIVE || !ports) {
        fprintf(stderr, "usage: bench_series -d FOLDER [-p PORTS] [-c COLUMNS] [-m real|busy] [-n SWEEPS] "
                        "[-s SECONDS] [-r ROUNDS] [-R RAILS]\n");
        return 2;
    }
    printf("{");
    if (sweeps) {
        struct gen g;
        gen_init(&g, ports, columns, busy, step);
        write_all(dir, &g, sweeps);
        free(g.port);
    }
    uint32_t one = ports / 2;
    struct series_query q = {.series = &one, .num = 1, .columns = 1, .from_ms = T0, .to_ms = T0 + 7200000};
    if (!only || strcmp(only, "one") == 0)
        read_best(dir, "one_2h", &q, rounds);
    uint32_t *rail = xcalloc(ports / rails + 1, sizeof(*rail));
    for (uint32_t i = 0; i < ports / rails; i++)
        rail[i] = scattered ? i * rails : i;
    q = (struct series_query){.series = rail,
                              .num = ports / rails,
                              .columns = 1,
                              .from_ms = T0,
                              .to_ms = T0 + 86399999,
                              .step_ms = 60000};
    if (!only || strcmp(only, "points") == 0)
        read_best(dir, "rail_24h", &q, rounds);
    if (!only || strcmp(only, "rail") == 0)
        rail_average(dir, &q, rounds);
    if (!only || strcmp(only, "rises") == 0)
        all_rises(dir, rounds);
    if (!only || strcmp(only, "scan") == 0)
        scan_all(dir);
    printf("\"done\": true}\n");
    free(rail);
    return 0;
}
