// SPDX-License-Identifier: Apache-2.0
// Help, doc/cli.md and the completion script, all from the rows.
#include <string.h>

#include "cli/cli.h"
#include "cli/text.h"

static void option_head(struct buf *b, const struct option_row *r)
{
    if (r->letter)
        buf_printf(b, "-%c, ", r->letter);
    buf_printf(b, "--%s", r->name);
    if (r->arg == OPTION_VALUE)
        buf_printf(b, " %s", r->value);
    else if (r->arg == OPTION_EQUALS)
        buf_printf(b, "[=%s]", r->value);
    else if (r->arg == OPTION_NUMBER)
        buf_printf(b, " [%s]", r->value);
}

static void option_line(struct buf *b, const struct option_row *r)
{
    struct buf head = {0};
    option_head(&head, r);
    buf_printf(b, "  %-24s %s\n", head.data, r->doc);
    if (r->choice != NULL && strstr(r->doc, "json or csv") == NULL)
        buf_printf(b, "  %-24s one of: %s\n", "", r->choice);
    buf_done(&head);
}

static void options(struct buf *b, const struct command_row *c)
{
    const char *title = "\noptions:\n";
    for (const struct option_row *r = option_rows; r->name; r++)
        if (!r->global && !r->hidden && command_takes(c, r)) {
            buf_puts(b, title);
            title = "";
            option_line(b, r);
        }
}

static void global_options(struct buf *b)
{
    for (const struct option_row *r = option_rows; r->name; r++)
        if (r->global)
            option_line(b, r);
}

static void indented(struct buf *b, const char *lines)
{
    for (const char *p = lines; *p;) {
        size_t n = strcspn(p, "\n");
        buf_puts(b, "  ");
        buf_add(b, p, n);
        buf_putc(b, '\n');
        p += n + (p[n] == '\n');
    }
}

#define FIELDS_WIDTH 98

static void add_field(struct buf *b, size_t *line, const char *name, size_t n)
{
    if (*line > 0 && *line + n + 1 > FIELDS_WIDTH) {
        buf_puts(b, "\n ");
        *line = 1;
    }
    buf_puts(b, " ");
    buf_add(b, name, n);
    *line += n + 1;
}

// "fields: state place …": what a FOCUS knows.
static void field_lines(struct buf *b, const struct command_row *c)
{
    const struct field *own = c->own_fields != NULL ? c->own_fields() : NULL;
    size_t line = 7;
    if (own == NULL && c->fields == NULL)
        return;
    buf_puts(b, "fields:");
    for (const struct field *f = own; f != NULL && f->key; f++) {
        bool twice = false;
        for (const struct field *g = own; g < f; g++)
            twice |= strcmp(f->key, g->key) == 0;
        if (!twice)
            add_field(b, &line, f->key, strlen(f->key));
    }
    for (const char *p = c->fields; p != NULL && *p; p += strspn(p, " ")) {
        size_t n = strcspn(p, " ");
        add_field(b, &line, p, n);
        p += n;
    }
    buf_putc(b, '\n');
}

int help_command(struct out *o, const struct command_row *c)
{
    struct buf *b = &o->text;
    buf_printf(b, "usage: weft %s%s%s [options]\n\n%s\n", c->name, c->args[0] ? " " : "", c->args, c->doc);
    if (c->more != NULL)
        buf_printf(b, "\n%s", c->more);
    options(b, c);
    buf_puts(b, "\noptions of every command:\n");
    global_options(b);
    buf_puts(b, "\nexamples:\n");
    indented(b, c->example);
    if (c->fields != NULL || c->own_fields != NULL)
        buf_puts(b, "\n");
    field_lines(b, c);
    return CLI_OK;
}

#define EXIT_CODES                                                                                           \
    "0 ok, 1 findings, 2 usage, 3 weftd not reachable, 4 denied, 5 timeout, 6 answer not complete"

void help_all(struct out *o)
{
    struct buf *b = &o->text;
    buf_puts(b, "usage: weft COMMAND [options]\n\n");
    for (const struct command_row *c = command_rows; c->name; c++) {
        struct buf head = {0};
        buf_printf(&head, "%s%s%s", c->name, c->args[0] ? " " : "", c->args);
        buf_printf(b, "  %-33s %s\n", head.data, c->doc);
        buf_done(&head);
    }
    buf_puts(b, "\noptions of every command:\n");
    global_options(b);
    buf_puts(b, "\nweft help COMMAND tells more.  Exit codes: " EXIT_CODES ".\n");
}

