// SPDX-License-Identifier: Apache-2.0
// The command line by rows: a command is one row, an option is one row, and from them come the parser, help,
// completion and doc/cli.md.
//
// An option means the same wherever it is taken, so options parse anywhere on the line, also before the
// command; "--" ends them. Short ones take their value attached or apart (-ojson, -o json).
#ifndef WEFT_CLI_ARGS_H
#define WEFT_CLI_ARGS_H

#include <stdbool.h>

struct cli;
struct err;
struct field;

enum option_arg {
    OPTION_FLAG,
    OPTION_VALUE,  // --name VALUE, --name=VALUE
    OPTION_EQUALS, // --name, --name=VALUE
    OPTION_NUMBER, // the same, and --name NUMBER
};

struct option_row {
    const char *name;
    char letter; // 0: none
    enum option_arg arg;
    const char *value;  // what its value is called, NULL for flags
    bool repeat;        // may be given several times
    bool hidden;        // not in help
    bool global;        // every command takes it
    const char *choice; // words it may be, with blanks between; NULL: anything
    const char *doc;
};

struct command_row {
    const char *name; // "route show"
    const char *args; // "A B"; "" for none
    int min_args, max_args;
    const char *options;       // names of option rows, with blanks between
    const char *doc;           // one line
    const char *more;          // for its own page
    const char *example;       // lines
    int (*run)(struct cli *c); // an exit code
    // Fields that its FOCUS knows: those of weftd's answers, with blanks between; or of the command's own.
    const char *fields;
    const struct field *(*own_fields)(void);
};

extern const struct option_row option_rows[];   // ended by a NULL name
extern const struct command_row command_rows[]; // the same

#define ARGS_MAX 64
struct args {
    const struct command_row *command; // NULL: none was named
    const char *word[ARGS_MAX];        // behind the command's name
    unsigned num_words;
    struct {
        const struct option_row *row;
        const char *value; // NULL when none was given
    } given[ARGS_MAX];
    unsigned num_given;
};

// -EINVAL and *e in words, with the nearest known command or option. --help and --version excuse a missing
// command and the number of its arguments. Strings are borrowed from argv.
int args_parse(struct args *a, int argc, char **argv, struct err *e);
bool args_has(const struct args *a, const char *name);
const char *args_value(const struct args *a, const char *name); // the last; NULL when not given or without
const struct option_row *option_find(const char *name, unsigned long len);
bool command_takes(const struct command_row *c, const struct option_row *o);
// The command that the words begin with, the longest; how many words its name takes.
const struct command_row *command_find(const char *const *word, unsigned n, unsigned *ret_used);

#endif
