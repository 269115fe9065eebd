// SPDX-License-Identifier: Apache-2.0
// A generator describes where each node hangs; struct gen keeps the node ids by name's place. Order of nodes:
// adapters, then switches; GUIDs count up from a base, an adapter taking two (node, port), a switch one. The
// same order, cabling and GUIDs as ibsim gives a .net file of such a fabric.
#include "fabric/topogen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/builder.h"
#include "lib/err.h"
#include "lib/xalloc.h"

#define GUID_ADAPTERS 0x0002c90300000000ULL
#define GUID_SWITCHES 0x0008f10400400000ULL
#define FORMS                                                                                                \
    "the forms are rail-<adapters> (a multiple of 8, at most 7936), ft3-<radix>-<pods>, superpod-<su> "      \
    "(1, 2, 3, 4, 8, 16, 32 or 64) and subnet-40960"

struct gen {
    struct builder *b;
    uint64_t next_adapter, next_switch, host_guid;
    uint8_t speed_ext;
    uint16_t adapter_device, switch_device;
    node_id *adapter, *sw;
    uint32_t num_adapters, num_sw;
};

static struct port_attrs link_attrs(const struct gen *g, bool end_port)
{
    return (struct port_attrs){
        .state = PORT_INIT,
        .phys_state = 5, // LinkUp
        .width_active = 2,
        .width_supported = 0x1f,
        .width_enabled = 2,
        .speed_active = 4,
        .speed_supported = 7,
        .speed_enabled = 7,
        .speed_ext_active = g->speed_ext,
        .speed_ext_supported = (uint8_t)(2 * g->speed_ext - 1),
        .speed_ext_enabled = (uint8_t)(2 * g->speed_ext - 1),
        .mtu_cap = 5,
        .mtu_active = 4,
        .vl_cap = 4,
        .vl_oper = 4,
        .cap_mask = end_port ? 0x0050c048 : 0,
        .cap_mask2 = end_port ? 0x0030 : 0,
    };
}

static void gen_start(struct gen *g, uint32_t adapters, uint32_t switches, uint8_t speed_ext)
{
    *g = (struct gen){
        .b = builder_new(),
        .next_adapter = GUID_ADAPTERS,
        .next_switch = GUID_SWITCHES,
        .speed_ext = speed_ext,
        .adapter_device = speed_ext == 8 ? 0x1021 : 0x101b,
        .switch_device = speed_ext == 8 ? 0xd2f2 : 0xd2f0,
        .adapter = xcalloc(adapters, sizeof(node_id)),
        .sw = xcalloc(switches, sizeof(node_id)),
    };
}

static const struct fabric *gen_end(struct gen *g)
{
    builder_sm_port(g->b, g->adapter[0], 1);
    free(g->adapter);
    free(g->sw);
    return builder_seal(g->b, 1, NULL);
}

// first: of its host; the host's other adapters carry its SystemImageGUID.
static void add_adapter(struct gen *g, bool first, const char *desc)
{
    if (first)
        g->host_guid = g->next_adapter;
    struct node_attrs a = {
        .guid = g->next_adapter,
        .sys_guid = g->host_guid,
        .type = NODE_CA,
        .num_ports = 1,
        .partition_cap = 128,
        .device_id = g->adapter_device,
        .vendor_id = 0x02c9,
        .revision = 0,
    };
    struct port_attrs p = link_attrs(g, true);
    node_id id = NODE_NONE;
    builder_node(g->b, &a, desc, strlen(desc), &id, NULL);
    builder_port_guid(g->b, id, 1, a.guid + 1);
    builder_port(g->b, id, 1, &p);
    g->adapter[g->num_adapters++] = id;
    g->next_adapter += 2;
}

static void add_host_adapter(struct gen *g, uint32_t host, uint32_t index)
{
    char desc[64];
    snprintf(desc, sizeof(desc), "gpu-%04u mlx5_%u", host + 1, index);
    add_adapter(g, index == 0, desc);
}

