// SPDX-License-Identifier: Apache-2.0
// ibnetdiscover's text and ibsim's .net, which share their grammar: lines of `word=value` for the next
// record, a record line (Switch, Ca, Rt; ibsim also Hca, Router), then its port lines.
//
//   Switch  36 "S-0008f10500200134"   # "name" enhanced port 0 lid 1 lmc 0
//   [1]     "H-00117500007ea9b2"[1](117500007ea9b2)   # "name" lid 2 4xQDR s=4 w=2 v=4
//   [14][ext 2]     "S-0008f104003f5c40"[24][ext 15]  # "name" lid 208 4xSDR
//   [1](1/1/1) "S-fc6a1c0300b01000"[63]               # "name" lid 13 4xNDR           (ibdiagnet: a label)
//   [1](1)(b0cf0e0300c46648) "S-b0cf0e0300c46640"[65] # lid 25 lmc 0 "name" lid 24 4xNDR   (adapter: + its
//   GUID)
//
// Blanks may be missing anywhere (logs that lost their tabs). The two dialects differ in what a name is:
// a GUID for ibnetdiscover; for ibsim any string, while the GUID comes from a counter per node type that
// `switchguid=`, `caguid=` and `rtguid=` set: a switch takes one, other nodes one and one for each port (port
// GUID = node GUID + number). There width, speed and extspeed are masks of what is enabled, and a blank line
// ends a record.
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

#include "fabric/reader_priv.h"
#include "lib/arena.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

#define IBSIM_GUID_CA 0x100000 // where ibsim's counters start
#define IBSIM_GUID_SWITCH 0x200000

struct name_table { // ibsim: name -> node index
    uint32_t *slot;
    uint32_t mask, count;
};

struct topo {
    struct reader *r;
    bool ibsim;
    unsigned file;
    uint32_t line;
    // for the next record
    uint64_t sys_guid, guid, port_guid;
    uint32_t vendor_id;
    uint16_t device_id;
    // the record port lines belong to
    uint32_t node;    // ID_NONE: none, or one that is skipped
    bool skip;        // port lines of a record that is not used are not reported one by one
    uint64_t seen[4]; // its ports that have a line, by number
    // ibsim
    struct raw_link enabled;
    uint64_t counter[4], base[4]; // by node type
    struct span prefix;
    bool ended; // a blank line came after the record
    struct name_table names;
};

// ---- telling the dialects apart

struct head {
    enum node_type type;
    bool ibsim_word;
    uint32_t num_ports;
    struct span name;
};

static bool scan_head(struct scan *s, struct head *h)
{
    static const struct {
        const char *word;
        enum node_type type;
        bool ibsim;
    } words[] = {{"Switch", NODE_SWITCH, false},
                 {"Ca", NODE_CA, false},
                 {"Hca", NODE_CA, true},
                 {"Rt", NODE_ROUTER, false},
                 {"Router", NODE_ROUTER, true}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct scan at = *s;
        if (!scan_lit(&at, words[i].word))
            continue;
        h->type = words[i].type;
        h->ibsim_word = words[i].ibsim;
        scan_ws(&at);
        if (!scan_uint(&at, 65535, &h->num_ports))
            return false;
        scan_ws(&at);
        if (!scan_between(&at, '"', '"', &h->name) || !h->name.len)
            return false;
        *s = at;
        return true;
    }
    return false;
}

// "S-0008f10500200134"; the letter says what the node is.
static bool guid_name(struct span name, uint64_t *ret_guid, enum node_type *ret_type)
{
    struct scan s = {name.p, name.p + name.len};
    enum node_type type = scan_ch(&s, 'S') ? NODE_SWITCH : scan_ch(&s, 'H') ? NODE_CA : NODE_ROUTER;
    if (type == NODE_ROUTER && !scan_ch(&s, 'R'))
        return false;
    if (!scan_ch(&s, '-') || s.end - s.p < 8 || !scan_hex(&s, ret_guid) || !scan_done(&s))
        return false;
    *ret_type = type;
    return true;
}

static bool scan_setting(struct scan *s, const char *word, uint64_t *ret_v)
{
    struct scan at = *s;
    if (!scan_lit(&at, word))
        return false;
    scan_ws(&at);
    if (!scan_ch(&at, '='))
        return false;
    scan_ws(&at);
    if (!scan_number(&at, ret_v))
        return false;
    *s = at;
    return true;
}

