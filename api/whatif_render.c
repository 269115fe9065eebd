// SPDX-License-Identifier: Apache-2.0
// The answer to one question: as JSON, and in words.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/quality.h"
#include "api/whatif_priv.h"

#define CUT_OFF_SHOWN 20
#define SINGLES_SHOWN 10

// --- rows ---

#define ASKED(f) offsetof(struct whatif_asked, f)
static const struct field asked_fields[] = {
    {.name = "failed_nodes", .type = FIELD_INT, .at = ASKED(failed_nodes), "nodes that fail"},
    {.name = "failed_links", .type = FIELD_INT, .at = ASKED(failed_links), "cables that fail, theirs too"},
    {.name = "drained_links", .type = FIELD_INT, .at = ASKED(drained_links), "cables that are drained"},
    {.name = "added_nodes", .type = FIELD_INT, .at = ASKED(added_nodes), "nodes that are added"},
    {.name = "added_links", .type = FIELD_INT, .at = ASKED(added_links), "cables that are added"},
    {.name = "ends_not_added",
     .type = FIELD_INT,
     .at = ASKED(ends_not_added),
     "adapters on switches that were copied alone, without these"},
    {0},
};
static const struct schema schema_asked = {
    .name = "whatif_asked", "What was asked for", sizeof(struct whatif_asked), asked_fields};

struct lost_row {
    uint64_t guid;
    const char *name, *was_on;
    int64_t port;
};
#define LOST(f) offsetof(struct lost_row, f)
static const struct field lost_fields[] = {
    {.name = "name", .type = FIELD_STR, .at = LOST(name), "NodeDescription"},
    {.name = "guid", .type = FIELD_GUID, .at = LOST(guid), "NodeGUID"},
    {.name = "port", .type = FIELD_INT, .at = LOST(port), "its port"},
    {.name = "was_on",
     .type = FIELD_STR,
     .at = LOST(was_on),
     "the switch that it is cabled to",
     .null = true},
    {0},
};
static const struct schema schema_lost = {
    .name = "whatif_cut_off", "A port that is cut off", sizeof(struct lost_row), lost_fields};

struct reach_row {
    int64_t ends_before, ends_after, pairs_before, pairs_after, ends_cut_off, switches_cut_off, hosts_touched,
        hosts_cut_off;
    struct items cut_off;
};
#define REACH(f) offsetof(struct reach_row, f)
static const struct field reach_fields[] = {
    {.name = "ends_before",
     .type = FIELD_INT,
     .at = REACH(ends_before),
     "ports of adapters and routers with a cable"},
    {.name = "ends_after", .type = FIELD_INT, .at = REACH(ends_after), "the same afterwards"},
    {.name = "pairs_before",
     .type = FIELD_INT,
     .at = REACH(pairs_before),
     "ordered pairs of these that cables join"},
    {.name = "pairs_after", .type = FIELD_INT, .at = REACH(pairs_after), "the same afterwards"},
    {.name = "ends_cut_off",
     .type = FIELD_INT,
     .at = REACH(ends_cut_off),
     "of these, ports that are cut off from most of the others; what itself fails does not count"},
    {.name = "switches_cut_off", .type = FIELD_INT, .at = REACH(switches_cut_off), "switches that are"},
    {.name = "hosts_touched", .type = FIELD_INT, .at = REACH(hosts_touched), "hosts with such a port"},
    {.name = "hosts_cut_off",
     .type = FIELD_INT,
     .at = REACH(hosts_cut_off),
     "hosts of which no other port is left"},
    {.name = "cut_off",
     .type = FIELD_LIST,
     .at = REACH(cut_off),
     "the first 20 such ports, by name",
     &schema_lost},
    {0},
};
static const struct schema schema_reach = {
    .name = "whatif_reach", "Whom cables still join", sizeof(struct reach_row), reach_fields};

