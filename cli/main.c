// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/text.h"
#include "lib/xalloc.h"

#define TIMEOUT_DEFAULT 30
#define WATCH_DEFAULT 2

static void on_signal(int sig)
{
    (void)sig;
    cli_interrupted = 1;
}

static void catch_signals(void)
{
    struct sigaction sa = {.sa_handler = on_signal}; // no SA_RESTART: sleeps end
    sigaction(SIGINT, &sa, NULL);
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGHUP, &sa, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static unsigned terminal_width(void)
{
    struct winsize ws;
    long long n;
    const char *columns = getenv("COLUMNS");
    if (columns != NULL && text_parse_count(columns, 20, 10000, &n) == 0)
        return (unsigned)n;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col >= 20)
        return ws.ws_col;
    return 100;
}

static void set_out(struct cli *c)
{
    const char *format = args_value(&c->args, "output"), *no_color = getenv("NO_COLOR"),
               *term = getenv("TERM");
    struct out *o = &c->out;

    o->format = format == NULL || format[0] == 't' ? OUT_TABLE : format[0] == 'j' ? OUT_JSON : OUT_CSV;
    o->tty = isatty(STDOUT_FILENO);
    o->width = o->tty ? terminal_width() : 0;
    o->colour = o->tty && o->format == OUT_TABLE && !args_has(&c->args, "no-color") &&
                (no_color == NULL || no_color[0] == 0) && term != NULL && strcmp(term, "dumb") != 0;
    o->header = !args_has(&c->args, "no-header");
    o->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    c->quiet = !isatty(STDERR_FILENO);
}

static int set_up(struct cli *c)
{
    const char *socket = args_value(&c->args, "socket"), *env = getenv("WEFT_SOCKET");
    long long timeout = TIMEOUT_DEFAULT;

    set_out(c);
    int rc = cli_number(c, "timeout", 1, 1000000, &timeout);
    if (rc != CLI_OK)
        return rc;
    c->timeout = (double)timeout;
    c->http = http_new(socket ? socket : env && env[0] ? env : CLI_SOCKET_DEFAULT);
    return CLI_OK;
}

static int run_once(struct cli *c)
{
    int rc = c->args.command->run(c);
    int written = cli_flush(c);
    if (written != CLI_OK)
        return written;
    return rc == CLI_OK && c->partial ? CLI_PARTIAL : rc;
}

static void watch_head(struct cli *c, long long seconds)
{
    char text[64];
    time_t t = (time_t)(wall_now_ns() / MONO_S);
    struct tm tm;

    if (!c->out.tty || c->out.format != OUT_TABLE)
        return;
    localtime_r(&t, &tm);
    strftime(text, sizeof(text), "%F %T %Z", &tm);
    buf_puts(&c->out.text, "\033[H\033[2J");
    out_paint(&c->out, COLOUR_DIM, "weft %s, every %lld s: %s", c->args.command->name, seconds, text);
    out_newline(&c->out);
}

// Until it is interrupted. A weftd that goes away is waited for.
static int watch(struct cli *c)
{
    long long seconds = WATCH_DEFAULT;
    int rc = cli_number(c, "watch", 1, 86400, &seconds);

    if (rc != CLI_OK)
        return rc;
    do {
        c->partial = false;
        watch_head(c, seconds);
        rc = run_once(c);
        if (rc == CLI_USAGE || rc == CLI_DENIED || rc == CLI_INTERRUPTED)
            break;
    } while (!cli_interrupted && cli_sleep((double)seconds));
    return rc == CLI_INTERRUPTED || (cli_interrupted && rc != CLI_USAGE) ? CLI_OK : rc;
}

static int run(struct cli *c)
{
    if (args_has(&c->args, "version")) {
        buf_puts(&c->out.text, "weft " WEFT_VERSION "\n");
        return cli_flush(c);
    }
    if (args_has(&c->args, "help")) {
        if (c->args.command != NULL)
            help_command(&c->out, c->args.command);
        else
            help_all(&c->out);
        return cli_flush(c);
    }
    int rc = set_up(c);
    if (rc != CLI_OK)
        return rc;
    return args_has(&c->args, "watch") ? watch(c) : run_once(c);
}

int main(int argc, char **argv)
{
    struct cli c = {0};
    struct err e = {0};
    int rc;

    setlocale(LC_ALL, "");
    setlocale(LC_NUMERIC, "C");
    catch_signals();
    if (args_parse(&c.args, argc, argv, &e) != 0) {
        cli_complain(&e);
        return CLI_USAGE;
    }
    rc = run(&c);
    http_free(c.http);
    out_done(&c.out);
    free(c.fabric);
    free(c.fabric_name);
    return rc;
}
