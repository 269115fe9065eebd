// SPDX-License-Identifier: Apache-2.0
// The daemon and its fabrics at a glance, with advice: what is wrong and what to do next.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/adaptive.h"
#include "api/api_priv.h"
#include "api/render_loop.h"
#include "api/quality.h"
#include "api/tele.h"
#include "api/watch.h"
#include "lib/guid.h"
#include "lib/xalloc.h"
#include "sm/drain.h"

#define ADVICE_MAX 16
#define ADVICE_FINDINGS 4 // of error severity, told one by one

// --- rows ---

struct sm_row {
    const char *state, *phase;
    int64_t lid, priority;
    uint64_t port_guid;
    bool sweeping;
};
#define SM(f) offsetof(struct sm_row, f)
static const char *const sm_states[] = {"not-active", "discovering", "standby", "master", NULL};
static const struct field sm_fields[] = {
    {.name = "state", .type = FIELD_STR, .at = SM(state), "SMInfo.SMState", .name_of = sm_states},
    {.name = "lid", .type = FIELD_INT, .at = SM(lid), "our own LID", .null = true},
    {.name = "port_guid", .type = FIELD_GUID, .at = SM(port_guid), "our own PortGUID", .null = true},
    {.name = "priority", .type = FIELD_INT, .at = SM(priority), "our own, 0 to 15"},
    {.name = "sweeping", .type = FIELD_BOOL, .at = SM(sweeping), "a sweep is running"},
    {.name = "phase", .type = FIELD_STR, .at = SM(phase), "its phase", .null = true},
    {0},
};
static const struct schema schema_sm = {.name = "sm", "The subnet manager", sizeof(struct sm_row), sm_fields};

struct other_row {
    uint64_t guid;
    int64_t lid, priority;
    const char *state;
};
#define OTHER(f) offsetof(struct other_row, f)
static const struct field other_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = OTHER(guid), "its PortGUID"},
    {.name = "lid", .type = FIELD_INT, .at = OTHER(lid), "its LID", .null = true},
    {.name = "priority", .type = FIELD_INT, .at = OTHER(priority), "its priority"},
    {.name = "state", .type = FIELD_STR, .at = OTHER(state), "its SMInfo.SMState", .name_of = sm_states},
    {0},
};
static const struct schema schema_other = {.name = "other_sm",
                                           "The subnet manager that runs the fabric instead",
                                           sizeof(struct other_row),
                                           other_fields};

struct routing_row {
    const char *engine, *why, *counter_example;
    uint64_t top_guid;
    bool verified;
    int64_t pairs, disconnected, unreached, max_hops, lids, lanes, lmc;
    const struct quality_brief *quality, *ideal, *last;
};
#define ROUTING(f) offsetof(struct routing_row, f)
static const struct field routing_fields[] = {
    {.name = "engine",
     .type = FIELD_STR,
     .at = ROUTING(engine),
     "what made the tables in force",
     .null = true},
    {.name = "why", .type = FIELD_STR, .at = ROUTING(why), "why it was chosen"},
    {.name = "top_guid",
     .type = FIELD_GUID,
     .at = ROUTING(top_guid),
     "rail, updn: the top switch of the order",
     .null = true},
    {.name = "verified", .type = FIELD_BOOL, .at = ROUTING(verified), "the tables in force are proved"},
    {.name = "lmc",
     .type = FIELD_INT,
     .at = ROUTING(lmc),
     "LMC in force: adapter ports have up to 2^lmc LIDs, and as many routes"},
    {.name = "pairs",
     .type = FIELD_INT,
     .at = ROUTING(pairs),
     "(leaf, destination) pairs walked by the proof"},
    {.name = "disconnected",
     .type = FIELD_INT,
     .at = ROUTING(disconnected),
     "pairs without any path of cables"},
    {.name = "unreached", .type = FIELD_INT, .at = ROUTING(unreached), "pairs that should arrive and do not"},
    {.name = "max_hops", .type = FIELD_INT, .at = ROUTING(max_hops), "longest path in switches"},
    {.name = "counter_example",
     .type = FIELD_STR,
     .at = ROUTING(counter_example),
     "a path that fails",
     .null = true},
    {.name = "lids", .type = FIELD_INT, .at = ROUTING(lids), "highest LID in use"},
    {.name = "lanes",
     .type = FIELD_INT,
     .at = ROUTING(lanes),
     "virtual lanes that packets go by; the service level of a path is its lane"},
    {.name = "quality",
     .type = FIELD_OBJ,
     .at = ROUTING(quality),
     "how well they spread traffic; null until they are rated",
     &schema_quality_brief,
     .null = true},
    {.name = "quality_ideal",
     .type = FIELD_OBJ,
     .at = ROUTING(ideal),
     "the same with all of the blueprint there",
     &schema_quality_brief,
     .null = true},
    {.name = "quality_last",
     .type = FIELD_OBJ,
     .at = ROUTING(last),
     "the same of the tables before these",
     &schema_quality_brief,
     .null = true},
    {0},
};
static const struct schema schema_routing = {
    .name = "routing", "The routes", sizeof(struct routing_row), routing_fields};

