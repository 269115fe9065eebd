// SPDX-License-Identifier: Apache-2.0
// What each trap leads to, and the bounds: a manager made by hand with three devices, whose marks are counted
// instead of set (--wrap of the linker).
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lib/log.h"
#include "sm/sm_priv.h"

enum { SWITCH = 0, HOST = 1, OWN = 2 };
enum { SWITCH_LID = 5, HOST_LID = 7, OWN_LID = 1 };
#define KEY(i) (0x1122334455667700ull + (i))

static struct sm_port port[3][9];
static struct sm_dev dev[3];
static struct {
    struct sm sm;
    struct loop *loop;
    struct transport t;
    struct sm_dev *list[3];
    uint8_t answer[MAD_SIZE]; // the last
    uint16_t answer_lid;
    unsigned answers, marks[4], events;
    unsigned mark_num;
    const struct sm_dev *mark_dev;
    char kind[64], subject[200], text[500];
} g;

void __wrap_sm_dirty_told(struct sm *sm, struct sm_dev *d, const char *cause);
void __wrap_sm_dirty_port(struct sm *sm, struct sm_dev *d, unsigned num, const char *cause);
void __wrap_sm_dirty_desc(struct sm *sm, struct sm_dev *d, const char *cause);
void __wrap_sm_dirty_node(struct sm *sm, struct sm_dev *d, const char *cause);
struct sm_dev *__wrap_sm_dev_by_lid(struct sm *sm, uint16_t lid, unsigned *ret_num);

static void marked(unsigned what, const struct sm_dev *d, const char *cause)
{
    assert_string_equal(cause, "trap");
    g.marks[what]++;
    g.mark_dev = d;
}

void __wrap_sm_dirty_told(struct sm *sm, struct sm_dev *d, const char *cause)
{
    (void)sm;
    marked(0, d, cause);
}

void __wrap_sm_dirty_port(struct sm *sm, struct sm_dev *d, unsigned num, const char *cause)
{
    (void)sm;
    g.mark_num = num;
    marked(1, d, cause);
}

void __wrap_sm_dirty_desc(struct sm *sm, struct sm_dev *d, const char *cause)
{
    (void)sm;
    marked(2, d, cause);
}

void __wrap_sm_dirty_node(struct sm *sm, struct sm_dev *d, const char *cause)
{
    (void)sm;
    marked(3, d, cause);
}

struct sm_dev *__wrap_sm_dev_by_lid(struct sm *sm, uint16_t lid, unsigned *ret_num)
{
    (void)sm;
    *ret_num = lid == HOST_LID ? 1 : 0;
    return lid == HOST_LID ? &dev[HOST] : lid == SWITCH_LID ? &dev[SWITCH] : NULL;
}

static int take(struct transport *t, const uint8_t *mad, const struct mad_addr *to, int64_t timeout_ns)
{
    (void)t;
    (void)timeout_ns;
    memcpy(g.answer, mad, MAD_SIZE);
    g.answer_lid = to->lid;
    g.answers++;
    return 0;
}

static void on_event(void *arg, const struct sm_event *ev)
{
    (void)arg;
    g.events++;
    snprintf(g.kind, sizeof(g.kind), "%s", ev->kind);
    snprintf(g.subject, sizeof(g.subject), "%s", ev->subject);
    snprintf(g.text, sizeof(g.text), "%s", ev->text);
}

static void make_dev(unsigned i, uint8_t type, unsigned num, uint16_t lid, const char *desc)
{
    struct mad_port_info pi = {.lid = lid, .m_key = KEY(i), .capability_mask = MAD_CAP_IS_TRAP_SUPPORTED};
    dev[i] = (struct sm_dev){.guid = 0x100 + i, .index = i, .port = port[i]};
    dev[i].ni.node_type = type;
    dev[i].ni.num_ports = type == MAD_NODE_SWITCH ? 8 : 1;
    snprintf(dev[i].desc, sizeof(dev[i].desc), "%s", desc);
    port[i][num] = (struct sm_port){.known = true, .m_key = KEY(i), .lid = lid};
    mad_port_info_encode(&pi, port[i][num].info);
    g.list[i] = &dev[i];
}

