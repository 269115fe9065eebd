// SPDX-License-Identifier: Apache-2.0
// Findings, counters of MADs, events.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "lib/xalloc.h"
#include "mad/mad.h"

bool cursor_number(struct request *r, uint64_t *ret)
{
    const char *s = query_str(r, "cursor");
    char *end;
    *ret = 0;
    if (s == NULL)
        return true;
    errno = 0;
    *ret = strtoull(s, &end, 10);
    if (errno == 0 && *end == 0 && strspn(s, "0123456789") == strlen(s))
        return true;
    answer_problem(r, 400, "the cursor \"%.60s\" is none of this list; give \"next\" of the answer before",
                   s);
    return false;
}

const char *number_text(uint64_t v, char buf[24])
{
    snprintf(buf, 24, "%llu", (unsigned long long)v);
    return buf;
}

// --- findings ---

struct finding_row {
    const char *severity, *code, *where, *text;
    int64_t count;
};
#define FINDING(f) offsetof(struct finding_row, f)
static const struct field finding_fields[] = {
    {.name = "severity",
     .type = FIELD_STR,
     .at = FINDING(severity),
     "how bad it is",
     .name_of = severity_names},
    {.name = "code", .type = FIELD_STR, .at = FINDING(code), "what kind it is; stable"},
    {.name = "where", .type = FIELD_STR, .at = FINDING(where), "port, node or line of a file; may be empty"},
    {.name = "text",
     .type = FIELD_STR,
     .at = FINDING(text),
     "what it is; the first one's where there are several"},
    {.name = "count", .type = FIELD_INT, .at = FINDING(count), "how often"},
    {0},
};
const struct schema schema_finding = {
    .name = "finding", "Something a person should know", sizeof(struct finding_row), finding_fields};

void get_findings(struct request *r)
{
    const struct view *v = r->view;
    const struct findings *set[] = {v->src->offline_findings,
                                    v->src->sm != NULL ? sm_findings(v->src->sm) : NULL};
    uint64_t skip, seen = 0;
    struct list l;
    char next[24];

    if (!cursor_number(r, &skip))
        return;
    list_begin(&l, r, &schema_finding);
    for (int sev = FINDING_ERROR; sev >= FINDING_INFO; sev--)
        for (size_t k = 0; k < 2; k++)
            for (size_t i = 0; set[k] != NULL && i < set[k]->n; i++) {
                const struct finding *f = &set[k]->item[i];
                if ((int)f->severity != sev || seen++ < skip || list_full(&l))
                    continue;
                list_item(&l, &(struct finding_row){.severity = severity_names[sev],
                                                    .code = f->code,
                                                    .where = f->where,
                                                    .text = f->text,
                                                    .count = f->count});
            }
    uint64_t given = skip + l.n;
    list_end(&l, given < seen ? number_text(given, next) : NULL, (int64_t)seen,
             v->f != NULL ? (int64_t)v->f->generation : NO_INT, view_sampled(r->api, v));
}

// --- MADs ---

struct mad_row {
    const char *method, *attribute;
    int64_t mgmt_class, requests, sent, retries, timeouts, refused, undeliverable, late;
};
#define MAD(f) offsetof(struct mad_row, f)
static const struct field mad_fields[] = {
    {.name = "class",
     .type = FIELD_INT,
     .at = MAD(mgmt_class),
     "management class: 1 SMP, 3 SA, 4 performance"},
    {.name = "method", .type = FIELD_STR, .at = MAD(method), "such as Get"},
    {.name = "attribute", .type = FIELD_STR, .at = MAD(attribute), "such as PortInfo"},
    {.name = "requests", .type = FIELD_INT, .at = MAD(requests), "requests made"},
    {.name = "sent", .type = FIELD_INT, .at = MAD(sent), "MADs sent, repeats included"},
    {.name = "retries", .type = FIELD_INT, .at = MAD(retries), "repeats"},
    {.name = "timeouts", .type = FIELD_INT, .at = MAD(timeouts), "requests that stayed without an answer"},
    {.name = "refused", .type = FIELD_INT, .at = MAD(refused), "answers with an error status"},
    {.name = "undeliverable", .type = FIELD_INT, .at = MAD(undeliverable), "handed back by the transport"},
    {.name = "late", .type = FIELD_INT, .at = MAD(late), "answers that came to an earlier try"},
    {0},
};
const struct schema schema_mad = {
    .name = "mad", "Counters of one kind of MAD", sizeof(struct mad_row), mad_fields};

