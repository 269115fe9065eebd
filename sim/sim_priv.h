// SPDX-License-Identifier: Apache-2.0
// What the files of sim/ share. See sim.c for the map of the files and for who owns what.
#ifndef WEFT_SIM_SIM_PRIV_H
#define WEFT_SIM_SIM_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/hash.h"
#include "lib/loop.h"
#include "lib/mono.h"
#include "lib/rng.h"
#include "mad/adaptive.h"
#include "mad/mad.h"
#include "sim/sim.h"

#define NONE 0xffffffffu
#define SIM_HOP_LIMIT 64                // LID-routed: more hops than that is a loop
#define SIM_TIME_MAX (1000000 * MONO_S) // of what is told to happen later
#define SIM_SPEEDS_HDR (MAD_SPEED_EXT_FDR | MAD_SPEED_EXT_EDR | MAD_SPEED_EXT_HDR)

// Header bytes that routing reads and writes in place, without decoding the whole MAD at every hop.
enum {
    MAD_AT_CLASS = 1,
    MAD_AT_METHOD = 3,
    MAD_AT_STATUS = 4,
    MAD_AT_HOP_POINTER = 6,
    MAD_AT_HOP_COUNT = 7,
    MAD_AT_TID = 8,
    MAD_AT_ATTR = 16,
    MAD_AT_ATTR_MOD = 20,
    MAD_AT_M_KEY = 24,
    MAD_AT_DR_SLID = 32,
    MAD_AT_DR_DLID = 34,
    MAD_AT_DATA = 64,
    MAD_AT_INITIAL_PATH = 128,
    MAD_AT_RETURN_PATH = 192,
};

static inline uint16_t wire_u16(const uint8_t *p)
{
    return (uint16_t)(p[0] << 8 | p[1]);
}
static inline uint32_t wire_u32(const uint8_t *p)
{
    return (uint32_t)wire_u16(p) << 16 | wire_u16(p + 2);
}
static inline uint64_t wire_u64(const uint8_t *p)
{
    return (uint64_t)wire_u32(p) << 32 | wire_u32(p + 4);
}
static inline void wire_put_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}
static inline void wire_put_u32(uint8_t *p, uint32_t v)
{
    wire_put_u16(p, (uint16_t)(v >> 16));
    wire_put_u16(p + 2, (uint16_t)v);
}

static inline void wire_put_u64(uint8_t *p, uint64_t v)
{
    wire_put_u32(p, (uint32_t)(v >> 32));
    wire_put_u32(p + 4, (uint32_t)v);
}

struct sim_port {
    struct mad_port_info pi; // what the device knows; what a Get shows is derived (sim_port.c)
    uint64_t guid;           // end ports: what it says
    uint64_t label;          // end ports: its own, by which it is named here
    uint32_t node;
    uint32_t peer;    // port at the other end of the cable, NONE
    uint32_t clients; // first attached transport, index into sim.client, NONE
    uint32_t host;    // of an adapter of a host: dense number of the host; NONE
    uint16_t rail;
    uint8_t num;
    bool unplugged; // the cable, or one of its ends, is cut
    bool disabled;  // PortPhysicalState Disabled was set
    bool training;  // an EV_LINK_UP is on its way, for train_due
    bool fdr10;
    uint8_t lanes;        // widths the cable can carry
    bool lease_runs;      // an EV_LEASE is on its way, for lease_end
    uint32_t reregisters; // ClientReregister was set so often
    uint32_t traps;       // first of its slots in sim.trap, NONE
    uint32_t errors;      // first of its rows in sim.error, NONE
    int64_t train_due, lease_end;
    int64_t security_next; // no trap 256..259 is raised before
    // Tables as they stand on the wire, allocated at the first Set; NULL reads as after power-up.
    uint8_t *p_keys; // p_key_blocks() * 64
    uint8_t *sltovl; // switch: by input port, 8 bytes each; adapter: 8 bytes
    uint8_t *vlarb;  // 4 * 64
    uint8_t *guids;  // guid_cap rounded up to 8, * 8
    uint64_t counter[SIM_COUNTERS];
    struct sim_pma_port *pma; // sim_pma.c; NULL: nothing out of the ordinary
};

struct sim_switch {
    struct mad_switch_info si;
    uint32_t node;
    uint8_t *lft;                  // cap bytes of sim.lft_pool, meaningful where `written` says so
    uint64_t *written;             // a bit a block
    uint64_t garbage;              // seed of what an unwritten block reads as
    uint8_t *mft;                  // position-major, two bytes an MLID; NULL = all zero
    uint32_t lft_entries;          // cap, bounded
    struct sim_adaptive *adaptive; // NULL: does not adapt
};

