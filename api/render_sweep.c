// SPDX-License-Identifier: Apache-2.0
// Sweeps: what led to one, what was read, what was written, how long it took; and the last one that changed
// something, for the status. What happened is in the events that carry the sweep's id.
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "api/quality.h"

struct phase_row {
    const char *name;
    double seconds;
    int64_t mads;
};
#define PHASE(f) offsetof(struct phase_row, f)
static const struct field phase_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = PHASE(name), "phase"},
    {.name = "seconds", .type = FIELD_NUM, .at = PHASE(seconds), "its time"},
    {.name = "mads", .type = FIELD_INT, .at = PHASE(mads), "MADs sent in it"},
    {0},
};
static const struct schema schema_phase = {
    .name = "phase", "Part of a sweep", sizeof(struct phase_row), phase_fields};

struct sweep_row {
    const char *cause, *text;
    bool ok, full;
    double seconds, reaction;
    int64_t id, began_at, mads, retries, timeouts, devices, blocks, entries, paths, port_sets;
    int64_t nodes_added, nodes_removed, links_added, links_removed;
    const struct quality_brief *quality;
    struct items phases;
};
#define SWEEP(f) offsetof(struct sweep_row, f)
static const struct field sweep_fields[] = {
    {.name = "id", .type = FIELD_INT, .at = SWEEP(id), "number since start"},
    {.name = "cause", .type = FIELD_STR, .at = SWEEP(cause), "why it was made"},
    {.name = "began_at", .type = FIELD_TIME, .at = SWEEP(began_at), "when it began"},
    {.name = "seconds", .type = FIELD_NUM, .at = SWEEP(seconds), "how long it took"},
    {.name = "ok", .type = FIELD_BOOL, .at = SWEEP(ok), "the fabric was brought up"},
    {.name = "text", .type = FIELD_STR, .at = SWEEP(text), "what came of it; why, when not ok"},
    {.name = "full",
     .type = FIELD_BOOL,
     .at = SWEEP(full),
     "the whole fabric was read; else only what could have changed"},
    {.name = "devices", .type = FIELD_INT, .at = SWEEP(devices), "devices that were read"},
    {.name = "reaction_seconds",
     .type = FIELD_NUM,
     .at = SWEEP(reaction),
     "from the trap or light sweep that led to it to the last table block; null when none was written",
     .null = true},
    {.name = "mads", .type = FIELD_INT, .at = SWEEP(mads), "MADs sent, repeats included"},
    {.name = "retries", .type = FIELD_INT, .at = SWEEP(retries), "repeats"},
    {.name = "timeouts", .type = FIELD_INT, .at = SWEEP(timeouts), "requests that stayed without an answer"},
    {.name = "lft_blocks_set", .type = FIELD_INT, .at = SWEEP(blocks), "blocks of forwarding tables written"},
    {.name = "lft_entries", .type = FIELD_INT, .at = SWEEP(entries), "forwarding entries that changed"},
    {.name = "paths_moved",
     .type = FIELD_INT,
     .at = SWEEP(paths),
     "(leaf switch, destination) pairs whose route is another one now"},
    {.name = "port_sets", .type = FIELD_INT, .at = SWEEP(port_sets), "port settings written"},
    {.name = "nodes_added", .type = FIELD_INT, .at = SWEEP(nodes_added), "against the sweep before"},
    {.name = "nodes_removed", .type = FIELD_INT, .at = SWEEP(nodes_removed), "against the sweep before"},
    {.name = "links_added", .type = FIELD_INT, .at = SWEEP(links_added), "against the sweep before"},
    {.name = "links_removed", .type = FIELD_INT, .at = SWEEP(links_removed), "against the sweep before"},
    {.name = "quality",
     .type = FIELD_OBJ,
     .at = SWEEP(quality),
     "of the tables that it has put in force; null when it changed none, and until they are rated",
     &schema_quality_brief,
     .null = true},
    {.name = "phases", .type = FIELD_LIST, .at = SWEEP(phases), "in the order they began", &schema_phase},
    {0},
};
const struct schema schema_sweep = {
    .name = "sweep", "A finished sweep", sizeof(struct sweep_row), sweep_fields};

