// SPDX-License-Identifier: Apache-2.0
// What can be done to a simulated fabric over REST: every verb works on the fabric, refuses in words, and
// answers as the OpenAPI document says. Seen by the simulator's own views.
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/buf.h"
#include "sim/sim_flow.h"
#include "telemetry/module.h"
#include "tests/whole/api_rig.h"

#define ACTIONS "/fabrics/live/sim/actions"
#define LEAF "leaf-su01-rail0"

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

// --- helpers ---

static unsigned used[64]; // by the verb's place in the list

static void mark(const char *body)
{
    json_t *list = call("GET", ACTIONS, NULL, 200), *v;
    size_t i;
    char verb[60];
    json_array_foreach(json_object_get(list, "items"), i, v)
    {
        snprintf(verb, sizeof(verb), "\"%s\"", str(v, "verb"));
        if (strstr(body, verb) != NULL)
            used[i]++;
    }
    json_decref(list);
}

// Done, and said with this in it.
static void act(const char *body, const char *said)
{
    json_t *v = call("POST", ACTIONS, body, 200);
    openapi_check(env.doc, schema_of("/fabrics/{f}/sim/actions", "post"), v, body);
    assert_true(json_is_true(json_object_get(v, "ok")));
    if (strstr(str(v, "text"), said) == NULL)
        fail_msg("%s: said \"%s\", not \"%s\"", body, str(v, "text"), said);
    json_decref(v);
    mark(body);
}

static void refused(const char *body, int status, const char *detail)
{
    json_t *v = call("POST", ACTIONS, body, status);
    if (strstr(str(v, "detail"), detail) == NULL)
        fail_msg("%s: refused with \"%s\", not \"%s\"", body, str(v, "detail"), detail);
    json_decref(v);
}

static uint64_t guid_of(const char *name)
{
    const struct fabric *f = sm_fabric(env.rig.sm);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (strcmp(fabric_desc(f, &f->node[i]), name) == 0)
            return f->node[i].guid;
    fail_msg("no node %s", name);
    return 0;
}

static struct sim_port_view view(uint64_t guid, unsigned port)
{
    struct sim_port_view v;
    assert_int_equal(sim_port_view(env.rig.sim, guid, port, &v), 0);
    return v;
}

static void settle(void)
{
    rig_run(&env.rig, 30 * MONO_S);
    call_sweep("/fabrics/live/resweep", NULL);
    rig_run(&env.rig, 5 * MONO_S);
}

// All is as it was planned.
static void whole_again(void)
{
    settle();
    rig_judge(&env.rig, NULL, 0);
}

// --- the verbs ---

static void test_links(void **state)
{
    uint64_t leaf = guid_of(LEAF);
    (void)state;
    act("{\"verb\": \"link-down\", \"node\": \"" LEAF "\", \"port\": 2}", LEAF "[2] lost its cable");
    assert_false(view(leaf, 2).linked);
    act("{\"verb\": \"link-up\", \"node\": \"" LEAF "[2]\"}", LEAF "[2] has its cable again");
    assert_true(view(leaf, 2).linked);
    // Out at once, in after three seconds, out again after another three: three times. What of the first is
    // over when the answer has been read is not known.
    act("{\"verb\": \"link-flap\", \"node\": \"" LEAF "[2]\", \"times\": 3, \"down_seconds\": 3, "
        "\"up_seconds\": 3}",
        "3 times");
    unsigned down = 0, back = 0;
    for (int i = 0; i < 180; i++) {
        bool was = view(leaf, 2).linked;
        down += !was;
        rig_run(&env.rig, MONO_S / 10);
        back += !was && view(leaf, 2).linked;
    }
    assert_int_equal(back, 3);
    assert_in_range(down, 65, 95);
    assert_true(view(leaf, 2).linked);
    act("{\"verb\": \"link-enable\", \"node\": \"" LEAF "[2]\", \"speed\": \"EDR\", \"width\": \"1x\"}",
        "1x EDR");
    uint64_t speed = 0;
    assert_int_equal(sim_port_field(env.rig.sim, leaf, 2, "link_speed_ext_enabled", &speed), 0);
    assert_int_equal(speed, 2);
    refused("{\"verb\": \"link-enable\", \"node\": \"" LEAF "[2]\"}", 400, "width or speed");
    refused("{\"verb\": \"link-down\", \"node\": \"" LEAF "[200]\"}", 404, "no port 200");
    refused("{\"verb\": \"link-down\", \"node\": \"" LEAF "\"}", 400, "say which port");
    refused("{\"verb\": \"link-down\", \"node\": \"nobody\"}", 404, "nobody");
    refused("{\"verb\": \"link-down\", \"node\": \"0x77\", \"port\": 1}", 404, "no such node or port");
    refused("{\"verb\": \"link-flap\", \"node\": \"" LEAF "[2]\", \"seconds\": 1}", 400,
            "takes no \"seconds\"");
    refused("{\"verb\": \"link-flap\", \"node\": \"" LEAF "[2]\", \"times\": 0}", 400, "times");
    refused("{\"verb\": \"link-flap\"}", 400, "needs \"node\"");
    refused("{\"verb\": \"link-burn\", \"node\": \"" LEAF "[2]\"}", 400, "link-flap");
    refused("{}", 400, "verb");
}

