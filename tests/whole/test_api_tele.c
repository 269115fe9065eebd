// SPDX-License-Identifier: Apache-2.0
// Counters, history, congestion, health, alarms and silences over the API: a collector on a simulated fabric,
// in virtual time, with a history that was written before. Long: every case asks the one server that the
// first page makes.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "lib/err.h"
#include "telemetry/isolate.h"
#include "telemetry/telemetry.h"
#include "tests/whole/api_rig.h"

#define LEAF "leaf-su01-rail0"
#define HISTORY 360 // sweeps of ten seconds that were kept before: an hour

static struct own {
    struct series *series;
    struct tele *tele;
    struct isolate *isolate;
    unsigned drains, undrains;
    char dir[300]; // of the history
    bool swept;
    unsigned events;
    int64_t began_ms; // of the history
    struct buf text;
} own;

// --- a fabric with counters ---

static void on_event(void *arg, const char *kind, const char *severity, const char *subject, const char *text)
{
    (void)arg;
    (void)kind;
    (void)severity;
    (void)subject;
    (void)text;
    own.events++;
}

static void on_alarm_event(void *arg, const char *fabric, const char *kind, const char *severity,
                           const char *subject, const char *text, const char *data)
{
    (void)arg;
    (void)data;
    db_event_add(env.rig.db, &(struct db_event){.wall_ns = wall_now_ns(),
                                                .fabric = fabric,
                                                .kind = kind,
                                                .severity = severity,
                                                .subject = subject,
                                                .text = text,
                                                .data = ""});
}

static bool covers(void *arg, const char *focus, const char *fabric, uint64_t guid, uint8_t port)
{
    (void)arg;
    return env.api != NULL && api_focus_covers(env.api, focus, fabric, guid, port);
}

static void on_swept(void *arg)
{
    (void)arg;
    own.swept = true;
    isolate_feed(own.isolate, tele_health(own.tele), tele_table(own.tele), loop_now(env.rig.loop).ns,
                 wall_now_ns());
}

static int on_drain(void *arg, const struct isolate_place *p, const char *reason, struct err *e)
{
    (void)arg;
    (void)p;
    (void)reason;
    (void)e;
    own.drains++;
    return 0;
}

static int on_undrain(void *arg, const struct isolate_place *p, const char *by, struct err *e)
{
    (void)arg;
    (void)p;
    (void)by;
    (void)e;
    own.undrains++;
    return 0;
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

// Two ports of the leaf: port 1 sent 1000 words more each sweep than in the one before, port 2 has errors.
static void write_history(void)
{
    uint64_t guid = named(LEAF)->guid;
    uint64_t *value = calloc((size_t)TELE_COUNTERS * 2, sizeof(*value)), have[2];
    uint32_t one = series_id(own.series, guid, 1), two = series_id(own.series, guid, 2);
    assert_int_equal(one + two, 1);
    own.began_ms = wall_now_ns() / MONO_MS - HISTORY * 10000;
    for (int i = 0; i < HISTORY; i++) {
        value[one * TELE_COUNTERS + TELE_XMIT_DATA] += 250000000; // 100 MB/s
        value[two * TELE_COUNTERS + TELE_XMIT_DATA] += 25000000;
        value[two * TELE_COUNTERS + TELE_RCV_ERRORS] += i % 10 == 0;
        have[0] = have[1] = tele_group_counters(TELE_DATA) | tele_group_counters(TELE_ERRORS);
        if (i % 50 == 7)
            have[two] = 0;
        series_sweep(own.series, own.began_ms + i * 10000, value, have, 2);
        series_flush(own.series); // sweeps that come faster than they are written are left out
    }
    free(value);
}

static void sweeps(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        own.swept = false;
        if (!loop_run_until(env.rig.loop, &own.swept, 60 * MONO_S))
            fail_msg("no sweep of counters within a minute");
    }
}

static int setup(void **state)
{
    struct err e = {0};
    struct series_report rep;
    (void)state;
    env_up("rail-64");
    snprintf(own.dir, sizeof(own.dir), "%.200s/series", env.rig.dir);
    own.series =
        series_open(env.rig.loop, own.dir, &(struct series_opts){.columns = TELE_COUNTERS}, &rep, &e);
    if (own.series == NULL)
        fail_msg("%s", e.text);
    write_history();
    env.alarms = alarms_new(env.rig.loop, env.rig.db,
                            &(struct alarms_callbacks){.event = on_alarm_event, .covers = covers});
    struct tele_opts o = {.fabric = "live", .interval_ns = 10 * MONO_S, .per_device = 4};
    struct tele_callbacks cb = {.event = on_event, .swept = on_swept};
    own.tele = tele_new(env.rig.loop, env.rig.engine, own.series, env.alarms, &o, &cb);
    tele_fabric(own.tele, sm_fabric(env.rig.sm), sm_tables(env.rig.sm), NULL);
    struct isolate_opts io;
    isolate_opts_default(&io);
    io.mode = ISOLATE_PROPOSE;
    own.isolate = isolate_new(env.rig.db, "live", &io,
                              &(struct isolate_callbacks){.drain = on_drain, .undrain = on_undrain});
    env.fabric[0].tele = own.tele;
    env.fabric[0].isolate = own.isolate;
    env.fabric[0].series = own.series;
    env.fabric[0].series_dir = own.dir;
    env_serve();
    sweeps(3);
    return 0;
}

static void remove_all(const char *dir)
{
    char command[400];
    snprintf(command, sizeof(command), "rm -rf '%s'", dir);
    if (system(command) != 0)
        print_message("%s stays\n", dir);
}

static int teardown(void **state)
{
    (void)state;
    env_down();
    mad_engine_free(env.rig.engine); // no answer comes any more
    env.rig.engine = NULL;
    tele_free(own.tele);
    isolate_free(own.isolate);
    alarms_free(env.alarms);
    series_close(own.series);
    remove_all(own.dir);
    rig_done(&env.rig);
    buf_done(&own.text);
    return 0;
}

// --- answers ---

static double real(const json_t *o, const char *key)
{
    return json_number_value(at(o, key));
}

