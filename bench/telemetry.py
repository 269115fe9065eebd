#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counters: collecting, keeping, asking, shipping and judging, each by a program of its own, without the wire; and weftd itself (loop).

    ./dev bench telemetry [--json] [--only detect,congest,...] [--seed N]

loop: a whole weftd on a simulated fabric of 98,304 ports is asked all that the API has while counters are collected: its longest callbacks, by CPU.
detect: the health rules on labelled traces of 10^6 port-hours: recall of each kind of fault and severity (the worst cell's, as what is missed), good
cables isolated where isolation may do all, time a port and sweep. out: remote write's requests encoded and their bytes on the wire, sweeps of 10 s of 65,536 ports x 20 counters; a page of /metrics, one shard of 16 of them.
collect: reading 98,304 ports every 10 s, two MADs each, errors' details each minute, with rates, congestion, health and history; the time that the transport takes itself is left out.
store: bytes, CPU and memory of keeping, time of reading; CPU, files in memory or in the system's cache.
ask: the ports that stand out.
congest: roots of congestion on 100 random fabrics of each kind, as the simulation of credits sees them, with 30 % of the counters missing or late. Right is the very port that loses most, or one that by itself loses 0.3 of that; ports named beside it do not count.
No rival: bars are absolute.
"""
import argparse
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

from benchlib import Table, WEFTD, note

BIN = os.environ.get("BENCH_TELEMETRY", os.path.join(os.path.dirname(os.path.realpath(WEFTD)), "..", "telemetry"))


def program(name, *args):
    """What a bench program prints, as JSON."""
    out = subprocess.run([os.path.join(BIN, name), *map(str, args)], stdout=subprocess.PIPE, check=True)
    return json.loads(out.stdout)


def detect(table, seed):
    r = program("bench_detect", "-s", seed)
    for c in r["cells"]:
        note("  %-8s x %-4g %4d cases, found %4d: recall %.4f (%.4f to %.4f), median after %.0f s"
             % (c["kind"], c["severity"], c["cases"], c["found"], c["recall"], c["low"], c["high"], c["median_s"]))
    for f in r["false"]:
        note("  on links that have nothing: %s %d times, %d major" % (f["rule"], f["alarms"], f["major"]))
    if r["first_isolated"]:
        note("  isolated with a good cable: " + r["first_isolated"])
    for kind in sorted({c["kind"] for c in r["cells"]}):
        cells = [c for c in r["cells"] if c["kind"] == kind]
        table.add("detect, %s: faults missed" % kind, round(1 - min(c["recall"] for c in cells), 6), "of 1", bar=0.01)
    table.add("detect: port-hours", r["port_hours"], "h")
    table.add("detect: links isolated", r["isolated"], "links")
    table.add("detect: good cables isolated", r["isolated_good"], "links", bar=0)
    table.add("detect: a port and sweep", r["cost_ns"] / 1000, "us", bar=1)


def out(table, seed):
    r = program("../api/bench_remote")
    for name, what in (("live", "one sweep at a time"), ("usual", "30 s at a time, as usual"), ("late", "10 min at a time, after an outage")):
        table.add("remote write, %s: a sample encoded" % what, 1e6 / r[name + "_per_s"], "us", bar=1)
        table.add("remote write, %s: on the wire" % what, r[name + "_bytes"], "B", bar=None if name == "live" else 13)
    for name in ("plain", "gzip"):
        table.add("/metrics, 1 shard of 16, %s: CPU" % name, r["page_%s_ms" % name], "ms", bar=50)


def collect(table, seed):
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as d:
        out = subprocess.run([os.path.join(BIN, "../tests/whole/bench_tele"), "-f", "ft3-64-16", "-2", "-s", "18", "-d", d],
                             stdout=subprocess.PIPE, text=True, check=True).stdout
    note(out)
    ports, mads = map(int, re.search(r"(\d+) ports, (\d+) MADs a sweep", out).groups())
    what = "%d,%03d ports every 10 s" % divmod(ports, 1000)
    table.add("%s: MADs a sweep" % what, mads, "MADs")
    table.add("%s: all but the transport" % what, float(re.search(r"without it\s+[\d.]+ ms a sweep\s+([\d.]+) core", out).group(1)), "cores", bar=0.5)
    table.add("%s: peak RSS" % what, int(re.search(r"peak RSS (\d+) MB", out).group(1)), "MB", bar=1024)
    table.add("%s: late sweeps" % what, int(re.search(r"late (\d+)", out).group(1)), "sweeps", bar=0)


def store(table, seed):
    """A day of 10 s of 2,048 ports (bytes are those of its file once the day has ended: pages, indices, what is free in it), half an hour of 100,000 ports
    (CPU, memory), a day of minutes of 12,500 ports (a rail)."""
    for mix, label, bar in (("real", "realistic mix", 13), ("busy", "all busy", 26)):
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as d:
            r = program("../db/bench_series", "-d", d, "-p", 2048, "-n", 8630, "-m", mix)
            table.add("store, %s: a port and sweep, 20 counters" % label, r["raw_bytes"], "B", bar=bar)
            if mix == "busy":
                table.add("store: one port, one counter, 2 h of 10 s", r["one_2h"] * 1000, "ms", bar=10)
                table.add("store: scanned for shipping", r["scan_values_per_s"] / 1e6, "M/s")
        with tempfile.TemporaryDirectory(prefix="weft-bench-") as d:
            r = program("../db/bench_series", "-d", d, "-p", 12500, "-s", 60, "-n", 1440, "-m", mix, "-R", 1)
            table.add("store, %s: average of 12,500 ports, 24 h of minutes" % label, r["rail_average"] * 1000, "ms", bar=200)
            table.add("store, %s: most of the day, 12,500 ports" % label, r["all_rises"] * 1000, "ms")
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as d:
        r = program("../db/bench_series", "-d", d, "-p", 100000, "-n", 180, "-r", 1, "-o", "none")
        table.add("store, 100,000 ports: writer's CPU, a sweep", r["writer_cpu_per_sweep"] * 1000, "ms")
        table.add("store, 100,000 ports: loop's CPU, a sweep", r["caller_cpu_per_sweep"] * 1000, "ms", bar=10)
        table.add("store, 100,000 ports: memory", r["rss"] / 2**20, "MB", bar=250)
        table.add("store, 100,000 ports: the day's end", r["day_end"], "s")


def ask(table, seed):
    """The ports that stand out among 98,304 that have all counted something, from memory."""
    r = program("../api/bench_top")
    for by in ("held", "lost", "used", "xmit", "errors"):
        table.add("top 20 of %d,%03d now, by %s: CPU" % (*divmod(r["ports"], 1000), by), r[by + "_ms"], "ms", bar=5)


def congest(table, seed):
    bench = "../tests/whole/bench_congest"
    for c in program(bench, "--mixed", "--json", "--seed", 200 + seed):
        note("  %-22s %3d fabrics, root port right %3d, kind right %3d" % (c["scenario"], c["runs"], c["right"], c["kind"]))
        none = c["scenario"] == "none"
        table.add("congestion, %s: %s" % (c["scenario"], "a root is named" if none else "root port not found"), round(1 - c["right"] / c["runs"], 6), "of 1",
                  bar=0.02 if none else 0.05)
    for c in program(bench, "--speed", "ft3-64-16", "--json"):
        table.add("congestion: a sweep of %d ports, %d wait: at first" % (c["ports"], c["held"]), c["first_ms"], "ms")
        table.add("congestion: then", c["then_ms"], "ms")
        table.add("congestion: of that on the event loop, at once at most", c["loop_ms"], "ms", bar=10)


class Client:
    """One request after the other to weftd's socket."""

    class Connection(http.client.HTTPConnection):
        def __init__(self, path):
            super().__init__("localhost", timeout=120)
            self.path = path

        def connect(self):
            self.sock = socket.socket(socket.AF_UNIX)
            self.sock.settimeout(self.timeout)
            self.sock.connect(self.path)

    def __init__(self, path):
        self.path = path

    def ask(self, method, url, body=None):
        c = self.Connection(self.path)
        head = {"Content-Type": "application/json"} if body is not None else {}
        if url.startswith("/metrics"):
            head["Accept-Encoding"] = "gzip"  # as Prometheus does
        try:
            c.request(method, url, json.dumps(body) if body is not None else None, head)
            a = c.getresponse()
            return a.status, a.read()
        finally:
            c.close()

    def get(self, url):
        status, text = self.ask("GET", "/api/v1" + url)
        if status // 100 != 2:
            raise RuntimeError("%s: %d %s" % (url, status, text[:300]))
        return json.loads(text)


def one_of(c, path, paths):
    """The path with something that is there in its last place; None: nothing is, or no list says what."""
    whole, name = re.fullmatch(r"(.*)/{(\w+)}", path).groups()
    items = c.get(whole.replace("{f}", "default") + "?limit=1")["items"] if whole in paths else []
    return "%s/%s" % (whole, items[0][name]) if items else None


def loop_urls(c):
    """All that can be read, as OpenAPI has it, with lists as long as they may be, as JSON and as CSV; all of it is there, so that none may be refused but what is TOO_LARGE."""
    nodes = c.get("/fabrics/default/nodes?limit=10000&type=switch")["items"]
    switch, guid = nodes[0]["guid"], nodes[-1]["guid"]
    host = c.get("/fabrics/default/nodes?limit=1&type=ca")["items"][0]["guid"]
    urls = ["/metrics", "/metrics?shard=0&of=16", "/metrics/targets", "/metrics/switch/%s" % switch]
    given = {"from": host, "to": guid, "counter": "xmit_data", "port": "%s/1" % switch, "guid": switch}
    paths = c.get("/openapi.json")["paths"]
    for path, item in paths.items():
        get = item.get("get")
        if get is None or "event-stream" in json.dumps(get):
            continue
        url = path.replace("{guid}", switch)
        url = one_of(c, url, paths) if url.endswith("}") and not url.endswith("{f}") else url
        if url is None:
            note("  %s: there is none" % path)
            continue
        url = url.replace("{f}", "default")
        url = url if url.startswith("/api") or url.startswith("/metrics") else "/api/v1" + url
        params = {p["name"]: p for p in get.get("parameters", []) if p.get("in") == "query"}
        words = {n: p["schema"].get("enum", []) for n, p in params.items()}
        query = ["%s=%s" % (n, given.get(n, (words[n] or ["1"])[0])) for n, p in params.items() if p.get("required")]
        if "limit" in params:
            query.append("limit=10000")
        of_one = ["port=" + given["port"]] if "by" in words and "port" in params else []  # one is needed
        urls.append(url + "?" * bool(query + of_one) + "&".join(query + of_one))
        for n in ("by", "format", "group", "sort", "state"):
            for v in words.get(n, []):
                more = [] if n == "by" else of_one
                urls.append(url + "?" + "&".join([q for q in query if not q.startswith(n + "=")] + more + ["%s=%s" % (n, v)]))
        if of_one:
            urls += [url + "?by=%s&focus=kind%%3Dtrunk&counter=xmit_data&from=10m" % v for v in words["by"]]
        if url.endswith("/top"):
            urls += [url + "?by=xmit&from=10m", url + "?by=xmit&from=10m&focus=kind%3Dtrunk", url + "?by=xmit&focus=kind%3Dtrunk"]
    return urls


LOOP_FABRIC = "ft3-64-16"
TOO_LARGE = ("export?format=lft", "export?format=fdbs")  # of this fabric: refused, with what would do instead


def loop(table, seed):
    """weftd itself with 98,304 ports: what its event loop does at one go, while everything that the API has is asked and counters are collected. CPU time; a simulated
    fabric's own work is named apart."""
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as d:
        sock = os.path.join(d, "s")
        with open(os.path.join(d, "log"), "w") as log:
            p = subprocess.Popen([os.path.realpath(WEFTD), "--simulate", LOOP_FABRIC, "--state", d, "--socket", sock, "--http", "127.0.0.1:0", "--set", "log_level=debug"],
                                 stderr=log, stdout=log)
        try:
            loop_run(table, Client(sock), p, os.path.join(d, "log"))
        finally:
            p.terminate()
            p.wait()


def wait_for(what, ready, seconds=300):
    end = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > end:
            raise RuntimeError("%s: not within %d s" % (what, seconds))
        time.sleep(0.2)


def loop_row(table, when, rows):
    worst = {}
    for r in rows:
        name = "%s %s" % (r["area"], r["callback"]) if r["callback"] else r["area"]
        kind = "simulated" if r["area"].startswith("sim") else "weft"
        note("  %-40s %6d longer than 1 ms, longest %7.2f ms, CPU %7.2f ms" % (name, r["calls"], 1e3 * r["max_seconds"], 1e3 * r["max_cpu_seconds"]))
        if kind not in worst or worst[kind][0] < r["max_cpu_seconds"]:
            worst[kind] = (r["max_cpu_seconds"], name)
    if "weft" in worst:
        table.add("loop, %s: longest callback (%s)" % (when, worst["weft"][1]), 1e3 * worst["weft"][0], "ms", bar=10)
    if "simulated" in worst:
        table.add("loop, %s: longest of the simulated fabric" % when, 1e3 * worst["simulated"][0], "ms")


def since(before, after):
    """Rows that have become longer; others may have been as long, so only what rose is known."""
    old = {(r["area"], r["callback"]): r["max_cpu_seconds"] for r in before}
    return [r for r in after if r["max_cpu_seconds"] > old.get((r["area"], r["callback"]), 0)]


def loop_run(table, c, p, log):
    wait_for("the fabric is up", lambda: p.poll() is not None or "fabric-up" in open(log, errors="replace").read())
    up = c.get("/status")["callbacks"]
    loop_row(table, "bring-up", up)
    telemetry = lambda: c.get("/fabrics/default")["telemetry"]
    wait_for("a sweep of counters", lambda: (telemetry() or {}).get("sweeps", 0) >= 4)
    swept = c.get("/status")["callbacks"]
    loop_row(table, "sweeps", since(up, swept))
    urls = loop_urls(c)
    refused = 0
    for url in urls * 2:
        t = time.monotonic()
        status, text = c.ask("GET", url)
        refused += status // 100 != 2 and not (status == 413 and url.endswith(TOO_LARGE))
        note("  %3d %8.1f kB %7.1f ms %s" % (status, len(text) / 1e3, 1e3 * (time.monotonic() - t), url))
    loop_row(table, "everything read", since(swept, c.get("/status")["callbacks"]))
    table.add("loop, everything read: answers that are none (of %d)" % (2 * len(urls)), refused, "answers", bar=0)


ROWS = {"detect": detect, "congest": congest, "out": out, "collect": collect, "store": store, "ask": ask, "loop": loop}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--json", action="store_true")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--only", default=",".join(ROWS))
    a = ap.parse_args()
    table = Table()
    for name, rows in ROWS.items():
        if name in a.only.split(","):
            note(name)
            rows(table, a.seed)
    return table.show(a.json)


if __name__ == "__main__":
    sys.exit(main())
