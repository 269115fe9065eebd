// SPDX-License-Identifier: Apache-2.0
// The worker's part of changes to the blueprint. See blueprint.h.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/blueprint.h"
#include "api/quality.h"
#include "api/resolve.h"
#include "api/whatif.h"
#include "fabric/compare.h"
#include "fabric/merge.h"
#include "fabric/reader.h"
#include "lib/guid.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "routing/quality.h"

struct blueprint_routes {
    char engine[16], why[200];
    bool proved;
    char counter_example[600];
    uint64_t entries, paths;
    uint32_t blocks, switches, waves;
    double seconds; // computing and proving
    bool rated;
    struct route_quality before, after;
    struct buf quality, quality_before;
    bool gain;
    char verdict[500];
};

void blueprint_change_free(struct blueprint_change *x)
{
    if (x == NULL)
        return;
    free(x->element);
    free(x->text);
    free(x->name);
    fabric_unref(x->given);
    fabric_unref(x->next);
    blueprint_compare_free(x->change);
    blueprint_compare_free(x->beside);
    for (size_t i = 0; i < x->num_warnings; i++)
        free(x->warning[i]);
    if (x->routes != NULL) {
        buf_done(&x->routes->quality);
        buf_done(&x->routes->quality_before);
    }
    free(x->routes);
    free(x);
}

static void warn(struct blueprint_change *x, char *text)
{
    if (x->num_warnings < sizeof(x->warning) / sizeof(x->warning[0]))
        x->warning[x->num_warnings++] = text;
    else
        free(text);
}

// --- a file ---

static uint32_t switches_in(const struct fabric *f, const struct fabric *live)
{
    uint32_t n = 0;
    for (uint32_t sw = 0; sw < live->num_switches; sw++) {
        const struct node *s = fabric_switch(live, sw), *k = fabric_by_guid(f, s->guid);
        n += k != NULL && k->type == s->type && k->num_ports == s->num_ports;
    }
    return n;
}

static int check_file(const struct blueprint_change *x, const struct fabric *f, const struct fabric *live,
                      struct err *e)
{
    const char *dialect = reader_dialect(x->text, x->len);
    uint32_t all = live->num_switches, same = switches_in(f, live);
    if (dialect != NULL && strcmp(dialect, "ports-report") == 0)
        return err_set(e, -EPERM, x->name,
                       "a report of ports does not say which ports are one device; write the topology with "
                       "\"ibnetdiscover\", without -p");
    if (same == 0 && dialect != NULL && strcmp(dialect, "ibsim") == 0)
        return err_set(e, -EPERM, x->name,
                       "a .net file for ibsim names nodes and makes their GUIDs up: none of the fabric's %u "
                       "switches is in it. A blueprint is by GUID: take \"weft blueprint save\" or "
                       "ibnetdiscover's output and edit that",
                       all);
    if (same * 2 >= all || x->force)
        return 0;
    if (same == 0)
        return err_set(e, -EPERM, x->name,
                       "none of the fabric's %u switches is in it (by GUID, among its %u): it is another "
                       "fabric's, or its GUIDs were made up; --force takes it all the same",
                       all, f->num_switches);
    return err_set(e, -EPERM, x->name,
                   "only %u of the fabric's %u switches are in it (by GUID, among its %u): it is another "
                   "fabric's or an old one; --force takes it all the same",
                   same, all, f->num_switches);
}

static void tell_findings(struct blueprint_change *x, const struct findings *fs)
{
    for (size_t i = 0; i < fs->n && x->num_warnings < 6; i++) {
        const struct finding *it = &fs->item[i];
        if (it->severity == FINDING_INFO)
            continue;
        char times[24] = "";
        if (it->count > 1)
            snprintf(times, sizeof(times), " (%u times)", it->count);
        warn(x, xasprintf("%s: %s: %s%s", it->where, it->code, it->text, times));
    }
}

static int read_file(struct computation *c, struct blueprint_change *x)
{
    struct findings fs = {0};
    const struct fabric *f = reader_parse(x->text, x->len, x->name, &fs, &c->err);
    if (f != NULL && check_file(x, f, c->f, &c->err) == 0) {
        const struct fabric *with = fabric_with_lids(f, c->routing.blueprint);
        tell_findings(x, &fs);
        x->given = with;
    }
    fabric_unref(f);
    findings_done(&fs);
    return c->err.code;
}

