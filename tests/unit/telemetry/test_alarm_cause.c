// SPDX-License-Identifier: Apache-2.0
// Which alarm follows from which, what the list makes of it, and what is told.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/alarm.h"
#include "telemetry/alarm_sources.h"

#define S MONO_S
#define MIN (60 * MONO_S)

struct fix {
    struct loop *loop;
    struct alarms *a;
    char last[700]; // data of the last event
    unsigned changed;
};

static void on_event(void *arg, const char *fabric, const char *kind, const char *severity,
                     const char *subject, const char *text, const char *data)
{
    struct fix *f = arg;
    (void)fabric, (void)severity, (void)subject, (void)text;
    f->changed += strcmp(kind, "alarm-changed") == 0;
    snprintf(f->last, sizeof(f->last), "%s", data);
}

static int64_t wall(void *arg)
{
    const struct fix *f = arg;
    return 1800000000 * S + loop_now(f->loop).ns;
}

static int setup(void **state)
{
    struct fix *f = xcalloc(1, sizeof(*f));
    f->loop = loop_new(LOOP_VIRTUAL);
    f->a = alarms_new(f->loop, NULL, &(struct alarms_callbacks){.arg = f, .event = on_event, .wall = wall});
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fix *f = *state;
    alarms_free(f->a);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void pass(struct fix *f, int64_t ns)
{
    bool never = false;
    loop_run_until(f->loop, &never, ns);
}

static struct alarm_report of(const char *rule, const char *subject, enum alarm_severity s, uint64_t guid)
{
    return (struct alarm_report){.fabric = "fab",
                                 .rule = rule,
                                 .subject = subject,
                                 .severity = s,
                                 .place = subject,
                                 .reason = "r",
                                 .node_guid = {guid}};
}

static void up(struct fix *f, const char *rule, const char *subject, enum alarm_severity s)
{
    struct alarm_report r = of(rule, subject, s, 0);
    alarm_raise(f->a, &r);
}

static const struct alarm *find(struct fix *f, const char *rule, const char *subject)
{
    const struct alarm *list;
    uint32_t n = alarms_list(f->a, &list);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].rule->id, rule) == 0 && strcmp(list[i].subject, subject) == 0)
            return &list[i];
    fail_msg("no %s %s", rule, subject);
    return NULL;
}

static void follows(struct fix *f, const char *rule, const char *subject, const char *cause,
                    const char *cause_subject)
{
    assert_int_equal(find(f, rule, subject)->cause, find(f, cause, cause_subject)->id);
}

static void is_root(struct fix *f, const char *rule, const char *subject)
{
    const struct alarm *x = find(f, rule, subject);
    assert_true(x->cause == 0 && x->root == x->id && x->follows == NULL);
}

// One bad cable has one root: the worst of what it shows.
static void of_one_cable(void **state)
{
    struct fix *f = *state;
    up(f, "L07", "x", ALARM_MINOR);
    is_root(f, "L07", "x");
    pass(f, 2 * S);
    up(f, "L06", "x", ALARM_MAJOR);
    up(f, "L06", "y", ALARM_MAJOR); // another cable
    up(f, "L13", "x", ALARM_MINOR); // says nothing of the cable
    follows(f, "L07", "x", "L06", "x");
    assert_string_equal(find(f, "L07", "x")->follows->id, "L06");
    is_root(f, "L06", "x");
    is_root(f, "L06", "y");
    is_root(f, "L13", "x");
    assert_int_equal(find(f, "L06", "x")->followers, 1);
    assert_int_equal(f->changed, 0);
    pass(f, 2 * S); // who was told of L07 alone hears it
    assert_int_equal(f->changed, 1);
    up(f, "L07", "x", ALARM_CRITICAL); // the worse now
    follows(f, "L06", "x", "L07", "x");
    is_root(f, "L07", "x");
    up(f, "L17", "x", ALARM_MAJOR); // a module that has failed does all that
    follows(f, "L06", "x", "L17", "x");
    follows(f, "L07", "x", "L17", "x");
    assert_null(
        find(f, "L07", "x")->follows); // it is worse than its root: who wants those only is told of it
    assert_int_equal(find(f, "L07", "x")->root, find(f, "L17", "x")->id);
    assert_int_equal(find(f, "L17", "x")->followers, 2);
}

static void of_a_flap(void **state)
{
    struct fix *f = *state;
    up(f, "L01", "x", ALARM_MAJOR);
    up(f, "L02", "x", ALARM_MAJOR);
    up(f, "L06", "x", ALARM_MAJOR);
    follows(f, "L01", "x", "L02", "x");
    follows(f, "L02", "x", "L06", "x");
    assert_int_equal(find(f, "L01", "x")->root, find(f, "L06", "x")->id); // over both
    assert_int_equal(find(f, "L06", "x")->followers, 2);
    alarm_clear(f->a, "fab", "L06", "x");
    pass(f, 11 * MIN); // it is over and gone
    is_root(f, "L02", "x");
    follows(f, "L01", "x", "L02", "x");
}

