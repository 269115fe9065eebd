// SPDX-License-Identifier: Apache-2.0
// The list of alarms: what becomes of raising and clearing, groups, acknowledging, and what comes back after
// a restart. In virtual time.
#include "tests/unit/telemetry/alarmtest.h"

#include <errno.h>

#include "lib/rng.h"

// --- one alarm ---

static void raise_and_clear(void **state)
{
    struct fix *f = *state;
    up(f, "L06", "0x11/44", ALARM_MAJOR, "11 errors");
    assert_int_equal(listed(f), 1);
    const struct alarm *a = nth(f, 0);
    uint64_t id = a->id;
    assert_true(id > 0 && a->active && a->count == 1 && a->members == 1 && !a->acked && !a->silence);
    assert_string_equal(a->reason, "11 errors");
    assert_string_equal(a->advice, alarm_rule("L06")->advice);
    assert_int_equal(f->num_notes, 0); // told a second later
    pass(f, 2 * S);
    assert_int_equal(f->num_notes, 1);
    assert_string_equal(last_note(f)->kind, "alarm-raised");
    assert_string_equal(last_note(f)->severity, "warning");
    assert_non_null(strstr(last_note(f)->text, "L06 post-FEC errors"));
    assert_non_null(strstr(last_note(f)->text, "leaf-1/44 <-> spine-5/55"));
    assert_non_null(strstr(last_note(f)->data, "\"evidence\":{\"n\":1}"));
    assert_int_equal(f->change[ALARM_RAISED], 1);
    assert_int_equal(f->changed, id);
    up(f, "L06", "0x11/44", ALARM_MAJOR, "11 errors"); // nothing new
    assert_int_equal(nth(f, 0)->count, 1);
    up(f, "L06", "0x11/44", ALARM_MAJOR, "12 errors");
    assert_int_equal(nth(f, 0)->count, 2);
    assert_string_equal(nth(f, 0)->reason, "12 errors");
    pass(f, 70 * S);
    assert_int_equal(f->num_notes, 1); // more of the same is no event

    down(f, "L06", "0x11/44");
    assert_int_equal(listed(f), 1); // sticky
    assert_false(nth(f, 0)->active);
    assert_true(nth(f, 0)->cleared_wall_ns >= nth(f, 0)->since_wall_ns);
    pass(f, 2 * S);
    assert_int_equal(notes(f, "alarm-changed"), 1);
    pass(f, 8 * MIN);
    assert_int_equal(listed(f), 1);
    pass(f, MIN);
    assert_int_equal(listed(f), 0);
    assert_string_equal(last_note(f)->kind, "alarm-cleared");
    assert_int_equal(f->change[ALARM_CLEARED], 1);
    up(f, "L06", "0x11/44", ALARM_MAJOR, "again");
    assert_true(nth(f, 0)->id > id); // another one
    down(f, "L06", "0x99/1");        // what is not there
    down(f, "L99", "0x11/44");
    up(f, "L99", "0x11/44", ALARM_MAJOR, "no such rule");
    assert_int_equal(listed(f), 1);
}

static void comes_back_while_sticky(void **state)
{
    struct fix *f = *state;
    up(f, "L06", "x", ALARM_MAJOR, "r");
    uint64_t id = nth(f, 0)->id;
    pass(f, 30 * MIN);
    down(f, "L06", "x"); // stands for long: ends at once
    pass(f, 5 * S);
    assert_int_equal(listed(f), 0);
    up(f, "S01", "x", ALARM_CRITICAL, "r"); // the list itself waits a minute
    pass(f, 30 * MIN);
    id = nth(f, 0)->id;
    for (int i = 0; i < 5; i++) {
        down(f, "S01", "x");
        pass(f, 50 * S);
        assert_int_equal(listed(f), 1);
        assert_false(nth(f, 0)->active);
        up(f, "S01", "x", ALARM_CRITICAL, "r");
        assert_true(nth(f, 0)->active && nth(f, 0)->id == id);
        assert_int_equal(nth(f, 0)->count, 2 + i);
    }
    down(f, "S01", "x");
    pass(f, 65 * S);
    assert_int_equal(listed(f), 0);
}