// --- what is gone for good ---

static bool is_there(const struct fabric *live, const struct fabric *b, const struct port *p)
{
    const struct node *n = fabric_by_guid(live, fabric_node(b, p->node)->guid);
    port_id id = n != NULL ? fabric_port_at(live, n, p->num) : PORT_NONE;
    const struct node *far = port_valid(id) ? fabric_peer_node(live, fabric_port(live, id)) : NULL;
    return far != NULL && far->guid == fabric_peer_node(b, p)->guid;
}

// End nodes that lose their last cable go with it.
static void strike_left(struct builder *to, const struct fabric *b, const struct fabric *live,
                        const struct node *gone, const struct port *cut)
{
    for (uint32_t i = 0; i < b->num_nodes; i++) {
        const struct node *n = &b->node[i];
        uint32_t had = 0, left = 0;
        if (n->type == NODE_SWITCH || n == gone || fabric_by_guid(live, n->guid) != NULL)
            continue;
        for (unsigned num = 1; num <= n->num_ports; num++) {
            const struct port *p = fabric_port(b, fabric_port_at(b, n, num));
            if (!port_valid(p->peer))
                continue;
            had++;
            left += fabric_peer_node(b, p) != gone && p != cut && fabric_port(b, p->peer) != cut;
        }
        if (had > 0 && left == 0)
            builder_remove(to, (node_id){i});
    }
}

// Another one in its place takes everything over by being accepted; struck out, its cables are growth.
static void tell_of_stand_in(const struct computation *c, struct blueprint_change *x, const struct node *n)
{
    const struct fabric *b = c->routing.blueprint;
    struct blueprint_compare *d = blueprint_compare(b, c->f, UINT32_MAX);
    char text[600];
    for (uint32_t i = 0; i < d->n; i++)
        if (d->item[i].kind == BLUEPRINT_REPLACED && d->item[i].was_guid == n->guid)
            warn(x,
                 xasprintf("%s: \"weft blueprint accept\" has it take the old one's place, and nothing need "
                           "be struck out",
                           blueprint_item_text(&d->item[i], b, c->f, text, sizeof(text))));
    blueprint_compare_free(d);
}

static bool is_silent(const struct fabric *b, const struct fabric *live, const struct node *n)
{
    bool *silent = fabric_silent(b, live), ret = silent[n - b->node];
    free(silent);
    return ret;
}

static int strike(struct computation *c, struct blueprint_change *x)
{
    const struct fabric *b = c->routing.blueprint;
    struct place at;
    int rc = resolve_element(b, x->element, &at, &c->err);
    if (rc != 0)
        return rc;
    const struct port *cut = port_valid(at.port) ? fabric_port(b, at.port) : NULL;
    if (cut != NULL && !port_valid(cut->peer))
        return err_set(&c->err, -ENOENT, x->element, "the blueprint has no cable there");
    if (cut != NULL ? is_there(c->f, b, cut) : fabric_by_guid(c->f, at.node->guid) != NULL)
        return err_set(&c->err, -EBUSY, x->element,
                       "is there; only what is gone can be struck out, what is there would come back");
    if (cut == NULL && is_silent(b, c->f, at.node))
        return err_set(
            &c->err, -EBUSY, x->element,
            "does not answer, but its cables are up and traffic may go on over it; pull them first");
    if (cut == NULL)
        tell_of_stand_in(c, x, at.node);
    struct builder *to = builder_from(b);
    if (cut != NULL)
        builder_unlink(to, cut->node, cut->num);
    else
        builder_remove(to, (node_id){(uint32_t)(at.node - b->node)});
    strike_left(to, b, c->f, cut == NULL ? at.node : NULL, cut);
    x->given = builder_seal(to, b->generation, NULL);
    return 0;
}

// --- routes that follow ---

