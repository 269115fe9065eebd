// SPDX-License-Identifier: Apache-2.0
// What weft says of itself and of each fabric as a whole: weft_*. Rendered on the loop: some hundred samples.
#ifndef WEFT_API_METRICS_OWN_H
#define WEFT_API_METRICS_OWN_H

#include "api/metrics_page.h"
#include "lib/mono.h"

struct api;
struct metrics_alarms;

// What remains to be done in slices, the alarms, or NULL; on the same page, before anything else.
struct metrics_alarms *metrics_own(struct metrics_page *p, struct api *a);
bool metrics_alarms_some(struct metrics_alarms *x, struct metrics_page *p, uint32_t look_every, mono_t until);
void metrics_alarms_free(struct metrics_alarms *x); // NULL is fine

#endif
