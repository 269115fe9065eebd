// SPDX-License-Identifier: Apache-2.0
// Health of links: rules with windows and hysteresis over the counters of both ends, and a state per link
// that is sticky. Rules are rows (health_rules.c: signal, window, threshold, clear condition; their sources
// stand in alarm_rules.c). What a rule says is raised as an alarm by whoever feeds this (alarm_sources.h).
// Pure but for its own state: times come in.
//
// A port costs about 400 bytes: the last values, a day of raw bit error ratios by quarters of an hour, what
// is covered by readings. A link of which there is something to say has a record besides, with what was
// counted when: readings one by one, older ones merged so that an entry is a sixteenth of its age at most.
// (Buckets of a minute would cost more where there are few errors, and could not tell 3 in 12 min from 3 in
// 13.) Windows go by the times of readings and end with the last one: a reading that was missed is not
// missing, the next one brings what was counted meanwhile. What was never counted (a clear by others, a
// counter at its maximum) makes a hole: a window with too many of them, one that has not passed yet or a port
// that is not read any more is unsure, never healthy. Nothing clears on what has not been read.
//
// Both ends of a link are one: what either receives badly is the cable's. PortRcvRemotePhysicalErrors blames
// no link here. Errors that are counted while a link goes down, is down or trains are the down's and no
// errors of their own.
//
//     health.c         feeding, links                health_series.c  what was counted when
//     health_rules.c   limits                        health_down.c    downs of both ends, flaps, reboots
//     health_judge.c   rules, verdicts               health_raw.c     bit errors before FEC
//     health_module.c  modules: temperature, light   health_keep.c    what outlives a restart
//     health_slow.c    width and speed               health_view.c    states, words, counts
//
// Loop thread; a feed costs below 1 us a port and counter that has moved.
#ifndef WEFT_TELEMETRY_HEALTH_H
#define WEFT_TELEMETRY_HEALTH_H

#include "telemetry/alarm.h"
#include "telemetry/module.h"
#include "telemetry/table.h"

struct health;

enum health_state {
    HEALTH_UNKNOWN,
    HEALTH_HEALTHY,
    HEALTH_UNSURE,
    HEALTH_DEGRADED,
    HEALTH_FLAPPING,
    HEALTH_FAILING,
    HEALTH_DOWN
};
const char *health_state_name(enum health_state s);

struct health_opts {
    double ber_limit; // post-FEC; 0 = 1e-14 for the short window, 1e-15 for the long one
    // Wall clock of a moment of loop time, ns since 1970, for texts; NULL: they say no times of day.
    int64_t (*wall)(void *arg, int64_t at);
    void *wall_arg;
};
struct health_sink { // how verdicts leave: by rule, link and severity. Strings borrowed
    void *arg;
    void (*raise)(void *arg, const char *rule, uint32_t slot, enum alarm_severity s, const char *reason,
                  const char *evidence_json);
    void (*clear)(void *arg, const char *rule, uint32_t slot); // slot: the lower of the link's two
};
struct health *health_new(const struct health_opts *o, const struct health_sink *sink);
void health_free(struct health *h);
// After each sweep; also after a fast one of errors only. now: loop time.
void health_feed(struct health *h, const struct tele_table *t, int64_t now);
// The same in parts: health_feed_some() looks at `most` ports or links and is true when that was all. What is
// told, forgotten and asked between two parts is as if it were before or after; another feed begins anew.
void health_feed_begin(struct health *h, const struct tele_table *t, int64_t now);
bool health_feed_some(struct health *h, uint32_t most);
// What is known from elsewhere: a link of the blueprint that is (not) up (the subnet manager knows at once),
// a module's temperature in degrees C (NAN: no source), what it says against itself (NULL: no source). at:
// when that was read, which may be long ago; the same again, or what is older than what is known, changes
// nothing. By either slot, also again and again. Links that are never told go by the table's `up`, once they
// were up.
void health_link(struct health *h, uint32_t slot, bool up, int64_t now);
// The two are meant to be one link: of one that has not been up since the start the table does not say so. No
// effect where an end has been seen with a peer.
void health_pair(struct health *h, uint32_t a, uint32_t b);
void health_module(struct health *h, uint32_t slot, double celsius, int64_t at);
void health_optics(struct health *h, uint32_t slot, const struct tele_optics *o, int64_t at);
// After so long without a reading nothing is known of a module, and what stands is over.
#define HEALTH_MODULE_GONE (24 * 3600 * MONO_S)
// There is a source, which says nothing of this one now: what stands is not over, until then.
void health_module_unread(struct health *h, uint32_t slot);
// The link is meant to be there no more, or another cable is known to be in its place: all that was known of
// it goes, what stands is cleared.
void health_forget(struct health *h, uint32_t slot);