static int setup(void **state)
{
    static const struct transport_ops ops = {.send = take};
    (void)state;
    memset(&g, 0, sizeof(g));
    memset(port, 0, sizeof(port));
    log_set_level(LOG_LEVEL_ERROR);
    g.loop = loop_new(LOOP_VIRTUAL);
    g.t = (struct transport){.ops = &ops, .name = "test"};
    make_dev(SWITCH, MAD_NODE_SWITCH, 0, SWITCH_LID, "leaf");
    make_dev(HOST, MAD_NODE_CA, 1, HOST_LID, "host");
    make_dev(OWN, MAD_NODE_CA, 1, OWN_LID, "manager");
    g.sm = (struct sm){.loop = g.loop,
                       .state = SM_MASTER,
                       .own_lid = OWN_LID,
                       .own_dev = OWN,
                       .own.num = 1,
                       .dev = g.list,
                       .num_dev = 3,
                       .num_sweeps = 1,
                       .cb.event = on_event};
    sm_opts_default(&g.sm.o);
    g.sm.engine = mad_engine_new(g.loop, &g.t, NULL);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    sm_trap_done(&g.sm);
    mad_engine_free(g.sm.engine);
    loop_free(g.loop);
    return 0;
}

static void run(int64_t ns)
{
    bool never = false;
    loop_run_until(g.loop, &never, ns);
}

static void swept(void) // a sweep has begun and ended
{
    g.sm.num_sweeps++;
}

static void make(uint8_t *mad, const struct mad_notice *n)
{
    memset(mad, 0, MAD_SIZE);
    mad[0] = mad[2] = 1;
    mad[1] = MAD_CLASS_SM_LID;
    mad[3] = MAD_METHOD_TRAP;
    mad[15] = 42;
    mad[17] = MAD_ATTR_NOTICE;
    mad_notice_encode(n, mad + MAD_SMP_DATA_OFFSET);
}

// From that LID on the wire, naming itself as issuer, with the details that the standard gives the number.
static void trap(uint16_t from, uint16_t number, const void *details)
{
    uint8_t mad[MAD_SIZE];
    struct mad_notice n = {
        .is_generic = 1, .producer_type = MAD_PRODUCER_SWITCH, .trap_number = number, .issuer_lid = from};
    if (details != NULL)
        mad_attr_encode(mad_trap_find(number), details, n.data_details);
    make(mad, &n);
    sm_trap(&g.sm, mad, &(struct mad_addr){.lid = from});
}

static struct sm_trap_stats stats(void)
{
    struct sm_trap_stats s;
    sm_trap_stats(&g.sm, &s);
    return s;
}

static void marks_are(unsigned sw, unsigned p, unsigned desc, unsigned node)
{
    assert_int_equal(g.marks[0], sw);
    assert_int_equal(g.marks[1], p);
    assert_int_equal(g.marks[2], desc);
    assert_int_equal(g.marks[3], node);
}

static uint64_t answer_key(void)
{
    struct mad_smp s;
    mad_smp_decode(g.answer, &s);
    assert_int_equal(s.method, MAD_METHOD_TRAP_REPRESS);
    assert_int_equal(s.tid, 42);
    return s.m_key;
}

