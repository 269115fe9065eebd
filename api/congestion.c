// SPDX-License-Identifier: Apache-2.0
// Congestion as it is now: trees of waiting ports, worst first, each with its root, its levels and its
// members; and how waits are spread over rails and scalable units.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/facts.h"
#include "lib/guid.h"
#include "lib/xalloc.h"

#define MEMBERS_MAX 200 // of one tree in an answer
#define TREES_MAX 200
#define MEMBERS_ALL 2000 // of all trees: the answer is made at one go
#define PORTS_A_LOOK 128

// --- rows ---

static const char *const tree_kinds[] = {"slow-link", "receiver", "incast",  "oversubscribed",
                                         "imbalance", "deadlock", "unclear", NULL};

struct level_row {
    const char *from, *to;
    int64_t depth, ports, victims;
    double held_min, held_max, used_min, used_max;
};
#define LEVEL(f) offsetof(struct level_row, f)
static const struct field level_fields[] = {
    {.name = "depth", .type = FIELD_INT, .at = LEVEL(depth), "hops from the root; 0: the root itself"},
    {.name = "from", .type = FIELD_STR, .at = LEVEL(from), "who waits"},
    {.name = "to", .type = FIELD_STR, .at = LEVEL(to), "to send to whom"},
    {.name = "ports", .type = FIELD_INT, .at = LEVEL(ports), "ports that wait there"},
    {.name = "victims",
     .type = FIELD_INT,
     .at = LEVEL(victims),
     "those of them that may have nothing to do with the root"},
    {.name = "held_min", .type = FIELD_NUM, .at = LEVEL(held_min), "least share of time held", .null = true},
    {.name = "held_max", .type = FIELD_NUM, .at = LEVEL(held_max), "greatest", .null = true},
    {.name = "used_min", .type = FIELD_NUM, .at = LEVEL(used_min), "least share in use", .null = true},
    {.name = "used_max", .type = FIELD_NUM, .at = LEVEL(used_max), "greatest", .null = true},
    {0},
};
static const struct schema schema_level = {
    .name = "congestion_level", "Waiting ports so far from the root", sizeof(struct level_row), level_fields};

struct member_row {
    struct spot spot;
    int64_t depth;
    double held, used, lost_bps;
    bool victim;
};
#define MEMBER(f) offsetof(struct member_row, f)
static const struct field member_fields[] = {
    SPOT_FIELDS,
    {.name = "depth", .type = FIELD_INT, .at = MEMBER(depth), "hops from the root"},
    {.name = "held", .type = FIELD_NUM, .at = MEMBER(held), "share of time held", .null = true},
    {.name = "used", .type = FIELD_NUM, .at = MEMBER(used), "share in use", .null = true},
    {.name = "lost_bps", .type = FIELD_NUM, .at = MEMBER(lost_bps), "bytes a second lost", .null = true},
    {.name = "victim",
     .type = FIELD_BOOL,
     .at = MEMBER(victim),
     "none of its traffic need go to the root: it may only be in the way"},
    {0},
};
static const struct schema schema_member = {
    .name = "congestion_member", "A port that waits", sizeof(struct member_row), member_fields};

static const struct field root_fields[] = {SPOT_FIELDS, {0}};
static const struct schema schema_root = {
    .name = "congestion_port", "A port, out of which traffic does not get", sizeof(struct spot), root_fields};

