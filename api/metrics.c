// SPDX-License-Identifier: Apache-2.0
// /metrics: what Prometheus and those like it read. The loop copies what is on the page, a few thousand ports
// a turn, and renders weft's own families; a worker makes text of it, compressed if the client takes that.
// Names and labels are kept from page to page until the fabric changes.
//
//     /metrics                everything; ?shard=I&of=N: devices of one share of N; ?class=errors,traffic,...
//     /metrics/switch/{guid}  the ports of one switch
//     /metrics/targets        shards as a list of targets for Prometheus' http_sd; ?of=N
//
// Outside /api/v1, for that is where scrapers look. Everybody may read it who may read the API.
#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "api/api_priv.h"
#include "api/metrics_own.h"
#include "api/metrics_render.h"
#include "lib/xalloc.h"
#include "telemetry/rate.h"
#include "telemetry/telemetry.h"

#define TEXT_MAX (256u << 20)  // of a page, as it is sent
#define SLICE_NS (3 * MONO_MS) // of a turn of the loop
#define LOOK_EVERY 128         // slots or alarms between two looks at the clock
#define SHARDS_MAX 4096
#define PORTS_A_SHARD 4096

struct metrics_names { // of one fabric, and rendered; references are the loop's alone
    unsigned refs;
    const struct tele_names *names;
    struct metrics_labels labels, guilbaults; // the latter empty unless asked for
};

struct metrics_part_of { // one fabric's part of a page
    struct view *v;
    struct metrics_copy copy;
    struct metrics_names *names; // NULL until the worker has made them
    bool fresh;                  // … which it has
    struct tele_key *key;        // to make them of
    uint32_t num_keys;
    const struct fabric *known; // the blueprint
    uint32_t next;              // slot
};
struct metrics_job {
    struct later later;
    bool openmetrics, gzip, guilbaults;
    unsigned classes;
    struct metrics_part_of *part;
    struct metrics_copy *copy; // of the parts, one after the other
    unsigned n, at;            // fabrics; the one that is copied now
    struct metrics_page own, page;
    struct metrics_alarms *alarms; // NULL: none, or all are on the page
    mono_t until;                  // of this turn
};

// --- names, from page to page ---

static void names_unref(struct metrics_names *n)
{
    if (n == NULL || --n->refs > 0)
        return;
    tele_names_free(n->names);
    metrics_labels_done(&n->labels);
    metrics_labels_done(&n->guilbaults);
    free(n);
}

void metrics_view_done(struct view *v)
{
    names_unref(v->metrics);
    v->metrics = NULL;
}

static bool names_fit(const struct metrics_names *n, const struct metrics_part_of *x, uint32_t slots)
{
    return n != NULL && n->names->num == slots && n->names->f == x->copy.f && n->names->known == x->known;
}

// What is not known yet is left to the worker.
static void take_names(struct metrics_part_of *x, const struct tele_table *t)
{
    uint32_t slots = t != NULL ? t->num : 0;
    if (names_fit(x->v->metrics, x, slots)) {
        x->names = x->v->metrics;
        x->names->refs++;
        return;
    }
    x->num_keys = slots;
    x->key = xcalloc(slots + 1ul, sizeof(*x->key));
    for (uint32_t i = 0; i < slots; i++)
        x->key[i] = (struct tele_key){t->port[i].node_guid, t->port[i].num};
}

static void make_names(struct metrics_part_of *x, bool guilbaults)
{
    if (x->names != NULL)
        return;
    x->names = xcalloc(1, sizeof(*x->names));
    x->names->refs = 1;
    x->names->names = tele_names_new(x->key, x->num_keys, x->copy.f, x->known);
    metrics_labels_make(&x->names->labels, x->names->names, x->copy.fabric);
    if (guilbaults)
        metrics_labels_guilbaults(&x->names->guilbaults, x->names->names, x->copy.fabric);
    x->fresh = true;
}

