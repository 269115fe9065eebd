// SPDX-License-Identifier: Apache-2.0
// Silences and windows of maintenance: what they cover, when they begin and end, what is refused, what is
// left of them after a restart.
#include "tests/unit/telemetry/alarmtest.h"

#include <errno.h>

static void silences(void **state)
{
    struct fix *f = *state;
    up(f, "L06", "0x11/44", ALARM_MAJOR, "r");
    pass(f, 2 * S);
    unsigned told = f->change[ALARM_SILENCED];
    uint64_t id = silence(f, "leaf-1", "", 10 * MIN, false);
    assert_string_equal(last_note(f)->kind, "silence-begun");
    assert_int_equal(silence_of(f, "0x11/44"), id);
    assert_int_equal(f->change[ALARM_SILENCED], told + 1);
    up(f, "L13", "0x11/44b", ALARM_MINOR, "r"); // later ones too
    assert_int_equal(silence_of(f, "0x11/44b"), id);
    struct alarms_count c;
    alarms_count(f->a, "fab", &c);
    assert_true(c.silenced == 2 && c.major == 0 && c.minor == 0);
    const struct alarm_silence *list;
    assert_int_equal(alarm_silences(f->a, &list), 1);
    assert_true(list[0].id == id && list[0].from_wall_ns > 0 && strcmp(list[0].owner, "anna") == 0);
    pass(f, 9 * MIN + 30 * S);
    assert_int_equal(silence_of(f, "0x11/44"), id);
    pass(f, MIN);
    assert_int_equal(silence_of(f, "0x11/44"), 0);
    assert_int_equal(alarm_silences(f->a, &list), 0);
    assert_int_equal(notes(f, "silence-ended"), 1);
    assert_int_equal(alarm_silence_end(f->a, id, "bo"), -ENOENT);
    id = silence(f, "", "L06", MIN, false); // by rule
    assert_int_equal(silence_of(f, "0x11/44"), id);
    assert_int_equal(silence_of(f, "0x11/44b"), 0);
    assert_int_equal(alarm_silence_end(f->a, id, "bo"), 0);
    assert_int_equal(silence_of(f, "0x11/44"), 0);
    assert_non_null(strstr(last_note(f)->data, "\"by\":\"bo\""));
}

// A group is silenced when all that it has taken in is.
static void silence_of_members(void **state)
{
    struct fix *f = *state;
    const char *group = "0x0000000000000999";
    for (unsigned i = 1; i <= 3; i++)
        link_of(f, "L01", i, "spine-9");
    pass(f, 2 * S);
    silence(f, "leaf-1", "", 10 * MIN, false);
    assert_int_equal(silence_of(f, group), 0);
    silence(f, "leaf-2", "", 10 * MIN, false);
    assert_int_equal(silence_of(f, group), 0);
    silence(f, "leaf-3", "", 10 * MIN, false);
    assert_true(silence_of(f, group) != 0);
    link_of(f, "L01", 4, "spine-9"); // and one that is not
    assert_int_equal(silence_of(f, group), 0);
}

static void what_a_focus_covers(void **state)
{
    struct fix *f = *state;
    static const struct {
        const char *focus;
        bool covers;
    } row[] = {
        {"", true},           {"leaf-1", true},    {"leaf-1/44", true},      {"leaf-*", true},
        {"spine-5/55", true}, {"spine-?", true},   {"leaf-2", false},        {"leaf", false},
        {"leaf-1/4", false},  {"0x11", true},      {"0x11/44", true},        {"0x11/55", false},
        {"0x55/55", true},    {"0x5", false},      {"0x12", false},          {"0x0000000000000055", true},
        {"0x11/x", false},    {"spine-5/*", true}, {"leaf-1/44 <->", false}, {"11", false},
    };
    up(f, "L06", "s", ALARM_MAJOR, "r");
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        uint64_t id = silence(f, row[i].focus, "", MIN, false);
        if ((silence_of(f, "s") == id) != row[i].covers)
            fail_msg("focus \"%s\"", row[i].focus);
        alarm_silence_end(f->a, id, "t");
    }
}

static void refused_silences(void **state)
{
    struct fix *f = *state;
    struct err e;
    int64_t now = wall(f);
    struct alarm_silence s = {.focus = "", .owner = "a", .reason = "r", .until_wall_ns = now + MIN}, t;
#define REFUSED(change)                                                                                      \
    do {                                                                                                     \
        t = s;                                                                                               \
        change;                                                                                              \
        memset(&e, 0, sizeof(e));                                                                            \
        assert_int_equal(alarm_silence_add(f->a, &t, &e), 0);                                                \
        assert_true(e.code < 0 && e.text[0]);                                                                \
    } while (0)
    REFUSED(t.owner = "");
    REFUSED(t.owner = NULL);
    REFUSED(t.reason = "");
    REFUSED(t.until_wall_ns = now - MIN);
    REFUSED(t.until_wall_ns = 0);
    REFUSED(t.until_wall_ns = now + 367 * 86400 * S);
    REFUSED(t.rule = "L99");
    REFUSED(t.from_wall_ns = now + 2 * MIN);
    for (unsigned i = 0; i < ALARM_SILENCES_MAX; i++)
        assert_true(alarm_silence_add(f->a, &s, &e) > 0);
    REFUSED(t.owner = "b");
}

