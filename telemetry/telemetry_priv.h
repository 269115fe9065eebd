// SPDX-License-Identifier: Apache-2.0
// What the collector's files share.
//
//   telemetry.c   sweeps: when they begin and end, status
//   sweep_end.c   what a sweep feeds at its end
//   agents.c      a snapshot's ports: who is asked for them
//   collect.c     a round: one agent is asked for its ports
//   answers.c     requests and answers on the wire
//   keep.c        what outlives a restart: accumulators; keep_health.c: what the rules' windows hold
//   tell.c        what was found becomes alarms; tree_age.c: since when congestion is of its kind
//   module.c      cables, modules and devices from ibdiagnet's files
//
// An agent is what answers at one LID: a switch for all its ports, an adapter for one. A round reads its
// ports one after the other in up to per_device lanes; a lane asks for the attributes of one port in turn, so
// that they are close in time. Rounds of different agents know nothing of each other: one that does not
// answer holds up nobody.
#ifndef WEFT_TELEMETRY_TELEMETRY_PRIV_H
#define WEFT_TELEMETRY_TELEMETRY_PRIV_H

#include "lib/buf.h"
#include "lib/pool.h"
#include "mad/mad.h"
#include "telemetry/accum.h"
#include "telemetry/table_priv.h"
#include "telemetry/telemetry.h"
#include "telemetry/tree_age.h"

#define MISSES_SILENT 3 // time-outs in a row after which an agent is asked one MAD a sweep
#define REFUSED_NS (3600 * MONO_S)
#define PROBE_NS MONO_S

enum ask {    // what a lane asks for, in this order
    ASK_INFO, // ClassPortInfo
    ASK_SUM,  // error counters of all ports together
    ASK_EXTENDED,
    ASK_CLASSIC,
    ASK_CLEAR_CLASSIC,
    ASK_SPEED,
    ASK_RCV_DETAIL,
    ASK_CLEAR_RCV_DETAIL,
    ASK_XMIT_DETAIL,
    ASK_CLEAR_XMIT_DETAIL,
    ASK_VL_WAIT,
    ASKS
};

enum agent_state {
    AGENT_NEW, // its ClassPortInfo is not known
    AGENT_READY,
    AGENT_SILENT, // does not answer: one MAD a sweep
    AGENT_NO_PMA, // refuses ClassPortInfo; asked again after an hour
};

enum agent_round { ROUND_NONE, ROUND_SWEEP, ROUND_ERRORS };

struct agent {
    uint64_t guid;
    uint32_t *slot; // its ports with a cable
    uint16_t num, room;
    uint16_t cursor;            // next of the running round
    uint16_t lid;               // as the snapshot has it; 0: cannot be reached
    uint16_t to;                // where requests go: lid, or where ClassPortInfo has sent us
    uint16_t caps;              // ClassPortInfo.CapabilityMask
    uint16_t began_anew, stood; // ports of this round whose counters were all cleared; were not
    uint16_t resets;            // ports of this round with cleared counters
    uint8_t key_port;           // of an adapter; 0: a switch
    uint8_t state;              // enum agent_state
    uint8_t round;              // enum agent_round
    uint8_t misses;             // time-outs in a row
    uint8_t asked;              // number of the port before the cursor, while the ports change
    uint8_t lanes;              // of the round
    bool additional;            // CapabilityMask2: the extended counters go on with the errors
    bool slow;                  // did not end its last round within the sweep
    bool waited;                // the sweep ends when this round has
    bool wanted;                // the next round is to begin when this one ends
    bool detail;                // details are due in this sweep
    bool sum_known, sum_unfit;
    bool told;          // an event says that it is not read
    bool second;        // of two passes over the ports: that for details
    uint16_t proved;    // bit ask: was answered once
    uint16_t refused;   // bit ask: answered with an error status, or dropped
    uint32_t began_in;  // sweep that the round began in
    uint32_t turn;      // its place in the interval, of 2^32
    int64_t refused_at; // the first of them
    uint64_t sum;       // hash of its error counters' sums
};

