// SPDX-License-Identifier: Apache-2.0
// Nodes, ports and links of a snapshot. All lists go by (NodeGUID, port number); a cursor is the last pair
// given ("<guid>" or "<guid>.<port>", hexadecimal).
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/adaptive.h"
#include "api/api_priv.h"
#include "api/facts.h"
#include "lib/called.h"
#include "lib/xalloc.h"

// --- rows ---

#define END(f) offsetof(struct end_row, f)
static const struct field end_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = END(guid), "NodeGUID"},
    {.name = "name", .type = FIELD_STR, .at = END(name), "its description; may be empty or repeat"},
    {.name = "port", .type = FIELD_INT, .at = END(port), "port number"},
    {.name = "label",
     .type = FIELD_STR,
     .at = END(label),
     "the connector's label, such as \"1/1/1\"",
     .null = true},
    {0},
};
const struct schema schema_end = {.name = "end", "One end of a link", sizeof(struct end_row), end_fields};
static const struct field peer_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = END(guid), "NodeGUID"},
    {.name = "name", .type = FIELD_STR, .at = END(name), "its description"},
    {.name = "port", .type = FIELD_INT, .at = END(port), "port number"},
    {0},
};
const struct schema schema_peer = {
    .name = "peer", "What a port is connected to", sizeof(struct end_row), peer_fields};

struct port_row {
    uint64_t node_guid, guid;
    const char *node_name, *state, *phys_state, *width, *speed, *link, *excluded, *label;
    int64_t num, lid, lmc, mtu, vls, rail;
    double gbps;
    const struct end_row *peer;
};
#define PORT(f) offsetof(struct port_row, f)
const char *const port_states[] = {"nop", "down", "init", "armed", "active", NULL};
static const char *const phys_states[] = {"sleep",   "polling",        "disabled", "training",
                                          "link-up", "error-recovery", "test",     NULL};
static const struct field port_fields[] = {
    {.name = "node_guid", .type = FIELD_GUID, .at = PORT(node_guid), "NodeGUID of the node it belongs to"},
    {.name = "node_name", .type = FIELD_STR, .at = PORT(node_name), "that node's description"},
    {.name = "num", .type = FIELD_INT, .at = PORT(num), "port number; 0 is a switch's management port"},
    {.name = "guid",
     .type = FIELD_GUID,
     .at = PORT(guid),
     "PortGUID; null for external ports of switches",
     .null = true},
    {.name = "lid", .type = FIELD_INT, .at = PORT(lid), "base LID; null without one", .null = true},
    {.name = "lmc", .type = FIELD_INT, .at = PORT(lmc), "LID mask control: the port has 2^lmc LIDs"},
    {.name = "state", .type = FIELD_STR, .at = PORT(state), "logical state", .name_of = port_states},
    {.name = "phys_state",
     .type = FIELD_STR,
     .at = PORT(phys_state),
     "physical state",
     .null = true,
     .name_of = phys_states},
    {.name = "width", .type = FIELD_STR, .at = PORT(width), "lanes, such as 4x", .null = true},
    {.name = "speed", .type = FIELD_STR, .at = PORT(speed), "such as NDR", .null = true},
    {.name = "link", .type = FIELD_STR, .at = PORT(link), "both, such as 4xNDR", .null = true},
    {.name = "gbps", .type = FIELD_NUM, .at = PORT(gbps), "nominal rate", .null = true},
    {.name = "mtu", .type = FIELD_INT, .at = PORT(mtu), "active MTU in bytes", .null = true},
    {.name = "vls", .type = FIELD_INT, .at = PORT(vls), "operational data VLs", .null = true},
    {.name = "rail", .type = FIELD_INT, .at = PORT(rail), "rail of a host's port", .null = true},
    {.name = "excluded",
     .type = FIELD_STR,
     .at = PORT(excluded),
     "why a port with a cable takes no part",
     .null = true},
    {.name = "label",
     .type = FIELD_STR,
     .at = PORT(label),
     "the connector's label, such as \"1/1/1\"",
     .null = true},
    {.name = "peer",
     .type = FIELD_OBJ,
     .at = PORT(peer),
     "what it is connected to",
     &schema_peer,
     .null = true},
    {0},
};
const struct schema schema_port = {.name = "port", "A port", sizeof(struct port_row), port_fields};

