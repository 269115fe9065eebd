// SPDX-License-Identifier: Apache-2.0
// A fabric in the forms of other programs. A large one takes longer than the loop may: a worker writes it.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_priv.h"
#include "fabric/writer.h"
#include "lib/xalloc.h"

#define TEXT_MAX (256u << 20)

enum form { // as export_forms has them
    FORM_SLURM,
    FORM_SLURM_YAML,
    FORM_JSON,
    FORM_IBNETDISCOVER,
    FORM_LST,
    FORM_LFT,
    FORM_FDBS,
};
static const char *const export_forms[] = {"slurm", "slurm-yaml", "json", "ibnetdiscover",
                                           "lst",   "lft",        "fdbs", NULL};
static const char *const export_graphs[] = {"live", "blueprint", NULL};
const struct param export_params[] = {
    {.name = "format",
     .type = PARAM_ENUM,
     .name_of = export_forms,
     .need = true,
     .doc = "slurm: topology.conf; slurm-yaml: topology.yaml; json: the graph, in node-link form; "
            "ibnetdiscover; lst: for ibdmchk; lft, fdbs: the tables in force, as OpenSM dumps them"},
    {.name = "rail",
     .type = PARAM_INT,
     .min = 0,
     .max = RAIL_NONE - 1,
     .doc = "slurm: hosts lie under their leaves of this rail; when absent under their scalable units"},
    {.name = "of",
     .type = PARAM_ENUM,
     .name_of = export_graphs,
     .doc = "blueprint: what the fabric is meant to be, of graphs; live when absent, of slurm blueprint"},
    {.name = "match", .type = PARAM_STR, .doc = "slurm: only hosts whose names match this shell pattern"},
    {0},
};

struct export
{
    struct later later;
    const struct fabric *f;
    const struct fabric_tables *t;
    enum form form;
    char *name, *match;
    int rail;
    char *text;
    size_t len;
};

static int put(struct export *x, FILE *out)
{
    struct slurm_opts o = {
        .name = x->name, .rail = x->rail, .yaml = x->form == FORM_SLURM_YAML, .match = x->match};
    struct slurm_counts counts;
    switch (x->form) {
    case FORM_SLURM:
    case FORM_SLURM_YAML:
        return write_slurm(x->f, &o, out, &counts, &x->later.err);
    case FORM_JSON:
        return write_graph_json(x->f, x->name, out);
    case FORM_IBNETDISCOVER:
        return write_ibnetdiscover(x->f, out);
    case FORM_LST:
        return write_lst(x->f, out);
    case FORM_LFT:
        return write_lft_dump(x->f, x->t, out);
    case FORM_FDBS:
        return write_fdbs(x->f, x->t, out);
    }
    return -EINVAL;
}

static void work(struct later *l, struct par *par)
{
    struct export *x = (struct export *)l;
    FILE *out = open_memstream(&x->text, &x->len);
    (void)par;
    int rc = out != NULL ? put(x, out) : -ENOMEM;
    if (out != NULL && fclose(out) != 0 && rc == 0)
        rc = -ENOMEM;
    if (rc != 0 && l->err.code == 0)
        err_set(&l->err, rc, NULL, "there is no memory for the text");
}

static void export_free(struct later *l)
{
    struct export *x = (struct export *)l;
    fabric_unref(x->f);
    tables_unref(x->t);
    free(x->name);
    free(x->match);
    free(x->text);
    free(x);
}

static void export_answer(struct later *l, struct request *r)
{
    struct export *x = (struct export *)l;
    r->status = 200;
    r->type = x->form == FORM_JSON         ? "application/json"
              : x->form == FORM_SLURM_YAML ? "application/yaml"
                                           : "text/plain; charset=utf-8";
    r->response = http_response(x->text, x->len);
    if (r->response != NULL)
        x->text = NULL;
    else
        answer_problem(r, 503, "there is no memory for the answer");
}

// Slurm is told of hosts that are away as well: an empty place is no reason to place jobs apart. NULL with an
// answer when there is no such graph.
static const struct fabric *graph_of(struct request *r, const struct view *v, const struct fabric *live,
                                     enum form form)
{
    struct sm_blueprint b = {0};
    const char *of = query_str(r, "of");
    bool slurm = form == FORM_SLURM || form == FORM_SLURM_YAML;
    bool blueprint = of != NULL ? strcmp(of, "blueprint") == 0 : slurm;
    if (v->src->sm != NULL && blueprint)
        sm_get_blueprint(v->src->sm, &b);
    if (b.known != NULL && form != FORM_LFT && form != FORM_FDBS)
        return b.known;
    if (of == NULL || !blueprint)
        return live;
    answer_problem(r, 409, "%s",
                   b.known != NULL ? "tables are of the fabric as it is; leave out \"of\""
                                   : "there is no blueprint");
    return NULL;
}

static bool take_tables(struct request *r, struct view *v, struct export *x)
{
    const struct fabric_tables *t = view_tables(v);
    uint64_t line = x->form == FORM_LFT ? 70 : 32;
    if (t == NULL) {
        answer_problem(
            r, 404, "there are no tables in force; \"weft route compute --dump-lft\" writes computed ones");
        return false;
    }
    if ((uint64_t)t->num_switches * t->top_lid * line > TEXT_MAX) {
        answer_problem(
            r, 413,
            "the text would have about %llu MB, more than is made in memory; on the management node "
            "\"weftd --once --dump-subnet FOLDER\" writes it to files",
            (unsigned long long)t->num_switches * t->top_lid * line >> 20);
        return false;
    }
    x->t = tables_ref((struct fabric_tables *)t);
    return true;
}

static enum form form_of(const char *text)
{
    unsigned i = 0;
    while (strcmp(export_forms[i], text) != 0)
        i++;
    return (enum form)i;
}

void get_export(struct request *r)
{
    struct view *v = view_of(r);
    const struct fabric *f = v != NULL ? view_fabric(v) : NULL;
    if (v == NULL)
        return;
    if (f == NULL) {
        answer_problem(r, 503, "the fabric was not looked at yet");
        return;
    }
    if (!later_room(r, LATER_EXPORT))
        return;
    enum form form = form_of(query_str(r, "format"));
    if ((f = graph_of(r, v, f, form)) == NULL)
        return;
    struct export *x = xcalloc(1, sizeof(*x));
    *x = (struct export){
        .later = {.lane = LATER_EXPORT, .work = work, .answer = export_answer, .free = export_free},
        .f = fabric_ref(f),
        .form = form,
        .name = xstrdup(v->src->name),
        .match = query_str(r, "match") ? xstrdup(query_str(r, "match")) : NULL,
        .rail = (int)query_int(r, "rail", -1)};
    if ((x->form == FORM_LFT || x->form == FORM_FDBS) && !take_tables(r, v, x)) {
        export_free(&x->later);
        return;
    }
    later_start(r, &x->later);
}
