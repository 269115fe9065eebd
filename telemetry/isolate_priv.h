// SPDX-License-Identifier: Apache-2.0
// For isolate*.c only.
#ifndef WEFT_TELEMETRY_ISOLATE_PRIV_H
#define WEFT_TELEMETRY_ISOLATE_PRIV_H

#include "telemetry/isolate.h"

#define ISOLATE_TEXT 240
#define ISOLATE_PAST_MAX 10000
#define ISOLATE_EXCLUDED_MAX 1000

struct isolate_rec { // a link that is isolated, or of which something was said
    struct isolate_place at;
    uint32_t slot;
    bool isolated, seen; // seen: in this feed
    bool clean, clean_told;
    int64_t refused; // wall clock of when draining was; 0: it was not
    char refusal[ISOLATE_TEXT];
    enum isolate_verdict verdict, told;
    bool was_told;
    int64_t since_wall;
    char name[ISOLATE_TEXT], rule[8], reason[ISOLATE_TEXT], why[ISOLATE_TEXT], by[64];
};
struct isolate_past { // an isolation of the last week
    struct isolate_place at;
    int64_t wall;
};
struct isolate_excluded {
    uint64_t guid;
    uint8_t port;
    int64_t until;
    char by[64], reason[ISOLATE_TEXT];
};

struct isolate {
    struct db *db;
    char *fabric;
    struct isolate_opts o;
    struct isolate_callbacks cb;
    struct isolate_rec *rec;
    uint32_t num;
    struct isolate_past *past;
    uint32_t num_past;
    struct isolate_excluded *excluded;
    uint32_t num_excluded;
    uint32_t links;           // of the last graph
    struct isolate_rec check; // of isolate_check()
    struct isolate_item *list;
    struct isolate_exclusion *exclusion_list;
};

void isolate_save(struct isolate *i);
void isolate_load(struct isolate *i);
void isolate_text(char *to, size_t size, const char *from); // what is not printable becomes a blank
static inline bool isolate_same(const struct isolate_place *x, const struct isolate_place *y)
{
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            if (x->guid[a] && x->guid[a] == y->guid[b] && x->port[a] == y->port[b])
                return true;
    return false;
}

#endif
