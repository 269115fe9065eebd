// SPDX-License-Identifier: Apache-2.0
#include "api/whatif.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/quality.h"
#include "fabric/merge.h"
#include "fabric/reach.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "routing/quality.h"

#define CUT_OFF_SHOWN 20
#define SINGLES_SHOWN 10

// --- where questions begin ---

static int compute_base(struct whatif_base *b, const struct computation *c, struct par *par, struct err *e)
{
    mono_t began = mono_now();
    e->code = 0;
    b->numbered = compute_number(c->f, NULL, e);
    if (e->code != 0)
        return e->code;
    b->f = b->blueprint = b->made_for = b->numbered != NULL ? b->numbered : c->f;
    b->opts = (struct route_opts){.engine = c->engine, .par = par};
    int rc = route_compute(b->f, &b->opts, &b->ideal, e);
    b->seconds = mono_seconds(mono_sub(mono_now(), began));
    b->computed = rc == 0;
    b->tables = b->ideal.tables;
    return rc;
}

// Cables of what is drained already.
static void find_in_force(struct whatif_base *b, const struct compute_routing *r)
{
    if (r->num_drains == 0)
        return;
    b->drained = xcalloc(b->f->num_ports + 1, sizeof(bool));
    for (size_t i = 0; i < r->num_drains; i++) {
        const struct node *n = fabric_by_guid(b->f, r->drain[i].guid);
        for (unsigned num = 1; n != NULL && num <= n->num_ports; num++) {
            port_id p = fabric_port_at(b->f, n, num), peer = fabric_port(b->f, p)->peer;
            if ((r->drain[i].port == 0 || r->drain[i].port == num) && port_valid(peer))
                b->drained[p.i] = b->drained[peer.i] = true;
        }
    }
}

int whatif_base_init(struct whatif_base *b, const struct computation *c, struct par *par, struct err *e)
{
    const struct compute_routing *r = &c->routing;
    int rc = 0;
    *b = (struct whatif_base){0};
    if (c->tables == NULL || r->made_for == NULL) {
        rc = compute_base(b, c, par, e);
        if (rc == 0 && c->tables != NULL) // in force, and not known of what
            b->tables = c->tables;
    } else {
        b->f = c->f;
        b->tables = c->tables;
        b->blueprint = r->blueprint;
        b->made_for = r->made_for;
        b->ideal = r->ideal;
        b->opts = r->opts;
        b->opts.par = par;
        find_in_force(b, r);
    }
    return rc ? rc : route_base_new(b->made_for, &b->ideal, &b->opts, &b->base, e);
}

void whatif_base_done(struct whatif_base *b)
{
    route_base_free(b->base);
    if (b->computed)
        tables_unref(b->ideal.tables);
    fabric_unref(b->numbered);
    free(b->drained);
    *b = (struct whatif_base){0};
}

int whatif_repair(const struct whatif_base *b, const struct fabric *live, const bool *drained,
                  struct par *par, struct route_result *ret, struct err *e)
{
    size_t n = 0;
    if (drained == NULL)
        return route_repair_from(b->base, live, par, ret, e);
    port_id *port = xreallocarray(NULL, live->num_ports + 1, sizeof(*port));
    for (uint32_t i = 0; i < live->num_ports; i++)
        if (drained[i])
            port[n++] = (port_id){i};
    struct route_avoid *avoid = route_avoid_new(live, port, n);
    int rc = route_repair_avoiding(b->base, live, avoid, par, ret, e);
    route_avoid_free(avoid);
    free(port);
    return rc;
}

// --- rows ---

struct asked_row {
    int64_t failed_nodes, failed_links, drained_links, added_nodes, added_links, ends_not_added;
};
#define ASKED(f) offsetof(struct asked_row, f)
static const struct field asked_fields[] = {
    {.name = "failed_nodes", .type = FIELD_INT, .at = ASKED(failed_nodes), "nodes that fail"},
    {.name = "failed_links", .type = FIELD_INT, .at = ASKED(failed_links), "cables that fail, theirs too"},
    {.name = "drained_links", .type = FIELD_INT, .at = ASKED(drained_links), "cables that are drained"},
    {.name = "added_nodes", .type = FIELD_INT, .at = ASKED(added_nodes), "nodes that are added"},
    {.name = "added_links", .type = FIELD_INT, .at = ASKED(added_links), "cables that are added"},
    {.name = "ends_not_added",
     .type = FIELD_INT,
     .at = ASKED(ends_not_added),
     "adapters on switches that were copied alone, without these"},
    {0},
};
static const struct schema schema_asked = {
    .name = "whatif_asked", "What was asked for", sizeof(struct asked_row), asked_fields};

