// SPDX-License-Identifier: Apache-2.0
// Long computations: one runs on the worker pool at a time, others wait here, so that sweeps always find a
// worker soon. A job outlives the request that made it, and the API when a worker still runs it at the end.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api_priv.h"
#include "api/blueprint.h"
#include "api/compute.h"
#include "lib/xalloc.h"
#include "sm/drain.h"

#define JOBS_MAX 16
#define JOB_KEPT (600 * MONO_S)
#define COPY_MAX (256u << 10) // larger results are sent from where they are

enum job_state {
    JOB_WAITING,
    JOB_RUNNING,
    JOB_DONE,
    JOB_FAILED,
};

enum job_kind { // as job_kinds has them
    JOB_COMPUTE,
    JOB_QUALITY,
    JOB_HOSTS,
    JOB_WHATIF,
    JOB_DRAIN,
    JOB_BLUEPRINT,
    JOB_DB_CHECK,
};

struct job {
    struct job *next;
    struct api *api; // NULL: the API went while it ran
    unsigned refs;   // the list's, and one for each answer under way
    uint64_t id;
    char *fabric;
    enum job_state state;
    int64_t created_ns, finished_ns;
    mono_t finished;
    enum job_kind kind;
    struct view *view; // JOB_QUALITY: whose tables are rated
    struct computation c;
    struct sm_drain_check *check;    // JOB_DRAIN
    struct blueprint_change *change; // JOB_BLUEPRINT
    struct db_check *files;          // JOB_DB_CHECK
    struct pool_job pool_job;
};

// --- rows ---

struct job_row {
    const char *id, *kind, *fabric, *state, *result;
    int64_t created_at, finished_at;
    const struct error_row *error;
};
#define JOB(f) offsetof(struct job_row, f)
static const char *const job_states[] = {"running", "done", "failed", NULL};
static const char *const job_kinds[] = {"route-computation", "route-quality",    "job-quality", "whatif",
                                        "drain-check",       "blueprint-change", "db-check",    NULL};
static const struct field job_fields[] = {
    {.name = "id", .type = FIELD_STR, .at = JOB(id), "its id in paths"},
    {.name = "kind", .type = FIELD_STR, .at = JOB(kind), "what it computes", .name_of = job_kinds},
    {.name = "fabric", .type = FIELD_STR, .at = JOB(fabric), "of which fabric; \"\": of none"},
    {.name = "state",
     .type = FIELD_STR,
     .at = JOB(state),
     "running also while it waits",
     .name_of = job_states},
    {.name = "created_at", .type = FIELD_TIME, .at = JOB(created_at), "when it was asked for"},
    {.name = "finished_at", .type = FIELD_TIME, .at = JOB(finished_at), "when it ended", .null = true},
    {.name = "error", .type = FIELD_OBJ, .at = JOB(error), "why it failed", &schema_error, .null = true},
    // The last one: a large result is sent from where it is, behind what stands before it.
    {.name = "result",
     .type = FIELD_RAW,
     .at = JOB(result),
     "what came out: of a route computation, or of job-quality an object job_quality, of whatif a whatif, "
     "of blueprint-change a blueprint_change, of drain-check a drain_effect, of db-check a db_checked",
     &schema_computation_result,
     .null = true},
    {0},
};
const struct schema schema_job = {.name = "job", "A long computation", sizeof(struct job_row), job_fields};

static const char *const engines[] = {"auto", "rail", "updn", "sssp", "minhop", NULL};
#define FAIL_DOC                                                                                             \
    "elements that fail: \"node\", \"node[port]\" (or [1-4,7]), globs of names, \"rail=3,role=leaf\" "       \
    "(fields rail, su, tier, plane, role, type, name), \"random:<percent>:<seed>\" of the links between "    \
    "switches"
static const struct field computation_fields[] = {
    {.name = "engine", .type = FIELD_STR, .at = 0, "auto when absent", .name_of = engines},
    {.name = "fail", .type = FIELD_STRINGS, .at = 0, FAIL_DOC},
    {.name = "lft", .type = FIELD_BOOL, .at = 0, "the result carries the tables as text"},
    {.name = "lft_path", .type = FIELD_STR, .at = 0, "the tables are written to this file; offline only"},
    {0},
};
const struct schema schema_computation_body = {
    .name = "computation", "Routes to be computed", 1, computation_fields, true, COMPUTE_BODY_MAX};