static double seconds_or_nan(int64_t ns)
{
    return ns > 0 ? mono_seconds(ns) : NAN;
}

static void put_sweep(struct list *l, const struct sm_sweep *s)
{
    struct phase_row phase[SM_PHASES_MAX];
    for (unsigned i = 0; i < s->num_phases && i < SM_PHASES_MAX; i++)
        phase[i] =
            (struct phase_row){s->phase[i].name, mono_seconds(s->phase[i].ns), (int64_t)s->phase[i].mads};
    list_item(l, &(struct sweep_row){.id = (int64_t)s->id,
                                     .cause = s->cause,
                                     .began_at = s->wall_ns,
                                     .seconds = mono_seconds(s->ns),
                                     .ok = s->ok,
                                     .full = s->full,
                                     .devices = s->devices,
                                     .reaction = seconds_or_nan(s->reaction_ns),
                                     .text = s->text,
                                     .mads = (int64_t)s->mads,
                                     .retries = (int64_t)s->retries,
                                     .timeouts = (int64_t)s->timeouts,
                                     .blocks = (int64_t)s->lft_blocks_set,
                                     .entries = (int64_t)s->lft_entries,
                                     .paths = (int64_t)s->paths_moved,
                                     .port_sets = (int64_t)s->port_sets,
                                     .nodes_added = (int64_t)s->nodes_added,
                                     .nodes_removed = (int64_t)s->nodes_removed,
                                     .links_added = (int64_t)s->links_added,
                                     .links_removed = (int64_t)s->links_removed,
                                     .quality = quality_of_sweep(l->r->view, s->id),
                                     .phases = {phase, s->num_phases}});
}

void get_sweeps(struct request *r)
{
    const struct sm *sm = r->view->src->sm;
    const struct sm_sweep *s;
    uint64_t before, last = 0;
    bool more = false;
    struct list l;
    char next[24];
    unsigned n = 0;

    if (!cursor_number(r, &before)) // the cursor is the id of the last one given: newer ones may have come
        return;
    list_begin(&l, r, &schema_sweep);
    for (unsigned i = 0; sm != NULL && (s = sm_history(sm, i)) != NULL; i++, n++) {
        if (before != 0 && s->id >= before)
            continue;
        more = list_full(&l);
        if (more)
            continue;
        put_sweep(&l, s);
        last = s->id;
    }
    list_end(&l, more ? number_text(last, next) : NULL, n, NO_INT, wall_now_ns());
}

// --- the last change ---

#define CHANGE_EVENTS 100 // that are looked through: a sweep tells some twenty

#define CHANGE(f) offsetof(struct change_row, f)
static const struct field change_fields[] = {
    {.name = "at", .type = FIELD_TIME, .at = CHANGE(at), "when it had been dealt with"},
    {.name = "sweep", .type = FIELD_INT, .at = CHANGE(sweep), "the sweep that did; its events carry this id"},
    {.name = "text", .type = FIELD_STR, .at = CHANGE(text), "what happened, in words"},
    {.name = "cause", .type = FIELD_STR, .at = CHANGE(cause), "how it was noticed: the sweep's cause"},
    {.name = "full", .type = FIELD_BOOL, .at = CHANGE(full), "the whole fabric was read for it"},
    {.name = "devices", .type = FIELD_INT, .at = CHANGE(devices), "devices that were read"},
    {.name = "lft_blocks_set",
     .type = FIELD_INT,
     .at = CHANGE(blocks),
     "blocks of forwarding tables written"},
    {.name = "lft_entries", .type = FIELD_INT, .at = CHANGE(entries), "forwarding entries that changed"},
    {.name = "paths_moved",
     .type = FIELD_INT,
     .at = CHANGE(paths),
     "(leaf switch, destination) pairs whose route is another one now"},
    {.name = "port_sets", .type = FIELD_INT, .at = CHANGE(port_sets), "port settings written"},
    {.name = "reaction_seconds",
     .type = FIELD_NUM,
     .at = CHANGE(reaction),
     "from the trap or light sweep to the last table block; null when none was written",
     .null = true},
    {.name = "seconds", .type = FIELD_NUM, .at = CHANGE(seconds), "how long the sweep took"},
    {.name = "mads", .type = FIELD_INT, .at = CHANGE(mads), "MADs sent, repeats included"},
    {0},
};
const struct schema schema_change = {.name = "last_change",
                                     "The last sweep that found or wrote something, and why",
                                     sizeof(struct change_row),
                                     change_fields};