struct tree_row {
    int64_t id, since, members_in_all, waiting, victims, switches, adapters, alarm;
    const char *kind, *title, *text, *advice, *command;
    const struct spot *root, *second_root;
    bool seen, root_read;
    double held, used, siblings_used, lost_bps, share, explained;
    struct items levels, members, cycle;
};
#define TREE(f) offsetof(struct tree_row, f)
static const struct field tree_fields[] = {
    {.name = "id", .type = FIELD_INT, .at = TREE(id), "stays while the tree lives"},
    {.name = "kind", .type = FIELD_STR, .at = TREE(kind), "what it is", .name_of = tree_kinds},
    {.name = "title", .type = FIELD_STR, .at = TREE(title), "the same for people"},
    {.name = "text", .type = FIELD_STR, .at = TREE(text), "one line for people"},
    {.name = "advice", .type = FIELD_STR, .at = TREE(advice), "what to do"},
    {.name = "command", .type = FIELD_STR, .at = TREE(command), "where to look", .null = true},
    {.name = "root", .type = FIELD_OBJ, .at = TREE(root), "the port that everybody waits for", &schema_root},
    {.name = "second_root",
     .type = FIELD_OBJ,
     .at = TREE(second_root),
     "the next likely one, where it is unclear",
     &schema_root,
     .null = true},
    {.name = "since", .type = FIELD_TIME, .at = TREE(since), "when it was seen first", .null = true},
    {.name = "seen",
     .type = FIELD_BOOL,
     .at = TREE(seen),
     "in the last sweep; false: it may be over, and shows what it was"},
    {.name = "root_read",
     .type = FIELD_BOOL,
     .at = TREE(root_read),
     "the root's own counters were read; false: its neighbours tell of it"},
    {.name = "held", .type = FIELD_NUM, .at = TREE(held), "share of time the root is held", .null = true},
    {.name = "used", .type = FIELD_NUM, .at = TREE(used), "share of the root in use", .null = true},
    {.name = "siblings_used",
     .type = FIELD_NUM,
     .at = TREE(siblings_used),
     "the same of cables that could carry the same, on average",
     .null = true},
    {.name = "lost_bps",
     .type = FIELD_NUM,
     .at = TREE(lost_bps),
     "bytes a second lost, of the ports that wait for the root; its own where it alone waits"},
    {.name = "waiting", .type = FIELD_INT, .at = TREE(waiting), "ports that wait for the root, without it"},
    {.name = "share", .type = FIELD_NUM, .at = TREE(share), "of all that is lost in the fabric now"},
    {.name = "explained",
     .type = FIELD_NUM,
     .at = TREE(explained),
     "share of its members' waits that the root explains"},
    {.name = "levels",
     .type = FIELD_LIST,
     .at = TREE(levels),
     "who waits, by distance from the root",
     &schema_level},
    {.name = "members_in_all", .type = FIELD_INT, .at = TREE(members_in_all), "ports that wait"},
    {.name = "victims", .type = FIELD_INT, .at = TREE(victims), "those that may only be in the way"},
    {.name = "switches", .type = FIELD_INT, .at = TREE(switches), "switches that they are of"},
    {.name = "adapters", .type = FIELD_INT, .at = TREE(adapters), "adapters that may be held up"},
    {.name = "members",
     .type = FIELD_LIST,
     .at = TREE(members),
     "ports that wait, nearest to the root first; 200 at most",
     &schema_member},
    {.name = "cycle",
     .type = FIELD_LIST,
     .at = TREE(cycle),
     "deadlock: ports that wait for each other",
     &schema_root},
    {.name = "alarm", .type = FIELD_INT, .at = TREE(alarm), "id of the alarm about it", .null = true},
    {0},
};
static const struct schema schema_tree = {
    .name = "congestion_tree", "Ports that wait for one port", sizeof(struct tree_row), tree_fields};

struct part_row {
    int64_t number, ports, held;
    double mean_used, max_used, mean_held, max_held, lost_bps, imbalance;
};
#define PART(f) offsetof(struct part_row, f)
static const struct field part_fields[] = {
    {.name = "number", .type = FIELD_INT, .at = PART(number), "of the rail or scalable unit"},
    {.name = "ports", .type = FIELD_INT, .at = PART(ports), "its ports"},
    {.name = "held", .type = FIELD_INT, .at = PART(held), "those that are held"},
    {.name = "mean_used", .type = FIELD_NUM, .at = PART(mean_used), "share in use", .null = true},
    {.name = "max_used", .type = FIELD_NUM, .at = PART(max_used), "of the fullest port", .null = true},
    {.name = "mean_held", .type = FIELD_NUM, .at = PART(mean_held), "share of time held", .null = true},
    {.name = "max_held", .type = FIELD_NUM, .at = PART(max_held), "of the worst port", .null = true},
    {.name = "lost_bps", .type = FIELD_NUM, .at = PART(lost_bps), "bytes a second lost", .null = true},
    {.name = "imbalance",
     .type = FIELD_NUM,
     .at = PART(imbalance),
     "use of the fullest cable between switches over their mean; 1: even",
     .null = true},
    {0},
};
static const struct schema schema_part = {
    .name = "congestion_part", "A rail or a scalable unit", sizeof(struct part_row), part_fields};

