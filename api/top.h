// SPDX-License-Identifier: Apache-2.0
// Ports that stand out.
#ifndef WEFT_API_TOP_H
#define WEFT_API_TOP_H

#include <stdbool.h>
#include <stdint.h>

struct request;
struct tele_view;

#define TOP_MAX 1000

enum top_by {
    TOP_HELD,
    TOP_LOST,
    TOP_USED,
    TOP_XMIT,
    TOP_RCV,
    TOP_ERRORS,
    TOP_SCORE,
    TOP_COUNTER, // the rate of one
};
struct top_ask {
    enum top_by by;
    int counter;
    uint32_t n;
    const bool *wanted; // by slot; NULL: all
};
struct top_one {
    uint32_t slot;
    double value;
};
// The n greatest that are above 0, greatest first, into ret (room for ask->n); returns how many. O(ports).
uint32_t top_now(const struct tele_view *w, const struct top_ask *ask, struct top_one *ret);
// The same of values by slot. Pure; any thread.
uint32_t top_select(const double *value, uint32_t n, uint32_t most, struct top_one *ret);
// Answers with them; at_ns: end of the time that they are of, 0: now.
void top_list(struct request *r, struct tele_view *w, const struct top_ask *ask, const struct top_one *one,
              uint32_t n, int64_t at_ns, bool complete);

#endif
