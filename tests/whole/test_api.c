// SPDX-License-Identifier: Apache-2.0
// The API over its real sockets, on a manager that runs a simulated fabric. Client and server share one
// thread and one loop in virtual time.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/api.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/rng.h"
#include "tests/whole/http.h"
#include "tests/whole/rig.h"

#define BASE "/api/v1"

static struct env {
    struct rig rig;
    struct api *api;
    struct api_fabric fabric[3]; // "live", "file", "lost"
    struct api_fabric *list[3];
    char sock[104], tcp[40];
    json_t *doc;
} env;

static void connect_live(struct env *v)
{
    v->fabric[0] = (struct api_fabric){.name = "live",
                                       .transport = "simulator",
                                       .sm = v->rig.sm,
                                       .engine = v->rig.engine,
                                       .sim = v->rig.sim};
}

static int setup(void **state)
{
    struct env *v = &env;
    struct err e = {0};
    (void)state;
    rig_init(&v->rig, "rail-64", NULL);
    rig_up(&v->rig);
    rig_sweeps(&v->rig, 1, 60);
    connect_live(v);
    v->fabric[1] = (struct api_fabric){.name = "file", .transport = "rail-128"};
    v->fabric[1].offline = topogen_make("rail-128", &e);
    assert_non_null(v->fabric[1].offline);
    v->fabric[2] = (struct api_fabric){.name = "lost", .transport = "mlx5_0/1", .down = "the cable is out"};
    for (int i = 0; i < 3; i++)
        v->list[i] = &v->fabric[i];
    snprintf(v->sock, sizeof(v->sock), "%.90s/api.sock", v->rig.dir);
    struct api_context c = {.loop = v->rig.loop,
                            .pool = v->rig.pool,
                            .db = v->rig.db,
                            .fabric = v->list,
                            .num_fabrics = 3,
                            .started_wall_ns = 1700000000000000000};
    struct api_opts o = {.address = "127.0.0.1", .port = -1, .socket = v->sock};
    v->api = api_new(&c, &o, &e);
    if (v->api == NULL)
        fail_msg("%s: %s", e.where, e.text);
    snprintf(v->tcp, sizeof(v->tcp), "127.0.0.1:%d", api_port(v->api));
    return 0;
}

static int teardown(void **state)
{
    struct stat st;
    (void)state;
    api_free(env.api);
    assert_int_not_equal(stat(env.sock, &st), 0); // the socket goes with it
    fabric_unref(env.fabric[1].offline);
    json_decref(env.doc);
    rig_done(&env.rig);
    return 0;
}

static void call(struct http *h, const char *method, const char *path, const char *headers, const char *body)
{
    char full[6000];
    snprintf(full, sizeof(full), BASE "%s", path);
    http_do(h, env.rig.loop, env.sock, method, full, headers, body);
}

static json_t *get(const char *path)
{
    struct http h;
    call(&h, "GET", path, NULL, NULL);
    if (h.status != 200 || h.json == NULL)
        fail_msg("%s: %d %s", path, h.status, h.body);
    json_t *j = json_incref(h.json);
    http_close(&h);
    return j;
}

static void expect(const char *method, const char *path, const char *body, int status, const char *text)
{
    struct http h;
    char type[80];
    call(&h, method, path, NULL, body);
    if (h.status != status || (text != NULL && strstr(h.body, text) == NULL))
        fail_msg("%s %s: expected %d with \"%s\", got %d %s", method, path, status, text ? text : "",
                 h.status, h.body);
    if (status >= 400) {
        assert_string_equal(http_head(&h, "Content-Type", type, sizeof(type)), "application/problem+json");
        assert_int_equal(json_integer_value(json_object_get(h.json, "status")), status);
    }
    http_close(&h);
}

static const json_t *doc(void)
{
    if (env.doc == NULL)
        env.doc = get("/openapi.json");
    return env.doc;
}

// --- the document ---