static void severity_and_ack(void **state)
{
    struct fix *f = *state;
    up(f, "L07", "x", ALARM_MINOR, "r");
    pass(f, 2 * S);
    uint64_t id = nth(f, 0)->id;
    assert_int_equal(alarm_ack(f->a, id + 1, "anna", ""), -ENOENT);
    assert_int_equal(alarm_ack(f->a, id, "anna", "cable ordered"), 0);
    assert_true(nth(f, 0)->acked);
    assert_string_equal(nth(f, 0)->acked_by, "anna");
    assert_string_equal(nth(f, 0)->ack_note, "cable ordered");
    assert_string_equal(last_note(f)->kind, "alarm-acked");
    assert_non_null(strstr(last_note(f)->data, "\"by\":\"anna\""));
    up(f, "L07", "x", ALARM_CRITICAL, "worse");
    assert_false(nth(f, 0)->acked); // nobody knows of that
    pass(f, 2 * S);
    assert_string_equal(last_note(f)->kind, "alarm-changed");
    assert_string_equal(last_note(f)->severity, "error");
    assert_int_equal(alarm_ack(f->a, id, "anna", NULL), 0);
    up(f, "L07", "x", ALARM_MINOR, "better");
    assert_true(nth(f, 0)->acked);
    struct alarms_count c;
    alarms_count(f->a, "fab", &c);
    assert_true(c.minor == 1 && c.acked == 1 && c.critical + c.major + c.info + c.silenced == 0);
    alarms_count(f->a, "other", &c);
    assert_int_equal(c.minor, 0);
}

static void rounds(void **state)
{
    struct fix *f = *state;
    up(f, "S04", "a", ALARM_CRITICAL, "r");
    up(f, "S04", "b", ALARM_CRITICAL, "r");
    up(f, "S05", "b", ALARM_MINOR, "r");
    alarm_round(f->a, "fab", "S04");
    up(f, "S04", "b", ALARM_CRITICAL, "r");
    alarm_round(f->a, "other", "S04");
    alarm_round(f->a, "fab", "S04");
    unsigned active = 0;
    for (uint32_t i = 0; i < listed(f); i++) {
        active += nth(f, i)->active;
        if (!nth(f, i)->active)
            assert_string_equal(nth(f, i)->subject, "a");
    }
    assert_int_equal(active, 2);
}

static void order(void **state)
{
    struct fix *f = *state;
    up(f, "L13", "a", ALARM_MINOR, "r");
    pass(f, S);
    up(f, "L06", "b", ALARM_MAJOR, "r");
    pass(f, S);
    up(f, "L06", "c", ALARM_MAJOR, "r");
    pass(f, S);
    up(f, "C01", "e", ALARM_MAJOR, "r"); // the newest, and a consequence
    up(f, "L11", "d", ALARM_CRITICAL, "r");
    down(f, "L11", "d");
    const char *want[] = {"c", "b", "e", "a", "d"};
    for (int i = 0; i < 5; i++)
        assert_string_equal(nth(f, i)->subject, want[i]);
}

static void long_texts(void **state)
{
    struct fix *f = *state;
    char *big = xmalloc(100001);
    for (int i = 0; i < 50000; i++)
        memcpy(big + 2 * i, "\xc3\xa9", 2);
    big[100000] = 0;
    alarm_raise(f->a, &(struct alarm_report){.fabric = "fab",
                                             .rule = "L06",
                                             .subject = "x\"\\\n",
                                             .place = "a\"b\\c\nd\te",
                                             .reason = big,
                                             .evidence = big,
                                             .cable = "q\"",
                                             .severity = ALARM_MAJOR});
    assert_true(strlen(nth(f, 0)->reason) <= 2048 && strlen(nth(f, 0)->reason) >= 2046);
    assert_int_equal(strlen(nth(f, 0)->reason) % 2, 0); // no half character
    assert_string_equal(nth(f, 0)->evidence, "");
    pass(f, 2 * S);
    assert_non_null(strstr(last_note(f)->data, "\"subject\":\"x\\\"\\\\\\u000a\""));
    alarm_raise(f->a, &(struct alarm_report){.rule = "W05"}); // nothing else said
    assert_int_equal(listed(f), 2);
    free(big);
}

