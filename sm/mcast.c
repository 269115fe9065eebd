// SPDX-License-Identifier: Apache-2.0
// Multicast forwarding tables on the switches.
//
// When the tree (mcast_tree.c) or members of an MLID change, its masks are made anew. Both mark MLIDs, and a
// round brings the switches to what is wanted, by LID-routed SMPs, block by block, what differs only:
//
//     collect -> read (blocks nobody has read since the switch reset) -> remove -> add
//
// A tree that changes on many switches at once would form circles with the old one while the writes are on
// their way: so first every port goes that the new tree has not, and when all have answered the others come.
// Any mix of old and common entries is part of the old tree, any mix of common and new ones of the new.
//
// Rounds have numbers, which joins wait for. They run at any time, also during a sweep, on the fabric of the
// last generation. A block that could not be written is unknown again and tried a second later.
//
// After a start without recorded groups on a fabric whose switches forward groups already, nothing is written
// until members have joined again (MCAST_SETTLE after the last, MCAST_HOLD at most): what is there serves
// them meanwhile.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/guid.h"
#include "lib/log.h"
#include "lib/xalloc.h"
#include "sm/mcast_priv.h"

#define OPS_MAX 64 // on the wire or in the engine
#define MCAST_SETTLE (5 * MONO_S)
#define MCAST_HOLD (30 * MONO_S)
#define CAP_DEFAULT 1024 // MLIDs, before a switch has told
#define RECEIVES 0x3     // JoinStates of full members and non-members; the others only send

static void step(void *arg);

// --- tables ---

static struct mcast_block *block_at(struct mcast_mft *t, unsigned block, unsigned position, bool make)
{
    if (block >= t->blocks || position >= t->positions)
        return NULL;
    struct mcast_block **b = &t->block[block * t->positions + position];
    if (*b == NULL && make)
        *b = xcalloc(1, sizeof(**b));
    return *b;
}

static void mft_drop(struct mcast_mft *t)
{
    for (size_t i = 0; i < (size_t)t->blocks * t->positions; i++)
        free(t->block[i]);
    free(t->block);
    t->block = NULL;
    t->blocks = 0;
}

static void mft_size(struct mcast_mft *t, const struct node *n)
{
    uint8_t positions = (uint8_t)(n->num_ports / 16 + 1);
    unsigned blocks = (n->mft_cap + MLIDS_BLOCK - 1u) / MLIDS_BLOCK;
    if (blocks > BLOCKS_MAX)
        blocks = BLOCKS_MAX;
    if (t->block != NULL && t->positions == positions && t->blocks == blocks)
        return;
    mft_drop(t);
    t->positions = positions;
    t->blocks = (uint16_t)blocks;
    t->block = xcalloc((size_t)blocks * positions + 1, sizeof(struct mcast_block *));
}

static uint32_t mft_of(struct sm_mcast *m, const struct node *n)
{
    uint32_t i;
    if (!u64map_get(&m->by_guid, n->guid, &i)) {
        if (m->num_mft == m->cap_mft) {
            m->cap_mft = m->cap_mft ? m->cap_mft * 2 : 64;
            m->mft = xreallocarray(m->mft, m->cap_mft, sizeof(*m->mft));
        }
        i = m->num_mft++;
        m->mft[i] = (struct mcast_mft){.guid = n->guid};
        u64map_set(&m->by_guid, n->guid, i);
    }
    mft_size(&m->mft[i], n);
    m->mft[i].here = true;
    return i;
}

void sm_mcast_take_fabric(struct sm_mcast *m, const struct fabric *f)
{
    uint32_t cap = UINT32_MAX;

    fabric_ref(f);
    fabric_unref(m->fabric);
    m->fabric = f;
    for (uint32_t i = 0; i < m->num_mft; i++)
        m->mft[i].here = false;
    m->of_switch = xreallocarray(m->of_switch, f->num_switches + 1, sizeof(uint32_t));
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        const struct node *n = fabric_switch(f, sw);
        m->of_switch[sw] = mft_of(m, n);
        if (n->mft_cap > 0 && n->mft_cap < cap)
            cap = n->mft_cap;
    }
    if (cap == UINT32_MAX)
        cap = CAP_DEFAULT;
    if (cap > MLID_COUNT)
        cap = MLID_COUNT;
    m->mlid_max = (uint16_t)(MLID_MIN + cap - 1);
}