static void fill_path(const char *path, char *ret, size_t size)
{
    static const char *const from[] = {"{f}", "{guid}"}, *const to[] = {"live", "leaf-su01-rail0"};
    char t[300];
    snprintf(ret, size, "%s", path);
    for (int i = 0; i < 2; i++) {
        char *at = strstr(ret, from[i]);
        if (at == NULL)
            continue;
        snprintf(t, sizeof(t), "%.*s%s%s", (int)(at - ret), ret, to[i], at + strlen(from[i]));
        snprintf(ret, size, "%s", t);
    }
    if (strcmp(path, "/fabrics/{f}/routes") == 0)
        strcat(ret, "?from=gpu-0001%20mlx5_0&to=gpu-0008%20mlx5_7");
    if (strcmp(path, "/fabrics/{f}/export") == 0)
        strcat(ret, "?format=json");
}

static const json_t *schema_of(const json_t *op, const char *status)
{
    const json_t *r = json_object_get(json_object_get(op, "responses"), status);
    return json_object_get(json_object_get(json_object_get(r, "content"), "application/json"), "schema");
}

// Nothing collects counters here: tests/whole/test_api_tele.c looks at these.
static bool of_telemetry(const char *path)
{
    static const char *const part[] = {"{f}/counters", "{f}/top",         "{f}/congestion", "{f}/health",
                                       "{f}/unread",   "{f}/routes/past", "{f}/devices",    "/alarms",
                                       "/silences",    "/isolations"};
    for (size_t i = 0; i < sizeof(part) / sizeof(part[0]); i++)
        if (strstr(path, part[i]) != NULL)
            return true;
    return false;
}

// Every GET answers as the document says.
static void test_document(void **state)
{
    const json_t *paths = json_object_get(doc(), "paths");
    const char *path;
    json_t *item;
    unsigned n = 0;
    char full[400];
    (void)state;

    assert_string_equal(json_string_value(json_object_get(doc(), "openapi")), "3.1.0");
    json_object_foreach((json_t *)paths, path, item)
    {
        const json_t *op = json_object_get(item, "get");
        if (op == NULL || strstr(path, "{id}") != NULL || strstr(path, "{mgid}") != NULL ||
            of_telemetry(path) || strcmp(path, "/events/stream") == 0)
            continue;
        fill_path(path, full, sizeof(full));
        json_t *v = get(full);
        openapi_check(doc(), schema_of(op, "200"), v, path);
        json_decref(v);
        n++;
    }
    assert_true(n >= 13);
}

static void test_check_can_fail(void **state)
{
    const json_t *s =
        json_object_get(json_object_get(json_object_get(doc(), "components"), "schemas"), "end");
    json_t *v =
        json_pack("{s:s, s:s, s:i, s:n}", "guid", "0x0000000000000001", "name", "x", "port", 1, "label");
    (void)state;
    openapi_check(doc(), s, v, "end");
    json_decref(v);
    // Each reference in the document leads somewhere.
    char *text = json_dumps(doc(), 0);
    for (const char *at = text; (at = strstr(at, "\"#/components/")) != NULL; at++) {
        char kind[40], name[80];
        assert_int_equal(sscanf(at, "\"#/components/%39[^/]/%79[^\"]\"", kind, name), 2);
        if (json_object_get(json_object_get(json_object_get(doc(), "components"), kind), name) == NULL)
            fail_msg("%s/%s is missing", kind, name);
    }
    free(text);
}

// What other programs rely on, as doc/api.md lists it: a field that is renamed fails here.
static const struct {
    const char *path, *fields;
} contract[] = {
    {"/status", "version started_at uptime_seconds fabrics loop"},
    {"/status#loop", "area calls seconds max_seconds slow"},
    {"/fabrics/live",
     "name transport state sm generation nodes switches cas routers hosts links tiers sus rails "
     "routing error other_sm managers last_change sweeps light_sweeps exceptions last_sweep traps audit sa "
     "findings "
     "advice"},
    {"/fabrics/live#traps", "received repressed unanswered floods flooding by_number"},
    {"/fabrics/live#audit", "running devices devices_done rounds last_round drifted"},
    {"/fabrics/live#sa", "ready groups members subscriptions requests answered refused dropped waiting"},
    {"/fabrics/live#sm", "state lid port_guid priority"},
    {"/fabrics/live#routing",
     "engine why top_guid verified pairs disconnected max_hops counter_example lids lanes"},
    {"/fabrics/live#findings", "info warning error"},
    {"/fabrics/live/nodes#items",
     "guid sys_guid name type role tier su rail plane host lid num_ports ports_up "
     "vendor_id device_id"},
    {"/fabrics/live/ports#items",
     "node_guid node_name num guid lid lmc state phys_state width speed link gbps mtu "
     "vls rail excluded label peer"},
    {"/fabrics/live/links#items", "a z link gbps kind state"},
    {"/fabrics/live/routes?from=1&to=2", "from to lid hops reached text"},
    {"/fabrics/live/routes?from=1&to=2#hops", "guid name in out link"},
    {"/fabrics/live/sweeps#items",
     "id cause began_at seconds ok text full devices reaction_seconds mads retries "
     "timeouts lft_blocks_set lft_entries paths_moved port_sets nodes_added nodes_removed "
     "links_added links_removed phases"},
    {"/fabrics/live/mads#items",
     "method attribute requests sent retries timeouts refused undeliverable late"},
    {"/events#items", "id time fabric kind severity subject text data"},
    {"/fabrics/live/nodes", "items next total generation sampled_at complete"},
};