static void put_mad(struct list *l, const struct mad_count *c)
{
    char method[16], attr[16];
    const char *m = mad_method_name(c->method), *a = mad_attr_name(c->mgmt_class, c->attr_id);
    snprintf(method, sizeof(method), "0x%02x", c->method);
    snprintf(attr, sizeof(attr), "0x%04x", c->attr_id);
    list_item(l, &(struct mad_row){.mgmt_class = c->mgmt_class,
                                   .method = m ? m : method,
                                   .attribute = a ? a : attr,
                                   .requests = (int64_t)c->requests,
                                   .sent = (int64_t)c->sent,
                                   .retries = (int64_t)c->retries,
                                   .timeouts = (int64_t)c->timeouts,
                                   .refused = (int64_t)c->refused,
                                   .undeliverable = (int64_t)c->undeliverable,
                                   .late = (int64_t)c->late});
}

void get_mads(struct request *r)
{
    const struct mad_engine *e = r->view->src->engine;
    struct mad_count c[300];
    size_t n = e != NULL ? mad_engine_counts(e, c, 300) : 0;
    uint64_t skip, seen = 0;
    struct list l;
    char next[24];

    if (!cursor_number(r, &skip))
        return;
    list_begin(&l, r, &schema_mad);
    for (size_t i = 0; i < n && i < 300; i++) {
        if (c[i].requests == 0 && c[i].sent == 0)
            continue;
        if (seen++ >= skip && !list_full(&l))
            put_mad(&l, &c[i]);
    }
    uint64_t given = skip + l.n;
    list_end(&l, given < seen ? number_text(given, next) : NULL, (int64_t)seen, NO_INT, wall_now_ns());
}

// --- events ---

struct event_row {
    int64_t id, time;
    const char *fabric, *kind, *severity, *subject, *text, *data;
};
#define EVENT(f) offsetof(struct event_row, f)
static const char *const event_severities[] = {"info", "notice", "warning", "error", NULL};
static const struct field event_fields[] = {
    {.name = "id", .type = FIELD_INT, .at = EVENT(id), "rises; never given twice"},
    {.name = "time", .type = FIELD_TIME, .at = EVENT(time), "when it happened"},
    {.name = "fabric", .type = FIELD_STR, .at = EVENT(fabric), "in which fabric; \"\": in none"},
    {.name = "kind", .type = FIELD_STR, .at = EVENT(kind), "what happened; stable"},
    {.name = "severity",
     .type = FIELD_STR,
     .at = EVENT(severity),
     "how bad it is",
     .name_of = event_severities},
    {.name = "subject", .type = FIELD_STR, .at = EVENT(subject), "port or node that it is about, or \"\""},
    {.name = "text", .type = FIELD_STR, .at = EVENT(text), "one line for people"},
    {.name = "data", .type = FIELD_RAW, .at = EVENT(data), "more, by kind", .null = true},
    {0},
};
const struct schema schema_event = {
    .name = "event", "Something that happened", sizeof(struct event_row), event_fields};

struct event_space {
    char *data; // checked
};

static void fill_event(const struct db_event *ev, struct event_row *row, struct event_space *s)
{
    s->data = NULL;
    if (ev->data[0] != 0) {
        json_t *j = json_loads(ev->data, 0, NULL);
        s->data = json_is_object(j) ? json_dumps(j, JSON_COMPACT) : NULL;
        json_decref(j);
    }
    *row = (struct event_row){.id = (int64_t)ev->id,
                              .time = ev->wall_ns,
                              .fabric = ev->fabric,
                              .kind = ev->kind,
                              .severity = ev->severity,
                              .subject = ev->subject,
                              .text = ev->text,
                              .data = s->data};
}

void event_put(struct buf *b, const struct db_event *ev)
{
    struct event_row row;
    struct event_space s;
    fill_event(ev, &row, &s);
    json_put_struct(b, &schema_event, &row);
    free(s.data);
}

struct event_walk {
    struct list l;
    uint64_t last;
};

static void put_event(void *arg, const struct db_event *ev)
{
    struct event_walk *w = arg;
    struct event_row row;
    struct event_space s;
    fill_event(ev, &row, &s);
    list_item(&w->l, &row);
    free(s.data);
    w->last = ev->id;
}

void get_events(struct request *r)
{
    struct event_walk w = {0};
    uint64_t cursor;
    char next[24];
    long n = 0;

    if (!cursor_number(r, &cursor))
        return;
    struct db_event_query q = {.fabric = query_str(r, "fabric"),
                               .kind = query_str(r, "kind"),
                               .after_id = (uint64_t)query_int(r, "after", 0),
                               .newest_first = query_bool(r, "newest"),
                               .limit = (int)query_int(r, "limit", LIMIT_DEFAULT)};
    if (cursor != 0 && q.newest_first)
        q.before_id = cursor;
    else if (cursor > q.after_id)
        q.after_id = cursor;
    list_begin(&w.l, r, &schema_event);
    if (r->api->c.db != NULL)
        n = db_event_query(r->api->c.db, &q, put_event, &w);
    if (n < 0) {
        answer_problem(r, 500, "the events cannot be read (%s)", strerror((int)-n));
        return;
    }
    list_end(&w.l, n == q.limit ? number_text(w.last, next) : NULL, NO_INT, NO_INT, wall_now_ns());
}
