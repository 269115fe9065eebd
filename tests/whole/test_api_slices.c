// SPDX-License-Identifier: Apache-2.0
// Long answers, made a slice a turn and sent a block a turn: two servers over one fabric, of which one is cut
// as small as can be, say the same; what changes in the middle, clients that go away, a server that ends.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "telemetry/telemetry.h"
#include "tests/whole/api_rig.h"

#define ALARMS 300
#define SWEEPS 12 // of history

static struct {
    struct api *fine; // a row a turn
    char sock[110];
    struct tele *tele;
    bool swept;
    int64_t wall; // of alarms
    struct series *series;
    char dir[300];  // … its folder
    char times[80]; // … its time, in a path
} own;

static void on_swept(void *arg)
{
    (void)arg;
    own.swept = true;
}

static int64_t wall(void *arg)
{
    (void)arg;
    return own.wall;
}

static void open_fine(void)
{
    struct err e = {0};
    struct api_context c = {.loop = env.rig.loop,
                            .pool = env.rig.pool,
                            .db = env.rig.db,
                            .fabric = env.list,
                            .num_fabrics = 2,
                            .alarms = env.alarms,
                            .started_wall_ns = wall_now_ns(),
                            .slice_ns = 1};
    own.fine = api_new(&c, &(struct api_opts){.socket = own.sock}, &e);
    if (own.fine == NULL)
        fail_msg("%s: %s", e.where, e.text);
}

static void raise_alarm(unsigned i)
{
    char subject[40], reason[80];
    snprintf(subject, sizeof(subject), "0x%016x/1", i + 1);
    snprintf(reason, sizeof(reason), "%u errors", i);
    alarm_raise(env.alarms, &(struct alarm_report){.fabric = "live",
                                                   .rule = "L06",
                                                   .subject = subject,
                                                   .severity = (enum alarm_severity)(i % 4),
                                                   .place = subject,
                                                   .reason = reason,
                                                   .evidence = "{\"errors\":1}",
                                                   .node_guid = {i + 1},
                                                   .port = {1}});
}

// All ports count, each at its own pace. It is not the collector's, so that it stays as it is.
static void write_history(void)
{
    struct err e = {0};
    struct series_report rep;
    const struct tele_table *t = tele_table(own.tele);
    int64_t end_ms = own.wall / MONO_MS / 60000 * 60000, began_ms = end_ms - SWEEPS * 10000;
    uint64_t *value = xcalloc((size_t)t->num * TELE_COUNTERS, sizeof(*value)),
             *have = xcalloc(t->num, sizeof(*have));
    own.series =
        series_open(env.rig.loop, own.dir, &(struct series_opts){.columns = TELE_COUNTERS}, &rep, &e);
    if (own.series == NULL)
        fail_msg("%s: %s", e.where, e.text);
    for (uint32_t i = 0; i < t->num; i++)
        assert_int_equal(series_id(own.series, t->port[i].node_guid, t->port[i].num), i);
    for (int k = 0; k < SWEEPS; k++) {
        for (uint32_t i = 0; i < t->num; i++) {
            value[(size_t)i * TELE_COUNTERS + TELE_XMIT_DATA] += 1000000 + i;
            have[i] = tele_group_counters(TELE_DATA);
        }
        series_sweep(own.series, began_ms + k * 10000, value, have, t->num);
        assert_int_equal(series_flush(own.series), 0);
    }
    snprintf(own.times, sizeof(own.times), "from=%lld&to=%lld", (long long)began_ms, (long long)end_ms);
    free(value);
    free(have);
    env.fabric[0].series_dir = own.dir;
}

