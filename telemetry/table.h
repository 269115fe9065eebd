// SPDX-License-Identifier: Apache-2.0
// What is known of all ports now: the table that collecting fills and everything else reads (rates,
// congestion, health, the store, /metrics). Arrays by slot. A slot is a physical port, by (NodeGUID, number),
// for good: it is the store's series, so it outlives snapshots and restarts. External ports only (never a
// switch's port 0) that are, or once were, connected.
//
// Values are accumulators of 64 bits: what the device's counter said when the slot was first seen (so that
// they agree with other tools as long as nobody clears it) and what it has counted since, over clears, wraps
// and reboots; they never go backwards. value and before are those of the last two
// readings of the counter's group, at[] their times: a rate is (value - before) / (at - at_before).
//
// Owned by the collector; loop thread only. Readers look at it between sweeps (callback `swept`).
#ifndef WEFT_TELEMETRY_TABLE_H
#define WEFT_TELEMETRY_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"
#include "telemetry/counters.h"

#define TELE_SLOT_NONE 0xffffffffu

struct tele_index;

enum tele_unread { // why a port has no fresh reading
    TELE_READ,     // it has
    TELE_NOT_YET,
    TELE_NO_ANSWER, // time-out
    TELE_REFUSED,   // the agent answers with an error status
    TELE_NO_PMA,    // no performance management agent
    TELE_GONE,      // not in the snapshot any more, or without a cable
    TELE_WRONG,     // answered for another port, or nonsense
    TELE_SLOW,      // it answers, but not all of its ports within a sweep: they come in turn
};
const char *tele_unread_name(enum tele_unread u);

struct tele_port {
    uint64_t node_guid;
    uint8_t num;
    // Of the snapshot:
    uint32_t port;      // its index there; ID_NONE when gone
    uint32_t peer;      // slot of the other end; TELE_SLOT_NONE
    uint32_t rate_mbps; // of the link as it is; 0 when not known
    bool of_switch, up;
    uint8_t lanes; // active width; 0 when not known
    // Of reading:
    uint8_t unread;       // enum tele_unread, of the last sweep
    bool saturated;       // some counter stands at its maximum: it has counted more than is known
    uint64_t full;        // bit c: this one. It counts no further: it has no rate, not one of 0
    int64_t unread_since; // loop time; while unread
    uint32_t resets;      // times that counters were found cleared (by others, by a reboot)
    int64_t reset_at;     // loop time of the last one; 0 = never
    int64_t lost_at;      // loop time of the last reading of errors that does not say what was counted since
                          // the one before; 0 = never
};

struct tele_table {
    const struct fabric *fabric; // the snapshot that port[].port means; NULL before the first
    uint32_t num;                // slots
    struct tele_port *port;
    uint64_t *value, *before; // [slot * TELE_COUNTERS + counter]
    uint64_t
        *have;     // [slot], bit c: value is of the last reading that was due. Others keep what was read once
    uint64_t *had; // … and before too: there is a rate
    int64_t *at, *at_before; // [slot * TELE_GROUPS + group], loop time; 0 = never
    double *errors; // [slot]: all counters of TELE_ERRORS that are errors, a second, where `had` has them
    struct tele_index *index; // (NodeGUID, number) -> slot
};

uint32_t tele_slot(const struct tele_table *t, uint64_t node_guid, uint8_t num); // TELE_SLOT_NONE

static inline uint64_t tele_value(const struct tele_table *t, uint32_t slot, enum tele_counter c)
{
    return t->value[(uint64_t)slot * TELE_COUNTERS + c];
}
static inline bool tele_have(const struct tele_table *t, uint32_t slot, enum tele_counter c)
{
    return t->have[slot] >> c & 1;
}
// Counted between the last two readings; false when one of them is missing.
static inline bool tele_delta(const struct tele_table *t, uint32_t slot, enum tele_counter c, uint64_t *ret)
{
    uint64_t i = (uint64_t)slot * TELE_COUNTERS + c;
    if (!((t->have[slot] & t->had[slot]) >> c & 1))
        return false;
    *ret = t->value[i] - t->before[i];
    return true;
}
// Time between these readings, 0 when there are not two.
static inline int64_t tele_interval(const struct tele_table *t, uint32_t slot, enum tele_counter c)
{
    uint64_t i = (uint64_t)slot * TELE_GROUPS + tele_rows[c].group;
    return t->at_before[i] ? t->at[i] - t->at_before[i] : 0;
}

#endif
