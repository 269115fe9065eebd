// SPDX-License-Identifier: Apache-2.0
// Remote write: what the store keeps is sent on to Prometheus, VictoriaMetrics, Mimir, Thanos or whoever else
// takes Prometheus remote write 1.0. One of these a fabric.
//
// A thread of its own reads the store behind a cursor (series_scan()), makes requests (write_batch.h) and
// posts them, one at a time. The store is the queue: while the receiver is away nothing is held in memory but
// the requests of one scan (some megabytes), and afterwards everything is sent that the store still has. What
// a receiver answers with 4xx (429 and 408 apart) is dropped, counted and told once; everything else is tried
// again, after half a second first and half a minute at most, or when Retry-After says so.
//
// Before the first request of a scan is sent, the scan's cursor is made durable in meta.db, and how far it
// got follows once a second. The same cursor gives the same requests again; so a request is sent twice only
// where its answer was lost, or after a crash those of the last second, and then as it was before. A receiver
// that refuses what it has had (Prometheus: "out of order") does so for the whole of it.
//
// Names and labels are those of /metrics. Ports that neither the fabric nor the blueprint knows are left out
// and counted.
#ifndef WEFT_TELEMETRY_REMOTE_WRITE_H
#define WEFT_TELEMETRY_REMOTE_WRITE_H

#include "fabric/fabric.h"
#include "lib/loop.h"
#include "telemetry/write_request.h"

struct db;
struct err;
struct remote_write;

struct remote_write_opts {    // strings are copied
    const char *fabric;       // its name in meta.db
    const char *fabric_label; // label of every series; NULL: none
    const char *dir;          // of its store
    const char *url, *bearer_token_file, *ca_file;
    const struct rw_label *label; // of every series
    unsigned num_labels;          // at most 32
    int64_t interval_ns;          // between two looks for what is new
    int64_t backfill_ns;          // at the first start so much of what is kept is sent; 0 = none of it
};
struct remote_write_callbacks { // on the loop
    void *arg;
    // "remote-write-failing", "remote-write-recovered", "remote-write-refused"
    void (*event)(void *arg, const char *kind, const char *severity, const char *text);
    void (*behind)(void *arg, bool on, const char *text); // more than five minutes; each ten seconds while on
};
// What can be said of url and labels without opening anything; url "": not looked at. -EINVAL, -E2BIG and *e.
int remote_write_check(const struct remote_write_opts *o, struct err *e);
// NULL and *e: no good URL or label. db may be NULL (nothing survives a restart).
struct remote_write *remote_write_new(struct loop *l, struct db *db, const struct remote_write_opts *o,
                                      const struct remote_write_callbacks *cb, struct err *e);
// Stops within a moment: what is being sent is given up and sent again next time.
void remote_write_free(struct remote_write *w);
// What ports are called; references are taken. Nothing is sent before the first that is not NULL.
void remote_write_names(struct remote_write *w, const struct fabric *f, const struct fabric *known);

struct remote_write_status {
    uint64_t samples, requests, bytes; // taken by the receiver; bytes as sent
    uint64_t retries;
    uint64_t dropped;     // samples that it refused
    uint64_t had;         // samples that it had already
    uint64_t unnamed;     // samples of ports that nobody knows
    int64_t lag_ns;       // age of the oldest sample that is known and not taken; 0 = none
    int64_t last_wall_ns; // of the last request taken; 0 = none yet
    bool failing;
    char text[200]; // why
};
void remote_write_get_status(struct remote_write *w, struct remote_write_status *ret);

#endif
