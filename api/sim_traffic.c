// SPDX-License-Identifier: Apache-2.0
// Traffic of simulated fabrics and errors by chance: the verbs, and which ports a list of hosts means.
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "api/sim_priv.h"
#include "lib/buf.h"
#include "lib/guid.h"
#include "lib/xalloc.h"
#include "sim/sim_flow.h"

const char *const ask_patterns[] = {"ring",   "all-to-all", "incast", "storage", "shift",
                                    "random", "balanced",   "idle",   NULL}; // as enum sim_pattern

// --- lists of hosts ---

// "[0001-0016,0020]" at *list against the number at *name: both go on behind it.
static bool in_ranges(const char **list, const char **name)
{
    const char *p = *list + 1, *end = strchr(p, ']');
    size_t digits = strspn(*name, "0123456789");
    unsigned long n = digits > 0 && digits < 10 ? strtoul(*name, NULL, 10) : 0;
    bool found = false;

    while (p < end && digits > 0 && digits < 10) {
        size_t len = strspn(p, "0123456789");
        unsigned long first = strtoul(p, NULL, 10), last = first;
        if (len == 0 || len >= 10)
            return false;
        p += len;
        if (*p == '-') {
            last = strtoul(p + 1, NULL, 10);
            p += 1 + strspn(p + 1, "0123456789");
        }
        found |= n >= first && n <= last && len == digits;
        p += *p == ',';
        if (*p != ']' && (*p < '0' || *p > '9'))
            return false;
    }
    *list = end + 1;
    *name += digits;
    return found;
}

// Whether [..] holds numbers and ranges of them, not a class of characters.
static bool is_ranges(const char *open)
{
    size_t n = strspn(open + 1, "0123456789,-");
    return n > 0 && open[1 + n] == ']' && (n > 1 && strpbrk(open + 1, ",-]") - open > 2);
}

static bool matches(const char *item, const char *name)
{
    const char *open = strchr(item, '[');
    if (open == NULL || !is_ranges(open))
        return fnmatch(item, name, 0) == 0;
    size_t prefix = (size_t)(open - item);
    if (strncmp(item, name, prefix) != 0)
        return false;
    name += prefix;
    item = open;
    return in_ranges(&item, &name) && matches(item, name);
}

// Cuts ":3" off, as gpu-0001:3 has it; the rail, or -1.
static int cut_rail(char *item)
{
    char *colon = strrchr(item, ':');
    size_t digits = colon != NULL ? strspn(colon + 1, "0123456789") : 0;
    if (digits == 0 || digits > 4 || colon[1 + digits] != 0)
        return -1;
    *colon = 0;
    return atoi(colon + 1);
}

// A node by its name or GUID, or adapters of a host by the host's name: all, or that of a rail.
static bool names_node(const struct fabric *f, const struct node *n, const char *item)
{
    const char *desc = fabric_desc(f, n);
    char host[128], bare[300];
    uint64_t guid;

    if (guid_parse(item, &guid) == 0 && guid == n->guid)
        return true;
    snprintf(host, sizeof(host), "%.*s", (int)strcspn(desc, " "), desc);
    snprintf(bare, sizeof(bare), "%s", item);
    int rail = cut_rail(bare);
    return matches(item, desc) || (matches(bare, host) && (rail < 0 || n->rail == rail));
}

// The next item of a list, up to a comma outside of brackets; false at its end.
static bool next_item(const char **p, char *ret, size_t size)
{
    size_t n = 0;
    int depth = 0;
    if (**p == 0)
        return false;
    for (; **p != 0 && (**p != ',' || depth > 0); (*p)++) {
        depth += (**p == '[') - (**p == ']');
        if (n + 1 < size)
            ret[n++] = **p;
    }
    ret[n] = 0;
    *p += **p == ',';
    return true;
}