struct lost_row {
    uint64_t guid;
    const char *name, *was_on;
    int64_t port;
};
#define LOST(f) offsetof(struct lost_row, f)
static const struct field lost_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = LOST(name), "NodeDescription"},
    {.name = "guid", .type = FIELD_GUID, .at = LOST(guid), "NodeGUID"},
    {.name = "port", .type = FIELD_INT, .at = LOST(port), "its port"},
    {.name = "was_on",
     .type = FIELD_STR,
     .at = LOST(was_on),
     "the switch that it is cabled to",
     .null = true},
    {0},
};
static const struct schema schema_lost = {
    .name = "whatif_cut_off", "A port that is cut off", sizeof(struct lost_row), lost_fields};

struct reach_row {
    int64_t ends_before, ends_after, pairs_before, pairs_after, ends_cut_off, switches_cut_off, hosts_touched,
        hosts_cut_off;
    struct items cut_off;
};
#define REACH(f) offsetof(struct reach_row, f)
static const struct field reach_fields[] = {
    {.name = "ends_before",
     .type = FIELD_INT,
     .at = REACH(ends_before),
     "ports of adapters and routers with a cable"},
    {.name = "ends_after", .type = FIELD_INT, .at = REACH(ends_after), "the same afterwards"},
    {.name = "pairs_before",
     .type = FIELD_INT,
     .at = REACH(pairs_before),
     "ordered pairs of these that cables join"},
    {.name = "pairs_after", .type = FIELD_INT, .at = REACH(pairs_after), "the same afterwards"},
    {.name = "ends_cut_off",
     .type = FIELD_INT,
     .at = REACH(ends_cut_off),
     "of these, ports that are cut off from most of the others; what itself fails does not count"},
    {.name = "switches_cut_off", .type = FIELD_INT, .at = REACH(switches_cut_off), "switches that are"},
    {.name = "hosts_touched", .type = FIELD_INT, .at = REACH(hosts_touched), "hosts with such a port"},
    {.name = "hosts_cut_off",
     .type = FIELD_INT,
     .at = REACH(hosts_cut_off),
     "hosts of which no other port is left"},
    {.name = "cut_off",
     .type = FIELD_LIST,
     .at = REACH(cut_off),
     "the first 20 such ports, by name",
     &schema_lost},
    {0},
};
static const struct schema schema_reach = {
    .name = "whatif_reach", "Whom cables still join", sizeof(struct reach_row), reach_fields};

struct change_row {
    int64_t entries, blocks, switches, paths, waves, mads;
};
#define CHANGE(f) offsetof(struct change_row, f)
static const struct field change_fields[] = {
    {.name = "entries", .type = FIELD_INT, .at = CHANGE(entries), "table entries that change"},
    {.name = "blocks", .type = FIELD_INT, .at = CHANGE(blocks), "blocks of 64 entries with such"},
    {.name = "switches", .type = FIELD_INT, .at = CHANGE(switches), "switches with such"},
    {.name = "paths",
     .type = FIELD_INT,
     .at = CHANGE(paths),
     "pairs of a leaf switch and a destination whose way is another one"},
    {.name = "waves", .type = FIELD_INT, .at = CHANGE(waves), "waves in which that is written"},
    {.name = "mads",
     .type = FIELD_INT,
     .at = CHANGE(mads),
     "datagrams that write it: a block may change twice"},
    {0},
};
static const struct schema schema_change_to = {
    .name = "whatif_changed", "What would be written", sizeof(struct change_row), change_fields};

struct side_row {
    const char *engine, *why, *quality;
    double seconds;
    const struct compute_verify *verify;
    const struct change_row *changed;
};
#define SIDE(f) offsetof(struct side_row, f)
static const struct field side_fields[] = {
    {.name = "engine", .type = FIELD_STR, .at = SIDE(engine), "what made the tables"},
    {.name = "why", .type = FIELD_STR, .at = SIDE(why), "in words", .null = true},
    {.name = "seconds",
     .type = FIELD_NUM,
     .at = SIDE(seconds),
     "time of computing them; null where they were there",
     .null = true},
    {.name = "verify", .type = FIELD_OBJ, .at = SIDE(verify), "the proof", &schema_verify, .null = true},
    {.name = "quality",
     .type = FIELD_RAW,
     .at = SIDE(quality),
     "how well they spread traffic",
     &schema_quality},
    {.name = "changed",
     .type = FIELD_OBJ,
     .at = SIDE(changed),
     "against what is before",
     &schema_change_to,
     .null = true},
    {0},
};
static const struct schema schema_side = {
    .name = "whatif_side", "Tables of one moment", sizeof(struct side_row), side_fields};

