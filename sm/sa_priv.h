// SPDX-License-Identifier: Apache-2.0
// Inside subnet administration and multicast. Files, in reading order:
//
//     sa.c          requests: taken, queued, merged, dropped, answered; the rows attribute -> handler
//     sa_class.c    ClassPortInfo
//     sa_path.c     PathRecord
//     sa_records.c  what the manager knows of nodes, ports, links and tables, as records
//     sa_group.c    groups and their members: rules, MLIDs, what survives in the database
//     sa_mcast.c    MCMemberRecord
//     sa_inform.c   InformInfo: who wants to be told of what
//     sa_reregister.c  which ports are asked to join again
//     mcast.c       multicast forwarding tables on the switches
//
// Answers are made from one generation (sa->fabric, sa->tables), the last that sm_mcast_fabric_changed() was
// told of. A table request that takes long is answered in slices, and begins anew when the generation
// changes. All of it is the loop thread's.
//
// Departures: P_Keys are those of the default partition; a request from a source that is not in the
// fabric yet waits for the sweep that brings it in instead of being refused.
#ifndef WEFT_SM_SA_PRIV_H
#define WEFT_SM_SA_PRIV_H

#include "lib/buf.h"
#include "routing/mcast.h"
#include "sm/sa.h"
#include "sm/sm_priv.h"

#define SA_QUEUE_MAX 65536           // requests that wait
#define SA_STALE_NS (3 * MONO_S)     // what a client waits; an answer after that is of no use
#define SA_JOIN_NS (MONO_S)          // a join waits that long for the forwarding tables
#define SA_SLICE_NS (4 * MONO_MS)    // of the loop at a time
#define SA_ANSWER_MAX (16u << 20)    // bytes of records in one answer
#define SA_GONE_NS (600 * MONO_S)    // a member whose port is gone stays that long
#define SA_GROUPS_MAX 16384          // at most
#define SA_MEMBERS_MAX (1u << 20)    // of all groups together
#define SA_SUBSCRIPTIONS_MAX 65536   // of all ports together
#define SA_SUBSCRIPTIONS_PORT_MAX 64 // of one
#define SA_REREGISTER_A_SECOND 500

enum sa_step {
    SA_DONE, // the answer is complete: r->status, r->out
    SA_MORE, // the slice is over; call again
    SA_WAIT, // until ticket r->ticket of the multicast tables is done, or SA_JOIN_NS
    SA_PARK, // until the running sweep ends
};

enum sa_list {
    SA_QUEUED,
    SA_HELD,
    SA_LISTS,
};

struct sa_req {
    struct sa_req *prev, *next; // of its list
    struct sa_req *same_hash;
    enum sa_list list;
    mono_t came;
    struct mad_addr from;
    uint8_t mad[MAD_SIZE];
    struct mad_sa_hdr hdr;
    bool trusted; // carries our SM_Key
    uint16_t status;
    uint64_t ticket; // 0: parked
    // the answer so far
    bool started;
    uint64_t cursor; // the handler's; 0 at first
    uint32_t limit;  // records that are wanted
    uint32_t num;
    struct buf out;
};

struct sa_group {
    uint8_t mgid[16];
    struct mad_mc_member_record rec; // the group's; PortGID and JoinState 0
    bool permanent, stored;          // as the database has it
    struct sa_member *member;        // in order of PortGUID
    uint32_t num, cap;
};
struct sa_member {
    uint64_t port_guid;
    uint8_t join_state;
    bool proxy, stored, dirty;
    mono_t gone; // since; .ns 0 = it is there
};

struct sa_subscription {
    uint64_t port_guid;
    uint16_t lid;
    uint32_t qpn;
    struct mad_inform_info inform;
};

struct sm_sa {
    struct sm *sm;
    const struct fabric *fabric;
    const struct fabric_tables *tables;
    bool ready;
    uint32_t *end; // port indices of end ports with a LID
    uint32_t num_ends;
    uint8_t *rate, *mtu; // by port: codes of its link

    struct sa_req *head[SA_LISTS], *tail[SA_LISTS];
    struct sa_req **hash;
    uint32_t waiting;
    struct loop_task work;
    mono_t slice;
    struct loop_timer timer; // once a second, or sooner for what is held
    mono_t second;
    uint64_t answers_before;
    struct sm_sa_stats stats;

    struct sa_group **group; // in order of MGID
    uint32_t num_groups, cap_groups;
    uint32_t num_members;
    uint16_t *mlid_groups; // groups that use the MLID, by MLID - 0xc000
    bool loaded;           // groups came from the database: nothing was lost
    bool unsaved;
    mono_t save_at;
    struct db_group *forgotten; // rows that are to go from the database
    size_t num_forgotten, cap_forgotten;

    struct sa_subscription *sub;
    uint32_t num_subs, cap_subs;

