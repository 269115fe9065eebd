// SPDX-License-Identifier: Apache-2.0
#include "api/compute.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/elements.h"
#include "api/quality.h"
#include "api/whatif.h"
#include "fabric/builder.h"
#include "fabric/reach.h"
#include "fabric/writer.h"
#include "lib/mono.h"
#include "lib/xalloc.h"
#include "routing/quality.h"

// --- LIDs where there are none ---

static bool takes_lid(const struct fabric *f, const struct port *p)
{
    if (!port_is_end(f, p))
        return false;
    return fabric_node(f, p->node)->type == NODE_SWITCH || port_valid(p->peer);
}

// Whether all LIDs that the port says it has are its own: the first of two claimants keeps them.
static bool keeps_lid(const struct fabric *f, const struct port *p)
{
    uint32_t i = (uint32_t)(p - f->port), n = 1u << (p->a.lmc & 7);
    if (p->a.lid == 0 || p->a.lid + n - 1 > LID_UCAST_MAX)
        return false;
    for (uint32_t k = 0; k < n; k++)
        if (f->lid_port[p->a.lid + k] != i)
            return false;
    return true;
}

struct numbering {
    const struct fabric *f;
    struct builder *b;
    uint8_t *taken; // per LID
    bool *seen;     // per port
    uint32_t next;
    bool full;
};

static void number_port(struct numbering *g, const struct port *p)
{
    struct port_attrs a = p->a;
    if (g->seen[p - g->f->port] || !takes_lid(g->f, p))
        return;
    g->seen[p - g->f->port] = true;
    if (keeps_lid(g->f, p))
        return;
    while (g->next <= LID_UCAST_MAX && g->taken[g->next])
        g->next++;
    if (g->next > LID_UCAST_MAX) {
        g->full = true;
        return;
    }
    a.lid = (uint16_t)g->next++;
    a.lmc = 0;
    builder_port(g->b, p->node, p->num, &a);
}

// Switch by switch the end ports cabled to it, then the switches themselves, then what hangs on no switch.
static void number_all(struct numbering *g)
{
    const struct fabric *f = g->f;
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        const struct node *n = fabric_switch(f, sw);
        for (unsigned num = 1; num <= n->num_ports; num++) {
            port_id peer = f->port[n->first_port + num].peer;
            if (port_valid(peer))
                number_port(g, fabric_port(f, peer));
        }
    }
    for (uint32_t i = 0; i < f->num_ports; i++)
        number_port(g, &f->port[i]);
}

const struct fabric *compute_number(const struct fabric *f, const struct fabric *reserved, struct err *e)
{
    struct numbering g = {.f = f, .next = 1};
    bool need = false;

    for (uint32_t i = 0; i < f->num_ports && !need; i++)
        need = takes_lid(f, &f->port[i]) && !keeps_lid(f, &f->port[i]);
    if (!need)
        return NULL;
    g.taken = xcalloc(LID_UCAST_MAX + 1, 1);
    g.seen = xcalloc(f->num_ports, sizeof(bool));
    for (unsigned lid = 1; lid <= LID_UCAST_MAX; lid++)
        g.taken[lid] =
            f->lid_port[lid] != ID_NONE || (reserved != NULL && reserved->lid_port[lid] != ID_NONE);
    g.b = builder_from(f);
    number_all(&g);
    free(g.taken);
    free(g.seen);
    if (!g.full)
        return builder_seal(g.b, f->generation, NULL);
    builder_free(g.b);
    err_set(e, -ENOSPC, NULL, "the fabric has more end ports than the %d LIDs there are", LID_UCAST_MAX);
    return NULL;
}

// --- failures ---

const struct fabric *compute_fail(const struct fabric *f, char *const *fail, size_t n, struct fabric_edit *x,
                                  struct err *e)
{
    struct elements el;
    int rc = 0;
    elements_init(&el, f);
    fabric_edit_init(x, f);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = elements_fail(&el, x, fail[i], e);
    elements_done(&el);
    return rc ? NULL : fabric_edit_apply(x, NULL);
}

// --- the result ---

