// SPDX-License-Identifier: Apache-2.0
// The transaction engine: many MADs on the wire at once, each answered, failed or cancelled exactly once, on
// the loop. Nothing waits.
//
// Windows: each device (a node, named by a 64-bit key, its GUID) has a window of outstanding MADs that starts
// at 4, grows by one after a window of answers in a row up to 16 and halves on a time-out, never below 1
// (VL15 has no flow control); all devices together share a window of 256. What does not fit waits in its
// device's queue; devices take turns; SMPs go before SA, SA before PMA. Repeats after a time-out may fill at
// most three quarters of the shared window, so that dead nodes cannot stop the living.
// Time-outs: the first try waits the request's timeout_ns, or, where that is 0, an estimate (Jacobson's: mean
// and deviation of the round trips, of the device and of all together, whichever is longer; at least the
// floor, at most 8 times the default; while the device has not answered the default, or a quarter of it where
// the others answer at once); every repeat doubles it. Estimated tries shorter than the default come on top
// of the retries and end with one of the default's length: 20, 40, 80, 160, 200, 400, 800, 1600 ms, so that
// one MAD in 400,000 fails where 20 % are lost in silence, and first_timeout tells early. Explicit ones are
// all counted: 200, 400, 800, 1600 ms with 3 retries.
// An answer that comes after its time-out raises the floor for 10 s, to half the default at most. Each
// try has a TID of its own; an answer to any try of a transaction completes it, late ones too. A loop that
// stood still is not taken for a dead fabric: what came meanwhile is read before anything is given up.
// Undeliverable tries: what the transport hands back at once (ibsim does for a dropped or unroutable MAD)
// counts against a budget of its own, UNDELIVERABLE_FACTOR (4) times the retries, and is repeated after 1 ms,
// 2 ms, ... 32 ms. With the default of 3 retries that makes 13 cheap tries in 0.3 s: a path that loses 20 %
// of its MADs fails a transaction once in 10^9, one that loses 36 % (20 % each way) twice in 10^6. Real
// time-outs are dear, so there are 4 tries of these. Both kinds together never exceed 16 tries. Unsolicited
// MADs (traps, SMInfo, SA requests) go to the handler of their class.
//
// Structs: the engine owns transactions (a slab that never shrinks: no allocation in steady state) and
// devices (idle ones are recycled above 65,536). Threads: the loop's only. mad_engine_free() may not be
// called from within a callback of the engine; everything else may. Cost: sending, answer and time-out are
// O(1).
//
// Departures: the attribute modifier of an answer is not compared (some agents do not echo it); TID, class,
// method and attribute are.
#ifndef WEFT_MAD_ENGINE_H
#define WEFT_MAD_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/loop.h"
#include "mad/transport.h"

#define MAD_MAX_HOPS 63

struct dr_path { // directed route: out ports from the local port; port[0] is unused, port[1..hops]
    uint8_t hops;
    uint8_t port[MAD_MAX_HOPS + 1];
};

enum mad_prio {
    MAD_PRIO_SMP,
    MAD_PRIO_SA,
    MAD_PRIO_PMA,
};
#define MAD_PRIOS 3

struct mad_result {
    int status; // 0 = an answer came (mad_status may still refuse); -ETIMEDOUT all tries; -ECANCELED;
                // -ENETUNREACH undeliverable; -EMSGSIZE…
    uint16_t mad_status; // MAD header status of the answer without the direction bit; 0 = fine
    const uint8_t *mad;  // the whole answer, 256 bytes, valid during the callback; NULL without an answer
    const uint8_t
        *data;      // its attribute data: mad + 64 for SMP and PMA, mad + 56 for SA; NULL without an answer
    int64_t rtt_ns; // of the answered try
    unsigned tries;
};
// The request is finished when it is called; it may send more.
typedef void mad_done_fn(void *arg, uint64_t user, const struct mad_result *r);

