// SPDX-License-Identifier: Apache-2.0
#include "api/facts.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/when.h"
#include "lib/word.h"

const char *const link_kinds[] = {"host", "trunk", NULL};

// --- the collector ---

bool tele_view_at(struct api *a, struct view *v, struct tele_view *ret)
{
    *ret = (struct tele_view){.api = a, .v = v, .tele = v->src->tele};
    if (ret->tele == NULL)
        return false;
    ret->t = tele_table(ret->tele);
    ret->slots = ret->t->num;
    tele_get_status(ret->tele, &ret->st);
    ret->wall_less_loop = wall_now_ns() - loop_now(a->c.loop).ns;
    return true;
}

bool tele_view_of(struct request *r, struct tele_view *ret)
{
    struct view *v = r->view;
    if (tele_view_at(r->api, v, ret))
        return true;
    if (v->src->sm == NULL)
        answer_unmanaged(r);
    else
        answer_problem(r, 409,
                       "no counters of fabric %s are collected: telemetry.interval is 0s in weft.yaml",
                       v->src->name);
    return false;
}

bool tele_view_again(struct request *r, struct tele_view *w)
{
    const struct tele *t = w->v->src->tele;
    tele_view_done(w); // the list of alarms may be another
    if (t == w->tele && t != NULL && tele_table(t)->num >= w->slots)
        return true;
    answer_problem(r, 503, "collecting counters of fabric %s has begun anew meanwhile; ask again",
                   w->v->src->name);
    return false;
}

void tele_view_done(struct tele_view *w)
{
    if (w->alarms_known)
        u64map_done(&w->alarm);
    w->alarms_known = false;
}

int64_t tele_wall(const struct tele_view *w, int64_t loop_ns)
{
    return loop_ns != 0 ? loop_ns + w->wall_less_loop : 0;
}

static uint64_t place_key(uint64_t guid, unsigned port)
{
    return hash_mix64(guid) ^ port;
}

static void learn_alarms(struct tele_view *w)
{
    const struct alarm *list = NULL;
    uint32_t n = w->api->c.alarms != NULL ? alarms_list(w->api->c.alarms, &list) : 0;
    w->alarms_known = true;
    u64map_init(&w->alarm, NULL, 2 * n + 1);
    for (uint32_t i = n; i-- > 0;) // worst first: what is set last stays
        for (int end = 0; end < 2; end++)
            if (list[i].active && list[i].node_guid[end] != 0 && strcmp(list[i].fabric, w->v->src->name) == 0)
                u64map_set(&w->alarm, place_key(list[i].node_guid[end], list[i].port[end]), i);
}

const struct alarm *tele_alarm_of(struct tele_view *w, uint64_t guid, unsigned port)
{
    const struct alarm *list = NULL;
    uint32_t i;
    if (w->api->c.alarms == NULL)
        return NULL;
    if (!w->alarms_known)
        learn_alarms(w);
    return u64map_get(&w->alarm, place_key(guid, port), &i) && i < alarms_list(w->api->c.alarms, &list)
               ? &list[i]
               : NULL;
}

// --- ports as rows ---

// A node that is gone has its name from the fabric as the view has it, or the blueprint, if that still knows
// it.
static const struct node *known_node(const struct tele_view *w, uint64_t guid, const struct fabric **ret)
{
    struct sm_blueprint bp = {0};
    if (w->v->src->sm != NULL)
        sm_get_blueprint(w->v->src->sm, &bp);
    const struct fabric *in[] = {w->t->fabric, view_fabric(w->v), bp.known};
    for (unsigned i = 0; i < 3; i++) {
        const struct node *n = in[i] != NULL ? fabric_by_guid(in[i], guid) : NULL;
        if (n != NULL) {
            *ret = in[i];
            return n;
        }
    }
    return NULL;
}

uint32_t tele_far(const struct tele_view *w, uint32_t slot)
{
    uint32_t far = w->t->port[slot].peer;
    if (far >= w->t->num && tele_health(w->tele) != NULL)
        far = health_peer(tele_health(w->tele), slot);
    return far < w->t->num ? far : TELE_SLOT_NONE;
}

static void fill_node(const struct tele_view *w, struct spot *s)
{
    const struct fabric *f;
    const struct node *n = known_node(w, s->guid, &f);
    if (n == NULL)
        return;
    s->name = fabric_desc(f, n);
    s->type = node_type_word(n->type);
    s->role = node_role_name((enum node_role)n->role);
    s->rail = id_or_null(n->rail, RAIL_NONE);
    s->su = id_or_null(n->su, SU_NONE);
    s->tier = id_or_null(n->tier, TIER_NONE);
}

