// SPDX-License-Identifier: Apache-2.0
// A schema with every type, nested as real ones are.
#ifndef WEFT_TESTS_UNIT_LIB_OPT_SCHEMA_H
#define WEFT_TESTS_UNIT_LIB_OPT_SCHEMA_H

#include <math.h>
#include <stddef.h>

#include "lib/mono.h"
#include "lib/opt.h"

struct demo_port {
    int64_t number;
    bool trust;
};

struct demo_device {
    const char *host;
    int64_t port;
    int driver;
    struct opt_strings tags;
    struct {
        int64_t timeout;
        double factor;
    } retry;
    struct opt_list ports; // struct demo_port
};

struct demo {
    struct {
        int64_t priority;
        uint64_t guid;
        bool enabled;
        int mode;
        int64_t sweep_interval;
        struct {
            double threshold;
            int64_t cache;
        } deep;
    } sm;
    const char *state_dir;
    const char *short_name;
    struct opt_strings listen;
    struct opt_list devices; // struct demo_device
    int64_t anything;
};

static const char *const demo_modes[] = {"minhop", "ftree", "up-down", NULL};
static const char *const demo_drivers[] = {"sonic", "cumulus", NULL};

#define AT(field) .offset = offsetof(struct demo, field)
static const struct opt_row demo_deep[] = {
    {"threshold", OPT_DOUBLE, 0, 0, 1, "0.25", .unit = "share of the link", .doc = "When a link is hot"},
    {"cache", OPT_SIZE, sizeof(double), 4096, 1 << 30, "64k", .reload = OPT_RELOAD_RESTART,
     .doc = "Memory for it"},
    {0},
};

#define SM(field) .offset = offsetof(struct demo, sm.field) - offsetof(struct demo, sm)
static const struct opt_row demo_sm[] = {
    {"priority", OPT_INT, SM(priority), .min = 0, .max = 15, .def = "4", .reload = OPT_RELOAD_RESWEEP,
     .doc = "Priority in the election of the master: the higher wins, at equal priorities the lower GUID. "
            "This text is long "
            "enough that it has to be wrapped over lines"},
    {"guid", OPT_GUID, SM(guid), .doc = "Port to bind to, 0 for the first active one"},
    {"enabled", OPT_BOOL, SM(enabled), .def = "true", .doc = "Run it at all"},
    {"mode", OPT_ENUM, SM(mode), .def = "ftree", .names = demo_modes, .doc = "Engine"},
    {"sweep_interval", OPT_DURATION, SM(sweep_interval), .min = 0, .max = 86400e9, .def = "10s",
     .doc = "Between light sweeps"},
    {"deep", OPT_SECTION, SM(deep), .sub = demo_deep, .doc = "Deeper"},
    {0},
};

static const struct opt_row demo_port[] = {
    {"number", OPT_INT, offsetof(struct demo_port, number), .min = 1, .max = 254,
     .doc = "Number of the port"},
    {"trust", OPT_BOOL, offsetof(struct demo_port, trust), .doc = "Trust its DSCP"},
    {0},
};
static const struct opt_row demo_retry[] = {
    {"timeout", OPT_DURATION, 0, .min = 1e6, .max = 60e9, .def = "500ms", .doc = "For one try"},
    {"factor", OPT_DOUBLE, sizeof(int64_t), .min = 1, .max = INFINITY, .def = "2", .doc = "Growth"},
    {0},
};
#define DEV(field) .offset = offsetof(struct demo_device, field)
static const struct opt_row demo_device[] = {
    {"host", OPT_STRING, DEV(host), .doc = "Name or address"},
    {"port", OPT_INT, DEV(port), .min = 1, .max = 65535, .def = "22", .doc = "TCP port"},
    {"driver", OPT_ENUM, DEV(driver), .names = demo_drivers, .doc = "Which driver"},
    {"tags", OPT_STRINGS, DEV(tags), .def = "[leaf, \"rack 1\"]", .doc = "Free labels"},
    {"retry", OPT_SECTION, DEV(retry), .sub = demo_retry, .doc = "Retries"},
    {"ports", OPT_LIST, DEV(ports), .sub = demo_port, .elem_size = sizeof(struct demo_port),
     .doc = "Ports apart from the rest"},
    {0},
};

static const struct opt_row demo_rows[] = {
    {"sm", OPT_SECTION, AT(sm), .sub = demo_sm, .doc = "The subnet manager"},
    {"state_dir", OPT_STRING, AT(state_dir), .def = "/var/lib/weft", .reload = OPT_RELOAD_RESTART,
     .doc = "Where state is kept"},
    {"short_name", OPT_STRING, AT(short_name), .min = 0, .max = 8, .doc = "A name"},
    {"listen", OPT_STRINGS, AT(listen), .min = 1, .max = 3, .def = "127.0.0.1:8470", .doc = "Addresses"},
    {"devices", OPT_LIST, AT(devices), .sub = demo_device, .elem_size = sizeof(struct demo_device),
     .doc = "Switches"},
    {"anything", OPT_INT, AT(anything), .doc = "No limits"},
    {0},
};
#undef AT
#undef SM
#undef DEV

#endif