static const struct field hosts_fields[] = {
    {.name = "hosts",
     .type = FIELD_STRINGS,
     .at = 0,
     "hosts in the order of the job's ranks: what their adapters are called (\"gpu-0412\" of \"gpu-0412 "
     "mlx5_3\"), or an adapter's GUID or name",
     .need = true},
    {.name = "fail", .type = FIELD_STRINGS, .at = 0, FAIL_DOC},
    {0},
};
const struct schema schema_job_quality_body = {
    .name = "job_quality_hosts", "A job's hosts", 1, hosts_fields, true, COMPUTE_BODY_MAX};

static const struct field whatif_fields[] = {
    {.name = "fail", .type = FIELD_STRINGS, .at = 0, FAIL_DOC},
    {.name = "drain",
     .type = FIELD_STRINGS,
     .at = 0,
     "the same: their cables stay alive and carry only what has no other way"},
    {.name = "add",
     .type = FIELD_STRINGS,
     .at = 0,
     "\"link:A[PORT]-B[PORT]\" between free ports, \"node-like:NODE=NEWNAME\" (a switch without hosts, an "
     "adapter, a host), \"node-like-hosts:SWITCH=NEWNAME\", \"su\" or \"su:NUMBER\", a scalable unit like "
     "that one"},
    {.name = "engine",
     .type = FIELD_STR,
     .at = 0,
     "of a fabric without tables in force; auto when absent",
     .name_of = engines},
    {0},
};
const struct schema schema_whatif_body = {.name = "whatif_question",
                                          "What would fail, be drained, be added",
                                          1,
                                          whatif_fields,
                                          true,
                                          COMPUTE_BODY_MAX};

// --- life ---

static void job_unref(struct job *j)
{
    if (--j->refs > 0)
        return;
    fabric_unref(j->c.f);
    compute_done(&j->c);
    sm_drain_check_free(j->check);
    blueprint_change_free(j->change);
    db_check_free(j->files);
    free(j->fabric);
    free(j);
}

static bool unfinished(const struct job *j)
{
    return j->state == JOB_WAITING || j->state == JOB_RUNNING;
}

static void work(void *arg, struct par *par)
{
    struct job *j = arg;
    if (j->check != NULL)
        drain_check_work(j->check, par, &j->c.result, &j->c.err);
    else if (j->files != NULL)
        db_check_work(j->files, &j->c.result, &j->c.err);
    else if (j->change != NULL)
        blueprint_change_run(&j->c, j->change, par);
    else
        compute_run(&j->c, par);
}

static void start_next(struct api *a)
{
    struct job *j, *oldest = NULL;
    if (a->jobs.running != NULL)
        return;
    for (j = a->jobs.first; j != NULL; j = j->next)
        if (j->state == JOB_WAITING)
            oldest = j;
    if (oldest == NULL)
        return;
    oldest->state = JOB_RUNNING;
    a->jobs.running = oldest;
    pool_submit(a->c.pool, &oldest->pool_job);
}

static void done(void *arg)
{
    struct job *j = arg;
    struct api *a = j->api;
    if (a == NULL) {
        job_unref(j);
        return;
    }
    if (j->kind == JOB_BLUEPRINT)
        blueprint_change_done(j->view, &j->c, j->change);
    j->state = j->c.err.code == 0 ? JOB_DONE : JOB_FAILED;
    if (j->kind == JOB_QUALITY)
        quality_rated(j->view, &j->c);
    j->finished_ns = wall_now_ns();
    j->finished = loop_now(a->c.loop);
    fabric_unref(j->c.f); // a result needs no snapshot
    j->c.f = NULL;
    a->jobs.running = NULL;
    loop_timer_after(&a->jobs.expire, JOB_KEPT);
    start_next(a);
}

static void drop(struct api *a, struct job **at)
{
    struct job *j = *at;
    *at = j->next;
    a->jobs.count--;
    job_unref(j);
}

static void expire(void *arg)
{
    struct api *a = arg;
    mono_t now = loop_now(a->c.loop);
    bool left = false;
    for (struct job **at = &a->jobs.first; *at != NULL;) {
        bool old = !unfinished(*at) && mono_sub(now, (*at)->finished) >= JOB_KEPT;
        left |= !old && !unfinished(*at);
        if (old)
            drop(a, at);
        else
            at = &(*at)->next;
    }
    if (left)
        loop_timer_after(&a->jobs.expire, JOB_KEPT / 10);
}

