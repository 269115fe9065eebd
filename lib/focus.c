// SPDX-License-Identifier: Apache-2.0
#include "lib/focus.h"

#include <errno.h>
#include <math.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "lib/word.h"
#include "lib/xalloc.h"

#define DEPTH_MAX 32
#define ATOMS_MAX 256
#define REGEX_MAX 256

enum op { OP_EQ, OP_NE, OP_RE, OP_LT, OP_LE, OP_GT, OP_GE };
enum kind { K_AND, K_OR, K_NOT, K_ATOM, K_NAME };

struct value {
    char *text;
    bool is_number, is_range;
    char unit; // of its upper end; 0: none
    double low, high;
    struct value *next;
};

struct term {
    enum kind kind;
    struct term *a, *b;
    unsigned field;
    enum op op;
    struct value *values;
    regex_t regex;
    bool has_regex;
    struct term *all; // every term, to be freed
};

struct focus {
    struct term *root, *all;
    // while parsing
    const struct focus_fields *fields;
    const char *text, *p;
    unsigned atoms, depth;
    struct err *err;
};

static struct term *parse_or(struct focus *f);

static struct term *term_new(struct focus *f, enum kind k, struct term *a, struct term *b)
{
    struct term *t = xcalloc(1, sizeof(*t));
    t->kind = k;
    t->a = a;
    t->b = b;
    t->all = f->all;
    f->all = t;
    return t;
}

static void *bad(struct focus *f, const char *text)
{
    if (f->err->code == 0)
        err_set(f->err, -EINVAL, "focus", "%s at column %d of \"%.100s\"", text, (int)(f->p - f->text) + 1,
                f->text);
    return NULL;
}

static void blanks(struct focus *f)
{
    f->p += strspn(f->p, " \t\n");
}

static bool is_bare(char c)
{
    return c != 0 && strchr(" \t\n'\"()|,", c) == NULL;
}

static size_t word_len(const char *p)
{
    size_t n = 0;
    while (is_bare(p[n]) && strchr("=<>~!", p[n]) == NULL)
        n++;
    return n;
}

static bool take_word(struct focus *f, const char *word)
{
    size_t n = strlen(word);
    blanks(f);
    if (strncmp(f->p, word, n) != 0)
        return false;
    if (word[0] >= 'a' && is_bare(f->p[n]))
        return false;
    f->p += n;
    return true;
}

static bool take_op(struct focus *f, enum op *ret)
{
    static const struct {
        const char *text;
        enum op op;
    } known[] = {{"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE}, {"=", OP_EQ},
                 {"~", OP_RE},  {"<", OP_LT},  {">", OP_GT}};
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        size_t n = strlen(known[i].text);
        if (strncmp(f->p, known[i].text, n) == 0) {
            f->p += n;
            *ret = known[i].op;
            return true;
        }
    }
    return false;
}

static const char *units_of(enum focus_holds holds)
{
    return holds == FOCUS_SPAN ? "smhd" : holds == FOCUS_SHARE ? "%" : holds == FOCUS_GBITS ? "G" : "kMG";
}

// The whole of n bytes as a number, a unit of the field's allowed.
static bool read_number(const char *s, size_t n, enum focus_holds holds, double *ret, char *ret_unit)
{
    char text[64], *end;
    if (n == 0 || n >= sizeof(text))
        return false;
    snprintf(text, sizeof(text), "%.*s", (int)n, s);
    *ret = strtod(text, &end);
    *ret_unit = end[0];
    return end != text && isfinite(*ret) &&
           (end[0] == 0 || (end[1] == 0 && strchr(units_of(holds), end[0]) != NULL));
}

static double in_unit(double v, enum focus_holds holds, char unit)
{
    if (unit == '%')
        return v / 100;
    if (holds == FOCUS_SPAN)
        return v * (unit == 'm' ? 60 : unit == 'h' ? 3600 : unit == 'd' ? 86400 : 1);
    return holds == FOCUS_GBITS ? v : v * (unit == 'k' ? 1e3 : unit == 'M' ? 1e6 : unit == 'G' ? 1e9 : 1);
}

