// SPDX-License-Identifier: Apache-2.0
// Virtual lanes of pairs of switches: see tables.h.
//
// Written, they outlive the numbering of switches. All numbers big endian:
//   4  "WLN1"
//   4  switches, n
//   4  lanes in use
//   8  n times: GUIDs of the switches, ascending
//   -  the lanes of all pairs (a, b), a <= b, by GUID, row by row, in runs of pairs with the same lane:
//        high half of a byte   the lane, or LANE_NONE
//        low half              pairs in the run, less 1; or 15: a number follows that is to be added, seven
//                              bits a byte, lowest first, the top bit set in all bytes but its last
//   8  a check sum of all before it
// So a fabric that needs one lane takes a few bytes beside its GUIDs.
#include "fabric/tables.h"

#include <assert.h>
#include <errno.h>
#include <endian.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "lib/buf.h"
#include "lib/cursor.h"
#include "lib/err.h"
#include "lib/hash.h"
#include "lib/xalloc.h"

struct lanes_box {
    struct fabric_lanes l; // first
    _Atomic unsigned refs;
};

struct fabric_lanes *lanes_new(uint32_t num_switches)
{
    struct lanes_box *box = xcalloc(1, sizeof(*box));
    box->refs = 1;
    box->l.num_switches = num_switches;
    box->l.num_lanes = 1;
    box->l.stride = (num_switches + 1u) / 2;
    size_t size = box->l.stride * num_switches;
    box->l.pair = xmalloc(size + 1);
    memset(box->l.pair, LANE_NONE << 4 | LANE_NONE, size + 1);
    return &box->l;
}

static void set_half(struct fabric_lanes *l, uint32_t a, uint32_t b, unsigned lane)
{
    uint8_t *p = &l->pair[a * l->stride + b / 2];
    unsigned shift = b % 2 * 4;
    *p = (uint8_t)((*p & ~(15u << shift)) | lane << shift);
}

void lanes_set(struct fabric_lanes *l, uint32_t a, uint32_t b, unsigned lane)
{
    set_half(l, a, b, lane);
    set_half(l, b, a, lane);
}

struct fabric_lanes *lanes_ref(const struct fabric_lanes *l)
{
    struct lanes_box *box = (struct lanes_box *)(uintptr_t)l;
    assert(box->refs > 0);
    atomic_fetch_add(&box->refs, 1);
    return &box->l;
}

void lanes_unref(const struct fabric_lanes *l)
{
    struct lanes_box *box = (struct lanes_box *)(uintptr_t)l;
    if (!box)
        return;
    assert(box->refs > 0);
    if (atomic_fetch_sub(&box->refs, 1) > 1)
        return;
    free(box->l.pair);
    free(box);
}

bool lanes_equal(const struct fabric_lanes *a, const struct fabric_lanes *b)
{
    const struct fabric_lanes *l = a ? a : b;
    if (!l || a == b)
        return true;
    if (a && b && a->num_switches != b->num_switches)
        return false;
    for (uint32_t x = 0; x < l->num_switches; x++) {
        for (uint32_t y = 0; y < l->num_switches; y++) {
            if ((a ? lanes_get(a, x, y) : 0) != (b ? lanes_get(b, x, y) : 0))
                return false;
        }
    }
    return true;
}

struct fabric_lanes *lanes_copy_for(const struct fabric_lanes *from, const struct fabric *from_fabric,
                                    const struct fabric *f)
{
    struct fabric_lanes *l = lanes_new(f->num_switches);
    uint32_t *old = xcalloc((size_t)f->num_switches + 1, sizeof(*old));
    l->num_lanes = from->num_lanes;
    for (uint32_t s = 0; s < f->num_switches; s++) {
        const struct node *n = fabric_by_guid(from_fabric, fabric_switch(f, s)->guid);
        old[s] = n && n->sw < from->num_switches ? n->sw : ID_NONE;
    }
    for (uint32_t x = 0; x < f->num_switches; x++) {
        for (uint32_t y = 0; old[x] != ID_NONE && y < f->num_switches; y++) {
            if (old[y] != ID_NONE)
                set_half(l, x, y, lanes_get(from, old[x], old[y]));
        }
    }
    free(old);
    return l;
}

size_t lanes_bytes(const struct fabric_lanes *l)
{
    return sizeof(struct lanes_box) + l->stride * l->num_switches;
}

// --- written ---

#define MAGIC 0x574c4e31u
#define HEAD 12
#define SUM 8
#define RUN_SHORT 15

static uint64_t check_sum(const uint8_t *p, size_t n)
{
    uint64_t sum = n;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = 0;
        memcpy(&word, p + i, n - i < 8 ? n - i : 8);
        sum = hash_mix64(sum ^ be64toh(word));
    }
    return sum;
}

static void put_number(struct buf *b, uint64_t v, unsigned bytes)
{
    while (bytes-- > 0)
        buf_putc(b, (char)(v >> (8 * bytes)));
}

static void put_run(struct buf *b, unsigned lane, uint64_t num)
{
    uint64_t more = num - 1;
    if (more < RUN_SHORT) {
        buf_putc(b, (char)(lane << 4 | more));
        return;
    }
    buf_putc(b, (char)(lane << 4 | RUN_SHORT));
    for (more -= RUN_SHORT; more >= 128; more >>= 7)
        buf_putc(b, (char)(more | 128));
    buf_putc(b, (char)more);
}