struct node_row {
    uint64_t guid, sys_guid;
    const char *name, *type, *role, *adaptive;
    int64_t tier, su, rail, plane, host, lid, num_ports, ports_up, vendor_id, device_id;
    struct items ports;
};
#define NODE(f) offsetof(struct node_row, f)
#define NODE_FIELDS                                                                                          \
    {.name = "guid", .type = FIELD_GUID, .at = NODE(guid), "NodeGUID: who it is"},                           \
        {.name = "sys_guid", .type = FIELD_GUID, .at = NODE(sys_guid), "SystemImageGUID", .null = true},     \
        {.name = "name",                                                                                     \
         .type = FIELD_STR,                                                                                  \
         .at = NODE(name),                                                                                   \
         "its description: a label that may be empty or repeat"},                                            \
        {.name = "type",                                                                                     \
         .type = FIELD_STR,                                                                                  \
         .at = NODE(type),                                                                                   \
         "what it says it is",                                                                               \
         .name_of = node_type_names},                                                                        \
        {.name = "role",                                                                                     \
         .type = FIELD_STR,                                                                                  \
         .at = NODE(role),                                                                                   \
         "what it is in this fabric",                                                                        \
         .name_of = node_role_names},                                                                        \
        {.name = "tier",                                                                                     \
         .type = FIELD_INT,                                                                                  \
         .at = NODE(tier),                                                                                   \
         "leaf 0, spine 1, core 2; null for end nodes",                                                      \
         .null = true},                                                                                      \
        {.name = "su", .type = FIELD_INT, .at = NODE(su), "scalable unit", .null = true},                    \
        {.name = "rail",                                                                                     \
         .type = FIELD_INT,                                                                                  \
         .at = NODE(rail),                                                                                   \
         "rail of a leaf or of a single-port adapter",                                                       \
         .null = true},                                                                                      \
        {.name = "plane",                                                                                    \
         .type = FIELD_INT,                                                                                  \
         .at = NODE(plane),                                                                                  \
         "connected part of the fabric; 0 is the manager's"},                                                \
        {.name = "host",                                                                                     \
         .type = FIELD_INT,                                                                                  \
         .at = NODE(host),                                                                                   \
         "number shared by the adapters of one host",                                                        \
         .null = true},                                                                                      \
        {.name = "lid",                                                                                      \
         .type = FIELD_INT,                                                                                  \
         .at = NODE(lid),                                                                                    \
         "base LID of a switch or of its first port that has one",                                           \
         .null = true},                                                                                      \
        {.name = "num_ports", .type = FIELD_INT, .at = NODE(num_ports), "external ports"},                   \
        {.name = "ports_up",                                                                                 \
         .type = FIELD_INT,                                                                                  \
         .at = NODE(ports_up),                                                                               \
         "external ports with a link (Initialize or better)"},                                               \
        {.name = "adaptive",                                                                                 \
         .type = FIELD_STR,                                                                                  \
         .at = NODE(adaptive),                                                                               \
         "adaptive routing of a switch, as in adaptive-routing; null when it was not asked",                 \
         .name_of = adaptive_state_names,                                                                    \
         .null = true},                                                                                      \
        {.name = "vendor_id", .type = FIELD_INT, .at = NODE(vendor_id), "NodeInfo.VendorID"},                \
    {                                                                                                        \
        .name = "device_id", .type = FIELD_INT, .at = NODE(device_id), "NodeInfo.DeviceID"                   \
    }
