// SPDX-License-Identifier: Apache-2.0
// Drains over the API: asked for, listed, looked at first, refused; who asked is recorded.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/whole/api_rig.h"

#define LEAF "leaf-su01-rail0"

static int setup(void **state)
{
    (void)state;
    env_up("rail-256");
    env_serve();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    env_down();
    rig_done(&env.rig);
    return 0;
}

static void refused(const char *path, const char *body, int status, const char *why)
{
    refused_call("POST", path, body, status, why);
}

// The only item of the list.
static json_t *listed(void)
{
    json_t *v = call("GET", LIVE "/drains", NULL, 200);
    assert_int_equal(json_array_size(at(v, "items")), 1);
    json_t *d = json_incref(json_array_get(at(v, "items"), 0));
    json_decref(v);
    conforms(d, "drain");
    return d;
}

static json_int_t fabric_says(const char *key)
{
    json_t *v = call("GET", LIVE, NULL, 200);
    json_int_t n = num(v, key);
    json_decref(v);
    return n;
}

static void run_check(const char *body, json_int_t *ret_entries)
{
    char path[60];
    json_t *j = call("POST", LIVE "/drain-checks", body, 202);
    assert_string_equal(str(j, "kind"), "drain-check");
    snprintf(path, sizeof(path), "/jobs/%s", str(j, "id"));
    json_decref(j);
    for (int i = 0; i < 400; i++) {
        j = call("GET", path, NULL, 200);
        if (strcmp(str(j, "state"), "done") == 0) {
            assert_true(json_is_true(at(at(j, "result"), "proved")));
            *ret_entries = num(at(j, "result"), "entries");
            json_decref(j);
            return;
        }
        json_decref(j);
        rig_run(&env.rig, MONO_S / 100);
    }
    fail_msg("the job does not end");
}

static void test_drain(void **state)
{
    json_int_t entries;
    (void)state;
    run_check("{\"element\":\"" LEAF "[33]\"}", &entries);
    assert_true(entries > 0);
    assert_int_equal(fabric_says("drains"), 0); // looking changes nothing

    json_t *v = call("POST", LIVE "/drains", "{\"element\":\"" LEAF "[33]\",\"reason\":\"bad optics\"}", 202);
    conforms(v, "drained");
    assert_true(json_is_true(at(v, "changed")));
    assert_string_equal(str(v, "name"), LEAF "[33]");
    json_int_t sweep = num(v, "sweep");
    json_decref(v);
    json_t *d = listed();
    if ((json_int_t)rig_last(&env.rig)->id < sweep) // the sweep may have ended while the answer was read
        assert_string_equal(str(d, "state"), "moving");
    json_decref(d);
    rig_run(&env.rig, MONO_S);
    assert_int_equal(rig_last(&env.rig)->id, sweep);
    assert_int_equal(rig_last(&env.rig)->lft_entries, entries);
    d = listed();
    assert_string_equal(str(d, "state"), "drained");
    assert_string_equal(str(d, "text"), "nothing uses it");
    assert_string_equal(str(d, "reason"), "bad optics");
    assert_string_equal(str(d, "far"), "spine-01[1]");
    assert_int_equal(num(d, "port"), 33);
    assert_int_equal(strncmp(str(d, "by"), "user id ", 8), 0);
    json_decref(d);
    assert_int_equal(fabric_says("drains"), 1);
    assert_int_equal(fabric_says("drains_in_use"), 0);

    v = call("POST", LIVE "/drains", "{\"element\":\"spine-01[1]\"}", 200); // its other end
    assert_true(json_is_false(at(v, "changed")) && json_is_null(at(v, "sweep")));
    assert_non_null(strstr(str(v, "text"), "already"));
    json_decref(v);
    refused(LIVE "/drain-checks", "{\"element\":\"" LEAF "[33]\"}", 409, "drained already");
    run_check("{\"element\":\"" LEAF "[33]\",\"undrain\":true}", &entries);
    json_decref(call("POST", LIVE "/undrain", "{\"element\":\"spine-01[1]\"}", 202));
    rig_run(&env.rig, MONO_S);
    assert_int_equal(rig_last(&env.rig)->lft_entries, entries);
    assert_int_equal(fabric_says("drains"), 0);
    v = call("POST", LIVE "/undrain", "{\"element\":\"" LEAF "[33]\"}", 200);
    assert_non_null(strstr(str(v, "text"), "is not drained"));
    json_decref(v);

    v = call("GET", "/events?kind=operator-action", NULL, 200);
    assert_int_equal(json_array_size(at(v, "items")), 2); // what has changed something
    json_decref(v);
}