static void test_cables(void **state)
{
    uint64_t leaf = guid_of(LEAF);
    (void)state;
    act("{\"verb\": \"cable-swap\", \"node\": \"" LEAF "\", \"port\": 2, \"to_node\": \"leaf-su01-rail1\", "
        "\"to_port\": 2}",
        "exchanged");
    act("{\"verb\": \"cable-swap\", \"node\": \"" LEAF "[2]\", \"to_node\": \"leaf-su01-rail1[2]\"}",
        "exchanged");
    act("{\"verb\": \"cable-move\", \"node\": \"gpu-0002 mlx5_0\", \"to_node\": \"" LEAF "[20]\"}",
        "leads to");
    assert_false(view(leaf, 2).linked);
    assert_true(view(leaf, 20).linked);
    refused("{\"verb\": \"cable-swap\", \"node\": \"" LEAF "[2]\", \"to_node\": \"" LEAF "[3]\"}", 409,
            "has no cable");
    act("{\"verb\": \"cable-move\", \"node\": \"gpu-0002 mlx5_0\", \"to_node\": \"" LEAF "[2]\"}",
        "leads to");
    refused("{\"verb\": \"cable-move\", \"node\": \"" LEAF "[2]\", \"to_node\": \"" LEAF "[2]\"}", 409,
            "same port");
    refused("{\"verb\": \"cable-move\", \"node\": \"" LEAF "[2]\"}", 400, "needs \"to_node\"");
    refused("{\"verb\": \"cable-move\", \"node\": \"" LEAF "[2]\", \"to_node\": \"" LEAF "\"}", 400,
            "to_port");
    whole_again();
}

static void test_nodes(void **state)
{
    uint64_t host = guid_of("gpu-0003 mlx5_3");
    (void)state;
    act("{\"verb\": \"node-kill\", \"node\": \"gpu-0003 mlx5_3\"}", "does not answer");
    act("{\"verb\": \"node-revive\", \"node\": \"gpu-0003 mlx5_3\"}", "answers again");
    act("{\"verb\": \"node-reboot\", \"node\": \"gpu-0003 mlx5_3\"}", "reboots");
    act("{\"verb\": \"node-reboot\", \"node\": \"gpu-0003 mlx5_3\", \"down_seconds\": 20, "
        "\"silent_seconds\": 3}",
        "reboots");
    assert_false(view(host, 1).linked);
    assert_int_equal(view(host, 1).lid, 0);
    act("{\"verb\": \"switch-reboot\", \"node\": \"spine-01\"}", "spine-01 reboots");
    act("{\"verb\": \"switch-reboot\", \"node\": \"spine-01\", \"down_seconds\": 1}", "reboots");
    refused("{\"verb\": \"switch-reboot\", \"node\": \"gpu-0003 mlx5_3\"}", 409, "node-reboot");
    whole_again();
    act("{\"verb\": \"node-slow\", \"node\": \"spine-01\", \"factor\": 7}", "7 times");
    act("{\"verb\": \"node-slow\", \"node\": \"spine-01\", \"seconds\": 0.001}", "0.001 s more");
    act("{\"verb\": \"node-slow\", \"node\": \"spine-01\", \"factor\": 1, \"seconds\": 0}", "as fast");
    refused("{\"verb\": \"node-slow\", \"node\": \"spine-01\"}", 400, "how slow");
    refused("{\"verb\": \"node-slow\", \"node\": \"spine-01\", \"factor\": 10001}", 400, "10000");
    refused("{\"verb\": \"node-slow\", \"node\": \"spine-01\", \"seconds\": 100}", 409, "a minute");
    act("{\"verb\": \"node-name\", \"node\": \"gpu-0003 mlx5_3\", \"text\": \"renamed\"}", "\"renamed\"");
    whole_again();
    assert_int_equal(guid_of("renamed"), host);
    act("{\"verb\": \"node-name\", \"node\": \"renamed\", \"text\": \"gpu-0003 mlx5_3\"}", "says it is");
    settle();
    refused("{\"verb\": \"node-name\", \"node\": \"spine-01\", \"text\": "
            "\"01234567890123456789012345678901234567890123456789012345678901234\"}",
            400, "64 bytes");
    act("{\"verb\": \"system-guid\", \"node\": \"gpu-0003 mlx5_3\", \"guid\": \"0x1b2c\"}",
        "0x0000000000001b2c");
    refused("{\"verb\": \"system-guid\", \"node\": \"gpu-0003 mlx5_3\", \"guid\": \"x\"}", 400,
            "hexadecimal");
    whole_again();
}

