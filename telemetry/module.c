// SPDX-License-Identifier: Apache-2.0
// Two forms. ibdiagnet2.cables: a head line "Port=1 Lid=0x0018 GUID=0x…" and "Name: value" lines up to the
// next head. ibdiagnet2.db_csv: sections between START_X and END_X, whose first line names the columns. Names
// differ between the two and between versions in blanks and capitals only: they are compared without. GUIDs
// of cables are of nodes or ports, as the file has them; whoever asks may try both.
//
// Odd values seen in real files: "NA", "N/A", "-1" and empty for none; a power of -999.999 mW beside 0.000
// dBm for none; powers and limits below 0 dBm as 16 bits without a sign (65530: -6), beside "inf mW"; 0C and
// limits of 0 for copper, which has no sensor but random alarm words. That is why a module is judged by its
// powers and its limits and not by "RX Power Alarm and Warning": of the dark fibres of a real fabric that
// word says nothing, of good copper cables the word for the bias says all alarms at once.
#include "telemetry/module.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "lib/arena.h"
#include "lib/buf.h"
#include "lib/err.h"
#include "lib/guid.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "telemetry/module_priv.h"

#define MAX_FILE (256u << 20)
#define NAME_MAX_CHARS 60

static uint64_t key_of(uint64_t guid, unsigned port)
{
    return hash_mix64(guid) ^ port;
}

void module_tell(const struct module_reading *r, const char *text)
{
    if (r->tell != NULL)
        r->tell(r->arg, r->line, text);
}

// --- values ---

bool module_is_none(const char *v)
{
    return v[0] == 0 || strcmp(v, "NA") == 0 || strcmp(v, "N/A") == 0 || strcmp(v, "-1") == 0;
}

const char *module_keep(struct tele_modules *m, const char *v)
{
    size_t n = strnlen(v, 80);
    if (module_is_none(v))
        return "";
    char *s = arena_strndup(m->arena, v, n);
    for (size_t i = 0; i < n; i++)
        if (!isprint((unsigned char)s[i]))
            s[i] = '?';
    return s;
}

double module_number(const char *v, double low, double high)
{
    char *end;
    if (module_is_none(v))
        return NAN;
    double d = strtod(v, &end);
    return end != v && d >= low && d <= high ? d : NAN;
}

// dBm, as such or as 16 bits without a sign.
static double dbm(const char *v)
{
    double d = module_number(v, -60, 65534);
    d = d >= 65536 - 60 ? d - 65536 : d;
    return d <= 30 ? d : NAN;
}

// "0.871 mW, -0.600 dBm", or dBm alone.
static double power(const char *v)
{
    const char *comma = strchr(v, ',');
    if (comma == NULL)
        return dbm(v);
    if (!(strtod(v, NULL) > -999))
        return NAN;
    return dbm(comma + 1);
}

// "rx1power": the lane, 0 when it is none.
static unsigned lane_of(const char *name, const char *what)
{
    if (strncmp(name, what, 2) != 0 || !isdigit((unsigned char)name[2]))
        return 0;
    unsigned lane = (unsigned)(name[2] - '0');
    return lane >= 1 && lane <= MODULE_LANES && strcmp(name + 3, "power") == 0 ? lane : 0;
}

static bool has_word(const char *v, const char *word)
{
    return strcasestr(v, word) != NULL;
}

// In words, or as a number of CMIS's module states, of which 5 is the failure.
static bool is_fault(const char *v)
{
    if (has_word(v, "no fault") || has_word(v, "no error"))
        return false;
    return strcmp(v, "5") == 0 || has_word(v, "fault") || has_word(v, "fail") || has_word(v, "error");
}

static void set_lane(struct tele_module *o, unsigned lane, bool rx, double v)
{
    (rx ? o->rx_dbm : o->tx_dbm)[lane - 1] = v;
    if (!isnan(v) && lane > o->lanes)
        o->lanes = (uint8_t)lane;
}

