# SPDX-License-Identifier: Apache-2.0
"""Counters on ibsim: what perfquery and ibqueryerrors read of the same devices is what weft says, while values are put into them (ibsim's
PerformanceSet) and cleared in between (perfquery -R)."""
import json
import os
import random
import re
import subprocess

import pytest

import rig
from rig import Ibsim, Weftd, wait_until
from topology import BY_NAME

TOOLS = ("ibsim", "perfquery", "ibqueryerrors")
pytestmark = pytest.mark.skipif(rig.missing(*TOOLS) != "", reason=rig.missing(*TOOLS))
SM_HOST, HOST = "gpu-0001-mlx5_0", "gpu-0003-mlx5_5"
# ibsim's agents have extended data counters, no extended errors; the narrow ones have these widths.
ERRORS = {"SymbolErrorCounter": 16, "LinkErrorRecoveryCounter": 8, "LinkDownedCounter": 8, "PortRcvErrors": 16,
          "PortRcvRemotePhysicalErrors": 16, "PortRcvSwitchRelayErrors": 16, "PortXmitDiscards": 16,
          "PortXmitConstraintErrors": 8, "PortRcvConstraintErrors": 8, "LocalLinkIntegrityErrors": 4,
          "ExcessiveBufferOverrunErrors": 4, "VL15Dropped": 16}
DATA = {"PortXmitData": 4, "PortRcvData": 4, "PortXmitPkts": 1, "PortRcvPkts": 1}  # bytes a count


class Site:
    def __init__(self, ibsim, weftd):
        self.ibsim, self.weftd = ibsim, weftd
        weftd.wait_up()
        self.name_of = {c["ibta"].lower(): c["name"] for c in weftd.all("/counters")}
        self.node = {n["name"]: n for n in weftd.all("/fabrics/default/nodes")}
        self.sweeps()

    def run(self, *command, **more):
        return self.ibsim.run(HOST, *command, **more)

    def telemetry(self):
        return self.weftd.get("/fabrics/default")["telemetry"]

    def sweeps(self):
        """Waits for the end of a sweep that began after now."""
        begun = self.telemetry()["sweeps"]
        wait_until(lambda: self.telemetry()["sweeps"] >= begun + 2, "sweeps of counters")

    def all(self):
        """weft's values of all ports, by (node's name, port)."""
        return {(r["name"], r["port"]): r for r in self.weftd.all("/fabrics/default/counters")}

    def of(self, place):
        return self.all()[place]

    def put(self, place, **values):
        """Into the device, by fields of PortCounters; x_ before a name: of PortCountersExtended."""
        ids = {n.desc: i for i, n in self.ibsim.net.node.items()}
        for key, value in values.items():
            attr = "PortCountersExtended" if key.startswith("x_") else "PortCounters"
            said = self.ibsim.console(f'PerformanceSet "{ids[place[0]]}"[{place[1]}] {attr}.{key.removeprefix("x_")}={value}')
            assert f"has been set to {value}" in said, said

    def lid(self, place):
        node = self.node[place[0]]
        if node["type"] == "switch":
            return node["lid"]
        return self.weftd.get(f"/fabrics/default/nodes/{node['guid']}")["ports"][0]["lid"]

    def perfquery(self, place, *options):
        return fields(self.run("perfquery", *options, self.lid(place), place[1]))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counters")
    with Ibsim(BY_NAME["rail-256"](), folder / "ibsim") as ibsim:
        with Weftd(folder, "--set", "telemetry.interval=1s", "--set", "telemetry.detail_interval=1s", ibsim=ibsim,
                   host=SM_HOST) as weftd:
            yield Site(ibsim, weftd)


def fields(text):
    """name -> value of the dotted lines of perfquery."""
    return {m[1].lower(): int(m[2], 0) for m in re.finditer(r"^(\w+):\.*(\w+)$", text, re.M)}


def places(site, n, seed):
    return random.Random(seed).sample(sorted(site.all()), n)


def test_every_port_is_read(site):
    rows = site.all()
    assert len(rows) == 2 * site.ibsim.net.num_links
    assert all(r["pma"] == "read" for r in rows.values())
    t = site.telemetry()
    assert (t["ports"], t["read"], t["unread"], t["unread_nodes"]) == (len(rows), len(rows), 0, 0)


def test_perfquery_says_the_same(site):
    """Errors of every width, waits and data put into twelve ports: each says what perfquery says."""
    chosen = places(site, 12, seed=1)
    rnd = random.Random(2)
    wanted = {}
    for place in chosen:
        values = {name: rnd.randrange(1, 2**bits - 1) for name, bits in ERRORS.items()}
        wanted[place] = {**values, "PortXmitWait": rnd.randrange(1, 2**32 - 1)}
        site.put(place, **wanted[place])
    site.sweeps()
    rows = site.all()
    for place in chosen:
        said, value = site.perfquery(place), rows[place]["value"]
        for name, is_ in wanted[place].items():
            assert said[name.lower()] == is_ == value[site.name_of[name.lower()]], (place, name)
        assert not rows[place]["saturated"]
    # Data moves while it is read, by MADs alone: between a reading before and one after. As much as the link can carry.
    for place in chosen[:4]:
        now = site.perfquery(place, "-x")
        site.put(place, x_PortXmitData=now["portxmitdata"] + rnd.randrange(10**9), x_PortRcvPkts=now["portrcvpkts"] + rnd.randrange(10**7))
        before = site.perfquery(place, "-x")
        site.sweeps()
        value, after = site.of(place)["value"], site.perfquery(place, "-x")
        for name, size in DATA.items():
            assert before[name.lower()] * size <= value[site.name_of[name.lower()]] <= after[name.lower()] * size, (place, name)