struct mad_request {
    uint8_t mgmt_class;    // 0x81 with path, 0x01 with lid, 0x04, 0x03 …
    uint8_t class_version; // 0 = the class's own: 2 for class 3, else 1
    uint8_t method;        // Get 1, Set 2, …
    uint16_t attr_id;
    uint32_t attr_mod;
    uint64_t m_key;             // SMP header; SM_Key in class 3
    uint64_t comp_mask;         // class 3
    const struct dr_path *path; // class 0x81; copied
    uint16_t lid;               // otherwise
    uint8_t sl;
    const void *data; // attribute data to send, copied; NULL = zeros
    uint8_t data_len; // at most 64 (SMP), 192 (PMA), 200 (SA)
    enum mad_prio prio;
    uint64_t device;    // window key: the GUID of the node that answers, or any unique number where it is not
                        // known yet
    uint64_t like;      // a window key whose round trips count as long as `device` has not answered; 0 = none
    int64_t timeout_ns; // of the first try; 0 = engine's default (200 ms)
    int8_t retries;     // after the first try; -1 = engine's default (3); at most 15; 0 = one try of any kind
    mad_done_fn *done;
    void *arg;
    uint64_t user; // handed to done
    uint64_t gen;  // for mad_engine_cancel_gen(); 0 = never
    void (*first_timeout)(void *arg,
                          uint64_t user); // told once when the first try has failed, by time or as
                                          // undeliverable, and another follows; may be NULL
};

struct mad_engine_opts {
    unsigned window_total;                // 0 = 256
    unsigned window_start, window_max;    // per device; 0 = 4, 16
    int64_t timeout_ns, timeout_floor_ns; // 0 = 200 ms, 20 ms
    int retries;                          // -1 = 3
    uint32_t first_tid; // 0 = from the clock, so that a new process takes no answer to its predecessor (1 on
                        // a virtual loop)
};

struct mad_engine;
struct mad_engine *mad_engine_new(struct loop *l, struct transport *t,
                                  const struct mad_engine_opts *o); // o may be NULL
void mad_engine_free(
    struct mad_engine *e); // outstanding requests are dropped without done(); the transport stays

// Always takes the request: done() comes later from the loop, never from inside this call.
void mad_engine_send(struct mad_engine *e, const struct mad_request *r);
// Every queued or outstanding request of that generation ends with -ECANCELED (from the loop).
void mad_engine_cancel_gen(struct mad_engine *e, uint64_t gen);
unsigned mad_engine_outstanding(const struct mad_engine *e); // on the wire
unsigned mad_engine_queued(const struct mad_engine *e);      // waiting for a window
// The same for what is queued or outstanding at a device: it is dead, the rest of its queue need not find
// that out one time-out after another.
void mad_engine_cancel_device(struct mad_engine *e, uint64_t device);
// Forgets what was learnt of a device (after a reset): window and round trips start anew.
void mad_engine_forget_device(struct mad_engine *e, uint64_t device);

// Requests from others. mad is the whole MAD; from is where to answer.
typedef void mad_unsolicited_fn(void *arg, const uint8_t *mad, const struct mad_addr *from);
// mgmt_class 0x81 and 0x01 share one handler (register 0x01). NULL removes. Classes without a handler are
// counted and dropped.
void mad_engine_handler(struct mad_engine *e, uint8_t mgmt_class, mad_unsolicited_fn *fn, void *arg);
// An answer or report: the caller has built the 256 bytes (same TID as the request). Not a transaction. 0 or
// negative errno.
int mad_engine_reply(struct mad_engine *e, const uint8_t *mad, const struct mad_addr *to);

// The same for an SA answer of many records: msg is the 56-byte header (MAD, RMPP, SA) and all the data; the
// transport cuts it into RMPP segments and fills the RMPP header. -EOPNOTSUPP where the transport has none.
int mad_engine_reply_rmpp(struct mad_engine *e, const uint8_t *msg, size_t len, const struct mad_addr *to);

// Counters, by attribute and method; for benches, the API and tests.
struct mad_count {
    uint8_t mgmt_class; // 0x01 for 0x81 too
    uint8_t method;
    uint16_t attr_id;
    uint64_t requests; // transactions
    uint64_t sent;     // MADs on the wire, retries included
    uint64_t retries, timeouts, undeliverable;
    uint64_t refused; // answered with a status other than 0
    uint64_t late;    // answered to an earlier try than the last
};
// Writes at most n rows, returns how many there are. Row 0 is for everything above 256 kinds, else all zeros.
size_t mad_engine_counts(const struct mad_engine *e, struct mad_count *ret, size_t n);
struct mad_engine_stats {
    uint64_t sent, received, retries, timeouts, undeliverable;
    uint64_t late;      // answers to an earlier try, of transactions that were still open
    uint64_t unmatched; // answers to nothing: too late, repeated, spoofed
    uint64_t malformed; // bad base version, class version, hop count
    uint64_t unhandled; // requests of a class without a handler
    uint64_t cancelled;
    unsigned outstanding_max;
    unsigned devices;
};
void mad_engine_stats(const struct mad_engine *e, struct mad_engine_stats *ret);

#endif