static void keep_names(struct metrics_part_of *x)
{
    if (!x->fresh)
        return;
    names_unref(x->v->metrics);
    x->v->metrics = x->names;
    x->names->refs++;
}

// --- copying ---

static double known_or_nan(const struct tele_table *t, uint32_t slot, double v)
{
    return t->port[slot].unread == TELE_READ ? v : NAN;
}

static void copy_meaning(struct metrics_port *p, const struct tele_table *t, struct health *h)
{
    struct tele_use use;
    tele_use(t, p->slot, &use);
    p->xmit_used = known_or_nan(t, p->slot, use.xmit_used);
    p->rcv_used = known_or_nan(t, p->slot, use.rcv_used);
    p->held = known_or_nan(t, p->slot, use.held);
    p->lost_bps = known_or_nan(t, p->slot, use.lost_bps);
    p->symbol_ber = p->raw_ber = NAN;
    p->health = HEALTH_UNKNOWN;
    if (h == NULL)
        return;
    p->health = (uint8_t)health_state_at(h, t, p->slot);
    health_ratios(h, p->slot, &p->symbol_ber, &p->raw_ber);
}

// Room is made at once as far as it can be foreseen: what grows is copied again and again.
static uint32_t first_room(const struct metrics_copy *c, uint32_t slots)
{
    return c->part.guid != 0 ? 256 : slots / c->part.of + slots / c->part.of / 4 + 1024;
}

static void copy_slot(struct metrics_copy *c, const struct tele_table *t, struct health *h, uint32_t slot)
{
    if (c->num == c->cap) {
        c->cap = c->cap ? c->cap * 2 : first_room(c, t->num);
        c->port = xreallocarray(c->port, c->cap, sizeof(*c->port));
        c->have = xreallocarray(c->have, c->cap, sizeof(*c->have));
        c->value = xreallocarray(c->value, c->cap, TELE_COUNTERS * sizeof(*c->value));
    }
    struct metrics_port *p = &c->port[c->num];
    *p = (struct metrics_port){.slot = slot, .unread = t->port[slot].unread};
    copy_meaning(p, t, h);
    c->have[c->num] = t->have[slot];
    memcpy(&c->value[(uint64_t)c->num * TELE_COUNTERS], &t->value[(uint64_t)slot * TELE_COUNTERS],
           TELE_COUNTERS * sizeof(*c->value));
    c->num++;
}

static void copy_free(struct metrics_copy *c)
{
    free(c->port);
    free(c->have);
    free(c->value);
    c->port = NULL;
    c->have = NULL;
    c->value = NULL;
    c->num = c->cap = 0;
}

// Slots that came after the names were taken are for the next page.
static bool copy_slice(struct metrics_part_of *x, mono_t until)
{
    struct tele *tele = x->v->src->tele;
    const struct tele_table *t = tele != NULL ? tele_table(tele) : NULL;
    uint32_t end = x->names != NULL ? x->names->names->num : x->num_keys;
    if (t == NULL || t->num < end)
        return true;
    struct health *h = tele_health(tele);
    for (uint32_t k = 1; x->next < end; k++, x->next++) {
        if (k % LOOK_EVERY == 0 && mono_sub(mono_now(), until) >= 0)
            return false;
        if (metrics_part_has(&x->copy.part, t->port[x->next].node_guid))
            copy_slot(&x->copy, t, h, x->next);
    }
    return true;
}

static bool prepare(struct later *l)
{
    struct metrics_job *m = (struct metrics_job *)l;
    m->until = mono_add(mono_now(), SLICE_NS);
    if (m->alarms != NULL) {
        if (!metrics_alarms_some(m->alarms, &m->own, LOOK_EVERY, m->until))
            return false;
        metrics_alarms_free(m->alarms);
        m->alarms = NULL;
    }
    if ((m->classes & ~(1u << METRICS_OWN)) == 0) // weft's own is rendered already
        m->at = m->n;
    if (m->at < m->n && copy_slice(&m->part[m->at], m->until))
        m->at++;
    return m->at == m->n;
}

// --- the worker ---

