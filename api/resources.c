// SPDX-License-Identifier: Apache-2.0
// The table of resources, and how a request finds its row: path, method, role, fabric, parameters, body, in
// this order, each with an answer of its own when it does not fit.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"

#define GET_(p) "GET", p, API_READ
#define POST_(p) "POST", "/fabrics/{f}/" p, API_OPERATE

static const char *const formats[] = {"json", "csv", NULL};
const struct param list_params[] = {
    {.name = "limit",
     .type = PARAM_INT,
     .min = 1,
     .max = LIMIT_MAX,
     .doc = "items at most; 1000 when absent"},
    {.name = "cursor", .type = PARAM_STR, .doc = "\"next\" of the answer before"},
    {.name = "format",
     .type = PARAM_ENUM,
     .name_of = formats,
     .doc = "csv: the items as a table; the cursor is in the header X-Next-Cursor then"},
    {0},
};
#define FOCUS_PARAM                                                                                          \
    {                                                                                                        \
        .name = "focus", .type = PARAM_STR, .doc = "only those with these fields, in the focus language"     \
    }
static const struct param node_params[] = {
    {.name = "type", .type = PARAM_ENUM, .name_of = node_type_names, .doc = "only nodes of this type"},
    {.name = "role", .type = PARAM_ENUM, .name_of = node_role_names, .doc = "only nodes of this role"},
    {.name = "name", .type = PARAM_STR, .doc = "only names that contain this, in either case"},
    FOCUS_PARAM,
    {0},
};
static const struct param port_params[] = {
    {.name = "node", .type = PARAM_STR, .doc = "only the ports of this node: its GUID or unique name"},
    FOCUS_PARAM,
    {0},
};
static const struct param link_params[] = {
    FOCUS_PARAM,
    {.name = "away",
     .type = PARAM_BOOL,
     .doc = "cables of the blueprint that are away instead, as they were; their state is down"},
    {0},
};
static const struct param route_params[] = {
    {.name = "from",
     .type = PARAM_STR,
     .need = true,
     .doc = "GUID, GID, LID or unique name of an end port or node"},
    {.name = "to", .type = PARAM_STR, .need = true, .doc = "the same"},
    {0},
};
static const struct param event_params[] = {
    {.name = "after", .type = PARAM_INT, .min = 0, .max = INT64_MAX, .doc = "only events with a higher id"},
    {.name = "fabric", .type = PARAM_STR, .doc = "only events of this fabric"},
    {.name = "kind", .type = PARAM_STR, .doc = "only events of this kind"},
    {.name = "newest", .type = PARAM_BOOL, .doc = "newest first"},
    {0},
};
static const struct param stream_params[] = {
    {.name = "after",
     .type = PARAM_INT,
     .min = 0,
     .max = INT64_MAX,
     .doc = "begin behind this id, as the header Last-Event-ID does; when absent, with what comes"},
    {.name = "fabric", .type = PARAM_STR, .doc = "only events of this fabric"},
    {.name = "kind", .type = PARAM_STR, .doc = "only events of this kind"},
    {0},
};

