// SPDX-License-Identifier: Apache-2.0
// What the sweep saw -> a snapshot, and what is odd about it -> findings. Nodes stand in order of GUID, so
// that equal fabrics give equal snapshots whatever order the answers came in.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/xalloc.h"
#include "sm/sm_priv.h"

static int by_guid(const void *a, const void *b)
{
    const struct sm_dev *x = *(struct sm_dev *const *)a, *y = *(struct sm_dev *const *)b;
    return x->guid < y->guid ? -1 : x->guid > y->guid;
}

static void port_attrs(const struct sm_dev *d, unsigned num, struct port_attrs *ret)
{
    const struct sm_port *p = &d->port[num];
    bool end = !dev_is_switch(d) || num == 0;
    struct mad_port_info pi;

    memset(ret, 0, sizeof(*ret));
    if (!p->known)
        return;
    mad_port_info_decode(p->info, &pi);
    *ret = (struct port_attrs){
        .lid = end ? p->lid : 0,
        .lmc = !end                                            ? 0
               : dev_is_switch(d) || p->not_kept & PORTCFG_LMC ? pi.lmc
                                                               : p->lmc,
        .state = pi.port_state,
        .phys_state = pi.port_physical_state,
        .width_active = pi.link_width_active,
        .width_supported = pi.link_width_supported,
        .width_enabled = pi.link_width_enabled,
        .speed_active = pi.link_speed_active,
        .speed_supported = pi.link_speed_supported,
        .speed_enabled = pi.link_speed_enabled,
        .speed_ext_active = mad_speed_ext_active(&pi),
        .speed_ext_supported = mad_speed_ext_supported(&pi),
        .speed_ext_enabled = pi.link_speed_ext_enabled,
        .fdr10 = p->fdr10,
        .mtu_cap = pi.mtu_cap,
        .mtu_active = pi.neighbor_mtu,
        .vl_cap = pi.vl_cap,
        .vl_oper = pi.operational_vls,
        .cap_mask = end ? pi.capability_mask : 0,
        .cap_mask2 =
            end && (pi.capability_mask & MAD_CAP_IS_CAPABILITY_MASK2_SUPPORTED) ? pi.capability_mask2 : 0,
    };
}

static struct node_attrs node_attrs(const struct sm_dev *d)
{
    struct node_attrs a = {
        .guid = d->guid,
        .sys_guid = d->ni.system_image_guid,
        .type = (enum node_type)d->ni.node_type,
        .num_ports = d->ni.num_ports,
        .partition_cap = d->ni.partition_cap,
        .device_id = d->ni.device_id,
        .vendor_id = d->ni.vendor_id,
        .revision = d->ni.revision,
    };
    if (d->have_si) {
        a.lft_cap = d->si.linear_fdb_cap;
        a.lft_top = d->si.linear_fdb_top;
        a.mft_cap = d->si.multicast_fdb_cap;
        a.partition_enforcement_cap = d->si.partition_enforcement_cap;
        a.enhanced_port0 = d->si.enhanced_port0;
    }
    return a;
}

static void set_ports(struct builder *b, const struct sm_dev *d)
{
    node_id id = {d->node};
    for (unsigned num = dev_is_switch(d) ? 0 : 1; num <= d->ni.num_ports; num++) {
        struct port_attrs pa;
        port_attrs(d, num, &pa);
        builder_port(b, id, num, &pa);
        if (d->port[num].guid != 0)
            builder_port_guid(b, id, num, d->port[num].guid);
        builder_exclude(b, id, num, (enum port_excluded)d->port[num].excluded);
    }
}

static void add_node(struct builder *b, struct sm_dev *d)
{
    struct node_attrs a = node_attrs(d);
    node_id id;

    d->node = ID_NONE;
    if (builder_node(b, &a, d->desc, strlen(d->desc), &id, NULL) != 0)
        return;
    d->node = id.i;
    set_ports(b, d);
}

static bool end_up(const struct sm_dev *d, const struct sm_port *p)
{
    if (p->fails >= PORT_STUCK && (p->info[32] & 0x0f) != MAD_PORT_ACTIVE)
        return false; // it is configured again each sweep, but no table may count on it
    return p->known ? sm_port_up(p) : !dev_is_switch(d);
}

