// SPDX-License-Identifier: Apache-2.0
// What changes something. Every action that was carried out is an event: who asked, and for what.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api_priv.h"
#include "lib/guid.h"
#include "lib/log.h"

// --- bodies and answers ---

static const struct field none_fields[] = {{0}};
const struct schema schema_reroute_body = {
    .name = "nothing", "An empty object, or no body", 1, none_fields, true};

static const struct field link_body_fields[] = {
    {.name = "node", .type = FIELD_STR, .at = 0, "NodeGUID or unique name", .need = true},
    {.name = "port", .type = FIELD_INT, .at = 0, "number of its port", .need = true, .min = 1, .max = 254},
    {.name = "up", .type = FIELD_BOOL, .at = 0, "false takes the cable out, true puts it back", .need = true},
    {0},
};
const struct schema schema_sim_link_body = {
    .name = "sim_link", "A simulated cable", 1, link_body_fields, true};

static const char *const node_actions[] = {"kill", "revive", "reboot", NULL};
static const struct field node_body_fields[] = {
    {.name = "node", .type = FIELD_STR, .at = 0, "NodeGUID or unique name", .need = true},
    {.name = "action",
     .type = FIELD_STR,
     .at = 0,
     "kill: its agent stops answering; revive; reboot: it forgets all",
     .need = true,
     .name_of = node_actions},
    {0},
};
const struct schema schema_sim_node_body = {
    .name = "sim_node", "A simulated node", 1, node_body_fields, true};

static const struct field loss_body_fields[] = {
    {.name = "loss",
     .type = FIELD_NUM,
     .at = 0,
     "share of datagrams lost at every device",
     .need = true,
     .min = 0,
     .max = 1},
    {0},
};
const struct schema schema_sim_loss_body = {
    .name = "sim_loss", "Loss of datagrams", 1, loss_body_fields, true};

struct asked_row {
    int64_t sweep;
};
static const struct field asked_fields[] = {
    {.name = "sweep",
     .type = FIELD_INT,
     .at = offsetof(struct asked_row, sweep),
     "id that the sweep will have"},
    {0},
};
const struct schema schema_sweep_asked = {
    .name = "sweep_asked", "A sweep that was asked for", sizeof(struct asked_row), asked_fields};

struct done_row {
    bool ok;
    const char *text;
};
static const struct field done_fields[] = {
    {.name = "ok", .type = FIELD_BOOL, .at = offsetof(struct done_row, ok), "true"},
    {.name = "text", .type = FIELD_STR, .at = offsetof(struct done_row, text), "what was done"},
    {0},
};
const struct schema schema_done = {
    .name = "done", "Something was done", sizeof(struct done_row), done_fields};

