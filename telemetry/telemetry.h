// SPDX-License-Identifier: Apache-2.0
// Telemetry of one fabric: reads the counters of all its ports, keeps what they mean, and finds what is
// wrong.
//
//   collect.c   who is asked what and when; one device costs only itself
//   accum.c     readings to accumulators: clears, wraps, saturation, nonsense
//   table.c     ports by slot, as the snapshot has them
//   rate.c      rates, use, waits, bit errors         congest.c   trees of waiting ports
//   health.c    rules and states of links             alarm.c     the list of alarms (one for all fabrics)
//   isolate.c   which links to keep traffic off       remote_write.c, notify.c   to others
//   module.c    what ibdiagnet has seen               device.c   fans, power supplies, ASICs
//
// A sweep reads every port once in `interval`; at its end `swept` is called, then congestion, health and the
// store are fed. Loop thread. It knows the subnet manager only by the snapshots it is given.
#ifndef WEFT_TELEMETRY_TELEMETRY_H
#define WEFT_TELEMETRY_TELEMETRY_H

#include "db/series.h"
#include "fabric/groups.h"
#include "fabric/tables.h"
#include "mad/engine.h"
#include "telemetry/alarm.h"
#include "telemetry/congest.h"
#include "telemetry/device.h"
#include "telemetry/health.h"
#include "telemetry/table.h"

struct pool;
struct tele;
struct tele_device;  // module.h
struct tele_module;  // module.h
struct tele_modules; // module.h

struct tele_opts {
    const char *fabric;
    int64_t interval_ns;        // of a sweep; 0 = nothing is collected
    int64_t errors_interval_ns; // of the error counters between sweeps; 0 = with the sweep
    int64_t detail_interval_ns; // of the groups SPEED, RCV_DETAIL, XMIT_DETAIL
    unsigned per_device;        // requests at once to one device
    bool clear_saturated;       // clear counters that cannot count further (only those; never others)
    const char *dir; // the fabric's folder of history: what accumulators need over restarts is kept there;
                     // NULL: they begin anew
    const char *no_history; // why there is no history although it is wanted (borrowed); NULL otherwise
    int64_t history_ms;     // series_report.last_ms: time of the newest sweep that history has
    uint32_t part_ports;    // the end of a sweep is cut after so many ports; 0: after 3 ms. For tests
    struct pool *pool;      // for what is written to dir; NULL: on the loop, as congestion's trees then are,
                            // which else a thread of its own makes
};
struct tele_callbacks {
    void *arg;
    void (*event)(void *arg, const char *kind, const char *severity, const char *subject, const char *text);
    void (*swept)(void *arg); // a sweep has ended; everything is fed
};
// series, alarms may be NULL. None is owned. tele_free(): after the engine, so that no answer comes any more.
struct tele *tele_new(struct loop *l, struct mad_engine *e, struct series *s, struct alarms *a,
                      const struct tele_opts *o, const struct tele_callbacks *cb);
void tele_free(struct tele *t);
// Of one that was told of no fabric: no answer comes any more, so that it may be freed before the engine.
bool tele_is_idle(const struct tele *t);
// A new generation; references are taken. Nothing is collected before the first, nor while f is NULL (we are
// not the master, the port is lost).
void tele_fabric(struct tele *t, const struct fabric *f, const struct fabric_tables *tables,
                 const struct fabric_groups *groups);
// What is meant to be there (a reference is taken; NULL: not known): names of what is away, and links that
// should be up. Before tele_fabric() when both are new.
void tele_blueprint(struct tele *t, const struct fabric *known);
// What of cables, modules and devices is known from elsewhere, from now on; NULL: nothing. Takes it. What is
// older than a day is shown, and says nothing of how anything is now.
#define TELE_MODULES_OLD_NS (24 * 3600 * MONO_S)
void tele_set_modules(struct tele *t, struct tele_modules *m);
const struct tele_table *tele_table(const struct tele *t);
const struct congest *tele_congest(const struct tele *t);
struct health *tele_health(struct tele *t);
void tele_links(const struct tele *t, struct health_count *ret); // by how they are; of the last sweep

// Ticks of PortXmitWait by virtual lane since the device cleared them (PortVLXmitWaitCounters), read now, on
// demand. done is called once, from the loop, never from inside the call: status 0, -ETIMEDOUT, -EOPNOTSUPP
// (the device has no such attribute), -EPROTO (answered for another port), -ENOENT (no such port, or nothing
// is collected), -ECANCELED (tele_free, another generation). ticks is valid during the call; 16 bits on the
// wire, 65535 = that many or more.
struct tele_vl_waits {
    int status;
    const char *text;   // why not, for people; ""
    uint32_t ticks[16]; // by VL
};
typedef void tele_vl_wait_fn(void *arg, const struct tele_vl_waits *w);
void tele_vl_wait(struct tele *t, uint64_t node_guid, uint8_t port, tele_vl_wait_fn *done, void *arg);

// What the performance agent cannot say, of a file of ibdiagnet; NULL: no source for this slot.
const struct tele_module *tele_module(const struct tele *t, uint32_t slot);
const struct tele_device *tele_device(const struct tele *t, uint64_t guid); // the same; NULL: no source
struct tele_modules *tele_modules_of(const struct tele *t);                 // all of it; NULL; borrowed
const struct devices *tele_devices(const struct tele *t);                   // what is wrong with them
int64_t tele_modules_age(const struct tele *t, int64_t taken_ns);           // ns; 0 at least

struct tele_status {
    uint64_t sweeps, late;        // finished; begun later than they should
    int64_t last_wall_ns;         // the last one's end; 0 = none yet
    int64_t last_ns;              // how long it took
    uint32_t ports, read, unread; // of the last sweep
    uint64_t mads, timeouts, refused;
    uint64_t resets, saturated, nonsense; // found since the start: ports whose counters were cleared by
                                          // others or by a reboot; counters at their maximum; answers dropped
    uint64_t reboots, wraps, cleared;     // agents all of whose counters began anew (among resets); 32-bit
                                          // counters that went round; clears by us
    uint64_t since_ns; // CPU of collecting, congestion, health and history, since the start
    uint64_t congestion_ns, health_ns, history_ns; // parts of it
};
void tele_get_status(const struct tele *t, struct tele_status *ret);
struct tele_unread_node { // a device that does not give its counters
    uint64_t guid;
    enum tele_unread why;
    int64_t since; // loop time
    uint32_t ports;
};
uint32_t tele_unread_nodes(const struct tele *t, struct tele_unread_node **ret); // malloc'd, the caller's

#endif
