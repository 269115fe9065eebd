// SPDX-License-Identifier: Apache-2.0
// Inside of the transaction engine: mad/engine*.c only.
//
//   engine.c        the face: requests, sending, what arrives, how transactions end
//   engine_txn.c    transactions: slab, TIDs, composition of the MAD, counters
//   engine_dev.c    devices: hash, queues, turns, windows, round trips
//   engine_wheel.c  deadlines: a wheel of 8,192 ticks of 0.26 ms, so that a MAD costs no heap operation
//
// Objects are named by 32-bit index (NONE: none) and never move.
#ifndef WEFT_MAD_ENGINE_PRIV_H
#define WEFT_MAD_ENGINE_PRIV_H

#include "mad/engine.h"
#include "mad/mad.h"

#define NONE UINT32_MAX
#define TRIES_MAX 16 // tries of a transaction have consecutive TIDs from a multiple of this
#define UNDELIVERABLE_FACTOR 4
#define BACKOFF_NS (1 * MONO_MS)
#define BACKOFF_MAX_NS (32 * MONO_MS)
#define TIMEOUT_MAX_NS (30 * MONO_S)
#define FLOOR_HOLD_NS (10 * MONO_S)
#define SLOW_FACTOR 8 // an estimate may exceed the default time-out so far
#define COUNT_ROWS 257
#define COUNT_SLOTS 1024
#define DEVICES_KEPT 65536

enum txn_state {
    TXN_FREE,
    TXN_QUEUED,  // in its device's queue
    TXN_WIRE,    // a try is out; on the wheel
    TXN_BACKOFF, // on the wheel
    TXN_ENDED,   // only on the list of those whose done() is due
};

struct txn {
    uint8_t mad[MAD_SIZE];
    mad_done_fn *done;
    void (*first_timeout)(void *arg, uint64_t user);
    void *arg;
    uint64_t user, gen;
    int64_t timeout_ns;                 // of the next try
    int64_t first_ns, prev_ns, sent_ns; // when the first, the last but one and the last try went out
    uint64_t due_tick;                  // on the wheel
    uint32_t tid;                       // of the first try; valid when tries > 0
    uint32_t dev;
    uint32_t prev, next; // in a queue or on the wheel
    uint32_t hnext;      // in the map of TIDs
    uint32_t end_next;   // in the list of the ended
    int32_t end_status;
    uint16_t lid;
    uint16_t row;  // of counters
    uint16_t slot; // of the wheel
    uint8_t sl;
    uint8_t state; // enum txn_state
    uint8_t prio;
    uint8_t tries, timeouts, undeliverable, retries;
    uint8_t charged; // time-outs that count against retries
    bool estimated;  // timeout_ns is not the caller's
    bool ending;     // on the list of the ended
    bool told;       // done() was called (cancelled); the try on the wire still holds its place
};

struct dev {
    uint64_t key;
    uint32_t hnext;
    uint32_t idle_prev, idle_next; // idle devices, oldest first
    uint32_t txns;                 // of this device, in any state
    uint16_t window, outstanding;
    uint16_t streak;            // answers since the window changed
    int32_t srtt_us, rttvar_us; // srtt 0: never answered
    int64_t shrunk_ns;          // tries sent before do not shrink the window again
    struct dev_queue {
        uint32_t head, tail; // transactions
        uint32_t prev, next; // in the list of devices whose turn may come
        int8_t list;         // which, -1: none
    } q[MAD_PRIOS];
};

// Chunked storage: elements never move.
struct slab {
    void **chunk;
    uint32_t chunks, used; // elements handed out so far
    uint32_t free_head;
    uint32_t size; // of an element
};
#define SLAB_SHIFT 8
#define SLAB_CHUNK (1u << SLAB_SHIFT)

static inline void *slab_at(const struct slab *s, uint32_t i)
{
    return (char *)s->chunk[i >> SLAB_SHIFT] + (size_t)(i & (SLAB_CHUNK - 1)) * s->size;
}

#define WHEEL_SHIFT 18 // a tick is 2^18 ns
#define WHEEL_SLOTS 8192u

struct wheel {
    uint32_t head[WHEEL_SLOTS];
    uint64_t bits[WHEEL_SLOTS / 64];
    uint64_t cur; // every entry's slot is at this tick or later
    uint32_t count;
    uint64_t armed; // tick of the loop's timer; UINT64_MAX: not armed
    struct loop_timer timer;
};

