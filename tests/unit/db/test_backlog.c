// SPDX-License-Identifier: Apache-2.0
// Merging what waits must give the same records as writing all of it.
#include "db/db_priv.h"
#include "lib/rng.h"
#include "tests/unit/db/dbtest.h"

enum { GUIDS = 12 };

// A model of the table without LMC: lid of each guid, 0 = none.
static void apply(uint16_t *table, const struct db_req *r)
{
    for (size_t i = 0; i < r->n; i++) {
        size_t g = r->lid[i].port_guid - G(0);
        for (size_t k = 0; k < GUIDS; k++) {
            if (table[k] == r->lid[i].lid)
                table[k] = 0;
        }
        table[g] = r->lid[i].lid;
    }
}

static void add_random(struct db_req_list *l, struct rng *r, unsigned lids)
{
    struct db_req *q = xcalloc(1, sizeof(*q));
    q->kind = DB_LIDS_PUT;
    q->fabric = xstrdup("a");
    q->n = rng_below(r, 5);
    q->lid = xcalloc(q->n + 1, sizeof(*q->lid));
    for (size_t i = 0; i < q->n; i++)
        q->lid[i] = (struct db_lid){G(rng_below(r, GUIDS)), (uint16_t)(1 + rng_below(r, lids)), 0};
    db_req_list_add(l, q);
}

static void run(struct db_req_list *l, uint16_t *table)
{
    for (const struct db_req *r = l->head; r; r = r->next)
        apply(table, r);
}

static void free_list(struct db_req_list *l)
{
    while (l->head) {
        struct db_req *r = l->head;
        l->head = r->next;
        db_req_free(r);
    }
}

static void same_result(void **state)
{
    struct rng r;
    rng_init(&r, 1);
    for (int round = 0; round < 2000; round++) {
        struct db_req_list l;
        uint16_t full[GUIDS] = {0}, merged[GUIDS] = {0};
        db_req_list_init(&l);
        for (unsigned n = rng_below(&r, 30); n; n--)
            add_random(&l, &r, round % 2 ? 10 : 1000);
        run(&l, full);
        db_backlog_compact(&l);
        run(&l, merged);
        size_t items = 0;
        for (const struct db_req *q = l.head; q; q = q->next)
            items += q->n;
        assert_true(items <= GUIDS);
        for (int g = 0; g < GUIDS; g++) {
            if (full[g]) // a record may stay that the full sequence had taken, never the reverse
                assert_int_equal(merged[g], full[g]);
            for (int k = 0; k < g; k++)
                assert_true(!merged[g] || merged[g] != merged[k]);
        }
        add_random(&l, &r, 10); // the list is still one that grows
        free_list(&l);
    }
}

static void blobs_keep_the_last(void **state)
{
    struct db_req_list l;
    db_req_list_init(&l);
    for (int i = 0; i < 9; i++) {
        struct db_req *q = xcalloc(1, sizeof(*q));
        q->kind = DB_BLOB_PUT;
        q->fabric = xstrdup("a");
        q->name = xstrdup(i % 2 ? "odd" : "even");
        q->data = xmalloc(1);
        *(char *)q->data = (char)i;
        q->n = 1;
        db_req_list_add(&l, q);
    }
    db_backlog_compact(&l);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.head->name, "odd");
    assert_int_equal(*(char *)l.head->data, 7);
    assert_string_equal(l.head->next->name, "even");
    assert_int_equal(*(char *)l.head->next->data, 8);
    free_list(&l);
}

static void nothing(void **state)
{
    struct db_req_list l;
    db_req_list_init(&l);
    db_backlog_compact(&l);
    assert_int_equal(l.n, 0);
    assert_true(l.tail == &l.head);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_result),
        cmocka_unit_test(blobs_keep_the_last),
        cmocka_unit_test(nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
