// SPDX-License-Identifier: Apache-2.0
// What tests of health share: a table that is filled by hand (link k: slots 2k and 2k + 1), readings, and a
// sink that writes down what is raised and cleared.
#ifndef WEFT_TESTS_HEALTHTEST_H
#define WEFT_TESTS_HEALTHTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/text.h"
#include "telemetry/health.h"
#include "telemetry/table_priv.h"

#define S MONO_S
#define MIN (60 * MONO_S)
#define HOUR (3600 * MONO_S)

struct said {
    int64_t at;
    bool raised; // else cleared
    char rule[8];
    uint32_t slot;
    enum alarm_severity severity;
    char reason[300];
};

struct bed {
    struct tele_table t;
    struct health *h;
    int64_t now;
    int64_t step;         // of tick()
    int64_t detail_every; // of the group SPEED; with every n-th reading of errors
    int64_t detail_at;
    uint64_t unread[8]; // per slot: no readings while set (bit 0)
    struct said said[4096];
    unsigned num_said;
};

// Nothing that is said is cut within a character.
static inline void assert_whole(const char *text)
{
    char copy[2048];
    assert_true(strlen(text) < sizeof(copy));
    memcpy(copy, text, strlen(text) + 1);
    text_clean(copy);
    assert_string_equal(copy, text);
}

static inline void bed_raise(void *arg, const char *rule, uint32_t slot, enum alarm_severity s,
                             const char *reason, const char *evidence)
{
    struct bed *b = arg;
    assert_true(evidence[0] == '{' && evidence[strlen(evidence) - 1] == '}');
    assert_whole(reason);
    assert_true(b->num_said < 4096);
    struct said *w = &b->said[b->num_said++];
    *w = (struct said){.at = b->now, .raised = true, .slot = slot, .severity = s};
    snprintf(w->rule, sizeof(w->rule), "%s", rule);
    snprintf(w->reason, sizeof(w->reason), "%s", reason);
}

static inline void bed_clear(void *arg, const char *rule, uint32_t slot)
{
    struct bed *b = arg;
    assert_true(b->num_said < 4096);
    struct said *w = &b->said[b->num_said++];
    *w = (struct said){.at = b->now, .slot = slot};
    snprintf(w->rule, sizeof(w->rule), "%s", rule);
}

static inline void bed_open(struct bed *b, unsigned links, uint32_t mbps)
{
    memset(b, 0, sizeof(*b));
    tele_table_init(&b->t);
    for (unsigned i = 0; i < 2 * links; i++) {
        tele_slot_set(&b->t, i, 0x1000 + i, 1);
        struct tele_port *p = &b->t.port[i];
        p->peer = i ^ 1;
        p->port = i;
        p->rate_mbps = mbps;
        p->of_switch = true;
        p->up = true;
        p->lanes = 4;
        p->unread = TELE_READ;
    }
    b->now = 1000 * S;
    b->step = 10 * S;
    b->detail_every = 60 * S;
    struct health_sink sink = {b, bed_raise, bed_clear};
    b->h = health_new(NULL, &sink);
}

static inline void bed_close(struct bed *b)
{
    health_free(b->h);
    tele_table_done(&b->t);
}

static inline void add(struct bed *b, uint32_t slot, enum tele_counter c, uint64_t n)
{
    b->t.value[(uint64_t)slot * TELE_COUNTERS + c] += n;
}

// A sweep now: all that can be read has been.
static inline void feed(struct bed *b)
{
    bool detail = b->now - b->detail_at >= b->detail_every;
    for (uint32_t s = 0; s < b->t.num; s++) {
        int64_t *at = &b->t.at[s * TELE_GROUPS], *before = &b->t.at_before[s * TELE_GROUPS];
        if (s < 8 && b->unread[s]) {
            b->t.port[s].unread = TELE_NO_ANSWER;
            b->t.have[s] = 0;
            continue;
        }
        b->t.port[s].unread = TELE_READ;
        b->t.had[s] = b->t.have[s] & ~b->t.port[s].full;
        b->t.have[s] = ~0ull;
        before[TELE_ERRORS] = at[TELE_ERRORS];
        at[TELE_ERRORS] = b->now;
        before[TELE_DATA] = at[TELE_DATA];
        at[TELE_DATA] = b->now;
        if (detail) {
            before[TELE_SPEED] = at[TELE_SPEED];
            at[TELE_SPEED] = b->now;
        }
    }
    if (detail)
        b->detail_at = b->now;
    health_feed(b->h, &b->t, b->now);
}

static inline void tick(struct bed *b)
{
    b->now += b->step;
    feed(b);
}

// Time passes with nothing new.
static inline void pass(struct bed *b, int64_t ns)
{
    for (int64_t end = b->now + ns; b->now + b->step <= end;)
        tick(b);
}

static inline unsigned raised(const struct bed *b, const char *rule)
{
    unsigned n = 0;
    for (unsigned i = 0; i < b->num_said; i++)
        n += b->said[i].raised && strcmp(b->said[i].rule, rule) == 0;
    return n;
}

// Stands now: severity, or -1.
static inline int stands(const struct bed *b, const char *rule)
{
    int s = -1;
    for (unsigned i = 0; i < b->num_said; i++)
        if (strcmp(b->said[i].rule, rule) == 0)
            s = b->said[i].raised ? (int)b->said[i].severity : -1;
    return s;
}

static inline int64_t cleared_at(const struct bed *b, const char *rule)
{
    for (unsigned i = b->num_said; i-- > 0;)
        if (!b->said[i].raised && strcmp(b->said[i].rule, rule) == 0)
            return b->said[i].at;
    return -1;
}

static inline const char *reason(const struct bed *b, const char *rule)
{
    for (unsigned i = b->num_said; i-- > 0;)
        if (b->said[i].raised && strcmp(b->said[i].rule, rule) == 0)
            return b->said[i].reason;
    return "";
}

static inline struct health_view view(const struct bed *b, uint32_t slot)
{
    struct health_view v;
    health_view(b->h, &b->t, slot, &v);
    return v;
}

#define BED(fn, links, mbps)                                                                                 \
    static void fn##_in(struct bed *b);                                                                      \
    static void fn(void **state)                                                                             \
    {                                                                                                        \
        static struct bed b;                                                                                 \
        (void)state;                                                                                         \
        bed_open(&b, links, mbps);                                                                           \
        fn##_in(&b);                                                                                         \
        bed_close(&b);                                                                                       \
    }                                                                                                        \
    static void fn##_in(struct bed *b)

#endif
