// SPDX-License-Identifier: Apache-2.0
// What others find, as alarms: every finding and event that sm/ and fabric/ can make is either a rule or left
// out on purpose; and looks at a fabric's state, in virtual time.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topogen.h"
#include "lib/err.h"
#include "lib/text.h"
#include "lib/xalloc.h"
#include "telemetry/alarm_sources.h"

#define S MONO_S
#define MIN (60 * MONO_S)

struct fix {
    struct loop *loop;
    struct alarms *a;
    struct alarm_watch *w;
    struct alarm_look l;
    struct findings findings;
    int64_t step; // of the wall clock
};

static int64_t wall(void *arg)
{
    const struct fix *f = arg;
    return 1800000000 * S + loop_now(f->loop).ns + f->step;
}

static int setup(void **state)
{
    struct fix *f = xcalloc(1, sizeof(*f));
    f->loop = loop_new(LOOP_VIRTUAL);
    f->a = alarms_new(f->loop, NULL, &(struct alarms_callbacks){.arg = f, .wall = wall});
    f->w = alarm_watch_new(f->a, "fab");
    f->l = (struct alarm_look){
        .running = true, .state = "master", .master = true, .sweep_ok = true, .findings = &f->findings};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fix *f = *state;
    alarm_watch_free(f->w);
    alarms_free(f->a);
    findings_done(&f->findings);
    fabric_unref(f->l.live);
    fabric_unref(f->l.known);
    loop_free(f->loop);
    free(f);
    return 0;
}

static void look(struct fix *f, int64_t ns)
{
    bool never = false;
    for (int64_t end = loop_now(f->loop).ns + ns; loop_now(f->loop).ns < end;) {
        loop_run_until(f->loop, &never, 10 * S);
        alarm_watch_look(f->w, &f->l, loop_now(f->loop).ns, wall(f));
    }
}

static void no_findings(struct fix *f)
{
    findings_done(&f->findings);
    memset(&f->findings, 0, sizeof(f->findings));
}

// The active alarm of a rule whose subject contains a text; NULL.
static const struct alarm *find(struct fix *f, const char *rule, const char *subject)
{
    const struct alarm *list;
    uint32_t n = alarms_list(f->a, &list);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(list[i].rule->id, rule) == 0 && strstr(list[i].subject, subject) && list[i].active)
            return &list[i];
    return NULL;
}

static uint32_t active(struct fix *f)
{
    const struct alarm *list;
    uint32_t n = alarms_list(f->a, &list), k = 0;
    for (uint32_t i = 0; i < n; i++)
        k += list[i].active;
    return k;
}

// Long names of places: cut between characters, and the same place each time.
static void long_places(void **state)
{
    struct fix *f = *state;
    for (unsigned pad = 0; pad < 2; pad++) {
        char place[400] = "", text[1000] = "";
        memset(place, 'x', pad);
        memset(text, 'x', pad);
        while (strlen(place) < 196)
            strcat(place, "\u00fc");
        while (strlen(text) < 390)
            strcat(text, "\u20ac");
        findings_add(&f->findings, FINDING_ERROR, "duplicate-guid", place, "%s", text);
        while (strlen(place) < 390)
            strcat(place, "\u00fc");
        for (int i = 0; i < 3; i++)
            alarm_watch_event(f->w, "drift", "warning", place, "another LFT");
    }
    look(f, 20 * S);
    const struct alarm *list;
    char copy[1000];
    uint32_t n = alarms_list(f->a, &list);
    assert_int_equal(n, 4);
    for (uint32_t i = 0; i < n; i++) {
        const char *const said[] = {list[i].subject, list[i].place, list[i].reason};
        for (int k = 0; k < 3; k++) {
            snprintf(copy, sizeof(copy), "%s", said[k]);
            text_clean(copy);
            assert_string_equal(copy, said[k]);
        }
        assert_non_null(strstr(list[i].subject, "\u00fc"));
    }
}