static void test_keys(void **state)
{
    uint8_t mad[MAD_SIZE];
    struct mad_notice n = {
        .is_generic = 1, .producer_type = 1, .trap_number = MAD_TRAP_LOCAL_CHANGES, .issuer_lid = SWITCH_LID};
    (void)state;
    trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, NULL);
    assert_int_equal(g.answer_lid, SWITCH_LID);
    assert_true(answer_key() == KEY(SWITCH));
    trap(HOST_LID, MAD_TRAP_LOCAL_CHANGES, NULL);
    assert_true(answer_key() == KEY(HOST));
    trap(0, MAD_TRAP_LOCAL_CHANGES, NULL); // our own port
    assert_int_equal(g.answer_lid, OWN_LID);
    assert_true(answer_key() == KEY(OWN));
    trap(999, MAD_TRAP_LOCAL_CHANGES, NULL); // nobody's
    assert_int_equal(g.answer_lid, 999);
    assert_true(answer_key() == 0);
    make(mad, &n); // a key goes to its own port only, whoever the notice names
    sm_trap(&g.sm, mad, &(struct mad_addr){.lid = HOST_LID});
    assert_int_equal(g.answer_lid, HOST_LID);
    assert_true(answer_key() == KEY(HOST));
    assert_int_equal(stats().other_issuer, 2); // and LID 0
    port[HOST][1].m_key = 0;                   // not read yet in the running sweep
    trap(HOST_LID, MAD_TRAP_LOCAL_CHANGES, NULL);
    assert_true(answer_key() == KEY(HOST));
    assert_int_equal(g.answers, 6);
    assert_int_equal(stats().repressed, 6);
}

static void test_not_answered(void **state)
{
    uint8_t mad[MAD_SIZE];
    struct mad_notice n = {.is_generic = 1, .producer_type = 2, .trap_number = MAD_TRAP_LINK_STATE_CHANGE};
    static const uint16_t lid[] = {0xc000, 0xfffe, 0xffff};
    (void)state;
    make(mad, &n);
    for (unsigned i = 0; i < 3; i++)
        sm_trap(&g.sm, mad, &(struct mad_addr){.lid = lid[i]});
    mad[1] = MAD_CLASS_SM_DR; // traps have no directed route
    sm_trap(&g.sm, mad, &(struct mad_addr){.lid = SWITCH_LID});
    assert_int_equal(stats().nonsense, 4);
    for (unsigned s = SM_NOT_ACTIVE; s < SM_MASTER; s++) {
        g.sm.state = (enum sm_state)s;
        trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, NULL);
    }
    assert_int_equal(stats().not_master, 3);
    assert_int_equal(g.answers, 0);
    marks_are(0, 0, 0, 0);
}

static void test_link_state(void **state)
{
    struct mad_trap_128 x = {.lid = SWITCH_LID};
    (void)state;
    trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, &x);
    marks_are(1, 0, 0, 0);
    assert_ptr_equal(g.mark_dev, &dev[SWITCH]);
    swept();
    trap(HOST_LID, MAD_TRAP_LINK_STATE_CHANGE, NULL); // an adapter has no such trap
    x.lid = 999;
    trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, &x); // about nobody
    x.lid = HOST_LID;
    trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, &x); // about another
    marks_are(1, 0, 0, 0);
    assert_int_equal(stats().nonsense, 1);
    assert_int_equal(stats().unknown, 2);
    assert_int_equal(g.answers, 4);
    assert_int_equal(stats().by_number[0].number, 128);
    assert_int_equal(stats().by_number[0].count, 4);
}

static void test_local_changes(void **state)
{
    struct mad_trap_144 x = {.lid = HOST_LID, .capability_mask = MAD_CAP_IS_TRAP_SUPPORTED};
    (void)state;
    trap(HOST_LID, MAD_TRAP_LOCAL_CHANGES, &x); // the capability mask: IsSM may have come or gone
    marks_are(0, 1, 0, 0);
    assert_int_equal(g.mark_num, 1);
    swept();
    x.other_local_changes = x.node_description_change = true;
    trap(HOST_LID, MAD_TRAP_LOCAL_CHANGES, &x);
    marks_are(0, 1, 1, 0);
    swept();
    x.sm_priority_change = true; // both
    trap(HOST_LID, MAD_TRAP_LOCAL_CHANGES, &x);
    marks_are(0, 2, 2, 0);
    swept();
    x.sm_priority_change = false;
    x.capability_mask |= MAD_CAP_IS_SM;
    trap(HOST_LID, MAD_TRAP_LOCAL_CHANGES, &x);
    marks_are(0, 3, 3, 0);
    swept();
    x = (struct mad_trap_144){
        .lid = HOST_LID, .other_local_changes = true, .link_width_enabled_change = true};
    trap(HOST_LID, MAD_TRAP_LOCAL_CHANGES, &x);
    marks_are(0, 4, 3, 0);
}