#define VERIFY(f) offsetof(struct compute_verify, f)
static const struct field verify_fields[] = {
    {.name = "ok", .type = FIELD_BOOL, .at = VERIFY(ok), "the tables are proved"},
    {.name = "credit_loop",
     .type = FIELD_BOOL,
     .at = VERIFY(credit_loop),
     "buffers can wait for each other in a cycle"},
    {.name = "seconds", .type = FIELD_NUM, .at = VERIFY(seconds), "time of the proof"},
    {.name = "pairs", .type = FIELD_INT, .at = VERIFY(pairs), "(leaf, destination) pairs walked"},
    {.name = "disconnected",
     .type = FIELD_INT,
     .at = VERIFY(disconnected),
     "pairs without any path of cables"},
    {.name = "unreached", .type = FIELD_INT, .at = VERIFY(unreached), "pairs that should arrive and do not"},
    {.name = "max_hops", .type = FIELD_INT, .at = VERIFY(max_hops), "longest path in switches"},
    {.name = "counterexample",
     .type = FIELD_STR,
     .at = VERIFY(counterexample),
     "a path or cycle that fails",
     .null = true},
    {0},
};
const struct schema schema_verify = {
    .name = "verify", "The proof", sizeof(struct compute_verify), verify_fields};

void compute_verify(const struct fabric *f, const struct fabric_tables *t, const struct verify_opts *o,
                    struct route_proof *proof, struct compute_verify *ret)
{
    mono_t began = mono_now();
    route_verify(f, t, o, proof);
    *ret =
        (struct compute_verify){.ok = proof->ok,
                                .credit_loop = proof->credit_loop,
                                .seconds = mono_seconds(mono_sub(mono_now(), began)),
                                .pairs = (int64_t)proof->pairs,
                                .disconnected = (int64_t)proof->disconnected,
                                .unreached = (int64_t)proof->unreached,
                                .max_hops = proof->max_hops,
                                .counterexample = proof->counter_example[0] ? proof->counter_example : NULL};
}

#define CHANGED(f) offsetof(struct compute_changed, f)
static const struct field changed_fields[] = {
    {.name = "entries", .type = FIELD_INT, .at = CHANGED(entries), "table entries that differ"},
    {.name = "blocks", .type = FIELD_INT, .at = CHANGED(blocks), "blocks of 64 entries that differ"},
    {.name = "switches", .type = FIELD_INT, .at = CHANGED(switches), "switches with such entries"},
    {.name = "paths",
     .type = FIELD_INT,
     .at = CHANGED(paths),
     "pairs of a leaf switch and a destination whose way is another one"},
    {0},
};
static const struct schema schema_changed = {
    .name = "changed",
    "What the manager would write when the failures happen: its repair of "
    "the routes without them",
    sizeof(struct compute_changed),
    changed_fields};

struct failed_row {
    int64_t nodes, links;
};
static const struct field failed_fields[] = {
    {.name = "nodes", .type = FIELD_INT, .at = offsetof(struct failed_row, nodes), "nodes that failed"},
    {.name = "links",
     .type = FIELD_INT,
     .at = offsetof(struct failed_row, links),
     "links that failed, theirs too"},
    {0},
};
static const struct schema schema_failed = {
    .name = "failed", "What failed", sizeof(struct failed_row), failed_fields};

struct result_row {
    const char *engine, *why, *quality, *quality_before, *lft;
    double seconds;
    int64_t lft_bytes, peak_rss_bytes, lids;
    const struct compute_verify *verify;
    const struct compute_changed *changed;
    const struct failed_row *failed;
};
#define RESULT(f) offsetof(struct result_row, f)
static const struct field result_fields[] = {
    {.name = "engine", .type = FIELD_STR, .at = RESULT(engine), "what ran"},
    {.name = "why", .type = FIELD_STR, .at = RESULT(why), "why it was chosen"},
    {.name = "seconds", .type = FIELD_NUM, .at = RESULT(seconds), "time of the computation alone"},
    {.name = "lft_bytes", .type = FIELD_INT, .at = RESULT(lft_bytes), "size of the tables"},
    {.name = "peak_rss_bytes", .type = FIELD_INT, .at = RESULT(peak_rss_bytes), "most memory weftd has had"},
    {.name = "lids", .type = FIELD_INT, .at = RESULT(lids), "highest LID"},
    {.name = "verify", .type = FIELD_OBJ, .at = RESULT(verify), "the proof", &schema_verify},
    {.name = "quality",
     .type = FIELD_RAW,
     .at = RESULT(quality),
     "how well they spread traffic",
     &schema_quality},
    {.name = "quality_before",
     .type = FIELD_RAW,
     .at = RESULT(quality_before),
     "the same of the routes without failures; null when nothing was to fail",
     &schema_quality,
     .null = true},
    {.name = "changed",
     .type = FIELD_OBJ,
     .at = RESULT(changed),
     "of the routes without failures, repaired as the manager would; null when nothing was to fail",
     &schema_changed,
     .null = true},
    {.name = "failed", .type = FIELD_OBJ, .at = RESULT(failed), "what failed", &schema_failed},
    {.name = "lft", .type = FIELD_STR, .at = RESULT(lft), "the tables as OpenSM dumps them", .null = true},
    {0},
};
const struct schema schema_computation_result = {.name = "computation_result",
                                                 "Routes that were computed and proved",
                                                 sizeof(struct result_row),
                                                 result_fields};