struct counts_row {
    int64_t info, warning, error;
};
static const struct field counts_fields[] = {
    {.name = "info", .type = FIELD_INT, .at = offsetof(struct counts_row, info), "worth knowing"},
    {.name = "warning", .type = FIELD_INT, .at = offsetof(struct counts_row, warning), "should be looked at"},
    {.name = "error", .type = FIELD_INT, .at = offsetof(struct counts_row, error), "something does not work"},
    {0},
};
static const struct schema schema_counts = {
    .name = "finding_counts", "Findings by severity", sizeof(struct counts_row), counts_fields};

struct meant_row {
    int64_t switches, cas, links;
};
#define MEANT(f) offsetof(struct meant_row, f)
static const struct field meant_fields[] = {
    {.name = "switches", .type = FIELD_INT, .at = MEANT(switches), "switches"},
    {.name = "cas", .type = FIELD_INT, .at = MEANT(cas), "channel adapters"},
    {.name = "links", .type = FIELD_INT, .at = MEANT(links), "links"},
    {0},
};
static const struct schema schema_meant = {
    .name = "fabric_meant", "What the blueprint has", sizeof(struct meant_row), meant_fields};

struct fabric_row {
    const char *name, *transport, *state;
    bool simulated;
    const struct sm_row *sm;
    int64_t generation, nodes, switches, cas, routers, hosts, links, tiers, sus, rails, planes;
    const struct meant_row *meant;
    const struct routing_row *routing;
    const struct adaptive_row *adaptive;
    const struct error_row *error;
    const struct other_row *other_sm;
    struct items managers;
    const struct change_row *last_change;
    int64_t sweeps, light_sweeps, exceptions, last_sweep;
    const struct traps_row *traps;
    const struct audit_row *audit;
    const struct sa_row *sa;
    int64_t drains, drains_in_use, drained_ends;
    const char *drained;
    const struct telemetry_row *telemetry;
    const struct counts_row *findings;
    struct items advice;
};
#define FABRIC(f) offsetof(struct fabric_row, f)
static const char *const fabric_states[] = {"up", "bringing-up", "standby", "failed", "offline", NULL};
static const struct field fabric_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = FABRIC(name), "its name in paths"},
    {.name = "transport",
     .type = FIELD_STR,
     .at = FABRIC(transport),
     "how it is reached: a port, a simulator, a file"},
    {.name = "simulated", .type = FIELD_BOOL, .at = FABRIC(simulated), "the resources under sim/ work"},
    {.name = "state", .type = FIELD_STR, .at = FABRIC(state), "how it stands", .name_of = fabric_states},
    {.name = "sm",
     .type = FIELD_OBJ,
     .at = FABRIC(sm),
     "the subnet manager; null when there is none",
     &schema_sm,
     .null = true},
    {.name = "generation", .type = FIELD_INT, .at = FABRIC(generation), "number of the snapshot"},
    {.name = "nodes", .type = FIELD_INT, .at = FABRIC(nodes), "all nodes"},
    {.name = "switches", .type = FIELD_INT, .at = FABRIC(switches), "switches"},
    {.name = "cas", .type = FIELD_INT, .at = FABRIC(cas), "channel adapters"},
    {.name = "routers", .type = FIELD_INT, .at = FABRIC(routers), "routers"},
    {.name = "hosts", .type = FIELD_INT, .at = FABRIC(hosts), "hosts, each with one or several adapters"},
    {.name = "links", .type = FIELD_INT, .at = FABRIC(links), "usable links"},
    {.name = "tiers", .type = FIELD_INT, .at = FABRIC(tiers), "tiers of switches; 0: not a tree"},
    {.name = "sus", .type = FIELD_INT, .at = FABRIC(sus), "scalable units"},
    {.name = "rails", .type = FIELD_INT, .at = FABRIC(rails), "rails"},
    {.name = "planes",
     .type = FIELD_INT,
     .at = FABRIC(planes),
     "parts that are not connected with each other"},
    {.name = "meant",
     .type = FIELD_OBJ,
     .at = FABRIC(meant),
     "the same of the blueprint: what is less than this is away; null when nothing routes",
     &schema_meant,
     .null = true},
    {.name = "routing",
     .type = FIELD_OBJ,
     .at = FABRIC(routing),
     "the routes; null when nothing routes",
     &schema_routing,
     .null = true},
    {.name = "adaptive",
     .type = FIELD_OBJ,
     .at = FABRIC(adaptive),
     "adaptive routing; null when it is not turned on",
     &schema_adaptive,
     .null = true},
    {.name = "error",
     .type = FIELD_OBJ,
     .at = FABRIC(error),
     "why it is not up",
     &schema_error,
     .null = true},
    {.name = "other_sm",
     .type = FIELD_OBJ,
     .at = FABRIC(other_sm),
     "who runs it instead",
     &schema_other,
     .null = true},
    {.name = "managers",
     .type = FIELD_LIST,
     .at = FABRIC(managers),
     "the other subnet managers that are known, the highest first",
     &schema_manager},
    {.name = "sweeps", .type = FIELD_INT, .at = FABRIC(sweeps), "sweeps since start"},
    {.name = "light_sweeps", .type = FIELD_INT, .at = FABRIC(light_sweeps), "light sweeps since start"},
    {.name = "exceptions",
     .type = FIELD_INT,
     .at = FABRIC(exceptions),
     "ports that every light sweep asks again, since they did not answer"},
    {.name = "last_sweep",
     .type = FIELD_TIME,
     .at = FABRIC(last_sweep),
     "when the last sweep ended",
     .null = true},
    {.name = "last_change",
     .type = FIELD_OBJ,
     .at = FABRIC(last_change),
     "the last thing that happened to it and what was done; null when nothing has since the start",
     &schema_change,
     .null = true},
    {.name = "traps",
     .type = FIELD_OBJ,
     .at = FABRIC(traps),
     "traps that came; null when nothing manages it",
     &schema_traps,
     .null = true},
    {.name = "audit",
     .type = FIELD_OBJ,
     .at = FABRIC(audit),
     "how far the audit is; null when nothing manages it",
     &schema_audit,
     .null = true},
    {.name = "sa",
     .type = FIELD_OBJ,
     .at = FABRIC(sa),
     "what hosts ask; null when nothing manages it",
     &schema_sa,
     .null = true},
    {.name = "drains",
     .type = FIELD_INT,
     .at = FABRIC(drains),
     "cables and switches that traffic is kept off"},
    {.name = "drained",
     .type = FIELD_STR,
     .at = FABRIC(drained),
     "name of what is drained, where it is one",
     .null = true},
    {.name = "drained_ends",
     .type = FIELD_INT,
     .at = FABRIC(drained_ends),
     "ends that hang on drained cables alone: pulling all of these cuts them off"},
    {.name = "drains_in_use",
     .type = FIELD_INT,
     .at = FABRIC(drains_in_use),
     "drains that something still uses"},
    {.name = "telemetry",
     .type = FIELD_OBJ,
     .at = FABRIC(telemetry),
     "counters, links and alarms; null where no counters are collected",
     &schema_telemetry,
     .null = true},
    {.name = "findings", .type = FIELD_OBJ, .at = FABRIC(findings), "counts by severity", &schema_counts},
    {.name = "advice",
     .type = FIELD_STRINGS,
     .at = FABRIC(advice),
     "what is wrong and what to do next; empty when all is well"},
    {0},
};
const struct schema schema_fabric = {.name = "fabric", "A fabric", sizeof(struct fabric_row), fabric_fields};

