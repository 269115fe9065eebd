// SPDX-License-Identifier: Apache-2.0
// Multicast groups and who is in them.
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "lib/xalloc.h"
#include "mad/mad.h"
#include "sm/sa.h"

#define MGID_SIZE INET6_ADDRSTRLEN

struct member_row {
    uint64_t port_guid;
    const char *node, *kind;
    int64_t join_state;
    bool proxy, gone;
};
#define MEMBER(f) offsetof(struct member_row, f)
static const struct field member_fields[] = {
    {.name = "port_guid", .type = FIELD_GUID, .at = MEMBER(port_guid), "PortGUID of the member"},
    {.name = "node", .type = FIELD_STR, .at = MEMBER(node), "name of its node", .null = true},
    {.name = "join_state",
     .type = FIELD_INT,
     .at = MEMBER(join_state),
     "bits: 1 full, 2 non-member, 4 send-only non-member, 8 send-only full member"},
    {.name = "proxy", .type = FIELD_BOOL, .at = MEMBER(proxy), "another port joined for it"},
    {.name = "gone", .type = FIELD_BOOL, .at = MEMBER(gone), "its port is not in the fabric now"},
    {0},
};
static const struct schema schema_member = {
    .name = "group_member", "A member of a group", sizeof(struct member_row), member_fields};

struct group_row {
    const char *mgid;
    int64_t mlid, p_key, q_key, flow_label, mtu, sl, tclass, hop_limit, members;
    double gbps;
    bool permanent;
    struct items member;
};
#define GROUP(f) offsetof(struct group_row, f)
#define GROUP_FIELDS                                                                                         \
    {.name = "mgid", .type = FIELD_STR, .at = GROUP(mgid), "its MGID, written as an IPv6 address"},          \
        {.name = "mlid", .type = FIELD_INT, .at = GROUP(mlid), "its MLID"},                                  \
        {.name = "members", .type = FIELD_INT, .at = GROUP(members), "how many members it has"},             \
        {.name = "permanent", .type = FIELD_BOOL, .at = GROUP(permanent), "it exists without members"},      \
        {.name = "p_key", .type = FIELD_INT, .at = GROUP(p_key), "P_Key"},                                   \
        {.name = "q_key", .type = FIELD_INT, .at = GROUP(q_key), "Q_Key"},                                   \
        {.name = "mtu", .type = FIELD_INT, .at = GROUP(mtu), "MTU in bytes"},                                \
        {.name = "gbps", .type = FIELD_NUM, .at = GROUP(gbps), "its rate"},                                  \
        {.name = "sl", .type = FIELD_INT, .at = GROUP(sl), "service level"},                                 \
        {.name = "tclass", .type = FIELD_INT, .at = GROUP(tclass), "traffic class"},                         \
        {.name = "flow_label", .type = FIELD_INT, .at = GROUP(flow_label), "flow label"},                    \
    {                                                                                                        \
        .name = "hop_limit", .type = FIELD_INT, .at = GROUP(hop_limit), "hop limit"                          \
    }

static const struct field group_fields[] = {GROUP_FIELDS, {0}};
const struct schema schema_group = {
    .name = "group", "A multicast group", sizeof(struct group_row), group_fields};
static const struct field detail_fields[] = {
    GROUP_FIELDS,
    {.name = "member", .type = FIELD_LIST, .at = GROUP(member), "its members, by PortGUID", &schema_member},
    {0}};
const struct schema schema_group_detail = {
    .name = "group_detail", "A multicast group and its members", sizeof(struct group_row), detail_fields};

static void fill_group(const struct sm_sa_group *g, struct group_row *row, char mgid[MGID_SIZE])
{
    inet_ntop(AF_INET6, g->mgid, mgid, MGID_SIZE);
    *row = (struct group_row){.mgid = mgid,
                              .mlid = g->mlid,
                              .members = g->members,
                              .permanent = g->permanent,
                              .p_key = g->p_key,
                              .q_key = g->q_key,
                              .mtu = mad_mtu_bytes(g->mtu & 63),
                              .gbps = mad_rate_gbps(g->rate & 63),
                              .sl = g->sl,
                              .tclass = g->tclass,
                              .flow_label = g->flow_label,
                              .hop_limit = g->hop_limit};
}

// --- the list; its cursor is the last MGID given ---

struct walk {
    struct list l;
    uint8_t after[16];
    bool from_start, more;
    uint8_t last[16];
    int64_t total;
};

