// SPDX-License-Identifier: Apache-2.0
// Isolation: which links should carry no traffic, since they fail or flap, and what stands against it.
// Proposes; acts (by draining, so that routes move before anything is lost) only where that is allowed.
// Never:
//
//   - splits the fabric: both ends must reach each other over links that work and carry traffic
//   - beyond max(10, 0.5 %) of all links
//   - host links, unless allowed; a host's last link, unless that is allowed too. No route goes round the
//     link of a host, so these cannot be drained: they are named, and a person takes them out of use
//   - more than a quarter of a switch's links to the tier above (CorrOpt, SIGCOMM 2017: capacity is kept)
//   - what is excluded, by a list with time limits
//   - one link more than twice a week
//
// A link is given back when both ends have been read without anything against it for 126 minutes. Each step
// is an event with its evidence. Kept in meta.db (a blob): what is isolated, what was within a week, what is
// excluded.
//
//     isolate.c  steps, lists      isolate_graph.c  what stands against it (pure)      isolate_keep.c  kept
//
// Loop thread. A feed costs nothing to speak of while no link fails; else O(links).
#ifndef WEFT_TELEMETRY_ISOLATE_H
#define WEFT_TELEMETRY_ISOLATE_H

#include "telemetry/health.h"
#include "telemetry/table.h"

struct db;
struct err;
struct isolate;

enum isolate_mode { ISOLATE_OFF, ISOLATE_PROPOSE, ISOLATE_AUTO };
enum isolate_hosts {
    ISOLATE_HOSTS_NEVER, // links between switches alone
    ISOLATE_HOSTS_SPARE, // host links too, but never a host's last one
    ISOLATE_HOSTS_ALL,
};
struct isolate_opts {
    enum isolate_mode mode;
    enum isolate_hosts hosts;
    unsigned cap_links;  // 10
    double cap_share;    // 0.005
    double keep_uplinks; // 0.75 of a switch's links to the tier above stay
    int64_t clean_ns;    // 126 min
    unsigned per_week;   // 2
};
void isolate_opts_default(struct isolate_opts *o);

enum isolate_verdict {
    ISOLATE_YES,      // nothing stands against it
    ISOLATE_ALREADY,  // it is isolated, or drained by somebody
    ISOLATE_OFFED,    // isolation is off
    ISOLATE_UNKNOWN,  // no such link, or nothing known of it
    ISOLATE_DOWN,     // carries nothing anyway
    ISOLATE_EXCLUDED, // by the list
    ISOLATE_WEEK,     // isolated twice within a week: a person should look
    ISOLATE_HOST,     // a host's link
    ISOLATE_LAST,     // a host's last link
    ISOLATE_SPLITS,
    ISOLATE_UPLINKS, // too few links to the tier above would be left
    ISOLATE_CAP,
    ISOLATE_REFUSED, // draining was refused
};
const char *isolate_verdict_name(enum isolate_verdict v);

struct isolate_place { // both ends of a link, as identity; [1].guid 0: not known
    uint64_t guid[2];
    uint8_t port[2];
};
struct isolate_callbacks {
    void *arg;
    // 0 or negative and *e. NULL: nothing is ever done.
    int (*drain)(void *arg, const struct isolate_place *p, const char *reason, struct err *e);
    int (*undrain)(void *arg, const struct isolate_place *p, const char *by, struct err *e);
    bool (*drained)(void *arg, const struct isolate_place *p); // by whomever; NULL: what was drained here
    // kinds: "isolation-proposed", "link-isolated", "isolation-refused", "isolation-ended",
    // "isolation-excluded", "isolation-included"
    void (*event)(void *arg, const char *kind, const char *severity, const char *subject, const char *text,
                  const char *data_json);
    void (*cap)(void *arg, bool reached, const char *text); // alarm W06; each feed
    bool hosts_too; // drain() can do it for links of hosts; else these are left to people, where allowed
};
// db NULL: nothing survives. Loads.
struct isolate *isolate_new(struct db *db, const char *fabric, const struct isolate_opts *o,
                            const struct isolate_callbacks *cb);
