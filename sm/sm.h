// SPDX-License-Identifier: Apache-2.0
// The InfiniBand subnet manager of one fabric: discovers it, gives LIDs, P_Keys and port settings, routes and
// proves, programs, and keeps watching.
//
// A sweep is a table of phases, run on the loop; nothing waits (sm_priv.h has the files, doc/ARCHITECTURE.md
// tells one bring-up and one change from end to end):
//
//     discover -> lids -> record -> configure ┐
//                               route+prove -> tables -> links active -> in force -> hosts active -> up
//
// The first one reads the whole fabric, as does one that somebody asks for. Afterwards a light sweep asks
// every switch and every listed exception once per interval; what it, a trap or the slow audit tells of is
// marked, and a partial sweep goes through the same phases with what is marked and what hangs together with
// it: it reads no other device, and writes only what is another one now. Beside sweeps the manager answers
// hosts (sa.h), and gives way to other managers or takes their place (election.h).
//
// Owned by the daemon, used from the loop thread only. Snapshots and tables that it hands out are
// reference-counted and immutable.
#ifndef WEFT_SM_SM_H
#define WEFT_SM_SM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fabric/builder.h"
#include "fabric/diff.h"
#include "fabric/groups.h"
#include "fabric/tables.h"
#include "lib/err.h"
#include "lib/loop.h"
#include "lib/pool.h"
#include "mad/engine.h"
#include "routing/route.h"

struct db;
struct err;
struct sm;

enum sm_state { // SMInfo.SMState
    SM_NOT_ACTIVE = 0,
    SM_DISCOVERING = 1,
    SM_STANDBY = 2,
    SM_MASTER = 3,
};
const char *sm_state_name(enum sm_state s);

enum sm_adaptive_mode {
    SM_ADAPTIVE_OFF,
    SM_ADAPTIVE_REFUSED, // asked for, but not on hardware unless that is said too; a finding tells
    SM_ADAPTIVE_ON,
};

struct sm_opts {
    const char *fabric; // its name in the database, the log and the API
    enum route_engine engine;
    const uint64_t *root_guids; // of rail and updn; borrowed for the life of the sm
    uint32_t num_roots;
    const char *lft_file; // ROUTE_FILE; borrowed
    uint8_t lanes;        // ROUTE_SSSP: at most so many virtual lanes; 0 = as many as all cables have
    uint8_t lmc;          // adapters' ports get 2^lmc LIDs each, 0..7
    uint8_t priority;     // 0..15
    uint64_t sm_key;
    uint64_t subnet_prefix;  // GidPrefix, fe80::/64 by default
    uint8_t subnet_timeout;  // 4.096 us x 2^n
    uint8_t packet_life;     // SwitchInfo.LifeTimeValue
    uint8_t hoq_life_switch; // PortInfo.HOQLife towards switches
    uint8_t hoq_life_host;   // … towards adapters and routers
    uint8_t vl_stall_count;
    uint8_t max_vls; // OperationalVLs at most, as its code (5 = VL0-14)
    uint8_t phy_errors, overrun_errors;
    int64_t sweep_interval_ns; // light sweep; 0 = none
    int64_t poll_interval_ns;  // SMInfo of other managers; 0 = 1 s
    int64_t audit_interval_ns; // the audit reads everything once in this time; 0 = never. Needs light sweeps
    bool adopt;                // keep tables found on the switches when they are proved
    uint32_t max_switches;     // that are managed; 0 = 8192
    bool allow_credit_loops;   // program minhop's tables although the proof finds cycles
    enum sm_adaptive_mode adaptive;
};
void sm_opts_default(struct sm_opts *o);

// What happened, for people and programs; strings are borrowed during the call.
struct sm_event {
    const char *kind;     // lower-case-with-dashes
    const char *severity; // info, notice, warning, error
    const char *subject;  // port or node name, or ""
    const char *text;
};

#define SM_PHASES_MAX 12
struct sm_phase_time {
    const char *name;
    int64_t ns;
    uint64_t mads;
};
struct sm_sweep { // one finished sweep
    uint64_t id;
    const char *cause; // "start", "trap", "switch-change", "operator", "light-sweep", …
    int64_t wall_ns;   // when it began
    int64_t ns;
    bool ok;
    bool full;            // the whole fabric was read; else what could have changed
    uint32_t devices;     // that were read
    int64_t reaction_ns;  // from the trap or light sweep that led here to the last table block; 0 = none
                          // was written
    uint64_t lft_entries; // forwarding entries that changed
    uint64_t paths_moved; // (leaf switch, destination) pairs whose route is another one now
    struct sm_phase_time phase[SM_PHASES_MAX];
    unsigned num_phases;
    uint64_t mads, retries, timeouts;
    uint64_t lft_blocks_set, port_sets;
    size_t nodes_added, nodes_removed, links_added, links_removed;
    char text[400]; // outcome in words; why, when not ok
};

