// SPDX-License-Identifier: Apache-2.0
// The health rules on labelled traces (tests/trace), for bench/telemetry.py and the tests: how many of the
// faults of each kind and severity are named by the right rule, what is named that is no fault, what would be
// cut off wrongly, and what it costs. Prints one JSON object.
//
// bench_detect [-f FABRIC] [-s SEED] [-h HOURS] [-c CASES] [-m MISSING]
//
// FABRIC is a topology generator's name, HOURS those of the trace (port-hours are that times its ports),
// CASES those of each kind and severity (1.5, 2, 4). A fault is found when a rule that is expected of it is
// raised for its link from its begin until 10 minutes after its end. "cost_ns" is the time of the detector
// alone a port and sweep.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "telemetry/health.h"
#include "tests/trace/trace.h"

#define GRACE (600 * MONO_S)
#define LINGERS (3 * 3600 * MONO_S) // what a fault leaves behind may be named so long after its end
#define RULES 40

struct false_alarm {
    char rule[8];
    unsigned n, major;
};

struct judge {
    struct trace *trace;
    const struct trace_case *cases;
    uint32_t num_cases;
    bool *found;
    int64_t *after; // [case]: from its begin to the right word
    struct false_alarm wrong[RULES];
    unsigned num_wrong, beside; // beside: another rule than expected, on a link with a fault
    char first[400];
    bool *seen; // [slot * alarm rules + rule]: is raised now, so that it counts once
};

static unsigned rule_index(const char *rule)
{
    for (unsigned i = 0; i < alarm_num_rules; i++)
        if (strcmp(alarm_rules[i].id, rule) == 0)
            return i;
    fprintf(stderr, "bench_detect: no rule \"%s\" in the catalogue\n", rule);
    exit(2);
}

static void count_wrong(struct judge *j, const char *rule, uint32_t slot, enum alarm_severity s,
                        const char *reason)
{
    unsigned i = 0;
    while (i < j->num_wrong && strcmp(j->wrong[i].rule, rule) != 0)
        i++;
    if (i == RULES)
        return;
    if (i == j->num_wrong)
        snprintf(j->wrong[j->num_wrong++].rule, sizeof(j->wrong[0].rule), "%s", rule);
    j->wrong[i].n++;
    j->wrong[i].major += s >= ALARM_MAJOR;
    if (j->first[0] == 0 && s >= ALARM_MAJOR)
        snprintf(j->first, sizeof(j->first), "%s at slot %u, %.0f s: %.200s", rule, slot,
                 mono_seconds(trace_now(j->trace)), reason);
}

static void on_raise(void *arg, const char *rule, uint32_t slot, enum alarm_severity s, const char *reason,
                     const char *evidence)
{
    struct judge *j = arg;
    bool *seen = &j->seen[(size_t)slot * alarm_num_rules + rule_index(rule)];
    const struct trace_case *c = trace_case_at(j->trace, slot, LINGERS);
    if (c != NULL && strstr(trace_expected[c->kind], rule) != NULL) {
        size_t i = (size_t)(c - j->cases);
        int64_t now = trace_now(j->trace);
        if (!j->found[i] && now <= c->until + GRACE) {
            j->found[i] = true;
            j->after[i] = now - c->from;
        }
    } else if (!*seen && c != NULL) {
        j->beside++;
    } else if (!*seen && s > ALARM_INFO) {
        count_wrong(j, rule, slot, s, reason);
    }
    *seen = true;
}

static void on_clear(void *arg, const char *rule, uint32_t slot)
{
    struct judge *j = arg;
    j->seen[(size_t)slot * alarm_num_rules + rule_index(rule)] = false;
}

static void on_link(void *arg, uint32_t slot, bool up, int64_t when)
{
    health_link(arg, slot, up, when);
}

// Links that are named bad enough to be cut off, and have nothing: states, once an hour.
static void look(const struct judge *j, const struct health *h, unsigned *wrongly_bad)
{
    const struct tele_table *t = trace_table(j->trace);
    for (uint32_t s = 0; s < t->num; s++) {
        struct health_view v;
        if (t->port[s].peer < s)
            continue;
        health_view(h, t, s, &v);
        if (v.state != HEALTH_FAILING && v.state != HEALTH_FLAPPING)
            continue;
        const struct trace_case *c = trace_case_at(j->trace, s, LINGERS);
        *wrongly_bad += c == NULL || !trace_bad_cable[c->kind];
    }
}

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
    struct trace_opts o = {.seed = 1,
                           .missing = 0.02,
                           .severity = {1.5, 2, 4},
                           .cases = 200,
                           .duration_ns = 250 * 3600 * MONO_S,
                           .interval_ns = 10 * MONO_S};
    for (int c; (c = getopt(argc, argv, "f:s:h:c:m:")) != -1;) {
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
        else
            return 2;
    }
    struct err e = {0};
    const struct fabric *f = topogen_make(name, &e);
    if (f == NULL) {
        fprintf(stderr, "bench_detect: %s\n", e.text);
        return 2;
    }
    struct judge j = {.trace = trace_new(f, &o)};
    if (j.trace == NULL) {
        fprintf(stderr, "bench_detect: %u cases of each kind do not fit into %g hours of %s\n", o.cases,
                mono_seconds(o.duration_ns) / 3600, name);
        return 2;
    }
    const struct tele_table *table = trace_table(j.trace);
    j.cases = trace_cases(j.trace, &j.num_cases);
    j.found = xcalloc(j.num_cases + 1, sizeof(bool));
    j.after = xcalloc(j.num_cases + 1, sizeof(int64_t));
    j.seen = xcalloc((size_t)table->num * alarm_num_rules, sizeof(bool));
    struct health_sink sink = {&j, on_raise, on_clear};
    struct health *h = health_new(NULL, &sink);
    int64_t cost = 0;
    uint64_t sweeps = 0;
    unsigned wrongly_bad = 0;
    while (trace_step(j.trace, on_link, h)) {
        int64_t begin = thread_cpu_ns();
        health_feed(h, table, trace_now(j.trace));
        cost += thread_cpu_ns() - begin;
        if (++sweeps % 360 == 0)
            look(&j, h, &wrongly_bad);
    }
    double hours = mono_seconds(o.duration_ns) / 3600 * table->num;
    printf("{\"port_hours\": %.0f, \"ports\": %u, \"sweeps\": %llu, \"cost_ns\": %.1f, \"wrongly_bad\": %u, "
           "\"beside\": %u,\n"
           " \"first_false\": \"%s\",\n \"false\": [",
           hours, table->num, (unsigned long long)sweeps, (double)cost / ((double)sweeps * table->num),
           wrongly_bad, j.beside, j.first);
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
    health_free(h);
    trace_free(j.trace);
    free(j.found);
    free(j.after);
    free(j.seen);
    fabric_unref(f);
    return 0;
}
