// SPDX-License-Identifier: Apache-2.0
// InformInfo (IBA 13.4.8.3, 13.4.11): who wants to be told of what. Subscriptions are kept in memory; a port
// that is asked to register again subscribes anew.
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/sa_priv.h"

static bool same(const struct sa_subscription *s, uint64_t port_guid, const struct mad_inform_info *q)
{
    const struct mad_inform_info *a = &s->inform;
    return s->port_guid == port_guid && memcmp(a->gid, q->gid, 16) == 0 &&
           a->lid_range_begin == q->lid_range_begin && a->lid_range_end == q->lid_range_end &&
           a->is_generic == q->is_generic && a->type == q->type && a->trap_number == q->trap_number &&
           a->qpn == q->qpn && a->producer_type == q->producer_type;
}

static uint32_t find(const struct sm_sa *sa, uint64_t port_guid, const struct mad_inform_info *q)
{
    uint32_t i = 0;
    while (i < sa->num_subs && !same(&sa->sub[i], port_guid, q))
        i++;
    return i;
}

static uint32_t of_port(const struct sm_sa *sa, uint64_t port_guid)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < sa->num_subs; i++)
        n += sa->sub[i].port_guid == port_guid;
    return n;
}

static uint16_t subscribe(struct sm_sa *sa, const struct port *p, const struct sa_req *r,
                          const struct mad_inform_info *q)
{
    uint32_t i = find(sa, p->guid, q);
    if (i < sa->num_subs) {
        sa->sub[i].lid = r->from.lid;
        return 0;
    }
    if (sa->num_subs >= SA_SUBSCRIPTIONS_MAX || of_port(sa, p->guid) >= SA_SUBSCRIPTIONS_PORT_MAX)
        return MAD_SA_NO_RESOURCES;
    if (sa->num_subs == sa->cap_subs) {
        sa->cap_subs = sa->cap_subs ? sa->cap_subs * 2 : 16;
        sa->sub = xreallocarray(sa->sub, sa->cap_subs, sizeof(*sa->sub));
    }
    sa->sub[sa->num_subs++] = (struct sa_subscription){
        .port_guid = p->guid, .lid = r->from.lid, .qpn = r->from.remote_qpn, .inform = *q};
    sa->stats.reports++;
    return 0;
}

static uint16_t unsubscribe(struct sm_sa *sa, const struct port *p, const struct mad_inform_info *q)
{
    uint32_t i = find(sa, p->guid, q);
    if (i == sa->num_subs)
        return MAD_SA_REQ_INVALID;
    memmove(&sa->sub[i], &sa->sub[i + 1], (--sa->num_subs - i) * sizeof(*sa->sub));
    sa->stats.reports++;
    return 0;
}

enum sa_step sa_inform_set(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_inform_info q;
    port_id id = fabric_by_lid(sa->fabric, r->from.lid);

    mad_inform_info_decode(sa_data(r), &q);
    if (q.subscribe > 1 || q.is_generic > 1)
        return sa_refuse(r, MAD_SA_REQ_INVALID);
    const struct port *p = fabric_port(sa->fabric, id);
    r->status = q.subscribe ? subscribe(sa, p, r, &q) : unsubscribe(sa, p, &q);
    sa_emit(r, sa_data(r), 36);
    return SA_DONE;
}

enum sa_step sa_informs(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_inform_info_record q;

    mad_inform_info_record_decode(sa_data(r), &q);
    for (uint32_t i = 0; i < sa->num_subs; i++) {
        const struct sa_subscription *s = &sa->sub[i];
        struct mad_inform_info_record rec = {.subscriber_enum = (uint16_t)i};
        uint8_t wire[64] = {0};
        sa_put_gid(sa->sm->o.subnet_prefix, s->port_guid, wire);
        wire[16] = (uint8_t)(i >> 8);
        wire[17] = (uint8_t)i;
        mad_inform_info_encode(&s->inform, wire + 24);
        mad_inform_info_record_decode(wire, &rec);
        if (mad_component_match(&mad_attr_inform_info_record, r->hdr.component_mask, &q, &rec) &&
            !sa_emit(r, wire, sizeof(wire)))
            break;
    }
    return SA_DONE;
}
