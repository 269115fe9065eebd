// SPDX-License-Identifier: Apache-2.0
// Nodes, ports, links, switches and tables as records (IBA 15.2.5.2 to .13), made one by one while the answer
// is built. cursor walks ports or nodes of the snapshot; a request that names a LID looks at one node only.
#include <string.h>

#include "sm/sa_priv.h"

#define RECORD_LID 0 // the component, in all of these but LinkRecord
#define LOOKS 512    // between two looks at the clock

// The next node at or after the cursor's that the request can be about; NULL when there is none. A LID names
// one.
static const struct node *node_at(const struct sm_sa *sa, const struct sa_req *r, uint64_t i, uint16_t lid)
{
    const struct fabric *f = sa->fabric;
    if (!sa_asked(r, RECORD_LID))
        return i < f->num_nodes ? &f->node[i] : NULL;
    port_id p = i == 0 ? fabric_by_lid(f, lid) : PORT_NONE;
    return port_valid(p) ? &f->node[f->port[p.i].node.i] : NULL;
}

static const struct sm_dev *dev_of(const struct sm_sa *sa, const struct node *n)
{
    const struct sm_dev *d = sm_dev_find(sa->sm, n->guid);
    return d != NULL && d->ni.num_ports == n->num_ports ? d : NULL; // it may have been replaced since
}

// --- NodeRecord ---

static bool node_record(const struct sm_sa *sa, struct sa_req *r, const struct mad_node_record *q,
                        const struct node *n, const struct port *p)
{
    const struct sm_dev *d = dev_of(sa, n);
    struct mad_node_record rec;
    uint8_t wire[112];

    if (d == NULL || p->a.lid == 0)
        return true;
    rec = (struct mad_node_record){
        .lid = sa_asked(r, RECORD_LID) ? q->lid : p->a.lid,
        .base_version = d->ni.base_version,
        .class_version = d->ni.class_version,
        .node_type = d->ni.node_type,
        .num_ports = d->ni.num_ports,
        .system_image_guid = d->ni.system_image_guid,
        .node_guid = d->guid,
        .port_guid = p->guid,
        .partition_cap = d->ni.partition_cap,
        .device_id = d->ni.device_id,
        .revision = d->ni.revision,
        .local_port_num = n->type == NODE_SWITCH ? d->ni.local_port_num : p->num,
        .vendor_id = d->ni.vendor_id,
    };
    memcpy(rec.node_string, d->desc, strnlen(d->desc, sizeof(rec.node_string)));
    if (!mad_component_match(&mad_attr_node_record, r->hdr.component_mask, q, &rec))
        return true;
    mad_node_record_encode(&rec, wire);
    return sa_emit(r, wire, sizeof(wire));
}

// End ports of one node; false when no more records are wanted.
static bool node_records(const struct sm_sa *sa, struct sa_req *r, const struct mad_node_record *q,
                         const struct node *n)
{
    const struct fabric *f = sa->fabric;
    unsigned last = n->type == NODE_SWITCH ? 0 : n->num_ports;
    for (unsigned num = node_first_num(n); num <= last; num++) {
        const struct port *p = &f->port[n->first_port + num - node_first_num(n)];
        if (sa_asked(r, RECORD_LID) && fabric_by_lid(f, q->lid).i != (uint32_t)(p - f->port))
            continue;
        if (!node_record(sa, r, q, n, p))
            return false;
    }
    return true;
}

enum sa_step sa_nodes(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_node_record q;
    const struct node *n;

    mad_node_record_decode(sa_data(r), &q);
    while ((n = node_at(sa, r, r->cursor, q.lid)) != NULL) {
        r->cursor++;
        if (!node_records(sa, r, &q, n))
            break;
        if (r->cursor % LOOKS == 0 && sa_slice_over(sa))
            return SA_MORE;
    }
    return SA_DONE;
}

// --- PortInfoRecord ---

#define PIR_PORT_NUM 1
#define PIR_CAPABILITY_MASK 7
#define PIR_CAPABILITY_MASK2 53
#define CAP_MATCH 0x80000000u // of the attribute modifier: all bits asked for are set, others do not matter

