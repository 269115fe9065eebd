// SPDX-License-Identifier: Apache-2.0
// A job's figures: names of hosts to adapters, adapters to what their collectives meet.
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/quality.h"
#include "api/resolve.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "routing/quality.h"

struct flows_row {
    const char *absent;
    int64_t flows, failed, max_load, blamed;
    double mean, worst;
    struct items links;
};
#define FLOWS(f) offsetof(struct flows_row, f)
static const struct field flows_fields[] = {
    {.name = "mean",
     .type = FIELD_NUM,
     .at = FLOWS(mean),
     "bandwidth of a flow, 1 where only its hosts' own cables limit it; mean over flows",
     .null = true},
    {.name = "worst", .type = FIELD_NUM, .at = FLOWS(worst), "of the worst flow", .null = true},
    {.name = "max_load",
     .type = FIELD_INT,
     .at = FLOWS(max_load),
     "most flows on one cable between switches, in one direction",
     .null = true},
    {.name = "flows", .type = FIELD_INT, .at = FLOWS(flows), "flows that arrive"},
    {.name = "failed", .type = FIELD_INT, .at = FLOWS(failed), "flows that do not"},
    {.name = "absent",
     .type = FIELD_STR,
     .at = FLOWS(absent),
     "why there are no figures; null when there are",
     .null = true},
    {.name = "blamed", .type = FIELD_INT, .at = FLOWS(blamed), "cables that hold flows back"},
    {.name = "links",
     .type = FIELD_LIST,
     .at = FLOWS(links),
     "the fullest of these, at most 8",
     &schema_quality_link},
    {0},
};
static const struct schema schema_job_flows = {
    .name = "job_flows", "What a collective meets", sizeof(struct flows_row), flows_fields};

struct job_row {
    const struct flows_row *ring, *tree, *rail_alltoall, *alltoall;
    const char *engine;
    int64_t hosts, adapters, rails;
    double seconds;
};
#define JOBQ(f) offsetof(struct job_row, f)
static const struct field job_fields[] = {
    {.name = "ring",
     .type = FIELD_OBJ,
     .at = JOBQ(ring),
     "each host to the next, on each rail",
     &schema_job_flows},
    {.name = "tree",
     .type = FIELD_OBJ,
     .at = JOBQ(tree),
     "two complementary binary trees on each rail, both ways",
     &schema_job_flows},
    {.name = "rail_alltoall",
     .type = FIELD_OBJ,
     .at = JOBQ(rail_alltoall),
     "every adapter to every other of its rail",
     &schema_job_flows},
    {.name = "alltoall",
     .type = FIELD_OBJ,
     .at = JOBQ(alltoall),
     "every adapter to every other",
     &schema_job_flows},
    {.name = "engine", .type = FIELD_STR, .at = JOBQ(engine), "what made the tables"},
    {.name = "hosts", .type = FIELD_INT, .at = JOBQ(hosts), "hosts given"},
    {.name = "adapters", .type = FIELD_INT, .at = JOBQ(adapters), "adapter ports of theirs that are up"},
    {.name = "rails", .type = FIELD_INT, .at = JOBQ(rails), "rails that these are on"},
    {.name = "seconds", .type = FIELD_NUM, .at = JOBQ(seconds), "time of these figures"},
    {0},
};
const struct schema schema_job_quality = {
    .name = "job_quality", "What a job's collectives meet", sizeof(struct job_row), job_fields};

// --- names to ports ---

struct named {
    const char *desc;
    uint32_t node;
};

struct names {
    const struct fabric *f;
    struct named *by_name; // adapters of hosts
    size_t n;
    bool *taken;               // per host: named already
    uint32_t *first, *of_host; // adapters of host h: of_host[first[h]] .. [first[h + 1] - 1]
};

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->desc, ((const struct named *)b)->desc);
}

static void names_init(struct names *x, const struct fabric *f)
{
    x->f = f;
    x->by_name = xcalloc(f->num_nodes + 1, sizeof(*x->by_name));
    x->taken = xcalloc(f->num_hosts + 1, sizeof(*x->taken));
    x->first = xcalloc(f->num_hosts + 2, sizeof(*x->first));
    x->of_host = xcalloc(f->num_nodes + 1, sizeof(*x->of_host));
    for (uint32_t i = 0; i < f->num_nodes; i++) {
        if (f->node[i].host == ID_NONE)
            continue;
        x->by_name[x->n++] = (struct named){fabric_desc(f, &f->node[i]), i};
        x->first[f->node[i].host + 2]++;
    }
    for (uint32_t h = 0; h < f->num_hosts; h++)
        x->first[h + 2] += x->first[h + 1];
    for (uint32_t i = 0; i < f->num_nodes; i++) // first[h + 1] ends as the start of host h + 1
        if (f->node[i].host != ID_NONE)
            x->of_host[x->first[f->node[i].host + 1]++] = i;
    qsort(x->by_name, x->n, sizeof(*x->by_name), by_name);
}