static void add_switch(struct gen *g, uint8_t ports, const char *desc)
{
    struct node_attrs a = {
        .guid = g->next_switch,
        .sys_guid = g->next_switch,
        .type = NODE_SWITCH,
        .num_ports = ports,
        .partition_cap = 8,
        .device_id = g->switch_device,
        .vendor_id = 0x02c9,
        .lft_cap = LID_UCAST_MAX + 1,
        .mft_cap = 4096,
        .partition_enforcement_cap = 64,
        .enhanced_port0 = true,
    };
    struct port_attrs p0 = {
        .state = PORT_ACTIVE, // enhanced port 0 has no link to come up
        .phys_state = 5,
        .width_active = 2,
        .width_supported = 2,
        .width_enabled = 2,
        .speed_active = 1,
        .speed_supported = 1,
        .speed_enabled = 1,
        .mtu_cap = 5,
        .mtu_active = 5,
        .vl_cap = 1,
        .vl_oper = 1,
        .cap_mask = 0x0000c048,
        .cap_mask2 = 0x0030,
    };
    node_id id = NODE_NONE;
    builder_node(g->b, &a, desc, strlen(desc), &id, NULL);
    builder_port(g->b, id, 0, &p0);
    g->sw[g->num_sw++] = id;
    g->next_switch++;
}

static void connect_ports(struct gen *g, node_id a, unsigned pa, node_id z, unsigned pz)
{
    struct port_attrs p = link_attrs(g, false);
    builder_link(g->b, a, pa, z, pz);
    builder_port(g->b, z, pz, &p);
}

static void connect_switches(struct gen *g, uint32_t a, unsigned pa, uint32_t z, unsigned pz)
{
    struct port_attrs p = link_attrs(g, false);
    builder_port(g->b, g->sw[a], pa, &p);
    connect_ports(g, g->sw[a], pa, g->sw[z], pz);
}

// ---------------------------------------------------------------- two levels, one rail a leaf

struct rail_shape {
    uint32_t hosts, sus, leaves, spines, per_pair, spine_ports;
    uint8_t speed_ext;
};

static void rail_switches(struct gen *g, const struct rail_shape *s)
{
    char desc[64];
    for (uint32_t l = 0; l < s->leaves; l++) {
        snprintf(desc, sizeof(desc), "leaf-su%02u-rail%u", l / 8 + 1, l % 8);
        add_switch(g, 64, desc);
    }
    for (uint32_t i = 0; i < s->spines; i++) {
        snprintf(desc, sizeof(desc), "spine-%02u", i + 1);
        add_switch(g, (uint8_t)s->spine_ports, desc);
    }
}

static void rail_links(struct gen *g, const struct rail_shape *s)
{
    for (uint32_t h = 0; h < s->hosts; h++) {
        for (uint32_t r = 0; r < 8; r++)
            connect_ports(g, g->adapter[8 * h + r], 1, g->sw[h / 32 * 8 + r], h % 32 + 1);
    }
    for (uint32_t l = 0; l < s->leaves; l++) {
        for (uint32_t i = 0; i < s->spines; i++) {
            for (uint32_t k = 0; k < s->per_pair; k++)
                connect_switches(g, l, 33 + i * s->per_pair + k, s->leaves + i, l * s->per_pair + k + 1);
        }
    }
}

// The fabric managers of a small SuperPOD: two servers of two adapters on the last SU's free host slot.
static void ufm_adapters(struct gen *g)
{
    static const char *const name[] = {"ufm-01 mlx5_0", "ufm-01 mlx5_1", "ufm-02 mlx5_0", "ufm-02 mlx5_1"};
    for (uint32_t i = 0; i < 4; i++)
        add_adapter(g, i % 2 == 0, name[i]);
}

static const struct fabric *rail_make(const struct rail_shape *s, bool ufm)
{
    struct gen g;
    gen_start(&g, 8 * s->hosts + 4, s->leaves + s->spines, s->speed_ext);
    for (uint32_t h = 0; h < s->hosts; h++) {
        for (uint32_t r = 0; r < 8; r++)
            add_host_adapter(&g, h, r);
    }
    if (ufm)
        ufm_adapters(&g);
    rail_switches(&g, s);
    rail_links(&g, s);
    for (uint32_t i = 0; ufm && i < 4; i++)
        connect_ports(&g, g.adapter[8 * s->hosts + i], 1, g.sw[s->leaves - 8 + i], 32);
    return gen_end(&g);
}

static const struct fabric *make_rail(const char *name, uint32_t adapters, struct err *e)
{
    struct rail_shape s = {.hosts = adapters / 8, .speed_ext = 4};
    if (adapters == 0 || adapters % 8) {
        err_set(e, -EINVAL, name, "%u adapters are not whole hosts of 8; " FORMS, adapters);
        return NULL;
    }
    s.sus = (s.hosts + 31) / 32;
    s.leaves = 8 * s.sus;
    s.spines = s.leaves / 2 < 4 ? 4 : s.leaves / 2 > 32 ? 32 : s.leaves / 2;
    s.per_pair = 32 / s.spines;
    s.spine_ports = s.leaves * s.per_pair < 64 ? 64 : s.leaves * s.per_pair;
    if (s.leaves > SWITCH_MAX_PORTS || s.spine_ports > SWITCH_MAX_PORTS) {
        err_set(e, -EINVAL, name,
                "two levels end at spines of %d ports, %u adapters would need more; try ft3-64-8 or "
                "superpod-32; " FORMS,
                SWITCH_MAX_PORTS, adapters);
        return NULL;
    }
    return rail_make(&s, false);
}