#define CHANGE(f) offsetof(struct whatif_changed, f)
static const struct field change_fields[] = {
    {.name = "entries", .type = FIELD_INT, .at = CHANGE(entries), "table entries that change"},
    {.name = "blocks", .type = FIELD_INT, .at = CHANGE(blocks), "blocks of 64 entries with such"},
    {.name = "switches", .type = FIELD_INT, .at = CHANGE(switches), "switches with such"},
    {.name = "paths",
     .type = FIELD_INT,
     .at = CHANGE(paths),
     "pairs of a leaf switch and a destination whose way is another one"},
    {.name = "waves", .type = FIELD_INT, .at = CHANGE(waves), "waves in which that is written"},
    {.name = "mads",
     .type = FIELD_INT,
     .at = CHANGE(mads),
     "datagrams that write it: a block may change twice"},
    {0},
};
static const struct schema schema_change_to = {
    .name = "whatif_changed", "What would be written", sizeof(struct whatif_changed), change_fields};

#define SIDE(f) offsetof(struct whatif_side_row, f)
static const struct field side_fields[] = {
    {.name = "engine", .type = FIELD_STR, .at = SIDE(engine), "what made the tables"},
    {.name = "why", .type = FIELD_STR, .at = SIDE(why), "in words", .null = true},
    {.name = "seconds",
     .type = FIELD_NUM,
     .at = SIDE(seconds),
     "time of computing them; null where they were there",
     .null = true},
    {.name = "verify", .type = FIELD_OBJ, .at = SIDE(verify), "the proof", &schema_verify, .null = true},
    {.name = "quality",
     .type = FIELD_RAW,
     .at = SIDE(quality),
     "how well they spread traffic",
     &schema_quality},
    {.name = "changed",
     .type = FIELD_OBJ,
     .at = SIDE(changed),
     "against what is before",
     &schema_change_to,
     .null = true},
    {0},
};
static const struct schema schema_side = {
    .name = "whatif_side", "Tables of one moment", sizeof(struct whatif_side_row), side_fields};

#define DRAINED(f) offsetof(struct whatif_drained, f)
static const struct field drained_fields[] = {
    {.name = "links",
     .type = FIELD_INT,
     .at = DRAINED(links),
     "cables between switches that are drained, those in force too"},
    {.name = "spared", .type = FIELD_INT, .at = DRAINED(spared), "over which nothing goes any more"},
    {.name = "own",
     .type = FIELD_INT,
     .at = DRAINED(own),
     "that carry only what begins or ends on the switch at one end, or on what hangs on it alone"},
    {.name = "carry_on",
     .type = FIELD_INT,
     .at = DRAINED(carry_on),
     "that carry on, as there is no other way"},
    {.name = "ends_in_vain",
     .type = FIELD_INT,
     .at = DRAINED(ends_in_vain),
     "ports of adapters that have no other way than what is asked to be drained: pulling it cuts them off"},
    {.name = "in_vain",
     .type = FIELD_LIST,
     .at = DRAINED(in_vain),
     "the first 20 of these, by name",
     &schema_lost},
    {0},
};
static const struct schema schema_drained = {
    .name = "whatif_drained", "Drained cables", sizeof(struct whatif_drained), drained_fields};

struct single_row {
    uint64_t guid, to_guid;
    const char *kind, *name, *to;
    int64_t port, to_port, ends;
};
#define SINGLE(f) offsetof(struct single_row, f)
static const char *const single_kinds[] = {"switch", "link", NULL};
static const struct field single_fields[] = {
    {.name = "kind", .type = FIELD_STR, .at = SINGLE(kind), "what it is", .name_of = single_kinds},
    {.name = "name", .type = FIELD_STR, .at = SINGLE(name), "the switch, or that at one end"},
    {.name = "guid", .type = FIELD_GUID, .at = SINGLE(guid), "its NodeGUID"},
    {.name = "port", .type = FIELD_INT, .at = SINGLE(port), "of a cable: its port", .null = true},
    {.name = "to", .type = FIELD_STR, .at = SINGLE(to), "of a cable: the other switch", .null = true},
    {.name = "to_guid", .type = FIELD_GUID, .at = SINGLE(to_guid), "its NodeGUID", .null = true},
    {.name = "to_port", .type = FIELD_INT, .at = SINGLE(to_port), "its port", .null = true},
    {.name = "ends", .type = FIELD_INT, .at = SINGLE(ends), "ports of adapters that its loss would cut off"},
    {0},
};
static const struct schema schema_single = {
    .name = "whatif_single", "What must not fail too", sizeof(struct single_row), single_fields};