bool sm_mcast_block(const struct sm *sm, uint64_t switch_guid, unsigned block, unsigned position,
                    uint16_t ret[32])
{
    const struct sm_mcast *m = sm->mcast;
    uint32_t i;
    if (m == NULL || !u64map_get(&m->by_guid, switch_guid, &i))
        return false;
    const struct mcast_block *b = block_at(&m->mft[i], block, position, false);
    bool any = false;
    for (unsigned k = 0; b != NULL && k < MLIDS_BLOCK; k++) {
        ret[k] = b->held[k];
        any |= b->held[k] != 0;
    }
    return any;
}

// --- what is to be done ---

static bool is_dirty(const struct sm_mcast *m, uint16_t mlid)
{
    unsigned i = mlid - MLID_MIN;
    return m->dirty[i / 64] >> (i % 64) & 1;
}

static void wake(struct sm_mcast *m)
{
    if (m->phase == MCAST_IDLE && m->any_dirty)
        loop_post(m->sm->loop, &m->task);
}

void sm_mcast_dirty(struct sm *sm, uint16_t mlid)
{
    struct sm_mcast *m = sm->mcast;
    if (m == NULL || mlid < MLID_MIN || mlid > MAD_LID_MULTICAST_MAX)
        return;
    unsigned i = mlid - MLID_MIN;
    m->dirty[i / 64] |= 1ull << (i % 64);
    m->any_dirty = true;
    m->last_join = loop_now(sm->loop);
    wake(m);
}

void sm_mcast_all_dirty(struct sm_mcast *m)
{
    const struct sm_sa *sa = m->sm->sa;
    for (uint32_t i = 0; i < sa->num_groups; i++) {
        if (sa->group[i]->num == 0)
            continue; // nothing is wanted of any switch
        unsigned k = sa->group[i]->rec.mlid - MLID_MIN;
        m->dirty[k / 64] |= 1ull << (k % 64);
        m->any_dirty = true;
    }
    wake(m);
}

static void block_dirty(struct sm_mcast *m, unsigned block)
{
    m->dirty[block / 2] |= 0xffffffffull << (block % 2 * 32);
    m->any_dirty = true;
}

uint64_t sm_mcast_ticket(struct sm *sm)
{
    const struct sm_mcast *m = sm->mcast;
    if (m == NULL || m->held)
        return 0;
    return m->any_dirty ? m->round + 1 : m->phase != MCAST_IDLE ? m->round : 0;
}

uint16_t sm_mcast_mlid_max(const struct sm *sm)
{
    return sm->mcast != NULL ? sm->mcast->mlid_max : MLID_MIN + CAP_DEFAULT - 1;
}

uint16_t sm_mcast_top(const struct sm *sm, const struct sm_dev *d)
{
    struct mad_port_info pi;
    (void)sm;
    if (!dev_is_switch(d) || !d->have_si || !d->port[0].known || d->si.multicast_fdb_cap == 0)
        return 0;
    mad_port_info_decode(d->port[0].info, &pi);
    if (!(pi.capability_mask & MAD_CAP_IS_MULTICAST_FDB_TOP_SUPPORTED))
        return 0;
    uint32_t top = MLID_MIN + d->si.multicast_fdb_cap - 1u; // the whole table, once and for all
    return top > MAD_LID_MULTICAST_MAX ? MAD_LID_MULTICAST_MAX : (uint16_t)top;
}

// --- collect ---

