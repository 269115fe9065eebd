// SPDX-License-Identifier: Apache-2.0
//
// Input: a topology file of any dialect. Whatever it holds, it is read or refused with a clean line; links
// are symmetric; what is written from it is read back as the same nodes and links.
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/reader.h"
#include "fabric/writer.h"
#include "lib/err.h"

static void check_links(const struct fabric *f)
{
    uint32_t ends = 0;
    for (uint32_t i = 0; i < f->num_ports; i++) {
        const struct port *p = &f->port[i];
        if (!port_valid(p->peer))
            continue;
        if (p->peer.i >= f->num_ports || fabric_port(f, p->peer)->peer.i != i || p->num == 0)
            abort();
        ends++;
    }
    if (ends != 2 * f->num_links)
        abort();
}

static void check_findings(const struct findings *fi)
{
    if (fi->n > FINDINGS_MAX)
        abort();
    for (size_t i = 0; i < fi->n; i++)
        if (!fi->item[i].code[0] || !fi->item[i].text[0])
            abort();
}

static void check_back(const struct fabric *f, int (*write)(const struct fabric *, FILE *))
{
    char *text = NULL;
    size_t len;
    FILE *o = open_memstream(&text, &len);
    if (write(f, o) != 0)
        abort();
    fclose(o);
    const struct fabric *g = reader_parse(text, len, "back", NULL, NULL);
    if (f->num_nodes && (!g || g->num_nodes != f->num_nodes || g->num_links != f->num_links))
        abort();
    fabric_unref(g);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct findings fi = {0};
    struct err e = {0};
    const struct fabric *f = reader_parse((const char *)data, size, "fuzz", &fi, &e);

    check_findings(&fi);
    if (!f) {
        if (!e.code || !e.text[0])
            abort();
    } else {
        check_links(f);
        check_back(f, write_ibnetdiscover);
        fabric_unref(f);
    }
    findings_done(&fi);
    return 0;
}