struct congestion_row {
    int64_t sampled_at, held, unread, ports, trees_in_all;
    bool complete;
    double lost_bps;
    struct items trees, rails, sus;
};
#define CONGESTION(f) offsetof(struct congestion_row, f)
static const struct field congestion_fields[] = {
    {.name = "sampled_at",
     .type = FIELD_TIME,
     .at = CONGESTION(sampled_at),
     "end of the sweep that it is of; shorter bursts show only in totals",
     .null = true},
    {.name = "complete", .type = FIELD_BOOL, .at = CONGESTION(complete), "all ports were read"},
    {.name = "ports", .type = FIELD_INT, .at = CONGESTION(ports), "ports in all"},
    {.name = "unread", .type = FIELD_INT, .at = CONGESTION(unread), "ports that were not read"},
    {.name = "held", .type = FIELD_INT, .at = CONGESTION(held), "ports that are held"},
    {.name = "lost_bps", .type = FIELD_NUM, .at = CONGESTION(lost_bps), "bytes a second lost in all"},
    {.name = "trees_in_all",
     .type = FIELD_INT,
     .at = CONGESTION(trees_in_all),
     "also those left out by focus"},
    {.name = "trees",
     .type = FIELD_LIST,
     .at = CONGESTION(trees),
     "those with an alarm, then the others; most lost bandwidth first",
     &schema_tree},
    {.name = "rails", .type = FIELD_LIST, .at = CONGESTION(rails), "rails beside each other", &schema_part},
    {.name = "sus",
     .type = FIELD_LIST,
     .at = CONGESTION(sus),
     "scalable units beside each other",
     &schema_part},
    {0},
};
const struct schema schema_congestion = {
    .name = "congestion", "Who waits for whom", sizeof(struct congestion_row), congestion_fields};

const struct param congestion_params[] = {
    {.name = "focus",
     .type = PARAM_STR,
     .doc = "only trees with a port (root or member) with these fields, in the focus language"},
    {0},
};

// --- filling them ---

struct tree_space {
    struct tree_row *row;
    struct congest_level *level;
    struct level_row *level_row;
    struct member_row *member;
    struct spot root, second, *cycle;
    char text[700], command[PLACE_TEXT + 40];
};

static void percent(struct buf *b, const char *before, double share)
{
    if (!isnan(share))
        buf_printf(b, share < 0.1 ? "%s%.1f %%" : "%s%.0f %%", before, 100 * share);
}

static void fill_text(const struct congest_tree *t, struct tree_space *s)
{
    char from[PLACE_TEXT];
    struct buf b = {0};
    buf_printf(&b, "%s: %s", congest_kind_title(t->kind), spot_text(&s->root, from));
    if (s->root.peer != NULL)
        buf_printf(&b, " -> %s/%lld", s->root.peer->name, (long long)s->root.peer->port);
    percent(&b, ", held ", t->held);
    percent(&b, ", used ", t->used);
    percent(&b, ", siblings ", t->siblings_used);
    struct congest_waits w;
    congest_waits(t, &w);
    buf_printf(&b, ", %u port%s wait%s", w.ports, w.ports == 1 ? "" : "s", w.ports == 1 ? "s" : "");
    snprintf(s->text, sizeof(s->text), "%s", b.data);
    buf_done(&b);
}

static void fill_levels(const struct tele_view *w, const struct congest_tree *t, struct tree_space *s)
{
    uint32_t n = congest_levels(t, w->t, &s->level);
    s->level_row = xcalloc(n + 1, sizeof(*s->level_row));
    for (uint32_t i = 0; i < n; i++) {
        const struct congest_level *l = &s->level[i];
        s->level_row[i] = (struct level_row){.from = l->from,
                                             .to = l->to,
                                             .depth = l->depth,
                                             .ports = l->ports,
                                             .victims = l->victims,
                                             .held_min = l->held_min,
                                             .held_max = l->held_max,
                                             .used_min = l->used_min,
                                             .used_max = l->used_max};
    }
    s->row->levels = (struct items){s->level_row, n};
}

