// SPDX-License-Identifier: Apache-2.0
// One path along the tables in force.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"

struct route_end {
    uint64_t guid, port_guid;
    const char *name;
    int64_t port, lid, lmc;
};
#define REND(f) offsetof(struct route_end, f)
static const struct field route_end_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = REND(guid), "NodeGUID"},
    {.name = "name", .type = FIELD_STR, .at = REND(name), "its description"},
    {.name = "port", .type = FIELD_INT, .at = REND(port), "port number"},
    {.name = "port_guid", .type = FIELD_GUID, .at = REND(port_guid), "PortGUID", .null = true},
    {.name = "lid", .type = FIELD_INT, .at = REND(lid), "base LID", .null = true},
    {.name = "lmc", .type = FIELD_INT, .at = REND(lmc), "the port has 2^lmc LIDs from there"},
    {0},
};
static const struct schema schema_route_end = {
    .name = "route_end", "Where a path begins or ends", sizeof(struct route_end), route_end_fields};

struct hop_row {
    uint64_t guid;
    const char *name, *link;
    int64_t in, out;
};
#define HOP(f) offsetof(struct hop_row, f)
static const struct field hop_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = HOP(guid), "NodeGUID"},
    {.name = "name", .type = FIELD_STR, .at = HOP(name), "its description"},
    {.name = "in",
     .type = FIELD_INT,
     .at = HOP(in),
     "port the packet comes in by; null where the path begins",
     .null = true},
    {.name = "out",
     .type = FIELD_INT,
     .at = HOP(out),
     "port it leaves by; null where the path ends",
     .null = true},
    {.name = "link",
     .type = FIELD_STR,
     .at = HOP(link),
     "width and speed of the link that it leaves by",
     .null = true},
    {0},
};
static const struct schema schema_hop = {
    .name = "hop", "A node on a path", sizeof(struct hop_row), hop_fields};

struct route_row {
    const struct route_end *from, *to;
    int64_t lid;
    bool reached;
    struct items hops;
    const char *error, *text;
};
#define ROUTE(f) offsetof(struct route_row, f)
static const struct field route_fields[] = {
    {.name = "from", .type = FIELD_OBJ, .at = ROUTE(from), "where the path begins", &schema_route_end},
    {.name = "to", .type = FIELD_OBJ, .at = ROUTE(to), "where it shall end", &schema_route_end},
    {.name = "lid",
     .type = FIELD_INT,
     .at = ROUTE(lid),
     "destination LID: the one asked for, else the base LID"},
    {.name = "reached", .type = FIELD_BOOL, .at = ROUTE(reached), "the tables lead there"},
    {.name = "hops", .type = FIELD_LIST, .at = ROUTE(hops), "nodes passed, both ends included", &schema_hop},
    {.name = "error",
     .type = FIELD_STR,
     .at = ROUTE(error),
     "where and why the path ends early",
     .null = true},
    {.name = "text", .type = FIELD_STR, .at = ROUTE(text), "the path for people, a line a node"},
    {0},
};
const struct schema schema_route = {.name = "route", "A path", sizeof(struct route_row), route_fields};

// The end port of a place: the port named, else the node's first one with a LID.
static int end_port(const struct fabric *f, const struct place *at, port_id *ret, struct err *e)
{
    const struct node *n = at->node;
    if (port_valid(at->port) && port_is_end(f, fabric_port(f, at->port))) {
        *ret = at->port;
    } else if (port_valid(at->port)) {
        return err_set(e, -EINVAL, fabric_desc(f, n),
                       "a switch's own port 0 ends paths, its other ports do not");
    } else {
        unsigned num = n->type == NODE_SWITCH ? 1 : n->num_ports, i = 0;
        while (i + 1 < num && f->port[n->first_port + i].a.lid == 0)
            i++;
        if (num == 0)
            return err_set(e, -EINVAL, fabric_desc(f, n), "the node has no port");
        *ret = (port_id){n->first_port + i};
    }
    if (fabric_port(f, *ret)->a.lid == 0)
        return err_set(e, -EINVAL, fabric_desc(f, n), "the port has no LID: it is down, or not managed");
    return 0;
}

// The LID that the text means when it is one of this port's several; else the base LID.
static uint16_t lid_meant(const char *text, const struct port *p)
{
    size_t digits = strspn(text, "0123456789");
    unsigned long lid = digits > 0 && digits <= 5 && text[digits] == 0 ? strtoul(text, NULL, 10) : 0;
    bool own = lid >= p->a.lid && lid < p->a.lid + (1ul << (p->a.lmc & 7));
    return own ? (uint16_t)lid : p->a.lid;
}

