// SPDX-License-Identifier: Apache-2.0
// Answers that are made on the loop, since they look at what is the loop's, and are too long for one turn.
#include "api/api_priv.h"

#define SLICE_NS (3 * MONO_MS)
#define LOOK_EVERY 16 // calls of slice_over() a look at the clock

static void begin(struct slices *s)
{
    const struct api *a = s->r->api;
    s->looked = 0;
    s->until = mono_add(mono_now(), a->c.slice_ns > 0 ? a->c.slice_ns : SLICE_NS);
}

bool slice_over(struct slices *s)
{
    s->looked++;
    if (s->looked == 1 || (s->looked % LOOK_EVERY != 0 && s->r->api->c.slice_ns == 0))
        return false; // a slice gets on, however short it is
    return mono_sub(mono_now(), s->until) >= 0;
}

static void answer(struct later *l, struct request *r)
{
    (void)l;
    (void)r; // has it
}

static bool prepare(struct later *l)
{
    struct slices *s = (struct slices *)l;
    begin(s);
    if (!s->step(s))
        return false;
    if (s->r->status != 0) { // with an answer: there is nothing to work at
        l->work = NULL;
        l->answer = answer;
    }
    return true;
}

static void slices_free(struct later *l)
{
    struct slices *s = (struct slices *)l;
    s->free(s);
}

void slices_then(struct request *r, struct slices *s)
{
    s->r = r;
    begin(s);
    bool over = s->step(s);
    if ((over && (s->later.work == NULL || r->status != 0)) || !later_room(r, s->later.lane)) {
        s->free(s);
        return;
    }
    s->later.prepare = over ? NULL : prepare;
    s->later.free = slices_free;
    later_start(r, &s->later);
}

void slices_run(struct request *r, struct slices *s)
{
    s->later.lane = LATER_SLICES;
    s->later.work = NULL;
    s->later.answer = answer;
    slices_then(r, s);
}