// Room for one more: the oldest finished one goes. False when all are unfinished.
static bool make_room(struct api *a)
{
    struct job **oldest = NULL;
    if (a->jobs.count < JOBS_MAX)
        return true;
    for (struct job **at = &a->jobs.first; *at != NULL; at = &(*at)->next)
        if (!unfinished(*at))
            oldest = at;
    if (oldest != NULL)
        drop(a, oldest);
    return oldest != NULL;
}

void jobs_init(struct api *a)
{
    loop_timer_init(&a->jobs.expire, a->c.loop, "api", expire, a);
}

void jobs_done(struct api *a)
{
    loop_timer_cancel(&a->jobs.expire);
    while (a->jobs.first != NULL) {
        struct job *j = a->jobs.first;
        a->jobs.first = j->next;
        j->api = NULL;
        if (j->state != JOB_RUNNING) // else done() frees it
            job_unref(j);
    }
}

// --- requests ---

static void fill_row(const struct job *j, struct job_row *row, struct error_row *error, char id[24])
{
    snprintf(id, 24, "%llu", (unsigned long long)j->id);
    *row = (struct job_row){.id = id,
                            .kind = job_kinds[j->kind],
                            .fabric = j->fabric,
                            .state = j->state == JOB_DONE     ? "done"
                                     : j->state == JOB_FAILED ? "failed"
                                                              : "running",
                            .created_at = j->created_ns,
                            .finished_at = j->finished_ns};
    if (j->state == JOB_FAILED) {
        *error = (struct error_row){j->c.err.text, j->c.err.where};
        row->error = error;
    }
}

static bool take_elements(struct request *r, const char *name, char ***ret, size_t *ret_n)
{
    json_t *list = json_object_get(r->json, name);
    size_t n = json_array_size(list);
    if (n > ELEMENTS_MAX) {
        answer_problem(r, 400, "\"%s\" has %zu elements; at most %d", name, n, ELEMENTS_MAX);
        return false;
    }
    *ret = xcalloc(n + 1, sizeof(char *));
    for (size_t i = 0; i < n; i++)
        (*ret)[(*ret_n)++] = xstrdup(json_string_value(json_array_get(list, i)));
    return true;
}

static bool take_path(struct request *r, struct computation *c)
{
    const char *path = json_string_value(json_object_get(r->json, "lft_path"));
    if (path == NULL)
        return true;
    if (r->view->src->sm != NULL || r->view->src->offline == NULL || r->uid != geteuid()) {
        answer_problem(r, 403, "lft_path is for weftd --offline and its own user; ask for \"lft\" instead");
        return false;
    }
    c->lft_path = xstrdup(path);
    return true;
}

static bool take_engine(struct request *r, struct computation *c)
{
    const char *engine = json_string_value(json_object_get(r->json, "engine"));
    c->engine = ROUTE_AUTO;
    if (engine != NULL && route_engine_parse(engine, &c->engine) != 0) {
        answer_problem(r, 400, "there is no engine \"%.40s\"", engine);
        return false;
    }
    return true;
}

static bool take_body(struct request *r, struct computation *c)
{
    c->lft = json_is_true(json_object_get(r->json, "lft"));
    return take_engine(r, c) && take_elements(r, "fail", &c->fail, &c->num_fail) && take_path(r, c);
}

// What tables in force are made of, kept for as long as the computation lasts.
static void take_routing(const struct view *v, struct computation *c)
{
    struct sm_routing s;
    struct compute_routing *r = &c->routing;
    if (view_tables(v) == NULL)
        return;
    c->tables = tables_ref(view_tables(v));
    if (v->src->sm == NULL || !sm_get_routing(v->src->sm, &s))
        return;
    r->blueprint = fabric_ref(s.blueprint);
    r->made_for = fabric_ref(s.made_for);
    r->ideal = s.ideal;
    tables_ref(r->ideal.tables);
    r->opts = s.opts;
    r->opts.par = NULL;
    if (s.opts.num_roots > 0) {
        r->roots = xreallocarray(NULL, s.opts.num_roots, sizeof(*r->roots));
        memcpy(r->roots, s.opts.root_guids, s.opts.num_roots * sizeof(*r->roots));
    }
    r->opts.root_guids = r->roots;
    if (s.opts.file_text != NULL)
        r->file = xasprintf("%.*s", (int)s.opts.file_len, s.opts.file_text);
    r->opts.file_text = r->file;
    const struct sm_drain *d;
    r->drain = xcalloc(SM_DRAINS_MAX, sizeof(*r->drain));
    while (r->num_drains < SM_DRAINS_MAX && (d = sm_drain_nth(v->src->sm, (unsigned)r->num_drains)) != NULL)
        r->drain[r->num_drains++] = d->at;
}

