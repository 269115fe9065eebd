// SPDX-License-Identifier: Apache-2.0
// Subnet administration: what end nodes ask of the manager (class 3, IBA vol 1 chapter 15): paths, multicast
// groups, records of the fabric, subscriptions. Figures and lists for the API; loop thread only.
#ifndef WEFT_SM_SA_H
#define WEFT_SM_SA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sm;

struct sm_sa_stats {
    uint64_t requests; // taken from the wire: the sum of the following and of what waits
    uint64_t answered; // with status 0
    uint64_t refused;  // with another status
    uint64_t merged;   // repeats of a request that was still waiting
    uint64_t dropped_not_ready, dropped_sm_key, dropped_method, dropped_stale, dropped_full, dropped_unknown;
    uint64_t send_failures; // answers that the transport did not take
    uint64_t records;       // in answers
    uint64_t reports;       // subscriptions changed
    uint32_t waiting, waiting_max;
    uint32_t last_second, most_a_second; // answers
    bool ready;                          // requests are answered
    uint32_t groups, members, subscriptions;

    // multicast forwarding
    uint64_t mft_blocks_set, mft_blocks_read, mft_failures;
    uint32_t mft_rounds, tree_switches; // tree_switches: 0 while nobody is a member
    uint32_t tree_jobs;                 // that made or proved a tree
    uint16_t mlid_max;
    uint64_t root_guid; // of the first tree
    bool tree_proved;   // no cycle of buffer dependencies with the unicast tables
    bool mft_held;      // tables found on the switches are left alone until members have joined again
};
void sm_sa_stats(const struct sm *sm, struct sm_sa_stats *ret);

struct sm_sa_group {
    uint8_t mgid[16];
    uint16_t mlid, p_key;
    uint32_t q_key, flow_label;
    uint8_t mtu, rate, sl, tclass, hop_limit, packet_life; // codes as in MCMemberRecord
    bool permanent;                                        // exists without members
    uint32_t members;
};
struct sm_sa_member {
    uint64_t port_guid;
    uint8_t join_state; // 1 full, 2 non-member, 4 send-only non-member, 8 send-only full member
    bool proxy;
    bool gone; // its port is not in the fabric now
};
// Calls group() for each in order of MGID, then member() (may be NULL) for each of its members in order of
// PortGUID. Neither may call the manager.
void sm_sa_groups(const struct sm *sm, void (*group)(void *arg, const struct sm_sa_group *g),
                  void (*member)(void *arg, const struct sm_sa_group *g, const struct sm_sa_member *m),
                  void *arg);

#endif