static void fill_members(const struct tele_view *w, const struct congest_tree *t, struct tree_space *s,
                         uint32_t most)
{
    uint32_t n = t->num_members < most ? t->num_members : most;
    s->member = xcalloc(n + 1, sizeof(*s->member));
    for (uint32_t i = 0; i < n; i++) {
        const struct congest_member *m = &t->member[i];
        struct member_row *row = &s->member[i];
        spot_fill(w, m->slot, &row->spot);
        row->depth = m->depth;
        row->held = m->held;
        row->used = m->used;
        row->lost_bps = m->lost_bps;
        row->victim = m->victim;
    }
    s->row->members = (struct items){s->member, n};
    s->cycle = xcalloc(t->num_cycle + 1, sizeof(*s->cycle));
    for (uint32_t i = 0; i < t->num_cycle; i++)
        spot_fill(w, t->cycle[i], &s->cycle[i]);
    s->row->cycle = (struct items){s->cycle, t->num_cycle};
}

// As it may be pasted into a shell: a name is what a device says, and may be anything.
static const char *shell_name(const struct end_row *end, char buf[PLACE_TEXT])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/ -";
    const char *s = end->name;
    if (s[0] == 0 || strspn(s, plain) != strlen(s) || strlen(s) > 100)
        snprintf(buf, PLACE_TEXT, GUID_FMT, GUID_ARG(end->guid));
    else
        snprintf(buf, PLACE_TEXT, strchr(s, ' ') != NULL ? "'%s'" : "%s", s);
    return buf;
}

static void fill_command(const struct spot *root, struct tree_space *s)
{
    struct end_row end = {.guid = root->guid, .name = root->name};
    char name[PLACE_TEXT];
    if (root->peer != NULL && root->kind == link_kinds[0])
        snprintf(s->command, sizeof(s->command), "weft node %s", shell_name(&root->peer_space, name));
    else
        snprintf(s->command, sizeof(s->command), "weft counters %s/%lld", shell_name(&end, name),
                 (long long)root->port);
}

static void fill_tree(struct tele_view *w, const struct congest_tree *t, struct tree_row *row,
                      struct tree_space *s, uint32_t most_members)
{
    struct congest_waits waits;
    congest_waits(t, &waits);
    s->row = row;
    spot_fill(w, t->root, &s->root);
    fill_text(t, s);
    *row = (struct tree_row){.id = (int64_t)t->id,
                             .kind = congest_kind_name(t->kind),
                             .title = congest_kind_title(t->kind),
                             .text = s->text,
                             .advice = congest_kind_advice(t->kind),
                             .root = &s->root,
                             .since = tele_wall(w, t->since),
                             .seen = t->missed == 0,
                             .root_read = t->root_read,
                             .held = t->held,
                             .used = t->used,
                             .siblings_used = t->siblings_used,
                             .lost_bps = waits.lost_bps,
                             .waiting = waits.ports,
                             .share = t->share,
                             .explained = t->explained,
                             .members_in_all = t->num_members,
                             .victims = t->num_victims,
                             .switches = t->num_switches,
                             .adapters = t->num_adapters,
                             .alarm = NO_INT};
    const struct spot *root = &s->root;
    fill_command(root, s);
    row->command = s->command;
    if (t->second_root != TELE_SLOT_NONE) {
        spot_fill(w, t->second_root, &s->second);
        row->second_root = &s->second;
    }
    const struct alarm *a = tele_alarm_of(w, root->guid, (unsigned)root->port);
    if (a == NULL && root->peer != NULL)
        a = tele_alarm_of(w, root->peer->guid, (unsigned)root->peer->port);
    if (a != NULL && a->rule->id[0] == 'C')
        row->alarm = (int64_t)a->id;
    fill_levels(w, t, s);
    fill_members(w, t, s, most_members);
}

static void tree_done(struct tree_space *s)
{
    free(s->level);
    free(s->level_row);
    free(s->member);
    free(s->cycle);
}

static bool spot_wanted(struct tele_view *w, struct sieve *focus, const struct spot *s)
{
    return tele_end_wanted(w, focus, s, s->guid, (unsigned)s->port) ||
           (s->peer != NULL && tele_end_wanted(w, focus, s, s->peer->guid, (unsigned)s->peer->port));
}

// Whether the root or a member is wanted, by either end of its cable.
static bool tree_wanted(struct tele_view *w, struct sieve *focus, const struct tree_row *row)
{
    const struct member_row *m = row->members.item;
    if (focus == NULL || spot_wanted(w, focus, row->root))
        return true;
    for (size_t i = 0; i < row->members.n; i++)
        if (spot_wanted(w, focus, &m[i].spot))
            return true;
    return false;
}