static void test_contract(void **state)
{
    (void)state;
    db_event_add(env.rig.db, &(struct db_event){.wall_ns = 1,
                                                .fabric = "live",
                                                .kind = "odd",
                                                .severity = "info",
                                                .subject = "",
                                                .text = "t",
                                                .data = "{\"k\": [1, 2]}"});
    for (size_t i = 0; i < sizeof(contract) / sizeof(contract[0]); i++) {
        char path[200], fields[400], *save = NULL;
        snprintf(path, sizeof(path), "%s", contract[i].path);
        snprintf(fields, sizeof(fields), "%s", contract[i].fields);
        char *part = strchr(path, '#');
        if (part != NULL)
            *part++ = 0;
        json_t *v = get(path), *o = part != NULL ? json_object_get(v, part) : v;
        if (json_is_array(o))
            o = json_array_get(o, 0);
        assert_non_null(o);
        for (char *f = strtok_r(fields, " ", &save); f != NULL; f = strtok_r(NULL, " ", &save))
            if (json_object_get(o, f) == NULL)
                fail_msg("%s: no field %s", contract[i].path, f);
        json_decref(v);
    }
}

// --- contents ---

static json_int_t num(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static const char *str(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s != NULL ? s : "";
}

static void test_contents(void **state)
{
    const struct fabric *f = sm_fabric(env.rig.sm);
    json_t *v = get("/fabrics/live");
    (void)state;
    assert_string_equal(str(v, "state"), "up");
    assert_int_equal(num(v, "nodes"), f->num_nodes);
    assert_int_equal(num(v, "links"), f->num_links);
    assert_int_equal(json_array_size(json_object_get(v, "advice")), 0);
    assert_true(json_is_true(json_object_get(json_object_get(v, "routing"), "verified")));
    json_decref(v);

    v = get("/fabrics/live/nodes/gpu-0003%20mlx5_2");
    assert_int_equal(json_array_size(json_object_get(v, "ports")), 1);
    const json_t *p = json_array_get(json_object_get(v, "ports"), 0);
    assert_string_equal(str(p, "state"), "active");
    assert_string_equal(str(p, "link"), "4xHDR");
    assert_int_equal(num(p, "gbps") + (json_int_t)json_real_value(json_object_get(p, "gbps")), 200);
    assert_int_equal(num(p, "lid"), num(v, "lid"));
    assert_true(json_is_object(json_object_get(p, "peer")));
    json_decref(v);

    v = get("/fabrics/live/nodes?type=switch&role=leaf&name=RAIL3");
    assert_int_equal(num(v, "total"), json_array_size(json_object_get(v, "items")));
    assert_true(num(v, "total") >= 1);
    assert_non_null(strstr(str(json_array_get(json_object_get(v, "items"), 0), "name"), "rail3"));
    json_decref(v);
}

static void test_route(void **state)
{
    char path[300];
    const struct fabric *f = sm_fabric(env.rig.sm);
    (void)state;
    json_t *v = get("/fabrics/live/routes?from=gpu-0001%20mlx5_0&to=gpu-0008%20mlx5_7");
    assert_true(json_is_true(json_object_get(v, "reached")));
    size_t hops = json_array_size(json_object_get(v, "hops"));
    assert_true(hops >= 3);
    assert_non_null(strstr(str(v, "text"), "gpu-0008 mlx5_7"));
    // The same by LIDs, by PortGUID, by name[port].
    snprintf(path, sizeof(path), "/fabrics/live/routes?from=%lld&to=%s",
             num(json_object_get(v, "from"), "lid"), str(json_object_get(v, "to"), "port_guid"));
    json_t *w = get(path);
    assert_true(json_equal(v, w));
    json_decref(w);
    w = get("/fabrics/live/routes?from=gpu-0001+mlx5_0%5b1%5d&to=gpu-0008+mlx5_7[1]");
    assert_true(json_equal(v, w));
    json_decref(w);
    json_decref(v);
    (void)f;
    v = get("/fabrics/live/routes?from=leaf-su01-rail0&to=leaf-su01-rail0");
    assert_int_equal(json_array_size(json_object_get(v, "hops")), 1);
    json_decref(v);
    expect("GET", "/fabrics/live/routes?from=1&to=47000", NULL, 404, "no port has LID 47000");
    expect("GET", "/fabrics/live/routes?from=1", NULL, 400, "\\\"to\\\" is missing");
    expect("GET", "/fabrics/live/routes?from=1&to=gpu-0001", NULL, 404, "gpu-0001 mlx5_7");
    expect("GET", "/fabrics/live/routes?from=1&to=leaf-su01-rail0[1]", NULL, 400, "port 0");
    expect("GET", "/fabrics/file/routes?from=1&to=2", NULL, 409, "route-computations");
}

// --- lists ---

static void collect(const char *path, int limit, json_t *all, unsigned *ret_pages)
{
    char url[500], next[200] = "";
    *ret_pages = 0;
    do {
        snprintf(url, sizeof(url), "%s%climit=%d%s%s", path, strchr(path, '?') ? '&' : '?', limit,
                 next[0] ? "&cursor=" : "", next);
        json_t *v = get(url);
        assert_true(json_array_size(json_object_get(v, "items")) <= (size_t)limit);
        json_array_extend(all, json_object_get(v, "items"));
        snprintf(next, sizeof(next), "%s", str(v, "next"));
        json_decref(v);
        assert_true(++*ret_pages < 1000);
    } while (next[0] != 0);
}

// In pages of seven as in one answer, each element once.
static void test_pages(void **state)
{
    static const char *const path[] = {"/fabrics/live/nodes",
                                       "/fabrics/live/nodes?type=ca&name=mlx5_3",
                                       "/fabrics/live/ports",
                                       "/fabrics/live/ports?node=leaf-su01-rail1",
                                       "/fabrics/live/links",
                                       "/fabrics/file/links",
                                       "/fabrics/live/sweeps",
                                       "/fabrics/live/findings",
                                       "/events",
                                       "/events?newest=1",
                                       "/fabrics"};
    (void)state;
    for (int i = 0; i < 20; i++)
        db_event_add(env.rig.db, &(struct db_event){.wall_ns = 1 + i,
                                                    .fabric = "live",
                                                    .kind = i % 2 ? "odd" : "even",
                                                    .severity = "info",
                                                    .subject = "",
                                                    .text = "t",
                                                    .data = ""});
    for (size_t i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
        json_t *all = json_array();
        unsigned pages;
        json_t *one = get(path[i]);
        collect(path[i], strcmp(path[i], "/fabrics") == 0 ? 1 : 7, all, &pages);
        if (!json_is_null(json_object_get(one, "total")))
            assert_int_equal(num(one, "total"), json_array_size(json_object_get(one, "items")));
        if (strncmp(path[i], "/fabrics/", 9) == 0 && !json_equal(json_object_get(one, "items"), all))
            fail_msg("%s: pages differ from the whole", path[i]);
        assert_int_equal(json_array_size(json_object_get(one, "items")), json_array_size(all));
        if (json_array_size(all) > 7)
            assert_true(pages > 1);
        json_decref(one);
        json_decref(all);
    }
}

// A walk goes on in another generation: what exists throughout is shown once.
static void test_walk_over_generations(void **state)
{
    (void)state;
    json_t *a = get("/fabrics/live/nodes?limit=30");
    sm_resweep(env.rig.sm, "test", false);
    rig_sweeps(&env.rig, 1, 60);
    char url[200];
    snprintf(url, sizeof(url), "/fabrics/live/nodes?cursor=%s", str(a, "next"));
    json_t *b = get(url);
    assert_true(num(b, "generation") > num(a, "generation"));
    assert_int_equal(json_array_size(json_object_get(a, "items")) +
                         json_array_size(json_object_get(b, "items")),
                     num(b, "total"));
    json_decref(a);
    json_decref(b);
}

static void test_csv(void **state)
{
    struct http h;
    char type[80], next[80];
    (void)state;
    call(&h, "GET", "/fabrics/live/ports?format=csv&limit=3", NULL, NULL);
    assert_int_equal(h.status, 200);
    assert_non_null(strstr(http_head(&h, "Content-Type", type, sizeof(type)), "text/csv"));
    assert_non_null(http_head(&h, "X-Next-Cursor", next, sizeof(next)));
    unsigned lines = 0, commas = 0, columns = 0;
    for (const char *s = h.body; *s; s++) {
        commas += *s == ',';
        if (*s != '\n')
            continue;
        if (lines++ == 0)
            columns = commas;
        assert_int_equal(commas, columns);
        commas = 0;
    }
    assert_int_equal(lines, 4);
    assert_int_equal(strncmp(h.body, "node_guid,node_name,num,", 24), 0);
    assert_non_null(strstr(h.body, ",peer.port\r\n"));
    http_close(&h);
}

static void test_etag(void **state)
{
    struct http h;
    char tag[100], head[160], other[100];
    (void)state;
    call(&h, "GET", "/fabrics/live/nodes?limit=1", NULL, NULL);
    assert_non_null(http_head(&h, "ETag", tag, sizeof(tag)));
    http_close(&h);
    snprintf(head, sizeof(head), "If-None-Match: %s\r\n", tag);
    call(&h, "GET", "/fabrics/live/nodes?limit=1", head, NULL);
    assert_int_equal(h.status, 304);
    assert_int_equal(strlen(h.body), 0);
    http_close(&h);
    call(&h, "GET", "/fabrics/live/nodes?limit=1&format=csv", head, NULL);
    assert_int_equal(h.status, 200);
    http_close(&h);
    api_changed(env.api, "file"); // another fabric's change is none of this one's
    call(&h, "GET", "/fabrics/live/nodes?limit=1", head, NULL);
    assert_int_equal(h.status, 304);
    http_close(&h);
    sm_resweep(env.rig.sm, "test", false);
    rig_sweeps(&env.rig, 1, 60);
    call(&h, "GET", "/fabrics/live/nodes?limit=1", head, NULL);
    assert_int_equal(h.status, 200);
    assert_string_not_equal(http_head(&h, "ETag", other, sizeof(other)), tag);
    http_close(&h);
    call(&h, "GET", "/status", NULL, NULL);
    assert_null(http_head(&h, "ETag", other, sizeof(other)));
    http_close(&h);
}

// --- what is wrong ---

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        int status;
        const char *text;
    } t[] = {
        {"/nothing", 404, "openapi.json"},
        {"/fabrics/none/nodes", 404, "there is: live, file, lost"},
        {"/fabrics/live/nodes?foo=1", 400, "known: type, role, name, focus, limit, cursor, format"},
        {"/status?limit=1", 400, "known: none"},
        {"/fabrics/live/nodes?limit=0", 400, "1 to 10000"},
        {"/fabrics/live/nodes?limit=10001", 400, "1 to 10000"},
        {"/fabrics/live/nodes?limit=-1", 400, "1 to 10000"},
        {"/fabrics/live/nodes?limit=99999999999999999999999", 400, "1 to 10000"},
        {"/fabrics/live/nodes?type=hub", 400, "ca, switch, router"},
        {"/fabrics/live/nodes?cursor=zz", 400, "cursor"},
        {"/fabrics/live/ports?cursor=12", 400, "cursor"},
        {"/fabrics/live/ports?cursor=12.400", 400, "cursor"},
        {"/fabrics/live/sweeps?cursor=-1", 400, "cursor"},
        {"/fabrics?cursor=x", 400, "cursor"},
        {"/fabrics/live/ports?node=nobody", 404, "no node or port"},
        {"/fabrics/live/nodes/0x1234", 404, "0x1234"},
        {"/fabrics/live/nodes/", 200, NULL},
        {"/fabrics/live/nodes/%2e%2e%2fx", 404, "../x"},
        {"/fabrics/live%2fnodes", 404, "no fabric"},
        {"/status?x=%zz", 400, "hexadecimal"},
        {"/status%00", 400, "control character"},
        {"/events?after=x", 400, "whole number"},
        {"/events?newest=2", 400, "0 or 1"},
        {"/jobs/77", 404, "no job"},
        {"/fabrics/lost/nodes", 503, "the cable is out"},
        {"/fabrics/live/nodes?format=xml", 400, "json, csv"},
    };
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
        expect("GET", t[i].path, NULL, t[i].status, t[i].text);
    char longest[5200];
    memset(longest, 'a', sizeof(longest));
    longest[0] = '/';
    longest[5000] = 0;
    expect("GET", longest, NULL, 414, "4096");
}

