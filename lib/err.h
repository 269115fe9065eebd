// SPDX-License-Identifier: Apache-2.0
// What a person must read when something failed: filled where the cause is known, logged or shown by the
// service that decides.
#ifndef WEFT_LIB_ERR_H
#define WEFT_LIB_ERR_H

struct err {
    int code;        // negative errno, 0 = none
    char text[400];  // what happened and what to do, one line, no trailing period or newline
    char where[200]; // file:line, device, node, option: what it is about; may be empty
};

// Fills *e (e may be NULL) and returns code, so that `return err_set(e, -EINVAL, ...)` reads as one step.
// where may be NULL.
int err_set(struct err *e, int code, const char *where, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
// "where: text" (or only text) into buf; returns buf.
const char *err_str(const struct err *e, char *buf, unsigned long size);

#endif
