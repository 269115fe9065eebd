// SPDX-License-Identifier: Apache-2.0
#include "cli/tele.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/text.h"
#include "lib/focus.h"
#include "lib/when.h"
#include "lib/xalloc.h"

// A name with blanks in it, as devices have them: it was one word of the shell.
static bool is_name_with_blanks(const char *s)
{
    static const char *const op[] = {" or ", " and ", "not "};
    if (strchr(s, ' ') == NULL || !focus_is_word(s))
        return false;
    for (size_t i = 0; i < sizeof(op) / sizeof(op[0]); i++)
        if (strstr(s, op[i]) != NULL)
            return false;
    return true;
}

char *tele_focus(struct cli *c)
{
    const char *focus = args_value(&c->args, "focus");
    struct buf b = {0};
    if (focus != NULL)
        buf_printf(&b, c->args.num_words > 0 ? "(%s)" : "%s", focus);
    for (unsigned i = 0; i < c->args.num_words; i++)
        buf_printf(&b, is_name_with_blanks(c->args.word[i]) ? "%s'%s'" : "%s%s", b.len ? " " : "",
                   c->args.word[i]);
    return b.len > 0 ? buf_take(&b) : NULL;
}

bool tele_only_names(const struct cli *c)
{
    for (unsigned i = 0; i < c->args.num_words; i++)
        if (!focus_is_word(c->args.word[i]))
            return false;
    return args_value(&c->args, "focus") == NULL;
}

static void say_nothing(struct cli *c, const char *text)
{
    if (c->out.format == OUT_TABLE) {
        out_printf(&c->out, "%s", text);
        out_newline(&c->out);
    } else {
        cli_fail(CLI_OK, NULL, "%s", text);
    }
}

void tele_none_such(struct cli *c, const char *focus, long long n)
{
    struct buf b = {0};
    text_count(&b, n);
    buf_printf(&b,
               n == 1 ? " matches %s, and is none of those that the options ask for"
                      : " match %s, and none is of those that the options ask for",
               focus);
    say_nothing(c, b.data);
    buf_done(&b);
}

void tele_nothing(struct cli *c, const char *focus, long long n, const char *one, const char *many)
{
    struct buf b = {0}, count = {0};
    buf_printf(&b, "nothing matches %s%s%s", strchr(focus, '\'') ? "" : "'", focus,
               strchr(focus, '\'') ? "" : "'");
    text_count(&count, n);
    if (n > 0)
        buf_printf(&b, ": %s %s elsewhere", count.data, n == 1 ? one : many);
    else if (n == 0)
        buf_printf(&b, "; there is none elsewhere either");
    if (c->args.num_words > 1 && tele_only_names(c))
        buf_printf(&b, " (with blanks between names all are meant at once; for any of them write 'A or B')");
    say_nothing(c, b.data);
    buf_done(&b);
    buf_done(&count);
}

bool tele_takes_none(struct cli *c, const char *focus)
{
    struct buf path = {0};
    json_t *items = NULL;
    if (focus == NULL)
        return false;
    buf_printf(&path, "%s/ports", c->fabric);
    http_query(&path, "focus", focus);
    bool none = cli_list(c, path.data, 1, &items) == CLI_OK && json_array_size(items) == 0;
    json_decref(items);
    buf_done(&path);
    if (none)
        tele_nothing(c, focus, -1, "", "");
    return none;
}

// "HOST:RAIL", also with a port behind it: weftd does not know this form. *ret NULL: it is another.
static int host_rail(struct cli *c, const char *word, char **ret)
{
    char node[256];
    const char *colon = strrchr(word, ':');
    size_t n = colon != NULL ? (size_t)(colon - word) + 1 + strspn(colon + 1, "0123456789") : 0;
    json_t *item = NULL;

    *ret = NULL;
    if (n == 0 || n >= sizeof(node) || n == (size_t)(colon - word) + 1 ||
        (word[n] != 0 && word[n] != '/' && word[n] != '[') || strchr(word, ':') != colon)
        return CLI_OK;
    snprintf(node, sizeof(node), "%.*s", (int)n, word);
    int rc = cli_node(c, node, &item);
    if (rc == CLI_OK)
        *ret = xasprintf("%s%s", js_str(item, "guid"), word + n);
    json_decref(item);
    return rc;
}

