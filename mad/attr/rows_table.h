// SPDX-License-Identifier: Apache-2.0
//
// Turns the rows of a .def into struct mad_field initialisers; ATTR names the host struct. See rows_struct.h.
#define MAD_ROW_KIND(first, w, str, sz)                                                                         \
    ((w) == 8 * (sz) && (first) % 8 == 0 && (str) % 8 == 0                       ? ((sz) == 1   ? MAD_KIND_U8   \
                                                                                    : (sz) == 2 ? MAD_KIND_U16  \
                                                                                    : (sz) == 4 ? MAD_KIND_U32  \
                                                                                                : MAD_KIND_U64) \
     : (sz) == 1 && (first) % 8 + (w) <= 8 && ((str) % 8 == 0 || 8 % (str) == 0) ? MAD_KIND_BITS8               \
                                                                                 : MAD_KIND_ANY)
#define MAD_ROW(n, first, w, cnt, str, fmt, array, comp)                                                     \
    {.name = #n,                                                                                             \
     .first_bit = (first),                                                                                   \
     .width = (w),                                                                                           \
     .count = (cnt),                                                                                         \
     .stride = (str),                                                                                        \
     .offset = offsetof(ATTR, n),                                                                            \
     .size = sizeof(((ATTR *)0)->n) / (cnt),                                                                 \
     .format = MAD_FMT_##fmt,                                                                                \
     .kind = MAD_ROW_KIND(first, w, str, sizeof(((ATTR *)0)->n) / (cnt)),                                    \
     .is_array = (array),                                                                                    \
     .component = (comp)},
#define F(name, ctype, first_bit, width, format) MAD_ROW(name, first_bit, width, 1, width, format, false, -1)
#define A(name, ctype, first_bit, width, count, format)                                                      \
    MAD_ROW(name, first_bit, width, count, width, format, true, -1)
#define S(name, ctype, first_bit, width, count, stride, format)                                              \
    MAD_ROW(name, first_bit, width, count, stride, format, true, -1)
#define FC(name, ctype, first_bit, width, format, comp)                                                      \
    MAD_ROW(name, first_bit, width, 1, width, format, false, comp)
#define AC(name, ctype, first_bit, width, count, format, comp)                                               \
    MAD_ROW(name, first_bit, width, count, width, format, true, comp)
#define R(first, w) {.first_bit = (first), .width = (w), .count = 1, .stride = (w), .component = -1},
#define RS(first, w, cnt, str)                                                                               \
    {.first_bit = (first), .width = (w), .count = (cnt), .stride = (str), .component = -1},
