// SPDX-License-Identifier: Apache-2.0
// Between history.c and history_read.c: a question about history.
#ifndef WEFT_API_HISTORY_PRIV_H
#define WEFT_API_HISTORY_PRIV_H

#include "api/api_priv.h"
#include "api/history.h"
#include "api/tele.h"
#include "telemetry/counters.h"

enum by {
    BY_RAIL,
    BY_SU,
    BY_TIER,
    BY_SWITCH,
    BY_PORT,
};

struct port_want {
    uint64_t guid;
    uint8_t num;
    char *name;
    uint32_t series;
};

struct point {
    uint32_t series;
    int64_t at;
    uint64_t have;
    size_t value; // index of its first value
};

struct query {
    struct slices s; // of choosing ports
    struct tele_view w;
    struct sieve *focus; // NULL: all
    uint32_t chosen;     // ports looked at
    struct u64map known; // key of a group -> its number
    char *dir;
    int64_t from, to, step;
    bool any_step; // nobody has said which
    int counter[TELE_COUNTERS];
    unsigned num_counters;
    uint64_t columns;
    bool peaks, csv;
    enum by by;
    struct port_want *want; // ports; sorted by series once the worker knows them
    uint32_t num_want;
    uint32_t *group; // [series], of aggregates; ID_NONE: none
    uint32_t num_slots, num_groups;
    char **group_name;
    struct top_ask ask; // of top
    bool is_top;
    double *factor; // [series]: from ticks to share or bytes
    // what is read
    struct point *point;
    size_t num_points, room;
    uint64_t *value;
    size_t num_values, value_room;
    struct point *peak;
    size_t num_peaks;
    uint64_t damaged;
    bool cut;
    // the answer
    struct buf out;
    struct top_one *one;
    uint32_t num_one;
};

static inline int64_t query_steps(const struct query *q, int64_t step)
{
    int64_t each = step > 0 ? step : HISTORY_SWEEP_MS;
    return (q->to - q->from + each - 1) / each + 1;
}
void history_read(struct later *l, struct par *par); // a worker: reads, and writes the answer

#endif
