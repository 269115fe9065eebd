// SPDX-License-Identifier: Apache-2.0
// A small worker pool for routing and verification, and `struct par`: a way to hand parallelism to pure code
// that makes no thread.
#ifndef WEFT_LIB_POOL_H
#define WEFT_LIB_POOL_H

#include <stdbool.h>

#include "lib/loop.h"

struct pool;

// n tasks, numbered 0..n-1, in any order and in parallel; run() returns when all are done. task must not call
// run() of the same par.
struct par {
    void (*run)(struct par *p, unsigned n, void (*task)(void *arg, unsigned i), void *arg);
    unsigned width; // how many run at once; for sizing per-task scratch memory
};
extern struct par par_serial; // in the calling thread, one after the other; immutable

struct pool *pool_new(struct loop *l, unsigned threads); // 0 = number of processors
// From now on jobs run on the loop, one a task in the order they were submitted, and only their par uses the
// threads: what happens in virtual time can be repeated exactly. Before the first pool_submit().
void pool_in_order(struct pool *p);
// Its threads run when nobody else wants the processor, as far as the system lets them: for what nobody waits
// for.
void pool_idle(struct pool *p);
// Waits for running jobs and calls done() of those that ran; jobs not begun are dropped without done(), as is
// what done() submits then.
void pool_free(struct pool *p);

struct pool_job {
    struct pool_job *next;
    void (*work)(void *arg, struct par *par); // on a worker thread: sees a snapshot, its arguments and its
                                              // own arena; par spreads over the pool
    void (*done)(void *arg);                  // on the loop
    void *arg;
    const char *name;  // of what done() does, for loop_doing(); may be NULL
    struct pool *pool; // that has it: from pool_submit() until done() or pool_cancel(); starts as NULL
    bool ran;
};
// job stays the caller's and must live until done(). Holds virtual time meanwhile.
void pool_submit(struct pool *p, struct pool_job *job);
// done() will not run; returns when work() does not run either, which blocks for as long as it takes. No
// effect on a job that no pool has.
void pool_cancel(struct pool_job *job);

#endif
