// SPDX-License-Identifier: Apache-2.0
// Adaptive routing on switches that have it (option experimental_adaptive_routing): for each destination a
// group of ports, of which the switch takes the one that is free. What is in the groups is routing/groups.h's
// business, attributes and what is not known of them mad/adaptive.h's.
//
// Two rules keep every moment as safe as tables alone are:
//
//     1. While forwarding tables change, no switch adapts. Waves are proved for tables; groups of switches
//        that are not written yet would send to where there is no way any more. So before the first wave it
//        is turned off wherever it is on (one request a switch, all at once, and a barrier).
//     2. A switch's groups and its adaptive table are written only while it does not adapt. So nothing
//        depends on which of the two comes first, nor on whether a switch keeps one table or two: the
//        adaptive table names the same port for each LID as the linear one, which counts while this is off.
//
// Then groups are computed for the tables in force, and proved (route_verify_groups()). Each switch turned on
// makes true a part of what was proved, whatever others do meanwhile: some adapt, others go by their tables,
// whose ports are in the groups. Where only groups change and no table, those that change are all off before
// the first of the new ones is on. What the proof refuses is not written; the tables stay, and a finding says
// why.
//
//     phase "tables"     is it there, is it on? (once a switch, and after a reset) ── off ── waves …
//     phase "adaptive"   read (found on, at a start) ── job: groups, proof, comparison ── off ── prepare,
//                        groups and table, on (each switch for itself)
//
// Phase "adaptive" comes after hosts are awake. It stops where it is when somebody waits for the sweep's end;
// the next one goes on. Only what differs is written: of each group and block a hash is kept of what the
// switch has, until it is reset. A switch that says yes and does otherwise, refuses or does not answer is
// left static, and a finding says so; full sweeps try again.
//
// With the option off nothing is sent, unless the last run had it on: then it is turned off.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "sm/adaptive_priv.h"

enum { DETECT = 1, INFO, OFF, PREPARE, GROUP, BLOCK, ENABLE, READ_GROUP, READ_BLOCK };
#define TAG(what, n) ((uint32_t)(what) << 24 | (n))

static bool on(const struct sm *sm)
{
    return sm->o.adaptive == SM_ADAPTIVE_ON;
}

static bool busy(const struct sm *sm)
{
    return on(sm) || (sm->adaptive != NULL && sm->adaptive->leaving);
}

static bool is_on(const struct sm_dev *d)
{
    return d->adaptive != NULL && d->adaptive->info.ar_en;
}

static bool counts(const struct sm_dev *d)
{
    return d->here && dev_is_switch(d) && d->node != ID_NONE;
}

// --- life ---

void sm_adaptive_init(struct sm *sm)
{
    void *blob = NULL;
    size_t len = 0;
    sm->adaptive = xcalloc(1, sizeof(*sm->adaptive));
    if (sm->db != NULL && db_blob_get(sm->db, sm->o.fabric, "adaptive", &blob, &len) == 0) {
        free(blob);
        sm->adaptive->noted = true;
        sm->adaptive->leaving = !on(sm);
    }
}

void sm_adaptive_done(struct sm *sm)
{
    struct sm_adaptive *x = sm->adaptive;
    sm_adaptive_job_free(x->job);
    groups_unref(x->groups);
    tables_unref(x->tables);
    fabric_unref(x->fabric);
    free(x);
    sm->adaptive = NULL;
}

void sm_adaptive_dev_free(struct sm_dev *d)
{
    struct sm_adaptive_dev *a = d->adaptive;
    if (a == NULL)
        return;
    free(a->group);
    free(a->block);
    free(a->todo_group);
    free(a->todo_block);
    free(a);
    d->adaptive = NULL;
}

void sm_adaptive_reset(struct sm *sm, struct sm_dev *d)
{
    if (d->adaptive == NULL)
        return;
    sm_adaptive_dev_free(d);
    sm->adaptive->unsettled = true;
}

void sm_adaptive_hurry(struct sm *sm)
{
    sm->adaptive->stop = true;
}

