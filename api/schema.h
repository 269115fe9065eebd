// SPDX-License-Identifier: Apache-2.0
// What the API's answers are made of, declared once: a schema is a C struct and rows that say which member is
// which JSON field. From the rows come the JSON and CSV writers, the checks of request bodies and the OpenAPI
// document. Pure; any thread.
#ifndef WEFT_API_SCHEMA_H
#define WEFT_API_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "lib/buf.h"

struct err;

enum field_type {
    FIELD_BOOL,    // bool
    FIELD_INT,     // int64_t; NO_INT is null
    FIELD_NUM,     // double; NaN is null
    FIELD_STR,     // const char *; NULL is null. Bytes that are no UTF-8 become U+FFFD
    FIELD_GUID,    // uint64_t, "0x%016x"; 0 is null
    FIELD_TIME,    // int64_t, ns since 1970, RFC 3339; 0 is null
    FIELD_RAW,     // const char *, JSON text; NULL is null
    FIELD_OBJ,     // const void *, a struct of the sub schema; NULL is null
    FIELD_LIST,    // struct items, structs of the sub schema
    FIELD_STRINGS, // struct items, const char *
};
#define NO_INT INT64_MIN
static inline int64_t id_or_null(uint32_t v, uint32_t none)
{
    return v == none ? NO_INT : (int64_t)v;
}

static inline const char *text_or_null(const char *s)
{
    return s != NULL && s[0] != 0 ? s : NULL;
}

struct items {
    const void *item;
    size_t n;
};

struct schema;
struct field {
    const char *name;
    enum field_type type;
    size_t at; // offset in the struct
    const char *doc;
    const struct schema *sub;
    bool null;                  // may be null
    bool need;                  // bodies: must be there
    double min, max;            // bodies: of numbers, when max > min
    const char *const *name_of; // strings: the only values, NULL-terminated
};
struct schema {
    const char *name; // in the OpenAPI document
    const char *doc;
    size_t size;
    const struct field *field; // ended by name NULL
    bool body;                 // of a request: only fields with need are required
    size_t body_max;           // its bytes; 0: BODY_MAX
};

void json_put_string(struct buf *b, const char *s, size_t len); // with the quotes
void json_put_struct(struct buf *b, const struct schema *s, const void *p);
// CSV (RFC 4180): nested objects are columns "peer.guid"; lists are left out. What a spreadsheet would take
// for a formula is quoted by an apostrophe.
void csv_put_head(struct buf *b, const struct schema *s);
void csv_put_row(struct buf *b, const struct schema *s, const void *p);
// Checks a request body: an object of known keys with the right types and ranges. 0 or -EINVAL and *e.
int schema_check_body(const struct schema *s, const json_t *body, struct err *e);
// OpenAPI 3.1 (JSON Schema 2020-12) of a schema; sub schemas as references.
json_t *schema_openapi(const struct schema *s);
json_t *schema_field_openapi(const struct field *f);

#endif