struct drained_row {
    int64_t links, spared, own, carry_on, ends_in_vain;
    struct items in_vain;
};
#define DRAINED(f) offsetof(struct drained_row, f)
static const struct field drained_fields[] = {
    {.name = "links",
     .type = FIELD_INT,
     .at = DRAINED(links),
     "cables between switches that are drained, those in force too"},
    {.name = "spared", .type = FIELD_INT, .at = DRAINED(spared), "over which nothing goes any more"},
    {.name = "own",
     .type = FIELD_INT,
     .at = DRAINED(own),
     "that carry only what begins or ends on the switch at one end, or on what hangs on it alone"},
    {.name = "carry_on",
     .type = FIELD_INT,
     .at = DRAINED(carry_on),
     "that carry on, as there is no other way"},
    {.name = "ends_in_vain",
     .type = FIELD_INT,
     .at = DRAINED(ends_in_vain),
     "ports of adapters that have no other way than what is asked to be drained: pulling it cuts them off"},
    {.name = "in_vain",
     .type = FIELD_LIST,
     .at = DRAINED(in_vain),
     "the first 20 of these, by name",
     &schema_lost},
    {0},
};
static const struct schema schema_drained = {
    .name = "whatif_drained", "Drained cables", sizeof(struct drained_row), drained_fields};

struct single_row {
    uint64_t guid, to_guid;
    const char *kind, *name, *to;
    int64_t port, to_port, ends;
};
#define SINGLE(f) offsetof(struct single_row, f)
static const char *const single_kinds[] = {"switch", "link", NULL};
static const struct field single_fields[] = {
    {.name = "kind", .type = FIELD_STR, .at = SINGLE(kind), "what it is", .name_of = single_kinds},
    {.name = "name", .type = FIELD_STR, .at = SINGLE(name), "the switch, or that at one end"},
    {.name = "guid", .type = FIELD_GUID, .at = SINGLE(guid), "its NodeGUID"},
    {.name = "port", .type = FIELD_INT, .at = SINGLE(port), "of a cable: its port", .null = true},
    {.name = "to", .type = FIELD_STR, .at = SINGLE(to), "of a cable: the other switch", .null = true},
    {.name = "to_guid", .type = FIELD_GUID, .at = SINGLE(to_guid), "its NodeGUID", .null = true},
    {.name = "to_port", .type = FIELD_INT, .at = SINGLE(to_port), "its port", .null = true},
    {.name = "ends", .type = FIELD_INT, .at = SINGLE(ends), "ports of adapters that its loss would cut off"},
    {0},
};
static const struct schema schema_single = {
    .name = "whatif_single", "What must not fail too", sizeof(struct single_row), single_fields};

struct singles_row {
    int64_t before, after;
    struct items worst;
};
#define SINGLES(f) offsetof(struct singles_row, f)
static const struct field singles_fields[] = {
    {.name = "before", .type = FIELD_INT, .at = SINGLES(before), "how many there are before"},
    {.name = "after", .type = FIELD_INT, .at = SINGLES(after), "how many there are afterwards"},
    {.name = "worst",
     .type = FIELD_LIST,
     .at = SINGLES(worst),
     "the worst of these, at most 10",
     &schema_single},
    {0},
};
static const struct schema schema_singles = {.name = "whatif_singles",
                                             "Switches, and cables between switches, of which one failure "
                                             "more would cut off adapters that do not hang on it",
                                             sizeof(struct singles_row),
                                             singles_fields};

#define MEAN(f) offsetof(struct whatif_mean, f)
static const struct field mean_fields[] = {
    {.name = "pattern", .type = FIELD_STR, .at = MEAN(pattern), "its name in quality"},
    {.name = "before",
     .type = FIELD_NUM,
     .at = MEAN(before),
     "mean before; null where there is no such pattern",
     .null = true},
    {.name = "after", .type = FIELD_NUM, .at = MEAN(after), "mean afterwards", .null = true},
    {.name = "accepted", .type = FIELD_NUM, .at = MEAN(accepted), "mean once accepted", .null = true},
    {.name = "failed",
     .type = FIELD_INT,
     .at = MEAN(failed),
     "flows that do not arrive afterwards, those of ends that are cut off too"},
    {0},
};
static const struct schema schema_mean = {
    .name = "whatif_mean",
    "Mean bandwidth over the same flows before and afterwards: what fails counts as 0",
    sizeof(struct whatif_mean),
    mean_fields};

