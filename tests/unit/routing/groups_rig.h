// SPDX-License-Identifier: Apache-2.0
// For the tests of groups: how they are made and proved, and a judge that walks all choices by itself.
#ifndef WEFT_TESTS_ROUTING_GROUPS_RIG_H
#define WEFT_TESTS_ROUTING_GROUPS_RIG_H

#include "routing/groups.h"
#include "tests/unit/routing/rig.h"

struct gr_base {
    const struct fabric *f;
    struct route_result ideal;
    struct route_base *b;
};

bool gr_ordered(enum route_engine e);
struct groups_result gr_make(const struct fabric *f, const struct fabric_tables *t,
                             const struct groups_opts *o);
struct groups_result gr_make_plain(const struct fabric *f, const struct fabric_tables *t,
                                   enum route_engine e);
struct groups_proof gr_prove(const struct fabric *f, const struct fabric_tables *t,
                             const struct fabric_groups *g, const uint16_t *cap);
const struct fabric_group *gr_group_at(const struct fabric_groups *g, const struct fabric_tables *t,
                                       uint32_t s, uint16_t lid);
uint32_t gr_far_switch(const struct fabric *f, uint32_t s, unsigned port);
bool gr_has_ends(const struct fabric *f, uint32_t s);
enum groups_fault gr_judge(const struct fabric *f, const struct fabric_tables *t,
                           const struct fabric_groups *g);
enum groups_fault gr_kind_of(enum groups_fault x);
void gr_check(const struct fabric *f, const struct fabric_tables *t, const struct groups_result *r,
              const uint16_t *cap);
bool gr_equal(const struct fabric_groups *a, const struct fabric_groups *b);
struct fabric_tables *gr_route(const struct fabric *f, enum route_engine e);
void gr_hops_to(const struct fabric *f, uint32_t t, uint32_t *dist);
bool gr_base_start(struct gr_base *x, const struct fabric *f, enum route_engine engine);
void gr_base_done(struct gr_base *x);
struct groups_result gr_step(const struct gr_base *x, const struct rig_fault *fault, uint32_t n,
                             const struct groups_result *last, const struct fabric *last_f,
                             const struct fabric **ret_live, const struct fabric_tables **ret_t);

#endif
