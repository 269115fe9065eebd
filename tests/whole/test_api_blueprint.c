// SPDX-License-Identifier: Apache-2.0
// The blueprint over the API: shown beside what is there, changes looked at and done, files that are refused;
// routes balanced anew, the plan first.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/writer.h"
#include "lib/rng.h"
#include "tests/whole/api_rig.h"

static int setup(void **state)
{
    (void)state;
    env_up("rail-512");
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

// Waits for a job; its whole answer.
static json_t *ended(const char *id, const char *state)
{
    char path[60];
    snprintf(path, sizeof(path), "/jobs/%s", id);
    for (int i = 0; i < 400; i++) {
        json_t *v = call("GET", path, NULL, 200);
        if (strcmp(str(v, "state"), "running") != 0) {
            if (strcmp(str(v, "state"), state) != 0)
                fail_msg("job: %s", json_dumps(v, 0));
            return v;
        }
        json_decref(v);
        rig_run(&env.rig, MONO_S / 100);
    }
    fail_msg("the job does not end");
    return NULL;
}

static json_t *job(const char *below, const char *body, const char *state)
{
    char path[80];
    snprintf(path, sizeof(path), LIVE "/%s", below);
    json_t *v = call("POST", path, body, 202);
    json_t *id = json_object_get(v, "job") != NULL ? at(v, "job") : at(v, "id");
    json_t *r = ended(json_string_value(id), state);
    json_decref(v);
    return r;
}

static json_t *result(const char *below, const char *body)
{
    json_t *v = job(below, body, "done"), *r = json_incref(at(v, "result"));
    json_decref(v);
    return r;
}

static void refused(const char *below, const char *body, const char *why)
{
    json_t *v = job(below, body, "failed");
    if (strstr(str(at(v, "error"), "text"), why) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", why, str(at(v, "error"), "text"));
    json_decref(v);
}

static json_t *shown(void)
{
    return call("GET", LIVE "/blueprint", NULL, 200);
}

static void settle(void)
{
    rig_run(&env.rig, 5 * MONO_S);
}

static json_int_t trunks(bool up)
{
    const struct fabric *f = env.rig.plan;
    struct rng rng;
    json_int_t n = 0;
    rng_init(&rng, 3);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct node *a = fabric_node(f, p->node), *z = fabric_peer_node(f, p);
        if (z == NULL || a->type != NODE_SWITCH || z->type != NODE_SWITCH || p->peer.i < i ||
            rng_below(&rng, 100) >= 10)
            continue;
        assert_int_equal(sim_link_set(env.rig.sim, a->guid, p->num, up), 0);
        n++;
    }
    settle();
    return n;
}

static void test_whole(void **state)
{
    (void)state;
    json_t *b = shown();
    assert_string_equal(str(b, "state"), "learning");
    assert_true(json_is_null(at(b, "since")) && json_is_null(at(b, "by")));
    assert_int_equal(num(b, "nodes"), env.rig.plan->num_nodes);
    assert_int_equal(num(b, "links"), env.rig.plan->num_links);
    assert_int_equal(json_array_size(at(b, "differences")), 0);
    json_decref(b);
    b = result("reroute", "{\"dry_run\": true}");
    assert_true(json_is_true(at(b, "dry_run")) && json_is_null(at(b, "sweep")));
    assert_int_equal(num(at(b, "routes"), "entries"), 0);
    assert_true(json_is_true(at(at(b, "routes"), "proved")));
    assert_non_null(strstr(str(at(b, "routes"), "verdict"), "nothing would move"));
    json_decref(b);
    b = shown();
    assert_string_equal(str(b, "state"), "learning"); // looking changes nothing
    json_decref(b);
}

static void test_reroute(void **state)
{
    (void)state;
    json_int_t dead = trunks(false);
    json_t *b = shown();
    assert_int_equal(num(b, "missing_links"), dead);
    assert_int_equal(num(b, "missing_nodes"), 0);
    assert_string_equal(str(json_array_get(at(b, "differences"), 0), "kind"), "missing-link");
    assert_non_null(strstr(str(json_array_get(at(b, "differences"), 0), "text"), "is away"));
    json_decref(b);

    unsigned sweeps = env.rig.sweeps;
    b = result("reroute", "{\"dry_run\": true}");
    const json_t *r = at(b, "routes");
    assert_int_equal(num(b, "dropped_links"), dead);
    assert_string_equal(str(b, "state"), "accepted");
    assert_true(num(r, "entries") > 0 && num(r, "blocks") > 0 && num(r, "paths") > 0 && num(r, "waves") > 0);
    assert_true(json_is_object(at(r, "quality")) && json_is_object(at(r, "quality_before")));
    assert_true(strlen(str(r, "verdict")) > 0);
    json_int_t entries = num(r, "entries");
    json_decref(b);
    assert_int_equal(env.rig.sweeps, sweeps);

    b = call("POST", LIVE "/reroute", "{}", 202); // as scripts do
    json_int_t id = num(b, "sweep");
    assert_true(json_is_null(at(b, "job")));
    json_decref(b);
    settle();
    char path[60];
    snprintf(path, sizeof(path), LIVE "/sweeps?limit=5");
    b = call("GET", path, NULL, 200);
    const json_t *s = NULL;
    for (size_t i = 0; i < json_array_size(at(b, "items")); i++)
        if (num(json_array_get(at(b, "items"), i), "id") == id)
            s = json_array_get(at(b, "items"), i);
    assert_non_null(s);
    assert_int_equal(num(s, "lft_entries"), entries); // what was planned
    json_decref(b);
    b = shown();
    assert_string_equal(str(b, "state"), "accepted");
    assert_non_null(strstr(str(b, "by"), "user id "));
    assert_int_equal(num(b, "missing_links"), 0);
    json_decref(b);
    b = result("reroute", "{\"dry_run\": true}");
    assert_int_equal(num(at(b, "routes"), "entries"), 0);
    json_decref(b);
}

static void test_accept(void **state)
{
    (void)state;
    json_int_t back = trunks(true);
    json_t *b = shown();
    assert_int_equal(num(b, "extra_links"), back);
    json_decref(b);
    b = call("GET", LIVE "/findings", NULL, 200);
    bool found = false;
    for (size_t i = 0; i < json_array_size(at(b, "items")); i++)
        found |= strcmp(str(json_array_get(at(b, "items"), i), "code"), "blueprint-growth") == 0;
    assert_true(found);
    json_decref(b);
    b = result("blueprint/accept", "{\"dry_run\": true}");
    assert_int_equal(num(b, "added_links"), back);
    assert_true(num(at(b, "routes"), "entries") > 0);
    json_decref(b);
    b = result("blueprint/accept", NULL);
    assert_true(num(b, "sweep") > 0 && json_is_null(at(b, "routes")));
    json_decref(b);
    settle();
    b = shown();
    assert_int_equal(num(b, "extra_links"), 0);
    assert_int_equal(num(b, "links"), env.rig.plan->num_links);
    assert_string_equal(str(b, "asked"), "none");
    json_decref(b);
    json_decref(result("blueprint/learn", "{}"));
    settle();
    b = shown();
    assert_string_equal(str(b, "state"), "learning");
    json_decref(b);
}

static void test_strike(void **state)
{
    const struct fabric *f = env.rig.plan;
    const struct node *h = NULL, *leaf;
    char body[200];
    (void)state;
    for (uint32_t i = 0; i < f->num_nodes && h == NULL; i++)
        if (f->node[i].role == ROLE_HOST && i != f->port[f->sm_port.i].node.i)
            h = &f->node[i];
    leaf = fabric_peer_node(f, &f->port[h->first_port]);
    unsigned num_at = fabric_port(f, f->port[h->first_port].peer)->num;
    snprintf(body, sizeof(body), "{\"element\": \"0x%016llx\", \"dry_run\": true}",
             (unsigned long long)h->guid);
    refused("blueprint/strike", body, "only what is gone can be struck out");
    refused("blueprint/strike", "{\"element\": \"nobody\"}", "no node or port");
    json_decref(call("POST", LIVE "/blueprint/strike", "{}", 400));
    assert_int_equal(sim_link_set(env.rig.sim, h->guid, 1, false), 0);
    settle();
    json_t *b = result("blueprint/strike", body);
    assert_int_equal(num(b, "dropped_nodes"), 1);
    assert_int_equal(num(b, "dropped_links"), 0);
    json_decref(b);
    // By its cable's other end: it hangs on that alone.
    snprintf(body, sizeof(body), "{\"element\": \"%s[%u]\"}", fabric_desc(f, leaf), num_at);
    b = result("blueprint/strike", body);
    assert_int_equal(num(b, "dropped_nodes"), 1);
    json_decref(b);
    settle();
    b = shown();
    assert_int_equal(num(b, "nodes"), f->num_nodes - 1);
    assert_string_equal(str(b, "state"), "learning");
    json_decref(b);
    refused("blueprint/strike", body, "no cable there");
    assert_int_equal(sim_link_set(env.rig.sim, h->guid, 1, true), 0); // learnt again
    settle();
    b = shown();
    assert_int_equal(num(b, "nodes"), f->num_nodes);
    json_decref(b);
}

// What stands in another's place is to be accepted; what is only silent is kept.
static void test_replaced_and_silent(void **state)
{
    const struct fabric *f = env.rig.plan;
    const struct node *leaf = NULL, *spine = NULL;
    char body[100];
    (void)state;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (f->node[i].role == ROLE_SPINE)
            spine = &f->node[i];
        if (f->node[i].role == ROLE_LEAF && fabric_peer_node(f, fabric_port(f, f->sm_port)) != &f->node[i])
            leaf = &f->node[i];
    }
    json_decref(result("blueprint/accept", "{}"));
    settle();
    json_t *b = result("blueprint/accept", "{\"dry_run\": true}");
    assert_string_equal(str(b, "state_before"), "accepted");
    json_decref(b);
    assert_int_equal(sim_node_replace(env.rig.sim, spine->guid, 0xfeed0000, MONO_S), 0);
    settle();
    snprintf(body, sizeof(body), "{\"element\": \"0x%016llx\", \"dry_run\": true}",
             (unsigned long long)spine->guid);
    b = result("blueprint/strike", body);
    assert_non_null(strstr(json_string_value(json_array_get(at(b, "warnings"), 0)), "weft blueprint accept"));
    json_decref(b);
    json_decref(result("blueprint/accept", "{}"));
    settle();
    assert_int_equal(sim_node_kill(env.rig.sim, leaf->guid, true), 0);
    rig_run(&env.rig, 12 * MONO_S);
    b = result("reroute", "{\"dry_run\": true}");
    snprintf(body, sizeof(body), "%s and 32 ends", fabric_desc(f, leaf));
    assert_string_equal(str(b, "kept"), body);
    assert_int_equal(num(b, "dropped_nodes"), 0);
    assert_int_equal(num(at(b, "routes"), "entries"), 0);
    json_decref(b);
    snprintf(body, sizeof(body), "{\"element\": \"%s\"}", fabric_desc(f, leaf));
    refused("blueprint/strike", body, "its cables are up");
    assert_int_equal(sim_node_kill(env.rig.sim, leaf->guid, false), 0);
    settle();
}

