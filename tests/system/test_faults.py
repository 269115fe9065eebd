# SPDX-License-Identifier: Apache-2.0
"""What goes wrong on a fabric, on ibsim: lost MADs, dead devices, cut cables, weftd restarted or killed."""
import contextlib
import random
import re
import signal
import socket
import threading
import time

import pytest

import judge
import rig
from rig import Ibsim, Once, Weftd, read_lids
from topology import rail, small

pytestmark = pytest.mark.skipif(rig.missing("ibsim") != "", reason=rig.missing("ibsim"))
SM_HOST = "gpu-0001-mlx5_0"


def tables_and_lids(dump):
    return {n: (d["lft"], d["top"]) for n, d in dump.node.items() if d["switch"]}, dump.port_guid


# --- loss ---


@pytest.fixture
def lossy(ibsim):
    """rail-256 where a leaf, a spine and every tenth adapter lose a fifth of the MADs that they get."""
    net = rail(256)
    sim = ibsim(net)
    for name in ["leaf-su01-r3", "spine-02"] + [n.name for n in net.cas[5::10]]:
        sim.console(f'Error "{name}" 20')
    return sim


def test_loss_costs_time_only(lossy, tmp_path):
    once = Once(tmp_path, "--state", tmp_path / "state", ibsim=lossy, host=SM_HOST)
    assert once.code == 0 and once.json["verified"], once.stdout
    dump = lossy.dump()
    assert judge.judge_dump(dump, lossy.net, SM_HOST) == 8 * len(lossy.net.node)
    assert read_lids(tmp_path / "state") == dump.port_guid


def test_dead_devices_are_left_out(ibsim, tmp_path):
    """An adapter and a spine that never answer: the rest comes up, and both are named."""
    net = rail(256)
    sim = ibsim(net)
    dead = ["gpu-0007-mlx5_4", "spine-03"]
    for name in dead:
        sim.console(f'Error "{name}" 100')
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        f = weftd.wait_up()
        assert f["nodes"] == len(net.node) - 2 and f["routing"]["verified"] is True
        dump = sim.dump()
        assert judge.judge_dump(dump, net, SM_HOST, dead) == 8 * (len(net.node) - 2)
        leaf, port = net.node["gpu-0007-mlx5_4"].peer[1]
        silent = weftd.get("/fabrics/default/findings")["items"]
        assert any(net.node[leaf].desc in x["where"] and str(port) in x["where"] for x in silent), silent
        # They come back to life: found without being asked.
        for name in dead:
            sim.console(f'Error "{name}" 0')
        weftd.wait_fabric(lambda f: f["nodes"] == len(net.node) and f["links"] == net.num_links, "whole")
        rig.wait_until(lambda: works(sim, net), "all forwarded")


def works(sim, net):
    try:
        return judge.judge_dump(sim.dump(), net, SM_HOST) > 0
    except AssertionError:
        return False


# --- cables ---


def test_cables_out_and_in(ibsim, tmp_path):
    """A trunk, a host's cable, a whole spine: repaired, told as events, and as before when they are back."""
    net = rail(256)
    sim = ibsim(net)
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        weftd.wait_up()
        home = tables_and_lids(sim.dump())
        links = net.num_links
        for name, port in [("leaf-su01-r2", 40), ("gpu-0009-mlx5_1", 1), ("spine-04", None)]:
            ports = [port] if port else list(net.node[name].peer)
            sim.console(f'Unlink "{name}"' + (f"[{port}]" if port else ""))
            cut = [(name, p, *net.unlink(name, p)) for p in ports]
            weftd.wait_fabric(lambda f: f["links"] == links - len(cut), f"without {name}")
            gone = [name] if len(ports) == len(net.node[name].peer) + len(cut) else []
            rig.wait_until(lambda: judged_without(sim, net, gone), f"forwarded without {name}")
            for name_a, a, name_z, z in cut:
                net.link(name_a, a, name_z, z)
                sim.console(f'ReLink "{name_a}"[{a}]')
            weftd.wait_fabric(lambda f: f["links"] == links, f"with {name}")
            rig.wait_until(lambda: tables_and_lids(sim.dump()) == home, f"everything at home again after {name}")
            assert judge.judge_dump(sim.dump(), net, SM_HOST) == 8 * len(net.node)
        kinds = {e["kind"] for e in weftd.get("/events", limit=1000)["items"]}
        assert {"link-removed", "link-added", "node-removed", "node-added", "fabric-up"} <= kinds


