// SPDX-License-Identifier: Apache-2.0
// Requests to weftd over its unix socket. One connection, kept between requests; blocking, with a deadline,
// and ended at once by an interrupt (cli_interrupted).
#ifndef WEFT_CLI_HTTP_H
#define WEFT_CLI_HTTP_H

#include <jansson.h>
#include <signal.h>
#include <stdbool.h>

#include "lib/buf.h"

struct err;
struct http;

// Exit codes of weft; also what a request came to.
enum cli_exit {
    CLI_OK = 0,
    CLI_FINDINGS = 1,
    CLI_USAGE = 2,
    CLI_UNREACHABLE = 3,
    CLI_DENIED = 4,
    CLI_TIMEOUT = 5,
    CLI_PARTIAL = 6,
    CLI_INTERRUPTED = 130,
};

extern volatile sig_atomic_t cli_interrupted; // set by the handler of SIGINT, SIGTERM and SIGHUP

struct http_reply {
    long status;
    json_t *json; // NULL when the body is none or not JSON
    struct buf body;
    char location[256];
};
void http_reply_done(struct http_reply *r);

struct http *http_new(const char *socket); // copied
void http_free(struct http *h);
const char *http_socket(const struct http *h);
// path: from /api/v1 on, with its query; body may be NULL. CLI_OK for 2xx; else *e says what happened and
// what to do, and *ret holds what was answered. Call http_reply_done() in either case.
enum cli_exit http_call(struct http *h, const char *method, const char *path, json_t *body, double timeout,
                        struct http_reply *ret, struct err *e);
// Server-sent events: fn for each, with its id and its data; it returns false to end. last_id: Last-Event-ID,
// 0 = none. Returns when the stream ends: CLI_OK when weftd closed it or fn ended it.
typedef bool http_event_fn(void *arg, const char *id, const char *data);
enum cli_exit http_stream(struct http *h, const char *path, unsigned long long last_id, http_event_fn *fn,
                          void *arg, struct err *e);
// Adds key=value to a path, percent-encoded, after ? or &.
void http_query(struct buf *path, const char *key, const char *value);
void http_segment(struct buf *path, const char *segment); // adds "/" and the segment, percent-encoded

#endif