// The database must know before the first switch does.
static void note_in_db(struct sm *sm)
{
    struct sm_adaptive *x = sm->adaptive;
    if (x->noted || sm->db == NULL)
        return;
    x->noted = true;
    db_blob_put(sm->db, sm->o.fabric, "adaptive", "on", 2, NULL, NULL);
}

// --- requests ---

static void get(struct sm_item *it, uint32_t tag, uint16_t attr, uint32_t mod)
{
    it->tag = tag;
    it->method = MAD_METHOD_GET;
    it->attr_id = attr;
    it->attr_mod = mod;
}

static void set(struct sm_item *it, uint32_t tag, uint16_t attr, uint32_t mod)
{
    get(it, tag, attr, mod);
    it->method = MAD_METHOD_SET;
    it->has_data = true;
}

// Only what is ours is another than it was read.
static void set_info(const struct sm_adaptive_dev *a, bool enable, uint16_t top, uint32_t tag,
                     struct sm_item *it)
{
    struct mad_adaptive_routing_info w = a->info;
    w.ar_en = enable;
    w.group_top = top;
    w.sub_groups_active = 0;
    w.transport_disable = w.by_transport_cap ? MAD_AR_UD | MAD_AR_UC : 0; // order matters to these
    set(it, tag, MAD_ATTR_ADAPTIVE_ROUTING_INFO, MAD_AR_INFO_MOD);
    mad_adaptive_routing_info_encode(&w, it->data);
}

static void pass(struct sm *sm, const char *name,
                 bool (*next)(struct sm_pass *, struct sm_dev *, uint32_t *, struct sm_item *),
                 void (*done)(struct sm_pass *, struct sm_dev *, uint32_t, const struct mad_result *),
                 void (*finished)(struct sm_pass *))
{
    sm->pass_adaptive.name = name;
    sm->pass_adaptive.next = next;
    sm->pass_adaptive.done = done;
    sm->pass_adaptive.finished = finished;
    sm_pass_start(&sm->pass_adaptive, sm);
}

// --- answers ---

static void leave(struct sm *sm, struct sm_dev *d, const char *why)
{
    struct sm_adaptive_dev *a = d->adaptive;
    char where[128];
    a->can = ADAPTIVE_LEFT;
    a->failed = true;
    sm->adaptive->unsettled = true;
    if (strcmp(a->why, why) == 0)
        return;
    snprintf(a->why, sizeof(a->why), "%s", why);
    sm_event(sm, "adaptive-not-kept", "warning", sm_port_text(d, 0, where, sizeof(where)), "%s; it %s",
             a->why, a->info.ar_en ? "goes on by the groups that it has" : "goes by its table alone");
}

// Whether the answer is good. No answer: it is asked again with the next sweep.
static bool good(struct sm *sm, struct sm_dev *d, uint8_t method, uint16_t attr, const struct mad_result *r)
{
    struct sm_adaptive_dev *a = d->adaptive;
    char what[MAD_TEXT_SIZE], why[MAD_TEXT_SIZE], text[160];

    if (r->status == 0 && r->mad_status == 0) {
        a->late = 0;
        return true;
    }
    mad_what_text(MAD_CLASS_SM_LID, method, attr, what);
    if (r->status != 0 || (r->mad_status & MAD_STATUS_BUSY)) {
        a->failed = true;
        sm->adaptive->unsettled = true;
        snprintf(text, sizeof(text), "does not answer %s", what);
        if (++a->late >= LATE_MAX)
            leave(sm, d, text);
        else
            sm_dirty_switch(sm, d, "set-failed");
        return false;
    }
    snprintf(text, sizeof(text), "refuses %s: %s", what,
             mad_status_text(MAD_CLASS_SM_LID, r->mad_status, why));
    leave(sm, d, text);
    return false;
}

