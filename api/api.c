// SPDX-License-Identifier: Apache-2.0
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <netinet/in.h>
#include <unistd.h>

#include "api/api_priv.h"
#include "lib/log.h"
#include "lib/xalloc.h"

#define BACKLOG 512

// --- the unix socket ---

// Whether somebody accepts connections on it: 0 nobody, -EADDRINUSE, or why that cannot be told.
static int socket_taken(const struct sockaddr_un *sa)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int rc = connect(fd, (const struct sockaddr *)sa, sizeof(*sa)) == 0 ? -EADDRINUSE : -errno;
    close(fd);
    if (rc == -EAGAIN) // its queue is full
        rc = -EADDRINUSE;
    return rc == -ECONNREFUSED || rc == -ENOENT ? 0 : rc;
}

static int socket_clear(const struct sockaddr_un *sa, struct err *e)
{
    struct stat st;
    if (lstat(sa->sun_path, &st) != 0)
        return 0;
    if (!S_ISSOCK(st.st_mode))
        return err_set(e, -EEXIST, sa->sun_path,
                       "is there already and is no socket; move it away, or give another --socket");
    int rc = socket_taken(sa);
    if (rc == -EADDRINUSE)
        return err_set(e, rc, sa->sun_path,
                       "another weftd listens on this socket; stop it, or give another --socket");
    if (rc != 0)
        return err_set(e, rc, sa->sun_path, "the old socket cannot be tried (%s); remove it", strerror(-rc));
    if (unlink(sa->sun_path) != 0 && errno != ENOENT)
        return err_set(e, -errno, sa->sun_path, "the old socket cannot be removed (%s)", strerror(errno));
    return 0;
}

static int socket_bind_failed(const char *path, int code, struct err *e)
{
    if (code == ENOENT)
        return err_set(e, -code, path,
                       "the folder of the socket does not exist; make it, or give another --socket");
    if (code == EACCES || code == EROFS || code == EPERM)
        return err_set(e, -code, path,
                       "the socket cannot be made here (%s); run weftd as root, or give another --socket",
                       strerror(code));
    return err_set(e, -code, path, "the socket cannot be made (%s)", strerror(code));
}

static int listen_unix(struct api *a, const char *path, struct err *e)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    struct stat st;
    int rc;

    if (strlen(path) >= sizeof(sa.sun_path))
        return err_set(e, -ENAMETOOLONG, path,
                       "a socket's path has at most %zu bytes; give a shorter --socket",
                       sizeof(sa.sun_path) - 1);
    strcpy(sa.sun_path, path);
    if ((rc = socket_clear(&sa, e)) != 0)
        return rc;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return err_set(e, -errno, path, "no socket can be made (%s)", strerror(errno));
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0) {
        rc = socket_bind_failed(path, errno, e);
        close(fd);
        return rc;
    }
    strcpy(a->socket, path);
    if (lstat(path, &st) == 0) {
        a->socket_dev = st.st_dev;
        a->socket_ino = st.st_ino;
    }
    // Everybody may ask; what they may do is decided by who they are (auth.c).
    if (chmod(path, 0666) != 0 || listen(fd, BACKLOG) != 0) {
        rc = err_set(e, -errno, path, "the socket cannot be opened for clients (%s)", strerror(errno));
        close(fd);
        return rc;
    }
    return http_start(&a->local, a, fd, true, e);
}

static void remove_socket(struct api *a)
{
    struct stat st;
    if (a->socket[0] && lstat(a->socket, &st) == 0 && st.st_dev == a->socket_dev &&
        st.st_ino == a->socket_ino)
        unlink(a->socket);
}

// --- TCP ---

static int bound_port(int fd)
{
    struct sockaddr_storage sa;
    socklen_t len = sizeof(sa);
    if (getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
        return -1;
    return ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
                                          : ((struct sockaddr_in *)&sa)->sin_port);
}

static int tcp_failed(const char *where, int code, struct err *e)
{
    if (code == EADDRINUSE)
        return err_set(
            e, -code, where,
            "another program listens there (`ss -ltnp` tells which); stop it, or give another --http");
    if (code == EADDRNOTAVAIL)
        return err_set(e, -code, where, "no interface of this machine has the address; give another --http");
    return err_set(e, -code, where, "cannot listen (%s); give another --http", strerror(code));
}

static int listen_tcp(struct api *a, const char *address, int port, struct err *e)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *ai;
    char where[120], service[12];
    int one = 1;

    snprintf(service, sizeof(service), "%d", port > 0 ? port : 0);
    snprintf(where, sizeof(where), "%.80s:%s", address, service);
    if (strlen(address) >= sizeof(a->address) || getaddrinfo(address, service, &hints, &ai) != 0)
        return err_set(e, -EINVAL, where, "is no numeric address; give one such as 127.0.0.1 or ::1");
    int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = fd < 0 ? errno : 0;
    if (rc == 0)
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (rc == 0 && (bind(fd, ai->ai_addr, ai->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0))
        rc = errno;
    freeaddrinfo(ai);
    if (rc != 0) {
        if (fd >= 0)
            close(fd);
        return tcp_failed(where, rc, e);
    }
    strcpy(a->address, address);
    a->port = bound_port(fd);
    return http_start(&a->tcp, a, fd, false, e);
}

// --- life cycle ---

struct api *api_new(const struct api_context *c, const struct api_opts *o, struct err *e)
{
    struct api *a = xcalloc(1, sizeof(*a));

    a->c = *c;
    a->started = loop_now(c->loop);
    a->port = -1;
    a->tcp.fd = a->local.fd = -1;
    a->view = xcalloc(c->num_fabrics + 1, sizeof(*a->view));
    for (unsigned i = 0; i < c->num_fabrics; i++)
        a->view[i].src = c->fabric[i];
    streams_init(a);
    jobs_init(a);
    ratings_init(a);
    if ((o->socket != NULL && o->socket[0] && listen_unix(a, o->socket, e) != 0) ||
        (o->port != 0 && listen_tcp(a, o->address ? o->address : "127.0.0.1", o->port, e) != 0)) {
        api_free(a);
        return NULL;
    }
    a->openapi = openapi_text(); // takes longer than a turn of the loop may
    return a;
}

void api_free(struct api *a)
{
    if (a == NULL)
        return;
    streams_close(a);
    laters_close(a);
    http_stop(&a->tcp);
    http_stop(&a->local);
    assert(a->laters == NULL); // they went with their requests
    streams_done(a);
    jobs_done(a);
    ratings_done(a);
    remove_socket(a);
    for (unsigned i = 0; i < a->c.num_fabrics; i++)
        view_done(&a->view[i]);
    free(a->view);
    free(a->openapi);
    free(a);
}

int api_port(const struct api *a)
{
    return a->port;
}

void api_changed(struct api *a, const char *fabric)
{
    for (unsigned i = 0; i < a->c.num_fabrics; i++)
        if (strcmp(a->c.fabric[i]->name, fabric) == 0)
            view_changed(&a->view[i]);
    ratings_look(a);
}
