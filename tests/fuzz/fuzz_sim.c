// SPDX-License-Identifier: Apache-2.0
// The simulator under any bytes: the input is a list of records, each an action and a MAD that the manager's
// port sends. The fabric is small and up, so that directed, LID-routed and combined routes all lead
// somewhere. At the far adapter's first port a manager is played, both adapters are live hosts: answers to
// what they ask are any bytes too (the TIDs of theirs are few and easily met).
#include <stdbool.h>
#include <string.h>

#include "fabric/builder.h"
#include "lib/err.h"
#include "lib/mono.h"
#include "mad/mad.h"
#include "sim/sim.h"
#include "tests/fuzz/fuzz.h"

enum { HEAD = 4, RECORDS_MAX = 64 };

static void recv_any(void *arg, const uint8_t *mad, const struct mad_addr *from, int status)
{
    *(unsigned *)arg += mad[0];
}

// Adapter 1 - switch 2 = switch 3 - adapter 4 (two ports, both on switch 3); LIDs are the node numbers.
static const struct fabric *make_fabric(void)
{
    struct builder *b = builder_new();
    node_id n[5];
    const uint8_t ports[] = {0, 1, 18, 4, 2};
    for (unsigned i = 1; i <= 4; i++) {
        bool sw = i == 2 || i == 3;
        struct node_attrs a = {.guid = i * 16,
                               .type = sw ? NODE_SWITCH : NODE_CA,
                               .num_ports = ports[i],
                               .lft_cap = sw ? 130 : 0};
        a.mft_cap = 70;
        a.partition_enforcement_cap = a.partition_cap = 40;
        a.enhanced_port0 = i == 3;
        (void)builder_node(b, &a, "node", 4, &n[i], NULL);
        for (unsigned p = sw ? 0 : 1; p <= ports[i]; p++) {
            struct port_attrs pa = {.state = PORT_ACTIVE, .lid = (uint16_t)(sw && p ? 0 : i)};
            (void)builder_port(b, n[i], p, &pa);
        }
    }
    const uint8_t link[][4] = {{1, 1, 2, 1}, {2, 2, 3, 1}, {2, 3, 3, 2}, {3, 3, 4, 1}, {3, 4, 4, 2}};
    for (unsigned i = 0; i < 5; i++)
        (void)builder_link(b, n[link[i][0]], link[i][1], n[link[i][2]], link[i][3]);
    builder_sm_port(b, n[1], 1);
    return builder_seal(b, 1, NULL);
}

static void deliver(void *arg, uint64_t node_guid, unsigned port, unsigned copies)
{
    *(unsigned *)arg += copies;
}

static void act_on_nodes(struct sim *s, uint8_t what)
{
    uint64_t guid = 16u * (1 + (what >> 4 & 3));
    struct sim_sm sm = {
        .state = what >> 4 & 3, .priority = what & 15, .poll_ns = 50 * MONO_MS, .poll_misses = 2};
    unsigned copies = 0;
    switch (what & 15) {
    case 7:
        (void)sim_link_flap(s, 32, 1u + (what >> 4 & 3), what & 64 ? 0 : 300, 200, 1 + (what >> 6));
        break;
    case 8:
        (void)sim_node_boot(s, guid, what & 64 ? 0 : 400, what & 128 ? 900 : 0);
        break;
    case 9:
        (void)sim_host_reboot(s, guid, 700, what & 64 ? NULL : "boot", what & 128);
        break;
    case 10:
        (void)sim_node_replace(s, guid, what & 64 ? 160 : guid + 1, 100);
        (void)sim_node_replace(s, 160, guid, 0);
        break;
    case 11:
        (void)sim_guid_duplicate(s, guid, what & 64 ? 0 : 16u * (1 + (what >> 6)));
        break;
    case 12:
        (void)sim_swap_cables(s, 32, what >> 4 & 3, 48, what >> 6);
        break;
    case 13:
        (void)sim_m_key_set(s, guid, what & 64 ? 1 : 0, what & 128 ? 5 : 0, what >> 6, 1);
        break;
    case 14:
        (void)sim_sm_set(s, 65, &sm);
        (void)sim_sm_control(s, 65, 1, what >> 4 & 7);
        break;
    case 15:
        (void)sim_multicast(s, what & 64 ? 17 : 65, 0xc000 + (what >> 4 & 3), deliver, &copies);
        break;
    default:
        break;
    }
}

static void act(struct sim *s, struct transport *t, uint8_t what)
{
    struct err e;
    act_on_nodes(s, what);
    switch (what & 7) {
    case 1:
        (void)t->ops->issm(t, what & 8, &e);
        break;
    case 2:
        (void)sim_link_set(s, 32, 1u + (what >> 4 & 3), what & 8);
        break;
    case 3:
        (void)sim_node_reboot(s, 16u * (1 + (what >> 4 & 3)));
        break;
    case 4:
        (void)sim_recable(s, 32, what >> 4 & 3, 48, what >> 6);
        break;
    case 5:
        (void)sim_raise_trap(s, 48, 1, 129);
        break;
    case 6:
        (void)sim_set_not_kept(s, 48, MAD_ATTR_PORT_INFO, what & 8);
        break;
    default:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t lft2[] = {255, 1, 0, 2, 3}, lft3[] = {255, 1, 1, 0, 3};
    struct loop *l = loop_new(LOOP_VIRTUAL);
    const struct fabric *f = make_fabric();
    struct sim_opts o = {.keep_state = true, .optimized_sltovl = true, .port_state_table = true};
    if (size > 0) {
        o.p_key_check = data[0] & 1;
        o.service_ns = data[0] & 2 ? 100 : 0;
        o.link_latency_ns = data[0] & 4 ? 10 : 0;
        o.auto_active = data[0] & 8 ? 1 : 0;
        o.train_ns = data[0] & 16 ? 500 : 0;
    }
    struct sim *s = sim_new(l, f, &o);
    (void)sim_set_lft(s, 32, lft2, 5, 4);
    (void)sim_set_lft(s, 48, lft3, 5, 4);
    struct sim_sm sm = {.state = MAD_SM_STANDBY, .poll_ns = 70 * MONO_MS, .poll_misses = 3};
    (void)sim_sm_add(s, 65, &sm);
    if (size > 0 && data[0] & 32)
        sim_hosts_start(s, &(struct sim_hosts_opts){.timeout_ns = 20 * MONO_MS, .path_hz = 20});
    unsigned sum = 0;
    struct transport *t = sim_attach(s, 0, NULL);
    t->recv = recv_any;
    t->recv_arg = &sum;
    bool never = false;
    size_t at = 1;
    for (unsigned i = 0; i < RECORDS_MAX && at + HEAD < size; i++) {
        uint8_t mad[MAD_SIZE] = {0};
        const uint8_t *head = data + at;
        at += HEAD;
        size_t n = size - at < MAD_SIZE ? size - at : MAD_SIZE;
        memcpy(mad, data + at, n);
        at += n;
        act(s, t, head[0]);
        struct mad_addr to = {.lid = (uint16_t)(head[1] == 255 ? 0xffff : head[1]),
                              .pkey_index = head[2],
                              .grh_present = head[3] & 1};
        (void)t->ops->send(t, mad, &to, 0);
        loop_run_until(l, &never, head[3] & 2 ? MONO_S : 1000);
    }
    t->ops->free(t);
    sim_free(s);
    fabric_unref(f);
    loop_free(l);
    return 0;
}
