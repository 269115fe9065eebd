// SPDX-License-Identifier: Apache-2.0
// ibdiagnet's, ibdm's and OpenSM's .lst: one line a link, numbers in hex without prefix.
//
//   { CA Ports:01 SystemGUID:… NodeGUID:… PortGUID:… VenID:000002c9 DevID:1021 Rev:00000000 {name} LID:00b5
//   PN:01 } { SW Ports:41 … } PHY=4x LOG=ACT SPD=100
//
// (on one line). OpenSM marks the manager's node as CA-SM or SW-SM and writes each link once from either end.
// ibdm prints a 16-bit DevID in the upper half of 32, and zeroes for what it did not read.
#include "fabric/reader_priv.h"

struct lst_end {
    enum node_type type;
    bool sm;
    uint64_t ports, sys_guid, guid, port_guid, vendor, device, revision, lid, num;
    struct span desc;
};

static bool scan_field(struct scan *s, const char *key, uint64_t *ret_v)
{
    scan_ws(s);
    return scan_lit(s, key) && scan_hex(s, ret_v);
}

static bool scan_end(struct scan *s, struct lst_end *end)
{
    struct span kind;
    scan_ws(s);
    if (!scan_ch(s, '{'))
        return false;
    scan_ws(s);
    if (!scan_word(s, &kind))
        return false;
    end->sm = kind.len == 5 && memcmp(kind.p + 2, "-SM", 3) == 0;
    kind.len = end->sm ? 2 : kind.len;
    if (span_is(kind, "CA"))
        end->type = NODE_CA;
    else if (span_is(kind, "SW"))
        end->type = NODE_SWITCH;
    else if (span_is(kind, "RT") || span_is(kind, "Rt"))
        end->type = NODE_ROUTER;
    else
        return false;
    if (!scan_field(s, "Ports:", &end->ports) || !scan_field(s, "SystemGUID:", &end->sys_guid) ||
        !scan_field(s, "NodeGUID:", &end->guid) || !scan_field(s, "PortGUID:", &end->port_guid) ||
        !scan_field(s, "VenID:", &end->vendor) || !scan_field(s, "DevID:", &end->device) ||
        !scan_field(s, "Rev:", &end->revision))
        return false;
    scan_ws(s);
    if (!scan_ch(s, '{'))
        return false;
    const char *e = memmem(s->p, (size_t)(s->end - s->p), "} LID:", 6); // names may hold braces
    if (!e)
        return false;
    end->desc = (struct span){s->p, (uint32_t)(e - s->p)};
    s->p = e + 1;
    if (!scan_field(s, "LID:", &end->lid) || !scan_field(s, "PN:", &end->num))
        return false;
    scan_ws(s);
    return scan_ch(s, '}');
}

bool lst_is_line(struct scan line)
{
    struct lst_end end = {0};
    return !scan_done(&line) && *line.p == '{' && scan_end(&line, &end);
}

static uint8_t state_by_name(struct span s)
{
    return span_is(s, "DWN")   ? PORT_DOWN
           : span_is(s, "INI") ? PORT_INIT
           : span_is(s, "ARM") ? PORT_ARMED
                               : PORT_ACTIVE;
}

// Gb/s of a lane, as ibdiagnet rounds them.
static bool speed_by_rate(struct span s, struct raw_link *link)
{
    static const struct {
        const char *rate;
        const char *name;
    } table[] = {{"2.5", "SDR"}, {"5", "DDR"},  {"10", "QDR"}, {"FDR10", "FDR10"}, {"FDR_10", "FDR10"},
                 {"14", "FDR"},  {"25", "EDR"}, {"50", "HDR"}, {"100", "NDR"},     {"200", "XDR"}};
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
        if (span_is(s, table[i].rate))
            return speed_by_name((struct span){table[i].name, (uint32_t)strlen(table[i].name)}, link);
    return false;
}

// PHY=4x LOG=ACT SPD=100, in any order, none needed. False when width or speed is given and not known.
static bool scan_tail(struct scan *s, struct raw_link *link, uint8_t *ret_state)
{
    struct span w;
    bool ok = true;
    for (scan_ws(s); scan_word(s, &w); scan_ws(s)) {
        struct scan word = {w.p, w.p + w.len};
        uint32_t lanes;
        if (scan_lit(&word, "PHY=") && scan_uint(&word, 99, &lanes))
            ok &= (link->width = width_code(lanes)) != 0;
        else if (scan_lit(&word, "LOG="))
            *ret_state = state_by_name((struct span){word.p, (uint32_t)(word.end - word.p)});
        else if (scan_lit(&word, "SPD="))
            ok &= speed_by_rate((struct span){word.p, (uint32_t)(word.end - word.p)}, link);
    }
    return ok;
}