static void work(struct later *l, struct par *par)
{
    struct metrics_job *m = (struct metrics_job *)l;
    (void)par;
    for (unsigned i = 0; i < m->n; i++) {
        make_names(&m->part[i], m->guilbaults);
        m->copy[i] = m->part[i].copy;
        m->copy[i].known = m->part[i].known;
        m->copy[i].names = m->part[i].names->names;
        m->copy[i].labels = &m->part[i].names->labels;
        m->copy[i].guilbaults = m->guilbaults ? &m->part[i].names->guilbaults : NULL;
    }
    metrics_page_init(&m->page, m->openmetrics, m->gzip, TEXT_MAX);
    metrics_render(&m->page, m->copy, m->n, m->classes);
    for (unsigned i = 0; i < m->n; i++) // tens of megabytes: that takes time too
        copy_free(&m->part[i].copy);
    metrics_page_add(&m->page, &m->own);
    metrics_page_end(&m->page);
}

static void answer(struct later *l, struct request *r)
{
    struct metrics_job *m = (struct metrics_job *)l;
    for (unsigned i = 0; i < m->n; i++)
        keep_names(&m->part[i]);
    if (m->page.over) {
        answer_problem(
            r, 413, "the page has more than %u MB; ask for shards (/metrics/targets lists them), or for gzip",
            TEXT_MAX >> 20);
        return;
    }
    r->status = 200;
    r->type = m->openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                             : "text/plain; version=0.0.4; charset=utf-8";
    size_t n = m->page.out.len;
    char *text = buf_take(&m->page.out);
    r->response = http_response(text, n);
    if (r->response == NULL) {
        free(text);
        answer_problem(r, 503, "there is no memory for the answer");
        return;
    }
    MHD_add_response_header(r->response, "Vary", "Accept, Accept-Encoding");
    if (m->page.gzip)
        MHD_add_response_header(r->response, "Content-Encoding", "gzip");
}

static void job_free(struct later *l)
{
    struct metrics_job *m = (struct metrics_job *)l;
    for (unsigned i = 0; i < m->n; i++) {
        struct metrics_part_of *x = &m->part[i];
        names_unref(x->names);
        fabric_unref(x->copy.f);
        tele_modules_free(x->copy.modules);
        fabric_unref(x->known);
        free(x->key);
        copy_free(&x->copy);
    }
    metrics_alarms_free(m->alarms);
    metrics_page_done(&m->own);
    metrics_page_done(&m->page);
    free(m->part);
    free(m->copy);
    free(m);
}

// --- requests ---

// The weight of a type in an Accept header ("text/plain;q=0.5"), of its first mention; -1 when it is not
// there.
static double accepted(const char *header, const char *type)
{
    size_t n = strlen(type);
    for (const char *at = header; at != NULL; at = strchr(at, ',')) {
        at += strspn(at, ", \t");
        if (strncasecmp(at, type, n) != 0 || strchr(";, \t", at[n]) == NULL)
            continue;
        size_t len = strcspn(at, ",");
        const char *q = memmem(at, len, "q=", 2);
        return q != NULL ? strtod(q + 2, NULL) : 1;
    }
    return -1;
}

static bool wants_openmetrics(const struct request *r)
{
    const char *h = http_header(r, "Accept");
    double om = h != NULL ? accepted(h, "application/openmetrics-text") : -1;
    return om > 0 && om > accepted(h, "text/plain");
}

static bool takes_gzip(const struct request *r)
{
    const char *h = http_header(r, "Accept-Encoding");
    return h != NULL && accepted(h, "gzip") > 0;
}

static bool number(struct request *r, const char *name, uint32_t most, uint32_t *ret)
{
    const char *v = query_str(r, name);
    size_t n = v != NULL ? strlen(v) : 0;
    if (v == NULL)
        return true;
    if (n <= 9 && strspn(v, "0123456789") == n && strtoul(v, NULL, 10) <= most) {
        *ret = (uint32_t)strtoul(v, NULL, 10);
        return true;
    }
    answer_problem(r, 400, "parameter \"%s\" must be a whole number up to %u, not \"%.60s\"", name, most, v);
    return false;
}

