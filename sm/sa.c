// SPDX-License-Identifier: Apache-2.0
// Subnet administration: requests come in, wait, are answered.
//
// A client of Linux takes any status other than 0 for final, BUSY too, and gives up after 3 s: so nothing is
// refused for lack of time. Requests queue up; a repeat of one that waits is merged with it (source, TID);
// what has waited longer than its client does is dropped. Work is done in slices, so that a table of all
// ports does not stop the loop. IBA 15.2, 15.4
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/sa_priv.h"

#define HASH 8192

static const struct sa_row row[] = {
    {.attr_id = MAD_ATTR_CLASS_PORT_INFO, .bytes = 72, .get_limit = 1, .get = sa_class_port_info},
    {.attr_id = MAD_ATTR_INFORM_INFO, .bytes = 36, .set = sa_inform_set},
    {.attr_id = MAD_SA_ATTR_NODE_RECORD, .bytes = 112, .get_limit = 2, .get = sa_nodes, .table = sa_nodes},
    {.attr_id = MAD_SA_ATTR_PORT_INFO_RECORD,
     .bytes = 72,
     .get_limit = 2,
     .get = sa_port_infos,
     .table = sa_port_infos},
    {.attr_id = MAD_SA_ATTR_SWITCH_INFO_RECORD,
     .bytes = 24,
     .get_limit = 2,
     .get = sa_switch_infos,
     .table = sa_switch_infos},
    {.attr_id = MAD_SA_ATTR_LINEAR_FORWARDING_TABLE_RECORD,
     .bytes = 72,
     .get_limit = 2,
     .get = sa_lfts,
     .table = sa_lfts},
    {.attr_id = MAD_SA_ATTR_MULTICAST_FORWARDING_TABLE_RECORD,
     .bytes = 72,
     .get_limit = 2,
     .get = sa_mfts,
     .table = sa_mfts},
    {.attr_id = MAD_SA_ATTR_SM_INFO_RECORD,
     .bytes = 32,
     .get_limit = 2,
     .get = sa_sm_infos,
     .table = sa_sm_infos},
    {.attr_id = MAD_SA_ATTR_LINK_RECORD, .bytes = 8, .get_limit = 2, .get = sa_links, .table = sa_links},
    {.attr_id = MAD_SA_ATTR_PATH_RECORD,
     .bytes = 64,
     .get_limit = 1,
     .get = sa_path_get,
     .table = sa_path_table},
    {.attr_id = MAD_SA_ATTR_MC_MEMBER_RECORD,
     .bytes = 56,
     .get_limit = 2,
     .get = sa_mc_table,
     .table = sa_mc_table,
     .set = sa_mc_join,
     .remove = sa_mc_leave},
    {.attr_id = MAD_SA_ATTR_INFORM_INFO_RECORD,
     .bytes = 64,
     .get_limit = 2,
     .get = sa_informs,
     .table = sa_informs},
};

// --- GIDs and ports ---

