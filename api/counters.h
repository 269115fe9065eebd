// SPDX-License-Identifier: Apache-2.0
// Counters of ports as lists show them.
#ifndef WEFT_API_COUNTERS_H
#define WEFT_API_COUNTERS_H

#include "telemetry/rate.h"

static inline bool counter_is_error(unsigned c) // of those that are read together, and summed up
{
    return tele_rows[c].kind == TELE_ERROR && tele_rows[c].group == TELE_ERRORS;
}

extern const char *const unread_names[], *const health_names[]; // as the enums have them

// All error counters of a port together: since it was first seen (NO_INT: none was read), and a second over
// the last two readings (NAN).
int64_t counters_errors(const struct tele_table *t, uint32_t slot);
uint64_t counters_of_errors(void); // bit c: counter c is one of them
double counters_error_rate(const struct tele_table *t, uint32_t slot);
// All counters a second, as they are shown: in bytes where they count words. NAN: not known.
void counters_rates(const struct tele_table *t, uint32_t slot, double ret[TELE_COUNTERS]);
struct schema;
extern const struct schema schema_rates; // of such

#endif
