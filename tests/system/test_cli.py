# SPDX-License-Identifier: Apache-2.0
"""weft against a real weftd on a simulated fabric: every command, every format, every exit code."""
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import stat
import subprocess

import pytest

from weftlib import Daemon, js, need_programs, ok, rows, wait_for, weft

pytestmark = need_programs()
ROOT = pathlib.Path(__file__).resolve().parents[2]
NOBODY = 65534

# Two switches with two cables between them, two adapters each; two of the adapters share a name.
SMALL = """\
vendid=0x2c9
devid=0xd2f0
sysimgguid=0x8f10400400000
switchguid=0x8f10400400000(8f10400400000)
Switch\t4 "S-0008f10400400000"\t\t# "leaf-1" enhanced port 0 lid 1 lmc 0
[1]\t"H-0002c90300000010"[1](2c90300000011) \t\t# "twin mlx5_0" lid 3 4xEDR
[2]\t"H-0002c90300000020"[1](2c90300000021) \t\t# "single mlx5_0" lid 4 4xEDR
[3]\t"S-0008f10400400001"[3]\t\t# "leaf-2" lid 2 4xEDR
[4]\t"S-0008f10400400001"[4]\t\t# "leaf-2" lid 2 4xEDR

vendid=0x2c9
devid=0xd2f0
sysimgguid=0x8f10400400001
switchguid=0x8f10400400001(8f10400400001)
Switch\t4 "S-0008f10400400001"\t\t# "leaf-2" enhanced port 0 lid 2 lmc 0
[1]\t"H-0002c90300000030"[1](2c90300000031) \t\t# "twin mlx5_0" lid 5 4xEDR
[2]\t"H-0002c90300000040"[1](2c90300000041) \t\t# "other mlx5_0" lid 6 4xEDR
[3]\t"S-0008f10400400000"[3]\t\t# "leaf-1" lid 1 4xEDR
[4]\t"S-0008f10400400000"[4]\t\t# "leaf-1" lid 1 4xEDR

""" + "\n".join(
    f"""vendid=0x2c9
devid=0x101b
sysimgguid=0x2c903000000{n}0
caguid=0x2c903000000{n}0
Ca\t1 "H-0002c903000000{n}0"\t\t# "{name} mlx5_0"
[1](2c903000000{n}1) \t"S-000{leaf}"[{port}]\t\t# lid {lid} lmc 0 "leaf" lid 1 4xEDR
""" for n, name, leaf, port, lid in ((1, "twin", "8f10400400000", 1, 3), (2, "single", "8f10400400000", 2, 4),
                                     (3, "twin", "8f10400400001", 1, 5), (4, "other", "8f10400400001", 2, 6)))


@pytest.fixture(scope="module")
def d():
    with Daemon(simulate="rail-256") as daemon:
        yield daemon.up()


@pytest.fixture(scope="module")
def small_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "small.topo"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="module")
def small(small_file):
    with Daemon(simulate=small_file) as daemon:
        yield daemon.up()


def nodes_of(d, **want):
    return [n for n in d.get("/fabrics/default/nodes?limit=10000")["items"] if all(n[k] == v for k, v in want.items())]


# --- every list in every format ---

LISTS = [
    (("node",), "GUID"),
    (("node", "--role", "leaf"), "GUID"),
    (("node", "--type=ca", "--limit", "3"), "GUID"),
    (("node", "role=leaf and rail=0|1"), "GUID"),
    (("port", "leaf-su01-rail0"), "PORT"),
    (("link",), "A"),
    (("link", "leaf-su01-rail0"), "A"),
    (("link", "kind=trunk", "--limit=9"), "A"),
    (("link", "--down"), "A"),
    (("sweep",), "ID"),
    (("finding",), "SEVERITY"),
    (("group",), "MGID"),
    (("mad",), "METHOD"),
    (("event",), "ID"),
]


