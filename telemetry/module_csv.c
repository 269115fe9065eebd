// SPDX-License-Identifier: Apache-2.0
// ibdiagnet2.db_csv. What is read of it:
//
//   RUN_INFO         Date
//   CABLE_INFO       NodeGuid, PortNum, and what ibdiagnet2.cables has (module.c)
//   TEMP_SENSING     NodeGUID, CurrentTemperature: of the ASIC, degrees C
//   FANS_SPEED       NodeGuid, SensorIndex, FanSpeed: turns a minute
//   FANS_THRESHOLDS  NodeGuid, SensorIndex, MinSpeed, MaxSpeed
//   FANS_ALERT       NodeGuid, FansUnderLimit: a bit a fan
//   POWER_SUPPLIES   NodeGuid, PSUIndex, IsPresent, ACInput, DCState, AlertState, FanState, TemperatureState,
//                    SerialNumber
//
// Which sections and columns there are: NVIDIA, ibdiagnet user manual, "PHY Diagnostics"; that words of a
// power supply's states are "OK" or something else: exporters that read them. A word that is neither known as
// good nor as bad says nothing here: better no alarm than one that is none.
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/xalloc.h"
#include "telemetry/module_priv.h"

#define MAX_COLUMNS 256
#define MAX_INDEX 1000

struct row { // of a section: names of columns, and values
    char *name[MAX_COLUMNS], *value[MAX_COLUMNS];
    unsigned columns;
};

// Splits at commas outside quotes; returns how many, at most MAX_COLUMNS.
static unsigned split(char *line, char **ret)
{
    unsigned n = 0;
    bool quoted = false;
    char *from = line;
    for (char *p = line;; p++) {
        quoted ^= *p == '"';
        if (*p != 0 && (*p != ',' || quoted))
            continue;
        bool last = *p == 0;
        *p = 0;
        if (n < MAX_COLUMNS)
            ret[n++] = module_trim(from);
        from = p + 1;
        if (last)
            return n;
    }
}

// By the column's plain name; "" when there is none.
static const char *value_of(const struct row *row, const char *plain)
{
    char name[60];
    for (unsigned i = 0; i < row->columns; i++) {
        module_plain(row->name[i], name, sizeof(name));
        if (strcmp(name, plain) == 0)
            return row->value[i];
    }
    return "";
}

static bool guid_of(const struct row *row, uint64_t *ret)
{
    return guid_parse(value_of(row, "nodeguid"), ret) == 0 && *ret != 0;
}

// --- devices and their parts ---

static void *room_for(void *at, uint32_t num, uint32_t *room, size_t size)
{
    if (num < *room)
        return at;
    *room = *room ? 2 * *room : 64;
    return xreallocarray(at, *room, size);
}

static struct tele_device *device_get(struct module_reading *r, uint64_t guid)
{
    struct tele_modules *m = r->m;
    uint32_t i;
    if (u64map_get(&m->by_guid, guid, &i))
        return &m->device[i];
    if (m->num_devices == MODULE_MAX) {
        module_tell(r, "more than a million devices");
        return NULL;
    }
    m->device = room_for(m->device, m->num_devices, &m->devices_room, sizeof(*m->device));
    m->device[m->num_devices] = (struct tele_device){.guid = guid, .celsius = NAN, .taken_ns = r->taken_ns};
    u64map_set(&m->by_guid, guid, m->num_devices);
    return &m->device[m->num_devices++];
}

static uint64_t part_key(uint64_t guid, unsigned index)
{
    return hash_mix64(hash_mix64(guid) + index);
}

// The row's device and the number of the part; false, and told, when there is none.
static bool part_of(struct module_reading *r, const struct row *row, const char *column, uint64_t *ret_guid,
                    unsigned *ret_index)
{
    const char *text = value_of(row, column);
    char *end;
    if (text[0] == 0)
        text = value_of(row, "sensorindex");
    unsigned long index = strtoul(text, &end, 10);
    if (end == text || *end != 0)
        index = ULONG_MAX;
    *ret_index = (unsigned)index;
    if (guid_of(row, ret_guid) && index <= MAX_INDEX)
        return device_get(r, *ret_guid) != NULL;
    module_tell(r, "no NodeGuid, or no number of the part");
    return false;
}

static struct tele_fan *fan_get(struct module_reading *r, uint64_t guid, unsigned index)
{
    struct tele_modules *m = r->m;
    uint64_t key = part_key(guid, index);
    uint32_t i;
    if (u64map_get(&m->by_fan, key, &i)) // another one's number may be chosen so that it looks alike
        return m->fan[i].node_guid == guid && m->fan[i].index == index ? &m->fan[i] : NULL;
    if (m->num_fans == MODULE_MAX) {
        module_tell(r, "more than a million fans");
        return NULL;
    }
    m->fan = room_for(m->fan, m->num_fans, &m->fans_room, sizeof(*m->fan));
    m->fan[m->num_fans] =
        (struct tele_fan){.node_guid = guid, .index = (uint16_t)index, .rpm = -1, .min = -1, .max = -1};
    u64map_set(&m->by_fan, key, m->num_fans);
    return &m->fan[m->num_fans++];
}

