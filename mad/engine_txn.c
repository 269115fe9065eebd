// SPDX-License-Identifier: Apache-2.0
// Transactions: their storage, the MAD that goes out, TIDs, counters.
//
// TIDs: a transaction takes 16 consecutive ones when it first goes out, one for each try. They are handed out
// in order and so come again after 2^28 transactions: twenty minutes at 200,000 MADs a second, far longer
// than an answer can stay on its way. The map from TID to transaction is indexed by the same order: buckets
// rarely hold two.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/hash.h"
#include "lib/xalloc.h"
#include "mad/engine_priv.h"

// --- slab ---

void slab_init(struct slab *s, uint32_t size)
{
    *s = (struct slab){.free_head = NONE, .size = size};
}

void slab_done(struct slab *s)
{
    for (uint32_t i = 0; i < s->chunks; i++)
        free(s->chunk[i]);
    free(s->chunk);
}

uint32_t slab_alloc(struct slab *s)
{
    uint32_t i = s->free_head;
    if (i != NONE) {
        s->free_head = *(uint32_t *)slab_at(s, i);
        return i;
    }
    if (s->used == s->chunks << SLAB_SHIFT) {
        s->chunk = xreallocarray(s->chunk, s->chunks + 1, sizeof(*s->chunk));
        s->chunk[s->chunks++] = xmalloc((size_t)s->size << SLAB_SHIFT);
    }
    return s->used++;
}

void slab_free(struct slab *s, uint32_t i)
{
    *(uint32_t *)slab_at(s, i) = s->free_head;
    s->free_head = i;
}

// --- the MAD ---

int txn_check(const struct mad_request *r)
{
    bool dr = r->mgmt_class == MAD_CLASS_SM_DR;
    unsigned max = r->mgmt_class == MAD_CLASS_SA             ? MAD_SA_DATA_SIZE
                   : dr || r->mgmt_class == MAD_CLASS_SM_LID ? MAD_SMP_DATA_SIZE
                                                             : MAD_PM_DATA_SIZE;
    if (dr ? !r->path || r->path->hops > MAD_MAX_HOPS : !r->lid)
        return -EINVAL;
    if (r->method & MAD_METHOD_RESPONSE || (unsigned)r->prio >= MAD_PRIOS)
        return -EINVAL;
    return r->data && r->data_len > max ? -EMSGSIZE : 0;
}

void txn_compose(uint8_t mad[MAD_SIZE], const struct mad_request *r)
{
    bool sa = r->mgmt_class == MAD_CLASS_SA;

    memset(mad, 0, MAD_SIZE);
    mad[0] = MAD_BASE_VERSION;
    mad[1] = r->mgmt_class;
    mad[2] = r->class_version ? r->class_version : sa ? 2 : 1;
    mad[3] = r->method;
    put16(mad + 16, r->attr_id);
    put32(mad + 20, r->attr_mod);
    if (sa) {
        put64(mad + 36, r->m_key);
        put64(mad + 48, r->comp_mask);
    } else if (r->mgmt_class == MAD_CLASS_SM_DR || r->mgmt_class == MAD_CLASS_SM_LID) {
        put64(mad + 24, r->m_key);
    }
    if (r->mgmt_class == MAD_CLASS_SM_DR) {
        mad[7] = r->path->hops;
        put16(mad + 32, MAD_LID_PERMISSIVE);
        put16(mad + 34, MAD_LID_PERMISSIVE);
        memcpy(mad + 129, r->path->port + 1, r->path->hops);
    }
    if (r->data && r->data_len)
        memcpy(mad + (sa ? MAD_SA_DATA_OFFSET : MAD_SMP_DATA_OFFSET), r->data, r->data_len);
}

// --- TIDs ---

static uint32_t *bucket(const struct mad_engine *e, uint32_t tid)
{
    return &e->tid_map[tid / TRIES_MAX & e->tid_mask];
}

static void map_grow(struct mad_engine *e)
{
    uint32_t *old = e->tid_map, n = old ? e->tid_mask + 1 : 0, slots = n ? n * 2 : 1024;

    e->tid_map = xreallocarray(NULL, slots, sizeof(*e->tid_map));
    e->tid_mask = slots - 1;
    memset(e->tid_map, 0xff, slots * sizeof(*e->tid_map));
    for (uint32_t b = 0; b < n; b++)
        for (uint32_t i = old[b], next; i != NONE; i = next) {
            struct txn *x = txn_at(e, i);
            uint32_t *to = bucket(e, x->tid);
            next = x->hnext;
            x->hnext = *to;
            *to = i;
        }
    free(old);
}

static uint32_t find_block(const struct mad_engine *e, uint32_t tid)
{
    uint32_t i = *bucket(e, tid);
    while (i != NONE && txn_at(e, i)->tid / TRIES_MAX != tid / TRIES_MAX)
        i = txn_at(e, i)->hnext;
    return i;
}

void tid_assign(struct mad_engine *e, uint32_t i)
{
    if (!e->tid_map || e->tid_count > e->tid_mask / 2)
        map_grow(e);
    // 0 is left out: some agents take a TID of 0 for none.
    while (!e->next_tid || find_block(e, e->next_tid) != NONE)
        e->next_tid += TRIES_MAX;
    struct txn *x = txn_at(e, i);
    uint32_t *b = bucket(e, e->next_tid);
    x->tid = e->next_tid;
    e->next_tid += TRIES_MAX;
    x->hnext = *b;
    *b = i;
    e->tid_count++;
}

void tid_release(struct mad_engine *e, uint32_t i)
{
    struct txn *x = txn_at(e, i);
    uint32_t *at = bucket(e, x->tid);
    while (*at != i)
        at = &txn_at(e, *at)->hnext;
    *at = x->hnext;
    e->tid_count--;
}

uint32_t tid_find(const struct mad_engine *e, uint32_t tid)
{
    if (!e->tid_map)
        return NONE;
    uint32_t i = find_block(e, tid);
    return i != NONE && tid % TRIES_MAX < txn_at(e, i)->tries ? i : NONE;
}

// --- counters ---

uint16_t count_row(struct mad_engine *e, uint8_t mgmt_class, uint8_t method, uint16_t attr_id)
{
    if (mgmt_class == MAD_CLASS_SM_DR)
        mgmt_class = MAD_CLASS_SM_LID;
    uint32_t at = (uint32_t)hash_mix64((uint64_t)mgmt_class << 32 | (uint64_t)method << 16 | attr_id);
    for (at &= COUNT_SLOTS - 1; e->count_slot[at]; at = (at + 1) & (COUNT_SLOTS - 1)) {
        const struct mad_count *c = &e->count[e->count_slot[at]];
        if (c->mgmt_class == mgmt_class && c->method == method && c->attr_id == attr_id)
            return e->count_slot[at];
    }
    if (e->count_n == COUNT_ROWS)
        return 0;
    e->count_slot[at] = (uint16_t)e->count_n;
    e->count[e->count_n] = (struct mad_count){.mgmt_class = mgmt_class, .method = method, .attr_id = attr_id};
    return (uint16_t)e->count_n++;
}
