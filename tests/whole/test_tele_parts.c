// SPDX-License-Identifier: Apache-2.0
// The end of a sweep in parts: a collector that is cut after every few ports finds what one finds that is
// not; what comes in the middle: another snapshot, none, the collector's end.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/err.h"
#include "telemetry/telemetry.h"
#include "tests/whole/rig.h"

#define PORTS 7 // a part
#define LEAF "leaf-su01-rail0"

struct one {
    struct tele *tele;
    struct series *series;
    char dir[300];
    bool swept;
};
static struct rig rig;
static struct one whole, parts;

static void on_swept(void *arg)
{
    ((struct one *)arg)->swept = true;
}

static void begin(struct one *x, const char *name, uint32_t part_ports, int64_t errors_ns)
{
    struct err e = {0};
    struct series_report rep;
    snprintf(x->dir, sizeof(x->dir), "%.200s/%s", rig.dir, name);
    x->series = series_open(rig.loop, x->dir, &(struct series_opts){.columns = TELE_COUNTERS}, &rep, &e);
    if (x->series == NULL)
        fail_msg("%s", e.text);
    struct tele_opts o = {.fabric = name,
                          .interval_ns = 10 * MONO_S,
                          .errors_interval_ns = errors_ns,
                          .per_device = 4,
                          .part_ports = part_ports};
    struct tele_callbacks cb = {.arg = x, .swept = on_swept};
    x->tele = tele_new(rig.loop, rig.engine, x->series, NULL, &o, &cb);
    tele_fabric(x->tele, sm_fabric(rig.sm), sm_tables(rig.sm), NULL);
}

static int setup(void **state)
{
    (void)state;
    rig_init(&rig, "rail-64", NULL);
    rig_up(&rig);
    rig_sweeps(&rig, 1, 60);
    begin(&whole, "whole", 0, 0);
    begin(&parts, "parts", PORTS, 0);
    return 0;
}

static void sweeps(struct one *x, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        x->swept = false;
        assert_true(loop_run_until(rig.loop, &x->swept, 60 * MONO_S));
    }
}

static void end(struct one *x)
{
    tele_free(x->tele);
    series_close(x->series);
    *x = (struct one){0};
}

static int teardown(void **state)
{
    char command[500];
    (void)state;
    mad_engine_free(rig.engine);
    rig.engine = NULL;
    end(&whole);
    end(&parts);
    snprintf(command, sizeof(command), "rm -rf '%.200s/whole' '%.200s/parts'", rig.dir, rig.dir);
    assert_int_equal(system(command), 0);
    rig_done(&rig);
    return 0;
}

static uint64_t leaf(void)
{
    const struct fabric *f = sm_fabric(rig.sm);
    for (uint32_t i = 0; i < f->num_nodes; i++)
        if (strcmp(fabric_desc(f, &f->node[i]), LEAF) == 0)
            return f->node[i].guid;
    fail_msg("no " LEAF);
    return 0;
}

// One sick cable, one that waits for another, and traffic.
static void a_sweep_of_trouble(void)
{
    uint64_t guid = leaf();
    for (unsigned p = 1; p <= 8; p++)
        sim_counter_add(rig.sim, guid, (uint8_t)p, SIM_XMIT_DATA, 100000000ull * p);
    sim_counter_add(rig.sim, guid, 33, SIM_SYMBOL_ERRORS, 500);
    sim_counter_add(rig.sim, guid, 40, SIM_XMIT_WAIT, 50000000000);
    sweeps(&whole, 1);
    if (!parts.swept)
        sweeps(&parts, 1);
}

// Requests of both are traffic: it is a little more for the one that looks later.
static bool exact(unsigned c)
{
    return tele_rows[c].kind != TELE_TRAFFIC;
}

static void same_values(void)
{
    const struct tele_table *a = tele_table(whole.tele), *b = tele_table(parts.tele);
    assert_int_equal(a->num, b->num);
    assert_memory_equal(a->have, b->have, a->num * sizeof(*a->have));
    for (uint32_t i = 0; i < a->num; i++) {
        assert_int_equal(a->port[i].unread, b->port[i].unread);
        for (unsigned c = 0; c < TELE_COUNTERS; c++)
            if (exact(c))
                assert_true(tele_value(a, i, c) == tele_value(b, i, c));
    }
}

static void same_health(void)
{
    const struct tele_table *a = tele_table(whole.tele), *b = tele_table(parts.tele);
    struct health_count n[2], now;
    unsigned bad = 0;
    for (uint32_t i = 0; i < a->num; i++) {
        struct health_view x, y;
        health_view(tele_health(whole.tele), a, i, &x);
        health_view(tele_health(parts.tele), b, i, &y);
        assert_int_equal(x.state, y.state);
        assert_string_equal(x.why, y.why);
        bad += x.state > HEALTH_UNSURE;
    }
    assert_true(bad > 0);
    tele_links(whole.tele, &n[0]);
    tele_links(parts.tele, &n[1]);
    assert_memory_equal(&n[0], &n[1], sizeof(n[0]));
    health_count(tele_health(parts.tele), b, &now);
    assert_memory_equal(&n[1], &now, sizeof(now));
}