static uint64_t be64(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

uint64_t sa_gid_prefix(const uint8_t gid[16])
{
    return be64(gid);
}

uint64_t sa_gid_guid(const uint8_t gid[16])
{
    return be64(gid + 8);
}

void sa_put_gid(uint64_t prefix, uint64_t guid, uint8_t ret[16])
{
    for (int i = 0; i < 8; i++) {
        ret[i] = (uint8_t)(prefix >> (56 - 8 * i));
        ret[8 + i] = (uint8_t)(guid >> (56 - 8 * i));
    }
}

port_id sa_port_by_gid(const struct sm_sa *sa, const uint8_t gid[16])
{
    uint64_t prefix = be64(gid);
    if (prefix != sa->sm->o.subnet_prefix && prefix != MAD_DEFAULT_GID_PREFIX)
        return PORT_NONE;
    return fabric_by_port_guid(sa->fabric, be64(gid + 8));
}

uint16_t sa_port_lid(const struct fabric *f, const struct port *p)
{
    const struct node *n = &f->node[p->node.i];
    return n->type == NODE_SWITCH ? f->port[n->first_port].a.lid : p->a.lid;
}

bool sa_rate_less(uint8_t a, uint8_t b)
{
    return mad_rate_gbps(a) < mad_rate_gbps(b);
}

uint8_t sa_rate_below(uint8_t rate)
{
    uint8_t best = 0;
    for (uint8_t c = 1; c < 64; c++)
        if (mad_rate_gbps(c) > 0 && sa_rate_less(c, rate) && (best == 0 || sa_rate_less(best, c)))
            best = c;
    return best;
}

// --- lists ---

static struct sa_req **bucket(struct sm_sa *sa, const uint8_t *mad, uint16_t lid)
{
    uint64_t tid = be64(mad + 8);
    return &sa->hash[hash_mix64(tid ^ (uint64_t)lid << 48) % HASH];
}

static void list_add(struct sm_sa *sa, struct sa_req *r, enum sa_list l)
{
    r->list = l;
    r->next = NULL;
    r->prev = sa->tail[l];
    if (r->prev != NULL)
        r->prev->next = r;
    else
        sa->head[l] = r;
    sa->tail[l] = r;
}

static void list_del(struct sm_sa *sa, struct sa_req *r)
{
    if (r->prev != NULL)
        r->prev->next = r->next;
    else
        sa->head[r->list] = r->next;
    if (r->next != NULL)
        r->next->prev = r->prev;
    else
        sa->tail[r->list] = r->prev;
}

static void req_free(struct sm_sa *sa, struct sa_req *r)
{
    struct sa_req **at = bucket(sa, r->mad, r->from.lid);
    while (*at != r)
        at = &(*at)->same_hash;
    *at = r->same_hash;
    list_del(sa, r);
    buf_done(&r->out);
    free(r);
    sa->waiting--;
}

static bool same(const struct sa_req *r, const uint8_t *mad, const struct mad_addr *from)
{
    return r->from.lid == from->lid && memcmp(r->mad + 8, mad + 8, 8) == 0 && r->mad[3] == mad[3] &&
           memcmp(r->mad + 16, mad + 16, 2) == 0;
}

// --- answers ---

bool sa_emit(struct sa_req *r, const uint8_t *record, size_t bytes)
{
    if (r->out.len + bytes > SA_ANSWER_MAX) {
        r->status = MAD_SA_TOO_MANY_RECORDS;
        return false;
    }
    buf_add(&r->out, record, bytes);
    return ++r->num < r->limit;
}

enum sa_step sa_refuse(struct sa_req *r, uint16_t status)
{
    r->status = status;
    return SA_DONE;
}

bool sa_slice_over(struct sm_sa *sa)
{
    return mono_sub(loop_now_precise(sa->sm->loop), sa->slice) > SA_SLICE_NS;
}

static uint8_t answer_method(uint8_t method)
{
    return method == MAD_METHOD_SET || method == MAD_METHOD_GET ? MAD_METHOD_GET_RESP
                                                                : method | MAD_METHOD_RESPONSE;
}

static void answer_head(const struct sa_req *r, uint8_t *msg)
{
    struct mad_sa_hdr h = r->hdr;
    h.method = answer_method(h.method);
    h.status = r->status;
    h.rmpp_version = 1;
    h.rmpp_type = h.rmpp_resp_time = h.rmpp_flags = h.rmpp_status = 0;
    h.segment_number = h.payload_length = 0;
    h.sm_key = 0;
    h.attribute_offset = 0;
    mad_sa_hdr_encode(&h, msg);
}

// Where the transport has no RMPP, as many whole records as one MAD holds, said to be all.
static int send_first(struct sm_sa *sa, const struct sa_req *r, const struct buf *msg, size_t record)
{
    uint8_t mad[MAD_SIZE] = {0};
    struct mad_sa_hdr h;
    size_t data = msg->len - MAD_SA_DATA_OFFSET;

    if (data > MAD_SA_DATA_SIZE)
        data = MAD_SA_DATA_SIZE / record * record;
    mad_sa_hdr_decode((const uint8_t *)msg->data, &h);
    h.rmpp_type = MAD_RMPP_DATA;
    h.rmpp_flags = MAD_RMPP_ACTIVE | MAD_RMPP_FIRST | MAD_RMPP_LAST;
    h.segment_number = 1;
    h.payload_length = (uint32_t)(MAD_SA_DATA_OFFSET - 36 + data); // counts the class's header: 13.6.2.1
    mad_sa_hdr_encode(&h, mad);
    memcpy(mad + MAD_SA_DATA_OFFSET, msg->data + MAD_SA_DATA_OFFSET, data);
    return mad_engine_reply(sa->sm->engine, mad, &r->from);
}

static int send_table(struct sm_sa *sa, const struct sa_req *r, size_t record)
{
    struct buf msg = {0};
    uint8_t head[MAD_SA_DATA_OFFSET] = {0};
    struct mad_sa_hdr h;

    answer_head(r, head);
    mad_sa_hdr_decode(head, &h);
    h.attribute_offset = (uint16_t)(record / 8);
    mad_sa_hdr_encode(&h, head);
    buf_reserve(&msg, sizeof(head) + r->out.len + 1);
    buf_add(&msg, head, sizeof(head));
    if (r->out.len > 0)
        buf_add(&msg, r->out.data, r->out.len);
    int rc = mad_engine_reply_rmpp(sa->sm->engine, (const uint8_t *)msg.data, msg.len, &r->from);
    if (rc == -EOPNOTSUPP)
        rc = send_first(sa, r, &msg, record);
    buf_done(&msg);
    return rc;
}

static int send_one(struct sm_sa *sa, const struct sa_req *r)
{
    uint8_t mad[MAD_SIZE] = {0};
    answer_head(r, mad);
    if (r->status == 0 && r->out.len > 0)
        memcpy(mad + MAD_SA_DATA_OFFSET, r->out.data, r->out.len);
    else // a refusal shows what was asked
        memcpy(mad + MAD_SA_DATA_OFFSET, r->mad + MAD_SA_DATA_OFFSET, MAD_SA_DATA_SIZE);
    return mad_engine_reply(sa->sm->engine, mad, &r->from);
}

static void answer(struct sm_sa *sa, struct sa_req *r, const struct sa_row *w)
{
    bool table = r->hdr.method == MAD_METHOD_GET_TABLE;

    if (r->status == 0 && r->hdr.method == MAD_METHOD_GET) { // C15-0.1.30
        if (r->num == 0)
            r->status = MAD_SA_NO_RECORDS;
        else if (r->num > 1)
            r->status = MAD_SA_TOO_MANY_RECORDS;
    }
    int rc = table && r->status == 0 ? send_table(sa, r, w->bytes) : send_one(sa, r);
    if (rc != 0)
        sa->stats.send_failures++;
    if (r->status == 0) {
        sa->stats.answered++;
        sa->stats.records += r->num;
    } else {
        sa->stats.refused++;
    }
    req_free(sa, r);
}

// --- work ---

static const struct sa_row *row_of(uint16_t attr_id)
{
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++)
        if (row[i].attr_id == attr_id)
            return &row[i];
    return NULL;
}

