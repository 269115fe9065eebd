// SPDX-License-Identifier: Apache-2.0
// What each verb does to a simulated fabric, and says that it did.
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/sim_priv.h"
#include "lib/guid.h"
#include "mad/codec.h"
#include "mad/mad.h"

const char *const ask_widths[] = {"1x", "2x", "4x", "8x", "12x", NULL};
const char *const ask_speeds[] = {"SDR", "DDR", "QDR", "FDR", "EDR", "HDR", "NDR", NULL};
const char *const ask_states[] = {"not-active", "discovering", "standby", "master", NULL};
const char *const ask_controls[] = {"handover", "acknowledge", "disable", "standby", "discover", NULL};

const json_t *ask_value(const struct ask *k, const char *name)
{
    return json_object_get(k->r->json, name);
}

bool ask_given(const struct ask *k, const char *name)
{
    return ask_value(k, name) != NULL;
}

int64_t ask_integer(const struct ask *k, const char *name, int64_t def)
{
    return ask_given(k, name) ? json_integer_value(ask_value(k, name)) : def;
}

const char *ask_string(const struct ask *k, const char *name)
{
    const char *s = json_string_value(ask_value(k, name));
    return s != NULL ? s : "";
}

double ask_number(const struct ask *k, const char *name, double def)
{
    return ask_given(k, name) ? json_number_value(ask_value(k, name)) : def;
}

int64_t ask_nanoseconds(const struct ask *k, const char *name, double def)
{
    return (int64_t)(ask_number(k, name, def) * (double)MONO_S + 0.5);
}

// Index of the word in list; def when the field is absent. The body has been checked.
unsigned ask_word(const struct ask *k, const char *name, const char *const *list, unsigned def)
{
    for (unsigned i = 0; list[i] != NULL && ask_given(k, name); i++)
        if (strcmp(list[i], ask_string(k, name)) == 0)
            return i;
    return def;
}

// A GUID or key; def when absent. -EINVAL in k->err.
static int hex(struct ask *k, const char *name, uint64_t def, uint64_t *ret)
{
    *ret = def;
    if (ask_given(k, name) && guid_parse(ask_string(k, name), ret) != 0)
        return err_set(&k->err, -EINVAL, name,
                       "\"%.60s\" is no hexadecimal number of 64 bits, such as 0x1b2c", ask_string(k, name));
    return 0;
}

void ask_said(struct ask *k, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(k->said, sizeof(k->said), fmt, ap);
    va_end(ap);
}

// --- links and cables ---

int verb_link_down(struct ask *k)
{
    ask_said(k, "%s lost its cable", k->at.text);
    return sim_link_set(k->sim, k->at.guid, k->at.port, false);
}

int verb_link_up(struct ask *k)
{
    ask_said(k, "%s has its cable again", k->at.text);
    return sim_link_set(k->sim, k->at.guid, k->at.port, true);
}

int verb_link_flap(struct ask *k)
{
    double down = ask_number(k, "down_seconds", 0.01), up = ask_number(k, "up_seconds", 0.01);
    unsigned times = (unsigned)ask_integer(k, "times", 1);
    if (times > 1)
        ask_said(k, "%s loses its cable %u times, for %g s each, %g s apart", k->at.text, times, down, up);
    else
        ask_said(k, "%s loses its cable for %g s", k->at.text, down);
    return sim_link_flap(k->sim, k->at.guid, k->at.port, ask_nanoseconds(k, "down_seconds", 0.01),
                         ask_nanoseconds(k, "up_seconds", 0.01), times);
}

int verb_link_enable(struct ask *k)
{
    static const uint8_t width_bit[] = {MAD_WIDTH_1X, MAD_WIDTH_2X,  MAD_WIDTH_4X,
                                        MAD_WIDTH_8X, MAD_WIDTH_12X, 0};
    static const struct {
        uint8_t speed, ext;
    } speed_bit[] = {{MAD_SPEED_SDR, MAD_SPEED_EXT_ENABLED_NONE},
                     {MAD_SPEED_DDR, MAD_SPEED_EXT_ENABLED_NONE},
                     {MAD_SPEED_QDR, MAD_SPEED_EXT_ENABLED_NONE},
                     {0, MAD_SPEED_EXT_FDR},
                     {0, MAD_SPEED_EXT_EDR},
                     {0, MAD_SPEED_EXT_HDR},
                     {0, MAD_SPEED_EXT_NDR},
                     {0, 0}};
    unsigned w = ask_word(k, "width", ask_widths, 5), s = ask_word(k, "speed", ask_speeds, 7);
    if (!ask_given(k, "width") && !ask_given(k, "speed"))
        return err_set(&k->err, -EINVAL, k->at.text, "say which width or speed is enabled");
    ask_said(k, "%s enables %s%s%s only, from its next training on", k->at.text, ask_string(k, "width"),
             ask_given(k, "width") && ask_given(k, "speed") ? " " : "", ask_string(k, "speed"));
    return sim_link_enabled(k->sim, k->at.guid, k->at.port, width_bit[w], speed_bit[s].speed,
                            speed_bit[s].ext);
}