static void fill_peer(const struct tele_view *w, uint32_t slot, struct spot *s)
{
    const struct tele_port *tp = &w->t->port[slot];
    const struct fabric *f = w->t->fabric;
    uint32_t far = tele_far(w, slot);
    if (far != TELE_SLOT_NONE) { // or where the cable led when it was last seen
        const struct tele_port *q = &w->t->port[far];
        const struct node *m = known_node(w, q->node_guid, &f);
        s->peer_space =
            (struct end_row){.guid = q->node_guid, .name = m ? fabric_desc(f, m) : "", .port = q->num};
        s->kind = link_kinds[q->of_switch && tp->of_switch];
    } else if (f != NULL && tp->port < f->num_ports && port_valid(f->port[tp->port].peer)) {
        const struct port *q = fabric_port(f, f->port[tp->port].peer);
        const struct node *m = fabric_node(f, q->node);
        s->peer_space = (struct end_row){.guid = m->guid, .name = fabric_desc(f, m), .port = q->num};
        s->kind = link_kinds[m->type == NODE_SWITCH && tp->of_switch];
    } else {
        return;
    }
    s->peer = &s->peer_space;
}

void spot_fill(const struct tele_view *w, uint32_t slot, struct spot *s)
{
    const struct tele_port *tp = &w->t->port[slot];
    const struct fabric *f = w->t->fabric;

    *s = (struct spot){.guid = tp->node_guid,
                       .name = "",
                       .port = tp->num,
                       .rail = NO_INT,
                       .su = NO_INT,
                       .tier = NO_INT,
                       .gbps = tp->rate_mbps ? tp->rate_mbps / 1000.0 : (double)NAN};
    fill_node(w, s);
    if (f != NULL && tp->port < f->num_ports && f->port[tp->port].rail != RAIL_NONE)
        s->rail = f->port[tp->port].rail;
    fill_peer(w, slot, s);
}

const char *spot_text(const struct spot *s, char ret[PLACE_TEXT])
{
    if (s->name[0] != 0)
        snprintf(ret, PLACE_TEXT, "%.200s/%lld", s->name, (long long)s->port);
    else
        snprintf(ret, PLACE_TEXT, GUID_FMT "/%lld", GUID_ARG(s->guid), (long long)s->port);
    return ret;
}

// --- what people write ---

// Length of the node's part of "NODE/NUM" or "NODE[NUM]"; 0: there is no port in it.
static size_t split(const char *text, int *ret_port)
{
    size_t len = strlen(text);
    bool bracket = len > 0 && text[len - 1] == ']';
    const char *at = strrchr(text, bracket ? '[' : '/');
    char *end;
    if (at == NULL || at == text || at[1] < '0' || at[1] > '9' || strlen(at + 1) > 4)
        return 0;
    long v = strtol(at + 1, &end, 10);
    if (end != text + len - bracket || v > 254)
        return 0;
    *ret_port = (int)v;
    return (size_t)(at - text);
}

static int node_parse(const struct fabric *f, const char *text, uint64_t *ret_guid, int *ret_port,
                      struct err *e)
{
    struct place at;
    struct err why = {0};
    int rc = f != NULL ? resolve(f, text, 0, &at, &why) : -ENOENT;
    if (rc == 0) {
        *ret_guid = at.node->guid;
        // A PortGUID means its port.
        if (port_valid(at.port) && *ret_port < 0 && at.node->num_ports > 1)
            *ret_port = fabric_port(f, at.port)->num;
        return 0;
    }
    if (guid_parse(text, ret_guid) == 0 && strlen(text) > 6)
        return 0;
    if (f == NULL)
        return err_set(e, -ENOENT, text, "no GUID; names are known when the fabric has been discovered");
    *e = why;
    return rc;
}

int port_parse(const struct fabric *f, const char *text, uint64_t *ret_guid, int *ret_port, struct err *e)
{
    char node[200];
    int port = -1, number = -1;
    uint64_t guid;
    size_t n = split(text, &number);

    // "gpu-0001/3" may be a node's name.
    if (n == 0 || n >= sizeof(node) ||
        (f != NULL && resolve(f, text, 0, &(struct place){0}, &(struct err){0}) == 0 &&
         text[strlen(text) - 1] != ']')) {
        int rc = node_parse(f, text, &guid, &port, e);
        if (rc != 0)
            return rc;
    } else {
        snprintf(node, sizeof(node), "%.*s", (int)n, text);
        int rc = node_parse(f, node, &guid, &port, e);
        if (rc != 0)
            return rc;
        port = number;
    }
    *ret_guid = guid;
    *ret_port = port;
    return 0;
}

int view_port_parse(struct view *v, const char *text, uint64_t *ret_guid, int *ret_port, struct err *e)
{
    const struct fabric *known = view_known(v);
    int rc = port_parse(view_fabric(v), text, ret_guid, ret_port, e);
    if (rc == -ENOENT && known != NULL && port_parse(known, text, ret_guid, ret_port, &(struct err){0}) == 0)
        rc = 0;
    return rc;
}

const struct node *view_away(struct view *v, uint64_t guid)
{
    const struct fabric *f = view_fabric(v), *known = view_known(v);
    return known == NULL || (f != NULL && fabric_by_guid(f, guid) != NULL) ? NULL
                                                                           : fabric_by_guid(known, guid);
}

const char *view_node_name(struct view *v, uint64_t guid)
{
    const struct fabric *f[] = {view_fabric(v), view_known(v)};
    for (unsigned i = 0; i < 2; i++) {
        const struct node *n = f[i] != NULL ? fabric_by_guid(f[i], guid) : NULL;
        if (n != NULL)
            return fabric_desc(f[i], n);
    }
    return "";
}

