// SPDX-License-Identifier: Apache-2.0
// Drains: the list, draining and undraining, and what either would move.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "api/elements.h"
#include "api/resolve.h"
#include "lib/xalloc.h"
#include "lib/guid.h"
#include "sm/drain.h"

// --- rows ---

static const char *const states[] = {"moving", "drained", "in-use", "away", NULL};

struct drain_row {
    const char *name, *far_name, *by, *reason, *state, *text;
    uint64_t node;
    int64_t port, since, cables, ends, switches;
    struct items no_other_way;
};
#define DRAIN(f) offsetof(struct drain_row, f)
static const struct field drain_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = DRAIN(name), "the port, or the switch"},
    {.name = "node", .type = FIELD_GUID, .at = DRAIN(node), "GUID of the switch"},
    {.name = "port", .type = FIELD_INT, .at = DRAIN(port), "null: the whole switch", .null = true},
    {.name = "far",
     .type = FIELD_STR,
     .at = DRAIN(far_name),
     "the cable's other end when it was drained",
     .null = true},
    {.name = "since", .type = FIELD_TIME, .at = DRAIN(since), "when it was drained"},
    {.name = "by", .type = FIELD_STR, .at = DRAIN(by), "who did it"},
    {.name = "reason", .type = FIELD_STR, .at = DRAIN(reason), "why; may be empty"},
    {.name = "state",
     .type = FIELD_STR,
     .at = DRAIN(state),
     "moving: routes are not others yet; in-use: something has no other way; away: its switch is not there",
     .name_of = states},
    {.name = "cables", .type = FIELD_INT, .at = DRAIN(cables), "cables to other switches that are up there"},
    {.name = "ends", .type = FIELD_INT, .at = DRAIN(ends), "end ports that have no other way"},
    {.name = "switches",
     .type = FIELD_INT,
     .at = DRAIN(switches),
     "switches' own LIDs that have no other way"},
    {.name = "no_other_way",
     .type = FIELD_STRINGS,
     .at = DRAIN(no_other_way),
     "names of these ends, 4096 at most; of the first 64 drains in use"},
    {.name = "text", .type = FIELD_STR, .at = DRAIN(text), "how it stands, in words"},
    {0},
};
const struct schema schema_drain = {
    .name = "drain", "A cable or switch that traffic is kept off", sizeof(struct drain_row), drain_fields};

static const struct field body_fields[] = {
    {.name = "element",
     .type = FIELD_STR,
     .at = 0,
     "\"node[port]\": the cable there; \"node\": all cables to other switches. By name or GUID. Or many of "
     "them, all or none: node[33-48], spine-*, role=spine,rail=3, leaf-*[33]; 1024 at most",
     .need = true},
    {.name = "reason",
     .type = FIELD_STR,
     .at = 0,
     "why, for those who read the list; 200 bytes of it are kept"},
    {0},
};
const struct schema schema_drain_body = {.name = "drain_asked", "What to drain", 1, body_fields, true};
static const struct field undrain_fields[] = {
    {.name = "element",
     .type = FIELD_STR,
     .at = 0,
     "as it was drained, or by the cable's other end",
     .need = true},
    {0},
};
const struct schema schema_undrain_body = {
    .name = "undrain_asked", "What to undrain", 1, undrain_fields, true};
static const struct field check_fields[] = {
    {.name = "element", .type = FIELD_STR, .at = 0, "as of drains", .need = true},
    {.name = "undrain", .type = FIELD_BOOL, .at = 0, "what undraining it would move"},
    {0},
};
const struct schema schema_drain_check_body = {
    .name = "drain_check_asked", "What is to be drained or undrained", 1, check_fields, true};

struct drained_item {
    const char *name;
    uint64_t node;
    int64_t port;
    bool changed;
};
#define ITEM(f) offsetof(struct drained_item, f)
static const struct field item_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = ITEM(name), "what the drain goes by in the list"},
    {.name = "node", .type = FIELD_GUID, .at = ITEM(node), "GUID of the switch, as in the list"},
    {.name = "port", .type = FIELD_INT, .at = ITEM(port), "null: the whole switch", .null = true},
    {.name = "changed", .type = FIELD_BOOL, .at = ITEM(changed), "false: it was so already"},
    {0},
};
static const struct schema schema_item = {
    .name = "drained_item", "One of what was asked for", sizeof(struct drained_item), item_fields};