struct whatif_row {
    const char *verdict, *text, *ideal;
    double seconds;
    const struct asked_row *asked;
    const struct reach_row *reach;
    const struct drained_row *drained;
    const struct side_row *before, *after, *accepted;
    const struct singles_row *singles;
    struct items bandwidth;
};
#define WHATIF(f) offsetof(struct whatif_row, f)
static const char *const verdicts[] = {"safe", "cuts-off", "not-proved", "drained-in-vain", NULL};
static const struct field whatif_fields[] = {
    {.name = "verdict",
     .type = FIELD_STR,
     .at = WHATIF(verdict),
     "safe: everybody else stays reachable, proved; drained-in-vain: but not once what is drained is pulled",
     .name_of = verdicts},
    {.name = "text", .type = FIELD_STR, .at = WHATIF(text), "the same in words, with the bandwidth"},
    {.name = "asked", .type = FIELD_OBJ, .at = WHATIF(asked), "what was asked for", &schema_asked},
    {.name = "reach", .type = FIELD_OBJ, .at = WHATIF(reach), "whom cables still join", &schema_reach},
    {.name = "drained",
     .type = FIELD_OBJ,
     .at = WHATIF(drained),
     "what drained cables still carry; null when none is",
     &schema_drained,
     .null = true},
    {.name = "before", .type = FIELD_OBJ, .at = WHATIF(before), "tables in force, or computed", &schema_side},
    {.name = "after",
     .type = FIELD_OBJ,
     .at = WHATIF(after),
     "what the manager would come to when it finds the fabric so",
     &schema_side},
    {.name = "accepted",
     .type = FIELD_OBJ,
     .at = WHATIF(accepted),
     "with additions: what comes of taking them into the blueprint and computing anew",
     &schema_side,
     .null = true},
    {.name = "ideal",
     .type = FIELD_RAW,
     .at = WHATIF(ideal),
     "of the ideal tables, with all of the blueprint there",
     &schema_quality},
    {.name = "singles", .type = FIELD_OBJ, .at = WHATIF(singles), "what must not fail too", &schema_singles},
    {.name = "bandwidth",
     .type = FIELD_LIST,
     .at = WHATIF(bandwidth),
     "what patterns get, over the same flows",
     &schema_mean},
    {.name = "seconds", .type = FIELD_NUM, .at = WHATIF(seconds), "time of all this"},
    {0},
};
const struct schema schema_whatif = {
    .name = "whatif", "What would become of a fabric", sizeof(struct whatif_row), whatif_fields};

// --- one question ---

struct side { // tables of one moment, with all that is said of them
    struct route_result r;
    const struct fabric *f;
    double seconds;
    struct route_proof proof;
    struct compute_verify verify;
    struct route_quality q;
    struct buf quality;
    struct change_row changed;
    struct side_row row;
};

struct whatif {
    struct computation *c;
    struct par *par;
    struct whatif_base base;
    struct fabric_edit edit;
    bool *drained; // per port; NULL: none
    const struct fabric *edited, *numbered;
    const struct fabric *after; // one of these
    struct side before_side, after_side, accepted_side;
    struct buf ideal;
    struct reach_change reach;
    struct reach_change in_vain; // who hangs on nothing but what is asked to be drained
    struct asked_row asked;
    struct drained_row drained_row;
    struct whatif_mean mean[WHATIF_MEANS];
};

static int gather(struct whatif *w, struct err *e)
{
    struct computation *c = w->c;
    struct elements el;
    int rc = 0;
    elements_init(&el, w->base.f);
    fabric_edit_init(&w->edit, w->base.f);
    if (c->num_drain > 0)
        w->drained = xcalloc(w->base.f->num_ports + 1, sizeof(bool));
    for (size_t i = 0; i < c->num_fail && rc == 0; i++)
        rc = elements_fail(&el, &w->edit, c->fail[i], e);
    for (size_t i = 0; i < c->num_drain && rc == 0; i++)
        rc = elements_drain(&el, w->drained, c->drain[i], e);
    for (size_t i = 0; i < c->num_add && rc == 0; i++)
        rc = elements_add(&el, &w->edit, c->add[i], e);
    elements_done(&el);
    return rc;
}

// With those in force. Ports of what is added stand behind those that were there.
static void join_drained(struct whatif *w)
{
    if (w->drained == NULL && w->base.drained == NULL)
        return;
    bool asked = w->drained != NULL;
    w->drained = xreallocarray(w->drained, w->after->num_ports + 1, sizeof(bool));
    if (!asked)
        memset(w->drained, 0, w->base.f->num_ports);
    memset(w->drained + w->base.f->num_ports, 0, w->after->num_ports - w->base.f->num_ports);
    for (uint32_t i = 0; i < w->base.f->num_ports; i++) {
        w->drained[i] = asked && w->drained[i] && !w->edit.cut[i];
        w->asked.drained_links += w->drained[i] && w->after->port[i].peer.i > i;
        w->drained[i] |= w->base.drained != NULL && w->base.drained[i] && !w->edit.cut[i];
    }
}

static uint32_t count_ends(const struct fabric *f, const struct node *n)
{
    uint32_t ends = 0;
    for (unsigned num = 1; num <= n->num_ports && n->type == NODE_SWITCH; num++) {
        const struct node *peer = fabric_peer_node(f, fabric_port(f, fabric_port_at(f, n, num)));
        ends += peer != NULL && peer->host != ID_NONE;
    }
    return ends;
}

