// SPDX-License-Identifier: Apache-2.0
#include "daemon/cables.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "lib/err.h"
#include "lib/log.h"
#include "lib/pool.h"
#include "lib/xalloc.h"
#include "telemetry/module.h"
#include "telemetry/telemetry.h"

#define LINES_TOLD 20
#define AHEAD_TOLD_NS (60 * MONO_S) // clocks of two machines differ a little
#define NEVER INT64_MIN

struct cables {
    struct pool *pool;
    char *fabric, *path;
    struct cables_callbacks cb;
    struct tele_modules *modules; // of the last file that could be read
    int64_t written_ns;           // of them; NEVER: none, or it is told that they are old
    int64_t read_ns, seen_ns; // of the file that was read last, of that at the last look; -1: there was none
    bool ahead_told;
    struct reading { // a large file takes a third of a second
        struct pool_job job;
        bool running;
        int64_t written_ns;
        unsigned lines; // told of
        struct tele_modules *modules;
        struct err e;
    } reading;
};

static void on_line(void *arg, unsigned line, const char *text)
{
    struct cables *c = arg;
    if (++c->reading.lines <= LINES_TOLD)
        log_warning("cable-file-line", "fabric=%s file=\"%s\" line=%u text=\"%s\"", c->fabric, c->path, line,
                    text);
}

static void read_file(void *arg, struct par *par)
{
    struct cables *c = arg;
    (void)par;
    c->reading.modules = tele_modules_read(c->path, on_line, c, &c->reading.e);
}

// A file that cannot be read leaves what was known.
static void file_read(void *arg)
{
    struct cables *c = arg;
    struct reading *r = &c->reading;
    char text[700];
    r->running = false;
    if (r->modules == NULL) {
        log_warning("cable-file-not-read", "fabric=%s text=\"%s\"", c->fabric,
                    err_str(&r->e, text, sizeof(text)));
        return;
    }
    log_notice("cable-file", "fabric=%s file=\"%s\" modules=%u devices=%u lines_left_out=%u", c->fabric,
               c->path, tele_modules_num(r->modules), tele_devices_num(r->modules), r->lines);
    tele_modules_free(c->modules);
    c->modules = r->modules;
    c->written_ns = r->written_ns;
    r->modules = NULL;
    c->cb.read(c->cb.arg);
}

static void tell(const struct cables *c, const char *kind, int64_t ns, const char *text)
{
    log_warning(kind, "fabric=%s file=\"%s\" seconds=%lld text=\"%s\"", c->fabric, c->path,
                (long long)(ns / MONO_S), text);
    c->cb.event(c->cb.arg, kind, "warning", c->path, text);
}

// Once, until there is one whose time can be.
static void tell_if_ahead(struct cables *c, int64_t ns)
{
    if (ns > AHEAD_TOLD_NS && !c->ahead_told)
        tell(
            c, "cable-file-ahead", ns,
            "written in the future, if its time is right: it counts as written when it was read; look at the "
            "clock of the machine that writes it, and at this one's");
    c->ahead_told = ns > AHEAD_TOLD_NS;
}

// Gone, or written by nobody any more: said once, since alarms end with it that nobody has mended.
static void tell_if_old(struct cables *c, int64_t aging_ns)
{
    if (c->written_ns == NEVER || aging_ns - c->written_ns <= TELE_MODULES_OLD_NS)
        return;
    tell(c, "cable-file-old", aging_ns - c->written_ns,
         "not written for a day: nothing is known of modules and devices any more, and alarms of them "
         "(L16, L17, L18) end");
    c->written_ns = NEVER;
}

// Somebody may be writing it.
static bool is_in_the_making(const struct cables *c, int64_t written_ns, int64_t wall_ns)
{
    if (c->read_ns == NEVER || written_ns < 0)
        return false;
    return written_ns > wall_ns ? written_ns != c->seen_ns : wall_ns - written_ns < MONO_S;
}

void cables_look(struct cables *c, int64_t wall_ns, int64_t aging_ns)
{
    if (c == NULL)
        return;
    tell_if_old(c, aging_ns);
    if (c->reading.running)
        return;
    int64_t written_ns = tele_modules_written(c->path);
    bool wait = is_in_the_making(c, written_ns, wall_ns);
    c->seen_ns = written_ns;
    if (written_ns == c->read_ns || wait)
        return;
    c->read_ns = written_ns;
    tell_if_ahead(c, written_ns - wall_ns);
    c->reading =
        (struct reading){.job = {.work = read_file, .done = file_read, .arg = c, .name = "cable-file"},
                         .running = true,
                         .written_ns = written_ns < wall_ns ? written_ns : wall_ns};
    pool_submit(c->pool, &c->reading.job);
}

struct tele_modules *cables_modules(const struct cables *c)
{
    return c != NULL && c->modules != NULL ? tele_modules_ref(c->modules) : NULL;
}

struct cables *cables_new(struct pool *p, const char *fabric, const char *path,
                          const struct cables_callbacks *cb)
{
    if (path[0] == 0)
        return NULL;
    struct cables *c = xcalloc(1, sizeof(*c));
    c->pool = p;
    c->fabric = xstrdup(fabric);
    c->path = xstrdup(path);
    c->cb = *cb;
    c->written_ns = c->read_ns = c->seen_ns = NEVER;
    return c;
}

void cables_free(struct cables *c)
{
    if (c == NULL)
        return;
    pool_cancel(&c->reading.job);
    tele_modules_free(c->reading.modules);
    tele_modules_free(c->modules);
    free(c->fabric);
    free(c->path);
    free(c);
}
