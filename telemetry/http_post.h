// SPDX-License-Identifier: Apache-2.0
// POST to somebody else's HTTP server, by libcurl, from a thread that may wait: what remote write and
// notifications have in common. One poster belongs to one thread and keeps its connection; abort is for
// others. http and https only, no redirects.
#ifndef WEFT_TELEMETRY_HTTP_POST_H
#define WEFT_TELEMETRY_HTTP_POST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct http_post;

struct http_post_opts { // strings are copied
    const char *url;
    const char *const *header;     // "Name: value", NULL-terminated; may be NULL
    const char *bearer_token_file; // read at each request, so that it may be replaced; "" = none
    const char *ca_file;           // PEM; "" = the system's
    int64_t timeout_ns;            // of a request; 0 = 30 s
};
// Whether it is a URL of http or https; -EINVAL and *e.
int http_url_check(const char *url, struct err *e);
// NULL and *e: no good URL.
struct http_post *http_post_new(const struct http_post_opts *o, struct err *e);
void http_post_free(struct http_post *p);

enum http_outcome {
    HTTP_TAKEN,   // 2xx
    HTTP_REFUSED, // 4xx but 408 and 429: it would be refused again
    HTTP_LATER,   // anything else: another time, perhaps
    HTTP_ABORTED,
};
struct http_answer {
    enum http_outcome outcome;
    int status;             // 0: there was no answer
    int64_t retry_after_ns; // asked for; 0 = not
    bool unsure;            // no answer, yet the body may have arrived
    char text[200];         // why, for people: printable UTF-8
};
// Blocks until it is answered, fails or is aborted.
void http_post(struct http_post *p, const void *body, size_t n, struct http_answer *ret);
void http_post_abort(struct http_post *p); // any thread; the running request and all later ones

// Time to wait before try number n (from 1): doubles from first to most, with a third of it at random.
int64_t http_backoff(unsigned n, int64_t first_ns, int64_t most_ns, uint64_t random);

#endif