// GET below the live fabric, as the document says.
static json_t *get(const char *below)
{
    char path[3000], known[200];
    snprintf(path, sizeof(path), LIVE "%s", below);
    snprintf(known, sizeof(known), "/fabrics/{f}%.*s", (int)strcspn(below, "?"), below);
    json_t *v = call("GET", path, NULL, 200);
    openapi_check(env.doc, schema_of(known, "get"), v, below);
    return v;
}

static void refused(const char *path, int status, const char *why)
{
    refused_call("GET", path, NULL, status, why);
}

static json_t *first(const json_t *v)
{
    json_t *x = json_array_get(at(v, "items"), 0);
    assert_non_null(x);
    return x;
}

static size_t count(const json_t *v)
{
    return json_array_size(at(v, "items"));
}

// --- counters ---

static void test_known(void **state)
{
    json_t *v = call("GET", "/counters", NULL, 200);
    (void)state;
    openapi_check(env.doc, schema_of("/counters", "get"), v, "/counters");
    assert_int_equal(count(v), TELE_COUNTERS);
    assert_string_equal(str(first(v), "name"), "xmit_data");
    assert_string_equal(str(first(v), "unit"), "bytes");
    json_decref(v);
}

static void test_counters(void **state)
{
    uint64_t guid = named(LEAF)->guid, spine = named("spine-01")->guid;
    (void)state;
    sim_counter_add(env.rig.sim, guid, 33, SIM_XMIT_DATA, 25000000);
    sim_counter_add(env.rig.sim, guid, 33, SIM_RCV_ERRORS, 3);
    sim_counter_add(env.rig.sim, guid, 33, SIM_XMIT_WAIT, 5000000000);
    sweeps(1);
    json_t *v = get("/counters?node=" LEAF "/33"), *x = first(v);
    assert_int_equal(count(v), 1);
    assert_string_equal(str(x, "name"), LEAF);
    assert_int_equal(num(x, "port"), 33);
    assert_string_equal(str(at(x, "peer"), "name"), "spine-01");
    assert_string_equal(str(x, "pma"), "read");
    assert_string_equal(str(x, "kind"), "trunk");
    assert_int_equal(num(at(x, "value"), "rcv_errors"), 3);
    assert_true(num(at(x, "value"), "xmit_data") >= 100000000);
    assert_true(real(at(x, "rate"), "xmit_data") > 5e6 && real(at(x, "rate"), "xmit_data") < 2e7);
    assert_true(real(x, "xmit_bps") > 5e6);
    assert_true(real(x, "held") > 0.05);
    assert_true(num(x, "errors") >= 3);
    assert_true(json_is_string(at(x, "sampled_at")));
    json_decref(v);
    // The far end, by the other spelling and by GUID.
    char path[100];
    snprintf(path, sizeof(path), "/counters?node=0x%016llx%%5B1%%5D", (unsigned long long)spine);
    v = get(path);
    assert_string_equal(str(first(v), "name"), "spine-01");
    json_decref(v);
    v = get("/counters?node=" LEAF);
    assert_int_equal(count(v), 8 + 32); // those that are connected
    json_decref(v);
}

static void test_walk(void **state)
{
    size_t all = 0, pages = 0;
    char path[100] = "/counters?limit=7";
    json_int_t total = 0;
    (void)state;
    for (;;) {
        json_t *v = get(path);
        assert_true(count(v) <= 7);
        all += count(v);
        total = num(v, "total");
        assert_true(json_is_true(at(v, "complete")));
        bool more = json_is_string(at(v, "next"));
        snprintf(path, sizeof(path), "/counters?limit=7&cursor=%s", str(v, "next"));
        json_decref(v);
        pages++;
        if (!more)
            break;
    }
    assert_int_equal(all, total);
    assert_int_equal(all, tele_table(own.tele)->num);
    assert_true(pages > 10);
}

static void test_focus(void **state)
{
    (void)state;
    json_t *v = get("/counters?focus=errors%3E2%20and%20kind%3Dtrunk");
    assert_int_equal(count(v), 1);
    assert_int_equal(num(first(v), "port"), 33);
    json_decref(v);
    v = get("/counters?focus=role%3Dhost%20rail%3D3");
    assert_int_equal(count(v), 8);
    json_decref(v);
    v = get("/counters?focus=pma!%3Dread");
    assert_int_equal(count(v), 0);
    json_decref(v);
    v = get("/counters?focus=value.rcv_errors%3D3");
    assert_int_equal(count(v), 1);
    json_decref(v);
    v = get("/counters?focus=peer.name%3Dspine-01%20" LEAF);
    assert_int_equal(count(v), 8);
    json_decref(v);
    // Bare names mean the same in every list.
    static const char *const named_[][2] = {{LEAF, "40"},
                                            {LEAF "/33", "1"},
                                            {LEAF "%5B33%5D", "1"},
                                            {"gpu-0003:2", "1"},
                                            {"gpu-0003:2/1", "1"},
                                            {"gpu-0003", "8"},
                                            {"gpu-0003%20tier%3Dnone%20rail%3D2", "1"}};
    for (size_t i = 0; i < sizeof(named_) / sizeof(named_[0]); i++) {
        char path[100];
        snprintf(path, sizeof(path), "/counters?focus=%s", named_[i][0]);
        v = get(path);
        if (count(v) != (size_t)atoi(named_[i][1]))
            fail_msg("%s: %zu", path, count(v));
        json_decref(v);
    }
    v = get("/counters?focus=" LEAF "%20tier%3Dleaf");
    assert_int_equal(count(v), 40);
    json_decref(v);
    v = get("/counters?focus=kind%3Dtrunk%20held%3D0%25..100%25");
    assert_true(count(v) > 0);
    json_decref(v);
    refused(LIVE "/counters?node=" LEAF "/65", 404, "no port 65; it has 1 to 64");
    refused(LIVE "/counters?focus=" LEAF "/65", 404, "no port 65; it has 1 to 64");
    refused(LIVE "/counters?focus=leaf-nope", 404, "no node, host or port is called so");
    refused(LIVE "/counters?focus=rail%3D3%20rail", 404, "names that contain it: \"leaf-su01-rail0\"");
    refused(LIVE "/counters?focus=gpu-0003:9", 404, "no node, host or port");
    refused(LIVE "/counters?focus=held%3E5", 400, "write 5% for a percentage");
    refused(LIVE "/counters?focus=tier%3Dfoot", 400, "tier is a number or one of: leaf, spine, core");
    refused(LIVE "/counters?focus=role%3Dleef", 400, "role is never \"leef\"; it is one of: ");
    refused(LIVE "/counters?focus=health%3Dbad", 400, "it is one of: unknown, healthy,");
    refused(LIVE "/counters?focus=rate.rcv_erors%3E0", 400, "did you mean \"rate.rcv_errors\"?");
    refused(LIVE "/counters?focus=(", 400, "missing");
}

