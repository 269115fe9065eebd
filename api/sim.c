// SPDX-License-Identifier: Apache-2.0
// Simulated fabrics: the body of a request and its checks by the rows of the verbs, names of nodes and ports,
// the list of verbs.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "api/sim_priv.h"
#include "lib/guid.h"

#define SECONDS_MAX 3600
#define ERRORS_MAX 1e12

static const struct verb {
    const char *name;
    int (*fn)(struct ask *k); // 0 with what was done in said; -ENOENT, -EINVAL, -EEXIST
    const char *needs, *takes, *wrong, *doc;
} verbs[] = {
#define ROW(name, fn, needs, takes, wrong, doc) {name, fn, needs, takes, wrong, doc},
    VERBS(ROW)
#undef ROW
};
#define NUM_VERBS (sizeof(verbs) / sizeof(verbs[0]))

static const char *const verb_names[] = {
#define NAME(name, fn, needs, takes, wrong, doc) name,
    VERBS(NAME)
#undef NAME
        NULL};

// --- the body ---

static const struct field ask_fields[] = {
    {.name = "verb",
     .type = FIELD_STR,
     .doc = "what is done; GET of the same path says what each needs",
     .need = true,
     .name_of = verb_names},
    {.name = "node", .type = FIELD_STR, .doc = "NodeGUID, unique name, or name[port]"},
    {.name = "port",
     .type = FIELD_INT,
     .doc =
         "number of its port; an adapter's only port, and port 0 of a switch for what is about the switch, "
         "go without saying",
     .min = 0,
     .max = 254},
    {.name = "to_node", .type = FIELD_STR, .doc = "the other node"},
    {.name = "to_port", .type = FIELD_INT, .doc = "the other node's port", .min = 1, .max = 254},
    {.name = "times", .type = FIELD_INT, .doc = "how often", .min = 1, .max = 1000000},
    {.name = "down_seconds", .type = FIELD_NUM, .doc = "how long its links are down", .max = SECONDS_MAX},
    {.name = "up_seconds", .type = FIELD_NUM, .doc = "how long the link is up between", .max = SECONDS_MAX},
    {.name = "silent_seconds",
     .type = FIELD_NUM,
     .doc = "how long its agent is silent, from now",
     .max = SECONDS_MAX},
    {.name = "seconds", .type = FIELD_NUM, .doc = "how long", .max = SECONDS_MAX},
    {.name = "factor", .type = FIELD_INT, .doc = "how many times slower", .min = 1, .max = 10000},
    {.name = "width", .type = FIELD_STR, .doc = "link width", .name_of = ask_widths},
    {.name = "speed", .type = FIELD_STR, .doc = "link speed", .name_of = ask_speeds},
    {.name = "guid", .type = FIELD_STR, .doc = "a GUID"},
    {.name = "text", .type = FIELD_STR, .doc = "NodeDescription, 64 bytes at most"},
    {.name = "orderly", .type = FIELD_BOOL, .doc = "the system is shut down, not reset"},
    {.name = "number", .type = FIELD_INT, .doc = "of the trap", .min = 0, .max = 65535},
    {.name = "count", .type = FIELD_INT, .doc = "how many", .min = 0, .max = 1000000000},
    {.name = "share", .type = FIELD_NUM, .doc = "0 to 1", .max = 1},
    {.name = "what", .type = FIELD_STR, .doc = "attribute, or field of PortInfo or SwitchInfo"},
    {.name = "key", .type = FIELD_STR, .doc = "M_Key, as a hexadecimal number"},
    {.name = "protect", .type = FIELD_INT, .doc = "M_KeyProtectBits", .min = 0, .max = 3},
    {.name = "lease_seconds", .type = FIELD_INT, .doc = "M_KeyLeasePeriod; 0: for ever", .max = 65535},
    {.name = "priority", .type = FIELD_INT, .doc = "of the subnet manager", .max = 15},
    {.name = "state", .type = FIELD_STR, .doc = "its SMInfo.SMState", .name_of = ask_states},
    {.name = "sm_key",
     .type = FIELD_STR,
     .doc = "its SM_Key, as a hexadecimal number; 1 at first, as OpenSM's and weft's"},
    {.name = "frozen", .type = FIELD_BOOL, .doc = "its ActCount stands still"},
    {.name = "silent", .type = FIELD_BOOL, .doc = "it does not answer; its IsSM bit stays"},
    {.name = "quiet", .type = FIELD_BOOL, .doc = "a change of its priority sends no trap 144"},
    {.name = "poll_seconds",
     .type = FIELD_NUM,
     .doc = "as a standby it asks the master so often; 0: never",
     .max = SECONDS_MAX},
    {.name = "misses",
     .type = FIELD_INT,
     .doc = "it becomes master after so many requests without an answer",
     .max = 1000},
    {.name = "control",
     .type = FIELD_STR,
     .doc = "AttributeModifier of Set(SMInfo)",
     .name_of = ask_controls},
    {.name = "lid", .type = FIELD_INT, .doc = "of the manager that is meant", .min = 1, .max = 0xbfff},
    {.name = "spread_seconds",
     .type = FIELD_NUM,
     .doc = "hosts react after a random time up to this",
     .max = SECONDS_MAX},
    {.name = "path_rate", .type = FIELD_NUM, .doc = "path queries of each host a second", .max = 1000},
    {.name = "pattern", .type = FIELD_STR, .doc = "who sends to whom", .name_of = ask_patterns},
    {.name = "hosts",
     .type = FIELD_STR,
     .doc =
         "hosts or adapters that take part (all), with commas between: names, GUIDs, gpu-0001:3 (its adapter "
         "on rail 3), gpu-[0001-0016,0020], shell patterns"},
    {.name = "receivers", .type = FIELD_STR, .doc = "who is sent to, in the same words (chosen by chance)"},
    {.name = "load",
     .type = FIELD_NUM,
     .doc = "share of its link that each sender has to send; 1: as fast as it can",
     .min = 1e-6,
     .max = 1},
    {.name = "shift",
     .type = FIELD_INT,
     .doc = "how many hosts further each sends",
     .min = 1,
     .max = 1000000},
    {.name = "fan", .type = FIELD_INT, .doc = "how many others each sends to at once", .min = 1, .max = 1000},
    {.name = "level",
     .type = FIELD_INT,
     .doc = "service level of the packets (that of their paths)",
     .max = 15},
    {.name = "window",
     .type = FIELD_INT,
     .doc = "cells of 16 KiB that each flow has under way at most; 0: any number",
     .max = 1000000},
    {.name = "on_seconds", .type = FIELD_NUM, .doc = "a burst lasts so long", .max = SECONDS_MAX},
    {.name = "off_seconds", .type = FIELD_NUM, .doc = "time between bursts", .max = SECONDS_MAX},
    {.name = "seed", .type = FIELD_INT, .doc = "of what is chosen by chance", .max = 1000000000},
    {.name = "id", .type = FIELD_INT, .doc = "of the traffic", .min = 1, .max = 0xffffffffll},
    {.name = "symbol", .type = FIELD_NUM, .doc = "SymbolErrorCounter, an hour", .max = ERRORS_MAX},
    {.name = "ber",
     .type = FIELD_NUM,
     .doc = "symbol errors by the bit error ratio at the link's speed",
     .max = 1e-3},
    {.name = "raw_ber",
     .type = FIELD_NUM,
     .doc = "symbols that are corrected, by the bit error ratio before correction",
     .max = 1e-3},
    {.name = "uncorrectable",
     .type = FIELD_NUM,
     .doc = "PortFECUncorrectableBlockCounter, an hour",
     .max = ERRORS_MAX},
    {.name = "recovery", .type = FIELD_NUM, .doc = "LinkErrorRecoveryCounter, an hour", .max = ERRORS_MAX},
    {.name = "receive", .type = FIELD_NUM, .doc = "PortRcvErrors, an hour", .max = ERRORS_MAX},
    {.name = "remote", .type = FIELD_NUM, .doc = "PortRcvRemotePhysicalErrors, an hour", .max = ERRORS_MAX},
    {.name = "integrity", .type = FIELD_NUM, .doc = "LocalLinkIntegrityErrors, an hour", .max = ERRORS_MAX},
    {.name = "overrun", .type = FIELD_NUM, .doc = "ExcessiveBufferOverrunErrors, an hour", .max = ERRORS_MAX},
    {.name = "discard", .type = FIELD_NUM, .doc = "PortXmitDiscards, an hour", .max = ERRORS_MAX},
    {.name = "vl15", .type = FIELD_NUM, .doc = "VL15Dropped, an hour", .max = ERRORS_MAX},
    {.name = "celsius", .type = FIELD_NUM, .doc = "temperature", .min = -100, .max = 200},
    {.name = "rx_dbm", .type = FIELD_NUM, .doc = "light that is received", .min = -60, .max = 20},
    {.name = "tx_dbm", .type = FIELD_NUM, .doc = "light that is sent", .min = -60, .max = 20},
    {.name = "fault", .type = FIELD_BOOL, .doc = "the module says that it has failed"},
    {.name = "failed_fans", .type = FIELD_INT, .doc = "how many stand still", .max = 8},
    {.name = "failed_supplies", .type = FIELD_INT, .doc = "how many power supplies give nothing", .max = 2},
    {0},
};
const struct schema schema_sim_action_body = {
    .name = "sim_action", "What is done to a simulated fabric", 1, ask_fields, true};