bool tele_is_host(struct cli *c, const char *word)
{
    struct buf path = {0}, begin = {0};
    json_t *doc = NULL, *n;
    size_t i;
    bool whole = false, part = false;

    if (strpbrk(word, "/[:'") != NULL)
        return false;
    buf_printf(&path, "%s/nodes?limit=200", c->fabric);
    http_query(&path, "name", word);
    buf_printf(&begin, "%s ", word);
    if (cli_get(c, path.data, &doc) == CLI_OK) {
        json_array_foreach(json_object_get(doc, "items"), i, n)
        {
            whole |= strcmp(js_str(n, "name"), word) == 0;
            part |= strncmp(js_str(n, "name"), begin.data, begin.len) == 0;
        }
    }
    json_decref(doc);
    buf_done(&path);
    buf_done(&begin);
    return part && !whole;
}

int tele_words(struct cli *c, char **ret_place, char **ret_focus)
{
    const char *word = c->args.num_words == 1 ? c->args.word[0] : NULL;
    *ret_place = *ret_focus = NULL;
    if (word == NULL || !focus_is_word(word)) {
        *ret_focus = tele_focus(c);
        return CLI_OK;
    }
    if (args_value(&c->args, "focus") != NULL)
        *ret_focus = xstrdup(args_value(&c->args, "focus"));
    int rc = host_rail(c, word, ret_place);
    if (rc == CLI_OK && *ret_place == NULL)
        *ret_place = xstrdup(word);
    return rc;
}

char *tele_shell_port(json_t *end)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/ -";
    const char *name = js_str(end, "name");
    if (name[0] == 0 || strspn(name, plain) != strlen(name))
        return xasprintf("%s/%lld", js_str(end, "guid"), js_int(end, "port"));
    return xasprintf(strchr(name, ' ') != NULL ? "'%s/%lld'" : "%s/%lld", name, js_int(end, "port"));
}

void tele_advice(json_t *x, json_t *end)
{
    static const char word[] = " LINK ";
    const char *advice = js_str(x, "advice"), *at = strstr(advice, word);
    if (at == NULL || !json_is_object(end))
        return;
    char *port = tele_shell_port(end);
    json_object_set_new(x, "advice",
                        json_sprintf("%.*s %s %s", (int)(at - advice), advice, port, at + sizeof(word) - 1));
    free(port);
}

int tele_time(struct cli *c, const char *name, bool ahead, int64_t *ret_ns)
{
    const char *s = args_value(&c->args, name);
    int64_t seconds;
    *ret_ns = 0;
    if (s == NULL)
        return CLI_OK;
    if (when_parse_age(s, &seconds) == 0) {
        *ret_ns = wall_now_ns() + (ahead ? seconds : -seconds) * MONO_S;
        return CLI_OK;
    }
    if (when_read(s, wall_now_ns(), ahead, ret_ns) == 0)
        return CLI_OK;
    return cli_fail(
        CLI_USAGE, NULL,
        "--%s: \"%s\" is no time (2026-01-31T10:20:30Z, '2026-01-31 10:20', 10:20) nor age (90s, 10m, "
        "2h, 3d)",
        name, s);
}

int tele_since(struct cli *c)
{
    int64_t v;
    int rc = tele_time(c, "since", false, &v);
    return rc == CLI_OK ? tele_time(c, "until", false, &v) : rc;
}

void tele_query_time(struct cli *c, struct buf *path, const char *option, const char *as)
{
    char text[40];
    int64_t ns, seconds;
    const char *s = args_value(&c->args, option);
    if (s == NULL)
        return;
    if (when_parse_age(s, &seconds) == 0)
        http_query(path, as, s); // of weftd's clock
    else if (tele_time(c, option, false, &ns) == CLI_OK)
        http_query(path, as, wall_format(ns, text, sizeof(text)));
}

void tele_age(struct out *o, const char *when)
{
    struct buf b = {0};
    int64_t at;
    if (when_parse(when, &at) != 0)
        return;
    text_age(&b, (wall_now_ns() - at) / MONO_S);
    out_printf(o, "%s", b.data);
    buf_done(&b);
}

void tele_count(struct out *o, long long n, const char *one, const char *many)
{
    struct buf b = {0};
    text_count(&b, n);
    out_printf(o, "%s %s", b.data, n == 1 ? one : many);
    buf_done(&b);
}

void tele_share(struct out *o, const char *before, json_t *v)
{
    struct buf b = {0};
    if (!json_is_number(v))
        return;
    text_share(&b, json_number_value(v));
    out_printf(o, "%s%s", before, b.data);
    buf_done(&b);
}
