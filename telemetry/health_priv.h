// SPDX-License-Identifier: Apache-2.0
// For health*.c only.
#ifndef WEFT_TELEMETRY_HEALTH_PRIV_H
#define WEFT_TELEMETRY_HEALTH_PRIV_H

#include "telemetry/health.h"

#define HEALTH_S MONO_S
#define HEALTH_MIN (60 * MONO_S)
#define HEALTH_HOLE (2 * HEALTH_MIN) // the unit of holes in what is known of a port
#define HEALTH_HOUR (3600 * MONO_S)

#define HEALTH_QUARTERS 96 // of an hour, in a day
#define HEALTH_LONGER 4    // windows of slow links are so many times as long at most

// --- signals: what is counted over windows, of one end ---
enum health_signal {
    SIGNAL_SYMBOL,
    SIGNAL_RECOVERY,
    SIGNAL_RCV,
    SIGNAL_DISCARD,
    SIGNAL_CONSTRAINT,
    SIGNAL_VL15,
    SIGNAL_INTEGRITY,
    SIGNAL_UNCORRECTABLE,
    SIGNALS,
    SIGNAL_NONE = SIGNALS,
};

// What a counter has counted, when: entries of readings in which it moved, oldest first, in which it moved
// between t0 and t1. Older ones are merged: an entry is at most a sixteenth of its age long.
struct health_series {
    uint32_t n, cap;
    struct health_entry {
        int64_t t0, t1;
        uint64_t count;
    } entry[];
};
void series_add(struct health_series **s, int64_t t0, int64_t t1, uint64_t count);
// Counted in the window before `end`; an entry that is long against the window counts by its share in it.
double series_count(const struct health_series *s, int64_t end, int64_t window);
int64_t series_last(const struct health_series *s); // when it moved last; INT64_MIN: never

// --- rules ---
enum health_kind {
    KIND_COUNT,     // more than `limit` in `window`
    KIND_SUSTAINED, // more than `limit` a second, in each fifth of `window`
    KIND_DOWN,      // down for `window`
    KIND_FLAP,      // `limit` downs in `window`; or recoveries
    KIND_REBOOT,
    KIND_SLOW,
    KIND_RAW_RISE, // raw bit error ratio `limit` times its median, and above `floor`
    KIND_RAW_HIGH, // above `limit`
    KIND_HOT,
    KIND_OPTICS, // a module has failed, or is outside its own limits
    KIND_HELD,   // held for `limit` of the time, all of `window`
};
#define HEALTH_LEVELS 2
struct health_rule {
    const char *id; // row of alarm_rules[]: title, advice, source
    enum health_kind kind;
    enum health_signal signal;
    struct health_level { // the higher last; window 0: there is none
        enum alarm_severity severity;
        enum health_state state; // of the link while it stands; HEALTH_UNKNOWN: says nothing of the link
        int64_t window;
        double limit;
    } level[HEALTH_LEVELS];
    bool either;       // both levels are of the same severity: windows of one
    bool scaled;       // limits are for 400 Gb/s
    double least;      // never fewer than so many
    double stretch;    // of slower links the second level's longer window is also so many times as long
    double clear_part; // clear below this part of the limit; 0: none at all
    int64_t clear_ns;  // for so long
    const char *what;  // "post-FEC symbol errors"
};
enum health_rule_index {
    RULE_L01,
    RULE_L02,
    RULE_L03,
    RULE_L04,
    RULE_L05,
    RULE_L06,
    RULE_L07,
    RULE_L08,
    RULE_L09,
    RULE_L10,
    RULE_L11,
    RULE_L12,
    RULE_L13,
    RULE_L14,
    RULE_L15,
    RULE_L16,
    RULE_L17,
    RULE_C01,
    HEALTH_RULES
};
extern const struct health_rule health_rules[HEALTH_RULES];

// What a look at a rule has found.
struct health_finding {
    int level;                     // that holds now; -1: none
    int64_t bad_at[HEALTH_LEVELS]; // when it was so bad last that it must not clear; INT64_MIN: never
    int64_t seen_to;               // to when all is known: nothing clears beyond it
    enum alarm_severity severity;
    char reason[240], evidence[400]; // reason "": as it was
    bool at_once;                    // another reason is told without waiting
};

struct health_verdict { // of a rule, of a link
    int8_t level;       // -1: does not stand
    uint8_t severity;
    int64_t since, bad_at[HEALTH_LEVELS];
    int64_t told;
    char *reason, *evidence; // as told last
    bool untold;             // it stood before a restart: whoever lists alarms is to hear that it still does
};