static const struct field link_body_fields[] = {
    {.name = "node", .type = FIELD_STR, .at = 0, "NodeGUID or unique name", .need = true},
    {.name = "port", .type = FIELD_INT, .at = 0, "number of its port", .need = true, .min = 1, .max = 254},
    {.name = "up", .type = FIELD_BOOL, .at = 0, "false takes the cable out, true puts it back", .need = true},
    {0},
};
const struct schema schema_sim_link_body = {
    .name = "sim_link", "A simulated cable", 1, link_body_fields, true};

static const char *const node_actions[] = {"kill", "revive", "reboot", NULL};
static const struct field node_body_fields[] = {
    {.name = "node", .type = FIELD_STR, .at = 0, "NodeGUID or unique name", .need = true},
    {.name = "action",
     .type = FIELD_STR,
     .at = 0,
     "kill: its agent stops answering; revive; reboot: it forgets all",
     .need = true,
     .name_of = node_actions},
    {0},
};
const struct schema schema_sim_node_body = {
    .name = "sim_node", "A simulated node", 1, node_body_fields, true};

static const struct field loss_body_fields[] = {
    {.name = "loss",
     .type = FIELD_NUM,
     .at = 0,
     "share of datagrams lost at every device",
     .need = true,
     .min = 0,
     .max = 1},
    {0},
};
const struct schema schema_sim_loss_body = {
    .name = "sim_loss", "Loss of datagrams", 1, loss_body_fields, true};