static int setup(void **state)
{
    struct err e = {0};
    (void)state;
    env_up("rail-64");
    fabric_unref(env.fabric[1].offline);
    env.fabric[1].offline = topogen_make("rail-512", &e);
    assert_non_null(env.fabric[1].offline);
    own.wall = wall_now_ns();
    env.alarms = alarms_new(env.rig.loop, NULL, &(struct alarms_callbacks){.wall = wall});
    struct tele_opts o = {.fabric = "live", .interval_ns = 10 * MONO_S, .per_device = 4};
    struct tele_callbacks cb = {.swept = on_swept};
    own.tele = tele_new(env.rig.loop, env.rig.engine, NULL, env.alarms, &o, &cb);
    tele_fabric(own.tele, sm_fabric(env.rig.sm), sm_tables(env.rig.sm), NULL);
    env.fabric[0].tele = own.tele;
    for (unsigned i = 0; i < ALARMS; i++)
        raise_alarm(i);
    snprintf(own.dir, sizeof(own.dir), "%.200s/series", env.rig.dir);
    env_open();
    snprintf(own.sock, sizeof(own.sock), "%.90s/fine.sock", env.rig.dir);
    open_fine();
    for (unsigned i = 0; i < 3; i++) {
        own.swept = false;
        assert_true(loop_run_until(env.rig.loop, &own.swept, 60 * MONO_S));
    }
    write_history();
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
    api_free(own.fine);
    env_down();
    mad_engine_free(env.rig.engine);
    env.rig.engine = NULL;
    tele_free(own.tele);
    alarms_free(env.alarms);
    series_close(own.series);
    remove_all(own.dir);
    rig_done(&env.rig);
    return 0;
}

// --- asking ---

// In virtual time the wall clock is the only thing that goes on: times are made alike.
static void scrub(char *s)
{
    for (; (s = strstr(s, "20")) != NULL; s++) {
        unsigned n = 0;
        while (n < 24 && (strchr("0123456789-:T.Z", s[n]) != NULL && s[n] != 0))
            n++;
        if (n == 24 && s[4] == '-' && s[23] == 'Z')
            memset(s, 'x', 24);
    }
}

static char *asked(const char *sock, const char *below, int status)
{
    struct http h;
    char path[600];
    snprintf(path, sizeof(path), BASE "%s", below);
    http_do(&h, env.rig.loop, sock, "GET", path, NULL, NULL);
    if (h.status != status)
        fail_msg("%s: expected %d, got %d %.300s", below, status, h.status, h.body);
    char *s = xstrdup(h.body);
    http_close(&h);
    scrub(s);
    return s;
}

static void ask(struct http *h, const char *below)
{
    char text[700];
    http_open(h, env.rig.loop, own.sock);
    snprintf(text, sizeof(text), "GET " BASE "%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
             below);
    http_send(h, text, strlen(text));
}

static char *answer(struct http *h, int *ret_status)
{
    http_wait_closed(h);
    const char *gap = h->in.data != NULL ? strstr(h->in.data, "\r\n\r\n") : NULL;
    char *s = gap != NULL ? xstrdup(gap + 4) : NULL;
    *ret_status = 0;
    if (gap != NULL)
        assert_int_equal(sscanf(h->in.data, "HTTP/1.%*d %d", ret_status), 1);
    http_close(h);
    if (s != NULL)
        scrub(s);
    return s;
}

static uint64_t api_calls(void)
{
    struct loop_area_stats s[64];
    size_t n = loop_stats(env.rig.loop, s, 64);
    for (size_t i = 0; i < n && i < 64; i++)
        if (strcmp(s[i].area, "api") == 0)
            return s[i].calls;
    return 0;
}

struct turns {
    struct loop_task task;
    uint64_t until; // calls of the servers
    unsigned waited;
    bool done;
};

static void turn(void *arg)
{
    struct turns *t = arg;
    t->done = api_calls() >= t->until;
    if (++t->waited > 1000000)
        fail_msg("the servers have nothing to do any more");
    if (!t->done)
        loop_post(env.rig.loop, &t->task);
}

// Runs until the servers have had so many turns: in the middle of an answer of more rows.
static void turns(unsigned n)
{
    struct turns t = {.until = api_calls() + n};
    loop_task_init(&t.task, "test", turn, &t);
    loop_post(env.rig.loop, &t.task);
    assert_true(loop_run_until(env.rig.loop, &t.done, 60 * MONO_S));
}