static void add_links(const struct sm *sm, struct builder *b, const struct sm_dev *d)
{
    for (unsigned num = 1; num <= d->ni.num_ports; num++) {
        const struct sm_port *p = &d->port[num];
        if (p->peer == DEV_NONE)
            continue;
        const struct sm_dev *z = sm->dev[p->peer];
        // A link that went down between the two reads is no link; nor is one to a switch that does not tell
        // of its port: it will not get it to ACTIVE.
        bool up = end_up(d, p) && end_up(z, &z->port[p->peer_num]) && !d->too_small && !z->too_small;
        if (up && d->node != ID_NONE && z->node != ID_NONE)
            builder_link(b, (node_id){d->node}, num, (node_id){z->node}, p->peer_num);
    }
}

static const struct fabric *seal(struct sm *sm, struct builder *b, struct findings *f)
{
    const struct sm_dev *own = sm->dev[sm->own_dev];
    if (own->node != ID_NONE)
        builder_sm_port(b, (node_id){own->node}, dev_is_switch(own) ? 0 : sm->own.num);
    builder_numbers_from(b, sm->blueprint.known); // so that none shifts while something is away
    const struct fabric *fabric = builder_seal(b, sm->generation + 1, f);
    for (uint32_t i = 0; i < sm->num_dev; i++) // removing nodes moves the others
        sm->dev[i]->node = ID_NONE;
    for (uint32_t i = 0; i < fabric->num_nodes; i++) {
        struct sm_dev *d = sm_dev_find(sm, fabric->node[i].guid);
        if (d != NULL)
            d->node = i;
    }
    return fabric;
}

static const struct fabric *build_whole(struct sm *sm, struct findings *f)
{
    struct sm_dev **list = xcalloc(sm->num_dev ? sm->num_dev : 1, sizeof(struct sm_dev *));
    uint32_t n = 0;
    struct builder *b = builder_new();

    for (uint32_t i = 0; i < sm->num_dev; i++)
        if (dev_here(sm, sm->dev[i]))
            list[n++] = sm->dev[i];
        else
            sm->dev[i]->node = ID_NONE;
    qsort(list, n, sizeof(struct sm_dev *), by_guid);
    for (uint32_t i = 0; i < n; i++)
        add_node(b, list[i]);
    for (uint32_t i = 0; i < n; i++)
        add_links(sm, b, list[i]);
    free(list);
    return seal(sm, b, f);
}

// Whether `last` has all that is touched: then the nodes keep their order.
static bool derivable(const struct sm *sm, const struct fabric *last)
{
    if (last == NULL || sm->sweep.full || sm->model_whole)
        return false;
    for (uint32_t i = 0; i < sm->touched.n; i++) {
        const struct sm_dev *d = sm->dev[sm->touched.index[i]];
        const struct node *n = d->here ? fabric_by_guid(last, d->guid) : NULL;
        if (d->here && (n == NULL || n->type != d->ni.node_type || n->num_ports != d->ni.num_ports))
            return false;
    }
    return true;
}

const struct fabric *sm_model_build(struct sm *sm, const struct fabric *last, struct findings *f)
{
    if (!derivable(sm, last))
        return build_whole(sm, f);
    struct builder *b = builder_from(last);
    for (uint32_t i = 0; i < sm->num_dev; i++)
        sm->dev[i]->node = ID_NONE;
    for (uint32_t i = 0; i < last->num_nodes; i++) {
        struct sm_dev *d = sm_dev_find(sm, last->node[i].guid);
        if (d == NULL || !d->here)
            builder_remove(b, (node_id){i});
        if (d != NULL)
            d->node = d->here ? i : ID_NONE;
    }
    for (int links = 0; links < 2; links++)
        for (uint32_t i = 0; i < sm->touched.n; i++) {
            struct sm_dev *d = sm->dev[sm->touched.index[i]];
            if (!d->here)
                continue;
            if (links) {
                add_links(sm, b, d);
                continue;
            }
            struct node_attrs a = node_attrs(d);
            builder_node_attrs(b, (node_id){d->node}, &a);
            builder_desc(b, (node_id){d->node}, d->desc, strlen(d->desc));
            for (unsigned num = 1; num <= d->ni.num_ports; num++)
                builder_unlink(b, (node_id){d->node}, num);
            set_ports(b, d);
        }
    return seal(sm, b, f);
}

