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

struct buf;
struct err;
struct mad_notice;
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
    bool p_key_check;       // GMPs need matching P_Keys at both ends and at switch ports that enforce
    bool q_key_check;       // GMPs need QP1's Q_Key
    bool no_mcast_top;      // switches without MulticastFDBTop (CapabilityMask bit 30)
    bool sltovl_zero;       // after power-up every SL goes by VL 0; else by SL modulo the port's lanes
    bool optimized_sltovl;  // switches have OptimizedSLtoVLMappingProgramming
    bool port_state_table;  // switches have SwitchPortStateTable
    bool adaptive_routing;  // switches adapt, with so many groups each (0 = 1024, below 4096)
    uint16_t adaptive_groups;
    bool adaptive_one_table;      // their linear and adaptive tables are one
    bool adaptive_all_transports; // they cannot leave any out
};

struct sim *sim_new(struct loop *l, const struct fabric *f, const struct sim_opts *o); // o may be NULL
void sim_free(struct sim *s); // transports must have been freed; not from a transport's recv()

// A transport at an end port (port_guid 0: the snapshot's sm_port, else the first adapter). NULL and *e when
// there is no adapter or no such port. Several may share a port; requests to an SM go to the one that turned
// issm on. What it never does: report a MAD as undeliverable (silence, as on the wire).
struct transport *sim_attach(struct sim *s, uint64_t port_guid, struct err *e);

// --- What operators and tests do to it. Names are NodeGUIDs and port numbers; 0, or -ENOENT when there is no
// such element. What happens, happens now, in virtual time; what is told to happen later survives the
// caller; times are up to 1,000,000 s (else -EINVAL). ---

// Links
int sim_link_set(struct sim *s, uint64_t node_guid, unsigned port,
                 bool up); // trap 128 from both ends when they can send one
// Down now, up after down_ns, down again after another up_ns, `times` in all (1..1,000,000; 1,000 when a
// period is below 10 us). 0 ns: in the same instant, so that only INIT and the PortStateChange bit (and
// traps, if they arrive) tell. Another sim_link_flap() or sim_link_set() of either end ends it. -EINVAL for
// what is out of range.
int sim_link_flap(struct sim *s, uint64_t node_guid, unsigned port, int64_t down_ns, int64_t up_ns,
                  unsigned times);
// Moves the cable at a's port to z's port; what was in z's port hangs loose then. -EINVAL for the same port.
int sim_recable(struct sim *s, uint64_t a_guid, unsigned a_port, uint64_t z_guid, unsigned z_port);
// The cables at two ports exchange their far ends. -EINVAL when one is loose or both are one cable.
int sim_swap_cables(struct sim *s, uint64_t a_guid, unsigned a_port, uint64_t b_guid, unsigned b_port);
// Widths and speeds enabled at the device itself, not by a Set; 0 = as it is. Takes effect at the next
// training; trap 144 with the flags of what changed. -EINVAL beyond what is supported.
int sim_link_enabled(struct sim *s, uint64_t node_guid, unsigned port, uint8_t width, uint8_t speed,
                     uint8_t speed_ext);