static bool scan_string_setting(struct scan *s, const char *word, bool equals, struct span *ret_v)
{
    struct scan at = *s;
    if (!scan_lit(&at, word))
        return false;
    scan_ws(&at);
    if (equals && !scan_ch(&at, '='))
        return false;
    scan_ws(&at);
    if (!scan_between(&at, '"', '"', ret_v))
        return false;
    *s = at;
    return true;
}

enum topo_line topo_kind(struct scan line)
{
    struct head h;
    struct span text;
    uint64_t v;
    enum node_type type;

    if (scan_done(&line))
        return TOPO_NO;
    switch (*line.p) {
    case 'S':
    case 'C':
    case 'H':
    case 'R':
        if (!scan_head(&line, &h))
            return TOPO_NO;
        return !h.ibsim_word && guid_name(h.name, &v, &type) ? TOPO_IBNETDISCOVER : TOPO_IBSIM;
    case 'w':
    case 's':
    case 'e':
    case 'm':
    case 'i':
        return scan_setting(&line, "width", &v) || scan_setting(&line, "speed", &v) ||
                       scan_setting(&line, "extspeed", &v) ||
                       scan_string_setting(&line, "module", true, &text) ||
                       scan_string_setting(&line, "include", false, &text)
                   ? TOPO_IBSIM
                   : TOPO_NO;
    default:
        return TOPO_NO;
    }
}

// ---- names

static uint64_t span_hash(struct span s)
{
    uint64_t h = 0xcbf29ce484222325ULL;
    for (uint32_t i = 0; i < s.len; i++)
        h = (h ^ (uint8_t)s.p[i]) * 0x100000001b3ULL;
    return hash_mix64(h);
}

static uint32_t *name_slot(struct topo *t, struct span name)
{
    const struct name_table *n = &t->names;
    const struct graph *g = &t->r->g;
    for (uint32_t i = (uint32_t)span_hash(name) & n->mask;; i = (i + 1) & n->mask) {
        if (n->slot[i] == ID_NONE)
            return &n->slot[i];
        struct span is = g->node[n->slot[i]].name;
        if (is.len == name.len && memcmp(is.p, name.p, name.len) == 0)
            return &n->slot[i];
    }
}

static void names_grow(struct topo *t)
{
    uint32_t *old = t->names.slot, old_size = old ? t->names.mask + 1 : 0;
    uint32_t size = old_size ? 2 * old_size : 1024;
    t->names.slot = xreallocarray(NULL, size, sizeof(*t->names.slot));
    memset(t->names.slot, 0xff, size * sizeof(*t->names.slot));
    t->names.mask = size - 1;
    for (uint32_t i = 0; i < old_size; i++)
        if (old[i] != ID_NONE)
            *name_slot(t, t->r->g.node[old[i]].name) = old[i];
    free(old);
}

// A module's names are local to it: "a" in module "m" is "m#a"; "x#a" names another module's.
static struct span full_name(struct topo *t, struct span name)
{
    if (!t->prefix.len || memchr(name.p, '#', name.len))
        return name;
    uint32_t len = t->prefix.len + 1 + name.len;
    char *p = arena_alloc(t->r->arena, len);
    memcpy(p, t->prefix.p, t->prefix.len);
    p[t->prefix.len] = '#';
    memcpy(p + t->prefix.len + 1, name.p, name.len);
    return (struct span){p, len};
}

static uint32_t node_by_name(struct topo *t, struct span name)
{
    if (2 * (t->names.count + 1) > t->names.mask)
        names_grow(t);
    name = full_name(t, name);
    uint32_t *slot = name_slot(t, name);
    if (*slot != ID_NONE)
        return *slot;
    struct raw_node *n = graph_add_node(t->r, t->file, t->line);
    if (!n)
        return ID_NONE;
    n->name = name;
    t->names.count++;
    return *slot = t->r->g.num_nodes - 1;
}

static void note(struct topo *t, enum finding_severity s, const char *code, const char *text,
                 struct scan line)
{
    char buf[72];
    reader_note(t->r, s, code, t->file, t->line, "%s: %s", text, excerpt(&line, buf));
}

// ---- `word=value` lines

