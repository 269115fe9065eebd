// SPDX-License-Identifier: Apache-2.0
// Alarms to others: Alertmanager, webhooks, syslog. Each target has a courier (thread) of its own, so that
// one that is away does not hold up the others.
//
//     notify.c         life cycle; one target's pace: what to send, when to try again
//     notify_alerts.c  Alertmanager's API v2: alarms as they are now, repeated before it takes them for over
//     notify_events.c  webhooks and syslog: events in their order, none left out, from meta.db
//     courier.c        threads             syslog.c, http_post.c  how it is sent
//
// Alertmanager is told of state: every alarm that holds and is not silenced is sent again each `resend`, with
// an endsAt of four times that, so that it ends there by itself should weft go away; one that is over is sent
// with the time of its end until that was taken, and for 15 minutes. After an outage or a restart it has the
// state of that moment.
// Where an answer asks for time (Retry-After), it gets a minute at most, and no more than a resend.
// Webhooks and syslog are told of events ("alarm-raised", …) one after the other. The id of the last one
// taken is kept in meta.db, so that after an outage or a restart the rest follows; what is older than
// `replay` by then is left out, counted and told. An event is told twice only where its answer was lost.
//
// Loop thread.
#ifndef WEFT_TELEMETRY_NOTIFY_H
#define WEFT_TELEMETRY_NOTIFY_H

#include "lib/loop.h"
#include "telemetry/alarm.h"

struct db;
struct err;
struct notifier;

struct notifier_opts {               // strings are copied
    const char *const *alertmanager; // URLs, "http://host:9093"; /api/v2/alerts is added; NULL-terminated
    const char *const *webhook;      // URLs that take the same JSON
    const char *const *syslog;       // "udp://host:514", "tcp://host:601", "unix:/dev/log"
    const char *bearer_token_file, *ca_file; // of HTTP
    const char *external_url;                // where people find weft: generatorURL
    const char *host;                        // of syslog; NULL: this machine's name
    unsigned facility;                       // of syslog
    enum alarm_severity severity;            // the least that is sent, but to syslog
    int64_t resend_ns;                       // 0 = a minute
    int64_t replay_ns;                       // 0 = a day
};
struct notifier_callbacks {
    void *arg;
    // "notify-failing", "notify-recovered", "notify-refused", "notify-dropped"; subject: the target
    void (*event)(void *arg, const char *kind, const char *severity, const char *subject, const char *text);
};
// Whether all targets are some, without opening anything; -EINVAL and *e.
int notifier_check(const struct notifier_opts *o, struct err *e);
// NULL and *e: a target that is none. db may be NULL: then webhooks and syslog get nothing. alarms: lives
// longer than this.
struct notifier *notifier_new(struct loop *l, struct db *db, const struct alarms *a,
                              const struct notifier_opts *o, const struct notifier_callbacks *cb,
                              struct err *e);
void notifier_free(struct notifier *n);
// struct alarms' callback `change`: state to Alertmanager.
void notifier_change(struct notifier *n, const struct alarm_change *c);
// There is a new event: those of kinds that begin with "alarm-", "silence-" and "maintenance-" are sent on.
void notifier_event(struct notifier *n, const char *kind);

struct notifier_status { // of one target
    const char *target;  // as configured; borrowed
    const char *kind;    // "alertmanager", "webhook", "syslog"
    uint64_t sent;       // alerts, or events
    uint64_t failed;     // loads
    uint64_t refused, dropped;
    bool failing;
    int64_t failing_ns; // for how long; 0
    char text[200];
};
unsigned notifier_targets(const struct notifier *n);
void notifier_get_status(const struct notifier *n, unsigned i, struct notifier_status *ret);

#endif
