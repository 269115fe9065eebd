// SPDX-License-Identifier: Apache-2.0
// Which of several subnet managers runs the subnet (IBA 14.4.1): the state machine, without wire and clock.
//
//     NOT-ACTIVE ──STANDBY──> STANDBY            (controls of Set(SMInfo) in capitals)
//     DISCOVERING: nobody better, no master ──> MASTER; else ──> STANDBY
//     STANDBY ──HANDOVER──> MASTER; ──DISABLE──> NOT-ACTIVE; ──DISCOVER, master gone──> DISCOVERING
//     MASTER: a better one is there: HANDOVER to it, then ──> STANDBY
//
// The higher priority ranks higher; of equal ones the lower PortGUID. Every state change happens in here
// (e->state); inputs come in by the functions below, each with the time; what is to be done comes out by
// election_act(), which the caller empties after each input. The caller asks election_settle() when a
// discovery has ended, before the first Set: ELECTION_WAIT = nothing may be written yet, ask again after the
// next input.
//
// A standby polls its master; while that is only one who ranks above us and will be master, all whom it
// knows, and follows the first that is master. A master polls all. A poll that is not answered, or answered
// by one who neither is master nor ranks above us, counts as missed; who ranks above us and becomes no master
// for two minutes is no longer waited for. An ActCount that stands still leads to a discovery; there a master
// that stands still counts only if it ranks above us.
//
// Beyond the standard: before a discovering manager becomes master it asks all that it has met once more; on
// a large fabric the meeting may be seconds old, and two may discover at the same time. A master whose
// HANDOVER was answered with status 0 goes to STANDBY at once: OpenSM never sends ACKNOWLEDGE. DISABLE leaves
// the IsSM bit set, so that STANDBY can reach us everywhere.
//
// Struct election is a value without pointers; the caller owns it.
#ifndef WEFT_SM_ELECTION_H
#define WEFT_SM_ELECTION_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/mono.h"
#include "mad/mad.h"

#define ELECTION_PEERS 64 // managers that are known at a time; more than that is an attack or a fault

struct election_opts {
    uint64_t guid, sm_key; // PortGUID; sm_key 0 = trusts everybody
    uint8_t priority;
    int64_t poll_ns;      // 0 = 1 s
    unsigned miss_limit;  // polls missed in a row after which a manager is gone; 0 = 3
    unsigned still_limit; // polls in a row with the same ActCount after which a standby looks around; 0 = 10
    int64_t yield_ns;     // how long a master waits for the handover of a lower one; 0 = 3 s
};

struct election_peer {
    uint64_t guid, sm_key;
    uint32_t act_count;
    uint8_t priority;
    enum mad_sm_state state;
    bool met;    // in the running or last discovery
    bool frozen; // its ActCount stood still; until it moves
    bool polled; // an answer is awaited
    bool yields; // master below us: until yield_until it may hand over
    bool fought; // … it did not: we carry on beside it
    bool told_key;
    bool idle;      // above us, but would not become master
    bool was_asked; // to hand over, at `asked`
    bool gave;      // the fabric to us, at `given`
    unsigned missed, still, still_limit;
    mono_t heard; // last answer
    mono_t yield_until;
    mono_t shy_until; // it did not take our handover: not asked again before
    mono_t asked, given;
    mono_t waited_since; // STANDBY: for it to become master
};