static void set_text(struct tele_modules *m, struct tele_module *o, const char *name, const char *v)
{
    if (strcmp(name, "vendor") == 0)
        o->vendor = module_keep(m, v);
    else if (strcmp(name, "pn") == 0)
        o->part = module_keep(m, v);
    else if (strcmp(name, "sn") == 0)
        o->serial = module_keep(m, v);
    else if (strcmp(name, "rev") == 0)
        o->revision = module_keep(m, v);
    else if (strcmp(name, "type") == 0 || strcmp(name, "typedesc") == 0)
        o->kind = module_keep(m, v);
    else if (strcmp(name, "modulestatus") == 0 || strcmp(name, "modulestate") == 0 ||
             strcmp(name, "modulest") == 0) {
        o->status = module_keep(m, v);
        o->fault = is_fault(o->status);
    }
}

static void set_number(struct tele_module *o, const char *name, const char *v)
{
    unsigned lane;
    if (strcmp(name, "temperature") == 0) {
        double c = module_number(v, -60, 200);
        o->celsius = c == 0 ? NAN : c;
    } else if (strcmp(name, "length") == 0 || strcmp(name, "lengthdesc") == 0) {
        o->metres = module_number(v, 0.001, 100000);
    } else if (strcmp(name, "rxpowerlowthresh") == 0) {
        o->rx_low = power(v);
    } else if (strcmp(name, "rxpowerhighthresh") == 0) {
        o->rx_high = power(v);
    } else if (strcmp(name, "txpowerlowthresh") == 0) {
        o->tx_low = power(v);
    } else if (strcmp(name, "txpowerhighthresh") == 0) {
        o->tx_high = power(v);
    } else if ((lane = lane_of(name, "rx")) != 0) {
        set_lane(o, lane, true, power(v));
    } else if ((lane = lane_of(name, "tx")) != 0) {
        set_lane(o, lane, false, power(v));
    }
}

void module_plain(const char *name, char *buf, size_t size)
{
    size_t n = 0;
    for (; *name && n + 1 < size; name++)
        if (isalnum((unsigned char)*name))
            buf[n++] = (char)tolower((unsigned char)*name);
    buf[n] = 0;
}

void module_set(struct tele_modules *m, struct tele_module *o, const char *name, const char *v)
{
    char plain[NAME_MAX_CHARS];
    module_plain(name, plain, sizeof(plain));
    set_text(m, o, plain, v);
    set_number(o, plain, v);
}

struct tele_module *module_add(struct module_reading *r, uint64_t guid, unsigned long port)
{
    struct tele_modules *m = r->m;
    uint32_t i;
    if (guid == 0 || port < 1 || port > 254) {
        module_tell(r, "no GUID, or a port number beyond 1..254");
        return NULL;
    }
    if (u64map_get(&m->by_port, key_of(guid, (unsigned)port), &i)) {
        if (i >= r->before) // else: of the younger file
            module_tell(r, "the port was named before; the first one counts");
        return NULL;
    }
    if (m->num == MODULE_MAX) {
        module_tell(r, "more than a million modules");
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
                              .status = "",
                              .celsius = NAN,
                              .metres = NAN,
                              .rx_low = NAN,
                              .rx_high = NAN,
                              .tx_low = NAN,
                              .tx_high = NAN,
                              .taken_ns = r->taken_ns};
    for (unsigned l = 0; l < MODULE_LANES; l++)
        o->rx_dbm[l] = o->tx_dbm[l] = NAN;
    u64map_set(&m->by_port, key_of(guid, (unsigned)port), m->num++);
    return o;
}

// --- what a module says of itself ---

struct span { // of one direction
    const double *lane;
    double low, high;
    bool rx;
};

static bool look_at_span(const struct span *s, unsigned lanes, struct tele_optics *ret, double *worst)
{
    bool known = false;
    if (!(s->low < s->high)) // 0 and 0: it has none
        return false;
    for (unsigned i = 0; i < lanes; i++) {
        double v = s->lane[i], over = v > s->high ? v - s->high : s->low - v;
        if (isnan(v))
            continue;
        known = true;
        if (over <= *worst)
            continue;
        *worst = over;
        ret->lane = (uint8_t)(i + 1);
        ret->rx = s->rx;
        ret->high = v > s->high;
        ret->dbm = (float)v;
        ret->limit = (float)(v > s->high ? s->high : s->low);
    }
    return known;
}