struct not_kept { // a field, or a whole attribute when field is NULL
    uint16_t attr_id;
    const struct mad_field *field;
};

struct sim_pma_node;

struct sim_node {
    struct sim_pma_node *pma; // sim_pma.c; NULL: it has all there is
    uint64_t guid, sys_guid;  // what it says
    uint64_t label, own_sys;  // its own; it is named by the label here
    uint32_t first_port;      // of port 0 (switch) or 1
    uint32_t sw;              // index into sim.sw, NONE
    uint32_t vendor_id, revision;
    uint16_t device_id, partition_cap;
    uint8_t type, num_ports;
    uint8_t tier; // of a switch in the snapshot
    bool dead;
    bool os_down;         // of the computer around it: an EV_OS_UP is on its way, for os_due
    uint16_t slow;        // service time is multiplied by this
    uint32_t queued;      // in the agent's queue
    uint32_t lose_traps;  // so many more are lost; UINT32_MAX: all
    int64_t delay;        // added to the service time
    int64_t busy_until;   // of the agent
    int64_t silent_until; // it boots
    int64_t down_until;   // its links do not train before
    int64_t os_due;
    struct not_kept *not_kept;
    uint32_t num_not_kept;
    char desc[64];
    char os_desc[64]; // what comes back when the operating system is up
};

// A MAD under way. Owned by the queue it stands in: ready list, event heap, or the function that runs it.
enum flight_op {
    FLIGHT_ORIGINATE, // begins at end port `port`
    FLIGHT_ARRIVE,    // has crossed a cable into `port`
    FLIGHT_TRANSIT,   // directed route, the agent on the way has had its time
    FLIGHT_SERVED,    // the agent has had its time
    FLIGHT_RETURN,    // an answer leaves by the directed route back
};
struct flight {
    struct flight *next;
    uint32_t port; // where it is: port it came in by, or end port it begins at
    enum flight_op op;
    uint16_t slid, dlid; // of the LID-routed leg
    bool lid_leg;        // LID-routed now (class 0x81 may change between legs)
    bool vl15;
    bool in_queue; // counted in sim_node.queued
    uint8_t hops;
    uint8_t sl;
    uint8_t pma_fault; // enum sim_pma_fault that its answer shows
    uint16_t p_key;
    bool grh;
    uint8_t sgid[16];
    uint32_t src_qp, q_key;
    uint8_t mad[MAD_SIZE];
};

enum ev_kind {
    EV_FLIGHT,
    EV_TRAP,      // a notice is repeated: index into sim.trap
    EV_LINK_UP,   // training of a port's link ends
    EV_GO_ACTIVE, // an ARMED port saw traffic
    EV_LEASE,     // an M_Key's lease ends at a port
    EV_FLAP,      // a cable is pulled or plugged again: index into sim.flap
    EV_BOOT,      // the links of a node may train
    EV_OS_UP,     // the computer around an adapter is up
    EV_SM,        // a played manager polls: index into sim.sm
    EV_HOST,      // a live host has something to do: index into sim.host
    EV_FLOW,      // traffic has changed, or is being worked out
    EV_FLOW_TURN, // a burst begins or ends: id of its pattern
};
struct ev {
    int64_t due;
    uint64_t seq;
    enum ev_kind kind;
    uint32_t i;
    struct flight *flight;
};

struct sim_trap { // sent, not yet repressed
    bool used;
    uint32_t port; // end port it is sent from
    uint32_t next; // of the port, or free
    uint32_t gen;  // of the slot, so that a stale EV_TRAP is recognised
    uint16_t repeats;
    uint8_t notice[MAD_SMP_DATA_SIZE];
};

struct sim_flap {
    bool used;
    uint32_t port;
    uint32_t left; // times down after this one
    int64_t due, down_ns, up_ns;
};

// TIDs of requests that are not a client's have these in their high half.
#define COOKIE_SM 0xfffffffeu
#define COOKIE_HOST 0xfffffffdu

struct client {
    struct transport t;
    struct sim *sim;
    uint32_t port;
    uint32_t next; // on the same port
    uint32_t cookie;
    bool issm, used;
    char device[64];
};

struct sim {
    struct loop *loop;
    struct sim_opts o;
    struct rng rng;
    struct sim_node *node;
    struct sim_port *port;
    struct sim_switch *sw;
    uint32_t num_nodes, num_ports, num_switches;
    uint32_t default_port; // where sim_attach(0) goes
    struct u64map by_guid, by_port_guid;
    uint8_t *lft_pool;
    uint64_t *written_pool;

