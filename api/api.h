// SPDX-License-Identifier: Apache-2.0
// The REST API: HTTP on loopback and on a unix socket, served on the loop by libmicrohttpd. Renders; decides
// nothing. A resource is one row (method, path, role, handler, doc); resources and their JSON are described
// in doc/api.md.
#ifndef WEFT_API_API_H
#define WEFT_API_API_H

#include <stdbool.h>
#include <stdint.h>

#include "db/db.h"
#include "fabric/builder.h"
#include "lib/loop.h"
#include "lib/pool.h"
#include "mad/engine.h"
#include "sim/sim.h"
#include "sm/sm.h"
#include "telemetry/telemetry.h"

struct err;
struct isolate;
struct api;

struct api_fabric { // borrowed; lives as long as the api
    const char *name;
    const char *transport;        // "umad mlx5_0/1", "simulator rail-1024", "file x.txt"
    struct sm *sm;                // NULL offline
    struct mad_engine *engine;    // NULL offline
    struct sim *sim;              // NULL unless simulated
    const struct fabric *offline; // the fabric of a file, when there is no sm
    const struct findings *offline_findings;
    const char *down; // why there is no sm (port cannot be opened …): text for people, NULL when there is one
    struct tele *tele;                 // NULL offline, without a port, and where counters are not collected
    struct isolate *isolate;           // NULL where links are not isolated
    struct series *series;             // history's writer, for its state; NULL when nothing is kept
    struct remote_write *remote_write; // NULL: nowhere
    const char *no_history;            // why nothing is kept although it should be; NULL otherwise
    const char *series_dir;            // folder that readers of history open; NULL when nothing is kept
};

struct api_context {
    struct loop *loop;
    struct pool *pool;
    struct db *db; // NULL: no events are kept
    struct api_fabric *const *fabric;
    unsigned num_fabrics;
    struct alarms *alarms;           // of all fabrics; NULL offline
    const struct notifier *notifier; // NULL: nobody is notified
    bool metrics_guilbaults;         // /metrics has the names of that exporter too
    int64_t started_wall_ns;
    int64_t slice_ns; // of what is answered a slice a turn; 0: 3 ms. Tests have them cut as small as can be
};

struct api_opts {
    const char *address; // "127.0.0.1"
    int port;            // 0 = no TCP
    const char *socket;  // NULL = no unix socket; an old socket file that nobody listens on is replaced
};

// NULL and *e: address in use (by whom, if known), socket folder missing or not writable.
struct api *api_new(const struct api_context *c, const struct api_opts *o, struct err *e);
void api_free(struct api *a);
int api_port(const struct api *a);                   // TCP port bound (for port 0 with address: -1)
void api_changed(struct api *a, const char *fabric); // a new generation or state: caches and ETags go
void api_event(struct api *a, uint64_t event_id);    // for event streams
// Whether a silence's focus (lib/focus.h; fields name, guid, port, place, role, type, rail, su, tier, plane,
// kind, host) covers a port, or a node where port is 0.
bool api_focus_covers(struct api *a, const char *focus, const char *fabric, uint64_t node_guid, uint8_t port);

#endif
