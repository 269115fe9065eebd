// SPDX-License-Identifier: Apache-2.0
#include "telemetry/names.h"

#include <stddef.h>
#include <stdlib.h>

#include "lib/xalloc.h"

struct names {
    struct tele_names n;
    struct tele_name name[];
};

static struct names *whole(const struct tele_names *n)
{
    return (struct names *)((char *)n - offsetof(struct names, n));
}

// The name of the switch at the other end of an end node's port; NULL when f does not know of one.
static const char *switch_of(const struct fabric *f, const struct node *node, unsigned num)
{
    port_id p = fabric_port_at(f, node, num);
    const struct node *peer = port_valid(p) ? fabric_peer_node(f, fabric_port(f, p)) : NULL;
    return peer != NULL && peer->type == NODE_SWITCH ? fabric_desc(f, peer) : NULL;
}

static void name_it(struct tele_name *n, const struct fabric *f, const struct fabric *known)
{
    const struct node *live = f != NULL ? fabric_by_guid(f, n->node_guid) : NULL;
    const struct node *old = known != NULL ? fabric_by_guid(known, n->node_guid) : NULL;
    const struct node *node = live != NULL ? live : old;
    const char *sw = NULL;

    n->node = n->sw = "";
    if (node == NULL)
        return;
    n->kind = node->type == NODE_SWITCH ? TELE_OF_SWITCH : TELE_OF_HCA;
    n->node = live != NULL ? fabric_desc(f, live) : fabric_desc(known, old);
    if (n->kind == TELE_OF_SWITCH)
        return;
    if (live != NULL)
        sw = switch_of(f, live, n->num);
    if (sw == NULL && old != NULL)
        sw = switch_of(known, old, n->num);
    if (sw != NULL)
        n->sw = sw;
}

const struct tele_names *tele_names_new(const struct tele_key *key, uint32_t num, const struct fabric *f,
                                        const struct fabric *known)
{
    struct names *w = xmalloc(sizeof(*w) + num * sizeof(w->name[0]));

    w->n = (struct tele_names){.f = f != NULL ? fabric_ref(f) : NULL,
                               .known = known != NULL ? fabric_ref(known) : NULL,
                               .num = num,
                               .name = w->name};
    for (uint32_t i = 0; i < num; i++) {
        w->name[i] = (struct tele_name){.node_guid = key[i].node_guid, .num = key[i].num};
        name_it(&w->name[i], f, known);
    }
    return &w->n;
}

void tele_names_free(const struct tele_names *n)
{
    if (n == NULL)
        return;
    fabric_unref(n->f);
    fabric_unref(n->known);
    free(whole(n));
}