// --- links ---
#define HEALTH_DOWNS 24
#define HEALTH_PENDING 8
struct health_pending { // LinkDowned has counted n, between t0 and t1
    uint32_t n;
    int64_t t0, t1;
};
struct health_episode { // not up, as the subnet manager has seen it
    int64_t down, up;   // up 0: still
};
// Downs of a link that has had some.
struct health_downs {
    struct health_pending pending[2][HEALTH_PENDING];
    struct health_episode episode[HEALTH_PENDING];
    uint8_t num_pending[2], num_episodes, num;
    struct health_down {
        int64_t at;
        bool weak; // one end alone could be read
    } down[HEALTH_DOWNS];
};
// A link of which there is something to say. Ends: 0 is that of the lower slot.
struct health_link {
    uint32_t slot[2]; // [1] TELE_SLOT_NONE: far end never seen
    struct health_link *prev, *next;
    uint32_t awake; // bit r: rule r stands, or what it looks at has moved
    struct health_verdict verdict[HEALTH_RULES];
    struct health_series *series[2][SIGNALS];
    struct health_downs *downs;           // NULL: none
    int64_t down_since;                   // 0: up
    int64_t slow_since;                   // 0: as it should be
    int64_t held_since[2][HEALTH_LEVELS]; // from when it is above the limit; 0: it is not
    int64_t held_last[2][HEALTH_LEVELS];  // when it was above half of them
    float held[2];                        // mean of about a minute
    float raw_base;                       // median, of when L08 was raised
    enum health_state state;              // of the verdicts; UNKNOWN: none
    int64_t state_since;
    int64_t healthy_since; // when the last verdict ended
};

// A field that is added here is forgotten with the cable, unless begin_port() in health.c keeps it.
struct health_port {
    uint64_t last[12];  // TELE_SYMBOL_ERRORS.. TELE_VL15_DROPPED
    uint64_t last_wait; // TELE_XMIT_WAIT
    uint64_t last_corrected, last_uncorrectable;
    uint64_t seen;                // bit c: counter c was read once
    int64_t at_errors, at_speed;  // last readings; 0: none
    int64_t from;                 // first reading of errors
    int64_t downs_from, downs_at; // LinkDowned is known without a gap since then, and was read last; 0: never
    int64_t reset_seen;           // a reading has found counters cleared last; 0: never
    int64_t every;                // between the last two
    struct health_link *link;     // both ends have it; NULL: nothing to say
    uint32_t mate;                // the far end's slot, when it was seen last
    uint32_t rate_mbps;           // the same
    uint32_t rate_most;           // of this link, since this run has seen it; 0: not yet
    uint16_t tick;                // bytes of one of XmitWait's
    uint32_t host;                // first slot of it; ID_NONE: not a host's port
    uint32_t resets;
    bool resumed;    // known from before a restart, not read since
    bool was_known;  // whether it was up is known from before a restart
    bool told;       // health_link() was called
    bool seen_up;    // it was up once
    bool up;         // health_set_up() alone changes it
    int64_t up_at;   // when it came up last; 0: it was
    int64_t down_at; // when it went down last; 0: never
    // raw bit errors
    float raw_now[2], raw_bits[2]; // symbols and bits of the last and the running 5 min
    float slot_errors, slot_bits;
    float median;      // of history; NAN: too little of it
    int64_t block;     // number of the running 5 min
    uint8_t raw_over;  // readings in a row above half of a limit
    bool raw_known;    // there was a reading
    bool raw_filled;   // the counter was full with the last one: its ratio is the least that it can be
    float raw_last[3]; // of the last readings, the newest first; 0: none
    // coverage
    uint64_t holes; // bit i: something was not counted in the i-th last two minutes before hole_unit
    int64_t hole_unit;
    // module
    int16_t celsius10;  // tenths, at hot_at
    int16_t coldest[7]; // by ten minutes
    int64_t cold_unit;
    int64_t hot_at;                   // of the last reading; 0: none
    int64_t module_from;              // what was read until then is of another cable's; 0: of none
    struct tele_optics optics;        // at optics_at
    int64_t optics_at, optics_bad_at; // of the last reading, 0: none; to when it was bad, 0: it was not
    bool module_unread;               // what stood before a restart may not have been read since
    int64_t unread_from;              // and is held for being so since; 0
    uint8_t history[HEALTH_QUARTERS]; // by quarter of an hour: code of the ratio, 0 = none
};

