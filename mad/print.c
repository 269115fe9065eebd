// SPDX-License-Identifier: Apache-2.0
//
// Attributes as text: the second half of mad/codec.h.
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "mad/mad.h"

// snprintf that goes on where the last one ended; len may pass size.
struct text {
    char *buf;
    size_t size, len;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *fmt, ...)
{
    va_list ap;
    size_t room = t->len < t->size ? t->size - t->len : 0;
    va_start(ap, fmt);
    int n = vsnprintf(room ? t->buf + t->len : NULL, room, fmt, ap);
    va_end(ap);
    if (n > 0)
        t->len += (size_t)n;
}

static void put_named(struct text *t, const char *name, uint64_t v)
{
    if (name)
        put(t, "%s", name);
    else
        put(t, "%" PRIu64, v);
}

// The bits of a mask by name, from the lowest; the rest as one number.
static void put_mask(struct text *t, uint64_t v, const char *const *names, unsigned n)
{
    const char *sep = "";
    if (v == 0)
        put(t, "0");
    for (unsigned i = 0; i < n; i++) {
        if (!(v >> i & 1))
            continue;
        put(t, "%s%s", sep, names[i]);
        sep = " or ";
        v &= ~((uint64_t)1 << i);
    }
    if (v)
        put(t, "%s0x%" PRIx64, sep, v);
}

static const char *const width_names[] = {"1x", "4x", "8x", "12x", "2x"};
static const char *const speed_names[] = {"SDR", "DDR", "QDR"};
static const char *const speed_ext_names[] = {"FDR", "EDR", "HDR", "NDR"};
static const char *const speed_ext2_names[] = {"XDR"};

static void put_number(struct text *t, const struct mad_field *f, uint64_t v)
{
    switch ((enum mad_format)f->format) {
    case MAD_FMT_UINT:
    case MAD_FMT_TEXT:
        put(t, "%" PRIu64, v);
        break;
    case MAD_FMT_HEX:
    case MAD_FMT_GID:
    case MAD_FMT_BYTES:
        put(t, "0x%0*" PRIx64, (f->width + 3) / 4, v);
        break;
    case MAD_FMT_GUID:
        put(t, "0x%016" PRIx64, v);
        break;
    case MAD_FMT_BOOL:
        put(t, "%s", v ? "true" : "false");
        break;
    case MAD_FMT_NODE_TYPE:
        put_named(t, mad_node_type_name((uint8_t)v), v);
        break;
    case MAD_FMT_PORT_STATE:
        put_named(t, mad_port_state_name((uint8_t)v), v);
        break;
    case MAD_FMT_PHYS_STATE:
        put_named(t, mad_phys_state_name((uint8_t)v), v);
        break;
    case MAD_FMT_SM_STATE:
        put_named(t, mad_sm_state_name((uint8_t)v), v);
        break;
    case MAD_FMT_MTU:
        put(t, "%u", mad_mtu_bytes((uint8_t)v));
        break;
    case MAD_FMT_VLS:
        if (mad_vl_count((uint8_t)v) > 1)
            put(t, "VL0-%u", mad_vl_count((uint8_t)v) - 1);
        else
            put_named(t, v == 1 ? "VL0" : NULL, v);
        break;
    case MAD_FMT_WIDTH:
    case MAD_FMT_WIDTH_MASK:
        put_mask(t, v, width_names, 5);
        break;
    case MAD_FMT_SPEED:
    case MAD_FMT_SPEED_MASK:
        put_mask(t, v, speed_names, 3);
        break;
    case MAD_FMT_SPEED_EXT:
    case MAD_FMT_SPEED_EXT_MASK:
        put_mask(t, v, speed_ext_names, 4);
        break;
    case MAD_FMT_SPEED_EXT2:
    case MAD_FMT_SPEED_EXT2_MASK:
        put_mask(t, v, speed_ext2_names, 1);
        break;
    }
}

static void put_gid(struct text *t, const uint8_t *p)
{
    for (unsigned i = 0; i < 16; i += 2)
        put(t, "%s%x", i ? ":" : "", (unsigned)p[i] << 8 | p[i + 1]);
}

static void put_field(struct text *t, const struct mad_field *f, const void *host, unsigned i)
{
    const uint8_t *p = (const uint8_t *)host + f->offset;
    if (f->is_array && f->size == 1 && f->format == MAD_FMT_GID && f->count == 16) {
        put_gid(t, p);
    } else if (f->is_array && f->size == 1 && f->format == MAD_FMT_TEXT) {
        for (unsigned k = 0; k < f->count && p[k]; k++)
            put(t, "%c", p[k] >= ' ' && p[k] <= '~' ? p[k] : '?');
    } else if (f->is_array && f->size == 1 && f->format == MAD_FMT_BYTES) {
        for (unsigned k = 0; k < f->count; k++)
            put(t, "%02x", p[k]);
    } else {
        put_number(t, f, mad_field_get(f, host, i));
    }
}

bool mad_field_is_whole(const struct mad_field *f)
{
    return !f->is_array || (f->size == 1 && (f->format == MAD_FMT_TEXT || f->format == MAD_FMT_BYTES ||
                                             (f->format == MAD_FMT_GID && f->count == 16)));
}

size_t mad_field_text(const struct mad_field *f, const void *host, unsigned i, char *buf, size_t size)
{
    struct text t = {.buf = buf, .size = size};
    if (size > 0)
        buf[0] = 0;
    put_field(&t, f, host, i);
    return t.len;
}

size_t mad_attr_print(const struct mad_attr *attr, const void *host, char *buf, size_t size)
{
    struct text t = {.buf = buf, .size = size};
    if (size > 0)
        buf[0] = 0;
    for (unsigned k = 0; k < attr->nfields; k++) {
        const struct mad_field *f = &attr->fields[k];
        if (!f->name)
            continue;
        put(&t, "%s:", f->name);
        for (unsigned i = 0; i < (mad_field_is_whole(f) ? 1u : f->count); i++) {
            put(&t, " ");
            put_field(&t, f, host, i);
        }
        put(&t, "\n");
    }
    return t.len;
}
