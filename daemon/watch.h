// SPDX-License-Identifier: Apache-2.0
// What goes wrong with one fabric beyond its counters: the subnet manager's findings, events and state, and
// weft's own, as alarms; and isolation, which drains through the manager.
#ifndef WEFT_DAEMON_WATCH_H
#define WEFT_DAEMON_WATCH_H

#include "daemon/fab.h"

struct wire_watch;

// NULL where no alarms are kept. Fills what of *api it makes.
struct wire_watch *wire_watch_new(const struct fab_env *env, const struct config_fabric *c,
                                  struct api_fabric *api);
void wire_watch_free(
    struct wire_watch *w); // before the collector and the manager are; NULL is fine, here and below
void wire_watch_event(struct wire_watch *w, const struct sm_event *ev);
void wire_watch_look(struct wire_watch *w);  // something of the manager is another one now
void wire_watch_swept(struct wire_watch *w); // the collector has ended a sweep
void wire_watch_reconfigure(struct wire_watch *w);

#endif
