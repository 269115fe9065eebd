// SPDX-License-Identifier: Apache-2.0
// One language: a focus means the same ports in every list that has ports, links, nodes or what is about
// them.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "telemetry/module.h"
#include "telemetry/telemetry.h"
#include "tests/whole/api_rig.h"

#define LEAF "leaf-su01-rail0"

static struct {
    struct tele *tele;
    bool swept;
} own;

static void on_swept(void *arg)
{
    (void)arg;
    own.swept = true;
}

static void sweeps(unsigned n)
{
    while (n-- > 0) {
        own.swept = false;
        assert_true(loop_run_until(env.rig.loop, &own.swept, 60 * MONO_S));
    }
}

static const struct node *named(const char *name)
{
    const struct fabric *f = sm_fabric(env.rig.sm);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (strcmp(fabric_desc(f, &f->node[i]), name) == 0)
            return &f->node[i];
    fail_msg("no node %s", name);
    return NULL;
}

static void raise_alarm(uint64_t guid, uint8_t port)
{
    char subject[40];
    snprintf(subject, sizeof(subject), "0x%016llx/%u", (unsigned long long)guid, port);
    alarm_raise(env.alarms, &(struct alarm_report){.fabric = "live",
                                                   .rule = "L14",
                                                   .subject = subject,
                                                   .severity = ALARM_MAJOR,
                                                   .place = subject,
                                                   .reason = "constraint errors",
                                                   .node_guid = {guid},
                                                   .port = {port}});
}

// A module at the leaf's port 3, hot; errors at its port 33, towards a spine; a host that does not answer.
static int setup(void **state)
{
    (void)state;
    char text[400];
    env_up("rail-64");
    uint64_t leaf = named(LEAF)->guid;
    env.alarms = alarms_new(env.rig.loop, NULL, &(struct alarms_callbacks){0});
    struct tele_opts o = {.fabric = "live", .interval_ns = 10 * MONO_S, .per_device = 4};
    own.tele = tele_new(env.rig.loop, env.rig.engine, NULL, env.alarms, &o,
                        &(struct tele_callbacks){.swept = on_swept});
    tele_fabric(own.tele, sm_fabric(env.rig.sm), sm_tables(env.rig.sm), NULL);
    env.fabric[0].tele = own.tele;
    sim_pma_fault(env.rig.sim, named("gpu-0005 mlx5_2")->guid, 0, SIM_PMA_SILENT, 1000000);
    snprintf(text, sizeof(text),
             "START_CABLE_INFO\nNodeGuid,PortNum,Vendor,PN,SN,Temperature\n"
             "0x%016llx,3,Acme,AC-1,MT22X7,75C\nEND_CABLE_INFO\n",
             (unsigned long long)leaf);
    tele_set_modules(own.tele, tele_modules_parse(text, wall_now_ns(), NULL, NULL));
    sweeps(2);
    sim_counter_add(env.rig.sim, leaf, 33, SIM_SYMBOL_ERRORS, 7);
    sim_counter_add(env.rig.sim, leaf, 5, SIM_XMIT_DATA, 100000000);
    sweeps(1);
    raise_alarm(leaf, 34);
    env_serve();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    env_down();
    mad_engine_free(env.rig.engine);
    env.rig.engine = NULL;
    tele_free(own.tele);
    alarms_free(env.alarms);
    rig_done(&env.rig);
    return 0;
}

static char *escaped(const char *focus)
{
    struct buf b = {0};
    for (const char *p = focus; *p != 0; p++)
        buf_printf(&b, "%%%02X", (unsigned char)*p);
    return buf_take(&b);
}

static json_t *asked(const char *list, const char *focus)
{
    struct buf path = {0};
    char *text = escaped(focus);
    buf_printf(&path, LIVE "/%s%sfocus=%s&limit=10000", list, strchr(list, '?') ? "&" : "?", text);
    json_t *v = call("GET", path.data, NULL, 200);
    assert_true(json_is_null(json_object_get(v, "next")));
    buf_done(&path);
    free(text);
    return v;
}

static void add_key(json_t *set, const json_t *of, const char *guid, const char *port)
{
    char key[60];
    snprintf(key, sizeof(key), "%s/%lld", str(of, guid), port != NULL ? num(of, port) : 0);
    json_object_set_new(set, key, json_true());
}

