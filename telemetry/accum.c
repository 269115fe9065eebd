// SPDX-License-Identifier: Apache-2.0
// What is made of a reading (raw), given the last one of the same counter (last = accumulator - base):
//
//   raw >= last   it has counted raw - last. More than 1.25 times what the link carries in the time (words,
//                 packets, ticks; an error for each bit) is nonsense. The whole answer is dropped; when the
//                 next one goes on from there, the device means it: counting goes on from there, and what was
//                 in between is not counted. Five in a row that rise: the link carries more than is known.
//   raw < last    we have cleared it: it has counted raw since.
//                 A 32-bit counter of traffic or waits, with its first bit set before, when others of the
//                 answer went on: a wrap, where the time was too short for a second one. IBA says that
//                 counters stop at their maximum (16.1.3.5); some devices know better.
//                 Traffic and waits: cleared by somebody, or the device has begun anew; it has counted raw
//                 since. More than the link carries is nonsense, as above.
//                 An error counter that is below half of what it was: the same.
//                 Otherwise it is held: perhaps an old answer. When the next reading is not below `last`, it
//                 was one. When it is: cleared (it has counted raw), unless it had lost less than an eighth
//                 of a thousand or more: then a device that sets back its counters, and nothing was counted.
//
// A counter at its maximum counts no further: it is marked, what it says is the least it has counted, and
// from then on it has no rate: not one of 0.
// Counted is never what may not have been: between the last reading and a clear nothing is known.
//
// A counter that comes by another attribute than before (of another width): counting goes on from there.
//
// After a restart: accumulators go on from what history and the kept differences say. A raw below that means
// that somebody has cleared, or that the differences are not those of the last moment: counting goes on from
// there without counting anything.
//
// A slot's differences are kept only when they are not all 0: most counters are never cleared. So the
// device's last value costs nothing to keep.
#include "telemetry/accum.h"

#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"

#define NONE 0xffffffffu
#define MAX_SUSPECTS 4096
#define BIT(c) (1ull << (c))
#define WRAP (1ull << 32)

struct accum_slot {
    uint64_t known;    // bit c: the accumulator means something
    uint64_t stored;   // bit c: that is history's; not read since the start
    uint64_t full;     // bit c: stood at its maximum
    uint64_t clearing; // bit c: we have asked for a clear and do not know what became of it
    uint32_t base;     // its block, NONE
    uint32_t peak_mbps;
    uint8_t source[2]; // attribute (kind + 1) that DATA, ERRORS were of last; 0: none yet
    bool suspect;      // there are answers that were not believed
};

struct accum_suspect {
    uint32_t slot;
    unsigned kind;
    int64_t at;
    uint64_t counters, held; // held: the rest of the answer was believed
    unsigned times;          // in a row
    uint64_t raw[TELE_COUNTERS];
};

void accum_init(struct accum *a)
{
    *a = (struct accum){0};
    for (unsigned g = 0; g < TELE_GROUPS; g++)
        a->group[g] = tele_group_counters(g);
}

void accum_done(struct accum *a)
{
    free(a->slot);
    free(a->base);
    free(a->suspect);
}

void accum_room(struct accum *a, uint32_t slots)
{
    if (slots <= a->num)
        return;
    uint32_t to = a->num + a->num / 4 > slots ? a->num + a->num / 4 : slots;
    a->slot = xreallocarray(a->slot, to, sizeof(*a->slot));
    for (; a->num < to; a->num++)
        a->slot[a->num] = (struct accum_slot){.base = NONE};
}

void accum_rate(struct accum *a, uint32_t slot, uint32_t mbps)
{
    if (mbps > a->slot[slot].peak_mbps)
        a->slot[slot].peak_mbps = mbps;
}

uint64_t accum_base(const struct accum *a, uint32_t slot, enum tele_counter c)
{
    uint32_t b = a->slot[slot].base;
    return b == NONE ? 0 : a->base[(uint64_t)b * TELE_COUNTERS + c];
}

bool accum_has_base(const struct accum *a, uint32_t slot)
{
    return a->slot[slot].base != NONE;
}

void accum_set_base(struct accum *a, uint32_t slot, enum tele_counter c, uint64_t base)
{
    struct accum_slot *s = &a->slot[slot];
    if (base == accum_base(a, slot, c))
        return;
    if (s->base == NONE) {
        if (a->num_bases == a->room_bases) {
            a->room_bases = a->room_bases ? a->room_bases + a->room_bases / 4 : 64;
            a->base = xreallocarray(a->base, a->room_bases, TELE_COUNTERS * sizeof(uint64_t));
        }
        s->base = a->num_bases++;
        memset(&a->base[(uint64_t)s->base * TELE_COUNTERS], 0, TELE_COUNTERS * sizeof(uint64_t));
    }
    a->base[(uint64_t)s->base * TELE_COUNTERS + c] = base;
    a->changes++;
}