// "400", "400G", "1..4", "5%..10%", "5..10%", "90s", "1h..2h", "1..2h": a unit at the upper end is of both,
// one at the lower of that alone.
static void parse_number(struct value *v, enum focus_holds holds)
{
    char low = 0;
    const char *dots = strstr(v->text, "..");
    size_t n = strlen(v->text), first = dots != NULL ? (size_t)(dots - v->text) : n;

    v->is_number = read_number(v->text, first, holds, &v->low, &low);
    if (dots == NULL) {
        v->low = v->high = in_unit(v->low, holds, low);
        v->unit = low;
        return;
    }
    v->is_range = v->is_number =
        v->is_number && read_number(dots + 2, n - first - 2, holds, &v->high, &v->unit);
    v->low = in_unit(v->low, holds, low != 0 ? low : v->unit);
    v->high = in_unit(v->high, holds, v->unit);
}

static struct value *parse_value(struct focus *f)
{
    size_t n = 0;
    bool quoted = *f->p == '\'';
    if (quoted) {
        const char *end = strchr(++f->p, '\'');
        if (end == NULL)
            return bad(f, "a quote is not closed");
        n = (size_t)(end - f->p);
    } else {
        while (is_bare(f->p[n]))
            n++;
        if (n == 0)
            return bad(f, "a value is missing");
    }
    struct value *v = xcalloc(1, sizeof(*v));
    v->text = xasprintf("%.*s", (int)n, f->p);
    f->p += n + quoted;
    if (!quoted)
        parse_number(v, FOCUS_NUMBER);
    return v;
}

static struct value *parse_values(struct focus *f, struct term *t)
{
    struct value **at = &t->values;
    do {
        *at = parse_value(f);
        if (*at == NULL)
            return NULL;
        at = &(*at)->next;
    } while (*f->p == '|' && f->p[1] != '|' && f->p++);
    return t->values;
}

// Number of the field of that name; false when there is none.
static bool field_at(const struct focus_fields *fields, const char *name, size_t n, unsigned *ret)
{
    const char *known;
    for (unsigned i = 0; (known = fields->name(fields->arg, i)) != NULL; i++)
        if (strlen(known) == n && memcmp(known, name, n) == 0) {
            *ret = i;
            return true;
        }
    return false;
}

// "a, b, c", as far as it goes.
static void list_fields(const struct focus_fields *fields, char *ret, size_t size)
{
    const char *known;
    size_t n = 0;
    ret[0] = 0;
    for (unsigned i = 0; (known = fields->name(fields->arg, i)) != NULL; i++) {
        if (n + strlen(known) + 8 > size) {
            snprintf(ret + n, size - n, ", …");
            return;
        }
        n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ", " : "", known);
    }
}

static bool find_field(struct focus *f, const char *name, size_t n, unsigned *ret)
{
    char word[65], list[200], text[320];

    if (field_at(f->fields, name, n, ret))
        return true;
    snprintf(word, sizeof(word), "%.*s", (int)(n < 64 ? n : 64), name);
    const char *near = word_nearest(word, f->fields->name, f->fields->arg);
    list_fields(f->fields, list, sizeof(list));
    snprintf(text, sizeof(text),
             near ? "no field \"%.64s\"; did you mean \"%.40s\"?" : "no field \"%.64s\"; there are: %s", word,
             near ? near : list);
    bad(f, text);
    return false;
}

// The last character of "[a-z]", "[]x]", "[[:alpha:]]" that begins at p.
static const char *end_of_set(const char *p)
{
    p += p[1] == '^' ? 2 : 1;
    if (*p == ']')
        p++;
    for (; *p != 0 && *p != ']'; p++) {
        const char class[] = {p[1], ']', 0};
        const char *end = *p == '[' && p[1] != 0 && strchr(":.=", p[1]) != NULL ? strstr(p + 2, class) : NULL;
        if (end != NULL)
            p = end + 1;
    }
    return *p != 0 ? p : p - 1;
}

// Repeats of what has repeats in it, and references back, take time and memory without bound; texts come from
// anybody.
static bool is_dear(const char *regex)
{
    bool repeats[REGEX_MAX + 2] = {false}; // of each group that is open: there are some in it
    bool last = false;                     // there are some in what a repeat would repeat
    unsigned depth = 0;
    for (const char *p = regex; *p != 0; p++) {
        if (*p == '{' || (*p == '\\' && p[1] >= '1' && p[1] <= '9'))
            return true;
        if (strchr("*+?", *p) != NULL) {
            if (last)
                return true;
            last = repeats[depth] = true;
            continue;
        }
        last = false;
        if (*p == '\\' && p[1] != 0) {
            p++;
        } else if (*p == '[') {
            p = end_of_set(p);
        } else if (*p == '(') {
            repeats[++depth] = false;
        } else if (*p == ')' && depth > 0) {
            last = repeats[depth--];
            repeats[depth] |= last;
        }
    }
    return false;
}

