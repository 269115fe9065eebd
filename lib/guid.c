// SPDX-License-Identifier: Apache-2.0
#include "lib/guid.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

// With separators the groups must be whole ("ec0d:9a03:0002:c050", "ec:0d:..."): all of one width, sixteen
// digits together.
static int parse_groups(const char *s, char sep, uint64_t *ret)
{
    uint64_t v = 0;
    unsigned digits = 0, width = 0, in_group = 0;

    for (;; s++) {
        int d = hex_digit(*s);
        if (d >= 0) {
            if (++digits > 16)
                return -EINVAL;
            v = v << 4 | (unsigned)d;
            in_group++;
            continue;
        }
        if (*s && *s != sep)
            return -EINVAL;
        if (!in_group || (width && in_group != width))
            return -EINVAL;
        width = in_group;
        in_group = 0;
        if (!*s)
            break;
    }
    if (digits != 16)
        return -EINVAL;
    *ret = v;
    return 0;
}

int guid_parse(const char *s, uint64_t *ret_guid)
{
    if ((s[0] == 'S' || s[0] == 'H' || s[0] == 'R' || s[0] == 's' || s[0] == 'h' || s[0] == 'r') &&
        s[1] == '-')
        s += 2;
    if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
        s += 2;
    const char *sep = strpbrk(s, ":-");
    if (sep)
        return parse_groups(s, *sep, ret_guid);

    uint64_t v = 0;
    size_t n = 0;
    for (; s[n]; n++) {
        int d = hex_digit(s[n]);
        if (d < 0 || v >> 60) // leading zeros may be many, a seventeenth digit that counts may not
            return -EINVAL;
        v = v << 4 | (unsigned)d;
    }
    if (!n)
        return -EINVAL;
    *ret_guid = v;
    return 0;
}

const char *guid_str(uint64_t guid, char buf[GUID_STR_SIZE])
{
    snprintf(buf, GUID_STR_SIZE, GUID_FMT, GUID_ARG(guid));
    return buf;
}