static void test_methods(void **state)
{
    struct http h;
    char allow[60];
    (void)state;
    call(&h, "DELETE", "/fabrics/live/nodes", NULL, NULL);
    assert_int_equal(h.status, 405);
    assert_string_equal(http_head(&h, "Allow", allow, sizeof(allow)), "GET, HEAD");
    http_close(&h);
    call(&h, "GET", "/fabrics/live/reroute", NULL, NULL);
    assert_int_equal(h.status, 405);
    assert_string_equal(http_head(&h, "Allow", allow, sizeof(allow)), "POST");
    http_close(&h);
    static const char *const head[] = {"/status", "/fabrics/live/ports", "/events/stream"};
    for (size_t i = 0; i < 3; i++) {
        call(&h, "HEAD", head[i], NULL, NULL);
        assert_int_equal(h.status, 200);
        assert_int_equal(strlen(h.body), 0);
        http_close(&h);
    }
}

static void test_bodies(void **state)
{
    struct buf b = {0};
    struct http h;
    (void)state;
    expect("POST", "/fabrics/live/sim/link", "{", 400, "no JSON");
    expect("POST", "/fabrics/live/sim/link", "[]", 400, "object");
    expect("POST", "/fabrics/live/sim/link", "{\"node\":\"x\"}", 400, "missing");
    expect("POST", "/fabrics/live/sim/link", "{\"node\":\"x\",\"prt\":1}", 400, "known: node, port, up");
    expect("POST", "/fabrics/live/sim/link", "{\"node\":1,\"port\":1,\"up\":true}", 400, "a string");
    expect("POST", "/fabrics/live/sim/link", "{\"node\":\"x\",\"port\":0,\"up\":true}", 400, "1 to 254");
    expect("POST", "/fabrics/live/sim/link", "{\"node\":\"x\",\"port\":1,\"port\":2,\"up\":true}", 400,
           "no JSON");
    expect("POST", "/fabrics/live/sim/loss", "{\"loss\":1.5}", 400, "0 to 1");
    expect("POST", "/fabrics/live/sim/node", "{\"node\":\"x\",\"action\":\"paint\"}", 400,
           "kill, revive, reboot");
    expect("POST", "/fabrics/live/reroute", "{\"now\":true}", 400, "known: dry_run");
    // Nested beyond any sense, and too large, told and not told beforehand.
    for (int i = 0; i < 30000; i++)
        buf_putc(&b, '[');
    expect("POST", "/fabrics/live/sim/link", b.data, 400, "no JSON");
    while (b.len < 70000)
        buf_putc(&b, ' ');
    expect("POST", "/fabrics/live/sim/link", b.data, 413, "65536");
    buf_clear(&b);
    buf_puts(&b, "POST " BASE "/fabrics/live/sim/link HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                 "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 80; i++)
        buf_printf(&b, "400\r\n%01024d\r\n", 7);
    buf_puts(&b, "0\r\n\r\n");
    http_open(&h, env.rig.loop, env.sock);
    http_send(&h, b.data, b.len);
    http_wait_closed(&h);
    assert_non_null(h.in.data);
    assert_non_null(strstr(h.in.data, "HTTP/1.1 413 "));
    http_close(&h);
    buf_done(&b);
}