// Keys of the rows, each an object's name. end: "a" or "z" of links, NULL.
static json_t *keys(const char *list, const char *focus, const char *end, const char *guid, const char *port)
{
    json_t *set = json_object(), *v = asked(list, focus), *x;
    size_t i;
    json_array_foreach(json_object_get(v, "items"), i, x)
        add_key(set, end != NULL ? json_object_get(x, end) : x, guid, port);
    json_decref(v);
    return set;
}

static void same(const char *focus, const char *what, json_t *a, json_t *b)
{
    if (!json_equal(a, b)) {
        char *x = json_dumps(a, JSON_COMPACT), *y = json_dumps(b, JSON_COMPACT);
        fail_msg("%s: %s: %zu and %zu: %.300s and %.300s", focus, what, json_object_size(a),
                 json_object_size(b), x, y);
    }
    json_decref(b);
}

// Of all links, by their lower ends, those of which an end is among the ports; of nodes, those with one.
static json_t *links_at(json_t *ports)
{
    json_t *v = call("GET", LIVE "/links?limit=10000", NULL, 200), *set = json_object(), *x;
    size_t i;
    json_array_foreach(json_object_get(v, "items"), i, x)
    {
        bool hit = false;
        for (int e = 0; e < 2; e++) {
            char key[60];
            const json_t *end = at(x, e ? "z" : "a");
            snprintf(key, sizeof(key), "%s/%lld", str(end, "guid"), num(end, "port"));
            hit = hit || json_object_get(ports, key) != NULL;
        }
        if (hit)
            add_key(set, at(x, "a"), "guid", "port");
    }
    json_decref(v);
    return set;
}

static json_t *nodes_at(json_t *ports)
{
    json_t *set = json_object(), *x;
    const char *key;
    json_object_foreach(ports, key, x)
    {
        char node[60];
        snprintf(node, sizeof(node), "%.*s/0", (int)strcspn(key, "/"), key);
        json_object_set(set, node, x);
    }
    return set;
}

// Ports without a cable have no counters.
static json_t *with_cables(json_t *ports)
{
    json_t *all = keys("counters", "port>0", NULL, "guid", "port"), *x;
    const char *key;
    void *next;
    json_object_foreach_safe(ports, next, key, x)
    {
        if (json_object_get(all, key) == NULL)
            json_object_del(ports, key);
    }
    json_decref(all);
    return ports;
}

// Exactly so many ports, or at least one (-1); whether health means the same by it, or has a field of its own
// that is called so.
static const struct {
    const char *focus;
    int ports;
    bool health;
} foci[] = {
    {"tier=leaf rail=3", 40, true},
    {"peer.type=ca state=active", 64, false},
    {"peer.tier=spine", 256, true},
    {"peer.role=host peer.rail=2", 8, true},
    {"speed=100..1000 width=4x", -1, true},
    {"link~^4x mtu=4096", -1, true},
    {"lid>0", -1, true},
    {"health=unsure|healthy|unknown", -1, true},
    {"pma=read age<1h", -1, true},
    {"pma=slow|no-answer", 1, true},
    {"pma!=read", 1, true},
    {"age>1h", 0, true},
    {"errors>2", 1, true},
    {"errors>2 kind=trunk", 1, true},
    {"peer.errors>2", 1, true},
    {"errors_per_hour>0", 1, true},
    {"rate.symbol_errors>0", 1, true},
    {"peer.rate.symbol_errors=0", -1, true},
    {"used>0", -1, true},
    {"held=0 rcv_used=0", -1, true},
    {"vendor=Acme model=AC-*", 1, true},
    {"serial=MT22X7", 1, true},
    {"temp>70", 1, true},
    {"temp>70 or ber>1e-3", 1, true},
    {"alarm>0", 3, true},
    {"alarm_rule=L14", 1, true},
    {"peer.alarm_rule=L14", 1, true},
    {"fabric=live node=" LEAF " port=1..4", 4, true},
    {"fabric=file", 0, true},
    {LEAF "/3", 1, true},
    {"gpu-0003:2", 1, true},
    {"not peer.role=host not role=host", -1, true},
};

