// SPDX-License-Identifier: Apache-2.0
#include "cli/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"

#define POLL_SECONDS 0.02
#define KILL_SECONDS 5.0

static bool runs(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool find_beside(char *path, size_t size)
{
    static const char *const place[] = {"weftd", "../daemon/weftd", "../sbin/weftd"};
    char self[3000];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (n <= 0)
        return false;
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof(place) / sizeof(place[0]); i++)
        if ((size_t)snprintf(path, size, "%s/%s", self, place[i]) < size && runs(path))
            return true;
    return false;
}

static bool find_in_path(char *path, size_t size)
{
    const char *p = getenv("PATH");
    while (p != NULL && *p) {
        size_t n = strcspn(p, ":");
        if (n > 0 && (size_t)snprintf(path, size, "%.*s/weftd", (int)n, p) < size && runs(path))
            return true;
        p += n + (p[n] == ':');
    }
    return false;
}

int child_find(char *path, unsigned long size, struct err *e)
{
    const char *env = getenv("WEFTD");
    if (env != NULL && env[0] != 0) {
        snprintf(path, size, "%s", env);
        return runs(path) ? 0 : err_set(e, -ENOENT, env, "no program; $WEFTD must name weftd");
    }
    if (find_beside(path, size) || find_in_path(path, size))
        return 0;
    return err_set(
        e, -ENOENT, NULL,
        "weftd is not found beside weft nor in $PATH; it is needed to compute: install it, or set $WEFTD");
}

static int make_dir(struct child *c, struct err *e)
{
    const char *tmp = getenv("TMPDIR");
    if (tmp == NULL || tmp[0] == 0 || strlen(tmp) > 60) // a socket's path is short
        tmp = "/tmp";
    snprintf(c->dir, sizeof(c->dir), "%s/weft-XXXXXX", tmp);
    if (mkdtemp(c->dir) == NULL)
        return err_set(e, -errno, tmp, "no temporary folder can be made there (%s); set $TMPDIR",
                       strerror(errno));
    c->made_dir = true;
    snprintf(c->socket, sizeof(c->socket), "%s/s", c->dir);
    snprintf(c->log, sizeof(c->log), "%s/log", c->dir);
    return 0;
}

// Between fork and exec: only what is safe there.
static void become(const struct child *c, const char *program, const char *fabric, pid_t parent)
{
    const char *const argv[] = {program,    "--config", "/dev/null", "--offline",   fabric,
                                "--socket", c->socket,  "--http",    "127.0.0.1:0", NULL};
    int null = open("/dev/null", O_RDWR), log = open(c->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(1);
    signal(SIGPIPE, SIG_DFL);
    dup2(null, STDIN_FILENO);
    dup2(log >= 0 ? log : null, STDOUT_FILENO);
    dup2(log >= 0 ? log : null, STDERR_FILENO);
    execv(program, (char *const *)argv);
    _exit(127);
}

static bool listens(const struct child *c)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memcpy(a.sun_path, c->socket, strlen(c->socket) + 1);
    bool ok = fd >= 0 && connect(fd, (const struct sockaddr *)&a, sizeof(a)) == 0;
    if (fd >= 0)
        close(fd);
    return ok;
}

// What weftd said last, without its name.
static int said(const struct child *c, const char *program, const char *fabric, struct err *e)
{
    struct buf b = {0};
    char *line = NULL;

    if (buf_read_file(&b, c->log, 1 << 20) == 0 && b.len > 0) {
        while (b.len > 0 && b.data[b.len - 1] == '\n')
            b.data[--b.len] = 0;
        line = strrchr(b.data, '\n');
        line = line ? line + 1 : b.data;
        line += strncmp(line, "weftd: ", 7) == 0 ? 7 : 0;
    }
    if (line != NULL && line[0] != 0)
        err_set(e, -EINVAL, NULL, "%s", line);
    else
        err_set(e, -EINVAL, fabric, "%s ended without a word", program);
    buf_done(&b);
    return -EINVAL;
}

static int wait_listening(struct child *c, const char *program, const char *fabric, double seconds,
                          struct err *e)
{
    int64_t deadline = mono_now().ns + (int64_t)(seconds * 1e9);
    int status;

    while (!listens(c)) {
        if (waitpid(c->pid, &status, WNOHANG) == c->pid) {
            c->pid = 0;
            return said(c, program, fabric, e);
        }
        if (mono_now().ns > deadline)
            return err_set(e, -ETIMEDOUT, fabric, "not loaded after %.0f s; give a longer --timeout",
                           seconds);
        if (!cli_sleep(POLL_SECONDS))
            return err_set(e, -EINTR, NULL, "interrupted");
    }
    return 0;
}

int child_start(struct child *c, const char *fabric, double seconds, struct err *e)
{
    char program[4096];

    *c = (struct child){0};
    int rc = child_find(program, sizeof(program), e);
    if (rc == 0)
        rc = make_dir(c, e);
    if (rc != 0)
        return rc;
    pid_t parent = getpid();
    c->pid = fork();
    if (c->pid == 0)
        become(c, program, fabric, parent);
    if (c->pid < 0) {
        c->pid = 0;
        return err_set(e, -errno, program, "cannot be started: %s", strerror(errno));
    }
    return wait_listening(c, program, fabric, seconds, e);
}

// It is asked first, so that it removes what it made.
static void end(pid_t pid)
{
    int64_t deadline = mono_now().ns + (int64_t)(KILL_SECONDS * 1e9);
    const struct timespec nap = {.tv_nsec = 5000000};
    int status;

    kill(pid, SIGTERM);
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (mono_now().ns > deadline) {
            kill(pid, SIGKILL);
            waitpid(pid, &status, 0);
            return;
        }
        nanosleep(&nap, NULL);
    }
}

void child_stop(struct child *c)
{
    if (c->pid > 0)
        end(c->pid);
    if (c->made_dir) {
        unlink(c->socket);
        unlink(c->log);
        rmdir(c->dir);
    }
    *c = (struct child){0};
}