int verb_cable_move(struct ask *k)
{
    ask_said(k, "the cable at %s leads to %s now", k->at.text, k->to.text);
    return sim_recable(k->sim, k->at.guid, k->at.port, k->to.guid, k->to.port);
}

int verb_cable_swap(struct ask *k)
{
    ask_said(k, "the cables at %s and %s have exchanged their far ends", k->at.text, k->to.text);
    return sim_swap_cables(k->sim, k->at.guid, k->at.port, k->to.guid, k->to.port);
}

// --- nodes ---

int verb_node_kill(struct ask *k)
{
    ask_said(k, "%s does not answer any more", k->at.node);
    return sim_node_kill(k->sim, k->at.guid, true);
}

int verb_node_revive(struct ask *k)
{
    ask_said(k, "%s answers again", k->at.node);
    return sim_node_kill(k->sim, k->at.guid, false);
}

static bool has_times(const struct ask *k)
{
    return ask_given(k, "down_seconds") || ask_given(k, "silent_seconds");
}

int verb_node_reboot(struct ask *k)
{
    ask_said(k, "%s reboots", k->at.node);
    if (has_times(k))
        return sim_node_boot(k->sim, k->at.guid, ask_nanoseconds(k, "down_seconds", 0),
                             ask_nanoseconds(k, "silent_seconds", 0));
    return sim_node_reboot(k->sim, k->at.guid);
}

int verb_switch_reboot(struct ask *k)
{
    if (k->at.n != NULL && k->at.n->type != NODE_SWITCH)
        return -EINVAL;
    if (has_times(k))
        return verb_node_reboot(k);
    ask_said(k, "%s reboots", k->at.node);
    return sim_switch_reboot(k->sim, k->at.guid);
}

int verb_node_slow(struct ask *k)
{
    unsigned factor = (unsigned)ask_integer(k, "factor", 1);
    int64_t ns = ask_nanoseconds(k, "seconds", 0);

    if (!ask_given(k, "factor") && !ask_given(k, "seconds"))
        return err_set(&k->err, -EINVAL, k->at.node, "say how slow: a factor, or seconds for each request");
    if (factor == 1 && ns == 0)
        ask_said(k, "%s is as fast as the others", k->at.node);
    else if (ns == 0)
        ask_said(k, "%s takes %u times as long as before", k->at.node, factor);
    else
        ask_said(k, "%s takes %g s more for each request", k->at.node, mono_seconds(ns));
    int rc = ask_given(k, "factor") ? sim_node_slow(k->sim, k->at.guid, factor) : 0;
    return rc == 0 && ask_given(k, "seconds") ? sim_node_delay(k->sim, k->at.guid, ns) : rc;
}

// -EINVAL when it does not fit into a NodeDescription.
static int description(struct ask *k, const char **ret)
{
    *ret = ask_given(k, "text") ? ask_string(k, "text") : NULL;
    if (*ret != NULL && strlen(*ret) > 64)
        return err_set(&k->err, -EINVAL, "text", "a NodeDescription has 64 bytes at most, not %zu",
                       strlen(*ret));
    return 0;
}

int verb_node_name(struct ask *k)
{
    const char *text;
    int rc = description(k, &text);
    ask_said(k, "%s says it is \"%s\"", k->at.node, ask_string(k, "text"));
    return rc != 0 ? rc : sim_node_desc(k->sim, k->at.guid, text);
}

int verb_host_reboot(struct ask *k)
{
    const char *text;
    int rc = description(k, &text);
    ask_said(k, "the computer around %s boots for %g s, its link stays up", k->at.node,
             ask_number(k, "seconds", 10));
    return rc != 0 ? rc
                   : sim_host_reboot(k->sim, k->at.guid, ask_nanoseconds(k, "seconds", 10), text,
                                     json_is_true(ask_value(k, "orderly")));
}