struct singles_row {
    int64_t before, after;
    struct items worst;
};
#define SINGLES(f) offsetof(struct singles_row, f)
static const struct field singles_fields[] = {
    {.name = "before", .type = FIELD_INT, .at = SINGLES(before), "how many there are before"},
    {.name = "after", .type = FIELD_INT, .at = SINGLES(after), "how many there are afterwards"},
    {.name = "worst",
     .type = FIELD_LIST,
     .at = SINGLES(worst),
     "the worst of these, at most 10",
     &schema_single},
    {0},
};
static const struct schema schema_singles = {.name = "whatif_singles",
                                             "Switches, and cables between switches, of which one failure "
                                             "more would cut off adapters that do not hang on it",
                                             sizeof(struct singles_row),
                                             singles_fields};

#define MEAN(f) offsetof(struct whatif_mean, f)
static const struct field mean_fields[] = {
    {.name = "pattern", .type = FIELD_STR, .at = MEAN(pattern), "its name in quality"},
    {.name = "before",
     .type = FIELD_NUM,
     .at = MEAN(before),
     "mean before; null where there is no such pattern",
     .null = true},
    {.name = "after", .type = FIELD_NUM, .at = MEAN(after), "mean afterwards", .null = true},
    {.name = "accepted", .type = FIELD_NUM, .at = MEAN(accepted), "mean once accepted", .null = true},
    {.name = "failed",
     .type = FIELD_INT,
     .at = MEAN(failed),
     "flows that do not arrive afterwards, those of ends that are cut off too"},
    {0},
};
static const struct schema schema_mean = {
    .name = "whatif_mean",
    "Mean bandwidth over the same flows before and afterwards: what fails counts as 0",
    sizeof(struct whatif_mean),
    mean_fields};

struct whatif_row {
    const char *verdict, *text, *ideal;
    double seconds;
    const struct whatif_asked *asked;
    const struct reach_row *reach;
    const struct whatif_drained *drained;
    const struct whatif_side_row *before, *after, *accepted;
    const struct singles_row *singles;
    struct items bandwidth;
};
#define WHATIF(f) offsetof(struct whatif_row, f)
static const char *const verdicts[] = {"safe", "cuts-off", "not-proved", "drained-in-vain", NULL};
static const struct field whatif_fields[] = {
    {.name = "verdict",
     .type = FIELD_STR,
     .at = WHATIF(verdict),
     "safe: everybody else stays reachable, proved; drained-in-vain: but not once what is drained is pulled",
     .name_of = verdicts},
    {.name = "text", .type = FIELD_STR, .at = WHATIF(text), "the same in words, with the bandwidth"},
    {.name = "asked", .type = FIELD_OBJ, .at = WHATIF(asked), "what was asked for", &schema_asked},
    {.name = "reach", .type = FIELD_OBJ, .at = WHATIF(reach), "whom cables still join", &schema_reach},
    {.name = "drained",
     .type = FIELD_OBJ,
     .at = WHATIF(drained),
     "what drained cables still carry; null when none is",
     &schema_drained,
     .null = true},
    {.name = "before", .type = FIELD_OBJ, .at = WHATIF(before), "tables in force, or computed", &schema_side},
    {.name = "after",
     .type = FIELD_OBJ,
     .at = WHATIF(after),
     "what the manager would come to when it finds the fabric so",
     &schema_side},
    {.name = "accepted",
     .type = FIELD_OBJ,
     .at = WHATIF(accepted),
     "with additions: what comes of taking them into the blueprint and computing anew",
     &schema_side,
     .null = true},
    {.name = "ideal",
     .type = FIELD_RAW,
     .at = WHATIF(ideal),
     "of the ideal tables, with all of the blueprint there",
     &schema_quality},
    {.name = "singles", .type = FIELD_OBJ, .at = WHATIF(singles), "what must not fail too", &schema_singles},
    {.name = "bandwidth",
     .type = FIELD_LIST,
     .at = WHATIF(bandwidth),
     "what patterns get, over the same flows",
     &schema_mean},
    {.name = "seconds", .type = FIELD_NUM, .at = WHATIF(seconds), "time of all this"},
    {0},
};
const struct schema schema_whatif = {
    .name = "whatif", "What would become of a fabric", sizeof(struct whatif_row), whatif_fields};

