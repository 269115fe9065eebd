// SPDX-License-Identifier: Apache-2.0
// What a focus knows of a port as it is now: the same words in every list that has ports, links or what is
// about them. Where the port is (place_row) always means the port; of the rest a row's own fields come first
// where they are called alike, but for lists of ports.
#ifndef WEFT_API_FACTS_H
#define WEFT_API_FACTS_H

#include "api/tele.h"

enum facts_part { // what costs more than a look into the fabric is filled where a focus asks for it
    FACTS_LIVE = 1,
    FACTS_ALARM = 2,
    FACTS_MODULE = 4,
    FACTS_RATES = 8,
    FACTS_PEER = 16,
    FACTS_PORT = 32,
    FACTS_COUNTED = FACTS_LIVE | FACTS_ALARM | FACTS_MODULE | FACTS_RATES // those that a collector has
};

struct facts_row {
    struct place_row place; // first: what names mean is looked up there
    uint64_t port_guid;
    const char *state, *width, *link, *vendor, *model, *serial, *cable, *health, *alarm_rule, *pma;
    double speed, temp, used, rcv_used, held, score, errors_per_hour, ber, raw_ber;
    int64_t lid, mtu, errors, alarm, age;
    const struct facts_row *peer; // without its own peer
    const void *rate;             // of schema_rates
};
struct facts_space { // stays where it is while the row is used
    struct facts_row row, far;
    struct place_space place[2];
    double rate[2][TELE_COUNTERS];
    char link[2][16], width[2][8];
};
extern const struct schema schema_facts;
unsigned facts_part(const struct field *const *way);

// Of a port, or of a node (port 0), which may be gone. w: of the fabric's counters; NULL: it has none. parts:
// those that are asked for.
void facts_fill(struct api *a, const char *fabric, struct tele_view *w, uint64_t guid, unsigned port,
                unsigned parts, struct facts_space *ret);

// Whether a row is wanted by what the focus knows of it and of a port. focus NULL: all are.
bool facts_wanted(struct api *a, const char *fabric, struct tele_view *w, struct sieve *focus,
                  const void *row, uint64_t guid, unsigned port);

#endif
