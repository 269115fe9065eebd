// SPDX-License-Identifier: Apache-2.0
// The health rules on labelled traces (tests/trace), for bench/telemetry.py and the tests: how many of the
// faults of each kind and severity are named by the right rule, what is named that is no fault, what would be
// cut off wrongly, and what it costs. Prints one JSON object.
//
// bench_detect [-f FABRIC] [-s SEED] [-h HOURS] [-c CASES] [-m MISSING] [-v]
//
// FABRIC is a topology generator's name, HOURS those of the trace (port-hours are that times its ports),
// CASES those of each kind and severity (1.5, 2, 4); -v: on stderr which were missed. A fault is found when a
// rule that is expected of it is raised for its link from its begin until 10 minutes after its end. "cost_ns"
// is the time of the detector alone a port and sweep.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "tests/trace/judge.h"

// Wilson's 95 % interval.
static double bound(unsigned k, unsigned n, int sign)
{
    double p = (double)k / n, z = 1.96, a = z * z / n;
    return (p + a / 2 + sign * z * sqrt(p * (1 - p) / n + a / (4 * n))) / (1 + a);
}

static int int64_cmp(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void print_cell(const struct judge *j, enum trace_kind k, double severity, bool *comma)
{
    unsigned n = 0, found = 0;
    int64_t *after = xcalloc(j->num_cases + 1, sizeof(*after));
    for (uint32_t i = 0; i < j->num_cases; i++) {
        if (j->cases[i].kind != k || j->cases[i].severity != severity)
            continue;
        n++;
        if (j->found[i])
            after[found++] = j->after[i];
    }
    qsort(after, found, sizeof(*after), int64_cmp);
    if (n > 0)
        printf("%s\n  {\"kind\": \"%s\", \"severity\": %g, \"cases\": %u, \"found\": %u, \"recall\": %.4f, "
               "\"low\": %.4f, "
               "\"high\": %.4f, \"median_s\": %.0f}",
               *comma ? "," : "", trace_kind_names[k], severity, n, found, (double)found / n,
               bound(found, n, -1), bound(found, n, 1), found ? mono_seconds(after[found / 2]) : 0.0);
    *comma |= n > 0;
    free(after);
}

int main(int argc, char **argv)
{
    const char *name = "rail-1024";
    bool verbose = false;
    struct trace_opts o = {.seed = 1,
                           .missing = 0.02,
                           .severity = {1.5, 2, 4},
                           .cases = 200,
                           .duration_ns = 250 * 3600 * MONO_S,
                           .interval_ns = 10 * MONO_S};
    for (int c; (c = getopt(argc, argv, "f:s:h:c:m:v")) != -1;) {
        if (c == 'f')
            name = optarg;
        else if (c == 's')
            o.seed = strtoull(optarg, NULL, 0);
        else if (c == 'h')
            o.duration_ns = (int64_t)(atof(optarg) * 3600e9);
        else if (c == 'c')
            o.cases = (unsigned)atoi(optarg);
        else if (c == 'm')
            o.missing = atof(optarg);
        else if (c == 'v')
            verbose = true;
        else
            return 2;
    }
    struct err e = {0};
    const struct fabric *f = topogen_make(name, &e);
    if (f == NULL) {
        fprintf(stderr, "bench_detect: %s\n", e.text);
        return 2;
    }
    struct trace *t = trace_new(f, &o);
    if (t == NULL) {
        fprintf(stderr, "bench_detect: %u cases of each kind do not fit into %g hours of %s\n", o.cases,
                mono_seconds(o.duration_ns) / 3600, name);
        return 2;
    }
    const struct tele_table *table = trace_table(t);
    struct judge j;
    judge_run(&j, t);
    double hours = mono_seconds(o.duration_ns) / 3600 * table->num;
    printf("{\"port_hours\": %.0f, \"ports\": %u, \"sweeps\": %llu, \"cost_ns\": %.1f, \"isolated\": %u, "
           "\"isolated_good\": %u, "
           "\"beside\": %u,\n"
           " \"first_false\": \"%s\", \"first_isolated\": \"%s\",\n \"false\": [",
           hours, table->num, (unsigned long long)j.sweeps,
           (double)j.cost_ns / ((double)j.sweeps * table->num), j.isolated, j.isolated_good, j.beside,
           j.first, j.first_isolated);
    for (unsigned i = 0; i < j.num_wrong; i++)
        printf("%s{\"rule\": \"%s\", \"alarms\": %u, \"major\": %u}", i ? ", " : "", j.wrong[i].rule,
               j.wrong[i].n, j.wrong[i].major);
    printf("],\n \"cells\": [");
    bool comma = false;
    for (unsigned k = 0; k < TRACE_KINDS; k++)
        for (unsigned v = 0; v < 4; v++) {
            double s = k == TRACE_SPINE || k == TRACE_REBOOT ? (v == 0 ? 1 : 0) : o.severity[v];
            if (s > 0)
                print_cell(&j, k, s, &comma);
        }
    printf("]}\n");
    for (uint32_t i = 0; verbose && i < j.num_cases; i++)
        if (!j.found[i])
            fprintf(stderr, "missed: %s x %g at %s[%u], %.0f to %.0f s\n", trace_kind_names[j.cases[i].kind],
                    j.cases[i].severity,
                    fabric_desc(f, fabric_by_guid(f, table->port[j.cases[i].slot].node_guid)),
                    table->port[j.cases[i].slot].num, mono_seconds(j.cases[i].from),
                    mono_seconds(j.cases[i].until));
    judge_done(&j);
    trace_free(t);
    fabric_unref(f);
    return 0;
}