static struct part_row *fill_parts(uint32_t n, const struct congest_part *p)
{
    struct part_row *row = xcalloc(n + 1, sizeof(*row));
    for (uint32_t i = 0; i < n; i++)
        row[i] = (struct part_row){.number = p[i].number,
                                   .ports = p[i].ports,
                                   .held = p[i].held,
                                   .mean_used = p[i].mean_used,
                                   .max_used = p[i].max_used,
                                   .mean_held = p[i].mean_held,
                                   .max_held = p[i].max_held,
                                   .lost_bps = p[i].lost_bps,
                                   .imbalance = p[i].imbalance};
    return row;
}

// Those that an alarm is about come first; else they stay in their order.
static void alarms_first(struct tree_row *row, uint32_t n)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct tree_row x = row[i];
        if (x.alarm == NO_INT)
            continue;
        memmove(&row[at + 1], &row[at], (i - at) * sizeof(*row));
        row[at++] = x;
    }
}

static void answer_congestion(struct request *r, struct tele_view *w, struct sieve *focus,
                              const struct congest_sums *sums)
{
    const struct congest_tree *const *tree = NULL;
    const struct congest *c = tele_congest(w->tele);
    uint32_t n = c != NULL ? congest_trees(c, &tree) : 0, kept = 0, num = 0;
    struct congest_totals totals = {0};
    struct congest_part *rail = NULL, *su = NULL;
    uint32_t members = MEMBERS_ALL;

    if (c != NULL)
        congest_totals(c, &totals);
    struct tree_row *row = xcalloc(n + 1, sizeof(*row));
    struct tree_space *space = xcalloc(n + 1, sizeof(*space));
    for (uint32_t i = 0; i < n && kept < TREES_MAX; i++, num++) {
        fill_tree(w, tree[i], &row[kept], &space[i], members < MEMBERS_MAX ? members : MEMBERS_MAX);
        if (!tree_wanted(w, focus, &row[kept]))
            continue;
        members -= (uint32_t)row[kept].members.n;
        kept++;
    }
    alarms_first(row, kept);
    uint32_t rails = congest_sums_by_rail(sums, &rail), sus = congest_sums_by_su(sums, &su);
    struct part_row *rail_row = fill_parts(rails, rail), *su_row = fill_parts(sus, su);
    answer_struct(r, 200, &schema_congestion,
                  &(struct congestion_row){.sampled_at = w->st.last_wall_ns,
                                           .complete = w->st.unread == 0 && w->st.sweeps > 0,
                                           .ports = w->st.ports,
                                           .unread = w->st.unread,
                                           .held = totals.held,
                                           .lost_bps = totals.lost_bps,
                                           .trees_in_all = n,
                                           .trees = {row, kept},
                                           .rails = {rail_row, rails},
                                           .sus = {su_row, sus}});
    for (uint32_t i = 0; i < num; i++)
        tree_done(&space[i]);
    free(space);
    free(row);
    free(rail);
    free(su);
    free(rail_row);
    free(su_row);
}

// Rails and units take a look at every port: a slice a turn.
struct question {
    struct slices s;
    struct tele_view w;
    struct sieve *focus;
    struct congest_sums *sums;
};

static bool question_step(struct slices *s)
{
    struct question *k = (struct question *)s;
    if (!tele_view_again(s->r, &k->w))
        return true;
    while (!congest_sums_some(k->sums, k->w.t, PORTS_A_LOOK))
        if (slice_over(s))
            return false;
    answer_congestion(s->r, &k->w, k->focus, k->sums);
    return true;
}

static void question_free(struct slices *s)
{
    struct question *k = (struct question *)s;
    tele_view_done(&k->w);
    sieve_free(k->focus);
    congest_sums_free(k->sums);
    free(k);
}

void get_congestion(struct request *r)
{
    struct tele_view w;
    struct sieve *focus;
    static const struct sieve_rows rows = {
        .row = &schema_root, .end = &schema_facts, .named = place_is_named, .part = facts_part};
    if (!tele_view_of(r, &w) || !query_focus_of(r, &rows, NULL, &focus))
        return;
    struct question *k = xcalloc(1, sizeof(*k));
    k->s.step = question_step;
    k->s.free = question_free;
    k->w = w;
    k->focus = focus;
    k->sums = congest_sums_new();
    slices_run(r, &k->s);
}
