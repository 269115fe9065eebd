// SPDX-License-Identifier: Apache-2.0
// LIDs and blobs: what is put is there after a reopen, in order, exclusively; what is wrong is refused.
#include <errno.h>

#include "tests/unit/db/dbtest.h"

static void round_trip(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    assert_true(f->rep.created);
    assert_false(f->rep.set_aside);
    expect_lids(f, "a", "");
    struct db_lid l[] = {{G(1), 7, 0}, {G(2), 3, 0}, {0xffffffffffffffffULL, 0xbfff, 0}};
    assert_int_equal(put_lids(f, "a", l, 3), 0);
    assert_int_equal(put_lids(f, "b", l, 1), 0);
    fix_reopen(f);
    assert_false(f->rep.created);
    struct db_lid *got;
    assert_int_equal(db_lids_load(f->db, "a", &got), 3);
    assert_int_equal(got[0].lid, 3);
    assert_int_equal(got[1].lid, 7);
    assert_int_equal(got[2].lid, 0xbfff);
    assert_true(got[2].port_guid == 0xffffffffffffffffULL);
    free(got);
    expect_lids(f, "b", "7/0=1");
    expect_lids(f, "c", "");
}

static void taken_by_another(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    struct db_lid l[] = {{G(1), 10, 0}, {G(2), 11, 0}, {G(3), 12, 0}};
    put_lids(f, "a", l, 3);
    put_lids(f, "b", l, 3);
    struct db_lid thief = {G(4), 11, 0};
    put_lids(f, "a", &thief, 1);
    expect_lids(f, "a", "10/0=1 11/0=4 12/0=3");
    struct db_lid swap[] = {{G(1), 12, 0}, {G(3), 10, 0}};
    put_lids(f, "a", swap, 2);
    expect_lids(f, "a", "10/0=3 11/0=4 12/0=1");
    struct db_lid move = {G(3), 20, 0};
    put_lids(f, "a", &move, 1);
    expect_lids(f, "a", "11/0=4 12/0=1 20/0=3");
    expect_lids(f, "b", "10/0=1 11/0=2 12/0=3");
}

static void ranges_of_an_lmc_do_not_overlap(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    struct db_lid l[] = {{G(1), 8, 3}, {G(2), 16, 0}, {G(3), 7, 0}, {G(4), 128, 7}, {G(5), 256, 0}};
    put_lids(f, "a", l, 5);
    expect_lids(f, "a", "7/0=3 8/3=1 16/0=2 128/7=4 256/0=5");
    struct db_lid inside[] = {{G(6), 15, 0}, {G(7), 255, 0}};
    put_lids(f, "a", inside, 2);
    expect_lids(f, "a", "7/0=3 15/0=6 16/0=2 255/0=7 256/0=5");
    struct db_lid around = {G(8), 0x100, 7};
    put_lids(f, "a", &around, 1);
    expect_lids(f, "a", "7/0=3 15/0=6 16/0=2 255/0=7 256/7=8");
}

static void order_is_kept(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    unsigned counter = 0;
    struct wait w[301] = {0};
    for (unsigned i = 0; i < 300; i++) {
        struct db_lid l = {G(i % 7 + 1), (uint16_t)(i % 11 + 1), 0};
        w[i].counter = &counter;
        if (i % 10 == 5)
            db_blob_put(f->db, "a", "n", &i, sizeof(i), on_done, &w[i]);
        else
            db_lids_put(f->db, "a", &l, 1, on_done, &w[i]);
    }
    w[300].counter = &counter;
    db_lids_put(f->db, "a", NULL, 0, on_done, &w[300]);
    assert_int_equal(wait_for(f, &w[300]), 0);
    for (unsigned i = 0; i <= 300; i++) {
        assert_int_equal(w[i].order, i + 1);
        assert_int_equal(w[i].status, 0);
    }
    void *p;
    size_t n;
    assert_int_equal(db_blob_get(f->db, "a", "n", &p, &n), 0);
    assert_int_equal(*(unsigned *)p, 295);
    free(p);
}

