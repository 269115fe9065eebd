// SPDX-License-Identifier: Apache-2.0
// What db's tests share: a directory of their own, opening that must succeed, waiting for done().
#ifndef WEFT_TESTS_DBTEST_H
#define WEFT_TESTS_DBTEST_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "db/db.h"
#include "lib/err.h"
#include "lib/loop.h"
#include "lib/xalloc.h"

#define G(n) (0x0002c90300000000ULL + (n))

struct fix {
    char dir[200];
    struct loop *loop;
    struct db *db;
    struct db_open_report rep;
};

struct wait {
    bool done;
    int status;
    unsigned order; // 1, 2, ...: which of all was called when
    unsigned *counter;
};

static inline void on_done(void *arg, int status)
{
    struct wait *w = arg;
    w->done = true;
    w->status = status;
    if (w->counter)
        w->order = ++*w->counter;
}

static inline int wait_for(struct fix *f, struct wait *w)
{
    assert_true(loop_run_until(f->loop, &w->done, 120 * MONO_S));
    w->done = false;
    return w->status;
}

static inline void fix_open(struct fix *f)
{
    struct err e = {0};
    f->db = db_open(f->loop, f->dir, &f->rep, &e);
    if (!f->db)
        fail_msg("%s: %s", e.where, e.text);
}

static inline void fix_reopen(struct fix *f)
{
    db_close(f->db);
    fix_open(f);
}

static inline void fix_refused(struct fix *f, int code, const char *word)
{
    struct err e = {0};
    assert_null(db_open(f->loop, f->dir, &f->rep, &e));
    assert_int_equal(e.code, code);
    if (!strstr(e.text, word))
        fail_msg("\"%s\" is not in \"%s\"", word, e.text);
}

static inline int fix_setup(void **state)
{
    struct fix *f = xcalloc(1, sizeof(*f));
    const char *tmp = getenv("TMPDIR");
    snprintf(f->dir, sizeof(f->dir), "%s/weft-db-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(f->dir));
    f->loop = loop_new(LOOP_REAL);
    *state = f;
    return 0;
}

static inline int fix_teardown(void **state)
{
    struct fix *f = *state;
    char *cmd =
        xasprintf("umount -l '%s' 2>/dev/null; rm -rf '%s'", f->dir, f->dir); // mounted: a test that failed
    db_close(f->db);
    loop_free(f->loop);
    int rc = system(cmd);
    free(cmd);
    free(f);
    return rc;
}

static inline int put_lids(struct fix *f, const char *fabric, const struct db_lid *l, size_t n)
{
    struct wait w = {0};
    db_lids_put(f->db, fabric, l, n, on_done, &w);
    return wait_for(f, &w);
}

// "lid/lmc=guid's low bits in hex" joined by blanks.
static inline void expect_lids(struct fix *f, const char *fabric, const char *want)
{
    struct db_lid *l;
    char got[1000] = "";
    long n = db_lids_load(f->db, fabric, &l);
    assert_true(n >= 0);
    for (long i = 0; i < n; i++)
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%u/%u=%llx", i ? " " : "", l[i].lid,
                 l[i].lmc, (unsigned long long)(l[i].port_guid - G(0)));
    free(l);
    assert_string_equal(got, want);
}

static inline char *fix_path(struct fix *f, const char *name)
{
    return xasprintf("%s/%s", f->dir, name);
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, fix_setup, fix_teardown)

#endif