static uint32_t plan_blocks(const struct route_plan *p)
{
    uint32_t n = 0;
    for (unsigned i = 0; i < p->num_waves; i++)
        n += p->wave[i].num_blocks;
    return n;
}

// As the manager comes to them: for the blueprint, then kept to in what is there.
static int next_tables(const struct computation *c, const struct blueprint_change *x, struct par *par,
                       struct route_result *ret, struct err *e)
{
    const struct compute_routing *r = &c->routing;
    struct route_opts o = r->opts;
    struct route_result ideal = {0};
    const struct fabric *made_for = x->next;
    bool found = r->ideal.engine == ROUTE_FILE && o.engine != ROUTE_FILE;
    int rc = 0;

    o.par = par;
    if (x->next == r->blueprint && x->op != SM_BLUEPRINT_REROUTE) {
        ideal = r->ideal;
        made_for = r->made_for;
        tables_ref(ideal.tables);
    } else if (found && x->op != SM_BLUEPRINT_REROUTE) {
        rc = route_repair(r->made_for, &r->ideal, x->next, &o, &ideal, e);
    } else {
        rc = route_compute(x->next, &o, &ideal, e);
    }
    if (rc == 0) {
        struct whatif_base b = {.opts = o};
        bool *drained = whatif_in_force(c->f, r);
        rc = route_base_new(made_for, &ideal, &o, &b.base, e);
        if (rc == 0)
            rc = whatif_repair(&b, c->f, drained, par, ret, e);
        free(drained);
        route_base_free(b.base);
        if (rc == 0 && x->op == SM_BLUEPRINT_REROUTE)
            snprintf(ret->why, sizeof(ret->why), "%s", ideal.why);
    }
    tables_unref(ideal.tables);
    return rc;
}

static void compare_routes(const struct computation *c, struct blueprint_routes *r,
                           const struct route_result *next, struct par *par)
{
    struct route_proof *proof = xcalloc(1, sizeof(*proof));
    struct verify_opts v = {.par = par};
    struct route_proof_state *now = NULL, *state = NULL;
    struct route_plan *plan = NULL;
    struct err e = {0};

    snprintf(r->engine, sizeof(r->engine), "%s", route_engine_name(next->engine));
    snprintf(r->why, sizeof(r->why), "%s", next->why);
    // As the manager does, which knows more of mixes of both when it has proved the change.
    route_verify_keep(c->f, c->tables, &v, proof, &now);
    r->proved = now != NULL ? route_verify_change(now, c->tables, c->f, next->tables, &v, proof, &state)
                            : route_verify_keep(c->f, next->tables, &v, proof, &state);
    route_proof_state_free(now);
    snprintf(r->counter_example, sizeof(r->counter_example), "%s", proof->counter_example);
    free(proof);
    struct tables_diff d = tables_compare(c->tables, next->tables);
    r->entries = d.entries;
    r->switches = d.switches;
    r->blocks = d.blocks;
    if (route_plan_proved(c->f, c->tables, NULL, NULL, next->tables, state, par, &plan, &e) == 0) {
        r->waves = plan->num_waves;
        r->blocks = plan_blocks(plan); // a block may be in two waves
        route_plan_free(plan);
    }
    route_proof_state_free(state);
    r->paths = route_paths_moved(c->f, c->tables, next->tables, par);
}

// --- what is gained ---

struct figure {
    const char *name;
    double before, after;
    bool less_is_better;
};

