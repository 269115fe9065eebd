// SPDX-License-Identifier: Apache-2.0
// For alarm*.c only; alarm_json() is isolate.c's too.
#ifndef WEFT_TELEMETRY_ALARM_PRIV_H
#define WEFT_TELEMETRY_ALARM_PRIV_H

#include "db/db.h"
#include "lib/hash.h"
#include "telemetry/alarm.h"

struct alarm_bunch;

enum {
    UNTOLD_RAISED = 1,
    UNTOLD_CHANGED = 2,
};

struct alarm_weight {
    bool active;
    uint8_t severity;
    uint32_t hosts;
    double lost_bps;
};

struct alarm_rec {
    struct alarm v; // its strings are the record's own, never NULL
    uint64_t node_guid[2];
    uint8_t port[2];
    const char *group[2], *group_place[2]; // "" = none
    uint64_t hash;
    struct alarm_rec *next_key, *next_id;  // of the hash tables
    struct alarm_rec *prev, *next;         // all, by id
    struct alarm_bunch *bunch[2];          // NULL: no group named
    struct alarm_rec *bunch_next[2];       // newest first
    struct alarm_rec *leader;              // that has taken it in; a leader has none itself
    struct alarm_rec *member, *member_end; // that it has taken in, oldest first
    struct alarm_rec *member_prev, *member_next;
    struct alarm_rec *cause;   // as of the last alarm_causes(), which is before any other use
    struct alarm_weight story; // of a root: the worst of it and its followers
    uint32_t walk;             // of open_circles(): which one has come by; 0: none
    uint64_t told_cause;       // of alarm_explain(): id, perhaps of one that is over; 0
    uint32_t peak;             // members at most so far
    int64_t begun;             // loop time; before 0 when it is of an earlier run
    int64_t cleared;           // loop time; while not active
    int64_t joined;            // loop time of the last member's joining
    int64_t restored; // loop time from which an alarm of an earlier run waits for somebody to raise it; -1
    uint8_t source;
    bool seen; // raised since the last alarm_round()
    uint8_t untold;
    bool told;       // RAISED was told
    uint8_t dirty;   // 1: to be written within a minute, 2: soon
    bool own_advice; // the report brought it
};

// Who may become a group: alarms of one fabric, rule and group name.
struct alarm_bunch {
    struct alarm_bunch *next;
    uint64_t hash;
    const char *group;        // its name, its own
    struct alarm_rec *rec;    // newest first; leaders are not in it
    struct alarm_rec *leader; // of the last group that came of it; NULL when ended
};

struct silence_rec {
    struct alarm_silence v;
    bool begun;
};

struct alarms {
    struct loop *loop;
    struct db *db;
    struct alarms_callbacks cb;
    struct alarm_rec *first, *last;
    uint32_t n;
    struct alarm_rec **by_key, **by_id;
    struct alarm_bunch **bunch;
    uint32_t buckets; // of each of the three; power of two
    uint64_t next_id, reserved;
    int64_t wall_offset; // virtual time: wall clock minus loop time
    struct loop_timer tell, tick;
    bool full; // W07 stands
    struct silence_rec *silence;
    uint32_t num_silences;
    int64_t looked; // loop time: what they cover was looked up
    // caches for readers
    bool list_stale, causes_stale;
    struct alarm *list;
    uint32_t num_list, cap_list;
    struct alarm_silence *silence_list;
};

static inline uint64_t alarm_text_hash(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (uint8_t)*s) * 0x100000001b3ULL;
    return hash_mix64(h);
}

// alarm.c
int64_t alarms_wall(const struct alarms *a);
int64_t alarms_now(const struct alarms *a);
uint64_t alarms_new_id(struct alarms *a);
struct alarm_rec *alarm_rec_find(const struct alarms *a, const char *fabric, const char *rule,
                                 const char *subject, bool group);
struct alarm_rec *alarm_rec_by_id(const struct alarms *a, uint64_t id);
// A record with strings "", in all indices; id 0: a new one.
struct alarm_rec *alarm_rec_new(struct alarms *a, uint64_t id, const char *fabric,
                                const struct alarm_rule *rule, const char *subject, bool group);
bool alarm_put(const char **at, const char *s, size_t max); // true: it is another text now
void alarm_dirty(struct alarms *a, struct alarm_rec *r, uint8_t how);
void alarm_wake(struct alarms *a, int64_t at); // ends and silences are looked at then
void alarm_end(struct alarms *a, struct alarm_rec *r);

// alarm_group.c
void alarm_group_new(struct alarms *a, struct alarm_rec *r); // r was just raised for the first time
void alarm_group_join(struct alarms *a, struct alarm_rec *leader, struct alarm_rec *r);
void alarm_group_leave(struct alarms *a, struct alarm_rec *r); // r ends
void alarm_group_look(struct alarms *a, struct alarm_rec *r);  // a member has changed: so has its leader
void alarm_group_relink(struct alarm_rec *leader, struct alarm_rec *r); // as of an earlier run
void alarm_group_reload(struct alarms *a, struct alarm_rec *leader);    // its members are linked
void alarm_bunch_add(struct alarms *a, struct alarm_rec *r);            // r has its group's name
void alarm_bunches_free(struct alarms *a);
static inline struct alarm_rec *alarm_top(struct alarm_rec *r)
{
    return r->leader ? r->leader : r;
}

// alarm_cause.c
// Looks for all causes anew, when something has changed. What has another root is told with what is due next
// (alarm_tell()), also where a reader was the first to look.
void alarm_causes(struct alarms *a);

// alarm_tell.c
void alarm_tell_later(struct alarms *a, struct alarm_rec *r, uint8_t what);
void alarm_causes_moved(
    struct alarms *a); // they are looked for, and what is new of them told, within a second
void alarm_tell_now(struct alarms *a, struct alarm_rec *r, int what, const char *by);
void alarm_tell(void *a); // what is due; the timer's
void alarm_event(struct alarms *a, const char *fabric, const char *kind, const char *severity,
                 const char *subject, const char *text, const char *data);
struct buf;
void alarm_json(struct buf *b, const char *key,
                const char *s); // "key":"s", with a comma when it is not first

// alarm_silence.c
void alarm_silence_load(struct alarms *a, const struct alarm_silence *s); // of an earlier run
void alarm_silences_free(struct alarms *a);
void alarm_silence_find(struct alarms *a, struct alarm_rec *r); // sets v.silence
int64_t alarm_silences_tick(struct alarms *a);                  // begins and ends; when to come again

// alarm_keep.c
void alarm_keep_load(struct alarms *a);
void alarm_keep_done(struct alarms *a); // all is saved, ids not used are given back
void alarm_silences_load(struct alarms *a);
void alarm_keep_save(struct alarms *a, bool all); // all: also what may wait
void alarm_keep_forget(struct alarms *a, const struct alarm_rec *r);
void alarm_keep_silence(struct alarms *a, const struct alarm_silence *s);
void alarm_keep_forget_silence(struct alarms *a, uint64_t id);
void alarm_keep_reserve(struct alarms *a);

#endif
