// SPDX-License-Identifier: Apache-2.0
// The graph as JSON, for programs that compute on it.
#include <errno.h>

#include "fabric/writer.h"

static void put_text(FILE *out, const char *s)
{
    putc('"', out);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20 || c == 0x7f)
            fprintf(out, "\\u%04x", c);
        else
            putc(c, out);
    }
    putc('"', out);
}

static void put_number(FILE *out, const char *key, uint32_t v, uint32_t none)
{
    if (v != none)
        fprintf(out, ",\"%s\":%u", key, v);
}

static void put_node(FILE *out, const struct fabric *f, const struct node *n)
{
    static const char *const type[] = {"", "ca", "switch", "router"};
    const struct port *end = &f->port[n->first_port];
    fprintf(out, "{\"id\":\"0x%016llx\",\"name\":", (unsigned long long)n->guid);
    put_text(out, fabric_desc(f, n));
    fprintf(out, ",\"type\":\"%s\",\"role\":\"%s\",\"ports\":%u,\"system\":\"0x%016llx\"", type[n->type],
            node_role_name((enum node_role)n->role), n->num_ports, (unsigned long long)n->sys_guid);
    put_number(out, "lid", n->num_ports > 0 || n->type == NODE_SWITCH ? end->a.lid : 0, 0);
    put_number(out, "tier", n->tier, TIER_NONE);
    put_number(out, "su", n->su, SU_NONE);
    put_number(out, "rail", n->rail, RAIL_NONE);
    put_number(out, "host", n->host, ID_NONE);
    fprintf(out, ",\"part\":%u}", n->plane);
}

static void put_link(FILE *out, const struct fabric *f, const struct port *p)
{
    const struct port *q = fabric_port(f, p->peer);
    uint32_t mbps = port_rate_mbps(&p->a);
    fprintf(out, "{\"source\":\"0x%016llx\",\"target\":\"0x%016llx\",\"source_port\":%u,\"target_port\":%u",
            (unsigned long long)fabric_node(f, p->node)->guid,
            (unsigned long long)fabric_node(f, q->node)->guid, p->num, q->num);
    if (mbps > 0)
        fprintf(out, ",\"gbps\":%g", mbps / 1000.0);
    fprintf(out, ",\"state\":\"%s\"}", port_state_name((enum port_state)p->a.state));
}

int write_graph_json(const struct fabric *f, const char *name, FILE *out)
{
    const char *sep = "\n";
    fprintf(out, "{\"directed\":false,\"multigraph\":true,\"graph\":{\"name\":");
    put_text(out, name);
    fprintf(out, ",\"generation\":%llu},\"nodes\":[", (unsigned long long)f->generation);
    for (uint32_t i = 0; i < f->num_nodes; i++, sep = ",\n") {
        fputs(sep, out);
        put_node(out, f, &f->node[i]);
    }
    fputs("],\n\"links\":[", out);
    sep = "\n";
    for (uint32_t i = 0; i < f->num_ports; i++) {
        if (!port_valid(f->port[i].peer) || f->port[i].peer.i < i)
            continue;
        fputs(sep, out);
        put_link(out, f, &f->port[i]);
        sep = ",\n";
    }
    fputs("]}\n", out);
    return ferror(out) ? -EIO : 0;
}