static void add_place(struct sm_mcast *m, size_t *cap, uint16_t mlid, const struct sa_member *x)
{
    struct mcast_place p = {.mlid = mlid, .m.receives = (x->join_state & RECEIVES) != 0};
    port_id id = fabric_by_port_guid(m->fabric, x->port_guid);

    if (!port_valid(id) || !mcast_place(m->fabric, id, &p.m.sw, &p.m.port))
        return;
    m->lacking |= !m->tree->step[p.m.sw].in;
    if (m->num_place == *cap) {
        *cap = *cap ? *cap * 2 : 256;
        m->place = xreallocarray(m->place, *cap, sizeof(*m->place));
    }
    m->place[m->num_place++] = p;
}

static int by_mlid(const void *a, const void *b)
{
    const struct mcast_place *x = a, *y = b;
    return x->mlid < y->mlid ? -1 : x->mlid > y->mlid;
}

// Members of all dirty MLIDs, in order of MLID.
static void gather(struct sm_mcast *m)
{
    const struct sm_sa *sa = m->sm->sa;
    size_t cap = 0;

    m->num_place = m->at_place = 0;
    free(m->place);
    m->place = NULL;
    for (uint32_t i = 0; i < sa->num_groups; i++) {
        const struct sa_group *g = sa->group[i];
        for (uint32_t k = 0; k < g->num && is_dirty(m, g->rec.mlid); k++)
            add_place(m, &cap, g->rec.mlid, &g->member[k]);
    }
    if (m->num_place > 0)
        qsort(m->place, m->num_place, sizeof(*m->place), by_mlid);
}

static void want_none(struct sm_mcast *m, unsigned block, unsigned k)
{
    for (uint32_t i = 0; i < m->num_mft; i++)
        for (unsigned p = 0; p < m->mft[i].positions; p++) {
            struct mcast_block *b = block_at(&m->mft[i], block, p, false);
            if (b != NULL)
                b->want[k] = 0;
        }
}

static void want_mask(struct sm_mcast *m, const struct mcast_mask *x, unsigned block, unsigned k)
{
    struct mcast_mft *t = &m->mft[m->of_switch[x->sw]];
    for (unsigned p = 0; p < t->positions; p++) {
        uint16_t bits = (uint16_t)(x->port[p / 4] >> (p % 4 * 16));
        struct mcast_block *b = block_at(t, block, p, bits != 0);
        if (b != NULL)
            b->want[k] = bits;
    }
}

// Dirty bits go at the start of the round, into m->busy; what comes meanwhile is the next one's.
static void collect_begin(struct sm_mcast *m)
{
    gather(m);
    memset(m->busy, 0, sizeof(m->busy));
    for (unsigned i = 0; i <= MAD_LID_MULTICAST_MAX - MLID_MIN; i++)
        if (m->dirty[i / 64] >> (i % 64) & 1) {
            m->busy[i / MLIDS_BLOCK / 64] |= 1ull << (i / MLIDS_BLOCK % 64);
            want_none(m, i / MLIDS_BLOCK, i % MLIDS_BLOCK);
        }
    memset(m->dirty, 0, sizeof(m->dirty));
    m->any_dirty = false;
}

static bool collect(struct sm_mcast *m)
{
    mono_t began = loop_now_precise(m->sm->loop);
    struct mcast_member *list = NULL;
    size_t cap = 0;

    while (m->at_place < m->num_place && mono_sub(loop_now_precise(m->sm->loop), began) < SA_SLICE_NS) {
        size_t n = 0;
        uint16_t mlid = m->place[m->at_place].mlid;
        for (; m->at_place < m->num_place && m->place[m->at_place].mlid == mlid; m->at_place++) {
            if (n == cap) {
                cap = cap ? cap * 2 : 256;
                list = xreallocarray(list, cap, sizeof(*list));
            }
            list[n++] = m->place[m->at_place].m;
        }
        struct mcast_mask *mask;
        uint32_t num = mcast_masks(m->tree, list, (uint32_t)n, &mask);
        unsigned i = mlid - MLID_MIN;
        for (uint32_t k = 0; k < num; k++)
            want_mask(m, &mask[k], i / MLIDS_BLOCK, i % MLIDS_BLOCK);
        free(mask);
    }
    free(list);
    return m->at_place == m->num_place;
}