// What is no UTF-8 goes, and is no other text each time.
static void texts_that_are_none(void **state)
{
    struct fix *f = *state;
    for (int i = 0; i < 3; i++)
        up(f, "L06", "s\xfc", ALARM_MAJOR, "M\xfcnchen");
    assert_int_equal(listed(f), 1);
    assert_int_equal(nth(f, 0)->count, 1);
    assert_string_equal(nth(f, 0)->reason, "Mnchen");
    down(f, "L06", "s\xfc");
    assert_false(nth(f, 0)->active);
}

// --- groups ---

static void dead_spine(void **state)
{
    struct fix *f = *state;
    const struct alarm **member;
    for (unsigned i = 0; i < 64; i++)
        link_of(f, "L01", i, "spine-9");
    assert_int_equal(listed(f), 1);
    uint64_t id = nth(f, 0)->id;
    assert_true(nth(f, 0)->group && nth(f, 0)->active);
    assert_int_equal(nth(f, 0)->members, 64);
    assert_string_equal(nth(f, 0)->place, "spine-9");
    assert_int_equal(nth(f, 0)->severity, ALARM_CRITICAL);
    assert_int_equal(nth(f, 0)->node_guid[0], 0x999);
    assert_non_null(strstr(nth(f, 0)->reason, "64 of spine-9"));
    pass(f, 2 * S);
    assert_int_equal(f->num_notes, 1);
    assert_string_equal(last_note(f)->kind, "alarm-raised");
    assert_non_null(strstr(last_note(f)->text, "64 of spine-9"));
    assert_int_equal(f->change[ALARM_RAISED], 1);
    assert_int_equal(alarm_members(f->a, id, &member), 64);
    for (int i = 0; i < 64; i++) {
        assert_int_equal(member[i]->leader, id);
        assert_true(i == 0 || member[i]->id > member[i - 1]->id);
        assert_ptr_equal(alarm_by_id(f->a, member[i]->id), member[i]);
    }
    free(member);
    assert_int_equal(alarm_members(f->a, 12345, &member), 0);
    free(member);
    struct alarms_count c;
    alarms_count(f->a, NULL, &c);
    assert_true(c.critical == 1 && c.major == 0);
    // Four minutes later they have dropped: part of the same.
    pass(f, 4 * MIN);
    for (unsigned i = 0; i < 64; i++)
        link_of(f, "L03", i, "spine-9");
    assert_int_equal(listed(f), 1);
    assert_int_equal(nth(f, 0)->members, 64);
    pass(f, 2 * S);
    assert_int_equal(f->num_notes, 1);
    // It comes back: the group stands while any of it does.
    for (unsigned i = 1; i < 64; i++)
        link_up(f, "L01", i);
    pass(f, 20 * MIN);
    assert_int_equal(listed(f), 1);
    assert_true(nth(f, 0)->active);
    assert_int_equal(nth(f, 0)->members, 1);
    link_up(f, "L01", 0);
    assert_false(nth(f, 0)->active);
    for (unsigned i = 0; i < 64; i++)
        link_up(f, "L03", i);
    pass(f, 20 * MIN);
    assert_int_equal(listed(f), 0);
    assert_int_equal(notes(f, "alarm-cleared"), 1);
    assert_non_null(strstr(last_note(f)->text, "64 of spine-9"));
}

// First two are listed and may have been told before a third makes them a group.
static void group_that_comes_slowly(void **state)
{
    struct fix *f = *state;
    link_of(f, "L01", 1, "spine-9");
    pass(f, 20 * S);
    link_of(f, "L01", 2, "spine-9");
    assert_int_equal(listed(f), 2);
    pass(f, 20 * S);
    assert_int_equal(notes(f, "alarm-raised"), 2);
    link_of(f, "L01", 3, "spine-9");
    assert_int_equal(listed(f), 1);
    pass(f, 2 * S);
    assert_int_equal(notes(f, "alarm-raised"), 3);
    assert_int_equal(notes(f, "alarm-grouped"), 2);
    assert_int_equal(f->change[ALARM_CLEARED], 2);
    pass(f, 50 * S);
    link_of(f, "L01", 4, "spine-9"); // within a minute of the last
    assert_int_equal(listed(f), 1);
    assert_int_equal(nth(f, 0)->members, 4);
    pass(f, 2 * MIN);
    link_of(f, "L01", 5, "spine-9"); // another time
    assert_int_equal(listed(f), 2);
}

