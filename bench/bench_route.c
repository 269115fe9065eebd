// SPDX-License-Identifier: Apache-2.0
// Routing alone, for bench/route.py: computes tables for a generated fabric or a file, on the pool that the
// manager has, and prints one JSON object.
//
//   bench_route [-e ENGINE] [-n RUNS] [-t THREADS] [-l] [-q] [-V] [-o TABLES] [-g LIDS]
//               [-d DAMAGE [-s SEED] [-a] [-m FAULTS]] NAME|FILE
//
// -l: keep the file's LIDs (else all are given anew: switches, then adapters leaf by leaf). -V: without the
// proof. -q: quality figures too, all same-rail shifts where hosts are not too many. -o: the tables, a line a
// switch: GUID, first LID, entries in hex; -g: guid2lid lines; both as other judges read them.
// -d: damage, and keep to the tables: so many per cent of the cables between switches dead, or `one`; all
// cables of one in twenty `spines` or `leaves`; cables `crossed` between switches or `miscabled` to hosts
// too, both plugs of one in a hundred in another's place. -a: tables made anew instead. Quality and what
// changed are then of that. -m: after it so many further dead cables, each by itself: what changes, and how
// much of it still led there by no longer a way.
//
// Times are wall clock, best and median of the runs; "rss" is the peak after the first computation, with the
// snapshot, its tables and nothing else; "memset" is what writing as many bytes again takes, on as many
// threads: the wall of memory; "read" the same for reading them. "verify_keep" is a proof that leaves a
// state; "verify_cpu" what a proof takes on all threads together, which says more where others use the
// machine.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "fabric/builder.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/loop.h"
#include "lib/pool.h"
#include "lib/rng.h"
#include "lib/xalloc.h"
#include "routing/quality.h"
#include "routing/route.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

// Of all threads: what a machine that others use does not stretch.
static double cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static size_t peak_rss(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (size_t)u.ru_maxrss * 1024;
}

// --- LIDs ---

static void give_lid(struct builder *b, const struct fabric *f, port_id id, uint32_t *lid)
{
    struct port_attrs a = fabric_port(f, id)->a;
    a.lid = (uint16_t)++ * lid;
    a.lmc = 0;
    builder_port(b, fabric_port(f, id)->node, fabric_port(f, id)->num, &a);
}

static const struct fabric *with_lids(const struct fabric *f)
{
    struct builder *b = builder_from(f);
    uint32_t lid = 0;
    for (uint32_t s = 0; s < f->num_switches; s++)
        give_lid(b, f, fabric_port_at(f, fabric_switch(f, s), 0), &lid);
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *sw = fabric_switch(f, s);
        for (unsigned num = 1; num <= sw->num_ports; num++) {
            const struct port *p = fabric_port(f, fabric_port_at(f, sw, num));
            const struct node *peer = fabric_peer_node(f, p);
            if (peer && peer->type != NODE_SWITCH)
                give_lid(b, f, p->peer, &lid);
        }
    }
    const struct fabric *r = builder_seal(b, f->generation + 1, NULL);
    fabric_unref(f);
    return r;
}

// --- damage ---

struct harm {
    const struct fabric *f;
    struct builder *b;
    struct rng r;
    uint32_t *cable, n; // between switches: by one end
};

static bool trunk(const struct fabric *f, uint32_t i)
{
    const struct port *p = &f->port[i];
    const struct node *peer = fabric_peer_node(f, p);
    return peer && peer->type == NODE_SWITCH && fabric_node(f, p->node)->type == NODE_SWITCH;
}

static void some_cables(struct harm *h, uint32_t dead)
{
    for (uint32_t k = 0; k < dead && k < h->n; k++) {
        uint32_t x = k + rng_below(&h->r, h->n - k), i = h->cable[x];
        h->cable[x] = h->cable[k];
        builder_unlink(h->b, h->f->port[i].node, h->f->port[i].num);
    }
}

// All cables of one in twenty of the switches of a tier, at least of one.
static void some_switches(struct harm *h, uint8_t tier)
{
    uint32_t had = 0, n = h->f->num_switches, killed = 0, from = rng_below(&h->r, 20);
    for (uint32_t s = 0; s < n; s++) {
        const struct node *sw = fabric_switch(h->f, s);
        if (sw->tier != tier || (had++ % 20 != from && !(killed == 0 && s + 1 == n)))
            continue;
        killed++;
        for (unsigned num = 1; num <= sw->num_ports; num++) {
            const struct port *p = &h->f->port[sw->first_port + num];
            if (port_valid(p->peer))
                builder_unlink(h->b, p->node, p->num);
        }
    }
}

