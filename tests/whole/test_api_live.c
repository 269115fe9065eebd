// SPDX-License-Identifier: Apache-2.0
// What the API does over time: event streams, actions on the manager and the simulator, jobs, names from
// hostile devices.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/whole/api_rig.h"

static int setup(void **state)
{
    (void)state;
    env_up("rail-64");
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

static json_int_t ask_num(const char *path, const char *key)
{
    json_t *v = call("GET", path, NULL, 200);
    json_int_t n = num(v, key);
    json_decref(v);
    return n;
}

static uint64_t add_event(const char *fabric, const char *kind, const char *text)
{
    uint64_t id = db_event_add(env.rig.db, &(struct db_event){.wall_ns = wall_now_ns(),
                                                              .fabric = fabric,
                                                              .kind = kind,
                                                              .severity = "info",
                                                              .subject = "",
                                                              .text = text,
                                                              .data = ""});
    api_event(env.api, id);
    return id;
}

// --- event streams ---

static void open_stream(struct http *h, const char *query, const char *headers)
{
    struct buf b = {0};
    http_open(h, env.rig.loop, env.sock);
    buf_printf(&b, "GET " BASE "/events/stream%s HTTP/1.1\r\nHost: x\r\n%s\r\n", query, headers);
    http_send(h, b.data, b.len);
    buf_done(&b);
    assert_true(http_wait_text(h, ": weft", 5));
    assert_non_null(strstr(h->in.data, "Content-Type: text/event-stream"));
}

static unsigned count(const char *s, const char *what)
{
    unsigned n = 0;
    while ((s = strstr(s, what)) != NULL) {
        n++;
        s += strlen(what);
    }
    return n;
}

static void test_stream(void **state)
{
    struct http h, odd;
    char id[60];
    (void)state;
    add_event("live", "before", "not for a new stream");
    open_stream(&h, "", "");
    open_stream(&odd, "?kind=odd&fabric=live", "");
    uint64_t first = add_event("live", "even", "one");
    assert_true(http_wait_text(&h, "\"one\"", 5));
    snprintf(id, sizeof(id), "id: %llu\n", (unsigned long long)first);
    assert_non_null(strstr(h.in.data, id));
    add_event("live", "odd", "two \"quoted\"\nand broken");
    add_event("other", "odd", "three");
    assert_true(http_wait_text(&h, "three", 5));
    assert_true(http_wait_text(&odd, "two", 5));
    assert_null(strstr(h.in.data, "not for a new stream"));
    assert_null(strstr(odd.in.data, "one"));
    assert_null(strstr(odd.in.data, "three"));
    assert_int_equal(count(h.in.data, "\ndata: {"), 3); // each on one line
    assert_int_equal(ask_num("/status", "event_streams"), 2);
    // A comment every fifteen seconds keeps it open.
    unsigned beats = count(h.in.data, ": \n\n");
    rig_run(&env.rig, 31 * MONO_S);
    assert_int_equal(count(h.in.data, ": \n\n") - beats, 2);
    http_close(&h);
    http_close(&odd);
    add_event("live", "even", "nobody listens");
    rig_run(&env.rig, 16 * MONO_S);
    assert_int_equal(ask_num("/status", "event_streams"), 0);
}

static void test_stream_resumes(void **state)
{
    struct http h;
    char head[80], text[40];
    uint64_t id = 0;
    (void)state;
    // More than are kept rendered, so that it comes from the database, then from memory, then live.
    for (int i = 0; i < 700; i++) {
        snprintf(text, sizeof(text), "event number %04d.", i);
        uint64_t x = add_event("live", i % 2 ? "odd" : "even", text);
        if (i == 99)
            id = x;
    }
    snprintf(head, sizeof(head), "Last-Event-ID: %llu\r\n", (unsigned long long)id);
    open_stream(&h, "", head);
    assert_true(http_wait_text(&h, "number 0699.", 20));
    add_event("live", "even", "event number 0700.");
    assert_true(http_wait_text(&h, "number 0700.", 20));
    assert_int_equal(count(h.in.data, "event number "), 601);
    const char *at = h.in.data;
    for (int i = 100; i <= 700; i++) { // in order
        snprintf(text, sizeof(text), "number %04d.", i);
        at = strstr(at, text);
        assert_non_null(at);
    }
    http_close(&h);
    open_stream(&h, "?after=999999999", ""); // an id that this database never gave: from now on
    add_event("live", "even", "event number 0701.");
    assert_true(http_wait_text(&h, "number 0701.", 20));
    assert_int_equal(count(h.in.data, "event number "), 1);
    http_close(&h);
}

// One that reads nothing holds no others up, and gets everything once it reads.
static void test_slow_stream(void **state)
{
    struct http slow, fast;
    char text[4000];
    (void)state;
    open_stream(&slow, "", "");
    open_stream(&fast, "", "");
    loop_fd_events(slow.poll, 0);
    memset(text, 'x', sizeof(text));
    text[sizeof(text) - 1] = 0;
    for (int i = 0; i < 1000; i++) {
        snprintf(text, 20, "load %04d", i);
        text[9] = '.';
        add_event("live", "load", text);
        if (i % 50 == 0)
            rig_run(&env.rig, MONO_MS);
    }
    assert_true(http_wait_text(&fast, "load 0999.", 60));
    loop_fd_events(slow.poll, LOOP_READ);
    assert_true(http_wait_text(&slow, "load 0999.", 60));
    assert_int_equal(count(slow.in.data, "\"load "), 1000);
    http_close(&slow);
    http_close(&fast);
}

static void test_many_streams(void **state)
{
    static struct http h[100];
    (void)state;
    for (int i = 0; i < 100; i++)
        open_stream(&h[i], "", "");
    add_event("live", "even", "for all of them");
    for (int i = 0; i < 100; i++)
        assert_true(http_wait_text(&h[i], "for all of them", 5));
    // The API ends with its streams open, and they with it.
    api_free(env.api);
    for (int i = 0; i < 100; i++) {
        http_wait_closed(&h[i]);
        http_close(&h[i]);
    }
    env_open();
}

// --- actions ---

static void act(const char *path, const char *body, int status)
{
    json_decref(call("POST", path, body, status));
}

static void until_links(json_int_t links)
{
    for (int i = 0; i < 200; i++) {
        if (ask_num("/fabrics/live", "links") == links)
            return;
        rig_run(&env.rig, MONO_S / 4);
    }
    fail_msg("there are %lld links, not %lld", (long long)ask_num("/fabrics/live", "links"),
             (long long)links);
}

static void test_reroute(void **state)
{
    (void)state;
    json_int_t id = call_sweep("/fabrics/live/reroute", NULL);
    json_t *v = call("GET", "/fabrics/live/sweeps?limit=10", NULL, 200), *x;
    const json_t *s = NULL;
    size_t i;
    json_array_foreach(json_object_get(v, "items"), i, x) s = num(x, "id") == id ? x : s;
    assert_string_equal(str(s, "cause"), "operator");
    json_decref(v);
    v = call("GET", "/events?newest=1&kind=operator-action&limit=1", NULL, 200);
    s = json_array_get(json_object_get(v, "items"), 0);
    assert_non_null(strstr(str(s, "text"), "routes are computed anew"));
    json_decref(v);
    call_sweep("/fabrics/live/resweep", "{}");
}

static void test_sim_link(void **state)
{
    json_int_t links = ask_num("/fabrics/live", "links");
    (void)state;
    act("/fabrics/live/sim/link", "{\"node\": \"leaf-su01-rail0\", \"port\": 2, \"up\": false}", 200);
    until_links(links - 1);
    act("/fabrics/live/sim/link", "{\"node\": \"leaf-su01-rail0\", \"port\": 2, \"up\": true}", 200);
    until_links(links);
    act("/fabrics/live/sim/link", "{\"node\": \"leaf-su01-rail0\", \"port\": 200, \"up\": true}", 404);
    act("/fabrics/live/sim/link", "{\"node\": \"gpu-0001\", \"port\": 1, \"up\": true}", 404);
    act("/fabrics/live/sim/link", "{\"node\": \"0x77\", \"port\": 1, \"up\": true}", 404);
}

// A dead node is in no snapshot any more; its name still works.
static void test_sim_node(void **state)
{
    json_int_t nodes = ask_num("/fabrics/live", "nodes");
    (void)state;
    act("/fabrics/live/sim/node", "{\"node\": \"gpu-0005 mlx5_3\", \"action\": \"kill\"}", 200);
    for (int i = 0; i < 50 && ask_num("/fabrics/live", "nodes") == nodes; i++) {
        call_sweep("/fabrics/live/resweep", NULL);
    }
    assert_int_equal(ask_num("/fabrics/live", "nodes"), nodes - 1);
    rig_run(&env.rig, 5 * MONO_S); // a light sweep counts the silent ones
    json_t *v = call("GET", "/fabrics/live", NULL, 200);
    assert_true(num(v, "exceptions") > 0);
    assert_true(json_array_size(json_object_get(v, "advice")) > 0);
    json_decref(v);
    act("/fabrics/live/sim/node", "{\"node\": \"gpu-0005 mlx5_3\", \"action\": \"revive\"}", 200);
    call_sweep("/fabrics/live/resweep", NULL);
    for (int i = 0; i < 50 && ask_num("/fabrics/live", "nodes") != nodes; i++)
        rig_run(&env.rig, MONO_S);
    assert_int_equal(ask_num("/fabrics/live", "nodes"), nodes);
    act("/fabrics/live/sim/node", "{\"node\": \"gpu-0005 mlx5_3\", \"action\": \"reboot\"}", 200);
    act("/fabrics/live/sim/loss", "{\"loss\": 0.01}", 200);
    act("/fabrics/live/sim/loss", "{\"loss\": 0}", 200);
    rig_run(&env.rig, 5 * MONO_S);
}

// --- names from hostile devices ---

static void test_hostile_names(void **state)
{
    static const char evil[] = "=1+2,\"a\\b\"\x01\xff\n<script>";
    const struct fabric *f = sm_fabric(env.rig.sm);
    uint64_t a = f->node[3].guid, b = f->node[4].guid;
    char path[200], guid[30], old_a[64], old_b[64];
    (void)state;
    snprintf(old_a, sizeof(old_a), "%s", fabric_desc(f, &f->node[3]));
    snprintf(old_b, sizeof(old_b), "%s", fabric_desc(f, &f->node[4]));
    sim_node_desc(env.rig.sim, a, evil);
    sim_node_desc(env.rig.sim, b, evil);
    call_sweep("/fabrics/live/resweep", NULL);
    snprintf(guid, sizeof(guid), "0x%016llx", (unsigned long long)a);
    snprintf(path, sizeof(path), "/fabrics/live/nodes/%s", guid);
    json_t *v = call("GET", path, NULL, 200);
    assert_non_null(strstr(str(v, "name"), "=1+2,\"a\\b\""));
    assert_non_null(strstr(str(v, "name"), "<script>"));
    json_decref(v);
    json_decref(call("GET", "/fabrics/live/ports?limit=10000", NULL, 200));
    json_decref(call("GET", "/fabrics/live/links?limit=10000", NULL, 200));
    // Two of one name: candidates are told.
    v = call("GET", "/fabrics/live/nodes/%3D1%2B2%2C%22a%5Cb%22%3F%3F%3F%3Cscript%3E", NULL, 409);
    assert_non_null(strstr(str(v, "detail"), guid));
    assert_non_null(strstr(str(v, "detail"), "2 nodes"));
    json_decref(v);
    struct http h;
    http_do(&h, env.rig.loop, env.sock, "GET", BASE "/fabrics/live/nodes?format=csv&name=script", NULL, NULL);
    assert_non_null(strstr(h.body, "\"'=1+2,\"\"a\\b\"\""));
    http_close(&h);
    sim_node_desc(env.rig.sim, a, old_a);
    sim_node_desc(env.rig.sim, b, old_b);
    call_sweep("/fabrics/live/resweep", NULL);
}

// --- jobs ---

static json_t *compute(const char *fabric, const char *body, const char *state)
{
    char path[100];
    snprintf(path, sizeof(path), "/fabrics/%s/route-computations", fabric);
    json_t *v = call("POST", path, body, 202);
    snprintf(path, sizeof(path), "/jobs/%s", str(v, "id"));
    json_decref(v);
    for (int i = 0; i < 1000; i++) {
        v = call("GET", path, NULL, 200);
        if (strcmp(str(v, "state"), "running") != 0) {
            if (strcmp(str(v, "state"), state) != 0)
                fail_msg("%s: %s", body, json_dumps(v, 0));
            return v;
        }
        json_decref(v);
        rig_run(&env.rig, MONO_MS);
    }
    fail_msg("%s never ends", body);
    return NULL;
}

static void test_jobs(void **state)
{
    (void)state;
    json_t *v = compute("live", "{}", "done");
    const json_t *r = json_object_get(v, "result");
    assert_true(json_is_true(json_object_get(json_object_get(r, "verify"), "ok")));
    assert_true(json_is_null(json_object_get(r, "changed")));
    assert_true(num(json_object_get(r, "verify"), "pairs") > 0);
    json_decref(v);

    // The same seed takes the same links.
    v = compute("live", "{\"fail\": [\"random:10:3\"], \"lft\": true}", "done");
    json_t *w = compute("live", "{\"fail\": [\"random:10:3\"], \"lft\": true}", "done");
    const json_t *a = json_object_get(v, "result"), *b = json_object_get(w, "result");
    assert_true(json_equal(json_object_get(a, "changed"), json_object_get(b, "changed")));
    assert_true(num(json_object_get(a, "changed"), "entries") > 0);
    assert_true(num(json_object_get(a, "failed"), "links") > 0);
    assert_string_equal(str(a, "lft"), str(b, "lft"));
    assert_int_equal(strncmp(str(a, "lft"), "Unicast lids", 12), 0);
    json_decref(w);
    w = compute("live", "{\"fail\": [\"random:10:4\"], \"lft\": true}", "done");
    assert_string_not_equal(str(a, "lft"), str(json_object_get(w, "result"), "lft"));
    json_decref(v);
    json_decref(w);

    v = compute("live", "{\"fail\": [\"leaf-su01-rail0[1]\", \"spine-01\"]}", "done");
    r = json_object_get(v, "result");
    assert_int_equal(num(json_object_get(r, "failed"), "nodes"), 1);
    assert_true(num(json_object_get(r, "failed"), "links") > 1);
    assert_true(num(json_object_get(r, "verify"), "disconnected") > 0); // gpu-0001 mlx5_0 hangs on one cable
    json_decref(v);

    v = compute("live", "{\"fail\": [\"nobody\"]}", "failed");
    assert_string_equal(str(json_object_get(v, "error"), "where"), "nobody");
    json_decref(v);
    v = compute("live", "{\"fail\": [\"random:x:1\"]}", "failed");
    assert_non_null(strstr(str(json_object_get(v, "error"), "text"), "random:1:7"));
    json_decref(v);
    act("/fabrics/live/route-computations", "{\"engine\": \"magic\"}", 400);
    act("/fabrics/live/route-computations", "{\"lft_path\": \"/tmp/x\"}", 403);
}

// A file without LIDs: they are given first.
static void test_job_offline(void **state)
{
    char path[120], body[200];
    (void)state;
    snprintf(path, sizeof(path), "%.90s/t.lft", env.rig.dir);
    snprintf(body, sizeof(body), "{\"lft_path\": \"%s\", \"lft\": true}", path);
    json_t *v = compute("file", body, "done");
    const json_t *r = json_object_get(v, "result");
    assert_true(json_is_true(json_object_get(json_object_get(r, "verify"), "ok")));
    assert_int_equal(num(r, "lids"), env.fabric[1].offline->num_nodes);
    struct buf b = {0};
    assert_int_equal(buf_read_file(&b, path, 1u << 30), 0);
    assert_string_equal(b.data, str(r, "lft"));
    buf_done(&b);
    unlink(path);
    json_decref(v);
}

static void test_job_limits(void **state)
{
    char first[60] = "";
    (void)state;
    json_t *v = compute("live", "{}", "done");
    snprintf(first, sizeof(first), "/jobs/%s", str(v, "id"));
    json_decref(v);
    // Sixteen at once fit (finished ones make room); the seventeenth does not, if none has ended meanwhile.
    for (int i = 0; i < 16; i++)
        act("/fabrics/file/route-computations", "{}", 202);
    json_decref(call("GET", first, NULL, 404));
    rig_run(&env.rig, 10 * MONO_S);
    assert_int_equal(ask_num("/status", "jobs"), 16);
    rig_run(&env.rig, 700 * MONO_S); // ten minutes later they are gone
    assert_int_equal(ask_num("/status", "jobs"), 0);
    // The API may go while one runs.
    act("/fabrics/file/route-computations", "{\"fail\": [\"random:1:1\"]}", 202);
    act("/fabrics/file/route-computations", "{}", 202);
    api_free(env.api);
    rig_run(&env.rig, 5 * MONO_S);
    env_open();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream),      cmocka_unit_test(test_stream_resumes),
        cmocka_unit_test(test_slow_stream), cmocka_unit_test(test_many_streams),
        cmocka_unit_test(test_reroute),     cmocka_unit_test(test_sim_link),
        cmocka_unit_test(test_sim_node),    cmocka_unit_test(test_hostile_names),
        cmocka_unit_test(test_jobs),        cmocka_unit_test(test_job_offline),
        cmocka_unit_test(test_job_limits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