static void count_not_added(struct whatif *w)
{
    for (uint32_t i = 0; i < w->edit.num_node; i++) {
        const struct node *added = &w->after->node[w->base.f->num_nodes + i];
        if (count_ends(w->after, added) == 0)
            w->asked.ends_not_added += count_ends(w->base.f, &w->base.f->node[w->edit.node[i].like]);
    }
}

static int change_fabric(struct whatif *w, struct err *e)
{
    int rc = gather(w, e);
    if (rc != 0)
        return rc;
    w->after = w->edited = fabric_edit_apply(&w->edit, NULL);
    e->code = 0;
    if (w->edit.num_node > 0)
        w->numbered = compute_number(w->edited, w->base.blueprint, e);
    if (e->code != 0)
        return e->code;
    if (w->numbered != NULL)
        w->after = w->numbered;
    w->asked = (struct asked_row){.failed_nodes = w->edit.num_dead,
                                  .failed_links = w->edit.num_cut,
                                  .added_nodes = w->edit.num_node,
                                  .added_links = w->edit.num_link};
    count_not_added(w);
    join_drained(w);
    return 0;
}

static void rate(struct whatif *w, struct side *s, const struct fabric *f)
{
    // A cycle that was there before is allowed now: it was asked for.
    struct verify_opts o = {.par = w->par,
                            .allow_credit_loops = s == &w->before_side || w->before_side.proof.credit_loop};
    s->f = f;
    compute_verify(f, s->r.tables, &o, &s->proof, &s->verify);
    quality_rate_keep(f, s->r.tables, w->par, &s->q, &s->quality);
    s->row = (struct side_row){.engine = s->r.tables->engine,
                               .why = s->r.why[0] ? s->r.why : NULL,
                               .quality = s->quality.data,
                               .seconds = s->seconds,
                               .verify = &s->verify};
}

static bool is_written(const struct whatif *w, const bool *lost, uint32_t sw)
{
    uint32_t node = w->after->switch_node[sw];
    return node >= w->base.f->num_nodes || (!w->edit.dead[node] && !lost[node]);
}

// What is written to switches that can be reached; tables of others stay as they are.
static int plan(struct whatif *w, struct side *s, const struct fabric_tables *old, struct err *e)
{
    struct route_plan *p;
    bool *lost = xcalloc(w->after->num_nodes + 1, sizeof(bool));
    for (uint32_t i = 0; i < w->reach.num_sw; i++)
        lost[w->reach.sw[i]] = true;
    for (uint32_t i = 0; i < w->base.f->num_nodes; i++)
        lost[i] |= w->edit.dead[i];
    int rc = route_plan_make(w->after, old, NULL, NULL, s->r.tables, w->par, &p, e);
    if (rc == 0) {
        struct compute_changed d = {0};
        compute_compare(w->after, old, s->r.tables, lost, &d);
        s->changed = (struct change_row){.entries = d.entries, .blocks = d.blocks, .switches = d.switches};
        for (uint32_t i = 0; i < p->num_waves; i++) {
            int64_t had = s->changed.mads;
            for (uint32_t k = 0; k < p->wave[i].num_blocks; k++)
                s->changed.mads += is_written(w, lost, p->wave[i].block[k].sw);
            s->changed.waves += s->changed.mads > had;
        }
        s->changed.paths = (int64_t)route_paths_moved(w->after, old, s->r.tables, w->par);
        s->row.changed = &s->changed;
        route_plan_free(p);
    }
    free(lost);
    return rc;
}

static int repair(struct whatif *w, struct side *s, const struct whatif_base *base, struct err *e)
{
    mono_t began = mono_now();
    int rc = whatif_repair(base, w->after, w->drained, w->par, &s->r, e);
    s->seconds += mono_seconds(mono_sub(mono_now(), began));
    if (rc == 0)
        rate(w, s, w->after);
    return rc;
}

// The blueprint with what is added, the ideal for it, and what is in force then.
static int accept(struct whatif *w, struct err *e)
{
    struct side *s = &w->accepted_side;
    struct whatif_base base = {.opts = w->base.opts};
    const struct fabric *blueprint = fabric_merge(w->base.blueprint, w->after);
    mono_t began = mono_now();
    int rc = route_compute(blueprint, &base.opts, &base.ideal, e);
    base.computed = rc == 0;
    if (rc == 0)
        rc = route_base_new(blueprint, &base.ideal, &base.opts, &base.base, e);
    s->seconds = mono_seconds(mono_sub(mono_now(), began));
    if (rc == 0)
        rc = repair(w, s, &base, e);
    whatif_base_done(&base);
    fabric_unref(blueprint);
    return rc;
}