@pytest.mark.parametrize("command,title", LISTS, ids=lambda v: " ".join(v) if isinstance(v, tuple) else "")
def test_lists(d, command, title):
    table = ok(d.weft(*command)).splitlines()
    assert table[0].split()[0] == title
    bare = ok(d.weft(*command, "--no-header")).splitlines()
    assert [line.split() for line in bare] == [line.split() for line in table[1:]] or command[0] in ("mad", "sweep")
    out = ok(d.weft(*command, "-o", "json"))
    if command[0] == "event":
        items = [json.loads(line) for line in out.splitlines()]
    else:
        items = json.loads(out)
    records = rows(ok(d.weft("-ocsv", *command)))
    if command[0] in ("mad", "sweep"):  # a moment later
        return
    assert len(items) == len(records) == len(table) - 1
    for item, record in zip(items, records):
        assert item.keys() == record.keys()
        for k, v in item.items():
            if v is None:
                assert record[k] == ""
            elif isinstance(v, str):
                assert record[k] == v
            elif not isinstance(v, list):
                assert json.loads(record[k]) == v


def test_counts(d):
    status = js(d.weft("status", "-o", "json"))["fabrics"][0]
    assert len(js(d.weft("node", "-o", "json"))) == status["nodes"] == 268
    assert len(js(d.weft("link", "-o", "json"))) == status["links"]
    assert len(js(d.weft("node", "--role", "leaf", "-o", "json"))) == 8
    assert len(js(d.weft("node", "--name", "RAIL3", "-o", "json"))) == 1
    assert len(js(d.weft("node", "--limit", "7", "-o", "json"))) == 7
    assert len(js(d.weft("node", "not role=host", "-o", "json"))) == 12
    assert len(js(d.weft("link", "gpu-0001:3", "-o", "json"))) == 1


def test_first_column_is_the_guid(d):
    """Scripts cut it out: weft node -o csv | sed -n 2p | cut -d, -f1"""
    guid = ok(d.weft("node", "--role", "host", "-o", "csv", "--limit", "2")).splitlines()[1].split(",")[0]
    assert re.fullmatch("0x[0-9a-f]{16}", guid)
    assert ok(d.weft("node", guid)).startswith("guid")


# --- status ---

def test_status(d):
    out = ok(d.weft("status"))
    assert re.match(r"default  InfiniBand  UP  12 switches  256 adapters \(32 hosts\)  512 links\n", out)
    assert re.search(r"^  routes   .*engine.*proved: [\d,]+ pairs", out, re.M)
    assert re.search(r"^  sweep    #\d+ .*discover \d", out, re.M)
    assert re.search(r"^  findings 0 errors", out, re.M)
    assert rows(ok(d.weft("status", "-o", "csv")))[0]["state"] == "up"
    assert ok(d.weft("status", "-f", "default", "--wait")) != ""
    r = d.weft("status", "-f", "other")
    assert r.rc == 2 and "default" in r.err


def test_status_waits_for_a_daemon_that_starts():
    with Daemon(simulate="rail-64", start=False) as daemon:
        r = daemon.weft("status", "--wait", "0")
        assert r.rc == 3 and str(daemon.socket) in r.err
        waiting = subprocess.Popen([os.environ["WEFT"], "-s", str(daemon.socket), "status", "--wait", "100"],
                                   stdout=subprocess.PIPE, text=True)
        daemon.start()
        out, _ = waiting.communicate(timeout=120)
        assert waiting.returncode == 0 and " UP " in out


# --- a node by any name ---

def test_node_names(d):
    node = nodes_of(d, name="gpu-0002 mlx5_3")[0]
    guid, plain = node["guid"], node["guid"][2:]
    words = [guid, guid.upper().replace("0X", "0x"), plain, "S-" + plain, ":".join(plain[i:i + 4] for i in (0, 4, 8, 12)),
             "0x" + plain.lstrip("0"), str(node["lid"]), node["name"], "gpu-0002:3"]
    for word in words:
        assert js(d.weft("node", word, "-o", "json"))["guid"] == guid, word
        assert rows(ok(d.weft("port", word, "-o", "csv")))[0]["node_guid"] == guid, word
    one = js(d.weft("node", guid, "-o", "json"))
    assert [p["num"] for p in one["ports"]] == [1] and one["ports"][0]["peer"] == "leaf-su01-rail3"
    assert "\nPORT" in ok(d.weft("node", guid))
    assert len(rows(ok(d.weft("node", "gpu-0002", "-o", "csv")))) == 8  # part of several names: the list