static void audit(struct request *r, const char *subject, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void audit(struct request *r, const char *subject, const char *fmt, ...)
{
    char what[300], text[400], q1[300], q2[600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    snprintf(text, sizeof(text), "user id %u: %s", (unsigned)r->uid, what);
    log_notice("operator-action", "fabric=%s uid=%u subject=\"%s\" text=\"%s\"", r->view->src->name,
               (unsigned)r->uid, log_quote(subject, q1, sizeof(q1)), log_quote(what, q2, sizeof(q2)));
    if (r->api->c.db == NULL)
        return;
    api_event(r->api, db_event_add(r->api->c.db, &(struct db_event){.wall_ns = wall_now_ns(),
                                                                    .fabric = r->view->src->name,
                                                                    .kind = "operator-action",
                                                                    .severity = "notice",
                                                                    .subject = subject,
                                                                    .text = text,
                                                                    .data = ""}));
}

// --- sweeps ---

static void ask_sweep(struct request *r, bool reroute)
{
    struct view *v = r->view;
    struct sm_status st;

    if (v->src->sm == NULL) {
        if (v->src->offline != NULL)
            answer_problem(r, 409, "fabric %s is a file; nothing manages it", v->src->name);
        else
            answer_problem(r, 503, "fabric %s is not managed: %s", v->src->name,
                           v->src->down ? v->src->down : "there is no port");
        return;
    }
    sm_get_status(v->src->sm, &st);
    if (st.state == SM_STANDBY && reroute) {
        answer_problem(r, 409, "another subnet manager runs fabric %s; weft stands by and writes no routes",
                       v->src->name);
        return;
    }
    audit(r, "", reroute ? "routes are computed anew" : "the whole fabric is looked at again");
    sm_resweep(v->src->sm, "operator", reroute);
    answer_struct(r, 202, &schema_sweep_asked,
                  &(struct asked_row){(int64_t)st.sweeps + (st.sweeping ? 2 : 1)});
}

void post_reroute(struct request *r)
{
    ask_sweep(r, true);
}

void post_resweep(struct request *r)
{
    ask_sweep(r, false);
}

// --- the simulator ---

static struct sim *sim_of(struct request *r)
{
    if (r->view->src->sim == NULL)
        answer_problem(r, 409, "fabric %s is not simulated: this would need hands in the machine room",
                       r->view->src->name);
    return r->view->src->sim;
}

// GUID of the node named in the body. A node that is dead or cut off is in no snapshot, so names are looked
// up in the largest generation that was seen; a GUID needs none.
static bool sim_node_of(struct request *r, uint64_t *ret, char *name, size_t size)
{
    const char *text = json_string_value(json_object_get(r->json, "node"));
    struct err e = {0};
    struct place at;
    int rc = -ENOENT;

    view_fabric(r->view);
    const struct fabric *f = r->view->names;
    if (f != NULL && (rc = resolve(f, text, 0, &at, &e)) == 0) {
        *ret = at.node->guid;
        fabric_node_name(f, at.node, name, size);
        return true;
    }
    if ((f == NULL || rc == -ENOENT) && guid_parse(text, ret) == 0) {
        snprintf(name, size, GUID_FMT, GUID_ARG(*ret));
        return true;
    }
    if (f == NULL)
        err_set(&e, -ENOENT, text, "fabric %s has not been discovered yet: give a GUID", r->view->src->name);
    answer_unresolved(r, "node", rc, &e);
    return false;
}

static void answer_done(struct request *r, int rc, const char *what, const char *name)
{
    char text[300];
    if (rc != 0) {
        answer_problem(r, rc == -ENOENT ? 404 : 409, "%s: %s", name,
                       rc == -ENOENT ? "the simulated fabric has no such node or port" : strerror(-rc));
        return;
    }
    snprintf(text, sizeof(text), "%s %s", name, what);
    audit(r, name, "simulator: %s", text);
    answer_struct(r, 200, &schema_done, &(struct done_row){true, text});
}

void post_sim_link(struct request *r)
{
    struct sim *sim = sim_of(r);
    uint64_t guid;
    char name[200], port[240];

    if (sim == NULL || !sim_node_of(r, &guid, name, sizeof(name)))
        return;
    unsigned num = (unsigned)json_integer_value(json_object_get(r->json, "port"));
    bool up = json_is_true(json_object_get(r->json, "up"));
    snprintf(port, sizeof(port), "%s[%u]", name, num);
    answer_done(r, sim_link_set(sim, guid, num, up), up ? "has its cable again" : "lost its cable", port);
}

void post_sim_node(struct request *r)
{
    struct sim *sim = sim_of(r);
    uint64_t guid;
    char name[200];

    if (sim == NULL || !sim_node_of(r, &guid, name, sizeof(name)))
        return;
    const char *action = json_string_value(json_object_get(r->json, "action"));
    if (strcmp(action, "reboot") == 0)
        answer_done(r, sim_node_reboot(sim, guid), "reboots", name);
    else if (strcmp(action, "kill") == 0)
        answer_done(r, sim_node_kill(sim, guid, true), "does not answer any more", name);
    else
        answer_done(r, sim_node_kill(sim, guid, false), "answers again", name);
}

void post_sim_loss(struct request *r)
{
    struct sim *sim = sim_of(r);
    char text[80];
    if (sim == NULL)
        return;
    double loss = json_number_value(json_object_get(r->json, "loss"));
    sim_set_loss(sim, loss);
    snprintf(text, sizeof(text), "loses %g of all datagrams at every device", loss);
    answer_done(r, 0, text, r->view->src->name);
}
