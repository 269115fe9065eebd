// SPDX-License-Identifier: Apache-2.0
#include "daemon/args.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config.h"
#include "lib/xalloc.h"

static const char usage[] =
    "usage: weftd [options]\n"
    "\n"
    "  --config FILE          configuration (default: " CONFIG_DEFAULT_PATH " where it exists)\n"
    "  --set SECTION.KEY=VALUE  one option over the file; may be repeated\n"
    "  --state DIR            folder of meta.db\n"
    "  --port DEV[/NUM]       local InfiniBand port, such as mlx5_0/1\n"
    "  --simulate NAME|FILE   a simulated fabric instead: rail-1024, ft3-64-8, superpod-4, subnet-40960, or "
    "a topology file\n"
    "  --simulate-state factory|file  how it begins\n"
    "  --once                 bring the fabric up, print one JSON object, exit 0, or 1 with \"ok\": false "
    "and why\n"
    "  --dump-lft FILE        with --once: the tables, as OpenSM writes them\n"
    "  --dump-subnet DIR      with --once: weft.lst, weft.fdbs, weft.lft and weft.topo for ibdmchk and "
    "others\n"
    "  --offline NAME|FILE    serve a saved fabric for the weft command; nothing is managed\n"
    "  --print-fabric FORM    with --offline: print the fabric as ibnetdiscover, ibsim or lst, exit\n"
    "  --socket PATH          unix socket of the API (empty: none)\n"
    "  --http ADDRESS:PORT    HTTP API (port 0: none)\n"
    "  --check-config         read the configuration, say what is wrong, exit\n"
    "  --print-sample-config  every option with its default, commented\n"
    "  --print-man            the man page weftd(8)\n"
    "  --print-config         every option with its value after all is read\n"
    "  --version, --help\n";

enum {
    OPT_CONFIG = 1000,
    OPT_SET,
    OPT_STATE,
    OPT_PORT,
    OPT_SIMULATE,
    OPT_SIMULATE_STATE,
    OPT_ONCE,
    OPT_DUMP_LFT,
    OPT_DUMP_SUBNET,
    OPT_OFFLINE,
    OPT_PRINT_FABRIC,
    OPT_SOCKET,
    OPT_HTTP,
    OPT_CHECK,
    OPT_SAMPLE,
    OPT_MAN,
    OPT_PRINT,
    OPT_VERSION,
    OPT_HELP,
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, OPT_CONFIG},
    {"set", required_argument, NULL, OPT_SET},
    {"state", required_argument, NULL, OPT_STATE},
    {"port", required_argument, NULL, OPT_PORT},
    {"simulate", required_argument, NULL, OPT_SIMULATE},
    {"simulate-state", required_argument, NULL, OPT_SIMULATE_STATE},
    {"once", no_argument, NULL, OPT_ONCE},
    {"dump-lft", required_argument, NULL, OPT_DUMP_LFT},
    {"dump-subnet", required_argument, NULL, OPT_DUMP_SUBNET},
    {"offline", required_argument, NULL, OPT_OFFLINE},
    {"print-fabric", required_argument, NULL, OPT_PRINT_FABRIC},
    {"socket", required_argument, NULL, OPT_SOCKET},
    {"http", required_argument, NULL, OPT_HTTP},
    {"check-config", no_argument, NULL, OPT_CHECK},
    {"print-sample-config", no_argument, NULL, OPT_SAMPLE},
    {"print-man", no_argument, NULL, OPT_MAN},
    {"print-config", no_argument, NULL, OPT_PRINT},
    {"version", no_argument, NULL, OPT_VERSION},
    {"help", no_argument, NULL, OPT_HELP},
    {0},
};

static void add_set(struct args *a, const char *s)
{
    if (a->num_set < ARGS_SETS)
        a->set[a->num_set] = s;
    a->num_set++;
}

