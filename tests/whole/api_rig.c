// SPDX-License-Identifier: Apache-2.0
#include "tests/whole/api_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/topogen.h"
#include "lib/err.h"

struct api_env env;

void env_up(const char *name)
{
    struct err e = {0};
    rig_init(&env.rig, name, NULL);
    rig_up(&env.rig);
    rig_sweeps(&env.rig, 1, 60);
    rig_run(&env.rig, 5 * MONO_S);
    env.fabric[0] = (struct api_fabric){.name = "live",
                                        .transport = "simulator",
                                        .sm = env.rig.sm,
                                        .engine = env.rig.engine,
                                        .sim = env.rig.sim};
    env.fabric[1] = (struct api_fabric){.name = "file", .offline = topogen_make("ft3-8-4", &e)};
    if (env.fabric[1].offline == NULL)
        fail_msg("%s", e.text);
    env.list[0] = &env.fabric[0];
    env.list[1] = &env.fabric[1];
    snprintf(env.sock, sizeof(env.sock), "%.90s/api.sock", env.rig.dir);
}

void env_open(void)
{
    struct err e = {0};
    struct api_context c = {.loop = env.rig.loop,
                            .pool = env.rig.pool,
                            .db = env.rig.db,
                            .fabric = env.list,
                            .num_fabrics = 2,
                            .alarms = env.alarms,
                            .started_wall_ns = wall_now_ns()};
    env.api = api_new(&c, &(struct api_opts){.socket = env.sock}, &e);
    if (env.api == NULL)
        fail_msg("%s: %s", e.where, e.text);
}

void env_serve(void)
{
    env_open();
    env.doc = call("GET", "/openapi.json", NULL, 200);
}

void env_down(void)
{
    json_decref(env.doc);
    api_free(env.api);
    env.api = NULL;
    fabric_unref(env.fabric[1].offline);
}

json_t *call(const char *method, const char *path, const char *body, int status)
{
    struct http h;
    char full[6000];
    snprintf(full, sizeof(full), BASE "%s", path);
    http_do(&h, env.rig.loop, env.sock, method, full, NULL, body);
    if (h.status != status || h.json == NULL)
        fail_msg("%s %s %s: expected %d, got %d %s", method, path, body ? body : "", status, h.status,
                 h.body);
    json_t *j = json_incref(h.json);
    http_close(&h);
    return j;
}

void refused_call(const char *method, const char *path, const char *body, int status, const char *why)
{
    json_t *v = call(method, path, body, status);
    if (strstr(str(v, "detail"), why) == NULL)
        fail_msg("%s %s: \"%s\" is not in: %s", method, path, why, str(v, "detail"));
    json_decref(v);
}

json_int_t call_sweep(const char *path, const char *body)
{
    json_t *v = call("POST", path, body, 202);
    json_int_t id = num(v, "sweep");
    json_decref(v);
    assert_true(id > 0);
    while ((json_int_t)rig_last(&env.rig)->id < id)
        rig_sweeps(&env.rig, 1, 120);
    return id;
}

const json_t *schema_of(const char *path, const char *method)
{
    const json_t *op = json_object_get(json_object_get(json_object_get(env.doc, "paths"), path), method);
    const json_t *r = json_object_get(json_object_get(op, "responses"), "200");
    const json_t *s =
        json_object_get(json_object_get(json_object_get(r, "content"), "application/json"), "schema");
    if (s == NULL)
        fail_msg("no schema of %s %s", method, path);
    return s;
}

void conforms(const json_t *v, const char *schema)
{
    const json_t *s =
        json_object_get(json_object_get(json_object_get(env.doc, "components"), "schemas"), schema);
    assert_non_null(s);
    openapi_check(env.doc, s, v, schema);
}

json_t *at(const json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);
    if (v == NULL)
        fail_msg("no %s", key);
    return v;
}

json_int_t num(const json_t *o, const char *key)
{
    return json_integer_value(at(o, key));
}

const char *str(const json_t *o, const char *key)
{
    const char *s = json_string_value(at(o, key));
    return s != NULL ? s : "";
}
