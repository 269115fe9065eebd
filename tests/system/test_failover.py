# SPDX-License-Identifier: Apache-2.0
"""A running weftd on ibsim while trunks, hosts and whole switches fail and come back: what the devices hold is judged by ibsim's own dump, walked here, by ibdmchk
and by infiniband-diags."""
import random
import re
import struct
import subprocess
import time

import pytest

import judge
import rig
from rig import Ibsim, Weftd
from topology import BY_NAME

TOOLS = ("ibsim", "ibdmchk", "ibnetdiscover", "iblinkinfo", "dump_fts", "ibtracert", "ibqueryerrors")
pytestmark = pytest.mark.skipif(rig.missing(*TOOLS) != "", reason=rig.missing(*TOOLS))
SM_HOST = "gpu-0001-mlx5_0"
REPAIRED = 20  # seconds; what it takes is the bench's matter

# net -> what fails: a link between switches (switch, port), a host (its leaf's port), a whole switch (its name, None)
FAILS = {
    "rail-256": [("leaf-su01-r2", 40), ("leaf-su01-r1", 9), ("spine-04", None)],
    "ft3-1024": [("leaf-p02-03", 20), ("leaf-p03-02", 5), ("core-07", None), ("agg-p02-04", None)],
    "crossed": [("leaf-p2-1", 10), ("agg-p2-2", 9), ("leaf-p3-4", 3), ("core-3", None), ("agg-p3-2", None)],
}


class Site:
    """ibsim, weftd on it, and the fabric as it was when all was well."""

    def __init__(self, sim, weftd):
        self.sim, self.weftd, self.net = sim, weftd, sim.net
        self.links = self.net.num_links
        self.leaves = [n.name for n in self.net.switches if any(not self.net.node[p].switch for p, _ in n.peer.values())]
        weftd.wait_up()
        self.home = sim.dump()
        assert judge.judge_dump(self.home, self.net, SM_HOST) == len(self.leaves) * len(self.net.node)

    def cut(self, name, port):
        """Takes cables out; what is needed to put them back."""
        self.sim.console(f'Unlink "{name}"' + (f"[{port}]" if port else ""))
        return [(name, p, *self.net.unlink(name, p)) for p in ([port] if port else list(self.net.node[name].peer))]

    def join(self, cut):
        for cable in cut:
            self.net.link(*cable)
            self.sim.console(f'ReLink "{cable[0]}"[{cable[1]}]')

    def top(self):
        """The switch on top of the order that says what is up and what is down."""
        guid = int(self.weftd.fabric()["routing"]["top_guid"], 16)
        return next(n.name for n in self.net.switches if n.guid == guid)

    def gone(self):
        return [n.name for n in self.net.node.values() if not n.peer]

    def lose(self, names, percent):
        for name in names:
            self.sim.console(f'Error "{name}" {percent}')

    def wait_repaired(self):
        """Every (leaf, LID) pair that cables join arrives, on links that are there. Returns the dump that shows it."""
        links, found = self.net.num_links, [None, ""]

        def sound():
            found[0] = self.sim.dump()
            try:
                judge.judge_dump(found[0], self.net, SM_HOST, self.gone())
                return True
            except AssertionError as e:
                found[1] = str(e)
        f = self.weftd.wait_fabric(lambda f: f["links"] == links and f["state"] == "up", f"up with {links} links", REPAIRED)
        assert f["routing"]["verified"] is True
        rig.wait_until(sound, lambda: f"repaired: {found[1]}\n{self.weftd.log()[-1500:]}", REPAIRED)
        return found[0]

    def wait_home(self):
        """Whole again, with the tables of the beginning."""
        dump = self.wait_repaired()
        if tables(dump) != tables(self.home):
            rig.wait_until(lambda: tables(self.sim.dump()) == tables(self.home),
                           lambda: f"tables as before; not {different(self.home, self.sim.dump())[:5]}", REPAIRED)
            dump = self.sim.dump()
        assert dump.port_guid == self.home.port_guid, "a LID moved"
        return dump

    def judge_repair(self, dump, cut):
        """LIDs stay, also of what is gone; so do paths that did not cross the cut, and the entries of a host that is gone."""
        assert dump.port_guid == self.home.port_guid, "a LID moved"
        ends = {(a, p) for a, p, _, _ in cut} | {(z, q) for _, _, z, q in cut}
        changed = {lid for _, lid in different(self.home, dump)} & self.home.end.keys()  # the ways to others are what they were
        was, now = paths(self.home, self.leaves, changed), paths(dump, self.leaves, changed)
        moved = [k for k, path in was.items() if now[k] != path and not ends & set(path)]
        assert not moved, f"{len(moved)} paths moved that did not cross {cut[0]}: {moved[:3]}"
        for name in self.gone() if len(cut) == 1 else []:  # by itself: others may have failed on the way to it
            if not self.net.node[name].switch:
                lid = self.home.lid[name, 1]
                changed = [s.name for s in self.net.switches if dump.node[s.name]["lft"].get(lid) != self.home.node[s.name]["lft"].get(lid)]
                assert not changed, f"entries of {name} changed on {changed[:3]}"

    def judge_with_tools(self, dump):
        folder = self.sim.dir
        cas = judge.write_dump(folder, dump, self.net)
        assert cas == sum(n.name not in self.gone() for n in self.net.cas)
        judge.ibdmchk(folder, cas, "ibsim")
        judge_diags(self.sim, self.net, dump)