struct status_row {
    const char *version;
    int64_t started_at, streams, jobs;
    double uptime_seconds;
    struct items fabrics, loop, callbacks;
    const char *database;
};
#define STATUS(f) offsetof(struct status_row, f)
static const struct field status_fields[] = {
    {.name = "version", .type = FIELD_STR, .at = STATUS(version), "of weftd"},
    {.name = "started_at", .type = FIELD_TIME, .at = STATUS(started_at), "when it started"},
    {.name = "uptime_seconds", .type = FIELD_NUM, .at = STATUS(uptime_seconds), "since then"},
    {.name = "database",
     .type = FIELD_STR,
     .at = STATUS(database),
     "why meta.db cannot be written; null when it can",
     .null = true},
    {.name = "event_streams", .type = FIELD_INT, .at = STATUS(streams), "open event streams"},
    {.name = "jobs", .type = FIELD_INT, .at = STATUS(jobs), "jobs kept"},
    {.name = "fabrics", .type = FIELD_LIST, .at = STATUS(fabrics), "its fabrics", &schema_fabric},
    {.name = "loop",
     .type = FIELD_LIST,
     .at = STATUS(loop),
     "time of the event loop by part",
     &schema_loop_area},
    {.name = "callbacks",
     .type = FIELD_LIST,
     .at = STATUS(callbacks),
     "what held the event loop up, those that took most first",
     &schema_loop_callback},
    {0},
};
const struct schema schema_status = {
    .name = "status", "The daemon", sizeof(struct status_row), status_fields};

