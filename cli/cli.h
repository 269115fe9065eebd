// SPDX-License-Identifier: Apache-2.0
// weft: the command that shows and changes what weftd manages. A client of its REST API and nothing else.
//
//     commands.c  rows of commands and options      args.c   the command line by those rows
//     main.c      options, --watch, exit code       help.c   help, doc/cli.md, completion from the rows
//     http.c      requests over the unix socket     out.c    one walk over fields: table, CSV, JSON
//     query.c     fabrics, lists, names of nodes    text.c   escaping, widths, times, nearest words
//     focus.c     the focus language on JSON    child.c  a private weftd for saved fabrics
//     status.c show.c sweep.c blueprint.c group.c route.c quality.c job.c whatif.c event.c change.c drain.c
//     sim.c counters.c health.c congestion.c alarm.c db.c   the commands; tele.c: what those about counters
//     share
//
// One thread. Handlers return an exit code (enum cli_exit) and have said why on stderr where it is not 0.
#ifndef WEFT_CLI_CLI_H
#define WEFT_CLI_CLI_H

#include "cli/args.h"
#include "cli/http.h"
#include "cli/out.h"
#include "lib/err.h"
#include "lib/mono.h"

#define CLI_SOCKET_DEFAULT "/run/weft/weft.sock"

struct cli {
    struct args args;
    struct http *http;
    struct out out;
    double timeout; // of one request, and of waits unless they say
    char *fabric;   // base path of the fabric in use, "/api/v1/fabrics/name"; NULL until cli_fabric()
    char *fabric_name;
    bool partial; // a list could not be read to its end
    bool quiet;   // no progress: stderr is no terminal
    bool told;    // progress stands on the line
};

// "weft: where: text" on stderr, escaped.
void cli_complain(const struct err *e);
enum cli_exit cli_fail(enum cli_exit x, const char *where, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void cli_progress(struct cli *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_progress_end(struct cli *c);
// Sleeps; false when interrupted.
bool cli_sleep(double seconds);
int cli_parse_seconds(const char *s, double *ret); // "10ms", "0.5s", "2m", "1h", "3" are seconds; or -EINVAL
int cli_flush(struct cli *c);                      // what was gathered, to stdout; an exit code

// Option --name as a number within bounds; *ret keeps its value when it is not given.
int cli_number(struct cli *c, const char *name, long long min, long long max, long long *ret);

int cli_get(struct cli *c, const char *path, json_t **ret);
int cli_post(struct cli *c, const char *path, json_t *body, json_t **ret); // body is taken
int cli_send(struct cli *c, const char *method, const char *path, json_t *body, json_t **ret); // the same
// The fabric that --fabric names, or the only one: fills c->fabric. Usage error with their names otherwise.
int cli_fabric(struct cli *c);
// All items of a list, following its cursors; limit 0 = all. A list that cannot be read to its end is what
// was read, and c->partial.
int cli_list(struct cli *c, const char *path, long long limit, json_t **ret_items);
// The node that a word names: GUID in any form, LID, name, or HOST:RAIL. Candidates are listed when it is not
// one. *ret: an item of .../nodes.
int cli_node(struct cli *c, const char *word, json_t **ret);

void cli_said(struct cli *c, json_t *r); // what weftd says it has done: its text, or all of it as JSON
// "user id 0" is what weftd knows; here it has a name. Until the next call.
const char *cli_user(const char *by);
// The finished sweep with this id, or a later one; waits for it.
int cli_wait_sweep(struct cli *c, long long id, double seconds, json_t **ret);
// Asks for a sweep by a POST below the fabric; waits for it with --wait.
int cli_ask_sweep(struct cli *c, const char *what);
// A list of the fabric as it is, with --limit.
int cli_show_list(struct cli *c, const char *below, const struct field *fields);

int cmd_status(struct cli *c);
int cmd_node(struct cli *c);
int cmd_port(struct cli *c);
int cmd_link(struct cli *c);
int cmd_drain(struct cli *c);
int cmd_link_drain(struct cli *c);
int cmd_link_undrain(struct cli *c);
int cmd_node_drain(struct cli *c);
int cmd_node_undrain(struct cli *c);
int cmd_route_show(struct cli *c);
int cmd_route_compute(struct cli *c);
int cmd_route_quality(struct cli *c);
int cmd_route_job(struct cli *c);
int cmd_whatif(struct cli *c);
int cmd_blueprint_show(struct cli *c);
int cmd_blueprint_accept(struct cli *c);
int cmd_blueprint_learn(struct cli *c);
int cmd_blueprint_set(struct cli *c);
int cmd_blueprint_strike(struct cli *c);
int cmd_blueprint_save(struct cli *c);
int cmd_reroute(struct cli *c);
int cmd_resweep(struct cli *c);
int cmd_event(struct cli *c);
int cmd_export(struct cli *c);
int cmd_sweep(struct cli *c);
int cmd_finding(struct cli *c);
int cmd_sim(struct cli *c);
int cmd_sim_show(struct cli *c);
int cmd_sim_traffic(struct cli *c);
int cmd_sim_play(struct cli *c);
int cmd_group(struct cli *c);
int cmd_mad(struct cli *c);
int cmd_counters(struct cli *c);
int cmd_counters_list(struct cli *c);
int cmd_top(struct cli *c);
int cmd_congestion(struct cli *c);
int cmd_health(struct cli *c);
int cmd_alarm(struct cli *c);
int cmd_alarm_show(struct cli *c);
int cmd_alarm_ack(struct cli *c);
int cmd_alarm_silence(struct cli *c);
int cmd_silence(struct cli *c);
int cmd_silence_add(struct cli *c);
int cmd_silence_end(struct cli *c);
int cmd_maintenance(struct cli *c);
int cmd_isolate(struct cli *c);
int cmd_isolate_release(struct cli *c);
int cmd_isolate_exclude(struct cli *c);
int cmd_isolate_include(struct cli *c);
int cmd_db_status(struct cli *c);
int cmd_db_check(struct cli *c);
int cmd_route_adaptive(struct cli *c);
int cmd_api(struct cli *c);
int cmd_help(struct cli *c);

// What a focus on their lists knows.
const struct field *finding_focus_fields(void), *event_focus_fields(void);

int help_command(struct out *o, const struct command_row *c); // its page
void help_all(struct out *o);
void help_markdown(struct out *o);
void help_completion(struct out *o);

#endif
