// SPDX-License-Identifier: Apache-2.0
// A growing byte string. Always NUL-terminated behind len, so data can be used as a C string.
#ifndef WEFT_LIB_BUF_H
#define WEFT_LIB_BUF_H

#include <stddef.h>

struct buf {
    char *data; // NULL until something is added
    size_t len, cap;
};

void buf_done(struct buf *b);
void buf_clear(struct buf *b);
void buf_reserve(struct buf *b, size_t more);
void buf_add(struct buf *b, const void *p, size_t n);
void buf_puts(struct buf *b, const char *s);
void buf_putc(struct buf *b, char c);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *buf_take(struct buf *b); // the string, to be freed by the caller; b is empty afterwards
// Reads a whole file, at most max bytes; 0 or negative errno (-EFBIG when larger, -ETIMEDOUT when a pipe that
// does not block brings nothing for 10 s). fd is not closed.
int buf_read_fd(struct buf *b, int fd, size_t max);
int buf_read_file(struct buf *b, const char *path, size_t max);
// Writes path atomically: temporary file beside it, fsync, rename, fsync of the folder.
int buf_write_file(const struct buf *b, const char *path, int mode);

#endif