    // what is under way
    int64_t now; // of the event that runs
    uint64_t seq;
    struct ev *heap;
    uint32_t heap_n, heap_cap;
    struct flight *ready, **ready_tail;
    struct flight *free_flights;
    struct flight **slab;
    uint32_t slabs;
    struct loop_timer timer;
    struct loop_task task;
    bool running;

    struct client **client; // pointers: a struct transport must not move
    uint32_t num_clients;
    struct sim_trap *trap;
    uint32_t num_traps, free_trap; // slots; first free one, NONE
    uint32_t traps_pending;
    uint64_t trap_tid;
    double trap_loss;
    struct sim_flap *flap;
    uint32_t num_flaps;
    struct played_sm *sm; // sim_sm.c
    uint32_t num_sms, sm_tid;
    struct sim_hosts *hosts; // sim_hosts.c, NULL
    struct sim_flows *flows; // sim_flow.c, NULL
    struct sim_error *error; // sim_errors.c
    uint32_t num_errors;
    struct sim_sensors *sensors; // sim_sensors.c
    uint32_t num_sensors;
    uint64_t sensed;

    struct sim_stats stats;
    uint64_t digest;
};

static inline bool is_switch(const struct sim_node *n)
{
    return n->type == MAD_NODE_SWITCH;
}
static inline struct sim_node *node_of(const struct sim *s, const struct sim_port *p)
{
    return &s->node[p->node];
}
static inline uint32_t port_index(const struct sim *s, const struct sim_port *p)
{
    return (uint32_t)(p - s->port);
}
// Port `num` of a node, NULL when there is none.
static inline struct sim_port *port_at(const struct sim *s, const struct sim_node *n, unsigned num)
{
    unsigned first = is_switch(n) ? 0 : 1;
    return num < first || num > n->num_ports ? NULL : &s->port[n->first_port + num - first];
}
// The port that has the LID, M_Key and capabilities: port 0 of a switch, the port itself otherwise.
static inline struct sim_port *end_port(const struct sim *s, struct sim_port *p)
{
    struct sim_node *n = node_of(s, p);
    return is_switch(n) ? &s->port[n->first_port] : p;
}
static inline struct sim_port *peer_of(const struct sim *s, const struct sim_port *p)
{
    return p->peer == NONE ? NULL : &s->port[p->peer];
}
static inline bool has_lid(const struct sim_port *p, uint16_t lid)
{
    return p->pi.lid != 0 && lid >= p->pi.lid && lid < p->pi.lid + (1u << p->pi.lmc);
}
// At every way in from outside the events: what happens, happens now.
static inline void sim_touch(struct sim *s)
{
    if (!s->running)
        s->now = loop_now(s->loop).ns;
}
// Its agents do not answer.
static inline bool node_silent(const struct sim *s, const struct sim_node *n)
{
    return n->dead || s->now < n->silent_until;
}
static inline bool time_ok(int64_t ns)
{
    return ns >= 0 && ns <= SIM_TIME_MAX;
}
static inline void count_up(uint16_t *violations)
{
    *violations += *violations < 0xffff;
}
struct sim_node *sim_node_by_guid(const struct sim *s, uint64_t guid);
struct sim_port *sim_port_by(const struct sim *s, uint64_t node_guid, unsigned num);
struct sim_port *sim_port_by_guid(const struct sim *s, uint64_t port_guid); // an end port
void node_set_desc(struct sim_node *n, const char *text);

// --- sim_queue.c: flights and events ---
struct flight *flight_new(struct sim *s); // zeroed but for the MAD
void flight_free(struct sim *s, struct flight *f);
void flight_ready(struct sim *s, struct flight *f);           // runs in this turn
void flight_at(struct sim *s, struct flight *f, int64_t due); // runs at `due`
void event_at(struct sim *s, enum ev_kind kind, uint32_t i, int64_t due);
void queue_init(struct sim *s);
void queue_done(struct sim *s);

// --- sim_route.c: movement ---
void route_run(struct sim *s, struct flight *f); // until it parks or ends; takes it
bool link_passes(const struct sim *s, const struct sim_port *p, bool vl15);
struct smp_out {
    uint16_t dlid;
    uint8_t method;
    uint16_t attr_id;
    uint32_t attr_mod;
    uint64_t tid, m_key;
    const uint8_t *data; // 64 bytes
};
void smp_send(struct sim *s, struct sim_port *end, const struct smp_out *o); // LID-routed, from an agent
// A MAD of another class from QP1 of an end port to that of dlid; *mad is copied.
void gmp_send(struct sim *s, struct sim_port *end, uint16_t dlid, uint16_t p_key, const uint8_t *mad);

