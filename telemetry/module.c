// SPDX-License-Identifier: Apache-2.0
// Two forms. ibdiagnet2.cables: a head line "Port=1 Lid=0x0018 GUID=0x…" and "Name: value" lines up to the
// next head. ibdiagnet2.db_csv: the section between START_CABLE_INFO and END_CABLE_INFO, whose first line
// names the columns. GUIDs there are of nodes or ports, as the file has them; whoever asks may try both.
//
// Odd values seen in real files: "NA", "N/A", "-1" and empty for none; a power of -999.999 mW beside 0.000
// dBm for none; 0C for copper that has no sensor.
#include "telemetry/module.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/arena.h"
#include "lib/buf.h"
#include "lib/err.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

#define MAX_FILE (256u << 20)
#define MAX_MODULES 1000000
#define MAX_COLUMNS 256

struct tele_modules {
    struct arena *arena;
    struct tele_module *one;
    uint32_t num, room;
    struct u64map by_port;
};

struct reading {
    struct tele_modules *m;
    void (*tell)(void *arg, unsigned line, const char *text);
    void *arg;
    unsigned line;
};

static uint64_t key_of(uint64_t guid, unsigned port)
{
    return hash_mix64(guid) ^ port;
}

static void tell(const struct reading *r, const char *text)
{
    if (r->tell != NULL)
        r->tell(r->arg, r->line, text);
}

static bool is_none(const char *v)
{
    return v[0] == 0 || strcmp(v, "NA") == 0 || strcmp(v, "N/A") == 0 || strcmp(v, "-1") == 0;
}

static const char *keep_text(struct tele_modules *m, const char *v)
{
    size_t n = strnlen(v, 80);
    if (is_none(v))
        return "";
    char *s = arena_strndup(m->arena, v, n);
    for (size_t i = 0; i < n; i++)
        if (!isprint((unsigned char)s[i]))
            s[i] = '?';
    return s;
}

static double number(const char *v, double low, double high)
{
    char *end;
    if (is_none(v))
        return NAN;
    double d = strtod(v, &end);
    return end != v && d >= low && d <= high ? d : NAN;
}

// "0.871 mW, -0.600 dBm", or dBm alone.
static double power(const char *v)
{
    const char *comma = strchr(v, ',');
    if (comma == NULL)
        return number(v, -60, 30);
    if (!(strtod(v, NULL) > -999))
        return NAN;
    return number(comma + 1, -60, 30);
}

// "RX1 Power" or "RX1Power": the lane, 0 when it is none.
static unsigned lane_of(const char *name, const char *what)
{
    if (strncasecmp(name, what, 2) != 0 || !isdigit((unsigned char)name[2]))
        return 0;
    unsigned lane = (unsigned)(name[2] - '0');
    const char *rest = name + 3 + (name[3] == ' ');
    return lane >= 1 && lane <= MODULE_LANES && strcasecmp(rest, "Power") == 0 ? lane : 0;
}

static void set_value(struct tele_modules *m, struct tele_module *o, const char *name, const char *v)
{
    unsigned lane;
    if (strcasecmp(name, "Vendor") == 0)
        o->vendor = keep_text(m, v);
    else if (strcasecmp(name, "PN") == 0)
        o->part = keep_text(m, v);
    else if (strcasecmp(name, "SN") == 0)
        o->serial = keep_text(m, v);
    else if (strcasecmp(name, "Rev") == 0)
        o->revision = keep_text(m, v);
    else if (strcasecmp(name, "Type") == 0 || strcasecmp(name, "TypeDesc") == 0)
        o->kind = keep_text(m, v);
    else if (strcasecmp(name, "Temperature") == 0)
        o->celsius = number(v, -60, 200);
    else if (strcasecmp(name, "Length") == 0 || strcasecmp(name, "LengthDesc") == 0)
        o->metres = number(v, 0.001, 100000);
    else if ((lane = lane_of(name, "RX")) != 0 || (lane = lane_of(name, "TX")) != 0) {
        double *dbm = toupper((unsigned char)name[0]) == 'R' ? o->rx_dbm : o->tx_dbm;
        dbm[lane - 1] = power(v);
        if (!isnan(dbm[lane - 1]) && lane > o->lanes)
            o->lanes = (uint8_t)lane;
    }
    if (o->celsius == 0)
        o->celsius = NAN;
}

static struct tele_module *module_add(struct reading *r, uint64_t guid, unsigned long port)
{
    struct tele_modules *m = r->m;
    uint32_t i;
    if (guid == 0 || port < 1 || port > 254) {
        tell(r, "no GUID, or a port number beyond 1..254");
        return NULL;
    }
    if (u64map_get(&m->by_port, key_of(guid, (unsigned)port), &i)) {
        tell(r, "the port was named before; the first one counts");
        return NULL;
    }
    if (m->num == MAX_MODULES) {
        tell(r, "more than a million modules");
        return NULL;
    }
    if (m->num == m->room)
        m->one = xreallocarray(m->one, m->room = m->room ? m->room * 2 : 256, sizeof(*m->one));
    struct tele_module *o = &m->one[m->num];
    *o = (struct tele_module){.node_guid = guid,
                              .port = (uint8_t)port,
                              .vendor = "",
                              .part = "",
                              .serial = "",
                              .revision = "",
                              .kind = "",
                              .celsius = NAN,
                              .metres = NAN};
    for (unsigned l = 0; l < MODULE_LANES; l++)
        o->rx_dbm[l] = o->tx_dbm[l] = NAN;
    u64map_set(&m->by_port, key_of(guid, (unsigned)port), m->num++);
    return o;
}

