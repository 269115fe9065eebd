// SPDX-License-Identifier: Apache-2.0
#include "tests/trace/judge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mono.h"
#include "lib/xalloc.h"
#include "telemetry/health.h"
#include "telemetry/isolate.h"

#define GRACE (600 * MONO_S)
#define WALL 1800000000000000000LL
// What a fault leaves behind is in the longest window: 375 min at 200 Gb/s.
#define LINGERS (7 * 3600 * MONO_S)

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

// --- isolation ---

static uint32_t slot_of(const struct judge *j, const struct isolate_place *p)
{
    return tele_slot(trace_table(j->trace), p->guid[0], p->port[0]);
}

static void set_drained(struct judge *j, const struct isolate_place *p, bool on)
{
    uint32_t slot = slot_of(j, p);
    j->drained[slot] = j->drained[trace_table(j->trace)->port[slot].peer] = on;
}

static int on_drain(void *arg, const struct isolate_place *p, const char *reason, struct err *e)
{
    struct judge *j = arg;
    const struct trace_case *c = trace_case_at(j->trace, slot_of(j, p), LINGERS);
    set_drained(j, p, true);
    j->isolated++;
    if (c != NULL && trace_bad_cable[c->kind])
        return 0;
    j->isolated_good++;
    if (j->first_isolated[0] == 0)
        snprintf(j->first_isolated, sizeof(j->first_isolated), "%s: %.200s",
                 c ? trace_kind_names[c->kind] : "nothing", reason);
    return 0;
}

static int on_undrain(void *arg, const struct isolate_place *p, const char *by, struct err *e)
{
    set_drained(arg, p, false);
    return 0;
}

static bool is_drained(void *arg, const struct isolate_place *p)
{
    struct judge *j = arg;
    return j->drained[slot_of(j, p)];
}

static struct isolate *isolation(struct judge *j)
{
    struct isolate_opts o;
    isolate_opts_default(&o);
    o.mode = ISOLATE_AUTO;
    o.hosts = ISOLATE_HOSTS_ALL;
    o.cap_links = 100000; // what would be done wrongly is to be seen, not kept from happening
    o.per_week = 1000;
    struct isolate_callbacks cb = {.arg = j, .drain = on_drain, .undrain = on_undrain, .drained = is_drained};
    return isolate_new(NULL, "trace", &o, &cb);
}

void judge_run(struct judge *j, struct trace *t)
{
    const struct tele_table *table = trace_table(t);
    *j = (struct judge){.trace = t};
    j->cases = trace_cases(t, &j->num_cases);
    j->found = xcalloc(j->num_cases + 1, sizeof(bool));
    j->after = xcalloc(j->num_cases + 1, sizeof(int64_t));
    j->seen = xcalloc((size_t)table->num * alarm_num_rules, sizeof(bool));
    j->drained = xcalloc(table->num, sizeof(bool));
    struct health_sink sink = {j, on_raise, on_clear};
    struct health *h = health_new(NULL, &sink);
    struct isolate *i = isolation(j);
    while (trace_step(t, on_link, h)) {
        int64_t begin = thread_cpu_ns();
        health_feed(h, table, trace_now(t));
        j->cost_ns += thread_cpu_ns() - begin;
        isolate_feed(i, h, table, trace_now(t), WALL + trace_now(t));
        j->sweeps++;
    }
    isolate_free(i);
    health_free(h);
}

void judge_done(struct judge *j)
{
    free(j->found);
    free(j->after);
    free(j->seen);
    free(j->drained);
}
