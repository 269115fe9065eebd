// SPDX-License-Identifier: Apache-2.0
#include "telemetry/syslog.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netdb.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/err.h"
#include "lib/mono.h"
#include "lib/thread.h"
#include "lib/xalloc.h"

#define LOOKUP_MS 20000
#define CONNECT_MS 5000
#define ACK_MS 5000
#define LOAD_MS 30000
#define ERROR_MS 20 // an error of a datagram comes back at once on the same machine
#define ENTERPRISE "weft@32473"

// --- messages ---

// PRINTUSASCII (33-126), cut; "-" when nothing is left.
static void add_word(struct buf *b, const char *s, size_t most)
{
    size_t n = 0;
    for (; *s != 0 && n < most; s++)
        if (*s > 32 && *s < 127) {
            buf_putc(b, *s);
            n++;
        }
    if (n == 0)
        buf_putc(b, '-');
}

static void add_param(struct buf *b, const struct syslog_param *p)
{
    if (p->value == NULL || p->value[0] == 0)
        return;
    buf_printf(b, " %s=\"", p->name);
    for (const char *s = p->value; *s != 0; s++) {
        if (*s == '"' || *s == '\\' || *s == ']')
            buf_putc(b, '\\');
        buf_putc(b, (unsigned char)*s < 0x20 ? ' ' : *s);
    }
    buf_putc(b, '"');
}

static bool is_ascii(const char *s)
{
    for (; *s != 0; s++)
        if ((unsigned char)*s >= 0x80)
            return false;
    return true;
}

// Cut between characters.
static void cut(struct buf *b, size_t most)
{
    if (b->len <= most)
        return;
    while (most > 0 && ((unsigned char)b->data[most] & 0xc0) == 0x80)
        most--;
    b->len = most;
    b->data[most] = 0;
}

void syslog_message(struct buf *b, const struct syslog_entry *m, size_t most)
{
    char time[32];
    buf_clear(b);
    buf_printf(b, "<%u>1 %s ", m->facility * 8 + m->severity, wall_format(m->wall_ns, time, sizeof(time)));
    add_word(b, m->host, 255);
    buf_printf(b, " weftd %d ", (int)getpid());
    add_word(b, m->msgid, 32);
    buf_puts(b, " [" ENTERPRISE);
    for (unsigned i = 0; i < m->num_params; i++) {
        size_t before = b->len;
        add_param(b, &m->param[i]);
        if (b->len + 200 > most) { // structured data is cut by whole parameters, or it is none
            b->len = before;
            b->data[before] = 0;
        }
    }
    buf_puts(b, "] ");
    if (!is_ascii(m->text))
        buf_puts(b, "\xef\xbb\xbf");
    for (const char *s = m->text; *s != 0; s++)
        buf_putc(b, (unsigned char)*s < 0x20 ? ' ' : *s);
    cut(b, most);
}

// --- targets ---

enum transport {
    UDP,
    TCP,
    UNIX,
};
// A name is looked up by a thread of its own, which nobody has to wait for: a resolver may take as long as it
// likes, and cannot be interrupted. The last of the two who hold it frees it.
struct lookup {
    _Atomic unsigned refs;
    char *host, *port;
    int socktype;
    int done; // becomes readable
    int rc;   // of getaddrinfo()
    struct addrinfo *list;
};
struct target {
    enum transport how;
    char *text, *host, *port; // host: the path of UNIX
    int fd;                   // -1: not connected
    int wake;                 // becomes readable with abort
    struct lookup *lookup;    // under way
    int64_t load_ns, until;   // of a load; of the one under way
    _Atomic bool aborted;
};

static void disconnect(struct target *t)
{
    if (t->fd >= 0)
        close(t->fd);
    t->fd = -1;
}

// Until the descriptor is so or there is an error: 0; -ETIMEDOUT, -ECANCELED.
static int wait_for_fd(struct target *t, int fd, short events, int ms)
{
    struct pollfd p[2] = {{.fd = fd, .events = events}, {.fd = t->wake, .events = POLLIN}};
    int n = poll(p, 2, ms), rc = n < 0 && errno != EINTR ? -errno : n == 0 ? -ETIMEDOUT : 0;
    return atomic_load(&t->aborted) ? -ECANCELED : rc;
}

static int wait_for(struct target *t, short events, int ms)
{
    return wait_for_fd(t, t->fd, events, ms);
}

static void lookup_unref(struct lookup *l)
{
    if (l == NULL || atomic_fetch_sub(&l->refs, 1) > 1)
        return;
    if (l->list != NULL)
        freeaddrinfo(l->list);
    if (l->done >= 0)
        close(l->done);
    free(l->host);
    free(l->port);
    free(l);
}