static void verdict(struct blueprint_routes *r)
{
    const struct route_quality *a = &r->before, *b = &r->after;
    const struct figure figure[] = {
        {"same_rail_shift", a->same_rail_shift.absent ? NAN : a->same_rail_shift.mean,
         b->same_rail_shift.mean, false},
        {"slot_shift", a->slot_shift.absent ? NAN : a->slot_shift.mean, b->slot_shift.mean, false},
        {"ring", a->ring.absent ? NAN : a->ring.mean, b->ring.mean, false},
        {"shift", a->shift.absent ? NAN : a->shift.mean, b->shift.mean, false},
        {"all-to-all, flows on the fullest cable", a->alltoall.absent ? NAN : (double)a->alltoall.max,
         (double)b->alltoall.max, true},
    };
    struct buf up = {0}, down = {0};
    for (size_t i = 0; i < sizeof(figure) / sizeof(figure[0]); i++) {
        const struct figure *f = &figure[i];
        if (isnan(f->before) || fabs(f->after - f->before) <= 0.005 * f->before)
            continue;
        struct buf *to = (f->after > f->before) != f->less_is_better ? &up : &down;
        buf_printf(to, "%s%s ", to->len ? ", " : "", f->name);
        quality_say_figure(to, f->before);
        buf_puts(to, " -> ");
        quality_say_figure(to, f->after);
    }
    r->gain = up.len > 0;
    if (r->entries == 0)
        snprintf(r->verdict, sizeof(r->verdict), "nothing would move: routes are what they would be");
    else if (!r->gain)
        snprintf(r->verdict, sizeof(r->verdict), "nothing would be gained%s%s", down.len ? "; worse: " : "",
                 down.len ? down.data : "");
    else
        snprintf(r->verdict, sizeof(r->verdict), "better: %s%s%s", up.data, down.len ? "; worse: " : "",
                 down.len ? down.data : "");
    buf_done(&up);
    buf_done(&down);
}

static void plan_routes(struct computation *c, struct blueprint_change *x, struct par *par)
{
    struct route_result next = {0};
    mono_t began = mono_now();
    if (next_tables(c, x, par, &next, &c->err) != 0)
        return;
    struct blueprint_routes *r = x->routes = xcalloc(1, sizeof(*r));
    compare_routes(c, r, &next, par);
    r->seconds = mono_seconds(mono_sub(mono_now(), began));
    if (x->op == SM_BLUEPRINT_REROUTE || r->entries > 0) {
        r->rated = true;
        quality_rate_keep(c->f, c->tables, par, &r->before, &r->quality_before);
        quality_rate_keep(c->f, next.tables, par, &r->after, &r->quality);
    }
    verdict(r);
    tables_unref(next.tables);
}

void blueprint_change_run(struct computation *c, struct blueprint_change *x, struct par *par)
{
    const struct fabric *known = c->routing.blueprint;
    if (x->op == SM_BLUEPRINT_SET && read_file(c, x) != 0)
        return;
    if (x->op == SM_BLUEPRINT_STRIKE && strike(c, x) != 0)
        return;
    x->next = sm_blueprint_after(x->op, x->state, x->given, known, c->f);
    x->change = blueprint_compare(known, x->next, BLUEPRINT_ITEMS);
    x->beside = blueprint_compare(x->next, c->f, BLUEPRINT_ITEMS);
    if (x->op == SM_BLUEPRINT_REROUTE)
        blueprint_silent_text(known, c->f, x->kept, sizeof(x->kept));
    if (x->dry_run)
        plan_routes(c, x, par);
}

// --- rows ---

#define ITEM(f) offsetof(struct blueprint_item_row, f)
static const char *const kinds[] = {"missing-node", "missing-link",  "extra-node", "extra-link",
                                    "moved-cable",  "replaced-node", NULL};
static const struct field item_fields[] = {
    {.name = "kind", .type = FIELD_STR, .at = ITEM(kind), "what differs", .name_of = kinds},
    {.name = "text", .type = FIELD_STR, .at = ITEM(text), "in words"},
    {.name = "guid", .type = FIELD_GUID, .at = ITEM(guid), "the node, or that of one end of the cable"},
    {.name = "port",
     .type = FIELD_INT,
     .at = ITEM(port),
     "of the cable; null where it is about a node",
     .null = true},
    {0},
};
const struct schema schema_blueprint_item = {
    .name = "blueprint_item", "A difference", sizeof(struct blueprint_item_row), item_fields};

void blueprint_rows_fill(struct blueprint_rows *r, const struct blueprint_compare *c,
                         const struct fabric *blueprint, const struct fabric *live)
{
    char text[700];
    r->n = c->n;
    r->row = xcalloc(c->n + 1, sizeof(*r->row));
    r->text = xcalloc(c->n + 1, sizeof(*r->text));
    for (uint32_t i = 0; i < c->n; i++) {
        const struct blueprint_item *x = &c->item[i];
        r->text[i] = xstrdup(blueprint_item_text(x, blueprint, live, text, sizeof(text)));
        r->row[i] = (struct blueprint_item_row){.kind = blueprint_diff_name(x->kind),
                                                .text = r->text[i],
                                                .guid = x->guid,
                                                .port = x->port ? x->port : NO_INT};
    }
}