// "a, b, c", as far as it goes.
static void list_words(const char *const *words, char *ret, size_t size)
{
    size_t n = 0;
    ret[0] = 0;
    for (size_t i = 0; words[i] != NULL && n + strlen(words[i]) + 6 < size; i++)
        n += (size_t)snprintf(ret + n, size - n, "%s%s", i ? ", " : "", words[i]);
}

static bool is_pattern(const char *s)
{
    return strpbrk(s, "*?") != NULL;
}

// "1*", of a number as it is written.
static bool is_digits(const char *s)
{
    return is_pattern(s) && strstr(s, "..") == NULL && s[strspn(s, "0123456789.*?-")] == 0;
}

// A value that the field never has.
static bool check_word(struct focus *f, const char *field, const struct focus_about *a, const struct value *v)
{
    char list[200], text[320];
    for (size_t i = 0; a->words[i] != NULL; i++)
        if (word_glob(v->text, a->words[i]))
            return true;
    list_words(a->words, list, sizeof(list));
    snprintf(text, sizeof(text), "%.40s is never \"%.40s\"; it is one of: %s", field, v->text, list);
    return bad(f, text) != NULL;
}

static bool check_share(struct focus *f, const char *field, const struct value *v, enum op op)
{
    char text[260];
    const char *dots = strstr(v->text, "..");
    if (v->unit == '%' || v->high < 1 || (v->high == 1 && op != OP_GT))
        return true;
    int low = dots != NULL ? (int)(dots - v->text) : 0;
    low -= low > 0 && v->text[low - 1] == '%';
    if (dots != NULL)
        snprintf(text, sizeof(text), "%.40s is a share, from 0 to 1: write %.*s%%..%.20s%% for a percentage",
                 field, low, v->text, dots + 2);
    else
        snprintf(text, sizeof(text), "%.40s is a share, from 0 to 1: write %.40s%% for a percentage", field,
                 v->text);
    return bad(f, text) != NULL;
}

static bool never_a_number(struct focus *f, const char *field, const struct focus_about *a,
                           const struct value *v)
{
    static const char *const like[] = {[FOCUS_NUMBER] = " (as 7, 5k, 1..4)",
                                       [FOCUS_GBITS] = " (as 400, 400G, 100..200)",
                                       [FOCUS_SHARE] = " (as 5%, 0.05, 5%..10%)"};
    char list[100] = "", text[300];
    bool digits = strpbrk(v->text, "0123456789") != NULL || a->holds == FOCUS_GBITS;
    if (a->words != NULL)
        list_words(a->words, list, sizeof(list));
    if (a->holds == FOCUS_SPAN)
        snprintf(text, sizeof(text),
                 "%.40s is compared with an age (as 90s, 10m, 2h, 3d, 1h..2h), never \"%.40s\"", field,
                 v->text);
    else
        snprintf(text, sizeof(text), "%.40s is a number%s%s%s, never \"%.40s\"", field,
                 digits ? like[a->holds] : "", list[0] ? " or one of: " : "", list, v->text);
    return bad(f, text) != NULL;
}

static bool check_number(struct focus *f, const char *field, const struct focus_about *a, struct value *v,
                         enum op op)
{
    char text[200];
    parse_number(v, a->holds); // quotes are no reason
    for (size_t i = 0; !v->is_number && a->words != NULL && a->words[i] != NULL; i++)
        if (strcmp(v->text, a->words[i]) == 0) {
            v->is_number = true;
            v->low = v->high = (double)i;
        }
    if (!v->is_number)
        return (a->holds == FOCUS_SPAN ? is_pattern(v->text) : is_digits(v->text)) ||
               never_a_number(f, field, a, v);
    if (v->low > v->high) {
        snprintf(text, sizeof(text), "nothing is in %.40s: %.9g is above %.9g", v->text, v->low, v->high);
        return bad(f, text) != NULL;
    }
    return a->holds != FOCUS_SHARE || check_share(f, field, v, op);
}

