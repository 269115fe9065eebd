// SPDX-License-Identifier: Apache-2.0
// Who holds the loop up is logged: subnet management waits meanwhile. Callbacks of LOOP_HELD_NS and more are
// warned of, at most once in a minute with the longest of those between; shorter ones that are slow are for
// debugging, as is what a simulated fabric takes.
#ifndef WEFT_DAEMON_HELD_H
#define WEFT_DAEMON_HELD_H

#include "lib/loop.h"

struct held {
    mono_t told;
    bool once;              // told holds
    struct loop_slow worst; // of those that were not told; ns 0: none
    unsigned more;
};
void held_watch(struct held *h, struct loop *l);
// The hook, and the clock that it reads, for tests.
void held_slow(struct held *h, const struct loop_slow *s, mono_t now);

#endif