// --- sim_client.c: transports ---
// Gives the MAD to a client of the end port; true when one took it. Does not take the flight.
bool client_deliver(struct sim *s, struct sim_port *end, struct flight *f);
bool client_has_sm(const struct sim *s, const struct sim_port *end);
void client_drop_sm(struct sim *s, struct sim_port *end); // its process is gone

// --- sim_smp.c: the subnet management agent ---
struct sma_req {
    struct sim_node *node;
    struct sim_port *in;  // the port the SMP came in by
    struct sim_port *end; // whose M_Key counts
    uint8_t *data;        // 64 bytes, request's and then answer's
    uint32_t am;
    bool m_key_matches;
    bool reregister; // a Set of PortInfo took ClientReregister
};
typedef uint16_t sma_fn(struct sim *s, struct sma_req *r); // MAD status; nothing is changed unless it is 0
struct sma_attr {
    uint16_t id;
    bool switch_only;
    sma_fn *get, *set; // NULL: no such method
};
// Works a request off in place. True: it is to be answered with *ret_status; false: silence.
bool sma_process(struct sim *s, struct flight *f, uint16_t *ret_status);

// --- sim_tables.c: tables and small attributes ---
sma_fn p_key_get, p_key_set, guid_info_get, guid_info_set, sltovl_get, sltovl_set, vlarb_get, vlarb_set,
    lft_block_get, lft_block_set, mft_get, mft_set, port_states_get;
// Where the switch sends a LID: LFT_DROP beyond LinearFDBTop, anything in blocks that nobody wrote.
uint8_t lft_entry(const struct sim *s, const struct sim_switch *w, uint16_t lid);
void lft_preload(struct sim *s, struct sim_switch *w, const uint8_t *from,
                 unsigned lids);                                                   // lids <= lft_entries
uint8_t lft_stored(const struct sim *s, const struct sim_switch *w, uint16_t lid); // whatever LinearFDBTop is
void lft_store(struct sim *s, struct sim_switch *w, uint16_t lid, uint8_t port);
bool mft_has(const struct sim_switch *w, uint16_t mlid, unsigned port);
// The lane by which a packet of level sl leaves by `out` that came in by port `in` (0: its own node sends
// it), as SLtoVL, OperationalVLs and VLArbitration have it; VL_DROP where it does not.
#define VL_DROP 15
unsigned port_vl(const struct sim *s, const struct sim_port *out, unsigned in, unsigned sl);
bool port_serves(const struct sim_port *p, unsigned vl); // VLArbitration has a share for the lane
void tables_forget(struct sim *s, struct sim_port *p);   // as after power-up
void lft_forget(struct sim *s, struct sim_switch *w);
unsigned p_key_cap(const struct sim *s, const struct sim_port *p);
uint16_t p_key_at(const struct sim *s, const struct sim_port *p, unsigned index);
// Whether the port's table has a key that may talk with `key` (one of both a full member).
bool p_key_matches(const struct sim *s, const struct sim_port *p, uint16_t key);

// --- sim_adaptive.c ---
sma_fn general_info_get, adaptive_info_get, adaptive_info_set, adaptive_group_get, adaptive_group_set,
    adaptive_lft_get, adaptive_lft_set;
void adaptive_make(struct sim *s, struct sim_switch *w, unsigned cap);
void adaptive_new(struct sim *s, struct sim_switch *w); // as opts say
void adaptive_free(struct sim_switch *w);
void adaptive_forget(struct sim_switch *w); // as after power-up
void adaptive_lft_written(struct sim *s, struct sim_switch *w, unsigned first, unsigned count);
// Ports by which packets of a transport may go to a LID; how many. One may be dead when it is the only one.
unsigned adaptive_choices(const struct sim *s, const struct sim_switch *w, uint16_t lid, unsigned transport,
                          uint8_t ret[256]);
uint8_t adaptive_port(const struct sim *s, const struct sim_switch *w, uint16_t lid,
                      uint64_t flow); // a MAD's
// That of the choices with least of load[port index]; NULL: of what they have sent.
uint8_t adaptive_least(const struct sim *s, const struct sim_switch *w, uint16_t lid, const uint64_t *load);