def paths(dump, leaves, lids):
    """{(leaf, LID): ((switch, port), ...)} up to where the path ends, arrived or not."""
    found = {}
    for leaf in leaves:
        for lid in lids:
            _, passed = dump.walk(leaf, lid)
            found[leaf, lid] = tuple((s, dump.node[s]["lft"].get(lid)) for s in passed)
    return found


def tables(dump):
    return {n: (d["lft"], d["top"]) for n, d in dump.node.items() if d["switch"]}


def different(a, b):
    """[(switch, LID)] whose entries are not the same."""
    return [(n, lid) for n, d in a.node.items() if d["switch"] and d["lft"] != b.node[n]["lft"]
            for lid in d["lft"].keys() | b.node[n]["lft"].keys() if d["lft"].get(lid) != b.node[n]["lft"].get(lid)]


def judge_diags(sim, net, dump):
    """What infiniband-diags see from another adapter: the cables, their states, the tables, a path, no errors."""
    host = next(n.name for n in net.cas if n.peer and n.name != SM_HOST)
    guid = {n.name: n.guid for n in net.node.values()}
    cables = {((guid[n.name], p), (guid[z], q)) for n in net.node.values() for p, (z, q) in n.peer.items()}
    seen, here = set(), None
    for line in sim.run(host, "ibnetdiscover").splitlines():
        if (m := re.match(r'(?:Switch|Ca)\t\d+ "[SH]-([0-9a-f]{16})"', line)):
            here = int(m[1], 16)
        elif (m := re.match(r'\[(\d+)\](?:\([0-9a-f]+\))?\s+"[SH]-([0-9a-f]{16})"\[(\d+)\]', line)):
            seen.add(((here, int(m[1])), (int(m[2], 16), int(m[3]))))
    assert seen == cables, f"ibnetdiscover: {len(seen)} cable ends of {len(cables)}"
    states = re.findall(r"==\( +\d+X +[\d.]+ Gbps +(\w+)/ +(\w+)\)==>", sim.run(host, "iblinkinfo", "-l"))
    assert states.count(("Active", "LinkUp")) == len(cables), f"iblinkinfo: {states.count(('Active', 'LinkUp'))} of {len(cables)}"
    held = {}
    for line in sim.run(host, "dump_fts", "-n").splitlines():
        if (m := re.match(r"Unicast lids .* guid (0x[0-9a-f]{16})", line)):
            table = held.setdefault(int(m[1], 16), {})
        elif (m := re.match(r"0x([0-9a-f]+) (\d+)", line)):
            table[int(m[1], 16)] = int(m[2])
    top = max(d["top"] for d in dump.node.values() if d["switch"])
    for n in net.switches:
        if n.peer:
            # dump_fts ends before the top where that is a multiple of 64
            table = {lid: out for lid, out in dump.node[n.name]["lft"].items() if lid < top or top % 64}
            assert held[n.guid] == table, f"dump_fts, {n.name}: {sorted(set(held[n.guid].items()) ^ set(table.items()))[:6]}"
    a, z = (dump.lid[n.name, 1] for n in random.Random(3).sample([n for n in net.cas if n.peer], 2))
    assert f"lid {z}-{z}" in sim.run(host, "ibtracert", a, z).splitlines()[-1]
    # MADs that ran into the dead link have been counted, those on their way to a second try may still do so; then none does
    errors = []

    def none():
        sim.run(host, "ibqueryerrors", "--skip-sl", "--clear-errors", ok=False)
        errors[:] = [sim.run(host, "ibqueryerrors", "--skip-sl", ok=False)]
        return not re.search(r"\[\w+ == \d+\]", errors[0])

    rig.wait_until(none, lambda: f"no errors: {errors[0][:500]}", poll=0.2)


