// SPDX-License-Identifier: Apache-2.0
// Every command and every option, one row each; long, since whoever adds a command looks in one place.
#include "cli/cli.h"

const struct option_row option_rows[] = {
    // of every command
    {.name = "socket",
     .letter = 's',
     .arg = OPTION_VALUE,
     .value = "PATH",
     .global = true,
     .doc = "weftd's socket (default: $WEFT_SOCKET, or " CLI_SOCKET_DEFAULT ")"},
    {.name = "fabric",
     .letter = 'f',
     .arg = OPTION_VALUE,
     .value = "NAME",
     .global = true,
     .doc = "the fabric; needed only where weftd has several"},
    {.name = "output",
     .letter = 'o',
     .arg = OPTION_VALUE,
     .value = "FORMAT",
     .global = true,
     .choice = "table json csv",
     .doc = "table (default), json or csv"},
    {.name = "timeout",
     .arg = OPTION_VALUE,
     .value = "SECONDS",
     .global = true,
     .doc = "give up after this time (default: 30 for an answer, 600 for what is waited for)"},
    {.name = "no-color",
     .global = true,
     .doc = "no colours; they are used on terminals only, and not with $NO_COLOR"},
    {.name = "no-header", .global = true, .doc = "no line of titles in tables and csv"},
    {.name = "help", .letter = 'h', .global = true, .doc = "help on the command"},
    {.name = "version", .global = true, .doc = "print the version"},
    // of some
    {.name = "watch",
     .arg = OPTION_EQUALS,
     .value = "SECONDS",
     .doc = "show again every 2 seconds, or as given"},
    {.name = "wait",
     .arg = OPTION_NUMBER,
     .value = "SECONDS",
     .doc = "wait for the outcome, as long as --timeout says or as given"},
    {.name = "limit", .letter = 'n', .arg = OPTION_VALUE, .value = "N", .doc = "at most N lines"},
    {.name = "type",
     .arg = OPTION_VALUE,
     .value = "TYPE",
     .choice = "ca switch router",
     .doc = "only nodes of this type"},
    {.name = "role",
     .arg = OPTION_VALUE,
     .value = "ROLE",
     .doc = "only nodes of this role, such as host, leaf, spine, core"},
    {.name = "name", .arg = OPTION_VALUE, .value = "TEXT", .doc = "only nodes with this in their name"},
    {.name = "reason", .arg = OPTION_VALUE, .value = "TEXT", .doc = "why, for those who come to read it"},
    {.name = "check", .doc = "only say what would move; nothing changes"},
    {.name = "apply", .doc = "do it"},
    {.name = "force", .doc = "also when it looks like another fabric's"},
    {.name = "no-wait", .doc = "do not wait until the routes have moved"},
    {.name = "down",
     .doc =
         "only links that are not active, and cables of the blueprint that are away (with the state down)"},
    {.name = "engine",
     .arg = OPTION_VALUE,
     .value = "E",
     .doc = "routing engine: auto (default), rail, updn, sssp, minhop"},
    {.name = "fail",
     .arg = OPTION_VALUE,
     .value = "ELEMENT",
     .repeat = true,
     .doc =
         "take out a node, a link as NODE[PORT], names as leaf-r1-*, rail=3, or random:PERCENT:SEED of the "
         "trunks; may be repeated"},
    {.name = "drain",
     .arg = OPTION_VALUE,
     .value = "ELEMENT",
     .repeat = true,
     .doc = "the same things stay alive, and traffic keeps off them where it can; may be repeated"},
    {.name = "add",
     .arg = OPTION_VALUE,
     .value = "WHAT",
     .repeat = true,
     .doc =
         "link:A[PORT]-B[PORT], node-like:NODE=NEWNAME, node-like-hosts:SWITCH=NEWNAME, su or su:NUMBER; may "
         "be repeated"},
    {.name = "dump-lft",
     .arg = OPTION_VALUE,
     .value = "FILE",
     .doc = "write the tables there, in OpenSM's text form"},
    {.name = "to",
     .arg = OPTION_VALUE,
     .value = "FILE",
     .doc = "write there instead of to stdout; the file is replaced as a whole, or stays as it was"},
    {.name = "rail",
     .arg = OPTION_VALUE,
     .value = "N",
     .doc = "hosts under their leaves of this rail; without it under their scalable units"},
    {.name = "match",
     .arg = OPTION_VALUE,
     .value = "PATTERN",
     .doc = "only hosts whose names match, as a shell does"},
    {.name = "follow", .doc = "go on with new events as they come"},
    {.name = "kind",
     .arg = OPTION_VALUE,
     .value = "KIND",
     .doc = "only events of this kind, such as link-removed"},
    {.name = "since",
     .arg = OPTION_VALUE,
     .value = "ID|TIME",
     .doc = "since a time (2026-01-31T10:20:30Z, '2026-01-31 10:20:30 UTC', '2026-01-31 10:20', 10:20; "
            "without a zone "
            "local) or an age (90s, 10m, 2h, 3d); of events also after an id"},
    {.name = "severity",
     .arg = OPTION_VALUE,
     .value = "SEVERITY",
     .choice = "info warning error minor major critical",
     .doc = "only this severity and worse; of alarms info, minor, major, critical"},
    // of counters and alarms
    {.name = "until",
     .arg = OPTION_VALUE,
     .value = "TIME",
     .doc = "end of the time, as --since has them; of silences a time"},
    {.name = "step",
     .arg = OPTION_VALUE,
     .value = "TIME",
     .doc = "one sample a step, such as 10s, 1m, 1h; 0: each sweep (default: as suits the time)"},
    {.name = "counter",
     .arg = OPTION_VALUE,
     .value = "NAMES",
     .doc = "counters with commas between, or all (default: xmit_data,rcv_data,xmit_wait)"},
    {.name = "by",
     .arg = OPTION_VALUE,
     .value = "WHAT",
     .doc = "counters: taken together by rail, su, tier or switch; top: sorted by held (default), lost, "
            "used, xmit, "
            "rcv, errors, score or a counter"},
    {.name = "vl", .doc = "waits by virtual lane: the port is asked now"},
    {.name = "dry-run", .doc = "only say what would be; nothing changes"},
    {.name = "anyway", .doc = "also against what stands against it"},
    {.name = "peaks", .doc = "also the greatest rise between two sweeps in each step (csv, json)"},
    {.name = "focus",
     .arg = OPTION_VALUE,
     .value = "FOCUS",
     .doc = "only what has these fields, as held>5% or rail=3"},
    {.name = "all", .doc = "health: healthy links too; silence: everything"},
    {.name = "devices",
     .doc = "devices instead: temperatures, fans and power supplies of all that are known of"},
    {.name = "rule", .arg = OPTION_VALUE, .value = "RULE", .doc = "only alarms of this rule, such as L06"},
    {.name = "note", .arg = OPTION_VALUE, .value = "TEXT", .doc = "what to say about it"},
    {.name = "owner", .arg = OPTION_VALUE, .value = "NAME", .doc = "whose it is (default: yours)"},
    // of simulated fabrics
    {.name = "times", .arg = OPTION_VALUE, .value = "N", .doc = "how often (default: once)"},
    {.name = "gap", .arg = OPTION_VALUE, .value = "TIME", .doc = "time between, such as 10ms, 0.5s, 2m"},
    {.name = "for", .arg = OPTION_VALUE, .value = "TIME", .doc = "how long it lasts"},
    {.name = "mute", .arg = OPTION_VALUE, .value = "TIME", .doc = "how long its agent is silent"},
    {.name = "orderly", .doc = "the system is shut down, not reset"},
    {.name = "width",
     .arg = OPTION_VALUE,
     .value = "WIDTH",
     .choice = "1x 2x 4x 8x 12x",
     .doc = "link width"},
    {.name = "speed",
     .arg = OPTION_VALUE,
     .value = "SPEED",
     .choice = "SDR DDR QDR FDR EDR HDR NDR",
     .doc = "link speed"},
    {.name = "protect", .arg = OPTION_VALUE, .value = "N", .choice = "0 1 2 3", .doc = "M_KeyProtectBits"},
    {.name = "lease", .arg = OPTION_VALUE, .value = "SECONDS", .doc = "M_KeyLeasePeriod"},
    {.name = "priority", .arg = OPTION_VALUE, .value = "N", .doc = "priority of the subnet manager, 0 to 15"},
    {.name = "state",
     .arg = OPTION_VALUE,
     .value = "STATE",
     .choice = "not-active discovering standby master",
     .doc = "its state"},
    {.name = "sm-key", .arg = OPTION_VALUE, .value = "KEY", .doc = "its SM_Key"},
    {.name = "sm-guid", .arg = OPTION_VALUE, .value = "GUID", .doc = "the GUID that it shows"},
    {.name = "frozen",
     .arg = OPTION_EQUALS,
     .value = "yes|no",
     .choice = "yes no",
     .doc = "its ActCount stands still"},
    {.name = "silent",
     .arg = OPTION_EQUALS,
     .value = "yes|no",
     .choice = "yes no",
     .doc = "it does not answer"},
    {.name = "quiet",
     .arg = OPTION_EQUALS,
     .value = "yes|no",
     .choice = "yes no",
     .doc = "a change of its priority sends no trap"},
    {.name = "poll",
     .arg = OPTION_VALUE,
     .value = "TIME",
     .doc = "as a standby it asks the master so often; 0: never"},
    {.name = "misses",
     .arg = OPTION_VALUE,
     .value = "N",
     .doc = "it becomes master after so many requests without an answer"},
    {.name = "spread",
     .arg = OPTION_VALUE,
     .value = "TIME",
     .doc = "hosts react after a random time up to this"},
    {.name = "paths", .arg = OPTION_VALUE, .value = "RATE", .doc = "path queries of each host a second"},
    {.name = "hosts",
     .arg = OPTION_VALUE,
     .value = "LIST",
     .doc = "who takes part (all): hosts, adapters, GUIDs, gpu-0001:3, gpu-[0001-0016,0020], shell patterns; "
            "commas between them"},
    {.name = "receivers", .arg = OPTION_VALUE, .value = "LIST", .doc = "who is sent to (chosen by chance)"},
    {.name = "load",
     .arg = OPTION_VALUE,
     .value = "SHARE",
     .doc = "what each sender has to send, of what its link carries; 100%: as fast as it can"},
    {.name = "shift", .arg = OPTION_VALUE, .value = "N", .doc = "each sends to the host N further on"},
    {.name = "fan", .arg = OPTION_VALUE, .value = "N", .doc = "each sends to so many at once"},
    {.name = "level",
     .arg = OPTION_VALUE,
     .value = "N",
     .doc = "service level of the packets (default: as their paths have it)"},
    {.name = "window",
     .arg = OPTION_VALUE,
     .value = "N",
     .doc = "at most N times 16 KiB of each flow are under way (default: any number)"},
    {.name = "on", .arg = OPTION_VALUE, .value = "TIME", .doc = "bursts last so long"},
    {.name = "off", .arg = OPTION_VALUE, .value = "TIME", .doc = "time between bursts"},
    {.name = "seed", .arg = OPTION_VALUE, .value = "N", .doc = "of what is chosen by chance"},
    {.name = "as", .arg = OPTION_VALUE, .value = "NAME", .doc = "its name in lists"},
    {.name = "takes",
     .arg = OPTION_VALUE,
     .value = "SHARE",
     .doc = "what the host takes of what its link carries: 0 to 1, or 20%"},
    {.name = "symbol",
     .arg = OPTION_VALUE,
     .value = "RATE",
     .doc = "symbol errors, such as 5/h, 3/min, 0.2/s"},
    {.name = "ber",
     .arg = OPTION_VALUE,
     .value = "RATIO",
     .doc = "symbol errors by the bit error ratio at the link's speed, such as 1e-13"},
    {.name = "raw-ber",
     .arg = OPTION_VALUE,
     .value = "RATIO",
     .doc = "symbols that are corrected, by the bit error ratio before correction, such as 1e-7"},
    {.name = "uncorrectable", .arg = OPTION_VALUE, .value = "RATE", .doc = "blocks that cannot be corrected"},
    {.name = "recovery",
     .arg = OPTION_VALUE,
     .value = "RATE",
     .doc = "retrainings of the link, at both ends"},
    {.name = "receive", .arg = OPTION_VALUE, .value = "RATE", .doc = "receive errors"},
    {.name = "remote", .arg = OPTION_VALUE, .value = "RATE", .doc = "remote physical errors"},
    {.name = "integrity", .arg = OPTION_VALUE, .value = "RATE", .doc = "local link integrity errors"},
    {.name = "overrun", .arg = OPTION_VALUE, .value = "RATE", .doc = "excessive buffer overruns"},
    {.name = "discard", .arg = OPTION_VALUE, .value = "RATE", .doc = "packets discarded on the way out"},
    {.name = "vl15", .arg = OPTION_VALUE, .value = "RATE", .doc = "management packets dropped"},
    {.name = "celsius", .arg = OPTION_VALUE, .value = "C", .doc = "its temperature, in degrees Celsius"},
    {.name = "rx",
     .arg = OPTION_VALUE,
     .value = "DBM",
     .doc = "light that its second lane receives, in dBm with its sign: -12.5 is weak"},
    {.name = "tx",
     .arg = OPTION_VALUE,
     .value = "DBM",
     .doc = "light that its second lane sends, in dBm with its sign"},
    {.name = "fault", .doc = "it says that it has failed"},
    {.name = "fans", .arg = OPTION_VALUE, .value = "N", .doc = "so many fans stand still"},
    {.name = "supplies", .arg = OPTION_VALUE, .value = "N", .doc = "so many power supplies give nothing"},
    {.name = "markdown", .hidden = true, .doc = "as Markdown, for doc/"},
    {.name = "completion", .hidden = true, .doc = "the completion script of bash"},
    {0},
};