// Both plugs of one cable in a hundred in each other's place: between switches, or those of hosts too.
static void some_swapped(struct harm *h, bool hosts)
{
    const struct fabric *f = h->f;
    for (uint32_t i = 0; i < f->num_ports && hosts; i++) {
        const struct node *n = fabric_peer_node(f, &f->port[i]);
        if (n && n->type != NODE_SWITCH && fabric_node(f, f->port[i].node)->type == NODE_SWITCH)
            h->cable[h->n++] = i;
    }
    for (uint32_t k = 0; k < h->n / 200; k++) {
        uint32_t x = rng_below(&h->r, h->n), y = rng_below(&h->r, h->n - 1);
        y += y >= x;
        const struct port *p = &f->port[h->cable[x]], *q = &f->port[h->cable[y]];
        const struct port *pp = fabric_port(f, p->peer), *qq = fabric_port(f, q->peer);
        bool loop = p->node.i == qq->node.i || q->node.i == pp->node.i;
        h->cable[x] = h->cable[--h->n];
        if (loop || y >= h->n || y == x)
            continue;
        h->cable[y] = h->cable[--h->n];
        builder_unlink(h->b, p->node, p->num);
        builder_unlink(h->b, q->node, q->num);
        builder_link(h->b, p->node, p->num, qq->node, qq->num);
        builder_link(h->b, q->node, q->num, pp->node, pp->num);
    }
}

static const struct fabric *damaged(const struct fabric *f, const char *how, uint64_t seed)
{
    struct harm h = {.f = f, .b = builder_from(f), .cable = xcalloc(f->num_ports, sizeof(*h.cable))};
    rng_init(&h.r, seed);
    for (uint32_t i = 0; i < f->num_ports; i++) {
        if (trunk(f, i) && i < f->port[i].peer.i)
            h.cable[h.n++] = i;
    }
    if (strcmp(how, "spines") == 0)
        some_switches(&h, 1);
    else if (strcmp(how, "leaves") == 0)
        some_switches(&h, 0);
    else if (strcmp(how, "crossed") == 0 || strcmp(how, "miscabled") == 0)
        some_swapped(&h, how[0] == 'm');
    else
        some_cables(&h, strcmp(how, "one") == 0 ? 1 : (uint32_t)(h.n * strtod(how, NULL) / 100 + 0.5));
    free(h.cable);
    return builder_seal(h.b, f->generation + 1, NULL);
}

// --- whether what changed had to ---

struct way {
    uint32_t hops, turns; // turns: from going down to going up, by tiers
    bool arrives;
};

// From switch s by port out, then along the tables.
static struct way walk(const struct fabric *f, const struct fabric_tables *t, uint32_t s, uint8_t out,
                       uint16_t lid)
{
    struct way w = {0};
    const struct node *n = fabric_switch(f, s);
    bool down = false;
    while (w.hops++ < 64 && out != 0 && out <= n->num_ports) {
        const struct port *p = &f->port[n->first_port + out];
        const struct node *next = fabric_peer_node(f, p);
        if (!next)
            return w;
        w.arrives = p->peer.i == f->lid_port[lid];
        if (w.arrives || next->type != NODE_SWITCH)
            return w;
        w.turns += down && next->tier > n->tier;
        down = next->tier < n->tier;
        n = next;
        out = tables_port(t, n->sw, lid);
    }
    w.arrives = out == 0 && f->lid_port[lid] == n->first_port;
    return w;
}

// Entries that differ; *ret_legal: those whose old port still led there, by no longer a way.
static uint64_t changes(const struct fabric *f, const struct fabric_tables *old,
                        const struct fabric_tables *t, uint64_t *ret_legal)
{
    uint64_t n = 0;
    for (uint32_t s = 0; s < t->num_switches; s++) {
        for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
            uint8_t was = tables_port(old, s, (uint16_t)lid), is = tables_port(t, s, (uint16_t)lid);
            if (was == is || f->lid_port[lid] == ID_NONE)
                continue;
            struct way a = walk(f, t, s, was, (uint16_t)lid), b = walk(f, t, s, is, (uint16_t)lid);
            n++;
            *ret_legal += a.arrives && b.arrives && a.hops <= b.hops && a.turns <= b.turns;
        }
    }
    return n;
}

// --- output ---