static bool port_matches(const struct sa_req *r, const struct mad_port_info_record *q,
                         const struct mad_port_info_record *rec)
{
    uint64_t mask = r->hdr.component_mask;
    if (r->hdr.attr_mod & CAP_MATCH) {
        if (sa_asked(r, PIR_CAPABILITY_MASK) &&
            (rec->capability_mask & q->capability_mask) != q->capability_mask)
            return false;
        if (sa_asked(r, PIR_CAPABILITY_MASK2) &&
            (rec->capability_mask2 & q->capability_mask2) != q->capability_mask2)
            return false;
        mask &= ~(1ull << PIR_CAPABILITY_MASK | 1ull << PIR_CAPABILITY_MASK2);
    }
    return mad_component_match(&mad_attr_port_info_record, mask, q, rec);
}

static bool port_record(const struct sm_sa *sa, struct sa_req *r, const struct mad_port_info_record *q,
                        const struct node *n, const struct sm_dev *d, unsigned num)
{
    const struct fabric *f = sa->fabric;
    const struct port *p = &f->port[n->first_port + num - node_first_num(n)];
    struct mad_port_info_record rec;
    uint16_t lid = sa_port_lid(f, p);
    uint8_t wire[72] = {0};

    if (lid == 0 || !d->port[num].known)
        return true;
    if (sa_asked(r, RECORD_LID)) {
        uint32_t end = n->type == NODE_SWITCH ? n->first_port : n->first_port + num - node_first_num(n);
        if (fabric_by_lid(f, q->endport_lid).i != end)
            return true;
        lid = q->endport_lid;
    }
    if (sa_asked(r, PIR_PORT_NUM) && q->port_num != num)
        return true;
    memcpy(wire + 4, d->port[num].info, MAD_SMP_DATA_SIZE);
    wire[0] = (uint8_t)(lid >> 8);
    wire[1] = (uint8_t)lid;
    wire[2] = (uint8_t)num;
    if (!r->trusted)
        memset(wire + 4, 0, 8); // M_Key
    mad_port_info_record_decode(wire, &rec);
    if (sa_asked(r, 2))
        rec.options = q->options; // which PortInfo is meant: there is one
    return !port_matches(r, q, &rec) || sa_emit(r, wire, sizeof(wire));
}

enum sa_step sa_port_infos(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_port_info_record q;
    const struct node *n;

    mad_port_info_record_decode(sa_data(r), &q);
    while ((n = node_at(sa, r, r->cursor, q.endport_lid)) != NULL) {
        const struct sm_dev *d = dev_of(sa, n);
        r->cursor++;
        for (unsigned num = node_first_num(n); d != NULL && num <= n->num_ports; num++)
            if (!port_record(sa, r, &q, n, d, num))
                return SA_DONE;
        if (r->cursor % 64 == 0 && sa_slice_over(sa))
            return SA_MORE;
    }
    return SA_DONE;
}

// --- LinkRecord ---

enum sa_step sa_links(struct sm_sa *sa, struct sa_req *r)
{
    const struct fabric *f = sa->fabric;
    struct mad_link_record q;

    mad_link_record_decode(sa_data(r), &q);
    while (r->cursor < f->num_ports) {
        const struct port *p = &f->port[r->cursor++];
        if (r->cursor % LOOKS == 0 && sa_slice_over(sa))
            return SA_MORE;
        if (!port_valid(p->peer))
            continue;
        const struct port *z = fabric_port(f, p->peer);
        struct mad_link_record rec = {.from_lid = sa_port_lid(f, p),
                                      .from_port = p->num,
                                      .to_port = z->num,
                                      .to_lid = sa_port_lid(f, z)};
        uint8_t wire[8];
        if (!mad_component_match(&mad_attr_link_record, r->hdr.component_mask, &q, &rec))
            continue;
        mad_link_record_encode(&rec, wire);
        if (!sa_emit(r, wire, sizeof(wire)))
            break;
    }
    return SA_DONE;
}

// --- switches ---

enum sa_step sa_switch_infos(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_switch_info_record q;
    const struct node *n;

    mad_switch_info_record_decode(sa_data(r), &q);
    while ((n = node_at(sa, r, r->cursor, q.lid)) != NULL) {
        const struct sm_dev *d = dev_of(sa, n);
        uint8_t wire[24] = {0};
        r->cursor++;
        if (n->type != NODE_SWITCH || d == NULL || !d->have_si)
            continue;
        uint16_t lid = sa_asked(r, RECORD_LID) ? q.lid : sa->fabric->port[n->first_port].a.lid;
        mad_switch_info_encode(&d->si, wire + 4);
        wire[0] = (uint8_t)(lid >> 8);
        wire[1] = (uint8_t)lid;
        if (lid != 0 && !sa_emit(r, wire, sizeof(wire)))
            break;
    }
    return SA_DONE;
}

