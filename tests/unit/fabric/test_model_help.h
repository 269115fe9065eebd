// SPDX-License-Identifier: Apache-2.0
// Small fabrics in few lines, for the tests of the model.
#ifndef WEFT_TESTS_FABRIC_MODEL_HELP_H
#define WEFT_TESTS_FABRIC_MODEL_HELP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fabric/builder.h"

static inline node_id add_node(struct builder *b, enum node_type type, uint64_t guid, unsigned ports,
                               const char *desc)
{
    struct node_attrs a = {.guid = guid, .type = type, .num_ports = (uint8_t)ports, .lft_cap = 0xc000};
    node_id id = NODE_NONE;
    assert_int_equal(builder_node(b, &a, desc, strlen(desc), &id, NULL), 0);
    return id;
}

static inline node_id add_switch(struct builder *b, uint64_t guid, unsigned ports, const char *desc)
{
    return add_node(b, NODE_SWITCH, guid, ports, desc);
}

// An adapter with one port, of PortGUID guid + 1.
static inline node_id add_ca(struct builder *b, uint64_t guid, const char *desc)
{
    node_id id = add_node(b, NODE_CA, guid, 1, desc);
    assert_int_equal(builder_port_guid(b, id, 1, guid + 1), 0);
    return id;
}

// Both ends connected and Active at 4xHDR.
static inline void add_link(struct builder *b, node_id a, unsigned pa, node_id z, unsigned pz)
{
    struct port_attrs p = {.state = PORT_ACTIVE, .width_active = 2, .speed_active = 4, .speed_ext_active = 4};
    assert_int_equal(builder_port(b, a, pa, &p), 0);
    assert_int_equal(builder_port(b, z, pz, &p), 0);
    assert_int_equal(builder_link(b, a, pa, z, pz), 0);
}

static inline void set_lid(struct builder *b, node_id n, unsigned num, uint16_t lid, uint8_t lmc,
                           uint8_t state)
{
    struct port_attrs p = {
        .lid = lid, .lmc = lmc, .state = state, .width_active = 2, .speed_active = 4, .speed_ext_active = 4};
    assert_int_equal(builder_port(b, n, num, &p), 0);
}

static inline const struct finding *find_code(const struct findings *f, const char *code)
{
    for (size_t i = 0; i < f->n; i++) {
        if (strcmp(f->item[i].code, code) == 0)
            return &f->item[i];
    }
    return NULL;
}

static inline size_t count_code(const struct findings *f, const char *code)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += strcmp(f->item[i].code, code) == 0;
    return n;
}

static inline const struct node *by_desc(const struct fabric *f, const char *desc)
{
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (strcmp(fabric_desc(f, &f->node[i]), desc) == 0)
            return &f->node[i];
    }
    fail_msg("no node %s", desc);
    return NULL;
}

#endif