// A switch that is gone is still found in the list.
static void test_node(void **state)
{
    const struct node *n = NULL;
    (void)state;
    for (uint32_t i = 0; i < env.rig.plan->num_nodes; i++)
        if (strcmp(fabric_desc(env.rig.plan, &env.rig.plan->node[i]), "spine-02") == 0)
            n = &env.rig.plan->node[i];
    assert_non_null(n);
    json_decref(call("POST", LIVE "/drains", "{\"element\":\"spine-02\"}", 202));
    rig_run(&env.rig, MONO_S);
    json_t *d = listed();
    assert_true(json_is_null(at(d, "port")) && json_is_null(at(d, "far")));
    assert_string_equal(str(d, "text"), "nothing passes through it");
    json_decref(d);
    assert_int_equal(sim_node_boot(env.rig.sim, n->guid, 3600 * MONO_S, 0), 0);
    rig_run(&env.rig, 30 * MONO_S);
    assert_null(fabric_by_guid(sm_fabric(env.rig.sm), n->guid));
    d = listed();
    assert_string_equal(str(d, "state"), "away");
    json_decref(d);
    json_decref(call("POST", LIVE "/undrain", "{\"element\":\"spine-02\"}", 202));
    rig_run(&env.rig, MONO_S);
    assert_int_equal(fabric_says("drains"), 0);
    // Drained while it is away, by the name that it has in the blueprint; undrained by its GUID.
    char body[100];
    json_t *v = call("POST", LIVE "/drains", "{\"element\":\"spine-02\"}", 202);
    conforms(v, "drained");
    assert_string_equal(str(v, "name"), "spine-02");
    json_decref(v);
    json_decref(call("POST", LIVE "/drains", "{\"element\":\"spine-02[3]\"}", 202));
    json_decref(call("POST", LIVE "/undrain", "{\"element\":\"spine-02[3]\"}", 202));
    rig_run(&env.rig, MONO_S);
    d = listed();
    assert_string_equal(str(d, "state"), "away");
    snprintf(body, sizeof(body), "{\"element\":\"%s\"}", str(d, "node"));
    json_decref(d);
    json_decref(call("POST", LIVE "/undrain", body, 202));
    rig_run(&env.rig, MONO_S);
    assert_int_equal(fabric_says("drains"), 0);
}

// Lists of ports, globs and fields: all of them or none, by one sweep.
static void test_many(void **state)
{
    (void)state;
    json_int_t sweeps = rig_last(&env.rig)->id, entries;
    run_check("{\"element\":\"" LEAF "[33-36]\"}", &entries);
    json_t *v = call("POST", LIVE "/drains", "{\"element\":\"" LEAF "[33-36,38]\"}", 202);
    conforms(v, "drained");
    assert_int_equal(json_array_size(at(v, "items")), 5);
    assert_string_equal(str(json_array_get(at(v, "items"), 4), "name"), LEAF "[38]");
    json_decref(v);
    rig_run(&env.rig, MONO_S);
    assert_int_equal(rig_last(&env.rig)->id, sweeps + 1);
    assert_int_equal(fabric_says("drains"), 5);
    refused(LIVE "/drains", "{\"element\":\"" LEAF "[31-35]\"}", 400, "nothing else leads there");
    assert_int_equal(fabric_says("drains"), 5);
    v = call("POST", LIVE "/drains", "{\"element\":\"role=spine\"}", 202);
    assert_int_equal(json_array_size(at(v, "items")), 4);
    json_decref(v);
    v = call("POST", LIVE "/drains", "{\"element\":\"" LEAF "[*]\"}", 202); // not the hosts'
    assert_int_equal(json_array_size(at(v, "items")), 32);
    json_decref(v);
    assert_int_equal(fabric_says("drains"), 36);
    refused(LIVE "/drains", "{\"element\":\"gpu-*\"}", 404, "no switch");
    rig_run(&env.rig, MONO_S);
    json_decref(call("POST", LIVE "/undrain", "{\"element\":\"role=spine\"}", 202));
    v = call("POST", LIVE "/undrain", "{\"element\":\"" LEAF "[*]\"}", 202);
    assert_int_equal(json_array_size(at(v, "items")), 32);
    json_decref(v);
    rig_run(&env.rig, MONO_S);
    assert_int_equal(fabric_says("drains"), 0);
}

static void test_refused(void **state)
{
    (void)state;
    refused(LIVE "/drains", "{\"element\":\"nobody\"}", 404, "no node");
    refused(LIVE "/drains", "{\"element\":\"" LEAF "[250]\"}", 404, "port");
    refused(LIVE "/drains", "{\"element\":\"" LEAF "[1]\"}", 400, "nothing else leads there");
    refused(LIVE "/drains", "{\"element\":\"gpu-0001 mlx5_0\"}", 400, "is no switch");
    refused(LIVE "/drains", "{\"element\":\"" LEAF "[0]\"}", 400, "management port");
    refused(LIVE "/drains", "{}", 400, "element");
    refused(LIVE "/undrain", "{\"element\":\"nobody\"}", 404, "no node");
    refused(LIVE "/drain-checks", "{\"element\":\"" LEAF "[33]\",\"undrain\":true}", 409, "is not drained");
    refused("/fabrics/file/drains", "{\"element\":\"core-001\"}", 409, "is a file");
    json_t *v = call("GET", "/fabrics/file/drains", NULL, 200);
    assert_int_equal(json_array_size(at(v, "items")), 0);
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_drain),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_node),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