// --- rated unasked ---

static void rated(const json_t *o, const char *key, double same_rail_shift)
{
    double x = json_number_value(at(at(o, key), "same_rail_shift"));
    if (x < same_rail_shift - 0.0005 || x > same_rail_shift + 0.0005)
        fail_msg("%s: %f, not %f", key, x, same_rail_shift);
}

// As the daemon does at the end of each sweep; then somebody rates the tables.
static json_t *routing(void)
{
    api_changed(env.api, "live");
    settle();
    json_t *f = call("GET", LIVE, NULL, 200), *r = json_incref(at(f, "routing"));
    json_decref(f);
    return r;
}

static void test_rated(void **state)
{
    (void)state;
    json_t *r = routing();
    rated(r, "quality", 1);
    rated(r, "quality_ideal", 1);
    json_decref(r);
    trunks(false);
    r = routing();
    double now = json_number_value(at(at(r, "quality"), "same_rail_shift"));
    assert_true(now < 0.999);
    rated(r, "quality_ideal", 1);
    rated(r, "quality_last", 1);
    json_decref(r);
    json_t *s = call("GET", LIVE "/sweeps", NULL, 200), *newest = NULL;
    for (size_t i = json_array_size(at(s, "items")); i-- > 0;)
        if (json_is_object(at(json_array_get(at(s, "items"), i), "quality")))
            newest = json_array_get(at(s, "items"), i);
    assert_non_null(newest);
    assert_true(num(newest, "lft_entries") > 0);
    rated(newest, "quality", now);
    json_decref(s);
    // It is there when it is asked for; tables that stay what they were keep their figures.
    s = call("GET", LIVE "/route-quality", NULL, 200);
    assert_string_equal(str(s, "state"), "ready");
    assert_true(json_is_object(at(s, "last")) && json_is_object(at(s, "ideal")));
    json_decref(s);
    sm_resweep(env.rig.sm, "operator", false);
    settle();
    r = routing();
    rated(r, "quality", now);
    rated(r, "quality_last", 1);
    json_decref(r);
    trunks(true);
    r = routing();
    rated(r, "quality", 1);
    rated(r, "quality_last", now);
    json_decref(r);
    trunks(false); // the API may go while figures are made
    api_changed(env.api, "live");
}

