// SPDX-License-Identifier: Apache-2.0
// Alarms: what is wrong now, of all fabrics, one list for people, pagers and dashboards. Whoever finds
// something (health rules, congestion, the subnet manager's findings, weft itself) raises it by (fabric,
// rule, subject) and clears it; the list adds what all have in common: identity that outlives restarts,
// times, counts, stickiness, grouping, acknowledgement, silences, maintenance windows. Kept in meta.db; every
// change is an event.
//
// rule: "L06" (doc/alarms.md has all rows). subject: what it is about, as identity: "0x<guid>/<port>" of a
// link's lower end, "0x<guid>" of a node, or a word.
//
// An alarm ends when its condition is gone for the rule's time, and never before it has stood for ten
// minutes; until then it is listed as not active. Raised again before that it is the same alarm.
//
// Three alarms or more of one rule and group within a minute become one: its members stay in the list's
// memory (alarm_members()), but only the group is listed, told and acknowledged. An alarm of a rule that is
// part of another one (L03 of L01) is a member of that one's alarm on the same subject. What is raised is
// told after a second, so that a group is told once and its first members are not.
//
//     alarm.c          records, raising, clearing, ending, what is kept
//     alarm_group.c    groups
//     alarm_cause.c    what follows from what
//     alarm_tell.c     events and changes, after a second
//     alarm_silence.c  silences, windows, acknowledging
//     alarm_rules.c    the catalogue
//     alarm_list.c     the list, counts
//     alarm_sources.c  from what others find to rules
//
// Loop thread. Durations are loop time; times that are shown and kept are the wall clock's.
#ifndef WEFT_TELEMETRY_ALARM_H
#define WEFT_TELEMETRY_ALARM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/loop.h"

struct db;
struct err;
struct alarms;

#define ALARMS_MAX 100000u // members of groups too; beyond it nothing new is taken and W07 tells
#define ALARM_SILENCES_MAX 1000u
#define ALARM_GROUP_MIN 3u
#define ALARM_STICKY_NS (600 * MONO_S)

enum { ALARM_BY_WATCH = 1, ALARM_BY_EVENT = 2 };
enum alarm_severity { ALARM_INFO, ALARM_MINOR, ALARM_MAJOR, ALARM_CRITICAL };
const char *alarm_severity_name(enum alarm_severity s);

struct alarm_rule {               // the catalogue, one row a rule
    const char *id;               // "L06"
    const char *name;             // "post-fec-errors"
    const char *title;            // "post-FEC errors"
    const char *severity;         // "minor, critical": which one when, in the order of `raised`
    const char *raised, *cleared; // conditions, for people
    const char *advice;           // what to do, for people
    const char *host_advice;      // the same of a host's cable; NULL: no other
    const char *source;
    int64_t clear_after_ns; // the condition must have been gone for so long; the alarm stays at least 10 min
    bool own_clear; // who raises it has waited for that time: alarm_clear() means so. The time is then that
                    // after which an alarm of an earlier run ends that nobody has raised again
    const char *within; // rule whose alarm on the same subject takes this one in, or NULL
    bool momentary;     // is raised and cleared at once: several make a group though none holds
    bool follows; // from something else, mostly, that has an alarm too: listed behind all of its severity
};
extern const struct alarm_rule alarm_rules[];
extern const unsigned alarm_num_rules;
const struct alarm_rule *alarm_rule(const char *id); // NULL

struct alarm_report { // strings are copied, cut at 2 KiB (evidence: 4 KiB, else dropped); NULL = ""
    const char *fabric, *rule, *subject;
    enum alarm_severity severity;
    const char *place;       // "leaf-r3-04/44 <-> spine-05/55": both ends with names
    const char *peer;        // the far end's name, or ""
    const char *cable;       // serial, or ""
    const char *reason;      // one line with numbers and limits: "11 post-FEC errors in 12 min, limit 2.9"
    const char *evidence;    // JSON object: values by name, or ""
    const char *advice;      // NULL: the rule's
    const char *group;       // alarms with the same group and rule within a minute become one with a count
                             // ("0x<guid>" of the switch whose 64 links went), or NULL
    const char *group_place; // the group's name for people ("spine-05"); NULL: group
    uint8_t source;          // who raises it, for alarm_round_of(): 0, or ALARM_BY_*
    const char *group2, *group2_place; // another one that it may belong to, whichever comes to three first
    double lost_bps;                   // bytes/s that cannot be carried for it; 0: not known
    uint32_t hosts;                    // hosts that it cuts off
    uint64_t node_guid[2];             // both ends, 0 = none: what silences and windows look at
    uint8_t port[2];
};

