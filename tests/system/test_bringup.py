# SPDX-License-Identifier: Apache-2.0
"""`weftd --once` on ibsim: what it says about itself, and what others find in the fabric afterwards."""
import re

import pytest

import judge
import rig
from rig import Ibsim, Once, read_lids
from topology import BY_NAME, small

pytestmark = pytest.mark.skipif(rig.missing("ibsim") != "", reason=rig.missing("ibsim"))
SM_HOST = "gpu-0001-mlx5_0"


@pytest.fixture(scope="module", params=["rail-256", "rail-1024", "ft3-1024"])
def run(request, tmp_path_factory):
    """One bring-up, and ibsim's dump after it."""
    folder = tmp_path_factory.mktemp(request.param)
    with Ibsim(BY_NAME[request.param](), folder / "ibsim") as ibsim:
        once = Once(folder, "--state", folder / "state", "--dump-subnet", folder / "dump", "--dump-lft", folder / "x.lft",
                    ibsim=ibsim, host=SM_HOST)
        once.dump = ibsim.dump()
    once.folder, once.net = folder, ibsim.net
    return once


def test_says(run):
    j, net = run.json, run.net
    assert run.code == 0 and j["ok"] is True and j["error"] is None, run.stdout[:1000]
    assert (j["nodes"], j["switches"], j["links"]) == (len(net.node), len(net.switches), net.num_links)
    assert j["verified"] is True
    assert j["fabric"] == "default"
    assert j["engine"] == "rail" and j["why"]
    assert j["seconds"] > 0 and j["cpu_seconds"] > 0 and j["peak_rss_bytes"] > 0
    assert j["mads_sent"] == sum(j["mads"].values())
    assert sum(p["mads"] for p in j["phases"]) <= j["mads_sent"]
    assert [f for f in j["findings"] if f["severity"] == "error"] == []
    leaves = sum(any(not net.node[p].switch for p, _ in n.peer.values()) for n in net.switches)
    proof = j["proof"]
    assert (proof["disconnected"], proof["unreached"], proof["counter_example"]) == (0, 0, "")
    assert proof["pairs"] >= leaves * (len(net.cas) - 1)


def test_writes_no_more_than_needed(run):
    """Every table block once; a port is set twice, with its LID and settings on the way to Active."""
    # The log counts requests; "mads" counts what went out, so that a busy machine's repetitions are in it.
    said = re.search(r"fabric-up .* (\d+) table blocks and (\d+) port settings written", run.stderr)
    blocks = len(run.net.node) // 64 + 1  # LIDs are given from 1 without holes
    assert int(said[1]) == blocks * len(run.net.switches)
    assert int(said[2]) == 2 * 2 * run.net.num_links + len(run.net.switches)
    assert run.json["phases"][-1]["sweep"] == 1, "one sweep is enough when nothing is lost"


def test_ibsim_forwards_everywhere(run):
    leaves = sum(any(not run.net.node[p].switch for p, _ in n.peer.values()) for n in run.net.switches)
    assert judge.judge_dump(run.dump, run.net, SM_HOST) == leaves * len(run.net.node)


def test_dumped_tables_are_ibsims(run):
    """--dump-lft, byte for byte as in --dump-subnet, holds what the switches hold."""
    text = (run.folder / "x.lft").read_text()
    assert text == (run.folder / "dump/weft.lft").read_text()
    by_guid = {n["guid"]: n for n in run.dump.node.values() if n["switch"]}
    told = {}
    for line in text.splitlines():
        m = re.match(r"Unicast lids \[0-(\d+)\] of switch Lid (\d+) guid 0x([0-9a-f]{16}) \('(.*)'\):$", line)
        if m:
            table = told[int(m[3], 16)] = {}
            assert run.dump.port_guid[int(m[3], 16)] == int(m[2])
        elif (m := re.match(r"0x([0-9a-f]{4}) (\d{3}) # .* portguid 0x([0-9a-f]{16}): '(.*)'$", line)):
            table[int(m[1], 16)] = int(m[2])
            assert run.dump.port_guid[int(m[3], 16)] == int(m[1], 16)
    assert told == {guid: n["lft"] for guid, n in by_guid.items()}


def test_lids_are_recorded(run):
    ends = {guid: lid for guid, lid in run.dump.port_guid.items() if lid}
    assert len(ends) == len(run.net.node)
    assert read_lids(run.folder / "state") == ends


@pytest.mark.skipif(rig.missing("ibdmchk") != "", reason=rig.missing("ibdmchk"))
def test_ibdmchk(run):
    judge.ibdmchk(run.folder / "dump", len(run.net.cas))


def test_lftcheck(run):
    program = judge.lftcheck_program(run.folder)
    if program is None:
        pytest.skip("lftcheck is not here")
    r = judge.lftcheck(program, run.folder / "dump/weft.topo", run.folder / "x.lft")
    t, a, net = r["topology"], r["a"], run.net
    assert (t["topo.nodes"], t["topo.switches"], t["topo.links"]) == (len(net.node), len(net.switches), net.num_links)
    judge.lftcheck_sound(a, len(net.switches))
    assert a["reach.ca_to_ca_paths_ok"] == len(net.cas) * (len(net.cas) - 1)
    assert a["turns.down_up_dependencies"] == 0
    # Full trees: no port idle, all-to-all spread as evenly as it can be.
    assert a["a2a.throughput_per_host"] > 0.99
    assert a["rail_shift.max_load"] == 1 and a["rail_ring.max_load"] == 1


def loop(dump, net):
    """Two switches that send one LID to each other."""
    a, port_a, z, port_z = next(net.trunks())
    lid = next(lid for lid, (end, _) in dump.end.items() if end not in (a, z))
    dump.node[a]["lft"][lid], dump.node[z]["lft"][lid] = port_a, port_z


def wrong_adapter(dump, net):
    dump.node["leaf-1"]["lft"][dump.lid["gpu-0001-mlx5_0", 1]] = 2


def no_entry(dump, net):
    del dump.node["leaf-2"]["lft"][dump.lid["gpu-0001-mlx5_1", 1]]


def top_too_low(dump, net):
    dump.node["leaf-1"]["top"] -= 1


def port_not_active(dump, net):
    peer, port, _ = dump.node["spine-2"]["port"][1]
    dump.node["spine-2"]["port"][1] = (peer, port, "Armed")


def no_lid(dump, net):
    dump.lid["spine-1", 0] = 0


def lid_twice(dump, net):
    dump.doubled.append((1, ("spine-1", 0), ("spine-2", 0)))


def wrong_master(dump, net):
    dump.smlid["gpu-0001-mlx5_7", 1] += 1


FAULTS = [loop, wrong_adapter, no_entry, top_too_low, port_not_active, no_lid, lid_twice, wrong_master]


@pytest.mark.parametrize("fault", FAULTS, ids=[f.__name__ for f in FAULTS])
def test_the_judge_sees(ibsim, tmp_path, fault):
    """The judge of the dumps passes a sound fabric and finds what is planted in it."""
    sim = ibsim(small())
    assert Once(tmp_path, ibsim=sim, host=SM_HOST).code == 0
    dump = sim.dump()
    assert judge.judge_dump(dump, sim.net, SM_HOST) == 2 * len(sim.net.node)
    fault(dump, sim.net)
    with pytest.raises(AssertionError):
        judge.judge_dump(dump, sim.net, SM_HOST)