// --- the wire ---

static bool op_due(const struct sm_mcast *m, const struct mcast_block *b)
{
    bool want = false, less = false, more = false;
    for (unsigned k = 0; k < MLIDS_BLOCK; k++) {
        want |= b->want[k] != 0;
        less |= (b->held[k] & ~b->want[k]) != 0;
        more |= (b->want[k] & ~b->held[k]) != 0;
    }
    switch (m->phase) {
    case MCAST_READ:
        return !b->known && want;
    case MCAST_REMOVE:
        return b->known && less;
    case MCAST_ADD:
        return b->known && (more || less);
    case MCAST_IDLE:
    case MCAST_COLLECT:
        break;
    }
    return false;
}

static void add_op(struct sm_mcast *m, uint32_t mft, unsigned block, unsigned position)
{
    if (m->num_op == m->cap_op) {
        m->cap_op = m->cap_op ? m->cap_op * 2 : 256;
        m->op = xreallocarray(m->op, m->cap_op, sizeof(*m->op));
    }
    m->op[m->num_op++] =
        (struct mcast_op){.mft = mft, .block = (uint16_t)block, .position = (uint8_t)position};
}

static void find_ops(struct sm_mcast *m)
{
    m->num_op = m->next_op = 0;
    for (unsigned block = 0; block < BLOCKS_MAX; block++) {
        if (!(m->busy[block / 64] >> (block % 64) & 1))
            continue;
        for (uint32_t i = 0; i < m->num_mft; i++)
            for (unsigned p = 0; m->mft[i].here && p < m->mft[i].positions; p++) {
                const struct mcast_block *b = block_at(&m->mft[i], block, p, false);
                if (b != NULL && op_due(m, b))
                    add_op(m, i, block, p);
            }
    }
}

static void failure(struct sm_mcast *m, const struct mcast_op *o, struct mcast_block *b,
                    const struct mad_result *r)
{
    b->known = false;
    m->failures++;
    m->later[o->block / 64] |= 1ull << (o->block % 64);
    if (!loop_timer_pending(&m->retry))
        loop_timer_after(&m->retry, MONO_S);
    log_remote(m->mft[o->mft].guid, "mcast-write-failed",
               "fabric=%s switch=" GUID_FMT " block=%u position=%u error=%d status=0x%x", m->sm->o.fabric,
               GUID_ARG(m->mft[o->mft].guid), o->block, o->position, r->status, r->mad_status);
}

static void op_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct sm *sm = arg;
    struct sm_mcast *m = sm->mcast;
    const struct mcast_op *o = &m->op[user];
    struct mcast_block *b = block_at(&m->mft[o->mft], o->block, o->position, true);
    struct mad_multicast_forwarding_table t;

    if (b == NULL) {
        ; // the switch was replaced by one with a smaller table
    } else if (r->status != 0 || r->mad_status != 0) {
        failure(m, o, b, r);
    } else {
        mad_multicast_forwarding_table_decode(r->data, &t);
        memcpy(b->held, t.port_mask, sizeof(b->held));
        b->known = true;
    }
    m->pending--;
    loop_post(sm->loop, &m->task);
}

