// SPDX-License-Identifier: Apache-2.0
// A raw client for the simulator's tests: one MAD out, its answer or silence back, on a loop in virtual time.
#ifndef WEFT_TESTS_SIM_CLIENT_H
#define WEFT_TESTS_SIM_CLIENT_H

#include "lib/loop.h"
#include "mad/mad.h"
#include "mad/transport.h"
#include "sim/sim.h"

struct rig {
    struct loop *l;
    const struct fabric *f;
    struct sim *s;
    struct transport *t;
    struct transport_port port;
    uint64_t m_key; // of the SMPs that are sent
    uint32_t tid;
    bool got;
    uint8_t answer[MAD_SIZE];
    struct mad_addr from;
    // everything that was not the awaited answer
    unsigned others;
    uint8_t other[MAD_SIZE];
    struct mad_addr other_from;
    unsigned traps[300];   // by number
    unsigned classes[256]; // by management class
};

void rig_start(struct rig *r, const struct fabric *f, const struct sim_opts *o); // takes the fabric
void rig_stop(struct rig *r);
const struct fabric *rig_fabric(const char *name);
void rig_recv(void *arg, const uint8_t *mad, const struct mad_addr *from, int status);

struct dest {
    struct mad_smp_to to;
    uint16_t lid;
};
struct dest by_lid(uint16_t lid);
struct dest by_path(unsigned hops, ...); // out ports
struct dest dest_plus(struct dest d, unsigned port);

// Sends raw bytes; returns whether an answer came (r->answer) before virtual `wait_ns`.
bool rig_raw(struct rig *r, const uint8_t *mad, uint16_t lid, int64_t wait_ns);
// Get or Set; the MAD status, or -1 for silence. data (64 bytes) in and out.
int rig_smp(struct rig *r, const struct dest *d, uint8_t method, uint16_t attr, uint32_t am, uint8_t *data);
int rig_pma(struct rig *r, uint16_t lid, uint8_t method, uint16_t attr, uint8_t *data); // 192 bytes
void rig_run(struct rig *r, int64_t ns);                                                // lets time pass

#define EXT MAD_PORT_INFO_EXTENDED_SPEEDS
int rig_get_port(struct rig *r, const struct dest *d, unsigned num, struct mad_port_info *ret);
int rig_set_port(struct rig *r, const struct dest *d, unsigned num, const struct mad_port_info *pi);

// Brings the whole fabric up the simplest way: LIDs by node order, shortest paths from the snapshot, links
// ARMED, then ACTIVE. The attached port is the manager's.
void rig_bring_up(struct rig *r);
// ft3-4-4 brought up, the manager's issm on; who is who in it.
struct rig_ends {
    uint64_t leaf, agg;         // the manager's leaf, a switch above it
    unsigned leaf_port;         // of the leaf, to the manager
    unsigned up_port, agg_port; // of the leaf to the agg, and its end there
    uint64_t host, host_port_guid;
    uint64_t far_leaf; // the far host's, and its port to it
    unsigned far_port;
    uint16_t sm_lid;
};
void rig_up(struct rig *r, const struct sim_opts *o, struct rig_ends *ret);
uint64_t rig_field(struct rig *r, uint64_t guid, unsigned port, const char *name); // of PortInfo
uint64_t rig_switch_field(struct rig *r, uint64_t guid, const char *name);
int rig_node_info(struct rig *r, const struct dest *d, struct mad_node_info *ret); // as rig_smp()
void rig_repress(struct rig *r, const uint8_t *trap, uint16_t lid, uint64_t m_key);
void rig_notice(struct rig *r, struct mad_notice *ret); // of the last MAD that nobody asked for

struct dest rig_path(struct rig *r, uint64_t node_guid); // shortest directed route over the snapshot
uint16_t rig_lid_of(struct rig *r, uint64_t node_guid);

#endif