// --- names ---

struct sim *sim_of(struct request *r)
{
    if (r->view->src->sim == NULL)
        answer_problem(r, 409, "fabric %s is not simulated: this would need hands in the machine room",
                       r->view->src->name);
    return r->view->src->sim;
}

static const char *body_string(const struct request *r, const char *name)
{
    const char *s = json_string_value(json_object_get(r->json, name));
    return s != NULL ? s : "";
}

// The node that a field names, with the port that stands in the name (*ret_port stays when there is none).
// One that is dead or cut off is in no snapshot, so names are looked up in the largest generation that was
// seen as well; a GUID needs none. False with an answer.
static bool find_node(struct request *r, const char *text, struct sim_place *ret, int *ret_port)
{
    const struct fabric *gens[] = {view_fabric(r->view), r->view->names};
    struct err e = {0};
    struct place found;
    int rc = -ENOENT;

    for (int i = 0; i < 2 && rc == -ENOENT; i++) {
        if (gens[i] == NULL || (rc = resolve_element(gens[i], text, &found, &e)) != 0)
            continue;
        ret->f = gens[i];
        ret->n = found.node;
        ret->guid = found.node->guid;
        fabric_node_name(ret->f, ret->n, ret->node, sizeof(ret->node));
        if (port_valid(found.port))
            *ret_port = fabric_port(ret->f, found.port)->num;
        return true;
    }
    if (rc == -ENOENT && guid_parse(text, &ret->guid) == 0) {
        snprintf(ret->node, sizeof(ret->node), GUID_FMT, GUID_ARG(ret->guid));
        return true;
    }
    if (gens[0] == NULL && gens[1] == NULL)
        err_set(&e, -ENOENT, text, "fabric %s has not been discovered yet: give a GUID", r->view->src->name);
    answer_unresolved(r, "node", rc, &e);
    return false;
}