@pytest.fixture(params=list(FAILS))
def site(request, tmp_path):
    with Ibsim(BY_NAME[request.param](), tmp_path / "ibsim") as sim, Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        s = Site(sim, weftd)
        s.name = request.param
        yield s


def test_fails_and_returns(site):
    """Trunks, a host, whole switches, one after the other: repaired, and as before when they are back."""
    for name, port in FAILS[site.name]:
        cut = site.cut(name, port)
        dump = site.wait_repaired()
        site.judge_repair(dump, cut)
        if len(site.net.node) < 1000 or port is None:
            site.judge_with_tools(dump)
        site.join(cut)
        site.wait_home()
    site.judge_with_tools(site.sim.dump())


def test_fails_while_mads_are_lost(site):
    """The same while the failing switch's neighbours, and others, lose a fifth of the MADs that they get."""
    for name, port in FAILS[site.name][::2 if len(site.net.node) > 1000 else 1]:
        node = site.net.node[name]
        near = [p for p, _ in node.peer.values() if site.net.node[p].switch][:4] + [name]
        choose = random.Random(name)
        lossy = {n for n in near + [s.name for s in choose.sample(site.net.switches, 4)]}
        site.lose(lossy, 20)
        cut = site.cut(name, port)
        site.judge_repair(site.wait_repaired(), cut)
        site.join(cut)
        site.wait_repaired()
        site.lose(lossy, 0)
        site.wait_home()


def test_several_at_once_in_any_order(site):
    """All of them out together, and back in another order: all comes home."""
    fails = [f for f in FAILS[site.name]]
    cuts = []
    for name, port in fails:
        cuts.append(site.cut(name, port))
    site.judge_repair(site.wait_repaired(), [c for cut in cuts for c in cut])
    random.Random(2).shuffle(cuts)
    for cut in cuts:
        site.join(cut)
    site.judge_with_tools(site.wait_home())


@pytest.mark.parametrize("name", ["rail-256", "crossed"])
def test_killed_during_the_repair(tmp_path, name):
    """kill -9 at any moment of a repair or of a return, and a restart: a proved state, no LID moved."""
    choose = random.Random(17)
    with Ibsim(BY_NAME[name](), tmp_path / "ibsim") as sim:
        with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
            site = Site(sim, weftd)
        for i in range(6):
            where = FAILS[name][i % len(FAILS[name])]
            cut = []
            for way in ("out", "in"):
                weftd = site.weftd = Weftd(tmp_path, ibsim=sim, host=SM_HOST)
                try:
                    weftd.wait_up()
                    if way == "out":
                        cut = site.cut(*where)
                    else:
                        site.join(cut)
                    time.sleep(choose.random() * 0.1)  # the moment itself, not a wait for something
                finally:
                    weftd.kill()
                sim.forget_dead_clients()
                with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
                    site.weftd = weftd
                    if way == "out":
                        site.judge_repair(site.wait_repaired(), cut)
                    else:
                        site.wait_home()
                    assert weftd.lids() == site.home.port_guid
                sim.forget_dead_clients()


# --- the order of writes ---