// --- files ---

static char *set_body(const char *text, const char *more)
{
    json_t *o = json_pack("{s:s, s:s}", "text", text, "name", "plan.topo");
    char *s = json_dumps(o, JSON_COMPACT), *ret = NULL;
    json_decref(o);
    s[strlen(s) - 1] = 0; // the brace
    assert_true(asprintf(&ret, "%s%s}", s, more) > 0);
    free(s);
    return ret;
}

static char *text_of(const struct fabric *f)
{
    char *text = NULL;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_int_equal(write_ibnetdiscover(f, out), 0);
    fclose(out);
    return text;
}

static void bad(const char *text, const char *more, const char *why)
{
    char *body = set_body(text, more);
    refused("blueprint/set", body, why);
    free(body);
}

static void test_bad_files(void **state)
{
    (void)state;
    bad("nothing of the kind\n", "", "no ");
    char *other = text_of(env.fabric[1].offline);
    bad(other, "", "none of the fabric's ");
    char *body = set_body(other, ", \"force\": true, \"dry_run\": true");
    json_t *b = result("blueprint/set", body);
    assert_true(num(b, "added_nodes") > 0 && num(b, "dropped_nodes") > 0);
    json_decref(b);
    free(body);
    free(other);
    bad("Switch 4 \"leaf\"\n[1] \"host\"[1]\n\nHca 1 \"host\"\n[1] \"leaf\"[1]\n", ", \"force\": true",
        "makes their GUIDs up");
    json_decref(call("POST", LIVE "/blueprint/set", "{}", 400));
    json_decref(call("POST", "/fabrics/file/blueprint/set", "{\"text\": \"x\"}", 409));
    json_decref(call("GET", "/fabrics/file/blueprint", NULL, 409));
    json_decref(call("POST", "/fabrics/file/reroute", "{\"dry_run\": true}", 409));
    b = shown();
    assert_string_equal(str(b, "state"), "learning");
    assert_int_equal(num(b, "nodes"), env.rig.plan->num_nodes);
    json_decref(b);
}

