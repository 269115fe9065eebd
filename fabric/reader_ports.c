// SPDX-License-Identifier: Apache-2.0
// `ibnetdiscover -p`: one line a port.
//
//   CA   134  1 0x7cfe9003003b4bde 4x EDR - SW  1719 10 0x7cfe9003009ce5b0 ( 'o0001 HCA-1' - 'ib-i1l1s01' )
//   SW  2052 37 0x506b4b03005c2740 4x ???                                    'ib-i4l1s01'
//
// The GUID of an adapter's line is its port's: which ports are one adapter the report does not say, so each
// is a node of its own, its NodeGUID the port's. Port counts are the highest number seen. The speed of a port
// without peer means nothing.
#include "fabric/reader_priv.h"

struct ports_end {
    enum node_type type;
    uint32_t lid, num;
    uint64_t guid;
    struct span desc;
};

static bool scan_end(struct scan *s, struct ports_end *end)
{
    if (scan_lit(s, "CA "))
        end->type = NODE_CA;
    else if (scan_lit(s, "SW "))
        end->type = NODE_SWITCH;
    else if (scan_lit(s, "RT "))
        end->type = NODE_ROUTER;
    else
        return false;
    scan_ws(s);
    if (!scan_uint(s, 65535, &end->lid))
        return false;
    scan_ws(s);
    if (!scan_uint(s, 255, &end->num))
        return false;
    scan_ws(s);
    return s->end - s->p > 2 && s->p[0] == '0' && s->p[1] == 'x' && scan_hex(s, &end->guid);
}

bool ports_is_line(struct scan line)
{
    struct ports_end end;
    return scan_end(&line, &end);
}

// ( 'near' - 'far' ): names may hold quotes; the first "' - '" parts them.
static bool scan_names(struct scan *s, struct span *ret_near, struct span *ret_far)
{
    if (!scan_lit(s, "( '") || s->end - s->p < 3 || memcmp(s->end - 3, "' )", 3) != 0)
        return false;
    const char *end = s->end - 3;
    const char *mid = memmem(s->p, (size_t)(end - s->p), "' - '", 5);
    if (!mid)
        return false;
    *ret_near = (struct span){s->p, (uint32_t)(mid - s->p)};
    *ret_far = (struct span){mid + 5, (uint32_t)(end - mid - 5)};
    s->p = s->end;
    return true;
}

static struct span name_alone(struct scan s)
{
    while (s.end > s.p && (s.end[-1] == ' ' || s.end[-1] == '\t') && s.p[0] != '\'')
        s.end--;
    if (s.end - s.p >= 2 && s.p[0] == '\'' && s.end[-1] == '\'')
        return (struct span){s.p + 1, (uint32_t)(s.end - s.p - 2)};
    return (struct span){s.p, (uint32_t)(s.end - s.p)};
}

static uint32_t end_node(struct reader *r, const struct ports_end *end, unsigned file, uint32_t line)
{
    uint32_t i = graph_node_by_guid(r, end->guid, end->type, file, line);
    if (i == ID_NONE)
        return i;
    graph_record(r, i);
    struct raw_node *n = &r->g.node[i];
    if (!n->desc.len)
        n->desc = end->desc;
    if (end->num > n->top_port)
        n->top_port = (uint8_t)end->num;
    if (n->type == NODE_SWITCH && !n->lid)
        n->lid = (uint16_t)end->lid;
    return i;
}

static bool parse_line(struct scan s, struct ports_end *near, struct ports_end *far, struct raw_link *link,
                       bool *ret_unknown)
{
    if (!scan_end(&s, near))
        return false;
    scan_ws(&s);
    if (!scan_rate(&s, link, ret_unknown))
        return false;
    scan_ws(&s);
    while (s.end > s.p && s.end[-1] == '\t')
        s.end--;
    if (!scan_lit(&s, "- ")) {
        near->desc = name_alone(s);
        return true;
    }
    if (!scan_end(&s, far))
        return false;
    scan_ws(&s);
    return scan_names(&s, &near->desc, &far->desc);
}

static void read_line(struct reader *r, struct scan line, unsigned file, uint32_t num)
{
    struct ports_end near = {0}, far = {0};
    struct raw_link link;
    bool unknown = false;
    char buf[72];

    if (!parse_line(line, &near, &far, &link, &unknown) || !near.num || (far.guid && !far.num)) {
        reader_note(r, FINDING_WARNING, "bad-line", file, num, "not a line of a ports report: %s",
                    excerpt(&line, buf));
        return;
    }
    uint32_t a = end_node(r, &near, file, num);
    uint32_t z = far.guid ? end_node(r, &far, file, num) : ID_NONE;
    struct raw_edge *e = a != ID_NONE ? graph_add_edge(r, file, num) : NULL;
    if (!e)
        return;
    bool end_port = near.type != NODE_SWITCH;
    e->node = a;
    e->num = (uint8_t)near.num;
    e->lid = end_port ? (uint16_t)near.lid : 0;
    e->has_lid = end_port;
    e->guid = end_port ? near.guid : 0;
    if (z == ID_NONE)
        return;
    e->far = z;
    e->far_num = (uint8_t)far.num;
    e->far_lid = (uint16_t)far.lid;
    e->far_guid = far.type != NODE_SWITCH ? far.guid : 0;
    e->link = link;
    if (unknown)
        reader_note(r, FINDING_WARNING, "unknown-speed", file, num, "no width and speed that is known: %s",
                    excerpt(&line, buf));
}

void ports_read(struct reader *r, const char *text, size_t len, unsigned file)
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