const struct resource resource_rows[] = {
    {GET_("/status"), ANSWER_OBJECT, 200, false, NULL, &schema_status, NULL, get_status, "getStatus",
     "The whole daemon"},
    {GET_("/fabrics"), ANSWER_LIST, 200, false, NULL, &schema_fabric, NULL, get_fabrics, "listFabrics",
     "The fabrics that it manages"},
    {GET_("/fabrics/{f}"), ANSWER_OBJECT, 200, false, NULL, &schema_fabric, NULL, get_fabric, "getFabric",
     "One fabric"},
    {GET_("/fabrics/{f}/nodes"), ANSWER_LIST, 200, true, node_params, &schema_node, NULL, get_nodes,
     "listNodes", "Nodes, by GUID"},
    {GET_("/fabrics/{f}/nodes/{guid}"), ANSWER_OBJECT, 200, true, NULL, &schema_node_detail, NULL, get_node,
     "getNode", "One node with its ports, by GUID or unique name"},
    {GET_("/fabrics/{f}/ports"), ANSWER_LIST, 200, true, port_params, &schema_port, NULL, get_ports,
     "listPorts", "Ports, by the node's GUID and number"},
    {GET_("/fabrics/{f}/links"), ANSWER_LIST, 200, true, link_params, &schema_link, NULL, get_links,
     "listLinks", "Links, each once: a is the lower end"},
    {GET_("/fabrics/{f}/routes"), ANSWER_OBJECT, 200, true, route_params, &schema_route, NULL, get_route,
     "getRoute", "The path that the tables in force take"},
    {GET_("/fabrics/{f}/routes/past"), ANSWER_OBJECT, 200, false, route_past_params, &schema_route_past, NULL,
     get_route_past, "getRoutePast",
     "The same path, and what each of its links did over a time: errors, downs, waits, discards. From "
     "history"},
    {GET_("/fabrics/{f}/route-quality"), ANSWER_OBJECT, 200, false, NULL, &schema_route_quality, NULL,
     get_route_quality, "getRouteQuality",
     "How well the tables in force spread traffic, beside the ideal ones and those before; computed when "
     "first "
     "asked for"},
    {GET_("/fabrics/{f}/adaptive-routing"), ANSWER_LIST, 200, false, NULL, &schema_adaptive_switch, NULL,
     get_adaptive, "listAdaptiveSwitches",
     "Switches that were asked whether they route adaptively; empty when that is not turned on"},
    {GET_("/fabrics/{f}/export"), ANSWER_TEXT, 200, false, export_params, NULL, NULL, get_export,
     "exportFabric",
     "The fabric in the form of another program. For Slurm all that the blueprint has; else what is there "
     "now"},
    {GET_("/fabrics/{f}/findings"), ANSWER_LIST, 200, true, NULL, &schema_finding, NULL, get_findings,
     "listFindings", "What is odd about the fabric, errors first"},
    {GET_("/fabrics/{f}/sweeps"), ANSWER_LIST, 200, false, NULL, &schema_sweep, NULL, get_sweeps,
     "listSweeps", "The last sweeps, newest first"},
    {GET_("/fabrics/{f}/groups"), ANSWER_LIST, 200, false, NULL, &schema_group, NULL, get_groups,
     "listGroups", "Multicast groups, by MGID"},
    {GET_("/fabrics/{f}/groups/{mgid}"), ANSWER_OBJECT, 200, false, NULL, &schema_group_detail, NULL,
     get_group, "getGroup", "One multicast group with its members, by MGID or MLID"},
    {GET_("/fabrics/{f}/mads"), ANSWER_LIST, 200, false, NULL, &schema_mad, NULL, get_mads, "listMads",
     "Counters of management datagrams by method and attribute"},
    {GET_("/counters"), ANSWER_LIST, 200, false, NULL, &schema_counter, NULL, get_counter_rows,
     "listCounters", "The counters that ports have: names, units, what they mean"},
    {GET_("/fabrics/{f}/counters"), ANSWER_LIST, 200, false, counters_params, &schema_counters, NULL,
     get_counters, "getCounters",
     "Counters of ports now, with rates; 250 ports an answer at most. An answer may have fewer than asked "
     "for, "
     "and a next"},
    {GET_("/fabrics/{f}/counters/history"), ANSWER_LIST, 200, false, history_params, &schema_sample, NULL,
     get_history, "getHistory",
     "What counters said over a time, of ports or taken together; at most 20000 samples, else it is refused "
     "and "
     "says what would do"},
    {GET_("/fabrics/{f}/counters/vl-waits"), ANSWER_OBJECT, 200, false, vl_wait_params, &schema_vl_waits,
     NULL, get_vl_waits, "getVlWaits", "Waits of one port by virtual lane; the port is asked now"},
    {GET_("/fabrics/{f}/top"), ANSWER_LIST, 200, false, top_params, &schema_top, NULL, get_top, "getTop",
     "The ports that stand out, now or over a time"},
    {GET_("/fabrics/{f}/congestion"), ANSWER_OBJECT, 200, false, congestion_params, &schema_congestion, NULL,
     get_congestion, "getCongestion", "Who waits for whom, and who is the root of it"},
    {GET_("/fabrics/{f}/health"), ANSWER_LIST, 200, false, health_params, &schema_health, NULL, get_health,
     "listHealth", "How links are, the worst first"},
    {GET_("/fabrics/{f}/devices"), ANSWER_LIST, 200, false, device_params, &schema_device, NULL, get_devices,
     "listDevices",
     "Temperatures, fans and power supplies of devices, as ibdiagnet's file has them; the worst first; 250 "
     "an "
     "answer at most"},
    {GET_("/fabrics/{f}/unread"), ANSWER_LIST, 200, false, NULL, &schema_unread, NULL, get_unread,
     "listUnread", "Devices that do not give their counters, why, and since when"},
    {GET_("/fabrics/{f}/isolations"), ANSWER_LIST, 200, false, NULL, &schema_isolation, NULL, get_isolations,
     "listIsolations", "Links that should carry no traffic: isolated, proposed, or kept for a reason"},
    {"POST", "/fabrics/{f}/isolations", API_READ, ANSWER_OBJECT, 200, false, NULL, &schema_isolation,
     &schema_isolate_body, post_isolation, "isolate",
     "Keeps traffic off a link until it is released or clean; or says what stands against it"},
    {POST_("isolations/release"), ANSWER_OBJECT, 200, false, NULL, &schema_done, &schema_isolate_port_body,
     post_isolation_release, "releaseIsolation", "Lets it carry traffic again"},
    {GET_("/fabrics/{f}/isolations/exclusions"), ANSWER_LIST, 200, false, NULL, &schema_isolation_exclusion,
     NULL, get_isolation_exclusions, "listIsolationExclusions", "What is not isolated, and until when"},
    {POST_("isolations/exclude"), ANSWER_OBJECT, 200, false, NULL, &schema_done, &schema_exclude_body,
     post_isolation_exclude, "excludeIsolation", "A link or a node's links are not isolated for a time"},
    {POST_("isolations/include"), ANSWER_OBJECT, 200, false, NULL, &schema_done, &schema_isolate_port_body,
     post_isolation_include, "includeIsolation", "They may be isolated again"},
    {GET_("/alarms"), ANSWER_LIST, 200, false, alarm_params, &schema_alarm, NULL, get_alarms, "listAlarms",
     "What is wrong, the worst first"},
    {GET_("/alarms/{id}"), ANSWER_OBJECT, 200, false, NULL, &schema_alarm_detail, NULL, get_alarm, "getAlarm",
     "One alarm, with its rule and, of a group, its members"},
    {"POST", "/alarms/{id}/ack", API_OPERATE, ANSWER_OBJECT, 200, false, NULL, &schema_alarm_detail,
     &schema_ack_body, post_alarm_ack, "ackAlarm", "Somebody takes it on"},
    {GET_("/silences"), ANSWER_LIST, 200, false, NULL, &schema_silence, NULL, get_silences, "listSilences",
     "Alarms that nobody is told of for a time"},
    {"POST", "/silences", API_OPERATE, ANSWER_OBJECT, 200, false, NULL, &schema_silence, &schema_silence_body,
     post_silence, "addSilence", "Silences alarms, or begins a maintenance window"},
    {"DELETE", "/silences/{id}", API_OPERATE, ANSWER_OBJECT, 200, false, NULL, &schema_done, NULL,
     delete_silence, "endSilence", "Ends it now"},
    {GET_("/db"), ANSWER_LIST, 200, false, NULL, &schema_db, NULL, get_db, "listDatabases",
     "Databases and history's files: can they be written, how large are they"},
    {"POST", "/db/check", API_OPERATE, ANSWER_OBJECT, 202, false, NULL, &schema_job, &schema_nothing_body,
     post_db_check, "checkDatabases",
     "Reads all files of history and looks for damage; the job's result is an object db_checked"},
    {GET_("/events"), ANSWER_LIST, 200, false, event_params, &schema_event, NULL, get_events, "listEvents",
     "What happened, oldest first"},
    {GET_("/events/stream"), ANSWER_RAW, 200, false, stream_params, &schema_event, NULL, get_stream,
     "streamEvents", "Server-sent events: data is an event, id its id; a comment every 15 s"},
    {GET_("/jobs/{id}"), ANSWER_OBJECT, 200, false, NULL, &schema_job, NULL, get_job, "getJob",
     "A job and its result; kept for ten minutes"},
    {GET_("/openapi.json"), ANSWER_RAW, 200, false, NULL, NULL, NULL, get_openapi, "getOpenapi",
     "This document"},
    {GET_("/fabrics/{f}/blueprint"), ANSWER_OBJECT, 200, false, NULL, &schema_blueprint, NULL, get_blueprint,
     "getBlueprint", "The blueprint beside what is there"},
    {POST_("blueprint/accept"), ANSWER_OBJECT, 202, false, NULL, &schema_job, &schema_blueprint_body,
     post_blueprint_accept, "acceptBlueprint",
     "Makes all that is seen part of the blueprint, and fixes that; or shows what would come of it"},
    {POST_("blueprint/learn"), ANSWER_OBJECT, 202, false, NULL, &schema_job, &schema_blueprint_body,
     post_blueprint_learn, "learnBlueprint", "Makes what is seen part of the blueprint from now on"},
    {POST_("blueprint/set"), ANSWER_OBJECT, 202, false, NULL, &schema_job, &schema_blueprint_set_body,
     post_blueprint_set, "setBlueprint", "Gives a blueprint, as a topology's text"},
    {POST_("blueprint/strike"), ANSWER_OBJECT, 202, false, NULL, &schema_job, &schema_blueprint_strike_body,
     post_blueprint_strike, "strikeBlueprint", "Takes what is gone for good out of the blueprint"},
    {"POST", "/fabrics/{f}/reroute", API_READ, ANSWER_OBJECT, 202, false, NULL, &schema_reroute_asked,
     &schema_reroute_body, post_reroute, "reroute",
     "Makes what is there the blueprint, computes its routes anew, proves and writes them; or shows what "
     "would come of it"},
    {POST_("resweep"), ANSWER_OBJECT, 202, false, NULL, &schema_sweep_asked, &schema_nothing_body,
     post_resweep, "resweep", "Looks at the whole fabric again"},
    {GET_("/fabrics/{f}/drains"), ANSWER_LIST, 200, false, NULL, &schema_drain, NULL, get_drains,
     "listDrains", "Cables and switches that traffic is kept off, the oldest first"},
    {POST_("drains"), ANSWER_OBJECT, 202, false, NULL, &schema_drained, &schema_drain_body, post_drain,
     "drain", "Keeps traffic off a cable or a switch until it is undrained; 200 when that is so already"},
    {POST_("undrain"), ANSWER_OBJECT, 202, false, NULL, &schema_drained, &schema_undrain_body, post_undrain,
     "undrain", "Lets it carry traffic again; 200 when it is not drained"},
    {"POST", "/fabrics/{f}/drain-checks", API_READ, ANSWER_OBJECT, 202, false, NULL, &schema_job,
     &schema_drain_check_body, post_drain_check, "checkDrain",
     "What draining, or undraining, would move; the job's result is an object drain_effect"},
    {GET_("/fabrics/{f}/sim"), ANSWER_OBJECT, 200, false, NULL, &schema_sim, NULL, get_sim, "getSim",
     "How a simulated fabric stands"},
    {GET_("/fabrics/{f}/sim/actions"), ANSWER_LIST, 200, false, NULL, &schema_sim_verb, NULL, get_sim_actions,
     "listSimActions", "What can be done to a simulated fabric, and what each verb needs"},
    {POST_("sim/actions"), ANSWER_OBJECT, 200, false, NULL, &schema_done, &schema_sim_action_body,
     post_sim_action, "simAction", "Does something to a simulated fabric"},
    {POST_("sim/link"), ANSWER_OBJECT, 200, false, NULL, &schema_done, &schema_sim_link_body, post_sim_link,
     "simLink", "Takes a simulated cable out or puts it back"},
    {POST_("sim/node"), ANSWER_OBJECT, 200, false, NULL, &schema_done, &schema_sim_node_body, post_sim_node,
     "simNode", "Kills, revives or reboots a simulated node"},
    {POST_("sim/loss"), ANSWER_OBJECT, 200, false, NULL, &schema_done, &schema_sim_loss_body, post_sim_loss,
     "simLoss", "Sets the share of datagrams that the simulated fabric loses"},
    {"POST", "/fabrics/{f}/route-computations", API_READ, ANSWER_OBJECT, 202, false, NULL, &schema_job,
     &schema_computation_body, post_route_computation, "computeRoutes",
     "What routes would be, also with elements failed; nothing touches the fabric"},
    {"POST", "/fabrics/{f}/job-quality", API_READ, ANSWER_OBJECT, 202, false, NULL, &schema_job,
     &schema_job_quality_body, post_job_quality, "rateJob",
     "What a job's rings, trees and all-to-all would meet on the tables in force (a file: on computed ones), "
     "and the cables to blame; also with elements failed"},
    {"POST", "/fabrics/{f}/whatif", API_READ, ANSWER_OBJECT, 202, false, NULL, &schema_job,
     &schema_whatif_body, post_whatif, "askWhatif",
     "What would become of the fabric: who is cut off, quality before and after, what would be written; "
     "nothing "
     "touches the fabric"},
    {0},
};

