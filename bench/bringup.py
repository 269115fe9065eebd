# SPDX-License-Identifier: Apache-2.0
"""Cold bring-up: weft beside OpenSM's minhop on the same ibsim, and weft on its own simulator with latency and loss.

    ./dev bench bringup [--json] [--fabrics ft3-64-8,ft3-64-16] [--runs N]

Whole-process figures; both managers exit once the subnet is up (weftd --once, opensm -o), in turns. The MAD bound is computed from the topology:
NodeInfo a link and one for ourselves; a NodeDescription a node; SwitchInfo Get and two Sets a switch; PortInfo Get a link end and a switch, Set twice a link end and
once a switch; all P_Key blocks of an end port; every table block up to the highest LID.
"""
import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

from benchlib import WEFTD, Ibsim, Table, counter_shim, have_rival, note, run

ALIAS = {"ft3-64-8": "ft3-8192", "ft3-64-16": "ft3-16384"}


def mad_bound(net_text, ca_pkey_blocks=2):
    """Least number of MADs for a fabric whose ports are all given in an ibsim .net text. ibsim's adapters have PartitionCap 64: two blocks."""
    cas = len(re.findall(r"^(?:Ca|Hca)\b", net_text, re.M))
    switches = len(re.findall(r"^Switch\b", net_text, re.M))
    ends = len(re.findall(r"^\[\d+\]", net_text, re.M))
    links = ends // 2
    nodes = cas + switches
    return dict(NodeInfo=links + 1, NodeDescription=nodes, SwitchInfo=3 * switches, PortInfoGet=2 * links + switches, PortInfoSet=4 * links + switches,
                P_Key=ca_pkey_blocks * cas + switches, LFT=switches * (nodes // 64 + 1))


def weft(sim, work):
    rc, wall, cpu, rss, out = run([WEFTD, "--once", "--set", "log_level=error"], sim.env(), work, 300)
    d = json.loads(out)
    if rc != 0 or not d["ok"]:
        raise RuntimeError("weftd: " + out[-500:])
    return dict(wall=wall, cpu=cpu, rss=rss, mads=d["mads_sent"], up=d["seconds"])


def opensm(sim, work, shim):
    d = os.path.join(work, "opensm")
    shutil.rmtree(d, ignore_errors=True)
    os.makedirs(d)
    count = os.path.join(d, "count")
    env = dict(sim.env([shim]), OSM_CACHE_DIR=d, OSM_TMP_DIR=d, UMAD_COUNT_FILE=count)
    log = os.path.join(d, "log")
    rc, wall, cpu, rss, out = run(["opensm", "-o", "-f", log, "--dump_files_dir", d, "-R", "minhop"], env, work, 600)
    if "SUBNET UP" not in open(log).read():
        raise RuntimeError("opensm: " + out[-500:])
    return dict(wall=wall, cpu=cpu, rss=rss, mads=int(open(count).read()))


def side_by_side(t, name, runs, work):
    label = ALIAS.get(name, name)
    net = os.path.join(work, name + ".net")
    with open(net, "w") as f:
        subprocess.check_call([WEFTD, "--offline", name, "--print-fabric", "ibsim"], stdout=f)
    bound = mad_bound(open(net).read())
    ours, theirs = [], []
    shim = counter_shim(work)
    for i in range(runs):
        for who, kind in ((ours, "weft"), (theirs, "opensm")):
            with Ibsim(net, work) as sim:
                r = weft(sim, work) if kind == "weft" else opensm(sim, work, shim)
            note("%s %s run %d: %.2f s, %.2f s CPU, %d MB, %d MADs" % (label, kind, i + 1, r["wall"], r["cpu"], r["rss"] >> 20, r["mads"]))
            who.append(r)
    med = lambda rs, k: statistics.median(r[k] for r in rs)
    t.add(label + " wall", med(ours, "wall"), "s", med(theirs, "wall"), 1 / 3)
    t.add(label + " CPU", med(ours, "cpu"), "s", med(theirs, "cpu"), 1 / 4)
    t.add(label + " peak RSS", int(med(ours, "rss")) >> 20, "MB", int(med(theirs, "rss")) >> 20, 1 / 3)
    t.add(label + " MADs / bound", int(med(ours, "mads")), "MADs", sum(bound.values()), 1.05)
    t.add(label + " MADs / OpenSM", int(med(ours, "mads")), "MADs", int(med(theirs, "mads")))


def simulated(t, name, loss, work):
    """Virtual time: what the wire and the devices alone would take, our own computing costing nothing. 4 us a link: 48 us there and back over six links.

    The bound: all MADs through a window of 256 with the mean round trip, or the busiest device serving its MADs one by one (16 on the way to it cover a round trip);
    whichever is longer. Loss counts at every hop of a MAD, there and back; a lost one costs a time-out of at least 20 ms, and each phase ends with its last MAD."""
    label = ALIAS.get(name, name) + " simulated, 50 us, 30 us, %g %% loss" % (loss * 100)
    latency, service = 4e-6, 30e-6
    rc, wall, cpu, rss, out = run([WEFTD, "--once", "--simulate", name, "--set", "log_level=error", "--set", "sim.time=virtual", "--set", "sim.latency=4us",
                                   "--set", "sim.service=30us", "--set", "sim.loss=%g" % loss], dict(os.environ), work, 600)
    d = json.loads(out)
    if not d["ok"]:
        t.add(label, None, "s", skipped="failed: " + d["error"]["text"])
        return
    window = d["mads_sent"] * (2 * d["proof"]["max_hops"] * latency + service) / 256
    busiest = (d["mads"].get("LinearForwardingTable.Set", 0) + d["mads"].get("PortInfo.Set", 0) + d["mads"].get("PortInfo.Get", 0)) / d["switches"]
    t.add(label, sum(p["seconds"] for p in d["phases"]), "s", max(window, busiest * service))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--json", action="store_true")
    ap.add_argument("--fabrics", default="ft3-64-8,ft3-64-16")
    ap.add_argument("--runs", type=int, default=1)
    a = ap.parse_args()
    t = Table()
    work = tempfile.mkdtemp(prefix="weft-bench-")
    try:
        for name in a.fabrics.split(","):
            if have_rival():
                t.add(ALIAS.get(name, name) + " beside OpenSM", None, "s", skipped="skipped: not installed: " + have_rival())
            else:
                side_by_side(t, name, a.runs, work)
        for loss in (0, 0.001):
            simulated(t, a.fabrics.split(",")[0], loss, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(t.show(a.json))


if __name__ == "__main__":
    main()