static void later_silence(void **state)
{
    struct fix *f = *state;
    struct err e;
    up(f, "L06", "s", ALARM_MAJOR, "r");
    int64_t now = nth(f, 0)->last_wall_ns;
    struct alarm_silence s = {
        .owner = "a", .reason = "r", .from_wall_ns = now + 10 * MIN, .until_wall_ns = now + 20 * MIN};
    uint64_t id = alarm_silence_add(f->a, &s, &e);
    assert_int_equal(silence_of(f, "s"), 0);
    pass(f, 9 * MIN);
    assert_int_equal(silence_of(f, "s"), 0);
    assert_int_equal(notes(f, "silence-begun"), 0);
    pass(f, 90 * S);
    assert_int_equal(silence_of(f, "s"), id);
    assert_int_equal(notes(f, "silence-begun"), 1);
}

static void maintenance(void **state)
{
    struct fix *f = *state;
    uint64_t id = silence(f, "spine-9", "", 30 * MIN, true);
    for (unsigned i = 0; i < 10; i++)
        link_of(f, "L01", i, "spine-9");
    assert_int_equal(listed(f), 2);
    assert_int_equal(silence_of(f, "0x0000000000000999"), id); // the group
    up(f, "L06", "0x11/44", ALARM_MAJOR, "elsewhere");
    assert_int_equal(silence_of(f, "0x11/44"), 0);
    pass(f, 25 * MIN);
    for (unsigned i = 0; i < 9; i++)
        link_up(f, "L01", i);
    pass(f, 10 * MIN);
    assert_int_equal(notes(f, "maintenance-ended"), 1);
    for (unsigned i = 0; i < f->num_notes; i++) {
        if (strcmp(f->note[i].kind, "maintenance-ended") != 0)
            continue;
        assert_string_equal(f->note[i].severity, "warning");
        assert_non_null(strstr(f->note[i].text, "1 have not come back: L01"));
        assert_non_null(strstr(f->note[i].data, "\"standing\":1"));
    }
    id = silence(f, "0x9", "", MIN, true);
    pass(f, 2 * MIN);
    assert_non_null(strstr(f->note[f->num_notes - 1].text, "all is back"));
}

static bool deaf;

static bool odd_ports(void *arg, const char *focus, const char *fabric, uint64_t guid, uint8_t port)
{
    (void)arg;
    if (deaf)
        return false;
    assert_string_equal(fabric, "fab");
    assert_string_equal(focus, "odd ports");
    return guid && port % 2;
}

static void focus_of_the_caller(void **state)
{
    struct fix *f = *state;
    alarms_free(f->a);
    struct alarms_callbacks cb = {.arg = f, .event = on_event, .change = on_change, .covers = odd_ports};
    f->a = alarms_new(f->loop, NULL, &cb);
    up(f, "L06", "s", ALARM_MAJOR, "r");
    alarm_raise(f->a,
                &(struct alarm_report){
                    .fabric = "fab", .rule = "L06", .subject = "t", .node_guid = {1, 2}, .port = {2, 4}});
    uint64_t id = silence(f, "odd ports", "", 10 * MIN, false);
    assert_int_equal(silence_of(f, "s"), id);
    assert_int_equal(silence_of(f, "t"), 0);
    deaf = true; // what is known of names changes
    pass(f, 2 * MIN);
    assert_int_equal(silence_of(f, "s"), 0);
    deaf = false;
    pass(f, 2 * MIN);
    assert_int_equal(silence_of(f, "s"), id);
}

static void silence_that_ended_meanwhile(void **state)
{
    struct fix *f = *state;
    up(f, "L01", "x", ALARM_MAJOR, "r");
    silence(f, "leaf-1", "", 10 * MIN, true);
    pass(f, MIN);
    restart(f, 20 * MIN);
    pass(f, 2 * S);
    assert_int_equal(notes(f, "maintenance-ended"), 1);
    const struct alarm_silence *list;
    assert_int_equal(alarm_silences(f->a, &list), 0);
    restart(f, 0);
    pass(f, 2 * S);
    assert_int_equal(notes(f, "maintenance-ended"), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(silences),      T(silence_of_members), T(what_a_focus_covers), T(refused_silences),
        T(later_silence), T(maintenance),        T(focus_of_the_caller), D(silence_that_ended_meanwhile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
