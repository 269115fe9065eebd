// SPDX-License-Identifier: Apache-2.0
// For verify*.c, and for plan*.c and mcast.c what stands last. Nothing else here comes from, or goes to, what
// makes tables.
#ifndef WEFT_ROUTING_VERIFY_PRIV_H
#define WEFT_ROUTING_VERIFY_PRIV_H

#include "lib/arena.h"
#include "routing/route.h"

// Where a port leads, beside a switch: one of these plus the fault that it is to end there.
#define LINK_STOP 0xffffff00u
#define LINK_DEAD (LINK_STOP + ROUTE_DEAD_PORT) // no usable cable, or no such port
#define LINK_END (LINK_STOP + ROUTE_WRONG_END)  // to an end node, or to the switch itself
#define LINK_ARRIVES (LINK_STOP + ROUTE_OK)
#define BLOCK LFT_BLOCK

struct vcables {
    const struct fabric *f;
    const struct fabric_tables *t;
    uint32_t n;
    uint32_t ports; // per switch, numbers 0 .. ports - 1
    uint32_t words; // of 64 bits, for a set of ports
    uint32_t *link; // [switch * ports + port]: switch at the far end, or LINK_*
    uint32_t *part; // connected part of a switch
    bool *source;   // switch walked from
    uint32_t num_sources;
    struct fabric_tables *keep; // gets the entries that arrive; may be NULL
    uint16_t *hist;             // [lid * VHOPS + hops]: sources that arrive so; may be NULL
    // For the walk, by vwalk_prepare():
    uint8_t cap;       // bound of an entry: no port
    uint32_t *hop;     // [switch * (cap + 1) + port]: switch at the far end, or n
    uint64_t *onward;  // [switch * words]: ports that lead to a switch
    uint64_t bit[256]; // of a port in its word of a set; 0 for port 0 and for what is no port
    uint8_t word[256];
};
#define VHOPS 16

struct vfault {
    enum route_fault fault;
    uint32_t sw;
    uint16_t lid;
};

// One switch's entries for the LIDs that are walked to together, and what became of each: nothing yet, how it
// ends, or hops. Sized so that those of a switch's neighbours stay in the nearest cache.
#define VLIDS 256
struct vrow {
    uint8_t next[VLIDS];
    uint8_t found[VLIDS];
};

// A switch whose row was looked at entry by entry, and what its entries make: another one with the same
// entries over the same cables need not be looked at so.
#define VTWINS 128
struct vtwin {
    uint32_t sw;    // ID_NONE: none
    uint32_t far;   // where its first entry leads
    bool walked;    // it is a source, and all entries lead on and arrive
    uint64_t *dep;  // [port * words]: ports that are left by next
    uint64_t *dep2; // the same of every other entry, until they are put together
    uint8_t *used;  // per port: it is some entry's
};

struct vtask {
    struct arena *a;
    uint64_t pairs, disconnected, unreached;
    uint32_t max_hops;
    struct vfault first; // of the lowest LID, and of it the lowest switch
    uint64_t *dep;       // [channel * words]: ports that are left by next
    uint64_t *used;      // a bit per channel: it carries something
    uint64_t *turns;     // as dep, of all entries, walked over or not; NULL when no state is kept
    uint8_t *carries;    // as used, a byte per channel, and more: ports that lead to no switch
    struct vrow *row;    // per switch, and one for where no switch is
    uint32_t *path, *hops;
    uint8_t *twin_at; // [far]: the last one; may be another one's by now
    uint32_t num_twins;
    struct vtwin twin[VTWINS]; // the last so many
    // LIDs, ascending, and the switches where they hang.
    uint32_t num_lids;
    uint16_t lid[VLIDS];
    uint32_t end[VLIDS];
    uint16_t count[VHOPS][VLIDS]; // sources that arrive after so many hops
};

void vread_cables(struct vcables *c, const struct verify_opts *o, struct arena *a);
void vfind_parts(struct vcables *c, struct arena *a);
// The switch and port where a LID's end port hangs; false when on none. The LID must be some port's.
bool vend_of(const struct fabric *f, uint32_t lid, uint32_t *ret_sw, uint8_t *ret_port);
static inline bool vpresent(const struct fabric *f, uint32_t lid)
{
    return lid > 0 && lid <= f->top_lid && f->lid_port[lid] != ID_NONE;
}
// After vread_cables().
void vwalk_prepare(struct vcables *c, struct arena *a);
void vtask_new(const struct vcables *c, struct vtask *k);
// Walks to the LIDs of k->lid, each that of some port. Any number of times; then vwalk_end().
void vwalk_to(const struct vcables *c, struct vtask *k);
void vwalk_end(const struct vcables *c, struct vtask *k);
// A cycle of channels, its length in *ret_n, or NULL.
uint32_t *vfind_cycle(const struct vcables *c, const uint64_t *dep, struct arena *a, uint32_t *ret_n);
// to |= from; the number of bits that are set then.
uint32_t vmerge_bits(uint64_t *to, const uint64_t *from, size_t words);
// verify_lanes.c: what is wrong with the lanes of c->t, which has some; ROUTE_OK, or `text` says what.
enum route_fault vlanes_prove(const struct vcables *c, struct par *par, char *text, size_t size);
static inline uint32_t vfar_end(const struct vcables *c, uint32_t sw, uint8_t port)
{
    return port < c->ports ? c->link[(size_t)sw * c->ports + port]
                           : LINK_STOP + (port == LFT_DROP ? ROUTE_NO_ENTRY : ROUTE_DEAD_PORT);
}

struct route_proof_state {
    struct arena *a;
    _Atomic unsigned refs;
    bool all_switches;
    uint32_t n, ports, words, lids; // lids: the highest, plus 1
    uint64_t *guid;
    uint32_t *link, *part; // as in vcables
    bool *source;
    uint32_t *end_sw; // per LID: VABSENT, ID_NONE when on no switch
    uint8_t *end_port;
    uint16_t *hist;
    uint64_t *dep, *used; // at least what the tables need
    uint64_t *turns;      // as dep, of all entries, walked over or not
};
#define VABSENT 0xfffffffeu
// What a full proof that found nothing leaves behind; NULL when it does not fit.
struct route_proof_state *vstate_new(const struct vcables *c, const struct vtask *k, bool all_switches);
// For plan*.c: turns of all entries of LIDs in use; NULL when the state is of a fabric with other numbers.
const uint64_t *vstate_turns(const struct route_proof_state *s, uint32_t n, uint32_t ports, uint32_t words);
// For mcast.c: whether the dependencies are at least those of its tables on f: the same switches by number,
// no cable between switches, LID in use or switch with end ports that was not there. O(ports).
bool vstate_covers(const struct route_proof_state *s, const struct fabric *f);
// Ports by which that goes on what leaves a switch by a port, at the switch which that leads to: *ret_words
// words, bit 0 is port 1. The port is one that leads to a switch of a fabric which is covered.
const uint64_t *vstate_deps(const struct route_proof_state *s, uint32_t sw, uint32_t port,
                            uint32_t *ret_words);

#endif