struct drained_row {
    bool changed;
    const char *name, *text;
    int64_t sweep;
    struct items items;
};
#define DONE(f) offsetof(struct drained_row, f)
static const struct field drained_fields[] = {
    {.name = "changed", .type = FIELD_BOOL, .at = DONE(changed), "false: it was so already"},
    {.name = "name",
     .type = FIELD_STR,
     .at = DONE(name),
     "what the drain goes by in the list; of many, what was asked for"},
    {.name = "items", .type = FIELD_LIST, .at = DONE(items), "each", &schema_item},
    {.name = "sweep",
     .type = FIELD_INT,
     .at = DONE(sweep),
     "id of the sweep that moves the routes; null when nothing has changed",
     .null = true},
    {.name = "text", .type = FIELD_STR, .at = DONE(text), "the same in words"},
    {0},
};
const struct schema schema_drained = {
    .name = "drained", "What has become of the request", sizeof(struct drained_row), drained_fields};

struct effect_row {
    const char *text, *counter_example;
    int64_t entries, blocks, table_switches, paths, waves, cables, ends, switches;
    bool proved;
};
#define EFFECT(f) offsetof(struct effect_row, f)
static const struct field effect_fields[] = {
    {.name = "entries", .type = FIELD_INT, .at = EFFECT(entries), "table entries that would change"},
    {.name = "blocks", .type = FIELD_INT, .at = EFFECT(blocks), "blocks of 64 entries to be written"},
    {.name = "table_switches", .type = FIELD_INT, .at = EFFECT(table_switches), "switches with such entries"},
    {.name = "paths",
     .type = FIELD_INT,
     .at = EFFECT(paths),
     "(leaf switch, destination) pairs whose route would change"},
    {.name = "waves", .type = FIELD_INT, .at = EFFECT(waves), "waves in which they would be written"},
    {.name = "cables", .type = FIELD_INT, .at = EFFECT(cables), "cables that it is about, and that are up"},
    {.name = "ends", .type = FIELD_INT, .at = EFFECT(ends), "end ports that would have no other way"},
    {.name = "switches",
     .type = FIELD_INT,
     .at = EFFECT(switches),
     "switches' own LIDs that would have no other way"},
    {.name = "proved", .type = FIELD_BOOL, .at = EFFECT(proved), "the tables would be proved"},
    {.name = "counterexample",
     .type = FIELD_STR,
     .at = EFFECT(counter_example),
     "what the proof finds",
     .null = true},
    {.name = "text", .type = FIELD_STR, .at = EFFECT(text), "the same in words"},
    {0},
};
const struct schema schema_drain_effect = {
    .name = "drain_effect", "What it would move", sizeof(struct effect_row), effect_fields};

// --- words ---

static const char *describe(const struct sm *sm, const struct sm_drain *d, char *buf, size_t size)
{
    char who[120];
    if (sm_drain_away(sm, d)) {
        snprintf(buf, size, "switch " GUID_FMT " is not there; drained when it comes", GUID_ARG(d->at.guid));
        return buf;
    }
    const char *down = d->cables == 0 ? "no cable is up there; " : "";
    switch (d->state) {
    case SM_DRAIN_MOVING:
        snprintf(buf, size, "routes are being moved");
        break;
    case SM_DRAIN_DRAINED:
        snprintf(buf, size, "%snothing %s it%s", down, d->at.port > 0 ? "uses" : "passes through",
                 d->own > 0 ? "; its own aggregation node stays reachable" : "");
        break;
    case SM_DRAIN_IN_USE:
        sm_drain_no_other_way(d->ends, d->switches, who, sizeof(who));
        snprintf(buf, size, "%s and still use%s it", who, d->ends + d->switches == 1 ? "s" : "");
        break;
    }
    return buf;
}

// --- the list ---

#define NAMED_MAX 4096
#define NAMED_DRAINS 64

