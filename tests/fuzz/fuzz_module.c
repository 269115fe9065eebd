// SPDX-License-Identifier: Apache-2.0
// What ibdiagnet writes of cables and devices: both forms, whatever is in them. What comes of it is bounded
// and consistent: texts that can be printed, powers within what there is, parts of the device that has them.
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/device.h"
#include "telemetry/module.h"
#include "tests/fuzz/fuzz.h"

static void on_raise(void *arg, uint64_t guid, enum alarm_severity s, const char *reason,
                     const char *evidence)
{
    (void)arg, (void)guid, (void)s;
    assert(reason[0] != 0 && strlen(reason) < 600);
    for (; *reason; reason++)
        assert(isprint((unsigned char)*reason));
    assert(evidence[0] == '{' && evidence[strlen(evidence) - 1] == '}');
}

static void on_clear(void *arg, uint64_t guid)
{
    (void)arg, (void)guid;
}

static void look_at(const struct tele_device *d)
{
    for (uint32_t i = 0; i < d->num_fans; i++) {
        assert(d->fan[i].node_guid == d->guid && d->fan[i].rpm >= -1 && d->fan[i].state <= PART_ABSENT);
        assert(i == 0 || d->fan[i].index > d->fan[i - 1].index);
    }
    for (uint32_t i = 0; i < d->num_psus; i++) {
        assert(d->psu[i].node_guid == d->guid && strlen(d->psu[i].bad) <= 80);
        assert((d->psu[i].state == PART_FAILED) == (d->psu[i].bad[0] != 0));
    }
    assert(isnan(d->celsius) || fabs(d->celsius) <= 200);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = xmalloc(size + 1);
    struct devices *d = devices_new(&(struct device_sink){.raise = on_raise, .clear = on_clear});
    struct tele_optics o;
    memcpy(text, data, size);
    text[size] = 0;
    struct tele_modules *m = tele_modules_parse(text, 1700000000000000000, NULL, NULL);
    for (uint32_t i = 0; i < tele_devices_num(m); i++) {
        const struct tele_device *x = tele_device_at(m, i);
        assert(tele_device_find(m, x->guid) == x && x->taken_ns > 0 && x->taken_ns <= 1700000000000000000);
        look_at(x);
        devices_feed(d, x, true, 1);
        devices_feed(d, x, true, 2);
    }
    for (unsigned port = 1; port < 255 && tele_modules_num(m) > 0; port++) {
        const struct tele_module *x = tele_modules_find(m, 0xaa, (uint8_t)port);
        if (x == NULL || !tele_module_optics(x, &o))
            continue;
        assert(o.lane <= MODULE_LANES && (o.lane == 0 || fabs((double)o.dbm) <= 60));
        assert(o.lane == 0 || (o.high ? o.dbm >= o.limit : o.dbm <= o.limit));
    }
    tele_modules_free(m);
    devices_free(d);
    free(text);
    return 0;
}