static void findings_stand_while_they_are_found(void **state)
{
    struct fix *f = *state;
    findings_add(&f->findings, FINDING_ERROR, "duplicate-guid", "leaf-1[3]", "two devices have one GUID");
    findings_add(&f->findings, FINDING_WARNING, "peer-silent", "leaf-1[4]", "does not answer");
    findings_add(&f->findings, FINDING_ERROR, "peer-silent", "spine-2 (0x0008f10400400008)",
                 "does not answer");
    findings_add(&f->findings, FINDING_WARNING, "rail-miscabled", "gpu-1 mlx5_3", "is on rail 5");
    findings_add(&f->findings, FINDING_INFO, "no-description", "0x1", "says nothing");
    findings_add(&f->findings, FINDING_INFO, "blueprint-missing", "", "3 are away");
    look(f, 20 * S);
    assert_int_equal(find(f, "S04", "duplicate-guid leaf-1[3]")->severity, ALARM_CRITICAL);
    assert_string_equal(find(f, "S04", "")->place, "leaf-1[3]");
    assert_string_equal(find(f, "S04", "")->reason, "two devices have one GUID");
    assert_int_equal(find(f, "S05", "leaf-1[4]")->severity, ALARM_MINOR);
    assert_int_equal(find(f, "S05", "spine-2")->severity, ALARM_MAJOR);
    assert_true(find(f, "S05", "spine-2")->node_guid[0] == 0x0008f10400400008); // what silences look at
    assert_true(find(f, "S05", "leaf-1[4]")->node_guid[0] == 0);
    assert_null(find(f, "S06", "")); // for a minute first
    look(f, 60 * S);
    assert_non_null(find(f, "S06", "gpu-1 mlx5_3"));
    assert_int_equal(active(f), 4);
    // Who looks at counters has a round of the same rule.
    alarm_raise(f->a, &(struct alarm_report){.fabric = "fab", .rule = "S05", .subject = "0x77"});
    alarm_round(f->a, "fab", "S05");
    assert_non_null(find(f, "S05", "spine-2"));
    no_findings(f);
    findings_add(&f->findings, FINDING_ERROR, "peer-silent", "spine-2", "does not answer");
    look(f, 10 * S);
    assert_int_equal(active(f), 2);
    assert_non_null(find(f, "S05", "0x77"));
    f->l.running = false; // the port is lost: nothing new is known
    f->l.down = "the port was lost";
    no_findings(f);
    look(f, 10 * S);
    assert_non_null(find(f, "S05", "spine-2"));
}

static void refused_routes(void **state)
{
    struct fix *f = *state;
    look(f, 10 * S);
    alarm_watch_event(f->w, "routes-refused", "error", "", "a loop at leaf-1");
    f->l.sweep_ok = false;
    look(f, 60 * MIN);
    assert_int_equal(find(f, "S03", "routes")->severity, ALARM_CRITICAL);
    assert_string_equal(find(f, "S03", "routes")->reason, "a loop at leaf-1");
    f->l.sweep_ok = true;
    look(f, 10 * S);
    assert_null(find(f, "S03", ""));
}

static void momentary_events(void **state)
{
    struct fix *f = *state;
    const struct alarm *list;
    alarm_watch_event(f->w, "drift", "warning", "leaf-1", "another LFT");
    alarm_watch_event(f->w, "trap-flood", "notice", "leaf-1", "is over");
    alarm_watch_event(f->w, "fabric-up", "notice", "", "all is well");
    assert_int_equal(alarms_list(f->a, &list), 1);
    assert_true(!list[0].active && strcmp(list[0].rule->id, "S08") == 0);
    look(f, 5 * MIN);
    assert_int_equal(alarms_list(f->a, &list), 1);
    look(f, 6 * MIN);
    assert_int_equal(alarms_list(f->a, &list), 0);
}

static void managers(void **state)
{
    struct fix *f = *state;
    struct alarm_sm sm[2] = {
        {.guid = 0x100,
         .node_guid = 0x99,
         .port = 1,
         .priority = 9,
         .node = "gpu-1",
         .state = ALARM_SM_STANDBY},
        {.guid = 0x200, .state = ALARM_SM_MASTER, .node = ""},
    };
    uint64_t known[] = {0x200, 0x300};
    const struct fabric *live = topogen_or_file("rail-64", NULL, NULL);
    f->l.live = live;
    f->l.sm = sm;
    f->l.num_sms = 1;
    look(f, 10 * S);
    assert_int_equal(find(f, "S01", "0x0000000000000100")->severity, ALARM_MAJOR);
    assert_string_equal(find(f, "S01", "")->place, "gpu-1");
    sm[0].state = ALARM_SM_MASTER;
    look(f, 10 * S);
    assert_int_equal(find(f, "S01", "")->severity, ALARM_CRITICAL);
    f->l.num_sms = 2;
    f->l.known_sms = known;
    f->l.num_known_sms = 2;
    look(f, 20 * S);
    assert_null(find(f, "S01", "0x0000000000000200"));
    assert_null(find(f, "W04", "0x0000000000000200"));
    assert_non_null(find(f, "W04", "0x0000000000000300"));
    f->l.num_sms = 0;
    look(f, 20 * S);
    assert_null(find(f, "S01", ""));
    assert_non_null(find(f, "W04", "0x0000000000000200"));
    f->l.master = false; // then the others' master looks after that
    look(f, 10 * S);
    assert_null(find(f, "W04", ""));
}