// The tables' text, bounded: a FILE that refuses what goes beyond.
static ssize_t bounded_write(void *arg, const char *p, size_t n)
{
    struct buf *b = arg;
    if (b->len + n > COMPUTE_LFT_MAX)
        return 0;
    buf_add(b, p, n);
    return (ssize_t)n;
}

static int dump_text(const struct fabric *f, const struct fabric_tables *t, struct buf *b, struct err *e)
{
    FILE *out = fopencookie(b, "w", (cookie_io_functions_t){.write = bounded_write});
    if (out == NULL)
        return err_set(e, -ENOMEM, "lft", "the tables cannot be written out");
    int rc = write_lft_dump(f, t, out);
    if (fclose(out) != 0 || rc != 0)
        return err_set(e, -EFBIG, "lft", "the tables are more than %u MiB of text; ask for a file (lft_path)",
                       COMPUTE_LFT_MAX >> 20);
    return 0;
}

static int dump_file(const struct fabric *f, const struct fabric_tables *t, const char *path, struct err *e)
{
    FILE *out = fopen(path, "we");
    if (out == NULL)
        return err_set(e, -errno, path, "cannot be written (%s)", strerror(errno));
    int rc = write_lft_dump(f, t, out);
    if (fclose(out) != 0 || rc != 0)
        return err_set(e, -EIO, path, "could not be written in full");
    return 0;
}

bool *compute_unwritten(const struct fabric *f, const struct fabric_edit *x, const struct reach_change *r)
{
    bool *unwritten = xcalloc(f->num_nodes + 1, sizeof(bool));
    memcpy(unwritten, x->dead, x->f->num_nodes * sizeof(bool));
    for (uint32_t i = 0; i < r->num_sw; i++)
        unwritten[r->sw[i]] = true;
    return unwritten;
}

void compute_compare(const struct fabric *f, const struct fabric_tables *a, const struct fabric_tables *b,
                     const bool *unwritten, struct compute_changed *ret)
{
    uint32_t lids = a->lids > b->lids ? a->lids : b->lids;
    for (uint32_t sw = 0; sw < a->num_switches && sw < b->num_switches; sw++) {
        int64_t before = ret->entries;
        if (unwritten[f->switch_node[sw]])
            continue;
        for (uint32_t lid = 0; lid < lids; lid += LFT_BLOCK) {
            int64_t n = 0;
            for (uint32_t k = lid; k < lid + LFT_BLOCK; k++)
                n += tables_port(a, sw, (uint16_t)k) != tables_port(b, sw, (uint16_t)k);
            ret->entries += n;
            ret->blocks += n > 0;
        }
        ret->switches += ret->entries > before;
    }
}

struct run {
    struct computation *c;
    struct par *par;
    const struct fabric *numbered, *edited; // NULL where the one before will do
    struct route_result base, result;
    struct fabric_edit edit;
    struct compute_changed changed;
    struct buf lft, quality, quality_before;
};

static int route(struct run *r, const struct fabric *f, struct route_result *ret, double *ret_seconds)
{
    struct route_opts o = {.engine = r->c->engine, .par = r->par};
    mono_t began = mono_now();
    int rc = route_compute(f, &o, ret, &r->c->err);
    *ret_seconds = mono_seconds(mono_sub(mono_now(), began));
    return rc;
}

// What the manager would write when the failures happen.
static int find_changed(struct run *r, const struct fabric *whole, const struct fabric *f)
{
    struct route_opts o = {.engine = r->c->engine, .par = r->par};
    struct route_result repaired = {0};
    struct reach_change reach;
    int rc = route_repair(whole, &r->base, f, &o, &repaired, &r->c->err);
    if (rc == 0) {
        reach_compare(whole, f, r->edit.dead, &reach);
        bool *unwritten = compute_unwritten(f, &r->edit, &reach);
        compute_compare(f, r->base.tables, repaired.tables, unwritten, &r->changed);
        reach_change_done(&reach);
        free(unwritten);
        r->changed.paths = (int64_t)route_paths_moved(f, r->base.tables, repaired.tables, r->par);
    }
    tables_unref(repaired.tables);
    return rc;
}