// --- finding the row ---

static const char *const no_arg = "";

// Compares the template with the path behind API_BASE. Fills fabric and arg.
static bool matches(const char *path, const struct uri *u, const char **ret_fabric, const char **ret_arg)
{
    unsigned i = 2; // behind api, v1
    *ret_fabric = *ret_arg = NULL;
    while (*path == '/') {
        const char *seg = ++path;
        size_t n = strcspn(path, "/");
        path += n;
        if (i >= u->num_segments)
            return false;
        const char *have = u->segment[i++];
        if (*seg != '{') {
            if (strlen(have) != n || memcmp(seg, have, n) != 0)
                return false;
        } else if (seg[1] == 'f') {
            *ret_fabric = have;
        } else {
            *ret_arg = have;
        }
    }
    return i == u->num_segments;
}

static bool method_fits(const char *row, const char *asked)
{
    return strcmp(row, asked) == 0 || (strcmp(row, "GET") == 0 && strcmp(asked, "HEAD") == 0);
}

size_t resource_body_max(const char *method, const char *raw)
{
    struct err e = {0};
    struct uri u;
    const char *fabric, *arg;
    if (uri_parse(&u, raw, &e) != 0 || u.num_segments < 2)
        return BODY_MAX;
    for (const struct resource *q = resource_rows; q->method != NULL; q++)
        if (q->body != NULL && q->body->body_max > 0 && method_fits(q->method, method) &&
            matches(q->path, &u, &fabric, &arg))
            return q->body->body_max;
    return BODY_MAX;
}

