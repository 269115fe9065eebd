# SPDX-License-Identifier: Apache-2.0
"""Bad input: no device, wrong configuration, odd and hostile fabrics and files. Said in one place, never a crash."""
import os
import pathlib
import re
import signal
import subprocess

import pytest

import judge
import rig
from rig import Ibsim, Once, Weftd
from topology import rail, small

needs_ibsim = pytest.mark.skipif(rig.missing("ibsim") != "", reason=rig.missing("ibsim"))
SM_HOST = "gpu-0001-mlx5_0"


# --- no device ---


def no_device():
    """True where the machine has no InfiniBand of its own."""
    found = pathlib.Path("/sys/class/infiniband")
    return not found.exists() or not any(found.iterdir())


@pytest.mark.skipif(not no_device(), reason="this machine has InfiniBand devices")
def test_no_device(tmp_path):
    once = Once(tmp_path / "once")
    assert once.code == 1 and once.json["ok"] is False
    up = Once(tmp_path / "up", "--simulate", "rail-8")
    assert up.code == 0 and up.json.keys() == once.json.keys()  # every key is there, whatever went wrong
    assert all(once.json[k] is None for k in ("nodes", "switches", "links", "engine")) and once.json["mads"] == {}
    assert once.json["verified"] is False and once.json["findings"] == [] and once.json["phases"] == []
    assert once.json["error"]["code"] == "no-device" and "ib_umad" in once.json["error"]["text"]
    assert len(once.stdout.splitlines()) == 1
    with Weftd(tmp_path) as weftd:  # and goes on looking
        f = weftd.wait_fabric(lambda f: f["error"] is not None, "in error")
        assert f["state"] == "failed" and "no InfiniBand device" in f["error"]["text"] and f["advice"]
        lines = [x for x in weftd.log().splitlines() if " error " in x]
        assert len(lines) == 1 and "port-not-open" in lines[0] and "retry=yes" in lines[0], lines


@needs_ibsim
def test_no_such_port(ibsim, tmp_path):
    """What is there is listed; a word that is no port is told apart from a port that is not there."""
    sim = ibsim(small())
    for port in ["ibsim0/2", "mlx5_9/1", "mlx5_9"]:
        once = Once(tmp_path, "--port", port, ibsim=sim, host=SM_HOST)
        assert once.code == 1 and once.json["error"]["code"] == "not-found" and once.json["error"]["where"] == port, once.stdout
        assert "ports here: ibsim0/1" in once.json["error"]["text"], once.stdout
    for port in ["ibsim0/1", "ibsim0"]:
        assert Once(tmp_path, "--port", port, ibsim=sim, host=SM_HOST).code == 0


# --- wrong configuration ---


@pytest.mark.parametrize("text, said", [
    ("sm:\n  priority: 99\n", r":2:13: sm\.priority: expected an integer 0\.\.15, found \"99\""),
    ("sm:\n  priorty: 3\n", r":2:3: sm\.priorty: unknown key; did you mean \"priority\"\?"),
    ("log_level: loud\n", r":1:12: log_level: expected one of error, warning, notice, .* found \"loud\""),
    ("sm: 3\n", r":1:5: sm: expected a mapping, found \"3\""),
    ("mad:\n  timeout: fast\n", r":2:12: mad\.timeout: expected a duration 10ms\.\.10s, found \"fast\""),
    ("sm:\n\tpriority: 3\n", r":2:1: not valid YAML: "),
    ("fabrics:\n  - name: a\n    prot: x\n", r":3:5: fabrics\[0\]\.prot: unknown key; did you mean \"port\"\?"),
    ("http_port: 70000\n", r":1:12: http_port: expected an integer 0\.\.65535"),
    ("- a\n", r":1:1: expected a mapping, found a list"),
    ("sm:\n  priority: 3\n  priority: 4\n", r":3:3: sm\.priority: given twice; the first is at line 2"),
    ("routing:\n  adopt: perhaps\n", r":2:10: routing\.adopt: expected true or false"),
    ("sm: {priority: 3\n", r":2:1: not valid YAML: "),
    ("routing:\n  engine: magic\n", r":2:11: routing\.engine: expected one of auto, updn, "),
])
def test_wrong_configuration(tmp_path, text, said):
    """File, line, column, key and what was expected, in one line; status 2, which systemd does not try again."""
    path = tmp_path / "weft.yaml"
    path.write_text(text)
    for how in (["--check-config"], ["--once", "--simulate", "rail-256"], ["--simulate", "rail-256"]):
        r = Once(tmp_path, "--config", path, *how, once=False)
        assert r.code == 2 and r.stdout == ""
        assert re.fullmatch(f"weftd: {re.escape(str(path))}{said}.*\n", r.stderr), r.stderr