static bool same_switches(const struct fabric *a, const struct fabric *b)
{
    if (a->num_switches != b->num_switches)
        return false;
    for (uint32_t sw = 0; sw < a->num_switches; sw++)
        if (fabric_switch(a, sw)->guid != fabric_switch(b, sw)->guid)
            return false;
    return true;
}

// What is in force before, by the switches of `after`.
static struct fabric_tables *old_tables(const struct whatif *w)
{
    const struct fabric_tables *t = w->base.tables;
    uint16_t top = t->top_lid;
    const struct side *s[] = {&w->after_side, &w->accepted_side};
    for (unsigned i = 0; i < 2; i++)
        if (s[i]->r.tables != NULL && s[i]->r.tables->top_lid > top)
            top = s[i]->r.tables->top_lid;
    if (same_switches(w->base.f, w->after) && top < t->lids)
        return tables_ref(t);
    struct fabric_tables *copy = tables_copy_for(t, w->base.f, w->after, top);
    tables_seal(copy, false);
    return copy;
}

static void find_drained(struct whatif *w)
{
    const struct fabric *f = w->after;
    size_t n = 0;
    port_id *port = xreallocarray(NULL, f->num_ports + 1, sizeof(*port));
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (w->drained[i])
            port[n++] = (port_id){i};
    struct route_avoid *x = route_avoid_new(f, port, n);
    for (size_t i = 0; i < n; i++) {
        enum route_avoided how = route_avoid_how(x, port[i]);
        if (f->port[port[i].i].peer.i < port[i].i || how == ROUTE_AVOID_NOT) // each cable once
            continue;
        w->drained_row.links++;
        w->drained_row.spared += how == ROUTE_AVOID_SPARED;
        w->drained_row.own += how == ROUTE_AVOID_OWN;
        w->drained_row.carry_on += how == ROUTE_AVOID_CARRIES_ON;
    }
    route_avoid_free(x);
    free(port);
}

// Without the cables between switches that are drained.
static const struct fabric *pull(const struct fabric *f, const bool *drained, uint32_t ports)
{
    size_t n = 0;
    port_id *port = xreallocarray(NULL, ports + 1, sizeof(*port));
    for (uint32_t i = 0; i < ports; i++) {
        const struct node *peer = drained[i] ? fabric_peer_node(f, &f->port[i]) : NULL;
        if (peer != NULL && peer->type == NODE_SWITCH && fabric_node(f, f->port[i].node)->type == NODE_SWITCH)
            port[n++] = (port_id){i};
    }
    const struct fabric *without = n > 0 ? fabric_without_links(f, port, n) : fabric_ref(f);
    free(port);
    return without;
}

// Beside what is drained already.
static void find_in_vain(struct whatif *w)
{
    const struct fabric *before = w->base.drained != NULL
                                      ? pull(w->after, w->base.drained, w->base.f->num_ports)
                                      : fabric_ref(w->after);
    const struct fabric *pulled = pull(w->after, w->drained, w->after->num_ports);
    reach_compare(before, pulled, NULL, &w->in_vain);
    w->drained_row.ends_in_vain = w->in_vain.num_end;
    fabric_unref(pulled);
    fabric_unref(before);
}

// --- bandwidth ---

static bool adapters_fail(const struct whatif *w)
{
    const struct fabric *f = w->base.f;
    for (uint32_t i = 0; i < f->num_nodes && w->edit.num_dead > 0; i++)
        if (w->edit.dead[i] && f->node[i].type != NODE_SWITCH)
            return true;
    return false;
}

static void find_means(struct whatif *w)
{
    whatif_means(&w->before_side.q, &w->after_side.q,
                 w->accepted_side.r.tables != NULL ? &w->accepted_side.q : NULL,
                 w->reach.num_end > 0 && !adapters_fail(w), w->mean);
}

// --- in words ---

// Adapters on nothing but what is drained.
static void say_in_vain(const struct whatif *w, struct buf *b)
{
    bool one = w->in_vain.num_end == 1;
    quality_say_count(b, w->in_vain.num_end);
    buf_printf(b, " %s no other way; pulling these cables cuts %s off", one ? "end has" : "ends have",
               one ? "it" : "them");
}

// Whether the port that weft manages the fabric by is among what fails. Not of saved fabrics.
static bool manager_lost(const struct whatif *w)
{
    port_id own = w->base.f->sm_port;
    if (w->base.computed || !port_valid(own) || !port_valid(fabric_port(w->base.f, own)->peer))
        return false;
    return w->edit.dead[fabric_port(w->base.f, own)->node.i] || !port_valid(fabric_port(w->after, own)->peer);
}

