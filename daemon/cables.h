// SPDX-License-Identifier: Apache-2.0
// What ibdiagnet's file says of one fabric's cables, modules and devices: read by a worker when it is another
// file and nobody writes it just now, kept until the next one can be read, and told of when nobody writes it
// any more. The loop's.
//
// Only the file's own time says how old it is. One of the future has no age: it counts as written when it was
// read, and is read again when it is another one that has stayed as it is from one look to the next.
#ifndef WEFT_DAEMON_CABLES_H
#define WEFT_DAEMON_CABLES_H

#include <stdint.h>

struct cables;
struct pool;
struct tele_modules;

struct cables_callbacks {
    void *arg;
    void (*read)(void *arg); // there is another reading
    void (*event)(void *arg, const char *kind, const char *severity, const char *subject, const char *text);
};

// NULL: no file is given; that is fine below. Strings are copied.
struct cables *cables_new(struct pool *p, const char *fabric, const char *path,
                          const struct cables_callbacks *cb);
void cables_free(struct cables *c);
// Every now and then. wall_ns: the clock of files; aging_ns: that of readings, another one in virtual time.
void cables_look(struct cables *c, int64_t wall_ns, int64_t aging_ns);
struct tele_modules *cables_modules(const struct cables *c); // a reference, the caller's; NULL: none

#endif