@pytest.mark.parametrize("text, said", [
    ("  - name: a\n    simulate: rail-8\n  - name: a\n    simulate: rail-8\n", r"number 1 and number 2 are both named \"a\""),
    ("  - name: \"\"\n", r"name of number 1 has to be"),
    ("  - name: a/b\n", r"name of number 1 has to be"),
    ("  - port: mlx5_0/x\n", r"\"mlx5_0/x\" is not a port"),
    ("  - port: mlx5_0/1\n    simulate: rail-8\n", r"only one can be"),
])
def test_fabrics_that_cannot_be(tmp_path, text, said):
    path = tmp_path / "weft.yaml"
    path.write_text("fabrics:\n" + text)
    for how in (["--check-config"], []):
        r = Once(tmp_path, "--config", path, *how, once=False)
        assert r.code == 2 and r.stdout == "" and re.search(said, r.stderr), r.stderr


@pytest.mark.parametrize("args, said", [
    (["--set", "sm.priority=99"], r"sm\.priority: expected an integer 0\.\.15"),
    (["--set", "x"], r"--set: \"x\" is not SECTION\.KEY=VALUE"),
    (["--set", "no.such=1"], r"no\.such: unknown key"),
    (["--config", "/nonexistent/weft.yaml"], r"/nonexistent/weft\.yaml: no such configuration file"),
    (["--http", "zz"], r"--http: \"zz\" is not ADDRESS:PORT"),
    (["--bogus"], r"unrecognized option '--bogus'"),
    (["extra"], r"unexpected argument \"extra\""),
    (["--port", "mlx5_0/x"], r"port: \"mlx5_0/x\" is not a port; write device/number"),
    (["--port", "/1"], r"port: \"/1\" is not a port"),
    (["--port", "mlx5_0/0", "--check-config"], r"port: \"mlx5_0/0\" is not a port"),
    (["--once", "--offline", "rail-8"], r"--offline manages none"),
    (["--simulate", "rail-8", "--dump-lft", "x"], r"need --once"),
    (["--simulate", "rail-8", "--port", "mlx5_0/1"], r"exclude each other"),
    (["--set", "sm.priority=3"] * 65, r"too many --set"),
])
def test_wrong_command_line(tmp_path, args, said):
    r = Once(tmp_path, *args, once=False)
    assert r.code == 2 and r.stdout == "" and re.search(said, r.stderr), r.stderr


@pytest.mark.parametrize("name", ["interval", "errors_interval"])
def test_counters_cannot_be_read_that_often(tmp_path, name):
    for value, said in [("1ms", "1 ms is too short: 100ms at least, or 0s for none"), ("99ms", "99 ms is too short"), ("100ms", ""), ("0s", "")]:
        r = Once(tmp_path, "--check-config", "--set", f"telemetry.{name}={value}", once=False)
        assert (r.code, said in r.stderr) == (2 if said else 0, True), r.stderr
        assert not said or f"telemetry.{name}" in r.stderr


# --- odd fabrics, on ibsim and in the simulator ---


def big_switch():
    net = small()
    net.switch("big", 254)
    net.link("big", 254, "spine-1", 8)
    for i in range(253):
        net.ca(f"x{i}")
        net.link(f"x{i}", 1, "big", i + 1)
    return net, {}


def self_cabled():
    net = small()
    net.link("spine-1", 7, "spine-1", 8)
    return net, {"spine-1": "self-link"}


def twin_adapter():
    net = small()
    net.ca("twin", guid=net.node["gpu-0001-mlx5_2"].guid)
    net.link("twin", 1, "spine-1", 7)
    return net, {"twin": "duplicate-guid"}


def twin_switch():
    net = small()
    net.switch("twin", 8, guid=net.node["spine-2"].guid)
    net.link("twin", 1, "spine-1", 7)
    return net, {"twin": "duplicate-guid"}


ODD = {"254-port switch": big_switch, "switch cabled to itself": self_cabled, "adapter's GUID twice": twin_adapter,
       "switch's GUID twice": twin_switch}