// One finding for a device that was known, however many links lead to it; else one for the port.
static void silent_peer(struct sm *sm, const struct sm_port *p, const char *where)
{
    const struct sm_dev *z = p->last_peer != 0 ? sm_dev_find(sm, p->last_peer) : NULL;
    char name[128];

    if (z == NULL) {
        findings_add(&sm->findings_new, FINDING_WARNING, "peer-silent", where,
                     "the link is up but the device behind it does not answer: dead or slow agent, or an "
                     "M_Key that we do not "
                     "have; asked again at every light sweep");
        return;
    }
    snprintf(name, sizeof(name), "%s (" GUID_FMT ")", z->desc, GUID_ARG(z->guid));
    findings_add(
        &sm->findings_new, dev_is_switch(z) ? FINDING_ERROR : FINDING_WARNING, "peer-silent", name,
        "its links are up (the count is theirs) but it does not answer any more: its agent is dead "
        "or slow, or somebody set an "
        "M_Key; routes avoid it, and what has no other way goes on over it; asked again at every light "
        "sweep");
}

static void port_finding(struct sm *sm, const struct sm_dev *d, unsigned num, enum finding_severity severity,
                         const char *code, const char *text)
{
    char where[128];
    findings_add(&sm->findings_new, severity, code, sm_port_text(d, num, where, sizeof(where)), "%s", text);
}

static void port_findings(struct sm *sm, const struct sm_dev *d, unsigned num)
{
    const struct sm_port *p = &d->port[num];
    bool end = !dev_is_switch(d) || num == 0;
    struct mad_port_info pi;
    char where[128];

    if (!p->known) {
        if (end ? (num == 0 || p->peer != DEV_NONE) : d->port[0].known)
            port_finding(sm, d, num, FINDING_WARNING, "port-info-silent",
                         "answers NodeInfo but not PortInfo: its agent is dead or slow, or an M_Key that we "
                         "do not have protects it; it gets no LID");
        return;
    }
    if (p->excluded == PORT_EXCLUDED_PEER_SILENT)
        silent_peer(sm, p, sm_port_text(d, num, where, sizeof(where)));
    if (!end && !sm_port_up(p))
        return;
    mad_port_info_decode(p->info, &pi);
    uint16_t cap2 = pi.capability_mask & MAD_CAP_IS_CAPABILITY_MASK2_SUPPORTED ? pi.capability_mask2 : 0;
    if (end && (cap2 & MAD_CAP2_IS_VIRTUALIZATION_SUPPORTED))
        port_finding(sm, d, num, FINDING_INFO, "virtual-ports",
                     "the adapter can carry virtual ports (SR-IOV on ConnectX-4 and later); weft does not "
                     "manage them: virtual functions stay down");
    if (end && p->m_key != 0)
        port_finding(sm, d, num, FINDING_INFO, "m-key",
                     "has an M_Key that can be read; it is used and kept, but anybody else can read it too");
    if (mad_speed_ext_active(&pi) == MAD_SPEED_EXT_XDR)
        port_finding(sm, d, num, FINDING_ERROR, "xdr-planes",
                     "an XDR link: planarised ports, plane filters and split tables are not implemented; the "
                     "port is managed as a plain one and may not carry traffic as it should");
}

void sm_model_findings(struct sm *sm)
{
    struct findings *f = &sm->findings_new;

    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        char where[32];
        if (!dev_here(sm, d))
            continue;
        guid_str(d->guid, where);
        if (!d->have_desc)
            findings_add(f, FINDING_INFO, "no-description", where,
                         "the device does not tell its NodeDescription");
        if (d->foreign_pkeys)
            findings_add(f, FINDING_INFO, "foreign-pkeys", d->desc[0] ? d->desc : where,
                         "has P_Keys of partitions that are not configured here; they are left as they are");
        if (dev_is_switch(d) && !d->have_si)
            findings_add(f, FINDING_ERROR, "switch-info-silent", d->desc[0] ? d->desc : where,
                         "the switch answers NodeInfo but not SwitchInfo; nothing can be routed through it");
        for (unsigned num = dev_is_switch(d) ? 0 : 1; num <= d->ni.num_ports; num++)
            port_findings(sm, d, num);
    }
}