static bool find_end(struct request *r, const struct fabric *f, const char *param, port_id *ret)
{
    struct place at;
    struct err e = {0};
    int rc = resolve(f, query_str(r, param), RESOLVE_LID, &at, &e);
    if (rc == 0)
        rc = end_port(f, &at, ret, &e);
    if (rc != 0)
        answer_unresolved(r, param, rc, &e);
    return rc == 0;
}

static void fill_end(const struct fabric *f, port_id id, struct route_end *row)
{
    const struct port *p = fabric_port(f, id);
    const struct node *n = fabric_node(f, p->node);
    *row = (struct route_end){.guid = n->guid,
                              .port_guid = p->guid,
                              .name = fabric_desc(f, n),
                              .port = p->num,
                              .lid = p->a.lid,
                              .lmc = p->a.lmc & 7};
}

static void hop_text(struct buf *b, unsigned i, const struct hop_row *h, const char *label)
{
    buf_printf(b, "%3u  %s", i, h->name[0] ? h->name : "(no name)");
    if (h->in != NO_INT)
        buf_printf(b, "  in %lld", (long long)h->in);
    if (h->out != NO_INT)
        buf_printf(b, "  out %lld", (long long)h->out);
    if (label != NULL)
        buf_printf(b, " (%s)", label);
    if (h->link != NULL)
        buf_printf(b, "  %s", h->link);
    buf_putc(b, '\n');
}

static void fill_hop(const struct fabric *f, const struct route_hop *hop, bool first, struct hop_row *row,
                     char link[16], const char **ret_label)
{
    const struct node *n = &f->node[hop->node];
    port_id out = hop->out != 0 ? fabric_port_at(f, n, hop->out) : PORT_NONE;
    *row = (struct hop_row){.guid = n->guid,
                            .name = fabric_desc(f, n),
                            .in = first ? NO_INT : hop->in,
                            .out = hop->out != 0 ? hop->out : NO_INT};
    *ret_label = NULL;
    if (port_valid(out)) {
        row->link = link_word(&fabric_port(f, out)->a, link, 16);
        *ret_label = fabric_port(f, out)->label ? fabric_label(f, fabric_port(f, out)) : NULL;
    }
}

static void answer_path(struct request *r, const struct view *v, port_id from, port_id to, uint16_t lid)
{
    const struct fabric *f = v->f;
    struct route_hop hop[ROUTE_MAX_HOPS];
    struct hop_row row[ROUTE_MAX_HOPS];
    char link[ROUTE_MAX_HOPS][16], error[700];
    struct route_end a, z;
    uint32_t n = 0;
    struct err e = {0};
    struct buf text = {0};
    const char *label;

    fill_end(f, from, &a);
    fill_end(f, to, &z);
    int rc = route_trace(f, view_tables(v), from, lid, hop, &n, &e);
    buf_printf(&text, "from %s, LID %lld, to %s, LID %u\n", a.name, (long long)a.lid, z.name, lid);
    if (z.lmc > 0)
        buf_printf(&text, "one of %u ways: to LIDs %lld to %lld\n", 1u << z.lmc, (long long)z.lid,
                   (long long)z.lid + (1 << z.lmc) - 1);
    for (uint32_t i = 0; i < n; i++) {
        fill_hop(f, &hop[i], i == 0, &row[i], link[i], &label);
        hop_text(&text, i, &row[i], label);
    }
    err_str(&e, error, sizeof(error));
    if (rc != 0)
        buf_printf(&text, "not reached: %s\n", error);
    answer_struct(r, 200, &schema_route,
                  &(struct route_row){.from = &a,
                                      .to = &z,
                                      .lid = lid,
                                      .reached = rc == 0,
                                      .hops = {row, n},
                                      .error = rc != 0 ? error : NULL,
                                      .text = text.data});
    buf_done(&text);
}

bool route_ends(struct request *r, const struct view *v, port_id *from, port_id *to, uint16_t *ret_lid)
{
    if (view_tables(v) == NULL) {
        answer_problem(r, 409,
                       "fabric %s has no routes in force: it is a file that nothing manages; POST to "
                       "route-computations computes routes for it",
                       v->src->name);
        return false;
    }
    if (!find_end(r, v->f, "from", from) || !find_end(r, v->f, "to", to))
        return false;
    *ret_lid = lid_meant(query_str(r, "to"), fabric_port(v->f, *to));
    return true;
}

void get_route(struct request *r)
{
    struct view *v = view_of(r);
    port_id from, to;
    uint16_t lid;

    if (v != NULL && route_ends(r, v, &from, &to, &lid))
        answer_path(r, v, from, to, lid);
}