static void *lookup_main(void *arg)
{
    struct lookup *l = arg;
    struct addrinfo hints = {.ai_socktype = l->socktype};
    l->rc = getaddrinfo(l->host, l->port, &hints, &l->list);
    if (l->rc != 0)
        l->list = NULL;
    if (eventfd_write(l->done, 1) != 0) {
        // Cannot be: it is written once.
    }
    lookup_unref(l);
    return NULL;
}

static struct lookup *lookup_new(const struct target *t)
{
    struct lookup *l = xcalloc(1, sizeof(*l));
    pthread_t thread;
    l->refs = 2;
    l->host = xstrdup(t->host);
    l->port = xstrdup(t->port);
    l->socktype = t->how == TCP ? SOCK_STREAM : SOCK_DGRAM;
    l->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->done >= 0 && thread_start(&thread, "weft-lookup", lookup_main, l) == 0) {
        pthread_detach(thread);
        return l;
    }
    l->refs = 1;
    lookup_unref(l);
    return NULL;
}

static int socket_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0 ? -errno : -error;
}

static int connect_to(struct target *t, int family, int type, const struct sockaddr *sa, socklen_t len)
{
    t->fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->fd < 0)
        return -errno;
    int rc = connect(t->fd, sa, len) == 0 ? 0 : -errno;
    if (rc == -EINPROGRESS && (rc = wait_for(t, POLLOUT, CONNECT_MS)) == 0)
        rc = socket_error(t->fd);
    if (rc != 0)
        disconnect(t);
    return rc;
}

static int connect_unix(struct target *t)
{
    struct sockaddr_un sa = {.sun_family = AF_UNIX};
    snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", t->host);
    return connect_to(t, AF_UNIX, SOCK_DGRAM, (const struct sockaddr *)&sa, sizeof(sa));
}

// One that is slow is asked for again only when it has ended.
static int look_up(struct target *t, char *why, size_t size)
{
    if (t->lookup == NULL && (t->lookup = lookup_new(t)) == NULL) {
        snprintf(why, size, "%.80s: no thread can be had for looking it up", t->text);
        return -EAGAIN;
    }
    int rc = wait_for_fd(t, t->lookup->done, POLLIN, LOOKUP_MS);
    if (rc == -ETIMEDOUT)
        snprintf(why, size, "%.80s: the name is still being looked up", t->text);
    else if (rc == 0 && t->lookup->rc != 0)
        snprintf(why, size, "%.80s: %s", t->text, gai_strerror(t->lookup->rc));
    return rc != 0 ? rc : t->lookup->rc != 0 ? -EHOSTUNREACH : 0;
}

static int connect_inet(struct target *t, char *why, size_t size)
{
    int rc = look_up(t, why, size);
    if (rc == -ETIMEDOUT || rc == -ECANCELED || t->lookup == NULL)
        return rc;
    const struct addrinfo *a = rc == 0 ? t->lookup->list : NULL;
    if (rc == 0)
        rc = -EHOSTUNREACH;
    for (; a != NULL && rc != 0 && rc != -ECANCELED; a = a->ai_next)
        rc = connect_to(t, a->ai_family, a->ai_socktype, a->ai_addr, a->ai_addrlen);
    lookup_unref(t->lookup);
    t->lookup = NULL;
    return rc;
}

static int send_all(struct target *t, const char *p, size_t n)
{
    while (n > 0) {
        if (mono_now().ns > t->until)
            return -ETIMEDOUT;
        ssize_t k = send(t->fd, p, n, MSG_NOSIGNAL);
        int rc = k >= 0 ? 0 : errno == EAGAIN || errno == ENOBUFS ? wait_for(t, POLLOUT, ACK_MS) : -errno;
        if (rc != 0)
            return rc;
        if (k > 0) {
            p += k;
            n -= (size_t)k;
        }
    }
    return 0;
}

// The far end of a connection that it has closed would drop what we write.
static int still_open(const struct target *t)
{
    char c;
    ssize_t n = recv(t->fd, &c, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 ? -EPIPE : n < 0 && errno != EAGAIN ? -errno : 0;
}

static int wait_acked(struct target *t)
{
    int64_t until = mono_now().ns + ACK_MS * MONO_MS;
    int left = 0;
    while (ioctl(t->fd, SIOCOUTQ, &left) == 0 && left > 0) {
        int rc = still_open(t);
        if (rc != 0)
            return rc;
        if (mono_now().ns > until)
            return -ETIMEDOUT;
        struct pollfd p = {.fd = t->wake, .events = POLLIN};
        poll(&p, 1, 2);
        if (atomic_load(&t->aborted))
            return -ECANCELED;
    }
    return still_open(t);
}

static int deliver_tcp(struct target *t, const struct courier_load *l)
{
    struct buf all = {0};
    int rc = still_open(t);
    for (unsigned i = 0; i < l->num; i++) {
        buf_printf(&all, "%zu ", l->body[i].len);
        buf_add(&all, l->body[i].data, l->body[i].len);
    }
    if (rc == 0)
        rc = send_all(t, all.data, all.len);
    if (rc == 0)
        rc = wait_acked(t);
    buf_done(&all);
    return rc;
}

// A datagram that is too large for its socket is cut; it would never get through.
static int send_datagram(struct target *t, const struct buf *b)
{
    int rc = send_all(t, b->data, b->len);
    return rc == -EMSGSIZE ? send_all(t, b->data, b->len < 1024 ? b->len : 1024) : rc;
}

static int deliver_datagrams(struct target *t, const struct courier_load *l)
{
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < l->num; i++)
        rc = send_datagram(t, &l->body[i]);
    if (rc == 0 && t->how == UDP) {
        rc = wait_for(t, 0, ERROR_MS);
        rc = rc == -ETIMEDOUT ? 0 : rc == 0 ? socket_error(t->fd) : rc;
    }
    return rc;
}