static int put_tables(const char *path, const struct fabric *f, const struct fabric_tables *t)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return -1;
    for (uint32_t s = 0; s < t->num_switches; s++) {
        fprintf(out, "0x%016lx 0 ", fabric_switch(f, s)->guid);
        for (uint32_t lid = 0; lid <= t->top_lid; lid++)
            fprintf(out, "%02x", tables_port(t, s, (uint16_t)lid));
        fputc('\n', out);
    }
    return fclose(out);
}

static int put_lids(const char *path, const struct fabric *f)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return -1;
    for (uint32_t lid = 1; lid <= f->top_lid; lid++) {
        if (f->lid_port[lid] == ID_NONE)
            continue;
        const struct port *p = &f->port[f->lid_port[lid]];
        fprintf(out, "0x%016lx 0x%04x 0x%04x\n", p->guid ? p->guid : fabric_node(f, p->node)->guid, p->a.lid,
                p->a.lid + (1u << p->a.lmc) - 1);
    }
    return fclose(out);
}

// --- timing, on the pool ---

struct bench {
    struct loop *l;
    const struct fabric *f;
    struct route_opts opts;
    unsigned runs;
    struct route_result r;
    struct route_proof proof;
    struct err e;
    int rc;
    double compute[100], verify[100], verify_cpu[100], keep[100], wall, read;
    size_t rss;
    bool want_quality, no_proof, anew;
    const char *damage;
    uint64_t seed;
    double repair, repair_cpu;
    unsigned further; // faults after that damage, each by itself
    uint64_t further_changed, further_legal;
    struct tables_diff changed;
    struct route_quality q;
};