class Writes:
    """Replays Sets of forwarding tables over a dump. A Set that is not answered yet may have been carried out or not: both entries count.

    Up and down are those of the fabric's one order of switches, which is not quite that of the tiers: its top is a leaf, with the aggregation switches that this one hangs
    on above all cores. So a packet may turn at them, and goes up from a core to them; not even a core that has lost its way down to a leaf is without one. Where the order may
    be another one for a while (top None), since a switch is back with some of its links, turns are not judged, only what packets wait for."""
    HEAD = struct.Struct("=BBHI")

    def __init__(self, net, dump, top):
        self.net, self.dump = net, dump
        self.table = {n.name: dict(dump.node[n.name]["lft"]) for n in net.switches}
        self.out = {}  # tid -> (switch, {lid: port})
        self.by_lid = dump.end
        self.level = {n.name: ("leaf", "agg", "core").index(n.name.split("-")[0]) for n in net.switches}
        self.leaves = [name for name, level in self.level.items() if level == 0]
        self.top = top
        if top:
            assert top in self.leaves
            self.level.update({peer: 3 for peer, _ in net.node[top].peer.values() if peer in self.level})
            self.level[top] = 4
        self.turns = {}  # LID: {((switch, port), (next switch, its port))} that packets can make; see depend()
        for lid in self.by_lid:
            self.depend(lid)
        self.sets = 0

    def target(self, mad, lid):
        """The switch that a datagram reaches: along its LID, or its directed route from the manager."""
        if mad[1] == 0x01:
            return self.by_lid[lid][0]
        at = SM_HOST
        for hop in range(1, mad[7] + 1):
            at = self.net.node[at].peer[mad[128 + hop]][0]
        return at

    def possible(self, switch, lid):
        ports = {self.table[switch].get(lid, 255)}
        return ports | {new[lid] for s, new in self.out.values() if s == switch and lid in new}

    def take(self, record):
        received, _, lid, _ = self.HEAD.unpack_from(record)
        mad = record[self.HEAD.size:]
        tid = mad[12:16]
        if received:
            if tid in self.out:
                switch, new = self.out.pop(tid)
                gone = [x for x in new if x in self.by_lid and self.table[switch].get(x, 255) != new[x]]
                self.table[switch].update(new)
                for x in gone:
                    self.depend(x)
            return
        switch, first = self.target(mad, lid), struct.unpack_from(">I", mad, 20)[0] * 64
        new = {first + i: port for i, port in enumerate(mad[64:128])}
        changed = [x for x in new if self.possible(switch, x) != {new[x]}]
        self.out[tid] = (switch, new)
        self.sets += 1
        for x in changed:
            if x in self.dump.end:
                self.judge(x)
        if changed:
            self.judge_waiting()

    def judge(self, lid):
        """No loop in what any mixture of old and new entries can do to a packet for lid; no turn from down to up on its way from a leaf to an adapter."""
        state = {}

        def walk(switch, path):
            if state.get(switch) == 1:
                raise AssertionError(f"LID {lid} can circle: {path + [switch]}")
            if switch in state:
                return
            state[switch] = 1
            for _, peer in self.next(switch, lid):
                walk(peer, path + [switch])
            state[switch] = 2
        for leaf in self.leaves:
            walk(leaf, [])
        self.depend(lid)
        if self.top and not self.net.node[self.dump.end[lid][0]].switch:
            self.judge_turns(lid)

    def next(self, switch, lid):
        """[(port, switch)] where a packet can go on to another switch."""
        found = [(port, self.net.node[switch].peer.get(port, (None, 0))[0]) for port in self.possible(switch, lid) - {0, 255}]
        return [(port, peer) for port, peer in found if peer is not None and self.net.node[peer].switch]

    def depend(self, lid):
        """Which buffer a packet for lid can hold, from any switch on, while it waits for which."""
        self.turns[lid] = {((s, out), (peer, then)) for s in self.table for out, peer in self.next(s, lid) for then, _ in self.next(peer, lid)}

    def judge_waiting(self):
        """Nothing waits for itself: over all LIDs and all mixtures that there can be now."""
        after, waits = {}, {}
        for a, b in set().union(*self.turns.values()):
            after.setdefault(a, []).append(b)
            waits[b] = waits.get(b, 0) + 1
        todo = [a for a in after if a not in waits]
        while todo:
            for b in after.get(todo.pop(), []):
                waits[b] -= 1
                if waits[b] == 0:
                    del waits[b]
                    todo.append(b)
        assert not waits, f"credit loop: {sorted(waits)[:8]}"

    def picture(self, lid):
        """What each switch on a possible way does with a LID: its entry, and the one under way."""
        told = {}
        for switch in self.table:
            ports = {self.table[switch].get(lid, 255): "has"} | {p: "on its way" for p in self.possible(switch, lid) - {self.table[switch].get(lid, 255)}}
            told[switch] = {self.net.node[switch].peer.get(p, (f"port {p}",))[0]: w for p, w in ports.items()}
        return f"{self.dump.end[lid]}: {told}"

    def judge_turns(self, lid):
        todo, seen = [(leaf, True) for leaf in self.leaves], set()
        while todo:
            switch, may_rise = todo.pop()
            for _, peer in self.next(switch, lid):
                rises = self.level[peer] > self.level[switch]
                assert may_rise or not rises, f"LID {lid} can turn from down to up at {switch}, to {peer}: {self.picture(lid)}"
                if (peer, rises) not in seen:
                    seen.add((peer, rises))
                    todo.append((peer, rises))