static bool read_guid_setting(struct topo *t, struct scan *s)
{
    static const struct {
        const char *word;
        enum node_type type;
    } words[] = {
        {"switchguid", NODE_SWITCH}, {"caguid", NODE_CA}, {"hcaguids", NODE_CA}, {"rtguid", NODE_ROUTER}};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        struct scan at = *s;
        uint64_t v;
        if (!scan_lit(&at, words[i].word))
            continue;
        bool add = scan_ch(&at, '+');
        if ((!add && !scan_ch(&at, '=')) || !(t->ibsim ? scan_number(&at, &v) : scan_hex(&at, &v)))
            return false;
        enum node_type type = words[i].type;
        if (!add)
            t->base[type] = v;
        t->counter[type] = add ? t->base[type] + v : v;
        t->guid = v;
        t->port_guid = 0;
        if (scan_ch(&at, '(') && !scan_hex(&at, &t->port_guid))
            return false;
        *s = at;
        return true;
    }
    return false;
}

static bool read_setting(struct topo *t, struct scan line)
{
    uint64_t v;
    if (scan_setting(&line, "vendid", &v)) {
        t->vendor_id = (uint32_t)v;
    } else if (scan_setting(&line, "devid", &v)) {
        t->device_id = (uint16_t)v;
    } else if (scan_setting(&line, "sysimgguid", &v)) {
        t->sys_guid = v;
    } else if (t->ibsim && scan_setting(&line, "width", &v)) {
        if (v < 1 || v > 31)
            return false;
        t->enabled.width = (uint8_t)v;
    } else if (t->ibsim && scan_setting(&line, "speed", &v)) {
        if (v < 1 || v > 7)
            return false;
        t->enabled.speed = (uint8_t)v;
    } else if (t->ibsim && scan_setting(&line, "extspeed", &v)) {
        if (v > 31)
            return false;
        t->enabled.ext = (uint8_t)v;
    } else {
        return read_guid_setting(t, &line);
    }
    return true;
}

// ---- record lines

// `lid N`, `lmc N`, at the cursor.
static bool scan_lid(struct scan *s, const char *word, uint32_t max, uint32_t *ret_v)
{
    struct scan at = *s;
    if (!scan_lit(&at, word) || !scan_ch(&at, ' '))
        return false;
    scan_ws(&at);
    if (!scan_uint(&at, max, ret_v))
        return false;
    *s = at;
    scan_ws(s);
    return true;
}

// What stands behind the record's name. ibsim takes a description without quotes as well, and ends a quoted
// one at the next quote.
static void read_head_rest(struct topo *t, struct scan s, struct raw_node *n)
{
    uint32_t v;
    scan_ws(&s);
    if (scan_ch(&s, '#')) {
        scan_ws(&s);
        if (t->ibsim ? !scan_between(&s, '"', '"', &n->desc) : !scan_quoted_greedy(&s, &n->desc)) {
            static const char *const stop[] = {" enhanced port ", " base port ", " lid ", " lmc "};
            const char *e = s.end;
            for (size_t i = 0; i < 4; i++) {
                const char *at = memmem(s.p, (size_t)(e - s.p), stop[i], strlen(stop[i]));
                e = at ? at : e;
            }
            n->desc = (struct span){s.p, (uint32_t)(e - s.p)};
            s.p = e;
        }
    }
    scan_ws(&s);
    if (scan_lit(&s, "enhanced port 0"))
        n->enhanced = true;
    else
        scan_lit(&s, "base port 0");
    scan_ws(&s);
    if (scan_lid(&s, "lid", 65535, &v))
        n->lid = (uint16_t)v;
    if (scan_lid(&s, "lmc", 7, &v))
        n->lmc = (uint8_t)v;
}

static uint32_t record_node(struct topo *t, const struct head *h, struct scan line)
{
    uint64_t guid;
    enum node_type type;

    if (h->num_ports < 1 || h->num_ports > SWITCH_MAX_PORTS) {
        note(t, FINDING_ERROR, "bad-record", "a node has 1 to 254 ports; the record is skipped", line);
        return ID_NONE;
    }
    if (t->ibsim)
        return node_by_name(t, h->name);
    if (!guid_name(h->name, &guid, &type) || type != h->type || guid == 0) {
        note(t, FINDING_ERROR, "bad-record", "the name is no GUID of such a node; the record is skipped",
             line);
        return ID_NONE;
    }
    if (t->guid && t->guid != guid)
        note(t, FINDING_WARNING, "guid-mismatch",
             "the GUID in the name is not that of the line before; the name's is used", line);
    return graph_node_by_guid(t->r, guid, type, t->file, t->line);
}

