// SPDX-License-Identifier: Apache-2.0
// Inside the subnet manager. Files, in reading order:
//
//     sm.c        life cycle, the sweep's phase table, history, timers, what callers ask
//     device.c    devices, directed routes to them, requests
//     read.c      what one device is asked, and what its answers mean
//     discover.c  phase "discover" of a full sweep: breadth-first over directed routes, level by level
//     partial.c   phase "discover" of a partial sweep: what is marked, and what hangs together with it
//     dirty.c     what has to be read again, what the running sweep has touched
//     model.c     devices -> snapshot, and findings about them
//     notes.c     findings that outlive the sweep that made them
//     lids.c      who gets which LID; its decision is pure (lids.h)
//     portcfg.c   pure: which PortInfo a port should have, and what differs
//     adaptive.c  adaptive routing: off while tables change, then groups; adaptive_plan.c: their job
//     pass.c      one request stream per device, many devices at once: what programming is made of
//     program.c   phases "configure", "lanes", "tables", "links", "hosts"
//     sl2vl.c     what phase "lanes" writes: which lane a service level goes by
//     lanes.c     lanes as hosts know them: kept over restarts, told anew when they change
//     routes.c    phase "route": the job for the worker; adoption of tables found on the switches
//     blueprint.c what the fabric is meant to be: its state, what is asked of it, kept
//     learn.c     on the worker: the next blueprint and the ideal tables for it
//     drain.c     cables and switches that traffic is kept off: the list (drain_*.c: routes, checks, events)
//     watch.c     light sweep, standing list, timers
//     trap.c      traps
//     audit.c     the slow audit
//     sminfo.c    other managers
//     sa*.c       what end nodes ask; sa_priv.h has the list
//     mcast.c     multicast forwarding tables; mcast_tree.c: the tree behind them
//
// A device (struct sm_dev) is what the manager remembers of one node, found by GUID, from its first sight on.
// All of it is the loop thread's.
#ifndef WEFT_SM_SM_PRIV_H
#define WEFT_SM_SM_PRIV_H

#include <stdatomic.h>

#include "db/db.h"
#include "fabric/compare.h"
#include "fabric/merge.h"
#include "lib/err.h"
#include "lib/hash.h"
#include "mad/mad.h"
#include "sm/election.h"
#include "sm/portcfg.h"
#include "sm/sm.h"

#define DEV_NONE UINT32_MAX
#define SM_HISTORY 64
#define SM_SWITCHES_MAX 8192 // tables are switches x LIDs: 400 MB
#define SM_NODES_MAX 65536   // what the model holds
#define SM_PORTS_MAX 1048576
#define PORT_STUCK 2
#define UNFINISHED_MAX 4   // then everything is read
#define UNFINISHED_NEWS 20 // the same, where each may have failed because of what was told meanwhile
#define UNREAD_MAX 16      // likewise
#define SM_LIGHT_GEN 1     // requests of a light sweep in the engine
#define SM_PARTIAL_GEN 2   // of a partial sweep's reading
#define SM_ASK_GEN 3       // its questions to switches; they outlive it
#define SM_SILENT 3        // time-outs in a row after which a device is asked nothing more in the phase

struct sm_port {
    uint8_t info[MAD_SMP_DATA_SIZE]; // PortInfo, wire form: as last read, or as the answer to the last Set
                                     // showed it
    uint64_t m_key;                  // of an end port, as far as it can be read: goes into the header of Sets
    uint64_t guid;                   // of an end port, 0 otherwise or when never seen
    uint64_t last_peer;              // GUID of the device last seen behind it, 0 = none yet
    uint32_t peer;                   // device index, DEV_NONE
    uint32_t not_kept;               // PORTCFG_* bits of fields the device does not keep; void when it resets
    uint16_t lid;                    // assigned, end ports only; 0 = none
    uint8_t lmc;                     // likewise
    uint32_t read;                   // id of the sweep (low bits) that has read its PortInfo last
    uint32_t armed;                  // likewise: that has brought it from INIT to ARMED
    uint32_t probed, met; // ids of the sweep (low bits) that asked for / met who is behind it, at either end
    uint8_t peer_num;
    uint8_t excluded; // enum port_excluded
    uint8_t idle;     // times that it was looked at again since it should be ACTIVE and is not
    uint8_t fails;    // sweeps in a row in which it did not take its PortInfo; PORT_STUCK: not routed over
    bool known;       // info was read and is not void
    bool was_silent;  // nobody answered behind it in the last sweep
    bool dirty, dirty_probe; // to be read: its PortInfo; who is behind it
    bool reregister;         // the Set that is under way carries ClientReregister
    bool asked_plain;        // PortInfo was asked without the extended-speeds bit
    bool fdr10;
    uint16_t
        *pkey0; // P_Key block 0 as read, when its index 0 is not the default partition's full key; else NULL
};

