// SPDX-License-Identifier: Apache-2.0
#include "fabric/topogen.h"

#include "fabric/reader.h"

const struct fabric *topogen_or_file(const char *name_or_path, struct findings *ret_findings, struct err *e)
{
    if (topogen_is_name(name_or_path))
        return topogen_make(name_or_path, e);
    return reader_load(name_or_path, ret_findings, e);
}
