// SPDX-License-Identifier: Apache-2.0
// Alarms and silences: rows come back as they were, ids are never given twice, what waits for the disk may be
// merged, an older file gets the tables.
#include <errno.h>
#include <sqlite3.h>

#include "db/db_priv.h"
#include "lib/rng.h"
#include "tests/unit/db/dbtest.h"

static struct db_alarm alarm_of(uint64_t id)
{
    return (struct db_alarm){.id = id,
                             .fabric = "a",
                             .rule = "L06",
                             .subject = "0x1/2",
                             .place = "leaf-1/44 <-> spine-5/55",
                             .peer = "spine-5",
                             .cable = "MT22\"1'",
                             .reason = "11 errors",
                             .evidence = "{\"n\":11}",
                             .acked_by = "anna",
                             .advice = "replace",
                             .grouping = "g\th",
                             .leader = id + 1,
                             .group = true,
                             .acked = true,
                             .severity = 2,
                             .since_wall_ns = 1000 + (int64_t)id,
                             .last_wall_ns = 2000,
                             .cleared_wall_ns = 3000,
                             .count = 1ull << 40,
                             .node_guid = {0xfedcba9876543210ull, 0xffffffffffffffffull},
                             .port = {44, 255}};
}

static int put(struct fix *f, const struct db_alarm *a)
{
    struct wait w = {0};
    db_alarm_put(f->db, a, on_done, &w);
    return wait_for(f, &w);
}

struct got {
    char text[4000];
    struct db_alarm want; // fields besides id and since are compared when id is set
};

static void one(void *arg, const struct db_alarm *a)
{
    struct got *g = arg;
    size_t at = strlen(g->text);
    snprintf(g->text + at, sizeof(g->text) - at, "%s%llu:%s", at ? " " : "", (unsigned long long)a->id,
             a->reason);
    if (g->want.id != a->id)
        return;
    const struct db_alarm *w = &g->want;
    assert_string_equal(a->fabric, w->fabric);
    assert_string_equal(a->rule, w->rule);
    assert_string_equal(a->subject, w->subject);
    assert_string_equal(a->place, w->place);
    assert_string_equal(a->peer, w->peer);
    assert_string_equal(a->cable, w->cable);
    assert_string_equal(a->evidence, w->evidence);
    assert_string_equal(a->acked_by, w->acked_by);
    assert_string_equal(a->ack_note, w->ack_note ? w->ack_note : "");
    assert_string_equal(a->advice, w->advice);
    assert_string_equal(a->grouping, w->grouping);
    assert_true(a->leader == w->leader && a->group == w->group && a->acked == w->acked);
    assert_int_equal(a->severity, w->severity);
    assert_true(a->since_wall_ns == w->since_wall_ns && a->last_wall_ns == w->last_wall_ns &&
                a->cleared_wall_ns == w->cleared_wall_ns && a->count == w->count);
    assert_memory_equal(a->node_guid, w->node_guid, sizeof(a->node_guid));
    assert_memory_equal(a->port, w->port, sizeof(a->port));
}

static void expect(struct fix *f, const char *text)
{
    struct got g = {.want = alarm_of(7)};
    assert_true(db_alarms_load(f->db, one, &g) >= 0);
    assert_string_equal(g.text, text);
}

static void round_trip(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    expect(f, "");
    struct db_alarm a = alarm_of(7), b = alarm_of(3), empty = {.id = 9};
    assert_int_equal(put(f, &a), 0);
    assert_int_equal(put(f, &b), 0);
    assert_int_equal(put(f, &empty), 0);
    fix_reopen(f);
    expect(f, "3:11 errors 7:11 errors 9:");
    b.reason = "12 errors";
    assert_int_equal(put(f, &b), 0);
    db_alarm_forget(f->db, 9, NULL, NULL);
    db_alarm_forget(f->db, 1000, NULL, NULL);
    assert_int_equal(db_flush(f->db), 0);
    fix_reopen(f);
    expect(f, "3:12 errors 7:11 errors");
}

static void silence_row(void *arg, const struct db_silence *s)
{
    char *text = arg;
    sprintf(text + strlen(text), "%llu %s %s %s %s %lld-%lld %d;", (unsigned long long)s->id, s->focus,
            s->rule, s->owner, s->reason, (long long)s->from_wall_ns, (long long)s->until_wall_ns,
            s->maintenance);
}