int verb_adapter_replace(struct ask *k)
{
    uint64_t guid;
    int64_t down = ask_nanoseconds(k, "down_seconds", 1);
    int rc = hex(k, "guid", 0, &guid);

    if (rc != 0)
        return rc;
    if (ask_given(k, "guid")) {
        rc = sim_node_replace(k->sim, k->at.guid, guid, down);
    } else { // of the same maker, a later number
        rc = -EEXIST;
        for (uint64_t i = 1; rc == -EEXIST && i <= 64; i++) {
            guid = (k->at.guid & ~0xffff000000ull) | ((k->at.guid + i * 0x1000000) & 0xffff000000ull);
            rc = sim_node_replace(k->sim, k->at.guid, guid, down);
        }
    }
    ask_said(k, "%s is another device now: " GUID_FMT, k->at.node, GUID_ARG(guid));
    return rc;
}

int verb_guid_duplicate(struct ask *k)
{
    ask_said(k, "%s reboots and shows the GUIDs of %s", k->at.node, k->to.node);
    return k->at.guid == k->to.guid ? -EINVAL : sim_guid_duplicate(k->sim, k->at.guid, k->to.guid);
}

int verb_guid_restore(struct ask *k)
{
    ask_said(k, "%s reboots and shows its own GUIDs again", k->at.node);
    return sim_guid_duplicate(k->sim, k->at.guid, 0);
}

int verb_system_guid(struct ask *k)
{
    uint64_t guid;
    int rc = hex(k, "guid", 0, &guid);
    ask_said(k, "%s has the SystemImageGUID " GUID_FMT, k->at.node, GUID_ARG(guid));
    return rc != 0 ? rc : sim_sys_guid(k->sim, k->at.guid, guid);
}

int verb_m_key(struct ask *k)
{
    uint64_t key;
    int rc = hex(k, "key", 0, &key);
    ask_said(k, key != 0 ? "%s has an M_Key that its manager does not know" : "%s has no M_Key any more",
             k->at.text);
    return rc != 0 ? rc
                   : sim_m_key_set(k->sim, k->at.guid, k->at.port, key, (uint8_t)ask_integer(k, "protect", 1),
                                   (uint16_t)ask_integer(k, "lease_seconds", 0));
}

// --- traps and settings ---

int verb_trap_raise(struct ask *k)
{
    unsigned n = (unsigned)ask_integer(k, "number", 0);
    ask_said(k, "%s sends trap %u", k->at.text, n);
    return sim_raise_trap(k->sim, k->at.guid, k->at.port, (uint16_t)n);
}

int verb_trap_lose(struct ask *k)
{
    unsigned n = (unsigned)ask_integer(k, "count", UINT_MAX);
    if (n == 0)
        ask_said(k, "traps of %s arrive again", k->at.node);
    else if (n == UINT_MAX)
        ask_said(k, "all traps of %s are lost", k->at.node);
    else
        ask_said(k, "the next %u traps of %s are lost", n, k->at.node);
    return sim_trap_lose(k->sim, k->at.guid, n);
}

int verb_trap_loss(struct ask *k)
{
    double share = ask_number(k, "share", 0);
    sim_trap_loss(k->sim, share);
    if (share > 0)
        ask_said(k, "%g %% of all traps are lost", share * 100);
    else
        ask_said(k, "no traps are lost");
    return 0;
}

static int keep(struct ask *k, bool on)
{
    const char *what = ask_string(k, "what");
    const struct mad_attr *a;

    ask_said(k, on ? "%s answers Set(%s) with success and keeps nothing" : "%s keeps Set(%s) again",
             k->at.node, what);
    for (unsigned i = 0; (a = mad_attr_at(i)) != NULL; i++)
        if (a->mgmt_class == MAD_CLASS_SM_LID && strcasecmp(a->name, what) == 0)
            return sim_set_not_kept(k->sim, k->at.guid, a->id, on);
    int rc = sim_set_field_not_kept(k->sim, k->at.guid, MAD_ATTR_PORT_INFO, what, on);
    if (rc == -EINVAL)
        rc = sim_set_field_not_kept(k->sim, k->at.guid, MAD_ATTR_SWITCH_INFO, what, on);
    if (rc == -EINVAL)
        err_set(&k->err, -EINVAL, what,
                "no attribute and no field of PortInfo or SwitchInfo has this name; such as "
                "LinearForwardingTable, subnet_timeout, life_time_value");
    return rc;
}

int verb_set_ignore(struct ask *k)
{
    return keep(k, true);
}