bool tele_module_optics(const struct tele_module *m, struct tele_optics *ret)
{
    double worst = 0;
    struct span rx = {m->rx_dbm, m->rx_low, m->rx_high, true}, tx = {m->tx_dbm, m->tx_low, m->tx_high, false};
    unsigned lanes = m->lanes < MODULE_LANES ? m->lanes : MODULE_LANES;
    *ret = (struct tele_optics){.fault = m->fault};
    bool known = look_at_span(&rx, lanes, ret, &worst);
    return look_at_span(&tx, lanes, ret, &worst) || known || m->status[0] != 0;
}

// --- lines ---

char *module_blanks(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    for (size_t n = strlen(s); n > 0 && isspace((unsigned char)s[n - 1]); n--)
        s[n - 1] = 0;
    return s;
}

char *module_trim(char *s)
{
    s = module_blanks(s);
    size_t n = strlen(s);
    if (n >= 2 && s[0] == '"' && s[n - 1] == '"') {
        s[n - 1] = 0;
        s++;
    }
    return s;
}

char *module_next_line(char **at)
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

void module_date(struct module_reading *r, const char *text)
{
    struct tm t = {0};
    int zone = 0;
    const char *sign = strrchr(text, ' ');
    if (sscanf(text, "%4d-%2d-%2d %2d:%2d:%2d", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min,
               &t.tm_sec) != 6 ||
        t.tm_year < 2000 || t.tm_year > 2200)
        return;
    t.tm_year -= 1900;
    t.tm_mon -= 1;
    if (sign != NULL && (sign[1] == '+' || sign[1] == '-') && strspn(sign + 2, "0123456789") == 4) {
        int hhmm = atoi(sign + 2);
        zone = (hhmm / 100 * 60 + hhmm % 100) * (sign[1] == '-' ? -60 : 60);
    }
    int64_t at = ((int64_t)timegm(&t) - zone) * MONO_S;
    if (at > 0 && at < r->taken_ns)
        r->taken_ns = at;
}

static struct tele_module *head_line(struct module_reading *r, const char *line)
{
    const char *g = strstr(line, "GUID=");
    char text[20] = "";
    uint64_t guid = 0;
    if (g != NULL)
        snprintf(text, sizeof(text), "%.18s", g + 5);
    text[strcspn(text, " \t\r")] = 0;
    if (g == NULL || guid_parse(text, &guid) != 0) {
        module_tell(r, "a head line without GUID=0x…");
        return NULL;
    }
    return module_add(r, guid, strtoul(line + 5, NULL, 10));
}

static void read_cables(struct module_reading *r, char *text)
{
    struct tele_module *o = NULL;
    char *line, *colon;
    while ((line = module_next_line(&text)) != NULL) {
        r->line++;
        line = module_trim(line);
        colon = strchr(line, ':');
        if (strncmp(line, "Port=", 5) == 0) {
            o = head_line(r, line);
        } else if (colon != NULL && strncmp(line, "# Running timestamp", 19) == 0) {
            module_date(r, module_trim(colon + 1));
        } else if (o != NULL && colon != NULL) {
            *colon = 0;
            module_set(r->m, o, module_trim(line), module_trim(colon + 1));
        }
    }
}

// --- files ---

static struct tele_modules *modules_new(void)
{
    struct tele_modules *m = xcalloc(1, sizeof(*m));
    m->refs = 1;
    m->arena = arena_new();
    u64map_init(&m->by_port, NULL, 256);
    u64map_init(&m->by_guid, NULL, 256);
    u64map_init(&m->by_fan, NULL, 256);
    u64map_init(&m->by_psu, NULL, 256);
    return m;
}

static void read_text(struct module_reading *r, char *text)
{
    r->line = 0;
    r->before = r->m->num;
    if (strstr(text, "START_") != NULL)
        module_read_csv(r, text);
    else
        read_cables(r, text);
}

static int read_one(struct module_reading *r, const char *path, struct err *e)
{
    struct buf b = {0};
    int rc = buf_read_file(&b, path, MAX_FILE);
    if (rc != 0) {
        buf_done(&b);
        return err_set(e, rc, path, "cannot be read (%s)", strerror(-rc));
    }
    r->taken_ns = tele_modules_written(path);
    int64_t now = wall_now_ns();
    if (r->taken_ns < 0) // it was there a moment ago
        r->taken_ns = 0;
    if (r->taken_ns > now) // of the future: it grows old from now on
        r->taken_ns = now;
    if (b.len > 0 && strlen(b.data) != b.len)
        module_tell(r, "the file goes on behind a zero byte; that is left out");
    if (b.len > 0)
        read_text(r, b.data);
    buf_done(&b);
    return 0;
}