static void silences(void **state)
{
    struct fix *f = *state;
    char text[1000] = "";
    fix_open(f);
    struct db_silence s = {4, "leaf-*", "L01", "anna", "swap", 5, 6, true},
                      t = {5, NULL, NULL, "bo", "x", 7, 8, false};
    db_silence_put(f->db, &s, NULL, NULL);
    db_silence_put(f->db, &t, NULL, NULL);
    db_silence_put(f->db, &(struct db_silence){.id = 6, .owner = "c"}, NULL, NULL);
    db_silence_forget(f->db, 6, NULL, NULL);
    assert_int_equal(db_flush(f->db), 0);
    fix_reopen(f);
    assert_int_equal(db_silences_load(f->db, silence_row, text), 2);
    assert_string_equal(text, "4 leaf-* L01 anna swap 5-6 1;5   bo x 7-8 0;");
}

static void ids(void **state)
{
    struct fix *f = *state;
    uint64_t last = 99;
    fix_open(f);
    assert_int_equal(db_alarm_last_id(f->db, &last), 0);
    assert_int_equal(last, 0);
    db_alarm_reserve(f->db, 1024, NULL, NULL);
    struct db_alarm a = alarm_of(7);
    assert_int_equal(put(f, &a), 0);
    assert_int_equal(db_alarm_last_id(f->db, &last), 0);
    assert_int_equal(last, 1024);
    a.id = 2000; // beyond what was reserved, as after a write that failed
    assert_int_equal(put(f, &a), 0);
    fix_reopen(f);
    assert_int_equal(db_alarm_last_id(f->db, &last), 0);
    assert_int_equal(last, 2000);
    struct db_event ev = {.kind = "k"}; // events have a sequence of their own
    assert_int_equal(db_event_add(f->db, &ev), 1);
}

static void refusals(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    struct db_alarm a = alarm_of(0);
    assert_int_equal(put(f, &a), -EINVAL);
    a.id = 1ull << 63;
    assert_int_equal(put(f, &a), -EINVAL);
    char *big = xmalloc(8194);
    memset(big, 'x', 8193);
    big[8193] = 0;
    a.id = 5;
    a.reason = big;
    assert_int_equal(put(f, &a), -ENAMETOOLONG);
    big[8192] = 0;
    assert_int_equal(put(f, &a), 0);
    struct wait w = {0};
    db_silence_put(f->db, &(struct db_silence){.id = 0, .owner = "a"}, on_done, &w);
    assert_int_equal(wait_for(f, &w), -EINVAL);
    db_silence_put(f->db, &(struct db_silence){.id = 1, .reason = "", .owner = "a"}, on_done, &w);
    assert_int_equal(wait_for(f, &w), 0);
    free(big);
}

static void sql(struct fix *f, const char *text)
{
    char *path = fix_path(f, "meta.db"), *msg = NULL;
    sqlite3 *c;
    assert_int_equal(sqlite3_open(path, &c), SQLITE_OK);
    if (sqlite3_exec(c, text, NULL, NULL, &msg) != SQLITE_OK)
        fail_msg("%s", msg);
    sqlite3_close(c);
    free(path);
}

static void older_file_gets_the_tables(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    struct db_lid l = {G(5), 5, 0};
    assert_int_equal(put_lids(f, "a", &l, 1), 0);
    db_close(f->db);
    f->db = NULL;
    sql(f, "DROP TABLE alarm; DROP TABLE silence; PRAGMA user_version = 3");
    fix_open(f);
    assert_false(f->rep.set_aside);
    assert_int_equal(f->rep.migrated_from, 3);
    struct db_alarm a = alarm_of(7);
    assert_int_equal(put(f, &a), 0);
    expect(f, "7:11 errors");
    expect_lids(f, "a", "5/0=5");
}

