// SPDX-License-Identifier: Apache-2.0
// Health of links, and devices that do not give their counters.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/counters.h"
#include "api/facts.h"
#include "lib/xalloc.h"
#include "telemetry/module.h"

// --- links ---

struct health_row {
    const char *state, *place, *rule, *why, *advice, *kind, *cable;
    const struct end_row *a, *z;
    int64_t since, sure_at, alarm, rail, su, tier;
    double ber, raw_ber, gbps;
    bool silenced;
};
#define ROW(f) offsetof(struct health_row, f)
static const struct field health_fields[] = {
    {.name = "state", .type = FIELD_STR, .at = ROW(state), "how the link is", .name_of = health_names},
    {.name = "place", .type = FIELD_STR, .at = ROW(place), "both ends for people"},
    {.name = "a", .type = FIELD_OBJ, .at = ROW(a), "the lower end", &schema_end},
    {.name = "z", .type = FIELD_OBJ, .at = ROW(z), "the other end", &schema_end, .null = true},
    {.name = "kind",
     .type = FIELD_STR,
     .at = ROW(kind),
     "host: to an adapter or router; trunk: between switches",
     .null = true,
     .name_of = link_kinds},
    {.name = "rail", .type = FIELD_INT, .at = ROW(rail), "of its lower end", .null = true},
    {.name = "su", .type = FIELD_INT, .at = ROW(su), "scalable unit of its lower end", .null = true},
    {.name = "tier", .type = FIELD_INT, .at = ROW(tier), "of its lower end", .null = true},
    {.name = "gbps", .type = FIELD_NUM, .at = ROW(gbps), "rate of the link as it is", .null = true},
    {.name = "cable",
     .type = FIELD_STR,
     .at = ROW(cable),
     "serial number of the cable, where a file of ibdiagnet's tells it",
     .null = true},
    {.name = "rule", .type = FIELD_STR, .at = ROW(rule), "the worst rule that holds", .null = true},
    {.name = "why", .type = FIELD_STR, .at = ROW(why), "with numbers and limits", .null = true},
    {.name = "since", .type = FIELD_TIME, .at = ROW(since), "since when it is so", .null = true},
    {.name = "advice", .type = FIELD_STR, .at = ROW(advice), "what to do", .null = true},
    {.name = "sure_at",
     .type = FIELD_TIME,
     .at = ROW(sure_at),
     "unsure: when enough bits will have passed",
     .null = true},
    {.name = "ber", .type = FIELD_NUM, .at = ROW(ber), "symbol error ratio, estimated", .null = true},
    {.name = "raw_ber", .type = FIELD_NUM, .at = ROW(raw_ber), "before correction", .null = true},
    {.name = "alarm", .type = FIELD_INT, .at = ROW(alarm), "id of the worst alarm about it", .null = true},
    {.name = "silenced", .type = FIELD_BOOL, .at = ROW(silenced), "that alarm is silenced"},
    {0},
};
const struct schema schema_health = {
    .name = "health", "How a link is", sizeof(struct health_row), health_fields};

const struct param health_params[] = {
    {.name = "all", .type = PARAM_BOOL, .doc = "healthy links too; else only those that are not"},
    {.name = "state", .type = PARAM_ENUM, .name_of = health_names, .doc = "only links in this state"},
    {.name = "focus",
     .type = PARAM_STR,
     .doc = "only links with these fields, in the focus language: state=failing or ber>1e-14"},
    {0},
};

#define LOOKED_MAX 50000 // with a focus

struct one {
    uint32_t slot;
    enum health_state state;
    int64_t since; // of what is not well
};

// Severest state first, then the oldest.
static bool before(const struct one *x, const struct one *y)
{
    if (x->state != y->state)
        return x->state > y->state;
    if (x->since != y->since)
        return x->since < y->since;
    return x->slot < y->slot;
}

// A link once: by the slot of its lower end, as the detector counts.
static bool is_first(const struct tele_view *w, uint32_t slot)
{
    uint32_t far = tele_far(w, slot);
    return far == TELE_SLOT_NONE || slot < far;
}

