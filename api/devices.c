// SPDX-License-Identifier: Apache-2.0
// Devices: temperatures, fans, power supplies, from ibdiagnet's file (telemetry/device.c judges them).
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "api/tele.h"
#include "lib/xalloc.h"
#include "telemetry/module.h"

static const char *const part_states[] = {"unknown", "ok", "failed", "absent", NULL};
static const char *const device_states[] = {"unknown", "healthy", "degraded", "failing", NULL};
enum device_state { DEVICE_UNKNOWN, DEVICE_HEALTHY, DEVICE_DEGRADED, DEVICE_FAILING };

struct fan_row {
    int64_t fan, rpm, min_rpm;
    const char *state;
};
#define FAN(f) offsetof(struct fan_row, f)
static const struct field fan_fields[] = {
    {.name = "fan", .type = FIELD_INT, .at = FAN(fan), "its number, as ibdiagnet has it"},
    {.name = "rpm", .type = FIELD_INT, .at = FAN(rpm), "turns a minute", .null = true},
    {.name = "min_rpm", .type = FIELD_INT, .at = FAN(min_rpm), "least that it should have", .null = true},
    {.name = "state", .type = FIELD_STR, .at = FAN(state), "what comes of that", .name_of = part_states},
    {0},
};
static const struct schema schema_fan = {.name = "fan", "A fan", sizeof(struct fan_row), fan_fields};

struct psu_row {
    int64_t psu;
    const char *state, *bad, *dc, *fan, *alert, *serial;
};
#define PSU(f) offsetof(struct psu_row, f)
static const struct field psu_fields[] = {
    {.name = "psu", .type = FIELD_INT, .at = PSU(psu), "its number, as ibdiagnet has it"},
    {.name = "state", .type = FIELD_STR, .at = PSU(state), "what comes of all", .name_of = part_states},
    {.name = "bad", .type = FIELD_STR, .at = PSU(bad), "what is against it", .null = true},
    {.name = "dc", .type = FIELD_STR, .at = PSU(dc), "its DC side, in the device's words", .null = true},
    {.name = "fan", .type = FIELD_STR, .at = PSU(fan), "its fan, in the device's words", .null = true},
    {.name = "alert", .type = FIELD_STR, .at = PSU(alert), "its alert, in the device's words", .null = true},
    {.name = "serial", .type = FIELD_STR, .at = PSU(serial), "serial number", .null = true},
    {0},
};
static const struct schema schema_psu = {
    .name = "power_supply", "A power supply", sizeof(struct psu_row), psu_fields};

struct device_row {
    uint64_t guid;
    const char *name, *type, *role, *state, *rule, *why, *advice;
    int64_t rail, su, tier, since, sampled_at, alarm, failed;
    double celsius;
    bool old, silenced;
    struct items fans, psus;
};
#define ROW(f) offsetof(struct device_row, f)
static const struct field device_fields[] = {
    {.name = "guid", .type = FIELD_GUID, .at = ROW(guid), "NodeGUID"},
    {.name = "name", .type = FIELD_STR, .at = ROW(name), "its description"},
    {.name = "type", .type = FIELD_STR, .at = ROW(type), "what it is", .name_of = node_type_names},
    {.name = "role",
     .type = FIELD_STR,
     .at = ROW(role),
     "what it is in this fabric",
     .name_of = node_role_names},
    {.name = "rail", .type = FIELD_INT, .at = ROW(rail), "rail of a leaf or adapter", .null = true},
    {.name = "su", .type = FIELD_INT, .at = ROW(su), "scalable unit", .null = true},
    {.name = "tier", .type = FIELD_INT, .at = ROW(tier), "tier of a switch", .null = true},
    {.name = "state",
     .type = FIELD_STR,
     .at = ROW(state),
     "unknown: there is no source, or it is older than a day",
     .name_of = device_states},
    {.name = "rule", .type = FIELD_STR, .at = ROW(rule), "the rule that holds", .null = true},
    {.name = "why", .type = FIELD_STR, .at = ROW(why), "with numbers and limits", .null = true},
    {.name = "advice", .type = FIELD_STR, .at = ROW(advice), "what to do", .null = true},
    {.name = "since", .type = FIELD_TIME, .at = ROW(since), "since when it is so", .null = true},
    {.name = "alarm", .type = FIELD_INT, .at = ROW(alarm), "id of the alarm about it", .null = true},
    {.name = "silenced", .type = FIELD_BOOL, .at = ROW(silenced), "that alarm is silenced"},
    {.name = "celsius", .type = FIELD_NUM, .at = ROW(celsius), "temperature of its ASIC", .null = true},
    {.name = "failed", .type = FIELD_INT, .at = ROW(failed), "fans and power supplies that have failed"},
    {.name = "fans", .type = FIELD_LIST, .at = ROW(fans), "empty: none is known of", &schema_fan},
    {.name = "power_supplies", .type = FIELD_LIST, .at = ROW(psus), "empty: none is known of", &schema_psu},
    {.name = "sampled_at",
     .type = FIELD_TIME,
     .at = ROW(sampled_at),
     "when ibdiagnet has looked; null: no source",
     .null = true},
    {.name = "old",
     .type = FIELD_BOOL,
     .at = ROW(old),
     "that is more than a day ago: it says nothing of now"},
    {0},
};
const struct schema schema_device = {.name = "device",
                                     "A device's temperature, fans and power supplies, as ibdiagnet has seen "
                                     "them; nothing else tells of these",
                                     sizeof(struct device_row),
                                     device_fields};

