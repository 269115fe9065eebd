// SPDX-License-Identifier: Apache-2.0
// Waits of a port by virtual lane: too dear to read of all ports, so a port is asked when somebody wants to
// know. The connection is suspended until it has answered.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/tele.h"
#include "lib/xalloc.h"
#include "telemetry/rate.h"

#define LANES 16
#define TICKS_MAX 65535 // the counter is of 16 bits and stays there

struct lane_row {
    int64_t vl, ticks, bytes;
    bool more;
};
#define LANE(f) offsetof(struct lane_row, f)
static const struct field lane_fields[] = {
    {.name = "vl", .type = FIELD_INT, .at = LANE(vl), "virtual lane"},
    {.name = "ticks",
     .type = FIELD_INT,
     .at = LANE(ticks),
     "ticks that it waited since the device began to count"},
    {.name = "bytes", .type = FIELD_INT, .at = LANE(bytes), "what these could have carried", .null = true},
    {.name = "more",
     .type = FIELD_BOOL,
     .at = LANE(more),
     "that many or more: the counter stands at its maximum"},
    {0},
};
static const struct schema schema_lane = {
    .name = "vl_wait", "Waits of a virtual lane", sizeof(struct lane_row), lane_fields};

struct waits_row {
    struct spot spot;
    int64_t sampled_at;
    struct items lanes;
};
static const struct field waits_fields[] = {
    SPOT_FIELDS,
    {.name = "sampled_at",
     .type = FIELD_TIME,
     .at = offsetof(struct waits_row, sampled_at),
     "when it answered"},
    {.name = "lanes",
     .type = FIELD_LIST,
     .at = offsetof(struct waits_row, lanes),
     "by virtual lane",
     &schema_lane},
    {0},
};
const struct schema schema_vl_waits = {
    .name = "vl_waits", "Waits of a port by virtual lane", sizeof(struct waits_row), waits_fields};

const struct param vl_wait_params[] = {
    {.name = "port",
     .type = PARAM_STR,
     .need = true,
     .doc = "NODE/NUM or NODE[NUM]; NODE is a GUID or unique name"},
    {0},
};

struct ask;
struct waiting {
    struct later later;
    struct ask *ask;
    uint64_t guid;
    uint8_t port;
    int64_t at_ns;
    uint32_t ticks[LANES];
};
struct ask { // the collector's; may outlive the request
    struct waiting *waiting;
};

static void waiting_free(struct later *l)
{
    struct waiting *w = (struct waiting *)l;
    if (w->ask != NULL)
        w->ask->waiting = NULL;
    free(w);
}

static void answered(void *arg, const struct tele_vl_waits *v)
{
    struct ask *a = arg;
    struct waiting *w = a->waiting;
    free(a);
    if (w == NULL)
        return;
    w->ask = NULL;
    w->at_ns = wall_now_ns();
    if (v->status != 0)
        err_set(&w->later.err, v->status == -ENOENT ? -ENOENT : -EIO, NULL, "%s",
                v->text[0] ? v->text : strerror(-v->status));
    else
        memcpy(w->ticks, v->ticks, sizeof(w->ticks));
    later_over(&w->later);
}

static void answer(struct later *l, struct request *r)
{
    struct waiting *q = (struct waiting *)l;
    struct waits_row row = {.sampled_at = q->at_ns};
    struct lane_row lane[LANES];
    struct tele_view w;
    unsigned tick = 0;

    if (!tele_view_of(r, &w))
        return;
    uint32_t slot = tele_slot(w.t, q->guid, q->port);
    if (slot == TELE_SLOT_NONE) {
        answer_problem(r, 404, "the port has gone meanwhile");
        return;
    }
    spot_fill(&w, slot, &row.spot);
    const struct node *n = w.t->fabric != NULL ? fabric_by_guid(w.t->fabric, q->guid) : NULL;
    unsigned lanes = w.t->port[slot].lanes;
    if (n != NULL)
        tick = tele_wait_tick_bytes(n->vendor_id, n->device_id, lanes ? lanes : 4);
    for (unsigned i = 0; i < LANES; i++)
        lane[i] = (struct lane_row){.vl = i,
                                    .ticks = q->ticks[i],
                                    .bytes = tick ? (int64_t)q->ticks[i] * tick : NO_INT,
                                    .more = q->ticks[i] >= TICKS_MAX};
    row.lanes = (struct items){lane, LANES};
    answer_struct(r, 200, &schema_vl_waits, &row);
    tele_view_done(&w);
}

void get_vl_waits(struct request *r)
{
    struct err e = {0};
    struct tele_view w;
    uint64_t guid;
    int port;

    if (!tele_view_of(r, &w) || !later_room(r, LATER_WAIT))
        return;
    int rc = view_port_parse(r->view, query_str(r, "port"), &guid, &port, &e);
    if (rc != 0) {
        answer_unresolved(r, "port", rc, &e);
        return;
    }
    if (port < 0 || tele_slot(w.t, guid, (uint8_t)port) == TELE_SLOT_NONE) {
        answer_problem(r, port < 0 ? 400 : 404,
                       port < 0 ? "which port? give NODE/NUM" : "there is no such port");
        return;
    }
    struct waiting *q = xcalloc(1, sizeof(*q));
    *q = (struct waiting){.later = {.lane = LATER_WAIT, .answer = answer, .free = waiting_free},
                          .ask = xcalloc(1, sizeof(struct ask)),
                          .guid = guid,
                          .port = (uint8_t)port};
    struct ask *a = q->ask;
    a->waiting = q;
    later_wait(r, &q->later); // may answer at once, and then q is gone
    tele_vl_wait(w.tele, guid, (uint8_t)port, answered, a);
}
