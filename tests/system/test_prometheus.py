# SPDX-License-Identifier: Apache-2.0
"""/metrics: its form, its parts, its numbers against REST and the store, and a real Prometheus that scrapes it."""
import datetime
import gzip
import http.client
import json
import re
import subprocess
import time

import pytest

import outlib
from outlib import Prometheus, needs, needs_series_tool, parse_metrics
from rig import tool
from weftlib import Daemon, UnixConnection, need_programs, wait_for

pytestmark = need_programs()
OPENMETRICS = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
CHANGES = re.compile("weft_|process_")  # families that are others each time


INTERVAL = 5  # of sweeps of the fabric that most tests look at, in seconds


def daemon(simulate="rail-128", interval=1):
    d = Daemon(simulate=simulate, http=f"127.0.0.1:{outlib.free_port()}",
               args=["--set", f"telemetry.interval={interval}s", "--set", f"telemetry.detail_interval={interval}s"])
    d.port = int(d.command[d.command.index("--http") + 1].rsplit(":", 1)[1])
    return d


def get(d, path="/metrics", headers=None, method="GET"):
    """(status, headers, text)"""
    c = UnixConnection(d.socket)
    try:
        c.request(method, path, headers=headers or {})
        r = c.getresponse()
        return r.status, r.headers, r.read()
    finally:
        c.close()


def page(d, path="/metrics", headers=None):
    status, head, body = get(d, path, headers)
    assert status == 200, body
    return body.decode()


def read_sweeps(d, n):
    """Waits until so many sweeps of counters are over."""
    wait_for(lambda: d.get("/fabrics/default")["telemetry"] and d.get("/fabrics/default")["telemetry"]["sweeps"] >= n, f"{n} sweeps")


def steady(samples):
    return {k: v for k, v in samples.items() if not CHANGES.match(dict(k)["__name__"])}


def between_sweeps(d, look):
    """What look() returns that ran while no sweep of counters did."""
    def tried():
        before = d.get("/fabrics/default")["telemetry"]
        found = look()
        after = d.get("/fabrics/default")["telemetry"]
        last = datetime.datetime.fromisoformat(after["last_sweep"].replace("Z", "+00:00")).timestamp()
        return [found] if before["sweeps"] == after["sweeps"] and time.time() - last < INTERVAL - after["seconds"] - 0.5 else None
    return wait_for(tried, "time between sweeps")[0]


@pytest.fixture(scope="module")
def idle():
    with daemon(interval=INTERVAL) as d:
        d.up()
        read_sweeps(d, 2)
        yield d


@needs("promtool")
def test_promtool_finds_nothing(idle):
    r = subprocess.run([tool("promtool"), "check", "metrics"], input=page(idle), capture_output=True, text=True, timeout=60)
    assert (r.returncode, r.stdout, r.stderr) == (0, "", "")


