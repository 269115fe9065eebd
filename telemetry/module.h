// SPDX-License-Identifier: Apache-2.0
// Cables and modules, as ibdiagnet has seen them: what no performance agent tells. From ibdiagnet2.db_csv
// (section CABLE_INFO) or ibdiagnet2.cables, in the forms that ibdiagnet 2.x writes. A value that it does not
// give (NA, N/A, -1, an empty one) is NAN or "". Immutable once read; any thread.
#ifndef WEFT_TELEMETRY_MODULE_H
#define WEFT_TELEMETRY_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/hash.h"

struct err;
struct findings;

#define MODULE_LANES 8
struct tele_module {
    uint64_t node_guid;
    uint8_t port;
    const char *vendor, *part, *serial, *revision, *kind; // "" = not given
    double celsius;                                       // NAN = not given
    double metres;
    uint8_t lanes; // for which there are powers
    double rx_dbm[MODULE_LANES], tx_dbm[MODULE_LANES];
};

struct tele_modules;
// A line that cannot be understood is told by tell (line from 1) and left out; the rest is used. NULL and *e
// when the file cannot be read or has nothing of cables.
struct tele_modules *tele_modules_read(const char *path,
                                       void (*tell)(void *arg, unsigned line, const char *text), void *arg,
                                       struct err *e);
void tele_modules_free(struct tele_modules *m);
uint32_t tele_modules_num(const struct tele_modules *m);
const struct tele_module *tele_modules_find(const struct tele_modules *m, uint64_t node_guid, uint8_t port);

#endif