static bool check_values(struct focus *f, struct term *t)
{
    struct focus_about a = {0};
    const char *field = f->fields->name(f->fields->arg, t->field);
    if (f->fields->about == NULL || t->op == OP_RE)
        return true;
    f->fields->about(f->fields->arg, t->field, &a);
    for (struct value *v = t->values; v; v = v->next) {
        bool good = strcmp(v->text, "none") == 0 || (a.holds == FOCUS_ANYTHING && a.words == NULL);
        if (!good &&
            !(a.holds == FOCUS_ANYTHING ? check_word(f, field, &a, v) : check_number(f, field, &a, v, t->op)))
            return false;
    }
    return true;
}

static struct term *check_atom(struct focus *f, struct term *t)
{
    bool order = t->op == OP_LT || t->op == OP_LE || t->op == OP_GT || t->op == OP_GE;
    if (!check_values(f, t))
        return NULL;
    for (struct value *v = t->values; v; v = v->next)
        if (order && (!v->is_number || v->is_range))
            return bad(f, "a number is missing");
    if (t->op != OP_RE)
        return t;
    if (t->values->next != NULL || strlen(t->values->text) > REGEX_MAX)
        return bad(f, "one regular expression of at most 256 bytes is allowed");
    if (is_dear(t->values->text))
        return bad(f, "a regular expression may have no {N,M}, no \\1 and no repeats of repeats, as (a+)*");
    t->has_regex = regcomp(&t->regex, t->values->text, REG_EXTENDED | REG_NOSUB) == 0;
    return t->has_regex ? t : bad(f, "not a regular expression");
}

static struct term *parse_atom(struct focus *f)
{
    enum op op = OP_EQ;
    blanks(f);
    if (take_word(f, "(")) {
        struct term *t = parse_or(f);
        if (t != NULL && !take_word(f, ")"))
            return bad(f, "\")\" is missing");
        return t;
    }
    if (++f->atoms > ATOMS_MAX)
        return bad(f, "more than 256 conditions");
    const char *name = f->p;
    size_t n = word_len(f->p);
    f->p += n;
    if (n > 0 && take_op(f, &op)) {
        struct term *t = term_new(f, K_ATOM, NULL, NULL);
        t->op = op;
        const char *behind = f->p;
        f->p = name;
        bool known = find_field(f, name, n, &t->field);
        f->p = behind;
        return known && parse_values(f, t) != NULL ? check_atom(f, t) : NULL;
    }
    f->p = name;
    struct term *t = term_new(f, K_NAME, NULL, NULL);
    return parse_values(f, t) != NULL ? t : NULL;
}

static struct term *parse_not(struct focus *f)
{
    if (!take_word(f, "not") && !take_word(f, "!"))
        return parse_atom(f);
    if (++f->depth > DEPTH_MAX)
        return bad(f, "nested deeper than 32");
    struct term *t = parse_not(f);
    f->depth--;
    return t ? term_new(f, K_NOT, t, NULL) : NULL;
}

static bool at_end(struct focus *f)
{
    blanks(f);
    return *f->p == 0 || *f->p == ')' || strncmp(f->p, "||", 2) == 0 ||
           (strncmp(f->p, "or", 2) == 0 && !is_bare(f->p[2]));
}

static struct term *parse_and(struct focus *f)
{
    struct term *t = parse_not(f);
    while (t != NULL && !at_end(f)) {
        if (!take_word(f, "and"))
            take_word(f, ",");
        struct term *b = parse_not(f);
        t = b ? term_new(f, K_AND, t, b) : NULL;
    }
    return t;
}

static struct term *parse_or(struct focus *f)
{
    if (++f->depth > DEPTH_MAX)
        return bad(f, "nested deeper than 32");
    struct term *t = parse_and(f);
    while (t != NULL && (take_word(f, "or") || take_word(f, "||"))) {
        struct term *b = parse_and(f);
        t = b ? term_new(f, K_OR, t, b) : NULL;
    }
    f->depth--;
    return t;
}

