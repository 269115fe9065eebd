// SPDX-License-Identifier: Apache-2.0
// A manager among liars: devices that answer nonsense, invent fabric, send traps without end, other managers.
// No crash, every sweep ends in bounded time with bounded work, and when the devices are honest again the
// fabric comes up whole.
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/guid.h"
#include "mad/mad.h"
#include "tests/whole/liar.h"
#include "tests/whole/rig.h"

#define LONG_S 300 // of virtual time: no sweep of a small fabric takes longer, whatever is answered

static bool take_lying(struct rig *r, const uint8_t *mad, const struct mad_addr *from, int status)
{
    uint8_t copy[MAD_SIZE];
    if (status != 0)
        return false;
    memcpy(copy, mad, sizeof(copy));
    switch (liar_answer(r->user, copy)) {
    case LIAR_PASSES:
        rig_deliver(r, copy, from, 0);
        break;
    case LIAR_REPEATS:
        rig_deliver(r, copy, from, 0);
        rig_deliver(r, copy, from, 0);
        break;
    case LIAR_DROPS:
        break;
    }
    return true;
}

// Everybody is honest now: how many sweeps until all is up?
static void heals(struct rig *r, unsigned max_sweeps)
{
    r->take_recv = NULL;
    r->take_send = NULL;
    sm_resweep(r->sm, "operator", false);
    for (unsigned i = 0; i < max_sweeps; i++) {
        rig_sweeps(r, 1, LONG_S);
        const struct fabric *f = sm_fabric(r->sm);
        if (rig_last(r)->ok && f->num_nodes == r->plan->num_nodes && f->num_links == r->plan->num_links)
            break;
        sm_resweep(r->sm, "operator", false);
    }
    if (getenv("VERBOSE")) {
        for (unsigned i = 6; i-- > 0;)
            if (sm_history(r->sm, i))
                print_message("# %s: %d %s\n", sm_history(r->sm, i)->cause, sm_history(r->sm, i)->ok, sm_history(r->sm, i)->text);
        for (size_t i = 0; i < sm_findings(r->sm)->n; i++)
            print_message("#   %s %s %s\n", sm_findings(r->sm)->item[i].code, sm_findings(r->sm)->item[i].where, sm_findings(r->sm)->item[i].text);
    }
    rig_run(r, 5 * MONO_S);
    rig_judge(r, NULL, 0);
}

static void one_seed(uint64_t seed, const char *name)
{
    struct rig r;
    struct liar l = {.chance = 1};
    rig_init(&r, name, &(struct sim_opts){.seed = seed, .link_latency_ns = 1000, .service_ns = 5000});
    rng_init(&l.rng, seed);
    static const uint32_t chance[] = {2, 20, 100, 300, 700};
    l.chance = chance[liar_below(&l, 5)];
    l.kinds = seed % 3 == 0 ? 1u << (seed / 3 % LIES) : 0;
    r.user = &l;
    if (seed % 5 != 0) { // from the first MAD on, or into a fabric that is up
        r.take_recv = take_lying;
        rig_up(&r);
    } else {
        rig_up(&r);
        rig_sweeps(&r, 1, LONG_S);
        r.take_recv = take_lying;
        sm_resweep(r.sm, "operator", seed % 2);
    }
    for (unsigned i = 0; i < 3; i++) {
        rig_sweeps(&r, 1, LONG_S);
        sm_resweep(r.sm, "operator", i == 1);
    }
    heals(&r, 4);
    rig_done(&r);
}

static void test_seeds(void **state)
{
    (void)state;
    const char *only = getenv("SEED");
    uint64_t from = only ? strtoull(only, NULL, 0) : 1, to = only ? from : 300;
    for (uint64_t seed = from; seed <= to; seed++) {
        if (getenv("VERBOSE"))
            print_message("# seed %llu\n", (unsigned long long)seed);
        one_seed(seed, seed & 1 ? "rail-16" : "ft3-4-2");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