def judged_without(sim, net, gone):
    try:
        return judge.judge_dump(sim.dump(), net, SM_HOST, gone) > 0
    except AssertionError:
        return False


def test_own_port_down(ibsim, tmp_path):
    """--once says so; the daemon says so, keeps what it knows, and writes no table when the cable is in again."""
    net = small()
    sim = ibsim(net)
    sim.console(f'Unlink "{SM_HOST}"[1]')
    once = Once(tmp_path / "once", ibsim=sim, host=SM_HOST)
    assert once.code == 1 and once.json["ok"] is False
    assert once.json["error"]["code"] == "port-down" and "cable" in once.json["error"]["text"]
    sim.console(f'ReLink "{SM_HOST}"[1]')
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        weftd.wait_up()
        before, written = sim.dump(), weftd.mads()["LinearForwardingTable", "Set"]
        sim.console(f'Unlink "{SM_HOST}"[1]')
        f = weftd.wait_fabric(lambda f: f["state"] == "failed", "failed")
        assert "local port is down" in f["error"]["text"] and f["advice"]
        assert f["nodes"] == len(net.node), "what is known of the fabric stays"
        sim.console(f'ReLink "{SM_HOST}"[1]')
        f = weftd.wait_fabric(lambda f: f["state"] == "up", "up")
        assert f["error"] is None and f["links"] == net.num_links
        assert weftd.mads()["LinearForwardingTable", "Set"] == written
        assert sim.dump().node == before.node


def test_device_goes_away(ibsim, tmp_path):
    """The local adapter is gone for good: said, tried again, answered by the API all the time, and a clean end."""
    sim = ibsim(small())
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        weftd.wait_up()
        sim.close()
        f = weftd.wait_fabric(lambda f: f["state"] == "failed", "failed")
        assert f["error"]["text"] and f["advice"] and f["transport"]
        rig.wait_until(lambda: "port-not-open" in weftd.log(), "tried again")
        f = weftd.fabric()
        assert f["state"] == "failed" and f["error"]["text"] and weftd.get("/status")["fabrics"]
        assert weftd.log().count("port-lost") <= 2 and weftd.log().count("port-not-open") == 1


def test_nothing_happens_on_a_quiet_fabric(ibsim, tmp_path):
    """Light sweeps follow each other without a full one."""
    with Weftd(tmp_path, "--set", "sm.sweep_interval=50ms", ibsim=ibsim(small()), host=SM_HOST) as weftd:
        weftd.wait_up()
        first = weftd.fabric()
        f = weftd.wait_fabric(lambda f: f["light_sweeps"] >= first["light_sweeps"] + 10, "watched")
        assert f["sweeps"] == first["sweeps"], weftd.log()


# --- restarts ---


@pytest.mark.parametrize("memory", ["with meta.db", "without"])
def test_restart_is_hitless(ibsim, tmp_path, memory):
    """A second weftd finds proved tables and recorded LIDs: no table is written and none moves."""
    sim = ibsim(rail(256))
    with Weftd(tmp_path / "a", ibsim=sim, host=SM_HOST) as weftd:
        weftd.wait_up()
        assert weftd.mads()["LinearForwardingTable", "Set"] > 0
    before = sim.dump()
    where = tmp_path / ("a" if memory == "with meta.db" else "b")
    with Weftd(where, ibsim=sim, host=SM_HOST) as weftd:
        f = weftd.wait_up()
        assert f["routing"]["verified"] is True
        assert weftd.mads().get(("LinearForwardingTable", "Set"), 0) == 0
        assert weftd.get("/fabrics/default/sweeps")["items"][-1]["lft_blocks_set"] == 0
        after = sim.dump()
        assert after.node == before.node and after.port_guid == before.port_guid
        assert weftd.lids() == after.port_guid


