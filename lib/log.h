// SPDX-License-Identifier: Apache-2.0
// The log: one line an event, "event-name key=value key=value", greppable. Levels say who is to blame: error
// (we failed), warning (going on without), notice (the fabric changed), remote (a peer misbehaves;
// rate-limited per peer), debug. Only services and daemon/ log; lib/, mad/, fabric/, routing/, qos/ return
// errors. The sink is stderr: with sd-daemon priorities under systemd ($JOURNAL_STREAM), with time and level
// otherwise. The only global state of the program lives here. Thread-safe.
#ifndef WEFT_LIB_LOG_H
#define WEFT_LIB_LOG_H

#include <stdint.h>

#include "lib/mono.h"

enum log_level {
    LOG_LEVEL_ERROR,
    LOG_LEVEL_WARNING,
    LOG_LEVEL_NOTICE,
    LOG_LEVEL_REMOTE,
    LOG_LEVEL_DEBUG,
};

void log_set_level(enum log_level most_verbose); // default notice and remote
// A second sink for tests and the event stream; NULL removes it. Called with the log's lock held: must not
// log.
void log_set_hook(void (*hook)(void *arg, enum log_level level, const char *event, const char *text),
                  void *arg);

// event: lower-case-with-dashes. fmt gives "key=value" pairs; control characters in values are escaped.
// For a value in double quotes that comes from outside: s with a backslash before each double quote and
// backslash, cut to size; returns buf.
const char *log_quote(const char *s, char *buf, unsigned long size);
void log_error(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_warning(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_notice(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void log_debug(const char *event, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// peer: who misbehaves (a GUID, or a LID); at most a few lines a minute for each (peer, event), the rest is
// counted and told.
// The line begins with peer=: values up to 0xffff are written as a LID (decimal), others as a GUID.
void log_remote(uint64_t peer, const char *event, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
// Tells what was held back so far; at the end of the program, or now and then.
void log_flush(void);
// The clock of the rate limit, for tests; NULL is mono_now().
void log_set_clock(mono_t (*now)(void));

#endif
