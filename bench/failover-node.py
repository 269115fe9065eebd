# SPDX-License-Identifier: Apache-2.0
"""A spine dead and back, and a thousand hosts coming up at once: weft beside OpenSM on the same ibsim, and weft on its own simulator with latency.

    ./dev bench failover-node [--json] [--fabric rail-1024] [--hosts 1000] [--events spine,hosts]

Measured as failover-link does. The bar of a spine is 0.3 s from the first trap to the last table write, and MADs of at most

    down   LFT Sets + 20 + of each switch at the other end of its links: ports + 3 + of each link: a TrapRepress
    up     the same + of the spine: ports + 3, NodeInfo, NodeDescription, P_KeyTable, its table's blocks, which are read
                    + of each link: NodeInfo, 4 Set(PortInfo) (both ends from INIT to ARMED to ACTIVE), the other end's TrapRepress

which is told with its figures, as is every MAD by attribute, on stderr. In the simulator the spine is without power for AWAY seconds and has forgotten everything.

Hosts: their adapters' cables go out, all comes to rest, then all go in at once; the time from the first trap to the last Set(PortInfo) that makes a port ACTIVE, judged by ibsim's
dump. What weft lost to windows of its own making is a row: requests that were sent again, that could not be delivered (its own count; ibsim itself loses nothing: on a busy machine
answers come late, which is told on stderr), and in the simulator VL15Dropped: datagrams that a device's buffer had no room for.
"""
import argparse
import os
import shutil
import sys
import tempfile

from benchlib import Table, have_rival, note
from failoverlib import SWEEP, Difference, Opensm, Sim, Weft, event, load, say, settle, simulated_events, simulated_reboot, simulator, times_shim, write_net

SPINE_BAR = 0.3
AWAY = 15  # seconds, in which weft must be done with its death
LOST = ("retries", "undeliverable")


