// SPDX-License-Identifier: Apache-2.0
// What can be done to a simulated fabric. A verb is one row: its name, the fields of the body that it needs
// and may take, what it does, what the simulator's refusal means. From the rows come the checks, the list of
// verbs and the OpenAPI document. A field means the same in every verb.
//
//     sim.c          the body, its checks, handlers
//     sim_verbs.c    what each verb does
//     sim_traffic.c  the verbs of traffic, of errors and of sensors
#ifndef WEFT_API_SIM_PRIV_H
#define WEFT_API_SIM_PRIV_H

#include "api/api_priv.h"

struct sim_place {            // a node, and its port where a verb is about one
    uint64_t guid, port_guid; // port_guid: of an end port, 0 when not known
    unsigned port;
    const struct fabric *f; // where it was found; NULL when only its GUID is known
    const struct node *n;
    char node[200], text[240]; // for people: "leaf-1", "leaf-1[3]"
};
struct ask { // one request
    struct request *r;
    struct sim *sim;
    struct sim_place at, to;
    char said[500];
    struct err err; // set when the verb itself refuses
};

// Name, function, needs, takes, what -EINVAL or -EEXIST means, doc.
#define VERBS(X)                                                                                             \
    X("link-down", verb_link_down, "node port", "", "", "takes the cable out")                               \
    X("link-up", verb_link_up, "node port", "", "", "puts it back")                                          \
    X("link-flap", verb_link_flap, "node port", "times down_seconds up_seconds", "",                         \
      "takes it out and puts it back, several times (once; 10 ms out, 10 ms in)")                            \
    X("link-enable", verb_link_enable, "node port", "width speed",                                           \
      "the port does not support that; `weft port` shows what its link is now",                              \
      "the device enables another width or speed by itself; it counts from the next training on: flap the "  \
      "link")                                                                                                \
    X("cable-move", verb_cable_move, "node port to_node to_port", "", "both are the same port",              \
      "the far end of the cable at a port goes into another port; what was there hangs loose then")          \
    X("cable-swap", verb_cable_swap, "node port to_node to_port", "",                                        \
      "one of the ports has no cable, or one cable joins both", "two cables exchange their far ends")        \
    X("node-kill", verb_node_kill, "node", "", "", "its agent stops answering; links stay up")               \
    X("node-revive", verb_node_revive, "node", "", "", "its agent answers again")                            \
    X("node-reboot", verb_node_reboot, "node", "down_seconds silent_seconds", "",                            \
      "it forgets tables, LID and counters; links are down for down_seconds, its agent is silent for "       \
      "silent_seconds")                                                                                      \
    X("node-slow", verb_node_slow, "node", "factor seconds", "a delay is a minute at most",                  \
      "its agent takes factor times its service time, or so many seconds more for each request; factor 1, "  \
      "seconds 0: as the others")                                                                            \
    X("node-name", verb_node_name, "node text", "", "", "changes NodeDescription, with trap 144")            \
    X("switch-reboot", verb_switch_reboot, "node", "down_seconds silent_seconds",                            \
      "it is no switch; node-reboot takes any node", "the same as node-reboot, of a switch")                 \
    X("host-reboot", verb_host_reboot, "node", "seconds text orderly",                                       \
      "it is a switch; switch-reboot is for it",                                                             \
      "the computer boots while the adapter keeps its link: IsSM goes, NodeDescription becomes text for "    \
      "so many seconds (10); orderly leaves the multicast groups first")                                     \
    X("adapter-replace", verb_adapter_replace, "node", "guid down_seconds",                                  \
      "a node or port with that GUID is there already",                                                      \
      "another device on the same cables, in factory state; guid: its NodeGUID (a free one)")                \
    X("guid-duplicate", verb_guid_duplicate, "node to_node", "", "it is the same node",                      \
      "node reboots and shows the GUIDs of to_node")                                                         \
    X("guid-restore", verb_guid_restore, "node", "", "", "node reboots and shows its own GUIDs again")       \
    X("system-guid", verb_system_guid, "node guid", "", "", "changes SystemImageGUID, with trap 145")        \
    X("m-key", verb_m_key, "node key", "port protect lease_seconds",                                         \
      "that port has no M_Key; give port 0 of a switch, or an adapter's port",                               \
      "an M_Key that an operator or another manager left; key 0 takes it away")                              \
    X("trap-raise", verb_trap_raise, "node number", "port",                                                  \
      "such a node does not send this trap; there are 128 (switches), 129 to 131, 144, 145, 256 to 258, "    \
      "259 (switches)",                                                                                      \
      "a notice, repeated until it is repressed; nothing else happens")                                      \
    X("trap-lose", verb_trap_lose, "node", "count", "",                                                      \
      "the next count traps of the node are lost (all; 0: none)")                                            \
    X("trap-loss", verb_trap_loss, "share", "", "", "share of all traps that is lost")                       \
    X("set-ignore", verb_set_ignore, "node what", "", "",                                                    \
      "a Set is answered with success and not kept: of an attribute such as LinearForwardingTable, or of a " \
      "field of PortInfo or SwitchInfo such as subnet_timeout")                                              \
    X("set-keep", verb_set_keep, "node what", "", "", "it is kept again")                                    \
    X("sm-add", verb_sm_add, "node",                                                                         \
      "port priority state sm_key guid frozen silent quiet poll_seconds misses",                             \
      "there is a subnet manager at this port; sm-set changes it",                                           \
      "another subnet manager comes up at an adapter: it answers SMInfo and does nothing to the fabric")     \
    X("sm-set", verb_sm_set, "node",                                                                         \
      "port priority state sm_key guid frozen silent quiet poll_seconds misses", "a value is out of range",  \
      "changes it; what is not given stays")                                                                 \
    X("sm-remove", verb_sm_remove, "node", "port", "", "it goes, and IsSM with it")                          \
    X("sm-control", verb_sm_control, "node control lid", "port", "no such control",                          \
      "it sends a control to the manager at a LID")                                                          \
    X("hosts-on", verb_hosts_on, "", "spread_seconds path_rate", "",                                         \
      "every adapter port behaves like a Linux host with IPoIB: joins groups, asks for paths")               \
    X("hosts-off", verb_hosts_off, "", "", "", "hosts ask for nothing any more")                             \
    X("traffic-start", verb_traffic_start, "pattern",                                                        \
      "hosts receivers load shift fan level window on_seconds off_seconds seed text",                        \
      "a number is out of range; bursts last a millisecond at least",                                        \
      "hosts send data along the programmed tables, over links with credits: counters move, ports wait "     \
      "where they would; what went on before goes on")                                                       \
    X("traffic-stop", verb_traffic_stop, "", "id", "", "the traffic with this id ends, or all")              \
    X("receiver", verb_receiver, "node share", "port", "a share of its link is 0 to 1",                      \
      "the host takes what arrives at this share of its link's rate; 0: not at all, no credits come back")   \
    X("errors", verb_errors, "node port",                                                                    \
      "symbol ber raw_ber uncorrectable recovery receive remote integrity overrun discard vl15",             \
      "so many an hour cannot be",                                                                           \
      "errors come by chance, so many an hour on average (0: no more), in what the port receives; "          \
      "retraining is counted by both ends")                                                                  \
    X("module", verb_module, "node port", "celsius rx_dbm tx_dbm fault", "-100 to 200 C, -60 to 20 dBm",     \
      "the port's transceiver measures this (45 C, 0 dBm, well) from now on; powers are of its second "      \
      "lane, "                                                                                               \
      "its own limits -9 and 4 dBm in, -8 and 4 out")                                                        \
    X("device", verb_device, "node", "celsius failed_fans failed_supplies",                                  \
      "a switch has 8 fans and 2 power supplies, an adapter none",                                           \
      "the device measures this (50 C, nothing failed) from now on")                                         \
    X("loss", verb_loss, "share", "", "", "share of all datagrams that is lost, at every device")

#define DECLARE(name, fn, needs, takes, wrong, doc)                                                          \
    int fn(struct ask *k); // 0 with what was done in said; -ENOENT, -EINVAL, -EEXIST
VERBS(DECLARE)
#undef DECLARE

// What the body says; def when the field is absent.
const json_t *ask_value(const struct ask *k, const char *name); // NULL
bool ask_given(const struct ask *k, const char *name);
int64_t ask_integer(const struct ask *k, const char *name, int64_t def);
const char *ask_string(const struct ask *k, const char *name); // ""
double ask_number(const struct ask *k, const char *name, double def);
int64_t ask_nanoseconds(const struct ask *k, const char *name, double def_seconds);
unsigned ask_word(const struct ask *k, const char *name, const char *const *list, unsigned def); // its index
void ask_said(struct ask *k, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

// The words of fields.
extern const char *const ask_patterns[], *const ask_widths[], *const ask_speeds[], *const ask_states[],
                                                                                       *const ask_controls[];

#endif