// --- one fabric, with all it points to ---

struct fabric_space {
    struct sm_status st;
    struct sm_row sm;
    struct routing_row routing;
    struct adaptive_row adaptive;
    struct error_row error;
    struct other_row other;
    struct managers managers;
    struct change_row change;
    struct traps_row traps;
    struct audit_row audit;
    struct sa_row sa;
    struct counts_row findings;
    struct meant_row meant;
    const struct telemetry_row *telemetry;
    char *advice[ADVICE_MAX];
};

static void advise(struct fabric_row *row, struct fabric_space *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void advise(struct fabric_row *row, struct fabric_space *s, const char *fmt, ...)
{
    char text[900];
    va_list ap;
    if (row->advice.n == ADVICE_MAX)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    s->advice[row->advice.n++] = xstrdup(text);
    row->advice.item = s->advice;
}

static void count_findings(const struct findings *f, struct counts_row *c)
{
    for (size_t i = 0; f != NULL && i < f->n; i++) {
        int64_t *n = f->item[i].severity == FINDING_ERROR     ? &c->error
                     : f->item[i].severity == FINDING_WARNING ? &c->warning
                                                              : &c->info;
        *n += 1; // as `weft finding` lists them; one may stand for many
    }
}

// Those that are told apart; one may stand for many.
static size_t count_errors(const struct findings *f)
{
    size_t n = 0;
    for (size_t i = 0; f != NULL && i < f->n; i++)
        n += f->item[i].severity == FINDING_ERROR;
    return n;
}

static void fill_model(const struct fabric *f, struct fabric_row *row)
{
    if (f == NULL)
        return;
    row->generation = (int64_t)f->generation;
    row->nodes = f->num_nodes;
    row->switches = f->num_switches;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        row->cas += f->node[i].type == NODE_CA;
        row->routers += f->node[i].type == NODE_ROUTER;
    }
    row->hosts = f->num_hosts;
    row->links = f->num_links;
    row->tiers = f->num_tiers;
    row->sus = f->num_sus;
    row->rails = f->num_rails;
    row->planes = f->num_planes;
}