struct focus *focus_new(const char *text, const struct focus_fields *fields, struct err *e)
{
    struct focus *f = xcalloc(1, sizeof(*f));
    *f = (struct focus){.fields = fields, .text = text, .p = text, .err = e};
    e->code = 0;
    if (strlen(text) > FOCUS_TEXT_MAX)
        err_set(e, -E2BIG, "focus", "longer than %d bytes", FOCUS_TEXT_MAX);
    else
        f->root = parse_or(f);
    if (f->root != NULL && *f->p != 0)
        f->root = bad(f, "not understood");
    if (f->root == NULL) {
        focus_free(f);
        return NULL;
    }
    return f;
}

void focus_free(struct focus *f)
{
    if (f == NULL)
        return;
    for (struct term *t = f->all, *next; t; t = next) {
        next = t->all;
        for (struct value *v = t->values, *after; v; v = after) {
            after = v->next;
            free(v->text);
            free(v);
        }
        if (t->has_regex)
            regfree(&t->regex);
        free(t);
    }
    free(f);
}

// --- matching ---

struct match {
    const struct focus *f;
    focus_value_fn *value;
    focus_named_fn *named;
    void *arg;
};

static const char *as_text(const struct focus_value *v, char buf[32])
{
    if (!v->is_number || v->text != NULL)
        return v->text;
    snprintf(buf, 32, v->number == floor(v->number) && fabs(v->number) < 1e15 ? "%.0f" : "%.9g", v->number);
    return buf;
}

static bool equal(const struct value *x, const struct focus_value *v, const char *text)
{
    if (x->is_number && v->is_number)
        return v->number >= x->low && v->number <= x->high;
    return word_glob(x->text, text);
}

static bool any_equal(const struct value *list, const struct focus_value *v)
{
    char buf[32];
    const char *text = as_text(v, buf);
    for (const struct value *x = list; x; x = x->next)
        if (equal(x, v, text))
            return true;
    return false;
}

static bool ordered(const struct term *t, double v)
{
    for (const struct value *x = t->values; x; x = x->next) {
        bool hit = t->op == OP_LT   ? v < x->low
                   : t->op == OP_LE ? v <= x->low
                   : t->op == OP_GT ? v > x->low
                                    : v >= x->low;
        if (hit)
            return true;
    }
    return false;
}

// Of no value that is all that is true.
static bool match_none(const struct term *t)
{
    bool none = false;
    for (const struct value *x = t->values; x; x = x->next)
        none |= strcmp(x->text, "none") == 0;
    return none && t->op == OP_EQ;
}

static bool match_atom(const struct match *m, const struct term *t)
{
    struct focus_value v = {0};
    char buf[32];

    m->value(m->arg, t->field, &v);
    if (v.is_number && isnan(v.number))
        v = (struct focus_value){0};
    if (v.text == NULL && !v.is_number)
        return match_none(t);
    if (t->op == OP_EQ || t->op == OP_NE)
        return any_equal(t->values, &v) == (t->op == OP_EQ);
    if (t->op == OP_RE)
        return regexec(&t->regex, as_text(&v, buf), 0, NULL, 0) == 0;
    return v.is_number && ordered(t, v.number);
}

static bool match_name(const struct match *m, const struct term *t)
{
    bool hit = false;
    for (const struct value *x = t->values; x && m->named != NULL && !hit; x = x->next)
        hit = m->named(m->arg, x->text);
    return hit;
}

static bool match(const struct match *m, const struct term *t)
{
    switch (t->kind) {
    case K_AND:
        return match(m, t->a) && match(m, t->b);
    case K_OR:
        return match(m, t->a) || match(m, t->b);
    case K_NOT:
        return !match(m, t->a);
    case K_NAME:
        return match_name(m, t);
    case K_ATOM:
        return match_atom(m, t);
    }
    return false;
}

bool focus_match(const struct focus *f, focus_value_fn *value, focus_named_fn *named, void *arg)
{
    return match(&(struct match){f, value, named, arg}, f->root);
}

const char *focus_bare(const struct focus *f, unsigned i)
{
    for (const struct term *t = f->all; t; t = t->all)
        for (const struct value *v = t->kind == K_NAME ? t->values : NULL; v; v = v->next)
            if (i-- == 0)
                return v->text;
    return NULL;
}

bool focus_asks(const struct focus *f, unsigned field)
{
    bool asks = false;
    for (const struct term *t = f->all; t && !asks; t = t->all)
        asks = t->kind == K_ATOM && t->field == field;
    return asks;
}

bool focus_is_word(const char *s)
{
    return strpbrk(s, "=<>~!()|,*?'") == NULL;
}
