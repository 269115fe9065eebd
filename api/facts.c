// SPDX-License-Identifier: Apache-2.0
#include "api/facts.h"

#include <math.h>

#include "api/counters.h"
#include "telemetry/congest.h"
#include "telemetry/health.h"
#include "telemetry/module.h"

#define FACT(f) offsetof(struct facts_row, f)
#define FACT_FIELDS                                                                                          \
    PLACE_FIELDS, {.name = "port_guid", .type = FIELD_GUID, .at = FACT(port_guid), ""},                      \
        {.name = "lid", .type = FIELD_INT, .at = FACT(lid), ""},                                             \
        {.name = "state", .type = FIELD_STR, .at = FACT(state), "", .name_of = port_states},                 \
        {.name = "link", .type = FIELD_STR, .at = FACT(link), ""},                                           \
        {.name = "width", .type = FIELD_STR, .at = FACT(width), ""},                                         \
        {.name = "speed", .type = FIELD_NUM, .at = FACT(speed), ""},                                         \
        {.name = "mtu", .type = FIELD_INT, .at = FACT(mtu), ""},                                             \
        {.name = "used", .type = FIELD_NUM, .at = FACT(used), ""},                                           \
        {.name = "rcv_used", .type = FIELD_NUM, .at = FACT(rcv_used), ""},                                   \
        {.name = "held", .type = FIELD_NUM, .at = FACT(held), ""},                                           \
        {.name = "score", .type = FIELD_NUM, .at = FACT(score), ""},                                         \
        {.name = "errors", .type = FIELD_INT, .at = FACT(errors), ""},                                       \
        {.name = "errors_per_hour", .type = FIELD_NUM, .at = FACT(errors_per_hour), ""},                     \
        {.name = "ber", .type = FIELD_NUM, .at = FACT(ber), ""},                                             \
        {.name = "raw_ber", .type = FIELD_NUM, .at = FACT(raw_ber), ""},                                     \
        {.name = "health", .type = FIELD_STR, .at = FACT(health), "", .name_of = health_names},              \
        {.name = "alarm", .type = FIELD_INT, .at = FACT(alarm), ""},                                         \
        {.name = "alarm_rule", .type = FIELD_STR, .at = FACT(alarm_rule), ""},                               \
        {.name = "pma", .type = FIELD_STR, .at = FACT(pma), "", .name_of = unread_names},                    \
        {.name = "age", .type = FIELD_TIME, .at = FACT(age), ""},                                            \
        {.name = "cable", .type = FIELD_STR, .at = FACT(cable), ""},                                         \
        {.name = "vendor", .type = FIELD_STR, .at = FACT(vendor), ""},                                       \
        {.name = "model", .type = FIELD_STR, .at = FACT(model), ""},                                         \
        {.name = "serial", .type = FIELD_STR, .at = FACT(serial), ""},                                       \
        {.name = "temp", .type = FIELD_NUM, .at = FACT(temp), ""},                                           \
    {                                                                                                        \
        .name = "rate", .type = FIELD_OBJ, .at = FACT(rate), "", &schema_rates                               \
    }

static const struct field far_fields[] = {FACT_FIELDS, {0}};
static const struct schema schema_far = {.name = "facts_of_peer", "", sizeof(struct facts_row), far_fields};
static const struct field fact_fields[] = {
    FACT_FIELDS, {.name = "peer", .type = FIELD_OBJ, .at = FACT(peer), "", &schema_far}, {0}};
const struct schema schema_facts = {.name = "facts", "", sizeof(struct facts_row), fact_fields};

