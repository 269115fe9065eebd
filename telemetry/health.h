// SPDX-License-Identifier: Apache-2.0
// Health of links: rules with windows and hysteresis over the counters of both ends, and a state per link
// that is sticky. Rules are rows (health_rules.c: signal, window, threshold, clear condition, source). What a
// rule says is raised as an alarm by whoever feeds this. Pure but for its own state: times come in.
//
// Loop thread; a feed costs below 1 us a port and counter that has moved; about 400 bytes a port, more where
// errors have been.
#ifndef WEFT_TELEMETRY_HEALTH_H
#define WEFT_TELEMETRY_HEALTH_H

#include "telemetry/alarm.h"
#include "telemetry/table.h"

struct health;

enum health_state {
    HEALTH_UNKNOWN,
    HEALTH_HEALTHY,
    HEALTH_UNSURE,
    HEALTH_DEGRADED,
    HEALTH_FLAPPING,
    HEALTH_FAILING,
    HEALTH_DOWN
};
const char *health_state_name(enum health_state s);

struct health_opts {
    double ber_limit; // post-FEC; 0 = 1e-14 for the short window, 1e-15 for the long one
};
struct health_sink { // how verdicts leave: by rule, link and severity. Strings borrowed
    void *arg;
    void (*raise)(void *arg, const char *rule, uint32_t slot, enum alarm_severity s, const char *reason,
                  const char *evidence_json);
    void (*clear)(void *arg, const char *rule, uint32_t slot); // slot: the lower of the link's two
};
struct health *health_new(const struct health_opts *o, const struct health_sink *sink);
void health_free(struct health *h);
// After each sweep; also after a fast one of errors only. now: loop time.
void health_feed(struct health *h, const struct tele_table *t, int64_t now);
// What is known from elsewhere: a link of the blueprint that is (not) up (the subnet manager knows at once),
// a module's temperature in degrees C (NAN: no source).
void health_link(struct health *h, uint32_t slot, bool up, int64_t now);
void health_module(struct health *h, uint32_t slot, double celsius, int64_t now);

struct health_view { // of the link at a slot; both its slots give the same
    enum health_state state;
    int64_t since;              // loop time of the state
    const char *rule;           // the worst that holds; ""
    char why[160];              // with numbers
    const char *advice;         // ""
    int64_t sure_at;            // HEALTH_UNSURE: when enough bits will have passed; 0
    double symbol_ber, raw_ber; // last estimates; NAN
};
void health_view(const struct health *h, const struct tele_table *t, uint32_t slot, struct health_view *ret);
struct health_count {
    uint32_t links[HEALTH_DOWN + 1];
};
void health_count(const struct health *h, const struct tele_table *t, struct health_count *ret);

#endif
