# SPDX-License-Identifier: Apache-2.0
"""Dashboards and alert rules: as they are made, as promtool judges them, and on a real Prometheus that reads a fabric on a bad day."""
import json
import pathlib
import re
import shutil
import subprocess
import sys


import outlib
from outlib import Prometheus, needs, parse_metrics
from rig import ROOT, tool
from test_prometheus import page
from weftlib import Daemon, need_programs, wait_for

GRAFANA, RULES = ROOT / "etc" / "grafana", ROOT / "etc" / "prometheus"
NAME = re.compile(r"\b(?:infiniband|weft|process)_[a-z0-9_]+")
# What a bad day of a minute does not bring.
RARE = {"weft_telemetry_saturated_total"}
# Of a bad day everything but these has something to show.
MAY_BE_EMPTY = {"Ports of switches that are down and were up within a day", "Links that are not healthy", "Who is waited for", "Lost to each root", "Trees"}


def dashboards():
    return {p.stem: json.loads(p.read_text()) for p in sorted(GRAFANA.glob("*.json"))}


def queries():
    """(dashboard, panel, expression as Prometheus would get it)"""
    for name, d in dashboards().items():
        for panel in d["panels"]:
            for target in panel.get("targets", ()):
                yield name, panel["title"], target["expr"].replace("$__rate_interval", "20s").replace("$switch", ".*")


def rule_expressions():
    """The expressions of the rules file, without a YAML reader: one a line."""
    return re.findall(r"^ +expr: (.*)$", (RULES / "weft-alerts.yml").read_text(), re.M)


def names(expr):
    return set(NAME.findall(re.sub(r'"[^"]*"', "", expr)))


def test_dashboards_are_what_their_script_makes(tmp_path):
    subprocess.run([sys.executable, str(GRAFANA / "dashboards.py"), str(tmp_path)], check=True, timeout=60)
    made = {p.name: p.read_text() for p in tmp_path.glob("*.json")}
    assert len(made) == 5
    assert made == {p.name: p.read_text() for p in GRAFANA.glob("*.json")}


def test_dashboards_hold_together():
    uids = [d["uid"] for d in dashboards().values()]
    assert len(set(uids)) == len(uids)
    for name, d in dashboards().items():
        ids = [p["id"] for p in d["panels"]]
        assert len(set(ids)) == len(ids) and d["title"] and d["id"] is None
        taken = set()
        for p in d["panels"]:
            g = p["gridPos"]
            cells = {(x, y) for x in range(g["x"], g["x"] + g["w"]) for y in range(g["y"], g["y"] + g["h"])}
            assert g["x"] + g["w"] <= 24 and not cells & taken, (name, p["title"])
            taken |= cells


@needs("promtool")
def test_promtool_on_rules_and_config(tmp_path):
    for command in (["check", "rules", RULES / "weft-alerts.yml"], ["check", "config", RULES / "prometheus.yml"]):
        r = subprocess.run([tool("promtool"), *map(str, command)], capture_output=True, text=True, timeout=60)
        assert r.returncode == 0, r.stdout + r.stderr
    shutil.copy(RULES / "weft-alerts.yml", tmp_path)
    shutil.copy(pathlib.Path(__file__).parent / "alerts_test.yml", tmp_path)
    r = subprocess.run([tool("promtool"), "test", "rules", str(tmp_path / "alerts_test.yml")], capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stdout + r.stderr
    alerts = set(re.findall(r"- alert: (\w+)", (RULES / "weft-alerts.yml").read_text()))
    tested = set(re.findall(r"alertname: (\w+)", (tmp_path / "alerts_test.yml").read_text()))
    assert alerts == tested


@needs("promtool")
def test_promtool_on_the_dashboards_queries(tmp_path):
    rules = "".join(f"  - record: q{i}\n    expr: {json.dumps(e)}\n" for i, (_, _, e) in enumerate(queries()))
    (tmp_path / "q.yml").write_text("groups:\n- name: q\n  rules:\n" + rules)
    r = subprocess.run([tool("promtool"), "check", "rules", str(tmp_path / "q.yml")], capture_output=True, text=True, timeout=60)
    assert r.returncode == 0, r.stdout + r.stderr


@need_programs()
@needs("prometheus")
def test_a_bad_day_on_a_real_prometheus(tmp_path):
    """Every name is on the page, every query is understood, and shows something."""
    http = outlib.free_port()
    options = {"telemetry.interval": "1s", "telemetry.detail_interval": "1s", "remote_write.url": "http://127.0.0.1:9/", "notify.syslog": "udp://127.0.0.1:9"}
    args = [a for k, v in options.items() for a in ("--set", f"{k}={v}")]
    with Daemon(simulate="rail-16", http=f"127.0.0.1:{http}", args=args) as d, Prometheus(tmp_path, f"""
global: {{scrape_interval: 1s}}
rule_files: [{RULES}/weft-alerts.yml]
scrape_configs:
- job_name: weft
  http_sd_configs: [{{url: 'http://127.0.0.1:{http}/metrics/targets'}}]
""") as p:
        d.up()
        p.start()
        assert d.weft("sim", "traffic", "incast", "--receivers", "gpu-0001:0").rc == 0
        assert d.weft("sim", "errors", "spine-01", "8", "--raw-ber", "1e-6", "--uncorrectable", "1/s", "--symbol", "5/s", "--recovery", "1/s").rc == 0
        assert d.weft("sim", "node", "kill", "gpu-0002 mlx5_5").rc == 0
        assert d.weft("sim", "link", "flap", "leaf-su01-rail2", "40").rc == 0
        asked = set().union(*(names(e) for _, _, e in queries()), *(names(e) for e in rule_expressions()))
        missing = [None]

        def all_there():
            there = {dict(k)["__name__"] for k in parse_metrics(page(d))[0]}
            missing[0] = asked - there - RARE
            return not missing[0]
        try:
            wait_for(all_there, "all names")
        except AssertionError:
            raise AssertionError(f"not on the page: {sorted(missing[0])}") from None
        empty = [None]

        def all_shown():
            empty[0] = [(n, t) for n, t, e in queries() if t not in MAY_BE_EMPTY and not p.query(e)]
            return not empty[0]
        try:
            wait_for(all_shown, "all panels")
        except AssertionError:
            raise AssertionError(f"nothing to show: {empty[0]}") from None
        doc = set(re.findall(r"`([a-z_]+)`", (ROOT / "doc" / "metrics.md").read_text()))
        on_page = {re.sub("^infiniband_(switch|hca)_(?=port_)", "", dict(k)["__name__"]) for k in parse_metrics(page(d))[0]}
        documented = doc | {re.sub("^infiniband_(switch|hca)_(?=port_)", "", n) for n in doc}
        counters = {c["metric"] for c in d.get("/counters")["items"]}
        assert on_page - counters - documented == set()
        rules = json.loads(p.get("/api/v1/rules"))["data"]["groups"]
        assert sum(len(g["rules"]) for g in rules) == len(rule_expressions())
        assert not [r["lastError"] for g in rules for r in g["rules"] if r.get("lastError")]
