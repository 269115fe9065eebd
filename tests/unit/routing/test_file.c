// SPDX-License-Identifier: Apache-2.0
// Tables from dumps, and traced paths.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/err.h"
#include "lib/guid.h"
#include "tests/unit/routing/rig.h"

// A table in one of the two dialects.
static void dump(const struct fabric *f, const struct fabric_tables *t, bool opensm, uint16_t lid_shift,
                 struct buf *b)
{
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *n = fabric_switch(f, s);
        if (opensm)
            buf_printf(b, "Unicast lids [0-%u] of switch Lid %u guid " GUID_FMT " ('%s'):\n", f->top_lid,
                       f->port[n->first_port].a.lid, GUID_ARG(n->guid), fabric_desc(f, n));
        else
            buf_printf(b,
                       "Unicast lids [0x0-0x%x] of switch DR path slid 0; dlid 0; 0,1 guid " GUID_FMT
                       " (%s):\n  Lid  Out   Destination\n       Port     Info \n",
                       f->top_lid, GUID_ARG(n->guid), fabric_desc(f, n));
        for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
            if (f->lid_port[lid] == ID_NONE || tables_port(t, s, (uint16_t)lid) == LFT_DROP)
                continue;
            const struct port *p = &f->port[f->lid_port[lid]];
            const char *desc = fabric_desc(f, fabric_node(f, p->node));
            buf_printf(b,
                       opensm ? "0x%04x %03u # Channel Adapter portguid " GUID_FMT ": '%s'\n"
                              : "0x%04x %03u : (Channel Adapter portguid " GUID_FMT ": '%s')\n",
                       lid + lid_shift, tables_port(t, s, (uint16_t)lid), GUID_ARG(p->guid), desc);
        }
        buf_printf(b, "%u valid lids dumped \n", f->top_lid);
    }
}

static int read_text(const struct fabric *f, const char *text, size_t len, struct route_result *r,
                     struct err *e)
{
    struct route_opts o = {.engine = ROUTE_FILE, .file_text = text, .file_len = len};
    *e = (struct err){0};
    return route_compute(f, &o, r, e);
}

static void both_dialects(void **state)
{
    const struct fabric *f = rig_named("rail-64");
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    for (int k = 0; k < 4; k++) {
        struct buf b = {0};
        struct route_result r;
        struct err e;
        dump(f, t, k % 2, k / 2 ? 1000 : 0, &b); // with LIDs of another time the port GUIDs decide
        assert_int_equal(read_text(f, b.data, b.len, &r, &e), 0);
        assert_int_equal(tables_compare(t, r.tables).entries, 0);
        assert_int_equal(r.engine, ROUTE_FILE);
        assert_string_equal(r.tables->engine, "file");
        tables_unref(r.tables);
        buf_done(&b);
    }
    tables_unref(t);
    fabric_unref(f);
}

static void refuse(const char *text, const char *why, const char *where)
{
    const struct fabric *f = rig_named("rail-64");
    struct route_result r;
    struct err e;
    assert_int_equal(read_text(f, text, strlen(text), &r, &e), -EINVAL);
    if (!strstr(e.text, why) || !strstr(e.where, where))
        fail_msg("%s at %s", e.text, e.where);
    fabric_unref(f);
}

static void bad_dumps(void **state)
{
    refuse("", "is empty", "");
    refuse("hello\nworld\n", "no forwarding table", "line 2");
    refuse("0x0001 003 # x\n", "before any table", "line 1");
    refuse("\nUnicast lids [0-4] of switch Lid 4 ('x'):\n", "without its switch's GUID", "line 2");
    refuse("Unicast lids [0-4] of switch Lid 4 guid 0x1234 ('x'):\n0x0001 003\n", "0x0000000000001234", "");
    refuse("Unicast lids [0-4] of switch Lid 4 guid 0x1234 ('x'):\n0xc001 003\n", "a LID beyond", "line 2");
    refuse("Unicast lids [0-4] of switch Lid 4 guid 0x1234 ('x'):\n0x0001 256\n", "a port number", "line 2");
}

// What the file does not have is named, and a file of nothing but "no way" is none.
static void missing(void **state)
{
    const struct fabric *f = rig_named("rail-64");
    struct fabric_tables *sealed = rig_route(f, ROUTE_UPDN), *t = tables_copy_for(sealed, f, f, f->top_lid);
    struct route_result r;
    struct buf b = {0};
    struct err e;
    for (uint32_t s = 0; s < f->num_switches; s++)
        tables_row(t, s)[7] = tables_row(t, s)[9] = LFT_DROP;
    dump(f, t, true, 0, &b);
    assert_int_equal(read_text(f, b.data, b.len, &r, &e), 0);
    assert_non_null(strstr(r.why, "2 LIDs are not in it, the first is 7"));
    tables_unref(r.tables);
    buf_clear(&b);
    for (uint32_t s = 0; s < f->num_switches; s++)
        buf_printf(&b, "Unicast lids [0-9] of switch Lid 4 guid " GUID_FMT " ('x'):\n0x0001 255\n",
                   GUID_ARG(fabric_switch(f, s)->guid));
    assert_int_equal(read_text(f, b.data, b.len, &r, &e), -EINVAL);
    assert_non_null(strstr(e.text, "tables without entries"));
    buf_done(&b);
    tables_unref(t);
    tables_unref(sealed);
    fabric_unref(f);
}