// ibsim's GUIDs, in the order of the records.
static void take_guid(struct topo *t, struct raw_node *n)
{
    uint64_t *c = &t->counter[n->type];
    n->guid = *c;
    *c += n->type == NODE_SWITCH ? 1 : (uint64_t)n->num_ports + 1;
    if (!n->sys_guid)
        n->sys_guid = n->guid;
    if (!n->desc.len)
        n->desc = n->name;
    n->defaults = t->enabled;
}

static void read_record(struct topo *t, const struct head *h, struct scan rest, struct scan line)
{
    uint32_t i = record_node(t, h, line);
    struct graph *g = &t->r->g;

    t->ended = false;
    t->skip = true;
    t->node = ID_NONE;
    memset(t->seen, 0, sizeof(t->seen));
    if (i != ID_NONE && g->node[i].record) {
        reader_note(t->r, FINDING_WARNING, "duplicate-record", t->file, t->line,
                    "\"%.*s\" has a record already (line %u); this one is skipped",
                    (int)(h->name.len < 64 ? h->name.len : 64), h->name.p, g->node[i].line);
        i = ID_NONE;
    }
    if (i != ID_NONE) {
        struct raw_node *n = &g->node[i];
        n->type = (uint8_t)h->type;
        n->num_ports = (uint8_t)h->num_ports;
        n->line = t->line;
        n->file = (uint16_t)t->file;
        n->desc = (struct span){0};
        n->sys_guid = t->sys_guid;
        n->vendor_id = t->vendor_id;
        n->device_id = t->device_id;
        n->port0_guid = !t->ibsim && h->type == NODE_SWITCH ? t->port_guid : 0;
        read_head_rest(t, rest, n);
        if (t->ibsim)
            take_guid(t, n);
        graph_record(t->r, i);
        t->node = i;
        t->skip = false;
    }
    t->guid = t->port_guid = t->sys_guid = 0;
    t->vendor_id = 0;
    if (!t->ibsim)
        t->device_id = 0; // ibsim keeps it for the records that follow
}

// ---- port lines

// What precedes the far node: label and GUID of the port itself. An adapter with one pair of brackets has its
// GUID in it; a label comes first when there are two.
static void scan_own_end(struct scan *s, bool is_switch, struct raw_edge *e)
{
    struct span in, first = {0}, second = {0};
    while (scan_between(s, '[', ']', &in)) // [ext 2]
        e->label = in;
    if (scan_between(s, '(', ')', &first))
        scan_between(s, '(', ')', &second);
    scan_ws(s);
    if (second.len || is_switch) {
        if (first.len)
            e->label = first;
        first = second;
    }
    if (!first.len)
        return;
    struct scan guid = {first.p, first.p + first.len};
    if (!scan_hex(&guid, &e->guid) || !scan_done(&guid)) {
        e->guid = 0;
        e->label = first;
    }
}

static bool scan_far_end(struct scan *s, struct span *ret_name, struct raw_edge *e)
{
    struct span in;
    uint32_t num = 1; // what ibsim takes when there is none
    if (!scan_between(s, '"', '"', ret_name) || !ret_name->len)
        return false;
    if (scan_ch(s, '[') && (!scan_uint(s, 255, &num) || !scan_ch(s, ']') || num == 0))
        return false;
    e->far_num = (uint8_t)num;
    while (scan_between(s, '[', ']', &in))
        ;
    if (scan_between(s, '(', ')', &in)) {
        struct scan guid = {in.p, in.p + in.len};
        if (!scan_hex(&guid, &e->far_guid) || !scan_done(&guid))
            e->far_guid = 0; // a label
    }
    scan_ws(s);
    return true;
}

// `s=4 w=2 v=4 e=4`. In ibsim's files these are what is enabled; ibnetdiscover -f prints what is active,
// which the rate says as well, and the VL capability.
static void scan_options(struct topo *t, struct scan *s, struct raw_edge *e)
{
    for (scan_ws(s); s->end - s->p > 2 && s->p[1] == '='; scan_ws(s)) {
        char key = *s->p;
        struct scan at = {s->p + 2, s->end};
        uint64_t v;
        if (!scan_number(&at, &v) || v > 255)
            return;
        *s = at;
        if (key == 'v' && v <= 5)
            e->vl_cap = (uint8_t)v;
        else if (t->ibsim && key == 'w' && v >= 1 && v <= 31)
            e->link.width = (uint8_t)v;
        else if (t->ibsim && key == 's' && v <= 7)
            e->link.speed = v ? (uint8_t)v : 4;
        else if (t->ibsim && key == 'e' && v <= 31)
            e->link.ext = (uint8_t)v;
        else if (t->ibsim && key != 'v')
            return;
    }
}

