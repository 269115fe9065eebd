// SPDX-License-Identifier: Apache-2.0
// Alerts for Alertmanager: what is due when a part of a load was taken or refused, or has found no room in
// it; how long an answer may make it wait.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/notify_priv.h"

#define REASON 1900 // bytes: some 120 alerts a body

struct fix {
    struct loop *loop;
    struct alarms *a;
    struct notifier n;
    struct notify_target t;
};

static int setup(void **state)
{
    struct fix *f = xcalloc(1, sizeof(*f));
    f->loop = loop_new(LOOP_VIRTUAL);
    f->a = alarms_new(f->loop, NULL, &(struct alarms_callbacks){.arg = f});
    f->n = (struct notifier){
        .loop = f->loop, .alarms = f->a, .external_url = "http://weft", .resend_ns = 20 * MONO_S};
    f->t = (struct notify_target){.n = &f->n, .kind = NOTIFY_ALERTMANAGER, .alerts = alerts_new()};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fix *f = *state;
    alerts_free(f->t.alerts);
    alarms_free(f->a);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void raise(struct fix *f, unsigned n)
{
    char subject[40], reason[REASON + 1];
    memset(reason, 'x', REASON);
    reason[REASON] = 0;
    for (unsigned i = 0; i < n; i++) {
        snprintf(subject, sizeof(subject), "s%u", i);
        alarm_raise(
            f->a,
            &(struct alarm_report){
                .fabric = "a", .rule = "L06", .subject = subject, .severity = ALARM_MAJOR, .reason = reason});
    }
}

static unsigned alerts_in(const struct buf *b)
{
    unsigned n = 0;
    for (const char *s = b->data; (s = strstr(s, "\"startsAt\"")) != NULL; s++)
        n++;
    return n;
}

// Alerts of a load; ret_first: of its first body.
static unsigned compose(struct fix *f, bool all, unsigned *ret_bodies, unsigned *ret_first)
{
    struct buf body[NOTIFY_BODIES] = {0};
    unsigned sum = 0;
    *ret_bodies = alerts_compose(&f->t, all, body);
    *ret_first = *ret_bodies > 0 ? alerts_in(&body[0]) : 0;
    for (unsigned i = 0; i < *ret_bodies; i++) {
        sum += alerts_in(&body[i]);
        buf_done(&body[i]);
    }
    return sum;
}

static void a_part_is_taken(void **state)
{
    struct fix *f = *state;
    unsigned bodies, first, again;
    raise(f, 400);
    assert_int_equal(compose(f, true, &bodies, &first), 400);
    assert_true(bodies >= 3 && first < 200);
    assert_int_equal(alerts_done(&f->t, 1, false), first);
    assert_int_equal(compose(f, false, &bodies, &again), 400 - first);
}

static void a_body_is_refused(void **state)
{
    struct fix *f = *state;
    unsigned bodies, first, again;
    raise(f, 400);
    compose(f, true, &bodies, &first);
    assert_int_equal(alerts_done(&f->t, 0, true), 0);
    // The others are due, and the refused ones with the next round.
    assert_int_equal(compose(f, false, &bodies, &again), 400 - first);
    assert_int_equal(alerts_done(&f->t, bodies, false), 400 - first);
    assert_int_equal(compose(f, false, &bodies, &again), 0);
    assert_int_equal(compose(f, true, &bodies, &again), 400);
}

static void more_than_a_load(void **state)
{
    struct fix *f = *state;
    unsigned bodies, first;
    raise(f, 10000);
    for (int round = 0; round < 2; round++) {
        unsigned n = compose(f, true, &bodies, &first);
        assert_int_equal(bodies, NOTIFY_BODIES);
        assert_in_range(n, 5000, 9999);
        assert_int_equal(alerts_done(&f->t, bodies, false), n);
        assert_int_equal(compose(f, false, &bodies, &first), 10000 - n);
        alerts_done(&f->t, bodies, false);
        assert_int_equal(compose(f, false, &bodies, &first), 0);
    }
}

static void an_answer_asks_for_time(void **state)
{
    struct fix *f = *state;
    f->t.tries = 1;
    assert_int_equal(notify_wait(&f->t, 0, 0), MONO_S / 2);
    assert_int_equal(notify_wait(&f->t, 10 * MONO_S, 0), 10 * MONO_S);
    assert_int_equal(notify_wait(&f->t, 3600 * MONO_S, 0), 20 * MONO_S);
    f->t.kind = NOTIFY_WEBHOOK;
    assert_int_equal(notify_wait(&f->t, 3600 * MONO_S, 0), 60 * MONO_S);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_part_is_taken, setup, teardown),
        cmocka_unit_test_setup_teardown(a_body_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(more_than_a_load, setup, teardown),
        cmocka_unit_test_setup_teardown(an_answer_asks_for_time, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
