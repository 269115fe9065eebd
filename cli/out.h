// SPDX-License-Identifier: Apache-2.0
// What commands print: one walk over a table of fields feeds the aligned table, CSV and JSON. Everything is
// gathered in memory, escaped, and written by out_flush(), so that a screen is drawn at once.
//
// Tables take the width of the terminal: sentences go below their rows, then columns that may shrink do.
// Elsewhere nothing is cut. JSON is ASCII; lists have one object a line. A CSV record is always one line.
#ifndef WEFT_CLI_OUT_H
#define WEFT_CLI_OUT_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/buf.h"

enum out_format { OUT_TABLE, OUT_JSON, OUT_CSV };

enum field_kind {
    FIELD_TEXT,
    FIELD_NUMBER,  // as it is: LIDs, port numbers
    FIELD_COUNT,   // 1,024 in tables
    FIELD_HEX,     // 0xc000 in tables
    FIELD_SECONDS, // three digits after the point in tables
    FIELD_TIME,    // local time in tables
    FIELD_TIME_MS, // with milliseconds
    FIELD_AGE,     // how long ago; a time where there is one thing only
    FIELD_PHASES,  // [{name, seconds}] in one cell
    FIELD_SHARE,   // of 1: 12.3 %
    FIELD_RATE,    // bytes a second, shown as 9.84 Gb/s
    FIELD_FIGURE,  // a number, or one below a thousandth as 1.2e-14
    FIELD_BYTES,   // 1.23 GB
};

enum {
    FIELD_SHRINK = 1, // may be cut on a narrow terminal
    FIELD_WIDE = 2,   // only in CSV, JSON and tables of one thing
    FIELD_STATE = 4,  // coloured by what it says
    FIELD_BELOW =
        8, // a sentence: where the terminal is too narrow for the table, it is wrapped below its row
};

struct field {
    const char *key;   // in CSV and JSON; NULL ends the table
    const char *title; // in tables
    const char *path;  // in the answer, such as "peer.name"; NULL: the key
    enum field_kind kind;
    unsigned flags;
};

enum colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_DIM, COLOUR_RED, COLOUR_YELLOW, COLOUR_GREEN };

struct out {
    enum out_format format;
    bool tty, colour, header, utf8;
    unsigned width; // columns; 0 = no limit
    struct buf text;
};

void out_done(struct out *o);
void out_list(struct out *o, const struct field *fields, json_t *items);
void out_object(struct out *o, const struct field *fields, json_t *object);
// One record of a list that has no end: tables are aligned by the widths of the titles, JSON is one object a
// line.
void out_record(struct out *o, const struct field *fields, json_t *item, bool first);
void out_json(struct out *o, json_t *v);                    // as it came, indented
json_t *out_pack(const struct field *fields, json_t *item); // the object that JSON shows
// One thing, and below it the list that its key holds.
void out_with(struct out *o, const struct field *fields, json_t *one, const char *key,
              const struct field *sub_fields);
json_t *out_pack_list(const struct field *fields, json_t *items);
// Lines of tables; what is printed is escaped, newlines come from out_newline().
void out_printf(struct out *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void out_paint(struct out *o, enum colour c, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void out_newline(struct out *o);
void out_wrap(struct out *o,
              unsigned indent); // a newline; the line is wrapped to the terminal, between words
int out_flush(struct out *o);   // 0 or negative errno

// Values by path ("peer.name"); NULL, "" or 0 where there is none or it has another type.
json_t *js_at(json_t *o, const char *path);
const char *js_str(json_t *o, const char *path);
long long js_int(json_t *o, const char *path);
double js_num(json_t *o, const char *path);
bool js_true(json_t *o, const char *path);

#endif
