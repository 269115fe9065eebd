# SPDX-License-Identifier: Apache-2.0
"""weft blueprint and weft reroute against a real weftd on a simulated fabric."""
import json
import os
import re

import pytest

from weftlib import Daemon, js, need_programs, ok, wait_for, weft

pytestmark = need_programs()
CABLES = [f"leaf-su0{su}-rail{rail}[{33 + 8 * i + rail}]" for su in (1, 2) for rail in range(4) for i in range(2)]


@pytest.fixture(scope="module")
def d():
    with Daemon(simulate="rail-512") as daemon:
        yield daemon.up()


def blueprint(d):
    return js(d.weft("blueprint", "show", "-o", "json"))


def cables(d, what, links):
    for c in CABLES:
        ok(d.weft("sim", "link", what, c))
    wait_for(lambda: js(d.weft("api", "GET", "/fabrics/default"))["links"] == links, f"{links} links")


def test_show_whole(d):
    out = ok(d.weft("blueprint", "show"))
    assert "blueprint learning: what is seen becomes part of it" in out
    assert "536 nodes, 24 of these switches, 1,024 cables" in out and "all of it is there" in out
    b = blueprint(d)
    assert (b["state"], b["since"], b["by"], b["differences"]) == ("learning", None, None, [])
    assert ok(d.weft("blueprint", "show", "-o", "csv")) == "kind,guid,port,text\n"


def test_nothing_to_gain(d):
    out = ok(d.weft("reroute"))
    assert "moves      nothing" in out and "gain       nothing would move" in out
    assert "do it with" not in out
    assert "do it with: weft blueprint accept" in ok(d.weft("blueprint", "accept", "--check"))  # its state would be another
    assert blueprint(d)["state"] == "learning"
    r = d.weft("reroute", "--wait")
    assert r.rc == 2 and "--apply" in r.err


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as somebody else")
def test_reader_looks(d):
    """Who may only read may see the plan; what is refused is said once."""
    assert "gain       " in ok(d.weft("reroute", uid=65534))
    for args in (("reroute", "--apply"), ("blueprint", "accept")):
        r = d.weft(*args, uid=65534)
        assert r.rc == 4 and r.err.count("may do this") == 1 and r.err.rstrip().endswith(": sudo weft ..."), r
    assert blueprint(d)["state"] == "learning"


def test_reroute(d):
    cables(d, "down", 1024 - len(CABLES))
    out = ok(d.weft("blueprint", "show"))
    assert re.search(r"^  away +the cable leaf-su01-rail0\[33\] - spine-\d+\[\d+\] is away$", out, re.M)
    assert "and 4 more" in out
    plan = js(d.weft("reroute", "-o", "json"))
    routes = plan["routes"]
    assert plan["dry_run"] and plan["sweep"] is None and plan["dropped_links"] == len(CABLES)
    assert routes["proved"] and routes["entries"] > 0 and routes["blocks"] > 0
    out = ok(d.weft("reroute"))
    assert "nothing is done yet; do it with: weft reroute --apply" in out
    assert re.search(r"^  moves +[\d,]+ table entries on \d+ switches, [\d,]+ paths: \d+ MADs in \d waves?$", out, re.M)
    assert re.search(r"^PATTERN .* BEFORE ", out, re.M) and "gain       " in out
    assert blueprint(d)["state"] == "learning"
    s = js(d.weft("reroute", "--apply", "--wait", "-o", "json"))
    assert s["ok"] and s["lft_entries"] == routes["entries"]
    b = blueprint(d)
    assert b["state"] == "accepted" and b["links"] == 1024 - len(CABLES) and b["by"] == f"user id {os.getuid()}"
    assert re.search(r"blueprint accepted since \S+ by \w+", ok(d.weft("blueprint", "show")))


