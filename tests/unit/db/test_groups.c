// SPDX-License-Identifier: Apache-2.0
// Multicast groups: rows are there after a reopen, one by one; what waits may be
// merged.
#include <errno.h>

#include "db/db_priv.h"
#include "lib/rng.h"
#include "tests/unit/db/dbtest.h"

static struct db_group row(unsigned group, uint64_t guid, uint8_t content)
{
    struct db_group g = {.mgid = {0xff, 0x12, (uint8_t)group}, .port_guid = guid};
    memset(g.record, content, sizeof(g.record));
    return g;
}

static int put(struct fix *f, const char *fabric, const struct db_group *g, size_t n)
{
    struct wait w = {0};
    db_groups_put(f->db, fabric, g, n, on_done, &w);
    return wait_for(f, &w);
}

// "group/guid=content …" as loaded.
static void expect(struct fix *f, const char *fabric, const char *text)
{
    struct db_group *g;
    char got[1000] = "";
    long n = db_groups_load(f->db, fabric, &g);
    assert_true(n >= 0);
    for (long i = 0; i < n; i++) {
        size_t at = strlen(got);
        snprintf(got + at, sizeof(got) - at, "%s%u/%llx=%u", i ? " " : "", g[i].mgid[2],
                 (unsigned long long)g[i].port_guid, g[i].record[DB_GROUP_RECORD - 1]);
    }
    free(g);
    assert_string_equal(got, text);
}

static void round_trip(void **state)
{
    struct fix *f = *state;
    fix_open(f);
    expect(f, "a", "");
    struct db_group g[] = {row(2, 0, 1), row(1, 9, 2), row(1, 0, 3), row(1, 0xffffffffffffffffULL, 4)};
    assert_int_equal(put(f, "a", g, 4), 0);
    assert_int_equal(put(f, "b", g, 1), 0);
    fix_reopen(f);
    expect(f, "a", "1/0=3 1/9=2 1/ffffffffffffffff=4 2/0=1");
    expect(f, "b", "2/0=1");
    expect(f, "c", "");
    struct db_group again = row(1, 9, 7);
    assert_int_equal(put(f, "a", &again, 1), 0);
    struct wait w = {0};
    db_groups_forget(f->db, "a", &g[2], 1, on_done, &w); // the group's own row, not its members'
    assert_int_equal(wait_for(f, &w), 0);
    db_groups_forget(f->db, "a", &g[2], 1, NULL, NULL); // what is not there
    assert_int_equal(db_flush(f->db), 0);
    fix_reopen(f);
    expect(f, "a", "1/9=7 1/ffffffffffffffff=4 2/0=1");
    expect(f, "b", "2/0=1");
}

static void refusals(void **state)
{
    struct fix *f = *state;
    char name[400];
    fix_open(f);
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    struct db_group g = row(1, 1, 1);
    assert_int_equal(put(f, name, &g, 1), -ENAMETOOLONG);
    struct wait w = {0};
    db_groups_put(f->db, "a", &g, (1 << 20) + 1, on_done, &w); // refused before it is looked at
    assert_int_equal(wait_for(f, &w), -E2BIG);
    assert_int_equal(put(f, "a", NULL, 0), 0);
    expect(f, "a", "");
}

// --- merging ---

enum { GROUPS = 3, PORTS = 4 };

static void apply(uint8_t table[GROUPS][PORTS], const struct db_req *r)
{
    for (size_t i = 0; r->group && i < r->n; i++)
        table[r->group[i].mgid[2]][r->group[i].port_guid] =
            r->kind == DB_GROUPS_PUT ? r->group[i].record[0] : 0;
}

static void run(const struct db_req_list *l, uint8_t table[GROUPS][PORTS])
{
    for (const struct db_req *r = l->head; r; r = r->next)
        apply(table, r);
}

static void merged(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 3);
    for (int round = 0; round < 500; round++) {
        struct db_req_list l;
        uint8_t full[GROUPS][PORTS] = {{0}}, less[GROUPS][PORTS] = {{0}};
        db_req_list_init(&l);
        for (unsigned n = rng_below(&r, 40); n; n--) {
            struct db_req *q = xcalloc(1, sizeof(*q));
            q->kind = rng_below(&r, 3) ? DB_GROUPS_PUT : DB_GROUPS_FORGET;
            q->fabric = xstrdup("a");
            if (rng_below(&r, 5) == 0) { // of another kind, in between
                q->kind = DB_LIDS_PUT;
                q->n = 1;
                q->lid = xcalloc(1, sizeof(*q->lid));
                q->lid[0] = (struct db_lid){G(1), 1, 0};
            } else {
                q->n = 1 + rng_below(&r, 3);
                q->group = xcalloc(q->n, sizeof(*q->group));
                for (size_t i = 0; i < q->n; i++)
                    q->group[i] =
                        row(rng_below(&r, GROUPS), rng_below(&r, PORTS), (uint8_t)(1 + rng_below(&r, 200)));
            }
            db_req_list_add(&l, q);
        }
        run(&l, full);
        db_backlog_compact(&l);
        run(&l, less);
        assert_memory_equal(full, less, sizeof(full));
        size_t rows = 0;
        for (const struct db_req *q = l.head; q; q = q->next)
            rows += q->group ? q->n : 0;
        assert_true(rows <= GROUPS * PORTS);
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
        cmocka_unit_test_setup_teardown(round_trip, fix_setup, fix_teardown),
        cmocka_unit_test_setup_teardown(refusals, fix_setup, fix_teardown),
        cmocka_unit_test(merged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