static const struct field node_fields[] = {NODE_FIELDS, {0}};
const struct schema schema_node = {
    .name = "node", "A switch, an adapter or a router", sizeof(struct node_row), node_fields};
static const struct field node_detail_fields[] = {
    NODE_FIELDS,
    {.name = "ports", .type = FIELD_LIST, .at = NODE(ports), "all its ports", &schema_port},
    {0}};
const struct schema schema_node_detail = {
    .name = "node_detail", "A node with its ports", sizeof(struct node_row), node_detail_fields};

struct link_row {
    const struct end_row *a, *z;
    const char *link, *kind, *state;
    double gbps;
};
#define LINK(f) offsetof(struct link_row, f)
static const struct field link_fields[] = {
    {.name = "a",
     .type = FIELD_OBJ,
     .at = LINK(a),
     "the lower end: a host's adapter, or the switch nearer to the hosts",
     &schema_end},
    {.name = "z", .type = FIELD_OBJ, .at = LINK(z), "the other end", &schema_end},
    {.name = "link", .type = FIELD_STR, .at = LINK(link), "width and speed, such as 4xNDR", .null = true},
    {.name = "gbps", .type = FIELD_NUM, .at = LINK(gbps), "nominal rate", .null = true},
    {.name = "kind",
     .type = FIELD_STR,
     .at = LINK(kind),
     "host: to an adapter or router; trunk: between switches",
     .name_of = link_kinds},
    {.name = "state",
     .type = FIELD_STR,
     .at = LINK(state),
     "the lower of its ends' states",
     .name_of = port_states},
    {0},
};
const struct schema schema_link = {
    .name = "link", "A cable between two ports", sizeof(struct link_row), link_fields};

// --- filling them ---

static uint16_t node_lid(const struct fabric *f, const struct node *n)
{
    unsigned num = n->type == NODE_SWITCH ? 1 : n->num_ports;
    for (unsigned i = 0; i < num; i++)
        if (f->port[n->first_port + i].a.lid != 0)
            return f->port[n->first_port + i].a.lid;
    return 0;
}

static unsigned ports_up(const struct fabric *f, const struct node *n)
{
    const struct port *p = &f->port[n->first_port + (n->type == NODE_SWITCH ? 1 : 0)];
    unsigned up = 0;
    for (unsigned i = 0; i < n->num_ports; i++)
        up += p[i].a.state >= PORT_INIT || port_valid(p[i].peer);
    return up;
}

static void fill_node(const struct fabric *f, const struct node *n, struct node_row *row)
{
    *row = (struct node_row){
        .guid = n->guid,
        .sys_guid = n->sys_guid,
        .name = fabric_desc(f, n),
        .type = node_type_word(n->type),
        .role = node_role_name((enum node_role)n->role),
        .tier = id_or_null(n->tier, TIER_NONE),
        .su = id_or_null(n->su, SU_NONE),
        .rail = id_or_null(n->rail, RAIL_NONE),
        .plane = n->plane,
        .host = id_or_null(n->host, ID_NONE),
        .lid = id_or_null(node_lid(f, n), 0),
        .num_ports = n->num_ports,
        .ports_up = ports_up(f, n),
        .vendor_id = n->vendor_id,
        .device_id = n->device_id,
    };
}

static void fill_end(const struct fabric *f, const struct port *p, struct end_row *row)
{
    const struct node *n = fabric_node(f, p->node);
    *row = (struct end_row){.guid = n->guid,
                            .name = fabric_desc(f, n),
                            .port = p->num,
                            .label = p->label ? fabric_label(f, p) : NULL};
}

struct port_space { // what a row points to
    struct end_row peer;
    char link[16], width[8];
};

static void fill_port(const struct fabric *f, const struct port *p, struct port_row *row,
                      struct port_space *s)
{
    const struct node *n = fabric_node(f, p->node);
    const struct port_attrs *a = &p->a;
    uint32_t mbps = port_rate_mbps(a);
    static const int64_t vls[] = {NO_INT, 1, 2, 4, 8, 15};