// Of all links; their words are made for those that are shown. A link of which too little is known yet, but
// nothing bad, is no news.
static bool look(const struct tele_view *w, const char *state, bool all, struct one *x)
{
    const struct health *h = tele_health(w->tele);
    struct health_view view;

    x->state = health_state_at(h, w->t, x->slot);
    x->since = 0;
    if (state != NULL && strcmp(health_state_name(x->state), state) != 0)
        return false;
    bool well = x->state <= HEALTH_HEALTHY || (x->state == HEALTH_UNSURE && !health_noted(h, x->slot));
    if (well)
        return all || state != NULL;
    health_view(h, w->t, x->slot, &view);
    x->since = view.since;
    return all || state != NULL || view.state > HEALTH_UNSURE || view.symbol_ber > 0;
}

// Done a slice a turn: all links are looked at, those that are wanted become a heap, the worst on top, and
// are taken off it as far as the answer goes.
struct links {
    struct slices s;
    enum { LOOK, HEAP, TAKE } phase;
    struct tele_view w;
    struct sieve *focus;
    struct list l;
    const char *state;
    bool all;
    struct one *x;
    uint32_t n, room; // of x
    uint32_t at;      // LOOK: slot; HEAP: to be sifted, and those before it
    uint32_t total;   // wanted
    uint64_t skip, i; // of the list; i: the next one
};

static void add(struct links *k, const struct one *x)
{
    if (k->n == k->room) {
        k->room = k->room ? 2 * k->room : 256;
        k->x = xreallocarray(k->x, k->room, sizeof(*k->x));
    }
    k->x[k->n++] = *x;
}

static bool look_at_all(struct links *k)
{
    struct one x;
    uint32_t end = tele_health(k->w.tele) != NULL ? k->w.slots : 0;
    for (; k->at < end; k->at++) {
        if (slice_over(&k->s))
            return false;
        x.slot = k->at;
        if (is_first(&k->w, x.slot) && look(&k->w, k->state, k->all, &x))
            add(k, &x);
    }
    k->at = k->n / 2;
    k->total = k->n;
    return true;
}

static void sift_down(struct links *k, uint32_t i)
{
    for (;;) {
        uint32_t c = 2 * i + 1;
        if (c >= k->n)
            return;
        if (c + 1 < k->n && before(&k->x[c + 1], &k->x[c]))
            c++;
        if (!before(&k->x[c], &k->x[i]))
            return;
        struct one t = k->x[i];
        k->x[i] = k->x[c];
        k->x[c] = t;
        i = c;
    }
}

static bool make_heap(struct links *k)
{
    while (k->at > 0) {
        if (slice_over(&k->s))
            return false;
        sift_down(k, --k->at);
    }
    return true;
}

static struct one take_worst(struct links *k)
{
    struct one x = k->x[0];
    k->x[0] = k->x[--k->n];
    sift_down(k, 0);
    return x;
}

struct row_space {
    struct health_view view;
    struct spot spot;
    struct end_row a;
    char place[2 * PLACE_TEXT + 8], from[PLACE_TEXT];
};

// Either end may have been seen.
static const char *cable_of(const struct tele_view *w, uint32_t slot, const struct alarm *alarm)
{
    uint32_t far = tele_far(w, slot);
    const struct tele_module *m = tele_module(w->tele, slot);
    if (m == NULL && far != TELE_SLOT_NONE)
        m = tele_module(w->tele, far);
    if (m != NULL && m->serial[0] != 0)
        return m->serial;
    return alarm != NULL && alarm->cable[0] ? alarm->cable : NULL;
}

// A host's cable is named from its switch, as alarms and isolations name it.
static void name_place(const struct tele_view *w, uint32_t slot, struct row_space *s)
{
    const struct spot *p = &s->spot;
    spot_text(p, s->from);
    if (p->peer == NULL)
        snprintf(s->place, sizeof(s->place), "%s", s->from);
    else if (w->t->port[slot].of_switch)
        snprintf(s->place, sizeof(s->place), "%s <-> %.200s/%lld", s->from, p->peer_space.name,
                 (long long)p->peer_space.port);
    else
        snprintf(s->place, sizeof(s->place), "%.200s/%lld <-> %s", p->peer_space.name,
                 (long long)p->peer_space.port, s->from);
}