// Other lists know it too.
static void test_focus_elsewhere(void **state)
{
    (void)state;
    json_t *v = get("/nodes?focus=role%3Dleaf%20and%20rail%3C3");
    assert_int_equal(count(v), 3);
    assert_int_equal(num(v, "total"), 3);
    json_decref(v);
    v = get("/nodes?focus=gpu-000*%20rail%3D1&limit=3");
    assert_int_equal(count(v), 3);
    assert_int_equal(num(v, "total"), 8);
    assert_true(json_is_string(at(v, "next")));
    json_decref(v);
    v = get("/ports?node=" LEAF "&focus=peer.name~%5Espine");
    assert_int_equal(count(v), 32);
    json_decref(v);
    v = get("/ports?focus=state%3Dactive%20peer.name%3Dspine-02");
    assert_int_equal(count(v), 64);
    json_decref(v);
    v = get("/links?focus=kind%3Dhost%20z.name%3D" LEAF);
    assert_int_equal(count(v), 8);
    json_decref(v);
    refused(LIVE "/links?focus=knd%3Dhost", 400, "did you mean \"kind\"?");
    v = get("/links?away=1"); // of the blueprint, none is
    assert_int_equal(count(v), 0);
    json_decref(v);
    refused(LIVE "/links?away=1&cursor=x", 400, "cursor");
    refused(LIVE "/ports?focus=peer%3Dx", 400, "no field");
}

static void test_bad(void **state)
{
    (void)state;
    refused(LIVE "/counters?node=nobody/1", 404, "nobody");
    refused(LIVE "/counters?cursor=x", 400, "cursor");
    refused(LIVE "/counters?limit=100000000", 400, "whole number from 1 to");
    refused("/fabrics/file/counters", 409, "is a file");
    refused(LIVE "/counters?bogus=1", 400, "unknown parameter");
}

// --- top ---

static void test_top(void **state)
{
    uint64_t guid = named(LEAF)->guid;
    (void)state;
    sim_counter_add(env.rig.sim, guid, 40, SIM_XMIT_WAIT, 9000000000);
    sim_counter_add(env.rig.sim, guid, 41, SIM_XMIT_WAIT, 1000000000);
    sim_counter_add(env.rig.sim, guid, 42, SIM_SYMBOL_ERRORS, 5000);
    sweeps(1);
    json_t *v = get("/top"), *x = first(v);
    assert_int_equal(num(x, "port"), 40);
    assert_int_equal(num(x, "rank"), 1);
    assert_string_equal(str(x, "by"), "held");
    assert_string_equal(str(x, "unit"), "share");
    assert_true(real(x, "value") >= real(json_array_get(at(v, "items"), 1), "value"));
    assert_int_equal(num(json_array_get(at(v, "items"), 1), "port"), 41);
    json_decref(v);
    v = get("/top?by=errors&n=1");
    assert_int_equal(count(v), 1);
    assert_int_equal(num(first(v), "port"), 42);
    assert_string_equal(str(first(v), "most"), "symbol_errors");
    // What was summed up when it was read is what the counters say now.
    assert_true(fabs(real(first(v), "value") - real(first(v), "errors_per_hour")) < 1e-3);
    assert_true(fabs(real(first(v), "value") - 5000 * 360) < 1);
    json_decref(v);
    v = get("/top?by=symbol_errors&n=1000");
    assert_int_equal(count(v), 1);
    assert_string_equal(str(first(v), "unit"), "events/s");
    json_decref(v);
    static const char *const by[] = {"lost", "used", "xmit", "rcv", "score"};
    for (size_t i = 0; i < sizeof(by) / sizeof(by[0]); i++) {
        char path[60];
        snprintf(path, sizeof(path), "/top?by=%s&n=3", by[i]);
        json_decref(get(path));
    }
    refused(LIVE "/top?by=heldd", 400, "nothing is sorted by");
    refused(LIVE "/top?by=rcv_error", 400, "did you mean \"rcv_errors\"?");
    refused(LIVE "/top?n=1001", 400, "from 1 to 1000");
    refused(LIVE "/top?n=0", 400, "from 1 to 1000");
}

// --- history ---

// Values of a port that is known: a sweep each ten seconds, 100 MB/s.
static void test_history(void **state)
{
    (void)state;
    json_t *v = get("/counters/history?port=" LEAF "/1&counter=xmit_data&from=2h&step=0"), *x;
    size_t i, rates = 0;
    assert_true(count(v) >= HISTORY);
    json_array_foreach(at(v, "items"), i, x)
    {
        assert_string_equal(str(x, "name"), LEAF);
        assert_string_equal(str(x, "counter"), "xmit_data");
        if (i < HISTORY)
            assert_int_equal(num(x, "value"), (json_int_t)(i + 1) * 1000000000);
        if (i > 0 && i < HISTORY) {
            assert_true(real(x, "rate") > 0.999e8 && real(x, "rate") < 1.001e8);
            rates++;
        }
    }
    assert_int_equal(rates, HISTORY - 1);
    json_decref(v);

    v = get("/counters/history?port=" LEAF "/1," LEAF "%5B2%5D&counter=xmit_data,rcv_errors&from=1h&step=5m");
    assert_true(count(v) >= 4 * 10 && count(v) <= 4 * 14);
    json_decref(v);
    // Nobody has said which step: one that suits 40 ports and all counters.
    v = get("/counters/history?port=" LEAF "&counter=all&from=1h");
    assert_true(count(v) > 100);
    json_decref(v);
    v = get("/counters/history?port=" LEAF "/1&from=1h&peaks=1&step=1m&counter=xmit_data");
    assert_true(count(v) >= 55 && count(v) <= 63);
    json_decref(v);
}