    *row = (struct port_row){
        .node_guid = n->guid,
        .node_name = fabric_desc(f, n),
        .num = p->num,
        .guid = p->guid,
        .lid = id_or_null(a->lid, 0),
        .lmc = a->lmc,
        .state = port_state_name(a->state <= PORT_ACTIVE ? (enum port_state)a->state : PORT_STATE_NOP),
        .phys_state = a->phys_state >= 1 && a->phys_state <= 7 ? phys_states[a->phys_state - 1] : NULL,
        .width = width_word(a, s->width, sizeof(s->width)),
        .speed = speed_word(a),
        .link = link_word(a, s->link, sizeof(s->link)),
        .gbps = mbps ? mbps / 1000.0 : (double)NAN,
        .mtu = a->mtu_active >= 1 && a->mtu_active <= 5 ? 128LL << a->mtu_active : NO_INT,
        .vls = a->vl_oper < 6 ? vls[a->vl_oper] : NO_INT,
        .rail = id_or_null(p->rail, RAIL_NONE),
        .excluded = p->excluded ? port_excluded_name((enum port_excluded)p->excluded) : NULL,
        .label = p->label ? fabric_label(f, p) : NULL,
    };
    if (port_valid(p->peer)) {
        fill_end(f, fabric_port(f, p->peer), &s->peer);
        row->peer = &s->peer;
    }
}

// --- cursors ---

struct position {
    uint64_t guid;
    unsigned num;
    bool given;
};

static bool parse_cursor(struct request *r, bool with_port, struct position *ret)
{
    const char *s = query_str(r, "cursor");
    char *end;
    *ret = (struct position){0};
    if (s == NULL)
        return true;
    errno = 0;
    ret->guid = strtoull(s, &end, 16);
    ret->given = true;
    if (end != s && errno == 0 && with_port && *end == '.') {
        ret->num = (unsigned)strtoul(end + 1, &end, 16);
        if (*end == 0 && ret->num < 256)
            return true;
    } else if (end != s && errno == 0 && !with_port && *end == 0) {
        return true;
    }
    answer_problem(r, 400, "the cursor \"%.60s\" is none of this list; give \"next\" of the answer before",
                   s);
    return false;
}

// What a focus asks, with the counters of the fabric as they are in this turn of the loop.
struct asking {
    struct api *a;
    const char *fabric;
    struct sieve *focus; // NULL: all are wanted
    struct tele_view w;
    bool counted;
};

static bool node_named(const void *row, const void *end, const char *word)
{
    const struct node_row *n = row;
    struct called x = {n->guid, n->name, -1, n->rail};
    return end != NULL ? place_named(end, word) : called_node(&x, word);
}

static const struct sieve_rows node_sieve = {.row = &schema_node,
                                             .end = &schema_facts,
                                             .named = node_named,
                                             .part = facts_part},
                               // What a focus calls so is meant: guid is the node's, speed is in Gb/s.
    port_sieve = {.row = &schema_port,
                  .end = &schema_facts,
                  .end_first = UINT_MAX,
                  .named = place_is_named,
                  .part = facts_part},
                               link_sieve = {.row = &schema_link,
                                             .end = &schema_facts,
                                             .end_first = PLACE_NUM,
                                             .named = place_is_named,
                                             .part = facts_part};

static void asking_begin(struct asking *k, struct request *r, struct view *v, struct sieve *focus)
{
    *k = (struct asking){.a = r->api, .fabric = v->src->name, .focus = focus};
    k->counted = focus != NULL && sieve_parts(focus) != 0 && tele_view_at(r->api, v, &k->w);
}

static void asking_end(struct asking *k)
{
    if (k->counted)
        tele_view_done(&k->w);
}

