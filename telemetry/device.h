// SPDX-License-Identifier: Apache-2.0
// Health of devices: ASIC temperature of switches, fans, power supplies, as ibdiagnet's file has them (L18).
// One verdict a device, whatever of it has failed: one spine's fans are one alarm. Of what is not wrong
// nothing is kept. What a reading does not have is not well again: a fan that had failed and is not named any
// more is still to be replaced.
//
// Adapters' temperatures are shown and not judged: the limits are switches'.
//
// Loop thread; pure but for its own state.
#ifndef WEFT_TELEMETRY_DEVICE_H
#define WEFT_TELEMETRY_DEVICE_H

#include "telemetry/alarm.h"
#include "telemetry/module.h"

struct devices;
struct device_limits { // a row of health_rules.c
    double celsius[2];
    enum alarm_severity severity[2]; // the higher one also of parts that have failed
    double clear_celsius;            // below the limit
};
extern const struct device_limits device_limits;

struct device_sink { // strings borrowed
    void *arg;
    void (*raise)(void *arg, uint64_t guid, enum alarm_severity s, const char *reason,
                  const char *evidence_json);
    void (*clear)(void *arg, uint64_t guid);
};
struct devices *devices_new(const struct device_sink *sink);
void devices_free(struct devices *d);
// A reading of one device that was taken at `at` (loop time); the same again changes nothing.
void devices_feed(struct devices *d, const struct tele_device *x, bool is_switch, int64_t at);
// What stands and was not read for an hour or more says so; what was not read for HEALTH_MODULE_GONE is
// cleared: nothing is known of it any more. now: loop time.
void devices_age(struct devices *d, int64_t now);
// It is not there any more, or there is no source: what stands is cleared.
void devices_forget(struct devices *d, uint64_t guid);

struct device_view {
    bool stands; // else all that is known is well
    enum alarm_severity severity;
    int64_t since, read_at; // loop time
    const char *reason;     // borrowed; ""
};
void devices_view(const struct devices *d, uint64_t guid, struct device_view *ret);
// Those on which something stands; malloc'd, the caller's.
uint32_t devices_standing(const struct devices *d, uint64_t **ret_guid);

#endif
