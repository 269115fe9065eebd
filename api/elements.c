// SPDX-License-Identifier: Apache-2.0
#include "api/elements.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/resolve.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

#define VALUE_MAX 128

static int by_name(const void *a, const void *b, void *arg)
{
    const struct fabric *f = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int c = strcmp(fabric_desc(f, &f->node[x]), fabric_desc(f, &f->node[y]));
    return c != 0 ? c : (x > y) - (x < y);
}

void elements_init(struct elements *el, const struct fabric *f)
{
    *el = (struct elements){.f = f};
    el->by_name = xreallocarray(NULL, f->num_nodes + 1, sizeof(*el->by_name));
    for (uint32_t i = 0; i < f->num_nodes; i++)
        el->by_name[i] = i;
    qsort_r(el->by_name, f->num_nodes, sizeof(*el->by_name), by_name, (void *)f);
}

void elements_done(struct elements *el)
{
    free(el->by_name);
    *el = (struct elements){0};
}

// The only node with this name.
static const struct node *node_named(const struct elements *el, const char *name)
{
    const struct fabric *f = el->f;
    uint32_t low = 0, high = f->num_nodes;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (strcmp(fabric_desc(f, &f->node[el->by_name[mid]]), name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == f->num_nodes || name[0] == 0)
        return NULL;
    const struct node *n = &f->node[el->by_name[low]];
    if (strcmp(fabric_desc(f, n), name) != 0 || n->name_repeats)
        return NULL;
    return n;
}

// By name or GUID, without a walk over all nodes. NULL: resolve() tells why.
static const struct node *node_quick(const struct elements *el, const char *text)
{
    const struct fabric *f = el->f;
    const struct node *n = node_named(el, text);
    uint64_t guid;
    if (n != NULL || guid_parse(text, &guid) != 0)
        return n;
    if ((n = fabric_by_guid(f, guid)) != NULL)
        return n;
    port_id p = fabric_by_port_guid(f, guid);
    return port_valid(p) ? fabric_node(f, fabric_port(f, p)->node) : NULL;
}

int elements_node(const struct elements *el, const char *text, const struct node **ret, struct err *e)
{
    struct place at;
    if ((*ret = node_quick(el, text)) != NULL)
        return 0;
    int rc = resolve_element(el->f, text, &at, e);
    if (rc == 0)
        *ret = at.node;
    return rc;
}

// --- ports ---

struct ports {
    bool given, all; // all: those that have a cable
    bool only[256];
};

// "1", "33-40,47", "*" up to the closing bracket; false when it is something else.
static bool parse_ports(const char *text, size_t n, struct ports *ret)
{
    struct ports p = {.given = true};
    const char *end = text + n;
    if (n == 1 && *text == '*') {
        p.all = true;
        memset(p.only, true, sizeof(p.only));
        *ret = p;
        return true;
    }
    while (text < end) {
        char *after;
        if (!isdigit((unsigned char)*text))
            return false;
        unsigned long a = strtoul(text, &after, 10), z = a;
        if (*after == '-' && isdigit((unsigned char)after[1]))
            z = strtoul(after + 1, &after, 10);
        if (a > z || z > 255 || after > end || (after < end && (*after != ',' || after + 1 == end)))
            return false;
        for (; a <= z; a++)
            p.only[a] = true;
        text = after + (after < end);
    }
    *ret = p;
    return n > 0;
}

// Splits "what[ports]"; the name's length. Brackets that hold no ports belong to the name.
static size_t split(const char *text, struct ports *ret)
{
    size_t len = strlen(text);
    const char *open = strrchr(text, '[');
    *ret = (struct ports){0};
    if (len < 4 || text[len - 1] != ']' || open == NULL || open == text)
        return len;
    return parse_ports(open + 1, len - (size_t)(open - text) - 2, ret) ? (size_t)(open - text) : len;
}

// --- fields ---

enum key {
    KEY_RAIL,
    KEY_SU,
    KEY_TIER,
    KEY_PLANE,
    KEY_ROLE,
    KEY_TYPE,
    KEY_NAME,
};
static const char *const keys[] = {"rail", "su", "tier", "plane", "role", "type", "name"};
#define KEYS (sizeof(keys) / sizeof(keys[0]))
static const char *const types[] = {"", "ca", "switch", "router"};

struct term {
    enum key key;
    char value[VALUE_MAX];
};

struct fields {
    struct term term[KEYS * 2];
    unsigned n;
    bool ends; // a role or type of end nodes is asked for
};

static bool is_end_word(const struct term *t)
{
    static const char *const words[] = {"host", "aggregation", "gateway", "router", "ca"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(t->value, words[i]) != NULL)
            return true;
    return false;
}

static bool good_value(const struct term *t)
{
    static const char *const type_words[] = {"ca", "switch", "router", NULL};
    char word[VALUE_MAX];
    if (t->key == KEY_NAME)
        return t->value[0] != 0;
    for (const char *p = t->value;; p++) {
        size_t n = strcspn(p, "|");
        bool good = false;
        snprintf(word, sizeof(word), "%.*s", (int)n, p);
        if (t->key == KEY_TYPE) {
            for (unsigned i = 0; type_words[i] != NULL; i++)
                good |= strcmp(word, type_words[i]) == 0;
        } else if (t->key == KEY_ROLE) {
            for (unsigned r = ROLE_UNKNOWN; r <= ROLE_SWITCH; r++)
                good |= strcmp(word, node_role_name((enum node_role)r)) == 0;
        } else {
            size_t digits = strspn(word, "0123456789");
            const char *rest = word + digits;
            good = digits > 0 && digits < 6 && (*rest == 0 || strncmp(rest, "..", 2) == 0);
            if (good && *rest != 0)
                good = rest[2] != 0 && strspn(rest + 2, "0123456789") == strlen(rest + 2) &&
                       strlen(rest + 2) < 6;
        }
        if (!good)
            return false;
        p += n;
        if (*p == 0)
            return true;
    }
}

// "rail=3,role=leaf". False with *e when it has the form and is wrong; n 0 when it has not.
static int parse_fields(const char *text, size_t len, struct fields *ret, struct err *e)
{
    char part[VALUE_MAX + 32];
    struct fields fs = {0};
    *ret = fs;
    if (memchr(text, '=', len) == NULL)
        return 0;
    for (size_t at = 0; at < len;) {
        size_t n = strcspn(text + at, ",");
        n = n < len - at ? n : len - at;
        if (n >= VALUE_MAX || fs.n == KEYS * 2)
            return err_set(e, -E2BIG, text, "too many or too long conditions");
        snprintf(part, sizeof(part), "%.*s", (int)n, text + at);
        char *eq = strchr(part, '=');
        struct term *t = &fs.term[fs.n++];
        unsigned k = KEYS;
        if (eq != NULL) {
            *eq = 0;
            for (k = 0; k < KEYS && strcmp(part, keys[k]) != 0;)
                k++;
        }
        if (k == KEYS)
            return err_set(
                e, -EINVAL, text,
                "\"%.60s\" is no field; known: rail, su, tier, plane, role, type, name (rail=3,role=leaf)",
                part);
        t->key = (enum key)k;
        snprintf(t->value, sizeof(t->value), "%s", eq + 1);
        if (!good_value(t))
            return err_set(e, -EINVAL, text, "\"%.60s\" is no value of %s", t->value, keys[k]);
        fs.ends |= (t->key == KEY_ROLE || t->key == KEY_TYPE) && is_end_word(t);
        at += n + 1;
    }
    *ret = fs;
    return 0;
}

static bool number_in(const char *list, unsigned v)
{
    for (const char *p = list; *p != 0; p += strcspn(p, "|"), p += *p == '|') {
        char *end;
        unsigned long a = strtoul(p, &end, 10),
                      z = strncmp(end, "..", 2) == 0 ? strtoul(end + 2, &end, 10) : a;
        if (v >= a && v <= z)
            return true;
    }
    return false;
}

static bool word_in(const char *list, const char *word)
{
    size_t n = strlen(word);
    for (const char *p = list; *p != 0; p += strcspn(p, "|"), p += *p == '|')
        if (strncmp(p, word, n) == 0 && (p[n] == 0 || p[n] == '|'))
            return true;
    return false;
}

static bool term_fits(const struct fabric *f, const struct node *n, const struct term *t)
{
    switch (t->key) {
    case KEY_RAIL:
        return n->rail != RAIL_NONE && number_in(t->value, n->rail);
    case KEY_SU:
        return n->su != SU_NONE && number_in(t->value, n->su);
    case KEY_TIER:
        return n->tier != TIER_NONE && number_in(t->value, n->tier);
    case KEY_PLANE:
        return number_in(t->value, n->plane);
    case KEY_ROLE:
        return word_in(t->value, node_role_name((enum node_role)n->role));
    case KEY_TYPE:
        return word_in(t->value, types[n->type <= NODE_ROUTER ? n->type : 0]);
    case KEY_NAME:
        return fnmatch(t->value, fabric_desc(f, n), 0) == 0;
    }
    return false;
}

static bool fits(const struct fabric *f, const struct node *n, const struct fields *fs)
{
    if (n->type != NODE_SWITCH && !fs->ends)
        return false;
    for (unsigned i = 0; i < fs->n; i++)
        if (!term_fits(f, n, &fs->term[i]))
            return false;
    return true;
}

// --- one text to nodes and ports ---

struct taker {
    void (*node)(struct taker *t, const struct node *n);
    bool (*port)(struct taker *t, port_id p); // false: there is no cable
    const struct fabric *f;
    struct fabric_edit *x;
    bool *drained;
};

static int take_ports(struct taker *t, const struct node *n, const struct ports *ports, const char *text,
                      bool many, unsigned *taken, struct err *e)
{
    for (unsigned num = 0; num < 256; num++) {
        if (!ports->only[num])
            continue;
        port_id p = fabric_port_at(t->f, n, num);
        bool done = port_valid(p) && num > 0 && t->port(t, p);
        *taken += done;
        if (!done && !many && !ports->all)
            return port_valid(p)
                       ? err_set(e, -ENOENT, text, "port %u has no link that could be taken out", num)
                       : err_set(e, -ENOENT, text, "the node has no port %u", num);
    }
    return 0;
}

static bool is_glob(const char *text, size_t len)
{
    return memchr(text, '*', len) != NULL || memchr(text, '?', len) != NULL;
}

static int take_wide(struct elements *el, struct taker *t, const char *text, size_t len,
                     const struct ports *ports, struct err *e)
{
    const struct fabric *f = el->f;
    struct fields fs;
    unsigned nodes = 0, taken = 0;
    char pattern[VALUE_MAX + 32];
    if (++el->wide > ELEMENTS_WIDE_MAX)
        return err_set(e, -E2BIG, text, "more than %d elements with * or =; write fewer, wider ones",
                       ELEMENTS_WIDE_MAX);
    int rc = parse_fields(text, len, &fs, e);
    if (rc != 0)
        return rc;
    if (len >= sizeof(pattern))
        return err_set(e, -E2BIG, "", "an element of %zu bytes", len);
    snprintf(pattern, sizeof(pattern), "%.*s", (int)len, text);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        const struct node *n = &f->node[i];
        if (fs.n > 0 ? !fits(f, n, &fs) : fnmatch(pattern, fabric_desc(f, n), 0) != 0)
            continue;
        nodes++;
        if (ports->given)
            take_ports(t, n, ports, text, true, &taken, e);
        else
            t->node(t, n);
    }
    if (nodes == 0)
        return err_set(e, -ENOENT, text, fs.n > 0 ? "no %s is so" : "no node has such a name%.0s",
                       fs.ends ? "node" : "switch");
    if (ports->given && taken == 0)
        return err_set(e, -ENOENT, text, "none of these ports has a link");
    return 0;
}