// Ports of adapters that the field names; NULL and 0 when it is absent. -EINVAL in k->err.
static int ports_of(struct ask *k, const char *field, uint64_t **ret, uint32_t *ret_num)
{
    const struct fabric *f = view_fabric(k->r->view);
    const char *p = ask_string(k, field);
    char item[300];

    *ret = NULL;
    *ret_num = 0;
    if (!ask_given(k, field))
        return 0;
    if (f == NULL)
        return err_set(&k->err, -EINVAL, field, "the fabric has not been discovered yet");
    *ret = xcalloc(f->num_ports + 1, sizeof(**ret));
    bool *taken = xcalloc(f->num_ports + 1, sizeof(*taken));
    int rc = 0;
    while (rc == 0 && next_item(&p, item, sizeof(item))) {
        bool any = false;
        for (uint32_t i = 0; i < f->num_ports; i++) {
            const struct node *n = fabric_node(f, f->port[i].node);
            if (n->type != NODE_CA || !port_valid(f->port[i].peer) || !names_node(f, n, item))
                continue;
            any = true;
            if (!taken[i])
                (*ret)[(*ret_num)++] = f->port[i].guid;
            taken[i] = true;
        }
        if (!any)
            rc = err_set(&k->err, -EINVAL, field, "\"%.100s\" names no adapter with a cable", item);
    }
    free(taken);
    return rc;
}

// --- traffic ---

static int start(struct ask *k, struct sim_flow_spec *d)
{
    uint32_t id;
    struct sim_flow_info info = {0};
    int rc = sim_flow_start(k->sim, d, &id);

    if (rc == -E2BIG)
        return err_set(&k->err, rc, "pattern", "more than a million flows: fewer hosts, or a smaller fan");
    if (rc != 0)
        return rc;
    for (unsigned i = 0; sim_flow_list(k->sim, i, &info) == 0 && info.id != id; i++)
        ;
    if (info.flows == 0) {
        sim_flow_stop(k->sim, id);
        return err_set(&k->err, -EINVAL, "hosts", "these hosts have nobody to send to");
    }
    ask_said(k, "traffic %u: %s, %u senders, %u flows%s", id, info.name, info.senders, info.flows,
             d->off_ns > 0 || d->pattern == SIM_FLOW_STORAGE ? ", in bursts" : "");
    return 0;
}

int verb_traffic_start(struct ask *k)
{
    uint64_t *host, *receiver;
    struct sim_flow_spec d = {
        .pattern = (enum sim_pattern)ask_word(k, "pattern", ask_patterns, 0),
        .name = ask_given(k, "text") ? ask_string(k, "text") : NULL,
        .load = ask_number(k, "load", 0),
        .shift = (unsigned)ask_integer(k, "shift", 0),
        .fan = (unsigned)ask_integer(k, "fan", 0),
        .sl_given = ask_given(k, "level"),
        .sl = (uint8_t)ask_integer(k, "level", 0),
        .window = (uint32_t)ask_integer(k, "window", 0),
        .on_ns = ask_nanoseconds(k, "on_seconds", 0),
        .off_ns = ask_nanoseconds(k, "off_seconds", 0),
        .seed = (uint64_t)ask_integer(k, "seed", 0),
    };
    int rc = ports_of(k, "hosts", &host, &d.num_hosts);
    int rc2 = rc == 0 ? ports_of(k, "receivers", &receiver, &d.num_receivers) : rc;
    if (rc2 == 0) {
        d.host = host;
        d.receiver = receiver;
        rc2 = start(k, &d);
    }
    free(host);
    if (rc == 0)
        free(receiver);
    return rc2;
}

int verb_traffic_stop(struct ask *k)
{
    uint32_t id = (uint32_t)ask_integer(k, "id", 0);
    if (id == 0)
        ask_said(k, "all traffic has ended");
    else
        ask_said(k, "traffic %u has ended", id);
    int rc = sim_flow_stop(k->sim, id);
    return rc == -ENOENT ? err_set(&k->err, rc, "id", "there is no traffic %u; weft sim traffic list", id)
                         : rc;
}