static void list_group(void *arg, const struct sm_sa_group *g)
{
    struct walk *w = arg;
    struct group_row row;
    char mgid[MGID_SIZE];

    w->total++;
    if (!w->from_start && memcmp(g->mgid, w->after, 16) <= 0)
        return;
    w->more = list_full(&w->l);
    if (w->more)
        return;
    fill_group(g, &row, mgid);
    list_item(&w->l, &row);
    memcpy(w->last, g->mgid, 16);
}

void get_groups(struct request *r)
{
    const struct sm *sm = r->view->src->sm;
    const char *cursor = query_str(r, "cursor");
    struct walk w = {.from_start = cursor == NULL};
    char next[MGID_SIZE];

    if (cursor != NULL && inet_pton(AF_INET6, cursor, w.after) != 1) {
        answer_problem(
            r, 400, "the cursor \"%.60s\" is none of this list; give \"next\" of the answer before", cursor);
        return;
    }
    list_begin(&w.l, r, &schema_group);
    if (sm != NULL)
        sm_sa_groups(sm, list_group, NULL, &w);
    inet_ntop(AF_INET6, w.last, next, sizeof(next));
    list_end(&w.l, w.more ? next : NULL, w.total, NO_INT, wall_now_ns());
}

// --- one ---

struct find {
    uint8_t mgid[16];
    uint16_t mlid; // 0: by MGID
    bool found;
    struct group_row row;
    char text[MGID_SIZE];
    struct request *r;
    struct member_row *member;
    char (*name)[140];
    size_t n;
};

static bool is_it(const struct find *f, const struct sm_sa_group *g)
{
    return f->mlid != 0 ? g->mlid == f->mlid : memcmp(g->mgid, f->mgid, 16) == 0;
}

static void find_group(void *arg, const struct sm_sa_group *g)
{
    struct find *f = arg;
    if (f->found || !is_it(f, g))
        return;
    f->found = true;
    memcpy(f->mgid, g->mgid, 16);
    f->mlid = 0; // several groups may share an MLID: the first one's members are told
    fill_group(g, &f->row, f->text);
    f->member = xcalloc(g->members + 1, sizeof(*f->member));
    f->name = xcalloc(g->members + 1, sizeof(*f->name));
}

static void find_member(void *arg, const struct sm_sa_group *g, const struct sm_sa_member *m)
{
    struct find *f = arg;
    const struct fabric *fabric = f->r->view->f;

    if (!f->found || !is_it(f, g) || f->n == g->members)
        return;
    port_id p = fabric != NULL ? fabric_by_port_guid(fabric, m->port_guid) : PORT_NONE;
    if (port_valid(p))
        fabric_node_name(fabric, fabric_node(fabric, fabric_port(fabric, p)->node), f->name[f->n],
                         sizeof(f->name[0]));
    f->member[f->n] = (struct member_row){.port_guid = m->port_guid,
                                          .node = port_valid(p) ? f->name[f->n] : NULL,
                                          .join_state = m->join_state,
                                          .proxy = m->proxy,
                                          .gone = m->gone};
    f->n++;
}

void get_group(struct request *r)
{
    struct find f = {.r = r};
    char *end;
    unsigned long mlid = strtoul(r->arg, &end, 0);
    bool is_mlid = *r->arg >= '0' && *r->arg <= '9' && *end == 0 && mlid >= 0xc000 && mlid <= 0xfffe;

    if (is_mlid) {
        f.mlid = (uint16_t)mlid;
    } else if (inet_pton(AF_INET6, r->arg, f.mgid) != 1) {
        answer_problem(r, 400,
                       "\"%.60s\" is neither an MGID, written as an IPv6 address such as "
                       "ff12:401b:ffff::ffff:ffff, nor an MLID (0xc000 to 0xfffe)",
                       r->arg);
        return;
    }
    view_fabric(r->view);
    if (r->view->src->sm != NULL)
        sm_sa_groups(r->view->src->sm, find_group, find_member, &f);
    if (f.found) {
        f.row.member = (struct items){f.member, f.n};
        answer_struct(r, 200, &schema_group_detail, &f.row);
    } else {
        answer_problem(r, 404, "there is no such group now: %.60s; %s/fabrics/%s/groups lists them", r->arg,
                       API_BASE, r->view->src->name);
    }
    free(f.member);
    free(f.name);
}
