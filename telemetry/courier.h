// SPDX-License-Identifier: Apache-2.0
// Carries messages to somebody else from a thread of its own, one load at a time: the loop hands over a load
// and is told what became of it. How a load is delivered is a function of the target (HTTP, syslog).
#ifndef WEFT_TELEMETRY_COURIER_H
#define WEFT_TELEMETRY_COURIER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/buf.h"
#include "lib/loop.h"

struct courier;

struct courier_load {
    struct buf *body; // the courier's until done(); each is one message or request
    unsigned num;
};
struct courier_result {
    unsigned delivered; // so many, in order
    bool refused;       // the next one was looked at and will never be taken
    int64_t retry_after_ns;
    char text[200]; // why not all; ""
};
struct courier_target {
    void *arg;
    // On the courier's thread; blocks. Returns early once abort() was called.
    void (*deliver)(void *arg, const struct courier_load *load, struct courier_result *ret);
    void (*abort)(void *arg); // any thread
    void (*free)(void *arg);
};

// NULL: no thread can be made; the target is not freed then.
struct courier *courier_new(struct loop *l, const struct courier_target *t,
                            void (*done)(void *arg, const struct courier_result *r), void *arg);
void courier_free(struct courier *c); // done() does not run any more; the target is freed. NULL is fine
bool courier_busy(const struct courier *c);
// Takes the bodies (the array is the caller's, and empty afterwards); not while it is busy. done() runs on
// the loop, never from inside the call.
void courier_send(struct courier *c, struct buf *body, unsigned num);

#endif
