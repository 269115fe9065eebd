// SPDX-License-Identifier: Apache-2.0
// topology.conf and topology.yaml of Slurm (topology/tree): where hosts lie, so that jobs are placed close
// together. See topology.conf(5) and topology.yaml(5).
//
// Slurm's tree gives each node one place, a rail-aware host has one on every rail. By scalable units all
// rails are one: hosts of a unit share a switch of the tree; for one rail it is that rail's leaf. Above that
// a switch of the tree is what hangs together up to a tier: a pod, then the whole. Between parts without a
// path there is no common switch, so that no job spans them.
//
// A host that has no adapter on the rail lies with its scalable unit, else where its first cable leads. What
// Slurm could not take for a name, or two hosts have, is left out and counted.
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/builder_priv.h"
#include "fabric/hostlist.h"
#include "fabric/names.h"
#include "fabric/writer.h"
#include "lib/arena.h"
#include "lib/buf.h"
#include "lib/err.h"

struct vertex { // a switch of Slurm's tree
    const char *name;
    uint32_t sw;    // one of the fabric's switches in it
    uint32_t upper; // vertex above, ID_NONE
    uint32_t num;   // hosts, or vertices, directly below
    bool leaf;
};

struct tree {
    const struct fabric *f;
    const char *label; // names of vertices that no switch lends its own begin with it
    struct arena *a;
    const char **host; // name per host, NULL when left out
    uint32_t *unit;    // its vertex
    struct vertex *v;
    uint32_t num, cap;
    uint32_t *parent; // union-find of switches
    struct slurm_counts *counts;
};

// --- names ---

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// The host's part of "gpu-0412 mlx5_3"; the whole text where it names no adapter.
static const char *host_part(struct tree *t, const struct node *n)
{
    const char *desc = fabric_desc(t->f, n);
    size_t len = adapter_name_parse(desc).host_len;
    return arena_strndup(t->a, desc, len ? len : strlen(desc));
}

static void leave_out(struct tree *t, uint32_t h)
{
    if (t->host[h] && !t->counts->example[0])
        snprintf(t->counts->example, sizeof(t->counts->example), "%s", t->host[h]);
    t->counts->left_out++;
    t->host[h] = NULL;
}

static void drop_twins(struct tree *t)
{
    uint32_t hosts = t->f->num_hosts, n = 0;
    const char **sorted = ARENA_NEW_N(t->a, hosts + 1, const char *);
    for (uint32_t h = 0; h < hosts; h++)
        if (t->host[h])
            sorted[n++] = t->host[h];
    qsort(sorted, n, sizeof(*sorted), by_text);
    for (uint32_t h = 0; h < hosts; h++) {
        const char **at = t->host[h] ? bsearch(&t->host[h], sorted, n, sizeof(*sorted), by_text) : NULL;
        size_t i = at ? (size_t)(at - sorted) : 0;
        if (at && ((i > 0 && !strcmp(sorted[i - 1], *at)) || (i + 1 < n && !strcmp(sorted[i + 1], *at))))
            leave_out(t, h);
    }
}

static void name_hosts(struct tree *t, const char *match)
{
    const struct fabric *f = t->f;
    t->host = ARENA_NEW_N(t->a, f->num_hosts + 1, const char *);
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        uint32_t h = f->node[i].host;
        if (h == ID_NONE)
            continue;
        const char *name = host_part(t, &f->node[i]);
        if (!t->host[h] || strcmp(name, t->host[h]) < 0) // whatever the order of nodes
            t->host[h] = name;
    }
    for (uint32_t h = 0; h < f->num_hosts; h++) {
        if (t->host[h] && match && fnmatch(match, t->host[h], 0) != 0)
            t->host[h] = NULL;
        else if (!t->host[h] || !hostlist_name_ok(t->host[h]))
            leave_out(t, h);
    }
    drop_twins(t);
}

// --- where they lie ---

static uint32_t root_of(struct tree *t, uint32_t sw)
{
    while (t->parent[sw] != sw)
        sw = t->parent[sw] = t->parent[t->parent[sw]];
    return sw;
}

static void join(struct tree *t, uint32_t a, uint32_t b)
{
    a = root_of(t, a);
    b = root_of(t, b);
    t->parent[a > b ? a : b] = a > b ? b : a;
}