// Every host in the broadcast group; the list in pages; the detail by MGID and by MLID.
static void groups_are_there(void)
{
    static const char broadcast[] = "ff12:401b:ffff::ffff:ffff";
    json_t *all = call("GET", "/fabrics/live/groups", NULL, 200), *v, *g = NULL;
    char path[200], cursor[80] = "";
    size_t i, n = 0;

    openapi_check(env.doc, schema_of("/fabrics/{f}/groups", "get"), all, "groups");
    json_array_foreach(json_object_get(all, "items"), i, v)
    {
        if (strcmp(str(v, "mgid"), broadcast) == 0)
            g = v;
    }
    assert_non_null(g);
    assert_int_equal(num(g, "members"), 64);
    do {
        snprintf(path, sizeof(path), "/fabrics/live/groups?limit=7%s%s", cursor[0] ? "&cursor=" : "", cursor);
        v = call("GET", path, NULL, 200);
        n += json_array_size(json_object_get(v, "items"));
        snprintf(cursor, sizeof(cursor), "%s", str(v, "next"));
        json_decref(v);
    } while (cursor[0] != 0);
    assert_int_equal(n, json_array_size(json_object_get(all, "items")));
    for (int by_mlid = 0; by_mlid < 2; by_mlid++) {
        if (by_mlid)
            snprintf(path, sizeof(path), "/fabrics/live/groups/0x%llx", (long long)num(g, "mlid"));
        else
            snprintf(path, sizeof(path), "/fabrics/live/groups/%s", broadcast);
        v = call("GET", path, NULL, 200);
        openapi_check(env.doc, schema_of("/fabrics/{f}/groups/{mgid}", "get"), v, path);
        assert_string_equal(str(v, "mgid"), broadcast);
        assert_int_equal(json_array_size(json_object_get(v, "member")), 64);
        const json_t *m = json_array_get(json_object_get(v, "member"), 0);
        assert_non_null(strstr(str(m, "node"), "gpu-"));
        assert_int_equal(num(m, "join_state") & 1, 1);
        json_decref(v);
    }
    json_decref(all);
    json_decref(call("GET", "/fabrics/live/groups/ff12::1", NULL, 404));
    json_decref(call("GET", "/fabrics/live/groups/0xc7ff", NULL, 404));
    json_decref(call("GET", "/fabrics/live/groups/nonsense", NULL, 400));
    json_decref(call("GET", "/fabrics/live/groups?cursor=x", NULL, 400));
    v = call("GET", "/fabrics/live", NULL, 200);
    const json_t *sa = json_object_get(v, "sa");
    assert_true(num(sa, "members") >= 64 && num(sa, "answered") >= 64);
    json_decref(v);
}

