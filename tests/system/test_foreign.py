# SPDX-License-Identifier: Apache-2.0
"""Another subnet manager on the fabric: OpenSM, on the same ibsim."""
import contextlib
import subprocess
import time

import pytest

import judge
import rig
from rig import Once, Weftd
from topology import small

pytestmark = pytest.mark.skipif(rig.missing("ibsim", "opensm", "sminfo") != "", reason=rig.missing("ibsim", "opensm", "sminfo"))
SM_HOST, OTHER, WATCHER = "gpu-0001-mlx5_0", "gpu-0001-mlx5_6", "gpu-0001-mlx5_4"


@contextlib.contextmanager
def opensm(sim, folder, priority=15, wait=None):
    """OpenSM on sim's fabric; waits until it is its master, or for wait()."""
    folder.mkdir()
    with open(folder / "out", "wb") as out:
        p = subprocess.Popen([rig.tool("opensm"), "-p", str(priority), "-f", folder / "log", "--dump_files_dir", folder], cwd=folder, stdout=out,
                             stderr=out, stdin=subprocess.DEVNULL, env=sim.env(OTHER, OSM_CACHE_DIR=folder, OSM_TMP_DIR=folder))
    try:
        rig.wait_until(wait or (lambda: active(sim)), "OpenSM is where it should be")
        yield p
    finally:
        p.kill()
        p.wait()
        sim.forget_dead_clients()


def active(sim):
    return all(lid > 0 for lid in sim.dump().lid.values()) and "SMINFO_MASTER" in sim.run(WATCHER, "sminfo", ok=False)


def kinds(weftd):
    return {e["kind"] for e in weftd.get("/events")["items"]}


def entered(folder, state):
    log = folder / "log"
    return lambda: log.exists() and f"Entering {state} state" in log.read_text()


def test_stands_by_and_takes_over(ibsim, tmp_path):
    """weft names the other and touches nothing; when the other is gone, it takes the fabric over as it is."""
    net = small()
    sim = ibsim(net)
    with opensm(sim, tmp_path / "opensm") as other:
        guid = f"0x{net.node[OTHER].guid + 1:016x}"
        before = sim.dump()
        once = Once(tmp_path / "once", ibsim=sim, host=SM_HOST)
        assert once.code == 1 and once.json["ok"] is False
        error = once.json["error"]
        assert error["code"] == "busy" and guid in error["text"] and net.node[OTHER].desc in error["where"]
        assert not [k for k in once.json["mads"] if k.endswith(".Set")], once.json["mads"]
        with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
            f = weftd.wait_fabric(lambda f: f["state"] == "standby", "standby")
            assert f["other_sm"] == {"guid": guid, "lid": before.lid[OTHER, 1], "priority": 15, "state": "master"}
            assert f["sm"]["state"] == "standby" and guid in f["advice"][0]
            seen, = f["managers"]
            assert seen | {"last_heard": None} == {
                "guid": guid, "priority": 15, "state": "master", "above": True, "other_key": False, "node": net.node[OTHER].desc,
                "node_guid": f"0x{net.node[OTHER].guid:016x}", "port": 1, "lid": before.lid[OTHER, 1], "missed": 0, "last_heard": None}, seen
            assert [k for k, n in weftd.mads().items() if k[1] == "Set" and n] == []
            assert f"sm guid {guid}" in sim.run(WATCHER, "sminfo").replace("0x2c9", "0x0002c9")
            # It polls the other and reads nothing else, and never forgets meanwhile for whom it stands by.
            mads = weftd.mads()

            def polled():
                now = weftd.fabric()
                assert now["state"] == "standby" and now["other_sm"] == f["other_sm"], now
                return weftd.mads()["SMInfo", "Get"] >= mads["SMInfo", "Get"] + 3
            rig.wait_until(polled, "polled")
            quiet = weftd.mads()
            assert [k for k, n in quiet.items() if k != ("SMInfo", "Get") and n != mads.get(k)] == []
            assert sim.dump().port_guid == before.port_guid
            other.kill()
            other.wait()
            sim.forget_dead_clients()
            f = weftd.wait_up()
            assert f["other_sm"] is None and f["routing"]["verified"] is True
            after = sim.dump()
            assert after.port_guid == before.port_guid, "a LID moved"
            assert judge.judge_dump(after, net, SM_HOST) > 0
            assert {"foreign-sm", "foreign-sm-gone", "fabric-up"} <= kinds(weftd)


def test_is_handed_over(ibsim, tmp_path):
    """A running OpenSM that ranks below hands its fabric over: no LID moves, and it stands by from then on."""
    net = small()
    sim = ibsim(net)
    with opensm(sim, tmp_path / "opensm", priority=1):
        before = sim.dump()
        with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
            f = weftd.wait_up()
            assert f["sm"]["state"] == "master" and f["routing"]["verified"] is True
            after = sim.dump()
            assert after.port_guid == before.port_guid, "a LID moved"
            assert judge.judge_dump(after, net, SM_HOST) > 0
            rig.wait_until(entered(tmp_path / "opensm", "STANDBY"), "OpenSM stands by")
            assert {"foreign-sm", "handed-over"} <= kinds(weftd)