// --- who may what ---

static void test_tcp(void **state)
{
    struct http h;
    static const struct {
        const char *host;
        int status;
    } t[] = {
        {"localhost", 200},  {"localhost:8470", 200}, {"127.0.0.1", 200}, {"127.5.5.5:1", 200},
        {"[::1]:8470", 200}, {"evil.example", 403},   {"", 403},          {"127.0.0.1.evil.example", 403},
        {"[::1].evil", 403}, {"localhost.evil", 403}, {"10.0.0.1", 403},  {":80", 403}};
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        char req[300];
        snprintf(req, sizeof(req), "GET " BASE "/status HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
                 t[i].host);
        http_open(&h, env.rig.loop, env.tcp);
        http_send(&h, req, strlen(req));
        http_wait_closed(&h);
        int status = 0;
        sscanf(h.in.data, "HTTP/1.1 %d", &status);
        if (status != t[i].status)
            fail_msg("Host \"%s\": %d", t[i].host, status);
        http_close(&h);
    }
    http_do(&h, env.rig.loop, env.tcp, "POST", BASE "/fabrics/live/reroute", NULL, "{}");
    assert_int_equal(h.status, 403);
    assert_non_null(strstr(h.body, env.sock));
    http_close(&h);
    http_do(&h, env.rig.loop, env.tcp, "POST", BASE "/fabrics/live/route-computations", NULL, "{}");
    assert_int_equal(h.status, 403);
    http_close(&h);
}