enum dev_lft {
    DEV_LFT_UNKNOWN, // read it before planning
    DEV_LFT_BLANK,   // LinearFDBTop 0: forwards nothing
    DEV_LFT_SHADOW,  // as in sm->tables
};

struct sm_dev {
    uint64_t guid;
    uint64_t seen;        // id of the last sweep that saw it
    uint32_t index, node; // in sm->dev; in the snapshot being built (ID_NONE when not in it)
    bool here, was_here;  // connected to us; when the running full sweep began
    bool touched;         // read or joined anew in this sweep: it is configured
    bool changed;         // reading it brought something new
    uint8_t vain;         // sweeps in a row that read it and found nothing
    mono_t believed_from; // until then its PortStateChange is not believed
    uint8_t dirty;        // DIRTY_*
    uint16_t level;       // hops from our own node
    uint32_t parent;      // device and port by which the shortest way leads here
    uint8_t parent_port;
    struct dr_path path; // switches and our own node
    struct mad_node_info ni;
    struct mad_switch_info si;
    char desc[65];
    bool have_desc, have_si;
    bool all_ports;      // port 0's PortInfo is followed by the others'
    uint32_t ports_read; // id of the sweep (low bits) that has asked for them all
    // Ids of sweeps (low bits): of ports that were armed earlier nothing has happened that was not read; the
    // same before this reading.
    uint32_t seen_from, seen_from_before;
    bool shows_change; // has had PortStateChange set when it told of a change
    // of a partial sweep
    bool told,
        told_nothing;     // read for a trap only; had PortStateChange not set, so that its ports are not read
    bool reading;         // SwitchInfo and all ports are read in this sweep
    bool asking, suspect; // reading waits for its SwitchInfo; not any more, as no way brought it
    bool ask_answered;
    bool slow;                    // left a first try of the sweep's reading unanswered
    uint32_t reads;               // outstanding requests of it; without probes of who is behind a port
    uint8_t unread;               // sweeps in a row that did not wait for all its answers
    uint32_t unread_in, heard_in; // the last of them, the last in which it has answered (low bits of ids)
    bool gave_up;                 // the light sweep has had no answer to all its tries
    uint8_t anew;                 // times that the question was asked by other ways
    uint8_t asks, ask_ways, ask_lates; // outstanding; ways tried by the last question; late ones of them
    struct dr_path ask_path, other_path;
    bool port0_read; // before its SwitchInfo
    bool foreign_pkeys;
    bool too_small; // LinearFDBCap is below what the fabric needs: not routed through, no tables
    uint8_t silent; // time-outs in a row; SM_SILENT: nothing more is asked in this phase
    enum dev_lft lft, lft_before;     // now; when the sweep began
    bool lft_failed;                  // a block of this sweep was not taken
    bool lft_mixed;                   // blocks were written in a sweep that has not ended well
    struct sm_vls *vls;               // sl2vl.c; NULL while nothing was asked
    struct sm_adaptive_dev *adaptive; // of a switch; NULL: not asked yet
    struct sm_port *port;             // num_ports + 1; [0] unused for end nodes
};

// One request stream per device; see pass.c.
struct sm_item {
    uint32_t tag; // handed back with the answer: a port or block number
    uint8_t method;
    uint16_t attr_id;
    uint32_t attr_mod;
    uint8_t port; // of an end node: which of its ports to reach it by; 0 for switches
    bool has_data;
    uint8_t data[MAD_SMP_DATA_SIZE];
};
struct sm_pass {
    struct sm *sm;
    const char *name;
    bool touched_only;
    // The device's next request, or false when it has no more. cursor starts at 0 and belongs to the
    // callback.
    bool (*next)(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *ret);
    void (*done)(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r);
    void (*finished)(struct sm_pass *p);
    // May be NULL: makes the request of that tag once more. It is made by another way where the one in use
    // seems to be dead.
    void (*again)(struct sm_pass *p, struct sm_dev *d, uint32_t tag, struct sm_item *ret);
    uint32_t *cursor;
    uint16_t *out;
    uint8_t *detours;  // other ways that were taken to the device
    uint16_t *turning; // requests that are to be made again by the new one
    uint64_t pending;
    uint32_t num;
    bool running;
    struct loop_task task;
};
// Starts the pass over the devices that are here; finished() comes later from the loop, also when there was
// nothing to do.
void sm_pass_start(struct sm_pass *p, struct sm *sm);
// One more request of a running pass, from its done(): a re-read, say.
void sm_pass_send(struct sm_pass *p, struct sm_dev *d, const struct sm_item *it);
// Something has happened that waits for the running sweep's end: devices that do not take their settings now
// are left to the next one, as soon as nobody has answered for a while. again: it was asked before.
void sm_pass_hurry(struct sm *sm, bool again);
void sm_passes_done(struct sm *sm); // frees what passes hold, in any state