// Nodes
int sim_node_kill(struct sim *s, uint64_t node_guid, bool dead); // agent stops answering; links stay up
// Service time of its agent times `factor` (1 = as the others); useless with service_ns 0.
int sim_node_slow(struct sim *s, uint64_t node_guid, unsigned factor);
// Each request takes its agent so much longer (0 = as the others, at most a minute). -EINVAL beyond.
int sim_node_delay(struct sim *s, uint64_t node_guid, int64_t extra_ns);
// Tables, LID, P_Keys, counters lost, ports through Down to INIT (after train_ns). Any node; for a switch
// -EINVAL if it is none.
int sim_node_reboot(struct sim *s, uint64_t node_guid);
int sim_switch_reboot(struct sim *s, uint64_t node_guid);
// The same with the time it takes: its links stay down for down_ns (then train), its agents are silent for
// silent_ns from now (longer than down_ns: a link that is up and nobody answers). -EINVAL for negative times.
int sim_node_boot(struct sim *s, uint64_t node_guid, int64_t down_ns, int64_t silent_ns);
// The computer around an adapter boots while the adapter's firmware keeps the link: no trap 128, LID, tables
// and states stay; IsSM goes (a manager there is gone), NodeDescription becomes boot_desc (NULL: empty) and
// after os_ns its old value again, each with trap 144. Its multicast memberships are forgotten and made
// again by live hosts; `orderly`: it leaves the groups first. -EINVAL for a switch.
int sim_host_reboot(struct sim *s, uint64_t node_guid, int64_t os_ns, const char *boot_desc, bool orderly);
// Another device in its place, on the same cables, in factory state: NodeGUID and SystemImageGUID new_guid,
// PortGUIDs as far from it as before. From now on it is named new_guid; the old name is -ENOENT. Links are
// down for down_ns. -EEXIST when a node or port has that GUID; -EINVAL for 0.
int sim_node_replace(struct sim *s, uint64_t node_guid, uint64_t new_guid, int64_t down_ns);
// It says it is another node: its NodeGUID, SystemImageGUID and PortGUIDs (as far as that has ports), after
// a reboot. Here it is still named as before. of_guid 0: its own GUIDs again.
int sim_guid_duplicate(struct sim *s, uint64_t node_guid, uint64_t of_guid);
int sim_node_desc(struct sim *s, uint64_t node_guid, const char *desc); // sends trap 144
int sim_sys_guid(struct sim *s, uint64_t node_guid, uint64_t sys_guid); // sends trap 145
// An end port's M_Key as another manager or an operator has left it; 0 takes it away. protect 0..3, lease in
// seconds (0 = for ever). -EINVAL for a port without M_Key or values out of range.
int sim_m_key_set(struct sim *s, uint64_t node_guid, unsigned port, uint64_t m_key, uint8_t protect,
                  uint16_t lease_s);
void sim_set_loss(struct sim *s, double loss);
// Set answered with success but not kept. For PortInfo the port's state still follows (a fabric without
// would never come up).
int sim_set_not_kept(struct sim *s, uint64_t node_guid, uint16_t attr_id, bool on);
// The same for one field of PortInfo or SwitchInfo, by its name in the codec ("subnet_timeout"). -EINVAL
// when there is no such field.
int sim_set_field_not_kept(struct sim *s, uint64_t node_guid, uint16_t attr_id, const char *field, bool on);
// A switch learns to adapt, with so many groups (below 4096), or forgets how: 0.
int sim_adaptive_cap(struct sim *s, uint64_t switch_guid, unsigned groups);
// Preloads a switch as an earlier manager left it: entries 0..lids-1 and LinearFDBTop. -EINVAL beyond its
// cap.
int sim_set_lft(struct sim *s, uint64_t switch_guid, const uint8_t *entry, unsigned lids, uint16_t top);

// Traps. Each goes to the port's MasterSMLID and is repeated until a TrapRepress with the port's M_Key comes.
// `port` is that of a switch or of an adapter (0 on a switch: the switch itself).
// A notice with plausible details: 128, 129..131, 144 (without flags), 145, 256..259. -EINVAL for others,
// and for one that such a node never sends (128 and 259 are a switch's). Nothing but the notice happens.
int sim_raise_trap(struct sim *s, uint64_t node_guid, unsigned port, uint16_t trap_number);
enum sim_change { // flags of trap 144, as on the wire
    SIM_CHANGE_NODE_DESCRIPTION = 0x01,
    SIM_CHANGE_LINK_WIDTH_ENABLED = 0x02,
    SIM_CHANGE_LINK_SPEED_ENABLED = 0x04,
    SIM_CHANGE_SM_PRIORITY = 0x08,
    SIM_CHANGE_HIERARCHY_INFO = 0x10,
    SIM_CHANGE_CAPABILITY_MASK2 = 0x20,
};
int sim_raise_change(struct sim *s, uint64_t node_guid, unsigned port, unsigned flags); // trap 144
struct sim_bad_key { // traps 257..259; lid1, gid1, qp1 are the sender's
    uint32_t key;
    uint16_t lid1, lid2;
    uint32_t qp1, qp2;
    uint8_t sl;
    uint8_t gid1[16], gid2[16];
};
int sim_raise_bad_key(struct sim *s, uint64_t node_guid, unsigned port, uint16_t trap_number,
                      const struct sim_bad_key *k);
