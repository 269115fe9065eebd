// SPDX-License-Identifier: Apache-2.0
// The focus language on rows of a schema; the greatest of many values.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/sieve.h"
#include "api/top.h"
#include "lib/guid.h"
#include "lib/mono.h"
#include "lib/rng.h"
#include "lib/word.h"

struct far {
    const char *name;
    int64_t port;
};
static const struct field far_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = offsetof(struct far, name), ""},
    {.name = "port", .type = FIELD_INT, .at = offsetof(struct far, port), ""},
    {0},
};
static const struct schema schema_far = {.name = "far", "", sizeof(struct far), far_fields};
struct row {
    const char *name;
    int64_t rail, at;
    double held;
    uint64_t guid;
    bool up;
    const struct far *peer;
};
static const struct field row_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = offsetof(struct row, name), ""},
    {.name = "rail", .type = FIELD_INT, .at = offsetof(struct row, rail), ""},
    {.name = "at", .type = FIELD_TIME, .at = offsetof(struct row, at), ""},
    {.name = "held", .type = FIELD_NUM, .at = offsetof(struct row, held), ""},
    {.name = "guid", .type = FIELD_GUID, .at = offsetof(struct row, guid), ""},
    {.name = "up", .type = FIELD_BOOL, .at = offsetof(struct row, up), ""},
    {.name = "peer", .type = FIELD_OBJ, .at = offsetof(struct row, peer), "", &schema_far},
    {0},
};
static const struct schema schema_row = {.name = "row", "", sizeof(struct row), row_fields};

static const struct far peer = {"spine-01", 7};
static const struct row full = {.name = "leaf-1",
                                .rail = 3,
                                .at = 1700000000000000000,
                                .held = 0.12,
                                .guid = 0x8f1,
                                .up = true,
                                .peer = &peer};
static const struct row empty = {.name = "", .rail = NO_INT, .held = NAN};

static bool called(const void *row, const void *end, const char *word)
{
    char guid[GUID_STR_SIZE];
    const struct row *x = row;
    (void)end;
    return word_glob(word, x->name) || word_glob(word, guid_str(x->guid, guid));
}

static struct sieve *row_sieve(const char *text, struct err *e)
{
    return sieve_new_of(text, &(struct sieve_rows){.row = &schema_row, .named = called}, e);
}

static bool hit(const char *text, const struct row *row)
{
    struct err e = {0};
    struct sieve *s = row_sieve(text, &e);
    if (s == NULL)
        fail_msg("%s: %s", text, e.text);
    bool m = sieve_has(s, row);
    sieve_free(s);
    return m;
}

static void test_fields(void **state)
{
    static const char *const yes[] = {
        "rail=3",         "rail>2",        "held>5%",        "held<0.13",
        "up=yes",         "leaf-*",        "0x*8f1",         "guid=0x00000000000008f1",
        "peer.port=7",    "peer.name~^sp", "at=2023-11-14*", "name=leaf-1 rail=3",
        "not peer.port=8"};
    static const char *const no[] = {"rail=4",     "held>12%",    "up=no",    "spine-01",
                                     "guid=0x8f1", "peer.port>7", "rail=none"};
    (void)state;
    for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++)
        if (!hit(yes[i], &full))
            fail_msg("%s", yes[i]);
    for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
        if (hit(no[i], &full))
            fail_msg("%s", no[i]);
}

static void test_nothing(void **state)
{
    static const char *const none[] = {"rail", "at", "held", "guid", "peer.name", "peer.port"};
    char text[60];
    (void)state;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        snprintf(text, sizeof(text), "%s=none", none[i]);
        assert_true(hit(text, &empty));
        assert_false(hit(text, &full));
        snprintf(text, sizeof(text), "%s>0", none[i]);
        assert_false(hit(text, &empty));
    }
    assert_true(sieve_has(NULL, &empty));
}

static void test_refused(void **state)
{
    struct err e = {0};
    (void)state;
    assert_null(row_sieve("rial=3", &e));
    assert_non_null(strstr(e.text, "did you mean \"rail\"?"));
    assert_null(row_sieve("peer=3", &e)); // an object has no value
    assert_null(row_sieve("", &e));
    assert_null(row_sieve("held>12", &e));
    assert_non_null(strstr(e.text, "12% for a percentage"));
    assert_null(row_sieve("up=maybe", &e));
    assert_non_null(strstr(e.text, "it is one of: yes, no"));
    assert_null(row_sieve("rail=red", &e));
}

// --- rows with ends ---

struct two {
    const char *name;
    int64_t id;
};
static const struct field two_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = offsetof(struct two, name), ""},
    {.name = "id", .type = FIELD_INT, .at = offsetof(struct two, id), ""},
    {0},
};
static const struct schema schema_two = {.name = "two", "", sizeof(struct two), two_fields};

static bool named(const void *row, const void *end, const char *word)
{
    const struct two *x = row;
    const struct far *e = end;
    return strcmp(word, x->name) == 0 || (e != NULL && strcmp(word, e->name) == 0);
}