static void no_group(void **state)
{
    struct fix *f = *state;
    for (unsigned i = 0; i < 8; i++) { // too slow
        link_of(f, "L01", i, "spine-9");
        pass(f, 40 * S);
    }
    assert_int_equal(listed(f), 8);
    link_of(f, "L06", 1, "spine-9"); // another rule
    link_of(f, "L06", 2, "spine-9");
    assert_int_equal(listed(f), 10);
}

// Cables of one leaf to many spines: the other name makes the group.
static void group_by_the_second_name(void **state)
{
    struct fix *f = *state;
    for (unsigned i = 0; i < 5; i++) {
        char subject[40], spine[20];
        snprintf(subject, sizeof(subject), "leaf/%u", i);
        snprintf(spine, sizeof(spine), "0x%u", i);
        alarm_raise(f->a, &(struct alarm_report){.fabric = "fab",
                                                 .rule = "L06",
                                                 .subject = subject,
                                                 .group = spine,
                                                 .group2 = "0x7",
                                                 .group2_place = "leaf-7"});
    }
    assert_int_equal(listed(f), 1);
    assert_string_equal(nth(f, 0)->place, "leaf-7");
    assert_int_equal(nth(f, 0)->members, 5);
}

static void drop_is_part_of_down(void **state)
{
    struct fix *f = *state;
    up(f, "L01", "x", ALARM_MAJOR, "down");
    pass(f, 4 * MIN);
    up(f, "L03", "x", ALARM_MAJOR, "dropped");
    assert_int_equal(listed(f), 1);
    assert_string_equal(nth(f, 0)->rule->id, "L01");
    assert_int_equal(nth(f, 0)->members, 1);
    down(f, "L01", "x"); // up for a minute
    pass(f, 9 * MIN);
    assert_int_equal(listed(f), 1); // as long as its part stands
    down(f, "L03", "x");
    pass(f, 11 * MIN);
    assert_int_equal(listed(f), 0);
    up(f, "L03", "x", ALARM_MAJOR, "dropped"); // alone
    assert_int_equal(listed(f), 1);
    assert_int_equal(notes(f, "alarm-raised"), 1);
}

// --- bounds ---

static void full(void **state)
{
    struct fix *f = *state;
    struct alarms_callbacks quiet = {0};
    char subject[40];
    alarms_free(f->a);
    f->a = alarms_new(f->loop, NULL, &quiet);
    for (unsigned i = 0; i < ALARMS_MAX + 100; i++) {
        snprintf(subject, sizeof(subject), "s%u", i);
        up(f, "L13", subject, ALARM_INFO, "r");
    }
    assert_int_equal(listed(f), ALARMS_MAX + 1);
    assert_string_equal(nth(f, 0)->rule->id, "W07");
    for (unsigned i = 0; i < ALARMS_MAX; i += 2) {
        snprintf(subject, sizeof(subject), "s%u", i);
        down(f, "L13", subject);
    }
    pass(f, 11 * MIN);
    assert_true(listed(f) <= ALARMS_MAX / 2 + 1);
    pass(f, 11 * MIN);
    assert_int_equal(listed(f), ALARMS_MAX / 2); // W07 has gone
    up(f, "L06", "new", ALARM_MAJOR, "r");
    assert_int_equal(listed(f), ALARMS_MAX / 2 + 1);
}

// --- restarts ---

// Another collector: what the one before has raised ends when nobody raises it again.
static void another_collector(void **state)
{
    struct fix *f = *state;
    up(f, "L06", "0x11/1", ALARM_MAJOR, "11 errors");
    up(f, "L06", "0x11/2", ALARM_MAJOR, "12 errors");
    up(f, "S05", "0x11", ALARM_MAJOR, "silent");
    pass(f, MIN);
    alarm_doubt(f->a, "other", "");
    alarm_doubt(f->a, "fab", "L");
    up(f, "L06", "0x11/2", ALARM_MAJOR, "12 errors");
    pass(f, 5 * 3600 * S);
    const struct alarm *list;
    uint32_t n = alarms_list(f->a, &list);
    assert_int_equal(n, 2);
    for (uint32_t i = 0; i < n; i++)
        assert_true(list[i].active && strcmp(list[i].subject, "0x11/1") != 0);
}

