// SPDX-License-Identifier: Apache-2.0
// Events: ids, filters and order over the boundary between memory and disk, cutting, retention.
#include "tests/unit/db/dbtest.h"

struct seen {
    size_t n;
    uint64_t id[20000];
    char text[8192], data[200], kind[300], subject[300];
    int64_t wall_ns;
};

static void on_row(void *arg, const struct db_event *ev)
{
    struct seen *s = arg;
    s->id[s->n++] = ev->id;
    s->wall_ns = ev->wall_ns;
    snprintf(s->text, sizeof(s->text), "%s", ev->text);
    snprintf(s->data, sizeof(s->data), "%s", ev->data);
    snprintf(s->kind, sizeof(s->kind), "%s", ev->kind);
    snprintf(s->subject, sizeof(s->subject), "%s", ev->subject);
}

static struct seen seen;

static long query(struct fix *f, struct db_event_query q)
{
    seen.n = 0;
    if (!q.limit)
        q.limit = 10000;
    long n = db_event_query(f->db, &q, on_row, &seen);
    if (n >= 0)
        assert_int_equal(n, seen.n);
    return n;
}

static uint64_t add(struct fix *f, const char *fabric, const char *kind, int64_t wall_ns, const char *text)
{
    struct db_event ev = {0, wall_ns, fabric, kind, "notice", "0x1/2", text, "{\"a\":1}"};
    return db_event_add(f->db, &ev);
}

static void round_trip(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    assert_int_equal(db_event_last_id(f->db), 0);
    assert_int_equal(query(f, (struct db_event_query){0}), 0);
    assert_int_equal(add(f, "a", "link-down", 123, "it went"), 1);
    assert_int_equal(add(f, "a", "link-up", -5, "it came"), 2);
    for (int pass = 0; pass < 2; pass++) { // from memory, then from disk
        assert_int_equal(query(f, (struct db_event_query){.kind = "link-down"}), 1);
        assert_int_equal(seen.id[0], 1);
        assert_int_equal(seen.wall_ns, 123);
        assert_string_equal(seen.text, "it went");
        assert_string_equal(seen.data, "{\"a\":1}");
        assert_string_equal(seen.subject, "0x1/2");
        assert_int_equal(query(f, (struct db_event_query){.newest_first = true}), 2);
        assert_int_equal(seen.id[0], 2);
        assert_string_equal(seen.kind, "link-down");
        fix_reopen(f);
    }
    // A clean close leaves no gap.
    assert_int_equal(db_event_last_id(f->db), 2);
    assert_int_equal(add(f, "a", "x", 1, ""), 3);
}

// The same by hand, over ids 1..n: fabric by id % 3, kind by id % 5.
static size_t expect(uint64_t *want, uint64_t n, const struct db_event_query *q)
{
    size_t k = 0;
    bool down = q->newest_first || q->before_id;
    for (uint64_t i = 1; i <= n && k < (size_t)q->limit; i++) {
        uint64_t id = down ? n + 1 - i : i;
        if (q->fabric && (uint64_t)(q->fabric[1] - '0') != id % 3)
            continue;
        if (q->kind && (uint64_t)(q->kind[1] - '0') != id % 5)
            continue;
        if (id <= q->after_id || (q->before_id && id >= q->before_id))
            continue;
        want[k++] = id;
    }
    return k;
}

static void compare(struct fix *f, uint64_t n, const struct db_event_query *q)
{
    static uint64_t want[20000];
    size_t k = expect(want, n, q);
    assert_int_equal(query(f, *q), k);
    for (size_t i = 0; i < k; i++)
        assert_true(seen.id[i] == want[i]);
}

static void compare_all(struct fix *f, uint64_t n)
{
    static const char *const fabrics[] = {NULL, "f0", "f2", "f9"}, *const kinds[] = {NULL, "k1", "k4"};
    const uint64_t ids[] = {0, 1, 17, n - 4097, n - 4096, n - 4095, n - 1, n, n + 5, UINT64_MAX};
    const int limits[] = {1, 7, 10000};
    for (unsigned c = 0; c < 4 * 3 * 10 * 10 * 3 * 2; c++) {
        unsigned x = c;
        struct db_event_query q = {.fabric = fabrics[x % 4]};
        q.kind = kinds[(x /= 4) % 3];
        q.after_id = ids[(x /= 3) % 10];
        q.before_id = ids[(x /= 10) % 10];
        q.limit = limits[(x /= 10) % 3];
        q.newest_first = (x /= 3) % 2;
        compare(f, n, &q);
    }
}