// A user who is neither root nor weftd's own may read.
static void test_other_user(void **state)
{
    (void)state;
    if (geteuid() != 0) {
        print_message("skipped: only root can become another user\n");
        skip();
    }
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    chmod(env.rig.dir, 0755);
    pid_t pid = fork();
    if (pid == 0) {
        static const char *const req[] = {"GET " BASE "/fabrics/live HTTP/1.0\r\n\r\n",
                                          "POST " BASE
                                          "/fabrics/live/reroute HTTP/1.0\r\nContent-Length: 0\r\n\r\n"};
        char got[2][16] = {"", ""};
        struct sockaddr_un sa = {.sun_family = AF_UNIX};
        snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", env.sock);
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(1);
        for (int i = 0; i < 2; i++) {
            char rest[4096];
            int s = socket(AF_UNIX, SOCK_STREAM, 0);
            if (connect(s, (struct sockaddr *)&sa, sizeof(sa)) != 0 || write(s, req[i], strlen(req[i])) < 0)
                _exit(2);
            if (read(s, got[i], 12) != 12)
                _exit(3);
            while (read(s, rest, sizeof(rest)) > 0)
                ;
            close(s);
        }
        if (write(fd[1], got, sizeof(got)) < 0)
            _exit(4);
        _exit(0);
    }
    int status = -1;
    for (int i = 0; i < 100000 && waitpid(pid, &status, WNOHANG) == 0; i++) {
        bool never = false;
        loop_run_until(env.rig.loop, &never, MONO_MS);
    }
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        print_message("skipped: the temporary folder is closed to other users\n");
    else {
        char got[2][16];
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_int_equal(read(fd[0], got, sizeof(got)), sizeof(got));
        assert_non_null(strstr(got[0], " 200"));
        assert_non_null(strstr(got[1], " 403"));
    }
    close(fd[0]);
    close(fd[1]);
}