static sa_fn *handler_of(const struct sa_row *w, uint8_t method)
{
    switch (method) {
    case MAD_METHOD_GET:
        return w->get;
    case MAD_METHOD_SET:
        return w->set;
    case MAD_METHOD_GET_TABLE:
        return w->table;
    case MAD_METHOD_DELETE:
        return w->remove;
    default:
        return NULL;
    }
}

static bool ready(struct sm_sa *sa)
{
    if (sa->sm->state != SM_MASTER && sa->ready) {
        sa->ready = false;
        sm_mcast_void(sa->sm);
    }
    return sa->ready;
}

static enum sa_step handle(struct sm_sa *sa, struct sa_req *r, const struct sa_row *w)
{
    sa_fn *fn = w != NULL ? handler_of(w, r->hdr.method) : NULL;
    if (fn == NULL)
        return sa_refuse(r, MAD_STATUS_BAD_METHOD_ATTR);
    if (!port_valid(fabric_by_lid(sa->fabric, r->from.lid)))
        return SA_PARK;
    r->started = true;
    r->limit = r->hdr.method == MAD_METHOD_GET ? w->get_limit : UINT32_MAX;
    return fn(sa, r);
}

static void start_anew(struct sa_req *r)
{
    r->started = false;
    r->status = 0;
    r->cursor = 0;
    r->num = 0;
    buf_clear(&r->out);
}

static void hold(struct sm_sa *sa, struct sa_req *r, uint64_t ticket)
{
    list_del(sa, r);
    list_add(sa, r, SA_HELD);
    r->ticket = ticket;
}

static void one(struct sm_sa *sa, struct sa_req *r)
{
    const struct sa_row *w = row_of(r->hdr.attr_id);

    if (!r->started && mono_sub(sa->slice, r->came) > SA_STALE_NS) {
        sa->stats.dropped_stale++;
        req_free(sa, r);
        return;
    }
    switch (handle(sa, r, w)) {
    case SA_DONE:
        answer(sa, r, w);
        break;
    case SA_MORE: // others first
        list_del(sa, r);
        list_add(sa, r, SA_QUEUED);
        break;
    case SA_WAIT:
        hold(sa, r, r->ticket);
        break;
    case SA_PARK:
        if (sa->sm->sweeping || sa->sm->resweep) {
            start_anew(r);
            hold(sa, r, 0);
        } else {
            sa->stats.dropped_unknown++;
            req_free(sa, r);
        }
        break;
    }
}

#define TICK_SOON (200 * MONO_MS)

void sa_wake(struct sm_sa *sa)
{
    mono_t due = mono_add(loop_now(sa->sm->loop), TICK_SOON);
    if (!loop_timer_pending(&sa->timer) || mono_sub(sa->timer.due, due) > 0)
        loop_timer_at(&sa->timer, due);
}