void isolate_free(struct isolate *i);
void isolate_set(struct isolate *i, const struct isolate_opts *o); // reconfigured
// After each feed of health. wall: ns since 1970.
void isolate_feed(struct isolate *i, const struct health *h, const struct tele_table *t, int64_t now,
                  int64_t wall);

struct isolate_item { // a link that fails or flaps, or is isolated
    struct isolate_place at;
    uint32_t slot; // the lower one; TELE_SLOT_NONE when the table does not know it any more
    const char *name, *rule, *reason; // "leaf-1[44] <-> spine-5[55]", "L06", with numbers
    bool isolated;
    enum isolate_verdict verdict; // of what is not isolated
    const char *why;              // in words, with numbers
    int64_t since_wall_ns;        // isolated, or proposed
    const char *by;               // who isolated it: "weft", or a person; ""
    bool clean;                   // isolated, and may be given back
};
// Isolated ones first, then by health's order. Borrowed until the next call that changes anything.
uint32_t isolate_list(const struct isolate *i, const struct isolate_item **ret);
struct isolate_numbers {
    uint32_t links, cap, isolated, proposed; // proposed: of verdict YES
};
void isolate_numbers(const struct isolate *i, struct isolate_numbers *ret);

// For any link, by a port of either end: what would stand against it. The strings are borrowed until the next
// call. False: no such link.
bool isolate_check(struct isolate *i, const struct health *h, const struct tele_table *t, uint64_t guid,
                   uint8_t port, int64_t wall, struct isolate_item *ret);
// By hand: drains and keeps track of it. What stands against it refuses it (-EPERM and *e) unless `anyway`;
// the cap, splits and exclusions too.
int isolate_now(struct isolate *i, const struct health *h, const struct tele_table *t, uint64_t guid,
                uint8_t port, const char *by, const char *reason, bool anyway, int64_t wall, struct err *e);
int isolate_release(struct isolate *i, uint64_t guid, uint8_t port, const char *by, struct err *e); // -ENOENT

struct isolate_exclusion {
    uint64_t guid;
    uint8_t port; // 0: all links of the node
    int64_t until_wall_ns;
    const char *by, *reason;
};
// Adds or replaces. until must be later than wall and at most a year; reason must not be empty.
int isolate_exclude(struct isolate *i, const struct isolate_exclusion *x, int64_t wall, struct err *e);
int isolate_include(struct isolate *i, uint64_t guid, uint8_t port, const char *by); // -ENOENT
uint32_t isolate_exclusions(const struct isolate *i, const struct isolate_exclusion **ret);

// --- the decision, pure ---
struct isolate_edge {
    uint32_t a, b; // nodes
    bool usable;   // up, and carries traffic
    bool counts;   // is meant to be there: of the links that shares are of
};
struct isolate_node {
    bool forwards; // a switch
    uint8_t tier;  // of switches; 255: none, or not known
    uint32_t host; // ID_NONE: no host's
};
struct isolate_graph {
    uint32_t num_nodes, num_edges;
    struct isolate_node *node;
    struct isolate_edge *edge;
    uint32_t *first,
        *of;           // edges of node n: of[first[n] .. first[n + 1] - 1]; isolate_graph_index() makes them
    uint32_t isolated; // links that are
    uint32_t *mark, stamp, *queue; // scratch
};
void isolate_graph_index(struct isolate_graph *g);
void isolate_graph_done(struct isolate_graph *g);
// Whether edge e may be taken out: YES, HOST, LAST, SPLITS, UPLINKS, CAP. why: of at least 200 bytes.
enum isolate_verdict isolate_decide(struct isolate_graph *g, uint32_t e, const struct isolate_opts *o,
                                    char *why, size_t size);
uint32_t isolate_cap(const struct isolate_opts *o, uint32_t links);

#endif