// The computation is taken; v may be NULL. NULL with an answer when there are too many.
static struct job *begin(struct request *r, struct view *v, const struct computation *given)
{
    struct api *a = r->api;
    struct computation c = *given;
    if (!make_room(a)) {
        compute_done(&c);
        answer_problem(r, 429, "%d jobs are unfinished; wait for one of them", JOBS_MAX);
        return NULL;
    }
    struct job *j = xcalloc(1, sizeof(*j));
    *j = (struct job){.next = a->jobs.first,
                      .api = a,
                      .refs = 1,
                      .id = ++a->jobs.last_id,
                      .fabric = xstrdup(v != NULL ? v->src->name : ""),
                      .created_ns = wall_now_ns(),
                      .c = c,
                      .pool_job = {.work = work, .done = done, .arg = j}};
    j->c.f = v != NULL ? fabric_ref(v->f) : NULL;
    a->jobs.first = j;
    a->jobs.count++;
    return j;
}

bool jobs_rate(struct request *r, struct view *v, const struct computation *given)
{
    struct job *j = begin(r, v, given);
    if (j == NULL)
        return false;
    j->kind = JOB_QUALITY;
    j->view = v;
    start_next(r->api);
    return true;
}

static void answer_begun(struct request *r, struct job *j)
{
    struct job_row row;
    char id[24];
    start_next(r->api);
    fill_row(j, &row, NULL, id);
    snprintf(r->location, sizeof(r->location), API_BASE "/jobs/%s", id);
    answer_struct(r, 202, &schema_job, &row);
}

void jobs_drain_check(struct request *r, struct view *v, struct sm_drain_check *check)
{
    struct job *j = begin(r, v, &(struct computation){0});
    if (j == NULL) {
        sm_drain_check_free(check);
        return;
    }
    j->kind = JOB_DRAIN;
    j->check = check;
    answer_begun(r, j);
}

void jobs_db_check(struct request *r, struct db_check *files)
{
    struct job *j = begin(r, NULL, &(struct computation){0});
    if (j == NULL) {
        db_check_free(files);
        return;
    }
    j->kind = JOB_DB_CHECK;
    j->files = files;
    answer_begun(r, j);
}

static struct job *begin_blueprint(struct request *r, struct view *v, struct blueprint_change *x)
{
    struct computation c = {0};
    take_routing(v, &c);
    struct job *j = begin(r, v, &c);
    if (j == NULL) {
        blueprint_change_free(x);
        return NULL;
    }
    j->kind = JOB_BLUEPRINT;
    j->view = v;
    j->change = x;
    return j;
}

void jobs_blueprint(struct request *r, struct view *v, struct blueprint_change *x)
{
    struct job *j = begin_blueprint(r, v, x);
    if (j != NULL)
        answer_begun(r, j);
}

bool jobs_begin_blueprint(struct request *r, struct view *v, struct blueprint_change *x, char id[24])
{
    struct job *j = begin_blueprint(r, v, x);
    if (j == NULL)
        return false;
    start_next(r->api);
    snprintf(id, 24, "%llu", (unsigned long long)j->id);
    snprintf(r->location, sizeof(r->location), API_BASE "/jobs/%s", id);
    return true;
}

void post_route_computation(struct request *r)
{
    struct view *v = view_of(r);
    struct computation c = {0};

    if (v == NULL)
        return;
    if (!take_body(r, &c)) {
        compute_done(&c);
        return;
    }
    struct job *j = begin(r, v, &c);
    if (j != NULL)
        answer_begun(r, j);
}