static size_t rows(const char *text, json_t **ret)
{
    *ret = json_loads(text, 0, NULL);
    if (*ret == NULL)
        fail_msg("no JSON: %.300s", text);
    return json_array_size(at(*ret, "items"));
}

// --- the same ---

static const char *const lists[] = {
    LIVE "/nodes",
    LIVE "/nodes?type=switch&limit=3",
    LIVE "/nodes?name=gpu&limit=10&format=csv",
    LIVE "/nodes?focus=role%3Dleaf%20and%20rail%3C3",
    LIVE "/ports?limit=10000",
    LIVE "/ports?limit=500&format=csv",
    LIVE "/ports?node=leaf-su01-rail0",
    LIVE "/ports?node=leaf-su01-rail0&limit=7",
    LIVE "/ports?focus=state%3Dactive%20num%3C3",
    LIVE "/links",
    LIVE "/links?focus=kind%3Dtrunk&limit=11",
    LIVE "/counters",
    LIVE "/counters?limit=20&format=csv",
    LIVE "/counters?node=leaf-su01-rail0",
    LIVE "/counters?focus=kind%3Dtrunk&limit=13",
    LIVE "/health?all=1",
    LIVE "/health?state=unsure&limit=9",
    LIVE "/health?all=1&limit=9&cursor=31",
    LIVE "/health?all=1&focus=kind%3Dtrunk",
    LIVE "/congestion",
    LIVE "/top?by=xmit",
    LIVE "/devices?all=1&limit=10000",
    LIVE "/devices?all=1&limit=3&cursor=2",
    LIVE "/devices?all=1&focus=role%3Dleaf&format=csv",
    "/alarms?limit=10000",
    "/alarms?severity=major&limit=17",
    "/alarms?focus=severity%3Dcritical",
    "/alarms?limit=10000&format=csv",
    "/fabrics/file/ports?limit=10000",
};

// The time of the history comes behind.
static const char *const of_history[] = {
    LIVE "/top?by=xmit",
    LIVE "/top?by=xmit&focus=kind%3Dtrunk&n=1000",
    LIVE "/top?by=used&focus=rail%3C3&format=csv",
    LIVE "/counters/history?by=switch&counter=xmit_data&step=20s",
    LIVE "/counters/history?by=rail&focus=kind%3Dhost&counter=xmit_data",
    LIVE "/counters/history?by=tier&focus=rail%3C3&format=csv",
};

static void same_bytes(const char *path, int status, bool is_cut)
{
    uint64_t before = api_calls();
    char *whole = asked(env.sock, path, status);
    uint64_t one = api_calls() - before;
    before = api_calls();
    char *cut = asked(own.sock, path, status);
    uint64_t many = api_calls() - before;
    if (strcmp(whole, cut) != 0)
        fail_msg("%s: %.300s\n... and in slices: %.300s", path, whole, cut);
    assert_true(strlen(whole) > 20);
    if (is_cut && many < one + 60)
        fail_msg("%s: not cut: %llu turns, %llu", path, (unsigned long long)many, (unsigned long long)one);
    free(whole);
    free(cut);
}

static void the_same_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        same_bytes(lists[i], 200, strstr(lists[i], "10000") != NULL);
}

static const char *over_time(const char *path, char ret[400])
{
    snprintf(ret, 400, "%s&%s", path, own.times);
    return ret;
}

static void the_same_history(void **state)
{
    char path[400];
    (void)state;
    for (size_t i = 0; i < sizeof(of_history) / sizeof(of_history[0]); i++) {
        char *text = asked(env.sock, over_time(of_history[i], path), 200);
        if (strchr(text, '\n') == strrchr(text, '\n'))
            fail_msg("%s: nothing in it: %.300s", path, text);
        free(text);
        same_bytes(path, 200, true);
    }
    same_bytes(over_time(LIVE "/counters/history?by=switch&counter=all&step=1s", path), 400, true);
}