// A rate as a mask of what is enabled: up to it.
static void enable_rate(struct raw_link *mask, const struct raw_link *rate)
{
    if (rate->width)
        mask->width = rate->width == 2 ? 3 : rate->width == 8 ? 11 : rate->width;
    if (rate->speed)
        mask->speed = (uint8_t)(2 * rate->speed - 1);
    if (rate->ext)
        mask->ext = (uint8_t)(2 * rate->ext - 1);
    if (rate->ext || rate->fdr10)
        mask->fdr10 = true;
}

// Behind the '#': [lid N lmc N] "name" lid N 4xHDR [options]. False when it is not that.
static bool read_comment(struct topo *t, struct scan s, struct raw_edge *e, struct span *ret_desc,
                         bool *ret_unknown)
{
    struct raw_link link;
    uint32_t v;
    bool unknown = false;

    scan_ws(&s);
    if (scan_lid(&s, "lid", 65535, &v)) {
        e->lid = (uint16_t)v;
        e->has_lid = true;
    }
    if (scan_lid(&s, "lmc", 7, &v))
        e->lmc = (uint8_t)v;
    if (!scan_quoted_greedy(&s, ret_desc))
        return false;
    scan_ws(&s);
    if (!scan_lid(&s, "lid", 65535, &v))
        return false;
    e->far_lid = (uint16_t)v;
    if (scan_rate(&s, &link, &unknown)) {
        if (t->ibsim)
            enable_rate(&e->link, &link);
        else
            e->link = link;
    } else {
        unknown = true;
    }
    *ret_unknown = unknown;
    scan_options(t, &s, e);
    return true;
}

static uint32_t far_node(struct topo *t, struct span name, struct span desc, unsigned num)
{
    uint64_t guid;
    enum node_type type;
    uint32_t i;

    if (t->ibsim) {
        i = node_by_name(t, name);
    } else {
        if (!guid_name(name, &guid, &type))
            return ID_NONE;
        i = graph_node_by_guid(t->r, guid, type, t->file, t->line);
    }
    if (i == ID_NONE)
        return ID_NONE;
    struct raw_node *n = &t->r->g.node[i];
    if (num > n->top_port)
        n->top_port = (uint8_t)num;
    if (!n->record && !n->desc.len)
        n->desc = desc;
    return i;
}

static void read_port(struct topo *t, struct scan line)
{
    struct scan s = line;
    struct raw_edge e = {.far = ID_NONE};
    struct span name, desc = {0};
    uint32_t num;
    bool unknown = false;

    if (t->node == ID_NONE) {
        if (!t->skip)
            note(t, FINDING_WARNING, "bad-line", "a port line without a record before it", line);
        return;
    }
    bool is_switch = t->r->g.node[t->node].type == NODE_SWITCH;
    e.link = t->ibsim ? t->enabled : (struct raw_link){0};
    bool ok = scan_ch(&s, '[') && scan_uint(&s, 255, &num) && scan_ch(&s, ']') && num > 0;
    if (ok)
        scan_own_end(&s, is_switch, &e);
    if (!ok || !scan_far_end(&s, &name, &e)) {
        note(t, FINDING_WARNING, "bad-line", "not a port line", line);
        return;
    }
    if (t->seen[num / 64] >> (num % 64) & 1) {
        note(t, FINDING_WARNING, "duplicate-port", "this port has a line already; this one is not used",
             line);
        return;
    }
    scan_options(t, &s, &e);
    if (scan_ch(&s, '#')) {
        if (!read_comment(t, s, &e, &desc, &unknown) && !t->ibsim)
            note(t, FINDING_WARNING, "bad-line", "what follows the # is not understood; the link is used",
                 line);
        else if (unknown && !t->ibsim)
            note(t, FINDING_WARNING, "unknown-speed", "no width and speed that is known", line);
    } else if (!t->ibsim) {
        note(t, FINDING_WARNING, "unknown-speed", "no width and speed", line);
    }
    e.far = far_node(t, name, desc, e.far_num);
    if (e.far == ID_NONE) {
        if (!t->r->g.full)
            note(t, FINDING_WARNING, "bad-line", "the far node's name is no GUID", line);
        return;
    }
    if (t->ended)
        note(t, FINDING_WARNING, "port-after-record",
             "ibsim ignores a port line behind a blank line; it is used here", line);
    t->seen[num / 64] |= 1ull << (num % 64);
    struct raw_edge *to = graph_add_edge(t->r, t->file, t->line);
    if (!to)
        return;
    e.node = t->node;
    e.num = (uint8_t)num;
    e.line = t->line;
    e.file = (uint16_t)t->file;
    if (t->ibsim) { // the file's port GUIDs are not what ibsim gives
        e.guid = is_switch ? 0 : t->r->g.node[t->node].guid + num;
        e.far_guid = 0;
    }
    *to = e;
}

