// SPDX-License-Identifier: Apache-2.0
//
// What every target defines; libFuzzer calls it, or replay_main.c does.
#ifndef WEFT_TESTS_FUZZ_H
#define WEFT_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