static int take(struct elements *el, struct taker *t, const char *text, struct err *e)
{
    struct ports ports;
    char *name;
    const struct node *n = node_quick(el, text);
    if (n != NULL) {
        t->node(t, n);
        return 0;
    }
    size_t len = split(text, &ports);
    name = xasprintf("%.*s", (int)len, text);
    n = node_quick(el, name);
    int rc = 0;
    if (n == NULL && (is_glob(text, len) || memchr(text, '=', len) != NULL)) {
        rc = take_wide(el, t, text, len, &ports, e);
    } else {
        if (n == NULL)
            rc = elements_node(el, name, &n, e);
        unsigned taken = 0;
        if (rc == 0 && ports.given)
            rc = take_ports(t, n, &ports, text, false, &taken, e);
        else if (rc == 0)
            t->node(t, n);
        else
            snprintf(e->where, sizeof(e->where), "%s", text);
    }
    free(name);
    return rc;
}

// --- what is done with them ---

static void fail_node(struct taker *t, const struct node *n)
{
    fabric_edit_kill(t->x, (node_id){(uint32_t)(n - t->f->node)});
}

static bool fail_port(struct taker *t, port_id p)
{
    return fabric_edit_cut(t->x, p) == 0;
}

static int share(const char *text, double *ret_percent, uint64_t *ret_seed, struct err *e)
{
    const char *number = text + strlen("random:");
    char *end, *end2 = NULL;
    double percent = strtod(number, &end);
    unsigned long long seed = *end == ':' ? strtoull(end + 1, &end2, 10) : 0;
    if (end == number || *end != ':' || end2 == end + 1 || *end2 != 0 || !(percent >= 0 && percent <= 100))
        return err_set(e, -EINVAL, text, "must be random:<percent>:<seed>, such as random:1:7");
    *ret_percent = percent;
    *ret_seed = seed;
    return 0;
}