const struct param device_params[] = {
    {.name = "all",
     .type = PARAM_BOOL,
     .doc = "all switches, and what else is known; else only what is not well"},
    {.name = "focus",
     .type = PARAM_STR,
     .doc = "only devices with these fields, in the focus language: celsius>70 or role=spine"},
    {0},
};

#define PARTS_MAX 256 // of one device in an answer
struct row_space {
    struct fan_row fan[PARTS_MAX];
    struct psu_row psu[PARTS_MAX];
};

static int64_t speed_or_null(int32_t v)
{
    return v < 0 ? NO_INT : v;
}

static void fill_parts(const struct tele_device *d, struct device_row *row, struct row_space *s)
{
    uint32_t fans = d->num_fans < PARTS_MAX ? d->num_fans : PARTS_MAX,
             psus = d->num_psus < PARTS_MAX ? d->num_psus : PARTS_MAX;
    for (uint32_t i = 0; i < fans; i++) {
        const struct tele_fan *f = &d->fan[i];
        s->fan[i] = (struct fan_row){f->index, speed_or_null(f->rpm), speed_or_null(f->min),
                                     tele_part_state_name(f->state)};
        row->failed += f->state == PART_FAILED;
    }
    for (uint32_t i = 0; i < psus; i++) {
        const struct tele_psu *p = &d->psu[i];
        s->psu[i] = (struct psu_row){p->index,
                                     tele_part_state_name(p->state),
                                     text_or_null(p->bad),
                                     text_or_null(p->dc),
                                     text_or_null(p->fan),
                                     text_or_null(p->alert),
                                     text_or_null(p->serial)};
        row->failed += p->state == PART_FAILED;
    }
    row->fans = (struct items){s->fan, fans};
    row->psus = (struct items){s->psu, psus};
}

static enum device_state state_of(const struct tele_view *w, uint64_t guid, const struct tele_device *d)
{
    struct device_view v;
    devices_view(tele_devices(w->tele), guid, &v);
    if (v.stands)
        return v.severity == ALARM_CRITICAL ? DEVICE_FAILING : DEVICE_DEGRADED;
    return d == NULL || tele_modules_age(w->tele, d->taken_ns) > TELE_MODULES_OLD_NS ? DEVICE_UNKNOWN
                                                                                     : DEVICE_HEALTHY;
}

static void fill(struct tele_view *w, const struct fabric *f, const struct node *n, enum device_state state,
                 struct device_row *row, struct row_space *s)
{
    const struct tele_device *d = tele_device(w->tele, n->guid);
    const struct alarm *alarm = tele_alarm_of(w, n->guid, 0);
    struct device_view v;

    devices_view(tele_devices(w->tele), n->guid, &v);
    *row = (struct device_row){
        .guid = n->guid,
        .name = fabric_desc(f, n),
        .type = node_type_word(n->type),
        .role = node_role_name((enum node_role)n->role),
        .rail = id_or_null(n->rail, RAIL_NONE),
        .su = id_or_null(n->su, SU_NONE),
        .tier = id_or_null(n->tier, TIER_NONE),
        .state = device_states[state],
        .rule = v.stands ? "L18" : NULL,
        .why = v.stands    ? v.reason
               : d == NULL ? "no source"
                           : NULL,
        .advice = v.stands ? alarm_rule("L18")->advice : NULL,
        .since = tele_wall(w, v.since),
        .alarm = v.stands && alarm != NULL ? (int64_t)alarm->id : NO_INT,
        .silenced = v.stands && alarm != NULL && alarm->silence != 0,
        .celsius = d != NULL ? d->celsius : (double)NAN,
        .sampled_at = d != NULL ? d->taken_ns : 0,
        .old = d != NULL && tele_modules_age(w->tele, d->taken_ns) > TELE_MODULES_OLD_NS,
    };
    if (d != NULL)
        fill_parts(d, row, s);
}