static void print_man(void)
{
    fputs(".TH WEFTD 8 \"\" \"weft " WEFT_VERSION "\"\n"
          ".SH NAME\nweftd \\- cluster fabric manager\n"
          ".SH SYNOPSIS\n.B weftd\n[options]\n"
          ".SH DESCRIPTION\n"
          "Discovers InfiniBand fabrics and is their subnet manager: addresses, proved routes, partitions; "
          "keeps watching, and serves what it knows over a REST API, which\n"
          "the weft command speaks: weft help.\n"
          ".SH OPTIONS\n.nf\n",
          stdout);
    for (const char *s = strchr(usage, '\n') + 2; *s != 0; s++)
        fputs(*s == '-' ? "\\-" : (const char[]){*s, 0}, stdout);
    fputs(".fi\n.SH CONFIGURATION\nYAML, by default " CONFIG_DEFAULT_PATH "; SIGHUP reads it again.\n",
          stdout);
    opt_write_man(config_rows, stdout);
    fputs(".SH EXIT STATUS\n0: fine. 1: could not run, or the fabric did not come up (\\-\\-once). 2: wrong "
          "options or configuration.\n"
          ".SH FILES\n.TP\n" CONFIG_DEFAULT_PATH "\nconfiguration\n.TP\n/var/lib/weft/meta.db\nLIDs, "
          "events\n.TP\n/run/weft/weft.sock\nthe API's socket\n",
          stdout);
}

// What ends at once is done here; returns false to go on.
static bool parse_one(int c, struct args *a, int *ret_status)
{
    *ret_status = 0;
    switch (c) {
    case OPT_CONFIG:
        a->config = optarg;
        return false;
    case OPT_SET:
        add_set(a, optarg);
        return false;
    case OPT_STATE:
        a->state = optarg;
        return false;
    case OPT_PORT:
        a->port = optarg;
        return false;
    case OPT_SIMULATE:
        a->simulate = optarg;
        return false;
    case OPT_SIMULATE_STATE:
        add_set(a, xasprintf("sim.state=%s", optarg));
        return false;
    case OPT_ONCE:
        a->once = true;
        return false;
    case OPT_DUMP_LFT:
        a->dump_lft = optarg;
        return false;
    case OPT_DUMP_SUBNET:
        a->dump_subnet = optarg;
        return false;
    case OPT_OFFLINE:
        a->offline = optarg;
        return false;
    case OPT_PRINT_FABRIC:
        a->print_fabric = optarg;
        return false;
    case OPT_SOCKET:
        a->socket = optarg;
        return false;
    case OPT_HTTP:
        a->http = optarg;
        return false;
    case OPT_CHECK:
    case OPT_PRINT:
        a->check = true;
        a->print |= c == OPT_PRINT;
        return false;
    case OPT_SAMPLE:
        opt_write_sample(config_rows, stdout);
        return true;
    case OPT_MAN:
        print_man();
        return true;
    case OPT_VERSION:
        puts("weftd " WEFT_VERSION);
        return true;
    case OPT_HELP:
        fputs(usage, stdout);
        return true;
    default:
        fputs("try: weftd --help\n", stderr);
        *ret_status = 2;
        return true;
    }
}

// Words that mean nothing beside the others: doing half of what was asked would surprise.
static const char *contradiction(const struct args *a)
{
    if (a->once && a->offline != NULL)
        return "--once brings a fabric up, --offline manages none; use --once --simulate";
    if (!a->once && (a->dump_lft != NULL || a->dump_subnet != NULL))
        return "--dump-lft and --dump-subnet need --once";
    if (a->simulate != NULL && a->simulate[0] != 0 && a->port != NULL && a->port[0] != 0)
        return "--simulate and --port exclude each other";
    if (a->num_set > ARGS_SETS)
        return "too many --set; put the options into a file";
    return NULL;
}

bool args_parse(int argc, char **argv, struct args *a, int *ret_status)
{
    int c;
    while ((c = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        if (parse_one(c, a, ret_status))
            return true;
    const char *wrong = contradiction(a);
    if (optind == argc && wrong == NULL)
        return false;
    if (optind < argc)
        fprintf(stderr, "weftd: unexpected argument \"%s\"; try: weftd --help\n", argv[optind]);
    else
        fprintf(stderr, "weftd: %s\n", wrong);
    *ret_status = 2;
    return true;
}