static void back_after_a_restart(void **state)
{
    struct fix *f = *state;
    up(f, "L06", "0x11/44", ALARM_MAJOR, "11 errors");
    up(f, "L06", "0x11/44", ALARM_MAJOR, "12 errors");
    alarm_ack(f->a, nth(f, 0)->id, "anna", "known");
    for (unsigned i = 0; i < 5; i++)
        link_of(f, "L01", i, "spine-9");
    for (unsigned i = 0; i < 5; i++)
        link_of(f, "L03", i, "spine-9");
    alarm_raise(f->a, &(struct alarm_report){
                          .fabric = "fab", .rule = "C03", .subject = "root", .advice = "own words"});
    uint64_t sid = silence(f, "spine-9", "", 3 * 3600 * S, true);
    down(f, "W05", "clock");
    pass(f, 2 * MIN);
    struct alarm was = *nth(f, 1);
    assert_string_equal(was.subject, "0x11/44");
    uint64_t group = nth(f, 0)->id;
    int64_t since = was.since_wall_ns;
    uint64_t id = was.id;
    restart(f, 20 * S);
    assert_int_equal(listed(f), 4);
    const struct alarm *a = alarm_by_id(f->a, id);
    assert_non_null(a);
    assert_true(a->active && a->acked && a->count == 2 && a->severity == ALARM_MAJOR);
    assert_true(a->since_wall_ns == since);
    assert_string_equal(a->acked_by, "anna");
    assert_string_equal(a->reason, "12 errors");
    assert_string_equal(a->advice, alarm_rule("L06")->advice);
    assert_int_equal(a->node_guid[1], 0x55);
    a = alarm_by_id(f->a, group);
    assert_non_null(a);
    assert_true(a->group && a->members == 5);
    assert_int_equal(a->silence, sid);
    for (uint32_t i = 0; i < listed(f); i++)
        if (strcmp(nth(f, i)->subject, "root") == 0)
            assert_string_equal(nth(f, i)->advice, "own words");
    unsigned raised = notes(f, "alarm-raised");
    // The rules find again what stands; the rest is cleared when its time is over.
    up(f, "L06", "0x11/44", ALARM_MAJOR, "13 errors");
    assert_int_equal(alarm_by_id(f->a, id)->count, 3);
    link_of(f, "L01", 9, "spine-9"); // one more within a minute? No: the group is older
    pass(f, 15 * MIN);
    assert_int_equal(notes(f, "alarm-raised"), raised + 1);
    assert_null(alarm_by_id(f->a, group));
    assert_true(alarm_by_id(f->a, id)->active);
    pass(f, 130 * MIN);
    assert_non_null(alarm_by_id(f->a, id)); // it was raised: only its rule clears it
    restart(f, 0);
    pass(f, 125 * MIN);
    assert_non_null(alarm_by_id(f->a, id));
    pass(f, 2 * MIN);
    assert_null(alarm_by_id(f->a, id)); // nobody has, for as long as it must be clean
}

static void round_clears_what_an_earlier_run_left(void **state)
{
    struct fix *f = *state;
    up(f, "S04", "a", ALARM_CRITICAL, "r");
    pass(f, 30 * MIN);
    restart(f, 0);
    alarm_round(f->a, "fab", "S04");
    pass(f, 5 * S);
    assert_int_equal(listed(f), 0);
}

static void ids_rise_over_restarts(void **state)
{
    struct fix *f = *state;
    uint64_t last = 0;
    for (int i = 0; i < 5; i++) {
        up(f, "L06", "x", ALARM_MAJOR, "r");
        assert_true(nth(f, 0)->id > last);
        assert_true(nth(f, 0)->id < 1000);
        last = nth(f, 0)->id;
        pass(f, 11 * MIN);
        down(f, "L06", "x");
        pass(f, MIN);
        assert_int_equal(listed(f), 0);
        restart(f, 0);
    }
}