def test_text_and_openmetrics_say_the_same(idle):
    plain, types = parse_metrics(page(idle))
    text = page(idle, headers={"Accept": OPENMETRICS})
    assert text.endswith("\n# EOF\n")
    om, om_types = parse_metrics(text)
    assert steady(om).keys() == steady(plain).keys()
    assert {k for k, v in types.items() if v == "counter"} == {k + "_total" for k, v in om_types.items() if v == "counter"}
    assert "infiniband_switch" in om_types and om_types["infiniband_switch"] == "info"
    status, head, _ = get(idle, headers={"Accept": OPENMETRICS})
    assert head["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    status, head, _ = get(idle, headers={"Accept": "text/plain;version=0.0.4"})
    assert head["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"


def test_gzip(idle):
    status, head, body = get(idle, "/metrics?class=info", {"Accept-Encoding": "gzip"})
    assert (status, head["Content-Encoding"]) == (200, "gzip")
    assert gzip.decompress(body).decode() == page(idle, "/metrics?class=info")
    assert "Content-Encoding" not in get(idle, headers={"Accept-Encoding": "gzip;q=0"})[1]


def test_parts_are_the_whole(idle):
    shards = [f"/metrics?shard={i}&of=5" for i in range(5)]
    classes = [f"/metrics?class={c}" for c in ("traffic", "errors", "info,weft")]

    def look():
        return [page(idle, path) for path in ("/metrics", *shards, *classes)]
    whole, *parts = [steady(parse_metrics(text)[0]) for text in between_sweeps(idle, look)]
    for some in (parts[:5], parts[5:]):
        together = {}
        for samples in some:
            assert samples and not together.keys() & samples.keys()
            together.update(samples)
        assert together == whole


def test_one_switch(idle):
    [switch] = [dict(k) for k in parse_metrics(page(idle))[0] if ("switch", "spine-01") in k and ("__name__", "infiniband_switch_info") in k]

    def look():
        return page(idle), page(idle, f"/metrics/switch/{switch['guid']}"), page(idle, "/metrics/switch/spine-01")
    whole, one, named = between_sweeps(idle, look)
    assert one == named
    assert parse_metrics(one)[0] == {k: v for k, v in parse_metrics(whole)[0].items() if dict(k).get("guid") == switch["guid"]}


def test_targets(idle):
    c = http.client.HTTPConnection("127.0.0.1", idle.port, timeout=60)
    c.request("GET", "/metrics/targets?of=4")
    r = c.getresponse()
    assert r.getheader("Content-Type") == "application/json"
    groups = json.loads(r.read())
    c.close()
    assert [g["targets"] for g in groups] == [[f"127.0.0.1:{idle.port}"]] * 4
    assert [g["labels"] for g in groups] == [{"__metrics_path__": "/metrics", "__param_shard": str(i), "__param_of": "4", "shard": str(i)}
                                            for i in range(4)]
    assert len(json.loads(page(idle, "/metrics/targets"))) == 1


def test_refusals(idle):
    for path, status in (("/metrics?shard=4&of=4", 400), ("/metrics?of=0", 400), ("/metrics?shard=-1", 400), ("/metrics?of=99999999999", 400),
                         ("/metrics?class=all", 400), ("/metrics?colour=red", 400), ("/metrics/switch/0x1234", 404), ("/metrics/x", 404),
                         ("/metrics/targets?of=1000000", 400), ("/metrics/switch", 404)):
        got, head, body = get(idle, path)
        assert got == status and json.loads(body)["detail"], path
    assert get(idle, method="POST")[0] == 405
    assert get(idle, method="HEAD")[0] == 200
    c = http.client.HTTPConnection("127.0.0.1", idle.port, timeout=60)
    c.request("GET", "/metrics", headers={"Host": "evil.example"})
    assert c.getresponse().status == 403
    c.close()


def rest_ports(d):
    items, cursor = [], None
    while True:
        answer = d.get("/fabrics/default/counters?limit=1000" + (f"&cursor={cursor}" if cursor else ""))
        items += answer["items"]
        cursor = answer["next"]
        if cursor is None:
            return items


def test_numbers_are_those_of_rest_and_of_the_store(idle):
    rows = {r["name"]: r["metric"] for r in idle.get("/counters")["items"]}
    text, rest = between_sweeps(idle, lambda: (page(idle), rest_ports(idle)))
    samples = parse_metrics(text)[0]
    got = {}
    for key, v in samples.items():
        labels = dict(key)
        m = re.fullmatch(r"infiniband_(switch|hca)_(\w+_total)", labels["__name__"])
        if m:
            got[labels["guid"], labels["port"], m[2]] = v
    expected = {}
    for p in rest:
        for name, v in p["value"].items():
            if v is not None:
                expected[p["guid"], str(p["port"]), rows[name]] = float(v)
    assert len(expected) > 20_000 and got == expected
    up = {(dict(k)["guid"], dict(k)["port"]): v for k, v in samples.items() if dict(k)["__name__"] == "infiniband_switch_port_state"}
    assert sum(v == 1 for v in up.values()) == 640 and sum(v == 0 for v in up.values()) == 128


def test_ports_that_are_down_and_devices_that_are_silent():
    with daemon("rail-16") as d:
        d.up()
        read_sweeps(d, 2)
        leaf = d.get("/fabrics/default/nodes/leaf-su01-rail0")["guid"]
        state = (("__name__", "infiniband_switch_port_state"), ("guid", leaf), ("port", "40"), ("switch", "leaf-su01-rail0"))
        assert parse_metrics(page(d))[0][state] == 1
        assert d.weft("sim", "link", "down", "leaf-su01-rail0", "40").rc == 0
        wait_for(lambda: parse_metrics(page(d))[0][state] == 0, "the port down")
        host = d.get("/fabrics/default/nodes/gpu-0001%20mlx5_3")["guid"]
        up = (("__name__", "infiniband_hca_up"), ("guid", host), ("hca", "gpu-0001 mlx5_3"))
        data = (("__name__", "infiniband_hca_port_link_downed_total"), ("guid", host), ("hca", "gpu-0001 mlx5_3"), ("port", "1"), ("switch", "leaf-su01-rail3"))
        first = parse_metrics(page(d))[0]
        assert first[up] == 1 and data in first
        assert d.weft("sim", "node", "kill", "gpu-0001 mlx5_3").rc == 0
        gone = wait_for(lambda: (lambda s: s if s.get(up) == 0 else None)(parse_metrics(page(d))[0]), "the adapter silent")
        assert data not in gone, "a counter that was not read"


@needs("prometheus")
@needs_series_tool()
def test_a_real_prometheus_scrapes(tmp_path):
    """Through http_sd in three shards, while traffic moves the counters; each sample is one that the store has too."""
    with daemon("rail-16") as d:
        d.up()
        with Prometheus(tmp_path, f"""
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
- job_name: weft
  http_sd_configs: [{{url: 'http://127.0.0.1:{d.port}/metrics/targets?of=3', refresh_interval: 1s}}]
""") as p:
            assert d.weft("sim", "traffic", "ring", "--load", "30%").rc == 0
            p.start()
            moving = 'infiniband_hca_port_transmit_data_bytes_total'
            wait_for(lambda: any(len(set(v for v in s.values())) >= 5 for s in p.samples(moving, 100).values()), "counters that move")
            assert {m["metric"]["shard"]: m["value"][1] for m in p.query("up")} == {"0": "1", "1": "1", "2": "1"}
            assert p.query("rate(infiniband_switch_port_transmit_data_bytes_total[5s]) > 1e9"), "no rate"
            samples = p.samples('{__name__=~"infiniband_.*_total"}', 100)
            known = {frozenset((k, v) for k, v in key if k not in ("job", "instance", "shard")) for key in samples}
            # What came before the store's last sweep was kept.
            assert d.weft("sim", "traffic", "stop").rc == 0
            assert d.stop() == 0
            kept = outlib.dump(d.dir / "state" / "telemetry" / "default")
            checked = 0
            for key, values in samples.items():
                labels = dict(key)
                metric = re.sub("^infiniband_(switch|hca)_", "", labels["__name__"])
                sweeps = sorted(kept[labels["guid"], labels["port"], metric].items())
                last = -1
                for t, v in sorted(values.items()):
                    near = [w for at, w in sweeps if t - 4000 <= at <= t + 2500]
                    assert v in near, (labels, t, v, near)
                    assert v >= last, "a counter that went back"
                    last, checked = v, checked + 1
            assert checked > 50_000 and len(known) == len(samples)