@needs_ibsim
@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_odd_fabric(ibsim, tmp_path, make):
    """What is sound comes up; what is not is named and left alone."""
    net, wrong = make()
    sim = ibsim(net)
    once = Once(tmp_path, ibsim=sim, host=SM_HOST)
    assert once.code == 0 and once.json["verified"], once.stdout
    codes = {f["code"] for f in once.json["findings"]}
    assert codes == set(wrong.values()), once.json["findings"]
    assert [f["count"] for f in once.json["findings"] if f["code"] == "self-link"] in ([], [1]), "one finding a switch"
    dump = sim.dump()
    for name in wrong:
        if name != "twin":  # what is cabled to itself is not used
            node = net.node[name]
            node.peer = {port: peer for port, peer in node.peer.items() if peer[0] != name}
    twins = [n for n in wrong if n == "twin"]
    assert once.json["nodes"] == len(net.node) - len(twins)
    assert judge.judge_dump(dump, net, SM_HOST, twins) > 0


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
def test_odd_file(tmp_path, make):
    net, wrong = make()
    once = Once(tmp_path, "--simulate", net.write(tmp_path / "odd.net"))
    assert once.code == 0 and once.json["verified"], once.stdout
    twins = [n for n in wrong if n == "twin"]
    assert once.json["nodes"] == len(net.node) - len(twins)
    if twins:
        finding = next(f for f in once.json["findings"] if f["code"] == "duplicate-guid")
        assert re.search(r"odd\.net:\d+$", finding["where"]) and "twin" in finding["text"]


def test_nodes_without_ports(tmp_path):
    net = small()
    net.ca("no-port-adapter", ports=0)
    net.switch("no-port-switch", 0)
    once = Once(tmp_path, "--simulate", net.write(tmp_path / "zero.net"))
    assert once.code == 0 and once.json["nodes"] == len(net.node) - 2
    bad = [f for f in once.json["findings"] if f["code"] == "bad-record"]
    assert len(bad) == 2 and all(re.search(r"zero\.net:\d+$", f["where"]) and "1 to 254 ports" in f["text"] for f in bad)


@needs_ibsim
def test_more_ports_than_table_entries(tmp_path):
    """LinearFDBCap 64 and 268 nodes: 63 LIDs are given, the switches that are too small are named, nothing beyond is set."""
    net = rail(256)
    with Ibsim(net, tmp_path / "ibsim", lids=64) as sim:
        once = Once(tmp_path, "--state", tmp_path / "state", ibsim=sim, host=SM_HOST)
        dump = sim.dump()
    findings = once.json["findings"]
    small_ones = [f for f in findings if f["code"] == "table-too-small"]
    assert {f["where"] for f in small_ones} == {n.desc for n in net.switches}
    assert all("LinearFDBCap is 64" in f["text"] for f in small_ones)
    assert [f["text"] for f in findings if f["code"] == "lids-exhausted"][0].startswith("205 ports stay without a LID")
    assert sorted(dump.end) == list(range(1, 64))
    assert all(max(d["lft"], default=0) < 64 and d["top"] < 64 for d in dump.node.values() if d["switch"])


# --- hostile files ---


def refused(once, within):
    assert once.code == 1 and once.json["ok"] is False and once.json["error"]["text"], once.stdout[:500]
    assert once.seconds < within
    return once.json["error"]