static const char *counter_name(const void *arg, unsigned i)
{
    (void)arg;
    return i < TELE_COUNTERS ? tele_rows[i].name : NULL;
}

const char *counter_nearest(const char *name)
{
    char low[65];
    snprintf(low, sizeof(low), "%.64s", name);
    for (char *p = low; *p != 0; p++)
        *p = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p == '-' ? '_' : *p;
    return word_nearest(low, counter_name, NULL);
}

int counter_of(struct request *r, const char *name)
{
    int c = tele_counter_by_name(name);
    if (c >= 0)
        return c;
    const char *near = counter_nearest(name);
    if (near != NULL)
        answer_problem(r, 400, "no counter \"%.60s\"; did you mean \"%s\"? " API_BASE "/counters lists all",
                       name, near);
    else
        answer_problem(r, 400, "no counter \"%.60s\"; " API_BASE "/counters lists all", name);
    return -1;
}

static bool all_digits(const char *s)
{
    size_t n = strlen(s);
    return n > 0 && n <= 15 && strspn(s, "0123456789") == n;
}

bool query_when(struct request *r, const char *name, int64_t def_ms, int64_t *ret_ms)
{
    const char *s = query_str(r, name);
    int64_t v;
    *ret_ms = def_ms;
    if (s == NULL)
        return true;
    if (all_digits(s)) {
        *ret_ms = strtoll(s, NULL, 10);
        return true;
    }
    if (when_read(s, wall_now_ns(), false, &v) == 0) {
        *ret_ms = v / MONO_MS;
        return true;
    }
    if (when_parse_age(s, &v) == 0) {
        *ret_ms = wall_now_ns() / MONO_MS - v * 1000;
        return true;
    }
    answer_problem(r, 400,
                   "parameter \"%s\" must be a time (2026-01-31T10:20:30Z), an age (90s, 10m, 2h, 3d) or "
                   "milliseconds since 1970, not \"%.60s\"",
                   name, s);
    return false;
}

bool query_span(struct request *r, const char *name, int64_t def_ms, int64_t *ret_ms)
{
    const char *s = query_str(r, name);
    int64_t v;
    *ret_ms = def_ms;
    if (s == NULL)
        return true;
    if (all_digits(s) && strlen(s) <= 9) {
        *ret_ms = strtoll(s, NULL, 10) * 1000;
        return true;
    }
    if (when_parse_age(s, &v) == 0) {
        *ret_ms = v * 1000;
        return true;
    }
    answer_problem(r, 400, "parameter \"%s\" must be a time such as 10s, 5m, 1h, not \"%.60s\"", name, s);
    return false;
}

#define WORDS_MAX 16u // each is looked up

// A word that names nothing would seem to say that nothing is wrong.
static bool check_words(struct request *r, const struct sieve *s, bool (*other)(const char *word))
{
    const char *word;
    struct err e = {0};
    if (sieve_bare(s, WORDS_MAX) != NULL) {
        answer_problem(r, 400, "more than %u names in one focus; a pattern may stand for many: leaf-su01-*",
                       WORDS_MAX);
        return false;
    }
    for (unsigned i = 0; (word = sieve_bare(s, i)) != NULL; i++)
        if ((other == NULL || !other(word)) && place_word(r->api, r->view, word, &e) != 0) {
            answer_problem(r, 404, "%s: %s", e.where, e.text);
            return false;
        }
    return true;
}

bool query_focus_of(struct request *r, const struct sieve_rows *rows, bool (*other)(const char *word),
                    struct sieve **ret)
{
    const char *text = query_str(r, "focus");
    struct err e = {0};
    *ret = NULL;
    if (text == NULL)
        return true;
    struct sieve *s = sieve_new_of(text, rows, &e);
    if (s == NULL)
        answer_problem(r, 400, "%s: %s", e.where, e.text);
    else if (check_words(r, s, other))
        *ret = s;
    else
        sieve_free(s);
    return *ret != NULL;
}

// --- ports by what does not change with each sweep ---

static const struct field port_fields[] = {SPOT_FIELDS, {0}};
static const struct schema schema_port_of = {
    .name = "port_of", "What a focus knows", sizeof(struct spot), port_fields};

bool query_port_focus(struct request *r, struct sieve **ret)
{
    static const struct sieve_rows rows = {
        .row = &schema_port_of, .end = &schema_facts, .named = place_is_named, .part = facts_part};
    return query_focus_of(r, &rows, NULL, ret);
}

bool tele_end_wanted(struct tele_view *w, struct sieve *focus, const void *row, uint64_t guid, unsigned port)
{
    return facts_wanted(w->api, w->v->src->name, w, focus, row, guid, port);
}

bool tele_focus_has(struct tele_view *w, struct sieve *focus, uint32_t slot)
{
    struct spot spot;
    spot_fill(w, slot, &spot);
    return tele_end_wanted(w, focus, &spot, spot.guid, (unsigned)spot.port);
}
