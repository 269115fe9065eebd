// SPDX-License-Identifier: Apache-2.0
// What is few, such as the hosts of managers and storage, does not meet the many on its way, nor move theirs.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "fabric/builder.h"
#include "lib/err.h"
#include "tests/unit/routing/rig.h"

#define LEAVES 8
#define WAYS 4

struct site {
    const struct fabric *f;
    struct fabric_tables *t;
    node_id leaf[LEAVES], spine[WAYS], host[LEAVES][WAYS];
};

static bool is_few(unsigned leaf, unsigned slot)
{
    return slot == leaf % WAYS && leaf != 2;
}

// As many hosts on a leaf as cables up; on most leaves, at changing places, one of them is a manager's, whose
// word its name is.
static void site_start(struct site *x, const char *few, enum route_engine engine)
{
    struct rig r;
    rig_start(&r);
    for (unsigned i = 0; i < WAYS; i++)
        x->spine[i] = rig_switch(&r, 20, "spine");
    for (unsigned i = 0; i < LEAVES; i++) {
        char name[40];
        snprintf(name, sizeof(name), "leaf-%02u", i);
        x->leaf[i] = rig_switch(&r, 20, name);
        for (unsigned k = 0; k < WAYS; k++) {
            snprintf(name, sizeof(name), "%s-%02u mlx5_0", is_few(i, k) ? few : "gpu", i * WAYS + k);
            x->host[i][k] = rig_ca(&r, 1, name);
            rig_cable(&r, x->leaf[i], x->host[i][k]);
        }
        for (unsigned k = 0; k < WAYS; k++)
            rig_cable(&r, x->leaf[i], x->spine[k]);
    }
    x->f = rig_done(&r);
    x->t = rig_route(x->f, engine);
    rig_prove(x->f, x->t);
}

static void site_end(struct site *x)
{
    tables_unref(x->t);
    fabric_unref(x->f);
}

// Which spine leaf `from` takes to a host.
static unsigned way(const struct site *x, unsigned from, node_id host)
{
    const struct node *leaf = &x->f->node[x->leaf[from].i];
    uint16_t lid = x->f->port[x->f->node[host.i].first_port].a.lid;
    const struct node *w =
        fabric_peer_node(x->f, &x->f->port[leaf->first_port + tables_port(x->t, leaf->sw, lid)]);
    for (unsigned i = 0; i < WAYS; i++) {
        if (w == &x->f->node[x->spine[i].i])
            return i;
    }
    fail_msg("no spine");
    return 0;
}

static void of_few(void **state)
{
    static const char *const names[] = {"ufm", "sm-mgmt", "login", "storage", "weka"};
    for (unsigned n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
        struct site x;
        site_start(&x, names[n], ROUTE_RAIL);
        for (unsigned i = 0; i < LEAVES; i++) {
            for (unsigned from = 0; from < LEAVES; from++) {
                bool used[WAYS] = {false};
                for (unsigned k = 0; k < WAYS && from != i; k++) {
                    unsigned w = way(&x, from, x.host[i][k]);
                    if (used[w])
                        fail_msg("%s: from leaf %u to leaf %u two hosts by spine %u", names[n], from, i, w);
                    used[w] = true;
                    if (!is_few(i, k) && w != k)
                        fail_msg("%s: from leaf %u to leaf %u, slot %u by spine %u", names[n], from, i, k, w);
                }
            }
        }
        site_end(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_few)};
    return cmocka_run_group_tests_name("routing/kinds", tests, NULL, NULL);
}
