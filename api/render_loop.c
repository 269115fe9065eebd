// SPDX-License-Identifier: Apache-2.0
#include "api/render_loop.h"

#include <stdlib.h>
#include <string.h>

#define AREA(f) offsetof(struct loop_area_row, f)
static const struct field area_fields[] = {
    {.name = "area", .type = FIELD_STR, .at = AREA(area), "part of the program"},
    {.name = "calls", .type = FIELD_INT, .at = AREA(calls), "callbacks run"},
    {.name = "seconds", .type = FIELD_NUM, .at = AREA(seconds), "time spent in them"},
    {.name = "max_seconds", .type = FIELD_NUM, .at = AREA(max_seconds), "the longest one"},
    {.name = "slow", .type = FIELD_INT, .at = AREA(slow), "those longer than 10 ms"},
    {0},
};
const struct schema schema_loop_area = {.name = "loop_area",
                                        "What a part of the program took of the loop",
                                        sizeof(struct loop_area_row),
                                        area_fields};

#define CALLBACK(f) offsetof(struct loop_callback_row, f)
static const struct field callback_fields[] = {
    {.name = "area", .type = FIELD_STR, .at = CALLBACK(area), "part of the program"},
    {.name = "callback",
     .type = FIELD_STR,
     .at = CALLBACK(callback),
     "what it did, such as a resource that was asked for; empty: its area's usual work"},
    {.name = "calls", .type = FIELD_INT, .at = CALLBACK(calls), "those of 1 ms and more"},
    {.name = "slow", .type = FIELD_INT, .at = CALLBACK(slow), "those longer than 10 ms"},
    {.name = "max_seconds",
     .type = FIELD_NUM,
     .at = CALLBACK(max_seconds),
     "the longest one since the start"},
    {.name = "max_cpu_seconds",
     .type = FIELD_NUM,
     .at = CALLBACK(max_cpu_seconds),
     "most processor time that one took"},
    {.name = "recent_seconds",
     .type = FIELD_NUM,
     .at = CALLBACK(recent_seconds),
     "the longest one of the last minute or two"},
    {.name = "recent_cpu_seconds",
     .type = FIELD_NUM,
     .at = CALLBACK(recent_cpu_seconds),
     "most processor time that one of those took"},
    {0},
};
const struct schema schema_loop_callback = {.name = "loop_callback",
                                            "Callbacks of the loop of 1 ms and more, by what they did",
                                            sizeof(struct loop_callback_row),
                                            callback_fields};

static int by_cpu(const void *a, const void *b)
{
    const struct loop_callback_row *x = a, *y = b;
    return (x->max_cpu_seconds < y->max_cpu_seconds) - (x->max_cpu_seconds > y->max_cpu_seconds);
}

static size_t at_most(size_t n, size_t most)
{
    return n < most ? n : most;
}

void loop_rows_fill(const struct loop *l, struct loop_rows *ret)
{
    struct loop_area_stats s[LOOP_AREAS_MAX];
    struct loop_long *c = calloc(LOOP_ROWS_MAX, sizeof(*c));
    size_t n = at_most(loop_stats(l, s, LOOP_AREAS_MAX), LOOP_AREAS_MAX);

    for (size_t i = 0; i < n; i++)
        ret->area[i] = (struct loop_area_row){.area = s[i].area,
                                              .calls = (int64_t)s[i].calls,
                                              .slow = (int64_t)s[i].slow,
                                              .seconds = mono_seconds(s[i].total_ns),
                                              .max_seconds = mono_seconds(s[i].max_ns)};
    ret->areas = (struct items){ret->area, n};
    n = c != NULL ? at_most(loop_longest(l, c, LOOP_ROWS_MAX), LOOP_ROWS_MAX) : 0;
    for (size_t i = 0; i < n; i++)
        ret->callback[i] = (struct loop_callback_row){.area = c[i].area,
                                                      .callback = c[i].what,
                                                      .calls = (int64_t)c[i].calls,
                                                      .slow = (int64_t)c[i].slow,
                                                      .max_seconds = mono_seconds(c[i].max_ns),
                                                      .max_cpu_seconds = mono_seconds(c[i].max_cpu_ns),
                                                      .recent_seconds = mono_seconds(c[i].recent_ns),
                                                      .recent_cpu_seconds = mono_seconds(c[i].recent_cpu_ns)};
    qsort(ret->callback, n, sizeof(ret->callback[0]), by_cpu);
    ret->callbacks = (struct items){ret->callback, n};
    free(c);
}

bool loop_held_up(const struct loop *l, struct loop_long *ret)
{
    struct loop_long c[LOOP_ROWS_MAX];
    size_t n = at_most(loop_longest(l, c, LOOP_ROWS_MAX), LOOP_ROWS_MAX);
    int64_t worst = LOOP_HELD_NS - 1;

    for (size_t i = 0; i < n; i++)
        if (c[i].recent_ns > worst && !loop_area_is_simulated(c[i].area)) {
            worst = c[i].recent_ns;
            *ret = c[i];
        }
    return worst >= LOOP_HELD_NS;
}