static int32_t speed(const char *v)
{
    double d = module_number(v, 0, 1000000);
    return isnan(d) ? -1 : (int32_t)d;
}

static void read_fan(struct module_reading *r, const struct row *row)
{
    uint64_t guid;
    unsigned index;
    struct tele_fan *f = part_of(r, row, "fanindex", &guid, &index) ? fan_get(r, guid, index) : NULL;
    if (f != NULL && f->rpm < 0)
        f->rpm = speed(value_of(row, "fanspeed"));
}

static void read_fan_limits(struct module_reading *r, const struct row *row)
{
    uint64_t guid;
    unsigned index;
    struct tele_fan *f = part_of(r, row, "fanindex", &guid, &index) ? fan_get(r, guid, index) : NULL;
    if (f == NULL)
        return;
    f->min = speed(value_of(row, "minspeed"));
    f->max = speed(value_of(row, "maxspeed"));
}

static void read_fan_alert(struct module_reading *r, const struct row *row)
{
    uint64_t guid;
    const char *text = value_of(row, "fansunderlimit");
    struct tele_device *d = guid_of(row, &guid) ? device_get(r, guid) : NULL;
    if (d == NULL)
        module_tell(r, "no NodeGuid");
    else if (!module_is_none(text) && text[0] != '-')
        d->slow_fans = strtoull(text, NULL, 0);
}

static void read_temperature(struct module_reading *r, const struct row *row)
{
    uint64_t guid;
    struct tele_device *d = guid_of(row, &guid) ? device_get(r, guid) : NULL;
    if (d == NULL) {
        module_tell(r, "no NodeGUID");
        return;
    }
    double c = module_number(value_of(row, "currenttemperature"), -60, 200);
    if (isnan(d->celsius) && c != 0) // 0: no sensor
        d->celsius = c;
}

// --- power supplies ---

static bool is_one_of(const char *v, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strcasecmp(v, *list) == 0)
            return true;
    return false;
}

static enum tele_part_state word_state(const char *v)
{
    static const char *const good[] = {"ok",       "good", "normal",   "no alert",
                                       "no_alert", "none", "no error", NULL};
    static const char *const bad[] = {"err",   "fail",  "fault", "bad",  "not ok", "not_ok",
                                      "alert", "alarm", "crit",  "over", "under",  NULL};
    if (module_is_none(v))
        return PART_UNKNOWN;
    if (is_one_of(v, good))
        return PART_OK;
    if (strcasecmp(v, "nok") == 0)
        return PART_FAILED;
    for (unsigned i = 0; bad[i] != NULL; i++)
        if (strcasestr(v, bad[i]) != NULL)
            return PART_FAILED;
    return PART_UNKNOWN;
}

static bool is_absent(const char *v)
{
    static const char *const no[] = {"no", "0", "false", "absent", "not present", "not_present", NULL};
    return is_one_of(v, no);
}

// Its state, and what is against it.
static void judge_psu(struct module_reading *r, const struct row *row, struct tele_psu *p)
{
    static const struct {
        const char *plain, *word;
    } column[] = {{"dcstate", "DC"},
                  {"acinput", "AC"},
                  {"alertstate", "alert"},
                  {"fanstate", "fan"},
                  {"temperaturestate", "temperature"}};
    char bad[200] = "";
    size_t n = 0;
    p->state = PART_UNKNOWN;
    for (unsigned i = 0; i < sizeof(column) / sizeof(column[0]); i++) {
        const char *v = value_of(row, column[i].plain);
        enum tele_part_state s = word_state(v);
        if (s == PART_FAILED && n < sizeof(bad))
            n += (size_t)snprintf(bad + n, sizeof(bad) - n, "%s%s %.24s", n ? ", " : "", column[i].word, v);
        if (s == PART_OK && i == 0)
            p->state = PART_OK;
    }
    if (n > 0)
        p->state = PART_FAILED;
    if (is_absent(value_of(row, "ispresent"))) {
        p->state = PART_ABSENT;
        bad[0] = 0;
    }
    p->bad = bad[0] ? module_keep(r->m, bad) : "";
}

static void read_psu(struct module_reading *r, const struct row *row)
{
    struct tele_modules *m = r->m;
    uint64_t guid, key;
    unsigned index;
    uint32_t known;
    if (!part_of(r, row, "psuindex", &guid, &index))
        return;
    key = part_key(guid, index);
    if (u64map_get(&m->by_psu, key, &known))
        return; // of the younger file, or twice: the first one counts
    if (m->num_psus == MODULE_MAX) {
        module_tell(r, "more than a million power supplies");
        return;
    }
    m->psu = room_for(m->psu, m->num_psus, &m->psus_room, sizeof(*m->psu));
    struct tele_psu *p = &m->psu[m->num_psus];
    *p = (struct tele_psu){.node_guid = guid,
                           .index = (uint16_t)index,
                           .dc = module_keep(m, value_of(row, "dcstate")),
                           .fan = module_keep(m, value_of(row, "fanstate")),
                           .alert = module_keep(m, value_of(row, "alertstate")),
                           .serial = module_keep(m, value_of(row, "serialnumber"))};
    judge_psu(r, row, p);
    u64map_set(&m->by_psu, key, m->num_psus++);
}

