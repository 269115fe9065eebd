// SPDX-License-Identifier: Apache-2.0
// A fabric that things happen to, and what they cost: for tests that play one event after the other.
#ifndef WEFT_TESTS_WHOLE_ODD_H
#define WEFT_TESTS_WHOLE_ODD_H

#include "tests/whole/rig.h"

extern const struct sim_opts odd_wire; // 50 us round trips

struct odd {
    struct rig r;
    uint32_t lids; // entries of a table that are looked at
    uint8_t *before;
    // since the last mark
    unsigned sweeps, events;
    uint64_t lft_set, info_get, info_set, node_get, desc_get, sm_get, lft_get;
    mono_t at;
};

void mark(struct odd *o);
unsigned lft_sets(const struct odd *o);
unsigned info_gets(const struct odd *o);
unsigned info_sets(const struct odd *o);
unsigned mads(const struct odd *o);
bool any_full(const struct odd *o);
void show(const struct odd *o, const char *what, int64_t ns);
unsigned findings_of(const struct odd *o, const char *code);
uint8_t *tables(const struct odd *o);
unsigned changed_blocks(struct odd *o);
bool whole(const struct odd *o);
int64_t repaired(struct odd *o, int64_t limit);
const struct node *nth(const struct odd *o, enum node_role role, unsigned n);
const struct port *port_of(const struct odd *o, const struct node *n, unsigned num);
const struct node *peer_of(const struct odd *o, const struct node *n, unsigned num, unsigned *ret_num);
unsigned uplink(const struct odd *o, const struct node *leaf, unsigned nth_one);
const struct node *own_leaf(const struct odd *o);
uint16_t lid_of(const struct odd *o, uint64_t port_guid);
const struct node *peer_now(const struct odd *o, uint64_t guid, unsigned num);
void all_links(struct odd *o, const struct node *n, bool up);
uint8_t state_of(const struct odd *o, uint64_t guid, unsigned num);
void bring_up(struct odd *o); // after rig_init()
void up_on(struct odd *o, const char *name);
void done(struct odd *o);
void quiet(struct odd *o, int seconds, unsigned repeats);

#endif