static int64_t written(const char *path, bool *ret_folder)
{
    struct stat st = {0};
    if (stat(path, &st) != 0)
        return -1;
    if (ret_folder != NULL)
        *ret_folder = S_ISDIR(st.st_mode);
    return st.st_mtim.tv_sec * MONO_S + st.st_mtim.tv_nsec;
}

#define FILES 2
static const char *const file_name[FILES] = {"ibdiagnet2.db_csv", "ibdiagnet2.cables"};

static void file_in(const char *folder, unsigned i, char *buf, size_t size)
{
    snprintf(buf, size, "%s/%s", folder, file_name[i]);
}

int64_t tele_modules_written(const char *path)
{
    char file[4200];
    bool folder = false;
    int64_t at = written(path, &folder), youngest = -1;
    for (unsigned i = 0; folder && i < FILES; i++) {
        file_in(path, i, file, sizeof(file));
        int64_t one = written(file, NULL);
        youngest = one > youngest ? one : youngest;
    }
    return folder ? youngest : at;
}

// The younger first: what it tells of counts.
static int read_folder(struct module_reading *r, const char *path, struct err *e)
{
    char file[FILES][4200];
    for (unsigned i = 0; i < FILES; i++)
        file_in(path, i, file[i], sizeof(file[i]));
    unsigned first = written(file[1], NULL) > written(file[0], NULL);
    int a = read_one(r, file[first], e);
    int b = written(file[!first], NULL) >= 0 ? read_one(r, file[!first], e) : a;
    return a != 0 ? b : a;
}

struct tele_modules *tele_modules_read(const char *path,
                                       void (*tell_fn)(void *arg, unsigned line, const char *text), void *arg,
                                       struct err *e)
{
    struct module_reading r = {.m = modules_new(), .tell = tell_fn, .arg = arg};
    bool folder = false;
    written(path, &folder);
    int rc = folder ? read_folder(&r, path, e) : read_one(&r, path, e);
    module_settle(r.m);
    if (rc == 0 && (r.m->num > 0 || r.m->num_devices > 0))
        return r.m;
    tele_modules_free(r.m);
    if (rc == 0)
        err_set(e, -ENOMSG, path,
                "has nothing of cables or devices; ibdiagnet writes it with --get_cable_info, or "
                "--get_phy_info (ibdiagnet2.cables, or sections CABLE_INFO, TEMP_SENSING, FANS_SPEED and "
                "POWER_SUPPLIES of ibdiagnet2.db_csv)");
    return NULL;
}

struct tele_modules *tele_modules_parse(char *text, int64_t taken_ns,
                                        void (*tell_fn)(void *arg, unsigned line, const char *text),
                                        void *arg)
{
    struct module_reading r = {.m = modules_new(), .tell = tell_fn, .arg = arg, .taken_ns = taken_ns};
    read_text(&r, text);
    module_settle(r.m);
    return r.m;
}

struct tele_modules *tele_modules_ref(struct tele_modules *m)
{
    m->refs++;
    return m;
}

void tele_modules_free(struct tele_modules *m)
{
    if (m == NULL || --m->refs > 0)
        return;
    arena_free(m->arena);
    u64map_done(&m->by_port);
    u64map_done(&m->by_guid);
    u64map_done(&m->by_fan);
    u64map_done(&m->by_psu);
    free(m->one);
    free(m->device);
    free(m->fan);
    free(m->psu);
    free(m);
}

const char *tele_part_state_name(enum tele_part_state s)
{
    static const char *const name[] = {"unknown", "ok", "failed", "absent"};
    return name[s];
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

uint32_t tele_devices_num(const struct tele_modules *m)
{
    return m->num_devices;
}

const struct tele_device *tele_device_at(const struct tele_modules *m, uint32_t i)
{
    return &m->device[i];
}

const struct tele_device *tele_device_find(const struct tele_modules *m, uint64_t guid)
{
    uint32_t i;
    return u64map_get(&m->by_guid, guid, &i) ? &m->device[i] : NULL;
}