static void test_hosts(void **state)
{
    (void)state;
    // The link stays while the computer boots.
    act("{\"verb\": \"host-reboot\", \"node\": \"gpu-0004 mlx5_1\", \"seconds\": 3, \"text\": \"booting\", "
        "\"orderly\": true}",
        "its link stays up");
    assert_true(view(guid_of("gpu-0004 mlx5_1"), 1).linked);
    refused("{\"verb\": \"host-reboot\", \"node\": \"spine-01\"}", 409, "switch-reboot");
    act("{\"verb\": \"hosts-on\", \"spread_seconds\": 0.1, \"path_rate\": 0.5}", "IPoIB");
    rig_run(&env.rig, 10 * MONO_S);
    json_t *v = call("GET", "/fabrics/live/sim", NULL, 200);
    openapi_check(env.doc, schema_of("/fabrics/{f}/sim", "get"), v, "sim");
    assert_int_equal(num(json_object_get(v, "hosts"), "hosts"), 64);
    assert_true(num(json_object_get(v, "hosts"), "attempts") > 0);
    json_decref(v);
    groups_are_there();
    act("{\"verb\": \"hosts-off\"}", "nothing any more");
    refused("{\"verb\": \"hosts-off\", \"node\": \"spine-01\"}", 400, "takes no \"node\"");
    v = call("GET", "/fabrics/live/sim", NULL, 200);
    assert_int_equal(num(json_object_get(v, "hosts"), "hosts"), 0);
    json_decref(v);
    whole_again();
}

static void test_identity(void **state)
{
    uint64_t old = guid_of("gpu-0005 mlx5_2");
    char body[200];
    (void)state;
    act("{\"verb\": \"guid-duplicate\", \"node\": \"gpu-0005 mlx5_3\", \"to_node\": \"gpu-0005 mlx5_4\"}",
        "shows");
    refused("{\"verb\": \"guid-duplicate\", \"node\": \"gpu-0005 mlx5_3\", \"to_node\": \"gpu-0005 mlx5_3\"}",
            409, "same node");
    act("{\"verb\": \"guid-restore\", \"node\": \"gpu-0005 mlx5_3\"}", "own GUIDs");
    whole_again();
    act("{\"verb\": \"adapter-replace\", \"node\": \"gpu-0005 mlx5_2\"}", "another device");
    refused("{\"verb\": \"adapter-replace\", \"node\": \"gpu-0005 mlx5_2\"}", 404, "no such node");
    settle();
    assert_int_not_equal(guid_of("gpu-0005 mlx5_2"), old); // by its name again, which means the new one
    snprintf(body, sizeof(body),
             "{\"verb\": \"adapter-replace\", \"node\": \"gpu-0005 mlx5_2\", \"guid\": \"0x%llx\", "
             "\"down_seconds\": 2}",
             (unsigned long long)guid_of("spine-01"));
    refused(body, 409, "there already");
    snprintf(body, sizeof(body),
             "{\"verb\": \"adapter-replace\", \"node\": \"gpu-0005 mlx5_2\", \"guid\": \"0x%llx\"}",
             (unsigned long long)old);
    act(body, "another device");
    whole_again();
    assert_int_equal(guid_of("gpu-0005 mlx5_2"), old);
}

static void test_keys_and_settings(void **state)
{
    uint64_t host = guid_of("gpu-0006 mlx5_0"), spine = guid_of("spine-01"), v = 0;
    (void)state;
    act("{\"verb\": \"m-key\", \"node\": \"gpu-0006 mlx5_0\", \"key\": \"0x12\", \"protect\": 2, "
        "\"lease_seconds\": 60}",
        "M_Key");
    assert_int_equal(sim_port_field(env.rig.sim, host, 1, "m_key", &v), 0);
    assert_int_equal(v, 0x12);
    act("{\"verb\": \"m-key\", \"node\": \"gpu-0006 mlx5_0\", \"key\": \"0\"}", "no M_Key");
    act("{\"verb\": \"m-key\", \"node\": \"spine-01\", \"key\": \"0\"}", "spine-01[0]");
    refused("{\"verb\": \"m-key\", \"node\": \"spine-01[3]\", \"key\": \"1\"}", 409, "port 0");
    refused("{\"verb\": \"m-key\", \"node\": \"spine-01\", \"key\": \"1\", \"protect\": 4}", 400, "protect");
    act("{\"verb\": \"set-ignore\", \"node\": \"spine-01\", \"what\": \"LinearForwardingTable\"}",
        "keeps nothing");
    act("{\"verb\": \"set-keep\", \"node\": \"spine-01\", \"what\": \"LinearForwardingTable\"}", "again");
    act("{\"verb\": \"set-ignore\", \"node\": \"spine-01\", \"what\": \"life_time_value\"}", "keeps nothing");
    act("{\"verb\": \"set-keep\", \"node\": \"spine-01\", \"what\": \"life_time_value\"}", "again");
    act("{\"verb\": \"set-ignore\", \"node\": \"gpu-0006 mlx5_0\", \"what\": \"subnet_timeout\"}",
        "keeps nothing");
    act("{\"verb\": \"set-keep\", \"node\": \"gpu-0006 mlx5_0\", \"what\": \"subnet_timeout\"}", "again");
    refused("{\"verb\": \"set-ignore\", \"node\": \"spine-01\", \"what\": \"nonsense\"}", 400,
            "LinearForwardingTable");
    (void)spine;
    whole_again();
}

