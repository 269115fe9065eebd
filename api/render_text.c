// SPDX-License-Identifier: Apache-2.0
// Codes of the wire as the words that people use.
#include <stdio.h>

#include "api/api_priv.h"

#include "mad/mad.h"

const char *const node_type_names[] = {"ca", "switch", "router", NULL};
const char *const node_role_names[] = {"unknown", "host",  "aggregation", "gateway", "router",
                                       "leaf",    "spine", "core",        "switch",  NULL};
const char *const severity_names[] = {"info", "warning", "error", NULL};

const char *node_type_word(unsigned type)
{
    return type >= NODE_CA && type <= NODE_ROUTER ? node_type_names[type - 1] : "ca";
}

const char *width_word(const struct port_attrs *a, char *buf, size_t size)
{
    unsigned lanes = mad_width_lanes(a->width_active);
    if (lanes == 0)
        return NULL;
    snprintf(buf, size, "%ux", lanes);
    return buf;
}

const char *speed_word(const struct port_attrs *a)
{
    return mad_speed_name(a->speed_active, a->speed_ext_active, a->fdr10);
}

const char *link_word(const struct port_attrs *a, char *buf, size_t size)
{
    unsigned lanes = mad_width_lanes(a->width_active);
    const char *speed = speed_word(a);
    if (lanes == 0 || speed == NULL)
        return NULL;
    snprintf(buf, size, "%ux%s", lanes, speed);
    return buf;
}