static void arm(struct sm_sa *sa)
{
    if (sa->head[SA_HELD] != NULL || sa->unsaved)
        sa_wake(sa);
    else if (!loop_timer_pending(&sa->timer))
        loop_timer_after(&sa->timer, MONO_S);
}

static void work(void *arg)
{
    struct sm_sa *sa = arg;

    sa->slice = loop_now_precise(sa->sm->loop);
    if (!ready(sa)) { // stepped down: who asks again asks the other one
        while (sa->head[SA_QUEUED] != NULL) {
            sa->stats.dropped_not_ready++;
            req_free(sa, sa->head[SA_QUEUED]);
        }
        return;
    }
    while (sa->head[SA_QUEUED] != NULL) {
        one(sa, sa->head[SA_QUEUED]);
        if (sa_slice_over(sa)) {
            if (sa->head[SA_QUEUED] != NULL)
                loop_post(sa->sm->loop, &sa->work);
            break;
        }
    }
    arm(sa);
}

// A join whose turn in the tables has come, or that has waited long enough: packets may be lost at first.
void sa_tables_done(struct sm *sm, uint64_t ticket)
{
    struct sm_sa *sa = sm->sa;
    for (struct sa_req *r = sa->head[SA_HELD], *next; r != NULL; r = next) {
        next = r->next;
        if (r->ticket != 0 && r->ticket <= ticket)
            answer(sa, r, row_of(r->hdr.attr_id));
    }
}

static void held_too_long(struct sm_sa *sa)
{
    mono_t now = loop_now(sa->sm->loop);
    for (struct sa_req *r = sa->head[SA_HELD], *next; r != NULL; r = next) {
        next = r->next;
        int64_t age = mono_sub(now, r->came);
        if (r->ticket != 0 && age > SA_JOIN_NS) {
            answer(sa, r, row_of(r->hdr.attr_id));
        } else if (r->ticket == 0 && age > SA_STALE_NS) {
            sa->stats.dropped_stale++;
            req_free(sa, r);
        }
    }
}

static void tick(void *arg)
{
    struct sm_sa *sa = arg;
    mono_t now = loop_now(sa->sm->loop);

    ready(sa);
    held_too_long(sa);
    if (sa->unsaved && mono_sub(now, sa->save_at) >= 0)
        sa_groups_save(sa);
    if (mono_sub(now, sa->second) >= MONO_S) {
        uint64_t all = sa->stats.answered + sa->stats.refused, n = all - sa->answers_before;
        sa->answers_before = all;
        sa->stats.last_second = (uint32_t)n;
        if (n > sa->stats.most_a_second)
            sa->stats.most_a_second = (uint32_t)n;
        sa->second = now;
        sa_groups_age(sa);
        sa_reregister_second(sa);
    }
    arm(sa);
}

// --- what comes in ---

static bool method_known(uint8_t m)
{
    return m == MAD_METHOD_GET || m == MAD_METHOD_SET || m == MAD_METHOD_GET_TABLE ||
           m == MAD_METHOD_DELETE || m == MAD_METHOD_GET_TRACE_TABLE || m == MAD_METHOD_GET_MULTI;
}

static bool welcome(struct sm_sa *sa, const uint8_t *mad, const struct mad_addr *from, struct mad_sa_hdr *h)
{
    sa->stats.requests++;
    mad_sa_hdr_decode(mad, h);
    if (!ready(sa)) { // C15-0.1.3
        sa->stats.dropped_not_ready++;
        return false;
    }
    if (!method_known(h->method)) {
        sa->stats.dropped_method++;
        return false;
    }
    if (h->sm_key != 0 && h->sm_key != sa->sm->o.sm_key) { // C15-0.1.5
        sa->stats.dropped_sm_key++;
        log_remote(from->lid, "sa-wrong-sm-key", "fabric=%s lid=%u", sa->sm->o.fabric, from->lid);
        return false;
    }
    for (struct sa_req *r = *bucket(sa, mad, from->lid); r != NULL; r = r->same_hash)
        if (same(r, mad, from)) {
            sa->stats.merged++;
            return false;
        }
    if (sa->waiting >= SA_QUEUE_MAX) {
        sa->stats.dropped_full++;
        return false;
    }
    return true;
}