static uint32_t vertex_new(struct tree *t, const char *name, uint32_t sw, bool leaf)
{
    t->v[t->num] = (struct vertex){.name = name, .sw = sw, .upper = ID_NONE, .leaf = leaf};
    return t->num++;
}

static uint32_t leaf_of(const struct fabric *f, uint32_t port)
{
    const struct node *n = fabric_peer_node(f, &f->port[port]);
    return n && n->type == NODE_SWITCH ? n->sw : ID_NONE;
}

// Per scalable unit its leaf of the rail, or for -1 any of its leaves; ID_NONE where it has none.
static uint32_t *leaves_of(struct tree *t, int rail)
{
    const struct fabric *f = t->f;
    uint32_t *ret = ARENA_NEW_N(t->a, f->num_sus + 1, uint32_t);
    memset(ret, 0xff, (f->num_sus + 1) * sizeof(*ret));
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        const struct node *n = fabric_switch(f, sw);
        if (n->su < f->num_sus && (rail < 0 || n->rail == rail) && ret[n->su] == ID_NONE)
            ret[n->su] = sw;
    }
    return ret;
}

static void find_places(struct tree *t, int rail)
{
    const struct fabric *f = t->f;
    uint32_t *home = leaves_of(t, rail);
    uint32_t *place = ARENA_NEW_N(t->a, f->num_hosts + 1, uint32_t);
    bool *sure = ARENA_NEW_N(t->a, f->num_hosts + 1, bool);
    memset(place, 0xff, (f->num_hosts + 1) * sizeof(*place));
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct node *n = fabric_node(f, f->port[i].node);
        uint32_t h = n->host, leaf = h == ID_NONE ? ID_NONE : leaf_of(f, i);
        if (leaf == ID_NONE || sure[h])
            continue;
        uint16_t su = fabric_switch(f, leaf)->su;
        uint32_t unit = su < f->num_sus ? home[su] : ID_NONE;
        sure[h] = rail < 0 ? unit != ID_NONE : f->port[i].rail == rail;
        if (sure[h])
            place[h] = rail < 0 ? unit : leaf;
        else if (place[h] == ID_NONE)
            place[h] = unit != ID_NONE ? unit : leaf;
    }
    t->unit = place; // switches; vertices come later
}

// Names of the fabric's switches as Slurm takes them, apart from each other and from those made here.
static const char **switch_names(struct tree *t)
{
    const struct fabric *f = t->f;
    const char **name = ARENA_NEW_N(t->a, f->num_switches + 1, const char *), **sorted;
    size_t label = strlen(t->label);
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        char *s = arena_strdup(t->a, fabric_desc(f, fabric_switch(f, sw)));
        for (char *p = s; *p; p++)
            if (!hostlist_name_ok((char[]){*p, 0}))
                *p = '_';
        name[sw] = s;
    }
    sorted = arena_memdup(t->a, name, f->num_switches * sizeof(*name) + 1);
    qsort(sorted, f->num_switches, sizeof(*sorted), by_text);
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        const char **at = bsearch(&name[sw], sorted, f->num_switches, sizeof(*sorted), by_text);
        size_t i = (size_t)(at - sorted);
        bool twin = (i > 0 && !strcmp(sorted[i - 1], *at)) ||
                    (i + 1 < f->num_switches && !strcmp(sorted[i + 1], *at));
        if (!twin && name[sw][0] && strlen(name[sw]) < 200 && strncmp(name[sw], t->label, label) != 0)
            continue;
        char text[300];
        snprintf(text, sizeof(text), "%.200s%s%016llx", name[sw], name[sw][0] ? "-" : "",
                 (unsigned long long)fabric_switch(f, sw)->guid);
        name[sw] = arena_strdup(t->a, text);
    }
    return name;
}

static const char *made_name(struct tree *t, const char *kind, uint32_t i)
{
    char text[200];
    snprintf(text, sizeof(text), "%.100s-%s%u", t->label, kind, i);
    return arena_strdup(t->a, text);
}