// Killed before the row was written: the number was told, so it is not given again.
static void ids_rise_over_a_kill(void **state)
{
    struct fix *f = *state;
    struct db_open_report rep;
    struct err e = {0};
    up(f, "L06", "x", ALARM_MAJOR, "r");
    uint64_t id = nth(f, 0)->id;
    db_flush(f->db);
    char *copy = xasprintf("%s-killed", f->dir),
         *cmd = xasprintf("cp -r '%s' '%s' && rm -f '%s'/*.lock", f->dir, copy, copy);
    assert_int_equal(system(cmd), 0);
    free(cmd);
    struct db *db = db_open(f->loop, copy, &rep, &e);
    if (!db)
        fail_msg("%s", e.text);
    struct alarms_callbacks cb = {.arg = f, .wall = wall};
    struct alarms *a = alarms_new(f->loop, db, &cb);
    const struct alarm *list;
    assert_int_equal(alarms_list(a, &list), 0);
    alarm_raise(a, &(struct alarm_report){.fabric = "fab", .rule = "L06", .subject = "y"});
    assert_int_equal(alarms_list(a, &list), 1);
    assert_true(list[0].id > id);
    alarms_free(a);
    db_close(db);
    cmd = xasprintf("rm -rf '%s'", copy);
    assert_int_equal(system(cmd), 0);
    free(cmd);
    free(copy);
}

// --- anything in any order ---

static void at_random(void **state)
{
    struct fix *f = *state;
    struct rng r;
    rng_init(&r, 9);
    struct alarms_callbacks quiet = {0};
    alarms_free(f->a);
    f->a = alarms_new(f->loop, f->db, &quiet);
    static const char *const rule[] = {"L01", "L03", "L06", "S04"};
    for (int i = 0; i < 20000; i++) {
        unsigned leaf = rng_below(&r, 12), what = rng_below(&r, 100);
        if (what < 55)
            link_of(f, rule[rng_below(&r, 4)], leaf, "spine-9");
        else if (what < 80)
            link_up(f, rule[rng_below(&r, 4)], leaf);
        else if (what < 82)
            alarm_round(f->a, "fab", rule[rng_below(&r, 4)]);
        else
            pass(f, (int64_t)rng_below(&r, what == 99 ? 1800 : 40) * S);
        if (i % 50)
            continue;
        const struct alarm *list, **member;
        uint32_t n = alarms_list(f->a, &list), all = 0;
        for (uint32_t k = 0; k < n; k++) {
            uint32_t m = alarm_members(f->a, list[k].id, &member), same = 0;
            bool active = false;
            for (uint32_t j = 0; j < m; j++) {
                same += member[j]->rule == list[k].rule;
                active = active || (member[j]->rule == list[k].rule && member[j]->active);
                assert_true(member[j]->leader == list[k].id);
            }
            if (list[k].group) {
                assert_int_equal(list[k].members, same);
                assert_int_equal(list[k].active, active);
            }
            all += m + 1;
            free(member);
        }
        assert_true(all <= 4 * 12 + 4 * 13);
        if (i % 2000 == 0 && f->db) {
            alarms_free(f->a);
            f->a = alarms_new(f->loop, f->db, &quiet);
        }
    }
    for (int k = 0; k < 4; k++)
        for (int i = 0; i < 2; i++)
            alarm_round(f->a, "fab", rule[k]);
    pass(f, 130 * MIN);
    assert_int_equal(listed(f), 0);
}

// --- the catalogue ---

static void catalogue(void **state)
{
    (void)state;
    assert_true(alarm_num_rules > 25);
    for (unsigned i = 0; i < alarm_num_rules; i++) {
        const struct alarm_rule *r = &alarm_rules[i];
        assert_true(r->id && r->name && r->title && r->severity && r->raised && r->cleared && r->advice &&
                    r->source);
        assert_ptr_equal(alarm_rule(r->id), r);
        assert_true(strlen(r->id) == 3 && strchr("LCSW", r->id[0]));
        assert_true(!r->within || alarm_rule(r->within));
        for (unsigned k = 0; k < i; k++)
            assert_string_not_equal(alarm_rules[k].name, r->name);
    }
    assert_null(alarm_rule("L99"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(raise_and_clear),
        T(comes_back_while_sticky),
        T(severity_and_ack),
        T(rounds),
        T(order),
        T(long_texts),
        T(texts_that_are_none),
        T(dead_spine),
        T(group_that_comes_slowly),
        T(no_group),
        T(group_by_the_second_name),
        T(drop_is_part_of_down),
        T(full),
        T(another_collector),
        D(back_after_a_restart),
        D(round_clears_what_an_earlier_run_left),
        D(ids_rise_over_restarts),
        D(ids_rise_over_a_kill),
        D(at_random),
        cmocka_unit_test_setup_teardown(at_random, setup, teardown),
        cmocka_unit_test(catalogue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