static bool took_info(struct sm *sm, struct sm_dev *d, bool enable, uint16_t top, const struct mad_result *r)
{
    struct sm_adaptive_dev *a = d->adaptive;
    if (!good(sm, d, MAD_METHOD_SET, MAD_ATTR_ADAPTIVE_ROUTING_INFO, r))
        return false;
    mad_adaptive_routing_info_decode(r->data, &a->info);
    sm->progress = true;
    if (a->info.ar_en == enable && a->info.group_top == top)
        return true;
    leave(sm, d,
          a->info.ar_en == enable ? "answers Set(AdaptiveRoutingInfo) with success but does not keep GroupTop"
          : enable ? "answers Set(AdaptiveRoutingInfo) with success but does not turn adaptive routing on"
                   : "answers Set(AdaptiveRoutingInfo) with success but does not turn adaptive routing off");
    return false;
}

// --- is it there, is it on? and off ---

static bool waves_follow(const struct sm *sm)
{
    const struct route_plan *p = sm_route_plan(sm);
    return sm->adaptive->leaving || (p != NULL && p->num_waves > 0);
}

static bool quiet_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    if (!counts(d) || (*cursor)++ > 0)
        return false;
    if (d->adaptive != NULL && d->adaptive->can == ADAPTIVE_LEFT && p->sm->sweep.full)
        sm_adaptive_reset(p->sm, d);
    if (d->adaptive == NULL)
        d->adaptive = xcalloc(1, sizeof(*d->adaptive));
    struct sm_adaptive_dev *a = d->adaptive;
    a->failed = false;
    if (a->can == ADAPTIVE_UNKNOWN) {
        get(it, TAG(DETECT, 0), MAD_ATTR_GENERAL_INFO, MAD_GENERAL_INFO_CAPABILITIES);
        return true;
    }
    if (!a->info.ar_en || !waves_follow(p->sm))
        return false;
    set_info(a, false, a->info.group_top, TAG(OFF, 0), it);
    return true;
}

static void detected(struct sm_pass *p, struct sm_dev *d, const struct mad_result *r)
{
    struct sm_adaptive_dev *a = d->adaptive;
    struct mad_general_info g;
    struct sm_item it = {0};

    p->sm->adaptive->unsettled = true;
    if (r->status == 0 && r->mad_status != 0 && !(r->mad_status & MAD_STATUS_BUSY)) {
        a->can = ADAPTIVE_NOT;
        return;
    }
    if (!good(p->sm, d, MAD_METHOD_GET, MAD_ATTR_GENERAL_INFO, r))
        return;
    mad_general_info_decode(r->data, &g);
    if (!mad_general_cap(&g, MAD_CAP_AR_REV1)) {
        a->can = ADAPTIVE_NOT;
        return;
    }
    get(&it, TAG(INFO, 0), MAD_ATTR_ADAPTIVE_ROUTING_INFO, MAD_AR_INFO_MOD);
    sm_pass_send(p, d, &it);
}

static void quiet_done(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    struct sm_adaptive_dev *a = d->adaptive;
    struct sm_item it = {0};

    switch (tag >> 24) {
    case DETECT:
        detected(p, d, r);
        break;
    case INFO:
        if (!good(p->sm, d, MAD_METHOD_GET, MAD_ATTR_ADAPTIVE_ROUTING_INFO, r))
            break;
        mad_adaptive_routing_info_decode(r->data, &a->info);
        a->can = a->info.by_transport_cap ? ADAPTIVE_CAN : ADAPTIVE_LEFT;
        if (a->can == ADAPTIVE_LEFT)
            snprintf(a->why, sizeof(a->why), "cannot leave out UD and UC, whose packets must stay in order");
        if (a->info.ar_en && waves_follow(p->sm)) {
            set_info(a, false, a->info.group_top, TAG(OFF, 0), &it);
            sm_pass_send(p, d, &it);
        }
        break;
    default:
        p->sm->adaptive->unsettled = true;
        if (took_info(p->sm, d, false, a->info.group_top, r))
            break;
        if (a->can == ADAPTIVE_CAN) // it may still adapt
            d->lft_failed = true;
    }
}

