// SPDX-License-Identifier: Apache-2.0
// The table of resources as an OpenAPI 3.1 document.
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "lib/xalloc.h"

static json_t *ref(const char *kind, const char *name)
{
    return json_pack("{s:o}", "$ref", json_sprintf("#/components/%s/%s", kind, name));
}

static json_t *param_schema(const struct param *p)
{
    json_t *o, *a;
    switch (p->type) {
    case PARAM_INT:
        return json_pack("{s:s, s:I, s:I}", "type", "integer", "minimum", (json_int_t)p->min, "maximum",
                         (json_int_t)p->max);
    case PARAM_BOOL:
        return json_pack("{s:s, s:[s, s, s, s]}", "type", "string", "enum", "0", "1", "true", "false");
    case PARAM_ENUM:
        o = json_pack("{s:s}", "type", "string");
        a = json_array();
        for (const char *const *n = p->name_of; *n != NULL; n++)
            json_array_append_new(a, json_string(*n));
        json_object_set_new(o, "enum", a);
        return o;
    case PARAM_STR:
        return json_pack("{s:s}", "type", "string");
    }
    return json_object();
}

static json_t *param_openapi(const struct param *p)
{
    return json_pack("{s:s, s:s, s:b, s:s, s:o}", "name", p->name, "in", "query", "required", p->need,
                     "description", p->doc, "schema", param_schema(p));
}

static void path_param(json_t *a, const char *path, const char *in_path, const char *name, const char *doc)
{
    if (strstr(path, in_path) != NULL)
        json_array_append_new(a, json_pack("{s:s, s:s, s:b, s:s, s:{s:s}}", "name", name, "in", "path",
                                           "required", 1, "description", doc, "schema", "type", "string"));
}

static json_t *params_of(const struct resource *q)
{
    json_t *a = json_array();
    path_param(a, q->path, "{f}", "f", "the fabric's name");
    path_param(a, q->path, "{guid}", "guid", "NodeGUID, PortGUID or unique name");
    path_param(a, q->path, "{id}", "id", "the id, of a list or an answer before");
    for (const struct param *p = q->param; p != NULL && p->name != NULL; p++)
        json_array_append_new(a, param_openapi(p));
    for (const struct param *p = list_params; q->kind == ANSWER_LIST && p->name != NULL; p++)
        json_array_append_new(a, param_openapi(p));
    return a;
}

static json_t *list_of(const struct schema *s)
{
    return json_pack("{s:[{s:s}, o]}", "allOf", "$ref", "#/components/schemas/list",
                     json_pack("{s:{s:{s:s, s:o}}}", "properties", "items", "type", "array", "items",
                               ref("schemas", s->name)));
}

static json_t *content_of(const struct resource *q)
{
    switch (q->kind) {
    case ANSWER_OBJECT:
        return json_pack("{s:{s:o}}", "application/json", "schema", ref("schemas", q->answer->name));
    case ANSWER_LIST:
        return json_pack("{s:{s:o}, s:{s:{s:s}}}", "application/json", "schema", list_of(q->answer),
                         "text/csv", "schema", "type", "string");
    case ANSWER_TEXT:
        return json_pack("{s:{s:{s:s}}, s:{s:{s:s}}}", "text/plain", "schema", "type", "string",
                         "application/json", "schema", "type", "object");
    case ANSWER_RAW:
        break;
    }
    if (q->answer != NULL)
        return json_pack("{s:{s:{s:s}}}", "text/event-stream", "schema", "type", "string");
    return json_pack("{s:{s:{s:s}}}", "application/json", "schema", "type", "object");
}

static json_t *operation(const struct resource *q)
{
    static const char *const role[] = {"read", "operate", "admin"};
    json_t *responses = json_object(), *o;
    char status[8];

    snprintf(status, sizeof(status), "%u", q->status);
    json_object_set_new(responses, status,
                        json_pack("{s:s, s:o}", "description", q->doc, "content", content_of(q)));
    if (q->etag)
        json_object_set_new(responses, "304", json_pack("{s:s}", "description", "Nothing has changed"));
    json_object_set_new(responses, "default", ref("responses", "problem"));
    o = json_pack("{s:s, s:s, s:s, s:o, s:o}", "operationId", q->name, "summary", q->doc, "x-weft-role",
                  role[q->role], "parameters", params_of(q), "responses", responses);
    if (q->body != NULL)
        json_object_set_new(o, "requestBody",
                            json_pack("{s:{s:{s:o}}}", "content", "application/json", "schema",
                                      ref("schemas", q->body->name)));
    return o;
}

static json_t *paths(void)
{
    json_t *o = json_object();
    char method[8];
    for (const struct resource *q = resource_rows; q->method != NULL; q++) {
        json_t *p = json_object_get(o, q->path);
        if (p == NULL) {
            p = json_object();
            json_object_set_new(o, q->path, p);
        }
        for (size_t i = 0; i <= strlen(q->method) && i < sizeof(method); i++)
            method[i] = (char)(q->method[i] | (q->method[i] ? 0x20 : 0));
        json_object_set_new(p, method, operation(q));
    }
    return o;
}

static void add_schema(json_t *o, const struct schema *s)
{
    if (s == NULL || json_object_get(o, s->name) != NULL)
        return;
    json_object_set_new(o, s->name, schema_openapi(s));
    for (const struct field *f = s->field; f->name != NULL; f++)
        add_schema(o, f->sub);
}

static json_t *schemas(void)
{
    static const char list[] =
        "{\"type\": \"object\", \"required\": [\"items\", \"next\", \"total\", \"generation\", "
        "\"sampled_at\", \"complete\"],"
        " \"properties\": {"
        "\"items\": {\"type\": \"array\"},"
        "\"next\": {\"type\": [\"string\", \"null\"], \"description\": \"cursor of what follows; null at the "
        "end\"},"
        "\"total\": {\"type\": [\"integer\", \"null\"], \"description\": \"items in all; null when not "
        "counted\"},"
        "\"generation\": {\"type\": [\"integer\", \"null\"], \"description\": \"snapshot that it is read "
        "from\"},"
        "\"sampled_at\": {\"type\": [\"string\", \"null\"], \"format\": \"date-time\"},"
        "\"complete\": {\"type\": \"boolean\", \"description\": \"false: some of it could not be read; "
        "unread says which\"}}}";
    json_t *o = json_object();
    json_object_set_new(o, "list", json_loads(list, 0, NULL));
    add_schema(o, &schema_problem);
    for (const struct resource *q = resource_rows; q->method != NULL; q++) {
        add_schema(o, q->answer);
        add_schema(o, q->body);
    }
    return o;
}

char *openapi_text(void)
{
    json_t *problem = json_pack("{s:s, s:{s:{s:o}}}", "description", "An error", "content",
                                "application/problem+json", "schema", ref("schemas", "problem"));
    json_t *doc =
        json_pack("{s:s, s:{s:s, s:s, s:s}, s:[{s:s}], s:o, s:{s:o, s:{s:o}}}", "openapi", "3.1.0", "info",
                  "title", "weft", "version", WEFT_VERSION, "description",
                  "The fabric manager's API. GUIDs are strings, times RFC 3339 UTC, units stand in names.",
                  "servers", "url", API_BASE, "paths", paths(), "components", "schemas", schemas(),
                  "responses", "problem", problem);
    char *text = json_dumps(doc, JSON_INDENT(1));
    json_decref(doc);
    return text != NULL ? text : xstrdup("{}");
}

void get_openapi(struct request *r)
{
    r->status = 200;
    r->type = "application/json";
    buf_puts(&r->out, r->api->openapi);
    buf_putc(&r->out, '\n');
}