def lft_writes_shim(folder):
    so = folder / "lft_writes.so"
    source = rig.ROOT / "tests/system/lft_writes.c"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", so, source, "-ldl"], check=True, timeout=rig.DEADLINE)
    return so


def test_no_mixture_of_old_and_new_loops(tmp_path):
    """On the net where it can: while tables are being written, no packet circles or turns from down to up, and none can wait for itself, whichever of the writes under way
    have been carried out."""
    choose = random.Random(23)
    net = BY_NAME["crossed"]()
    log = tmp_path / "writes"
    with Ibsim(net, tmp_path / "ibsim") as sim:
        with Weftd(tmp_path, ibsim=sim, host=SM_HOST, preload=lft_writes_shim(tmp_path), env={"LFT_WRITES": log}) as weftd:
            site = Site(sim, weftd)
            own = net.node[SM_HOST].peer[1][0]
            fails = [(a, p) for a, p, _, _ in net.trunks() if own not in (a, net.node[a].peer[p][0])]
            fails = choose.sample(fails, 12) + [("agg-p2-2", None), ("core-3", None), ("leaf-p2-1", 10)]
            sets, dump, cuts, top = 0, site.home, [], site.top()
            for i, where in enumerate(fails * 2):
                begin = log.stat().st_size
                there = next((c for c in cuts if (c[0][0], c[0][1]) == where or where == (c[0][0], None)), None)
                if there is None and where[1] is not None and where[1] not in net.node[where[0]].peer:
                    continue  # its switch is away
                if there is not None or len(cuts) == 3:  # not more than three at a time
                    cut = there or cuts[0]
                    cuts.remove(cut)
                    site.join(cut)
                else:
                    cut = site.cut(*where)
                    cuts.append(cut)
                after = site.wait_repaired()
                assert site.top() == top
                replay = Writes(net, dump, top if len(cut) == 1 or cut in cuts else None)
                data = log.read_bytes()[begin:]
                done = [c[0][:2] for c in cuts]
                try:
                    for k in range(0, len(data), 264):
                        replay.take(data[k:k + 264])
                except AssertionError as e:
                    raise AssertionError(f"event {i}, {where}; out are now {done}: {e}") from None
                # The replay is right when it ends where ibsim is.
                for n in net.switches:
                    told = {lid: port for lid, port in replay.table[n.name].items() if port != 255}
                    assert told == after.node[n.name]["lft"], n.name
                sets, dump = sets + replay.sets, after
            assert sets > 100
            print(f"{sets} Sets replayed")
            for cut in cuts:
                site.join(cut)
            site.wait_home()


def test_the_replay_sees(ibsim, tmp_path):
    """A circle, a turn and packets that wait for each other, planted: one switch has turned back up, the other still points down."""
    sim = ibsim("crossed")
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        site = Site(sim, weftd)
        replay = Writes(sim.net, site.home, site.top())
    lid = replay.dump.lid[next(n.name for n in sim.net.cas if n.peer[1][0] == "leaf-p2-1"), 1]
    replay.judge(lid)
    replay.judge_waiting()
    # a core sends it down to an aggregation switch of pod 2; there a new entry, back up to that core, is on its way
    core, down = next((s, replay.table[s][lid]) for s in replay.table if s.startswith("core"))
    agg, up = sim.net.node[core].peer[down]
    replay.out[b"tid1"] = (agg, {lid: up})
    with pytest.raises(AssertionError, match="circle"):
        replay.judge(lid)
    # up to another core, which sends it down: no circle, but a turn
    other = next(p for p, (peer, _) in sim.net.node[agg].peer.items() if peer.startswith("core") and peer != core)
    replay.out[b"tid1"] = (agg, {lid: other})
    replay.table[sim.net.node[agg].peer[other][0]][lid] = 255
    with pytest.raises(AssertionError, match="turn"):
        replay.judge_turns(lid)
    # such turns round two cores and two aggregation switches: each packet waits for the next one's buffer
    far = next(a for a in replay.table if a != agg and {core, sim.net.node[agg].peer[other][0]} <= {peer for peer, _ in sim.net.node[a].peer.values()})
    ring = [agg, core, far, sim.net.node[agg].peer[other][0]]
    out = [next(p for p, (peer, _) in sim.net.node[a].peer.items() if peer == z) for a, z in zip(ring, ring[1:] + ring[:1])]
    replay.turns[0] = {((ring[i - 1], out[i - 1]), (ring[i], out[i])) for i in range(4)}
    with pytest.raises(AssertionError, match="credit loop"):
        replay.judge_waiting()
