// SPDX-License-Identifier: Apache-2.0
#include "telemetry/counters.h"

#include <string.h>
#include <strings.h>

const struct tele_row tele_rows[TELE_COUNTERS] = {
#define C(id, ibta, name, metric, unit, group, kind, doc)                                                    \
    {ibta, name, metric, doc, TELE_##unit, TELE_##group, TELE_##kind},
#include "telemetry/counters.def"
};

int tele_counter_by_name(const char *name)
{
    for (int i = 0; i < TELE_COUNTERS; i++)
        if (strcmp(name, tele_rows[i].name) == 0 || strcasecmp(name, tele_rows[i].ibta) == 0)
            return i;
    return -1;
}

const char *tele_unit_name(enum tele_unit u)
{
    switch (u) {
    case TELE_WORDS:
        return "bytes";
    case TELE_PACKETS:
        return "packets";
    case TELE_EVENTS:
        return "events";
    case TELE_TICKS:
        return "ticks";
    case TELE_SYMBOLS:
        return "symbols";
    case TELE_BLOCKS:
        return "blocks";
    }
    return "";
}

const char *tele_group_name(enum tele_group g)
{
    static const char *const name[TELE_GROUPS] = {"data", "errors", "speed", "rcv_detail", "xmit_detail"};
    return name[g];
}

uint64_t tele_group_counters(enum tele_group g)
{
    uint64_t bits = 0;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (tele_rows[c].group == g)
            bits |= 1ull << c;
    return bits;
}
