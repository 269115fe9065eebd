// SPDX-License-Identifier: Apache-2.0
// What cmocka.h needs before it, once.
#ifndef WEFT_TESTS_UNIT_LIB_TEST_H
#define WEFT_TESTS_UNIT_LIB_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
