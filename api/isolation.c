// SPDX-License-Identifier: Apache-2.0
// Links that should carry no traffic: proposed, isolated, excluded; by hand, with what stands against it said
// first.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/tele.h"
#include "lib/guid.h"
#include "lib/when.h"
#include "telemetry/isolate.h"

// --- rows ---

static const struct field end_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = offsetof(struct end_row, guid), "NodeGUID", .null = true},
    {.name = "name", .type = FIELD_STR, .at = offsetof(struct end_row, name), "its description"},
    {.name = "port",
     .type = FIELD_INT,
     .at = offsetof(struct end_row, port),
     "port number; 0: all of the node"},
    {0},
};
static const struct schema schema_isolation_end = {
    .name = "isolation_end", "An end of a link", sizeof(struct end_row), end_fields};

struct isolation_row {
    const char *name, *state, *rule, *reason, *verdict, *why, *by;
    struct end_row a_space, z_space;
    const struct end_row *a, *z;
    int64_t since, alarm;
    bool clean;
};
#define ROW(f) offsetof(struct isolation_row, f)
static const char *const states[] = {"isolated", "proposed", "kept", NULL};
static const char *const verdicts[] = {"yes",  "already", "off",    "unknown", "down", "excluded", "week",
                                       "host", "last",    "splits", "uplinks", "cap",  "refused",  NULL};
static const struct field isolation_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = ROW(name), "both ends for people"},
    {.name = "a", .type = FIELD_OBJ, .at = ROW(a), "one end", &schema_isolation_end},
    {.name = "z", .type = FIELD_OBJ, .at = ROW(z), "the other", &schema_isolation_end, .null = true},
    {.name = "state",
     .type = FIELD_STR,
     .at = ROW(state),
     "isolated; proposed: it should be; kept: it should be, and something stands against it",
     .name_of = states},
    {.name = "rule", .type = FIELD_STR, .at = ROW(rule), "the rule that says so, such as L06", .null = true},
    {.name = "reason", .type = FIELD_STR, .at = ROW(reason), "with numbers and limits", .null = true},
    {.name = "verdict",
     .type = FIELD_STR,
     .at = ROW(verdict),
     "what stands against it; yes: nothing",
     .name_of = verdicts},
    {.name = "why", .type = FIELD_STR, .at = ROW(why), "the same for people", .null = true},
    {.name = "since", .type = FIELD_TIME, .at = ROW(since), "isolated or proposed since", .null = true},
    {.name = "by", .type = FIELD_STR, .at = ROW(by), "who isolated it", .null = true},
    {.name = "clean", .type = FIELD_BOOL, .at = ROW(clean), "isolated, and may carry traffic again"},
    {.name = "alarm", .type = FIELD_INT, .at = ROW(alarm), "id of the worst alarm about it", .null = true},
    {0},
};
const struct schema schema_isolation = {.name = "isolation",
                                        "A link and whether it should carry traffic",
                                        sizeof(struct isolation_row),
                                        isolation_fields};

struct exclusion_row {
    struct end_row at;
    const struct end_row *place;
    int64_t until;
    const char *by, *reason;
};
#define EXCLUSION(f) offsetof(struct exclusion_row, f)
static const struct field exclusion_fields[] = {
    {.name = "place",
     .type = FIELD_OBJ,
     .at = EXCLUSION(place),
     "what is never isolated",
     &schema_isolation_end},
    {.name = "until", .type = FIELD_TIME, .at = EXCLUSION(until), "until when"},
    {.name = "by", .type = FIELD_STR, .at = EXCLUSION(by), "who said so"},
    {.name = "reason", .type = FIELD_STR, .at = EXCLUSION(reason), "why"},
    {0},
};
const struct schema schema_isolation_exclusion = {.name = "isolation_exclusion",
                                                  "A link or node that is not isolated",
                                                  sizeof(struct exclusion_row),
                                                  exclusion_fields};

#define PORT_DOC "NODE/NUM or NODE[NUM] of either end; NODE is a GUID or unique name"
static const struct field isolate_fields[] = {
    {.name = "port", .type = FIELD_STR, .at = 0, PORT_DOC, .need = true},
    {.name = "reason", .type = FIELD_STR, .at = 0, "why, for those who look"},
    {.name = "dry_run", .type = FIELD_BOOL, .at = 0, "only say what stands against it"},
    {.name = "anyway", .type = FIELD_BOOL, .at = 0, "also against what stands against it"},
    {0},
};
const struct schema schema_isolate_body = {
    .name = "isolate", "A link to be isolated", 1, isolate_fields, true};
static const struct field release_fields[] = {
    {.name = "port", .type = FIELD_STR, .at = 0, PORT_DOC, .need = true},
    {0},
};
const struct schema schema_isolate_port_body = {
    .name = "isolate_port", "A link, or a node", 1, release_fields, true};