static void test_sockets(void **state)
{
    struct api_context c = {.loop = env.rig.loop, .pool = env.rig.pool};
    struct err e = {0};
    char path[104], far[400];
    (void)state;
    // Taken by a living one.
    assert_null(api_new(&c, &(struct api_opts){.socket = env.sock}, &e));
    assert_int_equal(e.code, -EADDRINUSE);
    assert_null(api_new(&c, &(struct api_opts){.address = "127.0.0.1", .port = api_port(env.api)}, &e));
    assert_int_equal(e.code, -EADDRINUSE);
    assert_string_equal(e.where, env.tcp);
    // Left behind by a dead one.
    snprintf(path, sizeof(path), "%.90s/old.sock", env.rig.dir);
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
    close(fd);
    struct api *a = api_new(&c, &(struct api_opts){.socket = path}, &e);
    assert_non_null(a);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0666);
    assert_int_equal(api_port(a), -1);
    api_free(a);
    // No socket at all, no folder, too long a name, no address.
    FILE *f = fopen(path, "w");
    fclose(f);
    assert_null(api_new(&c, &(struct api_opts){.socket = path}, &e));
    assert_int_equal(e.code, -EEXIST);
    unlink(path);
    assert_null(api_new(&c, &(struct api_opts){.socket = "/nonexistent/x.sock"}, &e));
    assert_non_null(strstr(e.text, "folder"));
    memset(far, 'x', sizeof(far));
    far[0] = '/';
    far[399] = 0;
    assert_null(api_new(&c, &(struct api_opts){.socket = far}, &e));
    assert_int_equal(e.code, -ENAMETOOLONG);
    assert_null(api_new(&c, &(struct api_opts){.address = "example.org", .port = 1}, &e));
    assert_non_null(strstr(e.text, "numeric"));
}

