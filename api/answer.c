// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"

struct problem {
    const char *type, *title, *detail;
    int64_t status;
};
static const struct field problem_fields[] = {
    {.name = "type",
     .type = FIELD_STR,
     .at = offsetof(struct problem, type),
     "\"about:blank\": the status says what kind it is"},
    {.name = "title", .type = FIELD_STR, .at = offsetof(struct problem, title), "the status in words"},
    {.name = "status", .type = FIELD_INT, .at = offsetof(struct problem, status), "HTTP status"},
    {.name = "detail",
     .type = FIELD_STR,
     .at = offsetof(struct problem, detail),
     "what is wrong and what to do"},
    {0},
};
const struct schema schema_problem = {.name = "problem",
                                      "An error (RFC 9457, application/problem+json)",
                                      sizeof(struct problem),
                                      problem_fields};

static const struct field error_fields[] = {
    {.name = "text", .type = FIELD_STR, .at = offsetof(struct error_row, text), "what happened"},
    {.name = "where",
     .type = FIELD_STR,
     .at = offsetof(struct error_row, where),
     "port, device, element or file; may be empty"},
    {0},
};
const struct schema schema_error = {
    .name = "error", "Why a fabric is not up, or a job failed", sizeof(struct error_row), error_fields};

struct done_row {
    bool ok;
    const char *text;
};
static const struct field done_fields[] = {
    {.name = "ok", .type = FIELD_BOOL, .at = offsetof(struct done_row, ok), "true"},
    {.name = "text", .type = FIELD_STR, .at = offsetof(struct done_row, text), "what was done"},
    {0},
};
const struct schema schema_done = {
    .name = "done", "Something was done", sizeof(struct done_row), done_fields};

static const char *title_of(unsigned status)
{
    switch (status) {
    case 400:
        return "Bad request";
    case 403:
        return "Not allowed";
    case 404:
        return "Not found";
    case 405:
        return "Method not allowed";
    case 409:
        return "Conflict";
    case 413:
        return "Body too large";
    case 414:
        return "Path too long";
    case 429:
        return "Too many requests";
    case 503:
        return "Not ready";
    default:
        return "Error";
    }
}

void answer_problem(struct request *r, unsigned status, const char *fmt, ...)
{
    char detail[1600];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(detail, sizeof(detail), fmt, ap);
    va_end(ap);
    buf_clear(&r->out);
    r->status = status;
    r->type = "application/problem+json";
    r->etag[0] = r->next[0] = r->location[0] = 0;
    json_put_struct(
        &r->out, &schema_problem,
        &(struct problem){
            .type = "about:blank", .title = title_of(status), .status = status, .detail = detail});
}

void answer_struct(struct request *r, unsigned status, const struct schema *s, const void *p)
{
    r->status = status;
    r->type = "application/json";
    json_put_struct(&r->out, s, p);
    buf_putc(&r->out, '\n');
}

void answer_ok(struct request *r, const char *text)
{
    answer_struct(r, 200, &schema_done, &(struct done_row){true, text});
}

void list_open(struct list *l, struct buf *out, const struct schema *s, bool csv, size_t limit)
{
    *l = (struct list){.out = out, .schema = s, .limit = limit, .csv = csv};
    if (csv)
        csv_put_head(out, s);
    else
        buf_puts(out, "{\"items\":[");
}

bool list_is_csv(const struct request *r)
{
    const char *format = query_str(r, "format");
    return format != NULL && strcmp(format, "csv") == 0;
}

void list_answer(struct request *r)
{
    r->status = 200;
    r->type = list_is_csv(r) ? "text/csv; charset=utf-8; header=present" : "application/json";
}

void list_begin(struct list *l, struct request *r, const struct schema *s)
{
    list_open(l, &r->out, s, list_is_csv(r), (size_t)query_int(r, "limit", LIMIT_DEFAULT));
    l->r = r;
    list_answer(r);
}

void list_item(struct list *l, const void *row)
{
    struct buf *b = l->out;
    if (l->csv) {
        csv_put_row(b, l->schema, row);
    } else {
        if (l->n > 0)
            buf_add(b, ",\n", 2);
        json_put_struct(b, l->schema, row);
    }
    l->n++;
}

void answer_unresolved(struct request *r, const char *what, int code, const struct err *e)
{
    answer_problem(r,
                   code == -EEXIST   ? 409
                   : code == -ENOENT ? 404
                                     : 400,
                   "%s \"%.120s\": %s", what, e->where, e->text);
}

struct list_tail {
    const char *next;
    int64_t total, generation, sampled_at;
    bool complete;
};
static const struct field tail_fields[] = {
    {.name = "next", .type = FIELD_STR, .at = offsetof(struct list_tail, next), ""},
    {.name = "total", .type = FIELD_INT, .at = offsetof(struct list_tail, total), ""},
    {.name = "generation", .type = FIELD_INT, .at = offsetof(struct list_tail, generation), ""},
    {.name = "sampled_at", .type = FIELD_TIME, .at = offsetof(struct list_tail, sampled_at), ""},
    {.name = "complete", .type = FIELD_BOOL, .at = offsetof(struct list_tail, complete), ""},
    {0},
};
static const struct schema tail_schema = {.name = "tail", "", sizeof(struct list_tail), tail_fields};

void list_end(struct list *l, const char *next, int64_t total, int64_t generation, int64_t sampled_ns)
{
    struct buf tail = {0};

    if (next != NULL && l->r != NULL)
        snprintf(l->r->next, sizeof(l->r->next), "%s", next);
    if (l->csv)
        return;
    json_put_struct(&tail, &tail_schema,
                    &(struct list_tail){.next = next,
                                        .total = total,
                                        .generation = generation,
                                        .sampled_at = sampled_ns,
                                        .complete = !l->incomplete});
    buf_add(l->out, "],", 2);
    buf_add(l->out, tail.data + 1, tail.len - 1);
    buf_putc(l->out, '\n');
    buf_done(&tail);
}