int verb_receiver(struct ask *k)
{
    double share = ask_number(k, "share", 1);
    if (share < 1)
        ask_said(k, "the host at %s takes %g %% of what its link carries", k->at.text, share * 100);
    else
        ask_said(k, "the host at %s takes all that arrives", k->at.text);
    int rc = sim_receiver(k->sim, k->at.guid, k->at.port, share);
    if (rc == -ENOENT && k->at.n != NULL && k->at.n->type == NODE_SWITCH)
        return err_set(&k->err, -EINVAL, k->at.text, "it is a switch; an adapter's port receives");
    return rc;
}

// --- errors ---

static const struct {
    const char *field;
    enum sim_counter counter;
    const char *name;
} kinds[] = {
    {"symbol", SIM_SYMBOL_ERRORS, "symbol errors"},
    {"recovery", SIM_LINK_ERROR_RECOVERY, "recoveries"},
    {"receive", SIM_RCV_ERRORS, "receive errors"},
    {"remote", SIM_RCV_REMOTE_PHYSICAL_ERRORS, "remote physical errors"},
    {"integrity", SIM_LOCAL_LINK_INTEGRITY_ERRORS, "integrity errors"},
    {"overrun", SIM_EXCESSIVE_BUFFER_OVERRUN_ERRORS, "buffer overruns"},
    {"discard", SIM_XMIT_DISCARDS, "discards"},
    {"uncorrectable", SIM_FEC_UNCORRECTABLE_BLOCKS, "uncorrectable blocks"},
    {"vl15", SIM_VL15_DROPPED, "dropped management packets"},
};

static int set_ratio(struct ask *k, const char *field, const char *name,
                     int (*set)(struct sim *s, uint64_t node_guid, unsigned port, double ber),
                     struct buf *text)
{
    double ber = ask_number(k, field, 0);
    if (!ask_given(k, field))
        return 0;
    buf_printf(text, "%s%s of %g", text->len ? ", " : "", name, ber);
    return set(k->sim, k->at.guid, k->at.port, ber);
}

int verb_errors(struct ask *k)
{
    struct buf text = {0};
    int rc = 0;

    if (ask_given(k, "ber") && ask_given(k, "symbol"))
        return err_set(&k->err, -EINVAL, "ber", "symbol errors by their number or by the bit error ratio");
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && rc == 0; i++) {
        double rate = ask_number(k, kinds[i].field, 0);
        if (!ask_given(k, kinds[i].field))
            continue;
        rc = sim_errors(k->sim, k->at.guid, k->at.port, kinds[i].counter, rate);
        buf_printf(&text, "%s%g %s an hour", text.len ? ", " : "", rate, kinds[i].name);
    }
    if (rc == 0)
        rc = set_ratio(k, "ber", "a bit error ratio", sim_ber, &text);
    if (rc == 0)
        rc = set_ratio(k, "raw_ber", "a bit error ratio before correction", sim_raw_ber, &text);
    if (text.len == 0)
        return err_set(&k->err, -EINVAL, k->at.text, "say which errors, and how many an hour");
    ask_said(k, "%s receives with %s", k->at.text, text.data);
    buf_done(&text);
    return rc;
}

// --- sensors ---

int verb_module(struct ask *k)
{
    struct sim_module m = {.celsius = ask_number(k, "celsius", 45),
                           .rx_dbm = ask_number(k, "rx_dbm", 0),
                           .tx_dbm = ask_number(k, "tx_dbm", 0),
                           .fault = json_is_true(ask_value(k, "fault"))};
    ask_said(k, "the module at %s measures %g C, %g dBm received and %g dBm sent on its second lane%s",
             k->at.text, m.celsius, m.rx_dbm, m.tx_dbm, m.fault ? ", and says that it has failed" : "");
    return sim_module_set(k->sim, k->at.guid, k->at.port, &m);
}

int verb_device(struct ask *k)
{
    struct sim_device d = {.celsius = ask_number(k, "celsius", 50),
                           .failed_fans = (unsigned)ask_integer(k, "failed_fans", 0),
                           .failed_supplies = (unsigned)ask_integer(k, "failed_supplies", 0)};
    ask_said(k, "%s measures %g C, %u failed fans, %u failed power supplies", k->at.node, d.celsius,
             d.failed_fans, d.failed_supplies);
    return sim_device_set(k->sim, k->at.guid, &d);
}
