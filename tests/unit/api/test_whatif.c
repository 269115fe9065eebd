// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/whatif.h"
#include "fabric/builder.h"
#include "fabric/topogen.h"
#include "lib/xalloc.h"

static const struct fabric *make(const char *name)
{
    struct err e = {0};
    const struct fabric *f = topogen_make(name, &e);
    if (f == NULL)
        fail_msg("%s: %s", name, e.text);
    return f;
}

static char **words(const char *a, const char *b, size_t *ret_n)
{
    char **w = xcalloc(3, sizeof(*w));
    *ret_n = (a != NULL) + (b != NULL);
    w[0] = a != NULL ? xstrdup(a) : NULL;
    w[1] = b != NULL ? xstrdup(b) : NULL;
    return w;
}

// The answer, or NULL and *e.
static json_t *ask(const struct fabric *f, const char *fail, const char *drain, const char *add,
                   struct err *e)
{
    struct computation c = {.f = f, .engine = ROUTE_AUTO, .whatif = true};
    c.fail = words(fail, NULL, &c.num_fail);
    c.drain = words(drain, NULL, &c.num_drain);
    c.add = words(add, NULL, &c.num_add);
    compute_run(&c, &par_serial);
    json_t *j = c.err.code == 0 ? json_loads(c.result.data, 0, NULL) : NULL;
    assert_true(j != NULL || c.err.code != 0);
    *e = c.err;
    compute_done(&c);
    return j;
}

static json_int_t integer(json_t *j, const char *a, const char *b)
{
    json_t *v = json_object_get(json_object_get(j, a), b);
    assert_true(json_is_integer(v));
    return json_integer_value(v);
}

static const char *verdict(json_t *j)
{
    return json_string_value(json_object_get(j, "verdict"));
}

static void test_answers(void **state)
{
    const struct fabric *f = make("rail-256");
    struct err e;
    (void)state;
    json_t *j = ask(f, "spine-01", NULL, NULL, &e);
    assert_string_equal(verdict(j), "safe");
    assert_int_equal(integer(j, "asked", "failed_nodes"), 1);
    assert_true(json_is_null(json_object_get(j, "accepted")));
    json_decref(j);
    j = ask(f, "leaf-su01-rail0", "spine-01", NULL, &e);
    assert_string_equal(verdict(j), "cuts-off");
    assert_int_equal(integer(j, "reach", "ends_cut_off"), 32);
    // Cables to the dead leaf are not drained but dead.
    assert_int_equal(integer(j, "asked", "drained_links"), integer(j, "drained", "links"));
    json_decref(j);
    j = ask(f, NULL, "leaf-su01-rail0", NULL, &e);
    assert_string_equal(verdict(j), "drained-in-vain");
    assert_int_equal(integer(j, "drained", "ends_in_vain"), 32);
    assert_int_equal(integer(j, "reach", "ends_cut_off"), 0);
    json_decref(j);
    // Everything fails, nothing is left: still an answer.
    j = ask(f, "*", NULL, NULL, &e);
    assert_non_null(j);
    assert_int_equal(integer(j, "reach", "ends_after"), 0);
    assert_int_equal(integer(j, "reach", "ends_cut_off"), 0);
    json_decref(j);
    j = ask(f, "role=leaf|spine", NULL, NULL, &e);
    assert_string_equal(verdict(j), "cuts-off");
    assert_int_equal(integer(j, "reach", "pairs_after"), 0);
    json_decref(j);
    assert_null(ask(f, "nobody", NULL, NULL, &e));
    assert_string_equal(e.where, "nobody");
    fabric_unref(f);
}