static void test_together(void **state)
{
    (void)state;
    static const char *const by[] = {"rail", "su", "tier", "switch"};
    for (size_t i = 0; i < 4; i++) {
        char path[200];
        snprintf(path, sizeof(path), "/counters/history?by=%s&counter=xmit_data&from=50m&to=10m&step=5m",
                 by[i]);
        json_t *v = get(path), *x = first(v);
        assert_int_equal(num(x, "ports"), 2);
        assert_true(real(x, "sum") > 1.09e8 && real(x, "sum") < 1.11e8);
        assert_true(real(x, "mean") * 2 - real(x, "sum") < 1 && real(x, "max") > 0.99e8);
        assert_string_equal(str(x, "group"), i == 0 ? "rail 0" : i == 1 ? "su 0" : i == 2 ? "tier 0" : LEAF);
        json_decref(v);
    }
}

static void test_top_before(void **state)
{
    (void)state;
    json_t *v = get("/top?by=xmit&from=50m&to=10m&n=2");
    assert_int_equal(count(v), 2);
    assert_int_equal(num(first(v), "port"), 1);
    assert_true(real(first(v), "value") > 0.99e8 && real(first(v), "value") < 1.01e8);
    json_decref(v);
    v = get("/top?by=errors&from=50m&to=10m");
    assert_int_equal(count(v), 1);
    assert_int_equal(num(first(v), "port"), 2);
    json_decref(v);
    refused(LIVE "/top?by=score&from=1h", 400, "of now");
    refused(LIVE "/top?by=errors&from=100000000d&to=9999999d", 400, "must be a time");
}

static void test_history_bad(void **state)
{
    (void)state;
#define H LIVE "/counters/history"
    refused(H, 400, "which ports?");
    refused(H "?port=" LEAF "/1&counter=xmit_dta", 400, "did you mean \"xmit_data\"?");
    refused(H "?port=" LEAF "/1&counter=PortXmitDta", 400, "no counter");
    refused(H "?port=" LEAF "/1&counter=,", 400, "names none");
    refused(H "?port=" LEAF "/200", 404, "no counters of it");
    refused(H "?port=nobody/1", 404, "nobody");
    refused(H "?port=0x1234567812345678", 404, "no counters of this node");
    refused(H "?port=" LEAF "/1&from=1h&to=2h", 400, "the time is empty");
    refused(H "?port=" LEAF "/1&from=2200-01-01T00:00:00Z", 400, "the time is empty");
    refused(H "?port=" LEAF "/1&from=yesterday", 400, "must be a time");
    refused(H "?port=" LEAF "/1&step=often", 400, "must be a time such as");
    refused(H "?port=" LEAF "&counter=all&from=1h&step=0", 400, "take a longer step");
    refused(H "?port=" LEAF "/1&counter=xmit_data&from=1970-01-02T00:00:00Z&step=1s", 400, "would do");
    refused(H "?by=rails", 400, "must be one of rail, su, tier, switch");
    refused(H "?by=switch&from=365d&step=10s", 400, "take a longer step");
    refused("/fabrics/file/counters/history?by=rail", 409, "is a file");
    // A time of which nothing is kept is empty, and no error.
    json_t *v = get("/counters/history?port=" LEAF "/1&from=2001-01-01T00:00:00Z&to=2001-01-02T00:00:00Z");
    assert_int_equal(count(v), 0);
    json_decref(v);
}

// From the host at port 1 of the leaf to that at port 2, between fifty and ten minutes ago.
static void test_route_past(void **state)
{
    (void)state;
    const struct fabric *f = sm_fabric(env.rig.sm);
    const struct node *leaf = named(LEAF);
    const struct port *a = fabric_port(f, fabric_port(f, fabric_port_at(f, leaf, 1))->peer),
                      *z = fabric_port(f, fabric_port(f, fabric_port_at(f, leaf, 2))->peer);
    double gbps = port_rate_mbps(&z->a) / 1000.0;
    char path[300], gid[80];
    snprintf(gid, sizeof(gid), "fe80::%x:%x:%x:%x", (unsigned)(a->guid >> 48),
             (unsigned)(a->guid >> 32 & 0xffff), (unsigned)(a->guid >> 16 & 0xffff),
             (unsigned)(a->guid & 0xffff));
    snprintf(path, sizeof(path), "/routes/past?from=%s&to=%u&since=50m&until=10m", gid, z->a.lid);
    json_t *v = get(path), *one, *two;
    assert_true(json_is_true(at(v, "reached")));
    assert_int_equal(json_array_size(at(v, "links")), 2);
    one = json_array_get(at(v, "links"), 0);
    two = json_array_get(at(v, "links"), 1);
    assert_string_equal(str(at(one, "in"), "name"), LEAF);
    assert_int_equal(num(at(one, "in"), "port"), 1);
    assert_int_equal(num(at(two, "out"), "port"), 2);
    assert_int_equal(num(one, "errors"), 0);
    assert_int_equal(num(two, "errors"), 24); // one in each ten of 240 sweeps
    assert_string_equal(str(two, "most"), "rcv_errors at " LEAF "/2");
    assert_true(fabs(real(two, "used") - 0.08 / gbps) < 0.001 / gbps); // 10 MB/s
    assert_true(json_is_null(at(one, "used")));                        // nobody had read the host then
    assert_true(json_is_false(at(two, "complete")) && json_is_false(at(v, "complete")));
    assert_non_null(strstr(str(v, "text"), "link 2 (" LEAF "/2 to "));
    assert_non_null(strstr(str(v, "text"), "had 24 errors, most of them rcv_errors at " LEAF "/2"));
    assert_null(strstr(str(v, "text"), "link 1"));
    json_decref(v);

    // Long before anything was kept.
    snprintf(path, sizeof(path),
             "/routes/past?from=%u&to=%u&since=2001-01-01T00:00:00Z&until=2001-01-02T00:00:00Z", a->a.lid,
             z->a.lid);
    v = get(path);
    assert_non_null(strstr(str(v, "text"), "nothing is known against a link of this path; history does not"));
    json_decref(v);
    refused(LIVE "/routes/past?from=1&to=2&since=10m&until=50m", 400, "the time is empty");
    refused(LIVE "/routes/past?from=1&to=nobody", 404, "nobody");
    refused(LIVE "/routes/past?from=fe80::1&to=2", 404, "fe80::1");
    refused(LIVE "/routes/past?from=1&to=2&since=soon", 400, "must be a time");
    refused(LIVE "/routes/past?from=1", 400, "to");
    refused(LIVE "/counters/history?port=" LEAF "/1&focus=rail%3D0", 400, "with \"by\"");
    refused(LIVE "/counters/history?by=rail&focus=leaf-nope", 404, "is called so");
    refused(LIVE "/top?focus=leaf-nope", 404, "is called so");
    v = get("/counters/history?by=switch&focus=" LEAF "&from=1h&step=10m");
    assert_true(count(v) > 0);
    size_t i;
    json_t *x;
    json_array_foreach(at(v, "items"), i, x) assert_string_equal(str(x, "group"), LEAF);
    json_decref(v);
    refused("/fabrics/file/routes/past?from=core-001&to=core-002", 409, "no routes in force");
}

