#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counters: collecting, keeping, asking, shipping and judging, each by a program of its own, without the wire.

    ./dev bench telemetry [--json] [--only detect,congest,...] [--seed N]

detect: the health rules on labelled traces of 10^6 port-hours: recall of each kind of fault and severity (the worst cell's, as what is missed), good
cables isolated where isolation may do all, time a port and sweep. out: remote write's requests encoded and their bytes on the wire, sweeps of 10 s of 65,536 ports x 20 counters; a page of /metrics, one shard of 16 of them.
collect: reading 98,304 ports every 10 s, two MADs each, errors' details each minute, with rates, congestion, health and history; the time that the transport takes itself is left out.
store: bytes, CPU and memory of keeping, time of reading; CPU, files in memory or in the system's cache.
ask: the ports that stand out.
congest: roots of congestion on 100 random fabrics of each kind, as the simulation of credits sees them, with 30 % of the counters missing or late.
No rival: bars are absolute.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

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
        note("  %-22s %3d fabrics, right %3d, kind right %3d" % (c["scenario"], c["runs"], c["right"], c["kind"]))
        none = c["scenario"] == "none"
        table.add("congestion, %s: %s" % (c["scenario"], "a root is named" if none else "root port not found"), round(1 - c["right"] / c["runs"], 6), "of 1",
                  bar=0.02 if none else 0.05)
    for c in program(bench, "--speed", "ft3-64-16", "--json"):
        table.add("congestion: a sweep of %d ports, %d wait: at first" % (c["ports"], c["held"]), c["first_ms"], "ms")
        table.add("congestion: then", c["then_ms"], "ms")


ROWS = {"detect": detect, "congest": congest, "out": out, "collect": collect, "store": store, "ask": ask}


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
