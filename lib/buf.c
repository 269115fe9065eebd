// SPDX-License-Identifier: Apache-2.0
#include "lib/buf.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/xalloc.h"

void buf_done(struct buf *b)
{
    free(b->data);
    *b = (struct buf){0};
}

void buf_clear(struct buf *b)
{
    b->len = 0;
    if (b->data)
        b->data[0] = '\0';
}

void buf_reserve(struct buf *b, size_t more)
{
    size_t need;
    // An impossible size fails in the allocator, which aborts.
    if (__builtin_add_overflow(b->len, more, &need) || __builtin_add_overflow(need, 1, &need))
        need = SIZE_MAX;
    if (need <= b->cap)
        return;
    size_t cap = b->cap ? b->cap : 64;
    while (cap < need)
        cap = cap > SIZE_MAX / 2 ? SIZE_MAX : cap * 2;
    b->data = xreallocarray(b->data, cap, 1);
    b->cap = cap;
    b->data[b->len] = '\0';
}

void buf_add(struct buf *b, const void *p, size_t n)
{
    buf_reserve(b, n);
    if (n)
        memcpy(b->data + b->len, p, n);
    b->len += n;
    b->data[b->len] = '\0';
}

void buf_puts(struct buf *b, const char *s)
{
    buf_add(b, s, strlen(s));
}

void buf_putc(struct buf *b, char c)
{
    buf_reserve(b, 1);
    b->data[b->len++] = c;
    b->data[b->len] = '\0';
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
    va_list ap, again;

    va_start(ap, fmt);
    va_copy(again, ap);
    buf_reserve(b, 64);
    size_t room = b->cap - b->len;
    int n = vsnprintf(b->data + b->len, room, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n >= room) {
        buf_reserve(b, (size_t)n);
        n = vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
    }
    va_end(again);
    if (n >= 0)
        b->len += (size_t)n;
    b->data[b->len] = '\0';
}

char *buf_take(struct buf *b)
{
    char *s = b->data ? b->data : xstrdup("");
    *b = (struct buf){0};
    return s;
}

#define PIPE_WAIT_MS 10000

int buf_read_fd(struct buf *b, int fd, size_t max)
{
    size_t got = 0;

    for (;;) {
        // One byte more than allowed is asked for, to tell "full" from "too large".
        size_t want = max - got < 65536 ? max - got + 1 : 65536;
        buf_reserve(b, want);
        ssize_t n = read(fd, b->data + b->len, want);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN) {
            if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, PIPE_WAIT_MS) == 0)
                return -ETIMEDOUT;
            continue;
        }
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        if ((size_t)n > max - got) {
            b->data[b->len] = '\0';
            return -EFBIG;
        }
        got += (size_t)n;
        b->len += (size_t)n;
        b->data[b->len] = '\0';
    }
}

// Not blocking: a named pipe that nobody writes to reads as empty instead of holding up the caller for ever.
int buf_read_file(struct buf *b, const char *path, size_t max)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    int r = buf_read_fd(b, fd, max);
    close(fd);
    return r;
}

static int write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno == EINTR)
            continue;
        if (w < 0)
            return -errno;
        p += w;
        n -= (size_t)w;
    }
    return 0;
}

static int sync_folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *dir = !slash          ? xstrdup(".")
                : slash == path ? xstrdup("/")
                                : xasprintf("%.*s", (int)(slash - path), path);
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = fd < 0 ? -errno : 0;
    free(dir);
    if (fd < 0)
        return r;
    // Some file systems cannot sync a folder; the rename itself has been done.
    if (fsync(fd) < 0 && errno != EINVAL)
        r = -errno;
    close(fd);
    return r;
}

int buf_write_file(const struct buf *b, const char *path, int mode)
{
    char *tmp = xasprintf("%s.XXXXXX", path);
    int r = 0;
    int fd = mkostemp(tmp, O_CLOEXEC);
    if (fd < 0) {
        r = -errno;
        free(tmp);
        return r;
    }
    r = write_all(fd, b->data, b->len);
    if (!r && fchmod(fd, (mode_t)mode) < 0)
        r = -errno;
    if (!r && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && !r)
        r = -errno;
    if (!r && rename(tmp, path) < 0)
        r = -errno;
    if (r)
        unlink(tmp);
    free(tmp);
    return r ? r : sync_folder_of(path);
}