// The row, or NULL with an answer: 404, or 405 with the methods there are.
static const struct resource *find(struct request *r, const char **ret_fabric)
{
    const struct uri *u = &r->uri;
    const char *fabric, *arg;

    if (u->num_segments < 2 || strcmp(u->segment[0], "api") != 0 || strcmp(u->segment[1], "v1") != 0) {
        answer_problem(r, 404,
                       "there is nothing here; the API is at " API_BASE "/status, " API_BASE
                       "/openapi.json describes it");
        return NULL;
    }
    for (const struct resource *q = resource_rows; q->method != NULL; q++) {
        if (!matches(q->path, u, &fabric, &arg))
            continue;
        *ret_fabric = fabric;
        r->arg = arg != NULL ? arg : no_arg;
        if (method_fits(q->method, r->method))
            return q;
        size_t n = strlen(r->allow);
        snprintf(r->allow + n, sizeof(r->allow) - n, "%s%s", n > 0 ? ", " : "",
                 strcmp(q->method, "GET") == 0 ? "GET, HEAD" : q->method);
    }
    if (r->allow[0] != 0)
        answer_problem(r, 405, "%.20s is not for this resource; it takes %s", r->method, r->allow);
    else
        answer_problem(r, 404, "no resource \"%.100s\"; " API_BASE "/openapi.json lists them", r->raw);
    return NULL;
}

