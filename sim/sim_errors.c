// SPDX-License-Identifier: Apache-2.0
// Errors that come by chance: each is a counter of a port that goes up at a rate, as a Poisson process from
// the seed, while the port's link is up. They are drawn one by one when somebody reads the port's counters,
// so that the same seed gives the same errors at the same times however often it is read; where thousands
// have come since, their number is drawn at once.
//
// Which end counts what: the receiving one counts symbol errors, receive errors, integrity errors and
// overruns; a retraining (LinkErrorRecovery) is counted by both.
#include "sim/sim_priv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "lib/xalloc.h"

#define HOUR 3600.0
#define ONE_BY_ONE 4096 // that are expected since the last look
#define RATE_MAX 1e12   // an hour
#define BITS_PER_BYTE 8
#define BER_MAX 1e-3

struct sim_error {
    uint32_t port, next; // next of the port, NONE
    enum sim_counter counter;
    double per_hour; // or, when 0, ber
    double ber;
    double due; // the next one, in units of the mean time between: counts down
    int64_t since;
    struct rng rng;
};

static double exponential(struct rng *r)
{
    return -log(1 - rng_double(r));
}

static double per_second(const struct sim *s, const struct sim_error *e)
{
    const struct sim_port *p = &s->port[e->port];
    if (p->pi.port_state < MAD_PORT_INIT)
        return 0;
    return e->per_hour > 0 ? e->per_hour / HOUR : e->ber * BITS_PER_BYTE * port_bytes_s(p);
}

static uint64_t many(struct sim_error *e, double mean)
{
    double gauss = sqrt(2 * exponential(&e->rng)) * cos(2 * M_PI * rng_double(&e->rng));
    e->due = exponential(&e->rng);
    return (uint64_t)fmax(0, mean + sqrt(mean) * gauss + 0.5);
}

static uint64_t since(const struct sim *s, struct sim_error *e)
{
    double mean = per_second(s, e) * mono_seconds(s->now - e->since);
    uint64_t n = 0;
    e->since = s->now;
    if (mean > ONE_BY_ONE)
        return many(e, mean);
    e->due -= mean;
    for (; e->due <= 0; n++)
        e->due += exponential(&e->rng);
    return n;
}

void errors_count(struct sim *s, struct sim_port *p)
{
    for (uint32_t i = p->errors; i != NONE; i = s->error[i].next)
        p->counter[s->error[i].counter] += since(s, &s->error[i]);
}

static struct sim_error *find(struct sim *s, struct sim_port *p, enum sim_counter c)
{
    for (uint32_t i = p->errors; i != NONE; i = s->error[i].next)
        if (s->error[i].counter == c)
            return &s->error[i];
    return NULL;
}

static void set(struct sim *s, struct sim_port *p, enum sim_counter c, double per_hour, double ber)
{
    struct sim_error *e = find(s, p, c);
    if (e)
        p->counter[c] += since(s, e);
    if (!e && per_hour == 0 && ber == 0)
        return;
    if (!e) {
        s->error = xreallocarray(s->error, s->num_errors + 1, sizeof(*s->error));
        e = &s->error[s->num_errors];
        *e = (struct sim_error){.port = port_index(s, p), .next = p->errors, .counter = c, .since = s->now};
        // a retraining is one event for both ends: the same times; so is a corrected symbol for its block
        unsigned kind = c == SIM_FEC_CORRECTABLE_BLOCKS ? SIM_FEC_CORRECTED_SYMBOLS : c;
        uint32_t key = c == SIM_LINK_ERROR_RECOVERY && p->peer < e->port ? p->peer : e->port;
        rng_init(&e->rng, s->o.seed ^ hash_mix64((uint64_t)key << 8 | kind));
        e->due = exponential(&e->rng);
        p->errors = s->num_errors++;
    }
    e->per_hour = per_hour;
    e->ber = ber;
}

static bool is_error(enum sim_counter c)
{
    return c >= SIM_SYMBOL_ERRORS && c < SIM_COUNTERS && c != SIM_XMIT_WAIT && c != SIM_LINK_DOWNED;
}

static int port_for(struct sim *s, uint64_t node_guid, unsigned port, struct sim_port **ret)
{
    *ret = sim_port_by(s, node_guid, port);
    if (!*ret)
        return -ENOENT;
    if ((*ret)->num == 0)
        return -EINVAL;
    sim_touch(s);
    return 0;
}

int sim_errors(struct sim *s, uint64_t node_guid, unsigned port, enum sim_counter c, double per_hour)
{
    struct sim_port *p;
    int rc = port_for(s, node_guid, port, &p);
    if (rc != 0)
        return rc;
    if (!is_error(c) || !(per_hour >= 0 && per_hour <= RATE_MAX))
        return -EINVAL;
    set(s, p, c, per_hour, 0);
    if (c == SIM_LINK_ERROR_RECOVERY && p->peer != NONE)
        set(s, peer_of(s, p), c, per_hour, 0);
    return 0;
}

static int set_ber(struct sim *s, uint64_t node_guid, unsigned port, double ber, enum sim_counter a,
                   enum sim_counter z)
{
    struct sim_port *p;
    int rc = port_for(s, node_guid, port, &p);
    if (rc != 0)
        return rc;
    if (!(ber >= 0 && ber <= BER_MAX))
        return -EINVAL;
    for (enum sim_counter c = a; c <= z; c++)
        set(s, p, c, 0, ber);
    return 0;
}

int sim_ber(struct sim *s, uint64_t node_guid, unsigned port, double ber)
{
    return set_ber(s, node_guid, port, ber, SIM_SYMBOL_ERRORS, SIM_SYMBOL_ERRORS);
}

int sim_raw_ber(struct sim *s, uint64_t node_guid, unsigned port, double ber)
{
    return set_ber(s, node_guid, port, ber, SIM_FEC_CORRECTED_SYMBOLS, SIM_FEC_CORRECTABLE_BLOCKS);
}