// Our own IsSM bit is our own doing; anything else is not.
static void test_own_changes(void **state)
{
    struct mad_trap_144 x = {.lid = OWN_LID, .capability_mask = MAD_CAP_IS_TRAP_SUPPORTED | MAD_CAP_IS_SM};
    (void)state;
    trap(OWN_LID, MAD_TRAP_LOCAL_CHANGES, &x);
    trap(0, MAD_TRAP_LOCAL_CHANGES, &x);
    marks_are(0, 0, 0, 0);
    x.other_local_changes = x.node_description_change = true;
    trap(0, MAD_TRAP_LOCAL_CHANGES, &x);
    marks_are(0, 0, 1, 0);
    assert_ptr_equal(g.mark_dev, &dev[OWN]);
    x.capability_mask |= MAD_CAP_IS_DEVICE_MANAGEMENT_SUPPORTED;
    trap(0, MAD_TRAP_LOCAL_CHANGES, &x);
    marks_are(0, 1, 1, 0);
}

static void test_other_numbers(void **state)
{
    struct mad_trap_145 x = {.lid = HOST_LID, .system_image_guid = 5};
    struct mad_notice n = {.is_generic = 0, .producer_type = 0x2c9, .trap_number = 128};
    uint8_t mad[MAD_SIZE];
    (void)state;
    trap(HOST_LID, MAD_TRAP_SYSTEM_IMAGE_GUID, &x);
    marks_are(0, 0, 0, 1);
    trap(SWITCH_LID, MAD_TRAP_GID_IN_SERVICE, NULL);
    trap(SWITCH_LID, 7777, NULL);
    assert_int_equal(stats().nonsense, 2);
    assert_int_equal(stats().other_numbers, 2);
    make(mad, &n); // a vendor's number is not the standard's
    sm_trap(&g.sm, mad, &(struct mad_addr){.lid = SWITCH_LID});
    assert_int_equal(stats().vendor, 1);
    n = (struct mad_notice){.is_generic = 1, .trap_number = 128};
    for (n.producer_type = 0; n.producer_type < 8; n.producer_type += 5) {
        make(mad, &n);
        sm_trap(&g.sm, mad, &(struct mad_addr){.lid = SWITCH_LID});
    }
    assert_int_equal(stats().nonsense, 4);
    assert_int_equal(g.answers, 6);
    marks_are(0, 0, 0, 1);
    assert_int_equal(g.events, 0);
}

// While the device is still to be read nothing is new; what comes after is read, if not at once.
static void test_repeats(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++)
        trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, NULL);
    marks_are(1, 0, 0, 0);
    assert_int_equal(stats().duplicates, 4);
    g.sm.sweeping = true; // it begins: what is told from now on is news
    trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, NULL);
    marks_are(2, 0, 0, 0);
    g.sm.sweeping = false;
    swept();
    trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, NULL);
    marks_are(2, 0, 0, 0); // still marked: that sweep was the one that had begun
    for (unsigned i = 0; i < 6; i++) {
        swept();
        trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, NULL);
    }
    marks_are(4, 0, 0, 0); // four at once
    assert_int_equal(stats().put_off, 1);
    run(501 * MONO_MS);
    marks_are(5, 0, 0, 0); // the rest is one more, when it is due
    run(10 * MONO_S);
    marks_are(5, 0, 0, 0);
    assert_int_equal(g.answers, 13);
}

// What is put off is dropped when the fabric has become another's.
static void test_put_off_standby(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 6; i++, swept())
        trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, NULL);
    marks_are(4, 0, 0, 0);
    g.sm.state = SM_STANDBY;
    run(10 * MONO_S);
    marks_are(4, 0, 0, 0);
}

static void flood(uint16_t lid, unsigned seconds)
{
    for (unsigned ms = 0; ms < 1000 * seconds; ms++) {
        for (unsigned i = 0; i < 100; i++)
            trap(lid, MAD_TRAP_LOCAL_CHANGES, NULL);
        swept(); // sweeps that take no time: the worst
        run(MONO_MS);
    }
}

