# SPDX-License-Identifier: Apache-2.0
"""One dead trunk, one dead host, and both back: weft beside OpenSM on the same ibsim, and weft on its own simulator with latency.

    ./dev bench failover-link [--json] [--fabric ft3-64-8] [--events leaf-agg,agg-core,host]

Both managers keep running (light sweeps every 5 s; OpenSM with its default engine), in turns, and are watched from outside (failoverlib.py). From the first trap 128
received to the last Set(LinearForwardingTable) sent; MADs sent from the trap on, all of them: repeats and TrapRepress too. Bars: 0.1 s; MADs of a trunk at most LFT Sets +
2 x (ports + 3) + 20 with the ports of one switch, port 0 not counted; of a host at most its leaf's ports + 40. What ibsim's dump says to it (paths moved without need, paths that
do not arrive) is told on stderr and in rows.
"""
import argparse
import os
import shutil
import sys
import tempfile

from benchlib import Table, have_rival, note
from bringup import ALIAS
from failoverlib import SWEEP, Difference, Opensm, Sim, Weft, event, load, say, simulated_events, simulator, times_shim, write_net

SIM_BAR, LOST_BAR, IBSIM_BAR = 0.2, 1.5, 0.1


def places(fabric, events):
    """[(kind, what, node, port)]"""
    found = []
    for kind in events:
        if kind == "leaf-agg":
            node, port = fabric.trunk(fabric.leaves, fabric.above)
        elif kind == "agg-core":
            if not fabric.tops:
                continue
            node, port = fabric.trunk(fabric.above, fabric.tops, skip=1)
        else:
            ca, leaf = fabric.host()
            node, port = leaf, fabric.link[ca][1][1]
        found.append((kind, node, port))
    return found


def mad_bar(kind, fabric, node, r):
    return fabric.ports[node] + 40 if kind == "host" else r.lft_sets + 2 * (fabric.ports[node] + 3) + 20


def failures(manager, sim, fabric, events):
    """{(kind, "down" or "up"): (Reaction, Difference)}"""
    found = {}
    manager.wait_up(fabric.links)
    before = sim.dump(fabric)
    for kind, node, port in places(fabric, events):
        peer = fabric.link[node][port]
        dead = {(node, port), peer}
        here = '"%s"[%d]' % (node, port)
        home = before
        for way, line, links in (("down", "Unlink " + here, fabric.links - 1), ("up", "ReLink " + here, fabric.links)):
            r = event(manager, sim, fabric, [line], links)
            after = sim.dump(fabric)
            d = Difference(before, after, dead)
            d.home = way == "up" and after.lft == home.lft
            say(manager.name, "%s %s, %s[%d]" % (kind, way, fabric.desc[node], port), r, d)
            if way == "up":
                note("    tables are %s before the failure" % ("as" if d.home else "NOT as"))
            found[kind, way] = (r, d)
            before = after
    return found


def side_by_side(t, name, events, work, alone):
    label = ALIAS.get(name, name)
    net, fabric = write_net(name, work)
    shim = times_shim(work)
    result = {}
    for kind in ("weft",) if alone else ("weft", "opensm"):
        with Sim(net, work) as sim:
            with (Weft(work, sim, ["--set", "sm.sweep_interval=%ds" % SWEEP], shim) if kind == "weft" else Opensm(work, sim, shim)) as manager:
                result[kind] = failures(manager, sim, fabric, events)
    for key, (ours, d) in result["weft"].items():
        theirs, their_d = result.get("opensm", {}).get(key, (None, None))
        kind, way = key
        row = "%s %s %s " % (label, kind, way)
        node = next(n for k, n, _ in places(fabric, events) if k == kind)
        if ours.lft_sets:
            t.add(row + "last LFT Set", ours.last_lft, "s", theirs and theirs.last_lft or None, IBSIM_BAR, absolute=True)
        t.add(row + "MADs", ours.mads, "MADs", theirs and theirs.mads, mad_bar(kind, fabric, node, ours), absolute=True)
        t.add(row + "LFT Sets", ours.lft_sets, "blocks", theirs and theirs.lft_sets or None)
        if way == "down":
            t.add(row + "paths moved without need", d.moved_without_need, "paths", their_d and their_d.moved_without_need or None, 0, absolute=True)
        t.add(row + "paths that do not arrive", d.broken, "paths", their_d and their_d.broken or None, 0, absolute=True)
        if way == "up":
            t.add(row + "tables not as before", int(not d.home), "", their_d and int(not their_d.home) or None, 0, absolute=True)


def simulated(t, name, events, work):
    """weft's own simulator, real time, 4 us a link (48 us there and back over six links) and 30 us a request; light sweeps as by default."""
    label = ALIAS.get(name, name) + " simulated "
    os.makedirs(work)
    _, fabric = write_net(name, work)
    with simulator(work, name) as weft:
        weft.wait_up(fabric.links)
        for kind, node, port in places(fabric, events):
            for way in ("down", "up"):
                r = simulated_events(weft, fabric, "%s[%d] %s" % (fabric.desc[node], port, way), [(node, port)], way == "up", fabric.links - (way == "down"))
                row = "%s%s %s " % (label, kind, way)
                if r.lft_sets:
                    t.add(row + "last LFT Set", r.last_lft, "s", bar=SIM_BAR)
                t.add(row + "MADs", r.mads, "MADs", bar=mad_bar(kind, fabric, node, r))
        if "leaf-agg" in events:
            node, port = fabric.trunk(fabric.leaves, fabric.above)
            for way in ("down", "up"):
                r = simulated_events(weft, fabric, "%s[%d] %s" % (fabric.desc[node], port, way), [(node, port)], way == "up", fabric.links - (way == "down"), traps_lost=True)
                row = "%sleaf-agg %s, both traps lost " % (label, way)
                if r is None:
                    t.add(row + "last LFT Set", None, "s", skipped="skipped: the simulator cannot lose traps yet")
                else:
                    t.add(row + "last LFT Set", r.last_lft, "s", bar=LOST_BAR)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--json", action="store_true")
    ap.add_argument("--fabric", default="ft3-64-8")
    ap.add_argument("--events", default="leaf-agg,agg-core,host")
    ap.add_argument("--only", choices=("ibsim", "simulator"))
    ap.add_argument("--alone", action="store_true", help="on ibsim without OpenSM beside")
    a = ap.parse_args()
    t = Table()
    load()
    work = tempfile.mkdtemp(prefix="weft-bench-")
    events = a.events.split(",")
    try:
        if a.only != "simulator":
            if have_rival():
                t.add(ALIAS.get(a.fabric, a.fabric) + " beside OpenSM", None, "s", skipped="skipped: not installed: " + have_rival())
            else:
                side_by_side(t, a.fabric, events, work, a.alone)
        if a.only != "ibsim":
            simulated(t, a.fabric, events, os.path.join(work, "simulated"))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(t.show(a.json))


if __name__ == "__main__":
    main()
