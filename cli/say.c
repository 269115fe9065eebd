// SPDX-License-Identifier: Apache-2.0
// What goes to stderr, and small things that every command uses.
#include <errno.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli.h"
#include "cli/text.h"

static void say(const char *text)
{
    struct buf b = {0};
    text_escape(&b, text, false);
    fprintf(stderr, "weft: %s\n", b.data ? b.data : "");
    buf_done(&b);
}

void cli_complain(const struct err *e)
{
    char text[700];
    say(err_str(e, text, sizeof(text)));
}

enum cli_exit cli_fail(enum cli_exit x, const char *where, const char *fmt, ...)
{
    struct buf b = {0};
    char *s = NULL;
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        abort();
    va_end(ap);
    if (where != NULL)
        buf_printf(&b, "%s: ", where);
    buf_puts(&b, s);
    say(b.data);
    buf_done(&b);
    free(s);
    return x;
}

void cli_progress(struct cli *c, const char *fmt, ...)
{
    struct buf b = {0};
    char *s = NULL;
    va_list ap;

    if (c->quiet)
        return;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0)
        abort();
    va_end(ap);
    text_escape(&b, s, false);
    fprintf(stderr, "\r\033[K%.78s", b.data ? b.data : "");
    c->told = true;
    buf_done(&b);
    free(s);
}

void cli_progress_end(struct cli *c)
{
    if (c->told)
        fputs("\r\033[K", stderr);
    c->told = false;
}

void cli_said(struct cli *c, json_t *r)
{
    if (c->out.format == OUT_JSON) {
        out_json(&c->out, r);
    } else {
        out_printf(&c->out, "%s", js_str(r, "text"));
        out_newline(&c->out);
    }
}

const char *cli_user(const char *by)
{
    unsigned id;
    const struct passwd *p = sscanf(by, "user id %u", &id) == 1 ? getpwuid(id) : NULL;
    return p != NULL ? p->pw_name : by;
}

bool cli_sleep(double seconds)
{
    struct timespec t = {.tv_sec = (time_t)seconds,
                         .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9)};
    return !cli_interrupted && (nanosleep(&t, NULL) == 0 || !cli_interrupted);
}

// A reader that went away is no failure of ours and needs no word.
int cli_flush(struct cli *c)
{
    int rc = out_flush(&c->out);
    if (rc == -EPIPE)
        return CLI_PARTIAL;
    if (rc != 0)
        return cli_fail(CLI_PARTIAL, "stdout", "cannot be written: %s", strerror(-rc));
    return CLI_OK;
}

int cli_number(struct cli *c, const char *name, long long min, long long max, long long *ret)
{
    const char *s = args_value(&c->args, name);
    if (s == NULL || text_parse_count(s, min, max, ret) == 0)
        return CLI_OK;
    return cli_fail(CLI_USAGE, NULL, "--%s: \"%s\" is no number from %lld to %lld", name, s, min, max);
}