@pytest.mark.parametrize("kind", ["bytes", "lines", "one line", "records"])
def test_hundred_megabytes_of_noise(tmp_path, kind):
    """Refused within seconds, in memory near the file's own size."""
    size, path = 100_000_000, tmp_path / "noise.txt"
    if kind == "bytes":
        path.write_bytes(os.urandom(1_000_000) * 100)
    elif kind == "lines":
        path.write_bytes(b'[1]\t"S-0002c90300000001"[1]\t# "x" lid 1 4xHDR\n' * (size // 48))
    elif kind == "one line":
        path.write_bytes(b"Switch\t64 \"" + b"x" * size)
    else:
        path.write_bytes(b'Switch\t0 "S-0000000000000000"\t# "" enhanced port 0 lid 0 lmc 0\n' * (size // 66))
    once = Once(tmp_path, "--simulate", path)
    path.unlink()
    assert path.name in refused(once, within=30)["where"]
    if not rig.SANITIZED:
        assert once.json["peak_rss_bytes"] < 4 * size


@pytest.mark.parametrize("name, code", [("rail-7", "invalid"), ("no-such-fabric", "not-found"), ("/nonexistent/x.txt", "not-found"),
                                        ("/dev/zero", None), ("/", None), ("", None)])
def test_no_such_fabric(tmp_path, name, code):
    error = refused(Once(tmp_path, "--simulate", name), within=30)
    assert code is None or error["code"] == code


def test_state_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    r = Once(tmp_path, "--simulate", "rail-256", "--state", tmp_path / "file")
    assert r.code == 1 and str(tmp_path / "file") in r.stderr, (r.stdout, r.stderr)


def test_answer_that_cannot_be_written(tmp_path):
    with open("/dev/full", "w") as full:
        r = subprocess.run([rig.WEFTD, "--once", "--config", "/dev/null", "--simulate", "rail-8"], stdout=full, stderr=subprocess.PIPE,
                           text=True, timeout=rig.DEADLINE)
    assert r.returncode == 1 and "stdout: the result cannot be written" in r.stderr, r.stderr


def test_pipe_that_nobody_writes_to(tmp_path):
    """It does not hold up the start, where a signal would not end weftd."""
    os.mkfifo(tmp_path / "pipe")
    error = refused(Once(tmp_path, "--simulate", tmp_path / "pipe"), within=30)
    assert error["code"] == "invalid"


def test_dump_that_cannot_be_written(tmp_path):
    once = Once(tmp_path, "--simulate", "rail-256", "--dump-lft", "/nonexistent/x.lft")
    assert once.code == 1 and once.json["error"]["where"] == "/nonexistent/x.lft"


def test_refusal_is_said_once(tmp_path):
    """Routes that the proof refuses are tried again, and logged once."""
    lines = []
    for i in range(5):
        lines += [f'Switch 8 "S-{i + 1:016x}" # "sw{i}"', f'[1] "H-{i + 256:016x}"[1]', f'[2] "S-{(i + 1) % 5 + 1:016x}"[3]',
                  f'[3] "S-{(i - 1) % 5 + 1:016x}"[2]', "", f'Hca 1 "H-{i + 256:016x}" # "h{i}"', f'[1] "S-{i + 1:016x}"[1]', ""]
    (tmp_path / "ring.net").write_text("\n".join(lines))
    with Weftd(tmp_path, "--simulate", tmp_path / "ring.net", "--set", "routing.engine=minhop") as weftd:
        f = weftd.wait_fabric(lambda f: f["sweeps"] >= 3, "tried again")
        assert f["state"] == "failed" and "credit loop" in f["error"]["text"]
        for kind in ("routes-refused", "sweep-failed"):
            assert weftd.log().count(f" {kind} ") == 1, weftd.log()


def test_reload_keeps_the_command_line(tmp_path):
    """What the command line says is not taken for a change of the file."""
    path = tmp_path / "weft.yaml"
    path.write_text("sm:\n  priority: 9\nmad:\n  window: 100\n")
    with Weftd(tmp_path, "--config", path, "--simulate", "rail-8") as weftd:
        weftd.wait_up()
        assert weftd.fabric()["sm"]["priority"] == 9
        path.write_text("sm:\n  priority: 3\n  hoq_life_host: 15\nmad:\n  window: 120\n")
        weftd.proc.send_signal(signal.SIGHUP)
        rig.wait_until(lambda: "config-reloaded" in weftd.log(), weftd.log)
        line = next(x for x in weftd.log().splitlines() if "config-reloaded" in x)
        assert 'needs_restart="mad.window"' in line, line
        assert weftd.fabric()["sm"]["priority"] == 3  # from now on, without a restart


# --- two of us ---


def test_state_folder_in_use(tmp_path):
    with Weftd(tmp_path, "--simulate", "rail-256") as weftd:
        weftd.wait_up()
        r = Once(tmp_path / "second", "--simulate", "rail-256", "--state", weftd.state)
        assert r.code == 1 and str(weftd.state) in r.stdout + r.stderr, (r.stdout, r.stderr)


def test_socket_in_use(tmp_path):
    with Weftd(tmp_path / "a", "--simulate", "rail-256") as weftd:
        weftd.wait_up()
        r = Once(tmp_path / "b", "--simulate", "rail-256", "--state", tmp_path / "b", "--socket", weftd.socket, "--http",
                 "127.0.0.1:0", once=False)
        assert r.code == 1 and str(weftd.socket) in r.stderr, r.stderr
        weftd.get("/status")
