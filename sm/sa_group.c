// SPDX-License-Identifier: Apache-2.0
// Multicast groups and their members: who is in, which MLID a group has, and what survives in the database.
//
// Groups stand in order of MGID, members in order of PortGUID. The IPoIB broadcast group of the default
// partition exists from the start and is never deleted. IPv6 solicited-node groups, one per host, would use
// up the MLIDs: they share 16 by the last digit of the address. What changes is written in the background a
// little later; a member whose port has vanished is dropped ten minutes after.
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/sa_priv.h"

#define MLIDS (MAD_LID_MULTICAST_MAX - MAD_LID_MULTICAST_MIN + 1)
#define SAVE_DELAY (200 * MONO_MS)
#define KEEPS 0x9 // JoinStates that keep a group: full member, send-only full member
#define PREFIX_SOLICITED 13

static const uint8_t broadcast[16] = {0xff, 0x12, 0x40, 0x1b, 0xff, 0xff, 0,    0,
                                      0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff};
static const uint8_t solicited[16] = {0xff, 0x10, 0x60, 0x1b, 0, 0, 0, 0, 0, 0, 0, 0x01, 0xff};

// --- groups ---

uint32_t sa_group_lower(const struct sm_sa *sa, const uint8_t mgid[16])
{
    uint32_t lo = 0, hi = sa->num_groups;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (memcmp(sa->group[mid]->mgid, mgid, 16) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct sa_group *sa_group_find(const struct sm_sa *sa, const uint8_t mgid[16])
{
    uint32_t i = sa_group_lower(sa, mgid);
    return i < sa->num_groups && memcmp(sa->group[i]->mgid, mgid, 16) == 0 ? sa->group[i] : NULL;
}

static bool is_solicited(const uint8_t mgid[16])
{
    return mgid[0] == 0xff && (mgid[1] & 0xf0) == 0x10 && memcmp(mgid + 2, solicited + 2, 2) == 0 &&
           memcmp(mgid + 6, solicited + 6, PREFIX_SOLICITED - 6) == 0;
}

// That of a solicited-node group with the same scope, partition and last digit; 0 when there is none.
static uint16_t shared_mlid(const struct sm_sa *sa, const uint8_t mgid[16])
{
    uint8_t from[16] = {0};

    if (!is_solicited(mgid))
        return 0;
    memcpy(from, mgid, PREFIX_SOLICITED);
    for (uint32_t i = sa_group_lower(sa, from); i < sa->num_groups; i++) {
        const struct sa_group *g = sa->group[i];
        if (memcmp(g->mgid, mgid, PREFIX_SOLICITED) != 0)
            break;
        if ((g->mgid[15] & 0xf) == (mgid[15] & 0xf))
            return g->rec.mlid;
    }
    return 0;
}

static uint16_t free_mlid(const struct sm_sa *sa)
{
    uint16_t max = sm_mcast_mlid_max(sa->sm);
    for (uint32_t m = MAD_LID_MULTICAST_MIN; m <= max; m++)
        if (sa->mlid_groups[m - MAD_LID_MULTICAST_MIN] == 0)
            return (uint16_t)m;
    return 0;
}

static struct sa_group *insert(struct sm_sa *sa, const struct mad_mc_member_record *rec)
{
    struct sa_group *g = xcalloc(1, sizeof(*g));
    uint32_t i = sa_group_lower(sa, rec->mgid);

    if (sa->num_groups == sa->cap_groups) {
        sa->cap_groups = sa->cap_groups ? sa->cap_groups * 2 : 64;
        sa->group = xreallocarray(sa->group, sa->cap_groups, sizeof(struct sa_group *));
    }
    memmove(&sa->group[i + 1], &sa->group[i], (sa->num_groups++ - i) * sizeof(struct sa_group *));
    sa->group[i] = g;
    memcpy(g->mgid, rec->mgid, 16);
    g->rec = *rec;
    memset(g->rec.port_gid, 0, 16);
    g->rec.join_state = 0;
    g->rec.proxy_join = 0;
    g->rec.mtu_selector = g->rec.rate_selector = g->rec.packet_life_time_selector = 2; // exactly
    g->rec.scope = rec->mgid[1] & 0xf;
    g->permanent = memcmp(g->mgid, broadcast, 16) == 0;
    sa->mlid_groups[rec->mlid - MAD_LID_MULTICAST_MIN]++;
    return g;
}

struct sa_group *sa_group_add(struct sm_sa *sa, const struct mad_mc_member_record *rec, uint16_t *ret_status)
{
    struct mad_mc_member_record r = *rec;

    r.mlid = shared_mlid(sa, rec->mgid);
    if (r.mlid == 0)
        r.mlid = free_mlid(sa);
    if (r.mlid == 0 || sa->num_groups >= SA_GROUPS_MAX) {
        *ret_status = MAD_SA_NO_RESOURCES;
        return NULL;
    }
    sa_groups_changed(sa);
    return insert(sa, &r);
}

static void forget(struct sm_sa *sa, const uint8_t mgid[16], uint64_t port_guid)
{
    if (sa->num_forgotten == sa->cap_forgotten) {
        sa->cap_forgotten = sa->cap_forgotten ? sa->cap_forgotten * 2 : 64;
        sa->forgotten = xreallocarray(sa->forgotten, sa->cap_forgotten, sizeof(*sa->forgotten));
    }
    struct db_group *f = &sa->forgotten[sa->num_forgotten++];
    memset(f, 0, sizeof(*f));
    memcpy(f->mgid, mgid, 16);
    f->port_guid = port_guid;
    sa_groups_changed(sa);
}

static void group_remove(struct sm_sa *sa, struct sa_group *g)
{
    uint32_t i = sa_group_lower(sa, g->mgid);

    while (g->num > 0)
        sa_member_remove(sa, g, &g->member[g->num - 1]);
    sa->mlid_groups[g->rec.mlid - MAD_LID_MULTICAST_MIN]--;
    if (g->stored)
        forget(sa, g->mgid, 0);
    memmove(&sa->group[i], &sa->group[i + 1], (--sa->num_groups - i) * sizeof(struct sa_group *));
    free(g->member);
    free(g);
}

void sa_group_settle(struct sm_sa *sa, struct sa_group *g)
{
    if (g->permanent)
        return;
    for (uint32_t i = 0; i < g->num; i++)
        if (g->member[i].join_state & KEEPS)
            return;
    group_remove(sa, g);
}

void sa_free_mgid(struct sm_sa *sa, uint8_t scope, uint8_t ret[16])
{
    uint8_t mgid[16] = {0xff, (uint8_t)(0x10 | scope), 0xa0, 0x1b};
    sa_put_gid(0, sa->sm->own.port_guid, mgid); // the prefix is ours alone: 4.1.1
    mgid[0] = 0xff;
    mgid[1] = (uint8_t)(0x10 | scope);
    mgid[2] = 0xa0;
    mgid[3] = 0x1b;
    for (uint32_t n = 1; n < UINT32_MAX; n++) {
        for (int i = 0; i < 4; i++)
            mgid[4 + i] = (uint8_t)(n >> (24 - 8 * i));
        if (sa_group_find(sa, mgid) == NULL)
            break;
    }
    memcpy(ret, mgid, 16);
}

// --- members ---

static uint32_t member_lower(const struct sa_group *g, uint64_t guid)
{
    uint32_t lo = 0, hi = g->num;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (g->member[mid].port_guid < guid)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

struct sa_member *sa_member_find(const struct sa_group *g, uint64_t port_guid)
{
    uint32_t i = member_lower(g, port_guid);
    return i < g->num && g->member[i].port_guid == port_guid ? &g->member[i] : NULL;
}

struct sa_member *sa_member_add(struct sm_sa *sa, struct sa_group *g, uint64_t port_guid)
{
    uint32_t i = member_lower(g, port_guid);

    if (g->num == g->cap) {
        g->cap = g->cap ? g->cap * 2 : 4;
        g->member = xreallocarray(g->member, g->cap, sizeof(*g->member));
    }
    memmove(&g->member[i + 1], &g->member[i], (g->num++ - i) * sizeof(*g->member));
    g->member[i] = (struct sa_member){.port_guid = port_guid, .dirty = true};
    sa->num_members++;
    sa_groups_changed(sa);
    return &g->member[i];
}

void sa_member_remove(struct sm_sa *sa, struct sa_group *g, struct sa_member *m)
{
    if (m->stored)
        forget(sa, g->mgid, m->port_guid);
    uint32_t i = (uint32_t)(m - g->member);
    memmove(&g->member[i], &g->member[i + 1], (--g->num - i) * sizeof(*g->member));
    sa->num_members--;
    sm_mcast_dirty(sa->sm, g->rec.mlid);
}

void sa_groups_fabric(struct sm_sa *sa)
{
    mono_t now = loop_now(sa->sm->loop);
    for (uint32_t i = 0; i < sa->num_groups; i++)
        for (uint32_t k = 0; k < sa->group[i]->num; k++) {
            struct sa_member *m = &sa->group[i]->member[k];
            if (port_valid(fabric_by_port_guid(sa->fabric, m->port_guid)))
                m->gone.ns = 0;
            else if (m->gone.ns == 0)
                m->gone.ns = now.ns | 1;
        }
}

void sa_groups_age(struct sm_sa *sa)
{
    mono_t now = loop_now(sa->sm->loop);
    for (uint32_t i = sa->num_groups; i-- > 0;) { // a group may go
        struct sa_group *g = sa->group[i];
        uint32_t before = g->num;
        for (uint32_t k = g->num; k-- > 0;)
            if (g->member[k].gone.ns != 0 && mono_sub(now, g->member[k].gone) > SA_GONE_NS)
                sa_member_remove(sa, g, &g->member[k]);
        if (g->num < before)
            sa_group_settle(sa, g);
    }
}

// --- the database ---

void sa_groups_changed(struct sm_sa *sa)
{
    if (sa->unsaved)
        return;
    sa->unsaved = true;
    sa->save_at = mono_add(loop_now(sa->sm->loop), SAVE_DELAY);
    sa_wake(sa);
}

static void add_row(struct db_group **row, size_t *n, const struct sa_group *g, const struct sa_member *m)
{
    struct mad_mc_member_record rec = g->rec;
    if ((*n & (*n - 1)) == 0)
        *row = xreallocarray(*row, *n ? *n * 2 : 1, sizeof(**row));
    struct db_group *r = &(*row)[(*n)++];
    memcpy(r->mgid, g->mgid, 16);
    r->port_guid = m != NULL ? m->port_guid : 0;
    if (m != NULL) {
        sa_put_gid(MAD_DEFAULT_GID_PREFIX, m->port_guid, rec.port_gid);
        rec.join_state = m->join_state;
        rec.proxy_join = m->proxy;
    }
    mad_mc_member_record_encode(&rec, r->record);
}

void sa_groups_save(struct sm_sa *sa)
{
    struct db_group *row = NULL;
    size_t n = 0;

    sa->unsaved = false;
    for (uint32_t i = 0; i < sa->num_groups; i++) {
        struct sa_group *g = sa->group[i];
        if (!g->stored)
            add_row(&row, &n, g, NULL);
        g->stored = true;
        for (uint32_t k = 0; k < g->num; k++)
            if (g->member[k].dirty) {
                add_row(&row, &n, g, &g->member[k]);
                g->member[k].dirty = false;
                g->member[k].stored = true;
            }
    }
    // A row that was forgotten and has come back is among the new ones: those go last.
    if (sa->sm->db != NULL && sa->num_forgotten > 0)
        db_groups_forget(sa->sm->db, sa->sm->o.fabric, sa->forgotten, sa->num_forgotten, NULL, NULL);
    if (sa->sm->db != NULL && n > 0)
        db_groups_put(sa->sm->db, sa->sm->o.fabric, row, n, NULL, NULL);
    sa->num_forgotten = 0;
    free(row);
}

// A row is as good as what was asked over the wire: nothing in it is taken for granted.
static bool load_row(struct sm_sa *sa, const struct db_group *row, bool groups)
{
    struct mad_mc_member_record rec;
    struct sa_group *g = sa_group_find(sa, row->mgid);

    mad_mc_member_record_decode(row->record, &rec);
    if (memcmp(rec.mgid, row->mgid, 16) != 0 || rec.mgid[0] != 0xff)
        return false;
    if (groups) {
        if (g != NULL || rec.mlid < MAD_LID_MULTICAST_MIN || rec.mlid > MAD_LID_MULTICAST_MAX ||
            sa->num_groups >= SA_GROUPS_MAX)
            return false;
        insert(sa, &rec)->stored = true;
        return true;
    }
    if (g == NULL || rec.join_state == 0 || sa_member_find(g, row->port_guid) != NULL ||
        sa->num_members >= SA_MEMBERS_MAX)
        return false;
    struct sa_member *m = sa_member_add(sa, g, row->port_guid);
    m->join_state = rec.join_state;
    m->proxy = rec.proxy_join;
    m->stored = true;
    m->dirty = false;
    return true;
}

static void load(struct sm_sa *sa)
{
    struct db_group *row = NULL;
    long n = sa->sm->db != NULL ? db_groups_load(sa->sm->db, sa->sm->o.fabric, &row) : 0;
    size_t bad = 0;

    for (int pass = 0; pass < 2; pass++)
        for (long i = 0; i < n; i++)
            if ((row[i].port_guid == 0) == (pass == 0))
                bad += !load_row(sa, &row[i], pass == 0);
    free(row);
    // A database that knows this fabric's LIDs has kept its groups too: if it has none, there were none.
    sa->loaded = sa->num_members > 0 || sa->sm->lid_of.count > 0;
    if (n < 0 || bad > 0)
        log_warning("sa-groups-lost", "fabric=%s rows=%zu error=%ld", sa->sm->o.fabric, bad, n < 0 ? n : 0);
}

void sa_groups_init(struct sm_sa *sa)
{
    struct mad_mc_member_record rec = {.q_key = 0x0b1b,
                                       .mlid = MAD_LID_MULTICAST_MIN,
                                       .mtu = MAD_MTU_2048,
                                       .p_key = MAD_DEFAULT_P_KEY,
                                       .rate = 3, // 10 Gb/s
                                       .packet_life_time = 18};

    sa->mlid_groups = xcalloc(MLIDS, sizeof(*sa->mlid_groups));
    load(sa);
    memcpy(rec.mgid, broadcast, 16);
    if (sa_group_find(sa, broadcast) != NULL)
        return;
    if (sa->mlid_groups[0] != 0)
        rec.mlid = free_mlid(sa);
    insert(sa, &rec);
    sa_groups_changed(sa);
}

void sa_groups_done(struct sm_sa *sa)
{
    for (uint32_t i = 0; i < sa->num_groups; i++) {
        free(sa->group[i]->member);
        free(sa->group[i]);
    }
    free(sa->group);
    free(sa->mlid_groups);
    free(sa->forgotten);
}

void sm_sa_groups(const struct sm *sm, void (*group)(void *arg, const struct sm_sa_group *g),
                  void (*member)(void *arg, const struct sm_sa_group *g, const struct sm_sa_member *m),
                  void *arg)
{
    const struct sm_sa *sa = sm->sa;
    for (uint32_t i = 0; i < sa->num_groups; i++) {
        const struct sa_group *x = sa->group[i];
        struct sm_sa_group g = {.mlid = x->rec.mlid,
                                .p_key = x->rec.p_key,
                                .q_key = x->rec.q_key,
                                .flow_label = x->rec.flow_label,
                                .mtu = x->rec.mtu,
                                .rate = x->rec.rate,
                                .sl = x->rec.sl,
                                .tclass = x->rec.tclass,
                                .hop_limit = x->rec.hop_limit,
                                .packet_life = x->rec.packet_life_time,
                                .permanent = x->permanent,
                                .members = x->num};
        memcpy(g.mgid, x->mgid, 16);
        group(arg, &g);
        for (uint32_t k = 0; member != NULL && k < x->num; k++)
            member(arg, &g,
                   &(struct sm_sa_member){.port_guid = x->member[k].port_guid,
                                          .join_state = x->member[k].join_state,
                                          .proxy = x->member[k].proxy,
                                          .gone = x->member[k].gone.ns != 0});
    }
}
