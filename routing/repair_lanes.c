// SPDX-License-Identifier: Apache-2.0
// Repaired tables get lanes: those of the ideal wherever that can be, by sssp_mend.c. When the kept and
// re-homed entries fit no lanes, the ideal is given up for tables computed for the live fabric alone; when
// these find too few lanes as well, for updn's, which needs one: a damaged fabric must not be left with
// tables over dead cables, and what has happened is said (`replaced`, `why`). Nothing but blueprint, ideal
// and live fabric decides.
#include "routing/repair_priv.h"

#include <stdio.h>
#include <string.h>

#include "lib/err.h"

static void replace(struct route_result *r, const struct route_result *now, const char *how,
                    const struct err *cause)
{
    unsigned lanes = now->tables->lanes ? now->tables->lanes->num_lanes : 1;
    tables_unref(r->tables);
    *r = *now;
    r->replaced = true;
    snprintf(r->why, sizeof(r->why), "%s, on %u virtual lane%s: %.120s", how, lanes, lanes == 1 ? "" : "s",
             cause->text);
}

static int anew(const struct route_base *b, const struct fabric *live, struct par *par,
                const struct err *cause, struct route_result *r, struct err *e)
{
    struct route_opts o = b->opts;
    struct route_result now;
    o.engine = ROUTE_SSSP;
    o.par = par;
    int rc = route_compute(live, &o, &now, e);
    if (rc == 0)
        replace(r, &now, "computed anew for what is there", cause);
    return rc;
}

static int by_updn(const struct route_base *b, const struct fabric *live, struct par *par,
                   const struct err *cause, struct route_result *r, struct err *e)
{
    struct route_opts o = b->opts;
    struct route_result ideal, now;
    o.engine = ROUTE_UPDN;
    o.par = par;
    int rc = route_compute(b->f, &o, &ideal, e);
    if (rc)
        return rc;
    rc = route_repair(b->f, &ideal, live, &o, &now, e);
    tables_unref(ideal.tables);
    if (rc == 0)
        replace(r, &now, "up*/down* while it is damaged so", cause);
    return rc;
}

int rrepair_lanes(const struct route_base *b, const struct fabric *live, const uint32_t *depth,
                  struct par *par, struct route_result *r, struct err *e)
{
    struct fabric_lanes *l;
    struct err cause = {0};
    int rc = rsssp_mend(b->f, b->ideal, live, depth, r->tables, rsssp_lanes(live, &b->opts), &l,
                        &r->lanes_moved, &cause);
    if (rc) {
        struct err again = {0};
        rc = anew(b, live, par, &cause, r, &again);
        if (rc)
            rc = by_updn(b, live, par, &again, r, e);
        if (rc)
            tables_unref(r->tables);
        return rc;
    }
    if (r->tables == b->ideal) {
        if (lanes_equal(l, b->ideal->lanes) && l->num_lanes == b->ideal->lanes->num_lanes) {
            lanes_unref(l);
            return 0;
        }
        tables_unref(r->tables);
        r->tables = tables_copy_for(b->ideal, live, live, b->ideal->top_lid);
        tables_seal(r->tables, false);
    }
    tables_set_lanes(r->tables, l);
    return 0;
}
