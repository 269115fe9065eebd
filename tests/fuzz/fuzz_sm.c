// SPDX-License-Identifier: Apache-2.0
// A bring-up of a fabric of four nodes whose answers are changed as the input says, byte by byte. Every sweep
// must end; when the bytes are used up the devices are honest, and the fabric must come up whole.
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/builder.h"
#include "lib/log.h"
#include "mad/engine.h"
#include "mad/mad.h"
#include "sim/sim.h"
#include "sm/sm.h"
#include "tests/fuzz/fuzz.h"
#include "tests/whole/liar.h"

struct bench {
    struct transport tap;
    struct transport *sim;
    struct liar liar;
    bool swept, honest;
};

static int tap_send(struct transport *t, const uint8_t *mad, const struct mad_addr *to, int64_t timeout_ns)
{
    struct bench *b = (struct bench *)t;
    return b->sim->ops->send(b->sim, mad, to, timeout_ns);
}

static int tap_port(struct transport *t, struct transport_port *ret)
{
    struct bench *b = (struct bench *)t;
    return b->sim->ops->port(b->sim, ret);
}

static const struct transport_ops tap_ops = {.send = tap_send, .port = tap_port};

static void tap_recv(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    struct bench *b = arg;
    uint8_t copy[MAD_SIZE];
    enum liar_does does = LIAR_PASSES;

    memcpy(copy, mad, sizeof(copy));
    if (status == 0 && !b->honest)
        does = liar_answer(&b->liar, copy);
    for (int i = does == LIAR_DROPS ? 0 : does == LIAR_REPEATS ? 2 : 1; i > 0; i--)
        b->tap.recv(b->tap.recv_arg, copy, from, status);
}

static void on_sweep(void *arg, const struct sm_sweep *s)
{
    (void)s;
    ((struct bench *)arg)->swept = true;
}

// Adapter 1 - switch 2 = switch 3 - adapter 4, with two ports, both on switch 3.
static const struct fabric *make_fabric(void)
{
    static const uint8_t ports[] = {0, 1, 4, 5, 2};
    static const uint8_t link[][4] = {{1, 1, 2, 1}, {2, 2, 3, 1}, {2, 3, 3, 2}, {3, 3, 4, 1}, {3, 4, 4, 2}};
    struct builder *b = builder_new();
    node_id n[5];
    for (unsigned i = 1; i <= 4; i++) {
        bool sw = i == 2 || i == 3;
        struct node_attrs a = {.guid = i * 16,
                               .type = sw ? NODE_SWITCH : NODE_CA,
                               .num_ports = ports[i],
                               .lft_cap = sw ? 1024 : 0,
                               .partition_cap = 32,
                               .enhanced_port0 = i == 3};
        (void)builder_node(b, &a, "node", 4, &n[i], NULL);
        for (unsigned p = sw ? 0 : 1; p <= ports[i]; p++) {
            struct port_attrs pa = {.state = PORT_INIT, .mtu_cap = 5, .vl_cap = 4};
            (void)builder_port(b, n[i], p, &pa);
            if (!sw || p == 0)
                (void)builder_port_guid(b, n[i], p, i * 16 + p);
        }
    }
    for (unsigned i = 0; i < 5; i++)
        (void)builder_link(b, n[link[i][0]], link[i][1], n[link[i][2]], link[i][3]);
    builder_sm_port(b, n[1], 1);
    return builder_seal(b, 1, NULL);
}

static void die(const char *why)
{
    fprintf(stderr, "fuzz_sm: %s\n", why);
    abort();
}

static void sweep(struct bench *b, struct loop *l)
{
    b->swept = false;
    if (!loop_run_until(l, &b->swept, 300 * MONO_S))
        die("a sweep does not end");
}

static void judge(const struct sim *s, const struct fabric *f)
{
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        struct sim_port_view v;
        if (!port_valid(p->peer) || sim_port_view(s, fabric_node(f, p->node)->guid, p->num, &v) != 0)
            continue;
        if (v.state != PORT_ACTIVE)
            die("a port is not ACTIVE after all");
        for (uint32_t k = 0; k < f->num_ports && p->guid != 0; k++) {
            const struct port *z = &f->port[k];
            struct sim_port_view w;
            if (z->guid == 0 || sim_port_view(s, fabric_node(f, z->node)->guid, z->num, &w) != 0)
                continue;
            if (w.lid == 0 || sim_trace(s, p->guid, w.lid, NULL, 0) < 0)
                die("an end is not reached after all");
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    log_set_level(LOG_LEVEL_ERROR);
    struct loop *l = loop_new(LOOP_VIRTUAL);
    const struct fabric *f = make_fabric();
    struct sim *s = sim_new(l, f, &(struct sim_opts){.link_latency_ns = 100, .service_ns = 1000});
    struct bench b = {.tap = {.ops = &tap_ops, .name = "tap"}};
    struct sm_opts o;
    struct sm_callbacks cb = {.arg = &b, .sweep = on_sweep};

    sm_opts_default(&o);
    o.max_switches = 64;
    b.liar = (struct liar){.byte = size > 1 ? data + 1 : (const uint8_t *)"",
                           .num_bytes = size > 1 ? size - 1 : 0};
    b.liar.chance = size > 0 ? 4u * data[0] : 0;
    b.sim = sim_attach(s, 0, NULL);
    b.sim->recv = tap_recv;
    b.sim->recv_arg = &b;
    struct pool *pool = pool_new(l, 1);
    struct mad_engine *e = mad_engine_new(l, &b.tap, NULL);
    struct sm *sm = sm_new(l, e, &b.tap, pool, NULL, &o, &cb);
    sm_start(sm);
    for (unsigned i = 0; i < 4 && (i == 0 || b.liar.at < b.liar.num_bytes); i++) {
        sweep(&b, l);
        sm_resweep(sm, "operator", i & 1);
    }
    b.honest = true;
    for (unsigned i = 0; i < 3; i++) {
        sm_resweep(sm, "operator", true);
        sweep(&b, l);
    }
    judge(s, f);
    pool_free(pool);
    mad_engine_free(e);
    sm_free(sm);
    b.sim->ops->free(b.sim);
    sim_free(s);
    fabric_unref(f);
    loop_free(l);
    return 0;
}
