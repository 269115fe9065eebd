// SPDX-License-Identifier: Apache-2.0
// What follows from what: one cause of many alarms is their root, and they are its followers. Of a link's
// alarms the worst is; of links that went with a node the node's is. Who it is that ports wait for is told
// by who finds that out (alarm_explain()). Roots are found anew when an alarm has come, gone or changed.
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/xalloc.h"
#include "telemetry/alarm_priv.h"

#define BEFORE (300 * MONO_S) // a cause that was over so long before its effect began is none

// What one bad cable shows, the likelier root first where they are equally bad. A module that has failed is
// the root of all of them.
static const char *const cable[] = {"L17", "L11", "L06", "L10", "L07", "L02", "L05", "L09", "L12", "L08"};
#define CABLES (sizeof(cable) / sizeof(cable[0]))

struct nodes { // those that do not answer, by fabric and GUID
    struct u64map at;
    struct alarm_rec **rec;
    uint32_t n;
};

static bool is_rule(const struct alarm_rec *r, const char *id)
{
    return strcmp(r->v.rule->id, id) == 0;
}

static bool may_cause(const struct alarm_rec *c, const struct alarm_rec *r)
{
    return c && c != r && alarm_top((struct alarm_rec *)c) != r &&
           (c->v.active || c->v.cleared_wall_ns >= r->v.since_wall_ns - BEFORE);
}

static uint64_t node_key(const struct alarm_rec *r, int e)
{
    return alarm_text_hash(hash_mix64(r->node_guid[e]), r->v.fabric);
}

// What stands rather than what is over; then the manager's rather than that of the counters.
static bool is_better(const struct alarm_rec *r, const struct alarm_rec *than)
{
    if (r->v.active != than->v.active)
        return r->v.active;
    return r->source == ALARM_BY_WATCH && than->source != ALARM_BY_WATCH;
}

// A finding about one port names the node that it is on, which answers: port 0 is the node itself.
static void find_nodes(const struct alarms *a, struct nodes *x)
{
    u64map_init(&x->at, NULL, 16);
    x->rec = NULL;
    x->n = 0;
    for (struct alarm_rec *r = a->first; r; r = r->next) {
        uint32_t i;
        if (r->v.group || !is_rule(r, "S05") || !r->node_guid[0] || r->port[0])
            continue;
        if (u64map_get(&x->at, node_key(r, 0), &i)) {
            if (is_better(r, x->rec[i]))
                x->rec[i] = r;
            continue;
        }
        if ((x->n & (x->n - 1)) == 0)
            x->rec = xreallocarray(x->rec, x->n ? x->n * 2ul : 1, sizeof(struct alarm_rec *));
        u64map_set(&x->at, node_key(r, 0), x->n);
        x->rec[x->n++] = r;
    }
}

static struct alarm_rec *by_node(const struct nodes *x, const struct alarm_rec *r)
{
    for (int e = 0; e < 2; e++) {
        uint32_t i;
        if (r->node_guid[e] && u64map_get(&x->at, node_key(r, e), &i) && may_cause(x->rec[i], r) &&
            x->rec[i]->node_guid[0] == r->node_guid[e] && strcmp(x->rec[i]->v.fabric, r->v.fabric) == 0)
            return x->rec[i];
    }
    return NULL;
}

static struct alarm_rec *same_link(const struct alarms *a, const struct alarm_rec *r, const char *rule)
{
    struct alarm_rec *c = alarm_rec_find(a, r->v.fabric, rule, r->v.subject, false);
    return may_cause(c, r) ? c : NULL;
}

// The root of what its cable shows; NULL: it is that itself.
static struct alarm_rec *by_cable(const struct alarms *a, struct alarm_rec *r)
{
    struct alarm_rec *best = NULL;
    bool own = false;
    for (unsigned i = 0; i < CABLES; i++)
        own = own || is_rule(r, cable[i]);
    for (unsigned i = 0; own && i < CABLES; i++) {
        struct alarm_rec *c = is_rule(r, cable[i]) ? r : same_link(a, r, cable[i]);
        if (!c)
            continue;
        if (i == 0) // a module
            return c == r ? NULL : c;
        if (!best || (c->v.active && !best->v.active) ||
            (c->v.active == best->v.active && c->v.severity > best->v.severity))
            best = c;
    }
    return best != r ? best : NULL;
}

// What went down with a device's links, or a host's.
static struct alarm_rec *by_device(const struct alarms *a, const struct alarm_rec *r)
{
    struct alarm_rec *c = same_link(a, r, "L01");
    for (int i = 0; i < 2 && !c; i++) {
        if (r->group[i][0])
            c = alarm_rec_find(a, r->v.fabric, "L01", r->group[i], true);
        c = may_cause(c, r) ? c : NULL;
    }
    return c;
}

// Modules of one device that get hot together do with it, whatever its own alarm is for.
static struct alarm_rec *by_hot_device(const struct alarms *a, const struct alarm_rec *r)
{
    char guid[GUID_STR_SIZE];
    if (!r->leader || !r->leader->node_guid[0])
        return NULL;
    struct alarm_rec *c =
        alarm_rec_find(a, r->v.fabric, "L18", guid_str(r->leader->node_guid[0], guid), false);
    return may_cause(c, r) ? c : NULL;
}

