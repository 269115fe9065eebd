// SPDX-License-Identifier: Apache-2.0
// For the tests of readers and writers: text in, fabric out; findings by code and place.
#ifndef WEFT_TESTS_FABRIC_READER_HELP_H
#define WEFT_TESTS_FABRIC_READER_HELP_H

#include "test_model_help.h"

#include <stdlib.h>

#include "fabric/reader.h"
#include "lib/err.h"

#define TEXT(s) (s), sizeof(s) - 1

static inline const struct fabric *parse_len(const char *text, size_t len, struct findings *fi)
{
    struct err e = {0};
    // A copy of exactly this size, so that a read beyond the end is seen.
    char *copy = malloc(len ? len : 1);
    memcpy(copy, text, len);
    const struct fabric *f = reader_parse(copy, len, "t", fi, &e);
    free(copy);
    assert_true(f ? !e.code : e.code < 0 && e.text[0]);
    return f;
}

static inline const struct fabric *parse_ok(const char *text, struct findings *fi)
{
    *fi = (struct findings){0};
    const struct fabric *f = parse_len(text, strlen(text), fi);
    assert_non_null(f);
    return f;
}

static inline const struct finding *finding_at(const struct findings *fi, const char *code, const char *where)
{
    for (size_t i = 0; i < fi->n; i++)
        if (strcmp(fi->item[i].code, code) == 0 && strcmp(fi->item[i].where, where) == 0)
            return &fi->item[i];
    return NULL;
}

static inline void findings_dump(const struct findings *fi)
{
    for (size_t i = 0; i < fi->n; i++)
        print_message("# [%d] %s %s: %s\n", (int)fi->item[i].severity, fi->item[i].code, fi->item[i].where,
                      fi->item[i].text);
}

#define assert_finding(fi, code, where)                                                                      \
    do {                                                                                                     \
        if (!finding_at(fi, code, where)) {                                                                  \
            findings_dump(fi);                                                                               \
            fail_msg("no finding %s at %s", code, where);                                                    \
        }                                                                                                    \
    } while (0)

#define assert_findings(fi, number)                                                                          \
    do {                                                                                                     \
        if ((fi)->total != (number))                                                                         \
            findings_dump(fi);                                                                               \
        assert_int_equal((fi)->total, number);                                                               \
    } while (0)

static inline const struct port *port_of(const struct fabric *f, uint64_t guid, unsigned num)
{
    const struct node *n = fabric_by_guid(f, guid);
    assert_non_null(n);
    port_id p = fabric_port_at(f, n, num);
    assert_true(port_valid(p));
    return fabric_port(f, p);
}

static inline void assert_linked(const struct fabric *f, uint64_t a, unsigned pa, uint64_t z, unsigned pz)
{
    const struct port *p = port_of(f, a, pa), *q = port_of(f, z, pz);
    assert_true(port_valid(p->peer));
    assert_ptr_equal(fabric_port(f, p->peer), q);
}

// The folder of real input files that the sources may lie beside; NULL (and a word about it) when it is not.
static inline const char *shared_dir(char *buf, size_t size)
{
    const char *env = getenv("WEFT_SHARED");
    snprintf(buf, size, "%s/fabrics/INDEX.md", env && *env ? env : SOURCE_ROOT "/../shared");
    FILE *t = fopen(buf, "r");
    if (!t) {
        print_message("# skipped: no %s (WEFT_SHARED names the folder)\n", buf);
        return NULL;
    }
    fclose(t);
    snprintf(buf, size, "%s/fabrics", env && *env ? env : SOURCE_ROOT "/../shared");
    return buf;
}

#endif