// ---- the rest

static void read_initiated(struct topo *t, struct scan s)
{
    uint64_t node, port;
    if (!scan_lit(&s, "# Initiated from node ") || !scan_hex(&s, &node) || !scan_lit(&s, " port ") ||
        !scan_hex(&s, &port))
        return;
    t->r->g.sm_node = node;
    t->r->g.sm_port = port;
}

static void read_file(struct topo *t, const char *text, size_t len);

static void read_include(struct topo *t, struct scan line)
{
    struct span path, text;
    unsigned file, old_file = t->file;
    uint32_t old_line = t->line;

    if (!scan_string_setting(&line, "include", false, &path)) {
        note(t, FINDING_WARNING, "bad-line", "include wants a file name in quotes", line);
        return;
    }
    t->node = ID_NONE;
    if (!reader_include(t->r, path, t->file, t->line, &text, &file))
        return;
    t->r->depth++;
    t->file = file;
    read_file(t, text.p, text.len);
    t->r->depth--;
    t->file = old_file;
    t->line = old_line;
    t->node = ID_NONE;
}

static bool is_word(struct scan s, const char *word)
{
    return scan_lit(&s, word) && (scan_done(&s) || *s.p == ' ' || *s.p == '\t');
}

// ibsim's commands to itself: they change the fabric (Unlink, ReLink) or only its behaviour (Error, …).
static void read_do(struct topo *t, struct scan line)
{
    note(t, FINDING_WARNING, "command-ignored", "commands to ibsim are not carried out", line);
}

static void read_other(struct topo *t, struct scan line)
{
    struct span prefix;
    if (t->ibsim && is_word(line, "include"))
        read_include(t, line);
    else if (t->ibsim && scan_string_setting(&line, "module", true, &prefix))
        t->prefix = prefix;
    else if (t->ibsim && is_word(line, "do"))
        read_do(t, line);
    else if (t->ibsim && *line.p == '@')
        note(t, FINDING_WARNING, "alias-ignored", "port aliases are not supported", line);
    else if (is_word(line, "Chassis") || is_word(line, "Non-Chassis"))
        ; // headings between records
    else
        note(t, FINDING_WARNING, "unknown-line", "not understood", line);
}

static void read_line(struct topo *t, struct scan line)
{
    struct scan s = line;
    struct head h;

    scan_ws(&s);
    if (scan_done(&s)) {
        t->ended = t->ibsim && t->node != ID_NONE;
        return;
    }
    if (*s.p == '#') {
        if (!t->ibsim)
            read_initiated(t, s);
        return;
    }
    if (*s.p == '[') {
        read_port(t, s);
        return;
    }
    line = s;
    if (scan_head(&s, &h))
        read_record(t, &h, s, line);
    else if (!read_setting(t, line))
        read_other(t, line);
}

static void read_file(struct topo *t, const char *text, size_t len)
{
    struct lines l;
    struct scan line;

    lines_init(&l, text, len);
    while (!t->r->g.full && lines_next(&l, &line)) {
        t->line = l.line;
        read_line(t, line);
    }
}

void topo_read(struct reader *r, const char *text, size_t len, unsigned file, bool ibsim)
{
    struct topo t = {
        .r = r,
        .ibsim = ibsim,
        .file = file,
        .node = ID_NONE,
        .enabled = {.width = 2, .speed = 1},
        .counter = {0, IBSIM_GUID_CA, IBSIM_GUID_SWITCH, 0},
        .base = {0, IBSIM_GUID_CA, IBSIM_GUID_SWITCH, 0},
    };
    r->g.masks = r->g.names_only = ibsim;
    r->g.link_state = ibsim ? PORT_INIT : PORT_ACTIVE;
    read_file(&t, text, len);
    if (ibsim && r->g.num_order)
        r->g.sm_index = r->g.order[0];
    free(t.names.slot);
}