static void asked(void *arg, const uint8_t *mad, const struct mad_addr *from)
{
    struct sm_sa *sa = arg;
    struct mad_sa_hdr h;

    if (!welcome(sa, mad, from, &h))
        return;
    struct sa_req *r = xcalloc(1, sizeof(*r));
    r->came = loop_now(sa->sm->loop);
    r->from = *from;
    r->hdr = h;
    r->trusted = h.sm_key != 0;
    memcpy(r->mad, mad, MAD_SIZE);
    struct sa_req **at = bucket(sa, mad, from->lid);
    r->same_hash = *at;
    *at = r;
    list_add(sa, r, SA_QUEUED);
    if (++sa->waiting > sa->stats.waiting_max)
        sa->stats.waiting_max = sa->waiting;
    loop_post(sa->sm->loop, &sa->work);
}

// --- life ---

static void speeds(struct sm_sa *sa)
{
    const struct fabric *f = sa->fabric;
    sa->rate = xreallocarray(sa->rate, f->num_ports ? f->num_ports : 1, 1);
    sa->mtu = xreallocarray(sa->mtu, f->num_ports ? f->num_ports : 1, 1);
    sa->end = xreallocarray(sa->end, f->num_ports ? f->num_ports : 1, sizeof(*sa->end));
    sa->num_ends = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        const struct port_attrs *a = &p->a;
        uint8_t rate = mad_link_rate(a->width_active, a->speed_active, a->speed_ext_active, a->fdr10);
        uint8_t mtu = mad_mtu_bytes(a->mtu_active) ? a->mtu_active : a->mtu_cap;
        sa->rate[i] = rate != 0 ? rate : 2;
        sa->mtu[i] = mad_mtu_bytes(mtu) ? mtu : MAD_MTU_2048;
        if (port_is_end(f, p) && p->a.lid != 0 && p->a.lid <= LID_UCAST_MAX && p->guid != 0)
            sa->end[sa->num_ends++] = i;
    }
}

void sa_fabric_changed(struct sm *sm)
{
    struct sm_sa *sa = sm->sa;

    if (sm->fabric == NULL || sm->tables == NULL)
        return;
    fabric_unref(sa->fabric);
    tables_unref(sa->tables);
    sa->fabric = fabric_ref(sm->fabric);
    sa->tables = tables_ref(sm->tables);
    speeds(sa);
    sa->ready = true;
    sa_groups_fabric(sa);
    for (struct sa_req *r = sa->head[SA_QUEUED]; r != NULL; r = r->next)
        start_anew(r); // half an answer of the last generation
    for (struct sa_req *r = sa->head[SA_HELD], *next; r != NULL; r = next) {
        next = r->next;
        if (r->ticket == 0) {
            list_del(sa, r);
            list_add(sa, r, SA_QUEUED);
        }
    }
    if (sa->head[SA_QUEUED] != NULL)
        loop_post(sm->loop, &sa->work);
    arm(sa);
}

int sm_sa_init(struct sm *sm)
{
    struct sm_sa *sa = xcalloc(1, sizeof(*sa));
    sm->sa = sa;
    sa->sm = sm;
    sa->hash = xcalloc(HASH, sizeof(*sa->hash));
    loop_task_init(&sa->work, "sa", work, sa);
    loop_timer_init(&sa->timer, sm->loop, "sa", tick, sa);
    u64map_init(&sa->told, NULL, 64);
    u64map_init(&sa->anew, NULL, 64);
    sa_groups_init(sa);
    mad_engine_handler(sm->engine, MAD_CLASS_SA, asked, sa);
    return sm_mcast_init(sm);
}

void sm_sa_done(struct sm *sm)
{
    struct sm_sa *sa = sm->sa;
    if (sa == NULL)
        return;
    sm_mcast_done(sm);
    sa_groups_save(sa);
    loop_timer_cancel(&sa->timer);
    loop_unpost(sm->loop, &sa->work);
    for (int l = 0; l < SA_LISTS; l++)
        while (sa->head[l] != NULL)
            req_free(sa, sa->head[l]);
    sa_groups_done(sa);
    free(sa->sub);
    free(sa->hash);
    free(sa->rate);
    free(sa->mtu);
    free(sa->end);
    u64map_done(&sa->told);
    u64map_done(&sa->anew);
    fabric_unref(sa->fabric);
    tables_unref(sa->tables);
    free(sa);
    sm->sa = NULL;
}

void sm_sa_stats(const struct sm *sm, struct sm_sa_stats *ret)
{
    const struct sm_sa *sa = sm->sa;
    *ret = sa->stats;
    ret->waiting = sa->waiting;
    ret->ready = sa->ready && sm->state == SM_MASTER;
    ret->groups = sa->num_groups;
    ret->members = sa->num_members;
    ret->subscriptions = sa->num_subs;
    sm_mcast_stats(sm, ret);
}
