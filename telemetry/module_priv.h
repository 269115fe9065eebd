// SPDX-License-Identifier: Apache-2.0
// For module.c and module_csv.c only.
#ifndef WEFT_TELEMETRY_MODULE_PRIV_H
#define WEFT_TELEMETRY_MODULE_PRIV_H

#include <stddef.h>

#include "telemetry/module.h"

#define MODULE_MAX 1000000 // of each: modules, devices, fans, power supplies

struct tele_modules {
    unsigned refs;
    struct arena *arena;
    struct tele_module *one;
    struct tele_device *device;
    struct tele_fan *fan;
    struct tele_psu *psu;
    uint32_t num, room, num_devices, devices_room, num_fans, fans_room, num_psus, psus_room;
    struct u64map by_port, by_guid, by_fan, by_psu; // by_guid: devices; by_fan, by_psu: by device and number
};

struct module_reading { // of one file
    struct tele_modules *m;
    void (*tell)(void *arg, unsigned line, const char *text);
    void *arg;
    unsigned line;
    int64_t taken_ns;
    uint32_t before; // modules that another file has told of
};

void module_tell(const struct module_reading *r, const char *text);
bool module_is_none(const char *v);
const char *module_keep(struct tele_modules *m, const char *v); // a copy; what cannot be printed is "?"
double module_number(const char *v, double low, double high);   // NAN
char *module_blanks(char *s);                                   // trims them
char *module_trim(char *s);                                     // blanks and quotes
char *module_next_line(char **at);
// "2025-03-31 23:43:18 UTC +0000": becomes taken_ns; which stays when it is none, or not before that.
void module_date(struct module_reading *r, const char *text);
// NULL when it cannot be, which is told, or is known already.
struct tele_module *module_add(struct module_reading *r, uint64_t guid, unsigned long port);
void module_set(struct tele_modules *m, struct tele_module *o, const char *name, const char *v);
void module_plain(const char *name, char *buf, size_t size); // its letters and digits, small

// module_csv.c
void module_read_csv(struct module_reading *r, char *text);
void module_settle(struct tele_modules *m); // all is read: fans and power supplies to their devices

#endif
