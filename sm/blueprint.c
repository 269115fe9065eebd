// SPDX-License-Identifier: Apache-2.0
// The blueprint: the fabric as it is meant to be, learnt from all that was ever seen or fixed by somebody
// (learn.c), and the ideal tables for it. What is in force is a function of these and of the live fabric
// alone (route_repair_from()): a failure moves what crossed it, a repair brings it home, and a restart comes
// to the same tables. Kept in the database as ibnetdiscover text under a line that tells its size and one of
// its state, who has changed that and when, with a checksum before; made by a worker, since a large fabric's
// text is megabytes.
//
// What somebody asks for is done by the next sweep: it is tried with the routes that follow from it, and kept
// when these are in force.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/merge.h"
#include "fabric/reader.h"
#include "fabric/writer.h"
#include "lib/err.h"
#include "lib/hash.h"
#include "lib/xalloc.h"
#include "sm/drain_priv.h"
#include "sm/sm_priv.h"

#define SUM "# sum %016" PRIx64 "\n" // of all behind it; without it: as earlier versions kept it
#define SUM_LEN (6 + 16 + 1)
#define HEAD "# blueprint nodes %u links %u\n"
#define STATE "# state %s since %lld by %s\n"

struct sm_blueprint_job {
    struct pool_job job;
    struct sm *sm;
    const struct fabric *fabric;
    enum sm_blueprint_state state;
    int64_t since_ns;
    char by[64];
    char *text;
    size_t len;
};

const char *sm_blueprint_state_name(enum sm_blueprint_state s)
{
    return s == SM_BLUEPRINT_ACCEPTED ? "accepted" : "learning";
}

// --- the ideal ---

struct sm_ideal *sm_ideal_new(const struct fabric *blueprint, const struct fabric *made_for,
                              const struct route_result *route, const struct route_opts *o, struct err *e)
{
    struct sm_ideal *x = xcalloc(1, sizeof(*x));
    atomic_init(&x->refs, 1);
    x->blueprint = fabric_ref(blueprint);
    x->made_for = fabric_ref(made_for);
    x->route = *route;
    x->route.tables = tables_ref(route->tables);
    if (route_base_new(x->made_for, &x->route, o, &x->base, e) != 0) {
        sm_ideal_unref(x);
        return NULL;
    }
    return x;
}

struct sm_ideal *sm_ideal_ref(struct sm_ideal *x)
{
    if (x != NULL)
        atomic_fetch_add(&x->refs, 1);
    return x;
}

void sm_ideal_unref(struct sm_ideal *x)
{
    if (x == NULL || atomic_fetch_sub(&x->refs, 1) > 1)
        return;
    route_base_free(x->base);
    tables_unref(x->route.tables);
    fabric_unref(x->made_for);
    fabric_unref(x->blueprint);
    free(x);
}

bool sm_ideal_tables(const struct sm *sm, const struct fabric **ret_fabric,
                     const struct fabric_tables **ret_tables)
{
    const struct sm_ideal *x = sm->blueprint.ideal;
    if (x == NULL)
        return false;
    *ret_fabric = x->made_for;
    *ret_tables = x->route.tables;
    return true;
}

bool sm_get_routing(const struct sm *sm, struct sm_routing *ret)
{
    const struct sm_ideal *x = sm->blueprint.ideal;
    if (x == NULL)
        return false;
    *ret = (struct sm_routing){
        .blueprint = x->blueprint, .made_for = x->made_for, .ideal = x->route, .opts = sm_route_opts(sm)};
    return true;
}

// --- kept ---

static uint64_t sum_of(const char *p, size_t n)
{
    uint64_t h = 0xcbf29ce484222325; // FNV-1a
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001b3;
    return hash_mix64(h);
}

// The text behind the sum; NULL: it is damaged. A file system's flipped bit is a switch that never was.
static const char *check_sum(const char *p, size_t n)
{
    char line[SUM_LEN + 1];
    if (n >= 12 && memcmp(p, HEAD, 12) == 0)
        return p;
    if (n < SUM_LEN)
        return NULL;
    snprintf(line, sizeof(line), SUM, sum_of(p + SUM_LEN, n - SUM_LEN));
    return memcmp(p, line, SUM_LEN) == 0 ? p + SUM_LEN : NULL;
}

