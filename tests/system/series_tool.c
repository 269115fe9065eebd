// SPDX-License-Identifier: Apache-2.0
// A store of counters for tests, without waiting for it to become an hour old:
//
//   series_tool fill FABRIC DIR START_MS STEP_MS SWEEPS   sweeps of a generated fabric's ports, some unread
//   series_tool dump DIR                                  all that is kept, a line a sample:
//                                                         guid port ms metric value (as /metrics shows it)
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/series.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/loop.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "telemetry/counters.h"

static int failed(const struct err *e)
{
    char text[700];
    fprintf(stderr, "series_tool: %s\n", err_str(e, text, sizeof(text)));
    return 1;
}

// A port that is busy, one that is idle; some counters of the detail groups not at all.
static void advance(struct rng *g, uint32_t port, uint64_t *value)
{
    uint64_t words = port % 3 == 0 ? 1ull << 31 : 2000;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (tele_rows[c].kind == TELE_TRAFFIC)
            value[c] += rng_below(g, 1000) + words / (c < 2 ? 1 : 500);
        else if (rng_below(g, 50) == 0)
            value[c] += rng_below(g, 5);
}

static uint64_t have_of(struct rng *g, unsigned sweep)
{
    uint64_t details = tele_group_counters(TELE_SPEED) | tele_group_counters(TELE_RCV_DETAIL) |
                       tele_group_counters(TELE_XMIT_DETAIL);
    uint64_t all = (1ull << TELE_COUNTERS) - 1;
    if (rng_below(g, 40) == 0)
        return 0;
    return sweep % 6 == 0 ? all : all & ~details;
}

static int fill(char **argv)
{
    struct err e = {0};
    struct series_report rep;
    const struct fabric *f = topogen_make(argv[0], &e);
    if (f == NULL)
        return failed(&e);
    struct loop *l = loop_new(LOOP_REAL);
    struct series *s = series_open(
        l, argv[1], &(struct series_opts){.columns = TELE_COUNTERS, .keep_ms = {30 * 86400000ll}}, &rep, &e);
    if (s == NULL)
        return failed(&e);
    int64_t start = strtoll(argv[2], NULL, 10), step = strtoll(argv[3], NULL, 10);
    unsigned sweeps = (unsigned)strtoul(argv[4], NULL, 10);
    uint64_t *value = xcalloc((size_t)f->num_ports * TELE_COUNTERS, sizeof(*value));
    uint64_t *have = xcalloc(f->num_ports, sizeof(*have));
    struct rng g;

    rng_init(&g, 1);
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (f->port[i].num != 0 && port_valid(f->port[i].peer))
            series_id(s, f->node[f->port[i].node.i].guid, f->port[i].num);
    for (unsigned k = 0; k < sweeps; k++) {
        uint32_t n = series_num(s);
        for (uint32_t i = 0; i < n; i++) {
            advance(&g, i, &value[(size_t)i * TELE_COUNTERS]);
            have[i] = have_of(&g, k);
        }
        series_sweep(s, start + k * step, value, have, n);
        if (series_flush(s) != 0) {
            err_set(&e, -EIO, argv[1], "cannot be written");
            return failed(&e);
        }
    }
    series_close(s);
    loop_free(l);
    free(value);
    free(have);
    fabric_unref(f);
    return 0;
}

static bool print_point(void *arg, const struct series_point *p)
{
    uint64_t guid;
    uint8_t port;
    if (series_reader_key(arg, p->series, &guid, &port) != 0)
        return true;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (p->have >> c & 1)
            printf("0x%016" PRIx64 " %u %" PRId64 " %s %" PRIu64 "\n", guid, port, p->at_ms,
                   tele_rows[c].metric, tele_shown(c, p->value[c]));
    return true;
}

static int dump(char **argv)
{
    struct err e = {0};
    uint64_t damaged = 0;
    struct series_reader *r = series_reader_new(argv[0], &e);
    if (r == NULL)
        return failed(&e);
    struct series_query q = {.columns = (1ull << TELE_COUNTERS) - 1, .from_ms = 0, .to_ms = INT64_MAX / 2};
    long n = series_read(r, &q, print_point, r, &damaged, &e);
    series_reader_free(r);
    if (n < 0)
        return failed(&e);
    if (damaged != 0)
        fprintf(stderr, "series_tool: %" PRIu64 " damaged parts\n", damaged);
    return damaged != 0;
}

int main(int argc, char **argv)
{
    if (argc == 7 && strcmp(argv[1], "fill") == 0)
        return fill(argv + 2);
    if (argc == 3 && strcmp(argv[1], "dump") == 0)
        return dump(argv + 2);
    fprintf(stderr, "series_tool fill FABRIC DIR START_MS STEP_MS SWEEPS | dump DIR\n");
    return 2;
}
