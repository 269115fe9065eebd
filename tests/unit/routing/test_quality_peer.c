// SPDX-License-Identifier: Apache-2.0
// Quality figures against those of an independent judge of tables, `lftcheck` of the shared tools, to the
// last digit that it prints. Both read the same fabric and the same dump.
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric/writer.h"
#include "lib/buf.h"
#include "routing/quality.h"
#include "tests/unit/routing/rig.h"

static char dir[200];

static bool run(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *fmt, ...)
{
    char line[1000];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    return system(line) == 0;
}

static int build(void **state)
{
    const char *tmp = getenv("TMPDIR"), *shared = getenv("WEFT_SHARED");
    char source[400];
    snprintf(source, sizeof(source), "%s/tools/lftcheck/lftcheck.c",
             shared ? shared : WEFT_SOURCE_ROOT "/../shared");
    snprintf(dir, sizeof(dir), "%s/weft-quality-XXXXXX", tmp ? tmp : "/tmp");
    (void)state;
    if (access(source, R_OK) != 0 || mkdtemp(dir) == NULL) {
        dir[0] = 0;
        return 0;
    }
    if (!run("cc -O2 -w -o %s/lftcheck %s -lpthread -lm 2>/dev/null", dir, source)) {
        run("rm -rf %s", dir);
        dir[0] = 0;
    }
    return 0;
}

static int clean(void **state)
{
    (void)state;
    return dir[0] == 0 || run("rm -rf %s", dir) ? 0 : -1;
}

static void need_peer(void)
{
    if (dir[0] != 0)
        return;
    print_message("skipped: there is no lftcheck, or no compiler for it\n");
    skip();
}

// --- what it says ---

static struct buf judged;

static void judge(const struct fabric *f, const struct fabric_tables *t)
{
    char path[300];
    snprintf(path, sizeof(path), "%s/topo", dir);
    FILE *o = fopen(path, "w");
    assert_int_equal(write_ibnetdiscover(f, o), 0);
    fclose(o);
    snprintf(path, sizeof(path), "%s/lfts", dir);
    o = fopen(path, "w");
    assert_int_equal(write_lft_dump(f, t, o), 0);
    fclose(o);
    run("%s/lftcheck %s/topo %s/lfts > %s/out 2>&1", dir, dir, dir, dir); // 1: not all is reached
    snprintf(path, sizeof(path), "%s/out", dir);
    o = fopen(path, "r");
    judged.len = 0;
    for (int c; (c = getc(o)) != EOF;)
        buf_putc(&judged, (char)c);
    fclose(o);
    assert_string_equal(strstr(judged.data, "pattern.hosts") ? "judged" : judged.data, "judged");
}

// The value of a key, NAN when there is none.
static double says(const char *key)
{
    size_t n = strlen(key);
    for (const char *p = judged.data; p && *p; p = strchr(p, '\n') ? strchr(p, '\n') + 1 : NULL) {
        if (strncmp(p, key, n) == 0 && p[n] == ' ')
            return strtod(p + n, NULL);
    }
    return NAN;
}

static void same(const char *what, double mine)
{
    double its = says(what);
    if (fabs(its - mine) > 0.5000001e-4 || isnan(its))
        fail_msg("%s: %.6f here, %.4f by lftcheck", what, mine, its);
}

static void same_flows(const char *what, const struct quality_flows *q)
{
    char key[80];
    assert_null(q->absent);
    snprintf(key, sizeof(key), "%s.patterns", what);
    same(key, q->patterns);
    snprintf(key, sizeof(key), "%s.mean_bw", what);
    same(key, q->mean);
    snprintf(key, sizeof(key), "%s.worst_mean_bw", what);
    same(key, q->worst);
    snprintf(key, sizeof(key), "%s.max_load", what);
    same(key, q->max_load);
    snprintf(key, sizeof(key), "%s.flows", what);
    same(key, (double)q->flows / q->patterns);
}

static void compare(const char *name, const struct fabric *f, enum route_engine engine, bool tiers)
{
    struct fabric_tables *t = rig_route(f, engine);
    struct quality_opts o = {.par = &rig_par};
    struct route_quality q;
    route_quality(f, t, &o, &q);
    judge(f, t);
    print_message(
        "%s %s: %u hosts, %u rails (%g there), %u units; same rail %.4f (%.4f), shift %.4f, permutation "
        "%.4f, all-to-all max %llu\n",
        name, t->engine, q.hosts, q.rails, says("pattern.rails"), q.sus, q.same_rail_shift.mean,
        says("rail_shift.mean_bw"), q.shift.mean, q.permutation.mean, (unsigned long long)q.alltoall.max);
    same("pattern.hosts", q.hosts);
    same_flows("shift", &q.shift);
    same_flows("perm", &q.permutation);
    if (q.rails == says("pattern.rails"))
        same_flows("rail_shift", &q.same_rail_shift);
    same("a2a.max", (double)q.alltoall.max);
    same("a2a.throughput_per_host", q.alltoall.worst);
    for (uint32_t i = 0; tiers && i < q.alltoall.num_levels; i++) {
        const struct quality_level *v = &q.alltoall.level[i];
        char key[80], part[100];
        snprintf(key, sizeof(key), "a2a.%s[%u-%u]", quality_dir_name(v->dir), v->tier, v->tier + 1u);
        snprintf(part, sizeof(part), "%s.max", key);
        same(part, (double)v->max);
        snprintf(part, sizeof(part), "%s.mean", key);
        same(part, v->mean);
        snprintf(part, sizeof(part), "%s.max_over_mean", key);
        same(part, v->max_over_mean);
        snprintf(part, sizeof(part), "%s.unused", key);
        same(part, v->unused);
    }
    tables_unref(t);
    fabric_unref(f);
}

static void generated(void **state)
{
    static const char *const name[] = {"rail-256", "rail-1024", "ft3-8-4", "ft3-16-4", "superpod-4"};
    (void)state;
    need_peer();
    for (unsigned i = 0; i < sizeof(name) / sizeof(name[0]); i++) {
        compare(name[i], rig_named(name[i]), ROUTE_UPDN, true);
        compare(name[i], rig_named(name[i]), ROUTE_MINHOP, true);
    }
}

static void degraded(void **state)
{
    struct rng r;
    (void)state;
    need_peer();
    rng_init(&r, 3);
    for (unsigned i = 0; i < 3; i++) {
        compare("ft3-16-4 without 10 %", rig_degrade(rig_named("ft3-16-4"), 10, &r), ROUTE_UPDN, true);
        compare("rail-512 without 20 %", rig_degrade(rig_named("rail-512"), 20, &r), ROUTE_UPDN, true);
    }
}

static void real(void **state)
{
    static const char *const file[] = {"hdr-superpod-compute-4341ca.txt", "ndr-dgx-rail-582ca.txt",
                                       "hdr-director-cs8500-2328ca-puttylog-crlf.txt",
                                       "ndr-rail8-256ca-ibdiagnet-port-labels.txt"};
    (void)state;
    need_peer();
    for (unsigned i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
        const struct fabric *f = rig_sample(file[i]);
        if (f)
            compare(file[i], f, ROUTE_UPDN, false);
        else
            print_message("skipped: no %s\n", file[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(generated),
        cmocka_unit_test(degraded),
        cmocka_unit_test(real),
    };
    int rc = cmocka_run_group_tests_name("quality_peer", tests, build, clean);
    buf_done(&judged);
    return rc;
}