static const struct meant_row *fill_meant(const struct sm *sm, struct meant_row *row)
{
    struct sm_blueprint b;
    sm_get_blueprint(sm, &b);
    if (b.known == NULL)
        return NULL;
    *row = (struct meant_row){.switches = b.known->num_switches, .links = b.known->num_links};
    for (uint32_t i = 0; i < b.known->num_nodes; i++)
        row->cas += b.known->node[i].type == NODE_CA;
    return row;
}

static int64_t lmc_of(const struct fabric *f)
{
    uint8_t lmc = 0;
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (f->port[i].a.lmc > lmc && f->port[i].a.lid != 0)
            lmc = f->port[i].a.lmc;
    return lmc & 7;
}

static void fill_routing(const struct view *v, struct fabric_row *row, struct fabric_space *s)
{
    const struct fabric_tables *t = view_tables(v);
    const struct route_proof *p = &s->st.proof;
    if (t == NULL)
        return;
    s->routing = (struct routing_row){
        .engine = t->engine,
        .why = s->st.route.why,
        .top_guid = s->st.route.top_guid,
        .verified = p->ok,
        .pairs = (int64_t)p->pairs,
        .disconnected = (int64_t)p->disconnected,
        .unreached = (int64_t)p->unreached,
        .max_hops = p->max_hops,
        .counter_example = p->counter_example[0] ? p->counter_example : NULL,
        .lids = t->top_lid,
        .lmc = lmc_of(v->f),
        .lanes = t->lanes != NULL ? t->lanes->num_lanes : 1,
        .quality = quality_now(v),
        .ideal = quality_ideal(v),
        .last = quality_last(v),
    };
    row->routing = &s->routing;
}

static const char *state_of(const struct view *v, const struct sm_status *st)
{
    if (v->src->sm == NULL)
        return v->src->offline != NULL ? "offline" : "failed";
    if (st->state == SM_STANDBY)
        return "standby";
    if (st->up)
        return "up";
    return st->error.code != 0 ? "failed" : "bringing-up";
}

static void fill_sm(struct api *a, struct view *v, struct fabric_row *row, struct fabric_space *s)
{
    const struct sm_status *st = &s->st;
    const struct sm_sweep *last = sm_history(v->src->sm, 0);

    s->sm = (struct sm_row){.state = sm_state_name(st->state),
                            .phase = st->phase[0] ? st->phase : NULL,
                            .lid = st->lid ? st->lid : NO_INT,
                            .port_guid = st->port_guid,
                            .priority = st->priority,
                            .sweeping = st->sweeping};
    row->sm = &s->sm;
    row->sweeps = (int64_t)st->sweeps;
    row->light_sweeps = (int64_t)st->light_sweeps;
    row->exceptions = st->exceptions;
    row->last_sweep = last != NULL ? last->wall_ns + last->ns : 0;
    traps_fill(v->src->sm, &s->traps);
    audit_fill(v->src->sm, &s->audit);
    sa_fill(v->src->sm, &s->sa);
    managers_fill(v->src->sm, &s->managers);
    row->managers = (struct items){s->managers.row, s->managers.n};
    row->traps = &s->traps;
    row->audit = &s->audit;
    row->sa = &s->sa;
    if (change_fill(a, v, &s->change))
        row->last_change = &s->change;
    if (adaptive_fill(v->src->sm, &s->adaptive))
        row->adaptive = &s->adaptive;
    if (st->error.code != 0) {
        s->error = (struct error_row){st->error.text, st->error.where};
        row->error = &s->error;
    }
    if (st->other.guid != 0) {
        s->other = (struct other_row){.guid = st->other.guid,
                                      .lid = st->other.lid ? st->other.lid : NO_INT,
                                      .priority = st->other.priority,
                                      .state = sm_state_name((enum sm_state)st->other.state)};
        row->other_sm = &s->other;
    }
}

// --- advice ---