// A node that does not answer takes its links along; a group of them follows as one.
static void of_a_node(void **state)
{
    struct fix *f = *state;
    static const char *const link[] = {"0x5/1", "0x5/2", "0x5/3", "0x5/4"};
    for (int i = 0; i < 4; i++) {
        struct alarm_report r = of("L01", link[i], ALARM_CRITICAL, 0x100 + (uint64_t)i);
        r.node_guid[1] = 0x5;
        r.group = "0x0000000000000005";
        r.lost_bps = 1e9;
        alarm_raise(f->a, &r);
    }
    struct alarm_report reboot = of("L04", "0x5/1", ALARM_INFO, 0x100);
    alarm_raise(f->a, &reboot);
    follows(f, "L04", "0x5/1", "L01", "0x0000000000000005");
    struct alarm_report s05 = of("S05", "0x5", ALARM_MAJOR, 0x5);
    alarm_raise(f->a, &s05);
    follows(f, "L01", "0x0000000000000005", "S05", "0x5");
    const struct alarm *g = find(f, "L01", "0x0000000000000005");
    assert_null(g->follows);
    assert_true(g->lost_bps > 3.9e9 && g->lost_bps < 4.1e9);
    // The manager's alarm of the node is the root of that of its counters.
    struct alarm_report silent = of("S05", "peer-silent spine", ALARM_MAJOR, 0x5);
    silent.source = ALARM_BY_WATCH;
    alarm_raise(f->a, &silent);
    follows(f, "S05", "0x5", "S05", "peer-silent spine");
    is_root(f, "S05", "peer-silent spine");
    const struct alarm *list, **of_it;
    assert_int_equal(alarms_list(f->a, &list), 4);
    assert_string_equal(list[0].subject, "peer-silent spine"); // before the critical one, for its sake
    assert_int_equal(list[0].followers, 3);
    assert_int_equal(alarm_followers(f->a, list[0].id, &of_it), 3);
    free(of_it);
    assert_int_equal(alarm_followers(f->a, list[1].id, &of_it), 0);
    free(of_it);
}

// What does not answer behind a port takes nothing of the node along that the port is on.
static void of_what_is_behind_a_port(void **state)
{
    struct fix *f = *state;
    struct findings found = {0};
    struct alarm_look l = {.running = true, .findings = &found};
    struct alarm_watch *w = alarm_watch_new(f->a, "fab");
    findings_add(&found, FINDING_WARNING, "peer-silent", "leaf[7] (0x0000000000000005)", "nobody answers");
    findings_add(&found, FINDING_WARNING, "port-info-silent", "0x0000000000000006[255]", "no PortInfo");
    findings_add(&found, FINDING_ERROR, "peer-silent", "a (0xb)[1] (0x0000000000000007)", "silent");
    findings_add(&found, FINDING_WARNING, "port-info-silent", "leaf[0] (0x0000000000000008)", "no PortInfo");
    alarm_watch_look(w, &l, 0, 0);
    static const uint8_t port[] = {7, 255, 0, 0};
    for (uint64_t guid = 5; guid < 9; guid++) {
        char subject[20];
        snprintf(subject, sizeof(subject), "0x%d/1", (int)guid);
        struct alarm_report r = of("L01", subject, ALARM_MAJOR, guid);
        alarm_raise(f->a, &r);
    }
    struct alarm_report counters = of("S05", "0x5", ALARM_MAJOR, 0x5);
    alarm_raise(f->a, &counters);
    is_root(f, "S05", "0x5");
    follows(f, "L01", "0x5/1", "S05", "0x5");
    is_root(f, "L01", "0x6/1");
    const struct alarm *x = find(f, "S05", "peer-silent leaf[7] (0x0000000000000005)");
    assert_true(x->node_guid[0] == 5 && x->port[0] == port[0]);
    x = find(f, "S05", "port-info-silent 0x0000000000000006[255]");
    assert_true(x->node_guid[0] == 6 && x->port[0] == port[1]);
    follows(f, "L01", "0x8/1", "S05", "port-info-silent leaf[0] (0x0000000000000008)");
    alarm_watch_free(w);
    findings_done(&found);
}

