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

struct sim_opts { // all zero is a strict fabric without latency
    uint64_t seed;
    int64_t link_latency_ns; // one way, a hop
    int64_t service_ns;      // a device's time for one SMP or PMA request; those of one device queue
    int64_t transit_ns;   // a switch's agent's time for a directed route that passes through; 0 = in hardware
    double loss;          // of every MAD at every hop into a device, 0..1
    unsigned vl15_buffer; // SMPs a device holds; more are dropped (VL15Dropped counts); 0 = 64
    bool keep_state; // --simulate-state file: LIDs and port states of the snapshot are kept; else factory
                     // state (LID 0, INIT)
    uint64_t dead_nodes_seed; // with dead_nodes: which nodes never answer (never the default port's)
    unsigned dead_nodes;
    int64_t train_ns;       // from cable in, enable or reboot to INIT
    double auto_active;     // chance that the far end of a link that goes ACTIVE follows by itself, 0..1
    int64_t auto_active_ns; // and after how long
    bool lft_drop;          // unwritten LFT entries read 255; else as after power-up: anything
    bool p_key_check;       // GMPs need matching P_Keys at both ends
    bool optimized_sltovl;  // switches have OptimizedSLtoVLMappingProgramming
    bool port_state_table;  // switches have SwitchPortStateTable
};

struct sim *sim_new(struct loop *l, const struct fabric *f, const struct sim_opts *o); // o may be NULL
void sim_free(struct sim *s); // transports must have been freed; not from a transport's recv()

// A transport at an end port (port_guid 0: the snapshot's sm_port, else the first adapter). NULL and *e when
// there is no adapter or no such port. Several may share a port; requests to an SM go to the one that turned
// issm on. What it never does: report a MAD as undeliverable (silence, as on the wire).
struct transport *sim_attach(struct sim *s, uint64_t port_guid, struct err *e);

// --- What operators and tests do to it. Names are NodeGUIDs and port numbers; -ENOENT when there is no such
// element. ---
int sim_link_set(struct sim *s, uint64_t node_guid, unsigned port,
                 bool up); // trap 128 from both ends when they can send one
// Moves the cable at a's port to z's port; what was in z's port hangs loose then. -EINVAL for the same port.
int sim_recable(struct sim *s, uint64_t a_guid, unsigned a_port, uint64_t z_guid, unsigned z_port);
int sim_node_kill(struct sim *s, uint64_t node_guid, bool dead); // agent stops answering; links stay up
// Service time of its agent times `factor` (1 = as the others); useless with service_ns 0.
int sim_node_slow(struct sim *s, uint64_t node_guid, unsigned factor);
// Tables, LID, P_Keys lost, ports through Down to INIT (after train_ns). Any node; for a switch -EINVAL if
// it is none.
int sim_node_reboot(struct sim *s, uint64_t node_guid);
int sim_switch_reboot(struct sim *s, uint64_t node_guid);
int sim_node_desc(struct sim *s, uint64_t node_guid, const char *desc); // sends trap 144
void sim_set_loss(struct sim *s, double loss);
// Set answered with success but not kept. For PortInfo the port's state still follows (a fabric without
// would never come up).
int sim_set_not_kept(struct sim *s, uint64_t node_guid, uint16_t attr_id, bool on);
// The same for one field of PortInfo or SwitchInfo, by its name in the codec ("subnet_timeout"). -EINVAL
// when there is no such field.
int sim_set_field_not_kept(struct sim *s, uint64_t node_guid, uint16_t attr_id, const char *field, bool on);
// Preloads a switch as an earlier manager left it: entries 0..lids-1 and LinearFDBTop. -EINVAL beyond its
// cap.
int sim_set_lft(struct sim *s, uint64_t switch_guid, const uint8_t *entry, unsigned lids, uint16_t top);
// A notice of 129..131 (port of a switch, or of an adapter), sent to its master SM and repeated.
int sim_raise_trap(struct sim *s, uint64_t node_guid, unsigned port, uint16_t trap_number);