static void render(struct run *r, const struct fabric *f, double seconds)
{
    struct computation *c = r->c;
    const struct fabric *whole = r->numbered != NULL ? r->numbered : c->f;
    const struct fabric_tables *t = r->result.tables;
    struct verify_opts v = {.par = r->par};
    struct route_proof *proof = xcalloc(1, sizeof(*proof));
    struct failed_row failed = {.nodes = r->edit.num_dead, .links = r->edit.num_cut};
    struct compute_verify verify;

    compute_verify(f, t, &v, proof, &verify);
    if (r->base.tables != NULL && find_changed(r, whole, f) != 0) {
        free(proof);
        return;
    }
    quality_rate(f, t, r->par, &r->quality);
    if (r->base.tables != NULL)
        quality_rate(whole, r->base.tables, r->par, &r->quality_before);
    json_put_struct(&c->result, &schema_computation_result,
                    &(struct result_row){.engine = route_engine_name(r->result.engine),
                                         .why = r->result.why,
                                         .seconds = seconds,
                                         .lft_bytes = (int64_t)tables_bytes(t),
                                         .peak_rss_bytes = (int64_t)peak_rss_bytes(),
                                         .lids = t->top_lid,
                                         .verify = &verify,
                                         .quality = r->quality.data,
                                         .quality_before = r->quality_before.data,
                                         .changed = r->base.tables != NULL ? &r->changed : NULL,
                                         .failed = &failed,
                                         .lft = c->lft ? r->lft.data ? r->lft.data : "" : NULL});
    free(proof);
}

static void run(struct run *r)
{
    struct computation *c = r->c;
    const struct fabric *f = c->f;
    double seconds;

    r->numbered = compute_number(f, NULL, &c->err);
    if (c->err.code != 0)
        return;
    if (r->numbered != NULL)
        f = r->numbered;
    if (c->num_fail > 0) {
        r->edited = compute_fail(f, c->fail, c->num_fail, &r->edit, &c->err);
        if (r->edited == NULL || route(r, f, &r->base, &seconds) != 0)
            return;
        f = r->edited;
    }
    if (route(r, f, &r->result, &seconds) != 0)
        return;
    if (c->lft && dump_text(f, r->result.tables, &r->lft, &c->err) != 0)
        return;
    if (c->lft_path != NULL && dump_file(f, r->result.tables, c->lft_path, &c->err) != 0)
        return;
    render(r, f, seconds);
}

static void rate(struct computation *c, struct par *par)
{
    struct route_quality *q = xcalloc(1, sizeof(*q));
    quality_rate_keep(c->f, c->tables, par, q, &c->result);
    quality_brief_of(q, &c->brief);
    if (c->ideal != NULL) {
        quality_rate_keep(c->ideal_f, c->ideal, par, q, &c->ideal_result);
        quality_brief_of(q, &c->ideal_brief);
    }
    free(q);
}

// On tables in force; with failures on what these become.
static void rate_job(struct run *r)
{
    struct computation *c = r->c;
    struct whatif_base base;
    struct route_result after = {0};

    if (whatif_base_init(&base, c, r->par, &c->err) != 0)
        return;
    const struct fabric *f = base.f;
    const struct fabric_tables *t = base.tables;
    if (c->num_fail > 0) {
        r->edited = compute_fail(f, c->fail, c->num_fail, &r->edit, &c->err);
        f = r->edited;
        if (f != NULL && whatif_repair(&base, f, base.drained, r->par, &after, &c->err) == 0)
            t = after.tables;
    }
    if (c->err.code == 0)
        quality_rate_job(f, t, c->host, c->num_hosts, r->par, &c->result, &c->err);
    tables_unref(after.tables);
    whatif_base_done(&base);
}

void compute_run(struct computation *c, struct par *par)
{
    if (c->tables != NULL && c->num_hosts == 0 && !c->whatif) {
        rate(c, par);
        return;
    }
    struct run r = {.c = c, .par = par};

    if (c->whatif)
        whatif_run(c, par);
    else if (c->num_hosts > 0)
        rate_job(&r);
    else
        run(&r);
    // Made here and seen by nobody else: freed here.
    tables_unref(r.base.tables);
    tables_unref(r.result.tables);
    fabric_unref(r.edited);
    fabric_unref(r.numbered);
    fabric_edit_done(&r.edit);
    buf_done(&r.lft);
    buf_done(&r.quality);
    buf_done(&r.quality_before);
}

static void free_words(char **word, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(word[i]);
    free(word);
}

void compute_done(struct computation *c)
{
    free_words(c->fail, c->num_fail);
    free_words(c->drain, c->num_drain);
    free_words(c->add, c->num_add);
    free_words(c->host, c->num_hosts);
    free(c->lft_path);
    tables_unref(c->tables);
    tables_unref(c->ideal);
    fabric_unref(c->ideal_f);
    fabric_unref(c->routing.blueprint);
    fabric_unref(c->routing.made_for);
    tables_unref(c->routing.ideal.tables);
    free(c->routing.roots);
    free(c->routing.file);
    free(c->routing.drain);
    buf_done(&c->result);
    buf_done(&c->ideal_result);
}