static void names_done(struct names *x)
{
    free(x->by_name);
    free(x->taken);
    free(x->first);
    free(x->of_host);
}

// The host whose adapters are called "name something"; ID_NONE when there is none, -EEXIST when several.
static int host_named(const struct names *x, const char *name, uint32_t *ret)
{
    char *key = xasprintf("%s ", name);
    size_t len = strlen(key), low = 0, high = x->n;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (strcmp(x->by_name[mid].desc, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    int rc = 0;
    *ret = ID_NONE;
    for (; low < x->n && strncmp(x->by_name[low].desc, key, len) == 0; low++) {
        uint32_t host = x->f->node[x->by_name[low].node].host;
        if (*ret != ID_NONE && host != *ret)
            rc = -EEXIST;
        *ret = host;
    }
    free(key);
    return rc;
}

struct ports {
    uint32_t *port;
    size_t n, cap;
};

static void add_ports(const struct fabric *f, uint32_t node, struct ports *p)
{
    for (uint32_t k = 0; k < f->node[node].num_ports; k++) {
        if (p->n == p->cap) {
            p->cap = p->cap ? p->cap * 2 : 64;
            p->port = xreallocarray(p->port, p->cap, sizeof(*p->port));
        }
        p->port[p->n++] = f->node[node].first_port + k;
    }
}

static int add_host(struct names *x, const char *text, struct ports *p, struct err *e)
{
    uint32_t host;
    struct place at;
    if (host_named(x, text, &host) != 0)
        return err_set(e, -EEXIST, text, "several hosts are called so; name their adapters by GUID");
    if (host == ID_NONE) {
        int rc = resolve_element(x->f, text, &at, e);
        if (rc != 0 || at.node->type != NODE_CA) {
            rc = rc ? rc : -EINVAL;
            return err_set(e, rc, text, rc == -EINVAL ? "is no host" : "no host is called so");
        }
        host = at.node->host;
        if (host == ID_NONE) {
            add_ports(x->f, (uint32_t)(at.node - x->f->node), p);
            return 0;
        }
    }
    for (uint32_t i = x->first[host]; !x->taken[host] && i < x->first[host + 1]; i++)
        add_ports(x->f, x->of_host[i], p);
    x->taken[host] = true;
    return 0;
}

// --- the figures ---

struct space {
    struct flows_row row;
    struct quality_link_row link[QUALITY_BLAME];
};

static const struct flows_row *fill(const struct fabric *f, const struct quality_job_flows *q,
                                    struct space *s)
{
    if (q->absent) {
        s->row = (struct flows_row){.absent = q->absent, .max_load = NO_INT, .mean = NAN, .worst = NAN};
        return &s->row;
    }
    for (uint32_t i = 0; i < q->num_links; i++)
        quality_link_fill(f, &q->link[i], &s->link[i]);
    s->row = (struct flows_row){.flows = (int64_t)q->flows,
                                .failed = (int64_t)q->failed,
                                .max_load = (int64_t)q->max_load,
                                .blamed = q->blamed,
                                .mean = q->mean,
                                .worst = q->worst,
                                .links = {s->link, q->num_links}};
    return &s->row;
}

int quality_rate_job(const struct fabric *f, const struct fabric_tables *t, char *const *hosts, size_t n,
                     struct par *par, struct buf *b, struct err *e)
{
    struct route_job_quality *q = xcalloc(1, sizeof(*q));
    struct space *s = xcalloc(4, sizeof(*s));
    struct names x = {0};
    struct ports p = {0};
    mono_t began = mono_now();
    int rc = 0;

    names_init(&x, f);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = add_host(&x, hosts[i], &p, e);
    if (rc == 0) {
        route_quality_job(f, t, p.port, (uint32_t)p.n, par, q);
        json_put_struct(b, &schema_job_quality,
                        &(struct job_row){.ring = fill(f, &q->ring, &s[0]),
                                          .tree = fill(f, &q->tree, &s[1]),
                                          .rail_alltoall = fill(f, &q->rail_alltoall, &s[2]),
                                          .alltoall = fill(f, &q->alltoall, &s[3]),
                                          .engine = t->engine,
                                          .hosts = (int64_t)n,
                                          .adapters = q->adapters,
                                          .rails = q->rails,
                                          .seconds = mono_seconds(mono_sub(mono_now(), began))});
    }
    names_done(&x);
    free(p.port);
    free(s);
    free(q);
    return rc;
}