// All that an earlier run has turned on is off.
static void left(struct sm *sm)
{
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        const struct sm_adaptive_dev *a = sm->dev[i]->adaptive;
        if (counts(sm->dev[i]) && (a == NULL || a->info.ar_en || a->can == ADAPTIVE_UNKNOWN))
            return;
    }
    sm->adaptive->leaving = sm->adaptive->noted = false;
    db_blob_put(sm->db, sm->o.fabric, "adaptive", NULL, 0, NULL, NULL);
    sm_event(sm, "adaptive-off", "notice", "",
             "adaptive routing, which an earlier run had on, is off everywhere");
}

static void quiet_finished(struct sm_pass *p)
{
    struct sm *sm = p->sm;
    if (sm_tables_failed(sm, "did not let adaptive routing be turned off; no table was written"))
        return;
    if (sm->adaptive->leaving)
        left(sm);
    sm_tables_go(sm);
}

bool sm_adaptive_quiet(struct sm *sm)
{
    bool any = false;
    if (!busy(sm))
        return false;
    for (uint32_t i = 0; i < sm->num_dev && !any; i++) {
        const struct sm_dev *d = sm->dev[i];
        any = counts(d) && (d->adaptive == NULL || d->adaptive->can == ADAPTIVE_UNKNOWN ||
                            (d->adaptive->can == ADAPTIVE_LEFT && sm->sweep.full) ||
                            (d->adaptive->info.ar_en && waves_follow(sm)));
    }
    if (!any)
        return false;
    pass(sm, "adaptive off", quiet_next, quiet_done, quiet_finished);
    return true;
}

// --- phase "adaptive": read ---

static bool is_found_on(const struct sm_dev *d)
{
    return counts(d) && is_on(d) && d->adaptive->can == ADAPTIVE_CAN && d->adaptive->num_blocks == 0;
}

static bool read_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    struct sm_adaptive_dev *a = d->adaptive;
    if (!counts(d) || a == NULL || a->stage != STAGE_BEGIN || a->failed)
        return false;
    uint32_t i = (*cursor)++;
    if (i < a->num_groups) {
        get(it, TAG(READ_GROUP, i), MAD_ATTR_ADAPTIVE_ROUTING_GROUP_TABLE, mad_ar_group_mod(i));
        return true;
    }
    i -= a->num_groups;
    if (i >= a->num_blocks)
        return false;
    (void)p;
    get(it, TAG(READ_BLOCK, i), MAD_ATTR_ADAPTIVE_ROUTING_LFT, mad_ar_lft_mod(i));
    return true;
}

static void read_done(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    struct sm_adaptive_dev *a = d->adaptive;
    uint32_t n = tag & 0xffffff;
    bool group = tag >> 24 == READ_GROUP;
    if (!good(p->sm, d, MAD_METHOD_GET,
              group ? MAD_ATTR_ADAPTIVE_ROUTING_GROUP_TABLE : MAD_ATTR_ADAPTIVE_ROUTING_LFT, r))
        return;
    if (group)
        a->group[n] = sm_adaptive_group_said(r->data);
    else
        a->block[n] = sm_adaptive_block_said(r->data);
}

// --- off, then written ---

static bool differs(const struct sm_adaptive_dev *a)
{
    return a->num_todo_groups > 0 || a->num_todo_blocks > 0 || a->info.group_top < a->top;
}

static bool off_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    const struct sm_adaptive_dev *a = d->adaptive;
    (void)p;
    if (!counts(d) || !is_on(d) || (*cursor)++ > 0 || (a->want && !differs(a)))
        return false;
    set_info(a, false, a->info.group_top, TAG(OFF, 0), it);
    return true;
}

static void off_done(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    (void)tag;
    took_info(p->sm, d, false, d->adaptive->info.group_top, r);
}

