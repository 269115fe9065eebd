// SPDX-License-Identifier: Apache-2.0
// A simulated InfiniBand fabric in process: every node is a subnet management agent (and performance agent)
// with state of its own that answers MADs as devices do, strict where bring-up depends on it. Made from a
// snapshot (topogen or a dump), deterministic from a seed, in virtual or real time as its loop says.
//
// It shows itself as transports: one per attached end port (the manager's, or a tool's). LID-routed MADs
// follow the *programmed* tables, directed routes the cables. Loop thread only. Nothing of the manager's
// model is shared: the simulator copies what it needs.
#ifndef WEFT_SIM_SIM_H
#define WEFT_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "fabric/fabric.h"
#include "lib/loop.h"
#include "mad/transport.h"

struct err;
struct sim;

struct sim_opts {
    uint64_t seed;
    int64_t link_latency_ns; // one way, a hop
    int64_t service_ns;      // a device's time for one SMP; SMPs of one device queue
    double loss;             // of every MAD at every hop into a device, 0..1
    unsigned vl15_buffer;    // SMPs a device holds; more are dropped (VL15Dropped counts); 0 = 64
    bool keep_state; // --simulate-state file: LIDs and port states of the snapshot are kept; else factory
                     // state (LID 0, INIT)
    uint64_t dead_nodes_seed; // with dead_nodes: which nodes never answer
    unsigned dead_nodes;
};

struct sim *sim_new(struct loop *l, const struct fabric *f, const struct sim_opts *o); // o may be NULL
void sim_free(struct sim *s); // transports must have been freed

// A transport at an end port (PORT_NONE: the snapshot's sm_port, else the first adapter). NULL and *e when
// there is no adapter.
struct transport *sim_attach(struct sim *s, uint64_t port_guid, struct err *e); // port_guid 0 = default

// What operators and tests do to it. Names are NodeGUIDs and port numbers; -ENOENT when there is no such
// element.
int sim_link_set(struct sim *s, uint64_t node_guid, unsigned port,
                 bool up); // trap 128 from both ends when they can send one
int sim_node_kill(struct sim *s, uint64_t node_guid, bool dead); // agent stops answering; links stay up
int sim_switch_reboot(struct sim *s,
                      uint64_t node_guid); // tables, LID, P_Keys lost, ports through Down to INIT
void sim_set_loss(struct sim *s, double loss);
int sim_set_not_kept(struct sim *s, uint64_t node_guid, uint16_t attr_id,
                     bool on); // Set answered with success but not kept

// Independent look at what was programmed, for tests: LFT entry of a switch, PortInfo fields of any port.
int sim_lft(const struct sim *s, uint64_t switch_guid, uint16_t lid, uint8_t *ret_port);
struct sim_port_view {
    uint16_t lid, sm_lid;
    uint8_t lmc, state, neighbor_mtu, oper_vls;
    bool linked;
};
int sim_port_view(const struct sim *s, uint64_t node_guid, unsigned port, struct sim_port_view *ret);
// Follows the programmed tables from an end port to a LID; number of hops, or -EHOSTUNREACH with the place in
// *ret_where.
int sim_trace(const struct sim *s, uint64_t from_port_guid, uint16_t to_lid, char *ret_where,
              unsigned long size);

struct sim_stats {
    uint64_t mads, dropped_vl15, lost, no_route, traps;
};
void sim_get_stats(const struct sim *s, struct sim_stats *ret);

#endif
