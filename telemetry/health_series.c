// SPDX-License-Identifier: Apache-2.0
// What was counted when, in little memory: recent readings one by one, older ones merged.
#include <stdlib.h>
#include <string.h>

#include "lib/xalloc.h"
#include "telemetry/health_priv.h"

#define HORIZON (130 * HEALTH_LONGER * HEALTH_MIN)
#define CAP_MAX 256

static void forget_old(struct health_series *s, int64_t now)
{
    uint32_t gone = 0;
    while (gone < s->n && s->entry[gone].t1 < now - HORIZON)
        gone++;
    if (gone) {
        memmove(s->entry, s->entry + gone, (s->n - gone) * sizeof(s->entry[0]));
        s->n -= gone;
    }
}

// part: entries may become 1/part of their age long.
static void merge(struct health_series *s, int64_t now, int part)
{
    uint32_t k = 0;
    for (uint32_t i = 1; i < s->n; i++) {
        struct health_entry *a = &s->entry[k];
        const struct health_entry *b = &s->entry[i];
        if ((b->t1 - a->t0) * part <= now - b->t1) {
            a->t1 = b->t1;
            a->count += b->count;
        } else {
            s->entry[++k] = *b;
        }
    }
    s->n = s->n ? k + 1 : 0;
}

static struct health_series *grow(struct health_series *s)
{
    uint32_t n = s ? s->n : 0, cap = s ? s->cap * 2 : 4;
    s = xreallocarray(s, 1, sizeof(*s) + cap * sizeof(s->entry[0]));
    s->n = n;
    s->cap = cap;
    return s;
}

void series_add(struct health_series **at, int64_t t0, int64_t t1, uint64_t count)
{
    struct health_series *s = *at ? *at : grow(NULL);
    if (s->n == s->cap) {
        forget_old(s, t1);
        merge(s, t1, 16);
        if (s->cap < CAP_MAX && s->n > s->cap / 4 * 3)
            s = grow(s);
        for (int part = 8; s->n == s->cap; part /= 2)
            merge(s, t1, part);
    }
    *at = s;
    s->entry[s->n++] = (struct health_entry){t0 < t1 ? t0 : t1 - 1, t1, count};
}

double series_count(const struct health_series *s, int64_t end, int64_t window)
{
    double sum = 0;
    int64_t begin = end - window;
    for (uint32_t i = s ? s->n : 0; i-- > 0;) {
        const struct health_entry *e = &s->entry[i];
        if (e->t1 <= begin)
            break;
        if (e->t0 >= end)
            continue;
        int64_t span = e->t1 - e->t0;
        if (span <= window / 16 && e->t1 <= end) { // a few at the edge are no share of one
            sum += (double)e->count;
            continue;
        }
        int64_t from = e->t0 > begin ? e->t0 : begin, to = e->t1 < end ? e->t1 : end;
        sum += (double)e->count * (double)(to - from) / (double)span;
    }
    return sum;
}

int64_t series_last(const struct health_series *s)
{
    return s && s->n ? s->entry[s->n - 1].t1 : INT64_MIN;
}
