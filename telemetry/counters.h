// SPDX-License-Identifier: Apache-2.0
// The counters of a port: one row each (counters.def), from which come the columns of the store, names in the
// API, metrics and the documentation.
#ifndef WEFT_TELEMETRY_COUNTERS_H
#define WEFT_TELEMETRY_COUNTERS_H

#include <stdint.h>

enum tele_counter {
#define C(id, ibta, name, metric, unit, group, kind, doc) TELE_##id,
#include "telemetry/counters.def"
    TELE_COUNTERS
};
_Static_assert(TELE_COUNTERS <= 64, "one bit a counter");

// What is read together, at one moment: one attribute of a device, or part of one.
enum tele_group {
    TELE_DATA,        // PortCountersExtended, or PortCounters where the device has no other. PortXmitWait
                      // goes with it, so that use and waiting are of one interval
    TELE_ERRORS,      // the same, or PortCounters beside it where the extended ones end before the errors
    TELE_SPEED,       // PortExtendedSpeedsCounters
    TELE_RCV_DETAIL,  // PortRcvErrorDetails
    TELE_XMIT_DETAIL, // PortXmitDiscardDetails
    TELE_GROUPS
};

enum tele_unit {
    TELE_WORDS, // of 4 bytes
    TELE_PACKETS,
    TELE_EVENTS,
    TELE_TICKS, // see rate.h
    TELE_SYMBOLS,
    TELE_BLOCKS,
};

enum tele_kind {
    TELE_TRAFFIC,
    TELE_ERROR,
    TELE_WAIT,
    TELE_FEC,
};

struct tele_row {
    const char *ibta, *name, *metric, *doc;
    enum tele_unit unit;
    enum tele_group group;
    enum tele_kind kind;
};
extern const struct tele_row tele_rows[TELE_COUNTERS];
// By name or by the standard's; -1 when there is none.
int tele_counter_by_name(const char *name);
const char *tele_unit_name(enum tele_unit u);    // "bytes" for words: people and programs are shown bytes
const char *tele_group_name(enum tele_group g);  // "data", "errors", …
uint64_t tele_group_counters(enum tele_group g); // bit c: counter c is of the group
// From the unit that is stored to the one that is shown: 4 for words, 1 otherwise.
static inline uint64_t tele_shown(enum tele_counter c, uint64_t v)
{
    return tele_rows[c].unit == TELE_WORDS ? v * 4 : v;
}

#endif