// --- sim_view.c ---
// Writes where a walk stopped; -EHOSTUNREACH.
int sim_stopped(char *where, unsigned long size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

// --- sim_port.c: PortInfo and links ---
sma_fn port_info_get, port_info_set, mlnx_port_get, mlnx_port_set;
void port_power_up(struct sim *s, struct sim_port *p); // factory state of what a Set can change
void link_down(struct sim *s, struct sim_port *p, const struct sim_port *by_set); // both ends
void link_try_up(struct sim *s, struct sim_port *p); // trains when both ends allow it
void link_trained(struct sim *s, struct sim_port *p);
void port_saw_traffic(struct sim *s, struct sim_port *p); // ARMED becomes ACTIVE

// --- sim_pma.c ---
void pma_vl_wait(struct sim_port *p, unsigned vl, uint64_t ticks);       // part of what a lane shows
bool pma_process(struct sim *s, struct flight *f, uint16_t *ret_status); // as sma_process()
void pma_free(struct sim *s);

// --- sim_keys.c: M_Key, P_Key, Q_Key ---
// False: the request is dropped (and told of by trap 256).
bool m_key_allows(struct sim *s, struct sim_port *end, const struct flight *f, bool *ret_matches);
void lease_event(struct sim *s, struct sim_port *end);
// Whether a GMP's keys let it into its destination.
bool keys_allow(struct sim *s, struct sim_port *end, const struct flight *f);
// Whether a switch's external port lets a GMP through; `out`: as it leaves by it.
bool enforcement_allows(struct sim *s, struct sim_port *p, const struct flight *f, bool out);

// --- sim_trap.c ---
void trap_raise(struct sim *s, struct sim_port *end, const struct mad_notice *n); // sent and repeated
void trap_128(struct sim *s, struct sim_node *n);
void trap_link_state(struct sim *s, struct sim_node *n);                     // PortStateChange and trap 128
void trap_local_change(struct sim *s, struct sim_port *end, unsigned flags); // 144: enum sim_change, 0
void trap_port_errors(struct sim *s, struct sim_port *end, unsigned num, uint16_t number); // 129..131
void trap_sys_guid(struct sim *s, struct sim_port *end);                                   // 145
void trap_bad_m_key(struct sim *s, struct sim_port *end, const struct flight *f);          // 256
// 257..259; num is the switch's port (259)
void trap_bad_key(struct sim *s, struct sim_port *end, uint16_t number, const struct sim_bad_key *k,
                  unsigned num);
void trap_repress(struct sim *s, struct sim_port *end, const uint8_t *notice);
void trap_forget(struct sim *s, struct sim_port *end);
void trap_event(struct sim *s, uint32_t i);

// --- sim_links.c, sim_boot.c: what is done to it ---
void flap_event(struct sim *s, uint32_t i);
void boot_event(struct sim *s, struct sim_node *n);
void os_up_event(struct sim *s, struct sim_node *n);

// --- sim_sm.c: played managers ---
bool sm_is_at(const struct sim *s, const struct sim_port *end); // perhaps a silent one
// SMInfo or a Trap for it; as sma_process()
bool sm_process(struct sim *s, struct flight *f, uint16_t *ret_status);
bool sm_answer(struct sim *s, const struct sim_port *end, const uint8_t *mad); // to a request of its own
void sim_sm_event(struct sim *s, uint32_t i);
void sm_forget(struct sim *s, struct sim_port *end); // its process is gone

// --- sim_hosts.c: live hosts; each does nothing where there are none ---
enum host_news {
    HOST_ACTIVE,   // its port went ACTIVE
    HOST_DOWN,     // it is no longer
    HOST_RESTART,  // ClientReregister, another LID or SMLID
    HOST_SHUTDOWN, // orderly: it leaves its groups
    HOST_BOOT,     // it forgets them
    HOST_UP,
};
void host_tell(struct sim *s, struct sim_port *end, enum host_news news);
bool host_answer(struct sim *s, struct sim_port *end, const uint8_t *mad);
void host_event(struct sim *s, uint32_t i);

// --- sim_flow.c: traffic; each does nothing where there is none ---
void flow_dirty(struct sim *s);                         // something that it depends on has changed
void flow_tables_written(struct sim *s);                // the same, and tables may be others
void flow_link_down(struct sim *s, struct sim_port *p); // before it is
void flow_count(struct sim *s, struct sim_port *first, unsigned n); // brings counters of n ports up to date
void flow_event(struct sim *s);
void flow_turn_event(struct sim *s, uint32_t id);
void flows_free(struct sim *s);
double port_bytes_s(const struct sim_port *p); // what its link carries, by width and speed

// --- sim_errors.c ---
void errors_count(struct sim *s, struct sim_port *p); // brings its counters up to date

#endif