static uint32_t end_node(struct reader *r, const struct lst_end *end, unsigned file, uint32_t line)
{
    uint32_t i = graph_node_by_guid(r, end->guid, end->type, file, line);
    if (i == ID_NONE)
        return i;
    struct raw_node *n = &r->g.node[i];
    if (!n->record) {
        graph_record(r, i);
        n->num_ports = (uint8_t)end->ports;
        n->sys_guid = end->sys_guid;
        n->desc = end->desc;
    }
    uint64_t dev = end->device > 0xffff && !(end->device & 0xffff) ? end->device >> 16 : end->device;
    n->device_id = n->device_id ? n->device_id : (uint16_t)dev;
    n->vendor_id = n->vendor_id ? n->vendor_id : (uint32_t)end->vendor;
    n->revision = n->revision ? n->revision : (uint32_t)end->revision;
    if (n->type == NODE_SWITCH) {
        n->lid = n->lid ? n->lid : (uint16_t)end->lid;
        n->port0_guid = end->port_guid;
    }
    if (end->sm) {
        r->g.sm_node = end->guid;
        r->g.sm_port = end->port_guid;
    }
    return i;
}

static void add_edge(struct reader *r, const struct raw_edge *proto, uint32_t a, const struct lst_end *near,
                     uint32_t z, const struct lst_end *far, bool implied)
{
    struct raw_edge *e = graph_add_edge(r, proto->file, proto->line);
    if (!e)
        return;
    *e = *proto;
    e->node = a;
    e->num = (uint8_t)near->num;
    e->far = z;
    e->far_num = (uint8_t)far->num;
    e->lid = near->type != NODE_SWITCH ? (uint16_t)near->lid : 0;
    e->has_lid = near->type != NODE_SWITCH;
    e->guid = near->type != NODE_SWITCH ? near->port_guid : 0;
    e->far_lid = (uint16_t)far->lid;
    e->far_guid = far->type != NODE_SWITCH ? far->port_guid : 0;
    e->implied = implied;
}

static bool end_ok(const struct lst_end *end)
{
    return end->guid && end->ports >= 1 && end->ports <= SWITCH_MAX_PORTS && end->num >= 1 &&
           end->num <= 255 && end->lid <= 0xffff;
}

static void read_line(struct reader *r, struct scan line, unsigned file, uint32_t num)
{
    struct lst_end near = {0}, far = {0};
    struct raw_edge proto = {.line = num, .file = (uint16_t)file};
    struct scan s = line;
    char buf[72];

    if (!scan_end(&s, &near) || !scan_end(&s, &far) || !end_ok(&near) || !end_ok(&far)) {
        reader_note(r, FINDING_WARNING, "bad-line", file, num, "not a link: %s", excerpt(&line, buf));
        return;
    }
    struct scan tail = s;
    if (!scan_tail(&s, &proto.link, &proto.state))
        reader_note(r, FINDING_WARNING, "unknown-speed", file, num, "width or speed is not known: %s",
                    excerpt(&tail, buf));
    else if (!proto.link.width || !proto.link.speed)
        reader_note(r, FINDING_INFO, "no-speed", file, 0, "lines without width or speed (ibdm writes such)");
    uint32_t a = end_node(r, &near, file, num), z = end_node(r, &far, file, num);
    if (a == ID_NONE || z == ID_NONE)
        return;
    add_edge(r, &proto, a, &near, z, &far, false);
    add_edge(r, &proto, z, &far, a, &near, true);
}

void lst_read(struct reader *r, const char *text, size_t len, unsigned file)
{
    struct lines l;
    struct scan line;

    r->g.link_state = PORT_ACTIVE;
    lines_init(&l, text, len);
    while (!r->g.full && lines_next(&l, &line)) {
        struct scan s = line;
        scan_ws(&s);
        if (!scan_done(&s) && *s.p != '#')
            read_line(r, s, file, l.line);
    }
}