static void put_drain(struct list *l, const struct sm *sm, const struct sm_drain *d, unsigned *named)
{
    char text[200];
    bool away = sm_drain_away(sm, d), name = d->state == SM_DRAIN_IN_USE && !away && d->ends > 0;
    uint32_t *end = NULL;
    const char **names = NULL;
    char(*name_text)[100] = NULL;
    size_t n = 0;

    if (name && (*named)++ < NAMED_DRAINS) {
        end = xcalloc(NAMED_MAX, sizeof(*end));
        n = sm_drain_ends(sm, d, end, NAMED_MAX);
        n = n < NAMED_MAX ? n : NAMED_MAX;
        names = xcalloc(n + 1, sizeof(*names));
        name_text = xcalloc(n + 1, sizeof(*name_text));
        for (size_t i = 0; i < n; i++) {
            const struct fabric *f = sm_fabric(sm);
            names[i] = fabric_node_name(f, fabric_node(f, fabric_port(f, (port_id){end[i]})->node),
                                        name_text[i], sizeof(*name_text));
        }
    }
    list_item(l, &(struct drain_row){.name = d->name,
                                     .node = d->at.guid,
                                     .port = d->at.port > 0 ? d->at.port : NO_INT,
                                     .far_name = d->far.guid != 0 ? d->far_name : NULL,
                                     .since = d->since_ns,
                                     .by = d->by,
                                     .reason = d->reason,
                                     .state = away ? "away" : sm_drain_state_name(d->state),
                                     .cables = d->cables,
                                     .ends = d->ends,
                                     .switches = d->switches,
                                     .no_other_way = {names, n},
                                     .text = describe(sm, d, text, sizeof(text))});
    free(end);
    free(names);
    free(name_text);
}

void get_drains(struct request *r)
{
    const struct view *v = r->view;
    const struct sm *sm = v->src->sm;
    const struct sm_drain *d;
    uint64_t skip, seen = 0;
    struct list l;
    char next[24];
    unsigned named = 0;

    if (!cursor_number(r, &skip))
        return;
    list_begin(&l, r, &schema_drain);
    for (unsigned i = 0; sm != NULL && (d = sm_drain_nth(sm, i)) != NULL; i++)
        if (seen++ >= skip && !list_full(&l))
            put_drain(&l, sm, d, &named);
    uint64_t given = skip + l.n;
    list_end(&l, given < seen ? number_text(given, next) : NULL, (int64_t)seen,
             v->f != NULL ? (int64_t)v->f->generation : NO_INT, view_sampled(r->api, v));
}

// --- what is meant ---

// A drain by the name that it has in the list: its switch may be gone.
static bool by_listed_name(const struct sm *sm, const char *text, bool guid_only, struct sm_drain_place *ret)
{
    const struct sm_drain *d;
    char buf[40];
    for (unsigned i = 0; (d = sm_drain_nth(sm, i)) != NULL; i++) {
        if (d->at.port > 0)
            snprintf(buf, sizeof(buf), GUID_FMT "[%u]", GUID_ARG(d->at.guid), d->at.port);
        else
            snprintf(buf, sizeof(buf), GUID_FMT, GUID_ARG(d->at.guid));
        if (strcasecmp(buf, text) == 0 ||
            (!guid_only &&
             (strcmp(d->name, text) == 0 || (d->at.port > 0 && strcmp(d->far_name, text) == 0)))) {
            *ret = d->at;
            return true;
        }
    }
    return false;
}

struct places {
    struct sm_drain_place *at;
    bool *did;
    size_t n;
    char name[200]; // of the only one; else what was asked for
};

static void free_places(struct places *p)
{
    free(p->at);
    free(p->did);
}

// Whether it may be many: a list of ports, a glob, fields.
static bool is_many(const char *text)
{
    size_t n = strlen(text);
    const char *open = strrchr(text, '[');
    return strpbrk(text, "*?=") != NULL ||
           (n > 0 && text[n - 1] == ']' && open != NULL && strpbrk(open, ",-"));
}

static int pick_many(const struct fabric *f, const char *text, struct places *p, struct err *e)
{
    struct element_place *at = xcalloc(SM_DRAINS_MAX, sizeof(*at));
    struct elements el;
    size_t n = 0;
    elements_init(&el, f);
    int rc = elements_pick(&el, text, at, SM_DRAINS_MAX, &n, e);
    elements_done(&el);
    for (size_t i = 0; i < n && rc == 0; i++)
        p->at[p->n++] = (struct sm_drain_place){at[i].node->guid, at[i].port};
    free(at);
    return rc;
}

static int pick(const struct fabric *f, const char *text, struct places *p, struct err *e)
{
    struct place at;
    int rc = resolve_element(f, text, &at, e);
    if (rc == -ENOENT && is_many(text))
        return pick_many(f, text, p, e);
    if (rc != 0)
        return rc;
    uint8_t port = port_valid(at.port) ? fabric_port(f, at.port)->num : 0;
    if (port_valid(at.port))
        fabric_port_name(f, at.port, p->name, sizeof(p->name));
    else
        fabric_node_name(f, at.node, p->name, sizeof(p->name));
    if (port_valid(at.port) && port == 0)
        return err_set(e, -EINVAL, p->name,
                       "is a switch's management port; a whole switch is drained by its name alone");
    p->at[p->n++] = (struct sm_drain_place){at.node->guid, port};
    return 0;
}