static void one_language(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(foci) / sizeof(foci[0]); i++) {
        const char *focus = foci[i].focus;
        json_t *ports = keys("counters", focus, NULL, "guid", "port");
        int n = (int)json_object_size(ports);
        if (foci[i].ports >= 0 ? n != foci[i].ports : n == 0)
            fail_msg("%s: %d ports", focus, n);
        same(focus, "ports", ports, with_cables(keys("ports", focus, NULL, "node_guid", "num")));
        json_t *links = links_at(ports), *nodes = nodes_at(ports);
        same(focus, "links", links, keys("links", focus, "a", "guid", "port"));
        if (foci[i].health)
            same(focus, "health", links, keys("health?all=1", focus, "a", "guid", "port"));
        // Ports without cables are their nodes' too.
        json_t *of = keys("nodes", focus, NULL, "guid", NULL), *x;
        const char *key;
        json_object_foreach(nodes, key, x)
        {
            if (json_object_get(of, key) == NULL)
                fail_msg("%s: node %s is not listed", focus, key);
        }
        json_decref(of);
        json_decref(nodes);
        json_decref(links);
        json_decref(ports);
    }
}

// Without a cable in it: a module at either end is the cable's.
static void cables(void **state)
{
    (void)state;
    json_t *v = keys("counters", "cable=MT22*", NULL, "guid", "port");
    assert_int_equal(json_object_size(v), 2);
    json_decref(v);
    v = keys("links", "cable=MT22X7", "a", "guid", "port");
    assert_int_equal(json_object_size(v), 1);
    json_decref(v);
}

static size_t alarms_that(const char *focus)
{
    struct buf path = {0};
    char *text = escaped(focus);
    buf_printf(&path, "/alarms?active=1&rule=L14&focus=%s", text);
    json_t *v = call("GET", path.data, NULL, 200);
    size_t n = json_array_size(at(v, "items"));
    json_decref(v);
    buf_done(&path);
    free(text);
    return n;
}

static void alarms_too(void **state)
{
    static const char *const yes[] = {"peer.tier=spine", "speed>1 width=4x",  "alarm_rule=L14",
                                      "alarm>0",         "pma=read",          "state=active",
                                      "age<1h since<1h", "rate.xmit_data>=0", "fabric=live",
                                      "errors=0",        "severity=major",    "rule=L14"},
                             *const no[] = {"peer.tier=leaf", "speed<1", "alarm_rule=L07", "alarm=none",
                                            "pma!=read",      "age>1h",  "since>1h",       "state=down",
                                            "errors>0",       "temp>70", "fabric=file"};
    (void)state;
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        if (alarms_that(yes[i]) != 1)
            fail_msg("%s: %zu", yes[i], alarms_that(yes[i]));
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        if (alarms_that(no[i]) != 0)
            fail_msg("%s: %zu", no[i], alarms_that(no[i]));
}

// What stays is known without counters; of what comes from them nothing is known, which is said.
static void of_a_file(void **state)
{
    static const char *const counted[] = {"ports?focus=pma%3Dread", "links?focus=health%3Dnone",
                                          "nodes?focus=peer.errors%3E0", "links?focus=alarm%3Dnone"};
    (void)state;
    json_t *v = call("GET", "/fabrics/file/ports?focus=peer.type%3Dca%20speed%3E1&limit=10000", NULL, 200);
    assert_true(json_array_size(at(v, "items")) > 0);
    json_decref(v);
    for (unsigned i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
        char path[100];
        snprintf(path, sizeof(path), "/fabrics/file/%s", counted[i]);
        refused_call("GET", path, NULL, 409, "");
    }
}

static size_t count(const char *list, const char *focus)
{
    json_t *v = asked(list, focus);
    size_t n = json_array_size(at(v, "items"));
    json_decref(v);
    return n;
}

// A node is taken for what its ports are; what is no port has nothing of it.
static void nodes_by_ports(void **state)
{
    (void)state;
    assert_int_equal(count("nodes", "type=ca state!=active"), 0);
    assert_int_equal(count("nodes", "type=ca not state=active"), 0);
    assert_int_equal(count("nodes", "type=switch pma!=read"), 0);
    assert_int_equal(count("nodes", "type=switch peer.pma!=read"), 1);
    assert_int_equal(count("nodes", "pma!=read"), 1);
    assert_int_equal(count("nodes", "role=leaf"), 8);
    assert_int_equal(count("nodes", "errors>2"), 1);
}

