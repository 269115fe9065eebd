// SPDX-License-Identifier: Apache-2.0
// Between route.c, job.c, quality.c and whatif.c: computations and how their figures are shown.
#ifndef WEFT_CLI_QUALITY_H
#define WEFT_CLI_QUALITY_H

#include "cli/cli.h"

#define ROUTE_SECONDS 600 // that a computation may take

// Shows what came out; an exit code. what: the file or fabric.
typedef int route_show_fn(struct cli *c, const char *what, json_t *result);
// What is done with a weftd, c->http's.
typedef int route_run_fn(struct cli *c, const char *what, double seconds, route_show_fn *show);
// With a weftd of its own that has a saved or generated fabric.
int route_private(struct cli *c, const char *what, double seconds, route_run_fn *run, route_show_fn *show);
// Begins a job by a POST below the fabric, or to a path from / on (the body is taken), and waits for its
// result.
int route_job(struct cli *c, const char *below, json_t *body, double seconds, json_t **ret);
// Computes with a weftd of its own, by the options --engine, --fail and --dump-lft.
int route_compute_private(struct cli *c, const char *what, double seconds, route_show_fn *show);
json_t *route_elements(struct cli *c, const char *option); // what --fail, --drain or --add name, a list
void route_pairs(struct out *o, json_t *result);           // all values of an object, by path

// What a pattern's figures say in a line: an object of the few that matter, or a string that says why there
// are none. The caller's.
json_t *quality_line(json_t *figures);
// A table, a pattern a line; ideal, before: beside these, NULL where there are none.
void quality_table(struct cli *c, json_t *now, json_t *ideal, json_t *before);
// The fields of which some row says something; *ret has room for all.
void quality_columns(const struct field *fields, json_t *rows, struct field *ret);
// A line where switches of the running fabric route adaptively, which no figure here knows of.
void quality_say_adaptive(struct cli *c);

#endif