static bool read_classes(struct request *r, unsigned *ret)
{
    static const char *const name[METRICS_CLASSES] = {"traffic", "errors", "info", "weft"};
    const char *v = query_str(r, "class");
    *ret = v != NULL ? 0 : METRICS_ALL;
    while (v != NULL && *v != 0) {
        size_t n = strcspn(v, ",");
        unsigned i = 0;
        while (i < METRICS_CLASSES && (strlen(name[i]) != n || memcmp(name[i], v, n) != 0))
            i++;
        if (i == METRICS_CLASSES) {
            answer_problem(r, 400,
                           "parameter \"class\" must be of traffic, errors, info, weft, separated by commas, "
                           "not \"%.60s\"",
                           v);
            return false;
        }
        *ret |= 1u << i;
        v += n + (v[n] == ',');
    }
    return true;
}

static bool known_params(struct request *r, const char *const *name)
{
    for (unsigned i = 0; i < r->uri.num_params; i++) {
        unsigned k = 0;
        while (name[k] != NULL && strcmp(name[k], r->uri.param[i].name) != 0)
            k++;
        if (name[k] != NULL)
            continue;
        answer_problem(r, 400, "unknown parameter \"%.60s\"", r->uri.param[i].name);
        return false;
    }
    return true;
}

static bool read_shard(struct request *r, struct metrics_part *ret)
{
    *ret = (struct metrics_part){.of = 1};
    if (!number(r, "of", SHARDS_MAX, &ret->of) || !number(r, "shard", SHARDS_MAX, &ret->shard))
        return false;
    if (ret->of > 0 && ret->shard < ret->of)
        return true;
    answer_problem(r, 400, "shard %u of %u is none: shards are counted from 0", ret->shard, ret->of);
    return false;
}

static void begin_part(struct metrics_part_of *x, struct view *v, const struct metrics_part *part, bool named)
{
    const struct fabric *f = view_fabric(v);
    const struct api_fabric *src = v->src;
    struct sm_blueprint b = {0};

    x->v = v;
    x->copy = (struct metrics_copy){.f = f != NULL ? fabric_ref(f) : NULL, .part = *part};
    x->copy.fabric = named ? src->name : NULL;
    if (src->tele != NULL && tele_modules_of(src->tele) != NULL) {
        x->copy.modules = tele_modules_ref(tele_modules_of(src->tele));
        x->copy.modules_from_ns = wall_now_ns() - TELE_MODULES_OLD_NS;
    }
    if (src->sm != NULL)
        sm_get_blueprint(src->sm, &b);
    x->known = b.known != NULL ? fabric_ref(b.known) : NULL;
    take_names(x, src->tele != NULL ? tele_table(src->tele) : NULL);
}

static void start(struct request *r, const struct metrics_part *part, unsigned classes)
{
    struct api *a = r->api;
    if (!later_room(r, LATER_METRICS))
        return;
    struct metrics_job *m = xcalloc(1, sizeof(*m));
    m->later = (struct later){
        .lane = LATER_METRICS, .prepare = prepare, .work = work, .answer = answer, .free = job_free};
    m->openmetrics = wants_openmetrics(r);
    m->gzip = takes_gzip(r);
    m->guilbaults = a->c.metrics_guilbaults;
    m->classes = classes;
    m->n = a->c.num_fabrics;
    m->part = xcalloc(m->n + 1ul, sizeof(*m->part));
    m->copy = xcalloc(m->n + 1ul, sizeof(*m->copy));
    for (unsigned i = 0; i < m->n; i++)
        begin_part(&m->part[i], &a->view[i], part, m->n > 1);
    metrics_page_init(&m->own, m->openmetrics, false, TEXT_MAX);
    if (classes >> METRICS_OWN & 1 && part->shard == 0 && part->guid == 0)
        m->alarms = metrics_own(&m->own, a);
    later_start(r, &m->later);
}