// Any notice as it is, of a vendor too; issuer_lid 0: the port's.
int sim_raise_notice(struct sim *s, uint64_t node_guid, unsigned port, const struct mad_notice *n);
// The next n traps and repeats that a node would send are lost; UINT_MAX: all, 0: none.
int sim_trap_lose(struct sim *s, uint64_t node_guid, unsigned n);
void sim_trap_loss(struct sim *s, double probability); // of every trap in the fabric, 0..1
// Notices that were sent and not yet repressed.
unsigned sim_traps_pending(const struct sim *s);

// --- A subnet manager that is played: an SMInfo agent at an end port, which does nothing to the fabric ---
struct sim_sm {
    uint8_t state;      // enum mad_sm_state
    uint8_t priority;   // 0..15
    uint64_t guid;      // 0 in sim_sm_add(): the port's
    uint64_t sm_key;    // not 0: a Set(SMInfo) with another is refused
    uint32_t act_count; // grows with every request it gets unless frozen
    bool frozen;
    bool silent; // hears nothing and says nothing; its IsSM bit stays
    bool quiet;  // a change of priority sends no trap 144
    // A standby asks the master (MasterSMLID of its port) so often, and becomes master itself after so many
    // requests without an answer; 0: never. poll_ns is at least 1 ms.
    int64_t poll_ns;
    unsigned poll_misses;
};
struct sim_sm_view {
    struct sim_sm sm; // as it is now
    uint64_t port_guid;
    uint16_t lid;
    uint64_t gets, sets, refused; // requests; refused: no legal transition, or wrong SM_Key
    uint64_t polls, polls_missed;
    uint64_t handovers_got, handovers_sent, acks_got, acks_sent;
    bool handover_open;   // sent, not acknowledged
    uint16_t last_status; // of the last answer to a Set of ours; 0xffff: none came
    uint64_t traps;       // that came to it; as master it represses them
};
// -EEXIST when the port has one, or a client has turned issm on there. Sets IsSM (trap 144).
int sim_sm_add(struct sim *s, uint64_t port_guid, const struct sim_sm *sm);
// A change of all at once (take sim_sm_view() first); a new priority sends trap 144 with its flag. -EINVAL
// for values out of range.
int sim_sm_set(struct sim *s, uint64_t port_guid, const struct sim_sm *sm);
int sim_sm_remove(struct sim *s, uint64_t port_guid); // clears IsSM (trap 144)
int sim_sm_view(const struct sim *s, uint64_t port_guid, struct sim_sm_view *ret);
int sim_sm_at(const struct sim *s, unsigned i, struct sim_sm_view *ret); // -ENOENT beyond the last
// Sends a control (enum mad_sm_control) to the manager at a LID. After HANDOVER it is master until an
// ACKNOWLEDGE comes, then standby. -EINVAL for a control that is none.
int sim_sm_control(struct sim *s, uint64_t port_guid, uint16_t to_lid, unsigned control);