static void advise_error(const struct api *a, const struct view *v, struct fabric_row *row,
                         struct fabric_space *s)
{
    const struct sm_status *st = &s->st;
    if (v->src->sm == NULL && v->src->offline == NULL) {
        advise(row, s,
               "not managed: %s. It is tried again by itself; `ibstat` shows the ports of this machine",
               v->src->down ? v->src->down : "there is no port");
        return;
    }
    if (v->src->sm == NULL)
        return;
    if (st->state == SM_STANDBY)
        advise(row, s,
               "another subnet manager (" GUID_FMT
               ", priority %u, LID %u) runs this fabric and weft stands by: stop it to let weft take over",
               GUID_ARG(st->other.guid), st->other.priority, st->other.lid);
    else if (st->state == SM_NOT_ACTIVE && st->error.code == -EBUSY)
        advise(row, s, "%s", st->error.text);
    else if (st->error.code != 0)
        advise(row, s, "the last sweep failed: %s%s%s. It is tried again by itself%s", st->error.where,
               st->error.where[0] ? ": " : "", st->error.text,
               st->up ? "; until then the settings of the sweep before hold" : "");
    if (st->proof.counter_example[0] != 0)
        advise(row, s, "%s: %s",
               st->proof.ok ? "the routes in force have a flaw that was allowed"
                            : "the routes in force do not reach every end",
               st->proof.counter_example);
    // What waited has been written once the database can be written again.
    char db[300];
    if (st->db_status != 0 && a->c.db != NULL && db_health(a->c.db, db, sizeof(db)) != 0)
        advise(row, s, "LIDs cannot be recorded (%s): they hold until a restart", strerror(-st->db_status));
}

static void advise_managers(struct fabric_row *row, struct fabric_space *s)
{
    for (unsigned i = 0; i < s->managers.n && s->st.state == SM_MASTER; i++)
        if (s->managers.peer[i].state == SM_MASTER)
            advise(row, s,
                   "subnet manager " GUID_FMT
                   " (%s) is master too: stop it, or let it stand by; they undo each other's work",
                   GUID_ARG(s->managers.peer[i].guid), s->managers.peer[i].node);
}

static void advise_findings(const struct findings *f, struct fabric_row *row, struct fabric_space *s)
{
    unsigned told = 0;
    for (size_t i = 0; f != NULL && i < f->n && told < ADVICE_FINDINGS; i++)
        if (f->item[i].severity == FINDING_ERROR) {
            advise(row, s, "%s: %s%s%s", f->item[i].code, f->item[i].where, f->item[i].where[0] ? ": " : "",
                   f->item[i].text);
            told++;
        }
}

static void advise_all(const struct api *a, const struct view *v, const struct fabric *f,
                       struct fabric_row *row, struct fabric_space *s)
{
    advise_error(a, v, row, s);
    advise_managers(row, s);
    advise_findings(v->src->offline_findings, row, s);
    if (v->src->sm != NULL)
        advise_findings(sm_findings(v->src->sm), row, s);
    size_t errors = count_errors(v->src->offline_findings);
    errors += v->src->sm != NULL ? count_errors(sm_findings(v->src->sm)) : 0;
    if (errors > ADVICE_FINDINGS)
        advise(row, s, "%zu errors are found in all; `weft finding` lists them", errors);
    if (s->st.exceptions > 0)
        advise(row, s,
               "%u ports have a link but a silent device behind it; they are asked again at every light "
               "sweep: look "
               "at `weft finding`, then at these devices",
               s->st.exceptions);
    if (f != NULL && f->num_planes > 1)
        advise(row, s,
               "the fabric is in %u parts that no cable connects; ports of one part cannot reach the others",
               f->num_planes);
}

static void count_drains(const struct sm *sm, struct fabric_row *row)
{
    const struct sm_drain *d;
    row->drained_ends = sm_drains_hang(sm);
    for (unsigned i = 0; (d = sm_drain_nth(sm, i)) != NULL; i++) {
        row->drained = row->drains++ == 0 ? d->name : NULL;
        row->drains_in_use += d->state == SM_DRAIN_IN_USE;
    }
}

