// SPDX-License-Identifier: Apache-2.0
// Sweeps that are asked for; and the record of every action that was carried out: who asked, and for what.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/api_priv.h"
#include "lib/guid.h"
#include "lib/log.h"

// --- bodies and answers ---

static const struct field none_fields[] = {{0}};
const struct schema schema_nothing_body = {
    .name = "nothing", "An empty object, or no body", 1, none_fields, true};

struct asked_row {
    int64_t sweep;
};
static const struct field asked_fields[] = {
    {.name = "sweep",
     .type = FIELD_INT,
     .at = offsetof(struct asked_row, sweep),
     "id that the sweep will have"},
    {0},
};
const struct schema schema_sweep_asked = {
    .name = "sweep_asked", "A sweep that was asked for", sizeof(struct asked_row), asked_fields};

void audit_action(struct request *r, const char *subject, const char *fmt, ...)
{
    char what[300], text[400], q1[300], q2[600];
    const char *fabric = r->view != NULL ? r->view->src->name : "";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    snprintf(text, sizeof(text), "user id %u: %s", (unsigned)r->uid, what);
    log_notice("operator-action", "fabric=%s uid=%u subject=\"%s\" text=\"%s\"", fabric, (unsigned)r->uid,
               log_quote(subject, q1, sizeof(q1)), log_quote(what, q2, sizeof(q2)));
    if (r->api->c.db == NULL)
        return;
    api_event(r->api, db_event_add(r->api->c.db, &(struct db_event){.wall_ns = wall_now_ns(),
                                                                    .fabric = fabric,
                                                                    .kind = "operator-action",
                                                                    .severity = "notice",
                                                                    .subject = subject,
                                                                    .text = text,
                                                                    .data = ""}));
}

// --- sweeps ---

void answer_unmanaged(struct request *r)
{
    const struct view *v = r->view;
    if (v->src->offline != NULL)
        answer_problem(r, 409, "fabric %s is a file; nothing manages it", v->src->name);
    else
        answer_problem(r, 503, "fabric %s is not managed: %s", v->src->name,
                       v->src->down ? v->src->down : "there is no port");
}

int64_t next_sweep(const struct view *v)
{
    struct sm_status st;
    sm_get_status(v->src->sm, &st);
    return (int64_t)st.sweeps + (st.sweeping ? 2 : 1);
}

const char *user_text(const struct request *r, char ret[USER_TEXT])
{
    snprintf(ret, USER_TEXT, "user id %u", (unsigned)r->uid);
    return ret;
}

void post_resweep(struct request *r)
{
    struct view *v = r->view;

    if (v->src->sm == NULL) {
        answer_unmanaged(r);
        return;
    }
    int64_t id = next_sweep(v);
    audit_action(r, "", "the whole fabric is looked at again");
    sm_resweep(v->src->sm, "operator", false);
    answer_struct(r, 202, &schema_sweep_asked, &(struct asked_row){id});
}