// --- in words ---

// Adapters on nothing but what is drained.
static void say_in_vain(const struct whatif *w, struct buf *b)
{
    bool one = w->in_vain.num_end == 1;
    quality_say_count(b, w->in_vain.num_end);
    buf_printf(b, " %s no other way; pulling these cables cuts %s off", one ? "end has" : "ends have",
               one ? "it" : "them");
}

// Whether the port that weft manages the fabric by is among what fails. Not of saved fabrics.
static bool manager_lost(const struct whatif *w)
{
    port_id own = w->base.f->sm_port;
    if (w->base.computed || !port_valid(own) || !port_valid(fabric_port(w->base.f, own)->peer))
        return false;
    return w->edit.dead[fabric_port(w->base.f, own)->node.i] || !port_valid(fabric_port(w->after, own)->peer);
}

static void say_reach(const struct whatif *w, struct buf *b)
{
    const struct reach_change *r = &w->reach;
    if (manager_lost(w))
        buf_puts(b, "weft loses its own port into the fabric and repairs nothing from then on; beside that ");
    if (w->after_side.proof.unreached > 0 || !w->after_side.proof.ok)
        buf_printf(b, "the tables would not hold (%s); ", w->after_side.proof.counter_example);
    if (r->num_end == 0 && r->num_sw == 0) {
        if (w->in_vain.num_end > 0)
            say_in_vain(w, b);
        else
            buf_puts(b,
                     w->edit.num_dead > 0 ? "everybody else stays reachable" : "every host stays reachable");
        return;
    }
    buf_puts(b, "cuts off ");
    if (r->num_end > 0)
        buf_printf(b, "%u adapter port%s of %u host%s (%u wholly)", r->num_end, r->num_end == 1 ? "" : "s",
                   r->hosts_touched, r->hosts_touched == 1 ? "" : "s", r->hosts_lost);
    if (r->num_sw > 0)
        buf_printf(b, "%s%u switch%s", r->num_end > 0 ? " and " : "", r->num_sw, r->num_sw == 1 ? "" : "es");
    if (r->num_end > 0 && r->pairs_before > r->pairs_after) {
        buf_puts(b, "; ");
        quality_say_count(b, r->pairs_before - r->pairs_after);
        buf_puts(b, " pairs no longer reach each other");
    }
    if (w->in_vain.num_end > 0) {
        buf_puts(b, "; drained in vain: ");
        say_in_vain(w, b);
    }
}

static bool say_mean(struct buf *b, const char *name, const struct whatif_mean *m, bool first)
{
    if (isnan(m->before) || isnan(m->after))
        return false;
    buf_printf(b, "%s%s %.3f -> %.3f", first ? "; mean bandwidth of " : ", ", name, m->before, m->after);
    if (!isnan(m->accepted))
        buf_printf(b, " (accepted %.3f)", m->accepted);
    return true;
}

static char *in_words(const struct whatif *w)
{
    struct buf b = {0};
    say_reach(w, &b);
    bool said = say_mean(&b, "same-rail shifts", &w->mean[0], true);
    said = said || say_mean(&b, "shifts", &w->mean[3], true);
    say_mean(&b, "all-to-all", &w->mean[5], !said);
    return buf_take(&b);
}

static const char *verdict(const struct whatif *w)
{
    const struct route_proof *p = &w->after_side.proof;
    bool proved = p->ok && p->unreached == 0;
    if (w->accepted_side.r.tables != NULL)
        proved &= w->accepted_side.proof.ok && w->accepted_side.proof.unreached == 0;
    if (!proved)
        return verdicts[2];
    if (w->reach.num_end > 0 || w->reach.num_sw > 0 || manager_lost(w))
        return verdicts[1];
    return verdicts[w->in_vain.num_end > 0 ? 3 : 0];
}

// --- lists ---

