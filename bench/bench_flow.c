// SPDX-License-Identifier: Apache-2.0
// What a steady state of simulated traffic costs: bench_flow FABRIC...
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "lib/mono.h"
#include "tests/unit/sim/flow_rig.h"

static int64_t longest_callback(struct loop *l)
{
    struct loop_area_stats a[16];
    size_t n = loop_stats(l, a, 16);
    int64_t most = 0;
    for (size_t i = 0; i < n && i < 16; i++)
        most = a[i].max_ns > most ? a[i].max_ns : most;
    return most;
}

// In slices, as the loop has it.
static void one(struct flow_rig *r, const struct sim_flow_spec *d)
{
    struct sim_flow_stats before, st;
    struct sim_flow_info info;
    struct sim_flow_root root[3];
    int64_t began = loop_now(r->l).ns, longest = longest_callback(r->l);

    sim_flow_get_stats(r->s, &before);
    if (sim_flow_start(r->s, d, NULL) != 0)
        return;
    while (!sim_flow_settled(r->s))
        flow_rig_run(r, MONO_MS);
    sim_flow_get_stats(r->s, &st);
    sim_flow_list(r->s, 0, &info);
    unsigned n = sim_flow_roots(r->s, root, 3);
    printf("  %-10s %6u flows %7.1f ms CPU, %5.0f ms until it counts, %5.2f M events, %5.1f %% of offered, "
           "%u roots",
           info.name, info.flows, (double)(st.cpu_ns - before.cpu_ns) / 1e6,
           (double)(loop_now(r->l).ns - began) / 1e6, (double)(st.events - before.events) / 1e6,
           100 * info.delivered / info.offered, n);
    if (n > 0)
        printf(": %s, %u wait", sim_root_kind_name(root[0].kind), root[0].waiting);
    if (longest_callback(r->l) > longest)
        printf("; longest callback so far %.1f ms", (double)longest_callback(r->l) / 1e6);
    printf("\n");
    sim_flow_stop(r->s, 0);
    flow_rig_run(r, MONO_S);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct flow_rig r;
        flow_rig_up(&r, argv[i], ROUTE_AUTO, NULL);
        printf("%s: %u hosts\n", argv[i], r.hosts);
        for (unsigned p = 0; p < SIM_FLOW_PAIRS; p++)
            one(&r, &(struct sim_flow_spec){.pattern = p});
        flow_rig_down(&r);
    }
    return 0;
}
