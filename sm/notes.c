// SPDX-License-Identifier: Apache-2.0
// What reading and programming found odd about a device. A partial sweep reads few devices: what was found of
// the others still holds, so notes stay until their device is read again. Each sweep's findings are these and
// what the model says (model.c).
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define NOTES_MAX 4096 // beyond it they are only in the findings of their own sweep

struct sm_note {
    uint64_t guid; // of the device; 0: of none, until the next full sweep; NOTE_*: until that is done again
    enum finding_severity severity;
    const char *code;
    char *where, *text;
};

void sm_note(struct sm *sm, uint64_t guid, enum finding_severity severity, const char *code,
             const char *where, const char *fmt, ...)
{
    char text[700];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (sm->notes.n >= NOTES_MAX) {
        findings_add(&sm->findings_new, severity, code, where, "%s", text);
        return;
    }
    if (sm->notes.n == sm->notes.cap) {
        sm->notes.cap = sm->notes.cap ? sm->notes.cap * 2 : 16;
        sm->notes.item = xreallocarray(sm->notes.item, sm->notes.cap, sizeof(*sm->notes.item));
    }
    sm->notes.item[sm->notes.n++] = (struct sm_note){
        .guid = guid, .severity = severity, .code = code, .where = xstrdup(where), .text = xstrdup(text)};
}

void sm_notes_drop(struct sm *sm, uint64_t guid)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sm->notes.n; i++) {
        struct sm_note *x = &sm->notes.item[i];
        if (x->guid == guid) {
            free(x->where);
            free(x->text);
        } else {
            sm->notes.item[n++] = *x;
        }
    }
    sm->notes.n = n;
}

void sm_notes_drop_all(struct sm *sm)
{
    for (uint32_t i = 0; i < sm->notes.n; i++) {
        free(sm->notes.item[i].where);
        free(sm->notes.item[i].text);
    }
    free(sm->notes.item);
    sm->notes.item = NULL;
    sm->notes.n = sm->notes.cap = 0;
}

void sm_notes_find(struct sm *sm)
{
    for (uint32_t i = 0; i < sm->notes.n; i++) {
        const struct sm_note *x = &sm->notes.item[i];
        const struct sm_dev *d = x->guid > NOTE_MASTERS ? sm_dev_find(sm, x->guid) : NULL;
        if (x->guid <= NOTE_MASTERS || (d != NULL && d->here))
            findings_add(&sm->findings_new, x->severity, x->code, x->where, "%s", x->text);
    }
}
