// SPDX-License-Identifier: Apache-2.0
// What tests of the list of alarms share: a list in virtual time, with a database or without, and what it
// tells its callers.
#ifndef WEFT_TESTS_ALARMTEST_H
#define WEFT_TESTS_ALARMTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/db.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "telemetry/alarm.h"

#define S MONO_S
#define MIN (60 * MONO_S)

struct note {
    char kind[32], severity[16], subject[100], text[600], data[600];
};
struct fix {
    char dir[200];
    struct loop *loop;
    struct db *db;
    struct alarms *a;
    struct note note[4000];
    unsigned num_notes;
    unsigned change[5]; // by what
    uint64_t changed;   // alarm of the last
};

static inline void on_event(void *arg, const char *fabric, const char *kind, const char *severity,
                            const char *subject, const char *text, const char *data)
{
    struct fix *f = arg;
    (void)fabric;
    assert_true(f->num_notes < 4000);
    struct note *n = &f->note[f->num_notes++];
    snprintf(n->kind, sizeof(n->kind), "%s", kind);
    snprintf(n->severity, sizeof(n->severity), "%s", severity);
    snprintf(n->subject, sizeof(n->subject), "%s", subject);
    snprintf(n->text, sizeof(n->text), "%s", text);
    snprintf(n->data, sizeof(n->data), "%s", data);
    assert_int_equal(data[0], '{');
    assert_int_equal(data[strlen(data) - 1], '}');
}

static inline void on_change(void *arg, const struct alarm_change *c)
{
    struct fix *f = arg;
    f->change[c->what]++;
    f->changed = c->alarm->id;
    assert_true(c->alarm->leader == 0 || c->what == ALARM_CLEARED);
}

static inline int64_t wall(void *arg)
{
    const struct fix *f = arg;
    return 1800000000 * S + loop_now(f->loop).ns;
}

static inline void start(struct fix *f)
{
    struct alarms_callbacks cb = {.arg = f, .event = on_event, .change = on_change, .wall = wall};
    f->a = alarms_new(f->loop, f->db, &cb);
}

static inline int setup(void **state)
{
    struct fix *f = xcalloc(1, sizeof(*f));
    f->loop = loop_new(LOOP_VIRTUAL);
    start(f);
    *state = f;
    return 0;
}

static inline int setup_db(void **state)
{
    struct fix *f = xcalloc(1, sizeof(*f));
    const char *tmp = getenv("TMPDIR");
    struct db_open_report rep;
    struct err e = {0};
    snprintf(f->dir, sizeof(f->dir), "%s/weft-alarm-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->dir));
    f->loop = loop_new(LOOP_VIRTUAL);
    f->db = db_open(f->loop, f->dir, &rep, &e);
    assert_non_null(f->db);
    start(f);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fix *f = *state;
    alarms_free(f->a);
    db_close(f->db);
    loop_free(f->loop);
    int rc = 0;
    if (f->dir[0]) {
        char *cmd = xasprintf("rm -rf '%s'", f->dir);
        rc = system(cmd);
        free(cmd);
    }
    free(f);
    return rc;
}

static inline void pass(struct fix *f, int64_t ns)
{
    bool never = false;
    loop_run_until(f->loop, &never, ns);
}

static inline void restart(struct fix *f, int64_t away)
{
    struct db_open_report rep;
    struct err e = {0};
    alarms_free(f->a);
    db_close(f->db);
    pass(f, away);
    f->db = db_open(f->loop, f->dir, &rep, &e);
    assert_non_null(f->db);
    start(f);
}

static inline void up(struct fix *f, const char *rule, const char *subject, enum alarm_severity s,
                      const char *reason)
{
    alarm_raise(f->a, &(struct alarm_report){.fabric = "fab",
                                             .rule = rule,
                                             .subject = subject,
                                             .severity = s,
                                             .place = "leaf-1/44 <-> spine-5/55",
                                             .peer = "spine-5",
                                             .reason = reason,
                                             .evidence = "{\"n\":1}",
                                             .node_guid = {0x11, 0x55},
                                             .port = {44, 55}});
}

static inline void down(struct fix *f, const char *rule, const char *subject)
{
    alarm_clear(f->a, "fab", rule, subject);
}

static inline uint32_t listed(struct fix *f)
{
    const struct alarm *list;
    return alarms_list(f->a, &list);
}

static inline const struct alarm *nth(struct fix *f, uint32_t i)
{
    const struct alarm *list;
    assert_true(alarms_list(f->a, &list) > i);
    return &list[i];
}

static inline unsigned notes(const struct fix *f, const char *kind)
{
    unsigned n = 0;
    for (unsigned i = 0; i < f->num_notes; i++)
        n += strcmp(f->note[i].kind, kind) == 0;
    return n;
}

static inline const struct note *last_note(const struct fix *f)
{
    assert_true(f->num_notes > 0);
    return &f->note[f->num_notes - 1];
}

static inline void link_of(struct fix *f, const char *rule, unsigned leaf, const char *spine)
{
    char subject[40], place[80], own[20], name[20];
    snprintf(subject, sizeof(subject), "0x%016x/1", 0x100 + leaf);
    snprintf(place, sizeof(place), "leaf-%u/1 <-> %s/%u", leaf, spine, leaf);
    snprintf(own, sizeof(own), "0x%016x", 0x100 + leaf);
    snprintf(name, sizeof(name), "leaf-%u", leaf);
    alarm_raise(f->a, &(struct alarm_report){.fabric = "fab",
                                             .rule = rule,
                                             .subject = subject,
                                             .severity = leaf == 7 ? ALARM_CRITICAL : ALARM_MAJOR,
                                             .place = place,
                                             .reason = "down for 10s",
                                             .group = "0x0000000000000999",
                                             .group_place = "spine-9",
                                             .group2 = own,
                                             .group2_place = name,
                                             .node_guid = {0x100 + leaf, 0x999},
                                             .port = {1, (uint8_t)leaf}});
}

static inline void link_up(struct fix *f, const char *rule, unsigned leaf)
{
    char subject[40];
    snprintf(subject, sizeof(subject), "0x%016x/1", 0x100 + leaf);
    down(f, rule, subject);
}

static inline uint64_t silence(struct fix *f, const char *focus, const char *rule, int64_t ns,
                               bool maintenance)
{
    struct err e = {0};
    // The list's own clock: that of an alarm just raised.
    alarm_raise(f->a, &(struct alarm_report){.fabric = "fab", .rule = "W05", .subject = "clock"});
    const struct alarm *list;
    uint32_t n = alarms_list(f->a, &list);
    int64_t now = 0;
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].subject, "clock") == 0)
            now = list[i].last_wall_ns;
    uint64_t id = alarm_silence_add(f->a,
                                    &(struct alarm_silence){.focus = focus,
                                                            .rule = rule,
                                                            .owner = "anna",
                                                            .reason = "rack 12",
                                                            .until_wall_ns = now + ns,
                                                            .maintenance = maintenance},
                                    &e);
    if (id == 0)
        fail_msg("%s", e.text);
    return id;
}

static inline uint64_t silence_of(struct fix *f, const char *subject)
{
    for (uint32_t i = 0; i < listed(f); i++)
        if (strcmp(nth(f, i)->subject, subject) == 0)
            return nth(f, i)->silence;
    fail_msg("%s is not listed", subject);
    return 0;
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
#define D(fn) cmocka_unit_test_setup_teardown(fn, setup_db, teardown)

#endif
