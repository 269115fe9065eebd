// SPDX-License-Identifier: Apache-2.0
// Samples of ports and devices: rendered on a worker from a copy of the table and from snapshots. Names and
// labels are those of infiniband_exporter 2 (https://github.com/SckyzO/infiniband_exporter), whose dashboards
// and alerts thus work as they are: infiniband_switch_*{guid,port,switch}, infiniband_hca_*{guid,hca,port,
// switch}. Pure.
#ifndef WEFT_API_METRICS_RENDER_H
#define WEFT_API_METRICS_RENDER_H

#include "api/metrics_page.h"
#include "fabric/fabric.h"
#include "telemetry/counters.h"
#include "telemetry/module.h"
#include "telemetry/names.h"

enum metrics_class { // each family is in one
    METRICS_TRAFFIC, // data, packets, waits, rates, use
    METRICS_ERRORS,  // errors, FEC, health
    METRICS_NODES,   // what there is, who is where, states
    METRICS_OWN,     // weft itself
    METRICS_CLASSES
};
#define METRICS_ALL ((1u << METRICS_CLASSES) - 1)

struct metrics_labels { // of slots, rendered; of one struct tele_names
    uint32_t num;
    uint32_t *at; // [num + 1], offsets
    struct buf text;
};
// fabric: a label of every series; NULL = none.
void metrics_labels_make(struct metrics_labels *ret, const struct tele_names *n, const char *fabric);
// The same as infiniband-exporter by guilbaults has them: component, local_name, …; ports without a far end
// have none.
void metrics_labels_guilbaults(struct metrics_labels *ret, const struct tele_names *n, const char *fabric);
void metrics_labels_done(struct metrics_labels *l);

struct metrics_part { // which devices are on the page: those of a shard, or one
    uint32_t shard, of;
    uint64_t guid; // 0 = all
};
static inline bool metrics_part_has(const struct metrics_part *p, uint64_t node_guid)
{
    if (p->guid != 0)
        return node_guid == p->guid;
    return p->of <= 1 || hash_mix64(node_guid) % p->of == p->shard;
}

struct metrics_port { // what is copied of one slot beside its counters
    uint32_t slot;
    uint8_t unread;                                                  // enum tele_unread
    uint8_t health;                                                  // enum health_state
    double xmit_used, rcv_used, held, lost_bps, symbol_ber, raw_ber; // NAN: not known
};
struct metrics_copy {           // of one fabric
    const struct fabric *f;     // NULL: not looked at yet
    const struct fabric *known; // the blueprint; NULL: none
    const struct tele_names *names;
    const struct metrics_labels *labels;
    const struct metrics_labels *guilbaults; // NULL: not under those names
    const char *fabric;                      // as in metrics_labels_make()
    struct metrics_part part;
    struct tele_modules *modules; // what ibdiagnet has seen; NULL: no source
    int64_t modules_from_ns;      // what is older says nothing of now, and is not on the page
    uint32_t num, cap;
    struct metrics_port *port; // by slot
    uint64_t *have;            // [num]
    uint64_t *value;           // [num * TELE_COUNTERS]
};
void metrics_render(struct metrics_page *p, const struct metrics_copy *fabric, unsigned n, unsigned classes);

#endif
