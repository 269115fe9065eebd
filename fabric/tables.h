// SPDX-License-Identifier: Apache-2.0
// Forwarding tables beside a snapshot: one linear table per switch (dense switch number of the same fabric),
// sealed, reference-counted like it. lft[sw][lid] is the out port, LFT_DROP for none; every switch's row has
// `lids` entries (top LID + 1 rounded up to whole blocks of 64).
#ifndef WEFT_FABRIC_TABLES_H
#define WEFT_FABRIC_TABLES_H

#include "fabric/fabric.h"

struct arena;
struct err;

// Virtual lanes beside the tables: one for each pair of switches, the same in both directions, as a packet's
// answer goes back on the service level that it came by. All LIDs that hang on a switch share its lanes: a
// packet from an end port on switch a to a LID on switch b, and back, goes by lane lanes_get(a, b) on all
// cables between switches. Immutable once given to tables; reference-counted.
struct fabric_lanes {
    uint32_t num_switches, num_lanes; // lanes 0 .. num_lanes - 1 are in use
    size_t stride;                    // bytes of a row
    uint8_t *pair;                    // [a * stride + b / 2]: low half for even b
};
#define LANES_MAX 8
#define LANE_NONE 15 // nothing is sent between these two but on VL15

static inline unsigned lanes_get(const struct fabric_lanes *l, uint32_t a, uint32_t b)
{
    return l->pair[a * l->stride + b / 2] >> (b % 2 * 4) & 15;
}
struct fabric_lanes *lanes_new(uint32_t num_switches);                         // all LANE_NONE; one reference
void lanes_set(struct fabric_lanes *l, uint32_t a, uint32_t b, unsigned lane); // both directions
// Re-indexed: switches matched by GUID, LANE_NONE for new ones.
struct fabric_lanes *lanes_copy_for(const struct fabric_lanes *from, const struct fabric *from_fabric,
                                    const struct fabric *f);
struct fabric_lanes *lanes_ref(const struct fabric_lanes *l);
void lanes_unref(const struct fabric_lanes *l); // NULL is fine
// Whether both say the same of every pair; NULL says lane 0 of all.
bool lanes_equal(const struct fabric_lanes *a, const struct fabric_lanes *b);
size_t lanes_bytes(const struct fabric_lanes *l);
// For keeping, or for handing to another manager: lanes of f's switches by their GUIDs, whatever numbers
// these get next time; few bytes where most pairs have the same lane, one a pair at most. *ret is malloc'd,
// the caller's. -E2BIG beyond LANES_SWITCHES_MAX switches, -EINVAL when the lanes are not of f.
#define LANES_SWITCHES_MAX 16384
int lanes_write(const struct fabric_lanes *l, const struct fabric *f, uint8_t **ret, size_t *ret_size);
// What lanes_write() wrote, for the switches of f: LANE_NONE for those that it does not know. One reference.
// Trusts nothing: -EINVAL and *e. That the lanes have no cycle is for the proof to say.
int lanes_read(const void *data, size_t size, const struct fabric *f, struct fabric_lanes **ret,
               struct err *e);

struct fabric_tables {
    uint32_t num_switches;
    uint32_t lids;                    // entries per switch, a multiple of LFT_BLOCK
    uint16_t top_lid;                 // highest LID with a meaning
    uint8_t *lft;                     // num_switches * lids
    char engine[16];                  // what made it: "updn", "minhop", "adopted", "file"
    uint64_t generation;              // of the fabric it was made for
    const struct fabric_lanes *lanes; // NULL: everything goes by one lane, 0. The tables hold one reference
};

static inline uint8_t *tables_row(const struct fabric_tables *t, uint32_t sw)
{
    return t->lft + (size_t)sw * t->lids;
}
static inline uint8_t tables_port(const struct fabric_tables *t, uint32_t sw, uint16_t lid)
{
    return lid < t->lids ? tables_row(t, sw)[lid] : LFT_DROP;
}

// All entries LFT_DROP; one reference; writable until sealed.
struct fabric_tables *tables_new(const struct fabric *f, uint16_t top_lid, const char *engine);
// The same with entries that are nothing yet: the caller fills every row to its end.
struct fabric_tables *tables_new_unset(const struct fabric *f, uint16_t top_lid, const char *engine);
// A writable copy re-indexed for fabric `f` (switches matched by GUID over `from_fabric`; rows of new
// switches are LFT_DROP), lanes too (LANE_NONE for new switches).
struct fabric_tables *tables_copy_for(const struct fabric_tables *from, const struct fabric *from_fabric,
                                      const struct fabric *f, uint16_t top_lid);
// Before sealing; takes the reference. Those that were there are let go.
void tables_set_lanes(struct fabric_tables *t, const struct fabric_lanes *l);
void tables_seal(struct fabric_tables *t, bool protect);
// Any thread: a worker may hand on tables that the loop holds too.
struct fabric_tables *tables_ref(const struct fabric_tables *t);
void tables_unref(const struct fabric_tables *t);
size_t tables_bytes(const struct fabric_tables *t);

struct tables_diff {
    uint64_t entries; // entries that differ
    uint32_t blocks, switches;
};
// Between two tables of the same fabric (same switch numbers); a shorter table counts as LFT_DROP beyond its
// end.
struct tables_diff tables_compare(const struct fabric_tables *a, const struct fabric_tables *b);
// Of switches from .. to - 1 only.
struct tables_diff tables_compare_rows(const struct fabric_tables *a, const struct fabric_tables *b,
                                       uint32_t from, uint32_t to);

#endif