// Fields of the row and of one end at a time; which of two fields of one name is meant is said.
static void test_ends(void **state)
{
    static const struct two link = {"cable", 9};
    struct sieve_rows rows = {.row = &schema_two, .end = &schema_far, .named = named};
    static const struct {
        const char *text;
        unsigned end_first;
        bool hit;
    } t[] = {{"name=spine-01 id=9", 1, true}, {"name=cable", 1, false},        {"name=cable", 0, true},
             {"name=spine-01", 0, false},     {"port=7 cable", 1, true},       {"spine-01 id=9", 0, true},
             {"spine-01 id=8", 0, false},     {"not spine-02 port=7", 9, true}};
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        rows.end_first = t[i].end_first;
        struct sieve *s = sieve_new_of(t[i].text, &rows, &e);
        assert_non_null(s);
        if (sieve_has_end(s, &link, &peer) != t[i].hit)
            fail_msg("%s", t[i].text);
        sieve_free(s);
    }
    struct sieve *s = sieve_new_of("a or (not b|c) id=1", &rows, &e);
    unsigned n = 0;
    while (sieve_bare(s, n) != NULL)
        n++;
    assert_int_equal(n, 3);
    assert_false(sieve_has(s, &link)); // an end that is not known has no values
    sieve_free(s);
}

// Objects within objects; ages; which parts of an end are asked for.
struct outer {
    const struct row *in;
    int64_t since;
};
static const struct field outer_fields[] = {
    {.name = "in", .type = FIELD_OBJ, .at = offsetof(struct outer, in), "", &schema_row},
    {.name = "since", .type = FIELD_TIME, .at = offsetof(struct outer, since), ""},
    {0},
};
static const struct schema schema_outer = {.name = "outer", "", sizeof(struct outer), outer_fields};

static unsigned part(const struct field *const *way)
{
    return way[1] == NULL ? 1 : strcmp(way[1]->name, "held") == 0 ? 2 : 4;
}

static void test_parts(void **state)
{
    struct outer end = {.in = &full, .since = wall_now_ns() - 600 * MONO_S};
    static const struct two link = {"cable", 9};
    struct sieve_rows rows = {.row = &schema_two, .end = &schema_outer, .named = named, .part = part};
    static const struct {
        const char *text;
        unsigned parts;
        bool hit;
    } t[] = {{"in.peer.name=spine-01 id=9", 4, true},
             {"in.peer.port>7", 4, false},
             {"in.held>5%", 2, true},
             {"since>9m since<11m", 1, true},
             {"since>11m or in.held<1%", 3, false},
             {"in.at>1h", 4, true},
             {"id=9", 0, true}};
    struct err e = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct sieve *s = sieve_new_of(t[i].text, &rows, &e);
        if (s == NULL)
            fail_msg("%s: %s", t[i].text, e.text);
        if (sieve_parts(s) != t[i].parts || sieve_has_end(s, &link, &end) != t[i].hit)
            fail_msg("%s: %u", t[i].text, sieve_parts(s));
        sieve_free(s);
    }
    assert_null(sieve_new_of("age>1h", &rows, &e)); // there is no word for it
    rows = (struct sieve_rows){.row = &schema_outer, .since = "since"};
    struct sieve *s = sieve_new_of("age=9m..11m", &rows, &e);
    assert_non_null(s);
    assert_true(sieve_has(s, &end));
    end.since = 0;
    assert_false(sieve_has(s, &end));
    sieve_free(s);
}

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x > y ? -1 : x < y;
}

// The same as sorting them all would say.
static void test_greatest(void **state)
{
    struct rng r;
    (void)state;
    rng_init(&r, 5);
    for (int round = 0; round < 300; round++) {
        uint32_t n = 1 + rng_below(&r, 400), most = 1 + rng_below(&r, 60), above = 0;
        double *v = calloc(n, sizeof(*v)), *sorted = calloc(n, sizeof(*v));
        struct top_one *one = calloc(most, sizeof(*one));
        for (uint32_t i = 0; i < n; i++) {
            v[i] = rng_below(&r, 5) == 0 ? (double)NAN : (double)rng_below(&r, 100) - 20;
            if (v[i] > 0)
                sorted[above++] = v[i];
        }
        qsort(sorted, above, sizeof(*sorted), descending);
        uint32_t got = top_select(v, n, most, one);
        assert_int_equal(got, above < most ? above : most);
        for (uint32_t i = 0; i < got; i++) {
            assert_true(one[i].value == sorted[i] && v[one[i].slot] == one[i].value);
            for (uint32_t k = 0; k < i; k++)
                assert_int_not_equal(one[k].slot, one[i].slot);
        }
        free(v);
        free(sorted);
        free(one);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fields),  cmocka_unit_test(test_nothing),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_ends),
                                       cmocka_unit_test(test_parts),   cmocka_unit_test(test_greatest)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