def test_ibqueryerrors_finds_the_same_ports(site):
    """ibqueryerrors' ports are those with counts above zero, with the same counts."""
    site.sweeps()
    said = {}
    for line in site.run("ibqueryerrors", ok=False).splitlines():
        if (m := re.match(r"\s*GUID 0x([0-9a-f]+) port (\d+):(.*)", line)):
            said[int(m[1], 16), int(m[2])] = {k.lower(): int(v) for k, v in re.findall(r"\[(\w+) == (\d+)", m[3])}
    rows = site.all()
    ours = {}
    for place, r in rows.items():
        found = {k: v for k in [*map(str.lower, ERRORS), "portxmitwait"] if (v := r["value"][site.name_of[k]])}
        if found:
            ours[int(r["guid"], 16), r["port"]] = found
    # ibqueryerrors names an adapter's port by PortGUID, which ibsim makes of the node's and the port's number.
    cas = {int(n["guid"], 16) for n in site.node.values() if n["type"] == "ca"}
    ours = {((g + p, p) if g in cas else (g, p)): v for (g, p), v in ours.items()}
    assert said == ours
    assert len(ours) >= 12


@pytest.mark.skipif(not os.access(os.environ.get("WEFT", ""), os.X_OK), reason="no program in $WEFT")
def test_the_command_says_the_same(site):
    """weft counters of a port: perfquery's errors again."""
    place = places(site, 12, seed=1)[0]
    r = subprocess.run([os.environ["WEFT"], "--socket", site.weftd.socket, "counters", f"{place[0]}/{place[1]}", "-o", "json"],
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=rig.DEADLINE)
    assert r.returncode in (0, 1), r.stderr
    said, rows = site.perfquery(place), json.loads(r.stdout)
    row = rows["items"][0] if "items" in rows else rows
    assert (row["name"], row["port"]) == place
    for name in ERRORS:
        assert row["value"][site.name_of[name.lower()]] == said[name.lower()], name


def test_clears_by_others(site):
    """perfquery -R in between: what was counted stays, what comes after is added; the port says so once."""
    chosen = places(site, 4, seed=3)
    for place in chosen:
        site.put(place, SymbolErrorCounter=40, PortRcvErrors=1000, LinkDownedCounter=3)
    site.sweeps()
    before = site.all()
    for place in chosen:
        site.run("perfquery", "-R", site.lid(place), place[1])
    site.sweeps()
    for place in chosen[:2]:
        site.put(place, SymbolErrorCounter=2, PortRcvErrors=7)
    site.sweeps()
    after = site.all()
    for i, place in enumerate(chosen):
        a, z = before[place]["value"], after[place]["value"]
        assert z["symbol_errors"] - a["symbol_errors"] == (2 if i < 2 else 0)
        assert z["rcv_errors"] - a["rcv_errors"] == (7 if i < 2 else 0)
        assert z["link_downed"] == a["link_downed"]
        assert z["xmit_data"] >= a["xmit_data"] and z["rcv_pkts"] >= a["rcv_pkts"]
        assert after[place]["resets"] > before[place]["resets"]
    others = [p for p in after if p not in chosen]
    assert all(after[p]["resets"] == before[p]["resets"] for p in others)


def test_saturated(site):
    """A counter at its maximum is said to be there; weft does not clear it unless it is told to."""
    place = places(site, 1, seed=4)[0]
    site.put(place, SymbolErrorCounter=65535, LocalLinkIntegrityErrors=15)
    site.sweeps()
    r = site.of(place)
    assert r["saturated"] and r["value"]["symbol_errors"] >= 65535
    assert site.perfquery(place)["symbolerrorcounter"] == 65535
    site.run("perfquery", "-R", site.lid(place), place[1])
    site.put(place, SymbolErrorCounter=3)
    site.sweeps()
    assert not site.of(place)["saturated"]


def test_counters_outlive_a_restart(site, tmp_path):
    """Another weftd with the same folder: nothing goes back, nothing is counted twice, what came meanwhile is there."""
    before = site.all()
    place = max(before, key=lambda p: before[p]["value"]["rcv_errors"])
    folder = site.weftd.dir
    site.weftd.__exit__(None, None, None)
    site.ibsim.forget_dead_clients()
    raw = site.perfquery(place)["portrcverrors"]
    site.put(place, PortRcvErrors=raw + 5)
    with Weftd(folder, "--set", "telemetry.interval=1s", "--set", "telemetry.detail_interval=1s", ibsim=site.ibsim, host=SM_HOST,
               name="again") as weftd:
        site.weftd = weftd
        weftd.wait_up()
        site.sweeps()
        after = site.all()
        for p, r in before.items():
            for name, v in r["value"].items():
                assert v is None or after[p]["value"][name] >= v, (p, name)
        assert after[place]["value"]["rcv_errors"] == before[place]["value"]["rcv_errors"] + 5
