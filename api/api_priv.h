// SPDX-License-Identifier: Apache-2.0
// Inside the API. Files, in reading order:
//
//     api.c        life cycle: listeners, what callers ask
//     http.c       libmicrohttpd on the loop: a request's life from its first line to its last byte
//     uri.c        path and query taken apart; Host headers
//     auth.c       who asks: the peer of a unix socket, or anybody over TCP
//     resources.c  the table of resources, dispatch, checks of parameters and bodies
//     openapi.c    the same table as an OpenAPI document
//     schema.c     fields -> JSON, CSV, body checks
//     answer.c     answers: problems, objects, lists, ETags
//     view.c       what a fabric shows just now: snapshot, its order, names
//     resolve.c    GUID, LID or name -> node and port
//     render_*.c   handlers of GET
//     adaptive.c   adaptive routing
//     actions.c    sweeps that are asked for, the record of actions
//     blueprint.c  the blueprint and what is asked of it; blueprint_change.c: the worker's part of that
//     drain.c      cables and switches that traffic is kept off
//     sim*.c       what can be done to a simulated fabric
//     jobs.c       long computations on the worker pool; compute.c: what the worker does
//     whatif*.c    what would become of a fabric; elements.c, additions.c: of what people name: part of that
//     quality*.c   how well tables spread traffic, as JSON: part of what the worker does
//     stream.c     server-sent events
//     tele.c       what handlers about counters share
//     counters.c   of ports, now; top.c: those that stand out; history*.c: before; vl_wait.c: by lane
//     route_past.c what the links of a path did; devices.c: fans, power supplies, ASICs
//     congestion.c health.c, alarms.c, isolation.c
//     telemetry.c  at a glance, and the files of history
//     sieve.c      the focus language on rows; place.c: on ports, for silences
//     later.c      answers that are suspended until a worker, or the loop in turns, has made them
//     slices.c     long lists, some rows a turn; export.c: a fabric in another program's form
//     metrics.c    /metrics; metrics_render.c, metrics_own.c: what is on it; metrics_page.c: its text
//
// A request (struct request) belongs to its connection and dies with it. Short answers are made within one
// callback and borrow everything from the snapshot of that moment; long ones (slices.c, later.c) look it up
// anew each turn. Streams and jobs outlive a request: they hold references of their own. All of it is the
// loop thread's, but for what jobs.c and later.c give to a worker.
#ifndef WEFT_API_API_PRIV_H
#define WEFT_API_API_PRIV_H

#include <sys/types.h>

#include <microhttpd.h>

#include "api/api.h"
#include "api/resolve.h"
#include "api/schema.h"
#include "api/uri.h"
#include "lib/err.h"

#define API_BASE "/api/v1"
#define BODY_MAX (64u << 10)
#define LIMIT_DEFAULT 1000
#define LIMIT_MAX 10000

enum api_role {
    API_READ,
    API_OPERATE,
    API_ADMIN,
};

struct resource;
struct job;
struct stream;

struct listener { // one libmicrohttpd daemon and how the loop drives it
    struct api *api;
    bool is_unix;
    int fd;
    struct MHD_Daemon *mhd;
    struct loop_fd *poll;
    struct loop_timer timer;
    struct loop_task kick;
    struct request *put_off; // suspended until a turn has room for them, in the order they came
    uint64_t turns;
    mono_t until;   // of this turn
    unsigned heard; // requests in it
    bool queued;    // others waited when it began
    bool stopping;
};

struct view { // what one fabric shows
    const struct api_fabric *src;
    uint64_t changes;       // counts api_changed(); part of the ETag
    const struct fabric *f; // reference, taken at the first request after a change; NULL: none was looked at
    uint32_t *order;        // node indices by NodeGUID
    const struct fabric
        *names; // simulated fabrics: the largest generation so far, so that a dead node has a name
    struct quality *quality;       // figures of the tables in force; render_quality.c; NULL: none yet
    struct metrics_names *metrics; // names and labels of /metrics; metrics.c; NULL: none yet
    int64_t change_began;          // of the sweep whose change is told in words
    char change[400];
};

struct frame { // a rendered event
    uint64_t id;
    char *fabric, *kind, *text;
    size_t len;
};
#define FRAMES 256