struct alarm {   // a view; borrowed until the next call that changes the list
    uint64_t id; // rising, never reused
    const struct alarm_rule *rule;
    const char *fabric, *subject, *place, *peer, *cable, *reason, *evidence, *advice;
    enum alarm_severity severity;
    int64_t since_wall_ns, last_wall_ns; // first raised; raised or changed last
    uint64_t count;          // times raised: that it came (back), or was raised with something new to say
    bool active;             // the condition holds now; else it is kept for being sticky
    int64_t cleared_wall_ns; // when the condition went; 0 while active
    bool acked;
    const char *acked_by, *ack_note;
    uint64_t silence; // id of the silence that covers it; 0
    uint32_t members; // of a group, those that stand; 1 otherwise
    bool group;
    uint64_t leader; // id of the group that it is a member of; 0: it is listed itself
    // As of the last alarms_list() or of when it was told. cause: id of the alarm that it follows from, or 0;
    // root: of the last one of such a chain, its own when it follows from none; a group's, not a member's.
    uint64_t cause, root;
    const struct alarm_rule *follows; // rule of its root, when that is at least as bad; NULL
    uint32_t followers;               // of a root: listed alarms that follow from it
    double lost_bps;                  // as reported; of a group the sum
    uint32_t hosts;
    const uint64_t *node_guid;
    const uint8_t *port;
};

struct alarm_silence {
    uint64_t id;
    const char *focus; // what it covers, as text; "" = everything
    const char *rule;  // or "" = any
    const char *owner, *reason;
    int64_t from_wall_ns, until_wall_ns; // from 0: now
    bool maintenance; // what it covers is also kept off traffic by hand; at its end what has not come back is
                      // listed
};

struct alarm_change { // told to those who send alarms on
    enum { ALARM_RAISED, ALARM_CHANGED, ALARM_CLEARED, ALARM_ACKED, ALARM_SILENCED } what;
    const struct alarm *alarm; // CLEARED: for the last time; with a leader: it goes on as part of that one
};

struct alarms_callbacks {
    void *arg;
    // kind: "alarm-raised", "alarm-changed", "alarm-cleared", "alarm-grouped", "alarm-acked",
    // "silence-begun", "silence-ended", "maintenance-ended". severity: of events (info, notice, warning,
    // error).
    void (*event)(void *arg, const char *fabric, const char *kind, const char *severity, const char *subject,
                  const char *text, const char *data_json);
    void (*change)(void *arg, const struct alarm_change *c); // may be NULL. Must not change the list
    // Whether a silence's focus covers a port; NULL: compared as GUID, name pattern or GUID/port.
    bool (*covers)(void *arg, const char *focus, const char *fabric, uint64_t node_guid, uint8_t port);
    int64_t (*wall)(void *arg); // ns since 1970; NULL: the system's clock, which in virtual time goes along
};
// db may be NULL. Loads what was active; it is cleared again by the usual rules when nobody raises it.
struct alarms *alarms_new(struct loop *l, struct db *db, const struct alarms_callbacks *cb);
void alarms_free(struct alarms *a);

void alarm_raise(struct alarms *a, const struct alarm_report *r); // also again, each time it is seen
void alarm_clear(struct alarms *a, const char *fabric, const char *rule, const char *subject);
// Everything of a fabric and rule that was not raised since the last call of this is cleared: for those who
// look at everything each time.
void alarm_round(struct alarms *a, const char *fabric, const char *rule); // of source 0
void alarm_round_of(struct alarms *a, const char *fabric, const char *rule, uint8_t source);
// Those who raise a fabric's alarms of the rules whose names begin so begin anew: what stands ends as after a
// restart, unless it is raised again.
void alarm_doubt(struct alarms *a, const char *fabric, const char *rules);

// What stands of that rule and subject follows from what stands of the other ones, until both do no more.
void alarm_explain(struct alarms *a, const char *fabric, const char *rule, const char *subject,
                   const char *cause_rule, const char *cause_subject);
// The listed alarms that follow from a root; malloc'd array of borrowed views, the caller's.
uint32_t alarm_followers(const struct alarms *a, uint64_t id, const struct alarm ***ret);

// Roots, each with what follows from it behind it, by the worst of them; then by the hosts cut off and
// bandwidth lost, then the newest. Groups instead of their members; one array of views. Borrowed.
uint32_t alarms_list(const struct alarms *a, const struct alarm **ret);
// What a group has taken in, in the order of their beginning; malloc'd array of borrowed views, the caller's.
uint32_t alarm_members(const struct alarms *a, uint64_t id, const struct alarm ***ret);
const struct alarm *alarm_by_id(const struct alarms *a, uint64_t id);           // members too; NULL
int alarm_ack(struct alarms *a, uint64_t id, const char *by, const char *note); // -ENOENT
// id, or 0 and *e. until must be later than now and at most a year; owner and reason must not be empty.
uint64_t alarm_silence_add(struct alarms *a, const struct alarm_silence *s, struct err *e);
int alarm_silence_end(struct alarms *a, uint64_t id, const char *by); // -ENOENT
uint32_t alarm_silences(const struct alarms *a, const struct alarm_silence **ret);
struct alarms_count { // of what stands; not of what is over and only still shown
    uint32_t critical, major, minor, info, silenced; // silenced ones are in no other number
    uint32_t acked, following;                       // of those: taken on; not roots
};
void alarms_count(const struct alarms *a, const char *fabric, struct alarms_count *ret); // NULL: all

#endif