static void work(void *arg, struct par *par)
{
    struct sm_blueprint_job *j = arg;
    char line[SUM_LEN + 1];
    FILE *f = open_memstream(&j->text, &j->len);
    (void)par;
    if (f == NULL)
        return;
    fprintf(f, SUM, (uint64_t)0);
    fprintf(f, HEAD, j->fabric->num_nodes, j->fabric->num_links);
    fprintf(f, STATE, sm_blueprint_state_name(j->state), (long long)j->since_ns, j->by[0] ? j->by : "-");
    int rc = write_ibnetdiscover(j->fabric, f);
    if (fclose(f) != 0 || rc != 0) {
        j->len = 0;
        return;
    }
    snprintf(line, sizeof(line), SUM, sum_of(j->text + SUM_LEN, j->len - SUM_LEN));
    memcpy(j->text, line, SUM_LEN);
}

static void job_free(struct sm *sm)
{
    struct sm_blueprint_job *j = sm->blueprint.job;
    if (j == NULL)
        return;
    pool_cancel(&j->job);
    fabric_unref(j->fabric);
    free(j->text);
    free(j);
    sm->blueprint.job = NULL;
}

void sm_blueprint_free(struct sm *sm)
{
    job_free(sm);
    fabric_unref(sm->blueprint.known);
    fabric_unref(sm->blueprint.kept);
    fabric_unref(sm->blueprint.ask.given);
    sm_ideal_unref(sm->blueprint.ideal);
}

static void keep(struct sm *sm);
static void done(void *arg)
{
    struct sm_blueprint_job *j = arg;
    struct sm *sm = j->sm;
    if (j->len > 0)
        db_blob_put(sm->db, sm->o.fabric, "blueprint", j->text, j->len, NULL, NULL);
    job_free(sm);
    keep(sm);
}

static void keep(struct sm *sm)
{
    bool kept = sm->blueprint.known == sm->blueprint.kept && !sm->blueprint.stale;
    if (sm->db == NULL || sm->blueprint.job != NULL || kept || sm->blueprint.known == NULL)
        return;
    struct sm_blueprint_job *j = xcalloc(1, sizeof(*j));
    j->sm = sm;
    j->fabric = fabric_ref(sm->blueprint.known);
    j->state = sm->blueprint.state;
    j->since_ns = sm->blueprint.since_ns;
    memcpy(j->by, sm->blueprint.by, sizeof(j->by));
    sm->blueprint.stale = false;
    j->job = (struct pool_job){.work = work, .done = done, .arg = j, .name = "blueprint"};
    sm->blueprint.job = j;
    fabric_unref(sm->blueprint.kept);
    sm->blueprint.kept = fabric_ref(sm->blueprint.known);
    pool_submit(sm->pool, &j->job);
}

// The line behind the head. There is none in a blueprint that an earlier version has kept: it was learning.
static void load_state(struct sm *sm, const char *text)
{
    char state[16] = "", by[64] = "";
    long long since = 0;
    const char *line = strchr(text, '\n');
    if (line == NULL || sscanf(line + 1, "# state %15s since %lld by %63[^\n]", state, &since, by) < 2)
        return;
    sm->blueprint.state = strcmp(state, "accepted") == 0 ? SM_BLUEPRINT_ACCEPTED : SM_BLUEPRINT_LEARNING;
    sm->blueprint.since_ns = since;
    snprintf(sm->blueprint.by, sizeof(sm->blueprint.by), "%s", strcmp(by, "-") == 0 ? "" : by);
}

void sm_blueprint_load(struct sm *sm)
{
    void *p = NULL;
    size_t n = 0;
    struct findings fs = {0};
    struct err e = {0};

    if (sm->db == NULL || db_blob_get(sm->db, sm->o.fabric, "blueprint", &p, &n) != 0)
        return;
    const char *text = check_sum(p, n);
    const struct fabric *read = NULL;
    if (text == NULL)
        err_set(&e, -EBADMSG, "blueprint", "its checksum is wrong: meta.db is damaged");
    else
        read = reader_parse(text, n - (size_t)(text - (char *)p), "blueprint", &fs, &e);
    if (read != NULL)
        load_state(sm, text);
    free(p);
    findings_done(&fs);
    if (read == NULL) {
        sm_event(sm, "blueprint-not-read", "error", "",
                 "the blueprint that was kept cannot be read and is learned anew from what is there now: %s",
                 e.text);
        return;
    }
    sm->blueprint.known = fabric_merge(read, NULL);
    sm->blueprint.kept = fabric_ref(sm->blueprint.known);
    fabric_unref(read);
}

// --- asked for, done ---