struct vl_ask { // of somebody who waits for it
    struct vl_ask *next, *prev;
    struct tele *t;
    uint8_t port;
    tele_vl_wait_fn *done;
    void *arg;
    const char *text;
    struct loop_task none; // there is nobody to ask
};

struct tele {
    struct loop *loop;
    struct mad_engine *engine;
    struct series *series;
    struct alarms *alarms;
    struct tele_opts o;
    char *fabric, *dir;
    struct tele_callbacks cb;

    struct tele_table table;
    struct accum accum;
    uint64_t *fresh;      // [slot] bit c: read in this sweep
    uint32_t *slot_agent; // [slot] TELE_SLOT_NONE
    uint32_t slots_room;
    const struct fabric_tables *tables;
    const struct fabric_groups *groups;
    const struct fabric *known; // the blueprint
    struct tele_link {
        uint32_t a, z;
    } * link; // of the blueprint, by slot
    uint32_t num_links;
    bool links_stale; // there is another blueprint
    uint8_t *meant;   // [slot] health was told of this link
    struct health *health;
    struct congest *congest;
    struct tele_modules *modules; // NULL: no source
    struct devices *devices;

    struct agent *agent;
    uint32_t num_agents, room_agents;
    uint32_t *order; // by turn
    uint32_t num_order;

    // the running sweep, or the last one
    bool active, sweeping;
    enum end_step { // what comes next at the end of a sweep
        END_NONE,
        END_SETTLE, // what was not read says so
        END_WAITS,  // congestion
        END_TREES,
        END_HEALTH,
        END_COUNT,
        END_TELL,
        END_FRESH,   // history: what was read
        END_HISTORY, // … and its values
    } end;
    uint32_t end_at, end_ports, end_read; // of the present step; of settling
    mono_t part_until;
    struct health_count links, counting;
    struct series_frame *frame; // on its way to history
    struct loop_task end_task;
    struct loop_timer timer;
    uint64_t sweep;
    int64_t began, due;     // loop time; due: of the next one
    uint32_t next;          // of order: not begun yet
    uint32_t pending;       // rounds that the sweep waits for
    unsigned details_every; // sweeps
    // error counters between sweeps
    struct loop_timer errors_timer;
    int64_t errors_began;
    uint32_t errors_next;
    bool errors_read; // something was, since health was fed
    bool errors_feeding;
    struct loop_task errors_task;
    bool links_due; // blueprint or fabric are new to health

    struct tele_status st;
    uint64_t answers;
    uint32_t asked;        // requests that the engine has
    struct tree_ages ages; // of congestion trees
    uint64_t late_seen;
    unsigned late_row, empty_row; // sweeps in a row that began late, that read next to nothing
    unsigned events;              // told in this sweep
    struct vl_ask *vl;
    struct accum_reading reading; // scratch
    uint64_t data_counters, error_counters, detail_counters;

    int64_t wall_zero;     // virtual time: wall clock at loop time 0
    struct {               // of congestion
        struct pool *pool; // a thread of its own: routing may have all others for seconds
        struct pool_job job;
        bool running;
        int64_t cpu_ns;
    } trees;
    struct keep {
        uint64_t changes; // of accum.changes that are on disk
        int64_t next;     // not before
        int status, told;
        bool running; // a worker writes
        struct pool_job job;
        struct buf file;
    } keep;
    struct keep_health { // what the rules' windows hold
        struct loop_task task;
        struct pool_job job;
        struct buf file[2]; // by enum health_part
        bool running, too_much;
        unsigned parts;      // bit part: is put
        uint32_t slot;       // the next one
        int64_t at;          // what its times are told from
        int64_t next[2];     // not before
        uint64_t changes[2]; // health_changes() of what is on disk
        int status, told;
    } keep_health;
};