static void test_traps(void **state)
{
    static const char *const good[] = {
        "\"" LEAF "[2]\", \"number\": 129",     "\"" LEAF "\", \"number\": 128",
        "\"" LEAF "\", \"number\": 131",        "\"gpu-0001 mlx5_1\", \"number\": 144",
        "\"gpu-0001 mlx5_1\", \"number\": 145", "\"gpu-0001 mlx5_1\", \"number\": 256",
        "\"gpu-0001 mlx5_1\", \"number\": 257", "\"gpu-0001 mlx5_1\", \"number\": 258",
        "\"" LEAF "[2]\", \"number\": 259"};
    struct sim_stats before, after;
    char body[200];
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        sim_get_stats(env.rig.sim, &before);
        snprintf(body, sizeof(body), "{\"verb\": \"trap-raise\", \"node\": %s}", good[i]);
        act(body, "sends trap");
        rig_run(&env.rig, MONO_S);
        sim_get_stats(env.rig.sim, &after);
        assert_true(after.traps > before.traps);
    }
    refused("{\"verb\": \"trap-raise\", \"node\": \"gpu-0001 mlx5_1\", \"number\": 128}", 409, "144, 145");
    refused("{\"verb\": \"trap-raise\", \"node\": \"gpu-0001 mlx5_1\", \"number\": 70000}", 400, "number");
    act("{\"verb\": \"trap-lose\", \"node\": \"" LEAF "\"}", "all traps");
    act("{\"verb\": \"trap-lose\", \"node\": \"" LEAF "\", \"count\": 3}", "next 3");
    act("{\"verb\": \"trap-lose\", \"node\": \"" LEAF "\", \"count\": 0}", "arrive again");
    act("{\"verb\": \"trap-loss\", \"share\": 0.5}", "50 %");
    act("{\"verb\": \"trap-loss\", \"share\": 0}", "no traps are lost");
    act("{\"verb\": \"loss\", \"share\": 0.01}", "1 %");
    act("{\"verb\": \"loss\", \"share\": 0}", "no datagrams");
    refused("{\"verb\": \"loss\", \"share\": 2}", 400, "share");
    whole_again();
}

static void test_managers(void **state)
{
    (void)state;
    act("{\"verb\": \"sm-add\", \"node\": \"gpu-0008 mlx5_7\", \"priority\": 1, \"sm_key\": \"0x1\"}",
        "standby, priority 1");
    refused("{\"verb\": \"sm-add\", \"node\": \"gpu-0008 mlx5_7\"}", 409, "sm-set");
    refused("{\"verb\": \"sm-add\", \"node\": \"" LEAF "[2]\"}", 404, "end port");
    act("{\"verb\": \"sm-set\", \"node\": \"gpu-0008 mlx5_7\", \"priority\": 2, \"quiet\": true, "
        "\"poll_seconds\": 5, "
        "\"misses\": 9, \"frozen\": false}",
        "priority 2");
    json_t *v = call("GET", "/fabrics/live/sim", NULL, 200);
    openapi_check(env.doc, schema_of("/fabrics/{f}/sim", "get"), v, "sim");
    const json_t *m = json_array_get(json_object_get(v, "managers"), 0);
    assert_string_equal(str(m, "node"), "gpu-0008 mlx5_7");
    assert_string_equal(str(m, "state"), "standby");
    assert_int_equal(num(m, "priority"), 2);
    char guid[20];
    snprintf(guid, sizeof(guid), "%s", str(m, "port_guid"));
    const json_t *seen = NULL;
    for (int i = 0; i < 30 && seen == NULL; i++) { // our manager has been told, and has asked it
        rig_run(&env.rig, MONO_S);
        json_decref(v);
        v = call("GET", "/fabrics/live", NULL, 200);
        seen = json_array_get(json_object_get(v, "managers"), 0);
        seen = num(seen, "priority") == 2 ? seen : NULL;
    }
    openapi_check(env.doc, schema_of("/fabrics/{f}", "get"), v, "fabric");
    assert_string_equal(str(seen, "node"), "gpu-0008 mlx5_7");
    assert_string_equal(str(seen, "state"), "standby");
    assert_string_equal(str(seen, "guid"), guid);
    assert_int_equal(num(seen, "port"), 1);
    assert_true(num(seen, "lid") > 0 && json_is_false(json_object_get(seen, "above")));
    json_decref(v);
    act("{\"verb\": \"sm-control\", \"node\": \"gpu-0008 mlx5_7\", \"control\": \"acknowledge\", \"lid\": 1}",
        "acknowledge");
    refused("{\"verb\": \"sm-control\", \"node\": \"gpu-0008 mlx5_7\", \"control\": \"explode\", \"lid\": 1}",
            400, "handover");
    act("{\"verb\": \"sm-remove\", \"node\": \"gpu-0008 mlx5_7\"}", "is gone");
    refused("{\"verb\": \"sm-remove\", \"node\": \"gpu-0008 mlx5_7\"}", 404, "sm-add");
    refused("{\"verb\": \"sm-set\", \"node\": \"gpu-0008 mlx5_7\"}", 404, "sm-add");
    whole_again();
}