enum { DIRTY_SWITCH = 1, DIRTY_PORTS = 2, DIRTY_DESC = 4, DIRTY_MUTE = 8, DIRTY_TOLD = 16 };

struct sm_dev_list {
    uint32_t *index;
    uint32_t n, cap;
};
struct sm_port_ref {
    uint32_t dev;
    uint8_t num;
};
struct sm_slab { // memory of sm_reads
    struct sm_slab *next;
    void *mem;
};

struct sm_blueprint_ask { // what somebody has asked for
    enum sm_blueprint_op op;
    const struct fabric *given; // SM_BLUEPRINT_SET, _STRIKE: a reference
    char by[64];
};

struct sm_vls;      // sl2vl.c
struct sm_adaptive; // adaptive.c
struct sm_adaptive_dev;
struct sm_note;          // notes.c
struct sm_read;          // read.c
struct sm_route_job;     // routes.c
struct sm_blueprint_job; // blueprint.c
struct sm_election;      // sminfo.c
struct sm_sa;            // sa.c
struct sm_mcast;         // mcast.c
struct sm_traps;         // trap.c
struct sm_audit;         // audit.c

struct sm {
    struct loop *loop;
    struct mad_engine *engine;
    struct transport *transport;
    struct pool *pool;
    struct db *db;
    struct sm_opts o, next_o;
    bool reconfigured; // next_o is to be taken over
    struct sm_callbacks cb;

    enum sm_state state;
    bool up, sweeping;
    bool failed_told;  // "sweep-failed" was the last word
    bool tables_begun; // blocks have been written since the start: what is found is no longer what was there
    uint8_t
        unfinished; // partial sweeps in a row that could not write all tables: the next goes on from there
    bool explained; // the last one may have failed because of what was told meanwhile, and has written some
    struct err error;
    struct transport_port own; // as read at the start of the sweep
    uint16_t own_lid;
    uint32_t act_count;
    struct sm_election *election; // who else is there; state is what it says

    struct sm_dev **dev;
    uint32_t num_dev, cap_dev;
    struct u64map by_guid; // GUID -> device index
    uint32_t own_dev;

