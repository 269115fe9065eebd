// SPDX-License-Identifier: Apache-2.0
// Multicast forwarding tables on the switches.
//
// When a sweep has ended well, a worker makes the tree (routing/mcast.h); when members of an MLID change, its
// masks are made anew from the tree. Both mark MLIDs, and a round brings the switches to what is wanted, by
// LID-routed SMPs, block by block, what differs only:
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
#include "sm/sa_priv.h"

#define MLIDS_BLOCK 32
#define BLOCKS_MAX 512
#define MLID_MIN MAD_LID_MULTICAST_MIN
#define MLID_COUNT (MAD_LID_MULTICAST_MAX - MAD_LID_MULTICAST_MIN + 1)
#define OPS_MAX 128 // on the wire or in the engine
#define MCAST_SETTLE (5 * MONO_S)
#define MCAST_HOLD (30 * MONO_S)
#define RECEIVES 0x3     // JoinStates of full members and non-members; the others only send
#define CAP_DEFAULT 1024 // MLIDs, before a switch has told
#define ROOTS_BLOB "mcast-roots"

struct mft_block {
    bool known; // held is what the switch has
    uint16_t held[MLIDS_BLOCK], want[MLIDS_BLOCK];
};
struct mft { // of one switch
    uint64_t guid;
    uint8_t positions;
    uint16_t blocks;          // that it has
    bool here;                // in the fabric of the tree
    struct mft_block **block; // blocks * positions; NULL: never touched
};

struct mcast_job {
    struct pool_job job;
    struct sm *sm;
    const struct fabric *fabric;
    const struct fabric_tables *tables;
    bool *needed;
    uint64_t roots[MCAST_ROOTS_MAX];
    struct mcast_opts opts;
    struct mcast_tree *tree; // the result
};

struct place { // of a member of an MLID
    uint16_t mlid;
    struct mcast_member m;
};

struct op {
    uint32_t mft;
    uint16_t block;
    uint8_t position;
};

enum phase { IDLE, COLLECT, READ, REMOVE, ADD };

struct sm_mcast {
    struct sm *sm;
    struct mcast_tree *tree;
    const struct fabric *fabric;        // that the tree is of
    const struct fabric_tables *tables; // likewise
    uint64_t topology;                  // a hash of what the tree depends on beside the tables
    struct mcast_job *job;
    bool again;              // the fabric has changed since the job began
    struct mcast_job *ready; // done while a round ran
    uint64_t roots[MCAST_ROOTS_MAX];
    uint32_t num_roots;

    struct mft *mft;
    uint32_t num_mft, cap_mft;
    struct u64map by_guid; // NodeGUID -> mft
    uint32_t *of_switch;   // by switch of fabric
    uint16_t mlid_max;

    uint64_t dirty[MLID_COUNT / 64 + 1]; // MLIDs
    bool any_dirty;
    uint64_t busy[BLOCKS_MAX / 64];  // blocks of the running round
    uint64_t later[BLOCKS_MAX / 64]; // blocks that were not written

    enum phase phase;
    uint64_t round; // number of the last one that has begun
    struct place *place;
    size_t num_place, at_place;
    struct op *op;
    uint32_t num_op, cap_op, next_op, pending;
    bool lacking; // a member's switch is not in the tree
    struct loop_task task;
    struct loop_timer retry;

    bool looked, looking, held; // at what the switches had before
    mono_t held_since, last_join;
    uint64_t sets, gets, failures, rounds;
};

static void step(void *arg);
static void job_start(struct sm *sm);

// --- tables ---

static struct mft_block *block_at(struct mft *t, unsigned block, unsigned position, bool make)
{
    if (block >= t->blocks || position >= t->positions)
        return NULL;
    struct mft_block **b = &t->block[block * t->positions + position];
    if (*b == NULL && make)
        *b = xcalloc(1, sizeof(**b));
    return *b;
}

static void mft_drop(struct mft *t)
{
    for (size_t i = 0; i < (size_t)t->blocks * t->positions; i++)
        free(t->block[i]);
    free(t->block);
    t->block = NULL;
    t->blocks = 0;
}

static void mft_size(struct mft *t, const struct node *n)
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
    t->block = xcalloc((size_t)blocks * positions + 1, sizeof(struct mft_block *));
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
        m->mft[i] = (struct mft){.guid = n->guid};
        u64map_set(&m->by_guid, n->guid, i);
    }
    mft_size(&m->mft[i], n);
    m->mft[i].here = true;
    return i;
}

