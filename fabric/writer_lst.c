// SPDX-License-Identifier: Apache-2.0
// The .lst form of ibdm: one line a link, for ibdmchk.
#include <errno.h>

#include "fabric/writer.h"
#include "fabric/writer_priv.h"
#include "mad/mad.h"

static const char *log_state(uint8_t state)
{
    switch ((enum port_state)state) {
    case PORT_INIT:
        return "INI";
    case PORT_ARMED:
        return "ARM";
    case PORT_ACTIVE:
        return "ACT";
    case PORT_STATE_NOP:
    case PORT_DOWN:
        break;
    }
    return "DWN";
}

static const char *lane_rate(const struct port_attrs *a)
{
    static const char *const ext[] = {"14", "25", "50", "100", "200"};
    for (unsigned i = 0; i < 5; i++)
        if (a->speed_ext_active == 1u << i)
            return ext[i];
    if (a->fdr10)
        return "FDR10";
    return a->speed_active == 1 ? "2.5" : a->speed_active == 2 ? "5" : a->speed_active == 4 ? "10" : NULL;
}

static void put_end(FILE *out, const struct fabric *f, const struct port *p)
{
    static const char *const word[] = {"", "CA", "SW", "RT"};
    const struct node *n = fabric_node(f, p->node);
    const struct port *end = port_is_end(f, p) ? p : &f->port[n->first_port];
    bool sm = port_valid(f->sm_port) && fabric_port(f, f->sm_port) == end;

    fprintf(out,
            "{ %s%s Ports:%02X SystemGUID:%016llx NodeGUID:%016llx PortGUID:%016llx VenID:%08X DevID:%04X "
            "Rev:%08X {",
            word[n->type], sm ? "-SM" : "", n->num_ports, (unsigned long long)n->sys_guid,
            (unsigned long long)n->guid, (unsigned long long)end->guid, n->vendor_id, n->device_id,
            n->revision);
    put_desc(out, fabric_desc(f, n), "{}", '_');
    fprintf(out, "} LID:%04X PN:%02X } ", end->a.lid, p->num);
}

int write_lst(const struct fabric *f, FILE *out)
{
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (!port_valid(p->peer) || p->peer.i < i)
            continue;
        unsigned lanes = mad_width_lanes(p->a.width_active);
        const char *rate = lane_rate(&p->a);
        put_end(out, f, p);
        put_end(out, f, fabric_port(f, p->peer));
        if (lanes)
            fprintf(out, "PHY=%ux ", lanes);
        fprintf(out, "LOG=%s", log_state(p->a.state));
        if (rate)
            fprintf(out, " SPD=%s", rate);
        putc('\n', out);
    }
    return ferror(out) ? -EIO : 0;
}