static bool content_next(struct sm *sm, struct sm_dev *d, struct sm_item *it)
{
    struct sm_adaptive *x = sm->adaptive;
    struct sm_adaptive_dev *a = d->adaptive;
    uint32_t sw = sm->next_fabric->node[d->node].sw, i = a->at;

    if (i < a->num_todo_groups) {
        uint16_t id = a->todo_group[i];
        set(it, TAG(GROUP, id), MAD_ATTR_ADAPTIVE_ROUTING_GROUP_TABLE, mad_ar_group_mod(id));
        sm_adaptive_group(sm_adaptive_group_by_id(x->groups, sw, id), it->data);
    } else if (i - a->num_todo_groups < a->num_todo_blocks) {
        uint32_t b = a->todo_block[i - a->num_todo_groups];
        set(it, TAG(BLOCK, b), MAD_ATTR_ADAPTIVE_ROUTING_LFT, mad_ar_lft_mod(b));
        sm_adaptive_block(x->groups, x->tables, sw, b, it->data);
    } else {
        return false;
    }
    a->at++;
    return true;
}

static bool write_begin(struct sm *sm, struct sm_dev *d, struct sm_item *it)
{
    struct sm_adaptive_dev *a = d->adaptive;
    bool wanted = a->want && a->can == ADAPTIVE_CAN && !a->failed && (!a->info.ar_en || differs(a));
    // one that did not let itself be turned off may not be written
    if (!wanted || a->info.ar_en || sm->adaptive->stop) {
        sm->adaptive->unsettled |= wanted;
        a->stage = STAGE_OVER;
        return false;
    }
    a->at = 0;
    a->stage = a->info.group_top < a->top ? STAGE_PREPARE : STAGE_WRITE;
    if (a->stage == STAGE_WRITE)
        return false;
    set_info(a, false, a->top, TAG(PREPARE, 0), it);
    return true;
}

static bool write_next(struct sm_pass *p, struct sm_dev *d, uint32_t *cursor, struct sm_item *it)
{
    struct sm *sm = p->sm;
    struct sm_adaptive_dev *a = d->adaptive;
    (void)cursor;
    if (!counts(d) || a == NULL)
        return false;
    if (a->stage == STAGE_BEGIN && write_begin(sm, d, it))
        return true;
    if (a->stage != STAGE_WRITE || a->failed)
        return false;
    bool rest = a->at < a->num_todo_groups + a->num_todo_blocks;
    if (rest && sm->adaptive->stop) {
        sm->adaptive->unsettled = true;
        return false;
    }
    if (rest)
        return content_next(sm, d, it);
    if (p->out[d->index] > 0) // called again with each answer
        return false;
    a->stage = STAGE_ENABLE;
    note_in_db(sm);
    set_info(a, true, a->top, TAG(ENABLE, 0), it);
    return true;
}

// What is held is what was answered.
static void content_done(struct sm *sm, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    struct sm_adaptive *x = sm->adaptive;
    struct sm_adaptive_dev *a = d->adaptive;
    uint32_t n = tag & 0xffffff, sw = sm->next_fabric->node[d->node].sw;
    bool group = tag >> 24 == GROUP;
    uint16_t attr = group ? MAD_ATTR_ADAPTIVE_ROUTING_GROUP_TABLE : MAD_ATTR_ADAPTIVE_ROUTING_LFT;
    uint64_t *held = group ? &a->group[n] : &a->block[n];
    uint8_t unused[MAD_SMP_DATA_SIZE];

    *held = 0;
    if (!good(sm, d, MAD_METHOD_SET, attr, r))
        return;
    *held = group ? sm_adaptive_group_said(r->data) : sm_adaptive_block_said(r->data);
    uint64_t want = group ? sm_adaptive_group(sm_adaptive_group_by_id(x->groups, sw, (uint16_t)n), unused)
                          : sm_adaptive_block(x->groups, x->tables, sw, n, NULL);
    sm->progress = true;
    if (*held != want && !a->failed)
        leave(sm, d,
              group ? "answers Set(AdaptiveRoutingGroupTable) with success but does not keep it"
                    : "answers Set(AdaptiveRoutingLinearForwardingTable) with success but does not keep it");
}