def test_port(d):
    assert js(d.weft("port", "leaf-su01-rail0", "33", "-o", "json"))["num"] == 33
    assert re.search("^state +active$", ok(d.weft("port", "leaf-su01-rail0", "33")), re.M)
    assert rows(ok(d.weft("port", "leaf-su01-rail0", "33", "-o", "csv")))[0]["peer"].startswith("spine")


@pytest.mark.parametrize("command,said", [
    (("node", "0x1234567812345678"), "no node has the GUID"),
    (("node", "nobody"), "no such node"),
    (("port", "gpu-0002"), "did you mean"),
    (("port", "leaf-su01-rail0", "200"), "no port 200"),
    (("port", "leaf-su01-rail0", "x"), "not a port number"),
    (("node", "rol=leaf"), 'did you mean "role"'),
    (("node", "role="), "value is missing"),
    (("node", "-f", "nope"), "there are: default"),
    (("node", "--limit", "0"), "no number from 1"),
    (("node", "--role", "king"), "role"),
    (("sweep", "999999"), "no such sweep"),
    (("event", "--since", "yesterday"), "2026-01-31T10:20:30Z"),
    (("route", "show", "gpu-0001:0", "nobody"), "no such node"),
    (("route", "show", "gpu-0001:0", "gpu-0002:9"), "no adapter of gpu-0002 on rail 9 is seen"),
    (("node", "nobody:9"), "no such node"),
    (("sim", "link", "sideways", "leaf-su01-rail0", "1"), "down, up, flap or enable?"),
    (("sim", "link", "down", "nobody", "1"), "nobody"),
    (("sim", "node", "eat", "leaf-su01-rail0"), "kill, revive, reboot, slow or name?"),
    (("sim", "loss", "2"), "not a share"),
    (("api", "BREW", "/status"), "no method"),
    (("api", "GET", "status"), "begins with /"),
    (("api", "POST", "/fabrics/default/resweep", "{"), "JSON"),
    (("api", "GET", "/nothing"), "/nothing"),
    (("frobnicate",), "weft help"),
    (("stauts",), '"status"'),
    (("node", "--rol", "x"), "--role"),
    (("status", "-o", "xml"), "table json csv"),
    ((), "weft help"),
])
def test_usage(d, command, said):
    r = d.weft(*command)
    assert (r.rc, r.out) == (2, ""), r
    assert r.err.startswith("weft: ") and r.err.count("\n") == 1 and said in r.err


def test_ambiguous(small):
    guids = [n["guid"] for n in nodes_of(small, name="twin mlx5_0")]
    assert len(guids) == 2
    for command in (("node", "twin mlx5_0"), ("port", "twin mlx5_0"), ("link", "twin mlx5_0"),
                    ("route", "show", "single mlx5_0", "twin mlx5_0"), ("sim", "node", "reboot", "twin mlx5_0")):
        r = small.weft(*command)
        assert r.rc == 2 and all(g in r.err for g in guids), r
    assert ok(small.weft("node", guids[0])).startswith("guid")


# --- routes ---

