// SPDX-License-Identifier: Apache-2.0
// A change of the blueprint: what it would be, what would move, what would be gained; a worker computes that,
// and hands what is to be asked for back to the loop.
#ifndef WEFT_API_BLUEPRINT_H
#define WEFT_API_BLUEPRINT_H

#include "api/compute.h"
#include "sm/sm.h"

#define BLUEPRINT_TEXT_MAX (64u << 20) // bytes of a file
#define BLUEPRINT_ITEMS 100            // of each kind that are listed

struct blueprint_routes;
struct blueprint_change {
    enum sm_blueprint_op op;
    enum sm_blueprint_state state; // now
    bool dry_run, force;
    char *element;     // SM_BLUEPRINT_STRIKE
    char *text, *name; // SM_BLUEPRINT_SET: a file and what it is called
    size_t len;
    char by[64];
    // out
    const struct fabric *given, *next; // to be asked for; what it would become
    struct blueprint_compare *change; // the blueprint beside the next one: missing is dropped, extra is added
    struct blueprint_compare *beside; // the next one beside what is there
    char kept[700];                   // what is silent and stays; "" for none
    char *warning[8];
    size_t num_warnings;
    struct blueprint_routes *routes; // NULL: not computed
};
// On a worker. c->routing.blueprint is the blueprint, c->f what is there, c->tables and
// c->routing.drain are what is in force; fills what is out, or c->err.
void blueprint_change_run(struct computation *c, struct blueprint_change *x, struct par *par);
// Appends an object of schema_blueprint_change. sweep: NO_INT when nothing was asked for.
void blueprint_change_render(const struct computation *c, const struct blueprint_change *x, int64_t sweep,
                             struct buf *b);
void blueprint_change_free(struct blueprint_change *x); // NULL is fine
extern const struct schema schema_blueprint_change, schema_blueprint_item;
extern const char *const blueprint_ops[], *const blueprint_states[]; // by enum

struct blueprint_item_row {
    const char *kind, *text;
    uint64_t guid;
    int64_t port;
};
// Texts of a comparison as rows; both malloc'd.
struct blueprint_rows {
    struct blueprint_item_row *row;
    char **text;
    size_t n;
};
struct blueprint_compare;
void blueprint_rows_fill(struct blueprint_rows *r, const struct blueprint_compare *c,
                         const struct fabric *blueprint, const struct fabric *live);
void blueprint_rows_done(struct blueprint_rows *r);

#endif
