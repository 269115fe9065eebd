// SPDX-License-Identifier: Apache-2.0
// The blueprint, and changes to it that are asked for: looked at first, or done.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "api/blueprint.h"
#include "fabric/compare.h"
#include "lib/xalloc.h"

// --- bodies ---

#define DRY_RUN                                                                                              \
    {                                                                                                        \
        .name = "dry_run", .type = FIELD_BOOL, .at = 0,                                                      \
        "only look at what would become of it; the job's result is a blueprint_change either way"            \
    }
static const struct field change_fields[] = {DRY_RUN, {0}};
const struct schema schema_blueprint_body = {
    .name = "blueprint_request", "An object, or no body", 1, change_fields, true};
static const struct field reroute_fields[] = {
    {.name = "dry_run",
     .type = FIELD_BOOL,
     .at = 0,
     "only look at what would move and what would be gained: a job whose result is a blueprint_change"},
    {0},
};
const struct schema schema_reroute_body = {
    .name = "reroute_request", "An object, or no body", 1, reroute_fields, true};
static const struct field strike_fields[] = {
    {.name = "element",
     .type = FIELD_STR,
     .at = 0,
     "\"node\" or \"node[port]\" of the blueprint, by name or GUID",
     .need = true},
    DRY_RUN,
    {0},
};
const struct schema schema_blueprint_strike_body = {
    .name = "blueprint_strike_request", "What is gone for good", 1, strike_fields, true};
static const struct field set_fields[] = {
    {.name = "text",
     .type = FIELD_STR,
     .at = 0,
     "a topology, as ibnetdiscover, ibdiagnet and others write it",
     .need = true},
    {.name = "name", .type = FIELD_STR, .at = 0, "what it is called, for messages"},
    {.name = "force", .type = FIELD_BOOL, .at = 0, "also when it looks like another fabric's"},
    DRY_RUN,
    {0},
};
const struct schema schema_blueprint_set_body = {
    .name = "blueprint_set_request", "A blueprint", 1, set_fields, true, BLUEPRINT_TEXT_MAX};

struct reroute_row {
    int64_t sweep;
    const char *job;
};
static const struct field asked_fields[] = {
    {.name = "sweep",
     .type = FIELD_INT,
     .at = offsetof(struct reroute_row, sweep),
     "id that the sweep will have; null for a dry run",
     .null = true},
    {.name = "job",
     .type = FIELD_STR,
     .at = offsetof(struct reroute_row, job),
     "id of the job that looks at it; null when it is done",
     .null = true},
    {0},
};
const struct schema schema_reroute_asked = {
    .name = "reroute_asked", "Routes to be made anew", sizeof(struct reroute_row), asked_fields};

// --- what it is ---

struct blueprint_row {
    const char *state, *by, *asked;
    int64_t since, nodes, switches, links, missing_nodes, missing_switches, missing_links, extra_nodes,
        extra_switches, extra_links, moved, replaced;
    struct items differences;
};
#define ROW(f) offsetof(struct blueprint_row, f)
static const struct field blueprint_fields[] = {
    {.name = "state",
     .type = FIELD_STR,
     .at = ROW(state),
     "learning: what is seen becomes part of it. accepted: it is fixed, but for new hosts on its leaves",
     .name_of = blueprint_states},
    {.name = "since",
     .type = FIELD_TIME,
     .at = ROW(since),
     "when somebody has changed it last; null: never",
     .null = true},
    {.name = "by", .type = FIELD_STR, .at = ROW(by), "who", .null = true},
    {.name = "asked",
     .type = FIELD_STR,
     .at = ROW(asked),
     "what is asked for and not done yet",
     .name_of = blueprint_ops},
    {.name = "nodes", .type = FIELD_INT, .at = ROW(nodes), "nodes of it"},
    {.name = "switches", .type = FIELD_INT, .at = ROW(switches), "of these switches"},
    {.name = "links", .type = FIELD_INT, .at = ROW(links), "cables of it"},
    {.name = "missing_nodes", .type = FIELD_INT, .at = ROW(missing_nodes), "nodes of it that are away"},
    {.name = "missing_switches", .type = FIELD_INT, .at = ROW(missing_switches), "of these switches"},
    {.name = "missing_links",
     .type = FIELD_INT,
     .at = ROW(missing_links),
     "cables of it that are away, but for those of such nodes"},
    {.name = "extra_nodes", .type = FIELD_INT, .at = ROW(extra_nodes), "nodes that it has not: growth"},
    {.name = "extra_switches", .type = FIELD_INT, .at = ROW(extra_switches), "of these switches"},
    {.name = "extra_links",
     .type = FIELD_INT,
     .at = ROW(extra_links),
     "cables between switches that it has not: growth"},
    {.name = "moved", .type = FIELD_INT, .at = ROW(moved), "cables that lead elsewhere than in it"},
    {.name = "replaced", .type = FIELD_INT, .at = ROW(replaced), "nodes in the place of others of it"},
    {.name = "differences",
     .type = FIELD_LIST,
     .at = ROW(differences),
     "the same one by one, the first hundred of each kind",
     &schema_blueprint_item},
    {0},
};
const struct schema schema_blueprint = {.name = "blueprint",
                                        "The fabric that ideal routes are computed for",
                                        sizeof(struct blueprint_row),
                                        blueprint_fields};