def test_route_show(d):
    out = js(d.weft("route", "show", "gpu-0001:3", "gpu-0030:4", "-o", "json"))
    assert out["reached"] and [h["hop"] for h in out["hops"]] == list(range(1, len(out["hops"]) + 1))
    assert out["hops"][0]["name"] == "gpu-0001 mlx5_3" and out["hops"][-1]["name"] == "gpu-0030 mlx5_4"
    table = ok(d.weft("route", "show", "gpu-0001:3", "gpu-0030:4")).splitlines()
    assert table[0].startswith("gpu-0001 mlx5_3/1 -> gpu-0030 mlx5_4/1 (LID ") and table[0].endswith("reached")
    assert len(table) == 2 + len(out["hops"])
    assert [r["name"] for r in rows(ok(d.weft("route", "show", "gpu-0001:3", "gpu-0030:4", "-o", "csv")))] == \
        [h["name"] for h in out["hops"]]
    lids = [str(n["lid"]) for n in nodes_of(d, role="host")[:2]]
    assert "reached" in ok(d.weft("route", "show", *lids))


KEYS = {"engine", "why", "seconds", "lft_bytes", "peak_rss_bytes", "verify", "quality", "changed"}


@pytest.fixture
def tmp_env(tmp_path):
    """An environment whose TMPDIR must be empty again afterwards."""
    folder = tmp_path / "t"
    folder.mkdir()
    yield {"TMPDIR": str(folder), "WEFTD": os.environ["WEFTD"]}
    assert list(folder.iterdir()) == []


def test_route_compute(small_file, tmp_env, tmp_path):
    for what in ("rail-64", small_file):
        r = js(weft("route", "compute", what, "-o", "json", env=tmp_env))
        assert KEYS <= r.keys() and r["verify"]["ok"] is True and "lft" not in r
        out = ok(weft("route", "compute", what, env=tmp_env))
        assert out.startswith(f"{what}  ") and "proved" in out
    pairs = {p["key"]: p["value"] for p in rows(ok(weft("route", "compute", "rail-64", "-o", "csv", env=tmp_env)))}
    assert pairs["verify.ok"] == "true"
    lft = tmp_path / "x.lft"
    ok(weft("route", "compute", small_file, "--engine", "minhop", "--dump-lft", lft, env=tmp_env))
    assert lft.read_text().count("Unicast lids") == 2


def test_route_compute_failed_elements(small_file, tmp_env):
    r = js(weft("route", "compute", "rail-256", "--fail", "random:1:7", "-o", "json", env=tmp_env))
    again = js(weft("route", "compute", "rail-256", "--fail", "random:1:7", "-o", "json", env=tmp_env))
    assert r["verify"]["ok"] and r["changed"]["entries"] > 0 and r["changed"] == again["changed"]
    r = js(weft("route", "compute", small_file, "--fail", "leaf-1[3]", "--fail=leaf-1[4]", "-o", "json",
                           env=tmp_env))
    assert r["verify"]["disconnected"] > 0


def test_route_show_follows_each_lid_of_a_port():
    with Daemon(simulate="ft3-16-4", args=("--set", "sm.lmc=2")) as daemon:
        d = daemon.up()
        ways = set()
        for lid in range(64, 68):
            r = d.get(f"/fabrics/default/routes?from=4&to={lid}")
            assert (r["lid"], r["to"]["lid"], r["to"]["lmc"], r["reached"]) == (lid, 64, 2, True)
            ways.add(tuple((h["guid"], h["out"]) for h in r["hops"]))
            out = ok(d.weft("route", "show", "4", str(lid)))
            assert f"(LID {lid}, 3 more ways: route show 4 {65 if lid == 64 else 64} (or " in out
            assert str(r["hops"][2]["name"]) in out
        assert len(ways) == 4
        name, port = r["to"]["name"], r["to"]["port"]
        assert d.get(f"/fabrics/default/routes?from=4&to={r['to']['port_guid']}")["lid"] == 64
        assert "LID 64, 3 more ways" in ok(d.weft("route", "show", "4", f"{name}[{port}]"))
        assert "4 LIDs for each adapter port (LMC 2)" in ok(d.weft("status"))
    with Daemon(simulate="rail-64") as daemon:
        assert "more way" not in ok(daemon.up().weft("route", "show", "1", "20"))
        assert "LMC" not in ok(daemon.weft("status"))


