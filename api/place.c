// SPDX-License-Identifier: Apache-2.0
// What a focus knows of a port that stays while counters change, and what its bare names mean: a silence
// covers ports by it alone; lists of alarms and links have it of either end.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/tele.h"
#include "lib/buf.h"
#include "lib/called.h"
#include "lib/guid.h"

static const struct field place_fields[] = {PLACE_FIELDS, {0}};
_Static_assert(sizeof(place_fields) / sizeof(place_fields[0]) == PLACE_NUM + 1, "fields of places");
static const struct schema schema_place = {.name = "place", "", sizeof(struct place_row), place_fields};

// --- names ---

bool place_named(const struct place_row *p, const char *word)
{
    return called_port(&(struct called){p->guid, p->name, p->port, p->rail}, word);
}

bool place_is_named(const void *row, const void *end, const char *word)
{
    (void)row;
    return place_named(end, word);
}

struct sieve *place_sieve(const char *focus, struct err *e)
{
    return sieve_new_of(focus, &(struct sieve_rows){.end = &schema_place, .named = place_is_named}, e);
}

int place_check(const char *focus, struct err *e)
{
    struct sieve *s = place_sieve(focus, e);
    sieve_free(s);
    return s != NULL ? 0 : e->code;
}

// --- whether a bare name means anything ---

struct asked { // a word, with its port apart
    const char *word;
    char node[256];
    unsigned port;
    bool with_port, seen; // seen: the node is there
    unsigned ports;       // so many it has
};

static bool is_there(const struct fabric *f, struct asked *a)
{
    for (uint32_t i = 0; f != NULL && i < f->num_nodes; i++) {
        const struct node *n = &f->node[i];
        struct called x = {n->guid, fabric_desc(f, n), -1, id_or_null(n->rail, RAIL_NONE)};
        if (called_node(&x, a->word))
            return true;
        if (!a->with_port || !called_node(&x, a->node))
            continue;
        a->seen = true;
        a->ports = n->num_ports;
        if (a->port >= 1 && a->port <= n->num_ports)
            return true;
    }
    return false;
}

static void say_unknown(const struct fabric *f, const struct asked *a, struct err *e)
{
    struct buf b = {0};
    const char *part = a->with_port ? a->node : a->word;
    long rail;
    size_t host = called_split_rail(part, &rail), n = 0, len = host > 0 ? host : strlen(part);
    char like[64];
    snprintf(like, sizeof(like), "%.*s", (int)(len < 60 ? len : 60), part);
    for (uint32_t i = 0; f != NULL && like[0] != 0 && i < f->num_nodes && n < 6; i++)
        if (strcasestr(fabric_desc(f, &f->node[i]), like) != NULL)
            buf_printf(&b, "%s\"%.40s\"", n++ ? ", " : "", fabric_desc(f, &f->node[i]));
    if (a->seen)
        err_set(e, -ENOENT, a->word, "the node has no port %u; it has 1 to %u", a->port, a->ports);
    else if (n > 0)
        err_set(e, -ENOENT, a->word, "no node, host or port is called so; names that contain it: %s", b.data);
    else
        err_set(e, -ENOENT, a->word, "no node, host or port is called so");
    buf_done(&b);
}

int place_word(struct api *a, const struct view *only, const char *word, struct err *e)
{
    struct asked q = {.word = word};
    const struct fabric *first = NULL;
    uint64_t guid;
    size_t n = called_split_port(word, &q.port);

    q.with_port = n > 0 && n < sizeof(q.node);
    if (q.with_port)
        snprintf(q.node, sizeof(q.node), "%.*s", (int)n, word);
    const char *node = q.with_port ? q.node : word;
    if (strlen(node) > 6 && guid_parse(node, &guid) == 0)
        return 0; // of something that is gone, perhaps
    for (unsigned i = 0; i < a->c.num_fabrics; i++) {
        struct view *v = &a->view[i];
        struct sm_blueprint b = {0};
        if (only != NULL && v != only)
            continue;
        if (v->src->sm != NULL)
            sm_get_blueprint(v->src->sm, &b);
        const struct fabric *f = view_fabric(v);
        first = first != NULL ? first : f;
        if (is_there(f, &q) || (b.known != f && is_there(b.known, &q)))
            return 0;
    }
    say_unknown(first, &q, e);
    return -ENOENT;
}

// --- a port ---

// The port's cable; PORT_NONE: there is none.
static port_id cabled(const struct fabric *f, uint64_t guid, unsigned port)
{
    const struct node *n = f != NULL && port > 0 ? fabric_by_guid(f, guid) : NULL;
    port_id p = n != NULL ? fabric_port_at(f, n, port) : PORT_NONE;
    return port_valid(p) && port_valid(fabric_port(f, p)->peer) ? p : PORT_NONE;
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
}

static void fill_cable(const struct fabric *f, const struct port *p, struct place_row *row)
{
    const struct port *q = fabric_port(f, p->peer);
    row->kind = link_kinds[fabric_node(f, p->node)->type == NODE_SWITCH &&
                           fabric_node(f, q->node)->type == NODE_SWITCH];
    if (p->rail != RAIL_NONE)
        row->rail = p->rail;
}

// What is away just now, a node or a cable, is found in the blueprint: a silence for a rack holds while the
// rack is out.
static void fill_place(const struct fabric *const in[2], struct place_row *row)
{
    const struct node *n = NULL;
    port_id p = PORT_NONE;
    for (unsigned i = 0; i < 2 && n == NULL; i++)
        if (in[i] != NULL && (n = fabric_by_guid(in[i], row->guid)) != NULL)
            fill_node(in[i], n, row);
    for (unsigned i = 0; i < 2 && !port_valid(p); i++)
        if (port_valid(p = cabled(in[i], row->guid, (unsigned)row->port)))
            fill_cable(in[i], fabric_port(in[i], p), row);
}

void place_fill(struct api *a, const char *fabric, uint64_t node_guid, unsigned port, struct place_space *s)
{
    struct view *v = view_named(a, fabric);
    const struct fabric *const in[2] = {v != NULL ? view_fabric(v) : NULL, v != NULL ? view_known(v) : NULL};
    s->row = (struct place_row){.fabric = fabric,
                                .guid = node_guid,
                                .name = "",
                                .place = s->place,
                                .element = s->element,
                                .port = port,
                                .rail = NO_INT,
                                .su = NO_INT,
                                .tier = NO_INT,
                                .plane = NO_INT,
                                .host = NO_INT};
    fill_place(in, &s->row);
    snprintf(s->place, sizeof(s->place), "%.200s/%u", s->row.name, port);
    snprintf(s->element, sizeof(s->element), "%.200s[%u]", s->row.name, port);
}

bool api_focus_covers(struct api *a, const char *focus, const char *fabric, uint64_t node_guid, uint8_t port)
{
    struct err e = {0};
    struct place_space space;
    struct sieve *s = place_sieve(focus, &e);
    if (s == NULL)
        return false;
    place_fill(a, fabric, node_guid, port, &space);
    bool hit = sieve_has_end(s, NULL, &space.row);
    sieve_free(s);
    return hit;
}