// --- cables, the time ---

static void read_cable(struct module_reading *r, const struct row *row)
{
    uint64_t guid;
    const char *port = value_of(row, "portnum");
    if (guid_parse(value_of(row, "nodeguid"), &guid) != 0 || port[0] == 0) {
        module_tell(r, "no NodeGuid or PortNum");
        return;
    }
    struct tele_module *o = module_add(r, guid, strtoul(port, NULL, 10));
    for (unsigned i = 0; o != NULL && i < row->columns; i++)
        module_set(r->m, o, row->name[i], row->value[i]);
}

static void read_run(struct module_reading *r, const struct row *row)
{
    module_date(r, value_of(row, "date"));
}

static const struct section {
    const char *name;
    void (*row)(struct module_reading *r, const struct row *row);
} sections[] = {
    {"RUN_INFO", read_run},       {"CABLE_INFO", read_cable},           {"TEMP_SENSING", read_temperature},
    {"FANS_SPEED", read_fan},     {"FANS_THRESHOLDS", read_fan_limits}, {"FANS_ALERT", read_fan_alert},
    {"POWER_SUPPLIES", read_psu},
};

static const struct section *section_of(const char *name)
{
    for (unsigned i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
        if (strcmp(sections[i].name, name) == 0)
            return &sections[i];
    return NULL;
}

static void read_line(struct module_reading *r, const struct section *s, struct row *row, char *t)
{
    if (row->columns == 0) {
        row->columns = split(t, row->name);
        return;
    }
    if (split(t, row->value) != row->columns)
        module_tell(r, "another number of values than the section has columns");
    else
        s->row(r, row);
}

void module_read_csv(struct module_reading *r, char *text)
{
    const struct section *s = NULL;
    struct row row;
    char *line;
    while ((line = module_next_line(&text)) != NULL) {
        r->line++;
        char *t = module_blanks(line); // not the quotes of its first and last value
        if (strncmp(t, "START_", 6) == 0) {
            s = section_of(t + 6);
            row.columns = 0;
        } else if (strncmp(t, "END_", 4) == 0) {
            s = NULL;
        } else if (s != NULL && *t != 0) {
            read_line(r, s, &row, t);
        }
    }
    if (s != NULL)
        module_tell(r, "the file ends within a section: was it still being written?");
}

// --- the end ---

static int fan_order(const void *a, const void *b)
{
    const struct tele_fan *x = a, *y = b;
    if (x->node_guid != y->node_guid)
        return x->node_guid < y->node_guid ? -1 : 1;
    return (int)x->index - (int)y->index;
}

static int psu_order(const void *a, const void *b)
{
    const struct tele_psu *x = a, *y = b;
    if (x->node_guid != y->node_guid)
        return x->node_guid < y->node_guid ? -1 : 1;
    return (int)x->index - (int)y->index;
}

// Without a limit a fan that stands has failed when others of the device turn; where all stand it may be that
// it tells of none.
static void judge_fans(struct tele_fan *f, uint32_t n)
{
    bool turns = false;
    for (uint32_t i = 0; i < n; i++)
        turns = turns || f[i].rpm > 0;
    for (uint32_t i = 0; i < n; i++) {
        if (f[i].rpm < 0 || (f[i].rpm == 0 && f[i].min <= 0 && !turns))
            f[i].state = PART_UNKNOWN;
        else
            f[i].state = f[i].rpm == 0 || f[i].rpm < f[i].min ? PART_FAILED : PART_OK;
    }
}

void module_settle(struct tele_modules *m)
{
    uint32_t device, n;
    if (m->num_fans > 0)
        qsort(m->fan, m->num_fans, sizeof(*m->fan), fan_order);
    if (m->num_psus > 0)
        qsort(m->psu, m->num_psus, sizeof(*m->psu), psu_order);
    for (uint32_t i = 0; i < m->num_fans; i += n) {
        for (n = 1; i + n < m->num_fans && m->fan[i + n].node_guid == m->fan[i].node_guid;)
            n++;
        judge_fans(&m->fan[i], n);
        if (u64map_get(&m->by_guid, m->fan[i].node_guid, &device)) {
            m->device[device].fan = &m->fan[i];
            m->device[device].num_fans = n;
        }
    }
    for (uint32_t i = 0; i < m->num_psus; i += n) {
        for (n = 1; i + n < m->num_psus && m->psu[i + n].node_guid == m->psu[i].node_guid;)
            n++;
        if (u64map_get(&m->by_guid, m->psu[i].node_guid, &device)) {
            m->device[device].psu = &m->psu[i];
            m->device[device].num_psus = n;
        }
    }
}