// ---------------------------------------------------------------- three levels

struct ft3_shape {
    uint32_t radix, half, pods, cores;
    uint32_t cores_per_plane, per_core; // per_core: links from one agg to each core of its plane
    bool rails;                         // hosts' adapters one a leaf, SuperPOD names
    uint8_t speed_ext;
};

static void ft3_switches(struct gen *g, const struct ft3_shape *s)
{
    char desc[64];
    for (uint32_t i = 0; i < s->pods * s->half; i++) {
        if (s->rails)
            snprintf(desc, sizeof(desc), "leaf-su%02u-rail%u", i / 8 + 1, i % 8);
        else
            snprintf(desc, sizeof(desc), "leaf-p%02u-%02u", i / s->half + 1, i % s->half + 1);
        add_switch(g, (uint8_t)s->radix, desc);
    }
    for (uint32_t i = 0; i < s->pods * s->half; i++) {
        snprintf(desc, sizeof(desc), "%s-p%02u-%02u", s->rails ? "spine" : "agg", i / s->half + 1,
                 i % s->half + 1);
        add_switch(g, (uint8_t)s->radix, desc);
    }
    for (uint32_t c = 0; c < s->cores; c++) {
        snprintf(desc, sizeof(desc), "core-%03u", c + 1);
        add_switch(g, (uint8_t)s->radix, desc);
    }
}

static void ft3_hosts_link(struct gen *g, const struct ft3_shape *s)
{
    for (uint32_t q = 0; q < g->num_adapters; q++) {
        uint32_t h = q / 8, r = q % 8;
        if (s->rails)
            connect_ports(g, g->adapter[q], 1, g->sw[h / 32 * 8 + r], h % 32 + 1);
        else
            connect_ports(g, g->adapter[q], 1, g->sw[q / s->half], q % s->half + 1);
    }
}

static void ft3_trunks_link(struct gen *g, const struct ft3_shape *s)
{
    uint32_t h = s->half, aggs = s->pods * h, cores = 2 * s->pods * h;
    for (uint32_t p = 0; p < s->pods; p++) {
        for (uint32_t l = 0; l < h; l++) {
            for (uint32_t a = 0; a < h; a++)
                connect_switches(g, p * h + l, h + a + 1, aggs + p * h + a, l + 1);
        }
    }
    // Agg a of every pod goes to the cores of plane a.
    for (uint32_t i = 0; i < aggs * s->cores_per_plane; i++) {
        uint32_t p = i / (h * s->cores_per_plane), a = i / s->cores_per_plane % h, c = i % s->cores_per_plane;
        for (uint32_t k = 0; k < s->per_core; k++)
            connect_switches(g, aggs + p * h + a, h + c * s->per_core + k + 1,
                             cores + a * s->cores_per_plane + c, p * s->per_core + k + 1);
    }
}

static const struct fabric *ft3_make(const struct ft3_shape *s)
{
    struct gen g;
    uint32_t adapters = s->pods * s->half * s->half;
    gen_start(&g, adapters, 2 * s->pods * s->half + s->cores, s->speed_ext);
    for (uint32_t q = 0; q < adapters; q++)
        add_host_adapter(&g, q / 8, q % 8);
    ft3_switches(&g, s);
    ft3_hosts_link(&g, s);
    ft3_trunks_link(&g, s);
    return gen_end(&g);
}

static const struct fabric *make_ft3(const char *name, uint32_t radix, uint32_t pods, struct err *e)
{
    struct ft3_shape s = {.radix = radix, .half = radix / 2, .pods = pods, .speed_ext = 4};
    if (radix < 2 || radix % 2 || radix > SWITCH_MAX_PORTS || pods == 0 || pods > radix) {
        err_set(e, -EINVAL, name, "the radix is an even number up to %d, pods are 1 to the radix; " FORMS,
                SWITCH_MAX_PORTS);
        return NULL;
    }
    if (pods > 1) {
        s.cores_per_plane = pods / 2;
        if (pods % 2 || s.half % s.cores_per_plane) {
            err_set(e, -EINVAL, name,
                    "%u pods of radix %u do not fill their cores: pods are 1, or even with "
                    "half of them dividing %u; " FORMS,
                    pods, radix, s.half);
            return NULL;
        }
        s.per_core = s.half / s.cores_per_plane;
        s.cores = s.cores_per_plane * s.half;
    }
    uint32_t lids = pods * s.half * s.half + 2 * pods * s.half + s.cores;
    if (lids > LID_UCAST_MAX) {
        err_set(e, -EINVAL, name, "%u nodes, but a subnet has %d LIDs; " FORMS, lids, LID_UCAST_MAX);
        return NULL;
    }
    return ft3_make(&s);
}

