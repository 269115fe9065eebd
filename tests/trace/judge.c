// SPDX-License-Identifier: Apache-2.0
#include "tests/trace/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mono.h"
#include "lib/xalloc.h"
#include "telemetry/health.h"

#define GRACE (600 * MONO_S)
#define LINGERS (3 * 3600 * MONO_S) // what a fault leaves behind may be named so long after its end

static unsigned rule_index(const char *rule)
{
    for (unsigned i = 0; i < alarm_num_rules; i++)
        if (strcmp(alarm_rules[i].id, rule) == 0)
            return i;
    fprintf(stderr, "trace: no rule \"%s\" in the catalogue\n", rule);
    exit(2);
}

static void count_wrong(struct judge *j, const char *rule, uint32_t slot, enum alarm_severity s,
                        const char *reason)
{
    unsigned i = 0;
    while (i < j->num_wrong && strcmp(j->wrong[i].rule, rule) != 0)
        i++;
    if (i == JUDGE_RULES)
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
static void look(struct judge *j, const struct health *h)
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
        j->wrongly_bad += c == NULL || !trace_bad_cable[c->kind];
    }
}

void judge_run(struct judge *j, struct trace *t)
{
    const struct tele_table *table = trace_table(t);
    *j = (struct judge){.trace = t};
    j->cases = trace_cases(t, &j->num_cases);
    j->found = xcalloc(j->num_cases + 1, sizeof(bool));
    j->after = xcalloc(j->num_cases + 1, sizeof(int64_t));
    j->seen = xcalloc((size_t)table->num * alarm_num_rules, sizeof(bool));
    struct health_sink sink = {j, on_raise, on_clear};
    struct health *h = health_new(NULL, &sink);
    while (trace_step(t, on_link, h)) {
        int64_t begin = thread_cpu_ns();
        health_feed(h, table, trace_now(t));
        j->cost_ns += thread_cpu_ns() - begin;
        if (++j->sweeps % 360 == 0)
            look(j, h);
    }
    health_free(h);
}

void judge_done(struct judge *j)
{
    free(j->found);
    free(j->after);
    free(j->seen);
}
