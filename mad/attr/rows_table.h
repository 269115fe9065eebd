// SPDX-License-Identifier: Apache-2.0
//
// Turns the rows of a .def into struct mad_field initialisers; ATTR names the host struct. See rows_struct.h.
#define MAD_ROW(n, first, w, cnt, str, fmt, array, comp)                                                     \
    {.name = #n,                                                                                             \
     .first_bit = (first),                                                                                   \
     .width = (w),                                                                                           \
     .count = (cnt),                                                                                         \
     .stride = (str),                                                                                        \
     .offset = offsetof(ATTR, n),                                                                            \
     .size = sizeof(((ATTR *)0)->n) / (cnt),                                                                 \
     .format = MAD_FMT_##fmt,                                                                                \
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