    struct u64map told; // PortGUIDs that were asked to join again
    struct u64map anew; // PortGUIDs that are to be asked, since their paths have changed; by urgency
    uint32_t num_anew;
    bool reregisters;         // somebody asks
    uint32_t reregister_now;  // that may be asked in this second
    uint32_t reregister_scan; // device that comes next
};

typedef enum sa_step sa_fn(struct sm_sa *sa, struct sa_req *r);
struct sa_row {
    uint16_t attr_id;
    uint16_t bytes;                    // of a record
    uint16_t get_limit;                // a Get of several records: 1 = the first is meant, 2 = is refused
    sa_fn *get, *table, *set, *remove; // NULL: refused
};

// sa.c
bool sa_slice_over(struct sm_sa *sa); // the handler should return SA_MORE
// Adds a record to the answer; false when no more are wanted.
bool sa_emit(struct sa_req *r, const uint8_t *record, size_t bytes);
enum sa_step sa_refuse(struct sa_req *r, uint16_t status);
static inline const uint8_t *sa_data(const struct sa_req *r)
{
    return r->mad + MAD_SA_DATA_OFFSET;
}
static inline bool sa_asked(const struct sa_req *r, unsigned component)
{
    return r->hdr.component_mask >> component & 1;
}
// The port that a GID of ours names, or PORT_NONE.
port_id sa_port_by_gid(const struct sm_sa *sa, const uint8_t gid[16]);
void sa_put_gid(uint64_t prefix, uint64_t guid, uint8_t ret[16]);
uint64_t sa_gid_prefix(const uint8_t gid[16]);
uint64_t sa_gid_guid(const uint8_t gid[16]);
uint16_t sa_port_lid(const struct fabric *f, const struct port *p); // of its end port: a switch's is port 0's
void sa_wake(struct sm_sa *sa);                      // something is due sooner than the next second
void sa_fabric_changed(struct sm *sm);               // a sweep has ended well
void sa_tables_done(struct sm *sm, uint64_t ticket); // mcast.c: joins up to it are in the tables
// A selector of 2 bits (0 greater, 1 less, 2 exactly, 3 the largest) over values whose order `less` tells.
bool sa_rate_less(uint8_t a, uint8_t b);
uint8_t sa_rate_below(uint8_t rate); // the highest code below, 0 when there is none

// handlers
sa_fn sa_class_port_info, sa_path_get, sa_path_table;
sa_fn sa_nodes, sa_port_infos, sa_links, sa_switch_infos, sa_sm_infos, sa_lfts, sa_mfts;
sa_fn sa_mc_table, sa_mc_join, sa_mc_leave;
sa_fn sa_inform_set, sa_informs;

// sa_group.c
void sa_groups_init(struct sm_sa *sa);
void sa_groups_done(struct sm_sa *sa);
void sa_groups_save(struct sm_sa *sa);    // what has changed, to the database
void sa_groups_changed(struct sm_sa *sa); // marks it to be saved soon
void sa_groups_fabric(struct sm_sa *sa);  // members' ports have come or gone
void sa_groups_age(struct sm_sa *sa);     // once a second: who has been gone too long
struct sa_group *sa_group_find(const struct sm_sa *sa, const uint8_t mgid[16]);
// The index of the first group whose MGID is not below; num_groups when there is none.
uint32_t sa_group_lower(const struct sm_sa *sa, const uint8_t mgid[16]);
// A new group as *rec says; its MLID is given here. NULL with *ret_status when there is no room.
struct sa_group *sa_group_add(struct sm_sa *sa, const struct mad_mc_member_record *rec, uint16_t *ret_status);
struct sa_member *sa_member_find(const struct sa_group *g, uint64_t port_guid);
struct sa_member *sa_member_add(struct sm_sa *sa, struct sa_group *g, uint64_t port_guid);
void sa_member_remove(struct sm_sa *sa, struct sa_group *g, struct sa_member *m);
// Ends the group when nobody is left who keeps it.
void sa_group_settle(struct sm_sa *sa, struct sa_group *g);
void sa_free_mgid(struct sm_sa *sa, uint8_t scope, uint8_t ret[16]); // one that nobody has

// sa_reregister.c
void sa_reregister_second(struct sm_sa *sa);

// mcast.c
int sm_mcast_init(struct sm *sm);
void sm_mcast_done(struct sm *sm);
void sm_mcast_dirty(struct sm *sm, uint16_t mlid); // its members have changed
uint64_t sm_mcast_ticket(struct sm *sm);           // done when what is dirty now is in the tables
uint16_t sm_mcast_mlid_max(const struct sm *sm);
void sm_mcast_void(struct sm *sm); // somebody else writes the tables now
void sm_mcast_stats(const struct sm *sm, struct sm_sa_stats *ret);
// Row of the table as it should be, 0 beyond: for MulticastForwardingTableRecord.
bool sm_mcast_block(const struct sm *sm, uint64_t switch_guid, unsigned block, unsigned position,
                    uint16_t ret[32]);

#endif