static void fill(struct tele_view *w, const struct one *x, struct health_row *row, struct row_space *s)
{
    const struct alarm *alarm;
    struct health_view *view = &s->view;
    const struct spot *p = &s->spot;

    health_view(tele_health(w->tele), w->t, x->slot, view);
    // `a` is the lower end.
    uint32_t far = tele_far(w, x->slot), slot = x->slot;
    if (far != TELE_SLOT_NONE && w->t->port[x->slot].of_switch && !w->t->port[far].of_switch)
        slot = far;
    spot_fill(w, slot, &s->spot);
    s->a = (struct end_row){.guid = p->guid, .name = p->name, .port = p->port};
    name_place(w, slot, s);
    alarm = tele_alarm_of(w, p->guid, (unsigned)p->port);
    *row = (struct health_row){
        .state = health_state_name(view->state),
        .place = s->place,
        .a = &s->a,
        .z = p->peer != NULL ? &s->spot.peer_space : NULL,
        .kind = p->kind,
        .rail = p->rail,
        .su = p->su,
        .tier = p->tier,
        .gbps = p->gbps,
        .rule = view->rule != NULL && view->rule[0] ? view->rule : NULL,
        .why = view->why[0] ? view->why : NULL,
        .advice = view->advice != NULL && view->advice[0] ? view->advice : NULL,
        .since = tele_wall(w, view->since),
        .sure_at = tele_wall(w, view->sure_at),
        .ber = view->symbol_ber,
        .raw_ber = view->raw_ber,
        .alarm = alarm != NULL ? (int64_t)alarm->id : NO_INT,
        .cable = cable_of(w, x->slot, alarm),
        .silenced = alarm != NULL && alarm->silence != 0,
    };
}

// By either end.
static bool is_wanted(struct links *k, const struct health_row *row)
{
    return tele_end_wanted(&k->w, k->focus, row, row->a->guid, (unsigned)row->a->port) ||
           (row->z != NULL && tele_end_wanted(&k->w, k->focus, row, row->z->guid, (unsigned)row->z->port));
}

static bool named(const void *row, const void *end, const char *word)
{
    const struct health_row *x = row;
    return place_named(end, word) || (x->cable != NULL && strcmp(x->cable, word) == 0);
}

static bool take_rows(struct links *k)
{
    struct health_row row;
    struct row_space space;
    while (k->n > 0 && !list_full(&k->l) &&
           (k->focus == NULL || k->i < k->skip || k->i - k->skip < LOOKED_MAX)) {
        if (slice_over(&k->s))
            return false;
        struct one x = take_worst(k);
        if (k->i++ < k->skip)
            continue;
        fill(&k->w, &x, &row, &space);
        if (k->state != NULL && strcmp(row.state, k->state) != 0)
            continue; // since it was looked at
        if (is_wanted(k, &row))
            list_item(&k->l, &row);
    }
    return true;
}

static void end_links(struct links *k)
{
    char next[24];
    list_end(&k->l, k->n > 0 ? number_text(k->i, next) : NULL, k->focus == NULL ? (int64_t)k->total : NO_INT,
             k->w.t->fabric != NULL ? (int64_t)k->w.t->fabric->generation : NO_INT, k->w.st.last_wall_ns);
}

static bool links_step(struct slices *s)
{
    struct links *k = (struct links *)s;
    struct request *r = s->r;
    if (!tele_view_again(r, &k->w))
        return true;
    if (k->phase == LOOK) {
        if (!look_at_all(k))
            return false;
        k->phase = HEAP;
    }
    if (k->phase == HEAP) {
        if (!make_heap(k))
            return false;
        k->phase = TAKE;
        list_begin(&k->l, r, &schema_health);
        k->l.incomplete = k->w.st.unread > 0;
    }
    if (!take_rows(k))
        return false;
    end_links(k);
    return true;
}