struct sm_callbacks {
    void *arg;
    void (*event)(void *arg, const struct sm_event *ev);
    void (*snapshot)(void *arg); // fabric, tables or state changed
    void (*sweep)(void *arg, const struct sm_sweep *s);
};

// db may be NULL (nothing survives). Neither engine, pool nor db is owned. The first sweep starts with
// sm_start().
struct sm *sm_new(struct loop *l, struct mad_engine *e, struct transport *t, struct pool *pool, struct db *db,
                  const struct sm_opts *o, const struct sm_callbacks *cb);
void sm_free(struct sm *sm);
void sm_start(struct sm *sm);
// A full sweep soon (or right after the running one). cause: a literal. With reroute also what
// SM_BLUEPRINT_REROUTE means.
void sm_resweep(struct sm *sm, const char *cause, bool reroute);

// Takes the settings that devices are told of (prefix, time-outs, lifes, thresholds, VLs) from o and sweeps;
// the rest of o is not looked at.
void sm_reconfigure(struct sm *sm, const struct sm_opts *o);

// From now on; what follows for the election follows at once.
void sm_election_priority(struct sm *sm, uint8_t priority);

struct sm_status {
    enum sm_state state;
    bool up; // a bring-up has finished and none has failed since
    bool sweeping;
    const char *phase; // of the running sweep, or ""
    uint64_t sweeps, light_sweeps;
    uint16_t lid; // our own
    uint64_t port_guid;
    uint8_t priority; // our own
    struct {          // the master that we stand by for; guid 0 when we are it
        uint64_t guid;
        uint16_t lid;
        uint8_t priority, state;
    } other;
    struct route_result route; // engine, why, top (tables is NULL here)
    struct route_proof proof;  // of the tables in force
    uint32_t exceptions;       // on the standing list of the light sweep
    int db_status;             // 0, or the error of the last LID commit
    struct err error;          // of the last failed sweep; code 0 = none
};
void sm_get_status(const struct sm *sm, struct sm_status *ret);
// The last finished generation; NULL before the first. Borrowed: take a reference to keep it.
const struct fabric *sm_fabric(const struct sm *sm);
const struct fabric_tables *sm_tables(const struct sm *sm);
// The ideal tables that are kept to, and the fabric that they are of; false before there are any. Borrowed.
bool sm_ideal_tables(const struct sm *sm, const struct fabric **ret_fabric,
                     const struct fabric_tables **ret_tables);
// What tables in force are made of, for questions of the kind "what if": a function of these and the live
// fabric (route_repair()). All borrowed; what opts points to lives as long as sm. False before there are any.
struct sm_routing {
    const struct fabric *blueprint; // all that is meant to be there
    const struct fabric *made_for;  // of which the ideal tables are: the blueprint, or where they were found
    struct route_result ideal;
    struct route_opts opts;
};
bool sm_get_routing(const struct sm *sm, struct sm_routing *ret);

// --- the blueprint: the fabric that the ideal tables are computed for ---
enum sm_blueprint_state {
    SM_BLUEPRINT_LEARNING, // what is seen becomes part of it
    SM_BLUEPRINT_ACCEPTED, // fixed: only new hosts on leaf switches that it has become part of it
};
const char *sm_blueprint_state_name(enum sm_blueprint_state s);
enum sm_blueprint_op {
    SM_BLUEPRINT_NONE,
    SM_BLUEPRINT_ACCEPT,  // it is what it was and all that is seen; fixed from now on
    SM_BLUEPRINT_LEARN,   // not fixed any more
    SM_BLUEPRINT_SET,     // it is what is given; fixed from now on
    SM_BLUEPRINT_STRIKE,  // it is what is given, the same with less; its state stays
    SM_BLUEPRINT_REROUTE, // it is what is seen, with hosts that are away in their places on leaves that are
                          // there; fixed from now on, and routes are computed anew
};
struct sm_blueprint {           // borrowed
    const struct fabric *known; // NULL before the first sweep
    enum sm_blueprint_state state;
    int64_t since_wall_ns;      // when somebody has changed it last; 0 = never
    const char *by;             // who; or ""
    enum sm_blueprint_op asked; // not done yet
};
void sm_get_blueprint(const struct sm *sm, struct sm_blueprint *ret);
// What is asked for is done by the next sweep, a full one that begins soon: it becomes true when the tables
// that follow from it are proved and written. Where there are none (the engine refuses) it is dropped and
// told (event "blueprint-refused"). given: SET, STRIKE; a reference is taken. by: who asks, for the record.
void sm_blueprint_ask(struct sm *sm, enum sm_blueprint_op op, const struct fabric *given, const char *by);
// Pure; any thread: what it would become. One reference. known may be NULL.
const struct fabric *sm_blueprint_after(enum sm_blueprint_op op, enum sm_blueprint_state state,
                                        const struct fabric *given, const struct fabric *known,
                                        const struct fabric *live);