def dead_spine(fabric):
    return fabric.above[len(fabric.above) // 2]


def mad_bar(fabric, spine, way, r):
    """The bar, and what it is made of."""
    links, others = len(fabric.link[spine]), {peer for peer, _ in fabric.link[spine].values()}
    parts = {"LFT Sets": r.lft_sets, "allowance": 20, "ports + 3 of %d switches" % len(others): sum(fabric.ports[s] + 3 for s in others), "TrapRepress": links}
    if way == "up":
        top = len(fabric.cas) + len(fabric.switches)  # LIDs are dense
        parts.update({"the spine's ports + 3": fabric.ports[spine] + 3, "NodeInfo, NodeDescription, P_KeyTable": 3, "its table's blocks": top // 64 + 1, "NodeInfo a link": links,
                      "4 Set(PortInfo) a link": 4 * links, "TrapRepress of the other ends": links})
    note("    bar of MADs: %d = %s" % (sum(parts.values()), " + ".join("%d %s" % (n, what) for what, n in parts.items())))
    return sum(parts.values())


def adapters(fabric, n):
    """The last n; the manager sits on the first."""
    return fabric.cas[-min(n, len(fabric.cas) - 8):]


def lost(manager, before):
    if before is None:
        return None
    now = manager.api.mads()
    return {k: now[k] - before[k] for k in (*LOST, "late")}


def spine_down_up(manager, sim, fabric):
    spine = dead_spine(fabric)
    ends = fabric.link[spine]
    dead = {(spine, p) for p in ends} | set(ends.values())
    home = before = sim.dump(fabric)
    found = {}
    for way, verb, links in (("down", "Unlink", fabric.links - len(ends)), ("up", "ReLink", fabric.links)):
        r = event(manager, sim, fabric, ['%s "%s"' % (verb, spine)], links)
        after = sim.dump(fabric)
        d = Difference(before, after, dead)
        d.home = after.lft == home.lft
        say(manager.name, "%s %s" % (fabric.desc[spine], way), r, d)
        found["spine", way] = (r, d)
        before = after
    return found


def hosts_down_up(manager, sim, fabric, n):
    chosen = adapters(fabric, n)
    home = sim.dump(fabric)
    found = {}
    for way, verb, links in (("down", "Unlink", fabric.links - len(chosen)), ("up", "ReLink", fabric.links)):
        counts = manager.api.mads() if isinstance(manager, Weft) else None
        r = event(manager, sim, fabric, ['%s "%s"[1]' % (verb, ca) for ca in chosen], links)
        after = sim.dump(fabric)
        d = Difference(home, after, {(ca, 1) for ca in chosen})
        d.home, d.active = after.lft == home.lft, after.all_active()
        d.lost = lost(manager, counts)
        say(manager.name, "%d adapters %s" % (len(chosen), way), r, d)
        if d.lost:
            note("    " + ", ".join("%s %d" % kv for kv in d.lost.items()))
        found["hosts", way] = (r, d)
    return found


def side_by_side(t, name, events, n, work, alone):
    net, fabric = write_net(name, work)
    shim = times_shim(work)
    result = {}
    for kind in ("weft",) if alone else ("weft", "opensm"):
        result[kind] = {}
        with Sim(net, work) as sim:
            with (Weft(work, sim, ["--set", "sm.sweep_interval=%ds" % SWEEP], shim) if kind == "weft" else Opensm(work, sim, shim)) as manager:
                manager.wait_up(fabric.links)
                settle(manager, len(fabric.switches))
                if "spine" in events:
                    result[kind].update(spine_down_up(manager, sim, fabric))
                if "hosts" in events:
                    result[kind].update(hosts_down_up(manager, sim, fabric, n))
    for (what, way), (ours, d) in result["weft"].items():
        theirs, their_d = result.get("opensm", {}).get((what, way), (None, None))
        row = "%s %s %s " % (name, "%d hosts' ports" % len(adapters(fabric, n)) if what == "hosts" else what, way)
        if what == "spine":
            t.add(row + "last LFT Set", ours.last_lft, "s", theirs and theirs.last_lft or None, SPINE_BAR, absolute=True)
            t.add(row + "MADs", ours.mads, "MADs", theirs and theirs.mads, mad_bar(fabric, dead_spine(fabric), way, ours), absolute=True)
            if way == "down":
                t.add(row + "paths moved without need", d.moved_without_need, "paths", their_d and their_d.moved_without_need or None, 0, absolute=True)
        else:
            if way == "up":
                t.add(row + "last port ACTIVE", ours.last_active if d.active else None, "s", theirs.last_active if their_d and their_d.active else None,
                      skipped=None if d.active else "MISSED: not all ports are ACTIVE")
            t.add(row + "MADs", ours.mads, "MADs", theirs and theirs.mads)
            for k in LOST:  # devices that have just gone cost time-outs
                t.add(row + k, d.lost[k], "MADs", bar=0 if way == "up" else None)
        t.add(row + "LFT Sets", ours.lft_sets, "blocks", theirs and theirs.lft_sets or None)
        if way == "up" or what == "spine":
            t.add(row + "paths that do not arrive", d.broken, "paths", their_d and their_d.broken or None, 0, absolute=True)
        if way == "up":
            t.add(row + "tables not as before", int(not d.home), "", their_d and int(not their_d.home) or None, 0, absolute=True)


def simulated(t, name, events, n, work):
    os.makedirs(work)
    _, fabric = write_net(name, work)
    spine = dead_spine(fabric)
    with simulator(work, name) as weft:
        weft.wait_up(fabric.links)
        if "spine" in events:
            for way, r in simulated_reboot(weft, fabric, spine, AWAY).items():
                row = "%s simulated spine %s " % (name, way)
                t.add(row + "last LFT Set", r.last_lft, "s", bar=SPINE_BAR)
                t.add(row + "MADs", r.mads, "MADs", bar=mad_bar(fabric, spine, way, r))
        if "hosts" in events:
            cables = [(ca, 1) for ca in adapters(fabric, n)]
            for way in ("down", "up"):
                counts, dropped = weft.api.mads(), weft.api.vl15_dropped()
                r = simulated_events(weft, fabric, "%d adapters %s" % (len(cables), way), cables, way == "up", fabric.links - len(cables) * (way == "down"))
                row = "%s simulated %d hosts' ports %s " % (name, len(cables), way)
                if way == "up":
                    t.add(row + "last sweep ended", r.seconds, "s")
                t.add(row + "MADs", r.mads, "MADs")
                d = lost(weft, counts)
                note("    " + ", ".join("%s %d" % kv for kv in d.items()))
                for k in LOST:
                    t.add(row + k, d[k], "MADs", bar=0 if way == "up" else None)
                t.add(row + "VL15Dropped", weft.api.vl15_dropped() - dropped, "MADs", bar=0)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--json", action="store_true")
    ap.add_argument("--fabric", default="rail-1024")
    ap.add_argument("--hosts", type=int, default=1000)
    ap.add_argument("--events", default="spine,hosts")
    ap.add_argument("--only", choices=("ibsim", "simulator"))
    ap.add_argument("--alone", action="store_true", help="on ibsim without OpenSM beside")
    a = ap.parse_args()
    t = Table()
    load()
    work = tempfile.mkdtemp(prefix="weft-bench-")
    try:
        if a.only != "simulator":
            if have_rival():
                t.add(a.fabric + " beside OpenSM", None, "s", skipped="skipped: not installed: " + have_rival())
            else:
                side_by_side(t, a.fabric, a.events.split(","), a.hosts, work, a.alone)
        if a.only != "ibsim":
            simulated(t, a.fabric, a.events.split(","), a.hosts, os.path.join(work, "simulated"))
    finally:
        shutil.rmtree(work, ignore_errors=True)
    sys.exit(t.show(a.json))


if __name__ == "__main__":
    main()
