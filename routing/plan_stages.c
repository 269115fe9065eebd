// SPDX-License-Identifier: Apache-2.0
// Plans in two stages, for changes that no single order of writing makes safe. When the order of switches is
// another one (a switch near its top has died, or is drained), turns that packets to switches' own LIDs make
// over a foot of the tree and those that hosts' packets made so far may close a cycle together, though hosts'
// packets make none with their own new ways. So first only what leads to end nodes is written, and what leads
// to switches themselves stays as it was; then the latter. Each stage is a plan of its own with its own
// proof, and each is taken only where it drops nothing that leads to an end node.
#include "routing/plan_priv.h"

static bool is_end_lid(const struct fabric *f, uint32_t lid)
{
    uint32_t end = lid <= f->top_lid ? f->lid_port[lid] : ID_NONE;
    return end != ID_NONE && f->node[f->port[end].node.i].type != NODE_SWITCH;
}

// Whether the plan's first wave takes away what leads to end nodes and is there before and after.
static bool drops_ends(const struct fabric *f, const struct route_plan *plan, const struct fabric_tables *old,
                       const struct fabric_tables *now)
{
    const struct route_wave *w = &plan->wave[0];
    if (plan->dropped_dests == 0)
        return false;
    for (uint32_t i = 0; i < w->num_blocks; i++) {
        uint32_t s = w->block[i].sw, first = w->block[i].block * LFT_BLOCK;
        for (uint32_t lid = first; lid < first + LFT_BLOCK; lid++) {
            if (tables_port(w->tables, s, (uint16_t)lid) == LFT_DROP &&
                tables_port(old, s, (uint16_t)lid) != LFT_DROP &&
                tables_port(now, s, (uint16_t)lid) != LFT_DROP && is_end_lid(f, lid))
                return true;
        }
    }
    return false;
}

static bool all_known(const struct fabric *f, const bool *known, const bool *blank)
{
    for (uint32_t s = 0; s < f->num_switches; s++) {
        if ((known && !known[s]) || (blank && blank[s]))
            return false;
    }
    return true;
}

// The new tables with the old entries for all but end nodes.
static struct fabric_tables *middle(const struct fabric *f, const struct fabric_tables *old,
                                    const struct fabric_tables *new_tables)
{
    struct fabric_tables *t = tables_copy_for(new_tables, f, f, new_tables->top_lid);
    for (uint32_t s = 0; s < f->num_switches; s++) {
        uint8_t *row = tables_row(t, s);
        for (uint32_t lid = 1; lid < t->lids && lid < old->lids; lid++) {
            if (!is_end_lid(f, lid))
                row[lid] = tables_port(old, s, (uint16_t)lid);
        }
    }
    tables_seal(t, false);
    return t;
}

static void add_waves(const struct fabric *f, struct arena *a, const struct route_plan *from,
                      struct route_plan *to)
{
    for (uint32_t i = 0; i < from->num_waves; i++) {
        const struct route_wave *w = &from->wave[i];
        to->wave[to->num_waves++] = (struct route_wave){
            .num_blocks = w->num_blocks,
            .block = arena_memdup(a, w->block, w->num_blocks * sizeof(*w->block)),
            .first = arena_memdup(a, w->first, (f->num_switches + 1u) * sizeof(*w->first)),
            .of_switch = arena_memdup(a, w->of_switch, w->num_blocks * sizeof(*w->of_switch)),
            .tables = tables_ref(w->tables),
        };
    }
}

static struct route_plan *join(const struct fabric *f, const struct route_plan *whole,
                               const struct route_plan *first, const struct route_plan *then)
{
    struct arena *a = arena_new();
    struct plan_box *box = ARENA_NEW(a, struct plan_box);
    box->a = a;
    box->plan.entries = whole->entries;
    box->plan.drops = first->drops;
    box->plan.unsafe_dests = first->unsafe_dests + then->unsafe_dests;
    box->plan.dropped_dests = first->dropped_dests + then->dropped_dests;
    add_waves(f, a, first, &box->plan);
    add_waves(f, a, then, &box->plan);
    return &box->plan;
}

int route_plan_staged(const struct fabric *f, const struct fabric_tables *old, const bool *known,
                      const bool *blank, const struct fabric_tables *new_tables,
                      const struct route_proof_state *state, struct par *par, struct route_plan **ret,
                      struct err *e)
{
    struct route_plan *whole, *first = NULL, *then = NULL;
    int rc = route_plan_proved(f, old, known, blank, new_tables, state, par, &whole, e);
    if (rc)
        return rc;
    *ret = whole;
    if (!drops_ends(f, whole, old, new_tables) || old->lanes || new_tables->lanes ||
        !all_known(f, known, blank))
        return 0;
    struct fabric_tables *t = middle(f, old, new_tables);
    if (route_plan_make(f, old, NULL, NULL, t, par, &first, e) == 0 && !drops_ends(f, first, old, t) &&
        route_plan_proved(f, t, NULL, NULL, new_tables, state, par, &then, e) == 0 &&
        !drops_ends(f, then, t, new_tables) && first->num_waves + then->num_waves <= ROUTE_WAVES_MAX) {
        *ret = join(f, whole, first, then);
        route_plan_free(whole);
    }
    route_plan_free(first);
    route_plan_free(then);
    tables_unref(t);
    return 0;
}