static void say_reach(const struct whatif *w, struct buf *b)
{
    const struct reach_change *r = &w->reach;
    if (manager_lost(w))
        buf_puts(b, "weft loses its own port into the fabric and repairs nothing from then on; beside that ");
    if (w->after_side.proof.unreached > 0 || !w->after_side.proof.ok)
        buf_printf(b, "the tables would not hold (%s); ", w->after_side.proof.counter_example);
    if (r->num_end == 0 && r->num_sw == 0) {
        if (w->in_vain.num_end > 0)
            say_in_vain(w, b);
        else
            buf_puts(b,
                     w->edit.num_dead > 0 ? "everybody else stays reachable" : "every host stays reachable");
        return;
    }
    buf_puts(b, "cuts off ");
    if (r->num_end > 0)
        buf_printf(b, "%u adapter port%s of %u host%s (%u wholly)", r->num_end, r->num_end == 1 ? "" : "s",
                   r->hosts_touched, r->hosts_touched == 1 ? "" : "s", r->hosts_lost);
    if (r->num_sw > 0)
        buf_printf(b, "%s%u switch%s", r->num_end > 0 ? " and " : "", r->num_sw, r->num_sw == 1 ? "" : "es");
    if (r->num_end > 0 && r->pairs_before > r->pairs_after) {
        buf_puts(b, "; ");
        quality_say_count(b, r->pairs_before - r->pairs_after);
        buf_puts(b, " pairs no longer reach each other");
    }
    if (w->in_vain.num_end > 0) {
        buf_puts(b, "; drained in vain: ");
        say_in_vain(w, b);
    }
}

static bool say_mean(struct buf *b, const char *name, const struct whatif_mean *m, bool first)
{
    if (isnan(m->before) || isnan(m->after))
        return false;
    buf_printf(b, "%s%s %.3f -> %.3f", first ? "; mean bandwidth of " : ", ", name, m->before, m->after);
    if (!isnan(m->accepted))
        buf_printf(b, " (accepted %.3f)", m->accepted);
    return true;
}

static char *in_words(const struct whatif *w)
{
    struct buf b = {0};
    say_reach(w, &b);
    bool said = say_mean(&b, "same-rail shifts", &w->mean[0], true);
    said = said || say_mean(&b, "shifts", &w->mean[3], true);
    say_mean(&b, "all-to-all", &w->mean[5], !said);
    return buf_take(&b);
}

static const char *verdict(const struct whatif *w)
{
    const struct route_proof *p = &w->after_side.proof;
    bool proved = p->ok && p->unreached == 0;
    if (w->accepted_side.r.tables != NULL)
        proved &= w->accepted_side.proof.ok && w->accepted_side.proof.unreached == 0;
    if (!proved)
        return verdicts[2];
    if (w->reach.num_end > 0 || w->reach.num_sw > 0 || manager_lost(w))
        return verdicts[1];
    return verdicts[w->in_vain.num_end > 0 ? 3 : 0];
}

// --- lists ---

static int by_name(const void *a, const void *b, void *arg)
{
    const struct fabric *f = arg;
    const struct port *x = &f->port[*(const uint32_t *)a], *y = &f->port[*(const uint32_t *)b];
    int c = strverscmp(fabric_desc(f, fabric_node(f, x->node)), fabric_desc(f, fabric_node(f, y->node)));
    if (c == 0)
        c = (f->node[x->node.i].guid > f->node[y->node.i].guid) -
            (f->node[x->node.i].guid < f->node[y->node.i].guid);
    return c ? c : (x->num > y->num) - (x->num < y->num);
}

static struct items list_lost(const struct fabric *f, struct reach_change *r,
                              struct lost_row row[CUT_OFF_SHOWN])
{
    uint32_t n = r->num_end < CUT_OFF_SHOWN ? r->num_end : CUT_OFF_SHOWN;
    if (n > 0)
        qsort_r(r->end, r->num_end, sizeof(*r->end), by_name, (void *)f);
    for (uint32_t i = 0; i < n; i++) {
        const struct port *p = &f->port[r->end[i]];
        const struct node *nd = fabric_node(f, p->node), *on = fabric_peer_node(f, p);
        row[i] = (struct lost_row){.guid = nd->guid,
                                   .name = fabric_desc(f, nd),
                                   .was_on = on != NULL ? fabric_desc(f, on) : NULL,
                                   .port = p->num};
    }
    return (struct items){row, n};
}