static bool find_fabric(struct request *r, const char *name)
{
    struct api *a = r->api;
    struct buf b = {0};
    for (unsigned i = 0; i < a->c.num_fabrics; i++) {
        if (strcmp(a->c.fabric[i]->name, name) == 0) {
            r->view = &a->view[i];
            buf_done(&b);
            return true;
        }
        if (b.len < 400)
            buf_printf(&b, "%s%s", i ? ", " : "", a->c.fabric[i]->name);
    }
    answer_problem(r, 404, "no fabric \"%.60s\"; there is: %s", name, b.data ? b.data : "none");
    buf_done(&b);
    return false;
}

// --- parameters ---

const char *query_str(const struct request *r, const char *name)
{
    const char *v = uri_param(&r->uri, name);
    return v != NULL && v[0] != 0 ? v : NULL;
}

const char *body_str(const struct request *r, const char *name)
{
    const char *s = json_string_value(json_object_get(r->json, name));
    return s != NULL ? s : "";
}

int64_t query_int(const struct request *r, const char *name, int64_t def)
{
    const char *v = query_str(r, name);
    return v != NULL ? strtoll(v, NULL, 10) : def;
}

bool query_bool(const struct request *r, const char *name)
{
    const char *v = query_str(r, name);
    return v != NULL && (strcmp(v, "1") == 0 || strcmp(v, "true") == 0);
}