static void send_op(struct sm_mcast *m, uint32_t i)
{
    const struct mcast_op *o = &m->op[i];
    const struct mcast_mft *t = &m->mft[o->mft];
    struct mcast_block *b = block_at(&m->mft[o->mft], o->block, o->position, true);
    const struct node *n = fabric_by_guid(m->fabric, t->guid);
    const struct sm_dev *d = sm_dev_find(m->sm, t->guid);
    struct mad_multicast_forwarding_table w;
    uint8_t data[MAD_SMP_DATA_SIZE];
    bool get = m->phase == MCAST_READ;

    if (n == NULL || b == NULL)
        return; // gone since
    for (unsigned k = 0; k < MLIDS_BLOCK; k++)
        w.port_mask[k] = m->phase == MCAST_REMOVE ? b->held[k] & b->want[k] : b->want[k];
    mad_multicast_forwarding_table_encode(&w, data);
    m->pending++;
    m->sets += !get;
    m->gets += get;
    mad_engine_send(m->sm->engine,
                    &(struct mad_request){
                        .mgmt_class = MAD_CLASS_SM_LID,
                        .method = get ? MAD_METHOD_GET : MAD_METHOD_SET,
                        .attr_id = MAD_ATTR_MULTICAST_FORWARDING_TABLE,
                        .attr_mod = (uint32_t)o->position << 28 | o->block,
                        .m_key = d != NULL ? sm_m_key(d, 0) : 0,
                        .lid = m->fabric->port[n->first_port].a.lid,
                        .data = get ? NULL : data,
                        .data_len = get ? 0 : MAD_SMP_DATA_SIZE,
                        .prio = MAD_PRIO_SMP,
                        // By LID it may be led over a link that has just died: in the device's own window
                        // it would hold up the sweep that mends that.
                        .device = sm_window_key(t->guid, SM_WINDOW_MULTICAST),
                        .retries = 2, // a switch that is dead leaves the fabric with the next sweep
                        .done = op_done,
                        .arg = m->sm,
                        .user = i,
                    });
}

// --- rounds ---

static void hold_over(struct sm_mcast *m)
{
    m->held = false;
    sm_mcast_all_dirty(m);
}

static void round_end(struct sm_mcast *m)
{
    m->phase = MCAST_IDLE;
    if (m->looking) { // that round has only read
        m->looking = false;
        m->looked = true;
        for (uint32_t i = 0; i < m->num_mft && !m->held; i++)
            for (unsigned p = 0; p < m->mft[i].positions; p++) {
                const struct mcast_block *b = block_at(&m->mft[i], 0, p, false);
                for (unsigned k = 0; b != NULL && k < MLIDS_BLOCK; k++)
                    m->held |= b->held[k] != 0;
            }
        m->held_since = m->last_join = loop_now(m->sm->loop);
        if (m->held)
            log_notice("mcast-held", "fabric=%s tables found are kept until members have joined again",
                       m->sm->o.fabric);
        m->round += m->held; // those who wait need not
        if (m->held)
            loop_timer_after(&m->retry, MONO_S);
    }
    sa_tables_done(m->sm, m->round);
    sm_mcast_tree_round_over(m);
    wake(m);
}

static void retry(void *arg)
{
    struct sm_mcast *m = arg;
    mono_t now = loop_now(m->sm->loop);

    if (!m->held) {
        for (unsigned b = 0; b < BLOCKS_MAX; b++)
            if (m->later[b / 64] >> (b % 64) & 1)
                block_dirty(m, b);
        memset(m->later, 0, sizeof(m->later));
        wake(m);
    } else if (mono_sub(now, m->last_join) >= MCAST_SETTLE || mono_sub(now, m->held_since) >= MCAST_HOLD) {
        hold_over(m);
    } else {
        loop_timer_after(&m->retry, MONO_S);
    }
}

// Block 0 of the switches that members can be on: whoever ran this fabric began there too.
static void look(struct sm_mcast *m)
{
    m->num_op = m->next_op = 0;
    m->phase = MCAST_READ;
    for (uint32_t sw = 0; sw < m->fabric->num_switches; sw++) {
        uint32_t i = m->of_switch[sw];
        for (unsigned p = 0; m->tree->step[sw].in && m->mft[i].blocks > 0 && p < m->mft[i].positions; p++)
            add_op(m, i, 0, p);
    }
}

static bool round_begin(struct sm_mcast *m)
{
    if (m->tree == NULL || m->held || m->sm->state != SM_MASTER)
        return false;
    if (!m->looked && m->sm->sa->loaded)
        m->looked = true;
    if (!m->any_dirty)
        return false;
    if (!m->looked) { // the first member
        m->looking = true;
        look(m);
        return true;
    }
    m->round++;
    m->rounds++;
    m->phase = MCAST_COLLECT;
    collect_begin(m);
    return true;
}

