// SPDX-License-Identifier: Apache-2.0
// weft sim play: commands of weft sim from a file, each at its time.
//
//     # a comment
//     90s   link flap leaf-1[33] --times 5      so long after the start
//     +1m   traffic stop                        so long after the line before
//
// All lines are read and parsed before the first one is run. Words are parted by blanks; "..." and '...' keep
// blanks together. A word ends the line when it begins with #.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "lib/buf.h"
#include "lib/mono.h"
#include "lib/xalloc.h"

#define FILE_MAX (1u << 20)
#define LINES_MAX 10000
#define DAYS_MAX (100 * 86400.0)

struct play_line {
    unsigned number;
    double at;                 // seconds after the start
    char *words[ARGS_MAX + 2]; // into the file's text: "weft", "sim", ...
    int num_words;
    struct args args;
};

// The next word at *p, which goes on behind it; the word is ended by a NUL. NULL at the end of the line.
static char *next_word(char **p)
{
    char *s = *p + strspn(*p, " \t\r"), *out = s, *word = s;
    char quote = 0;
    if (*s == 0 || *s == '#') {
        *p = s + strlen(s);
        return NULL;
    }
    for (; *s != 0 && (quote != 0 || strchr(" \t\r", *s) == NULL); s++) {
        if (quote == 0 && (*s == '"' || *s == '\''))
            quote = *s;
        else if (quote != 0 && *s == quote)
            quote = 0;
        else
            *out++ = *s;
    }
    *p = *s ? s + 1 : s;
    *out = 0;
    return word;
}

static int bad(const char *file, unsigned line, const char *why)
{
    char where[300];
    snprintf(where, sizeof(where), "%.200s:%u", file, line);
    return cli_fail(CLI_USAGE, where, "%s", why);
}

static int parse_line(const char *file, char *text, double before, struct play_line *l)
{
    char why[300];
    struct err e = {0};
    char *time = next_word(&text), *w;
    bool relative = time[0] == '+';

    if (cli_parse_seconds(time + relative, &l->at) != 0 || l->at > DAYS_MAX) {
        snprintf(why, sizeof(why), "\"%.40s\" is not a time, such as 90s, 5m, +10s", time);
        return bad(file, l->number, why);
    }
    l->at += relative ? before : 0;
    if (l->at < before)
        return bad(file, l->number, "it comes before the line above");
    l->words[l->num_words++] = (char *)"weft";
    l->words[l->num_words++] = (char *)"sim";
    while ((w = next_word(&text)) != NULL) {
        if (l->num_words == ARGS_MAX)
            return bad(file, l->number, "too many words");
        l->words[l->num_words++] = w;
    }
    if (args_parse(&l->args, l->num_words, l->words, &e) != 0) {
        snprintf(why, sizeof(why), "%.80s%s%.200s", e.where, e.where[0] ? ": " : "", e.text);
        return bad(file, l->number, why);
    }
    if (l->args.command == NULL || l->args.command->run == cmd_sim_play || args_has(&l->args, "watch") ||
        args_has(&l->args, "help"))
        return bad(file, l->number, "this is nothing that is done to a simulated fabric");
    return CLI_OK;
}

static int parse_file(const char *file, char *text, struct play_line **ret, unsigned *ret_num)
{
    unsigned number = 0, n = 0;
    double before = 0;
    char *line, *rest = text;

    *ret = NULL;
    while ((line = strsep(&rest, "\n")) != NULL) {
        number++;
        line += strspn(line, " \t\r");
        if (*line == 0 || *line == '#')
            continue;
        if (n == LINES_MAX)
            return bad(file, number, "too many lines");
        *ret = xreallocarray(*ret, n + 1, sizeof(**ret));
        (*ret)[n] = (struct play_line){.number = number};
        int rc = parse_line(file, line, before, &(*ret)[n]);
        if (rc != CLI_OK)
            return rc;
        before = (*ret)[n++].at;
    }
    *ret_num = n;
    return n > 0 ? CLI_OK : bad(file, number, "there is nothing in it");
}

// One line, as if it had been typed; its options for weftd's socket and output are the outer command's.
static int run_line(struct cli *c, const struct play_line *l)
{
    struct args outer = c->args;
    unsigned s = (unsigned)(l->at + 0.5);
    bool table = l->args.command->run == cmd_sim_show ||
                 (l->args.num_words > 0 && strcmp(l->args.word[0], "list") == 0);

    if (c->out.format == OUT_TABLE)
        out_printf(&c->out, "%02u:%02u:%02u  ", s / 3600, s / 60 % 60, s % 60);
    if (c->out.format == OUT_TABLE && table)
        out_newline(&c->out);
    c->args = l->args;
    int rc = c->args.command->run(c);
    c->args = outer;
    int written = cli_flush(c);
    return rc != CLI_OK ? rc : written;
}

static int play(struct cli *c, const char *file, const struct play_line *l, unsigned n)
{
    mono_t start = mono_now();
    for (unsigned i = 0; i < n; i++) {
        double left = l[i].at - mono_seconds(mono_sub(mono_now(), start));
        if (left > 0 && !cli_sleep(left))
            return CLI_INTERRUPTED;
        int rc = run_line(c, &l[i]);
        if (rc != CLI_OK) {
            bad(file, l[i].number, "ended here");
            return rc;
        }
    }
    return CLI_OK;
}

int cmd_sim_play(struct cli *c)
{
    const char *file = c->args.word[0];
    struct buf text = {0};
    struct play_line *l = NULL;
    unsigned n = 0;

    int rc = buf_read_file(&text, file, FILE_MAX);
    if (rc != 0) {
        buf_done(&text);
        return cli_fail(CLI_USAGE, file, "%s", strerror(-rc));
    }
    buf_putc(&text, 0);
    rc = parse_file(file, text.data, &l, &n);
    if (rc == CLI_OK && args_has(&c->args, "check")) {
        out_printf(&c->out, "%u lines, %g s", n, l[n - 1].at);
        out_newline(&c->out);
    } else if (rc == CLI_OK) {
        rc = play(c, file, l, n);
    }
    free(l);
    buf_done(&text);
    return rc;
}
