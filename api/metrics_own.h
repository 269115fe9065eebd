// SPDX-License-Identifier: Apache-2.0
// What weft says of itself and of each fabric as a whole: weft_*. Rendered on the loop: some hundred samples.
#ifndef WEFT_API_METRICS_OWN_H
#define WEFT_API_METRICS_OWN_H

#include "api/metrics_page.h"

struct api;

void metrics_own(struct metrics_page *p, struct api *a);

#endif