static void test_flood(void **state)
{
    (void)state;
    flood(HOST_LID, 3);
    assert_in_range(g.answers, 64, 4 * 32);
    assert_in_range(g.marks[1], 1, 6);
    assert_int_equal(g.events, 1);
    assert_string_equal(g.kind, "trap-flood");
    assert_non_null(strstr(g.subject, "host"));
    assert_non_null(strstr(g.text, "100000 traps a second"));
    assert_int_equal(stats().flooding, 1);
    unsigned answers = g.answers;
    trap(SWITCH_LID, MAD_TRAP_LINK_STATE_CHANGE, NULL); // the others do not suffer
    assert_int_equal(g.marks[0], 1);
    assert_int_equal(g.answers, answers + 1);
    unsigned reads = g.marks[1];
    run(20 * MONO_S);
    assert_int_equal(g.events, 2);
    assert_non_null(strstr(g.text, "over: 300000 in "));
    assert_int_equal(stats().flooding, 0);
    assert_int_equal(stats().floods, 1);
    assert_in_range(g.marks[1], reads, reads + 1); // what it said last was not lost
    assert_int_equal(stats().received, 300001);
    assert_int_equal(stats().unanswered + stats().repressed, 300001);
}

static void test_flood_of_nobody(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100000; i++) {
        trap((uint16_t)(100 + i % 40000), MAD_TRAP_LINK_STATE_CHANGE, NULL);
        if (i % 100 == 99)
            run(MONO_MS);
    }
    assert_in_range(g.answers, 32, 64);
    marks_are(0, 0, 0, 0);
    assert_int_equal(stats().unknown, 100000);
    assert_int_equal(g.events, 1);
    assert_non_null(strstr(g.subject, "no port has"));
    trap(HOST_LID, MAD_TRAP_LOCAL_CHANGES, NULL);
    assert_int_equal(g.marks[1], 1);
    run(20 * MONO_S);
    assert_int_equal(g.events, 2);
}

static void test_port_errors(void **state)
{
    struct mad_trap_129 x = {.lid = SWITCH_LID, .port_num = 3};
    (void)state;
    for (unsigned i = 0; i < 10; i++, run(2 * MONO_S))
        trap(SWITCH_LID, MAD_TRAP_LOCAL_LINK_INTEGRITY, &x);
    assert_int_equal(g.events, 0);
    for (unsigned i = 0; i < 20; i++, run(2 * MONO_S))
        trap(SWITCH_LID, MAD_TRAP_LOCAL_LINK_INTEGRITY, &x);
    assert_int_equal(g.events, 1);
    assert_string_equal(g.kind, "port-errors");
    assert_non_null(strstr(g.subject, "leaf[3]"));
    assert_non_null(strstr(g.text, "link integrity errors, 11 times in 20 s"));
    for (unsigned i = 0; i < 11; i++) // another kind is another matter
        trap(SWITCH_LID, MAD_TRAP_FLOW_CONTROL_WATCHDOG, &x);
    assert_int_equal(g.events, 2);
    assert_int_equal(stats().bad_ports, 2);
    x.port_num = 9;
    trap(SWITCH_LID, MAD_TRAP_LOCAL_LINK_INTEGRITY, &x); // no such port
    x = (struct mad_trap_129){.lid = HOST_LID, .port_num = 1};
    trap(SWITCH_LID, MAD_TRAP_LOCAL_LINK_INTEGRITY, &x); // not its port
    assert_int_equal(stats().unknown, 2);
    run(280 * MONO_S);
    assert_int_equal(g.events, 2);
    run(40 * MONO_S);
    assert_int_equal(g.events, 4);
    assert_non_null(strstr(g.text, "no more"));
    assert_int_equal(stats().bad_ports, 0);
    marks_are(0, 0, 0, 0);
}

