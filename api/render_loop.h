// SPDX-License-Identifier: Apache-2.0
// What the loop's thread does, and who holds it up: part of the status.
#ifndef WEFT_API_RENDER_LOOP_H
#define WEFT_API_RENDER_LOOP_H

#include "api/schema.h"
#include "lib/loop.h"

#define LOOP_AREAS_MAX 64
#define LOOP_ROWS_MAX (LOOP_LONG_MAX + LOOP_AREAS_MAX)

struct loop_rows { // large: not for the stack
    struct loop_area_row {
        const char *area;
        int64_t calls, slow;
        double seconds, max_seconds;
    } area[LOOP_AREAS_MAX];
    struct loop_callback_row {
        const char *area, *callback;
        int64_t calls, slow;
        double max_seconds, max_cpu_seconds, recent_seconds, recent_cpu_seconds;
    } callback[LOOP_ROWS_MAX];
    struct items areas, callbacks; // callbacks: those with the most CPU first
};
extern const struct schema schema_loop_area, schema_loop_callback;
void loop_rows_fill(const struct loop *l, struct loop_rows *ret);
// The longest callback of the last minute or two, if it was so long that people are told; false: none.
bool loop_held_up(const struct loop *l, struct loop_long *ret);

#endif