void post_job_quality(struct request *r)
{
    struct view *v = view_of(r);
    json_t *hosts = json_object_get(r->json, "hosts");
    size_t n = json_array_size(hosts);
    struct computation c = {.engine = ROUTE_AUTO};

    if (v == NULL)
        return;
    if (n == 0 || n > COMPUTE_HOSTS_MAX) {
        answer_problem(r, 400, "\"hosts\" has %zu names; from 1 to %d", n, COMPUTE_HOSTS_MAX);
        return;
    }
    c.host = xcalloc(n, sizeof(char *));
    for (size_t i = 0; i < n; i++)
        c.host[c.num_hosts++] = xstrdup(json_string_value(json_array_get(hosts, i)));
    if (!take_elements(r, "fail", &c.fail, &c.num_fail)) {
        compute_done(&c);
        return;
    }
    take_routing(v, &c);
    struct job *j = begin(r, v, &c);
    if (j == NULL)
        return;
    j->kind = JOB_HOSTS;
    answer_begun(r, j);
}

static bool take_question(struct request *r, struct view *v, struct computation *c)
{
    if (!take_engine(r, c) || !take_elements(r, "fail", &c->fail, &c->num_fail) ||
        !take_elements(r, "drain", &c->drain, &c->num_drain) ||
        !take_elements(r, "add", &c->add, &c->num_add))
        return false;
    if (c->num_fail + c->num_drain + c->num_add == 0) {
        answer_problem(r, 400, "nothing is asked; give \"fail\", \"drain\" or \"add\"");
        return false;
    }
    if (view_tables(v) != NULL && json_object_get(r->json, "engine") != NULL) {
        answer_problem(r, 409,
                       "fabric %s has routes in force, which the question is about; leave out \"engine\"",
                       v->src->name);
        return false;
    }
    return true;
}

void post_whatif(struct request *r)
{
    struct view *v = view_of(r);
    struct computation c = {.whatif = true};

    if (v == NULL)
        return;
    if (!take_question(r, v, &c)) {
        compute_done(&c);
        return;
    }
    take_routing(v, &c);
    struct job *j = begin(r, v, &c);
    if (j == NULL)
        return;
    j->kind = JOB_WHATIF;
    answer_begun(r, j);
}

// --- answers larger than one likes to copy ---

struct big_answer {
    struct job *job;
    struct buf head;
};

static void big_free(void *arg)
{
    struct big_answer *b = arg;
    job_unref(b->job);
    buf_done(&b->head);
    free(b);
}

static ssize_t read_big(void *arg, uint64_t at, char *ret, size_t max)
{
    const struct big_answer *b = arg;
    const struct buf *result = &b->job->c.result;
    const struct {
        const char *text;
        size_t n;
    } part[] = {{b->head.data, b->head.len}, {result->data, result->len}, {"}\n", 2}};
    for (unsigned i = 0; i < 3; i++) {
        if (at < part[i].n) {
            size_t n = part[i].n - at < max ? part[i].n - at : max;
            memcpy(ret, part[i].text + at, n);
            return (ssize_t)n;
        }
        at -= part[i].n;
    }
    return MHD_CONTENT_READER_END_OF_STREAM;
}

static void answer_big(struct request *r, struct job *j, const struct job_row *row)
{
    struct big_answer *b = xcalloc(1, sizeof(*b));
    b->job = j;
    j->refs++;
    json_put_struct(&b->head, &schema_job, row);
    b->head.len -= strlen("null}"); // result, the last field
    r->status = 200;
    r->type = "application/json";
    r->response = MHD_create_response_from_callback(b->head.len + j->c.result.len + 2, ANSWER_BLOCK, read_big,
                                                    b, big_free);
    if (r->response == NULL) {
        big_free(b);
        answer_problem(r, 503, "no memory for the answer");
    }
}

void get_job(struct request *r)
{
    struct job *j = r->api->jobs.first;
    struct error_row error;
    struct job_row row;
    char id[24];

    for (; j != NULL; j = j->next) {
        fill_row(j, &row, &error, id);
        if (strcmp(id, r->arg) == 0)
            break;
    }
    if (j == NULL) {
        answer_problem(r, 404, "no job \"%.40s\"; finished ones are kept for ten minutes", r->arg);
    } else if (j->state == JOB_DONE && j->c.lft && !r->listener->is_unix) {
        answer_problem(r, 403, "a result with tables is read over the unix socket only");
    } else if (j->state == JOB_DONE && j->c.result.len > COPY_MAX) {
        answer_big(r, j, &row);
    } else {
        row.result = j->state == JOB_DONE && j->kind != JOB_QUALITY ? j->c.result.data : NULL;
        answer_struct(r, 200, &schema_job, &row);
    }
}