static void deliver(void *arg, const struct courier_load *l, struct courier_result *ret)
{
    struct target *t = arg;
    bool old = t->fd >= 0;
    int rc = old ? 0 : t->how == UNIX ? connect_unix(t) : connect_inet(t, ret->text, sizeof(ret->text));

    t->until = mono_now().ns + t->load_ns;
    if (rc == 0)
        rc = t->how == TCP ? deliver_tcp(t, l) : deliver_datagrams(t, l);
    if (rc == 0) {
        ret->delivered = l->num;
        return;
    }
    disconnect(t);
    if (old && rc != -ECANCELED && rc != -ETIMEDOUT) { // it may have been started anew meanwhile
        deliver(arg, l, ret);
        return;
    }
    if (ret->text[0] == 0)
        snprintf(ret->text, sizeof(ret->text), "%.120s: %s", t->text, strerror(-rc));
}

static void target_abort(void *arg)
{
    struct target *t = arg;
    atomic_store(&t->aborted, true);
    if (eventfd_write(t->wake, 1) != 0)
        return;
}

static void target_free(void *arg)
{
    struct target *t = arg;
    disconnect(t);
    lookup_unref(t->lookup);
    if (t->wake >= 0)
        close(t->wake);
    free(t->text);
    free(t->host);
    free(t->port);
    free(t);
}

// "host:port", "[::1]:port", "host".
static bool split_host(struct target *t, const char *s, const char *port)
{
    const char *end = s + strlen(s), *colon = strrchr(s, ':'),
               *close_at = s[0] == '[' ? strchr(s, ']') : NULL;
    if (s[0] == '[') {
        if (close_at == NULL || (close_at[1] != 0 && close_at[1] != ':'))
            return false;
        s++;
        end = close_at;
        colon = close_at[1] == ':' ? close_at + 1 : NULL;
    } else if (colon != NULL) {
        end = colon;
    }
    if (colon != NULL)
        port = colon + 1;
    size_t digits = strspn(port, "0123456789");
    t->host = strndup(s, (size_t)(end - s));
    t->port = xstrdup(port);
    return end > s && digits > 0 && digits <= 5 && port[digits] == 0 && atoi(port) <= 65535 &&
           strpbrk(t->host, "/ ") == NULL;
}

static bool parse(struct target *t, const char *s)
{
    t->text = xstrdup(s);
    if (strncmp(s, "unix:", 5) == 0) {
        t->how = UNIX;
        t->host = xstrdup(strncmp(s + 5, "//", 2) == 0 ? s + 7 : s + 5);
        return t->host[0] == '/' && strlen(t->host) < sizeof(((struct sockaddr_un *)0)->sun_path);
    }
    t->how = strncmp(s, "tcp://", 6) == 0 ? TCP : UDP;
    return (t->how == TCP || strncmp(s, "udp://", 6) == 0) &&
           split_host(t, s + 6, t->how == TCP ? "601" : "514");
}

// NULL and *e.
static struct target *target_new(const char *text, struct err *e)
{
    struct target *t = xcalloc(1, sizeof(*t));
    t->fd = t->wake = -1;
    if (parse(t, text))
        return t;
    target_free(t);
    err_set(e, -EINVAL, "notify.syslog",
            "\"%.100s\" is none of udp://host:514, tcp://host:601, unix:/dev/log", text);
    return NULL;
}

int syslog_check(const char *text, struct err *e)
{
    struct target *t = target_new(text, e);
    if (t == NULL)
        return e->code;
    target_free(t);
    return 0;
}

int syslog_target(const char *text, int64_t load_ns, struct courier_target *ret, struct err *e)
{
    struct target *t = target_new(text, e);
    if (t == NULL)
        return e->code;
    t->load_ns = load_ns ? load_ns : LOAD_MS * MONO_MS;
    t->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (t->wake < 0) {
        int rc = -errno;
        target_free(t);
        return err_set(e, rc, "notify.syslog", "no more descriptors can be had (%s)", strerror(-rc));
    }
    *ret = (struct courier_target){.arg = t, .deliver = deliver, .abort = target_abort, .free = target_free};
    return 0;
}
