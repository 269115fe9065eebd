// SPDX-License-Identifier: Apache-2.0
// One question: whatif.c finds the answer, whatif_render.c says it.
#ifndef WEFT_API_WHATIF_PRIV_H
#define WEFT_API_WHATIF_PRIV_H

#include "api/schema.h"
#include "api/whatif.h"
#include "fabric/edit.h"
#include "fabric/reach.h"

// Parts of the answer that are filled as they are found; what they mean is in their schemas.
struct whatif_asked {
    int64_t failed_nodes, failed_links, drained_links, added_nodes, added_links, ends_not_added;
};

struct whatif_changed {
    int64_t entries, blocks, switches, paths, waves, mads;
};

struct whatif_drained {
    int64_t links, spared, own, carry_on, ends_in_vain;
    struct items in_vain;
};

struct whatif_side_row {
    const char *engine, *why, *quality;
    double seconds;
    const struct compute_verify *verify;
    const struct whatif_changed *changed;
};

struct whatif_side { // tables of one moment, with all that is said of them
    struct route_result r;
    double seconds;
    struct route_proof proof;
    struct compute_verify verify;
    struct route_quality q;
    struct buf quality;
    struct whatif_changed changed;
    struct whatif_side_row row;
};

struct whatif {
    struct computation *c;
    struct par *par;
    struct whatif_base base;
    struct fabric_edit edit;
    bool *drained; // per port; NULL: none
    const struct fabric *edited, *numbered;
    const struct fabric *after; // one of these
    struct whatif_side before_side, after_side, accepted_side;
    struct buf ideal;
    struct reach_change reach;
    struct reach_change in_vain; // who hangs on nothing but what is asked to be drained
    struct whatif_asked asked;
    struct whatif_drained drained_row;
    struct whatif_mean mean[WHATIF_MEANS];
};

// Fills c->result, once all else is there.
void whatif_render(struct whatif *w, double seconds);

#endif