// HOST:RAIL, as elsewhere.
static bool is_adapter_of(const struct fabric *f, const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t n = colon != NULL ? (size_t)(colon - text) : 0;
    if (n == 0 || colon[1] == 0 || strspn(colon + 1, "0123456789") != strlen(colon + 1))
        return false;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const char *name = fabric_desc(f, &f->node[i]);
        if (f->node[i].type != NODE_SWITCH && strncmp(name, text, n) == 0 && name[n] == ' ')
            return true;
    }
    return false;
}

// What is there comes first, then the blueprint. False with an answer; else the caller's to free.
static bool places_of(struct request *r, bool undrain, struct places *p)
{
    struct view *v = r->view;
    const char *text = json_string_value(json_object_get(r->json, "element"));
    struct sm_blueprint b;
    struct err e = {0}, other = {0};

    if (v->src->sm == NULL) {
        answer_unmanaged(r);
        return false;
    }
    *p = (struct places){.at = xcalloc(SM_DRAINS_MAX, sizeof(*p->at)),
                         .did = xcalloc(SM_DRAINS_MAX, sizeof(*p->did))};
    snprintf(p->name, sizeof(p->name), "%s", text);
    p->n = undrain && by_listed_name(v->src->sm, text, true, p->at);
    if (p->n > 0)
        return true;
    if (view_of(r) == NULL) {
        free_places(p);
        return false;
    }
    int rc = pick(v->f, text, p, &e);
    if (rc == -ENOENT && undrain)
        p->n = by_listed_name(v->src->sm, text, false, p->at);
    if (rc == -ENOENT && p->n > 0)
        return true;
    sm_get_blueprint(v->src->sm, &b);
    if (rc == -ENOENT && b.known != NULL && pick(b.known, text, p, &other) == 0)
        rc = 0;
    if (rc == 0)
        return true;
    if (rc == -ENOENT && is_adapter_of(v->f, text))
        answer_problem(
            r, 400,
            "%s is an adapter and cannot be drained: nothing passes through it, and nothing else leads "
            "to it; switches and cables between them can",
            text);
    else if (rc == -EINVAL)
        answer_problem(r, 400, "%s %s", e.where, e.text);
    else
        answer_unresolved(r, "element", rc, &e);
    free_places(p);
    return false;
}

static void answer_refused(struct request *r, int code, const struct err *e)
{
    unsigned status = code == -ENOENT ? 404 : code == -EAGAIN ? 503 : code == -EINVAL ? 400 : 409;
    answer_problem(r, status, "%s%s%s", e->where, e->where[0] ? " " : "", e->text);
}

// --- actions ---

static void answer_done(struct request *r, const struct places *p, bool changed, struct items items,
                        const char *text)
{
    const struct drained_item *only = items.n == 1 ? items.item : NULL;
    answer_struct(r, changed ? 202 : 200, &schema_drained,
                  &(struct drained_row){.changed = changed,
                                        .name = only != NULL ? only->name : p->name,
                                        .text = text,
                                        .items = items,
                                        .sweep = changed ? next_sweep(r->view) : NO_INT});
}

void post_drain(struct request *r)
{
    struct places p;
    struct err e = {0};
    char by[USER_TEXT], text[300];
    const char *reason = json_string_value(json_object_get(r->json, "reason"));
    struct sm *sm;

    if (!places_of(r, false, &p))
        return;
    sm = r->view->src->sm;
    int rc = sm_drain_all(sm, p.at, p.n, user_text(r, by), reason != NULL ? reason : "", p.did, &e);
    if (rc < 0) {
        answer_refused(r, rc, &e);
        free_places(&p);
        return;
    }
    if (rc == 0)
        audit_action(r, p.name, "%s is drained%s%.150s", p.name, reason != NULL && reason[0] ? ": " : "",
                     reason != NULL ? reason : "");
    struct drained_item *item = xcalloc(p.n + 1, sizeof(*item));
    for (size_t i = 0; i < p.n; i++) {
        const struct sm_drain *d = sm_drain_find(sm, &p.at[i]);
        item[i] = (struct drained_item){.name = d->name,
                                        .node = d->at.guid,
                                        .port = d->at.port > 0 ? d->at.port : NO_INT,
                                        .changed = p.did[i]};
    }
    const char *one = p.n == 1 ? item[0].name : p.name;
    snprintf(text, sizeof(text), rc == 0 ? "%s is being drained" : "%s is drained already", one);
    if (p.n > 1)
        snprintf(text, sizeof(text), "%.200s: %zu cables and switches%s", p.name, p.n,
                 rc == 0 ? " are being drained" : ", drained already");
    answer_done(r, &p, rc == 0, (struct items){item, p.n}, text);
    free(item);
    free_places(&p);
}