void accum_set_last(struct accum *a, struct tele_table *t, uint32_t slot, enum tele_counter c, uint64_t value)
{
    t->value[(uint64_t)slot * TELE_COUNTERS + c] = value;
    a->slot[slot].known |= BIT(c);
    a->slot[slot].stored |= BIT(c);
}

uint64_t accum_full(const struct accum *a, uint32_t slot)
{
    return a->slot[slot].full;
}

void accum_clear(struct accum *a, const struct tele_table *t, uint32_t slot, uint64_t counters, bool done)
{
    struct accum_slot *s = &a->slot[slot];
    counters &= s->known;
    if (!done) {
        s->clearing |= counters;
        return;
    }
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (counters >> c & 1)
            accum_set_base(a, slot, c, t->value[(uint64_t)slot * TELE_COUNTERS + c]);
    s->full &= ~counters;
    s->clearing &= ~counters;
}

// --- answers that were not believed ---

static struct accum_suspect *suspect_find(const struct accum *a, uint32_t slot, unsigned kind)
{
    if (!a->slot[slot].suspect)
        return NULL;
    for (uint32_t i = 0; i < a->num_suspects; i++)
        if (a->suspect[i].slot == slot && a->suspect[i].kind == kind)
            return &a->suspect[i];
    return NULL;
}

static void suspect_drop(struct accum *a, struct accum_suspect *p)
{
    uint32_t slot = p->slot;
    *p = a->suspect[--a->num_suspects];
    a->slot[slot].suspect = false;
    for (uint32_t i = 0; i < a->num_suspects; i++)
        a->slot[slot].suspect |= a->suspect[i].slot == slot;
}

// Beyond MAX_SUSPECTS an old one makes room: that device has to say it twice once more.
static void suspect_keep(struct accum *a, uint32_t slot, const struct accum_reading *r, uint64_t held)
{
    struct accum_suspect *p = suspect_find(a, slot, r->kind);
    bool again = p != NULL;
    if (p == NULL && a->num_suspects == MAX_SUSPECTS)
        suspect_drop(a, &a->suspect[0]);
    if (p == NULL) {
        if (a->num_suspects == a->room_suspects) {
            a->room_suspects = a->room_suspects ? a->room_suspects * 2 : 16;
            a->suspect = xreallocarray(a->suspect, a->room_suspects, sizeof(*a->suspect));
        }
        p = &a->suspect[a->num_suspects++];
    }
    unsigned times = again ? p->times + 1 : 1;
    *p = (struct accum_suspect){
        .slot = slot, .kind = r->kind, .at = r->at, .counters = r->counters, .held = held, .times = times};
    memcpy(p->raw, r->raw, sizeof(p->raw));
    a->slot[slot].suspect = true;
}

// --- one answer ---

enum verdict { RISES, FIRST, BASELINE, CLEARED, OURS, WRAPPED, HELD, NONSENSE };

struct look { // an answer while it is judged
    struct accum *a;
    const struct tele_table *t;
    struct accum_slot *s;
    uint32_t slot;
    const struct accum_reading *r;
    const struct accum_suspect *suspect;
    bool whole;    // as in accum_found
    bool all_back; // and the rest of the answer too
    bool moved[2]; // DATA, ERRORS come by another attribute now: of another width
    uint8_t verdict[TELE_COUNTERS];
};

static uint64_t last_raw(const struct look *k, enum tele_counter c)
{
    return k->t->value[(uint64_t)k->slot * TELE_COUNTERS + c] - accum_base(k->a, k->slot, c);
}

static int64_t elapsed(const struct look *k, enum tele_counter c)
{
    enum tele_group g = tele_rows[c].group;
    uint64_t i = (uint64_t)k->slot * TELE_GROUPS + g;
    if (k->r->groups >> g & 1)
        return k->t->at[i] ? k->r->at - k->t->at[i] : 0;
    return k->t->at_before[i] ? k->t->at[i] - k->t->at_before[i] : 0;
}

static bool is_flow(enum tele_counter c)
{
    return tele_rows[c].kind == TELE_TRAFFIC || tele_rows[c].kind == TELE_WAIT;
}

