// SPDX-License-Identifier: Apache-2.0
// Inside notifications.
#ifndef WEFT_TELEMETRY_NOTIFY_PRIV_H
#define WEFT_TELEMETRY_NOTIFY_PRIV_H

#include <jansson.h>

#include "lib/rng.h"
#include "telemetry/courier.h"
#include "telemetry/notify.h"

enum notify_kind {
    NOTIFY_ALERTMANAGER,
    NOTIFY_WEBHOOK,
    NOTIFY_SYSLOG,
};

#define NOTIFY_BODIES 64u // of a load
#define NOTIFY_BODY_BYTES (256u << 10)

struct alerts; // notify_alerts.c

struct notify_target {
    struct notifier *n;
    enum notify_kind kind;
    char *text;
    struct courier *courier;
    struct loop_timer timer; // next try, next resend
    unsigned tries;
    bool told_failing, told_refused;
    mono_t failing_since;
    mono_t last_all; // Alertmanager: when all was sent
    bool sent_all;
    struct notifier_status status;
    struct alerts *alerts; // Alertmanager
    // events
    uint64_t cursor, saved;              // the last event that was taken; … in meta.db
    uint64_t load[NOTIFY_BODIES];        // events of the load under way, by body
    uint64_t looked_at;                  // the last event behind them that needs no telling
    uint64_t dropped_untold, dropped_to; // too old; … so far they are counted
    unsigned num_loading;                // bodies
};

struct notifier {
    struct loop *loop;
    struct db *db;
    const struct alarms *alarms;
    struct notifier_callbacks cb;
    char *external_url, host[256];
    unsigned facility;
    enum alarm_severity severity;
    int64_t resend_ns, replay_ns;
    struct notify_target *target;
    unsigned num;
    struct loop_timer save;
    struct rng rng;
};

// --- notify.c ---
// Until the next try after one that failed, where the answer asked for so long.
int64_t notify_wait(const struct notify_target *t, int64_t retry_after_ns, uint64_t random);

// --- notify_alerts.c ---
struct alerts *alerts_new(void);
void alerts_free(struct alerts *a);
void alerts_change(struct notify_target *t, const struct alarm_change *c);
// Composes what is to be sent; all: compares with the list before, and what is known already is due again.
// What finds no room stays due. Returns bodies.
unsigned alerts_compose(struct notify_target *t, bool all, struct buf ret[NOTIFY_BODIES]);
// So many bodies were taken; refused: and the next one never will be. Returns how many alerts were taken.
unsigned alerts_done(struct notify_target *t, unsigned delivered, bool refused);
// One alert as Alertmanager's API has it; ends_ns 0: left out.
json_t *alert_json(const struct notifier *n, const struct alarm *m, int64_t ends_ns);

// --- notify_events.c ---
bool notify_event_kind(const char *kind);
void events_load(struct notify_target *t); // where it was, from meta.db
unsigned events_compose(struct notify_target *t, struct buf ret[NOTIFY_BODIES]);
void events_done(struct notify_target *t, unsigned delivered, bool refused);
void events_save(struct notify_target *t);

#endif
