#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""dashboards.py [FOLDER]: writes weft's Grafana dashboards (Grafana 9 or later) as JSON, beside itself unless told otherwise.

They are made of rows of panels here, so that a name is spelled once. Import them in Grafana, or put them where a provider looks.
"""
import json
import pathlib
import sys

SWITCH, HCA = "infiniband_switch_", "infiniband_hca_"
UPLINK = " * on(guid, port) group_left(uplink, uplink_port) infiniband_switch_uplink_info"
ERRORS = ("symbol_error", "link_error_recovery", "link_downed", "receive_errors", "receive_remote_physical_errors", "receive_switch_relay_errors",
          "transmit_discards", "transmit_constraint_errors", "receive_constraint_errors", "local_link_integrity_errors",
          "excessive_buffer_overrun_errors", "vl15_dropped", "qp1_dropped")
THERE = '{switch=~"$switch"}'


def rate(metric, where=""):
    return f"rate({metric}{where}[$__rate_interval])"


class Panel:
    def __init__(self, title, *queries, kind="timeseries", unit="short", w=12, h=8, legend="", doc="", stack=False, most=None, decimals=None):
        self.title, self.kind, self.w, self.h = title, kind, w, h
        self.queries = [q if isinstance(q, tuple) else (q, legend) for q in queries]
        self.unit, self.doc, self.stack, self.most, self.decimals = unit, doc, stack, most, decimals

    def json(self, number, x, y):
        table, stat = self.kind == "table", self.kind == "stat"
        defaults = {"unit": self.unit, "custom": {}}
        if self.kind == "timeseries":
            defaults["custom"] = {"fillOpacity": 40 if self.stack else 5, "showPoints": "never", "stacking": {"mode": "normal" if self.stack else "none"}}
        if self.most is not None:
            defaults["max"] = self.most
            defaults["min"] = 0
        if self.decimals is not None:
            defaults["decimals"] = self.decimals
        panel = {"id": number, "type": self.kind, "title": self.title, "description": self.doc,
                 "gridPos": {"x": x, "y": y, "w": self.w, "h": self.h},
                 "datasource": {"type": "prometheus", "uid": "${datasource}"},
                 "fieldConfig": {"defaults": defaults, "overrides": []},
                 "targets": [{"refId": chr(ord("A") + i), "expr": expr, "legendFormat": legend, "instant": table or stat, "range": not (table or stat),
                              **({"format": "table"} if table else {})} for i, (expr, legend) in enumerate(self.queries)]}
        if stat:
            panel["options"] = {"reduceOptions": {"calcs": ["lastNotNull"]}, "colorMode": "value", "graphMode": "none"}
        if table:
            panel["transformations"] = [{"id": "organize", "options": {"excludeByName": {
                "Time": True, "__name__": True, "job": True, "instance": True, "shard": True, "guid": True}}}]
            panel["options"] = {"showHeader": True}
        return panel


class Row:
    def __init__(self, title):
        self.title = title


def variable(name, query, label):
    return {"name": name, "type": "query", "label": label, "datasource": {"type": "prometheus", "uid": "${datasource}"}, "query": {"query": query, "refId": name},
            "definition": query, "refresh": 2, "sort": 1, "multi": True, "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"}}


def dashboard(uid, title, doc, panels, variables=()):
    placed, x, y, high = [], 0, 0, 0
    for i, p in enumerate(panels, 1):
        if isinstance(p, Row):
            y, x, high = y + high, 0, 0
            placed.append({"id": i, "type": "row", "title": p.title, "collapsed": False, "panels": [], "gridPos": {"x": 0, "y": y, "w": 24, "h": 1}})
            y += 1
            continue
        if x + p.w > 24:
            y, x, high = y + high, 0, 0
        placed.append(p.json(i, x, y))
        x, high = x + p.w, max(high, p.h)
    source = {"name": "datasource", "type": "datasource", "label": "Prometheus", "query": "prometheus", "current": {}}
    return {"uid": uid, "title": title, "description": doc, "tags": ["weft", "infiniband"], "schemaVersion": 37, "version": 1, "editable": True,
            "timezone": "browser", "refresh": "30s", "time": {"from": "now-1h", "to": "now"}, "templating": {"list": [source, *variables]},
            "links": [{"type": "dashboards", "tags": ["weft"], "title": "weft", "asDropdown": True, "includeVars": True, "keepTime": True}],
            "annotations": {"list": []}, "id": None, "panels": placed}


def stat(title, expr, unit="short", w=3, **more):
    return Panel(title, expr, kind="stat", unit=unit, w=w, h=4, **more)


def table(title, expr, w=24, h=9, unit="short", **more):
    return Panel(title, expr, kind="table", w=w, h=h, unit=unit, **more)


OVERVIEW = [
    stat("Fabrics up", "sum(weft_fabric_up)"), stat("Switches", "sum(weft_switches)"), stat("Adapters", "sum(weft_adapters)"),
    stat("Links", "sum(weft_links)"), stat("Critical alarms", 'sum(weft_alarms{severity="critical"})'),
    stat("Major alarms", 'sum(weft_alarms{severity="major"})'), stat("Minor alarms", 'sum(weft_alarms{severity="minor"})'),
    stat("Ports not read", 'sum(weft_telemetry_ports{read="no"})', doc="Ports whose counters the last sweep did not get"),
    Row("Traffic"),
    Panel("All hosts", (f"sum({rate(HCA + 'port_transmit_data_bytes_total')})", "sent"), (f"sum({rate(HCA + 'port_receive_data_bytes_total')})", "received"), unit="Bps"),
    Panel("Busiest switches", f"topk(10, sum by (switch) ({rate(SWITCH + 'port_transmit_data_bytes_total')}))", unit="Bps", legend="{{switch}}"),
    Panel("Bandwidth lost to waiting", "sum by (fabric) (weft_congestion_lost_bytes_per_second)", unit="Bps", legend="{{fabric}}"),
    Panel("Fullest ports", f"topk(10, {SWITCH}port_transmit_used_ratio)", unit="percentunit", most=1, legend="{{switch}}/{{port}}"),
    Row("Health"),
    Panel("Links by state of health", "sum by (state) (weft_link_states)", stack=True, legend="{{state}}"),
    Panel("Errors", *[(f"sum({rate(SWITCH + f'port_{e}_total')})", e) for e in ERRORS], unit="cps"),
    table("Alarms", 'weft_alarm_active{silenced="no"}'),
    table("Devices that do not give their counters", "weft_unread_device", h=6),
]

SWITCHES = [
    stat("Counters are read", f"min({SWITCH}up{THERE})"), stat("Ports up", f"sum({SWITCH}port_state{THERE})"),
    stat("Sent", f"sum({rate(SWITCH + 'port_transmit_data_bytes_total', THERE)})", "Bps", 6),
    stat("Received", f"sum({rate(SWITCH + 'port_receive_data_bytes_total', THERE)})", "Bps", 6),
    stat("Wait", f"max({SWITCH}port_transmit_wait_ratio{THERE})", "percentunit", 6, doc="The port that waits most"),
    Row("Ports"),
    Panel("Sent", rate(SWITCH + "port_transmit_data_bytes_total", THERE), unit="Bps", legend="{{switch}}/{{port}}"),
    Panel("Received", rate(SWITCH + "port_receive_data_bytes_total", THERE), unit="Bps", legend="{{switch}}/{{port}}"),
    Panel("Used, out", f"{SWITCH}port_transmit_used_ratio{THERE}", unit="percentunit", most=1, legend="{{switch}}/{{port}}"),
    Panel("Waiting, out", f"{SWITCH}port_transmit_wait_ratio{THERE}", unit="percentunit", most=1, legend="{{switch}}/{{port}}",
          doc="Share of time in which there was data to send and no way to send it"),
    Panel("Packets", (f"sum by (switch) ({rate(SWITCH + 'port_transmit_packets_total', THERE)})", "{{switch}} sent"),
          (f"sum by (switch) ({rate(SWITCH + 'port_receive_packets_total', THERE)})", "{{switch}} received"), unit="pps"),
    Panel("Multicast", (f"sum by (switch) ({rate(SWITCH + 'port_multicast_transmit_packets_total', THERE)})", "{{switch}} sent"),
          (f"sum by (switch) ({rate(SWITCH + 'port_multicast_receive_packets_total', THERE)})", "{{switch}} received"), unit="pps"),
    Row("Errors"),
    Panel("Errors by kind", *[(f"sum({rate(SWITCH + f'port_{e}_total', THERE)})", e) for e in ERRORS], unit="cps"),
    Panel("Ports that discard", f"topk(10, {rate(SWITCH + 'port_transmit_discards_total', THERE)})", unit="cps", legend="{{switch}}/{{port}}"),
    table("Ports", f"{SWITCH}port_state{THERE}{UPLINK}", doc="1: up; and what is at the other end"),
    table("State of health", f"{SWITCH}port_health_state{THERE}{UPLINK}"),
]

LINKS = [
    *[stat(f"{s.capitalize()} links", f'sum(weft_link_states{{state="{s}"}})', w=4) for s in ("healthy", "unsure", "degraded", "flapping", "failing", "down")],
    Row("Which cable"),
    table("Links that are not healthy", f'{SWITCH}port_health_state{{state!~"healthy|unsure|unknown"}}{UPLINK}'),
    table("Alarms of links", 'weft_alarm_active{rule=~"L.*", silenced="no"}'),
    Row("Bit errors"),
    Panel("Before FEC, worst", f"topk(10, {SWITCH}port_raw_ber)", legend="{{switch}}/{{port}}", unit="sci", doc="The earliest warning: it rises before anything is lost"),
    Panel("Behind FEC, worst", f"topk(10, {SWITCH}port_symbol_ber)", legend="{{switch}}/{{port}}", unit="sci"),
    Panel("Corrected symbols", f"topk(10, {rate(SWITCH + 'port_fec_corrected_symbol_total')})", legend="{{switch}}/{{port}}", unit="cps"),
    Panel("Blocks that FEC could not correct", f"topk(10, increase({SWITCH}port_fec_uncorrectable_block_total[1h]))", legend="{{switch}}/{{port}}"),
    Panel("Symbol errors in an hour", f"topk(10, increase({SWITCH}port_symbol_error_total[1h]))", legend="{{switch}}/{{port}}"),
    Panel("Damaged packets", f"topk(10, {rate(SWITCH + 'port_local_physical_errors_total')})", unit="cps", legend="{{switch}}/{{port}}"),
    Row("Links that come and go"),
    Panel("Downs in a day", f"topk(10, increase({SWITCH}port_link_downed_total[1d]))", legend="{{switch}}/{{port}}"),
    Panel("Recoveries in an hour", f"topk(10, increase({SWITCH}port_link_error_recovery_total[1h]))", legend="{{switch}}/{{port}}"),
    table("Ports of switches that are down and were up within a day",
          f"({SWITCH}port_state == 0) and (max_over_time({SWITCH}port_state[1d]) == 1)"),
]

CONGESTION = [
    stat("Ports that wait", "sum(weft_congestion_held_ports)", w=6), stat("Bandwidth lost", "sum(weft_congestion_lost_bytes_per_second)", "Bps", 6),
    stat("Trees", "count(weft_congestion_root_lost_bytes_per_second)", w=6, doc="Ports that others wait for"),
    stat("Discards", f"sum({rate(SWITCH + 'port_transmit_discards_total')})", "cps", 6),
    Row("Roots"),
    table("Who is waited for", "sort_desc(weft_congestion_root_lost_bytes_per_second)", unit="Bps"),
    Panel("Lost to each root", "topk(10, weft_congestion_root_lost_bytes_per_second)", unit="Bps", legend="tree {{tree}}: {{kind}}"),
    Panel("Ports that wait", "sum by (fabric) (weft_congestion_held_ports)", legend="{{fabric}}"),
    Row("Ports"),
    Panel("Waiting most, switches", f"topk(15, {SWITCH}port_transmit_wait_ratio)", unit="percentunit", most=1, legend="{{switch}}/{{port}}"),
    Panel("Waiting most, hosts", f"topk(15, {HCA}port_transmit_wait_ratio)", unit="percentunit", most=1, legend="{{hca}}"),
    Panel("Fullest, switches", f"topk(15, {SWITCH}port_transmit_used_ratio)", unit="percentunit", most=1, legend="{{switch}}/{{port}}"),
    Panel("Losing most", f"topk(15, {SWITCH}port_transmit_wait_lost_bytes_per_second)", unit="Bps", legend="{{switch}}/{{port}}"),
    Panel("Waiting ticks", f"topk(15, {rate(SWITCH + 'port_transmit_wait_total')})", unit="cps", legend="{{switch}}/{{port}}"),
    Panel("Discards", f"topk(15, {rate(SWITCH + 'port_transmit_discards_total')})", unit="cps", legend="{{switch}}/{{port}}"),
]

OWN = [
    stat("Version", "weft_build_info", w=4, legend="{{version}}"), stat("Master", "min(weft_sm_master)", w=4),
    stat("Up since", "time() - process_start_time_seconds{job=~\".*weft.*\"}", "s", 4), stat("Memory", "max(process_resident_memory_bytes{job=~\".*weft.*\"})", "bytes", 4),
    stat("Late sweeps", "sum(increase(weft_telemetry_late_sweeps_total[1h]))", w=4, doc="Of counters, in the last hour"),
    stat("History", "min(weft_history_writing)", w=4, doc="1: written to disk"),
    Row("The loop"),
    Panel("Processor", (rate("process_cpu_seconds_total", '{job=~".*weft.*"}'), "weftd"), (rate("weft_telemetry_cpu_seconds_total"), "counters"), unit="percentunit"),
    Panel("The loop's time by area", rate("weft_loop_seconds_total"), unit="percentunit", stack=True, legend="{{area}}"),
    Panel("Callbacks of more than 10 ms", "increase(weft_loop_slow_callbacks_total[5m])", legend="{{area}}"),
    Row("MADs"),
    Panel("Sent", f"sum by (attribute, method) ({rate('weft_mads_sent_total')})", unit="cps", stack=True, legend="{{attribute}}.{{method}}"),
    Panel("Without an answer, repeated, refused", (f"sum({rate('weft_mad_timeouts_total')})", "without an answer"),
          (f"sum({rate('weft_mad_retries_total')})", "repeated"), (f"sum({rate('weft_mads_refused_total')})", "refused"), unit="cps"),
    Row("Sweeps"),
    Panel("Subnet manager: last sweep, last reroute", ("weft_sweep_duration_seconds", "sweep"), ("weft_reroute_duration_seconds", "reroute"), unit="s"),
    Panel("Counters: how long a sweep takes", "weft_telemetry_sweep_duration_seconds", unit="s", legend="{{fabric}}"),
    Panel("Counters: ports", "weft_telemetry_ports", legend="read: {{read}}"),
    Panel("Counters: cleared by others, saturated, nonsense", ("increase(weft_telemetry_resets_total[5m])", "cleared by others"),
          ("increase(weft_telemetry_saturated_total[5m])", "saturated"), ("increase(weft_telemetry_nonsense_total[5m])", "nonsense")),
    Row("History and what goes out"),
    Panel("History on disk", "weft_history_bytes", unit="bytes", stack=True, legend="{{tier}}"),
    Panel("Commits", "weft_db_commit_seconds", unit="s", legend="{{fabric}}"),
    Panel("Sweeps written, left out", (rate("weft_history_sweeps_total"), "written"), (rate("weft_history_left_out_total"), "left out"), unit="cps"),
    Panel("meta.db takes what is written", "weft_db_writing", most=1),
    Panel("Remote write: samples", (rate("weft_remote_write_samples_total"), "taken"), (rate("weft_remote_write_dropped_samples_total"), "refused"), unit="cps"),
    Panel("Remote write: how far behind", "weft_remote_write_lag_seconds", unit="s", legend="{{fabric}}"),
    Panel("Notifications", (rate("weft_notifications_sent_total"), "{{target}} sent"), (rate("weft_notifications_failed_total"), "{{target}} failed"), unit="cps"),
    Panel("Notifications: targets that do not take them", "weft_notifications_failing", most=1, legend="{{target}}"),
]

ALL = [
    dashboard("weft-fabric", "weft: fabric", "The whole fabric at a glance: traffic, errors, alarms", OVERVIEW),
    dashboard("weft-switch", "weft: switches", "Ports of switches", SWITCHES, [variable("switch", "label_values(infiniband_switch_info, switch)", "Switch")]),
    dashboard("weft-links", "weft: links", "Health of links: which cable will fail next", LINKS),
    dashboard("weft-congestion", "weft: congestion", "Who waits for whom", CONGESTION),
    dashboard("weft-internals", "weft: internals", "How weft itself is", OWN),
]


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    for d in ALL:
        (folder / f"{d['uid']}.json").write_text(json.dumps(d, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
