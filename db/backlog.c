// SPDX-License-Identifier: Apache-2.0
// What could not be written and is tried again: bounded by leaving out what a later request overrides, so
// that a caller who repeats a put for hours of a full disk costs no more than one.
//
// Of the LID items the last one of each (fabric, GUID) stays, in the old order; of groups that of each
// (fabric, MGID, GUID), of alarms and silences that of each id. Applying these gives what the full sequence
// would, except that an item whose LID went to a GUID that has itself moved on since keeps its record: the
// LID is free, so that is harmless.
#include <stdlib.h>
#include <string.h>

#include "db/db_priv.h"
#include "lib/xalloc.h"

struct op {
    const struct db_req *req;
    struct db_lid lid;            // of LIDs
    const struct db_group *group; // of groups; in the request
    size_t seq;
};

enum what { WHAT_LID, WHAT_BLOB, WHAT_GROUP, WHAT_ALARM, WHAT_SILENCE, WHAT_RESERVE };

static enum what what_of(const struct db_req *r)
{
    switch (r->kind) {
    case DB_LIDS_PUT:
        return WHAT_LID;
    case DB_BLOB_PUT:
        return WHAT_BLOB;
    case DB_GROUPS_PUT:
    case DB_GROUPS_FORGET:
        return WHAT_GROUP;
    case DB_ALARM_PUT:
    case DB_ALARM_FORGET:
        return WHAT_ALARM;
    case DB_SILENCE_PUT:
    case DB_SILENCE_FORGET:
        return WHAT_SILENCE;
    case DB_ALARM_RESERVE:
        return WHAT_RESERVE;
    }
    return WHAT_LID;
}

static int cmp_group(const struct db_group *x, const struct db_group *y)
{
    int c = memcmp(x->mgid, y->mgid, sizeof(x->mgid));
    return c ? c : (x->port_guid > y->port_guid) - (x->port_guid < y->port_guid);
}

// One request is of one thing that has a name or an id, not of many items.
static bool is_single(const struct db_req *r)
{
    return what_of(r) != WHAT_LID && what_of(r) != WHAT_GROUP;
}

static int cmp_target(const struct op *x, const struct op *y)
{
    enum what xw = what_of(x->req), yw = what_of(y->req);
    if (xw != yw)
        return (int)xw - (int)yw;
    int c = strcmp(x->req->fabric, y->req->fabric);
    if (c)
        return c;
    if (xw == WHAT_BLOB)
        return strcmp(x->req->name, y->req->name);
    if (xw == WHAT_GROUP)
        return cmp_group(x->group, y->group);
    if (xw == WHAT_RESERVE)
        return 0;
    if (xw == WHAT_ALARM || xw == WHAT_SILENCE)
        return (x->req->id > y->req->id) - (x->req->id < y->req->id);
    return (x->lid.port_guid > y->lid.port_guid) - (x->lid.port_guid < y->lid.port_guid);
}

static int cmp_seq(const void *a, const void *b)
{
    const struct op *x = a, *y = b;
    return (x->seq > y->seq) - (x->seq < y->seq);
}

static int cmp_target_seq(const void *a, const void *b)
{
    int c = cmp_target(a, b);
    return c ? c : cmp_seq(a, b);
}

static size_t ops_of(const struct db_req *r)
{
    return is_single(r) ? 1 : r->n;
}

static struct op *list_ops(const struct db_req_list *l, size_t *ret_n)
{
    size_t n = 0, k = 0;
    for (const struct db_req *r = l->head; r; r = r->next)
        n += ops_of(r);
    struct op *op = xcalloc(n ? n : 1, sizeof(*op));
    for (const struct db_req *r = l->head; r; r = r->next) {
        for (size_t i = 0; i < ops_of(r); i++, k++)
            op[k] =
                (struct op){r, r->lid ? r->lid[i] : (struct db_lid){0}, r->group ? &r->group[i] : NULL, k};
    }
    *ret_n = n;
    return op;
}

static size_t keep_last(struct op *op, size_t n)
{
    size_t k = 0;
    qsort(op, n, sizeof(*op), cmp_target_seq);
    for (size_t i = 0; i < n; i++) {
        if (i + 1 == n || cmp_target(&op[i], &op[i + 1]) != 0)
            op[k++] = op[i];
    }
    qsort(op, k, sizeof(*op), cmp_seq);
    return k;
}

static bool same_request(const struct op *x, const struct op *y)
{
    return !is_single(x->req) && x->req->kind == y->req->kind && strcmp(x->req->fabric, y->req->fabric) == 0;
}

// The old request gives its bytes away; it is freed next.
static void take_over(struct db_req *r, struct db_req *old)
{
    r->name = old->name;
    r->data = old->data;
    r->n = old->n;
    r->alarm = old->alarm;
    r->silence = old->silence;
    r->id = old->id;
    old->name = NULL;
    old->data = NULL;
    old->alarm = NULL;
    old->silence = NULL;
}

// Requests of the ops that stay: neighbours of one kind and fabric become one.
static void rebuild(struct db_req_list *out, const struct op *op, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        struct db_req *r = xcalloc(1, sizeof(*r));
        r->kind = op[i].req->kind;
        r->fabric = xstrdup(op[i].req->fabric);
        for (end = i + 1; end < n && end - i < DB_LIDS_MAX && same_request(&op[i], &op[end]);)
            end++;
        r->n = end - i;
        if (is_single(r)) {
            take_over(r, (struct db_req *)op[i].req);
        } else if (what_of(r) == WHAT_GROUP) {
            r->group = xcalloc(r->n, sizeof(*r->group));
            for (size_t k = 0; k < r->n; k++)
                r->group[k] = *op[i + k].group;
        } else {
            r->lid = xcalloc(r->n, sizeof(*r->lid));
            for (size_t k = 0; k < r->n; k++)
                r->lid[k] = op[i + k].lid;
        }
        db_req_list_add(out, r);
    }
}

void db_backlog_compact(struct db_req_list *kept)
{
    struct db_req_list out;
    size_t n;
    db_req_list_init(&out);
    struct op *op = list_ops(kept, &n);
    rebuild(&out, op, keep_last(op, n));
    free(op);
    while (kept->head) {
        struct db_req *r = kept->head;
        kept->head = r->next;
        db_req_free(r);
    }
    *kept = out;
    if (!kept->head)
        kept->tail = &kept->head;
}