// The port of the manager is lost: what was kept is still there.
static void test_history_without(void **state)
{
    (void)state;
    env.fabric[0].tele = NULL;
    json_t *v = get("/counters/history?port=" LEAF "/1&counter=xmit_data&from=1h&step=5m");
    assert_true(count(v) >= 10);
    json_decref(v);
    refused(LIVE "/counters/history?port=" LEAF, 404, "no counters");
    refused(LIVE "/counters/history?by=rail", 409, "collected");
    refused(LIVE "/counters", 409, "collected");
    v = call("GET", LIVE, NULL, 200);
    assert_true(json_is_null(at(v, "telemetry")));
    json_decref(v);
    env.fabric[0].tele = own.tele;
}

static void test_csv(void **state)
{
    struct http h;
    (void)state;
    http_do(&h, env.rig.loop, env.sock, "GET",
            BASE LIVE "/counters/history?port=" LEAF "/1&counter=xmit_data&from=1h&step=5m&format=csv", NULL,
            NULL);
    assert_int_equal(h.status, 200);
    assert_non_null(
        strstr(h.body, "at,guid,name,port,group,counter,unit,value,rate,peak,ports,sum,mean,max\r\n"));
    assert_non_null(strstr(h.body, "," LEAF ",1,,xmit_data,bytes,"));
    http_close(&h);
    http_do(&h, env.rig.loop, env.sock, "HEAD", BASE LIVE "/counters/history?port=" LEAF "/1", NULL, NULL);
    assert_int_equal(h.status, 200);
    http_close(&h);
}

// --- by virtual lane ---

static void test_lanes(void **state)
{
    (void)state;
    json_t *v = get("/counters/vl-waits?port=" LEAF "/33");
    assert_int_equal(json_array_size(at(v, "lanes")), 16);
    assert_string_equal(str(v, "name"), LEAF);
    json_decref(v);
    refused(LIVE "/counters/vl-waits", 400, "is missing");
    refused(LIVE "/counters/vl-waits?port=" LEAF, 400, "which port?");
    refused(LIVE "/counters/vl-waits?port=" LEAF "/200", 404, "no such port");
}

// --- congestion, health, unread ---

static void test_shapes(void **state)
{
    (void)state;
    json_t *v = get("/congestion");
    assert_true(json_is_array(at(v, "trees")));
    assert_int_equal(json_array_size(at(v, "rails")), 8);
    json_decref(v);
    json_decref(get("/congestion?focus=rail%3D3"));
    refused(LIVE "/congestion?focus=rial%3D3", 400, "did you mean \"rail\"?");
    refused(LIVE "/congestion?focus=gpu-9999", 404, "no node, host or port is called so");
    v = get("/health?all=1&focus=" LEAF);
    assert_int_equal(count(v), 40);
    json_decref(v);
    v = get("/health?all=1&focus=role%3Dspine%20name%3Dspine-02"); // the far end
    assert_int_equal(count(v), 64);
    json_decref(v);
    v = get("/health?all=1&focus=gpu-0003:2");
    assert_int_equal(count(v), 1);
    json_decref(v);
    v = get("/health?all=1&focus=gpu-0003");
    assert_int_equal(count(v), 8);
    json_decref(v);
    v = get("/health?all=1&focus=" LEAF "/33");
    assert_int_equal(count(v), 1);
    json_decref(v);
    refused(LIVE "/health?focus=leaf-nope", 404, "no node, host or port is called so");
    refused(LIVE "/health?focus=rail%3D3%20rail", 404, "names that contain it");
    refused(LIVE "/health?focus=state%3Dill", 400, "it is one of: ");
    json_decref(get("/health?all=1&limit=5"));
    v = get("/health?all=1");
    assert_int_equal(count(v), sm_fabric(env.rig.sm)->num_links);
    json_decref(v);
    json_decref(get("/health?focus=state%3Dfailing%20or%20ber%3E1e-9"));
    refused(LIVE "/health?state=ill", 400, "must be one of");
    v = get("/unread");
    assert_int_equal(count(v), 0);
    json_decref(v);
    v = call("GET", LIVE, NULL, 200);
    json_t *t = at(v, "telemetry");
    assert_int_equal(num(t, "ports"), num(t, "read"));
    assert_true(num(t, "sweeps") >= 3);
    json_decref(v);
    v = call("GET", "/db", NULL, 200);
    openapi_check(env.doc, schema_of("/db", "get"), v, "/db");
    assert_int_equal(count(v), 2);
    json_decref(v);
}

// A device whose performance agent is silent costs only itself.
static void test_silent(void **state)
{
    uint64_t guid = named("gpu-0003 mlx5_2")->guid;
    (void)state;
    sim_node_kill(env.rig.sim, guid, true);
    sweeps(4);
    json_t *v = get("/unread");
    assert_int_equal(count(v), 1);
    assert_string_equal(str(first(v), "name"), "gpu-0003 mlx5_2");
    assert_string_equal(str(first(v), "why"), "no-answer");
    json_decref(v);
    v = get("/counters?focus=pma%3Dno-answer");
    assert_int_equal(count(v), 1);
    assert_true(json_is_false(at(v, "complete")));
    assert_true(json_is_null(at(at(first(v), "value"), "xmit_data")));
    json_decref(v);
    sim_node_kill(env.rig.sim, guid, false);
    sweeps(3);
    v = get("/unread");
    assert_int_equal(count(v), 0);
    json_decref(v);
}

