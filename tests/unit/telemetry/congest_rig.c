// SPDX-License-Identifier: Apache-2.0
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/rate.h"
#include "tests/unit/telemetry/congest_rig.h"

#define SWEEP_NS 10000000000LL

static void add_slots(struct congest_rig *r)
{
    uint32_t *slot = xmalloc((r->f->num_ports + 1) * sizeof(*slot));
    for (uint32_t i = 0; i < r->f->num_ports; i++) {
        const struct port *p = &r->f->port[i];
        const struct node *n = fabric_node(r->f, p->node);
        if (p->num == 0 || !port_valid(p->peer))
            continue;
        slot[i] = r->t.num;
        r->t.port[r->t.num++] = (struct tele_port){.node_guid = n->guid,
                                                   .num = p->num,
                                                   .port = i,
                                                   .rate_mbps = port_rate_mbps(&p->a),
                                                   .of_switch = n->type == NODE_SWITCH,
                                                   .up = true,
                                                   .lanes = 4};
    }
    for (uint32_t s = 0; s < r->t.num; s++) {
        r->t.port[s].peer = slot[r->f->port[r->t.port[s].port].peer.i];
        if (!r->t.port[s].rate_mbps)
            r->t.port[s].rate_mbps = 200000;
    }
    free(slot);
}

void congest_rig_new(struct congest_rig *r, const struct fabric *f, struct fabric_tables *tables)
{
    *r = (struct congest_rig){.f = f, .tables = tables, .now = SWEEP_NS};
    uint32_t n = f->num_ports + 1;
    r->t.fabric = f;
    r->t.port = xcalloc(n, sizeof(*r->t.port));
    r->t.value = xcalloc((size_t)n * TELE_COUNTERS, sizeof(uint64_t));
    r->t.before = xcalloc((size_t)n * TELE_COUNTERS, sizeof(uint64_t));
    r->t.have = xcalloc(n, sizeof(uint64_t));
    r->t.had = xcalloc(n, sizeof(uint64_t));
    r->t.at = xcalloc((size_t)n * TELE_GROUPS, sizeof(int64_t));
    r->t.at_before = xcalloc((size_t)n * TELE_GROUPS, sizeof(int64_t));
    r->used = xcalloc(n, sizeof(double));
    r->held = xcalloc(n, sizeof(double));
    r->unread = xcalloc(n, sizeof(bool));
    add_slots(r);
    r->c = congest_new(NULL);
    congest_rig_read(r); // the first reading: no rates yet
}

void congest_rig_free(struct congest_rig *r)
{
    congest_free(r->c);
    free(r->t.port);
    free(r->t.value);
    free(r->t.before);
    free(r->t.have);
    free(r->t.had);
    free(r->t.at);
    free(r->t.at_before);
    free(r->used);
    free(r->held);
    free(r->unread);
    tables_unref(r->tables);
    fabric_unref(r->f);
}

void congest_rig_clear(struct congest_rig *r)
{
    memset(r->used, 0, r->t.num * sizeof(*r->used));
    memset(r->held, 0, r->t.num * sizeof(*r->held));
    memset(r->unread, 0, r->t.num * sizeof(*r->unread));
}

static const struct node *by_name(const struct congest_rig *r, const char *name)
{
    for (uint32_t i = 0; i < r->f->num_nodes; i++)
        if (strcmp(fabric_desc(r->f, &r->f->node[i]), name) == 0)
            return &r->f->node[i];
    fail_msg("no node %s", name);
    return NULL;
}

uint32_t congest_rig_slot(const struct congest_rig *r, const char *node, unsigned num)
{
    const struct node *n = by_name(r, node);
    for (uint32_t s = 0; s < r->t.num; s++)
        if (r->t.port[s].node_guid == n->guid && r->t.port[s].num == num)
            return s;
    fail_msg("no port %s/%u", node, num);
    return 0;
}

uint32_t congest_rig_to(const struct congest_rig *r, const char *from, const char *to)
{
    const struct node *n = by_name(r, from), *z = by_name(r, to);
    for (uint32_t s = 0; s < r->t.num; s++)
        if (r->t.port[s].node_guid == n->guid && r->t.port[r->t.port[s].peer].node_guid == z->guid)
            return s;
    fail_msg("no cable from %s to %s", from, to);
    return 0;
}

void congest_rig_set(struct congest_rig *r, uint32_t slot, double used, double held)
{
    r->used[slot] = used;
    r->held[slot] = held;
}

static void count(struct congest_rig *r, uint32_t slot, enum tele_counter k, double units, bool read)
{
    size_t v = (size_t)slot * TELE_COUNTERS + k, g = (size_t)slot * TELE_GROUPS + tele_rows[k].group;
    bool again = r->t.have[slot] >> k & 1;
    if (!read) // what was read stays
        return;
    r->t.before[v] = r->t.value[v];
    r->t.value[v] += (uint64_t)units;
    if (again)
        r->t.had[slot] |= 1ULL << k;
    r->t.have[slot] |= 1ULL << k;
    if (r->t.at[g] != r->now) {
        r->t.at_before[g] = r->t.at[g];
        r->t.at[g] = r->now;
    }
}

void congest_rig_read(struct congest_rig *r)
{
    r->now += SWEEP_NS;
    for (uint32_t s = 0; s < r->t.num; s++) {
        double bytes = tele_capacity(&r->t, s) * (SWEEP_NS / 1e9);
        bool read = !r->unread[s];
        r->t.port[s].unread = read ? TELE_READ : TELE_NO_ANSWER;
        count(r, s, TELE_XMIT_DATA, r->used[s] * bytes / 4, read);
        count(r, s, TELE_RCV_DATA, r->used[r->t.port[s].peer] * bytes / 4, read);
        count(r, s, TELE_XMIT_WAIT, r->held[s] * bytes / 8, read);
    }
}

void congest_rig_feed(struct congest_rig *r)
{
    congest_rig_read(r);
    congest_feed(r->c, &r->t, r->tables, r->groups, r->now);
}

void congest_rig_feeds(struct congest_rig *r, unsigned n)
{
    while (n--)
        congest_rig_feed(r);
}
