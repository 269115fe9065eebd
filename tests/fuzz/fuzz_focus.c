// SPDX-License-Identifier: Apache-2.0
//
// Input: a focus, as it comes from anybody who may read. It is refused with a clear line, or matches a row or
// not; the opposite of it does the opposite.
#include "fuzz.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/err.h"
#include "lib/focus.h"
#include "lib/word.h"

static const char *const names[] = {"name",      "role", "rail",  "held", "rate.rcv_errors",
                                    "peer.name", "age",  "speed", NULL};

static const char *name_of(const void *arg, unsigned i)
{
    (void)arg;
    return names[i];
}

static void value_of(void *arg, unsigned i, struct focus_value *ret)
{
    (void)arg;
    static const struct focus_value row[] = {{.text = "leaf-r1-03"},
                                             {.text = "leaf"},
                                             {.is_number = true, .number = 3},
                                             {.is_number = true, .number = 0.125},
                                             {.is_number = true, .number = (double)NAN},
                                             {.text = NULL},
                                             {.text = "2026-01-31", .is_number = true, .number = 90},
                                             {.is_number = true, .number = 400}};
    *ret = row[i];
}

static void about(const void *arg, unsigned i, struct focus_about *ret)
{
    static const enum focus_holds holds[] = {[2] = FOCUS_NUMBER, FOCUS_SHARE, FOCUS_NUMBER,
                                             FOCUS_ANYTHING,     FOCUS_SPAN,  FOCUS_GBITS};
    (void)arg;
    ret->holds = holds[i];
}

static bool named(void *arg, const char *word)
{
    (void)arg;
    return word_glob(word, "leaf-r1-03");
}

static struct focus *parse(const char *text)
{
    struct err e = {0};
    struct focus_fields f = {.name = name_of, .about = about};
    struct focus *x = focus_new(text, &f, &e);
    if (x == NULL && (e.code == 0 || e.text[0] == 0))
        abort();
    return x;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 600)
        return 0;
    char *text = malloc(size + 1), *other = malloc(size + 10);
    memcpy(text, data, size);
    text[size] = 0;
    struct focus *f = parse(text);
    if (f != NULL) {
        sprintf(other, "not (%s)", text);
        struct focus *g = parse(other);
        // Deeper by two, and longer: it may be refused where the first was not.
        if (g != NULL && focus_match(f, value_of, named, NULL) == focus_match(g, value_of, named, NULL))
            abort();
        focus_free(g);
    }
    focus_free(f);
    free(text);
    free(other);
    return 0;
}
