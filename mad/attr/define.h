// SPDX-License-Identifier: Apache-2.0
//
// Turns the rows of a .def into the table and the two functions of an attribute, in one .c file:
//
//     #define MAD_DEF "mad/attr/x.def"
//     #define MAD_NAME x
//     #include "mad/attr/define.h"
//     const struct mad_attr mad_attr_x = MAD_ATTR_INIT(x, "X", 0x01, 0x1234, 64, MAD_MAY_GET);
//
// The struct comes from rows_struct.h, usually in a header. Ends by undefining MAD_DEF and MAD_NAME.
#include <stddef.h>

#include "mad/attr/bits.h"

#define MAD_CAT2(a, b) a##b
#define MAD_CAT(a, b) MAD_CAT2(a, b)
#define MAD_STRUCT struct MAD_CAT(mad_, MAD_NAME)

#define MAD_ROW(n, ctype, first, w, cnt, str, fmt, array, comp)                                              \
    {.name = #n,                                                                                             \
     .first_bit = (first),                                                                                   \
     .width = (w),                                                                                           \
     .count = (cnt),                                                                                         \
     .stride = (str),                                                                                        \
     .offset = offsetof(MAD_STRUCT, n),                                                                      \
     .size = sizeof(ctype),                                                                                  \
     .format = MAD_FMT_##fmt,                                                                                \
     .is_array = (array),                                                                                    \
     .component = (comp)},
#define F(name, ctype, first, w, format) MAD_ROW(name, ctype, first, w, 1, w, format, false, -1)
#define A(name, ctype, first, w, count, format) MAD_ROW(name, ctype, first, w, count, w, format, true, -1)
#define S(name, ctype, first, w, count, stride, format)                                                      \
    MAD_ROW(name, ctype, first, w, count, stride, format, true, -1)
#define FC(name, ctype, first, w, format, comp) MAD_ROW(name, ctype, first, w, 1, w, format, false, comp)
#define AC(name, ctype, first, w, count, format, comp)                                                       \
    MAD_ROW(name, ctype, first, w, count, w, format, true, comp)
#define R(first, w) {.first_bit = (first), .width = (w), .count = 1, .stride = (w), .component = -1},
#define RS(first, w, cnt, str)                                                                               \
    {.first_bit = (first), .width = (w), .count = (cnt), .stride = (str), .component = -1},
static const struct mad_field MAD_CAT(MAD_NAME, _fields)[] = {
#include MAD_DEF
};
#include "mad/attr/rows_undef.h"

#define F(name, ctype, first, w, format)                                                                     \
    mad_decode_one(wire, first, w, (uint8_t *)&host->name, sizeof(ctype));
#define A(name, ctype, first, w, count, format) S(name, ctype, first, w, count, w, format)
#define S(name, ctype, first, w, count, stride, format)                                                      \
    mad_decode_many(wire, first, w, count, stride, (uint8_t *)host->name, sizeof(ctype));
#define FC(name, ctype, first, w, format, comp) F(name, ctype, first, w, format)
#define AC(name, ctype, first, w, count, format, comp) A(name, ctype, first, w, count, format)
#define R(first, w)
#define RS(first, w, cnt, str)
static void MAD_CAT(MAD_NAME, _decode)(const uint8_t *restrict wire, void *restrict ret_host)
{
    MAD_STRUCT *restrict host = ret_host;
#include MAD_DEF
}
#include "mad/attr/rows_undef.h"

#define F(name, ctype, first, w, format)                                                                     \
    mad_encode_one((const uint8_t *)&host->name, sizeof(ctype), wire, first, w);
#define A(name, ctype, first, w, count, format) S(name, ctype, first, w, count, w, format)
#define S(name, ctype, first, w, count, stride, format)                                                      \
    mad_encode_many((const uint8_t *)host->name, sizeof(ctype), wire, first, w, count, stride);
#define FC(name, ctype, first, w, format, comp) F(name, ctype, first, w, format)
#define AC(name, ctype, first, w, count, format, comp) A(name, ctype, first, w, count, format)
#define R(first, w)
#define RS(first, w, cnt, str)
// The wire is 0 before.
static void MAD_CAT(MAD_NAME, _encode)(const void *restrict from, uint8_t *restrict wire)
{
    const MAD_STRUCT *restrict host = from;
#include MAD_DEF
}
#include "mad/attr/rows_undef.h"

#ifndef MAD_ATTR_INIT
#define MAD_ATTR_INIT(n, text, class, attr_id, bytes, may)                                                   \
    {                                                                                                        \
        .name = text, .ident = #n, .mgmt_class = class, .id = attr_id, .methods = may, .wire_bytes = bytes,  \
        .struct_size = sizeof(struct mad_##n), .nfields = sizeof(n##_fields) / sizeof(n##_fields[0]),        \
        .fields = n##_fields, .decode = n##_decode, .encode = n##_encode                                     \
    }
#endif

#undef MAD_CAT
#undef MAD_CAT2
#undef MAD_STRUCT
#undef MAD_DEF
#undef MAD_NAME