// Page by page there is what there is at once.
static void walks(const char *list, const char *key)
{
    char path[300];
    json_t *all, *page;
    size_t seen = 0;
    snprintf(path, sizeof(path), "%s%climit=10000", list, strchr(list, '?') ? '&' : '?');
    char *text = asked(env.sock, path, 200);
    size_t n = rows(text, &all);
    free(text);
    char next[100] = "";
    do {
        snprintf(path, sizeof(path), "%s%climit=97%s%s", list, strchr(list, '?') ? '&' : '?',
                 next[0] ? "&cursor=" : "", next);
        text = asked(own.sock, path, 200);
        size_t k = rows(text, &page);
        free(text);
        for (size_t i = 0; i < k; i++, seen++) {
            assert_true(seen < n);
            const json_t *x = json_array_get(at(page, "items"), i),
                         *y = json_array_get(at(all, "items"), seen);
            assert_true(json_equal(at(x, key), at(y, key)));
        }
        snprintf(next, sizeof(next), "%s", str(page, "next"));
        assert_int_equal(num(page, "total"), n);
        json_decref(page);
    } while (next[0]);
    assert_int_equal(seen, n);
    json_decref(all);
}

static void page_by_page(void **state)
{
    (void)state;
    walks(LIVE "/nodes", "guid");
    walks("/fabrics/file/ports", "node_guid");
    walks(LIVE "/links", "a");
    walks(LIVE "/counters", "guid");
    walks(LIVE "/health?all=1", "a");
    walks("/alarms", "id");
}

// --- in the middle ---

// The walk keeps the snapshot that it began with.
static void another_snapshot(void **state)
{
    struct sm *sm = env.fabric[0].sm;
    struct http h;
    int status;
    (void)state;
    char *before = asked(own.sock, LIVE "/ports?limit=10000", 200);
    ask(&h, LIVE "/ports?limit=10000");
    turns(50);
    assert_int_equal(h.in.len, 0);
    env.fabric[0].sm = NULL; // and with it the last reference but ours
    env.fabric[0].offline = env.fabric[1].offline;
    api_changed(own.fine, "live");
    char *after = answer(&h, &status);
    assert_int_equal(status, 200);
    assert_string_equal(before, after);
    env.fabric[0].sm = sm;
    env.fabric[0].offline = NULL;
    api_changed(own.fine, "live");
    free(before);
    free(after);
}

static void no_collector_any_more(void **state)
{
    static const char *const of[] = {LIVE "/counters", LIVE "/health?all=1", LIVE "/devices?all=1",
                                     LIVE "/top?by=xmit&from=1h", LIVE "/counters/history?by=rail"};
    (void)state;
    for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
        struct http h;
        int status;
        ask(&h, of[i]);
        turns(50);
        assert_int_equal(h.in.len, 0);
        env.fabric[0].tele = NULL;
        char *text = answer(&h, &status);
        env.fabric[0].tele = own.tele;
        assert_int_equal(status, 503);
        assert_non_null(strstr(text, "begun anew"));
        free(text);
    }
}

