// SPDX-License-Identifier: Apache-2.0
// Slots and who has which. A node's ports are found by one look-up of its GUID; a port's slot stays its own
// for good. Memory: about 760 bytes a slot (two values of 38 counters, times, masks), allocated in steps so
// that growing does not move the table at every port.
#include "telemetry/table_priv.h"

#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define STEP 1024

const char *tele_unread_name(enum tele_unread u)
{
    switch (u) {
    case TELE_READ:
        return "read";
    case TELE_NOT_YET:
        return "not-yet";
    case TELE_NO_ANSWER:
        return "no-answer";
    case TELE_REFUSED:
        return "refused";
    case TELE_NO_PMA:
        return "no-pma";
    case TELE_GONE:
        return "gone";
    case TELE_WRONG:
        return "wrong-answer";
    case TELE_SLOW:
        return "slow";
    }
    return "";
}

void tele_table_init(struct tele_table *t)
{
    *t = (struct tele_table){.index = xcalloc(1, sizeof(struct tele_index))};
    u64map_init(&t->index->by_guid, NULL, 1024);
}

void tele_table_done(struct tele_table *t)
{
    struct tele_index *x = t->index;
    for (uint32_t i = 0; i < x->num; i++)
        free(x->node[i].slot);
    free(x->node);
    u64map_done(&x->by_guid);
    free(x);
    free(t->port);
    free(t->value);
    free(t->before);
    free(t->have);
    free(t->had);
    free(t->at);
    free(t->at_before);
    free(t->errors);
}

static void *grow(void *p, uint32_t from, uint32_t to, size_t size)
{
    p = xreallocarray(p, to, size);
    memset((char *)p + from * size, 0, (to - from) * size);
    return p;
}

static void make_room(struct tele_table *t, uint32_t need)
{
    uint32_t cap = t->index->cap, to = cap;
    while (to < need)
        to += to < 8 * STEP ? STEP : to / 8;
    if (to == cap)
        return;
    t->port = grow(t->port, cap, to, sizeof(*t->port));
    t->value = grow(t->value, cap, to, TELE_COUNTERS * sizeof(uint64_t));
    t->before = grow(t->before, cap, to, TELE_COUNTERS * sizeof(uint64_t));
    t->have = grow(t->have, cap, to, sizeof(uint64_t));
    t->had = grow(t->had, cap, to, sizeof(uint64_t));
    t->at = grow(t->at, cap, to, TELE_GROUPS * sizeof(int64_t));
    t->at_before = grow(t->at_before, cap, to, TELE_GROUPS * sizeof(int64_t));
    t->errors = grow(t->errors, cap, to, sizeof(double));
    t->index->cap = to;
}

struct tele_node *tele_node_find(const struct tele_table *t, uint64_t guid)
{
    uint32_t i;
    return u64map_get(&t->index->by_guid, guid, &i) ? &t->index->node[i] : NULL;
}

struct tele_node *tele_node_add(struct tele_table *t, uint64_t guid, uint8_t num_ports)
{
    struct tele_index *x = t->index;
    struct tele_node *n = tele_node_find(t, guid);
    if (n == NULL) {
        if (x->num == x->room)
            x->node = xreallocarray(x->node, x->room = x->room ? x->room * 2 : 256, sizeof(*x->node));
        n = &x->node[x->num];
        *n = (struct tele_node){.guid = guid, .agent = TELE_SLOT_NONE};
        u64map_set(&x->by_guid, guid, x->num++);
    }
    if (num_ports > n->num_ports || n->slot == NULL) {
        n->slot = xreallocarray(n->slot, num_ports + 1u, sizeof(uint32_t));
        for (unsigned i = n->room; i <= num_ports; i++)
            n->slot[i] = TELE_SLOT_NONE;
        n->room = num_ports + 1u;
        n->num_ports = num_ports;
    }
    return n;
}

void tele_slot_set(struct tele_table *t, uint32_t slot, uint64_t node_guid, uint8_t num)
{
    struct tele_node *n = tele_node_add(t, node_guid, num);
    make_room(t, slot + 1);
    for (; t->num <= slot; t->num++)
        t->port[t->num] = (struct tele_port){.port = ID_NONE, .peer = TELE_SLOT_NONE, .unread = TELE_GONE};
    t->port[slot].node_guid = node_guid;
    t->port[slot].num = num;
    n->slot[num] = slot;
}

uint32_t tele_slot(const struct tele_table *t, uint64_t node_guid, uint8_t num)
{
    const struct tele_node *n = tele_node_find(t, node_guid);
    return n != NULL && num <= n->num_ports ? n->slot[num] : TELE_SLOT_NONE;
}