    // the running sweep
    struct sm_sweep sweep;
    struct mad_engine_stats mads_before; // at the sweep's start
    mono_t sweep_began, phase_began;
    uint64_t phase_mads;
    bool resweep, reroute; // asked for meanwhile
    bool reroute_now;
    const char *resweep_cause;
    struct findings findings_new;
    struct sm_dev_list dirty, touched;
    bool dirty_asked; // a partial sweep is due
    const char *dirty_cause;
    mono_t dirty_since;            // the first mark
    mono_t dirty_due, resweep_due; // when the sweep that was asked for begins; 0 = not set yet
    mono_t cause_at;               // of the running sweep: when its cause was noticed
    struct {
        struct sm_note *item;
        uint32_t n, cap;
    } notes;
    struct sm_read *reads_free;
    struct sm_slab *reads_slab;
    struct {
        uint64_t pending;                // requests of the phase
        uint64_t late;                   // those of them whose first try went unanswered
        uint32_t wait[MAD_MAX_HOPS + 2]; // per level: those it waits for
        uint32_t level;                  // whose ports may be probed
        struct loop_task task;
        bool finishing, over;
        uint32_t nodes, switches, ports; // seen so far
        // of a partial sweep
        bool heard;              // somebody has answered
        bool unlinked;           // a link was taken back
        bool astray;             // a cable leads elsewhere than it did, and nothing has told of it
        bool routes_stale;       // a link was found down since the routes were made
        struct loop_timer grace; // for what is late
        bool grace_over, hurried;
        uint32_t graces;           // that were added to the first
        uint32_t raced;            // switches asked by two ways
        struct sm_port_ref *again; // ports to probe once more, when the far end's other place was looked at
        uint32_t num_again, cap_again, rounds;
    } disc;
    struct mad_sm_info master; // that we stand by for; the running sweep may not have met it yet
    uint16_t master_lid;
    const struct fabric *next_fabric; // of the running sweep
    const struct fabric *last_fabric; // in force before it was published, until the sweep ends
    bool model_whole;                 // more has changed in it than what is touched
    struct fabric_tables *next_tables;
    bool unrouted; // programming has changed what the tables in force were made for
    struct sm_pass pass_config, pass_read, pass_lanes, pass_tables, pass_top, pass_links, pass_hosts;
    struct sm_pass pass_adaptive;
    struct sm_adaptive *adaptive;
    mono_t pass_heard; // the last answer to one of them
    bool config_running, config_done, tables_done;
    bool lanes_wait;   // for the end of configuring, to be written then
    bool levels_moved; // the tables in force have other lanes than those before
    bool lanes_kept;   // the last run's tables had lanes: hosts use their levels
    struct {           // sl2vl.c: lanes of the tables, as they stand in the database
        uint8_t *text;
        size_t size;
    } lanes_db;
    struct err failed; // why the sweep fails as soon as configuring has ended
    unsigned wave;     // that is running
    struct sm_route_job *job;
    uint32_t set_failures, failures_before; // of this sweep, of the last
    bool progress;                          // a Set of this sweep changed something
    uint32_t duplicates, duplicates_before; // GUIDs seen twice in this sweep, in the last
    uint8_t duplicates_vain;                // sweeps that have looked at them since something has changed
    uint32_t not_kept_ports;                // that turned out in this sweep not to keep a field
    uint32_t not_kept_fields;

    // the last finished generation
    const struct fabric *fabric;
    struct fabric_tables *tables;
    struct findings findings;
    struct route_result route;
    struct route_proof proof;
    struct route_proof_state *proof_state; // of tables; NULL when there is none
    uint64_t generation;

    struct sm_sa *sa;
    struct sm_mcast *mcast;

    struct u64map lid_of; // PortGUID -> recorded LID
    int db_status;
    struct sm_sweep history[SM_HISTORY];
    uint64_t num_sweeps, num_light;

    struct {                        // blueprint.c
        const struct fabric *known; // NULL before the first
        enum sm_blueprint_state state;
        int64_t since_ns;               // when somebody has changed it last; 0 = never
        char by[64];                    // who
        struct sm_blueprint_ask ask;    // to be done by the next sweep
        uint64_t refused;               // with new hosts that moved others; see learn.c
        uint32_t told[BLUEPRINT_DIFFS]; // of what is not in it, by the last event
        bool stale;                     // what the database has of state, since_ns and by
        const struct fabric *kept;      // the one in the database
        struct sm_ideal *ideal;         // for it; NULL before the first sweep has ended
        struct sm_blueprint_job *job;   // writes it
    } blueprint;

    struct sm_drains *drains; // drain.c
    struct sm_traps *traps;   // NULL until the first one comes
    struct sm_audit *audit;   // NULL until the first step

    struct { // watching
        struct loop_timer timer;
        uint64_t pending;
        bool running;
        bool closing; // next: only switches of which the last sweep has brought up ports
        uint32_t exceptions;
        int64_t backoff_ns; // before a sweep that the last ones make look useless
        mono_t ended;       // when the last sweep did
        uint32_t burst;     // sweeps begun of late, one less each second
        mono_t drained;
    } light;
};

// sm.c
void sm_phase(struct sm *sm, const char *name); // ends the running phase, begins the named one
void sm_event(struct sm *sm, const char *kind, const char *severity, const char *subject, const char *fmt,
              ...) __attribute__((format(printf, 5, 6)));
