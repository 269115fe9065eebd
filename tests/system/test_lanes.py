# SPDX-License-Identifier: Apache-2.0
"""Virtual lanes and LID ranges on ibsim: what saquery is told, what smpquery finds on the devices.

A torus is routed by engine sssp over several lanes. Every pair's path is asked for, and followed through the tables
that ibsim dumps; what waits for what, lane by lane, has no cycle.
"""
import re

import pytest

from rig import Ibsim, Weftd, missing
from topology import BY_NAME, Net

pytestmark = pytest.mark.skipif(bool(missing("ibsim", "saquery", "smpquery")), reason=missing("ibsim", "saquery", "smpquery"))
X, Y = 5, 4


def torus():
    net = Net()
    for y in range(Y):
        for x in range(X):
            net.switch(f"s{x}{y}", 5)
            net.ca(f"h{x}{y}")
            net.link(f"h{x}{y}", 1, f"s{x}{y}", 5)
    for y in range(Y):
        for x in range(X):
            net.link(f"s{x}{y}", 1, f"s{(x + 1) % X}{y}", 2)
            net.link(f"s{x}{y}", 3, f"s{x}{(y + 1) % Y}", 4)
    return net


def paths(ibsim, host, *args):
    text = ibsim.run(host, "saquery", "-p", *args)
    found = []
    for part in re.split(r"^\S.* dump:$", text, flags=re.M)[1:]:
        found.append({m[1].lower(): m[2] for m in re.finditer(r"^\s+([A-Za-z_]\w*?):?\.{2,}(.*)$", part, re.M)})
    return found


def daemon(folder, ibsim, host, config):
    (folder / "weft.yaml").write_text(config)
    return Weftd(folder, "--config", folder / "weft.yaml", ibsim=ibsim, host=host)


def group(guid):
    """As the low half of an IPv6 address."""
    return ":".join(f"{guid >> shift & 0xffff:x}" for shift in (48, 32, 16, 0))


def has_cycle(edges):
    after = {}
    for a, b in edges:
        after.setdefault(a, set()).add(b)
        after.setdefault(b, set())
    left = dict(after)
    while True:
        ends = [c for c, nexts in left.items() if not nexts & left.keys()]
        if not ends:
            return bool(left)
        for c in ends:
            del left[c]


def follow(dump, a, z, lid):
    """Channels (node, port) on the way."""
    way, at = [(a, 1)], dump.node[a]["port"][1][0]
    while at != z:
        out = dump.node[at]["lft"][lid]
        way.append((at, out))
        at = dump.node[at]["port"][out][0]
        assert len(way) < 64
    return way


def test_torus(tmp_path):
    with Ibsim(torus(), tmp_path / "ibsim") as ibsim:
        with daemon(tmp_path, ibsim, "h00", "routing:\n  engine: sssp\n") as weftd:
            weftd.wait_up()
            fabric = weftd.get("/fabrics/default")
            assert fabric["routing"]["engine"] == "sssp" and fabric["routing"]["verified"] is True
            dump = ibsim.dump()
            lid_of = {name: lid for lid, (name, _) in dump.end.items()}
            hosts = [n.name for n in ibsim.net.cas]
            levels, edges = set(), set()
            for i, a in enumerate(hosts):
                for z in hosts[i % 3::3]:
                    if a == z:
                        continue
                    record, = paths(ibsim, "h10", "--src-to-dst", f"{lid_of[a]}:{lid_of[z]}")
                    sl = int(record["sl"], 0)
                    levels.add(sl)
                    for way in (follow(dump, a, z, lid_of[z]), follow(dump, z, a, lid_of[a])):
                        edges |= {((p, sl), (q, sl)) for p, q in zip(way, way[1:])}
            assert 2 <= len(levels) <= 8 and levels == set(range(len(levels)))
            assert not has_cycle(edges)
            # Every level that is used keeps its lane through a switch and out of an adapter.
            for target in (lid_of["s12"], lid_of["h31"]):
                text = ibsim.run("h00", "smpquery", "sl2vl", target)
                rows = re.findall(r"^ports: in +\d+, out +(\d+): +(.*)\|$", text, re.M)
                assert rows
                for out, row in rows:
                    if out == "0" and target != lid_of["h31"]:
                        continue
                    lanes = [int(v) for v in row.strip("| ").split("|")]
                    assert lanes[:len(levels)] == list(range(len(levels))), text


def test_lid_ranges(tmp_path):
    net = BY_NAME["rail-256"]()
    hosts = [n.name for n in net.cas]
    with Ibsim(net, tmp_path / "ibsim") as ibsim:
        with daemon(tmp_path, ibsim, hosts[0], "sm:\n  lmc: 1\n") as weftd:
            weftd.wait_up()
            dump = ibsim.dump()
            lid_of = {name: lid for lid, (name, _) in dump.end.items() if name in set(hosts)}
            assert len(lid_of) == len(hosts) and all(lid % 2 == 0 for lid in lid_of.values())
            a, z = hosts[9], hosts[200]
            text = ibsim.run(hosts[0], "smpquery", "portinfo", lid_of[z], 1)
            assert re.search(r"^LMC:\.+1$", text, re.M), text
            # The second LID is the same port's, by another way; of a list of paths both come.
            found = paths(ibsim, hosts[3], "--src-to-dst", f"{lid_of[a]}:{lid_of[z] + 1}")
            assert [(int(p["slid"], 0), int(p["dlid"], 0)) for p in found] == [(lid_of[a], lid_of[z] + 1)]
            found = paths(ibsim, hosts[3], "--dlid", lid_of[z], "--slid", lid_of[a])
            assert [(int(p["slid"], 0), int(p["dlid"], 0)) for p in found] == [(lid_of[a], lid_of[z])]
            guid = {n.name: n.guid + 1 for n in net.cas}
            found = paths(ibsim, hosts[3], "--sgid-to-dgid", f"fe80::{group(guid[a])}-fe80::{group(guid[z])}")
            assert [(int(p["slid"], 0), int(p["dlid"], 0)) for p in found] == \
                [(lid_of[a] + k, lid_of[z] + k) for k in (0, 1)]
            ways = [follow(dump, a, z, lid_of[z] + k) for k in (0, 1)]
            assert ways[0][-1] == ways[1][-1] and ways[0] != ways[1]