// Damaged text is refused or read, never more.
static void mutated(void **state)
{
    const struct fabric *f = rig_named("ft3-4-2");
    struct fabric_tables *t = rig_route(f, ROUTE_UPDN);
    struct rng r;
    rng_init(&r, 31);
    struct verify_opts vo = {.all_switches = true};
    struct route_proof proof;
    for (unsigned i = 0; i < 300; i++) {
        struct buf b = {0};
        struct route_result res;
        struct err e;
        dump(f, t, i % 2, 0, &b);
        for (unsigned k = 0; k < 1 + i / 10; k++)
            b.data[rng_below(&r, (uint32_t)b.len)] = (char)rng_below(&r, 256);
        if (read_text(f, b.data, rng_below(&r, (uint32_t)b.len), &res, &e) == 0) {
            route_verify(f, res.tables, &vo, &proof);
            tables_unref(res.tables);
        }
        buf_done(&b);
    }
    tables_unref(t);
    fabric_unref(f);
}

static port_id port_of(const struct fabric *f, enum node_role role, unsigned which)
{
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (f->node[i].role == role && which-- == 0)
            return (port_id){f->node[i].first_port};
    }
    return PORT_NONE;
}

static void traced(void **state)
{
    const struct fabric *f = rig_named("rail-64");
    struct fabric_tables *sealed = rig_route(f, ROUTE_UPDN), *t = tables_copy_for(sealed, f, f, f->top_lid);
    struct route_hop hop[ROUTE_MAX_HOPS];
    struct err e = {0};
    uint32_t n;
    port_id from = port_of(f, ROLE_HOST, 0), leaf = port_of(f, ROLE_LEAF, 0), to = PORT_NONE;
    const struct node *first = fabric_peer_node(f, fabric_port(f, from));
    for (unsigned i = 1; i < 64; i++) { // a host on another leaf
        to = port_of(f, ROLE_HOST, i);
        if (fabric_peer_node(f, fabric_port(f, to)) != first)
            break;
    }
    uint16_t lid = fabric_port(f, to)->a.lid;
    assert_int_equal(route_trace(f, t, from, lid, hop, &n, &e), 0);
    assert_int_equal(n, 5);
    assert_int_equal(hop[0].node, fabric_port(f, from)->node.i);
    assert_int_equal(hop[0].in, 0);
    assert_int_equal(hop[0].out, 1);
    assert_int_equal(hop[1].node, first - f->node);
    assert_int_equal(hop[1].out, tables_port(t, first->sw, lid));
    assert_int_equal(hop[4].node, fabric_port(f, to)->node.i);
    assert_int_equal(hop[4].out, 0);
    // To itself, to the own leaf's port 0, from there to the host.
    assert_int_equal(route_trace(f, t, from, fabric_port(f, from)->a.lid, hop, &n, &e), 0);
    assert_int_equal(n, 1);
    uint16_t own = f->port[first->first_port].a.lid;
    assert_int_equal(route_trace(f, t, from, own, hop, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_int_equal(hop[1].out, 0);
    assert_int_equal(route_trace(f, t, leaf, lid, hop, &n, &e), 0);
    assert_int_equal(hop[0].in, 0);
    // Where it ends.
    assert_int_equal(route_trace(f, t, from, 0xbff0, hop, &n, &e), -EHOSTUNREACH);
    tables_row(t, first->sw)[lid] = LFT_DROP;
    assert_int_equal(route_trace(f, t, from, lid, hop, &n, &e), -EHOSTUNREACH);
    assert_int_equal(n, 2);
    assert_non_null(strstr(e.text, "no entry"));
    tables_row(t, first->sw)[lid] = 253;
    assert_int_equal(route_trace(f, t, from, lid, hop, &n, &e), -EHOSTUNREACH);
    assert_non_null(strstr(e.text, "does not exist"));
    tables_row(t, first->sw)[lid] = fabric_port(f, fabric_port(f, from)->peer)->num;
    assert_int_equal(route_trace(f, t, from, lid, hop, &n, &e), -EHOSTUNREACH);
    assert_non_null(strstr(e.text, "another node"));
    tables_unref(t);
    tables_unref(sealed);
    fabric_unref(f);
}

static void traced_loop(void **state)
{
    struct rig r;
    rig_start(&r);
    node_id a = rig_switch(&r, 8, "a"), b = rig_switch(&r, 8, "b");
    rig_cable(&r, a, b);
    node_id h = rig_host(&r, a), k = rig_host(&r, b);
    const struct fabric *f = rig_done(&r);
    struct fabric_tables *t = tables_new(f, f->top_lid, "loop");
    memset(t->lft, 1, (size_t)t->num_switches * t->lids); // always over the cable between them
    struct route_hop hop[ROUTE_MAX_HOPS];
    struct err e = {0};
    uint32_t n;
    port_id from = {f->node[h.i].first_port};
    uint16_t lid = f->port[f->node[k.i].first_port].a.lid;
    assert_int_equal(route_trace(f, t, from, lid, hop, &n, &e), -EHOSTUNREACH);
    assert_int_equal(n, ROUTE_MAX_HOPS);
    assert_non_null(strstr(e.text, "loop"));
    tables_unref(t);
    fabric_unref(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_dialects), cmocka_unit_test(bad_dumps), cmocka_unit_test(missing),
        cmocka_unit_test(mutated),       cmocka_unit_test(traced),    cmocka_unit_test(traced_loop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
