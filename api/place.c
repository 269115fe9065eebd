// SPDX-License-Identifier: Apache-2.0
// What a silence covers: a focus on the fields of a port that stay while counters change.
#include <stdio.h>
#include <string.h>

#include "api/tele.h"

struct place_row {
    uint64_t guid;
    const char *name, *place, *element, *type, *role, *kind;
    int64_t port, rail, su, tier, plane, host;
};
#define ROW(f) offsetof(struct place_row, f)
static const struct field place_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = ROW(guid), ""},
    {.name = "name", .type = FIELD_STR, .at = ROW(name), ""},
    {.name = "node", .type = FIELD_STR, .at = ROW(name), ""},
    {.name = "port", .type = FIELD_INT, .at = ROW(port), ""},
    {.name = "place", .type = FIELD_STR, .at = ROW(place), ""},
    {.name = "element", .type = FIELD_STR, .at = ROW(element), ""},
    {.name = "type", .type = FIELD_STR, .at = ROW(type), ""},
    {.name = "role", .type = FIELD_STR, .at = ROW(role), ""},
    {.name = "kind", .type = FIELD_STR, .at = ROW(kind), ""},
    {.name = "rail", .type = FIELD_INT, .at = ROW(rail), ""},
    {.name = "su", .type = FIELD_INT, .at = ROW(su), ""},
    {.name = "tier", .type = FIELD_INT, .at = ROW(tier), ""},
    {.name = "plane", .type = FIELD_INT, .at = ROW(plane), ""},
    {.name = "host", .type = FIELD_INT, .at = ROW(host), ""},
    {0},
};
static const struct schema schema_place = {.name = "place", "", sizeof(struct place_row), place_fields};

static struct sieve *place_sieve(const char *focus, struct err *e)
{
    return sieve_new(focus, &schema_place, "name guid place element", e);
}

int place_check(const char *focus, struct err *e)
{
    struct sieve *s = place_sieve(focus, e);
    sieve_free(s);
    return s != NULL ? 0 : e->code;
}

static void fill_node(const struct fabric *f, const struct node *n, struct place_row *row)
{
    row->name = fabric_desc(f, n);
    row->type = node_type_word(n->type);
    row->role = node_role_name((enum node_role)n->role);
    row->rail = id_or_null(n->rail, RAIL_NONE);
    row->su = id_or_null(n->su, SU_NONE);
    row->tier = id_or_null(n->tier, TIER_NONE);
    row->plane = n->plane;
    row->host = id_or_null(n->host, ID_NONE);
    port_id p = row->port > 0 ? fabric_port_at(f, n, (unsigned)row->port) : PORT_NONE;
    if (!port_valid(p) || !port_valid(fabric_port(f, p)->peer))
        return;
    const struct port *q = fabric_port(f, fabric_port(f, p)->peer);
    row->kind = link_kinds[n->type == NODE_SWITCH && fabric_node(f, q->node)->type == NODE_SWITCH];
    if (fabric_port(f, p)->rail != RAIL_NONE)
        row->rail = fabric_port(f, p)->rail;
}

// A node that is gone just now is found in the blueprint: a silence for a rack holds while the rack is out.
static const struct fabric *fabric_of(struct api *a, const char *name, uint64_t guid, const struct node **ret)
{
    struct sm_blueprint b = {0};
    for (unsigned i = 0; i < a->c.num_fabrics; i++) {
        if (strcmp(a->c.fabric[i]->name, name) != 0)
            continue;
        const struct fabric *f = view_fabric(&a->view[i]);
        if (f != NULL && (*ret = fabric_by_guid(f, guid)) != NULL)
            return f;
        if (a->view[i].src->sm != NULL)
            sm_get_blueprint(a->view[i].src->sm, &b);
        if (b.known != NULL && (*ret = fabric_by_guid(b.known, guid)) != NULL)
            return b.known;
    }
    return NULL;
}

bool api_focus_covers(struct api *a, const char *focus, const char *fabric, uint64_t node_guid, uint8_t port)
{
    struct err e = {0};
    const struct node *n = NULL;
    char place[PLACE_TEXT], element[PLACE_TEXT];
    struct place_row row = {.guid = node_guid,
                            .name = "",
                            .place = place,
                            .element = element,
                            .port = port,
                            .rail = NO_INT,
                            .su = NO_INT,
                            .tier = NO_INT,
                            .plane = NO_INT,
                            .host = NO_INT};
    struct sieve *s = place_sieve(focus, &e);
    if (s == NULL)
        return false;
    const struct fabric *f = fabric_of(a, fabric, node_guid, &n);
    if (f != NULL)
        fill_node(f, n, &row);
    snprintf(place, sizeof(place), "%.200s/%u", row.name, port);
    snprintf(element, sizeof(element), "%.200s[%u]", row.name, port);
    bool hit = sieve_has(s, &row);
    sieve_free(s);
    return hit;
}