// A bring-up is no change: the sweep's own line tells it.
static bool is_change(const struct sm_sweep *s, const struct fabric *f)
{
    if (!s->ok || (f != NULL && s->nodes_added > 0 && s->nodes_added >= f->num_nodes))
        return false;
    return s->nodes_added + s->nodes_removed + s->links_added + s->links_removed > 0 ||
           s->lft_blocks_set > 0 || s->port_sets > 0;
}

struct telling {
    const struct sm_sweep *sweep;
    char *text;
    size_t size;
    unsigned more;
};

static void tell_event(void *arg, const struct db_event *ev)
{
    struct telling *t = arg;
    json_t *data = ev->data[0] != 0 ? json_loads(ev->data, 0, NULL) : NULL;
    // A manager before this one counted its sweeps from 1, too.
    bool its = ev->wall_ns >= t->sweep->wall_ns &&
               (uint64_t)json_integer_value(json_object_get(data, "sweep")) == t->sweep->id;

    json_decref(data);
    if (!its)
        return;
    t->more += t->text[0] != 0;
    snprintf(t->text, t->size, "%s", ev->text); // newest first: the sweep's first one stays
}

// What the events say of this sweep; kept until there is a later one.
static const char *change_words(struct api *a, struct view *v, const struct sm_sweep *s)
{
    struct telling t = {.sweep = s, .text = v->change, .size = sizeof(v->change)};
    if (v->change_began == s->wall_ns)
        return v->change;
    v->change_began = s->wall_ns;
    v->change[0] = 0;
    if (a->c.db != NULL)
        db_event_query(
            a->c.db,
            &(struct db_event_query){.fabric = v->src->name, .newest_first = true, .limit = CHANGE_EVENTS},
            tell_event, &t);
    size_t n = strlen(v->change);
    if (n == 0)
        snprintf(v->change, sizeof(v->change), "%s", s->text);
    else if (t.more > 0)
        snprintf(v->change + n, sizeof(v->change) - n, ", and %u more", t.more);
    return v->change;
}

bool change_fill(struct api *a, struct view *v, struct change_row *ret)
{
    const struct sm_sweep *s;
    unsigned i = 0;

    while ((s = sm_history(v->src->sm, i)) != NULL && !is_change(s, v->f))
        i++;
    if (s == NULL)
        return false;
    *ret = (struct change_row){.at = s->wall_ns + s->ns,
                               .sweep = (int64_t)s->id,
                               .text = change_words(a, v, s),
                               .cause = s->cause,
                               .full = s->full,
                               .devices = s->devices,
                               .blocks = (int64_t)s->lft_blocks_set,
                               .entries = (int64_t)s->lft_entries,
                               .paths = (int64_t)s->paths_moved,
                               .port_sets = (int64_t)s->port_sets,
                               .reaction = seconds_or_nan(s->reaction_ns),
                               .seconds = mono_seconds(s->ns),
                               .mads = (int64_t)s->mads};
    return true;
}