static void same_congestion(void)
{
    const struct congest_tree *const *x, *const *y;
    struct congest_totals s, t;
    uint32_t n = congest_trees(tele_congest(whole.tele), &x), m = congest_trees(tele_congest(parts.tele), &y);
    congest_totals(tele_congest(whole.tele), &s);
    congest_totals(tele_congest(parts.tele), &t);
    assert_int_equal(s.held, t.held);
    assert_true(s.held > 0);
    assert_int_equal(n, m);
    assert_true(n > 0);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(x[i]->root, y[i]->root);
        assert_int_equal(x[i]->kind, y[i]->kind);
        assert_int_equal(x[i]->num_members, y[i]->num_members);
    }
}

struct sums {
    uint64_t points, sum, have;
};

static bool add_point(void *arg, const struct series_point *p)
{
    struct sums *s = arg;
    s->points++;
    s->have += (uint64_t)__builtin_popcountll(p->have);
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (exact(c) && (p->have >> c & 1))
            s->sum = s->sum * 31 + p->value[c] + p->series;
    return true;
}

static void read_all(struct one *x, struct sums *ret)
{
    struct err e = {0};
    struct series_query q = {.columns = (1ull << TELE_COUNTERS) - 1, .to_ms = INT64_MAX / 2};
    *ret = (struct sums){0};
    assert_int_equal(series_flush(x->series), 0);
    struct series_reader *r = series_reader_new(x->dir, &e);
    assert_non_null(r);
    long n = series_read(r, &q, add_point, ret, NULL, &e);
    if (n <= 0)
        fail_msg("%s", e.text);
    series_reader_free(r);
}

static void the_same_is_found(void **state)
{
    struct sums a, b;
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        parts.swept = false;
        a_sweep_of_trouble();
        series_flush(whole.series); // virtual time does not wait for it
        series_flush(parts.series);
        same_values();
    }
    same_health();
    same_congestion();
    read_all(&whole, &a);
    read_all(&parts, &b);
    assert_int_equal(a.points, b.points);
    assert_true(a.points > 8 * 100);
    assert_int_equal(a.have, b.have);
    assert_true(a.sum == b.sum);
    struct series_health h;
    series_health(parts.series, &h);
    assert_int_equal(h.left_out, 0);
}

// --- in the middle ---

static struct middle {
    struct loop_task task;
    unsigned more;     // turns into the end of a sweep
    unsigned patience; // turns after an answer: virtual time stands still for a task that is always there
    int64_t before;
    bool done;
} mid;

static void look(void *arg)
{
    struct tele_status st;
    (void)arg;
    tele_get_status(parts.tele, &st);
    bool ends = st.last_wall_ns != mid.before;
    if (ends && mid.more-- == 0)
        mid.done = true;
    else if (ends || mid.patience-- > 0)
        loop_post(rig.loop, &mid.task);
}

// The last answer of a sweep is what begins its end.
static bool on_answer(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    (void)mad;
    (void)from;
    (void)status;
    mid.patience = 20;
    loop_post(r->loop, &mid.task);
    return false;
}

// Stops so many turns after the beginning of the end of a sweep.
static void into_the_end(unsigned turns)
{
    struct tele_status was, st;
    sweeps(&parts, 1);
    tele_get_status(parts.tele, &was);
    mid = (struct middle){.more = turns, .before = was.last_wall_ns};
    loop_task_init(&mid.task, "test", look, NULL);
    rig.take_recv = on_answer;
    assert_true(loop_run_until(rig.loop, &mid.done, 60 * MONO_S));
    rig.take_recv = NULL;
    loop_unpost(rig.loop, &mid.task);
    tele_get_status(parts.tele, &st);
    assert_int_equal(st.sweeps, was.sweeps); // it has not ended
}

static void snapshots_in_the_middle(void **state)
{
    struct health_count n, now;
    (void)state;
    for (unsigned at = 1; at < 200; at += 23) {
        into_the_end(at);
        tele_fabric(parts.tele, NULL, NULL, NULL);
        tele_fabric(parts.tele, sm_fabric(rig.sm), sm_tables(rig.sm), NULL);
        into_the_end(at);
        sm_resweep(rig.sm, "test", false);
        rig_sweeps(&rig, 1, 60);
        tele_fabric(parts.tele, sm_fabric(rig.sm), sm_tables(rig.sm), NULL);
        sweeps(&parts, 2);
        tele_links(parts.tele, &n);
        health_count(tele_health(parts.tele), tele_table(parts.tele), &now);
        assert_memory_equal(&n, &now, sizeof(n));
    }
}

static void collectors_that_end_in_the_middle(void **state)
{
    (void)state;
    for (unsigned at = 1; at < 200; at += 41) {
        into_the_end(at);
        tele_fabric(parts.tele, NULL, NULL, NULL); // no answer comes any more
        rig_run(&rig, 5 * MONO_S);
        end(&parts);
        begin(&parts, "parts", PORTS, MONO_S); // with error counters between sweeps
        sweeps(&parts, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_same_is_found),
        cmocka_unit_test(snapshots_in_the_middle),
        cmocka_unit_test(collectors_that_end_in_the_middle),
    };
    return cmocka_run_group_tests_name("whole/tele_parts", tests, setup, teardown);
}
