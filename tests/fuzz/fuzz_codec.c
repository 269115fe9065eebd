// SPDX-License-Identifier: Apache-2.0
//
// Input: a table's number, then its bytes. Whatever they are, they decode, print, and encode to an image that
// decodes to the same.
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "mad/mad.h"

static int visit(void *ctx, const struct mad_field *f, const void *host)
{
    char text[700];
    for (unsigned i = 0; i < (mad_field_is_whole(f) ? 1u : f->count); i++)
        if (mad_field_text(f, host, i, text, sizeof(text)) >= sizeof(text) || strpbrk(text, "\n\r\033"))
            abort();
    return 0;
}

// A whole MAD as a receiver takes it apart.
static void receive(const uint8_t mad[MAD_SIZE])
{
    char text[MAD_TEXT_SIZE];
    unsigned offset, size;
    struct mad_hdr hdr;
    mad_hdr_decode(mad, &hdr);
    mad_what_text(hdr.mgmt_class, hdr.method, hdr.attr_id, text);
    mad_status_text(hdr.mgmt_class, mad_status(&hdr), text);
    const struct mad_attr *attr = mad_attr_find(hdr.mgmt_class, hdr.attr_id);
    mad_data_area(hdr.mgmt_class, &offset, &size);
    if (!attr || attr->wire_bytes > size)
        return;
    uint64_t host[128];
    if (attr->struct_size > sizeof(host))
        abort();
    mad_attr_decode(attr, mad + offset, host);
    mad_attr_walk(attr, host, visit, NULL);
    if (attr == &mad_attr_notice) {
        const struct mad_notice *n = (const struct mad_notice *)host;
        const struct mad_attr *details = mad_trap_find(n->trap_number);
        uint64_t trap[32];
        if (details) {
            mad_attr_decode(details, n->data_details, trap);
            mad_attr_walk(details, trap, visit, NULL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t wire[MAD_SIZE] = {0}, out[MAD_SIZE], again[MAD_SIZE];
    uint64_t host[128] = {0}, host2[128] = {0};
    char text[4096], small[7];
    if (size == 0)
        return 0;
    const struct mad_attr *attr = mad_attr_at(data[0]);
    size_t n = size - 1 < MAD_SIZE ? size - 1 : MAD_SIZE;
    memcpy(wire, data + 1, n);
    if (!attr) {
        receive(wire);
        return 0;
    }
    // an image of exactly the length the codec asks for
    uint8_t *exact = malloc(attr->wire_bytes);
    if (!exact || attr->struct_size > sizeof(host))
        abort();
    memcpy(exact, wire, attr->wire_bytes);
    mad_attr_decode(attr, exact, host);
    mad_attr_encode(attr, host, exact);
    memcpy(out, exact, attr->wire_bytes);
    mad_attr_decode(attr, exact, host2);
    mad_attr_encode(attr, host2, exact);
    memcpy(again, exact, attr->wire_bytes);
    free(exact);
    if (memcmp(host, host2, sizeof(host)) != 0 || memcmp(out, again, attr->wire_bytes) != 0)
        abort();
    if (mad_attr_walk(attr, host, visit, NULL) != 0)
        abort();
    size_t len = mad_attr_print(attr, host, text, sizeof(text));
    if (len >= sizeof(text) || len != strlen(text) || mad_attr_print(attr, host, small, sizeof(small)) != len)
        abort();
    return 0;
}
