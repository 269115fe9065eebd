// SPDX-License-Identifier: Apache-2.0
// weft group: multicast groups and who is in them.
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/text.h"

static const struct field group_fields[] = {
    {.key = "mgid", .title = "MGID"},
    {.key = "mlid", .title = "MLID", .kind = FIELD_HEX},
    {.key = "members", .title = "MEMBERS", .kind = FIELD_COUNT},
    {.key = "permanent", .flags = FIELD_WIDE},
    {.key = "p_key", .title = "P_KEY", .kind = FIELD_HEX},
    {.key = "q_key", .title = "Q_KEY", .kind = FIELD_HEX},
    {.key = "mtu", .title = "MTU", .kind = FIELD_NUMBER},
    {.key = "gbps", .title = "GBIT/S", .kind = FIELD_NUMBER},
    {.key = "sl", .title = "SL", .kind = FIELD_NUMBER},
    {.key = "tclass", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "flow_label", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {.key = "hop_limit", .kind = FIELD_NUMBER, .flags = FIELD_WIDE},
    {0},
};

static const struct field member_fields[] = {
    {.key = "port_guid", .title = "PORT GUID"},
    {.key = "node", .title = "NODE", .flags = FIELD_SHRINK},
    {.key = "join_state", .title = "JOIN STATE", .kind = FIELD_NUMBER},
    {.key = "proxy", .title = "PROXY"},
    {.key = "gone", .title = "GONE"},
    {0},
};

int cmd_group(struct cli *c)
{
    struct buf path = {0};
    json_t *g = NULL;

    if (c->args.num_words == 0)
        return cli_show_list(c, "groups", group_fields);
    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/groups", c->fabric);
    http_segment(&path, c->args.word[0]);
    rc = cli_get(c, path.data, &g);
    buf_done(&path);
    if (rc == CLI_OK)
        out_with(&c->out, group_fields, g, "member", member_fields);
    json_decref(g);
    return rc;
}