int elements_fail(struct elements *el, struct fabric_edit *x, const char *text, struct err *e)
{
    struct taker t = {.node = fail_node, .port = fail_port, .f = el->f, .x = x};
    double percent;
    uint64_t seed;
    if (strncmp(text, "random:", 7) != 0)
        return take(el, &t, text, e);
    int rc = share(text, &percent, &seed, e);
    if (rc == 0)
        fabric_edit_cut_share(x, percent, seed);
    return rc;
}

static bool drain_port(struct taker *t, port_id p)
{
    port_id peer = fabric_port(t->f, p)->peer;
    if (!port_valid(peer))
        return false;
    t->drained[p.i] = t->drained[peer.i] = true;
    return true;
}

static void drain_node(struct taker *t, const struct node *n)
{
    for (unsigned num = 1; num <= n->num_ports; num++)
        drain_port(t, fabric_port_at(t->f, n, num));
}

struct picking {
    struct taker t;
    struct element_place *at;
    size_t max, n;
    bool trunks; // others are passed over
};

static bool is_switch(const struct node *n)
{
    return n != NULL && n->type == NODE_SWITCH;
}

static void put(struct picking *x, const struct node *n, unsigned port)
{
    if (x->n < x->max)
        x->at[x->n] = (struct element_place){n, (uint8_t)port};
    x->n++;
}