static const struct param *known(const struct param *p, const char *name)
{
    for (; p != NULL && p->name != NULL; p++)
        if (strcmp(p->name, name) == 0)
            return p;
    return NULL;
}

static void add_names(struct buf *b, const struct param *p)
{
    for (; p != NULL && p->name != NULL; p++)
        buf_printf(b, "%s%s", b->len ? ", " : "", p->name);
}

static void unknown_param(struct request *r, const char *name)
{
    struct buf b = {0};
    add_names(&b, r->res->param);
    if (r->res->kind == ANSWER_LIST)
        add_names(&b, list_params);
    answer_problem(r, 400, "unknown parameter \"%.60s\"; known: %s", name, b.data ? b.data : "none");
    buf_done(&b);
}

static bool good_int(const struct param *p, const char *v)
{
    char *end;
    size_t n = strlen(v);
    if (n == 0 || n > 19 || strspn(v, "0123456789") != n)
        return false;
    unsigned long long x = strtoull(v, &end, 10);
    return x <= INT64_MAX && (int64_t)x >= p->min && (int64_t)x <= p->max;
}

static bool good_enum(const struct param *p, const char *v)
{
    for (const char *const *n = p->name_of; *n != NULL; n++)
        if (strcmp(*n, v) == 0)
            return true;
    return false;
}

static void bad_enum(struct request *r, const struct param *p, const char *v)
{
    struct buf b = {0};
    for (const char *const *n = p->name_of; *n != NULL; n++)
        buf_printf(&b, "%s%s", b.len ? ", " : "", *n);
    answer_problem(r, 400, "parameter \"%s\" must be one of %s, not \"%.60s\"", p->name, b.data, v);
    buf_done(&b);
}

static bool check_param(struct request *r, const struct param *p, const char *v)
{
    if (v[0] == 0) // "?name=" is as good as absent
        return true;
    switch (p->type) {
    case PARAM_STR:
        return true;
    case PARAM_INT:
        if (good_int(p, v))
            return true;
        if (p->max == INT64_MAX)
            answer_problem(r, 400, "parameter \"%s\" must be a whole number, not \"%.60s\"", p->name, v);
        else
            answer_problem(r, 400, "parameter \"%s\" must be a whole number from %lld to %lld, not \"%.60s\"",
                           p->name, (long long)p->min, (long long)p->max, v);
        return false;
    case PARAM_BOOL:
        if (strcmp(v, "0") == 0 || strcmp(v, "1") == 0 || strcmp(v, "true") == 0 || strcmp(v, "false") == 0)
            return true;
        answer_problem(r, 400, "parameter \"%s\" must be 0 or 1, not \"%.60s\"", p->name, v);
        return false;
    case PARAM_ENUM:
        if (good_enum(p, v))
            return true;
        bad_enum(r, p, v);
        return false;
    }
    return true;
}