struct one {
    uint32_t node;
    enum device_state state;
    int64_t since;
};

// What has failed first, then the oldest.
static int worst_first(const void *a, const void *b)
{
    const struct one *x = a, *y = b;
    if (x->state != y->state)
        return x->state > y->state ? -1 : 1;
    if (x->since != y->since)
        return x->since < y->since ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

// Done a slice a turn.
struct devices_walk {
    struct slices s;
    struct tele_view w;
    struct sieve *focus;
    const struct fabric *f; // NULL: there is none yet
    bool all, sorted;
    uint32_t node, n; // looked at; of the list
    struct one *one;
    struct list l;
    uint64_t skip, i;
};

static bool gather(struct devices_walk *k)
{
    const struct fabric *f = k->f;
    for (; f != NULL && k->node < f->num_nodes; k->node++) {
        const struct node *n = &f->node[k->node];
        struct device_view v;
        if (slice_over(&k->s))
            return false;
        const struct tele_device *d = tele_device(k->w.tele, n->guid);
        enum device_state s = state_of(&k->w, n->guid, d);
        if (s < DEVICE_DEGRADED && (!k->all || (d == NULL && n->type != NODE_SWITCH)))
            continue;
        devices_view(tele_devices(k->w.tele), n->guid, &v);
        k->one[k->n++] = (struct one){k->node, s, v.since};
    }
    return true;
}

static bool named(const void *row, const void *end, const char *word)
{
    const struct device_row *x = row;
    (void)end;
    return place_named(&(struct place_row){.guid = x->guid, .name = x->name, .rail = x->rail, .port = NO_INT},
                       word);
}

#define PAGE_MAX 250
#define LOOKED_MAX 5000 // with a focus

static void begin_list(struct devices_walk *k)
{
    qsort(k->one, k->n, sizeof(*k->one), worst_first);
    k->sorted = true;
    list_begin(&k->l, k->s.r, &schema_device);
    k->l.limit = k->l.limit < PAGE_MAX ? k->l.limit : PAGE_MAX;
}

static bool devices_step(struct slices *s)
{
    struct devices_walk *k = (struct devices_walk *)s;
    struct device_row row;
    struct row_space space;
    char next[24];

    if (!tele_view_again(s->r, &k->w))
        return true;
    if (!gather(k))
        return false;
    if (!k->sorted)
        begin_list(k);
    for (; k->i < k->n && !list_full(&k->l) && (k->focus == NULL || k->i - k->skip < LOOKED_MAX); k->i++) {
        if (slice_over(s))
            return false;
        fill(&k->w, k->f, &k->f->node[k->one[k->i].node], k->one[k->i].state, &row, &space);
        if (sieve_has(k->focus, &row))
            list_item(&k->l, &row);
    }
    list_end(&k->l, k->i < k->n ? number_text(k->i, next) : NULL, k->focus == NULL ? (int64_t)k->n : NO_INT,
             k->f != NULL ? (int64_t)k->f->generation : NO_INT, k->w.st.last_wall_ns);
    return true;
}

static void devices_walk_free(struct slices *s)
{
    struct devices_walk *k = (struct devices_walk *)s;
    tele_view_done(&k->w);
    sieve_free(k->focus);
    fabric_unref(k->f);
    free(k->one);
    free(k);
}

void get_devices(struct request *r)
{
    static const struct sieve_rows rows = {.row = &schema_device, .named = named};
    struct tele_view w;
    struct sieve *focus;
    uint64_t skip;

    if (!tele_view_of(r, &w) || !cursor_number(r, &skip) || !query_focus_of(r, &rows, NULL, &focus))
        return;
    const struct fabric *f = view_fabric(w.v);
    struct devices_walk *k = xcalloc(1, sizeof(*k));
    k->s.step = devices_step;
    k->s.free = devices_walk_free;
    k->w = w;
    k->focus = focus;
    k->f = f != NULL ? fabric_ref(f) : NULL;
    k->all = query_bool(r, "all");
    k->one = xcalloc((f != NULL ? f->num_nodes : 0) + 1ul, sizeof(*k->one));
    k->skip = k->i = skip;
    slices_run(r, &k->s);
}