static void write_done(struct sm_pass *p, struct sm_dev *d, uint32_t tag, const struct mad_result *r)
{
    struct sm_adaptive_dev *a = d->adaptive;
    switch (tag >> 24) {
    case PREPARE:
        a->stage = took_info(p->sm, d, false, a->top, r) ? STAGE_WRITE : STAGE_OVER;
        break;
    case ENABLE:
        a->stage = STAGE_OVER;
        took_info(p->sm, d, true, a->top, r);
        break;
    default:
        content_done(p->sm, d, tag, r);
    }
}

// --- the phase's steps ---

static void tell(struct sm *sm)
{
    struct sm_adaptive *x = sm->adaptive;
    struct sm_adaptive_status s;
    char text[sizeof(x->said)];

    sm_adaptive_status(sm, &s);
    if (x->status != 0)
        snprintf(text, sizeof(text), "%s; all switches go by their tables alone", x->err.text);
    else
        snprintf(text, sizeof(text), "%u of %u switches adapt, %u have it", s.enabled, s.switches,
                 s.supported);
    if (strcmp(text, x->said) == 0)
        return;
    memcpy(x->said, text, sizeof(text));
    if (x->status != 0)
        sm_event(sm, "adaptive-refused", "error", "", "%s", text);
    else
        sm_event(sm, "adaptive-routing", "notice", "", "%s", text);
}

static void write_finished(struct sm_pass *p)
{
    struct sm *sm = p->sm;
    struct sm_adaptive *x = sm->adaptive;
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        const struct sm_adaptive_dev *a = sm->dev[i]->adaptive;
        if (counts(sm->dev[i]) && a != NULL && a->can == ADAPTIVE_CAN && a->want != (bool)a->info.ar_en)
            x->unsettled = true;
    }
    if (!x->unsettled)
        tell(sm);
    sm_program_done(sm);
}

static void off_finished(struct sm_pass *p)
{
    for (uint32_t i = 0; i < p->sm->num_dev; i++)
        if (p->sm->dev[i]->adaptive != NULL)
            p->sm->dev[i]->adaptive->stage = STAGE_BEGIN;
    pass(p->sm, "adaptive", write_next, write_done, write_finished);
}

static void job_done(void *arg)
{
    struct adaptive_job *j = arg;
    struct sm *sm = j->sm;
    struct sm_adaptive *x = sm->adaptive;

    x->status = j->status;
    x->err = j->err;
    groups_unref(x->groups);
    tables_unref(x->tables);
    fabric_unref(x->fabric);
    x->groups = j->result.groups;
    j->result.groups = NULL;
    x->tables = tables_ref(j->tables);
    x->fabric = fabric_ref(j->fabric);
    if (j->anew) {
        x->result = j->result;
        x->proof = j->proof;
    }
    sm_adaptive_job_free(j);
    x->job = NULL;
    pass(sm, "adaptive off", off_next, off_done, off_finished);
}

static void read_finished(struct sm_pass *p)
{
    sm_adaptive_job_start(p->sm, job_done);
}

static bool prepare(struct sm *sm)
{
    bool any = false;
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        struct sm_dev *d = sm->dev[i];
        struct sm_adaptive_dev *a = d->adaptive;
        if (a == NULL)
            continue;
        a->want = a->failed = false;
        a->groups = 0;
        a->num_todo_groups = a->num_todo_blocks = 0;
        a->stage = STAGE_OVER;
        if (!is_found_on(d))
            continue;
        any = true;
        a->stage = STAGE_BEGIN;
        a->num_groups = a->info.group_top + 1u;
        a->num_blocks = (sm->tables->lids + MAD_AR_LFT_BLOCK - 1) / MAD_AR_LFT_BLOCK;
        a->group = xcalloc(a->num_groups, sizeof(*a->group));
        a->block = xcalloc(a->num_blocks, sizeof(*a->block));
    }
    return any;
}

