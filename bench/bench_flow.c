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

static void one(struct flow_rig *r, const struct sim_flow_spec *d)
{
    struct sim_flow_stats st0, st;
    struct sim_flow_info info;
    struct sim_flow_root root[3];
    sim_flow_get_stats(r->s, &st0);
    if (sim_flow_start(r->s, d, NULL) != 0)
        return;
    int64_t t = thread_cpu_ns();
    sim_flow_settle(r->s);
    t = thread_cpu_ns() - t;
    sim_flow_get_stats(r->s, &st);
    sim_flow_list(r->s, 0, &info);
    unsigned n = sim_flow_roots(r->s, root, 3);
    printf("  %-10s %6u flows %7.1f ms %6.2f M events  %5.1f %% of offered, %u roots", info.name, info.flows,
           (double)t / 1e6, (double)(st.events - st0.events) / 1e6, 100 * info.delivered / info.offered, n);
    if (n > 0)
        printf(": %s, %u wait, %.1f GB/s", sim_root_kind_name(root[0].kind), root[0].waiting,
               root[0].lost_bps / 1e9);
    printf("\n");
    sim_flow_stop(r->s, 0);
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
