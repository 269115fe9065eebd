// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "cli/text.h"
#include "lib/err.h"
#include "lib/word.h"

// True when word is one of the words in list (blanks between).
static bool in_words(const char *list, const char *word, size_t len)
{
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        if (n == len && strncmp(p, word, n) == 0)
            return true;
        p += n;
        p += strspn(p, " ");
    }
    return false;
}

const struct option_row *option_find(const char *name, unsigned long len)
{
    for (const struct option_row *o = option_rows; o->name; o++)
        if (strlen(o->name) == len && strncmp(o->name, name, len) == 0)
            return o;
    return NULL;
}

bool command_takes(const struct command_row *c, const struct option_row *o)
{
    return o->global || in_words(c->options, o->name, strlen(o->name));
}

// The word, or its plural: people write "weft nodes" too.
static bool is_word(const char *word, const char *name, size_t len)
{
    size_t n = strlen(word);
    return strncmp(word, name, len) == 0 && (n == len || (n == len + 1 && word[len] == 's'));
}

// Words of a command's name that begin the given ones; 0 when it is another command.
static unsigned name_words(const char *name, const char *const *word, unsigned n)
{
    unsigned used = 0;
    for (const char *p = name; *p; used++) {
        size_t len = strcspn(p, " ");
        if (used >= n || !is_word(word[used], p, len))
            return 0;
        p += len;
        p += strspn(p, " ");
    }
    return used;
}

const struct command_row *command_find(const char *const *word, unsigned n, unsigned *ret_used)
{
    const struct command_row *best = NULL;
    *ret_used = 0;
    for (const struct command_row *c = command_rows; c->name; c++) {
        unsigned used = name_words(c->name, word, n);
        if (used > *ret_used) {
            *ret_used = used;
            best = c;
        }
    }
    return best;
}

static int unknown_option(const struct command_row *c, const char *name, size_t len, struct err *e)
{
    const char *near = NULL;
    unsigned best = UINT_MAX;
    char word[65];

    snprintf(word, sizeof(word), "%.*s", (int)(len < 64 ? len : 64), name);
    for (const struct option_row *o = option_rows; o->name; o++) {
        unsigned d = word_distance(word, o->name);
        if (!o->hidden && (c == NULL || command_takes(c, o)) && word_near(word, o->name) && d < best) {
            best = d;
            near = o->name;
        }
    }
    char option[80];
    snprintf(option, sizeof(option), "--%s", word);
    if (near != NULL)
        return err_set(e, -EINVAL, option, "no such option; did you mean --%s?", near);
    return err_set(e, -EINVAL, option, "no such option; see: weft help%s%s", c ? " " : "", c ? c->name : "");
}

static int give(struct args *a, const struct option_row *o, const char *value, struct err *e)
{
    char name[80];
    snprintf(name, sizeof(name), "--%s", o->name);
    if (a->num_given == ARGS_MAX)
        return err_set(e, -E2BIG, name, "more than %d options", ARGS_MAX);
    if (value != NULL && o->choice != NULL && !in_words(o->choice, value, strlen(value)))
        return err_set(e, -EINVAL, name, "\"%.60s\" is none of: %s", value, o->choice);
    if (value != NULL && o->arg == OPTION_FLAG)
        return err_set(e, -EINVAL, name, "takes no value");
    a->given[a->num_given].row = o;
    a->given[a->num_given++].value = value;
    return 0;
}

static bool is_number(const char *s)
{
    long long n;
    return s != NULL && text_parse_count(s, 0, 1000000000, &n) == 0;
}

// *i stands on the option and is left on the last word that belongs to it.
static int parse_long(struct args *a, int argc, char **argv, int *i, struct err *e)
{
    const char *name = argv[*i] + 2, *eq = strchr(name, '=');
    size_t len = eq ? (size_t)(eq - name) : strlen(name);
    const struct option_row *o = option_find(name, len);
    const char *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    unsigned used;

    if (o == NULL)
        return unknown_option(command_find(a->word, a->num_words, &used), name, len, e);
    if (eq == NULL && o->arg == OPTION_VALUE && next == NULL)
        return err_set(e, -EINVAL, argv[*i], "needs a value: --%s %s", o->name, o->value);
    if (eq == NULL && (o->arg == OPTION_VALUE || (o->arg == OPTION_NUMBER && is_number(next)))) {
        ++*i;
        return give(a, o, next, e);
    }
    return give(a, o, eq ? eq + 1 : NULL, e);
}