static const struct field exclude_fields[] = {
    {.name = "port", .type = FIELD_STR, .at = 0, PORT_DOC "; NODE: all its links", .need = true},
    {.name = "for", .type = FIELD_STR, .at = 0, "for so long: 2h, 3d"},
    {.name = "until", .type = FIELD_STR, .at = 0, "or until then"},
    {.name = "reason", .type = FIELD_STR, .at = 0, "why", .need = true},
    {0},
};
const struct schema schema_exclude_body = {
    .name = "isolate_exclude", "A link or node that shall not be isolated", 1, exclude_fields, true};

// --- what they share ---

static struct isolate *isolate_of(struct request *r, struct tele_view *w)
{
    if (!tele_view_of(r, w))
        return NULL;
    if (r->view->src->isolate == NULL)
        answer_problem(r, 409,
                       "links of fabric %s are not isolated: there are no counters to judge them by "
                       "(telemetry.interval)",
                       r->view->src->name);
    return r->view->src->isolate;
}

static struct end_row end_of(const struct tele_view *w, uint64_t guid, uint8_t port)
{
    const struct fabric *f = view_fabric(w->v);
    const struct node *n = f != NULL ? fabric_by_guid(f, guid) : NULL;
    return (struct end_row){.guid = guid, .port = port, .name = n != NULL ? fabric_desc(f, n) : ""};
}

static void fill(struct tele_view *w, const struct isolate_item *x, struct isolation_row *row)
{
    const struct alarm *alarm = tele_alarm_of(w, x->at.guid[0], x->at.port[0]);
    *row = (struct isolation_row){
        .name = x->name != NULL ? x->name : "",
        .a_space = end_of(w, x->at.guid[0], x->at.port[0]),
        .z_space = end_of(w, x->at.guid[1], x->at.port[1]),
        .state = states[x->isolated                 ? 0
                        : x->verdict == ISOLATE_YES ? 1
                                                    : 2],
        .rule = text_or_null(x->rule),
        .reason = text_or_null(x->reason),
        .verdict = isolate_verdict_name(x->isolated ? ISOLATE_ALREADY : x->verdict),
        .why = text_or_null(x->why),
        .since = x->since_wall_ns,
        .by = text_or_null(x->by),
        .clean = x->clean,
        .alarm = alarm != NULL ? (int64_t)alarm->id : NO_INT,
    };
    row->a = &row->a_space;
    row->z = x->at.guid[1] != 0 ? &row->z_space : NULL;
}

static bool take_port(struct request *r, const struct tele_view *w, bool node_too, uint64_t *ret_guid,
                      uint8_t *ret_port)
{
    const char *text = json_string_value(json_object_get(r->json, "port"));
    struct err e = {0};
    int port = -1;
    int rc = view_port_parse(w->v, text, ret_guid, &port, &e);
    if (rc != 0) {
        answer_unresolved(r, "port", rc, &e);
        return false;
    }
    // An adapter with one port means its cable.
    if (port < 0 && !node_too && tele_slot(w->t, *ret_guid, 2) == TELE_SLOT_NONE &&
        tele_slot(w->t, *ret_guid, 1) != TELE_SLOT_NONE)
        port = 1;
    if (port < 0 && !node_too) {
        answer_problem(r, 400, "which port? give NODE/NUM, not \"%.120s\"", text);
        return false;
    }
    *ret_port = port > 0 ? (uint8_t)port : 0;
    return true;
}

// --- lists ---

void get_isolations(struct request *r)
{
    const struct isolate_item *x = NULL;
    struct isolation_row row;
    struct tele_view w;
    struct list l;
    uint64_t i;
    char next[24];
    struct isolate *all = isolate_of(r, &w);

    if (all == NULL || !cursor_number(r, &i))
        return;
    uint32_t n = isolate_list(all, &x);
    list_begin(&l, r, &schema_isolation);
    for (; i < n && !list_full(&l); i++) {
        fill(&w, &x[i], &row);
        list_item(&l, &row);
    }
    list_end(&l, i < n ? number_text(i, next) : NULL, n, NO_INT, w.st.last_wall_ns);
    tele_view_done(&w);
}

void get_isolation_exclusions(struct request *r)
{
    const struct isolate_exclusion *x = NULL;
    struct tele_view w;
    struct list l;
    uint64_t i;
    char next[24];
    struct isolate *all = isolate_of(r, &w);

    if (all == NULL || !cursor_number(r, &i))
        return;
    uint32_t n = isolate_exclusions(all, &x);
    list_begin(&l, r, &schema_isolation_exclusion);
    for (; i < n && !list_full(&l); i++) {
        struct exclusion_row row = {.at = end_of(&w, x[i].guid, x[i].port),
                                    .until = x[i].until_wall_ns,
                                    .by = x[i].by,
                                    .reason = x[i].reason};
        row.place = &row.at;
        list_item(&l, &row);
    }
    list_end(&l, i < n ? number_text(i, next) : NULL, n, NO_INT, wall_now_ns());
    tele_view_done(&w);
}

// --- by hand ---

static void answer_item(struct request *r, struct tele_view *w, struct isolate *all, uint64_t guid,
                        uint8_t port)
{
    struct isolate_item x;
    struct isolation_row row;
    if (!isolate_check(all, tele_health(w->tele), w->t, guid, port, wall_now_ns(), &x)) {
        answer_problem(r, 404, "there is no such link: port %u of " GUID_FMT, port, GUID_ARG(guid));
        return;
    }
    fill(w, &x, &row);
    answer_struct(r, 200, &schema_isolation, &row);
}