void sm_adaptive_start(struct sm *sm)
{
    struct sm_adaptive *x = sm->adaptive;
    x->stop = sm->dirty_asked && sm_cause(sm->dirty_cause)->news;
    x->unsettled |= on(sm) && sm->job != NULL;
    if (!on(sm) || !x->unsettled || x->stop) {
        sm_program_done(sm);
        return;
    }
    sm_phase(sm, "adaptive");
    x->unsettled = false;
    if (prepare(sm))
        pass(sm, "adaptive read", read_next, read_done, read_finished);
    else
        sm_adaptive_job_start(sm, job_done);
}

// --- what people see ---

void sm_adaptive_find(struct sm *sm)
{
    const struct sm_adaptive *x = sm->adaptive;
    char where[128];

    if (sm->o.adaptive == SM_ADAPTIVE_REFUSED)
        findings_add(
            &sm->findings_new, FINDING_WARNING, "adaptive-refused", "",
            "adaptive routing is not turned on: its attribute modifiers were never seen on hardware; "
            "routing.experimental_adaptive_routing_unverified takes that risk");
    if (on(sm) && x->status != 0)
        findings_add(&sm->findings_new, FINDING_ERROR, "adaptive-refused", "",
                     "%s; all switches go by their tables alone", x->err.text);
    for (uint32_t i = 0; busy(sm) && i < sm->num_dev; i++) {
        const struct sm_dev *d = sm->dev[i];
        const struct sm_adaptive_dev *a = d->adaptive;
        if (!d->here || a == NULL || a->can != ADAPTIVE_LEFT)
            continue;
        findings_add(&sm->findings_new, a->info.ar_en ? FINDING_ERROR : FINDING_WARNING, "adaptive-not-kept",
                     sm_port_text(d, 0, where, sizeof(where)), "%s; %s", a->why,
                     a->info.ar_en ? "it goes on by the groups that it has" : "it goes by its table alone");
    }
}

void sm_adaptive_status(const struct sm *sm, struct sm_adaptive_status *ret)
{
    const struct sm_adaptive *x = sm->adaptive;
    *ret = (struct sm_adaptive_status){
        .mode = sm->o.adaptive,
        .entries = x->result.entries,
        .adaptive = x->result.adaptive,
        .choices = x->result.choices,
        .most_groups = x->result.most_groups,
        .over_cap = x->result.over_cap,
        .proved = x->groups != NULL,
        .max_hops = x->proof.max_hops,
    };
    snprintf(ret->why, sizeof(ret->why), "%s", x->status != 0 ? x->err.text : x->result.why);
    for (uint32_t i = 0; i < sm->num_dev; i++) {
        const struct sm_adaptive_dev *a = sm->dev[i]->adaptive;
        if (!sm->dev[i]->here || !dev_is_switch(sm->dev[i]))
            continue;
        ret->switches++;
        ret->supported += a != NULL && (a->can == ADAPTIVE_CAN || a->can == ADAPTIVE_LEFT);
        ret->enabled += a != NULL && a->info.ar_en;
        ret->left += a != NULL && a->can == ADAPTIVE_LEFT;
    }
}

bool sm_adaptive_switch(const struct sm *sm, uint64_t guid, struct sm_adaptive_switch *ret)
{
    const struct sm_dev *d = sm_dev_find(sm, guid);
    const struct sm_adaptive_dev *a = d != NULL ? d->adaptive : NULL;
    if (a == NULL || !d->here || !dev_is_switch(d) || a->can == ADAPTIVE_UNKNOWN)
        return false;
    *ret = (struct sm_adaptive_switch){
        .supported = a->can != ADAPTIVE_NOT,
        .enabled = a->info.ar_en,
        .groups = a->want ? a->groups : 0,
        .cap = a->info.group_cap,
        .why = a->can == ADAPTIVE_LEFT ? a->why : "",
    };
    return true;
}

const struct fabric_groups *sm_adaptive_groups(const struct sm *sm, const struct fabric **ret_fabric,
                                               const struct fabric_tables **ret_tables)
{
    const struct sm_adaptive *x = sm->adaptive;
    if (x->groups == NULL)
        return NULL;
    *ret_fabric = x->fabric;
    *ret_tables = x->tables;
    return x->groups;
}