static void close_writes_what_is_queued(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    struct wait w = {0};
    struct db_lid l[] = {{G(1), 1, 0}, {G(2), 2, 0}};
    db_lids_put(f->db, "a", &l[0], 1, NULL, NULL);
    db_lids_put(f->db, "a", &l[1], 1, on_done, &w);
    db_close(f->db);
    f->db = NULL;
    assert_true(w.done);
    assert_int_equal(w.status, 0);
    fix_open(f);
    expect_lids(f, "a", "1/0=1 2/0=2");
}

struct chain {
    struct db *db;
    int status[2];
};

static void chain_end(void *arg, int status)
{
    ((struct chain *)arg)->status[1] = status;
}

static void chain_more(void *arg, int status)
{
    struct chain *c = arg;
    struct db_lid l = {G(9), 9, 0};
    c->status[0] = status;
    db_lids_put(c->db, "a", &l, 1, chain_end, c);
}

static void a_request_from_done_while_closing_is_refused(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    struct chain c = {f->db, {1, 1}};
    struct db_lid l = {G(1), 1, 0};
    db_lids_put(f->db, "a", &l, 1, chain_more, &c);
    db_close(f->db);
    f->db = NULL;
    assert_int_equal(c.status[0], 0);
    assert_int_equal(c.status[1], -ESHUTDOWN);
}

static void cancelled_done_does_not_run(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    struct wait gone = {0}, w = {0};
    struct db_lid l[] = {{G(1), 1, 0}, {G(2), 2, 0}};
    db_lids_put(f->db, "a", &l[0], 1, on_done, &gone);
    db_lids_put(f->db, "a", &l[1], 1, on_done, &w);
    db_cancel(f->db, &gone);
    assert_int_equal(wait_for(f, &w), 0);
    assert_false(gone.done);
    expect_lids(f, "a", "1/0=1 2/0=2");
}

static void refused(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    char name[300];
    struct wait w = {0};
    memset(name, 'x', sizeof(name));
    name[299] = 0;
    struct db_lid bad[] = {{G(1), 0, 0}, {G(1), 0xc000, 0}, {G(1), 1, 8}, {0, 1, 0}, {G(1), 3, 1}};
    for (int i = 0; i < 5; i++) {
        struct db_lid two[] = {{G(7), 7, 0}, bad[i]};
        assert_int_equal(put_lids(f, "a", two, 2), -EINVAL);
    }
    expect_lids(f, "a", "");
    struct db_lid good = {G(1), 1, 0};
    assert_int_equal(put_lids(f, name, &good, 1), -ENAMETOOLONG);
    db_blob_put(f->db, "a", name, "", 0, on_done, &w);
    assert_int_equal(wait_for(f, &w), -ENAMETOOLONG);
    db_blob_put(f->db, "a", "big", name, (size_t)65 << 20, on_done, &w); // refused before it is read
    assert_int_equal(wait_for(f, &w), -E2BIG);
    assert_int_equal(db_health(f->db, NULL, 0), 0);
}