void sm_get_blueprint(const struct sm *sm, struct sm_blueprint *ret)
{
    *ret = (struct sm_blueprint){.known = sm->blueprint.known,
                                 .state = sm->blueprint.state,
                                 .since_wall_ns = sm->blueprint.since_ns,
                                 .by = sm->blueprint.by,
                                 .asked = sm->blueprint.ask.op};
}

void sm_blueprint_ask(struct sm *sm, enum sm_blueprint_op op, const struct fabric *given, const char *by)
{
    struct sm_blueprint_ask *a = &sm->blueprint.ask;
    if (given != NULL)
        fabric_ref(given);
    fabric_unref(a->given);
    a->op = op;
    a->given = given;
    sm_text(a->by, sizeof(a->by), by);
    sm_resweep(sm, "operator", op == SM_BLUEPRINT_REROUTE);
}

void sm_blueprint_begin(struct sm *sm, struct sm_learning *ret)
{
    *ret = (struct sm_learning){.known = sm->blueprint.known != NULL ? fabric_ref(sm->blueprint.known) : NULL,
                                .ideal = sm_ideal_ref(sm->blueprint.ideal),
                                .state = sm->blueprint.state,
                                .ask = sm->blueprint.ask,
                                .anew = sm->reroute_now || sm->blueprint.ask.op == SM_BLUEPRINT_REROUTE,
                                .refused = sm->blueprint.refused};
    memset(&sm->blueprint.ask, 0, sizeof(sm->blueprint.ask));
}

void sm_blueprint_give_back(struct sm *sm, struct sm_learning *l, const struct err *refused)
{
    if (l->ask.op == SM_BLUEPRINT_NONE)
        return;
    if (refused != NULL) {
        sm_event(sm, "blueprint-refused", "error", "",
                 "what was asked of the blueprint (by %s) is not done: %s",
                 l->ask.by[0] ? l->ask.by : "somebody", refused->text);
    } else if (sm->blueprint.ask.op == SM_BLUEPRINT_NONE) {
        sm->blueprint.ask = l->ask;
        l->ask.given = NULL;
    }
    l->ask.op = SM_BLUEPRINT_NONE;
}

static void tell_done(struct sm *sm, const struct sm_learning *l)
{
    static const char *const what[] = {
        [SM_BLUEPRINT_ACCEPT] = "all that is seen is part of it; it is fixed from now on",
        [SM_BLUEPRINT_LEARN] = "what is seen becomes part of it from now on",
        [SM_BLUEPRINT_SET] = "it was given, and is fixed from now on",
        [SM_BLUEPRINT_STRIKE] = "what is gone for good was taken out of it",
        [SM_BLUEPRINT_REROUTE] =
            "it is what is there now, and is fixed from now on; routes are computed anew",
    };
    const struct fabric *now = l->next->blueprint;
    const struct blueprint_compare *c = l->less;
    char gone[120] = "";
    if (c != NULL && c->count[BLUEPRINT_MISSING_NODE] + c->count[BLUEPRINT_MISSING_LINK] > 0)
        snprintf(gone, sizeof(gone), "; dropped: %u nodes, %u cables of others",
                 c->count[BLUEPRINT_MISSING_NODE], c->count[BLUEPRINT_MISSING_LINK]);
    sm_event(sm, "blueprint-changed", "notice", "",
             "blueprint (by %s): %s: %u nodes, %u switches, %u links%s%s%s",
             l->ask.by[0] ? l->ask.by : "somebody", what[l->ask.op], now->num_nodes, now->num_switches,
             now->num_links, gone,
             l->kept[0] ? "; kept, as it does not answer though its cables are up: " : "", l->kept);
}

void sm_blueprint_take(struct sm *sm, struct sm_learning *l)
{
    sm_ideal_ref(l->next);
    sm_ideal_unref(sm->blueprint.ideal);
    sm->blueprint.ideal = l->next;
    sm->blueprint.refused = l->refused;
    if (sm->blueprint.known != l->next->blueprint) {
        fabric_unref(sm->blueprint.known);
        sm->blueprint.known = fabric_ref(l->next->blueprint);
    }
    if (l->ask.op != SM_BLUEPRINT_NONE) {
        sm->blueprint.state = sm_blueprint_state_after(l->ask.op, l->state);
        sm->blueprint.since_ns = wall_now_ns();
        memcpy(sm->blueprint.by, l->ask.by, sizeof(sm->blueprint.by));
        sm->blueprint.stale = true;
        tell_done(sm, l);
        l->ask.op = SM_BLUEPRINT_NONE;
    }
    keep(sm);
}