static unsigned part_of(size_t at)
{
    static const struct {
        size_t at;
        unsigned part;
    } known[] = {{FACT(alarm), FACTS_ALARM},   {FACT(alarm_rule), FACTS_ALARM}, {FACT(cable), FACTS_MODULE},
                 {FACT(vendor), FACTS_MODULE}, {FACT(model), FACTS_MODULE},     {FACT(serial), FACTS_MODULE},
                 {FACT(temp), FACTS_MODULE},   {FACT(rate), FACTS_RATES},       {FACT(port_guid), FACTS_PORT},
                 {FACT(lid), FACTS_PORT},      {FACT(state), FACTS_PORT},       {FACT(link), FACTS_PORT},
                 {FACT(width), FACTS_PORT},    {FACT(speed), FACTS_PORT},       {FACT(mtu), FACTS_PORT}};
    if (at < sizeof(struct place_row))
        return 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (known[i].at == at)
            return known[i].part;
    return FACTS_LIVE;
}

unsigned facts_part(const struct field *const *way)
{
    bool of_peer = way[0]->at == FACT(peer);
    return part_of(way[of_peer]->at) | (of_peer ? (unsigned)FACTS_PEER : 0);
}

// --- a port ---

static void fill_port(const struct port *p, struct facts_row *row, char link[16], char width[8])
{
    const struct port_attrs *a = &p->a;
    uint32_t mbps = port_rate_mbps(a);
    row->port_guid = p->guid;
    row->lid = id_or_null(a->lid, 0);
    row->state = port_state_name(a->state <= PORT_ACTIVE ? (enum port_state)a->state : PORT_STATE_NOP);
    row->link = link_word(a, link, 16);
    row->width = width_word(a, width, 8);
    row->speed = mbps ? mbps / 1000.0 : (double)NAN;
    row->mtu = a->mtu_active >= 1 && a->mtu_active <= 5 ? 128LL << a->mtu_active : NO_INT;
}

static void fill_module(const struct tele_view *w, uint32_t slot, struct facts_row *row)
{
    const struct tele_module *m = tele_module(w->tele, slot), *far = NULL;
    uint32_t z = tele_far(w, slot);
    if (z != TELE_SLOT_NONE)
        far = tele_module(w->tele, z);
    if (m != NULL) {
        row->vendor = text_or_null(m->vendor);
        row->model = text_or_null(m->part);
        row->serial = text_or_null(m->serial);
        row->temp = m->celsius;
    }
    row->cable = row->serial != NULL ? row->serial : far != NULL ? text_or_null(far->serial) : NULL;
}

static void fill_live(const struct tele_view *w, uint32_t slot, struct facts_row *row)
{
    const struct tele_table *t = w->t;
    const int64_t *at = &t->at[(uint64_t)slot * TELE_GROUPS];
    const struct health *h = tele_health(w->tele);
    struct congest_port cp = {.score = NAN};
    struct tele_use use;
    tele_use(t, slot, &use);
    if (tele_congest(w->tele) != NULL)
        congest_port(tele_congest(w->tele), slot, &cp);
    row->used = use.xmit_used;
    row->rcv_used = use.rcv_used;
    row->held = use.held;
    row->score = cp.score;
    row->errors = counters_errors(t, slot);
    row->errors_per_hour = 3600 * counters_error_rate(t, slot);
    row->pma = tele_unread_name((enum tele_unread)t->port[slot].unread);
    row->age = tele_wall(w, at[TELE_DATA] > at[TELE_ERRORS] ? at[TELE_DATA] : at[TELE_ERRORS]);
    if (h == NULL)
        return;
    row->health = health_state_name(health_state_at(h, t, slot));
    health_ratios(h, slot, &row->ber, &row->raw_ber);
}

struct end { // of a cable
    uint64_t guid;
    unsigned port;
};

// NULL: there is none now.
static const struct port *port_of(const struct fabric *f, const struct end *x)
{
    const struct node *n = f != NULL ? fabric_by_guid(f, x->guid) : NULL;
    bool has = n != NULL && (x->port > 0 || n->type == NODE_SWITCH) && x->port <= n->num_ports;
    port_id p = has ? fabric_port_at(f, n, x->port) : PORT_NONE;
    return port_valid(p) ? fabric_port(f, p) : NULL;
}

static uint32_t slot_of(const struct tele_view *w, const struct end *x)
{
    bool may = w != NULL && x->port > 0 && x->port <= UINT8_MAX;
    return may ? tele_slot(w->t, x->guid, (uint8_t)x->port) : TELE_SLOT_NONE;
}