static void rows_that_are_none(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    struct db_alarm a = alarm_of(7);
    assert_int_equal(put(f, &a), 0);
    db_close(f->db);
    f->db = NULL;
    sql(f,
        "PRAGMA ignore_check_constraints = 1;"
        "INSERT INTO alarm SELECT -1, fabric, rule, subject, place, peer, cable, reason, evidence, acked_by, "
        "ack_note, advice, grouping, leader, is_group, severity, since_ns, last_ns, cleared_ns, count, "
        "acked, "
        "guid_a, guid_b, port_a, port_b FROM alarm WHERE id = 7;"
        "INSERT INTO alarm SELECT 8, fabric, rule, subject, place, peer, cable, reason, evidence, acked_by, "
        "ack_note, advice, grouping, leader, is_group, severity, since_ns, last_ns, cleared_ns, count, "
        "acked, "
        "guid_a, guid_b, 256, port_b FROM alarm WHERE id = 7;"
        "INSERT INTO alarm SELECT 10, x'ff00ff', zeroblob(3), subject, place, peer, cable, reason, evidence, "
        "acked_by, ack_note, advice, grouping, 'q', is_group, severity, since_ns, last_ns, cleared_ns, "
        "count, "
        "acked, guid_a, guid_b, port_a, port_b FROM alarm WHERE id = 7");
    fix_open(f);
    assert_false(f->rep.set_aside);
    expect(f, "7:11 errors 10:11 errors");
}

// --- merging what waits ---

enum { IDS = 5 };

static void apply(int table[2][IDS], const struct db_req *r)
{
    if (r->kind == DB_ALARM_PUT || r->kind == DB_ALARM_FORGET)
        table[0][r->id] = r->alarm ? (int)r->alarm->count : 0;
    if (r->kind == DB_SILENCE_PUT || r->kind == DB_SILENCE_FORGET)
        table[1][r->id] = r->silence ? (int)r->silence->until_wall_ns : 0;
    if (r->kind == DB_ALARM_RESERVE)
        table[0][0] = (int)r->id;
    if (r->kind == DB_BLOB_PUT)
        table[1][0] = (int)r->n;
}

static struct db_req *random_req(struct rng *r)
{
    struct db_req *q = xcalloc(1, sizeof(*q));
    q->fabric = xstrdup("");
    q->id = 1 + rng_below(r, IDS - 1);
    switch (rng_below(r, 6)) {
    case 0:
    case 1:
        q->kind = DB_ALARM_PUT;
        q->alarm = xcalloc(1, sizeof(*q->alarm));
        *q->alarm = (struct db_alarm){.id = q->id,
                                      .fabric = xstrdup(""),
                                      .reason = "",
                                      .evidence = "",
                                      .count = 1 + rng_below(r, 1000)};
        break;
    case 2:
        q->kind = DB_ALARM_FORGET;
        break;
    case 3:
        q->kind = DB_SILENCE_PUT;
        q->silence = xcalloc(1, sizeof(*q->silence));
        *q->silence = (struct db_silence){
            .id = q->id, .focus = xstrdup(""), .reason = "", .until_wall_ns = 1 + rng_below(r, 1000)};
        break;
    case 4:
        q->kind = rng_below(r, 2) ? DB_SILENCE_FORGET : DB_ALARM_RESERVE;
        break;
    default:
        q->kind = DB_BLOB_PUT;
        q->name = xstrdup("b");
        q->n = 1 + rng_below(r, 9);
        q->data = xmalloc(q->n);
        memset(q->data, 1, q->n);
        break;
    }
    return q;
}

static void merged(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 5);
    for (int round = 0; round < 500; round++) {
        struct db_req_list l;
        int full[2][IDS] = {{0}}, less[2][IDS] = {{0}};
        size_t rows = 0;
        db_req_list_init(&l);
        for (unsigned n = rng_below(&r, 60); n; n--)
            db_req_list_add(&l, random_req(&r));
        for (const struct db_req *q = l.head; q; q = q->next)
            apply(full, q);
        db_backlog_compact(&l);
        for (const struct db_req *q = l.head; q; q = q->next, rows++)
            apply(less, q);
        assert_memory_equal(full, less, sizeof(full));
        assert_true(rows <= 2 * IDS);
        while (l.head) {
            struct db_req *q = l.head;
            l.head = q->next;
            db_req_free(q);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(round_trip),
        T(silences),
        T(ids),
        T(refusals),
        T(older_file_gets_the_tables),
        T(rows_that_are_none),
        cmocka_unit_test(merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