enum election_act_kind {
    ELECTION_STATE,       // e->state is another one now
    ELECTION_POLL,        // Get(SMInfo), one or two quick tries; election_heard() or election_silent()
    ELECTION_HANDOVER,    // Set(SMInfo) HANDOVER, with patience; then election_handed()
    ELECTION_ACKNOWLEDGE, // Set(SMInfo) ACKNOWLEDGE, as a standby; its answer is of no interest
    ELECTION_ASK,         // trap 144, SMPriorityChange: a master below us shall look, and hand over
    ELECTION_SWEEP,       // a full sweep at once; cause is set
    // To be told:
    ELECTION_MET,           // new, or another state or priority
    ELECTION_GONE,          // a copy of what was known is in the act
    ELECTION_SECOND_MASTER, // it ranks below and keeps its part: both write from now on
    ELECTION_TAKEN,         // it has taken the fabric from us
    ELECTION_NOT_TAKEN,     // it ranks above and does not take it: we stay master, unless it is one too
    ELECTION_GIVEN,         // it gives the fabric to us
    ELECTION_DISABLED,      // by it
    ELECTION_WRONG_KEY,     // it tried a control with another SM_Key; once
};
struct election_act {
    enum election_act_kind kind;
    struct election_peer peer; // whom it is about; all zero for STATE and SWEEP
    const char *cause;         // literal
};

#define ELECTION_ACTS (4 * ELECTION_PEERS)
struct election {
    struct election_opts o;
    enum mad_sm_state state;
    bool disabled;      // NOT-ACTIVE by the master's order
    bool told_stranger; // that an unknown one tried a control with another SM_Key
    bool full;          // the running discovery reads the whole fabric
    uint64_t master;    // STANDBY: whom we poll; 0 = nobody yet
    uint64_t handing;   // MASTER: to whom the fabric is being handed over; 0 = nobody
    bool handing_lost;  // … whose answer was lost: its SMInfo will tell
    uint64_t given_by;  // DISCOVERING: who handed the fabric to us meanwhile
    bool settling;      // DISCOVERING: those met are being asked again
    mono_t settle_began;
    mono_t next_poll;
    struct election_peer peer[ELECTION_PEERS];
    unsigned peers;
    struct election_act act[ELECTION_ACTS];
    unsigned acts, next_act;
};

void election_init(struct election *e, const struct election_opts *o);
// The next thing to do, in order; false when there is nothing more.
bool election_act(struct election *e, struct election_act *ret);
const struct election_peer *election_peer(const struct election *e, uint64_t guid);
bool election_better(const struct election *e, uint8_t priority, uint64_t guid); // than we are
// What answers to Get(SMInfo) say: STANDBY as soon as HANDOVER is on its way, or OpenSM, which asks as soon
// as it has it, would wait for another one for a minute.
enum mad_sm_state election_shown(const struct election *e);
// When election_timer() wants to be called; false: not until another input has come.
bool election_due(const struct election *e, mono_t *ret);

// --- inputs ---
// A discovery begins. full: who is not met in it is not there.
void election_begin(struct election *e, bool full, mono_t now);
// Found by the discovery. Our own SMInfo, and others with our GUID, are to be left out by the caller.
void election_met(struct election *e, const struct mad_sm_info *si, mono_t now);
enum election_verdict {
    ELECTION_PROCEED,  // as master: write
    ELECTION_STAND_BY, // write nothing: another one is master or will be, or we are disabled (e->state)
    ELECTION_WAIT,     // write nothing yet
};
enum election_verdict election_settle(struct election *e, mono_t now);
void election_heard(struct election *e, uint64_t guid, const struct mad_sm_info *si, mono_t now); // poll
void election_silent(struct election *e, uint64_t guid, mono_t now); // no answer, or an error status
enum election_handed {
    ELECTION_HANDED,  // status 0
    ELECTION_REFUSED, // another status
    ELECTION_LOST,    // no answer
};
void election_handed(struct election *e, uint64_t guid, enum election_handed how, mono_t now);
// Set(SMInfo) from another manager. Returns the status of the answer: 0 or MAD_STATUS_BAD_VALUE.
uint16_t election_control(struct election *e, uint32_t attr_mod, const struct mad_sm_info *from, mono_t now);
void election_priority(struct election *e, uint8_t priority, mono_t now); // the operator's word
// quiet: no sweep is running, so that a handover may begin.
void election_timer(struct election *e, bool quiet, mono_t now);

#endif