// The most that the link lets it count in that time: of errors, one for each bit.
static uint64_t most(const struct look *k, enum tele_counter c, int64_t ns)
{
    double bytes = (double)k->s->peak_mbps * 1e6 / 8 * ((double)(ns + k->r->slack) / 1e9) * 1.25 + 65536;
    double n = bytes * 8;
    if (k->s->peak_mbps == 0 || ns <= 0)
        return UINT64_MAX;
    if (tele_rows[c].unit == TELE_WORDS)
        n = bytes / 4;
    else if (tele_rows[c].unit == TELE_TICKS)
        n = bytes; // of a byte: the least that they can be of
    else if (tele_rows[c].kind == TELE_TRAFFIC)
        n = bytes / 24; // packets, the shortest
    return n < 9e18 ? (uint64_t)n : UINT64_MAX;
}

// Which of the two a counter goes with; those that are taken along go with the errors.
static unsigned source_of(const struct accum_reading *r, enum tele_counter c)
{
    return tele_rows[c].group != TELE_DATA || !(r->groups >> TELE_DATA & 1);
}

static void look_at_source(struct look *k)
{
    for (unsigned i = 0; i < 2; i++)
        k->moved[i] = k->r->groups >> (i ? TELE_ERRORS : TELE_DATA) & 1 && k->s->source[i] &&
                      k->s->source[i] != k->r->kind + 1;
}

static void keep_source(struct look *k)
{
    for (unsigned i = 0; i < 2; i++)
        if (k->r->groups >> (i ? TELE_ERRORS : TELE_DATA) & 1)
            k->s->source[i] = (uint8_t)(k->r->kind + 1);
}

static enum verdict judge_back(const struct look *k, enum tele_counter c, uint64_t last, uint64_t raw)
{
    uint64_t limit = most(k, c, elapsed(k, c));
    if (k->s->stored >> c & 1)
        return BASELINE;
    if (k->s->clearing >> c & 1)
        return OURS;
    if (is_flow(c)) {
        if (!k->all_back && (k->r->narrow >> c & 1) && last >= WRAP / 2 && last < WRAP - 1 && limit < WRAP &&
            raw + WRAP - last <= limit)
            return WRAPPED;
        return raw > limit ? NONSENSE : CLEARED;
    }
    if (raw > limit)
        return NONSENSE;
    if (raw <= last / 2)
        return CLEARED;
    if (k->suspect == NULL || !(k->suspect->held >> c & 1))
        return HELD;
    return last >= 1000 && k->suspect->raw[c] > last - last / 8 ? BASELINE : CLEARED;
}

static enum verdict judge(const struct look *k, enum tele_counter c)
{
    uint64_t raw = k->r->raw[c], last = last_raw(k, c);
    if (!(k->s->known >> c & 1))
        return FIRST;
    if (k->moved[source_of(k->r, c)])
        return BASELINE;
    if (raw < last)
        return judge_back(k, c, last, raw);
    if (!(k->s->stored >> c & 1) && raw - last > most(k, c, elapsed(k, c)))
        return NONSENSE;
    return RISES;
}

// Of traffic where there is some: errors may have come again since, at a link that has just come up.
static void look_at_back(struct look *k, bool *ret_above)
{
    unsigned above[2] = {0}, back[2] = {0};
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if ((k->r->counters & k->s->known) >> c & 1) {
            uint64_t last = last_raw(k, c);
            unsigned traffic = tele_rows[c].kind == TELE_TRAFFIC;
            above[traffic] += last > 0;
            back[traffic] += k->r->raw[c] < last;
        }
    *ret_above = above[0] + above[1] > 0;
    unsigned i = above[1] > 0;
    k->whole = back[i] > 0 && back[i] == above[i];
    k->all_back = back[0] + back[1] > 0 && back[0] + back[1] == above[0] + above[1];
}

// The answer that was not believed, and this one, which goes on from there. What rises steadily by too much
// is not absurd: then the link carries more than is known of it.
#define STEADY 5

static bool goes_on(struct look *k)
{
    const struct accum_suspect *p = k->suspect;
    bool steady = true, goes = true;
    if (p == NULL || p->held)
        return false;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if ((k->r->counters & p->counters) >> c & 1) {
            steady &= k->r->raw[c] >= p->raw[c];
            goes &= k->r->raw[c] >= p->raw[c] && k->r->raw[c] - p->raw[c] <= most(k, c, k->r->at - p->at);
        }
    if (!goes && steady && p->times >= STEADY && k->s->peak_mbps < 1u << 30) {
        k->s->peak_mbps *= 2;
        return true;
    }
    return goes;
}

// False: the answer is to be dropped.
static bool judge_all(struct look *k, struct accum_found *f)
{
    uint64_t nonsense = 0;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (k->r->counters >> c & 1) {
            k->verdict[c] = (uint8_t)judge(k, c);
            nonsense |= (uint64_t)(k->verdict[c] == NONSENSE) << c;
        }
    if (!nonsense)
        return true;
    if (!goes_on(k))
        return false;
    f->accepted = true;
    for (unsigned c = 0; c < TELE_COUNTERS; c++)
        if (nonsense >> c & 1)
            k->verdict[c] = BASELINE;
    return true;
}

