// SPDX-License-Identifier: Apache-2.0
// The blueprint: the fabric as it is meant to be, learnt from the largest one seen, kept in the database as
// ibnetdiscover text under a line that tells its size. It outlives failures: what is missing now was there
// once. Made by a worker, since a large fabric's text is megabytes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/writer.h"
#include "lib/xalloc.h"
#include "sm/sm_priv.h"

#define HEAD "# blueprint nodes %u links %u\n"

struct sm_blueprint_job {
    struct pool_job job;
    struct sm *sm;
    const struct fabric *fabric;
    char *text;
    size_t len;
};

static void work(void *arg, struct par *par)
{
    struct sm_blueprint_job *j = arg;
    FILE *f = open_memstream(&j->text, &j->len);
    (void)par;
    if (f == NULL)
        return;
    fprintf(f, HEAD, j->fabric->num_nodes, j->fabric->num_links);
    int rc = write_ibnetdiscover(j->fabric, f);
    if (fclose(f) != 0 || rc != 0)
        j->len = 0;
}

void sm_blueprint_free(struct sm *sm)
{
    struct sm_blueprint_job *j = sm->blueprint.job;
    if (j == NULL)
        return;
    fabric_unref(j->fabric);
    free(j->text);
    free(j);
    sm->blueprint.job = NULL;
}

static void done(void *arg)
{
    struct sm_blueprint_job *j = arg;
    struct sm *sm = j->sm;
    if (j->len > 0)
        db_blob_put(sm->db, sm->o.fabric, "blueprint", j->text, j->len, NULL, NULL);
    sm_blueprint_free(sm);
}

void sm_blueprint_load(struct sm *sm)
{
    void *p = NULL;
    size_t n = 0;
    if (sm->db == NULL || db_blob_get(sm->db, sm->o.fabric, "blueprint", &p, &n) != 0)
        return;
    char *head = strndup(p, n < 80 ? n : 80);
    unsigned nodes, links;
    if (head != NULL && sscanf(head, HEAD, &nodes, &links) == 2) {
        sm->blueprint.nodes = nodes;
        sm->blueprint.links = links;
    }
    free(head);
    free(p);
}

void sm_blueprint_learn(struct sm *sm)
{
    const struct fabric *f = sm->fabric;
    bool grown = f->num_nodes > sm->blueprint.nodes || f->num_links > sm->blueprint.links;
    bool shrunk = f->num_nodes < sm->blueprint.nodes || f->num_links < sm->blueprint.links;
    if (sm->db == NULL || !grown || shrunk || sm->blueprint.job != NULL)
        return;
    struct sm_blueprint_job *j = xcalloc(1, sizeof(*j));
    j->sm = sm;
    j->fabric = fabric_ref(f);
    j->job = (struct pool_job){.work = work, .done = done, .arg = j};
    sm->blueprint.job = j;
    sm->blueprint.nodes = f->num_nodes;
    sm->blueprint.links = f->num_links;
    pool_submit(sm->pool, &j->job);
}
