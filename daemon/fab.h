// SPDX-License-Identifier: Apache-2.0
// One managed fabric: its transport (a port, or a simulated fabric), its MAD engine and its subnet manager,
// wired together and opened again when the port fails.
#ifndef WEFT_DAEMON_FAB_H
#define WEFT_DAEMON_FAB_H

#include "api/api.h"
#include "daemon/config.h"
#include "lib/err.h"

struct fab;

struct fab_env { // borrowed, process lifetime
    struct loop *loop;
    struct pool *pool;
    struct db *db;
    struct alarms *alarms; // NULL: none are kept
    const struct config *config;
    struct api **api;                                                  // set later
    void (*swept)(void *arg, struct fab *f, const struct sm_sweep *s); // may be NULL
    void (*snapshot)(void *arg, struct fab *f);                        // may be NULL
    void (*history)(void *arg, struct fab *f); // has begun after all; a snapshot follows; may be NULL
    void *arg;
};

// An event is kept, with the present time, and told to those who listen. Does nothing without a database.
void fab_env_event(const struct fab_env *env, const struct db_event *ev);

// Opens it. A port that cannot be used now but may heal gives a fab that keeps trying (fab_error() says why);
// what cannot heal gives NULL and *e. with `once` nothing is tried again.
struct fab *fab_new(const struct fab_env *env, const struct config_fabric *c, bool once, struct err *e);
void fab_free(struct fab *f);
struct api_fabric *fab_api(struct fab *f);
// The configuration has changed in place; resweep: options that the devices must be told of.
void fab_reconfigure(struct fab *f, bool resweep);
struct sm *fab_sm(const struct fab *f); // NULL while the port is not open

// A file's fabric, to be looked at and computed on: no transport, no manager.
struct fab *fab_offline(const struct fab_env *env, const char *name_or_path, struct err *e);

#endif
