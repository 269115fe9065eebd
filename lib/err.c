// SPDX-License-Identifier: Apache-2.0
#include "lib/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *where, const char *fmt, ...)
{
    if (!e)
        return code;

    // Both may point into *e itself (an error that wraps an earlier one), so nothing is written before all is
    // formatted.
    struct err tmp = {.code = code};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(tmp.text, sizeof(tmp.text), fmt, ap);
    va_end(ap);
    if (where)
        snprintf(tmp.where, sizeof(tmp.where), "%s", where);
    *e = tmp;
    return code;
}

const char *err_str(const struct err *e, char *buf, unsigned long size)
{
    const char *text = e->text[0] ? e->text : e->code ? strerror(-e->code) : "no error";
    if (e->where[0])
        snprintf(buf, size, "%s: %s", e->where, text);
    else
        snprintf(buf, size, "%s", text);
    return buf;
}