void blueprint_rows_done(struct blueprint_rows *r)
{
    for (size_t i = 0; i < r->n; i++)
        free(r->text[i]);
    free(r->text);
    free(r->row);
}

struct routes_row {
    const char *engine, *why, *counterexample, *verdict, *quality, *quality_before;
    bool proved, gain;
    int64_t entries, blocks, switches, paths, waves;
    double seconds;
};
#define ROUTES(f) offsetof(struct routes_row, f)
static const struct field routes_fields[] = {
    {.name = "engine", .type = FIELD_STR, .at = ROUTES(engine), "what would make them"},
    {.name = "why", .type = FIELD_STR, .at = ROUTES(why), "why that one"},
    {.name = "proved", .type = FIELD_BOOL, .at = ROUTES(proved), "they would be written"},
    {.name = "counterexample", .type = FIELD_STR, .at = ROUTES(counterexample), "why not", .null = true},
    {.name = "entries", .type = FIELD_INT, .at = ROUTES(entries), "table entries that would change"},
    {.name = "blocks", .type = FIELD_INT, .at = ROUTES(blocks), "MADs that write them, at most"},
    {.name = "switches", .type = FIELD_INT, .at = ROUTES(switches), "switches with such entries"},
    {.name = "paths",
     .type = FIELD_INT,
     .at = ROUTES(paths),
     "(leaf switch, destination) pairs whose route would be another one"},
    {.name = "waves",
     .type = FIELD_INT,
     .at = ROUTES(waves),
     "steps in which they would be written, at most"},
    {.name = "seconds", .type = FIELD_NUM, .at = ROUTES(seconds), "time of computing and proving them"},
    {.name = "gain", .type = FIELD_BOOL, .at = ROUTES(gain), "some pattern would get better"},
    {.name = "verdict", .type = FIELD_STR, .at = ROUTES(verdict), "what would be gained, in words"},
    {.name = "quality",
     .type = FIELD_RAW,
     .at = ROUTES(quality),
     "how well they would spread traffic",
     &schema_quality,
     .null = true},
    {.name = "quality_before",
     .type = FIELD_RAW,
     .at = ROUTES(quality_before),
     "of the tables in force",
     &schema_quality,
     .null = true},
    {0},
};
static const struct schema schema_routes = {
    .name = "blueprint_routes", "Routes that would follow", sizeof(struct routes_row), routes_fields};