def test_killed_at_any_moment(tmp_path):
    """kill -9 during bring-up: a LID that a port has is recorded, and no LID moves when weftd comes back."""
    choose = random.Random(11)
    with Ibsim(rail(256), tmp_path / "whole") as sim:
        whole = Once(tmp_path / "whole", ibsim=sim, host=SM_HOST)
        assert whole.code == 0
    seconds = {p["name"]: p["seconds"] for p in whole.json["phases"]}
    killed, partly = 0, 0
    for i in range(20):
        folder = tmp_path / f"{i}"
        with Ibsim(rail(256), folder / "ibsim") as sim:
            weftd = Weftd(folder, ibsim=sim, host=SM_HOST)
            rig.wait_until(lambda: "port-open" in weftd.log(), "the port is open", poll=0.001)
            span = seconds["discover"] + seconds["record"]
            if i % 2:  # while LIDs are being set: from the moment when they are recorded
                log = weftd.state / "meta.db-wal"
                size = log.stat().st_size
                rig.wait_until(lambda: log.stat().st_size > size, "LIDs are recorded", poll=0.0005)
                span = seconds["tables"] + seconds.get("configure", 0)
            time.sleep(choose.random() * span)  # the moment itself, not a wait for something
            weftd.kill()
            killed += "fabric-up" not in weftd.log()
            sim.forget_dead_clients()
            half = {guid: lid for guid, lid in sim.dump().port_guid.items() if lid}
            partly += 0 < len(half) < len(sim.net.node)
            recorded = read_lids(folder / "state")
            assert half.items() <= recorded.items(), f"set but not recorded: {set(half.items()) - set(recorded.items())}"
            once = Once(folder, "--state", folder / "state", ibsim=sim, host=SM_HOST)
            assert once.code == 0 and once.json["verified"], once.stdout
            dump = sim.dump()
            assert recorded.items() <= dump.port_guid.items(), "a LID moved"
            assert read_lids(folder / "state") == dump.port_guid
            assert judge.judge_dump(dump, sim.net, SM_HOST) > 0
    assert killed >= 3, f"only {killed} of 20 were killed before the fabric was up"
    print(f"{killed} killed during bring-up, {partly} of them with LIDs on some ports")


def test_many_faults_at_once(ibsim, tmp_path):
    """Forty cables out while switches lose MADs, three times over: what is left works, and all comes home."""
    choose = random.Random(5)
    net = rail(256)
    sim, links = ibsim(net), net.num_links
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        weftd.wait_up()
        home = tables_and_lids(sim.dump())
        ends = [(n.name, port) for n in net.switches if n.name.startswith("leaf") for port in n.peer]
        ends.remove(net.node[SM_HOST].peer[1])
        for _ in range(3):
            for node in choose.sample(net.switches, 3):
                sim.console(f'Error "{node.name}" 15')
            cut = []
            for name, port in choose.sample(ends, 40):
                sim.console(f'Unlink "{name}"[{port}]')
                cut.append((name, port, *net.unlink(name, port)))
            weftd.wait_fabric(lambda f: f["links"] == links - len(cut), "without 40 cables")
            alone = [peer for _, _, peer, _ in cut if not net.node[peer].switch]
            rig.wait_until(lambda: judged_without(sim, net, alone), "the rest forwarded")
            for node in net.switches:
                sim.console(f'Error "{node.name}" 0')
            for name, port, peer, peer_port in cut:
                net.link(name, port, peer, peer_port)
                sim.console(f'ReLink "{name}"[{port}]')
            weftd.wait_fabric(lambda f: f["links"] == links, "whole")
            rig.wait_until(lambda: tables_and_lids(sim.dump()) == home, "everything at home again")
            assert judge.judge_dump(sim.dump(), net, SM_HOST) == 8 * len(net.node)


def test_lids_that_were_there_before(ibsim, tmp_path):
    """LIDs that ports came with are kept, also far up; of two ports with one LID only one moves; no LID is above 49151."""
    net = small()
    sim = ibsim(net)
    came = {"mlx5_1": 5, "mlx5_2": 5, "mlx5_3": 48000, "mlx5_4": 49151, "mlx5_5": 49152, "mlx5_6": 65535}
    for name, lid in came.items():
        sim.console(f'Baselid "gpu-0001-{name}"[1] {lid}')
    once = Once(tmp_path, "--state", tmp_path / "state", ibsim=sim, host=SM_HOST)
    assert once.code == 0 and once.json["verified"], once.stdout
    conflict, = [f for f in once.json["findings"] if f["code"] == "lid-conflict"]
    dump = sim.dump()
    lid = {name: dump.lid[f"gpu-0001-{name}", 1] for name in came}
    assert (lid["mlx5_3"], lid["mlx5_4"]) == (48000, 49151)
    assert [lid["mlx5_1"], lid["mlx5_2"]].count(5) == 1
    moved = "mlx5_1" if lid["mlx5_2"] == 5 else "mlx5_2"
    assert f"gpu-0001 {moved}" in conflict["where"] and "LID 5" in conflict["text"]
    assert max(dump.lid.values()) == 49151
    assert judge.judge_dump(dump, net, SM_HOST) == 2 * len(net.node)
    assert read_lids(tmp_path / "state") == dump.port_guid