static uint64_t counted(const struct look *k, enum tele_counter c, struct accum_found *f)
{
    uint64_t raw = k->r->raw[c];
    switch ((enum verdict)k->verdict[c]) {
    case RISES:
        return raw - last_raw(k, c);
    case CLEARED:
        f->cleared |= BIT(c);
        return raw;
    case OURS:
        f->ours |= BIT(c);
        return raw;
    case WRAPPED:
        f->wrapped |= BIT(c);
        return raw + WRAP - last_raw(k, c);
    case FIRST:
    case BASELINE:
    case HELD:
    case NONSENSE:
        break;
    }
    return 0;
}

// Returns whether there is a rate: counted between two readings.
static bool take(struct look *k, struct tele_table *t, enum tele_counter c, struct accum_found *f)
{
    uint64_t i = (uint64_t)k->slot * TELE_COUNTERS + c, raw = k->r->raw[c];
    enum verdict v = k->verdict[c];

    if (v == FIRST)
        t->value[i] = raw + accum_base(k->a, k->slot, c);
    t->before[i] = t->value[i];
    t->value[i] += counted(k, c, f);
    accum_set_base(k->a, k->slot, c, t->value[i] - raw);
    bool rate = v != FIRST && v != BASELINE && !(k->s->stored >> c & 1);
    if (v == BASELINE && !is_flow(c))
        t->port[k->slot].lost_at = k->r->at;
    k->s->known |= BIT(c);
    k->s->stored &= ~BIT(c);
    k->s->clearing &= ~BIT(c);
    return rate;
}

static void move_times(const struct accum *a, struct tele_table *t, uint32_t slot,
                       const struct accum_reading *r)
{
    for (unsigned g = 0; g < TELE_GROUPS; g++)
        if (r->groups >> g & 1) {
            uint64_t i = (uint64_t)slot * TELE_GROUPS + g;
            t->at_before[i] = t->at[i];
            t->at[i] = r->at;
            t->have[slot] &= ~a->group[g];
            t->had[slot] &= ~a->group[g];
        }
}

// While they are at hand: who looks for the worst of all ports waits for memory.
static void sum_errors(const struct accum *a, struct tele_table *t, uint32_t slot)
{
    int64_t ns = tele_interval(t, slot, TELE_SYMBOL_ERRORS);
    uint64_t sum = 0, d;
    for (uint64_t left = a->group[TELE_ERRORS]; left != 0; left &= left - 1) {
        enum tele_counter c = (enum tele_counter)__builtin_ctzll(left);
        if (tele_rows[c].kind == TELE_ERROR && tele_delta(t, slot, c, &d))
            sum += d;
    }
    t->errors[slot] = ns > 0 ? (double)sum * 1e9 / (double)ns : 0;
}

void accum_read(struct accum *a, struct tele_table *t, uint32_t slot, const struct accum_reading *r,
                struct accum_found *ret)
{
    struct look k = {.a = a, .t = t, .s = &a->slot[slot], .slot = slot, .r = r};
    struct accum_suspect *p = suspect_find(a, slot, r->kind);

    *ret = (struct accum_found){0};
    k.suspect = p;
    bool above;
    look_at_source(&k);
    look_at_back(&k, &above);
    if (!judge_all(&k, ret)) {
        ret->nonsense = true;
        suspect_keep(a, slot, r, 0);
        return;
    }
    move_times(a, t, slot, r);
    keep_source(&k);
    for (unsigned c = 0; c < TELE_COUNTERS; c++) {
        if (!(r->counters >> c & 1))
            continue;
        t->have[slot] &= ~BIT(c);
        t->had[slot] &= ~BIT(c);
        if (k.verdict[c] == HELD) {
            ret->held |= BIT(c);
            continue;
        }
        bool stood = k.s->full & r->full & BIT(c); // what it would have counted since is not known
        t->had[slot] |= (uint64_t)(take(&k, t, c, ret) && !stood) << c;
        t->have[slot] |= BIT(c);
    }
    if (r->groups >> TELE_ERRORS & 1)
        sum_errors(a, t, slot);
    ret->whole = k.whole && ret->cleared;
    ret->stood = above && !ret->whole;
    ret->full = r->full & r->counters & ~k.s->full;
    k.s->full = (k.s->full & ~r->counters) | (r->full & r->counters);
    t->port[slot].full = k.s->full;
    t->port[slot].saturated = k.s->full != 0;
    if (ret->held)
        suspect_keep(a, slot, r, ret->held);
    else if (p != NULL)
        suspect_drop(a, p);
}