enum sim_counter { // in the order of PortCountersExtended
    SIM_XMIT_DATA,
    SIM_RCV_DATA,
    SIM_XMIT_PKTS,
    SIM_RCV_PKTS,
    SIM_UNICAST_XMIT_PKTS,
    SIM_UNICAST_RCV_PKTS,
    SIM_MULTICAST_XMIT_PKTS,
    SIM_MULTICAST_RCV_PKTS,
    SIM_SYMBOL_ERRORS,
    SIM_LINK_ERROR_RECOVERY,
    SIM_LINK_DOWNED,
    SIM_RCV_ERRORS,
    SIM_RCV_REMOTE_PHYSICAL_ERRORS,
    SIM_RCV_SWITCH_RELAY_ERRORS,
    SIM_XMIT_DISCARDS,
    SIM_XMIT_CONSTRAINT_ERRORS,
    SIM_RCV_CONSTRAINT_ERRORS,
    SIM_LOCAL_LINK_INTEGRITY_ERRORS,
    SIM_EXCESSIVE_BUFFER_OVERRUN_ERRORS,
    SIM_VL15_DROPPED,
    SIM_XMIT_WAIT,
    SIM_QP1_DROPPED,
    SIM_COUNTERS,
};
// Adds to a counter of a port; data counters in units of four bytes.
int sim_counter_add(struct sim *s, uint64_t node_guid, unsigned port, enum sim_counter c, uint64_t delta);
int sim_counter_get(const struct sim *s, uint64_t node_guid, unsigned port, enum sim_counter c,
                    uint64_t *ret_value);
// `bytes` in packets of `packet` bytes go from an end port to a LID along the programmed tables: counters of
// every port on the way move. Hops, or -EHOSTUNREACH (what was carried up to there is counted, the discard
// too).
int sim_traffic(struct sim *s, uint64_t from_port_guid, uint16_t to_lid, uint64_t bytes, unsigned packet);

// --- Independent look at what was programmed, for tests ---
int sim_lft(const struct sim *s, uint64_t switch_guid, uint16_t lid, uint8_t *ret_port);
struct sim_port_view {
    uint16_t lid, sm_lid;
    uint8_t lmc, state, neighbor_mtu, oper_vls;
    bool linked;
};
int sim_port_view(const struct sim *s, uint64_t node_guid, unsigned port, struct sim_port_view *ret);
// A field of the PortInfo as the device has it, by its name in the codec. -EINVAL when there is no such
// field.
int sim_port_field(const struct sim *s, uint64_t node_guid, unsigned port, const char *field,
                   uint64_t *ret_value);
// How often a Set of PortInfo asked the port to re-register (and it could).
int sim_reregisters(const struct sim *s, uint64_t node_guid, unsigned port, uint64_t *ret_count);
int sim_switch_field(const struct sim *s, uint64_t switch_guid, const char *field, uint64_t *ret_value);
int sim_p_key(const struct sim *s, uint64_t node_guid, unsigned port, unsigned index, uint16_t *ret_key);
// Whether a switch forwards an MLID to a port.
int sim_mft(const struct sim *s, uint64_t switch_guid, uint16_t mlid, unsigned port, bool *ret_set);
// Follows the programmed tables from an end port to a LID, over links that carry data; number of hops, or
// -EHOSTUNREACH with the place in ret_where (may be NULL).
int sim_trace(const struct sim *s, uint64_t from_port_guid, uint16_t to_lid, char *ret_where,
              unsigned long size);

struct sim_stats {
    uint64_t mads;         // put on the wire by clients and agents
    uint64_t dropped_vl15; // agent's buffer full
    uint64_t lost;         // by opts.loss
    uint64_t no_route;     // link down, no such port, no table entry, wrong LID
    uint64_t loops;        // LID-routed beyond the hop limit
    uint64_t silent;       // M_Key mismatch, dead node, malformed, nobody to take it
    uint64_t traps;
};
void sim_get_stats(const struct sim *s, struct sim_stats *ret);
// A hash over everything that was delivered so far, with its time: equal runs have equal digests.
uint64_t sim_digest(const struct sim *s);

#endif
