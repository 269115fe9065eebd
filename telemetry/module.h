// SPDX-License-Identifier: Apache-2.0
// Cables, modules and devices, as ibdiagnet has seen them: what no performance agent tells. From
// ibdiagnet2.db_csv (sections CABLE_INFO, TEMP_SENSING, FANS_SPEED, FANS_THRESHOLDS, FANS_ALERT,
// POWER_SUPPLIES) and ibdiagnet2.cables, in the forms that ibdiagnet 2.x writes. A value that it does not
// give (NA, N/A, -1, an empty one) is NAN, -1 or "". Immutable once read; any thread.
//
//     module.c       files, ibdiagnet2.cables, values of modules, what they say of themselves
//     module_csv.c   ibdiagnet2.db_csv
//     device.c       what becomes of it: L18                  health_module.c   L16 and L17
#ifndef WEFT_TELEMETRY_MODULE_H
#define WEFT_TELEMETRY_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/hash.h"

struct err;

#define MODULE_LANES 8
struct tele_module {
    uint64_t node_guid;
    uint8_t port;
    const char *vendor, *part, *serial, *revision, *kind; // "" = not given
    const char *status;                                   // of the module, in its own words
    bool fault;                                           // … and that is a failure
    double celsius;                                       // NAN = not given
    double metres;
    uint8_t lanes; // for which there are powers
    double rx_dbm[MODULE_LANES], tx_dbm[MODULE_LANES];
    double rx_low, rx_high, tx_low, tx_high; // dBm: its own limits of alarm; NAN = not given
    int64_t taken_ns;                        // when ibdiagnet has looked; ns since 1970
};

// What a module says against itself.
struct tele_optics {
    bool fault;       // it says that it has failed
    uint8_t lane;     // the lane that is farthest outside its own limits, from 1; 0: none is
    bool rx, high;    // received, else sent; too much, else too little
    float dbm, limit; // of that lane
};
// false: it gives neither a state nor a power that it has limits for, so that nothing can be said.
bool tele_module_optics(const struct tele_module *m, struct tele_optics *ret);

enum tele_part_state { PART_UNKNOWN, PART_OK, PART_FAILED, PART_ABSENT };
const char *tele_part_state_name(enum tele_part_state s);
struct tele_fan {
    uint64_t node_guid;
    uint16_t index;        // as ibdiagnet numbers them
    int32_t rpm, min, max; // -1 = not given
    enum tele_part_state state;
};
struct tele_psu {
    uint64_t node_guid;
    uint16_t index;
    enum tele_part_state state;
    const char *bad;              // what is against it: "DC ERROR"; ""
    const char *dc, *fan, *alert; // in the device's words; ""
    const char *serial;
};
struct tele_device {
    uint64_t guid; // NodeGUID
    double celsius;
    uint64_t
        slow_fans; // a bit for each fan of which it says that it is too slow; their numbers may be others
    const struct tele_fan *fan; // by index
    const struct tele_psu *psu; // by index
    uint32_t num_fans, num_psus;
    int64_t taken_ns;
};

struct tele_modules;
// A file, or a folder: ibdiagnet2.db_csv and ibdiagnet2.cables in it, of which the younger one counts where
// both tell of a port. A line that cannot be understood is told by tell (line from 1) and left out; the rest
// is used. NULL and *e when nothing can be read or it has nothing of these.
struct tele_modules *tele_modules_read(const char *path,
                                       void (*tell)(void *arg, unsigned line, const char *text), void *arg,
                                       struct err *e);
// The same of text, which is changed: for what is not in a file.
struct tele_modules *tele_modules_parse(char *text, int64_t taken_ns,
                                        void (*tell)(void *arg, unsigned line, const char *text), void *arg);
// When the file was written last, or the younger of two; ns since 1970, -1: there is none.
int64_t tele_modules_written(const char *path);
struct tele_modules *tele_modules_ref(struct tele_modules *m); // of one thread, as is
void tele_modules_free(struct tele_modules *m);                // gives a reference back; NULL is none
uint32_t tele_modules_num(const struct tele_modules *m);
const struct tele_module *tele_modules_find(const struct tele_modules *m, uint64_t node_guid, uint8_t port);
uint32_t tele_devices_num(const struct tele_modules *m);
const struct tele_device *tele_device_at(const struct tele_modules *m, uint32_t i);
const struct tele_device *tele_device_find(const struct tele_modules *m, uint64_t guid); // NULL

#endif