// --- alarms ---

static void raise(const char *rule, const char *name, unsigned port)
{
    const struct node *n = named(name);
    char subject[60];
    snprintf(subject, sizeof(subject), "0x%016llx/%u", (unsigned long long)n->guid, port);
    alarm_raise(env.alarms, &(struct alarm_report){.fabric = "live",
                                                   .rule = rule,
                                                   .subject = subject,
                                                   .severity = ALARM_MAJOR,
                                                   .place = name,
                                                   .reason = "11 errors, limit 3",
                                                   .evidence = "{\"errors\": 11}",
                                                   .node_guid = {n->guid},
                                                   .port = {(uint8_t)port}});
    rig_run(&env.rig, 3 * MONO_S);
}

static void sweep_anew(void)
{
    sm_resweep(env.rig.sm, "test", false);
    rig_sweeps(&env.rig, 1, 60);
    tele_fabric(own.tele, sm_fabric(env.rig.sm), sm_tables(env.rig.sm), NULL);
    api_changed(env.api, "live");
    sweeps(2);
}

// A switch dies: what the fabric should have is still said, and its last hour can be asked for by its name.
static void test_away(void **state)
{
    const struct node *n = named("spine-02");
    uint64_t guid = n->guid;
    unsigned links = 0;
    (void)state;
    for (unsigned i = 1; i <= n->num_ports; i++)
        links += port_valid(sm_fabric(env.rig.sm)->port[n->first_port + i].peer);
    json_t *v = get("");
    assert_int_equal(num(at(v, "meant"), "links"), num(v, "links"));
    assert_int_equal(num(at(v, "meant"), "switches"), num(v, "switches"));
    json_decref(v);
    sim_node_kill(env.rig.sim, guid, true);
    sweep_anew();
    v = get("");
    assert_int_equal(num(at(v, "meant"), "links"), num(v, "links") + links);
    assert_int_equal(num(at(v, "meant"), "switches"), num(v, "switches") + 1);
    assert_int_equal(num(at(v, "meant"), "cas"), num(v, "cas"));
    json_decref(v);
    json_decref(get("/counters/history?port=spine-02/1&counter=xmit_data&from=1h")); // 200, as before
    v = get("/counters/history?port=spine-02/200&by=switch&counter=xmit_data&from=1m&step=10s");
    assert_int_equal(count(v), 0); // it never had such a port
    json_decref(v);
    refused(LIVE "/counters/history?port=spine-0/1", 404, "spine-0");
    sim_node_kill(env.rig.sim, guid, false);
    sweep_anew();
}

static size_t alarms_that(const char *focus)
{
    char path[200];
    snprintf(path, sizeof(path), "/alarms?active=1&focus=%s", focus);
    json_t *v = call("GET", path, NULL, 200);
    size_t n = count(v);
    json_decref(v);
    return n;
}

// The code of a finding names its alarm, and is known when there is none.
static void test_codes(void **state)
{
    (void)state;
    assert_int_equal(alarms_that("set-ignored"), 0);
    alarm_raise(env.alarms, &(struct alarm_report){.fabric = "live",
                                                   .rule = "S08",
                                                   .subject = "set-ignored " LEAF "[3]",
                                                   .severity = ALARM_MINOR,
                                                   .place = LEAF "[3]",
                                                   .reason = "a setting is not kept",
                                                   .evidence = "{}",
                                                   .node_guid = {named(LEAF)->guid},
                                                   .port = {3}});
    rig_run(&env.rig, 3 * MONO_S);
    assert_int_equal(alarms_that("set-ignored"), 1);
    assert_int_equal(alarms_that("set-failed"), 0);
    alarm_clear(env.alarms, "live", "S08", "set-ignored " LEAF "[3]");
    rig_run(&env.rig, 11 * 60 * MONO_S); // it has stood for long enough
    assert_int_equal(alarms_that("set-ignored"), 0);
    refused("/alarms?focus=set-ignord", 404, "no node, host or port is called so");
}