static struct alarm_rec *cause_of(const struct alarms *a, const struct nodes *nodes, struct alarm_rec *r)
{
    struct alarm_rec *c = r->told_cause ? alarm_rec_by_id(a, r->told_cause) : NULL;
    if (may_cause(c, r))
        return c;
    if (is_rule(r, "S05"))
        return r->source != ALARM_BY_WATCH ? by_node(nodes, r) : NULL;
    if (is_rule(r, "L01") || is_rule(r, "L04")) {
        if ((c = by_node(nodes, r)))
            return c;
        return is_rule(r, "L04") ? by_device(a, r) : same_link(a, r, "L02");
    }
    if (is_rule(r, "L16"))
        return by_hot_device(a, r);
    return r->v.rule->id[0] == 'L' ? by_cable(a, r) : NULL;
}

// What most of a group's members follow from, more than half of them.
static struct alarm_rec *cause_of_group(const struct alarm_rec *g)
{
    struct alarm_rec *best = NULL;
    uint32_t lead = 0, n = 0, all = 0; // a majority, if there is one, is what is left when others cancel out
    for (const struct alarm_rec *m = g->member; m; m = m->member_next) {
        struct alarm_rec *c = m->cause ? alarm_top(m->cause) : NULL;
        if (lead == 0)
            best = c;
        lead += c == best ? 1 : -1u;
    }
    for (const struct alarm_rec *m = g->member; m; m = m->member_next, all++)
        n += (m->cause ? alarm_top(m->cause) : NULL) == best;
    return n * 2 > all ? best : NULL;
}

static struct alarm_rec *root_of(struct alarm_rec *r)
{
    struct alarm_rec *at = alarm_top(r);
    while (at->cause) // no circle is left
        at = alarm_top(at->cause);
    return at;
}

// The oldest of a circle is what began it.
static void open_circle(struct alarm_rec *in)
{
    struct alarm_rec *oldest = in;
    for (struct alarm_rec *at = alarm_top(in->cause); at != in; at = alarm_top(at->cause))
        oldest = at->v.id < oldest->v.id ? at : oldest;
    oldest->cause = NULL;
}

// Nothing follows from itself, over however many others. What only leads into a circle keeps its cause.
static void open_circles(struct alarms *a)
{
    uint32_t walk = 0;
    for (struct alarm_rec *r = a->first; r; r = r->next)
        r->walk = 0;
    for (struct alarm_rec *r = a->first; r; r = r->next) {
        struct alarm_rec *at = r->leader ? NULL : r;
        for (walk++; at && at->walk == 0; at = at->cause ? alarm_top(at->cause) : NULL)
            at->walk = walk;
        if (at && at->walk == walk)
            open_circle(at);
    }
    for (struct alarm_rec *r = a->first; r; r = r->next) // a member has its leader's root
        if (r->leader && r->cause && (alarm_top(r->cause) == r->leader || !r->leader->cause))
            r->cause = NULL;
}

static void take_root(struct alarms *a, struct alarm_rec *r)
{
    struct alarm_rec *root = root_of(r);
    struct alarm_rec *cause = r->cause ? alarm_top(r->cause) : NULL;
    uint64_t id = cause ? cause->v.id : 0;
    bool follows = root != alarm_top(r) && root->v.severity >= r->v.severity;
    const struct alarm_rule *rule = follows ? root->v.rule : NULL;
    bool other = r->v.root != root->v.id || r->v.follows != rule;
    bool known = r->v.root != 0;
    r->v.cause = id;
    r->v.root = root->v.id;
    r->v.follows = rule;
    if (!r->leader && root != r)
        root->v.followers++;
    if (other && known && r->told && r->v.active && !r->leader)
        alarm_tell_later(a, r, UNTOLD_CHANGED);
}

void alarm_causes(struct alarms *a)
{
    struct nodes nodes;
    if (!a->causes_stale)
        return;
    a->causes_stale = false;
    find_nodes(a, &nodes);
    for (struct alarm_rec *r = a->first; r; r = r->next) {
        r->v.followers = 0;
        r->cause = NULL;
    }
    for (struct alarm_rec *r = a->first; r; r = r->next)
        if (!r->v.group)
            r->cause = cause_of(a, &nodes, r);
    for (struct alarm_rec *r = a->first; r; r = r->next)
        if (r->v.group)
            r->cause = cause_of_group(r);
    open_circles(a);
    for (struct alarm_rec *r = a->first; r; r = r->next)
        take_root(a, r);
    u64map_done(&nodes.at);
    free(nodes.rec);
}

void alarm_explain(struct alarms *a, const char *fabric, const char *rule, const char *subject,
                   const char *cause_rule, const char *cause_subject)
{
    struct alarm_rec *r = alarm_rec_find(a, fabric, rule, subject, false);
    const struct alarm_rec *c = alarm_rec_find(a, fabric, cause_rule, cause_subject, false);
    if (!r || !c || r->told_cause == c->v.id)
        return;
    r->told_cause = c->v.id;
    alarm_causes_moved(a);
}

uint32_t alarm_followers(const struct alarms *ca, uint64_t id, const struct alarm ***ret)
{
    struct alarms *a = (struct alarms *)ca; // as in alarms_list()
    const struct alarm_rec *root = alarm_rec_by_id(a, id);
    uint32_t n = 0;
    alarm_causes(a);
    *ret = xcalloc((root ? root->v.followers : 0) + 1ul, sizeof(**ret));
    for (const struct alarm_rec *r = a->first; r && root && n < root->v.followers; r = r->next)
        if (!r->leader && r != root && r->v.root == id)
            (*ret)[n++] = &r->v;
    return n;
}