enum sa_step sa_lfts(struct sm_sa *sa, struct sa_req *r)
{
    const struct fabric_tables *t = sa->tables;
    struct mad_linear_forwarding_table_record q, rec;
    uint32_t blocks = t->lids / LFT_BLOCK;
    const struct node *n;

    mad_linear_forwarding_table_record_decode(sa_data(r), &q);
    if (blocks == 0)
        return SA_DONE;
    while ((n = node_at(sa, r, r->cursor / blocks, q.lid)) != NULL) {
        uint32_t block = (uint32_t)(r->cursor++ % blocks);
        uint8_t wire[72];
        if (n->type != NODE_SWITCH) {
            r->cursor += blocks - 1 - block;
            continue;
        }
        rec = (struct mad_linear_forwarding_table_record){
            .lid = sa_asked(r, RECORD_LID) ? q.lid : sa->fabric->port[n->first_port].a.lid,
            .block_num = (uint16_t)block};
        memcpy(rec.port, tables_row(t, n->sw) + (size_t)block * LFT_BLOCK, LFT_BLOCK);
        if (rec.lid == 0 ||
            !mad_component_match(&mad_attr_linear_forwarding_table_record, r->hdr.component_mask, &q, &rec))
            continue;
        mad_linear_forwarding_table_record_encode(&rec, wire);
        if (!sa_emit(r, wire, sizeof(wire)))
            break;
        if (r->cursor % LOOKS == 0 && sa_slice_over(sa))
            return SA_MORE;
    }
    return SA_DONE;
}

// Blocks with a port in them, by (node, block, position).
enum sa_step sa_mfts(struct sm_sa *sa, struct sa_req *r)
{
    struct mad_multicast_forwarding_table_record q, rec;
    uint32_t blocks = (uint32_t)(sm_mcast_mlid_max(sa->sm) - MAD_LID_MULTICAST_MIN) / 32 + 1;
    const struct node *n;

    mad_multicast_forwarding_table_record_decode(sa_data(r), &q);
    while ((n = node_at(sa, r, r->cursor / (blocks * 16), q.lid)) != NULL) {
        uint64_t c = r->cursor++ % (blocks * 16);
        uint8_t wire[72];
        rec = (struct mad_multicast_forwarding_table_record){
            .lid = sa_asked(r, RECORD_LID) ? q.lid : sa->fabric->port[n->first_port].a.lid,
            .position = c % 16,
            .block_num = (uint16_t)(c / 16)};
        if (n->type != NODE_SWITCH) {
            r->cursor += blocks * 16 - 1 - c;
            continue;
        }
        if (r->cursor % LOOKS == 0 && sa_slice_over(sa))
            return SA_MORE;
        if (!sm_mcast_block(sa->sm, n->guid, rec.block_num, rec.position, rec.port_mask) || rec.lid == 0 ||
            !mad_component_match(&mad_attr_multicast_forwarding_table_record, r->hdr.component_mask, &q,
                                 &rec))
            continue;
        mad_multicast_forwarding_table_record_encode(&rec, wire);
        if (!sa_emit(r, wire, sizeof(wire)))
            break;
    }
    return SA_DONE;
}

// --- managers: this one ---

enum sa_step sa_sm_infos(struct sm_sa *sa, struct sa_req *r)
{
    const struct sm *sm = sa->sm;
    struct mad_sm_info_record q, rec = {.lid = sm->own_lid,
                                        .guid = sm->own.port_guid,
                                        .act_count = sm->act_count,
                                        .priority = sm->o.priority,
                                        .sm_state = (uint8_t)sm->state};
    uint8_t wire[32];

    mad_sm_info_record_decode(sa_data(r), &q);
    if (r->cursor++ == 0 && mad_component_match(&mad_attr_sm_info_record, r->hdr.component_mask, &q, &rec)) {
        mad_sm_info_record_encode(&rec, wire);
        sa_emit(r, wire, sizeof(wire));
    }
    return SA_DONE;
}