static void test_alarms(void **state)
{
    char path[100];
    (void)state;
    raise("L14", LEAF, 50);
    json_t *v = call("GET", "/alarms?rule=L14", NULL, 200), *x = first(v);
    openapi_check(env.doc, schema_of("/alarms", "get"), v, "/alarms");
    assert_int_equal(count(v), 1);
    assert_string_equal(str(x, "reason"), "11 errors, limit 3");
    assert_int_equal(num(at(x, "evidence"), "errors"), 11);
    assert_string_equal(str(json_array_get(at(x, "ends"), 0), "name"), LEAF);
    json_int_t id = num(x, "id");
    json_decref(v);

    snprintf(path, sizeof(path), "/alarms/%lld", (long long)id);
    v = call("GET", path, NULL, 200);
    openapi_check(env.doc, schema_of("/alarms/{id}", "get"), v, path);
    assert_true(str(v, "raised")[0] != 0);
    json_decref(v);
    v = get("/counters?node=" LEAF "/50");
    assert_int_equal(num(first(v), "alarm"), id);
    assert_string_equal(str(first(v), "alarm_rule"), "L14");
    json_decref(v);

    snprintf(path, sizeof(path), "/alarms/%lld/ack", (long long)id);
    v = call("POST", path, "{\"note\": \"cable ordered\"}", 200);
    assert_true(json_is_true(at(v, "acked")));
    assert_string_equal(str(v, "ack_note"), "cable ordered");
    json_decref(v);
    v = call("GET", "/alarms?focus=acked%3Dyes", NULL, 200);
    assert_int_equal(count(v), 1);
    json_decref(v);
    static const char *const hits[] = {LEAF,
                                       LEAF "/50",
                                       "L14",
                                       "rule%3DL14",
                                       "role%3Dleaf%20rail%3D0",
                                       "tier%3Dleaf",
                                       "node%3D" LEAF,
                                       "name%3D" LEAF "%20port%3D50",
                                       "severity%3Dmajor"};
    static const char *const misses[] = {LEAF "/51", "spine-01", "gpu-0003:2", "rail%3D1", "rule%3DL06"};
    for (size_t i = 0; i < sizeof(hits) / sizeof(hits[0]); i++) {
        snprintf(path, sizeof(path), "/alarms?focus=(%s)%%20rule%%3DL14", hits[i]);
        v = call("GET", path, NULL, 200);
        if (count(v) != 1)
            fail_msg("%s: %zu", path, count(v));
        json_decref(v);
    }
    for (size_t i = 0; i < sizeof(misses) / sizeof(misses[0]); i++) {
        snprintf(path, sizeof(path), "/alarms?focus=(%s)%%20rule%%3DL14", misses[i]);
        v = call("GET", path, NULL, 200);
        if (count(v) != 0)
            fail_msg("%s: %zu", path, count(v));
        json_decref(v);
    }
    snprintf(path, sizeof(path), "/alarms/%lld/ack", (long long)id);
    refused("/alarms?focus=rule%3DL6", 400, "rule is never \"L6\"; it is one of: L01");
    refused("/alarms?focus=severity%3Dmjor", 400, "info, minor, major, critical");
    refused("/alarms?focus=1", 404, "no node, host or port is called so");
    refused("/alarms?focus=gpu-9999:3", 404, "no node, host or port is called so");
    refused("/alarms/123456", 404, "no alarm");
    refused("/alarms/x", 404, "whole numbers");
    refused("/alarms?rule=L99", 400, "no rule");
    refused("/alarms?focus=colour%3Dred", 400, "no field");
    refused("/alarms?severity=grave", 400, "must be one of");
    json_decref(call("POST", "/alarms/123456/ack", "{}", 404));
    json_decref(call("POST", path, "{\"remark\": 1}", 400));
}

static void bad_silence(const char *body, const char *why)
{
    json_t *v = call("POST", "/silences", body, 400);
    if (strstr(str(v, "detail"), why) == NULL)
        fail_msg("%s: \"%s\" is not in: %s", body, why, str(v, "detail"));
    json_decref(v);
}

static void test_silences(void **state)
{
    char path[100];
    (void)state;
    raise("L14", LEAF, 51);
    raise("L14", "gpu-0002 mlx5_1", 1);
    json_t *v =
        call("POST", "/silences",
             "{\"focus\": \"role=leaf and port=51\", \"for\": \"2h\", \"reason\": \"rack 12\", \"owner\": "
             "\"anna\"}",
             200);
    openapi_check(env.doc, schema_of("/silences", "post"), v, "/silences");
    assert_int_equal(num(v, "covers"), 1);
    assert_string_equal(str(v, "owner"), "anna");
    assert_int_equal(num(v, "ports"), 8); // one of each leaf
    assert_string_equal(str(v, "text"), "role=leaf and port=51");
    json_int_t id = num(v, "id");
    json_decref(v);
    v = call("GET", "/alarms?silenced=1", NULL, 200);
    assert_int_equal(count(v), 1);
    assert_int_equal(num(first(v), "silence"), id);
    json_decref(v);
    v = call("GET", "/silences", NULL, 200);
    openapi_check(env.doc, schema_of("/silences", "get"), v, "/silences");
    assert_int_equal(count(v), 1);
    json_decref(v);
    snprintf(path, sizeof(path), "/silences/%lld", (long long)id);
    json_decref(call("DELETE", path, NULL, 200));
    json_decref(call("DELETE", path, NULL, 404));
    v = call("GET", "/alarms?silenced=1", NULL, 200);
    assert_int_equal(count(v), 0);
    json_decref(v);

    // Identities become names; what is nowhere is taken, and said to be nothing.
    char body[300];
    snprintf(body, sizeof(body),
             "{\"focus\": \"guid=0x%016llx port=51 or guid=0x%016llx or guid=0x0000000000000001\", \"for\": "
             "\"2h\", \"reason\": \"x\"}",
             (unsigned long long)named(LEAF)->guid, (unsigned long long)named("spine-01")->guid);
    v = call("POST", "/silences", body, 200);
    assert_string_equal(str(v, "text"), LEAF "/51 or spine-01 or guid=0x0000000000000001");
    assert_true(num(v, "ports") >= 65); // the file has devices with these GUIDs, too
    snprintf(path, sizeof(path), "/silences/%lld", (long long)num(v, "id"));
    json_decref(call("DELETE", path, NULL, 200));
    json_decref(v);
    v = call("POST", "/silences", "{\"focus\": \"leaf-nope/3\", \"for\": \"2h\", \"reason\": \"x\"}", 200);
    assert_int_equal(num(v, "ports"), 0);
    snprintf(path, sizeof(path), "/silences/%lld", (long long)num(v, "id"));
    json_decref(call("DELETE", path, NULL, 200));
    json_decref(v);

    bad_silence("{\"reason\": \"x\"}", "needs an end");
    bad_silence("{\"reason\": \"x\", \"for\": \"2h\", \"until\": \"2200-01-01T00:00:00Z\"}", "needs an end");
    bad_silence("{\"reason\": \"x\", \"for\": \"soon\"}", "such as 30m");
    bad_silence("{\"reason\": \"x\", \"for\": \"213504d\"}", "36500d at most");
    bad_silence("{\"reason\": \"x\", \"for\": \"36500d\", \"from\": \"2250-01-01T00:00:00Z\"}", "2262");
    bad_silence("{\"reason\": \"x\", \"until\": \"2001-01-01T00:00:00Z\"}", "");
    bad_silence("{\"reason\": \"\", \"for\": \"2h\"}", "");
    bad_silence("{\"for\": \"2h\"}", "reason");
    bad_silence("{\"reason\": \"x\", \"for\": \"2h\", \"focus\": \"rial=3\"}", "did you mean \"rail\"?");
    bad_silence("{\"reason\": \"x\", \"for\": \"2h\", \"rule\": \"L99\"}", "no rule");
}

