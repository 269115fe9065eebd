// SPDX-License-Identifier: Apache-2.0
// GUIDs as text: one canonical form out ("0x%016x"), every form people write in.
#ifndef WEFT_LIB_GUID_H
#define WEFT_LIB_GUID_H

#include <stdint.h>

#define GUID_STR_SIZE 20
#define GUID_FMT "0x%016llx"
#define GUID_ARG(g) ((unsigned long long)(g))

// Accepts 0x with or without leading zeros, bare hex, colons or dashes between groups
// ("ec0d:9a03:0002:c050"), "S-"/"H-"/"R-" prefixes. The whole string must be the GUID. 0 or -EINVAL.
int guid_parse(const char *s, uint64_t *ret_guid);
const char *guid_str(uint64_t guid, char buf[GUID_STR_SIZE]);

#endif