enum sm_blueprint_state sm_blueprint_state_after(enum sm_blueprint_op op, enum sm_blueprint_state now);
const struct findings *sm_findings(const struct sm *sm);
// Finished sweeps, newest first; i = 0 is the last one; NULL beyond the history (64).
const struct sm_sweep *sm_history(const struct sm *sm, unsigned i);

// Adaptive routing, as of the last time that groups were computed, and of what switches have said.
struct sm_adaptive_status {
    enum sm_adaptive_mode mode;
    uint32_t switches, supported, enabled;
    uint32_t left;              // that have it and do not do as they are told, or do not answer
    uint64_t entries, adaptive; // of switches' tables to what hangs on others; those with a group
    uint64_t choices;           // ports of all of the adaptive ones together
    uint32_t most_groups;       // of a switch
    uint32_t over_cap;          // switches that could use more groups than they hold
    uint32_t max_hops;          // of the longest mix of choices
    bool proved;                // there are groups, and they hold
    char why[400];              // what they go by; or why there are none
};
void sm_adaptive_status(const struct sm *sm, struct sm_adaptive_status *ret);
struct sm_adaptive_switch {
    bool supported, enabled;
    uint16_t groups, cap; // in use, of the last computation; GroupCap
    const char *why;      // it is left static; or "". Borrowed
};
// False for what is no switch, was not asked, or has not answered.
bool sm_adaptive_switch(const struct sm *sm, uint64_t guid, struct sm_adaptive_switch *ret);
// The groups that were computed last, and what they are of; NULL when there are none. Borrowed.
const struct fabric_groups *sm_adaptive_groups(const struct sm *sm, const struct fabric **ret_fabric,
                                               const struct fabric_tables **ret_tables);

// Another subnet manager that is known: met by a sweep, or heard of by its orders. A master polls all of
// them; a standby only its master, so that what it knows of others is as old as heard_ns says.
#define SM_PEERS_MAX 64
struct sm_peer {
    uint64_t guid;      // PortGUID, as its SMInfo tells
    uint64_t node_guid; // 0: only its LID is known
    uint16_t lid;       // 0: not known
    uint8_t port;
    uint8_t priority;
    enum sm_state state;
    bool above;       // ranks above us
    bool other_key;   // shows another SM_Key than ours
    unsigned missed;  // polls in a row that it has not answered
    int64_t heard_ns; // since its last answer
    char node[65];    // NodeDescription, or ""
};
// Those known, the highest first; returns how many, at most SM_PEERS_MAX.
unsigned sm_peers(const struct sm *sm, struct sm_peer ret[SM_PEERS_MAX]);

// Traps since the start of the manager.
#define SM_TRAP_NUMBERS 10
struct sm_trap_stats {
    uint64_t received, repressed;
    uint64_t unanswered;   // beyond what a port is answered in a second
    uint64_t not_master;   // came while we were not the master: not answered
    uint64_t duplicates;   // about what was to be read anyway
    uint64_t put_off;      // read later than at once: their port had used up its budget
    uint64_t unknown;      // from or about LIDs or ports that do not exist, or about others than the sender
    uint64_t other_issuer; // that named another issuer than their sender
    uint64_t nonsense;     // a producer, number or sender that cannot be
    uint64_t vendor;
    struct {
        uint16_t number; // 128, 129, …
        uint64_t count;
    } by_number[SM_TRAP_NUMBERS];
    uint64_t other_numbers;
    uint64_t floods; // that have begun
    unsigned flooding,
        bad_ports; // now: ports that send floods; (port, kind) that report errors again and again
};
void sm_trap_stats(const struct sm *sm, struct sm_trap_stats *ret);

// The slow audit: everything is read again and compared with what we hold.
struct sm_audit_stats {
    bool running;                   // in the middle of a round
    uint32_t devices, devices_done; // of the running or last round
    uint64_t rounds;                // whole ones
    int64_t last_round_wall_ns;     // when the last one ended; 0 = none has
    int64_t last_round_ns;          // how long it took
    uint64_t drifted;               // devices found to differ, since the start
    uint64_t skipped;               // not judged since they were to be read anyway
};
void sm_audit_stats(const struct sm *sm, struct sm_audit_stats *ret);

#endif