// --- states of fabrics ---

static void test_states(void **state)
{
    (void)state;
    json_t *v = get("/fabrics/lost");
    assert_string_equal(str(v, "state"), "failed");
    assert_non_null(
        strstr(json_string_value(json_array_get(json_object_get(v, "advice"), 0)), "the cable is out"));
    assert_string_equal(str(json_object_get(v, "error"), "text"), "the cable is out");
    openapi_check(doc(),
                  json_object_get(json_object_get(json_object_get(doc(), "components"), "schemas"), "fabric"),
                  v, "lost");
    json_decref(v);
    v = get("/fabrics/file");
    assert_string_equal(str(v, "state"), "offline");
    assert_true(json_is_null(json_object_get(v, "sm")));
    assert_int_equal(num(v, "hosts"), 16);
    openapi_check(doc(),
                  json_object_get(json_object_get(json_object_get(doc(), "components"), "schemas"), "fabric"),
                  v, "file");
    json_decref(v);
    expect("POST", "/fabrics/file/reroute", NULL, 409, "file");
    expect("POST", "/fabrics/lost/resweep", NULL, 503, "the cable is out");
    expect("POST", "/fabrics/file/sim/loss", "{\"loss\":0}", 409, "not simulated");
    v = get("/fabrics/lost/findings");
    assert_int_equal(num(v, "total"), 0);
    json_decref(v);
}

// --- garbage ---

static const char *const seeds[] = {
    "GET " BASE "/fabrics/live/nodes?limit=3&name=gpu HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    "POST " BASE "/fabrics/live/sim/loss HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: "
    "10\r\n\r\n{\"loss\":0}",
    "GET " BASE
    "/fabrics/live/routes?from=1&to=gpu-0001%20mlx5_1[1] HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    "If-None-Match: \"x\"\r\nLast-Event-ID: 5\r\n\r\n",
    "GET " BASE "/events?newest=1&cursor=5&kind=odd HTTP/1.0\r\n\r\n",
};

static void test_garbage(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 11);
    for (int i = 0; i < 400; i++) {
        const char *seed = seeds[rng_below(&r, 4)];
        size_t n = strlen(seed);
        char *t = malloc(n);
        struct http h;
        memcpy(t, seed, n);
        for (unsigned k = rng_below(&r, 6); k > 0; k--)
            t[rng_below(&r, (uint32_t)n)] = (char)rng_below(&r, 256);
        if (rng_below(&r, 4) == 0)
            n = rng_below(&r, (uint32_t)n);
        http_open(&h, env.rig.loop, i % 3 ? env.sock : env.tcp);
        http_send(&h, t, n);
        shutdown(h.fd, SHUT_WR);
        for (int k = 0; k < 50 && !h.closed; k++)
            loop_run_until(h.loop, &h.closed, MONO_MS);
        http_close(&h);
        free(t);
    }
    json_t *v = get("/status");
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_check_can_fail),
        cmocka_unit_test(test_contract),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_route),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_walk_over_generations),
        cmocka_unit_test(test_csv),
        cmocka_unit_test(test_etag),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_methods),
        cmocka_unit_test(test_bodies),
        cmocka_unit_test(test_tcp),
        cmocka_unit_test(test_other_user),
        cmocka_unit_test(test_sockets),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