static bool port_wanted(struct asking *k, const void *row, const struct fabric *f, const struct port *p)
{
    return facts_wanted(k->a, k->fabric, k->counted ? &k->w : NULL, k->focus, row,
                        fabric_node(f, p->node)->guid, p->num);
}

// By one of its ports; of a switch's port 0 nothing is counted.
static bool node_wanted(struct asking *k, const void *row, const struct fabric *f, const struct node *n)
{
    bool counted = k->focus != NULL && (sieve_parts(k->focus) & FACTS_COUNTED);
    unsigned first = n->type == NODE_SWITCH && counted ? 1 : 0;
    unsigned num = n->num_ports + (n->type == NODE_SWITCH ? 1u : 0u);
    bool hit = num <= first && sieve_has(k->focus, row);
    for (unsigned i = first; i < num && !hit; i++)
        hit = port_wanted(k, row, f, &f->port[n->first_port + i]);
    return hit;
}

// Where nothing is collected nobody knows: that nothing matches would be no answer.
static bool take_focus(struct request *r, const struct sieve_rows *rows, struct sieve **ret)
{
    struct tele_view w;
    if (!query_focus_of(r, rows, NULL, ret))
        return false;
    if (*ret == NULL || !(sieve_parts(*ret) & FACTS_COUNTED) || tele_view_of(r, &w))
        return true;
    sieve_free(*ret);
    return false;
}

// What all three lists are walked by, a slice a turn: a snapshot that stays while others come.
struct walk {
    struct slices s;
    struct view *v;
    const struct fabric *f;
    uint32_t *order; // by NodeGUID
    struct list l;
    struct sieve *focus;
    struct position after, last;
    uint32_t i, end;                                   // of order
    unsigned k;                                        // port of its node
    bool (*put)(struct walk *w, const struct port *p); // of ports and links; false: the page is full
    uint32_t looked;
    bool more;
    int64_t total; // NO_INT: not known
    struct asking ask;
};

static void walk_init(struct walk *w, struct request *r, struct view *v, const struct schema *schema)
{
    size_t n = v->f->num_nodes;
    w->v = v;
    w->f = fabric_ref(v->f);
    w->order = xcalloc(n + 1, sizeof(*w->order));
    memcpy(w->order, view_order(v), n * sizeof(*w->order));
    w->end = v->f->num_nodes;
    list_begin(&w->l, r, schema);
}

static void walk_free(struct slices *s)
{
    struct walk *w = (struct walk *)s;
    fabric_unref(w->f);
    free(w->order);
    sieve_free(w->focus);
    free(w);
}

static void end_at(struct walk *w, bool with_port)
{
    struct list *l = &w->l;
    const struct position *last = &w->last;
    char next[40];
    if (with_port)
        snprintf(next, sizeof(next), "%llx.%x", (unsigned long long)last->guid, last->num);
    else
        snprintf(next, sizeof(next), "%llx", (unsigned long long)last->guid);
    list_end(l, w->more ? next : NULL, w->total, (int64_t)w->f->generation, view_sampled(l->r->api, w->v));
}

// --- nodes ---

#define LOOKED_MAX 100000 // rows that an answer looks at with a focus

struct node_filter {
    const char *type, *role, *name;
};
struct node_walk {
    struct walk w;
    struct node_filter want;
    bool all;
};

static bool node_passes(const struct fabric *f, const struct node *n, const struct node_filter *w)
{
    return (w->type == NULL || strcmp(node_type_word(n->type), w->type) == 0) &&
           (w->role == NULL || strcmp(node_role_name((enum node_role)n->role), w->role) == 0) &&
           (w->name == NULL || strcasestr(fabric_desc(f, n), w->name) != NULL);
}