static void pick_node(struct taker *t, const struct node *n)
{
    struct picking *x = (struct picking *)t;
    if (!x->trunks || is_switch(n))
        put(x, n, 0);
}

static bool pick_port(struct taker *t, port_id p)
{
    struct picking *x = (struct picking *)t;
    const struct port *q = fabric_port(t->f, p);
    const struct node *n = fabric_node(t->f, q->node);
    if (x->trunks && !(is_switch(n) && is_switch(fabric_peer_node(t->f, q))))
        return false;
    put(x, n, q->num);
    return true;
}

int elements_pick(struct elements *el, const char *text, struct element_place *at, size_t max, size_t *ret,
                  struct err *e)
{
    struct picking x = {.t = {.node = pick_node, .port = pick_port, .f = el->f},
                        .at = at,
                        .max = max,
                        .trunks = node_quick(el, text) == NULL && strpbrk(text, "*?=") != NULL};
    int rc = take(el, &x.t, text, e);
    *ret = x.n;
    if (rc == 0 && x.n == 0)
        return err_set(e, -ENOENT, text, "no switch, and no cable between switches, is so");
    if (rc == 0 && x.n > max)
        return err_set(e, -E2BIG, text, "%zu elements; %zu at once are the most", x.n, max);
    return rc;
}

int elements_drain(struct elements *el, bool *drained, const char *text, struct err *e)
{
    struct taker t = {.node = drain_node, .port = drain_port, .f = el->f, .drained = drained};
    struct fabric_edit x;
    double percent;
    uint64_t seed;
    if (strncmp(text, "random:", 7) != 0)
        return take(el, &t, text, e);
    int rc = share(text, &percent, &seed, e);
    if (rc != 0)
        return rc;
    fabric_edit_init(&x, el->f);
    fabric_edit_cut_share(&x, percent, seed);
    for (uint32_t i = 0; i < el->f->num_ports; i++)
        drained[i] |= x.cut[i];
    fabric_edit_done(&x);
    return 0;
}