static void isolate_by_hand(struct request *r, struct tele_view *w, struct isolate *all, uint64_t guid,
                            uint8_t port)
{
    bool anyway = json_is_true(json_object_get(r->json, "anyway"));
    struct err e = {0};
    char by[USER_TEXT];
    int rc = isolate_now(all, tele_health(w->tele), w->t, guid, port, user_text(r, by), body_str(r, "reason"),
                         anyway, wall_now_ns(), &e);
    if (rc != 0) {
        answer_problem(r, rc == -ENOENT ? 404 : 409, "%s%s%s%s", e.where, e.where[0] ? ": " : "", e.text,
                       rc == -EPERM ? "; \"anyway\" does it all the same" : "");
        return;
    }
    audit_action(r, body_str(r, "port"), "isolated%s: %.200s", anyway ? " anyway" : "",
                 body_str(r, "reason"));
    answer_item(r, w, all, guid, port);
}

void post_isolation(struct request *r)
{
    struct tele_view w;
    uint64_t guid;
    uint8_t port;
    bool dry = json_is_true(json_object_get(r->json, "dry_run"));
    struct isolate *all = isolate_of(r, &w);

    if (all == NULL || (!dry && !request_may(r, API_OPERATE)) || !take_port(r, &w, false, &guid, &port))
        return;
    if (dry)
        answer_item(r, &w, all, guid, port);
    else
        isolate_by_hand(r, &w, all, guid, port);
    tele_view_done(&w);
}

static void refused(struct request *r, int rc, const struct err *e)
{
    answer_problem(r,
                   rc == -ENOENT   ? 404
                   : rc == -EINVAL ? 400
                                   : 409,
                   "%s%s%s", e->where, e->where[0] ? ": " : "", e->text[0] ? e->text : strerror(-rc));
}

void post_isolation_release(struct request *r)
{
    struct tele_view w;
    struct err e = {0};
    char by[USER_TEXT], text[400];
    uint64_t guid;
    uint8_t port;
    struct isolate *all = isolate_of(r, &w);

    if (all == NULL || !take_port(r, &w, false, &guid, &port))
        return;
    int rc = isolate_release(all, guid, port, user_text(r, by), &e);
    if (rc != 0) {
        refused(r, rc, &e);
        return;
    }
    audit_action(r, body_str(r, "port"), "no longer isolated");
    snprintf(text, sizeof(text), "%.300s carries traffic again", body_str(r, "port"));
    answer_ok(r, text);
}

static bool take_until(struct request *r, int64_t *ret)
{
    const char *span = body_str(r, "for"), *until = body_str(r, "until");
    int64_t seconds;
    if ((span[0] != 0) == (until[0] != 0))
        answer_problem(r, 400, "until when? give \"for\" (3d) or \"until\" (2026-01-31T18:00:00Z)");
    else if (span[0] != 0 && when_parse_age(span, &seconds) == 0 &&
             when_after(wall_now_ns(), seconds, ret) == 0)
        return true;
    else if (until[0] != 0 && when_read(until, wall_now_ns(), true, ret) == 0)
        return true;
    else
        answer_problem(
            r, 400, "\"%.60s\" is no time; give one such as 2h, 3d (36500d at most) or 2026-01-31T18:00:00Z",
            span[0] ? span : until);
    return false;
}

void post_isolation_exclude(struct request *r)
{
    struct isolate_exclusion x = {.reason = body_str(r, "reason")};
    struct tele_view w;
    struct err e = {0};
    char by[USER_TEXT], text[400];
    struct isolate *all = isolate_of(r, &w);

    if (all == NULL || !take_port(r, &w, true, &x.guid, &x.port) || !take_until(r, &x.until_wall_ns))
        return;
    x.by = user_text(r, by);
    int rc = isolate_exclude(all, &x, wall_now_ns(), &e);
    if (rc != 0) {
        refused(r, rc, &e);
        return;
    }
    audit_action(r, body_str(r, "port"), "is not to be isolated: %.200s", x.reason);
    snprintf(text, sizeof(text), "%.300s is not isolated until then", body_str(r, "port"));
    answer_ok(r, text);
}

void post_isolation_include(struct request *r)
{
    struct tele_view w;
    char by[USER_TEXT], text[400];
    uint64_t guid;
    uint8_t port;
    struct isolate *all = isolate_of(r, &w);

    if (all == NULL || !take_port(r, &w, true, &guid, &port))
        return;
    if (isolate_include(all, guid, port, user_text(r, by)) != 0) {
        answer_problem(r, 404, "\"%.120s\" is not on the list of what is not isolated", body_str(r, "port"));
        return;
    }
    audit_action(r, body_str(r, "port"), "may be isolated again");
    snprintf(text, sizeof(text), "%.300s may be isolated again", body_str(r, "port"));
    answer_ok(r, text);
}
