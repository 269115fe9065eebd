// SPDX-License-Identifier: Apache-2.0
// Adaptive routing: what the subnet manager says of it, as rows.
#include "api/adaptive.h"

#include <math.h>
#include <stdio.h>

#define ROW(f) offsetof(struct adaptive_row, f)
static const char *const mode_names[] = {"off", "refused", "on", NULL};
static const struct field adaptive_fields[] = {
    {.name = "mode",
     .type = FIELD_STR,
     .at = ROW(mode),
     "on; refused: asked for, but not on hardware",
     .name_of = mode_names},
    {.name = "proved", .type = FIELD_BOOL, .at = ROW(proved), "there are groups, and every choice is proved"},
    {.name = "switches", .type = FIELD_INT, .at = ROW(switches), "switches"},
    {.name = "supported", .type = FIELD_INT, .at = ROW(supported), "those that have it"},
    {.name = "enabled", .type = FIELD_INT, .at = ROW(enabled), "those that adapt now"},
    {.name = "left",
     .type = FIELD_INT,
     .at = ROW(left),
     "those that have it and do not do as they are told, or do not answer"},
    {.name = "entries",
     .type = FIELD_INT,
     .at = ROW(entries),
     "table entries from one switch to what hangs on another"},
    {.name = "adaptive", .type = FIELD_INT, .at = ROW(adaptive), "those with a group of ports"},
    {.name = "choices",
     .type = FIELD_NUM,
     .at = ROW(choices),
     "ports of such a group, on average",
     .null = true},
    {.name = "most_groups", .type = FIELD_INT, .at = ROW(most_groups), "groups of the switch that has most"},
    {.name = "over_cap",
     .type = FIELD_INT,
     .at = ROW(over_cap),
     "switches that could use more groups than they hold"},
    {.name = "why",
     .type = FIELD_STR,
     .at = ROW(why),
     "what the groups go by, or why there are none",
     .null = true},
    {0},
};
const struct schema schema_adaptive = {
    .name = "adaptive_routing", "Adaptive routing", sizeof(struct adaptive_row), adaptive_fields};

struct adaptive_switch_row {
    uint64_t guid;
    const char *name, *state, *why;
    int64_t groups, cap;
};
#define SWITCH(f) offsetof(struct adaptive_switch_row, f)
const char *const adaptive_state_names[] = {"none", "off", "on", "left", NULL};
static const struct field switch_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = SWITCH(guid), "NodeGUID"},
    {.name = "name", .type = FIELD_STR, .at = SWITCH(name), "its description"},
    {.name = "state",
     .type = FIELD_STR,
     .at = SWITCH(state),
     "none: it does not have it; left: it is let be, see why",
     .name_of = adaptive_state_names},
    {.name = "groups", .type = FIELD_INT, .at = SWITCH(groups), "groups of ports that its table uses"},
    {.name = "cap", .type = FIELD_INT, .at = SWITCH(cap), "groups that it can hold", .null = true},
    {.name = "why", .type = FIELD_STR, .at = SWITCH(why), "what it did not do as told", .null = true},
    {0},
};
const struct schema schema_adaptive_switch = {.name = "adaptive_switch",
                                              "A switch that was asked whether it adapts",
                                              sizeof(struct adaptive_switch_row),
                                              switch_fields};

bool adaptive_fill(const struct sm *sm, struct adaptive_row *row)
{
    struct sm_adaptive_status s;
    sm_adaptive_status(sm, &s);
    if (s.mode == SM_ADAPTIVE_OFF)
        return false;
    *row = (struct adaptive_row){
        .mode = mode_names[s.mode],
        .proved = s.proved,
        .switches = s.switches,
        .supported = s.supported,
        .enabled = s.enabled,
        .left = s.left,
        .entries = (int64_t)s.entries,
        .adaptive = (int64_t)s.adaptive,
        .choices = s.adaptive > 0 ? (double)s.choices / (double)s.adaptive : NAN,
        .most_groups = s.most_groups,
        .over_cap = s.over_cap,
    };
    snprintf(row->text, sizeof(row->text), "%s", s.why);
    row->why = row->text[0] != 0 ? row->text : NULL;
    return true;
}

static const char *state_of(const struct sm_adaptive_switch *s)
{
    return !s->supported ? "none" : s->why[0] != 0 ? "left" : s->enabled ? "on" : "off";
}

const char *adaptive_state(const struct sm *sm, const struct node *n)
{
    struct sm_adaptive_switch s;
    return sm != NULL && n->type == NODE_SWITCH && sm_adaptive_switch(sm, n->guid, &s) ? state_of(&s) : NULL;
}

static bool fill_switch(const struct view *v, const struct node *n, struct adaptive_switch_row *row)
{
    struct sm_adaptive_switch s;
    if (v->src->sm == NULL || !sm_adaptive_switch(v->src->sm, n->guid, &s))
        return false;
    *row = (struct adaptive_switch_row){
        .guid = n->guid,
        .name = fabric_desc(v->f, n),
        .state = state_of(&s),
        .groups = s.groups,
        .cap = s.supported ? s.cap : NO_INT,
        .why = s.why[0] != 0 ? s.why : NULL,
    };
    return true;
}

void get_adaptive(struct request *r)
{
    struct view *v = view_of(r);
    struct adaptive_switch_row row;
    uint64_t skip, seen = 0;
    struct list l;
    char next[24];

    if (v == NULL || !cursor_number(r, &skip))
        return;
    list_begin(&l, r, &schema_adaptive_switch);
    for (uint32_t sw = 0; sw < v->f->num_switches; sw++)
        if (fill_switch(v, fabric_switch(v->f, sw), &row) && seen++ >= skip && !list_full(&l))
            list_item(&l, &row);
    uint64_t given = skip + l.n;
    list_end(&l, given < seen ? number_text(given, next) : NULL, (int64_t)seen, (int64_t)v->f->generation,
             view_sampled(r->api, v));
}