static int parse_short(struct args *a, int argc, char **argv, int *i, struct err *e)
{
    const char *s = argv[*i];
    const struct option_row *o = option_rows;

    while (o->name && o->letter != s[1])
        o++;
    if (o->name == NULL)
        return err_set(e, -EINVAL, s, "no such option; see: weft help");
    if (o->arg != OPTION_VALUE)
        return s[2] ? err_set(e, -EINVAL, s, "takes no value; give each option apart") : give(a, o, NULL, e);
    if (s[2])
        return give(a, o, s + 2 + (s[2] == '='), e);
    if (*i + 1 >= argc)
        return err_set(e, -EINVAL, s, "needs a value: -%c %s", o->letter, o->value);
    return give(a, o, argv[++*i], e);
}

static int parse_words(struct args *a, int argc, char **argv, struct err *e)
{
    bool ended = false;
    int rc = 0;

    for (int i = 1; i < argc && rc == 0; i++) {
        const char *s = argv[i];
        if (!ended && strcmp(s, "--") == 0)
            ended = true;
        else if (!ended && s[0] == '-' && s[1] == '-')
            rc = parse_long(a, argc, argv, &i, e);
        else if (!ended && s[0] == '-' && s[1] != 0)
            rc = parse_short(a, argc, argv, &i, e);
        else if (a->num_words == ARGS_MAX)
            rc = err_set(e, -E2BIG, s, "more than %d words", ARGS_MAX);
        else
            a->word[a->num_words++] = s;
    }
    return rc;
}

static int unknown_command(const struct args *a, struct err *e)
{
    char list[300] = "", near[64] = "";
    const char *w = a->word[0];
    unsigned best = UINT_MAX;

    for (const struct command_row *c = command_rows; c->name; c++) {
        size_t n = strcspn(c->name, " ");
        char first[64];
        snprintf(first, sizeof(first), "%.*s", (int)n, c->name);
        if (strcmp(first, w) == 0) // a group: "sim"
            snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s\"%s\"", list[0] ? ", " : "",
                     c->name);
        unsigned d = word_distance(w, first);
        if (word_near(w, first) && d < best) {
            best = d;
            snprintf(near, sizeof(near), "%s", first);
        }
    }
    if (list[0] != 0)
        return err_set(e, -EINVAL, w, "one of: %s", list);
    if (near[0] != 0)
        return err_set(e, -EINVAL, w, "no such command; did you mean \"%s\"?", near);
    return err_set(e, -EINVAL, w, "no such command; see: weft help");
}

static int check(const struct args *a, struct err *e)
{
    const struct command_row *c = a->command;
    bool excused = args_has(a, "help") || args_has(a, "version");

    for (unsigned i = 0; i < a->num_given; i++) {
        const struct option_row *o = a->given[i].row;
        if (!command_takes(c, o))
            return unknown_option(c, o->name, strlen(o->name), e);
        for (unsigned k = 0; k < i; k++)
            if (a->given[k].row == o && !o->repeat)
                return err_set(e, -EINVAL, o->name, "given twice");
    }
    if (excused)
        return 0;
    if ((int)a->num_words < c->min_args)
        return err_set(e, -EINVAL, c->name, "something is missing; usage: weft %s %s", c->name, c->args);
    if ((int)a->num_words > c->max_args)
        return err_set(e, -EINVAL, a->word[c->max_args], "too many words; usage: weft %s %s", c->name,
                       c->args);
    return 0;
}

int args_parse(struct args *a, int argc, char **argv, struct err *e)
{
    unsigned used;

    *a = (struct args){0};
    int rc = parse_words(a, argc, argv, e);
    if (rc != 0)
        return rc;
    a->command = command_find(a->word, a->num_words, &used);
    if (a->command == NULL) {
        bool excused = args_has(a, "help") || args_has(a, "version");
        if (a->num_words > 0)
            return unknown_command(a, e);
        return excused ? 0 : err_set(e, -EINVAL, NULL, "what to do? see: weft help");
    }
    memmove(a->word, a->word + used, (a->num_words - used) * sizeof(a->word[0]));
    a->num_words -= used;
    return check(a, e);
}

bool args_has(const struct args *a, const char *name)
{
    for (unsigned i = 0; i < a->num_given; i++)
        if (strcmp(a->given[i].row->name, name) == 0)
            return true;
    return false;
}

const char *args_value(const struct args *a, const char *name)
{
    const char *v = NULL;
    for (unsigned i = 0; i < a->num_given; i++)
        if (strcmp(a->given[i].row->name, name) == 0)
            v = a->given[i].value;
    return v;
}