static void links_free(struct slices *s)
{
    struct links *k = (struct links *)s;
    tele_view_done(&k->w);
    sieve_free(k->focus);
    free(k->x);
    free(k);
}

void get_health(struct request *r)
{
    struct tele_view w;
    struct sieve *focus;
    uint64_t skip;
    static const struct sieve_rows rows = {.row = &schema_health,
                                           .end = &schema_facts,
                                           .end_first = PLACE_NUM,
                                           .since = "since",
                                           .named = named,
                                           .part = facts_part};

    if (!tele_view_of(r, &w) || !cursor_number(r, &skip) || !query_focus_of(r, &rows, NULL, &focus))
        return;
    struct links *k = xcalloc(1, sizeof(*k));
    k->s.step = links_step;
    k->s.free = links_free;
    k->w = w;
    k->focus = focus;
    k->skip = skip;
    k->state = query_str(r, "state");
    k->all = query_bool(r, "all");
    slices_run(r, &k->s);
}

// --- devices that do not give their counters ---

struct unread_row {
    uint64_t guid;
    const char *name, *type, *role, *why;
    int64_t since, ports, rail, su;
};
#define UNREAD(f) offsetof(struct unread_row, f)
static const struct field unread_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = UNREAD(guid), "NodeGUID"},
    {.name = "name", .type = FIELD_STR, .at = UNREAD(name), "its description"},
    {.name = "type",
     .type = FIELD_STR,
     .at = UNREAD(type),
     "what it is",
     .null = true,
     .name_of = node_type_names},
    {.name = "role",
     .type = FIELD_STR,
     .at = UNREAD(role),
     "what it is in this fabric",
     .null = true,
     .name_of = node_role_names},
    {.name = "rail", .type = FIELD_INT, .at = UNREAD(rail), "rail of a leaf or adapter", .null = true},
    {.name = "su", .type = FIELD_INT, .at = UNREAD(su), "scalable unit", .null = true},
    {.name = "why", .type = FIELD_STR, .at = UNREAD(why), "what it does instead", .name_of = unread_names},
    {.name = "since", .type = FIELD_TIME, .at = UNREAD(since), "since when", .null = true},
    {.name = "ports", .type = FIELD_INT, .at = UNREAD(ports), "ports whose counters are not known"},
    {0},
};
const struct schema schema_unread = {
    .name = "unread", "A device that does not give its counters", sizeof(struct unread_row), unread_fields};

static void fill_unread(const struct tele_view *w, const struct tele_unread_node *u, struct unread_row *row)
{
    const struct fabric *f = view_fabric(w->v);
    const struct node *n = f != NULL ? fabric_by_guid(f, u->guid) : NULL;
    *row = (struct unread_row){.guid = u->guid,
                               .name = n != NULL ? fabric_desc(f, n) : "",
                               .why = tele_unread_name(u->why),
                               .since = tele_wall(w, u->since),
                               .ports = u->ports,
                               .rail = NO_INT,
                               .su = NO_INT};
    if (n == NULL)
        return;
    row->type = node_type_word(n->type);
    row->role = node_role_name((enum node_role)n->role);
    row->rail = id_or_null(n->rail, RAIL_NONE);
    row->su = id_or_null(n->su, SU_NONE);
}

void get_unread(struct request *r)
{
    struct tele_unread_node *u = NULL;
    struct tele_view w;
    struct unread_row row;
    struct list l;
    uint64_t i;
    char next[24];

    if (!tele_view_of(r, &w) || !cursor_number(r, &i))
        return;
    uint32_t n = tele_unread_nodes(w.tele, &u);
    list_begin(&l, r, &schema_unread);
    for (; i < n && !list_full(&l); i++) {
        fill_unread(&w, &u[i], &row);
        list_item(&l, &row);
    }
    list_end(&l, i < n ? number_text(i, next) : NULL, n, NO_INT, w.st.last_wall_ns);
    free(u);
    tele_view_done(&w);
}