struct api {
    struct api_context c;
    mono_t started;
    char address[64];
    char socket[110];
    dev_t socket_dev;
    ino_t socket_ino;
    int port; // bound, -1 without TCP
    struct listener tcp, local;
    struct view *view;
    char *openapi; // the document
    struct {
        struct stream *first;
        unsigned count;
        bool closing; // all end, also those that come while the server stops
        struct loop_timer beat;
        struct loop_task wake;
        struct frame frame[FRAMES]; // ring of the last events, in the order of their ids
        unsigned head, n;
        uint64_t last_id; // of the newest frame, or of the newest event when the first stream came
    } streams;
    struct {
        struct job *first; // newest first
        unsigned count;
        uint64_t last_id;
        struct job *running;
        struct loop_timer expire;
    } jobs;
    struct rating *rating; // tables that are rated unasked; render_quality.c
    struct later *laters;  // in the order in which they came
};

struct request {
    struct api *api;
    struct listener *listener;
    struct MHD_Connection *conn;
    char *raw; // path and query as they came
    struct uri uri;
    const char *method;
    struct buf body;
    size_t body_seen, body_max;
    bool begun, answered;

    enum api_role role;
    uid_t uid; // of the peer; (uid_t)-1 over TCP
    const struct resource *res;
    struct view *view; // of {f}
    const char *arg;   // {guid}, {id}
    json_t *json;      // checked body

    unsigned status;
    struct buf out;
    const char *type;
    char etag[80];
    char location[80];
    char next[80]; // cursor
    char allow[40];
    struct MHD_Response *response; // made by the handler itself; else from out
    struct later *suspended;       // the answer is on its way; later.c
    struct request *next_put_off;  // http.c
    uint64_t turn;                 // … 0: it has not waited
};

// --- http.c ---
int http_start(struct listener *l, struct api *a, int fd, bool is_unix, struct err *e);
void http_stop(struct listener *l); // closes fd
// Connections were resumed: libmicrohttpd, which has no descriptor to tell itself with, runs soon.
void http_kick(struct listener *l);
const char *http_header(const struct request *r, const char *name);
#define ANSWER_BLOCK                                                                                         \
    (256u << 10) // of a long answer: what one turn of the loop copies and hands to the system
// An answer of any size, sent a block a turn; takes text (malloc'd), unless there is no memory for more:
// NULL.
struct MHD_Response *http_response(char *text, size_t n);

// --- auth.c ---
// Fills role and uid; false with an answer when the request may not go on (wrong Host).
bool auth_request(struct request *r);
// Whether the one who asks may do what needs this role; false with an answer.
bool request_may(struct request *r, enum api_role role);

// --- resources.c ---
enum param_type {
    PARAM_STR,
    PARAM_INT,
    PARAM_BOOL, // 1, 0, true, false
    PARAM_ENUM,
};
struct param {
    const char *name;
    enum param_type type;
    const char *doc;
    bool need;
    int64_t min, max;           // PARAM_INT
    const char *const *name_of; // PARAM_ENUM
};
enum answer_kind {
    ANSWER_OBJECT,
    ANSWER_LIST, // paged, JSON or CSV
    ANSWER_RAW,  // what the doc says
    ANSWER_TEXT,
};
struct resource {
    const char *method, *path; // below API_BASE; {f} fabric, {guid}, {id}
    enum api_role role;
    enum answer_kind kind;
    unsigned status; // of success
    bool etag;
    const struct param *param; // besides those of all lists; may be NULL
    const struct schema *answer, *body;
    void (*fn)(struct request *r);
    const char *name, *doc; // operationId
};
extern const struct resource resource_rows[];
extern const struct param list_params[];
static inline const char *request_name(const struct request *r) // what it asks for
{
    return r->res != NULL ? r->res->name : "metrics";
}
void resource_dispatch(struct request *r);
size_t resource_body_max(const char *method, const char *raw);    // of a request that has only begun
const char *query_str(const struct request *r, const char *name); // NULL when absent or empty
int64_t query_int(const struct request *r, const char *name, int64_t def);
bool query_bool(const struct request *r, const char *name);
const char *body_str(const struct request *r, const char *name); // "" when absent