// --- what is not in it ---

#define EXAMPLES 3 // of a kind

static void tell_moved(struct sm *sm, const struct sm_learning *l, const struct blueprint_item *x)
{
    char text[600];
    bool gone = fabric_by_guid(sm->next_fabric, x->was_guid) == NULL;
    blueprint_item_text(x, l->next->blueprint, sm->next_fabric, text, sizeof(text));
    sm_note(sm, NOTE_ROUTES, FINDING_WARNING, "blueprint-moved", "", "%s%s", text,
            gone ? ", which is gone; weft blueprint accept" : "; put it back, or: weft blueprint accept");
}

static void tell_replaced(struct sm *sm, const struct sm_learning *l, const struct blueprint_item *x)
{
    char text[600];
    blueprint_item_text(x, l->next->blueprint, sm->next_fabric, text, sizeof(text));
    sm_note(sm, NOTE_ROUTES, FINDING_WARNING, "blueprint-replaced", "",
            "%s; when that is meant: weft blueprint accept", text);
}

static void tell_examples(struct sm *sm, const struct sm_learning *l, enum blueprint_diff kind,
                          void (*tell)(struct sm *, const struct sm_learning *,
                                       const struct blueprint_item *))
{
    for (uint32_t i = 0, told = 0; i < l->more->n && told < EXAMPLES; i++)
        if (l->more->item[i].kind == kind) {
            tell(sm, l, &l->more->item[i]);
            told++;
        }
}

struct part {
    uint32_t count;
    const char *one, *many;
};

// "1 switch, 32 ends"; returns how many that is together.
static uint32_t put_parts(const struct part *part, size_t parts, char *buf, size_t size)
{
    uint32_t n = 0;
    buf[0] = 0;
    for (size_t i = 0; i < parts; i++)
        if (part[i].count > 0) {
            size_t used = strlen(buf);
            snprintf(buf + used, size - used, "%s%u %s", n > 0 ? ", " : "", part[i].count,
                     part[i].count == 1 ? part[i].one : part[i].many);
            n += part[i].count;
        }
    return n;
}

static void growth_text(const struct blueprint_compare *c, char *buf, size_t size)
{
    const struct part part[] = {
        {c->extra_switches, "switch", "switches"},
        {c->count[BLUEPRINT_EXTRA_LINK], "cable between switches", "cables between switches"},
        {c->count[BLUEPRINT_EXTRA_NODE] - c->extra_switches, "end node", "end nodes"}};
    uint32_t n = put_parts(part, sizeof(part) / sizeof(part[0]), buf, size);
    size_t used = strlen(buf);
    snprintf(buf + used, size - used,
             " %s not in the blueprint: routed, but others' routes take no account of "
             "%s; weft blueprint accept",
             n == 1 ? "is" : "are", n == 1 ? "it" : "them");
}

static void tell_growth(struct sm *sm, const struct blueprint_compare *c)
{
    char text[300];
    if (c->count[BLUEPRINT_EXTRA_NODE] + c->count[BLUEPRINT_EXTRA_LINK] == 0)
        return;
    growth_text(c, text, sizeof(text));
    sm_note(sm, NOTE_ROUTES, FINDING_WARNING, "blueprint-growth", "", "%s", text);
    if (c->count[BLUEPRINT_EXTRA_NODE] > sm->blueprint.told[BLUEPRINT_EXTRA_NODE] ||
        c->count[BLUEPRINT_EXTRA_LINK] > sm->blueprint.told[BLUEPRINT_EXTRA_LINK])
        sm_event(sm, "blueprint-growth", "notice", "", "%s", text);
}

// --- what is away ---

struct away {
    const struct sm *sm;
    const struct fabric *b;
    uint8_t *gone; // per node of b: 1 a switch that is away, 2 likewise and drained
    uint32_t switches, ends, cables, hosts;
    uint32_t shown;
    char names[250];
};

static void show(struct away *a, const char *name)
{
    size_t used = strlen(a->names);
    if (a->shown++ < EXAMPLES)
        snprintf(a->names + used, sizeof(a->names) - used, "%s%s", a->shown > 1 ? ", " : "", name);
}