#define NODE_MORE                                                                                            \
    "A node is named by its GUID in any form (0x0008f10500200001, 8f105:..., S-0008f1...), its LID, its "    \
    "name, or\n"                                                                                             \
    "HOST:RAIL. A name that several nodes have is refused and they are listed.\n"

#define PLACE_MORE                                                                                           \
    "NODE[PORT] wants quotes in a shell; the port may be left out where there is one only, or stand "        \
    "apart.\n"

#define FOCUS_MORE                                                                                           \
    "FOCUS selects by field: rail=3, role=leaf, tier=spine, name~'^gpu-0[12]', with \"and\" (or a comma, "   \
    "or nothing),\n"                                                                                         \
    "\"or\", \"not\" and parentheses; values may be listed (rail=0|1) and be ranges (rail=1..4). A bare "    \
    "word is a name:\n"                                                                                      \
    "NODE, HOST, HOST:RAIL, a GUID, each also with /PORT; * and ? stand for anything. Its fields are "       \
    "listed below.\n"

// Where all of a port is known.
#define FOCUS_PORTS                                                                                          \
    FOCUS_MORE                                                                                               \
    "Those of ports are the same everywhere, and peer. before one is the other end's (peer.tier=spine). "    \
    "Times are\n"                                                                                            \
    "compared with how long ago they are (age>10m, since<2h), speed is in Gb/s (speed<400G).\n"