// The other end may have an alarm of its own, of another rule.
static void alarms_at_both_ends(void **state)
{
    (void)state;
    const struct fabric *f = sm_fabric(env.rig.sm);
    const struct port *p = fabric_port(f, fabric_port_at(f, named(LEAF), 34));
    const struct port *q = fabric_port(f, p->peer);
    assert_int_equal(alarms_that("peer.alarm!=none"), 0);
    alarm_raise(env.alarms, &(struct alarm_report){.fabric = "live",
                                                   .rule = "L15",
                                                   .subject = "far",
                                                   .severity = ALARM_MINOR,
                                                   .place = "far",
                                                   .reason = "dropped",
                                                   .node_guid = {fabric_node(f, q->node)->guid},
                                                   .port = {(uint8_t)q->num}});
    assert_int_equal(alarms_that("peer.alarm_rule=L15"), 1);
    alarm_clear(env.alarms, "live", "L15", "far");
}

// What a focus takes changes with each sweep of counters: no answer stands for the next one.
static void no_tag(void **state)
{
    (void)state;
    static const char *const path[] = {BASE LIVE "/ports?limit=1",
                                       BASE LIVE "/ports?limit=1&focus=used%3E5%25"};
    for (unsigned i = 0; i < 2; i++) {
        struct http h;
        char tag[100];
        http_do(&h, env.rig.loop, env.sock, "GET", path[i], NULL, NULL);
        assert_int_equal(h.status, 200);
        assert_int_equal(http_head(&h, "ETag", tag, sizeof(tag)) == NULL, i);
        http_close(&h);
    }
}

static void refused(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        static const char *const list[] = {"counters", "ports", "links", "health"};
        char path[120];
        snprintf(path, sizeof(path), LIVE "/%s?focus=peer.typ%%3Dca", list[i]);
        refused_call("GET", path, NULL, 400, "did you mean \"peer.type\"?");
        snprintf(path, sizeof(path), LIVE "/%s?focus=age%%3E5x", list[i]);
        refused_call("GET", path, NULL, 400, "age is compared with an age (as 90s, 10m, 2h, 3d, 1h..2h)");
        snprintf(path, sizeof(path), LIVE "/%s?focus=speed%%3DNDR", list[i]);
        refused_call("GET", path, NULL, 400, "speed is a number");
        snprintf(path, sizeof(path), LIVE "/%s?focus=leaf-nope", list[i]);
        refused_call("GET", path, NULL, 404, "is called so");
    }
}

// A cable that is out is what it was.
static void cable_out(void **state)
{
    (void)state;
    const struct fabric *f = sm_fabric(env.rig.sm);
    uint64_t leaf = named(LEAF)->guid;
    const struct port *p = fabric_port(f, fabric_port_at(f, named(LEAF), 40));
    uint64_t spine = fabric_node(f, fabric_port(f, p->peer)->node)->guid;
    sim_link_set(env.rig.sim, leaf, 40, false);
    rig_heals(&env.rig, 1);
    api_changed(env.api, "live");
    assert_int_equal(count("links?away=1", "kind=trunk"), 1);
    assert_int_equal(count("links?away=1", "kind=host"), 0);
    assert_int_equal(count("links?away=1", "role=spine peer.name=" LEAF), 1);
    assert_int_equal(count("ports", "kind=trunk state=down"), 2);
    json_t *v = keys("ports", "peer.role=spine state=down", NULL, "node_guid", "num");
    assert_int_equal(json_object_size(v), 1);
    json_decref(v);
    assert_true(api_focus_covers(env.api, "kind=trunk", "live", leaf, 40));
    assert_true(api_focus_covers(env.api, "kind=trunk", "live", spine, 40) ||
                count("ports", "role=spine state=down") == 1);
    sim_link_set(env.rig.sim, leaf, 40, true);
    rig_heals(&env.rig, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_language),   cmocka_unit_test(cables),
        cmocka_unit_test(alarms_too),     cmocka_unit_test(of_a_file),
        cmocka_unit_test(nodes_by_ports), cmocka_unit_test(alarms_at_both_ends),
        cmocka_unit_test(cable_out),      cmocka_unit_test(no_tag),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("whole/api_focus", tests, setup, teardown);
}