static void markdown_options(struct buf *b, const struct command_row *c, bool global)
{
    bool any = false;
    for (const struct option_row *r = option_rows; r->name; r++) {
        if (r->hidden || r->global != global || (c != NULL && !command_takes(c, r)))
            continue;
        buf_puts(b, any ? "" : "| option | |\n|---|---|\n");
        any = true;
        struct buf head = {0};
        option_head(&head, r);
        buf_puts(b, "| `");
        for (const char *p = head.data; *p; p++)
            buf_printf(b, *p == '|' ? "\\%c" : "%c", *p);
        buf_printf(b, "` | %s%s%s |\n", r->doc, r->choice ? "; one of: " : "", r->choice ? r->choice : "");
        buf_done(&head);
    }
    buf_puts(b, any ? "\n" : "");
}

void help_markdown(struct out *o)
{
    struct buf *b = &o->text;
    buf_puts(
        b,
        "# weft: the command\n\n"
        "`weft` shows and changes what `weftd` manages, over its socket. This page is made from the rows of\n"
        "cli/commands.c by `weft help --markdown`; a test compares them.\n\n"
        "Exit codes: " EXIT_CODES ".\n\n"
        "Tables are for people: they fit the terminal, and may change. Programs read `-o json` (lists have "
        "an\n"
        "object a line) or `-o csv` (always one line a record); both escape control characters.\n\n"
        "## Options of every command\n\nOptions may stand anywhere on the line; `--` ends them.\n\n");
    markdown_options(b, NULL, true);
    for (const struct command_row *c = command_rows; c->name; c++) {
        buf_printf(b, "## weft %s\n\n`weft %s%s%s`: %s.\n\n", c->name, c->name, c->args[0] ? " " : "",
                   c->args, c->doc);
        if (c->more != NULL)
            buf_printf(b, "%s\n", c->more);
        field_lines(b, c);
        buf_puts(b, c->fields != NULL || c->own_fields != NULL ? "\n" : "");
        markdown_options(b, c, false);
        buf_puts(b, "```\n");
        buf_printf(b, "%s```\n%s", c->example, c[1].name ? "\n" : "");
    }
}

// What follows the words of a command: "case "route" in ... next words".
static void completion_words(struct buf *b)
{
    buf_puts(b, "    local first=\"");
    for (const struct command_row *c = command_rows; c->name; c++) {
        const struct command_row *same = command_rows;
        size_t n = strcspn(c->name, " ");
        while (strncmp(same->name, c->name, n) != 0 || strcspn(same->name, " ") != n)
            same++;
        if (same == c)
            buf_printf(b, "%s%.*s", c > command_rows ? " " : "", (int)n, c->name);
    }
    buf_puts(b, "\"\n    local -A second=(");
    const char *before = "";
    for (const struct command_row *c = command_rows; c->name; c++) {
        size_t n = strcspn(c->name, " ");
        if (c->name[n] == 0)
            continue;
        bool same = strncmp(before, c->name, n + 1) == 0;
        if (!same)
            buf_printf(b, "%s[%.*s]=\"", before[0] ? "\" " : "", (int)n, c->name);
        buf_printf(b, "%s%s", same ? " " : "", c->name + n + 1);
        before = c->name;
    }
    buf_puts(b, "\")\n");
}

static void completion_options(struct buf *b)
{
    buf_puts(b, "    local -A options=(\n");
    for (const struct command_row *c = command_rows; c->name; c++) {
        buf_printf(b, "        [\"%s\"]=\"", c->name);
        bool any = false;
        for (const struct option_row *r = option_rows; r->name; r++)
            if (!r->hidden && !r->global && command_takes(c, r)) {
                buf_printf(b, "%s--%s", any ? " " : "", r->name);
                any = true;
            }
        buf_puts(b, "\"\n");
    }
    buf_puts(b, "    )\n    local all=\"");
    for (const struct option_row *r = option_rows; r->name; r++)
        if (r->global)
            buf_printf(b, "%s--%s", r == option_rows ? "" : " ", r->name);
    buf_puts(b, "\"\n");
}

