// SPDX-License-Identifier: Apache-2.0
// What people write for a node or port: "0x…" (NodeGUID or PortGUID), a GID, a LID, a name, "name[3]". Names
// are labels that repeat: several nodes of one name are an error that lists them.
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/resolve.h"
#include "lib/buf.h"
#include "lib/guid.h"

#define CANDIDATES 10

static bool parse_lid(const char *s, uint16_t *ret)
{
    size_t n = strlen(s);
    if (n == 0 || n > 5 || strspn(s, "0123456789") != n)
        return false;
    unsigned long v = strtoul(s, NULL, 10);
    if (v == 0 || v > LID_UCAST_MAX)
        return false;
    *ret = (uint16_t)v;
    return true;
}

static void set_port(const struct fabric *f, port_id p, struct place *ret)
{
    *ret = (struct place){.node = fabric_node(f, fabric_port(f, p)->node), .port = p};
}

// "fe80::ec0d:9a03:2:c050", as libraries write a GID into their logs: the port's GUID is its lower half.
static bool parse_gid(const char *s, uint64_t *ret)
{
    uint8_t gid[16];
    if (inet_pton(AF_INET6, s, gid) != 1 || gid[0] == 0xff)
        return false;
    *ret = 0;
    for (unsigned i = 8; i < 16; i++)
        *ret = *ret << 8 | gid[i];
    return *ret != 0;
}

static bool by_guid(const struct fabric *f, const char *text, struct place *ret)
{
    uint64_t guid;
    const struct node *n;
    if (guid_parse(text, &guid) != 0 && !parse_gid(text, &guid))
        return false;
    port_id p = fabric_by_port_guid(f, guid);
    if ((n = fabric_by_guid(f, guid)) != NULL) {
        *ret = (struct place){.node = n, .port = PORT_NONE};
        // A NodeGUID that is also the PortGUID of one of several ports means that port.
        if (port_valid(p) && fabric_node(f, fabric_port(f, p)->node) == n && n->type != NODE_SWITCH)
            ret->port = p;
        return true;
    }
    if (!port_valid(p))
        return false;
    set_port(f, p, ret);
    return true;
}

static unsigned by_name(const struct fabric *f, const char *text, size_t len,
                        const struct node *found[CANDIDATES])
{
    unsigned n = 0;
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const char *d = fabric_desc(f, &f->node[i]);
        if (strncmp(d, text, len) == 0 && d[len] == 0) {
            if (n < CANDIDATES)
                found[n] = &f->node[i];
            n++;
        }
    }
    return n;
}

static int ambiguous(const struct fabric *f, const char *text, const struct node *const *found, unsigned n,
                     struct err *e)
{
    struct buf b = {0};
    (void)f;
    for (unsigned i = 0; i < n && i < CANDIDATES; i++)
        buf_printf(&b, "%s" GUID_FMT, i ? ", " : "", GUID_ARG(found[i]->guid));
    err_set(e, -EEXIST, text, "%u nodes have this name; give one of their GUIDs: %s%s", n, b.data,
            n > CANDIDATES ? ", …" : "");
    buf_done(&b);
    return -EEXIST;
}

static int unknown(const struct fabric *f, const char *text, struct err *e)
{
    struct buf b = {0};
    unsigned n = 0;
    for (uint32_t i = 0; i < f->num_nodes && text[0] && n < CANDIDATES; i++) {
        const char *d = fabric_desc(f, &f->node[i]);
        if (strcasestr(d, text) != NULL && b.len + strlen(d) < 280)
            buf_printf(&b, "%s\"%s\"", n++ ? ", " : "", d);
    }
    if (n > 0)
        err_set(e, -ENOENT, text, "no node has this name; names that contain it: %s", b.data);
    else
        err_set(e, -ENOENT, text, "no node or port has this GUID, LID or name");
    buf_done(&b);
    return -ENOENT;
}

// "name[3]": length of the name, or 0.
static size_t split_port(const char *text, unsigned *ret_num)
{
    size_t len = strlen(text);
    const char *open = strrchr(text, '[');
    char *end;
    if (len < 4 || text[len - 1] != ']' || open == NULL || open == text || !isdigit((unsigned char)open[1]))
        return 0;
    unsigned long v = strtoul(open + 1, &end, 10);
    if (end != text + len - 1 || v > 255)
        return 0;
    *ret_num = (unsigned)v;
    return (size_t)(open - text);
}

static int with_port(const struct fabric *f, const char *text, size_t len, unsigned num, struct place *ret,
                     struct err *e)
{
    const struct node *found[CANDIDATES];
    char name[140];
    unsigned n = by_name(f, text, len, found);

    snprintf(name, sizeof(name), "%.*s", (int)(len < 139 ? len : 139), text);
    if (n > 1)
        return ambiguous(f, name, found, n, e);
    if (n == 1)
        *ret = (struct place){.node = found[0], .port = PORT_NONE};
    else if (!by_guid(f, name, ret))
        return unknown(f, name, e);
    ret->port = fabric_port_at(f, ret->node, num);
    if (!port_valid(ret->port))
        return err_set(e, -ENOENT, text, "the node has no port %u", num);
    return 0;
}

int resolve(const struct fabric *f, const char *text, int flags, struct place *ret, struct err *e)
{
    const struct node *found[CANDIDATES];
    uint16_t lid;
    unsigned num = 0;

    if ((flags & RESOLVE_LID) && parse_lid(text, &lid)) {
        port_id p = fabric_by_lid(f, lid);
        if (!port_valid(p))
            return err_set(e, -ENOENT, text, "no port has LID %u", lid);
        set_port(f, p, ret);
        return 0;
    }
    unsigned n = text[0] ? by_name(f, text, strlen(text), found) : 0;
    if (n > 1)
        return ambiguous(f, text, found, n, e);
    if (n == 1) {
        *ret = (struct place){.node = found[0], .port = PORT_NONE};
        return 0;
    }
    if (by_guid(f, text, ret))
        return 0;
    size_t len = split_port(text, &num);
    return len > 0 ? with_port(f, text, len, num, ret, e) : unknown(f, text, e);
}

int resolve_element(const struct fabric *f, const char *text, struct place *ret, struct err *e)
{
    int rc = resolve(f, text, 0, ret, e);
    if (rc == 0 && port_valid(ret->port) && text[strlen(text) - 1] != ']')
        ret->port = PORT_NONE;
    return rc;
}
