// SPDX-License-Identifier: Apache-2.0
// bench_congest [--runs N] [--seed N] [--scenario N] [--missing N] [--live] [--mixed] [--verbose] [--json],
// or --speed FABRIC, or --again FILE (lines of scenario, missing, live, seed): roots of congestion found on
// random fabrics, against what the simulation of credits saw.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/whole/congest_runs.h"

struct tally {
    unsigned runs, tried, right, named, kind, degraded, waiting;
    int64_t feed_ns;
};

static bool one(enum runs_scenario s, enum runs_missing m, bool live, uint64_t seed, struct tally *t)
{
    struct runs_result r;
    runs_one(s, m, live, seed, &r);
    if (!r.came_off)
        return false;
    t->runs++;
    t->right += r.right;
    t->named += r.named;
    t->kind += r.right && r.got == r.want;
    t->degraded += r.degraded;
    t->waiting += r.held > 0;
    t->feed_ns = r.feed_ns > t->feed_ns ? r.feed_ns : t->feed_ns;
    if (runs_verbose && (!r.right || r.got != r.want))
        printf("  %s, %s%s, seed %llu: %s; %u ports, %u held; want %s got %s\n", runs_scenario_name(s),
               runs_missing_name(m), live ? ", live" : "", (unsigned long long)seed, r.text, r.ports, r.held,
               congest_kind_name(r.want), congest_kind_name(r.got));
    return true;
}

static void cell(enum runs_scenario s, enum runs_missing m, bool live, unsigned runs, uint64_t seed,
                 struct tally *t)
{
    for (uint64_t i = 0; t->runs < runs && t->tried < runs * 20; i++, t->tried++)
        one(s, m, live, seed + i, t);
}

// All ways in which counters can be missing, in turn; each fifth fabric is a manager's, with switches that
// adapt. (There, one cable of several is hardly ever full alone.)
static void mix(enum runs_scenario s, unsigned runs, uint64_t seed, struct tally *t)
{
    bool adapts = s != RUNS_IMBALANCE && s != RUNS_SLOW_LINK;
    for (uint64_t i = 0; t->runs < runs && t->tried < runs * 20; i++, t->tried++)
        one(s, (enum runs_missing)(RUNS_NEVER + t->runs % (RUNS_MISSING - RUNS_NEVER)),
            adapts && t->runs % 5 == 4, seed + i, t);
}

static int speed(const char *name, unsigned held, bool json)
{
    struct runs_speed r;
    runs_speed(name, held, &r);
    double most = 0;
    for (unsigned i = 0; i < 6; i++)
        most = (double)r.ns[i] / 1e6 > most ? (double)r.ns[i] / 1e6 : most;
    if (json)
        printf("[{\"ports\": %u, \"held\": %u, \"trees\": %u, \"first_ms\": %.3f, \"then_ms\": %.3f, "
               "\"loop_ms\": %.3f}]\n",
               r.ports, r.held, r.trees, most, (double)r.ns[5] / 1e6, (double)r.loop_ns / 1e6);
    else
        printf(
            "%s: %u ports, %u held, %u trees: %.1f ms at first, then %.1f ms; %.1f ms on the loop at once\n",
            name, r.ports, r.held, r.trees, most, (double)r.ns[5] / 1e6, (double)r.loop_ns / 1e6);
    return r.ports ? 0 : 1;
}

// Runs as a file lists them: scenario, missing, live, seed.
static int again(const char *name)
{
    FILE *f = fopen(name, "r");
    struct tally t[RUNS_SCENARIOS] = {0};
    unsigned s, m, live;
    unsigned long long seed;
    if (!f)
        return 1;
    while (fscanf(f, "%u %u %u %llu", &s, &m, &live, &seed) == 4)
        if (s < RUNS_SCENARIOS && m < RUNS_MISSING)
            one((enum runs_scenario)s, (enum runs_missing)m, live, seed, &t[s]);
    fclose(f);
    for (unsigned i = 0; i < RUNS_SCENARIOS; i++)
        if (t[i].runs)
            printf("%-22s runs %u right %u kind %u\n", runs_scenario_name((enum runs_scenario)i), t[i].runs,
                   t[i].right, t[i].kind);
    return 0;
}

int main(int argc, char **argv)
{
    unsigned runs = 100, only_s = RUNS_SCENARIOS, only_m = RUNS_MISSING;
    uint64_t seed = 1, from = 0;
    bool json = false, live = false, mixed = false;
    const char *fast = NULL, *list = NULL;
    for (int i = 1; i < argc; i++) {
        const char *v = i + 1 < argc ? argv[i + 1] : "0";
        if (strcmp(argv[i], "--runs") == 0)
            runs = (unsigned)atoi(v);
        else if (strcmp(argv[i], "--seed") == 0)
            seed = (uint64_t)atoll(v);
        else if (strcmp(argv[i], "--scenario") == 0)
            only_s = (unsigned)atoi(v);
        else if (strcmp(argv[i], "--missing") == 0)
            only_m = (unsigned)atoi(v);
        else if (strcmp(argv[i], "--from") == 0)
            from = (uint64_t)atoll(v);
        else if (strcmp(argv[i], "--verbose") == 0)
            runs_verbose = true;
        else if (strcmp(argv[i], "--json") == 0)
            json = true;
        else if (strcmp(argv[i], "--mixed") == 0)
            mixed = true;
        else if (strcmp(argv[i], "--live") == 0)
            live = true;
        else if (strcmp(argv[i], "--speed") == 0)
            fast = v;
        else if (strcmp(argv[i], "--again") == 0)
            list = v;
    }
    if (list)
        return again(list);
    if (fast)
        return speed(fast, 1000, json);
    const char *comma = "";
    if (!json)
        printf("right: the root of the first tree is the port that loses most, or one that by itself loses "
               "%.1f of "
               "that\n",
               RUNS_ALSO);
    printf("%s", json ? "[" : "");
    for (unsigned s = 0; s < RUNS_SCENARIOS; s++)
        for (unsigned m = 0; m < (mixed ? 1 : RUNS_MISSING); m++) {
            if ((only_s < RUNS_SCENARIOS && s != only_s) || (only_m < RUNS_MISSING && m != only_m))
                continue;
            struct tally t = {0};
            const char *how = mixed ? "mixed" : runs_missing_name((enum runs_missing)m);
            if (mixed)
                mix((enum runs_scenario)s, runs, seed * 1000003 + from, &t);
            else
                cell((enum runs_scenario)s, (enum runs_missing)m, live, runs, seed * 1000003 + from, &t);
            if (json)
                printf("%s\n {\"scenario\": \"%s\", \"missing\": \"%s\", \"runs\": %u, \"right\": %u, "
                       "\"kind\": %u, "
                       "\"feed_ms\": %.3f}",
                       comma, runs_scenario_name((enum runs_scenario)s), how, t.runs, t.right, t.kind,
                       (double)t.feed_ns / 1e6);
            else
                printf("%-22s %-22s runs %3u of %3u  right %5.1f %%  kind %5.1f %%  named %u  degraded %u  "
                       "waits %u  "
                       "feed %.2f ms\n",
                       runs_scenario_name((enum runs_scenario)s), how, t.runs, t.tried,
                       100.0 * t.right / (t.runs ? t.runs : 1), 100.0 * t.kind / (t.runs ? t.runs : 1),
                       t.named, t.degraded, t.waiting, (double)t.feed_ns / 1e6);
            fflush(stdout);
            comma = ",";
        }
    printf("%s", json ? "\n]\n" : "");
    return 0;
}