static enum mcast_phase after(enum mcast_phase p)
{
    switch (p) {
    case MCAST_COLLECT:
        return MCAST_READ;
    case MCAST_READ:
        return MCAST_REMOVE;
    case MCAST_REMOVE:
        return MCAST_ADD;
    case MCAST_ADD:
    case MCAST_IDLE:
        break;
    }
    return MCAST_IDLE;
}

static void step(void *arg)
{
    struct sm_mcast *m = arg;

    sm_mcast_tree_step(m);
    if (m->phase == MCAST_IDLE && !round_begin(m))
        return;
    if (m->phase == MCAST_COLLECT) {
        if (!collect(m)) {
            loop_post(m->sm->loop, &m->task);
            return;
        }
        m->phase = MCAST_READ;
        find_ops(m);
    }
    for (;;) {
        while (m->next_op < m->num_op && m->pending < OPS_MAX)
            send_op(m, m->next_op++);
        if (m->pending > 0 || m->next_op < m->num_op)
            return;
        m->phase = m->looking ? MCAST_IDLE : after(m->phase);
        if (m->phase == MCAST_IDLE) {
            round_end(m);
            return;
        }
        find_ops(m);
    }
}

// --- what is told ---

static void mft_void(struct mcast_mft *t)
{
    t->here = false;
    for (size_t k = 0; k < (size_t)t->blocks * t->positions; k++)
        if (t->block[k] != NULL)
            t->block[k]->known = false;
}

// Nothing is written to it before the sweep that has noticed it has given it its routes.
void sm_mcast_switch_reset(struct sm *sm, const struct sm_dev *d)
{
    struct sm_mcast *m = sm->mcast;
    uint32_t i;

    if (m == NULL || !u64map_get(&m->by_guid, d->guid, &i))
        return;
    mft_void(&m->mft[i]);
}

void sm_mcast_void(struct sm *sm)
{
    struct sm_mcast *m = sm->mcast;
    for (uint32_t i = 0; m != NULL && i < m->num_mft; i++)
        mft_void(&m->mft[i]);
}

void sm_mcast_stats(const struct sm *sm, struct sm_sa_stats *ret)
{
    const struct sm_mcast *m = sm->mcast;
    ret->mft_blocks_set = m->sets;
    ret->mft_blocks_read = m->gets;
    ret->mft_failures = m->failures;
    ret->mft_rounds = (uint32_t)m->rounds;
    ret->tree_jobs = m->jobs;
    ret->mlid_max = m->mlid_max;
    ret->root_guid = m->roots[0];
    ret->tree_switches = m->tree != NULL ? m->tree->num_in : 0;
    ret->tree_proved = m->tree != NULL && m->tree->proved;
    ret->mft_held = m->held;
}

int sm_mcast_init(struct sm *sm)
{
    struct sm_mcast *m = xcalloc(1, sizeof(*m));

    sm->mcast = m;
    m->sm = sm;
    m->mlid_max = MLID_MIN + CAP_DEFAULT - 1;
    u64map_init(&m->by_guid, NULL, 64);
    loop_task_init(&m->task, "sa", step, m);
    loop_timer_init(&m->retry, sm->loop, "sa", retry, m);
    sm_mcast_tree_init(m);
    return 0;
}

void sm_mcast_done(struct sm *sm)
{
    struct sm_mcast *m = sm->mcast;
    if (m == NULL)
        return;
    loop_unpost(sm->loop, &m->task);
    loop_timer_cancel(&m->retry);
    sm_mcast_tree_done(m);
    for (uint32_t i = 0; i < m->num_mft; i++)
        mft_drop(&m->mft[i]);
    fabric_unref(m->fabric);
    u64map_done(&m->by_guid);
    free(m->mft);
    free(m->of_switch);
    free(m->place);
    free(m->op);
    free(m);
    sm->mcast = NULL;
}