// Slowly, for ever: nothing is told.
static void test_port_errors_rare(void **state)
{
    struct mad_trap_129 x = {.lid = SWITCH_LID, .port_num = 3};
    (void)state;
    for (unsigned i = 0; i < 100; i++, run(61 * MONO_S))
        trap(SWITCH_LID, MAD_TRAP_EXCESSIVE_BUFFER_OVERRUN, &x);
    assert_int_equal(g.events, 0);
}

static void test_m_key_violations(void **state)
{
    struct mad_trap_256 x = {.lid = HOST_LID,
                             .method = MAD_METHOD_SET,
                             .attr_id = MAD_ATTR_PORT_INFO,
                             .attr_mod = 4,
                             .m_key = 0xbad};
    (void)state;
    for (unsigned i = 0; i < 30; i++, run(MONO_S))
        trap(SWITCH_LID, MAD_TRAP_BAD_M_KEY, &x);
    assert_int_equal(g.events, 1);
    assert_string_equal(g.kind, "m-key-violation");
    assert_non_null(strstr(g.subject, "leaf[0]"));
    assert_non_null(strstr(g.text, "Set(PortInfo) (modifier 0x4)"));
    assert_non_null(strstr(g.text, "by host[1]"));
    assert_null(strstr(g.text, "bad")); // keys are not told
    run(31 * MONO_S);
    assert_int_equal(g.events, 2);
    assert_non_null(strstr(g.text, "29 more"));
    run(200 * MONO_S);
    assert_int_equal(g.events, 2);
    x.lid = OWN_LID;
    trap(SWITCH_LID, MAD_TRAP_BAD_M_KEY, &x);
    assert_non_null(strstr(g.text, "by this manager"));
    x.lid = 0xffff;
    x.dr_hop_count = 3;
    trap(HOST_LID, MAD_TRAP_BAD_M_KEY, &x);
    assert_non_null(strstr(g.text, "a directed route of 3 hops"));
    marks_are(0, 0, 0, 0);
}

static void test_key_violations(void **state)
{
    struct mad_trap_257 x = {.lid1 = HOST_LID, .lid2 = OWN_LID, .key = 0x8001, .qp1 = 0x48, .qp2 = 1};
    struct mad_trap_257 q = {.lid1 = 500, .lid2 = OWN_LID, .key = 0x1b, .gid1 = {[15] = 9}};
    struct mad_trap_259 s = {.lid1 = HOST_LID, .lid2 = OWN_LID, .p_key = 0x8002, .port_num = 2};
    (void)state;
    trap(OWN_LID, MAD_TRAP_BAD_P_KEY, &x);
    assert_string_equal(g.kind, "p-key-violation");
    assert_non_null(strstr(g.text, "from host[1]"));
    assert_non_null(strstr(g.text, "to manager[1]"));
    assert_non_null(strstr(g.text, "P_Key 0x8001"));
    trap(OWN_LID, MAD_TRAP_BAD_Q_KEY, &q);
    assert_string_equal(g.kind, "q-key-violation");
    assert_non_null(strstr(g.text, "LID 500 (port 0x0000000000000009)"));
    trap(SWITCH_LID, MAD_TRAP_SWITCH_BAD_P_KEY, &s);
    assert_string_equal(g.kind, "p-key-violation");
    assert_non_null(strstr(g.subject, "leaf[2]"));
    assert_int_equal(g.events, 3);
    s.port_num = 200;
    trap(SWITCH_LID, MAD_TRAP_SWITCH_BAD_P_KEY, &s);
    trap(HOST_LID, MAD_TRAP_SWITCH_BAD_P_KEY, &s);
    assert_int_equal(g.events, 3);
    assert_int_equal(stats().nonsense, 2);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_keys),
        T(test_not_answered),
        T(test_link_state),
        T(test_local_changes),
        T(test_own_changes),
        T(test_other_numbers),
        T(test_repeats),
        T(test_put_off_standby),
        T(test_flood),
        T(test_flood_of_nobody),
        T(test_port_errors),
        T(test_port_errors_rare),
        T(test_m_key_violations),
        T(test_key_violations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
