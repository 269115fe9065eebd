// SPDX-License-Identifier: Apache-2.0
// weft export: the fabric in the forms of other programs.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/quality.h"
#include "lib/xalloc.h"

#define SECONDS 120.0

static int write_text(struct cli *c, const struct buf *text)
{
    const char *file = args_value(&c->args, "to");
    if (file == NULL) {
        buf_add(&c->out.text, text->data, text->len);
        return CLI_OK;
    }
    int rc = buf_write_file(text, file, 0644);
    if (rc != 0)
        return cli_fail(CLI_USAGE, file, "cannot be written: %s", strerror(-rc));
    return CLI_OK;
}

static int export(struct cli *c, const char *what, double seconds, route_show_fn *show)
{
    struct http_reply r;
    struct err e = {0};
    struct buf path = {0};
    const char *rail = args_value(&c->args, "rail"), *match = args_value(&c->args, "match");
    (void)what;
    (void)show;

    int rc = cli_fabric(c);
    if (rc != CLI_OK)
        return rc;
    buf_printf(&path, "%s/export", c->fabric);
    http_query(&path, "format", c->args.word[0]);
    if (rail != NULL)
        http_query(&path, "rail", rail);
    if (match != NULL)
        http_query(&path, "match", match);
    rc = http_call(c->http, "GET", path.data, NULL, seconds, &r, &e);
    if (rc != CLI_OK)
        cli_complain(&e);
    else
        rc = write_text(c, &r.body);
    http_reply_done(&r);
    buf_done(&path);
    return rc;
}

int cmd_export(struct cli *c)
{
    static const char *const forms[] = {"slurm", "slurm-yaml", "json", "ibnetdiscover", "lst", "lft", "fdbs"};
    double seconds = args_has(&c->args, "timeout") ? c->timeout : SECONDS;
    size_t i = 0, n = sizeof(forms) / sizeof(forms[0]);
    while (i < n && strcmp(forms[i], c->args.word[0]) != 0)
        i++;
    if (i == n)
        return cli_fail(CLI_USAGE, c->args.word[0],
                        "no such form; there are: slurm, slurm-yaml, json, ibnetdiscover, lst, lft, fdbs");
    if (c->args.num_words == 1)
        return export(c, NULL, seconds, NULL);
    return route_private(c, c->args.word[1], seconds, export, NULL);
}