def test_damaged_database(ibsim, tmp_path):
    """meta.db is put aside and said to be; LIDs are read back from the ports and no table is written."""
    sim = ibsim(small())
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        weftd.wait_up()
    before = sim.dump()
    (tmp_path / "state/meta.db").write_bytes(b"no database " * 1000)
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        weftd.wait_up()
        assert sim.dump().node == before.node and sim.dump().port_guid == before.port_guid
        assert weftd.mads().get(("LinearForwardingTable", "Set"), 0) == 0
        assert weftd.lids() == before.port_guid
        assert "database-set-aside" in {e["kind"] for e in weftd.get("/events")["items"]}
    assert [p.name for p in (tmp_path / "state").glob("meta.db.damaged-*")]


READINGS = ["/status", "/fabrics", "/fabrics/default", "/fabrics/default/nodes", "/fabrics/default/nodes/leaf-1",
            "/fabrics/default/ports", "/fabrics/default/links", "/fabrics/default/routes?from=1&to=3", "/fabrics/default/findings",
            "/fabrics/default/sweeps", "/fabrics/default/mads", "/events?limit=50", "/openapi.json"]


def test_readers_while_all_changes(ibsim, tmp_path):
    """Every resource is read all the time while cables come and go, routes are asked anew and the device is lost:
    always an answer, never a wrong one of the server's own making."""
    net = small()
    sim, over, wrong, answers = ibsim(net), threading.Event(), [], [0]

    def read(seed):
        choose = random.Random(seed)
        while not over.is_set():
            path = choose.choice(READINGS)
            try:
                weftd.get(path)
            except rig.Failed as e:
                if not re.search(r": (404|503) ", str(e)):
                    wrong.append(str(e))
            except BaseException as e:
                wrong.append(f"{path}: {e!r}")
            answers[0] += 1
    with Weftd(tmp_path, ibsim=sim, host=SM_HOST) as weftd:
        weftd.wait_up()
        threads = [threading.Thread(target=read, args=(i,)) for i in range(3)]
        for t in threads:
            t.start()
        try:
            choose = random.Random(1)
            for _ in range(15):
                name, port, peer, peer_port = choose.choice(list(net.trunks()))
                sim.console(f'Unlink "{name}"[{port}]')
                weftd.wait_fabric(lambda f: f["links"] == net.num_links - 1, "without a trunk")
                weftd.request("POST", "/fabrics/default/reroute", body={})
                sim.console(f'ReLink "{name}"[{port}]')
                weftd.wait_fabric(lambda f: f["links"] == net.num_links, "whole")
            sim.close()
            weftd.wait_fabric(lambda f: f["state"] == "failed", "failed")
            seen = answers[0]
            rig.wait_until(lambda: answers[0] > seen + 100 or wrong, "a hundred answers more")
        finally:
            over.set()
            for t in threads:
                t.join()
    assert not wrong, wrong[:3]


def test_stop_while_streams_come(tmp_path):
    """SIGTERM among requests for event streams: a clean end each time."""
    for i in range(10):
        with Weftd(tmp_path / f"{i}", "--simulate", "rail-64") as weftd, contextlib.ExitStack() as open_sockets:
            weftd.wait_up()
            clients = [open_sockets.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(30)]
            for c in clients:
                c.connect(str(weftd.socket))
            for k, c in enumerate(clients):
                with contextlib.suppress(BrokenPipeError):
                    c.send(b"GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\n\r\n")
                if k == 12:
                    weftd.proc.send_signal(signal.SIGTERM)
            assert weftd.proc.wait(rig.DEADLINE) == 0, weftd.log()[-1000:]
