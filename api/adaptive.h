// SPDX-License-Identifier: Apache-2.0
// Adaptive routing as the API shows it: a summary beside the routes, and each switch.
#ifndef WEFT_API_ADAPTIVE_H
#define WEFT_API_ADAPTIVE_H

#include "api/api_priv.h"

struct adaptive_row { // as struct sm_adaptive_status
    const char *mode, *why;
    bool proved;
    int64_t switches, supported, enabled, left, entries, adaptive, most_groups, over_cap;
    double choices;
    char text[400];
};
extern const char *const adaptive_state_names[];

// False when it is off: there is nothing to show.
bool adaptive_fill(const struct sm *sm, struct adaptive_row *row);
// One of adaptive_state_names[], or NULL: no switch, or not asked.
const char *adaptive_state(const struct sm *sm, const struct node *n);

#endif
