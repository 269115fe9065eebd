// SPDX-License-Identifier: Apache-2.0
// Questions about history: what counters said over a time. A worker reads the files; the answer is bounded.
#ifndef WEFT_API_HISTORY_H
#define WEFT_API_HISTORY_H

#include <stdint.h>

#include "api/top.h"

struct sieve;
// The ports that stood out over the time that the request names; answers, or is answered later. Takes focus
// (query_port_focus()).
void history_top(struct request *r, const struct tele_view *w, const struct top_ask *ask,
                 struct sieve *focus);

// The step with which a time has at most `most` steps: 0 (every sweep), 60 s, and so on to a day and beyond.
int64_t history_step(int64_t range_ms, int64_t most);

// Whether there is a history, and room for one more question; false with an answer.
bool history_may_ask(struct request *r);

#define HISTORY_SWEEP_MS 10000 // what is taken for the time between sweeps where it is to be guessed

// Rows that an answer may have.
#define HISTORY_ROWS 20000

#endif