def test_growth_and_accept(d):
    cables(d, "up", 1024)
    f = [x for x in js(d.weft("finding", "-o", "json")) if x["code"] == "blueprint-growth"]
    assert len(f) == 1 and f[0]["text"].startswith(f"{len(CABLES)} cables between switches are not in the blueprint")
    assert "weft blueprint accept --check" in ok(d.weft("blueprint", "show"))
    out = ok(d.weft("blueprint", "accept", "--check"))
    assert "takes in   the cable leaf-su01-rail0[33]" in out and "nothing is done yet" in out
    assert blueprint(d)["extra_links"] == len(CABLES)
    out = ok(d.weft("blueprint", "accept"))
    assert re.search(r"^  done +\d+ table entries, \d+ paths, \d+ table blocks written in ", out, re.M)
    b = blueprint(d)
    assert b["extra_links"] == 0 and b["links"] == 1024
    assert not [x for x in js(d.weft("finding", "-o", "json")) if x["code"] == "blueprint-growth"]


def test_save_and_set(d, tmp_path):
    saved = tmp_path / "b.topo"
    ok(d.weft("blueprint", "save", saved))
    assert '"leaf-su01-rail0"' in saved.read_text()
    plan = js(d.weft("blueprint", "set", saved, "--check", "-o", "json"))
    assert plan["changes"] == [] and plan["routes"]["entries"] == 0
    done = js(d.weft("blueprint", "set", saved, "-o", "json"))
    assert done["done"]["ok"] and done["done"]["lft_entries"] == 0
    r = d.weft("blueprint", "save", tmp_path / "none" / "b.topo")
    assert r.rc == 2 and "cannot be written" in r.err


def test_bad_files(d, tmp_path):
    def refused(text, *words):
        path = tmp_path / "bad"
        path.write_bytes(text)
        r = d.weft("blueprint", "set", path)
        assert r.rc == 2 and r.out == "" and all(w in r.err for w in words), r
    refused(b"", "is empty")
    refused(b"nothing of the kind\n", "no node record")
    refused(b"\xff\xfe\x00\x01" * 1000, str(tmp_path / "bad"))
    refused(b'Switch 4 "leaf"\n[1] "host"[1]\n\nHca 1 "host"\n[1] "leaf"[1]\n', "ibsim", "GUIDs")
    other = weft("export", "ibnetdiscover", "ft3-8-4").out
    refused(other.encode(), "switches", "--force")
    r = d.weft("blueprint", "set", tmp_path / "none")
    assert r.rc == 2 and "cannot be read" in r.err
    assert blueprint(d)["links"] == 1024


def test_strike(d):
    r = d.weft("blueprint", "strike", "leaf-su01-rail0")
    assert r.rc == 2 and "only what is gone" in r.err
    r = d.weft("blueprint", "strike", "nobody")
    assert r.rc == 2 and "no node" in r.err
    host = js(d.weft("node", "--role", "host", "--limit", "3", "-o", "json"))[2]["guid"]
    nodes = js(d.weft("api", "GET", "/fabrics/default"))["nodes"]
    ok(d.weft("sim", "link", "down", host, "1"))
    wait_for(lambda: js(d.weft("api", "GET", "/fabrics/default"))["nodes"] == nodes - 1, "a node less")
    out = ok(d.weft("blueprint", "strike", host))
    assert "drops      " in out and "nothing is done yet" in out
    assert blueprint(d)["nodes"] == nodes
    ok(d.weft("blueprint", "strike", host, "--apply"))
    b = blueprint(d)
    assert (b["nodes"], b["state"]) == (nodes - 1, "accepted")
    ok(d.weft("sim", "link", "up", host, "1"))  # a host on a leaf that is known is learnt
    wait_for(lambda: blueprint(d)["nodes"] == nodes, "the host in the blueprint")


def test_learn_and_events(d):
    ok(d.weft("blueprint", "learn"))
    assert blueprint(d)["state"] == "learning"
    events = [json.loads(x) for x in ok(d.weft("event", "--limit", "500", "--kind", "blueprint-changed", "-o", "json"))
              .splitlines()]
    assert len(events) >= 5 and all("user id" in e["text"] for e in events)


def test_restart_keeps_it(tmp_path):
    with Daemon(simulate="rail-64") as daemon:
        daemon.up()
        ok(daemon.weft("blueprint", "accept"))
        b = blueprint(daemon)
        assert b["state"] == "accepted"


def test_offline():
    r = weft("blueprint", "show", socket_path="/nowhere/w.sock")
    assert r.rc == 3