static int by_name(const void *a, const void *b, void *arg)
{
    const struct fabric *f = arg;
    const struct port *x = &f->port[*(const uint32_t *)a], *y = &f->port[*(const uint32_t *)b];
    int c = strverscmp(fabric_desc(f, fabric_node(f, x->node)), fabric_desc(f, fabric_node(f, y->node)));
    if (c == 0)
        c = (f->node[x->node.i].guid > f->node[y->node.i].guid) -
            (f->node[x->node.i].guid < f->node[y->node.i].guid);
    return c ? c : (x->num > y->num) - (x->num < y->num);
}

static struct items list_lost(const struct fabric *f, struct reach_change *r,
                              struct lost_row row[CUT_OFF_SHOWN])
{
    uint32_t n = r->num_end < CUT_OFF_SHOWN ? r->num_end : CUT_OFF_SHOWN;
    if (n > 0)
        qsort_r(r->end, r->num_end, sizeof(*r->end), by_name, (void *)f);
    for (uint32_t i = 0; i < n; i++) {
        const struct port *p = &f->port[r->end[i]];
        const struct node *nd = fabric_node(f, p->node), *on = fabric_peer_node(f, p);
        row[i] = (struct lost_row){.guid = nd->guid,
                                   .name = fabric_desc(f, nd),
                                   .was_on = on != NULL ? fabric_desc(f, on) : NULL,
                                   .port = p->num};
    }
    return (struct items){row, n};
}

static uint32_t list_singles(const struct fabric *f, struct single_row row[SINGLES_SHOWN], uint32_t *ret_n)
{
    struct reach_single s[SINGLES_SHOWN];
    uint32_t total = reach_singles(f, s, SINGLES_SHOWN), n = total < SINGLES_SHOWN ? total : SINGLES_SHOWN;
    for (uint32_t i = 0; i < n; i++) {
        const struct node *nd = &f->node[s[i].node];
        row[i] = (struct single_row){.guid = nd->guid,
                                     .kind = single_kinds[s[i].port != 0],
                                     .name = fabric_desc(f, nd),
                                     .port = s[i].port ? s[i].port : NO_INT,
                                     .to_port = NO_INT,
                                     .ends = s[i].ends};
        if (s[i].port == 0)
            continue;
        const struct port *far = fabric_port(f, f->port[nd->first_port + s[i].port].peer);
        row[i].to = fabric_desc(f, fabric_node(f, far->node));
        row[i].to_guid = fabric_node(f, far->node)->guid;
        row[i].to_port = far->num;
    }
    *ret_n = n;
    return total;
}

void whatif_render(struct whatif *w, double seconds)
{
    struct lost_row lost[CUT_OFF_SHOWN], vain[CUT_OFF_SHOWN];
    struct single_row single[SINGLES_SHOWN];
    uint32_t singles;
    const struct reach_change *r = &w->reach;
    struct reach_row reach = {.ends_before = r->ends_before,
                              .ends_after = r->ends_after,
                              .pairs_before = (int64_t)r->pairs_before,
                              .pairs_after = (int64_t)r->pairs_after,
                              .ends_cut_off = r->num_end,
                              .switches_cut_off = r->num_sw,
                              .hosts_touched = r->hosts_touched,
                              .hosts_cut_off = r->hosts_lost,
                              .cut_off = list_lost(w->base.f, &w->reach, lost)};
    struct singles_row s = {.before = reach_singles(w->base.f, NULL, 0),
                            .after = list_singles(w->after, single, &singles)};
    s.worst = (struct items){single, singles};
    w->drained_row.in_vain = list_lost(w->after, &w->in_vain, vain);
    char *text = in_words(w);
    json_put_struct(&w->c->result, &schema_whatif,
                    &(struct whatif_row){
                        .verdict = verdict(w),
                        .text = text,
                        .asked = &w->asked,
                        .reach = &reach,
                        .drained = w->drained != NULL ? &w->drained_row : NULL,
                        .before = &w->before_side.row,
                        .after = &w->after_side.row,
                        .accepted = w->accepted_side.r.tables != NULL ? &w->accepted_side.row : NULL,
                        .ideal = w->ideal.data != NULL ? w->ideal.data : w->before_side.quality.data,
                        .singles = &s,
                        .bandwidth = {w->mean, WHATIF_MEANS},
                        .seconds = seconds,
                    });
    free(text);
}