// --- lines ---

static char *trim(char *s)
{
    size_t n;
    while (isspace((unsigned char)*s))
        s++;
    for (n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]); n--)
        s[n - 1] = 0;
    if (n >= 2 && s[0] == '"' && s[n - 1] == '"') {
        s[n - 1] = 0;
        s++;
    }
    return s;
}

static char *next_line(char **at)
{
    char *line = *at, *end;
    if (line == NULL || *line == 0)
        return NULL;
    end = strchr(line, '\n');
    *at = end != NULL ? end + 1 : NULL;
    if (end != NULL)
        *end = 0;
    return line;
}

static struct tele_module *head_line(struct reading *r, const char *line)
{
    const char *g = strstr(line, "GUID=");
    char text[20] = "";
    uint64_t guid = 0;
    if (g != NULL)
        snprintf(text, sizeof(text), "%.18s", g + 5);
    text[strcspn(text, " \t\r")] = 0;
    if (g == NULL || guid_parse(text, &guid) != 0) {
        tell(r, "a head line without GUID=0x…");
        return NULL;
    }
    return module_add(r, guid, strtoul(line + 5, NULL, 10));
}

static void read_cables(struct reading *r, char *text)
{
    struct tele_module *o = NULL;
    char *line, *colon;
    while ((line = next_line(&text)) != NULL) {
        r->line++;
        line = trim(line);
        if (strncmp(line, "Port=", 5) == 0)
            o = head_line(r, line);
        else if (o != NULL && (colon = strchr(line, ':')) != NULL) {
            *colon = 0;
            set_value(r->m, o, trim(line), trim(colon + 1));
        }
    }
}

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
            ret[n++] = trim(from);
        from = p + 1;
        if (last)
            return n;
    }
}

static void read_row(struct reading *r, char *line, char *const *name, unsigned columns)
{
    char *v[MAX_COLUMNS], *guid_text = NULL, *port_text = NULL;
    uint64_t guid = 0;
    unsigned n = split(line, v);
    if (n != columns) {
        tell(r, "another number of values than the section has columns");
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        if (strcasecmp(name[i], "NodeGuid") == 0)
            guid_text = v[i];
        if (strcasecmp(name[i], "PortNum") == 0)
            port_text = v[i];
    }
    if (guid_text == NULL || port_text == NULL || guid_parse(guid_text, &guid) != 0) {
        tell(r, "no NodeGuid or PortNum");
        return;
    }
    struct tele_module *o = module_add(r, guid, strtoul(port_text, NULL, 10));
    for (unsigned i = 0; o != NULL && i < n; i++)
        set_value(r->m, o, name[i], v[i]);
}

static void read_csv(struct reading *r, char *text)
{
    char *line, *name[MAX_COLUMNS];
    bool inside = false;
    unsigned columns = 0;
    while ((line = next_line(&text)) != NULL) {
        r->line++;
        char *t = trim(line);
        if (strcmp(t, "START_CABLE_INFO") == 0) {
            inside = true;
            columns = 0;
        } else if (strcmp(t, "END_CABLE_INFO") == 0) {
            inside = false;
        } else if (inside && columns == 0) {
            columns = split(t, name);
        } else if (inside && *t != 0) {
            read_row(r, t, name, columns);
        }
    }
}

struct tele_modules *tele_modules_read(const char *path,
                                       void (*tell_fn)(void *arg, unsigned line, const char *text), void *arg,
                                       struct err *e)
{
    struct buf b = {0};
    int rc = buf_read_file(&b, path, MAX_FILE);
    if (rc != 0) {
        err_set(e, rc, path, "cannot be read (%s)", strerror(-rc));
        return NULL;
    }
    struct tele_modules *m = xcalloc(1, sizeof(*m));
    struct reading r = {.m = m, .tell = tell_fn, .arg = arg};
    m->arena = arena_new();
    u64map_init(&m->by_port, NULL, 256);
    if (b.len > 0 && strlen(b.data) != b.len)
        tell(&r, "the file goes on behind a zero byte; that is left out");
    if (b.len > 0 && strstr(b.data, "START_") != NULL)
        read_csv(&r, b.data);
    else if (b.len > 0)
        read_cables(&r, b.data);
    buf_done(&b);
    if (m->num > 0)
        return m;
    tele_modules_free(m);
    err_set(e, -ENOMSG, path,
            "has nothing of cables; ibdiagnet writes it with --get_cable_info (ibdiagnet2.cables, or section "
            "CABLE_INFO of ibdiagnet2.db_csv)");
    return NULL;
}

void tele_modules_free(struct tele_modules *m)
{
    if (m == NULL)
        return;
    arena_free(m->arena);
    u64map_done(&m->by_port);
    free(m->one);
    free(m);
}

uint32_t tele_modules_num(const struct tele_modules *m)
{
    return m->num;
}

const struct tele_module *tele_modules_find(const struct tele_modules *m, uint64_t guid, uint8_t port)
{
    uint32_t i;
    if (!u64map_get(&m->by_port, key_of(guid, port), &i) || m->one[i].node_guid != guid)
        return NULL;
    return &m->one[i];
}