def test_route_compute_on_the_running_fabric(d):
    r = js(d.weft("route", "compute", "-o", "json"))
    assert r["verify"]["ok"] and KEYS <= r.keys()


@pytest.mark.parametrize("args,said", [
    (("/nonexistent.topo",), "/nonexistent.topo"),
    (("rail-7",), "rail-"),
    (("rail-64", "--engine", "magic"), "magic"),
    (("rail-64", "--fail", "nobody"), "nobody"),
    (("rail-64", "-f", "default"), "--fabric"),
    (("rail-64", "--dump-lft", "/nonexistent/x"), "/nonexistent/x"),
])
def test_route_compute_usage(args, said, tmp_env):
    r = weft("route", "compute", *args, env=tmp_env)
    assert (r.rc, r.out) == (2, "") and said in r.err, r


def fake_weftd(tmp_path, script):
    path = tmp_path / "fake-weftd"
    path.write_text("#!/bin/sh\n" + script)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def test_route_compute_child_says_why(tmp_env, tmp_path):
    tmp_env["WEFTD"] = str(fake_weftd(tmp_path, 'echo "weftd: x.topo:7: no such thing" >&2; exit 1\n'))
    r = weft("route", "compute", "x", env=tmp_env)
    assert (r.rc, r.out, r.err) == (2, "", "weft: x.topo:7: no such thing\n")
    tmp_env["WEFTD"] = str(tmp_path / "none")
    r = weft("route", "compute", "x", env=tmp_env)
    assert r.rc == 3 and "WEFTD" in r.err