// Lists of devices by priority, and by whether the next of the queue is a repeat after a time-out.
#define READY_LISTS (MAD_PRIOS * 2)

struct mad_engine {
    struct loop *loop;
    struct transport *t;
    struct mad_engine_opts o;

    struct slab txns, devs;
    uint32_t *tid_map, tid_mask, tid_count; // by tid / TRIES_MAX
    uint32_t next_tid;
    uint32_t *dev_map, dev_mask, dev_count;
    struct {
        uint32_t head, tail;
    } ready[READY_LISTS], idle;
    uint32_t ended_head, ended_tail;

    unsigned outstanding, repeats; // on the wire; of these repeats after a time-out
    unsigned queued;               // waiting for a window
    bool paused;                   // the transport's way out is full
    bool repeat_turn[MAD_PRIOS];
    bool grace;                    // one round of receiving was let go first, after a stall
    int32_t srtt_us, rttvar_us;    // over all devices
    int64_t floor_ns, floor_until; // of time-outs: raised for a while by answers that came after one

    struct wheel wheel;
    struct loop_task pump_task, ended_task;
    struct {
        mad_unsolicited_fn *fn;
        void *arg;
    } handler[256];
    struct mad_engine_stats stats;
    struct mad_count count[COUNT_ROWS];
    uint16_t count_slot[COUNT_SLOTS];
    unsigned count_n;
};

static inline struct txn *txn_at(const struct mad_engine *e, uint32_t i)
{
    return slab_at(&e->txns, i);
}
static inline struct dev *dev_at(const struct mad_engine *e, uint32_t i)
{
    return slab_at(&e->devs, i);
}

static inline uint16_t be16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}
static inline uint32_t be32(const uint8_t *p)
{
    uint32_t v;
    __builtin_memcpy(&v, p, 4);
    return __builtin_bswap32(v);
}
static inline void put16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}
static inline void put32(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    __builtin_memcpy(p, &v, 4);
}
static inline void put64(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    __builtin_memcpy(p, &v, 8);
}

// engine_txn.c
void slab_init(struct slab *s, uint32_t size);
void slab_done(struct slab *s);
uint32_t slab_alloc(struct slab *s); // content is not cleared; *(uint32_t *) of a free element is used
void slab_free(struct slab *s, uint32_t i);
int txn_check(const struct mad_request *r); // 0, -EINVAL, -EMSGSIZE
void txn_compose(uint8_t mad[MAD_SIZE], const struct mad_request *r);
void tid_assign(struct mad_engine *e, uint32_t i); // enters the map
void tid_release(struct mad_engine *e, uint32_t i);
uint32_t tid_find(const struct mad_engine *e, uint32_t tid); // NONE unless a try of a live transaction
uint16_t count_row(struct mad_engine *e, uint8_t mgmt_class, uint8_t method, uint16_t attr_id);

// engine_dev.c
uint32_t dev_get(struct mad_engine *e, uint64_t key); // makes it; *txns is the caller's to raise
uint32_t dev_find(const struct mad_engine *e, uint64_t key);
void dev_like(struct mad_engine *e, uint32_t i, uint64_t key); // takes over its round trips, if it has none
void dev_txn_added(struct mad_engine *e, uint32_t d);
void dev_txn_gone(struct mad_engine *e, uint32_t d); // the last one makes the device idle
void dev_push(struct mad_engine *e, uint32_t txn, bool front);
void dev_unqueue(struct mad_engine *e, uint32_t txn);        // from anywhere in the queue
void dev_refresh(struct mad_engine *e, uint32_t d);          // puts it into the lists where it belongs
uint32_t dev_next(struct mad_engine *e, unsigned *ret_prio); // whose first transaction may go now; NONE
void dev_turn_over(struct mad_engine *e, uint32_t d, unsigned prio);
void dev_answered(struct mad_engine *e, struct dev *d, int64_t rtt_ns, bool late);
void dev_timed_out(struct mad_engine *e, struct dev *d, int64_t sent_ns);
void dev_forget(const struct mad_engine *e, struct dev *d);
int64_t dev_timeout(struct mad_engine *e, const struct dev *d);

// engine_wheel.c
void wheel_init(struct mad_engine *e);
void wheel_add(struct mad_engine *e, uint32_t txn, int64_t due_ns, int64_t now_ns);
void wheel_del(struct mad_engine *e, uint32_t txn);
void engine_due(struct mad_engine *e, uint32_t txn, mono_t now); // engine.c: off the wheel, its time has come

#endif