struct health {
    struct health_opts o;
    struct health_sink sink;
    struct health_port *port;
    uint32_t num;
    struct health_link *first, *last; // oldest first
    const struct tele_table *t;       // during a feed and health_link()
    struct health_snapshot {          // to compare: it may be gone
        const struct fabric *of;
        uint64_t generation;
    } learned; // that hosts, ticks and L05 are of
    int64_t now, swept;
    uint64_t changes, moved; // of links that are noted; of which cable is where
    struct {
        enum health_feeding {
            FEED_OVER,
            FEED_PORTS,
            FEED_HOSTS,
            FEED_TICKS,
            FEED_SLOW,
            FEED_LINKS,
        } phase;
        uint32_t next, num;              // ports
        struct health_snapshot snapshot; // as all ports had been looked at
        bool tidy;
        struct health_link *link; // the next one; NULL: that was the last
    } feed;
    uint32_t *host_up; // links that are up, by host; NULL: to be counted
};

static inline uint32_t health_lower(const struct health *h, uint32_t slot)
{
    uint32_t mate = h->port[slot].mate;
    return mate != TELE_SLOT_NONE && mate < slot ? mate : slot;
}
static inline void health_wake(struct health_link *l, enum health_rule_index r)
{
    l->awake |= 1u << r;
}
static inline int health_end(const struct health_link *l, uint32_t slot)
{
    return l->slot[0] == slot ? 0 : 1;
}

// At that time this level, and those below it, must not clear.
static inline void health_bad(struct health_finding *f, int level, int64_t at)
{
    for (int i = 0; i <= level; i++)
        f->bad_at[i] = at > f->bad_at[i] ? at : f->bad_at[i];
}

// health.c
struct health_link *health_link_get(struct health *h, uint32_t slot); // makes it
void health_link_free(struct health *h, struct health_link *l);
void health_grow(struct health *h, uint32_t num);
void health_port_init(struct health_port *p); // nothing is known of it
void health_set_up(struct health *h, uint32_t slot, bool up);
// "12:40:05 UTC"; "" when the wall clock is not known.
const char *health_time_of_day(const struct health *h, int64_t at, char buf[24]);
void health_span(int64_t ns, char *buf, size_t size); // "93 s", "16 min", "3.5 h"
const char *health_end_name(const struct health *h, uint32_t slot, char *buf, size_t size);

// health_down.c
void down_counted(struct health *h, uint32_t slot, uint64_t n, int64_t t0, int64_t t1);
void down_set(struct health *h, uint32_t slot, bool up, int64_t now);
void down_resolve(struct health *h, struct health_link *l); // after each feed
bool down_training(const struct health *h, uint32_t slot, int64_t t0, int64_t t1);
void down_judge(struct health *h, struct health_link *l, enum health_rule_index r, struct health_finding *f);
void flap_judge(struct health *h, struct health_link *l, struct health_finding *f);

// health.c: a counter that says how the link is counts no further
bool health_is_blind(const struct tele_table *t, uint32_t slot);

// health_raw.c
// full: the counter has reached its maximum, so there may have been more.
void raw_read(struct health *h, uint32_t slot, uint64_t corrected, bool full, int64_t t0, int64_t t1);
void raw_blind(struct health *h, uint32_t slot); // corrected symbols are not counted any more
// How many blocks of 5 min ago its running one is, and the day behind it, the newest quarter first; and back.
int64_t raw_age(const struct health_port *p, int64_t now, uint8_t ret_day[HEALTH_QUARTERS]);
void raw_resume(struct health_port *p, int64_t now, int64_t age, const uint8_t day[HEALTH_QUARTERS]);
double raw_ratio(const struct health_port *p); // of the last reading; NAN
void raw_judge(struct health *h, struct health_link *l, enum health_rule_index r, struct health_finding *f);

// health_module.c
void hot_judge(struct health *h, struct health_link *l, struct health_finding *f);
void optics_judge(struct health *h, struct health_link *l, struct health_finding *f);
// Adds how old the reading is that rule r goes by, when it is old.
void health_module_age(const struct health *h, const struct health_link *l, enum health_rule_index r,
                       char *why, size_t size);
static inline bool health_optics_bad(const struct health_port *p)
{
    return p->optics_at && (p->optics.fault || p->optics.lane > 0);
}

// health_slow.c
void judge_slow(struct health *h); // of a new snapshot
void slow_judge(struct health *h, struct health_link *l, struct health_finding *f);

// health_judge.c
void judge_link(struct health *h, struct health_link *l);
void judge_forget(struct health *h, struct health_link *l); // clears all verdicts
void held_read(struct health *h, uint32_t slot, uint64_t ticks, int64_t t0, int64_t t1);

#endif