// The port that is meant where nobody named one, or -1: an adapter's only one; a switch itself, where the
// verb need not be told a port.
static int plain_port(const struct node *n, bool needed)
{
    if (n == NULL)
        return -1;
    if (n->type == NODE_SWITCH)
        return needed ? -1 : 0;
    return n->num_ports == 1 ? 1 : -1;
}

static bool find_port(struct request *r, const char *field, bool needed, int port, struct sim_place *ret)
{
    const json_t *given = json_object_get(r->json, field);
    if (given != NULL)
        port = (int)json_integer_value(given);
    else if (port < 0)
        port = plain_port(ret->n, needed);
    if (port < 0) {
        answer_problem(r, 400, "say which port of %s: as \"%s\", or as %s[NUMBER]", ret->node, field,
                       ret->node);
        return false;
    }
    ret->port = (unsigned)port;
    snprintf(ret->text, sizeof(ret->text), "%s[%d]", ret->node, port);
    port_id p = ret->n != NULL ? fabric_port_at(ret->f, ret->n, ret->port) : PORT_NONE;
    ret->port_guid = port_valid(p) ? fabric_port(ret->f, p)->guid : 0;
    return true;
}

// --- checks by the rows ---

static bool in_words(const char *list, const char *w)
{
    size_t n = strlen(w);
    for (const char *p = list; *p != 0; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        if (len == n && memcmp(p, w, n) == 0)
            return true;
        p += len;
    }
    return false;
}

static bool no_others(struct request *r, const struct verb *v)
{
    const char *key;
    json_t *unused;

    json_object_foreach(r->json, key, unused)
    {
        if (strcmp(key, "verb") == 0 || in_words(v->needs, key) || in_words(v->takes, key))
            continue;
        answer_problem(r, 400, "%s takes no \"%s\"; it needs: %s; it takes: %s", v->name, key,
                       v->needs[0] ? v->needs : "nothing", v->takes[0] ? v->takes : "nothing else");
        return false;
    }
    return true;
}

// A port may also stand in the node's name, or go without saying: find_port() looks.
static bool all_needed(struct request *r, const struct verb *v)
{
    char name[40];
    for (const char *p = v->needs; *p != 0; p += strspn(p, " ")) {
        size_t len = strcspn(p, " ");
        snprintf(name, sizeof(name), "%.*s", (int)len, p);
        p += len;
        if (json_object_get(r->json, name) != NULL || strcmp(name, "port") == 0 ||
            strcmp(name, "to_port") == 0)
            continue;
        answer_problem(r, 400, "%s needs \"%s\"; it needs: %s; it takes: %s", v->name, name, v->needs,
                       v->takes[0] ? v->takes : "nothing else");
        return false;
    }
    return true;
}

static bool find_place(struct request *r, const struct verb *v, const char *node, const char *port,
                       struct sim_place *ret)
{
    bool needed = in_words(v->needs, port);
    int num = -1;