struct by_guid {
    uint64_t guid;
    uint32_t sw;
};

static int guid_cmp(const void *a, const void *b)
{
    uint64_t x = ((const struct by_guid *)a)->guid, y = ((const struct by_guid *)b)->guid;
    return x < y ? -1 : x > y;
}

int lanes_write(const struct fabric_lanes *l, const struct fabric *f, uint8_t **ret, size_t *ret_size)
{
    uint32_t n = l->num_switches;
    if (n != f->num_switches)
        return -EINVAL;
    if (n > LANES_SWITCHES_MAX)
        return -E2BIG;
    struct by_guid *at = xcalloc((size_t)n + 1, sizeof(*at));
    struct buf b = {0};
    for (uint32_t s = 0; s < n; s++)
        at[s] = (struct by_guid){fabric_switch(f, s)->guid, s};
    qsort(at, n, sizeof(*at), guid_cmp);
    put_number(&b, MAGIC, 4);
    put_number(&b, n, 4);
    put_number(&b, l->num_lanes, 4);
    for (uint32_t s = 0; s < n; s++)
        put_number(&b, at[s].guid, 8);
    uint64_t run = 0;
    unsigned lane = 0;
    for (uint32_t x = 0; x < n; x++) {
        for (uint32_t y = x; y < n; y++) {
            unsigned here = lanes_get(l, at[x].sw, at[y].sw);
            if (run > 0 && here != lane) {
                put_run(&b, lane, run);
                run = 0;
            }
            lane = here;
            run++;
        }
    }
    if (run > 0)
        put_run(&b, lane, run);
    put_number(&b, check_sum((const uint8_t *)b.data, b.len), SUM);
    free(at);
    *ret_size = b.len;
    *ret = (uint8_t *)buf_take(&b);
    return 0;
}

// --- read ---

struct reading {
    struct cursor c;
    const struct fabric *f;
    uint32_t n, num_lanes;
    uint32_t *sw; // of the fabric; ID_NONE for one that it has not
    struct fabric_lanes *l;
};

static const char *read_switches(struct reading *r)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        uint64_t guid = cursor_u64(&r->c);
        if (i > 0 && guid <= last)
            return "GUIDs of switches that do not ascend";
        last = guid;
        const struct node *n = fabric_by_guid(r->f, guid);
        r->sw[i] = n && n->type == NODE_SWITCH ? n->sw : ID_NONE;
    }
    return NULL;
}

// Pairs of the next run, 0 when there is none.
static uint64_t read_run(struct cursor *c, unsigned *ret_lane)
{
    uint8_t byte = cursor_u8(c), next = 0x80;
    uint64_t num = (byte & 15u) + 1u;
    *ret_lane = byte >> 4;
    for (unsigned shift = 0; (byte & 15) == RUN_SHORT && next & 0x80; shift += 7) {
        if (shift > 28)
            return 0;
        next = cursor_u8(c);
        num += (uint64_t)(next & 0x7f) << shift;
    }
    return c->bad ? 0 : num;
}

static const char *read_pairs(struct reading *r)
{
    uint64_t run = 0;
    unsigned lane = 0;
    for (uint32_t x = 0; x < r->n; x++) {
        for (uint32_t y = x; y < r->n; y++, run--) {
            if (run == 0 && (run = read_run(&r->c, &lane)) == 0)
                return "cut short";
            if (lane >= r->num_lanes && lane != LANE_NONE)
                return "a lane that is not in use";
            if (r->sw[x] != ID_NONE && r->sw[y] != ID_NONE)
                lanes_set(r->l, r->sw[x], r->sw[y], lane);
        }
    }
    return run > 0 || cursor_left(&r->c) > 0 ? "more pairs than the switches make" : NULL;
}

static const char *read_all(struct reading *r, const uint8_t *data, size_t size)
{
    if (size < HEAD + SUM)
        return "cut short";
    cursor_init(&r->c, data, size - SUM);
    if (cursor_u32(&r->c) != MAGIC)
        return "no lanes, or of another version";
    r->n = cursor_u32(&r->c);
    r->num_lanes = cursor_u32(&r->c);
    struct cursor end;
    cursor_init(&end, data + size - SUM, SUM);
    if (check_sum(data, size - SUM) != cursor_u64(&end))
        return "damaged: the check sum is another";
    if (r->n > LANES_SWITCHES_MAX || r->n > cursor_left(&r->c) / 8)
        return "more switches than there can be";
    if (r->num_lanes == 0 || r->num_lanes > LANES_MAX)
        return "more lanes than there can be, or none";
    r->sw = xcalloc((size_t)r->n + 1, sizeof(*r->sw));
    r->l = lanes_new(r->f->num_switches);
    r->l->num_lanes = r->num_lanes;
    const char *wrong = read_switches(r);
    return wrong ? wrong : read_pairs(r);
}

int lanes_read(const void *data, size_t size, const struct fabric *f, struct fabric_lanes **ret,
               struct err *e)
{
    struct reading r = {.f = f};
    const char *wrong = read_all(&r, data, size);
    free(r.sw);
    if (wrong) {
        lanes_unref(r.l);
        return err_set(e, -EINVAL, NULL, "virtual lanes as they were saved cannot be read: %s", wrong);
    }
    *ret = r.l;
    return 0;
}