static void fill_fabric(struct api *a, struct view *v, struct fabric_row *row, struct fabric_space *s)
{
    const struct fabric *f = view_fabric(v);

    memset(s, 0, sizeof(*s));
    *row = (struct fabric_row){.name = v->src->name,
                               .transport = v->src->transport ? v->src->transport : "",
                               .simulated = v->src->sim != NULL,
                               .findings = &s->findings};
    if (v->src->sm != NULL) {
        sm_get_status(v->src->sm, &s->st);
        fill_sm(a, v, row, s);
        fill_routing(v, row, s);
        count_findings(sm_findings(v->src->sm), &s->findings);
        count_drains(v->src->sm, row);
        row->meant = fill_meant(v->src->sm, &s->meant);
    } else if (v->src->offline == NULL) {
        s->error = (struct error_row){v->src->down ? v->src->down : "no port", ""};
        row->error = &s->error;
    }
    count_findings(v->src->offline_findings, &s->findings);
    row->state = state_of(v, &s->st);
    row->telemetry = s->telemetry = telemetry_fill(a, v);
    fill_model(f, row);
    advise_all(a, v, f, row, s);
}

static void space_done(struct fabric_space *s)
{
    free((void *)s->telemetry);
    for (unsigned i = 0; i < ADVICE_MAX; i++)
        free(s->advice[i]);
}

// --- handlers ---

void get_fabric(struct request *r)
{
    struct fabric_row row;
    struct fabric_space *s = xcalloc(1, sizeof(*s));
    fill_fabric(r->api, r->view, &row, s);
    answer_struct(r, 200, &schema_fabric, &row);
    space_done(s);
    free(s);
}

void get_fabrics(struct request *r)
{
    struct api *a = r->api;
    struct fabric_space *s = xcalloc(1, sizeof(*s));
    struct fabric_row row;
    struct list l;
    uint64_t from;
    char next[24];

    if (!cursor_number(r, &from)) {
        free(s);
        return;
    }
    list_begin(&l, r, &schema_fabric);
    for (; from < a->c.num_fabrics && !list_full(&l); from++) {
        fill_fabric(a, &a->view[from], &row, s);
        list_item(&l, &row);
        space_done(s);
    }
    snprintf(next, sizeof(next), "%llu", (unsigned long long)from);
    list_end(&l, from < a->c.num_fabrics ? next : NULL, a->c.num_fabrics, NO_INT, wall_now_ns());
    free(s);
}

static void advise_loop(const struct loop *l, struct fabric_row *row, struct fabric_space *s)
{
    struct loop_long c;
    if (!loop_held_up(l, &c))
        return;
    advise(
        row, s,
        "weftd held itself up for %lld ms within the last two minutes (%s%s%s, %lld ms of them computing): "
        "nothing is managed meanwhile%s",
        (long long)(c.recent_ns / MONO_MS), c.area, c.what[0] ? " " : "", c.what,
        (long long)(c.recent_cpu_ns / MONO_MS),
        c.recent_cpu_ns < c.recent_ns / 2 ? ". Is this machine busy, or its disk slow?" : "");
}

void get_status(struct request *r)
{
    struct api *a = r->api;
    unsigned n = a->c.num_fabrics;
    struct fabric_space *s = xcalloc(n + 1, sizeof(*s));
    struct fabric_row *f = xcalloc(n + 1, sizeof(*f));
    struct loop_rows *loop = xcalloc(1, sizeof(*loop));
    char db[300];

    for (unsigned i = 0; i < n; i++)
        fill_fabric(a, &a->view[i], &f[i], &s[i]);
    loop_rows_fill(a->c.loop, loop);
    bool db_bad = a->c.db != NULL && db_health(a->c.db, db, sizeof(db)) != 0;
    for (unsigned i = 0; db_bad && i < n; i++)
        advise(&f[i], &s[i], "the database cannot be written: %s", db);
    for (unsigned i = 0; i < n; i++)
        advise_loop(a->c.loop, &f[i], &s[i]);
    answer_struct(
        r, 200, &schema_status,
        &(struct status_row){.version = WEFT_VERSION,
                             .started_at = a->c.started_wall_ns,
                             .uptime_seconds = mono_seconds(mono_sub(loop_now(a->c.loop), a->started)),
                             .database = db_bad ? db : NULL,
                             .streams = a->streams.count,
                             .jobs = a->jobs.count,
                             .fabrics = {f, n},
                             .loop = loop->areas,
                             .callbacks = loop->callbacks});
    for (unsigned i = 0; i < n; i++)
        space_done(&s[i]);
    free(s);
    free(f);
    free(loop);
}