// The vertices that hosts are in.
static void make_units(struct tree *t, int rail)
{
    const struct fabric *f = t->f;
    const char **name = switch_names(t);
    uint32_t *of = ARENA_NEW_N(t->a, f->num_switches + 1, uint32_t);
    memset(of, 0xff, (f->num_switches + 1) * sizeof(*of));
    t->v = ARENA_NEW_N(t->a, 2 * (size_t)f->num_switches + 2, struct vertex);
    for (uint32_t h = 0; h < f->num_hosts; h++) {
        uint32_t sw = t->unit[h];
        if (!t->host[h])
            continue;
        if (sw == ID_NONE) {
            leave_out(t, h);
            continue;
        }
        const struct node *n = fabric_switch(f, sw);
        bool by_unit = rail < 0 && n->su < f->num_sus && f->num_rails > 1;
        if (of[sw] == ID_NONE)
            of[sw] = vertex_new(t, by_unit ? made_name(t, "su", n->su) : name[sw], sw, true);
        t->unit[h] = of[sw];
        t->v[of[sw]].num++;
        t->counts->hosts++;
    }
}

// --- above them ---

// One vertex above each set of two and more of those that have none yet and hang together.
static void make_level(struct tree *t, const char *kind)
{
    uint32_t n = t->num, made = 0;
    uint32_t *of = ARENA_NEW_N(t->a, t->f->num_switches + 1, uint32_t);
    uint32_t *count = ARENA_NEW_N(t->a, t->f->num_switches + 1, uint32_t);
    memset(of, 0xff, (t->f->num_switches + 1) * sizeof(*of));
    for (uint32_t i = 0; i < n; i++)
        if (t->v[i].upper == ID_NONE)
            count[root_of(t, t->v[i].sw)]++;
    uint32_t groups = 0;
    for (uint32_t sw = 0; sw < t->f->num_switches; sw++)
        groups += count[sw] > 1;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t root = root_of(t, t->v[i].sw);
        if (t->v[i].upper != ID_NONE || count[root] < 2)
            continue;
        if (of[root] == ID_NONE) {
            const char *name = *kind || groups > 1 ? made_name(t, kind, made) : t->label;
            of[root] = vertex_new(t, name, t->v[i].sw, false);
            made++;
        }
        t->v[i].upper = of[root];
        t->v[of[root]].num++;
    }
}

static void join_cables(struct tree *t, unsigned tier, bool all)
{
    const struct fabric *f = t->f;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct node *n = fabric_node(f, f->port[i].node), *far = fabric_peer_node(f, &f->port[i]);
        if (!far || n->type != NODE_SWITCH || far->type != NODE_SWITCH)
            continue;
        if (all || (n->tier <= tier && far->tier <= tier))
            join(t, n->sw, far->sw);
    }
}

static void make_upper(struct tree *t, int rail)
{
    const struct fabric *f = t->f;
    t->parent = ARENA_NEW_N(t->a, f->num_switches + 1, uint32_t);
    for (uint32_t sw = 0; sw < f->num_switches; sw++)
        t->parent[sw] = sw;
    if (rail < 0) {
        uint32_t *home = leaves_of(t, -1);
        for (uint32_t sw = 0; sw < f->num_switches; sw++) {
            uint16_t su = fabric_switch(f, sw)->su;
            if (su < f->num_sus && home[su] != ID_NONE)
                join(t, sw, home[su]);
        }
    }
    for (unsigned tier = 1; tier + 1 < f->num_tiers; tier++) {
        join_cables(t, tier, false);
        make_level(t, tier == 1 ? "pod" : tier == 2 ? "core" : "top");
    }
    join_cables(t, 0, true);
    make_level(t, "");
}

// --- on paper ---

struct below {
    const char ***name; // per vertex
    uint32_t *n;
};

static struct below collect(struct tree *t)
{
    struct below b = {ARENA_NEW_N(t->a, t->num + 1, const char **), ARENA_NEW_N(t->a, t->num + 1, uint32_t)};
    for (uint32_t i = 0; i < t->num; i++)
        b.name[i] = ARENA_NEW_N(t->a, t->v[i].num + 1, const char *);
    for (uint32_t h = 0; h < t->f->num_hosts; h++)
        if (t->host[h])
            b.name[t->unit[h]][b.n[t->unit[h]]++] = t->host[h];
    for (uint32_t i = 0; i < t->num; i++)
        if (t->v[i].upper != ID_NONE)
            b.name[t->v[i].upper][b.n[t->v[i].upper]++] = t->v[i].name;
    return b;
}