# The child never listens; it writes its pid, and ignores being asked to end in the second case.
@pytest.mark.parametrize("how", ["timeout", signal.SIGINT, signal.SIGTERM])
def test_route_compute_kills_its_child(how, tmp_env, tmp_path):
    note = tmp_path / "pid"
    tmp_env["WEFTD"] = str(fake_weftd(tmp_path, f"echo $$ >{note}.x; mv {note}.x {note}; exec sleep 1000\n"))
    command = [os.environ["WEFT"], "route", "compute", "x", "--timeout", "2" if how == "timeout" else "1000"]
    p = subprocess.Popen(command, env={**os.environ, **tmp_env}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(note.exists, "the child")
    if how != "timeout":
        p.send_signal(how)
    _, err = p.communicate(timeout=60)
    assert p.returncode == (5 if how == "timeout" else 130), err
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_route_compute_killed_itself(tmp_path):
    """Even then the child ends."""
    note = tmp_path / "pid"
    env = {**os.environ, "TMPDIR": str(tmp_path),
           "WEFTD": str(fake_weftd(tmp_path, f"echo $$ >{note}.x; mv {note}.x {note}; exec sleep 1000\n"))}
    p = subprocess.Popen([os.environ["WEFT"], "route", "compute", "x"], env=env)
    wait_for(note.exists, "the child")
    p.kill()
    p.wait()

    def gone():
        try:
            return pathlib.Path(f"/proc/{note.read_text().strip()}/stat").read_text().split()[2] == "Z"
        except FileNotFoundError:
            return True
    wait_for(gone, "the child's end")


# --- changes ---

def test_reroute_and_resweep(d):
    for command in (("reroute", "--apply"), ("resweep",)):
        r = js(d.weft(*command, "--wait", "100", "-o", "json"))
        assert r["ok"] and r["cause"] == "operator"
        assert re.fullmatch(r"sweep #\d+ done in .*\n", ok(d.weft(*command, "--wait")))
        asked = js(d.weft(*command, "-o", "json"))["sweep"]
        assert asked > r["id"]
        wait_for(lambda a=asked: d.weft("sweep", a).rc == 0, "the sweep that was asked for")
        out = ok(d.weft("sweep", asked))
        assert re.search(rf"^id +{asked}$", out, re.M) and "\nPHASE" in out
        assert js(d.weft("sweep", asked, "-o", "json"))["phases"][0]["name"]


def test_follow_and_sim_link(d):
    last = js(d.weft("event", "--limit", "1", "-o", "json"))["id"]
    follow = subprocess.Popen([os.environ["WEFT"], "-s", str(d.socket), "event", "--follow", "-o", "json", "--kind",
                               "link-removed", "--limit", "1", "--since", str(last)], stdout=subprocess.PIPE, text=True)
    try:
        links = len(js(d.weft("link", "-o", "json")))
        assert ok(d.weft("sim", "link", "down", "leaf-su01-rail0", "33")) == "leaf-su01-rail0[33] lost its cable\n"
        out, _ = follow.communicate(timeout=100)
    finally:
        follow.kill()
        follow.wait()
    event = json.loads(out)
    assert follow.returncode == 0 and event["kind"] == "link-removed" and "leaf-su01-rail0[33]" in event["text"]
    wait_for(lambda: len(js(d.weft("link", "-o", "json"))) == links - 1, "the link to go")
    assert event in [json.loads(x) for x in ok(d.weft("event", "--since", event["id"] - 1, "-o", "json")).splitlines()]
    last = ok(d.weft("event", "--kind", "link-removed", "--limit", "1", "-o", "csv"))
    assert rows(last)[0]["id"] == str(event["id"])
    assert js(d.weft("sim", "link", "up", "leaf-su01-rail0", "33", "-o", "json"))["ok"] is True
    wait_for(lambda: len(js(d.weft("link", "-o", "json"))) == links, "the link to return")


def test_last_change(d):
    """What happened, and what was done about it: in the status, in the sweep's events, and the same over REST."""
    links = len(js(d.weft("link", "-o", "json")))
    ok(d.weft("sim", "link", "down", "leaf-su01-rail1", "34"))
    wait_for(lambda: len(js(d.weft("link", "-o", "json"))) == links - 1, "the link to go")
    change = d.get("/fabrics/default")["last_change"]
    assert "leaf-su01-rail1[34]" in change["text"] and change["lft_blocks_set"] > 0 and change["mads"] > 0
    line = re.search(r"^  change   \d+ s ago: (.*)$", ok(d.weft("status")), re.M)[1]
    assert change["text"] in line and f"{change['lft_blocks_set']} block" in line and f"weft sweep {change['sweep']})" in line
    sweep = js(d.weft("sweep", change["sweep"], "-o", "json"))
    assert [e["text"] for e in sweep["events"] if e["kind"] == "link-removed"] == [change["text"]]
    assert sweep["links_removed"] == 1
    assert "link-removed" in ok(d.weft("sweep", change["sweep"]))
    # A sweep that finds nothing is no change.
    ok(d.weft("resweep", "--wait"))
    assert d.get("/fabrics/default")["last_change"] == change
    ok(d.weft("sim", "link", "up", "leaf-su01-rail1", "34"))
    wait_for(lambda: "added" in d.get("/fabrics/default")["last_change"]["text"], "the link to return")


def test_old_events_go():
    """Not before the clock has had an hour to come right: virtual time has it over soon."""
    with Daemon(simulate="rail-64", args=("--set", "sim.time=virtual")) as daemon:
        daemon.up()
        assert daemon.stop() == 0
        with sqlite3.connect(daemon.dir / "state" / "meta.db") as db:
            column = next(r[1] for r in db.execute("PRAGMA table_info(event)") if "wall" in r[1])
            n, = db.execute("SELECT count(*) FROM event").fetchone()
            db.execute(f"UPDATE event SET {column} = {column} - 91 * 86400000000000 WHERE id = 1")
        assert n > 0
        daemon.start()
        daemon.up()
        wait_for(lambda: all(e["id"] > 1 for e in daemon.get("/events")["items"]), "old events are gone")


def test_follow_ends_when_interrupted(d):
    p = subprocess.Popen([os.environ["WEFT"], "-s", str(d.socket), "event", "--follow", "--no-header"],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert re.match(r" *\d+ +\d{4}-", p.stdout.readline())
    p.send_signal(signal.SIGINT)
    _, err = p.communicate(timeout=60)
    assert (p.returncode, err) == (0, "")


def test_follow_survives_a_restart():
    with Daemon(simulate="rail-64") as daemon:
        daemon.up()
        p = subprocess.Popen([os.environ["WEFT"], "-s", str(daemon.socket), "event", "--follow", "-o", "json", "--kind",
                              "fabric-up"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = json.loads(p.stdout.readline())
        assert daemon.stop() == 0
        daemon.start()
        second = json.loads(p.stdout.readline())
        assert second["id"] > first["id"] and second["kind"] == "fabric-up"
        p.send_signal(signal.SIGINT)
        p.communicate(timeout=60)
        assert p.returncode == 0


def test_sim_node_and_loss(small):
    out = ok(small.weft("sim", "node", "reboot", "single mlx5_0"))
    assert out == "single mlx5_0 reboots\n"
    assert js(small.weft("sim", "node", "kill", "other mlx5_0", "-o", "json"))["ok"] is True
    assert "answers again" in ok(small.weft("sim", "node", "revive", "other mlx5_0"))
    assert ok(small.weft("sim", "loss", "5%")) == "5 % of all datagrams are lost, at every device\n"
    assert js(small.weft("sim", "loss", "0", "-o", "json"))["ok"] is True


def test_api(d):
    assert js(d.weft("api", "get", "/status"))["version"]
    assert js(d.weft("api", "GET", "/api/v1/openapi.json"))["openapi"].startswith("3.1")
    assert "sweep" in js(d.weft("api", "POST", "/fabrics/default/resweep"))
    assert ok(d.weft("api", "GET", "/fabrics/default/nodes?format=csv&limit=2")).count("\n") == 3
    r = d.weft("api", "POST", "/fabrics/default/sim/loss", '{"loss": 7}')
    assert r.rc == 2 and "loss" in r.err


# --- exit codes for what goes wrong ---

def test_unreachable(tmp_path):
    for command in (("status",), ("node",), ("event", "--since", "1"), ("api", "GET", "/status"), ("reroute",)):
        r = weft(*command, socket_path=tmp_path / "none")
        assert (r.rc, r.out) == (3, "")
        assert r.err == (f"weft: cannot reach weftd at {tmp_path}/none: no such file; is weftd running? systemctl "
                         "status weftd, or give --socket\n")
    with Daemon(simulate="rail-64", start=False) as daemon:
        daemon.start()
        daemon.process.kill()
        daemon.process.wait()
        r = daemon.weft("status")  # its socket is still there
        assert r.rc == 3 and "nobody listens" in r.err
    r = weft("status", "-s", "/" + "x" * 200)
    assert r.rc == 2 and "shorter --socket" in r.err
    (tmp_path / "file").write_text("")
    assert weft("status", "-s", tmp_path / "file").rc == 3


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="another user needs root and setpriv")
def test_denied(d):
    assert ok(d.weft("status", uid=NOBODY)) != ""
    assert len(rows(ok(d.weft("node", "-o", "csv", uid=NOBODY)))) == 268
    for command in (("reroute", "--apply"), ("resweep", "--wait"), ("sim", "link", "down", "leaf-su01-rail0", "33"),
                    ("sim", "loss", "1"), ("api", "POST", "/fabrics/default/resweep")):
        r = d.weft(*command, uid=NOBODY)
        assert (r.rc, r.out) == (4, "") and "sudo" in r.err, r
    d.dir.chmod(0o700)
    try:
        r = d.weft("status", uid=NOBODY)
        assert r.rc == 4 and str(d.socket) in r.err
    finally:
        d.dir.chmod(0o755)


def test_output_that_cannot_be_written(d):
    with open("/dev/full", "w") as full:
        r = d.weft("node", stdout=full)
    assert r.rc == 6 and "No space left" in r.err
    read, write = os.pipe()
    os.close(read)
    r = d.weft("node", stdout=write)
    os.close(write)
    assert (r.rc, r.err) == (6, "")


# --- terminals ---

def test_colours(d):
    assert "\033[32m" in d.terminal("port", "leaf-su01-rail0").out
    assert "\033[" not in d.terminal("port", "leaf-su01-rail0", "--no-color").out
    assert "\033[" not in d.terminal("port", "leaf-su01-rail0", env={"NO_COLOR": "1"}).out
    assert "\033[" not in ok(d.weft("port", "leaf-su01-rail0"))
    assert "\033[" not in d.terminal("port", "leaf-su01-rail0", "-o", "csv").out


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_width(d, columns):
    for command in (("sweep",), ("status",), ("link", "--limit", "5")):
        out = d.terminal(*command, "--no-color", columns=columns).out
        too_long = [line for line in out.splitlines() if len(line) > columns]
        assert not too_long or (columns == 60 and command == ("sweep",)), too_long
    assert "gpu-0001 mlx5_0" in d.terminal("link", "--limit", "5", "--no-color", columns=200).out


def test_watch(d):
    p = subprocess.Popen([os.environ["WEFT"], "-s", str(d.socket), "node", "--limit", "1", "-o", "csv", "--no-header",
                          "--watch=1"], stdout=subprocess.PIPE, text=True)
    lines = [p.stdout.readline() for _ in range(2)]
    p.send_signal(signal.SIGINT)
    p.communicate(timeout=60)
    assert lines[0] == lines[1] != "" and p.returncode == 0


def test_codes_of_findings(d):
    """Each kind of finding is known by its code, also when there is none; what is no code is refused."""
    found = set()
    for folder in ("sm", "fabric", "routing", "daemon"):
        for p in (ROOT / folder).glob("*.c"):
            found |= set(re.findall(r'FINDING_[A-Z]+\s*[,:][^;"]*?"([a-z0-9-]+)"', p.read_text()))
    assert len(found) > 50 and {"peer-silent", "m-key"} <= found
    for code in sorted(found):
        r = d.weft("finding", code)
        assert r.rc in (0, 1) and "is called so" not in r.err, (code, r)
    r = d.weft("finding", "peer-silnt")
    assert r.rc == 2 and "no node, host or port is called so" in r.err


# --- help ---

def test_help(d):
    out = ok(weft("help"))
    for name in ("status", "route compute", "sim link", "sim sm", "api METHOD PATH"):
        assert f"\n  {name}" in out
    assert ok(weft("--help")) == out
    assert ok(weft("help", "route", "show")) == ok(weft("route", "show", "-h"))
    assert "weft sim loss" in ok(weft("help", "sim"))
    assert weft("help", "nonsense").rc == 2
    assert re.fullmatch(r"weft \d+\.\d+\.\d+\n", ok(weft("--version")))


def test_documents_are_those_of_the_rows():
    assert (ROOT / "doc/cli.md").read_text() == ok(weft("help", "--markdown"))
    assert (ROOT / "etc/completion/weft.bash").read_text() == ok(weft("help", "--completion"))


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
@pytest.mark.parametrize("line,want", [
    ("weft st", {"status"}),
    ("weft sim ", {"show", "link", "cable", "node", "switch", "hosts", "host", "adapter", "guid", "key", "trap", "set", "sm", "loss",
                   "traffic", "receiver", "errors", "module", "device", "play"}),
    ("weft -o ", {"table", "json", "csv"}),
    ("weft -o json node --r", {"--role"}),
    ("weft route compute --f", {"--fabric", "--fail"}),
    ("weft help fin", {"finding"}),
    ("weft node --type s", {"switch"}),
])
def test_completion(line, want):
    words = line.split(" ")
    script = f"""
        source {ROOT}/etc/completion/weft.bash
        compopt() {{ :; }}
        COMP_WORDS=({' '.join(repr(w) for w in words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=()
        _weft
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    r = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60)
    assert r.stderr == "" and set(r.stdout.split()) == want