static void add_switch(struct away *a, const struct node *n)
{
    char name[180];
    bool drained = sm_drains_cover_switch(a->sm, n->guid);
    a->gone[n - a->b->node] = drained ? 2 : 1;
    if (drained)
        return;
    a->switches++;
    show(a, fabric_node_name(a->b, n, name, sizeof(name)));
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *z = fabric_peer_node(a->b, fabric_port(a->b, fabric_port_at(a->b, n, num)));
        a->cables += z != NULL && a->gone[z - a->b->node] == 0; // else counted, or drained
    }
}

// An end goes without saying where all its switches are away; else it is down.
static void add_end(struct away *a, const struct node *n)
{
    unsigned had = 0, gone = 0, drained = 0;
    for (unsigned num = 1; num <= n->num_ports; num++) {
        const struct node *z = fabric_peer_node(a->b, fabric_port(a->b, fabric_port_at(a->b, n, num)));
        if (z == NULL)
            continue;
        had++;
        gone += a->gone[z - a->b->node] == 1;
        drained += a->gone[z - a->b->node] == 2;
    }
    if (had > 0 && gone + drained == had)
        a->ends += gone > 0;
    else
        a->hosts++;
}

static void add_cable(struct away *a, const struct blueprint_item *x)
{
    char text[450];
    const struct node *n = fabric_by_guid(a->b, x->guid), *z = fabric_by_guid(a->b, x->far_guid);
    if (n == NULL || z == NULL || n->type != NODE_SWITCH || z->type != NODE_SWITCH ||
        sm_drains_cover(a->sm, x->guid, x->port, x->far_guid, x->far_port))
        return;
    a->cables++;
    snprintf(text, sizeof(text), "%s[%u] - %s[%u]", fabric_desc(a->b, n), x->port, fabric_desc(a->b, z),
             x->far_port);
    show(a, text);
}

// One finding for the fabric. Hosts that are down are no cause for alarm.
static void tell_away(struct sm *sm, const struct sm_learning *l, bool accepted)
{
    struct away a = {.sm = sm, .b = l->next->blueprint};
    char text[400], hosts[60] = "";

    a.gone = xcalloc(a.b->num_nodes + 1, 1);
    for (uint32_t i = 0; i < l->more->n; i++) { // switches come first
        const struct blueprint_item *x = &l->more->item[i];
        const struct node *n = fabric_by_guid(a.b, x->guid);
        if (x->kind == BLUEPRINT_MISSING_LINK)
            add_cable(&a, x);
        else if (x->kind == BLUEPRINT_MISSING_NODE && n != NULL && x->is_switch)
            add_switch(&a, n);
        else if (x->kind == BLUEPRINT_MISSING_NODE && n != NULL)
            add_end(&a, n);
    }
    free(a.gone);
    const struct part part[] = {{a.switches, "switch", "switches"},
                                {a.switches + a.cables > 0 ? a.ends : 0, "end", "ends"},
                                {a.cables, "cable", "cables"}};
    uint32_t all = put_parts(part, 3, text, sizeof(text));
    if (all > 0) {
        if (accepted && a.hosts > 0)
            snprintf(hosts, sizeof(hosts), "; besides, %u end%s down", a.hosts,
                     a.hosts == 1 ? " is" : "s are");
        sm_note(sm, NOTE_ROUTES, accepted ? FINDING_WARNING : FINDING_INFO, "blueprint-missing", "",
                "%s of the blueprint %s away: %s%s%s; weft blueprint show", text, all == 1 ? "is" : "are",
                a.names, a.shown > EXAMPLES ? ", ..." : "", hosts);
    } else if (accepted && a.hosts > 0) {
        sm_note(sm, NOTE_ROUTES, FINDING_INFO, "blueprint-missing", "",
                "%u end%s of the blueprint %s down; weft blueprint show", a.hosts, a.hosts == 1 ? "" : "s",
                a.hosts == 1 ? "is" : "are");
    }
}

void sm_blueprint_tell(struct sm *sm, const struct sm_learning *l)
{
    const struct blueprint_compare *c = l->more;
    bool accepted = sm_blueprint_state_after(l->ask.op, l->state) == SM_BLUEPRINT_ACCEPTED;
    static const uint32_t none[BLUEPRINT_DIFFS];

    if (c != NULL && accepted) {
        tell_growth(sm, c);
        tell_examples(sm, l, BLUEPRINT_MOVED, tell_moved);
        tell_examples(sm, l, BLUEPRINT_REPLACED, tell_replaced);
    }
    if (c != NULL)
        tell_away(sm, l, accepted);
    memcpy(sm->blueprint.told, c != NULL && accepted ? c->count : none, sizeof(sm->blueprint.told));
}