// What to do about a link that was down and is up.
#define HEALTH_BACK_ADVICE "nothing, if it stays up: its downs are counted, and three in 12 h are L02"

struct health_view { // of the link at a slot; both its slots give the same
    enum health_state state;
    int64_t since;              // loop time of the state
    const char *rule;           // the worst that holds; ""
    char why[240];              // with numbers
    const char *advice;         // ""
    int64_t sure_at;            // HEALTH_UNSURE: when enough bits will have passed; 0
    double symbol_ber, raw_ber; // last estimates; NAN
};
void health_view(const struct health *h, const struct tele_table *t, uint32_t slot, struct health_view *ret);
// Whether anything was ever counted against the link; else nothing but its state is to be told.
bool health_noted(const struct health *h, uint32_t slot);
// Its state alone, without the words.
enum health_state health_state_at(const struct health *h, const struct tele_table *t, uint32_t slot);
// Its bit error ratios alone: the last estimates; NAN.
void health_ratios(const struct health *h, uint32_t slot, double *ret_symbol_ber, double *ret_raw_ber);
// Rules that stand on the link, worst first; at most `max`; returns how many. since: loop time.
struct health_standing {
    const char *rule;
    enum alarm_severity severity;
    int64_t since;
    const char *reason; // borrowed until the next feed
};
uint32_t health_standing(const struct health *h, uint32_t slot, struct health_standing *ret, uint32_t max);
// Links that are degraded or worse, by their lower slot, worst first; malloc'd, the caller's. For lists and
// for isolation.
uint32_t health_named(const struct health *h, uint32_t **ret_slots);
// Both ends were read for all of `window`, which ends with their last readings, and nothing was against the
// link in it: what a link must be to carry traffic again. Errors that no rule minds do not count.
bool health_clean(const struct health *h, const struct tele_table *t, uint32_t slot, int64_t window);
// The first slot that was ever seen of the host whose port this is, also of one that is away; TELE_SLOT_NONE.
uint32_t health_host(const struct health *h, uint32_t slot);
// Hosts of which this link was the last that was up: 1, or 0. O(ports) where a link went up or down since the
// last question, else O(1).
uint32_t health_host_cut(struct health *h, uint32_t slot);
// What to do about what the rule has found there, for people.
const char *health_advice(const struct health *h, const struct tele_table *t, uint32_t slot,
                          const char *rule);
bool health_is_back(const struct health *h, uint32_t slot);  // up, while L01 or L03 stands still
uint32_t health_peer(const struct health *h, uint32_t slot); // the other end, when it was last seen
// Over a restart: records of links, noted ones (of which there is something to say) and the rest.
// health_put() appends that of the link whose lower slot this is, if it is of that part; now: what its times
// are told from. health_take(), before anything is fed: all records of n bytes; then: what `now` was, as a
// time of this run; find: a port's slot. Of a port that comes twice the later record counts. False: something
// did not fit, and what stands behind it was not taken. health_replay(): a reading from before the restart
// that is newer than the record; the table has its values and what it has. What stood is raised again with
// the first feed.
enum health_part { HEALTH_NOTED, HEALTH_REST };
struct buf;
typedef uint32_t health_slot_fn(void *arg, uint64_t node_guid, uint8_t num); // TELE_SLOT_NONE
void health_put(const struct health *h, const struct tele_table *t, uint32_t slot, enum health_part part,
                int64_t now, struct buf *b);
bool health_take(struct health *h, const uint8_t *p, size_t n, int64_t then, health_slot_fn *find, void *arg);
void health_replay(struct health *h, const struct tele_table *t, uint32_t slot, int64_t at);
// Rises with what records say: of noted links; of the rest, when a cable is another one.
uint64_t health_changes(const struct health *h, enum health_part part);
struct health_count {
    uint32_t links[HEALTH_DOWN + 1];
};
void health_count(const struct health *h, const struct tele_table *t, struct health_count *ret);
// The same for `most` slots from *slot on, added to *ret; true: those were the last.
bool health_count_some(const struct health *h, const struct tele_table *t, uint32_t *slot, uint32_t most,
                       struct health_count *ret);

#endif
