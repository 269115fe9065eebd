// SPDX-License-Identifier: Apache-2.0
// Tables read from a dump, in the two dialects there are:
//   OpenSM's opensm-lfts.dump   Unicast lids [0-695] of switch Lid 33 guid 0x... ('name'):
//                               0x0001 034 # Channel Adapter portguid 0x...: 'name'
//   dump_fts and ibroute        Unicast lids [0x0-0x9b] of switch DR path ... guid 0x... (name):
//                               0x0001 021 : (Switch portguid 0x...: 'name')
// Lines of other forms (titles, counts, multicast tables) are passed over. Where a line names the port GUID
// and the fabric knows it under another LID, the entry goes to the LID it has now.
#include "routing/route_priv.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "lib/guid.h"

#define LINE_MAX_CHARS 512

struct reading {
    const struct fabric *f;
    struct fabric_tables *t;
    uint32_t line;
    uint32_t sw; // ID_NONE: none, or one that the fabric has not
    uint32_t sections, unknown, entries, moved;
    uint64_t first_unknown;
};

static int bad(const struct reading *r, struct err *e, const char *what)
{
    char where[40];
    snprintf(where, sizeof(where), "line %u", r->line);
    return err_set(e, -EINVAL, where, "%s; a forwarding table dump of OpenSM or dump_fts is expected", what);
}

static bool guid_after(const char *line, const char *word, uint64_t *ret)
{
    const char *p = strstr(line, word);
    if (!p)
        return false;
    p += strlen(word);
    char *end;
    errno = 0;
    *ret = strtoull(p, &end, 16);
    return end != p && errno == 0;
}

static int section(struct reading *r, const char *line, struct err *e)
{
    uint64_t guid;
    r->sw = ID_NONE;
    if (strncmp(line, "Unicast", 7) != 0) // multicast
        return 0;
    if (!guid_after(line, " guid ", &guid))
        return bad(r, e, "a table without its switch's GUID");
    r->sections++;
    const struct node *n = fabric_by_guid(r->f, guid);
    if (n && n->type == NODE_SWITCH) {
        r->sw = n->sw;
    } else {
        if (r->unknown++ == 0)
            r->first_unknown = guid;
    }
    return 0;
}

// The LID that the port named on the line has now.
static uint32_t lid_now(struct reading *r, const char *rest, uint32_t lid)
{
    uint64_t guid;
    if (!guid_after(rest, "portguid ", &guid))
        return lid;
    port_id id = fabric_by_port_guid(r->f, guid);
    if (!port_valid(id))
        return lid;
    const struct port *p = fabric_port(r->f, id);
    if (p->a.lid == 0 || (lid >= p->a.lid && lid - p->a.lid < 1u << p->a.lmc))
        return lid;
    r->moved++;
    return p->a.lid;
}

static int entry(struct reading *r, const char *line, struct err *e)
{
    char *end;
    unsigned long lid = strtoul(line, &end, 16);
    if (lid == 0 || lid > LID_UCAST_MAX)
        return bad(r, e, "a LID beyond 1..0xbfff");
    while (*end == ' ' || *end == '\t')
        end++;
    if (!isdigit((unsigned char)*end)) // "UNREACHABLE"
        return 0;
    unsigned long port = strtoul(end, &end, 10);
    if (port > LFT_DROP)
        return bad(r, e, "a port number beyond 255");
    if (r->sw == ID_NONE)
        return 0;
    lid = lid_now(r, end, (uint32_t)lid);
    if (lid < r->t->lids)
        tables_row(r->t, r->sw)[lid] = (uint8_t)port;
    r->entries += port != LFT_DROP;
    return 0;
}

static int line_of(struct reading *r, char *line, struct err *e)
{
    while (*line == ' ' || *line == '\t')
        line++;
    if (strstr(line, "icast ") && strstr(line, "of switch"))
        return section(r, line, e);
    if (line[0] == '0' && (line[1] == 'x' || line[1] == 'X') && isxdigit((unsigned char)line[2]))
        return r->sections ? entry(r, line, e) : bad(r, e, "an entry before any table");
    return 0;
}

static int all_lines(struct reading *r, const char *text, size_t len, struct err *e)
{
    char line[LINE_MAX_CHARS];
    for (size_t at = 0; at < len;) {
        const char *nl = memchr(text + at, '\n', len - at);
        size_t n = nl ? (size_t)(nl - (text + at)) : len - at;
        size_t keep = n < sizeof(line) - 1 ? n : sizeof(line) - 1;
        memcpy(line, text + at, keep);
        line[keep] = 0;
        r->line++;
        int rc = line_of(r, line, e);
        if (rc)
            return rc;
        at += n + 1;
    }
    return 0;
}

uint32_t rfile_missing(const struct fabric *f, const struct fabric_tables *t, uint16_t *ret_first)
{
    uint32_t n = 0;
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        bool any = f->lid_port[lid] == ID_NONE;
        for (uint32_t s = 0; s < t->num_switches && !any; s++)
            any = tables_port(t, s, (uint16_t)lid) != LFT_DROP;
        if (!any && n++ == 0)
            *ret_first = (uint16_t)lid;
    }
    return n;
}

int rfile_read(const struct fabric *f, const char *text, size_t len, struct fabric_tables **ret,
               struct err *e)
{
    if (!text)
        return err_set(e, -EINVAL, NULL, "engine file: no table dump was given");
    if (len == 0)
        return err_set(e, -EINVAL, NULL, "engine file: the table dump is empty");
    struct reading r = {.f = f, .sw = ID_NONE};
    r.t = tables_new(f, f->top_lid, "file");
    int rc = all_lines(&r, text, len, e);
    if (rc == 0 && r.sections == 0)
        rc = bad(&r, e, "no forwarding table in the text");
    if (rc == 0 && r.sections == r.unknown)
        rc = err_set(e, -EINVAL, NULL,
                     "none of the %u tables is of a switch in the fabric (the first is " GUID_FMT ")",
                     r.sections, GUID_ARG(r.first_unknown));
    if (rc == 0 && r.entries == 0)
        rc = bad(&r, e, "tables without entries");
    if (rc) {
        tables_unref(r.t);
        return rc;
    }
    *ret = r.t;
    return 0;
}