// Fabrics may have nodes of one GUID; and what stands is a cause before what is over.
static void of_the_node_that_is_meant(void **state)
{
    struct fix *f = *state;
    struct alarm_report here = of("S05", "0x5", ALARM_MAJOR, 0x5), there = of("S05", "0x5", ALARM_MAJOR, 0x5);
    struct alarm_report link = of("L01", "0x5/1", ALARM_MAJOR, 0x5);
    there.fabric = "other";
    there.source = ALARM_BY_WATCH;
    alarm_raise(f->a, &here);
    alarm_raise(f->a, &there);
    alarm_raise(f->a, &link);
    assert_int_not_equal(find(f, "L01", "0x5/1")->cause, 0);
    struct alarm_report silent = of("S05", "peer-silent x", ALARM_MAJOR, 0x5);
    silent.source = ALARM_BY_WATCH;
    alarm_raise(f->a, &silent);
    follows(f, "L01", "0x5/1", "S05", "peer-silent x");
    alarm_clear(f->a, "fab", "S05", "peer-silent x");
    const struct alarm *x = find(f, "L01", "0x5/1");
    assert_true(x->cause != 0 && alarm_by_id(f->a, x->cause)->active);
    assert_string_equal(alarm_by_id(f->a, x->cause)->fabric, "fab");
}

// What leads into a circle keeps its cause.
static void into_a_circle(void **state)
{
    struct fix *f = *state;
    static const char *const name[] = {"before", "a", "b", "c", "behind"};
    for (int i = 0; i < 5; i++)
        up(f, "C01", name[i], ALARM_MAJOR);
    alarm_explain(f->a, "fab", "C01", "before", "C01", "b");
    alarm_explain(f->a, "fab", "C01", "behind", "C01", "c");
    alarm_explain(f->a, "fab", "C01", "a", "C01", "b");
    alarm_explain(f->a, "fab", "C01", "b", "C01", "c");
    alarm_explain(f->a, "fab", "C01", "c", "C01", "a");
    follows(f, "C01", "before", "C01", "b");
    follows(f, "C01", "behind", "C01", "c");
    is_root(f, "C01", "a"); // the oldest of it
    assert_int_equal(find(f, "C01", "a")->followers, 4);
}

// Nobody need look for it to be told.
static void told_without_a_reader(void **state)
{
    struct fix *f = *state;
    up(f, "C01", "a", ALARM_MAJOR);
    up(f, "C02", "root", ALARM_MAJOR);
    pass(f, 70 * S);
    assert_int_equal(f->changed, 0);
    alarm_explain(f->a, "fab", "C01", "a", "C02", "root");
    pass(f, 2 * S);
    assert_int_equal(f->changed, 1);
    assert_non_null(strstr(f->last, "\"follows\":\"C02\""));
}

// Whom ports wait for is told; it holds over what is told again, and ends with the cause.
static void of_a_tree(void **state)
{
    struct fix *f = *state;
    up(f, "C01", "a", ALARM_MAJOR);
    up(f, "L13", "a", ALARM_MINOR);
    up(f, "C01", "b", ALARM_MAJOR);
    up(f, "C02", "root", ALARM_MAJOR);
    pass(f, 2 * S);
    alarm_explain(f->a, "fab", "C01", "a", "C02", "root");
    alarm_explain(f->a, "fab", "L13", "a", "C02", "root");
    alarm_explain(f->a, "fab", "C01", "nobody", "C02", "root");
    alarm_explain(f->a, "fab", "C01", "b", "C03", "nobody");
    up(f, "C01", "a", ALARM_MAJOR);
    follows(f, "C01", "a", "C02", "root");
    follows(f, "L13", "a", "C02", "root");
    is_root(f, "C01", "b");
    assert_int_equal(find(f, "C02", "root")->followers, 2);
    pass(f, 2 * S);
    char text[60];
    snprintf(text, sizeof(text), "\"cause\":%llu", (unsigned long long)find(f, "C02", "root")->id);
    assert_non_null(strstr(f->last, text));
    assert_non_null(strstr(f->last, "\"follows\":\"C02\""));
    alarm_explain(f->a, "fab", "C02", "root", "C01", "a"); // a circle is none
    const struct alarm *x = find(f, "C01", "a"), *y = find(f, "C02", "root");
    assert_true((x->cause == 0) + (y->cause == 0) == 1);
    alarm_clear(f->a, "fab", "C02", "root");
    pass(f, 11 * MIN);
    is_root(f, "C01", "a");
}