static void test_saved_and_set(void **state)
{
    struct http h;
    (void)state;
    http_do(&h, env.rig.loop, env.sock, "GET", BASE LIVE "/export?format=ibnetdiscover&of=blueprint", NULL,
            NULL);
    assert_int_equal(h.status, 200);
    assert_non_null(strstr(h.body, "leaf-su"));
    char *body = set_body(h.body, "");
    http_close(&h);
    json_t *b = result("blueprint/set", body);
    free(body);
    assert_int_equal(num(b, "added_nodes") + num(b, "dropped_nodes") + num(b, "added_links") +
                         num(b, "dropped_links") + num(b, "moved") + num(b, "replaced"),
                     0);
    json_decref(b);
    settle();
    assert_true(rig_last(&env.rig)->ok);
    assert_int_equal(rig_last(&env.rig)->lft_entries, 0);
    b = shown();
    assert_string_equal(str(b, "state"), "accepted");
    assert_int_equal(json_array_size(at(b, "differences")), 0);
    json_decref(b);
    http_do(&h, env.rig.loop, env.sock, "GET", BASE LIVE "/export?format=lft&of=blueprint", NULL, NULL);
    assert_int_equal(h.status, 409);
    http_close(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_reroute),
        cmocka_unit_test(test_accept),
        cmocka_unit_test(test_strike),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_saved_and_set),
        cmocka_unit_test(test_replaced_and_silent),
        cmocka_unit_test(test_rated),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