struct named {
    const char *name;
    uint32_t vertex;
    bool leaf;
};

// What is above first, then by name.
static int by_name(const void *a, const void *b)
{
    const struct named *x = a, *y = b;
    if (x->leaf != y->leaf)
        return x->leaf ? 1 : -1;
    return name_compare(x->name, y->name);
}

static void put_tree(struct tree *t, const struct slurm_opts *o, struct buf *b)
{
    struct below below = collect(t);
    struct named *order = ARENA_NEW_N(t->a, t->num + 1, struct named);
    for (uint32_t i = 0; i < t->num; i++)
        order[i] = (struct named){t->v[i].name, i, t->v[i].leaf};
    qsort(order, t->num, sizeof(*order), by_name);
    for (uint32_t k = 0; k < t->num; k++) {
        uint32_t i = order[k].vertex;
        bool leaf = t->v[i].leaf;
        if (o->yaml) // quoted: what is a number or null in YAML may be a name
            buf_printf(b, "      - switch: \"%s\"\n        %s: \"", t->v[i].name,
                       leaf ? "nodes" : "children");
        else
            buf_printf(b, "SwitchName=%s %s=", t->v[i].name, leaf ? "Nodes" : "Switches");
        hostlist_put(b, below.name[i], below.n[i]);
        buf_puts(b, o->yaml ? "\"\n" : "\n");
    }
}

// One topology. *counts is of this one.
static void put_topology(const struct fabric *f, const struct slurm_opts *o, int rail, struct buf *b,
                         struct slurm_counts *counts)
{
    struct tree t = {.f = f, .a = arena_new(), .counts = counts};
    char label[120];
    snprintf(label, sizeof(label), rail < 0 ? "%.100s" : "%.100s-rail%d", o->name, rail);
    t.label = label;
    *counts = (struct slurm_counts){0};
    name_hosts(&t, o->match);
    find_places(&t, rail);
    make_units(&t, rail);
    make_upper(&t, rail);
    if (o->yaml)
        buf_printf(b, "- topology: \"%s\"\n  cluster_default: %s\n  tree:\n    switches:\n", label,
                   b->len > 0 ? "false" : "true");
    put_tree(&t, o, b);
    arena_free(t.a);
}

static bool rail_known(const struct fabric *f, int rail)
{
    for (uint32_t i = 0; i < f->num_ports; i++)
        if (f->port[i].rail == rail && f->node[f->port[i].node.i].host != ID_NONE)
            return true;
    return false;
}

int write_slurm(const struct fabric *f, const struct slurm_opts *o, FILE *out, struct slurm_counts *ret,
                struct err *e)
{
    struct buf b = {0};
    struct slurm_counts counts, of_rail;
    if (!hostlist_name_ok(o->name))
        return err_set(e, -EINVAL, o->name, "Slurm takes letters, digits, '.', '_' and '-' in names");
    if (o->rail >= 0 && !rail_known(f, o->rail))
        return err_set(e, -ENOENT, NULL, "no host has an adapter on rail %d", o->rail);
    put_topology(f, o, o->rail, &b, &counts);
    for (uint32_t rail = 0; o->yaml && o->rail < 0 && f->num_rails > 1 && rail < f->num_rails; rail++)
        if (rail_known(f, (int)rail))
            put_topology(f, o, (int)rail, &b, &of_rail);
    int rc = 0;
    if (counts.hosts == 0)
        rc = err_set(e, -ENOENT, counts.left_out ? counts.example : NULL,
                     counts.left_out ? "of %u hosts none has a cable and a name that Slurm can take, such as "
                                       "this one: nothing is written, as Slurm does not start without nodes"
                                     : "no host is to be written: Slurm does not start without nodes",
                     counts.left_out);
    else {
        fprintf(out, "# %s of Slurm: %u hosts of fabric %s", o->yaml ? "topology.yaml" : "topology.conf",
                counts.hosts, o->name);
        if (counts.left_out)
            fprintf(out, "; %u left out, as they have no cable or no name of their own", counts.left_out);
        fprintf(out, "\n%s%s", o->yaml ? "---\n" : "", b.data);
        rc = ferror(out) ? -EIO : 0;
        *ret = counts;
    }
    buf_done(&b);
    return rc;
}
