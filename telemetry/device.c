// SPDX-License-Identifier: Apache-2.0
#include "telemetry/device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "telemetry/health.h"

#define FAILED_MAX 64 // of one device
#define AGAIN (5 * 60 * MONO_S)
#define HOUR (3600 * MONO_S)

struct failed { // a fan or power supply
    bool psu;
    uint16_t index;
    char text[90]; // "fan 3 at 0 turns a minute, 4500 at least"
};

struct device {
    uint64_t guid;
    int8_t hot;      // level; -1: not
    double celsius;  // NAN: not read
    bool slow;       // the device itself says so, of fans that seem well
    uint8_t failing; // how many of failed[]
    struct failed failed[FAILED_MAX];
    int64_t since, read_at, told;
    int64_t not_read; // hours, as told; 0
    enum alarm_severity severity;
    uint32_t fans, psus;
    char reason[600];
};

struct devices {
    struct device_sink sink;
    struct device **one; // by guid
    uint32_t num, room;
};

static uint32_t place_of(const struct devices *d, uint64_t guid)
{
    uint32_t low = 0, high = d->num;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (d->one[mid]->guid < guid)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct device *find(const struct devices *d, uint64_t guid)
{
    uint32_t i = place_of(d, guid);
    return i < d->num && d->one[i]->guid == guid ? d->one[i] : NULL;
}

static struct device *add(struct devices *d, uint64_t guid)
{
    uint32_t i = place_of(d, guid);
    struct device *x = xcalloc(1, sizeof(*x));
    x->guid = guid;
    x->hot = -1;
    x->celsius = NAN;
    if (d->num == d->room)
        d->one = xreallocarray(d->one, d->room = d->room ? 2 * d->room : 16, sizeof(struct device *));
    memmove(&d->one[i + 1], &d->one[i], (d->num - i) * sizeof(struct device *));
    d->one[i] = x;
    d->num++;
    return x;
}

static void drop(struct devices *d, struct device *x)
{
    uint32_t i = place_of(d, x->guid);
    memmove(&d->one[i], &d->one[i + 1], (d->num - i - 1) * sizeof(struct device *));
    d->num--;
    free(x);
}

// --- a reading ---

static int hot_level(int was, double celsius)
{
    const struct device_limits *l = &device_limits;
    for (int i = 1; i >= 0; i--) {
        double limit = l->celsius[i] - (was >= i ? l->clear_celsius : 0);
        if (celsius > limit)
            return i;
    }
    return -1;
}

static struct failed *failed_find(struct device *x, bool psu, unsigned index)
{
    for (unsigned i = 0; i < x->failing; i++)
        if (x->failed[i].psu == psu && x->failed[i].index == index)
            return &x->failed[i];
    return NULL;
}

static void part_well(struct device *x, bool psu, unsigned index)
{
    struct failed *f = failed_find(x, psu, index);
    if (f != NULL)
        memmove(f, f + 1, (size_t)(&x->failed[--x->failing] - f) * sizeof(*f));
}

static struct failed *part_failed(struct device *x, bool psu, unsigned index)
{
    struct failed *f = failed_find(x, psu, index);
    if (f == NULL && x->failing < FAILED_MAX) {
        f = &x->failed[x->failing++];
        *f = (struct failed){.psu = psu, .index = (uint16_t)index};
    }
    return f;
}

static void look_at_fan(struct device *x, const struct tele_fan *p)
{
    struct failed *f = NULL;
    switch (p->state) {
    case PART_UNKNOWN:
    case PART_ABSENT:
        return;
    case PART_OK:
        part_well(x, false, p->index);
        return;
    case PART_FAILED:
        f = part_failed(x, false, p->index);
        break;
    }
    if (f == NULL)
        return;
    int n = snprintf(f->text, sizeof(f->text), "fan %u at %d turns a minute", p->index, p->rpm);
    if (p->min > 0)
        snprintf(f->text + n, sizeof(f->text) - (size_t)n, ", %d at least", p->min);
}

// An empty place is no failure; but one from which a power supply that had failed was taken is still one.
static void look_at_psu(struct device *x, const struct tele_psu *p)
{
    struct failed *f = NULL;
    switch (p->state) {
    case PART_UNKNOWN:
    case PART_ABSENT:
        return;
    case PART_OK:
        part_well(x, true, p->index);
        return;
    case PART_FAILED:
        f = part_failed(x, true, p->index);
        break;
    }
    if (f != NULL)
        snprintf(f->text, sizeof(f->text), "power supply %u: %.60s", p->index, p->bad);
}

static bool fan_fails(const struct device *x)
{
    for (unsigned i = 0; i < x->failing; i++)
        if (!x->failed[i].psu)
            return true;
    return false;
}

static void look(struct device *x, const struct tele_device *r, bool is_switch)
{
    if (is_switch && !isnan(r->celsius)) {
        x->celsius = r->celsius;
        x->hot = (int8_t)hot_level(x->hot, r->celsius);
    }
    for (uint32_t i = 0; i < r->num_fans; i++)
        look_at_fan(x, &r->fan[i]);
    for (uint32_t i = 0; i < r->num_psus; i++)
        look_at_psu(x, &r->psu[i]);
    if (r->num_fans > 0)
        x->fans = r->num_fans;
    if (r->num_psus > 0)
        x->psus = r->num_psus;
    if (r->num_fans > 0 || r->slow_fans != 0)
        x->slow = r->slow_fans != 0 && !fan_fails(x);
}

// --- what is said ---

static bool stands(const struct device *x)
{
    return x->hot >= 0 || x->failing > 0 || x->slow;
}

static void reason_of(const struct device *x, char *buf, size_t size)
{
    struct buf b = {0};
    for (unsigned i = 0; i < x->failing && i < 8; i++)
        buf_printf(&b, "%s%s", i ? "; " : "", x->failed[i].text);
    if (x->failing > 8)
        buf_printf(&b, "; and %u more", x->failing - 8);
    if (x->slow)
        buf_printf(&b, "%sit says that a fan is too slow", b.len ? "; " : "");
    if (x->hot >= 0)
        buf_printf(&b, "%sASIC %.0f C, limit %.0f", b.len ? "; " : "", x->celsius,
                   device_limits.celsius[x->hot]);
    snprintf(buf, size, "%s", b.data ? b.data : "");
    buf_done(&b);
}

static void tell(struct devices *d, struct device *x)
{
    char evidence[300], celsius[32] = "null";
    unsigned fans = 0;
    for (unsigned i = 0; i < x->failing; i++)
        fans += !x->failed[i].psu;
    if (!isnan(x->celsius))
        snprintf(celsius, sizeof(celsius), "%.1f", x->celsius);
    snprintf(evidence, sizeof(evidence),
             "{\"celsius\":%s,\"fans\":%u,\"fans_failed\":%u,\"power_supplies\":%u,"
             "\"power_supplies_failed\":%u}",
             celsius, x->fans, fans + x->slow, x->psus, x->failing - fans);
    if (x->not_read > 0)
        snprintf(evidence + strlen(evidence) - 1, sizeof(evidence) - strlen(evidence) + 1,
                 ",\"not_read_hours\":%lld}", (long long)x->not_read);
    x->told = x->read_at;
    d->sink.raise(d->sink.arg, x->guid, x->severity, x->reason, evidence);
}

static void clear(struct devices *d, struct device *x)
{
    uint64_t guid = x->guid;
    bool was = x->since != 0;
    drop(d, x);
    if (was)
        d->sink.clear(d->sink.arg, guid);
}

void devices_feed(struct devices *d, const struct tele_device *r, bool is_switch, int64_t at)
{
    struct device *x = find(d, r->guid), fresh = {.guid = r->guid, .hot = -1, .celsius = NAN};
    char reason[sizeof(x->reason)];
    unsigned before = x != NULL ? x->failing : 0;
    at = at != 0 ? at : 1; // a reading may be from before the loop's beginning
    if (x != NULL && at <= x->read_at)
        return;
    if (x == NULL) { // most are well
        look(&fresh, r, is_switch);
        if (!stands(&fresh))
            return;
        x = add(d, r->guid);
        *x = fresh;
    } else {
        look(x, r, is_switch);
    }
    x->read_at = at;
    x->not_read = 0;
    if (!stands(x)) {
        clear(d, x);
        return;
    }
    bool first = x->since == 0;
    enum alarm_severity s = device_limits.severity[x->failing > 0 || x->slow || x->hot == 1];
    reason_of(x, reason, sizeof(reason));
    bool other = first || s != x->severity || before != x->failing ||
                 (strcmp(reason, x->reason) != 0 && at - x->told >= AGAIN);
    if (first)
        x->since = at;
    if (!other)
        return;
    x->severity = s;
    snprintf(x->reason, sizeof(x->reason), "%s", reason);
    tell(d, x);
}

static void say_age(struct devices *d, struct device *x, int64_t age)
{
    int64_t hours = 1; // by powers of two: told a few times a day
    size_t n;
    while (hours * 2 * HOUR <= age)
        hours *= 2;
    if (hours == x->not_read)
        return;
    x->not_read = hours;
    reason_of(x, x->reason, sizeof(x->reason));
    n = strlen(x->reason);
    snprintf(x->reason + n, sizeof(x->reason) - n, "; not read for %lld h", (long long)hours);
    tell(d, x);
}

void devices_age(struct devices *d, int64_t now)
{
    for (uint32_t i = d->num; i-- > 0;) {
        int64_t age = now - d->one[i]->read_at;
        if (age >= HEALTH_MODULE_GONE)
            clear(d, d->one[i]);
        else if (age >= HOUR)
            say_age(d, d->one[i], age);
    }
}

void devices_forget(struct devices *d, uint64_t guid)
{
    struct device *x = find(d, guid);
    if (x != NULL)
        clear(d, x);
}

// --- views, life ---

void devices_view(const struct devices *d, uint64_t guid, struct device_view *ret)
{
    const struct device *x = find(d, guid);
    *ret = (struct device_view){.reason = ""};
    if (x == NULL)
        return;
    *ret = (struct device_view){.stands = true,
                                .severity = x->severity,
                                .since = x->since,
                                .read_at = x->read_at,
                                .reason = x->reason};
}

uint32_t devices_standing(const struct devices *d, uint64_t **ret_guid)
{
    *ret_guid = xcalloc(d->num + 1ull, sizeof(uint64_t));
    for (uint32_t i = 0; i < d->num; i++)
        (*ret_guid)[i] = d->one[i]->guid;
    return d->num;
}

struct devices *devices_new(const struct device_sink *sink)
{
    struct devices *d = xcalloc(1, sizeof(*d));
    d->sink = *sink;
    return d;
}

void devices_free(struct devices *d)
{
    if (d == NULL)
        return;
    for (uint32_t i = 0; i < d->num; i++)
        free(d->one[i]);
    free(d->one);
    free(d);
}