static uint32_t list_singles(const struct fabric *f, struct single_row row[SINGLES_SHOWN], uint32_t *ret_n)
{
    struct reach_single s[SINGLES_SHOWN];
    uint32_t total = reach_singles(f, s, SINGLES_SHOWN), n = total < SINGLES_SHOWN ? total : SINGLES_SHOWN;
    for (uint32_t i = 0; i < n; i++) {
        const struct node *nd = &f->node[s[i].node];
        row[i] = (struct single_row){.guid = nd->guid,
                                     .kind = single_kinds[s[i].port != 0],
                                     .name = fabric_desc(f, nd),
                                     .port = s[i].port ? s[i].port : NO_INT,
                                     .to_port = NO_INT,
                                     .ends = s[i].ends};
        if (s[i].port == 0)
            continue;
        const struct port *far = fabric_port(f, f->port[nd->first_port + s[i].port].peer);
        row[i].to = fabric_desc(f, fabric_node(f, far->node));
        row[i].to_guid = fabric_node(f, far->node)->guid;
        row[i].to_port = far->num;
    }
    *ret_n = n;
    return total;
}

static void render(struct whatif *w, double seconds)
{
    struct lost_row lost[CUT_OFF_SHOWN], vain[CUT_OFF_SHOWN];
    struct single_row single[SINGLES_SHOWN];
    uint32_t singles;
    const struct reach_change *r = &w->reach;
    struct reach_row reach = {.ends_before = r->ends_before,
                              .ends_after = r->ends_after,
                              .pairs_before = (int64_t)r->pairs_before,
                              .pairs_after = (int64_t)r->pairs_after,
                              .ends_cut_off = r->num_end,
                              .switches_cut_off = r->num_sw,
                              .hosts_touched = r->hosts_touched,
                              .hosts_cut_off = r->hosts_lost,
                              .cut_off = list_lost(w->base.f, &w->reach, lost)};
    struct singles_row s = {.before = reach_singles(w->base.f, NULL, 0),
                            .after = list_singles(w->after, single, &singles)};
    s.worst = (struct items){single, singles};
    w->drained_row.in_vain = list_lost(w->after, &w->in_vain, vain);
    char *text = in_words(w);
    json_put_struct(&w->c->result, &schema_whatif,
                    &(struct whatif_row){
                        .verdict = verdict(w),
                        .text = text,
                        .asked = &w->asked,
                        .reach = &reach,
                        .drained = w->drained != NULL ? &w->drained_row : NULL,
                        .before = &w->before_side.row,
                        .after = &w->after_side.row,
                        .accepted = w->accepted_side.r.tables != NULL ? &w->accepted_side.row : NULL,
                        .ideal = w->ideal.data != NULL ? w->ideal.data : w->before_side.quality.data,
                        .singles = &s,
                        .bandwidth = {w->mean, WHATIF_MEANS},
                        .seconds = seconds,
                    });
    free(text);
}

// --- together ---

static int answer(struct whatif *w, struct err *e)
{
    struct side *before = &w->before_side;
    int rc = whatif_base_init(&w->base, w->c, w->par, e);
    if (rc == 0)
        rc = change_fabric(w, e);
    if (rc != 0)
        return rc;
    before->r = w->base.ideal;
    before->r.tables = tables_ref(w->base.tables);
    before->seconds = w->base.computed ? w->base.seconds : NAN;
    rate(w, before, w->base.f);
    if (w->base.ideal.tables != w->base.tables)
        quality_rate(w->base.made_for, w->base.ideal.tables, w->par, &w->ideal);
    reach_compare(w->base.f, w->after, w->edit.dead, &w->reach);
    rc = repair(w, &w->after_side, &w->base, e);
    if (rc == 0 && w->edit.num_node + w->edit.num_link > 0)
        rc = accept(w, e);
    if (rc != 0)
        return rc;
    struct fabric_tables *old = old_tables(w);
    rc = plan(w, &w->after_side, old, e);
    if (rc == 0 && w->accepted_side.r.tables != NULL)
        rc = plan(w, &w->accepted_side, old, e);
    tables_unref(old);
    if (rc == 0 && w->drained != NULL)
        find_drained(w);
    if (rc == 0 && w->drained != NULL && w->c->num_drain > 0)
        find_in_vain(w);
    if (rc == 0)
        find_means(w);
    return rc;
}

static void side_done(struct side *s)
{
    tables_unref(s->r.tables);
    buf_done(&s->quality);
}

void whatif_run(struct computation *c, struct par *par)
{
    struct whatif *w = xcalloc(1, sizeof(*w));
    mono_t began = mono_now();
    w->c = c;
    w->par = par;
    if (answer(w, &c->err) == 0)
        render(w, mono_seconds(mono_sub(mono_now(), began)));
    side_done(&w->before_side);
    side_done(&w->after_side);
    side_done(&w->accepted_side);
    reach_change_done(&w->reach);
    reach_change_done(&w->in_vain);
    buf_done(&w->ideal);
    free(w->drained);
    fabric_unref(w->numbered);
    fabric_unref(w->edited);
    fabric_edit_done(&w->edit);
    whatif_base_done(&w->base);
    free(w);
}