static int less(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct wipe {
    const struct fabric_tables *t;
    uint8_t *to;
    unsigned n;
    _Atomic uint64_t sum;
};

static void wipe_task(void *arg, unsigned i)
{
    struct wipe *w = arg;
    size_t size = tables_bytes(w->t), from = size / w->n * i,
           to = i + 1 == w->n ? size : size / w->n * (i + 1);
    memset(w->to + from, 0x5a, to - from);
}

static double wipe(const struct fabric_tables *t, struct par *par)
{
    struct wipe w = {.t = t, .to = xmalloc(tables_bytes(t)), .n = par->width};
    double best = 1e9;
    for (int i = 0; i < 4; i++) { // the first maps the pages
        double t0 = now();
        par->run(par, w.n, wipe_task, &w);
        double d = now() - t0;
        best = d < best && i > 0 ? d : best;
    }
    free(w.to);
    return best;
}

static void read_task(void *arg, unsigned i)
{
    struct wipe *w = arg;
    size_t words = (size_t)w->t->num_switches * w->t->lids / sizeof(uint64_t), from = words / w->n * i;
    size_t to = i + 1 == w->n ? words : words / w->n * (i + 1);
    const uint64_t *p = (const uint64_t *)w->t->lft;
    uint64_t sum = 0;
    for (size_t x = from; x < to; x++)
        sum += p[x];
    w->sum += sum;
}

static double read_through(const struct fabric_tables *t, struct par *par)
{
    struct wipe w = {.t = t, .n = par->width};
    double best = 1e9;
    for (int i = 0; i < 4; i++) {
        double t0 = now();
        par->run(par, w.n, read_task, &w);
        double d = now() - t0;
        best = d < best ? d : best;
    }
    return best;
}

struct differ {
    const struct fabric_tables *a, *b;
    struct tables_diff *part;
    uint32_t n;
};

static void differ_task(void *arg, unsigned i)
{
    struct differ *x = arg;
    uint64_t rows = x->a->num_switches;
    x->part[i] =
        tables_compare_rows(x->a, x->b, (uint32_t)(rows * i / x->n), (uint32_t)(rows * (i + 1) / x->n));
}

static struct tables_diff differ(const struct fabric_tables *a, const struct fabric_tables *b,
                                 struct par *par)
{
    struct differ x = {a, b, xcalloc(4 * par->width, sizeof(*x.part)), 4 * par->width};
    struct tables_diff sum = {0};
    par->run(par, x.n, differ_task, &x);
    for (uint32_t i = 0; i < x.n; i++) {
        sum.entries += x.part[i].entries;
        sum.blocks += x.part[i].blocks;
        sum.switches += x.part[i].switches;
    }
    free(x.part);
    return sum;
}

// From here on f, its tables and their proof are those of the damaged fabric.
static void damage(struct bench *b, struct par *par)
{
    const struct fabric *live = damaged(b->f, b->damage, b->seed);
    struct route_base *base = NULL;
    struct route_result r = {0};
    struct verify_opts v = {.par = par};
    b->repair = b->repair_cpu = 1e9;
    b->rc = route_base_new(b->f, &b->r, &b->opts, &base, &b->e);
    for (unsigned i = 0; i < b->runs && !b->rc; i++) {
        tables_unref(r.tables);
        r.tables = NULL;
        double t0 = now(), c0 = cpu();
        b->rc = b->anew ? route_compute(live, &b->opts, &r, &b->e)
                        : route_repair_from(base, live, par, &r, &b->e);
        if (!b->rc)
            b->changed = differ(b->r.tables, r.tables, par);
        double d = now() - t0;
        b->repair = d < b->repair ? d : b->repair;
        d = cpu() - c0;
        b->repair_cpu = d < b->repair_cpu ? d : b->repair_cpu;
    }
    for (unsigned i = 0; i < b->further && !b->rc; i++) {
        const struct fabric *more = damaged(live, "one", b->seed + 1000 + i);
        struct route_result x;
        b->rc = route_repair_from(base, more, par, &x, &b->e);
        if (!b->rc) {
            b->further_changed += changes(more, r.tables, x.tables, &b->further_legal);
            tables_unref(x.tables);
        }
        fabric_unref(more);
    }
    route_base_free(base);
    if (b->rc)
        return;
    tables_unref(b->r.tables);
    b->r = r;
    fabric_unref(b->f);
    b->f = live;
    route_verify(b->f, r.tables, &v, &b->proof);
}

static void work(void *arg, struct par *par)
{
    struct bench *b = arg;
    b->opts.par = par;
    for (unsigned i = 0; i < b->runs && !b->rc; i++) {
        tables_unref(b->r.tables);
        b->r.tables = NULL;
        double t0 = now();
        b->rc = route_compute(b->f, &b->opts, &b->r, &b->e);
        b->compute[i] = now() - t0;
        if (i == 0)
            b->rss = peak_rss();
    }
    for (unsigned i = 0; i < b->runs && !b->rc && !b->no_proof; i++) {
        struct verify_opts o = {.par = par, .allow_credit_loops = true};
        struct route_proof_state *state;
        double t0 = now(), c0 = cpu();
        route_verify(b->f, b->r.tables, &o, &b->proof);
        b->verify[i] = now() - t0;
        b->verify_cpu[i] = cpu() - c0;
        t0 = now();
        route_verify_keep(b->f, b->r.tables, &o, &b->proof, &state);
        b->keep[i] = now() - t0;
        route_proof_state_free(state);
    }
    if (!b->rc && b->damage)
        damage(b, par);
    if (b->rc)
        return;
    b->wall = wipe(b->r.tables, par);
    b->read = read_through(b->r.tables, par);
    struct quality_opts o = {.all_shifts = b->f->num_end_nodes <= 2000, .par = par};
    if (b->want_quality)
        route_quality(b->f, b->r.tables, &o, &b->q);
}

static void done(void *arg)
{
    struct bench *b = arg;
    loop_stop(b->l);
}

static void print_flows(const struct fabric *f, const char *name, const struct quality_flows *q)
{
    if (q->absent)
        return;
    char link[200] = "";
    if (q->link.node != ID_NONE)
        fabric_port_name(f, fabric_port_at(f, &f->node[q->link.node], q->link.port), link, sizeof(link));
    printf("\"%s\": %.6f, \"%s_worst\": %.6f, \"%s_load\": %u, \"%s_failed\": %lu, ", name, q->mean, name,
           q->worst, name, q->max_load, name, q->failed);
    fprintf(stderr, "%s: %u patterns, fullest cable %s\n", name, q->patterns, link);
}

static void print_quality(const struct fabric *f, const struct route_quality *q)
{
    print_flows(f, "same_rail_shift", &q->same_rail_shift);
    print_flows(f, "slot_shift", &q->slot_shift);
    print_flows(f, "ring", &q->ring);
    print_flows(f, "shift", &q->shift);
    print_flows(f, "permutation", &q->permutation);
    if (q->alltoall.absent)
        return;
    const struct quality_alltoall *x = &q->alltoall;
    char link[200] = "";
    if (x->link.node != ID_NONE)
        fabric_port_name(f, fabric_port_at(f, &f->node[x->link.node], x->link.port), link, sizeof(link));
    printf("\"alltoall_max\": %lu, \"alltoall_max_over_mean\": %.6f, \"alltoall_failed\": %lu, ", x->max,
           x->max_over_mean, x->failed);
    fprintf(stderr, "alltoall: fullest cable %s", link);
    for (uint32_t i = 0; i < x->num_levels; i++)
        fprintf(stderr, "; %s %u: %lu, %.3f of the mean", quality_dir_name(x->level[i].dir), x->level[i].tier,
                x->level[i].max, x->level[i].max_over_mean);
    fprintf(stderr, "\n");
}

static void print(struct bench *b)
{
    qsort(b->compute, b->runs, sizeof(double), less);
    qsort(b->verify, b->runs, sizeof(double), less);
    qsort(b->verify_cpu, b->runs, sizeof(double), less);
    qsort(b->keep, b->runs, sizeof(double), less);
    printf("{\"switches\": %u, \"hosts\": %u, \"lids\": %u, \"tables\": %zu, \"engine\": \"%s\", ",
           b->f->num_switches, b->f->num_end_nodes, b->f->top_lid, tables_bytes(b->r.tables),
           route_engine_name(b->r.engine));
    printf("\"compute\": %.6f, \"compute_median\": %.6f, \"verify\": %.6f, \"verify_cpu\": %.6f, "
           "\"verify_keep\": %.6f, \"memset\": %.6f, \"read\": %.6f, \"rss\": %zu, ",
           b->compute[0], b->compute[b->runs / 2], b->verify[0], b->verify_cpu[0], b->keep[0], b->wall,
           b->read, b->rss);
    if (b->damage)
        printf("\"repair\": %.6f, \"repair_cpu\": %.6f, \"changed\": %lu, \"blocks\": %u, ", b->repair,
               b->repair_cpu, b->changed.entries, b->changed.blocks);
    if (b->further)
        printf("\"further_changed\": %lu, \"further_legal\": %lu, ", b->further_changed, b->further_legal);
    printf("\"entries\": %lu, ", (unsigned long)b->r.tables->num_switches * b->f->top_lid);
    if (b->want_quality)
        print_quality(b->f, &b->q);
    printf("\"ok\": %s, \"credit_loop\": %s, \"pairs\": %lu, \"disconnected\": %lu, \"unreached\": %lu, "
           "\"max_hops\": %u}\n",
           b->proof.ok ? "true" : "false", b->proof.credit_loop ? "true" : "false", b->proof.pairs,
           b->proof.disconnected, b->proof.unreached, b->proof.max_hops);
    fprintf(stderr, "%s\n%s%s", b->r.why, b->proof.counter_example, b->proof.counter_example[0] ? "\n" : "");
}

int main(int argc, char **argv)
{
    struct bench b = {.opts.engine = ROUTE_AUTO, .runs = 5};
    const char *tables = NULL, *lids = NULL;
    unsigned threads = 0;
    bool keep = false, usage = false;
    for (int c; (c = getopt(argc, argv, "e:n:t:lqVo:g:d:s:am:")) != -1;) {
        if (c == 'e')
            usage |= route_engine_parse(optarg, &b.opts.engine) != 0;
        else if (c == 'n')
            b.runs = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 't')
            threads = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 'l')
            keep = true;
        else if (c == 'd')
            b.damage = optarg;
        else if (c == 'm')
            b.further = (unsigned)strtoul(optarg, NULL, 10);
        else if (c == 's')
            b.seed = strtoull(optarg, NULL, 10);
        else if (c == 'a')
            b.anew = true;
        else if (c == 'V')
            b.no_proof = true;
        else if (c == 'q')
            b.want_quality = true;
        else if (c == 'o')
            tables = optarg;
        else if (c == 'g')
            lids = optarg;
        else
            usage = true;
    }
    if (usage || optind + 1 != argc || b.runs < 1 || b.runs > 100) {
        fprintf(stderr, "usage: bench_route [-e ENGINE] [-n RUNS (100)] [-t THREADS] [-l] [-q] [-V] [-o "
                        "TABLES] [-g LIDS] "
                        "NAME|FILE\n");
        return 2;
    }
    b.f = topogen_or_file(argv[optind], NULL, &b.e);
    if (b.f && !keep)
        b.f = with_lids(b.f);
    if (b.f) {
        b.l = loop_new(LOOP_REAL);
        struct pool *p = pool_new(b.l, threads);
        struct pool_job job = {.work = work, .done = done, .arg = &b};
        pool_submit(p, &job);
        loop_run(b.l);
        pool_free(p);
        loop_free(b.l);
    }
    if (!b.f || b.rc) {
        fprintf(stderr, "bench_route: %s\n", b.e.text);
        return 1;
    }
    print(&b);
    if ((tables && put_tables(tables, b.f, b.r.tables)) || (lids && put_lids(lids, b.f))) {
        perror("bench_route");
        return 1;
    }
    return 0;
}
