// SPDX-License-Identifier: Apache-2.0
// Who holds the loop up is logged: subnet management waits meanwhile. Callbacks of LOOP_HELD_NS and more are
// warned of, at most once in a minute with the longest of those between, and within a minute of it; shorter
// ones that are slow are for debugging, as is what a simulated fabric takes.
#ifndef WEFT_DAEMON_HELD_H
#define WEFT_DAEMON_HELD_H

#include "lib/loop.h"

struct held {
    mono_t told;
    bool once;              // told holds
    struct loop_slow worst; // of those that were not told; ns 0: none
    unsigned more;
    struct loop_timer timer; // of what waits to be told
};
void held_watch(struct held *h, struct loop *l);
void held_done(struct held *h); // before the loop is freed; tells what waits. Fine without held_watch()
// The hook and the timer, and the clock that they read, for tests.
void held_due(struct held *h, mono_t now);
void held_slow(struct held *h, const struct loop_slow *s, mono_t now);

#endif