// --- openapi.c ---
void get_openapi(struct request *r);
char *openapi_text(void); // the caller's

// --- answer.c ---
void answer_problem(struct request *r, unsigned status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void answer_struct(struct request *r, unsigned status, const struct schema *s, const void *p);
void answer_ok(struct request *r, const char *text); // schema_done
struct error_row {                                   // why a fabric is not up, a job failed
    const char *text, *where;
};
extern const struct schema schema_error;
struct list {
    struct request *r; // NULL: made by a worker
    struct buf *out;
    const struct schema *schema;
    size_t n, limit;
    bool csv;
    bool incomplete; // something of it could not be read
};
// list_item() is for at most limit rows; list_end()'s next is NULL at the end of all. total NO_INT: not
// known.
void list_begin(struct list *l, struct request *r, const struct schema *s);
void list_open(struct list *l, struct buf *out, const struct schema *s, bool csv, size_t limit); // any thread
bool list_is_csv(const struct request *r);
void list_answer(struct request *r); // status and type of one that was made so
void list_item(struct list *l, const void *row);
#define LIST_BYTES (8u << 20) // an answer that has become so long ends there, with a cursor
static inline bool list_full(const struct list *l)
{
    return l->n >= l->limit || (l->r != NULL && l->out->len >= LIST_BYTES);
}
void list_end(struct list *l, const char *next, int64_t total, int64_t generation, int64_t sampled_ns);

// --- view.c ---
// The view of the request's fabric with a snapshot, or NULL and an answer (503: nothing discovered yet).
struct view *view_of(struct request *r);
struct view *view_named(struct api *a, const char *fabric);    // NULL: there is none
const struct fabric *view_fabric(struct view *v);              // refreshed; NULL when there is none
const struct fabric *view_known(const struct view *v);         // its blueprint; NULL: it has none
const struct fabric_tables *view_tables(const struct view *v); // NULL offline
const uint32_t *view_order(struct view *v);
uint32_t view_order_find(struct view *v, uint64_t guid); // first position whose GUID is not below
int64_t view_sampled(struct api *a, const struct view *v);
void view_changed(struct view *v);
void view_done(struct view *v);

// --- resolve.c ---
void answer_unresolved(struct request *r, const char *what, int code, const struct err *e);

// --- telemetry.c ---
struct db_check;
void db_check_work(struct db_check *c, struct buf *result, struct err *e); // any thread
void db_check_free(struct db_check *c);                                    // NULL is fine
void jobs_db_check(struct request *r, struct db_check *files);             // takes it; answers

// --- handlers ---
void get_status(struct request *r);
void get_fabrics(struct request *r);
void get_fabric(struct request *r);
void get_nodes(struct request *r);
void get_node(struct request *r);
void get_ports(struct request *r);
void get_links(struct request *r);
void get_route(struct request *r);
// Where a path begins and ends, and the LID that is meant, as the parameters "from" and "to" say; false with
// an answer.
bool route_ends(struct request *r, const struct view *v, port_id *from, port_id *to, uint16_t *ret_lid);
void get_findings(struct request *r);
void get_sweeps(struct request *r);
void get_groups(struct request *r);
void get_group(struct request *r);
void get_mads(struct request *r);
void get_adaptive(struct request *r);
void get_events(struct request *r);
void get_counter_rows(struct request *r);
void get_counters(struct request *r);
void get_route_past(struct request *r);
void get_history(struct request *r);
void get_vl_waits(struct request *r);
void get_top(struct request *r);
void get_congestion(struct request *r);
void get_health(struct request *r);
void get_devices(struct request *r);
void get_unread(struct request *r);
void get_alarms(struct request *r);
void get_alarm(struct request *r);
void post_alarm_ack(struct request *r);
void get_silences(struct request *r);
void post_silence(struct request *r);
void delete_silence(struct request *r);
void get_isolations(struct request *r);
void get_isolation_exclusions(struct request *r);
void post_isolation(struct request *r);
void post_isolation_release(struct request *r);
void post_isolation_exclude(struct request *r);
void post_isolation_include(struct request *r);
void get_db(struct request *r);
void post_db_check(struct request *r);
void get_stream(struct request *r);
void get_job(struct request *r);
void get_drains(struct request *r);
void post_drain(struct request *r);
void post_undrain(struct request *r);
void post_drain_check(struct request *r);
void get_blueprint(struct request *r);
void post_blueprint_accept(struct request *r);
void post_blueprint_learn(struct request *r);
void post_blueprint_set(struct request *r);
void post_blueprint_strike(struct request *r);
void post_reroute(struct request *r);
void post_resweep(struct request *r);
void get_sim(struct request *r);
void get_sim_actions(struct request *r);
void post_sim_action(struct request *r);
void post_sim_link(struct request *r);
void post_sim_node(struct request *r);
void post_sim_loss(struct request *r);
void post_route_computation(struct request *r);
void get_route_quality(struct request *r);
void post_job_quality(struct request *r);
void post_whatif(struct request *r);

extern const struct schema schema_status, schema_fabric, schema_node, schema_node_detail, schema_port,
    schema_link, schema_route, schema_finding, schema_sweep, schema_mad, schema_event, schema_job,
    schema_sweep_asked, schema_done, schema_reroute_body, schema_sim_link_body, schema_sim_node_body,
    schema_sim_loss_body, schema_sim_action_body, schema_sim_verb, schema_group, schema_group_detail,
    schema_sim, schema_computation_body, schema_problem, schema_route_quality, schema_job_quality_body,
    schema_whatif_body;
extern const struct schema schema_nothing_body, schema_blueprint, schema_blueprint_body,
    schema_blueprint_set_body, schema_blueprint_strike_body, schema_reroute_asked;
extern const struct schema schema_drain, schema_drain_body, schema_undrain_body, schema_drain_check_body,
    schema_drained, schema_drain_effect;
extern const struct schema schema_adaptive, schema_adaptive_switch;
extern const struct schema schema_counter, schema_counters, schema_sample, schema_route_past, schema_top,
    schema_congestion, schema_device, schema_health, schema_unread, schema_alarm, schema_alarm_detail,
    schema_ack_body, schema_silence, schema_silence_body, schema_db, schema_db_checked, schema_vl_waits,
    schema_isolation, schema_isolation_exclusion, schema_isolate_body, schema_isolate_port_body,
    schema_exclude_body;
extern const struct param counters_params[], history_params[], route_past_params[], top_params[],
    congestion_params[], device_params[], health_params[], alarm_params[], vl_wait_params[];
extern const char *const severity_names[], *const node_type_names[], *const node_role_names[];

// --- render_text.c: codes as words ---
const char *node_type_word(unsigned type);
const char *link_word(const struct port_attrs *a, char *buf, size_t size); // "4xNDR"; NULL when not known
const char *width_word(const struct port_attrs *a, char *buf, size_t size);
const char *speed_word(const struct port_attrs *a);

// --- actions.c ---
// Logs it and makes it an event.
void audit_action(struct request *r, const char *subject, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

void answer_unmanaged(struct request *r); // the fabric has no manager: why not
int64_t next_sweep(const struct view *v); // id of the one that takes up what is asked for now
#define USER_TEXT 24
const char *user_text(const struct request *r, char ret[USER_TEXT]); // who asks, as it is kept

// --- blueprint.c ---
struct blueprint_change;
struct computation;
void blueprint_change_done(struct view *v, struct computation *c, struct blueprint_change *x);
// Both take x. The first answers; the second does not where it succeeds.
void jobs_blueprint(struct request *r, struct view *v, struct blueprint_change *x);
bool jobs_begin_blueprint(struct request *r, struct view *v, struct blueprint_change *x, char id[24]);

// --- sim.c ---
struct sim *sim_of(struct request *r); // or NULL and an answer (409): the fabric is not simulated

// --- stream.c, jobs.c ---
void streams_init(struct api *a);
void streams_close(struct api *a); // all connections of streams end with the next turn of libmicrohttpd
void streams_done(struct api *a);
void jobs_init(struct api *a);
void jobs_done(struct api *a);
struct computation;
// Rates tables of v's fabric, then calls quality_rated(). The computation is taken; false with an answer when
// there are too many.
bool jobs_rate(struct request *r, struct view *v, const struct computation *given);

// --- later.c ---
enum later_lane {
    LATER_EXPORT,
    LATER_QUERY,
    LATER_METRICS,
    LATER_WAIT, // for a device
    LATER_SLICES,
};
struct later { // first member of what a worker is to do for a request
    enum later_lane lane;
    // On the loop before that, a slice a turn until it is true; NULL: nothing to do there.
    bool (*prepare)(struct later *l);
    void (*work)(struct later *l, struct par *par); // on a worker; fills err where it fails. NULL: nothing
    void (*answer)(struct later *l, struct request *r); // on the loop, unless it failed
    void (*free)(struct later *l);
    struct err err;
    // later.c's
    struct later *next;
    struct api *api;
    struct request *r; // suspended
    struct pool_job job;
    struct loop_task turn;
    bool begun, over;
};
bool later_room(struct request *r, enum later_lane lane); // false with an answer (503): too many
void later_start(struct request *r, struct later *l);     // takes it; the request goes on when it is over
// The same for what no worker does: whoever brings it calls later_over(), unless l was freed before.
void later_wait(struct request *r, struct later *l);
void later_over(struct later *l);
void later_answer(struct request *r); // it goes on
void later_drop(struct request *r);   // its connection has ended before the answer, which was there
void laters_close(struct api *a);     // no connection may be suspended when the server stops

// --- slices.c ---
struct slices { // first member of what a handler does on the loop a slice a turn
    struct later later;
    struct request *r; // stays until free()
    // Goes on until slice_over(); true: the answer is in r, also one of a problem. What it has seen in the
    // slice before may be others now: of that only what it holds references of.
    bool (*step)(struct slices *s);
    void (*free)(struct slices *s);
    mono_t until; // slices.c's
    unsigned looked;
};
// Takes s. The first slice is done at once: what is short is answered in the same turn.
void slices_run(struct request *r, struct slices *s);
// The same for what a worker goes on with: lane, work and answer of s->later are set; a step that is true
// without an answer in r (its status is 0) hands over to work.
void slices_then(struct request *r, struct slices *s);
bool slice_over(struct slices *s); // to be asked after each row or so

// --- metrics.c ---
bool metrics_request(struct request *r); // whether it was one below /metrics, which lies outside API_BASE
void metrics_view_done(struct view *v);

// --- export.c ---
extern const struct param export_params[];
void get_export(struct request *r);

// --- drain.c ---
struct sm_drain_check;
void drain_check_work(struct sm_drain_check *c, struct par *par, struct buf *result,
                      struct err *e);                                               // any thread
void jobs_drain_check(struct request *r, struct view *v, struct sm_drain_check *c); // takes it; answers

// --- render_quality.c ---
void quality_rated(struct view *v, struct computation *c); // takes the results
void quality_changed(struct view *v);                      // the fabric or its tables may be others now
void quality_done(struct view *v);
// Tables that a sweep has changed are rated when nobody else wants the processor: so that their figures are
// there when somebody asks, and when they are the last ones.
void ratings_init(struct api *a);
void ratings_done(struct api *a);
void ratings_look(struct api *a);
// In short, NULL where not known: of the tables in force, the ideal ones, those before, and those that a
// sweep has put in force.
struct quality_brief;
const struct quality_brief *quality_now(const struct view *v);
const struct quality_brief *quality_ideal(const struct view *v);
const struct quality_brief *quality_last(const struct view *v);
const struct quality_brief *quality_of_sweep(const struct view *v, uint64_t sweep);

// --- render_lists.c ---
void event_put(struct buf *b, const struct db_event *ev); // an event as JSON
// The cursor of lists that are walked by a running number; 0 when absent. False with an answer (400).
bool cursor_number(struct request *r, uint64_t *ret);
const char *number_text(uint64_t v, char buf[24]);

// --- render_sweep.c ---
struct change_row { // the last sweep that found or wrote something
    const char *text, *cause;
    bool full;
    int64_t at, sweep, devices, blocks, entries, paths, port_sets, mads;
    double reaction, seconds;
};
extern const struct schema schema_change;
bool change_fill(struct api *a, struct view *v, struct change_row *ret); // false: there was none

#endif