struct change_row {
    const char *op, *state, *state_before, *kept;
    bool dry_run;
    int64_t sweep, nodes, switches, links, added_nodes, added_links, dropped_nodes, dropped_links, moved,
        replaced;
    struct items changes, warnings;
    const struct routes_row *routes;
};
#define CHANGE(f) offsetof(struct change_row, f)
const char *const blueprint_ops[] = {"none", "accept", "learn", "set", "strike", "reroute", NULL};
const char *const blueprint_states[] = {"learning", "accepted", NULL};
static const struct field change_fields[] = {
    {.name = "op", .type = FIELD_STR, .at = CHANGE(op), "what was asked for", .name_of = blueprint_ops},
    {.name = "dry_run", .type = FIELD_BOOL, .at = CHANGE(dry_run), "only looked at"},
    {.name = "sweep",
     .type = FIELD_INT,
     .at = CHANGE(sweep),
     "id of the sweep that does it; null when only looked at",
     .null = true},
    {.name = "state",
     .type = FIELD_STR,
     .at = CHANGE(state),
     "of the blueprint afterwards",
     .name_of = blueprint_states},
    {.name = "state_before",
     .type = FIELD_STR,
     .at = CHANGE(state_before),
     "when it was asked for",
     .name_of = blueprint_states},
    {.name = "nodes", .type = FIELD_INT, .at = CHANGE(nodes), "that it has afterwards"},
    {.name = "switches", .type = FIELD_INT, .at = CHANGE(switches), "of these"},
    {.name = "links", .type = FIELD_INT, .at = CHANGE(links), "that it has afterwards"},
    {.name = "added_nodes", .type = FIELD_INT, .at = CHANGE(added_nodes), "nodes that it has not now"},
    {.name = "added_links",
     .type = FIELD_INT,
     .at = CHANGE(added_links),
     "cables between switches that it has not now"},
    {.name = "dropped_nodes", .type = FIELD_INT, .at = CHANGE(dropped_nodes), "nodes that it loses"},
    {.name = "dropped_links",
     .type = FIELD_INT,
     .at = CHANGE(dropped_links),
     "cables that it loses, but for those of such nodes"},
    {.name = "moved", .type = FIELD_INT, .at = CHANGE(moved), "cables that lead elsewhere in it"},
    {.name = "replaced", .type = FIELD_INT, .at = CHANGE(replaced), "nodes in the place of others"},
    {.name = "changes",
     .type = FIELD_LIST,
     .at = CHANGE(changes),
     "the same one by one, the first hundred of each kind: missing ones are dropped, extra ones are added",
     &schema_blueprint_item},
    {.name = "kept",
     .type = FIELD_STR,
     .at = CHANGE(kept),
     "what stays in it as it does not answer though its cables are up; null: nothing, or not asked",
     .null = true},
    {.name = "warnings",
     .type = FIELD_STRINGS,
     .at = CHANGE(warnings),
     "what is odd about a file, or what to do instead"},
    {.name = "routes",
     .type = FIELD_OBJ,
     .at = CHANGE(routes),
     "routes that would follow; null when it is done at once",
     &schema_routes,
     .null = true},
    {0},
};
const struct schema schema_blueprint_change = {
    .name = "blueprint_change", "A change of the blueprint", sizeof(struct change_row), change_fields};

static void fill_routes(const struct blueprint_routes *r, struct routes_row *row)
{
    *row = (struct routes_row){.engine = r->engine,
                               .why = r->why,
                               .proved = r->proved,
                               .counterexample = r->proved ? NULL : r->counter_example,
                               .entries = (int64_t)r->entries,
                               .blocks = r->blocks,
                               .switches = r->switches,
                               .paths = (int64_t)r->paths,
                               .waves = r->waves,
                               .seconds = r->seconds,
                               .gain = r->gain,
                               .verdict = r->verdict,
                               .quality = r->quality.data,
                               .quality_before = r->quality_before.data};
}

void blueprint_change_render(const struct computation *c, const struct blueprint_change *x, int64_t sweep,
                             struct buf *b)
{
    struct blueprint_rows rows;
    struct routes_row routes;
    const struct blueprint_compare *d = x->change;
    blueprint_rows_fill(&rows, d, c->routing.blueprint, x->next);
    if (x->routes != NULL)
        fill_routes(x->routes, &routes);
    json_put_struct(
        b, &schema_blueprint_change,
        &(struct change_row){.op = blueprint_ops[x->op],
                             .state = sm_blueprint_state_name(sm_blueprint_state_after(x->op, x->state)),
                             .state_before = sm_blueprint_state_name(x->state),
                             .dry_run = x->dry_run,
                             .sweep = sweep,
                             .nodes = x->next->num_nodes,
                             .switches = x->next->num_switches,
                             .links = x->next->num_links,
                             .added_nodes = d->count[BLUEPRINT_EXTRA_NODE],
                             .added_links = d->count[BLUEPRINT_EXTRA_LINK],
                             .dropped_nodes = d->count[BLUEPRINT_MISSING_NODE],
                             .dropped_links = d->count[BLUEPRINT_MISSING_LINK],
                             .moved = d->count[BLUEPRINT_MOVED],
                             .replaced = d->count[BLUEPRINT_REPLACED],
                             .changes = {rows.row, rows.n},
                             .kept = x->kept[0] ? x->kept : NULL,
                             .warnings = {x->warning, x->num_warnings},
                             .routes = x->routes != NULL ? &routes : NULL});
    blueprint_rows_done(&rows);
}