static void get_page(struct request *r)
{
    static const char *const known[] = {"shard", "of", "class", NULL};
    struct metrics_part part;
    unsigned classes;
    if (known_params(r, known) && read_shard(r, &part) && read_classes(r, &classes))
        start(r, &part, classes);
}

static const struct node *find_switch(struct api *a, const char *text, struct err *e)
{
    struct place at;
    err_set(e, -ENOENT, text, "there is no such switch");
    for (unsigned i = 0; i < a->c.num_fabrics; i++) {
        const struct fabric *f = view_fabric(&a->view[i]);
        if (f != NULL && resolve(f, text, 0, &at, e) == 0)
            return at.node;
    }
    return NULL;
}

static void get_switch(struct request *r, const char *text)
{
    static const char *const known[] = {"class", NULL};
    struct err e = {0};
    unsigned classes;
    if (!known_params(r, known) || !read_classes(r, &classes))
        return;
    const struct node *n = find_switch(r->api, text, &e);
    if (n == NULL)
        answer_unresolved(r, "switch", e.code, &e);
    else
        start(r, &(struct metrics_part){.of = 1, .guid = n->guid}, classes);
}

// Powers of two, so that a few more ports do not make other targets of all.
static uint32_t shards_for(const struct api *a)
{
    uint64_t ports = 0;
    uint32_t n = 1;
    for (unsigned i = 0; i < a->c.num_fabrics; i++)
        if (a->c.fabric[i]->tele != NULL && tele_table(a->c.fabric[i]->tele) != NULL)
            ports += tele_table(a->c.fabric[i]->tele)->num;
    while (n < SHARDS_MAX && (uint64_t)n * PORTS_A_SHARD < ports)
        n *= 2;
    return n;
}

static void get_targets(struct request *r)
{
    static const char *const known[] = {"of", NULL};
    const char *host = http_header(r, "Host");
    char own[100];
    uint32_t of = 0;

    if (!known_params(r, known) || !number(r, "of", SHARDS_MAX, &of))
        return;
    if (of == 0)
        of = shards_for(r->api);
    snprintf(own, sizeof(own), strchr(r->api->address, ':') ? "[%s]:%d" : "%s:%d", r->api->address,
             r->api->port);
    if (r->listener->is_unix || host == NULL)
        host = own;
    r->status = 200;
    r->type = "application/json";
    buf_putc(&r->out, '[');
    for (uint32_t i = 0; i < of; i++) {
        buf_puts(&r->out, i > 0 ? ",\n{\"targets\":[" : "{\"targets\":[");
        json_put_string(&r->out, host, strlen(host));
        buf_puts(&r->out, "],\"labels\":{\"__metrics_path__\":\"/metrics\"");
        if (of > 1)
            buf_printf(&r->out, ",\"__param_shard\":\"%u\",\"__param_of\":\"%u\",\"shard\":\"%u\"", i, of, i);
        buf_puts(&r->out, "}}");
    }
    buf_puts(&r->out, "]\n");
}

bool metrics_request(struct request *r)
{
    const struct uri *u = &r->uri;
    const char *second = u->num_segments > 1 ? u->segment[1] : "";

    if (u->num_segments == 0 || strcmp(u->segment[0], "metrics") != 0)
        return false;
    if (strcmp(r->method, "GET") != 0 && strcmp(r->method, "HEAD") != 0) {
        snprintf(r->allow, sizeof(r->allow), "GET, HEAD");
        answer_problem(r, 405, "%.20s is not for this resource; it takes %s", r->method, r->allow);
    } else if (u->num_segments == 1) {
        get_page(r);
    } else if (u->num_segments == 2 && strcmp(second, "targets") == 0) {
        get_targets(r);
    } else if (u->num_segments == 3 && strcmp(second, "switch") == 0) {
        get_switch(r, u->segment[2]);
    } else {
        answer_problem(r, 404, "there is /metrics, /metrics/switch/{guid} and /metrics/targets");
    }
    return true;
}
