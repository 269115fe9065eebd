// SPDX-License-Identifier: Apache-2.0
// umad: which port is chosen and what is said when none can be; who holds a device; and the whole way on
// ibsim, in a child of this program that runs under libumad2sim (skipped where ibsim is not installed).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "mad/engine.h"
#include "mad/umad_priv.h"

static const struct transport_port ports[] = {
    {.device = "mlx5_0", .num = 1, .state = MAD_PORT_ACTIVE, .ethernet = true},
    {.device = "mlx5_1", .num = 1, .state = MAD_PORT_DOWN},
    {.device = "mlx5_2", .num = 1, .state = MAD_PORT_INIT},
    {.device = "mlx5_2", .num = 2, .state = MAD_PORT_ACTIVE},
};

static int choose(int n, const char *device, int port, struct err *e)
{
    struct umad_opts o = {.device = device, .port = port};
    memset(e, 0, sizeof(*e));
    return umad_choose(ports, n, &o, e);
}

static void test_choose(void **state)
{
    struct err e;
    assert_int_equal(choose(4, NULL, 0, &e), 2); // the first that is InfiniBand and not down
    assert_int_equal(choose(2, NULL, 0, &e), 1); // down: it may heal
    assert_int_equal(choose(4, "mlx5_1", 0, &e), 1);
    assert_int_equal(choose(4, "mlx5_2", 2, &e), 3);
    assert_int_equal(choose(4, NULL, 2, &e), 3);

    assert_int_equal(choose(0, NULL, 0, &e), -ENODEV);
    assert_non_null(strstr(e.text, "ib_umad"));
    assert_int_equal(choose(1, NULL, 0, &e), -EPROTONOSUPPORT);
    assert_non_null(strstr(e.text, "RoCE"));
    assert_int_equal(choose(4, "mlx5_0", 1, &e), -EPROTONOSUPPORT);
    assert_int_equal(choose(4, "mlx5_9", 1, &e), -ENOENT);
    assert_string_equal(e.where, "mlx5_9/1");
    assert_non_null(strstr(e.text, "mlx5_0/1 Ethernet"));
    assert_non_null(strstr(e.text, "mlx5_2/1 Init"));
    assert_int_equal(choose(4, "mlx5_2", 3, &e), -ENOENT);
}

static char dir[64];

static void path(char buf[300], const char *name)
{
    snprintf(buf, 300, "%s/%s", dir, name);
}