// The view with a manager that has a blueprint, or NULL and an answer.
static struct view *managed(struct request *r, struct sm_blueprint *ret)
{
    struct view *v = view_of(r);
    if (v == NULL)
        return NULL;
    if (v->src->sm == NULL) {
        answer_problem(r, 409, "fabric %s is a file; it has no blueprint", v->src->name);
        return NULL;
    }
    sm_get_blueprint(v->src->sm, ret);
    if (ret->known != NULL)
        return v;
    answer_problem(r, 409, "fabric %s has no blueprint yet; it has one when it is up", v->src->name);
    return NULL;
}

void get_blueprint(struct request *r)
{
    struct sm_blueprint b;
    struct blueprint_rows rows;
    struct view *v = managed(r, &b);
    if (v == NULL)
        return;
    struct blueprint_compare *c = blueprint_compare(b.known, v->f, BLUEPRINT_ITEMS);
    blueprint_rows_fill(&rows, c, b.known, v->f);
    answer_struct(r, 200, &schema_blueprint,
                  &(struct blueprint_row){.state = sm_blueprint_state_name(b.state),
                                          .since = b.since_wall_ns,
                                          .by = b.by[0] ? b.by : NULL,
                                          .asked = blueprint_ops[b.asked],
                                          .nodes = b.known->num_nodes,
                                          .switches = b.known->num_switches,
                                          .links = b.known->num_links,
                                          .missing_nodes = c->count[BLUEPRINT_MISSING_NODE],
                                          .missing_switches = c->missing_switches,
                                          .missing_links = c->count[BLUEPRINT_MISSING_LINK],
                                          .extra_nodes = c->count[BLUEPRINT_EXTRA_NODE],
                                          .extra_switches = c->extra_switches,
                                          .extra_links = c->count[BLUEPRINT_EXTRA_LINK],
                                          .moved = c->count[BLUEPRINT_MOVED],
                                          .replaced = c->count[BLUEPRINT_REPLACED],
                                          .differences = {rows.row, rows.n}});
    blueprint_rows_done(&rows);
    blueprint_compare_free(c);
}

// --- changes ---

static bool is_master(struct request *r, const struct view *v)
{
    struct sm_status st;
    sm_get_status(v->src->sm, &st);
    if (st.state != SM_STANDBY)
        return true;
    answer_problem(r, 409, "another subnet manager runs fabric %s; weft stands by and writes no routes",
                   v->src->name);
    return false;
}

static struct blueprint_change *change_of(struct request *r, enum sm_blueprint_op op, struct view **ret_view)
{
    struct sm_blueprint b;
    struct view *v = managed(r, &b);
    if (v == NULL || !is_master(r, v))
        return NULL;
    if (view_tables(v) == NULL) {
        answer_problem(r, 409, "fabric %s has no routes in force yet", v->src->name);
        return NULL;
    }
    struct blueprint_change *x = xcalloc(1, sizeof(*x));
    x->op = op;
    x->state = b.state;
    x->dry_run = json_is_true(json_object_get(r->json, "dry_run"));
    user_text(r, x->by);
    *ret_view = v;
    return x;
}