// False: the slice is over.
static bool walk_nodes(struct node_walk *k)
{
    struct walk *w = &k->w;
    struct node_row row;

    for (; w->i < w->end && !(w->more && k->all); w->i++) {
        const struct node *n = &w->f->node[w->order[w->i]];
        if (slice_over(&w->s))
            return false;
        if (!k->all && !node_passes(w->f, n, &k->want))
            continue;
        fill_node(w->f, n, &row);
        row.adaptive = adaptive_state(w->v->src->sm, n);
        if (!node_wanted(&w->ask, &row, w->f, n))
            continue;
        w->total++;
        if (w->after.given && n->guid <= w->after.guid)
            continue;
        w->more = list_full(&w->l);
        if (w->more)
            continue;
        list_item(&w->l, &row);
        w->last.guid = n->guid;
    }
    return true;
}

static bool nodes_step(struct slices *s)
{
    struct node_walk *k = (struct node_walk *)s;
    struct walk *w = &k->w;
    asking_begin(&w->ask, s->r, w->v, w->focus);
    bool all = walk_nodes(k);
    asking_end(&w->ask);
    if (!all)
        return false;
    if (k->all)
        w->total = w->f->num_nodes;
    end_at(w, false);
    return true;
}

void get_nodes(struct request *r)
{
    struct view *v = view_of(r);
    struct node_filter want = {query_str(r, "type"), query_str(r, "role"), query_str(r, "name")};
    struct sieve *focus;
    struct position after;

    if (v == NULL || !parse_cursor(r, false, &after) || !take_focus(r, &node_sieve, &focus))
        return;
    struct node_walk *k = xcalloc(1, sizeof(*k));
    walk_init(&k->w, r, v, &schema_node);
    k->w.s.step = nodes_step;
    k->w.s.free = walk_free;
    k->w.focus = focus;
    k->w.after = after;
    k->want = want;
    k->all = want.type == NULL && want.role == NULL && want.name == NULL && focus == NULL;
    k->w.i = k->all && after.given ? view_order_find(v, after.guid) : 0;
    slices_run(r, &k->w.s);
}

void get_node(struct request *r)
{
    struct view *v = view_of(r);
    struct place at;
    struct err e = {0};
    struct node_row row;
    int rc;

    if (v == NULL)
        return;
    if ((rc = resolve(v->f, r->arg, 0, &at, &e)) != 0) {
        answer_unresolved(r, "node", rc, &e);
        return;
    }
    unsigned n = at.node->num_ports + (at.node->type == NODE_SWITCH ? 1u : 0u);
    struct port_row *port = xcalloc(n + 1, sizeof(*port));
    struct port_space *space = xcalloc(n + 1, sizeof(*space));
    for (unsigned i = 0; i < n; i++)
        fill_port(v->f, &v->f->port[at.node->first_port + i], &port[i], &space[i]);
    fill_node(v->f, at.node, &row);
    row.adaptive = adaptive_state(v->src->sm, at.node);
    row.ports = (struct items){port, n};
    answer_struct(r, 200, &schema_node_detail, &row);
    free(port);
    free(space);
}

// --- ports and links ---

// Calls put() for the ports of the nodes behind the position, in order, until it returns false. False: the
// slice is over.
static bool walk_ports(struct walk *w)
{
    for (; w->i < w->end; w->i++, w->k = 0) {
        const struct node *n = &w->f->node[w->order[w->i]];
        unsigned num = n->num_ports + (n->type == NODE_SWITCH ? 1u : 0u);
        for (; w->k < num; w->k++) {
            const struct port *p = &w->f->port[n->first_port + w->k];
            const struct position *after = &w->after;
            if (after->given && (n->guid < after->guid || (n->guid == after->guid && p->num <= after->num)))
                continue;
            if (slice_over(&w->s))
                return false;
            if (!w->put(w, p))
                return true;
        }
    }
    return true;
}

static bool walk_full(struct walk *w, const struct port *p)
{
    if (list_full(&w->l) || (w->focus != NULL && w->looked++ == LOOKED_MAX)) {
        w->more = true;
        return true;
    }
    w->last = (struct position){.guid = fabric_node(w->f, p->node)->guid, .num = p->num};
    return false;
}