static void write_file(const char *name, const char *text)
{
    char p[300];
    path(p, name);
    FILE *f = fopen(p, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void make_dir(const char *name)
{
    char p[300];
    path(p, name);
    assert_int_equal(mkdir(p, 0700), 0);
}

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof(dir), "%.40s/weft-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
    char cmd[100];
    snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
    return system(cmd);
}

static void test_holder(void **state)
{
    char p[300], buf[64];
    make_dir("self");
    make_dir("12");
    make_dir("12/fd");
    make_dir("345");
    make_dir("345/fd");
    make_dir("77"); // its fd cannot be read
    write_file("345/comm", "open\x01sm\n");
    path(p, "12/fd/0");
    assert_int_equal(symlink("/dev/null", p), 0);
    path(p, "345/fd/9");
    assert_int_equal(symlink("/dev/infiniband/umad0", p), 0);
    assert_string_equal(umad_holder(dir, "/dev/infiniband/umad0", buf, sizeof(buf)), "open?sm (pid 345)");
    assert_null(umad_holder(dir, "/dev/infiniband/umad1", buf, sizeof(buf)));
    assert_null(umad_holder("/nonexistent", "/dev/infiniband/umad0", buf, sizeof(buf)));
}

// --- on ibsim ---

#define PRELOAD "/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so"
#define GETS 5000
static const char self_exe[] = "/proc/self/exe";

static const char net[] = "Switch\t8 \"leaf\"\t# \"leaf\"\n[1]\t\"a\"[1]\n[2]\t\"b\"[1]\n\n"
                          "Ca\t1 \"a\"\t# \"a mlx5_0\"\n[1]\t\"leaf\"[1]\n\n"
                          "Ca\t1 \"b\"\t# \"b mlx5_0\"\n[1]\t\"leaf\"[2]\n";

struct smoke {
    unsigned left, bad;
    int status[3];
    uint8_t node_type[3];
    bool all;
};

static void smoke_done(void *arg, uint64_t user, const struct mad_result *r)
{
    struct smoke *s = arg;
    if (user < 3) {
        s->status[user] = r->status;
        s->node_type[user] = r->status ? 0 : r->data[2];
    } else {
        s->bad += r->status || r->mad_status;
    }
    s->all = --s->left == 0;
}

#define CHECK(c)                                                                                             \
    do {                                                                                                     \
        if (!(c)) {                                                                                          \
            fprintf(stderr, "ibsim: line %d: not true: %s\n", __LINE__, #c);                                 \
            return 1;                                                                                        \
        }                                                                                                    \
    } while (0)

static int smoke_run(void)
{
    struct loop *l = loop_new(LOOP_REAL);
    struct err e = {0};
    struct transport *t = umad_open(l, &(struct umad_opts){.need_sm = true}, &e);
    struct transport_port p;
    if (!t)
        fprintf(stderr, "ibsim: %s: %s\n", e.where, e.text);
    CHECK(t);
    CHECK(t->ops->port(t, &p) == 0);
    CHECK(p.num == 1 && p.node_guid && p.port_guid && !p.ethernet && p.state == MAD_PORT_INIT);
    CHECK(t->ops->issm(t, true, &e) == 0);
    struct mad_engine *m = mad_engine_new(l, t, NULL);
    // Ourselves, the leaf, and a port of it where nothing is.
    static const struct dr_path to[] = {
        {.hops = 0}, {.hops = 1, .port = {0, 1}}, {.hops = 2, .port = {0, 1, 7}}};
    struct smoke s = {.left = 3 + GETS};
    struct mad_request q = {.mgmt_class = MAD_CLASS_SM_DR,
                            .method = MAD_METHOD_GET,
                            .attr_id = MAD_ATTR_NODE_INFO,
                            .retries = -1,
                            .done = smoke_done,
                            .arg = &s};
    for (unsigned i = 0; i < 3 + GETS; i++) {
        q.user = i;
        q.path = &to[i < 3 ? i : i % 2];
        q.device = i % 50;
        mad_engine_send(m, &q);
    }
    CHECK(loop_run_until(l, &s.all, 60 * MONO_S));
    CHECK(s.status[0] == 0 && s.node_type[0] == MAD_NODE_CA);
    CHECK(s.status[1] == 0 && s.node_type[1] == MAD_NODE_SWITCH);
    CHECK(s.status[2] == -ENETUNREACH);
    CHECK(s.bad == 0);
    CHECK(t->ops->issm(t, false, &e) == 0);
    mad_engine_free(m);
    t->ops->free(t);
    loop_free(l);
    return 0;
}

static pid_t spawn(char *const argv[], int in, const char *log)
{
    pid_t pid = fork();
    if (pid)
        return pid;
    int out = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(in, 0);
    dup2(out, 1);
    if (strcmp(argv[0], self_exe))
        dup2(out, 2);
    execvp(argv[0], argv);
    _exit(127);
}

// ibsim listens on an abstract socket; a program under libumad2sim would otherwise sleep 2 s and try again.
static bool await_ibsim(const char *name, pid_t pid)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int len = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s:ctl", name);
    bool ok = false;
    for (int i = 0; i < 3000 && !ok && waitpid(pid, NULL, WNOHANG) == 0; i++) {
        int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
        ok = !connect(fd, (struct sockaddr *)&a, (socklen_t)(sizeof(a.sun_family) + 1 + (size_t)len + 1));
        close(fd);
        if (!ok)
            usleep(10000);
    }
    return ok;
}

static void test_ibsim(void **state)
{
    char file[300], log[300], name[32], supp[300], asan[500];
    int in[2], st = -1;

    if (access("/usr/bin/ibsim", X_OK) || access(PRELOAD, R_OK)) {
        print_message("skipped: ibsim or libumad2sim is not installed\n");
        skip();
    }
    write_file("t.net", net);
    write_file("supp", "interceptor_via_lib:libumad2sim.so\n");
    path(file, "t.net");
    path(log, "log");
    path(supp, "supp");
    snprintf(name, sizeof(name), "weft%d", getpid());
    setenv("IBSIM_SOCKNAME", name, 1);
    assert_int_equal(pipe2(in, O_CLOEXEC), 0);
    pid_t sim = spawn((char *[]){"ibsim", "-s", file, NULL}, in[0], log);
    assert_true(await_ibsim(name, sim));
    // libumad2sim leaves files in the working directory.
    assert_int_equal(chdir(dir), 0);
    setenv("SIM_HOST", "a", 1);
    setenv("LD_PRELOAD", PRELOAD, 1);
    snprintf(asan, sizeof(asan), "verify_asan_link_order=0:detect_leaks=0:suppressions=%s", supp);
    setenv("ASAN_OPTIONS", asan, 1);
    pid_t child = spawn((char *[]){(char *)self_exe, "--on-ibsim", NULL}, in[0], log);
    unsetenv("LD_PRELOAD");
    unsetenv("ASAN_OPTIONS");
    assert_int_equal(waitpid(child, &st, 0), child);
    kill(sim, SIGTERM);
    waitpid(sim, NULL, 0);
    close(in[0]);
    close(in[1]);
    assert_int_equal(st, 0);
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "--on-ibsim")) {
        alarm(120);
        return smoke_run();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choose),
        cmocka_unit_test_setup_teardown(test_holder, setup, teardown),
        cmocka_unit_test_setup_teardown(test_ibsim, setup, teardown),
    };
    return cmocka_run_group_tests_name("umad", tests, NULL, NULL);
}