static const struct fabric *make_superpod(const char *name, uint32_t su, struct err *e)
{
    if (su == 16 || su == 32 || su == 64) {
        uint32_t pods = su / 4;
        return ft3_make(&(struct ft3_shape){.radix = 64,
                                            .half = 32,
                                            .pods = pods,
                                            .cores = 16 * pods,
                                            .cores_per_plane = pods / 2,
                                            .per_core = 64 / pods,
                                            .rails = true,
                                            .speed_ext = 8});
    }
    if (su == 1 || su == 2 || su == 3 || su == 4 || su == 8) {
        // 1 and 3 SUs are published only as pods that give one host's place to the fabric managers.
        bool ufm = su == 1 || su == 3;
        uint32_t spines = su == 3 ? 16 : 4 * su;
        return rail_make(&(struct rail_shape){.hosts = 32 * su - ufm,
                                              .sus = su,
                                              .leaves = 8 * su,
                                              .spines = spines,
                                              .per_pair = 32 / spines,
                                              .spine_ports = 64,
                                              .speed_ext = 8},
                         ufm);
    }
    err_set(e, -EINVAL, name, "no count of switches is published for a SuperPOD of %u SUs; " FORMS, su);
    return NULL;
}

// 40 pods on 64-port switches: no closed three-level tree, the cores keep 24 ports free.
static const struct fabric *make_subnet(const char *name, uint32_t hosts, struct err *e)
{
    if (hosts == 40960)
        return ft3_make(&(struct ft3_shape){.radix = 64,
                                            .half = 32,
                                            .pods = 40,
                                            .cores = 1024,
                                            .cores_per_plane = 32,
                                            .per_core = 1,
                                            .speed_ext = 4});
    err_set(e, -EINVAL, name, "only the full subnet of 40960 hosts is laid out; " FORMS);
    return NULL;
}

// ---------------------------------------------------------------- names

enum form {
    FORM_NONE,
    FORM_RAIL,
    FORM_FT3,
    FORM_SUPERPOD,
    FORM_SUBNET,
};

static bool number_read(const char **s, uint32_t *ret)
{
    uint32_t v = 0, digits = 0;
    for (; **s >= '0' && **s <= '9'; (*s)++, digits++) {
        if (digits == 7)
            return false;
        v = 10 * v + (uint32_t)(**s - '0');
    }
    *ret = v;
    return digits > 0;
}

static enum form form_read(const char *name, uint32_t *ret_a, uint32_t *ret_b)
{
    static const struct {
        const char *prefix;
        enum form form;
        int numbers;
    } forms[] = {{"rail-", FORM_RAIL, 1},
                 {"ft3-", FORM_FT3, 2},
                 {"superpod-", FORM_SUPERPOD, 1},
                 {"subnet-", FORM_SUBNET, 1}};
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t len = strlen(forms[i].prefix);
        const char *s = name + len;
        if (strncmp(name, forms[i].prefix, len) != 0 || !number_read(&s, ret_a))
            continue;
        if (forms[i].numbers == 2 && (*s++ != '-' || !number_read(&s, ret_b)))
            continue;
        if (*s == '\0')
            return forms[i].form;
    }
    return FORM_NONE;
}

const char *topogen_forms(void)
{
    return FORMS;
}

bool topogen_is_name(const char *name)
{
    uint32_t a, b;
    return form_read(name, &a, &b) != FORM_NONE;
}

const struct fabric *topogen_make(const char *name, struct err *e)
{
    uint32_t a = 0, b = 0;
    switch (form_read(name, &a, &b)) {
    case FORM_RAIL:
        return make_rail(name, a, e);
    case FORM_FT3:
        return make_ft3(name, a, b, e);
    case FORM_SUPERPOD:
        return make_superpod(name, a, e);
    case FORM_SUBNET:
        return make_subnet(name, a, e);
    case FORM_NONE:
        break;
    }
    err_set(e, -EINVAL, name, "no generated fabric has such a name; " FORMS);
    return NULL;
}