// --- Live hosts: every adapter port behaves like a Linux host with IPoIB. When it goes ACTIVE, and after
// ClientReregister or a new LID or SMLID, it joins the broadcast group, then 224.0.0.1 and its IPv6
// solicited-node group, and asks the SA's ClassPortInfo a second later. A request that has no answer for
// timeout_ns or a bad one is made again after 1, 2, 4 ... 16 s. ---
struct sim_hosts_opts { // all zero is Linux
    int64_t timeout_ns; // 0: 3 s
    int64_t spread_ns;  // hosts react after a random time up to this
    double path_hz;     // PathRecord queries of each host, to others at random; up to 1000
    uint16_t p_key;     // of the IPoIB interface; 0: 0xffff
    bool no_ipv6;       // broadcast and 224.0.0.1 only
};
void sim_hosts_start(struct sim *s, const struct sim_hosts_opts *o); // o may be NULL; again: new options
void sim_hosts_stop(struct sim *s);                                  // all are forgotten
struct sim_hosts_stats {
    uint32_t hosts, active; // adapter ports; ACTIVE ones
    uint32_t ipoib_up;      // in the broadcast group
    uint32_t joined;        // in all groups
    uint64_t attempts;      // joins sent
    uint64_t failures;      // joins that got an error status or a useless answer
    uint64_t timeouts;      // joins without an answer
    uint64_t leaves;
    uint64_t restarts;                        // joined anew: ACTIVE, ClientReregister, LID, SMLID
    uint64_t infos, infos_ok;                 // ClassPortInfo asked, answered
    uint64_t paths, paths_ok, paths_timeouts; // PathRecord asked, found, no answer
    int64_t max_join_ns, sum_join_ns;         // from the (last) start to joined, over `joins`
    uint64_t joins;
};
void sim_hosts_stats(const struct sim *s, struct sim_hosts_stats *ret);
struct sim_host_view {
    bool active, ipoib_up, joined, booting;
    uint16_t mlid[3]; // broadcast, 224.0.0.1, solicited-node; 0 where not joined
    uint64_t attempts, failures, timeouts;
    int64_t join_ns; // of the last time it took; 0: not joined
};
int sim_host_view(const struct sim *s, uint64_t node_guid, unsigned port, struct sim_host_view *ret);

// --- Counters and traffic ---
enum sim_counter { // in the order of PortCountersExtended, as far as that goes
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
    SIM_SYNC_HEADER_ERRORS, // PortExtendedSpeedsCounters
    SIM_UNKNOWN_BLOCKS,
    SIM_FEC_CORRECTED_SYMBOLS,
    SIM_FEC_CORRECTABLE_BLOCKS,
    SIM_FEC_UNCORRECTABLE_BLOCKS,
    SIM_LOCAL_PHYSICAL_ERRORS, // PortRcvErrorDetails
    SIM_MALFORMED_PACKET_ERRORS,
    SIM_BUFFER_OVERRUN_ERRORS,
    SIM_DLID_MAPPING_ERRORS,
    SIM_VL_MAPPING_ERRORS,
    SIM_LOOPING_ERRORS,
    SIM_INACTIVE_DISCARDS, // PortXmitDiscardDetails
    SIM_NEIGHBOR_MTU_DISCARDS,
    SIM_SW_LIFETIME_LIMIT_DISCARDS,
    SIM_SW_HOQ_LIFETIME_LIMIT_DISCARDS,
    SIM_COUNTERS,
    SIM_EXTENDED_COUNTERS = SIM_SYNC_HEADER_ERRORS,
};
// Adds to a counter of a port; data counters in units of four bytes.
int sim_counter_add(struct sim *s, uint64_t node_guid, unsigned port, enum sim_counter c, uint64_t delta);
int sim_counter_get(const struct sim *s, uint64_t node_guid, unsigned port, enum sim_counter c,
                    uint64_t *ret_value);