// What a client calls itself, or says, as it goes into a line of the database: unprintable bytes, tabs among
// them, become blanks; no half UTF-8 character at the end. from may be NULL.
void sm_text(char *to, size_t size, const char *from);
void sm_sweep_failed(struct sm *sm, const struct err *e);
void sm_discovered(struct sm *sm); // discover.c -> the phases that follow
void sm_configured(struct sm *sm); // program.c
void sm_publish(struct sm *sm);    // tables and switch links are in place: they are in force
void sm_routed(struct sm *sm);     // routes.c: job is there (or failed: sm_sweep_failed)
void sm_laned(struct sm *sm);      // program.c
void sm_tabled(struct sm *sm);     // program.c
// Whether the link should be ACTIVE and is not, for no known reason (such as no LID being left); marks it to
// be read and set once more.
bool sm_link_idle(const struct sm *sm, const struct sm_dev *d, unsigned num);
void sm_look_at_link(struct sm *sm, struct sm_dev *d, unsigned num);
// device.c
struct sm_dev *sm_dev_find(const struct sm *sm, uint64_t guid);
// Directed route to a device; for end nodes by way of port num. False when none is known.
bool sm_path(const struct sm *sm, const struct sm_dev *d, unsigned num, struct dr_path *ret);
// Makes the directed routes to all devices anew, over the links that are believed alive. drop: what none
// leads to is no longer here; returns whether there was such. O(ports).
bool sm_reach(struct sm *sm, bool drop);
// A second way to a switch, that has as little as can be in common with d->path. False when there is none.
bool sm_other_path(const struct sm *sm, const struct sm_dev *d, struct dr_path *ret);
// Key of a window of its own in the engine, beside the device's: of requests through port `what` to whoever
// is there (or the silent would hold up each other), or one of these.
enum { SM_WINDOW_FIRST_WAY = 256, SM_WINDOW_OTHER_WAY, SM_WINDOW_MULTICAST };
uint64_t sm_window_key(uint64_t guid, unsigned what);
// M_Key for requests to the device by way of that port (a switch's is port 0's).
uint64_t sm_m_key(const struct sm_dev *d, unsigned num);
void sm_dev_free(struct sm_dev *d);
void sm_dev_ports_free(struct sm_dev *d);
static inline bool dev_is_switch(const struct sm_dev *d)
{
    return d->ni.node_type == MAD_NODE_SWITCH;
}
static inline bool dev_here(const struct sm *sm, const struct sm_dev *d)
{
    (void)sm;
    return d->here;
}
// One request to a device outside of passes. data may be NULL.
void sm_request(struct sm *sm, const struct sm_dev *d, unsigned num, uint8_t method, uint16_t attr_id,
                uint32_t attr_mod, const void *data, mad_done_fn *done, void (*late)(void *, uint64_t),
                uint64_t user);
