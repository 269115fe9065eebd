// SPDX-License-Identifier: Apache-2.0
// The focus language: selects items of a list by their fields. Pure; what an item's fields say comes from the
// caller, so that the same text means the same on the command line (JSON) and in the daemon (structs).
//
//     focus = or
//     or    = and { ("or"|"||") and }
//     and   = not { [ "and"|"," ] not }
//     not   = [ "not"|"!" ] atom
//     atom  = "(" or ")" | field op value { "|" value } | name
//     op    = "=" | "!=" | "~" | "<" | "<=" | ">" | ">="
//     value = bare | "'" any "'" | number ".." number
//
// "=" takes globs, "~" an extended regular expression of at most 256 bytes, without {N,M}, \1 and repeats of repeats; a field
// without a value matches only field=none. Numbers have the unit of their field: shares % (a hundredth),
// times s, m, h or d ("90s", "10m"; without: seconds), rates in Gb/s may end in G ("400G"), other numbers in
// k, M or G (thousands). Of a range the unit at its upper end is of both ("5..10%"), one at its lower end of
// that alone. What a name matches the caller says. Where it is known
// what a field may hold, a value that it never has (a number with another unit, a range whose ends are the
// wrong way round) is refused, lest a mistyped word seems to say that there is nothing. Limits: 4 KiB, depth
// 32, 256 atoms.
#ifndef WEFT_LIB_FOCUS_H
#define WEFT_LIB_FOCUS_H

#include <stdbool.h>

struct err;
struct focus;

#define FOCUS_TEXT_MAX 4096

enum focus_holds {
    FOCUS_ANYTHING,
    FOCUS_NUMBER,
    FOCUS_GBITS, // of links: Gb/s
    FOCUS_SHARE, // 0 to 1: a greater number without % is refused
    FOCUS_SPAN,  // seconds; its text, where there is one, is compared with what is no number
};
struct focus_about {
    enum focus_holds holds;
    const char *const *words; // the only values, NULL behind the last; of a number: words for 0, 1, …
};
struct focus_fields {
    const char *(*name)(const void *arg, unsigned i); // of field i; NULL behind the last
    const void *arg;
    // What field i may hold; *ret is zeroed. NULL: nothing is known of that.
    void (*about)(const void *arg, unsigned i, struct focus_about *ret);
};
struct focus_value {
    const char *text; // NULL: none, unless it is a number; a number may have one too
    bool is_number;
    double number;
};
typedef void focus_value_fn(void *arg, unsigned field, struct focus_value *ret);

// NULL and *e with the column; an unknown field is refused with the nearest. fields: until then only.
struct focus *focus_new(const char *text, const struct focus_fields *fields, struct err *e);
void focus_free(struct focus *f);
// value: of the item's fields; what text points to must live until the next call of it. named: whether the
// item is what a bare name means; NULL: it is none.
typedef bool focus_named_fn(void *arg, const char *word);
bool focus_match(const struct focus *f, focus_value_fn *value, focus_named_fn *named, void *arg);
const char *focus_bare(const struct focus *f, unsigned i); // the bare names in it; NULL behind the last
bool focus_asks(const struct focus *f, unsigned field);    // whether there is a condition on that field
bool focus_is_word(const char *s);                         // a single name, no expression

#endif