def test_opensm_stands_by(ibsim, tmp_path):
    """OpenSM that comes later and ranks below leaves the fabric alone."""
    net = small()
    sim = ibsim(net)
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        weftd.wait_up()
        before = sim.dump()
        log = tmp_path / "opensm" / "log"
        with opensm(sim, tmp_path / "opensm", priority=1, wait=lambda: log.exists() and "STANDBY" in log.read_text()):
            weftd.get("/status")
            assert weftd.fabric()["sm"]["state"] == "master"
            assert sim.dump().port_guid == before.port_guid
            assert not [f for f in weftd.get("/fabrics/default/findings")["items"] if f["code"] == "second-master"]


def test_gives_way_and_comes_back(ibsim, tmp_path):
    """OpenSM that ranks above takes the fabric over from weft; when it is killed, weft is master again within seconds, and an
    OpenSM that ranks below leaves it so. No LID moves in all this."""
    net = small()
    sim = ibsim(net)
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        weftd.wait_up()
        before = sim.dump()
        with opensm(sim, tmp_path / "high", priority=15, wait=entered(tmp_path / "high", "MASTER")) as other:
            f = weftd.wait_fabric(lambda f: f["state"] == "standby" and f["other_sm"]["state"] == "master", "standby")
            assert f["other_sm"]["priority"] == 15
            # What OpenSM does then cannot be awaited here: as a standby it has sent a trap, whose TrapRepress ibsim drops,
            # and it waits for it before it sweeps.
            assert sim.dump().port_guid == before.port_guid, "a LID moved"
            assert {"foreign-sm", "gives-way"} <= kinds(weftd)
            sets = {k: n for k, n in weftd.mads().items() if k[1] == "Set"}
            other.kill()
            other.wait()
            began = time.monotonic()
            f = weftd.wait_up()
            assert time.monotonic() - began < rig.DEADLINE / 2, weftd.log()
            assert f["other_sm"] is None and f["routing"]["verified"] is True
            assert sets["SMInfo", "Set"] >= 1
        after = sim.dump()
        assert after.port_guid == before.port_guid, "a LID moved"
        assert set(after.smlid.values()) - {0} == {before.lid[SM_HOST, 1]}
        assert judge.judge_dump(after, net, SM_HOST) > 0
        with opensm(sim, tmp_path / "low", priority=1, wait=entered(tmp_path / "low", "STANDBY")):
            mads = weftd.mads()["SMInfo", "Get"]
            rig.wait_until(lambda: weftd.mads()["SMInfo", "Get"] >= mads + 3, "it was asked three times")
            assert weftd.fabric()["sm"]["state"] == "master"
            assert "MASTER" not in (tmp_path / "low" / "log").read_text()
            assert sim.dump().port_guid == before.port_guid, "a LID moved"
        rig.wait_until(lambda: sum(e["kind"] == "foreign-sm-gone" for e in weftd.get("/events")["items"]) == 2, "both are gone")


def test_two_of_us(ibsim, tmp_path):
    """The second weftd ranks higher and is handed the fabric; when it is killed, the first has it back: no LID moves, no table
    is written, and what is left of the dead one is not taken for a manager."""
    net = small()
    sim = ibsim(net)
    second = None
    with Weftd(tmp_path / "a", "--set", "sm.priority=3", ibsim=sim, host=OTHER) as first:
        first.wait_up()
        before = sim.dump()
        tables = first.mads().get(("LinearForwardingTable", "Set"), 0)
        try:
            second = Weftd(tmp_path / "b", "--set", "sm.priority=14", ibsim=sim, host=SM_HOST)
            f = second.wait_up()
            assert f["sm"]["lid"] == before.lid[SM_HOST, 1] and f["other_sm"] is None
            assert second.mads().get(("LinearForwardingTable", "Set"), 0) == 0
            f = first.wait_fabric(lambda f: f["state"] == "standby" and f["other_sm"]["state"] == "master", "standby")
            assert f["other_sm"]["guid"] == second.fabric()["sm"]["port_guid"]
            assert f["other_sm"]["priority"] == 14
            after = sim.dump()
            assert after.port_guid == before.port_guid
            assert judge.judge_dump(after, net, SM_HOST) > 0
        finally:
            if second is not None:
                second.kill()
        sim.forget_dead_clients()
        f = first.wait_up()
        assert f["sm"]["lid"] == before.lid[OTHER, 1] and f["other_sm"] is None
        assert first.mads().get(("LinearForwardingTable", "Set"), 0) == tables
        after = sim.dump()
        assert after.port_guid == before.port_guid
        assert judge.judge_dump(after, net, OTHER) > 0


def test_second_weftd_waits(ibsim, tmp_path):
    """The second weftd ranks lower: it stands by without a Set, and takes over when the first is killed."""
    net = small()
    sim = ibsim(net)
    first = Weftd(tmp_path / "a", "--set", "sm.priority=9", ibsim=sim, host=OTHER)
    try:
        first.wait_up()
        before = sim.dump()
        with Weftd(tmp_path / "b", ibsim=sim, host=SM_HOST) as second:
            f = second.wait_fabric(lambda f: f["state"] == "standby", "standby")
            assert f["other_sm"]["guid"] == first.fabric()["sm"]["port_guid"]
            assert [k for k, n in second.mads().items() if k[1] == "Set" and n] == []
            assert first.fabric()["sm"]["state"] == "master", first.log()
            first.kill()
            sim.forget_dead_clients()
            f = second.wait_up()
            assert f["sm"]["lid"] == before.lid[SM_HOST, 1] and f["other_sm"] is None
            assert second.mads().get(("LinearForwardingTable", "Set"), 0) == 0
            after = sim.dump()
            assert after.port_guid == before.port_guid
            assert judge.judge_dump(after, net, SM_HOST) > 0
    finally:
        first.kill()