    if (json_object_get(r->json, node) == NULL)
        return true;
    if (!find_node(r, body_string(r, node), ret, &num))
        return false;
    snprintf(ret->text, sizeof(ret->text), "%s", ret->node);
    return (!needed && !in_words(v->takes, port)) || find_port(r, port, needed, num, ret);
}

// --- handlers ---

static void refuse(struct ask *k, const struct verb *v, int rc)
{
    const char *where = k->at.text[0] ? k->at.text : k->r->view->src->name;

    if (k->err.text[0] != 0)
        answer_problem(k->r, rc == -ENOENT ? 404 : 400, "%s: %s", k->err.where[0] ? k->err.where : where,
                       k->err.text);
    else if (rc == -ENOENT)
        answer_problem(k->r, 404,
                       "%s%s%s: the simulated fabric has no such node or port, or no cable is there", where,
                       k->to.text[0] ? ", " : "", k->to.text);
    else if (v->wrong[0] != 0)
        answer_problem(k->r, 409, "%s: %s", where, v->wrong);
    else
        answer_problem(k->r, 409, "%s: %s", where, strerror(-rc));
}

void post_sim_action(struct request *r)
{
    struct ask k = {.r = r, .sim = sim_of(r)};
    const char *name = body_string(r, "verb");
    const struct verb *v = verbs;

    if (k.sim == NULL)
        return;
    while (strcmp(v->name, name) != 0) // the body has been checked: it is there
        v++;
    if (!no_others(r, v) || !all_needed(r, v) || !find_place(r, v, "node", "port", &k.at) ||
        !find_place(r, v, "to_node", "to_port", &k.to))
        return;
    int rc = v->fn(&k);
    if (rc != 0) {
        refuse(&k, v, rc);
        return;
    }
    audit_action(r, k.at.text, "simulator: %s", k.said);
    answer_ok(r, k.said);
}

// The older resources are the same by other words.
static void run_as(struct request *r, const char *verb)
{
    json_object_set_new(r->json, "verb", json_string(verb));
    post_sim_action(r);
}

void post_sim_link(struct request *r)
{
    bool up = json_is_true(json_object_get(r->json, "up"));
    json_object_del(r->json, "up");
    run_as(r, up ? "link-up" : "link-down");
}

void post_sim_node(struct request *r)
{
    char verb[40];
    snprintf(verb, sizeof(verb), "node-%s", body_string(r, "action"));
    json_object_del(r->json, "action");
    run_as(r, verb);
}

void post_sim_loss(struct request *r)
{
    json_object_set(r->json, "share", json_object_get(r->json, "loss"));
    json_object_del(r->json, "loss");
    run_as(r, "loss");
}

// --- what can be done ---

struct verb_row {
    const char *verb, *needs, *takes, *doc;
};
#define VERB(f) offsetof(struct verb_row, f)
static const struct field verb_fields[] = {
    {.name = "verb", .type = FIELD_STR, .at = VERB(verb), "what is done"},
    {.name = "needs", .type = FIELD_STR, .at = VERB(needs), "fields that it needs"},
    {.name = "takes", .type = FIELD_STR, .at = VERB(takes), "fields that it takes besides"},
    {.name = "doc", .type = FIELD_STR, .at = VERB(doc), "what happens"},
    {0},
};
const struct schema schema_sim_verb = {.name = "sim_verb",
                                       "Something that can be done to a simulated fabric",
                                       sizeof(struct verb_row),
                                       verb_fields};

void get_sim_actions(struct request *r)
{
    uint64_t from;
    struct list l;
    char next[24];

    if (!cursor_number(r, &from))
        return;
    list_begin(&l, r, &schema_sim_verb);
    for (; from < NUM_VERBS && !list_full(&l); from++)
        list_item(
            &l, &(struct verb_row){verbs[from].name, verbs[from].needs, verbs[from].takes, verbs[from].doc});
    list_end(&l, from < NUM_VERBS ? number_text(from, next) : NULL, NUM_VERBS, NO_INT, wall_now_ns());
}