static void test_traffic(void **state)
{
    uint64_t leaf = guid_of(LEAF);
    struct sim_flow_view w;
    struct sim_flow_info i;
    (void)state;
    act("{\"verb\": \"traffic-start\", \"pattern\": \"incast\", \"hosts\": \"gpu-[0002-0004]\", "
        "\"receivers\": \"gpu-0001 mlx5_0\", \"text\": \"one for all\", \"window\": 64, \"seed\": 5}",
        "one for all, 24 senders, 24 flows");
    act("{\"verb\": \"traffic-start\", \"pattern\": \"storage\", \"hosts\": \"gpu-0005,gpu-000[6-7]\", "
        "\"receivers\": \"gpu-0008\", \"fan\": 2, \"load\": 0.5, \"on_seconds\": 1, \"off_seconds\": 2, "
        "\"level\": 0}",
        "24 senders, 48 flows, in bursts");
    act("{\"verb\": \"receiver\", \"node\": \"gpu-0001 mlx5_0\", \"share\": 0.2}", "takes 20 % of what");
    rig_run(&env.rig, MONO_S / 2);
    json_t *v = call("GET", "/fabrics/live/sim", NULL, 200);
    openapi_check(env.doc, schema_of("/fabrics/{f}/sim", "get"), v, "sim");
    const json_t *t = json_array_get(json_object_get(v, "traffic"), 0);
    assert_string_equal(str(t, "pattern"), "incast");
    assert_int_equal(num(t, "flows"), 24);
    double got = json_number_value(json_object_get(t, "delivered_bytes_per_second"));
    assert_true(got > 0.18 * 25e9 && got < 0.22 * 25e9);
    const json_t *root = json_array_get(json_object_get(v, "roots"), 0);
    assert_string_equal(str(root, "node"), LEAF);
    assert_string_equal(str(root, "kind"), "receiver");
    assert_int_equal(sim_flow_view(env.rig.sim, leaf, (unsigned)num(root, "port"), &w), 0);
    assert_true(w.held > 0.75 && w.used < 0.25);
    json_decref(v);
    act("{\"verb\": \"receiver\", \"node\": \"gpu-0001 mlx5_0\", \"share\": 1}", "all that arrives");
    act("{\"verb\": \"traffic-stop\", \"id\": 1}", "traffic 1 has ended");
    refused("{\"verb\": \"traffic-stop\", \"id\": 1}", 404, "traffic list");
    act("{\"verb\": \"traffic-stop\"}", "all traffic has ended");
    assert_int_equal(sim_flow_list(env.rig.sim, 0, &i), -ENOENT);
    refused("{\"verb\": \"traffic-start\", \"pattern\": \"jam\"}", 400, "ring");
    refused("{\"verb\": \"traffic-start\", \"pattern\": \"ring\", \"hosts\": \"gpu-9999\"}", 400,
            "names no adapter");
    refused("{\"verb\": \"traffic-start\", \"pattern\": \"ring\", \"hosts\": \"gpu-0001 mlx5_0\"}", 400,
            "nobody to send to");
    refused(
        "{\"verb\": \"traffic-start\", \"pattern\": \"ring\", \"on_seconds\": 0.00001, \"off_seconds\": 1}",
        409, "a millisecond");
    refused("{\"verb\": \"receiver\", \"node\": \"" LEAF "[2]\", \"share\": 0.5}", 400, "switch");
    whole_again();
}