static bool put_port(struct walk *w, const struct port *p)
{
    struct port_row row;
    struct port_space space;
    if (walk_full(w, p))
        return false;
    fill_port(w->f, p, &row, &space);
    if (port_wanted(&w->ask, &row, w->f, p))
        list_item(&w->l, &row);
    return true;
}

static bool walk_step(struct slices *s)
{
    struct walk *w = (struct walk *)s;
    asking_begin(&w->ask, s->r, w->v, w->focus);
    bool all = walk_ports(w);
    asking_end(&w->ask);
    if (!all)
        return false;
    end_at(w, true);
    return true;
}

void get_ports(struct request *r)
{
    struct view *v = view_of(r);
    const char *node = query_str(r, "node");
    struct position after;
    struct sieve *focus;
    struct place at = {0};
    struct err e = {0};
    int rc;

    if (v == NULL || !parse_cursor(r, true, &after))
        return;
    if (node != NULL && (rc = resolve(v->f, node, 0, &at, &e)) != 0) {
        answer_unresolved(r, "node", rc, &e);
        return;
    }
    if (!take_focus(r, &port_sieve, &focus))
        return;
    struct walk *w = xcalloc(1, sizeof(*w));
    walk_init(w, r, v, &schema_port);
    w->s.step = walk_step;
    w->put = put_port;
    w->s.free = walk_free;
    w->focus = focus;
    w->after = after;
    w->total = focus != NULL ? NO_INT : v->f->num_ports;
    if (at.node != NULL) {
        w->i = view_order_find(v, at.node->guid);
        w->end = w->i + 1;
        w->total = focus != NULL ? NO_INT : (int64_t)at.node->num_ports + (at.node->type == NODE_SWITCH);
    } else if (after.given) {
        w->i = view_order_find(v, after.guid);
    }
    slices_run(r, &w->s);
}

// Whether p is the lower end of its link: an end node under a switch, the lower tier, else the smaller GUID.
static bool is_a_end(const struct fabric *f, const struct port *p, const struct port *z)
{
    const struct node *a = fabric_node(f, p->node), *b = fabric_node(f, z->node);
    bool a_sw = a->type == NODE_SWITCH, b_sw = b->type == NODE_SWITCH;
    if (a_sw != b_sw)
        return b_sw;
    if (a_sw && a->tier != b->tier)
        return a->tier < b->tier;
    return a->guid != b->guid ? a->guid < b->guid : p->num < z->num;
}

struct link_space {
    struct end_row a, z;
    char link[16];
};

// Of the cable between p, its lower end, and q. It stays where it is: the row points into it.
static void fill_link(const struct fabric *f, const struct port *p, const struct port *q,
                      enum port_state state, struct link_row *row, struct link_space *space)
{
    uint32_t mbps = port_rate_mbps(&p->a);
    bool trunk = fabric_node(f, p->node)->type == NODE_SWITCH && fabric_node(f, q->node)->type == NODE_SWITCH;
    fill_end(f, p, &space->a);
    fill_end(f, q, &space->z);
    *row = (struct link_row){.a = &space->a,
                             .z = &space->z,
                             .link = link_word(&p->a, space->link, sizeof(space->link)),
                             .gbps = mbps ? mbps / 1000.0 : (double)NAN,
                             .kind = link_kinds[trunk],
                             .state = port_state_name(state)};
}

static bool put_link(struct walk *w, const struct port *p)
{
    struct link_row row;
    struct link_space space;
    if (!port_valid(p->peer))
        return true;
    const struct port *q = fabric_port(w->f, p->peer);
    if (!is_a_end(w->f, p, q))
        return true;
    if (walk_full(w, p))
        return false;
    uint8_t state = p->a.state < q->a.state ? p->a.state : q->a.state;
    fill_link(w->f, p, q, state <= PORT_ACTIVE ? (enum port_state)state : PORT_STATE_NOP, &row, &space);
    if (port_wanted(&w->ask, &row, w->f, p) || port_wanted(&w->ask, &row, w->f, q))
        list_item(&w->l, &row);
    return true;
}

