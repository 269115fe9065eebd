// SPDX-License-Identifier: Apache-2.0
#include "daemon/config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/arena.h"
#include "lib/err.h"
#include "lib/guid.h"

static const char *const level_names[] = {"error", "warning", "notice", "remote", "debug", NULL};
static const char *const engine_names[] = {"auto", "updn", "minhop", "file", "rail", "sssp", NULL};
static const char *const isolation_names[] = {"off", "propose", "auto", NULL};
static const char *const isolation_hosts_names[] = {"never", "spare", "all", NULL};
static const char *const sim_state_names[] = {"factory", "file", NULL};
static const char *const compat_names[] = {"none", "guilbaults", NULL};
static const char *const severity_options[] = {"info", "minor", "major", "critical", NULL};
static const char *const sim_time_names[] = {"real", "virtual", NULL};

#define AT(member) offsetof(struct config, member)
#define INTERVAL_LEAST (100 * MONO_MS) // between readings of the same counters

static const struct opt_row fabric_rows[] = {
    {.name = "name",
     .type = OPT_STRING,
     .offset = offsetof(struct config_fabric, name),
     .def = "default",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Name of the fabric in the database, the API and the command line"},
    {.name = "port",
     .type = OPT_STRING,
     .offset = offsetof(struct config_fabric, port),
     .def = "",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Local InfiniBand port as device or device/number, such as mlx5_0/1; empty takes the first "
            "InfiniBand port that is not down"},
    {.name = "simulate",
     .type = OPT_STRING,
     .offset = offsetof(struct config_fabric, simulate),
     .def = "",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Run on a simulated fabric instead of a port: a name such as rail-1024 or ft3-64-8, or a "
            "topology file"},
    {0},
};

static const struct opt_row sm_rows[] = {
    {.name = "priority",
     .type = OPT_INT,
     .offset = AT(priority),
     .min = 0,
     .max = 15,
     .def = "8",
     .reload = OPT_RELOAD_LIVE,
     .doc = "Priority in the election of the master; the highest wins, the lowest GUID breaks ties"},
    {.name = "sm_key",
     .type = OPT_GUID,
     .offset = AT(sm_key),
     .def = "0x1",
     .reload = OPT_RELOAD_RESTART,
     .doc = "SM_Key shown to other subnet managers; managers with different keys do not elect a master "
            "(OpenSM's default is 1)"},
    {.name = "poll_interval",
     .type = OPT_DURATION,
     .offset = AT(poll_interval),
     .min = 100e6,
     .max = 60e9,
     .def = "1s",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Time between two questions (SMInfo) to another subnet manager; one that leaves three in a row "
            "unanswered is gone, and a standby takes over then"},
    {.name = "subnet_prefix",
     .type = OPT_GUID,
     .offset = AT(subnet_prefix),
     .def = "0xfe80000000000000",
     .reload = OPT_RELOAD_RESWEEP,
     .doc = "GidPrefix of every end port"},
    {.name = "sweep_interval",
     .type = OPT_DURATION,
     .offset = AT(sweep_interval),
     .min = 0,
     .max = 3600e9,
     .def = "1s",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Time between light sweeps: one SwitchInfo per switch and one request per listed exception; 0s "
            "turns them off"},
    {.name = "audit_interval",
     .type = OPT_DURATION,
     .offset = AT(audit_interval),
     .min = 0,
     .max = 86400e9,
     .def = "10m",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Time in which the audit reads everything once more, spread evenly, to find and repair what was "
            "changed behind weft's back; 0s turns it off. It needs light sweeps"},
    {.name = "subnet_timeout",
     .type = OPT_INT,
     .offset = AT(subnet_timeout),
     .min = 0,
     .max = 31,
     .def = "18",
     .unit = "4.096 us x 2^n",
     .reload = OPT_RELOAD_RESWEEP,
     .doc = "PortInfo.SubnetTimeOut; it also sets how often a lost trap is repeated"},
    {.name = "packet_life",
     .type = OPT_INT,
     .offset = AT(packet_life),
     .min = 0,
     .max = 31,
     .def = "18",
     .unit = "4.096 us x 2^n",
     .reload = OPT_RELOAD_RESWEEP,
     .doc = "SwitchInfo.LifeTimeValue; 20 and above never drop"},
    {.name = "hoq_life_switch",
     .type = OPT_INT,
     .offset = AT(hoq_life_switch),
     .min = 0,
     .max = 31,
     .def = "18",
     .unit = "4.096 us x 2^n",
     .reload = OPT_RELOAD_RESWEEP,
     .doc = "PortInfo.HOQLife of ports towards switches"},
    {.name = "hoq_life_host",
     .type = OPT_INT,
     .offset = AT(hoq_life_host),
     .min = 0,
     .max = 31,
     .def = "16",
     .unit = "4.096 us x 2^n",
     .reload = OPT_RELOAD_RESWEEP,
     .doc = "PortInfo.HOQLife of ports towards adapters and routers"},
    {.name = "vl_stall_count",
     .type = OPT_INT,
     .offset = AT(vl_stall_count),
     .min = 1,
     .max = 7,
     .def = "7",
     .reload = OPT_RELOAD_RESWEEP,
     .doc = "PortInfo.VLStallCount"},
    {.name = "max_vls",
     .type = OPT_INT,
     .offset = AT(max_vls),
     .min = 1,
     .max = 5,
     .def = "5",
     .unit = "code: 1 = VL0 .. 5 = VL0-14",
     .reload = OPT_RELOAD_RESWEEP,
     .doc = "Most operational VLs that are negotiated; a live link's are never changed"},
    {.name = "lmc",
     .type = OPT_INT,
     .offset = AT(lmc),
     .min = 0,
     .max = 7,
     .def = "0",
     .reload = OPT_RELOAD_RESTART,
     .doc =
         "Every adapter port gets 2^lmc LIDs, each with a path of its own; ports whose LID is not a multiple "
         "of that get another one"},
    {.name = "phy_errors",
     .type = OPT_INT,
     .offset = AT(phy_errors),
     .min = 0,
     .max = 15,
     .def = "8",
     .reload = OPT_RELOAD_RESWEEP,
     .doc = "PortInfo.LocalPhyErrors, the threshold of trap 129"},
    {.name = "overrun_errors",
     .type = OPT_INT,
     .offset = AT(overrun_errors),
     .min = 0,
     .max = 15,
     .def = "8",
     .reload = OPT_RELOAD_RESWEEP,
     .doc = "PortInfo.OverrunErrors, the threshold of trap 130"},
    {0},
};

static const struct opt_row routing_rows[] = {
    {.name = "engine",
     .type = OPT_ENUM,
     .offset = AT(engine),
     .names = engine_names,
     .def = "auto",
     .reload = OPT_RELOAD_RESTART,
     .doc =
         "Routing engine; auto chooses and says why. sssp takes shortest paths on any topology over virtual "
         "lanes; minhop may leave credit loops: see allow_credit_loops"},
    {.name = "lanes",
     .type = OPT_INT,
     .offset = AT(lanes),
     .min = 0,
     .max = 8,
     .def = "0",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Virtual lanes that sssp may use at most; 0 = as many as every cable between switches has"},
    {.name = "roots",
     .type = OPT_STRINGS,
     .offset = AT(roots),
     .reload = OPT_RELOAD_RESTART,
     .doc = "NodeGUIDs of the root switches of rail and updn; empty derives them from the topology"},
    {.name = "lft_file",
     .type = OPT_STRING,
     .offset = AT(lft_file),
     .def = "",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Tables for engine file, in the form of OpenSM's dump"},
    {.name = "adopt",
     .type = OPT_BOOL,
     .offset = AT(adopt),
     .def = "true",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Keep tables that are found on the switches at start when they are proved; weft reroute --apply "
            "replaces them"},
    {.name = "allow_credit_loops",
     .type = OPT_BOOL,
     .offset = AT(allow_credit_loops),
     .def = "false",
     .reload = OPT_RELOAD_RESTART,
     .doc =
         "Program tables although the proof finds a cycle of buffer dependencies, which can stop the fabric"},
    {.name = "experimental_adaptive_routing",
     .type = OPT_BOOL,
     .offset = AT(adaptive),
     .def = "false",
     .reload = OPT_RELOAD_RESTART,
     .doc =
         "NVIDIA switches choose among the ports of proved groups. Experimental: on simulated fabrics only; "
         "hardware needs the next option too"},
    {.name = "experimental_adaptive_routing_unverified",
     .type = OPT_BOOL,
     .offset = AT(adaptive_unverified),
     .def = "false",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Adaptive routing on hardware as well, although how weft addresses the vendor's tables was never "
            "seen to be right there: for a laboratory, never for a fabric in use"},
    {0},
};

static const struct opt_row mad_rows[] = {
    {.name = "window",
     .type = OPT_INT,
     .offset = AT(window),
     .min = 1,
     .max = 4096,
     .def = "256",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Management datagrams on the wire at once, in all"},
    {.name = "device_window",
     .type = OPT_INT,
     .offset = AT(device_window),
     .min = 1,
     .max = 64,
     .def = "16",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Most of them to one device; it starts at 4, grows on success and shrinks on loss"},
    {.name = "timeout",
     .type = OPT_DURATION,
     .offset = AT(timeout),
     .min = 10e6,
     .max = 10e9,
     .def = "200ms",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Wait for the first try of a request to a device that has not answered yet"},
    {.name = "retries",
     .type = OPT_INT,
     .offset = AT(retries),
     .min = -1,
     .max = 15,
     .def = "-1",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Tries after the first; -1 is the engine's own choice"},
    {0},
};

static const struct opt_row events_rows[] = {
    {.name = "keep_days",
     .type = OPT_INT,
     .offset = AT(events_keep_days),
     .min = 1,
     .max = 36500,
     .def = "90",
     .unit = "days",
     .reload = OPT_RELOAD_LIVE,
     .doc = "Older events are deleted, once a day; the newest million are kept at most"},
    {0},
};

static const struct opt_row metrics_rows[] = {
    {.name = "compat",
     .type = OPT_ENUM,
     .offset = AT(metrics_compat),
     .names = compat_names,
     .def = "none",
     .reload = OPT_RELOAD_RESTART,
     .doc = "guilbaults: /metrics also has counters under the names of infiniband-exporter by guilbaults "
            "(infiniband_portxmitdata_total and so on), for dashboards made for it"},
    {0},
};

static const struct opt_row remote_write_rows[] = {
    {.name = "url",
     .type = OPT_STRING,
     .offset = AT(remote_write_url),
     .def = "",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Where all counters are sent as Prometheus remote write 1.0, such as "
            "http://prometheus:9090/api/v1/write; empty: nowhere"},
    {.name = "bearer_token_file",
     .type = OPT_STRING,
     .offset = AT(remote_write_token_file),
     .def = "",
     .reload = OPT_RELOAD_RESTART,
     .doc = "File with the token to show there; it is read each time"},
    {.name = "ca_file",
     .type = OPT_STRING,
     .offset = AT(remote_write_ca_file),
     .def = "",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Certificates (PEM) to trust instead of the system's"},
    {.name = "labels",
     .type = OPT_STRINGS,
     .offset = AT(remote_write_labels),
     .max = 32,
     .reload = OPT_RELOAD_RESTART,
     .doc = "Labels of every series sent, each as name=value, such as cluster=a"},
    {.name = "interval",
     .type = OPT_DURATION,
     .offset = AT(remote_write_interval),
     .min = 100e6,
     .max = 3600e9,
     .def = "30s",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Time between two looks for what is new: what was read meanwhile is sent together"},
    {.name = "backfill",
     .type = OPT_DURATION,
     .offset = AT(remote_write_backfill),
     .min = 0,
     .max = 31 * 86400e9,
     .def = "1h",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Age of the oldest counters sent when it is used for the first time"},
    {0},
};

static const struct opt_row notify_rows[] = {
    {.name = "alertmanager_url",
     .type = OPT_STRINGS,
     .offset = AT(notify_alertmanager),
     .max = 16,
     .reload = OPT_RELOAD_RESTART,
     .doc = "Alertmanagers that alarms are sent to, such as http://alertmanager:9093; all of a cluster"},
    {.name = "webhook_url",
     .type = OPT_STRINGS,
     .offset = AT(notify_webhook),
     .max = 16,
     .reload = OPT_RELOAD_RESTART,
     .doc =
         "Where each alarm that is raised, changed or over is POSTed, in the JSON of Alertmanager's API v2"},
    {.name = "syslog",
     .type = OPT_STRINGS,
     .offset = AT(notify_syslog),
     .max = 16,
     .reload = OPT_RELOAD_RESTART,
     .doc = "Where alarms are logged (RFC 5424): udp://host:514, tcp://host:601 (octet counting), "
            "unix:/dev/log"},
    {.name = "bearer_token_file",
     .type = OPT_STRING,
     .offset = AT(notify_token_file),
     .def = "",
     .reload = OPT_RELOAD_RESTART,
     .doc = "File with the token to show to Alertmanager and webhooks; it is read each time"},
    {.name = "ca_file",
     .type = OPT_STRING,
     .offset = AT(notify_ca_file),
     .def = "",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Certificates (PEM) to trust instead of the system's"},
    {.name = "external_url",
     .type = OPT_STRING,
     .offset = AT(notify_external_url),
     .def = "",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Where people reach weft's HTTP, for links in notifications; empty: http_address and http_port"},
    {.name = "severity",
     .type = OPT_ENUM,
     .offset = AT(notify_severity),
     .names = severity_options,
     .def = "minor",
     .reload = OPT_RELOAD_RESTART,
     .doc = "The least severity that Alertmanager and webhooks are told of"},
    {.name = "facility",
     .type = OPT_INT,
     .offset = AT(notify_facility),
     .min = 0,
     .max = 23,
     .def = "3",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Facility of syslog: 3 daemon, 16 to 23 local0 to local7"},
    {.name = "resend",
     .type = OPT_DURATION,
     .offset = AT(notify_resend),
     .min = 1e9,
     .max = 3600e9,
     .def = "1m",
     .reload = OPT_RELOAD_RESTART,
     .doc =
         "Alertmanager is told again of each alarm in this time, and ends by itself what it was not told of "
         "for four of them"},
    {.name = "replay",
     .type = OPT_DURATION,
     .offset = AT(notify_replay),
     .min = 60e9,
     .max = 31 * 86400e9,
     .def = "1d",
     .reload = OPT_RELOAD_RESTART,
     .doc = "After an outage webhooks and syslog get what they missed, up to this age"},
    {0},
};

static const struct opt_row telemetry_rows[] = {
    {.name = "interval",
     .type = OPT_DURATION,
     .offset = AT(telemetry_interval),
     .min = 0,
     .max = 3600e9,
     .def = "10s",
     .reload = OPT_RELOAD_RESTART,
     .doc =
         "Every port's counters are read once in this time, 100ms at least; what cannot be kept to is alarm "
         "W01; 0s: counters are not collected"},
    {.name = "errors_interval",
     .type = OPT_DURATION,
     .offset = AT(telemetry_errors_interval),
     .min = 0,
     .max = 3600e9,
     .def = "0s",
     .reload = OPT_RELOAD_RESTART,
     .doc =
         "Error counters are read this often between the sweeps too, such as 1s: one request a switch that "
         "can sum its ports up, and its ports only when a sum has changed; 100ms at least; 0s: with the "
         "sweep"},
    {.name = "detail_interval",
     .type = OPT_DURATION,
     .offset = AT(telemetry_detail_interval),
     .min = 1e9,
     .max = 86400e9,
     .def = "60s",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Counters of FEC, and what makes up receive errors and discards, are read once in this time"},
    {.name = "per_device",
     .type = OPT_INT,
     .offset = AT(telemetry_per_device),
     .min = 1,
     .max = 64,
     .def = "4",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Requests for counters at once to one switch or adapter"},
    {.name = "clear_saturated",
     .type = OPT_BOOL,
     .offset = AT(telemetry_clear_saturated),
     .def = "false",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Clear a counter in the device when it stands at its maximum and can count no further (only that "
            "one): for old devices without extended error counters. Other tools see the clear"},
    {.name = "keep_raw",
     .type = OPT_DURATION,
     .offset = AT(keep_raw),
     .min = 3600e9,
     .max = 3650 * 86400e9,
     .def = "1d",
     .reload = OPT_RELOAD_RESTART,
     .doc = "How long every sweep is kept"},
    {.name = "keep_minute",
     .type = OPT_DURATION,
     .offset = AT(keep_minute),
     .min = 3600e9,
     .max = 3650 * 86400e9,
     .def = "31d",
     .reload = OPT_RELOAD_RESTART,
     .doc = "How long one sample a minute is kept"},
    {.name = "keep_hour",
     .type = OPT_DURATION,
     .offset = AT(keep_hour),
     .min = 3600e9,
     .max = 3650 * 86400e9,
     .def = "366d",
     .reload = OPT_RELOAD_RESTART,
     .doc = "How long one sample an hour is kept"},
    {.name = "max_size",
     .type = OPT_SIZE,
     .offset = AT(telemetry_max_size),
     .min = 0,
     .max = 1e15,
     .def = "0",
     .reload = OPT_RELOAD_RESTART,
     .doc =
         "All that is kept of one fabric's counters is at most that big: the oldest goes first; 0 = no bound "
         "but age"},
    {.name = "cable_file",
     .type = OPT_STRING,
     .offset = AT(cable_file),
     .def = "",
     .reload = OPT_RELOAD_RESTART,
     .doc = "What ibdiagnet says of cables, modules and devices: ibdiagnet2.db_csv, ibdiagnet2.cables, or "
            "the folder "
            "that has both. Temperatures, optical power and its limits, serial numbers, vendors, fans, power "
            "supplies; read at start and when it changes; empty: no source"},
    {0},
};

static const struct opt_row health_rows[] = {
    {.name = "isolation",
     .type = OPT_ENUM,
     .offset = AT(isolation),
     .names = isolation_names,
     .def = "propose",
     .reload = OPT_RELOAD_LIVE,
     .doc = "Links that fail or flap: propose says which should carry no traffic and what stands against it; "
            "auto drains them, and gives them back when they were clean for isolation_clean"},
    {.name = "isolation_hosts",
     .type = OPT_ENUM,
     .offset = AT(isolation_hosts),
     .names = isolation_hosts_names,
     .def = "never",
     .reload = OPT_RELOAD_LIVE,
     .doc =
         "Links of hosts: never; spare: but never a host's last one; all. No route goes round such a link: "
         "it is said that it should be out of use, and a person does it"},
    {.name = "isolation_max_links",
     .type = OPT_INT,
     .offset = AT(isolation_max_links),
     .min = 0,
     .max = 1024,
     .def = "10",
     .reload = OPT_RELOAD_LIVE,
     .doc = "Never more links at once than this, or isolation_max_share, whichever is more"},
    {.name = "isolation_max_share",
     .type = OPT_DOUBLE,
     .offset = AT(isolation_max_share),
     .min = 0,
     .max = 100,
     .def = "0.5",
     .unit = "% of all links",
     .reload = OPT_RELOAD_LIVE,
     .doc = "See isolation_max_links"},
    {.name = "isolation_keep_uplinks",
     .type = OPT_DOUBLE,
     .offset = AT(isolation_keep_uplinks),
     .min = 0,
     .max = 100,
     .def = "75",
     .unit = "%",
     .reload = OPT_RELOAD_LIVE,
     .doc = "Every switch keeps this part of its links to the tier above; those that are down count as gone"},
    {.name = "isolation_per_week",
     .type = OPT_INT,
     .offset = AT(isolation_per_week),
     .min = 1,
     .max = 1000,
     .def = "2",
     .reload = OPT_RELOAD_LIVE,
     .doc = "A link that was isolated so often within a week is left to a person"},
    {.name = "isolation_clean",
     .type = OPT_DURATION,
     .offset = AT(isolation_clean),
     .min = 60e9,
     .max = 126 * 60e9,
     .def = "126m",
     .reload = OPT_RELOAD_LIVE,
     .doc = "Both ends must have been read without anything against the link for this time before it carries "
            "traffic again"},
    {0},
};

static const struct opt_row alarms_rows[] = {
    {.name = "known_sms",
     .type = OPT_STRINGS,
     .offset = AT(known_sms),
     .max = 64,
     .reload = OPT_RELOAD_RESTART,
     .doc =
         "PortGUIDs of other subnet managers that are meant to be there: they are no alarm, but that one of "
         "them is away is"},
    {0},
};

static const struct opt_row sim_rows[] = {
    {.name = "state",
     .type = OPT_ENUM,
     .offset = AT(sim_state),
     .names = sim_state_names,
     .def = "factory",
     .reload = OPT_RELOAD_RESTART,
     .doc = "How a simulated fabric begins: factory (no LIDs, ports in INIT) or as the file says"},
    {.name = "time",
     .type = OPT_ENUM,
     .offset = AT(sim_time),
     .names = sim_time_names,
     .def = "real",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Clock of a simulated fabric: real, or virtual (jumps from event to event)"},
    {.name = "seed",
     .type = OPT_INT,
     .offset = AT(sim_seed),
     .min = 0,
     .max = 9e15,
     .def = "1",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Seed of everything random in a simulated fabric"},
    {.name = "latency",
     .type = OPT_DURATION,
     .offset = AT(sim_latency),
     .min = 0,
     .max = 1e9,
     .def = "0s",
     .reload = OPT_RELOAD_RESTART,
     .doc = "One-way delay of a simulated link"},
    {.name = "service",
     .type = OPT_DURATION,
     .offset = AT(sim_service),
     .min = 0,
     .max = 1e9,
     .def = "0s",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Time that a simulated device takes for one request"},
    {.name = "loss",
     .type = OPT_DOUBLE,
     .offset = AT(sim_loss),
     .min = 0,
     .max = 1,
     .def = "0",
     .reload = OPT_RELOAD_LIVE,
     .doc = "Share of management datagrams that a simulated fabric loses"},
    {.name = "vl15_buffer",
     .type = OPT_INT,
     .offset = AT(sim_vl15_buffer),
     .min = 1,
     .max = 65536,
     .def = "64",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Management datagrams that a simulated device can hold"},
    {.name = "dead_nodes",
     .type = OPT_INT,
     .offset = AT(sim_dead_nodes),
     .min = 0,
     .max = 65536,
     .def = "0",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Nodes of a simulated fabric that never answer"},
    {.name = "adaptive_groups",
     .type = OPT_INT,
     .offset = AT(sim_adaptive_groups),
     .min = 0,
     .max = 4095,
     .def = "0",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Groups of ports that simulated switches have for adaptive routing; 0 = they do not have it"},
    {0},
};

const struct opt_row config_rows[] = {
    {.name = "log_level",
     .type = OPT_ENUM,
     .offset = AT(log_level),
     .names = level_names,
     .def = "remote",
     .reload = OPT_RELOAD_LIVE,
     .doc = "Most talkative level that is logged: error (weft failed), warning, notice (the fabric changed), "
            "remote (a peer misbehaves), debug"},
    {.name = "state_dir",
     .type = OPT_STRING,
     .offset = AT(state_dir),
     .def = "/var/lib/weft",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Folder of meta.db: LIDs, events"},
    {.name = "socket",
     .type = OPT_STRING,
     .offset = AT(socket),
     .def = "/run/weft/weft.sock",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Unix socket of the API; the weft command uses it"},
    {.name = "http_address",
     .type = OPT_STRING,
     .offset = AT(http_address),
     .def = "127.0.0.1",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Address of the HTTP API, which is read only; loopback unless you know better"},
    {.name = "http_port",
     .type = OPT_INT,
     .offset = AT(http_port),
     .min = 0,
     .max = 65535,
     .def = "8470",
     .reload = OPT_RELOAD_RESTART,
     .doc = "Port of the HTTP API; 0 turns it off"},
    {.name = "fabrics",
     .type = OPT_LIST,
     .offset = AT(fabrics),
     .sub = fabric_rows,
     .elem_size = sizeof(struct config_fabric),
     .reload = OPT_RELOAD_RESTART,
     .doc = "The fabrics to manage; without this list one, named default, on the first usable port"},
    {.name = "sm", .type = OPT_SECTION, .sub = sm_rows, .doc = "The InfiniBand subnet manager"},
    {.name = "routing", .type = OPT_SECTION, .sub = routing_rows, .doc = "Routes"},
    {.name = "mad", .type = OPT_SECTION, .sub = mad_rows, .doc = "Management datagrams"},
    {.name = "events", .type = OPT_SECTION, .sub = events_rows, .doc = "What happened, kept in meta.db"},
    {.name = "telemetry",
     .type = OPT_SECTION,
     .sub = telemetry_rows,
     .doc = "Counters of ports: reading, history"},
    {.name = "health", .type = OPT_SECTION, .sub = health_rows, .doc = "Links that go bad"},
    {.name = "alarms", .type = OPT_SECTION, .sub = alarms_rows, .doc = "What is an alarm"},
    {.name = "metrics", .type = OPT_SECTION, .sub = metrics_rows, .doc = "/metrics"},
    {.name = "remote_write",
     .type = OPT_SECTION,
     .sub = remote_write_rows,
     .doc = "Counters to Prometheus, VictoriaMetrics, Mimir or Thanos"},
    {.name = "notify", .type = OPT_SECTION, .sub = notify_rows, .doc = "Alarms to others"},
    {.name = "sim", .type = OPT_SECTION, .sub = sim_rows, .doc = "Simulated fabrics"},
    {0},
};

int config_load(struct config *c, struct arena *a, const char *path, struct err *e)
{
    opt_defaults(config_rows, c, a);
    if (path == NULL) {
        if (access(CONFIG_DEFAULT_PATH, F_OK) != 0)
            return 0;
        path = CONFIG_DEFAULT_PATH;
    }
    return opt_load_file(config_rows, c, a, path, e);
}

int config_parse_port(const char *text, struct arena *a, const char **ret_device, int *ret_num, struct err *e)
{
    const char *slash = strrchr(text, '/');
    char *end;

    *ret_device = NULL;
    *ret_num = 0;
    if (text[0] == 0)
        return 0;
    if (slash == NULL) {
        *ret_device = arena_strdup(a, text);
        return 0;
    }
    long n = strtol(slash + 1, &end, 10);
    if (slash == text || slash[1] == 0 || *end != 0 || n < 1 || n > 254)
        return err_set(e, -EINVAL, "port", "\"%s\" is not a port; write device/number, such as mlx5_0/1",
                       text);
    *ret_device = arena_strndup(a, text, (size_t)(slash - text));
    *ret_num = (int)n;
    return 0;
}

// A fabric's name is part of paths of the API and of keys of the database.
static bool name_is_plain(const char *s)
{
    size_t n = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-");
    return n > 0 && n <= 64 && s[n] == 0;
}

static int check_fabric(const struct config_fabric *f, size_t i, struct arena *a, struct err *e)
{
    const char *device;
    int num;

    if (!name_is_plain(f[i].name))
        return err_set(e, -EINVAL, "fabrics",
                       "the name of number %zu has to be 1 to 64 letters, digits, \".\", \"_\" and \"-\"",
                       i + 1);
    for (size_t k = 0; k < i; k++)
        if (strcmp(f[k].name, f[i].name) == 0)
            return err_set(e, -EINVAL, "fabrics",
                           "number %zu and number %zu are both named \"%s\"; LIDs are recorded by this name",
                           k + 1, i + 1, f[i].name);
    if (f[i].port[0] != 0 && f[i].simulate[0] != 0)
        return err_set(e, -EINVAL, "fabrics", "\"%s\" has a port and simulate; only one can be", f[i].name);
    return config_parse_port(f[i].port, a, &device, &num, e);
}

// A port takes a MAD of its device each time, and all of them a pass of the rules.
static int check_interval(const char *name, int64_t ns, struct err *e)
{
    if (ns == 0 || ns >= INTERVAL_LEAST)
        return 0;
    return err_set(e, -EINVAL, name, "%lld ms is too short: 100ms at least, or 0s for none",
                   (long long)(ns / MONO_MS));
}

int config_check(const struct config *c, struct err *e)
{
    struct arena *a = arena_new();
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < c->fabrics.n; i++)
        rc = check_fabric(c->fabrics.item, i, a, e);
    for (size_t i = 0; rc == 0 && i < c->known_sms.n; i++) {
        uint64_t guid;
        if (guid_parse(c->known_sms.item[i], &guid) != 0)
            rc = err_set(e, -EINVAL, "alarms.known_sms",
                         "\"%.60s\" is no GUID; write such as 0x0002c90300a1b2c3", c->known_sms.item[i]);
    }
    arena_free(a);
    if (rc == 0)
        rc = check_interval("telemetry.interval", c->telemetry_interval, e);
    if (rc == 0)
        rc = check_interval("telemetry.errors_interval", c->telemetry_errors_interval, e);
    return rc;
}

void config_sm_opts(const struct config *c, const char *fabric, struct sm_opts *o)
{
    sm_opts_default(o);
    o->fabric = fabric;
    o->engine = (enum route_engine)c->engine;
    o->priority = (uint8_t)c->priority;
    o->sm_key = (uint64_t)c->sm_key;
    o->subnet_prefix = c->subnet_prefix;
    o->subnet_timeout = (uint8_t)c->subnet_timeout;
    o->packet_life = (uint8_t)c->packet_life;
    o->hoq_life_switch = (uint8_t)c->hoq_life_switch;
    o->hoq_life_host = (uint8_t)c->hoq_life_host;
    o->vl_stall_count = (uint8_t)c->vl_stall_count;
    o->max_vls = (uint8_t)c->max_vls;
    o->lanes = (uint8_t)c->lanes;
    o->lmc = (uint8_t)c->lmc;
    o->phy_errors = (uint8_t)c->phy_errors;
    o->overrun_errors = (uint8_t)c->overrun_errors;
    o->sweep_interval_ns = c->sweep_interval;
    o->poll_interval_ns = c->poll_interval;
    o->audit_interval_ns = c->audit_interval;
    o->adopt = c->adopt;
    o->allow_credit_loops = c->allow_credit_loops;
    o->adaptive = !c->adaptive             ? SM_ADAPTIVE_OFF
                  : c->adaptive_unverified ? SM_ADAPTIVE_ON
                                           : SM_ADAPTIVE_REFUSED;
}

void config_take_live(struct config *to, const struct config *c)
{
    to->log_level = c->log_level;
    to->priority = c->priority;
    to->events_keep_days = c->events_keep_days;
    to->isolation = c->isolation;
    to->isolation_hosts = c->isolation_hosts;
    to->isolation_max_links = c->isolation_max_links;
    to->isolation_max_share = c->isolation_max_share;
    to->isolation_keep_uplinks = c->isolation_keep_uplinks;
    to->isolation_per_week = c->isolation_per_week;
    to->isolation_clean = c->isolation_clean;
    to->sim_loss = c->sim_loss;
}

void config_take_resweep(struct config *to, const struct config *c)
{
    to->subnet_prefix = c->subnet_prefix;
    to->subnet_timeout = c->subnet_timeout;
    to->packet_life = c->packet_life;
    to->hoq_life_switch = c->hoq_life_switch;
    to->hoq_life_host = c->hoq_life_host;
    to->vl_stall_count = c->vl_stall_count;
    to->max_vls = c->max_vls;
    to->phy_errors = c->phy_errors;
    to->overrun_errors = c->overrun_errors;
}

void config_sim_opts(const struct config *c, struct sim_opts *o)
{
    *o = (struct sim_opts){
        .seed = (uint64_t)c->sim_seed,
        .link_latency_ns = c->sim_latency,
        .service_ns = c->sim_service,
        .loss = c->sim_loss,
        .vl15_buffer = (unsigned)c->sim_vl15_buffer,
        .keep_state = c->sim_state == CONFIG_SIM_FILE,
        .dead_nodes = (unsigned)c->sim_dead_nodes,
        .dead_nodes_seed = (uint64_t)c->sim_seed,
        .adaptive_routing = c->sim_adaptive_groups > 0,
        .adaptive_groups = (uint16_t)c->sim_adaptive_groups,
    };
}
