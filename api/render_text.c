// SPDX-License-Identifier: Apache-2.0
// Codes of the wire as the words that people use.
#include <stdio.h>

#include "api/api_priv.h"

const char *const node_type_names[] = {"ca", "switch", "router", NULL};
const char *const node_role_names[] = {"unknown", "host",  "aggregation", "gateway", "router",
                                       "leaf",    "spine", "core",        "switch",  NULL};
const char *const severity_names[] = {"info", "warning", "error", NULL};

const char *node_type_word(unsigned type)
{
    return type >= NODE_CA && type <= NODE_ROUTER ? node_type_names[type - 1] : "ca";
}

const char *width_word(const struct port_attrs *a)
{
    switch (a->width_active) {
    case 1:
        return "1x";
    case 2:
        return "4x";
    case 4:
        return "8x";
    case 8:
        return "12x";
    case 16:
        return "2x";
    default:
        return NULL;
    }
}

const char *speed_word(const struct port_attrs *a)
{
    switch (a->speed_ext_active) {
    case 1:
        return "FDR";
    case 2:
        return "EDR";
    case 4:
        return "HDR";
    case 8:
        return "NDR";
    case 16:
        return "XDR";
    default:
        break;
    }
    if (a->fdr10)
        return "FDR10";
    return a->speed_active == 1 ? "SDR" : a->speed_active == 2 ? "DDR" : a->speed_active == 4 ? "QDR" : NULL;
}

const char *link_word(const struct port_attrs *a, char *buf, size_t size)
{
    const char *w = width_word(a), *s = speed_word(a);
    if (w == NULL || s == NULL)
        return NULL;
    snprintf(buf, size, "%s%s", w, s);
    return buf;
}