static bool check_params(struct request *r)
{
    for (unsigned i = 0; i < r->uri.num_params; i++) {
        const char *name = r->uri.param[i].name;
        const struct param *p = known(r->res->param, name);
        if (p == NULL && r->res->kind == ANSWER_LIST)
            p = known(list_params, name);
        if (p == NULL) {
            unknown_param(r, name);
            return false;
        }
        if (!check_param(r, p, r->uri.param[i].value))
            return false;
    }
    for (const struct param *p = r->res->param; p != NULL && p->name != NULL; p++)
        if (p->need && query_str(r, p->name) == NULL) {
            answer_problem(r, 400, "parameter \"%s\" is missing: %s", p->name, p->doc);
            return false;
        }
    return true;
}

// --- rights and bodies ---

bool request_may(struct request *r, enum api_role role)
{
    if (r->role >= role)
        return true;
    answer_problem(r, 403, "user id %u may only read; root and the user that weftd runs as may do this",
                   (unsigned)r->uid);
    return false;
}

static bool check_role(struct request *r)
{
    if (strcmp(r->res->method, "GET") != 0 && !r->listener->is_unix) {
        answer_problem(r, 403, "HTTP over TCP is read only; use the unix socket%s%s",
                       r->api->socket[0] ? " " : ", which is off: give one with --socket", r->api->socket);
        return false;
    }
    return request_may(r, r->res->role);
}

static bool check_body(struct request *r)
{
    json_error_t je;
    struct err e = {0};

    if (r->res->body == NULL)
        return true;
    if (r->body.len == 0)
        r->json = json_object();
    else
        r->json = json_loadb(r->body.data, r->body.len, JSON_REJECT_DUPLICATES, &je);
    if (r->json == NULL) {
        answer_problem(r, 400, "the body is no JSON: line %d, column %d: %s", je.line, je.column, je.text);
        return false;
    }
    if (schema_check_body(r->res->body, r->json, &e) == 0)
        return true;
    answer_problem(r, 400, "%s", e.text);
    return false;
}

// The tag names what an answer is made of: this run of the daemon and the fabric's last change. A focus may
// ask for counters.
static void make_etag(struct request *r)
{
    const char *format = query_str(r, "format");
    if (!r->res->etag || query_str(r, "focus") != NULL || view_fabric(r->view) == NULL)
        return;
    snprintf(r->etag, sizeof(r->etag), "\"%llx-%llx-%llx%s\"", (unsigned long long)r->api->c.started_wall_ns,
             (unsigned long long)r->view->f->generation, (unsigned long long)r->view->changes,
             format != NULL && strcmp(format, "csv") == 0 ? "-csv" : "");
}

void resource_dispatch(struct request *r)
{
    struct err e = {0};
    const char *fabric = NULL;

    if (!auth_request(r))
        return;
    int rc = uri_parse(&r->uri, r->raw, &e);
    if (rc != 0) {
        answer_problem(r, rc == -ENAMETOOLONG ? 414 : 400, "%s", e.text);
        return;
    }
    loop_doing(r->api->c.loop, "metrics");
    if (metrics_request(r))
        return;
    r->res = find(r, &fabric);
    loop_doing(r->api->c.loop, r->res != NULL ? r->res->name : "http");
    if (r->res == NULL || !check_role(r) || (fabric != NULL && !find_fabric(r, fabric)) || !check_params(r) ||
        !check_body(r))
        return;
    make_etag(r);
    const char *have = r->etag[0] ? http_header(r, "If-None-Match") : NULL;
    if (have != NULL && (strstr(have, r->etag) != NULL || strcmp(have, "*") == 0)) {
        r->status = 304;
        return;
    }
    r->res->fn(r);
}