// Roots by what they cost, each with its followers behind it; what nothing explains behind all of its kind.
static void order(void **state)
{
    struct fix *f = *state;
    struct alarm_report r = of("L01", "one cable", ALARM_MAJOR, 0);
    r.lost_bps = 50e9;
    alarm_raise(f->a, &r);
    pass(f, S);
    r = of("C02", "slow host", ALARM_MAJOR, 0);
    r.lost_bps = 325e9;
    alarm_raise(f->a, &r);
    up(f, "C01", "victim", ALARM_MINOR);
    alarm_explain(f->a, "fab", "C01", "victim", "C02", "slow host");
    pass(f, S);
    r = of("L01", "host off", ALARM_MAJOR, 0);
    r.hosts = 1;
    alarm_raise(f->a, &r);
    pass(f, S);
    up(f, "L06", "new", ALARM_MAJOR);
    up(f, "C01", "alone", ALARM_MAJOR);
    const char *want[] = {"host off", "slow host", "victim", "one cable", "new", "alone"};
    const struct alarm *list;
    assert_int_equal(alarms_list(f->a, &list), 6);
    for (int i = 0; i < 6; i++)
        assert_string_equal(list[i].subject, want[i]);
}

// Three reboots of one device within a minute are one, though none of them lasts.
static void momentary(void **state)
{
    struct fix *f = *state;
    const struct alarm *list;
    for (int i = 0; i < 5; i++) {
        char subject[20];
        snprintf(subject, sizeof(subject), "0x5/%d", i);
        struct alarm_report r = of("L04", subject, ALARM_INFO, 0x5);
        r.group = "0x0000000000000005";
        r.group_place = "leaf-5";
        alarm_raise(f->a, &r);
        alarm_clear(f->a, "fab", "L04", subject);
        pass(f, 5 * S);
    }
    assert_int_equal(alarms_list(f->a, &list), 1);
    assert_true(list[0].group && list[0].members == 5 && !list[0].active);
    assert_string_equal(list[0].place, "leaf-5");
    struct alarms_count c;
    alarms_count(f->a, "fab", &c);
    assert_int_equal(c.info, 0); // none stands
    pass(f, 11 * MIN);
    assert_int_equal(alarms_list(f->a, &list), 0);
}

// A host that is off is one host, however many links it has.
static void hosts_of_a_group(void **state)
{
    struct fix *f = *state;
    const struct alarm *list;
    for (int of_host = 0; of_host < 2; of_host++) {
        for (int i = 0; i < 3; i++) {
            char subject[20];
            snprintf(subject, sizeof(subject), "0x%d/%d", of_host, i);
            struct alarm_report r = of("L01", subject, ALARM_CRITICAL, 0x5);
            r.group = of_host ? "host 0x0000000000000006" : "0x0000000000000005";
            r.hosts = 1;
            r.lost_bps = 1e9;
            alarm_raise(f->a, &r);
        }
    }
    assert_int_equal(alarms_list(f->a, &list), 2);
    assert_int_equal(list[0].hosts, 3);
    assert_int_equal(list[1].hosts, 1);
    assert_true(list[1].lost_bps > 2.9e9);
}

// A group says what is worst of its members now.
static void group_of_now(void **state)
{
    struct fix *f = *state;
    const struct alarm *list;
    for (int i = 0; i < 3; i++) {
        char subject[20];
        snprintf(subject, sizeof(subject), "0x5/%d", i);
        struct alarm_report r = of("L01", subject, ALARM_CRITICAL, 0x5);
        r.group = "0x0000000000000005";
        r.reason = "down";
        alarm_raise(f->a, &r);
    }
    for (int i = 0; i < 3; i++) {
        char subject[20];
        snprintf(subject, sizeof(subject), "0x5/%d", i);
        assert_int_equal(alarms_list(f->a, &list), 1);
        assert_int_equal(list[0].severity, ALARM_CRITICAL);
        assert_non_null(strstr(list[0].reason, ": down"));
        struct alarm_report r = of("L01", subject, ALARM_MAJOR, 0x5);
        r.reason = "up again";
        r.advice = "nothing";
        alarm_raise(f->a, &r);
    }
    assert_int_equal(alarms_list(f->a, &list), 1);
    assert_int_equal(list[0].severity, ALARM_MAJOR);
    assert_non_null(strstr(list[0].reason, "up again"));
    assert_string_equal(list[0].advice, "nothing");
}

static void counts(void **state)
{
    struct fix *f = *state;
    struct alarms_count c;
    up(f, "L07", "x", ALARM_MINOR);
    up(f, "L06", "x", ALARM_MAJOR);
    up(f, "L06", "y", ALARM_MAJOR);
    alarm_ack(f->a, find(f, "L06", "y")->id, "anna", "");
    alarms_count(f->a, "fab", &c);
    assert_true(c.major == 2 && c.minor == 1 && c.acked == 1 && c.following == 1);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {T(of_one_cable),
                                       T(of_a_flap),
                                       T(of_a_node),
                                       T(of_a_tree),
                                       T(order),
                                       T(momentary),
                                       T(hosts_of_a_group),
                                       T(group_of_now),
                                       T(counts),
                                       T(of_what_is_behind_a_port),
                                       T(of_the_node_that_is_meant),
                                       T(into_a_circle),
                                       T(told_without_a_reader)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
