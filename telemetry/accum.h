// SPDX-License-Identifier: Apache-2.0
// Readings to accumulators: what a device's counter says becomes what it has counted (accum.c has the rules).
// Pure: times come in. Used by the collector alone, on the loop thread.
#ifndef WEFT_TELEMETRY_ACCUM_H
#define WEFT_TELEMETRY_ACCUM_H

#include "telemetry/table.h"

struct accum_reading { // one answer of a performance agent
    uint64_t counters; // bit c: raw[c] is given
    uint64_t full;     // bit c: raw[c] stands at its maximum
    uint64_t narrow;   // bit c: raw[c] has 32 bits
    uint32_t groups;   // bit g: the moment is that of group g; counters of others are taken along
    unsigned kind;     // a number of the attribute, so that answers of different ones are not mixed up
    int64_t at;        // loop time at which the device has read them
    int64_t slack;     // by how much that may be wrong
    uint64_t raw[TELE_COUNTERS];
};

struct accum_found {  // what was out of the ordinary
    uint64_t cleared; // bit c: somebody else has cleared it, or the device has begun anew
    bool whole; // and so has all traffic of this answer (all of it where there is none) that was not 0 before
    bool stood; // something was not 0 before, and not all of it was cleared
    uint64_t ours; // we have cleared it
    uint64_t wrapped;
    uint64_t held; // went back by a little: not believed before it is said again
    uint64_t full; // stands at its maximum, and has not before
    bool nonsense; // grew by more than the link carries: the answer is dropped
    bool accepted; // said twice: what was nonsense is what counting goes on from
};

struct accum_slot;
struct accum_suspect;
struct accum {
    struct accum_slot *slot;
    uint32_t num; // slots
    // Accumulator minus device's counter, a block of TELE_COUNTERS for each slot that has such a difference.
    uint64_t *base;
    uint32_t num_bases, room_bases;
    struct accum_suspect *suspect;
    uint32_t num_suspects, room_suspects;
    uint64_t group[TELE_GROUPS]; // its counters
    uint64_t changes;            // rises when a difference changes
};

void accum_init(struct accum *a);
void accum_done(struct accum *a);
void accum_room(struct accum *a, uint32_t slots); // before a slot is used
// The link's rate bounds what can be counted; the highest that the slot ever had counts. 0: not known.
void accum_rate(struct accum *a, uint32_t slot, uint32_t mbps);
void accum_read(struct accum *a, struct tele_table *t, uint32_t slot, const struct accum_reading *r,
                struct accum_found *ret);
// We have asked the device to clear these; done: it has said that it did.
void accum_clear(struct accum *a, const struct tele_table *t, uint32_t slot, uint64_t counters, bool done);
uint64_t accum_full(const struct accum *a, uint32_t slot); // bit c: stands at its maximum

// Over restarts: the difference between accumulator and device's counter, and the accumulator's last value.
uint64_t accum_base(const struct accum *a, uint32_t slot, enum tele_counter c);
bool accum_has_base(const struct accum *a, uint32_t slot);
void accum_set_base(struct accum *a, uint32_t slot, enum tele_counter c, uint64_t base);
// Before its first reading: it never shows less than that.
void accum_set_last(struct accum *a, struct tele_table *t, uint32_t slot, enum tele_counter c,
                    uint64_t value);

#endif