static const char *const said[] = {
    [SM_BLUEPRINT_NONE] = "",
    [SM_BLUEPRINT_ACCEPT] = "the blueprint is accepted as it is seen",
    [SM_BLUEPRINT_LEARN] = "the blueprint learns what is seen",
    [SM_BLUEPRINT_SET] = "the blueprint is given",
    [SM_BLUEPRINT_STRIKE] = "the blueprint loses what is gone for good",
    [SM_BLUEPRINT_REROUTE] = "routes are computed anew",
};

static void begin(struct request *r, struct view *v, struct blueprint_change *x)
{
    if (!x->dry_run)
        audit_action(r, x->element != NULL ? x->element : x->name != NULL ? x->name : "", "%s", said[x->op]);
    jobs_blueprint(r, v, x);
}

void post_blueprint_accept(struct request *r)
{
    struct view *v;
    struct blueprint_change *x = change_of(r, SM_BLUEPRINT_ACCEPT, &v);
    if (x != NULL)
        begin(r, v, x);
}

void post_blueprint_learn(struct request *r)
{
    struct view *v;
    struct blueprint_change *x = change_of(r, SM_BLUEPRINT_LEARN, &v);
    if (x != NULL)
        begin(r, v, x);
}

void post_blueprint_strike(struct request *r)
{
    struct view *v;
    struct blueprint_change *x = change_of(r, SM_BLUEPRINT_STRIKE, &v);
    if (x == NULL)
        return;
    x->element = xstrdup(json_string_value(json_object_get(r->json, "element")));
    begin(r, v, x);
}

void post_blueprint_set(struct request *r)
{
    struct view *v;
    const json_t *text = json_object_get(r->json, "text");
    const char *name = json_string_value(json_object_get(r->json, "name"));
    struct blueprint_change *x = change_of(r, SM_BLUEPRINT_SET, &v);
    if (x == NULL)
        return;
    x->len = json_string_length(text);
    x->text = xmalloc(x->len + 1);
    memcpy(x->text, json_string_value(text), x->len + 1);
    x->name = xasprintf("%.200s", name != NULL ? name : "the file");
    x->force = json_is_true(json_object_get(r->json, "force"));
    begin(r, v, x);
}

// On the loop, when the job has ended.
void blueprint_change_done(struct view *v, struct computation *c, struct blueprint_change *x)
{
    int64_t sweep = NO_INT;
    struct sm_blueprint b;
    if (c->err.code != 0)
        return;
    if (!x->dry_run) {
        sm_get_blueprint(v->src->sm, &b);
        if (x->given != NULL && b.known != c->routing.blueprint) {
            err_set(&c->err, -EAGAIN, NULL,
                    "the blueprint has changed meanwhile; nothing is done, try it once more");
            return;
        }
        sweep = next_sweep(v);
        sm_blueprint_ask(v->src->sm, x->op, x->given, x->by);
    }
    blueprint_change_render(c, x, sweep, &c->result);
}

// --- balanced anew ---

static void plan_reroute(struct request *r)
{
    struct view *v;
    char id[24];
    struct blueprint_change *x = change_of(r, SM_BLUEPRINT_REROUTE, &v);
    if (x == NULL || !jobs_begin_blueprint(r, v, x, id))
        return;
    answer_struct(r, 202, &schema_reroute_asked, &(struct reroute_row){.sweep = NO_INT, .job = id});
}

void post_reroute(struct request *r)
{
    struct view *v = r->view;
    char by[USER_TEXT];
    if (v->src->sm == NULL) {
        answer_unmanaged(r);
        return;
    }
    if (json_is_true(json_object_get(r->json, "dry_run"))) {
        plan_reroute(r);
        return;
    }
    if (!request_may(r, API_OPERATE) || !is_master(r, v))
        return;
    audit_action(r, "", "%s", said[SM_BLUEPRINT_REROUTE]);
    int64_t id = next_sweep(v);
    sm_blueprint_ask(v->src->sm, SM_BLUEPRINT_REROUTE, NULL, user_text(r, by));
    answer_struct(r, 202, &schema_reroute_asked, &(struct reroute_row){.sweep = id});
}