int verb_set_keep(struct ask *k)
{
    return keep(k, false);
}

// --- subnet managers and hosts ---

static int need_port_guid(struct ask *k)
{
    return k->at.port_guid != 0
               ? 0
               : err_set(&k->err, -ENOENT, k->at.text,
                         "this is no end port that has been discovered; name an adapter's port");
}

// What the body says, over what is there.
static int sm_fields(struct ask *k, struct sim_sm *m)
{
    int rc = hex(k, "sm_key", m->sm_key, &m->sm_key);
    if (rc == 0)
        rc = hex(k, "guid", m->guid, &m->guid);
    m->priority = (uint8_t)ask_integer(k, "priority", m->priority);
    m->state = (uint8_t)ask_word(k, "state", ask_states, m->state);
    m->frozen = ask_given(k, "frozen") ? json_is_true(ask_value(k, "frozen")) : m->frozen;
    m->silent = ask_given(k, "silent") ? json_is_true(ask_value(k, "silent")) : m->silent;
    m->quiet = ask_given(k, "quiet") ? json_is_true(ask_value(k, "quiet")) : m->quiet;
    m->poll_ns = ask_given(k, "poll_seconds") ? ask_nanoseconds(k, "poll_seconds", 0) : m->poll_ns;
    m->poll_misses = (unsigned)ask_integer(k, "misses", m->poll_misses);
    return rc;
}

int verb_sm_add(struct ask *k)
{
    struct sim_sm m = {
        .state = MAD_SM_STANDBY, .sm_key = 1, .poll_ns = MONO_S, .poll_misses = 3}; // OpenSM's key
    int rc = need_port_guid(k);
    if (rc == 0)
        rc = sm_fields(k, &m);
    ask_said(k, "a subnet manager runs at %s: %s, priority %u", k->at.text, ask_states[m.state & 3],
             m.priority);
    return rc != 0 ? rc : sim_sm_add(k->sim, k->at.port_guid, &m);
}

static int no_sm(struct ask *k, int rc)
{
    return rc == -ENOENT
               ? err_set(&k->err, rc, k->at.text, "no simulated subnet manager runs here; sm-add adds one")
               : rc;
}

int verb_sm_set(struct ask *k)
{
    struct sim_sm_view v;
    int rc = need_port_guid(k);
    if (rc == 0)
        rc = no_sm(k, sim_sm_view(k->sim, k->at.port_guid, &v));
    if (rc == 0)
        rc = sm_fields(k, &v.sm);
    if (rc != 0)
        return rc;
    ask_said(k, "the subnet manager at %s: %s, priority %u%s%s", k->at.text, ask_states[v.sm.state & 3],
             v.sm.priority, v.sm.silent ? ", silent" : "", v.sm.frozen ? ", frozen" : "");
    return sim_sm_set(k->sim, k->at.port_guid, &v.sm);
}

int verb_sm_remove(struct ask *k)
{
    int rc = need_port_guid(k);
    ask_said(k, "the subnet manager at %s is gone", k->at.text);
    return rc != 0 ? rc : no_sm(k, sim_sm_remove(k->sim, k->at.port_guid));
}

int verb_sm_control(struct ask *k)
{
    unsigned lid = (unsigned)ask_integer(k, "lid", 0);
    int rc = need_port_guid(k);
    ask_said(k, "the subnet manager at %s sends %s to LID %u", k->at.text, ask_string(k, "control"), lid);
    return rc != 0 ? rc
                   : no_sm(k, sim_sm_control(k->sim, k->at.port_guid, (uint16_t)lid,
                                             MAD_SM_HANDOVER + ask_word(k, "control", ask_controls, 0)));
}

int verb_hosts_on(struct ask *k)
{
    struct sim_hosts_opts o = {.spread_ns = ask_nanoseconds(k, "spread_seconds", 0),
                               .path_hz = ask_number(k, "path_rate", 0)};
    sim_hosts_start(k->sim, &o);
    ask_said(k, "every adapter is a Linux host with IPoIB");
    return 0;
}

int verb_hosts_off(struct ask *k)
{
    sim_hosts_stop(k->sim);
    ask_said(k, "the hosts ask for nothing any more");
    return 0;
}

int verb_loss(struct ask *k)
{
    double share = ask_number(k, "share", 0);
    sim_set_loss(k->sim, share);
    if (share > 0)
        ask_said(k, "%g %% of all datagrams are lost, at every device", share * 100);
    else
        ask_said(k, "no datagrams are lost");
    return 0;
}