// Alarms that end meanwhile are left out, those that come are for the next question; none is there twice.
static void other_alarms(void **state)
{
    struct http h;
    int status;
    json_t *v;
    (void)state;
    rig_run(&env.rig, 11 * 60 * MONO_S); // they have stood for long enough: what is cleared ends at once
    char *text = asked(own.sock, "/alarms?limit=10000", 200);
    assert_int_equal(rows(text, &v), ALARMS);
    json_int_t newest = 0;
    for (size_t i = 0; i < ALARMS; i++)
        if (num(json_array_get(at(v, "items"), i), "id") > newest)
            newest = num(json_array_get(at(v, "items"), i), "id");
    json_decref(v);
    free(text);
    ask(&h, "/alarms?limit=10000");
    turns(60);
    assert_int_equal(h.in.len, 0);
    for (unsigned i = 0; i < ALARMS; i += 2) {
        char subject[40];
        snprintf(subject, sizeof(subject), "0x%016x/1", i + 1);
        alarm_clear(env.alarms, "live", "L06", subject);
        raise_alarm(ALARMS + i);
    }
    for (unsigned i = 0; i < 3; i++) {
        own.swept = false;
        loop_run_until(env.rig.loop, &own.swept, MONO_MS);
    }
    text = answer(&h, &status);
    assert_int_equal(status, 200);
    size_t n = rows(text, &v);
    assert_in_range(n, ALARMS / 2, ALARMS - 1);
    for (size_t i = 0; i < n; i++) {
        json_int_t id = num(json_array_get(at(v, "items"), i), "id");
        assert_true(id <= newest);
        for (size_t k = 0; k < i; k++)
            assert_true(num(json_array_get(at(v, "items"), k), "id") != id);
    }
    json_decref(v);
    free(text);
}

static void clients_go_away(void **state)
{
    static const char *const of[] = {LIVE "/ports?limit=10000",
                                     LIVE "/counters?limit=10000",
                                     LIVE "/health?all=1",
                                     "/alarms?limit=10000",
                                     "/fabrics/file/ports?limit=10000",
                                     LIVE "/top?by=xmit&from=1h",
                                     LIVE "/counters/history?by=switch"};
    (void)state;
    for (unsigned wait = 1; wait < 200; wait += 60)
        for (unsigned i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
            struct http h;
            ask(&h, of[i]);
            turns(wait);
            http_close(&h);
        }
    // While it is sent: more than the socket holds.
    struct http h;
    ask(&h, "/fabrics/file/ports?limit=10000");
    assert_true(http_wait_text(&h, "200 OK", 60));
    if (h.in.len > 300000)
        fail_msg("%zu bytes have come", h.in.len);
    http_close(&h);
    char *text = asked(own.sock, LIVE "/nodes", 200);
    free(text);
}

// libmicrohttpd hears all that have come in one turn; they are answered in turns.
static void many_at_once(void **state)
{
    enum { N = 60 };
    static struct http h[N];
    char *first = NULL;
    (void)state;
    for (unsigned i = 0; i < N; i++)
        ask(&h[i], i % 2 ? LIVE "/nodes?limit=20" : LIVE "/links?limit=20");
    for (unsigned i = 0; i < N; i++) {
        int status;
        char *text = answer(&h[i], &status);
        assert_int_equal(status, 200);
        if (i == 1)
            first = xstrdup(text);
        if (i % 2)
            assert_string_equal(text, first);
        free(text);
    }
    free(first);
}

static void the_server_ends(void **state)
{
    enum { N = 12 };
    static struct http h[N];
    unsigned refused = 0;
    (void)state;
    for (unsigned i = 0; i < N; i++)
        ask(&h[i], i % 3 == 0   ? "/fabrics/file/ports?limit=10000"
                   : i % 3 == 1 ? LIVE "/counters?limit=10000"
                                : LIVE "/top?from=1h");
    turns(30);
    api_free(own.fine);
    for (unsigned i = 0; i < N; i++) {
        int status;
        char *text = answer(&h[i], &status);
        refused += status == 503 && strstr(text, "ending") != NULL;
        assert_true(status == 503 || status == 0);
        free(text);
    }
    assert_true(refused > 0);
    open_fine();
    char *text = asked(own.sock, LIVE "/nodes", 200);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_bytes),        cmocka_unit_test(the_same_history),
        cmocka_unit_test(page_by_page),          cmocka_unit_test(another_snapshot),
        cmocka_unit_test(no_collector_any_more), cmocka_unit_test(clients_go_away),

        cmocka_unit_test(many_at_once),          cmocka_unit_test(the_server_ends),
        cmocka_unit_test(other_alarms),
    };
    return cmocka_run_group_tests_name("whole/api_slices", tests, setup, teardown);
}
