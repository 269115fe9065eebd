// SPDX-License-Identifier: Apache-2.0
// An HTTP client in the thread that also runs the server: bytes are written to the socket, then the loop runs
// until the server has closed it. And a check of answers against the server's own OpenAPI document.
#ifndef WEFT_TESTS_WHOLE_HTTP_H
#define WEFT_TESTS_WHOLE_HTTP_H

#include <stdbool.h>

#include <jansson.h>

#include "lib/buf.h"
#include "lib/loop.h"

struct http { // one connection
    struct loop *loop;
    int fd;
    struct loop_fd *poll;
    struct buf in; // all that came
    bool closed;
    bool *until; // set when `want` has come
    const char *want;
    bool found;
    // after http_parse()
    int status;
    char *body; // in `in`
    json_t *json;
};

// where: path of a unix socket, or "127.0.0.1:port". Fails the test when it cannot connect.
void http_open(struct http *h, struct loop *l, const char *where);
void http_send(struct http *h, const void *p, size_t n);
void http_wait_closed(struct http *h);
// Runs the loop until the text has come; false after `seconds` of loop time.
bool http_wait_text(struct http *h, const char *text, int seconds);
void http_close(struct http *h);

// One request with an answer: status, body and json (NULL when it is none) are set; freed by http_close().
void http_do(struct http *h, struct loop *l, const char *where, const char *method, const char *path,
             const char *headers, const char *body);
const char *http_head(const struct http *h, const char *name, char *buf, size_t size); // NULL when absent

// Fails the test, naming the place, unless v is what the schema of the document says.
void openapi_check(const json_t *doc, const json_t *schema, const json_t *v, const char *place);

#endif