static void test_errors(void **state)
{
    uint64_t leaf = guid_of(LEAF), v = 0, z = 0;
    const struct fabric *f = sm_fabric(env.rig.sm);
    const struct port *p = fabric_port(f, fabric_port_at(f, fabric_by_guid(f, leaf), 3));
    const struct port *peer = fabric_port(f, p->peer);
    uint64_t far = fabric_node(f, peer->node)->guid;
    (void)state;
    act("{\"verb\": \"errors\", \"node\": \"" LEAF "[3]\", \"symbol\": 3600, \"recovery\": 360, \"vl15\": 1}",
        "receives with 3600 symbol errors an hour, 360 recoveries an hour, 1 dropped management packets an "
        "hour");
    rig_run(&env.rig, 100 * MONO_S);
    assert_int_equal(sim_counter_get(env.rig.sim, leaf, 3, SIM_SYMBOL_ERRORS, &v), 0);
    assert_true(v > 50 && v < 150);
    assert_int_equal(sim_counter_get(env.rig.sim, far, peer->num, SIM_SYMBOL_ERRORS, &v), 0);
    assert_int_equal(v, 0);
    assert_int_equal(sim_counter_get(env.rig.sim, leaf, 3, SIM_LINK_ERROR_RECOVERY, &v), 0);
    assert_int_equal(sim_counter_get(env.rig.sim, far, peer->num, SIM_LINK_ERROR_RECOVERY, &z), 0);
    assert_true(v == z && v > 0);
    act("{\"verb\": \"errors\", \"node\": \"" LEAF
        "[3]\", \"ber\": 1e-13, \"raw_ber\": 1e-8, \"uncorrectable\": 1, \"recovery\": 0, \"vl15\": 0}",
        "ratio of 1e-13, a bit error ratio before correction of 1e-08");
    act("{\"verb\": \"errors\", \"node\": \"" LEAF "[3]\", \"ber\": 0}", "ratio of 0");
    refused("{\"verb\": \"errors\", \"node\": \"" LEAF "[3]\"}", 400, "say which errors");
    refused("{\"verb\": \"errors\", \"node\": \"" LEAF "[3]\", \"ber\": 0.5}", 400, "ber");
    refused("{\"verb\": \"errors\", \"node\": \"" LEAF "[3]\", \"ber\": 1e-9, \"symbol\": 5}", 400, "or by");
    whole_again();
}

static struct tele_modules *sensed(void)
{
    struct buf text = {0};
    sim_sensors_text(env.rig.sim, &text);
    struct tele_modules *m = tele_modules_parse(text.data, 7 * MONO_S, NULL, NULL);
    buf_done(&text);
    return m;
}

static unsigned failed(const struct tele_device *d, bool fans)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < (fans ? d->num_fans : d->num_psus); i++)
        n += fans ? d->fan[i].rpm < d->fan[i].min : d->psu[i].state == PART_FAILED;
    return n;
}