static inline bool agent_can(const struct agent *a, enum ask k)
{
    return !(a->refused >> k & 1);
}
static inline bool agent_is_extended(const struct agent *a) // data in 64 bits
{
    return a->caps & (MAD_PM_CAP_EXTENDED_WIDTH | MAD_PM_CAP_EXTENDED_WIDTH_NO_IETF) &&
           agent_can(a, ASK_EXTENDED);
}
static inline bool agent_has_all(const struct agent *a) // and the errors with it
{
    return a->additional && agent_is_extended(a);
}

// --- telemetry.c ---
void tele_event(struct tele *t, const char *kind, const char *severity, const struct agent *a,
                const char *text);
int64_t tele_wall_now(const struct tele *t); // ns; in virtual time it goes with the loop's clock
int64_t tele_loop_time(const struct tele *t, int64_t wall_ns); // of a moment of an earlier run; not after now
void tele_round_ended(struct tele *t, struct agent *a, enum agent_round r);

// --- sweep_end.c ---
void sweep_end_begin(struct tele *t);
void sweep_end_part(void *arg);
void sweep_end_stop(struct tele *t); // amid it, or between sweeps: nothing is under way any more
void sweep_errors_begin(struct tele *t);
void sweep_errors_part(void *arg);

// --- agents.c ---
void agents_done(struct tele *t);
void agents_take(struct tele *t, const struct fabric *f); // NULL: none
// A port's slot; a new one when it has none.
uint32_t agents_slot(struct tele *t, uint64_t guid, uint8_t num, uint8_t num_ports);
void agents_slots(struct tele *t); // makes room for all slots of the table
void agent_name(const struct tele *t, const struct agent *a, char *buf, size_t size);

// --- collect.c ---
// Begins a round; ends it by tele_round_ended(), perhaps before it returns.
void round_begin(struct tele *t, struct agent *a, enum agent_round r);
void agent_new(struct agent *a); // nothing is known of it any more

// --- answers.c ---
struct mad_request;
enum ask_way {
    ASK_USUAL,
    ASK_ONCE,  // of an agent that is known to be silent
    ASK_PROBE, // what it need not have: silence may be its answer
};
void ask_send(struct tele *t, struct agent *a, uint32_t slot, enum ask k, enum ask_way w, mad_done_fn *done);
void ask_vl_wait(const struct agent *a, struct mad_engine *e, uint8_t port, mad_done_fn *done, void *arg);
// Reads an answer into t->reading; false when it is of another port.
bool answer_read(struct tele *t, const struct agent *a, uint32_t slot, enum ask k, const uint8_t *data);
void answer_info(struct agent *a, const uint8_t *data, bool *ret_usable);
// Error counters' sums: false when they say nothing (one stands at its maximum).
bool answer_sum(struct tele *t, struct agent *a, const uint8_t *data, uint64_t *ret_hash);
uint64_t ask_counters(enum ask k); // that the attribute may have

// --- tell.c ---
void tell_health_raise(void *arg, const char *rule, uint32_t slot, enum alarm_severity s, const char *reason,
                       const char *evidence);
void tell_health_clear(void *arg, const char *rule, uint32_t slot);
void tell_device_raise(void *arg, uint64_t guid, enum alarm_severity s, const char *reason,
                       const char *evidence);
void tell_device_clear(void *arg, uint64_t guid);
void tell_sweep(struct tele *t);
uint32_t tell_peer(const struct tele *t, uint32_t slot); // as far as is known; TELE_SLOT_NONE

// --- keep.c ---
void keep_load(struct tele *t);
void keep_save(struct tele *t, bool now);
uint32_t keep_slot(struct tele *t, uint64_t guid, uint8_t num); // a new one where history numbers none
void keep_put64(struct buf *b, uint64_t v);
uint64_t keep_get64(const uint8_t *p);
uint64_t keep_hash(const uint8_t *p, size_t n);
// --- keep_health.c ---
void keep_health_load(struct tele *t);
void keep_health_save(struct tele *t, bool at_end);
void keep_health_step(void *arg);

#endif
