// SPDX-License-Identifier: Apache-2.0
// What others find, as alarms: findings, events and state of a fabric's subnet manager (S rows), and weft's
// own state (W rows). Which rule, how bad, about what: pure tables and functions; what must be remembered
// between two looks (since when, of which state) is a struct alarm_watch of the fabric.
//
// Loop thread. Knows the subnet manager only by what it is told: the daemon fills struct alarm_look.
#ifndef WEFT_TELEMETRY_ALARM_SOURCES_H
#define WEFT_TELEMETRY_ALARM_SOURCES_H

#include "fabric/builder.h"
#include "telemetry/alarm.h"

struct alarm_source {
    const char *rule;
    enum alarm_severity severity;
};
// By a finding's code and severity; false: no alarm.
bool alarm_of_finding(const char *code, enum finding_severity s, struct alarm_source *ret);

struct alarm_sm { // another subnet manager
    uint64_t guid, node_guid;
    uint8_t port, priority;
    const char *node; // its node's name, or ""
    enum { ALARM_SM_MASTER, ALARM_SM_STANDBY, ALARM_SM_DISCOVERING, ALARM_SM_NOT_ACTIVE } state;
};
struct alarm_look {             // borrowed during the call
    bool running;               // there is a manager: its port is open
    const char *state;          // "MASTER", …
    bool master;                // … and that is it
    bool sweep_ok;              // the last finished sweep was
    const struct fabric *live;  // NULL before the first sweep
    const struct fabric *known; // the blueprint, or NULL
    const struct findings *findings;
    const struct alarm_sm *sm;
    unsigned num_sms;
    const uint64_t *known_sms; // port GUIDs that may be managers too
    unsigned num_known_sms;
    int db_status; // 0, or why the database cannot be written
    const char *db_text;
    const char
        *db_anew;     // what is to be told, of the last hour: it was taken away and is written anew; or NULL
    const char *down; // why there is no manager, or NULL
};

struct alarm_watch;
struct alarm_watch *alarm_watch_new(struct alarms *a, const char *fabric);
void alarm_watch_free(struct alarm_watch *w);
// After each generation, and every ten seconds or so: raises what is, clears what is not. now: loop time;
// wall: ns since 1970, to find steps of the clock.
void alarm_watch_look(struct alarm_watch *w, const struct alarm_look *l, int64_t now, int64_t wall);
// Each event of the subnet manager.
void alarm_watch_event(struct alarm_watch *w, const char *kind, const char *severity, const char *subject,
                       const char *text);
// W06, from isolation (struct isolate_callbacks.cap).
void alarm_watch_cap(struct alarm_watch *w, bool reached, const char *text);

#endif