static void blobs(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    size_t n = 3 << 20, got_n;
    char *big = xmalloc(n);
    void *got;
    for (size_t i = 0; i < n; i++)
        big[i] = (char)(i * 7 + (i >> 13));
    assert_int_equal(db_blob_get(f->db, "a", "x", &got, &got_n), -ENOENT);
    db_blob_put(f->db, "a", "bp/big", big, n, NULL, NULL);
    db_blob_put(f->db, "a", "bp/empty", "", 0, NULL, NULL);
    db_blob_put(f->db, "a", "other", "1", 1, NULL, NULL);
    db_blob_put(f->db, "a", "other", "22", 2, NULL, NULL);
    db_blob_put(f->db, "b", "bp/b", "3", 1, NULL, NULL);
    fix_reopen(f);
    assert_int_equal(db_blob_get(f->db, "a", "bp/big", &got, &got_n), 0);
    assert_int_equal(got_n, n);
    assert_memory_equal(got, big, n);
    free(got);
    assert_int_equal(db_blob_get(f->db, "a", "bp/empty", &got, &got_n), 0);
    assert_int_equal(got_n, 0);
    free(got);
    assert_int_equal(db_blob_get(f->db, "a", "other", &got, &got_n), 0);
    assert_string_equal(got, "22");
    free(got);
    db_blob_put(f->db, "a", "other", NULL, 0, NULL, NULL);
    assert_int_equal(db_flush(f->db), 0);
    assert_int_equal(db_blob_get(f->db, "a", "other", &got, &got_n), -ENOENT);
    free(big);
}

static void many_lids(void **state)
{
    struct fix *f = *state;
    enum { N = 49151 };
    fix_open(f);
    struct db_lid *l = xcalloc(N, sizeof(*l)), *got;
    for (unsigned i = 0; i < N; i++)
        l[i] = (struct db_lid){G(N - i), (uint16_t)(i + 1), 0};
    assert_int_equal(put_lids(f, "a", l, N), 0);
    assert_int_equal(db_lids_load(f->db, "a", &got), N);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(got[i].lid, i + 1);
        assert_true(got[i].port_guid == G(N - i));
    }
    free(got);
    free(l);
}

static void tick(void *arg)
{
    *(bool *)arg = true;
}

static void virtual_time_waits_for_done(void **state)
{
    struct fix *f = *state;
    loop_free(f->loop);
    f->loop = loop_new(LOOP_VIRTUAL);
    fix_open(f);
    struct loop_timer t;
    bool fired = false;
    loop_timer_init(&t, f->loop, "test", tick, &fired);
    for (unsigned i = 1; i < 50; i++) {
        struct wait w = {0};
        struct db_lid l = {G(i), (uint16_t)i, 0};
        fired = false;
        loop_timer_after(&t, 1); // a nanosecond: sooner than any disk
        db_lids_put(f->db, "a", &l, 1, on_done, &w);
        assert_int_equal(wait_for(f, &w), 0);
        assert_false(fired);
        assert_true(loop_run_until(f->loop, &fired, MONO_S));
    }
}

// Between a request and its completion the loop runs what was posted before, and nothing of what comes after.
struct told {
    struct wait w;
    unsigned tasks;
    unsigned *seen; // tasks at the completion
};

static void count_task(void *arg)
{
    ++*(unsigned *)arg;
}

static void told_done(void *arg, int status)
{
    struct told *t = arg;
    *t->seen = t->tasks;
    on_done(&t->w, status);
}

static void in_order_the_loop_waits(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    db_in_order(f->db);
    for (int i = 0; i < 50; i++) {
        unsigned seen = 0;
        struct told t = {.seen = &seen};
        struct loop_task before, after;
        loop_task_init(&before, "test", count_task, &t.tasks);
        loop_task_init(&after, "test", count_task, &t.tasks);
        struct db_lid l = {G(1), (uint16_t)(1 + i % 2), 0};
        loop_post(f->loop, &before);
        db_lids_put(f->db, "a", &l, 1, told_done, &t);
        loop_post(f->loop, &after);
        assert_int_equal(wait_for(f, &t.w), 0);
        assert_int_equal(seen, 1);
        while (t.tasks < 2) {
            bool never = false;
            loop_run_until(f->loop, &never, 1);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(round_trip),
        T(taken_by_another),
        T(ranges_of_an_lmc_do_not_overlap),
        T(order_is_kept),
        T(close_writes_what_is_queued),
        T(a_request_from_done_while_closing_is_refused),
        T(cancelled_done_does_not_run),
        T(refused),
        T(blobs),
        T(many_lids),
        T(virtual_time_waits_for_done),
        T(in_order_the_loop_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