static void say_undrained(const struct sm *sm, const struct places *p, size_t n, bool changed, char *text,
                          size_t size)
{
    struct sm_drain_place at;
    if (p->n > 1)
        snprintf(text, size, changed ? "%s: %zu undrained" : "%s: none of %zu is drained", p->name, n);
    else
        snprintf(text, size, changed ? "%s is undrained" : "%s is not drained", p->name);
    if (!changed && p->n == 1 && by_listed_name(sm, p->name, false, &at))
        snprintf(text, size,
                 "%.120s is not drained; another device that had this name is: " GUID_FMT ", which is away",
                 p->name, GUID_ARG(at.guid));
}

void post_undrain(struct request *r)
{
    struct places p;
    struct err e = {0};
    char by[USER_TEXT], text[300];
    size_t n = 0;

    if (!places_of(r, true, &p))
        return;
    const struct sm *sm = r->view->src->sm;
    char(*name)[200] = xcalloc(p.n + 1, sizeof(*name));
    struct drained_item *item = xcalloc(p.n + 1, sizeof(*item));
    for (size_t i = 0; i < p.n; i++) {
        const struct sm_drain *d = sm_drain_find(sm, &p.at[i]);
        if (d == NULL && p.n > 1)
            continue; // of many, those that are drained
        snprintf(name[n], sizeof(*name), "%s", d != NULL ? d->name : p.name);
        const struct sm_drain_place *at = d != NULL ? &d->at : &p.at[i];
        item[n] = (struct drained_item){.name = name[n],
                                        .node = at->guid,
                                        .port = at->port > 0 ? at->port : NO_INT,
                                        .changed = d != NULL};
        n++;
    }
    int rc = sm_undrain_all(r->view->src->sm, p.at, p.n, user_text(r, by), p.did, &e);
    if (rc < 0) {
        answer_refused(r, rc, &e);
    } else {
        if (rc == 0)
            audit_action(r, p.name, "%s is undrained", p.name);
        say_undrained(sm, &p, rc == 0 ? n : p.n, rc == 0, text, sizeof(text));
        answer_done(r, &p, rc == 0, (struct items){item, n}, text);
    }
    free(item);
    free(name);
    free_places(&p);
}

// --- what it would move ---

void drain_check_work(struct sm_drain_check *c, struct par *par, struct buf *result, struct err *e)
{
    struct sm_drain_effect x;
    char text[300], who[120] = "nothing is left without another way";
    if (sm_drain_check_run(c, par, &x, e) != 0)
        return;
    if (x.ends + x.switches > 0)
        sm_drain_no_other_way(x.ends, x.switches, who, sizeof(who));
    bool undrain = sm_drain_check_undrains(c);
    snprintf(text, sizeof(text), "%llu table entries on %u switches and %llu paths would change%s%s",
             (unsigned long long)x.entries, x.table_switches, (unsigned long long)x.paths,
             undrain ? "" : "; ", undrain ? "" : who);
    json_put_struct(result, &schema_drain_effect,
                    &(struct effect_row){.entries = (int64_t)x.entries,
                                         .blocks = x.blocks,
                                         .table_switches = x.table_switches,
                                         .paths = (int64_t)x.paths,
                                         .waves = x.waves,
                                         .cables = x.cables,
                                         .ends = x.ends,
                                         .switches = x.switches,
                                         .proved = x.proved,
                                         .counter_example = x.proved ? NULL : x.counter_example,
                                         .text = text});
}

void post_drain_check(struct request *r)
{
    bool undrain = json_is_true(json_object_get(r->json, "undrain"));
    struct places p;
    struct sm_drain_check *c;
    struct err e = {0};

    if (!places_of(r, undrain, &p))
        return;
    int rc = sm_drain_check_new(r->view->src->sm, p.at, p.n, undrain, &c, &e);
    if (rc < 0)
        answer_refused(r, rc, &e);
    else if (rc > 0)
        answer_problem(r, 409, undrain ? "%s is not drained" : "%s is drained already", p.name);
    else
        jobs_drain_check(r, r->view, c);
    free_places(&p);
}