// --- cables of the blueprint that are away ---

// Whether the lower end's port has a cable now, be it another.
static bool has_cable(const struct fabric *f, const struct fabric *known, const struct port *p)
{
    const struct node *n = fabric_by_guid(f, fabric_node(known, p->node)->guid);
    port_id id = n != NULL ? fabric_port_at(f, n, p->num) : PORT_NONE;
    return port_valid(id) && port_valid(fabric_port(f, id)->peer);
}

struct away {
    struct slices s;
    struct view *v;
    const struct fabric *f, *known; // references
    struct list l;
    struct sieve *focus;
    struct asking ask;
    uint64_t i; // port of known
};

static void put_away(struct away *w, const struct port *p)
{
    struct link_row row;
    struct link_space space;
    const struct fabric *b = w->known;
    const struct port *q = port_valid(p->peer) ? fabric_port(b, p->peer) : NULL;
    if (q == NULL || !is_a_end(b, p, q) || has_cable(w->f, b, p))
        return;
    fill_link(b, p, q, PORT_DOWN, &row, &space);
    if (port_wanted(&w->ask, &row, b, p) || port_wanted(&w->ask, &row, b, q))
        list_item(&w->l, &row);
}

static bool away_step(struct slices *s)
{
    struct away *w = (struct away *)s;
    char next[24];
    uint64_t n = w->known != NULL ? w->known->num_ports : 0;
    asking_begin(&w->ask, s->r, w->v, w->focus);
    for (; w->i < n && !list_full(&w->l) && !slice_over(s); w->i++)
        put_away(w, &w->known->port[w->i]);
    asking_end(&w->ask);
    if (w->i < n && !list_full(&w->l))
        return false;
    list_end(&w->l, w->i < n ? number_text(w->i, next) : NULL, NO_INT, (int64_t)w->f->generation,
             view_sampled(s->r->api, w->v));
    return true;
}

static void away_free(struct slices *s)
{
    struct away *w = (struct away *)s;
    fabric_unref(w->f);
    if (w->known != NULL)
        fabric_unref(w->known);
    sieve_free(w->focus);
    free(w);
}

static void get_away(struct request *r, struct view *v)
{
    const struct fabric *known = view_known(v);
    struct sieve *focus;
    uint64_t i;
    if (!cursor_number(r, &i) || !take_focus(r, &link_sieve, &focus))
        return;
    struct away *w = xcalloc(1, sizeof(*w));
    w->s.step = away_step;
    w->s.free = away_free;
    w->v = v;
    w->f = fabric_ref(v->f);
    w->known = known != NULL ? fabric_ref(known) : NULL;
    w->focus = focus;
    w->i = i;
    list_begin(&w->l, r, &schema_link);
    slices_run(r, &w->s);
}

void get_links(struct request *r)
{
    struct view *v = view_of(r);
    struct position after;
    struct sieve *focus;

    if (v != NULL && query_bool(r, "away")) {
        get_away(r, v);
        return;
    }
    if (v == NULL || !parse_cursor(r, true, &after) || !take_focus(r, &link_sieve, &focus))
        return;
    struct walk *w = xcalloc(1, sizeof(*w));
    walk_init(w, r, v, &schema_link);
    w->s.step = walk_step;
    w->put = put_link;
    w->s.free = walk_free;
    w->focus = focus;
    w->after = after;
    w->total = focus != NULL ? NO_INT : (int64_t)v->f->num_links;
    w->i = after.given ? view_order_find(v, after.guid) : 0;
    slices_run(r, &w->s);
}