// What a focus of a silence means.
static void test_covers(void **state)
{
    uint64_t leaf = named(LEAF)->guid, gpu = named("gpu-0003 mlx5_2")->guid;
    (void)state;
    assert_true(api_focus_covers(env.api, LEAF, "live", leaf, 33));
    assert_true(api_focus_covers(env.api, LEAF "/33", "live", leaf, 33));
    assert_false(api_focus_covers(env.api, LEAF "/33", "live", leaf, 34));
    assert_true(api_focus_covers(env.api, "'" LEAF "[33]'", "live", leaf, 33));
    assert_true(api_focus_covers(env.api, "rail=0 kind=trunk", "live", leaf, 33));
    assert_false(api_focus_covers(env.api, "rail=0 kind=trunk", "live", leaf, 1));
    assert_true(api_focus_covers(env.api, "gpu-000*", "live", gpu, 1));
    assert_true(api_focus_covers(env.api, "type=ca and rail=2", "live", gpu, 1));
    assert_false(api_focus_covers(env.api, "type=ca and rail=2", "live", leaf, 1));
    assert_false(api_focus_covers(env.api, "(", "live", leaf, 1));
    assert_false(api_focus_covers(env.api, "role=leaf", "live", 0x77, 1)); // nobody knows it
}

// --- isolation ---

static json_t *post(const char *below, const char *body, int status)
{
    char path[200], known[200];
    snprintf(path, sizeof(path), LIVE "%s", below);
    snprintf(known, sizeof(known), "/fabrics/{f}%s", below);
    json_t *v = call("POST", path, body, status);
    if (status == 200)
        openapi_check(env.doc, schema_of(known, "post"), v, below);
    return v;
}

static void test_isolation(void **state)
{
    (void)state;
    json_t *v = get("/isolations");
    size_t before = count(v);
    json_decref(v);
    v = post("/isolations", "{\"port\": \"" LEAF "/60\", \"dry_run\": true}", 200);
    assert_string_equal(str(v, "verdict"), "yes");
    assert_string_equal(str(at(v, "z"), "name"), "spine-04");
    assert_int_equal(own.drains, 0);
    json_decref(v);
    v = post("/isolations", "{\"port\": \"gpu-0002 mlx5_1\", \"dry_run\": true}", 200);
    assert_string_equal(str(v, "verdict"), "host");
    assert_true(str(v, "why")[0] != 0);
    json_decref(v);
    v = post("/isolations", "{\"port\": \"" LEAF "/60\", \"reason\": \"bad optics\"}", 200);
    assert_string_equal(str(v, "state"), "isolated");
    assert_int_equal(own.drains, 1);
    json_decref(v);
    v = get("/isolations");
    assert_int_equal(count(v), before + 1);
    assert_string_equal(str(first(v), "state"), "isolated");
    json_decref(v);
    v = call("GET", LIVE, NULL, 200);
    assert_int_equal(num(at(v, "telemetry"), "isolated"), 1);
    assert_int_equal(num(at(v, "telemetry"), "isolation_cap"), 10);
    json_decref(v);
    json_decref(post("/isolations/release", "{\"port\": \"" LEAF "[60]\"}", 200));
    assert_int_equal(own.undrains, 1);
    json_decref(post("/isolations/release", "{\"port\": \"" LEAF "[60]\"}", 404));

    json_decref(post("/isolations/exclude",
                     "{\"port\": \"" LEAF "/61\", \"for\": \"2h\", \"reason\": \"watched\"}", 200));
    v = get("/isolations/exclusions");
    assert_int_equal(count(v), 1);
    assert_string_equal(str(at(first(v), "place"), "name"), LEAF);
    json_decref(v);
    v = post("/isolations", "{\"port\": \"" LEAF "/61\"}", 409);
    assert_non_null(strstr(str(v, "detail"), "anyway"));
    json_decref(v);
    json_decref(post("/isolations/include", "{\"port\": \"" LEAF "/61\"}", 200));
    json_decref(post("/isolations/include", "{\"port\": \"" LEAF "/61\"}", 404));
    json_decref(post("/isolations", "{\"port\": \"" LEAF "/200\", \"dry_run\": true}", 404));
    json_decref(post("/isolations", "{\"port\": \"" LEAF "\"}", 400));
    json_decref(post("/isolations", "{}", 400));
    json_decref(
        post("/isolations/exclude", "{\"port\": \"" LEAF "\", \"for\": \"x\", \"reason\": \"y\"}", 400));
    json_decref(post("/isolations/exclude",
                     "{\"port\": \"" LEAF "\", \"for\": \"1000000d\", \"reason\": \"y\"}", 400));
    json_decref(post("/isolations/exclude", "{\"port\": \"" LEAF "\", \"reason\": \"y\"}", 400));
    json_decref(call("GET", "/fabrics/file/isolations", NULL, 409));
}

static void test_db_check(void **state)
{
    (void)state;
    json_t *v = call("POST", "/db/check", NULL, 202);
    char path[60];
    snprintf(path, sizeof(path), "/jobs/%s", str(v, "id"));
    json_decref(v);
    rig_run(&env.rig, MONO_S); // time stands still while a worker runs
    v = call("GET", path, NULL, 200);
    assert_string_equal(str(v, "state"), "done");
    assert_int_equal(num(at(v, "result"), "damaged"), 0);
    assert_true(json_array_size(at(at(v, "result"), "files")) >= 1);
    json_decref(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),       cmocka_unit_test(test_counters),
        cmocka_unit_test(test_walk),        cmocka_unit_test(test_focus),
        cmocka_unit_test(test_bad),         cmocka_unit_test(test_focus_elsewhere),
        cmocka_unit_test(test_top),         cmocka_unit_test(test_history),
        cmocka_unit_test(test_together),    cmocka_unit_test(test_top_before),
        cmocka_unit_test(test_history_bad), cmocka_unit_test(test_csv),
        cmocka_unit_test(test_route_past),  cmocka_unit_test(test_history_without),
        cmocka_unit_test(test_shapes),      cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_silent),      cmocka_unit_test(test_codes),
        cmocka_unit_test(test_alarms),      cmocka_unit_test(test_silences),
        cmocka_unit_test(test_covers),      cmocka_unit_test(test_isolation),
        cmocka_unit_test(test_away),        cmocka_unit_test(test_db_check),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