bool sm_mcast_block(const struct sm *sm, uint64_t switch_guid, unsigned block, unsigned position,
                    uint16_t ret[32])
{
    const struct sm_mcast *m = sm->mcast;
    uint32_t i;
    if (m == NULL || !u64map_get(&m->by_guid, switch_guid, &i))
        return false;
    const struct mft_block *b = block_at(&m->mft[i], block, position, false);
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
    if (m->phase == IDLE && m->any_dirty)
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

static void all_dirty(struct sm_mcast *m)
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
    return m->any_dirty ? m->round + 1 : m->phase != IDLE ? m->round : 0;
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
    struct place p = {.mlid = mlid, .m.receives = (x->join_state & RECEIVES) != 0};
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
    const struct place *x = a, *y = b;
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
            struct mft_block *b = block_at(&m->mft[i], block, p, false);
            if (b != NULL)
                b->want[k] = 0;
        }
}

static void want_mask(struct sm_mcast *m, const struct mcast_mask *x, unsigned block, unsigned k)
{
    struct mft *t = &m->mft[m->of_switch[x->sw]];
    for (unsigned p = 0; p < t->positions; p++) {
        uint16_t bits = (uint16_t)(x->port[p / 4] >> (p % 4 * 16));
        struct mft_block *b = block_at(t, block, p, bits != 0);
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

static bool op_due(const struct sm_mcast *m, const struct mft_block *b)
{
    bool want = false, less = false, more = false;
    for (unsigned k = 0; k < MLIDS_BLOCK; k++) {
        want |= b->want[k] != 0;
        less |= (b->held[k] & ~b->want[k]) != 0;
        more |= (b->want[k] & ~b->held[k]) != 0;
    }
    switch (m->phase) {
    case READ:
        return !b->known && want;
    case REMOVE:
        return b->known && less;
    case ADD:
        return b->known && (more || less);
    case IDLE:
    case COLLECT:
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
    m->op[m->num_op++] = (struct op){.mft = mft, .block = (uint16_t)block, .position = (uint8_t)position};
}

static void find_ops(struct sm_mcast *m)
{
    m->num_op = m->next_op = 0;
    for (unsigned block = 0; block < BLOCKS_MAX; block++) {
        if (!(m->busy[block / 64] >> (block % 64) & 1))
            continue;
        for (uint32_t i = 0; i < m->num_mft; i++)
            for (unsigned p = 0; m->mft[i].here && p < m->mft[i].positions; p++) {
                const struct mft_block *b = block_at(&m->mft[i], block, p, false);
                if (b != NULL && op_due(m, b))
                    add_op(m, i, block, p);
            }
    }
}

static void failure(struct sm_mcast *m, const struct op *o, struct mft_block *b, const struct mad_result *r)
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
    const struct op *o = &m->op[user];
    struct mft_block *b = block_at(&m->mft[o->mft], o->block, o->position, true);
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
    const struct op *o = &m->op[i];
    const struct mft *t = &m->mft[o->mft];
    struct mft_block *b = block_at(&m->mft[o->mft], o->block, o->position, true);
    const struct node *n = fabric_by_guid(m->fabric, t->guid);
    const struct sm_dev *d = sm_dev_find(m->sm, t->guid);
    struct mad_multicast_forwarding_table w;
    uint8_t data[MAD_SMP_DATA_SIZE];
    bool get = m->phase == READ;

    if (n == NULL || b == NULL)
        return; // gone since
    for (unsigned k = 0; k < MLIDS_BLOCK; k++)
        w.port_mask[k] = m->phase == REMOVE ? b->held[k] & b->want[k] : b->want[k];
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
                        .device = t->guid,
                        .retries = 2, // a switch that is dead leaves the fabric with the next sweep
                        .done = op_done,
                        .arg = m->sm,
                        .user = i,
                    });
}

// --- rounds ---

static void adopt(struct sm_mcast *m, struct mcast_job *j);
static void plan_anew(struct sm_mcast *m, bool take);

static void hold_over(struct sm_mcast *m)
{
    m->held = false;
    all_dirty(m);
}