static void test_sensors(void **state)
{
    uint64_t leaf = guid_of(LEAF), host = guid_of("gpu-0003 mlx5_3");
    struct tele_optics o;
    (void)state;
    assert_int_equal(sim_sensed(env.rig.sim), 0);
    act("{\"verb\": \"module\", \"node\": \"" LEAF "[3]\"}", "45 C, 0 dBm received and 0 dBm sent");
    act("{\"verb\": \"module\", \"node\": \"" LEAF "[4]\", \"fault\": true, \"celsius\": -10.5}",
        "has failed");
    act("{\"verb\": \"module\", \"node\": \"gpu-0003 mlx5_3\", \"rx_dbm\": -12.25, \"tx_dbm\": 5}",
        "-12.25 dBm");
    act("{\"verb\": \"device\", \"node\": \"" LEAF "\", \"failed_fans\": 8, \"failed_supplies\": 1}",
        "8 failed fans");
    act("{\"verb\": \"device\", \"node\": \"gpu-0003 mlx5_3\", \"celsius\": 71}", "71 C");
    assert_int_equal(sim_sensed(env.rig.sim), 5);
    struct tele_modules *m = sensed();
    assert_int_equal(tele_modules_num(m), 3);
    assert_int_equal(tele_devices_num(m), 2);
    assert_true(tele_module_optics(tele_modules_find(m, leaf, 3), &o) && !o.fault && o.lane == 0);
    assert_true(tele_module_optics(tele_modules_find(m, leaf, 4), &o) && o.fault);
    assert_true(fabs(tele_modules_find(m, leaf, 4)->celsius + 10.5) < 1e-9);
    const struct tele_module *dim = tele_modules_find(m, host, 1);
    assert_true(tele_module_optics(dim, &o) && o.lane == 2 && o.rx && !o.high);
    assert_true(fabs(dim->rx_dbm[1] + 12.25) < 1e-9 && fabs(dim->tx_dbm[1] - 5) < 1e-9);
    for (unsigned i = 0; i < dim->lanes; i++) // all other lanes are well
        assert_true(i == 1 || (fabs(dim->rx_dbm[i]) < 1e-9 && fabs(dim->tx_dbm[i]) < 1e-9));
    const struct tele_device *d = tele_device_find(m, leaf);
    assert_true(fabs(d->celsius - 50) < 1e-9 && d->num_fans == 8 && d->num_psus == 2);
    assert_true(failed(d, true) == 8 && failed(d, false) == 1);
    d = tele_device_find(m, host);
    assert_true(fabs(d->celsius - 71) < 1e-9 && d->num_fans == 0 && d->num_psus == 0);
    tele_modules_free(m);
    act("{\"verb\": \"device\", \"node\": \"" LEAF "\"}", "0 failed fans"); // in the place of what was
    m = sensed();
    d = tele_device_find(m, leaf);
    assert_true(tele_devices_num(m) == 2 && failed(d, true) + failed(d, false) == 0);
    tele_modules_free(m);
    refused("{\"verb\": \"module\", \"node\": \"" LEAF "\"}", 400, "port");
    refused("{\"verb\": \"module\", \"node\": \"" LEAF "[3]\", \"rx_dbm\": -61}", 400, "rx_dbm");
    refused("{\"verb\": \"device\", \"node\": \"" LEAF "\", \"failed_fans\": 9}", 400, "failed_fans");
    refused("{\"verb\": \"device\", \"node\": \"gpu-0003 mlx5_3\", \"failed_fans\": 1}", 409,
            "an adapter none");
}

// A fabric that is not simulated, and one action as an event.
static void test_elsewhere(void **state)
{
    (void)state;
    json_t *v = call("POST", "/fabrics/file/sim/actions", "{\"verb\": \"hosts-off\"}", 409);
    assert_non_null(strstr(str(v, "detail"), "hands in the machine room"));
    json_decref(v);
    json_decref(call("GET", "/fabrics/file/sim", NULL, 409));
    act("{\"verb\": \"trap-lose\", \"node\": \"" LEAF "\", \"count\": 0}", "arrive again");
    v = call("GET", "/events?newest=1&kind=operator-action&limit=1", NULL, 200);
    const json_t *e = json_array_get(json_object_get(v, "items"), 0);
    assert_string_equal(str(e, "subject"), LEAF);
    assert_non_null(strstr(str(e, "text"), "simulator: traps of " LEAF " arrive again"));
    json_decref(v);
}

static void test_every_verb_was_used(void **state)
{
    json_t *list = call("GET", ACTIONS, NULL, 200), *v;
    struct buf doc = {0};
    char cell[80];
    size_t i;
    (void)state;
    assert_int_equal(buf_read_file(&doc, SOURCE_ROOT "/doc/api.md", 1u << 20), 0);
    assert_true(json_array_size(json_object_get(list, "items")) > 25);
    json_array_foreach(json_object_get(list, "items"), i, v)
    {
        if (used[i] == 0)
            fail_msg("%s is not tested", str(v, "verb"));
        snprintf(cell, sizeof(cell), "| `%s` |", str(v, "verb"));
        if (strstr(doc.data, cell) == NULL)
            fail_msg("doc/api.md does not explain %s", str(v, "verb"));
    }
    buf_done(&doc);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_cables),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_identity),
        cmocka_unit_test(test_keys_and_settings),
        cmocka_unit_test(test_traps),
        cmocka_unit_test(test_managers),
        cmocka_unit_test(test_traffic),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_sensors),
        cmocka_unit_test(test_elsewhere),
        cmocka_unit_test(test_every_verb_was_used),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
