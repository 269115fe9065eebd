// SPDX-License-Identifier: Apache-2.0
// Events for webhooks and syslog: what is too old is left out and counted once, however often a load is
// composed; a load that is taken moves the cursor behind it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "db/db.h"
#include "lib/err.h"
#include "lib/xalloc.h"
#include "telemetry/notify_priv.h"

struct fix {
    char dir[200];
    struct loop *loop;
    struct db *db;
    struct notifier n;
    struct notify_target t;
};

static int setup(void **state)
{
    struct fix *f = xcalloc(1, sizeof(*f));
    const char *tmp = getenv("TMPDIR");
    struct db_open_report rep;
    struct err e = {0};
    snprintf(f->dir, sizeof(f->dir), "%.150s/weft-test-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->dir));
    f->loop = loop_new(LOOP_VIRTUAL);
    f->db = db_open(f->loop, f->dir, &rep, &e);
    assert_non_null(f->db);
    f->n = (struct notifier){.loop = f->loop, .db = f->db, .facility = 16, .replay_ns = 3600 * MONO_S};
    f->t = (struct notify_target){.n = &f->n, .kind = NOTIFY_SYSLOG, .text = "tcp://x"};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fix *f = *state;
    char *cmd = xasprintf("rm -rf '%s'", f->dir);
    db_close(f->db);
    loop_free(f->loop);
    int rc = system(cmd);
    free(cmd);
    free(f);
    return rc;
}

static uint64_t event(struct fix *f, const char *kind, int64_t seconds_ago)
{
    return db_event_add(f->db, &(struct db_event){.wall_ns = wall_now_ns() - seconds_ago * MONO_S,
                                                  .fabric = "a",
                                                  .kind = kind,
                                                  .severity = "warning",
                                                  .subject = "s",
                                                  .text = "text",
                                                  .data = "{\"alarm\":1,\"active\":true}"});
}

static unsigned compose(struct fix *f)
{
    struct buf body[NOTIFY_BODIES] = {0};
    db_flush(f->db);
    unsigned n = events_compose(&f->t, body);
    for (unsigned i = 0; i < NOTIFY_BODIES; i++)
        buf_done(&body[i]);
    return n;
}

static void too_old_is_counted_once(void **state)
{
    struct fix *f = *state;
    event(f, "alarm-raised", 10000);
    event(f, "alarm-cleared", 9000);
    event(f, "link-down", 8000); // of no alarm
    uint64_t last = event(f, "alarm-raised", 5);
    assert_int_equal(compose(f), 1);
    events_done(&f->t, 0, false); // not taken
    assert_int_equal(compose(f), 1);
    assert_int_equal(f->t.status.dropped, 2);
    assert_int_equal(f->t.dropped_untold, 2);
    events_done(&f->t, 1, false);
    assert_int_equal(f->t.cursor, last);
    assert_int_equal(compose(f), 0);
    event(f, "alarm-raised", 7000);
    assert_int_equal(compose(f), 0);
    assert_int_equal(f->t.status.dropped, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(too_old_is_counted_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