// Errors that come by chance while the link is up: a counter of a port goes up so often an hour (0: no more).
// It is the port that receives what is damaged; LinkErrorRecovery is counted by its peer as well. -EINVAL for
// counters of traffic, LinkDowned, port 0, more than 1e12.
int sim_errors(struct sim *s, uint64_t node_guid, unsigned port, enum sim_counter c, double per_hour);
// Symbol errors by the bit error ratio that is left after correction, at the link's speed; up to 1e-3.
int sim_ber(struct sim *s, uint64_t node_guid, unsigned port, double ber);
// The bit error ratio before correction: corrected symbols and blocks of PortExtendedSpeedsCounters, each
// error in a block of its own.
int sim_raw_ber(struct sim *s, uint64_t node_guid, unsigned port, double ber);

// What modules and devices measure of themselves, which no MAD tells; the module's powers are those of its
// second lane, others are well. -EINVAL beyond -100 to 200 C, -60 to 20 dBm, what a device has of fans and
// power supplies (adapters: none), port 0.
struct sim_module {
    double celsius, rx_dbm, tx_dbm;
    bool fault; // it says that it has failed
};
enum { SIM_FANS = 8, SIM_SUPPLIES = 2 }; // that a switch has
struct sim_device {
    double celsius;
    unsigned failed_fans, failed_supplies;
};
int sim_module_set(struct sim *s, uint64_t node_guid, unsigned port, const struct sim_module *m);
int sim_device_set(struct sim *s, uint64_t node_guid, const struct sim_device *d);
uint64_t sim_sensed(const struct sim *s); // how often something was set; 0: there is nothing to measure
void sim_sensors_text(const struct sim *s, struct buf *ret); // of what was set, as ibdiagnet2.db_csv has it

// What a node's performance agent has, as old and new devices differ. All of it is what a node starts with.
struct sim_pma {
    bool none;       // it refuses the whole class
    bool extended;   // PortCountersExtended …
    bool ietf;       // … with unicast and multicast counters
    bool additional; // … and error counters
    bool xmit_wait, qp1_dropped, all_ports;
    bool details;           // PortRcvErrorDetails, PortXmitDiscardDetails
    bool speeds;            // PortExtendedSpeedsCounters …
    bool rsfec;             // … with the port's FEC counters; else the lanes'
    bool vl_waits;          // PortVLXmitWaitCounters
    bool drops;             // what it does not have it does not answer
    bool wraps;             // 32-bit counters go round (IBA: they stop)
    uint64_t redirect_guid; // ClassPortInfo sends to this node's LID; 0: no redirection
    uint32_t redirect_qp;   // 0: QP1
};
int sim_pma_get(const struct sim *s, uint64_t node_guid, struct sim_pma *ret);
int sim_pma_set(struct sim *s, uint64_t node_guid, const struct sim_pma *p);
// Gets of counters that go wrong: the next `times` of port `port` (0: any) of the node.
enum sim_pma_fault {
    SIM_PMA_RIGHT,
    SIM_PMA_JUMPS,      // 2^50 and more words, packets and ticks than there are
    SIM_PMA_BACK,       // three quarters of all it counts
    SIM_PMA_OTHER_PORT, // the port beside it, and says so
    SIM_PMA_OLD,        // what it said the last time
    SIM_PMA_STATUS,     // error status
    SIM_PMA_BUSY,
    SIM_PMA_SILENT,     // no answer
    SIM_PMA_SHORT_SUMS, // AllPortSelect gives port 1 alone
};
int sim_pma_fault(struct sim *s, uint64_t node_guid, unsigned port, enum sim_pma_fault f, unsigned times);
// Ticks that a lane (0..15) waits; part of what PortVLXmitWaitCounters shows, not of PortXmitWait.
int sim_vl_wait_add(struct sim *s, uint64_t node_guid, unsigned port, unsigned vl, uint64_t ticks);
// `bytes` in packets of `packet` bytes go from an end port to a LID along the programmed tables: counters of
// every port on the way move. A switch that adapts takes that port of a group which has sent least. Hops, or
// -EHOSTUNREACH (what was carried up to there is counted, the discard too).
int sim_traffic(struct sim *s, uint64_t from_port_guid, uint16_t to_lid, uint64_t bytes, unsigned packet);