// The value of the option before the cursor.
static void completion_values(struct buf *b)
{
    buf_puts(b, "    case $prev in\n");
    for (const struct option_row *r = option_rows; r->name; r++) {
        if (r->arg != OPTION_VALUE)
            continue;
        if (r->letter)
            buf_printf(b, "    -%c | ", r->letter);
        buf_printf(b, "%s--%s) ", r->letter ? "" : "    ", r->name);
        if (r->choice != NULL)
            buf_printf(b, "COMPREPLY=($(compgen -W \"%s\" -- \"$cur\"))", r->choice);
        else if (strcmp(r->value, "PATH") == 0 || strcmp(r->value, "FILE") == 0)
            buf_puts(b, "compopt -o default; COMPREPLY=()");
        else
            buf_puts(b, "COMPREPLY=()");
        buf_puts(b, "; return ;;\n");
    }
    buf_puts(b, "    esac\n");
}

void help_completion(struct out *o)
{
    struct buf *b = &o->text;
    buf_puts(
        b, "# bash completion of weft; made by: weft help --completion\n_weft() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} w i skip= words=()\n");
    completion_words(b);
    completion_options(b);
    completion_values(b);
    buf_puts(b, "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                "        w=${COMP_WORDS[i]}\n"
                "        if [ -n \"$skip\" ]; then skip=; continue; fi\n"
                "        case $w in\n        ");
    const char *bar = "";
    for (const struct option_row *r = option_rows; r->name; r++)
        if (r->arg == OPTION_VALUE) {
            buf_printf(b, r->letter ? "%s-%c" : "%s", bar, r->letter);
            buf_printf(b, "%s--%s", r->letter ? " | " : "", r->name);
            bar = " | ";
        }
    buf_puts(b, ") skip=1 ;;\n"
                "        -*) ;;\n"
                "        *) words+=(\"$w\") ;;\n"
                "        esac\n"
                "    done\n"
                "    local name=${words[0]}\n"
                "    [ ${#words[@]} -gt 1 ] && [ -n \"${options[$name ${words[1]}]+x}\" ] && name=\"$name "
                "${words[1]}\"\n"
                "    if [[ $cur == -* ]]; then\n"
                "        [ -n \"$name\" ] && all=\"$all ${options[$name]}\"\n"
                "        COMPREPLY=($(compgen -W \"$all\" -- \"$cur\"))\n"
                "    elif [ ${#words[@]} -eq 0 ] || [ \"${words[0]}\" = help ]; then\n"
                "        COMPREPLY=($(compgen -W \"$first\" -- \"$cur\"))\n"
                "    elif [ ${#words[@]} -eq 1 ] && [ -n \"${second[${words[0]}]}\" ]; then\n"
                "        COMPREPLY=($(compgen -W \"${second[${words[0]}]}\" -- \"$cur\"))\n"
                "    else\n"
                "        case $name in\n"
                "        route* | whatif | export | blueprint*) compopt -o default ;;\n"
                "        esac\n"
                "    fi\n"
                "}\n"
                "complete -F _weft weft\n");
}

int cmd_help(struct cli *c)
{
    unsigned used;

    if (args_has(&c->args, "markdown")) {
        help_markdown(&c->out);
    } else if (args_has(&c->args, "completion")) {
        help_completion(&c->out);
    } else if (c->args.num_words == 0) {
        help_all(&c->out);
    } else {
        bool any = false;
        const struct command_row *row = command_find(c->args.word, c->args.num_words, &used);
        if (row != NULL)
            return help_command(&c->out, row);
        for (row = command_rows; row->name; row++) { // a group
            size_t n = strcspn(row->name, " ");
            if (row->name[n] == ' ' && strlen(c->args.word[0]) == n &&
                strncmp(row->name, c->args.word[0], n) == 0) {
                buf_puts(&c->out.text, any ? "\n" : "");
                help_command(&c->out, row);
                any = true;
            }
        }
        if (!any)
            return cli_fail(CLI_USAGE, c->args.word[0], "no such command; see: weft help");
    }
    return CLI_OK;
}
