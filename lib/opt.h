// SPDX-License-Identifier: Apache-2.0
// Options declared once. A row gives the parser, the checks, the defaults, the commented sample file and the
// man page. The file is YAML, read with libyaml's events and walked strictly over the rows: an unknown key, a
// wrong type or a value out of range is an error with file, line, column, the key's full path, what was found
// and what was expected. Anchors, aliases, tags and multiple documents are refused.
//
// A schema is a list of rows; a row of type OPT_SECTION nests another schema (a mapping) inside the same
// struct, OPT_LIST is a sequence of mappings (an array of structs) and OPT_STRINGS a sequence of scalars.
// Strings and arrays live in the arena given.
#ifndef WEFT_LIB_OPT_H
#define WEFT_LIB_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct arena;
struct err;

#define OPT_FILE_MAX (4u << 20) // bytes of a configuration file
#define OPT_LIST_MAX 4096u      // elements of one OPT_LIST or OPT_STRINGS

enum opt_type {
    OPT_BOOL,     // bool
    OPT_INT,      // int64_t, min..max; decimal or 0x
    OPT_DOUBLE,   // double, min..max
    OPT_DURATION, // int64_t nanoseconds; written "10s", "200ms", "50us", "5m", "1h", "2d"; min..max in
                  // nanoseconds
    OPT_SIZE,     // int64_t bytes; written "64k", "10M", "1G"
    OPT_STRING,   // const char *
    OPT_ENUM,     // int: index into names
    OPT_GUID,     // uint64_t
    OPT_STRINGS,  // struct opt_strings
    OPT_SECTION,  // nested rows, same base address + offset
    OPT_LIST,     // struct opt_list of sub-structs
};

enum opt_reload {
    OPT_RELOAD_LIVE,    // takes effect on SIGHUP
    OPT_RELOAD_RESWEEP, // takes effect with a full sweep
    OPT_RELOAD_RESTART, // needs a restart
};

struct opt_strings {
    const char **item;
    size_t n;
};
struct opt_list {
    void *item; // n structs of row->elem_size
    size_t n;
};

struct opt_row {
    const char *name; // YAML key
    enum opt_type type;
    size_t offset; // into the struct of this schema
    // Both 0 = no limit; min may be -INFINITY, max INFINITY. OPT_STRING: length in bytes, OPT_STRINGS and
    // OPT_LIST: number of elements.
    double min, max;
    const char
        *def; // default as it would be written in the file; NULL = zero / empty (a string is "", never NULL)
    const char *const *names; // OPT_ENUM: NULL-terminated
    const char *unit;         // for the sample file and the man page; may be NULL
    enum opt_reload reload;
    const char *doc;           // one line (may be long: it is wrapped); no trailing period needed
    const struct opt_row *sub; // OPT_SECTION, OPT_LIST: rows, ended by name == NULL
    size_t elem_size;          // OPT_LIST
};

// Sets every option to its default. base: the struct. Aborts on a row whose own default does not parse (a
// unit test covers every schema).
void opt_defaults(const struct opt_row *rows, void *base, struct arena *a);
// Reads path over what base holds. 0, or negative errno with *e; base may then be partly changed: use a fresh
// one.
int opt_load_file(const struct opt_row *rows, void *base, struct arena *a, const char *path, struct err *e);
int opt_load_text(const struct opt_row *rows, void *base, struct arena *a, const char *text, size_t len,
                  const char *name, struct err *e);
// One option by its dotted path ("sm.priority"), as from the command line. OPT_STRINGS: separated by commas.
// What lies in an OPT_LIST cannot be set.
int opt_set(const struct opt_row *rows, void *base, struct arena *a, const char *path, const char *value,
            struct err *e);
// A commented file with every option at its default, commented out; it loads as it is. The heads of sections
// stand as they are, so that removing the "#" before one option is enough.
void opt_write_sample(const struct opt_row *rows, FILE *f);
// The OPTIONS part of a man page (roff, man macros).
void opt_write_man(const struct opt_row *rows, FILE *f);
// Every option with its present value, "section.key: value" a line.
void opt_dump(const struct opt_row *rows, const void *base, FILE *f);
// Calls fn for each option whose value differs between two structs (a list counts as one option): what a
// reload has to do.
typedef void opt_diff_fn(void *arg, const struct opt_row *row, const char *path);
void opt_diff(const struct opt_row *rows, const void *before, const void *after, opt_diff_fn *fn, void *arg);

#endif