struct asked {
    struct api *a;
    const char *fabric;
    const struct fabric *f, *known; // NULL: none, or not now; the blueprint
    struct tele_view *w;            // NULL: it has no counters
    unsigned parts;
};

static void fill(const struct asked *q, const struct end *x, struct facts_space *s, int of)
{
    struct facts_row *row = of ? &s->far : &s->row;
    const struct port *p = port_of(q->f, x);
    uint32_t slot = slot_of(q->w, x);
    const struct alarm *alarm = NULL;

    place_fill(q->a, q->fabric, x->guid, x->port, &s->place[of]);
    *row = (struct facts_row){.place = s->place[of].row,
                              .speed = NAN,
                              .temp = NAN,
                              .used = NAN,
                              .rcv_used = NAN,
                              .held = NAN,
                              .score = NAN,
                              .errors_per_hour = NAN,
                              .ber = NAN,
                              .raw_ber = NAN,
                              .lid = NO_INT,
                              .mtu = NO_INT,
                              .errors = NO_INT,
                              .alarm = NO_INT};
    if (p != NULL && (q->parts & FACTS_PORT))
        fill_port(p, row, s->link[of], s->width[of]);
    if (q->w != NULL && (q->parts & FACTS_ALARM))
        alarm = tele_alarm_of(q->w, x->guid, x->port);
    row->alarm = alarm != NULL ? (int64_t)alarm->id : NO_INT;
    row->alarm_rule = alarm != NULL ? alarm->rule->id : NULL;
    if (slot == TELE_SLOT_NONE)
        return;
    if (q->parts & FACTS_LIVE)
        fill_live(q->w, slot, row);
    if (q->parts & FACTS_MODULE)
        fill_module(q->w, slot, row);
    if (q->parts & FACTS_RATES) {
        counters_rates(q->w->t, slot, s->rate[of]);
        row->rate = s->rate[of];
    }
}

// The cable's other end; port 0: none is known.
static struct end end_behind(const struct asked *q, const struct end *x)
{
    const struct port *p = port_of(q->f, x);
    if (p != NULL && port_valid(p->peer)) {
        const struct port *z = fabric_port(q->f, p->peer);
        return (struct end){fabric_node(q->f, z->node)->guid, z->num};
    }
    uint32_t slot = slot_of(q->w, x), far = slot != TELE_SLOT_NONE ? tele_far(q->w, slot) : TELE_SLOT_NONE;
    if (far != TELE_SLOT_NONE) // where it led when it was last seen
        return (struct end){q->w->t->port[far].node_guid, q->w->t->port[far].num};
    p = port_of(q->known, x);
    if (p == NULL || !port_valid(p->peer))
        return (struct end){0};
    const struct port *z = fabric_port(q->known, p->peer);
    return (struct end){fabric_node(q->known, z->node)->guid, z->num};
}

void facts_fill(struct api *a, const char *fabric, struct tele_view *w, uint64_t guid, unsigned port,
                unsigned parts, struct facts_space *ret)
{
    struct view *v = view_named(a, fabric);
    const struct asked q = {a, fabric, v != NULL ? view_fabric(v) : NULL, v != NULL ? view_known(v) : NULL,
                            w, parts};
    const struct end x = {guid, port};
    fill(&q, &x, ret, 0);
    if (!(parts & FACTS_PEER))
        return;
    const struct end z = end_behind(&q, &x);
    if (z.port == 0)
        return;
    fill(&q, &z, ret, 1);
    ret->row.peer = &ret->far;
}

bool facts_wanted(struct api *a, const char *fabric, struct tele_view *w, struct sieve *focus,
                  const void *row, uint64_t guid, unsigned port)
{
    struct facts_space s;
    if (focus == NULL)
        return true;
    facts_fill(a, fabric, w, guid, port, sieve_parts(focus), &s);
    return sieve_has_end(focus, row, &s.row);
}