static void mastership(void **state)
{
    struct fix *f = *state;
    static const char *const up[] = {"not-active", "discovering", "master"};
    for (int i = 0; i < 3; i++) {
        f->l.state = up[i];
        f->l.master = i == 2;
        look(f, 10 * S);
    }
    assert_null(find(f, "S02", "")); // coming up is no move
    f->l.state = "standby";
    f->l.master = false;
    look(f, 10 * S);
    assert_int_equal(find(f, "S02", "")->severity, ALARM_MAJOR);
    assert_string_equal(find(f, "S02", "")->reason, "this manager was master and is standby");
    look(f, 62 * MIN);
    assert_int_equal(find(f, "S02", "")->severity, ALARM_INFO);
    f->l.state = "discovering";
    look(f, 10 * S);
    f->l.state = "master";
    f->l.master = true;
    look(f, 10 * S);
    assert_int_equal(find(f, "S02", "")->severity, ALARM_MAJOR);
    assert_string_equal(find(f, "S02", "")->reason, "this manager was standby and is master");
    look(f, 24 * 60 * MIN);
    assert_null(find(f, "S02", ""));
}

static void standby_takes_over(void **state)
{
    struct fix *f = *state;
    f->l.state = "standby";
    f->l.master = false;
    look(f, 10 * S);
    assert_null(find(f, "S02", ""));
    f->l.state = "master";
    f->l.master = true;
    look(f, 10 * S);
    assert_non_null(find(f, "S02", ""));
}

static void weft_itself(void **state)
{
    struct fix *f = *state;
    const struct alarm *list;
    f->l.db_status = -28;
    f->l.db_text = "the disk is full";
    look(f, 10 * S);
    assert_non_null(strstr(find(f, "W02", "database")->reason, "the disk is full"));
    f->l.db_status = 0;
    f->l.db_anew = "meta.db has been deleted while weftd ran";
    look(f, 10 * S);
    assert_non_null(find(f, "W02", "database-written-anew"));
    assert_string_equal(find(f, "W02", "database-written-anew")->reason, f->l.db_anew);
    f->l.db_anew = NULL;
    look(f, 10 * S);
    assert_null(find(f, "W02", ""));
    look(f, 15 * MIN);
    assert_int_equal(alarms_list(f->a, &list), 0);
    f->step += 900 * MONO_MS; // slewing
    look(f, 10 * S);
    assert_int_equal(alarms_list(f->a, &list), 0);
    f->step -= 90 * S;
    look(f, 10 * S);
    assert_int_equal(alarms_list(f->a, &list), 1);
    assert_string_equal(list[0].rule->id, "W05");
    assert_string_equal(list[0].reason, "the clock was set back by 90.0 s");
    look(f, 15 * MIN);
    assert_int_equal(alarms_list(f->a, &list), 0);
    alarm_watch_cap(f->w, true, "10 of 2000");
    look(f, 10 * S);
    assert_non_null(find(f, "W06", ""));
    alarm_watch_cap(f->w, false, "");
    assert_null(find(f, "W06", ""));
}

// Ports of what is there whose cables lead to what is gone.
static void ways_to(struct builder *b, const struct fabric *all, const bool *gone, enum port_state state)
{
    for (uint32_t i = 0; i < all->num_nodes; i++) {
        const struct node *n = &all->node[i];
        for (unsigned num = 1; !gone[i] && num <= n->num_ports; num++) {
            const struct port *p = &all->port[fabric_port_at(all, n, num).i];
            const struct node *z = fabric_peer_node(all, p);
            struct port_attrs a = p->a;
            if (!z || !gone[z - all->node])
                continue;
            a.state = state;
            builder_port(b, (node_id){i}, num, &a);
        }
    }
}