// What is lost counts as 0, once: a pattern of which nothing is left, one with less, one that never was.
static void test_means(void **state)
{
    struct route_quality before = {.shift = {.flows = 10, .mean = 0.8, .sum = 8},
                                   .ring = {.flows = 4, .mean = 1, .sum = 4},
                                   .slot_shift = {.absent = "none"},
                                   .permutation = {.flows = 6, .failed = 2, .mean = 1, .sum = 6},
                                   .alltoall = {.flows = 12, .mean = 0.5}};
    struct route_quality after = {.shift = {.flows = 4, .failed = 1, .mean = 0.9, .sum = 2},
                                  .ring = {.absent = "none"},
                                  .slot_shift = {.absent = "none"},
                                  .permutation = {.flows = 8, .mean = 0.7, .sum = 6},
                                  .alltoall = {.flows = 6, .mean = 1}};
    struct whatif_mean m[WHATIF_MEANS];
    (void)state;
    whatif_means(&before, &after, NULL, true, m);
    assert_string_equal(m[3].pattern, "shift");
    assert_true(m[3].before == 0.8 && m[3].after == 0.2 && m[3].failed == 6 &&
                m[3].accepted != m[3].accepted);
    assert_true(m[2].before == 1 && m[2].after == 0 && m[2].failed == 4);
    assert_true(m[1].before != m[1].before && m[1].after != m[1].after && m[1].failed == 0);
    assert_true(m[4].before == 0.75 && m[4].after == 0.7 && m[4].failed == 0);
    assert_true(m[5].before == 0.5 && m[5].after == 0.5 && m[5].failed == 6);
    // Ends that fail themselves are missed by nobody.
    whatif_means(&before, &after, &before, false, m);
    assert_true(m[3].after == 0.4 && m[3].failed == 1 && m[3].accepted == 0.8);
    assert_true(m[2].after != m[2].after && m[5].after == 1 && m[5].failed == 0);
}

// A graph without tiers, one without cables, one without switches.
static void test_odd_fabrics(void **state)
{
    struct err e;
    (void)state;
    for (unsigned shape = 0; shape < 3; shape++) {
        struct builder *b = builder_new();
        node_id n[4];
        for (unsigned i = 0; i < 4; i++) {
            struct node_attrs a = {.guid = i + 1, .type = shape == 2 ? NODE_CA : NODE_SWITCH, .num_ports = 8};
            char name[3] = {'n', (char)('0' + i), 0};
            assert_int_equal(builder_node(b, &a, name, 2, &n[i], NULL), 0);
        }
        for (unsigned i = 0; i < 4 && shape == 0; i++) // a ring
            assert_int_equal(builder_link(b, n[i], 1, n[(i + 1) % 4], 2), 0);
        if (shape == 2)
            assert_int_equal(builder_link(b, n[0], 1, n[1], 1), 0);
        const struct fabric *f = builder_seal(b, 1, NULL);
        json_t *j = ask(f, "n0", NULL, NULL, &e);
        if (j == NULL && e.text[0] == 0)
            fail_msg("shape %u: no answer and no word", shape);
        if (shape == 0)
            assert_string_equal(verdict(j), "safe");
        json_decref(j);
        j = ask(f, NULL, "*", NULL, &e);
        assert_true(j != NULL || e.text[0] != 0);
        json_decref(j);
        j = ask(f, NULL, NULL, "su", &e);
        assert_true(j == NULL && e.code == -ENOENT);
        j = ask(f, NULL, NULL, "link:n0[7]-n2[7]", &e);
        assert_true(j != NULL || e.text[0] != 0);
        json_decref(j);
        fabric_unref(f);
    }
}

// LIDs of what the blueprint knows stay its own; when there are no others, that is said.
static void test_lids_are_kept_or_run_out(void **state)
{
    const struct fabric *bare = make("rail-64");
    struct err e = {0};
    (void)state;
    for (unsigned all = 0; all < 2; all++) {
        struct builder *b = builder_new();
        for (unsigned i = all ? 0 : 1; i < 384; i++) {
            struct node_attrs a = {.guid = i + 1, .type = NODE_CA, .num_ports = 1};
            struct port_attrs p = {.lid = (uint16_t)(i ? i * 128 : 1), .lmc = 7};
            node_id n;
            assert_int_equal(builder_node(b, &a, "x", 1, &n, NULL), 0);
            builder_port(b, n, 1, &p);
        }
        const struct fabric *reserved = builder_seal(b, 1, NULL);
        e = (struct err){0};
        const struct fabric *f = compute_number(bare, reserved, &e);
        if (all) {
            assert_null(f);
            assert_int_equal(e.code, -ENOSPC);
        } else {
            assert_non_null(f);
            assert_true(f->top_lid < 128);
        }
        fabric_unref(f);
        fabric_unref(reserved);
    }
    fabric_unref(bare);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_means),
        cmocka_unit_test(test_odd_fabrics),
        cmocka_unit_test(test_lids_are_kept_or_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