// Of a port, that stay while counters change.
#define PLACE_FIELDS "fabric guid name node port place element type role kind rail su tier plane host"
// Of the port and its cable; by its counters.
#define PORT_WORDS "port_guid lid link width speed mtu vendor model serial temp"
#define LIVE_WORDS                                                                                           \
    "used rcv_used held score errors errors_per_hour health alarm_rule pma rate.COUNTER peer.FIELD"
#define PORT_FIELDS PLACE_FIELDS " " PORT_WORDS " state age cable ber raw_ber alarm " LIVE_WORDS

const struct command_row command_rows[] = {
    {.name = "status",
     .args = "",
     .options = "wait watch",
     .run = cmd_status,
     .doc = "how the fabrics are, on one screen, and what to do next",
     .more =
         "--wait waits until every fabric is up or has failed, also for a weftd that is only starting.\n"
         "Exit code: 0 all is well; 1 a fabric is not up, its last sweep failed, it has findings of\n"
         "severity error or alarms of severity major or worse, or the database cannot be written; 5 --wait\n"
         "ran out.\n",
     .example = "weft status --wait 60\nweft status -o json | jq '.fabrics[0].routing'\n"},
    {.name = "health",
     .args = "[NODE|FOCUS...]",
     .max_args = 16,
     .options = "focus all devices since limit watch",
     .run = cmd_health,
     .doc = "links and devices that are not as they should be, worst first, why, and what to do",
     .more = "--since also shows what ended within the time.\n" FOCUS_PORTS
             "A link is taken by either of its ends; age is how long it has been so.\n"
             "Exit code: 1 when a link is degraded, flapping, failing or down, or a device degraded or "
             "failing, and "
             "not silenced.\n",
     .example = "weft health\nweft health --devices 'celsius>70'\nweft health --since 24h\nweft health "
                "'state=failing and kind=trunk' -o csv\nweft health gpu-0001:3\n",
     .fields = "rule why since advice sure_at gbps silenced a.name a.guid a.port z.name z.guid "
               "z.port " PORT_FIELDS},
    {.name = "congestion",
     .args = "[FOCUS...]",
     .max_args = 16,
     .options = "focus limit watch",
     .run = cmd_congestion,
     .doc = "who waits for whom: the root of each jam, and what to do about it",
     .more = FOCUS_PORTS
     "Jams are shown that have such a port in them, as root or waiting. Five are shown, or -n N.\n"
     "Exit code: 1 when there is one.\n",
     .example = "weft congestion\nweft congestion rail=3\nweft congestion gpu-0001:3\n",
     .fields = "gbps " PORT_FIELDS},
    {.name = "top",
     .args = "[FOCUS...]",
     .max_args = 16,
     .options = "focus by limit since until watch",
     .run = cmd_top,
     .doc = "the ports that stand out: held up, full, with errors",
     .more = "At most 20, or -n N. Now, or over a time with --since.\n" FOCUS_PORTS,
     .fields = "gbps " PORT_FIELDS,
     .example = "weft top\nweft top --by errors -n 5 --since 24h\nweft top rail=3 --by rcv_errors --watch\n"},
    {.name = "counters",
     .args = "[NODE/PORT|NODE|FOCUS...]",
     .max_args = 16,
     .options = "focus since until step counter by peaks vl limit watch",
     .run = cmd_counters,
     .doc = "counters of ports: now, or over a time with --since",
     .more = NODE_MORE
     "NODE[PORT] is the same as NODE/PORT. One port is shown counter by counter; -o csv "
     "and json have all of\n"
     "them in any case. Values count on over clears and reboots. HELD: share of time in "
     "which there was data to\n"
     "send and no way to send it. With --since a line a step: rates, of errors "
     "how many in the step;\n--by takes the ports of switches together, all or those of a FOCUS (rates are "
     "their mean, "
     "errors their sum; csv\nand json have sum, mean and max a second).\n" FOCUS_PORTS
     "COUNTER: a name of weft counters list. pma: read, or why a port is not (no-answer, ...).\n",
     .fields = "gbps value.COUNTER xmit_bps rcv_bps lost_bps xmit_pps rcv_pps why unread_since sampled_at "
               "errors_sampled_at complete saturated resets reset_at module.vendor module.part module.serial "
               "module.revision module.kind module.celsius module.metres module.status module.fault "
               "module.rx_low_dbm module.rx_high_dbm module.tx_low_dbm module.tx_high_dbm module.sampled_at "
               "module.old " PORT_FIELDS,
     .example = "weft counters leaf-su01-rail0/33\nweft counters 'held>5% and rail=3'\n"
                "weft counters gpu-0001:3 --since 2h --step 1m -o csv\nweft counters --by rail --since 24h "
                "--step 10m\nweft counters --by switch rail=3 --since 2h --counter symbol_errors\n"},
    {.name = "counters list",
     .args = "",
     .options = "markdown",
     .run = cmd_counters_list,
     .doc = "the counters that there are: unit, meaning, where they come from",
     .example = "weft counters list\n"},
    {.name = "alarm",
     .args = "[list] [FOCUS...]",
     .max_args = 16,
     .options = "severity focus limit watch",
     .run = cmd_alarm,
     .doc = "what is wrong, the worst first",
     .more = FOCUS_PORTS
     "Also rules (L06) and serial numbers of cables. An alarm is taken by either end of what it is "
     "about, a group\nby what it has taken in; age is how long it has stood.\n"
     "Exit code: 1 when one of severity minor or worse is active and not silenced.\n",
     .example = "weft alarm\nweft alarm --severity major 'rule=L*'\nweft alarm role=leaf rail=3\nweft alarm "
                "gpu-0001:3\n",
     .fields = "id severity rule title subject peer reason advice since last count active cleared_at acked "
               "acked_by ack_note silence members is_group group cause root followers hosts_cut "
               "lost_gbps " PORT_FIELDS},
    {.name = "alarm show",
     .args = "ID",
     .min_args = 1,
     .max_args = 1,
     .options = "watch",
     .run = cmd_alarm_show,
     .doc = "one alarm: evidence, advice, what its rule is",
     .example = "weft alarm show 12\n"},
    {.name = "alarm ack",
     .args = "ID...",
     .min_args = 1,
     .max_args = 60,
     .options = "note",
     .run = cmd_alarm_ack,
     .doc = "you have taken alarms on",
     .example = "weft alarm ack 12 --note 'cable ordered'\nweft alarm ack 12 13 14\n"},
    {.name = "alarm silence",
     .args = "ID",
     .min_args = 1,
     .max_args = 1,
     .options = "for until reason owner",
     .run = cmd_alarm_silence,
     .doc = "nobody is told of this alarm, or its like at the same place, for a time",
     .example = "weft alarm silence 12 --for 2h --reason 'cable swap'\n"},
    {.name = "silence",
     .args = "[list]",
     .max_args = 1,
     .options = "watch",
     .run = cmd_silence,
     .doc = "what is silenced: by whom, why, until when",
     .example = "weft silence\n"},
    {.name = "silence add",
     .args = "[FOCUS...]",
     .max_args = 16,
     .options = "focus rule all for until reason owner",
     .run = cmd_silence_add,
     .doc = "nobody is told of alarms about these ports for a time",
     .more = FOCUS_MORE
     "Without FOCUS and --rule nothing is silenced unless --all says so. The answer says how many "
     "ports and alarms\nit covers now; a focus of no port is taken, with a warning.\n",
     .example = "weft silence add 'su=4' --for 2h --reason 'rack move'\n"
                "weft silence add gpu-0001:3 --until 18:00 --reason 'cable swap'\n"
                "weft silence add --rule C01 --for 3d --reason 'known'\n",
     .fields = PLACE_FIELDS},
    {.name = "silence end",
     .args = "ID...",
     .min_args = 1,
     .max_args = 60,
     .options = "",
     .run = cmd_silence_end,
     .doc = "end silences or maintenance windows now",
     .example = "weft silence end 3\nweft silence end 3 4 5\n"},
    {.name = "maintenance",
     .args = "FOCUS...",
     .min_args = 1,
     .max_args = 16,
     .options = "focus for until reason owner",
     .run = cmd_maintenance,
     .doc = "a silence whose end lists what has not come back",
     .more = FOCUS_MORE,
     .example = "weft maintenance 'leaf-su04-*' --until 2026-01-31T18:00:00Z --reason 'new firmware'\n",
     .fields = PLACE_FIELDS},
    {.name = "isolate",
     .args = "[list|NODE/PORT]",
     .max_args = 1,
     .options = "dry-run reason anyway watch",
     .run = cmd_isolate,
     .doc = "links that should carry no traffic, since they fail; or keep traffic off one by hand",
     .more =
         "NODE/PORT: of either end. --dry-run says what stands against it, and what would move. Routes move\n"
         "first, so that nothing is lost. weftd gives a link back when it has been clean for two hours;\n"
         "weft isolate release does at once.\n"
         "Exit code: 1 when something stands against it.\n",
     .example = "weft isolate\nweft isolate leaf-1/44 --dry-run\n"},
    {.name = "isolate release",
     .args = "NODE/PORT",
     .min_args = 1,
     .max_args = 1,
     .options = "",
     .run = cmd_isolate_release,
     .doc = "let an isolated link carry traffic again",
     .example = "weft isolate release leaf-1/44\n"},
    {.name = "isolate exclude",
     .args = "NODE/PORT|NODE",
     .min_args = 1,
     .max_args = 1,
     .options = "for until reason",
     .run = cmd_isolate_exclude,
     .doc = "never isolate this link, or this node's links, for a time",
     .example = "weft isolate exclude leaf-1/44 --for 3d --reason 'known, being watched'\n"},
    {.name = "isolate include",
     .args = "NODE/PORT|NODE",
     .min_args = 1,
     .max_args = 1,
     .options = "",
     .run = cmd_isolate_include,
     .doc = "take it off the list of what is not isolated",
     .example = "weft isolate include leaf-1/44\n"},
    {.name = "db status",
     .args = "",
     .options = "watch",
     .run = cmd_db_status,
     .doc = "history: whether it is kept, how large it is, how far it goes back",
     .more = "Exit code: 1 when something cannot be written.\n",
     .example = "weft db status\n"},
    {.name = "db check",
     .args = "",
     .options = "",
     .run = cmd_db_check,
     .doc = "read all files of history and look for damage",
     .more = "Exit code: 1 when there is any.\n",
     .example = "weft db check\n"},
    {.name = "node",
     .args = "[NODE|FOCUS...]",
     .max_args = 16,
     .options = "role type name limit watch",
     .run = cmd_node,
     .doc = "list nodes, or show one with its ports",
     .more = NODE_MORE "A word that names no node lists those with it in their name.\n" FOCUS_PORTS,
     .fields = "sys_guid num_ports ports_up adaptive vendor_id device_id " PORT_FIELDS,
     .example =
         "weft node --role leaf\nweft node 0x0008f10500200001\nweft node 'role=leaf and ports_up<64'\n"},
    {.name = "port",
     .args = "[NODE [NUM]]",
     .max_args = 2,
     .options = "focus limit watch",
     .run = cmd_port,
     .doc = "list the ports of a node, or show one; or ports of all nodes by --focus",
     .more = NODE_MORE FOCUS_PORTS,
     .fields = "node_guid node_name num lmc phys_state gbps vls excluded label " PORT_FIELDS,
     .example = "weft port leaf-1 33\nweft port --focus 'pma=no-answer'\n"},
    {.name = "link",
     .args = "[NODE|FOCUS...]",
     .max_args = 16,
     .options = "down limit watch",
     .run = cmd_link,
     .doc = "list links, all or those of a node",
     .more = NODE_MORE FOCUS_PORTS
     "A link is taken by either of its ends. Cables that are away are no links; --down and "
     "state=down list them too.\n",
     .fields = "a.name a.guid a.port a.label z.name z.guid z.port z.label gbps " PORT_FIELDS,
     .example = "weft link --down\nweft link leaf-1 -o csv\nweft link kind=trunk gbps!=400\nweft link "
                "health=failing role=spine\n"},
    {.name = "link drain",
     .args = "NODE PORT",
     .min_args = 1,
     .max_args = 2,
     .options = "reason check no-wait",
     .run = cmd_link_drain,
     .doc = "keep traffic off a cable between switches, until weft link undrain",
     .more = "PORT: of either end; NODE[PORT] is the same. So are many, all or none: NODE 33-48, 'NODE[*]' "
             "(all to\n"
             "other switches), 'leaf-*[33]', 'role=leaf,rail=3[33]'; 1024 at most. The cable stays up, "
             "watched and\n"
             "counted, and what is plugged in instead is drained too. What has no other way carries on over "
             "it, and\n"
             "that is said. --check only says what would move.\n"
             "Exit code: 1 when something still uses it.\n",
     .example = "weft link drain leaf-1 33 --reason 'bad optics'\nweft link drain 'leaf-1[33]' --check\n"},
    {.name = "link undrain",
     .args = "NODE PORT",
     .min_args = 1,
     .max_args = 2,
     .options = "check no-wait",
     .run = cmd_link_undrain,
     .doc = "let the cable carry traffic again",
     .example = "weft link undrain leaf-1 33\n"},
    {.name = "node drain",
     .args = "NODE",
     .min_args = 1,
     .max_args = 1,
     .options = "reason check no-wait",
     .run = cmd_node_drain,
     .doc = "let nothing pass through a switch, until weft node undrain",
     .more = "NODE: also one of the blueprint that is away; or several, all or none: 'spine-*', "
             "role=spine,rail=3. The\n"
             "switch stays managed, and is reached itself. What hangs on it has no other way, and keeps it.\n"
             "--check only says what would move.\n"
             "Exit code: 1 when something still uses it.\n",
     .example = "weft node drain spine-1 --reason 'new firmware'\n"},
    {.name = "node undrain",
     .args = "NODE",
     .min_args = 1,
     .max_args = 1,
     .options = "check no-wait",
     .run = cmd_node_undrain,
     .doc = "let traffic pass through the switch again",
     .example = "weft node undrain spine-1\n"},
    {.name = "drain",
     .args = "",
     .options = "watch",
     .run = cmd_drain,
     .doc = "what is drained: since when, by whom, why, and what still uses it",
     .example = "weft drain\nweft drain -o json\n"},
    {.name = "route show",
     .args = "A B",
     .min_args = 2,
     .max_args = 2,
     .options = "since until",
     .run = cmd_route_show,
     .doc = "the way from A to B, hop by hop, as the tables in force lead it",
     .more = NODE_MORE
     "A and B may also be GIDs, as libraries write them into their logs (fe80::...), or ports: NAME[3].\n"
     "A port may have several LIDs (sm.lmc): B as one of them is followed as that.\n"
     "With --since (and --until) what each link of that way did over the time: errors, downs and discards, "
     "how\n"
     "much of the time it had to wait, and when most. For \"the job between these two failed at 03:12\".\n"
     "Exit code: 1 when B is not reached.\n",
     .example = "weft route show gpu-0001:3 gpu-0112:3\n"
                "weft route show gpu-0001:3 gpu-0112:3 --since 2h\n"
                "weft route show fe80::ec0d:9a03:2:c050 fe80::ec0d:9a03:2:c058 --since 2026-01-31T03:00:00Z "
                "--until 2026-01-31T03:20:00Z\n"},
    {.name = "route compute",
     .args = "[FILE|NAME]",
     .max_args = 1,
     .options = "engine fail dump-lft",
     .run = cmd_route_compute,
     .doc = "compute, prove and rate routes of a saved or generated fabric",
     .more =
         "FILE: a topology as ibnetdiscover, ibdiagnet and others write it; NAME: rail-1024, ft3-64-8, ...\n"
         "A weftd of its own computes (beside this command, in $WEFTD or in $PATH); no running one is "
         "needed.\n"
         "Without FILE or NAME the running weftd computes for its fabric; nothing is written to that "
         "either.\n"
         "With --fail the routes shown, and dumped, are computed anew for what is left; CHANGED is what the "
         "manager\n"
         "would write instead: it repairs the routes there were, see weft whatif.\n"
         "Exit code: 1 when the routes could not be proved.\n",
     .example = "weft route compute rail-1024\nweft route compute site.topo --fail random:1:7 -o json\n"
                "weft route compute site.topo --engine updn --fail 'leaf-1[33]' --dump-lft after.lft\n"},
    {.name = "route adaptive",
     .args = "",
     .options = "limit watch",
     .run = cmd_route_adaptive,
     .doc = "switches that were asked whether they route adaptively, and what they said",
     .more = "STATE: on; off; none: the switch does not have it; left: it is let be, WHY says why.\n"
             "Empty unless routing.experimental_adaptive_routing is on.\n",
     .example = "weft route adaptive\n"},
    {.name = "route quality",
     .args = "[FILE|NAME]",
     .max_args = 1,
     .options = "engine fail watch",
     .run = cmd_route_quality,
     .doc = "how well routes spread traffic: of the fabric, or computed for a saved one",
     .more =
         "Flows of a pattern all send at once. MEAN: what one gets, 1 where it meets no other. WORST: the "
         "worst\n"
         "pattern's mean. MAX LOAD: most flows on one cable between switches; FULLEST CABLE names it. "
         "/MEAN:\n"
         "beside the mean load of such cables. IDEAL: with the whole blueprint there. BEFORE: with the "
         "tables\n"
         "before these, if they were in force long enough to be rated, or without the failures of --fail.\n"
         "  same_rail_shift  each host to one further on its rail\n"
         "  slot_shift       each host to the next scalable unit on its rail, by all numbers of slots\n"
         "  ring             each host to its own slot there\n"
         "  alltoall         every host to every other, exactly\n"
         "  shift, permutation   random ones, the same each time\n"
         "Figures are those of the tables, as if no switch routed adaptively.\n",
     .example = "weft route quality\nweft route quality site.topo --fail random:1:7\n"},
    {.name = "route job",
     .args = "HOSTS [FILE|NAME]",
     .min_args = 1,
     .max_args = 2,
     .options = "fail",
     .run = cmd_route_job,
     .doc = "what a job's rings, trees and all-to-all would meet, and the cables to blame",
     .more = "HOSTS in the order of the job's ranks: gpu-0001,gpu-0007 or gpu-[0001-0064,0100]; @FILE: names "
             "in\n"
             "a file, apart by blanks or commas; @-: on stdin. A host is called what its adapters are "
             "(\"gpu-0412\"\n"
             "of \"gpu-0412 mlx5_3\"). Without FILE or NAME on the tables in force.\n"
             "MEAN, WORST: what a flow gets beside what its hosts' own cables leave it; 1: no cable between\n"
             "switches holds it back. HELD BACK BY: how many cables do, and below the fullest of them.\n"
             "Exit code: 1 when flows do not arrive.\n",
     .example = "weft route job gpu-[0001-0032]\nweft route job @hosts.txt site.topo\n"
                "weft route job @hosts.txt --fail spine-01\n"},
    {.name = "whatif",
     .args = "[FILE|NAME]",
     .max_args = 1,
     .options = "fail drain add engine",
     .run = cmd_whatif,
     .doc = "what failures, maintenance or additions would do; nothing touches the fabric",
     .more =
         "Says who would be cut off, proves the routes that the manager would come to, rates them beside "
         "those\n"
         "before and the ideal ones, counts what would be written, and names what must not fail too then.\n"
         "ELEMENT: NODE; NODE[PORT], also NODE[1-4,7]; names with * and ?, also with [PORTS]; fields (rail, "
         "su,\n"
         "tier, plane, role, type, name) as rail=3 or role=spine,name=*-0?: switches, unless role or type "
         "say\n"
         "adapters; random:PERCENT:SEED of the trunks.\n"
         "--drain: cables stay alive and carry only what has no other way; a NODE means all its cables. "
         "DRAINED IN\n"
         "VAIN: adapters hang on nothing else, and pulling these cables cuts them off.\n"
         "--add: link:A[PORT]-B[PORT], a cable between free ports; node-like:NODE=NEWNAME, a switch, an "
         "adapter or\n"
         "a host (with all its adapters) cabled like NODE to free ports of its neighbours (a switch without "
         "hosts;\n"
         "node-like-hosts: with adapters like those on it); su or su:NUMBER, another scalable unit like the "
         "largest\n"
         "or this one, on free ports of the switches above.\n"
         "FILE, NAME: as of route compute; without it the fabric as it is now, with its tables in force.\n"
         "AFTER: what comes when it fails, is drained or is plugged in; ACCEPTED: when the blueprint has "
         "what is\n"
         "added and routes are computed anew. A flow that fails, or whose end is cut off, counts as 0 in "
         "both.\n"
         "Figures are those of the tables, as if no switch routed adaptively.\n"
         "Exit code: 1 when anybody would be cut off (in vain: once cables are pulled), the routes are not "
         "proved,\n"
         "or there is no room for what is added.\n",
     .example = "weft whatif --fail spine-01\nweft whatif --drain 'leaf-su01-rail0[33-48]' --fail spine-02\n"
                "weft whatif --add su rail-768\nweft whatif --fail 'role=leaf,rail=3' site.topo -o json\n"},
    {.name = "reroute",
     .args = "",
     .options = "apply wait",
     .run = cmd_reroute,
     .doc = "what routes balanced anew on what is there would move and gain; do it with --apply",
     .more =
         "What is there becomes the blueprint, with hosts that are away in their places on leaves that are\n"
         "there; it is accepted, so that a cable that comes back later is growth. Routes are computed anew "
         "for\n"
         "it, proved, and written in waves. Without --apply nothing changes.\n"
         "Exit code: 1 when the routes could not be proved.\n",
     .example = "weft reroute\nweft reroute --apply --wait\n"},
    {.name = "blueprint show",
     .args = "",
     .options = "watch",
     .run = cmd_blueprint_show,
     .doc = "what the fabric is meant to be, and what is away, new or elsewhere",
     .more =
         "learning: what is seen becomes part of it. accepted: it is fixed; new hosts on its leaves become "
         "part\n"
         "of it as long as no other host's routes move for them, all else is routed and reported as "
         "growth.\n",
     .example = "weft blueprint show\nweft blueprint show -o json | jq .missing_links\n"},
    {.name = "blueprint accept",
     .args = "",
     .options = "check no-wait",
     .run = cmd_blueprint_accept,
     .doc = "fix the blueprint, with all that is seen now part of it",
     .more = "--check only says what would come in, be dropped, and move.\n",
     .example = "weft blueprint accept --check\nweft blueprint accept\n"},
    {.name = "blueprint learn",
     .args = "",
     .options = "check no-wait",
     .run = cmd_blueprint_learn,
     .doc = "let what is seen become part of the blueprint again",
     .example = "weft blueprint learn\n"},
    {.name = "blueprint set",
     .args = "FILE",
     .min_args = 1,
     .max_args = 1,
     .options = "check force no-wait",
     .run = cmd_blueprint_set,
     .doc = "give the blueprint as a file, with what is to come in it",
     .more = "FILE: a topology as ibnetdiscover, ibdiagnet and others write it, by the devices' real GUIDs;\n"
             "LIDs in it count for nothing. One that has less than half of the fabric's switches is refused\n"
             "without --force. --check only says what would come in, be dropped, and move.\n",
     .example = "weft blueprint set planned.topo --check\n"},
    {.name = "blueprint strike",
     .args = "NODE|NODE[PORT]",
     .min_args = 1,
     .max_args = 1,
     .options = "apply no-wait",
     .run = cmd_blueprint_strike,
     .doc = "take out of the blueprint what is gone for good; do it with --apply",
     .more = "A node with its cables and what hung on it alone, or one cable, by either end. What is there "
             "cannot be\n"
             "struck out. Without --apply nothing changes.\n",
     .example = "weft blueprint strike spine-3\nweft blueprint strike 'leaf-1[33]' --apply\n"},
    {.name = "blueprint save",
     .args = "FILE",
     .min_args = 1,
     .max_args = 1,
     .options = "",
     .run = cmd_blueprint_save,
     .doc = "write the blueprint to a file, as ibnetdiscover does",
     .example = "weft blueprint save site.topo\n"},
    {.name = "resweep",
     .args = "",
     .options = "wait",
     .run = cmd_resweep,
     .doc = "discover the whole fabric again",
     .example = "weft resweep --wait 60\n"},
    {.name = "export",
     .args = "FORM [FILE|NAME]",
     .min_args = 1,
     .max_args = 2,
     .options = "to rail match",
     .run = cmd_export,
     .doc = "the fabric in the form of another program",
     .more =
         "FORM: slurm (topology.conf), slurm-yaml (topology.yaml, Slurm 25.05 and later: one topology by\n"
         "scalable units, one for each rail), json (the graph, in node-link form), ibnetdiscover, lst (for\n"
         "ibdmchk), lft and fdbs (the tables in force, as OpenSM dumps them). For Slurm hosts that are down\n"
         "are there too; parts that no cable joins get no common switch; an empty file is never written.\n",
     .example =
         "weft export slurm --to /etc/slurm/topology.conf\n"
         "weft export slurm --rail 0 --match 'gpu-*'\nweft export json rail-256 | jq '.links | length'\n"},
    {.name = "event",
     .args = "[FOCUS...]",
     .max_args = 16,
     .options = "follow kind focus since until limit",
     .run = cmd_event,
     .doc = "what happened, oldest first (the last 100 unless --since or --limit say)",
     .more = "--follow goes on until it is interrupted, and takes up the stream again where it broke off.\n"
             "With -o json each event is an object on a line of its own.\n"
             "FOCUS: severity=warning|error, kind=link-*, text~flap; a bare word is a node, port or host "
             "that an event\n"
             "is about or speaks of.\n",
     .example = "weft event --since 2h\nweft event --since 12:00 --until 12:30 leaf-1 'severity!=info'\n"
                "weft event --follow --kind link-removed -o json\n",
     .own_fields = event_focus_fields},
    {.name = "sweep",
     .args = "[ID]",
     .max_args = 1,
     .options = "limit watch",
     .run = cmd_sweep,
     .doc = "the last sweeps, newest first; or one, phase by phase, with what had happened",
     .more =
         "READ: devices that were read. REPAIR: seconds from the trap or light sweep that led to it to the "
         "last\n"
         "table block. BLOCKS: table blocks written. PATHS: (leaf switch, destination) pairs whose route is "
         "another\n"
         "one now.\n",
     .example = "weft sweep --limit 5\n"},
    {.name = "finding",
     .args = "[FOCUS...]",
     .max_args = 16,
     .options = "severity limit watch",
     .run = cmd_finding,
     .doc = "what is not as it should be, worst first",
     .more = FOCUS_MORE "Exit code: 1 when there is one of severity error.\n",
     .own_fields = finding_focus_fields,
     .example = "weft finding --severity warning\n"},
    {.name = "group",
     .args = "[MGID|MLID]",
     .max_args = 1,
     .options = "limit watch",
     .run = cmd_group,
     .doc = "multicast groups; or one with its members",
     .more = "An MLID that several groups share means the first of them.\n",
     .example = "weft group\nweft group ff12:401b:ffff::ffff:ffff\nweft group 0xc000 -o json\n"},
    {.name = "sim show",
     .args = "",
     .options = "watch",
     .run = cmd_sim_show,
     .doc = "how a simulated fabric stands: datagrams, traps, other managers, hosts",
     .example = "weft sim show\n"},
    {.name = "sim link",
     .args = "down|up|flap|enable NODE[PORT]",
     .min_args = 2,
     .max_args = 3,
     .options = "times gap for width speed",
     .run = cmd_sim,
     .doc = "a simulated cable goes out, comes back, does both several times; a width or speed is enabled",
     .more = PLACE_MORE "flap: out for 10 ms, in for 10 ms, once, unless --times, --gap and --for say else.\n"
                        "enable takes --width and --speed; they count from the link's next training on.\n",
     .example = "weft sim link down 'leaf-1[33]'\nweft sim link flap 'leaf-1[33]' --times 5 --gap 10ms\n"
                "weft sim link enable 'leaf-1[33]' --speed EDR && weft sim link flap 'leaf-1[33]'\n"},
    {.name = "sim cable",
     .args = "move|swap A[PORT] B[PORT]",
     .min_args = 3,
     .max_args = 3,
     .options = "",
     .run = cmd_sim,
     .doc = "the far end of the cable at A goes into B; or the cables at A and B exchange their far ends",
     .more = PLACE_MORE,
     .example =
         "weft sim cable swap 'leaf-1[33]' 'leaf-2[33]'\nweft sim cable move gpu-0001:3 'leaf-1[40]'\n"},
    {.name = "sim node",
     .args = "kill|revive|reboot|slow|name NODE [WHAT]",
     .min_args = 2,
     .max_args = 3,
     .options = "for mute",
     .run = cmd_sim,
     .doc = "end, revive, reboot, slow down or rename a node of a simulated fabric",
     .more =
         NODE_MORE "kill: its agent stops answering, its links stay up. reboot: it forgets all; --for: its "
                   "links are down\n"
                   "so long, --mute: its agent is silent so long. slow: WHAT times slower, or --for more a "
                   "request. name:\n"
                   "WHAT is the new NodeDescription.\n",
     .example = "weft sim node reboot spine-1 --for 2s --mute 5s\nweft sim node slow spine-1 20\n"},
    {.name = "sim switch",
     .args = "reboot NODE",
     .min_args = 2,
     .max_args = 2,
     .options = "for mute",
     .run = cmd_sim,
     .doc = "a simulated switch reboots: tables, LID and states are gone",
     .example = "weft sim switch reboot spine-1\n"},
    {.name = "sim hosts",
     .args = "on|off",
     .min_args = 1,
     .max_args = 1,
     .options = "spread paths",
     .run = cmd_sim,
     .doc = "adapters of a simulated fabric behave like Linux hosts with IPoIB: join groups, ask for paths",
     .more = "weft sim show counts them.\n",
     .example = "weft sim hosts on --spread 2s --paths 0.1\n"},
    {.name = "sim host",
     .args = "reboot NODE [NAME]",
     .min_args = 2,
     .max_args = 3,
     .options = "for orderly",
     .run = cmd_sim,
     .doc = "the computer around a simulated adapter reboots while the adapter keeps its link",
     .more = "NAME is its NodeDescription meanwhile; --for: how long it takes (10 s).\n",
     .example = "weft sim host reboot gpu-0001:3 --for 5s\n"},
    {.name = "sim adapter",
     .args = "replace NODE [GUID]",
     .min_args = 2,
     .max_args = 3,
     .options = "for",
     .run = cmd_sim,
     .doc = "another device takes a simulated node's place, on the same cables",
     .more = "GUID: of the new one; else a free one is taken. --for: how long its links are down (1 s).\n",
     .example = "weft sim adapter replace gpu-0001:3\n"},
    {.name = "sim guid",
     .args = "duplicate|restore|system NODE [OTHER|GUID]",
     .min_args = 2,
     .max_args = 3,
     .options = "",
     .run = cmd_sim,
     .doc = "a simulated node shows another's GUIDs, its own again, or a new SystemImageGUID",
     .example = "weft sim guid duplicate gpu-0001:3 gpu-0002:3\nweft sim guid restore gpu-0001:3\n"},
    {.name = "sim key",
     .args = "set|clear NODE[PORT] [KEY]",
     .min_args = 2,
     .max_args = 3,
     .options = "protect lease",
     .run = cmd_sim,
     .doc = "a simulated end port has an M_Key that the manager did not set",
     .more = PLACE_MORE "--protect 0 to 3 (1), --lease in seconds (0: for ever).\n",
     .example = "weft sim key set gpu-0001:3 0x1234 --protect 2\nweft sim key clear gpu-0001:3\n"},
    {.name = "sim trap",
     .args = "raise|lose|loss NODE[PORT]|SHARE [NUMBER|COUNT]",
     .min_args = 2,
     .max_args = 3,
     .options = "",
     .run = cmd_sim,
     .doc = "a simulated node sends a trap; traps of a node, or a share of all, are lost",
     .more =
         PLACE_MORE "raise NODE[PORT] NUMBER: 128, 129 to 131, 144, 145, 256 to 259. lose NODE [COUNT]: the "
                    "next ones, or all;\n"
                    "COUNT 0: none any more.\n",
     .example =
         "weft sim trap raise 'leaf-1[33]' 129\nweft sim trap lose leaf-1 1\nweft sim trap loss 50%\n"},
    {.name = "sim set",
     .args = "ignore|keep NODE ATTRIBUTE|FIELD",
     .min_args = 3,
     .max_args = 3,
     .options = "",
     .run = cmd_sim,
     .doc = "a simulated node answers a Set with success and does not keep it",
     .more = "ATTRIBUTE: such as LinearForwardingTable; FIELD: of PortInfo or SwitchInfo, such as "
             "subnet_timeout.\n",
     .example = "weft sim set ignore spine-1 LinearForwardingTable\nweft sim set keep spine-1 "
                "LinearForwardingTable\n"},
    {.name = "sim sm",
     .args = "add|set|remove|control NODE[PORT] [CONTROL LID]",
     .min_args = 2,
     .max_args = 4,
     .options = "priority state sm-key sm-guid frozen silent quiet poll misses",
     .run = cmd_sim,
     .doc = "another subnet manager at an adapter of a simulated fabric: it comes, changes, goes",
     .more = PLACE_MORE
     "It answers SMInfo, and as a standby takes over when the master is gone (--poll, --misses); "
     "it does\n"
     "nothing to the fabric. CONTROL: handover, acknowledge, disable, standby or discover, sent "
     "to LID.\n"
     "weft sim show lists them.\n",
     .example =
         "weft sim sm add gpu-0001:3 --priority 15 --state master\nweft sim sm set gpu-0001:3 --silent\n"
         "weft sim sm remove gpu-0001:3\n"},
    {.name = "sim traffic",
     .args = "PATTERN|stop|list [ID]",
     .min_args = 1,
     .max_args = 2,
     .options = "hosts receivers load shift fan level window on off seed as",
     .run = cmd_sim_traffic,
     .doc = "hosts of a simulated fabric send data, so that counters move and ports wait; what goes on",
     .more = "PATTERN: ring (each to the next host of its rail, as all-reduce does), all-to-all, incast (all "
             "to the\n"
             "receivers), storage (the same in bursts, 5 s on and 15 s off), shift (each to the host --shift "
             "further\n"
             "on its rail), random (a permutation), balanced (half a rail further at 80 %: high load that "
             "need not\n"
             "wait), idle (a trickle). Packets go along the tables as they are programmed, over links with "
             "credits;\n"
             "several patterns add up. list also shows what ports wait for, by the simulation itself.\n",
     .example = "weft sim traffic ring --load 80%\n"
                "weft sim traffic incast --hosts 'gpu-[0001-0016]' --receivers gpu-0020:3\n"
                "weft sim traffic list\nweft sim traffic stop\n"},
    {.name = "sim receiver",
     .args = "NODE[PORT]",
     .min_args = 1,
     .max_args = 1,
     .options = "takes",
     .run = cmd_sim,
     .doc = "a host of a simulated fabric takes what arrives at a share of its link's rate",
     .more = NODE_MORE "--takes 0: it takes nothing, no credits come back. 100%: all is well again.\n",
     .example = "weft sim receiver gpu-0001:3 --takes 20%\n"},
    {.name = "sim errors",
     .args = "NODE[PORT]",
     .min_args = 1,
     .max_args = 2,
     .options = "symbol ber raw-ber uncorrectable recovery receive remote integrity overrun discard vl15",
     .run = cmd_sim,
     .doc = "a port of a simulated fabric receives with errors that come by chance",
     .more = PLACE_MORE "Rates are averages: 5/h, 3/min, 0.2/s; 0: no more. The port that is named counts "
                        "them;\nrecoveries are counted by both ends of its cable.\n",
     .example = "weft sim errors 'leaf-1[33]' --symbol 200/h --recovery 2/h\n"
                "weft sim errors 'leaf-1[33]' --ber 1e-13\n"},
    {.name = "sim module",
     .args = "NODE[PORT]",
     .min_args = 1,
     .max_args = 2,
     .options = "celsius rx tx fault",
     .run = cmd_sim,
     .doc = "what the transceiver at a port of a simulated fabric measures",
     .more =
         PLACE_MORE "What is not given is well: 45 C, 0 dBm. Light is in dBm: 0 is a milliwatt, -10 a tenth "
                    "of it, 3 twice as much.\nweftd sees it as ibdiagnet would tell it, unless "
                    "telemetry.cable_file is set.\n",
     .example = "weft sim module 'leaf-1[33]' --rx -12.5\n"},
    {.name = "sim device",
     .args = "NODE",
     .min_args = 1,
     .max_args = 1,
     .options = "celsius fans supplies",
     .run = cmd_sim,
     .doc = "what a device of a simulated fabric measures: temperature, fans, power supplies",
     .more = NODE_MORE "What is not given is well: 50 C, 8 fans and 2 power supplies that do their work. "
                       "weftd sees it\nas ibdiagnet would tell it, unless telemetry.cable_file is set.\n",
     .example = "weft sim device spine-1 --fans 2\n"},
    {.name = "sim play",
     .args = "FILE",
     .min_args = 1,
     .max_args = 1,
     .options = "check",
     .run = cmd_sim_play,
     .doc = "commands of weft sim from a file, each at its time",
     .more = "A line is a time and what would stand behind weft sim: 90s link flap leaf-1[33]. Times are "
             "counted\n"
             "from the start; +10s from the line before. # begins a comment. --check only reads the file.\n",
     .example = "weft sim play etc/sim/bad-day.txt\n"},
    {.name = "sim loss",
     .args = "SHARE",
     .min_args = 1,
     .max_args = 1,
     .options = "",
     .run = cmd_sim,
     .doc = "lose this share of management packets on a simulated fabric: 0 to 1, or 1%",
     .example = "weft sim loss 5%\n"},
    {.name = "mad",
     .args = "",
     .options = "limit watch",
     .run = cmd_mad,
     .doc = "counters of management packets by method and attribute",
     .example = "weft mad -o csv\n"},
    {.name = "api",
     .args = "METHOD PATH [JSON]",
     .min_args = 2,
     .max_args = 3,
     .options = "",
     .run = cmd_api,
     .doc = "a request to the REST API as it is; the answer on stdout",
     .more = "PATH may leave out /api/v1. doc/api.md and GET /openapi.json describe the API.\n",
     .example = "weft api GET /status\nweft api POST /fabrics/default/resweep\n"},
    {.name = "help",
     .args = "[COMMAND]",
     .max_args = 3,
     .options = "markdown completion",
     .run = cmd_help,
     .doc = "this list, or help on a command",
     .example = "weft help route compute\n"},
    {0},
};
