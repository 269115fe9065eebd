// SPDX-License-Identifier: Apache-2.0
// The path and query of a request, taken apart from the raw request line: bounded, percent-decoded once, no
// NUL, no way to smuggle a slash or an ampersand past the split. Pure.
#ifndef WEFT_API_URI_H
#define WEFT_API_URI_H

#include <stdbool.h>
#include <stddef.h>

struct err;

#define URI_MAX 4096 // bytes of path and query
#define URI_SEGMENTS 12
#define URI_PARAMS 32

struct uri {
    unsigned num_segments, num_params;
    const char *segment[URI_SEGMENTS]; // "/api/v1/status" is three; a slash at the end counts for nothing
    struct uri_param {
        const char *name, *value; // value "" without "="
    } param[URI_PARAMS];
    char text[2 * URI_MAX + 2];
};

// 0; -EINVAL (bad escape, not absolute, a control character), -ENAMETOOLONG, -E2BIG (too many parts), with
// *e.
int uri_parse(struct uri *u, const char *raw, struct err *e);
const char *uri_param(const struct uri *u, const char *name); // the first of that name; NULL when absent
// Whether a Host header names this machine's own address: localhost, 127/8, [::1], or one of the two given
// (may be NULL), with or without a port. A page of a foreign name that resolves to loopback is kept out by
// it.
bool uri_host_ok(const char *host, const char *bound, const char *local);

#endif
