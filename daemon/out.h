// SPDX-License-Identifier: Apache-2.0
// What goes out: remote write of each fabric's counters, notifications of alarms.
#ifndef WEFT_DAEMON_OUT_H
#define WEFT_DAEMON_OUT_H

#include "daemon/fab.h"
#include "telemetry/alarm.h"

struct out;

// Whether what out_new() would open are targets at all: URLs, labels. -EINVAL and *e.
int out_check(const struct config *c, struct err *e);

// After the fabrics, before the API (*env->api is set later): fills what of their struct api_fabric it makes.
// NULL and *e: a target that is none. Without any target there is nothing to do, and that is fine.
struct out *out_new(const struct fab_env *env, struct fab *const *fab, unsigned num, struct err *e);
void out_free(struct out *o);                 // before the fabrics; NULL is fine
struct notifier *out_notifier(struct out *o); // NULL: nobody is notified
// The functions that follow take NULL too.
void out_history(struct out *o, struct fab *f);  // of the fabric has begun after all; NULL is fine
void out_snapshot(struct out *o, struct fab *f); // a new generation, or another blueprint
void out_alarm_event(struct out *o, const char *kind);
void out_alarm_change(struct out *o, const struct alarm_change *c);

#endif