// One multicast packet from an end port, carried along the programmed multicast tables over links that carry
// data (P_Keys and rates are not looked at); its counters move. `deliver` (may be NULL) is told each end port
// that gets copies, once, and how many (1 is right; the sender is told only when a copy comes back to it).
// Number of end ports told, -ELOOP when a copy came through a port that it had come through before,
// -EINVAL for a LID that is no multicast LID.
typedef void sim_deliver_fn(void *arg, uint64_t node_guid, unsigned port, unsigned copies);
int sim_multicast(struct sim *s, uint64_t from_port_guid, uint16_t mlid, sim_deliver_fn *deliver, void *arg);

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

// The same with every choice of switches that adapt: hops of the longest way when each mix of choices
// arrives, -EHOSTUNREACH, or -ELOOP when one can come back to where it was.
int sim_trace_all(const struct sim *s, uint64_t from_port_guid, uint16_t to_lid, char *ret_where,
                  unsigned long size);
struct sim_adaptive_view {
    bool supported, enabled;
    uint16_t group_cap, group_top;
    uint8_t transport_disable;
    uint64_t written_on; // Sets of groups and adaptive entries while it was enabled
};
int sim_adaptive_view(const struct sim *s, uint64_t switch_guid, struct sim_adaptive_view *ret);
// Ports by which the switch may send what goes to a LID, of transports that adapt. How many, or -ENOENT.
int sim_choices(const struct sim *s, uint64_t switch_guid, uint16_t lid, uint8_t ret_port[256]);
// What flows of equal rate put on the cables, in flows. adaptive: switches that adapt give each the port of
// its group that has least so far; else all go by the entries' ports.
struct sim_flow {
    uint64_t from_port_guid;
    uint16_t to_lid;
};
struct sim_load {
    unsigned arrived;
    unsigned max, max_between; // most on one direction of a cable; of one between switches
};
int sim_flows(const struct sim *s, const struct sim_flow *flow, unsigned n, bool adaptive,
              struct sim_load *ret);

// The same for a packet of service level sl: SLtoVL, OperationalVLs and VLArbitration may drop it too. `hop`
// (may be NULL) is told each port that it leaves by, and by which lane.
typedef void sim_hop_fn(void *arg, uint64_t node_guid, unsigned port, unsigned vl);
int sim_trace_sl(const struct sim *s, uint64_t from_port_guid, uint16_t to_lid, unsigned sl, sim_hop_fn *hop,
                 void *arg, char *ret_where, unsigned long size);
// SLtoVL as programmed (in 0: the node itself; an adapter: in 0).
int sim_sl2vl(const struct sim *s, uint64_t node_guid, unsigned in, unsigned out, unsigned sl,
              uint8_t *ret_vl);

struct sim_stats {
    uint64_t mads;         // put on the wire by clients and agents
    uint64_t dropped_vl15; // agent's buffer full
    uint64_t lost;         // by opts.loss
    uint64_t no_route;     // link down, no such port, no table entry, wrong LID
    uint64_t bad_vl;       // by SLtoVL, or on a lane beyond OperationalVLs or without a share of the port
    uint64_t loops;        // LID-routed beyond the hop limit
    uint64_t silent;       // M_Key mismatch, dead node, malformed, nobody to take it
    uint64_t traps;
    uint64_t traps_lost; // by sim_trap_lose() and sim_trap_loss(); of `traps`
    uint64_t traps_repressed;
    uint64_t bad_m_key, bad_p_key, bad_q_key; // MADs dropped for a key
};
void sim_get_stats(const struct sim *s, struct sim_stats *ret);
// A hash over everything that was delivered so far, with its time: equal runs have equal digests.
uint64_t sim_digest(const struct sim *s);

#endif
