// SPDX-License-Identifier: Apache-2.0
// Repaired tables get lanes: those of the ideal wherever that can be, by sssp_mend.c. When the kept and
// re-homed entries fit no lanes, the ideal is given up for tables computed for the live fabric alone: still
// nothing but blueprint, ideal and live fabric decides.
#include "routing/repair_priv.h"

#include <stdio.h>
#include <string.h>

#include "lib/err.h"

static int anew(const struct route_base *b, const struct fabric *live, struct par *par,
                const struct err *cause, struct route_result *r, struct err *e)
{
    struct route_opts o = b->opts;
    struct route_result now;
    o.engine = ROUTE_SSSP;
    o.par = par;
    int rc = route_compute(live, &o, &now, e);
    if (rc)
        return rc;
    uint32_t lanes = now.tables->lanes->num_lanes;
    tables_unref(r->tables);
    *r = now;
    r->replaced = true;
    snprintf(r->why, sizeof(r->why), "computed anew for what is there, on %u virtual lane%s: %.120s", lanes,
             lanes == 1 ? "" : "s", cause->text);
    return 0;
}

int rrepair_lanes(const struct route_base *b, const struct fabric *live, struct par *par,
                  struct route_result *r, struct err *e)
{
    struct fabric_lanes *l;
    struct err cause = {0};
    int rc =
        rsssp_mend(b->f, b->ideal, live, r->tables, rsssp_lanes(live, &b->opts), &l, &r->lanes_moved, &cause);
    if (rc) {
        rc = anew(b, live, par, &cause, r, e);
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