static void filters_and_order(void **state)
{
    struct fix *f = *state;
    enum { N = 6000 };
    fix_open(f);
    for (unsigned i = 1; i <= N; i++) {
        char fabric[3] = {'f', (char)('0' + i % 3)}, kind[3] = {'k', (char)('0' + i % 5)};
        assert_int_equal(add(f, fabric, kind, i, "t"), i);
    }
    compare_all(f, N); // nothing or a part is on disk: memory holds the rest
    assert_int_equal(db_flush(f->db), 0);
    add(f, "f1", "k1", 6001, "t"); // evicts what is written above the ring's size
    compare_all(f, N + 1);
    fix_reopen(f);
    compare_all(f, N + 1); // all on disk
}

static void cut_and_bounded(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    char *text = xcalloc(1, 70001);
    for (int i = 0; i < 35000; i++) // two bytes a character, off by one so that a cut would fall inside
        memcpy(text + 1 + i * 2, "\xc3\xa9", 2);
    text[0] = 'x';
    text[70000] = 0;
    struct db_event ev = {0, 1, text, text, "error", text, text, text};
    db_event_add(f->db, &ev);
    struct db_event none = {0};
    db_event_add(f->db, &none);
    for (int pass = 0; pass < 2; pass++) {
        query(f, (struct db_event_query){.limit = 1});
        assert_int_equal(strlen(seen.text), 4095);
        assert_memory_equal(seen.text, text, 4095);
        assert_int_equal(strlen(seen.kind), 255);
        assert_string_equal(seen.data, "{\"truncated\":true}");
        query(f, (struct db_event_query){.after_id = 1});
        assert_string_equal(seen.text, "");
        fix_reopen(f);
    }
    free(text);
}

static void bytes_that_are_no_text(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    add(f, "a", "k", 1, "\xff\x80\x01'; DROP TABLE event; --");
    fix_reopen(f);
    assert_int_equal(query(f, (struct db_event_query){0}), 1);
    assert_string_equal(seen.text, "\xff\x80\x01'; DROP TABLE event; --");
}

static void limits(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    for (int i = 0; i < 10500; i++)
        add(f, "a", "k", i, "t");
    db_flush(f->db);
    add(f, "a", "k", 1, "t");
    assert_int_equal(query(f, (struct db_event_query){.limit = -3}), 1);
    assert_int_equal(query(f, (struct db_event_query){.limit = 2000000000}), 10000);
}

static void retention(void **state)
{
    struct fix *f = *state;
    enum { N = 9000 };
    fix_open(f);
    for (int i = 1; i <= N; i++)
        add(f, "a", "k", i == 3 ? 1000000 : i, "t"); // the clock had jumped at the third
    db_event_prune(f->db, 7001);                     // also what is not written yet
    query(f, (struct db_event_query){.newest_first = true, .limit = 2000});
    assert_int_equal(seen.n, 2000);
    assert_int_equal(seen.id[1999], 7001);
    assert_int_equal(db_flush(f->db), 0);
    for (int pass = 0; pass < 2; pass++) {
        assert_int_equal(query(f, (struct db_event_query){0}), 2001);
        assert_int_equal(seen.id[0], 3);
        assert_int_equal(seen.id[1], 7001);
        fix_reopen(f);
    }
    assert_int_equal(add(f, "a", "k", 5, "older than the retention, but new"), N + 1);
    assert_int_equal(query(f, (struct db_event_query){0}), 2002);
    db_event_prune(f->db, INT64_MAX);
    fix_reopen(f); // closing does not wait for the retention: it goes on when asked again
    db_event_prune(f->db, INT64_MAX);
    assert_int_equal(db_flush(f->db), 0);
    assert_int_equal(query(f, (struct db_event_query){0}), 0);
    assert_int_equal(add(f, "a", "k", 5, ""), N + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(round_trip), T(filters_and_order), T(cut_and_bounded), T(bytes_that_are_no_text),
        T(limits),     T(retention),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