// Dead switches are no part that is cut off, also where they are cabled to each other.
static void dead_switches_are_no_part(void **state)
{
    struct fix *f = *state;
    const struct fabric *all = topogen_or_file("rail-256", NULL, NULL);
    assert_non_null(all);
    uint64_t spine = 0, leaf[2] = {0, 0};
    for (uint32_t s = 0; s < all->num_switches; s++) {
        const struct node *n = fabric_switch(all, s);
        if (n->role == ROLE_SPINE)
            spine = n->guid;
        else
            leaf[leaf[0] != 0] = n->guid;
    }
    f->l.known = fabric_ref(all);
    bool *gone = xcalloc(all->num_nodes, sizeof(*gone));
    for (int round = 0; round < 3; round++) {
        struct builder *b = builder_from(all);
        uint64_t dead[] = {leaf[0], round == 1 ? spine : leaf[1]};
        memset(gone, 0, all->num_nodes * sizeof(*gone));
        for (int i = 0; i < 1 + (round > 0); i++) {
            const struct node *n = fabric_by_guid(all, dead[i]);
            gone[n - all->node] = true;
            builder_remove(b, (node_id){(uint32_t)(n - all->node)});
        }
        ways_to(b, all, gone, PORT_DOWN);
        fabric_unref(f->l.live);
        f->l.live = builder_seal(b, 2, NULL);
        look(f, 10 * S);
        assert_null(find(f, "S07", "split"));
    }
    free(gone);
    fabric_unref(all);
}

// A leaf, the spines above it and the leaves below these.
static void mark_pod(const struct fabric *f, bool *in)
{
    for (uint32_t s = 0, first = 1; s < f->num_switches && first; s++)
        if (fabric_switch(f, s)->tier == 0)
            in[f->switch_node[s]] = true, first = 0;
    for (uint8_t to = 1; to != 0xff; to--)
        for (uint32_t i = 0; i < f->num_nodes; i++)
            for (unsigned num = 1; f->node[i].type == NODE_SWITCH && in[i] && num <= f->node[i].num_ports;
                 num++) {
                const struct node *z = fabric_peer_node(f, &f->port[f->node[i].first_port + num]);
                if (z && z->type == NODE_SWITCH && z->tier == to)
                    in[z - f->node] = true;
            }
}

// A pod whose way up is gone: unless the cables that lead there are up, so that its agents alone are silent.
static void a_part_is_cut_off(void **state)
{
    struct fix *f = *state;
    struct err e = {0};
    const struct fabric *all = topogen_make("ft3-64-8", &e);
    assert_non_null(all);
    f->l.known = fabric_ref(all);
    bool *pod = xcalloc(all->num_nodes, sizeof(*pod));
    mark_pod(all, pod);
    for (uint32_t i = 0; i < all->num_nodes; i++) // and what is behind it
        if (all->node[i].type != NODE_SWITCH)
            pod[i] = pod[fabric_peer_node(all, &all->port[all->node[i].first_port]) - all->node];
    for (int lit = 0; lit < 2; lit++) {
        struct builder *b = builder_from(all);
        uint32_t gone = 0;
        for (uint32_t i = 0; i < all->num_nodes; i++) {
            if (pod[i])
                builder_remove(b, (node_id){i});
            gone += pod[i];
        }
        ways_to(b, all, pod, lit ? PORT_ACTIVE : PORT_DOWN);
        assert_in_range(gone, 2, all->num_nodes - 1);
        fabric_unref(f->l.live);
        f->l.live = builder_seal(b, 2, NULL);
        look(f, 10 * S);
        assert_int_equal(find(f, "S07", "split") != NULL, !lit);
    }
    free(pod);
    fabric_unref(all);
}

static void lids(void **state)
{
    struct fix *f = *state;
    const struct fabric *x = topogen_or_file("rail-256", NULL, NULL);
    struct builder *b = builder_from(x);
    uint16_t lid = 1;
    for (uint32_t i = 0; i < x->num_nodes; i++) {
        const struct node *n = &x->node[i];
        struct port_attrs a = x->port[n->first_port].a;
        a.lid = lid++;
        builder_port(b, (node_id){i}, n->type == NODE_SWITCH ? 0 : 1, &a);
        if (n->type != NODE_SWITCH)
            continue;
        struct node_attrs na = node_attrs_like(n);
        na.lft_cap = 290; // 268 LIDs are in use
        builder_node_attrs(b, (node_id){i}, &na);
    }
    f->l.live = builder_seal(b, 3, NULL);
    fabric_unref(x);
    look(f, 10 * S);
    assert_non_null(find(f, "S07", "lids"));
    assert_int_equal(find(f, "S07", "lids")->severity, ALARM_MINOR);
    f->l.master = false;
    look(f, 10 * S);
    assert_null(find(f, "S07", ""));
}

#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(findings_stand_while_they_are_found),
        T(long_places),
        T(refused_routes),
        T(momentary_events),
        T(managers),
        T(mastership),
        T(standby_takes_over),
        T(weft_itself),
        T(dead_switches_are_no_part),
        T(a_part_is_cut_off),
        T(lids),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
