// SPDX-License-Identifier: Apache-2.0
//
// Turns the rows of a .def into the members of a host struct:
//
//     #include "mad/attr/rows_struct.h"
//     struct mad_x {
//     #include "mad/attr/x.def"
//     };
//     #include "mad/attr/rows_undef.h"
//     MAD_DECLARE(x)
//
// and in one .c the table and the functions: see define.h. No include guard: used once a group of attributes.
#define MAD_ROW_FITS(ctype, width) _Static_assert(sizeof(ctype) * 8 >= (width), "host type too narrow")
#define F(name, ctype, first_bit, width, format)                                                             \
    ctype name;                                                                                              \
    MAD_ROW_FITS(ctype, width);
#define A(name, ctype, first_bit, width, count, format)                                                      \
    ctype name[count];                                                                                       \
    MAD_ROW_FITS(ctype, width);
#define S(name, ctype, first_bit, width, count, stride, format)                                              \
    A(name, ctype, first_bit, width, count, format)
#define FC(name, ctype, first_bit, width, format, component) F(name, ctype, first_bit, width, format)
#define AC(name, ctype, first_bit, width, count, format, component)                                          \
    A(name, ctype, first_bit, width, count, format)
#define R(first_bit, width)
#define RS(first_bit, width, count, stride)
