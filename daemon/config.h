// SPDX-License-Identifier: Apache-2.0
// weftd's configuration: /etc/weft/weft.yaml over the defaults, the command line over both. Every option is
// one row in config.c; the commented sample file (etc/weft.yaml) and the man page are printed from the rows.
#ifndef WEFT_DAEMON_CONFIG_H
#define WEFT_DAEMON_CONFIG_H

#include "lib/opt.h"
#include "routing/route.h"
#include "sim/sim.h"
#include "sm/sm.h"

struct arena;
struct err;

struct config_fabric { // one of `fabrics:`
    const char *name;
    const char *port;     // "mlx5_0/1"; empty = first usable
    const char *simulate; // name or file; empty = hardware
};

struct config {
    int log_level;
    const char *state_dir;
    const char *socket;
    const char *http_address;
    int64_t http_port;
    struct opt_list fabrics; // of struct config_fabric; empty = one, "default"
    // sm
    int64_t priority, sm_key, subnet_timeout, packet_life, hoq_life_switch, hoq_life_host, vl_stall_count,
        max_vls, lmc, phy_errors, overrun_errors;
    uint64_t subnet_prefix;
    int64_t sweep_interval, poll_interval, audit_interval;
    // routing
    int engine;
    int64_t lanes;
    struct opt_strings roots;
    const char *lft_file;
    bool adopt, allow_credit_loops, adaptive, adaptive_unverified;
    // mad
    int64_t window, device_window, timeout, retries;
    // events
    int64_t events_keep_days;
    // telemetry
    int64_t telemetry_interval, telemetry_errors_interval, telemetry_detail_interval, telemetry_per_device;
    bool telemetry_clear_saturated;
    int64_t keep_raw, keep_minute, keep_hour, telemetry_max_size;
    const char *cable_file;
    // health, alarms
    int isolation, isolation_hosts; // enum isolate_mode, enum isolate_hosts
    int64_t isolation_max_links, isolation_per_week, isolation_clean;
    double isolation_max_share, isolation_keep_uplinks; // %
    struct opt_strings known_sms;
    // metrics, remote_write, notify
    int metrics_compat;
    const char *remote_write_url, *remote_write_token_file, *remote_write_ca_file;
    struct opt_strings remote_write_labels;
    int64_t remote_write_interval, remote_write_backfill;
    struct opt_strings notify_alertmanager, notify_webhook, notify_syslog;
    const char *notify_token_file, *notify_ca_file, *notify_external_url;
    int notify_severity;
    int64_t notify_facility, notify_resend, notify_replay;
    // sim
    int sim_state, sim_time;
    int64_t sim_seed, sim_latency, sim_service, sim_vl15_buffer, sim_dead_nodes, sim_adaptive_groups;
    double sim_loss;
};

enum config_sim_state {
    CONFIG_SIM_FACTORY,
    CONFIG_SIM_FILE,
};
enum config_sim_time {
    CONFIG_SIM_REAL,
    CONFIG_SIM_VIRTUAL,
};

enum config_metrics_compat {
    CONFIG_METRICS_PLAIN,
    CONFIG_METRICS_GUILBAULTS,
};

extern const struct opt_row config_rows[];

#define CONFIG_DEFAULT_PATH "/etc/weft/weft.yaml"

// Defaults, then the file: path NULL = the default path if it is there. Strings live in the arena.
int config_load(struct config *c, struct arena *a, const char *path, struct err *e);
// "--port mlx5_0/1", "mlx5_0", "" -> device (copied into the arena, NULL = any) and number (0 = any).
int config_parse_port(const char *text, struct arena *a, const char **ret_device, int *ret_num,
                      struct err *e);
// What the rows alone do not say: the fabrics' names and ports, GUIDs. -EINVAL with *e.
int config_check(const struct config *c, struct err *e);
// Adaptive routing as on hardware; a simulated fabric need not be refused it.
void config_sm_opts(const struct config *c, const char *fabric, struct sm_opts *ret);
// Copies from c the options that take effect on reload: at once; with a sweep.
void config_take_live(struct config *to, const struct config *c);
void config_take_resweep(struct config *to, const struct config *c);
void config_sim_opts(const struct config *c, struct sim_opts *ret);

#endif