// Every answer goes through here: a device that has stopped answering loses the rest of its queue.
void sm_heard(struct sm *sm, struct sm_dev *d, const struct mad_result *r);
bool sm_port_up(const struct sm_port *p); // read in this sweep and not Down
const char *sm_port_text(const struct sm_dev *d, unsigned num, char *buf, size_t size);
// read.c: requests of the running sweep's reading; their answers end in sm_disc_check()
void sm_read_desc(struct sm *sm, struct sm_dev *d, unsigned num); // num: port that it is reached by
void sm_read_port(struct sm *sm, struct sm_dev *d, unsigned num);
void sm_read_end_port(struct sm *sm, struct sm_dev *d, unsigned num); // PortInfo and P_Keys
struct sm_dev *sm_read_own(struct sm *sm, const struct mad_node_info *ni);
// SwitchInfo, and all its ports after it. port0: PortInfo of port 0, when it has just been read; else NULL.
void sm_read_switch(struct sm *sm, struct sm_dev *d, const uint8_t *port0);
void sm_read_ports(struct sm *sm, struct sm_dev *d);                // all of a switch
void sm_probe(struct sm *sm, struct sm_dev *d, unsigned num);       // who is behind the port
void sm_probe_again(struct sm *sm, struct sm_dev *d, unsigned num); // once more, in the next round
void sm_probe_round(struct sm *sm);                                 // begins it
void sm_probe_ports(struct sm *sm, struct sm_dev *d); // all that are up and have not been asked in this sweep
static inline bool sm_is_probed(const struct sm *sm, const struct sm_port *p)
{
    return p->probed == (uint32_t)sm->sweep.id;
}
void sm_unlink(struct sm *sm, struct sm_dev *d, unsigned num);
void sm_reads_free(struct sm *sm);
// discover.c
void sm_discover_start(struct sm *sm);
void sm_disc_waited(struct sm *sm, uint32_t level); // one less of what the level waits for
void sm_disc_check(struct sm *sm);                  // is reading over?
void sm_disc_finish(struct sm *sm);
// partial.c
void sm_partial_start(struct sm *sm);
void sm_partial_check(struct sm *sm);
void sm_partial_over(void *arg);
void sm_partial_hurry(struct sm *sm);
void sm_partial_done(struct sm *sm);                     // frees what it holds
void sm_partial_switch(struct sm *sm, struct sm_dev *d); // reads this one too
void sm_partial_forget(struct sm *sm, struct sm_dev *d); // nothing that it is asked is waited for any more
void sm_partial_met(struct sm *sm, struct sm_dev *d, const struct sm_dev *from, unsigned num);
// PortInfo of a switch's port was read; before: its PortState until then.
void sm_partial_port(struct sm *sm, struct sm_dev *d, unsigned num, uint8_t before);
bool sm_partial_found(struct sm *sm, struct sm_dev *from, unsigned num, struct sm_dev *to, unsigned far);
bool sm_port_reset(const struct sm_port *p); // in INIT
void sm_disc_reset(struct sm *sm);
// notes.c
#define NOTE_LIDS 1    // as the guid of notes: of the assignment of LIDs
#define NOTE_ROUTES 2  // of the tables
#define NOTE_MASTERS 3 // of other managers
void sm_note(struct sm *sm, uint64_t guid, enum finding_severity severity, const char *code,
             const char *where, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
void sm_notes_drop(struct sm *sm, uint64_t guid);
void sm_notes_drop_all(struct sm *sm);
void sm_notes_find(struct sm *sm); // adds them to the sweep's findings
// model.c
// What is here now. last: a generation that differs in what is touched only; NULL: made from nothing.
const struct fabric *sm_model_build(struct sm *sm, const struct fabric *last, struct findings *f);
void sm_model_findings(struct sm *sm);
// lids.c, through sm: gives every end port of this sweep a LID; records new ones; sm_lids_recorded() when
// durable.
void sm_lids_assign(struct sm *sm);
void sm_lids_recorded(struct sm *sm);
void sm_lids_load(struct sm *sm);
// program.c
void sm_configure_start(struct sm *sm);
void sm_lanes_start(struct sm *sm);
void sm_tables_start(struct sm *sm);
void sm_tables_go(struct sm *sm); // from adaptive.c: no switch adapts
// Ends the sweep when switches have lft_failed, with their name and what they "did not ...". False: none has.
bool sm_tables_failed(struct sm *sm, const char *what);
void sm_links_start(struct sm *sm);
void sm_program_done(struct sm *sm);
uint32_t sm_port_info_mod(const struct sm_dev *d,
                          unsigned num); // AttributeModifier of PortInfo for this port
// A request that was asked for is refused, or not answered: told, and the device is read and asked anew.
void sm_set_refused(struct sm *sm, struct sm_dev *d, unsigned num, uint8_t method, uint16_t attr,
                    const struct mad_result *r);
// sl2vl.c
uint8_t sm_lanes_allowed(const struct sm *sm); // for the routing
bool sm_lanes_needed(struct sm *sm);           // whether the phase "lanes" has anything to ask
void sm_lanes_begin(struct sm *sm);            // the sweep has been read: what devices have lost is forgotten
uint32_t sm_lanes_units(const struct sm_dev *d);
bool sm_lanes_next(struct sm *sm, struct sm_dev *d, uint32_t *cursor, struct sm_item *it);
void sm_lanes_answer(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r);
void sm_lanes_free(struct sm_dev *d);
// For the audit: what is known to be right, by unit; what a Get of it asks; whether the answer is another.
uint32_t sm_lanes_known(const struct sm *sm, const struct sm_dev *d);
bool sm_lanes_is_known(const struct sm_dev *d, uint32_t unit);
void sm_lanes_item(const struct sm_dev *d, uint32_t unit, struct sm_item *it);
bool sm_lanes_drifted(struct sm *sm, struct sm_dev *d, uint32_t unit, const uint8_t *data, char *what,
                      unsigned long size);
// lanes.c
// The database: what stood there when the manager began, for the switches of f (NULL: nothing); what is to be
// there (size 0: nothing).
void sm_lanes_load(struct sm *sm);
struct fabric_lanes *sm_lanes_kept(const struct sm *sm, const struct fabric *f);
void sm_lanes_keep(struct sm *sm, const uint8_t *text, size_t size);
// Tables are about to be in force: who hangs on a switch that has other lanes than before is to ask anew.
void sm_lanes_publish(struct sm *sm);
// MasterSMSL that an end port should have: the lane between its switch and ours. now: what it has.
uint8_t sm_lanes_master_sl(const struct sm *sm, const struct sm_dev *d, unsigned num, uint8_t now);
// adaptive.c
void sm_adaptive_init(struct sm *sm);
void sm_adaptive_done(struct sm *sm);
void sm_adaptive_dev_free(struct sm_dev *d);
void sm_adaptive_reset(struct sm *sm, struct sm_dev *d); // what it holds is not known any more
// Before the first wave. True: sm_tables_go() comes when no switch adapts (or the sweep fails); false:
// nothing has to be done.
bool sm_adaptive_quiet(struct sm *sm);
void sm_adaptive_start(struct sm *sm); // the last phase; ends in sm_program_done()
void sm_adaptive_hurry(struct sm *sm); // somebody waits for the sweep's end
void sm_adaptive_find(struct sm *sm);  // findings
// routes.c
void sm_route_start(struct sm *sm);
struct route_opts sm_route_opts(const struct sm *sm); // borrows from sm
void sm_route_job_free(struct sm *sm);
// Whether tables that are right for `a` are for `b`: the same nodes in the same order, cables and LIDs.
bool sm_same_routes(const struct fabric *a, const struct fabric *b);
void sm_route_adopt_result(struct sm *sm); // engine, why and proof of the finished job
const struct route_plan *sm_route_plan(const struct sm *sm);
// Kept from the last run, by the numbers of next_fabric; NULL.
const struct fabric_lanes *sm_route_found_lanes(const struct sm *sm);
bool sm_route_found_blank(const struct sm *sm); // no switch forwarded anything
uint64_t sm_graph_hash(const struct fabric *f); // of cables and LIDs
// blueprint.c
// A blueprint and its ideal tables. Immutable; shared with the worker, so the count is atomic.
struct sm_ideal {
    _Atomic unsigned refs;
    const struct fabric *blueprint;
    const struct fabric
        *made_for; // the fabric that the tables are of: the blueprint, or what they were found on
    struct route_result route;
    struct route_base *base;
};
// Takes references of its own. NULL and *e when the base cannot be made.
struct sm_ideal *sm_ideal_new(const struct fabric *blueprint, const struct fabric *made_for,
                              const struct route_result *route, const struct route_opts *o, struct err *e);
struct sm_ideal *sm_ideal_ref(struct sm_ideal *x); // NULL is fine
void sm_ideal_unref(struct sm_ideal *x);
void sm_blueprint_load(struct sm *sm);
void sm_blueprint_free(struct sm *sm);
// learn.c
struct sm_learning {
    const struct fabric *known; // the blueprint so far, a reference; may be NULL
    struct sm_ideal *ideal;     // so far, a reference; may be NULL
    enum sm_blueprint_state state;
    struct sm_blueprint_ask ask;
    bool anew;        // the ideal is computed again
    uint64_t refused; // hash of a blueprint with new hosts that would have moved others
    // results
    struct sm_ideal *next;
    struct blueprint_compare *more; // it beside what is seen: every difference
    struct blueprint_compare *less; // what it has lost by what was asked for
    char kept[300];                 // what it has not lost, by SM_BLUEPRINT_REROUTE, as it is only silent
};
// On a worker.
int sm_learn(struct sm_learning *l, const struct fabric *live, const struct route_opts *o, struct err *e);
void sm_learning_done(struct sm_learning *l);
// blueprint.c: what a sweep begins with, what becomes of it when it ends well, and when it does not. refused:
// what was asked for cannot be done; else it is asked for again.
void sm_blueprint_begin(struct sm *sm, struct sm_learning *ret);
void sm_blueprint_take(struct sm *sm, struct sm_learning *l);
void sm_blueprint_give_back(struct sm *sm, struct sm_learning *l, const struct err *refused);
void sm_blueprint_tell(struct sm *sm, const struct sm_learning *l); // what is not in it, as findings
// dirty.c
// Something may have changed there: it is read again soon, and nothing else is. cause: a literal, what
// the sweep's history says. Any number of calls before the sweep begins are one.
void sm_dirty_switch(struct sm *sm, struct sm_dev *d, const char *cause); // SwitchInfo and all ports
// It has said that a port of it changed. Where it shows that (PortStateChange) it is asked first whether
// there is more than was read already: a trap that is not repressed in time comes again.
void sm_dirty_told(struct sm *sm, struct sm_dev *d, const char *cause);
void sm_dirty_port(struct sm *sm, struct sm_dev *d, unsigned num, const char *cause); // PortInfo of one port
void sm_dirty_desc(struct sm *sm, struct sm_dev *d, const char *cause);               // NodeDescription
void sm_dirty_node(struct sm *sm, struct sm_dev *d, const char *cause); // NodeInfo and all that follows
void sm_dirty_probe(struct sm *sm, struct sm_dev *d, unsigned num, const char *cause); // who is behind it
void sm_dirty_tables(struct sm *sm, struct sm_dev *d,
                     const char *cause);                                // what the switch holds is not known
void sm_dirty_mute(struct sm *sm, struct sm_dev *d, const char *cause); // it answers no more
void sm_dirty_routes(struct sm *sm, const char *cause); // to be made anew; nothing is to be read for it
void sm_dirty_none(struct sm *sm);
void sm_touch(struct sm *sm, struct sm_dev *d);
void sm_touch_far_ends(struct sm *sm);
void sm_touch_none(struct sm *sm);
void sm_touch_again(struct sm *sm); // a sweep that goes on from an unfinished one
// The device that has an end port with this LID in the last finished generation; NULL. *ret_num: that port.
struct sm_dev *sm_dev_by_lid(struct sm *sm, uint16_t lid, unsigned *ret_num);
// sa.c
int sm_sa_init(struct sm *sm);
void sm_sa_done(struct sm *sm);
// sa_reregister.c: whether the next Set(PortInfo) of that port should carry ClientReregister, as far as its
// PortInfo was last read; at most so many a second are told so. The second: that Set has succeeded.
bool sm_sa_wants_reregister(struct sm *sm, const struct sm_dev *d, unsigned num);
// It is to be told so, when its turn comes; first: before others.
void sm_sa_ask_anew(struct sm *sm, uint64_t port_guid, bool first);
void sm_sa_reregistered(struct sm *sm, const struct sm_dev *d, unsigned num);
// mcast.c
void sm_mcast_fabric_changed(struct sm *sm); // a sweep has ended well; sm->fabric, sm->tables are in force
void sm_mcast_switch_reset(struct sm *sm, const struct sm_dev *d); // its tables are not what was written
// MulticastFDBTop to be in the next Set(SwitchInfo) of that switch; 0: leave it as it is.
uint16_t sm_mcast_top(const struct sm *sm, const struct sm_dev *d);
// trap.c
void sm_trap(struct sm *sm, const uint8_t *mad, const struct mad_addr *from);
void sm_trap_done(struct sm *sm);
// audit.c
// A step of the slow audit: at each light sweep that found nothing, when nothing else runs.
void sm_audit_step(struct sm *sm);
void sm_audit_done(struct sm *sm);
// sminfo.c: the election of the master among several
void sm_election_init(struct sm *sm);
void sm_election_done(struct sm *sm);
void sm_election_begin(struct sm *sm, bool full); // a sweep begins, sm->own has been read
// SMInfo of another manager was answered, by way of that port (0 of a switch).
void sm_election_met(struct sm *sm, const struct sm_dev *d, unsigned num, const struct mad_sm_info *si);
// Reading has ended. ELECTION_WAIT: nothing may be written; sm_discovered() is called again.
enum election_verdict sm_election_settle(struct sm *sm);
bool sm_others_known(const struct sm *sm);              // other subnet managers, whatever they do
void sm_election_error(struct sm *sm, struct err *ret); // why we stand by
void sm_info_asked(struct sm *sm, const uint8_t *mad, const struct mad_addr *from);
// watch.c
void sm_watch_init(struct sm *sm);
void sm_watch_done(struct sm *sm);
void sm_watch_swept(struct sm *sm); // a sweep has ended: was it of use?
void sm_watch_arm(struct sm *sm);   // sets the timer for what comes next
enum sm_urgency {
    SM_LATER,    // with growing pauses while sweeps bring nothing
    SM_TOGETHER, // when the light sweep that found it has ended: it may find more of the kind
    SM_SOON,     // the light sweep, and what is slow, do not hold it up
    SM_AT_ONCE,
};
struct sm_cause {
    const char *name;
    enum sm_urgency urgency;
    bool slow; // the sweep may wait for slow devices, while nothing else has to be done
    bool news; // of the fabric, from outside: a sweep that is writing does not let a dead device hold it up
};
const struct sm_cause *sm_cause(const char *name); // of a sweep; never NULL
void sm_sweep_begin_asked(struct sm *sm);          // sm.c: begins the sweep that was asked for
void sm_sweep_begin_partial(struct sm *sm);        // sm.c: reads what is marked

#endif
