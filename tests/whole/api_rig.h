// SPDX-License-Identifier: Apache-2.0
// A manager on a simulated fabric with the REST server over it, and beside it a fabric that is only a file;
// and what tests ask of it. One a program.
#ifndef WEFT_TESTS_WHOLE_API_RIG_H
#define WEFT_TESTS_WHOLE_API_RIG_H

#include <jansson.h>

#include "api/api.h"
#include "tests/whole/http.h"
#include "tests/whole/rig.h"

#define BASE "/api/v1"
#define LIVE "/fabrics/live"

struct api_env {
    struct rig rig;
    struct api *api;
    struct api_fabric fabric[2]; // "live", "file"
    struct api_fabric *list[2];
    struct alarms *alarms; // set before env_serve(); may be NULL
    char sock[104];
    json_t *doc; // the server's own OpenAPI document
};
extern struct api_env env;

// The fabric is made and brought up. name: as rig_init().
void env_up(const char *name);
// The server over it; env.fabric[0] may be filled further before.
void env_serve(void);
void env_down(void);
// The server alone comes or goes, as on a restart.
void env_open(void);

// One request below BASE; fails the test unless the status and JSON come. The answer is the caller's.
json_t *call(const char *method, const char *path, const char *body, int status);
// Fails the test unless it is refused with that status and those words in its detail.
void refused_call(const char *method, const char *path, const char *body, int status, const char *why);
// POSTs what begins a sweep, and runs until that one has ended, which it may have when the answer is read;
// its id.
json_int_t call_sweep(const char *path, const char *body);
// Schema of what a path answers, as in the document ("/fabrics/{f}/links", "get").
const json_t *schema_of(const char *path, const char *method);
// Fails the test unless v is what components/schemas says.
void conforms(const json_t *v, const char *schema);

// Members; the test fails where one is missing.
json_t *at(const json_t *o, const char *key);
json_int_t num(const json_t *o, const char *key);
const char *str(const json_t *o, const char *key); // "" when it is no string

#endif
