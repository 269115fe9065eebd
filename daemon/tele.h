// SPDX-License-Identifier: Apache-2.0
// The counters of one fabric: its history (which outlives a lost port), its collector, and what both need of
// the subnet manager.
#ifndef WEFT_DAEMON_TELE_H
#define WEFT_DAEMON_TELE_H

#include "daemon/fab.h"

struct wire_tele;

// Opens history under the state directory; without a usable folder counters are collected and not kept, the
// log says so, and it is tried again every 30 s. Fills what of *api it makes. NULL when nothing is to be
// collected.
struct wire_tele *wire_tele_new(const struct fab_env *env, const struct config_fabric *c,
                                struct api_fabric *api);
void wire_tele_free(struct wire_tele *w);
// fn after each sweep, when everything is fed.
void wire_tele_on_swept(struct wire_tele *w, void (*fn)(void *arg), void *arg);
// fn when history has begun after all: once. The collector, if there is one, is another one then, and waits
// for its first snapshot.
void wire_tele_on_history(struct wire_tele *w, void (*fn)(void *arg), void *arg);
// The port is open.
void wire_tele_open(struct wire_tele *w, struct mad_engine *e);
void wire_tele_close(struct wire_tele *w); // the engine is gone
// Something of the manager is another one now.
void wire_tele_snapshot(struct wire_tele *w, const struct sm *sm);

#endif
