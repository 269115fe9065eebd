// SPDX-License-Identifier: Apache-2.0
// Tables read from a dump of any bytes (engine `file`): refused with words, or tables that the proof can look
// at without harm.
#include <stdlib.h>
#include <string.h>

#include "fabric/builder.h"
#include "fabric/topogen.h"
#include "lib/err.h"
#include "routing/route.h"
#include "tests/fuzz/fuzz.h"

// rail-64 with LIDs: what a dump may name.
static const struct fabric *made(void)
{
    static const struct fabric *f;
    if (f != NULL)
        return f;
    const struct fabric *g = topogen_make("rail-64", NULL);
    struct builder *b = builder_from(g);
    uint16_t lid = 0;
    for (uint32_t i = 0; i < g->num_ports; i++) {
        struct port_attrs a = g->port[i].a;
        if (!port_is_end(g, &g->port[i]))
            continue;
        a.lid = ++lid;
        builder_port(b, g->port[i].node, g->port[i].num, &a);
    }
    f = builder_seal(b, 1, NULL);
    fabric_unref(g);
    return f;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    struct route_opts o = {.engine = ROUTE_FILE, .file_text = text, .file_len = size};
    struct route_result r = {0};
    struct route_proof proof;
    struct err e = {0};

    if (route_compute(made(), &o, &r, &e) != 0) {
        if (!e.code || !e.text[0])
            abort();
    } else {
        route_verify(made(), r.tables, &(struct verify_opts){.all_switches = true}, &proof);
        tables_unref(r.tables);
    }
    free(text);
    return 0;
}