static void round_end(struct sm_mcast *m)
{
    m->phase = IDLE;
    if (m->looking) { // that round has only read
        m->looking = false;
        m->looked = true;
        for (uint32_t i = 0; i < m->num_mft && !m->held; i++)
            for (unsigned p = 0; p < m->mft[i].positions; p++) {
                const struct mft_block *b = block_at(&m->mft[i], 0, p, false);
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
    if (m->ready != NULL) {
        struct mcast_job *j = m->ready;
        m->ready = NULL;
        adopt(m, j);
    }
    if (m->lacking)
        plan_anew(m, false);
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
    m->phase = READ;
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
    m->phase = COLLECT;
    collect_begin(m);
    return true;
}

static enum phase after(enum phase p)
{
    switch (p) {
    case COLLECT:
        return READ;
    case READ:
        return REMOVE;
    case REMOVE:
        return ADD;
    case ADD:
    case IDLE:
        break;
    }
    return IDLE;
}

static void step(void *arg)
{
    struct sm_mcast *m = arg;

    if (m->again && m->job == NULL) {
        m->again = false;
        job_start(m->sm);
    }
    if (m->phase == IDLE && !round_begin(m))
        return;
    if (m->phase == COLLECT) {
        if (!collect(m)) {
            loop_post(m->sm->loop, &m->task);
            return;
        }
        m->phase = READ;
        find_ops(m);
    }
    for (;;) {
        while (m->next_op < m->num_op && m->pending < OPS_MAX)
            send_op(m, m->next_op++);
        if (m->pending > 0 || m->next_op < m->num_op)
            return;
        m->phase = m->looking ? IDLE : after(m->phase);
        if (m->phase == IDLE) {
            round_end(m);
            return;
        }
        find_ops(m);
    }
}

// --- the tree ---

static void job_free(struct mcast_job *j)
{
    if (j == NULL)
        return;
    fabric_unref(j->fabric);
    tables_unref(j->tables);
    mcast_tree_free(j->tree);
    free(j->needed);
    free(j);
}

static void job_work(void *arg, struct par *par)
{
    struct mcast_job *j = arg;
    (void)par;
    j->tree = mcast_tree_make(j->fabric, j->tables, &j->opts);
}

static void job_done(void *arg)
{
    struct mcast_job *j = arg;

    if (j->sm == NULL) { // the manager has ended
        job_free(j);
        return;
    }
    struct sm_mcast *m = j->sm->mcast;
    m->job = NULL;
    if (m->again) {
        job_free(j);
        loop_post(m->sm->loop, &m->task);
    } else if (m->phase != IDLE) {
        job_free(m->ready);
        m->ready = j;
    } else {
        adopt(m, j);
    }
}

// What the tree depends on: cables between switches, and which switches members can be on.
static uint64_t topology(const struct fabric *f, const bool *needed)
{
    uint64_t h = f->num_switches;
    for (uint32_t sw = 0; sw < f->num_switches; sw++) {
        const struct node *n = fabric_switch(f, sw);
        h = hash_mix64(h ^ n->guid ^ (uint64_t)needed[sw] << 63);
        for (unsigned i = 1; i <= n->num_ports; i++) {
            const struct port *p = &f->port[n->first_port + i];
            const struct node *z = fabric_peer_node(f, p);
            if (z != NULL && z->type == NODE_SWITCH && p->excluded == PORT_INCLUDED)
                h = hash_mix64(h ^ z->guid ^ (uint64_t)i << 56 ^ (uint64_t)f->port[p->peer.i].num << 48);
        }
    }
    return h;
}

static bool *find_needed(const struct sm *sm, const struct fabric *f)
{
    bool *needed = xcalloc(f->num_switches + 1, sizeof(*needed));
    uint32_t sw;
    uint8_t num;

    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct node *n = &f->node[f->port[i].node.i];
        if (n->type != NODE_SWITCH && n->role != ROLE_AGGREGATION && mcast_place(f, (port_id){i}, &sw, &num))
            needed[sw] = true;
    }
    for (uint32_t i = 0; i < sm->sa->num_groups; i++)
        for (uint32_t k = 0; k < sm->sa->group[i]->num; k++) {
            port_id id = fabric_by_port_guid(f, sm->sa->group[i]->member[k].port_guid);
            if (port_valid(id) && mcast_place(f, id, &sw, &num))
                needed[sw] = true;
        }
    return needed;
}

static void job_start(struct sm *sm)
{
    struct sm_mcast *m = sm->mcast;
    struct mcast_job *j = xcalloc(1, sizeof(*j));

    j->sm = sm;
    j->fabric = fabric_ref(sm->fabric);
    j->tables = tables_ref(sm->tables);
    j->needed = find_needed(sm, sm->fabric);
    memcpy(j->roots, m->roots, sizeof(j->roots));
    j->opts = (struct mcast_opts){
        .needed = j->needed, .roots = j->roots, .num_roots = m->num_roots, .top_guid = sm->route.top_guid};
    j->job.work = job_work;
    j->job.done = job_done;
    j->job.arg = j;
    m->job = j;
    pool_submit(sm->pool, &j->job);
}

static void take_fabric(struct sm_mcast *m, const struct fabric *f, const struct fabric_tables *t)
{
    uint32_t cap = UINT32_MAX;

    fabric_ref(f);
    tables_ref((struct fabric_tables *)t);
    fabric_unref(m->fabric);
    tables_unref(m->tables);
    m->fabric = f;
    m->tables = t;
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

static void take_roots(struct sm_mcast *m)
{
    const struct mcast_tree *t = m->tree;
    uint64_t roots[MCAST_ROOTS_MAX] = {0};

    for (uint32_t i = 0; i < t->num_roots; i++)
        roots[i] = fabric_switch(m->fabric, t->root[i])->guid;
    if (t->num_roots == m->num_roots && memcmp(roots, m->roots, sizeof(roots)) == 0)
        return;
    memcpy(m->roots, roots, sizeof(roots));
    m->num_roots = t->num_roots;
    log_notice("mcast-root", "fabric=%s root=" GUID_FMT " trees=%u switches=%u proved=%d", m->sm->o.fabric,
               GUID_ARG(roots[0]), t->num_roots, t->num_in, t->proved);
    if (m->sm->db != NULL)
        db_blob_put(m->sm->db, m->sm->o.fabric, ROOTS_BLOB, roots, t->num_roots * sizeof(roots[0]), NULL,
                    NULL);
}

static void adopt(struct sm_mcast *m, struct mcast_job *j)
{
    bool was = m->tree == NULL || m->tree->proved || m->tree->unicast_cycle;

    mcast_tree_free(m->tree);
    m->tree = j->tree;
    j->tree = NULL;
    take_fabric(m, j->fabric, j->tables);
    m->topology = topology(j->fabric, j->needed);
    job_free(j);
    take_roots(m);
    if (was && !m->tree->proved && !m->tree->unicast_cycle)
        sm_event(m->sm, "multicast-unproved", "warning", "",
                 "no spanning tree is free of buffer cycles together with the unicast tables; the least bad "
                 "one is used");
    all_dirty(m);
}

// A new tree, unless it would be the same. take: the fabric is another one in any case.
static void plan_anew(struct sm_mcast *m, bool take)
{
    struct sm *sm = m->sm;

    m->lacking = false;
    if (m->job != NULL)
        return;
    if (m->ready == NULL && m->tree != NULL && m->phase == IDLE && m->tables == sm->tables) {
        bool *needed = find_needed(sm, sm->fabric);
        bool same = m->topology == topology(sm->fabric, needed);
        free(needed);
        if (same && take) { // members may be elsewhere
            take_fabric(m, sm->fabric, sm->tables);
            all_dirty(m);
        }
        if (same)
            return;
    }
    job_start(sm);
}

void sm_mcast_fabric_changed(struct sm *sm)
{
    struct sm_mcast *m = sm->mcast;

    if (m == NULL || sm->fabric == NULL || sm->tables == NULL)
        return;
    sa_fabric_changed(sm);
    if (m->job != NULL) {
        m->again = true;
        return;
    }
    plan_anew(m, true);
}

static void mft_void(struct mft *t)
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
    ret->mlid_max = m->mlid_max;
    ret->root_guid = m->roots[0];
    ret->tree_switches = m->tree != NULL ? m->tree->num_in : 0;
    ret->tree_proved = m->tree != NULL && m->tree->proved;
    ret->mft_held = m->held;
}

int sm_mcast_init(struct sm *sm)
{
    struct sm_mcast *m = xcalloc(1, sizeof(*m));
    void *roots = NULL;
    size_t n = 0;

    sm->mcast = m;
    m->sm = sm;
    m->mlid_max = MLID_MIN + CAP_DEFAULT - 1;
    u64map_init(&m->by_guid, NULL, 64);
    loop_task_init(&m->task, "sa", step, m);
    loop_timer_init(&m->retry, sm->loop, "sa", retry, m);
    if (sm->db != NULL && db_blob_get(sm->db, sm->o.fabric, ROOTS_BLOB, &roots, &n) == 0 &&
        n <= sizeof(m->roots) && n % sizeof(m->roots[0]) == 0) {
        memcpy(m->roots, roots, n);
        m->num_roots = (uint32_t)(n / sizeof(m->roots[0]));
    }
    free(roots);
    return 0;
}

void sm_mcast_done(struct sm *sm)
{
    struct sm_mcast *m = sm->mcast;
    if (m == NULL)
        return;
    loop_unpost(sm->loop, &m->task);
    loop_timer_cancel(&m->retry);
    if (m->job != NULL)
        m->job->sm = NULL; // frees itself when it is done
    job_free(m->ready);
    for (uint32_t i = 0; i < m->num_mft; i++)
        mft_drop(&m->mft[i]);
    mcast_tree_free(m->tree);
    fabric_unref(m->fabric);
    tables_unref(m->tables);
    u64map_done(&m->by_guid);
    free(m->mft);
    free(m->of_switch);
    free(m->place);
    free(m->op);
    free(m);
    sm->mcast = NULL;
}
